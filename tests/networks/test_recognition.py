"""The one recogniser of Bayesian networks in models."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import bayesstruct as bs

from bayesstruct.core.recognition import NotRecognized
from bayesstruct.data.errors import TableWarning
from bayesstruct.data.states import StateTable
from bayesstruct.data.table import Table
from bayesstruct.models import bayesian_network
from bayesstruct.networks.recognition.network import network_of
from bayesstruct.networks.recognition.parameters import parameters_of, problem_of

RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame(RNG.normal(size=(30, 3)), columns=list("abc"))
WORDS = pd.DataFrame(RNG.choice(["x", "y", "z"], (30, 3)), columns=list("abc"))
GAPS = {name: data.mask(np.eye(30, 3, k=-4) == 1) for name, data in [("n", NUMBERS), ("w", WORDS)]}
CASES = {
    "bge": (NUMBERS, {}, {"dag", "weight", "intercept", "noise_variance"}),
    "bdeu": (WORDS, {"score": "bdeu"}, {"dag", "table"}),
    "bde": (WORDS, {"score": "bde"}, {"dag", "table"}),
    "numbers": (NUMBERS, {"score": "bic"}, {"dag"}),
    "words": (WORDS, {"score": "bic"}, {"dag"}),
    "order": (NUMBERS, {"prior": "order"}, {"dag", "weight", "intercept", "noise_variance"}),
    "missing numbers": (
        GAPS["n"],
        {},
        {"dag", "weight", "intercept", "noise_variance", "x_missing"},
    ),
    "missing words": (GAPS["w"], {"score": "bdeu"}, {"dag", "table", "x_missing"}),
}


@pytest.mark.parametrize("name", CASES)
def test_networks_are_recognised_with_all_their_variables(name):
    data, options, variables = CASES[name]
    model = bayesian_network(data, **options)
    network = network_of(model, model["dag"])
    assert {v.name for v in network.variables} == variables == {v.name for v in model.free_RVs}
    assert network.conjugate == (name not in ("bde", "numbers", "words"))
    assert (network.missing is not None) == name.startswith("missing")
    assert (network.fit is not None) == (name in ("numbers", "words"))


@pytest.mark.parametrize("name", ["bge", "bdeu", "bde", "numbers", "words"])
def test_scores_are_those_of_the_table(name):
    data, options, _ = CASES[name]
    model = bayesian_network(data, **options)
    network = network_of(model, model["dag"])
    problem = problem_of(network, parameters_of(network).score)
    wanted = bs.exact.dag_posterior(data, **options).problem
    for child, others in enumerate([(1, 2), (0, 2), (0, 1)]):
        np.testing.assert_allclose(
            problem.subsets(child, others), wanted.subsets(child, others), rtol=1e-12
        )


@pytest.mark.parametrize(("data", "reader"), [(NUMBERS, Table), (WORDS, StateTable)])
@pytest.mark.parametrize("learn", [bayesian_network, bs.exact.dag_posterior])
def test_the_table_is_read_once_to_choose_its_bic(monkeypatch, data, reader, learn):
    calls = []
    for kind, method in ((Table, "continuous"), (StateTable, "read")):
        read = getattr(kind, method)
        monkeypatch.setattr(
            kind,
            method,
            lambda data, kind=kind, read=read, **options: (
                calls.append(kind) or read(data, **options)
            ),
        )
    learn(data, score="bic")
    assert calls == [reader]


def test_few_whole_numbers_with_other_columns_are_not_guessed():
    whole = RNG.integers(0, 3, 30)
    with pytest.raises(ValueError, match="1 column of few whole numbers"):
        bayesian_network(WORDS.assign(d=whole), score="bic")
    with (
        pytest.warns(TableWarning, match="'a' and 'b': few whole numbers"),
        pytest.raises(ValueError, match="2 columns of few whole numbers"),
    ):
        bayesian_network(pd.DataFrame({"a": whole, "b": whole[::-1]}), score="bic")
    with pytest.raises(ValueError, match="numbers that are not whole"):
        bayesian_network(WORDS.assign(d=NUMBERS["a"]), score="bic")
    with pytest.warns(TableWarning, match="'d': few whole numbers"):
        model = bayesian_network(NUMBERS.assign(d=whole), score="bic")
    assert "weight" in model.named_vars


def test_tables_that_use_other_parameters_are_not_recognised():
    codes = RNG.integers(0, 2, (30, 2))
    with pm.Model() as model:
        dag = bs.DAG("dag", 2)
        tables = bs.distributions.ProbabilityTables("t", dag, 1.0, states=(2, 2), cells=4)
        bs.distributions.DiscreteNetwork("x", dag, tables**1.5, states=(2, 2), observed=codes)
    with pytest.raises(NotRecognized, match="not linked as in a network"):
        network_of(model, dag)


def test_another_prior_than_that_of_the_score_is_not_recognised():
    with pm.Model() as model:
        dag = bs.DAG("dag", 2)
        variance = bs.distributions.NoiseVariances("v", dag, 4.0, 2.0)
        weight = bs.distributions.ArcWeights("w", dag, variance, 2.0)
        intercept = bs.distributions.Intercepts("i", variance, 1.0)
        matrix = bs.distributions.coefficient_matrix(weight, 2)
        bs.distributions.GaussianNetwork(
            "x", intercept, matrix, variance, observed=NUMBERS[["a", "b"]].to_numpy()
        )
    with pytest.raises(NotRecognized, match=r"not that of the BGe score, .* = 0.5"):
        network_of(model, dag)
