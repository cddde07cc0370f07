"""Rows of linear structural equations, in the units of the table."""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous
from pymc.logprob.abstract import _logprob
from pytensor.tensor.random.basic import BernoulliRV, BetaRV, DirichletRV

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.draws import seeded_draw
from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.recognition import claim, is_op
from bayesstruct.core.tensors import as_float, random_ancestors
from bayesstruct.networks.priors.dag import DAGRV
from bayesstruct.networks.priors.gaussian_network import InterceptsRV, fill_rows, network_params
from bayesstruct.sem.priors.noise import NoiseLaw

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorLike, TensorVariable

__all__ = ["STEP", "LinearSem", "LinearSemRV", "claim_parameters", "log_terms", "row_params"]

#: Name of the step that draws graph and parameters.
STEP = "linear_sem_mcmc"


def row_params(intercept, coefficients, noise_scale, shape, location, scale, setting) -> list:
    """Parameters of rows as tensors; numbers are repeated for all variables."""
    first = network_params(intercept, coefficients, noise_scale, location, scale, setting)
    d = first[1].type.shape[-1]
    shape = pt.zeros((d, 1)) if shape is None else as_float(shape)
    return [*first[:3], shape, *first[3:]]


def claim_parameters(params: list) -> None:
    """Reserve the graph and the parameters that rows are made of for one step."""
    for rv in random_ancestors(*params):
        if is_op(rv, (DAGRV, InterceptsRV, DirichletRV, BernoulliRV, BetaRV)):
            claim(rv, STEP)


class _Rows:
    """Draws of rows, each variable after its parents."""

    dtype = "float64"
    ndims = (1, 2, 1, 2, 1, 1, 1)

    def __init__(self, d, law):
        self.shape, self.law = (d,), law

    def __eq__(self, other):
        return type(other) is type(self) and (other.shape, other.law) == (self.shape, self.law)

    def __hash__(self):
        return hash((type(self), self.shape, self.law))

    def __call__(
        self, rng, out, intercept, coefficients, noise_scale, shape, location, scale, setting
    ):
        noise = noise_scale * self.law.draw(rng, shape, len(out))
        fill_rows(out, noise, intercept, coefficients, location, scale, setting)


class LinearSemRV(GraphRV):
    """Rows of linear structural equations."""

    extended_signature = "[rng],[size],(d),(d,d),(d),(d,k),(d),(d),(d)->[rng],(d)"
    _print_name = ("LinearSem", "\\operatorname{LinearSem}")
    options = ("law",)

    @classmethod
    def build(cls, rng, size, *params, law):
        """Draw each variable after its parents."""
        return seeded_draw(_Rows(params[1].type.shape[-1], law), rng, size, params)


class LinearSem(Continuous):
    r"""Rows of linear structural equations, in the units of the table.

    A row is :math:`x = \ell + r \circ z` with

    .. math:: z_i = c_i + \sum_j b_{ij} z_j + s_i e_i ,

    e being independent with the density of `noise`: normal, Laplace or t with variance 1, or a mixture of normal
    components with fixed locations and widths.

    Variables that were *set* from outside keep their value, which carries no information about their distribution
    (perfect interventions, Cooper and Yoo 1999).

    Parameters
    ----------
    name : str
    intercept : tensor_like of float
        c, (d,).
    coefficients : tensor_like of float
        b, (d, d), rows as children, those of an acyclic graph.
    noise_scale : tensor_like of float
        s > 0, (d,).
    shape_parameters : tensor_like of float, optional
        (d, k): degrees of freedom of the noise ``"student"``, in one column; weights of the components of a mixture.
    location, scale : tensor_like of float
        :math:`\ell` and r, (d,).
    setting : (d,) or (n, d) array_like of float, optional
        Values that variables were set to, in the units of the table; NaN where they were not.
    noise : {"gaussian", "laplace", "student"} or NoiseLaw
        Distribution of e.

    References
    ----------
    Cooper, G. F. and Yoo, C. (1999). Causal discovery from a mixture of experimental and observational
    data. *UAI* 15, 116-125.
    """

    rv_type = LinearSemRV
    rv_op = LinearSemRV.rv_op

    @classmethod
    def dist(
        cls,
        intercept: "TensorLike",
        coefficients: "TensorLike",
        noise_scale: "TensorLike",
        shape_parameters: "TensorLike | None" = None,
        location: "TensorLike" = 0.0,
        scale: "TensorLike" = 1.0,
        setting: "ArrayLike" = np.nan,
        *,
        noise: "str | NoiseLaw" = "gaussian",
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        law = noise if isinstance(noise, NoiseLaw) else NoiseLaw(noise)
        units = location, scale, setting
        params = row_params(intercept, coefficients, noise_scale, shape_parameters, *units)
        claim_parameters(params)
        return super().dist(params, law=law, **kwargs)

    def support_point(rv, size, intercept, coefficients, noise_scale, shape, location, *others):
        """Return the location."""
        return pt.broadcast_to(location, rv.shape)


@_logprob.register(LinearSemRV)
def _rows_logp(op, values, rng, size, *params, **kwargs):
    (value,) = values
    return row_densities(log_terms(op.law, value, *params).sum(axis=-1))


def log_terms(
    law: NoiseLaw,
    value: "TensorVariable",
    intercept: "TensorVariable",
    coefficients: "TensorVariable",
    noise_scale: "TensorVariable",
    shape: "TensorVariable",
    location: "TensorVariable",
    scale: "TensorVariable",
    setting: "TensorVariable",
) -> "TensorVariable":
    """Log densities of the values of rows given their parents, zero where they were set; (..., n, d)."""
    z = (value - location) / scale
    while coefficients.type.ndim > 2 and coefficients.type.broadcastable[0]:
        coefficients = coefficients[0]
    if coefficients.type.ndim == 2:
        explained = z @ coefficients.T
    else:
        explained = (coefficients @ z[..., None])[..., 0]
    e = (z - intercept - explained) / noise_scale
    terms = law.log_density(e, shape) - pt.log(noise_scale) - pt.log(scale)
    return pt.switch(pt.isnan(setting), terms, 0.0)
