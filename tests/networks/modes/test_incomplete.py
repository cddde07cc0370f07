"""Structural EM: its bound rises, stays below the exact value, and ends at the graph that is best."""

import itertools

import numpy as np
import pandas as pd
import pytest

from scipy.special import gammaln, logsumexp

import bayesstruct as bs

from bayesstruct.models import bayesian_network
from bayesstruct.networks.kernels.scores.discrete import BDeu
from bayesstruct.networks.kernels.scores.expected import ExpectedBDeu, ExpectedBGe
from bayesstruct.networks.kernels.scores.gaussian import BGe
from bayesstruct.networks.modes.completions import NormalCompletions, StateCompletions
from bayesstruct.networks.modes.incomplete import structural_em
from bayesstruct.networks.recognition.completed import completed_table
from bayesstruct.networks.recognition.network import network_of

SET = pd.DataFrame({"c": np.arange(30) < 6})
FREE = np.ones((30, 3), bool)
FREE[:6, 2] = False


def numbers():
    rng = np.random.default_rng(1)
    a = rng.normal(size=30)
    b = a + 0.6 * rng.normal(size=30)
    x = np.column_stack([a, b, b + rng.normal(size=30)])
    x[8, 1] = x[8, 2] = np.nan
    return pd.DataFrame(3.0 * x + 5.0, columns=list("abc"))


def states():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 3, 30)
    b = np.where(rng.random(30) < 0.8, a, rng.integers(0, 3, 30))
    x = np.column_stack([a, b, rng.integers(0, 2, 30)]).astype(float)
    x[8, 1] = x[8, 2] = x[9, 0] = x[20, 1] = np.nan
    return pd.DataFrame(x, columns=list("abc"))


def climb(data, score):
    model = bayesian_network(data, score=score, interventions=SET)
    network = network_of(model, model["dag"])
    rows, op = completed_table(network), network.dag.owner.op
    make = NormalCompletions if network.gaussian else StateCompletions
    _, graph, bounds, converged = structural_em(op.names, op.prior, lambda: make(rows))
    assert converged
    return graph, bounds


def total(score, graph):
    return sum(score.local(i, np.flatnonzero(graph[:, i])) for i in range(3))


def log_evidence_of_numbers(data, graph):
    z = ((data - data.mean()) / data.std()).to_numpy().copy()
    grid, logs = np.arange(-6.0, 6.1, 0.6), []
    for cells in itertools.product(grid, grid):
        z[8, 1:] = cells
        logs.append(total(BGe(z, interventions=~FREE), graph))
    return logsumexp(logs) + 2 * np.log(0.6)


def log_evidence_of_states(data, graph):
    x, gaps, logs = data.to_numpy().copy(), data.isna().to_numpy(), []
    for cells in itertools.product(range(3), range(2), range(3), range(3)):
        x[gaps] = cells
        logs.append(total(BDeu(x.astype(int), states=(3, 3, 2), interventions=~FREE), graph))
    return logsumexp(logs)


@pytest.mark.parametrize("kind", ["numbers", "states"])
def test_the_bound_rises_to_just_below_the_exact_value(kind):
    data, score = (numbers(), "bge") if kind == "numbers" else (states(), "bdeu")
    exact = log_evidence_of_numbers if kind == "numbers" else log_evidence_of_states
    graph, bounds = climb(data, score)
    assert len(bounds) > 2
    assert np.diff(bounds).min() > -1e-8  # rounding
    value = exact(data, graph)
    # Fewer than one row is missing, and the bound loses what the missing values share with the parameters.
    assert value - 0.5 < bounds[-1] < value
    for i, j in itertools.permutations(range(3), 2):  # no neighbour of the graph is better
        other = graph.copy()
        other[i, j] = 1 - other[i, j]
        if not (other & other.T).any() and not (other @ other @ other).diagonal().any():
            assert exact(data, other) < value + 1e-6


def test_scores_of_complete_tables_are_the_usual_ones():
    rng = np.random.default_rng(0)
    z, x = rng.normal(size=(30, 3)), rng.integers(0, 3, (30, 3))
    none = np.zeros((0, 3, 3)), np.zeros(0, int)
    own = ExpectedBGe(z, *none, interventions=~FREE).subsets(2, [0, 1])
    np.testing.assert_allclose(own, BGe(z, interventions=~FREE).subsets(2, [0, 1]), rtol=1e-12)
    options = {"states": (3, 3, 3), "interventions": ~FREE, "equivalent_sample_size": 1.5}
    weighted = ExpectedBDeu(x, np.ones(30), cells=27, **options)
    plain = BDeu(x, **options)
    np.testing.assert_allclose(weighted.subsets(2, [0, 1]), plain.subsets(2, [0, 1]), rtol=1e-12)
    assert ExpectedBDeu(x, np.ones(30), cells=9, **options).local(2, (0, 1)) == -np.inf
    # Half rows: the formula with half counts.
    half = ExpectedBDeu(x, np.full(30, 0.5), cells=27, **options).local(0, ())
    counts = np.bincount(x[:, 0], minlength=3) / 2
    wanted = gammaln(0.5 + counts).sum() - 3 * gammaln(0.5) + gammaln(1.5) - gammaln(16.5)
    assert half == pytest.approx(wanted, rel=1e-12)


@pytest.mark.chain
def test_find_map_fills_missing_values_in():
    data = numbers()
    with bayesian_network(data, interventions=SET):
        mode = bs.find_MAP()
    assert ((mode["weight"] != 0) == (mode["arc"] == 1)).all()
    line = np.polyfit(data["a"].drop(8), data["b"].drop(8), 1)
    # The mean of a regression on some 30 rows; both say nearly the same.
    assert mode["x_missing"][0] == pytest.approx(np.polyval(line, data.loc[8, "a"]), abs=0.3)
    table = states()
    with bayesian_network(table, score="bdeu", interventions=SET):
        mode = bs.find_MAP()
    assert mode["x_missing"][2] == table.loc[9, "b"]
    assert mode["table"][0, :3].sum() == pytest.approx(1.0)


def test_what_has_no_mode_here_is_refused():
    wide = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (40, 14)).astype(float))
    wide.iloc[4, :13] = np.nan
    with (
        bayesian_network(wide, score="bdeu", max_parents=1),
        pytest.raises(ValueError, match=r"row 4 .* 13 missing values with 8,192 completions"),
    ):
        bs.find_MAP()
    with (
        bayesian_network(numbers().dropna(), prior="order"),
        pytest.raises(ValueError, match="'order' of 'dag' counts the topological orders"),
    ):
        bs.find_MAP()
