"""Arguments of functions: right values pass, wrong ones are named with a remedy."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bayesstruct.data.arguments import (
    generator,
    is_missing,
    number,
    numbers,
    probability,
    table_numbers,
    truth,
    whole_number,
)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int8(2), np.array(2.0)])
def test_numbers_of_any_type_pass(value):
    assert number("tol", value, above=1, least=2) == 2.0
    assert isinstance(number("tol", value), float)
    assert whole_number("folds", value, 1, 2) == 2
    assert isinstance(whole_number("folds", value, 1), int)


@pytest.mark.parametrize("value", ["2", None, True, np.True_, 2j, [2.0], b"2", np.ones(1), {2}])
def test_what_is_no_number_is_named(value):
    with pytest.raises(TypeError, match="`tol` must be one number, not"):
        number("tol", value)
    with pytest.raises(TypeError, match="`folds` must be a whole number, not"):
        whole_number("folds", value, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: number("tol", np.nan), "`tol` must be a finite number, it is nan"),
        (lambda: number("tol", np.inf), "`tol` must be a finite number, it is inf"),
        (lambda: number("tol", 0, above=0), "`tol` must be above 0, it is 0"),
        (lambda: number("tol", -1, least=0), "`tol` must be at least 0, it is -1"),
        (lambda: whole_number("folds", 2.5, 2), "from 2 up, it is 2.5"),
        (lambda: whole_number("folds", 1, 2, 9), "from 2 to 9, it is 1"),
        (lambda: whole_number("folds", 10, 2, 9), "from 2 to 9, it is 10"),
        (lambda: whole_number("folds", np.nan, 2), "from 2 up, it is nan"),
        (lambda: whole_number("folds", np.inf, 2), "from 2 up, it is inf"),
        (lambda: numbers("rates", None), "rates must be numbers, not None"),
        (lambda: numbers("rates", "abc"), "rates must be numbers, not text"),
        (lambda: numbers("rates", [1j]), "not complex; give real numbers"),
        (lambda: numbers("rates", np.array(["2020"], dtype="M8[Y]")), "not dates"),
        (lambda: numbers("rates", [True], flags=False), "not truth values"),
        (lambda: numbers("rates", [[1, 2], [3]]), "rates cannot be made an array"),
        (lambda: numbers("rates", [None, "a"]), "rates must be numbers, it holds 'a'"),
        (lambda: numbers("rates", [None, {}]), "rates must be numbers, it holds {}"),
        (lambda: numbers("rates", {"a": 1}), "not dict"),
    ],
)
def test_what_is_out_of_bounds_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("value", [0, 1, -0.1, np.nan, "a", None, True, [0.5]])
def test_what_is_no_probability_is_named(value):
    assert probability("prob", np.float32(0.5)) == 0.5
    with pytest.raises(ValueError, match="`prob` must be between 0 and 1"):
        probability("prob", value)


def test_truth_values():
    assert [truth("intercept", v) for v in (True, np.False_, 1, 0.0)] == [True, False, True, False]
    for value in ("no", None, 2, []):
        with pytest.raises(TypeError, match="`intercept` must be True or False, not"):
            truth("intercept", value)


def test_seeds():
    rng = np.random.default_rng(1)
    assert generator(rng) is rng
    assert generator([1, 2]).random() == np.random.default_rng([1, 2]).random()
    for value in ("a", -1, 1.5):
        with pytest.raises(TypeError, match="`random_seed` must be a whole number"):
            generator(value)


def test_missing_values_of_lists_and_tables_are_nan():
    np.testing.assert_array_equal(numbers("y", [None, 1, pd.NA, Decimal("2.5")])[1::2], [1.0, 2.5])
    assert np.isnan(numbers("y", [None, 1, pd.NA])[::2]).all()
    assert all(map(is_missing, (None, np.nan, np.float32("nan"), pd.NA, pd.NaT)))
    assert not any(map(is_missing, (0, "", "nan", False, np.inf)))
    frame = pd.DataFrame({"a": [1, None], "b": [True, False]}).astype({"a": "Int64"})
    for table in (frame, pl.from_pandas(frame)):
        np.testing.assert_array_equal(table_numbers(table), [[1.0, 1.0], [np.nan, 0.0]])
    with pytest.raises(ValueError, match="column 'b' is String, not numbers"):
        table_numbers(frame.assign(b=["u", "v"]))


def test_floats_are_not_copied():
    x = np.arange(3.0)
    assert numbers("x", x) is x
