"""Bayesian networks of 10 columns of numbers and 10 of states: accuracy and convergence after some CPU seconds.

    uv run python benchmarks/mixed_networks.py                    # n = 1,000, three tables
    uv run python benchmarks/mixed_networks.py --rows 300 --tables 1
    uv run python benchmarks/mixed_networks.py --rows 500 --half --missing 0.05 --draws 2000

With ``--half`` every second column is taken, 5 of numbers and 5 of states; with ``--missing`` this share of the values is
removed, wherever they are, and the peer has the complete rows that are left. ``--draws`` are kept from each chain, after 100 that are not.

Random graphs with 3 expected neighbours and at most 3 parents; columns 0-9 are numbers with normal noise, 10-13 have two states (logistic), 14-16
three states without an order (multinomial) and 17-19 four ordered ones (cumulative logistic). Effects are 0.4 to 1 noise scales for
one standard deviation of a number, and log odds ratios of 0.8 to 2; parents of numbers and states alike. Two chains of
``bs.models.bayesian_network(table, score="mixed", prior="edge")``.

The peer is the score of mixed networks in other packages (bnlearn's ``bic-cg``), written here: columns of numbers have one linear
regression for each configuration of their parents with states, columns of states a table of probabilities and no parents that are
numbers, weighed by BIC; hill climbing by additions, deletions and reversals from the empty graph. AUROC and F1 are those of the edges without
direction. CPU seconds contain everything but the compilation.
"""

import argparse
import itertools
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import arviz as az
import numpy as np
import pandas as pd

from sklearn.metrics import f1_score, roc_auc_score

import bayesstruct as bs

from bayesstruct.networks.kernels.mixed_layout import MixedLayout
from bayesstruct.networks.kernels.mixed_rows import draw_rows
from bayesstruct.steps import MixedNetworkMCMC

FAMILIES = ["normal"] * 10 + ["logistic"] * 4 + ["multinomial"] * 3 + ["ordinal"] * 3
STATES = [0] * 10 + [2] * 4 + [3] * 3 + [4] * 3
CHAINS, WARM_UP, DRAWS = 2, 100, 400


def simulate(n, seed):
    """Table and true graph, rows as parents."""
    rng, d = np.random.default_rng(seed), len(FAMILIES)
    graph = np.ones((d, d), bool)
    while graph.sum(0).max() > 3:
        order = rng.permutation(d)
        graph[np.ix_(order, order)] = np.triu(rng.random((d, d)) < 3 / (d - 1), 1)
    layout = MixedLayout(FAMILIES, STATES)
    vector = np.zeros(layout.size)
    for i in range(d):
        strong = (0.8, 2.0) if STATES[i] else (0.4, 1.0)
        places = layout.coefficients[i][:, 1:][:, graph[layout.owner, i]]
        vector[places] = rng.uniform(*strong, places.shape) * rng.choice([-1, 1], places.shape)
        if not STATES[i]:
            vector[layout.extras[i]] = 1.0
        elif FAMILIES[i] == "ordinal":
            vector[layout.extras[i]] = [-1.1, 0.0, 1.1]
    x = draw_rows(layout, rng.random((n, d)), vector, graph, np.full(d, np.nan))
    table = pd.DataFrame({f"x{i}": x[:, i] for i in range(d) if not STATES[i]})
    for i in np.flatnonzero(STATES).tolist():
        labels = np.array([*"abcd"])
        table[f"s{i}"] = pd.Categorical(
            labels[x[:, i].astype(int)],
            labels[: STATES[i]].tolist(),
            ordered=FAMILIES[i] == "ordinal",
        )
    return table, graph, x


def with_gaps(table, share, seed):
    """Table without a share of its values, and which rows are complete."""
    gaps = np.random.default_rng(1000 + seed).random(table.shape) < share
    return table.mask(gaps) if share else table, ~gaps.any(axis=1)


def sample(table, draws, warm_up=WARM_UP):
    """Graphs of all chains, (chain, draw, d, d), the CPU seconds, and the shares accepted and left out."""
    with bs.models.bayesian_network(table, score="mixed", prior="edge") as model:
        step = MixedNetworkMCMC(model.value_vars)
    kept, stats = [], []
    for chain in range(CHAINS):
        step.setup_chain(np.random.default_rng(chain), warm_up, draws)
        point, graphs = model.initial_point(), []
        for t in range(warm_up + draws):
            point, [own] = step.step(point)
            if t >= warm_up:
                graphs.append(point["dag"])
                stats.append((own["acceptance"], own["left_out"]))
        kept.append(graphs)
    return np.array(kept), *np.mean(stats, axis=0)


def regression_bic(x, child, parents):
    """Log likelihood of regressions by configuration of the parents with states, less the price of the parameters."""
    numbers = [j for j in parents if not STATES[j]]
    states = [j for j in parents if STATES[j]]
    size = len(numbers) + 1
    configurations = list(itertools.product(*[range(STATES[j]) for j in states]))
    out = -0.5 * np.log(len(x)) * len(configurations) * (size + 1)
    for configuration in configurations:
        rows = x[(x[:, states] == configuration).all(axis=1)]
        if not len(rows):
            continue
        if len(rows) <= size + 2:
            return -np.inf
        design = np.column_stack([np.ones(len(rows)), rows[:, numbers]])
        left = rows[:, child] - design @ np.linalg.lstsq(design, rows[:, child])[0]
        out -= 0.5 * len(rows) * (np.log(2 * np.pi * (left @ left) / len(rows)) + 1)
    return out


def table_bic(x, child, parents):
    """Log likelihood of a table of probabilities, less the price of the parameters; no parents that are numbers."""
    if any(not STATES[j] for j in parents):
        return -np.inf
    code, k = np.zeros(len(x), int), STATES[child]
    for j in parents:
        code = code * STATES[j] + x[:, j].astype(int)
    configurations = int(np.prod([STATES[j] for j in parents]))
    counts = np.bincount(code * k + x[:, child].astype(int), minlength=configurations * k)
    counts = counts.reshape(-1, k)
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    likelihood = (counts * np.log(np.where(counts, counts / total, 1.0))).sum()
    return likelihood - 0.5 * np.log(len(x)) * configurations * (k - 1)


def hill_climb(x):
    """Graph at a local optimum of the conditional Gaussian BIC."""
    d, known = x.shape[1], {}
    graph = np.zeros((d, d), bool)

    def score(child, parents):
        key = child, tuple(np.flatnonzero(parents))
        if key not in known:
            known[key] = (table_bic if STATES[child] else regression_bic)(x, *key)
        return known[key]

    def gain(i, j, there, back):
        trial = graph.copy()
        trial[i, j], trial[j, i] = there, back
        changed = {j} if graph[j, i] == back else {i, j}
        return sum(score(c, trial[:, c]) - score(c, graph[:, c]) for c in changed)

    while True:
        moves = []
        for i, j in itertools.permutations(range(d), 2):
            if graph[i, j]:
                moves += [(i, j, False, False), (i, j, False, True)]
            elif not graph[j, i]:
                moves.append((i, j, True, False))
        legal = [move for move in moves if not cyclic(graph, move)]
        values = [gain(*move) for move in legal]
        best = int(np.argmax(values))
        if not values[best] > 1e-9:
            return graph
        i, j, there, back = legal[best]
        graph[i, j], graph[j, i] = there, back


def cyclic(graph, move):
    """Whether a move closes a cycle."""
    i, j, there, back = move
    trial = graph.copy()
    trial[i, j], trial[j, i] = there, back
    left = np.ones(len(graph), bool)
    while left.any():
        roots = left & ~trial[left].any(axis=0)
        if not roots.any():
            return True
        left &= ~roots
    return False


def report(name, graph, truth, seconds, rest=""):
    """Print one line."""
    upper = np.triu_indices(len(truth), 1)
    edges, true = (graph + graph.T)[upper], (truth | truth.T)[upper]
    area, found = roc_auc_score(true, edges), f1_score(true, edges > 0.5)
    print(f"{name:28s} AUROC {area:.3f}  F1 {found:.3f}  CPU {seconds:6.1f} s  {rest}", flush=True)


def main():
    """Run both on the same tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--tables", type=int, default=3)
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--missing", type=float, default=0.0)
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args()
    if options.half:
        FAMILIES[:], STATES[:] = FAMILIES[::2], STATES[::2]
    warnings.simplefilter("ignore")
    sample(with_gaps(simulate(60, 0)[0], options.missing, 0)[0], 2, 0)  # compiles
    for seed in range(options.tables):
        table, truth, x = simulate(options.rows, seed)
        table, complete = with_gaps(table, options.missing, seed)
        begin = time.process_time()
        graphs, accepted, left_out = sample(table, options.draws)
        seconds = time.process_time() - begin
        edges = graphs + graphs.transpose(0, 1, 3, 2)
        mean = edges.mean(axis=(0, 1))
        moving = (mean > 0.02) & (mean < 0.98) & np.triu(np.ones_like(mean, bool), 1)
        worst = max((float(az.rhat(edges[..., i, j])) for i, j in np.argwhere(moving)), default=1)
        rest = f"R-hat {worst:.3f}  accepted {accepted:.2f}  left out {left_out:.3f}"
        if options.missing:
            rest += f"  complete rows {complete.sum()}"
        report("posterior, score='mixed'", graphs.mean(axis=(0, 1)), truth, seconds, rest)
        begin = time.process_time()
        report(
            "conditional Gaussian BIC",
            hill_climb(x[complete]).astype(float),
            truth,
            time.process_time() - begin,
        )


if __name__ == "__main__":
    main()
