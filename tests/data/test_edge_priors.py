import numpy as np
import pandas as pd
import pytest

from bayesstruct.data import TableError
from bayesstruct.data.covariates import check_same_rows, standardized_covariates
from bayesstruct.data.edge_priors import edge_probability_matrix, fixed_edges
from bayesstruct.data.names import nearest

NAMES = ("a", "b", "c")


def test_required_and_forbidden_edges():
    matrix = fixed_edges(NAMES, required=[("a", "b")], forbidden=[("c", "b")])
    assert matrix[0, 1] == matrix[1, 0] == 1
    assert matrix[1, 2] == matrix[2, 1] == 0
    assert matrix[0, 2] == 0.5


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"required": [("a", "z")]}, "('a', 'z') is not a pair of columns"),
        ({"required": ["ab c"]}, "is not a pair of columns"),
        ({"forbidden": [("a", "a")]}, "joins a column with itself"),
        ({"required": [("a", "b")], "forbidden": [("b", "a")]}, "both required and forbidden"),
    ],
)
def test_wrong_fixed_edges(kwargs, message):
    with pytest.raises(TableError) as error:
        fixed_edges(NAMES, **kwargs)
    assert message in str(error.value)


def test_probabilities_are_aligned_by_name():
    frame = pd.DataFrame(np.full((3, 3), 0.2), index=list("cab"), columns=list("bca"))
    frame.loc["a", "c"] = frame.loc["c", "a"] = 0.7
    matrix = edge_probability_matrix(NAMES, frame, required=[("a", "b")])
    assert matrix[0, 2] == matrix[2, 0] == 0.7
    assert matrix[0, 1] == 1.0
    assert matrix[1, 2] == 0.2


@pytest.mark.parametrize(
    ("probability", "message"),
    [
        (1.5, "between 0 and 1"),
        (np.full((2, 2), 0.5), "3 x 3"),
        (np.array([[0.5, 0.1, 0.5], [0.9, 0.5, 0.5], [0.5, 0.5, 0.5]]), "not symmetric"),
        (pd.DataFrame(np.full((2, 2), 0.5), list("ab"), list("ab")), "'c'"),
    ],
)
def test_wrong_probabilities(probability, message):
    with pytest.raises(TableError, match=message):
        edge_probability_matrix(NAMES, probability)


def test_covariates_are_standardised():
    names, design = standardized_covariates(pd.DataFrame({"dose": [1.0, 2.0, 6.0]}), rows=3)
    assert names == ["dose"]
    np.testing.assert_allclose(design.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(design.std(axis=0, ddof=1), 1)
    assert standardized_covariates(np.array([1.0, 2.0, 6.0]), rows=3)[1].shape == (3, 1)


@pytest.mark.parametrize(
    ("column", "rows", "message"),
    [
        ([1.0, 2.0], 3, "2 rows, the table has 3"),
        ([1.0, np.nan, 2.0], 3, "'dose' has cells that are missing"),
        ([1.0, 1.0, 1.0], 3, "'dose' is constant"),
        (["x", "y", "z"], 3, "'dose'"),
    ],
)
def test_wrong_covariates(column, rows, message):
    with pytest.raises(TableError, match=message):
        standardized_covariates(pd.DataFrame({"dose": column}), rows=rows)


def test_nearest_name():
    assert "did you mean 'laplace'" in nearest("prior", "laplase", ["laplace", "spike_slab"])
    assert "did you mean" not in nearest("prior", "zzz", ["laplace"])


def test_rows_with_other_labels_are_refused():
    data = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=list("abc"))
    check_same_rows(data, data[["x"]])
    check_same_rows(data, np.ones(3))
    with pytest.raises(TableError, match="reindex"):
        check_same_rows(data, data.iloc[::-1])
