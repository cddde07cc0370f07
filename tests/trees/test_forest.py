"""Forests of tables: against all 291 forests of five columns, densities, and the joint distribution of everything."""

import itertools

import arviz as az
import networkx as nx
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats
from scipy.special import betaln
from tools.enumeration import assert_matches_enumeration
from tools.geweke import assert_geweke
from trees.test_exact import CASES, dag_score, numbers, states
from trees.test_models import ALPHA, GAPS, B, P, T, bounded, stepper

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.distributions import TreePrecision
from bayesstruct.graphs.spanning_trees.forests import SharedForests
from bayesstruct.precision.priors.g_wishart import draw_g_wishart
from bayesstruct.trees.steps import tables as tree_steps

SHAPES = 2.0, 1.5


def all_forests(p=5):
    """All forests: edges, sizes of components, and arcs away from a root of each component."""
    pairs = list(itertools.combinations(range(p), 2))
    for k in range(p):
        for lines in itertools.combinations(pairs, k):
            graph = nx.Graph(lines)
            graph.add_nodes_from(range(p))
            parts = list(nx.connected_components(graph))
            if len(parts) == p - k:
                arcs = [arc for part in parts for arc in nx.bfs_edges(graph, max(part))]
                yield lines, [len(part) for part in parts], arcs


def indicator(lines, p):
    return [int(pair in lines) for pair in itertools.combinations(range(p), 2)]


def grid_of_shares(shapes):
    """Shares of a fine grid, and the logarithms of their prior probabilities."""
    logit = np.linspace(-30.0, 30.0, 6001)
    share = 1.0 / (1.0 + np.exp(-logit))
    a, b = shapes
    logs = -a * np.logaddexp(0, -logit) - b * np.logaddexp(0, logit) - betaln(a, b)
    return logit, share, logs + np.log(logit[1] - logit[0])


def log_prior(forests, odds, logit):
    """Log prior probabilities of forests given each share, (forests, shares), from their definition."""
    p = len(odds)
    log_root = np.log(odds[np.triu_indices(p, 1)].sum() * 2 / (p - 1)) - logit
    logs = np.array([
        np.log([odds[e] for e in lines]).sum() + np.log(sizes).sum() + len(sizes) * log_root
        for lines, sizes, _ in forests
    ])  # fmt: skip
    return logs - np.logaddexp.reduce(logs, axis=0)


def enumerated(score, odds, shapes=SHAPES):
    table, make = CASES[score]
    local, forests = make(table, 1.0), list(all_forests())
    logit, _, weight = grid_of_shares(shapes)
    data = np.array([dag_score(local, arcs) for *_, arcs in forests])
    joint = log_prior(forests, odds, logit) + weight + data[:, None]
    evidence = np.logaddexp.reduce(joint, axis=None)
    return forests, np.exp(np.logaddexp.reduce(joint, axis=1) - evidence), evidence, joint


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("score", ["bge", "bdeu"])
def test_the_posterior_is_that_of_all_291_forests(score, equal):
    q = np.random.default_rng(3).uniform(0.1, 0.9, (5, 5))
    q = np.full((5, 5), 0.5) if equal else (q + q.T) / 2
    forests, p, evidence, joint = enumerated(score, q / (1 - q))
    assert len(forests) == 291
    posterior = bs.exact.forest_posterior(
        CASES[score][0], score=score, edge_share=SHAPES, edge_probability=q
    )
    np.testing.assert_allclose(posterior.log_evidence, evidence, atol=1e-8)
    expected, parts = np.zeros((5, 5)), np.zeros(5)
    for (lines, sizes, _), one in zip(forests, p, strict=True):
        parts[len(sizes) - 1] += one
        for i, j in lines:
            expected[i, j] += one
            expected[j, i] += one
    np.testing.assert_allclose(posterior.edge_probabilities, expected, atol=1e-8)
    # Six digits are promised.
    np.testing.assert_allclose(posterior.components, parts, atol=1e-6)
    mine = [posterior.log_probability(lines) for lines, *_ in forests[::7]]
    np.testing.assert_allclose(np.exp(mine), p[::7], atol=1e-8)
    share = grid_of_shares(SHAPES)[1]
    mean = np.exp(np.logaddexp.reduce(joint, axis=0) - evidence) @ share
    assert posterior.edge_share[0] == pytest.approx(mean, abs=1e-7)


@pytest.mark.statistical
def test_draws_have_the_probabilities_of_all_forests():
    forests, p, *_ = enumerated("bge", np.ones((5, 5)))
    rows = np.array([indicator(lines, 5) for lines, *_ in forests])
    posterior = bs.exact.forest_posterior(numbers(), edge_share=SHAPES)
    drawn = posterior.draw(20_000, random_seed=1)
    drawn = np.array([indicator({*map(tuple, lines.tolist())}, 5) for lines in drawn])
    assert_matches_enumeration(drawn, p, states=rows)
    other = enumerated("bge", np.ones((5, 5)), (1.0, 9.0))[1]
    with pytest.raises(AssertionError):
        assert_matches_enumeration(drawn, other, states=rows)


@pytest.mark.parametrize("p", [2, 6, 40])
def test_every_number_of_components_has_the_same_prior_probability(p):
    forests = SharedForests(np.zeros((p, p)))
    np.testing.assert_allclose(forests.components, 1.0 / p, atol=1e-6)
    assert forests.log_evidence == pytest.approx(0.0, abs=1e-7)
    np.testing.assert_allclose(forests.probabilities[0, 1:], 1.0 / p, atol=1e-7)


@pytest.mark.parametrize("shapes", [(1.0, 1.0), (2.0, 1.5)])
def test_the_model_records_the_prior_probability_of_each_edge(shapes):
    model = bs.models.forest(numbers(), edge_share=shapes)
    recorded = model["edge_prior"].data
    expected = SharedForests(np.zeros((5, 5)), 0.0, shapes).probabilities
    np.testing.assert_allclose(recorded, expected[np.triu_indices(5, 1)], atol=1e-8)


@pytest.mark.parametrize("shapes", [(1e6, 1e6), (3e5, 7e5), (0.02, 5.0), (1e6, 1.0)])
def test_narrow_and_wide_priors_of_the_share_are_integrated(shapes):
    forests = SharedForests(np.zeros((5, 5)), 0.0, shapes)
    share, p = forests.share
    own = stats.betabinom(4, *shapes)
    # A difference of log gamma functions of some 1e7, 1e-9 by rounding.
    assert forests.log_evidence == pytest.approx(0.0, abs=1e-8)
    assert p @ share == pytest.approx(shapes[0] / sum(shapes), rel=1e-9)
    np.testing.assert_allclose(forests.components, own.pmf(np.arange(5)[::-1]), atol=1e-6)


def test_strong_dependences_leave_no_forest_out():
    """Weights that no computer number holds: two certain pairs, and nothing between them."""
    gains = np.full((4, 4), -800.0)
    gains[0, 1] = gains[1, 0] = gains[2, 3] = gains[3, 2] = 2000.0
    forests = SharedForests(np.zeros((4, 4)), gains)
    assert forests.components[1] == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(forests.probabilities[[0, 2, 0], [1, 3, 2]], [1, 1, 0], atol=1e-9)


def test_the_density_of_the_matrix_is_that_of_a_g_wishart_matrix():
    rng = np.random.default_rng(0)
    for lines, *_ in list(all_forests(4))[::5]:
        row = np.array(indicator(lines, 4))
        graph = np.zeros((4, 4))
        graph[np.triu_indices(4, 1)] = row
        precision = draw_g_wishart(rng, 3.5, 0.7 * np.eye(4), row)
        forest = bs.SpanningForest.dist(np.zeros(6))
        given = pm.logp(TreePrecision.dist(forest, 3.5, 0.7), precision)
        known = pm.logp(bs.GWishart.dist(graph + graph.T, 3.5, 0.7), precision).eval()
        np.testing.assert_allclose(given.eval({forest: row.astype("int8")}), known, rtol=1e-10)


@pytest.mark.statistical
@pytest.mark.parametrize("score", ["bge", "bdeu"])
def test_the_chain_has_the_exact_posterior(score):
    table = CASES[score][0]
    forests, p, *_ = enumerated(score, np.ones((5, 5)))
    rows = np.array([indicator(lines, 5) for lines, *_ in forests])
    model = bs.models.forest(table, score=score, edge_share=SHAPES)
    step, point, out = stepper(model), model.initial_point(), []
    for k in range(16_000):
        point, _ = step.step(point)
        if k % 8 == 7:  # by then hardly correlated
            out.append(point["edge"])
    assert_matches_enumeration(np.array(out), p, states=rows)


def joint(seed=0):
    """Forward draws of everything, and a transition that draws the table anew, for a table with missing values."""
    from bayesstruct.precision.kernels.rows.tables import TableRows

    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(4, P)), columns=list("abc"))
    mask = np.zeros((4, P), bool)
    mask[tuple(GAPS.T)] = True
    with pytest.warns(UserWarning, match="33% of the values are missing"):
        model = bs.models.forest(table.mask(mask), equivalent_sample_size=ALPHA, edge_share=SHAPES)
    step, forests = stepper(model), list(all_forests(P))
    location, scale = (model[name].get_value() for name in ("location", "scale"))
    step.begun = True

    def rows(rng, state):
        factor = np.linalg.inv(np.linalg.cholesky(state["precision"])).T
        state["x"] = state["mean"] + rng.standard_normal((4, P)) @ factor.T
        return state

    def forward(rng):
        share = rng.beta(*SHAPES)
        logit = np.log(share) - np.log1p(-share)
        p = np.exp(log_prior(forests, np.ones((P, P)), np.array([logit]))[:, 0])
        edge = np.array(indicator(forests[rng.choice(len(forests), p=p)][0], P), "int8")
        precision = draw_g_wishart(rng, B, T * np.eye(P), edge)
        mean = np.linalg.solve(np.linalg.cholesky(ALPHA * precision).T, rng.standard_normal(P))
        own = {"edge": edge, "precision": precision, "mean": mean}
        return rows(rng, own | {"edge_share_logodds__": np.asarray(logit)})

    def transition(rng, state):
        state = rows(rng, dict(state))
        x = location + scale * state["x"]
        step.rng, step.table.rows = rng, TableRows(x, location, scale, mask)
        point = {name: state[name] for name in state if name != "x"}
        point, _ = step.step(point | {"x_missing": x[mask]})
        x[mask] = point.pop("x_missing")
        return point | {"x": (x - location) / scale}

    return forward, transition, step


def with_share(state):
    share = 1.0 / (1.0 + np.exp(-state["edge_share_logodds__"]))
    out = bounded(state) | {"share": share, "share squared": share**2}
    return out | {f"share edge {k}": share * v for k, v in enumerate(state["edge"])}


@pytest.mark.statistical
def test_forest_share_parameters_and_missing_numbers_have_their_joint_distribution():
    forward, transition, _ = joint()
    assert_geweke(forward, transition, with_share, draws=4000, seed=1)


def _no_roots(monkeypatch, step):
    right = tree_steps.all_trees  # all components have one root weight in common
    monkeypatch.setattr(
        tree_steps, "all_trees", lambda logs, outer: right(logs * _ground(logs), outer)
    )


def _ground(logs):
    out = np.ones_like(logs)
    out[0] = out[:, 0] = 0.0
    return out


def _unaware(monkeypatch, step):
    right = step.share.draw  # of the number of edges
    step.share.draw = lambda rng, point, edges, nodes: right(rng, point, 1, nodes)


def _wrong_constant(monkeypatch, step):
    right = tree_steps.edge_factors  # of an edge
    monkeypatch.setattr(tree_steps, "edge_factors", lambda b, m, t: right(b, m, t) + 0.2 * b)


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [_no_roots, _unaware, _wrong_constant])
def test_wrong_variants_are_noticed(monkeypatch, wrong):
    forward, transition, step = joint()
    wrong(monkeypatch, step)
    with pytest.raises(AssertionError, match="worst z"):
        assert_geweke(forward, transition, with_share, draws=4000, seed=1)


@pytest.mark.chain
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto")  # of few draws
@pytest.mark.parametrize("score", ["bge", "bdeu"])
def test_a_run_is_sampled_unasked_and_read(score):
    table = numbers() if score == "bge" else states()
    model = bs.models.forest(table, score=score)
    idata = pm.sample(
        100, tune=10, chains=2, cores=1, model=model, progressbar=False, random_seed=1,
        compute_convergence_checks=False,
    )  # fmt: skip
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(idata, extend_inferencedata=True, progressbar=False)
    assert np.isfinite(az.loo(idata).elpd)
    posterior = idata["posterior"]
    edges = posterior["edge"].sum("pair")
    np.testing.assert_array_equal(posterior["components"], 5 - edges)
    exact = bs.exact.forest_posterior(table, score=score).edge_probabilities.to_numpy()
    mine = bs.edge_table(idata).set_index(["source", "target"])["probability"]
    for (i, j), p in mine.items():
        assert abs(p - exact["abcde".index(i), "abcde".index(j)]) < 0.2
    empty = table.head(2).astype(object)
    empty.loc[:, "c"] = None
    assert len(bs.predict(idata, empty)) == (2 if score == "bge" else 4)
    assert "x" in bs.pointwise(idata, draws=10, random_seed=1)["log_likelihood"]
    bs.plot_graph(idata)
    bs.check(idata)


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        (numbers()[["a"]], {}, "column"),
        (numbers().assign(b=1.0), {}, "'b'.*constant"),
        (states().assign(b=1), {"score": "bdeu"}, "'b'"),
        (numbers(), {"score": "mixed"}, "'bge', 'bdeu'.*tree_posterior"),
        (numbers(), {"edge_share": (0.0, 1.0)}, "edge_share"),
        (numbers(), {"edge_share": 0.5}, "two shapes of a beta"),
        (numbers(), {"edge_probability": 1.0}, "a -- b.*below 1"),
        (numbers(), {"edge_probability": 0.0}, "all edges are forbidden"),
        (numbers(), {"forbidden": [("a", "zz")]}, "zz"),
        (numbers(), {"equivalent_sample_size": 0}, "equivalent_sample_size"),
    ],
)
def test_bad_input_is_refused_with_the_column_and_the_remedy(table, options, words):
    for learn in (bs.exact.forest_posterior, bs.models.forest):
        with pytest.raises((TableError, ValueError), match=f"(?s){words}"):
            learn(table, **options)


def test_forbidden_edges_may_cut_a_forest_and_two_columns_have_two_forests():
    table = numbers()
    posterior = bs.exact.forest_posterior(table, forbidden=[("a", other) for other in "bcde"])
    assert posterior.components[1] == pytest.approx(0.0, abs=1e-6)
    assert not posterior.edge_probabilities.loc["a"].any()
    two = bs.exact.forest_posterior(table[["a", "b"]])
    factor = bs.exact.tree_posterior(table[["a", "b"]]).trees.log_weights[0, 1]
    expected = np.exp(factor) / (1.0 + np.exp(factor))
    assert two.edge_probabilities.loc["a", "b"] == pytest.approx(expected, abs=1e-9)
    model = bs.models.forest(table[["a", "b"]])
    point, _ = stepper(model).step(model.initial_point())
    assert point["edge"].shape == (1,)


def test_columns_that_determine_each_other_are_joined():
    copy = numbers(p=3)
    copy["d"] = 2.0 * copy["c"] + 1.0
    with pytest.warns(UserWarning):
        posterior = bs.exact.forest_posterior(copy)
    assert posterior.edge_probabilities.loc["c", "d"] > 1 - 1e-6
