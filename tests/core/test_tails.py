"""Quantiles of counts."""

import pytest

from scipy import stats

from bayesstruct.core.tails import negative_binomial_quantile, poisson_quantile


@pytest.mark.parametrize("probability", [1e-6, 1e-3, 0.05, 0.9])
def test_equal_those_of_scipy(probability):
    for mean in (0.01, 0.7, 3.0, 40.0, 1000.0):
        assert poisson_quantile(mean, probability) == stats.poisson(mean).isf(probability)
    for shape in (0.5, 1.0, 7.3):
        for success in (0.01, 0.3, 0.9):
            right = stats.nbinom(shape, success).isf(probability)
            assert negative_binomial_quantile(shape, success, probability) == right
