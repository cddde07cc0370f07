r"""Total, moments and quantiles of a smooth density of one number by the trapezoidal rule.

With :math:`x = c + s \sinh u` a density with tails that fall like a power becomes one with tails that fall exponentially, and the
trapezoidal rule of an analytic function that vanishes at both ends converges geometrically. Steps are halved until results stay the
same. The integral up to a point is that of the sinc interpolation through the same values,

.. math:: \int_{-\infty}^u g \approx \sum_j g(u_j) \, h \Bigl(\frac12 + \frac1\pi \mathrm{Si}\,\frac{\pi (u - u_j)}{h}\Bigr) .

References
----------
Trefethen, L. N. and Weideman, J. A. C. (2014). The exponentially convergent trapezoidal rule. *SIAM Review* 56, 385-458.

Stenger, F. (1993). *Numerical methods based on sinc and analytic functions*. Springer, chapter 4.
"""

from collections.abc import Callable, Sequence

import numpy as np

from scipy.optimize import brentq, minimize_scalar
from scipy.special import sici

__all__ = ["DensityMixture", "SmoothDensity"]

_NEGLIGIBLE = 36.0  # exp of minus it is the rounding error
_FIRST = 16  # intervals of the first rule
_NEAR = 4.0  # widths between centers that need no search
_GRID = 17
_HALVINGS = 9
#: Where the rule converges geometrically, half the step has the square of the error.
_TOLERANCE = 1e-6
_NO_PART = 1e-13  # weight of a part of a mixture that has no quantile of its own


class SmoothDensity:
    """A density known up to a factor, its total, mean and standard deviation.

    Parameters
    ----------
    log_density : callable
        Of (m,) numbers: logarithms of the density, (m,).
    centers, scales : (k,) ndarray of float
        Numbers near which it may be greatest, and widths there.
    hull : pair of float
        It falls below the first and above the second.

    Attributes
    ----------
    log_total : float
        Logarithm of its integral.
    mean, sd : float

    Raises
    ------
    ArithmeticError
        If steps had to be so small that the rule was given up.
    """

    def __init__(
        self,
        log_density: Callable[[np.ndarray], np.ndarray],
        centers: np.ndarray,
        scales: np.ndarray,
        hull: tuple[float, float],
    ):
        self._log_density, self._hull = log_density, hull
        places, widths, logs = self._places(centers, scales)
        best = int(np.argmax(logs))
        self._at, self._scale = places[best], widths[best]
        possible = logs > logs[best] - _NEGLIGIBLE
        away = places[possible] - self._at
        # A peak at each of these places is seen if the step in u is no longer than its width.
        step = (widths[possible] / np.hypot(self._scale, away)).min()
        self._u = np.linspace(*self._range(), _FIRST + 1)
        self._logs = self._log_integrand(self._u)
        last = np.full(3, np.nan)
        for _ in range(_HALVINGS):
            self._halve()
            now = self._moments()
            if self._u[1] - self._u[0] <= step and self._agree(last, now):
                break
            last = now
        else:
            raise ArithmeticError("peaks are too narrow, and too far from each other")
        self.log_total, mean, second = now
        self.mean = float(self._at + self._scale * mean)
        self.sd = float(self._scale * np.sqrt(second))

    def quantile(self, share: float) -> float:
        """Return the number below which a share of the distribution lies."""
        u, h = self._u, self._u[1] - self._u[0]
        # Quantiles near 0 and 1 may be outside by the wiggles of the interpolation.
        ends = u[0] - 2 * h, u[-1] + 2 * h
        root = brentq(lambda point: self._below(point) - share, *ends, xtol=1e-13, rtol=1e-13)
        return float(self._at + self._scale * np.sinh(root))

    def below(self, x: float) -> float:
        """Return the share of the distribution that lies below a number."""
        return self._below(np.arcsinh((x - self._at) / self._scale))

    def _below(self, point):
        u, h = self._u, self._u[1] - self._u[0]
        g = np.exp(self._logs - self._logs.max())
        return float(g @ (0.5 + sici(np.pi * (point - u) / h)[0] / np.pi) / g.sum())

    def _places(self, centers, scales):
        """Numbers where the density may be great, with widths, and its logarithms there."""
        low, high = self._hull
        logs = self._log_density(centers)
        if high - low <= _NEAR * scales.min():
            return centers, scales, logs
        # Centers far apart: the maximum may be at none of them. The best of a grid leads to it.
        grid = np.linspace(low, high, _GRID)
        places = np.append(centers, grid)
        widths = np.append(scales, np.full(_GRID, scales.min()))
        logs = np.append(logs, self._log_density(grid))
        order = np.argsort(places)
        at = int(np.flatnonzero(order == np.argmax(logs))[0])
        ends = places[order[max(at - 1, 0)]], places[order[min(at + 1, len(order) - 1)]]
        top = minimize_scalar(
            lambda x: -float(self._log_density(np.array([x]))[0]),
            bounds=ends,
            method="bounded",
            options={"xatol": 0.1 * scales.min()},
        )
        return np.append(places, top.x), np.append(widths, scales.min()), np.append(logs, -top.fun)

    def _log_integrand(self, u):
        """Logarithm of the density of u."""
        x = self._at + self._scale * np.sinh(u)
        return self._log_density(x) + np.log(self._scale * np.cosh(u))

    def _range(self) -> tuple[float, float]:
        """Both ends of u, beyond which there is nothing, second moments included."""
        [top] = self._log_integrand(np.zeros(1))
        ends = []
        for sign, end in zip((-1.0, 1.0), self._hull, strict=True):
            # Not before the last place where there may be a peak.
            u = sign * max(2.5, sign * np.arcsinh((end - self._at) / self._scale))
            while True:
                [log] = self._log_integrand(np.array([u]))
                top = max(top, log)
                if log + 2.0 * abs(u) < top - _NEGLIGIBLE:
                    break
                u *= 1.2
            ends.append(u)
        return ends[0], ends[1]

    def _halve(self) -> None:
        """Add the values half way between those that are known."""
        between = 0.5 * (self._u[1:] + self._u[:-1])
        places = np.arange(1, len(self._u))
        self._logs = np.insert(self._logs, places, self._log_integrand(between))
        self._u = np.insert(self._u, places, between)

    def _moments(self) -> np.ndarray:
        """Log total, mean and variance in units of the scale from the center."""
        top = self._logs.max()
        g = np.exp(self._logs - top)
        total, x = g.sum(), np.sinh(self._u)
        mean = g @ x / total
        variance = g @ (x - mean) ** 2 / total
        return np.array([top + np.log(total * (self._u[1] - self._u[0])), mean, variance])

    @staticmethod
    def _agree(last, now) -> bool:
        allowed = _TOLERANCE * np.array([1.0, np.sqrt(now[2]), now[2]])
        return bool((np.abs(now - last) <= allowed).all())


class DensityMixture:
    """Several densities, each with its total as weight.

    Parameters
    ----------
    parts : sequence of SmoothDensity
        One or more.

    Attributes
    ----------
    log_total : float
    mean, sd : float
    """

    def __init__(self, parts: Sequence[SmoothDensity]):
        logs = np.array([own.log_total for own in parts])
        self.log_total = float(np.logaddexp.reduce(logs))
        weight = np.exp(logs - self.log_total)
        means, deviations = (
            np.array([getattr(own, what) for own in parts]) for what in ("mean", "sd")
        )
        self.mean = float(weight @ means)
        self.sd = float(np.sqrt(weight @ (deviations**2 + (means - self.mean) ** 2)))
        kept = np.flatnonzero(weight > _NO_PART).tolist()
        self._parts, self._weight = [parts[k] for k in kept], weight[kept] / weight[kept].sum()

    def quantile(self, share: float) -> float:
        """Return the number below which a share of the distribution lies."""
        each = [own.quantile(share) for own in self._parts]
        # The quantile of a mixture is between those of its parts; equal ones differ by rounding.
        margin = 1e-6 * self.sd

        def excess(x):
            return self._weight @ [own.below(x) for own in self._parts] - share

        ends = min(each) - margin, max(each) + margin
        return float(brentq(excess, *ends, xtol=1e-14 * self.sd, rtol=1e-14))
