"""Empty values of rows of linear structural equations whose noise is not normal."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.tables.codings import ColumnUnits
from bayesstruct.core.tables.predictions import (
    fill,
    incomplete_rows,
    normal_mixture,
    number_table,
    register_prediction,
)
from bayesstruct.data.coding import NumberCoding, row_labels
from bayesstruct.graphs.posteriors.reading import read_dags
from bayesstruct.networks.reading.effects import (
    checked_setting,
    flat_draws,
    is_network,
    standard_setting,
    weight_matrices,
)
from bayesstruct.networks.reading.extrapolation import warn_of_extrapolation
from bayesstruct.sem.kernels.settings import NOISES
from bayesstruct.sem.priors.noise import noise_law
from bayesstruct.sem.priors.records import SemNoise
from bayesstruct.sem.reading.noise import has_other_noise, shape_draws

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["SemRows", "sem_rows"]

_DRAWS = 1000  # that are used
_CANDIDATES = 100  # of the values of a row, for each draw
_SWEEPS = 10  # of its latent variables afterwards
_SEED = 20170  # a prediction is the same each time


@dataclass(frozen=True, eq=False)
class SemRows:
    """Distributions of a standardised row, one for each draw.

    Attributes
    ----------
    coding : NumberCoding
    noise : int
        Code of the noise.
    params : tuple of ndarray
        Intercepts (draws, d), coefficients (draws, d, d), scales (draws, d) and shape parameters (draws, d, k).
    known : dict
        Columns that were set, and their standardised values.
    """

    coding: NumberCoding
    noise: int
    params: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    known: dict[str, float]

    def predict(self, data: Any, prob: float) -> "pd.DataFrame":
        """Mean, standard deviation and interval of each empty value; see `bayesstruct.predict`.

        They are those of mixtures of normal distributions given draws of what is latent.
        """
        table = self.coding.read(data, optional=[*self.known])
        labels = row_labels(data, table.n)
        z = fill(table.standardized, table.names, self.known)
        free = ~np.isin(table.names, list(self.known))
        rng, found = np.random.default_rng(_SEED), []
        for row, missing in incomplete_rows(np.isnan(z)):
            mean, deviation = self._conditional(rng, z[row], free)
            for j in missing:
                location, scale = table.location[j], table.scale[j]
                moments = location + scale * mean[:, j], scale * deviation[:, j]
                found.append((labels[row], table.names[j], *normal_mixture(*moments, prob)))
        return number_table(found)

    def _conditional(self, rng, row, free):
        """Means and standard deviations of the values given latent variables, (draws kept, d)."""
        from bayesstruct.sem.kernels.missing_cells import draw_latent, noise_of_rows, normal_cells

        *params, shape = self.params
        draws = len(params[0])
        missing, free = np.tile(np.isnan(row), (draws, 1)), np.tile(free, (draws, 1))
        z, means, deviations = self._start(rng, row, missing, free), [], []
        for _ in range(_SWEEPS):
            latent = draw_latent(rng, self.noise, noise_of_rows(*params, z), shape)
            mean, block = normal_cells(*latent, *params, free, z, missing)
            covariance = np.linalg.inv(block)
            z = np.where(missing, mean + _spread(rng, covariance, 1)[0], z)
            means.append(mean)
            deviations.append(np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)))
        return np.concatenate(means), np.concatenate(deviations)

    def _start(self, rng, row, missing, free):
        """Values of each draw: one of some from a normal distribution, chosen by their density."""
        from bayesstruct.sem.kernels.missing_cells import log_noise, noise_of_rows, normal_cells

        *params, shape = self.params
        z = np.tile(np.nan_to_num(row), (*missing.shape[:1], 1))
        centre, block = normal_cells(*self._moments, *params, free, z, missing)
        spread = _spread(rng, np.linalg.inv(block), _CANDIDATES)
        candidates = np.where(missing, centre + spread, z)
        square = np.einsum("mnd,nde,mne->mn", np.where(missing, spread, 0.0), block, spread)
        logs = np.where(
            free, log_noise(self.noise, noise_of_rows(*params, candidates), shape), 0.0
        ).sum(axis=-1)
        logs = logs + 0.5 * square + rng.gumbel(size=logs.shape)
        return candidates[np.argmax(logs, axis=0), np.arange(len(missing))]

    @property
    def _moments(self):
        from bayesstruct.sem.kernels.errors import BASE

        shape = self.params[-1]
        normal = shape.shape[-1] > len(BASE)
        return noise_law(NOISES[self.noise], normal=normal).moments(shape)


def _spread(rng, covariance, m):
    """Draws with mean zero, (m, draws, d)."""
    factor = np.linalg.cholesky(covariance)
    noise = rng.standard_normal((m, *covariance.shape[:2]))
    return (factor @ noise[..., None])[..., 0]


def sem_rows(idata: "xr.DataTree", setting: dict | None = None) -> SemRows:
    """Return the distribution of a row in each draw of linear structural equations.

    Parameters
    ----------
    idata : xarray.DataTree
    setting : dict, optional
        As in :func:`bayesstruct.do`.
    """
    posterior = read_dags(idata)
    names = posterior.variables
    coding = ColumnUnits.read(posterior.constants).coding(names)
    setting = {} if setting is None else checked_setting(setting, names)
    recorded = SemNoise.read(posterior.constants)
    shape = shape_draws(posterior)
    mean, variance = recorded.law.moments(shape)
    scales = np.sqrt(flat_draws(posterior, "noise_variance") / variance)
    intercept = flat_draws(posterior, "intercept") - scales * mean
    params = intercept, weight_matrices(posterior), scales, shape
    keep = np.unique(np.linspace(0, len(scales) - 1, _DRAWS).astype(int))
    known = standard_setting(setting, names, coding)
    warn_of_extrapolation(idata, setting, coding)
    return SemRows(coding, int(recorded.kind), tuple(v[keep] for v in params), known)


def _is_known(idata) -> bool:
    return is_network(idata) and has_other_noise(idata)


register_prediction("linear structural equations", _is_known, sem_rows, "setting")
