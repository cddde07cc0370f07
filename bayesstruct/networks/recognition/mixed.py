"""Recognise a Bayesian network of columns of several kinds in a model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.missing import observed_values
from bayesstruct.core.recognition import (
    NotRecognized,
    is_op,
    unpadded_parameters,
)
from bayesstruct.networks.kernels.mixed_layout import MixedLayout
from bayesstruct.networks.priors.incomplete_mixed import (
    IncompleteMixedNetworkRV,
    MissingMixedValuesRV,
)
from bayesstruct.networks.priors.mixed_networks import MixedNetworkRV, MixedParametersRV
from bayesstruct.networks.recognition.network import dependents

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor import TensorVariable

    from bayesstruct.core.missing import Mask
    from bayesstruct.networks.kernels.scores.mixed import MixedScore

__all__ = ["RecognizedMixture", "mixed_network_of"]


@dataclass(frozen=True, eq=False)
class RecognizedMixture:
    """Part of a model that is a Bayesian network of columns of several kinds.

    Attributes
    ----------
    dag, parameters, rows : TensorVariable
        The graph, the parameters given it, and the observed table.
    missing : TensorVariable or None
        Missing values of the table.
    layout : MixedLayout
    deviation : float
        Standard deviation of the prior of coefficients.
    z : (n, d) ndarray of float
        Table of standardised numbers, and states; numbers of no meaning where values are missing.
    was_set : (n, d) ndarray of bool
    location, scale : (d,) ndarray of float
        By which numbers were standardised; 0 and 1 for states.
    """

    dag: "TensorVariable"
    parameters: "TensorVariable"
    rows: "TensorVariable"
    layout: MixedLayout
    deviation: float
    z: np.ndarray
    was_set: np.ndarray
    location: np.ndarray
    scale: np.ndarray
    missing: "TensorVariable | None" = None

    @property
    def variables(self) -> list:
        """Random variables that are drawn together."""
        return [self.dag, self.parameters, *([] if self.missing is None else [self.missing])]

    @property
    def missing_name(self) -> str:
        """Name of the missing values; empty if there are none."""
        return "" if self.missing is None else str(self.missing.name)

    @property
    def mask(self) -> "Mask":
        """Which values are missing, if some are."""
        return self.rows.owner.op.mask

    def score(self, z: np.ndarray | None = None) -> "MixedScore":
        """Local scores of the table, or of another one of the same rows, complete and standardised."""
        from bayesstruct.networks.kernels.scores.mixed import MixedScore

        return MixedScore(
            self.z if z is None else z,
            self.layout.families,
            self.layout.states,
            scale=self.deviation,
            interventions=self.was_set,
        )


def mixed_network_of(model: "Model", dag: "TensorVariable") -> RecognizedMixture:
    """Recognise the network around a graph, and read its table.

    Raises
    ------
    NotRecognized
        Says which part of the model is not that of such a network.
    """
    if dag not in model.free_RVs:
        raise NotRecognized(f"{dag.name!r} is observed")
    family = dependents(model, dag)
    vector = _only(family, MixedParametersRV, "vectors of parameters")
    rows = _only(family, (MixedNetworkRV, IncompleteMixedNetworkRV), "tables")
    if strange := [rv.name for rv in family if rv not in (vector, rows)]:
        raise NotRecognized(f"{', '.join(map(repr, strange))} depends on {dag.name!r}")
    if rows not in model.observed_RVs:
        raise NotRecognized(f"{rows.name!r} is not observed")
    if vector not in model.free_RVs:
        raise NotRecognized(f"{vector.name!r} is observed")
    if model.rvs_to_transforms.get(vector) is not None:
        raise NotRecognized(f"{vector.name!r} has a transform")
    graph, deviation = unpadded_parameters(vector)
    of_rows, used, *units = unpadded_parameters(rows)
    missing = None
    if is_op(rows, IncompleteMixedNetworkRV):
        *units, missing = units
        _check_missing(model, rows, missing)
    layout = vector.owner.op.layout
    if (
        graph is not dag
        or of_rows is not dag
        or used is not vector
        or rows.owner.op.layout != layout
    ):
        raise NotRecognized(f"the parameters of {rows.name!r} are not linked as in a network")
    tensors = [deviation, *units, observed_values(model, rows)]
    values = Expressions(model, tensors)(model.initial_point())
    width, centre, spread, setting, x = (np.asarray(v, float) for v in values)
    was_set = ~np.isnan(np.broadcast_to(setting, x.shape))
    z = (x - centre) / spread
    return RecognizedMixture(
        dag, vector, rows, layout, float(width), z, was_set, centre, spread, missing
    )


def _check_missing(model, rows, missing):
    """Refuse missing values that are not drawn, are those of another table, or act on something else."""
    if not is_op(missing, MissingMixedValuesRV) or missing.owner.op.mask is not rows.owner.op.mask:
        raise NotRecognized(f"{missing.name!r} are not the values that {rows.name!r} misses")
    if missing not in model.free_RVs:
        raise NotRecognized(f"{missing.name!r} is observed")
    if strange := [rv.name for rv in dependents(model, missing) if rv is not rows]:
        raise NotRecognized(f"{', '.join(map(repr, strange))} depends on {missing.name!r}")


def _only(family, kind, plural):
    found = [rv for rv in family if is_op(rv, kind)]
    if len(found) != 1:
        raise NotRecognized(f"there are {len(found)} {plural} of its network, not one")
    return found[0]
