"""The most probable graph of Markov random fields, as `find_MAP` gives it for their models."""

import itertools

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest

from tools.random_fields import exact_distribution, summed_density

import bayesstruct as bs

from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.modes.completions import Completions
from bayesstruct.fields.solvers.evidence import FieldEvidence, FieldPrior
from bayesstruct.fields.solvers.likelihoods import likelihood_for
from bayesstruct.models import ising, pairwise_mrf


def chain(p, n, coupling=1.2, seed=0):
    """Binary columns of which each depends on the next."""
    rng = np.random.default_rng(seed)
    x = np.empty((n, p), int)
    x[:, 0] = rng.integers(0, 2, n)
    for j in range(1, p):
        x[:, j] = np.where(
            rng.random(n) < 1 / (1 + np.exp(-coupling)), x[:, j - 1], 1 - x[:, j - 1]
        )
    return pd.DataFrame(x, columns=[f"v{j}" for j in range(p)])


def neighbours(p):
    return np.array([int(j == i + 1) for i, j in zip(*np.triu_indices(p, 1), strict=True)])


def assert_no_point_near_is_better(model, mode, names, density=None):
    """Whatever is not zero is moved; zeros stay, since density has a mass there."""
    density = density or model.compile_logp(mode="FAST_COMPILE")
    point = {name: np.asarray(mode[name], float) for name in names}
    best, rng = density(point), np.random.default_rng(1)
    for size in 10.0 ** -rng.integers(1, 5, 40):
        moved = {k: v + size * rng.normal(size=v.shape) * (v != 0) for k, v in point.items()}
        assert density(moved) <= best + 1e-8


@pytest.mark.parametrize("likelihood", ["pseudo", "exact"])
@pytest.mark.parametrize("slab", ["normal", "laplace", "cauchy"])
def test_weights_are_the_mode_given_the_graph(slab, likelihood):
    model = ising(chain(5, 150), slab=slab, likelihood=likelihood, edge_probability=0.3)
    mode = bs.find_MAP(model)
    assert set(mode) == {"bias", "weight", "edge"}
    assert ((mode["weight"] != 0) == (mode["edge"] == 1)).all()
    assert mode["edge"].tolist() == neighbours(5).tolist()
    assert_no_point_near_is_better(model, mode, ["bias", "weight"])


def test_graph_of_many_columns_is_the_true_one():
    model = ising(chain(14, 1500), edge_probability=0.05)
    assert bs.find_MAP(model)["edge"].tolist() == neighbours(14).tolist()


def test_tables_of_potentials_and_ordinal_states():
    rng = np.random.default_rng(2)
    a, d = rng.integers(0, 3, (2, 400))
    b = np.where(rng.random(400) < 0.6, a, rng.integers(0, 3, 400))
    c = np.where(rng.random(400) < 0.6, b, rng.integers(0, 3, 400)) > 0
    table = pd.DataFrame({"a": a, "b": b, "c": c, "d": d})
    for potentials in ("full", "ordinal", "blume_capel"):
        model = pairwise_mrf(
            table, potentials=potentials, prior="spike_slab", slab="laplace", edge_probability=0.2
        )
        mode = bs.find_MAP(model)
        assert mode["edge"].tolist() == [1, 0, 0, 1, 0, 0]
        assert ((mode["weight"] != 0) == (mode["edge"] == 1)).all()
    model = pairwise_mrf(table, prior="spike_slab", likelihood="exact", edge_probability=0.2)
    mode = bs.find_MAP(model)
    assert mode["edge"].tolist() == [1, 0, 0, 1, 0, 0]
    assert_no_point_near_is_better(model, mode, ["bias", "potential"])


@pytest.mark.parametrize("slab", ["normal", "laplace"])
def test_required_edges_are_there_and_forbidden_ones_not(slab):
    table = chain(5, 400)
    model = ising(table, slab=slab, required=[("v0", "v4")], forbidden=[("v1", "v2")])
    mode = bs.find_MAP(model)
    at = {pair: e for e, pair in enumerate(model.coords["pair"])}
    assert mode["edge"][at["v0 -- v4"]] == 1
    assert mode["edge"][at["v1 -- v2"]] == 0
    assert mode["weight"][at["v1 -- v2"]] == 0
    every = [("v0", "v1"), ("v1", "v2"), ("v0", "v2")]
    fixed = bs.find_MAP(ising(table[["v0", "v1", "v2"]], slab=slab, required=every))
    assert fixed["edge"].tolist() == [1, 1, 1]


def test_a_required_weight_whose_mode_is_zero_is_present():
    """Under a narrow Laplace slab the mode of a weak association is exactly zero."""
    table = np.array(list(itertools.product([0, 1], repeat=2)) * 5)
    model = ising(table, slab="laplace", slab_scale=0.1, required=[("x0", "x1")])
    mode = bs.find_MAP(model)
    assert mode["edge"].tolist() == [1]
    assert abs(mode["weight"][0]) < 1e-6


def test_a_learned_edge_probability_is_the_mode_given_the_graph():
    mode = bs.find_MAP(ising(chain(6, 400), edge_probability=pm.Beta.dist(2, 3)))
    assert mode["edge_probability"] == pytest.approx((mode["edge"].sum() + 1) / (15 + 3))
    assert (mode["edge"] >= neighbours(6)).all()


def test_hidden_blocks_come_with_the_graph():
    potentials = Potentials("ordinal", (2,) * 8)
    within = [(i < 4) == (j < 4) for i, j in zip(*potentials.ends, strict=True)]
    _, distribution = exact_distribution(potentials, np.full(8, -1.5), np.array(within, float))
    cells = np.random.default_rng(0).choice(256, 600, p=distribution)
    table = pd.DataFrame(np.column_stack(np.unravel_index(cells, (2,) * 8)))
    blocks = bs.StochasticBlock(2, within=(3.0, 1.0))
    mode = bs.find_MAP(ising(table.add_prefix("v"), edge_probability=blocks))
    label, edge = mode["block"], mode["edge"]
    assert len(set(label[:4])) == len(set(label[4:])) == 1
    assert label[0] != label[4]
    across = edge[~np.array(within)].sum()
    # The mode of Beta(1 + present, 4 + absent) of the 16 pairs across the blocks.
    assert mode["block_probability"][1] == pytest.approx(across / 19, abs=1e-9)
    assert mode["block_share"] == pytest.approx([0.5, 0.5])


def test_one_block_is_one_probability():
    table = chain(5, 60, 1.5)
    one = bs.find_MAP(ising(table, edge_probability=bs.StochasticBlock(1)))
    shared = bs.find_MAP(ising(table, edge_probability=pm.Beta.dist(2.0, 1.0)))
    np.testing.assert_array_equal(one["edge"], shared["edge"])
    np.testing.assert_allclose(one["weight"], shared["weight"], atol=1e-8)


@pytest.mark.parametrize("likelihood", ["pseudo", "exact"])
def test_missing_cells_are_summed_out(likelihood):
    table = chain(3, 40, 2.0).astype(float)
    table.iloc[0, 1] = table.iloc[1, 0] = table.iloc[1, 2] = np.nan
    model = ising(table, likelihood=likelihood, bias_scale=2.0)
    mode = bs.find_MAP(model)
    potentials = Potentials("ordinal", (2,) * 3)
    values, shares, density = summed_density(model, potentials, table.isna(), likelihood, mode)
    assert_no_point_near_is_better(model, mode, ["bias", "weight"], density)
    assert mode["x_missing"].tolist() == values[np.argmax(shares)].tolist()
    # No other graph is better for the completions, weighted as they are at the mode.
    done = Completions(table.fillna(0).to_numpy(int), table.isna(), potentials)
    fit = likelihood_for(
        likelihood, potentials, done.codes, done.weights(mode["bias"], mode["weight"])
    )
    prior = FieldPrior(
        "normal", np.ones(3), np.zeros(3), np.full(3, 0.25), [np.array([e]) for e in range(3)]
    )
    evidence = FieldEvidence(fit, prior)
    graphs = [np.array(on) for on in itertools.product([False, True], repeat=3)]
    scores = [evidence.fit(on, np.zeros(6)).evidence for on in graphs]
    assert mode["edge"].tolist() == graphs[int(np.argmax(scores))].astype(int).tolist()


def refused(model, reason):
    with pytest.raises(ValueError, match=rf"'weight' has a spike-and-slab prior.*{reason}.*Sample"):
        bs.find_MAP(model)


def test_models_that_are_not_served_are_told_why():
    table = chain(4, 50).to_numpy()

    def field(weight, **options):
        bias = options.pop("bias", None)
        bias = pm.Normal("bias", 0, 5, shape=4) if bias is None else bias
        return bs.Ising("x", bias, weight, observed=table, **options)

    with ising(table) as model:
        pm.Normal("y", model["weight"].sum(), 1.0, observed=0.0)
    refused(model, "'y' depends on 'weight' too")
    with ising(table) as model:
        pm.Normal("z")
    refused(model, "other variables: 'z'")
    with ising(table) as model:
        pm.Potential("more", model["bias"].sum())
    refused(model, "pm.Potential")
    with pm.Model() as model:
        field(bs.SpikeAndSlab("weight", 0.5, pm.HalfNormal("scale"), shape=6))
    refused(model, "the scales of the slab are random")
    with pm.Model() as model:
        field(bs.SpikeAndSlab("weight", pm.math.sigmoid(pm.Normal("a")), shape=6))
    refused(model, "the edge probabilities depend on 'a'")
    with pm.Model() as model:
        field(bs.SpikeAndSlab("weight", pm.Beta("q", 1, 1) ** 2, shape=6))
    refused(model, "the edge probabilities are not those in 'q'")
    for bent in (
        lambda q: pt.switch(np.arange(6) < 3, q, 0.2),
        lambda q: pt.minimum(q, 0.5) + pt.zeros(6),
    ):
        with pm.Model() as model:
            field(bs.SpikeAndSlab("weight", bent(pm.Beta("q", 1, 1)), shape=6))
        refused(model, "the edge probabilities are not those in 'q'")
    with pm.Model() as model:
        block = pm.Categorical("block", pm.Dirichlet("share", np.ones(2)), shape=4)
        q = pm.Beta("q", [8.0, 2.0], [1.0, 5.0])
        source, target = np.triu_indices(4, 1)
        same = pt.eq(block[source], block[target])
        field(bs.SpikeAndSlab("weight", pt.switch(same, 1.0 - q[0], 1.0 - q[1]), shape=6))
    refused(model, "the edge probabilities are not those in 'q'")
    with pm.Model() as model:
        field(bs.SpikeAndSlab("weight", pm.Beta("q", 1, 1, shape=6), shape=6))
    refused(model, "'q' is more than one probability")
    with pm.Model() as model:
        field(bs.SpikeAndSlab("weight", shape=6), bias=pm.StudentT("bias", 3, shape=4))
    refused(model, "the biases of 'x' are not a normal or flat variable")
    with pm.Model() as model:
        field(bs.SpikeAndSlab("weight", shape=6), bias=pm.Normal("bias", pm.Normal("m"), shape=4))
    refused(model, "the hyperparameters of the biases are random")


def test_a_state_that_never_occurs_needs_a_normal_bias():
    table = chain(4, 50).to_numpy().astype(int) * [1, 1, 1, 0]
    with pm.Model() as model:
        bs.Ising("x", pm.Flat("bias", shape=4), bs.SpikeAndSlab("weight", shape=6), observed=table)
    with pytest.raises(ValueError, match="no finite mode"):
        bs.find_MAP(model)


def test_too_few_rounds_are_said():
    table = chain(4, 60).astype(float).mask(np.random.default_rng(0).random((60, 4)) < 0.1)
    with pytest.warns(bs.solvers.ConvergenceWarning, match="raise max_rounds"):
        bs.find_MAP(ising(table), max_rounds=1)
