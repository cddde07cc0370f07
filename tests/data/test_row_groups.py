"""Tables with the group of each row: what is read, and what is refused or remarked upon."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

from bayesstruct.data.covariance import grouped_covariances
from bayesstruct.data.row_groups import grouped_table, rows_of_groups
from bayesstruct.data.table import TableError, TableWarning

N = 40


def table(seed=0):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.normal(size=(N, 3)), columns=[*"abc"])
    data["sex"] = np.where(rng.random(N) < 0.5, "m", "f")
    return data


def test_groups_are_named_by_a_column_given_or_in_separate_tables():
    data = table()
    rest, sex = data.drop(columns="sex"), data["sex"]
    named = grouped_table(data, "sex")
    assert (named.labels, named.table.names) == (("f", "m"), ("a", "b", "c"))
    assert named.sizes.tolist() == [(sex == "f").sum(), (sex == "m").sum()]
    for other in (
        grouped_table(rest, sex),
        grouped_table(rest, sex.to_numpy()),
        grouped_table(rest.to_numpy(), list(sex)),
        grouped_table(pl.DataFrame(data), "sex"),
    ):
        np.testing.assert_array_equal(other.group, named.group)
        np.testing.assert_allclose(other.scale, named.scale)
    apart = grouped_table({label: rest[sex == label][[*"cab"]] for label in ("m", "f")})
    assert (apart.labels, apart.table.names) == (("m", "f"), ("c", "a", "b"))
    np.testing.assert_allclose(apart.location[::-1][:, [1, 2, 0]], named.location)


def test_categories_keep_their_order_and_numbers_are_sorted_as_numbers():
    data = table()
    levels = pd.Categorical(data.pop("sex"), categories=["m", "x", "f"])
    for own in (levels, pd.Series(levels)):
        with pytest.warns(TableWarning, match="`group` has no rows in 'x'"):
            assert grouped_table(data, own).labels == ("m", "f")
    for numbers in (np.arange(N) % 3 * 5, np.arange(N) % 3 * 5.0):  # as of a column that had gaps
        assert grouped_table(data, numbers).labels == ("0", "5", "10")


def test_scales():
    data = table()
    data["a"] *= 5.0
    data["b"] += 100.0 * (data["sex"] == "m")
    pooled, own, raw = (grouped_table(data, "sex", standardize=s) for s in (True, "group", False))
    within = data.groupby("sex").transform(lambda x: x - x.mean())
    expected = np.sqrt((within**2).sum() / (N - 2))
    np.testing.assert_allclose(pooled.scale, np.tile(expected, (2, 1)))
    np.testing.assert_allclose(own.scale, data.groupby("sex").std())
    np.testing.assert_allclose(pooled.location, data.groupby("sex").mean())
    assert (raw.location == 0).all() and (raw.scale == 1).all()
    np.testing.assert_allclose(own.standardized(1).std(axis=0, ddof=1), 1.0)


def changed(**columns):
    return table().assign(**columns)


@pytest.mark.parametrize(
    ("data", "group", "match"),
    [
        (table(), "gender", "'gender'"),
        (table()[[*"abc"]].to_numpy(), "sex", "the table has no names"),
        (changed(sex="m"), "sex", "single value 'm': there is nothing to compare"),
        (changed(sex=["m"] * 39 + ["f"]), "sex", "group 'f' has 1 row, at least 2"),
        (changed(sex=[None] * 2 + ["f", "m"] * 19), "sex", "missing in 2 rows, first in row 0"),
        (
            changed(sex=np.arange(N) / 7),
            "sex",
            "40 different values in 40 rows, which are no groups",
        ),
        (changed(sex=[1, "1"] * 20), "sex", "different values that are written '1'"),
        (table(), table()["sex"], "column 'sex' is the group of the rows and one of the variables"),
        (table()[[*"abc"]], table()["sex"][::-1], "labelled differently"),
        (table()[[*"abc"]], ["f", "m"], "`group` has 2 labels, and the table 40 rows"),
        (table()[[*"abc"]], np.zeros((N, 2)), "one label for each row"),
        (
            changed(a=lambda t: np.where(t["sex"] == "f", 1.0, t["a"])),
            "sex",
            "olumn 'a' of group 'f' has fewer than 2 different values",
        ),
        (
            {"x": table()[[*"abc"]], "y": table()[[*"ab"]]},
            None,
            "groups 'x' and 'y' have different columns, column 'c'",
        ),
        (
            {"x": table()[[*"abc"]], "y": table()[[*"ab"]]},
            None,
            "column 'c' is in one of them only",
        ),
        (
            pd.concat([table(), table()[["sex"]]], axis=1),
            "sex",
            "column 'sex' occurs more than once",
        ),
        # A quantity is named, not the columns that are constant in its groups.
        (
            changed(age=np.arange(N) // 2 + 0.5),
            "age",
            r"column 'age'\) has 20 different values in 40 rows, which are no groups: give labels.*pandas.cut",
        ),
        (changed(age=[17, *np.arange(39) // 13 + 18]), "age", "'17' has 1 row.*pandas.cut"),
        (table()[[*"abc"]], table()["a"].iloc[:9] > 0, "`group` has 9 labels, and the table 40"),
        ({"x": table()[[*"abc"]], "y": table()[[*"abc"]][:0]}, None, "group 'y' has no rows"),
        ({}, None, "empty dict"),
        (
            {"a": [1.0, 2.0], "b": [0.0, 1.0]},
            None,
            "one table for each group, and 'a': The array has",
        ),
        (
            {"f": table()[[*"abc"]], "m": table()[[*"abc"]].cov()},
            None,
            r"group 'm': .* covariance matrix.*grouped_gaussian_graphical\(cov=",
        ),
        ({"x": table(), "y": table()}, None, "olumn 'sex' holds text"),
    ],
)
def test_bad_groups_are_refused_with_the_remedy(data, group, match):
    with pytest.raises(TableError, match=match):
        grouped_table(data, group)


def test_arguments_of_another_kind():
    with pytest.raises(TypeError, match="`group` is needed"):
        grouped_table(table()[[*"abc"]])
    with pytest.raises(TypeError, match="given twice"):
        grouped_table({"x": table(), "y": table()}, "sex")
    with pytest.raises(ValueError, match='must be True, False or "group"'):
        grouped_table(table(), "sex", standardize="pooled")


def test_unequal_variances_are_remarked_upon():
    data = table()
    data["b"] *= np.where(data["sex"] == "f", 4.0, 1.0)
    with pytest.warns(
        TableWarning, match=r"'b'.*times as large in 'f' as in 'm'.*standardize=\"group\""
    ):
        grouped_table(data, "sex")
    grouped_table(data, "sex", standardize="group")


def test_a_mask_makes_two_groups_and_many_numbers_are_remarked_upon():
    data = table()[[*"abc"]]
    assert grouped_table(data, data["a"] > 0).labels == ("False", "True")
    longer = pd.concat([data] * 2).reset_index(drop=True) + np.arange(80)[:, None] % 7
    with pytest.warns(TableWarning, match="makes 20 groups of 20 numbers; of a quantity, give"):
        grouped_table(longer, np.arange(80) // 4, row_counts=np.ones(80))


@pytest.mark.parametrize("other", ["f ", "F", " f"])
def test_labels_that_differ_in_blanks_or_capitals_are_remarked_upon(other):
    data = table()[[*"abc"]]
    labels = np.array(["f", other, "m"])[np.arange(len(data)) % 3]
    with pytest.warns(TableWarning, match=r"blanks or capital letters only, '.*str.strip"):
        assert len(grouped_table(data, labels, standardize=False).labels) == 3


def test_rows_that_were_counted():
    data, times = table(), np.arange(N) % 3
    long = data.loc[data.index.repeat(times)].reset_index(drop=True)
    expected = grouped_table(long, "sex", row_counts=np.ones(len(long)))
    rest, sex = data[[*"abc"]], data["sex"]
    for found in (
        grouped_table(data, "sex", row_counts=times),
        grouped_table(data.assign(n=times), "sex", row_counts="n"),
        grouped_table(rest, pd.Categorical(sex), row_counts=times),
        grouped_table(rest, list(sex), row_counts=times),
    ):
        np.testing.assert_array_equal(found.table.values, expected.table.values)
        np.testing.assert_array_equal(found.group, expected.group)
    both = {label: rest[sex == label].assign(n=times[sex == label]) for label in ("f", "m")}
    apart = grouped_table(both, row_counts="n")
    np.testing.assert_allclose(apart.location, expected.location)
    with pytest.raises(TypeError, match="dict of counts for each"):
        grouped_table(both, row_counts=times)


def test_rows_of_known_groups():
    data = table()
    labels = ["m", "f"]
    for own in (
        rows_of_groups(data, "sex", labels),
        rows_of_groups(data[[*"abc"]], data["sex"], labels),
    ):
        assert [*own[0].columns] == [*"abc"]
        np.testing.assert_array_equal(own[1], data["sex"] == "f")
    more = pd.Categorical(data["sex"], [*labels, "x"])  # no group of the model, and not asked for
    np.testing.assert_array_equal(rows_of_groups(data[[*"abc"]], more, labels)[1], more.codes)
    assert rows_of_groups({"f": data[[*"abc"]]}, None, labels)[1].tolist() == [1] * N
    with pytest.raises(
        TableError, match="has the group 'x', and those of the model are 'm' and 'f'"
    ):
        rows_of_groups(data, np.where(data["a"] > 0, "x", "m"), labels)
    with pytest.raises(ValueError, match="give those of the new rows"):
        rows_of_groups(data, None, labels)


def test_covariances_of_groups_and_their_scales():
    data = table()
    rows = grouped_table(data, "sex")
    cov = {label: own[[*"abc"]].cov() for label, own in data.groupby("sex")}
    turned = {"f": cov["f"], "m": cov["m"].loc[[*"cab"], [*"cab"]]}
    sizes = dict(zip(rows.labels, rows.sizes.tolist(), strict=True))
    stacked = np.array([cov["f"], cov["m"]])
    for found in (
        grouped_covariances(cov, sizes),
        grouped_covariances(turned, rows.sizes),
        grouped_covariances(stacked, list(rows.sizes), ["f", "m"]),
        grouped_covariances([cov["f"], cov["m"]], rows.sizes, ("f", "m")),
        grouped_covariances(xr.DataArray(stacked, {"sex": ["f", "m"]}, ("sex", "i", "j")), sizes),
    ):
        assert found.labels == ("f", "m") and found.n == N
        np.testing.assert_allclose(found.scale, rows.scale)
        np.testing.assert_allclose(found.covariance, stacked)
        z = rows.standardized(1)
        np.testing.assert_allclose(found.scatter(1), z.T @ z)
    own = grouped_covariances(cov, sizes, standardize="group")
    np.testing.assert_allclose(own.scale, data.groupby("sex").std())


GOOD = np.array([[1.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize(
    ("cov", "n", "group", "match"),
    [
        ({"a": GOOD, "b": [[1.0, 2.0], [2.0, 1.0]]}, 20, None, "group 'b': `cov`: .* correlation"),
        ({"a": GOOD, "b": np.eye(3)}, 20, None, "groups 'a' and 'b' have different columns"),
        ({"a": GOOD}, 20, None, "single group 'a'"),
        ({}, 20, None, "empty dict"),
        ({1: GOOD, "1": GOOD}, 20, None, "group '1' of `cov` occurs more than once"),
        ([GOOD, GOOD], 20, ["a", "b", "c"], "a matrix for each of the 3 groups"),
        (GOOD, 20, ["a", "b"], "a matrix for each of the 2 groups"),
        ([GOOD, GOOD], 20, None, "`cov` of groups is a dict"),
        ({"a": GOOD, "b": GOOD}, 20, ["a", "b"], "`group` is given twice"),
        ({"a": GOOD, "b": GOOD}, {"a": 3, "c": 3}, None, "'b' and 'c' are in one of them"),
        ({"a": GOOD, "b": GOOD}, [3, 4, 5], None, "one for each of the 2 groups"),
        ({"a": GOOD, "b": GOOD}, [30, 1], None, "`n` must be"),
    ],
)
def test_bad_covariances_of_groups(cov, n, group, match):
    with pytest.raises((TypeError, ValueError), match=match):
        grouped_covariances(cov, n, group)


def test_counted_rows_and_letters_of_the_name_of_the_groups_may_be_as_many():
    counted = table().iloc[:6].assign(sex=[*"ffmmfm"], number=[4, 5, 6, 3, 1, 1])
    counted = counted.rename(columns={"sex": "gender"})
    found = grouped_table(counted, "gender", row_counts="number")
    assert found.labels == ("f", "m") and found.sizes.tolist() == [10, 10]


def test_unknown_scales_of_covariances_are_refused():
    with pytest.raises(ValueError, match=r'must be True or "group", it is \'pooled\''):
        grouped_covariances({"a": GOOD, "b": GOOD}, 50, standardize="pooled")


def test_remarks_about_covariances_name_the_group():
    with pytest.warns(TableWarning, match=r"[Gg]roup 'b': `cov` has rank 3"):
        grouped_covariances({"a": np.eye(3), "b": np.eye(3)}, [30, 3])
    with pytest.warns(TableWarning, match=r"'x0'.*9 times as large in 'b' as in 'a'"):
        grouped_covariances({"a": GOOD, "b": GOOD * [[9, 3], [3, 1]]}, 50)
