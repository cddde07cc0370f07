"""Missing values stay missing in ``observed_data``, and nothing else depends on what stands in their places."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from pymc.backends.arviz import find_observations

import bayesstruct as bs

from bayesstruct.core.missing import observed_values
from bayesstruct.runs.fingerprint import _array_digest, describe_model


def numbers():
    rng = np.random.default_rng(20261129)
    x = np.round(5 + 3 * rng.standard_normal((30, 3)), 1)
    return pd.DataFrame(np.where(rng.random(x.shape) < 0.15, np.nan, x), columns=list("abc"))


def binary():
    table = numbers()
    return (table > 5).astype(float).where(table.notna())


def standardised(table):
    return (table - table.mean()) / table.std()


MODELS = {
    "gaussian": (lambda: bs.models.gaussian_graphical(numbers()), numbers),
    "laplace": (lambda: bs.models.gaussian_graphical(numbers(), prior="laplace"), numbers),
    "bge": (lambda: bs.models.bayesian_network(numbers()), numbers),
    "bdeu": (lambda: bs.models.bayesian_network(binary(), score="bdeu"), binary),
    "ising": (lambda: bs.models.ising(binary()), binary),
    "mrf": (lambda: bs.models.pairwise_mrf(binary()), binary),
    "causes": (lambda: bs.models.hidden_causes(binary(), max_features=8), binary),
    "factors": (
        lambda: bs.models.sparse_factor_analysis(numbers(), max_features=8),
        lambda: standardised(numbers()),
    ),
    "series": (
        lambda: bs.models.markov_transitions([numbers()], max_features=8),
        lambda: standardised(numbers()),
    ),
}
#: What stood for missing values when runs of such models were stored.
STOOD = {"gaussian": "mean", "laplace": "mean", "bge": "mean", "causes": -1}


@pytest.fixture(params=list(MODELS))
def case(request):
    model, table = MODELS[request.param]
    return request.param, model(), table().to_numpy()


def test_missing_values_are_missing_among_the_observations(case):
    _, model, table = case
    for one in (model, model.copy(), pm.do(model, {})):
        found = find_observations(one)["x"]
        np.testing.assert_allclose(found, table, rtol=1e-12)
        assert not np.isnan(observed_values(one, one["x"]).data).any()


def test_stored_runs_are_of_the_same_table(case):
    name, model, _ = case
    table, stood = MODELS[name][1](), STOOD.get(name, 0)
    filled = table.fillna(table.mean() if stood == "mean" else stood).to_numpy()
    found = observed_values(model, model["x"]).data
    np.testing.assert_allclose(found, filled, rtol=1e-12)
    assert found.dtype == ("int64" if MODELS[name][1] is binary else "float64")
    assert describe_model(model)["observed"]["x"] == _array_digest(found)


def test_densities_do_not_depend_on_what_stands_for_missing_values(case):
    _, model, _ = case
    logp = model.logp(vars=[model["x"]], sum=False)
    compiled = model.compile_fn(
        logp, inputs=model.value_vars, on_unused_input="ignore", mode="FAST_COMPILE"
    )
    [rows] = compiled(model.initial_point(0))
    assert np.isfinite(rows).all()
    value = model.rvs_to_values[model["x"]]
    other = observed_values(model, model["x"])
    del value.tag.filled
    model.rvs_to_values[model["x"]] = type(value)(
        value.type, np.asarray(other.data, float), value.name
    )
    model.values_to_rvs[model.rvs_to_values[model["x"]]] = model["x"]
    again = model.logp(vars=[model["x"]], sum=False)
    [filled] = model.compile_fn(
        again, inputs=model.value_vars, on_unused_input="ignore", mode="FAST_COMPILE"
    )(model.initial_point(0))
    np.testing.assert_array_equal(rows, filled)


@pytest.mark.chain
@pytest.mark.parametrize("name", ["gaussian", "ising"])
def test_results_have_missing_values(name):
    model, table = MODELS[name]
    with model():
        idata = pm.sample(
            10,
            tune=10,
            chains=1,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
        pm.sample_posterior_predictive(idata, extend_inferencedata=True, progressbar=False)
    np.testing.assert_array_equal(idata["observed_data"]["x"], table())
    assert not np.isnan(idata["posterior_predictive"]["x"].values).any()


def test_complete_tables_of_states_are_whole_numbers():
    table = binary().dropna()
    for model in (
        bs.models.ising(table),
        bs.models.hidden_causes(table),
        bs.models.bayesian_network(table, score="bdeu"),
    ):
        assert find_observations(model)["x"].dtype == "int64"
