"""The bundled tables are those of the paper."""

import networkx as nx
import numpy as np
import pytest

from bayesstruct.data import StateTable, Table, datasets, load_dataset, load_network, networks

PROTEINS = ["Raf", "Mek", "Plcg", "PIP2", "PIP3", "Erk", "Akt", "PKA", "PKC", "P38", "Jnk"]


def test_observational_cells():
    cells = load_dataset("sachs")
    assert cells.shape == (853, 11)
    assert cells.columns.tolist() == PROTEINS
    assert cells.iloc[0].tolist() == [26.4, 13.2, 8.82, 18.3, 58.8, 6.61, 17, 414, 17, 44.9, 40]
    assert (cells > 0).all(axis=None)
    assert Table.continuous(np.log(cells)).names == tuple(PROTEINS)


def test_conditions():
    cells = load_dataset("sachs_interventions")
    assert cells.shape == (7466, 13)
    counts = cells["condition"].value_counts(sort=False).tolist()
    assert counts == [853, 902, 911, 723, 810, 799, 848, 913, 707]
    assert cells["intervention"].value_counts().to_dict() == {
        "none": 1755, "PKC": 1636, "Akt": 911, "PI3K": 848, "PIP2": 810, "Mek": 799, "PKA": 707,
    }  # fmt: skip
    # U0126 stops Mek from phosphorylating Erk; psitectorigenin empties PIP2.
    medians = cells.groupby("condition")[PROTEINS].median()
    assert medians["Erk"].idxmin() == "cd3cd28+u0126"
    assert medians["PIP2"].idxmin() == "cd3cd28+psitect"


def test_cells_in_three_states():
    cells = load_dataset("sachs_discrete")
    assert cells.columns.tolist() == [*PROTEINS, "intervention"]
    assert cells.shape == (5400, 12)
    assert cells["intervention"].value_counts().to_dict() == {
        "none": 1800, "PKC": 1200, "Mek": 600, "PIP2": 600, "Akt": 600, "PKA": 600,
    }  # fmt: skip
    counts = np.unique(cells[PROTEINS], return_counts=True)
    assert counts[0].tolist() == [1, 2, 3]
    assert counts[1].tolist() == [30308, 20674, 8418]
    for name in ("Mek", "PIP2", "Akt"):
        assert (cells.loc[cells["intervention"] == name, name] == 1).all()
    assert (cells.loc[cells["intervention"] == "PKA", "PKA"] == 3).sum() == 563
    assert (cells.loc[cells["intervention"] == "PKC", "PKC"].value_counts().to_dict()) == {
        1: 600, 3: 514, 2: 86,
    }  # fmt: skip


def test_risk_factors():
    """Counts of the first states as in Edwards and Havranek (1985)."""
    men = load_dataset("reinis")
    assert (men == 0).sum().to_dict() == {
        "smoke": 961, "mental": 1063, "phys": 927, "systol": 1054, "protein": 1061, "family": 1581,
    }  # fmt: skip
    assert len(men) == 1841
    assert len(men.drop_duplicates()) == 63


def test_voters():
    """Counts of the answers as in the file that the table was made from."""
    voters = load_dataset("anes96")
    assert voters.shape == (944, 7)
    assert voters.iloc[0].tolist() == [7, 3, 7, 1, 6, 6, 1]
    assert voters["party"].value_counts().sort_index().tolist() == [200, 180, 108, 37, 94, 150, 175]
    table = StateTable.read(voters)
    assert table.states == (8, 7, 7, 7, 7, 7, 2)
    assert all(table.ordered)
    # The more Republican, the more often for the Republican.
    assert voters.groupby("party")["vote"].mean().is_monotonic_increasing


def test_networks():
    found, literature = load_network("sachs"), load_network("sachs_literature")
    assert list(found) == list(literature) == PROTEINS
    assert found.number_of_edges() == 17
    assert nx.is_directed_acyclic_graph(found)
    assert literature.number_of_edges() == 18
    assert list(nx.simple_cycles(literature))
    missed = {("PIP2", "PKC"), ("Plcg", "PKC"), ("PIP3", "Akt")}
    reversed_arcs = {("PIP3", "Plcg"), ("PIP2", "PIP3")}
    assert set(literature.edges) - set(found.edges) == missed | reversed_arcs


def test_unknown_names():
    with pytest.raises(ValueError, match=r"'sahcs'.*'sachs'.*Available: 'sachs', "):
        load_dataset("sahcs")
    with pytest.raises(ValueError, match="Available: 'sachs', 'sachs_literature'"):
        load_network("alarm")
    assert datasets() == [
        "sachs",
        "sachs_interventions",
        "sachs_discrete",
        "reinis",
        "anes96",
    ]
    assert networks() == ["sachs", "sachs_literature"]
