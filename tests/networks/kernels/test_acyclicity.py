"""Ancestors and reversal witnesses against paths found anew."""

import networkx as nx
import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from bayesstruct.networks.kernels import acyclicity as kernel

COMMON = settings(deadline=None, max_examples=60, derandomize=True)


def closure(adjacency):
    graph = nx.from_numpy_array(adjacency, create_using=nx.DiGraph)
    return nx.to_numpy_array(nx.transitive_closure_dag(graph), nodelist=range(len(adjacency)))


def stays_acyclic(adjacency, *changes):
    changed = adjacency.copy()
    for i, j, value in changes:
        changed[i, j] = value
    return nx.is_directed_acyclic_graph(nx.from_numpy_array(changed, create_using=nx.DiGraph))


def check(adjacency, ancestors, witnesses):
    np.testing.assert_array_equal(ancestors, closure(adjacency))
    built = np.empty_like(ancestors)
    assert kernel.build(adjacency, built)
    np.testing.assert_array_equal(ancestors, built)
    np.testing.assert_array_equal(ancestors @ ancestors * adjacency > 0, witnesses)


@COMMON
@given(st.integers(2, 9), st.lists(st.tuples(*[st.integers(0, 8)] * 3), max_size=60))
def test_any_sequence_of_legal_changes(d, changes):
    adjacency = np.zeros((d, d), np.int8)
    ancestors, witnesses = np.zeros((d, d), np.uint8), np.zeros((d, d), np.uint8)
    for first, second, kind in changes:
        i, j = first % d, second % d
        if adjacency[i, j]:
            legal = kernel.can_reverse(ancestors, i, j)
            assert legal == stays_acyclic(adjacency, (i, j, 0), (j, i, 1))
            assert legal == (witnesses[i, j] == 0)
            if kind % 2 and legal:
                kernel.reverse(adjacency, ancestors, i, j)
            else:
                kernel.delete(adjacency, ancestors, i, j)
            kernel.build_witnesses(adjacency, ancestors, witnesses)
        else:
            legal = kernel.can_add(ancestors, i, j)
            assert legal == stays_acyclic(adjacency, (i, j, 1))
            if legal:
                kernel.add(adjacency, ancestors, i, j)
                kernel.add_witnesses(adjacency, ancestors, witnesses, i, j)
        check(adjacency, ancestors, witnesses)


def test_deletion_with_another_path_and_without():
    adjacency = np.zeros((4, 4), np.int8)
    ancestors = np.zeros((4, 4), np.uint8)
    for i, j in [(0, 1), (1, 2), (0, 2), (2, 3)]:
        kernel.add(adjacency, ancestors, i, j)
    kernel.delete(adjacency, ancestors, 0, 2)
    assert ancestors[0, 2] and ancestors[0, 3]
    kernel.delete(adjacency, ancestors, 1, 2)
    assert not ancestors[0, 2] and not ancestors[0, 3] and ancestors[2, 3]


def test_a_cycle_is_reported():
    adjacency = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], np.int8)
    assert not kernel.build(adjacency, np.zeros((3, 3), np.uint8))


@pytest.mark.parametrize(("d", "graphs"), [(2, 3), (3, 25), (4, 543)])
def test_additions_reach_every_labelled_dag(d, graphs):
    """Robinson (1973): 1, 3, 25, 543 labelled directed acyclic graphs."""
    seen, front = {bytes(d * d)}, [bytes(d * d)]
    while front:
        adjacency = np.frombuffer(front.pop(), np.int8).reshape(d, d).copy()
        ancestors = np.empty((d, d), np.uint8)
        kernel.build(adjacency, ancestors)
        for i, j in np.argwhere(adjacency == 0):
            if kernel.can_add(ancestors, i, j):
                adjacency[i, j] = 1
                key = adjacency.tobytes()
                adjacency[i, j] = 0
                if key not in seen:
                    seen.add(key)
                    front.append(key)
    assert len(seen) == graphs
