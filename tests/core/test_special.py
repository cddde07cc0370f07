"""Special functions against SciPy."""

import numpy as np
import pytensor.tensor as pt
import pytest

from scipy import stats

from bayesstruct.core.jit import vector_kernel
from bayesstruct.core.odds import slab_log_odds
from bayesstruct.core.special import vector_exp
from bayesstruct.precision.kernels.odds import edge_log_odds


@vector_kernel
def exponentials(x):
    out = np.empty(len(x))
    for k in range(len(x)):
        out[k] = vector_exp(x[k])
    return out


SPIKE, SLAB = 0.05, 1.3


def expected(value, probability):
    """Bayes' rule for two centred normals."""
    present = probability * stats.norm.pdf(value, 0, SLAB)
    absent = (1 - probability) * stats.norm.pdf(value, 0, SPIKE)
    return np.log(present) - np.log(absent)


def arrays(value, prior):
    return slab_log_odds(value, prior, SPIKE, SLAB)


def compiled(value, prior):
    return [edge_log_odds(v, o, SPIKE, SLAB) for v, o in zip(value, prior, strict=True)]


def tensors(value, prior):
    spike, slab = pt.dscalars("spike", "slab")
    out = slab_log_odds(pt.as_tensor(value), pt.as_tensor(prior), spike, slab)
    return out.eval({spike: SPIKE, slab: SLAB})


@pytest.mark.parametrize("how", [arrays, compiled, tensors])
def test_log_odds_of_slab_and_spike(how):
    value, probability = np.array([0.0, -0.02, 0.1, 0.7]), np.array([0.5, 0.1, 0.9, 0.3])
    prior = np.log(probability / (1 - probability))
    np.testing.assert_allclose(how(value, prior), expected(value, probability), rtol=1e-12)


@pytest.mark.parametrize("how", [arrays, compiled, tensors])
def test_log_odds_of_what_the_prior_excludes(how):
    prior = np.array([-np.inf, np.inf])
    np.testing.assert_array_equal(how(np.array([3.0, 0.0]), prior), prior)


def test_vector_exp_is_the_exponential_function():
    x = np.r_[np.linspace(-708.0, 709.0, 20_001), np.random.default_rng(0).normal(size=1_000)]
    np.testing.assert_allclose(exponentials(x), np.exp(x), rtol=1e-15)
    assert np.isnan(exponentials(np.full(9, np.nan))).all()
    np.testing.assert_array_equal(
        exponentials(np.array([0.0, -1e9, 1e9])), exponentials(np.array([0.0, -708.0, 709.0]))
    )
