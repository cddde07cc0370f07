"""Modes of one sparse regression for each column of a table on all the others."""

from dataclasses import dataclass

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.core.solution import Solution
from bayesstruct.data.arguments import number, numbers, whole_number
from bayesstruct.data.names import nearest
from bayesstruct.sparse.solvers.designs import as_design
from bayesstruct.sparse.solvers.losses import loss_for
from bayesstruct.sparse.solvers.proximal_newton import (
    Certifier,
    GramCache,
    Problem,
    proximal_newton,
)

__all__ = ["NeighbourhoodSolution", "neighbourhood_modes"]


@dataclass(frozen=True, eq=False)
class NeighbourhoodSolution(Solution):
    """A `Solution` of p regressions; its numbers are sums or the worst over them.

    Attributes
    ----------
    coefficients : (p, p) numpy.ndarray
        Row j: coefficients of the regression of column j; zero on the diagonal.
    intercepts : (p,) numpy.ndarray
        Unpenalised constants.
    gaps : (p,) numpy.ndarray
        Duality gap of each regression.
    """

    coefficients: np.ndarray
    intercepts: np.ndarray
    gaps: np.ndarray

    def graph(self, rule: str = "and") -> np.ndarray:
        """Undirected graph of the directed neighbourhoods.

        Parameters
        ----------
        rule : {"and", "or"}
            Join two columns if each is a neighbour of the other, or if one is.

        Returns
        -------
        (p, p) numpy.ndarray of bool
            Symmetric adjacency matrix.
        """
        arcs = self.coefficients != 0
        rules = {"and": arcs & arcs.T, "or": arcs | arcs.T}
        if rule not in rules:
            raise ValueError(nearest("rule", rule, rules))
        return rules[rule]


def neighbourhood_modes(
    X: ArrayLike,
    *,
    family: str = "gaussian",
    rate: ArrayLike,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> NeighbourhoodSolution:
    r"""Regress each column on all the others under Laplace priors.

    .. math:: \min_{w, b} \; \sum_i \ell(x_{ij}, x_{i,-j}' w + b) + \lambda_j \|w\|_1
              \qquad j = 1, \dots, p

    The mode of a *dependency network* (Heckerman et al. 2000): p models that need not fit into one
    joint distribution, so that the two coefficients of a pair differ.

    Parameters
    ----------
    X : (n, p) array_like, DataFrame or scipy.sparse matrix
        The table; two values in each column for the logistic family.
    family : {"gaussian", "logistic", "poisson", "huber"}
        Of every column.
    rate : float or (p,) array_like
        :math:`\lambda_j`, the rate of the Laplace prior of the regression of column j.
    tol : float
        Largest duality gap of each, relative to its loss without predictors.
    max_iter : int
        Maximum number of passes over the table for each.

    Returns
    -------
    NeighbourhoodSolution
        Coefficients, intercepts and gaps.

    Raises
    ------
    ValueError
        If a column does not suit the family; the message names it.

    Warns
    -----
    ConvergenceWarning
        If a gap is above `tol`.

    Notes
    -----
    The regressions share the table, and their Gram matrix if the family is Gaussian. Other sources
    average the loss over rows: their :math:`\lambda` is this rate over n (Wainwright), or over n / 2
    (Meinshausen and Buhlmann write the mean of squares).

    References
    ----------
    Meinshausen, N., Buhlmann, P. (2006). High-dimensional graphs and variable selection with the
    lasso. *Annals of Statistics* 34, 1436-1462, equation 3.

    Ravikumar, P., Wainwright, M., Lafferty, J. (2010). High-dimensional Ising model selection using
    l1-regularized logistic regression. *Annals of Statistics* 38, 1287-1319, equation 6.
    """
    design = as_design(X, intercept=True)
    p = design.p - 1
    if p < 2:
        raise ValueError("neighbourhoods need at least two columns, the table has one")
    rates = numbers("`rate`", rate, flags=False)
    if rates.shape not in {(), (p,)} or not (np.isfinite(rates).all() and (rates > 0).all()):
        raise ValueError(
            f"`rate` must be positive and finite, one number or one for each of the {p} columns"
        )
    rates = np.broadcast_to(rates, (p,))
    tol, max_iter = number("tol", tol, least=0), whole_number("max_iter", max_iter, 1)
    if family == "multinomial":
        raise ValueError(
            "a column of labels has more than one coefficient; use bs.models.pairwise_mrf"
        )
    coefficients, intercepts, gaps = np.zeros((p, p)), np.zeros(p), np.zeros(p)
    iterations, converged, cache = 0, True, None
    for j in range(p):
        problem, certifier = _regression(design, family, j, rates[j])
        cache = GramCache(problem) if cache is None else cache
        state = proximal_newton(
            problem, certifier, start=certifier.null, tol=tol, max_iter=max_iter, cache=cache
        )
        coefficients[j], intercepts[j], gaps[j] = state.w[:p], state.w[p], state.gap
        converged &= state.gap <= tol * certifier.null_objective
        iterations += state.iterations
    objective = np.nan  # p objectives, of p models
    solution = NeighbourhoodSolution(
        objective, gaps.max(), iterations, bool(converged), coefficients, intercepts, gaps
    )
    solution.warn_unless_converged("neighbourhood_modes", "Raise `max_iter` or `tol`.")
    return solution


def _regression(design, family, j, rate):
    """Problem of one column, whose own coefficient is kept at zero."""
    column = design.columns(np.array([j]))
    column = (column.toarray() if design.sparse else column)[:, 0]
    try:
        loss = loss_for(family, column)
        up = np.full(design.p, rate)
        up[j], up[-1] = np.inf, 0.0
        problem = Problem(design, loss, up, up)
        return problem, Certifier(problem)
    except ValueError as error:
        raise ValueError(f"column {design.names[j]!r}: {error}") from None
