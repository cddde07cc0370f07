"""Weights between latent features, and the linear predictors of pairs of objects that they make."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pytensor.compile.builders import OpFromGraph

from bayesstruct.core.distributions import GraphRV, zeros_like_draw
from bayesstruct.core.recognition import claim
from bayesstruct.core.tensors import as_float
from bayesstruct.data.arguments import choice
from bayesstruct.features.kernels.link_codes import DIAGONAL, FULL, KINDS, SYMMETRIC
from bayesstruct.features.ops.columns import is_used

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = [
    "FeatureInteractions",
    "FeatureInteractionsRV",
    "FeaturePairs",
    "feature_pairs",
]

_LOG_2PI = np.log(2.0 * np.pi)


class FeatureInteractionsRV(GraphRV):
    """Weights between features, zero for those that are not used."""

    _print_name = ("FeatureInteractions", "\\operatorname{FeatureInteractions}")

    options = ("kind", "positive")

    def __init__(self, *args, kind, **kwargs):
        out = "k" if kind == DIAGONAL else "k,l"
        signature = f"[rng],[size],(n,k),(m,l),()->[rng],({out})"
        super().__init__(*args, kind=kind, extended_signature=signature, **kwargs)

    @classmethod
    def build(cls, rng, size, feature, other, scale, *, kind, positive):
        """Build the graph of a draw."""
        kept = _kept(feature, other, kind)
        ndim = 1 if kind == DIAGONAL else 2
        deviation = scale[(..., *(None,) * ndim)]
        core = tuple(kept.shape)[kept.type.ndim - ndim :]
        if rv_size_is_none(size):
            batch = tuple((kept * deviation).shape)[:-ndim]
        else:
            batch = tuple(size)
        next_rng, draw = pt.random.normal(
            0.0, deviation, size=(*batch, *core), rng=rng, return_next_rng=True
        )
        if positive:
            draw = pt.abs(draw)
        if kind == SYMMETRIC:
            draw = pt.tril(draw) + pt.swapaxes(pt.tril(draw, -1), -1, -2)
        draw = pt.where(kept, draw, 0.0)
        return next_rng, draw


def _kept(feature, other, kind):
    """Which weights belong to features that are used."""
    used = is_used(feature)
    if kind == DIAGONAL:
        return used
    return pt.and_(used[..., :, None], is_used(other)[..., None, :])


class FeatureInteractions(Continuous):
    r"""Weights between the latent features of two objects, normal where both features are used.

    .. math::

        W_{kl} \sim N(0, \tau^2) \text{ if column k of Z and column l of U are not zero}, \qquad
        W_{kl} = 0 \text{ otherwise}

    Parameters
    ----------
    name : str
    feature : TensorVariable
        Z, (n, K), an :class:`IndianBuffet`.
    scale : tensor_like of float
        :math:`\tau`, above 0.
    other : TensorVariable, optional
        U, (m, L), features of the objects of another set. By default both objects are of one set.
    kind : {"full", "symmetric", "diagonal"}
        (K, L) weights; the same for (k, l) and (l, k); or (K,) weights of features that both objects have. The
        last two require one set.
    positive : bool, default False
        Half-normal weights in place of normal ones.
    **kwargs
        ``dims`` and the like.

    Raises
    ------
    ValueError
        For an unknown kind, or one that does not apply to two sets.

    Notes
    -----
    The density is relative to Lebesgue measure for pairs of features that are used, and to a unit mass at
    zero for the others. A symmetric matrix counts once for each pair.

    References
    ----------
    Miller, K., Griffiths, T. and Jordan, M. (2009). Nonparametric latent feature models for link prediction.
    *NIPS* 22, section 2.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            feature = bs.IndianBuffet("feature", 1.0, observations=30, max_features=20)
            interaction = bs.distributions.FeatureInteractions("interaction", feature, 1.0)
            eta = bias + bs.distributions.feature_pairs(feature, interaction, source, target)
            bs.distributions.FeatureLinks("y", eta, observed=links)
    """

    rv_type = FeatureInteractionsRV
    rv_op = FeatureInteractionsRV.rv_op
    support_point = zeros_like_draw

    @classmethod
    def dist(cls, feature, scale, *, other=None, kind="full", positive=False, **kwargs):
        """Create the distribution without a model."""
        code = KINDS.index(choice("kind", kind, KINDS))
        if other is not None and code != FULL:
            raise ValueError(f"`kind` must be 'full' where objects are of two sets, not {kind!r}")
        feature = pt.as_tensor_variable(feature)
        other = feature if other is None else pt.as_tensor_variable(other)
        for features in (feature, other):
            claim(features, "link_feature_gibbs")
        return super().dist(
            [feature, other, as_float(scale)], kind=code, positive=bool(positive), **kwargs
        )


@_logprob.register(FeatureInteractionsRV)
def _interactions_logp(op, values, rng, size, feature, other, scale, **kwargs):
    (value,) = values
    ndim = 1 if op.kind == DIAGONAL else 2
    deviation = scale[(..., *(None,) * ndim)]
    kept = _kept(feature, other, op.kind)
    slab = -0.5 * (value / deviation) ** 2 - pt.log(deviation) - 0.5 * _LOG_2PI
    if op.positive:
        slab = pt.where(pt.ge(value, 0.0), slab + np.log(2.0), -np.inf)
    terms = pt.where(kept, slab, pt.where(pt.eq(value, 0.0), 0.0, -np.inf))
    if op.kind != SYMMETRIC:
        return terms.sum(axis=tuple(range(-ndim, 0)))
    same = pt.eq(value, pt.swapaxes(value, -1, -2)).all(axis=(-1, -2))
    places = pt.arange(value.shape[-1])
    # Not `tril`, which multiplies: zero times infinity is NaN.
    terms = pt.where(pt.ge(places[:, None], places), terms, 0.0)
    return pt.where(same, terms.sum(axis=(-1, -2)), -np.inf)


class FeaturePairs(OpFromGraph):
    """Sums of the weights between the features of pairs of objects, an Op that recognisers know by its type."""


def feature_pairs(
    feature: Any, interaction: Any, source: Any, target: Any, *, other: Any = None
) -> "TensorVariable":
    r"""Sum up the weights between the features of the two objects of each pair.

    .. math:: \sum_{kl} z_{ik} W_{kl} u_{jl}, \qquad \text{or} \quad \sum_k w_k z_{ik} z_{jk}

    Parameters
    ----------
    feature : TensorVariable
        Z, (n, K).
    interaction : TensorVariable
        :class:`FeatureInteractions`, (K, L) or (K,).
    source, target : (d,) array_like of int
        Positions of the objects of each pair, as rows of `feature` and of `other`.
    other : TensorVariable, optional
        U, (m, L); by default `feature`.

    Returns
    -------
    TensorVariable
        (d,)

    Raises
    ------
    ValueError
        If the two arrays differ in length or are not positions.
    """
    feature, interaction = pt.as_tensor_variable(feature), pt.as_tensor_variable(interaction)
    source, target = (pair_positions(v, n) for v, n in ((source, "source"), (target, "target")))
    if len(source) != len(target):
        raise ValueError(
            f"`source` has {len(source)} objects and `target` {len(target)}: give one of each for each pair"
        )
    outer = feature if other is None else pt.as_tensor_variable(other)
    one_set = outer is feature
    parts = [feature, interaction] if one_set else [feature, interaction, outer]
    inner = [v.type() for v in parts]
    z, w, u = inner[0].astype(inner[1].type.dtype), inner[1], inner[-1].astype(inner[1].type.dtype)
    if one_set:
        u = z
    left = z * w if w.type.ndim == 1 else z @ w
    places = [pt.constant(source), pt.constant(target)]
    inner_places = [v.type() for v in places]
    total = (left @ u.T)[inner_places[0], inner_places[1]]
    op = FeaturePairs([*inner, *inner_places], [total], inline=True)
    return cast("TensorVariable", op(*parts, *places))


def pair_positions(values, name: str) -> np.ndarray:
    """Return the positions of objects, one for each pair."""
    values = np.asarray(values)
    if values.ndim != 1 or values.dtype.kind not in "iu" or (values < 0).any():
        raise ValueError(
            f"`{name}` must have one position, a whole number from 0 on, for each pair"
        )
    return values.astype(np.int64)
