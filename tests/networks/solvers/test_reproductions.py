"""Numbers of Schmidt (2010, chapter 4) on networks and data that are read from elsewhere.

The structures come from an installed `pgmpy`: `uv run --with pgmpy-no-torch pytest tests/solvers/test_reproductions.py`.
`benchmarks/dag_search.py` has all networks and sizes.
"""

import networkx as nx
import numpy as np
import pytest
import scipy.io

from tools.places import DATA
from tools.repository_networks import NETWORKS, folder, network

from bayesstruct.networks.kernels.scores.named import network_score
from bayesstruct.simulate import bayesian_network
from bayesstruct.solvers import blanket_candidates, dag_search, k2, known_order

SHARED = pytest.mark.skipif(not DATA.exists(), reason="the data of the sources are not here")
STRUCTURES = pytest.mark.skipif(folder() is None, reason="no structures: pgmpy is not installed")


@STRUCTURES
def test_structures():
    """The table of section 4.6.1 (there mildew has 32 nodes and alarm at most 3 parents: misprints)."""
    for name, numbers in NETWORKS.items():
        graph = network(name)
        parents = [k for _, k in graph.in_degree]
        assert (len(graph), graph.number_of_edges(), max(parents)) == numbers
        assert nx.is_directed_acyclic_graph(graph)


@STRUCTURES
def test_blankets_lose_no_arc_of_insurance():
    """Figure 4.1: none at n = 5,000; a fifth of the arcs is left (21.1 % in an earlier computation)."""
    simulation = bayesian_network(5_000, kind="logistic", graph=network("insurance"), random_seed=1)
    truth = nx.to_numpy_array(simulation.graph) != 0
    kept = np.zeros_like(truth)
    for child, row in enumerate(blanket_candidates(simulation.data)):
        kept[row[row >= 0], child] = True
    assert not (truth & ~kept).any()
    assert 0.19 < kept.sum() / (27 * 26) < 0.23


@STRUCTURES
def test_alarm_is_recovered_from_interventions():
    """Figure 4.5: n = 20,000; the first optimum takes 282 evaluations in an earlier computation."""
    alarm = network("alarm")
    simulation = bayesian_network(
        20_000, kind="logistic", graph=alarm, interventions=37 / 38, random_seed=1
    )
    truth = nx.to_numpy_array(alarm, weight=None).astype(int)
    set_ = simulation.interventions.to_numpy()
    found = dag_search(
        simulation.data,
        score="logistic",
        interventions=set_,
        candidates=blanket_candidates(simulation.data, interventions=set_),
        restarts=0,
    )
    assert (found.adjacency == truth).all()
    assert found.evaluations < 1_000


@SHARED
def test_rain_along_the_days():
    """Section 4.6.2; the numbers were computed from its data before."""
    rain = scipy.io.loadmat(DATA / "rain.mat")["X"].astype(int)
    n, days = rain.shape
    chain = np.eye(days, k=1)
    tree = known_order(rain, range(days), score="multinomial", max_parents=1)
    assert (tree.adjacency == chain).all()
    score = network_score(rain, "multinomial")
    gain = tree.objective - sum(score.local(j, ()) for j in range(days))
    information = (gain + 27 * 0.5 * np.log(n)) / n  # an arc costs one parameter
    assert information == pytest.approx(2.175305, abs=5e-7)
    sparse = known_order(rain, range(days), method="sparse", score="logistic")
    assert sparse.adjacency.sum() == 73 and sparse.adjacency[chain == 1].all()
    assert sparse.objective == pytest.approx(-17830.0, abs=0.05)
    greedy = k2(rain, range(days), score="logistic")
    assert greedy.adjacency.sum() == 70
    assert greedy.objective == pytest.approx(-17819.78, abs=0.005)
    blankets = blanket_candidates(rain)
    assert (blankets >= 0).sum() == 95
    assert all(j in blankets[i] for i in range(days) for j in (i - 1, i + 1) if 0 <= j < days)
