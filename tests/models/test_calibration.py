"""Simulation-based calibration of the whole model."""

import numpy as np
import pymc as pm
import pytest

from tools.calibration import assert_calibrated
from tools.priors import g_wishart_prior, horseshoe_prior, laplace_prior, spike_slab_prior

from bayesstruct.models import gaussian_graphical
from bayesstruct.precision.kernels.cholesky import unpack_cholesky
from bayesstruct.steps import PrecisionGibbs

P, N = 5, 20
PAIRS = np.triu_indices(P, 1)
SCALES = {"spike_scale": 0.1, "slab_scale": 0.8}
BETA = (1.5, 3.0)
MISSING = np.zeros((N, P), bool)
MISSING[0, 1] = MISSING[3, 2] = MISSING[3, 4] = MISSING[11, 0] = True


def weights(K):
    return -K[..., PAIRS[0], PAIRS[1]] / np.sqrt(
        K[..., PAIRS[0], PAIRS[0]] * K[..., PAIRS[1], PAIRS[1]]
    )


def build(kind, rows):
    if kind == "laplace":
        return gaussian_graphical(rows, prior="laplace", rate=1.5, standardize=False)
    if kind == "horseshoe":
        scale = pm.HalfCauchy.dist(0.5)
        return gaussian_graphical(rows, prior=kind, global_scale=scale, standardize=False)
    probability = 0.3 if kind == "spike_slab" else pm.Beta.dist(*BETA)
    if kind == "g_wishart":
        options = {"prior": kind, "edge_probability": probability}
        return gaussian_graphical(rows, **options, standardize=False)
    return gaussian_graphical(rows, edge_probability=probability, standardize=False, **SCALES)


def graph_and_matrix(rng):
    """Matrix, edges and their probability under the G-Wishart prior."""
    share = rng.beta(*BETA)
    edge = rng.random(len(PAIRS[0])) < share
    adjacency = np.zeros((P, P), bool)
    adjacency[PAIRS] = edge
    return g_wishart_prior(rng, adjacency | adjacency.T), edge, share


def simulator(kind):
    """The prior by plain rejection, so that it is not the package's own."""
    pool = []

    def simulate(rng):
        if not pool:
            if kind == "laplace":
                pool.extend((k, None, None) for k in laplace_prior(rng, 500, P, rate=1.5))
            elif kind == "horseshoe":
                draws = horseshoe_prior(rng, 500, P, width=0.5)
                pool.extend((k, None, scale) for k, scale in zip(*draws, strict=True))
            elif kind == "g_wishart":
                pool.extend(graph_and_matrix(rng) for _ in range(50))
            else:
                draws = spike_slab_prior(
                    rng,
                    500,
                    P,
                    probability=0.3,
                    beta=BETA if kind == "beta" else None,
                    spike=0.1,
                    slab=0.8,
                    diagonal_rate=0.5,
                )
                pool.extend(zip(*draws, strict=True))
        K, edge, share = pool.pop()
        mean = rng.normal(size=P)
        rows = rng.multivariate_normal(mean, np.linalg.inv(K), size=N)
        truth = {"weight": weights(K), "mean": mean, "log_det": np.linalg.slogdet(K)[1]}
        if edge is not None:
            truth |= {"edges": edge.sum(), "edge": edge.astype(int)}
        if kind in ("beta", "g_wishart"):
            truth["edge_probability"] = share
        if kind == "horseshoe":
            truth["global_scale"] = share
        if kind not in ("laplace", "horseshoe"):
            truth["imputed"] = rows[MISSING][:2]
            rows[MISSING] = np.nan
        return truth, rows

    return simulate


def fitter(kind, tune=50, draws=200):
    """The step alone, on the very model that users get (built anew: its table is a constant)."""

    def fit(rows, rng):
        model = build(kind, rows)
        with model:
            step = PrecisionGibbs(model.free_RVs)
        step.setup_chain(rng, tune, draws)
        point, kept = model.initial_point(int(rng.integers(2**31))), []
        for t in range(tune + draws):
            point, _ = step.step(point)
            if t >= tune:
                kept.append(point)
        if kind == "g_wishart":
            K = np.array([q["precision"] for q in kept])
        else:
            K = np.array([unpack_cholesky(q["precision_cholesky-cov__"], P)[0] for q in kept])
        out = {"weight": weights(K), "mean": np.array([q["mean"] for q in kept])}
        out["log_det"] = np.linalg.slogdet(K)[1]
        if "edge" in kept[0]:
            out["edge"] = np.array([q["edge"] for q in kept])
            out["edges"] = out["edge"].sum(axis=1)
        if "x_missing" in kept[0]:
            out["imputed"] = np.array([q["x_missing"][:2] for q in kept])
        if kind in ("beta", "g_wishart"):
            out["edge_probability"] = np.array(
                [1 / (1 + np.exp(-q["edge_probability_logodds__"])) for q in kept]
            )
        if kind == "horseshoe":
            out["global_scale"] = np.exp([q["global_scale_log__"] for q in kept])
        return out

    return fit


# Some tables of the prior have elements far out in the slab.
@pytest.mark.filterwarnings("ignore:.*depend on each other so strongly")
@pytest.mark.calibration
@pytest.mark.parametrize("kind", ["spike_slab", "beta", "laplace", "horseshoe", "g_wishart"])
def test_the_model_is_calibrated(kind, full):
    simulations = 500 if full else 10
    assert_calibrated(simulator(kind), fitter(kind), simulations=simulations, seed=1)


@pytest.mark.calibration
def test_simuk_agrees(full):
    if not full:
        pytest.skip("the cross-check compiles the model for every simulation")
    import warnings

    import simuk

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = simulator("laplace")(np.random.default_rng(0))[1]
        sbc = simuk.SBC(
            build("laplace", rows),
            num_simulations=60,
            seed=1,
            progress_bar=False,
            sample_kwargs={"draws": 200, "tune": 50, "chains": 2, "cores": 1},
        )
        sbc.run_simulations()
    # simuk ranks free variables only: the means, and the diagonal and upper triangle of the matrix.
    group = sbc.simulations["prior_sbc"]
    precision = group["precision"].values.reshape(-1, P, P)
    assert len(precision) >= 60
    upper = np.triu_indices(P)
    ranks = np.column_stack([precision[:, *upper], group["mean"].values.reshape(-1, P)])
    # The mean normalised rank of each of 20 quantities within 4.5 standard errors of one half;
    # there are 400 draws.
    z = (ranks.mean(0) / 400 - 0.5) * np.sqrt(12 * len(ranks))
    assert np.abs(z).max() < 4.5
