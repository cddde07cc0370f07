"""Rows of the tables around a precision matrix, as sufficient statistics where they are complete."""

import numpy as np

__all__ = ["StudentRows", "TableRows", "TableScatter", "WeightedRows"]


class TableRows:
    """The rows of one table on the standardised scale, complete ones as sufficient statistics.

    Parameters
    ----------
    values : (n, p) ndarray
        The table in its units; missing values hold anything.
    location, scale : (p,) ndarray
    missing : (n, p) ndarray of bool or None
    """

    def __init__(
        self,
        values: np.ndarray,
        location: np.ndarray,
        scale: np.ndarray,
        missing: np.ndarray | None = None,
    ):
        self.location, self.scale = location, scale
        z = np.atleast_2d((values - location) / scale)
        n = z.shape[0]
        mask = np.zeros(z.shape, bool) if missing is None else np.asarray(missing) > 0
        gaps = self._apart(mask)
        self.n = n
        self.gaps, self.mask = gaps, np.ascontiguousarray(mask[gaps])
        self.complete = np.ascontiguousarray(z[~gaps])
        self.incomplete = np.ascontiguousarray(np.where(self.mask, 0.0, z[gaps]))
        self.n_complete = len(self.complete)
        self.total = self.complete.sum(axis=0)
        self.cross = self.complete.T @ self.complete
        columns = np.nonzero(self.mask)[1]
        self.missing_location, self.missing_scale = location[columns], scale[columns]

    def _apart(self, mask):
        """Tell which rows are not complete and normal."""
        return mask.any(axis=1)

    def fill(self, values: np.ndarray) -> None:
        """Put values of the missing entries, in the units of the table, into the rows."""
        self.incomplete[self.mask] = (values - self.missing_location) / self.missing_scale

    def missing_values(self) -> np.ndarray:
        """Values of the missing entries in the units of the table, in row-major order."""
        return self.incomplete[self.mask] * self.missing_scale + self.missing_location

    @property
    def weight(self) -> float:
        """Sum of the weights of all rows: their number."""
        return self.n

    def impute(self, rng, precision: np.ndarray, mean: np.ndarray) -> None:
        """Draw the missing values given the observed ones of their rows."""
        from bayesstruct.precision.kernels.missing_values import draw_missing

        residuals = self.residuals(mean)
        draw_missing(rng, precision, residuals, self.mask)
        self.set_residuals(residuals, mean)

    def sum(self) -> np.ndarray:
        """Sum of all rows, (p,)."""
        return self.total + self.incomplete.sum(axis=0)

    def mean_system(self, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Precision of the column means given the rows, and its product with their expectation."""
        return self.weight * precision, precision @ self.sum()

    def residuals(self, mean: np.ndarray) -> np.ndarray:
        """Incomplete rows less their means."""
        return self.incomplete - (mean if mean.ndim == 1 else mean[self.gaps])

    def set_residuals(self, residuals: np.ndarray, mean: np.ndarray) -> None:
        """Take the missing values of incomplete rows from their residuals."""
        # Observed values are left alone: rounding would make them depend on the past of the chain.
        rows = residuals + (mean if mean.ndim == 1 else mean[self.gaps])
        self.incomplete[self.mask] = rows[self.mask]

    def scatter(self, mean: np.ndarray) -> np.ndarray:
        """Sum over rows of the outer products of their residuals, (p, p).

        With one mean for all rows the cost does not grow with the complete ones.
        """
        part = self.residuals(mean)
        return self._complete_scatter(mean) + part.T @ part

    def _complete_scatter(self, mean):
        if mean.ndim > 1:
            rows = self.complete - mean[~self.gaps]
            return self._weighted(rows).T @ rows
        shift = np.outer(self.total, mean)
        complete = self.cross - shift - shift.T
        complete += self.n_complete * np.outer(mean, mean)
        return complete

    def _weighted(self, rows):
        return rows


class TableScatter(TableRows):
    """Rows of which only the covariance matrix is known, their means being zero on the standardised scale.

    Parameters
    ----------
    covariance : (p, p) ndarray
        In the units of the table, with divisor n - 1.
    scale : (p,) ndarray
        Standard deviations by which columns were standardised.
    n : int
    """

    def __init__(self, covariance: np.ndarray, scale: np.ndarray, n: int):
        super().__init__(np.empty((0, len(scale))), np.zeros(len(scale)), scale)
        self.n = self.n_complete = n
        self.cross = (n - 1) * covariance / np.outer(scale, scale)


class StudentRows(TableRows):
    """Rows with a multivariate t distribution: normal given a weight for each, by which its precision is multiplied.

    The weights are drawn anew in each sweep, `draw_weights`, before anything that depends on them.
    """

    @property
    def weight(self) -> float:
        """Sum of the weights of all rows."""
        return float(self.n_complete + self.roots @ self.roots)

    def quadratic(self, precision: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Quadratic form of the residuals of each row, the complete rows first, (n,)."""
        rows = self.complete - (mean if mean.ndim == 1 else mean[~self.gaps])
        rows = np.concatenate([rows, self.residuals(mean)])
        return np.einsum("ij,ij->i", rows @ precision, rows)

    @property
    def sizes(self) -> np.ndarray:
        """Number of observed values of each row, the complete rows first."""
        complete = np.full(len(self.complete), self.complete.shape[1])
        return np.concatenate([complete, (~self.mask).sum(axis=1)])

    def draw_weights(self, rng, quadratic: np.ndarray, degrees: float) -> None:
        """Draw the weight of each row given its values."""
        shape = 0.5 * (degrees + self.complete.shape[1])
        self.set_weights(rng.standard_gamma(shape, size=self.n) * 2.0 / (degrees + quadratic))

    def set_weights(self, weights: np.ndarray) -> None:
        """Take the weight of each row, the complete rows first."""
        seen = len(self.complete)
        self.complete_weights, self.roots = weights[:seen], np.sqrt(weights[seen:])
        weighted = self.complete * self.complete_weights[:, None]
        self.n_complete = self.complete_weights.sum()
        self.total, self.cross = weighted.sum(axis=0), weighted.T @ self.complete

    def impute(self, rng, precision: np.ndarray, mean: np.ndarray) -> None:
        """Draw the missing values given the observed ones and the weight of their rows."""
        from bayesstruct.precision.kernels.missing_values import draw_missing

        residuals = self.residuals(mean) * self.roots[:, None]
        draw_missing(rng, precision, residuals, self.mask)
        self.set_residuals(residuals / self.roots[:, None], mean)

    def sum(self) -> np.ndarray:
        """Weighted sum of all rows, (p,)."""
        return self.total + self.roots**2 @ self.incomplete

    def scatter(self, mean: np.ndarray) -> np.ndarray:
        """Weighted sum over rows of the outer products of their residuals, (p, p)."""
        part = self.residuals(mean) * self.roots[:, None]
        return self._complete_scatter(mean) + part.T @ part

    def _weighted(self, rows):
        return rows * self.complete_weights[:, None]


class WeightedRows(TableRows):
    """Rows of the alternative t distribution: normal given a weight for each value, with whose root its residual is multiplied.

    Attributes
    ----------
    roots : (n, p) ndarray
        Square roots of the weights, ones until they are set.
    """

    def __init__(self, values, location, scale, missing=None):
        super().__init__(values, location, scale, missing)
        self.roots = np.ones(self.incomplete.shape)

    def _apart(self, mask):
        return np.ones(len(mask), bool)

    def draw_weights(self, rng, precision, mean: np.ndarray, degrees: float) -> None:
        """Draw the weight of each value given the rest of its row."""
        from bayesstruct.precision.kernels.marginals.value_weights import draw_value_weights

        residuals = self.residuals(mean)
        draw_value_weights(rng, precision, residuals, self.roots, self.mask, degrees)
        self.set_residuals(residuals, mean)

    def draw_degrees(self, rng, precision, mean, degrees, shape: float, rate: float) -> float:
        """Draw the degrees of freedom given the weights, and both together; return them."""
        from bayesstruct.precision.kernels.marginals.value_weights import draw_value_degrees

        residuals = self.residuals(mean)
        rows = (residuals, self.roots, self.mask)
        new = draw_value_degrees(rng, degrees, precision, *rows, shape, rate)
        self.set_residuals(residuals, mean)
        return new

    def impute(self, rng, precision: np.ndarray, mean: np.ndarray) -> None:
        """Draw the missing values given the observed ones of their rows and all weights."""
        from bayesstruct.precision.kernels.missing_values import draw_missing

        residuals = self.residuals(mean) * self.roots
        draw_missing(rng, precision, residuals, self.mask)
        self.set_residuals(residuals / self.roots, mean)

    def mean_system(self, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Precision of the column means given the rows, and its product with their expectation."""
        roots = self.roots
        system = precision * (roots.T @ roots)
        return system, (precision * (roots.T @ (roots * self.incomplete))).sum(axis=1)

    def scatter(self, mean: np.ndarray) -> np.ndarray:
        """Sum over rows of the outer products of their weighted residuals, (p, p)."""
        e = self.residuals(mean) * self.roots
        return e.T @ e
