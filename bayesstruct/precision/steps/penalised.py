"""Sweeps over a precision matrix under penalties of several elements together."""

import numpy as np

from bayesstruct.precision.recognition.values import FusedValues, GroupValues, NuclearValues

__all__ = ["FusedSweep", "GroupSweep", "NuclearSweep"]


class FusedSweep:
    """Sweep under the graphical fused lasso."""

    def __init__(self, p: int):
        self.columns, self.near = np.empty((2, p)), np.empty((0, 0), np.int64)

    def __call__(self, rng, precision, covariance, scatter, n, values: FusedValues) -> None:
        """Update the matrix and its inverse in place."""
        from bayesstruct.precision.kernels.fused import fused_sweep, neighbour_list

        if not self.near.size:  # the neighbours are constants
            self.near = neighbour_list(values.differences)
            self.knots = np.empty((3, 2 * self.near.shape[1] + 2))
        prior = (values.rates, self.near, values.differences, values.diagonal_rate)
        work = self.columns, self.knots
        fused_sweep(rng, precision, covariance, scatter, n, *prior, *work)


class GroupSweep:
    """Sweep under the graphical group lasso."""

    def __init__(self, p: int):
        self.columns, self.knots, self.group = np.empty((2, p)), np.empty((3, 6)), None

    def __call__(self, rng, precision, covariance, scatter, n, values: GroupValues) -> None:
        """Update the matrix and its inverse in place."""
        from bayesstruct.precision.kernels.group_lasso import group_lasso_sweep, group_of_elements

        if self.group is None:  # the groups are constants
            self.group = group_of_elements(values.members, len(precision))
            self.level = np.empty(len(values.members))
        groups = self.group, values.members, values.group_rates, values.norm == "linf"
        prior = (values.rates, *groups, values.diagonal_rate)
        work = self.columns, self.level, self.knots
        group_lasso_sweep(rng, precision, covariance, scatter, n, *prior, *work)


class NuclearSweep:
    """Sweep under nuclear norms of blocks."""

    def __init__(self, p: int):
        self.layout: tuple | None = None
        self.work: tuple[np.ndarray, ...] = np.empty((3, p)), np.empty((2, p, p))

    def __call__(self, rng, precision, covariance, scatter, n, values: NuclearValues) -> None:
        """Update the matrix and its inverse in place."""
        from bayesstruct.precision.kernels.nuclear import TANGENTS, block_layout, nuclear_sweep

        if self.layout is None:  # the blocks are constants
            self.layout = block_layout(values.labels)
            self.work += np.empty((3, TANGENTS)), np.empty((3, TANGENTS + 2))
        prior = (values.rates, values.labels, self.layout, values.block_rates, values.diagonal_rate)
        nuclear_sweep(rng, precision, covariance, scatter, n, *prior, *self.work)
