"""The step of incomplete Bayesian networks against sums and integrals over the missing values."""

import itertools

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from tools.batches import batch_means

import bayesstruct as bs

from bayesstruct.models import bayesian_network
from bayesstruct.networks.kernels import missing_values
from bayesstruct.networks.kernels.dags import all_dags, topological_orders
from bayesstruct.networks.kernels.scores.discrete import BDeu
from bayesstruct.networks.kernels.scores.gaussian import BGe
from bayesstruct.steps import IncompleteNetworkMCMC

SET = pd.DataFrame({"c": np.arange(14) < 4})


def chain(model, draws, **options):
    with model:
        step = IncompleteNetworkMCMC(model.value_vars, **options)
    step.setup_chain(np.random.default_rng(3), 0, draws)
    point, kept = model.initial_point(), []
    for _ in range(draws + 20):
        point, _ = step.step(point)
        kept.append(point)
    return kept[20:]


def numbers():
    rng = np.random.default_rng(1)
    a = rng.normal(size=14)
    b = a + 0.6 * rng.normal(size=14)
    x = np.column_stack([a, b, b + rng.normal(size=14)])
    x[5, 1] = x[5, 2] = np.nan  # one row, so that they are drawn together
    return pd.DataFrame(3.0 * x + 5.0, columns=list("abc"))


def states():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 2, 14)
    b = np.where(rng.random(14) < 0.9, a, 1 - a)
    x = np.column_stack([a, b, rng.integers(0, 2, 14)]).astype(float)
    x[6, 1] = x[6, 2] = x[9, 0] = x[11, 1] = np.nan
    return pd.DataFrame(x, columns=list("abc"))


GRAPHS = all_dags(3)


def log_weights(score, orders):
    """Log score of each graph, and of its orders if they count."""
    out = np.log(topological_orders(GRAPHS)) if orders else np.zeros(len(GRAPHS))
    for i in range(3):
        known = {}
        for g, graph in enumerate(GRAPHS):
            parents = tuple(np.flatnonzero(graph[:, i]))
            if parents not in known:
                known[parents] = score.local(i, parents)
            out[g] += known[parents]
    return out


def moments(graphs, values):
    """Compared statistics of each draw: arcs, missing values, and their products."""
    i, j = np.triu_indices(values.shape[1])
    return np.column_stack([graphs.reshape(len(graphs), 9), values, values[:, i] * values[:, j]])


def exact(completions, score_of, *, orders=False):
    """Means of `moments` over graphs and completions, by their weights."""
    logs = np.array([log_weights(score_of(values), orders) for values in completions])
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    values = np.array(completions, float)
    i, j = np.triu_indices(values.shape[1])
    both = np.column_stack([values, values[:, i] * values[:, j]])
    arcs = np.einsum("g,gij->ij", weight.sum(axis=0), GRAPHS)
    return np.concatenate([arcs.ravel(), weight.sum(axis=1) @ both])


def assert_same(points, wanted, standardize=lambda values: values):
    graphs = np.array([p["dag"] for p in points], float)
    values = standardize(np.array([p["x_missing"] for p in points]))
    values = moments(graphs, values)
    error = batch_means(values, 40).std(axis=0, ddof=1) / np.sqrt(40)
    z = (values.mean(axis=0) - wanted) / np.maximum(error, 2e-3)
    worst = np.abs(z).max()
    assert worst < 4.5, f"worst z {worst:.1f}"  # some 20 moments


@pytest.fixture(scope="module")
def normal():
    data = numbers()
    model = bayesian_network(data, interventions=SET)
    location, scale = data.mean().to_numpy(), data.std().to_numpy()
    z, free = ((data - location) / scale).to_numpy().copy(), np.zeros((14, 3), bool)
    free[:4, 2] = True

    def score_of(values):
        z[5, 1:] = values
        return BGe(z, interventions=free)

    # The trapezoidal rule is exact to many digits for steps below the deviation of a cell, some 0.7.
    grid = np.arange(-6.0, 6.1, 0.6)
    wanted = exact(list(itertools.product(grid, grid)), score_of)
    return model, wanted, lambda values: (values - location[1:]) / scale[1:]


@pytest.fixture(scope="module")
def discrete():
    data = states()
    model = bayesian_network(data, score="bdeu", interventions=SET)
    x, free, gaps = data.to_numpy().copy(), np.zeros((14, 3), bool), data.isna().to_numpy()
    free[:4, 2] = True

    def score_of(values):
        x[gaps] = values
        return BDeu(x.astype(int), states=(2, 2, 2), interventions=free)

    completions = list(itertools.product((0, 1), repeat=4))
    return model, *(exact(completions, score_of, orders=orders) for orders in (False, True))


@pytest.mark.statistical
def test_graphs_and_missing_numbers_have_their_joint_distribution(normal):
    model, wanted, standardize = normal
    assert_same(chain(model, 1000), wanted, standardize)


@pytest.mark.statistical
def test_tables_of_candidates_do_the_same(normal):
    model, wanted, standardize = normal
    assert_same(chain(model, 500, candidates=2), wanted, standardize)


@pytest.mark.statistical
def test_numbers_drawn_without_their_row_are_caught(normal, monkeypatch):
    model, wanted, standardize = normal

    def from_the_margin(rng, intercept, coefficients, variance, free, z, missing):
        z[missing] = rng.normal(size=missing.sum())

    monkeypatch.setattr(missing_values, "draw_missing_numbers", from_the_margin)
    with pytest.raises(AssertionError, match="worst z"):
        assert_same(chain(model, 300), wanted, standardize)


@pytest.mark.statistical
def test_graphs_and_missing_states_have_their_joint_distribution(discrete):
    model, wanted, _ = discrete
    assert_same(chain(model, 1000), wanted)


@pytest.mark.statistical
def test_the_prior_of_orders_counts_here_too(discrete):
    _, other, wanted = discrete
    model = bayesian_network(states(), score="bdeu", interventions=SET, prior="order")
    points = chain(model, 500, candidates=2)
    assert_same(points, wanted)
    with pytest.raises(AssertionError, match="worst z"):
        assert_same(points, other)


@pytest.mark.statistical
def test_states_drawn_from_their_parents_only_are_caught(discrete, monkeypatch):
    model, wanted, _ = discrete
    kernel = missing_values.draw_missing_states

    def without_children(rng, rows, columns, table, free, states, strides, tables):
        for row, column in zip(rows, columns, strict=True):
            alone = np.zeros_like(free)
            alone[row, column] = True
            at = np.array([row]), np.array([column])
            kernel(rng, *at, table, alone, states, strides, tables)

    monkeypatch.setattr(missing_values, "draw_missing_states", without_children)
    with pytest.raises(AssertionError, match="worst z"):
        assert_same(chain(model, 500), wanted)


def test_what_is_not_recognised_is_said(normal):
    with bayesian_network(numbers()) as model:
        pm.Normal("y", model["x_missing"].sum(), 1.0, observed=0.0)
    with model, pytest.raises(ValueError, match="'y' depends on"):
        IncompleteNetworkMCMC(model.value_vars)
    with normal[0] as model, pytest.raises(ValueError, match="must be drawn by one step"):
        IncompleteNetworkMCMC([model["dag"]])
    with normal[0] as model, pytest.raises(ValueError, match="'dag' cannot be drawn exactly"):
        bs.steps.NetworkMCMC([model[n] for n in ("dag", "weight", "intercept", "noise_variance")])
