"""Posterior over all graphs of linear structural equations."""

import numpy as np
import pandas as pd
import pytest

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.sem.kernels.fits import family_design, log_joint
from bayesstruct.sem.kernels.settings import sem_settings


def _frame(n=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.laplace(size=(n, 3))
    x[:, 1] += 0.8 * x[:, 0]
    x[:, 2] -= 0.8 * x[:, 1]
    return pd.DataFrame(10.0 + 3.0 * x, columns=["a", "b", "c"])


def test_normal_noise_has_the_posterior_of_the_score_bge():
    table = _frame()
    own = bs.exact.linear_sem(table, noise="gaussian", draws=64, forbidden=[("c", "a")])
    other = bs.exact.dag_posterior(table, forbidden=[("c", "a")])
    np.testing.assert_allclose(own.arc_probabilities, other.arc_probabilities, atol=1e-10)
    assert own.log_evidence == pytest.approx(other.log_evidence)
    assert own.arc_errors.to_numpy().max() < 1e-10


def test_noise_that_is_always_normal_has_the_posterior_of_the_score_bge():
    table = _frame()
    own = bs.exact.linear_sem(table, noise="mixture", normal_probability=1.0, draws=64)
    other = bs.exact.dag_posterior(table)
    np.testing.assert_allclose(own.arc_probabilities, other.arc_probabilities, atol=1e-9)
    assert own.log_evidence == pytest.approx(other.log_evidence, abs=1e-9)
    np.testing.assert_allclose(own.normal_probabilities, 1.0)


def _evidence_by_prior_draws(rng, y, parent, normal, draws=300_000):
    """Evidence of a column of two given its parent or none, as a mean over draws of the prior that is documented."""
    locations = np.array([-1.5, -0.75, 0.0, 0.75, 1.5, 0.0])
    widths = np.array([0.42] * 5 + [2.0])
    heights = np.exp(-0.5 * (locations[:5] / 0.9) ** 2)
    base = np.append(0.92 * heights / heights.sum(), 0.08)
    if normal:
        locations, widths, base = np.zeros(1), np.ones(1), np.ones(1)
    shape = 1.5 if parent is None else 2.0  # (alpha_w - d + |pa| + 1) / 2 with alpha_w = 4; t = 1/2
    s = (rng.gamma(shape, 1.0 / 0.25, draws)) ** -0.5
    level, slope = s * rng.normal(size=draws), np.sqrt(2.0) * s * rng.normal(size=draws)
    shares = rng.dirichlet(24.0 * base, draws) if not normal else np.ones((draws, 1))
    logs = np.zeros(draws)
    for r, value in enumerate(y):
        e = (value - level - (0.0 if parent is None else slope * parent[r])) / s
        parts = np.exp(-0.5 * ((e[:, None] - locations) / widths) ** 2) / widths
        logs += np.log((shares * parts).sum(axis=1) / np.sqrt(2.0 * np.pi) / s)
    return np.exp(logs).mean()


@pytest.mark.statistical
@pytest.mark.parametrize("q", [0.3, None])
def test_evidence_of_mixture_or_normal_noise_is_a_mean_over_draws_of_the_prior(q):
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"a": [0.1, 1.7, -0.4, 2.9, 0.8, -1.0]})
    table["b"] = table["a"] * [0.9, 1.0, 0.2, 1.1, 0.4, 1.6] + 5.0
    z = ((table - table.mean()) / table.std()).to_numpy()
    parts = {
        (i, has): np.array(
            [
                _evidence_by_prior_draws(rng, z[:, i], z[:, 1 - i] if has else None, normal)
                for normal in (False, True)
            ]
        )
        for i in (0, 1)
        for has in (False, True)
    }
    own = bs.exact.linear_sem(table, noise="mixture", normal_probability=q)
    graphs = [(bool(graph[1, 0]), bool(graph[0, 1])) for graph in own.graphs]
    # Prior of the kinds of noise of both columns: independent, or 1/3 for each number of normal ones.
    prior = np.array([[1 / 3, 1 / 6], [1 / 6, 1 / 3]])
    if q is not None:
        prior = np.outer([1.0 - q, q], [1.0 - q, q])
    joint = np.array([prior * np.outer(parts[0, a], parts[1, b]) for a, b in graphs])
    each = joint.sum(axis=(1, 2))
    normal = [joint[:, 1].sum(), joint[:, :, 1].sum()]
    # Standard errors of these means over draws are about .01 of them.
    assert own.log_evidence == pytest.approx(np.log(each.mean()), abs=0.04)
    np.testing.assert_allclose(own.probabilities, each / each.sum(), atol=0.02)
    np.testing.assert_allclose(own.normal_probabilities, np.array(normal) / each.sum(), atol=0.01)
    # Beta(1 + k, 3 - k) given that k columns are normal.
    share = (1.0 + sum(normal) / each.sum()) / 4.0 if q is None else q
    assert own.normal_share == pytest.approx(share, abs=0.01)


def test_laplace_noise_tells_directions_with_an_error_that_is_stated():
    table = _frame(200)
    posterior = bs.exact.linear_sem(table, noise="laplace", draws=1600)
    again = bs.exact.linear_sem(table, noise="laplace", draws=1600, random_seed=1)
    assert posterior.arc_probabilities.loc["a", "b"] > 0.9
    assert posterior.weight_means.loc["a", "b"] > 0.4
    assert posterior.probabilities.sum() == pytest.approx(1.0)
    error = np.hypot(posterior.arc_errors, again.arc_errors).to_numpy()
    difference = (posterior.arc_probabilities - again.arc_probabilities).abs().to_numpy()
    assert (difference < 5.0 * error + 1e-6).all()
    assert error.max() < 0.03


def test_equal_variances_have_the_evidence_of_a_sum_over_a_grid_of_scales():
    table = _frame(12)
    posterior = bs.exact.linear_sem(table, variances="equal", draws=3200)
    settings = sem_settings(3, noise="gaussian", variances="equal")
    z = np.array(table - table.mean())
    z /= np.sqrt(np.mean(z.std(0, ddof=1) ** 2))
    taus = np.linspace(-2.5, 2.0, 400)
    logs = np.zeros((len(posterior.graphs), len(taus)))
    for g, graph in enumerate(posterior.graphs):
        for i in range(3):
            _, design = family_design(z, i, np.flatnonzero(graph[:, i]))
            precision = np.diag([1.0, *[settings.scale**-2] * (len(design) - 1)])
            covariance = np.eye(12) + design.T @ np.linalg.inv(precision) @ design
            square = z[:, i] @ np.linalg.solve(covariance, z[:, i])
            constant = -0.5 * (12 * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1])
            logs[g] += constant - 12 * taus - 0.5 * square * np.exp(-2 * taus)
    logs -= 2.0 * settings.shape * taus + settings.rate * np.exp(-2 * taus)
    weights = np.exp(logs - logs.max()).sum(axis=1)
    weights /= weights.sum()
    np.testing.assert_allclose(posterior.probabilities, weights, atol=0.01)
    assert (np.abs(posterior.probabilities - weights) < 6 * posterior.errors + 1e-4).all()


def test_two_graphs_with_other_known_variances_have_the_same_likelihood():
    """Chain and fork whose precision matrices are equal (Ghoshal 2019, eq. A.1)."""
    v1, v2, beta = 1.0, 2.0, 0.7
    b2 = np.sqrt(1.0 - v1 / v2)
    x = np.random.default_rng(0).normal(size=(50, 3))

    def log_likelihood(arcs, variances):
        settings = sem_settings(3, noise="gaussian", variances="known")
        total = 0.0
        for i in range(3):
            parents = sorted(j for j, child in arcs if child == i)
            theta = np.array([0.0, *(arcs[j, i] for j in parents), 0.5 * np.log(variances[i])])
            prior = log_joint(
                np.empty(0), np.ones((len(parents) + 1, 0)), settings, theta
            )  # no rows
            total += log_joint(*family_design(x, i, parents), settings, theta) - prior
        return total

    # Columns 0, 1, 2 are 1, 2, 3 of the source.
    chain = log_likelihood({(1, 0): beta, (2, 1): b2}, (v1, v1, v2))
    fork = log_likelihood({(1, 0): beta, (1, 2): b2}, (v1, v2, v1))
    assert chain == pytest.approx(fork)
    assert chain != pytest.approx(log_likelihood({(1, 0): beta, (1, 2): b2}, (v1, v1, v2)))


def test_tables_that_are_too_wide_or_incomplete_are_refused():
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 6)), columns=list("abcdef"))
    with pytest.raises(TableError, match=r"at most 5 .* bs\.models\.linear_sem"):
        bs.exact.linear_sem(wide)
    table = _frame()
    table.loc[3, "b"] = np.nan
    with pytest.raises(TableError, match=r"'b'.* missing"):
        bs.exact.linear_sem(table)
    with pytest.raises(ValueError, match="did you mean 'laplace'"):
        bs.exact.linear_sem(_frame(), noise="laplase")


def test_the_prior_of_orders_is_refused():
    with pytest.raises(ValueError, match="graph_prior"):
        bs.exact.linear_sem(np.eye(4)[:, :2], graph_prior="order")
