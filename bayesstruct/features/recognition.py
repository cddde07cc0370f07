"""Recognise linear Gaussian latent features in a model: features, loadings, the table and its gaps."""

from dataclasses import dataclass

import numpy as np

from pytensor.graph.basic import Constant
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.basic import NormalRV
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from bayesstruct.core.recognition import NotRecognized, children_of, depends_on, is_op, parameters
from bayesstruct.features.priors.indian_buffet import SAMPLERS, FeatureLoadingsRV, IndianBuffetRV

__all__ = ["FeaturePart", "FeatureTable", "features_of", "sampler_of"]


@dataclass
class FeaturePart:
    """Features, their loadings and the table, with its missing cells if there are any."""

    feature: object
    loading: object
    rows: object
    baseline: object
    noise: object
    cells: object = None
    missing: object = None

    @property
    def variables(self) -> list:
        """Random variables that the step draws."""
        drawn = [self.feature, self.loading, self.cells]
        return [v for v in drawn if v is not None]


class FeatureTable:
    """The table of a recognised part at a point, without what depends on neither feature nor loading."""

    def __init__(self, part, observed):
        self.cells = None if part.cells is None else part.cells.name
        self.missing = part.missing
        if part.missing is None:
            self.x = np.asarray(observed, float)
        else:
            self.x = np.empty(part.missing.shape)
            self.x[~part.missing] = observed

    def residuals(self, point, baseline):
        """Return the completed table less the baseline, (n, d)."""
        if self.cells is not None:
            self.x[self.missing] = point[self.cells]
        return np.ascontiguousarray(self.x - baseline)

    def without_gaps(self, residuals):
        """Return the residuals with NaN where the table has no cell."""
        out = np.array(residuals)
        if self.missing is not None:
            out[self.missing] = np.nan
        return out

    def draw_cells(self, rng, point, mean, noise):
        """Draw the missing cells given the mean of the table, into the point."""
        if self.cells is not None:
            mean = np.broadcast_to(mean, self.x.shape)[self.missing]
            point[self.cells] = mean + noise * rng.standard_normal(len(mean))


def sampler_of(rv):
    """Sampler that the features ask for to which a variable belongs: themselves, loadings, missing cells.

    Returns
    -------
    str or None
        None for variables of another kind; ``"gibbs"`` for loadings of anything but an IndianBuffet, which
        are refused later.
    """
    if is_op(rv, FeatureLoadingsRV):
        feature = without_casts(parameters(rv)[0])
        return feature.owner.op.sampler if is_op(feature, IndianBuffetRV) else "gibbs"
    if (told := getattr(rv.tag, "drawn_by", None)) in SAMPLERS:
        return told  # missing cells of a model of ours, outside of its context
    feature = rv if is_op(rv, IndianBuffetRV) else _features_with_cells(rv)
    return None if feature is None else feature.owner.op.sampler


def _features_with_cells(cells):
    """Return the features of the current model of whose table these are the missing cells, or None."""
    import pymc as pm

    model = pm.Model.get_context(error_if_none=False)
    if model is None or not is_op(cells, NormalRV) or cells not in model.free_RVs:
        return None
    for feature in (v for v in model.free_RVs if is_op(v, IndianBuffetRV)):
        try:
            if features_of(model, feature).cells is cells:
                return feature
        except NotRecognized:
            continue
    return None


def features_of(model, feature) -> FeaturePart:
    """Collect loadings and table around features.

    Raises
    ------
    NotRecognized
        Says what stands in the way.
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
    """Return the part of a table, whole or in two: its observed and its missing cells."""
    observed = [rv for rv in tables if is_op(rv, NormalRV) and rv in model.observed_RVs]
    if len(observed) != 1:
        names = ", ".join(repr(rv.name) for rv in tables)
        raise NotRecognized(f"{names} is not an observed Normal")
    [rows] = observed
    mean, noise = parameters(rows)
    seen, cells = None, None
    if len(tables) == 2:
        mean, seen = _masked(mean, rows)
        [cells] = [rv for rv in tables if rv is not rows]
        _check_cells(model, cells, mean, noise, seen)
    mean = without_casts(mean)
    baseline = _baseline(mean, feature, loading)
    if baseline is None or depends_on([noise, baseline], feature):
        raise NotRecognized(f"the mean of {rows.name!r} is not {feature.name} @ {loading.name}")
    if any(length != 1 for length in noise.type.shape):
        raise NotRecognized(f"the standard deviation of {rows.name!r} is not one number")
    missing = None if seen is None else ~seen
    return FeaturePart(feature, loading, rows, baseline, noise, cells, missing)


def _check_cells(model, cells, mean, noise, seen):
    """Refuse missing cells that do not have the law of the observed ones."""
    if not is_op(cells, NormalRV) or cells not in model.free_RVs:
        raise NotRecognized(f"{cells.name!r} is neither a loading nor missing cells of a Normal")
    if model.rvs_to_transforms.get(cells) is not None or children_of(model, cells):
        raise NotRecognized(f"{cells.name!r} has a transform, or something depends on it")
    other, own_noise = parameters(cells)
    other, gaps = _masked(other, cells)
    same = other is mean and _one_number(own_noise) is _one_number(noise)
    if not same or not np.array_equal(gaps, ~seen):
        raise NotRecognized(f"{cells.name!r} has another law than the observed cells")


def _masked(mean, rv):
    """Return a matrix and the mask with which some of its cells are taken."""
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


def without_casts(tensor):
    while tensor.owner is not None and (
        (
            isinstance(tensor.owner.op, Elemwise)
            and tensor.owner.op.scalar_op.name.startswith("Cast")
        )
        or (isinstance(tensor.owner.op, DimShuffle) and tensor.owner.op.is_left_expand_dims)
    ):
        tensor = tensor.owner.inputs[0]
    return tensor


def _baseline(mean, feature, loading):
    """Return what is added to the product of features and loadings, or None."""
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
