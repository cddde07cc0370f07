"""Local scores of Bayesian networks against formulas written out, and their distributions."""

import itertools
import math

from collections import Counter, defaultdict

import networkx as nx
import numpy as np
import pytest

from scipy.optimize import minimize
from scipy.special import xlogy
from scipy.stats import multivariate_t

from bayesstruct.networks.kernels.scores.named import SCORE_KINDS, network_score

STATES = np.array([2, 3, 2, 4, 3, 2, 4])
DISCRETE = ("bdeu", "bde", "multinomial")


def continuous(n=30, d=7):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / 2 + rng.normal(size=d)


def discrete(n=120):
    """States that depend on their neighbours."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, STATES, size=(n, len(STATES)))
    for j in range(1, len(STATES)):
        copied = rng.random(n) < 0.6
        x[copied, j] = x[copied, j - 1] % STATES[j]
    return x


def table(kind):
    if kind == "logistic":
        x = discrete() % 2 * 1.0
        x[:, 6] = np.random.default_rng(2).normal(size=len(x)) + x[:, 0]
        return x
    return discrete() if kind in DISCRETE else continuous()


def make(kind, rows=slice(None), **options):
    if kind in DISCRETE:
        options["states"] = STATES
    return network_score(table(kind)[rows], kind, **options)


def chosen(mask, candidates):
    return tuple(c for b, c in enumerate(candidates) if mask >> b & 1)


# --- Values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("child, parents", [(0, ()), (1, (4,)), (2, (0, 5, 3)), (6, range(6))])
def test_bge_is_a_normal_inverse_gamma_regression(child, parents):
    x, nu, alpha_mu, alpha_w = continuous(), np.linspace(-1, 1, 7), 0.7, 10.5
    score = network_score(x, "bge", alpha_mu=alpha_mu, alpha_w=alpha_w, nu=nu)
    parents = list(parents)
    design = np.column_stack([np.ones(len(x)), x[:, parents] - nu[parents]])
    t, p = alpha_mu * (alpha_w - 8) / (alpha_mu + 1), len(parents)
    a, b = (alpha_w - 7 + p + 1) / 2, t / 2
    prior = np.diag([1 / alpha_mu, *[1 / t] * p])
    density = multivariate_t(
        np.full(len(x), nu[child]), b / a * (np.eye(len(x)) + design @ prior @ design.T), 2 * a
    )
    # The density inverts a 30 x 30 matrix.
    assert score.local(child, parents) == pytest.approx(density.logpdf(x[:, child]), abs=1e-8)


def test_bge_of_a_complete_graph_is_the_product_of_predictive_densities():
    x, alpha_mu, alpha_w = continuous()[:, :4], 2.0, 9.0
    score = network_score(x, "bge", alpha_mu=alpha_mu, alpha_w=alpha_w)
    mean, scatter, total = np.zeros(4), alpha_mu * 4.0 / (alpha_mu + 1) * np.eye(4), 0.0
    for row in x:
        df = alpha_w - 3
        shape = scatter * (alpha_mu + 1) / (alpha_mu * df)
        total += multivariate_t(mean, shape, df).logpdf(row)
        scatter = scatter + alpha_mu / (alpha_mu + 1) * np.outer(row - mean, row - mean)
        mean = (alpha_mu * mean + row) / (alpha_mu + 1)
        alpha_mu, alpha_w = alpha_mu + 1, alpha_w + 1
    assert sum(score.local(j, range(j)) for j in range(4)) == pytest.approx(total, abs=1e-9)


def counts_of(x, child, parents):
    cells = Counter((tuple(row[list(parents)]), row[child]) for row in x)
    rows = Counter(tuple(row[list(parents)]) for row in x)
    return cells.values(), rows.values()


@pytest.mark.parametrize("n", [7, 120])
@pytest.mark.parametrize("child, parents", [(0, ()), (1, (4,)), (2, (0, 5, 3)), (6, range(6))])
def test_discrete_scores_are_functions_of_counts(child, parents, n):
    x = discrete(n)
    cells, rows = counts_of(x, child, parents)
    r, q = STATES[child], math.prod(STATES[list(parents)])

    def dirichlet(a):
        gain = sum(math.lgamma(a + count) - math.lgamma(a) for count in cells)
        return gain - sum(math.lgamma(r * a + count) - math.lgamma(r * a) for count in rows)

    likelihood = sum(map(xlogy, cells, cells)) - sum(map(xlogy, rows, rows))
    expected = {
        "bdeu": dirichlet(2.5 / (r * q)),
        "bde": dirichlet(0.5),
        "multinomial": likelihood - q * (r - 1) * math.log(n) / 2,
    }
    hyper = {
        "bdeu": {"equivalent_sample_size": 2.5},
        "bde": {"pseudo_count": 0.5},
        "multinomial": {},
    }
    for kind, value in expected.items():
        score = network_score(x, kind, states=STATES, **hyper[kind])
        assert score.local(child, parents) == pytest.approx(value, rel=1e-10, abs=1e-9)


def test_counts_above_the_table_of_small_ones():
    x = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [3_000, 31, 33, 700], axis=0)
    a = 0.25
    gain = sum(math.lgamma(a + c) - math.lgamma(a) for c in (3_000, 31, 33, 700))
    loss = sum(math.lgamma(2 * a + c) - math.lgamma(2 * a) for c in (3_031, 733))
    # Terms of 2e4 that cancel, in double precision.
    assert network_score(x, "bdeu").local(1, (0,)) == pytest.approx(gain - loss, abs=1e-9)


def test_gaussian_bic_is_that_of_least_squares():
    x = continuous()
    design = np.column_stack([np.ones(len(x)), x[:, [1, 3, 6]]])
    squares = np.linalg.lstsq(design, x[:, 2])[1][0]
    n = len(x)
    expected = -n / 2 * (math.log(2 * math.pi * squares / n) + 1) - 5 / 2 * math.log(n)
    assert network_score(x, "gaussian").local(2, (6, 1, 3)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("parents", [(), (0, 3), (6,), (1, 6, 4)])
def test_logistic_bic_is_that_of_the_greatest_likelihood(parents):
    x = table("logistic")
    y, design = x[:, 5], np.column_stack([np.ones(len(x)), x[:, list(parents)]])

    def loss(w):
        eta = design @ w
        return np.logaddexp(0, eta).sum() - y @ eta, design.T @ (1 / (1 + np.exp(-eta)) - y)

    best = minimize(loss, np.zeros(len(design.T)), jac=True, options={"gtol": 1e-8})
    expected = -best.fun - len(design.T) / 2 * math.log(len(x))
    # The loss is flat to the square of the gradient.
    assert network_score(x, "logistic").local(5, parents) == pytest.approx(expected, abs=1e-9)
    signs = np.where(np.arange(7) < 6, 2 * x - 1, x)
    assert network_score(signs, "logistic").local(5, parents) == pytest.approx(expected, abs=1e-9)


def test_separated_values_of_a_child_score_the_supremum():
    parent = np.repeat([0, 1], [40, 60])
    child = np.r_[np.ones(10), np.zeros(30), np.ones(60)]
    score = network_score(np.column_stack([child, parent]), "logistic")
    entropy = 10 * math.log(0.25) + 30 * math.log(0.75)
    # What the last step may leave, times the rows that are separated.
    assert score.local(0, (1,)) == pytest.approx(entropy - math.log(100), abs=1e-7)
    noise = np.random.default_rng(0).normal(size=100)
    score = network_score(np.column_stack([noise > 0.3, noise, 1 - parent]), "logistic")
    assert score.local(0, (1,)) == pytest.approx(-math.log(100), abs=1e-7)
    assert score.local(0, (1, 2)) == pytest.approx(-1.5 * math.log(100), abs=1e-7)


# --- Subsets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SCORE_KINDS)
@pytest.mark.parametrize(
    "candidates, fixed, most", [((), (3,), None), ((4, 0), (), None), ((6, 0, 4, 1), (3, 2), 4)]
)
def test_subsets_are_single_scores(kind, candidates, fixed, most):
    score = make(kind)
    scores = score.subsets(5, candidates, fixed=fixed, max_parents=most)
    for mask, value in enumerate(scores):
        parents = (*fixed, *chosen(mask, candidates))
        if most is not None and len(parents) > most:
            assert value == -np.inf
        else:
            assert value == pytest.approx(score.local(5, parents), abs=1e-9)


@pytest.mark.parametrize("n", [40, 5_000])
def test_all_ways_of_counting_agree(n):
    """Few rows are numbered at each level; many are counted at once and summed over."""
    x = np.random.default_rng(n).integers(0, STATES, size=(n, 7))
    x[:, 6] = (x[:, 6] > 2) * 3
    states = np.r_[STATES, 1]  # a variable with one state changes nothing
    score = network_score(np.column_stack([x, np.zeros(n, int)]), "bdeu", states=states)
    candidates = (6, 3, 7, 4, 1, 0, 2)
    for most in (None, 2):
        scores = score.subsets(5, candidates, max_parents=most)
        small = np.bitwise_count(np.arange(128)) <= (7 if most is None else most)
        assert (scores[~small] == -np.inf).all()
        single = [score.local(5, chosen(mask, candidates)) for mask in np.flatnonzero(small)]
        np.testing.assert_allclose(scores[small], single, rtol=1e-12)


# --- Equivalence ----------------------------------------------------------------------------------


def pattern(graph):
    """Skeleton and immoralities: what Markov-equivalent graphs share."""
    skeleton = frozenset(frozenset(arc) for arc in graph.edges)
    immoralities = frozenset(
        (a, c, b)
        for c in graph
        for a, b in itertools.combinations(sorted(graph.predecessors(c)), 2)
        if frozenset((a, b)) not in skeleton
    )
    return skeleton, immoralities


@pytest.fixture(scope="module")
def classes():
    """All graphs over 4 variables, as parent sets by equivalence class."""
    arcs, out = list(itertools.combinations(range(4), 2)), defaultdict(list)
    for kinds in itertools.product((None, 1, -1), repeat=6):
        graph = nx.DiGraph([arc[::k] for arc, k in zip(arcs, kinds, strict=True) if k])
        graph.add_nodes_from(range(4))
        if nx.is_directed_acyclic_graph(graph):
            out[pattern(graph)].append([tuple(graph.predecessors(j)) for j in range(4)])
    assert sum(map(len, out.values())) == 543
    assert len(out) == 185
    return list(out.values())


@pytest.mark.parametrize("kind", ["bge", "bdeu", "gaussian", "multinomial", "bde"])
def test_equivalent_graphs_score_the_same(kind, classes):
    score = network_score(table(kind)[:, :4], kind)
    others = [[j for j in range(4) if j != i] for i in range(4)]
    scores = {
        (i, frozenset(chosen(mask, others[i]))): value
        for i in range(4)
        for mask, value in enumerate(score.subsets(i, others[i]))
    }
    spread = 0.0
    for graphs in classes:
        totals = [sum(scores[i, frozenset(pa)] for i, pa in enumerate(graph)) for graph in graphs]
        spread = max(spread, np.ptp(totals))
    if kind == "bde":
        assert spread > 0.1
    else:
        assert spread < 1e-9


# --- Interventions --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SCORE_KINDS)
def test_rows_in_which_a_variable_was_set_are_left_out(kind):
    x = table(kind)
    mask = np.zeros(x.shape, bool)
    mask[: len(x) // 3, [0, 5]] = True
    mask[len(x) // 2 :, 1] = True
    mask[:, 2] = True
    score, plain = make(kind, interventions=mask), make(kind)
    np.testing.assert_array_equal(score.n_rows, len(x) - mask.sum(0))
    for child in (0, 1, 3, 5):
        kept = make(kind, ~mask[:, child])
        assert score.local(child, (4, 6)) == pytest.approx(kept.local(child, (4, 6)), abs=1e-9)
    others = (0, 1, 4, 6)
    expected = make(kind, ~mask[:, 5]).subsets(5, others)
    np.testing.assert_allclose(score.subsets(5, others), expected, atol=1e-9)
    assert score.local(3, (1,)) == plain.local(3, (1,))
    assert score.local(2, (1, 3)) == 0.0
    expected = [0, 0, 0, -np.inf]
    np.testing.assert_array_equal(score.subsets(2, (1, 3), max_parents=1), expected)


@pytest.mark.parametrize("kind", ["bge", "bdeu"])
def test_interventions_break_ties(kind):
    rng = np.random.default_rng(3)
    cause = rng.normal(size=400)
    effect = cause + rng.normal(size=400)
    set_ = np.arange(400) < 200
    effect[set_] = rng.normal(size=200)  # set without regard to its cause
    x = np.column_stack([cause, effect])
    x = (x > 0).astype(int) if kind == "bdeu" else x
    mask = np.column_stack([np.zeros(400, bool), set_])

    def gain(score):
        forward = score.local(0, ()) + score.local(1, (0,))
        return forward - score.local(1, ()) - score.local(0, (1,))

    assert abs(gain(network_score(x, kind))) < 1e-9
    assert gain(network_score(x, kind, interventions=mask)) > 5


# --- Degenerate tables ----------------------------------------------------------------------------


def test_collinear_and_constant_parents():
    x = continuous()
    x[:, 3] = 1e3 * (x[:, 0] - x[:, 1])
    x[:, 4] = 5.1
    assert np.isfinite(network_score(x, "bge").subsets(2, range(3, 7), fixed=(0, 1))).all()
    mask = np.zeros(x.shape, bool)
    mask[:, 4] = True  # never a child
    score = network_score(x, "gaussian", interventions=mask)
    scores = score.subsets(2, (0, 1, 3, 4))
    dead = [m for m in range(16) if m & 8 or m & 7 == 7]
    np.testing.assert_array_equal(np.flatnonzero(scores == -np.inf), dead)
    assert np.isfinite(np.delete(scores, dead)).all()
    assert score.local(3, (0, 1)) == -np.inf  # a child without noise
    assert score.local(3, (0, 1, 2)) == -np.inf
    assert (score.subsets(2, (5, 6), fixed=(0, 1, 3)) == -np.inf).all()
    logistic = x.copy()
    logistic[:, 2] = x[:, 2] > np.median(x[:, 2])
    scores = network_score(logistic, "logistic").subsets(2, (0, 1, 3, 4))
    np.testing.assert_array_equal(np.flatnonzero(scores == -np.inf), dead)


def test_bge_of_huge_collinear_columns_is_bounded_by_the_prior():
    """Rounding of a product of 1e18 is more than the prior's scale."""
    x = np.random.default_rng(0).normal(size=(200, 3)) * 1e9
    x[:, 2] = x[:, 0] + x[:, 1]
    scores = network_score(x, "bge").subsets(2, (0, 1))
    assert np.isfinite(scores).all()
    assert scores[3] > scores[:3].max()


def test_more_parents_than_rows():
    x = continuous(n=4)
    assert np.isfinite(network_score(x, "bge").subsets(0, range(1, 7))).all()
    scores = network_score(x, "gaussian").subsets(0, range(1, 7))
    size = np.bitwise_count(np.arange(64))
    assert np.isfinite(scores[size <= 2]).all()
    assert (scores[size >= 3] == -np.inf).all()


def test_a_table_without_rows_scores_zero():
    assert network_score(np.empty((0, 3)), "bge").local(0, (1, 2)) == 0.0
    score = network_score(np.empty((0, 6), int), "bdeu", states=[2] * 6)
    np.testing.assert_array_equal(score.subsets(0, range(1, 6)), 0.0)


def test_a_constant_binary_child():
    x = np.column_stack([np.ones(20), np.arange(20) % 2])
    assert network_score(x, "logistic").local(0, (1,)) == pytest.approx(-math.log(20))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"kind": "aic"}, "'aic' is unknown; choose among .*'bge', 'bdeu'"),
        ({"table": np.ones(3)}, "rows and columns"),
        ({"table": [[0.0, np.nan]]}, "column 1 has missing or infinite"),
        ({"states": [2, 2]}, "`states` belong to"),
        ({"alpha_mu": 0.0}, "`alpha_mu` must be a positive"),
        ({"alpha_w": 3.0}, "above d \\+ 1 = 3"),
        ({"nu": [0.0]}, "2 finite means"),
        ({"interventions": [[False]]}, "4 x 2"),
        ({"interventions": np.zeros((4, 2))}, "true or false"),
        ({"kind": "gaussian"}, "column 1 is constant in the 4 rows"),
        (
            {"kind": "bdeu", "equivalent_sample_size": -1.0},
            "`equivalent_sample_size` must be a positive",
        ),
        ({"kind": "bde", "pseudo_count": np.inf}, "`pseudo_count` must be a positive"),
        ({"kind": "bdeu", "states": [1, 2]}, "column 0 has the state 3, but `states` says 1"),
        ({"kind": "bdeu", "states": [4]}, "one number for each"),
        ({"kind": "bdeu", "states": [4, 257]}, "column 1 has 257 states"),
        ({"kind": "multinomial", "table": [[0, -1]]}, "column 1 has values that are not states"),
        ({"kind": "bde", "table": [[0.5, 1.0]]}, "column 0 has values that are not states"),
    ],
)
def test_what_is_refused(options, message):
    x = np.column_stack([np.arange(4), np.ones(4)])
    with pytest.raises(ValueError, match=message):
        network_score(**{"table": x, **options})


def test_families_that_do_not_exist():
    score = network_score(np.eye(40)[:, :30], "bge")
    with pytest.raises(ValueError, match="all be different"):
        score.local(1, (2, 1))
    with pytest.raises(ValueError, match="all be different"):
        score.subsets(1, (2, 3), fixed=(3,))
    with pytest.raises(ValueError, match="between 0 and 29"):
        score.local(1, (30,))
    with pytest.raises(ValueError, match="at most 24 candidates"):
        score.subsets(0, range(1, 27))
    logistic = network_score(np.arange(4.0)[:, None], "logistic")
    with pytest.raises(ValueError, match="column 0 has 4 different values"):
        logistic.local(0, ())
