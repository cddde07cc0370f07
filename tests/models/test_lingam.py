"""The model lingam: directions that the noise tells, and what is said where it tells none."""

import networkx as nx
import numpy as np
import pymc as pm
import pytest
import xarray as xr

import bayesstruct as bs

from bayesstruct.sem.kernels.settings import NOISES
from bayesstruct.sem.reading.directions import direction_notes

PAIRS = nx.DiGraph([("a", "b"), ("b", "c"), ("d", "c")])


def table(noise, n=400):
    return bs.simulate.linear_sem(n, graph=PAIRS, noise=noise, random_seed=3).data


def sampled(data, noise):
    with bs.models.lingam(data, noise=noise):
        return pm.sample(
            draws=100, tune=50, chains=2, cores=1, progressbar=False, random_seed=1,
            compute_convergence_checks=False,
        )  # fmt: skip


def test_normal_columns_are_said_when_the_model_is_built():
    said = r"columns 'a', 'b', 'c' and 'd' cannot be told"
    with pytest.warns(bs.data.TableWarning, match=said + ".*and the posterior has both; tiers"):
        bs.models.lingam(table("gaussian"))
    with pytest.warns(
        bs.data.TableWarning, match=said + ".*normal_probability=0 makes it too sure"
    ):
        bs.models.lingam(table("gaussian"), normal_probability=0.0)
    with pytest.warns(
        bs.data.TableWarning, match=said + ".*noise='laplace' may be sure of a wrong"
    ):
        bs.models.lingam(table("gaussian"), noise="laplace")
    bs.models.lingam(table("laplace"), noise="laplace")  # without a warning


def test_normal_columns_are_said_from_complete_rows_where_values_are_missing():
    gaps = table("gaussian")
    gaps.iloc[:3, 1] = np.nan
    with pytest.warns(bs.data.TableWarning, match=r"columns 'a', 'b', 'c' and 'd' cannot be told"):
        bs.models.lingam(gaps, noise="laplace")


@pytest.mark.parametrize("rows", [2, 3])
def test_too_few_rows_for_the_shape_of_noise_are_said(rows):
    few = table("laplace")[:rows][["a", "b", "c"]]
    with pytest.warns(bs.TableWarning, match=f"{rows} complete rows of 3 columns cannot show"):
        bs.models.lingam(few)


def test_columns_with_light_tails_are_said_when_the_model_is_built():
    """Also where values are missing or were set, in rows that do not count."""
    data = table("laplace")
    data["a"] = np.linspace(-1, 1, 400)
    said = r"[Cc]olumn 'a': tails are lighter.*noise='mixture' learns"
    for noise in ("laplace", "student"):
        with pytest.warns(bs.data.TableWarning, match=said):
            bs.models.linear_sem(data, noise=noise)
    data.iloc[:4, 1] = np.nan
    with pytest.warns(bs.data.TableWarning, match=said):
        bs.models.linear_sem(data, noise="laplace")
    was_set = np.zeros((400, 4), bool)
    was_set[:, 0] = data.index < 390
    bs.models.linear_sem(data, noise="laplace", interventions=was_set)  # ten rows are left
    bs.models.linear_sem(data, noise="mixture")


def test_normal_noise_is_refused_with_the_noises_there_are():
    with pytest.raises(ValueError, match="`noise` must be one of 'mixture', 'laplace', 'student'"):
        bs.models.lingam(table("laplace"), noise="gaussian")


def test_a_probability_of_arcs_names_the_prior_of_graphs():
    """The option ``prior`` is that of weights here."""
    with pytest.raises(ValueError, match="`edge_probability` goes with graph_prior='edge'"):
        bs.models.lingam(np.eye(3), edge_probability=0.2)


@pytest.mark.chain
@pytest.mark.filterwarnings("ignore")
def test_directions_are_told_by_laplace_noise_and_not_by_normal_noise():
    probability = {}
    for noise in ("laplace", "gaussian"):
        idata = sampled(table(noise), "laplace")
        arc = idata.posterior["arc"].mean(("chain", "draw"))
        probability[noise] = [float(arc.sel(ordered_pair=f"{a} -> {b}")) for a, b in PAIRS.edges]
        note, *shapes = bs.check(idata).notes
        assert bool(shapes) == (noise == "gaussian")  # under Laplace noise
        if noise == "laplace":
            assert note.startswith("Of 3 pairs of columns with an edge")
            assert "3 have a direction" in note and "leaves the others open" not in note
    assert min(probability["laplace"]) > 0.95
    # Equivalent graphs of these three arcs differ in the first one.
    assert probability["gaussian"][0] < 0.95


def test_note_counts_pairs_with_an_edge_and_sure_directions():
    idata = MadeUp([[0, 1, 0, 0.6], [0, 0, 0.1, 0], [0, 0.05, 0, 0.5], [0.4, 0, 0.48, 0]])
    (note,) = direction_notes(idata)
    # a - b: sure. a - d: .6 and .4. b - c: probability .15. c - d: .5 and .48.
    assert note.startswith("Of 3 pairs of columns with an edge (probability above 0.5), 1 have")
    assert "leaves the others open" in note
    (note,) = direction_notes(MadeUp([[0, 1, 0, 0.96], [0] * 4, [0] * 4, [0] * 4]))
    assert note.startswith("Of 2 pairs") and "2 have" in note and "open" not in note
    assert direction_notes(MadeUp(np.zeros((4, 4)))) == []


def test_note_names_the_columns_that_probably_have_normal_noise():
    arcs = [[0, 1, 0, 0.96], [0] * 4, [0] * 4, [0] * 4]
    (note,) = direction_notes(MadeUp(arcs, normal=[0.2, 0.9, 0.4, 0.6]))
    assert "normal noise, which tells no direction" in note
    assert "'b' (0.90), 'd' (0.60)" in note and "'a'" not in note
    (note,) = direction_notes(MadeUp(arcs, normal=[0.2, 0.3, 0.4, 0.1]))
    assert "No column has normal noise with a probability above 0.5" in note


def test_note_of_networks_of_several_kinds_names_the_families():
    sure = MadeUp([[0, 1, 0, 0.6], [0] * 4, [0] * 4, [0.4, 0, 0, 0]], mixed=True)
    (note,) = direction_notes(sure)
    assert note.startswith("Of 2 pairs") and "families (kinds=)" in note and "normal" not in note
    (note,) = direction_notes(
        MadeUp([[0, 0.5, 0, 0], [0.5, 0, 0, 0], [0] * 4, [0] * 4], mixed=True)
    )
    assert "0 have" in note and "families" not in note


class MadeUp:
    """Draws whose arcs have these probabilities, with the record of Laplace noise or of a mixed network."""

    def __init__(self, probabilities, *, mixed=False, normal=None):
        arcs = np.asarray(probabilities, float)
        grid = (np.arange(200) + 0.5) / 200
        dag = (grid[:, None, None] < arcs).astype("int8")[None]
        self.draws = xr.Dataset({"dag": (("chain", "draw", "node", "node_"), dag)})
        self.constants = xr.Dataset({"noise_kind": NOISES.index("laplace")})
        self.variables = list("abcd")
        if normal is not None:
            own = (grid[:, None] < np.array(normal))[None].astype("int64")
            self.draws["normal_noise"] = (("chain", "draw", "node"), own)
        if mixed:
            kinds = {
                name: ("node", np.zeros(len(arcs), int))
                for name in ("column_family", "column_states")
            }
            self.constants = xr.Dataset(kinds)
