"""Modes of Markov random fields: optimality, an independent solver, the source's numbers."""

import itertools
import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.io

from scipy.optimize import minimize
from tools.places import DATA
from tools.random_fields import all_states, energies, exact_distribution, feature_matrix

from bayesstruct.data import TableError, load_dataset
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.solvers.likelihoods import ExactLikelihood, PseudoLikelihood
from bayesstruct.fields.solvers.modes import NORMS, _Problem
from bayesstruct.solvers import (
    ConvergenceWarning,
    pairwise_mrf,
    pairwise_mrf_path,
    pairwise_mrf_rate_max,
)

SHARED = pytest.mark.skipif(not DATA.exists(), reason="the data of the sources are not here")
FAMILIES = [
    Potentials("ordinal", (2, 2, 3)),
    Potentials("spin", (2, 2, 2)),
    Potentials("ising", (3, 3, 3)),
    Potentials("full", (2, 3, 2)),
    Potentials("blume_capel", (3, 4, 2), 1),
]
IDS = [f.kind for f in FAMILIES]


def rows(states, n=60, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, states[0], n)
    others = [
        np.where(rng.random(n) < 0.5, first * (k - 1) // (states[0] - 1), rng.integers(0, k, n))
        for k in states[1:]
    ]
    return np.column_stack([first, *others])


@pytest.mark.parametrize("potentials", FAMILIES, ids=IDS)
@pytest.mark.parametrize("kind", [ExactLikelihood, PseudoLikelihood])
def test_likelihoods_and_their_gradients(potentials, kind):
    codes = rows(potentials.states)
    likelihood = kind(potentials, codes)
    rng = np.random.default_rng(1)
    theta = rng.normal(size=potentials.bias_size + potentials.weight_size)
    bias, weight = theta[: potentials.bias_size], theta[potentials.bias_size :]
    value, gradient = likelihood(theta)
    index = np.ravel_multi_index(codes.T, potentials.states)
    if kind is ExactLikelihood:
        wanted = -np.log(exact_distribution(potentials, bias, weight)[1])[index].sum()
    else:
        energy = energies(potentials, bias, weight).reshape(potentials.states)
        terms = sum(
            energy - np.logaddexp.reduce(energy, axis=i, keepdims=True) for i in range(potentials.p)
        )
        wanted = -terms.ravel()[index].sum()
    assert value == pytest.approx(wanted, rel=1e-12)
    step = 1e-5
    for k in range(len(theta)):
        e = np.eye(len(theta))[k] * step
        slope = (likelihood(theta + e)[0] - likelihood(theta - e)[0]) / (2 * step)
        assert gradient[k] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("potentials", FAMILIES, ids=IDS)
def test_scores_of_the_rows_sum_to_the_gradient(potentials):
    codes = rows(potentials.states)
    likelihood = PseudoLikelihood(potentials, codes)
    theta = np.random.default_rng(1).normal(size=potentials.bias_size + potentials.weight_size)
    scores = likelihood.row_scores(theta[: potentials.bias_size], theta[potentials.bias_size :])
    np.testing.assert_allclose(-likelihood.counts @ scores, likelihood(theta)[1], atol=1e-10)


@pytest.mark.parametrize("likelihood", ["exact", "pseudo"])
@pytest.mark.parametrize("norm", NORMS, ids=str)
def test_optimality_for_each_norm(norm, likelihood):
    """The gradient is a subgradient of the penalty; the null model begins at `rate_max`."""
    codes = rows((2, 3, 3, 2), n=200)
    top = pairwise_mrf_rate_max(codes, norm=norm, likelihood=likelihood)
    assert pairwise_mrf(codes, norm=norm, likelihood=likelihood, rate=1.0001 * top).edges == []
    assert pairwise_mrf(codes, norm=norm, likelihood=likelihood, rate=0.999 * top).edges
    rate = 0.3 * top
    solution = pairwise_mrf(codes, norm=norm, likelihood=likelihood, rate=rate, tol=1e-9)
    problem = _Problem.of(codes, "full", norm, likelihood, 0, 0.0)
    gradient = problem(np.concatenate([solution.bias, solution.weight]))[1]
    np.testing.assert_allclose(gradient[: len(solution.bias)], 0.0, atol=1e-5)
    duals = problem.dual_norms(gradient[len(solution.bias) :])
    assert 0 < solution.active.sum() < 6
    np.testing.assert_allclose(duals[solution.active], rate, rtol=1e-6)
    assert (duals[~solution.active] < rate).all()
    # On the active edges the gradient is opposite to the weights: Hoelder's equality.
    start = solution.potentials.weight_start
    for e in np.flatnonzero(solution.active):
        w, g = (v[start[e] : start[e + 1]] for v in (solution.weight, gradient[-start[-1] :]))
        shape = solution.potentials.shapes[e]
        size = {
            1: np.abs(w).sum(),
            2: np.linalg.norm(w),
            math.inf: np.abs(w).max(),
            "nuclear": np.linalg.norm(w.reshape(shape), "nuc"),
        }[norm]
        assert -(w @ g) == pytest.approx(rate * size, rel=1e-5)


def test_equals_a_general_optimiser():
    """Positive and negative parts of the weights, by SciPy."""
    codes = rows((2, 2, 2, 2), n=100)
    potentials = Potentials("ordinal", (2,) * 4)
    likelihood, rate = ExactLikelihood(potentials, codes), 3.0

    def objective(z):
        value, gradient = likelihood(np.concatenate([z[:4], z[4:10] - z[10:]]))
        return value + rate * z[4:].sum(), np.concatenate(
            [gradient[:4], gradient[4:] + rate, rate - gradient[4:]]
        )

    bounds = [(None, None)] * 4 + [(0, None)] * 12
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
    found = minimize(
        objective, np.zeros(16), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    ours = pairwise_mrf(codes, potentials="ordinal", rate=rate, likelihood="exact", tol=1e-9)
    assert ours.objective == pytest.approx(found.fun, rel=1e-9)
    np.testing.assert_allclose(ours.weight, found.x[4:10] - found.x[10:], atol=1e-4)


@pytest.fixture(scope="module")
def reinis():
    return load_dataset("reinis")


EQUIVALENT = [
    ("full", 2, 1.0),
    ("full", "nuclear", 1.0),
    ("full", math.inf, 2.0),
    ("full", 1, 0.5),
    ("generalized_ising", math.inf, 1.0),
    ("generalized_ising", 1, 0.5),
    ("generalized_ising", 2, 1 / math.sqrt(2)),
]


@pytest.mark.chain
@pytest.mark.parametrize(("kind", "norm", "factor"), EQUIVALENT, ids=str)
def test_binary_equivalences(reinis, kind, norm, factor):
    """Seven penalised models of binary data are one: the same distribution and objective."""
    rate, options = 50.0, {"likelihood": "exact", "tol": 1e-9}
    one = pairwise_mrf(reinis, potentials="ising", rate=rate, **options)
    other = pairwise_mrf(reinis, potentials=kind, norm=norm, rate=factor * rate, **options)
    assert other.objective == pytest.approx(one.objective, rel=1e-9)
    assert other.edges == one.edges
    p, q = (exact_distribution(s.potentials, s.bias, s.weight)[1] for s in (one, other))
    np.testing.assert_allclose(p, q, atol=1e-7)


def test_marginals_match_and_tables_are_centred(reinis):
    for likelihood in ("exact", "pseudo"):
        solution = pairwise_mrf(reinis, rate=50.0, likelihood=likelihood, tol=1e-9)
        for a, b in solution.edges:
            table = solution.table(a, b)
            np.testing.assert_allclose(table, table[0, 0] * np.array([[1, -1], [-1, 1]]), atol=1e-6)
            np.testing.assert_array_equal(table, solution.table(b, a).T)
    exact = pairwise_mrf(reinis, rate=50.0, likelihood="exact", tol=1e-9)
    _, p = exact_distribution(exact.potentials, exact.bias, exact.weight)
    means = p @ all_states(exact.potentials.states)
    np.testing.assert_allclose(means, reinis.mean(), atol=1e-7)


def test_three_states_are_centred_too():
    codes = rows((3, 3, 3), n=300)
    for likelihood in ("exact", "pseudo"):
        solution = pairwise_mrf(codes, rate=10.0, likelihood=likelihood, tol=1e-10)
        assert solution.edges
        for a, b in solution.edges:
            table = solution.table(a, b)
            np.testing.assert_allclose(table.sum(axis=0), 0.0, atol=1e-6)
            np.testing.assert_allclose(table.sum(axis=1), 0.0, atol=1e-6)


def test_paths_warm_starts_and_the_limits_of_the_rate(reinis):
    path = pairwise_mrf_path(reinis, n_rates=4, potentials="ordinal")
    assert path[0].edges == []
    counts = [len(s.edges) for s in path]
    assert counts == sorted(counts)
    cold = pairwise_mrf(reinis, potentials="ordinal", rate=path[-1].rate, tol=1e-9)
    assert path[-1].objective == pytest.approx(cold.objective, rel=1e-7)
    none = pairwise_mrf(reinis, potentials="ordinal", rate=math.inf)
    assert none.edges == []
    assert none.objective == pytest.approx(path[0].objective, rel=1e-9)
    warm = pairwise_mrf(reinis, potentials="ordinal", rate=math.inf, start=path[-1])
    assert warm.edges == []
    assert warm.objective == none.objective  # a start with edges changes nothing
    full = pairwise_mrf(reinis, potentials="ordinal", rate=0.0, likelihood="exact", tol=1e-9)
    features = feature_matrix(full.potentials)
    _, p = exact_distribution(full.potentials, full.bias, full.weight)
    seen = np.bincount(np.ravel_multi_index(reinis.to_numpy().T, (2,) * 6), minlength=64) / 1841
    np.testing.assert_allclose(p @ features, seen @ features, atol=1e-6)  # moments match
    graph = path[-1].graph()
    assert list(graph.nodes) == list(reinis.columns)
    assert graph.number_of_edges() == len(path[-1].edges)


def test_a_penalty_of_the_biases(reinis):
    solution = pairwise_mrf(reinis, potentials="ordinal", rate=50.0, bias_ridge=10.0, tol=1e-9)
    problem = _Problem.of(reinis, "ordinal", 2, "pseudo", 0, 0.0)
    gradient = problem(np.concatenate([solution.bias, solution.weight]))[1]
    np.testing.assert_allclose(gradient[:6], -20.0 * solution.bias, atol=1e-5)


def test_fewer_rows_than_columns_and_labels():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.choice(["no", "yes"], (8, 12)), columns=list("abcdefghijkl"))
    solution = pairwise_mrf(frame, rate=2.0)
    assert solution.converged
    assert all(a in frame and b in frame for a, b in solution.edges)


def chain_of(codes):
    return list(itertools.pairwise(f"x{i}" for i in range(codes.shape[1])))


def test_mode_on_a_graph_is_that_of_all_pairs_without_the_others():
    """Eight columns: by elimination, and by SciPy over all joint states."""
    codes = rows((2,) * 8, n=150)
    rate, chain = 4.0, chain_of(codes)
    options = {"potentials": "ordinal", "graph": chain, "likelihood": "exact"}
    ours = pairwise_mrf(codes, rate=rate, tol=1e-9, **options)
    assert ours.converged
    assert 0 < len(ours.edges) <= 7
    every = Potentials("ordinal", (2,) * 8)
    likelihood = ExactLikelihood(every, codes)
    on = every.bias_size + np.flatnonzero(every.ends[1] == every.ends[0] + 1)

    def objective(z):
        theta = np.zeros(every.bias_size + every.weight_size)
        theta[:8], theta[on] = z[:8], z[8:15] - z[15:]
        value, gradient = likelihood(theta)
        slopes = [gradient[:8], gradient[on] + rate, rate - gradient[on]]
        return value + rate * z[8:].sum(), np.concatenate(slopes)

    bounds = [(None, None)] * 8 + [(0, None)] * 14
    limits = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
    found = minimize(
        objective, np.zeros(22), jac=True, method="L-BFGS-B", bounds=bounds, options=limits
    )
    assert ours.objective == pytest.approx(found.fun, rel=1e-9)
    np.testing.assert_allclose(ours.weight, found.x[8:15] - found.x[15:], atol=1e-4)
    assert not ours.table("x0", "x5").any()
    np.testing.assert_array_equal(ours.table("x2", "x1"), ours.table("x1", "x2").T)
    top = pairwise_mrf_rate_max(codes, **options)
    assert [s.edges for s in pairwise_mrf_path(codes, [1.001 * top], **options)] == [[]]


def test_mode_on_a_chain_of_a_hundred():
    """Without a penalty the moments of a chain are those of the rows, by their distributions of pairs."""
    p, rng = 100, np.random.default_rng(2)
    codes = np.empty((400, p), int)
    codes[:, 0] = rng.integers(0, 2, 400)
    for i in range(1, p):
        codes[:, i] = np.where(rng.random(400) < 0.7, codes[:, i - 1], rng.integers(0, 2, 400))
    options = {"potentials": "ordinal", "graph": chain_of(codes), "likelihood": "exact"}
    free = pairwise_mrf(codes, rate=0.0, tol=1e-8, **options)
    # The saturated log odds ratio of neighbours is the weight of a chain's edge.
    for i in (0, 40, 98):
        table = np.bincount(2 * codes[:, i] + codes[:, i + 1], minlength=4)
        odds = np.log(table[0] * table[3] / (table[1] * table[2]))
        assert free.weight[i] == pytest.approx(odds, abs=1e-4)
    shrunk = pairwise_mrf(codes, rate=10.0, **options)
    assert shrunk.converged
    assert np.abs(shrunk.weight).sum() < np.abs(free.weight).sum()


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        ([("smoke", "smok")], "'smok'; did you mean 'smoke'"),
        ([("smoke", "smoke")], "smoke is joined with itself"),
        ([("smoke", "mental"), ("mental", "smoke")], "mental -- smoke is given twice"),
        ([("smoke", "mental", "phys")], "not a pair of columns"),
        (["sm"], "not a pair of columns"),
        ([], "no edges"),
        (7, "of the type int"),
        ("smoke", "iterable of pairs"),
        (nx.DiGraph([("smoke", "mental")]), "directed"),
        (nx.Graph([("smoke", "a"), ("b", "mental")]), "unknown columns 'a' and 'b'"),
    ],
)
def test_graphs_that_are_refused(reinis, graph, words):
    with pytest.raises(TableError, match=words):
        pairwise_mrf(reinis, graph=graph)


def test_a_graph_goes_with_named_potentials(reinis):
    with pytest.raises(ValueError, match="has its own edges"):
        pairwise_mrf(reinis, potentials=Potentials("ordinal", (2,) * 6), graph=nx.path_graph(2))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"norm": 3}, "norm"),
        ({"potentials": "potts"}, "potts"),
        ({"likelihood": "composite"}, "likelihood"),
        ({"rate": -1.0}, "negative"),
        ({"rate": math.nan}, "negative"),
        ({"bias_ridge": -1.0}, "bias_ridge"),
    ],
)
def test_refusals(reinis, options, words):
    with pytest.raises(ValueError, match=words):
        pairwise_mrf(reinis, **options)


def test_a_start_of_another_model_is_refused(reinis):
    start = pairwise_mrf(reinis, potentials="ordinal", rate=math.inf)
    with pytest.raises(ValueError, match="start"):
        pairwise_mrf(reinis, potentials="full", rate=50.0, start=start)


def test_tables_that_are_refused(reinis):
    with pytest.raises(ValueError, match=r"missing in smoke.*imputes"):
        pairwise_mrf(reinis.assign(smoke=reinis["smoke"].where(reinis.index > 3)))
    with pytest.raises(TableError, match="'smoke' is constant"):
        pairwise_mrf(reinis.assign(smoke=1))
    wide = np.random.default_rng(0).integers(0, 2, (50, 40))
    with pytest.raises(ValueError, match=r"1\.1e\+12 joint states.*pseudo"):
        pairwise_mrf(wide, likelihood="exact")


def test_stopping_short_is_said(reinis):
    with pytest.warns(ConvergenceWarning, match="pairwise_mrf stopped"):
        pairwise_mrf(reinis, rate=1.0, tol=1e-12, max_evaluations=4)


@pytest.fixture(scope="module")
def cyto():
    return scipy.io.loadmat(DATA / "cyto_discretized.mat")["X"].astype(int) - 1


@SHARED
def test_cells_of_the_source(cyto):
    """Schmidt (2010), section 5.8: 11 variables of three states, all of them summed over."""
    options = {"potentials": "ising", "likelihood": "exact"}
    assert pairwise_mrf_rate_max(cyto, **options) == pytest.approx(1486.8461, abs=1e-4)
    for rate, objective, edges in [(100, 45495.8664, 43), (50, 44650.2090, 46)]:
        solution = pairwise_mrf(cyto, rate=rate, **options)
        assert solution.objective == pytest.approx(objective, abs=1e-4)
        assert len(solution.edges) == edges
    tops = {2: 1163.127, "nuclear": 1162.985, 1: 724.037, math.inf: 2973.692}
    for norm, top in tops.items():
        found = pairwise_mrf_rate_max(cyto, norm=norm, likelihood="exact")
        assert found == pytest.approx(top, abs=1e-3)


@SHARED
def test_rain_of_the_source():
    """Schmidt (2010), section 5.8.3: the chain of days appears at rate 256."""
    rain = scipy.io.loadmat(DATA / "rain.mat")["X"].astype(int)
    assert pairwise_mrf_rate_max(rain) == pytest.approx(471.875354, abs=1e-6)
    chain = [(f"x{i}", f"x{i + 1}") for i in range(27)]
    for rate, objective, edges in [
        (512, 20069.907168, 0),
        (256, 19530.394, 27),
        (128, 18267.367, 40),
    ]:
        solution = pairwise_mrf(rain, rate=rate)
        assert solution.objective == pytest.approx(objective, abs=1e-3)
        assert len(solution.edges) == edges
        if rate == 256:
            assert solution.edges == chain


@SHARED
def test_words_of_the_source():
    """Four edges at rate 1024. At 512 the printed 78 edges are those of a run that had not ended.

    Its objective, 252870.47, is 7.2 above the optimum, which has 71 edges: the largest gradient of
    an absent edge is 504.7, well below the rate.
    """
    file = scipy.io.loadmat(DATA / "news_w100.mat", spmatrix=False)
    words = [str(word[0]) for word in file["wordlist"][0]]
    table = pd.DataFrame(file["documents"].toarray().T.astype(int), columns=words)
    assert pairwise_mrf_rate_max(table) == pytest.approx(1313.226696, abs=1e-6)
    first, second = pairwise_mrf_path(table, [1024, 512])
    wanted = [("bible", "god"), ("christian", "god"), ("dos", "windows"), ("god", "jesus")]
    assert sorted(first.edges) == wanted
    assert first.objective == pytest.approx(255478.417, abs=1e-3)
    assert second.objective == pytest.approx(252863.3045, abs=1e-3)
    assert len(second.edges) == 71
