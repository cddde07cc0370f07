"""Model of sparse factors, whatever the distribution of their scores."""

import numpy as np
import pymc as pm

from bayesstruct.core.missing import show_missing
from bayesstruct.core.tables.codings import ColumnUnits
from bayesstruct.data.arguments import optional_number
from bayesstruct.data.recoding import without_codes
from bayesstruct.data.table import Table
from bayesstruct.features.model_parts.process import choose_max_features, features
from bayesstruct.features.ops.columns import features_in_use
from bayesstruct.features.priors.feature_scores import FactorRows, FeatureScores
from bayesstruct.features.priors.indian_buffet import FeatureLoadings

__all__ = ["factor_model"]


def factor_model(
    data,
    distribution: str,
    *,
    alpha: float | None,
    noise: float | None,
    loading_scale: float | None,
    concentration: float,
    discount: float,
    max_features: int | None,
    missing_codes,
) -> pm.Model:
    """Build the model of sparse factors whose scores have this distribution.

    Parameters
    ----------
    data : DataFrame or array_like
    distribution : {"normal", "laplace"}
    alpha, noise, loading_scale, concentration, discount, max_features, missing_codes
        Options of :func:`bayesstruct.models.sparse_factor_analysis`.
    """
    table = Table.continuous(without_codes(data, missing_codes), normal=False)
    alpha = optional_number("alpha", alpha, above=0)
    noise = optional_number("noise", noise, above=0)
    loading_scale = optional_number("loading_scale", loading_scale, above=0)
    x, gaps = table.standardized, table.missing
    n, d = x.shape
    columns = choose_max_features(n, max_features, alpha, concentration, discount, prior=(1.0, 1.0))
    rows, dims = ("observation", "node"), ("observation", "latent")
    coords = {"observation": np.arange(n), "node": table.names, "latent": np.arange(columns)}
    with pm.Model(coords=coords) as model:
        alpha = pm.Gamma("alpha", 1.0, 1.0) if alpha is None else alpha
        sd = pm.HalfNormal("noise", 1.0, dims="node") if noise is None else np.full(d, noise)
        if loading_scale is None:
            loading_scale = pm.HalfNormal("loading_scale", 1.0)
        feature = features("feature", alpha, n, columns, dims, concentration, discount)
        score = FeatureScores("score", feature, distribution=distribution, dims=dims)
        loading = FeatureLoadings(
            "loading", feature, loading_scale, variables=d, dims=("latent", "node")
        )
        pm.Deterministic("n_features", features_in_use(feature))
        seen = None if not gaps.any() else pm.Data("seen", 1.0 - gaps, dims=rows)
        ColumnUnits(table.location, table.scale).record()
        observed = np.where(gaps, 0.0, x)
        x = FactorRows("x", score, loading, sd, seen=seen, observed=observed, dims=rows)
        show_missing(x, gaps)
    return model
