"""Latent features read from a posterior: names by matching, counts, co-assignment."""

import itertools

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from tools.features import feature_posterior, shuffled_features

import bayesstruct as bs

from bayesstruct.features.reading.posterior import match, read_features, reference_draw

N = 30
Z = np.column_stack([np.arange(N) < 20, np.arange(N) % 2 == 0, np.arange(N) >= 24])
LOADING = np.array([[3.0, 0, 0, 1], [0, -2, 0, 1], [0, 0, 4, 1]])


@pytest.fixture(scope="module")
def result():
    return shuffled_features(Z, LOADING, flips=0.03, absent=0.25, seed=3)


def test_features_are_found_again_in_whatever_order_they_come(result):
    table = bs.feature_table(result)
    assert table["feature"].tolist() == [1, 2, 3]
    present = (result["posterior"]["feature"].sum("observation") > 0).sum("latent")
    assert table["probability"].tolist() == [1.0, 1.0, float((present == 3).mean())]
    np.testing.assert_allclose(table["share"], Z.mean(axis=0), atol=0.03)
    assert ((table["hdi_low"] <= table["share"]) & (table["share"] <= table["hdi_high"])).all()
    assert table.attrs["unmatched"] == 0
    membership = bs.feature_membership(result).to_numpy()
    assert ((membership[:, :2] > 0.5) == Z[:, :2]).all()
    assert membership[:, 2].max() <= table["probability"][2]


def test_loadings_follow_their_features(result):
    table = bs.loading_table(result)
    mean = table.pivot(index="feature", columns="variable", values="mean").to_numpy()
    np.testing.assert_allclose(mean, LOADING, atol=0.08)
    assert (table["hdi_high"] - table["hdi_low"]).between(0.1, 0.8).all()


def test_naive_means_of_columns_say_nothing(result):
    """What matching is for: column by column all features look the same."""
    naive = result["posterior"]["loading"].mean(("chain", "draw")).to_numpy()
    assert abs(naive).max() < 1.5


def test_tables_do_not_depend_on_the_order_of_columns():
    drawn = shuffled_features(Z, LOADING, flips=0.1, draws=15)
    mixed = drawn.copy(deep=True)
    rng = np.random.default_rng(0)
    posterior = drawn["posterior"].to_dataset()
    for c, t in itertools.product(range(2), range(15)):
        order = rng.permutation(6)
        for name in ("feature", "loading"):
            axis = -1 if name == "feature" else 0
            old = posterior[name].values[c, t]
            mixed["posterior"][name].values[c, t] = np.take(old, order, axis=axis)
    pd.testing.assert_frame_equal(bs.feature_table(drawn), bs.feature_table(mixed))
    pd.testing.assert_frame_equal(bs.loading_table(drawn), bs.loading_table(mixed))
    pd.testing.assert_frame_equal(bs.co_assignment(drawn), bs.co_assignment(mixed))


def test_the_reference_is_the_draw_closest_to_the_mean_co_assignment(result):
    posterior = read_features(result)
    products = np.array([z.astype(float) @ z.T.astype(float) for z in posterior.flat])
    distance = ((products - products.mean(axis=0)) ** 2).sum(axis=(1, 2))
    assert distance[reference_draw(posterior)] == pytest.approx(distance.min())
    np.testing.assert_allclose(bs.co_assignment(result), products.mean(axis=0), rtol=1e-5)


def test_matching_maximises_the_sum_of_dice_coefficients():
    rng = np.random.default_rng(5)
    drawn = rng.integers(0, 2, (1, 6, 8, 4)).astype(np.int8)
    posterior = read_features(feature_posterior(drawn))
    matched = match(posterior, 1e-9)
    reference = posterior.flat[matched.reference]
    reference = reference[:, np.argsort(-reference.sum(axis=0), kind="stable")]

    def dice(a, b):
        return 2 * (a & b).sum() / (a.sum() + b.sum())

    for z, column in zip(posterior.flat, matched.column, strict=True):
        best = max(
            sum(dice(reference[:, a], z[:, b]) for a, b in enumerate(order))
            for order in itertools.permutations(range(4))
        )
        there = column >= 0
        found = sum(dice(reference[:, a], z[:, column[a]]) for a in np.flatnonzero(there))
        assert found == pytest.approx(best)


def test_a_feature_of_other_rows_is_not_matched():
    one, other = np.zeros((2, 10, 1), np.int8)
    one[:6], other[6:] = 1, 1
    tree = feature_posterior(np.array([[one, one, one, other]]))
    table = bs.feature_table(tree)
    assert table["probability"].tolist() == [0.75]
    assert table.attrs["unmatched"] == 0.25
    assert table.attrs["reference"][1] in (0, 1, 2)


def test_counts():
    drawn = np.zeros((1, 4, 3, 5), np.int8)
    drawn[0, 1, 0, 0] = drawn[0, 2, :, 2] = drawn[0, 2, 1, 4] = drawn[0, 3, 0, 3] = 1
    share = bs.feature_count_probabilities(feature_posterior(drawn))
    assert share.tolist() == [0.25, 0.5, 0.25]


def test_no_features_at_all():
    tree = feature_posterior(np.zeros((2, 5, 4, 3), np.int8), np.zeros((2, 5, 3, 2)))
    assert bs.feature_table(tree).empty
    assert bs.loading_table(tree).empty
    assert bs.feature_membership(tree).shape == (4, 0)
    assert bs.feature_count_probabilities(tree).tolist() == [1.0]


def test_other_results_are_refused():
    tree = feature_posterior(np.ones((1, 5, 4, 3), np.int8))
    with pytest.raises(TypeError, match="whole tree"):
        bs.feature_table(tree["posterior"].to_dataset())
    with pytest.raises(ValueError, match="no `feature`"):
        bs.feature_table(xr.DataTree.from_dict({"posterior": xr.Dataset({"a": ("b", [1.0])})}))
    with pytest.raises(ValueError, match="no group `prior`"):
        bs.feature_count_probabilities(tree, group="prior")
    with pytest.raises(ValueError, match="0 and 1"):
        bs.feature_table(feature_posterior(np.full((1, 5, 4, 3), 2)))
    with pytest.raises(ValueError, match="no `loading`"):
        bs.loading_table(tree)
    with pytest.raises(ValueError, match="`overlap`"):
        bs.feature_table(tree, overlap=0)
    with pytest.raises(ValueError, match="`ci_prob`"):
        bs.feature_table(tree, ci_prob=94)
    with pytest.raises(ValueError, match="6,000 rows"):
        bs.co_assignment(feature_posterior(np.ones((1, 1, 6000, 1), np.int8)))
