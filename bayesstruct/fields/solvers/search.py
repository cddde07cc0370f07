r"""Search for the most probable graph of a Markov random field whose edges may be absent.

.. math:: \max_G \; \log p(G) + \log p(x \mid G)

with the evidence of :mod:`bayesstruct.fields.solvers.evidence`. From a few graphs the search climbs by
adding, deleting or exchanging blocks of weights. The approximation of the evidence of a graph takes some Newton
steps; so all moves are ranked first by an expansion at the present graph. With the
Hessian H of the present approximation, of covariance V, and the gradient g of the log-likelihood,

- the gain of adding a block f is an integral over its weights, of gradient :math:`g_f` and curvature
  :math:`H_{ff} - H_{f\cdot} V H_{\cdot f}`: a score test;
- the gain of deleting a block e is the ratio of its posterior to its prior density at zero (Dickey 1971), the
  former :math:`N(0; w_e, V_{ee})`: a Wald test;
- the gain of exchanging e for f is that of deleting e and adding f, with gradient and curvature updated to their
  values without e, :math:`g_f + H_{f\cdot} V_{\cdot e} V_{ee}^{-1} w_e` and so on.

Only the moves with the largest predicted gain are tried; of more than 400 absent weights, only the blocks of
steepest slopes are expanded. A climb ends at a graph that none of the tried moves improves.

References
----------
Dickey, J. M. (1971). The weighted likelihood ratio, linear hypotheses on normal location parameters.
*Annals of Mathematical Statistics* 42, 204-223.
"""

import math

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.fields.solvers.evidence import FieldEvidence, Fit, mean_log_slab, slab_precision

if TYPE_CHECKING:
    from bayesstruct.fields.solvers.edge_priors import BlockEdges, IndependentEdges

__all__ = ["FieldMode", "search_field"]

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_TRIED = 8  # moves that are tried before a climb ends
_SLACK = 1.0  # predicted loss up to which a move is tried
_MOST = 400  # largest number of absent weights whose curvature is computed
_WEAK = 20.0  # loss up to which the exchange of a present block is considered
_BETTER = 1e-6


@dataclass(frozen=True)
class FieldMode:
    """The best graph found.

    Attributes
    ----------
    on : (blocks,) array of bool
    theta : (biases + weights,) array
        Centre of the approximation given the graph.
    score : float
        Log prior probability of the graph plus log evidence.
    fits : int
        Number of graphs whose evidence was approximated.
    """

    on: np.ndarray
    theta: np.ndarray
    score: float
    fits: int


class _Climber:
    """Evidence of graphs, cached, and moves between them."""

    def __init__(self, evidence: FieldEvidence, edges):
        self.evidence, self.edges = evidence, edges
        self.seen: dict[bytes, float] = {}  # evidence of graphs
        self.noise = self._information()
        blocks, potentials = evidence.prior.blocks, evidence.likelihood.potentials
        self.sizes = np.array([len(block) for block in blocks])
        edge = potentials.edge_of_weight[[block[0] for block in blocks]]
        #: Variables of each block.
        self.ends = np.column_stack([end[edge] for end in potentials.ends])

    def _information(self):
        """Curvature of each weight among independent variables, for screening."""
        likelihood, potentials = self.evidence.likelihood, self.evidence.likelihood.potentials
        share = likelihood.unary_counts / likelihood.n
        out = []
        for e, (i, j) in enumerate(zip(*potentials.ends, strict=True)):
            own, other = (
                share[potentials.unary_start[v] : potentials.unary_start[v + 1]] for v in (i, j)
            )
            effect = self.evidence.hessian.pair_effects[e]
            effect = effect - np.einsum("s,std->td", own, effect)
            effect = effect - np.einsum("t,std->sd", other, effect)[:, None]
            out.append(np.einsum("s,t,std->d", own, other, effect**2))
        return likelihood.n * np.concatenate(out) + 1e-12

    def score(self, fit: Fit) -> float:
        """Log posterior probability of a graph, up to a constant."""
        return self.edges.log_prior(fit.on) + fit.evidence

    def fit(self, on, theta) -> Fit:
        """Approximate the evidence of a graph and cache it."""
        fit = self.evidence.fit(on, theta)
        self.seen[on.tobytes()] = fit.evidence
        return fit

    def climb(self, fit: Fit) -> Fit:
        """Improve a graph until no tried move does."""
        fit = self._stride(fit)
        score = self.score(fit)
        while True:
            better = self._step(fit, score)
            if better is None:
                return fit
            fit, score = better, self.score(better)

    def _step(self, fit, score):
        """Return the first improvement among the moves with the largest predicted gain, or None."""
        promise = _Promise(self, fit)
        singles = [promise.additions(), promise.deletions()]
        better = self._first(fit, score, _ranked(singles, 0.0))
        if better is not None:
            return better
        return self._first(fit, score, _ranked([*singles, promise.exchanges()], -_SLACK))

    def _first(self, fit, score, moves):
        """Return the first improvement, or None; cached graphs cost nothing."""
        tried = 0
        for move in moves:
            on = fit.on.copy()
            on[list(move)] ^= True
            known = self.seen.get(on.tobytes())
            if known is not None and known + self.edges.log_prior(on) <= score + _BETTER:
                continue
            new = self.fit(on, fit.theta)
            if self.score(new) > score + _BETTER:
                return new
            tried += 1
            if tried == _TRIED:
                break
        return None

    def _stride(self, fit):
        """Make many moves at once while that helps, no two of them on the same variable."""
        while True:
            promise = _Promise(self, fit)
            gains, moves = _joined([promise.additions(), promise.deletions()])
            touched, on = set(), fit.on.copy()
            for at in np.argsort(-gains, kind="stable"):
                own = set(self.ends[moves[at, 0]].tolist())
                if gains[at] > _BETTER and not own & touched:
                    touched |= own
                    on[moves[at, 0]] ^= True
            if len(touched) <= 2:
                return fit
            new = self.fit(on, fit.theta)
            if self.score(new) <= self.score(fit):
                return fit
            fit = new


class _Promise:
    """Predicted gains of moves from a graph, by the expansion of the evidence around it.

    Moves are pairs of blocks; the second is -1 if only one is added or deleted.
    """

    def __init__(self, climber, fit):
        self.fit, self.climber, self.prior = fit, climber, climber.evidence.prior
        self.odds = climber.edges.log_odds(fit.on)
        self.biases = climber.evidence.biases
        free = np.isfinite(self.odds)
        self.present = np.flatnonzero(fit.on & free)
        self.absent = self._screened(np.flatnonzero(~fit.on & free))
        self.own = self._positions(self.absent)
        self._expand()

    def _positions(self, blocks):
        """Positions of the weights of some blocks, in order."""
        chosen = np.zeros(len(self.prior.blocks), bool)
        chosen[blocks] = True
        return self.biases + np.flatnonzero(chosen[self.climber.evidence.block_of])

    def _screened(self, absent):
        """Keep the absent blocks of steepest slopes."""
        slope = self.fit.gradient[self.biases :] ** 2 / self.climber.noise
        worth = np.bincount(self.climber.evidence.block_of, slope)[absent] + self.odds[absent]
        order = np.argsort(-worth, kind="stable")
        sizes = self.climber.sizes[absent]
        keep = np.cumsum(sizes[order]) <= max(_MOST, sizes.max(initial=0))
        return np.sort(absent[order[keep]])

    def _expand(self):
        fit, own = self.fit, self.own
        both = np.concatenate([fit.at, own])
        order = np.argsort(both)
        place = np.empty(len(both), int)
        place[order] = np.arange(len(both))
        matrix = self.climber.evidence.curvature(fit.theta, both[order])
        here, there = place[: len(fit.at)], place[len(fit.at) :]
        cross = matrix[np.ix_(there, here)]
        self.reach = cross @ fit.covariance
        self.curvature = matrix[np.ix_(there, there)] - self.reach @ cross.T
        self.gradient = fit.gradient[own]

    def additions(self):
        """Gain of each absent block, and the moves."""
        return self._gains(self.gradient, self.curvature, 0.0, -1)

    def deletions(self):
        """Gain of the deletion of each present block, and the moves."""
        gains = np.array([-self._loss(b)[0] for b in self.present])
        return gains, np.column_stack([self.present, np.full(len(gains), -1)])

    def exchanges(self):
        """Gain of the exchange of each weak block for each absent one, and the moves."""
        out = []
        for b in self.present:
            loss, own, pull, inverse = self._loss(b)
            if loss > _WEAK:
                continue
            reach = self.reach[:, own]
            gradient = self.gradient + reach @ pull
            out.append(self._gains(gradient, (reach, inverse), -loss, b))
        return _joined(out)

    def _loss(self, b):
        """Loss of log posterior without a block, and the updates of gradient and curvature."""
        fit = self.fit
        own = np.searchsorted(fit.at, self.biases + self.prior.blocks[b])
        covariance = fit.covariance[own[:, None], own]
        inverse = 1.0 / covariance if len(own) == 1 else np.linalg.inv(covariance)
        centre = fit.theta[fit.at[own]]
        pull = inverse @ centre
        density = 0.5 * _log_det(inverse) - len(own) * _HALF_LOG_2PI - 0.5 * centre @ pull
        return float(fit.touching[own].sum() - density + self.odds[b]), own, pull, inverse

    def _gains(self, gradient, curvature, start, rival):
        """Integrals over absent blocks, grouped by size, and the moves."""
        out = []
        sizes = self.climber.sizes[self.absent]
        for size in np.unique(sizes):
            blocks = self.absent[sizes == size]
            weights = np.array([self.prior.blocks[b] for b in blocks])
            at = np.searchsorted(self.own, self.biases + weights)
            inner = self.curvature[at[:, :, None], at[:, None, :]]
            if rival >= 0:
                reach, inverse = curvature
                inner = inner + np.einsum("bia,ac,bjc->bij", reach[at], inverse, reach[at])
            gain = _integrals(gradient[at], inner, self.prior.scale[weights], self.prior.slab)
            moves = np.column_stack([blocks, np.full(len(blocks), rival)])
            out.append((start + gain + self.odds[blocks], moves))
        return _joined(out)


def _joined(parts):
    """Concatenate gains and moves of several kinds."""
    gains = np.concatenate([np.empty(0), *(gain for gain, _ in parts)])
    return gains, np.concatenate([np.empty((0, 2), int), *(moves for _, moves in parts)])


def _ranked(parts, least):
    """Return the moves with a predicted gain above a bound, best first, as tuples of blocks."""
    gains, moves = _joined(parts)
    order = np.argsort(-gains, kind="stable")
    chosen = moves[order[gains[order] > least]].tolist()
    return [tuple(b for b in move if b >= 0) for move in chosen]


def _log_det(matrix):
    """Log determinant of positive definite matrices, (..., k, k)."""
    if matrix.shape[-1] == 1:
        return np.log(matrix[..., 0, 0])
    return np.linalg.slogdet(matrix)[1]


def _integrals(gradient, curvature, scale, slab):
    """Log of the integrals of slabs times exp(g'w - w'Cw/2), (blocks,)."""
    size = gradient.shape[1]
    diagonal = np.arange(size)
    square = None
    for _ in range(1 if slab == "normal" else 4):
        if square is None:
            spread = 1.0 / (np.maximum(curvature[:, diagonal, diagonal], 0.0) + scale**-2.0)
            square = (spread * gradient) ** 2 + spread
        ridge = slab_precision(slab, square, scale)
        matrix = curvature.copy()
        matrix[:, diagonal, diagonal] += ridge
        inverse = 1.0 / matrix if size == 1 else np.linalg.inv(matrix)
        centre = np.einsum("bij,bj->bi", inverse, gradient)
        square = centre**2 + inverse[:, diagonal, diagonal]
    variance = inverse[:, diagonal, diagonal]
    share = mean_log_slab(slab, centre, variance, scale) + 0.5 * ridge * (centre**2 + variance)
    half = 0.5 * (gradient * centre).sum(axis=1)
    return half + share.sum(axis=1) + size * _HALF_LOG_2PI - 0.5 * _log_det(matrix)


def search_field(
    evidence: FieldEvidence,
    edges: "IndependentEdges | BlockEdges",
    *,
    start: "FieldMode | None" = None,
    kicks: int = 3,
) -> FieldMode:
    """Search for the most probable graph.

    Parameters
    ----------
    evidence : FieldEvidence
    edges : IndependentEdges or BlockEdges
        Prior of the graph, of :mod:`bayesstruct.fields.solvers.edge_priors`.
    start : FieldMode, optional
        Climb from this graph only.
    kicks : int
        Number of climbs from the best graph with a few blocks changed at random.

    Returns
    -------
    FieldMode

    Notes
    -----
    Without `start` the climbs begin at the empty graph and at the graph of all marginal associations.
    If the prior has hidden labels, these and the graph are updated
    in turn, also from the best graph that is found without labels.
    """
    climber = _Climber(evidence, edges)
    starts = _starts(climber) if start is None else [climber.fit(start.on, start.theta)]
    ends, labels = [], edges.labels
    for number, fit in enumerate(starts):
        edges.labels = labels
        if number > 0:
            edges.adapt(fit.on)
        ends.append((*_settled(climber, fit), edges.labels))
    best, _, edges.labels = max(ends, key=lambda end: end[1])
    rng = np.random.default_rng(0)
    for _ in range(kicks):
        best = _kicked(climber, best, rng)
    best, score = _settled(climber, best)
    return FieldMode(best.on, best.theta, score, len(climber.seen))


def _settled(climber, fit):
    """Climb over graphs and hidden labels in turn; return the end and its score."""
    while True:
        fit = climber.climb(fit)
        if not climber.edges.adapt(fit.on):
            return fit, climber.score(fit)


def _starts(climber):
    """Approximations of the starting graphs."""
    evidence, edges = climber.evidence, climber.edges
    theta = np.zeros(evidence.biases + len(evidence.prior.scale))
    certain = edges.log_odds(np.zeros(len(climber.sizes), bool)) == np.inf
    empty = climber.fit(certain, theta)
    gains, moves = _Promise(climber, empty).additions()
    associated = empty.on.copy()
    associated[moves[gains > 0.0, 0]] = True
    out = [empty, climber.fit(associated, empty.theta)]
    if edges.labels is not None and len(edges.labels) > 1:
        climber.edges = edges.independent()
        out.append(climber.climb(empty))
        climber.edges = edges
    return out


def _kicked(climber, best, rng):
    """Climb from a graph near the best one, and return the better end."""
    promise = _Promise(climber, best)
    gains, moves = _joined([promise.additions(), promise.deletions()])
    near = max(6, int(best.on.sum()))
    uncertain = moves[np.argsort(-gains, kind="stable")[:near], 0]
    if len(uncertain) < 3:
        return best
    on = best.on.copy()
    on[rng.choice(uncertain, 3, replace=False)] ^= True
    new = climber.climb(climber.fit(on, best.theta))
    return max(best, new, key=climber.score)
