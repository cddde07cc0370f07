"""Edges of precision matrices in models of one's own."""

from dataclasses import replace

import numpy as np
import pymc as pm

from pytensor.graph.traversal import ancestors

from bayesstruct.core.recognition import parameters
from bayesstruct.core.recorded import Recorded
from bayesstruct.core.tensors import constant_value, random_ancestors
from bayesstruct.graphs.own_models import (
    EdgeParts,
    edge_parts,
    give_dims,
    prior_mean,
    refuse_negligible,
)
from bayesstruct.graphs.records import EdgePrior, EdgeScales
from bayesstruct.precision.model_parts.edges import (
    check_negligible,
    exceeding,
    independent_edge_prior,
)
from bayesstruct.precision.priors.edges import Edges, partial_correlations
from bayesstruct.precision.priors.fused import GraphicalFusedLassoRV, implied_fused_probability
from bayesstruct.precision.priors.g_wishart import GWishartRV, edge_matrix
from bayesstruct.precision.priors.group_lasso import (
    GraphicalGroupLassoRV,
    implied_group_probability,
)
from bayesstruct.precision.priors.horseshoe import GraphicalHorseshoeRV
from bayesstruct.precision.priors.implied import (
    implied_edge_probability,
    implied_horseshoe_probability,
    implied_joint_probability,
    implied_nonnegligible_probability,
)
from bayesstruct.precision.priors.nuclear import (
    GraphicalNuclearLassoRV,
    implied_nuclear_probability,
)
from bayesstruct.precision.priors.precision import (
    GraphicalLassoRV,
    GraphicalSpikeSlabRV,
    JointSpikeSlabRV,
)

__all__: list[str] = []

_MATRIX = ("node", "node_")
_SEED, _PRIOR_DRAWS = 20150201, 10_000  # fixed: equal models give equal Bayes factors
_PRIOR_NUMBERS = 4_000_000  # that these draws hold
_SCALES = ("spike_scale", "slab_scale", "diagonal_rate")


@edge_parts.register(GraphicalSpikeSlabRV)
def _spike_slab_parts(op, precision, negligible) -> EdgeParts:
    refuse_negligible(negligible)
    probability, *own, scale = parameters(precision)
    scales = {name: float(_constant(v)) for name, v in zip(_SCALES, own, strict=True)}
    constants: list[Recorded]
    if isinstance(op, JointSpikeSlabRV):
        columns = int(_constant(precision.shape[0]))
        constants = [EdgePrior(_joint_prior(precision, probability, scales))]
        size = constant_value(scale)
        if size is not None and _is_known(precision) and not _has_probability():
            # What readers compute the probability of an edge given the matrix from.
            upper = np.triu_indices(columns, 1)
            parts = _matrix_parts(
                precision, columns, _indicators(precision, probability[upper]), constants
            )
            return replace(parts, constants=(*constants, _scaled(scales, float(size))))
        return _matrix_parts(precision, columns, _indicators(precision), constants)
    nominal, beta = _nominal(probability)
    implied = implied_edge_probability(len(nominal), nominal, beta=beta, **scales)
    constants = [EdgePrior(implied)]
    size = constant_value(scale)
    if _conditional_probabilities(precision, probability) and size is not None:
        upper = np.triu_indices(len(nominal), 1)
        constants.append(_scaled(scales, float(size), nominal[upper]))

    return _matrix_parts(precision, len(nominal), _indicators(precision), constants)


def _joint_prior(precision, probability, scales) -> np.ndarray:
    """Prior probability of each edge when its parameters are random; NaN where it is not known."""
    size = int(_constant(precision.shape[0]))
    unknown = np.full(size * (size - 1) // 2, np.nan)
    if _others_depend(random_ancestors(probability), precision):
        return unknown
    draws = min(_PRIOR_DRAWS, max(100, _PRIOR_NUMBERS // size**2))
    try:
        nominal = pm.draw(probability, draws, random_seed=_SEED, mode="FAST_COMPILE")
    except NotImplementedError:  # a parameter without draws of its own, such as pm.Flat
        return unknown
    return implied_joint_probability(nominal, **scales)


def _others_depend(given, precision) -> bool:
    """Whether other variables or potentials of the model depend on these, but for those that depend on the matrix."""
    root, own = pm.modelcontext(None).root, {*given, precision}
    others = [v for v in (*root.basic_RVs, *root.potentials) if v not in own]
    return any(set(given) & set(ancestors([other], blockers=[precision])) for other in others)


def _scaled(scales, size, nominal=None) -> EdgeScales:
    spike, slab = (scales[name] * size for name in ("spike_scale", "slab_scale"))
    return EdgeScales(spike, slab, scales["diagonal_rate"] / size, nominal)


def _indicators(precision, probability=None):
    def add(name, dims):
        if probability is not None:
            pm.Deterministic("edge_probability", probability, dims=dims)
        return Edges(name, precision, dims=dims)

    return add


def _nominal(probability) -> tuple[np.ndarray, tuple[float, float] | None]:
    """Probability of each edge, and the shapes of its beta distribution if it is drawn."""
    known = constant_value(probability)
    if known is not None:
        return known, None
    [share] = random_ancestors(probability)
    alpha, beta, pattern, *_ = (_constant(v) for v in parameters(share))
    return pattern, (float(alpha), float(beta))


def _constant(tensor) -> np.ndarray:
    """Value of a parameter that the prior does not allow to be random."""
    return np.asarray(tensor.eval(mode="FAST_COMPILE"))


def _conditional_probabilities(precision, probability) -> bool:
    """Whether readers find what the probability of an edge given the matrix depends on."""
    names = [share.name for share in random_ancestors(probability)]
    drawn = ["edge_probability"] if _has_probability() else []
    return _is_known(precision) and names == drawn


def _has_probability() -> bool:
    return "edge_probability" in pm.modelcontext(None).named_vars


def _is_known(precision) -> bool:
    """Whether readers know a matrix by its name and dimensions, which it is given if it has none."""
    model = pm.modelcontext(None)
    give_dims(model, precision, _MATRIX)
    return (
        precision.name == "precision" and tuple(model.named_vars_to_dims[precision.name]) == _MATRIX
    )


def _matrix_parts(precision, p, add, constants) -> EdgeParts:
    model = pm.modelcontext(None)
    give_dims(model, precision, _MATRIX)
    source, target = np.triu_indices(p, 1)
    return EdgeParts(
        size=p,
        source=source,
        target=target,
        weight=partial_correlations(precision),
        add=add,
        constants=tuple(constants),
    )


@edge_parts.register(GraphicalLassoRV)
def _laplace_parts(op, precision, negligible) -> EdgeParts:
    rates, diagonal_rate = (_constant(v) for v in parameters(precision)[:2])
    off = rates[np.triu_indices(len(rates), 1)]

    def implied(cut):
        if np.ptp(off) > 0:
            return None
        return implied_nonnegligible_probability(
            len(rates), cut, off[0], diagonal_rate=float(diagonal_rate)
        )

    return _exceeding_parts(precision, len(rates), negligible, implied)


@edge_parts.register(GraphicalHorseshoeRV)
def _horseshoe_parts(op, precision, negligible) -> EdgeParts:
    scales, diagonal_rate = parameters(precision)
    columns, rate = int(_constant(precision.shape[0])), float(_constant(diagonal_rate))
    known, sources = constant_value(scales), random_ancestors(scales)

    def implied(cut):
        if known is None:
            width = float(_constant(parameters(sources[0])[0]))
            return implied_horseshoe_probability(columns, cut, width=width, diagonal_rate=rate)
        off = known[np.triu_indices(columns, 1)]
        if np.ptp(off) > 0:
            return None
        return implied_horseshoe_probability(
            columns, cut, global_scale=float(off[0]), diagonal_rate=rate
        )

    return _exceeding_parts(precision, columns, negligible, implied)


def _exceeding_parts(precision, p, negligible, implied) -> EdgeParts:
    """Edges that are partial correlations beyond a bound; `implied` returns their prior probability, None if pairs differ."""
    cut = 0.1 if negligible is None else float(negligible)
    check_negligible(cut)
    indicator = exceeding(partial_correlations(precision), cut)
    probability = implied(cut)
    if probability is None:
        probability = prior_mean(indicator)

    def add(name, dims):
        return pm.Deterministic(name, indicator, dims=dims)

    return _matrix_parts(precision, p, add, [EdgePrior(probability)])


@edge_parts.register(GWishartRV)
def _g_wishart_parts(op, precision, negligible) -> EdgeParts:
    refuse_negligible(negligible)
    _, scale, edge = parameters(precision)
    size = scale.type.shape[-1]
    if random_ancestors(edge):
        prior = independent_edge_prior(edge)
    else:
        prior = edge_matrix(_constant(edge), size)[np.triu_indices(size, 1)].astype(float)

    def add(name, dims):
        return pm.Deterministic(name, edge, dims=dims)

    return _matrix_parts(precision, size, add, [EdgePrior(np.array(prior))])


@edge_parts.register(GraphicalGroupLassoRV)
def _group_parts(op, precision, negligible) -> EdgeParts:
    rates, places, group_rates, order, diagonal_rate = (
        _constant(v) for v in parameters(precision)[:5]
    )

    def implied(cut):
        return implied_group_probability(
            len(rates),
            [row[row >= 0] for row in places],
            cut,
            entry_rates=rates,
            group_rates=group_rates,
            norm="linf" if np.isinf(order) else "l2",
            diagonal_ratio=float(diagonal_rate),
        )

    return _exceeding_parts(precision, len(rates), negligible, implied)


@edge_parts.register(GraphicalNuclearLassoRV)
def _nuclear_parts(op, precision, negligible) -> EdgeParts:
    rates, labels, block_rates, diagonal_rate = (_constant(v) for v in parameters(precision)[:4])

    def implied(cut):
        return implied_nuclear_probability(
            labels,
            cut,
            entry_rates=rates,
            block_rates=block_rates,
            diagonal_ratio=float(diagonal_rate),
        )

    return _exceeding_parts(precision, len(rates), negligible, implied)


@edge_parts.register(GraphicalFusedLassoRV)
def _fused_parts(op, precision, negligible) -> EdgeParts:
    rates, differences, diagonal_rate = (_constant(v) for v in parameters(precision)[:3])
    rate = rates[0, -1]

    def implied(cut):
        return implied_fused_probability(differences / rate, cut, rate, float(diagonal_rate))

    return _exceeding_parts(precision, len(rates), negligible, implied)
