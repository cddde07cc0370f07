r"""Markov chain over graphs and parameters of linear structural equations, with any noise.

The posterior is

.. math::

    p(G, \theta \mid x) \propto p(G) \prod_i p(x_i, \theta_i \mid \pi_i)
        = p(G) \prod_i e^{\text{score}_i(\pi_i)} \, q_i(\theta_i \mid \pi_i) \, w_i(\theta_i, \pi_i),

q being a proposal made from a fit and w what it gets wrong. A graph is proposed by a kernel that is *reversible* for
:math:`p(G) \prod_i e^{\text{score}_i(\pi_i)}` (one kind of move of the samplers of :mod:`bayesstruct.networks`, or an
independent draw). Columns whose parents change get m sets of parameters from q; those that they have now
are one of m, the others drawn from q, too. The proposal is accepted with the ratio of the products of the means of w, and one of the m
is drawn by w. So the posterior is left invariant however good scores and fits are (Andrieu and Roberts 2009; Andrieu, Lee and Vihola 2018).
Parameters are also changed given the graph: one of m draws, and a step of a random walk that gets away from where the proposal is too thin.
Whether the noise of a column is normal or a mixture is one of its parameters, and q proposes it too (:mod:`bayesstruct.sem.kernels.families`).

If the share of columns with normal noise is random, it is given in these moves: proposals q know it, scores are those at one share. Then
share and parameters of all columns are proposed together given the graph, the share from what the evidences of the columns say about it
(:mod:`bayesstruct.sem.kernels.shares`), and accepted in the same way.

With equal or known variances the scale that all columns share, and the shape of a mixture, are given in these moves, and are changed by
random walks of their own, in even coordinates (:mod:`bayesstruct.sem.kernels.fits`).

References
----------
Andrieu, C. and Roberts, G. O. (2009). The pseudo-marginal approach for efficient Monte Carlo computations. *Annals of
Statistics* 37, 697-725. -- Andrieu, C., Lee, A. and Vihola, M. (2018). Uniform ergodicity of the iterated
conditional SMC and geometric ergodicity of particle Gibbs samplers. *Bernoulli* 24, 842-872.
"""

import math

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.kernels.dags import topological_order
from bayesstruct.networks.kernels.parent_tables import ROWS
from bayesstruct.networks.solvers.parent_search import ALL_PARENTS
from bayesstruct.sem.kernels.candidates import sem_tables
from bayesstruct.sem.kernels.errors import mixture_weights, shape_size
from bayesstruct.sem.kernels.families import Shared, unused_weights
from bayesstruct.sem.kernels.fits import log_joint, move_coordinates, parameter_count
from bayesstruct.sem.kernels.references import (
    at_reference,
    log_shared_prior,
    nearest_positive,
    shared_precision,
)
from bayesstruct.sem.kernels.refinement import is_large
from bayesstruct.sem.kernels.settings import FREE, HORSESHOE, MIXTURE, STUDENT
from bayesstruct.sem.kernels.shares import draw_share, share_given_kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bayesstruct.networks.exact.problem import NetworkProblem
    from bayesstruct.sem.kernels.families import Family

__all__ = ["SemChain", "SemState"]

_DRAWS, _REFRESH = 16, 4  # sets of parameters of a column whose parents change, or do not
_FEW_DRAWS = 4  # of a large table
_WALKS = 3  # of the scale and shape that all columns share
_CLIMBS = 5


@dataclass
class SemState:
    """Graph and parameters of linear structural equations.

    Attributes
    ----------
    dag : (d, d) int8 array
        Acyclic; 1 at (parent, child).
    intercept : (d,) array
        Of a mixture: without the mean of the noise.
    weight : (d, d) array
        At (parent, child); 0 without an arc.
    noise_scale : (d,) array
    shape : (d, S) array
        Degrees of freedom of Student noise (S = 1); weights of a mixture (S = K); else S = 0.
    local_scale : (d, d) array
        Of a horseshoe, at (parent, child); 1 without an arc, and with other priors.
    normal : (d,) bool array
        Columns whose noise is exactly normal in place of a mixture, whose weights then have their prior.
    share : float
        Probability of normal noise, where it is random.
    """

    dag: np.ndarray
    intercept: np.ndarray
    weight: np.ndarray
    noise_scale: np.ndarray
    shape: np.ndarray
    local_scale: np.ndarray
    normal: np.ndarray
    share: float = 0.5

    def copy(self) -> "SemState":
        """Return a copy."""
        return deepcopy(self)


class SemChain:
    """Markov chain over graphs and parameters of linear structural equations.

    Parameters
    ----------
    problem : NetworkProblem
        Its score is a :class:`bayesstruct.sem.kernels.scores.SemScores`.
    candidates : int, optional
        Candidate parents of each column to begin with, as in
        :func:`bayesstruct.sem.kernels.candidates.sem_tables`.
    draws : int, optional
        Sets of parameters that a column whose parents change is given; 16 by default, or 4 for a large table.
    graphs : sequence of (d, d) arrays
        Good graphs, whose parents are among the candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.networks.exact.problem import network_problem
    >>> from bayesstruct.sem.kernels.scores import SemScores
    >>> from bayesstruct.sem.kernels.settings import sem_settings
    >>> rng = np.random.default_rng(0)
    >>> x = rng.laplace(size=(300, 2))
    >>> x[:, 1] += x[:, 0]
    >>> x = (x - x.mean(0)) / x.std(0)
    >>> chain = SemChain(network_problem(SemScores(x, sem_settings(2))))
    >>> state = chain.start(rng)
    >>> for _ in range(10):
    ...     state, stats = chain.sweep(rng, state)
    >>> state.dag[0, 1]
    np.int8(1)
    """

    def __init__(
        self,
        problem: "NetworkProblem",
        *,
        candidates: int | None = None,
        draws: int | None = None,
        graphs: "Sequence[np.ndarray]" = (),
    ):
        problem = at_reference(problem)
        self.problem, self.scores = problem, problem.score
        if draws is None:
            draws = _FEW_DRAWS if is_large(*self.scores.table.shape) else _DRAWS
        self.draws = int(draws)
        self.settings, self.d = self.scores.settings, problem.d
        self.shared = self.settings.variances != FREE
        self.tables = sem_tables(problem, candidates, graphs)
        self.moves = graph_moves(problem, self.tables)

    # --- states and parameters ---------------------------------------------------------------

    def start(self, rng: np.random.Generator, graph: np.ndarray | None = None) -> SemState:
        """Return the graph at the end of a short search, and parameters drawn given it.

        Parameters
        ----------
        rng : numpy.random.Generator
        graph : (d, d) array, optional
            Acyclic, with the required arcs. The search begins at its order; without it at random ones.

        Returns
        -------
        SemState
        """
        from bayesstruct.networks.kernels.order_search import best_graph

        order = None if graph is None else topological_order(graph)
        climbs = _CLIMBS if order is None else 1
        graph = best_graph(self.tables, rng, climbs=climbs, order=order)[0]
        return self.parameters(rng, graph)

    def parameters(self, rng: np.random.Generator, graph: np.ndarray) -> SemState:
        """Draw parameters given a graph, nearly from their posterior.

        Parameters
        ----------
        rng : numpy.random.Generator
        graph : (d, d) int8 array

        Returns
        -------
        SemState
        """
        shared = Shared(self.scores.log_scale, self.scores.shape)
        families = [self._family(graph, i) for i in range(self.d)]
        if self.settings.share_is_random:
            shared.share = draw_share(rng, families, self.settings)
        thetas = []
        for i, own in enumerate(families):
            family = self._given_share(own, shared)
            draws, weights = family.draws(rng, self.draws, self._tau(shared, i), shared.shape)
            if weights.max() > -np.inf:
                thetas.append(draws[_pick(rng, weights)])
            else:
                thetas.append(np.concatenate([family.fit.mode, family.fit.scale_mean]))
        return self._state(rng, graph, thetas, shared.share)

    def _family(self, graph, i) -> "Family":
        return self.scores.family(i, np.flatnonzero(graph[:, i]))

    def _given_share(self, family, shared):
        """Return a family with the probability of normal noise that columns share, if that is random."""
        return family.at(shared.share) if self.settings.share_is_random else family

    def _theta(self, rng, state, i):
        """Parameters of a column as one array; what the state does not hold is drawn."""
        parents = np.flatnonzero(state.dag[:, i])
        k, size = len(parents), shape_size(self.settings.noise)
        out = np.empty(parameter_count(self.settings, k))
        out[0], out[1 : k + 1] = state.intercept[i], state.weight[parents, i]
        out[k + 1] = math.log(state.noise_scale[i])
        if self.settings.noise == STUDENT:
            out[k + 2] = math.log(state.shape[i, 0] - 2.0)
        elif self.settings.noise == MIXTURE:
            total = rng.gamma(self.settings.concentration)
            out[k + 2 : k + 2 + size] = np.cbrt(np.maximum(state.shape[i], 1e-300) * total)
            if state.normal[i]:
                out[k + 2 : k + 2 + size] = np.nan
        if self.settings.prior == HORSESHOE:
            out[k + 2 + size :] = np.log(state.local_scale[parents, i])
        return out

    def _state(self, rng, graph, thetas, share):
        """State of a graph and parameters."""
        size = shape_size(self.settings.noise)
        zero = np.zeros((self.d, self.d))
        out = SemState(
            np.array(graph, np.int8),
            np.empty(self.d),
            zero,
            np.empty(self.d),
            np.empty((self.d, size)),
            np.ones((self.d, self.d)),
            np.zeros(self.d, bool),
            share,
        )
        for i, theta in enumerate(thetas):
            self._write(rng, out, i, theta)
        return out

    def _write(self, rng, state, i, theta):
        """Write the parameters of a column into a state."""
        parents = np.flatnonzero(state.dag[:, i])
        k, size = len(parents), shape_size(self.settings.noise)
        state.intercept[i], state.noise_scale[i] = theta[0], math.exp(theta[k + 1])
        state.weight[:, i], state.local_scale[:, i] = 0.0, 1.0
        state.weight[parents, i] = theta[1 : k + 1]
        if self.settings.noise == STUDENT:
            state.shape[i] = 2.0 + math.exp(theta[k + 2])
        elif self.settings.noise == MIXTURE:
            state.normal[i] = np.isnan(theta[k + 2])
            weights = mixture_weights(theta[k + 2 : k + 2 + size])
            state.shape[i] = unused_weights(rng, self.settings) if state.normal[i] else weights
        if self.settings.prior == HORSESHOE:
            state.local_scale[parents, i] = np.exp(theta[k + 2 + size :])

    def _tau(self, shared, i):
        """Log scale of a column from the common one."""
        return shared.tau + self.scores.log_relative[i]

    # --- sweeps ----------------------------------------------------------------------------------

    def sweep(self, rng: np.random.Generator, state: SemState) -> tuple[SemState, dict]:
        """Move graph and parameters.

        Parameters
        ----------
        rng : numpy.random.Generator
        state : SemState

        Returns
        -------
        SemState
        dict
            ``acceptance``: share of the proposals of another graph that were accepted (NaN if there were none);
            ``refreshed``: share of the columns whose parameters changed by a draw; ``walked``: share of the steps of random
            walks that were accepted.
        """
        thetas = [self._theta(rng, state, i) for i in range(self.d)]
        graph = np.array(state.dag, np.int8)
        shared = self._shared_of(rng, state)
        if self.shared and self.settings.noise == MIXTURE:
            for theta in thetas:  # one sum of cubes for all
                first = self._first_shape(theta)
                theta[first : first + len(shared.shape)] = shared.shape
        accepted = []
        for k in rng.permutation(len(self.moves)):
            moved = self._move_graph(rng, self.moves[k], graph, thetas, shared)
            if moved is not None:
                accepted.append(moved)
        families = [self._family(graph, i) for i in range(self.d)]
        if self.settings.share_is_random:
            self._move_share(rng, families, thetas, shared)
        fresh = [self._refresh(rng, i, families[i], thetas, shared) for i in range(self.d)]
        walked = [self._walk(rng, families[i], thetas, i) for i in range(self.d)]
        if self.shared:
            walked += [self._walk_shared(rng, families, thetas) for _ in range(_WALKS)]
        stats = {
            "acceptance": float(np.mean(accepted)) if accepted else math.nan,
            "refreshed": float(np.mean(fresh)),
            "walked": float(np.mean(walked)),
        }
        return self._state(rng, graph, thetas, shared.share), stats

    def _shared_of(self, rng, state):
        """Return what all columns share."""
        tau = math.log(state.noise_scale[0]) - self.scores.log_relative[0]
        if self.settings.noise != MIXTURE:
            return Shared(tau, self.scores.shape)
        total = rng.gamma(self.settings.concentration)
        return Shared(tau, np.cbrt(np.maximum(state.shape[0], 1e-300) * total), state.share)

    def _first_shape(self, theta):
        scales = shape_size(self.settings.noise)
        k = len(theta) - 2 - scales
        return (k // 2 if self.settings.prior == HORSESHOE else k) + 2

    def _move_graph(self, rng, move, graph, thetas, shared):
        """Propose a graph and parameters; whether they were accepted, or None if nothing was to change."""
        other = move(rng, graph)
        changed = np.flatnonzero((other != graph).any(axis=0))
        if not len(changed):
            return None
        ratio, now, then = 0.0, [], []
        for i in changed:
            old, new = self._family(graph, i), self._family(other, i)
            given = self.draws, self._tau(shared, i), shared.shape
            now.append(self._given_share(old, shared).draws(rng, *given, now=thetas[i]))
            then.append(self._given_share(new, shared).draws(rng, *given))
            ratio += _ratio(new, then[-1][1], old, now[-1][1])
        accept = math.log(rng.random()) < ratio
        for i, sets in zip(changed, then if accept else now, strict=True):
            thetas[i] = sets[0][_pick(rng, sets[1])]
        if accept:
            graph[:] = other
        return accept

    def _move_share(self, rng, families, thetas, shared):
        """Propose the share of columns with normal noise with parameters of all columns; then draw it given the kinds of noise."""
        other = draw_share(rng, families, self.settings)
        ratio, now, then = 0.0, [], []
        for family, theta in zip(families, thetas, strict=True):
            old, new = family.at(shared.share), family.at(other)
            now.append(old.draws(rng, self.draws, now=theta))
            then.append(new.draws(rng, self.draws))
            ratio += _ratio(new, then[-1][1], old, now[-1][1])
        if math.log(rng.random()) < ratio:
            now = then
        thetas[:] = [sets[_pick(rng, weights)] for sets, weights in now]
        kinds = zip(families, thetas, strict=True)
        normal = np.array([bool(family.is_normal(theta)) for family, theta in kinds])
        shared.share = share_given_kinds(rng, normal, self.settings)

    def _refresh(self, rng, i, family, thetas, shared):
        """Draw one of a few sets of parameters, among them those that a column has; whether it is another."""
        family, given = self._given_share(family, shared), (self._tau(shared, i), shared.shape)
        sets, weights = family.draws(rng, _REFRESH, *given, now=thetas[i])
        chosen = _pick(rng, weights)
        thetas[i] = sets[chosen]
        return chosen > 0

    def _walk(self, rng, family, thetas, i):
        """Step of a random walk of the parameters of a column, in even coordinates; whether it was accepted."""
        settings, fit, now = family.part(thetas[i])
        size, p = len(fit.mode), len(family.design)
        first, last = self._given(p)
        free = np.r_[0:first, last:size]
        theta = now.copy()
        step = np.linalg.solve(
            np.linalg.cholesky(nearest_positive(fit.precision[np.ix_(free, free)])).T,
            rng.standard_normal(len(free)),
        )
        length = rng.choice([0.3, 1.0, 2.0]) / math.sqrt(len(theta))
        move_coordinates(settings, theta, p, 1)
        theta[free] += length * step
        theta[size:] += rng.standard_normal(len(theta) - size) * 2.0 * length
        move_coordinates(settings, theta, p, -1)
        ratio = _log_target(settings, family, theta) - _log_target(settings, family, now)
        if math.log(rng.random()) < ratio:
            thetas[i] = family.whole(theta)
            return True
        return False

    def _given(self, p):
        """First and last + 1 of the parameters that all columns share."""
        if not self.shared:
            return p, p
        own = shape_size(MIXTURE) if self.settings.noise == MIXTURE else 0
        return p, p + 1 + own

    # --- what all columns share ------------------------------------------------------------------

    def _walk_shared(self, rng, families, thetas):
        """Step of a random walk of the scale, and of the shape of a mixture, that all columns share."""
        own = shape_size(MIXTURE) if self.settings.noise == MIXTURE else 0
        factor = np.linalg.cholesky(shared_precision(self.scores, families))
        step = np.linalg.solve(factor.T, rng.standard_normal(1 + own))
        step *= rng.choice([0.5, 1.0, 2.0]) / math.sqrt(1 + own)
        ratio, others = 0.0, []
        for family, theta in zip(families, thetas, strict=True):
            p, other = len(family.design), theta.copy()
            move_coordinates(self.settings, other, p, 1)
            other[p : p + 1 + own] += step
            move_coordinates(self.settings, other, p, -1)
            then = _log_target(self.settings, family, other)
            ratio += then - _log_target(self.settings, family, theta)
            others.append(other)
        if ratio > -math.inf:
            ratio += self._log_shared_prior(others) - self._log_shared_prior(thetas)
        if math.log(rng.random()) < ratio:
            thetas[:] = others
            return True
        return False

    def _log_shared_prior(self, thetas):
        first = self._first_shape(thetas[0])
        tau = thetas[0][first - 1] - self.scores.log_relative[0]
        shape = thetas[0][first : first + shape_size(self.settings.noise)]
        return log_shared_prior(self.settings, tau, shape)


def graph_moves(problem, tables) -> "list[Callable]":
    """Return the reversible kernels of a sweep: each takes a generator and a graph, and returns a graph.

    Parameters
    ----------
    problem : NetworkProblem
    tables : ParentTables
        If they hold all sets, independent draws are among the kernels.

    Notes
    -----
    A sequence of different moves is not reversible, which the acceptance of a proposal needs; moves of one kind whose
    variables are drawn independently are. Of the changes of one arc every fifth is of any pair, from the first to the last.
    """
    from bayesstruct.networks.exact.posterior import IndependentDraws
    from bayesstruct.networks.kernels.samplers import partition_mcmc, structure_mcmc
    from bayesstruct.networks.kernels.samplers.partition_mcmc import Moves
    from bayesstruct.networks.kernels.samplers.structure_mcmc import Moves as Changes

    d = tables.d

    def of(sweep, moves):
        def move(rng, graph):
            out = graph.copy()
            sweep(rng, tables, out, moves)
            return out

        return move

    partition, structure = partition_mcmc.sweep, structure_mcmc.sweep
    out = [of(partition, Moves(1, 0, 0, 0)) for _ in range(d // 8 + 1)]
    out += [of(partition, Moves(0, 1, 0, 0)), of(partition, Moves(0, 0, 1, 0))]
    out += [of(structure, Changes(0, 1)) for _ in range(d)]
    out += [of(structure, Changes(21, 0)) for _ in range(d)]
    out += [of(structure, Changes(0, 0, 2)) for _ in range(d)]
    if (tables.layout[:, ROWS] == 1).all() and d <= ALL_PARENTS:  # all sets are in the tables
        draws = IndependentDraws(problem)
        out += [lambda rng, graph: draws(rng)] * 2
    return out


def _log_target(settings, family, theta):
    """Log joint density of a column and its parameters, given the kind of noise."""
    p = len(family.design)
    if settings.noise == MIXTURE:
        shape = theta[p + 1 : p + 1 + shape_size(MIXTURE)]
        if not (shape > 0.0).all():
            return -math.inf
    return log_joint(family.y, family.design, settings, theta)


def _ratio(new, then, old, now):
    """Log ratio of the estimated evidences of a family, in units of the scores."""
    return _log_mean(then) - new.score - _log_mean(now) + old.score


def _log_mean(logs):
    high = logs.max()
    if high == -np.inf:
        return -math.inf
    return float(high + math.log(np.exp(logs - high).mean()))


def _pick(rng, logs):
    """Draw an index by log weights."""
    weights = np.exp(logs - logs.max())
    return int(np.searchsorted(np.cumsum(weights), rng.random() * weights.sum(), side="right"))
