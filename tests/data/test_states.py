"""Tables of discrete variables: every kind of column, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bayesstruct.data import StateTable, Table, TableError, TableWarning
from bayesstruct.data.checks import _log_partitions, equal_states
from bayesstruct.data.orders import warn_about_opposite_orders, warn_about_order


def test_rows_of_text_and_numbers():
    table = StateTable.read([["no", 1], ["yes", 3], ["no", 3]])
    assert table.codes.tolist() == [[0, 0], [1, 1], [0, 1]]
    assert table.levels == (("no", "yes"), (1, 3))
    assert table.states == (2, 2)
    assert table.ordered == (False, True)
    assert table.edge_names == ["x0 -- x1"]
    assert (table.n, table.p) == (3, 2)


def test_every_kind_of_column_of_pandas():
    frame = pd.DataFrame(
        {
            "gaps": [1, 2, None],
            "text": ["x", None, "y"],
            "ordered": pd.Categorical(["lo", "hi", "lo"], categories=["lo", "hi"], ordered=True),
            "unordered": pd.Categorical(["u", "v", "v"]),
            "nullable": pd.array([1, None, 0], dtype="Int64"),
            "flag": [True, True, False],
        }
    )
    table = StateTable.read(frame)
    assert table.names == tuple(frame.columns)
    assert table.levels == ((1, 2), ("x", "y"), ("lo", "hi"), ("u", "v"), (0, 1), (False, True))
    assert table.ordered == (True, False, True, False, True, True)
    assert table.codes.tolist() == [
        [0, 0, 0, 0, 1, 1], [1, -1, 1, 1, -1, 1], [-1, 1, 0, 1, 0, 0],
    ]  # fmt: skip
    assert table.missing.sum() == 3
    assert not table.codes.flags.writeable


def test_polars():
    frame = pl.DataFrame(
        {
            "a": [1, 2, None, 2],
            "b": ["x", None, "y", "x"],
            "c": pl.Series(["lo", "hi", "lo", "hi"], dtype=pl.Enum(["lo", "hi"])),
        }
    )
    table = StateTable.read(frame.lazy())
    assert table.levels == ((1, 2), ("x", "y"), ("lo", "hi"))
    assert table.ordered == (True, False, True)


@pytest.mark.parametrize("dtype", ["int8", "bool", "float32", "float64"])
def test_arrays(dtype):
    codes = np.array([[0, 1], [1, 0], [1, 1]])
    np.testing.assert_array_equal(StateTable.read(codes.astype(dtype)).codes, codes)


def test_masked_arrays_have_gaps():
    values = np.ma.masked_array([[0, 1], [1, 0], [1, 1]], [[0, 1], [0, 0], [0, 0]])
    assert StateTable.read(values).codes.tolist() == [[0, -1], [1, 0], [1, 1]]


def test_numbers_as_text_are_sorted_by_value():
    with pytest.warns(TableWarning, match="often stand for missing"):
        table = StateTable.read([["10", "nan"], ["9", "1"], ["1,0", "x"]])
    assert table.levels == (("1,0", "9", "10"), ("1", "nan", "x"))
    assert table.ordered == (True, False)


def test_an_order_that_nobody_gave():
    agreement = ["no", "perhaps", "yes"]
    frame = pd.DataFrame(
        {
            "text": ["no", "perhaps", "yes", "no"],
            "unordered": pd.Categorical(["no", "perhaps", "yes", "yes"]),
            "ordered": pd.Categorical(["no", "yes", "perhaps", "yes"], agreement, ordered=True),
            "two": ["no", "yes", "yes", "yes"],
            "years": [13, 13, 12, 8],
            "run": [2, 4, 3, 2],
            "apart": [1, 1, 7, 7],
        }
    )
    table = StateTable.read(frame)
    with pytest.warns(TableWarning) as warned:
        warn_about_order(table)
    beside, alphabet, gaps = (str(w.message) for w in warned)
    assert beside.startswith("Column 'two': text among columns of ordered states")
    assert "'no' below 'yes'" in beside
    assert alphabet.startswith("Columns 'text' and 'unordered': ")
    assert "'no', 'perhaps' and 'yes'" in alphabet
    assert gaps.startswith("Column 'years': ")
    assert "8, 12 and 13" in gaps
    warn_about_order(StateTable.read(frame[["ordered", "run", "apart"]]))  # says nothing


BINARY = [0, 1, 0]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([0.5, 1, 2], "not whole.*0.5.*pandas.cut"),
        ([1, 1, 1], "constant.*always 1"),
        ([None, None, None], "all values are missing"),
        ([1, 0, np.inf], "infinite"),
        (pd.date_range("2020", periods=3), "dates"),
        ([1, "x", 2], "'int' and 'str'"),
        ([1, "2", 2], "'int' and 'str'"),  # "2" and 2 would be two states, or one
        (["1", "2.5", "1"], r"text.*not whole.*'2\.5'.*to_numeric"),
    ],
)
def test_what_is_refused_names_the_column(column, words):
    with pytest.raises(TableError, match=f"(?s)(?i)'a'.*{words}|{words}.*'a'|'a'.*{words}"):
        StateTable.read(pd.DataFrame({"a": column, "b": BINARY}))


def test_categories_that_never_occur_are_states_with_a_remark():
    column = pd.Categorical(["x", "y", "x"], categories=["x", "z", "y"])
    frames = [
        pd.DataFrame({"a": column, "b": ["s", "t", "t"]}),
        pl.DataFrame(
            {"a": pl.Series(["x", "y", "x"], dtype=pl.Enum(["x", "z", "y"])), "b": list("stt")}
        ),
    ]
    for frame in frames:
        with pytest.warns(
            TableWarning, match="'a' never has 'z'.*remove_unused_categories.*states="
        ):
            table = StateTable.read(frame)
        assert table.levels[0] == ("x", "z", "y")
        assert table.codes[:, 0].tolist() == [0, 2, 0]
        assert table.unseen == {"a": ["z"]}


def test_declared_states(recwarn):
    frame = pd.DataFrame({"a": [3.0, np.nan, 1.0], "b": ["s", "t", "t"]})
    table = StateTable.read(frame, states={"a": [5, 3, 1]})
    assert table.levels == ((5, 3, 1), ("s", "t"))
    assert table.codes[:, 0].tolist() == [1, -1, 2]
    assert table.ordered == (True, False)
    assert StateTable.read([[0, 1], [1, 0], [1, 1]], states=range(3)).states == (3, 3)
    assert not recwarn.list


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ({"c": [1, 2]}, "unknown column 'c'"),
        ({"a": [1, 2]}, "'a' holds 3 .*not among its declared states 1 and 2: correct"),
        ({"a": ["1", "2", "3"]}, "'a' holds 1 .int.*text and numbers differ"),
        ({"a": [1, 1, 3]}, "'a' must be two or more different values"),
        ({"a": "123"}, "'a' must be a list"),
        ({"a": range(30)}, "'a' has 30 different values"),
    ],
)
def test_declared_states_that_cannot_be(states, words):
    with pytest.raises(TableError, match=words):
        StateTable.read(pd.DataFrame({"a": [1, 3, 2], "b": [0, 1, 1]}), states=states)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pd.DataFrame({"id": range(30), "b": [0, 1] * 15}), "30 different values"),
        (pd.DataFrame({"a": [1, 0, None], "b": [0, 1, None]}), "Row 2"),
        (pd.DataFrame({"a": [1, 0]}), "1 column"),
        (pd.DataFrame([[0, 1], [1, 0]], columns=["a", "a"]), "more than once"),
        ([[1, 2], [3]], "different lengths"),
        (np.zeros((0, 3)), "0 rows"),
        ([], "no column"),
        (np.zeros((3, 3000)), "3,000 columns"),
        (5, "not int"),
    ],
)
def test_tables_that_are_refused(data, words):
    with pytest.raises(TableError, match=words):
        StateTable.read(data)


def test_all_problems_are_said_at_once():
    frame = pd.DataFrame({"a": [1, 1, 1], "b": [0.5, 1, 2], "c": BINARY, "d": [1.5, 1, 2]})
    with pytest.raises(TableError, match=r"(?s)2 problems.*'b' and 'd'.*'b'.*0\.5") as error:
        StateTable.read(frame)
    assert str(error.value).count("not whole") == 1


@pytest.mark.parametrize("read", [StateTable.read, Table.binary])
def test_equal_columns_are_refused_when_chance_cannot_make_them(read):
    values = np.random.default_rng(2).integers(0, 2, (40, 3))
    copied = pd.DataFrame(values, columns=[*"abc"]).assign(d=lambda f: f["a"])
    with pytest.raises(TableError, match="'a' and 'd' are exact duplicates"):
        read(copied)
    # Twelve rows can be arranged in less than a thousand ways, a single 1 in forty.
    with pytest.warns(TableWarning, match="'a' and 'd' are the same in every row.*12 rows"):
        assert read(copied[:12]).p == 4
    rare = pd.DataFrame(np.eye(40, 2, dtype=int), columns=[*"ab"]).assign(c=lambda f: f["a"])
    with pytest.warns(TableWarning, match="'a' and 'c' are the same in every row"):
        read(rare)


def test_a_column_with_other_names_of_states_is_a_copy(rng):
    a = rng.integers(0, 3, 60)
    frame = pd.DataFrame({"a": a, "b": rng.integers(0, 3, 60), "c": np.array(["z", "x", "y"])[a]})
    with pytest.raises(TableError, match="'a' and 'c' are the same up to the names"):
        StateTable.read(frame)


def test_columns_whose_states_all_differ_are_no_copies_of_each_other():
    """With other names for the states all such columns are the same, whatever they say."""
    values = np.array([[1.0, 5.0], [2.0, 7.0], [3.0, 1.0], [4.0, 2.0]])
    assert _log_partitions(np.arange(20.0)) == pytest.approx(0.0, abs=1e-12)
    # Five places of the missing value, and three ways to pair the other four.
    assert _log_partitions(np.array([1, 1, 2, 2, np.nan])) == pytest.approx(np.log(15))
    assert equal_states(["a", "b"], values) == ([], [])


@pytest.mark.parametrize("text", ["", " ", "NA", "n/a", ".", "NULL"])
def test_states_that_may_be_no_states_are_warned_of(text):
    frame = pd.DataFrame(
        {"a": ["x", text, "y", "x"], "b": ["u", "v", "u", text], "c": list("stst")}
    )
    with pytest.warns(TableWarning, match=r"often stand for missing .*'a' .*'b' "):
        table = StateTable.read(frame)
    assert table.states == (3, 3, 2)


@pytest.mark.parametrize(
    ("levels", "odd"),
    [
        ([0, -9, 1], "-9"),
        ([-9, -8, 1, 2, 3], "-9 and -8"),
        ([1, 2, 3, 99], "99"),
        ([1, 2, 3, 4, 5, 9], "9"),
        (["1", "2", "99"], "'99'"),
        (["", "no", "NA"], "'' and 'NA'"),
    ],
)
def test_codes_of_missing_values_are_warned_of(levels, odd):
    column = pd.Series(levels, dtype=object)
    frame = pd.DataFrame({"x": column, "y": np.arange(len(levels)) % 2})
    with pytest.warns(TableWarning, match=rf"often stand for missing .*'x' \({odd}\)"):
        StateTable.read(frame)


@pytest.mark.parametrize(
    "levels",
    [
        [-1, 0, 1],
        [-2, -1, 0, 1, 2],
        [-1, 1, 1],
        list(range(11)),
        [7, 8, 9],
        [0, 2, 5],
        [True, False],
        pd.cut(pd.Series([1.0, 5.0, 9.0]), 3),
        ["1", "2", "3"],
    ],
)
def test_usual_numbers_are_not_warned_of(levels, recwarn):
    frame = pd.DataFrame({"x": levels, "y": np.arange(len(levels)) % 2})
    StateTable.read(frame)
    assert not recwarn.list


def test_the_same_states_in_another_order_are_warned_of(recwarn):
    orders = (["no", "yes"], ["yes", "no"])
    columns = [pd.Categorical(["no", "yes", v], o, ordered=True) for v, o in zip(orders[0], orders)]
    like = pd.Categorical(["no", "yes", "yes"])
    warn_about_opposite_orders(StateTable.read(pd.DataFrame({"a": columns[0], "b": like})))
    opposite = StateTable.read(pd.DataFrame({"a": columns[0], "b": columns[1]}))
    assert not recwarn.list
    with pytest.warns(TableWarning, match="'a' and 'b' have the same states in different orders"):
        warn_about_opposite_orders(opposite)


@pytest.mark.parametrize("twin", ["yes ", "Yes", " YES"])
def test_labels_that_differ_in_blanks_or_capitals_are_warned_of(twin):
    with pytest.warns(TableWarning, match="differ only in blanks or capitals"):
        table = StateTable.read([["yes", 1], [twin, 0], ["no", 0]])
    assert table.states == (3, 2)


def test_states_with_other_names_are_not_warned_of(recwarn):
    StateTable.read([["none", "missing", -1], ["mild", "no answer", 0], ["severe", "-", 1]])
    StateTable.read([[-1, True], [1, False], [-1, False]])
    assert not recwarn.list


@pytest.mark.parametrize(
    "column", [np.array([10**18, 10**18 + 1, 5]), [2**70, 2**70 + 1, 0], [-(2**53) - 1, 0, None]]
)
def test_numbers_that_floats_cannot_tell_apart_are_refused(column):
    frame = pd.DataFrame({"id": pd.Series(column, dtype=object), "b": [0, 1, 1]})
    with pytest.raises(TableError, match=r"Column 'id' holds whole numbers beyond .*make text"):
        StateTable.read(frame)
    text = frame.assign(id=[None if v is None else str(v) for v in column])
    assert StateTable.read(text).states == (len({v for v in column if v is not None}), 2)


def test_large_integers_of_any_frame_are_refused():
    values = [10**18, 10**18 + 1, 5]
    for frame in (
        pd.DataFrame({"id": values, "b": list("xyx")}),
        pl.DataFrame({"id": values, "b": list("xyx")}),
    ):
        with pytest.raises(TableError, match="holds whole numbers beyond"):
            StateTable.read(frame)
