"""Coverage of intervals under the exact likelihood, the pseudo-likelihood, and the corrected one.

    uv run python benchmarks/pseudo_calibration.py [--simulations 200]

Weights and biases of a binary Markov random field of 5 columns are drawn from the priors of the model (all
edges present, weights Normal(0, s), biases Normal(0, 1)), then 200 rows; the table says how many of
the weights lie in their central intervals. Calibrated intervals hold the proportion that they claim. Then each
edge is present with probability one half, and the table says how many of the edges that were given a
certain probability are present.
"""

import argparse
import itertools
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import xarray as xr

import bayesstruct as bs

from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.kernels.states import draw_exact
from bayesstruct.models import ising
from bayesstruct.steps import PairwiseSpikeSlab

P, ROWS, DRAWS = 5, 200, 600
LEVELS = (0.5, 0.9)
BINS = (0.0, 0.1, 0.5, 0.9, 1.0)


def simulate(rng, scale, probability=1.0):
    potentials = Potentials("ordinal", (2,) * P)
    while True:
        weight = scale * rng.normal(size=potentials.weight_size)
        weight *= rng.random(len(weight)) < probability
        bias = rng.normal(size=P)
        rows = np.empty((ROWS, P), np.int64)
        tables = potentials.unary(bias), potentials.pair(weight)
        draw_exact(rng, np.array(potentials.states), *tables, rows)
        if (rows.min(axis=0) < rows.max(axis=0)).all() and len({tuple(c) for c in rows.T}) == P:
            return weight, rows


def posterior(model, rng):
    with model:
        step = PairwiseSpikeSlab([model["weight"], model["bias"]])
    step.setup_chain(rng, 0, DRAWS)
    point, kept = model.initial_point(), []
    for t in range(DRAWS + 30):
        point, _ = step.step(point)
        if t >= 30:
            kept.append(point)
    groups = {
        name: (("chain", "draw", dim), np.array([[q[name] for q in kept]]))
        for name, dim in (("weight", "pair"), ("bias", "node"))
    }
    return xr.DataTree.from_dict({"posterior": xr.Dataset(groups)})


def covered(idata, truth):
    draws = idata["posterior"]["weight"].values[0]
    out = []
    for level in LEVELS:
        low, high = np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        out.append((low <= truth) & (truth <= high))
    return np.array(out)


def edges(simulations):
    """Share of edges that are present, by the probability that they were given."""
    rng = np.random.default_rng(1)
    given, present = {"exact": [], "pseudo": []}, []
    for _ in range(simulations):
        truth, rows = simulate(rng, 1.0, 0.5)
        present.append(truth != 0)
        for likelihood, found in given.items():
            draws = posterior(ising(rows, likelihood=likelihood, bias_scale=1.0), rng)
            found.append((draws["posterior"]["weight"].values[0] != 0).mean(axis=0))
    present = np.ravel(present)
    print(f"edges present with probability .5, weights Normal(0, 1), {simulations} tables:")
    for likelihood, found in given.items():
        at = np.digitize(np.ravel(found), BINS[1:-1])
        text = ", ".join(
            f"{present[at == b].mean():.1%} of {(at == b).sum()} at {low} to {high}"
            for b, (low, high) in enumerate(itertools.pairwise(BINS))
        )
        noise = np.ravel(found)[~present]
        print(
            f"  {likelihood:>7}: {text}; absent ones beyond .9: {(noise > 0.9).mean():.1%}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulations", type=int, default=200)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    for scale in (0.5, 1.5):
        hits = {"exact": [], "pseudo": [], "pseudo, corrected": []}
        for _ in range(arguments.simulations):
            truth, rows = simulate(rng, scale)
            options = {"edge_probability": 1.0, "slab_scale": scale, "bias_scale": 1.0}
            exact = ising(rows, likelihood="exact", **options)
            hits["exact"].append(covered(posterior(exact, rng), truth))
            pseudo = ising(rows, **options)
            draws = posterior(pseudo, rng)
            hits["pseudo"].append(covered(draws, truth))
            hits["pseudo, corrected"].append(covered(bs.sandwich(draws, pseudo), truth))
        print(f"weights Normal(0, {scale}), {arguments.simulations} tables of {ROWS} x {P}:")
        for name, values in hits.items():
            shares = np.mean(values, axis=(0, 2))
            text = ", ".join(
                f"{s:.1%} in {level:.0%}" for level, s in zip(LEVELS, shares, strict=True)
            )
            print(f"  {name:>18}: {text}", flush=True)
    edges(arguments.simulations)


if __name__ == "__main__":
    main()
