"""Convergence of partitions: what is followed does not depend on labels."""

import numpy as np
import xarray as xr

import bayesstruct as bs

from bayesstruct.mixtures.reading.quantities import cluster_quantities


def draws(rng, chains=4, n_draws=200, n=6):
    """Independent draws of two clusters or one, under labels that change at random."""
    second = rng.random((chains, n_draws, 1)) < 0.7
    labels = np.where(second, np.arange(n) >= 4, False).astype(int)
    mean = np.where(np.arange(2) == 0, -1.0, 1.0) + 0.1 * rng.normal(size=(chains, n_draws, 2))
    swapped = rng.random((chains, n_draws)) < 0.5
    swapped[0] = False  # one chain never does
    labels[swapped] = 1 - labels[swapped]
    mean[swapped] = mean[swapped][:, ::-1]
    dims = ("chain", "draw")
    return xr.Dataset(
        {
            "cluster": ((*dims, "observation"), labels),
            "n_clusters": (dims, 1 + labels.max(axis=2)),
            "coefficient": ((*dims, "component", "term"), mean[..., None]),
            "alpha": (dims, rng.gamma(2.0, size=(chains, n_draws))),
        },
        {"term": ["intercept"], "observation": list("abcdef")},
    )


def test_quantities_do_not_depend_on_labels():
    one = draws(np.random.default_rng(0))
    other = one.copy()
    other["cluster"] = 1 - one["cluster"]
    other["coefficient"] = one["coefficient"].isel(component=[1, 0])
    found, again = dict(cluster_quantities(one)), dict(cluster_quantities(other))
    assert list(found) == [
        "number of clusters",
        "size of the largest cluster",
        "rows in the cluster of a row",
        "coefficient of a row",
    ]
    for name, values in found.items():
        np.testing.assert_array_equal(values, again[name])
    assert set(np.unique(found["size of the largest cluster"])) == {4, 6}
    np.testing.assert_array_equal(
        found["rows in the cluster of a row"].max("observation"),
        found["size of the largest cluster"],
    )


def test_chains_with_other_labels_have_converged():
    tree = xr.DataTree.from_dict({"posterior": draws(np.random.default_rng(1))})
    result = bs.check(tree)
    assert result.ok, result
    names = {row.quantity.partition(" (")[0] for row in result.rows}
    assert {"number of clusters", "coefficient of a row", "alpha"} <= names
    assert not {"cluster", "n_clusters", "coefficient"} & names


def test_chains_with_other_partitions_have_not():
    wrong = draws(np.random.default_rng(2))
    wrong["cluster"][0] = np.arange(6) >= 2
    result = bs.check(xr.DataTree.from_dict({"posterior": wrong}))
    bad = {row.quantity.partition(" (")[0] for row in result.rows if not row.ok}
    assert "number of clusters" in bad
    assert "alpha" not in bad
