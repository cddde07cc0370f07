"""Measures of dependence of two columns, against direct computation."""

import numpy as np
import pytest

from bayesstruct.sem.kernels.effects import total_effects
from bayesstruct.sem.kernels.kernel_information import (
    incomplete_cholesky,
    kernel_factor,
    kernel_information,
    kernel_settings,
)
from bayesstruct.sem.kernels.pairwise_entropy import column_entropies, first_cause
from bayesstruct.sem.kernels.pairwise_ratio import pairwise_ratios


def standardised(rows):
    rows = np.asarray(rows, float)
    rows = rows - rows.mean(axis=-1, keepdims=True)
    return rows / rows.std(axis=-1, keepdims=True)


def entropy(u):
    """Approximation by maximum entropy, with the functions of NumPy."""
    return (
        (1 + np.log(2 * np.pi)) / 2
        - 79.047 * (np.mean(np.log(np.cosh(u))) - 0.37457) ** 2
        - 7.4129 * np.mean(u * np.exp(-(u**2) / 2)) ** 2
    )


def ratio(x, y):
    """Log-likelihood ratio of x -> y against y -> x from entropies."""
    rho = np.mean(x * y)
    scale = np.sqrt(1 - rho**2)
    forward = entropy(x) + entropy((y - rho * x) / scale)
    return entropy(y) + entropy((x - rho * y) / scale) - forward


def gram(x, width):
    """Centred Gram matrix."""
    n = len(x)
    centre = np.eye(n) - 1 / n
    return centre @ np.exp(-((x[:, None] - x) ** 2) / (2 * width**2)) @ centre


def dense_information(x, y, kappa, width):
    """The kernel generalised variance from matrices of twice as many rows as the table."""
    n = len(x)
    first, second = gram(x, width), gram(y, width)
    a, b = (K + n * kappa / 2 * np.eye(n) for K in (first, second))
    joint = np.block([[a @ a, first @ second], [second @ first, b @ b]])
    determinants = [np.linalg.slogdet(matrix)[1] for matrix in (joint, a, b)]
    return -0.5 * (determinants[0] - 2 * determinants[1] - 2 * determinants[2])


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(1)
    x = rng.laplace(size=250)
    return standardised([x, x**2 + rng.laplace(size=250), rng.uniform(size=250)])


@pytest.mark.parametrize(("kappa", "width"), [kernel_settings(900), kernel_settings(2_000)])
def test_kernel_information_is_that_of_dense_matrices(columns, kappa, width):
    dependent, independent = (columns[0], columns[1]), (columns[0], columns[2])
    for x, y in (dependent, independent):
        factors = kernel_factor(x, kappa, width), kernel_factor(y, kappa, width)
        exact = dense_information(x, y, kappa, width)
        # The factors leave out a trace of a hundredth of that of the regulariser.
        assert kernel_information(*factors) == pytest.approx(exact, abs=5e-4, rel=1e-3)
        assert kernel_information(*factors[::-1]) == pytest.approx(kernel_information(*factors))
    found = [
        kernel_information(kernel_factor(x, kappa, width), kernel_factor(y, kappa, width))
        for x, y in (dependent, independent)
    ]
    assert found[0] > 3 * found[1] > 0  # correlation 0, and dependent


def test_incomplete_cholesky_leaves_out_the_trace_that_is_allowed(columns):
    rows = np.empty((100, 250))
    rank = incomplete_cholesky(columns[0].copy(), 1.0, 1e-3, rows)
    full = np.exp(-((columns[0][:, None] - columns[0]) ** 2) / 2)
    rest = full - rows[:rank].T @ rows[:rank]
    assert rank < 40 and 0 <= np.trace(rest) <= 1e-3 and np.abs(rest).max() < 1e-3
    few = np.empty((5, 250))
    assert incomplete_cholesky(columns[0].copy(), 1.0, 1e-9, few) == 5


def test_entropies_are_those_of_numpy(columns):
    far = np.r_[columns[0] / columns[0].std(), 30.0]  # beyond where exponentials are cut off
    rows = np.ascontiguousarray([far, -far, np.r_[columns[2], 0.0]])
    np.testing.assert_allclose(column_entropies(rows), [entropy(u) for u in rows], atol=1e-8)


def test_first_cause_is_that_of_all_pairs_and_needs_fewer():
    rng = np.random.default_rng(2)
    rows = standardised(np.tril(rng.normal(size=(12, 12))) @ rng.uniform(-1, 1, (12, 400)))
    correlation, free = rows @ rows.T / 400, ~np.eye(12, dtype=bool)
    R = np.array(
        [[ratio(x, y) if i != j else 0.0 for j, y in enumerate(rows)] for i, x in enumerate(rows)]
    )
    sums = (np.minimum(R, 0) ** 2).sum(axis=1)
    for complete in (True, False):
        guesses, candidate = np.zeros((12, 12)), np.ones(12, bool)
        found, best, pairs = first_cause(rows, correlation, candidate, free, guesses, complete)
        assert best == sums.argmin() and found[best] == pytest.approx(sums.min(), abs=1e-9)
        assert (found <= sums + 1e-9).all()
        assert pairs == 66 if complete else pairs < 50
    np.testing.assert_allclose(guesses[guesses != 0], R[guesses != 0], atol=1e-7)
    among = sums > np.median(sums)
    _, best, _ = first_cause(rows, correlation, among, free, np.zeros((12, 12)), False)
    assert best == np.where(among, sums, np.inf).argmin()


def test_ratios_of_densities_to_first_order_are_those_of_pairs(columns):
    rows = standardised([columns[0], columns[2], columns[0] + 0.3 * columns[2]])
    found = pairwise_ratios(rows, rows @ rows.T / 250)
    sign = np.array([1, -1, 1])  # Laplace has heavier tails than normal, uniform lighter ones
    for i in range(3):
        for j in range(3):
            x, y = rows[i], rows[j]
            direct = sign[j] * np.mean(x * np.tanh(y)) - sign[i] * np.mean(y * np.tanh(x))
            assert found[i, j] == pytest.approx(np.mean(x * y) * direct, abs=1e-12)
    assert found[0, 2] > 0


def test_ratios_and_entropies_agree_on_the_direction_of_strong_pairs():
    rng = np.random.default_rng(3)
    for draw in (rng.laplace, lambda size: rng.uniform(-1, 1, size)):
        x, e = draw(size=3_000), draw(size=3_000)
        x, y = standardised([x, x + e])
        assert ratio(x, y) > 0
        assert pairwise_ratios(np.array([x, y]), np.corrcoef(x, y))[0, 1] > 0


def test_total_effects_are_the_inverse():
    rng = np.random.default_rng(4)
    order = rng.permutation(6)
    direct = np.zeros((6, 6))
    direct[np.ix_(order, order)] = np.tril(rng.normal(size=(6, 6)), -1)
    found = total_effects(direct, order)
    np.testing.assert_allclose(found, np.linalg.inv(np.eye(6) - direct), atol=1e-12)
    assert (np.diag(found) == 1).all() and (
        found[np.ix_(order, order)][np.triu_indices(6, 1)] == 0
    ).all()
