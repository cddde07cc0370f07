"""The step of several groups: exact posteriors, joint-distribution tests, steps that are wrong on purpose, refusals."""

import numpy as np
import pymc as pm
import pytest

from tools.batches import mean_and_error
from tools.enumeration import assert_matches_enumeration
from tools.geweke import assert_geweke
from tools.group_integration import GroupPrior, IndicatorPrior, groups_posterior, groups_prior

import bayesstruct as bs

from bayesstruct.distributions import (
    ColumnMeans,
    GroupEdges,
    GroupedMissingValues,
    GroupedNormal,
    GroupedSpikeSlab,
    GroupIndicatorSpikeSlab,
    IncompleteGroupedNormal,
    Relations,
)
from bayesstruct.precision.kernels.cholesky import pack_cholesky, unpack_cholesky
from bayesstruct.precision.kernels.row_groups import sweep as kernel
from bayesstruct.steps import GroupedPrecisionGibbs

P, SIZES = 3, (4, 7)
N, GROUPS = sum(SIZES), len(SIZES)
GROUP = np.random.default_rng(0).permutation(np.repeat(np.arange(GROUPS), SIZES))
MISSING = np.zeros((N, P), bool)
MISSING[0, 1] = MISSING[2, 0] = MISSING[2, 2] = MISSING[9, 2] = True
LOCATION = np.array([[1.0, -3.0, 0.0], [2.0, 0.0, 5.0]])
SCALE = np.array([[2.0, 0.5, 1.0], [1.0, 3.0, 0.2]])
PRIOR = GroupPrior(GROUPS)
OPTIONS = {
    "spike_scale": PRIOR.spike,
    "slab_scale": PRIOR.slab,
    "equal_scale": PRIOR.small,
    "difference_scale": PRIOR.large,
    "diagonal_rate": PRIOR.rate,
}
PAIRS = np.triu_indices(P, 1)


def matrices_of(point, name="K_cholesky-cov__"):
    return np.stack([unpack_cholesky(vector, P)[0] for vector in point[name]])


EDGES = IndicatorPrior(GROUPS)


def add_matrices(prior):
    """Add the matrices and their indicators to the model in context."""
    probabilities = prior.edge, prior.difference
    if isinstance(prior, IndicatorPrior):
        own = {name: OPTIONS[name] for name in ("spike_scale", "slab_scale", "diagonal_rate")}
        K = GroupIndicatorSpikeSlab("K", GROUPS, P, *probabilities, **own)
        GroupEdges("group_edge", K)
        return K
    K = GroupedSpikeSlab("K", GROUPS, P, *probabilities, **OPTIONS)
    Relations("relation", K)
    return K


def relations_of(point):
    """Relations of pairs at a point of either model."""
    if "relation" in point:
        return point["relation"]
    count = point["group_edge"].sum(axis=-2)
    return np.where(count == 0, 0, np.where(count == GROUPS, 1, 2))


class Joint:
    """Both simulators of one model, with or without missing values."""

    def __init__(self, prior=PRIOR, *, gaps=False, seed=0):
        self.prior, self.gaps = prior, gaps
        with pm.Model() as self.model:
            self.rows = pm.Data("rows", np.zeros((N, P)))
            K = add_matrices(prior)
            mean = ColumnMeans("mean", 0.5, 0.8, shape=(GROUPS, P))
            args = (GROUP, mean, K, LOCATION, SCALE)
            if gaps:
                GroupedMissingValues("x_missing", *args, table=np.zeros((N, P)), missing=MISSING)
                IncompleteGroupedNormal("x", *args, missing=MISSING, observed=self.rows)
            else:
                GroupedNormal("x", *args, observed=self.rows)
            self.step = GroupedPrecisionGibbs(self.model.free_RVs, rng=seed)
        self.pool = iter(())

    def forward(self, rng):
        """Parameters and a table."""
        try:
            K, relation = next(self.pool)
        except StopIteration:
            self.pool = iter(zip(*groups_prior(rng, 4_000, P, self.prior), strict=True))
            K, relation = next(self.pool)
        point = {
            "mean": 0.5 + 0.8 * rng.normal(size=(GROUPS, P)),
            "K_cholesky-cov__": np.stack([pack_cholesky(k) for k in K]),
            **self.indicators(K, relation),
        }
        return self.with_rows(rng, point)

    def indicators(self, K, relation):
        """Indicators of a draw from the prior; of the mixed patterns of two groups one is taken."""
        if self.prior is PRIOR:
            return {"relation": relation}
        first, second = np.abs(K[:, PAIRS[0], PAIRS[1]])
        own = np.array([relation == 1, relation == 1]) | (
            (relation == 2) & [first > second, first <= second]
        )
        return {"group_edge": own.astype(int)}

    def with_rows(self, rng, point):
        K = matrices_of(point)
        noise = rng.normal(size=(N, P))
        rows = np.empty((N, P))
        for g in range(GROUPS):
            e = np.linalg.solve(np.linalg.cholesky(K[g]).T, noise[g == GROUP].T).T
            rows[g == GROUP] = LOCATION[g] + SCALE[g] * (point["mean"][g] + e)
        if self.gaps:
            point["x_missing"] = rows[MISSING]
        return point, rows, K

    def transition(self, rng, state):
        """Parameters given the table by the step, then a new table."""
        point, rows, _ = state
        self.rows.set_value(np.where(MISSING, 99.0, rows) if self.gaps else rows)
        self.step.parts[0].forget()
        point, _ = self.step.step(point)
        return self.with_rows(rng, dict(point))

    def statistics(self, state):
        """Bounded or light-tailed: columns of nearly singular matrices have no second moments."""
        point, rows, K = state
        z = np.tanh(0.3 * (rows - LOCATION[GROUP]) / SCALE[GROUP])
        u = K[:, PAIRS[0], PAIRS[1]]
        relation = relations_of(point)
        out = {}
        for g in range(GROUPS):
            own = z[g == GROUP]
            out |= {f"k{g}{i}": v for i, v in enumerate(u[g])}
            out |= {f"k{g}{i}^2": v * v for i, v in enumerate(u[g])}
            out |= {f"log d{g}": np.log(np.diag(K[g])).mean(), f"trace {g}": np.trace(K[g])}
            out |= {f"log det {g}": np.linalg.slogdet(K[g])[1]}
            out |= {f"z{g}^2": (own**2).mean(), f"zz{g}": (own[:, 0] * own[:, 1]).mean()}
            out |= {f"zzk{g}": (own[:, 0] * own[:, 1]).mean() * np.tanh(u[g, 0])}
            out |= {
                f"mean{g}": point["mean"][g].mean(),
                f"mean{g}^2": (point["mean"][g] ** 2).mean(),
            }
            out |= {f"z mean{g}": (own.mean(0) * point["mean"][g]).mean()}
        gap = u[0] - u[1]
        out |= {"kk": (u[0] * u[1]).mean(), "gap^2": (gap**2).mean()}
        out |= {"edges": (relation > 0).sum(), "differences": (relation > 1).sum()}
        out |= {
            "relations^2": relation.sum() ** 2,
            "gap relation": (gap**2 * (relation > 1)).mean(),
        }
        return out

    def check(self, draws, seed=1):
        return assert_geweke(
            self.forward, self.transition, self.statistics, draws=draws, chains=20, seed=seed
        )


@pytest.mark.calibration
@pytest.mark.parametrize(("prior", "gaps"), [(PRIOR, True), (EDGES, False)])
def test_parameters_and_tables_have_their_joint_distribution(prior, gaps, full):
    z = Joint(prior, gaps=gaps).check(60_000 if full else 1_600)
    assert len(z) > 30


@pytest.mark.calibration
@pytest.mark.parametrize("wrong", ["rows of the largest group", "baseline contrasts"])
def test_a_wrong_sweep_is_noticed(wrong, full, monkeypatch):
    right = kernel.groups_sweep

    def broken(*args):
        args = list(args)
        if wrong == "rows of the largest group":
            args[5] = np.full_like(args[5], args[5].max())
        else:
            # u_2 = u_1 + d has u_1 - u_2 of variance d^2, orthonormal contrasts have 2 d^2
            spike, slab, small, large = args[7]
            args[7] = spike, slab, small / np.sqrt(2.0), large / np.sqrt(2.0)
        return right(*args)

    monkeypatch.setattr(kernel, "groups_sweep", broken)
    with pytest.raises(AssertionError, match="worst z"):
        Joint().check(30_000 if full else 1_600)


@pytest.mark.statistical
@pytest.mark.parametrize("prior", [PRIOR, EDGES])
def test_relations_and_imputations_against_importance_sampling(prior):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(N, P))
    rows[:, 1] += 0.8 * rows[:, 0] * np.where(GROUP == 0, 1, -1)
    rows[MISSING] = np.nan
    tables = [rows[g == GROUP] for g in range(GROUPS)]
    states, exact, errors, weighted = groups_posterior(tables, prior, draws=60_000, seed=1)
    values = np.where(MISSING, 0.0, LOCATION[GROUP] + SCALE[GROUP] * rows)
    with pm.Model() as model:
        K = add_matrices(prior)
        mean = ColumnMeans("mean", 0.0, 1e-6, shape=(GROUPS, P))
        args = (GROUP, mean, K, LOCATION, SCALE)
        GroupedMissingValues("x_missing", *args, table=values, missing=MISSING)
        IncompleteGroupedNormal("x", *args, missing=MISSING, observed=values)
        step = GroupedPrecisionGibbs(model.free_RVs, rng=3)
    point, kept = model.initial_point(0), []
    for t in range(-200, 4_000):
        point, _ = step.step(point)
        if t >= 0:
            kept.append((relations_of(point), point["x_missing"][0]))
    assert_matches_enumeration(np.array([r for r, _ in kept]), exact, states=states, errors=errors)
    # The missing value of row 0: posterior mean of its conditional mean -(K_10 x_0 + K_12 x_2) / K_11.
    g, k = GROUP[0], weighted.precision[:, GROUP[0]]
    centre = -(k[:, 1, 0] * rows[0, 0] + k[:, 1, 2] * rows[0, 2]) / k[:, 1, 1]
    expected, expected_error = weighted.mean(centre[:, None])
    imputed = (np.array([x for _, x in kept]) - LOCATION[g, 1]) / SCALE[g, 1]
    mean_found, error, _ = mean_and_error(imputed[:, None])
    assert abs(mean_found - expected)[0] < 4.5 * np.hypot(error, expected_error)[0]


def small_model(**kwargs):
    rows = np.random.default_rng(0).normal(size=(N, P))
    with pm.Model() as model:
        K = GroupedSpikeSlab("K", GROUPS, P)
        Relations("relation", K)
        mean = kwargs.get("mean") or ColumnMeans("mean", 0.0, 1.0, shape=(GROUPS, P))
        GroupedNormal("x", GROUP, mean, K, LOCATION, SCALE, observed=rows)
    return model


def test_a_chain_is_its_point_and_its_generator():
    model = small_model()

    def run(seed, sweeps, point):
        with model:
            step = GroupedPrecisionGibbs(model.free_RVs)
        step.setup_chain(np.random.default_rng(seed), 0, sweeps)
        for _ in range(sweeps):
            point, _ = step.step(point)
        return point, step.rng

    start = model.initial_point(0)
    middle, rng = run(1, 3, start)
    with model:
        again = GroupedPrecisionGibbs(model.free_RVs)
    again.setup_chain(rng, 0, 2)
    for _ in range(2):
        middle, _ = again.step(middle)
    whole, _ = run(1, 5, start)
    for name, value in whole.items():
        np.testing.assert_array_equal(value, middle[name])


def test_another_likelihood_is_refused_with_the_reason():
    rows = np.random.default_rng(0).normal(size=(N, P))
    with pm.Model() as model:
        K = GroupedSpikeSlab("K", GROUPS, P)
        Relations("relation", K)
        pm.MvNormal("x", np.zeros(P), tau=K[0], observed=rows)
        with pytest.raises(ValueError, match="'x' is not the one table of normal rows"):
            GroupedPrecisionGibbs([model["K"]])


def test_relations_are_drawn_beside_another_sampler():
    with pm.Model() as model:
        K = GroupedSpikeSlab("K", GROUPS, P, PRIOR.edge, PRIOR.difference, **OPTIONS)
        Relations("relation", K)
        pm.Potential("more", -K[0, 0, 0])
        step = bs.steps.RelationsGibbs([model["relation"]], rng=0)
        assert bs.steps.RelationsGibbs.competence(model["relation"], False).name == "IDEAL"
    point = model.initial_point(0)
    K = np.array(
        [[[2.0, 1.0, 0.5], [1, 2, 0], [0.5, 0, 2]], [[2, 1, -0.6], [1, 2, 0], [-0.6, 0, 2]]]
    )
    point["K_cholesky-cov__"] = np.stack([pack_cholesky(k) for k in K])
    draws = np.array([step.step(point)[0]["relation"] for _ in range(2_000)])
    logs = PRIOR.log_densities(K[:, PAIRS[0], PAIRS[1]].T)
    expected = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
    found = np.stack([(draws == r).mean(axis=0) for r in range(3)], axis=1)
    np.testing.assert_allclose(found, expected, atol=0.05)  # over four standard errors
