"""Expectation-maximisation on trees: likelihoods by enumeration, growth, optima, draws of hidden states."""

import itertools

import numpy as np
import pytest

from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import bayesstruct as bs

from bayesstruct.trees.kernels.discrete_em import DiscreteTree
from bayesstruct.trees.kernels.gaussian_em import GaussianTree

#: Five columns, of which the third is an inner node, and two hidden nodes.
LINES = [(5, 0), (5, 1), (5, 2), (2, 6), (6, 3), (6, 4)]


def numbers(n=400):
    rng = np.random.default_rng(0)
    tree = GaussianTree(LINES, [0.7, -0.6, 0.8, 0.5, 0.6, 0.9], 5)
    return rng.multivariate_normal(np.zeros(7), tree.covariance(), n)[:, :5]


def states(n=300, k=3):
    rng = np.random.default_rng(1)
    joints = rng.dirichlet(np.full(k, 0.7), (len(LINES), k)) / k
    return DiscreteTree(LINES, joints, 5), rng.integers(0, k, (n, 5))


def test_the_likelihood_of_numbers_is_that_of_the_normal_distribution_and_grows():
    x = numbers()
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    s = np.corrcoef(x.T)
    tree = GaussianTree(LINES, [0.3, -0.3, 0.4, 0.3, 0.3, 0.3], 5)
    before = -np.inf
    for _ in range(30):
        tree.fit(s, len(x), tol=-np.inf, max_iter=1)
        law = multivariate_normal(np.zeros(5), tree.covariance()[:5, :5])
        np.testing.assert_allclose(tree.log_likelihood, law.logpdf(z).sum(), rtol=1e-10)
        assert tree.log_likelihood > before - 1e-9
        before = tree.log_likelihood


def test_correlations_maximise_the_likelihood():
    x = numbers()
    s, n = np.corrcoef(x.T), len(x)
    tree = GaussianTree(LINES, [0.3, -0.3, 0.4, 0.3, 0.3, 0.3], 5).fit(
        s, n, tol=1e-9, max_iter=50_000
    )

    def loss(r):
        return -GaussianTree(LINES, r, 5).fit(s, n, max_iter=0).log_likelihood

    found = minimize(loss, [0.4, -0.4, 0.4, 0.4, 0.4, 0.4], bounds=[(-0.99, 0.99)] * 6)
    np.testing.assert_allclose(tree.log_likelihood, -found.fun, atol=1e-4)
    np.testing.assert_allclose(tree.correlations, found.x, atol=2e-3)


def test_expected_moments_are_those_of_the_conditional_distribution():
    tree = GaussianTree(LINES, [0.7, -0.6, 0.8, 0.5, 0.6, 0.9], 5)
    full = tree.covariance()
    np.testing.assert_allclose(tree.moments(full[:5, :5]), full, atol=1e-12)
    row = np.array([[1.0, -0.5, 0.3, 2.0, 0.1]])
    precision = np.linalg.inv(full)
    mean = -np.linalg.solve(precision[5:, 5:], precision[5:, :5] @ row[0])
    found = tree.moments(row.T @ row)
    np.testing.assert_allclose(found[5:, :5], np.outer(mean, row), atol=1e-12)
    np.testing.assert_allclose(
        found[5:, 5:], np.linalg.inv(precision[5:, 5:]) + np.outer(mean, mean), atol=1e-12
    )


def enumerated(tree, rows):
    """Probabilities of rows jointly with each state of both hidden nodes, (rows, k, k)."""
    out = np.empty((len(rows), tree.k, tree.k))
    for a, b in itertools.product(range(tree.k), repeat=2):
        full = np.column_stack([rows, np.full(len(rows), a), np.full(len(rows), b)])
        p = tree.root[full[:, 0]].copy()
        for node in range(1, 7):
            p *= tree.conditionals[node][full[:, tree.parents[node]], full[:, node]]
        out[:, a, b] = p
    return out


def test_the_likelihood_of_states_is_that_of_all_hidden_states_and_grows():
    tree, codes = states()
    before = -np.inf
    for _ in range(20):
        tree.fit(codes, tol=-np.inf, max_iter=1)
        expected = np.log(enumerated(tree, codes).sum(axis=(1, 2))).sum()
        np.testing.assert_allclose(tree.log_likelihood, expected, rtol=1e-10)
        assert tree.log_likelihood > before - 1e-9
        before = tree.log_likelihood


def test_longer_steps_end_where_plain_ones_do():
    tree, codes = states()
    other, _ = states()
    for _ in range(300):
        other.fit(codes, tol=-np.inf, max_iter=1)
    plain = other.log_likelihood
    tree.fit(codes, tol=1e-7)
    # Plain steps still gain a little after so many.
    assert tree.log_likelihood > plain - 1e-6
    np.testing.assert_allclose(
        tree.log_likelihood, np.log(enumerated(tree, codes).sum(axis=(1, 2))).sum(), rtol=1e-10
    )


def test_an_iteration_sets_probabilities_to_expected_shares():
    tree, codes = states()
    weight = enumerated(tree, codes)
    weight /= weight.sum(axis=(1, 2), keepdims=True)
    tree.fit(codes, tol=-np.inf, max_iter=1)
    # Node 6 is towards column 3 from column 2; its table comes from expected pairs.
    expected = np.array([weight[codes[:, 2] == s].sum(axis=(0, 1)) for s in range(3)])
    assert tree.parents[6] == 2
    np.testing.assert_allclose(
        tree.conditionals[6], expected / expected.sum(axis=1, keepdims=True), atol=1e-12
    )


@pytest.mark.statistical
def test_hidden_states_are_drawn_from_their_distribution():
    tree, codes = states()
    row = np.repeat(codes[:1], 40_000, axis=0)
    drawn = tree.draw(row, np.random.default_rng(4))
    assert (drawn[:, :5] == row).all()
    p = enumerated(tree, codes[:1])[0]
    p /= p.sum()
    share = np.zeros((3, 3))
    np.add.at(share, (drawn[:, 5], drawn[:, 6]), 1 / len(row))
    # Four standard errors of a share.
    assert (np.abs(share - p) < 4 * np.sqrt(p * (1 - p) / len(row)) + 1e-9).all()


def test_without_hidden_nodes_the_fit_is_the_tree_of_chow_and_liu():
    x = numbers()
    tree = bs.solvers.chow_liu(x, columns="numbers")
    place = {name: j for j, name in enumerate(tree.names)}
    lines = [(place[a], place[b]) for a, b in tree.graph.edges]
    fit = GaussianTree(lines, [0.5] * 4, 5).fit(np.corrcoef(x.T), len(x))
    scale = len(x) * np.log(x.std(axis=0)).sum()
    np.testing.assert_allclose(fit.log_likelihood - scale, tree.log_likelihood, rtol=1e-12)
    _, codes = states()
    codes[:, 1] = np.where(codes[:, 0] == 0, 1, codes[:, 1])
    tree = bs.solvers.chow_liu(codes, columns="states")
    lines = [(place[a], place[b]) for a, b in tree.graph.edges]
    fitted = DiscreteTree(lines, np.full((4, 3, 3), 1 / 9), 5).fit(codes)
    np.testing.assert_allclose(fitted.log_likelihood, tree.log_likelihood, rtol=1e-12)


def test_a_hidden_node_may_have_hundreds_of_neighbours():
    rng, m, k = np.random.default_rng(2), 600, 5
    joint = 0.04 * np.eye(k) + 0.8 / k**2
    tree = DiscreteTree([(m, j) for j in range(m)], np.tile(joint, (m, 1, 1)), m)
    codes = rng.integers(0, k, (40, m))
    given = np.log(joint * k)[:, codes[:, 1:]].sum(
        axis=2
    )  # of all columns but the first, by hidden state
    each = np.log(joint)[:, codes[:, 0]] + given
    assert given.max() < np.log(np.finfo(float).tiny)
    drawn = tree.draw(np.repeat(codes[:1], 4_000, axis=0), rng)[:, m]
    share = np.exp(each[:, 0] - logsumexp(each[:, 0]))
    found = np.bincount(drawn, minlength=k) / len(drawn)
    assert (np.abs(found - share) < 4 * np.sqrt(share / len(drawn)) + 1e-9).all()
    tree.fit(codes, max_iter=0)
    np.testing.assert_allclose(tree.log_likelihood, logsumexp(each, axis=0).sum(), rtol=1e-10)
