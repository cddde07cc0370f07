"""Nuclear norms of blocks: singular values, slopes, and draws of one element against its density."""

import numpy as np
import pytest

from scipy.integrate import cumulative_trapezoid
from scipy.stats import kstest

from bayesstruct.precision.kernels.nuclear import (
    TANGENTS,
    block_norms,
    block_slopes,
    draw_block_element,
    nuclear_norm,
)

LABELS = np.array([0, 1, 0, 1, 1, 2])


def matrix(seed=0, p=6):
    K = np.random.default_rng(seed).normal(size=(p, p))
    return 0.5 * (K + K.T)


@pytest.mark.parametrize("shape", [(1, 3), (2, 2), (3, 5), (6, 6)])
@pytest.mark.parametrize("rank", [0, 1, 6])
def test_nuclear_norm(shape, rank):
    rng = np.random.default_rng(1)
    B = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    turned, rotation, values = B.copy(), np.empty((shape[0], shape[0])), np.empty(shape[0])
    norm = nuclear_norm(turned, rotation, values)
    singular = np.linalg.svd(B, compute_uv=False)
    np.testing.assert_allclose(norm, singular.sum(), atol=1e-13)
    np.testing.assert_allclose(np.sort(values)[::-1], singular, atol=1e-13)
    np.testing.assert_allclose(rotation.T @ turned, B, atol=1e-13)


def test_norms_of_all_blocks_and_their_slopes():
    K, rates = matrix(), np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 0.5], [1.0, 0.5, 0.0]])
    norms = block_norms(K, LABELS.astype(float), rates)
    expected = [
        [np.linalg.norm(K[LABELS == a][:, LABELS == b], "nuc") for b in range(3)] for a in range(3)
    ]
    np.testing.assert_allclose(norms, rates * np.array(expected))
    slopes, step = block_slopes(K, LABELS.astype(float), rates), 1e-6
    for i, j in (0, 1), (3, 2), (5, 4), (0, 2):
        near = K.copy()
        near[i, j] += step
        up = block_norms(near, LABELS.astype(float), rates).sum()
        near[i, j] -= 2.0 * step
        down = block_norms(near, LABELS.astype(float), rates).sum()
        assert slopes[i, j] == pytest.approx((up - down) / (2.0 * step), abs=1e-8)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("b", "h", "entry", "rate"),
    [(0.3, 0.5, 0.0, 2.0), (5.0, 2.0, 1.0, 4.0), (0.0, 30.0, 0.0, 20.0), (-1.0, 0.02, 0.5, 1.0)],
)
@pytest.mark.parametrize("singular", [False, True])
def test_draws_of_an_element(b, h, entry, rate, singular):
    K, small, large = matrix(), np.array([0, 2]), np.array([1, 3, 4])
    if singular:  # the norm has a kink where the block has rank 1
        K[2, large] = K[large, 2] = 0.7 * K[0, large]
    rng, p = np.random.default_rng(2), len(K)
    work = np.empty((2, p, p)), np.empty(p), np.empty((3, TANGENTS)), np.empty((3, TANGENTS + 2))

    def draw():
        K[0, 3] = K[3, 0] = rng.normal()  # it does not matter where the element was
        return draw_block_element(rng, K, small, large, 0, 1, b, h, entry, rate, *work)

    draws = np.array([draw() for _ in range(2_000)])
    grid = np.linspace(draws.min() - 2.0, draws.max() + 2.0, 4_001)
    blocks = np.repeat(K[np.ix_(small, large)][None], len(grid), axis=0)
    blocks[:, 0, 1] = grid
    norms = np.linalg.svd(blocks, compute_uv=False).sum(axis=1)
    log = b * grid - 0.5 * h * grid**2 - entry * np.abs(grid) - rate * norms
    cdf = cumulative_trapezoid(np.exp(log - log.max()), grid, initial=0.0)
    assert kstest(draws, lambda x: np.interp(x, grid, cdf / cdf[-1])).pvalue > 1e-4
