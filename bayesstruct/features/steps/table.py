"""The table of a linear Gaussian model, whose missing values a step draws."""

import numpy as np

__all__ = ["FeatureTable"]


class FeatureTable:
    """The table at a point, completed by its missing values, less the baseline.

    Parameters
    ----------
    part : LinearFeatures
        See `bayesstruct.features.recognition.linear`.
    observed : ndarray
        The observed values: the table, or those that are not missing one after another.
    """

    def __init__(self, part, observed):
        self.unobserved = None if part.unobserved is None else part.unobserved.name
        self.missing = part.missing
        if part.missing is None:
            self.x = np.asarray(observed, float)
        else:
            self.x = np.empty(part.missing.shape)
            self.x[~part.missing] = observed

    def residuals(self, point, baseline):
        """Return the completed table less the baseline, (n, d)."""
        if self.unobserved is not None:
            self.x[self.missing] = point[self.unobserved]
        return np.ascontiguousarray(self.x - baseline)

    def with_gaps(self, residuals):
        """Return the residuals with NaN where the table has a missing value."""
        out = np.array(residuals)
        if self.missing is not None:
            out[self.missing] = np.nan
        return out

    def draw_missing(self, rng, point, mean, noise):
        """Draw the missing values given the mean of the table, into the point."""
        if self.unobserved is not None:
            mean = np.broadcast_to(mean, self.x.shape)[self.missing]
            point[self.unobserved] = mean + noise * rng.standard_normal(len(mean))
