"""Partitions read from draws whose answers are known."""

import numpy as np
import pytest
import xarray as xr

import bayesstruct as bs


def result(labels, coefficient=None):
    """Return a result with these labels, (chain, draw, n)."""
    variables = {"cluster": (("chain", "draw", "observation"), np.asarray(labels))}
    coords = {}
    if coefficient is not None:
        dims = ("chain", "draw", "component", "term")
        variables["coefficient"] = (dims, np.asarray(coefficient, float))
        coords["term"] = ["intercept", "a"]
    return xr.DataTree.from_dict({"posterior": xr.Dataset(variables, coords)})


#: The first three draws have the clusters of rows 0-2 and 3-5, under two names; the last has one.
LABELS = [[[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1]], [[0, 0, 0, 1, 1, 2], [0, 0, 0, 0, 0, 0]]]


def test_who_is_with_whom():
    found = bs.co_clustering(result(LABELS))
    assert found.shape == (6, 6)
    assert found.loc[0, 1] == 1.0
    assert found.loc[0, 3] == 0.25
    assert found.loc[3, 5] == 0.75
    np.testing.assert_allclose(np.diag(found), 1.0)
    # Another order of appearance is the same partition.
    swapped = np.array(LABELS)[..., ::-1]
    np.testing.assert_allclose(bs.co_clustering(result(swapped)), found.to_numpy()[::-1, ::-1])


def test_the_reference_is_the_least_squares_partition():
    table = bs.cluster_table(result(LABELS))
    assert table.attrs["reference"] == (0, 0)
    np.testing.assert_allclose(table["probability"].sum(), 1.75)
    assert len(table) == 2
    # The draw with one cluster has the one or the other: Dice coefficients 2 * 3 / 9.
    assert sorted(table["probability"]) == [0.75, 1.0]
    assert table.attrs["unmatched"] == pytest.approx(0.25)
    mean = np.array(LABELS).reshape(4, 6)
    together = (mean[:, :, None] == mean[:, None, :]).astype(float)
    distance = ((together - together.mean(axis=0)) ** 2).sum(axis=(1, 2))
    assert distance.argmin() == 0


def test_coefficients_follow_their_clusters():
    rng = np.random.default_rng(0)
    labels = np.zeros((2, 40, 8), int)
    labels[:, :, 5:] = 1
    coefficient = np.zeros((2, 40, 3, 2))
    coefficient[:, :, 0] = [1.0, 2.0]
    coefficient[:, :, 1] = [-1.0, -2.0]
    coefficient[:, :, :2] += 0.1 * rng.normal(size=(2, 40, 2, 2))
    # In half of the draws the rows of the smaller cluster come first.
    labels[1] = 1 - labels[1]
    coefficient[1, :, :2] = coefficient[1, :, 1::-1]
    table = bs.cluster_coefficients(result(labels, coefficient))
    assert table["cluster"].tolist() == [1, 1, 2, 2]
    assert table["term"].tolist() == ["intercept", "a"] * 2
    np.testing.assert_allclose(table["mean"], [1, 2, -1, -2], atol=0.05)
    assert ((table["hdi_high"] - table["hdi_low"]).between(0.2, 0.6)).all()


def test_bad_input():
    with pytest.raises(TypeError, match="whole tree"):
        bs.co_clustering(result(LABELS)["posterior"].to_dataset())
    with pytest.raises(ValueError, match="no `cluster`"):
        bs.cluster_table(xr.DataTree.from_dict({"posterior": xr.Dataset()}))
    with pytest.raises(ValueError, match="labels 0, 1"):
        bs.co_clustering(result(np.array(LABELS) - 1))
    with pytest.raises(ValueError, match="ci_prob"):
        bs.cluster_table(result(LABELS), ci_prob=1.0)
    with pytest.raises(ValueError, match="overlap"):
        bs.cluster_table(result(LABELS), overlap=0.0)
    with pytest.raises(ValueError, match="cluster_table"):
        bs.cluster_coefficients(result(LABELS))
    with pytest.raises(ValueError, match="dp_glm"):
        tree = result(LABELS)
        tree["constant_data"] = xr.DataTree()
        bs.mixture_predictions(tree, [[1.0]])
