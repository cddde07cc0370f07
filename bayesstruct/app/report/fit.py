"""Posterior predictive checks of a report: does the model reproduce what the table shows?"""

import contextlib
import logging
import warnings

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.app.report.correlations import LEVEL, check_correlations
from bayesstruct.app.report.options import model_options
from bayesstruct.app.report.parts import Drawing, Result
from bayesstruct.core.readers import variables

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FIT_FILE", "Fit", "check_fit"]

FIT_FILE = "fit.png"

MAX_TABLES, MIN_TABLES = 300, 50
BUDGET = 3e7  # values in all replicated tables
PREDICTIVE = "posterior_predictive"


@dataclass(frozen=True)
class Fit:
    """A posterior predictive check.

    Attributes
    ----------
    sentences : tuple of str
        What was compared, and how many of the observed values lie inside their predictive intervals.
    worst : tuple of str
        Observed values that do not, farthest first.
    share : float
        Share of those that do; NaN if nothing could be compared.
    call : str
        What to call in Python to look closer; empty if there is nothing more.
    drawings : tuple of Drawing
    idata : xarray.DataTree, optional
        The result with replicated tables, for the drawings.
    """

    sentences: tuple[str, ...]
    worst: tuple[str, ...] = ()
    share: float = float("nan")
    call: str = ""
    drawings: tuple[Drawing, ...] = ()
    idata: Any = None


@dataclass(frozen=True)
class _Check:
    """A check of one kind of result: how it is recognised, and what is compared."""

    applies: Callable[[Result], bool]
    fit: Callable[[Result], Fit]


def check_fit(result: Result) -> Fit:
    """Compare the table of a result with tables that are drawn from its posterior.

    Parameters
    ----------
    result : Result

    Returns
    -------
    Fit
        Without numbers if the model is not there, or has no predictive rows.
    """
    check = next(check for check in _CHECKS if check.applies(result))
    return check.fit(result)


# ---- correlations, from partial correlations alone -------------------------------------------


def _weights_suffice(result: Result) -> bool:
    """Whether rows are normal with the precision matrix that the weights tell, and nothing else."""
    others = {"degrees", "coefficients", "value_weight", "latent"}
    return (
        {"edge", "weight"} <= result.drawn
        and "arc" not in result.drawn
        and not others & result.drawn
        and not {"column_by_order", "degrees", "states"} & result.recorded
        and "x" in variables(result.idata, "observed_data")
        and result.job.options["model"].endswith("gaussian_graphical")
        and "row_counts" not in model_options(result.job.options)
    )


def _by_weights(result: Result) -> Fit:
    if "difference" in result.drawn:
        return _by_groups(result)
    weights = result.idata["posterior"]["weight"].values
    return _of_correlations([("", _correlations(result, _observed(result), weights))])


def _by_groups(result: Result) -> Fit:
    """Check the correlations of each group by the weights of the group."""
    from bayesstruct.graphs.records import RowGroups
    from bayesstruct.graphs.tables.differences import one_group

    names = [str(g) for g in result.idata["posterior"]["group"].values]
    index = RowGroups.read(result.idata).index
    frame = _observed(result)
    found = []
    for number, name in enumerate(names):
        weights = one_group(result.idata, name)["posterior"]["weight"].values
        found.append((f"Group {name}: ", _correlations(result, frame[index == number], weights)))
    return _of_correlations(found)


def _observed(result: Result) -> "pd.DataFrame":
    """Return the table of the model: the columns of the file that are its variables, NaN where a value is missing."""
    import pandas as pd

    from bayesstruct.core.missing import MissingMask
    from bayesstruct.graphs.replicates import constants_of

    x = result.idata["observed_data"]["x"]
    values = np.where(MissingMask.mask(constants_of(result.idata), x.shape), np.nan, x.values)
    return pd.DataFrame(values, columns=[*map(str, x["node"].values)])


def _correlations(result: Result, frame: "pd.DataFrame", weights: Any):
    return check_correlations(
        frame, weights.reshape(-1, weights.shape[-1]), random_seed=_seed(result)
    )


def _seed(result: Result) -> int:
    return int(result.job.options.get("seed") or 0)


def _of_correlations(found: list) -> Fit:
    worst = [
        f"{label}{a} and {b}: observed {observed:.2f}, predicted {low:.2f} to {high:.2f}"
        for label, check in found
        for a, b, observed, low, high in check.outside[:5]
    ]
    pairs = sum(check.pairs for _, check in found)
    inside = sum(check.inside for _, check in found)
    return Fit(
        tuple(f"{label}{check}" for label, check in found),
        tuple(worst),
        inside / pairs if pairs else float("nan"),
    )


# ---- replicated tables -----------------------------------------------------------------------


class _NoTables(ValueError):
    """Raised if no tables can be drawn from a result; the message has the reason."""


def _replicated(result: Result) -> Any:
    """Return the result with tables drawn from the posterior predictive distribution.

    Raises
    ------
    _NoTables
        If there is no model, it has no predictive draws, or not all parameters of its rows were stored: PyMC would draw the
        others from their priors.
    """
    if PREDICTIVE in result.idata.children:
        return result.idata
    if result.model is None:
        raise _NoTables("it needs the model")
    if result.job.options["model"] == "gaussian_graphical" and "weight" not in result.drawn:
        raise _NoTables("graphs alone have no predictive distribution")
    lost = _lost(result)
    if lost:
        raise _NoTables(f"`{lost[0]}` was not stored")
    return _draw(result)


def _lost(result: Result) -> list[str]:
    """Return the names of the parameters that replicated tables need and that were not stored.

    Latent values are not among them: a new row has latent values of its own.
    """
    from pytensor.graph.traversal import ancestors

    free = result.model.free_RVs
    stored = [v for v in free if v.name in result.drawn]
    needed = {*ancestors(result.model.observed_RVs, blockers=stored)}
    return [v.name for v in free if v in needed and v not in stored]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Leave out what was said when the model was made, and which variables are drawn."""
    log = logging.getLogger("pymc")
    before = log.level
    log.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)


def _draw(result: Result) -> Any:
    import pymc as pm
    import xarray as xr

    posterior = result.idata["posterior"].to_dataset()
    values = sum(v.size for v in result.idata["observed_data"].data_vars.values())
    count = int(np.clip(BUDGET // max(values, 1), MIN_TABLES, MAX_TABLES))
    step = max(1, posterior.sizes["chain"] * posterior.sizes["draw"] // count)
    thinned = xr.DataTree.from_dict({"posterior": posterior.isel(draw=slice(None, None, step))})
    with _quiet():
        drawn = pm.sample_posterior_predictive(
            thinned,
            model=result.model,
            random_seed=_seed(result),
            progressbar=False,
        )
    kept = {name: node.to_dataset() for name, node in result.idata.children.items()}
    return xr.DataTree.from_dict({**kept, PREDICTIVE: drawn[PREDICTIVE].to_dataset()})


def _with_tables(fit: Callable[[Result, Any], Fit], call: str = "") -> Callable[[Result], Fit]:
    """Make a check of one that needs replicated tables."""

    def checked(result: Result) -> Fit:
        try:
            return fit(result, _replicated(result))
        except (
            ValueError
        ) as reason:  # also of readers that refuse a table, as if no row is complete
            return Fit((f"No posterior predictive check was made: {reason}.",), call=call)

    return checked


def _sentence(inside: int, number: int, what: str) -> str:
    return (
        f"{inside} of {number} {what} ({inside / number:.0%}) lie inside their {LEVEL:.0%} posterior predictive interval."
        if number
        else f"There are no {what} to compare."
    )


def _of_table(table: "pd.DataFrame", what: str, name: Callable[[Any], str]) -> Fit:
    """Summarise a table of observed values with their predictive intervals."""
    known = table[np.isfinite(table["observed"]) & np.isfinite(table["low"])]
    inside = (known["low"] - 1e-12 <= known["observed"]) & (
        known["observed"] <= known["high"] + 1e-12
    )
    out = known[~inside]
    beyond = np.fmax(out["low"] - out["observed"], out["observed"] - out["high"])
    worst = out.iloc[np.argsort(-beyond.to_numpy(), kind="stable")].head(5)
    lines = [
        f"{name(row)}: observed {row.observed:.3g}, predicted {row.low:.3g} to {row.high:.3g}"
        for row in worst.itertuples()
    ]
    n = len(known)
    share = float(inside.mean()) if n else float("nan")
    return Fit((_sentence(int(inside.sum()), n, what),), tuple(lines), share)


def _joined(*fits: Fit, drawings: tuple[Drawing, ...] = (), idata=None, call: str = "") -> Fit:
    shares = [fit.share for fit in fits if np.isfinite(fit.share)]
    return Fit(
        tuple(s for fit in fits for s in fit.sentences),
        tuple(line for fit in fits for line in fit.worst),
        min(shares, default=float("nan")),
        call,
        drawings,
        idata,
    )


def _pair_name(row) -> str:
    return f"{row.source} and {row.target}"


def _numbers_fit(result: Result, idata: Any) -> Fit:
    from bayesstruct.precision.reading.plots import plot_correlations
    from bayesstruct.precision.reading.predictive import predictive_correlations

    if "x_observed" in variables(idata, "observed_data"):
        idata = _in_one_piece(result, idata)
    table = predictive_correlations(idata, prob=LEVEL)
    fit = _of_table(table, "observed correlations", _pair_name)
    return _joined(
        fit,
        drawings=(
            _drawing(
                "Observed correlations and those of replicated tables.", plot_correlations, idata
            ),
        ),
        call="bs.plot_correlations",
    )


def _sem_fit(result: Result, idata: Any) -> Fit:
    """Check correlations, and the shape of residuals."""
    from bayesstruct.sem.reading.noise_check import noise_sentence

    fit, shapes = _numbers_fit(result, idata), noise_sentence(result.idata)
    return replace(fit, sentences=(*fit.sentences, *filter(None, [shapes])))


def _in_one_piece(result: Result, idata: Any) -> Any:
    """Return a result whose observed values are a vector, row by row, with tables that have gaps instead."""
    import xarray as xr

    frame = result.job.frame
    seen = frame.notna().to_numpy()
    names = [*map(str, frame.columns)]
    replicated = idata[PREDICTIVE]["x_observed"].values
    tables = np.full((*replicated.shape[:2], *seen.shape), np.nan)
    tables[..., seen] = replicated
    dims, coords = ("observation", "node"), {"node": names}
    groups = {
        "observed_data": (dims, frame.to_numpy(dtype="float64")),
        PREDICTIVE: (("chain", "draw", *dims), tables),
    }
    made = {name: xr.Dataset({"x": values}, coords) for name, values in groups.items()}
    return xr.DataTree.from_dict({"posterior": idata["posterior"].to_dataset(), **made})


def _states_fit(result: Result, idata: Any) -> Fit:
    from bayesstruct.fields.reading.plots import plot_item_rest
    from bayesstruct.fields.reading.predictive import (
        predictive_item_rest,
        predictive_pair_tables,
        predictive_sum_scores,
    )

    pairs = _of_table(
        predictive_pair_tables(idata, prob=LEVEL),
        "observed frequencies of pairs of states",
        lambda row: (
            f"{row.source} = {row.source_state} and {row.target} = {row.target_state} (states counted from 0)"
        ),
    )
    try:
        items = predictive_item_rest(idata, prob=LEVEL)
        scores = predictive_sum_scores(idata, prob=LEVEL)
    except ValueError:  # no complete row
        return _joined(pairs, call="bs.plot_pair_tables")
    return _joined(
        pairs,
        _of_table(
            items, "correlations of a column with the sum of the others", lambda row: str(row.node)
        ),
        _of_table(scores, "frequencies of sums of a row", lambda row: f"sum {row.score}"),
        drawings=(
            _drawing(
                "Correlation of each column with the sum of the others, observed and replicated.",
                plot_item_rest,
                idata,
            ),
        ),
        call="bs.plot_pair_tables",
    )


def _drawing(caption: str, plot: Callable[..., Any], idata) -> Drawing:
    return Drawing(
        FIT_FILE,
        caption,
        lambda result, table, ax: plot(idata, prob=LEVEL, ax=ax),
        lambda result, table: (5.6, 5.2),
        lambda result, table: True,
    )


# ---- links, choices, series, responses -------------------------------------------------------


def _values(idata, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Observed values and replicated ones, (draws, ...)."""
    observed = idata["observed_data"][name]
    replicated = idata[PREDICTIVE][name].transpose("chain", "draw", *observed.dims).values
    return observed.values, replicated.reshape(-1, *observed.shape)


def _table_of(names, actual: np.ndarray, simulated: np.ndarray) -> "pd.DataFrame":
    """Table of statistics of the observed and of the replicated values."""
    import pandas as pd

    tail = (1 - LEVEL) / 2
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN")
        low, high = np.nanquantile(simulated, [tail, 1 - tail], axis=0)
    return pd.DataFrame({"name": names, "observed": actual, "low": low, "high": high})


def _links_fit(result: Result, idata: Any) -> Fit:
    from bayesstruct.features.reading.records import LinkedPairs

    y, replicated = _values(idata, "y")
    pairs = LinkedPairs.read(idata)
    posterior = idata["posterior"]
    names = [*map(str, posterior["observation"].values)]
    one_sided = "column_feature" in posterior
    sums = np.zeros((len(names), len(y)))
    sums[pairs.source, np.arange(len(y))] = 1
    if not one_sided:
        sums[pairs.target, np.arange(len(y))] = 1
    seen = sums.any(axis=1)
    table = _table_of(np.array(names)[seen], (sums @ y)[seen], (replicated @ sums.T)[:, seen])
    total = _table_of(["all"], np.array([y.sum()]), replicated.sum(axis=1)[:, None])
    return _joined(
        _of_table(total, "sums over all pairs", lambda row: "sum over all pairs"),
        _of_table(table, "sums over the pairs of an object", lambda row: str(row.name)),
    )


def _choices_fit(result: Result, idata: Any) -> Fit:
    y, replicated = _values(idata, "y")
    observed = idata["observed_data"]["y"]
    dim = observed.dims[0]
    names = observed[dim].values if dim in observed.coords else np.arange(len(y))
    table = _table_of(names, y, replicated)
    return _joined(
        _of_table(
            table, "numbers of choices of the first of two options", lambda row: str(row.name)
        )
    )


_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def _quantiles(names, x: np.ndarray, replicated: np.ndarray) -> Fit:
    """Compare quantiles of each column, (n, d) with (draws, n, d)."""
    missing = np.isnan(x)
    replicated = np.where(missing, np.nan, replicated)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN")  # stays NaN
        actual = np.nanquantile(x, _QUANTILES, axis=0)
        simulated = np.nanquantile(replicated, _QUANTILES, axis=1)
    labels = [f"{name}, quantile {q:g}" for q in _QUANTILES for name in names]
    table = _table_of(
        labels, actual.ravel(), simulated.transpose(1, 0, 2).reshape(len(replicated), -1)
    )
    return _of_table(table, "quantiles of columns", lambda row: str(row.name))


def _series_fit(result: Result, idata: Any) -> Fit:
    from bayesstruct.series.reading import RecordedSeries

    x, replicated = _values(idata, "x")
    series = RecordedSeries.read(idata)
    missing = series.missing > 0
    x, replicated = np.where(missing, np.nan, x), np.where(missing, np.nan, replicated)
    names = [*map(str, idata["observed_data"]["x"]["node"].values)]
    inner = np.ones(len(x), bool)
    inner[series.starts[:-1]] = False
    lagged = _table_of(names, _lag(x, inner), np.array([_lag(one, inner) for one in replicated]))
    return _joined(
        _quantiles(names, x, replicated),
        _of_table(
            lagged,
            "correlations of a column with itself one time step before",
            lambda row: str(row.name),
        ),
    )


def _lag(x: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """Correlation of each column with its value in the row before, in the same series."""
    now, before = x[inner], x[np.flatnonzero(inner) - 1]
    both = ~(np.isnan(now) | np.isnan(before))
    out = np.full(x.shape[1], np.nan)
    for j in range(x.shape[1]):
        a, b = now[both[:, j], j], before[both[:, j], j]
        if len(a) > 2 and a.std() > 0 and b.std() > 0:
            out[j] = np.corrcoef(a, b)[0, 1]
    return out


def _responses_fit(result: Result, idata: Any) -> Fit:
    """Check the response of a mixture of regressions, and its correlation with each predictor."""
    x, new_x = _values(idata, "x")
    y, new_y = _values(idata, "y")
    y, new_y = y.reshape(len(y)), new_y.reshape(len(new_y), -1)
    names = [*map(str, idata["observed_data"]["x"]["node"].values)]
    actual = _with_response(x, y)
    simulated = np.array([_with_response(a, b) for a, b in zip(new_x, new_y, strict=True)])
    return _joined(
        _quantiles([*names, "response"], np.column_stack([x, y]), np.dstack([new_x, new_y])),
        _of_table(
            _table_of(names, actual, simulated),
            "correlations of the response with a predictor",
            lambda row: str(row.name),
        ),
        call="bs.mixture_predictions",
    )


def _with_response(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.corrcoef(np.column_stack([x, y]), rowvar=False)[-1, :-1]


def _nothing(result: Result) -> Fit:
    return Fit(("No posterior predictive check was made: none is known for this model.",))


def _model(*names: str) -> Callable[[Result], bool]:
    return lambda result: result.job.options["model"] in names


def _is_discrete(result: Result) -> bool:
    return "table" in result.drawn or "parent_table" in result.drawn


def _is_mixed(result: Result) -> bool:
    """Whether a network has columns of several kinds."""
    return "parameter" in result.drawn


_LINKED = (
    "link_prediction",
    "protein_complexes",
    "additive_clustering",
    "binary_matrix_factorization",
)
_NUMBERS = (
    "gaussian_graphical",
    "grouped_gaussian_graphical",
    "locally_constant_gaussian_graphical",
    "blockwise_gaussian_graphical",
    "node_selection_gaussian_graphical",
    "gaussian_neighbourhoods",
    "ising_neighbourhoods",
    "bayesian_network",
    "tree",
    "forest",
    "latent_tree",
    "latent_features",
    "sparse_factor_analysis",
    "infinite_ica",
)
_CHECKS = (
    _Check(_weights_suffice, _by_weights),
    _Check(
        lambda result: _model("bayesian_network", "tree")(result) and _is_mixed(result), _nothing
    ),
    _Check(
        lambda result: (
            _model("bayesian_network", "tree", "forest", "latent_tree")(result)
            and _is_discrete(result)
        ),
        _with_tables(_states_fit, "bs.plot_pair_tables"),
    ),
    _Check(
        _model("ising", "pairwise_mrf", "hidden_causes", "network_classifier"),
        _with_tables(_states_fit, "bs.plot_pair_tables"),
    ),
    _Check(_model("linear_sem", "lingam"), _with_tables(_sem_fit, "bs.plot_correlations")),
    _Check(_model(*_NUMBERS), _with_tables(_numbers_fit, "bs.plot_correlations")),
    _Check(_model(*_LINKED), _with_tables(_links_fit, "pm.sample_posterior_predictive")),
    _Check(
        _model("elimination_by_aspects"),
        _with_tables(_choices_fit, "pm.sample_posterior_predictive"),
    ),
    _Check(
        _model("markov_transitions"), _with_tables(_series_fit, "pm.sample_posterior_predictive")
    ),
    _Check(_model("dp_glm"), _with_tables(_responses_fit, "bs.mixture_predictions")),
    _Check(lambda result: True, _nothing),
)
