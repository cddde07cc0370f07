"""Exact posteriors over graphs: against enumeration of all 543 on 4 variables, draws, refusals."""

import numpy as np
import pandas as pd
import pytest

from scipy.special import logsumexp
from tools.random_scores import RandomScore, enumerated, probabilities

from bayesstruct.data.errors import TableError
from bayesstruct.exact import dag_posterior
from bayesstruct.networks.data.arcs import parent_prior
from bayesstruct.networks.exact.problem import network_problem
from bayesstruct.networks.kernels.dags import all_dags, is_acyclic
from bayesstruct.networks.kernels.scores.discrete import BDeu

NAMES = ["a", "b", "c", "d"]
PRIORS = {
    "uniform": {},
    "edge": {"prior": "edge", "edge_probability": 0.2},
    "fair": {"prior": "fair", "max_parents": 2},
    "order": {"prior": "order"},
    "order fair": {"prior": "order", "weights": "fair", "max_parents": 2},
    "order edge": {"prior": "order", "edge_probability": 0.3},
    "constrained": {"required": [("a", "b")], "forbidden": [("c", "d"), ("d", "a")]},
    "tiers": {"prior": "order", "tiers": [["a", "c"], ["b", "d"]]},
}


def weighted(graphs, weights):
    return np.einsum("g,gij->ij", probabilities(weights), graphs)


def blankets(graph):
    near = graph | graph.T | (graph @ graph.T)
    return (near > 0) & ~np.eye(len(graph), dtype=bool)


def paths(graph):
    reach = graph
    for _ in range(len(graph)):
        reach = reach | (reach @ graph > 0)
    return reach > 0


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_posterior_is_that_of_the_enumeration(name, scale):
    score = RandomScore(4, 1, scale)
    posterior = dag_posterior(score, names=NAMES, **PRIORS[name])
    problem = posterior.problem
    graphs, weights, prior = enumerated(score, problem.prior, problem.order)
    # Sums of a few hundred doubles.
    arcs = weighted(graphs, weights)
    np.testing.assert_allclose(posterior.arc_probabilities, arcs, atol=1e-12)
    np.testing.assert_allclose(posterior.log_total, logsumexp(weights), rtol=1e-12)
    evidence = logsumexp(weights) - logsumexp(prior)
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["uniform", "order"])
def test_scores_far_apart_neither_overflow_nor_vanish(name):
    # Log weights spread over 30,000, those of a variable and a layer included: sums in logarithms of
    # that size are right to 1e-12 * 30,000 / 700 or so.
    score = RandomScore(4, 2, scale=5_000.0)
    posterior = dag_posterior(score, **PRIORS[name])
    graphs, weights, _ = enumerated(score, posterior.problem.prior, posterior.problem.order)
    np.testing.assert_allclose(posterior.arc_probabilities, weighted(graphs, weights), atol=1e-10)


def test_parents_that_cost_a_lot_and_are_required_count():
    # Variable 1 must be a child of 0, which costs 2,000, and 2 of 1, where others are better by 3,000.
    score = RandomScore(4, 3, scale=1.0)
    score.table[1, [0b0000, 0b0100, 0b1000, 0b1100]] = -np.inf
    score.table[1, [0b0001, 0b0101, 0b1001, 0b1101]] -= 2_000.0
    score.table[2, [0b0000, 0b0001, 0b1000, 0b1001]] += 3_000.0
    for options in ({"required": [("x1", "x2")]}, {"prior": "order", "required": [("x1", "x2")]}):
        posterior = dag_posterior(score, **options)
        problem = posterior.problem
        graphs, weights, _ = enumerated(score, problem.prior, problem.order)
        np.testing.assert_allclose(posterior.log_total, logsumexp(weights), rtol=1e-13)
        arcs = weighted(graphs, weights)
        np.testing.assert_allclose(posterior.arc_probabilities, arcs, atol=1e-11)


@pytest.mark.parametrize("name", ["uniform", "constrained", "order", "tiers"])
def test_draws_have_the_posterior_probabilities(name):
    score = RandomScore(4, 4, scale=1.0)
    posterior = dag_posterior(score, names=NAMES, **PRIORS[name])
    problem = posterior.problem
    graphs, weights, _ = enumerated(score, problem.prior, problem.order)
    draws = posterior.sample(20_000, random_seed=5)
    values, counts = np.unique(draws.reshape(-1, 16), axis=0, return_counts=True)
    seen = {tuple(v): c / len(draws) for v, c in zip(values.tolist(), counts, strict=True)}
    chance = probabilities(weights)
    shares = [seen.pop(tuple(g.ravel().tolist()), 0.0) for g in graphs]
    assert not seen  # nothing but graphs of the enumeration
    # 543 shares, each within 5 standard errors.
    errors = np.sqrt(np.maximum(chance, 1e-4) / len(draws))
    assert (abs(shares - chance) < 5 * errors).all()
    assert (draws == posterior.sample(20_000, random_seed=5)).all()


@pytest.mark.parametrize("name", ["fair", "order fair"])
def test_paths_and_blankets_by_enumeration(name):
    score = RandomScore(4, 6)
    posterior = dag_posterior(score, names=NAMES, **PRIORS[name])
    problem = posterior.problem
    graphs, weights, _ = enumerated(score, problem.prior, problem.order)
    features = posterior.path_probabilities(), posterior.blanket_probabilities()
    for feature, defined in zip(features, (paths, blankets), strict=True):
        truth = weighted(np.array([defined(graph) for graph in graphs]), weights)
        assert feature.exact and not feature.standard_errors.to_numpy().any()
        np.testing.assert_allclose(feature.probabilities, truth, atol=1e-12)
        assert feature.probabilities.index.tolist() == NAMES


def test_paths_and_blankets_by_draws():
    # A chain that is certain: its paths and blankets are known.
    score = RandomScore(6, 7, scale=0.0)
    for i in range(1, 6):
        score.table[i, 1 << (i - 1)] = 200.0
    score.table[0, 0] = 200.0
    posterior = dag_posterior(score)
    chain = np.eye(6, k=1, dtype=int)
    np.testing.assert_allclose(posterior.arc_probabilities, chain, atol=1e-12)
    path = posterior.path_probabilities(50, random_seed=8)
    assert not path.exact
    assert (path.probabilities.to_numpy() == np.triu(np.ones((6, 6)), 1)).all()
    assert (posterior.blanket_probabilities(50, 8).probabilities == chain + chain.T).all(axis=None)
    # Smoothed: one more of each outcome than was seen.
    np.testing.assert_allclose(path.standard_errors.iloc[0, 1], np.sqrt(51 / 52 / 52 / 50))


@pytest.mark.parametrize("prior", ["uniform", "order"])
def test_more_variables_than_can_be_enumerated(prior):
    # Seven variables, of which the last three are independent of the others and of one another.
    small, d = RandomScore(4, 9), 7
    score = RandomScore(d, 0, scale=0.0)
    score.table[:4] = np.tile(small.table, 2 ** (d - 4))
    forbidden = [(f"x{j}", f"x{i}") for j in range(d) for i in range(d) if i != j and max(i, j) > 3]
    posterior = dag_posterior(score, prior=prior, forbidden=forbidden)
    few = dag_posterior(small, prior=prior)
    arcs = posterior.arc_probabilities.iloc[:4, :4]
    np.testing.assert_allclose(arcs, few.arc_probabilities, atol=1e-12)
    draws = posterior.sample(200, 10)
    assert all(is_acyclic(graph) for graph in draws)
    assert not draws[:, 4:].any()
    np.testing.assert_allclose(posterior.log_evidence, few.log_evidence, atol=1e-11)


@pytest.mark.parametrize(
    ("kind", "options"), [("bge", {}), ("bdeu", {"equivalent_sample_size": 2.0})]
)
def test_tables_are_scored(kind, options):
    rng = np.random.default_rng(11)
    values = rng.normal(size=(60, 4))
    values[:, 1] += values[:, 0]
    table = pd.DataFrame(values if kind == "bge" else (values > 0) * 1, columns=NAMES)
    mask = pd.DataFrame({"c": np.arange(60) < 20})
    posterior = dag_posterior(table, score=kind, interventions=mask, **options)
    problem = network_problem(table, score=kind, interventions=mask, **options)
    assert problem.score.n_rows.tolist() == [60, 60, 40, 60]
    graphs, weights, _ = enumerated(problem.score, problem.prior)
    np.testing.assert_allclose(posterior.arc_probabilities, weighted(graphs, weights), atol=1e-10)
    evidence = logsumexp(weights) - np.log(len(all_dags(4)))
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-11)


def test_required_and_forbidden_arcs_have_probabilities_one_and_zero():
    arcs = dag_posterior(RandomScore(4, 12), names=NAMES, **PRIORS["constrained"]).arc_probabilities
    np.testing.assert_allclose(arcs.loc["a", "b"], 1.0, rtol=1e-12)
    assert arcs.loc["c", "d"] == arcs.loc["d", "a"] == arcs.loc["b", "a"] == 0.0


def test_tiers_by_number_are_tiers_by_group():
    grouped = parent_prior(NAMES, tiers=[["b"], ["a", "d"], "c"])
    numbered = parent_prior(NAMES, tiers={"b": 1, "a": 2, "d": 2, "c": 5})
    assert (grouped.allowed == numbered.allowed).all()
    assert grouped.allowed.sum() == 3 + 2 + 2


def test_probabilities_of_arcs_are_aligned_by_name():
    frame = pd.DataFrame(np.arange(16).reshape(4, 4) / 20, NAMES, NAMES)
    prior = parent_prior(NAMES, "edge", edge_probability=frame.iloc[::-1, [2, 0, 1, 3]])
    assert prior.probability[0, 1] == 1 / 20 and prior.probability[2, 3] == 11 / 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": "flat"}, "unknown prior 'flat'"),
        ({"weights": "fair"}, "belongs to the prior 'order'"),
        ({"edge_probability": 0.2}, "belongs to the prior 'edge'"),
        (
            {"required": [("a", "b")], "forbidden": [("a", "b")]},
            "a -> b is required, and forbidden",
        ),
        ({"required": [("a", "b"), ("b", "a")]}, "form a cycle"),
        ({"required": [("a", "z")]}, "is not a pair of columns"),
        ({"forbidden": [("a", "a")]}, "joins a column with itself"),
        ({"tiers": [["a", "b"], ["c"]]}, "leaves out column 'd'"),
        ({"tiers": [["a", "b", "e"], ["c", "d"]]}, "unknown column 'e'"),
        ({"tiers": [["a", "b"], ["b", "c", "d"]]}, "more than one tier"),
        ({"required": 5}, "`required` is a list of pairs"),
        ({"forbidden": "ab"}, "`forbidden` is a list of pairs"),
        ({"required": ["ab"]}, "'ab' is not a pair of columns"),
        ({"required": ("a", "b")}, r"for one arc pass required=\[\('a', 'b'\)\]"),
        ({"forbidden": {"a": "b"}}, r"not a dict: pass list\(arcs.items\(\)\)"),
        ({"required": pd.DataFrame({"from": ["a"], "to": ["b"]})}, "not a DataFrame: pass list"),
        ({"tiers": {"a": 0, "b": 1, "c": "late", "d": 2}}, "that of 'c' is 'late'"),
        ({"tiers": {"a": 0, "b": np.inf, "c": 1, "d": 2}}, "that of 'b' is inf"),
        ({"tiers": "abcd"}, "`tiers` is a list of groups"),
        ({"tiers": [0, 1, 1, 2]}, "`tiers` has 0 where a group"),
        ({"max_parents": True}, "`max_parents` must be a whole number"),
        ({"equivalent_sample_size": 1.0}, "a score that"),
        ({"pseudo_count": 1.0}, "a score that is made from a table"),
        ({"names": ["a", "b"]}, "for 4 variables"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        dag_posterior(RandomScore(4, 0), **{"names": NAMES} | options)


def test_refusals_of_tables():
    rng = np.random.default_rng(13)
    table = pd.DataFrame(rng.normal(size=(20, 3)), columns=list("abc"))
    with pytest.raises(ValueError, match="unknown score 'bdo'"):
        dag_posterior(table, score="bdo")
    with pytest.raises(TypeError, match="unknown option 'ess'"):
        dag_posterior(table, score="bdeu", ess=2.0)
    with pytest.raises(TypeError, match="did you mean 'score'"):
        dag_posterior(table, scores="bge")
    with pytest.raises(TypeError, match="`pseudo_count` belongs to the score 'bde'"):
        dag_posterior(table, pseudo_count=2.0)
    with pytest.raises(ValueError, match="names of its columns"):
        dag_posterior(table, names=NAMES[:3])
    with pytest.raises(TableError, match="'a' holds numbers that are not whole"):
        dag_posterior(table, score="bdeu")
    with pytest.raises(ValueError, match="`interventions` has shape"):
        dag_posterior(table, interventions=np.zeros((3, 3), bool))
    with pytest.raises(TableError, match="unknown column 'z'"):
        dag_posterior(table, interventions=pd.DataFrame({"z": np.zeros(20, bool)}))
    with pytest.raises(TableError, match="column 'b': values are missing"):
        dag_posterior(table.assign(b=table["b"].where(table["b"] < 1, np.nan)))
    states = pd.DataFrame(rng.integers(0, 3, (30, 3)), columns=list("abc"))
    with pytest.raises(TableError, match="more than two values"):
        dag_posterior(states, score="logistic")


def test_too_many_variables_are_told_where_to_go():
    score = RandomScore(2, 0)
    score.d = 20
    with pytest.raises(TableError, match=r'prior="order".*bayesian_network'):
        dag_posterior(score)
    score.d = 23
    with pytest.raises(TableError, match=r"at most 22.*bayesian_network"):
        dag_posterior(score, prior="order")


def test_impossible_scores_are_refused():
    score = RandomScore(3, 14)
    score.table[1] = -np.inf
    with pytest.raises(ValueError, match="no graph has positive probability"):
        dag_posterior(score)
    score.table[1] = np.nan
    with pytest.raises(ValueError, match="'x1' is not a number"):
        dag_posterior(score, prior="order")


def test_no_constraints_may_be_none():
    prior = parent_prior(NAMES, required=None, forbidden=None)
    assert not prior.required.any() and prior.allowed.sum() == 12


def test_labels_that_are_numbers_are_those_of_the_table():
    table = pd.DataFrame(np.random.default_rng(15).normal(size=(30, 3)))
    mask = pd.DataFrame(np.arange(90).reshape(30, 3) % 7 == 0, columns=table.columns)
    q = pd.DataFrame(np.full((3, 3), 0.2), table.columns, table.columns)
    options = {"tiers": {0: 0, 1: 0, 2: 1}, "prior": "edge", "edge_probability": q}
    arcs = dag_posterior(table, interventions=mask, required=[(0, 1)], **options).arc_probabilities
    assert arcs.loc["0", "1"] == pytest.approx(1.0)
    assert parent_prior([0, 1, 2], tiers=[[0, 2], [1]]).allowed.sum() == 4


@pytest.mark.parametrize("kind", ["bge", "bdeu"])
def test_the_size_of_the_prior_has_the_name_of_the_model(kind):
    values = np.random.default_rng(16).normal(size=(30, 3))
    table = values if kind == "bge" else (values > 0) * 1
    named = dag_posterior(table, score=kind, equivalent_sample_size=5)
    if kind == "bge":
        assert named.log_total == dag_posterior(table, score=kind, alpha_mu=5.0).log_total
        with pytest.raises(ValueError, match="are the same; give one"):
            dag_posterior(table, score=kind, equivalent_sample_size=5, alpha_mu=5.0)
    else:
        score = BDeu(table, equivalent_sample_size=5.0)
        assert named.log_total == dag_posterior(score).log_total
    with pytest.raises(ValueError, match="must be a positive number"):
        dag_posterior(table, score=kind, equivalent_sample_size="1")
    with pytest.raises(ValueError, match="belongs to the scores 'bge' and 'bdeu'"):
        dag_posterior(table, score="gaussian", equivalent_sample_size=5)
