"""Bayes factors that a table of numbers can reach under the priors of Gaussian graphical models."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.evidence_limits import (
    Limits,
    bayes_factor_of,
    least_strength,
    log_wishart_factor,
    register_limits,
)
from bayesstruct.core.readers import variables
from bayesstruct.graphs.groups import CONSTANTS, parameter_draws
from bayesstruct.graphs.posteriors.reading import read_edges
from bayesstruct.graphs.records import EdgeScales, OrderedColumns, is_nodewise
from bayesstruct.precision.exact.pairs import log_laplace_odds, log_spike_slab_factor
from bayesstruct.precision.priors.records import LaplaceRates, WishartPrior

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["graph_limits", "laplace_limits", "spike_slab_limits", "wishart_limits"]

_SIZES = 12  # of which limits are computed, between which they are interpolated
_STRENGTHS = np.linspace(0.0, 0.98, 80) ** 1.5  # partial correlations
_DRAWS = 200  # over which numbers of neighbours are averaged
_MOST = 1000  # pairs of which absent edges count as nearly zero, and beyond as zero
_MEASURE = "partial correlation"


def spike_slab_limits(idata: "xr.DataTree") -> Limits:
    """Limits under the spike and slab, whose likelihood is that of residuals with the posterior mean of their precision."""
    posterior, rows = read_edges(idata), _rows(idata)
    scales = EdgeScales.read(posterior.constants)
    options = {
        "spike_scale": scales.spike_scale,
        "slab_scale": scales.slab_scale,
        "rate": scales.diagonal_rate,
    }
    nominal = _nominal(idata, scales.nominal)

    def of_sizes(r, sizes):
        return log_spike_slab_factor(r, rows - 1, sizes, **options)

    spreads = scales.spike_scale, scales.slab_scale
    return _interpolated(idata, posterior, rows, of_sizes, nominal, spreads)


def laplace_limits(idata: "xr.DataTree") -> Limits:
    """Limits under the Laplace prior, under which an edge is a partial correlation that is not negligible."""
    posterior, rows = read_edges(idata), _rows(idata)
    rates = LaplaceRates.read(posterior.constants)
    options = {
        "rate": rates.rate,
        "diagonal_rate": rates.diagonal_rate,
        "negligible": rates.negligible,
    }

    def of_sizes(r, sizes):
        return log_laplace_odds(r, rows - 1, sizes, **options)

    # These are odds, which contain those of the prior
    return _interpolated(idata, posterior, rows, of_sizes, np.array([[0.5]]))


def _interpolated(idata, posterior, rows, of_sizes, nominal, spreads=None) -> Limits:
    """Limits of pairs whose ratios depend on the product of two precisions, at some values of which they are computed."""
    precision = _precision(idata)
    share = np.ones(posterior.n_lines)
    if spreads is not None:
        share = _free_share(precision, posterior, rows, *spreads)
    own = (0.5 * (rows - 1) + 1.0) / (np.sqrt(_ends(precision, posterior).prod(axis=0)) * share)
    grid = np.geomspace(own.min(), own.max(), _SIZES) if np.ptp(own) > 0 else own[:1]

    def log_ratios(r):
        ratios = of_sizes(np.reshape(r, (-1, 1)), grid)
        return np.array([np.interp(np.log(own), np.log(grid), row) for row in ratios])

    smallest = bayes_factor_of(log_ratios(0.0)[0], nominal, posterior.prior)

    def strength(threshold):
        ratios = log_ratios(_STRENGTHS)
        ratios = np.maximum.accumulate(ratios + np.log(smallest) - ratios[0])
        columns = [np.interp(np.log(threshold), one, _STRENGTHS, right=np.nan) for one in ratios.T]
        return np.where(np.isnan(smallest), np.nan, share * np.array(columns))

    return Limits(posterior.source, posterior.target, smallest, strength, _MEASURE, rows)


def wishart_limits(idata: "xr.DataTree") -> Limits:
    """Limits under the G-Wishart prior, as if the common neighbours of a pair were all joined to each other."""
    posterior, rows = read_edges(idata), _rows(idata)
    shape = WishartPrior.read(posterior.constants).degrees_of_freedom + _common_neighbours(
        posterior
    )
    precision = _precision(idata)
    share = _free_share(precision, posterior, rows, 0.0, 1.0)
    ends = np.maximum((shape + rows - 1) / (_ends(precision, posterior) * share), 1.0)
    nominal = _nominal(idata, posterior.prior)

    def log_factor(r):
        return log_wishart_factor(r, rows - 1, *ends, shape)

    smallest = bayes_factor_of(log_factor(0.0), nominal, posterior.prior)
    shift = np.log(smallest) - log_factor(0.0)

    def strength(threshold):
        own = least_strength(lambda r: log_factor(r) + shift, threshold, 0.999, len(smallest))
        return np.where(np.isnan(smallest), np.nan, share * own)

    return Limits(posterior.source, posterior.target, smallest, strength, _MEASURE, rows)


def graph_limits(idata: "xr.DataTree") -> Limits:
    """Limits of graphs alone: of regressions of both ends on their neighbours in the graph of the probable edges."""
    posterior, rows = read_edges(idata), _rows(idata)
    source, target = posterior.source, posterior.target
    correlation = idata["observed_data"].to_dataset()["correlation"].values
    scatter = np.eye(len(correlation)) + (rows - 1) * correlation
    joined = np.zeros(correlation.shape, bool)
    joined[source, target] = joined[target, source] = posterior.probability > 0.5
    own, others = _residuals(scatter, joined)
    number = np.zeros(correlation.shape)
    number[source, target] = number[target, source] = posterior.probability

    def log_factor(r):
        terms = []
        for i, j in ((source, target), (target, source)):
            shape = 3.0 + number[i].sum(axis=1) - number[i, j]
            terms.append(log_wishart_factor(r, rows - 1, own[i, j], others[i, j], shape))
        return 0.5 * (terms[0] + terms[1])

    smallest = bayes_factor_of(log_factor(0.0), _nominal(idata, posterior.prior), posterior.prior)
    shift = np.log(smallest) - log_factor(0.0)

    def strength(threshold):
        found = least_strength(lambda r: log_factor(r) + shift, threshold, 0.999, len(smallest))
        return np.where(np.isnan(smallest), np.nan, found)

    return Limits(source, target, smallest, strength, _MEASURE, rows)


def _residuals(scatter, joined) -> tuple[np.ndarray, np.ndarray]:
    """Scatter of column i, and of j, given the neighbours of i but j, (p, p) each."""
    p = len(scatter)
    own, others = np.empty((p, p)), np.empty((p, p))
    for i in range(p):
        own[i], others[i] = _given(scatter, i, np.flatnonzero(joined[i]))
        for j in np.flatnonzero(joined[i]):
            rest = np.flatnonzero(joined[i] & (np.arange(p) != j))
            own_of, others_of = _given(scatter, i, rest)
            own[i, j], others[i, j] = own_of, others_of[j]
    return own, others


def _given(scatter, i, rest):
    """Scatter of column i, and of every column, given some others."""
    cross = scatter[rest]
    left = np.diagonal(scatter) - (cross * np.linalg.solve(scatter[np.ix_(rest, rest)], cross)).sum(
        axis=0
    )
    return left[i], left


def _nominal(idata, otherwise):
    """Probabilities of the edges before a matrix is restricted to be positive definite, (draws or 1, pairs or 1)."""
    if "edge_probability" not in variables(idata):
        return np.asarray(otherwise, float)[None]
    (drawn,) = parameter_draws(idata, "edge_probability")
    drawn = drawn[np.linspace(0, len(drawn) - 1, _DRAWS).astype(int)]
    return drawn.reshape(len(drawn), -1)


def _rows(idata) -> int:
    if "rows" in variables(idata, CONSTANTS):
        return int(idata[CONSTANTS]["rows"].item())
    return int(idata["observed_data"].to_dataset().sizes["observation"])


def _precision(idata) -> np.ndarray:
    """Posterior mean of the precision matrix, in units of the columns where the latent values have none."""
    (precision,) = parameter_draws(idata, "precision")
    if not OrderedColumns.is_in(idata):
        return precision.mean(axis=0)
    kept = precision[np.linspace(0, len(precision) - 1, _DRAWS).astype(int)]
    unit = np.sqrt(np.diagonal(np.linalg.inv(kept), axis1=1, axis2=2))
    return (kept * unit[:, :, None] * unit[:, None, :]).mean(axis=0)


def _ends(precision, posterior) -> np.ndarray:
    """Precisions of the two columns of each pair given all others, (2, pairs)."""
    return np.diagonal(precision)[np.array([posterior.source, posterior.target])]


def _free_share(precision, posterior, rows: int, absent: float, present: float) -> np.ndarray:
    r"""Return the standard error of the element of each pair, as a share of what it is if all elements are unknown.

    Elements of other pairs that have no edge are known to be zero, or nearly, and tell something about the pair.

    Parameters
    ----------
    precision : (p, p) ndarray of float
    posterior : EdgePosterior
    rows : int
    absent, present : float
        Prior standard deviations of elements without and with an edge.

    Returns
    -------
    ndarray, shape (pairs,)

    Notes
    -----
    With covariance matrix :math:`\Sigma` one row has the information :math:`\Sigma_{ik} \Sigma_{jl} + \Sigma_{il} \Sigma_{jk}`
    about the elements (i, j) and (k, l). If all are unknown the variance of an element is :math:`K_{ii} K_{jj} + K_{ij}^2`, of which the second
    part belongs to a dependence that is not zero.
    """
    joined = posterior.frequency > 0.5
    some = np.ones_like(joined) if absent and len(joined) <= _MOST else joined
    if some.sum() > 2 * _MOST:  # so many edges that nearly all elements are unknown
        return np.ones(len(joined))
    p, covariance = len(precision), np.linalg.inv(precision)
    pairs = np.array([posterior.source, posterior.target])
    unknown = np.concatenate([np.tile(np.arange(p), (2, 1)), pairs[:, some]], axis=1)

    def information(first, other):
        (i, j), (k, l) = first[:, :, None], other
        return covariance[i, k] * covariance[j, l] + covariance[i, l] * covariance[j, k]

    own, at = information(unknown, unknown), p + np.arange(some.sum())
    prior = 1.0 / (rows * np.where(joined[some], present, absent) ** 2)
    own[at, at] += prior
    inverse = np.linalg.inv(own)
    left = np.empty(len(joined))
    # An element that is among the unknown ones has no prior when it is asked about
    left[some] = 1.0 / inverse[at, at] - prior
    i, j = pairs
    alone = covariance[i, i] * covariance[j, j] + covariance[i, j] ** 2
    for block in np.array_split(np.flatnonzero(~some), 1 + len(joined) // _MOST):
        cross = information(pairs[:, block], unknown)
        left[block] = alone[block] - ((cross @ inverse) * cross).sum(axis=1)
    variance = np.maximum(1.0 / left - precision[i, j] ** 2, 1.0 / alone)
    return np.minimum(np.sqrt(variance / _ends(precision, posterior).prod(axis=0)), 1.0)


def _common_neighbours(posterior) -> np.ndarray:
    """Return the expected number of columns that are joined to both ends of each pair."""
    edges = posterior.indicators.reshape(posterior.n_draws, -1)
    kept = edges[np.unique(np.linspace(0, len(edges) - 1, _DRAWS).astype(int))]
    p = len(posterior.variables)
    total = np.zeros((p, p))
    for edge in kept:
        joined = np.zeros((p, p))
        joined[posterior.source, posterior.target] = joined[posterior.target, posterior.source] = (
            edge
        )
        total += joined @ joined
    return total[posterior.source, posterior.target] / len(kept)


def _is(record: type) -> Callable[["xr.DataTree"], bool]:
    """Recognise results of one precision matrix with such a prior, whose rows are normal."""

    def recognise(idata):
        names, constants = variables(idata), variables(idata, CONSTANTS)
        others = {"degrees", "group_edge_prior", "shared_spike_scale"}
        known = {"edge", "precision"} <= names and not others & (names | constants)
        return known and record.is_in(idata) and _has_rows(idata, constants)

    return recognise


def _has_rows(idata, constants) -> bool:
    observed = "observed_data" in idata.children
    return "rows" in constants or (observed and "observation" in idata["observed_data"].dims)


def _is_alone(idata) -> bool:
    known = "edge" in variables(idata) and is_nodewise(idata) and "rows" in idata[CONSTANTS]
    return known and "correlation" in variables(idata, "observed_data")


register_limits("graphs alone of tables without missing values", _is_alone, graph_limits)
register_limits("spike-and-slab models of numbers", _is(EdgeScales), spike_slab_limits)
register_limits("Laplace priors of numbers", _is(LaplaceRates), laplace_limits)
register_limits("G-Wishart models of numbers", _is(WishartPrior), wishart_limits)
