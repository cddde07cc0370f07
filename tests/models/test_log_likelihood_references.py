"""Log likelihoods of series and of choices against plain NumPy; the references use no code of the package."""

import itertools

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from scipy import stats

import bayesstruct as bs


def log_likelihoods(model, name, draws=40):
    """Draws from the prior as if they were a posterior, and the log likelihood of the table at each."""
    with model:
        prior = pm.sample_prior_predictive(draws, random_seed=1)["prior"].to_dataset()
        idata = xr.DataTree.from_dict({"posterior": prior})
        found = pm.compute_log_likelihood(idata, progressbar=False, extend_inferencedata=False)
    return prior.isel(chain=0), found[name].values[0]


# --- series -----------------------------------------------------------------------------------

LENGTHS = {"a": 6, "b": 1, "c": 4}


def series():
    rng = np.random.default_rng(2)
    n = sum(LENGTHS.values())
    x = pd.DataFrame(rng.normal(size=(n, 2)) * [0.2, 30.0] + [100.0, -5.0], columns=["x", "y"])
    x.iloc[2, 0] = x.iloc[8, 1] = np.nan
    x.iloc[4] = np.nan  # a gap of one step of time
    return x.assign(who=np.repeat(list(LENGTHS), list(LENGTHS.values())))


def next_row_densities(rows, own, transition, mean, scale):
    """Log density of each row given those before it: a filter of the states, from a uniform first one."""
    chance, out = np.full(len(own), 1 / len(own)), []
    for row in rows:
        cells = stats.norm.pdf(row, mean[own], scale[own])
        joint = chance * np.where(np.isnan(cells), 1.0, cells).prod(axis=1)
        out.append(np.log(joint.sum()))
        chance = joint / joint.sum() @ transition[np.ix_(own, own)]
    return out


def all_paths_density(rows, own, transition, mean, scale):
    """Log density of a series: the sum over all sequences of states."""
    total = 0.0
    for path in itertools.product(own, repeat=len(rows)):
        p = 1 / len(own)
        for a, b in itertools.pairwise(path):
            p *= transition[a, b]
        cells = stats.norm.pdf(rows, mean[list(path)], scale[list(path)])
        total += p * np.where(np.isnan(cells), 1.0, cells).prod()
    return np.log(total)


@pytest.mark.chain
def test_log_likelihood_of_series():
    table = series()
    model = bs.models.markov_transitions(table, series="who", alpha=2.0, max_features=30)
    prior, found = log_likelihoods(model, "x")
    x = table[["x", "y"]]
    z = ((x - x.mean()) / x.std()).to_numpy()
    ends, compared = np.cumsum([0, *LENGTHS.values()]), 0
    for d in range(prior.sizes["draw"]):
        one = prior.isel(draw=d)
        parts = one["emission_mean"].values, one["emission_scale"].values
        for i, (a, b) in enumerate(itertools.pairwise(ends)):
            own = np.flatnonzero(one["feature"].values[i])
            if len(own) == 0:
                continue
            given = own, one["transition"].values[i], *parts
            wanted = next_row_densities(z[a:b], *given)
            np.testing.assert_allclose(found[d, a:b], wanted, rtol=1e-10, atol=1e-10)
            if len(own) < 4:
                whole = all_paths_density(z[a:b], *given)
                np.testing.assert_allclose(found[d, a:b].sum(), whole, rtol=1e-10)
            compared += len(own) > 1
    assert compared > 20


# --- choices ----------------------------------------------------------------------------------

WINS = np.array([[0, 5, 1, 0], [2, 0, 3, 2], [4, 1, 0, 7], [0, 0, 0, 0]], float)


@pytest.mark.chain
@pytest.mark.parametrize("lapse", [0.01, 0.1])
def test_log_likelihood_of_choices(lapse):
    model = bs.models.elimination_by_aspects(WINS, alpha=1.5, lapse=lapse)
    prior, found = log_likelihoods(model, "y")
    pairs = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]  # 0 and 3 were never compared
    assert [str(label) for label in prior["pair"].values] == [f"x{i} -> x{j}" for i, j in pairs]
    assert (prior["feature"].sum(("observation", "latent")) > 0).mean() > 0.5
    for d in range(prior.sizes["draw"]):
        z, w = (prior[name].values[d] for name in ("feature", "interaction"))
        for k, (i, j) in enumerate(pairs):
            one = sum(w[a] for a in range(len(w)) if z[i, a] == 1 and z[j, a] == 0)
            two = sum(w[a] for a in range(len(w)) if z[j, a] == 1 and z[i, a] == 0)
            share = one / (one + two) if one + two > 0 else 0.5
            p = (1 - lapse) * share + lapse / 2
            wanted = stats.binom.logpmf(WINS[i, j], WINS[i, j] + WINS[j, i], p)
            assert found[d, k] == pytest.approx(wanted, rel=1e-10, abs=1e-10)
            assert prior["probability"].values[d, k] == pytest.approx(p, abs=1e-12)
