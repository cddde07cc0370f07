"""Predictive checks of tables of states: they accept the model that made them, and no other."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba

from bayesstruct.fields.reading.predictive import (
    predictive_item_rest,
    predictive_pair_tables,
    predictive_sum_scores,
)
from bayesstruct.graphs.plots.style import NEGATIVE, POSITIVE
from bayesstruct.plots import plot_item_rest, plot_pair_tables, plot_sum_scores

matplotlib.use("Agg")

CHECKS = [predictive_pair_tables, predictive_item_rest, predictive_sum_scores]


def tree(observed, replicated, missing=None, group="posterior_predictive"):
    dims, names = ("observation", "node"), list("abc")
    groups = {
        "observed_data": xr.Dataset({"x": (dims, observed)}, {"node": names}),
        group: xr.Dataset({"x": (("chain", "draw", *dims), replicated[None])}, {"node": names}),
    }
    if missing is not None:
        groups["constant_data"] = xr.Dataset({"cell_missing": (dims, missing.astype(int))})
    return xr.DataTree.from_dict(groups)


def table(rng, n=400, share=0.6):
    """Three items of 2, 3 and 2 states, the later ones copies of the first with some errors."""
    first = rng.integers(0, 2, n)
    second = np.where(rng.random(n) < share, 2 * first, rng.integers(0, 3, n))
    third = np.where(rng.random(n) < share, first, rng.integers(0, 2, n))
    return np.column_stack([first, second, third])


@pytest.fixture(scope="module")
def trees():
    rng = np.random.default_rng(0)
    observed = table(rng)
    good = np.array([table(rng) for _ in range(200)])
    bad = np.array([table(rng, share=0.0) for _ in range(200)])
    return tree(observed, good), tree(observed, bad)


@pytest.mark.parametrize("check", CHECKS)
def test_a_fitting_model_and_one_without_dependence(check, trees):
    good, bad = (check(t) for t in trees)
    assert good.inside.mean() >= 0.8
    assert bad.inside.mean() < 0.7
    assert (bad[~bad.inside].p_value < 0.05).all()
    assert good.p_value.between(0, 1).all()


def test_numbers_of_a_small_table():
    observed = np.array([[0, 0, 0], [0, 2, 0], [1, 2, 1], [1, 1, 1]])
    result = tree(observed, np.stack([observed] * 10))
    pairs = predictive_pair_tables(result)
    assert len(pairs) == 6 + 4 + 6
    row = pairs.query("source == 'a' and target == 'b' and source_state == 1 and target_state == 2")
    assert row.observed.item() == 0.25
    assert pairs.inside.all()
    assert (pairs.p_value == 1.0).all()
    scores = predictive_sum_scores(result)
    assert scores.score.tolist() == [0, 1, 2, 3, 4]
    assert scores.observed.tolist() == [0.25, 0.0, 0.25, 0.25, 0.25]
    items = predictive_item_rest(result)
    rest = observed[:, 1] + observed[:, 2]
    assert items.node.tolist() == ["a", "b", "c"]
    assert items.observed[0] == pytest.approx(np.corrcoef(observed[:, 0], rest)[0, 1])


def test_missing_cells_do_not_count():
    rng = np.random.default_rng(1)
    observed = table(rng)
    missing = rng.random(observed.shape) < 0.2
    spoilt = np.where(missing, 1, observed)
    replicated = np.array([table(rng) for _ in range(50)])
    result = tree(spoilt, replicated, missing)
    both = ~(missing[:, 0] | missing[:, 2])
    [row] = (
        predictive_pair_tables(result)
        .query("source == 'a' and target == 'c' and source_state == 1 and target_state == 1")
        .itertuples()
    )
    assert row.observed == pytest.approx((observed[both][:, [0, 2]] == 1).all(axis=1).mean())


def test_columns_that_are_never_seen_together():
    rng = np.random.default_rng(2)
    missing = np.zeros((40, 3), bool)
    missing[:20, 0] = missing[20:, 1] = True
    replicated = np.array([table(rng, 40) for _ in range(5)])
    result = tree(replicated[0], replicated, missing)
    pairs = predictive_pair_tables(result).set_index(["source", "target"])
    assert pairs.loc[("a", "b")][["observed", "mean", "low", "p_value"]].isna().all(axis=None)
    assert pairs.loc[("a", "c")].notna().all(axis=None)
    assert sum(counts(plot_pair_tables(result))) == pairs["observed"].notna().sum() == 10
    for check in (predictive_item_rest, predictive_sum_scores):
        with pytest.raises(ValueError, match="no row of the table is complete"):
            check(result)


def test_numbers_are_no_states():
    values = np.random.default_rng(1).normal(size=(2, 20, 3))
    for check in CHECKS:
        with pytest.raises(ValueError, match=r"numbers and not states: bs.predictive_correlations"):
            check(tree(values[0], values))


def test_a_column_that_is_always_constant_has_no_correlation():
    rng = np.random.default_rng(3)
    observed = table(rng)
    replicated = np.array([table(rng) for _ in range(5)])
    replicated[:, :, 0] = 1
    items = predictive_item_rest(tree(observed, replicated)).set_index("node")
    assert items.loc["a", ["mean", "low", "high", "p_value"]].isna().all()
    assert items.loc[["b", "c"]].notna().all(axis=None)


@pytest.mark.parametrize("check", CHECKS)
def test_without_replicated_tables(check):
    with pytest.raises(ValueError, match="sample_posterior_predictive"):
        check(xr.DataTree())
    with pytest.raises(ValueError, match="sample_prior_predictive"):
        check(xr.DataTree(), group="prior_predictive")


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    ("options", "words"),
    [({"prob": 2}, "`prob`"), ({"draws": 0}, "`draws`")],
)
def test_intervals_and_numbers_that_there_are_not(check, options, words, trees):
    with pytest.raises(ValueError, match=words):
        check(trees[0], **options)


def dots(ax):
    return [drawn for drawn in ax.collections if isinstance(drawn, PathCollection)]


def counts(ax):
    """Numbers of observed values inside and outside their intervals, as the legend has them."""
    first, *others = (text.get_text() for text in ax.get_legend().get_texts())
    assert first.endswith("interval")
    assert [text.split(":")[0] for text in others] == ["observed, inside", "observed, outside"]
    return [int(text.split(": ")[1].replace(",", "")) for text in others]


@pytest.mark.parametrize("plot", [plot_pair_tables, plot_item_rest, plot_sum_scores])
def test_every_mark_is_in_the_legend(plot, trees):
    ax = plot(trees[1])
    assert ax.get_xlabel()
    table = CHECKS[[plot_pair_tables, plot_item_rest, plot_sum_scores].index(plot)](trees[1])
    assert counts(ax) == [table.inside.sum(), (~table.inside).sum()]
    inside, outside = dots(ax)
    assert [len(inside.get_offsets()), len(outside.get_offsets())] == counts(ax)
    assert to_rgba(inside.get_facecolor()[0]) == to_rgba(POSITIVE)
    assert to_rgba(outside.get_facecolor()[0]) == to_rgba(NEGATIVE)
    other = plt.figure().add_subplot()
    assert plot(trees[0], ax=other) is other
    plt.close("all")


def with_labels(result, levels):
    """Record labels of the states of each column."""
    labels = [f"{name}={state}" for name, own in zip("abc", levels, strict=True) for state in own]
    node = np.repeat(np.arange(3), [len(own) for own in levels])
    constants = xr.Dataset({"state_node": ("state", node)}, {"state": labels, "node": list("abc")})
    result = result.copy()
    result["constant_data"] = xr.DataTree(constants)
    return result


def test_sum_scores_are_on_the_scale_of_the_items(trees):
    plain = predictive_sum_scores(trees[0])
    assert plain.attrs["notes"]
    assert plot_sum_scores(trees[0]).get_xlabel() == "sum score (states count from 0)"
    likert = with_labels(trees[0], ["12", "123", "12"])
    scores = predictive_sum_scores(likert)
    assert scores.score.tolist() == [3, 4, 5, 6, 7]
    np.testing.assert_allclose(scores.observed, plain.observed)
    np.testing.assert_allclose(
        predictive_item_rest(likert).observed, predictive_item_rest(trees[0]).observed
    )
    ax = plot_sum_scores(likert)
    assert ax.get_xlabel() == "sum score"
    places = np.concatenate([drawn.get_offsets()[:, 0] for drawn in dots(ax)])
    assert sorted(places) == [3, 4, 5, 6, 7]
    words = predictive_sum_scores(with_labels(trees[0], [["no", "yes"], "123", "12"]))
    assert words.score.tolist() == plain.score.tolist()
    assert words.attrs["notes"]


def test_sums_of_numbers_that_are_not_one_apart(trees):
    """Items with the numbers 0 and 2, 1, 3 and 7, and -1 and 1, added up by hand."""
    levels = [np.array([0, 2]), np.array([1, 3, 7]), np.array([-1, 1])]
    result = with_labels(trees[0], [[str(x) for x in own] for own in levels])
    codes = trees[0]["observed_data"]["x"].values
    values = np.column_stack([own[codes[:, j]] for j, own in enumerate(levels)])
    scores = predictive_sum_scores(result)
    assert scores.score.tolist() == [0, 2, 4, 6, 8, 10]
    expected = [(values.sum(axis=1) == score).mean() for score in scores.score]
    np.testing.assert_allclose(scores.observed, expected)
    rest = np.corrcoef(values[:, 1], values[:, 0] + values[:, 2])[0, 1]
    assert predictive_item_rest(result).observed[1] == pytest.approx(rest)


def test_the_worst_pairs_of_states_come_first(trees):
    result = with_labels(trees[1], ["12", ["low", "middle", "high"], "12"])
    table = predictive_pair_tables(result)
    ax = plot_pair_tables(result, max_pairs=4)
    half = (table.high - table.low) / 2
    worst = ((table.observed - table["mean"]).abs() / half).where(~table.inside).nlargest(4).index
    states = {"a": "12", "b": ["low", "middle", "high"], "c": "12"}
    expected = [
        f"{r.source} = {states[r.source][r.source_state]}, {r.target} = {states[r.target][r.target_state]}"
        for r in table.loc[worst].itertuples()
    ]
    assert [label.get_text() for label in ax.get_yticklabels()] == expected
    assert ax.get_xlabel() == "frequency of a pair of states, the 4 worst of 16"
    assert counts(ax) == [table.inside.sum(), (~table.inside).sum()]
    bars = np.array(ax.collections[0].get_segments())[:, :, 0]
    np.testing.assert_allclose(bars, table.loc[worst, ["low", "high"]])
    assert len(plot_pair_tables(result).get_yticks()) == 16
    with pytest.raises(ValueError, match="`max_pairs`"):
        plot_pair_tables(result, max_pairs=0)
