"""Bootstrap support of point estimates of graphs, by the solvers that find modes."""

import warnings

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.solution import ConvergenceWarning, tuner_of
from bayesstruct.data.arguments import generator, number, whole_number
from bayesstruct.data.errors import TableError, TableWarning
from bayesstruct.graphs.ancestry import essential
from bayesstruct.graphs.comparisons.bootstrap import BootstrapSupport, support_of
from bayesstruct.modes.tune import chosen_fit
from bayesstruct.networks.solvers.dag_search import dag_search
from bayesstruct.networks.solvers.optimal_dag import optimal_dag

if TYPE_CHECKING:
    import xarray as xr

    from bayesstruct.data.intake import TableLike

__all__ = ["bootstrap_support"]

_NETWORK = "bayesian_network"
_EXACT = 12  # columns up to which the best graph of all is found
_RESTARTS = 2  # of the search beyond
_STATES = ("bdeu", "bde", "multinomial", "logistic")
#: Options that tell equivalent graphs apart, so that directions count as they are found.
_ORIENTING = ("required", "forbidden", "tiers", "edge_probability")


def bootstrap_support(
    model: str | Callable,
    data: "TableLike",
    *,
    posterior: "xr.DataTree | None" = None,
    setting: dict[str, float] | None = None,
    gamma: float = 0.5,
    n_bootstrap: int = 100,
    random_seed: int | np.random.Generator | None = None,
    **options: Any,
) -> BootstrapSupport:
    """Estimate a graph from resampled rows again and again, and count how often each edge is in it.

    Parameters
    ----------
    model : str or callable
        Name of a model or its function, of which the certified solvers find the mode: those that :func:`bayesstruct.tune` tunes
        (``gaussian_graphical`` with ``prior="laplace"``, the graphical lasso, or ``"spike_slab"``; those with neighbours, nodes or known blocks), and
        ``bayesian_network``.
    data : DataFrame or array_like
        (n, p) table without missing values.
    posterior : xarray.DataTree, optional
        Result of a model on the same columns, whose probabilities and Bayes factors are put beside the support.
    setting : dict, optional
        Values of the options that are tuned, as ``bs.tune(...).best``, for all samples. Unless given, the extended BIC chooses them
        in each sample anew, from the grid that :func:`bayesstruct.tune` has: then the choice is a part of what is judged.
    gamma : float, default 0.5
        Of the extended BIC, between 0 and 1.
    n_bootstrap : int, default 100
        Number of bootstrap samples: n rows each, drawn with replacement.
    random_seed : int or numpy.random.Generator, optional
        For the rows.
    **options
        Options of the model: as for :func:`bayesstruct.tune`; of ``bayesian_network`` those of :func:`bayesstruct.solvers.dag_search`, such as ``score``.

    Returns
    -------
    BootstrapSupport
        Prints as a table; ``.table`` is the DataFrame, with ``estimate`` (whether the estimate from all rows has the edge), ``support``, and
        ``probability``, ``bayes_factor`` and ``evidence`` of `posterior`. :func:`bayesstruct.plot_bootstrap_support` draws it.

    Raises
    ------
    TableError
        If the table cannot be used, or a bootstrap sample of it: the message says which one.
    ValueError
        If the model has no such solver (the message lists those that have), for options out of range, or a posterior of other columns.

    Notes
    -----
    Support and probability answer different questions. *Support* says how stable the estimate is: how often the same method, with the same
    penalty or the same way to choose it, would select the edge on other rows. It has no prior and no model of what was not selected: a strong
    penalty makes all supports small, and 0.5 does not mean that the edge is as likely there as not. The *posterior probability* of an edge is given these rows, and depends
    on the prior. They agree on edges with much evidence and on none; where support is high and probability is not, the method selects more than the
    data say, and the reverse is a sign of a strong penalty.

    A bootstrap sample holds some 63 % of the rows, many of them repeatedly, and scores take repeated rows for evidence: of Bayesian networks graphs
    of bootstrap samples have more arcs than that of the table [2]_. Without options that tell equivalent graphs apart (`required`, `forbidden`, `tiers`, `edge_probability`), arcs are those of the
    essential graph, and one that may be reversed counts half in each direction.

    The mode of the graphical lasso is certified (a duality gap), that of the spike and slab is a local one. Graphs of Bayesian networks are the best of all up to 12 columns, and beyond
    those of a hill climb with two restarts. Samples run through `joblib.Parallel`: ``with joblib.parallel_config(...)`` says where.

    References
    ----------
    .. [1] Friedman, N., Goldszmidt, M. and Wyner, A. (1999). Data analysis with Bayesian networks: a bootstrap approach. *UAI* 15.
    .. [2] Steck, H. and Jaakkola, T. (2003). Bias-corrected bootstrap and model uncertainty. *NeurIPS* 16.

    Examples
    --------
    .. code-block:: python

        support = bs.bootstrap_support(
            "gaussian_graphical", df, prior="laplace", posterior=idata, random_seed=1
        )
        bs.plot_bootstrap_support(support)
    """
    from joblib import Parallel, delayed

    n_bootstrap = whole_number("n_bootstrap", n_bootstrap, 2)
    if not 0 <= number("gamma", gamma) <= 1:
        raise ValueError(f"`gamma` must be between 0 and 1, it is {gamma}")
    name = model if isinstance(model, str) else getattr(model, "__name__", repr(model))
    data = np.array(data) if isinstance(data, list) else data
    if name == _NETWORK:
        _check_network(setting, options)
        estimate = partial(_dag, options=_with_states(data, options))
    else:
        _check_tuned(name)
        grid = None if setting is None else {k: [v] for k, v in dict(setting).items()}
        estimate = partial(_edges, name=name, grid=grid, gamma=gamma, options=options)
    names, graph = estimate(data)
    rng, n = generator(random_seed), len(data)
    rows = [rng.integers(0, n, n) for _ in range(n_bootstrap)]
    samples = np.array(
        Parallel()(delayed(_sample)(estimate, data, r, k) for k, r in enumerate(rows))
    )
    halves = name == _NETWORK and not {*_ORIENTING} & {*options}
    return support_of(
        names,
        graph,
        essential(samples) if halves else samples,
        directed=name == _NETWORK,
        halves=halves,
        posterior=posterior,
    )


def _sample(estimate, data, rows: np.ndarray, number: int) -> np.ndarray:
    """Graph from some rows; an error says which sample it was."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)  # rows are repeated on purpose
        warnings.simplefilter("ignore", ConvergenceWarning)  # all rows give the same warning
        try:
            return estimate(_take(data, rows))[1]
        except ValueError as error:
            kind = TableError if isinstance(error, TableError) else ValueError
            raise kind(f"In bootstrap sample {number + 1}: {error}") from error


def _take(data, rows: np.ndarray):
    """Rows of a table by position."""
    if hasattr(data, "iloc"):
        return data.iloc[rows].reset_index(drop=True)
    return data[rows]


# ---- estimates ---------------------------------------------------------------------------------


def _edges(data, *, name, grid, gamma, options) -> tuple[list[str], np.ndarray]:
    """Mode of an undirected model: names of its columns and the adjacency of its graph."""
    tuner = tuner_of(name)(data, **options)
    p = tuner.rows.shape[1]
    graph = np.zeros((p, p), bool)
    graph[np.triu_indices(p, 1)] = chosen_fit(tuner, grid, gamma).edges
    return [str(column) for column in tuner.columns], graph | graph.T


def _dag(data, *, options) -> tuple[list[str], np.ndarray]:
    """Mode of a Bayesian network: names of its columns and the adjacency of its graph, rows parents."""
    if data.shape[1] <= _EXACT:
        solution = optimal_dag(data, **options)
    else:
        solution = dag_search(data, restarts=_RESTARTS, random_seed=0, **options)
    return [str(name) for name in solution.names], np.asarray(solution.adjacency) != 0


def _check_tuned(name: str) -> None:
    """Refuse models of which there is no solver."""
    try:
        tuner_of(name)
    except ValueError as error:
        raise ValueError(
            f"{error}, and {_NETWORK} is searched. Of other models bs.sensitivity says how edges depend on the prior"
        ) from None


def _check_network(setting, options: dict) -> None:
    if setting is not None:
        raise ValueError("`setting` is for models with a penalty, and bayesian_network has none")
    for name in ("interventions", "row_counts"):
        if name in options:
            raise ValueError(
                f"`{name}` goes with the rows of the table, which are drawn anew: it is not supported here"
            )


def _with_states(data, options: dict) -> dict:
    """Declare the states of text and numbers, which a sample need not have all."""
    if options.get("score") not in _STATES or "states" in options or not hasattr(data, "iloc"):
        return options
    plain = [name for name in data.columns if data[name].dtype.name != "category"]
    return options | {"states": {name: data[name].dropna().unique().tolist() for name in plain}}
