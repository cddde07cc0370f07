"""Ordinary tables are hardly ever remarked upon, and are read rightly."""

import numpy as np
import pandas as pd
import pytest

from tools.misread import NORMAL, normal_table

from bayesstruct.data import Table
from bayesstruct.data.remarks import column_remarks, copied_rows, far_remarks, odd_codes
from bayesstruct.features.data.links import LinkTable
from bayesstruct.mixtures.data import RegressionTable
from bayesstruct.networks.data.arcs import parent_prior
from bayesstruct.series.data import SeriesTable

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
    dummies = normal_table(b=[0, 1] * 50)
    RegressionTable.read(dummies, "a", "gaussian")
    RegressionTable.read(dummies, "b", "logistic")
    assert not recwarn.list


def test_heavy_tails_are_not_called_skewed():
    column = np.random.default_rng(1).standard_cauchy(200)
    [remark] = column_remarks(["a"], column[:, None], "", normal=True)
    assert "heavy tails" in remark
    assert "skew" not in remark


def test_labels_of_rows_of_ordinary_series(recwarn):
    steps = np.random.default_rng(7).exponential(size=100)
    SeriesTable.read([normal_table().set_axis(np.arange(100) * 0.1)] * 2)
    SeriesTable.read([normal_table().set_axis(1.7e9 + np.arange(0, 10, 0.1))] * 2)
    SeriesTable.read([normal_table().set_axis(np.arange(0, 10, 0.1, dtype="float32"))] * 2)
    SeriesTable.read([normal_table().set_axis(steps.cumsum())] * 2)  # no usual step
    SeriesTable.read([normal_table().set_axis(1990 + np.arange(100) // 12)] * 2)  # years of months
    whose = np.array([*"uv" * 40, *"uuvuvvuuuvuvuuvuvuvv"])
    SeriesTable.read([normal_table()[whose == name] for name in "uv"])  # one table, interleaved
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
    Table.continuous(normal_table(year=np.arange(1924, 2024) / 10))
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
