"""Tables from a linear Gaussian model with known binary features."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.random_graphs import hide_values
from bayesstruct.data.arguments import generator, number, whole_number
from bayesstruct.features.kernels.indian_buffet import check_buffet, draw_by_dishes

if TYPE_CHECKING:
    import pandas

__all__ = ["LatentFeatureSimulation", "latent_features"]


@dataclass(frozen=True, eq=False, repr=False)
class LatentFeatureSimulation:
    """A simulated table with the features behind it.

    Attributes
    ----------
    data : pandas.DataFrame, shape (n, d)
        The table; NaN where a value was made missing.
    feature : pandas.DataFrame, shape (n, K)
        0 and 1: which features each row has.
    loading : pandas.DataFrame, shape (K, d)
        Effect of each feature on each column.
    noise : float
        Standard deviation.
    """

    data: "pandas.DataFrame"
    feature: "pandas.DataFrame"
    loading: "pandas.DataFrame"
    noise: float

    def __repr__(self) -> str:
        n, d = self.data.shape
        return f"LatentFeatureSimulation({n:,} x {d:,} table, {self.feature.shape[1]} features)"


def latent_features(
    n: int,
    d: int = 10,
    *,
    n_features: int | None = None,
    probability: float = 0.5,
    alpha: float | None = None,
    loading: Any = None,
    loading_scale: float = 1.0,
    noise: float = 0.5,
    missing: float = 0.0,
    random_seed: int | np.random.Generator | None = None,
) -> LatentFeatureSimulation:
    r"""Simulate a table from a linear Gaussian latent-feature model.

    .. math:: x_i \sim N(z_i A, \sigma^2 I), \qquad A_{kj} \sim N(0, \tau^2)

    Parameters
    ----------
    n : int
        Number of rows.
    d : int, default 10
        Number of columns, named ``x0``, ``x1``, ... Not used if `loading` is given.
    n_features : int, optional
        Number of features, 4 by default, each of which a row has with `probability`.
    probability : float, default 0.5
    alpha : float, optional
        Draw the features from an Indian buffet process with this mean number of features of a row; then
        their number is random, and neither `n_features` nor `loading` may be given.
    loading : (K, d) array_like or DataFrame, optional
        A; by default normal. The names of its columns are those of the table.
    loading_scale : float, default 1
        :math:`\tau`.
    noise : float, default 0.5
        :math:`\sigma`.
    missing : float, default 0
        Share of values to make missing, completely at random except that each row keeps at least one.
    random_seed : int or numpy.random.Generator, optional
        The same seed gives the same simulation.

    Returns
    -------
    LatentFeatureSimulation

    Raises
    ------
    TypeError, ValueError
        If a number is out of range, or two options contradict each other.

    References
    ----------
    Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and review.
    *JMLR* 12, 1185-1224, section 5.

    Examples
    --------
    >>> latent_features(100, d=8, n_features=3, random_seed=1)
    LatentFeatureSimulation(100 x 8 table, 3 features)
    """
    import pandas as pd

    rng, n, d = generator(random_seed), whole_number("n", n, 1), whole_number("d", d, 1)
    probability = number("probability", probability, least=0, most=1)
    noise = number("noise", noise, least=0)
    loading_scale = number("loading_scale", loading_scale, least=0)
    if not 0 <= number("missing", missing) < 1:
        raise ValueError(
            f"`missing` is a share of the values, from 0 to below 1, it is {missing:g}"
        )
    given, names = _given_loading(loading, d)
    z = _draw_features(rng, n, _number(n_features, alpha, given), probability, alpha)
    if given is None:
        given = loading_scale * rng.standard_normal((z.shape[1], d))
    values = z @ given + noise * rng.standard_normal((n, len(names)))
    hide_values(values, missing, rng)
    labels = [f"feature {k + 1}" for k in range(z.shape[1])]
    return LatentFeatureSimulation(
        pd.DataFrame(values, columns=names),
        pd.DataFrame(z, columns=labels),
        pd.DataFrame(given, labels, names),
        float(noise),
    )


def _given_loading(loading, d):
    """Return loadings as an array, or None, and the names of the columns."""
    if loading is None:
        return None, [f"x{j}" for j in range(d)]
    names = getattr(loading, "columns", None)
    values = np.asarray(loading, float)
    if values.ndim != 2 or not np.isfinite(values).all():
        raise ValueError("`loading` must be a matrix of finite numbers, features by columns")
    names = [f"x{j}" for j in range(values.shape[1])] if names is None else list(map(str, names))
    return values, names


def _number(n_features, alpha, loading) -> int | None:
    """Return the number of features, None if it is to be drawn."""
    if alpha is not None:
        if n_features is not None or loading is not None:
            raise ValueError(
                "with `alpha` the number of features is drawn: leave out `n_features` and `loading`"
            )
        check_buffet(alpha)
        return None
    if loading is not None:
        if n_features not in (None, len(loading)):
            raise ValueError(
                f"`loading` has {len(loading)} features, and `n_features` is {n_features}"
            )
        return len(loading)
    return 4 if n_features is None else whole_number("n_features", n_features, 0)


def _draw_features(rng, n, number, probability, alpha) -> np.ndarray:
    if number is None:
        return draw_by_dishes(rng, n, alpha).astype(int)
    return (rng.random((n, number)) < probability).astype(int)
