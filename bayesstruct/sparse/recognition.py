"""Recognise regressions whose coefficients have a spike-and-slab prior.

Recognised is a vector of coefficients ``w`` with a prior of
:mod:`bayesstruct.sparse.priors.spike_and_slab` that enters one observed variable, once, as
``X @ w`` beside terms that do not contain it: in the mean of a ``pm.Normal`` or ``pm.StudentT`` or the logit
of a ``pm.Bernoulli``. ``X`` is data; everything else, the noise, the other terms and the parameters of
the prior, may be random.

A matrix ``W`` that enters as ``X @ W.T`` is one such regression for each column of the response,
with the row of ``W`` as its coefficients.
"""

import functools
import operator

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytensor.compile.ops import ViewOp
from pytensor.scalar.basic import Add, Identity, Mul, Neg, Sub
from pytensor.scalar.math import Sigmoid
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.random.basic import BernoulliRV, NormalRV, StudentTRV

from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    depends_on,
    is_elemwise,
    is_op,
    parameters,
)
from bayesstruct.core.tensors import random_ancestors

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor.variable import TensorVariable

__all__ = ["SUPPORTED_REGRESSIONS", "RegressionPart", "recognize_regression"]

SUPPORTED_REGRESSIONS = (
    "Supported are `pm.Normal(mu, sigma, observed=y)`, `pm.StudentT(nu, mu, sigma, observed=y)` and "
    "`pm.Bernoulli(logit_p=mu, observed=y)` where `mu` is `X @ w` (`X @ w.T` for a matrix), X being data, plus terms without `w`, and "
    "nothing else depends on `w`"
)
_SHAPES = {1: "vector", 2: "matrix"}


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
    """

    coefficients: "TensorVariable"
    response: "TensorVariable | None" = None
    design: "TensorVariable | None" = None
    rest: "TensorVariable | None" = None
    noise: "TensorVariable | None" = None
    freedom: "TensorVariable | None" = None

    @property
    def logistic(self) -> bool:
        """Whether the response is 0/1."""
        return self.response is not None and self.noise is None


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
    mean, noise, freedom = _likelihood(response, coefficients)
    if not depends_on([mean], coefficients):
        raise NotRecognized(f"{name!r} does not enter the mean of {response.name!r}")
    design, rest = _split(mean, coefficients)
    if random_ancestors(design):
        raise NotRecognized(f"the predictors that {name!r} multiplies are random")
    return RegressionPart(coefficients, response, design, rest, noise, freedom)


def _likelihood(response, coefficients):
    """Linear predictor, scale (None if the response is 0/1) and degrees of freedom (None if it is not t)."""
    if is_op(response, NormalRV | StudentTRV):
        *freedom, mean, noise = parameters(response)
        for name, value in zip(("sigma", "nu"), (noise, *freedom), strict=False):
            if depends_on([value], coefficients):
                raise NotRecognized(f"{name} of {response.name!r} depends on {coefficients.name!r}")
        return mean, noise, freedom[0] if freedom else None
    if is_op(response, BernoulliRV):
        [probability] = parameters(response)
        if is_elemwise(probability, Sigmoid):
            return probability.owner.inputs[0], None, None
        raise NotRecognized(f"{response.name!r} is Bernoulli without a logit link")
    kind = getattr(response.owner.op, "name", None) or type(response.owner.op).__name__
    raise NotRecognized(
        f"{response.name!r} is neither normal nor Bernoulli nor Student t but {kind}, for which no exact step is known; "
        "priors that only shrink (bs.RegularizedHorseshoe, bs.GroupLaplace) are drawn by NUTS under any likelihood"
    )


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
