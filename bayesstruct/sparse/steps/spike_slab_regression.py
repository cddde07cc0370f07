"""Exact Gibbs step of regression coefficients with exact zeros.

Recognised is a vector of coefficients ``w`` with a prior of
:mod:`bayesstruct.sparse.priors.spike_and_slab` that enters one observed variable, once, as
``X @ w`` beside terms that do not contain it: in the mean of a ``pm.Normal`` or the logit of a
``pm.Bernoulli``. ``X`` is data; everything else, the noise, the other terms and the parameters of
the prior, may be random and is looked at anew for each draw.

A matrix ``W`` that enters as ``X @ W.T`` is one such regression for each column of the response,
with the row of ``W`` as its coefficients; given everything else they are independent, and are drawn
one after the other from the one ``X' X`` that they share.
"""

import copy
import functools
import operator

from dataclasses import dataclass

import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from pytensor.compile.ops import ViewOp
from pytensor.scalar.basic import Add, Identity, Mul, Neg, Sub
from pytensor.scalar.math import Sigmoid
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.random.basic import BernoulliRV, NormalRV

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    depends_on,
    is_elemwise,
    is_op,
    parameters,
)
from bayesstruct.core.tensors import as_float, random_ancestors
from bayesstruct.sparse.priors.spike_and_slab import (
    CauchySpikeAndSlabRV,
    LaplaceSpikeAndSlabRV,
    SpikeAndSlabRV,
)

__all__ = ["SpikeSlabRegression"]

SWAPS = 10  # see benchmarks/spike_slab_regression.py
GRAM_LIMIT = 8000  # predictors beyond which X'X (half a gigabyte) is not formed

_SUPPORTED = (
    "Supported are `pm.Normal(mu, sigma, observed=y)` and `pm.Bernoulli(logit_p=mu, observed=y)` "
    "where `mu` is `X @ w` (`X @ w.T` for a matrix), X being data, plus terms without `w`, and "
    "nothing else depends on `w`"
)
_NOT_FINITE = "predictors or response of a spike-and-slab regression are not finite"
_SHAPES = {1: "vector", 2: "matrix"}


@dataclass
class RegressionPart:
    """A vector, or matrix, of coefficients and what its conditional law is made of."""

    coefficients: object
    response: object = None
    design: object = None
    rest: object = None  # the other terms of the mean
    noise: object = None  # standard deviation; None for a logistic regression


def recognize_regression(model, coefficients) -> RegressionPart:
    """Find the regression that a vector of coefficients belongs to.

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
        Says what stands in the way.
    """
    name = coefficients.name
    if is_op(coefficients, CauchySpikeAndSlabRV):
        raise NotRecognized(f"the slab of {name!r} is Cauchy's, which regressions do not have")
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
    mean, noise = _likelihood(response, coefficients)
    if not depends_on([mean], coefficients):
        raise NotRecognized(f"{name!r} does not enter the mean of {response.name!r}")
    design, rest = _split(mean, coefficients)
    if random_ancestors(design):
        raise NotRecognized(f"the predictors that {name!r} multiplies are random")
    return RegressionPart(coefficients, response, design, rest, noise)


def _likelihood(response, coefficients):
    """Linear predictor and standard deviation (None if the response is 0/1)."""
    if is_op(response, NormalRV):
        mean, noise = parameters(response)
        if depends_on([noise], coefficients):
            raise NotRecognized(f"sigma of {response.name!r} depends on {coefficients.name!r}")
        return mean, noise
    if is_op(response, BernoulliRV):
        [probability] = parameters(response)
        if is_elemwise(probability, Sigmoid):
            return probability.owner.inputs[0], None
        raise NotRecognized(f"{response.name!r} is Bernoulli without a logit link")
    raise NotRecognized(f"{response.name!r} is neither normal nor Bernoulli")


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
        pairs = _sum_of_products(tensor.owner.inputs[0], w)
    elif isinstance(op, DimShuffle) and op.is_squeeze:
        pairs = _matrix_product(tensor.owner.inputs[0], w)
    else:
        return None
    designs = [x for x, vector in pairs if vector is w and not depends_on([x], w)]
    return designs[0] if designs else None


def _sum_of_products(inner, w):
    """Pairs (X, vector) that ``inner``, with elements ``x_ij v_j``, can be read as."""
    if not is_elemwise(inner, Mul) or len(inner.owner.inputs) != 2:
        return []
    a, b = inner.owner.inputs
    # A column times a row would have as many columns as the row, whatever those of X.
    pairs = [(a, _expanded(b, 0)), (b, _expanded(a, 0))]
    return [(x, v) for x, v in pairs if x.type.ndim == 2 and not x.type.broadcastable[1]]


def _matrix_product(inner, w):
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


class Design:
    """Predictors and response of one regression, as the kernels need them.

    Parameters
    ----------
    rows : (n, p) array
    response : (n,) array
    logistic : bool
    """

    def __init__(self, rows, response, logistic):
        n, p = len(response), rows.shape[1]
        rows = np.broadcast_to(np.asarray(rows, float), (n, p))
        self.logistic = logistic
        if not np.isfinite(rows).all():
            raise ValueError(_NOT_FINITE)
        self.columns = np.ascontiguousarray(rows.T)
        self.gram = self.squares = None
        if not logistic and p <= GRAM_LIMIT:
            self.gram = self.columns @ rows
            self.diagonal = self.gram.diagonal().copy()
            self.total = self.columns.sum(axis=1)
        self._respond(response)

    def with_response(self, response):
        """Regression of another response on the same predictors, whose products it shares."""
        other = copy.copy(self)
        other._respond(response)
        return other

    def _respond(self, response):
        self.response = np.ascontiguousarray(response, float)
        if not np.isfinite(self.response).all():
            raise ValueError(_NOT_FINITE)
        if self.logistic and not np.isin(self.response, (0.0, 1.0)).all():
            raise ValueError("the response of a logistic regression must be 0 or 1")
        self.rest = self.score = None
        if self.gram is not None:
            self.cross = self.columns @ self.response

    def sweep(self, rng, w, inclusion, rest, noise, slab, log_odds, swaps):
        """Draw indicators and coefficients once, in place."""
        from bayesstruct.sparse.kernels import polya_gamma, spike_slab_regression
        from bayesstruct.sparse.kernels import required as required_moves

        prior = (slab, log_odds, swaps)
        required = np.isinf(log_odds).all() and len(log_odds) > 0
        if self.gram is not None and np.size(noise) == 1:
            score = self._score(np.asarray(rest, float))
            noise = float(np.ravel(noise)[0])
            if required:
                required_moves.required_sweep(
                    rng, w, inclusion, self.gram, score, noise, slab, log_odds
                )
                return
            spike_slab_regression.gaussian_sweep(
                rng, w, inclusion, self.gram, self.diagonal, score, noise, *prior
            )
            return
        self.square()
        n = len(self.response)
        rest = np.broadcast_to(rest, (n,)) * 1.0
        if self.logistic and required:
            required_moves.required_logistic_sweep(
                rng, w, inclusion, self.columns, self.response, rest, slab, log_odds
            )
            return
        if self.logistic:
            polya_gamma.logistic_sweep(
                rng, w, inclusion, self.columns, self.squares, self.response, rest, *prior
            )
            return
        weights = np.broadcast_to(np.square(1.0 / np.asarray(noise)), (n,)) * 1.0
        target = weights * (self.response - rest)
        spike_slab_regression.weighted_sweep(
            rng, w, inclusion, self.columns, self.squares, weights, target, *prior
        )

    def square(self):
        """Square the predictors, which sweeps with unequal weights need, once."""
        if self.squares is None:
            binary = ((self.columns == 0.0) | (self.columns == 1.0)).all()
            self.squares = self.columns if binary else np.square(self.columns)

    def _score(self, rest):
        """``X' (y - rest)``, computed again only when ``rest`` has changed."""
        if self.score is None or not np.array_equal(rest, self.rest):
            self.rest = rest.copy()
            if rest.size == 1:
                self.score = self.cross - float(rest.ravel()[0]) * self.total
            else:
                self.score = self.columns @ (self.response - rest)
        return self.score


@dataclass_state
class SpikeSlabRegressionState(StepMethodState):
    """State of a step that remembers nothing but its generator."""


@register_step
class SpikeSlabRegression(BlockedStep):
    """Gibbs draws of regression coefficients with exact zeros, indicators collapsed.

    Assigned by ``pm.sample`` to every vector, and every matrix of one regression for each row, with
    the :class:`bayesstruct.SpikeAndSlab` prior. One call draws all indicators, each from its conditional law with the coefficients summed out, then
    exchanges some active predictors for others, then draws the coefficients; see
    :mod:`bayesstruct.sparse.kernels.spike_slab_regression`, and :mod:`bayesstruct.sparse.kernels.polya_gamma` for
    0/1 responses. Other samplers move the noise, the other terms of the mean and the parameters of
    the prior. The state of a chain is its point and its generator.

    Predictors should be centred when the mean has an intercept: the intercept is drawn given the
    coefficients, which is slow when the two are correlated.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables.
    swaps : int, default 10
        Most active predictors, of each regression, whose identity is drawn anew in each call.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional

    Raises
    ------
    ValueError
        If the coefficients are not those of a regression that can be drawn exactly.

    Notes
    -----
    Statistics of each draw: ``n_active``, the coefficients that are not zero, and
    ``expected_active``, the sum of their conditional inclusion probabilities. The attribute
    ``inclusion`` has these probabilities one by one.
    """

    name = "spike_slab_regression"
    default_blocked = False
    stats_dtypes_shapes = {"n_active": (int, []), "expected_active": (float, [])}
    _state_class = SpikeSlabRegressionState

    def __init__(
        self,
        vars,
        *,
        swaps=SWAPS,
        model=None,
        initial_point=None,
        compile_kwargs=None,
        rng=None,
        blocked=False,
    ):
        model = pm.modelcontext(model)
        [value] = self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        rv = model.values_to_rvs[value]
        try:
            part = recognize_regression(model, rv)
        except NotRecognized as reason:
            raise ValueError(
                f"the spike-and-slab coefficients {rv.name!r} cannot be drawn exactly: {reason}. "
                f"{_SUPPORTED}."
            ) from None
        self.rng = get_random_generator(rng)
        self.swaps = int(swaps)
        self.value_name = value.name
        self.vector = rv.type.ndim == 1
        self.laplace = is_op(rv, LaplaceSpikeAndSlabRV)
        self.logistic = part.response is not None and part.noise is None
        rest = as_float(0.0) if part.rest is None else part.rest
        noise = as_float(1.0) if part.noise is None else part.noise
        self.values = Expressions(model, [*parameters(rv), rest, noise], compile_kwargs)
        self.data = None
        if part.response is not None:
            fixed = [part.design, model.rvs_to_values[part.response]]
            self.data = Expressions(model, fixed, compile_kwargs)
        self.design = self.designs = None
        self.inclusion = None

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain and forget the data of the last one."""
        super().setup_chain(rng, tune, draws)
        self.design = None

    def _load(self, point, q, p):
        """Read the data; they may have been exchanged since the step was made."""
        if self.data is None:
            rows, response = np.empty((0, p)), np.empty(0)
        else:
            rows, response = (np.asarray(v) for v in self.data(point))
        if self.data is None:
            columns = [response] * q
        else:
            columns = response[None] if self.vector else response.T
        if len(columns) != q:
            raise ValueError(
                f"{self.value_name!r} has {q} rows and its response {len(columns)} columns; one row is "
                "needed for each"
            )
        self.design = Design(rows, columns[0], self.logistic)
        if self.logistic and q > 1:
            self.design.square()  # before it is shared
        self.designs = [self.design, *(self.design.with_response(y) for y in columns[1:])]

    def step(self, point):
        """Draw the indicators and the coefficients once."""
        from bayesstruct.sparse.kernels.spike_slab_regression import draw_slab_variances

        w = np.array(point[self.value_name], float)
        rows = w[None] if self.vector else w
        if self.design is None:
            self._load(point, *rows.shape)
        inclusion, scale, rest, noise = self.values(point)
        scale = np.broadcast_to(np.asarray(scale, float), w.shape) * 1.0
        if self.laplace:
            slab = np.empty(w.shape)
            draw_slab_variances(self.rng, w.ravel(), scale.ravel(), slab.ravel())
        else:
            slab = np.square(scale)
        log_odds = _log_odds(inclusion, w.shape)
        self.inclusion = np.zeros(w.shape)
        for i, design in enumerate(self.designs):
            at = ... if self.vector else i
            design.sweep(
                self.rng, rows[i], self.inclusion[at], self._of(rest, i), self._of(noise, i),
                slab[at], log_odds[at], self.swaps,
            )  # fmt: skip
        stats = {
            "n_active": int(np.count_nonzero(w)),
            "expected_active": float(self.inclusion.sum()),
        }
        return {**point, self.value_name: w}, [stats]

    def _of(self, values, i):
        """Part of the other terms, or of the noise, that belongs to one regression."""
        if self.vector:
            return values
        values = np.atleast_2d(values)  # rows of the table, or one for all of them
        return values[:, i if values.shape[1] > 1 else 0]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for spike-and-slab coefficients, whatever they are used for.

        Were it to decline, ``pm.sample`` would fall back on samplers that never reach zero; so the
        constructor takes all of them, and raises for those that it cannot draw.
        """
        return Competence.IDEAL if is_op(var, SpikeAndSlabRV) else Competence.INCOMPATIBLE


def _log_odds(inclusion, shape):
    """Log odds of each coefficient; probabilities zero and one give minus and plus infinity."""
    q = np.broadcast_to(np.asarray(inclusion, float), shape)
    with np.errstate(divide="ignore"):
        return np.log(q) - np.log1p(-q)
