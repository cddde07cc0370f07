r"""How much of each latent feature a row has, and rows of a table made of scores and loadings."""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, SymbolicRandomVariable
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pymc.pytensorf import normalize_rng_param
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.recognition import claim
from bayesstruct.core.tensors import as_float

__all__ = ["FactorRows", "FactorRowsRV", "FeatureScores", "FeatureScoresRV"]

_LAWS = ("normal", "laplace")
_LOG_2PI = np.log(2.0 * np.pi)


class FeatureScoresRV(SymbolicRandomVariable):
    """Scores of features, zero for rows that do not have them."""

    extended_signature = "[rng],[size],(n,k)->[rng],(n,k)"
    _print_name = ("FeatureScores", "\\operatorname{FeatureScores}")

    def __init__(self, *args, law, **kwargs):
        self.law = law
        super().__init__(*args, **kwargs)

    @classmethod
    def rv_op(cls, feature, *, law, size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        shape = feature.shape if rv_size_is_none(size) else (*size, *feature.shape[-2:])
        draw_from = getattr(pt.random, law)
        next_rng, draw = draw_from(0.0, 1.0, size=shape, rng=rng, return_next_rng=True)
        draw = pt.where(pt.gt(feature, 0), draw, 0.0)
        return cls(inputs=[rng, size, feature], outputs=[next_rng, draw], law=law)(
            rng, size, feature
        )

    def rebuild_rv(self, *params, **kwargs):
        """Build the graph of a draw of another size."""
        return type(self).rv_op(*params, **kwargs, law=self.law)


class FeatureScores(Continuous):
    r"""Scores of latent features: of unit scale where a row has the feature, zero where it does not.

    .. math:: w_{ik} = z_{ik} v_{ik}, \qquad v_{ik} \sim N(0, 1) \text{ or } \mathrm{Laplace}(0, 1)

    Parameters
    ----------
    name : str
    feature : TensorVariable
        (n, K), an :class:`IndianBuffet`.
    law : {"normal", "laplace"}
    **kwargs
        ``dims`` and the like.

    Raises
    ------
    ValueError
        For an unknown law.

    Notes
    -----
    The density is relative to Lebesgue measure for entries that are there, and to a unit mass at zero for
    the others.
    """

    rv_type = FeatureScoresRV
    rv_op = FeatureScoresRV.rv_op

    @classmethod
    def dist(cls, feature, *, law="normal", **kwargs):
        """Create the distribution without a model."""
        if law not in _LAWS:
            raise ValueError(f'`law` is "normal" or "laplace", it is {law!r}')
        feature = pt.as_tensor_variable(feature)
        # pm.sample asks steps without telling them the model: this tells whose features they are.
        claim(feature, "sparse_factor_gibbs")
        return super().dist([feature], law=law, **kwargs)

    def support_point(rv, size, feature):
        """Return one for the entries that are there."""
        return pt.zeros(rv.shape) + pt.gt(feature, 0)


@_logprob.register(FeatureScoresRV)
def _scores_logp(op, values, rng, size, feature, **kwargs):
    (value,) = values
    if op.law == "normal":
        slab = -0.5 * value**2 - 0.5 * _LOG_2PI
    else:
        slab = -pt.abs(value) - np.log(2.0)
    spike = pt.where(pt.eq(value, 0.0), 0.0, -np.inf)
    return pt.where(pt.gt(feature, 0), slab, spike).sum(axis=(-1, -2))


class FactorRowsRV(SymbolicRandomVariable):
    """Rows of a table given scores and loadings."""

    extended_signature = "[rng],[size],(k),(k,d),(d),(d)->[rng],(d)"
    _print_name = ("FactorRows", "\\operatorname{FactorRows}")

    @classmethod
    def rv_op(cls, score, loading, noise, seen, *, size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        mean = _mean(score, loading)
        shape = None if rv_size_is_none(size) else (*size, loading.shape[-1])
        next_rng, draw = pt.random.normal(mean, noise, size=shape, rng=rng, return_next_rng=True)
        inputs = [rng, size, score, loading, noise, seen]
        return cls(inputs=inputs, outputs=[next_rng, draw])(*inputs)


def _mean(score, loading):
    # One product of matrices where all rows have the same loadings, as they have but for batches.
    return score @ loading if loading.type.ndim == 2 else (score[..., None, :] @ loading)[..., 0, :]


class FactorRows(Continuous):
    r"""Rows of a table: scores times loadings and independent normal noise.

    .. math:: x_{ij} \sim N\Bigl(\sum_k w_{ik} a_{kj}, \sigma_j^2\Bigr)

    Parameters
    ----------
    name : str
    score : TensorVariable
        (n, K).
    loading : TensorVariable
        (K, d).
    noise : tensor_like of float
        (d,) standard deviations of the columns.
    seen : (n, d) array_like of bool, optional
        Which cells count; by default all. The others are summed out, whatever their value, NaN included.
    **kwargs
        ``observed``, ``dims`` and the like.
    """

    rv_type = FactorRowsRV
    rv_op = FactorRowsRV.rv_op

    @classmethod
    def dist(cls, score, loading, noise, *, seen=None, **kwargs):
        """Create the distribution without a model."""
        score, loading = as_float(score), as_float(loading)
        seen = pt.ones(loading.shape[-1:]) if seen is None else as_float(seen)
        return super().dist([score, loading, as_float(noise), seen], **kwargs)

    def support_point(rv, size, score, loading, *_):
        """Return the means."""
        return pt.zeros(rv.shape) + _mean(score, loading)


@_logprob.register(FactorRowsRV)
def _rows_logp(op, values, rng, size, score, loading, noise, seen, **kwargs):
    (value,) = values
    z = (value - _mean(score, loading)) / noise
    cells = -0.5 * z**2 - pt.log(noise) - 0.5 * _LOG_2PI
    return pt.where(pt.gt(seen, 0), cells, 0.0).sum(axis=-1)
