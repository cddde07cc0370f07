"""The model of several groups: covariance matrices, counted rows, and other rows."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from tools.group_frames import NAMES, QUIET, frame

import bayesstruct as bs

from bayesstruct.models import grouped_gaussian_graphical

OF_GROUPS = r"each group of rows.*one_group"


def covariances(table):
    """Covariance matrix and number of rows of each group."""
    sites = table.groupby("site")
    return {label: own[NAMES].cov() for label, own in sites}, sites.size().to_dict()


@pytest.mark.chain
def test_covariances_have_the_posterior_of_their_rows():
    table = frame()
    cov, n = covariances(table)
    with grouped_gaussian_graphical(table, group="site"):
        expected = pm.sample(30, tune=10, random_seed=1, **QUIET)
    model = grouped_gaussian_graphical(cov=cov, n=n)
    with model:
        idata = pm.sample(30, tune=10, random_seed=1, **QUIET)
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_prior_predictive(2, random_seed=1)
        draws = pm.sample_posterior_predictive(
            idata, progressbar=False, random_seed=1, extend_inferencedata=True
        )
    # the means of the columns are the location in one, and not known in the other
    for name in ("precision", "weight"):
        np.testing.assert_allclose(idata["posterior"][name], expected["posterior"][name], rtol=1e-6)
    assert np.isfinite(idata["log_likelihood"]["covariance"]).all()
    found = draws["posterior_predictive"]["covariance"].mean(("chain", "draw")).sel(group="b")
    scale = np.sqrt(np.diag(cov["b"]))
    # 60 draws of 50 rows, whose covariances vary by a fifth and are shrunk a little
    np.testing.assert_allclose(
        found / np.outer(scale, scale), cov["b"] / np.outer(scale, scale), atol=0.25
    )
    table = bs.edge_table(bs.one_group(idata, "b"))
    assert (table.iloc[0]["source"], table.iloc[0]["target"]) == ("mood", "sleep")
    assert bs.predictive_correlations(bs.one_group(draws, "b"))["inside"].mean() > 0.5
    for read in (bs.covariance, bs.predictive_correlations):
        with pytest.raises(ValueError, match=OF_GROUPS):
            read(draws)
    with pytest.raises(ValueError, match="new rows need the model of the rows"):
        bs.new_rows(model, frame(), group="site")
    with pytest.raises(ValueError, match="no value can be predicted"):
        bs.predict(idata, frame(), group="site")


def test_covariances_and_rows_do_not_go_together():
    cov, n = covariances(frame())
    with pytest.raises(TypeError, match="not both"):
        grouped_gaussian_graphical(frame(), group="site", cov=cov, n=n)
    with pytest.raises(TypeError, match="`row_counts` needs the rows"):
        grouped_gaussian_graphical(cov=cov, n=n, row_counts="n")
    with pytest.raises(TypeError, match="`standardize` needs the rows"):
        grouped_gaussian_graphical(cov=cov, n=n, standardize=False)
    with pytest.raises(TypeError, match="`cov` needs `n`"):
        grouped_gaussian_graphical(cov=cov)
    model = grouped_gaussian_graphical(cov=cov, n=n, standardize="group")
    np.testing.assert_allclose(model["scale"].get_value()[0], np.sqrt(np.diag(cov["a"])))


@pytest.fixture(scope="module")
def fitted():
    model = grouped_gaussian_graphical(frame(gaps=True), group="site")
    with model:
        return model, pm.sample(20, tune=10, random_seed=1, **QUIET)


@pytest.mark.chain
def test_new_rows_have_the_log_likelihood_of_their_group(fitted):
    model, idata = fitted
    with model:
        old = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    table = frame(gaps=True)
    chosen = [7, 6, 1, 0, 3]  # with missing values
    for new, group in (
        (table.iloc[chosen], "site"),
        (table.iloc[chosen][NAMES], table["site"].iloc[chosen]),
    ):
        with bs.new_rows(model, new, group=group):
            found = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
            drawn = pm.sample_posterior_predictive(
                idata, predictions=True, progressbar=False, random_seed=1
            )
        np.testing.assert_allclose(found["x"], old["x"].isel(observation=chosen))
        mean = drawn["predictions"]["x"].mean(("chain", "draw")).values[:, 0]
        # groups are 200 apart, and means of 40 draws have a standard error of 2
        np.testing.assert_allclose(mean > 200, table["site"].iloc[chosen] == "b")
    with pytest.raises(ValueError, match="give those of the new rows, `group`"):
        bs.new_rows(model, table[NAMES])
    with pytest.raises(bs.TableError, match="has the group 'c', and those of the model are"):
        bs.new_rows(model, table[NAMES], group=["c"] * len(table))
    with pytest.raises(ValueError, match="the model has no group: leave `group` out"):
        bs.new_rows(bs.models.gaussian_graphical(frame()[NAMES]), frame()[NAMES], group="site")


@pytest.mark.chain
def test_predictions_of_empty_values_are_those_of_one_group(fitted):
    _, idata = fitted
    new = frame().iloc[10:16].copy()
    new.iloc[0, 0] = new.iloc[2, 1] = new.iloc[2, 3] = new.iloc[5, 2] = np.nan
    found = bs.predict(idata, new, group="site")
    assert [*found["row"]] == [10, 12, 12, 15]
    parts = [
        bs.predict(bs.one_group(idata, label), own[NAMES]) for label, own in new.groupby("site")
    ]
    expected = pd.concat(parts).sort_values(["row"], kind="stable").reset_index(drop=True)
    pd.testing.assert_frame_equal(found, expected)
    apart = bs.predict(idata, {label: own[NAMES] for label, own in new.groupby("site")})
    assert sorted(apart["mean"]) == sorted(found["mean"])
    with pytest.warns(bs.TableWarning, match="far outside of group 'a' of the first table in"):
        bs.predict(idata, {"a": new[NAMES].head(2).add([0, 0, 1e4, 0])})
    with pytest.raises(ValueError, match="give those of the new rows, `group`"):
        bs.predict(idata, new[NAMES])
    with pytest.raises(ValueError, match="`group` does not apply"):
        bs.predict(bs.one_group(idata, "a"), new, group="site")


def test_codes_of_missing_values_in_one_of_several_tables():
    tables = {label: own[NAMES].astype(object) for label, own in frame().groupby("site")}
    tables["a"].iloc[0, 0] = "unknown"
    model = grouped_gaussian_graphical(tables, missing_codes="unknown")
    new = bs.new_rows(model, {"a": tables["a"].head(2)})
    assert model["x_missing"].eval().shape == (1,) and "x" in new.named_vars
