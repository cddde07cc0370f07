"""Choice of the penalty of a posterior mode: extended BIC, stability selection, left-out rows."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.families import import_chapters
from bayesstruct.core.solution import Fit, Tuner, tuner_of
from bayesstruct.data.arguments import choice, generator, number, whole_number
from bayesstruct.data.errors import warn

if TYPE_CHECKING:
    import pandas as pd

    from bayesstruct.data.intake import TableLike

__all__ = ["Tuning", "chosen_fit", "tune"]

import_chapters("solvers")  # which register what they can tune


@dataclass(frozen=True, eq=False)
class Tuning:
    """What a criterion says of the settings of a prior; see `tune`.

    Attributes
    ----------
    criterion : str
    best : dict
        The chosen setting, as options of the model.
    table : pandas.DataFrame
        One row a setting: its numbers, ``edges`` of the mode of all rows, the criterion, and ``best``.
    """

    criterion: str
    best: dict[str, float]
    table: "pd.DataFrame"

    def to_frame(self) -> "pd.DataFrame":
        """Return the table of settings."""
        return self.table

    def __repr__(self):
        chosen = ", ".join(f"{name}={value:.4g}" for name, value in self.best.items())
        return f"Chosen by {self.criterion}: {chosen}\n\n{self.table.to_string(index=False)}"

    def _repr_html_(self):
        chosen = ", ".join(f"{name}={value:.4g}" for name, value in self.best.items())
        return (
            f"<p><b>Chosen by {self.criterion}: {chosen}</b></p>{self.table.to_html(index=False)}"
        )


def tune(
    model: str | Callable,
    data: "TableLike",
    grid: dict[str, Any] | None = None,
    *,
    criterion: str = "ebic",
    gamma: float = 0.5,
    resamples: int = 50,
    threshold: float = 0.75,
    false_edges: float = 1.0,
    folds: int | None = None,
    random_seed: int | np.random.Generator | None = None,
    **options: Any,
) -> Tuning:
    r"""Choose the penalty of a posterior mode, or the scales of a prior, on a grid.

    Parameters
    ----------
    model : str or callable
        Name of a model or its function, ``"gaussian_graphical"`` or ``bs.models.gaussian_graphical``.
    data : DataFrame or array_like
        (n, p) table without missing values.
    grid : dict, optional
        Values of the options that are tuned; all combinations are tried. Of the Gaussian graphical model: ``rate`` and
        ``diagonal_rate`` of ``prior="laplace"``; ``spike_scale``, ``slab_scale`` and ``diagonal_rate`` of
        ``prior="spike_slab"``. Of the Gaussian graphs with neighbours, with ``prior="laplace"`` nodes, and with known blocks: ``rate``,
        ``diagonal_rate``, and ``smoothness``, ``node_rate`` or ``block_rate``. Unless given, 20 rates from that of the empty graph down to a hundredth of it, or 8
        widths of the spike.
    criterion : {"ebic", "stability", "loo"}
        ``"ebic"``: the extended Bayesian information criterion of the graph of the mode, lower is better,

        .. math:: -2 \ell(\hat\theta_E) + |E| \log n + 4 \gamma |E| \log p

        at the maximum likelihood estimate with the edges E; NaN where there is none. ``"stability"``: how many edges are selected
        on at least a share `threshold` of random halves of the rows, among the settings for which the bound on
        the expected number of false ones, :math:`q^2 / ((2 \pi - 1) P)`, is at most `false_edges`, with q edges selected on
        average out of P pairs and the threshold :math:`\pi`. ``"loo"``: the summed log density of each row at the mode of the others.
    gamma : float, default 0.5
        Between 0, the ordinary BIC, and 1.
    resamples : int, default 50
        Halves, an even number: they come in complementary pairs.
    threshold : float, default 0.75
        Above 0.5.
    false_edges : float, default 1
    folds : int, optional
        Parts of the rows that are left out one after the other under ``"loo"``; single rows unless given.
    random_seed : int or numpy.random.Generator, optional
        For halves and folds.
    **options
        Options of the model that stay as they are: of the Gaussian graphical model `prior`, `standardize`, the numbers that are not in
        `grid`, and under the spike and slab `edge_probability`, `required` and `forbidden`; also `neighbours`, `blocks` and `norm`.

    Returns
    -------
    Tuning
        ``.best`` goes into the model: ``bs.models.gaussian_graphical(data, prior="laplace", **tuning.best)``.

    Raises
    ------
    TableError
        If the table cannot be used.
    ValueError
        If the model has no mode that is tuned, for options out of range, or if no setting qualifies.

    Warns
    -----
    TableWarning
        If no edge is stable under ``"stability"`` because of the bound.

    Notes
    -----
    Rates are those for all n rows: the mode of m of them is found at m / n times the rate, since the log-likelihood is a sum.
    The bound of stability selection holds if the edges that are not there are selected as often as each other, and selection is
    no worse than guessing. It counts all selected edges, so that it is of use for sparse graphs of many columns.

    References
    ----------
    Foygel, R., Drton, M. (2010). Extended Bayesian information criteria for Gaussian graphical models. *NeurIPS* 23, equation 1.

    Meinshausen, N., Buehlmann, P. (2010). Stability selection. *JRSS B* 72(4), 417-473, theorem 1.

    Shah, R., Samworth, R. (2013). Variable selection with error control: another look at stability selection. *JRSS B* 75(1), 55-80.

    Examples
    --------
    .. code-block:: python

        tuning = bs.tune("gaussian_graphical", df, prior="laplace")
        with bs.models.gaussian_graphical(df, prior="laplace", **tuning.best):
            mode = bs.find_MAP()
    """
    criterion = choice("criterion", criterion, tuple(_CRITERIA))
    if not 0 <= number("gamma", gamma) <= 1:
        raise ValueError(f"`gamma` must be between 0 and 1, it is {gamma}")
    if whole_number("resamples", resamples, 2) % 2:
        raise ValueError(f"`resamples` must be an even number from 2 up, it is {resamples}")
    if not 0.5 < number("threshold", threshold) <= 1:
        raise ValueError(f"`threshold` must be above 0.5 and at most 1, it is {threshold}")
    number("false_edges", false_edges, above=0)
    name = model if isinstance(model, str) else getattr(model, "__name__", repr(model))
    tuner = tuner_of(name)(data, **options)
    if folds is not None:
        whole_number("folds", folds, 2, len(tuner.rows))
    settings = _settings(tuner, grid)
    if twice := sorted({*settings[0]} & {*options}):
        raise ValueError(
            f"`{twice[0]}` is given as an option, which stays as it is, and is tuned: leave it out, or give a `grid` of other options"
        )
    given = {
        "gamma": gamma,
        "resamples": resamples,
        "threshold": threshold,
        "false_edges": false_edges,
        "folds": folds,
        "rng": generator(random_seed),
    }
    fits = _path(tuner, tuner.rows, settings)
    columns, best = _CRITERIA[criterion](tuner, settings, fits, **given)
    return _result(criterion, settings, fits, columns, best)


def _settings(tuner: Tuner, grid) -> list[dict[str, float]]:
    """All combinations of the values of a grid."""
    chosen = tuner.grid() if grid is None else grid
    if not isinstance(chosen, dict) or not chosen:
        raise TypeError(
            '`grid` must be a dict such as {"rate": [1, 2, 4]}, with values of each option that is tuned'
        )
    lists = {}
    for name, values in chosen.items():
        if name not in tuner.names:
            raise ValueError(f"`{name}` is not tuned here; these are: {', '.join(tuner.names)}")
        lists[name] = [number(name, v, above=0) for v in np.atleast_1d(values).tolist()]
        if not lists[name]:
            raise ValueError(f"the grid has no value of `{name}`")
    return [dict(zip(lists, point, strict=True)) for point in product(*lists.values())]


def _path(tuner, rows, settings) -> list:
    """Modes at all settings, each found from the one before."""
    fits: list = []
    for setting in settings:
        fits.append(tuner.fit(rows, setting, fits[-1] if fits else None))
    return fits


def chosen_fit(tuner: Tuner, grid: dict[str, Any] | None, gamma: float) -> Fit:
    """Return the mode at the setting of a grid that the extended BIC chooses; of a single setting without it."""
    settings = _settings(tuner, grid)
    fits = _path(tuner, tuner.rows, settings)
    best = 0 if len(fits) == 1 else _ebic(tuner, settings, fits, gamma=gamma)[1]
    return fits[best]


def _ebic(tuner, settings, fits, *, gamma, **_):
    n, p = tuner.rows.shape
    weight = np.log(n) + 4.0 * gamma * np.log(p)
    known: dict[bytes, float] = {}
    for fit in fits:
        key = fit.edges.tobytes()
        if key not in known:
            likelihood = tuner.best_log_likelihood(fit.edges)
            known[key] = -2.0 * likelihood + weight * fit.edges.sum()
    values = np.array([known[fit.edges.tobytes()] for fit in fits])
    if np.isnan(values).all():
        raise ValueError(
            "no graph of the grid has a maximum likelihood estimate, which takes more rows than neighbours: "
            'put stronger penalties into the grid, or use criterion="loo"'
        )
    return {"ebic": values}, int(np.nanargmin(values))


def _stability(tuner, settings, fits, *, resamples, threshold, false_edges, rng, **_):
    n, half = len(tuner.rows), len(tuner.rows) // 2
    counts = np.zeros((len(settings), len(fits[0].edges)))
    for _pair in range(resamples // 2):
        order = rng.permutation(n)
        for part in (order[:half], order[half : 2 * half]):
            counts += [fit.edges for fit in _path(tuner, tuner.rows[part], settings)]
    frequency = counts / resamples
    selected = frequency.sum(axis=1)
    bound = selected**2 / ((2.0 * threshold - 1.0) * counts.shape[1])
    stable = (frequency >= threshold).sum(axis=1)
    allowed = np.flatnonzero(bound <= false_edges)
    if not len(allowed):
        raise ValueError(
            f"no setting keeps the bound on the false edges at {false_edges:g}, the least is {bound.min():.3g}: put stronger "
            "penalties into the grid, or raise `false_edges`"
        )
    if not stable[allowed].any() and stable.any():
        warn(
            f"no edge is stable where the bound on the false edges is at most {false_edges:g}; it grows with the square of the number "
            "of selected edges, true or false, and is large where the columns are few: raise `false_edges`, or use another criterion"
        )
    # The most stable edges, and of settings that agree the one that selects fewest others.
    best = max(allowed, key=lambda k: (stable[k], -selected[k]))
    return {"selected": selected, "stable": stable, "false_edges": bound}, int(best)


def _loo(tuner, settings, fits, *, folds, rng, **_):
    n = len(tuner.rows)
    order = np.arange(n) if folds is None else rng.permutation(n)
    density = np.empty((len(settings), n))
    for part in np.array_split(order, n if folds is None else folds):
        others = np.delete(tuner.rows, part, axis=0)
        for k, (setting, whole) in enumerate(zip(settings, fits, strict=True)):
            fit = tuner.fit(others, setting, whole)
            density[k, part] = fit.log_density(tuner.rows[part])
    total, error = density.sum(axis=1), np.sqrt(n) * density.std(axis=1, ddof=1)
    return {"log_density": total, "standard_error": error}, int(np.argmax(total))


_CRITERIA: dict[str, Callable] = {"ebic": _ebic, "stability": _stability, "loo": _loo}


def _result(criterion, settings, fits, columns, best) -> Tuning:
    import pandas as pd

    table = pd.DataFrame(settings)
    table["edges"] = [int(fit.edges.sum()) for fit in fits]
    for name, values in columns.items():
        table[name] = values
    table["best"] = np.arange(len(settings)) == best
    return Tuning(criterion, settings[best], table)
