"""Predictive checks of tables of states: they accept the model that made them, and no other."""

import matplotlib
import numpy as np
import pytest
import xarray as xr

from bayesstruct.fields.reading.predictive import (
    predictive_item_rest,
    predictive_pair_tables,
    predictive_sum_scores,
)
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
    legend = [t.get_text() for t in plot_pair_tables(result).get_legend().texts]
    assert sum(int(text.split(": ")[1]) for text in legend) == pairs["observed"].notna().sum() == 10
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


@pytest.mark.parametrize("plot", [plot_pair_tables, plot_item_rest, plot_sum_scores])
def test_plots(plot, trees):
    import matplotlib.pyplot as plt

    ax = plot(trees[1])
    assert ax.get_xlabel()
    assert ax.get_legend() is not None
    other = plt.figure().add_subplot()
    assert plot(trees[0], ax=other) is other
    plt.close("all")
