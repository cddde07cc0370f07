"""Random graphs with a G-Wishart matrix: against all graphs of four columns, joint-distribution tests, wrong variants."""

from pathlib import Path

import networkx as nx
import numpy as np
import pymc as pm
import pytest

from scipy.special import betaln
from tools.batches import mean_and_error
from tools.enumeration import assert_matches_enumeration
from tools.geweke import assert_geweke

import bayesstruct as bs

from bayesstruct.distributions import (
    ColumnMeans,
    GraphicalNormal,
    IncompleteGraphicalNormal,
    IndependentEdges,
    MissingValues,
)
from bayesstruct.precision.exact.graphs import graph_posterior
from bayesstruct.precision.kernels.g_wishart import graph_sweep, joint_sweeps, matrix_sweep
from bayesstruct.precision.kernels.g_wishart.draws import g_wishart
from bayesstruct.precision.priors.g_wishart import edge_matrix
from bayesstruct.steps import PrecisionGibbs

PAIRS = np.triu_indices(4, 1)
CYCLE = bs.simulate.gaussian_graphical(25, graph=nx.cycle_graph(4), random_seed=3).data.to_numpy()


def run(model, sweeps, seed=0, burn=100):
    """Points of the chain of the step alone."""
    with model:
        step = PrecisionGibbs(model.free_RVs)
    step.setup_chain(np.random.default_rng(seed), 0, sweeps)
    point = model.initial_point(seed)
    kept = []
    for t in range(-burn, sweeps):
        point, _ = step.step(point)
        if t >= 0:
            kept.append(point)
    return kept


def graphs_of(posterior, p):
    """States and exact probabilities and errors of all graphs of the columns 0, 1, ..."""
    pairs = [f"{i} -- {j}" for i, j in zip(*np.triu_indices(p, 1), strict=True)]
    states = np.array(
        [[pair in text.split(", ") for pair in pairs] for text in posterior.graphs["edges"]]
    )
    probability = posterior.graphs["probability"].to_numpy()
    return (
        states.astype(int),
        probability,
        probability * posterior.graphs["standard_error"].to_numpy(),
    )


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("rows", "freedom", "scale"),
    [(CYCLE, 3.0, 1.0), (CYCLE, 5.0, np.diag([1.0, 2.0, 0.5, 3.0])), (CYCLE[:2], 3.0, 1.0)],
    ids=["default", "diagonal scale", "fewer rows than columns"],
)
def test_all_graphs_of_four_columns(rows, freedom, scale):
    prior = np.full((4, 4), 0.4)
    posterior = graph_posterior(
        "0123", rows.T @ rows, len(rows), prior, freedom, scale * np.eye(4), 50_000, 1
    )
    with pm.Model() as model:
        graph = IndependentEdges("graph", 4, 0.4)
        K = bs.GWishart("K", graph, freedom, scale)
        pm.MvNormal("x", np.zeros(4), tau=K, observed=rows)
    kept = run(model, 8_000)
    states, probability, errors = graphs_of(posterior, 4)
    edges = np.array([point["graph"] for point in kept])
    assert_matches_enumeration(edges, probability, states=states, errors=errors)
    # tr(K (D + S)) / 2 given the graph is gamma with shape p (b + n) / 2 + edges.
    K = np.array([point["K"] for point in kept])
    half = 0.5 * (K * (scale * np.eye(4) + rows.T @ rows)).sum(axis=(1, 2))
    expected = probability @ (2 * (freedom + len(rows)) + states.sum(axis=1))
    mean, error, _ = mean_and_error(half[:, None])
    assert abs(mean[0] - expected) < 4.5 * error[0]
    off = np.array([(k[PAIRS] != 0) == (e != 0) for k, e in zip(K, edges, strict=True)])
    assert off.all()


@pytest.mark.statistical
def test_required_forbidden_and_improbable_edges():
    prior = np.array(
        [[0.5, 1.0, 0.2, 0.6], [1.0, 0.5, 0.3, 0.0], [0.2, 0.3, 0.5, 0.7], [0.6, 0.0, 0.7, 0.5]]
    )
    posterior = graph_posterior("0123", CYCLE.T @ CYCLE, 25, prior, 3.0, np.eye(4), 50_000, 1)
    with pm.Model() as model:
        graph = IndependentEdges("graph", 4, prior)
        pm.MvNormal("x", np.zeros(4), tau=bs.GWishart("K", graph), observed=CYCLE)
    states, probability, errors = graphs_of(posterior, 4)
    edges = np.array([point["graph"] for point in run(model, 6_000)])
    assert_matches_enumeration(edges, probability, states=states, errors=errors)


@pytest.mark.statistical
def test_a_beta_edge_probability():
    even = graph_posterior(
        "0123", CYCLE.T @ CYCLE, 25, np.full((4, 4), 0.5), 3.0, np.eye(4), 50_000, 1
    )
    states, probability, errors = graphs_of(even, 4)
    count = states.sum(axis=1)
    weights = probability * np.exp(betaln(0.8 + count, 1.7 + 6 - count))
    exact = weights / weights.sum()
    with pm.Model() as model:
        graph = IndependentEdges("graph", 4, pm.Beta.dist(0.8, 1.7))
        pm.MvNormal("x", np.zeros(4), tau=bs.GWishart("K", graph), observed=CYCLE)
    kept = run(model, 8_000)
    edges = np.array([point["graph"] for point in kept])
    relative = np.divide(errors, probability, out=np.zeros_like(errors), where=probability > 0)
    assert_matches_enumeration(edges, exact, states=states, errors=exact * relative)
    share = 1 / (1 + np.exp(-np.array([point["edge_probability_logodds__"] for point in kept])))
    mean, error, _ = mean_and_error(share[:, None])
    assert abs(mean[0] - exact @ ((0.8 + count) / 8.5)) < 4.5 * error[0]


@pytest.mark.statistical
def test_without_tables_a_graph_keeps_its_prior():
    # Most graphs of six nodes are not decomposable: nearly every change needs an auxiliary draw.
    with pm.Model() as model:
        bs.GWishart("K", IndependentEdges("graph", 6))
    edges = np.array([point["graph"] for point in run(model, 8_000)])
    around = np.array([edge_matrix(edge, 6) for edge in edges]).astype(int)
    triangles = np.trace(around @ around @ around, axis1=1, axis2=2) / 6
    count = edges.sum(axis=1)
    found = np.column_stack([edges, count, (count - 7.5) ** 2, triangles])
    mean, error, _ = mean_and_error(found)
    z = (mean - [*np.full(15, 0.5), 7.5, 3.75, 2.5]) / error
    assert np.abs(z).max() < 4.5, z


EXCHANGE = "rng, b, adjacency, i, j, edge, tries, whole, codes, filled, rough\n                )"


def rewritten_sweep(changes):
    """`graph_sweep` with a bad guess of the ratios without closed form, and other changes of its source."""
    source = Path(graph_sweep.__file__).read_text()
    bad = "0.7 * (closed_separator(adjacency, i, j, whole) < 0)"
    for old, new in {
        "from bayesstruct.core.jit import inner, kernel": "from numba import njit as inner, njit as kernel",
        "guess = ratios[common[i, j]]": f"guess = ratios[common[i, j]] + {bad}",
        **changes,
    }.items():
        assert source.count(old) == 1
        source = source.replace(old, new)
    names = {"__name__": "rewritten"}
    exec(source, names)
    return names["graph_sweep"]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("changes", "right"),
    [
        ({}, True),
        ({"sign * (guess - exact)": "sign * (exact - guess)"}, False),
        ({EXCHANGE: EXCHANGE.replace("edge", "not edge")}, False),
    ],
    ids=["right", "other direction", "auxiliary draw given the present graph"],
)
def test_the_exchange_corrects_any_guess(changes, right):
    # The guess is good enough in itself for other tests to pass with an exchange in the wrong direction.
    sweep, p = rewritten_sweep(changes), 5
    K, W, edges, common = np.eye(p), np.eye(p), np.zeros((p, p), np.int8), np.zeros((p, p), int)
    whole, codes, filled = np.zeros((8, p), int), np.zeros((p, p), np.int8), np.eye(p, dtype="i1")
    work, rough = np.zeros((p + 3, p)), np.zeros((4, p + 3, p))
    rng, kept, space = np.random.default_rng(1), [], (20_000, whole, codes, filled, work, rough)
    for _ in range(8_000):
        matrix_sweep.matrix_sweep(rng, K, W, edges, np.eye(p), 3.0, whole[0], work)
        sweep(rng, K, W, edges, common, np.eye(p), np.zeros((p, p)), 3.0, *space)
        kept.append(edges.astype(int))
    kept = np.array(kept)
    single, triangles = kept[:, *np.triu_indices(p, 1)], np.trace(kept @ kept @ kept, 0, 1, 2) / 6
    count = single.sum(axis=1)
    mean, error, _ = mean_and_error(np.column_stack([single, count, (count - 5) ** 2, triangles]))
    z = np.abs(mean - [*np.full(10, 0.5), 5.0, 2.5, 1.25]) / error
    assert z.max() < 4.5 if right else z.max() > 5.5, z


@pytest.mark.statistical
def test_rough_auxiliary_draws_change_little(monkeypatch):
    # No exact draw at all: what remains of the error is that of ten Gibbs sweeps from a good guess.
    monkeypatch.setattr("bayesstruct.precision.steps.g_wishart._TRIES", 0)
    posterior = graph_posterior(
        "0123", CYCLE.T @ CYCLE, 25, np.full((4, 4), 0.4), 3.0, np.eye(4), 50_000, 1
    )
    with pm.Model() as model:
        graph = IndependentEdges("graph", 4, 0.4)
        pm.MvNormal("x", np.zeros(4), tau=bs.GWishart("K", graph), observed=CYCLE)
    states, probability, errors = graphs_of(posterior, 4)
    edges = np.array([point["graph"] for point in run(model, 6_000)])
    assert_matches_enumeration(edges, probability, states=states, errors=errors)


@pytest.mark.statistical
@pytest.mark.parametrize("graph", [nx.cycle_graph(4), nx.star_graph(3)], ids=["cycle", "star"])
def test_a_known_graph(graph):
    with pm.Model() as model:
        K = bs.GWishart("K", graph, 4.0, np.eye(4) + 0.2)
        pm.MvNormal("x", np.zeros(4), tau=K, observed=CYCLE[:6])
    draws = np.array([point["K"] for point in run(model, 3_000)])
    half = 0.5 * (draws * (np.eye(4) + 0.2 + CYCLE[:6].T @ CYCLE[:6])).sum(axis=(1, 2))
    mean, error, _ = mean_and_error(half[:, None])
    assert abs(mean[0] - (2 * 10 + graph.number_of_edges())) < 4.5 * error[0]
    rng = np.random.default_rng(5)
    own = nx.to_numpy_array(graph) > 0
    direct = np.array(
        [g_wishart(rng, 10.0, np.eye(4) + 0.2 + CYCLE[:6].T @ CYCLE[:6], own) for _ in range(1_000)]
    )
    for function in (np.array, np.square, lambda k: np.log(np.abs(np.linalg.det(k)))[:, None]):
        a, b = (function(k).reshape(len(k), -1) for k in (draws, direct))
        mean, error, _ = mean_and_error(a)
        z = (mean - b.mean(axis=0)) / (np.hypot(error, b.std(axis=0) / np.sqrt(len(b))) + 1e-12)
        assert abs(z).max() < 4.5


P, N = 4, 5
MISSING = np.zeros((N, P), bool)
MISSING[0, 1] = MISSING[2, 0] = MISSING[2, 3] = MISSING[4, 2] = True
LOCATION, SCALE = np.array([1.0, -3.0, 0.0, 2.0]), np.array([2.0, 0.5, 1.0, 3.0])


class Joint:
    """Both simulators of a model with column means, with or without missing values and a beta edge probability."""

    def __init__(self, *, gaps=False, random=False, seed=0):
        self.gaps, self.random = gaps, random
        with pm.Model() as self.model:
            self.rows = pm.Data("rows", np.zeros((N, P)))
            graph = IndependentEdges("edge", P, pm.Beta.dist(1.5, 2.0) if random else 0.4)
            args = (
                ColumnMeans("mean", 0.5, 0.8, shape=P),
                bs.GWishart("K", graph),
                LOCATION,
                SCALE,
            )
            if gaps:
                MissingValues("x_missing", *args, table=np.zeros((N, P)), missing=MISSING)
                IncompleteGraphicalNormal("x", *args, missing=MISSING, observed=self.rows)
            else:
                GraphicalNormal("x", *args, observed=self.rows)
            self.step = PrecisionGibbs(self.model.free_RVs, rng=seed)

    def forward(self, rng):
        share = rng.beta(1.5, 2.0) if self.random else 0.4
        edge = (rng.random(6) < share).astype("int64")
        point = {"mean": 0.5 + 0.8 * rng.normal(size=P), "edge": edge}
        point["K"] = g_wishart(rng, 3.0, np.eye(P), edge_matrix(edge, P))
        if self.random:
            point["edge_probability_logodds__"] = np.asarray(np.log(share / (1 - share)))
        return self.with_rows(rng, point)

    def with_rows(self, rng, point):
        covariance = np.linalg.inv(point["K"])
        rows = point["mean"] + rng.normal(size=(N, P)) @ np.linalg.cholesky(covariance).T
        rows = LOCATION + SCALE * rows
        if self.gaps:
            point["x_missing"] = rows[MISSING]
        return point, rows

    def transition(self, rng, state):
        point, rows = state
        self.rows.set_value(np.where(MISSING, 99.0, rows) if self.gaps else rows)
        self.step.parts[0].forget()
        point, _ = self.step.step(point)
        return self.with_rows(rng, dict(point))

    def statistics(self, state):
        point, rows = state
        K, z = point["K"], np.tanh(0.3 * (rows - LOCATION) / SCALE)
        u = K[PAIRS]
        rho = -u / np.sqrt(np.diag(K)[PAIRS[0]] * np.diag(K)[PAIRS[1]])
        out = {f"k{i}": v for i, v in enumerate(u)} | {f"k{i}^2": v * v for i, v in enumerate(u)}
        out |= {f"log d{i}": v for i, v in enumerate(np.log(np.diag(K)))}
        out |= {"log det": np.linalg.slogdet(K)[1], "rho^2": (rho**2).mean(), "trace": np.trace(K)}
        out |= {"mean": point["mean"].mean(), "mean^2": (point["mean"] ** 2).mean()}
        out |= {"z": z.mean(), "z^2": (z**2).mean(), "zz": (z[:, 0] * z[:, 1]).mean()}
        out |= {"z k": (z[:, 0] * z[:, 1]).mean() * np.tanh(u[0])}
        edges = point["edge"].sum()
        out |= {f"edge{i}": e for i, e in enumerate(point["edge"])}
        cycles = [[0, 2, 3, 5], [0, 1, 4, 5], [1, 2, 3, 4]]
        around = sum(point["edge"][c].all() and edges == 4 for c in cycles)
        out |= {"edges": edges, "edges^2": edges**2, "cycle": around}
        if self.random:
            share = 1 / (1 + np.exp(-point["edge_probability_logodds__"]))
            out |= {"share": share, "share^2": share**2, "share edges": share * edges}
        return out

    def check(self, draws, seed=1):
        return assert_geweke(
            self.forward, self.transition, self.statistics, draws=draws, chains=20, seed=seed
        )


@pytest.mark.calibration
@pytest.mark.parametrize(("gaps", "random"), [(False, False), (True, True)])
def test_parameters_and_tables_have_their_joint_distribution(gaps, random, full):
    z = Joint(gaps=gaps, random=random).check(60_000 if full else 2_500)
    assert len(z) > 20


def without_the_constant(args):
    args[6] = args[6] + graph_sweep.log_constant_ratio(3.0, 0)


def without_the_data(args):
    args[5] = np.eye(len(args[5]))


def without_degrees(args):
    args[5] -= 1.0


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("graph_sweep", without_the_constant),
        ("graph_sweep", without_the_data),
        ("matrix_sweep", without_degrees),
    ],
)
def test_wrong_sweeps_are_noticed(name, damage, monkeypatch):
    right = getattr(joint_sweeps, name)

    def wrong(*args):
        args = list(args)
        damage(args)
        return right(*args)

    monkeypatch.setattr(joint_sweeps, name, wrong)
    monkeypatch.setattr(joint_sweeps, "joint_sweeps", joint_sweeps.joint_sweeps.py_func)
    with pytest.raises(AssertionError, match="worst z"):
        Joint().check(2_000)  # in longer runs the wrong matrices end as singular ones


def test_what_cannot_be_drawn_is_refused():
    with pm.Model() as model:
        graph = IndependentEdges("graph", 3)
        K = bs.GWishart("K", graph)
        pm.Potential("few", -graph.sum())
    with model, pytest.raises(ValueError, match="'few' depends on 'graph'"):
        pm.sample(draws=1, tune=0, chains=1, progressbar=False)
    with pm.Model() as model:
        K = bs.GWishart("K", nx.path_graph(3))
        pm.Normal("y", K[0, 0], observed=0.0)
    with model, pytest.raises(ValueError, match=r"cannot be drawn exactly.*latent normal rows"):
        pm.sample(draws=1, tune=0, chains=1, progressbar=False)
    with pm.Model() as model:
        bs.GWishart("K", IndependentEdges("graph", 3))
    with pm.observe(model, {"K": np.eye(3)}), pytest.raises(ValueError, match="matrix is observed"):
        pm.sample(draws=1, tune=0, chains=1, progressbar=False)
