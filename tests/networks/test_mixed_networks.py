"""Networks of columns of several kinds: tables, models, and what is read from results."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from scipy import integrate, stats
from scipy.special import expit

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.models import bayesian_network
from bayesstruct.networks.data.mixed_tables import MixedTable
from bayesstruct.networks.kernels.mixed_rows import column_terms, predictors
from bayesstruct.networks.reading.mixed import table_units


def people(n=40, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 10, n)
    smokes = rng.random(n) < expit((age - 40) / 10)
    income = 2000 + 300 * smokes + rng.normal(0, 200, n)
    school = np.digitize(income / 200 + rng.logistic(size=n), [10, 12])
    colour = rng.choice(["red", "green", "blue"], n)
    return pd.DataFrame(
        {
            "age": age,
            "smokes": np.where(smokes, "yes", "no"),
            "income": income,
            "school": pd.Categorical.from_codes(school, ["none", "low", "high"], ordered=True),
            "colour": colour,
        }
    )


def test_families_follow_from_the_columns():
    table = MixedTable.read(people())
    assert table.families == ("normal", "logistic", "normal", "ordinal", "multinomial")
    assert table.levels[1:4:2] == (("no", "yes"), ("none", "low", "high"))
    np.testing.assert_allclose(table.standardized[:, 0].std(ddof=1), 1.0)
    assert MixedTable.read(people(), kinds={"age": "student"}).families[0] == "student"
    flags = people().assign(flag=np.arange(40) % 2 == 0, two=np.arange(40) // 7 % 2 + 0.5)
    assert MixedTable.read(flags).families[-2:] == ("logistic", "logistic")
    probit = MixedTable.read(flags, kinds={"two": "probit"})
    assert probit.families[-1] == "probit"
    assert probit.levels[-1] == (0.5, 1.5)


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ({"smokes": "normal"}, "holds states"),
        ({"school": "probit"}, "has 3 states"),
        ({"colour": "ordinal"}, "without an order"),
        ({"size": "normal"}, "size"),
        (
            {"age": "multinomial"},
            r"'age' holds numbers that are not whole .*'multinomial' is for states: leave 'age' out of `kinds`",
        ),
        ({"income": "logistic"}, "'income' .*'logistic' is for states.*pandas.cut"),
    ],
)
def test_families_that_do_not_fit_are_refused(kinds, words):
    with pytest.raises(TableError, match=words):
        bayesian_network(people(), score="mixed", kinds=kinds)


def test_an_infinite_value_is_no_state():
    table = people().assign(rate=[np.inf] + [1.0] * 39)
    with pytest.raises(TableError, match="'rate' holds an infinite value"):
        bayesian_network(table, score="mixed")


def test_numbers_of_a_short_table_are_not_taken_for_states():
    """Of up to 20 rows all numbers differ, in each column."""
    table = MixedTable.read(people(12))
    assert table.families == MixedTable.read(people()).families
    copied = people(12).assign(salary=lambda own: own["income"])
    with pytest.raises(TableError, match="'income' and 'salary' are exact duplicates"):
        MixedTable.read(copied)


def test_options_that_do_not_fit_are_refused():
    table = people()
    with pytest.raises(ValueError, match="laplace"):
        bayesian_network(table, score="mixed", kinds={"age": "laplac"})
    with pytest.raises(ValueError, match="belongs to the score 'mixed'"):
        bayesian_network(table[["age", "income"]], kinds={"age": "student"})
    with pytest.raises(ValueError, match="coefficient_scale"):
        bayesian_network(table[["age", "income"]], coefficient_scale=2.0)
    with pytest.raises(ValueError, match="order"):
        bayesian_network(table, score="mixed", prior="order")
    with pytest.raises(ValueError, match="categories"):
        bayesian_network(table, score="mixed", states={"colour": ["red", "green", "blue"]})


@pytest.mark.filterwarnings("ignore:.*few whole numbers")
def test_few_whole_numbers_are_remarked_upon():
    table = people().assign(children=np.arange(40) % 4)
    with pytest.warns(bs.TableWarning, match="kinds={'children': 'ordinal'}"):
        MixedTable.read(table)
    kinds = {"children": "ordinal"}
    assert MixedTable.read(table, kinds=kinds).families[-1] == "ordinal"


def known_result():
    """One draw of age -> smokes -> income, with its parameters by name."""
    with bayesian_network(people().drop(columns=["school", "colour"]), score="mixed") as model:
        prior = pm.sample_prior_predictive(3, random_seed=1)
    terms = model.coords["term"]
    values = {
        "noise scale -> age": 1.0,
        "intercept -> smokes: yes": 0.4,
        "age -> smokes: yes": 1.3,
        "intercept -> income": 0.2,
        "smokes: yes -> income": 0.9,
        "noise scale -> income": 0.7,
    }
    vector = np.array([values.get(term, 0.0) for term in terms])
    dag = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    draws = {
        "dag": (("chain", "draw", "node", "node_"), np.tile(dag, (1, 3, 1, 1))),
        "parameter": (("chain", "draw", "term"), np.tile(vector, (1, 3, 1))),
        "arc": (("chain", "draw", "ordered_pair"), np.zeros((1, 3, 6))),
    }
    prior["posterior"] = xr.DataTree(xr.Dataset(draws, coords=prior["prior"].coords))
    return prior


@pytest.fixture(scope="module")
def result():
    return known_result()


@pytest.mark.chain
def test_effects_are_those_by_integration(result):
    table = people()
    mean, sd = table.age.mean(), table.age.std()
    found = bs.do(result, {"age": mean + 0.5 * sd}, random_seed=1)
    yes = expit(0.4 + 1.3 * 0.5)
    without = integrate.quad(lambda z: stats.norm.pdf(z) * expit(0.4 + 1.3 * z), -9, 9)[0]
    smoker = found.loc[("smokes", "yes")]
    np.testing.assert_allclose(smoker["mean"], yes, atol=1e-12)
    np.testing.assert_allclose(smoker["effect"], yes - without, atol=2e-3)
    income = found.loc[("income", "")]
    unit = table.income.std()
    expected = table.income.mean() + unit * (0.2 + 0.9 * (yes - 0.5))
    np.testing.assert_allclose(income["mean"], expected, atol=3e-3 * unit)
    np.testing.assert_allclose(income["effect"], unit * 0.9 * (yes - without), atol=8e-3 * unit)
    assert np.isnan(smoker["predicted_low"]) and np.isfinite(income["predicted_low"])
    assert found.loc[("age", ""), "mean"] == pytest.approx(mean + 0.5 * sd)


@pytest.mark.chain
def test_effects_go_along_arcs_only(result):
    found = bs.do(result, {"smokes": "no"}, random_seed=1)
    assert found.loc[("age", ""), "effect"] == 0.0
    shift = people().income.std() * 0.9
    assert found.loc[("income", ""), "effect"] < -0.3 * shift
    assert found.loc[("smokes", "no"), "mean"] == 1.0
    with pytest.raises(ValueError, match="no, yes"):
        bs.do(result, {"smokes": "often"})
    with pytest.raises(ValueError, match="finite number"):
        bs.do(result, {"age": "old"})


@pytest.mark.chain
def test_coefficients_are_in_units_of_the_table(result):
    table, found = people(), bs.coefficients(result)["coefficient"].isel(chain=0, draw=0)
    own = {name: found.sel(term=f"{name}").item() for name in found["term"].values}
    assert own["age -> smokes: yes"] == pytest.approx(1.3 / table.age.std())
    assert own["smokes: yes -> income"] == pytest.approx(0.9 * table.income.std())
    assert own["noise scale -> income"] == pytest.approx(0.7 * table.income.std())
    at_zero = 0.4 - 1.3 * table.age.mean() / table.age.std()
    assert own["intercept -> smokes: yes"] == pytest.approx(at_zero)


def test_predictors_in_units_are_those_of_standardised_columns():
    table = MixedTable.read(people())
    layout, rng = table.layout, np.random.default_rng(0)
    vector = np.where(layout.present(np.triu(np.ones((5, 5)), 1)), rng.normal(size=layout.size), 0)
    units = table_units(layout, vector[None], table.location, table.scale)[0]
    colour = table.values[:, 4]
    plain = [*table.values[:, :4].T, colour == 1, colour == 2]
    features = layout.all_features(table.standardized)
    for i in (1, 2, 4):
        eta = predictors(layout, i, features, vector)
        weight = np.where(layout.coefficients[i] >= 0, units[layout.coefficients[i]], 0.0)
        found = weight @ np.vstack([np.ones(40), plain])
        if layout.is_number(i):
            eta = table.location[i] + table.scale[i] * eta
        np.testing.assert_allclose(found, eta, rtol=1e-9)
    weight = np.where(layout.coefficients[3] >= 0, units[layout.coefficients[3]], 0.0)[:, 1:]
    cut = units[layout.extras[3]] - (weight @ plain).T
    wanted = vector[layout.extras[3]] - predictors(layout, 3, features, vector).T
    np.testing.assert_allclose(cut, wanted, rtol=1e-9)


@pytest.mark.chain
def test_the_summary_names_what_reads_the_result(result):
    assert "tells Markov equivalent graphs apart" in bs.arc_table(result).attrs["notes"][0]
    assert "bs.do" in str(bs.summary(result)) and "bs.predict," in str(bs.summary(result))


@pytest.mark.chain
def test_models_are_sampled_and_predict():
    table = people(60)
    was_set = pd.DataFrame({"smokes": np.arange(60) < 10})
    with bayesian_network(table, score="mixed", interventions=was_set) as model:
        idata = pm.sample(40, tune=10, chains=1, random_seed=1, compute_convergence_checks=False)
        pm.compute_log_likelihood(idata)
        pm.sample_posterior_predictive(idata, extend_inferencedata=True, random_seed=1)
        best = bs.find_MAP()
    read = MixedTable.read(table)
    vector = idata.posterior["parameter"].values[0, 7]
    terms = column_terms(read.layout, read.standardized, vector) - np.log(read.scale)
    terms[:10, 1] = 0.0
    found = idata.log_likelihood["x"].values[0, 7]
    np.testing.assert_allclose(found, terms.sum(axis=1))
    x = idata.posterior_predictive["x"]
    assert set(np.unique(x.sel(node="colour"))) <= {0.0, 1.0, 2.0}
    assert (x.sel(node="smokes")[..., :10] == read.values[:10, 1]).all()
    np.testing.assert_allclose(x.sel(node="income").mean(), table.income.mean(), rtol=0.05)
    assert np.isfinite(model.compile_logp()(model.initial_point()))
    assert set(best) >= {"dag", "parameter"} and best["dag"].shape == (5, 5)


def people_with_gaps():
    table = people(60)
    table.loc[3:8, "age"] = np.nan
    table.loc[5, "income"] = np.nan
    table.loc[10:12, "school"] = None
    return table[["age", "smokes", "income", "school"]]


@pytest.fixture(scope="module")
def incomplete():
    """A short run on a table with missing values."""
    table = people_with_gaps()
    with bayesian_network(table, score="mixed", kinds={"age": "student"}):
        idata = pm.sample(40, tune=10, chains=1, random_seed=1, compute_convergence_checks=False)
        pm.compute_log_likelihood(idata)
        pm.sample_posterior_predictive(idata, extend_inferencedata=True, random_seed=1)
    return table, idata


@pytest.mark.chain
def test_missing_values_are_named_and_have_the_density_of_complete_rows(incomplete):
    table, idata = incomplete
    values = idata.posterior["x_missing"]
    assert values["missing"].values.tolist() == [
        *["age[3]", "age[4]", "age[5]", "income[5]", "age[6]", "age[7]", "age[8]"],
        *["school[10]", "school[11]", "school[12]"],
    ]
    assert set(np.unique(values.sel(missing="school[10]"))) <= {0.0, 1.0, 2.0}
    read = MixedTable.read(table, kinds={"age": "student"})
    full = read.values.copy()
    full[np.isnan(full)] = values.values[0, 7]
    vector = idata.posterior["parameter"].values[0, 7]
    terms = column_terms(read.layout, (full - read.location) / read.scale, vector)
    found = idata.log_likelihood["x"].values[0, 7]
    np.testing.assert_allclose(found, (terms - np.log(read.scale)).sum(axis=1))
    assert np.isnan(idata.observed_data["x"].values).sum() == 10
    assert np.isfinite(idata.posterior_predictive["x"]).all()


@pytest.mark.chain
def test_results_with_missing_values_are_read(incomplete):
    table, idata = incomplete
    assert np.isfinite(bs.arc_table(idata)["probability"]).all()
    found = bs.predict(idata, table.iloc[[5]])
    assert set(found["column"]) == {"age", "income"} and np.isfinite(found["mean"]).all()
    assert np.isfinite(bs.do(idata, {"age": 40.0}, random_seed=1)["mean"]).all()
    assert set(bs.predictability(idata)["node"]) == set(table.columns)
    assert np.isfinite(bs.evidence_limits(idata)["smallest"]).all()
    assert bs.pointwise(idata).log_likelihood["x"].notnull().values.sum() == 40 * (240 - 10)


def test_modes_of_tables_with_missing_values_are_refused():
    with (
        bayesian_network(people_with_gaps(), score="mixed"),
        pytest.raises(ValueError, match=r"complete table.*bs\.map_graph"),
    ):
        bs.find_MAP()
