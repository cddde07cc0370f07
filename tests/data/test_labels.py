"""Labels, counts, masks and declared states of tables are read as they are meant."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

from scipy.special import gammaln, logsumexp
from tools.misread import (
    ANSWERS,
    NORMAL,
    answers_table,
    correlation_table,
    normal_table,
    words_table,
)

import bayesstruct as bs

from bayesstruct import models
from bayesstruct.data import StateTable, TableError, TableWarning
from bayesstruct.data.coding import StateCoding
from bayesstruct.data.covariance import CovarianceTable
from bayesstruct.data.edge_priors import edge_probability_matrix
from bayesstruct.data.given_graphs import graph_pairs
from bayesstruct.data.orders import warn_about_order, warn_about_presence, warn_about_words
from bayesstruct.data.recoding import repeated_rows
from bayesstruct.features.data.choices import ChoiceTable
from bayesstruct.features.data.links import LinkTable
from bayesstruct.graphs.truth import adjacency, arc_matrix
from bayesstruct.mixtures.data import RegressionTable
from bayesstruct.networks.data.tables import network_table

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
    names, matrix = ("a", "b", "c"), correlation_table().abs()
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
        assert np.argwhere(network_table(normal_table(), "bge", own).was_set).tolist() == [[5, 0]]


def test_what_a_mask_hides_is_not_observed():
    hidden = np.array([[0, 5, 1], [2, 0, 99], [4, 99, 0]])
    wins = ChoiceTable.read(np.ma.masked_equal(hidden, 99))
    assert (wins.labels, wins.wins.tolist()) == (["x0 -> x1", "x0 -> x2"], [5, 1])
    ratings = np.array([[1, 0, 3.0], [2, 5, 0]])
    assert LinkTable.ratings(np.ma.masked_equal(ratings, 0)).y.tolist() == [1, 3, 2, 5]


def test_words_that_count_alike_are_not_remarked_upon(recwarn):
    warn_about_words(StateTable.read(words_table(a=("low", "high"), b=("low", "high"))))
    mixed = words_table(b=("low", "high"), c=("no", "yes"))
    warn_about_words(StateTable.read(mixed, states={"b": ["low", "high"]}))
    category = pd.Categorical(mixed["b"], ["low", "high"])
    warn_about_words(StateTable.read(mixed.assign(b=category)))
    warn_about_presence(StateTable.read(words_table(a=(0, 1), b=("no", "yes"))))
    assert not recwarn.list


def test_declared_states_are_not_remarked_upon(recwarn):
    numbers = words_table(a=(1, 2), b=(1, 2))
    models.hidden_causes(numbers, states=[1, 2])
    models.hidden_causes(numbers, states={"a": [1, 2], "b": [1, 2]})
    ordered = pd.CategoricalDtype([1, 2], ordered=True)
    models.hidden_causes(numbers.astype(ordered))
    enum = pl.Enum(["1", "2"])
    warn_about_presence(StateTable.read(pl.from_pandas(numbers.astype(str)).cast(enum)))
    gaps = answers_table(b=[1, 2, 5, 5] * 25)
    warn_about_order(StateTable.read(gaps, states={"b": [1, 2, 5]}))
    warn_about_order(
        StateTable.read(gaps.astype({"b": pd.CategoricalDtype([1, 2, 5], ordered=True)}))
    )
    assert not recwarn.list


@pytest.mark.parametrize("label", ["--5", "+-5", "-", "+", "5-", "9" * 5000, "1_0", "\u0665"])
def test_labels_that_look_like_numbers_are_states(label):
    table = StateTable.read(answers_table(b=[label, "u"] * 50))
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
    mask = network_table(normal_table().set_axis(rows), "bge", _half_set(labelled)).was_set
    np.testing.assert_array_equal(mask, _half_set("").values)
    names, arcs = ["a", "b", "c"], np.eye(3, k=1)
    axes = [dim for dim in ("v", "w") if (dim == "v") == ("v" in labelled)]
    for coords in ({}, dict.fromkeys(axes[:1], names), dict.fromkeys("vw", names)):
        truth = xr.DataArray(arcs, dims=("v", "w"), coords=coords)
        np.testing.assert_array_equal(arc_matrix(truth, names), arcs)
        both = xr.DataArray(arcs + arcs.T, dims=("v", "w"), coords=coords)
        np.testing.assert_array_equal(adjacency(both, names), arcs + arcs.T)


def test_nodes_that_are_numbers_are_the_columns_of_that_name():
    assert graph_pairs(["0", "1", "2"], nx.path_graph(3)) == ((0, 1), (1, 2))


def test_half_of_a_correlation_matrix_is_enough():
    half = correlation_table().where(np.tri(3, dtype=bool))
    table = CovarianceTable.read(half, 100)
    np.testing.assert_allclose(table.covariance, correlation_table())
    z = (NORMAL - NORMAL.mean(0)) / NORMAL.std(0, ddof=1)
    np.testing.assert_allclose(table.scatter, z.T @ z)
    labelled = CovarianceTable.read(correlation_table().reset_index(names="variable"), 100)
    assert labelled.names == ("a", "b", "c")


def test_few_rows_cannot_have_a_matrix_of_full_rank():
    with pytest.warns(TableWarning, match="rank 3, which 3 rows cannot have"):
        CovarianceTable.read(correlation_table(), 3)


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
    data = answers_table(b=[9, *ANSWERS[1:, 1]])
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
