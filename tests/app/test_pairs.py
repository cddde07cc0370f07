"""Square tables and lists of pairs mean the same graph."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from bayesstruct.app.pairs import is_list, square
from bayesstruct.data.errors import TableError

NAMES = [*"abcd"]


@pytest.fixture
def graph():
    return nx.Graph([("a", "b"), ("b", "c"), ("a", "d")])


@pytest.fixture
def matrix(graph):
    return nx.to_pandas_adjacency(graph, nodelist=NAMES)


def forms(matrix):
    """Return the ways in which a square file can be read."""
    return {
        "rows are the index": matrix,
        "names in the first column": matrix.rename_axis("object").reset_index(),
        "no names of rows": matrix.reset_index(drop=True),
        "rows in another order": matrix.iloc[::-1],
    }


@pytest.mark.parametrize("form", forms(pd.DataFrame(index=NAMES, columns=NAMES, data=0.0)))
def test_square_files_are_the_matrix(form, matrix):
    frame = forms(matrix)[form]
    assert not is_list(frame)
    pd.testing.assert_frame_equal(square(frame, "links"), matrix, check_names=False)


def test_a_list_is_the_graph_that_networkx_makes_of_it(graph):
    frame = pd.DataFrame(graph.edges, columns=["source", "target"])
    right = nx.to_pandas_adjacency(graph, nodelist=NAMES)
    assert is_list(frame)
    pd.testing.assert_frame_equal(square(frame, "links"), right)
    directed = nx.DiGraph(list(graph.edges))
    right = nx.to_pandas_adjacency(directed, nodelist=NAMES)
    pd.testing.assert_frame_equal(square(frame, "links", directed=True), right)


def test_the_third_column_of_links_says_which_are_not_known():
    frame = pd.DataFrame({"from": [*"aab"], "to": [*"bcc"], "linked": [1.0, np.nan, 0.0]})
    found = square(frame, "links").to_numpy()
    np.testing.assert_array_equal(found, [[0, 1, np.nan], [1, 0, 0], [np.nan, 0, 0]])


def test_wins_are_counted():
    lines = pd.DataFrame({"winner": [*"aabc"], "loser": [*"bbaa"]})
    np.testing.assert_array_equal(square(lines, "wins"), [[0, 2, 0], [1, 0, 0], [1, 0, 0]])
    counted = pd.DataFrame({"winner": [*"abc"], "loser": [*"baa"], "times": [2, 1, 1]})
    pd.testing.assert_frame_equal(square(counted, "wins"), square(lines, "wins"))


def test_similarities_that_are_not_listed_are_not_known():
    lines = pd.DataFrame({"one": [*"ab"], "other": [*"bc"], "similarity": [0.5, 0.2]})
    found = square(lines, "similarities").to_numpy()
    assert np.isnan(found[0, 2]) and np.isnan(np.diag(found)).all()
    np.testing.assert_array_equal(found[[0, 1, 1, 2], [1, 0, 2, 1]], [0.5, 0.5, 0.2, 0.2])


def test_columns_that_are_left_out_take_their_rows_with_them(matrix):
    frame = matrix.rename_axis("object").reset_index().drop(columns="c")
    right = matrix.drop(index="c", columns="c")
    pd.testing.assert_frame_equal(square(frame, "links", part=True), right, check_names=False)


@pytest.mark.parametrize(
    ("columns", "kind", "says"),
    [
        ({"a": [0, 1], "b": [1, 0], "c": [1, 1]}, "covariances", "square one with the names"),
        ({"x": [*"ab"], "a": [0, 1], "z": [1, 0]}, "covariances", "have different names"),
        ({"x": [*"ab"], "a": [0, 1], "b": [*"uv"]}, "links", "holds text"),
        ({"s": [*"ab"], "t": [*"ba"], "w": [0.5, 2]}, "links", "leave it out with --drop w"),
        ({"s": [*"ab"], "t": [*"ba"], "w": [0, 1]}, "links", "in two lines with different"),
        ({"s": [*"aab"], "t": [*"abc"]}, "links", "'a' is paired with itself"),
        ({"s": ["a", None, "b"], "t": [*"bcc"]}, "links", "has no two names"),
        ({"s": [*"abb"], "t": [*"bcd"]}, "similarities", "add the similarity"),
        ({"s": [*"abb"], "t": [*"bcd"], "n": [1, 0.5, 1]}, "wins", "must hold counts"),
    ],
)
def test_other_tables_are_refused(columns, kind, says):
    with pytest.raises(TableError, match=says):
        square(pd.DataFrame(columns), kind)
