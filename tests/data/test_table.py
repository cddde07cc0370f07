"""The checks that a table goes through: each failure names the column and the remedy."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

from bayesstruct.data import Table, TableError, TableWarning


@pytest.fixture
def frame():
    values = np.random.default_rng(1).normal(size=(30, 3))
    return pd.DataFrame(values, columns=["a", "b", "c"])


def _with(**columns):
    values = np.random.default_rng(1).normal(size=(30, 3))
    return pd.DataFrame(values, columns=["a", "b", "c"]).assign(**columns)


def _with_cell(row, column, value):
    frame = _with()
    frame.iloc[row, column] = value
    return frame


def _named(*names):
    values = np.random.default_rng(1).normal(size=(30, len(names)))
    return pd.DataFrame(values, columns=names)


PROBLEMS = {
    "all missing": (_with(b=np.nan), ["'b'", "missing", "remove"]),
    "constant": (_with(b=3), ["'b'", "constant", "remove"]),
    "constant up to rounding": (_with(b=[0.3, 0.1 + 0.2] * 15), ["'b'", "up to rounding"]),
    "duplicates": (_with(d=lambda d: d.a), ["'a' and 'd'", "exact duplicates", "keep one"]),
    "text": (_with(b="high"), ["'b'", "'high'", "pandas.to_numeric"]),
    "text among numbers": (_with(b=["1.5", "-", "2,5"] * 10), ["'b'", "example '-'", "empty"]),
    "category": (_with(b=pd.Categorical(["u", "v"] * 15)), ["'b'", "'u'", "discrete"]),
    "date": (_with(b=pd.Timestamp("2020-01-01")), ["'b'", "2020-01-01", "days since"]),
    "duration": (_with(b=pd.Timedelta("1h")), ["'b'", "dates or times", "convert"]),
    "complex": (_with(b=1j), ["'b'", "complex", "modulus"]),
    "object": (_with(b=[{}] * 30), ["'b'", "{}", "leave them out"]),
    "infinite": (_with_cell(4, 1, -np.inf), ["'b'", "row 4", "NaN"]),
    "single": (_with(b=[1.0] + [np.nan] * 29), ["'b'", "single observed", "complete"]),
    "empty rows": (_with_cell([3, 7], slice(None), np.nan), ["3 and 7", "dropna(how='all')"]),
    "one row": (_with()[:1], ["1 row", "at least 2"]),
    "no row": (_with()[:0], ["0 rows", "at least 2"]),
    "one column": (_with()[["a"]], ["1 column ('a')", "at least 2"]),
    "empty": (pd.DataFrame(), ["empty", "2 columns"]),
    "empty list": ([], ["empty", "2 columns"]),
    "repeated name": (_with().set_axis(["a", "a", "b"], axis=1), ["'a'", "rename"]),
    "name as text": (_with().set_axis([1, "1", "b"], axis=1), ["'1'", "rename"]),
    "one label": (_named("A -- B", "C", "A", "B -- C"), ["'A -- B' and 'C'", "rename"]),
    "overlap": (_named("x --", "y", "x", "-- y"), ["'x --' and 'y'", "'x -- -- y'", "rename"]),
    "too wide": (np.zeros((2, 10_000)), ["49,995,000", "2,000 columns", "select"]),
    "ragged": ([[1, 2], [3]], ["different lengths"]),
    "one dimension": (np.arange(3.0), ["(3,)", "two dimensions"]),
    "series": (_with()["a"], ["Series", "at least 2"]),
    "path": ("cells.csv", ["'cells.csv'", "pandas.read_csv"]),
    "fields": (np.zeros(3, [("a", float), ("b", float)]), ["pandas.DataFrame(array)"]),
    "arcs with one label": (
        pd.DataFrame(np.eye(5, 4), columns=["a", "b -> c", "a -> b", "c"]),
        ["'a' and 'b -> c'", "'a -> b' and 'c'", "the same label", "no name contains '->'"],
    ),
    "dataset": (xr.Dataset({"a": 1}), ["Dataset", "DataArrays"]),
    "polars text": (pl.DataFrame({"a": [1, 2], "b": ["u", "v"]}), ["'b'", "'u'"]),
    "polars date": (pl.DataFrame({"a": [1, 2], "b": [datetime.date(2020, 1, 1)] * 2}), ["'b'"]),
    "text array": (np.array([["1", "a"], ["2", "b"]]), ["'x0' and 'x1'", "text"]),
}


@pytest.mark.parametrize(("data", "said"), PROBLEMS.values(), ids=PROBLEMS)
def test_error_names_column_and_remedy(data, said):
    with pytest.raises(TableError) as caught:
        Table.continuous(data)
    for words in said:
        assert words in str(caught.value)


def test_all_problems_in_one_message():
    data = _with(a=1, b="x", d=[np.inf] + [0.5, 2] * 14 + [1])
    with pytest.raises(TableError, match="3 problems") as caught:
        Table.continuous(data)
    for words in ["'a'", "constant", "'b'", "text", "'d'", "infinite"]:
        assert words in str(caught.value)


WARNINGS = {
    "cells": (_with_cell(slice(12), slice(2), np.nan), ["27% of the values", "at random"]),
    "column": (_with(a=[np.nan] * 16 + [*range(14)]), ["'a'", "50%", "leaving out"]),
    "binary": (_with(a=[0, 1] * 15), ["'a'", "binary", "discrete"]),
    "bool": (_with(a=[True, False] * 15), ["'a'", "binary"]),
    "collinear": (_with(total=lambda d: d.a - 2 * d.b), ["'a', 'b' and 'total'", "removing"]),
    "scaled": (_with(f=lambda d: 32 + 1.8 * d.c), ["'c' and 'f'", "linear combination"]),
    "rounded": (_with(t=lambda d: d.a + d.b).round(8), ["'a', 'b' and 't'"]),
}


@pytest.mark.parametrize(("data", "said"), WARNINGS.values(), ids=WARNINGS)
def test_warning_names_column_and_remedy(data, said):
    with pytest.warns(TableWarning) as caught:
        Table.continuous(data)
    assert len(caught) == 1
    assert caught[0].filename == __file__  # it points at the user's line
    for words in said:
        assert words in str(caught[0].message)


def test_libraries_agree(frame):
    frame.iloc[2, 1] = np.nan
    coords = {"column": ["a", "b", "c"]}
    tables = [
        Table.continuous(data)
        for data in (
            frame,
            pl.from_pandas(frame),
            pl.from_pandas(frame).lazy(),
            xr.DataArray(frame.to_numpy(), dims=("row", "column"), coords=coords),
            frame.astype(object).where(frame.notna(), None),
            frame.astype("Float64"),
        )
    ]
    for table in tables:
        assert table.names == ("a", "b", "c")
        np.testing.assert_array_equal(table.values, frame.to_numpy())
    for data in (frame.to_numpy(), frame.to_numpy().tolist(), np.ma.masked_invalid(frame)):
        table = Table.continuous(data)
        assert table.names == ("x0", "x1", "x2")
        np.testing.assert_array_equal(table.values, frame.to_numpy())


def test_numbers_of_other_types():
    data = pd.DataFrame(
        {
            "integer": pd.array([1, None, 3, 7], dtype="Int64"),
            "decimal": pd.Series([decimal.Decimal("0.5"), 1, pd.NA, 2.5], dtype=object),
        }
    )
    with pytest.warns(TableWarning, match="25% of the values"):
        values = Table.continuous(data).values
    np.testing.assert_array_equal(values, [[1, 0.5], [np.nan, 1], [3, np.nan], [7, 2.5]])


def test_standardization(frame):
    frame.iloc[2, 1] = np.nan
    data = frame * [1e200, 1e-200, 1] + [0, 0, 1e6]
    table = Table.continuous(data)
    np.testing.assert_allclose(table.location[1:], data.mean()[1:])
    # Rounding of 1e6 + x leaves 10 digits.
    np.testing.assert_allclose(np.nanmean(table.standardized, axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.nanstd(table.standardized, axis=0, ddof=1), 1, rtol=1e-9)
    assert np.isnan(table.standardized[2, 1])
    np.testing.assert_allclose(table.standardized * table.scale + table.location, data)


def test_nothing_is_rescaled_when_told_so(frame):
    table = Table.continuous(frame, standardize=False)
    np.testing.assert_array_equal(table.standardized, frame)
    np.testing.assert_array_equal(table.location, 0)
    np.testing.assert_array_equal(table.scale, 1)


def test_the_table_of_the_user_is_not_changed():
    values = np.random.default_rng(1).normal(size=(5, 2))
    table = Table.continuous(values)
    values[0, 0] = 7
    assert table.values[0, 0] != 7
    with pytest.raises(ValueError, match="read-only"):
        table.values[0, 0] = 7


def test_edges_and_coords(frame):
    table = Table.continuous(frame)
    assert (table.n, table.p, table.missing_share) == (30, 3, 0)
    assert table.edges == [(0, 1), (0, 2), (1, 2)]
    assert [index.tolist() for index in table.edge_index] == [[0, 0, 1], [1, 2, 2]]
    assert table.edge_names == ["a -- b", "a -- c", "b -- c"]
    assert list(table.coords) == ["observation", "node", "node_", "pair"]
    assert table.coords["node_"] == ["a", "b", "c"]
    assert repr(table) == "Table(30 observations, 3 variables)"


def test_the_separator_is_welcome_in_names_where_it_confuses_nothing():
    assert Table.continuous(_named("A -- B", "C", "D")).edge_names[0] == "A -- B -- C"


def test_names_of_several_levels_are_joined(frame):
    columns = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])
    assert Table.continuous(frame.set_axis(columns, axis=1)).names == ("a_1", "a_2", "b_1")


@pytest.mark.parametrize("shape", [(5, 40), (600, 500), (20, 2000)])
def test_wide_tables_work(shape):
    table = Table.continuous(np.random.default_rng(1).normal(size=shape))
    assert (table.n, table.p) == shape


def test_binary_columns_are_coded_by_their_larger_value():
    table = Table.binary(pd.DataFrame({"a": [5, 7, 7], "b": [True, False, True]}))
    np.testing.assert_array_equal(table.standardized, [[0, 1], [1, 0], [1, 1]])
    np.testing.assert_array_equal(table.values[:, 0], [5, 7, 7])
    assert not table.scale.flags.writeable


def test_binary_columns_have_two_values():
    with pytest.raises(TableError, match="'a' holds 3 different values") as error:
        Table.binary(pd.DataFrame({"a": [1, 2, 3], "b": [0, 1, 1], "c": [1.0, 0.5, np.inf]}))
    assert "'c' holds an infinite value" in str(error.value)
    missing = Table.binary(pd.DataFrame({"a": [0, 1, np.nan], "b": [0, 1, 1]}))
    assert missing.missing.sum() == 1


def test_arcs_are_ordered_by_their_target():
    table = Table.continuous(pd.DataFrame({"a": [1, 2, 4], "b": [3, 1, 2], "c": [0, 2, 1]}))
    assert table.arc_names == ["b -> a", "c -> a", "a -> b", "c -> b", "a -> c", "b -> c"]
    source, target = table.arc_index
    assert target.tolist() == [0, 0, 1, 1, 2, 2]
    assert source.tolist() == [1, 2, 0, 2, 0, 1]
