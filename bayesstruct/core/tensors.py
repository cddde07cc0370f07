"""Tensors as parameters of distributions: conversion, random ancestors, draws of a batch."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import BetaRV
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.data.arguments import numbers

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = [
    "as_drawn",
    "as_float",
    "as_square",
    "constant_value",
    "draw_batch",
    "draw_scatter",
    "is_beta",
    "random_ancestors",
    "refuse_size",
]


def as_float(value: Any, name: str = "parameters of a distribution") -> "TensorVariable":
    """Return a float64 tensor; PyTensor would keep short constants in single precision."""
    if isinstance(value, Constant):
        value = value.data
    if hasattr(value, "owner"):
        return pt.as_tensor_variable(value).astype("float64")
    return pt.as_tensor_variable(numbers(name, value))


def random_ancestors(*values) -> "list[Any]":
    """Return the random variables that tensors are computed from."""
    from pymc.distributions.distribution import SymbolicRandomVariable

    kinds = (RandomVariable, SymbolicRandomVariable)
    return [v for v in ancestors(values) if v.owner is not None and isinstance(v.owner.op, kinds)]


def constant_value(tensor: "TensorVariable") -> np.ndarray | None:
    """Return the value of a tensor, or None if it depends on a random variable."""
    if random_ancestors(tensor):
        return None
    return np.asarray(tensor.eval(mode="FAST_COMPILE"))


def as_square(value: Any, p: Any) -> "TensorVariable":
    """Broadcast a scalar or a (p, p) array to a (p, p) tensor."""
    if not hasattr(value, "owner") and not hasattr(p, "owner"):
        return as_float(np.broadcast_to(np.asarray(value, dtype="float64"), (p, p)).copy())
    value = as_float(value)
    return value if value.type.ndim == 2 else pt.full((p, p), value)


def _batch(size, *params_and_ndims):
    """Batch shape of parameters given with their core dimensions, or ``size`` when there is one."""
    if size is not None:
        return tuple(size)
    return np.broadcast_shapes(*(x.shape[: x.ndim - k] for x, k in params_and_ndims))


def draw_batch(
    core: Callable,
    rng: np.random.Generator,
    ndims: Sequence[int],
    params: Sequence[np.ndarray],
    size: Sequence[int] | None,
    shape: Sequence[int],
) -> np.ndarray:
    """Return an array of draws, with one call of ``core(rng, *params)`` for each element of the batch.

    Parameters
    ----------
    core : callable
        Returns one draw.
    rng : numpy.random.Generator
    ndims : sequence of int
        Number of dimensions of each parameter without those of the batch.
    params : sequence of array
    size : sequence of int or None
        Shape of the batch; by default that of the parameters.
    shape : sequence of int
        Of one draw.
    """
    batch = _batch(size, *zip(params, ndims, strict=True))
    full = [
        np.broadcast_to(x, (*batch, *x.shape[x.ndim - k :]))
        for x, k in zip(params, ndims, strict=True)
    ]
    out = np.empty((*batch, *shape))
    for index in np.ndindex(*batch):
        args = [
            np.ascontiguousarray(x[index]) if k else float(x[index])
            for x, k in zip(full, ndims, strict=True)
        ]
        out[index] = core(rng, *args)
    return out


def is_beta(value: Any) -> bool:
    """Whether a value is an unregistered beta distribution, as in ``pm.Beta.dist(1, 1)``."""
    owner = getattr(value, "owner", None)
    return owner is not None and isinstance(owner.op, BetaRV)


def as_drawn(value: "TensorVariable", rv: "TensorVariable", size: Any) -> "TensorVariable":
    """Return the value of one draw with the shape of a random variable; for ``support_point``."""
    value = value.astype(rv.dtype)
    return value if rv_size_is_none(size) else pt.zeros(rv.shape, dtype=rv.dtype) + value


def refuse_size(size, name: str) -> None:
    """Raise if several values of a distribution that has a single one are asked for.

    Parameters
    ----------
    size : TensorVariable, tuple or None
    name : str
        Of the values, in the singular.
    """
    size = normalize_size_param(size)
    if not rv_size_is_none(size) and size.type.shape != (0,):
        raise ValueError(
            f"the distribution is of one {name}, without `size` or further dimensions in `shape`: pm.draw(variable, draws=3) "
            "draws three; in a model give each one a variable of its own"
        )


def draw_scatter(rng, n: "TensorVariable", factor: "TensorVariable") -> tuple:
    r"""Draw the scatter matrix of normal rows about their means, a Wishart matrix with n - 1 degrees of freedom.

    With the covariance matrix :math:`F F'` it is :math:`F A A' F'`, A being lower triangular with independent
    entries: standard normal below the diagonal, and the square root of a chi-squared variable with n - k degrees
    of freedom as the k-th entry of the diagonal. With n - 1 < p the last columns are zero.

    Parameters
    ----------
    rng : RandomGeneratorVariable
    n : TensorVariable
        Number of rows.
    factor : TensorVariable
        (p, p); its product with its transpose is the covariance matrix.

    Returns
    -------
    tuple
        The next generator, and the (p, p) matrix.

    References
    ----------
    Bartlett, M. S. (1933). On the theory of statistical regression. *Proceedings of the Royal Society of
    Edinburgh* 53, 260-283.
    """
    p = factor.shape[-1]
    degrees = n - 1.0 - pt.arange(p)
    some = pt.gt(degrees, 0.0)
    rng, squares = pt.random.chisquare(
        pt.switch(some, degrees, 1.0), size=(p,), rng=rng, return_next_rng=True
    )
    rng, noise = pt.random.normal(0.0, 1.0, size=(p, p), rng=rng, return_next_rng=True)
    entries = pt.tril(noise, -1) + pt.diag(pt.sqrt(squares))
    root = factor @ pt.switch(some[None, :], entries, 0.0)
    return rng, root @ root.T
