"""Chains from extreme starts: no structure at all, and more structure than the posterior has."""

import numpy as np

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
