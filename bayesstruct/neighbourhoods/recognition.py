"""Recognise neighbourhood models: independent regressions with known conditional distributions."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pytensor.graph.basic import Constant
from pytensor.scalar.basic import Mul, Sqrt
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.random.basic import BetaRV, InvGammaRV, NormalRV

from bayesstruct.core.recognition import NotRecognized, children_of, is_elemwise, is_op, parameters
from bayesstruct.core.tensors import random_ancestors
from bayesstruct.sparse.priors.spike_and_slab import LaplaceSpikeAndSlabRV, SpikeAndSlabRV
from bayesstruct.sparse.recognition import recognize_regression

if TYPE_CHECKING:
    from pymc import Model

__all__ = ["Neighbourhoods", "recognize_neighbourhoods"]


@dataclass
class Neighbourhoods:
    """Regressions of the columns of ``response`` on those of ``design``, and their priors.

    Attributes
    ----------
    names : dict
        Of the variables, by their part: ``coefficients``, ``intercept``, ``noise`` (Gaussian),
        ``share`` (random inclusion probability).
    design, response : (n, p), (n, q) arrays
    laplace : bool
        Whether the slab is Laplace and not normal.
    scale, inclusion : (q, p) arrays
        Of the slab; prior probabilities, with 0.5 where they are random.
    intercept : tuple of (q,) array
        Mean and standard deviation.
    noise : tuple of (q,) array, or None
        Shape and scale of the inverse gamma distribution; None for logistic regressions.
    share : tuple of (q,) array, or None
        The two shapes of the beta distribution of the inclusion probability.
    """

    names: dict
    design: np.ndarray
    response: np.ndarray
    laplace: bool
    scale: np.ndarray
    inclusion: np.ndarray
    intercept: tuple
    noise: tuple | None = None
    share: tuple | None = None
    shape: tuple = field(init=False)

    def __post_init__(self):
        self.shape = self.inclusion.shape

    @property
    def logistic(self) -> bool:
        """Whether the responses are 0/1."""
        return self.noise is None


def recognize_neighbourhoods(model: "Model") -> Neighbourhoods:
    """Read a neighbourhood model from its graph.

    Parameters
    ----------
    model : pymc.Model

    Returns
    -------
    Neighbourhoods

    Raises
    ------
    NotRecognized
        If the model is not one of independent regressions with conjugate priors; says why.
    """
    matrices = [v for v in model.free_RVs if is_op(v, SpikeAndSlabRV) and v.type.ndim == 2]
    if len(matrices) != 1:
        raise NotRecognized(
            "it does not have one matrix of coefficients with the SpikeAndSlab prior"
        )
    coefficients = matrices[0]
    part = recognize_regression(model, coefficients)
    if part.response is None:
        raise NotRecognized(f"{coefficients.name!r} is not used")
    part.require("normal", "logistic")
    found = {"coefficients": coefficients}
    found["intercept"] = _named(model, part.rest, NormalRV, "the intercept", part.response)
    _check_axis(part.rest, 1, "the intercept")
    if part.noise is not None:
        _check_axis(part.noise, 1, "the noise variance")
        noise = _unpadded(part.noise)
        root = noise.owner.inputs[0] if is_elemwise(noise, Sqrt) else None
        found["noise"] = _named(model, root, InvGammaRV, "the noise variance", part.response)
    inclusion, scale = parameters(coefficients)
    mask = None
    if random_ancestors(inclusion):
        beta, mask = _product_with_data(inclusion)
        found["share"] = _named(model, beta, BetaRV, "the inclusion probability", coefficients)
        _check_axis(beta, 0, "the inclusion probability")
    known = {*found.values(), part.response}
    extra = [v.name for v in (*model.basic_RVs, *model.potentials) if v not in known]
    if extra:
        raise NotRecognized(f"{', '.join(map(repr, extra))} does not belong to the regressions")
    design, response = _value(part.design), _value(model.rvs_to_values[part.response])
    shape = (response.shape[1], design.shape[1])
    if mask is None:
        probability = np.broadcast_to(_value(inclusion), shape)
    else:
        mask = np.broadcast_to(mask, shape)
        if not np.isin(mask, (0.0, 1.0)).all():
            raise NotRecognized("its inclusion probabilities are multiples of a random one")
        probability = np.where(mask == 1.0, 0.5, 0.0)
    given = {name: _prior(rv, shape[0]) for name, rv in found.items() if name != "coefficients"}
    return Neighbourhoods(
        names={name: rv.name for name, rv in found.items()},
        design=np.asarray(design, float),
        response=np.asarray(response, float),
        laplace=is_op(coefficients, LaplaceSpikeAndSlabRV),
        scale=np.broadcast_to(_value(scale), shape) * 1.0,
        inclusion=np.array(probability, float),
        intercept=given["intercept"],
        noise=given.get("noise"),
        share=given.get("share"),
    )


def _unpadded(tensor):
    """Look through added dimensions of length one."""
    while (owner := getattr(tensor, "owner", None)) is not None:
        if not isinstance(owner.op, DimShuffle) or owner.op.is_transpose:
            break
        tensor = owner.inputs[0]
    return tensor


def _check_axis(tensor, axis, what):
    """Refuse a vector that is not put along the regressions, axis 1 of means, 0 of coefficients."""
    owner = getattr(tensor, "owner", None)
    order = ("x", 0) if axis == 1 else (0, "x")
    shuffled = owner is not None and isinstance(owner.op, DimShuffle)
    if not shuffled or tuple(owner.op.new_order) != order:
        raise NotRecognized(f"{what} is not one for each regression")


def _named(model, tensor, kind, what, child):
    """Return the free variable behind a tensor, one for each regression and used only there."""
    rv = _unpadded(tensor)
    known = rv is not None and rv in model.free_RVs and is_op(rv, kind) and rv.type.ndim == 1
    if not known:
        raise NotRecognized(f"{what} is not a {kind.__name__[:-2]} variable over the regressions")
    if random_ancestors(*parameters(rv)):
        raise NotRecognized(f"the prior of {rv.name!r} has random parameters")
    if children_of(model, rv) != [child]:
        raise NotRecognized(f"{rv.name!r} is used elsewhere too")
    return rv


def _product_with_data(inclusion):
    """Return the random and the constant factor of the inclusion probabilities."""
    if is_elemwise(inclusion, Mul) and len(inclusion.owner.inputs) == 2:
        a, b = inclusion.owner.inputs
        if random_ancestors(b):
            a, b = b, a
        if not random_ancestors(b):
            return a, _value(b)
    raise NotRecognized("the inclusion probabilities are not a random one for each regression")


def _prior(rv, count):
    """Return the parameters of a variable, one for each regression."""
    return tuple(np.broadcast_to(_value(v), (count,)) * 1.0 for v in parameters(rv))


def _value(tensor):
    """Return the value of a tensor that does not depend on random variables."""
    if isinstance(tensor, Constant):
        return np.asarray(tensor.data)
    return np.asarray(tensor.eval(mode="FAST_COMPILE"))
