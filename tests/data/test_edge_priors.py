import numpy as np
import pandas as pd
import pymc as pm
import pytest

from bayesstruct.data import TableError, TableWarning
from bayesstruct.data.covariates import standardized_covariates
from bayesstruct.data.edge_priors import StochasticBlock, edge_probability_matrix, fixed_edges
from bayesstruct.data.labels import by_label, check_same_rows
from bayesstruct.data.names import nearest

NAMES = ("a", "b", "c")


def test_required_and_forbidden_edges():
    fixed = fixed_edges(NAMES, required=[("a", "b")], forbidden=[("c", "b")])
    np.testing.assert_array_equal(np.argwhere(fixed.required), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(np.argwhere(fixed.forbidden), [[1, 2], [2, 1]])
    for probability in (0.5, 0.2, np.full((3, 3), 0.7)):
        matrix = fixed.fill(probability)
        assert matrix[0, 1] == matrix[1, 0] == 1
        assert matrix[1, 2] == matrix[2, 1] == 0
        assert matrix[0, 2] == matrix[2, 0] == np.max(probability)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"required": [("a", "z")]}, "('a', 'z') is not a pair of columns"),
        ({"required": ["ab c"]}, "is not a pair of columns"),
        ({"required": ["ab"]}, "is not a pair of columns"),
        ({"required": ("a", "b")}, "for one edge pass required=[('a', 'b')]"),
        ({"forbidden": {"a": "b"}}, "not a dict: pass list(edges.items())"),
        ({"forbidden": [("a", "a")]}, "joins a column with itself"),
        ({"required": [("a", "b")], "forbidden": [("b", "a")]}, "both required and forbidden"),
    ],
)
def test_wrong_fixed_edges(kwargs, message):
    with pytest.raises(TableError) as error:
        fixed_edges(NAMES, **kwargs)
    assert message in str(error.value)


def test_fixed_edges_are_a_list_or_nothing():
    assert not fixed_edges(NAMES, None, None).forbidden.any()
    for wrong in (5, "ab"):
        with pytest.raises(ValueError, match="`forbidden` is a list of pairs of columns, not"):
            fixed_edges(NAMES, forbidden=wrong)


def test_probabilities_that_contradict_are_refused():
    matrix = np.full((3, 3), 0.5)
    matrix[0, 1] = matrix[1, 0] = 0
    with pytest.raises(TableError, match="a -- b has edge_probability 0, and is required"):
        edge_probability_matrix(NAMES, matrix, required=[("b", "a")])
    assert edge_probability_matrix(NAMES, 0.0, required=[("b", "a")])[0, 1] == 1  # all others


def test_probabilities_are_aligned_by_name():
    frame = pd.DataFrame(np.full((3, 3), 0.2), index=list("cab"), columns=list("bca"))
    frame.loc["a", "c"] = frame.loc["c", "a"] = 0.7
    matrix = edge_probability_matrix(NAMES, frame, required=[("a", "b")])
    assert matrix[0, 2] == matrix[2, 0] == 0.7
    assert matrix[0, 1] == 1.0
    assert matrix[1, 2] == 0.2


def test_a_distribution_is_not_recommended_where_none_is_learned():
    with pytest.raises(TableError, match=r"is a distribution; give a number .* 3 x 3 matrix$"):
        edge_probability_matrix(NAMES, pm.Beta.dist(1, 1), learned=False)


def test_values_of_columns_are_read_by_label():
    by_name = pd.Series([0.3, 0.1, 0.2], index=[*"cab"])
    assert by_label("node_probability", by_name, NAMES).tolist() == [0.1, 0.2, 0.3]
    numbered = pd.Series([0.3, 0.1, 0.2])
    assert by_label("node_probability", numbered, NAMES) is numbered
    for index, message in (("abd", "no value for column 'c'"), ("abcd", "column 'd', which")):
        with pytest.raises(TableError, match=message):
            by_label("node_probability", pd.Series(0.5, index=[*index]), NAMES)
    with pytest.raises(TableError, match="more than one value for column 'a'"):
        by_label("node_probability", pd.Series(0.5, index=[*"aabc"]), NAMES)


@pytest.mark.parametrize(
    ("probability", "message"),
    [
        (1.5, "between 0 and 1, it is 1.5"),
        (None, "no number"),
        (np.where(np.eye(3)[[1, 0, 2]] > 0, -0.5, 0.5), "between 0 and 1; for . -- . it is -0.5"),
        ("beta", r"no number \('beta'\).*pm.Beta.dist"),
        (np.full((2, 2), 0.5), "3 x 3"),
        (
            np.array([[0.5, 0.1, 0.5], [0.9, 0.5, 0.5], [0.5, 0.5, 0.5]]),
            "not symmetric; .* it is 0.1 and, in the other direction, 0.9",
        ),
        (pd.DataFrame(np.full((2, 2), 0.5), list("ab"), list("ab")), "'c'"),
    ],
)
def test_wrong_probabilities(probability, message):
    with pytest.raises(TableError, match=message):
        edge_probability_matrix(NAMES, probability)


def test_the_mean_of_a_block_prior_is_that_of_its_draws():
    prior = StochasticBlock(3, concentration=0.5, within=(3.0, 1.0), between=(1.0, 4.0))
    rng = np.random.default_rng(0)
    same = (rng.dirichlet([0.5] * 3, 100_000) ** 2).sum(axis=1)  # two nodes have the same label
    draws = same * 3.0 / 4.0 + (1.0 - same) * 1.0 / 5.0
    assert abs(prior.mean - draws.mean()) < 4.5 * draws.std() / np.sqrt(len(draws))


def test_covariates_are_standardised():
    coding, design = standardized_covariates(pd.DataFrame({"dose": [1.0, 2.0, 6.0]}), rows=3)
    assert list(coding.names) == ["dose"]
    np.testing.assert_allclose(design.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(design.std(axis=0, ddof=1), 1)
    np.testing.assert_allclose([coding.location, coding.scale], [[3.0], [np.sqrt(7)]])
    assert standardized_covariates(np.array([1.0, 2.0, 6.0]), rows=3)[1].shape == (3, 1)


@pytest.mark.parametrize(
    ("column", "rows", "message"),
    [
        ([1.0, 2.0], 3, "2 rows, the table has 3"),
        ([1.0, np.nan, 2.0], 3, "'dose' has values that are missing"),
        ([1.0, 1.0, 1.0], 3, "'dose' is constant"),
        (["x", "y", "z"], 3, "'dose' does not hold numbers .text, for example 'x'.*get_dummies"),
    ],
)
def test_wrong_covariates(column, rows, message):
    with pytest.raises(TableError, match=message):
        standardized_covariates(pd.DataFrame({"dose": column}), rows=rows)


@pytest.mark.parametrize("names", [["age"], ("age",), "age"])
def test_names_are_no_covariates(names):
    with pytest.raises(TableError, match=r"data\[\['age'\]\].*data.drop\(columns=\['age'\]\)"):
        standardized_covariates(names, rows=3)


def test_covariates_are_no_columns_of_the_table():
    ages = pd.DataFrame({"age": [1.0, 2.0, 6.0], "dose": [1.0, 0.0, 2.0]})
    with pytest.raises(TableError, match=r"'age' has the name.*data.drop\(columns=\['age'\]\)"):
        standardized_covariates(ages, 3, ["age", "mood"])
    # Names that nobody chose are no names.
    assert standardized_covariates(np.eye(3)[:, :1], 3, ["x0", "x1"])[0].names == ("x0",)
    assert standardized_covariates(pd.DataFrame(np.eye(3)[:, :1]), 3, ["0", "1"])[0].names == ("0",)


def test_dependent_covariates():
    dose = np.array([1.0, 2.0, 6.0, 4.0, 0.0])
    with pytest.raises(TableError, match="'dose' and 'again' are exact duplicates: keep one"):
        standardized_covariates(pd.DataFrame({"dose": dose, "again": dose}), rows=5)
    scaled = pd.DataFrame({"years": dose, "months": 12 * dose})
    with pytest.warns(TableWarning, match="'years' and 'months'.*leave one of them out"):
        coding, design = standardized_covariates(scaled, rows=5)
    assert list(coding.names) == ["years", "months"]
    np.testing.assert_allclose(design[:, 0], design[:, 1], rtol=1e-12)  # up to rounding


def test_nearest_name():
    assert "did you mean 'laplace'" in nearest("prior", "laplase", ["laplace", "spike_slab"])
    assert "did you mean" not in nearest("prior", "zzz", ["laplace"])
    text = nearest("column", "gene7x", [f"gene{k}" for k in range(200)])
    assert "did you mean 'gene7'" in text
    assert text.endswith("gene39, and 160 more")


def test_rows_with_other_labels_are_refused():
    data = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=list("abc"))
    check_same_rows(data, data[["x"]])
    check_same_rows(data, np.ones(3))
    with pytest.raises(TableError, match="reindex"):
        check_same_rows(data, data.iloc[::-1])
