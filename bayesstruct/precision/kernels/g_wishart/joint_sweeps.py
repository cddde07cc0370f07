"""Several sweeps over a G-Wishart matrix and its random graph in one call: entering compiled code takes longer than a sweep over ten columns."""

from bayesstruct.core.jit import kernel
from bayesstruct.precision.kernels.g_wishart.graph_sweep import count_common, graph_sweep
from bayesstruct.precision.kernels.g_wishart.matrix_sweep import matrix_sweep

__all__ = ["joint_sweeps"]


@kernel
def joint_sweeps(
    rng,
    sweeps,
    precision,
    covariance,
    adjacency,
    common,
    scale,
    prior_odds,
    b,
    n,
    tries,
    whole,
    codes,
    filled,
    work,
    rough,
):
    """Draw the matrix given the graph and move the graph, several times.

    Parameters
    ----------
    rng : numpy.random.Generator
    sweeps : int
    precision, covariance, adjacency, common : ndarray, changed in place
        As in `graph_sweep`; `common` is filled here.
    scale : (p, p) float64
        D + S of the posterior.
    prior_odds, b, tries, whole, codes, filled, work, rough
        As in `graph_sweep`.
    n : float
        Number of rows.

    Returns
    -------
    bool
        Whether the matrix stayed positive definite; rounding may end that.
    """
    count_common(adjacency, common)
    for _ in range(sweeps):
        # The matrix first: a chain may start far from where its table is.
        if not matrix_sweep(rng, precision, covariance, adjacency, scale, b + n, whole[0], work):
            return False
        graph_sweep(
            rng,
            precision,
            covariance,
            adjacency,
            common,
            scale,
            prior_odds,
            b,
            tries,
            whole,
            codes,
            filled,
            work,
            rough,
        )
    return True
