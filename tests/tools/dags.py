"""Made-up results of Bayesian networks that keep the contract of `idata`, and random graphs."""

import itertools

import networkx as nx
import numpy as np
import xarray as xr


def all_dags(p):
    """Return every directed acyclic graph over p nodes as boolean matrices, rows parents."""
    off = ~np.eye(p, dtype=bool)
    out = []
    for bits in itertools.product([0, 1], repeat=p * (p - 1)):
        matrix = np.zeros((p, p), bool)
        matrix[off] = bits
        power = np.linalg.matrix_power(np.eye(p, dtype=int) + matrix, p)
        if not ((power > 0) & (power > 0).T & off).any():
            out.append(matrix)
    return np.array(out)


def random_dags(rng, n, p, density=0.4):
    """Draw n graphs over p nodes: a random order, then each arc along it with this probability."""
    lower = np.triu(rng.random((n, p, p)) < density, 1)
    order = np.argsort(rng.random((n, p)), axis=1)
    return np.take_along_axis(
        np.take_along_axis(lower, order[:, :, None], axis=1), order[:, None, :], axis=2
    )


def to_graph(matrix, names=None):
    """Make a networkx.DiGraph of a matrix."""
    names = names or [f"v{i}" for i in range(len(matrix))]
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from((names[i], names[j]) for i, j in np.argwhere(matrix))
    return graph


def dag_posterior(graphs, *, names=None, weighted=True, prior=0.25, seed=0, **variables):
    """Build a DataTree from graphs of shape (chain, draw, p, p)."""
    graphs = np.asarray(graphs)
    p = graphs.shape[-1]
    names = names or [f"v{i}" for i in range(p)]
    target, source = np.nonzero(~np.eye(p, dtype=bool))
    labels = [f"{names[i]} -> {names[j]}" for i, j in zip(source, target, strict=True)]
    arc = graphs[..., source, target].astype("int8")
    sample = ("chain", "draw")
    draws = {
        "dag": ((*sample, "node", "node_"), graphs.astype("int8")),
        "arc": ((*sample, "ordered_pair"), arc),
    }
    if weighted:
        rng = np.random.default_rng(seed)
        weight = arc * (0.5 + 0.1 * rng.normal(size=arc.shape))
        draws["weight"] = ((*sample, "ordered_pair"), weight)
    draws |= {name: (sample, value) for name, value in variables.items()}
    constants = {
        "arc_source": ("ordered_pair", source),
        "arc_target": ("ordered_pair", target),
        "arc_prior": ("ordered_pair", np.broadcast_to(prior, len(source)).astype(float)),
        "arc_acyclic": 1,
    }
    coords = {"node": names, "node_": names, "ordered_pair": labels}
    return xr.DataTree.from_dict(
        {"posterior": xr.Dataset(draws, coords), "constant_data": xr.Dataset(constants)}
    )
