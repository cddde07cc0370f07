"""Three probabilities for each pair of columns."""

import numpy as np
import pandas as pd
import pytest

from tools.dags import dag_posterior, random_dags
from tools.rows import prior_result

import bayesstruct as bs


@pytest.fixture(scope="module")
def graphs():
    return random_dags(np.random.default_rng(1), 400, 5).reshape(4, 100, 5, 5)


def test_three_probabilities_of_each_pair(graphs):
    table = bs.direction_table(dag_posterior(graphs))
    assert len(table) == 10
    for row in table.itertuples():
        i, j = int(row.source[1]), int(row.target[1])
        assert row.forward == pytest.approx(graphs[..., i, j].mean())
        assert row.backward == pytest.approx(graphs[..., j, i].mean())
        assert row.none == pytest.approx(1 - row.forward - row.backward)
    assert (table["forward"] >= table["backward"]).all()
    assert table["none"].is_monotonic_increasing


def test_errors_are_those_of_shares(graphs):
    table = bs.direction_table(dag_posterior(graphs))
    for state in ("forward", "backward", "none"):
        share = table[state]
        np.testing.assert_allclose(
            table[f"mcse_{state}"], np.sqrt(share * (1 - share) / 400), rtol=0.35
        )
    assert (table["ess"] > 150).all()
    assert (table["r_hat"] < 1.1).all()


@pytest.mark.usefixtures("python_mode")
def test_what_the_model_gives_has_no_error():
    """a -> b is required, c -> a and b -> c and back are forbidden; a -> c is free."""
    rng = np.random.default_rng(1)
    model = bs.models.bayesian_network(
        pd.DataFrame(rng.normal(size=(9, 3)), columns=list("abc")),
        required=[("a", "b")],
        forbidden=[("c", "a"), ("b", "c"), ("c", "b")],
    )
    table = bs.direction_table(prior_result(model, 40)).set_index(["source", "target"])
    errors = table[["mcse_forward", "mcse_backward", "mcse_none"]]
    assert (errors.loc[[("a", "b"), ("b", "c")]] == 0).all(axis=None)
    np.testing.assert_array_equal(errors.loc[("a", "c")] > 0, [True, False, True])


def test_what_was_never_seen_has_an_error_too():
    table = bs.direction_table(dag_posterior(np.zeros((2, 50, 2, 2))))
    assert table.loc[0, "none"] == 1
    assert 0.005 < table.loc[0, "mcse_forward"] < 0.02
    assert np.isnan(table.loc[0, "ess"]) and table.loc[0, "r_hat"] == 1


def test_chains_that_disagree_on_a_direction_alone():
    """The edge is in all draws, so that only the directions show it."""
    drawn = np.zeros((2, 50, 2, 2))
    drawn[0, :, 0, 1] = drawn[1, :, 1, 0] = 1
    assert bs.direction_table(dag_posterior(drawn)).loc[0, "r_hat"] == np.inf


def test_prior_probabilities_follow_the_direction():
    drawn = np.zeros((1, 20, 2, 2))
    drawn[:, :15, 1, 0] = 1
    tree = dag_posterior(drawn, prior=[0.4, 0.1])
    source = tree["constant_data"]["arc_source"].values
    row = bs.direction_table(tree).iloc[0]
    assert (row["source"], row["target"]) == ("v1", "v0")
    assert row["prior_forward"] == [0.4, 0.1][int(np.flatnonzero(source == 1)[0])]
    assert row["prior_forward"] + row["prior_backward"] == pytest.approx(0.5)


def test_notes_tell_whether_the_model_knows_directions(graphs):
    tree = dag_posterior(graphs)
    assert "prior alone" in bs.direction_table(tree).attrs["notes"][0]
    tree["constant_data"]["arc_identified"] = 1
    assert "form of its distributions" in bs.direction_table(tree).attrs["notes"][0]
    assert "form of its distributions" in bs.arc_table(tree).attrs["notes"][0]


def test_results_that_were_saved(graphs, tmp_path):
    tree = dag_posterior(graphs)
    tree.to_netcdf(tmp_path / "result.nc", engine="h5netcdf")
    import xarray as xr

    with xr.open_datatree(tmp_path / "result.nc", engine="h5netcdf") as saved:
        again = bs.direction_table(saved)
        graph, weights = bs.consensus_graph(saved), bs.graph_weights(saved)
    assert again.equals(bs.direction_table(tree))
    assert graph.graph == bs.consensus_graph(tree).graph
    assert weights.table.equals(bs.graph_weights(tree).table)


def test_results_without_columns_say_what_to_sample(graphs):
    result = dag_posterior(graphs)
    draws = result["posterior"].to_dataset().drop_vars(["dag", "node", "node_"])
    result["posterior"] = draws[["arc"]]
    for read in (bs.direction_table, bs.arc_table, bs.check):
        with pytest.raises(ValueError, match="sample `dag` too"):
            read(result)


def test_one_chain_keeps_its_dimension(graphs):
    with pytest.raises(ValueError, match=r"idata\.isel\(chain=\[0\]\)"):
        bs.direction_table(dag_posterior(graphs).isel(chain=0))
