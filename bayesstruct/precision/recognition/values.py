"""Values of a recognised part of a model at a point: tables, means and hyperparameters."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.missing import observed_values
from bayesstruct.core.recognition import NotRecognized, is_op, parameters
from bayesstruct.precision.kernels.odds import fill_free
from bayesstruct.precision.kernels.rows.latent_tables import LatentRows
from bayesstruct.precision.kernels.rows.tables import (
    StudentRows,
    TableRows,
    TableScatter,
    WeightedRows,
)
from bayesstruct.precision.priors.fused import GraphicalFusedLassoRV
from bayesstruct.precision.priors.g_wishart import GWishartRV, beta_share, edge_matrix
from bayesstruct.precision.priors.group_lasso import GraphicalGroupLassoRV
from bayesstruct.precision.priors.horseshoe import GraphicalHorseshoeRV
from bayesstruct.precision.priors.nuclear import GraphicalNuclearLassoRV
from bayesstruct.precision.priors.precision import GraphicalLassoRV, GraphicalSpikeSlabRV
from bayesstruct.precision.recognition.parts import PrecisionPart

__all__ = [
    "PRIOR_VALUES",
    "FusedValues",
    "GWishartValues",
    "GroupValues",
    "HorseshoeValues",
    "LaplaceValues",
    "NuclearValues",
    "PartValues",
    "SpikeSlabValues",
    "values_type",
]


@dataclass(frozen=True)
class SpikeSlabValues:
    """Hyperparameters of a spike-and-slab prior at a point.

    Attributes
    ----------
    nominal : (p, p) ndarray
        Nominal probability of each edge; if the model draws a common one, its zeros forbid and its
        ones require edges.
    spike, slab, diagonal_rate, scale : float
    shapes : tuple of float, optional
        Of the beta distribution of a common edge probability.
    share : float, optional
        The common edge probability at the point.
    """

    nominal: np.ndarray
    spike: float
    slab: float
    diagonal_rate: float
    scale: float
    shapes: tuple[float, float] | None = None
    share: float | None = None

    @classmethod
    def read(cls, values: list, names: dict[str, str], point: dict) -> "SpikeSlabValues":
        """Make one of the evaluated parameters of the prior, and of the common edge probability if there is one."""
        nominal, *scales = values[:5]
        spike, slab, diagonal_rate, scale = map(float, scales)
        if "share" not in names:
            return cls(nominal, spike, slab, diagonal_rate, scale)
        shapes = float(values[5]), float(values[6])
        share = float(1.0 / (1.0 + np.exp(-point[names["share"]])))
        return cls(nominal, spike, slab, diagonal_rate, scale, shapes, share)

    @property
    def probability(self) -> np.ndarray:
        """Nominal probability of each edge at the point."""
        return self.nominal if self.share is None else fill_free(self.nominal, self.share)


@dataclass(frozen=True)
class LaplaceValues:
    """Hyperparameters of a graphical-lasso prior at a point.

    Attributes
    ----------
    rates : (p, p) ndarray
        Laplace rates of the off-diagonal elements.
    diagonal_rate, scale : float
    """

    rates: np.ndarray
    diagonal_rate: float
    scale: float

    @classmethod
    def read(cls, values: list, names: dict[str, str], point: dict) -> "LaplaceValues":
        """Make one of the evaluated parameters of the prior."""
        rates, diagonal_rate, scale = values
        return cls(rates, float(diagonal_rate), float(scale))


@dataclass(frozen=True)
class GWishartValues:
    """Graph and hyperparameters of a G-Wishart prior at a point.

    Attributes
    ----------
    degrees_of_freedom : float
    scale : (p, p) ndarray
    adjacency : (p, p) ndarray of int8
    nominal : (p, p) ndarray, optional
        Prior probability of each edge, if the graph is random; if the model draws a common one, its zeros forbid and
        its ones require edges.
    shapes : tuple of float, optional
        Of the beta distribution of a common edge probability.
    share : float, optional
        The common edge probability at the point.
    """

    degrees_of_freedom: float
    scale: np.ndarray
    adjacency: np.ndarray
    nominal: np.ndarray | None = None
    shapes: tuple[float, float] | None = None
    share: float | None = None

    @classmethod
    def read(cls, values: list, names: dict[str, str], point: dict) -> "GWishartValues":
        """Make one of the evaluated parameters of the prior and of its graph."""
        freedom, scale, edge, *own = values
        adjacency = edge_matrix(edge, len(scale)).astype(np.int8)
        if "share" not in names:
            return cls(float(freedom), scale, adjacency, *own)
        nominal, alpha, beta = own
        share = float(1.0 / (1.0 + np.exp(-point[names["share"]])))
        return cls(float(freedom), scale, adjacency, nominal, (float(alpha), float(beta)), share)

    @property
    def probability(self) -> np.ndarray | None:
        """Prior probability of each edge at the point."""
        known = self.nominal is None or self.share is None
        return self.nominal if known else fill_free(self.nominal, self.share)


@dataclass(frozen=True)
class HorseshoeValues:
    """Hyperparameters of a graphical horseshoe at a point.

    Attributes
    ----------
    scales : (p, p) ndarray
        Global scale of each off-diagonal element.
    diagonal_rate, scale : float
        The scale of the whole matrix is 1.
    width : float, optional
        Of the half-Cauchy distribution of a common global scale.
    global_scale : float, optional
        The common global scale at the point.
    """

    scales: np.ndarray
    diagonal_rate: float
    scale: float = 1.0
    width: float | None = None
    global_scale: float | None = None

    @classmethod
    def read(cls, values: list, names: dict[str, str], point: dict) -> "HorseshoeValues":
        """Make one of the evaluated parameters of the prior, and of the global scale if that is a variable."""
        scales, diagonal_rate = np.array(values[0], float), float(values[1])
        if "global_scale" not in names:
            return cls(scales, diagonal_rate)
        now = float(np.exp(point[names["global_scale"]]))
        return cls(now * scales, diagonal_rate, width=float(values[2]), global_scale=now)


@dataclass(frozen=True)
class FusedValues(LaplaceValues):
    """Hyperparameters of a graphical fused lasso at a point.

    Attributes
    ----------
    differences : (p, p) ndarray
        Rates of the differences between neighbours.
    """

    differences: np.ndarray

    @classmethod
    def read(cls, values: list, names: dict[str, str], point: dict) -> "FusedValues":
        """Make one of the evaluated parameters of the prior."""
        rates, differences, diagonal_rate, scale = values
        return cls(rates, float(diagonal_rate), float(scale), differences)


@dataclass(frozen=True)
class GroupValues(LaplaceValues):
    """Hyperparameters of a graphical group lasso at a point.

    Attributes
    ----------
    members : (groups, most) ndarray of int
        Places of the elements of each group, in row order, then -1.
    group_rates : (groups,) ndarray
        Rates of the norms.
    norm : {"l2", "linf"}
    """

    members: np.ndarray
    group_rates: np.ndarray
    norm: str

    @classmethod
    def read(cls, values: list, names: dict[str, str], point: dict) -> "GroupValues":
        """Make one of the evaluated parameters of the prior."""
        rates, members, group_rates, order, diagonal_rate, scale = values
        norm, places = "linf" if np.isinf(order) else "l2", members.astype(np.int64)
        return cls(rates, float(diagonal_rate), float(scale), places, group_rates, norm)


@dataclass(frozen=True)
class NuclearValues(LaplaceValues):
    """Hyperparameters of nuclear norms of blocks at a point.

    Attributes
    ----------
    labels : (p,) ndarray of int
        Block of each column.
    block_rates : (blocks, blocks) ndarray
        Rates of the norms.
    """

    labels: np.ndarray
    block_rates: np.ndarray

    @classmethod
    def read(cls, values: list, names: dict[str, str], point: dict) -> "NuclearValues":
        """Make one of the evaluated parameters of the prior."""
        rates, labels, block_rates, diagonal_rate, scale = values
        blocks = labels.astype(np.int64), block_rates
        return cls(rates, float(diagonal_rate), float(scale), *blocks)


# What a prior of a precision matrix is read as. The sweep of the step and the solver of the mode are looked up by these types.
PRIOR_VALUES: dict[type, type] = {
    GraphicalSpikeSlabRV: SpikeSlabValues,
    GraphicalLassoRV: LaplaceValues,
    GWishartRV: GWishartValues,
    GraphicalHorseshoeRV: HorseshoeValues,
    GraphicalFusedLassoRV: FusedValues,
    GraphicalGroupLassoRV: GroupValues,
    GraphicalNuclearLassoRV: NuclearValues,
}


def values_type(precision) -> type:
    """Return the type of the hyperparameters of a matrix's prior."""
    for prior, values in PRIOR_VALUES.items():
        if is_op(precision, prior):
            return values
    raise NotRecognized(f"the prior of {precision.name!r} is not one of a precision matrix")


class PartValues:
    """Values of one recognised part at a point.

    Parameters
    ----------
    model : pymc.Model
    part : PrecisionPart
    initial_point : dict, optional
        A point of the model, from which the number of variables is taken.
    compile_kwargs : dict, optional

    Attributes
    ----------
    names : dict
        Names of the value variables of ``precision``, ``edge``, ``share``, ``global_scale``, ``mean`` and
        ``degrees``, as far as the part has them.
    missing : list of str or None
        Name of the missing values of each table that has some.
    p : int
    values_type : type
        Of the hyperparameters that `prior` returns.
    tables : list of TableRows
        Empty until `load`.
    """

    def __init__(self, model, part: PrecisionPart, initial_point=None, compile_kwargs=None):
        self.names = {
            role: model.rvs_to_values[variable].name for role, variable in part.roles.items()
        }
        self.missing = [
            None if t.missing_rv is None else model.rvs_to_values[t.missing_rv].name
            for t in part.tables
        ]
        start = model.initial_point() if initial_point is None else initial_point
        matrix = start[self.names["precision"]]
        # As a matrix, or as the vector of its Cholesky factor.
        packed = round((np.sqrt(8 * matrix.size + 1) - 1) / 2)
        self.p = packed if matrix.ndim == 1 else len(matrix)
        self.values_type: Any = values_type(part.precision)
        of_mean = () if part.mean is None else parameters(part.mean)
        needed = (
            _prior_tensors(part),
            [t.mean for t in part.tables],
            of_mean,
            _data_tensors(model, part),
        )
        self._prior, self._means, self._mean_prior, self._data = (
            Expressions(model, tensors, compile_kwargs, user=part.precision.name)
            for tensors in needed
        )
        self._latent = any(t.rv in model.free_RVs and t.known is None for t in part.tables)
        self._kinds = [_kind(table) for table in part.tables]
        self.tables: list[TableRows] = []

    def load(self, point: dict) -> None:
        """Read the tables unless that was done: latent ones anew each time.

        Empty `tables` if they may have been exchanged.
        """
        if self.tables and not self._latent:
            return
        values = self._data(point)
        self.tables = []
        for at, kind in enumerate(self._kinds):
            data, location, scale, missing, n = values[5 * at : 5 * at + 5]
            location, scale = (np.broadcast_to(v, (self.p,)) * 1.0 for v in (location, scale))
            mask = None if np.ndim(missing) == 0 else missing
            data = np.asarray(data, float)
            self.tables.append(
                TableScatter(data, scale, int(n)) if n else kind(data, location, scale, mask)
            )

    def prior(self, point: dict) -> Any:
        """Hyperparameters of the prior of the matrix, of type `values_type`."""
        return self.values_type.read(self._prior(point), self.names, point)

    def means(self, point: dict) -> list[np.ndarray]:
        """Means of the rows of each table."""
        return [np.asarray(m, float) for m in self._means(point)]

    def mean_prior(self, point: dict) -> list[np.ndarray]:
        """Return expectation and standard deviation of each column mean in its prior."""
        values = self._mean_prior(point)
        return [v if np.shape(v) == (self.p,) else np.broadcast_to(v, (self.p,)) for v in values]

    def mean_system(self, precision: np.ndarray, point: dict) -> tuple[np.ndarray, np.ndarray]:
        """Precision of the column means given all else, and its product with their expectation."""
        centre, sd = self.mean_prior(point)
        systems, targets = zip(
            *(table.mean_system(precision) for table in self.tables), strict=True
        )
        return sum(systems) + np.diag(1.0 / sd**2), sum(targets) + centre / sd**2

    def scatter(self, means: list[np.ndarray]) -> tuple[np.ndarray, float]:
        """Scatter matrix about the means and number of rows, over all tables."""
        scatter, n = np.zeros((self.p, self.p)), 0
        for table, mean in zip(self.tables, means, strict=True):
            scatter += table.scatter(np.broadcast_to(mean, (self.p,)) if mean.ndim == 0 else mean)
            n += table.n
        return scatter, float(n)


def _kind(table) -> Callable[..., TableRows]:
    if table.codes is not None:
        return partial(LatentRows, block=table.block.data)
    if table.weights is not None:
        return WeightedRows
    return TableRows if table.degrees is None else StudentRows


def _prior_tensors(part: PrecisionPart) -> list:
    """Parameters of the prior of the matrix; the common edge probability is not one of them."""
    tensors = list(parameters(part.precision))
    if is_op(part.precision, GWishartRV):
        return tensors + ([] if part.edge is None else _graph_tensors(part.edge, part.share))
    if part.share is not None:
        alpha, beta, fixed, *_ = parameters(part.share)
        tensors[0] = fixed
        tensors += [alpha, beta]
    if part.global_scale is not None:
        tensors[0] = _relative(tensors[0], part.global_scale)
        tensors.append(parameters(part.global_scale)[0])
    return tensors


def _relative(scales, global_scale):
    """Scales of the elements over the common one: a constant, for which nothing is compiled, if they are all equal to it."""
    from pytensor.tensor import as_tensor_variable
    from pytensor.tensor.basic import Alloc

    if (
        is_op(scales, Alloc)
        and scales.owner.inputs[0] is global_scale
        and None not in scales.type.shape
    ):
        return as_tensor_variable(np.ones(scales.type.shape))
    return scales / global_scale


def _graph_tensors(graph, share) -> list:
    """Parameters of the prior of a random graph, and of the common edge probability if it is drawn with it."""
    from pytensor.tensor import as_tensor_variable

    found = beta_share(graph)
    if share is None or found is None:
        return list(parameters(graph))
    return [as_tensor_variable(found[1]), *parameters(share)]


def _data_tensors(model, part: PrecisionPart) -> list:
    """Values, location, scale, missing values, and the number of rows where these are not known."""
    from pytensor.tensor import as_tensor_variable

    out = []
    for t in part.tables:
        if t.codes is not None:
            out += [t.known, t.location, t.scale, t.codes, as_tensor_variable(0.0)]
            continue
        if t.known is not None:
            out.append(t.known)
        else:
            out.append(t.rv if t.rv in model.free_RVs else observed_values(model, t.rv))
        out.append(as_tensor_variable(0.0) if t.location is None else t.location)
        out.append(as_tensor_variable(1.0) if t.scale is None else t.scale)
        out.append(as_tensor_variable(0.0) if t.missing is None else t.missing)
        out.append(as_tensor_variable(0.0) if t.n is None else t.n)
    return out
