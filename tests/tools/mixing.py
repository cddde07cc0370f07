"""Chains from extreme starts: no structure at all, and more structure than the posterior has."""

import numpy as np

from tools.batches import batch_means
from tools.enumeration import assert_matches_enumeration


def assert_reached_from(starts, run, probabilities, *, errors=None, left_out=0.1, z=4.0):
    """Fail unless chains from all starts visit states as often as they should, each chain by itself.

    Parameters
    ----------
    starts : dict
        By name, what `run` begins at.
    run : callable
        Of a start and a seed: numbers of the states that a chain visits, (draw,).
    probabilities : (S,) array_like
        Exact probabilities of the states.
    errors : (S,) array_like, optional
        Their standard errors.
    left_out : float
        Share of the draws at the beginning that do not count.
    z : float
        As in `tools.enumeration.assert_matches_enumeration`.
    """
    for seed, (name, start) in enumerate(starts.items()):
        states = np.asarray(run(start, seed))
        kept = states[int(left_out * len(states)) :]
        try:
            assert_matches_enumeration(kept, probabilities, errors=errors, z=z)
        except AssertionError as error:
            raise AssertionError(f"from the start {name!r}: {error}") from error


def assert_starts_forgotten(quantities, *, left_out=0.1, z=4.5):
    """Fail unless chains from different starts have the same mean of each quantity, up to Monte Carlo error.

    Parameters
    ----------
    quantities : dict
        By name, (chain, draw) values of a quantity, one chain a start.
    left_out : float
        Share of the draws at the beginning that do not count.
    z : float
        Bound on the difference of two chains, in its standard errors by batch means.
    """
    for name, values in quantities.items():
        kept = np.asarray(values, float)[:, int(left_out * np.shape(values)[1]) :]
        means = batch_means(kept[..., None], 20 * len(kept)).reshape(len(kept), -1)
        mean, error = means.mean(axis=1), means.std(axis=1, ddof=1) / np.sqrt(means.shape[1])
        for other in range(1, len(kept)):
            apart, noise = abs(mean[other] - mean[0]), np.hypot(error[other], error[0])
            if apart > z * noise:
                raise AssertionError(
                    f"{name}: {mean[0]:.3f} from one start and {mean[other]:.3f} from another, {apart:.3f} apart, "
                    f"standard error {noise:.3f}"
                )
