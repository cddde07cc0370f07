"""The default maximum number of features is ample: runs on small tables do not stop."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats

import bayesstruct as bs

from bayesstruct.features.model_parts.process import choose_max_features
from bayesstruct.features.priors.indian_buffet import default_max_features


@pytest.mark.parametrize("n", [3, 100])
def test_a_draw_of_the_prior_has_more_features_with_probability_1e_8(n):
    """Poisson given alpha; with a gamma distribution of alpha a negative binomial variable."""
    mean = (1 / np.arange(1, n + 1)).sum()
    for number in (choose_max_features(n, None, 6.0), default_max_features(n, 6.0)):
        assert stats.poisson.sf(number, 6 * mean) <= 1e-8 < stats.poisson.sf(number - 1, 6 * mean)
    prior = stats.nbinom(2.0, 2 / (2 + mean))
    number = choose_max_features(n, None, None)
    assert prior.sf(number) <= 1e-8 < prior.sf(number - 1)


def test_there_is_room_for_twenty_and_for_two_aspects_of_each_option():
    assert choose_max_features(3, None, 0.9) == default_max_features(3, 0.9) == 20
    assert choose_max_features(3, 4, 0.9) == 4
    wins = np.ones((30, 30), int)
    model = bs.models.elimination_by_aspects(wins, alpha=0.5)
    assert model["feature"].owner.op.matrix[1] == 60


def _latent(rng):
    x = rng.poisson(0.5, (4, 2)) @ rng.normal(size=(2, 3)) + 0.5 * rng.normal(size=(4, 3))
    return bs.models.latent_features(pd.DataFrame(x), alpha=1.0)


def _clustering(rng):
    upper = np.triu(rng.uniform(0, 9, (3, 3)), 1)
    return bs.models.additive_clustering(upper + upper.T, alpha=0.9)


def _aspects(rng):
    return bs.models.elimination_by_aspects(rng.poisson(2, (3, 3)) + 1, alpha=1.2)


def _causes(rng):
    table = pd.DataFrame(rng.integers(0, 2, (12, 3)), columns=list("abc"))
    table.iloc[0], table.iloc[1] = 0, 1
    return bs.models.hidden_causes(table)


@pytest.mark.calibration
@pytest.mark.parametrize("make", [_latent, _clustering, _aspects, _causes])
def test_runs_on_small_tables_do_not_stop(make, full):
    """Runs of 10,000 draws each; an error about too many features ends the test."""
    rng = np.random.default_rng(1)
    for seed in range(5 if full else 1):
        with make(rng):
            idata = pm.sample(
                10_000 if full else 1_000,
                tune=200,
                chains=1,
                random_seed=seed,
                progressbar=False,
                compute_convergence_checks=False,
            )
        used = idata["posterior"]["feature"].any("observation" if make is not _causes else "node")
        # Ample means that draws do not even come near the maximum.
        assert used.sum("latent").max() <= 0.9 * used.sizes["latent"]
