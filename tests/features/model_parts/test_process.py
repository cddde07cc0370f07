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


def _links(rng):
    upper = np.triu(rng.random((8, 8)) < 0.4, 1)
    upper[0, 1:3] = True, False
    return bs.models.link_prediction(upper | upper.T)


def _complexes(rng):
    upper = np.triu(rng.random((8, 8)) < 0.4, 1)
    upper[0, 1:3] = True, False
    return bs.models.protein_complexes(upper | upper.T)


def _ratings(rng):
    return bs.models.binary_matrix_factorization(rng.normal(size=(8, 4)))


def _factors(rng):
    return bs.models.sparse_factor_analysis(rng.normal(size=(12, 3)))


def _components(rng):
    return bs.models.infinite_ica(rng.normal(size=(12, 3)))


def _series(rng):
    return bs.models.markov_transitions([rng.normal(size=(20, 2)) for _ in range(4)])


MAKERS = {
    "latent_features": _latent,
    "latent_features, N(0, 1)": lambda rng: bs.models.latent_features(rng.normal(size=(12, 3))),
    "additive_clustering": _clustering,
    "elimination_by_aspects": _aspects,
    "hidden_causes": _causes,
    "link_prediction": _links,
    "protein_complexes": _complexes,
    "binary_matrix_factorization": _ratings,
    "sparse_factor_analysis": _factors,
    "infinite_ica": _components,
    "markov_transitions": _series,
}


def most_used(model, draws, seed):
    """Largest number of features in use in a run, and the maximum, for each set of features of a model."""
    with model:
        idata = pm.sample(
            draws,
            tune=200,
            chains=1,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
    for name, draws_of in idata["posterior"].items():
        dims = model.named_vars_to_dims.get(name, ())
        if hasattr(model[name].owner.op, "matrix") and model[name].owner.op.matrix[1] == len(
            idata["posterior"][dims[1]]
        ):
            used = draws_of.any(dims[0]).sum(dims[1])
            yield name, int(used.max()), draws_of.sizes[dims[1]]


@pytest.mark.slow
@pytest.mark.calibration
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_runs_on_small_tables_do_not_stop(make, full):
    """Runs of 10,000 draws each; an error about too many features ends the test."""
    rng = np.random.default_rng(1)
    for seed in range(5 if full else 1):
        found = [*most_used(make(rng), 10_000 if full else 500, seed)]
        assert found
        for _, used, room in found:
            assert used <= 0.9 * room  # ample: draws do not even come near the maximum


@pytest.mark.chain
def test_a_run_that_stops_says_how_to_keep_its_draws():
    rng = np.random.default_rng(2)
    table = rng.integers(0, 2, (9, 3)) @ (5.0 * rng.normal(size=(3, 4))) + 0.1 * rng.normal(
        size=(9, 4)
    )
    models = [
        bs.models.latent_features(table, max_features=1, noise=0.1),
        bs.models.link_prediction(
            np.kron(np.eye(4), np.ones((3, 3))) - np.eye(12), alpha=3.0, max_features=1
        ),
    ]
    for model in models:
        with (
            model,
            pytest.raises(
                (ValueError, RuntimeError), match=r"bs\.sample\(checkpoint.*bs\.load_checkpoint"
            ),
        ):
            pm.sample(200, tune=0, chains=1, random_seed=1, progressbar=False)
