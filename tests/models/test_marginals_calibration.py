"""Simulation-based calibration of the Gaussian graphical model with t rows and with columns that count by their order."""

import warnings

import numpy as np
import pandas as pd
import pytest

from tools.calibration import assert_calibrated
from tools.priors import spike_slab_prior

from bayesstruct.models import gaussian_graphical
from bayesstruct.precision.kernels.cholesky import unpack_cholesky
from bayesstruct.steps import PrecisionGibbs

P, N = 5, 25
PAIRS = np.triu_indices(P, 1)
SCALES = {"spike_scale": 0.1, "slab_scale": 0.8}
NU = 6.0
#: Weights of a row with t marginals.
STUDENT = {"student": 1, "alternative_student": P}
#: Rows in each level of the columns that count by their order: a level for each, two, three levels.
SIZES = [[1] * N, [10, 15], [5, 12, 8], [1] * N, [20, 5]]


#: Columns that belong to one of three states without an order have no edge.
CHANCE = np.full((P, P), 0.3)
CHANCE[3, 4] = CHANCE[4, 3] = 0.0


def states(z):
    """A state for each pair of latent values: the larger one if it is positive."""
    return np.where(z.max(axis=1) < 0, 0, 1 + z.argmax(axis=1))


def weights(K):
    diagonal = np.sqrt(np.diagonal(K, axis1=-2, axis2=-1))
    return -K[..., *PAIRS] / (diagonal[..., PAIRS[0]] * diagonal[..., PAIRS[1]])


def levels(z, sizes):
    """Levels of so many rows each, in the order of the values."""
    return np.repeat(np.arange(len(sizes)), sizes)[np.argsort(np.argsort(z))]


def simulator(kind):
    """The prior by plain rejection."""
    pool = []

    def simulate(rng):
        if not pool:
            prior = {"spike": 0.1, "slab": 0.8, "diagonal_rate": 0.5}
            chance = CHANCE if kind == "states" else 0.3
            drawn = spike_slab_prior(rng, 500, P, probability=chance, **prior)
            pool.extend(zip(*drawn, strict=True))
        K, edge, _ = pool.pop()
        mean = rng.normal(size=P) if kind in STUDENT else np.zeros(P)
        e = rng.multivariate_normal(np.zeros(P), np.linalg.inv(K), size=N)
        truth = {"weight": weights(K), "edges": edge.sum()}
        if kind in STUDENT:
            e /= np.sqrt(rng.gamma(NU / 2, 2 / NU, size=(N, STUDENT[kind])))
            truth |= {"mean": mean, "log_det": np.linalg.slogdet(K)[1]}
            return truth, mean + e
        if kind == "states":
            return simulate_states(rng, truth, e)
        table = np.column_stack([levels(z, own) for z, own in zip(e.T, SIZES, strict=True)])
        return truth, pd.DataFrame(table.astype(float))

    return simulate


def simulate_states(rng, truth, e):
    """Three columns by their order and one of three states, all of which occur."""
    mean = np.append(np.zeros(3), rng.normal(size=2))
    state = states((mean + e)[:, 3:])
    if len(np.unique(state)) < 3:
        return simulate_states(rng, truth, e)
    table = [levels(z, own) for z, own in zip(e.T[:3], [SIZES[1], SIZES[2], SIZES[4]], strict=True)]
    table = [pd.Categorical(column, ordered=True) for column in table]
    table = {f"x{j}": column for j, column in enumerate(table)} | {"s": pd.Categorical(state)}
    return truth | {"mean": mean[3:]}, pd.DataFrame(table)


def fitter(kind, tune=60, draws=240):
    """The step alone, on the model that users get."""
    own = {"marginals": "rank"}
    if kind == "states":
        own = {"marginals": "mixed"}
    if kind in STUDENT:
        own = {"marginals": kind, "degrees": NU, "standardize": False}

    def fit(rows, rng):
        with warnings.catch_warnings():  # equal columns of two levels, few values
            warnings.simplefilter("ignore")
            model = gaussian_graphical(rows, edge_probability=0.3, **own, **SCALES)
        with model:
            step = PrecisionGibbs(model.free_RVs)
        step.setup_chain(rng, tune, draws)
        point, kept = model.initial_point(int(rng.integers(2**31))), []
        for t in range(tune + draws):
            point, _ = step.step(point)
            if t >= tune:
                kept.append(point)
        K = np.array([unpack_cholesky(q["precision_cholesky-cov__"], P)[0] for q in kept])
        out = {"weight": weights(K), "edges": np.array([q["edge"].sum() for q in kept])}
        if kind in STUDENT:
            out |= {"mean": np.array([q["mean"] for q in kept])}
            out |= {"log_det": np.linalg.slogdet(K)[1]}
        if kind == "states":
            out |= {"mean": np.array([q["mean"][3:] for q in kept])}
        return out

    return fit


@pytest.mark.calibration
@pytest.mark.parametrize("kind", [*STUDENT, "rank", "states"])
def test_the_model_is_calibrated(kind, full):
    simulations = 400 if full else 8 if kind == "states" else 12
    assert_calibrated(simulator(kind), fitter(kind), simulations=simulations, seed=1)
