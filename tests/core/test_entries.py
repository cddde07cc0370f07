"""Entries of matrices as one operation."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from bayesstruct.core.entries import entries

ROWS, COLUMNS = np.array([0, 2, 1, 2]), np.array([1, 0, 1, 0])


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
@pytest.mark.parametrize("dtype", ["int8", "float64"])
def test_entries_of_a_matrix(mode, dtype):
    x = pt.tensor("x", shape=(None, None), dtype=dtype)
    value = np.arange(6).reshape(3, 2).astype(dtype)
    found = pytensor.function([x], entries(x, ROWS, COLUMNS), mode=mode)(value)
    assert found.tolist() == [1, 4, 3, 4] and found.dtype == dtype


def test_entries_of_each_matrix_of_a_batch():
    x = pt.tensor3("x")
    value = np.arange(12.0).reshape(2, 3, 2)
    found = pytensor.function([x], entries(x, ROWS, COLUMNS))(value)
    assert np.array_equal(found, value[:, ROWS, COLUMNS])


def test_derivatives_add_up_where_an_entry_is_taken_twice():
    x = pt.dmatrix("x")
    slope = pytensor.grad((entries(x, ROWS, COLUMNS) ** 2).sum(), x)
    value = np.arange(6.0).reshape(3, 2)
    found = pytensor.function([x], slope)(value)
    right = np.zeros((3, 2))
    np.add.at(right, (ROWS, COLUMNS), 2 * value[ROWS, COLUMNS])
    assert np.array_equal(found, right)


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
def test_a_place_outside_is_refused(mode):
    x = pt.dmatrix("x")
    function = pytensor.function([x], entries(x, ROWS, COLUMNS), mode=mode)
    with pytest.raises(IndexError, match="outside"):
        function(np.zeros((2, 2)))
