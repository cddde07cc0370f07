"""Two numbers for the shape of errors that do not depend on their units: ratios of L-moments."""

import numpy as np

__all__ = ["LEAST_ROWS", "shape_ratios"]

#: Of a column that is checked: fewer say next to nothing about a shape.
LEAST_ROWS = 10


def shape_ratios(e: np.ndarray) -> np.ndarray:
    r"""L-skewness and L-kurtosis of samples.

    Parameters
    ----------
    e : (..., n) ndarray of float
        Samples of at least four values.

    Returns
    -------
    (..., 2) ndarray of float
        Both between -1 and 1, and NaN for a constant sample. Of symmetric distributions the skewness is 0; the kurtosis is 0 of a
        uniform, .123 of a normal and .236 of a Laplace distribution.

    Notes
    -----
    With :math:`X_{k:m}` the k-th smallest of m values, the L-moments are means of

    .. math::

        \lambda_2 = \tfrac12 E(X_{2:2} - X_{1:2}), \quad \lambda_3 = \tfrac13 E(X_{3:3} - 2 X_{2:3} + X_{1:3}), \quad
        \lambda_4 = \tfrac14 E(X_{4:4} - 3 X_{3:4} + 3 X_{2:4} - X_{1:4}),

    estimated without bias by averages over all subsets of the sample; the ratios are :math:`\lambda_3 / \lambda_2` and
    :math:`\lambda_4 / \lambda_2`. They are bounded and linear in the ordered values, so that a single wild value, unlike in moments of the third
    and fourth order, does not decide.

    References
    ----------
    Hosking, J. R. M. (1990). L-moments: analysis and estimation of distributions using linear combinations of order
    statistics. *JRSS B* 52, 105-124.
    """
    moments = np.sort(e, axis=-1) @ _weights(e.shape[-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(moments[..., :1] > 0, moments[..., 1:] / moments[..., :1], np.nan)


def _weights(n: int) -> np.ndarray:
    """Weights of ordered values in the second to the fourth L-moment, (n, 3)."""
    i = np.arange(n, dtype=float)
    one = i / (n - 1)
    two = one * (i - 1) / (n - 2)
    three = two * (i - 2) / (n - 3)
    second, third = 2 * one - 1, 6 * two - 6 * one + 1
    return np.column_stack([second, third, 20 * three - 30 * two + 12 * one - 1]) / n
