"""Draw every figure of networks at several sizes, to be looked at: `uv run python docs/render_figures.py FOLDER [WORD ...]`.

Nothing is sampled: results are made up. With words, only files whose names contain one of them are written.
"""

import sys
import time

from pathlib import Path

import matplotlib as mpl
import networkx as nx
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt
import xarray as xr

import bayesstruct as bs

SIZES = 6, 13, 30, 60, 100
LONG = "Größe des Anteils, gemessen im Jahr 2020"  # 40 characters
WINE = (
    "alcohol malic_acid ash alcalinity_of_ash magnesium total_phenols flavanoids nonflavanoid_phenols "
    "proanthocyanins color_intensity hue od280/od315_of_diluted_wines proline"
).split()


def names_of(p: int, kind: str) -> list[str]:
    """Names of p variables: "short", or "long" with up to 40 characters."""
    if kind == "short":
        return [f"v{k + 1}" for k in range(p)]
    if p == len(WINE):
        return list(WINE)
    stems = [
        "nonflavanoid phenols in",
        "worst_concave_points_of",
        LONG[:24],
        "how often I felt that I",
    ]
    return [f"{stems[k % 4]} {'item' if k % 3 else 'subscale'} {k + 1}" for k in range(p)]


def result(p: int, kind: str = "short", seed: int = 0) -> xr.DataTree:
    """Make up a result over undirected graphs: about 1.3 edges a node, most of them well determined."""
    rng = np.random.default_rng(seed)
    names, (i, j) = names_of(p, kind), np.triu_indices(p, 1)
    present = rng.random(len(i)) < 2.6 / (p - 1)
    probability = np.where(present, rng.beta(6, 0.7, len(i)), rng.beta(0.25, 8, len(i)))
    edge = (rng.random((2, 100, len(i))) < probability).astype("int8")
    centre = np.where(rng.random(len(i)) < 0.3, -1, 1) * rng.uniform(0.1, 0.5, len(i))
    prior = np.full(len(i), 0.5)
    first, last = np.flatnonzero(present)[[0, -1]]
    edge[..., first], prior[first] = 1, 1.0
    edge[..., -1 if last != len(i) - 1 else -2], prior[-1 if last != len(i) - 1 else -2] = 0, 0.0
    draws = {
        "edge": (("chain", "draw", "pair"), edge),
        "weight": (("chain", "draw", "pair"), edge * (centre + 0.03 * rng.normal(size=edge.shape))),
    }
    constants = {
        "edge_source": ("pair", i), "edge_target": ("pair", j), "edge_prior": ("pair", prior),
        "location": ("node", np.zeros(p)), "scale": ("node", np.ones(p)),
    }  # fmt: skip
    labels = [f"{names[a]} -- {names[b]}" for a, b in zip(i, j, strict=True)]
    coords = {"pair": labels, "node": names}
    return xr.DataTree.from_dict(
        {"posterior": xr.Dataset(draws, coords), "constant_data": xr.Dataset(constants, coords)}
    )


def dag(p: int, kind: str = "short", seed: int = 0) -> nx.DiGraph:
    """Make up a directed acyclic graph with weights, at most three parents a node."""
    rng = np.random.default_rng(seed)
    names, graph = names_of(p, kind), nx.DiGraph()
    graph.add_nodes_from(names)
    for child in range(1, p):
        near = np.arange(max(0, child - 12), child)
        for parent in rng.choice(near, min(len(near), rng.integers(0, 4)), replace=False):
            weight = rng.choice([-1, 1]) * rng.uniform(0.2, 0.9)
            about = {"weight": weight, "probability": rng.uniform(0.5, 1)}
            graph.add_edge(names[parent], names[child], **about)
    return graph


def feedback(p: int, kind: str = "short") -> nx.DiGraph:
    """Make up a graph with arcs of both directions between some pairs."""
    graph = dag(p, kind, 3)
    for k, (a, b) in enumerate(list(graph.edges)):
        if k % 3 == 0:
            graph.add_edge(b, a, weight=0.3, probability=0.8)
    return graph


def side_by_side(idata: xr.DataTree):
    """Draw a network beside the evidence for its edges, with the same positions."""
    _figure, (left, right) = plt.subplots(1, 2, figsize=(12, 6), layout="constrained")
    bs.plot_graph(idata, ax=left, layout="spring", evidence=10)
    left.set_title("found")
    bs.plot_graph(idata, ax=right, layout=left, legend=False)
    right.set_title("probable")
    return right


def small_axes(graph):
    """Draw four networks on axes of 4 x 3 inches."""
    _figure, four = plt.subplots(2, 2, figsize=(8, 6))
    kinds = ["circle", "spring", "kamada_kawai", "layers" if graph.is_directed() else "circle"]
    for ax, kind in zip(four.flat, kinds, strict=True):
        bs.plot_graph(graph, ax=ax, layout=kind)
    return ax


def decorated(idata: xr.DataTree, kind):
    """Draw groups and predictability."""
    names = list(bs.median_graph(idata).nodes)
    groups = {name: f"group {'ABC'[k % 3]}" for k, name in enumerate(names)}
    rings = {name: (k + 1) / len(names) for k, name in enumerate(names)}
    return bs.plot_graph(idata, layout=kind, groups=groups, predictability=rings)


def dark(idata: xr.DataTree):
    """Draw in a dark theme, in larger letters."""
    with plt.style.context(["dark_background", {"font.size": 12, "font.family": "serif"}]):
        return bs.plot_graph(idata, layout="spring", evidence=10)


def figures(p: int, kind: str):
    """All figures of a size, as functions by name."""
    idata, graph = result(p, kind), dag(p, kind)
    yield "graph", lambda: bs.plot_graph(idata)
    for layout in ("circle", "spring", "kamada_kawai"):
        yield f"graph_{layout}", lambda layout=layout: bs.plot_graph(idata, layout=layout)
    yield "graph_evidence", lambda: bs.plot_graph(idata, evidence=10)
    yield "graph_groups_circle", lambda: decorated(idata, "circle")
    yield "graph_groups_spring", lambda: decorated(idata, "spring")
    yield "graph_dark", lambda: dark(idata)
    yield "side_by_side", lambda: side_by_side(idata)
    yield "small", lambda: small_axes(bs.median_graph(idata))
    yield "dag", lambda: bs.plot_graph(graph)
    yield "dag_circle", lambda: bs.plot_graph(graph, layout="circle")
    yield "dag_spring", lambda: bs.plot_graph(graph, layout="spring")
    yield "dag_feedback", lambda: bs.plot_graph(feedback(p, kind), layout="circle")
    yield "dag_small", lambda: small_axes(graph)
    yield "evidence", lambda: bs.plot_evidence(idata)
    yield "edges", lambda: bs.plot_edges(idata)
    yield "matrix", lambda: bs.plot_matrix(idata)


def main(folder: Path, words: list[str]) -> None:
    """Write the figures as files."""
    folder.mkdir(parents=True, exist_ok=True)
    for p in SIZES:
        for kind in ("short", "long"):
            for name, draw in figures(p, kind):
                path = folder / f"{name}_{p}_{kind}.png"
                if words and not any(word in path.name for word in words):
                    continue
                start = time.perf_counter()
                figure = draw().figure
                figure.savefig(path, dpi=80)
                print(f"{path.name}: {time.perf_counter() - start:.2f} s")  # noqa: T201
                plt.close("all")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
