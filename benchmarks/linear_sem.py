"""Linear structural equations: what equal variances add, and whether probabilities of directions are right.

    uv run python benchmarks/linear_sem.py                    # equal variances beside BGe
    uv run python benchmarks/linear_sem.py --calibration      # tables from the prior

*Equal variances*: random graphs of 20 columns with as many arcs, weights +-(.5 to 1), noise variances 1, 640 rows. The structural Hamming
distance is that of the graph with the arcs of probability above 1/2; a reversed arc counts once. `bge` is
`bayesian_network`, which has no way to tell Markov equivalent graphs apart.

*Calibration*: graph, parameters and rows from the prior, one table each; arcs by the probability that they were given. Tables are
not standardised, so that the prior of the draws is that of the model.
"""

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pymc as pm

import bayesstruct as bs

from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.kernels.dag_priors import ParentPrior
from bayesstruct.networks.kernels.dags import topological_order
from bayesstruct.networks.kernels.prior_draws import draw_dag
from bayesstruct.sem.kernels.chain import SemChain
from bayesstruct.sem.kernels.errors import BASE
from bayesstruct.sem.kernels.scores import SemScores
from bayesstruct.sem.kernels.settings import NOISES, sem_settings
from bayesstruct.sem.priors.noise import noise_law

BINS = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0)


def equal_table(rng, d=20, n=640, arcs=20):
    """Graph (rows parents) and rows with noise of variance 1."""
    order, dag = rng.permutation(d), np.zeros((d, d), int)
    first, second = np.triu_indices(d, 1)
    chosen = rng.choice(len(first), arcs, replace=False)
    dag[order[first[chosen]], order[second[chosen]]] = 1
    weight = dag * rng.uniform(0.5, 1.0, (d, d)) * rng.choice([-1, 1], (d, d))
    x = rng.standard_normal((n, d)) @ np.linalg.inv(np.eye(d) - weight)
    return dag, x


def distance(one, two):
    """Structural Hamming distance; a reversed arc counts once."""
    different = (one != two) | (one != two).T
    return int(np.triu(different | different.T, 1).sum())


def run(model, draws, seed):
    """Arc probabilities of two chains, CPU seconds and the largest R-hat of the number of arcs."""
    start = time.process_time()
    with model:
        idata = pm.sample(
            draws, tune=draws // 2, chains=2, cores=1, progressbar=False, random_seed=seed,
            compute_convergence_checks=False,
        )  # fmt: skip
    spent = time.process_time() - start
    means = idata["posterior"]["dag"].mean("draw").values
    return means.mean(axis=0), spent, float(np.abs(means[0] - means[1]).max())


def equal_variances(tables, draws):
    """Print distances with equal variances and under BGe."""
    for seed in range(tables):
        truth, x = equal_table(np.random.default_rng(seed))
        models = {
            "equal": bs.models.linear_sem(x, variances="equal"),
            "bge": bs.models.bayesian_network(x),
        }
        for name, model in models.items():
            share, spent, apart = run(model, draws, seed)
            found = distance(truth, (share > 0.5).astype(int))
            skeleton = distance(truth | truth.T, ((share + share.T) > 0.5).astype(int))
            print(
                f"table {seed} {name:6} SHD {found:3d} (edges without direction {skeleton:3d}), "
                f"{spent:.1f} CPU s, chains differ by {apart:.2f} at most",
                flush=True,
            )


def prior_table(rng, settings, prior, n):
    """Graph and rows from the prior, variances free and normal weights."""
    noise, dag = NOISES[settings.noise], draw_dag(rng, prior, order=False)
    share = settings.normal_probability
    if settings.share_is_random:
        share = rng.beta(settings.share_alpha, settings.share_beta)
    z = np.zeros((n, prior.d))
    for i in topological_order(dag):
        parents = np.flatnonzero(dag[:, i])
        s = rng.gamma(settings.shape + 0.5 * len(parents), 1.0 / settings.rate) ** -0.5
        weight = s * settings.scale * rng.standard_normal(len(parents))
        shape = np.zeros((1, 1))
        if noise == "student":
            shape = 2.0 + rng.gamma(settings.degrees_shape, 1.0 / settings.degrees_rate, (1, 1))
        if noise == "mixture":
            shape = rng.dirichlet(settings.concentration * BASE)[None]
        kind = noise
        if settings.normal_probability and rng.random() < share:
            kind = "gaussian"
        e = noise_law(kind).draw(rng, shape, n)[:, 0]
        z[:, i] = (
            s * rng.standard_normal() / np.sqrt(settings.alpha_mu) + z[:, parents] @ weight + s * e
        )
    return dag, z


def calibration(noise, tables, d, n, draws):
    """Print how often arcs are there by the probability that they were given."""
    settings, prior = sem_settings(d, noise=noise), ParentPrior(d)
    given, there = [], []
    off = ~np.eye(d, dtype=bool)
    start = time.process_time()
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        dag, z = prior_table(rng, settings, prior, n)
        names = tuple(f"x{i}" for i in range(d))
        chain = SemChain(NetworkProblem(names, SemScores(z, settings), prior, False))
        state, share = chain.start(rng), np.zeros((d, d))
        for k in range(draws + 20):
            state, _ = chain.sweep(rng, state)
            share += state.dag if k >= 20 else 0
        given += (share[off] / draws).tolist()
        there += dag[off].tolist()
    given, there = np.array(given), np.array(there)
    place = np.clip(np.searchsorted(BINS, given, side="right") - 1, 0, len(BINS) - 2)
    rows, worst = [], 0.0
    for b in range(len(BINS) - 1):
        own = place == b
        if own.sum() >= 20:
            mean, found = given[own].mean(), there[own].mean()
            error = max(np.sqrt(mean * (1 - mean) / own.sum()), 1e-3)
            worst = max(worst, abs(mean - found) / error)
            rows.append(f"{mean:.3f}/{found:.3f}")
    spent = time.process_time() - start
    print(
        f"{noise:9} given/there {' '.join(rows)}, worst {worst:.1f} standard errors, {spent:.0f} CPU s",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calibration", action="store_true")
    parser.add_argument("--noise", nargs="*", default=[*NOISES])
    parser.add_argument("--tables", type=int)
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--draws", type=int, default=100)
    own = parser.parse_args()
    if own.calibration:
        for noise in own.noise:
            calibration(noise, own.tables or 100, own.columns, own.rows, own.draws)
    else:
        equal_variances(own.tables or 3, own.draws)


if __name__ == "__main__":
    main()
