r"""A Markov chain over graphs and parameters of linear structural equations.

A change of the graph concerns one or two columns. New parameters of these are proposed from fits,
:math:`q(\theta' \mid G')`, and accepted with

.. math::

    \min\Bigl(1, \frac{p(G')}{p(G)} \prod_i
    \frac{p(x_i, \theta'_i \mid G') / q(\theta'_i \mid G')}{p(x_i, \theta_i \mid G) / q(\theta_i \mid G)}\Bigr),

so that the chain is right however good the fits are. Parameters of a column are also drawn anew by themselves: by the same
proposals, and along single coordinates by slice sampling (Neal 2003), which does not depend on fits.

References
----------
Green, P. J. (1995). Reversible jump Markov chain Monte Carlo computation and Bayesian model determination. *Biometrika*
82, 711-732. -- Neal, R. M. (2003). Slice sampling. *Annals of Statistics* 31, 705-767.
"""

import math

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bayesstruct.networks.kernels.samplers.arc_proposals import (
    added,
    parents_of,
    propose_arc,
    put,
    reaches,
    removed,
)
from bayesstruct.sem.kernels.errors import log_shape_prior, shape_size
from bayesstruct.sem.kernels.families import Shared
from bayesstruct.sem.kernels.fits import log_joint
from bayesstruct.sem.kernels.settings import FREE, MIXTURE
from bayesstruct.sem.kernels.shares import draw_share, share_given_kinds
from bayesstruct.sem.steps.families import Families

__all__ = ["ArcState", "climb", "fill_parameters", "sweep"]

_COORDINATES = 3  # of a column that are drawn by slices in a sweep
_STEPS_OUT = 8
_WIDTH = 0.5  # of slices, in units of the standard deviation of a coordinate
_PASSES = 20  # of a greedy search


@dataclass
class ArcState:
    """Graph and parameters.

    Attributes
    ----------
    dag : (d, d) int8 array
        Rows are parents.
    theta : list of (P,) array
        Parameters of each column, see :mod:`bayesstruct.sem.kernels.fits`; parents in ascending order.
    shared : Shared
    """

    dag: np.ndarray
    theta: list = field(default_factory=list)
    shared: Shared = field(default_factory=Shared)

    def parents(self, i: int) -> tuple[int, ...]:
        """Parents of a column, ascending."""
        return parents_of(self.dag, i)


def _move(rng, families: Families, state: ArcState) -> bool:
    """Propose a change of the graph; return whether it was accepted."""
    changed = propose_arc(rng, state.dag)
    if changed is None:
        return False
    prior = sum(families.log_prior(i, own) for i, own in changed.items())
    if prior == -math.inf:
        return False
    ratio, drawn = prior, {}
    for i, own in changed.items():
        old = state.parents(i)
        drawn[i], weight = families.draw(rng, i, own, state.shared)
        ratio += weight - families.weigh(i, old, state.theta[i], state.shared)
        ratio -= families.log_prior(i, old)
    if not math.log(rng.random()) < ratio:
        return False
    put(state.dag, changed)
    for i, theta in drawn.items():
        state.theta[i] = theta
    return True


def _redraw(rng, families, state, i) -> bool:
    """Propose new parameters of a column from its fit."""
    parents = state.parents(i)
    theta, weight = families.draw(rng, i, parents, state.shared)
    now = families.weigh(i, parents, state.theta[i], state.shared)
    if math.log(rng.random()) < weight - now:
        state.theta[i] = theta
        return True
    return False


def slice_draw(rng, log_density: Callable[[float], float], x: float, width: float) -> float:
    """Draw a number from its density by slice sampling.

    Parameters
    ----------
    rng : numpy.random.Generator
    log_density : callable
    x : float
        The last draw.
    width : float
        About the standard deviation.
    """
    level = log_density(x) - rng.exponential()
    low = x - width * rng.random()
    high = low + width
    left = int(rng.integers(_STEPS_OUT))
    right = _STEPS_OUT - 1 - left
    while left > 0 and log_density(low) > level:
        low, left = low - width, left - 1
    while right > 0 and log_density(high) > level:
        high, right = high + width, right - 1
    while True:
        new = low + rng.random() * (high - low)
        if log_density(new) > level:
            return new
        low, high = (new, high) if new < x else (low, new)


def _slices(rng, families, state, i):
    """Draw some coordinates of the parameters of a column by slices."""
    parents = state.parents(i)
    family = families.fit(i, parents, state.shared)
    settings, fit, theta = family.part(state.theta[i])
    p, size = len(parents) + 1, shape_size(settings.noise)
    own = np.ones(len(theta), bool)
    if settings.variances != FREE:
        own[p] = False
        own[p + 1 : p + 1 + size] = settings.noise != MIXTURE
    own = np.flatnonzero(own)
    for a in rng.permutation(own)[:_COORDINATES]:
        width = 2.0 * _WIDTH
        if a < len(fit.precision) and fit.precision[a, a] > 0:
            width = 4.0 * _WIDTH / math.sqrt(fit.precision[a, a])

        def density(x, a=a):
            theta[a] = x
            return float(log_joint(family.y, family.design, settings, theta))

        theta[a] = slice_draw(rng, density, theta[a], width)
    state.theta[i] = family.whole(theta)


def _draw_shared(rng, families, state):
    """Draw the common scale, and the weights of a mixture that columns share, by slices."""
    settings, shared = families.settings, state.shared
    d, columns = families.d, range(families.d)
    own = [families.design(i, state.parents(i)) for i in columns]
    places = [len(state.parents(i)) + 1 for i in columns]

    def density():
        total = -2.0 * settings.shape * shared.tau - settings.rate * math.exp(-2.0 * shared.tau)
        if settings.noise == MIXTURE:
            total += log_shape_prior(settings, shared.shape)
        for i in columns:
            theta, p = state.theta[i], places[i]
            theta[p] = shared.tau + families.offsets[i]
            if settings.noise == MIXTURE:
                theta[p + 1 : p + 1 + len(shared.shape)] = shared.shape
            total += families.log_joint_of(*own[i], theta)
        return total

    def of_tau(x):
        shared.tau = x
        return density()

    shared.tau = slice_draw(rng, of_tau, shared.tau, 2.0 / math.sqrt(2.0 + len(families.table) * d))
    for k in range(len(shared.shape)):

        def of_shape(x, k=k):
            shared.shape[k] = x
            return density()

        shared.shape[k] = slice_draw(rng, of_shape, shared.shape[k], 0.7)
    density()  # parameters of the columns follow


def _families_of(families, state):
    """Families of all columns given their parents."""
    return [families.fit(i, state.parents(i), state.shared) for i in range(families.d)]


def _move_share(rng, families, state):
    """Propose the share of columns with normal noise with parameters of all columns; then draw it given the kinds of noise."""
    settings, own = families.settings, _families_of(families, state)
    other, ratio, drawn = draw_share(rng, own, settings), 0.0, []
    for family, theta in zip(own, state.theta, strict=True):
        new = family.at(other)
        sets, weights = new.draws(rng, 1)
        drawn.append(sets[0])
        ratio += weights[0] - new.score - family.log_weight(theta) + family.score
    if math.log(rng.random()) < ratio:
        state.theta = drawn
    kinds = zip(own, state.theta, strict=True)
    normal = np.array([bool(family.is_normal(theta)) for family, theta in kinds])
    state.shared.share = share_given_kinds(rng, normal, settings)


def sweep(rng, families: Families, state: ArcState, moves: int) -> float:
    """Move graph and parameters once, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    families : Families
    state : ArcState
    moves : int
        Proposals of changes of the graph.

    Returns
    -------
    float
        Share of the proposals that were accepted.
    """
    accepted = sum(_move(rng, families, state) for _ in range(moves))
    if families.settings.share_is_random:
        _move_share(rng, families, state)
    for i in range(families.d):
        _redraw(rng, families, state, i)
        _slices(rng, families, state, i)
    if families.settings.variances != FREE:
        _draw_shared(rng, families, state)
    return accepted / moves


def climb(rng, families: Families, state: ArcState) -> None:
    """Move the graph to a good one: parents by a random order, then the best changes of single arcs."""
    d, shared = families.d, state.shared
    position = np.empty(d, np.int64)
    position[rng.permutation(d)] = np.arange(d)
    best = {i: families.score(i, state.parents(i), shared) for i in range(d)}
    for within in [position, None]:
        for _ in range(_PASSES):
            changed = False
            for code in rng.permutation(d * d).tolist():
                j, i = divmod(code, d)
                if i != j and (within is None or position[j] < position[i]):
                    changed |= _improve(families, state, best, j, i)
            if not changed:
                break


def _improve(families, state, best, j, i):
    """Change one arc if that improves the score."""
    parents, dag = state.parents(i), state.dag
    options = []
    if dag[j, i]:
        options.append({i: removed(parents, j)})
        dag[j, i] = 0
        if not reaches(dag, j, i):
            options.append({i: removed(parents, j), j: added(state.parents(j), i)})
        dag[j, i] = 1
    elif not dag[i, j] and not reaches(dag, i, j):
        options.append({i: added(parents, j)})
    for changed in options:
        if any(families.log_prior(k, own) == -math.inf for k, own in changed.items()):
            continue
        new = {k: families.score(k, own, state.shared) for k, own in changed.items()}
        if sum(new.values()) > sum(best[k] for k in new) + 1e-9:
            put(state.dag, changed)
            best.update(new)
            return True
    return False


def fill_parameters(rng, families: Families, state: ArcState) -> None:
    """Draw the parameters of all columns from their fits, after a random share of columns with normal noise."""
    if families.settings.share_is_random:
        own = _families_of(families, state)
        state.shared.share = draw_share(rng, own, families.settings)
    state.theta = [
        families.draw(rng, i, state.parents(i), state.shared)[0] for i in range(families.d)
    ]
