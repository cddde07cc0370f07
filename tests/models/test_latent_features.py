"""The model of latent features from table to predictions."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from tools.buffets import two_features

from bayesstruct.data import TableError
from bayesstruct.models.latent_features import latent_features
from bayesstruct.steps import LatentFeatureGibbs


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 0}, "`alpha`"),
        ({"alpha": pm.Gamma.dist(1, 1, shape=2)}, "`alpha` .* one distribution"),
        ({"noise": pm.math.exp(pm.Normal.dist())}, "`noise` .* one distribution"),
        ({"noise": "1"}, "`noise`"),
        ({"loading_scale": -1.0}, "`loading_scale`"),
        ({"discount": 1.0}, "`discount`"),
        ({"concentration": -0.1}, "`concentration`"),
        ({"sampler": "metropolis"}, "`sampler`"),
        ({"sampler": "slice", "discount": 0.5}, "`discount` below 0.5"),
        ({"max_features": 2.5}, "`max_features`"),
        ({"baseline": [1.0, 2.0]}, "each of the 5 columns"),
    ],
)
def test_options_of_the_model_out_of_range_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        latent_features(two_features()[0], **options)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (np.full(60, 2.0), "constant"),
        (np.full(60, np.nan), "missing|observed"),
        (["a"] * 60, "text"),
    ],
)
def test_columns_that_say_nothing_are_refused_by_name(column, words):
    frame = pd.DataFrame(two_features()[0], columns=list("abcde")).assign(b=column)
    with pytest.raises(TableError, match=f"(?s)'b'.*({words})"):
        latent_features(frame)


def test_the_maximum_number_follows_the_prior_of_alpha():
    """The default prior given by hand gives the maximum number of the default, up to simulation."""
    table = two_features()[0]
    own, given = (
        len(latent_features(table, alpha=alpha).coords["latent"])
        for alpha in (None, pm.Gamma.dist(1, 1))
    )
    assert given == pytest.approx(own, rel=0.1)
    assert len(latent_features(table, alpha=pm.Uniform.dist(0, 0.1)).coords["latent"]) < own / 3


@pytest.mark.parametrize("unit", [1e300, 1e-300])
def test_numbers_whose_squares_are_none_are_refused(unit):
    with pytest.raises(TableError, match="other units"):
        latent_features(unit * two_features()[0])


def test_one_row_is_refused():
    with pytest.raises(TableError, match="row"):
        latent_features(two_features()[0][:1])


def test_rows_without_a_cell_are_refused():
    x = two_features()[0]
    x[7] = np.nan
    with pytest.raises(TableError, match="7"):
        latent_features(x)


@pytest.mark.chain
@pytest.mark.compiled
def test_the_model_samples_predicts_and_has_pointwise_densities():
    x, _ = two_features()
    with latent_features(x, max_features=8) as model:
        idata = pm.sample(
            150,
            tune=100,
            chains=2,
            cores=1,
            random_seed=8,
            progressbar=False,
            compute_convergence_checks=False,
        )
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(
            idata, extend_inferencedata=True, random_seed=9, progressbar=False
        )
    posterior = idata["posterior"]
    assert posterior["feature"].dims == ("chain", "draw", "observation", "latent")
    number = posterior["n_features"].values
    assert np.bincount(number.ravel()).argmax() == 2
    assert abs(posterior["noise"].values.mean() - 0.3) < 0.05
    assert idata["log_likelihood"]["x"].shape == (2, 150, 60, 5)
    replicated = idata["posterior_predictive"]["x"].values.mean(axis=(0, 1))
    assert np.sqrt(((replicated - x) ** 2).mean()) < 0.4
    assert model.named_vars.keys() >= {"alpha", "noise", "loading_scale", "loading"}


@pytest.mark.chain
def test_missing_values_are_drawn_and_the_table_is_predicted():
    x, _ = two_features()
    gaps = np.array(x)
    gaps[np.random.default_rng(1).random(x.shape) < 0.08] = np.nan
    missing = np.isnan(gaps)
    with latent_features(gaps, alpha=1.0, noise=0.3, loading_scale=2.0, max_features=8):
        idata = pm.sample(
            100,
            tune=20,
            chains=1,
            random_seed=2,
            progressbar=False,
            compute_convergence_checks=False,
        )
        pm.sample_posterior_predictive(
            idata, extend_inferencedata=True, random_seed=3, progressbar=False
        )
    drawn = idata["posterior"]["x"].values[0]
    assert np.allclose(drawn[:, ~missing], gaps[~missing])
    # Cells have the noise's deviation of .3 around means that are known to about .1, but where a row lacks
    # the cells that tell its features apart.
    assert np.median(abs(drawn[:, missing].mean(axis=0) - x[missing])) < 0.4
    assert (drawn[:, missing].std(axis=0) > 0.2).all()
    replicated = idata["posterior_predictive"]["x"].values[0]
    assert abs((replicated - x)[:, ~missing].std() - 0.3 * np.sqrt(2)) < 0.1


def test_rows_of_zeros_begin_without_features():
    x, _ = two_features()
    x[[5, 20]] = 0.0
    with latent_features(x, alpha=1.0, noise=0.3, loading_scale=2.0, max_features=8) as model:
        step = LatentFeatureGibbs(model.free_RVs, rng=np.random.default_rng(5))
    step.setup_chain(np.random.default_rng(5), 20, 20)
    point, _ = step.step(model.initial_point())
    assert not point["feature"][[5, 20]].any() and point["feature"].mean() > 0.1


@pytest.mark.chain
def test_too_little_room_is_an_error_that_names_the_option():
    x, _ = two_features()
    known = {"alpha": 1.0, "noise": 0.3, "loading_scale": 2.0}
    with (
        latent_features(x, max_features=1, **known),
        pytest.raises(ValueError, match="`max_features`"),
    ):
        pm.sample(40, tune=20, chains=1, random_seed=4, progressbar=False)


def test_by_default_there_is_room_for_what_the_prior_may_draw():
    x = np.random.default_rng(0).normal(size=(100, 4))
    columns = latent_features(x)["feature"].owner.op.matrix[1]
    # Given alpha the number is Poisson with mean alpha H; with alpha ~ Gamma(1, 1) it is geometric.
    mean = (1 / np.arange(1, 101)).sum()
    assert (mean / (1 + mean)) ** (columns + 1) <= 1e-8 < (mean / (1 + mean)) ** columns
    assert latent_features(x, max_features=7)["feature"].owner.op.matrix[1] == 7
