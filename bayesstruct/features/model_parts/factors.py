"""What the models with sparse factors share."""

import numpy as np
import pymc as pm

from bayesstruct.data.table import Table
from bayesstruct.features.model_parts.links import check_number, room
from bayesstruct.features.priors.feature_scores import FactorRows, FeatureScores
from bayesstruct.features.priors.indian_buffet import FeatureLoadings, IndianBuffet

__all__ = ["factor_model"]


def factor_model(data, law, *, alpha, noise, loading_scale, concentration, discount, max_features):
    """Build the model of sparse factors whose scores have this law; see the models that call it."""
    table = Table.continuous(data)
    for name, value in (("alpha", alpha), ("noise", noise), ("loading_scale", loading_scale)):
        check_number(name, value)
    x, gaps = table.standardized, table.missing
    n, d = x.shape
    columns = room(n, max_features, alpha, concentration, discount, prior=(1.0, 1.0))
    rows = ("observation", "node")
    coords = {"observation": np.arange(n), "node": table.names, "latent": np.arange(columns)}
    with pm.Model(coords=coords) as model:
        alpha = pm.Gamma("alpha", 1.0, 1.0) if alpha is None else float(alpha)
        if noise is None:
            noise = pm.HalfNormal("noise", 1.0, dims="node")
        else:
            noise = np.full(d, float(noise))
        if loading_scale is None:
            loading_scale = pm.HalfNormal("loading_scale", 1.0)
        feature = IndianBuffet(
            "feature",
            alpha,
            observations=n,
            concentration=concentration,
            discount=discount,
            truncation=columns,
            dims=("observation", "latent"),
        )
        score = FeatureScores("score", feature, law=law, dims=("observation", "latent"))
        loading = FeatureLoadings(
            "loading", feature, loading_scale, variables=d, dims=("latent", "node")
        )
        pm.Deterministic("n_features", (feature.sum(axis=0) > 0).sum())
        seen = None if not gaps.any() else pm.Data("seen", 1.0 - gaps, dims=rows)
        pm.Data("location", table.location, dims="node")
        pm.Data("scale", table.scale, dims="node")
        observed = np.where(gaps, 0.0, x)
        FactorRows("x", score, loading, noise, seen=seen, observed=observed, dims=rows)
    return model
