"""Bayes factors of an arc between two columns that a table can reach in a Bayesian network."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.evidence_limits import (
    Limits,
    least_strength,
    log_wishart_factor,
    register_limits,
)
from bayesstruct.core.tables.observed import observed_table
from bayesstruct.graphs.posteriors.reading import read_dags
from bayesstruct.networks.priors.records import SCORES, NetworkScore, NetworkStates, SetMask
from bayesstruct.networks.reading.effects import is_network
from bayesstruct.networks.reading.mixed import mixed_coding
from bayesstruct.networks.reading.mixed_limits import log_mixed_factor

if TYPE_CHECKING:
    import xarray as xr

    from bayesstruct.graphs.posteriors.arcs import DagPosterior

__all__ = ["limits_of_numbers", "log_count_factor", "network_limits"]


def network_limits(idata: "xr.DataTree") -> Limits:
    """Limits for pairs of columns without other parents."""
    posterior = read_dags(idata)
    recorded = NetworkScore.read(posterior.constants)
    score, size = SCORES[int(recorded.kind)], float(recorded.size)
    if score in ("bge", "gaussian"):
        factor = _bge_factor(size) if score == "bge" else _bic_factor
        return limits_of_numbers(idata, posterior, factor)
    of = _of_both if score == "mixed" else _of_states
    source, target = _pairs(posterior)
    logs = of(idata, posterior, recorded, source, target)

    def strength(threshold):
        return np.full(len(source), np.nan)

    return _tested(posterior, logs, strength, len(observed_table(idata)[0]))


def limits_of_numbers(
    idata: "xr.DataTree",
    posterior: "DagPosterior",
    log_factor: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> Limits:
    """Limits for pairs of columns of numbers without other parents.

    Parameters
    ----------
    idata : xarray.DataTree
    posterior : DagPosterior
        Of that result.
    log_factor : callable
        Of correlations and numbers of rows, both (pairs,): logarithms of the Bayes factors of an arc.
    """
    source, target = _pairs(posterior)
    if "rows" in posterior.constants:  # of a covariance matrix
        n = int(posterior.constants["rows"].item())
        there = back = np.full(len(source), n)
    else:
        n = len(observed_table(idata)[0])
        there, back = _pair_rows(idata, posterior)

    def either(r):
        return _either(posterior, source, target, log_factor(r, there), log_factor(r, back))

    def strength(threshold):
        return least_strength(either, threshold, 0.999, len(source))

    return _tested(posterior, either(np.zeros(len(source))), strength, n)


def _pairs(posterior):
    """Positions of the columns of each pair, (pairs,) each."""
    one = posterior.source < posterior.target
    return posterior.source[one], posterior.target[one]


def _tested(posterior, log_smallest, strength, rows):
    """Limits, NaN for pairs whose arcs are required or both forbidden."""
    source, target = _pairs(posterior)
    at = posterior.position
    there, back = posterior.prior[at[source, target]], posterior.prior[at[target, source]]
    tested = (there < 1) & (back < 1) & (there + back > 0)
    smallest = np.where(tested, np.exp(log_smallest), np.nan)

    def of_tested(threshold):
        return np.where(tested, strength(threshold), np.nan)

    return Limits(source, target, smallest, of_tested, "partial correlation", rows)


def _pair_rows(idata, posterior):
    """Rows that say something about an arc, (pairs,), of each direction: both values are there, and the child was not set."""
    source, target = _pairs(posterior)
    table, missing = observed_table(idata)
    known = (~missing).astype(int)
    free = known * SetMask.free(posterior.constants, table.shape)
    rows = known.T @ free  # of the parent, of the child
    return rows[source, target], rows[target, source]


def _bic_factor(r, n):
    n = np.maximum(n, 1)
    return -0.5 * np.log(n) - 0.5 * n * np.log1p(-(r**2))


def _bge_factor(size):
    """Bayes factors under a Wishart distribution, of equivalent sample size `size`."""
    scale = size / (size + 1.0) * size  # of the prior's precision matrix

    def log_factor(r, n):
        ends = 1.0 + np.maximum(n - 1, 0) / scale
        return log_wishart_factor(r, n, ends, ends, np.full(len(n), size + 2.0))

    return log_factor


def _of_states(idata, posterior, recorded, source, target):
    states = NetworkStates.read(posterior.constants).count.astype(int)
    table, missing = observed_table(idata)
    shares = []
    for k, x, gap in zip(states, table.T, missing.T, strict=True):
        shares.append(np.bincount(x[~gap].astype(int), minlength=k) / max(1, (~gap).sum()))
    name, size = SCORES[int(recorded.kind)], float(recorded.size)
    there, back = (
        [
            log_count_factor(shares[i], shares[j], int(n), name, size)
            for i, j, n in zip(parent, child, rows, strict=True)
        ]
        for parent, child, rows in zip(
            (source, target), (target, source), _pair_rows(idata, posterior), strict=True
        )
    )
    return _either(posterior, source, target, there, back)


def _either(posterior, source, target, there, back):
    """Logarithms of Bayes factors of an arc either way, from those of each."""
    at = posterior.position
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # one of the arcs, or both, may be forbidden
        weights = np.log([posterior.prior[at[source, target]], posterior.prior[at[target, source]]])
        return np.logaddexp(weights[0] + there, weights[1] + back) - np.logaddexp(*weights)


def _of_both(idata, posterior, recorded, source, target):
    coding = mixed_coding(posterior)
    layout = coding.layout
    table, missing = observed_table(idata)
    x = (np.where(missing, 0.0, table) - coding.location) / coding.scale
    free, known = SetMask.free(posterior.constants, table.shape), ~missing
    degrees = np.full(layout.d, np.inf)
    for i, family in enumerate(layout.families):
        if family == "student":
            degrees[i] = float(posterior.draws["parameter"].isel(term=layout.extras[i][1]).mean())
    size = float(recorded.size)
    there, back = (
        np.array(
            [
                log_mixed_factor(
                    layout, x[free[:, i] & known[:, i] & known[:, j]], j, i, size, degrees[i]
                )
                for j, i in zip(parent, child, strict=True)
            ]
        )
        for parent, child in ((source, target), (target, source))
    )
    return _either(posterior, source, target, there, back)


def log_count_factor(
    parent: np.ndarray, child: np.ndarray, n: int, score: str, size: float
) -> float:
    """Logarithm of the Bayes factor of an arc between two columns of states that are independent in the table.

    Parameters
    ----------
    parent, child : (states,) ndarray of float
        Shares of the states.
    n : int
        Rows.
    score : str
    size : float
        See `NetworkScore`.
    """
    q, r = len(parent), len(child)
    if score in ("multinomial", "logistic"):
        n = max(n, 1)
        freedom = (q - 1) * (r - 1) if score == "multinomial" else 1
        return -0.5 * freedom * np.log(n)
    cells = (size / (q * r), size / r) if score == "bdeu" else (size, size)
    return _log_dirichlet(n * np.outer(parent, child), cells[0]) - _log_dirichlet(
        n * child[None], cells[1]
    )


def _log_dirichlet(counts, weight):
    """Log marginal likelihood of rows of counts with equal Dirichlet weights."""
    from scipy.special import gammaln

    total, r = counts.sum(axis=1), counts.shape[1]
    rows = gammaln(r * weight) - gammaln(r * weight + total)
    return float(rows.sum() + (gammaln(weight + counts) - gammaln(weight)).sum())


def _is_known(idata) -> bool:
    return is_network(idata) and NetworkScore.is_in(idata)


register_limits("Bayesian networks", _is_known, network_limits)
