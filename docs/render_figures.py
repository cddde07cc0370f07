"""Draw every figure of the package at several sizes, to be looked at: `uv run python docs/render_figures.py FOLDER [WORD ...]`.

Nothing is sampled: results are made up. With words, only files whose names contain one of them are written.
"""

import sys
import time

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt
import xarray as xr

from render_results import (
    clusters,
    coefficients,
    dag,
    features,
    feedback,
    grouped,
    links,
    replicated,
    result,
    selected,
    series,
    settings,
    support,
    truth,
    two_ways,
)

import bayesstruct as bs

SIZES = 6, 13, 30, 60, 100


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


def two_results(p: int, kind: str):
    """Draw the strength of nodes in two results."""
    both = {"women": result(p, kind), "men": result(p, kind, 1)}
    return bs.plot_centrality(both, ["strength", "closeness"])


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
    yield "directions", lambda: bs.plot_directions(two_ways(p, kind))
    yield "evidence", lambda: bs.plot_evidence(idata)
    yield "edges", lambda: bs.plot_edges(idata)
    yield "panels", lambda: bs.plot_evidence(idata, kind="panels")
    yield "matrix", lambda: bs.plot_matrix(idata)
    yield "matrix_factors", lambda: bs.plot_matrix(idata, values="bayes_factor", order="alike")
    yield "difference", lambda: bs.plot_difference(grouped(p, kind))
    yield "calibration", lambda: bs.plot_calibration(idata, truth(p, kind))
    yield "comparison", lambda: bs.plot_comparison(bs.compare(idata, result(p, kind, 1)))
    yield "bootstrap", lambda: bs.plot_bootstrap_support(support(p, kind))
    yield "sensitivity", lambda: bs.plot_sensitivity(settings(p, kind))
    yield "centrality", lambda: bs.plot_centrality(idata)
    yield "centrality_two", lambda: two_results(p, kind)
    yield "co_membership", lambda: bs.plot_co_membership(idata)
    yield from figures_of_families(p, kind)


def figures_of_families(p: int, kind: str):
    """All figures that one family of models has for itself, as functions by name."""
    yield "nodes", lambda: bs.plot_nodes(selected(p, kind))
    yield "support", lambda: bs.plot_support(coefficients(p, kind))
    yield "correlations", lambda: bs.plot_correlations(replicated(p, kind, numbers=True))
    yield "pair_tables", lambda: bs.plot_pair_tables(replicated(p, kind))
    yield "item_rest", lambda: bs.plot_item_rest(replicated(p, kind))
    yield "sum_scores", lambda: bs.plot_sum_scores(replicated(p, kind))
    yield "features", lambda: bs.plot_features(features(p, kind))
    yield "features_of_rows", lambda: bs.plot_features(features(p, kind, loadings=False))
    yield "feature_count", lambda: bs.plot_feature_count(features(p, kind))
    yield "links", lambda: bs.plot_links(links(p, kind))
    yield "clusters", lambda: bs.plot_clusters(clusters(p, kind))
    yield "states", lambda: bs.plot_states(series(p, kind))


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
                figure = np.ravel(draw())[0].figure
                figure.savefig(path, dpi=80)
                print(f"{path.name}: {time.perf_counter() - start:.2f} s")  # noqa: T201
                plt.close("all")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
