"""Parts of models of trees: the random tree with its records, and tables given it."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.core.missing import show_missing
from bayesstruct.core.recognition import claim
from bayesstruct.core.tables.missing_states import MissingStates
from bayesstruct.core.tables.rows import remember_rows
from bayesstruct.data.coding import coding_of
from bayesstruct.graphs.records import AcyclicEdges, EdgeEnds, EdgePrior
from bayesstruct.graphs.spanning_trees.forests import SharedForests, log_mean_eigenvalue
from bayesstruct.graphs.spanning_trees.indicators import pair_matrix, pair_values
from bayesstruct.graphs.spanning_trees.two_kinds import all_trees
from bayesstruct.networks.model_parts import (
    ROWS,
    coding_of_network,
    observe_mixed,
    observed_states,
    record_missing,
    record_mixed,
    record_states,
)
from bayesstruct.networks.priors.discrete_network import DiscreteNetwork, ProbabilityTables
from bayesstruct.networks.priors.incomplete_mixed import IncompleteMixedNetwork, MissingMixedValues
from bayesstruct.networks.priors.incomplete_networks import IncompleteDiscreteNetwork
from bayesstruct.precision.model_parts.rows import observe_rows, warn_size
from bayesstruct.precision.priors.edges import partial_correlations
from bayesstruct.trees.data import first_state
from bayesstruct.trees.ops.spanning_trees import away_from_root, edge_strengths, mutual_information
from bayesstruct.trees.priors.gaussian import TreeMeans, TreePrecision
from bayesstruct.trees.priors.mixed_tree import MixedSpanningTree, MixedTreeParameters
from bayesstruct.trees.priors.spanning_forest import SpanningForest
from bayesstruct.trees.priors.spanning_tree import STEP, SpanningTree

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

    from bayesstruct.data.states import StateTable
    from bayesstruct.data.table import Table
    from bayesstruct.networks.data.mixed_tables import MixedTable

__all__ = [
    "observe_numbers",
    "observe_numbers_and_states",
    "observe_states",
    "random_forest",
    "random_tree",
]

_MATRIX = ("node", "node_")
_SEED, _DRAWS = 20150201, 1000  # of coefficients; fixed: equal models give equal Bayes factors
_CERTAIN = 1e-9  # by which rounding may keep the probability of an edge that all trees have from 1


def random_tree(
    table: "Table | StateTable | MixedTable",
    log_odds: np.ndarray,
    covariates: "dict[str, np.ndarray] | None" = None,
    coefficient_scale: float = 1.0,
    numbers: np.ndarray | None = None,
) -> "TensorVariable":
    """Add the tree of the columns as ``edge``, and record what readers of its edges need.

    Parameters
    ----------
    table : Table, StateTable or MixedTable
    log_odds : (p, p) ndarray
        Prior log odds of the edges, -inf for those that are forbidden.
    covariates : dict of (p, p) ndarray, optional
        Standardised covariates of the edges, whose coefficients are added as ``edge_coefficient``.
    coefficient_scale : float
        Standard deviation of the normal prior of the coefficients.
    numbers : (p,) ndarray of bool, optional
        Which columns hold numbers, of a table with both kinds.
    """
    source, target = table.edge_index
    weights: Any = log_odds[source, target]
    if not covariates:
        prior = all_trees(log_odds, numbers).probabilities[source, target]
    else:
        pm.modelcontext(None).add_coord("edge_covariate", list(covariates))
        design = np.stack([values[source, target] for values in covariates.values()], axis=-1)
        coefficients = pm.Normal("edge_coefficient", 0.0, coefficient_scale, dims="edge_covariate")
        prior = _mean_probabilities(weights, design, coefficient_scale, numbers)
        weights = pt.specify_shape(weights + design @ coefficients, (len(source),))
    if numbers is None:
        tree = SpanningTree("edge", weights, dims="pair")
    else:
        tree = MixedSpanningTree("edge", weights, numbers=numbers, dims="pair")
    prior[prior > 1.0 - _CERTAIN] = 1.0
    EdgeEnds.in_model(source, target).record()
    EdgePrior(prior).record()
    AcyclicEdges(1).record()
    return tree


def random_forest(
    table: "Table | StateTable", log_odds: np.ndarray, shapes: tuple[float, float]
) -> "TensorVariable":
    """Add the forest of the columns as ``edge`` with its share of edges, and record what readers of its edges need.

    Parameters
    ----------
    table : Table or StateTable
    log_odds : (p, p) ndarray
        Prior log odds of the edges, -inf for those that are forbidden.
    shapes : (float, float)
        Of the beta prior of the share of edges.
    """
    source, target = table.edge_index
    share = pm.Beta("edge_share", *shapes)
    logit = pt.log(share) - pt.log1p(-share)
    # See SharedForests: the share is that of a binomial number of edges if their weights are equal.
    roots = log_mean_eigenvalue(log_odds) - logit
    weights = log_odds[source, target]
    forest = SpanningForest("edge", weights, roots, dims="pair")
    EdgeEnds.in_model(source, target).record()
    if np.isfinite(weights).all() and np.ptp(weights) == 0.0:
        claim(share, STEP)
        # The expected share of p - 1 edges, spread evenly over p (p - 1) / 2 pairs.
        prior = np.full(len(source), 2.0 * shapes[0] / sum(shapes) / table.p)
    else:
        prior = SharedForests(log_odds, 0.0, shapes).probabilities[source, target]
    EdgePrior(prior).record()
    AcyclicEdges(1).record()
    pm.Deterministic("components", table.p - forest.sum())
    return forest


def _mean_probabilities(log_odds, design, scale, numbers):
    """Prior probability of each edge, averaged over draws of the coefficients."""
    draws = np.random.default_rng(_SEED).normal(0.0, scale, (_DRAWS, design.shape[1]))
    found = [
        all_trees(pair_matrix(log_odds + design @ own), numbers).probabilities for own in draws
    ]
    return pair_values(np.mean(found, axis=0))


def observe_numbers(table: "Table", tree: "TensorVariable", size: float) -> None:
    """Add precision matrix, means and rows of a table of numbers, given the tree.

    Parameters
    ----------
    table : Table
        Standardised.
    tree : TensorVariable
    size : float
        Rows that the prior is worth.
    """
    warn_size(table)
    precision = TreePrecision("precision", tree, size + 2.0, size**2 / (size + 1.0), dims=_MATRIX)
    mean = TreeMeans("mean", precision, size, dims="node")
    pm.Deterministic("weight", partial_correlations(precision), dims="pair")
    observe_rows(table, mean, precision)
    _claim_missing()


def observe_states(table: "StateTable", tree: "TensorVariable", size: float) -> None:
    """Add tables of probabilities and rows of a table of states, given the tree.

    Parameters
    ----------
    table : StateTable
    tree : TensorVariable
    size : float
        Rows that the prior of each table is worth.
    """
    dag, cells = away_from_root(tree, table.p), record_states(table, 1)
    tables = ProbabilityTables(
        "table", dag, size, states=table.states, cells=cells, dims=("node", "cell")
    )
    information = mutual_information(tree, tables, table.states)
    pm.Deterministic("weight", information, dims="pair")
    options = observed_states(table, np.zeros(table.codes.shape, bool))
    if not table.missing.any():
        DiscreteNetwork("x", dag, tables, **options)
    else:
        mask = record_missing(table)
        missing = MissingStates("x_missing", np.array(table.states)[mask.columns], dims="missing")
        options |= {"observed": np.maximum(table.codes, 0), "floats": True}
        x = IncompleteDiscreteNetwork("x", dag, tables, missing, **options, missing=mask)
        show_missing(x, table.missing, "int64")
        _claim_missing()
    remember_rows(coding_of(table), _observe_other_states)


def observe_numbers_and_states(table: "MixedTable", tree: "TensorVariable", size: float) -> None:
    """Add parameters and rows of a table of numbers and states, given the tree.

    Parameters
    ----------
    table : MixedTable
        Of normal columns and columns of states without an order.
    tree : TensorVariable
    size : float
        Rows that the prior is worth.
    """
    record_mixed(table)
    location = pm.Data("location", table.location, dims="node")
    scale = pm.Data("scale", table.scale, dims="node")
    vector = MixedTreeParameters("parameter", tree, size, layout=table.layout, dims="term")
    root = first_state(table.states)
    pm.Deterministic("weight", edge_strengths(tree, vector, table.layout, root), dims="pair")
    params = away_from_root(tree, table.p, root), vector, location, scale
    if not table.missing.any():
        observe_mixed(table, np.zeros(table.values.shape, bool), *params)
    else:
        options = {"layout": table.layout, "missing": record_missing(table), "dims": ROWS}
        filled = np.where(table.missing, table.location, table.values)
        missing = MissingMixedValues("x_missing", filled, options["missing"], dims="missing")
        x = IncompleteMixedNetwork("x", missing, *params, **options, observed=filled)
        show_missing(x, table.missing)
        _claim_missing()
    remember_rows(coding_of_network(table), _observe_other_mixed)


def _observe_other_mixed(table):
    """Add the rows of another table of numbers and states to a model without rows."""
    from bayesstruct.core.tables.codings import refuse_gaps

    model = pm.modelcontext(None)
    refuse_gaps(table)
    dag = away_from_root(
        pt.as_tensor_variable(model["edge"]), table.p, first_state(table.layout.states)
    )
    params = dag, *(model[name] for name in ("parameter", "location", "scale"))
    observe_mixed(table, np.zeros(table.values.shape, bool), *params)


def _claim_missing():
    """Let the step of the tree draw missing values, also if pm.sample is called outside of the context."""
    missing = pm.modelcontext(None).named_vars.get("x_missing")
    if missing is not None:
        claim(missing, STEP)


def _observe_other_states(table):
    """Add the rows of another table to a model without rows."""
    from bayesstruct.core.tables.codings import refuse_gaps

    model = pm.modelcontext(None)
    refuse_gaps(table)
    dag = away_from_root(pt.as_tensor_variable(model["edge"]), table.p)
    options = observed_states(table, np.zeros(table.codes.shape, bool))
    DiscreteNetwork("x", dag, model["table"], **options)
