"""Chains of the step against exact posteriors (importance sampling; see tools.integration)."""

import numpy as np
import pymc as pm
import pytest

from tools.batches import mean_and_error
from tools.enumeration import assert_matches_enumeration
from tools.integration import laplace_posterior, moments, spike_slab_posterior

import bayesstruct as bs

from bayesstruct.distributions import (
    ColumnMeans,
    GraphicalNormal,
    IncompleteGraphicalNormal,
    MissingValues,
)
from bayesstruct.precision.kernels.cholesky import unpack_cholesky
from bayesstruct.steps import PrecisionGibbs

SCALES = {"spike_scale": 0.25, "slab_scale": 1.0, "diagonal_rate": 0.5}
REFERENCE = {"spike": 0.25, "slab": 1.0, "diagonal_rate": 0.5}
LOCATION, SCALE = np.array([10.0, -3.0, 0.0]), np.array([2.0, 0.5, 1.0])


def table(n, p, seed=0):
    z = np.random.default_rng(seed).normal(size=(n, p))
    z[:, 1] += 0.8 * z[:, 0]
    return z


def run(model, sweeps, name="K", seed=0, burn=200):
    """Draws of the matrix, and of the edges if the model has them, by the step alone."""
    with model:
        step = PrecisionGibbs(model.free_RVs)
    step.setup_chain(np.random.default_rng(seed), 0, sweeps)
    point, p = model.initial_point(seed), model[name].eval().shape[-1]
    kept = [None] * sweeps
    for t in range(-burn, sweeps):
        point, _ = step.step(point)
        if t >= 0:
            kept[t] = point
    matrices = np.array([unpack_cholesky(q[f"{name}_cholesky-cov__"], p)[0] for q in kept])
    edges = np.array([q["edge"] for q in kept]) if "edge" in kept[0] else None
    return matrices, edges, kept


def assert_agrees(matrices, weighted):
    """First and second moments within 4.5 standard errors of chain and reference together."""
    exact, exact_error = weighted.mean(moments(weighted.precision))
    mean, error, _ = mean_and_error(moments(matrices), 60)
    z = (mean - exact) / np.hypot(error, exact_error)
    assert np.abs(z).max() < 4.5, z


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "p", "sweeps"), [(5, 3, 4_000), (8, 4, 6_000)])
def test_edges_with_known_mean(n, p, sweeps):
    rows = table(n, p)
    with pm.Model() as model:
        K = bs.GraphicalSpikeSlab("K", p, 0.4, **SCALES)
        bs.distributions.Edges("edge", K)
        pm.MvNormal("x", np.zeros(p), tau=K, observed=rows)
    states, exact, errors, weighted = spike_slab_posterior(
        rows, probability=0.4, **REFERENCE, draws=40_000, seed=1
    )
    matrices, edges, _ = run(model, sweeps)
    assert_matches_enumeration(edges, exact, states=states, errors=errors)
    assert_agrees(matrices, weighted)


@pytest.mark.statistical
def test_edges_with_column_means_in_the_units_of_the_table():
    rows = table(6, 3)
    with pm.Model() as model:
        K = bs.GraphicalSpikeSlab("K", 3, 0.4, **SCALES)
        bs.distributions.Edges("edge", K)
        mean = ColumnMeans("mean", 0.0, 1.0, shape=3)
        GraphicalNormal("x", mean, K, LOCATION, SCALE, observed=LOCATION + SCALE * rows)
    states, exact, errors, weighted = spike_slab_posterior(
        rows, probability=0.4, **REFERENCE, draws=40_000, seed=1, column_means=True
    )
    matrices, edges, _ = run(model, 4_000)
    assert_matches_enumeration(edges, exact, states=states, errors=errors)
    assert_agrees(matrices, weighted)


@pytest.mark.statistical
def test_edges_with_a_beta_edge_probability():
    rows = table(6, 3)
    with pm.Model() as model:
        K = bs.GraphicalSpikeSlab("K", 3, pm.Beta.dist(0.8, 1.7), **SCALES)
        bs.distributions.Edges("edge", K)
        pm.MvNormal("x", np.zeros(3), tau=K, observed=rows)
    states, exact, errors, weighted = spike_slab_posterior(
        rows, beta=(0.8, 1.7), **REFERENCE, draws=40_000, seed=1
    )
    matrices, edges, kept = run(model, 4_000)
    assert_matches_enumeration(edges, exact, states=states, errors=errors)
    assert_agrees(matrices, weighted)
    share = 1 / (1 + np.exp(-np.array([q["edge_probability_logodds__"] for q in kept])))
    # Given the edges it is beta whatever else; this is its mean from the exact distribution of the edges.
    expected = exact @ ((0.8 + states.sum(1)) / (0.8 + 1.7 + 3))
    mean, error, _ = mean_and_error(share[:, None])
    assert abs(mean[0] - expected) < 4.5 * error[0]


@pytest.mark.statistical
def test_edges_and_imputations_of_missing_values():
    rows = table(7, 3)
    rows[0, 1] = rows[2, 0] = rows[2, 2] = rows[5, 2] = np.nan
    missing = np.isnan(rows)
    values = np.where(missing, 0.0, LOCATION + SCALE * rows)
    with pm.Model() as model:
        K = bs.GraphicalSpikeSlab("K", 3, 0.4, **SCALES)
        bs.distributions.Edges("edge", K)
        args = (np.zeros(3), K, LOCATION, SCALE)
        MissingValues("x_missing", *args, table=values, missing=missing)
        IncompleteGraphicalNormal("x", *args, missing=missing, observed=values)
    states, exact, errors, weighted = spike_slab_posterior(
        rows, probability=0.4, **REFERENCE, draws=40_000, seed=1
    )
    matrices, edges, kept = run(model, 4_000)
    assert_matches_enumeration(edges, exact, states=states, errors=errors)
    assert_agrees(matrices, weighted)
    # Cell (0, 1): posterior mean of its conditional mean -(K_10 x_0 + K_12 x_2) / K_11.
    k = weighted.precision
    centre = -(k[:, 1, 0] * rows[0, 0] + k[:, 1, 2] * rows[0, 2]) / k[:, 1, 1]
    both = np.stack([centre, centre**2 + 1 / k[:, 1, 1]], axis=1)
    expected, expected_error = weighted.mean(both)
    imputed = (np.array([q["x_missing"][0] for q in kept]) - LOCATION[1]) / SCALE[1]
    mean, error, _ = mean_and_error(np.stack([imputed, imputed**2], axis=1))
    assert (np.abs(mean - expected) < 4.5 * np.hypot(error, expected_error)).all()


@pytest.mark.statistical
def test_required_and_forbidden_edges():
    rows = table(6, 3)
    nominal = np.array([[0.5, 0.0, 0.4], [0.0, 0.5, 1.0], [0.4, 1.0, 0.5]])
    with pm.Model() as model:
        K = bs.GraphicalSpikeSlab("K", 3, nominal, **SCALES)
        bs.distributions.Edges("edge", K)
        pm.MvNormal("x", np.zeros(3), tau=K, observed=rows)
    states, exact, errors, weighted = spike_slab_posterior(
        rows, probability=nominal, **REFERENCE, draws=40_000, seed=1
    )
    matrices, edges, _ = run(model, 4_000)
    assert_matches_enumeration(edges, exact, states=states, errors=errors)
    assert_agrees(matrices, weighted)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("rate", "diagonal_rate"), [(2.0, None), (0.7, 0.9), ("matrix", 0.6)], ids=str
)
def test_laplace_moments(rate, diagonal_rate):
    rows = table(6, 3)
    if rate == "matrix":
        rate = np.array([[1.0, 0.5, 2.0], [0.5, 1.0, 4.0], [2.0, 4.0, 1.0]])
    with pm.Model() as model:
        K = bs.GraphicalLasso("K", 3, rate, diagonal_rate=diagonal_rate)
        pm.MvNormal("x", np.zeros(3), tau=K, observed=rows)
    upper = np.triu_indices(3, 1)
    weighted = laplace_posterior(
        rows,
        rate=np.broadcast_to(rate, (3, 3))[upper],
        diagonal_rate=rate / 2 if diagonal_rate is None else diagonal_rate,
        draws=40_000,
        seed=1,
    )
    matrices, *_ = run(model, 4_000)
    assert_agrees(matrices, weighted)


@pytest.mark.statistical
def test_a_common_scale_is_that_of_the_matrix():
    # K = c Q: rows with precision c Q are rows with precision Q times sqrt(c).
    rows, c = table(6, 3), 3.0
    with pm.Model() as model:
        K = bs.GraphicalSpikeSlab("K", 3, 0.4, **SCALES, scale=c)
        bs.distributions.Edges("edge", K)
        pm.MvNormal("x", np.zeros(3), tau=K, observed=rows)
    states, exact, errors, weighted = spike_slab_posterior(
        rows * np.sqrt(c), probability=0.4, **REFERENCE, draws=40_000, seed=1
    )
    matrices, edges, _ = run(model, 4_000)
    assert_matches_enumeration(edges, exact, states=states, errors=errors)
    assert_agrees(matrices / c, weighted)


@pytest.mark.statistical
def test_several_tables_share_one_matrix():
    rows = table(9, 3)
    with pm.Model() as model:
        K = bs.GraphicalSpikeSlab("K", 3, 0.4, **SCALES)
        bs.distributions.Edges("edge", K)
        pm.MvNormal("x", np.zeros(3), tau=K, observed=rows[:4])
        GraphicalNormal("y", 0.0, K, LOCATION, SCALE, observed=LOCATION + SCALE * rows[4:])
    states, exact, errors, weighted = spike_slab_posterior(
        rows, probability=0.4, **REFERENCE, draws=40_000, seed=1
    )
    matrices, edges, _ = run(model, 4_000)
    assert_matches_enumeration(edges, exact, states=states, errors=errors)
    assert_agrees(matrices, weighted)


def test_edges_of_a_matrix_that_nuts_moves():
    # The step of the indicators alone: the frequencies given a fixed matrix are Bernoulli.
    from bayesstruct.steps import EdgesGibbs

    value = np.array([[1.0, 0.3, -0.5], [0.3, 1.5, 0.1], [-0.5, 0.1, 2.0]])
    with pm.Model() as model:
        K = bs.GraphicalSpikeSlab("K", 3, 0.4, **SCALES, scale=1.3)
        edge = bs.distributions.Edges("edge", K)
        step = EdgesGibbs([edge], rng=1)
    point = model.initial_point()
    point["K_cholesky-cov__"] = model.rvs_to_transforms[K].forward(value).eval()
    draws = np.array([step.step(point)[0]["edge"] for _ in range(4_000)])
    u = value[np.triu_indices(3, 1)] / 1.3
    slab, spike = (w * np.exp(-0.5 * (u / s) ** 2) / s for w, s in ((0.4, 1.0), (0.6, 0.25)))
    p = slab / (slab + spike)
    assert (np.abs(draws.mean(0) - p) < 4 * np.sqrt(p * (1 - p) / 4_000)).all()
