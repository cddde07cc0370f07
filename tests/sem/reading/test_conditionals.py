"""Values given the rest of their row, whatever the noise, against integration by SciPy and enumeration of components."""

from itertools import pairwise

import arviz as az
import networkx as nx
import numpy as np
import pymc as pm
import pytest

from scipy import stats
from scipy.integrate import quad

import bayesstruct as bs

from bayesstruct.sem.kernels.errors import LOCATIONS, WIDTHS
from bayesstruct.sem.kernels.settings import NOISES
from bayesstruct.sem.priors.noise import with_normal
from bayesstruct.sem.reading.conditionals import Equations

MATRIX = np.array([[0, 0, 0, 0], [1.5, 0, 0, 0], [-0.8, 0.05, 0, 0], [0, 0, 0, 0.0]])
INTERCEPT, SCALES = np.array([0.3, -1.0, 0.0, 2.0]), np.array([1.0, 0.2, 2.0, 0.5])
SHARES = np.array([0.1, 0.3, 0.05, 0.05, 0.4, 0.1])
DEGREES = np.array([2.5, 4.0, 30.0, 7.0])
NORMAL = np.array([0, 1, 0, 1])


def equations(noise):
    weights = np.tile(SHARES, (4, 1))
    shapes = {"student": DEGREES[:, None], "mixture": weights}
    shapes["mixture or normal"] = with_normal(weights, NORMAL)
    shape = shapes.get(noise, np.zeros((4, 1)))
    return Equations(NOISES.index(noise.split()[0]), INTERCEPT, MATRIX, SCALES, shape)


LAWS = {"laplace": [stats.laplace(scale=np.sqrt(0.5))] * 4, "gaussian": [stats.norm] * 4}
LAWS["student"] = [stats.t(nu, scale=np.sqrt((nu - 2) / nu)) for nu in DEGREES]


def error_density(noise, i, e):
    """Density of an error in units of its scale, by SciPy."""
    if noise == "mixture or normal" and NORMAL[i]:
        return stats.norm.pdf(e)
    if noise.startswith("mixture"):
        return (
            SHARES @ (np.exp(-0.5 * ((e - LOCATIONS) / WIDTHS) ** 2) / WIDTHS) / np.sqrt(2 * np.pi)
        )
    return LAWS[noise][i].pdf(e)


def row_density(noise, row, free):
    e = (row - INTERCEPT - MATRIX @ row) / SCALES
    return np.prod([error_density(noise, i, e[i]) / SCALES[i] for i in range(4) if free[i]])


def integral(noise, row, free, j, upper=np.inf):
    """Integrate the density of a row over one of its values, in pieces between all kinks."""

    def moved(x):
        return row_density(noise, np.array([*row[:j], x, *row[j + 1 :]]), free)

    kinks = [INTERCEPT[j] + MATRIX[j] @ row]
    for i in np.flatnonzero(MATRIX[:, j]):
        kinks.append(row[j] + (row[i] - INTERCEPT[i] - MATRIX[i] @ row) / MATRIX[i, j])
    ends = np.unique(
        [-400.0, *(k + w for k in kinks for w in (-20, -2, -0.3, 0, 0.3, 2, 20)), 400.0]
    )
    ends = [*ends[ends < upper], min(upper, 400.0)]
    return sum(quad(moved, a, b, epsrel=1e-7)[0] for a, b in pairwise(ends))


@pytest.mark.parametrize("noise", ["laplace", "student", "mixture", "mixture or normal"])
def test_densities_are_those_of_numerical_integration(noise):
    rng = np.random.default_rng(1)
    z, free = rng.normal(0, 2, (4, 4)), np.ones((4, 4), bool)
    z[0, 1] += 3  # 15 scales from what the model has
    free[1, 1] = free[2, 2] = free[3, 0] = False
    log_density, _ = equations(noise).given_others(z, free, rng)
    for r, j in np.argwhere(free):
        if j == 3:  # without parents and children
            own = error_density(noise, 3, (z[r, 3] - INTERCEPT[3]) / SCALES[3]) / SCALES[3]
        else:
            own = row_density(noise, z[r], free[r]) / integral(noise, z[r], free[r], j)
        assert log_density[r, j] == pytest.approx(np.log(own), abs=1e-4), (r, j)


def test_normal_noise_has_the_closed_form(rng):
    z, free = rng.normal(0, 2, (6, 4)), np.ones((6, 4), bool)
    log_density, _ = equations("gaussian").given_others(z, free, rng)
    away = (np.eye(4) - MATRIX) / SCALES[:, None]
    precision = away.T @ away
    mean = np.linalg.solve(np.eye(4) - MATRIX, INTERCEPT)
    sd = 1 / np.sqrt(np.diag(precision))
    centre = z - (z - mean) @ precision * sd**2
    np.testing.assert_allclose(log_density, stats.norm(centre, sd).logpdf(z), atol=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["laplace", "mixture or normal"])
def test_draws_have_the_conditional_distribution(noise):
    rng, row, free = np.random.default_rng(2), np.array([0.5, 1.0, -1.0, 2.0]), np.ones(4, bool)
    z = np.tile(row, (4000, 1))
    _, drawn = equations(noise).given_others(z, np.ones(z.shape, bool), rng)
    for j in (0, 1, 2):
        total = integral(noise, row, free, j)
        for q in (0.1, 0.5, 0.9):
            at = np.quantile(drawn[:, j], q)
            # four standard errors of a share of 4,000
            share = integral(noise, row, free, j, at) / total
            assert abs(share - q) < 4 * np.sqrt(q * (1 - q) / 4000)


@pytest.mark.chain
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("noise", ["laplace", "student", "mixture"])
def test_results_have_values_for_arviz(noise):
    """The values of a chain a -> b given all others, which ArviZ can leave out, gaps and interventions among them."""
    graph = nx.DiGraph([("a", "b")])
    data = 10 + 5 * bs.simulate.linear_sem(60, graph=graph, noise="laplace", random_seed=3).data
    was_set = np.zeros((60, 2), bool)
    was_set[:5, 1] = True
    if noise == "laplace":
        data.iloc[7, 0] = np.nan
    with bs.models.linear_sem(data, noise=noise, interventions=was_set):
        idata = pm.sample(
            draws=40, tune=30, chains=2, cores=1, progressbar=False, random_seed=1,
            compute_convergence_checks=False,
        )  # fmt: skip
    values = bs.pointwise(idata, draws=20, random_seed=1)
    shown = 120 - 5 - (noise == "laplace")
    assert values["log_likelihood"]["x"].sizes == {"chain": 2, "draw": 20, "value": shown}
    assert np.isfinite(az.loo(values).elpd)
    inside = values["posterior_predictive"]["x"] <= values["observed_data"]["x"]
    assert 0.3 < float(inside.mean()) < 0.7
