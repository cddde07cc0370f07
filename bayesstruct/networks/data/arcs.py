"""Prior weights of parent sets from options that name columns."""

from collections.abc import Iterable, Sequence, Set
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import is_number
from bayesstruct.data.errors import TableError, column_list, listing
from bayesstruct.data.labels import aligned, read_pairs, warn_about_triangle
from bayesstruct.data.names import label_text, nearest
from bayesstruct.networks.kernels.dag_priors import PRIOR_KINDS, ParentPrior

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike

__all__ = ["most_parents", "order_weights", "parent_prior"]


def most_parents(max_parents: int | None) -> float:
    """Return the maximum number of parents of a column, infinity for None.

    Raises
    ------
    ValueError
        If it is not a whole number, or negative.
    """
    if max_parents is None:
        return np.inf
    whole = isinstance(max_parents, Integral) and not isinstance(max_parents, bool | np.bool)
    if not whole or max_parents < 0:
        raise ValueError(
            f"`max_parents` must be a whole number, at least 0, it is {max_parents!r:.60}"
        )
    return int(max_parents)


def order_weights(prior: str, weights: str | None, edge_probability) -> str:
    """Kind of the weights of the parent sets under a prior, which ``"order"`` multiplies.

    Parameters
    ----------
    prior : {"uniform", "edge", "fair", "order"}
    weights : {"uniform", "edge", "fair"} or None
        Goes with ``"order"`` only.
    edge_probability : object
        Not None makes ``"edge"`` the default of `weights`.

    Raises
    ------
    ValueError
        If there is no such prior, or `weights` goes with another.
    """
    if prior not in (*PRIOR_KINDS, "order"):
        raise ValueError(nearest("prior", prior, (*PRIOR_KINDS, "order")))
    if prior != "order":
        if weights is not None:
            raise ValueError("`weights` belongs to the prior 'order'; leave it out")
        return prior
    if weights is not None and weights not in PRIOR_KINDS:
        raise ValueError(nearest("weights", weights, PRIOR_KINDS))
    return weights or ("uniform" if edge_probability is None else "edge")


def parent_prior(
    names: Sequence,
    kind: str = "uniform",
    *,
    edge_probability: "float | pd.DataFrame | ArrayLike | None" = None,
    max_parents: int | None = None,
    required: Iterable[tuple] = (),
    forbidden: Iterable[tuple] = (),
    tiers: dict | Iterable[Iterable] | None = None,
) -> ParentPrior:
    """Prior weights of parent sets from options that name columns.

    Parameters
    ----------
    names : sequence of str
        The d columns.
    kind : {"uniform", "edge", "fair"}
    edge_probability : float, (d, d) array_like or DataFrame, optional
        Of ``"edge"``, rows as parents; a DataFrame is aligned by its labels.
    max_parents : int, optional
    required, forbidden : iterable of pairs of str
        Arcs as (parent, child).
    tiers : dict or iterable of iterables of str, optional
        Groups of columns, the earliest first, or the number of its tier for each column. No arc
        points to an earlier tier.

    Returns
    -------
    ParentPrior

    Raises
    ------
    TableError
        For an unknown column, a column that is in no tier or in two, or an arc that is required
        and forbidden.
    ValueError
        As from :class:`bayesstruct.networks.kernels.dag_priors.ParentPrior`.
    """
    names = [label_text(name) for name in names]
    allowed = _tier_arcs(names, tiers)
    required_arcs = np.zeros_like(allowed)
    for parent, child in _arcs(names, forbidden, "forbidden"):
        allowed[parent, child] = False
    for parent, child in _arcs(names, required, "required"):
        if not allowed[parent, child]:
            raise TableError(
                f"the arc {names[parent]} -> {names[child]} is required, and forbidden by "
                "`forbidden` or `tiers`: take it out of one of them"
            )
        required_arcs[parent, child] = True
    if cycle := _cyclic(required_arcs):
        raise TableError(
            f"the required arcs among {column_list([names[i] for i in cycle])} form a cycle; drop one"
        )
    if required_arcs.sum(axis=0).max() > most_parents(max_parents):
        child = int(required_arcs.sum(axis=0).argmax())
        raise ValueError(
            f"{required_arcs[:, child].sum()} arcs into {names[child]!r} are required, more than "
            f"`max_parents` = {max_parents}: allow more parents, or require fewer arcs"
        )
    probability = aligned("edge_probability", edge_probability, names)
    if probability is not None:
        _check_probability(names, kind, probability, allowed, required_arcs)
    return ParentPrior(len(names), kind, probability, max_parents, allowed, required_arcs)


def _check_probability(names, kind, probability, allowed, required):
    """Refuse probabilities of arcs that are none, or that require a cycle."""
    if kind != "edge":
        raise ValueError(
            f"`edge_probability` belongs to the prior 'edge', not to {kind!r}; choose that prior, or leave it out"
        )
    d = len(names)
    try:
        q = np.array(probability, np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"`edge_probability` is a number or a matrix of numbers, not {probability!r:.60}"
        ) from None
    if q.shape not in ((), (d, d)):
        raise ValueError(
            f"`edge_probability` has shape {q.shape}; give a number or a {d} x {d} matrix, rows as parents"
        )
    q = np.where(np.eye(d, dtype=bool), 0.0, q)
    if not ((q >= 0) & (q <= 1)).all():
        raise ValueError(
            f"`edge_probability` must lie between 0 and 1, it is {q[~((q >= 0) & (q <= 1))][0]:g}"
        )
    if q.ndim == 2 and allowed.T[q > 0].any():  # otherwise an order was given
        warn_about_triangle("edge_probability", q, "give the order of the columns, tiers=, as well")
    if cycle := _cyclic(required | (q == 1)):
        raise ValueError(
            f"`edge_probability` is 1 for arcs among {column_list([names[i] for i in cycle])}, which "
            "requires a cycle: 1 requires an arc, give less"
        )


def _cyclic(arcs):
    """Variables that are left when those without parents are taken out, again and again."""
    left = list(range(len(arcs)))
    while roots := [i for i in left if not arcs[left, i].any()]:
        left = [i for i in left if i not in roots]
    return left


def _arcs(names, pairs, label):
    """Positions (parent, child) of arcs given by names; none for None."""
    pairs = read_pairs(names, pairs, label, "arc", " (parent, child)")
    return [_arc(names, pair, label) for pair in pairs]


def _arc(names, pair, label):
    try:
        if isinstance(pair, str):
            raise TypeError
        parent, child = map(label_text, pair)
        ends = names.index(parent), names.index(child)
    except (ValueError, TypeError):
        raise TableError(
            f"{label} arc {pair!r} is not a pair of columns (parent, child); the columns are "
            f"{listing(names)}"
        ) from None
    if ends[0] == ends[1]:
        raise TableError(f"{label} arc {pair!r} joins a column with itself; leave it out")
    return ends


def _tier_arcs(names, tiers):
    """Which arcs do not point to an earlier tier; (d, d) bool."""
    if tiers is None:
        return ~np.eye(len(names), dtype=bool)
    if hasattr(tiers, "items"):
        pairs = [(label_text(name), level) for name, level in tiers.items()]
    else:
        tiers = _tier_list(tiers)
        pairs = [(name, level) for level, tier in enumerate(tiers) for name in _tier(tier)]
    columns = [name for name, _ in pairs]
    if unknown := [name for name in columns if name not in names]:
        raise TableError(
            f"`tiers` has the unknown {column_list(unknown)}; the columns are {listing(names)}"
        )
    if lost := [name for name in names if name not in columns]:
        raise TableError(f"`tiers` leaves out {column_list(lost)}: put every column into a tier")
    if len(set(columns)) < len(columns):
        twice = sorted({name for name in columns if columns.count(name) > 1})
        raise TableError(f"`tiers` has {column_list(twice)} in more than one tier; leave one")
    level = np.array([dict(pairs)[name] for name in names])
    if level.dtype.kind not in "iuf" or not np.isfinite(level).all():
        name, value = next((n, v) for n, v in pairs if not is_number(v) or not np.isfinite(v))
        raise TableError(
            f"`tiers` as a dict has a finite number for each column, the earliest least; that of {name!r} is {value!r:.40}"
        )
    return (level[:, None] <= level) & ~np.eye(len(names), dtype=bool)


def _tier_list(tiers):
    """Tiers as a list of groups."""
    if isinstance(tiers, str) or not isinstance(tiers, Iterable):
        raise ValueError(
            "`tiers` is a list of groups of columns, the earliest first, or a dict with the number of the "
            f"tier of each column, not {tiers!r:.60}"
        )
    if isinstance(tiers, Set):
        raise ValueError(
            "`tiers` is a set, which has no order: give a list, the earliest tier first"
        )
    tiers = list(tiers)
    if numbers := [tier for tier in tiers if not isinstance(tier, str | Iterable)]:
        raise ValueError(
            f"`tiers` has {numbers[0]!r:.60} where a group of columns should be; give groups, the earliest "
            "first, such as [['a'], ['b', 'c']], or a dict with the number of the tier of each column: "
            "dict(zip(columns, tiers))"
        )
    return tiers


def _tier(tier):
    return [tier] if isinstance(tier, str) else [label_text(name) for name in tier]
