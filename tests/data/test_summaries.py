"""Correlations, counts and other summaries of a table are no rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tools.misread import ANSWERS, NORMAL, correlation_table, normal_table

import bayesstruct as bs

from bayesstruct.data import StateTable, Table, TableError, TableWarning
from bayesstruct.data.covariance import CovarianceTable
from bayesstruct.data.matrices import crosstab_remarks, matrix_problems
from bayesstruct.data.recoding import repeated_rows
from bayesstruct.features.data.links import LinkTable
from bayesstruct.mixtures.data import RegressionTable
from bayesstruct.series.data import SeriesTable


def _turned():
    return correlation_table().loc[["b", "a", "c"]]


def _half(fill=0.0, own=1.0):
    """Lower triangle of correlations as in a paper, with something above."""
    half = correlation_table().round(2).where(np.tri(3, dtype=bool), fill)
    return half.where(~np.eye(3, dtype=bool), own)


def _published(**options):
    """Means, standard deviations and correlations by number, as in a paper."""
    columns = {"M": NORMAL.mean(0), "SD": NORMAL.std(0)}
    half = _half(**options)
    return pd.DataFrame(columns, index=half.index).join(half.set_axis(list("123"), axis=1))


SUMMARIES = {
    "rows in another order": (_turned(), "correlation matrix"),
    "rows in another order, labelled": (_turned().reset_index(names="name"), "correlation matrix"),
    "covariances in another order": (normal_table().cov().loc[["c", "a", "b"]], "covariance matrix"),
    "polars": (pl.from_pandas(_turned().reset_index(names="name")), "correlation matrix"),
    "triangle with 0 above": (_half(), "correlation matrix"),
    "triangle with 0 below, no names": (_half().to_numpy().T, "correlation matrix"),
    "triangle without diagonal": (_half(np.nan, np.nan), "correlation matrix"),
    "no diagonal": (correlation_table().where(~np.eye(3, dtype=bool)), "correlation matrix"),
    "M, SD, r": (_published(), "correlation matrix"),
    "M, SD, r, blank": (_published(fill=np.nan), "correlation matrix"),
    "M, SD, r, no diagonal": (_published(fill=np.nan, own=np.nan), "correlation matrix"),
    "describe": (normal_table().describe(), "rows of the table are summaries"),
    "describe, of some": (normal_table().agg(["mean", "std"]), "rows of the table are summaries"),
    "describe, transposed": (normal_table().describe().T, "columns of the table are summaries"),
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
        for data in (correlation_table(), _turned()):
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
    "features named mean and sd": (Table.continuous, normal_table().set_axis(["mean", "sd", "max"], axis=1)),
    "three rows of M, SD and measurements": (
        Table.continuous, pd.DataFrame(np.c_[NORMAL[:3], NORMAL[3:6, :2]], columns=["M", "SD", *"pqr"]),
    ),
    "pivot": (StateTable.read, _pivot()),
    "ratings": (LinkTable.ratings, ANSWERS[:3]),
    "rows named like a summary": (Table.continuous, normal_table().rename({0: "mean", 1: "std"})),
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
