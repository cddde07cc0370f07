"""Posterior mode of a model, by the solver that its structure prior has."""

import logging
import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.core.recognition import NotRecognized, is_op
from bayesstruct.data.arguments import number, whole_number
from bayesstruct.fields.modes.searched import searched_field, searched_mode
from bayesstruct.fields.modes.shrunk import field_mode, field_of, refuse_gaps, refuse_spikes
from bayesstruct.neighbourhoods.modes import lasso_of, neighbourhood_mode
from bayesstruct.networks.modes.complete import (
    network_mode,
    recognized_network,
    scored_network_mode,
)
from bayesstruct.networks.modes.incomplete import incomplete_network_mode
from bayesstruct.networks.priors.dag import OrderDAGRV
from bayesstruct.networks.steps.complete import network_of
from bayesstruct.networks.steps.incomplete import incomplete_network_of
from bayesstruct.networks.steps.scored import scored_network_of
from bayesstruct.precision.priors.precision import GraphicalSpikeSlabRV
from bayesstruct.precision.recognition import parts_of
from bayesstruct.precision.steps.gibbs import PartGibbs, pack_cholesky, unpack_cholesky

__all__ = ["find_MAP"]

_log = logging.getLogger("bayesstruct")


def find_MAP(model=None, *, tol=1e-9, max_rounds=500):
    r"""Find the posterior mode with the solvers of this package.

    For a precision matrix with a prior of :mod:`bayesstruct.distributions` it is the mode of

    .. math:: p(K, \mu, \theta \mid x_{\mathrm{obs}})

    on the natural scale, indicators and missing cells summed out: the graphical lasso for the
    Laplace prior, conditional maximisation for the spike and slab, inside an EM loop over the
    missing cells.

    For :func:`bayesstruct.models.gaussian_neighbourhoods` and
    :func:`~bayesstruct.models.ising_neighbourhoods` with the Laplace prior it is the mode of each
    regression, the lasso, its intercept and its noise variance maximised in alternation with the
    coefficients.

    For :func:`bayesstruct.models.ising` and :func:`~bayesstruct.models.pairwise_mrf` with a Laplace
    or group-Laplace prior it is that of :func:`bayesstruct.solvers.pairwise_mrf`, inside an EM loop
    over the completions of rows with missing cells. These have their law in the field under either likelihood: with
    the pseudo-likelihood the result is the mode for completions weighted as they are at that same mode.

    With the spike-and-slab prior of these two models it is the graph G of the greatest posterior
    probability that a search finds, of :math:`\log p(G) + \log p(x \mid G)` where biases and
    weights are integrated out by Laplace's method (:mod:`bayesstruct.fields.solvers.evidence`) and
    so are unknown edge probabilities, with the mode of biases, weights and edge probabilities given
    that graph; the hidden labels of :class:`bayesstruct.StochasticBlock` are moved in turn with the
    graph. If cells are missing, graph and weights of the completions are climbed in turn. With the exact
    likelihood each step goes through all joint states: seconds for 15 binary columns, many minutes for 20.

    For :func:`bayesstruct.models.bayesian_network` it is the graph of the greatest posterior
    probability, parameters integrated out, that a search over orders with restarts finds
    (:func:`bayesstruct.solvers.optimal_dag` proves it for up to 25 variables), with the means of
    the parameters given that graph; if cells are missing, the one where structural EM ends: graph
    and law of the missing cells are climbed in turn on a lower bound of the log posterior
    probability of the graph (:mod:`bayesstruct.networks.modes.incomplete`), and ``x_missing`` are the
    most probable states.

    ``edge`` of a precision matrix is the more probable value of each indicator given the mode, and
    ``x_missing`` the expected cells, or the most probable states. Other continuous variables, such
    as regression coefficients or a random rate, are climbed in alternation with the matrix by
    SciPy's L-BFGS. A model without a matrix that a solver knows is handed to ``pm.find_MAP``, with
    a note in the log.

    Parameters
    ----------
    model : pymc.Model, optional
        The model on the context stack unless given.
    tol : float
        Stop when the largest relative change of the mode is below it, which the solvers are then
        asked for too.
    max_rounds : int
        Bound on the rounds of alternation.

    Returns
    -------
    dict
        Values of the free variables and the deterministics by name, as from ``pm.find_MAP``;
        can be given to ``pm.sample(initvals=...)``.

    Raises
    ------
    ValueError
        For coefficients that a spike-and-slab prior of this package makes exactly zero, whose
        posterior has no mode; for a Markov random field with such weights in a larger model or with
        other priors of the biases, the scales or the edge probabilities, with the reason; for one
        with missing cells in a larger model, or with more than 4,096 completions of one row or 2^18
        in all; and for a Bayesian network with the prior ``"order"`` or with more than 4,096
        completions, by states, of one row.

    Warns
    -----
    ConvergenceWarning
        If the rounds or a solver stop before the tolerance.

    Notes
    -----
    The spike-and-slab posterior of a precision matrix has several modes; this is the one reached from the identity
    matrix, each coordinate taking the better of its spike and slab maxima on the way. A Gaussian
    regression with Laplace coefficients and random noise variance can have two modes (Park and
    Casella 2008, section 4); this is the one reached from the variance of the response.

    The graphs of a random field are searched by adding, deleting and exchanging edges, from the
    empty graph, from that of all marginal associations, and from the best one with a few edges
    changed (:mod:`bayesstruct.fields.solvers.search`). That no single change of the graph at the end
    is better is likely, as those that promise most were tried, and not proved. Where many edges are
    uncertain the posterior is spread over very many graphs: the best one may never be visited by a
    chain, and has fewer edges than most. :func:`bayesstruct.median_graph` of a chain is then the
    better summary.

    The *joint* density of a graph and its weights is not what is maximised: densities of different
    numbers of weights do not compare.

    Examples
    --------
    .. code-block:: python

        with bs.models.gaussian_graphical(df):
            mode = bs.find_MAP()
            idata = pm.sample(initvals=mode)
    """
    model, tol = pm.modelcontext(model), number("tol", tol, above=0)
    max_rounds = whole_number("max_rounds", max_rounds, 1)
    if (lasso := lasso_of(model)) is not None:
        point, change = neighbourhood_mode(model, lasso, tol, max_rounds)
        _warn_unless(change <= tol, max_rounds, change)
        return _natural(model, point)
    if (field := field_of(model)) is not None:
        point, change = field_mode(model, field, tol, max_rounds)
        _warn_unless(change <= tol, max_rounds, change)
        return _natural(model, point)
    if (field := searched_field(model)) is not None:
        point, change = searched_mode(model, field, tol, max_rounds)
        _warn_unless(change <= tol, max_rounds, change)
        return _natural(model, point)
    refuse_spikes(model)
    refuse_gaps(model)
    if (point := _network_mode(model, tol, max_rounds)) is not None:
        return _natural(model, point)
    parts = parts_of(model)
    known = [part for part in parts.values() if not isinstance(part, NotRecognized)]
    if not known:
        _log.warning("find_MAP: %s", _why_not(model, parts))
        return _pymc_mode(model)
    point = model.initial_point()
    modes = [PartMode(model, part, point) for part in known]
    others = _other_variables(model, known)
    climb = _Climb(model, known, others) if others else None
    change, rounds = np.inf, 0
    while change > tol and rounds < max_rounds:
        before = {name: np.array(value) for name, value in point.items()}
        for mode in modes:
            mode.update(point, tol)
        if climb is not None:
            climb.update(point)
        change = max(_relative_change(before[name], point[name]) for name in point)
        rounds += 1
        if climb is None and not any(mode.alternates for mode in modes):
            break
    _warn_unless(change <= tol or rounds < max_rounds, rounds, change)
    return _natural(model, point)


def _network_mode(model, tol, max_rounds):
    """Best graph of a Bayesian network with what goes with it, or None for other models."""
    if (network := recognized_network(model, network_of)) is not None:
        return network_mode(model, network)
    if (network := recognized_network(model, scored_network_of)) is not None:
        return scored_network_mode(model, network)
    _refuse_orders(model)
    if (network := recognized_network(model, incomplete_network_of)) is None:
        return None
    point, converged = incomplete_network_mode(model, network, tol, max_rounds)
    _warn_unless(converged, max_rounds, tol)
    return point


def _refuse_orders(model):
    """Refuse graphs whose prior counts topological orders, which no search here knows."""
    if graphs := [rv.name for rv in model.free_RVs if is_op(rv, OrderDAGRV)]:
        raise ValueError(
            f"the prior 'order' of {graphs[0]!r} counts the topological orders of a graph, which is no sum over "
            "parent sets, so that no search finds its mode: use the prior 'uniform', 'edge' or 'fair', or read "
            "the draws of pm.sample with bs.map_graph"
        )


def _why_not(model, parts) -> str:
    """Say why no solver of this package serves a model, and what is done instead."""
    reasons = [
        f"the solver for the precision matrix {rv.name!r} does not fit this model, because {reason}"
        for rv, reason in parts.items()
    ]
    nothing = "the model has no structure whose mode a solver of bayesstruct knows"
    return (
        f"{'; '.join(reasons) or nothing}. Using pm.find_MAP, a general optimiser: slower, on the "
        "continuous variables only, and without a check that its end is a mode."
    )


class PartMode(PartGibbs):
    """Mode of one recognised part: a round of expectation and maximisation at a time."""

    def __init__(self, model, part, point):
        super().__init__(model, part, set(part.variables), point)
        self.spike_slab = is_op(part.precision, GraphicalSpikeSlabRV)
        self.last = None
        cells = any(t.missing_rv is not None for t in part.tables)
        self.alternates = cells or part.share is not None or part.mean is not None

    def update(self, point, tol):
        """Raise the posterior density once, in place in the point."""
        if self.tables is None or self.latent:
            self.load(point)
        name = self.names["precision"]
        precision = self.last
        if precision is None:
            precision, _ = unpack_cholesky(point[name], self.p)
        spread = self._expect_cells(precision, point)
        if self.mean_prior is not None:
            point[self.names["mean"]] = self._best_mean(precision, point)
        means = [np.asarray(m, float) for m in self.means(point)]
        scatter, n = self._scatter(means)
        values = self.prior_values(point)
        scale = float(values[self.scale_at])
        scaled = (scatter + spread) * scale
        solve = self._solve_spike_slab if self.spike_slab else self._solve_laplace
        self.last = scale * solve(scaled, n, values, point, tol, precision / scale)
        point[name] = pack_cholesky(self.last)

    def _expect_cells(self, precision, point):
        """Fill in the expected missing cells; return the sum of their conditional covariances."""
        from bayesstruct.precision.kernels.missing_cells import expect_missing

        spread = np.zeros((self.p, self.p))
        means = [np.asarray(m, float) for m in self.means(point)]
        for table, name, mean in zip(self.tables, self.cells, means, strict=True):
            if name is not None:
                residuals = table.residuals(mean)
                expect_missing(precision, residuals, table.mask, spread)
                table.set_residuals(residuals, mean)
                point[name] = table.cells()
        return spread

    def _best_mean(self, precision, point):
        centre, sd = (np.broadcast_to(v, (self.p,)) for v in self.mean_prior(point))
        n = sum(table.n for table in self.tables)
        total = sum(table.sum() for table in self.tables)
        return np.linalg.solve(
            n * precision + np.diag(1.0 / sd**2), precision @ total + centre / sd**2
        )

    def _solve_laplace(self, scatter, n, values, point, tol, start):
        from bayesstruct.precision.solvers.graphical_lasso import graphical_lasso

        rates, diagonal_rate, _ = values
        penalty = rates / n
        penalty = 0.5 * (penalty + penalty.T)
        np.fill_diagonal(penalty, 2.0 * float(diagonal_rate) / n)
        # The gap is of second order in the error of the matrix.
        return graphical_lasso(scatter / n, penalty, tol=max(tol**2, 1e-22), init=start).precision

    def _solve_spike_slab(self, scatter, n, values, point, tol, start):
        from bayesstruct.precision.kernels.prior import log_odds_matrix
        from bayesstruct.precision.solvers.graphical_spike_slab import graphical_spike_slab

        _, spike, slab, rate, *_ = values
        first = self.last is None
        solution = graphical_spike_slab(
            scatter,
            n,
            log_odds_matrix(self.prior._probability(values, point)),
            spike_scale=float(spike),
            slab_scale=float(slab),
            diagonal_rate=float(rate),
            init=None if first else start,
            tol=tol,
        )
        inclusion = solution.inclusion[np.triu_indices(self.p, 1)]
        if self.prior.edge is not None:
            point[self.prior.edge] = (inclusion > 0.5).astype("int64")
        if self.prior.share is not None:
            self._best_share(inclusion, values, point)
        return solution.precision

    def _best_share(self, inclusion, values, point):
        """Maximise the expected log density of the common edge probability."""
        fixed = values[0][np.triu_indices(self.p, 1)]
        free = (fixed > 0) & (fixed < 1)
        alpha, beta = float(values[5]), float(values[6])
        present = inclusion[free].sum() + alpha - 1.0
        absent = free.sum() - inclusion[free].sum() + beta - 1.0
        share = np.clip(present / (present + absent), 1e-12, 1 - 1e-12)
        point[self.prior.share] = np.asarray(np.log(share) - np.log1p(-share))


class _Climb:
    """Maximisation over the variables that no solver knows, the others held fixed."""

    def __init__(self, model, parts, others):
        summed = {v for part in parts for v in (part.edge, *(t.missing_rv for t in part.tables))}
        rest = [v for v in model.basic_RVs if v not in summed] + list(model.potentials)
        self.values = [model.rvs_to_values[v] for v in others]
        logp = model.logp(vars=rest, jacobian=False)
        gradient = pt.concatenate([g.ravel() for g in pt.grad(logp, self.values)])
        self.function = model.compile_fn(
            [-logp, -gradient], inputs=model.value_vars, on_unused_input="ignore"
        )

    def update(self, point):
        """Run L-BFGS from the point, in place."""
        from scipy.optimize import minimize

        names = [v.name for v in self.values]
        shapes = [np.shape(point[name]) for name in names]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

        def place(vector):
            pieces = np.split(vector, ends[:-1])
            for name, piece, shape in zip(names, pieces, shapes, strict=True):
                point[name] = piece.reshape(shape)

        def objective(vector):
            place(vector)
            value, gradient = self.function(point)
            return float(value), np.asarray(gradient)

        start = np.concatenate([np.ravel(point[name]) for name in names])
        result = minimize(
            objective, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10}
        )
        place(result.x)


def _other_variables(model, parts) -> list:
    """Continuous free variables outside the parts; discrete ones stay where they start."""
    known = {v for part in parts for v in part.variables}
    others = [v for v in model.free_RVs if v not in known]
    fixed = [v.name for v in others if v.dtype.startswith(("int", "bool", "uint"))]
    if fixed:
        _log.warning(
            "find_MAP: %s: discrete and not the edges of a known prior, so the initial value is kept.",
            ", ".join(map(repr, fixed)),
        )
    return [v for v in others if v.name not in fixed]


def _relative_change(before, after):
    before, after = np.asarray(before, float), np.asarray(after, float)
    if before.size == 0:
        return 0.0
    return float(np.max(np.abs(after - before)) / (1.0 + np.max(np.abs(after))))


def _warn_unless(converged, rounds, change):
    from bayesstruct.core.solution import ConvergenceWarning

    if not converged:
        warnings.warn(
            f"find_MAP stopped after {rounds} rounds with a relative change of {change:.2g}; raise "
            "max_rounds or tol",
            ConvergenceWarning,
            stacklevel=3,
        )


def _natural(model, point) -> dict:
    """Free variables and deterministics by name, at a point in value space."""
    outputs = [*model.free_RVs, *model.deterministics]
    # One evaluation: compiling machine code for it would take longer than the mode.
    evaluate = model.compile_fn(
        model.replace_rvs_by_values(outputs),
        inputs=model.value_vars,
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    values = evaluate(point)
    return {v.name: np.asarray(value) for v, value in zip(outputs, values, strict=True)}


def _pymc_mode(model) -> dict:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return pm.find_MAP(model=model, progressbar=False)
