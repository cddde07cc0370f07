"""The step of Markov random fields of several groups: exact posteriors, joint distributions, wrong steps, refusals."""

import itertools

import numpy as np
import pymc as pm
import pytest

from scipy.interpolate import CubicSpline
from scipy.special import logsumexp
from tools.batches import mean_and_error
from tools.enumeration import assert_matches_enumeration
from tools.geweke import assert_geweke
from tools.random_fields import all_states, feature_matrix

from bayesstruct.distributions import (
    GroupedPairwiseMRF,
    GroupedWeights,
    IncompleteGroupedPairwiseMRF,
    MissingStates,
)
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.steps import groups as step_module
from bayesstruct.steps import GroupedPairwiseGibbs

EDGE, DIFFERENCE, SLAB, LARGE, BIAS_SCALE = 0.6, 0.4, 0.9, 0.6, 1.2
SCALES = {"slab_scale": SLAB, "difference_scale": LARGE}
PRIOR = np.array([1 - EDGE, EDGE * (1 - DIFFERENCE), EDGE * DIFFERENCE])


def relations(weight):
    """Relation of each pair, from weights (..., G, pairs)."""
    there = (weight != 0).any(axis=-2)
    return there.astype(int) + (weight != weight[..., :1, :]).any(axis=-2)


def contrasts(groups):
    """Orthonormal contrasts that are not those of the package: from the singular vectors of the ones."""
    return np.linalg.svd(np.ones((groups, 1)))[0][:, 1:]


# --- one pair of columns: integrals on grids ----------------------------------------------------


def log_likelihoods(potentials, codes, likelihood, weight):
    """Log likelihood of one group at each of some weights of the only pair, the biases integrated out."""
    at, mass = np.polynomial.hermite_e.hermegauss(40 if potentials.bias_size == 2 else 24)
    grid = BIAS_SCALE * np.array(list(itertools.product(at, repeat=potentials.bias_size)))
    log_mass = np.log(np.array(list(itertools.product(mass / mass.sum(), repeat=grid.shape[1]))))
    x, shape = all_states(potentials.states), potentials.states
    counts = np.array([(codes == row).all(axis=1).sum() for row in x])
    unary = np.array([potentials.unary(b) for b in grid])
    alone = unary[:, x[:, 0]] + unary[:, shape[0] + x[:, 1]]
    out = []
    for w in weight:
        energy = (alone + potentials.pair(np.array([w]))).reshape(-1, *shape)
        axes = ((1, 2),) if likelihood == "exact" else (1, 2)
        logs = sum(energy - logsumexp(energy, axis=a, keepdims=True) for a in axes)
        out.append(logsumexp(logs.reshape(len(grid), -1) @ counts + log_mass.sum(axis=1)))
    return np.array(out)


def one_pair_posterior(potentials, tables, likelihood, nodes=30):
    """Probabilities of the relations, and posterior mean of the weights, of the only pair."""
    support = np.linspace(-12, 12, 61)
    splines = [
        CubicSpline(support, log_likelihoods(potentials, codes, likelihood, support))
        for codes in tables
    ]
    groups = len(tables)
    at, mass = np.polynomial.hermite_e.hermegauss(nodes)
    keep = np.abs(at) < 6
    at, log_mass = at[keep], np.log(mass[keep] / mass.sum())
    logs, means = [], []
    for relation in range(3):
        size = (0, 1, groups)[relation]
        z = np.array(list(itertools.product(at, repeat=size))).reshape(len(at) ** size, size)
        prior = np.array(list(itertools.product(log_mass, repeat=size)))
        prior = prior.reshape(len(z), size).sum(axis=1)
        u = np.zeros((len(z), groups))
        if size:
            u += SLAB * z[:, :1]
        if size > 1:
            u += LARGE * z[:, 1:] @ contrasts(groups).T
        value = prior + sum(spline(u[:, g]) for g, spline in enumerate(splines))
        logs.append(logsumexp(value))
        means.append(np.exp(value - logs[-1]) @ u)
    logs = np.log(PRIOR) + logs
    share = np.exp(logs - logsumexp(logs))
    return share, share @ np.array(means)


def tables_of(states, groups, kept, seed=0):
    """Two columns, of which the second copies the first in a share of the rows of each group."""
    rng = np.random.default_rng(seed)
    out = []
    for g in range(groups):
        first = rng.integers(0, states[0], 12 + 4 * g)
        copied = first * (states[1] - 1) // (states[0] - 1)
        other = rng.integers(0, states[1], len(first))
        out.append(
            np.column_stack([first, np.where(rng.random(len(first)) < kept[g], copied, other)])
        )
    return out


def model_of(potentials, rows, group, likelihood, bias_scale=BIAS_SCALE):
    pairs, groups = potentials.weight_size, int(np.max(group)) + 1
    with pm.Model() as model:
        bias = pm.Normal("bias", 0, bias_scale, shape=(groups, potentials.bias_size))
        weight = GroupedWeights(
            "weight",
            groups,
            np.full(pairs, EDGE),
            np.full(pairs, DIFFERENCE),
            **SCALES,
            shape=(groups, pairs),
        )
        options = {"group": group, "potentials": potentials, "likelihood": likelihood}
        GroupedPairwiseMRF("x", bias, weight, **options, observed=rows)
    return model


def run(model, draws, seed=3, tune=20):
    with model:
        step = GroupedPairwiseGibbs([model["weight"], model["bias"]], rng=seed)
    point, kept = model.initial_point(0), []
    for t in range(-tune, draws):
        point, [reported] = step.step(point)
        if t >= 0:
            kept.append(
                (point["weight"], reported["weight_inclusion"], reported["weight_difference"])
            )
    return (np.array(values) for values in zip(*kept, strict=True))


WEAK = (0.4, 0.1, 0.3)
CASES = [
    (Potentials("ordinal", (2, 2)), WEAK[:2], "exact"),
    (Potentials("ordinal", (2, 2)), WEAK, "pseudo"),
    (Potentials("ordinal", (3, 2)), WEAK[:2], "pseudo"),
    (Potentials("ordinal", (2, 2)), (0.9, 0.9), "pseudo"),  # certainly an edge
]


@pytest.mark.statistical
@pytest.mark.parametrize(("potentials", "kept", "likelihood"), CASES)
def test_relations_and_weights_against_quadrature(potentials, kept, likelihood):
    groups = len(kept)
    tables = tables_of(potentials.states, groups, kept)
    share, mean = one_pair_posterior(potentials, tables, likelihood)
    assert share[1:].min() > 0.04  # the table does not decide
    order = np.random.default_rng(1).permutation(sum(map(len, tables)))
    rows = np.vstack(tables)[order]
    group = np.repeat(np.arange(groups), [len(t) for t in tables])[order]
    weight, edge, difference = run(model_of(potentials, rows, group, likelihood), 3_000)
    assert_matches_enumeration(relations(weight)[:, 0], share)
    for found, expected in ((edge, 1 - share[0]), (difference, share[2])):
        average, error, _ = mean_and_error(found)
        assert abs(average - expected)[0] < 4 * error[0] + 5e-4 and error[0] < 0.006
    average, error, _ = mean_and_error(weight[:, :, 0])
    assert (np.abs(average - mean) < 4.5 * error).all()


# --- three columns: parameters and rows in turn ---------------------------------------------------

P, SIZES = 3, (8, 13)
GROUP = np.random.default_rng(0).permutation(np.repeat([0, 1], SIZES))
MISSING = np.zeros((len(GROUP), P), bool)
MISSING[0, 1] = MISSING[2, 0] = MISSING[2, 2] = MISSING[9, 1] = True
FIELD = Potentials("ordinal", (2, 3, 2))


class Joint:
    """Both simulators of fields of two groups with the exact likelihood and missing values."""

    def __init__(self):
        self.states, self.features = all_states(FIELD.states), feature_matrix(FIELD)
        with pm.Model() as model:
            self.rows = pm.Data("rows", np.zeros(MISSING.shape, np.int32))
            bias = pm.Normal("bias", 0, BIAS_SCALE, shape=(2, FIELD.bias_size))
            weight = GroupedWeights("weight", 2, np.full(3, EDGE), np.full(3, DIFFERENCE), **SCALES)
            values = MissingStates("values", np.array(FIELD.states)[np.nonzero(MISSING)[1]])
            IncompleteGroupedPairwiseMRF(
                "x",
                bias,
                weight,
                values,
                group=GROUP,
                missing=MISSING,
                potentials=FIELD,
                observed=self.rows,
            )
            self.step = GroupedPairwiseGibbs(model.free_RVs, rng=1)

    def draw_rows(self, rng, bias, weight):
        rows = np.empty(MISSING.shape, int)
        for g in range(2):
            logs = self.features @ np.r_[FIELD.unary(bias[g]), FIELD.pair(weight[g])]
            p = np.exp(logs - logsumexp(logs))
            own = GROUP == g
            rows[own] = self.states[rng.choice(len(p), own.sum(), p=p)]
        return rows

    def forward(self, rng):
        relation = rng.choice(3, 3, p=PRIOR)
        gap = LARGE * contrasts(2) @ rng.normal(size=(1, 3))
        weight = SLAB * rng.normal(size=3) * (relation > 0) + gap * (relation > 1)
        bias = BIAS_SCALE * rng.normal(size=(2, FIELD.bias_size))
        return weight, bias, self.draw_rows(rng, bias, weight)

    def transition(self, rng, state):
        weight, bias, rows = state
        self.rows.set_value(rows.astype(np.int32))
        self.step.setup_chain(rng, 0, 1)  # the table is another one
        point = {"weight": weight, "bias": bias, "values": rows[MISSING]}
        point, _ = self.step.step(point)
        weight, bias = point["weight"], point["bias"]
        return weight, bias, self.draw_rows(rng, bias, weight)

    def statistics(self, state):
        weight, bias, rows = state
        relation, w, b = relations(weight), np.tanh(weight), np.tanh(bias)
        gap = w[0] - w[1]
        out = {f"edge {e}": v for e, v in enumerate(relation > 0)}
        out |= {f"difference {e}": v for e, v in enumerate(relation > 1)}
        out |= {f"gap {e}": v for e, v in enumerate(gap)}
        out |= {f"gap2 {e}": v * v for e, v in enumerate(gap)}
        out |= {"relations^2": relation.sum() ** 2, "ww": (w[0] * w[1]).mean()}
        for g in range(2):
            out |= {f"w {g}{e}": v for e, v in enumerate(w[g])}
            out |= {f"w2 {g}{e}": v * v for e, v in enumerate(w[g])}
            out |= {f"b {g}{i}": v for i, v in enumerate(b[g])}
            own = rows[GROUP == g]
            out |= {f"x {g}{i}": v for i, v in enumerate(own.mean(axis=0))}
            out |= {f"xx {g}": (own[:, 0] * own[:, 2]).mean(), f"b2 {g}": (b[g] ** 2).mean()}
            out |= {f"w xx {g}": w[g, 1] * out[f"xx {g}"], f"bw {g}": b[g, 0] * w[g, 0]}
        return out


def check(draws):
    joint = Joint()
    return assert_geweke(joint.forward, joint.transition, joint.statistics, draws=draws)


@pytest.mark.calibration
def test_parameters_and_rows_have_their_joint_distribution(full):
    assert len(check(40_000 if full else 1_000)) > 40


@pytest.mark.calibration
@pytest.mark.parametrize("wrong", ["contrasts of a baseline", "odds of a difference alone"])
def test_a_wrong_step_breaks_the_joint_distribution(wrong, full, monkeypatch):
    right = step_module.log_relations, step_module._Sampler._prior

    def odds(edge, difference):
        # a difference may be there without an edge, whose odds are then counted twice
        return right[0](edge, difference) + np.array([0.0, 0.0, -np.log(EDGE)])

    def baseline(self, edge, difference, slab, large, *bias):
        # u_2 = u_1 + d has u_1 - u_2 of variance d^2, orthonormal contrasts have 2 d^2
        return right[1](self, edge, difference, slab, np.asarray(large) / np.sqrt(2.0), *bias)

    if wrong == "contrasts of a baseline":
        monkeypatch.setattr(step_module._Sampler, "_prior", baseline)
    else:
        monkeypatch.setattr(step_module, "log_relations", odds)
    with pytest.raises(AssertionError, match="worst z"):
        check(40_000 if full else 1_000)


@pytest.mark.statistical
@pytest.mark.parametrize(("edge", "difference"), [(1.0, 0.5), (1.0, 1.0), (0.5, 1.0)])
def test_a_chain_leaves_weights_that_are_possible_in_the_limit_only(edge, difference):
    rows, group = np.tile(all_states((2, 2)), (20, 1)), np.repeat([0, 1], 40)
    prior = np.array([edge]), np.array([difference])
    with pm.Model() as model:
        bias = pm.Normal("bias", 0, 1, shape=(2, 2))
        weight = GroupedWeights("weight", 2, *prior)
        options = {"group": group, "potentials": Potentials("ordinal", (2, 2))}
        GroupedPairwiseMRF("x", bias, weight, observed=rows, **options)
        step = GroupedPairwiseGibbs([weight, bias])
    step.setup_chain(np.random.default_rng(1), 0, 20)
    # Without an atom at zero, or of equal weights, these are values like any others.
    point = model.initial_point(0) | {"weight": np.full((2, 1), 0.0 if edge == 1.0 else 0.3)}
    found = [(point := step.step(point)[0])["weight"] for _ in range(20)]
    assert np.isfinite(model.compile_logp()(point))
    assert len(np.unique(found)) > 10
