"""Columns of states without an order: the posterior of a small table against weighted draws of the prior, densities, moves."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy.special import ndtr, ndtri
from scipy.stats import norm

import bayesstruct as bs

from bayesstruct.data.ranks import FREE, KNOWN
from bayesstruct.distributions import LatentValues, OrderedRows
from bayesstruct.precision.kernels.marginals.choices import draw_choices

SCALES = {"spike_scale": 0.1, "slab_scale": 1.5}
X = np.array([-1.6, -1.2, -0.8, -0.9, -0.2, 0.1, 0.4, 0.3, 0.9, 1.1, 1.4, 0.5])
STATE = np.array([1, 1, 1, 2, 0, 0, 1, 0, 2, 2, 2, 0])


def weighted_prior(x, draws=30_000, points=100):
    """Draws of edges, means and partial correlations from the prior, and their likelihoods."""
    rng = np.random.default_rng(1)
    size = 4 * draws
    edge = rng.random((size, 2)) < 0.5
    slab, spike = SCALES["slab_scale"], SCALES["spike_scale"]
    a, b = (rng.normal(size=(size, 2)) * np.where(edge, slab, spike)).T
    c = rng.normal(size=size) * spike  # inside the column of states
    d = rng.exponential(2.0, size=(size, 3))
    minors = d[:, 0] * d[:, 1] - a**2, d.prod(axis=1) + 2 * a * b * c
    minors = minors[0], minors[1] - d[:, 0] * c**2 - d[:, 1] * b**2 - d[:, 2] * a**2
    kept = np.flatnonzero((minors[0] > 0) & (minors[1] > 0))[:draws]
    a, b, c, d, edge = a[kept], b[kept], c[kept], d[kept], edge[kept]
    mean = rng.normal(size=(len(kept), 3))
    K = np.empty((len(kept), 3, 3))
    K[:, range(3), range(3)] = d
    for (i, j), value in {(0, 1): a, (0, 2): b, (1, 2): c}.items():
        K[:, i, j] = K[:, j, i] = value
    variance = np.linalg.inv(K)[:, 0, 0]
    log = norm.logpdf(x[:, None], mean[:, 0], np.sqrt(variance)).sum(axis=0)
    q = ndtri((np.arange(points) + 0.5) / points)[:, None]
    inner = np.linalg.inv(K[:, 1:, 1:])  # covariance given x
    for value, state in zip(x, STATE, strict=True):
        centre = mean[:, 1:] - (inner @ K[:, 1:, :1])[..., 0] * (value - mean[:, :1])
        first, other = (1, 0) if state == 2 else (0, 1)
        sd = np.sqrt(inner[:, first, first])
        u = centre[:, first] + sd * q
        slope = inner[:, 0, 1] / inner[:, first, first]
        rest = np.sqrt(inner[:, other, other] - slope * inner[:, 0, 1])
        below = np.where(u > 0, u, 0.0) if state else 0.0
        share = ndtr((below - centre[:, other] - slope * (u - centre[:, first])) / rest)
        log += np.log((share * ((u > 0) == (state > 0))).mean(axis=0) + 1e-12)
    weight = np.exp(log - log.max())
    root = np.sqrt(d)
    rho = np.stack([-a / (root[:, 0] * root[:, 1]), -b / (root[:, 0] * root[:, 2])], axis=1)
    return np.hstack([edge, rho, np.tanh(mean)]), weight / weight.sum()


@pytest.mark.statistical
def test_a_small_table_against_weighted_draws_of_the_prior():
    table = pd.DataFrame({"x": X, "s": pd.Categorical(np.array(["a", "b", "c"])[STATE])})
    model = bs.models.gaussian_graphical(table, marginals="mixed", **SCALES)
    assert model.coords["node"] == ("x", "s: b", "s: c")
    expected, weight = weighted_prior((X - X.mean()) / X.std(ddof=1))
    step = bs.steps.PrecisionGibbs(model.free_RVs, model=model, rng=1)
    step.setup_chain(np.random.default_rng(1), 0, 4_000)
    read = model.compile_fn(model.replace_rvs_by_values([model["weight"], model["mean"]]), inputs=model.value_vars, on_unused_input="ignore")  # fmt: skip
    point, found = model.initial_point(1), []
    for t in range(4_300):
        point, _ = step.step(point)
        if t >= 300:
            rho, mean = read(point)
            found.append([*point["edge"][:2], *rho[:2], *np.tanh(mean)])
    found = np.array(found)
    mean, sd = weight @ expected, np.sqrt(weight @ (expected - weight @ expected) ** 2)
    blocks = found.reshape(40, -1, found.shape[1]).mean(axis=1)
    error = np.hypot(blocks.std(axis=0) / np.sqrt(40), sd * np.sqrt((weight**2).sum()))
    z = (found.mean(axis=0) - mean) / error
    assert (error < 0.1).all()
    assert np.abs(z).max() < 4.5, z


def test_density_is_that_of_complete_rows_where_the_states_are_right():
    codes = np.array([[KNOWN, 1, 0], [KNOWN, 0, 1], [KNOWN, 0, 0], [KNOWN, FREE, FREE]])
    z = np.array([[0.1, 1.0, 0.5], [0.2, -1.0, 0.3], [0.3, -0.1, -0.2], [0.4, 5.0, 6.0]])
    K = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.0], [0.1, 0.0, 1.5]])
    known = {"table": z, "codes": codes, "start": z, "block": [-1, 0, 0]}
    dist = LatentValues.dist(np.zeros(3), K, **known)
    expected = pm.logp(pm.MvNormal.dist(np.zeros(3), tau=K), z).eval().sum()
    latent = codes > KNOWN
    np.testing.assert_allclose(pm.logp(dist, z[latent]).eval(), expected)
    for place, value in {(0, 1): 0.4, (0, 2): 1.2, (1, 2): -0.1, (2, 1): 0.1}.items():
        wrong = z.copy()
        wrong[place] = value
        assert pm.logp(dist, wrong[latent]).eval() == -np.inf


@pytest.mark.statistical
def test_draws_of_rows_have_states():
    table = np.column_stack([np.arange(4.0), [1, 0, 0, 1], [0, 1, 0, 0]])
    own = {"table": table, "by_order": [False, True, True], "block": [-1, 0, 0], "size": 20_000}
    rows = pm.draw(OrderedRows.dist([0.0, 0.5, -0.5], np.eye(3), **own), random_seed=1)
    assert {tuple(row) for row in rows[:, 1:]} == {(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)}
    np.testing.assert_allclose((rows[:, 1:].sum(axis=1) == 0).mean(), ndtr(-0.5) * ndtr(0.5), atol=0.015)  # fmt: skip


def test_the_state_of_each_row_stays():
    rng, p = np.random.default_rng(0), 4
    factor, mean = rng.normal(size=(p, 6)), rng.normal(size=p)
    K, block = factor @ factor.T, np.array([0, 0, 1, 1])
    u = rng.normal(size=(50, p))
    codes = np.zeros((50, p), int)
    for own in ([0, 1], [2, 3]):
        top = np.maximum(u[:, own].max(axis=1, keepdims=True), 0.0)
        codes[:, own] = u[:, own] == top
    values = u - mean
    for _ in range(5):
        draw_choices(rng, K, values, mean, np.arange(p), block, codes, np.empty((2, 50)))
    u = values + mean
    for own in ([0, 1], [2, 3]):
        top = np.maximum(u[:, own].max(axis=1, keepdims=True), 0.0)
        np.testing.assert_array_equal(u[:, own] == top, codes[:, own] == 1)
