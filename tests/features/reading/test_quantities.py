"""The check of latent features sees what does not depend on the order of columns."""

import numpy as np
import xarray as xr

from tools.features import shuffled_features

import bayesstruct as bs

from bayesstruct.features.reading.quantities import feature_quantities

Z = np.column_stack([np.arange(30) < 20, np.arange(30) % 2 == 0])
LOADING = np.array([[3.0, 0, 0], [0, -2, 0]])


def test_draws_in_any_order_have_converged():
    tree = shuffled_features(Z, LOADING, chains=4, draws=300, flips=0.2)
    result = bs.check(tree)
    assert all(row.ok for row in result.rows[1:]), result
    # No draw of these has another number of features, which is no evidence that none could have.
    assert result.rows[0].verdict.startswith("did not move")
    names = [row.quantity for row in result.rows]
    assert [name.split(" (")[0] for name in names] == [
        "number of features",
        "features of a row",
        "features in common",
        "fitted value",
    ]


def test_fitted_values_are_scores_times_loadings():
    tree = shuffled_features(Z, LOADING, chains=2, draws=50)
    feature, loading = (tree["posterior"][name] for name in ("feature", "loading"))
    rng = np.random.default_rng(1)
    # The size of each score and of its loadings is different in each draw, what they make together is not.
    scale = rng.uniform(0.5, 2.0, size=feature.shape[:2])[..., None, None]
    score = feature * rng.permutation(np.linspace(-2, 2, len(Z)))[:, None]
    tree["posterior"]["score"] = score * scale
    tree["posterior"]["loading"] = loading / scale
    fitted = dict(feature_quantities(tree["posterior"].dataset))["fitted value"].to_numpy()
    np.testing.assert_allclose(fitted, score.to_numpy() @ loading.to_numpy())


def test_chains_with_different_features_have_not():
    one = shuffled_features(Z, LOADING, chains=2, draws=200, flips=0.2)
    other = shuffled_features(Z[::-1], LOADING, chains=2, draws=200, flips=0.2)
    for name in ("feature", "loading"):
        one["posterior"][name].values[1] = other["posterior"][name].values[0]
    result = bs.check(one)
    assert not result.ok
    bad = [row.quantity for row in result.rows if not row.ok]
    assert any(name.startswith("features in common") for name in bad)


def test_other_parameters_are_checked_too():
    tree = shuffled_features(Z, LOADING, chains=2, draws=200)
    noise = np.random.default_rng(0).normal(size=(2, 200)) + np.array([[0.0], [3.0]])
    tree["posterior"]["noise"] = xr.DataArray(noise, dims=("chain", "draw"))
    row = bs.check(tree).rows[-1]
    assert row.quantity == "noise"
    assert not row.ok


def test_features_without_named_dimensions_are_followed_alike():
    tree = shuffled_features(Z, LOADING, chains=4, draws=100, flips=0.2)
    bare = tree["posterior"].to_dataset()
    feature = bare["feature"].drop_vars(["observation", "latent"], errors="ignore")
    loading = bare["loading"].drop_vars(["latent", "node"], errors="ignore")
    feature = feature.rename(observation="feature_dim_0", latent="feature_dim_1")
    loading = loading.rename(latent="loading_dim_0", node="loading_dim_1")
    loading = loading.assign_coords(loading_dim_0=np.arange(loading.sizes["loading_dim_0"]))
    rest = bare.drop_vars(["feature", "loading"]).drop_dims(["latent"], errors="ignore")
    bare = xr.DataTree.from_dict({"posterior": rest.assign(feature=feature, loading=loading)})
    named, unnamed = bs.check(tree).to_frame(), bs.check(bare).to_frame()
    assert [q.split(" (")[0] for q in unnamed.quantity] == [
        q.split(" (")[0] for q in named.quantity
    ]
    np.testing.assert_allclose(unnamed.ess_bulk, named.ess_bulk)
