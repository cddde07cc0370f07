"""Constants, names and labels that readers of graphs need, added to a model that somebody wrote."""

from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.families import import_chapters
from bayesstruct.core.recorded import Recorded
from bayesstruct.core.tensors import constant_value, is_beta
from bayesstruct.data.checks import SEPARATOR
from bayesstruct.data.names import label_text
from bayesstruct.graphs.groups import NODE
from bayesstruct.graphs.records import EdgeEnds

if TYPE_CHECKING:
    from collections.abc import Callable

    from pymc import Model
    from pytensor.tensor.variable import TensorVariable

__all__ = [
    "EdgeParts",
    "edge_parts",
    "edges",
    "give_dims",
    "label_columns",
    "prior_mean",
    "refuse_negligible",
]

NODES, PAIR = "node_", "pair"
_SEED = 20150201  # fixed: equal models give equal Bayes factors
_DRAWS = 10_000  # of the prior, where a prior probability has no closed form


@dataclass(frozen=True, kw_only=True)
class EdgeParts:
    """What a distribution says of an undirected graph.

    Attributes
    ----------
    size : int
        Number of columns.
    source, target : (pairs,) ndarray of int
        Positions of the two ends of each edge.
    weight : TensorVariable
        (pairs,), strength of each edge.
    add : callable
        Of a name and dimensions: add the 0/1 indicators to the model, and return them.
    constants : tuple of Recorded
        The prior of the edges, and what else readers of these graphs use.
    """

    size: int
    source: np.ndarray
    target: np.ndarray
    weight: "TensorVariable"
    add: "Callable[..., TensorVariable]"
    constants: tuple[Recorded, ...]


@singledispatch
def edge_parts(op: Any, graph: "TensorVariable", negligible: float | None) -> EdgeParts:
    """Return what a variable says of an undirected graph; families register their distributions.

    Parameters
    ----------
    op : Op
        That of the variable.
    graph : TensorVariable
    negligible : float, optional
        Strength up to which there is no edge, under priors that only shrink.
    """
    raise TypeError(
        f"{graph.name!r} is no undirected graph: give the precision matrix with the prior bs.GraphicalSpikeSlab, "
        "bs.GraphicalLasso, bs.GraphicalHorseshoe or bs.GWishart, or the rows of a bs.Ising or bs.PairwiseMRF. Directed graphs (bs.DAG) go to bs.arcs, "
        "coefficients with a spike-and-slab prior to bs.support."
    )


def edges(
    graph: "TensorVariable",
    *,
    columns: Iterable[object] | None = None,
    negligible: float | None = None,
) -> "TensorVariable":
    """Add the edges of an undirected graph to a model of your own, so that results can be read.

    Afterwards ``bs.edge_table``, ``bs.check``, ``bs.summary``, all other readers of undirected graphs and all pictures accept
    the results of the model, as those of :mod:`bayesstruct.models`.

    Parameters
    ----------
    graph : TensorVariable
        A precision matrix with the prior :class:`bayesstruct.GraphicalSpikeSlab`, :class:`bayesstruct.GraphicalLasso`,
        :class:`bayesstruct.GraphicalHorseshoe`, :class:`bayesstruct.GraphicalFusedLasso`,
        :class:`bayesstruct.distributions.GraphicalGroupLasso`, :class:`bayesstruct.distributions.GraphicalNuclearLasso` or :class:`bayesstruct.GWishart`, or the rows of a :class:`bayesstruct.Ising` or :class:`bayesstruct.PairwiseMRF`, as a variable of the model in context.
    columns : iterable, optional
        Names of the columns; by default the coordinate ``node`` of the model, else that of the first dimension of
        `graph`, else x0, x1, ...
    negligible : float, optional
        Under priors that only shrink, an edge is a partial correlation beyond it (0.1 by default), or a strength of
        interaction beyond it (0.2). Spike-and-slab priors have edges of their own.

    Returns
    -------
    TensorVariable
        ``edge``, 0/1 for each pair of columns (i < j, row by row, or each edge of a given graph).

    Raises
    ------
    TypeError
        If `graph` is none of these.
    ValueError
        If names do not fit, the model has variables ``edge`` or ``weight`` of another kind, or `negligible` is given for a
        spike-and-slab prior.

    Notes
    -----
    Added are ``edge`` and ``weight`` (partial correlations, or strengths of interactions) with the dimension ``pair``, the
    coordinate ``node``, and in ``constant_data`` the ends of the edges and their prior probabilities. These are those of
    the models in :mod:`bayesstruct.models`: positive definiteness is accounted for. A probability that has no closed
    form is the mean over 10,000 draws of the prior (standard error at most 0.005). Dimensions are given to `graph` if it has none.

    If the matrix is called ``precision``, probabilities of edges are averages of conditional ones given the matrix, which are far more
    precise than frequencies; with ``condition="joint"`` the nominal ``edge_probability`` (pair) is added for them.

    A result has one undirected graph: the readers know its variables by these names.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            slope = pm.Normal("slope", 0, 1, shape=(2, 5))
            precision = bs.GraphicalSpikeSlab("precision", 5)
            bs.edges(precision, columns=responses.columns)
            pm.MvNormal("y", covariates @ slope, tau=precision, observed=responses)
            idata = pm.sample()
        bs.edge_table(idata)
    """
    import pymc as pm

    model = pm.modelcontext(None)
    import_chapters("model_parts")  # which register their distributions
    if getattr(graph, "owner", None) is None:
        raise TypeError(f"`graph` is a variable of the model, not a {type(graph).__name__}")
    if graph.name is None:
        raise TypeError(
            "`graph` is a variable of the model, not an expression of some: give the precision matrix or the rows themselves"
        )
    if model.name_for("edge") in model.root.named_vars:
        raise ValueError(
            "this model has edges already: make each graph in a model of its own inside the other, as in "
            'with pm.Model("first"): ..., and read it with bs.submodel(idata, "first")'
        )
    parts = edge_parts(graph.owner.op, graph, negligible)
    names = label_columns(model, graph, parts.size, columns)
    labels = [
        f"{names[i]}{SEPARATOR}{names[j]}" for i, j in zip(parts.source, parts.target, strict=True)
    ]
    add_coord(model, PAIR, labels)
    indicator = parts.add("edge", dims=PAIR)
    add_weight(model, parts.weight, PAIR)
    EdgeEnds.in_model(parts.source, parts.target).record()
    for constants in parts.constants:
        constants.record()
    return indicator


def label_columns(
    model: "Model", graph: "TensorVariable", size: int, columns: Iterable[object] | None
) -> list[str]:
    """Give the model a coordinate of the columns, and return it.

    Parameters
    ----------
    model : pymc.Model
    graph : TensorVariable
        Variable whose dimensions may have labels.
    size : int
        Number of columns.
    columns : iterable, optional
        Their names.
    """
    if isinstance(columns, Set):
        raise TypeError("`columns` is a set, which has no order: give a list of the names")
    if columns is not None:
        names = [label_text(name) for name in columns]
    else:
        names = _known_labels(model, graph, size) or [f"x{j}" for j in range(size)]
    if len(names) != size:
        raise ValueError(
            f"there are {len(names)} names of columns, and {graph.name!r} has {size}: give `columns=`"
        )
    if len(set(names)) != size:
        raise ValueError("the names of columns must differ from each other")
    add_coord(model, NODE, names)
    if NODES in (model.named_vars_to_dims.get(graph.name) or ()):
        add_coord(model, NODES, names)
    return names


def _known_labels(model, graph, size) -> list[str]:
    """Labels of the columns that the model has; none if it has none."""
    if model.coords.get(NODE) is not None:
        return [str(label) for label in model.coords[NODE]]
    for dim in reversed(model.named_vars_to_dims.get(graph.name) or ()):
        labels = model.coords.get(dim)
        if labels is not None and len(labels) == size:
            return [str(label) for label in labels]
    return []


def add_coord(model: "Model", dim: str, labels: list[str]) -> None:
    """Add a coordinate, unless the model has one of this length."""
    known = model.coords.get(dim)
    if known is None:
        model.add_coord(dim, labels)
    elif len(known) != len(labels):
        raise ValueError(
            f"the model has a dimension {dim!r} of length {len(known)}, which readers take for one of length "
            f"{len(labels)}: call it otherwise"
        )


def add_weight(model: "Model", weight: "TensorVariable", dim: str) -> None:
    """Add the strengths of the edges as ``weight``, unless they are called so."""
    import pymc as pm

    known = model.named_vars.get(model.name_for("weight"))
    if known is None:
        pm.Deterministic("weight", weight, dims=dim)
    elif known is weight:
        give_dims(model, weight, (dim,))
    else:
        raise ValueError(
            "`weight` is the strength of each edge in results of graphs, and this model has another variable of that "
            "name: call it otherwise"
        )


def give_dims(model: "Model", variable: "TensorVariable", dims: tuple[str, ...]) -> None:
    """Give a variable of the model dimensions, if it has none."""
    if variable.name in model.named_vars and not model.named_vars_to_dims.get(variable.name):
        model.named_vars_to_dims[variable.name] = dims


def refuse_negligible(negligible: float | None) -> None:
    """Raise if a threshold is given for a prior that needs none."""
    if negligible is not None:
        raise ValueError(
            "`negligible` is for priors that only shrink; a spike-and-slab prior has edges of its own"
        )


def prior_mean(values: "TensorVariable") -> np.ndarray:
    """Mean of a tensor under the prior: exact for constants and a beta distribution, else over 10,000 draws.

    Examples
    --------
    >>> import pymc as pm
    >>> float(prior_mean(pm.Beta.dist(1, 3)))
    0.25
    """
    import pymc as pm

    known = constant_value(values)
    if known is not None:
        return known
    if is_beta(values):
        alpha, beta = (constant_value(v) for v in values.owner.op.dist_params(values.owner))
        if alpha is not None and beta is not None:
            return np.broadcast_to(alpha / (alpha + beta), values.shape.eval(mode="FAST_COMPILE"))
    return np.mean(pm.draw(values, draws=_DRAWS, random_seed=_SEED), axis=0)
