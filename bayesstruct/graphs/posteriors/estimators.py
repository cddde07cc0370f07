"""How probabilities of edges and arcs are estimated from draws, and Bayes factors from these."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.odds import slab_log_odds
from bayesstruct.graphs.mixing import looked_at, series_ess, typical_ess
from bayesstruct.graphs.records import EdgeProducts, EdgeScales

if TYPE_CHECKING:
    import xarray as xr

    from bayesstruct.graphs.posteriors.arcs import ArcPosterior
    from bayesstruct.graphs.posteriors.base import GraphPosterior
    from bayesstruct.graphs.posteriors.edges import EdgePosterior

__all__ = [
    "LARGEST",
    "RESOLUTION",
    "ControlVariate",
    "Frequency",
    "Product",
    "RaoBlackwell",
    "RecordedAverage",
    "bayes_factors_of",
    "reported_error",
    "reported_probabilities",
]

#: Bayes factors are reported up to 10 to this power: larger ones depend on the shape of the prior.
LARGEST = 6
_MAX_LOG = 700.0  # so that exp stays finite
# Steps report numbers in single precision, which is 6e-8 near one.
_LEAST = 1e-6
#: Averages of conditional probabilities are rounded beyond this distance from 0 and 1.
RESOLUTION = 1e-12


@dataclass(frozen=True, eq=False)
class Frequency:
    """Probability as the share of the draws with a line."""

    posterior: "GraphPosterior"
    name = "frequency"

    def probabilities(self) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of presence and of absence, each accurate near zero."""
        present = self.posterior.frequency
        return present, 1 - present

    def ess(self) -> np.ndarray:
        """Effective sample size of the numbers whose mean is the probability."""
        return self.posterior.indicator_ess()

    def floor(self, ess: np.ndarray | None = None) -> float | np.ndarray:
        """Smallest probability that these draws can tell from zero, if need be of each line.

        Parameters
        ----------
        ess : ndarray, optional
            `ess`, if it is known.
        """
        ess = self.ess() if ess is None else ess
        return 1 / (typical_ess(ess, self.posterior.n_draws) + 1)


@dataclass(frozen=True, eq=False)
class ControlVariate(Frequency):
    """Probability as the mean of a number that the step reported of each edge."""

    posterior: "EdgePosterior"
    inclusion: np.ndarray
    name = "control variate"

    def probabilities(self) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of presence and of absence."""
        _ = self.posterior.indicators  # raises if they are not 0 and 1
        return reported_probabilities(self.inclusion)

    def ess(self) -> np.ndarray:
        """Effective sample size of the numbers that the step reported; NaN for the hardly visited of very many edges."""
        return self._ess

    @cached_property
    def _ess(self) -> np.ndarray:
        looked = looked_at(self.posterior.frequency)
        ess = np.full(self.posterior.n_lines, np.nan)
        ess[looked] = series_ess(self.inclusion[..., looked])
        return ess

    def floor(self, ess: np.ndarray | None = None) -> np.ndarray:
        """Monte Carlo standard error of each probability, at least 1e-6."""
        return reported_error(self.inclusion, self.ess() if ess is None else ess)


def reported_probabilities(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of presence and of absence, from numbers that a step reported, (chain, draw, line)."""
    present = np.clip(values.mean(axis=(0, 1), dtype=float), 0, 1)
    return present, 1 - present


def reported_error(values: np.ndarray, ess: np.ndarray) -> np.ndarray:
    """Monte Carlo standard error of the mean of numbers that a step reported, at least 1e-6.

    Parameters
    ----------
    values : ndarray, shape (chain, draw, line)
    ess : ndarray, shape (line,)
        Their effective sample sizes; NaN where unknown.
    """
    deviation = values.std(axis=(0, 1), dtype=float)
    return np.maximum(deviation / np.sqrt(np.where(np.isnan(ess), 1, ess)), _LEAST)


@dataclass(frozen=True, eq=False)
class RaoBlackwell(Frequency):
    """Probability as the mean of the conditional probabilities given the precision matrix."""

    posterior: "EdgePosterior"
    name = "rao-blackwell"

    @staticmethod
    def serves(posterior: "EdgePosterior") -> bool:
        """Whether the result holds all that the conditional probability of an edge needs."""
        if "precision" not in posterior.draws or not EdgeScales.is_in(posterior.constants):
            return False
        nominal = EdgeScales.read(posterior.constants).nominal is not None
        return nominal or "edge_probability" in posterior.draws

    def probabilities(self) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of presence and of absence."""
        from scipy.special import expit, logit

        posterior = self.posterior
        _ = posterior.indicators  # raises if they are not 0 and 1
        scales = EdgeScales.read(posterior.constants)
        precision = posterior.draws["precision"].transpose("chain", "draw", "node", "node_")
        present, absent = [], []
        for chain in range(posterior.n_chains):  # one at a time: p = 200 would not fit otherwise
            k = precision.isel(chain=chain).values[:, posterior.source, posterior.target]
            prior = logit(self._nominal(chain, scales.nominal))
            log_odds = slab_log_odds(k, prior, scales.spike_scale, scales.slab_scale)
            present.append(expit(log_odds).mean(axis=0))
            absent.append(expit(-log_odds).mean(axis=0))
        return np.mean(present, axis=0), np.mean(absent, axis=0)

    def floor(self, ess: np.ndarray | None = None) -> float:
        """Smallest positive number: averages of probabilities need no other limit."""
        return float(np.finfo(float).tiny)

    def _nominal(self, chain: int, nominal: np.ndarray | None) -> np.ndarray:
        """Nominal edge probabilities, broadcastable against (draw, edge)."""
        n_edges = self.posterior.n_lines
        drawn = self.posterior.draws.get("edge_probability")
        fixed = np.broadcast_to(0.5 if nominal is None else nominal.astype(float), n_edges)
        if drawn is None:
            return fixed
        shares = drawn.isel(chain=chain).transpose("draw", ...).values
        if shares.ndim == 2:  # one for each edge
            return shares
        return np.where((fixed > 0) & (fixed < 1), shares[:, None], fixed)


@dataclass(frozen=True, eq=False)
class Product(Frequency):
    """Probability of an edge as a product of probabilities of arcs (`symmetrize`)."""

    posterior: "EdgePosterior"
    name = "product"

    @staticmethod
    def serves(posterior: "EdgePosterior") -> bool:
        """Whether the result holds such products."""
        return EdgeProducts.is_in(posterior.constants)

    def probabilities(self) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of presence and of absence."""
        products = EdgeProducts.read(self.posterior.constants)
        return products.present, products.absent

    def floor(self, ess: np.ndarray | None = None) -> float | np.ndarray:
        """Resolution of the probabilities of arcs, or that of the draws if these were counted."""
        resolution = EdgeProducts.read(self.posterior.constants).resolution
        return super().floor(ess) if resolution is None else float(resolution)


@dataclass(frozen=True, eq=False)
class RecordedAverage(Frequency):
    """Probability of an arc as the mean of conditional probabilities that the sampler averaged."""

    posterior: "ArcPosterior"
    average: "xr.DataArray"
    name = "rao-blackwell"

    def probabilities(self) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of presence and of absence."""
        present = np.clip(self.average.mean("chain").values, 0.0, 1.0)
        return present, 1 - present

    def floor(self, ess: np.ndarray | None = None) -> float:
        """Distance from 0 and 1 beyond which averages are rounded."""
        return RESOLUTION


def bayes_factors_of(
    present: np.ndarray, absent: np.ndarray, prior: np.ndarray, floor: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bayes factors from probabilities, and which of them are bounds.

    Parameters
    ----------
    present, absent, prior : ndarray, shape (n_lines,)
        Posterior probabilities of presence and absence, prior probability of presence.
    floor : float or ndarray
        Smallest probability that the draws can tell from zero.

    Returns
    -------
    factor : ndarray of float
        From 1e-6 to 1e6; NaN where the prior probability is 0 or 1.
    bound : ndarray of bool
        Where the draws cannot tell the probability from 0 or 1, or the value is beyond these limits.
    """
    log_odds, bound = _clipped_log_odds(present, absent, floor)
    tested = (prior > 0) & (prior < 1)
    log_factor = np.full(len(prior), np.nan)
    log_factor[tested] = log_odds[tested] - np.log(prior[tested]) + np.log1p(-prior[tested])
    factor = np.exp(np.clip(log_factor, -_MAX_LOG, _MAX_LOG))
    shown = np.clip(factor, 10.0**-LARGEST, 10.0**LARGEST)
    return shown, tested & (bound | (shown != factor))


def _clipped_log_odds(present, absent, floor) -> tuple[np.ndarray, np.ndarray]:
    bound = (present < floor) | (absent < floor)
    ceiling = 1 - floor  # rounds to 1 for the tiny floor, as it should
    return np.log(np.clip(present, floor, ceiling)) - np.log(np.clip(absent, floor, ceiling)), bound
