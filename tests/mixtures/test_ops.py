"""Clusters of a partition."""

import itertools

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from bayesstruct.mixtures.ops import clusters_of


def expected(labels, k):
    """The same by looking at each label and those before it."""
    counts = [labels.count(c) for c in range(k)]
    ordered = all(
        0 <= label < k and label <= len(set(labels[:i])) for i, label in enumerate(labels)
    )
    return counts, ordered


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
def test_all_labels_of_four_objects(mode):
    x = pt.tensor("x", shape=(None,), dtype="int64")
    function = pytensor.function([x], [*clusters_of(x, 3)], mode=mode)
    for labels in itertools.product(range(-1, 4), repeat=4):
        counts, ordered, used = function(np.array(labels))
        right, in_order = expected(labels, 3)
        assert counts.tolist() == right and bool(ordered) is in_order
        assert used == np.count_nonzero(right)


def test_every_row_of_a_batch():
    x = pt.tensor("x", shape=(None, None), dtype="int64")
    counts, ordered, used = pytensor.function([x], [*clusters_of(x, 3)])(
        np.array([[0, 1, 1], [1, 0, 0]])
    )
    assert counts.tolist() == [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0]]
    assert ordered.tolist() == [True, False] and used.tolist() == [2, 2]


def test_labels_that_are_no_whole_numbers_are_refused():
    with pytest.raises(TypeError, match="whole numbers"):
        clusters_of(pt.dvector("x"), 3)
