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


def edge_probabilities(rows):
    p, n = rows.shape[1], float(len(rows))
    states = np.array(list(itertools.product((0, 1), repeat=p * (p - 1) // 2)), np.int8)
    correlation = np.corrcoef(rows.to_numpy().T)
    log = 0.5 * np.array([float(pseudo_likelihood(correlation, state, n)) for state in states])
    log += states.sum(axis=1) * np.log(SHARE / (1.0 - SHARE))
    return states.T @ np.exp(log - logsumexp(log))


@pytest.mark.calibration
def test_edges_are_there_about_as_often_as_their_probabilities_say(full):
    number = 500 if full else 50
    pairs = [(edge_probabilities(rows), truth) for rows, truth in tables(5, 100, number)]
    probability, truth = (np.concatenate(part) for part in zip(*pairs, strict=True))
    error = 3.0 / np.sqrt(number)  # of a share of some tens of edges, generously

    def there(low, high):
        return truth[(probability >= low) & (probability <= high)].mean()

    # Measured .99 for 1.00 and .10 for .01: many weak dependences are all but excluded.
    assert there(0.95, 1.0) > 0.98 - 0.1 * error
    assert 0.05 < there(0.0, 0.05) < 0.11 + 0.1 * error
    assert there(0.0, 0.2) < there(0.2, 0.8) < there(0.8, 1.0)


@pytest.mark.calibration
def test_probabilities_against_the_exact_ones_of_four_columns(full):
    away = []
    for rows, _ in tables(4, 100, 100 if full else 12):
        exact = bs.exact.gaussian_graphs(rows, edge_probability=SHARE, draws=1_000)
        exact = exact.edge_probabilities.to_numpy()[np.triu_indices(4, 1)]
        away.append(np.abs(edge_probabilities(rows) - exact))
    # Measured: mean .04, worst of 60 tables .44.
    assert np.mean(away) < (0.055 if full else 0.08)
    assert np.max(away) < 0.6
