"""Step of networks of columns of several kinds, against evidences by brute force."""

from functools import cache
from itertools import combinations, pairwise, product

import numpy as np
import pandas as pd
import pytest

from scipy.special import softmax
from tools.enumeration import assert_matches_enumeration

from bayesstruct.models import bayesian_network
from bayesstruct.networks.kernels.dags import all_dags
from bayesstruct.networks.kernels.scores.mixed import FamilyFit
from bayesstruct.networks.steps import mixed
from bayesstruct.networks.steps.mixed_moves import GuidedMoves
from bayesstruct.steps import MixedNetworkMCMC

NAMES = ("two", "number", "three", "colour")
FAMILIES, SCALE = ("cloglog", "laplace", "ordinal", "multinomial"), 3.0
ROWS, PRIOR_DRAWS, BATCHES = 10, 80_000, 20
#: Two coefficients whose difference has the deviation of each.
PAIR = np.linalg.cholesky(np.array([[1.0, 0.5], [0.5, 1.0]]))


def table(d=3, seed=2):
    rng = np.random.default_rng(seed)
    number = rng.normal(size=ROWS)
    two = number + rng.normal(size=ROWS) > 0.3
    three = np.digitize(number + 0.5 * two + rng.normal(size=ROWS), [-0.4, 0.6])
    colour = (np.digitize(number + rng.normal(size=ROWS), [-0.5, 0.4]) + 1) % 3
    z = (number - number.mean()) / number.std(ddof=1)
    return np.column_stack([two, z, three, colour]).astype(float)[:, :d]


def part(x, j, rng):
    """Draws of what a parent adds to a linear predictor, from the words of its documentation, (draws, n)."""
    z = rng.normal(0.0, SCALE, (PRIOR_DRAWS, 2))
    if j == 3:
        return (z @ PAIR.T) @ np.array([(x[:, 3] == 1) - 1 / 3, (x[:, 3] == 2) - 1 / 3])
    centre, unit = {0: (0.5, 1.0), 1: (0.0, 1.0), 2: (1.0, np.sqrt(2.0 / 3.0))}[j]
    return z[:, :1] * ((x[:, j] - centre) / unit)


def likelihoods(x, child, parents, rng):
    """Likelihood of a column at draws from the prior of its parameters, written out."""
    noise, wide = np.ones((PRIOR_DRAWS, 1)), 2.5
    if child == 1:
        q = sum(2 if j == 3 else 1 for j in parents)
        noise, wide = 1.0 / np.sqrt(rng.gamma((3 + q) / 2, 4.0, (PRIOR_DRAWS, 1))), 1.0

    def predictor():
        own = 0.0 if child == 2 else rng.normal(0.0, wide, (PRIOR_DRAWS, 1))
        return noise * (own + sum(part(x, j, rng) for j in parents)) + np.zeros(len(x))

    eta = predictor()
    if child == 0:
        none = np.exp(-np.exp(np.minimum(eta, 300.0)))
        return np.where(x[:, 0] == 1, 1.0 - none, none).prod(axis=1)
    if child == 1:
        away = np.abs(x[:, 1] - eta) / noise
        return np.exp(-np.sqrt(2.0) * away.sum(axis=1)) / (np.sqrt(2.0) * noise[:, 0]) ** len(x)
    if child == 2:
        cut = np.cumsum(rng.dirichlet(np.ones(3), PRIOR_DRAWS), axis=1)[:, :2]
        cut = np.log(cut / (1.0 - cut))
        below = 1.0 / (1.0 + np.exp(np.minimum(eta[..., None] - cut[:, None], 700.0)))
        shares = np.diff(below, axis=2, prepend=0.0, append=1.0)
    else:
        other = 0.5 * eta + np.sqrt(0.75) * predictor()
        shares = softmax(np.stack([np.zeros_like(eta), eta, other], axis=2), axis=2)
    state = x[:, child].astype(int)[None, :, None]
    return np.take_along_axis(shares, state, 2)[..., 0].prod(axis=1)


def evidences(x):
    """Evidence of each family in batches of draws: {(child, parents): (batches,)}."""
    out, d = {}, x.shape[1]
    for child in range(d):
        others = [j for j in range(d) if j != child]
        for k in range(d):
            for parents in combinations(others, k):
                rng = np.random.default_rng([child, *parents])
                own = likelihoods(x, child, parents, rng).reshape(BATCHES, -1).mean(axis=1)
                out[child, parents] = own
    return out


def graph_weights(x):
    """Evidence of each graph, the last column, and its batches."""
    d = x.shape[1]
    graphs, found = all_dags(d), evidences(x)
    weight = np.ones((len(graphs), BATCHES + 1))
    for g, graph in enumerate(graphs):
        for child in range(d):
            own = found[child, tuple(np.flatnonzero(graph[:, child]).tolist())]
            weight[g] *= np.append(own, own.mean())
    return weight


def normalised(weight):
    """Probabilities from weights and their batches, and standard errors."""
    p = weight / weight.sum(axis=0)
    return p[:, -1], p[:, :-1].std(axis=1, ddof=1) / np.sqrt(BATCHES)


@cache
def graph_probabilities(d=3):
    return all_dags(d), *normalised(graph_weights(table(d)))


def chain(draws, candidates=None, d=3, gaps=()):
    """Graphs of a chain, and missing values."""
    names = NAMES[:d]
    values = table(d)
    for place in gaps:
        values[place] = np.nan
    frame = pd.DataFrame(values, columns=names)
    kinds = dict(zip(names, FAMILIES, strict=False))
    options = {"kinds": kinds, "coefficient_scale": SCALE}
    with bayesian_network(frame, score="mixed", **options) as model:
        step = MixedNetworkMCMC(model.value_vars, candidates=candidates)
    step.setup_chain(np.random.default_rng(1), 0, draws)
    point, kept = model.initial_point(), []
    for _ in range(draws):
        point, _ = step.step(point)
        kept.append([*point["dag"].ravel(), *point.get("x_missing", ())])
    return np.array(kept)


@pytest.mark.statistical
@pytest.mark.parametrize("candidates", [None, 2], ids=["independent", "moves"])
def test_graphs_have_the_posterior_by_brute_force(candidates):
    graphs, probabilities, errors = graph_probabilities()
    draws = chain(2000, candidates)
    known = {"states": graphs.reshape(25, 9), "errors": errors}
    assert_matches_enumeration(draws, probabilities, **known)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("candidates", [None, 3], ids=["independent", "moves"])
def test_graphs_over_four_columns_have_the_posterior_by_brute_force(candidates):
    graphs, probabilities, errors = graph_probabilities(4)
    draws = chain(6000, candidates, 4)
    known = {"states": graphs.reshape(543, 16), "errors": errors}
    assert_matches_enumeration(draws, probabilities, **known)


@pytest.mark.statistical
def test_the_laplace_approximation_alone_is_noticed(monkeypatch):
    graphs, probabilities, errors = graph_probabilities()
    monkeypatch.setattr(FamilyFit, "log_weight", lambda self, theta: 0.0)
    draws = chain(3000)
    with pytest.raises(AssertionError):
        assert_matches_enumeration(
            draws, probabilities, states=graphs.reshape(25, 9), errors=errors
        )


#: Missing values of two columns of states, three of them in two rows.
GAPS = ((0, 0), (0, 2), (4, 2))


@cache
def joint_probabilities():
    """Graphs and missing states: joint states, their probabilities and standard errors."""
    x, states, weights = table(), [], []
    graphs = all_dags(3).reshape(25, 9)
    for own in product(range(2), range(3), range(3)):
        for place, value in zip(GAPS, own, strict=True):
            x[place] = value
        states.append(np.column_stack([graphs, np.tile(own, (25, 1))]))
        weights.append(graph_weights(x))
    return np.concatenate(states).astype(int), *normalised(np.concatenate(weights))


@pytest.mark.statistical
@pytest.mark.parametrize("moves", ["independent", "guided"])
def test_missing_states_and_graphs_have_their_joint_posterior(moves, monkeypatch):
    if moves == "guided":
        monkeypatch.setattr(mixed, "_INDEPENDENT_GAPS", 0)
    states, probabilities, errors = joint_probabilities()
    draws = chain(3000, gaps=GAPS).astype(int)
    assert_matches_enumeration(draws, probabilities, states=states, errors=errors)


@pytest.mark.statistical
def test_graphs_that_are_drawn_whatever_their_evidence_are_noticed(monkeypatch):
    states, probabilities, errors = joint_probabilities()
    monkeypatch.setattr(mixed, "_INDEPENDENT_GAPS", 0)
    monkeypatch.setattr(GuidedMoves, "_log", lambda self, i, parents: 0.0)
    draws = chain(1000, gaps=GAPS).astype(int)
    with pytest.raises(AssertionError):
        assert_matches_enumeration(draws, probabilities, states=states, errors=errors)


BINS = np.array([-1.0, 0.0, 1.0])


@cache
def number_probabilities():
    """Graphs over two columns, and the interval of a missing number: integrals by the trapezoidal rule."""
    x = table(3)
    seen = np.delete(x[:, 1], 3)
    x[:, 1] = (x[:, 1] - seen.mean()) / seen.std(ddof=1)
    edges = np.concatenate([[-6.0], BINS, [6.0]])
    states, weights = [], []
    graphs = all_dags(2).reshape(3, 4)
    for k, (low, high) in enumerate(pairwise(edges)):
        z = np.linspace(low, high, 17)
        values = []
        for own in z:
            x[3, 1] = own
            values.append(graph_weights(x[:, :2]))
        weights.append(np.trapezoid(values, z, axis=0))
        states.append(np.column_stack([graphs, np.full(3, k)]))
    return np.concatenate(states), *normalised(np.concatenate(weights))


def with_intervals(draws):
    """Draws with the interval of the missing number, in standard deviations of the observed ones."""
    seen = np.delete(table(2)[:, 1], 3)
    z = (draws[:, 4] - seen.mean()) / seen.std(ddof=1)
    return np.column_stack([draws[:, :4], np.digitize(z, BINS)]).astype(int)


@pytest.mark.statistical
def test_a_missing_number_and_graphs_have_their_joint_posterior():
    states, probabilities, errors = number_probabilities()
    draws = with_intervals(chain(2000, d=2, gaps=[(3, 1)]))
    assert_matches_enumeration(draws, probabilities, states=states, errors=errors)
