"""Sweeps under penalties of several elements: exact posteriors, joint-distribution tests, steps that are wrong on purpose."""

import numpy as np
import pymc as pm
import pytest

from tools.batches import mean_and_error
from tools.geweke import assert_geweke
from tools.priors import penalised_prior

import bayesstruct as bs

from bayesstruct.distributions import ColumnMeans, GraphicalGroupLasso, GraphicalNormal
from bayesstruct.precision.kernels import fused, group_lasso, nuclear
from bayesstruct.precision.kernels.cholesky import pack_cholesky, unpack_cholesky
from bayesstruct.steps import PrecisionGibbs

P, N = 4, 5
PAIRS = np.triu_indices(P, 1)
CHAIN = np.eye(P, k=1) + np.eye(P, k=-1)
RATE = 1.3


class Fused:
    """A chain of columns."""

    smoothness = 0.6

    def add(self, name, rate=RATE):
        return bs.GraphicalFusedLasso(name, self.smoothness * CHAIN, rate)

    def penalty(self, K, rate=RATE):
        total = 0.0
        for a in range(P - 1):
            others = [i for i in range(P) if i not in (a, a + 1)]
            total = total + np.abs(K[:, a, others] - K[:, a + 1, others]).sum(-1)
        return rate * self.smoothness * total


class Grouped:
    """Rows of nodes, or two blocks of columns."""

    blocks = (0, 0, 1, 1)

    def __init__(self, groups, norm, share=0.7):
        self.norm, self.share, self.nodes = norm, share, groups == "nodes"
        self.order = 2 if norm == "l2" else np.inf
        make = bs.distributions
        self.members = make.node_members(P) if self.nodes else make.block_members(self.blocks)

    def add(self, name, rate=RATE):
        options = {"group_rates": self.share, "norm": self.norm}
        return bs.distributions.GraphicalGroupLasso(name, P, self.members, rate, **options)

    def penalty(self, K, rate=RATE):
        flat = K.reshape(len(K), -1)
        norms = [np.linalg.norm(flat[:, g], self.order, axis=1) for g in self.members]
        return rate * self.share * np.sum(norms, axis=0)


class Nuclear:
    """Nuclear norm of the elements between two blocks of columns."""

    blocks, share = (0, 1, 1, 0), 1.5

    def add(self, name, rate=RATE):
        options = {"entry_rates": 1.0, "block_rates": self.share}
        return bs.distributions.GraphicalNuclearLasso(name, self.blocks, rate, **options)

    def penalty(self, K, rate=RATE):
        between = K[:, [0, 3]][:, :, [1, 2]]
        return rate * self.share * np.linalg.svd(between, compute_uv=False).sum(-1)


KINDS = {
    "fused": Fused(),
    "nodes, l2": Grouped("nodes", "l2"),
    "nodes, linf": Grouped("nodes", "linf"),
    "blocks, l2": Grouped("blocks", "l2", 1.5),
    "blocks, linf": Grouped("blocks", "linf", 2.0),
    "nuclear": Nuclear(),
}
kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
# Blocks have the sweeps of nodes.
some_kinds = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, id=name, marks=[pytest.mark.slow] if "blocks" in name else [])
        for name, kind in KINDS.items()
    ],
)


def log_prior(kind, K):
    """Log density up to a constant, of (draws, p, p) matrices."""
    absolute = np.abs(K[:, *PAIRS]).sum(-1) + 0.5 * np.trace(K, axis1=1, axis2=2)
    return -RATE * absolute - kind.penalty(K)


@kinds
def test_density(kind, python_mode):
    with pm.Model() as model:
        kind.add("K")
    f = model.compile_logp(vars=[model["K"]], jacobian=False, sum=True)
    K = penalised_prior(np.random.default_rng(0), 5, P, lambda K: 0 * K[:, 0, 0])
    values = np.array([f({"K_cholesky-cov__": pack_cholesky(k)}) for k in K])
    np.testing.assert_allclose(np.diff(values), np.diff(log_prior(kind, K)), rtol=1e-8)


def moments(K):
    u = K[:, *PAIRS]
    near = np.abs(u[:, 0] - u[:, 1])[:, None]
    d = np.diagonal(K, axis1=1, axis2=2)
    return np.hstack([u, u**2, np.log(d), near, np.linalg.slogdet(K)[1][:, None]])


@some_kinds
@pytest.mark.statistical
def test_prior_draws(kind):
    wanted = moments(penalised_prior(np.random.default_rng(0), 4_000, P, kind.penalty, rate=RATE))
    with pm.Model():
        K = kind.add("K")
    found = moments(pm.draw(K, 800, random_seed=1, mode="FAST_COMPILE"))
    error = np.hypot(wanted.std(0) / np.sqrt(len(wanted)), found.std(0) / np.sqrt(len(found)))
    z = (wanted.mean(0) - found.mean(0)) / error
    assert np.abs(z).max() < 4.5, z


@some_kinds
@pytest.mark.statistical
def test_posterior(kind):
    # Reference: draws of the prior, weighted by the likelihood.
    rows = np.random.default_rng(2).normal(size=(3, P))
    rows[:, 1] += 0.8 * rows[:, 0]
    K = penalised_prior(np.random.default_rng(1), 10_000, P, kind.penalty, rate=RATE)
    log = 1.5 * np.linalg.slogdet(K)[1] - 0.5 * np.einsum("ni,kij,nj->k", rows, K, rows)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    exact = weight @ moments(K)
    exact_error = np.sqrt(weight**2 @ (moments(K) - exact) ** 2)
    with pm.Model() as model:
        matrix = kind.add("K")
        pm.MvNormal("x", np.zeros(P), tau=matrix, observed=rows)
        step = PrecisionGibbs(model.free_RVs)
    step.setup_chain(np.random.default_rng(3), 0, 2_500)
    point, draws = model.initial_point(), []
    for _ in range(2_700):
        point, _ = step.step(point)
        draws.append(unpack_cholesky(point["K_cholesky-cov__"], P)[0])
    mean, error, _ = mean_and_error(moments(np.array(draws[200:])), 60)
    z = (mean - exact) / np.hypot(error, exact_error)
    assert np.abs(z).max() < 4.5, z


class Joint:
    """Both simulators of one model."""

    def __init__(self, kind, *, random=False, seed=0):
        self.kind, self.random = kind, random
        with pm.Model() as self.model:
            self.rows = pm.Data("rows", np.zeros((N, P)))
            K = kind.add("K", pm.Gamma("rate", 4.0, 3.0) if random else RATE)
            mean = ColumnMeans("mean", 0.5, 0.8, shape=P)
            GraphicalNormal("x", mean, K, np.zeros(P), np.ones(P), observed=self.rows)
            free = [v for v in self.model.free_RVs if v.name != "rate"]
            self.steps = [PrecisionGibbs(free, rng=seed)]
            if random:
                # Any valid kernel will do for the rate: its conditional holds the density of K.
                self.steps.append(pm.Slice([self.model["rate"]], rng=seed + 1))
        self.pool = []

    def prior(self, rng):
        if not self.pool:
            unit = penalised_prior(rng, 4_000, P, lambda K: self.kind.penalty(K, 1.0))
            rate = rng.gamma(4.0, 1 / 3.0, size=len(unit)) if self.random else np.full(4_000, RATE)
            self.pool = list(zip(unit / rate[:, None, None], rate, strict=True))
        return self.pool.pop()

    def forward(self, rng):
        """Parameters and a table, in the value space of the model."""
        K, rate = self.prior(rng)
        point = {"mean": 0.5 + 0.8 * rng.normal(size=P), "K_cholesky-cov__": pack_cholesky(K)}
        if self.random:
            point["rate_log__"] = np.asarray(np.log(rate))
        return self.with_rows(rng, point)

    def with_rows(self, rng, point):
        K, covariance = unpack_cholesky(point["K_cholesky-cov__"], P)
        rows = point["mean"] + rng.normal(size=(N, P)) @ np.linalg.cholesky(covariance).T
        return point, rows, K

    def transition(self, rng, state):
        """Parameters given the table by the steps, then a new table."""
        point, rows, _ = state
        self.rows.set_value(rows)
        self.steps[0].parts[0].forget()
        for step in self.steps:
            point, _ = step.step(point)
        return self.with_rows(rng, dict(point))

    def statistics(self, state):
        """Bounded or light-tailed: columns of nearly singular matrices have no second moments."""
        point, rows, K = state
        z, u = np.tanh(0.3 * rows), K[PAIRS]
        out = {f"k{i}": v for i, v in enumerate(u)} | {f"k{i}^2": v * v for i, v in enumerate(u)}
        out |= {f"log d{i}": v for i, v in enumerate(np.log(np.diag(K)))}
        out |= {"log det": np.linalg.slogdet(K)[1], "penalty": self.kind.penalty(K[None])[0]}
        out |= {"mean": point["mean"].mean(), "mean^2": (point["mean"] ** 2).mean()}
        out |= {"z": z.mean(), "z^2": (z**2).mean(), "zz": (z[:, 0] * z[:, 1]).mean()}
        out |= {"z k": (z[:, 0] * z[:, 1]).mean() * np.tanh(u[0])}
        if self.random:
            rate = np.exp(point["rate_log__"])
            out |= {"rate": rate, "rate^2": rate**2, "rate trace": rate * np.trace(K)}
        return out

    def check(self, draws, seed=1):
        return assert_geweke(
            self.forward, self.transition, self.statistics, draws=draws, chains=20, seed=seed
        )


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("kind", "random"),
    [
        ("fused", False),
        ("fused", True),
        ("nodes, l2", False),
        ("nodes, linf", False),
        pytest.param("blocks, l2", False, marks=pytest.mark.slow),
        ("blocks, linf", False),
        ("nuclear", False),
    ],
)
def test_parameters_and_tables_have_their_joint_distribution(kind, random, full):
    kind = KINDS[kind]
    few = 600 if random else 1_000
    assert len(Joint(kind, random=random).check(60_000 if full else few)) > 20


@pytest.mark.calibration
def test_a_sweep_without_the_neighbours_of_a_row_is_noticed(full, monkeypatch):
    right = fused.fused_sweep

    def broken(rng, precision, covariance, scatter, n, rates, near, differences, *rest):
        # Half of each rate, as if an element met the neighbours of one of its two columns only.
        return right(rng, precision, covariance, scatter, n, rates, near, 0.5 * differences, *rest)

    monkeypatch.setattr(fused, "fused_sweep", broken)
    with pytest.raises(AssertionError, match="worst z"):
        Joint(KINDS["fused"]).check(30_000 if full else 1_500)


@pytest.mark.calibration
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_sweep_with_other_rates_of_groups_is_noticed(norm, full, monkeypatch):
    right = group_lasso.group_lasso_sweep

    def broken(*args):
        args = list(args)
        args[8] = 0.5 * args[8]  # as if an element were in one of its two groups only
        return right(*args)

    monkeypatch.setattr(group_lasso, "group_lasso_sweep", broken)
    with pytest.raises(AssertionError, match="worst z"):
        Joint(KINDS[f"nodes, {norm}"]).check(30_000 if full else 1_500)


@pytest.mark.calibration
def test_a_sweep_that_counts_a_block_in_both_orders_is_noticed(full, monkeypatch):
    right = nuclear.nuclear_sweep

    def broken(*args):
        args = list(args)
        args[8] = 2.0 * args[8]
        return right(*args)

    monkeypatch.setattr(nuclear, "nuclear_sweep", broken)
    with pytest.raises(AssertionError, match="worst z"):
        Joint(KINDS["nuclear"]).check(30_000 if full else 1_500)


@pytest.mark.chain
@pytest.mark.slow
@pytest.mark.compiled
def test_nuclear_norms_against_nuts():
    rows = np.random.default_rng(4).normal(size=(8, P))
    rows[:, 1] += 0.9 * rows[:, 0]
    with pm.Model():
        K = KINDS["nuclear"].add("K")
        pm.MvNormal("x", np.zeros(P), tau=K, observed=rows)
        options = {"progressbar": False, "cores": 1, "chains": 2, "random_seed": 5}
        gibbs = pm.sample(2_000, tune=200, **options)
        nuts = pm.sample(2_000, tune=1_000, step=pm.NUTS(target_accept=0.95), **options)
    found = [
        mean_and_error(moments(x["posterior"]["K"].values.reshape(-1, P, P)), 40)[:2]
        for x in (gibbs, nuts)
    ]
    (a, error_a), (b, error_b) = found
    z = (a - b) / np.hypot(error_a, error_b)
    assert np.abs(z).max() < 4.5, z


def test_an_element_is_in_the_maximum_of_a_group_once():
    both = [np.setdiff1d(np.arange(9), [0, 4, 8])]
    drawn = [
        pm.draw(
            GraphicalGroupLasso.dist(3, members, 2.0, norm="linf"),
            5,
            random_seed=1,
            mode="FAST_COMPILE",
        )
        for members in (both, [[1, 2, 5]])
    ]
    np.testing.assert_array_equal(*drawn)
