"""Best graph of linear structural equations, and the means of their parameters given it."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.modes import Mode, ModeSolver, register_mode
from bayesstruct.core.recognition import NotRecognized, is_op
from bayesstruct.networks.priors.dag import DAGRV
from bayesstruct.sem.kernels.errors import BASE
from bayesstruct.sem.kernels.shares import mean_share
from bayesstruct.sem.recognition import LinearEquations, equations_of, sem_problem
from bayesstruct.sem.steps.points import Points
from bayesstruct.sparse.modes import SpikeAndSlabRefusal

if TYPE_CHECKING:
    from pymc import Model

    from bayesstruct.sem.kernels.chain import SemState

__all__ = ["LinearSemMode", "mean_parameters"]

_SEED, _CLIMBS, _DRAWS = 20170, 5, 1000


@register_mode(after=SpikeAndSlabRefusal)
class LinearSemMode(ModeSolver):
    """Best graph of linear structural equations.

    The graph of the greatest *approximate* posterior probability that a search over orders with restarts finds: evidences of
    normal noise with normal weights are exact, others are Laplace approximations, so that another graph of nearly the same
    probability may be better. With it the means of the parameters given that graph, by importance sampling (geometric means of
    the local scales of a horseshoe); with equal or known variances given the best common scale, and where noise may be exactly normal given
    which columns have normal noise. If their share is random, the graph is the best one given its mean, which is among the parameters.
    """

    def recognise(self, model):
        """Return the equations, or None; raise if values are missing."""
        graphs = [rv for rv in model.free_RVs if is_op(rv, DAGRV)]
        if len(graphs) != 1:
            return None
        try:
            equations = equations_of(model, graphs[0])
        except NotRecognized:
            return None
        if equations.missing.any():
            raise ValueError(
                f"values of {equations.rows.name!r} are missing, with which no search finds the best graph of linear "
                "structural equations: drop their rows, or sample (pm.sample()) and read bs.map_graph(idata)"
            )
        return equations

    def solve(self, model: "Model", part: LinearEquations, tol: float, max_rounds: int) -> Mode:
        """Search."""
        from bayesstruct.networks.kernels.order_search import best_graph
        from bayesstruct.sem.kernels.candidates import sem_tables
        from bayesstruct.sem.kernels.references import at_reference

        problem, rng = at_reference(sem_problem(part)), np.random.default_rng(_SEED)
        graph = best_graph(sem_tables(problem), rng, climbs=_CLIMBS * problem.d)[0]
        point, points = dict(model.initial_point()), Points(part)
        points.write(mean_parameters(rng, points, problem.score, graph), point)
        return Mode(point)


def mean_parameters(rng, points: Points, scores, graph):
    """Means of the parameters given a graph and the more probable noise of each column, as the state of a chain.

    Parameters
    ----------
    rng : numpy.random.Generator
    points : Points
    scores : SemScores
    graph : (d, d) array
    """
    from bayesstruct.sem.steps.arc_chain import ArcState

    sets, weights, normal = [], [], []
    families = [scores.family(i, np.flatnonzero(column)) for i, column in enumerate(graph.T)]
    share = scores.settings.normal_probability
    if scores.settings.share_is_random:
        share = mean_share(families, scores.settings)
        families = [family.at(share) for family in families]
    for i, family in enumerate(families):
        tau = scores.log_scale + scores.log_relative[i]
        theta, logs = family.draws(rng, _DRAWS, tau, scores.shape)
        weight, kind = np.exp(logs - logs.max()), family.is_normal(theta)
        normal.append(bool(weight[kind].sum() > 0.5 * weight.sum()))  # the more probable noise
        sets.append(theta)
        weights.append(np.where(kind == normal[-1], weight, 0.0))
    total: SemState | None = None
    shares = [w / w.sum() for w in weights]
    for m in range(_DRAWS):
        arcs = ArcState(np.array(graph, np.int8), [theta[m] for theta in sets])
        state = points.sem_state(rng, arcs)
        total = _added(total, state, np.array([share[m] for share in shares]))
    best = total
    assert best is not None  # there are draws
    if any(normal):
        best.shape[np.array(normal)] = BASE  # the prior mean of weights without a meaning
    return replace(
        best,
        dag=np.array(graph, np.int8),
        local_scale=np.exp(best.local_scale),
        normal=np.array(normal),
        share=share,
    )


def _added(total, state, share):
    """Add the parameters of a state times the share of each column; local scales as logarithms."""
    own = replace(
        state,
        intercept=share * state.intercept,
        weight=share * state.weight,
        noise_scale=share * state.noise_scale,
        shape=share[:, None] * state.shape,
        local_scale=share * np.log(state.local_scale),
    )
    if total is None:
        return own
    names = "intercept", "weight", "noise_scale", "shape", "local_scale"
    return replace(own, **{name: getattr(total, name) + getattr(own, name) for name in names})
