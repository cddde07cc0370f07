"""Constants of the priors of mixtures of regressions, which predictions of new rows need."""

from dataclasses import dataclass, fields

import numpy as np

from bayesstruct.core.recorded import Recorded, constant

__all__ = ["MixturePrior", "ResponseName"]


@dataclass(frozen=True)
class MixturePrior(Recorded):
    """Parameters of the priors, in the units of the table.

    Attributes
    ----------
    location : (d,) ndarray of float
        Prior means of the means of columns.
    strength : (d,) ndarray of float
        Number of rows that the prior of a mean counts as.
    shape : float
        Shape of the inverse-gamma priors of the variances of columns.
    rate : (d,) ndarray of float
        Their rates.
    start : (d + 1,) ndarray of float
        Prior means of the coefficients, the intercept first.
    weight : (d + 1,) ndarray of float
        Diagonal of Lambda, the prior precision of the coefficients.
    noise_shape, noise_rate : float, optional
        Of the inverse-gamma prior of the variances of a normal response.
    alpha : float, optional
        Mass of the process, if it is given.
    """

    location: np.ndarray = constant("covariate_location", "node")
    strength: np.ndarray = constant("covariate_strength", "node")
    shape: float = constant("covariate_shape")
    rate: np.ndarray = constant("covariate_rate", "node")
    start: np.ndarray = constant("coefficient_location", "term")
    weight: np.ndarray = constant("coefficient_strength", "term")
    noise_shape: float | None = constant("noise_shape", optional=True)
    noise_rate: float | None = constant("noise_rate", optional=True)
    alpha: float | None = constant("alpha", optional=True)

    @property
    def noise_mean(self) -> float:
        """Prior mean of the variance of a normal response; NaN if the response is another."""
        a, b = self.noise_shape, self.noise_rate
        if a is None or b is None:
            return np.nan
        return b / (a - 1.0) if a > 1.0 else np.inf

    def as_data(self) -> dict:
        """Register the parameters as data of the model in context.

        The distributions of the model depend on them, unlike on constants that are only recorded.

        Returns
        -------
        dict
            Tensors by the names of the fields that are not None.
        """
        import pymc as pm

        given = [one for one in fields(self) if getattr(self, one.name) is not None]
        return {
            one.name: pm.Data(
                one.metadata["name"], getattr(self, one.name), dims=one.metadata["dims"]
            )
            for one in given
        }


@dataclass(frozen=True)
class ResponseName(Recorded):
    """Name of the response, the coordinate of this constant.

    Attributes
    ----------
    known : (1,) ndarray of int, optional
    """

    known: np.ndarray | None = constant("response_name", "response", optional=True)

    @classmethod
    def label(cls, constants) -> str:
        """Return the name that a result records in its group ``constant_data``."""
        known = cls.read(constants).known is not None
        return str(constants["response"].values[0]) if known else "response"
