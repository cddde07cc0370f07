"""Recognise the part of a model in which a precision matrix has an exact Gibbs sampler.

That part is a precision matrix with an element-wise prior, whose every child is either its edge
indicators or a table of normal rows with that precision matrix. Anything else, and the matrix is
left to another sampler.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pymc.distributions.transforms import CholeskyCovTransform
from pymc.logprob.transforms import LogOddsTransform, LogTransform
from pytensor.tensor.random.basic import MvNormalRV

from bayesstruct.core.recognition import (
    NotRecognized,
    check_childless,
    children_of,
    depends_on,
    is_op,
    parameters,
    same_value,
    unpad,
    unpadded_parameters,
)
from bayesstruct.core.tensors import random_ancestors
from bayesstruct.precision.priors.alternative_rows import (
    AlternativeStudentRV,
    MissingWeightedCellsRV,
    ValueWeightsRV,
    is_zero,
)
from bayesstruct.precision.priors.edges import EdgesRV
from bayesstruct.precision.priors.fused import GraphicalFusedLassoRV
from bayesstruct.precision.priors.g_wishart import GWishartRV, IndependentEdgesRV, beta_share
from bayesstruct.precision.priors.group_lasso import GraphicalGroupLassoRV
from bayesstruct.precision.priors.horseshoe import GlobalScaleRV, GraphicalHorseshoeRV
from bayesstruct.precision.priors.latent_rows import LatentValuesRV, OrderedRowsRV
from bayesstruct.precision.priors.nuclear import GraphicalNuclearLassoRV
from bayesstruct.precision.priors.precision import (
    GraphicalLassoRV,
    GraphicalSpikeSlabRV,
    JointSpikeSlabRV,
)
from bayesstruct.precision.priors.rows import (
    ColumnMeansRV,
    GraphicalNormalRV,
    IncompleteGraphicalNormalRV,
    MissingCellsRV,
)
from bayesstruct.precision.priors.sample_covariance import GraphicalCovarianceRV
from bayesstruct.precision.priors.student_rows import (
    DegreesOfFreedomRV,
    GraphicalStudentRV,
    IncompleteGraphicalStudentRV,
    MissingStudentCellsRV,
)

if TYPE_CHECKING:
    import pymc as pm

    from pytensor.tensor.variable import TensorVariable

__all__ = [
    "PRECISION_RVS",
    "PrecisionPart",
    "TablePart",
    "has_transform",
    "parts_of",
    "recognize",
]

PRECISION_RVS = (
    GraphicalLassoRV,
    GraphicalSpikeSlabRV,
    GraphicalFusedLassoRV,
    GraphicalGroupLassoRV,
    GraphicalNuclearLassoRV,
    GraphicalHorseshoeRV,
    GWishartRV,
)
_MISSING = (MissingCellsRV, MissingStudentCellsRV, MissingWeightedCellsRV)
_SHOWN = (OrderedRowsRV, AlternativeStudentRV)


@dataclass
class TablePart:
    """A table of normal rows and the parameters of its density.

    Attributes
    ----------
    rv : TensorVariable
        The rows, observed or free.
    mean : TensorVariable
        On the standardised scale.
    location, scale : TensorVariable, optional
        Units of the table.
    missing : TensorVariable, optional
        Which values of the table are missing.
    missing_rv : TensorVariable, optional
        The missing values as a variable of the model.
    n : TensorVariable, optional
        Number of rows, if `rv` is their covariance matrix.
    degrees : TensorVariable, optional
        Degrees of freedom of rows that have a t distribution.
    codes : TensorVariable, optional
        Levels of columns that count by their order; `rv` and `missing_rv` are then all latent and missing values.
    known : TensorVariable, optional
        With `codes` or `weights`, the values that are known as numbers.
    block : TensorVariable, optional
        With `codes`, which columns are latent values of one column of states.
    weights : TensorVariable, optional
        Weights of all values of rows that have an alternative t distribution; `rv` is the same variable.
    """

    rv: "TensorVariable"
    mean: "TensorVariable"
    location: "TensorVariable | None" = None
    scale: "TensorVariable | None" = None
    missing: "TensorVariable | None" = None
    missing_rv: "TensorVariable | None" = None
    n: "TensorVariable | None" = None
    degrees: "TensorVariable | None" = None
    codes: "TensorVariable | None" = None
    known: "TensorVariable | None" = None
    weights: "TensorVariable | None" = None
    block: "TensorVariable | None" = None


@dataclass
class PrecisionPart:
    """A precision matrix and the variables that are drawn with it.

    Attributes
    ----------
    precision : TensorVariable
    edge : TensorVariable, optional
        Its indicators: given the matrix, or, with the G-Wishart distribution, its random graph.
    share : TensorVariable, optional
        The common edge probability.
    global_scale : TensorVariable, optional
        Of a graphical horseshoe.
    mean : TensorVariable, optional
        The column means, if all tables have the same and nothing else depends on them.
    degrees : TensorVariable, optional
        The degrees of freedom, if all tables have the same and nothing else depends on them.
    tables : list of TablePart
    shown : list of TensorVariable
        Tables whose likelihood is that of the latent values behind them.
    """

    precision: "TensorVariable"
    edge: "TensorVariable | None" = None
    share: "TensorVariable | None" = None
    global_scale: "TensorVariable | None" = None
    mean: "TensorVariable | None" = None
    degrees: "TensorVariable | None" = None
    tables: list[TablePart] = field(default_factory=list)
    shown: list["TensorVariable"] = field(default_factory=list)

    @property
    def roles(self) -> dict[str, "TensorVariable"]:
        """The matrix and the variables beside it that the model has, by their role."""
        roles = {"precision": self.precision, "edge": self.edge}
        roles |= {"share": self.share, "global_scale": self.global_scale}
        roles |= {"mean": self.mean, "degrees": self.degrees}
        return {role: variable for role, variable in roles.items() if variable is not None}

    @property
    def variables(self) -> list["TensorVariable"]:
        """Random variables that the Gibbs step draws."""
        own = [v for t in self.tables for v in (t.weights, t.missing_rv) if v is not None]
        return [*self.roles.values(), *own]


def recognize(model: "pm.Model", precision: "TensorVariable") -> PrecisionPart:
    """Collect the exactly sampled part of a model around one precision matrix.

    Parameters
    ----------
    model : pymc.Model
    precision : TensorVariable
        Model variable with a prior of :mod:`bayesstruct.precision.priors.precision`.

    Returns
    -------
    PrecisionPart

    Raises
    ------
    NotRecognized
        Says which variable stands in the way.
    """
    if precision.type.ndim != 2:
        raise NotRecognized(f"{precision.name!r} is a batch of matrices")
    part = PrecisionPart(precision)
    missing = []
    for child in children_of(model, precision):
        if is_op(child, EdgesRV):
            part.edge = _check_edges(precision, child)
        elif is_op(child, _MISSING):
            missing.append(child)
        elif is_op(child, _SHOWN) and child not in model.free_RVs:
            part.shown.append(child)
        else:
            part.tables.append(_table(precision, child))
    _check_transform(model, precision)
    _attach_missing(part, missing)
    latent = [t.rv for t in part.tables if t.codes is not None]
    for variable in (part.edge, *missing, *latent):
        check_childless(model, variable)
    _check_weights(model, part)
    if is_op(precision, GWishartRV):
        _attach_graph(model, part)
    else:
        part.share = _share(model, part)
    part.global_scale = _global_scale(model, precision)
    for variable in part.variables:
        if variable not in model.free_RVs:
            raise NotRecognized(f"{variable.name!r} is observed")
    part.mean = _mean(model, part)
    part.degrees = _degrees(model, part)
    return part


def _check_weights(model, part):
    """Raise if anything but missing values depends on the weights of values."""
    for table in part.tables:
        if table.weights is None:
            continue
        others = [rv for rv in children_of(model, table.weights) if rv is not table.missing_rv]
        if others:
            names = ", ".join(repr(rv.name) for rv in others)
            raise NotRecognized(f"{names} depends on {table.weights.name!r}")
        if not has_transform(model, table.weights, LogTransform):
            raise NotRecognized(f"{table.weights.name!r} does not have its default transform")


def _check_transform(model, precision):
    transform = model.rvs_to_transforms.get(precision)
    if is_op(precision, GWishartRV):
        if transform is not None:
            raise NotRecognized(f"{precision.name!r} has a transform; its zeros need none")
        return
    if not isinstance(transform, CholeskyCovTransform):
        raise NotRecognized(f"{precision.name!r} does not have its default transform")


def has_transform(model: "pm.Model", variable: "TensorVariable", transform: type) -> bool:
    """Whether the values of a variable at a point are on the scale of this transform, its default."""
    return isinstance(model.rvs_to_transforms.get(variable), transform)


def _check_edges(precision, edge):
    if is_op(precision, GraphicalSpikeSlabRV):
        probability, spike, slab, _, scale = parameters(precision)
        wanted = (precision, probability, spike, slab, scale)
        if all(same_value(a, b) for a, b in zip(parameters(edge), wanted, strict=True)):
            return edge
    raise NotRecognized(f"{edge.name!r} does not share its parameters with {precision.name!r}")


def _table(precision, rv) -> TablePart:
    if is_op(rv, (GraphicalNormalRV, IncompleteGraphicalNormalRV)):
        mean, matrix, location, scale, *missing = unpadded_parameters(rv)
        part = TablePart(rv, mean, location, scale, missing[0] if missing else None)
    elif is_op(rv, (GraphicalStudentRV, IncompleteGraphicalStudentRV)):
        mean, matrix, location, scale, degrees, *missing = unpadded_parameters(rv)
        part = TablePart(rv, mean, location, scale, missing[0] if missing else None)
        part.degrees = degrees
    elif is_op(rv, LatentValuesRV):
        mean, matrix, location, scale, known, codes, *_, block, _ = unpadded_parameters(rv)
        part = TablePart(rv, mean, location, scale, codes=codes, known=known, missing_rv=rv)
        part.block = block
    elif is_op(rv, ValueWeightsRV):
        mean, matrix, location, scale, degrees, known, gaps = unpadded_parameters(rv)
        part = TablePart(rv, mean, location, scale, degrees=degrees, known=known, weights=rv)
        part.missing = None if is_zero(gaps) else gaps
    elif is_op(rv, GraphicalCovarianceRV):
        mean, matrix, scale, n = unpadded_parameters(rv)
        part = TablePart(rv, mean, scale=scale, n=n)
    elif is_op(rv, MvNormalRV):
        mean, covariance = unpadded_parameters(rv)
        matrix, part = _inverted(covariance), TablePart(rv, mean)
    else:
        raise NotRecognized(
            f"{rv.name!r} is not a multivariate normal with the precision {precision.name!r}"
        )
    if matrix is not precision:
        raise NotRecognized(f"{rv.name!r} has another precision matrix than {precision.name!r}")
    own = (part.mean, part.location, part.scale, part.degrees)
    if depends_on([v for v in own if v is not None], precision):
        raise NotRecognized(f"the mean of {rv.name!r} depends on {precision.name!r}")
    if part.degrees is not None and part.degrees.type.ndim > 0:
        raise NotRecognized(f"the degrees of freedom of {rv.name!r} are not one number")
    if random_ancestors(*(v for v in (part.location, part.scale, part.n) if v is not None)):
        raise NotRecognized(f"location, scale or number of rows of {rv.name!r} is random")
    return part


def _inverted(covariance):
    """Return the matrix whose inverse a covariance is, or None."""
    owner = covariance.owner
    if owner is None:
        return None
    core = getattr(owner.op, "core_op", owner.op)
    return unpad(owner.inputs[0]) if type(core).__name__ == "MatrixInverse" else None


def _attach_missing(part, variables):
    """Give each vector of missing values to the table that it completes."""
    for table in part.tables:
        if table.missing is None:
            continue
        own = [table.mean, part.precision, table.location, table.scale]
        latent = table.degrees if table.weights is None else table.weights
        own += [] if latent is None else [latent]
        for rv in variables:
            *shared, _, missing = unpadded_parameters(rv)
            wanted = [*own, table.missing]
            if len(shared) == len(own) and all(map(same_value, [*shared, missing], wanted)):
                table.missing_rv = rv
        if table.missing_rv is None:
            raise NotRecognized(f"the missing values of {table.rv.name!r} are not in the model")
    if len(variables) != sum(t.missing is not None for t in part.tables):
        raise NotRecognized("some missing values belong to no table")


def _attach_graph(model, part):
    """Add the random graph of a G-Wishart matrix, and the common edge probability if it has one."""
    graph = parameters(part.precision)[-1]
    if not is_op(graph, IndependentEdgesRV):
        return
    others = [rv for rv in children_of(model, graph) if rv is not part.precision]
    if others:
        names = ", ".join(repr(rv.name) for rv in others)
        raise NotRecognized(f"{names} depends on {graph.name!r}")
    part.edge = graph
    share, _ = beta_share(graph) or (None, None)
    alone = share in model.free_RVs and children_of(model, share) == [graph]
    if alone and has_transform(model, share, LogOddsTransform):
        part.share = share


def _share(model, part):
    """Return the common edge probability when it is drawn with the matrix."""
    sources = random_ancestors(*parameters(part.precision)[:1])
    if not sources or is_op(part.precision, (JointSpikeSlabRV, GraphicalHorseshoeRV)):
        return None  # or its parameters are drawn by other samplers
    share = sources[0]
    if len(sources) > 1 or part.edge is None:
        raise NotRecognized("a random edge probability needs the indicators `edges(...)`")
    if set(children_of(model, share)) != {part.precision, part.edge}:
        raise NotRecognized(f"{share.name!r} is used outside the prior of {part.precision.name!r}")
    return share


def _global_scale(model, precision):
    """Return the global scale of a horseshoe if it is drawn with the matrix."""
    if not is_op(precision, GraphicalHorseshoeRV):
        return None
    sources = random_ancestors(*parameters(precision)[:1])
    if not sources:
        return None
    scale = sources[0]
    if len(sources) > 1 or not is_op(scale, GlobalScaleRV):
        raise NotRecognized(f"the global scale of {precision.name!r} is no single variable")
    if children_of(model, scale) != [precision]:
        raise NotRecognized(f"{scale.name!r} is used outside the prior of {precision.name!r}")
    return scale


def _mean(model, part):
    """Return the column means when every table has the same and nothing else uses them."""
    means = {table.mean for table in part.tables}
    if len(means) != 1:
        return None
    mean = means.pop()
    return mean if is_op(mean, ColumnMeansRV) and _is_drawn_with(model, part, mean) else None


def _degrees(model, part):
    """Return the degrees of freedom when every table has the same and nothing else uses them."""
    degrees = {table.degrees for table in part.tables}
    weighted = any(table.weights is not None for table in part.tables)
    if len(degrees) != 1 or (weighted and len(part.tables) > 1):
        return None
    one = degrees.pop()
    known = one is not None and is_op(one, DegreesOfFreedomRV)
    known = known and has_transform(model, one, LogTransform)
    return one if known and _is_drawn_with(model, part, one) else None


def _is_drawn_with(model, part, variable) -> bool:
    """Whether a free variable has a known prior and no children but the tables."""
    users = {t.rv for t in part.tables} | {t.missing_rv for t in part.tables} | {*part.shown}
    known = variable in model.free_RVs and not random_ancestors(*parameters(variable))
    return known and set(children_of(model, variable)) <= users


def parts_of(model: "pm.Model") -> dict["TensorVariable", PrecisionPart | NotRecognized]:
    """Map each precision matrix of a model to its part, or to the reason why it has none."""
    out: dict[TensorVariable, PrecisionPart | NotRecognized] = {}
    for rv in model.free_RVs:
        if is_op(rv, PRECISION_RVS):
            try:
                out[rv] = recognize(model, rv)
            except NotRecognized as reason:
                out[rv] = reason
    return out
