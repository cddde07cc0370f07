"""Law of Indian buffet processes, and the collapsed Gibbs scan of latent features."""

import numpy as np
import pytest

from scipy import stats
from scipy.special import gammaln
from tools.buffets import classes, counts, distance, posterior

from bayesstruct.features.kernels import indian_buffet as buffet
from bayesstruct.features.kernels.latent_features import (
    draw_loadings,
    log_likelihood,
    scan_rows,
    update_rank_one,
)

PROCESSES = [(1.3, 1.0, 0.0), (1.3, 2.5, 0.0), (0.8, 0.7, 0.4)]
MAX_FEATURES = 24


@pytest.mark.parametrize("process", PROCESSES)
def test_probabilities_of_all_classes_sum_to_one(process):
    total = sum(np.exp(buffet.log_buffet(matrix, *process)) for _, matrix in classes(2, 25))
    assert abs(total - 1.0) < 1e-8


def test_one_parameter_distribution_is_equation_14():
    matrix = buffet.left_ordered([[1, 0, 1, 0], [1, 1, 1, 0], [0, 1, 0, 0]])
    m, n, alpha = np.array([2, 2, 2]), 3, 1.7
    harmonic = 1.0 + 1 / 2 + 1 / 3
    expected = 3 * np.log(alpha) - np.log(2.0) - alpha * harmonic
    expected += (gammaln(n - m + 1) + gammaln(m) - gammaln(n + 1)).sum()
    assert np.isclose(buffet.log_buffet(matrix, alpha), expected)


@pytest.mark.parametrize("process", PROCESSES)
def test_the_distribution_is_exchangeable_in_rows(process):
    rng = np.random.default_rng(1)
    matrix = buffet.draw_by_dishes(rng, 6, *process)
    for _ in range(5):
        other = buffet.left_ordered(matrix[rng.permutation(6)])
        assert np.isclose(buffet.log_buffet(other, *process), buffet.log_buffet(matrix, *process))


def sequential_log_probability(matrix, alpha):
    """Equation 15: the columns in the order in which customers, row by row, first took the dishes."""
    n = len(matrix)
    first = matrix.argmax(axis=0)
    m = matrix.sum(axis=0)
    log_p = matrix.shape[1] * np.log(alpha) - alpha * (1 / np.arange(1, n + 1)).sum()
    log_p -= gammaln(np.bincount(first, minlength=n) + 1.0).sum()
    return log_p + (gammaln(n - m + 1.0) + gammaln(m) - gammaln(n + 1.0)).sum()


def test_the_class_adds_up_its_sequential_matrices():
    # A class has prod K_1! / prod K_h! of them; unlike the class, they are not exchangeable in rows.
    rng, alpha = np.random.default_rng(10), 1.7
    for _ in range(10):
        matrix = buffet.draw_by_dishes(rng, 5, alpha)
        fresh = np.bincount(matrix.argmax(axis=0), minlength=5)
        _, alike = np.unique(matrix, axis=1, return_counts=True)
        ways = gammaln(fresh + 1.0).sum() - gammaln(alike + 1.0).sum()
        sequential = sequential_log_probability(matrix, alpha)
        assert np.isclose(ways + sequential, buffet.log_buffet(matrix, alpha))
    matrix, other = np.array([[1, 1], [1, 0]]), np.array([[1, 0], [1, 1]])
    assert np.isclose(buffet.log_buffet(other, alpha), buffet.log_buffet(matrix, alpha))
    ratio = sequential_log_probability(other, alpha) - sequential_log_probability(matrix, alpha)
    assert np.isclose(ratio, np.log(2.0))


@pytest.mark.parametrize("process", PROCESSES)
def test_columns_and_the_features_of_every_row_are_poisson(process):
    every = [(matrix, np.exp(buffet.log_buffet(matrix, *process))) for _, matrix in classes(2, 25)]
    p = np.array([probability for _, probability in every])
    columns = np.array([matrix.shape[1] for matrix, _ in every])
    rows = np.array([matrix.sum(axis=1) for matrix, _ in every])
    mean = process[0] * buffet.new_dish_rates(2, *process[1:]).sum()
    for number, expected in ((columns, mean), (rows[:, 0], process[0]), (rows[:, 1], process[0])):
        mass = np.bincount(number, weights=p)[:12]
        assert np.allclose(mass, stats.poisson(expected).pmf(np.arange(12)), atol=1e-8)


def test_a_row_is_taken_out_and_put_back_by_updates_of_rank_one():
    # Equations 23 and 24; the mean of the loadings likewise.
    rng, ratio = np.random.default_rng(11), 0.3
    z, x = rng.integers(0, 2, (7, 3)), rng.normal(size=(7, 2))
    inverse = np.linalg.inv(z.T @ z + ratio * np.eye(3))
    mean = inverse @ z.T @ x
    kept = inverse.copy(), mean.copy()
    along, left = np.empty(3), np.empty(2)
    update_rank_one.py_func(inverse, mean, z[4], 3, x[4], -1.0, along, left)
    rest = np.delete(z, 4, axis=0)
    without = np.linalg.inv(rest.T @ rest + ratio * np.eye(3))
    assert np.allclose(inverse, without)
    assert np.allclose(mean, without @ rest.T @ np.delete(x, 4, axis=0))
    update_rank_one.py_func(inverse, mean, z[4], 3, x[4], 1.0, along, left)
    assert np.allclose(inverse, kept[0]) and np.allclose(mean, kept[1])


def test_left_order_is_that_of_binary_numbers():
    matrix = np.random.default_rng(2).integers(0, 2, (11, 40))
    ordered = buffet.left_ordered(matrix)
    numbers = [int("".join(map(str, column)), 2) for column in ordered.T]
    assert numbers == sorted(numbers, reverse=True)
    assert sorted(map(tuple, ordered.T)) == sorted(map(tuple, matrix.T))


@pytest.mark.statistical
@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize(
    "draw", [buffet.draw_by_dishes, buffet.draw_by_histories, buffet.draw_by_poisson]
)
def test_generators_have_the_distribution(draw, process):
    rng, size = np.random.default_rng(3), 4000
    seen = {}
    for _ in range(size):
        matrix = draw(rng, 3, *process)
        assert np.array_equal(matrix, buffet.left_ordered(matrix))
        key = counts(matrix)
        seen[key] = seen.get(key, 0) + 1
    expected = {k: size * np.exp(buffet.log_buffet(m, *process)) for k, m in classes(3, 3)}
    cells = [k for k, e in expected.items() if e >= 5]
    observed = [seen.get(k, 0) for k in cells]
    rest = size - sum(expected[k] for k in cells)
    observed.append(size - sum(observed))
    assert stats.chisquare(observed, [*(expected[k] for k in cells), rest]).pvalue > 1e-4


def test_collapsed_likelihood_is_that_of_correlated_columns():
    rng = np.random.default_rng(4)
    z, x = rng.integers(0, 2, (5, 3)), rng.normal(size=(5, 2))
    covariance = 0.49 * np.eye(5) + 1.44 * z @ z.T
    expected = sum(stats.multivariate_normal(np.zeros(5), covariance).logpdf(c) for c in x.T)
    assert np.isclose(log_likelihood(z, x, 0.7, 1.2), expected)
    more = np.column_stack([z[:, ::-1], np.zeros((5, 2), int)])
    assert np.isclose(log_likelihood(more, x, 0.7, 1.2), expected)


# --- the scan --------------------------------------------------------------------------------


def scan(x, alpha, noise, scale, draws, process=(1.0, 0.0)):
    """Visit classes by the shipped scan."""
    rng, n = np.random.default_rng(5), len(x)
    feature, used = np.zeros((n, MAX_FEATURES), np.int8), 0
    rate = alpha * buffet.new_dish_rates(n, *process)[-1]
    for _ in range(draws):
        rows = np.arange(n)
        used = scan_rows(rng, feature, used, x, rows, noise, scale, rate, *process, -1)
        yield counts(feature[:, :used])


def published_scan(x, alpha, noise, scale, draws):
    """Visit classes as printed: features of the row alone go first, the others in their order."""
    rng, n = np.random.default_rng(6), len(x)
    z = np.ones((n, 1), int)
    memory = {}

    def density(matrix):
        key = matrix.tobytes(), matrix.shape[1]
        if key not in memory:
            memory[key] = log_likelihood(matrix, x, noise, scale)
        return memory[key]

    number = np.arange(12)
    log_prior = number * np.log(alpha / n) - gammaln(number + 1)
    for _ in range(draws):
        for i in range(n):
            m = z.sum(axis=0) - z[i]
            z, m = z[:, m > 0], m[m > 0]
            for k in range(len(m)):
                odds = []
                for value in (0, 1):
                    z[i, k] = value
                    odds.append(density(z) + np.log(m[k] if value else n - m[k]))
                z[i, k] = rng.random() < 1 / (1 + np.exp(odds[0] - odds[1]))
            own = np.zeros((n, len(number)), int)
            own[i] = 1
            several = [np.column_stack([z, own[:, :s]]) for s in number]
            logs = log_prior + [density(matrix) for matrix in several]
            weight = np.exp(logs - logs.max())
            z = buffet.left_ordered(several[rng.choice(len(number), p=weight / weight.sum())])
        yield counts(z)


CASE = (np.array([[2.5], [-2.5]]), 2.0, 0.5, 1.0)


@pytest.mark.statistical
def test_the_scan_has_the_exact_posterior_and_the_published_one_has_not():
    exact = posterior(*CASE, most=18)
    # Of so many draws from the exact distribution the distance is about 0.03.
    assert distance(list(scan(*CASE, draws=15_000)), exact) < 0.05
    assert distance(list(published_scan(*CASE, draws=1_500)), exact) > 0.2


CLOSE = (np.array([[1.5], [1.4]]), 1.0, 0.3, 1.0)
CLOSER = (np.array([[1.0], [0.9]]), 1.0, 0.1, 1.0)


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("case", "far"), [(CASE, 0.44), (CLOSE, 0.085), (CLOSER, 0.067)]
)  # the distances of the published scan itself, from its transition matrix
def test_the_published_scan_is_as_far_off_as_its_distribution(case, far, full):
    if not full:
        pytest.skip("the farthest case is above")
    found = distance(list(published_scan(*case, draws=40_000)), posterior(*case, most=18))
    assert found == pytest.approx(far, abs=0.01)


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("case", "process"),
    [
        (CASE, (1.0, 0.0)),
        (CLOSE, (1.0, 0.0)),
        (CLOSER, (1.0, 0.0)),
        ((np.array([[1.0], [0.9]]), 1.0, 0.5, 1.0), (2.0, 0.3)),
    ],
)
def test_the_scan_has_the_exact_posterior_to_one_percent(case, process, full):
    draws = 250_000 if full else 5_000
    exact = posterior(*case, most=18, process=process)
    bound = 0.01 if full else 0.06
    assert distance(list(scan(*case, draws=draws, process=process)), exact) < bound


def test_joint_draws_of_features_and_table_have_the_prior():
    # Geweke (2004): features given the table and the table given the features, in turn.
    rng, n, alpha, noise, scale = np.random.default_rng(7), 5, 1.5, 0.8, 1.1
    feature = np.zeros((n, MAX_FEATURES), np.int8)
    start = buffet.draw_by_dishes(rng, n, alpha)
    used = start.shape[1]
    feature[:, :used] = start
    rate, number, own = alpha * buffet.new_dish_rates(n)[-1], [], []
    for _ in range(6000):
        loading = scale * rng.standard_normal((MAX_FEATURES, 2))
        x = feature @ loading + noise * rng.standard_normal((n, 2))
        rows = rng.permutation(n)
        used = scan_rows(rng, feature, used, x, rows, noise, scale, rate, 1.0, 0.0, -1)
        number.append(used)
        own.append(feature.sum(axis=1))
    mean = alpha * (1 / np.arange(1, n + 1)).sum()
    # Draws are correlated over some ten iterations: means of blocks of 100 are not.
    blocks = np.reshape(number, (60, 100)).mean(axis=1)
    assert abs(blocks.mean() - mean) < 4 * blocks.std() / np.sqrt(60)
    squares = np.reshape((np.array(number) - mean) ** 2, (60, 100)).mean(axis=1)
    assert abs(squares.mean() - mean) < 4 * squares.std() / np.sqrt(60)
    rows = np.reshape(own, (60, 100, n)).mean(axis=1)
    assert (abs(rows.mean(axis=0) - alpha) < 4.5 * rows.std(axis=0) / np.sqrt(60)).all()


def test_too_many_features_are_reported():
    rng = np.random.default_rng(8)
    x = 10.0 * rng.normal(size=(30, 4))
    rows = np.arange(30)
    assert scan_rows(rng, np.zeros((30, 3), np.int8), 0, x, rows, 0.1, 1.0, 1.0, 1.0, 0.0, -1) == -1


def test_loadings_have_their_distribution():
    rng = np.random.default_rng(9)
    feature = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 1, 0]], np.int8)
    x = rng.normal(size=(4, 2))
    draws = np.array([draw_loadings(rng, feature, x, 0.6, 1.5) for _ in range(4000)])
    z = feature[:, :2].astype(float)
    inverse = np.linalg.inv(z.T @ z + (0.6 / 1.5) ** 2 * np.eye(2))
    assert (draws[:, 2] == 0).all()
    assert np.allclose(draws[:, :2].mean(axis=0), inverse @ z.T @ x, atol=0.05)
    assert np.allclose(np.cov(draws[:, :2, 0].T), 0.36 * inverse, atol=0.02)
