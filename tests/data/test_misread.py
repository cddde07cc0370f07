"""Tables that mean something else than they seem: each is refused, or remarked upon.

By kind: what the table is, who reads it, and what the message says.
"""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

from tools.misread import (
    ANSWERS,
    NORMAL,
    answers_table,
    coded_table,
    correlation_table,
    normal_table,
    words_table,
)

from bayesstruct import models
from bayesstruct.data import StateTable, Table, TableError, TableWarning
from bayesstruct.data.covariance import CovarianceTable
from bayesstruct.data.covariates import standardized_covariates
from bayesstruct.data.edge_priors import edge_probability_matrix
from bayesstruct.data.given_graphs import graph_pairs
from bayesstruct.data.orders import warn_about_order, warn_about_presence, warn_about_words
from bayesstruct.data.recoding import repeated_rows, without_codes
from bayesstruct.features.data.choices import ChoiceTable
from bayesstruct.features.data.links import LinkTable
from bayesstruct.graphs.truth import adjacency, arc_matrix
from bayesstruct.mixtures.data import RegressionTable
from bayesstruct.networks.data.arcs import parent_prior
from bayesstruct.networks.data.tables import network_table
from bayesstruct.networks.solvers.known_order import known_order
from bayesstruct.series.data import SeriesTable


def _ordinal(data):
    warn_about_order(StateTable.read(data))


def _logs_like(first):
    column = np.exp(NORMAL[:, 0] * 1.5)
    return normal_table(b=column + first)


REMARKS = {
    # codes for missing values among measurements
    "-999 in 8 rows": (Table.continuous, coded_table(-999), ["'b' (-999)", "missing_codes={'b': -999}"]),
    "-999 once": (Table.continuous, coded_table(-999, 1), ["'b' (-999)"]),
    "-9 among ages": (Table.continuous, coded_table(-9, low=40, scale=5), ["'b' (-9)"]),
    "-1 among incomes": (Table.continuous, coded_table(-1, low=40, scale=5), ["'b' (-1)"]),
    "99 among z-scores": (Table.continuous, coded_table(99), ["'b' (99)"]),
    "9999": (Table.continuous, coded_table(9999, low=300, scale=50), ["'b' (9999)"]),
    "two codes": (Table.continuous, coded_table([-99, -98] * 4), ["'b' (-99, -98)", "{'b': [-99, -98]}"]),
    "int16 underflow": (Table.continuous, coded_table(-32768), ["-32768"]),
    "zeros of a blood pressure": (Table.continuous, coded_table(0, low=70, scale=5), ["'b' (0)"]),
    "codes of a response": (
        lambda d: RegressionTable.read(d, "b", "gaussian"), coded_table(-999), ["'b' (-999)"],
    ),
    "codes in series": (
        lambda d: SeriesTable.read([d, d]), coded_table(-999), ["often stand"],
    ),
    "codes in covariates": (
        lambda d: standardized_covariates(d, 100), coded_table(-999), ["Covariates: ", "-999", "impute"],
    ),
    "codes in numbers for bge": (lambda d: network_table(d, "bge"), coded_table(-999), ["-999"]),
    "-9 among z-scores": (Table.continuous, coded_table(-9), ["'b' (-9)", "missing_codes={'b': -9}"]),
    "-9 in features": (lambda d: Table.continuous(d, normal=False), coded_table(-9, 30), ["'b' (-9)"]),
    "9 in a response": (lambda d: RegressionTable.read(d, "b", "gaussian"), coded_table(9), ["'b' (9)"]),
    "-9 in a predictor": (lambda d: RegressionTable.read(d, "a", "gaussian"), coded_table(-9), ["'b' (-9)"]),
    "-9 in series": (lambda d: SeriesTable.read([d, d]), coded_table(-9), ["'b' (-9)"]),
    "-9 in ratings": (LinkTable.ratings, coded_table(-9), ["ratings", "(-9)", "missing_codes=-9"]),
    "-9 for bge": (lambda d: network_table(d, "bge"), coded_table(-9), ["'b' (-9)"]),
    # codes among states
    "9 in answers": (StateTable.read, answers_table(b=[9, *ANSWERS[1:, 1]]), ["'b' (9)", "missing_codes={'b': 9}"]),
    "-9 in answers": (StateTable.read, answers_table(b=[-9, *ANSWERS[1:, 1]]), ["'b' (-9)"]),
    "99 as text": (StateTable.read, answers_table(b=["99", *ANSWERS[1:, 1].astype(str)]), ["'99'"]),
    "NA as text": (StateTable.read, answers_table(b=["NA", "x", *"yz" * 49]), ["'NA'"]),
    # states read as measurements
    "0 and 1": (Table.continuous, normal_table(b=[0, 1] * 50), ["'b'", "binary (0 and 1 only)"]),
    "1 and 2": (Table.continuous, normal_table(b=[1, 2] * 50), ["'b'", "binary (1 and 2 only)"]),
    "-1 and 1": (Table.continuous, normal_table(b=[-1, 1] * 50), ["'b'", "binary (-1 and 1 only)"]),
    "two kinds of pairs": (
        Table.continuous, normal_table(b=[1, 2] * 50, c=[0, 1, 1, 1] * 25), ["'b' and 'c'", "1 and 2 only in 'b'"],
    ),
    "Likert items": (Table.continuous, answers_table(), ["'a', 'b' and 'c'", "few whole numbers", "1, 2, 3, 4"]),
    "Likert item with a code": (
        Table.continuous, normal_table(b=[99, 99, *ANSWERS[2:, 1]]), ["'b' (99)", "few whole numbers"],
    ),
    "small counts": (Table.continuous, normal_table(b=np.arange(100) % 4), ["few whole numbers"]),
    "Likert items for bge": (lambda d: network_table(d, "bge"), answers_table(), ["few whole", "bdeu"]),
    # measurements on another scale than they seem
    "skewed": (Table.continuous, _logs_like(0), ["'b'", "skew", "np.log(data)"]),
    "skewed with zeros": (Table.continuous, _logs_like(-0.2), ["'b'", "logarithms or ranks"]),
    "outlier": (Table.continuous, coded_table(1e6, 1), ["'b'", "outliers"]),
    "row numbers": (Table.continuous, normal_table(b=range(100)), ["'b'", "counts the rows"]),
    "row numbers from 1": (Table.continuous, normal_table(b=range(1, 101)), ["counts the rows"]),
    "years": (Table.continuous, normal_table(year=range(1924, 2024)), ["counts the rows", "keep it (data['year'] / 10"]),
    "dates as numbers": (
        Table.continuous, normal_table(b=[20240131 + 100 * (k % 9) for k in range(100)]), ["'b'", "dates as numbers"],
    ),
    # states in an order that nobody gave
    "sex among items": (_ordinal, answers_table(b=list("mf") * 50), ["'b'", "one more of them"]),
    "words in alphabetical order": (
        _ordinal, answers_table(b=["low", "mid", "high", "low"] * 25), ["'b'", "'high', 'low' and 'mid'"],
    ),
    "high counts as 0": (
        lambda d: warn_about_words(StateTable.read(d)),
        words_table(smoke=("no", "yes"), dose=("low", "high")),
        ["olumn 'dose':", "'low', and 'high' as 0", "states="],
    ),
    "1 means yes": (
        lambda d: warn_about_presence(StateTable.read(d)), words_table(a=(1, 2), b=(1, 2)),
        ["'a' and 'b'", "'a': 2, not 1", "states={'a': [2, 1]}"],
    ),
    "control counts as present": (
        lambda d: warn_about_presence(StateTable.read(d)),
        words_table(a=("control", "case"), b=("no", "yes")), ["olumn 'a':", "'control'"],
    ),
    "ill counts as absent though b was declared": (
        lambda d: models.hidden_causes(d, states={"b": ["no", "yes"]}),
        words_table(a=("ill", "well"), b=("no", "yes")), ["olumn 'a':", "'well', not 'ill'"],
    ),
    "numbers between which some never occur": (_ordinal, answers_table(b=[1, 2, 5, 5] * 25), ["'b': 1, 2 and 5", "states="]),
    "capitals": (StateTable.read, answers_table(b=["Yes", "yes", "no", "no"] * 25), ["blanks or capitals"]),
    "category of a larger table": (
        StateTable.read, answers_table(b=pd.Categorical(list("xy") * 50, list("xyz"))), ["'b' never has 'z'"],
    ),
    "target column": (
        lambda d: network_table(d, "bdeu"), answers_table(t=["none", "a", "b", "c"] * 25), ["'t'", "interventions"],
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
    "transposed": (Table.continuous, normal_table()[:5].T, ["'a', 'b' and 'c'", "data.T"]),
    "transposed states": (StateTable.read, pd.DataFrame([[0, 1], [1, 0], [1, 1]], list("abc")), ["data.T"]),
    "names of rows in xarray": (
        Table.continuous, xr.DataArray(NORMAL[:20].T, dims=("v", "r"), coords={"v": list("abc")}), ["data.T"],
    ),
    "three rows of many columns": (Table.continuous, NORMAL.T, ["3 rows of 100 columns", "data.T"]),
    "a table read twice": (Table.continuous, pd.concat([normal_table()] * 2), ["100 of 200 rows are copies"]),
    "a join that repeats rows": (
        lambda d: network_table(d, "bge"), pd.concat([normal_table(), normal_table()[:9]]), ["9 of 109 rows", "drop_duplicates"],
    ),
    # identifiers and times among the variables
    "shuffled row numbers": (
        Table.continuous, normal_table(b=np.random.default_rng(5).permutation(100)), ["'b'", "counts the rows"],
    ),
    "index of a larger file": (
        Table.continuous, normal_table().assign(**{"Unnamed: 0": np.random.default_rng(5).permutation(900)[:100]}),
        ["'Unnamed: 0'", "index_col=0"],
    ),
    "identifiers as numbers": (
        Table.continuous, normal_table(id=7 * np.random.default_rng(5).permutation(100)), ["'id'", "leave it out"],
    ),
    "time among series": (
        lambda d: SeriesTable.read([d, d]), normal_table(b=np.arange(100) / 4), ["'b'", "is the time"],
    ),
    "groups as numbers among covariates": (
        lambda d: standardized_covariates(d, 100), normal_table(b=np.arange(100) % 4 + 1), ["'b'", "get_dummies"],
    ),
    # series in another order than time
    "newest row first": (
        lambda d: SeriesTable.read([d, d]), normal_table().set_axis(pd.date_range("2020", periods=100)[::-1]),
        ["'series 0'", "ascending", "sort_index"],
    ),
    "rows sorted by a value": (
        lambda d: SeriesTable.read(d, "s"), normal_table(s=["u", "v"] * 50).sort_values("a"), ["not in ascending order"],
    ),
    "rows left out of a series": (
        lambda d: SeriesTable.read([d, d]), normal_table().drop(index=[7, 8]), ["left out", "by 1, but 6 is followed by 9", "reindex", "reset_index"],
    ),
    "rows left out between steps of a tenth": (
        lambda d: SeriesTable.read([d, d]), normal_table().set_axis(np.arange(100) * 0.1).drop(index=0.5), ["0.4 is followed by 0.6"],
    ),
    # one state with two names
    "1 and 1.0 as text": (StateTable.read, answers_table(b=["1", "1.0", "2", "2"] * 25), ["'b' ('1.0')"]),
    "01 and 1 as text": (StateTable.read, answers_table(b=["01", "1", "2", "2"] * 25), ["'b' ('1')"]),
    "+1 and 1 as text": (StateTable.read, answers_table(b=["+1", "1", "-5", "x"] * 25), ["'b' ('1')"]),
    "accents of two kinds": (StateTable.read, answers_table(b=["caf\u00e9", "cafe\u0301"] * 50), ["is written"]),
    "blanks that do not break": (StateTable.read, answers_table(b=["a\u00a0b", "a b"] * 50), ["is written"]),
    # triangles
    "upper triangle of links": (LinkTable.links, np.triu(np.ones((4, 4)), 1) * (np.arange(4) < 3), ["data + data.T"]),
    "upper triangle of arc probabilities": (
        lambda d: parent_prior(("a", "b", "c"), "edge", edge_probability=d), np.triu(np.full((3, 3), 0.4), 1),
        ["one side", "matrix + matrix.T", "tiers="],
    ),
    "upper triangle of probabilities of predictors": (
        lambda d: models.ising_neighbourhoods(d, inclusion=np.triu(np.full((2, 2), 0.4), 1)), words_table(a=(0, 1), b=(0, 1)),
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
        lambda d: RegressionTable.read(d, "a", "gaussian"), normal_table(id=range(100)), ["'id'", "counts the rows"],
    ),
    "0 and 1 as a response": (
        lambda d: RegressionTable.read(d, "b", "gaussian"), normal_table(b=[0, 1, 1, 0] * 25), ["'b'", "binary", "logistic"],
    ),
    "-999 in similarities": (
        LinkTable.similarities, np.where(np.eye(9)[::-1] + np.eye(9), -999, 0.5 + np.outer(*2 * [range(9)]) / 99),
        ["similarities", "-999"],
    ),
    "distances as similarities": (
        LinkTable.similarities, abs(NORMAL[:9, :1] - NORMAL[:9, :1].T), ["as distances do", "data.max() - data"],
    ),
    # codes that are no codes
    "a mistyped code": (lambda d: without_codes(d, -99), coded_table(-999), ["-99", "no value", "spelling"]),
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
    "df.corr()": (Table.continuous, correlation_table(), ["correlation matrix", "cov=matrix, n="]),
    "np.corrcoef": (Table.continuous, np.corrcoef(NORMAL.T), ["correlation matrix"]),
    "df.cov()": (Table.continuous, normal_table().cov(), ["covariance matrix", "cov=matrix"]),
    "lower triangle": (
        Table.continuous, correlation_table().where(np.tri(3, dtype=bool)), ["correlation matrix"],
    ),
    "2 x 2 correlations": (Table.continuous, np.array([[1, 0.3], [0.3, 1]]), ["correlation matrix"]),
    "labels in a column": (
        Table.continuous, correlation_table().reset_index(names="variable"), ["correlation matrix"],
    ),
    "polars correlations": (
        Table.continuous, pl.from_pandas(correlation_table().reset_index(names="variable")), ["correlation"],
    ),
    "xarray correlations": (
        Table.continuous, xr.DataArray(correlation_table(), dims=("v", "w")), ["correlation matrix"],
    ),
    "distances": (
        Table.continuous, abs(NORMAL[:4, :1] - NORMAL[:4, :1].T), ["pairs of its columns", "distances"],
    ),
    "adjacency": (StateTable.read, pd.DataFrame(1 - np.eye(3, dtype=int), list("abc"), list("abc")), ["links"]),
    "adjacency as binary": (
        Table.binary, pd.DataFrame(1 - np.eye(3, dtype=int), list("abc"), list("abc")), ["links"],
    ),
    "correlations for bge": (lambda d: network_table(d, "bge"), correlation_table(), ["bayesian_network(cov="]),
    # lists that fall apart
    "list of dicts": (Table.continuous, [{"a": 1, "b": 2}, {"a": 2, "b": 1}], ["dictionaries", "DataFrame(rows)"]),
    "list of dicts of states": (StateTable.read, [{"a": 1, "b": 2}, {"a": 2, "b": 1}], ["dictionaries"]),
    "lines of text": (Table.continuous, ["1,2", "3,4"], ["text", "split"]),
    "words as rows": (StateTable.read, ["yes", "nos"], ["letter by letter"]),
    "sets": (StateTable.read, [{1, 2}, {2, 3}], ["sets", "order"]),
    "columns in a list": (Table.continuous, [NORMAL[:, 0], NORMAL[:, 1]], ["column_stack"]),
    "Series in a list": (Table.continuous, [normal_table()["a"], normal_table()["b"]], ["Series", "concat"]),
    "dict of columns": (Table.continuous, {"a": [1, 2], "b": [2, 1]}, ["pandas.DataFrame(data)"]),
    # numbers that are no numbers
    "decimal commas": (Table.continuous, normal_table(b=["1,5", "2,5"] * 50), ["'b'", "to_numeric"]),
    "years as dates": (Table.continuous, normal_table(b=pd.Timestamp("2020-01-01")), ["dates"]),
    "identifiers": (StateTable.read, answers_table(b=range(100)), ["100 different values", "identifier"]),
    "1 and '1'": (StateTable.read, answers_table(b=[1, "1"] * 50), ["'int' and 'str'"]),
    "codes of no column": (lambda d: without_codes(d, {"z": -9}), normal_table(), ["unknown column 'z'"]),
    "a code that is missing": (lambda d: without_codes(d, [None]), normal_table(), ["numbers or text"]),
    # states that were declared otherwise
    "undeclared state": (lambda d: StateTable.read(d, states={"a": [1, 2, 3, 4]}), answers_table(), ["'a' holds 5"]),
    "text for numbers": (lambda d: StateTable.read(d, states={"a": list("12345")}), answers_table(), ["text and numbers"]),
    "BIC without observations": (
        lambda d: network_table(d, "multinomial", states={"a": range(9)}), answers_table(), ["probability 0", "bdeu"],
    ),
    "9 in a binary table": (
        Table.binary, np.where(np.arange(100)[:, None] < 4, 9, np.random.default_rng(4).integers(0, 2, (100, 3))),
        ["3 different values", "missing_codes={'x0': 9"],
    ),
    # interventions
    "NA in a mask": (
        lambda d: network_table(d, "bge", pd.DataFrame({"a": pd.array([True, None] * 50, "boolean")})),
        normal_table(), ["'a'", "missing values and text are neither"],
    ),
    "NA in an object mask": (
        lambda d: network_table(d, "bge", np.full((100, 3), pd.NA)), normal_table(), ["neither"],
    ),
    "text in a mask": (
        lambda d: network_table(d, "bge", pd.DataFrame({"a": ["no"] * 100})), normal_table(), ["neither"],
    ),
    "a mask in another order": (
        lambda d: network_table(d, "bge", pd.DataFrame({"a": [True] * 100}, index=range(99, -1, -1))),
        normal_table(), ["another order"],
    ),
    "hidden values in a mask": (
        lambda d: network_table(d, "bge", np.ma.array(np.zeros((100, 3)), mask=NORMAL > 2)), normal_table(), ["neither"],
    ),
    "a column of a mask twice": (
        lambda d: network_table(d, "bge", pd.concat([d[["a"]] > 0, d[["a"]] < 0], axis=1)), normal_table(), ["more than once"],
    ),
    # rows in another order
    "response in another order": (
        lambda d: RegressionTable.read(d, d["a"].rename("y").sort_values(), "gaussian"), normal_table(),
        ["rows of the response", "another order"],
    ),
    "counts in another order": (
        lambda d: repeated_rows(pd.Series(range(100), index=range(99, -1, -1)), d), normal_table(), ["`row_counts`", "reindex"],
    ),
    "covariates in another order beside counts": (
        lambda d: repeated_rows([1] * 100, d, d[::-1]), normal_table(), ["covariates", "another order"],
    ),
    # hidden values
    "response under a mask": (
        lambda d: RegressionTable.read(d, np.ma.array(range(100), mask=NORMAL[:, 0] > 2), "gaussian"), normal_table(),
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
        lambda d: models.dp_glm(d, np.where(d["a"] > 1, -9, d["a"]), missing_codes=-9), normal_table(), ["'response'", "`missing_codes`"],
    ),
    "rows of xarray interventions in another order": (
        lambda d: network_table(
            d, "bge", xr.DataArray(np.zeros((100, 3)), dims=("r", "v"), coords={"r": np.arange(100)[::-1]})
        ),
        normal_table(), ["another order"],
    ),
    "names of rows, but not of columns, of a known graph": (
        lambda d: arc_matrix(d, ["a", "b"]), xr.DataArray(np.eye(2, k=1), dims=("r", "v"), coords={"r": ["b", "a"]}),
        ["names of rows"],
    ),
    "counts under a mask": (
        lambda d: repeated_rows(np.ma.array([1] * 100, mask=NORMAL[:, 0] > 2), d), normal_table(), ["whole numbers from 0"],
    ),
    "probabilities under a mask": (
        lambda d: edge_probability_matrix(("a", "b", "c"), np.ma.masked_equal(d, 0.3)), np.full((3, 3), 0.3),
        ["not between 0 and 1"],
    ),
    # labels in another order
    "polars probabilities": (
        lambda d: edge_probability_matrix(("a", "b", "c"), pl.from_pandas(d[["c", "a", "b"]])),
        correlation_table().abs(), ["names of columns", "none of rows"],
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
    "states as a set": (lambda d: StateTable.read(d, states={"a": {1, 2, 3, 4, 5}}), answers_table(), ["set", "no order"]),
    "tiers as a set": (lambda d: parent_prior(("a", "b"), tiers={("a",), ("b",)}), None, ["set", "no order"]),
    "order as a set": (lambda d: known_order(d, {"a", "b", "c"}), normal_table(), ["set", "no order"]),
    # mixed values
    "True and 1": (
        StateTable.read, answers_table(b=pd.Series([True, 1, 2, 3] * 25, dtype=object)), ["'bool' and 'int'"],
    ),
    "True among measurements": (
        Table.continuous, normal_table(b=pd.Series([True, *NORMAL[1:, 1]], dtype=object)), ["'b'", "True"],
    ),
    "a list of ratings": (
        LinkTable.ratings, pd.DataFrame({"userId": [1, 1, 2], "movieId": [5, 6, 5], "rating": [4, 2, 5]}), ["pivot"],
    ),
    # counts
    "shares as counts": (lambda d: repeated_rows([0.5] * 100, d), normal_table(), ["0.5", "shares"]),
    "negative counts": (lambda d: repeated_rows([-1] * 100, d), normal_table(), ["-1", "whole numbers from 0"]),
    "counts of other rows": (lambda d: repeated_rows([1, 2], d), normal_table(), ["each of the 100 rows"]),
    "counts by an unknown name": (lambda d: repeated_rows("freq", d), normal_table(), ["unknown column 'freq'"]),
    # covariance matrices
    "rows as covariances": (lambda d: CovarianceTable.read(d, 100), normal_table(), ["as many rows as columns"]),
    "not symmetric": (lambda d: CovarianceTable.read(d, 9), [[1, 0.5], [0.4, 1]], ["not symmetric"]),
    "pairwise correlations": (
        lambda d: CovarianceTable.read(d, 9), [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]], ["eigenvalue"],
    ),
    "correlation 1": (lambda d: CovarianceTable.read(d, 9), np.ones((2, 2)), ["correlation of 1"]),
    "other order of rows": (
        lambda d: CovarianceTable.read(d.iloc[::-1], 9), correlation_table(), ["other names of rows"],
    ),
    "gaps": (
        lambda d: CovarianceTable.read(d, 9), [[1, np.nan, 0], [np.nan, 1, 0], [0, 0, 1]], ["no finite value"],
    ),
    "labelled prior of other names": (
        lambda d: edge_probability_matrix(("a", "b", "z"), d), correlation_table().abs(), ["no row and column for"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("read", "data", "said"), REFUSED.values(), ids=REFUSED)
def test_a_table_that_cannot_be_meant_is_refused(read, data, said):
    with pytest.raises((TableError, ValueError)) as error:
        read(data)
    for words in said:
        assert words in str(error.value)
