"""A Gaussian graph of latent variables under another likelihood, against importance sampling of the prior."""

import numpy as np
import pymc as pm
import pytest

from scipy.special import factorial

import bayesstruct as bs

PI, SPIKE, SLAB, RATE = 0.5, 0.1, 2.0, 0.5
COUNTS = np.array([[0, 3], [6, 0], [1, 1], [0, 7], [5, 0], [9, 0]])


def exact(draws=40_000):
    """Probability of the edge, weighting draws of the prior by the likelihood of the counts."""
    rng = np.random.default_rng(1)
    edge = rng.random(8 * draws) < PI
    c = rng.normal(0, np.where(edge, SLAB, SPIKE))
    a, b = rng.exponential(1 / RATE, (2, 8 * draws))
    inside = np.flatnonzero(a * b > c**2)[:draws]
    edge, a, b, c = edge[inside], a[inside], b[inside], c[inside]
    nodes, mass = np.polynomial.hermite_e.hermegauss(16)
    u, v = (x.ravel() for x in np.meshgrid(nodes, nodes))
    mass = np.outer(mass, mass).ravel() / (2 * np.pi)
    # Cov = K^-1 for K = [[a, c], [c, b]]: z2 ~ N(0, a / (ab - c^2)), z1 | z2 ~ N(-c z2 / a, 1 / a)
    z2 = v * np.sqrt(a / (a * b - c**2))[:, None]
    z1 = -(c / a)[:, None] * z2 + u / np.sqrt(a)[:, None]
    z1, z2 = np.clip(z1, -40, 40), np.clip(z2, -40, 40)
    rate1, rate2 = np.exp(z1), np.exp(z2)
    none, weight = np.exp(-rate1 - rate2), np.ones(len(a))
    for first, second in COUNTS:
        likelihood = none * rate1**first * rate2**second
        weight *= likelihood @ mass / (factorial(first) * factorial(second))
    return weight @ edge / weight.sum(), weight.sum() ** 2 / np.square(weight).sum()


@pytest.mark.compiled
@pytest.mark.chain
def test_the_graph_behind_counts():
    with pm.Model():
        precision = bs.GraphicalSpikeSlab(
            "precision", 2, PI, spike_scale=SPIKE, slab_scale=SLAB, diagonal_rate=RATE
        )
        bs.edges(precision, columns=["a", "b"])
        latent = pm.MvNormal("latent", np.zeros(2), tau=precision, shape=(6, 2))
        pm.Poisson("y", pm.math.exp(latent), observed=COUNTS)
        idata = pm.sample(
            1000,
            tune=500,
            chains=2,
            cores=1,
            random_seed=2,
            progressbar=False,
            nuts={"target_accept": 0.95},
        )
    expected, size = exact()
    assert size > 1500
    table = bs.edge_table(idata)
    assert abs(expected - idata["constant_data"]["edge_prior"][0]) > 0.2  # the counts say something
    # four standard errors: some 500 effective draws of the chains, 2200 of the reference
    np.testing.assert_allclose(table["probability"][0], expected, atol=0.09)
    assert table["mean"][0] < 0
