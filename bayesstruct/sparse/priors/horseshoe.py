"""Regularised horseshoe: little shrinkage of a few large coefficients, strong of all others."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.graph.basic import Constant

from bayesstruct.data.arguments import number, numbers

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["RegularizedHorseshoe"]


class RegularizedHorseshoe:
    r"""Regularised horseshoe prior, scaled by the number of coefficients that are expected to matter.

    .. math::

        w_j &= z_j \, \tau \, \tilde\lambda_j, \qquad z_j \sim \mathrm{Normal}(0, 1), \\
        \tilde\lambda_j^2 &= \frac{c^2 \lambda_j^2}{c^2 + \tau^2 \lambda_j^2}, \qquad
        \lambda_j \sim \mathrm{Cauchy}^+(0, 1), \\
        \tau &\sim \mathrm{Cauchy}^+(0, \tau_0), \qquad
        \tau_0 = \frac{p_0}{p - p_0} \frac{\sigma}{\sqrt n}, \qquad
        c^2 \sim \mathrm{InvGamma}\Bigl(\frac\nu2, \frac{\nu s^2}2\Bigr)

    Coefficients that are far from zero have a Student-t distribution with :math:`\nu` degrees of freedom and
    scale :math:`s`, the slab; with columns of unit variance and noise :math:`\sigma`, the expected
    effective number of coefficients that are not shrunk away is :math:`p_0` when
    :math:`\tau = \tau_0`.

    The model gets the variables ``{name}_tau``, ``{name}_lambda``, ``{name}_c2`` and ``{name}_z``,
    and ``name``, the coefficients, a deterministic function of them, so that NUTS sees a
    non-centred geometry. For NUTS set ``target_accept`` to 0.95 or above.

    Parameters
    ----------
    name : str
    expected_nonzero : float
        :math:`p_0`, above 0 and below the number of coefficients. In a graph with p nodes whose
        edges are the coefficients, the expected number of edges.
    n : int or tensor_like
        Number of observations.
    sigma : tensor_like of float, default 1
        :math:`\sigma`, standard deviation of the noise; may be random. For a logistic regression 2
        is usual, its pseudo-variance being 1 / (1/2 * 1/2).
    slab_scale : tensor_like of float, default 2
        :math:`s`.
    slab_df : tensor_like of float, default 4
        :math:`\nu`.
    tau_df, local_df : float, default 1
        Degrees of freedom of the half-t distributions of :math:`\tau` and :math:`\lambda_j`; 1 is
        the half-Cauchy distribution. 3 for :math:`\lambda_j` removes divergences at the price of less sparsity.
    dims : str or sequence of str, optional
    shape : int or sequence of int or tensor, optional
        Either `dims` or `shape` is needed.

    Returns
    -------
    TensorVariable
        The coefficients.

    Raises
    ------
    ValueError
        If neither ``dims`` nor ``shape`` is given, or a constant is out of range or not a number.
    TypeError
        If ``expected_nonzero`` or ``n`` is not one number.

    Notes
    -----
    The mode is meaningless: the density of ``name`` is infinite at zero. Some texts write
    :math:`\tau_0` with the standard deviation of the response in place of :math:`\sigma`.

    References
    ----------
    Piironen, J. and Vehtari, A. (2017). Sparsity information and regularization in the horseshoe and
    other shrinkage priors. *Electronic Journal of Statistics* 11, 5018-5051, equations 2.8, 2.9 and
    3.12; section 3.5 for models other than Gaussian.

    Examples
    --------
    .. code-block:: python

        with pm.Model(coords={"predictor": X.columns}):
            sigma = pm.HalfNormal("sigma", 1)
            w = bs.RegularizedHorseshoe("w", 3, n=len(X), sigma=sigma, dims="predictor")
            pm.Normal("y", X.to_numpy() @ w, sigma, observed=y)
    """

    def __new__(
        cls,
        name,
        expected_nonzero,
        n,
        sigma=1.0,
        slab_scale=2.0,
        slab_df=4.0,
        *,
        tau_df=1.0,
        local_df=1.0,
        dims=None,
        shape=None,
    ):
        """Add the hierarchy to the model."""
        model = pm.modelcontext(None)
        shape = _shape(name, dims, shape, model)
        tau0 = expected_scale(expected_nonzero, _count(shape), n, sigma)
        slab_scale, slab_df = _positive("slab_scale", slab_scale), _positive("slab_df", slab_df)
        tau_df, local_df = _positive("tau_df", tau_df), _positive("local_df", local_df)
        tau = _half_t(f"{name}_tau", tau_df, tau0)
        kwargs = {"dims": dims} if dims is not None else {"shape": shape}
        local = _half_t(f"{name}_lambda", local_df, 1.0, **kwargs)
        half = 0.5 * slab_df
        c2 = pm.InverseGamma(f"{name}_c2", half, half * pt.square(slab_scale))
        z = pm.Normal(f"{name}_z", 0.0, 1.0, **kwargs)
        # sqrt(c2 l^2 / (c2 + tau^2 l^2)), without squaring a large l
        shrunk = local / pt.sqrt(1.0 + pt.square(tau * local) / c2)
        return pm.Deterministic(name, z * tau * shrunk, dims=dims)


def expected_scale(expected_nonzero: Any, size: Any, n: Any, sigma: Any = 1.0) -> "TensorVariable":
    r"""Return :math:`\tau_0 = \frac{p_0}{p - p_0} \frac{\sigma}{\sqrt n}`.

    Parameters
    ----------
    expected_nonzero : float
        :math:`p_0`.
    size : int or tensor_like
        :math:`p`, the number of coefficients.
    n : int or tensor_like
        Number of observations.
    sigma : tensor_like of float
        Standard deviation of the noise.

    Raises
    ------
    ValueError
        If a constant is out of range or not a number.
    TypeError
        If ``expected_nonzero`` or ``n`` is not one number.
    """
    now, sigma = _present(size), _positive("sigma", sigma)
    expected_nonzero, n = _constant(expected_nonzero), _constant(n)
    if not hasattr(expected_nonzero, "owner") and not (
        0 < number("expected_nonzero", expected_nonzero) < now
    ):
        raise ValueError(
            f"`expected_nonzero` must be above 0 and below the number of coefficients, {now:.0f}; it "
            f"is {expected_nonzero}"
        )
    if not hasattr(n, "owner"):
        n = number("n", n, above=0)
    return expected_nonzero / (size - expected_nonzero) * sigma / pt.sqrt(pt.cast(n, "float64"))


def _constant(value):
    """Return the value of a constant tensor; return anything else unchanged."""
    return value.data if isinstance(value, Constant) else value


def _positive(name, value):
    """Return a parameter; a constant must be positive and finite."""
    value = _constant(value)
    if hasattr(value, "owner"):
        return value
    array = numbers(f"`{name}`", value, flags=False)
    if not ((array > 0) & np.isfinite(array)).all():
        raise ValueError(f"`{name}` must be positive and finite, it is {value}")
    return array[()]


def _present(size):
    """Return a size as it is at present, infinite if it depends on an unknown."""
    if not hasattr(size, "owner"):
        return size
    from pytensor.graph.traversal import explicit_graph_inputs

    if any(explicit_graph_inputs([size])):
        return np.inf
    return float(size.eval(mode="FAST_COMPILE"))


def _half_t(name, df, scale, **kwargs):
    if not hasattr(df, "owner") and np.all(df == 1):
        return pm.HalfCauchy(name, scale, **kwargs)
    return pm.HalfStudentT(name, nu=df, sigma=scale, **kwargs)


def _shape(name, dims, shape, model):
    if dims is not None:
        names = (dims,) if isinstance(dims, str) else tuple(dims)
        missing = [dim for dim in names if dim not in model.dim_lengths]
        if missing:
            raise ValueError(f"dimension {missing[0]!r} of {name!r} is not in the model's coords")
        return tuple(model.dim_lengths[dim] for dim in names)  # they follow pm.set_data
    if shape is None:
        raise ValueError(f"give `dims` or `shape` for {name!r}: the prior depends on their number")
    if hasattr(shape, "owner") and shape.ndim == 0:
        return (shape,)
    return (shape,) if np.ndim(shape) == 0 else tuple(shape)


def _count(shape):
    count = 1
    for length in shape:
        count = count * length
    return count
