"""Spike-and-slab Ising pseudo-likelihood: AUC and convergence after a few CPU seconds.

    uv run python benchmarks/ising_gibbs.py                # p = 10 and 20, about 10 minutes
    uv run python benchmarks/ising_gibbs.py --large        # and p = 60
    uv run python benchmarks/ising_gibbs.py --tables 1     # one table instead of five
    uv run python benchmarks/ising_gibbs.py --columns 20 --table 1 --long 30  # a longer long run

Recipe: random graph, weights uniform on [.5, 1.5], thresholds minus half the row sums, 0/1. Four chains
of the step that PyMC assigns, each started at the initial point, share the CPU seconds; the first
tenth of each is dropped. The long run has ten times as many draws (`--long`). Compilation is not counted. Edge
probabilities are means of the statistic of the step, as in `bs.edge_table`; in brackets the AUC of proportions of draws with
the edge; ESS and R-hat are those of indicators and weights. R's bgms 0.2 took 66 to 85 s for p = 10 and 116 s for p = 20 (2 x (1,000 + 1,000) draws, another machine).
"""

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import arviz as az
import numpy as np

from bayesstruct import simulate
from bayesstruct.models import ising
from bayesstruct.steps import PairwiseSpikeSlab

CHAINS = 4
#: Columns, rows, probability of an edge, CPU seconds.
CASES = [(10, 1000, 0.2, 4.0), (20, 500, 0.2, 8.0)]
LARGE = [(60, 1000, 0.05, 120.0)]


def auc(score, truth):
    """Probability that a true edge has the larger score, ties counted half."""
    on, off = score[truth][:, None], score[~truth][None]
    return float((on > off).mean() + 0.5 * (on == off).mean())


def chains_of(model):
    with model:
        steps = [PairwiseSpikeSlab([model["weight"], model["bias"]], rng=s) for s in range(CHAINS)]
    points = [model.initial_point()] * CHAINS
    for step, point in zip(steps, points, strict=True):
        step.step(point)  # compiles, the first time
    return steps, points


def run(steps, points, *, seconds=np.inf, draws=10**9):
    """Draws until the CPU seconds or the draws are used up.

    Weights and estimates of the edge probabilities, each (chain, draw, edge); and the time spent.
    """
    kept, reported = [[] for _ in steps], [[] for _ in steps]
    begin = time.process_time()
    while time.process_time() - begin < seconds and len(kept[0]) < draws:
        for c, step in enumerate(steps):
            points[c], [stats] = step.step(points[c])
            kept[c].append(points[c]["weight"])
            reported[c].append(stats["weight_inclusion"])
    return np.array(kept), np.array(reported), time.process_time() - begin


def judged(weights, inclusion, truth):
    """AUC of the estimates and of the counts, smallest ESS, largest R-hat."""
    begin = weights.shape[1] // 10
    weights, inclusion = weights[:, begin:], inclusion[:, begin:]
    edge = (weights != 0).astype(float)
    moves = edge.std(axis=(0, 1)) > 0.05
    drawn = truth & edge.any(axis=(0, 1))  # ESS and R-hat of a constant do not exist
    quantities = {"edge": edge[..., moves], "weight": weights[..., drawn], "n": edge.sum(-1)}
    ess = min(float(np.min(az.ess(v, chain_axis=0, draw_axis=1))) for v in quantities.values())
    rhat = max(float(np.max(az.rhat(v, chain_axis=0, draw_axis=1))) for v in quantities.values())
    probability = np.clip(inclusion.mean(axis=(0, 1), dtype=float), 0, 1)
    return auc(probability, truth), auc(edge.mean(axis=(0, 1)), truth), ess, rhat


def one(p, n, probability, seconds, seed, long):
    sim = simulate.ising(
        n,
        p=p,
        edge_probability=probability,
        coupling=(0.5, 1.5),
        sign="positive",
        random_seed=seed,
    )
    upper = np.triu_indices(p, 1)
    truth = sim.couplings.to_numpy()[upper] != 0
    steps, points = chains_of(ising(sim.data))
    *short, spent = run(steps, points, seconds=seconds)
    found, counted, ess, rhat = judged(*short, truth)
    draws = short[0].shape[1]
    *most, _ = run(steps, points, draws=long * draws if p < 60 else draws)
    whole = [np.concatenate(parts, axis=1) for parts in zip(short, most, strict=True)]
    final, final_counted, _, _ = judged(*whole, truth)
    print(
        f"p = {p}, n = {n}, table {seed}, {truth.sum()} edges: {draws} draws a chain in "
        f"{spent:.1f} CPU s ({1e3 * spent / (draws * CHAINS):.2f} ms each), AUC {found:.4f} "
        f"({counted:.4f}), long run {final:.4f} ({final_counted:.4f}), smallest ESS {ess:.0f}, "
        f"largest R-hat {rhat:.3f}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--table", type=int, help="only this one, counted from 0")
    parser.add_argument("--columns", type=int, help="only the case with this many columns")
    parser.add_argument("--long", type=int, default=10, help="draws of the long run, in short runs")
    arguments = parser.parse_args()
    seeds = range(arguments.tables) if arguments.table is None else [arguments.table]
    for case in CASES + LARGE * arguments.large:
        if arguments.columns in (None, case[0]):
            for seed in seeds:
                one(*case, seed, arguments.long)


if __name__ == "__main__":
    main()
