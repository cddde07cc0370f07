"""Recognise the precision matrices of several groups in a model, with the rows, means and missing values drawn with them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pymc.logprob.transforms import LogOddsTransform

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.missing import observed_values
from bayesstruct.core.recognition import (
    NotRecognized,
    check_childless,
    children_of,
    is_op,
    parameters,
    same_value,
    unpadded_parameters,
)
from bayesstruct.core.tensors import random_ancestors
from bayesstruct.precision.kernels.rows.tables import TableRows, TableScatter
from bayesstruct.precision.priors.group_edges import GroupEdgesRV, GroupIndicatorSpikeSlabRV
from bayesstruct.precision.priors.group_probabilities import GroupProbabilityRV
from bayesstruct.precision.priors.group_rows import (
    GroupedMissingValuesRV,
    GroupedNormalRV,
    IncompleteGroupedNormalRV,
)
from bayesstruct.precision.priors.groups import (
    GroupedCholesky,
    GroupedSpikeSlabRV,
    RelationsRV,
)
from bayesstruct.precision.priors.rows import ColumnMeansRV
from bayesstruct.precision.priors.sample_covariance import GroupedCovarianceRV
from bayesstruct.precision.recognition.parts import has_transform

if TYPE_CHECKING:
    import pymc as pm

    from pytensor.tensor.variable import TensorVariable

__all__ = [
    "GROUP_PRIORS",
    "INDICATOR_RVS",
    "SHARES",
    "GroupPart",
    "GroupTables",
    "group_parts_of",
    "recognise_groups",
]


#: Indicators of each prior of the matrices of several groups.
GROUP_PRIORS: dict[type, type] = {
    GroupedSpikeSlabRV: RelationsRV,
    GroupIndicatorSpikeSlabRV: GroupEdgesRV,
}
#: Roles of the probabilities that are learned, in the order of the parameters of a prior.
SHARES = ("edge_share", "difference_share")
INDICATOR_RVS = tuple(GROUP_PRIORS.values())
_ROWS = (GroupedNormalRV, IncompleteGroupedNormalRV, GroupedCovarianceRV)


@dataclass
class GroupPart:
    """Precision matrices of several groups and the variables that are drawn with them.

    Attributes
    ----------
    precision : TensorVariable
    relation : TensorVariable, optional
        Of each pair; or its edges in each group.
    rows : TensorVariable, optional
        The observed table; a prior without data has none.
    mean : TensorVariable, optional
        Of the columns in each group, if the model has rows.
    missing : TensorVariable, optional
        The missing values.
    edge_share, difference_share : TensorVariable, optional
        Common probabilities of an edge and of a difference, if they are learned.
    """

    precision: "TensorVariable"
    relation: "TensorVariable | None" = None
    rows: "TensorVariable | None" = None
    mean: "TensorVariable | None" = None
    missing: "TensorVariable | None" = None
    edge_share: "TensorVariable | None" = None
    difference_share: "TensorVariable | None" = None

    @property
    def roles(self) -> dict[str, "TensorVariable"]:
        """The variables that the step draws, by their role."""
        names = ("precision", "relation", "mean", "missing", *SHARES)
        roles = {name: getattr(self, name) for name in names}
        return {role: variable for role, variable in roles.items() if variable is not None}


def recognise_groups(model: "pm.Model", precision: "TensorVariable") -> GroupPart:
    """Collect the exactly sampled part of a model around the precision matrices of several groups.

    Raises
    ------
    NotRecognized
        Says which variable stands in the way.
    """
    part = GroupPart(precision)
    for child in children_of(model, precision):
        if is_op(child, INDICATOR_RVS) and part.relation is None:
            part.relation = _check_relation(precision, child)
        elif is_op(child, _ROWS) and part.rows is None:
            part.rows = child
        elif is_op(child, GroupedMissingValuesRV) and part.missing is None:
            part.missing = child
        else:
            raise NotRecognized(
                f"{child.name!r} is not the one table of normal rows of these groups"
            )
    if not isinstance(model.rvs_to_transforms.get(precision), GroupedCholesky):
        raise NotRecognized(f"{precision.name!r} does not have its default transform")
    if part.rows is not None:
        part.mean = _check_rows(model, part)
    elif part.missing is not None:
        raise NotRecognized(f"{part.missing.name!r} belongs to no table")
    _find_shares(model, part)
    for variable in (part.relation, part.missing):
        check_childless(model, variable)
    for variable in part.roles.values():
        if variable not in model.free_RVs:
            raise NotRecognized(f"{variable.name!r} is observed")
    return part


def _check_relation(precision, relation):
    wanted = (precision, *parameters(precision)[:-1])
    if all(same_value(a, b) for a, b in zip(parameters(relation), wanted, strict=True)):
        return relation
    raise NotRecognized(f"{relation.name!r} does not share its parameters with {precision.name!r}")


def _find_shares(model, part):
    """Put the probabilities that are learned into the part."""
    for role, matrix in zip(SHARES, parameters(part.precision), strict=False):
        own = [v for v in random_ancestors(matrix) if is_op(v, GroupProbabilityRV)]
        if own:
            setattr(part, role, own[0])
    for share in (getattr(part, role) for role in SHARES):
        if share is None:
            continue
        if part.relation is None:
            raise NotRecognized(f"{share.name!r} needs the relations or edges of the groups")
        if set(children_of(model, share)) - {part.precision, part.relation, part.difference_share}:
            raise NotRecognized(
                f"{share.name!r} is used outside the prior of {part.precision.name!r}"
            )
        if not has_transform(model, share, LogOddsTransform):
            raise NotRecognized(f"{share.name!r} does not have its default transform")


def _check_rows(model, part):
    """Return the means of the columns, or raise if rows are not of the recognised form."""
    rows = part.rows
    if rows in model.free_RVs:
        raise NotRecognized(f"{rows.name!r} is not observed")
    if is_op(rows, GroupedCovarianceRV):
        (mean, matrix, *constants), missing = unpadded_parameters(rows), []
    else:
        group, mean, matrix, location, scale, *missing = unpadded_parameters(rows)
        constants = [group, location, scale]
    if matrix is not part.precision:
        raise NotRecognized(f"{rows.name!r} has other precision matrices")
    if random_ancestors(*constants):
        raise NotRecognized(f"groups, location or scale of {rows.name!r} are random")
    users = {rows, part.missing} - {None}
    if not is_op(mean, ColumnMeansRV) or random_ancestors(*parameters(mean)):
        raise NotRecognized(
            f"the mean of {rows.name!r} is not ColumnMeans with constant parameters"
        )
    if mean.type.ndim != 2 or set(children_of(model, mean)) != users:
        raise NotRecognized(f"{mean.name!r} is not one mean a group, or is used elsewhere")
    if bool(missing) != (part.missing is not None):
        raise NotRecognized(f"the missing values of {rows.name!r} are not in the model")
    if missing:
        own = (group, mean, matrix, location, scale, missing[0])
        *others, _, mask = unpadded_parameters(part.missing)
        if not all(same_value(a, b) for a, b in zip(own, (*others, mask), strict=True)):
            raise NotRecognized(f"{part.missing.name!r} does not belong to {rows.name!r}")
    return mean


def group_parts_of(model: "pm.Model") -> dict["TensorVariable", GroupPart | NotRecognized]:
    """Map the precision matrices of each set of groups to their part, or to the reason why they have none."""
    out: dict[TensorVariable, GroupPart | NotRecognized] = {}
    for rv in model.free_RVs:
        if is_op(rv, tuple(GROUP_PRIORS)):
            try:
                out[rv] = recognise_groups(model, rv)
            except NotRecognized as reason:
                out[rv] = reason
    return out


def _shapes(model, share) -> tuple[float, float]:
    """Shapes of the beta distribution of a probability, zeros without one."""
    if share is None:
        return 0.0, 0.0
    alpha, beta = Expressions(model, parameters(share)[:2])({})
    return float(alpha), float(beta)


class GroupTables:
    """Rows of a recognised part, one table for each group, and the constants of its prior.

    Parameters
    ----------
    model : pymc.Model
    part : GroupPart
    compile_kwargs : dict, optional

    Attributes
    ----------
    names : dict
        Names of the value variables by role.
    tables : list of TableRows
        Empty until `load`, and without rows.
    scales, rates, design
        As kernels take them.
    edge, difference : (p, p) ndarray
        Nominal probabilities, strictly between 0 and 1 where a common one that is learned decides.
    shapes : tuple of float
        Of the beta distributions of the probabilities of an edge and of a difference; zeros without one.
    places : list of ndarray of int
        Positions of the missing values of each group among all missing values.
    """

    def __init__(self, model: "pm.Model", part: GroupPart, compile_kwargs: dict | None = None):
        from bayesstruct.precision.kernels.row_groups.sweep import CONTRASTS, INDICATORS

        self.names = {role: model.rvs_to_values[v].name for role, v in part.roles.items()}
        edge, difference, *constants = parameters(part.precision)
        if part.difference_share is not None:
            difference = parameters(part.difference_share)[4]
        if part.edge_share is not None:
            edge = parameters(part.edge_share)[3]
        known = Expressions(model, [edge, difference, *constants], compile_kwargs)({})
        self.edge, self.difference = (np.array(v, float, order="C") for v in known[:2])
        *scales, rates = known[2:]
        self.shapes = (*_shapes(model, part.edge_share), *_shapes(model, part.difference_share))
        self._log_prior: np.ndarray | None = None
        self.design = CONTRASTS if is_op(part.precision, GroupedSpikeSlabRV) else INDICATORS
        self.scales = (*(float(v) for v in scales), 0.0, 0.0)[:4]
        self.rates = np.asarray(rates, float)
        self.groups, self.p = len(self.rates), len(self.edge)
        self.tables: list[TableRows] = []
        self.places: list[np.ndarray] = []
        self.has_rows = part.rows is not None and part.mean is not None
        if part.rows is not None and part.mean is not None:
            self._given_rows = not is_op(part.rows, GroupedCovarianceRV)
            constants = [
                v
                for v in unpadded_parameters(part.rows)
                if v is not part.precision and v is not part.mean
            ]
            tensors = [observed_values(model, part.rows), *constants]
            self._data = Expressions(model, tensors, compile_kwargs, user=part.precision.name)
            self._mean = Expressions(model, parameters(part.mean), compile_kwargs)

    def shares(self, point: dict) -> np.ndarray:
        """Return the common probabilities of an edge and of a difference at a point, 1/2 for one that is not learned."""
        odds = [float(point[self.names[role]]) if role in self.names else 0.0 for role in SHARES]
        return 1.0 / (1.0 + np.exp(-np.array(odds)))

    def log_prior(self, point: dict) -> np.ndarray:
        """Logarithms of the prior probabilities of the relations of each pair, (p, p, 3)."""
        from bayesstruct.precision.kernels.row_groups.prior import log_relations
        from bayesstruct.precision.kernels.row_groups.shares import fill_relations

        if max(self.shapes) > 0:
            return fill_relations(self.edge, self.difference, self.shapes, self.shares(point))
        if self._log_prior is None:
            self._log_prior = log_relations(self.edge, self.difference)
        return self._log_prior

    def put_shares(self, shares: np.ndarray, point: dict) -> None:
        """Put the probabilities that are learned into a point; their log odds are finite also where they round to 0 or 1."""
        shares = np.clip(shares, 1e-300, 1.0 - 2.0**-53)
        for role, share in zip(SHARES, shares, strict=True):
            if role in self.names:
                point[self.names[role]] = np.asarray(np.log(share) - np.log1p(-share))

    def load(self, point: dict) -> None:
        """Read the table and the prior of the means, unless that was done."""
        if self.tables or not self.has_rows:
            return
        values, *constants = self._data(point)
        shape = (self.groups, self.p)
        self.centre, self.deviation = (np.broadcast_to(v, shape) for v in self._mean(point))
        if self._given_rows:
            self._load_rows(values, *constants)
        else:
            scale, n = constants
            self.tables = [TableScatter(*own) for own in zip(values, scale, n, strict=True)]
            self.places = [np.zeros(0, int)] * self.groups

    def _load_rows(self, values, group, location, scale, *missing):
        group = np.asarray(group).astype(int)
        mask = np.asarray(missing[0]) > 0 if missing else np.zeros(values.shape, bool)
        owner = group[np.nonzero(mask)[0]]
        for g in range(self.groups):
            own = group == g
            rows = (np.asarray(values, float)[own], location[g] * 1.0, scale[g] * 1.0)
            self.tables.append(TableRows(*rows, mask[own]))
            self.places.append(np.flatnonzero(owner == g))
