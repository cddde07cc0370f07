"""Draws of classifiers against enumeration of all trees, and a wrong step that is noticed."""

import itertools

import networkx as nx
import numpy as np
import pymc as pm
import pytest

from classifiers.test_exact import frame, posterior
from scipy.special import gammaln

import bayesstruct as bs

from bayesstruct.classifiers.kernels.scores import ClassifierScore
from bayesstruct.classifiers.ops import arc_sum
from bayesstruct.classifiers.priors import AugmentedTree
from bayesstruct.classifiers.steps import ClassifierDraws
from bayesstruct.graphs.spanning_trees.sums import SpanningTrees

FEATURES = [0, 1, 3, 4]


def build(**options):
    return bs.models.network_classifier(frame(), "class", **options)


def stepper(model, seed=0):
    step = ClassifierDraws(model.free_RVs, model=model)
    step.setup_chain(np.random.default_rng(seed), 0, 0)
    return step


def drawn(step, model, n):
    point, out = model.initial_point(), []
    for _ in range(n):
        point, _ = step.step(point)
        out.append(point)
    return out


def lines_of(dag):
    inner = dag[np.ix_(FEATURES, FEATURES)]
    return frozenset(tuple(sorted(pair)) for pair in np.argwhere(inner).tolist())


def chi_squared(points, trees, p):
    found = [lines_of(point["dag"]) for point in points]
    counts = np.array([found.count(lines) for lines, _ in trees])
    assert counts.sum() == len(points)
    rare = len(points) * p < 5  # counted together
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = len(points) * np.append(p[~rare], p[rare].sum())
    return ((counts - expected) ** 2 / np.maximum(expected, 1)).sum()


@pytest.mark.statistical
def test_trees_and_roots_have_their_posterior_probabilities():
    model, n = build(equivalent_sample_size=2.0), 3000
    trees, p = posterior(frame())
    step = stepper(model)
    points = drawn(step, model, n)
    # Degrees of freedom: 15; above 44 with probability 1e-4.
    assert chi_squared(points, trees, p) < 44
    roots = [int(np.argmin(point["dag"][:, FEATURES].sum(axis=0))) for point in points]
    share = np.bincount(roots, minlength=4) / n
    np.testing.assert_allclose(share, 0.25, atol=4 * np.sqrt(0.25 * 0.75 / n))
    # A step with half of the evidence is wrong, and this is noticed.
    step.trees = SpanningTrees(step.trees.log_weights / 2)
    assert chi_squared(drawn(step, model, n), trees, p) > 100


@pytest.mark.statistical
@pytest.mark.parametrize("score", ["fcll", "mdl"])
def test_trees_by_another_score_have_weights_in_proportion_to_its_exponential(score):
    model = build(score=score)
    trees, _ = posterior(frame())
    own = ClassifierScore(frame().to_numpy(), [3, 3, 2, 2, 3], 2, score)
    logs = np.array([own.total(dag) for _, dag in trees])
    p = np.exp(logs - logs.max())
    points = drawn(stepper(model), model, 3000)
    assert chi_squared(points, trees, p / p.sum()) < 44


def log_dirichlet(table, dag, codes, weight):
    """Log density of tables given the structure and the rows, from counts."""
    states, out = np.array([3, 3, 2, 2, 3]), 0.0
    for i, k in enumerate(states):
        place, q = np.zeros(len(codes), int), 1
        for j in np.flatnonzero(dag[:, i]):
            place, q = place + q * codes[:, j], q * states[j]
        alpha = np.bincount(place * k + codes[:, i], minlength=q * k).reshape(q, k)
        alpha = alpha + (weight / (q * k) if weight > 1 else weight)
        p = table[i, : q * k].reshape(q, k)
        out += gammaln(alpha.sum(axis=1)).sum() - gammaln(alpha).sum()
        out += ((alpha - 1) * np.log(p)).sum()
    return out


@pytest.mark.parametrize(
    ("options", "weight"), [({"equivalent_sample_size": 2.0}, 2.0), ({"score": "fcll"}, 0.5)]
)
def test_the_density_of_the_model_is_that_of_the_draws(options, weight):
    """It differs from that of trees and tables given trees by a constant."""
    model, codes = build(**options), frame().to_numpy()
    step = stepper(model, 1)
    logp = model.compile_logp(mode="FAST_COMPILE")
    point, gaps = model.initial_point(), []
    for _ in range(6):
        point, [stats] = step.step(point)
        given = log_dirichlet(point["table"], point["dag"], codes, weight)
        gaps.append(float(logp(point)) - stats["log_score"] - given)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-7)


def test_tables_of_a_fixed_structure_are_dirichlet():
    model, codes = build(structure="naive"), frame().to_numpy()
    step = stepper(model)
    tables = np.array([point["table"] for point in drawn(step, model, 2000)])
    counts = np.zeros((2, 3))
    np.add.at(counts, (codes[:, 2], codes[:, 0]), 1)
    alpha = counts + 0.5
    mean = alpha / alpha.sum(axis=1, keepdims=True)
    spread = np.sqrt(mean * (1 - mean) / (alpha.sum(axis=1, keepdims=True) + 1))
    found = tables[:, 0, :6].reshape(-1, 2, 3)
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - mean), 5 * spread / np.sqrt(2000))
    np.testing.assert_allclose(found.std(axis=0), spread, rtol=0.1)
    assert [rv.name for rv in model.free_RVs] == ["table"]


@pytest.mark.statistical
def test_prior_draws_are_even_and_the_density_says_so():
    draws = pm.draw(AugmentedTree.dist(4, 1), 1800, random_seed=1)
    keys = [draw.tobytes() for draw in draws]
    counts = np.array([keys.count(key) for key in {*keys}])
    assert len(counts) == 9  # rooted trees over three features
    # Degrees of freedom: 8; above 31.8 with probability 1e-4.
    assert ((counts - 200) ** 2 / 200).sum() < 31.8
    value = pm.logp(AugmentedTree.dist(4, 1), draws[0]).eval(mode="FAST_COMPILE")
    np.testing.assert_allclose(value, -np.log(9))


def test_what_is_no_augmented_tree_has_density_zero():
    good = pm.draw(AugmentedTree.dist(4, 1), random_seed=1)
    logp = pm.logp(AugmentedTree.dist(4, 1), np.zeros((4, 4), np.int8)).eval(mode="FAST_COMPILE")
    assert logp == -np.inf
    for i, j in itertools.permutations(range(4), 2):
        other = good.copy()
        other[i, j] = 1 - other[i, j]
        graph = nx.from_numpy_array(other, create_using=nx.DiGraph)
        value = pm.logp(AugmentedTree.dist(4, 1), other).eval(mode="FAST_COMPILE")
        assert value == -np.inf, graph.edges


def network(tables=bs.distributions.ProbabilityTables, observed=True, **options):
    codes = frame().to_numpy()
    dag = bs.distributions.AugmentedTree("dag", 5, 2)
    own = {"states": (3, 3, 2, 2, 3)}
    table = tables("table", dag, 1.0, **own, cells=18)
    bs.distributions.DiscreteNetwork("x", dag, table, **own, observed=codes, **options)
    return dag, table


def test_models_of_another_form_are_refused():
    with pm.Model() as model:
        network(bs.distributions.EvenTables)
    with pytest.raises(ValueError, match="the density of a tree depends on its root"):
        stepper(model)
    with pm.Model() as model:
        dag, _ = network()
        pm.Potential("more", 0.5 * dag.sum())
    with pytest.raises(ValueError, match="'more' depends on 'dag', and is no arc_sum"):
        stepper(model)
    with pm.Model() as model:
        _, table = network()
        pm.Normal("y", table[0, 0], 1.0, observed=0.0)
    with pytest.raises(ValueError, match="not one DiscreteNetwork depends on 'table'"):
        stepper(model)


def test_a_weight_of_arcs_is_added_to_the_posterior():
    weights = np.zeros((5, 5))
    weights[0, 3] = weights[3, 0] = 50.0
    with pm.Model() as model:
        dag, _ = network()
        pm.Potential("known", arc_sum(dag, weights))
    step = stepper(model)
    assert step.trees.probabilities[0, 2] > 0.999  # of the first and the third feature
    assert stepper(build()).trees.probabilities[0, 2] < 0.9


@pytest.mark.parametrize("score", ["bdeu", "fcll"])
def test_the_mode_is_the_best_tree_with_mean_tables(score):
    model = build(score=score)
    mode = bs.find_MAP(model=model)
    solved = bs.solvers.network_classifier(frame(), "class", score=score)
    np.testing.assert_array_equal(mode["dag"], solved.dag)
    if score == "fcll":  # with the same prior of the tables
        np.testing.assert_allclose(mode["table"][:, : solved.tables.shape[1]], solved.tables)


def test_the_mode_of_a_fixed_structure_is_its_mean_tables():
    mode = bs.find_MAP(model=build(structure="naive"))
    solved = bs.solvers.network_classifier(frame(), "class", structure="naive")
    np.testing.assert_allclose(mode["table"], solved.tables)
