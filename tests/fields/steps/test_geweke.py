"""Parameters and rows of exact Markov random fields drawn in turn, and calibration of the whole model."""

import numpy as np
import pymc as pm
import pytest

from tools.calibration import assert_calibrated
from tools.geweke import assert_geweke
from tools.random_fields import all_states, exact_distribution

import bayesstruct as bs

from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.steps import spike_slab as pairwise
from bayesstruct.models import ising
from bayesstruct.steps import PairwiseSpikeSlab

N, INCLUSION, SCALE, BIAS_SCALE = 12, 0.4, 0.8, 1.0
FAMILIES = {"full": Potentials("full", (2, 3, 2)), "ordinal": Potentials("ordinal", (3, 2, 3))}


class Joint:
    """Both simulators of a field with the exact likelihood and missing values."""

    def __init__(self, potentials, slab):
        self.potentials, self.slab = potentials, slab
        self.groups = potentials.edge_of_weight
        self.states = all_states(potentials.states)
        missing = np.zeros((N, 3), bool)
        missing[0, 1] = missing[2, 0] = missing[2, 2] = missing[5, 1] = True
        self.missing = missing
        with pm.Model() as self.model:
            self.rows = pm.Data("rows", np.zeros((N, 3), np.int32))
            bias = pm.Normal("bias", 0, BIAS_SCALE, shape=potentials.bias_size)
            weight = bs.GroupSpikeAndSlab("weight", INCLUSION, SCALE, groups=self.groups, slab=slab)
            states = np.array(potentials.states)[np.nonzero(missing)[1]]
            values = bs.distributions.MissingStates("values", states)
            bs.distributions.IncompletePairwiseMRF(
                "x",
                bias,
                weight,
                values,
                missing=missing,
                potentials=potentials,
                observed=self.rows,
            )
            self.step = PairwiseSpikeSlab([weight, bias, values], rng=1)

    def draw_rows(self, rng, bias, weight):
        _, p = exact_distribution(self.potentials, bias, weight)
        return self.states[rng.choice(len(p), N, p=p)]

    def forward(self, rng):
        on = rng.random(self.groups.max() + 1) < INCLUSION
        draw = {"normal": rng.standard_normal, "laplace": rng.laplace}[self.slab]
        weight = np.where(on[self.groups], SCALE * draw(size=len(self.groups)), 0.0)
        bias = BIAS_SCALE * rng.normal(size=self.potentials.bias_size)
        return weight, bias, self.draw_rows(rng, bias, weight)

    def transition(self, rng, state):
        weight, bias, rows = state
        self.rows.set_value(rows.astype(np.int32))
        self.step.setup_chain(rng, 0, 1)  # the table is another one
        point = {"weight": weight, "bias": bias, "values": rows[self.missing]}
        point, _ = self.step.step(point)
        weight, bias = point["weight"], point["bias"]
        return weight, bias, self.draw_rows(rng, bias, weight)

    def statistics(self, state):
        weight, bias, rows = state
        on = np.add.reduceat(weight != 0, self.potentials.weight_start[:-1]) > 0
        out = {f"edge {e}": v for e, v in enumerate(on)} | {
            "edges": on.sum(),
            "squares": on.sum() ** 2,
        }
        first = self.potentials.weight_start[:-1]
        for e in range(3):
            w = np.tanh(weight[first[e] : first[e] + 2])  # bounded: the slab may have long tails
            out |= {f"w {e}": w.sum(), f"w2 {e}": (w**2).sum()}
        for b, value in enumerate(np.tanh(bias)):
            out |= {f"b {b}": value, f"b2 {b}": value**2}
        out["with bias"] = np.tanh(bias[0]) * np.tanh(weight).sum()
        out |= {f"x {i}": v for i, v in enumerate(rows.mean(axis=0))}
        out["xx"] = (rows[:, 0] * rows[:, 1]).mean()
        out["w xx"] = np.tanh(weight[0]) * out["xx"]
        return out


def check(family, slab, draws):
    joint = Joint(FAMILIES[family], slab)
    return assert_geweke(joint.forward, joint.transition, joint.statistics, draws=draws)


@pytest.mark.statistical
def test_parameters_and_rows_have_their_joint_distribution():
    check("full", "normal", 4_000)


@pytest.mark.calibration
@pytest.mark.parametrize(("family", "slab"), [("full", "laplace"), ("ordinal", "normal")])
def test_joint_distributions_of_others(family, slab, full):
    check(family, slab, 40_000 if full else 1_000)


@pytest.mark.statistical
def test_wrong_prior_odds_break_the_joint_distribution(monkeypatch):
    right = pairwise._log_odds
    monkeypatch.setattr(pairwise, "_log_odds", lambda q, count: right(q, count) + 0.8)
    with pytest.raises(AssertionError, match="worst z"):
        check("full", "normal", 4_000)


P, ROWS = 4, 40
PAIRS = np.triu_indices(P, 1)


def simulate(rng):
    """Parameters from the prior of the model, and a table in which no column is constant."""
    while True:
        edge = rng.random(len(PAIRS[0])) < 0.4
        weight = np.where(edge, rng.normal(size=len(edge)), 0.0)
        bias = rng.normal(size=P)
        potentials = Potentials("ordinal", (2,) * P)
        _, p = exact_distribution(potentials, bias, weight)
        rows = all_states(potentials.states)[rng.choice(len(p), ROWS, p=p)]
        # Tables that the model refuses are drawn again: the rule looks at the data only.
        different = len({tuple(c) for c in rows.T}) == P
        if different and (rows.min(axis=0) < rows.max(axis=0)).all():
            return {"weight": weight, "bias": bias, "edges": edge.sum()}, rows


def fit(rows, rng, tune=30, draws=150):
    with ising(rows, likelihood="exact", edge_probability=0.4, bias_scale=1.0) as model:
        step = PairwiseSpikeSlab([model["weight"], model["bias"]])
    step.setup_chain(rng, tune, draws)
    point, kept = model.initial_point(), []
    for t in range(tune + draws):
        point, _ = step.step(point)
        if t >= tune:
            kept.append(point)
    weight = np.array([q["weight"] for q in kept])
    bias = np.array([q["bias"] for q in kept])
    return {"weight": weight, "bias": bias, "edges": (weight != 0).sum(axis=1)}


@pytest.mark.calibration
def test_the_model_is_calibrated(full):
    assert_calibrated(simulate, fit, simulations=500 if full else 10, seed=1)
