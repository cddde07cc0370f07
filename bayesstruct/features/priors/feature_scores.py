r"""Scores of latent features, which say how much of each a row has, and rows made of scores and loadings."""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.recognition import claim
from bayesstruct.core.tensors import as_drawn, as_float
from bayesstruct.data.arguments import choice

__all__ = ["FactorRows", "FactorRowsRV", "FeatureScores", "FeatureScoresRV"]

_DISTRIBUTIONS = ("normal", "laplace")
_LOG_2PI = np.log(2.0 * np.pi)


class FeatureScoresRV(GraphRV):
    """Scores of features, zero for rows that do not have them."""

    extended_signature = "[rng],[size],(n,k)->[rng],(n,k)"
    _print_name = ("FeatureScores", "\\operatorname{FeatureScores}")

    options = ("distribution",)

    @classmethod
    def build(cls, rng, size, feature, *, distribution):
        """Build the graph of a draw."""
        shape = feature.shape if rv_size_is_none(size) else (*size, *feature.shape[-2:])
        draw_from = getattr(pt.random, distribution)
        next_rng, draw = draw_from(0.0, 1.0, size=shape, rng=rng, return_next_rng=True)
        draw = pt.where(pt.gt(feature, 0), draw, 0.0)
        return next_rng, draw


class FeatureScores(Continuous):
    r"""Scores of latent features: of unit scale where a row has the feature, zero where it does not.

    .. math:: w_{ik} = z_{ik} v_{ik}, \qquad v_{ik} \sim N(0, 1) \text{ or } \mathrm{Laplace}(0, 1)

    Parameters
    ----------
    name : str
    feature : TensorVariable
        (n, K), an :class:`IndianBuffet`.
    distribution : {"normal", "laplace"}
        Of the scores that are not zero.
    **kwargs
        ``dims`` and the like.

    Raises
    ------
    ValueError
        For another distribution.

    Notes
    -----
    The density is relative to Lebesgue measure for entries that are there, and to a unit mass at zero for
    the others.
    """

    rv_type = FeatureScoresRV
    rv_op = FeatureScoresRV.rv_op

    @classmethod
    def dist(cls, feature, *, distribution="normal", **kwargs):
        """Create the distribution without a model."""
        choice("distribution", distribution, _DISTRIBUTIONS)
        feature = pt.as_tensor_variable(feature)
        # pm.sample asks steps without telling them the model: this tells which step draws these.
        claim(feature, "sparse_factor_gibbs")
        return super().dist([feature], distribution=distribution, **kwargs)

    def support_point(rv, size, feature):
        """Return one for the entries that are there."""
        return as_drawn(pt.gt(feature, 0), rv, size)


@_logprob.register(FeatureScoresRV)
def _scores_logp(op, values, rng, size, feature, **kwargs):
    (value,) = values
    if op.distribution == "normal":
        slab = -0.5 * value**2 - 0.5 * _LOG_2PI
    else:
        slab = -pt.abs(value) - np.log(2.0)
    spike = pt.where(pt.eq(value, 0.0), 0.0, -np.inf)
    return pt.where(pt.gt(feature, 0), slab, spike).sum(axis=(-1, -2))


class FactorRowsRV(GraphRV):
    """Rows of a table given scores and loadings."""

    extended_signature = "[rng],[size],(k),(k,d),(d),(d)->[rng],(d)"
    _print_name = ("FactorRows", "\\operatorname{FactorRows}")

    @classmethod
    def build(cls, rng, size, score, loading, noise, seen):
        """Build the graph of a draw."""
        mean = _mean(score, loading)
        shape = None if rv_size_is_none(size) else (*size, loading.shape[-1])
        next_rng, draw = pt.random.normal(mean, noise, size=shape, rng=rng, return_next_rng=True)
        return next_rng, draw


def _mean(score, loading):
    # One product of matrices if all rows have the same loadings, which is so except in batches.
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
        Which values of the table were observed; by default all. The others are summed out, whatever they are, NaN
        included.
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
        return as_drawn(_mean(score, loading), rv, size)


@_logprob.register(FactorRowsRV)
def _rows_logp(op, values, rng, size, score, loading, noise, seen, **kwargs):
    (value,) = values
    z = (value - _mean(score, loading)) / noise
    terms = -0.5 * z**2 - pt.log(noise) - 0.5 * _LOG_2PI
    return pt.where(pt.gt(seen, 0), terms, 0.0).sum(axis=-1)
