"""Recognise mixtures of regressions: labels, parameters of clusters, columns and response."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    depends_on,
    is_op,
    parameters,
)
from bayesstruct.mixtures.priors.mixture_parameters import ClusterNormalsRV, ClusterVariancesRV
from bayesstruct.mixtures.priors.mixture_rows import (
    ClusterBinaryRV,
    ClusterCountRV,
    ClusterResponseRV,
    ClusterRowsRV,
)

if TYPE_CHECKING:
    import pymc as pm

    from pytensor.tensor import TensorVariable

__all__ = ["Mixture", "mixture_of"]


@dataclass(frozen=True, eq=False)
class Mixture:
    """A Dirichlet-process mixture of regressions.

    Attributes
    ----------
    cluster : TensorVariable
        Labels of the rows.
    mean, variance : TensorVariable
        Of the columns in each cluster.
    coefficient : TensorVariable
        Of the response in each cluster.
    noise : TensorVariable or None
        Variances of a normal response in each cluster.
    rows, response : TensorVariable
        The table.
    """

    cluster: "TensorVariable"
    mean: "TensorVariable"
    variance: "TensorVariable"
    coefficient: "TensorVariable"
    noise: "TensorVariable | None"
    rows: "TensorVariable"
    response: "TensorVariable"

    @property
    def variables(self) -> list:
        """Random variables that are drawn together, the labels first."""
        drawn = [self.cluster, self.mean, self.variance, self.coefficient, self.noise]
        return [v for v in drawn if v is not None]

    @property
    def counts(self) -> bool:
        """Whether the response is a count."""
        return is_op(self.response, ClusterCountRV)

    @property
    def hyperparameters(self) -> list:
        """Centre of the columns, then the parameters of the priors of means, coefficients and variances.

        The last one is the variance of the coefficients if the response is not normal.
        """
        normals = [*parameters(self.mean)[2:], *parameters(self.coefficient)[2:]]
        variances = [*parameters(self.variance)[1:]]
        if self.noise is None:
            last = [parameters(self.coefficient)[1]]
        else:
            last = [*parameters(self.noise)[1:]]
        return [parameters(self.response)[3], *normals, *variances, *last]


def mixture_of(model: "pm.Model", cluster: "TensorVariable") -> Mixture:
    """Collect what depends on the labels of a partition.

    Raises
    ------
    NotRecognized
        Says what keeps the labels from being drawn exactly.
    """
    children = children_of(model, cluster)
    rows = [rv for rv in children if is_op(rv, ClusterRowsRV)]
    responses = [rv for rv in children if is_op(rv, (ClusterResponseRV, ClusterBinaryRV))]
    if len(rows) != 1 or len(responses) != 1:
        names = ", ".join(repr(rv.name) for rv in children) or "nothing"
        raise NotRecognized(
            f"{names} depends on {cluster.name!r}, not one set of rows and one response"
        )
    [table], [response] = rows, responses
    labels, mean, variance = parameters(table)
    x, own, coefficient, _, *rest = parameters(response)
    if x is not table or labels is not cluster or own is not cluster:
        raise NotRecognized(
            f"{response.name!r} is not a response of {table.name!r} in the clusters of both"
        )
    noise = rest[0] if rest else None
    part = Mixture(cluster, mean, variance, coefficient, noise, table, response)
    _check_graph(model, part, children)
    _check_parameters(part)
    return part


def _check_graph(model, part, children):
    """Refuse a mixture with a variable that is not free or on which something else depends."""
    if set(children) != {*part.variables[1:], part.rows, part.response}:
        raise NotRecognized(f"something else depends on {part.cluster.name!r}")
    for rv in part.variables:
        if rv not in model.free_RVs or model.rvs_to_transforms.get(rv) is not None:
            raise NotRecognized(f"{rv.name!r} is observed or has a transform")
    for rv in (part.rows, part.response):
        if rv not in model.observed_RVs:
            raise NotRecognized(f"{rv.name!r} is not observed")
    wanted = [(part.mean, {part.rows}), (part.coefficient, {part.response})]
    wanted.append((part.variance, {part.mean, part.rows}))
    if part.noise is not None:
        wanted.append((part.noise, {part.coefficient, part.response}))
    for rv, users in wanted:
        if set(children_of(model, rv)) != users:
            raise NotRecognized(f"something else depends on {rv.name!r}")


def _check_parameters(part):
    """Refuse parameters that do not have the priors for which labels can be drawn."""
    for rv in part.variables[1:]:
        kind = ClusterVariancesRV if rv in (part.variance, part.noise) else ClusterNormalsRV
        if not is_op(rv, kind) or parameters(rv)[0] is not part.cluster:
            raise NotRecognized(
                f"{rv.name!r} does not have the prior of parameters of its clusters"
            )
    pairs = [(part.mean, part.variance), (part.coefficient, part.noise)]
    for rv, variance in pairs:
        if variance is not None and parameters(rv)[1] is not variance:
            raise NotRecognized(f"{variance.name!r} is not the variance of {rv.name!r}")
    given = [t for rv in part.variables[1:] for t in parameters(rv)[1:] if t not in part.variables]
    if depends_on([*given, parameters(part.response)[3]], part.cluster):
        raise NotRecognized(f"hyperparameters depend on {part.cluster.name!r}")
