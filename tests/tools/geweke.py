"""Joint-distribution test of a transition kernel (Geweke 2004)."""

import numpy as np

from scipy import stats
from tools.batches import batch_means


def assert_geweke(
    forward, transition, statistics, *, draws, chains=10, batches=100, alpha=1e-3, seed=0
):
    """Fail if parameters and data drawn in turn do not have their joint law.

    One simulator draws parameters from the prior and data given them, anew each time (``forward``).
    The other begins there and alternates: parameters given data by the kernel under test, data
    given parameters (``transition``). With a right kernel both draw from the joint law of
    parameters and data, so that every statistic has the same mean. The chains of the second begin
    from draws of the first, hence they need no warm-up. Standard errors are those of independent
    draws for the first and of batch means for the second; the bound on the worst z-score is
    Bonferroni's, from Student's t law with as many degrees of freedom as there are batches less
    one.

    Parameters
    ----------
    forward : callable
        ``forward(rng) -> state``, any object.
    transition : callable
        ``transition(rng, state) -> state``; must draw the data anew too.
    statistics : callable
        ``statistics(state) -> dict`` of scalars. Include squares and products: an error in a scale
        does not show in the mean.
    draws : int
        Draws of either simulator.
    chains : int
        Chains of the second simulator, each of ``draws / chains`` draws.
    batches : int
        Batches over all chains; each should be longer than the autocorrelation.
    alpha : float
        Probability that a right kernel fails.
    seed : int

    Returns
    -------
    dict
        z-score of each statistic.

    References
    ----------
    Geweke, J. (2004). Getting it right: joint distribution tests of posterior simulators. *Journal
    of the American Statistical Association* 99(467), 799-804.
    """
    rng = np.random.default_rng(seed)
    independent = np.array([_values(statistics(forward(rng))) for _ in range(draws)])
    names, successive = None, []
    for _ in range(chains):
        state, rows = forward(rng), []
        for _ in range(draws // chains):
            state = transition(rng, state)
            values = statistics(state)
            names = names or list(values)
            rows.append(_values(values))
        successive.append(rows)
    means = batch_means(np.array(successive), batches)
    a, b = independent.mean(axis=0), means.mean(axis=0)
    error = np.sqrt(
        independent.var(axis=0, ddof=1) / draws + means.var(axis=0, ddof=1) / len(means)
    )
    z = (b - a) / np.where(error > 0, error, 1.0)
    bound = stats.t.isf(alpha / 2 / len(names), len(means) - 1)
    if not np.isfinite(z).all() or np.abs(z).max() > bound:
        order = np.argsort(-np.abs(np.nan_to_num(z, nan=np.inf)))[:12]
        rows = "\n".join(
            f"{names[i]:>24} {a[i]:12.5g} {b[i]:12.5g} {error[i]:10.2g} {z[i]:8.2f}" for i in order
        )
        raise AssertionError(
            f"worst z {np.abs(z).max():.2f} (bound {bound:.2f})\n"
            f"{'statistic':>24}      forward   successive         se        z\n{rows}"
        )
    return dict(zip(names, z.tolist(), strict=True))


def _values(named):
    return np.array([float(v) for v in named.values()])
