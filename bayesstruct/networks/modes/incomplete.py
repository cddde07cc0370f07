r"""Best graph of a Bayesian network whose table has missing values: variational structural EM.

Graph G and a distribution q of the missing values are changed in turn so that

.. math::

    L(G, q) = \log p(G) + \sum_i s_i(\mathrm{pa}_i; q) + H(q) \le \log p(G, x_{\mathrm{obs}})

increases, :math:`s_i` being the BGe or BDeu score of the expected statistics under q
(:mod:`bayesstruct.networks.kernels.scores.expected`). The graph is searched as that of a complete table (Friedman 1998).
The best q given the graph is, row by row, proportional to the exponential of the expected log density under the
distribution of the parameters that the same statistics give: normal, or a table of the completions of a row (Beal and
Ghahramani 2006). The climb ends where no better graph is found: at a fixed point, usually one of several.

References
----------
Friedman, N. (1998). The Bayesian structural EM algorithm. *UAI* 14, 129-138.

Beal, M. J. and Ghahramani, Z. (2006). Variational Bayesian learning of directed graphical models with hidden
variables. *Bayesian Analysis* 1, 793-832.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.modes import Mode, ModeSolver, register_mode
from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.modes.complete import NetworkMode, OrderPriorRefusal, recognized_network
from bayesstruct.networks.modes.completions import NormalCompletions, StateCompletions
from bayesstruct.networks.recognition.completed import completed_table
from bayesstruct.networks.solvers.parent_search import best_network, log_weight

if TYPE_CHECKING:
    from pymc import Model

    from bayesstruct.networks.kernels.dag_priors import ParentPrior
    from bayesstruct.networks.recognition.network import Network

__all__ = ["IncompleteNetworkMode", "incomplete_network_mode", "structural_em"]

_SEED = 20170
_CLIMBS = 5  # local searches for each variable
_ROUNDS = 100  # graphs


@register_mode(after=(NetworkMode, OrderPriorRefusal))
class IncompleteNetworkMode(ModeSolver):
    """Graph of a Bayesian network with missing values where structural EM ends.

    Graph and distribution of the missing values are climbed in turn on a lower bound of the log
    posterior probability of the graph (:mod:`bayesstruct.networks.modes.incomplete`); ``x_missing``
    are the most probable states, or the expected numbers. Rows of states may have at most 4,096
    completions.
    """

    def recognise(self, model):
        """Return the network, or None."""
        network = recognized_network(model)
        return network if network is not None and network.missing is not None else None

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Climb."""
        point, converged = incomplete_network_mode(model, part, tol, max_rounds)
        return Mode(point, converged, max_rounds, tol)


def incomplete_network_mode(
    model: "Model", network: "Network", tol: float = 1e-9, max_rounds: int = 500
) -> tuple[dict[str, np.ndarray], bool]:
    """Graph, parameters and missing values where structural EM ends.

    Parameters
    ----------
    model : pymc.Model
    network : Network
        Recognised, with missing values.
    tol : float
        Relative change of the bound at which the distribution of the missing values counts as converged.
    max_rounds : int
        Bound on its updates given one graph.

    Returns
    -------
    point : dict
        Point of the model: the graph, the expected parameters given it, and the expected missing numbers or the most
        probable completion of the states of each row.
    converged : bool

    Raises
    ------
    ValueError
        If a row has more than 4,096 completions by states.
    """
    rows, op = completed_table(network), network.dag.owner.op
    names = tuple(map(str, op.names))
    make = NormalCompletions if network.gaussian else StateCompletions
    end = structural_em(names, op.prior, lambda: make(rows), tol, max_rounds)
    completions, graph, _, converged = end
    point = dict(model.initial_point())
    point[network.dag.name] = graph
    point.update(completions.expected(graph))
    return point, converged


def structural_em(
    names: tuple[str, ...],
    prior: "ParentPrior",
    make: Callable,
    tol: float = 1e-9,
    max_rounds: int = 500,
) -> tuple[NormalCompletions | StateCompletions, np.ndarray, list[float], bool]:
    """Climb from two graphs, the one without arcs and the best of the complete rows; keep the better end.

    Parameters
    ----------
    names : tuple of str
    prior : ParentPrior
    make : callable
        Makes the distribution of the missing values anew: an object with ``score()``, ``entropy``, ``update(graph)``.
    tol, max_rounds
        As for `incomplete_network_mode`.

    Returns
    -------
    completions : object
        Distribution of the missing values.
    graph : (d, d) int8 array
    bounds : list of float
        L after each update and each new graph; it never falls.
    converged : bool
    """
    starts = [np.asarray(prior.required, np.int8)]
    if (complete := make().complete_score()) is not None:
        starts.append(_search(NetworkProblem(names, complete, prior)))
    ends = [_climb(names, prior, make(), graph, tol, max_rounds) for graph in starts]
    return max(ends, key=lambda end: end[2][-1])


def _climb(names, prior, completions, graph, tol, max_rounds):
    """Update the distribution until nothing changes, look for a better graph, and so on."""
    bounds, converged = [], True
    for _ in range(_ROUNDS):
        converged = _settle(names, prior, completions, graph, bounds, tol, max_rounds)
        problem = NetworkProblem(names, completions.score(), prior)
        better = _search(problem)
        now, then = log_weight(problem, graph), log_weight(problem, better)
        if then <= now + 1e-9 * (1.0 + abs(now)):
            return completions, graph, bounds, converged
        graph = better
        bounds.append(then + completions.entropy)
    return completions, graph, bounds, False


def _settle(names, prior, completions, graph, bounds, tol, max_rounds):
    """Update the distribution given the graph until the bound rises no more; whether it converged."""
    last = -np.inf
    for _ in range(max_rounds):
        completions.update(graph)
        problem = NetworkProblem(names, completions.score(), prior)
        bound = log_weight(problem, graph) + completions.entropy
        bounds.append(bound)
        if bound - last <= tol * (1.0 + abs(bound)):
            return True
        last = bound
    return False


def _search(problem):
    return best_network(problem, np.random.default_rng(_SEED), climbs=_CLIMBS)
