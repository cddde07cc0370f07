"""The behaviours of time series row by row, from a posterior of series that share them: table and picture."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_figure, register_summary, variables
from bayesstruct.core.recorded import Recorded, constant
from bayesstruct.data.arguments import number, whole_number
from bayesstruct.features.reading.posterior import draws_with, read_features, reference_draw
from bayesstruct.features.reading.tables import FEATURE_READERS
from bayesstruct.graphs.plots.style import (
    FAINT,
    NEGATIVE,
    NODE,
    POSITIVE,
    UNDECIDED,
    axes,
    short_labels,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from matplotlib.axes import Axes

__all__ = ["RecordedSeries", "plot_states", "state_probabilities"]

_ORIGIN = "bs.models.markov_transitions"
#: Colours of behaviours, of the palette of all pictures; rarer ones are grey.
_COLOURS = (POSITIVE, UNDECIDED, "#009E73", "#CC79A7", "#56B4E9", NEGATIVE, "#F0E442")


@dataclass(frozen=True)
class RecordedSeries(Recorded):
    """Constants that a model of series records: where each series begins, missing values, and units.

    Attributes
    ----------
    location, scale : (d,) ndarray of float
        Mean and standard deviation of each variable over all series.
    rows : (N,) ndarray of int
        Number of rows of each series.
    missing : (T, d) ndarray of int
        1 where a value is missing.
    """

    location: np.ndarray = constant("location", "node")
    scale: np.ndarray = constant("scale", "node")
    rows: np.ndarray = constant("rows", "observation")
    missing: np.ndarray = constant("missing", ("time", "node"))

    @property
    def starts(self) -> np.ndarray:
        """First row of each series, and the number of rows, (N + 1,)."""
        return np.concatenate([[0], np.cumsum(self.rows)])


def state_probabilities(
    idata: "xr.DataTree", *, draws: int = 200, affinity: float = 0.5
) -> "pd.DataFrame":
    r"""Posterior probability of each behaviour in each row of each series.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.markov_transitions`.
    draws : int, default 200
        Draws that are used, evenly spaced, if there are more.
    affinity : float, default 0.5
        In (0, 1]: a behaviour of a draw is matched to one of the reference only if the affinity of their distributions
        is at least this.

    Returns
    -------
    pandas.DataFrame
        One row for each row of the data, with index ``series`` and ``time``, and one column for each behaviour of
        the reference draw, named 1, 2, ... in decreasing order of their numbers of rows, and ``other``. Rows add up to
        1. ``attrs`` has the ``reference`` draw (chain, draw) and ``latent``, the columns of these behaviours in that
        draw, which locate their means and scales.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result of that model, or an option is out of range.

    Notes
    -----
    Each draw gives probabilities given all rows of a series, by the forward-backward algorithm. Its behaviours are
    matched one to one to those of a reference draw by the affinity of their normal distributions,

    .. math:: \prod_j \sqrt{\frac{2 \sigma_j \sigma_j'}{\sigma_j^2 + \sigma_j'^2}}
        \exp\Bigl(-\frac{(\mu_j - \mu_j')^2}{4 (\sigma_j^2 + \sigma_j'^2)}\Bigr),

    so that the sum of the affinities is largest. The reference is the draw whose matrix of shared behaviours is
    closest to its posterior mean.

    Examples
    --------
    >>> state_probabilities(idata).idxmax(axis=1)  # doctest: +SKIP
    """
    import pandas as pd

    draws, affinity = whole_number("draws", draws, 1), number("affinity", affinity, above=0, most=1)
    posterior, series = read_features(idata), RecordedSeries.read(idata)
    parts, x = _parameters(idata), _rows(idata, series)
    chosen = reference_draw(posterior)
    latent = np.flatnonzero(posterior.used[chosen])
    total = _mean_probabilities(posterior, parts, x, series.starts, chosen, draws, affinity)
    order = np.argsort(-total.sum(axis=0), kind="stable")
    labels = np.repeat(posterior.observations, series.rows)
    times = np.concatenate([np.arange(n) for n in series.rows])
    index = pd.MultiIndex.from_arrays([labels, times], names=["series", "time"])
    table = pd.DataFrame(total[:, order], index, range(1, len(latent) + 1))
    table["other"] = (1.0 - total.sum(axis=1)).clip(0.0)
    table.attrs["reference"] = divmod(chosen, posterior.feature.shape[1])
    table.attrs["latent"] = latent[order].tolist()
    return table


def plot_states(
    idata: "xr.DataTree",
    *,
    n: int = 12,
    draws: int = 200,
    affinity: float = 0.5,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the probability of each behaviour over time, a strip for each series.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.markov_transitions`.
    n : int, default 12
        Series to draw at most, the first ones; ``idata.sel(observation=[...])`` chooses others.
    draws : int, default 200
    affinity : float, default 0.5
        As in `state_probabilities`, whose names of behaviours these are.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        At each time the heights of the colours of a strip are the probabilities, which add up to 1. Behaviours beyond the
        first seven, and those that the reference draw does not have, are grey.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result of that model, or an option is out of range.

    Examples
    --------
    >>> plot_states(idata)  # doctest: +SKIP
    """
    n = whole_number("n", n, 1)
    table = state_probabilities(idata, draws=draws, affinity=affinity)
    series = list(dict.fromkeys(table.index.get_level_values("series")))
    named = [name for name in table.columns[: len(_COLOURS)] if name != "other"]
    rest = table.drop(columns=named).sum(axis=1)
    colours = [*_COLOURS[: len(named)], NODE]
    shown = series[:n]
    ax = axes(ax, (8.0, 1.2 + 0.62 * len(shown)))
    for row, name in enumerate(shown):
        own = np.column_stack([table.loc[name, named], rest.loc[name]])
        _strip(ax, row, own, colours)
    _name_strips(
        ax, [str(name) for name in shown], [f"behaviour {name}" for name in named], colours
    )
    if len(series) > n:
        ax.set_title(f"the first {n} of {len(series)} series", loc="left")
    return ax


def _strip(ax: "Axes", row: int, own: np.ndarray, colours: list[str]) -> None:
    """Stack the probabilities of one series, each row of the data a step."""
    times = np.arange(len(own) + 1) - 0.5
    heights = np.column_stack([np.zeros(len(own)), own.cumsum(axis=1)])
    heights = np.vstack([heights, heights[-1:]])  # the last step is as wide as the others
    for k, colour in enumerate(colours):
        low, high = (row + 0.4 - 0.8 * heights[:, i] for i in (k, k + 1))
        ax.fill_between(times, low, high, step="post", color=colour, lw=0)
    ax.hlines([row - 0.4, row + 0.4], times[0], times[-1], color=FAINT, lw=0.5)


def _name_strips(ax: "Axes", series: list[str], behaviours: list[str], colours: list[str]) -> None:
    from matplotlib.patches import Patch

    ax.set_yticks(range(len(series)), short_labels(series, 24))
    ax.set(ylim=(len(series) - 0.5, -0.5), xlabel="time (rows of the series)")
    ax.margins(x=0)
    ax.locator_params(axis="x", integer=True)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    labels = [*behaviours, "others"]
    handles = [
        Patch(facecolor=colour, edgecolor=FAINT, lw=0.5, label=label)
        for colour, label in zip(colours, labels, strict=True)
    ]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def _parameters(idata):
    """Transitions, means and scales of all draws, chains one after another."""
    names = {
        "transition": "the transition probabilities",
        "emission_mean": "the means of behaviours",
        "emission_scale": "the standard deviations of behaviours",
    }
    drawn = [
        draws_with(idata, name, "posterior", what, _ORIGIN)[name] for name, what in names.items()
    ]
    parts = [d.transpose("chain", "draw", ...).values for d in drawn]
    return [np.ascontiguousarray(v.reshape(-1, *v.shape[2:])) for v in parts]


def _rows(idata, series):
    """Rows of all series, NaN where a value is missing."""
    x = draws_with(idata, "x", "observed_data", "the observed series", _ORIGIN)["x"]
    return np.ascontiguousarray(np.where(series.missing > 0, np.nan, x))


def _mean_probabilities(posterior, parts, x, starts, chosen, draws, affinity):
    """Mean over some draws of the probabilities of the behaviours of the reference draw, (T, behaviours)."""
    feature, latent = posterior.flat.astype(np.int8), np.flatnonzero(posterior.used[chosen])
    picked = np.unique(
        np.linspace(0, len(feature) - 1, min(draws, len(feature))).round().astype(int)
    )
    total = np.zeros((len(x), len(latent)))
    for s in picked:
        probability = _smoothed(feature[s], [part[s] for part in parts], x, starts)
        mine, its = _matched(parts, chosen, latent, s, np.flatnonzero(posterior.used[s]), affinity)
        total[:, mine] += probability[:, its]
    return total / len(picked)


def _smoothed(feature, parts, x, starts):
    """Probabilities of all behaviours of a draw in each row, (T, latent)."""
    from bayesstruct.series.kernels.forward import smooth_series

    out = np.zeros((len(x), feature.shape[1]))
    smooth_series(np.ascontiguousarray(feature), *parts, x, starts, out)
    return out


def _matched(parts, chosen, latent, s, used, least):
    """Match behaviours of a draw to those of the reference; return places in the reference, and columns."""
    from scipy.optimize import linear_sum_assignment

    _, mean, scale = parts
    a, b = scale[chosen, latent][:, None], scale[s, used][None]
    gap, wide = mean[chosen, latent][:, None] - mean[s, used][None], a**2 + b**2
    same = np.exp((0.5 * np.log(2 * a * b / wide) - gap**2 / (4 * wide)).sum(axis=2))
    mine, its = linear_sum_assignment(-np.where(same >= least, same, 0.0))
    good = same[mine, its] >= least
    return mine[good], used[its[good]]


def _has_behaviours(idata) -> bool:
    return {"feature", "transition", "emission_mean", "emission_scale"} <= variables(idata)


register_summary(
    "behaviours of time series",
    _has_behaviours,
    state_probabilities,
    ("plot_states", "feature_table", *FEATURE_READERS),
    before="latent features",
)
register_figure(plot_states, "behaviours of time series")
