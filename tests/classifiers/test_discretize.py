"""Cut points by minimum description length against a direct search."""

import math

import numpy as np
import pandas as pd
import pytest

import bayesstruct as bs

from bayesstruct.classifiers.solvers.discretize import entropy_cuts, mdl_discretization


def entropy(classes):
    shares = [classes.count(c) / len(classes) for c in set(classes)]
    return -sum(p * math.log2(p) for p in shares)


def slow_cuts(pairs):
    """Cut points by lists of pairs of a number and a class."""
    pairs, n = sorted(pairs), len(pairs)
    whole = [c for _, c in pairs]
    best = None
    for at in range(1, n):
        if pairs[at - 1][0] < pairs[at][0]:
            left, right = whole[:at], whole[at:]
            within = (at * entropy(left) + (n - at) * entropy(right)) / n
            if best is None or within < best[0] - 1e-12:
                best = within, at
    if best is None:
        return []
    within, at = best
    left, right = whole[:at], whole[at:]
    price = math.log2(3 ** len({*whole}) - 2) - (
        len({*whole}) * entropy(whole)
        - len({*left}) * entropy(left)
        - len({*right}) * entropy(right)
    )
    if entropy(whole) - within <= (math.log2(n - 1) + price) / n:
        return []
    cut = (pairs[at - 1][0] + pairs[at][0]) / 2
    return [*slow_cuts(pairs[:at]), cut, *slow_cuts(pairs[at:])]


@pytest.mark.parametrize("seed", range(6))
def test_cut_points_are_those_of_a_direct_search(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 80)
    x = np.round(rng.normal(size=80) + 1.5 * y * (seed % 3), 1)
    found = entropy_cuts(x, y)
    np.testing.assert_allclose(found, slow_cuts([*zip(x.tolist(), y.tolist(), strict=True)]))
    assert (len(found) > 0) == (seed % 3 > 0)


def test_other_rows_are_cut_in_the_same_places():
    table = pd.DataFrame({"x": range(20), "noise": [0.0, 1.0] * 10, "word": [*"ab"] * 10})
    table["y"] = ["a"] * 8 + ["b"] * 11 + ["a"]
    cut = mdl_discretization(table, "y")
    assert cut.cuts == {"x": (7.5,), "noise": ()}
    assert cut.left_out == ["noise"]
    rows = pd.DataFrame({"x": [3.0, np.nan, 99.0], "word": ["a", "b", "a"]})
    found = cut.apply(rows)
    assert list(found["x"].astype(object).fillna("-")) == ["<= 7.5", "-", "> 7.5"]
    assert list(found["word"]) == ["a", "b", "a"]
    classifier = bs.solvers.network_classifier(cut.apply(table), "y")
    assert classifier.probabilities(found).idxmax(axis=1).tolist()[::2] == ["a", "b"]


def test_parts_of_large_numbers_have_different_names():
    x = 1234567 + np.arange(240) / 100
    table = pd.DataFrame({"x": x, "y": np.repeat([*"abab"], 60)})
    found = mdl_discretization(table, "y").apply(table)["x"]
    assert found.value_counts().tolist() == [60] * 4
    assert found.iloc[0] == "<= 1234567.6"


def test_bad_tables_are_refused():
    table = pd.DataFrame({"x": range(4), "y": ["a", "b", None, "a"]})
    with pytest.raises(bs.TableError, match="unknown target 'z'"):
        mdl_discretization(table, "z")
    with pytest.raises(bs.TableError, match="the target 'y' is missing in 1 row: drop"):
        mdl_discretization(table, "y")
    with pytest.raises(bs.TableError, match="the target 'y' has one class"):
        mdl_discretization(table.assign(y="a"), "y")
    with pytest.raises(bs.TableError, match="column 'x' holds an infinite value"):
        mdl_discretization(table.assign(x=np.inf, y=[*"abab"]), "y")
    with pytest.raises(TypeError, match="pandas DataFrame"):
        mdl_discretization(table.to_numpy(), "y")
    with pytest.raises(bs.TableError, match="column 'x' is absent"):
        cut = mdl_discretization(pd.DataFrame({"x": range(20), "y": ["a"] * 8 + ["b"] * 12}), "y")
        cut.apply(pd.DataFrame({"u": [1]}))


def test_a_target_of_numbers_is_refused():
    table = pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20) / 7})
    with pytest.raises(bs.data.TableError, match="'y' holds numbers that are not whole"):
        mdl_discretization(table, "y")
