"""Scatter matrices of the tables around a precision matrix, as a Gibbs step needs them."""

import numpy as np


class TableRows:
    """The rows of one table on the standardised scale, complete ones as sufficient statistics.

    Parameters
    ----------
    values : (n, p) array
        The table in its units; missing cells hold anything.
    location, scale : (p,) array
    missing : (n, p) array of bool or None
    """

    def __init__(self, values, location, scale, missing=None):
        self.location, self.scale = location, scale
        z = np.atleast_2d((values - location) / scale)
        n = z.shape[0]
        mask = np.zeros(z.shape, bool) if missing is None else np.asarray(missing) > 0
        gaps = mask.any(axis=1)
        self.n = n
        self.gaps, self.mask = gaps, np.ascontiguousarray(mask[gaps])
        self.complete = np.ascontiguousarray(z[~gaps])
        self.incomplete = np.ascontiguousarray(np.where(self.mask, 0.0, z[gaps]))
        self.total = self.complete.sum(axis=0)
        self.cross = self.complete.T @ self.complete
        where = np.nonzero(self.mask)
        self.cell_location, self.cell_scale = location[where[1]], scale[where[1]]

    def fill(self, cells):
        """Put values of the missing cells, in the units of the table, into the rows."""
        self.incomplete[self.mask] = (cells - self.cell_location) / self.cell_scale

    def cells(self):
        """Missing cells in the units of the table, in row-major order."""
        return self.incomplete[self.mask] * self.cell_scale + self.cell_location

    def sum(self):
        """Sum of all rows, (p,)."""
        return self.total + self.incomplete.sum(axis=0)

    def residuals(self, mean):
        """Incomplete rows less their means."""
        return self.incomplete - (mean if mean.ndim == 1 else mean[self.gaps])

    def set_residuals(self, residuals, mean):
        """Take incomplete rows back from their residuals."""
        # Observed cells are left alone: rounding would make them depend on the past of the chain.
        rows = residuals + (mean if mean.ndim == 1 else mean[self.gaps])
        self.incomplete[self.mask] = rows[self.mask]

    def scatter(self, mean):
        """Sum over rows of the outer products of their residuals, (p, p).

        With one mean for all rows the cost does not grow with the complete ones.
        """
        part = self.residuals(mean)
        if mean.ndim == 1:
            shift = np.outer(self.total, mean)
            complete = self.cross - shift - shift.T
            complete += len(self.complete) * np.outer(mean, mean)
        else:
            rows = self.complete - mean[~self.gaps]
            complete = rows.T @ rows
        return complete + part.T @ part
