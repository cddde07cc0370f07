"""Prior probabilities of edges of a few columns, of which Bayes factors are multiples, against integrals and rejection."""

import numpy as np
import pytest

from scipy.integrate import quad
from scipy.special import exp1, k1

from bayesstruct.precision.priors.fused import implied_fused_probability
from bayesstruct.precision.priors.group_lasso import block_members, implied_group_probability
from bayesstruct.precision.priors.implied import implied_horseshoe_probability

NEGLIGIBLE = 0.1


def of_two_columns(density):
    """Probability of an edge from the density of the element; the diagonals are exponential with rate 1/2."""

    def beyond(t):  # that the root of the product of the diagonals is above t
        return t * k1(t)

    def integral(power):  # over the logarithm of the element
        def inside(v):
            return density(np.exp(v)) * np.exp(v) * beyond(power * np.exp(v))

        return quad(inside, -30, 4, limit=400)[0]

    return 1 - integral(1 / NEGLIGIBLE) / integral(1)


def half_cauchy_scales(x):
    """Density of an element of a horseshoe whose global scale is half-Cauchy, up to a factor."""
    log_scale = np.linspace(-16, 12, 2001)
    scale = np.exp(log_scale)
    z = np.minimum(0.5 * (x / scale) ** 2, 500)
    return np.sum(np.exp(z) * exp1(z) / (1 + scale**2)) / len(scale)


def test_probabilities_of_two_columns_are_integrals():
    laplace = of_two_columns(lambda x: np.exp(-x))
    # Monte Carlo errors are .0005 and .0017 at p = 2.
    assert abs(implied_fused_probability(np.zeros((2, 2)), NEGLIGIBLE)[0] - laplace) < 0.003
    horseshoe = of_two_columns(half_cauchy_scales)
    assert abs(implied_horseshoe_probability(2, NEGLIGIBLE)[0] - horseshoe) < 0.006


@pytest.mark.parametrize(("norm", "factor"), [("l2", np.sqrt(2)), ("linf", 2.0)])
def test_probabilities_of_two_blocks_are_those_of_rejection(norm, factor):
    rng, n = np.random.default_rng(1), 400_000
    off, on = rng.laplace(size=(n, 3)), rng.exponential(2.0, size=(n, 3))
    (ab, ac, bc), (a, b, c) = off.T, on.T
    inside = (a * b > ab**2) & (
        a * (b * c - bc**2) - ab * (ab * c - bc * ac) + ac * (ab * bc - b * ac) > 0
    )
    between = np.abs(off[:, 1:])
    size = between.max(axis=1) if norm == "linf" else np.sqrt((between**2).sum(axis=1))
    weight = inside * np.exp(between.sum(axis=1) - factor * size)
    weight /= weight.sum()
    units = np.sqrt(np.stack([a * b, a * c, b * c], axis=1))
    expected = weight @ (np.abs(off) > NEGLIGIBLE * units)
    members = block_members([0, 0, 1])
    found = implied_group_probability(
        3,
        members,
        NEGLIGIBLE,
        entry_rates=np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]),
        group_rates=np.full(len(members), factor),
        norm=norm,
    )
    # Standard errors are .004 of the sweeps, and .002 of the rejection; with 2,000 sweeps one was .024 off.
    np.testing.assert_allclose(found, expected, atol=0.014)
