"""The behaviours of time series row by row, from a posterior of series that share them."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_summary, variables
from bayesstruct.data.arguments import whole_number
from bayesstruct.features.reading.posterior import read_features, reference_draw
from bayesstruct.features.reading.tables import FEATURE_READERS

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["state_probabilities"]

_NEEDED = {
    "posterior": ("transition", "emission_mean", "emission_scale"),
    "constant_data": ("rows", "missing"),
    "observed_data": ("x",),
}


def state_probabilities(idata, *, draws: int = 200, affinity: float = 0.5) -> "pd.DataFrame":
    r"""Posterior probability of each behaviour in each row of each series.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.markov_transitions`.
    draws : int, default 200
        Draws that are used, evenly spaced, if there are more.
    affinity : float, default 0.5
        In (0, 1]: a behaviour of a draw is one of the reference only if the affinity of their laws is at least
        this.

    Returns
    -------
    pandas.DataFrame
        One row for each row of the data, with index ``series`` and ``time``, and one column for each behaviour of
        the reference draw, named 1, 2, ... from the one with the most rows, and ``other``. Rows add up to 1.
        ``attrs`` has the ``reference`` draw (chain, draw) and ``latent``, the columns of these behaviours in it, where
        their means and scales are found.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of that model, or an option is out of range.

    Notes
    -----
    Each draw gives probabilities given all rows of a series, by the forward-backward algorithm. Its behaviours are
    matched one to one to those of a reference draw by the affinity of their normal laws,

    .. math:: \prod_j \sqrt{\frac{2 \sigma_j \sigma_j'}{\sigma_j^2 + \sigma_j'^2}}
        \exp\Bigl(-\frac{(\mu_j - \mu_j')^2}{4 (\sigma_j^2 + \sigma_j'^2)}\Bigr),

    so as to make the sum as large as it can be. The reference is the draw whose matrix of shared behaviours is
    closest to its posterior mean.

    Examples
    --------
    >>> state_probabilities(idata).idxmax(axis=1)  # doctest: +SKIP
    """
    import pandas as pd

    draws = whole_number("draws", draws, 1)
    if not 0 < affinity <= 1:
        raise ValueError(f"`affinity` must be above 0 and at most 1, got {affinity}.")
    posterior = read_features(idata)
    parts, x, starts = _parts(idata)
    chosen, feature = reference_draw(posterior), posterior.flat.astype(np.int8)
    latent = np.flatnonzero(posterior.used[chosen])
    picked = np.unique(
        np.linspace(0, len(feature) - 1, min(draws, len(feature))).round().astype(int)
    )
    total = np.zeros((len(x), len(latent)))
    for s in picked:
        probability = _smoothed(feature[s], [part[s] for part in parts], x, starts)
        mine, its = _matched(parts, chosen, latent, s, np.flatnonzero(posterior.used[s]), affinity)
        total[:, mine] += probability[:, its]
    total /= len(picked)
    order = np.argsort(-total.sum(axis=0), kind="stable")
    labels = np.repeat(posterior.observations, np.diff(starts))
    times = np.concatenate([np.arange(n) for n in np.diff(starts)])
    index = pd.MultiIndex.from_arrays([labels, times], names=["series", "time"])
    table = pd.DataFrame(total[:, order], index, range(1, len(latent) + 1))
    table["other"] = (1.0 - total.sum(axis=1)).clip(0.0)
    table.attrs["reference"] = divmod(chosen, posterior.feature.shape[1])
    table.attrs["latent"] = latent[order].tolist()
    return table


def _parts(idata):
    """Transitions, means and scales of all draws; the rows with NaN; where each series begins."""
    for group, names in _NEEDED.items():
        for name in names:
            if group not in idata.children or name not in idata[group]:
                raise ValueError(
                    f"This result has no `{name}` in its group `{group}`. Was it sampled from "
                    "bs.models.markov_transitions?"
                )
    drawn = [idata["posterior"][name] for name in _NEEDED["posterior"]]
    parts = [d.transpose("chain", "draw", ...).values for d in drawn]
    parts = [np.ascontiguousarray(v.reshape(-1, *v.shape[2:])) for v in parts]
    x = np.where(idata["constant_data"]["missing"] > 0, np.nan, idata["observed_data"]["x"])
    rows = idata["constant_data"]["rows"].values
    return parts, np.ascontiguousarray(x), np.concatenate([[0], np.cumsum(rows)])


def _smoothed(feature, parts, x, starts):
    from bayesstruct.series.kernels import smooth_series

    out = np.zeros((len(x), feature.shape[1]))
    smooth_series(np.ascontiguousarray(feature), *parts, x, starts, out)
    return out


def _matched(parts, chosen, latent, s, used, least):
    """Places in the reference and columns of a draw of the behaviours that are the same."""
    from scipy.optimize import linear_sum_assignment

    _, mean, scale = parts
    a, b = scale[chosen, latent][:, None], scale[s, used][None]
    gap, wide = mean[chosen, latent][:, None] - mean[s, used][None], a**2 + b**2
    same = np.exp((0.5 * np.log(2 * a * b / wide) - gap**2 / (4 * wide)).sum(axis=2))
    mine, its = linear_sum_assignment(-np.where(same >= least, same, 0.0))
    good = same[mine, its] >= least
    return mine[good], used[its[good]]


def _has_behaviours(idata) -> bool:
    return {"feature", *_NEEDED["posterior"]} <= variables(idata)


register_summary(
    "behaviours of time series",
    _has_behaviours,
    state_probabilities,
    ("feature_table", *FEATURE_READERS),
    before="latent features",
)
