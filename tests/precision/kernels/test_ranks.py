"""Draws of latent values given their order, and of degrees of freedom, against their distributions."""

import networkx as nx
import numpy as np
import pytest

from scipy import integrate, stats
from tools.priors import horseshoe_prior

from bayesstruct.data.ranks import FREE, KNOWN
from bayesstruct.precision.kernels.g_wishart.draws import g_wishart
from bayesstruct.precision.kernels.horseshoe.sweep import element_variances
from bayesstruct.precision.kernels.rows.degrees import draw_degrees
from bayesstruct.precision.kernels.rows.latent_tables import LatentRows
from bayesstruct.precision.kernels.rows.ranks import normal_between, rescale_columns

INF = np.inf


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-1, 1), (-5, 0.2), (0.1, 0.4), (0.2, 9), (1, 1.2), (1, 6), (-9, -3), (3, INF), (-INF, -0.2),
        (-0.2, INF), (-INF, INF), (8, 9), (-0.35, 0.1), (30, INF), (-2, -1.9),
    ],
)  # fmt: skip
def test_normal_between_two_numbers(low, high):
    rng = np.random.default_rng(1)
    draws = np.array([normal_between(rng, float(low), float(high)) for _ in range(5_000)])
    assert stats.kstest(draws, stats.truncnorm(low, high).cdf).pvalue > 1e-4


def test_no_room_between_equal_neighbours():
    assert normal_between(np.random.default_rng(1), 0.7, 0.7) == 0.7


def _table(codes, z):
    p = codes.shape[1]
    table = LatentRows(np.where(codes > KNOWN, 0.0, z), np.zeros(p), np.ones(p), codes)
    table.fill(z[codes > KNOWN])
    return table


def test_a_column_that_complete_rows_know_is_not_free():
    # All incomplete rows miss the second column, and only these: its mean and unit are those of numbers.
    codes = np.full((6, 3), KNOWN)
    codes[:2, 1] = FREE
    table = _table(codes, np.random.default_rng(0).normal(size=(6, 3)))
    assert table.columns.tolist() == [1]
    assert not table.is_free.any()
    assert table.free.size == 0


def test_the_order_stays_and_known_values_too():
    rng = np.random.default_rng(2)
    z = rng.normal(size=(30, 3))
    codes = np.column_stack([np.argsort(np.argsort(z[:, 0])), z[:, 1] > 0, np.full(30, KNOWN)])
    codes[[3, 8], [0, 2]] = FREE
    table = _table(codes.astype(int), z)
    K = np.array([[2.0, 0.7, 0.0], [0.7, 1.0, 0.3], [0.0, 0.3, 1.5]])
    for _ in range(50):
        table.impute(rng, K, np.zeros(3))
        rows = table.incomplete
        seen = codes[:, 0] >= 0
        assert (np.diff(rows[seen, 0][np.argsort(codes[seen, 0])]) >= 0).all()
        assert rows[codes[:, 1] == 0, 1].max() <= rows[codes[:, 1] == 1, 1].min()
        known = codes[:, 2] == KNOWN
        np.testing.assert_array_equal(rows[known, 2], z[known, 2])
    assert rows[8, 2] != z[8, 2]


@pytest.mark.statistical
def test_latent_values_of_two_rows_and_columns():
    # z1 < z2 in both columns: the difference is normal with covariance 2 K^-1, restricted to a quadrant.
    K = np.array([[1.5, -0.8], [-0.8, 1.0]])
    rng, codes = np.random.default_rng(3), np.array([[0, 0], [1, 1]])
    table = _table(codes, np.array([[-1.0, -1.0], [1.0, 1.0]]))
    draws = []
    for _ in range(20_000):
        table.impute(rng, K, np.zeros(2))
        draws.append(table.incomplete[1] - table.incomplete[0])
    draws = np.array(draws[100:])
    covariance = 2 * np.linalg.inv(K)
    plain = rng.multivariate_normal(np.zeros(2), covariance, size=200_000)
    kept = plain[(plain > 0).all(axis=1)]
    # Some 5,000 effective draws of the chain: four standard errors.
    np.testing.assert_allclose(draws.mean(axis=0), kept.mean(axis=0), rtol=0.06)
    np.testing.assert_allclose(np.cov(draws.T), np.cov(kept.T), rtol=0.12)


@pytest.mark.statistical
def test_degrees_of_freedom_against_integration():
    rng, p = np.random.default_rng(4), 3
    weight = rng.gamma(2.5, 1 / 2.5, size=25)
    quadratic = rng.chisquare(p, size=25) / weight

    def density(nu):
        row = stats.multivariate_t(np.zeros(p), np.eye(p), nu)
        points = np.sqrt(quadratic)[:, None] * np.eye(p)[0]
        return np.exp(row.logpdf(points).sum() + 120.0) * stats.gamma.pdf(nu, 2.0, scale=10.0)

    grid = np.geomspace(0.05, 500.0, 600)
    values = np.array([density(nu) for nu in grid])
    cdf = integrate.cumulative_trapezoid(values, grid, initial=0.0)
    nu, draws = 5.0, []
    for _ in range(12_000):
        nu = draw_degrees(rng, nu, quadratic, p, 2.0, 0.1)
        draws.append(nu)
    kept = np.interp(draws[::6], grid, cdf / cdf[-1])
    assert stats.kstest(kept, "uniform").pvalue > 1e-4


PATH = nx.to_numpy_array(nx.path_graph(3)) > 0


def _moved(rng, K, kind, more):
    """Matrices after a move of all units without rows, with this much more shape."""
    out = []
    for matrix in K:
        k, prior = matrix.copy(), (np.full((3, 3), INF), np.array([0.5, 1.0, 2.0]))
        shapes = 0.5 * (4.0 + PATH.sum(axis=1))
        if kind == "horseshoe":
            prior = element_variances(rng, k, np.full((3, 3), 0.3)), np.full(3, 0.5)
            shapes = np.full(3, 2.0)
        inverse = np.linalg.inv(k)
        rescale_columns(
            rng, k, inverse, np.empty((0, 3)), np.arange(3), shapes + more, prior[0], prior[1]
        )
        np.testing.assert_allclose(inverse @ k, np.eye(3), atol=1e-6)
        out.append(k)
    return np.array(out)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["g_wishart", "horseshoe"])
def test_moves_of_units_leave_the_prior_as_it_is(kind):
    rng = np.random.default_rng(0)
    if kind == "horseshoe":
        K, _ = horseshoe_prior(rng, 6_000, 3, scale=0.3)
    else:
        scale = np.diag([1.0, 2.0, 4.0])
        K = np.array([g_wishart(rng, 4.0, scale, PATH) for _ in range(6_000)])
    others = _moved(rng, K[:3_000], kind, 0.0), _moved(rng, K[:3_000], kind, 0.5)
    right, wrong = (
        [stats.ks_2samp(m[:, i, j], K[3_000:, i, j]).pvalue for i, j in [(0, 0), (1, 1), (0, 1)]]
        for m in others
    )
    assert min(right) > 1e-3, right
    assert min(wrong) < 1e-6, wrong
