"""Parameters of trees with hidden nodes, and trees with as many of them as the BIC allows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import generator
from bayesstruct.trees.kernels.chow_liu_grouping import GrowingTree
from bayesstruct.trees.kernels.distances import correlations, log_deviations
from bayesstruct.trees.kernels.gaussian_em import GaussianTree
from bayesstruct.trees.kernels.grouping import Noise, Tree, path_lengths

if TYPE_CHECKING:
    from bayesstruct.trees.kernels.discrete_em import DiscreteTree

__all__ = ["Fit", "fit_tree", "free_parameters", "regularized_tree"]

#: Neighbourhoods that are tried although they seem to lower the BIC.
_UNSURE = 10

Build = Callable[[np.ndarray], Tree]


@dataclass(frozen=True, eq=False)
class Fit:
    """A tree with fitted parameters.

    Attributes
    ----------
    tree : list of (int, int, float)
        Edges and fitted lengths; columns first.
    log_likelihood : float
        In the units of the table.
    parameters : int
    model : GaussianTree or DiscreteTree
    tables : dict of (int, int) to (K, K) ndarray
        Of states: probabilities of the second node given the first.
    """

    tree: Tree
    log_likelihood: float
    parameters: int
    model: "GaussianTree | DiscreteTree"
    tables: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)


def free_parameters(m: int, edges: int, k: int) -> int:
    """Return the number of free parameters of a tree.

    Parameters
    ----------
    m : int
        Number of columns.
    edges : int
    k : int
        Number of states; 0 for numbers, each of which has a mean and a variance beside the correlations.
    """
    return edges + 2 * m if not k else (k - 1) + edges * k * (k - 1)


def fit_tree(values: np.ndarray, k: int, tree: Tree, d: np.ndarray) -> Fit:
    """Fit the parameters of a tree by expectation-maximisation.

    Parameters
    ----------
    values : (n, m) ndarray
        Numbers, or states as 0, 1, ...
    k : int
        Number of states, 0 for numbers.
    tree : list of (int, int, float)
    d : (m, m) ndarray
        Distances of the columns.
    """
    n, m = values.shape
    lines = [(i, j) for i, j, _ in tree]
    nearest = _nearest_columns(tree, m)
    if not k:
        s = correlations(values)
        model = GaussianTree(lines, _signed(tree, s, nearest), m).fit(s, n)
        lengths = -np.log(np.maximum(np.abs(model.correlations), 1e-300))
        scale = n * log_deviations(values).sum()
        return Fit(
            [(i, j, float(own)) for (i, j), own in zip(lines, lengths, strict=True)],
            model.log_likelihood - float(scale),
            free_parameters(m, len(lines), 0),
            model,
        )
    from bayesstruct.trees.kernels.discrete_em import DiscreteTree  # with Numba

    codes = values.astype(np.int64)
    fitted = DiscreteTree(lines, _joints(codes, k, tree, nearest), m).fit(codes)
    lengths, tables = _discrete_lengths(fitted, lines)
    return Fit(
        [(i, j, own) for (i, j), own in zip(lines, lengths, strict=True)],
        fitted.log_likelihood,
        free_parameters(m, len(lines), k),
        fitted,
        tables,
    )


def _nearest_columns(tree: Tree, m: int) -> np.ndarray:
    """Return the column nearest to each node."""
    nodes = len(tree) + 1
    hops = path_lengths([(i, j, own + 1e-9) for i, j, own in tree], nodes)
    return hops[:, :m].argmin(axis=1)


def _signed(tree: Tree, s: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """Return the correlations of edges, hidden nodes having a positive one with their nearest column."""
    sign = [1.0 if s[nearest[i], nearest[j]] >= 0 else -1.0 for i, j, _ in tree]
    size = [min(max(np.exp(-own), 0.05), 0.99) for *_, own in tree]
    return np.array(sign) * np.array(size)


def _joints(codes, k, tree, nearest) -> np.ndarray:
    """Joint probabilities of the ends of each edge to start from: of the nearest columns, or nearly equal states."""
    out = np.empty((len(tree), k, k))
    for edge, (i, j, own) in enumerate(tree):
        a, b = codes[:, nearest[i]], codes[:, nearest[j]]
        if nearest[i] == nearest[j]:
            share = np.bincount(a, minlength=k) / len(a)
            kept = min(max(np.exp(-own / (k - 1)), 0.1), 0.95)
            out[edge] = kept * np.diag(share) + (1.0 - kept) * np.outer(share, share)
        else:
            joint = np.bincount(a * k + b, minlength=k * k).reshape(k, k)
            out[edge] = (joint + 0.5) / (len(a) + 0.5 * k * k)
        out[edge] = np.maximum(out[edge], 1e-4)
    return out


def _discrete_lengths(model: "DiscreteTree", lines):
    """Distances of the ends of edges, and their tables with the first end given."""
    margin = np.empty((len(lines) + 1, model.k))
    margin[0] = model.root
    for _, parent, child in model.order:
        margin[child] = margin[parent] @ model.conditionals[child]
    lengths, tables = [], {}
    for i, j in lines:
        first, second = (i, j) if model.parents[j] == i else (j, i)
        joint = margin[first][:, None] * model.conditionals[second]
        root = np.sqrt(np.maximum(margin[first] * margin[second], 1e-300)).prod()
        lengths.append(float(-np.log(np.clip(abs(np.linalg.det(joint)) / root, 1e-12, 1.0))))
        low, high = min(i, j), max(i, j)
        own = joint if first == low else joint.T
        tables[low, high] = own / np.maximum(own.sum(axis=1, keepdims=True), 1e-300)
    return lengths, tables


def regularized_tree(
    values: np.ndarray, k: int, d: np.ndarray, noise: Noise, build: Build, random_seed
) -> Fit:
    """Add hidden nodes to the spanning tree of least distance, one neighbourhood at a time, while the BIC grows.

    Parameters
    ----------
    values : (n, m) ndarray
    k : int
    d : (m, m) ndarray
    noise : Noise
    build : callable
        Makes a subtree of a neighbourhood from distances.
    random_seed : int or numpy.random.Generator, optional
        Draws hidden states.
    """
    tree = GrowingTree(d, noise)
    left, rng = set(tree.internal), generator(random_seed)
    current = fit_tree(values, k, tree.lines, d)
    while left:
        filled = _filled(values, k, current, rng)
        gains = {i: _gain(filled, k, tree, i, build) for i in sorted(left)}
        gains = {i: own for i, own in gains.items() if own is not None}
        order = sorted(gains, key=lambda i: -gains[i][0])
        # Hidden values come from the present tree, which they make look better than it is.
        unsure = [i for i in order if gains[i][0] <= 0][:_UNSURE]
        accepted = False
        for i in [*(i for i in order if gains[i][0] > 0), *unsure]:
            trial = tree.copy()
            trial.replace(trial.neighbourhood(i), gains[i][1])
            new = fit_tree(values, k, trial.lines, d)
            if _bic(new, len(values)) > _bic(current, len(values)):
                tree, current, accepted = trial, new, True
                left.discard(i)
                break
        if not accepted:
            break
    return current


def _bic(fit: Fit, n: int) -> float:
    return fit.log_likelihood - 0.5 * fit.parameters * np.log(n)


def _filled(values, k, fit, rng):
    """Return moments of all nodes and the number of rows, or a table in which hidden states are drawn."""
    if not k:
        return fit.model.moments(correlations(values)), len(values)
    return fit.model.draw(values.astype(np.int64), rng)


def _gain(filled, k, tree: GrowingTree, i: int, build: Build):
    """Return what a subtree adds to the BIC of a neighbourhood, and the subtree; None if it is what is there."""
    nodes = tree.neighbourhood(i)
    own = tree.distances(nodes)
    if len(nodes) < 3:
        return None
    subtree = build(own)
    if all(min(i, j) == 0 for i, j, _ in subtree):
        return None
    star = [(0, j, float(own[0, j])) for j in range(1, len(nodes))]
    if not k:
        moments, n = filled
        sd = np.sqrt(moments.diagonal()[nodes])
        s = moments[np.ix_(nodes, nodes)] / np.outer(sd, sd)
        fits = [_gaussian_value(part, s, n) for part in (star, subtree)]
    else:
        n = len(filled)
        fits = [_bic(fit_tree(filled[:, nodes], k, part, own), n) for part in (star, subtree)]
    return fits[1] - fits[0], subtree


def _gaussian_value(tree: Tree, s: np.ndarray, n: int) -> float:
    """BIC of standardised numbers with these correlations."""
    m = len(s)
    lines = [(i, j) for i, j, _ in tree]
    start = _signed(tree, s, _nearest_columns(tree, m))
    model = GaussianTree(lines, start, m).fit(s, n)
    return model.log_likelihood - 0.5 * free_parameters(m, len(lines), 0) * np.log(n)
