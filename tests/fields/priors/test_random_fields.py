"""Rows of Markov random fields: densities against brute force, draws against the exact distribution."""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from scipy.special import logsumexp
from scipy.stats import chi2
from tools.random_fields import all_states, energies, exact_distribution

from bayesstruct.distributions import (
    IncompletePairwiseMRF,
    Ising,
    MissingStates,
    PairwiseMRF,
    interaction_strengths,
)
from bayesstruct.fields.kernels import sampler as module
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.ops import log_partition

FAMILIES = [
    Potentials("ordinal", (2, 2, 2, 2)),
    Potentials("spin", (2, 2, 2)),
    Potentials("ising", (3, 3, 3)),
    Potentials("generalized_ising", (3, 3)),
    Potentials("full", (2, 3, 2)),
    Potentials("blume_capel", (2, 4, 3), 1),
]
IDS = [f.kind for f in FAMILIES]


def parameters(potentials, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    return (
        scale * rng.normal(size=potentials.bias_size),
        scale * rng.normal(size=potentials.weight_size),
    )


def pseudo_by_definition(potentials, bias, weight):
    """Sum of the log conditional probabilities of every joint state."""
    x, energy = all_states(potentials.states), energies(potentials, bias, weight)
    total = np.zeros(len(x))
    for i in range(potentials.p):
        others = np.delete(x, i, axis=1)
        for m in range(len(x)):
            same = (others == others[m]).all(axis=1)
            total[m] += energy[m] - logsumexp(energy[same])
    return total


@pytest.mark.parametrize("potentials", FAMILIES, ids=IDS)
def test_densities_are_those_of_brute_force(potentials):
    bias, weight = parameters(potentials)
    x = all_states(potentials.states)
    _, p = exact_distribution(potentials, bias, weight)
    wanted = {"exact": np.log(p), "pseudo": pseudo_by_definition(potentials, bias, weight)}
    for likelihood, logp in wanted.items():
        rv = PairwiseMRF.dist(bias, weight, potentials=potentials, likelihood=likelihood)
        got = pm.logp(rv, x).eval(mode="FAST_COMPILE")
        np.testing.assert_allclose(got, logp, atol=1e-12)
    assert np.exp(wanted["exact"]).sum() == pytest.approx(1.0, abs=1e-12)


GRAPH = ((0, 1), (0, 2), (2, 3))
SPARSE = [
    Potentials("ordinal", (2, 3, 2, 2), edges=GRAPH),
    Potentials("spin", (2, 2, 2, 2), edges=GRAPH),
    Potentials("full", (2, 3, 2, 2), edges=GRAPH),
]


@pytest.mark.parametrize("potentials", SPARSE, ids=lambda f: f.kind)
def test_densities_with_given_edges(potentials):
    bias, weight = parameters(potentials)
    _, p = exact_distribution(potentials, bias, weight)
    wanted = {"exact": np.log(p), "pseudo": pseudo_by_definition(potentials, bias, weight)}
    for likelihood, logp in wanted.items():
        rv = PairwiseMRF.dist(bias, weight, potentials=potentials, likelihood=likelihood)
        got = pm.logp(rv, all_states(potentials.states)).eval(mode="FAST_COMPILE")
        np.testing.assert_allclose(got, logp, atol=1e-12)


def test_ising_model_of_a_chain():
    """Two hundred columns; density of rows against the recursion, rows against their means."""
    p, rng = 200, np.random.default_rng(4)
    bias, weight = rng.normal(size=p), rng.normal(size=p - 1)
    edges = [(i, i + 1) for i in range(p - 1)]
    with pm.Model():
        rv = Ising("x", bias, weight, edges=edges, shape=(5_000, p))
    rows = pm.draw(rv, random_seed=1, mode="FAST_COMPILE")
    total = np.array([0.0, bias[0]])
    for i in range(p - 1):
        pair = total[:, None] + np.array([[0.0, bias[i + 1]], [0.0, bias[i + 1] + weight[i]]])
        total = np.logaddexp(pair[0], pair[1])
    energy = rows @ bias + (rows[:, :-1] * rows[:, 1:]) @ weight
    got = pm.logp(rv, rows[:20]).eval(mode="FAST_COMPILE")
    np.testing.assert_allclose(got, energy[:20] - np.logaddexp(*total), rtol=1e-12)
    # The mean energy of rows is the directional derivative of the log partition function.
    step = 1e-5
    ends = [
        log_partition(c * bias, c * weight, rv.owner.op.potentials).eval(mode="FAST_COMPILE")
        for c in (1 - step, 1 + step)
    ]
    error = energy.std() / np.sqrt(len(rows))
    assert energy.mean() == pytest.approx((ends[1] - ends[0]) / (2 * step), abs=4 * error)


def test_states_that_do_not_exist_have_no_probability():
    potentials = FAMILIES[4]
    rv = PairwiseMRF.dist(*parameters(potentials), potentials=potentials)
    logp = pm.logp(rv, np.array([[0, 3, 0], [-1, 0, 0], [1, 2, 1]])).eval(mode="FAST_COMPILE")
    assert np.isneginf(logp).tolist() == [True, True, False]


def p_value(rows, potentials, p):
    """Chi-square test of rows against the distribution of the joint states."""
    index = np.ravel_multi_index(rows.T, potentials.states)
    counts = np.bincount(index, minlength=len(p))
    expected = len(rows) * p
    assert expected.min() > 2  # chi-square distribution
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), len(p) - 1)


@pytest.mark.parametrize("potentials", FAMILIES[2:5], ids=IDS[2:5])
def test_exact_draws(potentials):
    bias, weight = parameters(potentials, scale=0.5)
    _, p = exact_distribution(potentials, bias, weight)
    rv = PairwiseMRF.dist(bias, weight, potentials=potentials, shape=(20_000, potentials.p))
    rows = pm.draw(rv, random_seed=1, mode="FAST_COMPILE")
    assert p_value(rows, potentials, p) > 1e-3


@pytest.mark.parametrize(
    ("potentials", "attract"),
    [
        (FAMILIES[4], False),
        (FAMILIES[0], True),
        (FAMILIES[1], True),
        (FAMILIES[1], False),
        (SPARSE[2], False),
    ],
    ids=["gibbs, full", "perfect, 01", "perfect, -1 1", "gibbs, -1 1", "elimination"],
)
def test_draws_without_a_table_of_all_states(potentials, attract, monkeypatch):
    """Larger fields are drawn along few edges, from the past where all attract, or by sweeps."""
    bias, weight = parameters(potentials, scale=0.5)
    weight = np.abs(weight) if attract else weight
    _, p = exact_distribution(potentials, bias, weight)
    monkeypatch.setattr(module, "ENUMERATED", 1)
    sampler = module.Sampler(potentials, 30)
    assert (sampler.elimination is not None) == (potentials is SPARSE[2])
    rng = np.random.default_rng(2)
    rows = np.empty((20_000, potentials.p), np.int64)
    if attract:
        unary, pair = potentials.unary(bias), potentials.pair(weight)
        assert sampler._perfect(rng, unary, pair, rows) == len(rows)
    else:
        sampler(rng, bias, weight, rows)
    assert p_value(rows, potentials, p) > 1e-3


def test_one_sweep_is_not_enough(monkeypatch):
    """The test of the draws notices chains that are too short."""
    potentials = FAMILIES[1]
    bias, weight = np.zeros(3), np.array([1.2, -1.2, 1.2])
    _, p = exact_distribution(potentials, bias, weight)
    monkeypatch.setattr(module, "ENUMERATED", 1)
    rows = np.empty((20_000, 3), np.int64)
    module.Sampler(potentials, 1)(np.random.default_rng(2), bias, weight, rows)
    assert p_value(rows, potentials, p) < 1e-6


def test_rows_that_take_too_long_are_drawn_by_sweeps(monkeypatch):
    monkeypatch.setattr(module, "ENUMERATED", 1)
    monkeypatch.setattr(module, "PATIENCE", 1)
    rows = np.full((50, 3), -1)
    module.Sampler(FAMILIES[1], 5)(np.random.default_rng(0), np.zeros(3), np.ones(3), rows)
    assert set(np.unique(rows)) == {0, 1}


@pytest.fixture(scope="module")
def ising():
    """Model, result of its predictive functions, and the table."""
    x = np.random.default_rng(3).integers(0, 2, (12, 3))
    coords = {"observation": range(12), "node": list("abc"), "pair": ["ab", "ac", "bc"]}
    with pm.Model(coords=coords) as model:
        bias = pm.Normal("bias", dims="node")
        weight = pm.Normal("weight", dims="pair")
        Ising("x", bias, weight, coding="pm", observed=x, dims=("observation", "node"))
    return model, x


@pytest.mark.chain
@pytest.mark.compiled
def test_the_functions_of_pymc_work(ising):
    model, x = ising
    with model:
        idata = pm.sample_prior_predictive(20, random_seed=1)
        idata["posterior"] = idata["prior"]
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(
            idata, extend_inferencedata=True, progressbar=False, random_seed=1
        )
    assert idata["prior_predictive"]["x"].shape == (1, 20, 12, 3)
    assert idata["posterior_predictive"]["x"].shape == (1, 20, 12, 3)
    got = idata["log_likelihood"]["x"].values[0]
    for d in (0, 7):
        bias, weight = (idata["posterior"][n].values[0, d] for n in ("bias", "weight"))
        potentials = Potentials("spin", (2, 2, 2))
        _, p = exact_distribution(potentials, bias, weight)
        np.testing.assert_allclose(got[d], np.log(p)[np.ravel_multi_index(x.T, (2, 2, 2))])


def test_draws_differ_between_parameters():
    strong = PairwiseMRF.dist(
        np.array([[5.0, 5.0, 5.0], [-5.0, -5.0, -5.0]]),
        np.zeros(3),
        potentials=Potentials("spin", (2, 2, 2)),
    )
    rows = pm.draw(strong, random_seed=1, mode="FAST_COMPILE")
    assert rows.tolist() == [[1, 1, 1], [0, 0, 0]]


def test_missing_cells_are_filled_into_the_table():
    potentials = Potentials("full", (2, 3, 2))
    bias, weight = parameters(potentials)
    missing = np.zeros((4, 3), bool)
    missing[1, 1] = missing[2, 0] = True
    x = np.array([[0, 1, 1], [1, 0, 0], [0, 2, 1], [1, 1, 0]])
    with pm.Model() as model:
        gaps = MissingStates("gaps", [3, 2])
        IncompletePairwiseMRF(
            "x", bias, weight, gaps, missing=missing, potentials=potentials, observed=x
        )
    logp = model.compile_logp(mode="FAST_COMPILE")
    full = PairwiseMRF.dist(bias, weight, potentials=potentials)
    for a, b in [(0, 0), (2, 1)]:
        filled = x.copy()
        filled[1, 1], filled[2, 0] = a, b
        wanted = pm.logp(full, filled).sum().eval(mode="FAST_COMPILE") - np.log(6)
        assert logp({"gaps": np.array([a, b])}) == pytest.approx(wanted, abs=1e-12)
    with model:
        rows = pm.draw(model["x"], random_seed=1, mode="FAST_COMPILE")
    assert rows.shape == (4, 3)


@pytest.mark.compiled
def test_prior_draws_with_gaps_are_compiled():
    """Object mode would warn, and warnings are errors."""
    potentials = Potentials("full", (2, 3, 2))
    missing = np.eye(3, dtype=bool)
    with pm.Model():
        bias = pm.Normal("bias", shape=potentials.bias_size)
        gaps = MissingStates("gaps", [2, 3, 2])
        IncompletePairwiseMRF(
            "x",
            bias,
            np.zeros(potentials.weight_size),
            gaps,
            missing=missing,
            potentials=potentials,
            observed=np.zeros((3, 3), int),
        )
        prior = pm.sample_prior_predictive(200, random_seed=1)
    drawn = prior["prior"]["gaps"].values.reshape(-1, 3)
    assert drawn.min(axis=0).tolist() == [0, 0, 0]
    assert drawn.max(axis=0).tolist() == [1, 2, 1]


def test_strength_of_an_interaction_has_no_part_of_the_biases():
    potentials = Potentials("full", (2, 3, 2))
    rng = np.random.default_rng(0)
    w = np.zeros(potentials.weight_size)
    rows, columns = rng.normal(size=(2, 1)), rng.normal(size=3)
    w[:6] = (rows + columns).ravel()
    w[6:10] = [1.0, -1.0, -1.0, 1.0]
    strength = interaction_strengths(pt.as_tensor_variable(w), potentials)
    np.testing.assert_allclose(strength.eval(mode="FAST_COMPILE"), [0.0, 2.0, 0.0], atol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"likelihood": "composite"}, "exact"),
        ({"sweeps": 0}, "1 or more"),
        ({"potentials": Potentials("full", (2, 2))}, "need"),
    ],
)
def test_refusals(options, words):
    arguments = {"potentials": Potentials("ordinal", (2, 2, 2))} | options
    with pytest.raises(ValueError, match=words):
        PairwiseMRF.dist(np.zeros(3), np.zeros(3), **arguments)
    with pytest.raises(ValueError, match="coding"):
        Ising.dist(np.zeros(3), np.zeros(3), coding="pm1")


def test_distributions_without_a_model():
    rng = np.random.default_rng(3)
    bias, weight = rng.normal(size=(2, 3))
    x = np.indices((2, 2, 2)).reshape(3, -1).T
    potentials = {"01": "ordinal", "pm": "spin"}
    for coding, kind in potentials.items():
        rows = Ising.dist(bias, weight, coding=coding)
        same = PairwiseMRF.dist(bias, weight, potentials=Potentials(kind, (2, 2, 2)))
        logp = pm.logp(rows, x).eval()
        np.testing.assert_allclose(logp, pm.logp(same, x).eval())
        np.testing.assert_allclose(np.exp(logp).sum(), 1.0)
    drawn = pm.draw(Ising.dist(bias, weight, shape=(7, 3)), random_seed=1)
    assert drawn.shape == (7, 3)
    gaps = pm.draw(MissingStates.dist([2, 4]), 200, random_seed=1)
    assert gaps.max(axis=0).tolist() == [1, 3]


def test_observed_values_that_are_no_states_are_refused():
    table = np.random.default_rng(0).integers(0, 2, (6, 3))

    def observe(values, kind=Ising, **options):
        with pm.Model():
            options = {"coding": "pm"} if kind is Ising else options
            bias = np.zeros(3 if kind is Ising else 4)
            kind("x", bias, np.zeros(3), observed=values, **options)

    observe(table.astype(float))
    observe(table.astype(bool))
    with pytest.raises(
        ValueError, match=r"column 0: -1 is not a state.*also with coding.*\(x \+ 1\) // 2"
    ):
        observe(2 * table - 1)
    with pytest.raises(ValueError, match=r"b: 0\.7 is not a state.*whole numbers 0 to 1"):
        observe(pd.DataFrame(np.where(table == 1, [1, 0.7, 1], 0.0), columns=list("abc")))
    with pytest.raises(
        ValueError, match=r"column 2: nan is not a state. Drop the rows with missing"
    ):
        observe(np.where(np.arange(3) == 2, np.nan, table))
    with pytest.raises(ValueError, match=r"column 0 must be numbers.*takes labels"):
        observe(table.astype(str))
    with pytest.raises(ValueError, match=r"b: nan is not a state. Drop the rows with missing"):
        frame = pd.DataFrame(table, columns=list("abc")).astype("Int64")
        frame.loc[0, "b"] = pd.NA
        observe(frame)
    potentials = Potentials("ordinal", (2, 3, 2))
    observe(table + np.array([0, 1, 0]), PairwiseMRF, potentials=potentials)
    with pytest.raises(ValueError, match=r"column 0: 2 is not a state"):
        observe(table + np.array([1, 1, 0]), PairwiseMRF, potentials=potentials)
    with pytest.raises(ValueError, match="has 3 columns, the observed table has 2"):
        observe(table[:, :2], PairwiseMRF, potentials=potentials)
    shared = pytensor.shared(2 * table - 1)
    with pytest.raises(ValueError, match="column 0: -1 is not a state"):
        observe(shared)
    holes = np.eye(3, dtype=bool)
    with pm.Model():
        gaps = MissingStates("gaps", [2, 3, 2])
        options = {"missing": holes, "potentials": potentials}
        values = np.where(holes, -1, 0)
        IncompletePairwiseMRF("x", np.zeros(4), np.zeros(3), gaps, observed=values, **options)
        values[0, 1] = 9
        with pytest.raises(ValueError, match="column 1: 9 is not a state"):
            IncompletePairwiseMRF("y", np.zeros(4), np.zeros(3), gaps, observed=values, **options)
