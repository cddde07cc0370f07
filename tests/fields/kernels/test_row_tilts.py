"""Sums over rows of a pseudo-likelihood against the same with NumPy."""

import numba
import numpy as np
import pytest

from bayesstruct.fields.kernels.row_tilts import tally_feature, tally_rows

STARTS, MULTIPLICITY = np.array([0, 70, 150]), np.array([1.0, 3.0])


@numba.njit
def tallies(probability, context, starts, multiplicity, factor, feature, first, second):
    """Make what is only called by other kernels callable."""
    size = first  # looked at for two states only
    value = tally_rows(probability, context, starts, multiplicity, factor, size, first, second)
    return value, tally_feature(probability, context, starts, multiplicity, factor, feature)


@pytest.mark.parametrize("contexts", [1, 3])
@pytest.mark.parametrize("size", [0.3, 12.0])  # factors that are moderate, and not
def test_sums_over_rows(contexts, size):
    k, rows = 4, STARTS[-1]
    rng = np.random.default_rng(contexts)
    probability = rng.dirichlet(np.ones(k), rows).T.copy()
    context = rng.integers(0, contexts, rows).astype("int16")
    feature = rng.normal(size=contexts * k)
    change = size * rng.normal(size=contexts * k)
    first, second = np.empty(contexts * k), np.empty((contexts * k, k))
    value, (same, mean, variance) = tallies(
        probability, context, STARTS, MULTIPLICITY, np.exp(change), feature, first, second
    )

    weight = np.repeat(MULTIPLICITY, np.diff(STARTS))
    tilted = probability.T * np.exp(change.reshape(contexts, k)[context])
    norm = tilted.sum(axis=1)
    tilted /= norm[:, None]
    f = feature.reshape(contexts, k)[context]
    centred = f - (tilted * f).sum(axis=1, keepdims=True)
    np.testing.assert_allclose([value, same], weight @ np.log(norm), rtol=1e-12)
    np.testing.assert_allclose(mean, weight @ (tilted * f).sum(axis=1), rtol=1e-11)
    np.testing.assert_allclose(variance, weight @ (tilted * centred**2).sum(axis=1), rtol=1e-9)
    for c in range(contexts):
        here = tilted[context == c]
        own = weight[context == c]
        np.testing.assert_allclose(first[c * k : (c + 1) * k], own @ here, rtol=1e-11)
        wanted = here.T @ (own[:, None] * here)
        np.testing.assert_allclose(second[c * k : (c + 1) * k], wanted, rtol=1e-11)
