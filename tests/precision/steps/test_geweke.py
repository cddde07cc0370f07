"""Joint-distribution tests of the step, and of steps that are wrong on purpose."""

import numpy as np
import pymc as pm
import pytest

from tools.geweke import assert_geweke
from tools.priors import horseshoe_prior, laplace_prior, spike_slab_prior

import bayesstruct as bs

from bayesstruct.distributions import (
    ColumnMeans,
    GraphicalNormal,
    IncompleteGraphicalNormal,
    MissingValues,
)
from bayesstruct.precision.kernels import gibbs as precision_gibbs
from bayesstruct.precision.kernels.cholesky import pack_cholesky, unpack_cholesky
from bayesstruct.precision.kernels.horseshoe import sweep as horseshoe
from bayesstruct.steps import PrecisionGibbs

P, N = 4, 5
SCALES = {"spike_scale": 0.25, "slab_scale": 1.0, "diagonal_rate": 0.5}
MISSING = np.zeros((N, P), bool)
MISSING[0, 1] = MISSING[2, 0] = MISSING[2, 3] = MISSING[4, 2] = True
LOCATION, SCALE = np.array([1.0, -3.0, 0.0, 2.0]), np.array([2.0, 0.5, 1.0, 3.0])
PAIRS = np.triu_indices(P, 1)


class Joint:
    """Both simulators of one model: ``kind`` of prior, with or without a random parameter."""

    def __init__(self, kind, *, gaps=False, random=False, seed=0):
        self.kind, self.gaps, self.random = kind, gaps, random
        with pm.Model() as self.model:
            self.rows = pm.Data("rows", np.zeros((N, P)))
            if kind == "spike_slab":
                probability = pm.Beta.dist(1.5, 2.0) if random else 0.4
                K = bs.GraphicalSpikeSlab("K", P, probability, **SCALES)
                bs.distributions.Edges("edge", K)
            elif kind == "horseshoe":
                K = bs.GraphicalHorseshoe("K", P, pm.HalfCauchy.dist(0.7) if random else 0.3)
            else:
                K = bs.GraphicalLasso("K", P, pm.Gamma("rate", 4.0, 3.0) if random else 1.3)
            args = (ColumnMeans("mean", 0.5, 0.8, shape=P), K, LOCATION, SCALE)
            if gaps:
                MissingValues("x_missing", *args, table=np.zeros((N, P)), missing=MISSING)
                IncompleteGraphicalNormal("x", *args, missing=MISSING, observed=self.rows)
            else:
                GraphicalNormal("x", *args, observed=self.rows)
            free = [v for v in self.model.free_RVs if v.name != "rate"]
            self.steps = [PrecisionGibbs(free, rng=seed)]
            if kind == "laplace" and random:
                # Any valid kernel will do for the rate: its conditional holds the density of K.
                self.steps.append(pm.Slice([self.model["rate"]], rng=seed + 1))
        self.pool = iter(())

    def prior(self, rng):
        """Next of a pool of draws from the prior, by rejection."""
        try:
            return next(self.pool)
        except StopIteration:
            self.pool = iter(self._fill(rng, 4_000))
            return next(self.pool)

    def _fill(self, rng, size):
        if self.kind == "spike_slab":
            beta = (1.5, 2.0) if self.random else None
            draws = spike_slab_prior(
                rng, size, P, probability=0.4, beta=beta, spike=0.25, slab=1.0, diagonal_rate=0.5
            )
            return [
                {"K": k, "edge": e.astype(int)} | ({"share": s} if self.random else {})
                for k, e, s in zip(*draws, strict=True)
            ]
        if self.kind == "horseshoe":
            given = {"width": 0.7} if self.random else {"scale": 0.3}
            return [
                {"K": k} | ({"global_scale": s} if self.random else {})
                for k, s in zip(*horseshoe_prior(rng, size, P, **given), strict=True)
            ]
        rates = rng.gamma(4.0, 1 / 3.0, size=size) if self.random else np.full(size, 1.3)
        unit = laplace_prior(rng, size, P, rate=1.0)
        return [
            {"K": k / r} | ({"rate": r} if self.random else {})
            for k, r in zip(unit, rates, strict=True)
        ]

    def forward(self, rng):
        """Parameters and a table, in the value space of the model."""
        draw = self.prior(rng)
        point = {
            "mean": 0.5 + 0.8 * rng.normal(size=P),
            "K_cholesky-cov__": pack_cholesky(draw["K"]),
        }
        if "edge" in draw:
            point["edge"] = draw["edge"]
        if "share" in draw:
            point["edge_probability_logodds__"] = np.asarray(
                np.log(draw["share"] / (1 - draw["share"]))
            )
        if "rate" in draw:
            point["rate_log__"] = np.asarray(np.log(draw["rate"]))
        if "global_scale" in draw:
            point["global_scale_log__"] = np.asarray(np.log(draw["global_scale"]))
        return self.with_rows(rng, point)

    def with_rows(self, rng, point):
        K, covariance = unpack_cholesky(point["K_cholesky-cov__"], P)
        rows = point["mean"] + rng.normal(size=(N, P)) @ np.linalg.cholesky(covariance).T
        rows = LOCATION + SCALE * rows
        if self.gaps:
            point["x_missing"] = rows[MISSING]
        return point, rows, K

    def transition(self, rng, state):
        """Parameters given the table by the steps, then a new table."""
        point, rows, _ = state
        self.rows.set_value(np.where(MISSING, 99.0, rows) if self.gaps else rows)
        self.steps[0].parts[0].forget()
        for step in self.steps:
            point, _ = step.step(point)
        return self.with_rows(rng, dict(point))

    def statistics(self, state):
        """Bounded or light-tailed: columns of nearly singular matrices have no second moments."""
        point, rows, K = state
        z = np.tanh(0.3 * (rows - LOCATION) / SCALE)
        u = K[PAIRS]
        rho = -u / np.sqrt(np.diag(K)[PAIRS[0]] * np.diag(K)[PAIRS[1]])
        out = {f"k{i}": v for i, v in enumerate(u)} | {f"k{i}^2": v * v for i, v in enumerate(u)}
        out |= {f"log d{i}": v for i, v in enumerate(np.log(np.diag(K)))}
        out |= {"log det": np.linalg.slogdet(K)[1], "rho^2": (rho**2).mean(), "trace": np.trace(K)}
        out |= {"mean": point["mean"].mean(), "mean^2": (point["mean"] ** 2).mean()}
        out |= {"z": z.mean(), "z^2": (z**2).mean(), "zz": (z[:, 0] * z[:, 1]).mean()}
        out |= {"z k": (z[:, 0] * z[:, 1]).mean() * np.tanh(u[0])}
        out |= {"z mean": (z.mean(0) * point["mean"]).mean()}
        if "edge" in point:
            edges = point["edge"].sum()
            out |= {
                "edges": edges,
                "edges^2": edges**2,
                "edge0 rho0": point["edge"][0] * rho[0] ** 2,
            }
        if "edge_probability_logodds__" in point:
            share = 1 / (1 + np.exp(-point["edge_probability_logodds__"]))
            out |= {"share": share, "share^2": share**2, "share edges": share * point["edge"].sum()}
        if "rate_log__" in point:
            rate = np.exp(point["rate_log__"])
            out |= {"rate": rate, "rate^2": rate**2, "rate trace": rate * np.trace(K)}
        if "global_scale_log__" in point:
            scale = np.tanh(0.5 * point["global_scale_log__"])
            out |= {"scale": scale, "scale^2": scale**2, "scale rho": scale * (rho**2).mean()}
        return out

    def check(self, draws, seed=1):
        return assert_geweke(
            self.forward, self.transition, self.statistics, draws=draws, chains=20, seed=seed
        )


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("kind", "gaps", "random"),
    [
        ("spike_slab", False, False),
        ("spike_slab", True, True),
        ("laplace", True, False),
        ("laplace", False, True),
        ("horseshoe", False, True),
        ("horseshoe", True, True),
    ],
)
def test_parameters_and_tables_have_their_joint_distribution(kind, gaps, random, full):
    z = Joint(kind, gaps=gaps, random=random).check(60_000 if full else 2_000)
    assert len(z) > 20


@pytest.mark.calibration
@pytest.mark.parametrize("kind", ["spike_slab", "laplace", "horseshoe"])
@pytest.mark.parametrize("wrong", ["shape", "rate"])
def test_a_wrong_diagonal_is_noticed(kind, wrong, full, monkeypatch):
    name = f"{kind}_sweep"
    module = horseshoe if kind == "horseshoe" else precision_gibbs
    right = getattr(module, name)

    def broken(rng, precision, covariance, *args):
        args = list(args)
        n_at = 3 if kind == "spike_slab" else 1
        rate_at = 7 if kind == "spike_slab" else 3
        if wrong == "shape":
            args[n_at] += 2.0  # the shape n/2 + 2 instead of n/2 + 1 (n/2 soon leaves the cone)
        else:
            args[rate_at] *= 1.25
        return right(rng, precision, covariance, *args)

    monkeypatch.setattr(module, name, broken)
    with pytest.raises(AssertionError, match="worst z"):
        Joint(kind).check(30_000 if full else 1_500)


@pytest.mark.calibration
def test_odds_without_the_ratio_of_scales_are_noticed(monkeypatch, full):
    right = precision_gibbs.spike_slab_sweep

    def broken(*args):
        args = list(args)
        args[7] = args[7] - np.log(args[8] / args[9])  # log odds off by log(spike / slab)
        return right(*args)

    monkeypatch.setattr(precision_gibbs, "spike_slab_sweep", broken)
    with pytest.raises(AssertionError, match="worst z"):
        Joint("spike_slab").check(30_000 if full else 1_500)


@pytest.mark.calibration
@pytest.mark.parametrize("name", ["draw_global_scale", "rescale"])
def test_a_global_scale_that_is_too_large_is_noticed(name, monkeypatch, full):
    right = getattr(horseshoe, name)
    monkeypatch.setattr(horseshoe, name, lambda *args: 1.4 * right(*args))
    with pytest.raises(AssertionError, match="worst z"):
        Joint("horseshoe", random=True).check(30_000 if full else 1_500)
