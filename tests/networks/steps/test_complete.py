"""The step of Bayesian networks against enumeration and by its joint distribution."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from tools.batches import batch_means, mean_and_error
from tools.dags import dag_posterior
from tools.geweke import assert_geweke

import bayesstruct as bs

from bayesstruct.models import bayesian_network
from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.kernels.dag_priors import ParentPrior
from bayesstruct.networks.kernels.dags import topological_order
from bayesstruct.networks.kernels.order_search import best_graph
from bayesstruct.networks.kernels.parameters import GaussianPrior, draw_regressions, rows_times_rows
from bayesstruct.networks.kernels.parent_tables import parent_tables
from bayesstruct.networks.kernels.prior_draws import draw_uniform_dags
from bayesstruct.networks.kernels.samplers.partition_mcmc import Moves, sweep
from bayesstruct.networks.kernels.scores.gaussian import BGe
from bayesstruct.networks.solvers.candidate_parents import candidate_parents
from bayesstruct.steps import NetworkMCMC


def chain(model, draws, seed=0, **options):
    with model:
        step = NetworkMCMC(model.value_vars, **options)
    step.setup_chain(np.random.default_rng(seed), 0, draws)
    point, kept = model.initial_point(), []
    for _ in range(draws + 20):
        point, _ = step.step(point)
        kept.append(point)
    return kept[20:]


def normal_table():
    rng = np.random.default_rng(0)
    a, c = rng.normal(size=(2, 60))
    b = 0.5 * a + rng.normal(size=60)
    e = 0.4 * b + 0.4 * c + rng.normal(size=60)
    return pd.DataFrame({"a": a, "b": b, "c": c, "e": e})


def state_table():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2, 50), rng.integers(0, 3, 50)
    c = np.where(rng.random(50) < 0.6, (a + b) % 2, rng.integers(0, 2, 50))
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": rng.integers(0, 2, 50)})


SET = pd.DataFrame({"b": np.arange(60) < 15})
CASES = {
    "bge": (normal_table, {"score": "bge"}),
    "set": (normal_table, {"score": "bge", "interventions": SET, "prior": "fair"}),
    "bdeu": (state_table, {"score": "bdeu", "required": [("a", "c")], "max_parents": 2}),
}


@pytest.mark.statistical
@pytest.mark.parametrize("candidates", [None, 3], ids=["independent", "chain"])
@pytest.mark.parametrize("name", CASES)
def test_graphs_have_their_exact_posterior(name, candidates):
    data, options = CASES[name]
    model = bayesian_network(data(), **options)
    exact = bs.exact.dag_posterior(data(), **options).arc_probabilities.to_numpy()
    graphs = np.array([p["dag"] for p in chain(model, 6000, candidates=candidates)], float).reshape(
        1, -1, 16
    )
    means = batch_means(graphs, 60)
    error = means.std(axis=0, ddof=1) / np.sqrt(60)
    z = (graphs.mean(axis=(0, 1)) - exact.ravel()) / np.maximum(error, 1e-3)
    assert np.abs(z).max() < 4.5  # 12 arcs


@pytest.mark.chain
def test_candidates_with_one_more_parent_find_the_same():
    data = normal_table()
    full = np.mean([p["dag"] for p in chain(bayesian_network(data), 4000)], axis=0)
    model = bayesian_network(data)
    some = np.mean([p["dag"] for p in chain(model, 4000, candidates=2)], axis=0)
    assert np.abs(full - some).max() < 0.06  # sets of three parents are rare


N, D, PRIOR = 2, 3, GaussianPrior(1.0, 5.0, 0.5)


def draw_rows(rng, graph, intercept, weight, variance):
    x = np.zeros((N, D))
    for i in topological_order(graph):
        noise = np.sqrt(variance[i]) * rng.normal(size=N)
        x[:, i] = intercept[i] + x @ weight[i] + noise
    return x


def forward(rng):
    graph = draw_uniform_dags(rng, D)[0]
    parents = graph.sum(axis=0)
    shape = 0.5 * (PRIOR.alpha_w - D + parents + 1)
    variance = 0.5 * PRIOR.scale / rng.standard_gamma(shape)
    weight = np.sqrt(variance / PRIOR.scale)[:, None] * rng.normal(size=(D, D)) * graph.T
    intercept = np.sqrt(variance / PRIOR.alpha_mu) * rng.normal(size=D)
    return graph, intercept, weight, variance, draw_rows(rng, graph, intercept, weight, variance)


def transition(drawn):
    everything = np.ones((N, D), bool)

    def move(rng, state):
        graph, x = state[0].copy(), state[-1]
        problem = NetworkProblem(("a", "b", "c"), BGe(x), ParentPrior(D))
        tables = parent_tables(problem, None, [[1, 2], [0, 2], [0, 1]], plus_one=False)
        sweep(rng, tables, graph, Moves(2, 1, 1, 1))
        weight, intercept, variance = np.empty((D, D)), np.empty(D), np.empty(D)
        moments = rows_times_rows(x, everything)
        draw_regressions(rng, graph, *moments, drawn, intercept, weight, variance)
        return (
            graph,
            intercept,
            weight,
            variance,
            draw_rows(rng, graph, intercept, weight, variance),
        )

    return move


def statistics(state):
    graph, intercept, weight, variance, x = state
    bounded = np.tanh(x)  # tails are long
    out = {f"arc {i}{j}": graph[i, j] for i in range(D) for j in range(D) if i != j}
    out |= {"arcs": graph.sum(), "squares": graph.sum() ** 2}
    out |= {f"v {i}": np.log(v) for i, v in enumerate(variance)}
    out |= {f"v2 {i}": np.log(v) ** 2 for i, v in enumerate(variance)}
    out |= {f"w {i}": w for i, w in enumerate(np.tanh(weight).sum(axis=1))}
    out |= {f"w2 {i}": w for i, w in enumerate((np.tanh(weight) ** 2).sum(axis=1))}
    out |= {f"a2 {i}": np.tanh(a) ** 2 for i, a in enumerate(intercept)}
    out |= {f"x2 {i}": m for i, m in enumerate((bounded**2).mean(axis=0))}
    out["xx"] = (bounded[:, 0] * bounded[:, 1]).mean()
    out["w xx"] = np.tanh(weight[1, 0]) * out["xx"]
    return out


@pytest.mark.statistical
def test_graph_parameters_and_rows_have_their_joint_distribution():
    assert_geweke(forward, transition(PRIOR), statistics, draws=6000, batches=60)


@pytest.mark.statistical
def test_a_wrong_shape_of_the_variances_breaks_it():
    wrong = PRIOR._replace(alpha_w=PRIOR.alpha_w + 1.0)
    with pytest.raises(AssertionError, match="worst z"):
        assert_geweke(forward, transition(wrong), statistics, draws=6000, batches=60)


def test_tables_have_their_distribution_given_the_graph():
    data = state_table()
    points = chain(bayesian_network(data, score="bdeu", max_parents=1), 3000)
    alone = np.array([p["table"][3, :2] for p in points if not p["dag"][:, 3].any()])
    counts = np.bincount(data["d"], minlength=2) + 0.5
    mean = counts[1] / counts.sum()
    assert len(alone) > 500
    spread = np.sqrt(mean * (1 - mean) / (counts.sum() + 1))
    assert alone[:, 1].mean() == pytest.approx(mean, abs=4 * spread / np.sqrt(len(alone)))
    assert alone[:, 1].std() == pytest.approx(spread, rel=0.15)


def eighty_variables(rng):
    x = rng.normal(size=(100, 80))
    for j in range(2, 80):
        x[:, j] += x[:, rng.choice(j, 2, replace=False)] @ [0.5, -0.4]
    return (x - x.mean(axis=0)) / x.std(axis=0)


@pytest.mark.chain
def test_a_run_of_eighty_variables_that_is_too_short_says_so():
    """A thousand iterations of a few moves each, as published samplers count them."""
    score = BGe(eighty_variables(np.random.default_rng(0)))
    tables = parent_tables(score, ParentPrior(80, kind="edge"), candidate_parents(score, 2))
    graphs = np.empty((2, 1000, 80, 80), np.int8)
    for seed, kept in enumerate(graphs):
        rng = np.random.default_rng(seed)
        graph = best_graph(tables, rng, climbs=1)[0]
        for draw in kept:
            sweep(rng, tables, graph, Moves(1, 1, 1, 1))
            draw[:] = graph
    rows = bs.check(dag_posterior(graphs, weighted=False)).rows
    assert len(rows) == 3  # number of arcs, distance to the median graph, worst arc
    assert not any(row.ok for row in rows)
    assert all(row.ess_bulk < 200 for row in rows)
    assert max(row.r_hat for row in rows) > 1.05


@pytest.mark.statistical
def test_twelve_columns_and_few_rows_have_their_exact_arcs():
    """Large parent sets with little probability each: no short list of candidates has them."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(30, 12))
    for j in range(1, 12):
        x[:, j] += 0.7 * x[:, rng.integers(j)]
    data = pd.DataFrame({f"v{j}": pd.qcut(x[:, j], 2 + j % 2, labels=False) for j in range(12)})
    options = {"score": "bdeu", "prior": "edge"}
    exact = bs.exact.dag_posterior(data, **options).arc_probabilities.to_numpy()
    points = chain(bayesian_network(data, **options), 3000)
    graphs = np.array([p["dag"] for p in points], float)
    wide = graphs.sum(axis=1) >= 4
    assert wide.mean(axis=0).max() > 0.02
    mean, error, _ = mean_and_error(graphs.reshape(len(graphs), -1), 30)
    error = np.maximum(error, np.sqrt(exact.ravel() * (1 - exact.ravel()) / len(graphs)) + 1e-4)
    assert np.abs((mean - exact.ravel()) / error).max() < 4.5


@pytest.mark.chain
@pytest.mark.parametrize(("short", "ok"), [(True, [False]), (False, [])])
def test_parents_outside_of_the_candidates_are_said(monkeypatch, short, ok):
    """Each column depends on the four before it: with one candidate and one more the others are left out."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(60, 9))
    for j in range(4, 9):
        x[:, j] += 0.3 * x[:, j - 4 : j].sum(axis=1)

    def one_candidate(problem, *, size):
        return parent_tables(problem, None, [[(i + 1) % 9] for i in range(9)])

    if short:
        monkeypatch.setattr("bayesstruct.networks.steps.graphs.search_tables", one_candidate)
    with bayesian_network(pd.DataFrame(x).add_prefix("v")) as model:
        step = NetworkMCMC(model.free_RVs, candidates=1)
        idata = pm.sample(
            200,
            tune=50,
            chains=2,
            cores=1,
            step=step,
            random_seed=2,
            progressbar=False,
            compute_convergence_checks=False,
        )
    rows = [row for row in bs.check(idata).rows if "outside of the candidates" in row.quantity]
    assert [row.ok for row in rows] == ok
    assert all("more candidates" in row.verdict for row in rows)


@pytest.mark.chain
def test_pm_sample_assigns_it():
    with bayesian_network(normal_table().iloc[:, :3], required=[("a", "b")]):
        idata = pm.sample(
            100,
            tune=10,
            chains=2,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    assert {"n_arcs", "log_score", "acceptance"} <= set(idata["sample_stats"].data_vars)
    assert (idata["posterior"]["arc"].sel(ordered_pair="a -> b") == 1).all()
    dag = idata["posterior"]["dag"].values
    weight = idata["posterior"]["weight"].values
    source, target = (idata["constant_data"][f"arc_{end}"].values for end in ("source", "target"))
    assert ((weight != 0) == (dag[..., source, target] == 1)).all()


def test_what_is_not_recognised_is_said():
    data = normal_table()
    with bayesian_network(data) as model:
        pm.Normal("y", model["dag"].sum(), 1.0, observed=0.0)
    with model, pytest.raises(ValueError, match="'y' depends on 'dag'"):
        NetworkMCMC([model["dag"], model["weight"], model["intercept"], model["noise_variance"]])
    with bayesian_network(data) as model, pytest.raises(ValueError, match="must be drawn by one"):
        NetworkMCMC([model["dag"]])
    with pm.Model() as lonely:
        dag = bs.DAG("dag", 3)
    with lonely, pytest.raises(ValueError, match="0 tables"):
        NetworkMCMC([dag])
