"""How far edge probabilities under the pseudo-likelihood are from the exact ones, and from how often edges are there.

    uv run python benchmarks/pseudo_likelihood_calibration.py     # about three minutes

Tables from the model: each edge with probability .3, K ~ G-Wishart(3, I) given the graph, n rows of N(0, K^-1). All graphs are
enumerated, so that nothing here is an error of a sampler. The first part has five columns and counts the edges that are
there by the probability that they were given; the second has four columns and compares with `bs.exact.gaussian_graphs`.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import itertools

import networkx as nx
import numpy as np

from scipy.special import logsumexp

import bayesstruct as bs

from bayesstruct.precision.kernels.nodewise import pseudo_likelihood

SHARE = 0.3
POWERS = (0.5, 1.0)
BINS = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0)


def tables(p, n, number):
    """Yield rows and the true indicators of the upper triangle."""
    rng, upper = np.random.default_rng([p, n]), np.triu_indices(p, 1)
    for _ in range(number):
        truth = rng.random(len(upper[0])) < SHARE
        matrix = np.zeros((p, p), int)
        matrix[upper] = truth
        graph = nx.from_numpy_array(matrix)
        yield bs.simulate.gaussian_graphical(n, graph=graph, random_seed=rng).data, truth


def edge_probabilities(rows, states):
    """Probabilities of the edges under the pseudo-likelihood to each of the powers, enumerated."""
    correlation, n = np.corrcoef(rows.to_numpy().T), float(len(rows))
    scores = np.array([float(pseudo_likelihood(correlation, state, n)) for state in states])
    prior = states.sum(axis=1) * np.log(SHARE / (1.0 - SHARE))
    log = [power * scores + prior for power in POWERS]
    return np.array([states.T @ np.exp(one - logsumexp(one)) for one in log])


def all_graphs(p):
    """Indicators of all graphs."""
    return np.array(list(itertools.product((0, 1), repeat=p * (p - 1) // 2)), np.int8)


def log_score(probability, truth):
    """Mean negative log probability of what is true."""
    chance = np.where(truth, probability, 1.0 - probability)
    return -np.log(np.clip(chance, 1e-12, 1.0)).mean()


def reliability(n, number):
    """Shares of edges that are there, by the probability that they were given."""
    states = all_graphs(5)
    pairs = [(edge_probabilities(rows, states), truth) for rows, truth in tables(5, n, number)]
    found, truth = (np.concatenate(part, axis=-1) for part in zip(*pairs, strict=True))
    for power, probability in zip(POWERS, found, strict=True):
        shares = []
        for low, high in itertools.pairwise(BINS):
            inside = (probability >= low) & (probability < high + (high == 1.0))
            shares.append(
                f"{probability[inside].mean():.3f} / {truth[inside].mean():.3f} ({inside.sum():,})"
            )
        print(
            f"p = 5, n = {n}, {number:,} tables, power {power}: mean probability / share that is there (edges): "
            f"{', '.join(shares)}; log score {log_score(probability, truth):.3f}",
            flush=True,
        )


def against_exact(n, number):
    """Differences from the exact posterior."""
    states, upper = all_graphs(4), np.triu_indices(4, 1)
    found, exact, truths = [], [], []
    for rows, truth in tables(4, n, number):
        found.append(edge_probabilities(rows, states))
        posterior = bs.exact.gaussian_graphs(rows, edge_probability=SHARE, draws=2_000)
        exact.append(posterior.edge_probabilities.to_numpy()[upper])
        truths.append(truth)
    found, exact, truths = map(np.array, (found, exact, truths))
    for at, power in enumerate(POWERS):
        away = np.abs(found[:, at] - exact)
        print(
            f"p = 4, n = {n}, {number} tables, power {power}: differences from the exact probabilities, mean {away.mean():.3f}, of the "
            f"worst edge of a table {away.max(1).mean():.3f} on average and {away.max():.3f} at most; log score "
            f"{log_score(found[:, at], truths):.3f}, exact {log_score(exact, truths):.3f}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1_000)
    number = parser.parse_args().tables
    for n in (20, 100, 500):
        reliability(n, number)
    for n in (20, 100, 500):
        against_exact(n, number // 5)
