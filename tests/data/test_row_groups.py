"""Tables with the group of each row: what is read, and what is refused or remarked upon."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bayesstruct.data.row_groups import grouped_table
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
    assert grouped_table(data, levels).labels == ("m", "f")
    assert grouped_table(data, pd.Series(levels)).labels == ("m", "f")
    assert grouped_table(data, np.arange(N) % 3 * 5).labels == ("0", "5", "10")


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
        ({}, None, "empty dict"),
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
