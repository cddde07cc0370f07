"""Reliability of edge probabilities: of pairs that are given a certain probability, how many have the edge?

    uv run python benchmarks/edge_reliability.py [KIND ...] [--tables 200]

Parameters and a table of 5 columns and 40 rows are drawn from the prior of the model, by plain rejection (`tests/tools/priors.py`), and a
short chain of the steps of `pm.sample` gives the probabilities. Where the model is right the share of true edges is the mean probability
up to its standard error, for which a table counts as one observation. Not all of these models are right for their tables:
"pseudo_likelihood" has an approximate likelihood and standardises its columns (tables from the G-Wishart prior), and "mixed" standardises
the numeric ones, so that the prior is that of other units; "g_wishart_standardised" shows what that alone does. Laplace and horseshoe priors have no edges; there the script prints the share of
partial correlations in their credible intervals. Differences between groups: `group_differences.py --reliability`.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import itertools
import logging
import sys
import time
import warnings

from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from tools.calibration import assigned_step
from tools.priors import g_wishart_prior, horseshoe_prior, laplace_prior, spike_slab_prior

from bayesstruct.models import (
    blockwise_gaussian_graphical,
    gaussian_graphical,
    node_selection_gaussian_graphical,
)
from bayesstruct.precision.kernels.cholesky import unpack_cholesky

P, ROWS, DRAWS, WARM_UP = 5, 40, 400, 50
PAIRS = np.triu_indices(P, 1)
BINS = (0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.001)
LEVELS = (0.5, 0.9)
SCALES = {"spike_scale": 0.1, "slab_scale": 0.8}
SPIKE_SLAB = {"spike": 0.1, "slab": 0.8, "diagonal_rate": 0.5}
#: Rows in each level of the columns that count by their order alone: a level for each, two, three levels.
SIZES = ([1] * ROWS, [16, 24], [8, 20, 12], [1] * ROWS, [32, 8])


def spike_slab(rng, size):
    """Matrices and edges with independent indicators."""
    matrices, edges, _ = spike_slab_prior(rng, size, P, probability=0.3, **SPIKE_SLAB)
    return list(zip(matrices, edges, strict=True))


def g_wishart(rng, size):
    """Matrices and edges with exact zeros."""
    out = []
    for _ in range(size):
        edge = rng.random(len(PAIRS[0])) < 0.3
        adjacency = np.zeros((P, P), bool)
        adjacency[PAIRS] = edge
        out.append((g_wishart_prior(rng, adjacency | adjacency.T), edge))
    return out


def of_pairs(rng, size, probabilities):
    """Matrices and edges, kept if positive definite; ``probabilities(rng)`` is a (p, p) array, drawn anew each time."""
    out = []
    while len(out) < size:
        edge = np.triu(rng.random((P, P)) < probabilities(rng), 1)
        values = np.triu(rng.normal(size=(P, P)) * np.where(edge, 0.8, 0.1), 1)
        K = values + values.T + np.diag(rng.exponential(2.0, P))
        if np.linalg.eigvalsh(K)[0] > 0:
            out.append((K, edge[PAIRS]))
    return out


def between_nodes(rng):
    """Half of the pairs of nodes that take part, which half of them do."""
    z = rng.random(P) < 0.5
    return 0.5 * np.outer(z, z)


def between_blocks(rng):
    """Probabilities within and between blocks of the columns."""
    shares = rng.dirichlet(np.full(5, 1.0 / 5))
    block = rng.choice(5, size=P, p=shares)
    return np.where(block[:, None] == block, rng.beta(2.0, 2.0), rng.beta(1.0, 9.0))


def normal_rows(rng, K):
    """Rows with standard normal column means."""
    return rng.multivariate_normal(rng.normal(size=P), np.linalg.inv(K), size=ROWS)


def by_order(rng, K, columns=range(P)):
    """Rows whose columns were cut into levels, or those of these places."""
    table = pd.DataFrame(normal_rows(rng, K)).add_prefix("x")
    for j in columns:
        place = table.iloc[:, j].rank().astype(int) - 1
        table.isetitem(j, np.repeat(np.arange(len(SIZES[j])), SIZES[j])[place].astype(float))
    return table


def mixed_rows(rng, K):
    """Two numeric columns, and three that count by their order."""
    table = by_order(rng, K, (1, 2, 4))
    for j in (1, 2, 4):
        table.isetitem(j, pd.Categorical(table.iloc[:, j], ordered=True))
    return table


def plain(**options):
    """Model of a table as it is, not standardised."""
    return lambda rows: gaussian_graphical(rows, standardize=False, **options)


def ordered(marginals):
    """Model of columns that count by their order."""
    return lambda rows: gaussian_graphical(
        rows, marginals=marginals, edge_probability=0.3, **SCALES
    )


#: Draws from the prior, rows given a matrix, and the model.
KINDS = {
    "spike_slab": (spike_slab, normal_rows, plain(edge_probability=0.3, **SCALES)),
    "g_wishart": (g_wishart, normal_rows, plain(prior="g_wishart", edge_probability=0.3)),
    "pseudo_likelihood": (
        g_wishart,
        lambda rng, K: pd.DataFrame(normal_rows(rng, K)).add_prefix("x"),
        lambda rows: gaussian_graphical(rows, prior="pseudo_likelihood", edge_probability=0.3),
    ),
    "g_wishart_standardised": (
        g_wishart,
        lambda rng, K: pd.DataFrame(normal_rows(rng, K)).add_prefix("x"),
        lambda rows: gaussian_graphical(rows, prior="g_wishart", edge_probability=0.3),
    ),
    "rank": (spike_slab, by_order, ordered("rank")),
    "mixed": (spike_slab, mixed_rows, ordered("mixed")),
    "nodes": (
        lambda rng, size: of_pairs(rng, size, between_nodes),
        normal_rows,
        lambda rows: node_selection_gaussian_graphical(rows, standardize=False, **SCALES),
    ),
    "blocks": (
        lambda rng, size: of_pairs(rng, size, between_blocks),
        normal_rows,
        lambda rows: blockwise_gaussian_graphical(rows, standardize=False, **SCALES),
    ),
    "laplace": (
        lambda rng, size: [(K, None) for K in laplace_prior(rng, size, P, rate=1.5)],
        normal_rows,
        plain(prior="laplace", rate=1.5),
    ),
    "horseshoe": (
        lambda rng, size: [(K, None) for K in horseshoe_prior(rng, size, P)[0]],
        normal_rows,
        plain(prior="horseshoe"),
    ),
}


class Chains:
    """Short chains of the steps that `pm.sample` would use, for one table after the other.

    Model and steps are made once for all tables that are arrays, which the steps read anew, and for each one that is a frame.
    """

    def __init__(self, build):
        self.build, self.step, self.start, self.table = build, None, None, None

    def points(self, rows, rng):
        """Points after the warm-up."""
        if self.step is None or isinstance(rows, pd.DataFrame):
            model = self.build(rows)
            self.step, self.start = assigned_step(model), model.initial_point(random_seed=1)
            self.table = model.rvs_to_values[model.observed_RVs[0]].data
        else:
            self.table[:] = rows  # the constant of the model
            for method in getattr(self.step, "methods", [self.step]):
                for part in getattr(method, "parts", []):
                    if hasattr(part, "forget"):
                        part.forget()
        self.step.setup_chain(rng, WARM_UP, DRAWS)
        point = dict(self.start)
        for t in range(WARM_UP + DRAWS):
            if t == WARM_UP:
                self.step.stop_tuning()
            point, _ = self.step.step(point)
            if t >= WARM_UP:
                yield point


def weights(K):
    """Partial correlations."""
    d = np.sqrt(np.diagonal(K, axis1=-2, axis2=-1))
    return -K[..., PAIRS[0], PAIRS[1]] / (d[..., PAIRS[0]] * d[..., PAIRS[1]])


def share_and_error(true, chosen):
    """Share of the chosen pairs that are true, (tables, pairs), and its standard error, tables being independent."""
    count = chosen.sum()
    share = (true & chosen).sum() / count
    own = (true & chosen).sum(axis=1) - share * chosen.sum(axis=1)
    return share, np.sqrt(np.square(own).sum()) / count


def reliability(kind, tables):
    """Print the table of one kind of model."""
    prior, simulate, build = KINDS[kind]
    rng, start = np.random.default_rng(1), time.process_time()
    given, true, chains = [], [], Chains(build)
    for K, edge in prior(rng, tables):
        points = chains.points(simulate(rng, K), rng)
        if edge is None:
            name = "precision_cholesky-cov__"
            draws = weights(np.array([unpack_cholesky(q[name], P)[0] for q in points]))
            given.append((draws < weights(K)).mean(axis=0))  # rank of the true value
        else:
            given.append(np.mean([q["edge"] for q in points], axis=0))
            true.append(edge)
    given = np.array(given)
    print(f"{kind}, {tables} tables, {time.process_time() - start:.0f} CPU s")
    if not true:
        everything = np.ones(given.shape, bool)
        for level in LEVELS:
            share, error = share_and_error(np.abs(given - 0.5) < level / 2, everything)
            print(f"    {level:.0%} interval holds {share:.1%} +- {error:.1%}")
        return
    true, deviations = np.array(true, bool), []
    for low, high in itertools.pairwise(BINS):
        chosen = (given >= low) & (given < high)
        if chosen.sum() < 20:
            continue
        share, error = share_and_error(true, chosen)
        mean = given[chosen].mean()
        # Where all pairs are true or none is, that of independent pairs with these probabilities.
        error = max(error, np.sqrt((given * (1 - given))[chosen].sum()) / chosen.sum())
        deviations.append((share - mean) / error)
        print(
            f"    {low:4.2f}-{min(high, 1):4.2f} {chosen.sum():5} pairs, mean probability {mean:.3f}, true {share:.3f} +- {error:.3f}"
        )
    worst = max(deviations, key=abs, default=np.nan)
    print(f"    largest deviation {worst:.1f} standard errors of {len(deviations)}", flush=True)


def main():
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", default=[*KINDS], help=", ".join(KINDS))
    parser.add_argument("--tables", type=int, default=200)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    for kind in options.kinds:
        reliability(kind, options.tables)


if __name__ == "__main__":
    main()
