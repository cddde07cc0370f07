"""Ratios of L-moments against their definition and against known distributions."""

from itertools import combinations

import numpy as np
import pytest

from bayesstruct.sem.kernels.noise_shape import shape_ratios


def averaged(x, signs):
    """Average a combination of the ordered values of all subsets of a sample."""
    return np.mean([np.sort(own) @ signs for own in combinations(x, len(signs))]) / len(signs)


def test_ratios_are_averages_over_all_subsets(rng):
    x = rng.exponential(size=9)
    second, third, fourth = (averaged(x, s) for s in ([-1, 1], [1, -2, 1], [-1, 3, -3, 1]))
    np.testing.assert_allclose(shape_ratios(x), [third / second, fourth / second])


@pytest.mark.parametrize(
    ("quantile", "right"),
    [
        (lambda u: u, (0, 0)),
        (lambda u: -np.log1p(-u), (1 / 3, 1 / 6)),
        (lambda u: np.sign(u - 0.5) * np.log(1 - 2 * np.abs(u - 0.5)), (0, 17 / 72)),
    ],
    ids=["uniform", "exponential", "minus Laplace"],
)
def test_ratios_of_known_distributions(quantile, right):
    x = quantile((np.arange(20_000) + 0.5) / 20_000)  # so many equally spaced quantiles
    skewness, tails = shape_ratios(x if right[1] != 17 / 72 else -x)
    assert skewness == pytest.approx(right[0], abs=1e-3)
    assert tails == pytest.approx(right[1], abs=1e-3)


def test_ratios_do_not_depend_on_units_and_turn_with_the_sample(rng):
    x = rng.gamma(1.0, size=(2, 3, 30))
    found = shape_ratios(x)
    assert found.shape == (2, 3, 2)
    np.testing.assert_allclose(shape_ratios(7 + 0.01 * x), found)
    np.testing.assert_allclose(shape_ratios(-x), found * [-1, 1])
    assert np.isnan(shape_ratios(np.ones(10))).all()
