"""Probabilities of a discrete network with some of its variables set from outside."""

import itertools

import numpy as np
import pytest

from tools.dags import dag_posterior, random_dags

import bayesstruct as bs

from bayesstruct.networks.kernels.configurations import strides
from bayesstruct.networks.reading import effects

STATES = [2, 3, 2, 2, 3]
DAG = np.zeros((5, 5), np.int8)
for parent, child in ((0, 1), (0, 2), (1, 2), (2, 3), (1, 4)):
    DAG[parent, child] = 1


@pytest.fixture
def tables(rng):
    out = np.zeros((5, 18))
    for i, k in enumerate(STATES):
        rows = int(np.prod([STATES[p] for p in np.flatnonzero(DAG[:, i])], initial=1))
        out[i, : rows * k] = rng.dirichlet(np.ones(k), rows).ravel()
    return out


def brute_force(tables, set_to):
    """Marginals by going through all joint states."""
    step = strides(DAG, STATES)
    out = [np.zeros(k) for k in STATES]
    for state in itertools.product(*map(range, STATES)):
        p = 1.0
        for i, k in enumerate(STATES):
            free = tables[i, np.dot(state, step[:, i]) * k + state[i]]
            p *= free if set_to[i] < 0 else float(state[i] == set_to[i])
        for i, s in enumerate(state):
            out[i][s] += p
    return out


@pytest.mark.parametrize("set_to", [(-1,) * 5, (-1, 2, -1, -1, -1), (1, -1, -1, 0, -1)])
def test_probabilities_are_those_of_all_joint_states(tables, set_to):
    exact = brute_force(tables, set_to)
    found = effects.state_probabilities(DAG, tables, STATES, np.array(set_to))
    for a, b in zip(found, exact, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-14)


def test_large_tables_are_simulated_with_the_same_rows(tables, rng, monkeypatch):
    set_to = np.array([-1, -1, 1, -1, -1])
    exact = effects._both_probabilities(DAG, tables, STATES, set_to, rng)
    monkeypatch.setattr(effects, "_CELLS", 3)
    monkeypatch.setattr(effects, "_ROWS", 20_000)
    before, after = effects._both_probabilities(DAG, tables, STATES, set_to, rng)
    np.testing.assert_allclose([before, after], exact, atol=4 * 0.5 / np.sqrt(20_000))
    # Columns 0, 1 and 4 do not come after column 2: not one of their rows differs.
    assert (before[:5] == after[:5]).all() and (before[-3:] == after[-3:]).all()


def test_states_are_taken_as_they_stand_in_the_table():
    assert effects._state("a", 1.0, ["0", "1"]) == 1
    assert effects._state("a", np.int64(0), ["0", "1"]) == 0
    assert effects._state("a", 1, ["False", "True"]) == 1
    assert effects._state("a", "1", ["0.0", "1.0"]) == 1
    assert effects._state("a", "yes", ["no", "yes"]) == 1
    for wrong in (1.5, 2, "maybe", None, np.nan, np.inf):
        with pytest.raises(ValueError, match="'a' has the states 0, 1"):
            effects._state("a", wrong, ["0", "1"])


def test_graphs_without_parameters_have_no_effects(rng):
    graphs = random_dags(rng, 20, 3)[None]
    with pytest.raises(ValueError, match="neither `weight` nor `table`"):
        bs.do(dag_posterior(graphs, weighted=False), {"v0": 1.0})
