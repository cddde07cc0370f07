"""Bayes factors of one pair of columns of a normal table, as functions of its sample partial correlation.

The two columns are residuals given all others: their precision matrix has the elements k, l on the diagonal and w beside it,
and their scatter matrix has diagonal elements s, t and the correlation r.
"""

import numpy as np

__all__ = ["log_laplace_odds", "log_spike_slab_factor"]

_NODES = np.linspace(-10.0, 10.0, 81)  # standard deviations around a mode
_HALF = 2000  # elements of the matrix on each side of zero
_REACH = 10.0  # standard deviations of the slab


def log_spike_slab_factor(
    r: "np.ndarray | float",
    rows: float,
    size: np.ndarray,
    *,
    spike_scale: float,
    slab_scale: float,
    rate: float,
) -> np.ndarray:
    r"""Logarithm of the ratio of marginal likelihoods of slab and spike, without restriction of the prior to positive definite matrices.

    Parameters
    ----------
    r : float or ndarray
        Sample correlation of the two columns; broadcast against `size`.
    rows : float
        Degrees of freedom of their scatter matrix.
    size : ndarray of float
        :math:`\sqrt{a b}` with :math:`a = s / 2 + \mathrm{rate}`, :math:`b = t / 2 + \mathrm{rate}`.
    spike_scale, slab_scale : float
        Standard deviations of the element w.
    rate : float
        Exponential rate of the diagonal elements.

    Returns
    -------
    ndarray

    Notes
    -----
    The likelihood of w, with flat priors on all that the other columns have to do with the two, is

    .. math:: m(w) = e^{-r \sqrt{s t} w} \iint_{k l > w^2} (k l - w^2)^{\nu / 2} e^{-a k - b l} \, dk \, dl
        \propto e^{-r \sqrt{s t} w} \int_0^\infty u^{\nu / 2} e^{-u - a b w^2 / u} \, du

    (a Bessel function), and the ratio is :math:`\int m(w) N(w; 0, v_1^2) dw / \int m(w) N(w; 0, v_0^2) dw`. It is at least
    :math:`v_0 / v_1`, whatever the number of rows.
    """
    from scipy.interpolate import CubicSpline
    from scipy.special import logsumexp

    r, size = np.broadcast_arrays(np.asarray(r, float), np.asarray(size, float))
    finest = 0.1 * min(spike_scale, float(1.0 / np.sqrt(rows + 2.0)))
    top = float(np.arcsinh(_REACH * slab_scale / finest))
    s = np.linspace(-top, top, 2 * _HALF + 1)
    w, log_step = finest * np.sinh(s), np.log(np.cosh(s))
    most = np.arcsinh(float(np.abs(w).max() * size.max()))
    at = np.linspace(0.0, most, 600)
    shape = CubicSpline(at, _log_moment(np.sinh(at), 0.5 * rows + 1.0))
    out = np.empty(r.shape)
    for one in np.unique(size):
        same, x = size == one, w * one
        base = shape(np.arcsinh(np.abs(x))) + log_step
        pulls = _pulls(r[same], x, rate / one)
        slab, spike = (
            logsumexp(base - 0.5 * (w / scale) ** 2 - pulls, axis=1) - np.log(scale)
            for scale in (slab_scale, spike_scale)
        )
        out[same] = slab - spike
    return out


def log_laplace_odds(
    r: "np.ndarray | float",
    rows: float,
    size: np.ndarray,
    *,
    rate: float,
    diagonal_rate: float,
    negligible: float,
) -> np.ndarray:
    r"""Logarithm of the posterior odds that a partial correlation is not negligible under a Laplace prior.

    Parameters
    ----------
    r, rows, size
        As of `log_spike_slab_factor`, with the rate of the diagonal elements.
    rate, diagonal_rate : float
        Of the element w and of the diagonal elements.
    negligible : float
        Bound of the absolute partial correlation.

    Returns
    -------
    ndarray

    Notes
    -----
    With :math:`k = w^2 / l + g / a`, g is a Gamma(:math:`\nu / 2 + 1`) variable and :math:`u = b l` has the density under the
    integral of `log_spike_slab_factor`; the partial correlation :math:`w / \sqrt{k l}` is beyond :math:`\epsilon` if
    :math:`g u < a b w^2 (\epsilon^{-2} - 1)`.
    """
    from scipy.special import logsumexp

    r, size = np.broadcast_arrays(np.asarray(r, float), np.asarray(size, float))
    power = 0.5 * rows + 1.0
    out = np.empty(r.shape)
    for one in np.unique(size):
        same, (x, log_step) = size == one, _laplace_grid(power, one / rate)
        beyond, inside = _log_shares(x, power, negligible)
        base = log_step - rate * np.abs(x) / one - _pulls(r[same], x, diagonal_rate / one)
        out[same] = logsumexp(base + beyond, axis=1) - logsumexp(base + inside, axis=1)
    return out


def _pulls(r: np.ndarray, x: np.ndarray, lost: float) -> np.ndarray:
    """Minus the term of the log likelihood that has the sample correlation, a row for each of these."""
    return 2.0 * np.multiply.outer(r, x) * (1.0 - min(lost, 1.0))


def _log_shares(x: np.ndarray, power: float, negligible: float) -> list[np.ndarray]:
    """Logarithms of the integrals over u, for each x, of partial correlations beyond a bound and inside."""
    from scipy.special import gammainc, gammaincc, logsumexp

    square = x[:, None] ** 2
    logs, u = _moment_terms(square, power)
    scaled = square * (negligible**-2.0 - 1.0) / u
    with np.errstate(divide="ignore"):
        return [
            logsumexp(logs + np.log(share(power, scaled)), axis=1)
            for share in (gammainc, gammaincc)
        ]


def _laplace_grid(power: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Values of the element times `size` where the integrand of `log_laplace_odds` is, and logarithms of their steps."""
    return _signed_grid(min(0.02 * power**0.5, 0.1 * scale), 4.0 * power + 40.0)


def _signed_grid(finest: float, most: float) -> tuple[np.ndarray, np.ndarray]:
    """Values dense around zero, and logarithms of their steps."""
    s = np.linspace(-1.0, 1.0, 801) * float(np.arcsinh(most / finest))
    return finest * np.sinh(s), np.log(np.cosh(s))


def _log_moment(x: np.ndarray, power: float) -> np.ndarray:
    """Logarithm of the integral of u^(power - 1) exp(-u - x^2 / u), but for a constant of `power`."""
    from scipy.special import logsumexp

    return logsumexp(_moment_terms(x[:, None] ** 2, power)[0], axis=1)


def _moment_terms(square: np.ndarray, power: float) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the terms of the sum that stands for the integral of `_log_moment`, and the u of each."""
    mode = 0.5 * (power + np.sqrt(power**2 + 4.0 * square))
    width = 1.0 / np.sqrt(mode + square / mode)
    v = np.log(mode) + width * _NODES
    u = np.exp(v)
    return power * v - u - square / u + np.log(width), u
