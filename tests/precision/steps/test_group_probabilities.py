"""Learned probabilities of edges and of differences: exact posteriors, the joint distribution, a step that is wrong on purpose."""

import numpy as np
import pymc as pm
import pytest

from scipy.special import expit
from tools.batches import mean_and_error
from tools.geweke import assert_geweke
from tools.group_integration import GroupPrior, IndicatorPrior, groups_posterior

from bayesstruct.distributions import (
    ColumnMeans,
    GroupEdges,
    GroupedNormal,
    GroupedSpikeSlab,
    GroupIndicatorSpikeSlab,
    Relations,
)
from bayesstruct.precision.kernels.cholesky import pack_cholesky, unpack_cholesky
from bayesstruct.precision.kernels.row_groups import shares as group_shares
from bayesstruct.steps import GroupedPrecisionGibbs

P, GROUPS, N = 2, 2, 8
GROUP = np.repeat([0, 1], (3, 5))
EDGE, DIFFERENCE = (1.5, 2.0), (2.0, 1.0)
SCALES = {"spike_scale": 0.25, "slab_scale": 1.0, "equal_scale": 0.3, "difference_scale": 0.8}
SHARES = ("edge_probability_logodds__", "difference_probability_logodds__")


def add_matrices(kind, p, edge, difference, **kwargs):
    """Add the matrices, their indicators and the probabilities that are learned to the model in context."""
    given = {"edge_probability": edge, "difference_probability": difference} | kwargs
    if kind is IndicatorPrior:
        own = {name: SCALES[name] for name in ("spike_scale", "slab_scale")}
        K = GroupIndicatorSpikeSlab("K", GROUPS, p, **given, **own)
        GroupEdges("group_edge", K)
        return K
    K = GroupedSpikeSlab("K", GROUPS, p, **given, **SCALES)
    Relations("relation", K)
    return K


def relations_of(point):
    if "relation" in point:
        return point["relation"]
    return group_shares.relations_of_edges(np.asarray(point["group_edge"]))


class Joint:
    """Both simulators of a model with both probabilities learned."""

    def __init__(self, kind, p=P):
        self.kind, self.p, self.pairs = kind, p, np.triu_indices(p, 1)
        with pm.Model() as self.model:
            self.rows = pm.Data("rows", np.zeros((N, p)))
            K = add_matrices(kind, p, pm.Beta.dist(*EDGE), pm.Beta.dist(*DIFFERENCE))
            mean = ColumnMeans("mean", 0.0, 1.0, shape=(GROUPS, p))
            units = np.zeros((GROUPS, p)), np.ones((GROUPS, p))
            GroupedNormal("x", GROUP, mean, K, *units, observed=self.rows)
            self.step = GroupedPrecisionGibbs(self.model.free_RVs, rng=3)

    def forward(self, rng):
        """Probabilities, matrices and a table: the nominal ones that are positive definite."""
        while True:
            shares = rng.beta(*EDGE), rng.beta(*DIFFERENCE)
            prior = self.kind(GROUPS, *shares)
            relation = rng.choice(3, len(self.pairs[0]), p=prior.relations)
            u = prior.elements(rng, relation)
            K = np.zeros((GROUPS, self.p, self.p))
            K[:, self.pairs[0], self.pairs[1]] = K[:, self.pairs[1], self.pairs[0]] = u.T
            K[:, np.arange(self.p), np.arange(self.p)] = rng.exponential(2.0, (GROUPS, self.p))
            if np.linalg.eigvalsh(K).min() > 0:
                break
        point = {name: np.log(s / (1 - s)) for name, s in zip(SHARES, shares, strict=True)}
        point["K_cholesky-cov__"] = np.stack([pack_cholesky(own) for own in K])
        point["mean"] = rng.normal(size=(GROUPS, self.p))
        point |= self.indicators(relation)
        return self.with_rows(rng, point)

    def indicators(self, relation):
        if self.kind is GroupPrior:
            return {"relation": relation}
        return {"group_edge": np.array([relation > 0, relation == 1]).astype(int)}

    def with_rows(self, rng, point):
        K = np.stack([unpack_cholesky(v, self.p)[0] for v in point["K_cholesky-cov__"]])
        noise, rows = rng.normal(size=(N, self.p)), np.empty((N, self.p))
        for g in range(GROUPS):
            e = np.linalg.solve(np.linalg.cholesky(K[g]).T, noise[g == GROUP].T).T
            rows[g == GROUP] = point["mean"][g] + e
        return point, rows, K

    def transition(self, rng, state):
        """Parameters given the table by the step, then a new table."""
        point, rows, _ = state
        self.rows.set_value(rows)
        self.step.parts[0].forget()
        point, _ = self.step.step(point)
        return self.with_rows(rng, dict(point))

    def statistics(self, state):
        point, rows, K = state
        relation, u = relations_of(point), K[:, self.pairs[0], self.pairs[1]]
        edge, difference = (expit(float(point[name])) for name in SHARES)
        out = {"edge": edge, "difference": difference, "both": edge * difference}
        out |= {"edge^2": edge**2, "difference^2": difference**2}
        out |= {"edges": (relation > 0).mean(), "differences": (relation > 1).mean()}
        out |= {"edge edges": edge * (relation > 0).mean()}
        out |= {"difference differences": difference * (relation > 1).mean()}
        for g in range(GROUPS):
            own = np.tanh(0.3 * rows[g == GROUP])
            out |= {f"k{g}": np.tanh(u[g]).mean(), f"k{g}^2": (np.tanh(u[g]) ** 2).mean()}
            out |= {f"log d{g}": np.log(np.diag(K[g])).mean(), f"z{g}^2": (own**2).mean()}
            out |= {f"zz{g}": (own[:, 0] * own[:, 1]).mean() * np.tanh(u[g, 0])}
        return out | {"gap^2": (np.tanh(u[0] - u[1]) ** 2).mean() * difference}

    def check(self, draws, seed=1):
        parts = self.forward, self.transition, self.statistics
        return assert_geweke(*parts, draws=draws, chains=20, seed=seed)


@pytest.mark.calibration
@pytest.mark.parametrize("kind", [GroupPrior, IndicatorPrior])
def test_probabilities_and_tables_have_their_joint_distribution(kind, full):
    z = Joint(kind, 3 if full else P).check(40_000 if full else 500)
    assert len(z) > 15


@pytest.mark.calibration
def test_differences_among_all_pairs_are_noticed(full, monkeypatch):
    right = group_shares.draw_shares

    def broken(rng, relation, edge, difference, shapes, shares):
        # a difference counts among all pairs, and not among those with an edge
        counted = np.where(relation == 0, 1, relation)
        kept = shares.copy()
        right(rng, relation, edge, difference, shapes, kept)
        right(rng, counted, edge, difference, shapes, shares)
        shares[0] = kept[0]

    monkeypatch.setattr(group_shares, "draw_shares", broken)
    with pytest.raises(AssertionError, match="worst z"):
        Joint(GroupPrior).check(30_000 if full else 500)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("kind", "learned"),
    [
        (GroupPrior, "edge"),
        (GroupPrior, "difference"),
        (GroupPrior, "both"),
        (IndicatorPrior, "both"),
    ],
)
def test_probabilities_against_integration(kind, learned):
    """Importance sampling of matrices with relation probabilities of 1 / 3, weighted by the beta-binomial ones of all relations."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(N, 2))
    rows[:, 1] += rows[:, 0] * np.where(GROUP == 0, 1, -1)
    flat = kind(GROUPS, 2 / 3, 0.5)
    tables = [rows[g == GROUP] for g in range(GROUPS)]
    states, probability, errors, _ = groups_posterior(tables, flat, draws=20_000, seed=1)
    edge, difference = EDGE[0] / sum(EDGE), DIFFERENCE[0] / sum(DIFFERENCE)
    if learned == "edge":
        difference = 0.5
    if learned == "difference":
        edge = 0.5
    weights = np.array([1 - edge, edge * (1 - difference), edge * difference])[states[:, 0]]
    exact = weights * probability / (weights @ probability)
    error = 3 * errors.max()
    # Given an edge or none, and a difference or none, the probabilities are beta again.
    means = {
        "edge_probability": (exact[states[:, 0] > 0].sum() + EDGE[0]) / (sum(EDGE) + 1),
        "difference_probability": (exact[states[:, 0] == 2].sum() + DIFFERENCE[0])
        / (sum(DIFFERENCE) + 1)
        + exact[states[:, 0] == 0].sum()
        * (DIFFERENCE[0] / sum(DIFFERENCE) - DIFFERENCE[0] / (sum(DIFFERENCE) + 1)),
    }
    given = {"edge": (pm.Beta.dist(*EDGE), 0.5), "difference": (0.5, pm.Beta.dist(*DIFFERENCE))}
    given["both"] = pm.Beta.dist(*EDGE), pm.Beta.dist(*DIFFERENCE)
    with pm.Model() as model:
        K = add_matrices(kind, 2, *given[learned])
        mean = ColumnMeans("mean", 0.0, 1e-6, shape=(GROUPS, 2))
        units = np.zeros((GROUPS, 2)), np.ones((GROUPS, 2))
        GroupedNormal("x", GROUP, mean, K, *units, observed=rows)
        step = GroupedPrecisionGibbs(model.free_RVs, rng=3)
    point, kept = model.initial_point(0), []
    names = [name for name in means if f"{name}_logodds__" in point]
    assert len(names) == (2 if learned == "both" else 1)
    for t in range(-100, 2_000):
        point, _ = step.step(point)
        if t >= 0:
            own = relations_of(point)[0]
            kept.append([own > 0, own > 1, *(expit(point[f"{n}_logodds__"]) for n in names)])
    found, noise, _ = mean_and_error(np.array(kept, float))
    expected = [
        exact[states[:, 0] > 0].sum(),
        exact[states[:, 0] == 2].sum(),
        *(means[name] for name in names),
    ]
    np.testing.assert_array_less(np.abs(found - expected), 4.5 * noise + error)


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "p"), [(GroupPrior, 4), (IndicatorPrior, 2)])
def test_draws_from_the_prior(kind, p):
    """By rejection for two columns, by sweeps for four; against plain rejection."""
    joint, rng = Joint(kind, p), np.random.default_rng(0)
    own = [joint.forward(rng)[0] for _ in range(600)]
    expected = np.array([[expit(point[name]) for name in SHARES] for point in own])
    edges = np.array([(relations_of(point) > 0).mean() for point in own])
    with joint.model:
        names = ["edge_probability", "difference_probability"]
        names += ["relation" if kind is GroupPrior else "group_edge"]
        draws = pm.sample_prior_predictive(300, var_names=names, random_seed=1)["prior"]
    found = np.stack([draws[name].values[0] for name in names[:2]], axis=1)
    drawn = draws[names[2]].values[0]
    drawn = drawn if kind is GroupPrior else drawn.any(axis=1)
    pairs = (np.c_[found, (drawn > 0).mean(axis=1)], np.c_[expected, edges])
    gap = pairs[0].mean(axis=0) - pairs[1].mean(axis=0)
    error = np.sqrt(sum(own.var(axis=0) / len(own) for own in pairs))
    np.testing.assert_array_less(np.abs(gap), 4 * error)


def test_pairs_that_are_certain_do_not_count():
    fixed = np.array([[0.5, 1.0, 0.0], [1.0, 0.5, 0.5], [0.0, 0.5, 0.5]])
    relation, shapes, shares = np.array([1, 0, 2]), (1e6, 1.0, 0.0, 0.0), np.array([0.5, 0.5])
    half = np.full((3, 3), 0.5)
    group_shares.draw_shares(np.random.default_rng(0), relation, fixed, half, shapes, shares)
    assert shares[0] > 0.999 and shares[1] == 0.5
    log_prior = group_shares.fill_relations(fixed, half, shapes, np.array([0.25, 0.9]))
    np.testing.assert_allclose(np.exp(log_prior[0, 1]), [0, 0.5, 0.5])
    np.testing.assert_allclose(np.exp(log_prior[0, 2]), [1, 0, 0])
    np.testing.assert_allclose(np.exp(log_prior[1, 2]), [0.75, 0.125, 0.125])
    with pm.Model() as model:
        K = add_matrices(GroupPrior, 3, pm.Beta.dist(1, 1), 0.5, fixed=fixed)
        step = GroupedPrecisionGibbs([model[n] for n in ("K", "relation", "edge_probability")])
    point = model.initial_point(0)
    point, _ = step.step(point)
    assert point["relation"][0] > 0 == point["relation"][1]
    assert K.name == "K"


@pytest.mark.statistical
def test_probabilities_that_round_to_one_have_finite_log_odds():
    beta = pm.Beta.dist(0.01, 0.01)
    with pm.Model() as model:
        Relations("relation", GroupedSpikeSlab("K", 2, 2, beta, beta))
        step = GroupedPrecisionGibbs(model.free_RVs, rng=3)
    point, odds = model.initial_point(0), []
    for _ in range(50):
        point, _ = step.step(point)
        odds.append(point["difference_probability_logodds__"])
    assert np.isfinite(odds).all() and np.max(odds) > 36.0


def test_what_is_refused():
    beta = pm.Beta.dist(1, 1)
    with pm.Model():
        with pytest.raises(ValueError, match="`fixed` goes with a beta"):
            GroupedSpikeSlab("K", 2, 3, fixed=np.eye(3))
        share = pm.Beta("share", 1, 1)
        with pytest.raises(ValueError, match="unregistered distribution"):
            GroupedSpikeSlab("K", 2, 3, share)
        with pytest.raises(ValueError, match="must be a constant"):
            GroupedSpikeSlab("K", 2, 3, share * 0.5)
    with pm.Model() as model:
        GroupedSpikeSlab("K", 2, 3, 0.5, beta)
        with pytest.raises(ValueError, match="needs the relations or edges of the groups"):
            GroupedPrecisionGibbs(model.free_RVs)
    with pm.Model() as model:
        Relations("relation", GroupedSpikeSlab("K", 2, 3, 0.5, beta))
        pm.Potential("more", 2.0 * model["difference_probability"])
        with pytest.raises(ValueError, match="'difference_probability' is used outside the prior"):
            GroupedPrecisionGibbs(model.free_RVs)
