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
            pool.extend(zip(*spike_slab_prior(rng, 500, P, probability=0.3, **prior), strict=True))
        K, edge, _ = pool.pop()
        mean = rng.normal(size=P) if kind in STUDENT else np.zeros(P)
        e = rng.multivariate_normal(np.zeros(P), np.linalg.inv(K), size=N)
        truth = {"weight": weights(K), "edges": edge.sum()}
        if kind in STUDENT:
            e /= np.sqrt(rng.gamma(NU / 2, 2 / NU, size=(N, STUDENT[kind])))
            truth |= {"mean": mean, "log_det": np.linalg.slogdet(K)[1]}
            return truth, mean + e
        table = np.column_stack([levels(z, own) for z, own in zip(e.T, SIZES, strict=True)])
        return truth, pd.DataFrame(table.astype(float))

    return simulate


def fitter(kind, tune=60, draws=240):
    """The step alone, on the model that users get."""
    own = {"marginals": "rank"}
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
        return out

    return fit


@pytest.mark.calibration
@pytest.mark.parametrize("kind", [*STUDENT, "rank"])
def test_the_model_is_calibrated(kind, full):
    simulations = 400 if full else 12
    assert_calibrated(simulator(kind), fitter(kind), simulations=simulations, seed=1)
