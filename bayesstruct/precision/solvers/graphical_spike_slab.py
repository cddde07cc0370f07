r"""Mode of a precision matrix under normal rows and the spike-and-slab prior."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesstruct.core.solution import PrecisionSolution

__all__ = ["SpikeSlabSolution", "graphical_spike_slab"]


@dataclass(frozen=True, eq=False)
class SpikeSlabSolution(PrecisionSolution):
    """A :class:`PrecisionSolution` of a problem that is not concave.

    Attributes
    ----------
    gap : float
        Here the largest absolute element of the gradient over n; a duality gap does not exist.
    inclusion : (p, p) numpy.ndarray
        Probability of each edge given the mode.
    """

    inclusion: np.ndarray


def graphical_spike_slab(
    scatter: Any,
    n: float,
    log_odds: Any = 0.0,
    *,
    spike_scale: float = 0.02,
    slab_scale: float = 1.0,
    diagonal_rate: float = 0.5,
    init: Any = None,
    tol: float = 1e-9,
    max_iter: int = 20_000,
) -> SpikeSlabSolution:
    r"""Maximise the posterior density of a precision matrix, the indicators summed out.

    .. math::

        \max_{K \succ 0} \tfrac{n}{2} \log|K| - \tfrac12 \mathrm{tr}(S K)
            + \sum_{i<j} \log\left[\pi_{ij} N(k_{ij}; 0, v_1^2)
            + (1 - \pi_{ij}) N(k_{ij}; 0, v_0^2)\right] - d \sum_i k_{ii}

    This is the mode under :class:`bayesstruct.GraphicalSpikeSlab`. Each column in turn is moved to
    the maximum of its coordinates given the others, a coordinate by expectation-maximisation from
    both its spike and its slab value; every update raises the objective. Which of the local modes
    is reached depends on ``init``.

    Parameters
    ----------
    scatter : (p, p) array_like
        :math:`S`, sum of outer products of the rows.
    n : float
        Number of rows, at least 1.
    log_odds : float or (p, p) array_like
        Prior log odds of each edge.
    spike_scale, slab_scale : float
        Standard deviations :math:`v_0 < v_1`.
    diagonal_rate : float
        Exponential rate :math:`d` of the diagonal.
    init : (p, p) array_like, optional
        Positive definite start; the identity unless given.
    tol : float
        Bound on the largest absolute element of the gradient over n.
    max_iter : int
        Bound on the sweeps over the columns.

    Returns
    -------
    SpikeSlabSolution

    Raises
    ------
    ValueError
        If the scatter matrix is not square and symmetric or a parameter is out of range.

    Warns
    -----
    ConvergenceWarning
        If the gradient is above ``tol`` after ``max_iter`` sweeps.

    References
    ----------
    Wang, H. (2015). Scaling it up: stochastic search structure learning in graphical models.
    *Bayesian Analysis* 10(2), 351-377, equations 3-5.

    Li, Z. and McCormick, T. (2019). An expectation conditional maximization approach for Gaussian
    graphical models. *Journal of Computational and Graphical Statistics* 28(4), 767-777.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.solvers import graphical_spike_slab
    >>> solution = graphical_spike_slab(100 * np.array([[1.0, 0.7], [0.7, 1.0]]), 100)
    >>> bool(solution.inclusion[0, 1] > 0.99)
    True
    """
    from bayesstruct.precision.kernels import spike_slab_mode as kernel
    from bayesstruct.precision.kernels.odds import edge_probabilities

    scatter = _checked(scatter, n, spike_scale, slab_scale, diagonal_rate)
    p = len(scatter)
    odds = np.array(np.broadcast_to(np.asarray(log_odds, dtype="float64"), (p, p)))
    start = np.eye(p) if init is None else np.array(init, dtype="float64")
    scales = (float(spike_scale), float(slab_scale))
    rest = (float(n), odds, *scales, float(diagonal_rate))
    precision, residual, sweeps = kernel.spike_slab_mode(
        scatter, *rest, start, float(tol), int(max_iter)
    )
    solution = SpikeSlabSolution(
        objective=float(kernel.mode_objective(precision, scatter, *rest)),
        gap=float(residual),
        iterations=int(sweeps),
        converged=bool(residual <= tol),
        precision=precision,
        covariance=np.linalg.inv(precision),
        inclusion=edge_probabilities(precision, odds, *scales),
    )
    solution.warn_unless_converged("graphical_spike_slab", "Raise max_iter or the spike_scale.")
    return solution


def _checked(scatter, n, spike_scale, slab_scale, diagonal_rate):
    scatter = np.array(scatter, dtype="float64")
    if scatter.ndim != 2 or scatter.shape[0] != scatter.shape[1]:
        raise ValueError(f"scatter must be a square matrix, it has shape {scatter.shape}")
    if not np.isfinite(scatter).all():
        raise ValueError("scatter has values that are missing or infinite")
    if not np.allclose(scatter, scatter.T):
        raise ValueError("scatter must be symmetric")
    if not n >= 1:
        raise ValueError(f"n must be at least 1, it is {n}")
    if not 0 < spike_scale < slab_scale:
        raise ValueError(
            f"0 < spike_scale < slab_scale is needed, they are {spike_scale} and {slab_scale}"
        )
    if not diagonal_rate > 0:
        raise ValueError(f"diagonal_rate must be positive, it is {diagonal_rate}")
    return 0.5 * (scatter + scatter.T)
