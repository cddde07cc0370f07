"""Posterior over trees with hidden nodes: 30 columns of numbers or 10 of states, 1,000 rows, against the true tree and two estimates.

    OPENBLAS_NUM_THREADS=1 uv run python benchmarks/latent_tree_posterior.py [numbers|states]

Printed are the time of pm.sample, the largest R-hat and the smallest effective sample size of splits that some but not all draws have, and how many
splits of the consensus tree, of recursive grouping and of neighbour joining are not those of the true tree. Compilation is not counted: a small table comes
first.
"""

import logging
import sys
import time
import warnings

import networkx as nx
import numpy as np
import pymc as pm

import bayesstruct as bs

CHAINS = 4


def splits(graph, columns):
    """Sets of columns that edges cut off from the first one."""
    found = set()
    for a, b in graph.edges:
        cut = graph.copy()
        cut.remove_edge(a, b)
        side = nx.node_connected_component(cut, a)
        side = side if columns[0] not in side else set(graph) - side
        found.add(frozenset(side) & frozenset(columns))
    return found


def sampled(data, score, draws, tune, chains):
    """Result of pm.sample and seconds."""
    with bs.models.latent_tree(data, score=score):
        begin = time.perf_counter()
        idata = pm.sample(
            draws,
            tune=tune,
            chains=chains,
            progressbar=False,
            random_seed=1,
            compute_convergence_checks=False,
        )
        return idata, time.perf_counter() - begin


#: Score, columns, kind of simulation, draws, draws before them.
KINDS = {
    "numbers": ("bge", 30, "gaussian", 400, 300),
    "states": ("bdeu", 10, "discrete", 150, 100),
}


def main(kind="numbers"):
    """Print one line for each table."""
    score, p, simulated, draws, tune = KINDS[kind]
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    sampled(bs.simulate.latent_tree(50, p=5, kind=simulated, random_seed=1).data, score, 5, 5, 1)
    print(f"{p} columns of {kind}, {CHAINS} chains, {tune} + {draws} draws each")
    for seed in range(2):
        made = bs.simulate.latent_tree(1000, p=p, kind=simulated, random_seed=seed)
        columns = list(made.data.columns)
        true = splits(made.graph, columns)
        idata, seconds = sampled(made.data, score, draws, tune, CHAINS)
        table = bs.split_table(idata)
        open_ = table[table["r_hat"].notna() & table["ess"].notna()]
        found = {"posterior": splits(bs.consensus_tree(idata), columns)}
        for method in ("rg", "clnj"):
            graph = bs.solvers.latent_tree(made.data, columns=kind, method=method).graph
            found[method] = splits(graph, columns)
        share = table.set_index("split")["probability"]
        right = [share.get(", ".join(c for c in columns if c in own), 0.0) for own in true]
        counts = bs.hidden_node_table(idata)["probability"]
        hidden = sum(own for _, own in made.graph.nodes(data="hidden"))
        wrong = ", ".join(f"{name} {len(own ^ true)}" for name, own in found.items())
        print(
            f"table {seed}: {seconds:.0f} s; R-hat at most {open_['r_hat'].max():.3f}, ESS at least {open_['ess'].min():.0f} "
            f"({len(open_)} splits); true hidden nodes {hidden}, posterior mean {counts @ counts.index:.1f}; "
            f"mean probability of a true split {np.mean(right):.2f}; splits wrong or lost of {len(true)}: {wrong}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
