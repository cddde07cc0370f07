"""Convergence of chains of directed acyclic graphs, on made-up results."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from tools.dags import dag_posterior, random_dags, to_graph

from bayesstruct.graphs.traces import graph_distance, n_edges
from bayesstruct.modes.check import check
from bayesstruct.structure import median_graph, structural_hamming_distance


def independent(draws, chains=4, p=4, seed=0):
    rng = np.random.default_rng(seed)
    return random_dags(rng, chains * draws, p).reshape(chains, draws, p, p)


def test_independent_graphs_have_converged():
    graphs = independent(400)
    result = check(dag_posterior(graphs))
    assert result.ok, result
    names = result.to_frame()["quantity"].tolist()
    assert names[:2] == ["number of arcs", "distance to the median graph"]
    assert names[2].startswith("arc (worst): v")
    assert names[3].startswith("weight (worst of 12)")
    assert len(names) == 4


def test_orders_and_tables_do_not_count():
    """Chains may differ in the order they went by, and a cell of a table has no fixed meaning."""
    values = np.zeros((4, 400, 4), int)
    values[:2] = 3
    tree = dag_posterior(independent(400), weighted=False)
    sample = ("chain", "draw")
    draws = tree["posterior"].to_dataset()
    draws = draws.assign(order=((*sample, "position"), values), table=((*sample, "cell"), values))
    tree["posterior"] = xr.DataTree(draws)
    assert check(tree).ok
    assert len(check(tree).rows) == 3


def test_chains_at_different_graphs_and_short_runs():
    graphs = np.zeros((4, 100, 3, 3), int)
    graphs[:2, :, 0, 1] = graphs[2:, :, 1, 0] = graphs[2:, :, 0, 2] = 1
    frame = check(dag_posterior(graphs, weighted=False)).to_frame()
    assert frame["verdict"].eq("not converged: chains are stuck at different values").all()
    short = check(dag_posterior(independent(60), weighted=False)).to_frame()
    assert short["verdict"].str.startswith("too few draws: draw").all()
    tiny = check(dag_posterior(independent(3), weighted=False)).to_frame()
    assert tiny["verdict"].eq("cannot tell: 3 draws a chain").all()
    still = check(dag_posterior(np.zeros((2, 50, 3, 3)), weighted=False))
    assert all(row.verdict.startswith("did not move: ") and not row.ok for row in still.rows)


@pytest.mark.parametrize(("probability", "ok"), [(1 - 1e-4, True), (0.9, False)])
def test_a_constant_graph_is_judged_by_the_probabilities_that_the_step_averaged(probability, ok):
    graphs = np.zeros((2, 500, 3, 3), int)
    graphs[..., 1, 0] = 1
    tree = dag_posterior(graphs, weighted=False)
    average = np.where(tree["posterior"]["arc"].values[0, 0] == 1, probability, 1e-6)
    average = np.broadcast_to(average, (2, 6))
    summaries = xr.Dataset({"probability": (("chain", "ordered_pair"), average)})
    tree["arcs"] = xr.DataTree(summaries.assign_attrs(draws=[2, 500]))
    rows = check(tree).rows
    assert all(row.ok is ok for row in rows)
    assert f"probability {1 - probability:.1g} a draw" in rows[0].verdict


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            1e-4,
            "the same in every draw of every chain: a change of one arc had the probability 0.0001",
        ),
        (
            0.0,
            "the same in every draw of every chain: a change of one arc had the probability 1e-15",
        ),
        (0.2, "did not move, although a change of one arc had the probability 0.2"),
        (np.nan, "did not move: "),
    ],
)
def test_a_constant_graph_is_judged_by_the_probability_of_a_change_that_the_step_reports(
    change, words
):
    tree = dag_posterior(np.zeros((2, 500, 3, 3), int), weighted=False)
    values = ("chain", "draw"), np.full((2, 500), change)
    tree["sample_stats"] = xr.DataTree(xr.Dataset({"change": values}))
    rows = check(tree).rows
    assert all(row.verdict.startswith(words) for row in rows)
    assert all(row.ok is (change < 0.01) for row in rows)


@pytest.mark.parametrize(
    ("change", "words", "ok"),
    [
        (1e-4, "the same in every draw of every chain: a change of the noise of one column", True),
        (0.2, "did not move, although a change of the noise of one column", False),
        (np.nan, "did not move: ", False),
    ],
)
def test_kinds_of_noise_that_never_changed_are_judged_by_the_probability_of_a_change(
    change, words, ok
):
    tree = dag_posterior(independent(250, chains=2), weighted=False)
    sample = ("chain", "draw")
    normal = (*sample, "node"), np.zeros((2, 250, 4), int)
    tree["posterior"] = xr.DataTree(tree["posterior"].to_dataset().assign(normal_noise=normal))
    tree["sample_stats"] = xr.DataTree(
        xr.Dataset({"normal_change": (sample, np.full((2, 250), change))})
    )
    row = check(tree).to_frame().set_index("quantity").loc["normal_noise"]
    assert row.verdict.startswith(words)
    assert np.isfinite(row.r_hat) == ok


def test_one_constant_chain_shows_nothing():
    tree = dag_posterior(np.zeros((1, 500, 3, 3), int), weighted=False)
    values = ("chain", "draw"), np.full((1, 500), 1e-9)
    tree["sample_stats"] = xr.DataTree(xr.Dataset({"change": values}))
    assert not any(row.ok for row in check(tree).rows)
    assert check(tree).rows[0].verdict.startswith("cannot tell: one chain")


def test_constant_graphs_that_differ_between_chains_have_not_converged():
    graphs = np.zeros((2, 500, 3, 3), int)
    graphs[1, :, 0, 1] = 1
    tree = dag_posterior(graphs, weighted=False)
    values = ("chain", "draw"), np.full((2, 500), 1e-9)
    tree["sample_stats"] = xr.DataTree(xr.Dataset({"change": values}))
    assert not any(row.ok for row in check(tree).rows)


@pytest.mark.chain
def test_a_certain_graph_of_a_whole_run_has_converged():
    import bayesstruct as bs

    x = np.random.default_rng(0).standard_normal((200, 2))
    x[:, 1] += 2 * x[:, 0]
    table = pd.DataFrame(x, columns=["a", "b"])
    options = {"cores": 1, "random_seed": 1, "progressbar": False}
    for candidates in (None, 1):  # independent draws, and a Markov chain
        with bs.models.bayesian_network(table, tiers={"a": 0, "b": 1}) as model:
            step = bs.steps.NetworkMCMC(model.free_RVs, candidates=candidates)
            idata = pm.sample(
                100, tune=10, chains=2, step=step, compute_convergence_checks=False, **options
            )
        row = check(idata).rows[0]
        assert row.ok and row.verdict.startswith("the same in every draw of every chain"), row


def test_summaries_of_graphs():
    graphs = independent(5, chains=2)
    tree = dag_posterior(graphs)
    np.testing.assert_array_equal(n_edges(tree), graphs.sum((2, 3)))
    reference = to_graph(graphs[1, 2])
    for known, given in [(median_graph(tree), None), (reference, reference)]:
        expected = [
            [structural_hamming_distance(to_graph(g), known) for g in chain] for chain in graphs
        ]
        np.testing.assert_array_equal(graph_distance(tree, given), expected)
