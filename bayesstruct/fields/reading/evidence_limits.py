"""Bayes factors that a table of states can reach under spike and slab weights."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.evidence_limits import (
    Limits,
    bayes_factor_of,
    least_strength,
    register_limits,
)
from bayesstruct.core.tables.observed import completed_tables, observed_table
from bayesstruct.fields.priors.records import FieldSlab
from bayesstruct.fields.reading.information import ENUMERATED, is_random_field, potentials_of
from bayesstruct.graphs.groups import parameter_draws
from bayesstruct.graphs.posteriors.reading import read_edges
from bayesstruct.graphs.records import CompositeLikelihood

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["field_limits", "profile_information"]

_MOST = 1000  # pairs: the matrix of second derivatives has one row for each
_FLAT = 1e-6  # precision of the biases, whose prior matters little


def field_limits(idata: "xr.DataTree") -> Limits:
    """Limits by the Savage-Dickey ratio, with the curvature of the likelihood at the posterior mean."""
    posterior = read_edges(idata)
    scale = FieldSlab.read(posterior.constants).scale
    table, missing = observed_table(idata)
    information = _information(posterior, table, missing)
    size = scale**2 * information
    nominal = posterior.prior[None]
    if "edge_probability" in posterior.draws:
        (drawn,) = parameter_draws(idata, "edge_probability")
        nominal = drawn.reshape(len(drawn), -1)

    def log_ratio(weight):
        return 0.5 * weight**2 * information * size / (1.0 + size) - 0.5 * np.log1p(size)

    smallest = bayes_factor_of(log_ratio(0.0), nominal, posterior.prior)
    shift = np.log(smallest) - log_ratio(0.0)

    def strength(threshold):
        def log_factor(w):
            return log_ratio(w) + shift

        found = least_strength(log_factor, threshold, 20.0 * scale.max(), len(scale))
        return np.where(np.isnan(smallest), np.nan, found)

    return Limits(
        posterior.source, posterior.target, smallest, strength, "estimated weight", len(table)
    )


def _information(posterior, table, missing):
    """Information about each weight, times the share of the rows in which both columns were observed."""
    from bayesstruct.fields.solvers.likelihoods import likelihood_for

    potentials = potentials_of(posterior)
    middle = posterior.n_draws // 2
    at = divmod(middle, posterior.draws.sizes["draw"])
    codes = completed_tables(table, missing, posterior.draws)(*at).astype(np.int64)
    composite = CompositeLikelihood.read(posterior.constants).composite
    exact = not composite and np.prod(np.array(potentials.states, float)) <= ENUMERATED
    likelihood = likelihood_for("exact" if exact else "pseudo", potentials, codes)
    bias, weight = (
        posterior.draws[name].mean(("chain", "draw")).values.ravel() for name in ("bias", "weight")
    )
    information = profile_information(likelihood, bias, weight, posterior.frequency > 0.5)
    seen = (~missing).astype(float)
    share = seen.T @ seen / len(seen)
    return information * share[posterior.source, posterior.target]


def profile_information(likelihood, bias, weight, present: np.ndarray) -> np.ndarray:
    """Information of a table about each weight alone, when biases and the weights of the present edges are unknown too.

    Parameters
    ----------
    likelihood : ExactLikelihood or PseudoLikelihood
        With one weight for each pair.
    bias, weight : ndarray of float
    present : (pairs,) ndarray of bool

    Returns
    -------
    ndarray, shape (pairs,)
    """
    from bayesstruct.fields.solvers.hessian import hessian_for

    first, pairs = len(bias), len(weight)
    matrix = hessian_for(likelihood)(bias, weight, np.arange(first + pairs))
    matrix[np.arange(first), np.arange(first)] += _FLAT
    out = np.empty(pairs)
    for e in range(pairs):
        others = present.copy()
        others[e] = False
        at = np.concatenate([np.arange(first), first + np.flatnonzero(others)])
        cross = matrix[first + e, at]
        own = matrix[np.ix_(at, at)]
        out[e] = matrix[first + e, first + e] - cross @ np.linalg.solve(own, cross)
    return np.maximum(out, 0.0)


def _is_known(idata) -> bool:
    if not is_random_field(idata) or not FieldSlab.is_in(idata):
        return False
    table = "observed_data" in idata.children and "x" in idata["observed_data"]
    return bool(table) and len(FieldSlab.read(idata).scale) <= _MOST


register_limits(
    "Markov random fields with normal slabs, one weight for each pair and at most 45 columns",
    _is_known,
    field_limits,
)
