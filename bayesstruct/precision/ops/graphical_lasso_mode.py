"""Posterior mode of a precision matrix under the graphical-lasso prior."""

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt

from bayesstruct.precision.ops.graphical_lasso import graphical_lasso

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["graphical_lasso_mode"]


def graphical_lasso_mode(
    scatter: Any, n: Any, rate: Any = 1.0, diagonal_rate: Any = None, *, tol: float = 1e-22
) -> "TensorVariable":
    r"""Mode of a precision matrix under normal rows and :class:`bayesstruct.GraphicalLasso`.

    The graphical lasso of :math:`S/n` with the penalties that equal the prior: :math:`\lambda / n`
    off and :math:`2 d / n` on the diagonal.

    Parameters
    ----------
    scatter : tensor_like
        :math:`S`, (p, p), sum of outer products of the rows.
    n : tensor_like
        Number of rows.
    rate : tensor_like
        Laplace rate :math:`\lambda`, a scalar or a symmetric (p, p) matrix.
    diagonal_rate : tensor_like, optional
        Exponential rate :math:`d` of the diagonal; ``rate / 2`` unless given, and 1/2 when ``rate``
        is a matrix, as in the prior.
    tol : float
        Duality gap over p.

    Returns
    -------
    TensorVariable
        (p, p).

    References
    ----------
    Wang, H. (2012). Bayesian graphical lasso models and efficient posterior computation. *Bayesian
    Analysis* 7(4), 867-886, equation 6.
    """
    scatter, rate = pt.as_tensor_variable(scatter), pt.as_tensor_variable(rate)
    if diagonal_rate is None:
        diagonal_rate = 0.5 * rate if rate.type.ndim == 0 else 0.5
    eye = pt.eye(scatter.shape[-1])
    penalty = (1.0 - eye) * rate / n + eye * 2.0 * diagonal_rate / n
    return graphical_lasso(scatter / n, penalty, tol=tol)
