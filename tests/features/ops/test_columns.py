"""Columns of a binary matrix."""

from itertools import pairwise

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from bayesstruct.features.ops.columns import columns_of, features_in_use, is_used


def expected(z):
    """The same by comparing columns as tuples."""
    columns = [tuple(c) for c in z.T]
    rank = [columns[: a + 1].count(columns[a]) for a in range(len(columns))]
    binary = np.isin(z, (0, 1)).all()
    ordered = binary and all(a >= b for a, b in pairwise(columns))
    return z.sum(axis=0), rank, ordered, (z.sum(axis=0) > 0).sum()


def left_ordered(z):
    return z[:, np.lexsort(z[::-1])[::-1]]


@pytest.fixture(scope="module", params=["NUMBA", "FAST_COMPILE"])
def function(request):
    matrix = pt.tensor("z", shape=(None, None), dtype="int8")
    return pytensor.function([matrix], [*columns_of(matrix)], mode=request.param)


@pytest.mark.parametrize("shape", [(1, 1), (3, 6), (8, 4), (5, 0)])
def test_equals_a_plain_count(function, rng, shape):
    for _ in range(20):
        z = rng.integers(0, 2, shape).astype("int8")
        for matrix in (z, left_ordered(z)):
            for ours, right in zip(function(matrix), expected(matrix), strict=True):
                assert np.array_equal(ours, right)


def test_other_entries_than_zero_and_one_are_not_in_order(function):
    assert not function(np.array([[2, 1], [0, 0]], "int8"))[2]
    assert not function(np.array([[1, -1], [0, 0]], "int8"))[2]


def test_every_matrix_of_a_batch(rng):
    z = rng.integers(0, 2, (2, 3, 4, 5)).astype("int8")
    batch = pt.tensor("z", shape=(None,) * 4, dtype="int8")
    used, number = pytensor.function([batch], [is_used(batch), features_in_use(batch)])(z)
    assert np.array_equal(used, z.any(axis=-2))
    assert np.array_equal(number, z.any(axis=-2).sum(axis=-1))


def test_derivatives_of_other_factors_pass(rng):
    z, w = pt.tensor("z", shape=(None, None), dtype="int8"), pt.vector("w")
    slope = pytensor.grad((w * is_used(z)).sum(), w)
    assert pytensor.function([z, w], slope, on_unused_input="ignore")(
        np.array([[1, 0]], "int8"), np.ones(2)
    ).tolist() == [1.0, 0.0]
