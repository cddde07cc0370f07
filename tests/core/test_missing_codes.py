"""Codes that a model was told to read as missing values are missing in rows that are read later, too."""

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest

from scipy import stats
from tools.rows import conditional, mixed_table, normals, prior_result

import bayesstruct as bs

from bayesstruct.data import TableError, TableWarning

ROWS = {"a": [np.nan, 6.0, 4.5], "b": [55.0, np.nan, 40.0], "c": [-150.0, -280.0, np.nan]}


def coded_numbers(code=-999.0):
    table = mixed_table(np.random.default_rng(1))
    table.loc[3, "b"] = code
    return table


def coded_binary(code=9):
    table = pd.DataFrame(np.random.default_rng(2).integers(0, 2, (40, 3)), columns=list("abc"))
    table.loc[2, "b"] = code
    return table


NUMBERS = {
    "gaussian_graphical": bs.models.gaussian_graphical,
    "bayesian_network": bs.models.bayesian_network,
    "latent_features": bs.models.latent_features,
}
STATES = {
    "ising": bs.models.ising,
    "pairwise_mrf": bs.models.pairwise_mrf,
    "bayesian_network": lambda t, **o: bs.models.bayesian_network(t, score="bdeu", **o),
    "hidden_causes": bs.models.hidden_causes,
}


@pytest.mark.parametrize("build", NUMBERS.values(), ids=NUMBERS)
def test_codes_are_predicted_as_missing_numbers_are(build):
    idata = prior_result(build(coded_numbers(), missing_codes=-999))
    gaps = pd.DataFrame(ROWS)
    right = bs.predict(idata, gaps)
    assert len(right) == 3
    for rows in (gaps.fillna(-999), gaps.fillna(-999).values, pl.from_pandas(gaps.fillna(-999))):
        pd.testing.assert_frame_equal(bs.predict(idata, rows), right)


@pytest.mark.filterwarnings("ignore:.*which no value of the table")
@pytest.mark.parametrize("build", STATES.values(), ids=STATES)
def test_codes_are_predicted_as_missing_states_are(build):
    idata = prior_result(build(coded_binary(), missing_codes={"a": [9], "b": [9, 8]}))
    gaps = pd.DataFrame({"a": [0, 1], "b": [np.nan, 0], "c": [1, 0]})
    right = bs.predict(idata, gaps)
    pd.testing.assert_frame_equal(bs.predict(idata, gaps.fillna(8)), right)
    pd.testing.assert_frame_equal(bs.predict(idata, gaps.fillna(9).values.astype(int)), right)
    with pytest.raises(TableError, match="'c' has the state 9"):  # 9 means missing in others only
        bs.predict(idata, gaps.assign(c=9))


def test_predictions_of_coded_rows_are_those_of_scipy():
    table = coded_numbers()
    idata = prior_result(bs.models.gaussian_graphical(table, missing_codes=-999))
    found = bs.predict(idata, pd.DataFrame(ROWS).fillna(-999)).set_index("column")
    train = table.replace(-999, np.nan)
    for row, column in enumerate("abc"):
        values = np.array([ROWS[name][row] for name in "abc"])
        means = [conditional(own, values, row)[0] for own in normals(idata, train)]
        assert found.loc[column, "mean"] == pytest.approx(np.mean(means), rel=1e-9)


@pytest.mark.filterwarnings("ignore:.*which no value of the table")
@pytest.mark.parametrize("kind", ["gaussian_graphical", "bayesian_network"])
def test_densities_of_coded_rows_are_those_of_their_observed_values(kind):
    table = coded_numbers()
    model = NUMBERS[kind](table, missing_codes=[-999, -998])
    idata = prior_result(model)
    rows = pd.DataFrame(ROWS)
    with bs.new_rows(model, rows.fillna(-998)[["c", "a", "b"]]):
        found = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    for draw, normal in enumerate(normals(idata, table.replace(-999, np.nan))):
        for row, values in enumerate(rows.values):
            seen = np.flatnonzero(~np.isnan(values))
            part = stats.multivariate_normal(normal.mean[seen], normal.cov[np.ix_(seen, seen)])
            right = part.logpdf(values[seen])
            assert found["x"].values[0, draw, row] == pytest.approx(right, rel=1e-10)


@pytest.mark.parametrize("kind", ["ising", "pairwise_mrf", "bayesian_network"])
def test_new_rows_of_states_with_codes_are_incomplete(kind):
    model = STATES[kind](coded_binary(), missing_codes=9)
    with pytest.raises(TableError, match=r"'c': values are missing.*bs.predict"):
        bs.new_rows(model, coded_binary(0).assign(c=9))


def test_neighbourhoods_know_codes_of_rows_that_come_later():
    rows = pd.DataFrame(ROWS)
    with pytest.warns(UserWarning, match="no value of the table"):
        model = bs.models.gaussian_neighbourhoods(coded_numbers(50.0), missing_codes=-999)
    idata = prior_result(model)
    pd.testing.assert_frame_equal(bs.predict(idata, rows.fillna(-999)), bs.predict(idata, rows))
    with pytest.warns(UserWarning, match="no value of the table"):
        model = bs.models.ising_neighbourhoods(coded_binary(1), missing_codes=9)
    idata = prior_result(model)
    gaps = pd.DataFrame({"a": [0], "b": [np.nan], "c": [1]})
    pd.testing.assert_frame_equal(bs.predict(idata, gaps.fillna(9)), bs.predict(idata, gaps))


def test_codes_of_covariates_are_refused_with_the_column():
    table = coded_numbers()
    age = pd.DataFrame({"age": np.random.default_rng(4).normal(50.0, 9.0, len(table))})
    holes = age.where(np.arange(len(age))[:, None] != 3, -9)
    codes = {"b": -999, "age": -9}
    for given in (holes, holes["age"], pl.from_pandas(holes)):
        with pytest.raises(TableError, match="'age' has values that are missing"):
            bs.models.gaussian_graphical(table, covariates=given, missing_codes=codes)
    with pytest.raises(TableError, match="'x0' has values that are missing"):
        bs.models.gaussian_graphical(
            table, covariates=holes["age"].to_list(), missing_codes=[-999, -9]
        )
    with pytest.raises(TableError, match=r"unknown column 'aeg'; did you mean 'age'"):
        bs.models.gaussian_graphical(table, covariates=age, missing_codes={"aeg": -9})
    with pytest.warns(UserWarning, match="holds -9, which no value"):
        model = bs.models.gaussian_graphical(table, covariates=age, missing_codes=codes)
    idata = prior_result(model)
    with pytest.raises(TableError, match="'age' has values that are missing"):
        bs.new_rows(model, table, covariates=holes)
    with pytest.raises(TableError, match="'age' has values that are missing"):
        bs.predict(idata, table, covariates=holes)


def test_codes_of_a_mixture_are_refused_in_response_and_new_rows():
    rng = np.random.default_rng(5)
    x = pd.DataFrame(rng.normal(size=(30, 2)), columns=["u", "v"])
    y = pd.Series(rng.normal(size=30), name="y").mask(x.index == 2, -999)
    for response in (y, y.to_numpy(), y.to_list()):
        with pytest.raises(TableError, match="missing values; leave these rows out"):
            bs.models.dp_glm(x, response, missing_codes=-999)
    with pytest.warns(UserWarning, match="no value of the table"):
        model = bs.models.dp_glm(x, y.replace(-999, 0.0), missing_codes=-999)
    idata = prior_result(model)
    with pytest.raises(TableError, match="'v': missing or infinite"):
        bs.mixture_predictions(idata, x[:2].assign(v=-999))
    gaps = pd.DataFrame({"u": [0.5, np.nan], "v": [np.nan, 0.2], "y": [1.0, np.nan]})
    right = bs.predict(idata, gaps)
    pd.testing.assert_frame_equal(bs.predict(idata, gaps.fillna(-999)), right)
    alone = gaps.drop(columns="y")
    found = bs.predict(idata, alone.fillna(-999).values)
    pd.testing.assert_frame_equal(found, bs.predict(idata, alone))


def test_words_for_missing_values_are_gaps_of_series():
    numbers = np.random.default_rng(6).normal(size=(20, 2))
    gaps = pd.DataFrame(numbers, columns=["a", "b"])
    gaps.loc[4, "b"] = np.nan
    words = gaps.astype(object).where(gaps.notna(), "lost")
    model = bs.models.markov_transitions([gaps.fillna(0), words], missing_codes="lost")
    other = bs.models.markov_transitions([gaps.fillna(0), gaps])
    found = [m.rvs_to_values[m["x"]].eval(mode="FAST_COMPILE") for m in (model, other)]
    np.testing.assert_array_equal(*found)


def test_models_without_codes_record_none():
    assert "missing_codes" not in bs.models.ising(coded_binary(1)).named_vars


OTHERS = NUMBERS | {
    "gaussian_neighbourhoods": bs.models.gaussian_neighbourhoods,
    "dp_glm": lambda t: bs.models.dp_glm(t, "c"),
}


@pytest.mark.parametrize("build", OTHERS.values(), ids=OTHERS)
def test_new_rows_far_outside_of_the_table_are_remarked_upon(build, recwarn):
    table = mixed_table(np.random.default_rng(1))
    idata = prior_result(build(table))
    rows = table[:1].assign(c=np.nan)
    recwarn.clear()
    bs.predict(idata, rows)
    assert not recwarn.list
    with pytest.warns(TableWarning, match=r"'a' \(-999\).*missing_codes=\{'a': -999\}"):
        bs.predict(idata, rows.assign(a=-999))
    with pytest.warns(TableWarning, match=r"'b' \(.*the mean is .*in the units of the first table"):
        bs.predict(idata, rows.assign(b=1000 * rows["b"]))


def test_rows_of_a_model_far_outside_of_its_table_are_remarked_upon(recwarn):
    table = mixed_table(np.random.default_rng(1))
    model = bs.models.gaussian_graphical(table)
    recwarn.clear()
    bs.new_rows(model, table[:9])
    assert not recwarn.list
    for code in (-999, 1e20, -9999.0):
        with pytest.warns(TableWarning, match=r"'a' \(.*if they mean missing, leave them empty"):
            bs.new_rows(model, table[:9].assign(a=[code] + [5.0] * 8))
    with pytest.warns(TableWarning, match="'a' .*units of the first table"):
        bs.new_rows(model, table[:9].assign(a=1000 * table["a"]))
    with pytest.warns(TableWarning, match="correlation matrix"):
        bs.new_rows(model, table.corr())


def test_codes_in_new_covariates_are_remarked_upon():
    table = mixed_table(np.random.default_rng(1))
    ages = pd.DataFrame({"age": np.random.default_rng(2).normal(40, 9, len(table))})
    model = bs.models.gaussian_graphical(table, covariates=ages)
    with pytest.warns(TableWarning, match=r"'age' \(-999\)"):
        bs.new_rows(model, table[:2], covariates=ages[:2].assign(age=[41.0, -999.0]))
