"""Recognise latent features of a linear Gaussian model: features, loadings, and the table with its missing values."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytensor.graph.basic import Constant
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.basic import NormalRV
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    depends_on,
    is_claimed,
    is_op,
    parameters,
    without_casts,
)
from bayesstruct.features.priors.indian_buffet import SAMPLERS, FeatureLoadingsRV, IndianBuffetRV

if TYPE_CHECKING:
    import pymc as pm

    from pytensor.tensor import TensorVariable

__all__ = ["LinearFeatures", "linear_features_of", "linear_step_of"]


@dataclass(frozen=True, eq=False)
class LinearFeatures:
    """Features of rows that are normal around the sum of the loadings of their features.

    Attributes
    ----------
    feature, loading, rows : TensorVariable
        Which features rows have, their loadings on the columns, and the observed values of the table.
    baseline : TensorVariable
        Mean of a row without features.
    noise : TensorVariable
        Standard deviation, one number.
    unobserved : TensorVariable, optional
        The missing values of the table.
    missing : (n, d) ndarray of bool, optional
        Where these are.
    """

    feature: "TensorVariable"
    loading: "TensorVariable"
    rows: "TensorVariable"
    baseline: "TensorVariable"
    noise: "TensorVariable"
    unobserved: "TensorVariable | None" = None
    missing: np.ndarray | None = None

    @property
    def variables(self) -> list:
        """Random variables that are drawn together."""
        drawn = [self.feature, self.loading, self.unobserved]
        return [v for v in drawn if v is not None]


def linear_step_of(rv: "TensorVariable") -> str | None:
    """Name of the step that draws features of linear Gaussian models, their loadings and missing values.

    Parameters
    ----------
    rv : TensorVariable
        Any random variable of a model.

    Returns
    -------
    str or None
        As the IndianBuffet asks to which the variable belongs. None for variables of another kind;
        ``"latent_feature_gibbs"`` for loadings of anything but an IndianBuffet, which that step refuses.
    """
    if is_op(rv, FeatureLoadingsRV):
        feature = without_casts(parameters(rv)[0])
        return SAMPLERS[feature.owner.op.sampler if is_op(feature, IndianBuffetRV) else "gibbs"]
    for name in SAMPLERS.values():
        if is_claimed(rv, name):
            return name
    feature = rv if is_op(rv, IndianBuffetRV) else _features_with_unobserved(rv)
    return None if feature is None else SAMPLERS[feature.owner.op.sampler]


def _features_with_unobserved(values):
    """Return the features of the current model of whose table these are the missing values, or None."""
    import pymc as pm

    model = pm.Model.get_context(error_if_none=False)
    if model is None or not is_op(values, NormalRV) or values not in model.free_RVs:
        return None
    for feature in (v for v in model.free_RVs if is_op(v, IndianBuffetRV)):
        try:
            if linear_features_of(model, feature).unobserved is values:
                return feature
        except NotRecognized:
            continue
    return None


def linear_features_of(model: "pm.Model", feature: "TensorVariable") -> LinearFeatures:
    """Collect loadings and table around features.

    Raises
    ------
    NotRecognized
        Says what keeps them from being drawn exactly.
    """
    children = children_of(model, feature)
    loadings = [rv for rv in children if is_op(rv, FeatureLoadingsRV)]
    tables = [rv for rv in children if rv not in loadings]
    if len(loadings) != 1 or not 1 <= len(tables) <= 2:
        names = ", ".join(repr(rv.name) for rv in children) or "nothing"
        raise NotRecognized(f"{names} depends on {feature.name!r}")
    [loading] = loadings
    _check_only_child(model, loading, tables)
    if without_casts(parameters(loading)[0]) is not feature:
        raise NotRecognized(f"the loadings {loading.name!r} are not those of {feature.name!r}")
    for rv in (feature, loading):
        if rv not in model.free_RVs or model.rvs_to_transforms.get(rv) is not None:
            raise NotRecognized(f"{rv.name!r} is observed or has a transform")
    return _normal_table(model, feature, loading, tables)


def _check_only_child(model, loading, tables):
    if set(children_of(model, loading)) != set(tables):
        names = ", ".join(repr(rv.name) for rv in tables)
        raise NotRecognized(f"{names} is not all that depends on {loading.name!r}")


def _normal_table(model, feature, loading, tables):
    """Complete the features with their table, whole or in two: its observed and its missing values."""
    observed = [rv for rv in tables if is_op(rv, NormalRV) and rv in model.observed_RVs]
    if len(observed) != 1:
        names = ", ".join(repr(rv.name) for rv in tables)
        raise NotRecognized(f"{names} is not an observed Normal")
    [rows] = observed
    mean, noise = parameters(rows)
    seen, unobserved = None, None
    if len(tables) == 2:
        mean, seen = _masked(mean, rows)
        [unobserved] = [rv for rv in tables if rv is not rows]
        _check_unobserved(model, unobserved, mean, noise, seen)
    mean = without_casts(mean)
    baseline = _baseline(mean, feature, loading)
    if baseline is None or depends_on([noise, baseline], feature):
        raise NotRecognized(f"the mean of {rows.name!r} is not {feature.name} @ {loading.name}")
    if any(length != 1 for length in noise.type.shape):
        raise NotRecognized(f"the standard deviation of {rows.name!r} is not one number")
    missing = None if seen is None else ~seen
    return LinearFeatures(feature, loading, rows, baseline, noise, unobserved, missing)


def _check_unobserved(model, values, mean, noise, seen):
    """Refuse missing values that do not have the distribution of the observed ones."""
    if not is_op(values, NormalRV) or values not in model.free_RVs:
        raise NotRecognized(
            f"{values.name!r} is neither a loading nor the missing values of a Normal"
        )
    if model.rvs_to_transforms.get(values) is not None or children_of(model, values):
        raise NotRecognized(f"{values.name!r} has a transform, or something depends on it")
    other, own_noise = parameters(values)
    other, gaps = _masked(other, values)
    same = other is mean and _one_number(own_noise) is _one_number(noise)
    if not same or not np.array_equal(gaps, ~seen):
        raise NotRecognized(f"{values.name!r} has another distribution than the observed values")


def _masked(mean, rv):
    """Return a matrix and the mask by which some of its elements are taken."""
    owner = mean.owner
    if owner is not None and isinstance(owner.op, AdvancedSubtensor) and len(owner.inputs) == 2:
        matrix, mask = owner.inputs
        if isinstance(mask, Constant) and mask.data.dtype == bool and mask.ndim == matrix.ndim:
            return matrix, mask.data
    raise NotRecognized(f"the mean of {rv.name!r} is not a masked matrix")


def _one_number(tensor):
    """Return a number without the steps that only give it another shape."""
    while (owner := tensor.owner) is not None and isinstance(
        owner.op, DimShuffle | Subtensor | Elemwise
    ):
        cast = not isinstance(owner.op, Elemwise) or owner.op.scalar_op.name.startswith("Cast")
        if not cast or any(length != 1 for length in owner.inputs[0].type.shape):
            break
        tensor = owner.inputs[0]
    return tensor


def _product(tensor):
    """Return the two factors of a matrix product, without conversions of type, or None."""
    owner = tensor.owner
    if owner is None or type(getattr(owner.op, "core_op", owner.op)).__name__ not in (
        "Dot",
        "MatMul",
    ):
        return None
    return tuple(without_casts(v) for v in owner.inputs)


def _baseline(mean, feature, loading):
    """Return the sum of the terms beside the product of features and loadings, or None."""
    import pytensor.tensor as pt

    if _product(mean) == (feature, loading):
        return pt.constant(0.0)
    owner = mean.owner
    if owner is None or not (
        isinstance(owner.op, Elemwise) and owner.op.scalar_op.name in ("add", "Add")
    ):
        return None
    terms = [without_casts(v) for v in owner.inputs]
    products = [v for v in terms if _product(v) == (feature, loading)]
    others = [v for v in owner.inputs if without_casts(v) not in products]
    if len(products) != 1 or depends_on(others, loading):
        return None
    return sum(others[1:], others[0])
