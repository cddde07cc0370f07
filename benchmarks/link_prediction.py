"""Link prediction: links that were left out, against plain baselines; cost of a sweep.

    uv run python benchmarks/link_prediction.py            # about ten minutes
    uv run python benchmarks/link_prediction.py --sweeps   # cost of a sweep and starts only

The pairs of a network are left out a fifth at a time and ranked by their posterior probability; the area
under the curve (AUC) is over all of them. Networks: the women and events of Davis, Gardner and Gardner (1941), in
networkx, where only pairs of a woman and an event are observed; and networks simulated with
`bs.simulate.link_prediction`, 60 nodes, three features. Baselines see the same pairs, those left out being
zeros: product of degrees, common neighbours (for women and events, paths of length three), and the
singular-value decomposition with the rank, of 1 to 6, that serves the left-out pairs best, so that it is
given an advantage.
"""

import argparse
import logging
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import networkx as nx
import numpy as np
import pymc as pm

import bayesstruct as bs

from bayesstruct.features.kernels.indian_buffet import draw_by_dishes
from bayesstruct.features.kernels.link_likelihoods import Likelihood
from bayesstruct.features.kernels.link_sampler import LinkSampler, LinkState
from bayesstruct.features.solvers.links import link_features

FOLDS, DRAWS, TUNE, CHAINS = 5, 1000, 500, 2


def davis():
    """Network and its pairs: (woman, event)."""
    graph = nx.davis_southern_women_graph()
    women = [v for v, kind in graph.nodes(data="bipartite") if kind == 0]
    events = [v for v, kind in graph.nodes(data="bipartite") if kind == 1]
    return graph, [(a, b) for a in women for b in events]


def simulated(seed):
    graph = bs.simulate.link_prediction(60, 3, random_seed=seed).graph
    nodes = list(graph.nodes)
    return graph, [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :]]


def auc(score, links):
    """Probability that a link scores higher than a pair without one."""
    from scipy.stats import rankdata

    links = np.asarray(links, bool)
    ones, zeros = links.sum(), (~links).sum()
    return (rankdata(score)[links].sum() - ones * (ones + 1) / 2) / (ones * zeros)


def baselines(graph, pairs, hidden):
    """Scores of the hidden pairs by each baseline."""
    nodes = list(graph.nodes)
    at = {v: i for i, v in enumerate(nodes)}
    matrix = nx.to_numpy_array(graph, weight=None)
    i, j = (np.array([at[pair[side]] for pair in pairs])[hidden] for side in (0, 1))
    matrix[i, j] = matrix[j, i] = 0.0
    degree = matrix.sum(axis=0)
    power = 3 if nx.is_bipartite(graph) else 2
    out = {
        "degree product": degree[i] * degree[j],
        "common neighbours": np.linalg.matrix_power(matrix, power)[i, j],
    }
    left, values, right = np.linalg.svd(matrix)
    for rank in range(1, 7):
        # Each pair of equal singular values of a bipartite network counts as one.
        kept = rank * (2 if power == 3 else 1)
        out[f"svd {rank}"] = ((left[:, :kept] * values[:kept]) @ right[:kept])[i, j]
    return out


def posterior(graph, pairs, hidden, seed):
    """Posterior probabilities of the hidden pairs, with the seconds and R-hat of the number of features."""
    import arviz as az

    observed = {frozenset(pair) for k, pair in enumerate(pairs) if not hidden[k]}
    nodes = list(graph.nodes)
    everything = [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :]]
    unobserved = [pair for pair in everything if frozenset(pair) not in observed]
    begin = time.process_time()
    with bs.models.link_prediction(graph, unobserved=unobserved):
        idata = pm.sample(
            DRAWS,
            tune=TUNE,
            chains=CHAINS,
            cores=1,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
    spent = time.process_time() - begin
    table = bs.link_probabilities(idata)
    known = {
        frozenset(pair): p
        for *pair, p in table[["source", "target", "probability"]].itertuples(index=False)
    }
    r_hat = float(az.rhat(idata, var_names=["bias"])["bias"])
    number = float(idata["posterior"]["n_features"].mean())
    return (
        np.array([known[frozenset(p)] for k, p in enumerate(pairs) if hidden[k]]),
        spent,
        r_hat,
        number,
    )


def compare(name, graph, pairs, seed=0):
    rng = np.random.default_rng(seed)
    fold = rng.permutation(len(pairs)) % FOLDS
    links = np.array([graph.has_edge(a, b) for a, b in pairs])
    scores, notes = {}, []
    for f in range(FOLDS):
        hidden = fold == f
        found, *note = posterior(graph, pairs, hidden, seed + f)
        notes.append(note)
        for method, score in {"posterior": found, **baselines(graph, pairs, hidden)}.items():
            scores.setdefault(method, []).append(auc(score, links[hidden]))
    means = {method: np.mean(values) for method, values in scores.items()}
    best = max((m for m in means if m.startswith("svd")), key=means.get)
    shown = ["posterior", "degree product", "common neighbours", best]
    text = ", ".join(f"{method} {means[method]:.3f}" for method in shown)
    spent, r_hat, number = np.array(notes).T
    print(
        f"{name}: held-out AUC {text}; {spent.mean():.0f} CPU s a fold with compilation, "
        f"R-hat of the bias to {r_hat.max():.3f}, {number.mean():.1f} features",
        flush=True,
    )


def milliseconds(n, features=5, sweeps=10):
    """Of one sweep over all objects and weights, starting at the features of the network."""
    rng = np.random.default_rng(1)
    truth = bs.simulate.link_prediction(n, features, random_seed=2)
    source, target = np.triu_indices(n, 1)
    y = nx.to_numpy_array(truth.graph)[source, target]
    z, weights = np.zeros((n, 30), np.int8), np.zeros((30, 30))
    z[:, :features], weights[:features, :features] = truth.feature.values, truth.interaction
    sampler, state = (
        LinkSampler(source, target, (n, n), True, 1, False),
        LinkState(z, z, weights),
    )
    likelihood, buffets = Likelihood(0, 1.0), [(1.0, 1.0, 0.0)] * 2

    def sweep():
        observed = sampler.observe(state, -3.0, y, likelihood)
        sampler.scan(rng, state, observed, likelihood, 2.0, buffets, 2)
        sampler.draw_weights(rng, state, observed, likelihood, 2.0)

    sweep()
    begin = time.process_time()
    for _ in range(sweeps):
        sweep()
    return 1e3 * (time.process_time() - begin) / sweeps


def starts(networks=10):
    """Print how often a search, and 300 sweeps from the prior, find the planted features."""
    found, late, spent = 0, 0, 0.0
    for seed in range(networks):
        truth = bs.simulate.link_prediction(60, 3, random_seed=seed)
        planted = truth.feature.values
        source, target = np.triu_indices(60, 1)
        y = nx.to_numpy_array(truth.graph)[source, target]
        sampler = LinkSampler(source, target, (60, 60), True, 1, False)
        rng, buffets = np.random.default_rng(seed), [(1.0, 1.0, 0.0)] * 2
        begin = time.process_time()
        options = ("logistic", y, 0.0, ((60, 30), (60, 30)), buffets, 2.0, rng)
        result = link_features(sampler, *options, restarts=5)
        spent += time.process_time() - begin
        found += matched(planted, result.state.z)
        late += matched(planted, from_prior(sampler, y, rng, buffets))
    print(
        f"60 nodes, three features all found, up to a tenth of the nodes: {found} of {networks} networks by five searches "
        f"of {1e3 * spent / networks:.0f} ms, {late} by 300 sweeps from the prior that know the bias",
        flush=True,
    )


def matched(truth, found):
    apart = (truth[:, :, None] != found[:, None, :]).mean(axis=0)
    return bool((apart.min(axis=1) <= 0.1).all())


def from_prior(sampler, y, rng, buffets):
    """Features after 300 sweeps that begin at a draw from the prior."""
    z, weights = np.zeros((60, 30), np.int8), np.zeros((30, 30))
    drawn = draw_by_dishes(rng, 60, 1.0)
    z[:, : drawn.shape[1]] = drawn
    state, likelihood = LinkState(z, z, weights), Likelihood(0, 1.0)
    for _ in range(300):
        observed = sampler.observe(state, -3.0, y, likelihood)
        sampler.scan(rng, state, observed, likelihood, 2.0, buffets, 2)
        sampler.draw_weights(rng, state, observed, likelihood, 2.0)
    return state.z


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sweeps", action="store_true")
    only_sweeps = parser.parse_args().sweeps
    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    times = ", ".join(f"n = {n}: {milliseconds(n):.1f} ms" for n in (50, 100, 200, 400))
    print(f"one sweep, logistic, five features, not directed: {times}", flush=True)
    starts()
    if only_sweeps:
        return
    compare("women and events", *davis())
    for seed in range(2):
        compare(f"simulated network {seed}", *simulated(seed), seed)


if __name__ == "__main__":
    main()
