r"""Posterior over all graphs of linear structural equations of a few columns, by importance sampling.

.. math::

    p(G \mid x) \propto p(G) \int p(s) \prod_i p(x_i \mid \pi_i, s) \, ds

Each evidence :math:`p(x_i \mid \pi_i)` is the mean weight of draws from a fit
(:mod:`bayesstruct.sem.kernels.proposals`). Where noise may be exactly normal there is one given each kind of noise, and given the share s of
columns with normal noise that of a family is :math:`(1 - s) E_i + s N_i`. If the share is random, the integral of the product, a polynomial of s, is
a sum over points of Gauss-Jacobi quadrature, which is exact. With equal or known variances the scale s (and the shape of a mixture) that all
columns share is drawn first, and given it the evidence of each family is estimated by a few draws: products of independent
estimates without bias have none. Draws are made in batches, whose differences give standard errors (the jackknife).
"""

from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from scipy.special import logsumexp

from bayesstruct.data.arguments import choice
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.networks.exact.problem import NetworkProblem, network_problem
from bayesstruct.networks.kernels.dags import all_dags
from bayesstruct.sem.data import sem_table
from bayesstruct.sem.kernels.errors import mixture_moments
from bayesstruct.sem.kernels.references import (
    at_reference,
    log_shared_prior,
    shared_precision,
)
from bayesstruct.sem.kernels.scores import SemScores
from bayesstruct.sem.kernels.settings import FREE, MIXTURE, sem_settings
from bayesstruct.sem.kernels.shares import share_points

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["SemPosterior", "linear_sem", "sem_posterior"]

_MOST = 5  # columns
_BATCHES = 16
_INNER = 16  # draws of a family given what all columns share
_DF, _WIDER = 5.0, 1.5


@dataclass(frozen=True, eq=False)
class SemPosterior:
    """Posterior over all graphs of linear structural equations.

    Attributes
    ----------
    names : tuple of str
        The d columns.
    graphs : (graphs, d, d) int8 array
        All acyclic graphs; rows are parents.
    probabilities, errors : (graphs,) arrays
        Posterior probabilities and their standard errors.
    log_evidence : float
        Log marginal likelihood of the table in the units of the model, averaged over the (normalised) prior of graphs.
    arc_probabilities, arc_errors : (d, d) DataFrame
        Rows are parents.
    weight_means : (d, d) DataFrame
        Posterior means of coefficients, zero where the arc is absent, in the units of the model.
    normal_probabilities : (d,) Series
        Posterior probabilities that the noise of a column is exactly normal; zero where it may not be.
    normal_share : float
        Posterior mean of the probability of normal noise that columns share; the given one if it is fixed.
    """

    names: tuple[str, ...]
    graphs: np.ndarray
    probabilities: np.ndarray
    errors: np.ndarray
    log_evidence: float
    arc_probabilities: pd.DataFrame
    arc_errors: pd.DataFrame
    weight_means: pd.DataFrame
    normal_probabilities: pd.Series
    normal_share: float

    def __repr__(self) -> str:
        best = self.probabilities.max()
        return f"SemPosterior({', '.join(self.names)}: {len(self.graphs):,} graphs, the most probable one {best:.3g})"


def linear_sem(
    data: "pd.DataFrame | ArrayLike",
    *,
    noise: str = "gaussian",
    normal_probability: float | None = None,
    variances: str = "free",
    known_variances: Any = None,
    prior: str = "spike_slab",
    scale: float | None = None,
    graph_prior: str = "uniform",
    interventions: "pd.DataFrame | ArrayLike | None" = None,
    equivalent_sample_size: float = 1.0,
    draws: int = 16_000,
    random_seed: int | np.random.Generator | None = 0,
    **options,
) -> SemPosterior:
    """Estimate the posterior over all graphs of linear structural equations of up to five columns.

    Parameters
    ----------
    data : DataFrame or (n, d) array_like
        Two to five columns of numbers without missing values.
    noise, normal_probability, variances, known_variances, prior, scale, interventions, equivalent_sample_size
        As of :func:`bayesstruct.models.linear_sem`.
    graph_prior : {"uniform", "edge", "fair"}
        As of :func:`bayesstruct.exact.dag_posterior`, whose options `edge_probability`, `max_parents`, `required`, `forbidden` and
        `tiers` can be given, too.
    draws : int
        Draws of the parameters of each family; with equal or known variances draws of the common scale are a sixteenth of it. With a mixture, whose weights
        these draws have too, errors of probabilities can then be some hundredths with the default: see ``arc_errors``.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    SemPosterior

    Raises
    ------
    TableError
        If the table cannot be used, or has more than five columns or missing values.
    ValueError
        If an option is unknown or out of range.

    Examples
    --------
    .. code-block:: python

        posterior = bs.exact.linear_sem(table, noise="laplace")
        posterior.arc_probabilities.loc["dose", "response"]
    """
    choice("graph_prior", graph_prior, ("uniform", "edge", "fair"))
    known = sem_table(
        data,
        variances=variances,
        known_variances=known_variances,
        interventions=interventions,
        normal=noise == "gaussian",
    )
    table = known.table
    if table.p > _MOST:
        raise TableError(
            f"{table.p} columns have too many graphs to enumerate, at most {_MOST} are served; "
            "sample with bs.models.linear_sem"
        )
    if table.missing.any():
        names = [table.names[j] for j in np.flatnonzero(table.missing.any(axis=0))]
        raise TableError(
            f"{column_list(names)}: values are missing; drop these rows or sample with bs.models.linear_sem"
        )
    settings = sem_settings(
        table.p,
        noise=noise,
        variances=variances,
        prior=prior,
        alpha_mu=equivalent_sample_size,
        scale=scale,
        normal_probability=normal_probability,
    )
    scores = SemScores(
        table.standardized,
        settings,
        interventions=known.was_set if known.was_set.any() else None,
        relative=known.relative,
    )
    problem = network_problem(scores, names=table.names, prior=graph_prior, **options)
    return sem_posterior(problem, draws=draws, rng=np.random.default_rng(random_seed))


def sem_posterior(problem: NetworkProblem, *, draws: int, rng: np.random.Generator) -> SemPosterior:
    """Estimate the posterior over all graphs of a problem.

    Parameters
    ----------
    problem : NetworkProblem
        Its score is a :class:`bayesstruct.sem.kernels.scores.SemScores` of at most five columns.
    draws : int
    rng : numpy.random.Generator

    Returns
    -------
    SemPosterior
    """
    problem = at_reference(problem)
    graphs = all_dags(problem.d)
    parents = _parent_sets(problem.d)
    places = _places(graphs, parents)
    prior = np.array(
        [[problem.prior.local(i, own) for own in parents[i]] for i in range(problem.d)]
    )
    possible = np.isfinite(prior)
    estimate = _free if problem.score.settings.variances == FREE else _shared
    per_batch = max(draws // _BATCHES, 2)
    batches = [
        estimate(problem, parents, possible, places, per_batch, rng) for _ in range(_BATCHES)
    ]
    logs = np.array([log for log, _ in batches])  # (batches, graphs)
    means = np.array([mean for _, mean in batches])
    weights = prior[np.arange(problem.d), places].sum(axis=1)
    weights -= logsumexp(weights)
    combine = _combine_shared
    if estimate is _free:
        combine = partial(_combine_free, *share_points(problem.score.settings, problem.d))
    full = combine(logs, means, places, weights, np.arange(_BATCHES))
    parts = [
        combine(logs, means, places, weights, np.delete(np.arange(_BATCHES), b))
        for b in range(_BATCHES)
    ]
    probabilities = full[0]
    errors = _jackknife(np.array([own[0] for own in parts]))
    arcs = np.einsum("g,gij->ij", probabilities, graphs)
    arc_errors = _jackknife(np.array([np.einsum("g,gij->ij", own[0], graphs) for own in parts]))
    frame = {"index": list(problem.names), "columns": list(problem.names)}
    return SemPosterior(
        problem.names,
        graphs,
        probabilities,
        errors,
        full[1],
        pd.DataFrame(arcs, **frame),
        pd.DataFrame(arc_errors, **frame),
        pd.DataFrame(full[2][:-1], **frame),
        pd.Series(full[2][-1], list(problem.names)),
        full[3],
    )


def _parent_sets(d):
    """Return all parent sets of each column."""
    return [
        [own for k in range(d) for own in combinations([j for j in range(d) if j != i], k)]
        for i in range(d)
    ]


def _places(graphs, parents):
    """Return the number of the parent set of each column in each graph, (graphs, d)."""
    number = [{own: a for a, own in enumerate(sets)} for sets in parents]
    return np.array(
        [
            [number[i][tuple(np.flatnonzero(graph[:, i]))] for i in range(len(graph))]
            for graph in graphs
        ]
    )


def _jackknife(values):
    count = len(values)
    return np.sqrt((count - 1) / count * ((values - values.mean(0)) ** 2).sum(0))


def _weighed(problem, i, own, m, rng, tau, shape):
    """Log evidences of a family given a mixture and given normal noise, (2,), and means by weight of its coefficients, (2, d + 1).

    The last of the means are the probabilities of normal noise given the kind of noise: 0 and 1.
    """
    family = problem.score.family(i, own)
    theta, logs = family.draws(rng, m, tau, shape)
    top, normal = logs.max(), family.is_normal(theta)
    out, mean = np.full(2, -np.inf), np.zeros((2, problem.d + 1))
    for kind, prior in enumerate((1.0 - family.probability, family.probability)):
        weights = np.exp(logs - top) * (normal == kind)
        if weights.sum() > 0.0:
            mean[kind, list(own)] = weights @ theta[:, 1 : len(own) + 1] / weights.sum()
            mean[kind, -1] = kind
            out[kind] = top + np.log(weights.mean() / prior)
    return out, mean


def _families(problem, parents, possible, m, rng, log_scale, shape):
    """Log evidences (d, sets, 2) and means (d, sets, 2, d + 1) of all families, given either kind of noise."""
    d, sets = possible.shape
    logs, means = np.full((d, sets, 2), -np.inf), np.zeros((d, sets, 2, d + 1))
    for i in range(d):
        tau = log_scale + problem.score.log_relative[i]
        for a, own in enumerate(parents[i]):
            if possible[i, a]:
                logs[i, a], means[i, a] = _weighed(problem, i, own, m, rng, tau, shape)
    return logs, means


# --- free variances: families are independent --------------------------------------------------


def _free(problem, parents, possible, places, m, rng):
    return _families(problem, parents, possible, m, rng, 0.0, None)


def _combine_free(points, logs_of_points, logs, means, places, weights, batches):
    """Probabilities, log evidence, means and mean share from some batches."""
    d = logs.shape[1]
    top = logs[batches].max(axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    shares = np.exp(logs[batches] - safe)
    evidence = np.log(shares.mean(axis=0), where=np.isfinite(top), out=np.full(top.shape, -np.inf))
    own = np.einsum("bisk,biskj->iskj", shares, means[batches])
    own /= np.maximum(shares.sum(axis=0), 1e-300)[..., None]
    with np.errstate(divide="ignore"):
        kinds = np.log(np.stack([1.0 - points, points], axis=1))
    by_kind = (evidence + safe) + kinds[:, None, None]  # (points, child, set, kind)
    family = logsumexp(by_kind, axis=-1)
    total = family[:, np.arange(d), places].sum(axis=2) + weights + logs_of_points[:, None]
    constant = logsumexp(total)
    joint = np.exp(total - constant)  # (points, graphs)
    kind = np.exp(by_kind - np.where(np.isfinite(family), family, 0.0)[..., None])
    mean = np.einsum("qisk,iskj->qisj", kind, own)[:, np.arange(d), places]
    found = np.einsum("qg,qgij->ji", joint, mean)  # (parent and normal noise, child)
    return joint.sum(axis=0), float(constant), found, float(joint.sum(axis=1) @ points)


# --- a scale that all columns share ------------------------------------------------------------


def _shared(problem, parents, possible, places, m, rng):
    """Log evidences of all graphs, (graphs,), and means given them, (graphs, d, d + 1)."""
    scores = problem.score
    centre, factor = _shared_proposal(problem, parents, possible)
    d, count = problem.d, max(m // _INNER, 2)
    graphs = len(places)
    high, total, means = np.full(graphs, -np.inf), np.zeros(graphs), np.zeros((graphs, d, d + 1))
    for _ in range(count):
        normal, chi = rng.standard_normal(len(centre)), rng.chisquare(_DF) / _DF
        step = np.linalg.solve(factor.T, normal) / np.sqrt(chi)
        point = centre + step
        log_q = _log_t(factor, step)
        if not (point[1:] > 0.0).all():
            continue
        if len(point) > 1:
            point[0] -= mixture_moments(point[1:])[1]
        log_p = log_shared_prior(scores.settings, point[0], point[1:])
        logs, own = _families(problem, parents, possible, _INNER, rng, point[0], point[1:])
        logs, own = logs[..., 0], own[..., 0, :]  # noise is never exactly normal
        value = logs[np.arange(d), places].sum(axis=1) + log_p - log_q
        fresh = np.maximum(high, value)
        safe = np.where(np.isfinite(fresh), fresh, 0.0)
        old, new = np.exp(high - safe), np.exp(value - safe)
        total = total * old + new
        means = means * old[:, None, None] + new[:, None, None] * own[np.arange(d), places]
        high = fresh
    with np.errstate(divide="ignore"):
        log = np.where(np.isfinite(high), high, 0.0) + np.log(total / count)
    return log, means / np.maximum(total, 1e-300)[:, None, None]


def _shared_proposal(problem, parents, possible):
    """Centre of the common scale and shape in even coordinates, and a factor of less than their precision."""
    scores = problem.score
    local = [
        [scores.family(i, own).score if possible[i, a] else -np.inf for a, own in enumerate(sets)]
        for i, sets in enumerate(parents)
    ]
    families = [scores.family(i, parents[i][int(np.argmax(own))]) for i, own in enumerate(local)]
    mixture = scores.settings.noise == MIXTURE
    centre = np.array([scores.log_scale])
    if mixture:
        centre = np.append(centre + mixture_moments(scores.shape)[1], scores.shape)
    return centre, np.linalg.cholesky(shared_precision(scores, families) / _WIDER)


def _log_t(factor, step):
    from scipy.stats import multivariate_t

    precision = factor @ factor.T
    return multivariate_t(np.zeros(len(step)), np.linalg.inv(precision), df=_DF).logpdf(step)


def _combine_shared(logs, means, places, weights, batches):
    """Probabilities, log evidence, means and share of normal noise, which there is not, from some batches."""
    evidence = logsumexp(logs[batches], axis=0) - np.log(len(batches))
    shares = np.exp(logs[batches] - np.where(np.isfinite(evidence), evidence, 0.0))
    own = np.einsum("bg,bgij->gij", shares, means[batches]) / len(batches)
    total = evidence + weights
    constant = logsumexp(total)
    probabilities = np.exp(total - constant)
    return probabilities, float(constant), np.einsum("g,gij->ji", probabilities, own), 0.0
