"""Tables that mean something else than they seem: each is refused, remarked upon, or read rightly.

By kind: what the table is, who reads it, and what the message says or the number that is right.
"""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

from scipy.special import gammaln, logsumexp

import bayesstruct as bs

from bayesstruct import models
from bayesstruct.data import StateTable, Table, TableError, TableWarning, read_table
from bayesstruct.data.coding import StateCoding
from bayesstruct.data.covariance import CovarianceTable
from bayesstruct.data.covariates import standardized_covariates
from bayesstruct.data.edge_priors import edge_probability_matrix
from bayesstruct.data.given_graphs import graph_pairs
from bayesstruct.data.matrices import crosstab_remarks, matrix_problems
from bayesstruct.data.orders import warn_about_order, warn_about_presence, warn_about_words
from bayesstruct.data.recoding import repeated_rows, tables_without_codes, without_codes
from bayesstruct.data.remarks import column_remarks, copied_rows, far_remarks, odd_codes
from bayesstruct.features.data.choices import ChoiceTable
from bayesstruct.features.data.links import LinkTable
from bayesstruct.graphs.truth import adjacency, arc_matrix
from bayesstruct.mixtures.data import RegressionTable
from bayesstruct.networks.data.arcs import parent_prior
from bayesstruct.networks.data.tables import network_table
from bayesstruct.networks.solvers.known_order import known_order
from bayesstruct.series.data import SeriesTable

NORMAL = np.random.default_rng(1).normal(size=(100, 3))
ANSWERS = np.random.default_rng(2).integers(1, 6, (100, 3))


def _normal(**columns):
    return pd.DataFrame(NORMAL, columns=["a", "b", "c"]).assign(**columns)


def _with(value, rows=8, low=0.0, scale=1.0):
    """A column of measurements of which the first rows hold a code."""
    column = low + scale * np.random.default_rng(3).normal(size=100)
    column[:rows] = value
    return _normal(b=column)


def _answers(**columns):
    return pd.DataFrame(ANSWERS, columns=["a", "b", "c"]).assign(**columns)


def _words(**pairs):
    """Columns of two states each."""
    rng = np.random.default_rng(6)
    return pd.DataFrame(
        {name: [own[k] for k in rng.integers(0, 2, 100)] for name, own in pairs.items()}
    )


def _correlations():
    return _normal().corr()


def _ordinal(data):
    warn_about_order(StateTable.read(data))


def _logs_like(first):
    column = np.exp(NORMAL[:, 0] * 1.5)
    return _normal(b=column + first)


REMARKS = {
    # codes for missing values among measurements
    "-999 in 8 rows": (Table.continuous, _with(-999), ["'b' (-999)", "missing_codes={'b': -999}"]),
    "-999 once": (Table.continuous, _with(-999, 1), ["'b' (-999)"]),
    "-9 among ages": (Table.continuous, _with(-9, low=40, scale=5), ["'b' (-9)"]),
    "-1 among incomes": (Table.continuous, _with(-1, low=40, scale=5), ["'b' (-1)"]),
    "99 among z-scores": (Table.continuous, _with(99), ["'b' (99)"]),
    "9999": (Table.continuous, _with(9999, low=300, scale=50), ["'b' (9999)"]),
    "two codes": (Table.continuous, _with([-99, -98] * 4), ["'b' (-99, -98)", "{'b': [-99, -98]}"]),
    "int16 underflow": (Table.continuous, _with(-32768), ["-32768"]),
    "zeros of a blood pressure": (Table.continuous, _with(0, low=70, scale=5), ["'b' (0)"]),
    "codes of a response": (
        lambda d: RegressionTable.read(d, "b", "gaussian"), _with(-999), ["'b' (-999)"],
    ),
    "codes in series": (
        lambda d: SeriesTable.read([d, d]), _with(-999), ["often stand"],
    ),
    "codes in covariates": (
        lambda d: standardized_covariates(d, 100), _with(-999), ["Covariates: ", "-999", "impute"],
    ),
    "codes in numbers for bge": (lambda d: network_table(d, "bge"), _with(-999), ["-999"]),
    "-9 among z-scores": (Table.continuous, _with(-9), ["'b' (-9)", "missing_codes={'b': -9}"]),
    "-9 in features": (lambda d: Table.continuous(d, normal=False), _with(-9, 30), ["'b' (-9)"]),
    "9 in a response": (lambda d: RegressionTable.read(d, "b", "gaussian"), _with(9), ["'b' (9)"]),
    "-9 in a predictor": (lambda d: RegressionTable.read(d, "a", "gaussian"), _with(-9), ["'b' (-9)"]),
    "-9 in series": (lambda d: SeriesTable.read([d, d]), _with(-9), ["'b' (-9)"]),
    "-9 in ratings": (LinkTable.ratings, _with(-9), ["ratings", "(-9)", "missing_codes=-9"]),
    "-9 for bge": (lambda d: network_table(d, "bge"), _with(-9), ["'b' (-9)"]),
    # codes among states
    "9 in answers": (StateTable.read, _answers(b=[9, *ANSWERS[1:, 1]]), ["'b' (9)", "missing_codes={'b': 9}"]),
    "-9 in answers": (StateTable.read, _answers(b=[-9, *ANSWERS[1:, 1]]), ["'b' (-9)"]),
    "99 as text": (StateTable.read, _answers(b=["99", *ANSWERS[1:, 1].astype(str)]), ["'99'"]),
    "NA as text": (StateTable.read, _answers(b=["NA", "x", *"yz" * 49]), ["'NA'"]),
    # states read as measurements
    "0 and 1": (Table.continuous, _normal(b=[0, 1] * 50), ["'b'", "binary (0 and 1 only)"]),
    "1 and 2": (Table.continuous, _normal(b=[1, 2] * 50), ["'b'", "binary (1 and 2 only)"]),
    "-1 and 1": (Table.continuous, _normal(b=[-1, 1] * 50), ["'b'", "binary (-1 and 1 only)"]),
    "two kinds of pairs": (
        Table.continuous, _normal(b=[1, 2] * 50, c=[0, 1, 1, 1] * 25), ["'b' and 'c'", "1 and 2 only in 'b'"],
    ),
    "Likert items": (Table.continuous, _answers(), ["'a', 'b' and 'c'", "few whole numbers", "1, 2, 3, 4"]),
    "Likert item with a code": (
        Table.continuous, _normal(b=[99, 99, *ANSWERS[2:, 1]]), ["'b' (99)", "few whole numbers"],
    ),
    "small counts": (Table.continuous, _normal(b=np.arange(100) % 4), ["few whole numbers"]),
    "Likert items for bge": (lambda d: network_table(d, "bge"), _answers(), ["few whole", "bdeu"]),
    # measurements on another scale than they seem
    "skewed": (Table.continuous, _logs_like(0), ["'b'", "skew", "np.log(data)"]),
    "skewed with zeros": (Table.continuous, _logs_like(-0.2), ["'b'", "logarithms or ranks"]),
    "outlier": (Table.continuous, _with(1e6, 1), ["'b'", "outliers"]),
    "row numbers": (Table.continuous, _normal(b=range(100)), ["'b'", "counts the rows"]),
    "row numbers from 1": (Table.continuous, _normal(b=range(1, 101)), ["counts the rows"]),
    "years": (Table.continuous, _normal(year=range(1924, 2024)), ["counts the rows", "keep it (data['year'] / 10"]),
    "dates as numbers": (
        Table.continuous, _normal(b=[20240131 + 100 * (k % 9) for k in range(100)]), ["'b'", "dates as numbers"],
    ),
    # states in an order that nobody gave
    "sex among items": (_ordinal, _answers(b=list("mf") * 50), ["'b'", "one more of them"]),
    "words in alphabetical order": (
        _ordinal, _answers(b=["low", "mid", "high", "low"] * 25), ["'b'", "'high', 'low' and 'mid'"],
    ),
    "high counts as 0": (
        lambda d: warn_about_words(StateTable.read(d)),
        _words(smoke=("no", "yes"), dose=("low", "high")),
        ["olumn 'dose':", "'low', and 'high' as 0", "states="],
    ),
    "1 means yes": (
        lambda d: warn_about_presence(StateTable.read(d)), _words(a=(1, 2), b=(1, 2)),
        ["'a' and 'b'", "'a': 2, not 1", "states={'a': [2, 1]}"],
    ),
    "control counts as present": (
        lambda d: warn_about_presence(StateTable.read(d)),
        _words(a=("control", "case"), b=("no", "yes")), ["olumn 'a':", "'control'"],
    ),
    "ill counts as absent though b was declared": (
        lambda d: models.hidden_causes(d, states={"b": ["no", "yes"]}),
        _words(a=("ill", "well"), b=("no", "yes")), ["olumn 'a':", "'well', not 'ill'"],
    ),
    "numbers between which some never occur": (_ordinal, _answers(b=[1, 2, 5, 5] * 25), ["'b': 1, 2 and 5", "states="]),
    "capitals": (StateTable.read, _answers(b=["Yes", "yes", "no", "no"] * 25), ["blanks or capitals"]),
    "category of a larger table": (
        StateTable.read, _answers(b=pd.Categorical(list("xy") * 50, list("xyz"))), ["'b' never has 'z'"],
    ),
    "target column": (
        lambda d: network_table(d, "bdeu"), _answers(t=["none", "a", "b", "c"] * 25), ["'t'", "interventions"],
    ),
    # tables of another layout
    "frequency table": (
        StateTable.read, pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "count": [9, 2, 3, 2]}),
        ["'count'", "row_counts='count'"],
    ),
    "polars frequency table": (
        StateTable.read, pl.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "Freq": [9, 2, 3, 2]}),
        ["row_counts='Freq'"],
    ),
    "transposed": (Table.continuous, _normal()[:5].T, ["'a', 'b' and 'c'", "data.T"]),
    "transposed states": (StateTable.read, pd.DataFrame([[0, 1], [1, 0], [1, 1]], list("abc")), ["data.T"]),
    "names of rows in xarray": (
        Table.continuous, xr.DataArray(NORMAL[:20].T, dims=("v", "r"), coords={"v": list("abc")}), ["data.T"],
    ),
    "three rows of many columns": (Table.continuous, NORMAL.T, ["3 rows of 100 columns", "data.T"]),
    "a table read twice": (Table.continuous, pd.concat([_normal()] * 2), ["100 of 200 rows are copies"]),
    "a join that repeats rows": (
        lambda d: network_table(d, "bge"), pd.concat([_normal(), _normal()[:9]]), ["9 of 109 rows", "drop_duplicates"],
    ),
    # identifiers and times among the variables
    "shuffled row numbers": (
        Table.continuous, _normal(b=np.random.default_rng(5).permutation(100)), ["'b'", "counts the rows"],
    ),
    "index of a larger file": (
        Table.continuous, _normal().assign(**{"Unnamed: 0": np.random.default_rng(5).permutation(900)[:100]}),
        ["'Unnamed: 0'", "index_col=0"],
    ),
    "identifiers as numbers": (
        Table.continuous, _normal(id=7 * np.random.default_rng(5).permutation(100)), ["'id'", "leave it out"],
    ),
    "time among series": (
        lambda d: SeriesTable.read([d, d]), _normal(b=np.arange(100) / 4), ["'b'", "is the time"],
    ),
    "groups as numbers among covariates": (
        lambda d: standardized_covariates(d, 100), _normal(b=np.arange(100) % 4 + 1), ["'b'", "get_dummies"],
    ),
    # series in another order than time
    "newest row first": (
        lambda d: SeriesTable.read([d, d]), _normal().set_axis(pd.date_range("2020", periods=100)[::-1]),
        ["'series 0'", "ascending", "sort_index"],
    ),
    "rows sorted by a value": (
        lambda d: SeriesTable.read(d, "s"), _normal(s=["u", "v"] * 50).sort_values("a"), ["not in ascending order"],
    ),
    "rows left out of a series": (
        lambda d: SeriesTable.read([d, d]), _normal().drop(index=[7, 8]), ["left out", "by 1, but 6 is followed by 9", "reindex", "reset_index"],
    ),
    "rows left out between steps of a tenth": (
        lambda d: SeriesTable.read([d, d]), _normal().set_axis(np.arange(100) * 0.1).drop(index=0.5), ["0.4 is followed by 0.6"],
    ),
    # one state with two names
    "1 and 1.0 as text": (StateTable.read, _answers(b=["1", "1.0", "2", "2"] * 25), ["'b' ('1.0')"]),
    "01 and 1 as text": (StateTable.read, _answers(b=["01", "1", "2", "2"] * 25), ["'b' ('1')"]),
    "+1 and 1 as text": (StateTable.read, _answers(b=["+1", "1", "-5", "x"] * 25), ["'b' ('1')"]),
    "accents of two kinds": (StateTable.read, _answers(b=["caf\u00e9", "cafe\u0301"] * 50), ["is written"]),
    "blanks that do not break": (StateTable.read, _answers(b=["a\u00a0b", "a b"] * 50), ["is written"]),
    # triangles
    "upper triangle of links": (LinkTable.links, np.triu(np.ones((4, 4)), 1) * (np.arange(4) < 3), ["data + data.T"]),
    "upper triangle of arc probabilities": (
        lambda d: parent_prior(("a", "b", "c"), "edge", edge_probability=d), np.triu(np.full((3, 3), 0.4), 1),
        ["one side", "matrix + matrix.T", "tiers="],
    ),
    "upper triangle of probabilities of predictors": (
        lambda d: models.ising_neighbourhoods(d, inclusion=np.triu(np.full((2, 2), 0.4), 1)), _words(a=(0, 1), b=(0, 1)),
        ["`inclusion` is zero on one side", "filterwarnings"],
    ),
    # ratings and similarities
    "zeros of no rating": (
        LinkTable.ratings, np.where(np.arange(300).reshape(100, 3) % 3, 0, ANSWERS), ["ratings", "(0)"],
    ),
    "some zeros of no rating": (
        LinkTable.ratings, np.where(np.random.default_rng(5).random((100, 3)) < 0.3, 0, ANSWERS), ["ratings", "(0)"],
    ),
    "row numbers among ratings": (
        LinkTable.ratings, np.column_stack([range(20), ANSWERS[:20]]), ["Ratings: column 'x0': counts the rows"],
    ),
    # predictors and a response
    "row numbers among predictors": (
        lambda d: RegressionTable.read(d, "a", "gaussian"), _normal(id=range(100)), ["'id'", "counts the rows"],
    ),
    "0 and 1 as a response": (
        lambda d: RegressionTable.read(d, "b", "gaussian"), _normal(b=[0, 1, 1, 0] * 25), ["'b'", "binary", "logistic"],
    ),
    "-999 in similarities": (
        LinkTable.similarities, np.where(np.eye(9)[::-1] + np.eye(9), -999, 0.5 + np.outer(*2 * [range(9)]) / 99),
        ["similarities", "-999"],
    ),
    "distances as similarities": (
        LinkTable.similarities, abs(NORMAL[:9, :1] - NORMAL[:9, :1].T), ["as distances do", "data.max() - data"],
    ),
    # codes that are no codes
    "a mistyped code": (lambda d: without_codes(d, -99), _with(-999), ["-99", "no value", "spelling"]),
}  # fmt: skip


@pytest.mark.parametrize(("read", "data", "said"), REMARKS.values(), ids=REMARKS)
def test_a_remark_says_what_the_table_may_be(read, data, said):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        read(data)
    text = "\n".join(str(w.message) for w in found if issubclass(w.category, TableWarning))
    for words in said:
        assert words in text


REFUSED = {
    # matrices instead of rows
    "df.corr()": (Table.continuous, _correlations(), ["correlation matrix", "cov=matrix, n="]),
    "np.corrcoef": (Table.continuous, np.corrcoef(NORMAL.T), ["correlation matrix"]),
    "df.cov()": (Table.continuous, _normal().cov(), ["covariance matrix", "cov=matrix"]),
    "lower triangle": (
        Table.continuous, _correlations().where(np.tri(3, dtype=bool)), ["correlation matrix"],
    ),
    "2 x 2 correlations": (Table.continuous, np.array([[1, 0.3], [0.3, 1]]), ["correlation matrix"]),
    "labels in a column": (
        Table.continuous, _correlations().reset_index(names="variable"), ["correlation matrix"],
    ),
    "polars correlations": (
        Table.continuous, pl.from_pandas(_correlations().reset_index(names="variable")), ["correlation"],
    ),
    "xarray correlations": (
        Table.continuous, xr.DataArray(_correlations(), dims=("v", "w")), ["correlation matrix"],
    ),
    "distances": (
        Table.continuous, abs(NORMAL[:4, :1] - NORMAL[:4, :1].T), ["pairs of its columns", "distances"],
    ),
    "adjacency": (StateTable.read, pd.DataFrame(1 - np.eye(3, dtype=int), list("abc"), list("abc")), ["links"]),
    "adjacency as binary": (
        Table.binary, pd.DataFrame(1 - np.eye(3, dtype=int), list("abc"), list("abc")), ["links"],
    ),
    "correlations for bge": (lambda d: network_table(d, "bge"), _correlations(), ["bayesian_network(cov="]),
    # lists that fall apart
    "list of dicts": (Table.continuous, [{"a": 1, "b": 2}, {"a": 2, "b": 1}], ["dictionaries", "DataFrame(rows)"]),
    "list of dicts of states": (StateTable.read, [{"a": 1, "b": 2}, {"a": 2, "b": 1}], ["dictionaries"]),
    "lines of text": (Table.continuous, ["1,2", "3,4"], ["text", "split"]),
    "words as rows": (StateTable.read, ["yes", "nos"], ["letter by letter"]),
    "sets": (StateTable.read, [{1, 2}, {2, 3}], ["sets", "order"]),
    "columns in a list": (Table.continuous, [NORMAL[:, 0], NORMAL[:, 1]], ["column_stack"]),
    "Series in a list": (Table.continuous, [_normal()["a"], _normal()["b"]], ["Series", "concat"]),
    "dict of columns": (Table.continuous, {"a": [1, 2], "b": [2, 1]}, ["pandas.DataFrame(data)"]),
    # numbers that are no numbers
    "decimal commas": (Table.continuous, _normal(b=["1,5", "2,5"] * 50), ["'b'", "to_numeric"]),
    "years as dates": (Table.continuous, _normal(b=pd.Timestamp("2020-01-01")), ["dates"]),
    "identifiers": (StateTable.read, _answers(b=range(100)), ["100 different values", "identifier"]),
    "1 and '1'": (StateTable.read, _answers(b=[1, "1"] * 50), ["'int' and 'str'"]),
    "codes of no column": (lambda d: without_codes(d, {"z": -9}), _normal(), ["unknown column 'z'"]),
    "a code that is missing": (lambda d: without_codes(d, [None]), _normal(), ["numbers or text"]),
    # states that were declared otherwise
    "undeclared state": (lambda d: StateTable.read(d, states={"a": [1, 2, 3, 4]}), _answers(), ["'a' holds 5"]),
    "text for numbers": (lambda d: StateTable.read(d, states={"a": list("12345")}), _answers(), ["text and numbers"]),
    "BIC without observations": (
        lambda d: network_table(d, "multinomial", states={"a": range(9)}), _answers(), ["probability 0", "bdeu"],
    ),
    "9 in a binary table": (
        Table.binary, np.where(np.arange(100)[:, None] < 4, 9, np.random.default_rng(4).integers(0, 2, (100, 3))),
        ["3 different values", "missing_codes={'x0': 9"],
    ),
    # interventions
    "NA in a mask": (
        lambda d: network_table(d, "bge", pd.DataFrame({"a": pd.array([True, None] * 50, "boolean")})),
        _normal(), ["'a'", "missing values and text are neither"],
    ),
    "NA in an object mask": (
        lambda d: network_table(d, "bge", np.full((100, 3), pd.NA)), _normal(), ["neither"],
    ),
    "text in a mask": (
        lambda d: network_table(d, "bge", pd.DataFrame({"a": ["no"] * 100})), _normal(), ["neither"],
    ),
    "a mask in another order": (
        lambda d: network_table(d, "bge", pd.DataFrame({"a": [True] * 100}, index=range(99, -1, -1))),
        _normal(), ["another order"],
    ),
    "hidden values in a mask": (
        lambda d: network_table(d, "bge", np.ma.array(np.zeros((100, 3)), mask=NORMAL > 2)), _normal(), ["neither"],
    ),
    "a column of a mask twice": (
        lambda d: network_table(d, "bge", pd.concat([d[["a"]] > 0, d[["a"]] < 0], axis=1)), _normal(), ["more than once"],
    ),
    # rows in another order
    "response in another order": (
        lambda d: RegressionTable.read(d, d["a"].rename("y").sort_values(), "gaussian"), _normal(),
        ["rows of the response", "another order"],
    ),
    "counts in another order": (
        lambda d: repeated_rows(pd.Series(range(100), index=range(99, -1, -1)), d), _normal(), ["`row_counts`", "reindex"],
    ),
    "covariates in another order beside counts": (
        lambda d: repeated_rows([1] * 100, d, d[::-1]), _normal(), ["covariates", "another order"],
    ),
    # hidden values
    "response under a mask": (
        lambda d: RegressionTable.read(d, np.ma.array(range(100), mask=NORMAL[:, 0] > 2), "gaussian"), _normal(),
        ["'response': missing values"],
    ),
    "covariate under a mask": (
        lambda d: standardized_covariates(d, 100), np.ma.array(NORMAL[:, 0], mask=NORMAL[:, 0] > 2), ["missing"],
    ),
    "codes of a table in covariates without names": (
        lambda d: models.gaussian_graphical(d, covariates=np.where(d > 1, -9, d)[:, :1], missing_codes={"x0": -9}), NORMAL,
        ["'x0'", "`missing_codes`", "names that differ"],
    ),
    "codes of a table in its response": (
        lambda d: models.dp_glm(d, np.where(d["a"] > 1, -9, d["a"]), missing_codes=-9), _normal(), ["'response'", "`missing_codes`"],
    ),
    "rows of xarray interventions in another order": (
        lambda d: network_table(
            d, "bge", xr.DataArray(np.zeros((100, 3)), dims=("r", "v"), coords={"r": np.arange(100)[::-1]})
        ),
        _normal(), ["another order"],
    ),
    "names of rows, but not of columns, of a known graph": (
        lambda d: arc_matrix(d, ["a", "b"]), xr.DataArray(np.eye(2, k=1), dims=("r", "v"), coords={"r": ["b", "a"]}),
        ["names of rows"],
    ),
    "counts under a mask": (
        lambda d: repeated_rows(np.ma.array([1] * 100, mask=NORMAL[:, 0] > 2), d), _normal(), ["whole numbers from 0"],
    ),
    "probabilities under a mask": (
        lambda d: edge_probability_matrix(("a", "b", "c"), np.ma.masked_equal(d, 0.3)), np.full((3, 3), 0.3),
        ["not between 0 and 1"],
    ),
    # labels in another order
    "polars probabilities": (
        lambda d: edge_probability_matrix(("a", "b", "c"), pl.from_pandas(d[["c", "a", "b"]])),
        _correlations().abs(), ["names of columns", "none of rows"],
    ),
    "rows of xarray wins": (
        ChoiceTable.read, xr.DataArray([[0, 5], [2, 0]], dims=("i", "j"), coords={"i": ["b", "a"], "j": ["a", "b"]}),
        ["different names"],
    ),
    # graphs of which weights say what is an edge
    "true graph with an edge of weight 0": (
        lambda d: adjacency(d, ["a", "b", "c"]), nx.Graph([("a", "b", {"weight": 0.0}), ("b", "c", {"weight": 0.7})]),
        ["weight 0", "('a', 'b')"],
    ),
    "true arcs with one of weight 0": (
        lambda d: arc_matrix(d, ["a", "b", "c"]), nx.DiGraph([("a", "b", {"weight": 0.0}), ("b", "c")]), ["weight 0"],
    ),
    "given graph with an edge of weight 0": (
        lambda d: graph_pairs(["a", "b"], d), nx.Graph([("a", "b", {"weight": 0})]), ["the graph", "weight 0"],
    ),
    "links with weight 0": (LinkTable.links, nx.Graph([("a", "b", {"weight": 0}), ("b", "c")]), ["weight 0"]),
    # what has no order
    "states as a set": (lambda d: StateTable.read(d, states={"a": {1, 2, 3, 4, 5}}), _answers(), ["set", "no order"]),
    "tiers as a set": (lambda d: parent_prior(("a", "b"), tiers={("a",), ("b",)}), None, ["set", "no order"]),
    "order as a set": (lambda d: known_order(d, {"a", "b", "c"}), _normal(), ["set", "no order"]),
    # mixed values
    "True and 1": (
        StateTable.read, _answers(b=pd.Series([True, 1, 2, 3] * 25, dtype=object)), ["'bool' and 'int'"],
    ),
    "True among measurements": (
        Table.continuous, _normal(b=pd.Series([True, *NORMAL[1:, 1]], dtype=object)), ["'b'", "True"],
    ),
    "a list of ratings": (
        LinkTable.ratings, pd.DataFrame({"userId": [1, 1, 2], "movieId": [5, 6, 5], "rating": [4, 2, 5]}), ["pivot"],
    ),
    # counts
    "shares as counts": (lambda d: repeated_rows([0.5] * 100, d), _normal(), ["0.5", "shares"]),
    "negative counts": (lambda d: repeated_rows([-1] * 100, d), _normal(), ["-1", "whole numbers from 0"]),
    "counts of other rows": (lambda d: repeated_rows([1, 2], d), _normal(), ["each of the 100 rows"]),
    "counts by an unknown name": (lambda d: repeated_rows("freq", d), _normal(), ["unknown column 'freq'"]),
    # covariance matrices
    "rows as covariances": (lambda d: CovarianceTable.read(d, 100), _normal(), ["as many rows as columns"]),
    "not symmetric": (lambda d: CovarianceTable.read(d, 9), [[1, 0.5], [0.4, 1]], ["not symmetric"]),
    "pairwise correlations": (
        lambda d: CovarianceTable.read(d, 9), [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]], ["eigenvalue"],
    ),
    "correlation 1": (lambda d: CovarianceTable.read(d, 9), np.ones((2, 2)), ["correlation of 1"]),
    "other order of rows": (
        lambda d: CovarianceTable.read(d.iloc[::-1], 9), _correlations(), ["other names of rows"],
    ),
    "gaps": (
        lambda d: CovarianceTable.read(d, 9), [[1, np.nan, 0], [np.nan, 1, 0], [0, 0, 1]], ["no finite value"],
    ),
    "labelled prior of other names": (
        lambda d: edge_probability_matrix(("a", "b", "z"), d), _correlations().abs(), ["no row and column for"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("read", "data", "said"), REFUSED.values(), ids=REFUSED)
def test_a_table_that_cannot_be_meant_is_refused(read, data, said):
    with pytest.raises((TableError, ValueError)) as error:
        read(data)
    for words in said:
        assert words in str(error.value)


USUAL = {
    "normal": NORMAL,
    "standardised": (NORMAL - NORMAL.mean(0)) / NORMAL.std(0),
    "temperatures around zero": np.round(10 * NORMAL, 1),
    "small whole numbers around zero": np.round(4 * NORMAL),
    "percentages": np.round(50 + 20 * NORMAL).clip(0, 99.5),
    "heights": np.round(170 + 8 * NORMAL),
    "years": np.round(1990 + 9 * NORMAL),
    "exponential": np.random.default_rng(0).gamma(2.0, size=(100, 3)),
}


@pytest.mark.parametrize("values", USUAL.values(), ids=USUAL)
def test_usual_measurements_are_not_remarked_upon(values, recwarn):
    Table.continuous(values)
    assert not recwarn.list


@pytest.mark.parametrize(
    ("column", "odd"),
    [
        ([-999.0, 0.5, 1.5], [-999]),
        ([0.5, 99.0, 1.5, np.nan], [99]),
        ([-9.0, -8.0, 0.5, 1.5, 40.0], [-9, -8]),
        ([-9.0, -7.5, 0.0, 8.0], []),  # a column around zero
        ([*range(60, 97), 97.0, 98.0, 99.0], []),  # a continuation of the others
        ([9.0, 99.0], []),  # nothing to be apart from
        ([0.0, 0.0, 0.1, 0.2], []),  # zeros next to the others
    ],
)
def test_codes_are_apart_from_the_other_values(column, odd):
    assert odd_codes(np.array(column)) == odd


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5])
@pytest.mark.parametrize(
    ("code", "mean", "deviation"),
    [(-9, 0, 1), (-8, 0, 1), (9, 0, 1), (-9, 1, 1.2), (9.99, 7, 0.4), (99.99, 15, 8), (-99.9, 15, 8), (999.9, 15, 8),
     (1e20, 15, 8), (9.969209968386869e36, 0, 1), (6999, 300, 50), (99, 40, 12)],
)  # fmt: skip
def test_codes_far_from_small_values_are_found(code, mean, deviation, share):
    column = np.round(np.random.default_rng(7).normal(mean, deviation, 200), 2)
    column[: int(200 * share)] = code
    assert odd_codes(column) == [code]


def _ordinary(rng):
    """Tables as they are, by kind."""
    return {
        "Poisson(4)": rng.poisson(4, (100, 3)),
        "Poisson(1)": rng.poisson(1, (100, 3)),
        "counts with more zeros": rng.poisson(5, (100, 3)) * (rng.random((100, 3)) < 0.6),
        "binomial(20)": rng.binomial(20, 0.5, (60, 3)),
        "binomial(30)": rng.binomial(30, 0.5, (60, 3)),
        "T scores": np.round(rng.normal(50, 10, (60, 3))),
        "ratings from 0 to 10": rng.integers(0, 11, (60, 3)),
        "rounded": np.round(rng.normal(7, 2, (60, 3))).clip(0, 10),
        "Student-t(4)": rng.standard_t(4, (200, 3)),
        "normal": rng.normal(size=(100, 3)),
        "whole numbers around 0": np.round(rng.normal(0, 4, (100, 3))),
    }


ORDINARY = [_ordinary(np.random.default_rng(seed)) for seed in range(200)]
SMALL_COUNTS = "few whole numbers"  # is right of Poisson(1)


@pytest.mark.parametrize("kind", ORDINARY[0])
def test_at_most_two_of_a_hundred_ordinary_tables_are_remarked_upon(kind):
    said = 0
    for tables in ORDINARY:
        values = tables[kind].astype(float)
        found = column_remarks(["a", "b", "c"], values, "", normal=True)
        said += any(kind != "Poisson(1)" or SMALL_COUNTS not in remark for remark in found)
    assert said <= 0.02 * len(ORDINARY)


@pytest.mark.parametrize("rows", [1, 50])
@pytest.mark.parametrize(
    "draw",
    [lambda rng, n: rng.normal(size=(n, 3)), lambda rng, n: np.exp(rng.normal(size=(n, 3))),
     lambda rng, n: rng.standard_t(4, (n, 3)), lambda rng, n: rng.poisson(2, (n, 3)),
     lambda rng, n: rng.gamma(1, size=(n, 3)), lambda rng, n: rng.integers(18, 70, (n, 3))],
    ids=["normal", "lognormal", "Student-t(4)", "counts", "exponential", "ages"],
)  # fmt: skip
def test_at_most_two_of_a_hundred_tables_of_new_rows_are_called_far(draw, rows):
    said = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        first, new = draw(rng, 60).astype(float), draw(rng, rows).astype(float)
        said += bool(far_remarks("abc", new, first.mean(axis=0), first.std(axis=0, ddof=1)))
    assert said <= 6


@pytest.mark.parametrize("states", [(1, 6), (0, 6), (0, 11), (0, 3)])
def test_at_most_two_of_a_hundred_tables_of_ratings_are_remarked_upon(states, recwarn):
    for seed in range(100):
        rng = np.random.default_rng(seed)
        LinkTable.ratings(rng.integers(*states, (12, 8)).astype(float))
        LinkTable.ratings(np.round(rng.normal(3, 1.5, (12, 8))).clip(states[0], states[1] - 1))
    assert len(recwarn) <= 4


def test_predictors_and_responses_of_their_family_are_not_remarked_upon(recwarn):
    dummies = _normal(b=[0, 1] * 50)
    RegressionTable.read(dummies, "a", "gaussian")
    RegressionTable.read(dummies, "b", "logistic")
    assert not recwarn.list


def test_heavy_tails_are_not_called_skewed():
    column = np.random.default_rng(1).standard_cauchy(200)
    [remark] = column_remarks(["a"], column[:, None], "", normal=True)
    assert "heavy tails" in remark
    assert "skew" not in remark


MISSING = [[1.5, np.nan, 3.0], [2.5, 0.5, 1.0], [np.nan, 1.5, 2.0], [0.5, 2.5, -1.0]]
CODED = np.array([[1.5, -999, 3.0], [2.5, 0.5, 1.0], [99, 1.5, 2.0], [0.5, 2.5, -1.0]])
NAMES = ["a", "b", "c"]
FORMS = {
    "array": (CODED, [-999, 99]),
    "float32": (CODED.astype("float32"), [-999, 99]),
    "list": (CODED.tolist(), [-999, 99]),
    "text codes": ([["?" if v in (-999, 99) else v for v in row] for row in CODED.tolist()], "?"),
    "masked array": (np.ma.array(CODED, mask=False), [-999, 99]),
    "pandas": (pd.DataFrame(CODED, columns=NAMES), [-999, 99]),
    "pandas, by column": (pd.DataFrame(CODED, columns=NAMES), {"a": 99, "b": [-999]}),
    "pandas, numbered": (pd.DataFrame(CODED), {0: 99, 1: -999}),
    "polars": (pl.DataFrame(CODED, schema=NAMES), ["-999", "99"]),
    "polars, lazy": (pl.DataFrame(CODED, schema=NAMES).lazy(), [-999.0, 99]),
    "pyarrow": (pl.DataFrame(CODED, schema=NAMES).to_arrow(), [-999, 99]),
    "xarray": (xr.DataArray(CODED, dims=("r", "v"), coords={"v": NAMES}), {"a": 99, "b": -999}),
}


@pytest.mark.parametrize(("data", "codes"), FORMS.values(), ids=FORMS)
def test_codes_of_any_table_are_missing(data, codes):
    table = Table.continuous(without_codes(data, codes))
    np.testing.assert_array_equal(table.values, MISSING)


def test_a_code_of_all_columns_that_is_measured_in_one_is_remarked_upon(recwarn):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 66, 100), "iq": np.round(rng.normal(100, 15, 100))}
    )
    frame.loc[:11, "age"], frame.loc[20:25, "iq"] = 99, 99
    with pytest.warns(TableWarning, match=r"'age' \(99\).*name them: missing_codes=\{'age': 99\}"):
        Table.continuous(frame)
    with pytest.warns(TableWarning, match=r"'iq': 99 .* between.*missing_codes=\{'age': 99\}"):
        without_codes(frame, 99)
    with pytest.warns(TableWarning, match="'iq': '99'"):
        without_codes(frame.astype(int).astype(str), "99")
    recwarn.clear()
    assert without_codes(frame, {"age": 99}).isna().sum().tolist() == [12, 0]
    without_codes(frame.drop(columns="iq"), [99])
    assert not recwarn.list


def test_the_codes_of_a_response_without_a_name_are_named():
    response = _with(99)["b"].to_numpy()
    with pytest.warns(TableWarning, match=r"missing_codes=\{'response': 99\}"):
        RegressionTable.read(NORMAL, response, "gaussian")
    kept = tables_without_codes({"response": 99}, NORMAL, response, vector="response")
    assert [np.isnan(own).sum() for own in kept] == [0, 8]


def test_codes_of_states_are_no_states():
    frame = pd.DataFrame(
        {
            "n": [1, 2, 9, 1, 2],
            "text": ["u", "9", "v", "u", "u"],
            "words": ["x", "y", "refused", "y", "y"],
            "category": pd.Categorical(["p", "q", "refused", "p", "p"]),
            "flag": [True, False, True, True, False],
        }
    )
    table = StateTable.read(without_codes(frame, [9, "refused"]))
    assert table.levels == ((1, 2), ("u", "v"), ("x", "y"), ("p", "q"), (False, True))
    assert table.missing.sum(axis=0).tolist() == [1, 1, 1, 1, 0]
    enum = pl.DataFrame(
        {"a": pl.Series(["x", "no", "y"], dtype=pl.Enum(["x", "no", "y"])), "b": [0, 1, 1]}
    )
    assert StateTable.read(without_codes(enum, "no")).levels[0] == ("x", "y")


def test_codes_of_a_file(tmp_path):
    path = tmp_path / "cells.csv"
    path.write_text("a;b;c\n1,5;2;unknown\n-999;3,5;1,0\n2,5;99;4,5\n")
    frame = read_table(path, missing_codes=["-999", "99", "unknown"])
    expected = [[1.5, 2.0, np.nan], [np.nan, 3.5, 1.0], [2.5, np.nan, 4.5]]
    np.testing.assert_array_equal(frame.to_numpy(float), expected)


def test_a_file_of_correlations_is_refused(tmp_path):
    path = tmp_path / "correlations.csv"
    _correlations().to_csv(path)
    with pytest.warns(TableWarning, match="first column"):
        frame = read_table(path)
    with pytest.raises(TableError, match="correlation matrix"):
        Table.continuous(frame)


COUNTED = [[0, 1], [1, 1], [1, 0]]


@pytest.mark.parametrize(
    ("data", "counts"),
    [
        (COUNTED, [2, 0, 1]),
        (np.array(COUNTED), np.array([2.0, 0.0, 1.0])),
        (pd.DataFrame(COUNTED, columns=["a", "b"]).assign(n=[2, 0, 1]), "n"),
        (pl.DataFrame(COUNTED, schema=["a", "b"], orient="row").with_columns(n=pl.Series([2, 0, 1])), "n"),
        (pl.DataFrame(COUNTED, schema=["a", "b"], orient="row").to_arrow(), [2, 0, 1]),
        (xr.DataArray(COUNTED, dims=("r", "v")), [2, 0, 1]),
    ],
)  # fmt: skip
def test_counted_rows_stand_as_often_as_they_were_counted(data, counts):
    table, others = repeated_rows(counts, data, np.arange(3))
    assert others.tolist() == [0, 0, 2]
    assert StateTable.read(table).codes.tolist() == [[0, 1], [0, 1], [1, 0]]


@pytest.mark.parametrize("labels", [[0, 1, 2], ["a", "b", "c"], [("a", 1), ("b", 1), ("c", 1)]])
def test_a_labelled_prior_is_aligned_whatever_its_labels_are(labels):
    matrix = np.array([[0.5, 0.1, 0.2], [0.1, 0.5, 0.3], [0.2, 0.3, 0.5]])
    frame = pd.DataFrame(matrix, columns=pd.Index(labels), index=pd.Index(labels))
    names = tuple("_".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in labels)
    turned = frame.iloc[::-1, ::-1]
    np.testing.assert_array_equal(edge_probability_matrix(names, turned), matrix)


def test_labels_of_any_library_are_aligned():
    names, matrix = ("a", "b", "c"), _correlations().abs()
    turned = matrix.iloc[::-1, ::-1]
    given = {
        "pandas": turned,
        "xarray": xr.DataArray(turned, dims=("v", "w")),
        "polars": pl.from_pandas(turned.reset_index(names="name")),
    }
    wanted = matrix.to_numpy(copy=True)
    np.fill_diagonal(wanted, 0.5)
    for own in given.values():
        np.testing.assert_array_equal(edge_probability_matrix(names, own), wanted)
    arcs = pd.DataFrame(np.eye(3, k=1, dtype=int), names, names)
    labelled = xr.DataArray(arcs.iloc[::-1, ::-1], dims=("parent", "child"))
    np.testing.assert_array_equal(arc_matrix(labelled, [*names]), arcs == 1)
    mask = pd.DataFrame(False, range(100), list("cab"))
    mask.loc[5, "a"] = True
    for own in (mask, xr.DataArray(mask, dims=("row", "node"))):
        assert np.argwhere(network_table(_normal(), "bge", own).was_set).tolist() == [[5, 0]]


def test_what_a_mask_hides_is_not_observed():
    hidden = np.array([[0, 5, 1], [2, 0, 99], [4, 99, 0]])
    wins = ChoiceTable.read(np.ma.masked_equal(hidden, 99))
    assert (wins.labels, wins.wins.tolist()) == (["x0 -> x1", "x0 -> x2"], [5, 1])
    ratings = np.array([[1, 0, 3.0], [2, 5, 0]])
    assert LinkTable.ratings(np.ma.masked_equal(ratings, 0)).y.tolist() == [1, 3, 2, 5]


def test_words_that_count_alike_are_not_remarked_upon(recwarn):
    warn_about_words(StateTable.read(_words(a=("low", "high"), b=("low", "high"))))
    mixed = _words(b=("low", "high"), c=("no", "yes"))
    warn_about_words(StateTable.read(mixed, states={"b": ["low", "high"]}))
    category = pd.Categorical(mixed["b"], ["low", "high"])
    warn_about_words(StateTable.read(mixed.assign(b=category)))
    warn_about_presence(StateTable.read(_words(a=(0, 1), b=("no", "yes"))))
    assert not recwarn.list


def test_declared_states_are_not_remarked_upon(recwarn):
    numbers = _words(a=(1, 2), b=(1, 2))
    models.hidden_causes(numbers, states=[1, 2])
    models.hidden_causes(numbers, states={"a": [1, 2], "b": [1, 2]})
    ordered = pd.CategoricalDtype([1, 2], ordered=True)
    models.hidden_causes(numbers.astype(ordered))
    enum = pl.Enum(["1", "2"])
    warn_about_presence(StateTable.read(pl.from_pandas(numbers.astype(str)).cast(enum)))
    gaps = _answers(b=[1, 2, 5, 5] * 25)
    warn_about_order(StateTable.read(gaps, states={"b": [1, 2, 5]}))
    warn_about_order(
        StateTable.read(gaps.astype({"b": pd.CategoricalDtype([1, 2, 5], ordered=True)}))
    )
    assert not recwarn.list


@pytest.mark.parametrize("label", ["--5", "+-5", "-", "+", "5-", "9" * 5000, "1_0", "\u0665"])
def test_labels_that_look_like_numbers_are_states(label):
    table = StateTable.read(_answers(b=[label, "u"] * 50))
    assert table.levels[1] == tuple(sorted([label, "u"]))


def _half_set(kept):
    """A mask of interventions of the first column in half of the rows, with labels of some axes."""
    mask = np.zeros((100, 3), bool)
    mask[:50, 0] = True
    coords = {"r": np.arange(100), "v": ["a", "b", "c"]}
    return xr.DataArray(mask, dims=("r", "v"), coords={dim: coords[dim] for dim in kept})


@pytest.mark.parametrize("labelled", ["", "r", "v", "rv"])
def test_xarray_axes_without_labels_are_read_by_position(labelled):
    rows = np.arange(100) if "r" in labelled else pd.date_range("2020", periods=100)
    mask = network_table(_normal().set_axis(rows), "bge", _half_set(labelled)).was_set
    np.testing.assert_array_equal(mask, _half_set("").values)
    names, arcs = ["a", "b", "c"], np.eye(3, k=1)
    axes = [dim for dim in ("v", "w") if (dim == "v") == ("v" in labelled)]
    for coords in ({}, dict.fromkeys(axes[:1], names), dict.fromkeys("vw", names)):
        truth = xr.DataArray(arcs, dims=("v", "w"), coords=coords)
        np.testing.assert_array_equal(arc_matrix(truth, names), arcs)
        both = xr.DataArray(arcs + arcs.T, dims=("v", "w"), coords=coords)
        np.testing.assert_array_equal(adjacency(both, names), arcs + arcs.T)


def test_labels_of_rows_of_ordinary_series(recwarn):
    steps = np.random.default_rng(7).exponential(size=100)
    SeriesTable.read([_normal().set_axis(np.arange(100) * 0.1)] * 2)
    SeriesTable.read([_normal().set_axis(1.7e9 + np.arange(0, 10, 0.1))] * 2)
    SeriesTable.read([_normal().set_axis(np.arange(0, 10, 0.1, dtype="float32"))] * 2)
    SeriesTable.read([_normal().set_axis(steps.cumsum())] * 2)  # no usual step
    SeriesTable.read([_normal().set_axis(1990 + np.arange(100) // 12)] * 2)  # years of months
    whose = np.array([*"uv" * 40, *"uuvuvvuuuvuvuuvuvuvv"])
    SeriesTable.read([_normal()[whose == name] for name in "uv"])  # one table, interleaved
    assert not recwarn.list


def test_similarities_of_similar_objects_are_no_distances(recwarn):
    values = np.random.default_rng(8).uniform(0.4, 0.8, (9, 9))
    similar = np.triu(values, 1) + np.triu(values, 1).T
    LinkTable.similarities(similar)
    assert not recwarn.list


def test_a_triangle_in_a_given_order_is_meant(recwarn):
    triangle = np.triu(np.full((3, 3), 0.4), 1)
    parent_prior(("a", "b", "c"), "edge", edge_probability=triangle, tiers=[["a"], ["b"], ["c"]])
    assert not recwarn.list


def test_years_in_tens_are_a_variable(recwarn):
    Table.continuous(_normal(year=np.arange(1924, 2024) / 10))
    assert not recwarn.list


def test_answers_that_depend_on_each_other_are_no_copies():
    rng = np.random.default_rng(9)
    items = 3 + 2 * rng.normal(size=(300, 1)) + 0.3 * rng.normal(size=(300, 12))
    items = np.round(items).clip(1, 5)
    assert pd.DataFrame(items).duplicated().sum() > 100
    assert copied_rows(items) == []
    assert copied_rows(np.column_stack([items, items[:, :1] > 3])) == []
    assert len(copied_rows(np.tile(NORMAL, (2, 1)))) == 1


def test_counted_rows_are_no_copies(recwarn):
    Table.continuous(np.repeat(NORMAL, 2, axis=0), counted=True)
    Table.continuous(np.round(NORMAL[:, :2]) * 1.5)  # rounded measurements have ties
    assert not recwarn.list


def test_words_of_a_file_that_are_read_as_missing_are_listed(tmp_path):
    path = tmp_path / "regions.csv"
    path.write_text("region,drink,x\nNA,None,1\nEU,some,NA\n,much,2\nNA,None,3\n")
    with pytest.warns(TableWarning, match=r"'region' \('NA'\), 'drink' \('None'\)"):
        frame = read_table(path)
    assert frame.isna().sum().tolist() == [3, 2, 1]


def test_words_of_a_file_that_are_named_as_missing_are_not_listed(tmp_path, recwarn):
    path = tmp_path / "of_r.csv"
    path.write_text('"sex","x","y"\n"f",1.5,NA\nNA,0.5,2\n"m",NA,1\n"f",2.5,3\n')
    for codes in (["NA"], "NA", {"sex": "NA"}, {"sex": ["NA"], "x": ["NA"]}):
        frame = read_table(path, missing_codes=codes)
        assert frame.isna().to_numpy().sum(axis=0).tolist() == [1, 1, 1]
        assert frame.dtypes[["x", "y"]].tolist() == [float, float]
    path.write_text("x,y\n1.5,NA\n0.5,2\n")  # a code of a column of numbers alone
    read_table(path, missing_codes=["NA"])
    assert not recwarn.list


def test_a_word_of_a_file_that_is_not_named_is_listed(tmp_path):
    path = tmp_path / "drinks.csv"
    path.write_text("region,drink\nNA,None\nEU,some\nAS,much\n")
    with pytest.warns(
        TableWarning, match=r"missing values in 'drink' \('None'\); .*missing_codes=\['None'\]"
    ) as found:
        read_table(path, missing_codes={"region": "NA"})
    assert len(found) == 1


def test_nodes_that_are_numbers_are_the_columns_of_that_name():
    assert graph_pairs(["0", "1", "2"], nx.path_graph(3)) == ((0, 1), (1, 2))


def test_half_of_a_correlation_matrix_is_enough():
    half = _correlations().where(np.tri(3, dtype=bool))
    table = CovarianceTable.read(half, 100)
    np.testing.assert_allclose(table.covariance, _correlations())
    z = (NORMAL - NORMAL.mean(0)) / NORMAL.std(0, ddof=1)
    np.testing.assert_allclose(table.scatter, z.T @ z)
    labelled = CovarianceTable.read(_correlations().reset_index(names="variable"), 100)
    assert labelled.names == ("a", "b", "c")


def test_few_rows_cannot_have_a_matrix_of_full_rank():
    with pytest.warns(TableWarning, match="rank 3, which 3 rows cannot have"):
        CovarianceTable.read(_correlations(), 3)


def _log_bdeu(counts):
    """Log marginal likelihood of a column of states (last axis) given its parents, by its formula."""
    cell = 1 / counts.size
    of_parents = gammaln(cell * counts.shape[1]) - gammaln(cell * counts.shape[1] + counts.sum(1))
    return of_parents.sum() + (gammaln(cell + counts) - gammaln(cell)).sum()


@pytest.mark.parametrize("declared", ["states", "categories"])
def test_a_declared_state_that_never_occurs_has_its_prior(declared):
    counts = np.array([[0, 0], [8, 12]])
    data, states = pd.DataFrame({"a": 1, "b": np.repeat([0, 1], counts[1])}), {"a": [0, 1]}
    if declared == "categories":
        data, states = data.assign(a=pd.Categorical(data["a"], [0, 1])), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)  # of categories that never occur
        found = bs.exact.dag_posterior(data, score="bdeu", states=states)
    a, b = counts.sum(1)[None], counts.sum(0)[None]
    graphs = [(a, b), (a, counts), (counts.T, b)]
    logs = [_log_bdeu(one) + _log_bdeu(other) for one, other in graphs]
    assert found.log_evidence == pytest.approx(logsumexp(logs) - np.log(3))


STATE_MODELS = {
    "ising": bs.models.ising,
    "pairwise_mrf": bs.models.pairwise_mrf,
    "hidden_causes": bs.models.hidden_causes,
    "bdeu": lambda data, **options: bs.models.bayesian_network(data, score="bdeu", **options),
}


@pytest.mark.chain
@pytest.mark.parametrize("make", STATE_MODELS.values(), ids=STATE_MODELS)
def test_models_take_a_column_with_one_of_its_declared_states(make):
    data = pd.DataFrame(ANSWERS % 2, columns=["a", "b", "c"]).assign(a=1)
    model = make(data, states={"a": [0, 1]})
    assert np.isfinite(model.compile_logp()(model.initial_point()))


def test_neighbourhoods_need_both_states_of_a_column():
    data = pd.DataFrame(ANSWERS % 2, columns=["a", "b", "c"]).assign(a=1)
    with pytest.raises(TableError, match=r"'a' never has 0.*leave the column out"):
        bs.models.ising_neighbourhoods(data, states=[0, 1])


@pytest.mark.parametrize(
    ("states", "codes"),
    [({"a": [0, 1, 9]}, 9), ([0, 1, 9], {"b": ["9"]}), ({"a": [0, 1, 9]}, {"a": [9.0, 8]})],
)
@pytest.mark.parametrize(
    "make",
    [*STATE_MODELS.values(), bs.models.ising_neighbourhoods],
    ids=[*STATE_MODELS, "neighbourhoods"],
)
def test_a_state_is_no_code_for_missing_values(make, states, codes):
    data = pd.DataFrame(ANSWERS % 2, columns=["a", "b", "c"])
    with pytest.raises(TableError, match=r"`states`.*`missing_codes` both have"):
        make(data, states=states, missing_codes=codes)


def test_a_code_of_another_column_may_be_a_state():
    data = _answers(b=[9, *ANSWERS[1:, 1]])
    states = {"a": [1, 2, 3, 4, 5, 9]}
    assert bs.models.pairwise_mrf(data, states=states, missing_codes={"b": 9}) is not None


@pytest.mark.parametrize(
    ("columns", "response"),
    [([0, 1, 2], 2), ([0, 1, 2], np.int64(2)), ([("a", 1), ("a", 2), ("b", 1)], ("b", 1))],
)
def test_a_response_has_the_name_that_it_has_in_the_table(columns, response):
    data = pd.DataFrame(NORMAL, columns=pd.Index(columns))
    table = RegressionTable.read(data, response, "gaussian")
    np.testing.assert_array_equal(table.y, NORMAL[:, 2])
    np.testing.assert_array_equal(table.x, NORMAL[:, :2])
    with pytest.raises(TableError, match="unknown response '7'"):
        RegressionTable.read(data, 7, "gaussian")


def test_truth_values_are_no_states_of_other_numbers():
    rows = pd.DataFrame({"a": [True, False]})
    for levels in ((1, 2), ("1", "2"), (0, 1, 2)):
        with pytest.raises(TableError, match=r"'a' has the states? "):
            StateCoding(("a",), (levels,)).read(rows)
    for levels in ((0, 1), ("0", "1"), (False, True)):
        assert StateCoding(("a",), (levels,)).read(rows).codes.tolist() == [[1], [0]]
    assert StateCoding(("a",), ((1, 2),)).read(pd.DataFrame({"a": ["1", "2"]})).codes.tolist() == [
        [0],
        [1],
    ]


def _turned():
    return _correlations().loc[["b", "a", "c"]]


def _half(fill=0.0, own=1.0):
    """Lower triangle of correlations as in a paper, with something above."""
    half = _correlations().round(2).where(np.tri(3, dtype=bool), fill)
    return half.where(~np.eye(3, dtype=bool), own)


def _published(**options):
    """Means, standard deviations and correlations by number, as in a paper."""
    columns = {"M": NORMAL.mean(0), "SD": NORMAL.std(0)}
    half = _half(**options)
    return pd.DataFrame(columns, index=half.index).join(half.set_axis(list("123"), axis=1))


SUMMARIES = {
    "rows in another order": (_turned(), "correlation matrix"),
    "rows in another order, labelled": (_turned().reset_index(names="name"), "correlation matrix"),
    "covariances in another order": (_normal().cov().loc[["c", "a", "b"]], "covariance matrix"),
    "polars": (pl.from_pandas(_turned().reset_index(names="name")), "correlation matrix"),
    "triangle with 0 above": (_half(), "correlation matrix"),
    "triangle with 0 below, no names": (_half().to_numpy().T, "correlation matrix"),
    "triangle without diagonal": (_half(np.nan, np.nan), "correlation matrix"),
    "no diagonal": (_correlations().where(~np.eye(3, dtype=bool)), "correlation matrix"),
    "M, SD, r": (_published(), "correlation matrix"),
    "M, SD, r, blank": (_published(fill=np.nan), "correlation matrix"),
    "M, SD, r, no diagonal": (_published(fill=np.nan, own=np.nan), "correlation matrix"),
    "describe": (_normal().describe(), "rows of the table are summaries"),
    "describe, of some": (_normal().agg(["mean", "std"]), "rows of the table are summaries"),
    "describe, transposed": (_normal().describe().T, "columns of the table are summaries"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "said"), SUMMARIES.values(), ids=SUMMARIES)
def test_summaries_of_a_table_are_no_rows(data, said):
    with pytest.raises(TableError, match=said):
        Table.continuous(data)


def test_no_reader_takes_correlations_for_rows():
    for read in (
        lambda data: RegressionTable.read(data, "b", "gaussian"),
        LinkTable.ratings,
        Table.binary,
        lambda data: SeriesTable.read([data, data]),
    ):
        for data in (_correlations(), _turned()):
            with pytest.raises(TableError, match=r"correlation matrix|different names"):
                read(data)


def test_counts_of_two_columns_are_remarked_upon():
    data = pd.DataFrame(np.random.default_rng(5).integers(0, 2, (90, 2)), columns=["x", "y"])
    counts = pd.crosstab(data["x"], data["y"])
    for read in (Table.continuous, StateTable.read, Table.binary):
        with pytest.warns(TableWarning, match="named 'x' and its columns 'y'.*row_counts='count'"):
            read(counts)
    frame = counts.stack().reset_index(name="count")  # the remedy
    [rows] = repeated_rows("count", frame)
    assert sorted(rows.to_numpy().tolist()) == sorted(data.to_numpy().tolist())


def _pivot():
    """Answers of people to questions, from one answer in each row."""
    long = pd.DataFrame(ANSWERS[:12], columns=["a", "b", "c"]).rename_axis("person").stack()
    return (
        long.rename_axis(["person", "question"])
        .reset_index(name="x")
        .pivot(index="person", columns="question", values="x")
    )


NO_SUMMARIES = {
    "square": (Table.continuous, pd.DataFrame(NORMAL[:3], index=list("cab"), columns=list("abc"))),
    "square of 5": (Table.continuous, np.random.default_rng(7).normal(size=(5, 5))),
    "features named mean and sd": (Table.continuous, _normal().set_axis(["mean", "sd", "max"], axis=1)),
    "three rows of M, SD and measurements": (
        Table.continuous, pd.DataFrame(np.c_[NORMAL[:3], NORMAL[3:6, :2]], columns=["M", "SD", *"pqr"]),
    ),
    "pivot": (StateTable.read, _pivot()),
    "ratings": (LinkTable.ratings, ANSWERS[:3]),
    "rows named like a summary": (Table.continuous, _normal().rename({0: "mean", 1: "std"})),
}  # fmt: skip


@pytest.mark.parametrize(("read", "data"), NO_SUMMARIES.values(), ids=NO_SUMMARIES)
def test_ordinary_rows_are_no_summaries(read, data, recwarn):
    read(data)
    assert not recwarn.list


@pytest.mark.parametrize("name", ["sachs", "sachs_discrete"])
def test_no_summary_among_the_tables_of_the_package(name):
    data = bs.load_dataset(name)
    assert matrix_problems(data, [*map(str, data.columns)], np.zeros(data.shape)) == []
    assert crosstab_remarks(data) == []


def test_deviations_on_the_diagonal_of_correlations_are_remarked_upon():
    published = _half(fill=0.0)
    full = published + published.T - 2 * np.eye(3) + np.diag([12.1, 4.5, 8.2])
    full.iloc[0, 1] = full.iloc[1, 0] = 0.45
    with pytest.warns(TableWarning, match="if it holds standard deviations"):
        CovarianceTable.read(full, 100)


@pytest.mark.parametrize("scale", [0.3, 1.0, 20.0])
def test_covariances_have_variances_on_the_diagonal(scale, recwarn):
    values = (NORMAL + NORMAL[:, :1]) * scale
    CovarianceTable.read(np.round(np.cov(values.T), 3), 100)
    CovarianceTable.read(np.round(np.corrcoef(values.T), 2), 100)
    CovarianceTable.read(np.diag([4.0, 9.0, 16.0]), 100)
    assert not recwarn.list
