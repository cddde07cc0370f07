"""Local scores of Gaussian networks: marginal likelihood and BIC of linear regressions."""

import math

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.kernels.scores.base import Score, fill_zeros, finite_numbers, positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from bayesstruct.networks.kernels.dag_priors import ParentPrior
    from bayesstruct.networks.kernels.gaussian_parents import GaussianFamilies

__all__ = ["BGe", "GaussianBIC", "ScatterBGe"]

_COLLINEAR = 1e-10  # share of a variable's squares that its parents have to leave


class _Gaussian(Score):
    """Scores that depend on the data by one matrix for each set of kept rows."""

    _weight, _floor, _tol = 0.0, 0.0, 0.0

    def __init__(self, table, interventions):
        self._table = finite_numbers(table)
        super().__init__(self._table.shape, interventions)
        self._statistics = {}

    def _fill(self, child, candidates, fixed, most, out):
        from bayesstruct.networks.kernels.scores.gaussian_subsets import gaussian_subsets

        if not self.n_rows[child]:
            fill_zeros(len(fixed), most, out)
            return
        matrix, *factors = self._of_group(self._group[child])
        gaussian_subsets(
            matrix,
            child,
            candidates,
            fixed,
            most,
            *factors,
            self._weight,
            self._floor,
            self._tol,
            out,
        )

    def _of_group(self, group):
        if group not in self._statistics:
            self._statistics[group] = self._prepare(self._table[self._kept[group]])
        return self._statistics[group]

    def families(self, prior: "ParentPrior") -> "GaussianFamilies":
        """Return these scores and a log prior for searches that do not tabulate them.

        Parameters
        ----------
        prior : bayesstruct.networks.kernels.dag_priors.ParentPrior

        Returns
        -------
        bayesstruct.networks.kernels.gaussian_parents.GaussianFamilies
        """
        from bayesstruct.networks.kernels.gaussian_parents import GaussianFamilies

        no_rows = np.eye(self.d), np.zeros(self.d), np.zeros(self.d)
        some = [rows.any() for rows in self._kept]
        parts = [self._of_group(g) if some[g] else no_rows for g in range(len(some))]
        sizes = [[offset + prior.log_size_weights, slope] for _, offset, slope in parts]
        absent, present = prior.log_arc_weights
        return GaussianFamilies(
            np.array([matrix for matrix, _, _ in parts]),
            self._group.astype(np.int64),
            np.array(sizes),
            present - absent,
            # Without rows all scores are 0: no limit and no determinant counts.
            np.outer(some, [self._weight, self._floor, self._tol]),
        )

    def single_parents(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores of all families with no parent and with one.

        Returns
        -------
        alone : (d,) ndarray
        pairs : (d, d) ndarray
            Entry [child, parent]; the diagonal is 0.
        """
        alone, pairs = np.zeros(self.d), np.zeros((self.d, self.d))
        for group, rows in enumerate(self._kept):
            if not rows.any():
                continue
            children = np.flatnonzero(self._group == group)
            matrix, offset, slope = self._of_group(group)
            own, pivot = matrix.diagonal(), np.maximum(matrix.diagonal(), self._floor)
            with np.errstate(divide="ignore", invalid="ignore"):
                left = own[children, None] - matrix[children] ** 2 / pivot
                left = np.maximum(left, self._floor)
                scores = offset[1] - slope[1] * np.log(left) - self._weight * np.log(pivot)
                first = np.maximum(own[children], self._floor)
                alone[children] = offset[0] - slope[0] * np.log(first)
            dead = (left <= self._tol * own[children, None]) | (pivot <= self._tol * own)
            pairs[children] = np.where(dead, -np.inf, scores)
        np.fill_diagonal(pairs, 0.0)
        return alone, pairs

    @abstractmethod
    def _prepare(self, rows):
        """Matrix, and the constants and factors of each size of a parent set."""


class BGe(_Gaussian):
    r"""Marginal likelihood of Gaussian networks, the same for equivalent graphs.

    The mean and precision matrix of all d variables have the prior

    .. math::

        \mu \mid W \sim N(\nu, (\alpha_\mu W)^{-1}), \qquad
        W \sim \mathrm{Wishart}(\alpha_w, T^{-1}), \qquad
        T = t I, \quad t = \frac{\alpha_\mu (\alpha_w - d - 1)}{\alpha_\mu + 1},

    the density of W being proportional to :math:`|W|^{(\alpha_w - d - 1) / 2} e^{-\mathrm{tr}(T W) / 2}`.
    So, for a child with p parents,

    .. math::

        x_i = \nu_i + a_i + (x_\pi - \nu_\pi)' b_i + N(0, v_i), \quad
        v_i \sim \mathrm{InvGamma}\Bigl(\frac{\alpha_w - d + p + 1}{2}, \frac t2\Bigr), \quad
        b_i \mid v_i \sim N\Bigl(0, \frac{v_i}{t} I\Bigr), \quad
        a_i \mid v_i \sim N\Bigl(0, \frac{v_i}{\alpha_\mu}\Bigr).

    The prior expects variances of about one; standardise the table, or the units decide. Collinear parents
    do no harm.

    Parameters
    ----------
    table : (n, d) array_like of float
    interventions : (n, d) bool array_like, optional
        True where a variable was set from outside.
    alpha_mu : float, default 1
        Number of rows that the prior of the mean is worth.
    alpha_w : float, optional
        Degrees of freedom, more than d + 1; d + alpha_mu + 1 by default.
    nu : (d,) array_like, optional
        Prior mean; zeros by default.

    Attributes
    ----------
    d : int
        Number of variables.
    n_rows : (d,) int array
        Rows in which each variable was not set.
    alpha_mu, alpha_w, scale : float
        Hyperparameters; `scale` is t.

    Raises
    ------
    ValueError
        If a value is not finite or a hyperparameter is out of range.

    References
    ----------
    Geiger, D. and Heckerman, D. (2002). Parameter priors for directed acyclic graphical models and the
    characterization of several probability distributions. *Annals of Statistics* 30, 1412-1440.

    Kuipers, J., Moffa, G. and Heckerman, D. (2014). Addendum on the scoring of Gaussian directed acyclic
    graphical models. *Annals of Statistics* 42, 1689-1691.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> score = BGe(x)
    >>> forward = score.local(0, ()) + score.local(1, (0,))
    >>> backward = score.local(1, ()) + score.local(0, (1,))
    >>> bool(np.isclose(forward, backward))
    True
    """

    _weight = 0.5

    def __init__(
        self,
        table: "ArrayLike",
        *,
        interventions: "ArrayLike | None" = None,
        alpha_mu: float = 1.0,
        alpha_w: float | None = None,
        nu: "ArrayLike | None" = None,
    ):
        super().__init__(table, interventions)
        self.alpha_mu = positive("alpha_mu", alpha_mu)
        self.alpha_w = float(self.d + self.alpha_mu + 1 if alpha_w is None else alpha_w)
        if not self.d + 1 < self.alpha_w < math.inf:
            raise ValueError(
                f"`alpha_w` must be above d + 1 = {self.d + 1}, it is {self.alpha_w}; leave it out "
                "for d + alpha_mu + 1"
            )
        self.scale = self.alpha_mu * (self.alpha_w - self.d - 1) / (self.alpha_mu + 1)
        self._nu = np.zeros(self.d) if nu is None else np.asarray(nu, np.float64)
        if self._nu.shape != (self.d,) or not np.isfinite(self._nu).all():
            raise ValueError(f"`nu` must hold {self.d} finite means, one for each variable")
        # R - T is positive semi-definite, so that no residual is below t.
        self._floor = self.scale

    def _prepare(self, rows):
        return self._prepared(len(rows), *_scatter(rows))

    def _prepared(self, n, matrix, mean):
        """Matrix and constants of n rows with this scatter matrix and these means."""
        from bayesstruct.networks.kernels.scores.gaussian_subsets import bge_constants

        shift = mean - self._nu
        matrix += n * self.alpha_mu / (n + self.alpha_mu) * np.outer(shift, shift)
        matrix[np.diag_indices(self.d)] += self.scale
        return matrix, *bge_constants(n, self.d, self.alpha_mu, self.alpha_w, self.scale)


class ScatterBGe(BGe):
    """The score `BGe` of rows of which only the scatter matrix is known, their means being zero.

    Parameters
    ----------
    scatter : (d, d) ndarray
        Sums of the products of the columns.
    n : int
        Number of rows.
    alpha_mu, alpha_w : float
        As in :class:`BGe`.
    """

    def __init__(self, scatter: np.ndarray, n: int, *, alpha_mu: float, alpha_w: float):
        super().__init__(np.zeros((1, len(scatter))), alpha_mu=alpha_mu, alpha_w=alpha_w)
        self.n_rows = np.full(self.d, n)
        self._statistics[0] = self._prepared(n, np.array(scatter), np.zeros(self.d))


class GaussianBIC(_Gaussian):
    r"""Minus half of the BIC of linear regressions with Gaussian noise.

    .. math::

        s_i(\pi) = -\frac n2 \bigl(\log(2 \pi \hat v) + 1\bigr) - \frac{p + 2}{2} \log n

    for p parents, :math:`\hat v` being the mean squared residual: p coefficients, an intercept and a
    variance are estimated. Parents that determine one of them (collinear, or constant), or that determine
    the child, score :math:`-\infty`: they leave a share below 1e-10 of its squared deviations. A variable
    that was set in every row scores 0.

    Parameters
    ----------
    table : (n, d) array_like of float
    interventions : (n, d) bool array_like, optional
        True where a variable was set from outside.

    Attributes
    ----------
    d : int
        Number of variables.
    n_rows : (d,) int array
        Rows in which each variable was not set.

    Raises
    ------
    ValueError
        If a value is not finite, or a variable is constant in the rows in which it was not set.

    References
    ----------
    Schwarz, G. (1978). Estimating the dimension of a model. *Annals of Statistics* 6, 461-464.
    """

    _tol = _COLLINEAR

    def __init__(self, table: "ArrayLike", *, interventions: "ArrayLike | None" = None):
        super().__init__(table, interventions)
        for j in np.flatnonzero(self.n_rows):
            column = self._table[self._kept[self._group[j]], j]
            if _constant(column):
                raise ValueError(
                    f"column {j} is constant in the {len(column)} rows in which it was not set: its "
                    "likelihood has no bound; leave the column out or use the score 'bge'"
                )

    def _prepare(self, rows):
        n, sizes = len(rows), np.arange(self.d)
        matrix, _ = _scatter(rows)
        # What rounding leaves of a constant would pass for a variable.
        constant = [j for j in range(self.d) if _constant(rows[:, j])]
        matrix[constant], matrix[:, constant] = 0.0, 0.0
        offset = -0.5 * n * (math.log(2 * math.pi / n) + 1) - 0.5 * (sizes + 2) * math.log(n)
        return matrix, offset, np.full(self.d, 0.5 * n)


def _scatter(rows):
    """Products of the deviations from the means, and the means."""
    mean = rows.mean(0)
    centred = rows - mean
    return centred.T @ centred, mean


def _constant(column):
    """Whether a column has one value."""
    return bool((column == column[0]).all())
