"""Rows of a table that are the same in some columns, taken together with a weight."""

import numpy as np

__all__ = ["MERGED_FROM", "family_places", "merge_rows"]

MERGED_FROM = 4  # candidates from which on merging rows beforehand pays


def merge_rows(x, columns, states, weights):
    """Rows that stand for all rows, and their weights; unchanged unless half of the rows go.

    Variables of many values (0 states) forbid it.
    """
    from bayesstruct.networks.kernels.scores.count_subsets import row_classes

    m = x.shape[1]
    everything = slice(None)
    if (states[columns] == 0).any() or not m:
        return everything, weights
    codes = np.empty(m, np.int32)
    classes = row_classes(x, columns, states, codes, m // 2)
    if classes > m // 2:
        return everything, weights
    first = np.empty(classes, np.int64)
    first[codes[::-1]] = np.arange(m - 1, -1, -1)
    merged = [np.bincount(codes, row, classes) for row in weights]
    return first, np.array(merged, np.int32)


def family_places(k, f):
    """Child, candidates and fixed parents when their columns stand in this order."""
    return 0, np.arange(1, k + 1), np.arange(k + 1, k + f + 1)
