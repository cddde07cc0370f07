"""Modes with selected nodes, blocks and neighbours as operations: the solvers' values, and derivatives."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from bayesstruct import ops, solvers

N = 40
BLOCKS = ["a", "b", "a", "c", "b", "c", "a", "b"]
CHAIN = [(i, i + 1) for i in range(7)]
STRUCTURES = {
    "node l2": ("node_selection_graphical_lasso", (), (3.0, 2.0), {"norm": "l2"}),
    "node linf": ("node_selection_graphical_lasso", (), (1.0, 6.0), {"norm": "linf"}),
    "block l2": ("blockwise_graphical_lasso", (BLOCKS,), (2.0, 2.0), {"norm": "l2"}),
    "block linf": ("blockwise_graphical_lasso", (BLOCKS,), (1.0, 1.5), {"norm": "linf"}),
    "block nuclear": ("blockwise_graphical_lasso", (BLOCKS,), (1.0, 8.0), {"norm": "nuclear"}),
    "local": ("locally_constant_graphical_lasso", (CHAIN,), (1.0, 2.0), {}),
}
structures = pytest.mark.parametrize("name", STRUCTURES)


def covariance(p=8, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((N, p))
    return np.corrcoef(x + 0.7 * np.roll(x, 1, axis=1), rowvar=False)


def on_its_face(K, name):
    """Number of zeros or ties off the diagonal, and of elements that are neither; or of lost ranks and ranks."""
    off = np.abs(K[np.triu_indices(len(K), 1)])
    if name == "block nuclear":
        labels = np.array(BLOCKS)
        blocks = [K[labels == a][:, labels == b] for a, b in ("ab", "ac", "bc")]
        ranks = [np.linalg.matrix_rank(B, tol=1e-9) for B in blocks]
        return sum(min(B.shape) for B in blocks) - sum(ranks), sum(ranks)
    values = np.unique(off[off > 0].round(12))
    return len(off) - len(values), len(values)


@pytest.mark.parametrize(
    ("name", "mode"), [(name, "FAST_COMPILE") for name in STRUCTURES] + [("local", "NUMBA")]
)
def test_equals_the_solver(name, mode):
    function, known, rates, options = STRUCTURES[name]
    S, tilt = covariance(), np.triu(np.ones((8, 8)), 1)
    s = pt.tensor(dtype="float64", shape=(8, 8))
    numbers = [pt.dscalar() for _ in range(3)]
    out = getattr(ops, function)(
        s, N, *known, numbers[0], numbers[1], diagonal_rate=numbers[2], **options
    )
    f = pytensor.function([s, *numbers], out, mode=mode)
    expected = getattr(solvers, function)(
        S, N, *known, *rates, diagonal_rate=1.0, tol=1e-12, **options
    ).precision
    found = f(S, *rates, 1.0)
    assert min(on_its_face(found, name)) > 0
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(f(S + 0.1 * (tilt - tilt.T), *rates, 1.0), found, atol=1e-12)


@structures
def test_derivatives(name, assert_derivatives):
    function, known, rates, options = STRUCTURES[name]

    def mode(S, n, rate, own, diagonal):
        inputs = (S, n, *known, rate, own)
        return getattr(ops, function)(*inputs, diagonal_rate=diagonal, **options)

    assert_derivatives(mode, [covariance(), N, *rates, 1.0], directions=1)


def test_derivatives_in_rates_of_each_element_and_part(assert_derivatives):
    rng = np.random.default_rng(0)
    u, v = rng.uniform(0.5, 2.0, (8, 8)), rng.uniform(1.0, 8.0, (3, 3))

    def nodes(rate, node_rate):
        rate = 0.5 * (rate + rate.T)
        return ops.node_selection_graphical_lasso(covariance(), N, rate, node_rate, norm="linf")

    def blocks(rate, block_rate):
        return ops.blockwise_graphical_lasso(covariance(), N, BLOCKS, rate, block_rate)

    def neighbours(smoothness):
        return ops.locally_constant_graphical_lasso(covariance(), N, CHAIN, 1.0, smoothness)

    assert_derivatives(nodes, [u, rng.uniform(2.0, 6.0, 8)])
    assert_derivatives(blocks, [u, v + v.T])
    assert_derivatives(neighbours, [rng.uniform(1.0, 3.0, 7)])


def test_batches(python_mode):
    S = np.stack([covariance(seed=seed) for seed in range(3)])
    both = ops.node_selection_graphical_lasso(pt.as_tensor(S), N, 3.0, 2.0).eval()
    for one, K in zip(S, both, strict=True):
        np.testing.assert_allclose(K, ops.node_selection_graphical_lasso(one, N, 3.0, 2.0).eval())


@structures
def test_the_mode_is_exact_to_rounding(name, python_mode):
    """Columns in another order take the splitting another way, of which nothing is left."""
    function, known, rates, options = STRUCTURES[name]
    S, blocks = covariance()[::-1, ::-1], name.startswith("block")
    one = getattr(ops, function)(S, N, *((BLOCKS[::-1],) if blocks else known), *rates, **options)
    other = getattr(ops, function)(covariance(), N, *known, *rates, **options)
    np.testing.assert_allclose(one.eval()[::-1, ::-1], other.eval(), atol=1e-11)


def test_invalid_inputs(python_mode):
    S = covariance()
    s, rate = pt.tensor(dtype="float64", shape=(8, 8)), pt.dscalar()
    for name, (function, known, rates, options) in STRUCTURES.items():
        f = pytensor.function(
            [s, rate], getattr(ops, function)(s, N, *known, rate, rates[1], **options)
        )
        assert np.isnan(f(S, -1.0)).all(), name
        assert np.isnan(f(np.full(S.shape, np.nan), 1.0)).all(), name
        assert np.isnan(f(0 * S, 0.0)).all(), name
    with pytest.raises(ValueError, match="norm"):
        ops.node_selection_graphical_lasso(s, N, rate, 1.0, norm="nuclear")
    with pytest.raises(ValueError, match="empty"):
        ops.locally_constant_graphical_lasso(s, N, [], rate, 1.0)
    with pytest.raises(ValueError, match="from 0 to 7"):
        ops.locally_constant_graphical_lasso(s, N, [(0, 8)], rate, 1.0)


@pytest.mark.parametrize("norm", ["l2", "linf", "nuclear"])
def test_one_block_is_the_graphical_lasso(norm):
    S, blocks = covariance(p=3), ["a"] * 3
    penalty = (np.ones((3, 3)) - np.eye(3)) * 2.0 / N
    expected = solvers.graphical_lasso(S, penalty + np.eye(3) * 2.0 / N, tol=1e-12).precision
    own = {"norm": norm, "diagonal_rate": 1.0}
    solution = solvers.blockwise_graphical_lasso(S, N, blocks, 2.0, 8.0, tol=1e-10, **own)
    # A gap of 1e-12 leaves an error near its root.
    np.testing.assert_allclose(solution.precision, expected, atol=1e-5)
    found = ops.blockwise_graphical_lasso(S, N, blocks, 2.0, 8.0, **own)
    np.testing.assert_allclose(found.eval(mode="FAST_COMPILE"), expected, atol=1e-5)


def test_shapes_that_do_not_fit_are_refused():
    S = np.eye(4)
    for blocks in ([*"aab"], {"a": [0, 1], "b": [2, 3]}, "a"):
        with pytest.raises(ValueError, match="the block of each of the 4 columns"):
            ops.blockwise_graphical_lasso(S, 60, blocks, 1.0, 1.0)
    for rows in (np.ones((60, 4)), np.ones(4)):
        with pytest.raises(ValueError, match="S must be a covariance matrix, it has shape"):
            ops.node_selection_graphical_lasso(rows, 60, 1.0, 1.0)
