"""Rows of a table of which some columns count by the order of their values alone."""

import numpy as np

from bayesstruct.data.ranks import FREE, KNOWN
from bayesstruct.precision.kernels.tables import TableRows

__all__ = ["LatentRows"]


class LatentRows(TableRows):
    """Rows of latent normal values, of which the order in each column is known, and of known and missing numbers.

    What other tables call missing values are here all values that are not known as numbers.

    Parameters
    ----------
    values : (n, p) ndarray
        Numbers in their units; latent ones hold anything.
    location, scale : (p,) ndarray
    codes : (n, p) ndarray of int
        Levels; see `bayesstruct.data.ranks.RankTable.codes`.
    block : (p,) ndarray of int, optional
        Which columns are latent values of one column of states; see `bayesstruct.data.ranks.RankTable.block`.

    Attributes
    ----------
    free : (q,) ndarray of int
        Columns of which no value is known as a number.
    """

    def __init__(self, values, location, scale, codes, block=None):
        super().__init__(values, location, scale, codes > KNOWN)
        self.block = np.full(codes.shape[1], -1) if block is None else np.asarray(block, np.int64)
        self.columns = np.flatnonzero((codes > KNOWN).any(axis=0) & (self.block < 0))
        self.chosen = np.flatnonzero(self.block >= 0)
        self.is_free = (codes[:, self.columns] > KNOWN).all(axis=0)
        self.codes = codes = np.ascontiguousarray(codes[self.gaps], np.int64)
        self.free = self.columns[self.is_free]
        n, q = len(codes), len(self.columns)
        self.order, self.bounds = np.full((q, n), -1), np.full((q, n + 1), -1)
        for c, j in enumerate(self.columns):
            latent = np.flatnonzero(codes[:, j] > KNOWN)
            level = np.where(codes[latent, j] == FREE, n, codes[latent, j])  # after all others
            place = np.argsort(level, kind="stable")
            self.order[c, : len(latent)] = latent[place]
            known = level[place][level[place] < n]
            starts = np.flatnonzero(np.diff(known, prepend=-1))
            self.bounds[c, : len(starts)] = starts
            self.bounds[c, len(starts)] = len(known)
        self.work = np.empty((2, n))

    def impute(self, rng, precision: np.ndarray, mean: np.ndarray) -> None:
        """Draw all latent and missing values once, column by column."""
        from bayesstruct.precision.kernels.marginals.choices import draw_choices
        from bayesstruct.precision.kernels.ranks import draw_ordered

        residuals = self.residuals(mean)
        which = (self.columns, self.order, self.bounds, self.is_free)
        draw_ordered(rng, precision, residuals, *which, self.work[0])
        if len(self.chosen):
            known = (mean, self.chosen, self.block, self.codes, self.work)
            draw_choices(rng, precision, residuals, *known)
        self.set_residuals(residuals, mean)

    def move_means(self, rng, mean: np.ndarray, centre: np.ndarray, sd: np.ndarray) -> np.ndarray:
        """Draw the means of free columns from their prior, and move the values with them; return all means.

        The order says nothing about the location of a column.
        """
        new = mean.copy()
        new[self.free] = (centre + sd * rng.standard_normal(len(mean)))[self.free]
        self.incomplete += new - mean
        return new

    def rescale(self, rng, precision, covariance, mean, shapes, variances, rates) -> None:
        """Draw the units of free columns, changing the values, the precision matrix and its inverse in place."""
        from bayesstruct.precision.kernels.ranks import rescale_columns

        residuals, prior = self.residuals(mean), (shapes, variances, rates)
        rescale_columns(rng, precision, covariance, residuals, self.free, *prior)
        self.set_residuals(residuals, mean)

    def move_choices(self, rng, precision, covariance, mean, scale, prior, centre, sd) -> None:
        """Move units and means of columns of states, changing the values, the matrix, its inverse and the means in place."""
        from bayesstruct.precision.kernels.marginals.choices import move_choices, rescale_choices

        residuals, columns = self.residuals(mean), (self.chosen, self.block)
        prior, of_means = tuple(prior), (np.array(centre), np.array(sd))
        rescale_choices(rng, precision, covariance, residuals, mean, *columns, prior, *of_means)
        own, matrices = (*columns, self.codes), (precision, covariance)
        move_choices(rng, matrices, scale, residuals, mean, *own, prior, of_means, self.work)
        self.set_residuals(residuals, mean)
