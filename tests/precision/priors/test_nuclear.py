"""Nuclear norms of blocks as a prior: reductions, derivatives, prior probabilities, messages."""

import numpy as np
import pymc as pm
import pytest

import bayesstruct as bs

from bayesstruct.distributions import GraphicalNuclearLasso
from bayesstruct.precision.kernels.cholesky import unpack_cholesky
from bayesstruct.precision.priors.nuclear import implied_nuclear_probability

PAIRS = np.triu_indices(4, 1)
packed = "K_cholesky-cov__"


def density(build):
    with pm.Model() as model:
        build("K")
    return model.compile_logp(vars=[model["K"]], jacobian=False)


@pytest.mark.parametrize("diagonal_rate", [None, 0.7])
def test_blocks_of_one_column_have_the_laplace_prior(diagonal_rate, python_mode):
    options = {"diagonal_rate": diagonal_rate}
    f = density(lambda name: GraphicalNuclearLasso(name, [2, 0, 1], 1.5, **options))
    g = density(lambda name: bs.GraphicalLasso(name, 3, 1.5, **options))
    points = np.random.default_rng(0).normal(size=(4, 6))
    values = [[float(h({packed: x})) for x in points] for h in (f, g)]
    np.testing.assert_allclose(np.diff(values[0]), np.diff(values[1]))


def test_rates_of_the_prior(python_mode):
    rates = np.array([[0.0, 2.0], [2.0, 0.0]])
    f = density(lambda name: GraphicalNuclearLasso(name, [*"aabb"], 1.5, block_rates=rates))
    points, values = np.random.default_rng(1).normal(size=(3, 10)), []
    for x in points:
        K = unpack_cholesky(x, 4)[0]
        within = abs(K[0, 1]) + abs(K[2, 3]) + 0.5 * np.trace(K)
        values.append(-1.5 * (within + 2.0 * np.linalg.norm(K[:2, 2:], "nuc")))
    np.testing.assert_allclose(np.diff([float(f({packed: x})) for x in points]), np.diff(values))


def test_gradient(python_mode):
    with pm.Model() as model:
        GraphicalNuclearLasso("K", [0, 0, 1, 1], pm.Exponential("rate", 1.0))
    names = [v.name for v in model.value_vars]
    f, g = model.compile_logp(), model.compile_dlogp()
    rng = np.random.default_rng(2)
    point = {"rate_log__": np.array(0.3), packed: rng.normal(size=10)}
    slope, at = g(point), 0
    for name in names:
        for k in range(np.size(point[name])):
            near = [dict(point), dict(point)]
            for sign, other in zip((1.0, -1.0), near, strict=True):
                moved = np.array(point[name], float)
                moved.reshape(-1)[k] += sign * 1e-6
                other[name] = moved
            expected = (float(f(near[0])) - float(f(near[1]))) / 2e-6
            assert slope[at] == pytest.approx(expected, abs=1e-6)
            at += 1


@pytest.mark.statistical
def test_prior_probabilities():
    found = implied_nuclear_probability([0, 0, 1, 1], 0.1, block_rates=1.5)
    K = pm.draw(
        GraphicalNuclearLasso.dist([0, 0, 1, 1], block_rates=1.5),
        1_500,
        random_seed=1,
        mode="FAST_COMPILE",
    )
    d = np.sqrt(np.diagonal(K, axis1=1, axis2=2))
    weight = np.abs(K[:, *PAIRS]) / (d[:, PAIRS[0]] * d[:, PAIRS[1]])
    np.testing.assert_allclose(found, (weight > 0.1).mean(axis=0), atol=0.05)


@pytest.mark.parametrize(
    ("blocks", "options", "message"),
    [
        ([0], {}, "at least two columns"),
        ([0, 1], {"block_rates": -1.0}, "block_rates"),
        ([0, 0, 1], {"block_rates": np.ones((3, 3))}, "a number or a 2 x 2 matrix"),
        ([0, 1], {"block_rates": 0.0}, "would be improper"),
        ([0, 0, 1], {"entry_rates": 0.0}, "would be improper"),
        ([0, 1, 1], {"block_rates": np.array([[0.0, 1.0], [2.0, 0.0]])}, "symmetric"),
    ],
)
def test_wrong_rates(blocks, options, message):
    with pytest.raises(ValueError, match=message):
        GraphicalNuclearLasso.dist(blocks, **options)


def test_edges_in_a_model_of_ones_own(python_mode):
    with pm.Model() as model:
        K = GraphicalNuclearLasso("K", [0, 0, 1, 1], block_rates=1.5)
        bs.edges(K, negligible=0.1)
    wanted = implied_nuclear_probability([0, 0, 1, 1], 0.1, block_rates=1.5)
    np.testing.assert_allclose(model["edge_prior"].eval(), wanted)
