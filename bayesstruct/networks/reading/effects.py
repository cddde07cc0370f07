"""Effects of setting columns of a table from outside, averaged over graphs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from bayesstruct.core.readers import register_figure, register_summary, variables
from bayesstruct.core.tables.codings import ColumnUnits, StateLevels
from bayesstruct.core.tables.predictions import NormalRows, StateRows, register_prediction
from bayesstruct.data.arguments import generator
from bayesstruct.data.coding import NumberCoding, state_position
from bayesstruct.data.names import nearest
from bayesstruct.graphs.plots.network import plot_graph
from bayesstruct.graphs.posteriors.reading import read_dags
from bayesstruct.graphs.replicates import refuse_covariance
from bayesstruct.graphs.summaries import interval_probability
from bayesstruct.graphs.tables.arcs import DAG_READERS, arc_table
from bayesstruct.networks.data.mixed_coding import MixedCoding
from bayesstruct.networks.priors.records import ClassifierTarget, NetworkStates
from bayesstruct.networks.reading.effects_by_graph import (
    EffectDraws,
    GraphEffects,
    effects_by_graph,
)
from bayesstruct.networks.reading.extrapolation import warn_of_extrapolation
from bayesstruct.networks.reading.mixed import is_mixed, mixed_coding, mixed_effects

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from numpy.random import Generator

    from bayesstruct.graphs.posteriors.arcs import DagPosterior

__all__ = [
    "checked_setting",
    "do",
    "flat_draws",
    "is_gaussian",
    "is_network",
    "mixed_setting",
    "network_rows",
    "register_noise",
    "spread_positions",
    "standard_setting",
    "state_probabilities",
    "weight_matrices",
]

_DRAWS = 2000  # posterior draws of a discrete network that are used
_MIXED_DRAWS = 1000  # of a network of columns of several kinds
_CELLS = 1 << 18  # of tables over states, up to which probabilities are summed exactly
_ROWS = 1000  # drawn for each posterior draw beyond
_MIXED = "Bayesian networks of columns of several kinds"
_NOISE: dict[str, tuple[Callable, Callable]] = {}
_ROUNDING = 1e-12  # differences of probabilities that are zero but for rounding


@overload
def do(
    idata: "xr.DataTree",
    setting: dict,
    *,
    by_graph: Literal[False] = False,
    ci_prob: float | None = None,
    random_seed: "int | Generator | None" = None,
) -> "pd.DataFrame": ...
@overload
def do(
    idata: "xr.DataTree",
    setting: dict,
    *,
    by_graph: Literal[True, "classes"],
    ci_prob: float | None = None,
    random_seed: "int | Generator | None" = None,
) -> "GraphEffects": ...
def do(
    idata: "xr.DataTree",
    setting: dict,
    *,
    by_graph: bool | Literal["classes"] = False,
    ci_prob: float | None = None,
    random_seed: "int | Generator | None" = None,
) -> "pd.DataFrame | GraphEffects":
    r"""Predict the effects of setting some columns from outside on the others, averaged over graphs.

    Each posterior draw is a graph with its parameters. Setting a variable cuts it off from its parents (Pearl
    2009, section 3.2) and leaves the distributions of the others given their parents as they are. The draws then
    differ as much as the posterior is unsure of the graph and of the parameters.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.bayesian_network`, ``linear_sem`` or ``lingam``.
    setting : dict
        Value of each column that is set: in the units of the table, or one of the states of a discrete
        column as it stands in the table. A Series is accepted.
    by_graph : bool or "classes"
        Return the effects in each distinct graph, or Markov equivalence class, beside the average: whether their sign
        depends on the graph, and how much of their variance comes from it.
    ci_prob : float, optional
        Probability of the credible intervals, which are equal-tailed. By default
        ``arviz.rcParams["stats.ci_prob"]``.
    random_seed : int or numpy.random.Generator, optional
        Of the predicted rows.

    Returns
    -------
    pandas.DataFrame or GraphEffects
        With `by_graph` a `GraphEffects`. Otherwise
        one row for each column of a Gaussian network: ``mean`` and ``low``, ``high``, the expected value under
        the intervention and its interval; ``effect``, ``effect_low``, ``effect_high``, the difference from the
        expected value without; ``predicted_low``, ``predicted_high``, the interval of a single new
        observation. For a discrete network one row for each column and state: the same, ``mean`` being
        the probability of the state, without the last two. Under ``score="mixed"`` one row for each column of numbers, whose state is
        empty, and for each state of the others.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result of these models, such as that of a classifier, whose arcs are no effects; or a column or
        state does not exist.

    Warns
    -----
    TableWarning
        If a number is set far outside of the observed range of its column, by more than half of its width.

    Notes
    -----
    Effects are causal only if no unobserved variable acts on two of the columns. Those of a Gaussian network
    are computed exactly for each draw; those of a discrete network for up to 2,000 draws, exactly where the tables
    over the states of the variables that a sum holds at a time have at most 262,144 cells, otherwise from 1,000
    rows for each draw, the same with and without the intervention, whose standard error, at most .016, widens
    the intervals. For a column that was set in every row the table has no information about its distribution without the
    intervention, which is that of the prior; so is the difference from it. Under ``score="mixed"`` means and probabilities are
    averages over 1,024 rows of a quasi-random sequence for each of up to 1,000 draws, the same with and without the intervention.

    References
    ----------
    Pearl, J. (2009). *Causality*, 2nd edition. Cambridge University Press.

    Maathuis, M. H., Kalisch, M. and Bühlmann, P. (2009). Estimating high-dimensional intervention effects
    from observational data. *Annals of Statistics* 37, 3133-3164.

    Examples
    --------
    .. code-block:: python

        bs.do(idata, {"PKA": 2.0})
        bs.do(idata, {"PKA": 2.0}, by_graph=True).summary
    """
    refuse_covariance(idata)
    _refuse_classifier(idata)
    posterior = read_dags(idata)
    names = posterior.variables
    prob = interval_probability(ci_prob)
    setting = checked_setting(setting, names)
    rng = generator(random_seed)
    if is_mixed(idata):
        effects, coding = _mixed, mixed_coding(posterior)
    elif is_gaussian(posterior):
        effects, coding = _gaussian, ColumnUnits.read(posterior.constants).coding(names)
    else:
        effects, coding = _discrete, None
    draws = effects(posterior, names, setting, rng)
    if coding is not None:
        warn_of_extrapolation(idata, setting, coding)
    if by_graph is not False:
        return effects_by_graph(posterior, [*setting], draws, by_graph, prob)
    return _table(draws, prob)


def network_rows(idata: "xr.DataTree", setting: dict | None = None) -> NormalRows | StateRows:
    """Return the distribution of a row in each draw of a Bayesian network.

    Parameters
    ----------
    idata : xarray.DataTree
    setting : dict, optional
        As in `do`.
    """
    if setting is not None:
        _refuse_classifier(idata)
    posterior = read_dags(idata)
    setting = {} if setting is None else checked_setting(setting, posterior.variables)
    if not is_gaussian(posterior):
        return state_rows(posterior, posterior.variables, setting)
    rows = _normal_rows(posterior, posterior.variables, setting)
    warn_of_extrapolation(idata, setting, rows.coding)
    return rows


def _refuse_classifier(idata):
    """Raise for a classifier, whose arcs from the class to the features were not learned."""
    if ClassifierTarget.is_in(idata):
        raise ValueError(
            "the arcs of a classifier are no effects: the model puts those from the class to all features there, and the directions "
            "of the others mean nothing. Learn effects by bs.models.bayesian_network(table, score='bdeu')"
        )


def checked_setting(setting: dict, names: list[str]) -> dict:
    """Names and values of columns that are set, after a check of the names."""
    if not hasattr(setting, "items"):
        raise TypeError(f'`setting` is a dict like {{"{names[0]}": 1.0}}, not {setting!r:.40}')
    setting = {str(name): value for name, value in setting.items()}
    if unknown := [name for name in setting if name not in names]:
        raise ValueError(nearest("column", unknown[0], names))
    if not setting:
        raise ValueError("`setting` is empty: give a value to at least one column")
    return setting


def is_gaussian(posterior):
    """Whether a network has regressions, not tables of probabilities; raise if it has no parameters."""
    if {"weight", "table"} & {*posterior.draws}:
        return "weight" in posterior.draws
    raise ValueError(
        "the result has the graphs of a Bayesian network, and neither `weight` nor `table`, from which "
        "effects are computed: sample bs.models.bayesian_network"
    )


def weight_matrices(posterior: "DagPosterior") -> np.ndarray:
    """Coefficients, (draws, d, d), rows as children."""
    d, weight = len(posterior.variables), flat_draws(posterior, "weight")
    matrix = np.zeros((len(weight), d, d))
    matrix[:, posterior.target, posterior.source] = weight
    return matrix


def _normal_rows(posterior, names, setting):
    """Sum the terms of the columns that were not set: the others have no distribution."""
    coding = ColumnUnits.read(posterior.constants).coding(names)
    free = ~np.isin(names, list(setting))
    error = (np.eye(len(names)) - weight_matrices(posterior))[:, free]
    precise = error / flat_draws(posterior, "noise_variance")[:, free, None]
    linear = (precise * flat_draws(posterior, "intercept")[:, free, None]).sum(axis=1)
    known = standard_setting(setting, names, coding)
    return NormalRows(coding, linear, error.transpose(0, 2, 1) @ precise, known)


def standard_setting(setting: dict, names: list[str], coding: NumberCoding) -> dict[str, float]:
    """Values that columns are set to, on the scale of the model."""
    return {
        name: (_finite(name, x) - coding.location[i]) / coding.scale[i]
        for name, x in setting.items()
        for i in [names.index(name)]
    }


def state_rows(posterior: Any, names: list[str], setting: dict) -> StateRows:
    """Distribution of a row of states in each draw, from ``dag`` and ``table`` of the draws."""
    coding = StateLevels.coding(posterior.constants, names)
    known = {name: _state(name, s, coding.levels[names.index(name)]) for name, s in setting.items()}
    free = np.flatnonzero(~np.isin(names, list(setting)))
    dag, tables = flat_draws(posterior, "dag"), flat_draws(posterior, "table")
    keep = spread_positions(len(dag))

    def weigh(rows, part):
        return _log_probabilities(dag[keep[part]], tables[keep[part]], coding.levels, free, rows)

    return StateRows(coding, weigh, len(keep), known)


def _log_probabilities(dags, tables, levels, free, rows):
    """Log probabilities of rows given each graph and its tables, (draws, m), without columns that were set."""
    from bayesstruct.networks.kernels.configurations import strides

    states = np.array([len(own) for own in levels])
    logs = np.empty((len(dags), len(rows)))
    for r, (dag, own) in enumerate(zip(dags, tables, strict=True)):
        cell = (rows @ strides(dag, states)) * states + rows
        with np.errstate(divide="ignore"):  # the logarithm of zero
            logs[r] = np.log(own[free, cell[:, free]]).sum(axis=1)
    return logs


def spread_positions(draws: int, most: int = _DRAWS) -> np.ndarray:
    """Positions of the draws that are used, at most so many and spread evenly."""
    return np.unique(np.linspace(0, draws - 1, most).astype(int))


def flat_draws(posterior: "DagPosterior", name: str) -> np.ndarray:
    """Draws of a variable, those of all chains one after the other."""
    values = posterior.draws[name].transpose("chain", "draw", ...).values
    return values.reshape(-1, *values.shape[2:])


def _interval(values, prob):
    """Mean and equal-tailed interval over draws."""
    low, high = np.quantile(values, [0.5 - prob / 2, 0.5 + prob / 2], axis=0)
    return values.mean(axis=0), low, high


def _table(draws, prob):
    import pandas as pd

    columns = ("mean", "low", "high"), ("effect", "effect_low", "effect_high")
    frame = pd.DataFrame(index=draws.labels)
    for names, values in zip(columns, (draws.expected, draws.effect), strict=True):
        for name, column in zip(names, _interval(values, prob), strict=True):
            frame[name] = column
    if draws.single is None:
        return frame
    _, low, high = _interval(draws.single, prob)
    return frame.assign(predicted_low=low, predicted_high=high)


def _gaussian(posterior, names, setting, rng):
    import pandas as pd

    d = len(names)
    location, scale = ColumnUnits.read(posterior.constants).known()
    matrix = weight_matrices(posterior)
    intercept = flat_draws(posterior, "intercept")
    fixed = np.isin(names, list(setting))
    value = np.zeros(d)
    for name, x in setting.items():
        i = names.index(name)
        value[i] = (_finite(name, x) - location[i]) / scale[i]
    before = _expected(matrix, intercept)
    cut = np.where(fixed[:, None], 0.0, matrix)
    after = _expected(cut, np.where(fixed, value, intercept))
    noise = _expected(cut, np.where(fixed, 0.0, _noise(posterior, rng)))
    used, single = np.arange(len(after)), location + scale * (after + noise)
    labels, effect = pd.Index(names, name="node"), scale * (after - before)
    return EffectDraws(labels, location + scale * after, effect, used, single)


def register_noise(
    recognise: Callable[["xr.Dataset"], bool],
    draw: Callable[["DagPosterior", np.random.Generator], np.ndarray],
) -> None:
    """Let ``bayesstruct.do`` predict rows of regressions whose noise is not normal.

    Parameters
    ----------
    recognise : callable
        Of the group ``constant_data`` of a result: whether its noise is of this kind.
    draw : callable
        Of a posterior and a generator: noise of a standardised row with mean zero for each draw, (draws, d).
    """
    _NOISE[draw.__qualname__] = recognise, draw


def _noise(posterior, rng):
    """Noise of a standardised row for each draw."""
    for recognise, draw in _NOISE.values():
        if recognise(posterior.constants):
            return draw(posterior, rng)
    deviation = np.sqrt(flat_draws(posterior, "noise_variance"))
    return deviation * rng.standard_normal(deviation.shape)


def _finite(name, x):
    try:
        value = float(x)
    except (TypeError, ValueError):
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(f"{name!r} is to be set to a finite number, not to {x!r:.40}")
    return value


def _expected(matrix, intercept):
    """Solve z = B z + a for each draw."""
    return np.linalg.solve(np.eye(matrix.shape[-1]) - matrix, intercept[..., None])[..., 0]


def _discrete(posterior, names, setting, rng):
    import pandas as pd

    recorded = NetworkStates.read(posterior.constants)
    states = [int(k) for k in recorded.count]
    levels = StateLevels.coding(posterior.constants, names).levels
    chosen = np.full(len(names), -1)
    for name, state in setting.items():
        i = names.index(name)
        chosen[i] = _state(name, state, levels[i])
    dag, tables = flat_draws(posterior, "dag"), flat_draws(posterior, "table")
    keep = spread_positions(len(dag))
    index = [(i, s) for i, k in enumerate(states) for s in range(k)]
    shares = np.empty((2, len(keep), len(index)))
    for r, draw in enumerate(keep):
        shares[:, r] = _both_probabilities(dag[draw], tables[draw], states, chosen, rng)
    effect = shares[1] - shares[0]
    effect[np.abs(effect) < _ROUNDING] = 0.0
    pairs = [(names[i], levels[i][s]) for i, s in index]
    labels = pd.MultiIndex.from_tuples(pairs, names=["node", "state"])
    return EffectDraws(labels, shares[1], effect, keep)


def _mixed(posterior, names, setting, rng):
    import pandas as pd

    coding = mixed_coding(posterior)
    levels, chosen = coding.levels, mixed_setting(setting, coding)
    keep = spread_positions(
        posterior.draws.sizes["chain"] * posterior.draws.sizes["draw"], _MIXED_DRAWS
    )
    (before, after), single, entries = mixed_effects(posterior, chosen, keep, rng)
    effect = after - before
    effect[np.abs(effect) < _ROUNDING] = 0.0
    pairs = [(names[i], levels[i][s] if s >= 0 else "") for i, s in entries]
    index = pd.MultiIndex.from_tuples(pairs, names=["node", "state"])
    own = np.array([i for i, _ in entries])
    single = np.where([s < 0 for _, s in entries], single[:, own], np.nan)
    return EffectDraws(index, after, effect, keep, single)


def mixed_setting(setting: dict, coding: MixedCoding) -> np.ndarray:
    """Values that columns are set to, in the units of the table or as states 0, 1, ..., (d,); NaN for the others."""
    chosen = np.full(len(coding.names), np.nan)
    for name, value in setting.items():
        i = coding.names.index(name)
        own = coding.levels[i]
        chosen[i] = _state(name, value, own) if own else _finite(name, value)
    return chosen


def _state(name, state, levels):
    """Position of a state, given as it stands in the table."""
    position = state_position(state, levels)
    if position < 0:
        raise ValueError(f"{name!r} has the states {', '.join(levels)}, not {state!r:.40}")
    return position


def _both_probabilities(dag, tables, states, chosen, rng):
    """Probabilities of all states without and with the intervention, (2, states)."""
    nothing = np.full(len(states), -1)
    out = [state_probabilities(dag, tables, states, set_to) for set_to in (nothing, chosen)]
    if None not in out:
        return [np.concatenate(own) for own in out]
    seed = rng.integers(2**62)  # the same rows, except for effects of the intervention
    return [_shares(dag, tables, states, set_to, seed) for set_to in (nothing, chosen)]


def _shares(dag, tables, states, set_to, seed):
    """Shares of states in simulated rows."""
    from bayesstruct.networks.priors.discrete_network import Rows

    rows = np.zeros((_ROWS, len(states)), np.int64)
    Rows(states, 0)(np.random.default_rng(seed), rows, dag, tables, set_to)
    return np.concatenate(
        [np.bincount(rows[:, i], minlength=k) / _ROWS for i, k in enumerate(states)]
    )


def state_probabilities(dag, tables, states, set_to) -> list[np.ndarray] | None:
    """Probabilities of the states of each variable of a discrete network, summed exactly.

    Variables are taken in, parents first, and summed out once all their children are in.

    Parameters
    ----------
    dag : (d, d) array_like
        1 at (parent, child).
    tables : (d, cells) array
        Conditional probability tables, as in :class:`bayesstruct.distributions.ProbabilityTables`.
    states : sequence of int
        Numbers of states.
    set_to : (d,) array of int
        States that variables are set to, -1 for the others.

    Returns
    -------
    list of ndarray, or None
        None if a table of more than 2**18 cells would be needed.
    """
    from bayesstruct.networks.kernels.configurations import strides
    from bayesstruct.networks.kernels.dags import topological_order

    dag = np.asarray(dag) != 0
    step, children = strides(dag, states), dag.sum(axis=1)
    out: list = [None] * len(states)
    held: list[int] = []
    joint = np.ones(())
    for i in topological_order(dag):
        if joint.size * states[i] > _CELLS:
            return None
        joint = joint[..., None] * _given_held(i, held, tables, states, step, set_to, dag)
        held.append(i)
        out[i] = joint.sum(axis=tuple(range(len(held) - 1)))
        children -= dag[:, i]
        done = tuple(a for a, v in enumerate(held) if children[v] == 0)
        joint, held = joint.sum(axis=done), [v for v in held if children[v] > 0]
    return out


def _given_held(i, held, tables, states, step, set_to, dag):
    """Probabilities of a variable given those that are held, one axis for each of them and one for its states."""
    k = states[i]
    if set_to[i] >= 0:
        return (np.arange(k) == set_to[i]).astype(float)
    cell = np.zeros((1,) * len(held), np.int64)
    for a, v in enumerate(held):
        if dag[v, i]:
            along = [1] * len(held)
            along[a] = states[v]
            cell = cell + step[v, i] * np.arange(states[v]).reshape(along)
    return tables[i][cell[..., None] * k + np.arange(k)]


def is_network(idata) -> bool:
    """Whether a result is of a Bayesian network with its parameters."""
    recorded = variables(idata, "constant_data")
    return {"dag", "arc"} <= variables(idata) and "arc_acyclic" in recorded


register_summary(
    "Bayesian networks",
    is_network,
    arc_table,
    ("do", "predict", "predictability", "independence_check", *DAG_READERS),
    before="directed acyclic graphs",
)
register_summary(
    _MIXED,
    is_mixed,
    arc_table,
    ("do", "predict", "predictability", "coefficients", "independence_check", *DAG_READERS),
    before="Bayesian networks",
)
register_figure(plot_graph, "Bayesian networks", _MIXED)


def _has_known_rows(idata) -> bool:
    """Whether a row of a network has a distribution of states, or a normal one."""
    constants = idata["constant_data"] if "constant_data" in idata.children else {}
    if is_mixed(idata):
        return False
    return is_network(idata) and not any(known(constants) for known, _ in _NOISE.values())


register_prediction("Bayesian networks", _has_known_rows, network_rows, "setting")
