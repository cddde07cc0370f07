"""Gaussian graphs in space, with selected nodes, and with blocks: what the models are made of, modes, messages, calibration."""

import arviz as az
import networkx as nx
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from tools.calibration import assert_calibrated
from tools.priors import penalised_prior

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.data.neighbours import neighbour_matrix
from bayesstruct.models import (
    blockwise_gaussian_graphical,
    gaussian_graphical,
    locally_constant_gaussian_graphical,
    node_selection_gaussian_graphical,
)
from bayesstruct.precision.kernels.cholesky import pack_cholesky, unpack_cholesky
from bayesstruct.steps import BlocksGibbs, NodeInclusionGibbs, PrecisionGibbs

NAMES = ["nine", "ten", "noon", "one", "two"]
P = len(NAMES)
BLOCKS = {"morning": ["nine", "ten", "noon"], "afternoon": ["one", "two"]}
QUIET = {"progressbar": False, "chains": 2, "cores": 1, "random_seed": 1}


def frame(n=40, gaps=False, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, P))
    z = z + 0.8 * np.roll(z, 1, axis=1)
    table = pd.DataFrame(100.0 + z * [10.0, 0.1, 1.0, 50.0, 2.0], columns=NAMES)
    if gaps:
        table.iloc[3, 1] = table.iloc[7, 0] = table.iloc[7, 3] = np.nan
    return table


MODELS = {
    "chain": lambda x: locally_constant_gaussian_graphical(x, rate=2.0, smoothness=1.5),
    "nodes": node_selection_gaussian_graphical,
    "nodes, l2": lambda x: node_selection_gaussian_graphical(x, prior="laplace", node_rate=2.0),
    "nodes, linf": lambda x: node_selection_gaussian_graphical(
        x, prior="laplace", norm="linf", rate=2.0
    ),
    "blocks, l2": lambda x: blockwise_gaussian_graphical(x, BLOCKS, rate=2.0),
    "blocks, linf": lambda x: blockwise_gaussian_graphical(x, BLOCKS, norm="linf"),
    "blocks, nuclear": lambda x: blockwise_gaussian_graphical(x, BLOCKS, norm="nuclear"),
    "unknown blocks": blockwise_gaussian_graphical,
}
# Of which another one shows the same, but for a kernel that has tests of its own.
ALIKE = "nodes, linf", "blocks, l2", "blocks, linf", "blocks, nuclear"


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(build, id=name, marks=[pytest.mark.slow] if name in ALIKE else [])
        for name, build in MODELS.items()
    ],
)
@pytest.mark.chain
@pytest.mark.filterwarnings("ignore:Estimated shape parameter")  # of few draws
def test_draws_predictions_and_readers(build):
    with build(frame(gaps=True)) as model:
        idata = pm.sample(60, tune=40, **QUIET)
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(
            idata, var_names=["x"], extend_inferencedata=True, progressbar=False, random_seed=1
        )
        prior = pm.sample_prior_predictive(3, random_seed=1)
    posterior = idata["posterior"]
    assert {"precision", "mean", "edge", "weight", "x_missing"} <= {*posterior.data_vars}
    assert posterior["x_missing"].sizes["missing"] == 3
    assert prior["prior_predictive"]["x"].shape == (1, 3, 40, P)
    replicated = idata["posterior_predictive"]["x"].mean(("chain", "draw", "observation"))
    np.testing.assert_allclose(replicated, 100.0, atol=25)
    assert np.isfinite(az.loo(idata).elpd)
    table = bs.edge_table(idata)
    assert len(table) == P * (P - 1) // 2 and table["probability"].between(0, 1).all()
    assert table["bayes_factor"].notna().all()
    steps = set(pm.sampling.mcmc.assign_step_methods(model)[1])
    assert steps <= {PrecisionGibbs, NodeInclusionGibbs, BlocksGibbs}


def standardised(x):
    z = ((x - x.mean()) / x.std()).to_numpy()
    return z.T @ z / len(z), len(z)


def modes(name, S, n):
    """Mode by the certified solver."""
    solvers, tight = bs.solvers, {"tol": 1e-9}
    if name == "chain":
        pairs = [(i, i + 1) for i in range(P - 1)]
        return solvers.locally_constant_graphical_lasso(S, n, pairs, 2.0, 3.0, **tight)
    if name == "nodes, l2":
        return solvers.node_selection_graphical_lasso(S, n, 1.0, 2.0, **tight)
    if name == "nodes, linf":
        return solvers.node_selection_graphical_lasso(S, n, 2.0, 2.0, norm="linf", **tight)
    labels, norm = ["m", "m", "m", "a", "a"], name.removeprefix("blocks, ")
    rate = 2.0 if norm == "l2" else 1.0
    return solvers.blockwise_graphical_lasso(S, n, labels, rate, rate, norm=norm, **tight)


@pytest.mark.chain
@pytest.mark.parametrize(
    "name", [name for name in MODELS if name not in ("nodes", "unknown blocks")]
)
def test_mode_is_that_of_the_solver(name):
    x = frame()
    with MODELS[name](x):
        mode = bs.find_MAP()
    S, n = standardised(x)
    # The mean of standardised columns is zero at the mode.
    np.testing.assert_allclose(mode["mean"], 0.0, atol=1e-9)
    np.testing.assert_allclose(mode["precision"], modes(name, S, n).precision, atol=1e-5)


@pytest.mark.chain
def test_mode_with_missing_values_and_a_learned_rate():
    rate = pm.Gamma.dist(2.0, 1.0)
    with locally_constant_gaussian_graphical(frame(gaps=True), rate=rate) as model:
        mode = bs.find_MAP(tol=1e-6)
    assert {"precision", "rate", "x_missing"} <= {*mode}
    f = model.compile_logp(vars=[model["rate"], model["precision"]], jacobian=False)

    def density(value):
        packed = pack_cholesky(mode["precision"])
        point = {"rate_log__": np.log(value), "precision_cholesky-cov__": packed}
        return float(f(point | {"mean": mode["mean"], "x_missing": mode["x_missing"]}))

    best = density(mode["rate"])
    assert best > density(1.05 * mode["rate"]) and best > density(0.95 * mode["rate"])


def test_without_smoothness_it_is_the_laplace_prior(python_mode):
    x = frame()
    chain = locally_constant_gaussian_graphical(x, smoothness=0.0, rate=2.0)
    plain = gaussian_graphical(x, prior="laplace", rate=2.0)
    f, g = (m.compile_logp(vars=[m["precision"]], jacobian=False) for m in (chain, plain))
    points = [np.random.default_rng(s).normal(size=P * (P + 1) // 2) for s in range(3)]
    rest = {"mean": np.zeros(P)}
    values = [[float(h({"precision_cholesky-cov__": p} | rest)) for p in points] for h in (f, g)]
    np.testing.assert_allclose(np.diff(values[0]), np.diff(values[1]))


def test_neighbours():
    names = list("abcdef")
    grid = neighbour_matrix(names, (2, 3))
    wanted = nx.to_numpy_array(nx.grid_2d_graph(2, 3))
    np.testing.assert_array_equal(grid, wanted)
    graph = nx.Graph([("a", "c"), ("c", "b")])
    np.testing.assert_array_equal(
        neighbour_matrix(["a", "b", "c"], graph), nx.to_numpy_array(graph, nodelist=["a", "b", "c"])
    )


@pytest.mark.parametrize(
    ("neighbours", "message"),
    [
        ("ring", 'neighbours is "chain"'),
        ((2, 2), "2 x 2 places, but the table has 5 columns"),
        (nx.Graph([("nine", "tenn")]), "unknown column 'tenn'; did you mean 'ten'"),
        (nx.Graph([(0, 1)]), "neighbours: unknown columns"),
        (nx.DiGraph([("nine", "ten")]), "neighbours is directed"),
        ([("nine", "nine")], "joined with itself"),
        ([], "neighbours has no edges; give the pairs of columns that are next to each other"),
    ],
)
def test_neighbours_that_are_not(neighbours, message):
    with pytest.raises(TableError, match=message):
        locally_constant_gaussian_graphical(frame(), neighbours=neighbours)


def test_too_few_columns():
    with pytest.raises(TableError, match="must be three"):
        locally_constant_gaussian_graphical(frame()[NAMES[:2]])


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ({"morning": ["nine", "ten"], "afternoon": ["one", "two"]}, "no block for column 'noon'"),
        ({"morning": ["nine", "tenn"]}, "unknown column 'tenn'; did you mean 'ten'"),
        ({"morning": NAMES, "noon": ["noon"]}, "'noon' is in two blocks"),
        (["a", "b"], "2 entries, but the table has 5 columns"),
        (["a"] * 5, "single block"),
        (["a", "a", "b", "b", None], "the block of column 'two' is missing"),
        (pd.Series("a", index=NAMES[:4]), "no value for column 'two'"),
        (3, "of the type int"),
    ],
)
def test_blocks_that_are_not(blocks, message):
    with pytest.raises(TableError, match=message):
        blockwise_gaussian_graphical(frame(), blocks)


def test_blocks_in_four_forms(python_mode):
    by_column = {name: block for block, names in BLOCKS.items() for name in names}
    in_order = [by_column[name] for name in NAMES]
    by_label = pd.Series(by_column)[NAMES[::-1]]
    forms = (BLOCKS, by_column, in_order, by_label)
    built = [blockwise_gaussian_graphical(frame(), b) for b in forms]
    assert all(m.coords["block"] == ("afternoon", "morning") for m in built)
    packed = np.random.default_rng(0).normal(size=15)
    point = {"precision_cholesky-cov__": packed, "mean": np.zeros(P)}
    values = [float(m.compile_logp(vars=[m["precision"]])(point)) for m in built]
    assert values == values[:1] * len(forms)


def test_strength_of_blocks(python_mode):
    model = blockwise_gaussian_graphical(frame(), BLOCKS)
    weight, strength = pm.draw([model["weight"], model["block_strength"]], random_seed=1)
    R = np.zeros((P, P))
    R[np.triu_indices(P, 1)] = weight
    between = R[:3, 3:]
    within = R[:3, :3][np.triu_indices(3, 1)]
    np.testing.assert_allclose(strength[0, 1], np.sqrt((between**2).mean()))
    np.testing.assert_allclose(strength[1, 1], np.sqrt((within**2).mean()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": "horse"}, "unknown prior"),
        ({"rate": 2.0}, '`rate` goes with prior="laplace"'),
        (
            {"prior": "laplace", "node_probability": 0.2},
            '`node_probability` goes with prior="spike',
        ),
        ({"node_probability": 1.5}, "node_probability"),
        ({"node_probability": 0.0}, "neither 0 nor 1: leave out a column"),
        ({"node_probability": [0.5, 0.5]}, "5 of them, one for each column"),
        ({"node_probability": pm.Beta.dist(1, 1)}, "`node_probability` must be a number"),
        ({"edge_probability": pm.Beta.dist(1, 1)}, "is a distribution; give a number"),
        ({"prior": "laplace", "node_rate": np.inf}, "`node_rate` must be a number from 0 up"),
        ({"prior": "laplace", "norm": "l3"}, "unknown norm"),
        ({"prior": "laplace", "negligible": 2.0}, "negligible"),
        ({"prior": "laplace", "node_rate": -1.0}, "node_rate"),
    ],
)
def test_wrong_options_are_refused_at_once(options, message):
    with pytest.raises(ValueError, match=message):
        node_selection_gaussian_graphical(frame(), **options)


def test_probabilities_of_nodes_are_read_by_label(python_mode):
    chances = pd.Series([0.1, 0.2, 0.3, 0.4, 0.6], index=NAMES[::-1])
    model = node_selection_gaussian_graphical(frame(), node_probability=chances)
    nodes = model["included"].owner.op.dist_params(model["included"].owner)[0]
    np.testing.assert_array_equal(nodes.data, [0.6, 0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize("smoothness", [-1.0, np.nan, np.inf, "smooth"])
def test_smoothness_is_a_number_from_zero_up(smoothness):
    with pytest.raises(ValueError, match="`smoothness` must be a number from 0 up"):
        locally_constant_gaussian_graphical(frame(), smoothness=smoothness)


@pytest.mark.parametrize(
    ("blocks", "options", "message"),
    [
        (None, {"rate": 2.0}, "`rate` goes with known blocks, give them as `blocks`"),
        (BLOCKS, {"max_blocks": 3}, "`max_blocks` goes with unknown blocks, without `blocks`"),
        (BLOCKS, {"block_rate": 0.0}, "block_rate"),
        (BLOCKS, {"norm": "nuklear"}, "unknown norm"),
        (None, {"max_blocks": 0}, "max_blocks"),
        (None, {"between": (0.0, 1.0)}, "`between` must be above 0"),
        (None, {"within": (1.0,)}, "`within` must be the two shapes"),
    ],
)
def test_wrong_options_of_blocks(blocks, options, message):
    with pytest.raises(ValueError, match=message):
        blockwise_gaussian_graphical(frame(), blocks, **options)


@pytest.mark.chain
def test_unknown_blocks_are_found():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 6))
    x[:, :3] += rng.normal(size=(200, 1))
    x[:, 3:] += rng.normal(size=(200, 1))
    with blockwise_gaussian_graphical(x, slab_scale=0.5):
        idata = pm.sample(200, tune=200, **QUIET)
        mode = bs.find_MAP(tol=1e-6)
    together = bs.co_clustering(idata, var_name="block").to_numpy()
    wanted = np.kron(np.eye(2), np.ones((3, 3)))
    np.testing.assert_allclose(together, wanted, atol=0.2)
    assert mode["block"].tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.chain
def test_node_table():
    x = frame()
    rng = np.random.default_rng(3)
    x["four"], x["five"] = rng.normal(size=(2, len(x)))
    with node_selection_gaussian_graphical(x):
        idata = pm.sample(200, tune=100, **QUIET)
    table = bs.node_table(idata)
    assert set(table["node"]) == {*x.columns}
    on = idata["posterior"]["included"].mean(("chain", "draw")).to_series()
    np.testing.assert_allclose(table.set_index("node")["probability"][on.index], on)
    edges = idata["posterior"]["edge"].sum("pair").mean().item()
    assert table["degree"].sum() == pytest.approx(2 * edges)
    assert (table["connected"] <= table["probability"] + 1e-12).all()
    assert set(table["node"][-2:]) <= {"four", "five", *NAMES}
    with pytest.raises(ValueError, match="no indicators of nodes"):
        bs.node_table(idata, group="prior")


CHAIN = [(i, i + 1) for i in range(P - 1)]


def chain_penalty(K):
    total = 0.0
    for a, b in CHAIN:
        others = [i for i in range(P) if i not in (a, b)]
        total = total + np.abs(K[:, a, others] - K[:, b, others]).sum(-1)
    return 0.4 * total


def nuclear_penalty(K):
    """Of the model's prior relative to that of independent elements, which all have the rate 1."""
    between = K[:, :3, 3:]
    norms = np.linalg.svd(between, compute_uv=False).sum(-1)
    return 1.5 * np.sqrt(3.0) * norms - np.abs(between).sum((1, 2))  # never negative


CALIBRATED = {
    "chain": (
        chain_penalty,
        lambda x: locally_constant_gaussian_graphical(x, smoothness=0.4, standardize=False),
    ),
    "nodes": (
        lambda K: 0.5 * np.linalg.norm(K - K * np.eye(P), axis=2).sum(1),
        lambda x: node_selection_gaussian_graphical(
            x, prior="laplace", node_rate=0.5, standardize=False
        ),
    ),
    "nuclear": (
        nuclear_penalty,
        lambda x: blockwise_gaussian_graphical(
            x, list("aaabb"), norm="nuclear", block_rate=1.5, standardize=False
        ),
    ),
}
PAIRS = np.triu_indices(P, 1)


def weights(K):
    d = np.diagonal(K, axis1=-2, axis2=-1)
    return -K[..., PAIRS[0], PAIRS[1]] / np.sqrt(d[..., PAIRS[0]] * d[..., PAIRS[1]])


@pytest.mark.calibration
@pytest.mark.parametrize("name", CALIBRATED)
def test_calibration(name, full):
    penalty, build = CALIBRATED[name]
    pool = []

    def simulate(rng):
        if not pool:
            pool.extend(penalised_prior(rng, 300, P, penalty))
        K, mean = pool.pop(), rng.normal(size=P)
        rows = rng.multivariate_normal(mean, np.linalg.inv(K), size=20)
        return {"weight": weights(K), "mean": mean, "log_det": np.linalg.slogdet(K)[1]}, rows

    assert_calibrated(simulate, fitter(build), simulations=300 if full else 6, seed=1)


def fitter(build, tune=40, draws=120):
    """The steps alone, on the very model that users get."""

    def fit(rows, rng):
        model = build(rows)
        with model:
            named = {v.name: v for v in model.free_RVs}
            nodes = [NodeInclusionGibbs([named.pop("included")])] if "included" in named else []
            steps = [*nodes, PrecisionGibbs(list(named.values()))]
        for step in steps:
            step.setup_chain(rng, tune, draws)
        point, kept = model.initial_point(int(rng.integers(2**31))), []
        for t in range(tune + draws):
            for step in steps:
                point, _ = step.step(point)
            if t >= tune:
                kept.append(point)
        K = np.array([unpack_cholesky(q["precision_cholesky-cov__"], P)[0] for q in kept])
        out = {"weight": weights(K), "mean": np.array([q["mean"] for q in kept])}
        out["log_det"] = np.linalg.slogdet(K)[1]
        if nodes:
            out["nodes"] = np.array([q["included"] for q in kept])
            out["edges"] = np.array([q["edge"].sum() for q in kept])
        return out

    return fit


@pytest.mark.calibration
@pytest.mark.filterwarnings(
    "ignore:Columns .* depend on each other so strongly"
)  # as some draws of the prior do
def test_calibration_of_included_nodes(full):
    pool = []

    def fill(rng):
        while len(pool) < 200:
            z = rng.random(P) < 0.5
            edge = (rng.random((P, P)) < 0.5) & np.outer(z, z)
            values = rng.normal(size=(P, P)) * np.where(edge, 0.8, 0.1)
            K = np.triu(values, 1) + np.triu(values, 1).T + np.diag(rng.exponential(2.0, P))
            if np.linalg.eigvalsh(K)[0] > 0:
                pool.append((z, np.triu(edge, 1).sum(), K))

    def simulate(rng):
        if not pool:
            fill(rng)
        z, edges, K = pool.pop()
        mean = rng.normal(size=P)
        rows = rng.multivariate_normal(mean, np.linalg.inv(K), size=20)
        truth = {"weight": weights(K), "mean": mean, "log_det": np.linalg.slogdet(K)[1]}
        return truth | {"nodes": z.astype(int), "edges": edges}, rows

    def build(x):
        return node_selection_gaussian_graphical(
            x, spike_scale=0.1, slab_scale=0.8, standardize=False
        )

    assert_calibrated(simulate, fitter(build), simulations=300 if full else 6, seed=1)


def test_other_units_are_refused():
    table = np.random.default_rng(0).normal(size=(30, 3))
    for name in ("blockwise", "node_selection", "locally_constant"):
        model = getattr(bs.models, f"{name}_gaussian_graphical")
        with pytest.raises(ValueError, match="`standardize` must be True or False, it is 'cond"):
            model(table, standardize="conditional")
