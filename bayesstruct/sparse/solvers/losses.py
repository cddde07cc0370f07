r"""Negative log-likelihoods of regressions, with the dual functions that certify their modes.

A loss is a function of the linear predictor :math:`z = X w` alone, summed over the rows. The dual
variable of a row is :math:`\alpha = -L'(z)`, and `dual` is :math:`-L^*(-\alpha)`: for any
:math:`\alpha` that the penalty admits, it bounds the minimum from below (Tomioka, Suzuki and
Sugiyama 2011, equations 3-4 and table 1, whose constants are restored here).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.data.arguments import is_missing, numbers

__all__ = [
    "Custom",
    "Gaussian",
    "Huber",
    "Logistic",
    "Loss",
    "Multinomial",
    "Poisson",
    "ShiftedLogistic",
    "loss_for",
]


class Loss(ABC):
    """A convex, smooth, summed loss of the linear predictor."""

    #: Whether the curvature is the same at every point, so that Gram matrices can be kept.
    quadratic = False
    #: Labels of the responses in the order of their codes, if they are labels.
    classes: np.ndarray | None = None
    #: Lower bound of the value: tolerances are relative to the excess over it.
    least = 0.0

    @abstractmethod
    def value(self, z: np.ndarray) -> float:
        """Loss at the linear predictor."""

    @abstractmethod
    def derivative(self, z: np.ndarray) -> np.ndarray:
        """Return the derivative of the loss in each entry of the linear predictor."""

    def curvature(self, z: np.ndarray) -> np.ndarray:
        """Second derivative in each entry of the linear predictor."""
        raise TypeError(f"{type(self).__name__} has no second derivative")

    def hessian(self, z: np.ndarray, U: np.ndarray) -> np.ndarray:
        """Second derivatives along a few columns of the predictor, (len(z), m)."""
        return U.T @ (self.curvature(z)[:, None] * U)

    def dual(self, alpha: np.ndarray) -> float:
        """Value of the dual function, minus infinity outside its domain or where it is unknown."""
        return -np.inf

    def take(self, rows: np.ndarray) -> "Loss":
        """Return the loss of some of the rows."""
        raise TypeError(
            f"{type(self).__name__} cannot be split by rows, as resampling does; it takes a family"
        )

    def kinds(self) -> tuple[np.ndarray, list[str]] | None:
        """Codes of the responses of which a constant needs some of each kind, and their names.

        Responses of code -1 are not needed. None if any responses are allowed.
        """
        return None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the linear predictor."""


def _negative_entropy(m):
    """Sum of m log m, minus infinity's sign convention: infinite where an entry is negative."""
    if m.min(initial=0.0) < 0.0:
        return np.inf
    positive = m[m > 0.0]
    return float(positive @ np.log(positive))


@dataclass(frozen=True, eq=False)
class _ResponseLoss(Loss):
    """A loss with one response for each row.

    Attributes
    ----------
    y : (n,) numpy.ndarray
        Responses.
    """

    y: np.ndarray

    @property
    def shape(self):
        """One entry for each row."""
        return self.y.shape

    def take(self, rows):
        """Return the loss of some of the rows."""
        return replace(self, y=self.y[rows])


class Gaussian(_ResponseLoss):
    r"""Half the sum of squares, :math:`\tfrac12\sum_i (y_i - z_i)^2`: unit noise variance."""

    quadratic = True

    def value(self, z):
        """Half the residual sum of squares."""
        r = self.y - z
        return 0.5 * float(r @ r)

    def derivative(self, z):
        """Minus the residuals."""
        return z - self.y

    def curvature(self, z):
        """Ones."""
        return np.ones_like(z)

    def dual(self, alpha):
        """Concave quadratic, finite everywhere."""
        return float(alpha @ self.y - 0.5 * alpha @ alpha)


@dataclass(frozen=True, eq=False)
class Logistic(_ResponseLoss):
    r"""Bernoulli loss, :math:`\sum_i \log(1 + e^{z_i}) - y_i z_i` with labels 0 and 1.

    Attributes
    ----------
    classes : (2,) numpy.ndarray, optional
        Labels of 0 and 1.
    """

    classes: np.ndarray | None = None

    def kinds(self):
        """Both labels."""
        return self.y.astype(int), _label_names(self.classes, 2)

    def value(self, z):
        """Negative log-likelihood."""
        return float(np.logaddexp(0.0, z).sum() - self.y @ z)

    def derivative(self, z):
        """Probability of 1 minus label."""
        return _sigmoid(z) - self.y

    def curvature(self, z):
        """Variance of each label."""
        p = _sigmoid(z)
        return p * (1.0 - p)

    def dual(self, alpha):
        """Entropy of the labels' probabilities."""
        p = self.y - alpha
        return -_negative_entropy(p) - _negative_entropy(1.0 - p)


@dataclass(frozen=True, eq=False)
class ShiftedLogistic(Logistic):
    """Logistic loss of a linear predictor to which constants are added.

    Attributes
    ----------
    shift : float or (n,) numpy.ndarray
        One for all rows, or one for each.
    """

    shift: float | np.ndarray = 0.0

    def take(self, rows):
        """Return the loss of some of the rows."""
        shift = self.shift if np.ndim(self.shift) == 0 else self.shift[rows]
        return replace(self, y=self.y[rows], shift=shift)

    def value(self, z):
        """Negative log-likelihood."""
        return super().value(z + self.shift)

    def derivative(self, z):
        """Probability of 1 minus label."""
        return super().derivative(z + self.shift)

    def curvature(self, z):
        """Variance of each label."""
        return super().curvature(z + self.shift)

    def dual(self, alpha):
        """Entropy of the labels' probabilities, minus the product with the shift."""
        return super().dual(alpha) - float(np.sum(self.shift * alpha))


class Poisson(_ResponseLoss):
    r"""Poisson loss without :math:`\log y_i!`: :math:`\sum_i e^{z_i} - y_i z_i`."""

    @cached_property
    def least(self):
        """Value where each mean is the count: below zero as a rule."""
        return float(self.y.sum()) - _negative_entropy(self.y)

    def value(self, z):
        """Negative log-likelihood up to a constant of the responses."""
        return float(np.exp(z).sum() - self.y @ z)

    def derivative(self, z):
        """Mean minus count."""
        return np.exp(z) - self.y

    def curvature(self, z):
        """Mean of each count."""
        return np.exp(z)

    def dual(self, alpha):
        """Entropy of the means."""
        m = self.y - alpha
        return float(m.sum()) - _negative_entropy(m)

    def kinds(self):
        """Return which counts are above zero."""
        return np.where(self.y > 0, 0, -1), ["a count above zero"]


@dataclass(frozen=True, eq=False)
class Huber(_ResponseLoss):
    """Squares near zero, absolute values beyond a threshold: robust to outlying responses.

    Attributes
    ----------
    threshold : float
        Residual at which the loss turns linear, in units of the response.
    """

    threshold: float = 1.345

    def value(self, z):
        """Sum of squares and absolute values."""
        r = np.abs(self.y - z)
        linear = self.threshold * (r - 0.5 * self.threshold)
        return float(np.where(r <= self.threshold, 0.5 * r * r, linear).sum())

    def derivative(self, z):
        """Minus the clipped residuals."""
        return -np.clip(self.y - z, -self.threshold, self.threshold)

    def curvature(self, z):
        """One where the residual is small; beyond, where it is zero, a small model curvature."""
        return np.where(np.abs(self.y - z) <= self.threshold, 1.0, 1e-2)

    def dual(self, alpha):
        """Concave quadratic on the clipped range."""
        if np.abs(alpha).max(initial=0.0) > self.threshold * (1 + 1e-12):
            return -np.inf
        return float(alpha @ self.y - 0.5 * alpha @ alpha)


@dataclass(frozen=True, eq=False)
class Multinomial(Loss):
    r"""Categorical loss :math:`\sum_i \log\sum_c e^{z_{ic}} - z_{i y_i}`, no reference category.

    Linear predictors and dual variables are (n, k), or the same flattened row by row.

    Attributes
    ----------
    indicators : (n, k) numpy.ndarray
        One row for each observation with a single 1 at its category.
    classes : (k,) numpy.ndarray, optional
        Names of the categories.
    """

    indicators: np.ndarray
    classes: np.ndarray | None = None

    def kinds(self):
        """Return all labels."""
        k = self.indicators.shape[1]
        return self.indicators.argmax(axis=1), _label_names(self.classes, k)

    @property
    def shape(self):
        """One row for each observation, one column for each category."""
        return self.indicators.shape

    def take(self, rows):
        """Return the loss of some of the rows."""
        return replace(self, indicators=self.indicators[rows])

    def value(self, z):
        """Negative log-likelihood."""
        from scipy.special import logsumexp

        z = z.reshape(self.shape)
        return float(logsumexp(z, axis=1).sum() - np.vdot(self.indicators, z))

    def derivative(self, z):
        """Probabilities minus indicators."""
        return self.curvature(z) - self.indicators.reshape(z.shape)

    def curvature(self, z):
        r"""Probabilities :math:`\pi`: a row's Hessian is :math:`\mathrm{diag}(\pi) - \pi \pi'`."""
        from scipy.special import softmax

        return softmax(z.reshape(self.shape), axis=1).reshape(z.shape)

    def hessian(self, z, U):
        """Second derivatives along a few columns of the flat predictor."""
        P = self.curvature(z).reshape(self.shape)
        U = U.reshape(*self.shape, -1)
        along = np.einsum("ic,icm->im", P, U)
        return np.einsum("icm,ic,icl->ml", U, P, U) - along.T @ along

    def dual(self, alpha):
        """Entropy of the categories' probabilities."""
        p = self.indicators - alpha.reshape(self.shape)
        if np.abs(p.sum(axis=1) - 1.0).max(initial=0.0) > 1e-9:
            return -np.inf
        return -_negative_entropy(p.ravel())


@dataclass(frozen=True, eq=False)
class Custom(Loss):
    """A loss given by its value and gradient; modes are certified by their KKT residual only.

    Attributes
    ----------
    value_and_gradient : callable
        Takes the linear predictor, returns its loss and the derivative in each entry.
    rows : int
        Length of the linear predictor.
    """

    value_and_gradient: Callable
    rows: int

    @property
    def shape(self):
        """One entry for each row."""
        return (self.rows,)

    def value(self, z):
        """Return the value given by the callable."""
        return float(self.value_and_gradient(z)[0])

    def derivative(self, z):
        """Return the derivative given by the callable."""
        return np.asarray(self.value_and_gradient(z)[1], dtype=float)


def _label_names(classes, k):
    known = range(k) if classes is None else np.asarray(classes).tolist()
    return [f"label {name!r}" for name in known]


def _sigmoid(z):
    from scipy.special import expit

    return expit(z)


def loss_for(family: str | Loss, y: ArrayLike) -> Loss:
    """Make the loss of a family, checking that the responses fit it.

    Parameters
    ----------
    family : {"gaussian", "logistic", "multinomial", "poisson", "huber"} or Loss
        Family of the responses, or a loss that already holds them.
    y : (n,) array_like
        Responses: numbers; two distinct labels (logistic; the larger one is the 1, of an ordered
        categorical the later one); labels (multinomial; text, categories or whole numbers, sorted
        likewise); counts (Poisson).

    Raises
    ------
    ValueError
        If the responses do not fit the family; the message says which responses it needs.
    """
    if isinstance(family, Loss):
        return family
    from bayesstruct.data.names import nearest

    if not isinstance(family, str) or family not in _MAKERS:
        raise ValueError(nearest("family", family, _MAKERS))
    responses, names = _responses(y)
    if responses.ndim != 1:
        raise ValueError(
            "`y` must be one column of responses, a list or array of them; it has shape "
            f"{responses.shape}"
        )
    if not len(responses):
        raise ValueError("`y` is empty; give a response for each row of `X`")
    loss = _MAKERS[family](responses)
    if names is None or loss.classes is None:
        return loss
    return replace(loss, classes=names[loss.classes])


def _responses(y):
    """Return responses as an array; of an ordered categorical the codes, and the categories."""
    if np.ma.is_masked(y):
        row = int(np.flatnonzero(np.ma.getmaskarray(y))[0])
        raise ValueError(f"response {row} is masked; leave out or impute such rows")
    categories = getattr(y, "cat", y)
    if getattr(categories, "ordered", False) and not y.isna().any():
        return np.asarray(categories.codes), np.asarray(categories.categories)
    y = np.asarray(y)
    if y.dtype.kind == "c":
        raise ValueError("the responses are complex; give real numbers or labels")
    return y, None


def _numbers(y):
    try:
        values = numbers("the responses", y)
    except ValueError as error:
        raise ValueError(f'{error} (family="logistic" or "multinomial" takes labels)') from None
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(f"response {bad[0]} is {values[bad[0]]}; leave out or impute such rows")
    return values


def _logistic(y):
    labels, codes = _coded(y)
    if len(labels) != 2:
        shown = ", ".join(map(str, labels[:4])) + (", ..." if len(labels) > 4 else "")
        remedy = 'use family="multinomial"' if len(labels) > 2 else "there is nothing to predict"
        raise ValueError(
            f"a logistic regression needs two labels, `y` has {len(labels)} ({shown}); {remedy}"
        )
    return Logistic(codes.astype(float), labels)


def _multinomial(y):
    labels, codes = _coded(y)
    parts = [v for v in labels.tolist() if isinstance(v, float) and not v.is_integer()]
    if parts:
        raise ValueError(
            f"a multinomial regression needs labels, `y` holds numbers with fractions ({parts[0]:g}): "
            'use family="gaussian" for measurements, or make the labels text'
        )
    if len(labels) < 2:
        raise ValueError("all responses have the same label; there is nothing to predict")
    return Multinomial(np.eye(len(labels))[codes], labels)


def _coded(y):
    """Return the sorted labels, and the number of each response's."""
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"response {np.flatnonzero(~np.isfinite(y))[0]} is missing or infinite")
    if y.dtype.kind in "mM" and np.isnat(y).any():
        raise ValueError(f"response {np.flatnonzero(np.isnat(y))[0]} is missing")
    if y.dtype.kind == "O":
        gaps = [i for i, label in enumerate(y) if is_missing(label)]
        if gaps:
            raise ValueError(f"response {gaps[0]} is missing; leave out or impute such rows")
    try:
        return np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y})
        raise ValueError(
            f"the labels in `y` are of several kinds ({', '.join(kinds)}); make all of them text"
        ) from None


def _poisson(y):
    counts = _numbers(y)
    if counts.min(initial=0.0) < 0 or np.any(counts != np.round(counts)):
        raise ValueError("a Poisson regression needs counts: whole numbers from 0 up")
    return Poisson(counts)


_MAKERS = {
    "gaussian": lambda y: Gaussian(_numbers(y)),
    "huber": lambda y: Huber(_numbers(y)),
    "logistic": _logistic,
    "multinomial": _multinomial,
    "poisson": _poisson,
}
