"""Made-up results of latent-feature models, without sampling."""

import numpy as np
import xarray as xr


def feature_posterior(feature, loading=None, *, names=None, rows=None):
    """Build a DataTree from features (chain, draw, n, latent) and loadings (chain, draw, latent, d)."""
    feature = np.asarray(feature)
    rows = np.arange(feature.shape[2]) if rows is None else rows
    draws = {"feature": (("chain", "draw", "observation", "latent"), feature)}
    coords = {"observation": rows}
    if loading is not None:
        draws["loading"] = (("chain", "draw", "latent", "node"), np.asarray(loading))
        coords["node"] = names or [f"x{j}" for j in range(np.shape(loading)[-1])]
    return xr.DataTree.from_dict({"posterior": xr.Dataset(draws, coords)})


def shuffled_features(
    z, loading, *, chains=2, draws=40, flips=0.0, absent=0.0, max_features=6, seed=0
):
    """Return a result whose draws are the given features in any order, with errors.

    Parameters
    ----------
    z : (n, k) array_like
    loading : (k, d) array_like
    flips : float
        Probability that an entry of a draw is the other one.
    absent : float
        Probability that a draw lacks the last feature.
    """
    rng = np.random.default_rng(seed)
    z, loading = np.asarray(z, bool), np.asarray(loading, float)
    (n, k), d = z.shape, loading.shape[1]
    feature = np.zeros((chains, draws, n, max_features), np.int8)
    weights = np.zeros((chains, draws, max_features, d))
    for c, t in np.ndindex(chains, draws):
        kept = np.arange(k - (rng.random() < absent))
        places = rng.permutation(max_features)[: len(kept)]
        feature[c, t][:, places] = (z ^ (rng.random((n, k)) < flips))[:, kept]
        weights[c, t][places] = loading[kept] + 0.1 * rng.standard_normal((len(kept), d))
    return feature_posterior(feature, weights)
