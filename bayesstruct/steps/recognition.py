"""Recognise the part of a model in which a precision matrix has an exact Gibbs sampler.

That part is a precision matrix with an element-wise prior, whose every child is either its edge
indicators or a table of normal rows with that precision matrix. Anything else, and the matrix is
left to another sampler.
"""

from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from pytensor.graph.basic import Constant
from pytensor.graph.traversal import walk
from pytensor.scalar.basic import Second
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.basic import MvNormalRV
from pytensor.tensor.shape import Shape, Shape_i

from bayesstruct.distributions.edges import EdgesRV
from bayesstruct.distributions.precision import (
    EdgeProbabilityRV,
    GraphicalLassoRV,
    GraphicalSpikeSlabRV,
    random_ancestors,
)
from bayesstruct.distributions.rows import (
    ColumnMeansRV,
    GraphicalNormalRV,
    IncompleteGraphicalNormalRV,
    MissingCellsRV,
)

PRECISION_RVS = (GraphicalLassoRV, GraphicalSpikeSlabRV)


class NotRecognized(Exception):
    """The model has a part that keeps the precision matrix from being drawn exactly."""


@dataclass
class TablePart:
    """A table of normal rows and what its density is made of."""

    rv: object
    mean: object
    location: object = None
    scale: object = None
    missing: object = None
    missing_rv: object = None


@dataclass
class PrecisionPart:
    """A precision matrix and the variables that are drawn with it."""

    precision: object
    edge: object = None
    share: object = None
    mean: object = None
    tables: list = field(default_factory=list)

    @property
    def variables(self) -> list:
        """Random variables that the Gibbs step draws."""
        own = [self.precision, self.edge, self.share, self.mean]
        return [v for v in (*own, *(t.missing_rv for t in self.tables)) if v is not None]


@contextmanager
def refusals(head, supported):
    """Turn what is not recognised around a variable that a step is to draw into its error."""
    try:
        yield
    except NotRecognized as reason:
        raise ValueError(f"{head.name!r} cannot be drawn exactly: {reason}. {supported}.") from None


def only_one(drawn, kinds, plural, supported):
    """Return the one variable of some kinds among those that a step is to draw.

    Raises
    ------
    ValueError
        If there is none, or several.
    """
    heads = [rv for rv in drawn if is_op(rv, kinds)]
    if len(heads) != 1:
        names = ", ".join(rv.name for rv in drawn)
        raise ValueError(f"{names}: there are {len(heads)} {plural}, not one. {supported}.")
    return heads[0]


def check_drawn(variables, drawn):
    """Refuse a step that is to draw others than the variables that belong together."""
    if lost := {v.name for v in variables} ^ {v.name for v in drawn}:
        raise NotRecognized(f"{', '.join(sorted(lost))} must be drawn by one step")


def is_op(rv, kinds) -> bool:
    """Whether a variable is the output of an Op of one of these types."""
    return rv.owner is not None and isinstance(rv.owner.op, kinds)


def is_drawn_with(variable, what) -> bool:
    """Whether a distribution has said, in its ``dist``, that a variable is drawn with it.

    ``pm.sample(model=model)`` outside of a context asks steps about a variable without telling them the model.
    """
    return getattr(variable.tag, "drawn_with", None) == what


def parameters(rv) -> tuple:
    """Distribution parameters of a random variable, as they are in the graph."""
    return tuple(rv.owner.op.dist_params(rv.owner))


def _unpadded(rv) -> tuple:
    """Distribution parameters without padding dimensions and broadcasts."""
    return tuple(_unpad(v) for v in parameters(rv))


def _unpad(variable):
    """Look through the leading dimensions of length one and the broadcasts that PyMC adds."""
    while variable.owner is not None:
        inner = _padded(variable)
        if inner is None or inner.type.ndim > variable.type.ndim:
            break
        # A broadcast along the columns would change what a row of means is, unless it is a number.
        if inner.type.ndim > 0 and inner.type.shape[-1] == 1 != variable.type.shape[-1]:
            inner = _number(inner)
            if inner is None:
                break
        variable = inner
    return variable


def _number(variable):
    """Return the scalar of which a tensor is the padding, or None."""
    while variable.type.ndim > 0:
        owner = variable.owner
        if owner is None or not isinstance(owner.op, DimShuffle):
            return None
        variable = owner.inputs[0]
    return variable


def _padded(variable):
    """Return what a padding or broadcasting operation was applied to, or None."""
    op, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(op, DimShuffle):
        return inputs[0] if op.is_left_expand_dims else None
    if isinstance(op, Alloc):
        return inputs[0]
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, Second):
        return inputs[1]
    return None


def recognize(model, precision) -> PrecisionPart:
    """Collect the exactly sampled part of a model around one precision matrix.

    Parameters
    ----------
    model : pymc.Model
    precision : TensorVariable
        Model variable with a prior of :mod:`bayesstruct.distributions.precision`.

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
    cells = []
    for child in _children(model, precision):
        if is_op(child, EdgesRV):
            part.edge = _check_edges(precision, child)
        elif is_op(child, MissingCellsRV):
            cells.append(child)
        else:
            part.tables.append(_table(precision, child))
    _check_transform(model, precision)
    _attach_cells(part, cells)
    for variable in (part.edge, *cells):
        check_childless(model, variable)
    part.share = _share(model, part)
    for variable in part.variables:
        if variable not in model.free_RVs:
            raise NotRecognized(f"{variable.name!r} is observed")
    part.mean = _mean(model, part)
    return part


def _children(model, variable) -> list:
    """Random variables and potentials whose density contains the variable."""
    blocks = set(model.basic_RVs)

    def parents(node):
        return None if node in blocks or node.owner is None else node.owner.inputs

    out = []
    for rv in [*model.basic_RVs, *model.potentials]:
        if rv is variable:
            continue
        starts = rv.owner.inputs if rv in blocks else [rv]
        if variable in set(walk(starts, parents)):
            out.append(rv)
    return out


def check_childless(model, variable):
    """Refuse a variable, drawn from its law given the matrix, that something else depends on."""
    children = [] if variable is None else _children(model, variable)
    if children:
        names = ", ".join(repr(child.name) for child in children)
        raise NotRecognized(f"{names} depends on {variable.name!r}")


def _check_transform(model, precision):
    transform = model.rvs_to_transforms.get(precision)
    if type(transform).__name__ != "CholeskyCovTransform":
        raise NotRecognized(f"{precision.name!r} does not have its default transform")


def _check_edges(precision, edge):
    if is_op(precision, GraphicalSpikeSlabRV):
        probability, spike, slab, _, scale = parameters(precision)
        wanted = (precision, probability, spike, slab, scale)
        if all(_equal(a, b) for a, b in zip(parameters(edge), wanted, strict=True)):
            return edge
    raise NotRecognized(f"{edge.name!r} does not share its parameters with {precision.name!r}")


def _table(precision, rv) -> TablePart:
    kinds = (GraphicalNormalRV, IncompleteGraphicalNormalRV)
    if is_op(rv, kinds):
        mean, matrix, location, scale, *missing = _unpadded(rv)
        part = TablePart(rv, mean, location, scale, missing[0] if missing else None)
    elif is_op(rv, MvNormalRV):
        mean, covariance = _unpadded(rv)
        matrix, part = _inverted(covariance), TablePart(rv, mean)
    else:
        raise NotRecognized(
            f"{rv.name!r} is not a multivariate normal with the precision {precision.name!r}"
        )
    if matrix is not precision:
        raise NotRecognized(f"{rv.name!r} has another precision matrix than {precision.name!r}")
    others = [v for v in (part.mean, part.location, part.scale) if v is not None]
    if _depends_on(others, precision):
        raise NotRecognized(f"the mean of {rv.name!r} depends on {precision.name!r}")
    if random_ancestors(*(v for v in (part.location, part.scale) if v is not None)):
        raise NotRecognized(f"location or scale of {rv.name!r} is random")
    return part


def _depends_on(tensors, variable) -> bool:
    """Whether the values, and not only the shapes, of tensors depend on a variable."""

    def parents(node):
        shape = node.owner is None or isinstance(node.owner.op, Shape | Shape_i)
        return None if shape else node.owner.inputs

    return variable in set(walk(tensors, parents))


def _inverted(covariance):
    """Return the matrix whose inverse a covariance is, or None."""
    owner = covariance.owner
    if owner is None:
        return None
    core = getattr(owner.op, "core_op", owner.op)
    return _unpad(owner.inputs[0]) if type(core).__name__ == "MatrixInverse" else None


def _attach_cells(part, cells):
    """Give each set of missing cells to the table that it completes."""
    for table in part.tables:
        if table.missing is None:
            continue
        for rv in cells:
            mean, matrix, location, scale, _, missing = _unpadded(rv)
            pairs = [
                (mean, table.mean),
                (matrix, part.precision),
                (location, table.location),
                (scale, table.scale),
                (missing, table.missing),
            ]
            if all(_equal(a, b) for a, b in pairs):
                table.missing_rv = rv
        if table.missing_rv is None:
            raise NotRecognized(f"the missing cells of {table.rv.name!r} are not in the model")
    if len(cells) != sum(t.missing_rv is not None for t in part.tables):
        raise NotRecognized("there are missing cells without a table")


def _equal(a, b) -> bool:
    if isinstance(a, Constant) and isinstance(b, Constant):
        return np.array_equal(a.data, b.data)
    return a is b


def _share(model, part):
    """Return the common edge probability when it is drawn with the matrix."""
    sources = random_ancestors(*parameters(part.precision)[:1])
    if not sources:
        return None
    share = sources[0]
    if len(sources) > 1 or part.edge is None:
        raise NotRecognized("a random edge probability needs the indicators `edges(...)`")
    if set(_children(model, share)) != {part.precision, part.edge}:
        raise NotRecognized(f"{share.name!r} is used outside the prior of {part.precision.name!r}")
    return share


def _mean(model, part):
    """Return the column means when every table has the same and nothing else uses them."""
    means = {table.mean for table in part.tables}
    if len(means) != 1:
        return None
    mean = means.pop()
    users = {t.rv for t in part.tables} | {t.missing_rv for t in part.tables}
    if not is_op(mean, ColumnMeansRV) or random_ancestors(*parameters(mean)):
        return None
    known = mean in model.free_RVs and set(_children(model, mean)) <= users
    return mean if known else None


def parts_of(model) -> dict:
    """Map each precision matrix of a model to its part, or to the reason why it has none."""
    out = {}
    for rv in model.free_RVs:
        if is_op(rv, PRECISION_RVS):
            try:
                out[rv] = recognize(model, rv)
            except NotRecognized as reason:
                out[rv] = reason
    return out


def has_share(part) -> bool:
    """Whether the edge probability of a part is a beta-distributed variable."""
    return part.share is not None and is_op(part.share, EdgeProbabilityRV)
