"""Results that are made up, not sampled, for the figures of `docs/render_figures.py`."""

import networkx as nx
import numpy as np
import pandas as pd
import xarray as xr

from bayesstruct.features.kernels.link_codes import LIKELIHOODS
from bayesstruct.graphs.comparisons.bootstrap import support_of
from bayesstruct.graphs.comparisons.sensitivity import evidence_table, sensitivity_of
from bayesstruct.graphs.evidence import evidence

LONG = "Größe des Anteils, gemessen im Jahr 2020"  # 40 characters
WINE = (
    "alcohol malic_acid ash alcalinity_of_ash magnesium total_phenols flavanoids nonflavanoid_phenols "
    "proanthocyanins color_intensity hue od280/od315_of_diluted_wines proline"
).split()
OVER = "chain", "draw"


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
        "edge": ((*OVER, "pair"), edge),
        "weight": ((*OVER, "pair"), edge * (centre + 0.03 * rng.normal(size=edge.shape))),
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


def truth(p: int, kind: str, seed: int = 0) -> list[tuple[str, str]]:
    """Pairs that are joined in the graph from which `result` makes its draws."""
    rng = np.random.default_rng(seed)
    names, (i, j) = names_of(p, kind), np.triu_indices(p, 1)
    present = np.flatnonzero(rng.random(len(i)) < 2.6 / (p - 1))
    return [(names[i[k]], names[j[k]]) for k in present]


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


def two_ways(p: int, kind: str = "short") -> xr.DataTree:
    """Make up draws of directed acyclic graphs in which some arcs are reversed or missing."""
    rng, names, graph = np.random.default_rng(2), names_of(p, kind), dag(p, kind)
    base = nx.to_numpy_array(graph, nodelist=names, weight=None).astype(bool)
    drawn = base & (rng.random((2, 100, p, p)) < rng.beta(4, 1, (p, p)))
    # all arcs of some draws that go the other way still form no cycle
    other = rng.random((2, 100)) < 0.3
    drawn[other] = drawn[other].swapaxes(1, 2)
    target, source = np.nonzero(~np.eye(p, dtype=bool))
    labels = [f"{names[i]} -> {names[j]}" for i, j in zip(source, target, strict=True)]
    arcs = (("chain", "draw", "ordered_pair"), drawn[..., source, target].astype("int8"))
    constants = {
        "arc_source": ("ordered_pair", source),
        "arc_target": ("ordered_pair", target),
        "arc_prior": ("ordered_pair", np.full(len(source), 0.2)),
        "arc_acyclic": 1,
    }
    coords = {"node": names, "node_": names, "ordered_pair": labels}
    draws = {"arc": arcs, "dag": (("chain", "draw", "node", "node_"), drawn.astype("int8"))}
    return xr.DataTree.from_dict(
        {"posterior": xr.Dataset(draws, coords), "constant_data": xr.Dataset(constants)}
    )


def grouped(p: int, kind: str) -> xr.DataTree:
    """Make up a result of two groups of rows, of which a sixth of the edges differ."""
    idata, rng = result(p, kind), np.random.default_rng(1)
    draws, constants = (idata[name].to_dataset() for name in ("posterior", "constant_data"))
    edge, weight = draws["edge"].values, draws["weight"].values
    present = edge.mean(axis=(0, 1)) > 0.5
    chance = np.where(
        present & (rng.random(len(present)) < 0.4), rng.beta(6, 1, len(present)), 0.02
    )
    differs = rng.random(edge.shape) < chance
    shift = rng.choice([-1, 1], len(present)) * rng.uniform(0.1, 0.4, len(present))
    both = np.stack([weight + differs * shift / 2, weight - differs * shift / 2], axis=2)
    draws["difference"] = ((*OVER, "pair"), differs.astype("int8"))
    draws = draws.drop_vars("weight").assign_coords(group=["women", "men"])
    draws["weight"] = ((*OVER, "group", "pair"), both)
    constants["difference_prior"] = ("pair", np.full(len(present), 0.5))
    return xr.DataTree.from_dict({"posterior": draws, "constant_data": constants})


def selected(p: int, kind: str) -> xr.DataTree:
    """Make up a result of a model that selects nodes."""
    idata, rng = result(p, kind), np.random.default_rng(2)
    draws, constants = (idata[name].to_dataset() for name in ("posterior", "constant_data"))
    on = rng.random((2, 100, p)) < rng.choice([0.005, 0.5, 0.995], p)
    draws["included"] = ((*OVER, "node"), on)
    draws["precision"] = ((*OVER, "node", "node_"), np.zeros((2, 100, p, p)) + np.eye(p))
    constants["node_prior"] = ("node", np.full(p, 0.5))
    return xr.DataTree.from_dict({"posterior": draws, "constant_data": constants})


def coefficients(p: int, kind: str) -> xr.DataTree:
    """Make up a regression whose coefficients may be zero."""
    rng, names = np.random.default_rng(3), names_of(p, kind)
    on = rng.random((2, 200, p)) < np.where(rng.random(p) < 0.4, rng.beta(6, 0.7, p), 0.03)
    draws = {
        "w": ((*OVER, "column"), on * (rng.normal(size=p) + 0.1 * rng.normal(size=on.shape))),
        "w_included": ((*OVER, "column"), on.astype(int)),
    }
    constants, coords = {"w_included_prior": ("column", np.full(p, 0.5))}, {"column": names}
    return xr.DataTree.from_dict(
        {"posterior": xr.Dataset(draws, coords), "constant_data": xr.Dataset(constants, coords)}
    )


def replicated(p: int, kind: str, *, numbers: bool = False) -> xr.DataTree:
    """Make up an observed table, of states or of numbers, and replicates that miss some of its dependence."""
    rng, names, dims = np.random.default_rng(4), names_of(p, kind), ("observation", "node")

    def table(share):
        x = share * rng.normal(size=(300, 1)) + rng.normal(size=(300, p))
        return x if numbers else np.clip(np.round(x + 2), 0, 4)

    replicates = np.array([[table(0.45) for _ in range(60)]])
    return xr.DataTree.from_dict(
        {
            "observed_data": xr.Dataset({"x": (dims, table(0.6))}, {"node": names}),
            "posterior_predictive": xr.Dataset(
                {"x": ((*OVER, *dims), replicates)}, {"node": names}
            ),
        }
    )


def features(p: int, kind: str, *, loadings: bool = True) -> xr.DataTree:
    """Make up latent features of 50 rows and their loadings on p columns, or features of p rows."""
    rng, n = np.random.default_rng(5), 50 if loadings else p
    latent = min(3 + p // 10, 10)
    has = rng.random((n, latent)) < np.linspace(0.8, 0.15, latent)
    drawn = (has ^ (rng.random((2, 40, n, latent)) < 0.03)).astype("int8")
    draws = {"feature": ((*OVER, "observation", "latent"), drawn)}
    coords = {"observation": range(n) if loadings else names_of(p, kind)}
    if loadings:
        load = rng.normal(size=(latent, p)) * (rng.random((latent, p)) < 0.4)
        load = load + 0.1 * rng.normal(size=(2, 40, latent, p))
        draws["loading"], coords["node"] = ((*OVER, "latent", "node"), load), names_of(p, kind)
    return xr.DataTree.from_dict({"posterior": xr.Dataset(draws, coords)})


def links(p: int, kind: str) -> xr.DataTree:
    """Make up links between p objects of four groups, a tenth of the pairs not observed."""
    rng = np.random.default_rng(6)
    member = np.eye(4, dtype=int)[rng.integers(0, 4, p)]
    weight = np.where(np.eye(4, dtype=bool), 2.5, -2.0)
    draws = {
        "feature": ((*OVER, "observation", "latent"), np.broadcast_to(member, (2, 10, p, 4))),
        "interaction": ((*OVER, "latent", "latent_"), np.broadcast_to(weight, (2, 10, 4, 4))),
        "bias": (OVER, np.zeros((2, 10))),
    }
    source, target = np.triu_indices(p, 1)
    seen = rng.random(len(source)) < 0.9
    source, target = source[seen], target[seen]
    y = rng.random(len(source)) < np.where((member[source] == member[target]).all(axis=1), 0.9, 0.1)
    constants = {
        "pair_source": ("pair", source), "pair_target": ("pair", target), "pair_directed": 0,
        "link_likelihood": LIKELIHOODS.index("logistic"),
    }  # fmt: skip
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(draws, {"observation": names_of(p, kind)}),
            "constant_data": xr.Dataset(constants),
            "observed_data": xr.Dataset({"y": ("pair", y.astype(float))}),
        }
    )


def clusters(p: int, kind: str) -> xr.DataTree:
    """Make up a partition of p rows, some of which change their cluster."""
    rng = np.random.default_rng(7)
    usual = rng.choice(5, p, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    moves = rng.random((2, 50, p)) < np.where(rng.random(p) < 0.2, 0.4, 0.03)
    drawn = np.where(moves, rng.integers(0, 5, moves.shape), usual)
    cluster = ((*OVER, "observation"), drawn)
    return xr.DataTree.from_dict(
        {"posterior": xr.Dataset({"cluster": cluster}, {"observation": names_of(p, kind)})}
    )


def series(p: int, kind: str) -> xr.DataTree:
    """Make up p series of rows at five levels, in draws that know them."""
    rng, latent = np.random.default_rng(8), 5
    paths = [np.repeat(rng.integers(0, latent, 8), rng.integers(3, 20, 8)) for _ in range(p)]
    level = 1.5 * np.arange(latent)[:, None]
    x = level[np.concatenate(paths)] + rng.normal(size=(sum(map(len, paths)), 1))

    def equal(values):
        return np.broadcast_to(values, (2, 2, *np.shape(values))).copy()

    stays = 0.8 * np.eye(latent) + 0.2 / latent
    draws = {
        "feature": ((*OVER, "observation", "latent"), equal(np.ones((p, latent), int))),
        "transition": (
            (*OVER, "observation", "latent", "latent_"),
            equal(np.tile(stays, (p, 1, 1))),
        ),
        "emission_mean": ((*OVER, "latent", "node"), equal(level)),
        "emission_scale": ((*OVER, "latent", "node"), equal(np.ones((latent, 1)))),
    }
    constants = {
        "location": ("node", [0.0]), "scale": ("node", [1.0]),
        "rows": ("observation", [len(path) for path in paths]),
        "missing": (("time", "node"), np.zeros(x.shape, int)),
    }  # fmt: skip
    names = {"observation": names_of(p, kind)}
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(draws, names),
            "constant_data": xr.Dataset(constants, names),
            "observed_data": xr.Dataset({"x": (("time", "node"), x)}),
        }
    )


def settings(p: int, kind: str):
    """Make up the evidence under five settings of a prior: each a little less for the edges."""
    values, idata = [0.5, 1.0, 2.5, 5.0, 10.0], result(p, kind)
    first, tables = evidence_table(idata, 10), []
    slope = np.random.default_rng(9).uniform(0.3, 1.5, len(first))
    for value in values:
        table = first.copy()
        table["bayes_factor"] = table["bayes_factor"] * value ** (-slope)
        tables.append(table.assign(evidence=evidence(table["bayes_factor"], 10)))
    options = pd.DataFrame({"slab_scale": values})
    return sensitivity_of(options, tables, [True] * 5, line="edge", threshold=10, random_seed=0)


def support(p: int, kind: str):
    """Make up graphs of bootstrap samples beside a posterior of the same columns."""
    rng, idata = np.random.default_rng(10), result(p, kind)
    i, j = np.triu_indices(p, 1)
    probability = idata["posterior"]["edge"].values.mean(axis=(0, 1))
    chance = np.clip(probability + 0.15 * rng.normal(size=len(i)) * (probability > 0.02), 0.01, 1)
    samples = np.zeros((100, p, p), bool)
    samples[:, i, j] = rng.random((100, len(i))) < chance
    samples |= samples.swapaxes(1, 2)
    estimate = samples.mean(axis=0) > 0.5
    return support_of(
        names_of(p, kind), estimate, samples, directed=False, halves=False, posterior=idata
    )
