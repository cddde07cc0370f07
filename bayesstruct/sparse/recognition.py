"""Recognise regressions whose coefficients have a spike-and-slab prior.

Recognised is a vector of coefficients ``w`` with a prior of
:mod:`bayesstruct.sparse.priors.spike_and_slab` that enters one observed variable, once, as
``X @ w`` beside terms that do not contain it: in the mean of a ``pm.Normal`` or ``pm.StudentT``, the logit
of a ``pm.Bernoulli``, the logarithm of the mean of a ``pm.Poisson`` or ``pm.NegativeBinomial``, or `eta` of a
``pm.OrderedLogistic`` or ``pm.OrderedProbit``. ``X`` is data; everything else, the noise, the other terms and the parameters of
the prior, may be random.

A matrix ``W`` that enters as ``X @ W.T`` is one such regression for each column of the response,
with the row of ``W`` as its coefficients.
"""

import functools
import operator

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import equal_computations
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Add, Exp, Identity, Log, Mul, Neg, Sub, TrueDiv
from pytensor.scalar.math import Sigmoid
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.random.basic import (
    BernoulliRV,
    CategoricalRV,
    NegBinomialRV,
    NormalRV,
    PoissonRV,
    StudentTRV,
)

from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    depends_on,
    is_elemwise,
    is_op,
    parameters,
    unpad,
)
from bayesstruct.core.tensors import random_ancestors

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor.variable import TensorVariable

__all__ = ["SUPPORTED_REGRESSIONS", "RegressionPart", "recognize_regression"]

SUPPORTED_REGRESSIONS = (
    "Supported are `pm.Normal(mu, sigma, observed=y)`, `pm.StudentT(nu, mu, sigma, observed=y)`, "
    "`pm.Bernoulli(logit_p=mu, observed=y)`, `pm.Poisson(pm.math.exp(mu), observed=y)`, "
    "`pm.NegativeBinomial(mu=pm.math.exp(mu), alpha=alpha, observed=y)`, `pm.OrderedLogistic(eta=mu, cutpoints=c, observed=y)` and "
    "`pm.OrderedProbit` likewise, where `mu` is `X @ w` (`X @ w.T` for a matrix), X being data, plus terms without `w`, and "
    "nothing else depends on `w`"
)
_SHAPES = {1: "vector", 2: "matrix"}
_LOG_LINKS = ("poisson", "negative_binomial")


@dataclass
class RegressionPart:
    """Coefficients of one regression, or of one for each row, and the parts of their conditional.

    Attributes
    ----------
    coefficients : TensorVariable
        A vector or a matrix.
    response : TensorVariable or None
        None if nothing depends on the coefficients.
    design : TensorVariable or None
        The predictors, which are not random.
    rest : TensorVariable or None
        Sum of the other terms of the mean; None if there are none.
    noise : TensorVariable or None
        Standard deviation, or scale of the t distribution; None for a logistic regression.
    freedom : TensorVariable or None
        Degrees of freedom of the t distribution; None for others.
    family : str
        "normal", "student", "logistic", "poisson", "negative_binomial", "ordered_logistic" or "ordered_probit".
    others : list of TensorVariable
        Further parameters: alpha of a negative binomial; cutpoints of an ordered response, and the standard deviation of
        a probit.
    """

    coefficients: "TensorVariable"
    response: "TensorVariable | None" = None
    design: "TensorVariable | None" = None
    rest: "TensorVariable | None" = None
    noise: "TensorVariable | None" = None
    freedom: "TensorVariable | None" = None
    family: str = "normal"
    others: "list[TensorVariable]" = field(default_factory=list)

    @property
    def logistic(self) -> bool:
        """Whether the response is 0/1."""
        return self.family == "logistic"

    def require(self, *families: str) -> None:
        """Raise `NotRecognized` unless the response is of one of these families, or there is none."""
        if self.response is not None and self.family not in families:
            kind = self.family.replace("_", " ")
            raise NotRecognized(f"{self.response.name!r} has the distribution {kind!r}")


def recognize_regression(model: "Model", coefficients: "TensorVariable") -> RegressionPart:
    """Find the regression of a vector of coefficients, or the regressions of a matrix.

    Parameters
    ----------
    model : pymc.Model
    coefficients : TensorVariable
        Model variable with a prior of :mod:`bayesstruct.sparse.priors.spike_and_slab`.

    Returns
    -------
    RegressionPart

    Raises
    ------
    NotRecognized
        If the coefficients are used in another way; says in which.
    """
    name = coefficients.name
    if getattr(coefficients.owner.op, "slab", None) == "cauchy":
        raise NotRecognized(f"{name!r} has a Cauchy slab, which no regression is drawn with")
    if coefficients.type.ndim not in _SHAPES:
        raise NotRecognized(f"{name!r} is neither a vector nor a matrix")
    if coefficients not in model.free_RVs:
        raise NotRecognized(f"{name!r} is observed")
    if model.rvs_to_transforms.get(coefficients) is not None:
        raise NotRecognized(f"{name!r} has a transform")
    children = children_of(model, coefficients)
    if not children:
        return RegressionPart(coefficients)
    if len(children) > 1:
        names = ", ".join(repr(child.name) for child in children)
        raise NotRecognized(f"several terms depend on {name!r}: {names}")
    [response] = children
    if response not in model.observed_RVs:
        raise NotRecognized(f"{response.name!r} is not observed")
    if response.type.ndim != coefficients.type.ndim:
        shape = _SHAPES[coefficients.type.ndim]
        raise NotRecognized(f"{response.name!r} is not a {shape}, as {name!r} is")
    mean, found = _likelihood(response, coefficients)
    if not depends_on([mean], coefficients):
        raise NotRecognized(f"{name!r} does not enter the mean of {response.name!r}")
    mean, exposure = _log_link(mean, coefficients) if found["family"] in _LOG_LINKS else (mean, [])
    design, rest = _split(mean, coefficients)
    if random_ancestors(design):
        raise NotRecognized(f"the predictors that {name!r} multiplies are random")
    terms = exposure if rest is None else [rest, *exposure]
    rest = functools.reduce(operator.add, terms) if terms else None
    return RegressionPart(coefficients, response, design, rest, **found)


def _likelihood(response, w):
    """Mean, logit or `eta` of a response, and what a `RegressionPart` says of its distribution."""
    if is_op(response, NormalRV | StudentTRV):
        *freedom, mean, noise = parameters(response)
        _refuse_dependent(response, w, sigma=noise, **({"nu": freedom[0]} if freedom else {}))
        if freedom:
            return mean, {"family": "student", "noise": noise, "freedom": freedom[0]}
        return mean, {"family": "normal", "noise": noise}
    if is_op(response, BernoulliRV):
        [probability] = parameters(response)
        if is_elemwise(probability, Sigmoid):
            return probability.owner.inputs[0], {"family": "logistic"}
        raise NotRecognized(f"{response.name!r} is Bernoulli without a logit link")
    if is_op(response, PoissonRV):
        [mean] = parameters(response)
        return mean, {"family": "poisson"}
    if is_op(response, NegBinomialRV):
        mean, alpha = _negative_binomial(response)
        _refuse_dependent(response, w, alpha=alpha)
        return mean, {"family": "negative_binomial", "others": [alpha]}
    if is_op(response, CategoricalRV):
        return _ordered(response, w)
    kind = getattr(response.owner.op, "name", None) or type(response.owner.op).__name__
    raise NotRecognized(
        f"{response.name!r} is neither normal, Student t, Bernoulli, Poisson, negative binomial nor ordered but {kind}, for which no "
        "exact step is known; priors that only shrink (bs.RegularizedHorseshoe, bs.GroupLaplace) are drawn by NUTS under any "
        "likelihood"
    )


def _refuse_dependent(response, w, **others):
    for name, value in others.items():
        if depends_on([value], w):
            raise NotRecognized(f"{name} of {response.name!r} depends on {w.name!r}")


def _negative_binomial(response):
    """Mean and alpha of a negative binomial, from the probability that PyMC makes of them."""
    alpha, probability = parameters(response)
    if is_elemwise(probability, Sigmoid) and is_elemwise(probability.owner.inputs[0], Sub):
        left, right = (unpad(v) for v in probability.owner.inputs[0].owner.inputs)
        same = is_elemwise(left, Log) and equal_computations(
            [unpad(left.owner.inputs[0])], [unpad(alpha)]
        )
        if same and is_elemwise(right, Log):
            return right.owner.inputs[0], alpha
    raise NotRecognized(
        f"{response.name!r} is negative binomial with other parameters than `mu` and `alpha`"
    )


def _ordered(response, w):
    """Predictor of an ordered response: one whose probabilities are those of PyMC, computed from it and from cutpoints."""
    [probabilities] = parameters(response)
    while is_elemwise(probabilities, Identity) or is_op(probabilities, ViewOp):
        probabilities = probabilities.owner.inputs[0]
    for family, eta, others in _ordered_candidates(probabilities, w):
        kind = pm.OrderedLogistic if family == "ordered_logistic" else pm.OrderedProbit
        if equal_computations([kind.compute_p(eta, *others)], [probabilities]):
            names = dict(zip(("cutpoints", "sigma"), others, strict=False))
            _refuse_dependent(response, w, **names)
            return eta, {"family": family, "others": others}
    raise NotRecognized(
        f"{response.name!r} is categorical and neither pm.OrderedLogistic nor pm.OrderedProbit"
    )


def _ordered_candidates(probabilities, w):
    """Yield families, predictors and further parameters that the probabilities of an ordered response may be made of."""
    nodes = [v for v in ancestors([probabilities], blockers=[w]) if v.owner is not None]
    scales = [v.owner.inputs[1] for v in nodes if is_elemwise(v, TrueDiv)]
    scales = [pt.constant(np.int8(1)), *dict.fromkeys(unpad(v) for v in scales)]
    for node in nodes:
        if not is_elemwise(node, Sub):
            continue
        left, right = node.owner.inputs
        if (eta := _padded_right(right)) is not None:
            for cutpoints in dict.fromkeys([unpad(left), left]):
                yield "ordered_logistic", eta, [cutpoints]
        if (eta := _padded_right(left)) is not None:
            for cutpoints in dict.fromkeys([unpad(right), right]):
                for scale in scales:
                    yield "ordered_probit", eta, [cutpoints, scale]


def _padded_right(tensor):
    """Return the tensor to which a last dimension of length one was added, or None."""
    owner = tensor.owner
    if owner is None or not isinstance(owner.op, DimShuffle):
        return None
    inner = owner.inputs[0]
    return inner if tuple(owner.op.new_order) == (*range(inner.type.ndim), "x") else None


def _log_link(mean, w):
    """Logarithm of a mean that is ``exp`` of a predictor, times other factors; returns the predictor and their logarithms."""
    if isinstance(mean.owner.op, ViewOp) or is_elemwise(mean, Identity):  # a Deterministic
        return _log_link(mean.owner.inputs[0], w)
    if is_elemwise(mean, Exp):
        return mean.owner.inputs[0], []
    inputs = mean.owner.inputs
    own = [v for v in inputs if depends_on([v], w)]
    quotient = is_elemwise(mean, TrueDiv)
    known = len(own) == 1 and (is_elemwise(mean, Mul) or (quotient and own[0] is inputs[0]))
    if not known:
        raise NotRecognized(
            f"the mean that {w.name!r} enters is not `pm.math.exp(...)`, or that times or divided by something without {w.name!r}"
        )
    if own[0].type.ndim != w.type.ndim or any(own[0].type.broadcastable):
        raise NotRecognized(
            f"`{_written(w)}` is not a {_SHAPES[w.type.ndim]} as long as the response"
        )
    predictor, exposure = _log_link(own[0], w)
    logs = [pt.log(v) for v in inputs if v is not own[0]]
    return predictor, [*exposure, *(-v if quotient else v for v in logs)]


def _split(tensor, w):
    """Write a mean as ``design @ w`` or ``design @ w.T``, plus ``rest``; None where it is zero."""
    product = _product(tensor, w)
    if product is not None:
        return product, None
    if isinstance(tensor.owner.op, ViewOp) or is_elemwise(tensor, Identity):  # a Deterministic
        return _split(tensor.owner.inputs[0], w)
    if is_elemwise(tensor, Neg):
        return _negative(*_split(tensor.owner.inputs[0], w))
    if not is_elemwise(tensor, Add | Sub):
        raise NotRecognized(f"{w.name!r} enters the mean other than by `{_written(w)}`")
    inputs = tensor.owner.inputs
    own = [i for i, v in enumerate(inputs) if depends_on([v], w)]
    if len(own) != 1:
        raise NotRecognized(f"{w.name!r} enters the mean more than once")
    at = own[0]
    if inputs[at].type.ndim != w.type.ndim or any(inputs[at].type.broadcastable):
        shape = _SHAPES[w.type.ndim]
        raise NotRecognized(f"`{_written(w)}` is not a {shape} as long as the response")
    design, rest = _split(inputs[at], w)
    others = [v for i, v in enumerate(inputs) if i != at]
    if is_elemwise(tensor, Add):
        return design, functools.reduce(operator.add, others if rest is None else [rest, *others])
    [other] = others
    if at == 0:
        return design, -other if rest is None else rest - other
    design, rest = _negative(design, rest)
    return design, other if rest is None else other + rest


def _written(w):
    return f"X @ {w.name}" if w.type.ndim == 1 else f"X @ {w.name}.T"


def _negative(design, rest):
    return -design, None if rest is None else -rest


def _product(tensor, w):
    """Return X if a mean is written as a product of X and w that is known, else None.

    For a vector ``X @ w``, ``w @ X.T`` or ``(X * w).sum(-1)``, for a matrix ``X @ w.T``.
    """
    if w.type.ndim == 2:
        left, right = _factors(tensor)
        known = right is not None and _transposed(right) is w and not depends_on([left], w)
        return left if known else None
    op = None if tensor.owner is None or tensor.type.ndim != 1 else tensor.owner.op
    if isinstance(op, Sum) and op.axis == (1,):
        pairs = _sum_of_products(tensor.owner.inputs[0])
    elif isinstance(op, DimShuffle) and op.is_squeeze:
        pairs = _matrix_product(tensor.owner.inputs[0])
    else:
        return None
    designs = [x for x, vector in pairs if vector is w and not depends_on([x], w)]
    return designs[0] if designs else None


def _sum_of_products(inner):
    """Pairs (X, vector) that ``inner``, with elements ``x_ij v_j``, can be read as."""
    if not is_elemwise(inner, Mul) or len(inner.owner.inputs) != 2:
        return []
    a, b = inner.owner.inputs
    # A column times a row would have as many columns as the row, whatever those of X.
    pairs = [(a, _expanded(b, 0)), (b, _expanded(a, 0))]
    return [(x, v) for x, v in pairs if x.type.ndim == 2 and not x.type.broadcastable[1]]


def _matrix_product(inner):
    """Pairs (X, vector) that ``inner``, a product with a row or a column, can be read as."""
    left, right = _factors(inner)
    if left is None:
        return []
    return [(left, _expanded(right, 1)), (right.T, _expanded(left, 0))]


def _factors(tensor):
    """Return the two matrices whose product a tensor is, or None twice."""
    core = tensor.owner
    if core is None or core.inputs[0].type.ndim != 2:
        return None, None
    op = core.op.core_op if isinstance(core.op, Blockwise) else core.op
    return tuple(core.inputs) if isinstance(op, Dot) else (None, None)


def _transposed(tensor):
    """Return the matrix whose transpose a tensor is, or None."""
    owner = tensor.owner
    if owner is None or not isinstance(owner.op, DimShuffle):
        return None
    return owner.inputs[0] if tuple(owner.op.new_order) == (1, 0) else None


def _expanded(tensor, axis):
    """Return the vector of which a tensor is a row (axis 0) or a column (axis 1), or None."""
    owner = tensor.owner
    if owner is None or not isinstance(owner.op, DimShuffle):
        return None
    wanted = ("x", 0) if axis == 0 else (0, "x")
    return owner.inputs[0] if tuple(owner.op.new_order) == wanted else None
