r"""When sink removal finds the graph of a linear structural equation model, and how large its error can be.

With a model :math:`x = B x + \varepsilon`, variances :math:`\sigma_i^2` of the noise and those that the method is told,
:math:`d_i` (ones, or known up to a factor), a sink is found if :math:`\Omega_{ii} d_i` is smaller for every variable without children
than for every one with children: in the whole model, and in what is left after any sequence of such removals.
"""

import math

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import number, positive_by_column, probability, whole_number
from bayesstruct.data.errors import TableError

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike

__all__ = ["SinkIdentifiability", "sink_identifiability", "tolerated_variance_ratio"]

_MOST = 14  # variables, of which all sets are looked at that contain the parents of their members


@dataclass(frozen=True)
class SinkIdentifiability:
    r"""Whether sink removal finds a known model, and from which estimates.

    Attributes
    ----------
    identifiable : bool
        Whether the true precision matrix gives the true model.
    margin : float
        Largest error of the elements of the precision matrices with which every sink is still told from the other variables; zero or negative
        without identifiability, infinite without arcs.
    norm : float
        :math:`M`, the largest sum of magnitudes in a column of the precision matrix of any of the sets of variables that can be left.
    smallest_element : float
        Smallest magnitude of an element of these matrices that is not zero.
    largest_weight : float
        Largest magnitude of a coefficient.
    smallest_weight : float
        Smallest magnitude of one that is not zero, infinite without arcs.
    largest_variance : float
        Largest variance of the noise.
    largest_total_variance : float
        Largest variance of a variable.
    variables : int
        p.
    """

    identifiable: bool
    margin: float
    norm: float
    smallest_element: float
    largest_weight: float
    smallest_weight: float
    largest_variance: float
    largest_total_variance: float
    variables: int

    @property
    def largest_penalty(self) -> float:
        """Penalty below which the error bound holds: 0 without identifiability."""
        least = min(self.margin, self.smallest_element, 1.0 / self.largest_variance)
        return max(least, 0.0) / (4.0 * self.norm)

    def error_bound(self, penalty: float) -> float:
        r"""Bound the error of every coefficient from CLIME with linear programs as updates.

        Parameters
        ----------
        penalty : float
            :math:`\lambda`, at least :math:`M` times the largest error of an element of the covariance matrix.

        Returns
        -------
        float
            :math:`4 M (1 + \max |b|) \, \sigma_{\max}^2 \lambda / (1 - 4 M \lambda \sigma_{\max}^2)`; infinite from `largest_penalty` on.

        Raises
        ------
        TypeError, ValueError
            If the penalty is not positive.

        Notes
        -----
        The constant differs from the one that is printed in the source, which is not in the units of a coefficient and is exceeded where the
        variances are small: :math:`\hat b_{ij} - b_{ij} = (e_{ij} + b_{ij} e_{ii}) / (1 / \sigma_i^2 - e_{ii})` for errors e of a precision matrix of at
        most :math:`4 M \lambda`.
        """
        penalty = number("penalty", penalty, above=0.0)
        if penalty >= self.largest_penalty:
            return math.inf
        error = 4.0 * self.norm * penalty * self.largest_variance
        return error * (1.0 + self.largest_weight) / (1.0 - error)

    def penalty(self, n: int, confidence: float = 0.95, sub_gaussian: float = 1.0) -> float:
        r"""Penalty that is large enough with this probability.

        Parameters
        ----------
        n : int
            Number of rows.
        confidence : float
            Probability that the bound holds.
        sub_gaussian : float
            Parameter :math:`\nu` of the standardised noise, 1 for normal noise and for random signs.

        Returns
        -------
        float
            :math:`M \sqrt{128} (1 + 4 \nu^2) \max_i \Sigma_{ii} \sqrt{(2 / n) \log(2 p / \sqrt\delta)}`, :math:`\delta` being 1 - `confidence`.

        Notes
        -----
        Only its rate is of practical use: for 50 columns it exceeds 1, where the estimate is zero, up to some ten million rows.
        """
        n, delta = whole_number("n", n, 1), 1.0 - _confidence(confidence)
        return self._constant(sub_gaussian) * math.sqrt(2.0 / n * self._log(delta))

    def rows(self, error: float, confidence: float = 0.95, sub_gaussian: float = 1.0) -> float:
        """Return how many rows keep the error of every coefficient below a bound with this probability.

        Parameters
        ----------
        error : float
            Below half of `smallest_weight`, a threshold of this size gives the true graph.
        confidence, sub_gaussian : float
            As in `penalty`, which is the penalty to use.

        Returns
        -------
        float
            Infinite without identifiability.
        """
        error, delta = number("error", error, above=0.0), 1.0 - _confidence(confidence)
        # The penalty at which the bound equals the error, or the largest one.
        unit = 4.0 * self.norm * self.largest_variance
        penalty = min(error / (unit * (1.0 + self.largest_weight + error)), self.largest_penalty)
        if penalty == 0.0:
            return math.inf
        return 2.0 * (self._constant(sub_gaussian) / penalty) ** 2 * self._log(delta)

    def _constant(self, sub_gaussian):
        nu = number("sub_gaussian", sub_gaussian, above=0.0)
        return self.norm * math.sqrt(128.0) * (1.0 + 4.0 * nu * nu) * self.largest_total_variance

    def _log(self, delta):
        return math.log(2.0 * self.variables / math.sqrt(delta))


def _confidence(value):
    """Check a probability that is neither 0 nor 1."""
    value = probability("confidence", value)
    if not 0.0 < value < 1.0:
        raise ValueError(f"`confidence` must be between 0 and 1, it is {value:g}")
    return value


def sink_identifiability(
    weights: "pd.DataFrame | ArrayLike", variances: Any, *, told: Any = None
) -> SinkIdentifiability:
    r"""Say whether removing sinks finds a known linear structural equation model.

    Every set of variables is looked at that can be left after removals: those that contain the parents of their members.

    Parameters
    ----------
    weights : (p, p) DataFrame or array_like
        Coefficients, row the child, column the parent; at most 14 variables.
    variances : mapping or (p,) array_like
        Variances of the noise.
    told : mapping or (p,) array_like, optional
        Variances that the method is told, right up to a factor or wrong; equal ones by default.

    Returns
    -------
    SinkIdentifiability

    Raises
    ------
    TableError
        If the graph has a cycle, there are too many variables, or an argument is malformed.

    See Also
    --------
    bayesstruct.solvers.sink_removal : the method.
    tolerated_variance_ratio : how wrong the variances may be that the method is told, for any number of variables.

    References
    ----------
    Ghoshal, A. (2019). *Efficient Algorithms for Learning Combinatorial Structures from Limited Data*. PhD thesis, Purdue University;
    assumptions 2.3.1, 2.3.8 and 2.4.2, theorems 2.3.10 and 2.3.12, with other constants (see `SinkIdentifiability.error_bound`).

    Examples
    --------
    >>> from bayesstruct.exact import sink_identifiability
    >>> chain = [[0, 0, 0], [0.8, 0, 0], [0, 0.8, 0]]  # x0 -> x1 -> x2
    >>> sink_identifiability(chain, [1, 1, 1]).identifiable
    True
    >>> sink_identifiability(chain, [1, 1, 0.2]).identifiable
    False
    >>> sink_identifiability(chain, [1, 1, 0.2], told=[5, 5, 1]).identifiable
    True
    """
    names, B, noise = _model(weights, variances)
    p = len(names)
    if p > _MOST:
        raise TableError(
            f"{p} variables have too many sets that can be left: at most {_MOST}, or ask tolerated_variance_ratio"
        )
    scale = np.ones(p) if told is None else positive_by_column("told", told, names)
    mixing = np.linalg.inv(np.eye(p) - B)
    margin, norm, smallest = math.inf, 0.0, math.inf
    for left in _sets(B):
        part = np.eye(len(left)) - B[np.ix_(left, left)]
        omega = part.T @ (part / noise[left, None])
        size = abs(omega)
        norm, smallest = max(norm, size.sum(axis=0).max()), min(smallest, _smallest(size))
        sinks = ~B[np.ix_(left, left)].any(axis=0)
        value, d = np.diag(omega) * scale[left], scale[left]
        if not sinks.all():
            gaps = (value[~sinks, None] - value[sinks]) / (d[~sinks, None] + d[sinks])
            margin = min(margin, gaps.min())
    arcs = abs(B[B != 0])
    return SinkIdentifiability(
        bool(margin > 0),
        float(margin),
        float(norm),
        float(smallest),
        float(arcs.max(initial=0.0)),
        float(arcs.min(initial=math.inf)),
        float(noise.max()),
        float(np.diag(mixing @ (noise[:, None] * mixing.T)).max()),
        p,
    )


def tolerated_variance_ratio(weights: "pd.DataFrame | ArrayLike", variances: Any) -> float:
    r"""Say how wrong variances of the noise may be when sinks are removed with them.

    Parameters
    ----------
    weights : (p, p) DataFrame or array_like
        Coefficients, row the child, column the parent.
    variances : mapping or (p,) array_like
        True variances of the noise.

    Returns
    -------
    float
        :math:`1 + \min b_{lj}^2 \sigma_j^2 / \sigma_l^2` over the arcs from j to l; infinite without arcs. The true model is found if the variances that the
        method is told are the true ones times factors of which the largest is less than this number of times the smallest.

    Raises
    ------
    TableError
        If the graph has a cycle, or an argument is malformed.

    Notes
    -----
    Each arc counts alone, since the last child of a variable that is left decides. The condition as printed in section 2.4 of the
    source lacks the variances and is not sufficient.

    References
    ----------
    Ghoshal, A. (2019). *Efficient Algorithms for Learning Combinatorial Structures from Limited Data*. PhD thesis, Purdue University; section 2.4.

    Examples
    --------
    >>> from bayesstruct.exact import tolerated_variance_ratio
    >>> tolerated_variance_ratio([[0, 0], [1.5, 0]], [0.1, 10])
    1.0225
    """
    _, B, noise = _model(weights, variances)
    child, parent = np.nonzero(B)
    shares = B[child, parent] ** 2 * noise[parent] / noise[child]
    return float(1.0 + shares.min(initial=math.inf))


def _model(weights, variances):
    """Names, coefficients and variances of a model, checked."""
    labels = getattr(weights, "columns", None)
    B = np.array(weights, dtype=np.float64)
    if B.ndim != 2 or B.shape[0] != B.shape[1] or not np.isfinite(B).all():
        raise TableError(
            "`weights` must be a square matrix of finite numbers, row the child, column the parent"
        )
    names = [f"x{i}" for i in range(len(B))] if labels is None else [str(name) for name in labels]
    if labels is not None and [str(name) for name in weights.index] != names:
        raise TableError(
            "`weights` has its rows in another order than its columns: give both the same"
        )
    left = np.ones(len(B), bool)
    while left.any():
        roots = left & ~B[:, left].any(axis=1)
        if not roots.any():
            raise TableError(
                f"`weights` has a cycle among {[names[i] for i in np.flatnonzero(left)]}"
            )
        left &= ~roots
    return names, B, positive_by_column("variances", variances, names)


def _sets(B):
    """Yield all sets of variables, not empty, that contain the parents of their members."""
    p = len(B)
    children = [sum(1 << int(i) for i in np.flatnonzero(B[:, j])) for j in range(p)]
    seen, new = {(1 << p) - 1}, [(1 << p) - 1]
    while new:
        members = new.pop()
        yield np.array([j for j in range(p) if members >> j & 1])
        for j in range(p):
            rest = members & ~(1 << j)
            if members >> j & 1 and not children[j] & members and rest and rest not in seen:
                seen.add(rest)
                new.append(rest)


def _smallest(size):
    """Smallest element that is not zero; what cancels but for rounding counts as zero."""
    return size[size > 1e-12 * size.max()].min()
