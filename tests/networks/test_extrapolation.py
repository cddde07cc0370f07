"""Columns that are set to values far outside of what was observed."""

import warnings

import numpy as np
import pandas as pd
import pytest

from tools.rows import mixed_table, prior_result

import bayesstruct as bs

pytestmark = pytest.mark.usefixtures("python_mode")


def table():
    return mixed_table(np.random.default_rng(4), 60)


def said(act):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        act()
    return [str(one.message) for one in found if issubclass(one.category, bs.TableWarning)]


def with_states():
    return table().assign(d=np.tile(["u", "v", "w"], 20))


MODELS = {
    "bge": lambda: bs.models.bayesian_network(table()),
    "gaussian": lambda: bs.models.linear_sem(table()),
    "laplace": lambda: bs.models.linear_sem(table(), noise="laplace"),
    "mixed": lambda: bs.models.bayesian_network(with_states(), score="mixed"),
}


@pytest.mark.parametrize("model", MODELS)
def test_one_warning_names_column_value_and_range(model):
    idata = prior_result(MODELS[model]())
    a, b = table()["a"], table()["b"]
    low, high = f"{a.min():.4g}", f"{a.max():.4g}"
    far = {"a": a.max() + 0.51 * np.ptp(a), "b": b.mean()}
    rows = pd.DataFrame({"b": [np.nan], "c": [-200.0], "d": ["u"]})
    rows = rows if model == "mixed" else rows.drop(columns="d")
    for act in (
        lambda: bs.do(idata, far),
        lambda: bs.do(idata, far, by_graph=True),
        lambda: bs.predict(idata, rows, setting={"a": far["a"]}),
    ):
        (words,) = said(act)
        assert f"'a' to {far['a']:.4g} (observed: {low} to {high})" in words
        assert "'b'" not in words
    assert not said(lambda: bs.do(idata, {"a": a.max() + 0.49 * np.ptp(a)}))
    assert not said(lambda: bs.do(idata, {"a": a.min() - 0.49 * np.ptp(a)}))
    (words,) = said(lambda: bs.do(idata, {"a": a.min() - 0.51 * np.ptp(a), "b": 1e4}))
    assert "'a' to" in words
    assert "'b' to 1e+04" in words


def test_missing_values_have_no_range():
    gaps = table()
    gaps.loc[gaps["a"] > 5, "a"] = np.nan
    idata = prior_result(bs.models.bayesian_network(gaps))
    seen = gaps["a"].dropna()
    (words,) = said(lambda: bs.do(idata, {"a": seen.max() + 0.6 * np.ptp(seen)}))
    assert f"to {seen.max():.4g})" in words


def test_states_have_no_range():
    idata = prior_result(MODELS["mixed"]())
    assert not said(lambda: bs.do(idata, {"d": "v"}))
