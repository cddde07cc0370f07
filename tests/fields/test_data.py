"""Tables of states whose rows belong to groups."""

import numpy as np
import pandas as pd
import pytest

import bayesstruct as bs

from bayesstruct.fields.data import grouped_states


def frame(n=30):
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.integers(0, 2, (n, 3)), columns=list("abc")).assign(
        g=[*"xy"] * (n // 2)
    )


def test_forms_agree():
    table = frame()
    first = grouped_states(table, "g")
    apart = grouped_states(table[[*"abc"]], table["g"].to_numpy())
    np.testing.assert_array_equal(first.group, np.arange(30) % 2)
    assert first.labels == apart.labels == ("x", "y") and "groups 'x', 'y'" in repr(first)
    np.testing.assert_array_equal(first.table.codes, apart.table.codes)
    parts = {label: own.drop(columns="g") for label, own in table.groupby("g")}
    parts["y"] = parts["y"][["c", "a", "b"]]  # found by name
    joined = grouped_states(parts, None)
    np.testing.assert_array_equal(joined.table.codes[joined.group == 1], first.table.codes[1::2])


def test_counts_stand_for_rows():
    table = frame()
    counted = table.value_counts().rename("n").reset_index()
    whole = grouped_states(counted, "g", row_counts="n")
    other = grouped_states(counted.drop(columns=["g", "n"]), counted["g"], row_counts=counted["n"])
    parts = {label: own.drop(columns="g") for label, own in counted.groupby("g")}
    for found in (whole, other, grouped_states(parts, None, row_counts="n")):
        assert np.bincount(found.group).tolist() == [15, 15]
    with pytest.raises(TypeError, match="or the name of a column that all have"):
        grouped_states(parts, None, row_counts=[1, 2])
    with pytest.raises(bs.TableError, match="name the same column, 'n'"):
        grouped_states(counted, "n", row_counts="n")


def test_codes_of_missing_values_are_not_groups():
    table = frame().assign(g=[9, 1] * 15)
    table.loc[4, "a"] = 9
    found = grouped_states(table, "g", missing_codes=9)
    assert found.labels == ("1", "9") and found.table.missing.sum() == 1


def test_groups_given_twice_and_none():
    with pytest.raises(TypeError, match="`group` is given twice"):
        grouped_states({"x": frame()}, "g")
    with pytest.raises(bs.TableError, match="empty dict"):
        grouped_states({}, None)
