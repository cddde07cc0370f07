"""What docstrings say of scales, priors and pointwise log likelihoods, against NumPy and SciPy."""

import itertools

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats

import bayesstruct as bs

X = np.random.default_rng(0).normal([5.0, 50.0, -200.0], [1.0, 10.0, 100.0], (9, 3))
TABLE = pd.DataFrame(X, columns=list("abc"))
UNBIASED = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


@pytest.mark.parametrize(
    "name", ["gaussian_graphical", "gaussian_neighbourhoods", "bayesian_network"]
)
def test_columns_are_standardised_with_divisor_n_less_1(name):
    model = getattr(bs.models, name)(TABLE)
    np.testing.assert_allclose(model["location"].eval(), X.mean(axis=0))
    np.testing.assert_allclose(model["scale"].eval(), X.std(axis=0, ddof=1))


@pytest.mark.parametrize("name", ["sparse_factor_analysis", "infinite_ica"])
def test_tables_of_factor_models_are_standardised_with_divisor_n_less_1(name):
    model = getattr(bs.models, name)(TABLE)
    np.testing.assert_allclose(_observed(model, "x"), UNBIASED)


def test_series_are_standardised_over_all_rows_of_all_series():
    model = bs.models.markov_transitions([TABLE[:4], TABLE[4:]])
    np.testing.assert_allclose(_observed(model, "x"), UNBIASED)


def test_the_mean_and_the_intercepts_have_standard_normal_priors():
    """Their log densities at a point, those of SciPy."""
    value = np.array([0.5, -1.0, 2.0])
    for model, name in (
        (bs.models.gaussian_graphical(TABLE), "mean"),
        (bs.models.gaussian_neighbourhoods(TABLE), "intercept"),
    ):
        point = model.initial_point() | {name: value}
        found = model.compile_logp(vars=[model[name]], sum=False)(point)[0]
        np.testing.assert_allclose(np.sum(found), stats.norm.logpdf(value).sum())


def test_latent_features_are_in_units_of_the_root_mean_square_about_the_baseline():
    baseline = np.array([5.0, 50.0, -200.0])
    for given in (0.0, baseline):
        model = bs.models.latent_features(TABLE, baseline=given)
        size = np.sqrt(((X - given) ** 2).mean())
        for name in ("noise", "loading_scale"):
            log = model.compile_logp(vars=[model[name]], jacobian=False)
            found = log(model.initial_point() | {f"{name}_log__": np.log(3.0)})
            np.testing.assert_allclose(found, stats.halfnorm.logpdf(3.0, scale=size))


@pytest.mark.parametrize("name", ["additive_clustering", "binary_matrix_factorization"])
def test_scales_of_pairs_are_standard_deviations_with_divisor_n(name):
    table = np.random.default_rng(1).uniform(0, 9, (4, 4))
    table = np.triu(table, 1) + np.triu(table, 1).T if name == "additive_clustering" else table
    values = table[np.triu_indices(4, 1)] if name == "additive_clustering" else table.ravel()
    model = getattr(bs.models, name)(table)
    log = model.compile_logp(vars=[model["bias"]])(model.initial_point() | {"bias": 4.0})
    np.testing.assert_allclose(log, stats.norm.logpdf(4.0, values.mean(), 2 * values.std()))


@pytest.mark.chain
@pytest.mark.parametrize("name", ["ising", "pairwise_mrf"])
def test_the_log_likelihood_of_an_incomplete_row_is_that_of_the_completed_row(name):
    """By enumeration of the states of the two columns in each draw."""
    table = pd.DataFrame({"a": [0, 1, 1, 0, 1, np.nan], "b": [0, 1, np.nan, 1, 1, 0]})
    options = {} if name == "ising" else {"potentials": "ordinal"}
    with getattr(bs.models, name)(table, likelihood="exact", **options):
        idata = pm.sample(
            20,
            tune=20,
            chains=1,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
        pm.compute_log_likelihood(idata, progressbar=False)
    draws = idata["posterior"].isel(chain=0)
    [found] = idata["log_likelihood"].data_vars.values()
    for draw in range(20):
        bias, weight = draws["bias"].values[draw], float(draws["weight"].values[draw, 0])
        codes = table.to_numpy().copy()
        codes[np.isnan(codes)] = draws["x_missing"].values[draw]

        def log_mass(one, two, bias=bias, weight=weight):
            return bias[0] * one + bias[1] * two + weight * one * two

        total = np.logaddexp.reduce([log_mass(*x) for x in itertools.product((0, 1), repeat=2)])
        expected = [log_mass(*row) - total for row in codes]
        np.testing.assert_allclose(found.values[0, draw], expected, atol=1e-10)


def test_the_first_state_of_a_series_is_uniform():
    """One row of a series with two behaviours: the mean of their densities, whatever the transitions."""
    data = pd.DataFrame({"x": [0.0, 1.0]})
    with bs.models.markov_transitions([data[:1], data[1:]], alpha=1.0, max_features=2) as model:
        pass
    point = model.initial_point()
    point["feature"] = np.ones((2, 2), np.int8)
    point["transition"] = np.broadcast_to([[0.9, 0.1], [0.2, 0.8]], (2, 2, 2)).copy()
    point["emission_mean"] = np.array([[0.0], [1.0]])
    point["emission_scale"] = np.array([[0.5], [2.0]])
    rows = (np.array([0.0, 1.0]) - 0.5) / np.std([0.0, 1.0], ddof=1)
    densities = stats.norm.pdf(rows[:, None], [0.0, 1.0], [0.5, 2.0])
    found = model.compile_logp(vars=[model["x"]])(point)
    np.testing.assert_allclose(found, np.log(densities.mean(axis=1)).sum())


def _observed(model, name):
    return model.rvs_to_values[model[name]].data
