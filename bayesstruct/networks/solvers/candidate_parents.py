"""Candidate parents of each variable: short lists for searches over directed acyclic graphs."""

from typing import TYPE_CHECKING

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.sparse.solvers.sparse import sparse_path

if TYPE_CHECKING:
    from bayesstruct.networks.kernels.scores.base import Score

__all__ = ["blanket_candidates", "candidate_parents"]

_FAMILIES = ("logistic", "gaussian")


def candidate_parents(
    score: "Score",
    size: int,
    *,
    allowed: ArrayLike | None = None,
    required: ArrayLike | None = None,
) -> np.ndarray:
    """Choose parents for each variable by forward selection.

    Required parents come first. Then the parent is added that raises the local score most, as long as one
    does; the list is filled up by those that do best as a single parent next to the required ones.

    Parameters
    ----------
    score : bayesstruct.networks.kernels.scores.base.Score
        Or any object with its `d` and `local`.
    size : int
        Maximum number of candidates of a variable.
    allowed : (d, d) bool array_like, optional
        ``allowed[parent, child]``; all arcs by default.
    required : (d, d) bool array_like, optional
        ``required[parent, child]``: arcs whose parents are candidates in any case; none by default.

    Returns
    -------
    (d, size) numpy.ndarray
        int64; the candidates of variable i are in row i in the order in which they were chosen, then
        -1 where fewer are allowed.

    Raises
    ------
    ValueError
        If `size` is negative, more parents are required than that, a required arc is not allowed, or a matrix
        is not d by d.

    Notes
    -----
    Parents of which none raises the score alone (an exclusive or) are not found.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.networks.kernels.scores.named import network_score
    >>> x = np.random.default_rng(0).normal(size=(100, 4))
    >>> x[:, 2] += x[:, 0] - x[:, 3]
    >>> sorted(candidate_parents(network_score(x, "bge"), 2)[2].tolist())
    [0, 3]
    """
    open_arcs, fixed = (
        _arcs(name, arcs, score.d) for name, arcs in (("allowed", allowed), ("required", required))
    )
    if size < 0:
        raise ValueError(f"`size` must not be negative, it is {size}")
    if (fixed & ~open_arcs).any():
        parent, child = np.argwhere(fixed & ~open_arcs)[0]
        raise ValueError(f"the required arc {parent} -> {child} is not allowed")
    if fixed.sum(0).max() > size:
        child = int(fixed.sum(0).argmax())
        raise ValueError(
            f"{fixed[:, child].sum()} parents of {child} are required, more than `size` = {size}"
        )
    out = np.full((score.d, size), -1, np.int64)
    for child in range(score.d):
        first = np.flatnonzero(fixed[:, child]).tolist()
        others = np.flatnonzero(open_arcs[:, child] & ~fixed[:, child]).tolist()
        chosen = _forward(score, child, first, others, size)
        out[child, : len(chosen)] = chosen
    return out


def _forward(score, child, first, others, size):
    """Candidates of one child, the required ones first."""

    def ranked(parents):
        """Return the other variables and the score with each, best first."""
        rest = [j for j in others if j not in parents]
        values = [score.local(child, (*parents, j)) for j in rest]
        return sorted(zip(values, rest, strict=True), reverse=True)

    size = min(size, len(first) + len(others))
    chosen, best = list(first), -np.inf
    if len(chosen) < size:
        best, single = score.local(child, tuple(first)), ranked(chosen)
        options = single
    while len(chosen) < size and options[0][0] > best:
        best, parent = options[0]
        chosen.append(parent)
        options = ranked(chosen) if len(chosen) < size else []
    if len(chosen) < size:
        chosen += [j for _, j in single if j not in chosen]
    return chosen[:size]


def blanket_candidates(
    table: ArrayLike,
    family: str = "logistic",
    *,
    size: int | None = None,
    allowed: ArrayLike | None = None,
    interventions: ArrayLike | None = None,
) -> np.ndarray:
    r"""Choose the Markov blanket of each variable by sparse regression (L1MB).

    For each variable, its regression on the others is solved for the rates

    .. math:: \lambda = \frac td \, \lambda_{\max}, \qquad t = d - 1, \dots, 1,

    of a Laplace prior, :math:`\lambda_{\max}` being the least rate at which all coefficients are zero. The supports
    of these modes, the empty set and all variables (t = 0) are compared by the BIC of the regression without
    penalty, and the best is the blanket. It holds the parents, but also children and their other
    parents.

    Parameters
    ----------
    table : (n, d) array_like of float
        Used as it is: standardise continuous variables first.
    family : {"logistic", "gaussian"}
        Logistic regressions, for variables with two values, or linear ones.
    size : int, optional
        Maximum number of variables in a blanket, any number by default. Larger supports take part with those of their
        variables that entered the path first.
    allowed : (d, d) bool array_like, optional
        ``allowed[parent, child]``; all by default. With only the predecessors in a known order, the
        blankets are the parents of a network.
    interventions : (n, d) bool array_like, optional
        True where a variable was set from outside: the row is left out of its regression.

    Returns
    -------
    (d, k) numpy.ndarray
        int64; the blanket of variable i is in row i, in increasing order, padded with -1. k is the size of the
        largest blanket.

    Raises
    ------
    ValueError
        If the family is unknown, `size` is negative, or a value cannot serve; see
        :mod:`bayesstruct.networks.kernels.scores`.

    References
    ----------
    Schmidt, M. (2010). *Graphical Model Structure Learning with L1-Regularization*. PhD thesis, University
    of British Columbia; algorithm 10 (its bias fit reads :math:`\log(1 + e^{-x b})`, and the largest rate
    is that of the largest absolute gradient).
    """
    if family not in _FAMILIES:
        raise ValueError(f"family {family!r} is unknown; choose among {_FAMILIES}")
    from bayesstruct.networks.kernels.scores.named import network_score

    score = network_score(table, family, interventions=interventions)
    if size is not None and size < 0:
        raise ValueError(f"`size` must not be negative, it is {size}")
    open_arcs = _arcs("allowed", allowed, score.d)
    x = np.asarray(table, np.float64)
    kept = np.ones(x.shape, bool) if interventions is None else ~np.asarray(interventions)
    blankets = []
    for child in range(score.d):
        others = np.flatnonzero(open_arcs[:, child])
        rows = x[kept[:, child]]
        most = len(others) if size is None else size
        sets = _supports(rows[:, others], rows[:, child], family, score.d, most)
        blankets.append(_best(score, child, {tuple(others[list(s)].tolist()) for s in sets}))
    out = np.full((score.d, max(map(len, blankets))), -1, np.int64)
    for child, blanket in enumerate(blankets):
        out[child, : len(blanket)] = blanket
    return out


def _supports(X, y, family, d, most):
    """Supports along the path of rates, none, and all columns; in the order of entry, of at most `most` variables."""
    out, entered = {()}, []
    for coefficients in _path(X, y, family, d):
        by_size = np.argsort(-np.abs(coefficients), kind="stable")
        entered += [j for j in by_size if coefficients[j] and j not in entered]
        out.add(tuple(sorted([j for j in entered if coefficients[j]][:most])))
    rest = [j for j in range(X.shape[1]) if j not in entered]
    return out | {tuple(sorted((entered + rest)[:most]))}


def _path(X, y, family, d):
    """Coefficients at the rates of the path."""
    if not X.size or (y == y[0]).all():
        return []
    y = (y == y.max()).astype(float) if family == "logistic" else y - y.mean()
    # All gradients of the regression on a constant; the loss is not divided by the rows.
    largest = np.abs(X.T @ (y - y.mean())).max()
    if largest <= 1e-12 * np.abs(X).sum(0).max():
        return []
    rates = largest * np.arange(d - 1, 0, -1) / d
    path = sparse_path(np.asfortranarray(X), y, family=family, rates=rates, tol=1e-6)
    return [mode.coefficients for mode in path]


def _best(score, child, sets):
    """Find the set of greatest local score, the smaller one of equals."""
    return max(sets, key=lambda s: (score.local(child, s), -len(s), s))


def _arcs(name, arcs, d):
    """Return arcs as a matrix without its diagonal; all are allowed and none required by default."""
    arcs = np.full((d, d), name == "allowed") if arcs is None else np.array(arcs)
    if arcs.shape != (d, d):
        raise ValueError(f"`{name}` has shape {arcs.shape}; give a {d} x {d} matrix")
    arcs = arcs.astype(bool)
    if name == "allowed":
        np.fill_diagonal(arcs, False)
    return arcs
