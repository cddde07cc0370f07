"""Edge probabilities under the pseudo-likelihood, enumerated, against how often edges are there and against exact ones.

The likelihood is approximate, so that the bounds are those of measured errors (`benchmarks/pseudo_likelihood_calibration.py`), with
room for the size of the sample.
"""

import itertools

import networkx as nx
import numpy as np
import pytest

from scipy.special import logsumexp

import bayesstruct as bs

from bayesstruct.precision.kernels.nodewise import pseudo_likelihood

SHARE = 0.3


def tables(p, n, number):
    """Yield rows from the model, and the indicators of its edges."""
    rng, upper = np.random.default_rng(p), np.triu_indices(p, 1)
    for _ in range(number):
        truth = rng.random(len(upper[0])) < SHARE
        matrix = np.zeros((p, p), int)
        matrix[upper] = truth
        graph = nx.from_numpy_array(matrix)
        yield bs.simulate.gaussian_graphical(n, graph=graph, random_seed=rng).data, truth


def edge_probabilities(rows, power=0.5):
    p, n = rows.shape[1], float(len(rows))
    states = np.array(list(itertools.product((0, 1), repeat=p * (p - 1) // 2)), np.int8)
    correlation = np.corrcoef(rows.to_numpy().T)
    log = power * np.array([float(pseudo_likelihood(correlation, state, n)) for state in states])
    log += states.sum(axis=1) * np.log(SHARE / (1.0 - SHARE))
    return states.T @ np.exp(log - logsumexp(log))


@pytest.mark.calibration
def test_edges_are_there_about_as_often_as_their_probabilities_say(full):
    number = 500 if full else 30
    pairs = [(edge_probabilities(rows), truth) for rows, truth in tables(5, 100, number)]
    probability, truth = (np.concatenate(part) for part in zip(*pairs, strict=True))
    error = 3.0 / np.sqrt(number)  # of a share of some tens of edges, generously

    def there(low, high):
        return truth[(probability >= low) & (probability <= high)].mean()

    # Measured .997 for .997 and .080 for .034: some weak dependences are all but excluded.
    assert there(0.95, 1.0) > 0.99 - 0.1 * error
    assert there(0.0, 0.05) < 0.09 + 0.1 * error
    assert there(0.0, 0.2) < there(0.2, 0.8) < there(0.8, 1.0)


@pytest.mark.calibration
def test_probabilities_against_the_exact_ones_of_four_columns(full):
    away = {0.5: [], 1.0: []}
    for rows, _ in tables(4, 100, 100 if full else 12):
        exact = bs.exact.gaussian_graphs(rows, edge_probability=SHARE, draws=1_000)
        exact = exact.edge_probabilities.to_numpy()[np.triu_indices(4, 1)]
        for power, found in away.items():
            found.append(np.abs(edge_probabilities(rows, power) - exact))
    # Measured: mean .011, worst of 200 tables .34; .042 and .60 if each dependence counts twice.
    assert np.mean(away[0.5]) < (0.016 if full else 0.025)
    assert np.max(away[0.5]) < 0.5
    assert np.mean(away[1.0]) > 2.0 * np.mean(away[0.5])  # the wrong power is noticed


def test_unconnected_pairs_have_their_exact_odds():
    # Edges without common ends: the root of the product is the likelihood of a G-Wishart(3, I) matrix.
    [(rows, _)] = tables(4, 30, 1)
    posterior = bs.exact.gaussian_graphs(rows, edge_probability=0.5).graphs.set_index("edges")
    correlation = np.corrcoef(rows.to_numpy().T)
    score = [
        0.5 * float(pseudo_likelihood(correlation, np.array(state, np.int8), 30.0))
        for state in ((0, 0, 0, 0, 0, 0), (1, 0, 0, 0, 0, 1))
    ]
    exact = posterior["log_likelihood"]
    a, b, c, d = rows.columns
    joined = exact[f"{a} -- {b}, {c} -- {d}"]
    empty = exact[posterior["n_edges"] == 0].iloc[0]
    assert np.isclose(score[1] - score[0], joined - empty)
