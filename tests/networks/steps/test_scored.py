"""Steps of networks by BIC and BDe scores and under the prior of orders, against exact posteriors."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from tools.batches import batch_means

import bayesstruct as bs

from bayesstruct.distributions import FittedGaussianNetwork, fitted
from bayesstruct.models import bayesian_network
from bayesstruct.networks.kernels.dags import all_dags
from bayesstruct.networks.kernels.fits import GaussianFit, LogisticFit, MultinomialFit
from bayesstruct.steps import NetworkMCMC, OrderNetworkMCMC, ScoredNetworkMCMC

SET = pd.DataFrame({"b": np.arange(60) < 15})
FREE = np.ones((60, 4), bool)
FREE[:15, 1] = False


def numbers():
    rng = np.random.default_rng(0)
    a, c = rng.normal(size=(2, 60))
    b = 0.5 * a + rng.normal(size=60)
    e = 0.4 * b + 0.4 * c + rng.normal(size=60)
    return pd.DataFrame({"a": a, "b": b, "c": c, "e": e})


def words():
    return (numbers() > 0).replace({True: "yes", False: "no"})


WORDS = words()


def chain(step, model, draws):
    step.setup_chain(np.random.default_rng(1), 0, draws)
    point, kept = model.initial_point(), []
    for _ in range(draws):
        point, _ = step.step(point)
        kept.append(point["dag"])
    return np.array(kept)


def assert_arcs(graphs, exact):
    values = graphs.astype(float).reshape(1, -1, 16)
    error = batch_means(values, 40).std(axis=0, ddof=1) / np.sqrt(40)
    z = (values.mean(axis=(0, 1)) - exact.to_numpy().ravel()) / np.maximum(error, 2e-3)
    assert np.abs(z).max() < 4.5  # 12 arcs


SCORES = {"gaussian": numbers, "multinomial": words, "logistic": words, "bde": words}


@pytest.mark.statistical
@pytest.mark.parametrize("prior", ["uniform", "order"])
@pytest.mark.parametrize("score", SCORES)
def test_graphs_have_their_exact_posterior(score, prior):
    data, options = SCORES[score](), {"score": score, "prior": prior, "interventions": SET}
    with bayesian_network(data, **options) as model:
        step = ScoredNetworkMCMC(model.value_vars)
    exact = bs.exact.dag_posterior(data, **options)
    assert_arcs(chain(step, model, 800), exact.arc_probabilities)


@pytest.mark.statistical
@pytest.mark.parametrize("candidates", [None, 3], ids=["independent", "chain"])
def test_the_prior_of_orders_is_drawn_exactly(candidates):
    data, options = numbers(), {"prior": "order", "interventions": SET}
    with bayesian_network(data, **options) as model:
        step = OrderNetworkMCMC(model.value_vars, candidates=candidates)
    exact = bs.exact.dag_posterior(data, **options)
    other = bs.exact.dag_posterior(data, interventions=SET)
    graphs = chain(step, model, 1500)
    assert_arcs(graphs, exact.arc_probabilities)
    with pytest.raises(AssertionError):
        assert_arcs(graphs, other.arc_probabilities)


@pytest.mark.parametrize(
    "fit",
    [
        GaussianFit(numbers().to_numpy(), FREE),
        MultinomialFit((words() == "yes").to_numpy().astype(int), (2, 2, 2, 2), FREE, 16),
        LogisticFit((words() == "yes").to_numpy().astype(int), FREE, 16),
    ],
    ids=["gaussian", "multinomial", "logistic"],
)
def test_likelihood_and_price_are_the_score(fit):
    for graph in all_dags(4)[::60]:
        *estimates, price = fit.compute(graph)
        if isinstance(fit, GaussianFit):
            intercept, matrix, variance = estimates
            r = fit.z - intercept - fit.z @ matrix.T
            terms = -0.5 * (r**2 / variance + np.log(2 * np.pi * variance))
        else:
            step = [[0] * 4 for _ in range(4)]
            for child in range(4):
                for k, parent in enumerate(np.flatnonzero(graph[:, child])):
                    step[parent][child] = 2**k
            cell = 2 * (fit.x @ np.array(step)) + fit.x
            terms = np.log(estimates[0][np.arange(4), cell])
        wanted = sum(fit.score.local(i, np.flatnonzero(graph[:, i])) for i in range(4))
        # The logistic regressions stop when a step promises less than 1e-9.
        assert terms[FREE].sum() + price == pytest.approx(wanted, abs=1e-7)


def test_separated_states_have_finite_parameters():
    x = np.repeat([[0, 0], [1, 1]], 20, axis=0)
    x[0, 0] = 1
    tables, _, price = LogisticFit(x, np.ones((40, 2), bool), 4).compute(np.array([[0, 1], [0, 0]]))
    assert np.isfinite(tables).all()
    assert np.isfinite(price)


@pytest.mark.parametrize("score", ["gaussian", "multinomial", "logistic"])
def test_the_density_is_the_score(score):
    data = SCORES[score]()
    model = bayesian_network(data, score=score, interventions=SET)
    logp = model.compile_logp(mode="FAST_COMPILE")
    problem = bs.exact.dag_posterior(data, score=score, interventions=SET).problem
    differences = [
        float(logp({"dag": g}))
        - sum(problem.score.local(i, np.flatnonzero(g[:, i])) for i in range(4))
        for g in all_dags(4)[::130]
    ]
    np.testing.assert_allclose(differences, differences[0], atol=1e-7)  # units and prior


@pytest.mark.chain
def test_results_are_read_as_others():
    data = numbers()
    with bayesian_network(data, score="bic", interventions=SET):
        idata = pm.sample(
            60,
            tune=2,
            chains=2,
            cores=1,
            progressbar=False,
            random_seed=1,
            compute_convergence_checks=False,
            compile_kwargs={"mode": "FAST_COMPILE"},
        )
        mode = bs.find_MAP()
    best = bs.solvers.optimal_dag(data, score="gaussian", interventions=SET)
    assert (mode["dag"] == best.adjacency).all()
    assert ((mode["weight"] != 0) == (mode["arc"] == 1)).all()
    assert bs.do(idata, {"a": 1.0}).loc["a", "mean"] == pytest.approx(1.0)
    assert len(bs.arc_table(idata)) == 12


def test_other_steps_and_other_parameters_are_refused():
    data = numbers()
    with bayesian_network(data, score="gaussian") as model:
        with pytest.raises(ValueError, match="cannot be drawn exactly"):
            NetworkMCMC(model.value_vars)
        pm.Normal("y", model["dag"].sum(), 1.0, observed=0.0)
        with pytest.raises(ValueError, match="'y' depends on 'dag'"):
            ScoredNetworkMCMC(model.value_vars)
    with pm.Model() as model:
        dag = bs.DAG("dag", 4)
        intercept, matrix, variance, price = fitted(GaussianFit(data.to_numpy(), FREE), dag)
        FittedGaussianNetwork("x", intercept, matrix, 2.0 * variance, price, observed=data)
        with pytest.raises(ValueError, match="not those fitted given 'dag'"):
            ScoredNetworkMCMC(model.value_vars)
    with bayesian_network(data, prior="order") as model:
        with pytest.raises(ValueError, match="there are 0 graphs"):
            NetworkMCMC(model.value_vars)


@pytest.mark.filterwarnings("ignore:Columns 'a' and 'b'. few whole numbers")
@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        ("words", {"score": "bdee"}, "did you mean 'bde'"),
        ("words", {"score": "bde", "equivalent_sample_size": 2.0}, "to the score 'bge' or 'bdeu'"),
        ("words", {"score": "bde", "pseudo_count": -1.0}, "`pseudo_count` must be a positive"),
        ("words", {"score": "multinomial", "pseudo_count": 1.0}, "belongs to the score 'bde'"),
        ("numbers", {"score": "logistic"}, "numbers that are not whole"),
        ("codes", {"score": "bic"}, "say score='multinomial' or score='gaussian'"),
        ("codes", {"score": "logistic"}, "more than two values"),
    ],
)
def test_scores_that_do_not_fit_are_refused(data, options, words):
    codes = pd.DataFrame(np.random.default_rng(0).integers(0, 3, (30, 2)), columns=["a", "b"])
    table = {"words": WORDS, "numbers": numbers(), "codes": codes}[data]
    with pytest.raises(ValueError, match=words):
        bayesian_network(table, **options)
