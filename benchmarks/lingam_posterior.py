"""The posterior of LiNGAM: 20 columns, and whether probabilities of arcs and directions are right.

    uv run python benchmarks/lingam_posterior.py                  # p = 20, n = 1,000, Laplace and uniform noise
    uv run python benchmarks/lingam_posterior.py --calibration    # p = 6, tables from the prior, with normal and with Laplace errors

*p = 20*: two chains of `pm.sample`, the CPU seconds with the model and its tables of parent sets, not with compilation of machine code. R-hat is the largest of
the arcs that changed, and of the number of arcs.

*Calibration*: graph, parameters and rows from the prior of the model (not standardised); arcs, and directions given that there is an edge,
by the probability that they were given. *Normal errors*: the same with errors that are normal; the probabilities of directions are set against
those of the exact posterior under BGe. `--normal-probability .5` fixes the probability of normal noise in each column, with 0 it is
never exactly normal. `--draws 0` takes no chain but the sum over all graphs by their approximate scores (and a sum over shares of columns with normal noise, an exact
integral), which takes a fraction of a second a table.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import networkx as nx
import numpy as np
import pymc as pm

from linear_sem import BINS, prior_table

import bayesstruct as bs

from bayesstruct.data import TableWarning
from bayesstruct.graphs.mixing import series_rhat
from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.kernels.dag_priors import ParentPrior
from bayesstruct.sem.kernels.chain import SemChain
from bayesstruct.sem.kernels.scores import SemScores
from bayesstruct.sem.kernels.settings import sem_settings
from bayesstruct.sem.kernels.shares import share_points
from bayesstruct.simulate import linear_sem


def auroc(score, truth):
    """Area under the curve; ties count one half."""
    above = score[truth][:, None] - score[~truth]
    return float((above > 0).mean() + 0.5 * (above == 0).mean())


def large(noise, model_noise, draws, seed):
    """Print what two chains of one table find."""
    table = linear_sem(1_000, 20, noise=noise, random_seed=seed)
    truth = nx.to_numpy_array(table.graph, weight=None) != 0
    start = time.process_time()
    with bs.models.lingam(table.data, noise=model_noise):
        idata = pm.sample(
            draws, tune=draws // 2, chains=2, cores=1, progressbar=False, random_seed=seed,
            compute_convergence_checks=False,
        )  # fmt: skip
    spent = time.process_time() - start
    dag = idata["posterior"]["dag"].values
    lines, off = dag.reshape(*dag.shape[:2], -1), ~np.eye(20, dtype=bool)
    counts = lines.sum(axis=2, keepdims=True)
    share = dag.mean(axis=(0, 1))[off]
    arcs, total = series_rhat(lines), series_rhat(counts)
    print(
        f"{noise} errors, {model_noise}: AUROC {auroc(share, truth[off]):.4f}, {((share > 0.5) != truth[off]).sum()} of "
        f"{truth.sum()} arcs wrong, R-hat arcs {arcs.max():.3f}, number {total[0]:.3f}, {draws} draws, {spent:.1f} CPU s",
        flush=True,
    )


def arc_shares(problem, rng, draws):
    """Arc probabilities of one chain; without draws those of all graphs by their scores, summed over shares of normal noise."""
    if not draws:
        points, logs = share_points(problem.score.settings, problem.d)
        found = [bs.exact.dag_posterior(problem.score.at_share(p)) for p in points.tolist()]
        weights = np.exp(logs + (totals := [own.log_total for own in found]) - max(totals))
        own = [np.asarray(own.arc_probabilities) for own in found]
        return np.tensordot(weights / weights.sum(), own, 1)
    chain = SemChain(problem)
    state, share = chain.start(rng), np.zeros((problem.d, problem.d))
    for k in range(draws + 20):
        state, _ = chain.sweep(rng, state)
        share += state.dag if k >= 20 else 0
    return share / draws


def shown(given, there):
    """Means of what was given and what was there, by bins, and the largest difference in standard errors."""
    given, there = np.array(given), np.array(there)
    place = np.clip(np.searchsorted(BINS, given, side="right") - 1, 0, len(BINS) - 2)
    rows, worst = [], 0.0
    for b in range(len(BINS) - 1):
        own = place == b
        if own.sum() >= 20:
            mean, found = given[own].mean(), there[own].mean()
            worst = max(
                worst, abs(mean - found) / max(np.sqrt(mean * (1 - mean) / own.sum()), 1e-3)
            )
            rows.append(f"{mean:.3f}/{found:.3f}")
    return f"{' '.join(rows)}, worst {worst:.1f} standard errors"


def calibration(noise, errors, probability, tables, n, draws, d=6):
    """Print calibration of arcs and directions; with normal errors also the distance from the posterior under BGe."""
    given = {"noise": noise, "normal_probability": probability if noise == "mixture" else None}
    settings, prior = sem_settings(d, **given), ParentPrior(d)
    own, normal = sem_settings(d, noise=errors or noise), errors == "gaussian"
    own = own if errors else settings
    names, start = tuple(f"x{i}" for i in range(d)), time.process_time()
    arcs, directions, apart = ([], []), ([], []), []
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        dag, z = prior_table(rng, own, prior, n)
        share = arc_shares(NetworkProblem(names, SemScores(z, settings), prior, False), rng, draws)
        off, (one, two) = ~np.eye(d, dtype=bool), np.triu_indices(d, 1)
        arcs[0].extend(share[off])
        arcs[1].extend(dag[off])
        edge = (dag + dag.T)[one, two] > 0
        both = (share + share.T)[one, two]
        kept = edge & (both > 0.5)
        told = share[one, two][kept] / both[kept]
        directions[0].extend(told)
        directions[1].extend(dag[one, two][kept])
        if normal:
            exact = np.asarray(bs.exact.dag_posterior(z).arc_probabilities)
            pair = (exact + exact.T)[one, two][kept]
            apart.extend(np.abs(told - exact[one, two][kept] / pair))
    kind = f"{errors or 'its own'} errors"
    print(f"{noise}, {kind}, {tables} tables, n = {n}: arcs given/there {shown(*arcs)}")
    print(f"  directions given an edge {shown(*directions)}")
    if normal:
        print(
            f"  directions differ from those under BGe by {np.mean(apart):.3f} on average (median {np.median(apart):.3f})"
        )
    print(f"  {time.process_time() - start:.0f} CPU s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calibration", action="store_true")
    parser.add_argument("--noise", nargs="*", default=["laplace", "mixture"])
    parser.add_argument("--errors", nargs="*", default=["", "gaussian", "laplace"])
    parser.add_argument("--normal-probability", type=float)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--draws", type=int, default=200)
    own = parser.parse_args()
    warnings.simplefilter("ignore", TableWarning)
    if own.calibration:
        for noise in own.noise:
            for errors in own.errors if noise == "mixture" else ("", "gaussian"):
                prob = own.normal_probability
                calibration(noise, errors, prob, own.tables, own.rows, own.draws)
        return
    for model_noise in own.noise:
        small = linear_sem(600, 10, noise="uniform", random_seed=0).data
        with bs.models.lingam(small, noise=model_noise):  # compiled
            pm.sample(4, tune=1, chains=1, cores=1, progressbar=False, compute_convergence_checks=False)  # fmt: skip
        for noise in ("laplace",) if model_noise == "laplace" else ("laplace", "uniform"):
            large(noise, model_noise, own.draws, 1)


if __name__ == "__main__":
    main()
