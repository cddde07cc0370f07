"""Bayes factors of an arc between two columns that a table can reach in a Bayesian network."""

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

__all__ = ["log_count_factor", "network_limits"]


def network_limits(idata: "xr.DataTree") -> Limits:
    """Limits for pairs of columns without other parents."""
    posterior = read_dags(idata)
    one = np.flatnonzero(posterior.source < posterior.target)
    source, target = posterior.source[one], posterior.target[one]
    recorded = NetworkScore.read(posterior.constants)
    score = SCORES[int(recorded.kind)]
    of = {"bge": _of_numbers, "gaussian": _of_numbers, "mixed": _of_both}.get(score, _of_states)
    log_smallest, strength, rows = of(idata, posterior, recorded, source, target)
    there, back = posterior.prior[one], posterior.prior[posterior.position[source, target]]
    tested = (there < 1) & (back < 1) & (there + back > 0)
    smallest = np.where(tested, np.exp(log_smallest), np.nan)

    def of_tested(threshold):
        return np.where(tested, strength(threshold), np.nan)

    return Limits(source, target, smallest, of_tested, "partial correlation", rows)


def _of_numbers(idata, posterior, recorded, source, target):
    if "rows" in posterior.constants:
        n = int(posterior.constants["rows"].item())
    else:
        n = len(observed_table(idata)[0])
    size = float(recorded.size)

    def log_factor(r):
        if SCORES[int(recorded.kind)] == "gaussian":
            return -0.5 * np.log(n) - 0.5 * n * np.log1p(-(np.asarray(r) ** 2))
        scale = size / (size + 1.0) * size  # of the prior's precision matrix
        ends = np.full((2, 1), 1.0 + (n - 1) / scale)
        return log_wishart_factor(r, n, *ends, np.array([size + 2.0]))[0]

    def strength(threshold):
        own = least_strength(lambda r: np.array([log_factor(r[0])]), threshold, 0.999, 1)
        return np.full(len(source), own[0])

    return np.full(len(source), log_factor(0.0)), strength, n


def _of_states(idata, posterior, recorded, source, target):
    states = NetworkStates.read(posterior.constants).count.astype(int)
    table, missing = observed_table(idata)
    shares = []
    for k, x, gap in zip(states, table.T, missing.T, strict=True):
        shares.append(np.bincount(x[~gap].astype(int), minlength=k) / max(1, (~gap).sum()))
    name, size, n = SCORES[int(recorded.kind)], float(recorded.size), len(table)
    there, back = (
        [
            log_count_factor(shares[i], shares[j], n, name, size)
            for i, j in zip(parent, child, strict=True)
        ]
        for parent, child in ((source, target), (target, source))
    )
    logs = _either(posterior, source, target, there, back)
    return logs, lambda threshold: np.full(len(source), np.nan), n


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
    logs = _either(posterior, source, target, there, back)
    return logs, lambda threshold: np.full(len(source), np.nan), len(table)


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
