"""Modes of Gaussian graphs with neighbours, nodes or blocks at many settings of their rates, for `bayesstruct.tune`."""

import warnings

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from bayesstruct.core.solution import ConvergenceWarning, Fit, register_tuner
from bayesstruct.data.arguments import number
from bayesstruct.data.blocks import blocks_of_columns
from bayesstruct.data.neighbours import neighbour_matrix
from bayesstruct.precision.solvers.structured import (
    blockwise_graphical_lasso,
    locally_constant_graphical_lasso,
    node_selection_graphical_lasso,
)
from bayesstruct.precision.solvers.tuning import GaussianGraphicalTuner, log_normal

__all__ = ["BlockwiseTuner", "LocallyConstantTuner", "NodeSelectionTuner"]

_TOL = 1e-8  # of the log density: zeros are exact


class _StructuredTuner(GaussianGraphicalTuner):
    """Modes with a rate of the elements, and another one of the structure in multiples of it."""

    own: ClassVar[str]
    solver: ClassVar[Callable[..., Any]]

    def __init__(self, data: Any, *, standardize: bool = True, **options: Any):
        super().__init__(data, prior="laplace", standardize=standardize)
        self.names = ("rate", self.own, "diagonal_rate")
        self.constants = {"rate": 1.0, self.own: 1.0, "diagonal_rate": None}
        for name in [name for name in options if name in self.names]:
            self.constants[name] = number(name, options.pop(name), above=0)
        self.structure, self.options = self.read(data, **options)

    def read(self, data: Any, **options: Any) -> tuple[tuple, dict]:
        """Return the structure as the solver takes it, and options of the solver; raise for unknown options."""
        raise NotImplementedError

    def _refuse(self, options: dict, known: str) -> None:
        if options:
            raise ValueError(f"`{next(iter(options))}` does not apply here; there is {known}")

    def fit(self, rows: np.ndarray, setting: dict[str, float], start: Fit | None = None) -> Fit:
        """Find the mode of some of the rows; the rates are those for all rows."""
        numbers, n = self.constants | setting, len(rows)
        mean, share = rows.mean(axis=0), n / len(self.rows)
        rate = numbers["rate"] * share
        diagonal = numbers["diagonal_rate"]
        options = self.options | {"diagonal_rate": None if diagonal is None else diagonal * share}
        options |= {"tol": _TOL, "init": None if start is None else start.state}
        scatter = (rows - mean).T @ (rows - mean) / n
        with warnings.catch_warnings():  # one bad setting of many is not the best one
            warnings.simplefilter("ignore", ConvergenceWarning)
            solve = type(self).solver
            own = rate, numbers[self.own] * rate
            precision = solve(scatter, n, *self.structure, *own, **options).precision
        return Fit(
            precision[self._pairs] != 0, lambda x: log_normal(x - mean, precision), precision
        )


@register_tuner("locally_constant_gaussian_graphical")
class LocallyConstantTuner(_StructuredTuner):
    """Modes of `bayesstruct.models.locally_constant_gaussian_graphical`."""

    own = "smoothness"
    solver = staticmethod(locally_constant_graphical_lasso)

    def read(self, data, *, neighbours="chain", **options):
        """Read the neighbours."""
        self._refuse(options, "`neighbours`")
        matrix = neighbour_matrix(self.columns, neighbours)
        pairs = np.argwhere(np.triu(matrix, 1) > 0)
        return (list(map(tuple, pairs.tolist())),), {}


@register_tuner("node_selection_gaussian_graphical")
class NodeSelectionTuner(_StructuredTuner):
    """Modes of `bayesstruct.models.node_selection_gaussian_graphical` with the Laplace prior."""

    own = "node_rate"
    solver = staticmethod(node_selection_graphical_lasso)

    def read(self, data, *, prior="spike_slab", norm="l2", **options):
        """Read the norm."""
        if prior != "laplace":
            raise ValueError(f'prior={prior!r} has no penalty to tune; use prior="laplace"')
        self._refuse(options, "`norm`")
        return (), {"norm": norm}


@register_tuner("blockwise_gaussian_graphical")
class BlockwiseTuner(_StructuredTuner):
    """Modes of `bayesstruct.models.blockwise_gaussian_graphical` with known blocks."""

    own = "block_rate"
    solver = staticmethod(blockwise_graphical_lasso)

    def read(self, data, *, blocks=None, norm="l2", **options):
        """Read the blocks and the norm."""
        if blocks is None:
            raise ValueError("unknown blocks have no penalty to tune; give `blocks`")
        self._refuse(options, "`blocks` and `norm`")
        return (blocks_of_columns(self.columns, blocks),), {"norm": norm}
