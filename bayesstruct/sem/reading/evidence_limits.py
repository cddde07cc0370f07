r"""Bayes factors of an arc that a table can reach in linear structural equations with normal noise.

A column y with one parent z, both standardised, n rows, with correlation r in the table: the weight is Normal(0, v^2 s^2) given the noise scale s,
whose square is inverse gamma with shape a (a half more with a parent) and rate b. Integrated out,

.. math:: p(y \mid z) \propto \frac{b^a}{\Gamma(a)} \Gamma(a + \tfrac n2) (b + \tfrac S2)^{-a - n / 2} (1 + v^2 (n - 1))^{-1/2}

with :math:`S = (n - 1) (1 - r^2 (n - 1) / (n - 1 + v^{-2}))`; without the parent v = 0. The intercept is the same in both.
"""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.evidence_limits import Limits, refuse_limits, register_limits
from bayesstruct.graphs.posteriors.reading import read_dags
from bayesstruct.networks.reading.effects import is_network
from bayesstruct.networks.reading.evidence_limits import limits_of_numbers
from bayesstruct.sem.kernels.settings import FREE, SPIKE_SLAB
from bayesstruct.sem.priors.records import SemNoise, SemPriors

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["sem_limits"]

_KIND = "linear structural equations"


def sem_limits(idata: "xr.DataTree") -> Limits:
    """Limits for pairs of columns without other parents."""
    posterior = read_dags(idata)
    own = SemPriors.read(posterior.constants)

    def log_factor(r, n):
        return _log_evidence(own, r, n, True) - _log_evidence(own, r, n, False)

    return limits_of_numbers(idata, posterior, log_factor)


def _log_evidence(own, r, n, parent):
    """Log marginal likelihood of a standardised column but for what does not depend on its parent."""
    from scipy.special import gammaln

    information = np.maximum(n - 1, 0)
    a, v = own.shape + 0.5 * parent, own.scale**2 * parent
    explained = r**2 * v * information / (1.0 + v * information)
    rest = own.rate + 0.5 * information * (1.0 - explained)
    out = a * np.log(own.rate) - gammaln(a) + gammaln(a + 0.5 * n)
    return out - (a + 0.5 * n) * np.log(rest) - 0.5 * np.log1p(v * information)


def _is_sem(idata) -> bool:
    return is_network(idata) and SemNoise.is_in(idata)


def _is_known(idata) -> bool:
    """Whether noise and weights are normal, and variances free."""
    if not _is_sem(idata) or not SemPriors.is_in(idata):
        return False
    own = SemPriors.read(idata)
    normal = SemNoise.read(idata).law.name == "gaussian"
    return normal and int(own.variances) == FREE and int(own.prior) == SPIKE_SLAB


register_limits(
    _KIND + " with normal noise, free variances and normal weights", _is_known, sem_limits
)
refuse_limits(
    _KIND + " of other noise, variances or weights",
    _is_sem,
    "those of an arc depend on the shape of the noise and on the direction, and not only on the number of rows and a correlation. What normal "
    "noise could show: bs.evidence_limits of a result of linear_sem(table) or bayesian_network(table)",
)
