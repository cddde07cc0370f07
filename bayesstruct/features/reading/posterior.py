"""Draws of latent features, and the matching of features between draws.

Columns of a binary feature matrix have no names: from draw to draw the same feature may be another
column. All statements about single features rest on matching the columns of each draw to those
of one reference draw; quantities that do not depend on the order of the features (their number, how many
two rows share) are read from the draws directly.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import number
from bayesstruct.graphs.groups import SAMPLE_DIMS

if TYPE_CHECKING:
    import xarray as xr

FEATURE = "feature"
LOADING = "loading"
NODE = "node"
#: Rows (evenly spaced) from which the reference draw is chosen.
ROWS = 400
_ORIGIN = "a latent-feature model, such as bs.models.latent_features"


@dataclass(frozen=True)
class FeaturePosterior:
    """Draws of binary features, their loadings and labels.

    Attributes
    ----------
    feature : bool ndarray, shape (chain, draw, observation, latent)
    loading : float ndarray, shape (chain, draw, latent, node), or None
        None in models whose features have no loadings on columns.
    observations : ndarray, shape (n,)
        Labels of the rows.
    variables : list of str, or None
        Labels of the columns.
    """

    feature: np.ndarray
    loading: np.ndarray | None
    observations: np.ndarray
    variables: list[str] | None

    @property
    def flat(self) -> np.ndarray:
        """Features of all chains, one after another, shape (draws, observation, latent)."""
        return self.feature.reshape(-1, *self.feature.shape[2:])

    @cached_property
    def used(self) -> np.ndarray:
        """Whether some row has the feature, shape (draws, latent)."""
        return self.flat.any(axis=1)

    @property
    def counts(self) -> np.ndarray:
        """Number of features of each draw, shape (chain, draw)."""
        return self.used.sum(axis=-1).reshape(self.feature.shape[:2])


def read_features(
    idata: "xr.DataTree | FeaturePosterior", *, var_name: str = FEATURE, group: str = "posterior"
) -> FeaturePosterior:
    """Check a result once and give access to its parts.

    Parameters
    ----------
    idata : xarray.DataTree or FeaturePosterior
        Result of ``pm.sample()`` for a latent-feature model, or one that was read already.
    var_name : str
        Name of the binary matrix.
    group : {"posterior", "prior"}

    Returns
    -------
    FeaturePosterior

    Raises
    ------
    TypeError
        If `idata` is not a DataTree.
    ValueError
        If there is no such variable, or it is not a binary matrix.
    """
    if isinstance(idata, FeaturePosterior):
        return idata
    draws = draws_with(idata, var_name, group, "the binary features", _ORIGIN)
    feature = draws[var_name]
    if feature.ndim != 4 or not {*SAMPLE_DIMS} <= {*feature.dims}:
        raise ValueError(
            f"`{var_name}` must be a matrix for each chain and draw, found {feature.dims}."
        )
    values = feature.transpose(*SAMPLE_DIMS, ...)
    rows, latent = values.dims[2:]
    binary = values.values
    if not binary.size:
        raise ValueError("This result holds no draws.")
    if not np.isin(np.unique(binary), (0, 1)).all():
        raise ValueError(f"`{var_name}` must hold 0 and 1 only.")
    loading, variables = _loading(draws, latent)
    labels = draws[rows].values if rows in draws.coords else np.arange(values.sizes[rows])
    return FeaturePosterior(binary.astype(bool), loading, labels, variables)


def _loading(draws, latent):
    """Return loadings and the names of the columns, if the model has them for these features."""
    loading = draws.get(LOADING)
    if loading is None or latent not in loading.dims or loading.ndim != 4:
        return None, None
    loading = loading.transpose(*SAMPLE_DIMS, latent, ...)
    node = loading.dims[-1]
    names = loading[node].values if node in loading.coords else np.arange(loading.sizes[node])
    return loading.values, [str(name) for name in names]


def draws_with(
    idata: "xr.DataTree", var_name: str, group: str, what: str, origin: str
) -> "xr.Dataset":
    """Return the group of a result that has a variable.

    Parameters
    ----------
    idata : xarray.DataTree
    var_name, group : str
    what, origin : str
        Description of the variable and of the models that have it, for the message.

    Raises
    ------
    TypeError, ValueError
        If there is no such variable; with reason and remedy.
    """
    import xarray as xr

    if not isinstance(idata, xr.DataTree):
        raise TypeError(
            "Expected the xarray.DataTree that pm.sample() returns, got "
            f"{type(idata).__module__}.{type(idata).__name__}. Pass the whole tree, not idata.posterior."
        )
    if group not in idata.children:
        found = ", ".join(idata.children) or "none"
        raise ValueError(
            f"This result has no group `{group}` (its groups: {found}). Was it sampled from {origin}?"
        )
    draws = idata[group].to_dataset()
    if var_name not in draws:
        found = ", ".join(map(str, draws.data_vars)) or "nothing"
        raise ValueError(
            f"This result has no `{var_name}`, {what}; it holds {found}. Was it sampled from {origin}?"
        )
    return draws


@dataclass(frozen=True)
class MatchedFeatures:
    """Columns of each draw under the names of those of a reference draw.

    Attributes
    ----------
    column : int ndarray, shape (draws, matched)
        Which column of the draw is this feature; -1 where the draw does not have it.
    reference : int
        Position of the reference draw, chains one after another.
    """

    column: np.ndarray
    reference: int

    @property
    def present(self) -> np.ndarray:
        """Whether the draw has the feature, shape (draws, matched)."""
        return self.column >= 0

    def pick(self, values: np.ndarray, axis: int = 1) -> np.ndarray:
        """Take the values of each matched feature; zero where a draw does not have it.

        Parameters
        ----------
        values : ndarray, shape (draws, latent, ...) or (draws, ..., latent)
        axis : int
            Position of the dimension `latent`.
        """
        shape = [1] * values.ndim
        shape[0], shape[axis] = self.column.shape
        picked = np.take_along_axis(values, self.column.clip(0).reshape(shape), axis=axis)
        return np.where(self.present.reshape(shape), picked, 0)


def match(posterior: FeaturePosterior, overlap: float) -> MatchedFeatures:
    """Match the columns of all draws to those of the reference draw, the most frequent feature first."""
    from scipy.optimize import linear_sum_assignment

    overlap = number("overlap", overlap, above=0, most=1)
    chosen = reference_draw(posterior)
    reference = _used_columns(posterior.flat[chosen])
    reference = reference[:, np.argsort(-reference.sum(axis=0), kind="stable")]
    column = np.full((len(posterior.flat), reference.shape[1]), -1)
    sizes = reference.sum(axis=0)
    for row, drawn, used in zip(column, posterior.flat, posterior.used, strict=True):
        z = _used_columns(drawn)
        dice = 2 * (reference.T @ z) / (sizes[:, None] + z.sum(axis=0))
        mine, its = linear_sum_assignment(-np.where(dice >= overlap, dice, 0.0))
        good = dice[mine, its] >= overlap
        row[mine[good]] = np.flatnonzero(used)[its[good]]
    return MatchedFeatures(column, chosen)


def reference_draw(posterior: FeaturePosterior) -> int:
    r"""Position of the draw whose co-assignment matrix is closest to the posterior mean.

    With S the mean of Z Z' over draws, the squared distance is, up to a constant,
    :math:`\|Z'Z\|_F^2 - 2 \operatorname{tr}(Z' S Z)`.
    """
    n = posterior.feature.shape[2]
    rows = np.unique(np.linspace(0, n - 1, min(n, ROWS)).round().astype(int))
    some = posterior.flat[:, rows]
    mean = mean_products(some)
    return int(np.argmin([_distance(_used_columns(drawn), mean) for drawn in some]))


def _distance(z: np.ndarray, mean: np.ndarray) -> float:
    return float(((z.T @ z) ** 2).sum() - 2 * (z * (mean @ z)).sum())


def _used_columns(drawn: np.ndarray) -> np.ndarray:
    return drawn[:, drawn.any(axis=0)].astype(np.float32)


def mean_products(draws: np.ndarray) -> np.ndarray:
    """Mean of Z Z' over draws of shape (draws, n, latent)."""
    total = np.zeros((draws.shape[1],) * 2, np.float32)
    for drawn in draws:
        z = _used_columns(drawn)
        total += z @ z.T
    return total / len(draws)
