"""Step of networks of columns of several kinds, against evidences by brute force."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from tools.enumeration import assert_matches_enumeration

from bayesstruct.models import bayesian_network
from bayesstruct.networks.kernels.dags import all_dags
from bayesstruct.networks.kernels.scores.mixed import FamilyFit
from bayesstruct.steps import MixedNetworkMCMC

FAMILIES, STATES, SCALE = ("cloglog", "laplace", "ordinal"), (2, 0, 3), 3.0
ROWS, PRIOR_DRAWS, BATCHES = 10, 80_000, 20


def table(seed=2):
    rng = np.random.default_rng(seed)
    number = rng.normal(size=ROWS)
    two = number + rng.normal(size=ROWS) > 0.3
    three = np.digitize(number + 0.5 * two + rng.normal(size=ROWS), [-0.4, 0.6])
    z = (number - number.mean()) / number.std(ddof=1)
    return np.column_stack([two, z, three]).astype(float)


def feature(x, j):
    """A column as a parent, from the words of its documentation."""
    if j == 0:
        return x[:, 0] - 0.5
    return x[:, 1] if j == 1 else (x[:, 2] - 1.0) / np.sqrt(2.0 / 3.0)


def likelihoods(x, child, parents, rng):
    """Likelihood of a column at draws from the prior of its parameters, written out."""
    eta = np.zeros((PRIOR_DRAWS, len(x)))
    noise = np.ones(PRIOR_DRAWS)
    if child == 1:
        noise = 1.0 / np.sqrt(rng.gamma((3 + len(parents)) / 2, 4.0, PRIOR_DRAWS))
    for j in parents:
        eta += (noise * rng.normal(0.0, SCALE, PRIOR_DRAWS))[:, None] * feature(x, j)
    if child == 2:
        cut = np.cumsum(rng.dirichlet(np.ones(3), PRIOR_DRAWS), axis=1)[:, :2]
        cut = np.log(cut / (1.0 - cut))
        below = 1.0 / (1.0 + np.exp(np.minimum(eta[..., None] - cut[:, None], 700.0)))
        shares = np.diff(below, axis=2, prepend=0.0, append=1.0)
        return np.take_along_axis(shares, x[:, 2].astype(int)[None, :, None], 2)[..., 0].prod(1)
    wide = 1.0 if child == 1 else 2.5
    eta += (noise * rng.normal(0.0, wide, PRIOR_DRAWS))[:, None]
    if child == 0:
        none = np.exp(-np.exp(np.minimum(eta, 300.0)))
        return np.where(x[:, 0] == 1, 1.0 - none, none).prod(axis=1)
    away = np.abs(x[:, 1] - eta) / noise[:, None]
    return np.exp(-np.sqrt(2.0) * away.sum(axis=1)) / (np.sqrt(2.0) * noise) ** len(x)


def evidences(x):
    """Evidence of each family in batches of draws: {(child, parents): (batches,)}."""
    out = {}
    for child in range(3):
        others = [j for j in range(3) if j != child]
        for parents in [(), others[:1], others[1:], others]:
            rng = np.random.default_rng([child, *parents])
            own = likelihoods(x, child, parents, rng).reshape(BATCHES, -1).mean(axis=1)
            out[child, tuple(parents)] = own
    return out


@cache
def graph_probabilities():
    x = table()
    graphs, found = all_dags(3), evidences(x)
    weight = np.ones((len(graphs), BATCHES + 1))
    for g, graph in enumerate(graphs):
        for child in range(3):
            own = found[child, tuple(np.flatnonzero(graph[:, child]).tolist())]
            weight[g] *= np.append(own, own.mean())
    p = weight / weight.sum(axis=0)
    return graphs, p[:, -1], p[:, :-1].std(axis=1, ddof=1) / np.sqrt(BATCHES)


def chain(draws, candidates=None):
    x = table()
    names = ["two", "number", "three"]
    frame = pd.DataFrame(x, columns=names)
    kinds = dict(zip(names, FAMILIES, strict=True))
    options = {"kinds": kinds, "coefficient_scale": SCALE}
    with bayesian_network(frame, score="mixed", **options) as model:
        step = MixedNetworkMCMC(model.value_vars, candidates=candidates)
    step.setup_chain(np.random.default_rng(1), 0, draws)
    point, kept = model.initial_point(), []
    for _ in range(draws):
        point, _ = step.step(point)
        kept.append(point["dag"].ravel())
    return np.array(kept)


@pytest.mark.statistical
@pytest.mark.parametrize("candidates", [None, 2], ids=["independent", "moves"])
def test_graphs_have_the_posterior_by_brute_force(candidates):
    graphs, probabilities, errors = graph_probabilities()
    draws = chain(2000, candidates)
    known = {"states": graphs.reshape(25, 9), "errors": errors}
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
