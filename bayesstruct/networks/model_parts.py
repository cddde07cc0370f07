"""Parts of models of Bayesian networks: constants for readers, and options of distributions."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from bayesstruct.core.missing import Mask, MissingMask
from bayesstruct.core.recognition import is_op
from bayesstruct.core.tables.codings import record_levels, refuse_gaps
from bayesstruct.data.checks import ARROW
from bayesstruct.data.coding import StateCoding, coding_of
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.data.states import StateTable
from bayesstruct.data.table import Table
from bayesstruct.graphs.own_models import add_coord, give_dims, label_columns
from bayesstruct.graphs.records import Acyclic, ArcEnds, ArcPrior
from bayesstruct.networks.data.mixed_coding import MixedCoding
from bayesstruct.networks.data.mixed_tables import MixedTable
from bayesstruct.networks.data.tables import known_interventions
from bayesstruct.networks.exact.problem import positive_size
from bayesstruct.networks.kernels.scores.mixed import COEFFICIENT_SCALE
from bayesstruct.networks.priors.dag import DAGRV, OrderDAGRV
from bayesstruct.networks.priors.discrete_network import DiscreteNetwork, table_cells
from bayesstruct.networks.priors.gaussian_network import (
    GaussianNetwork,
    arc_index,
    arc_vector,
    coefficient_matrix,
)
from bayesstruct.networks.priors.implied import implied_arc_probability
from bayesstruct.networks.priors.incomplete_networks import IncompleteGaussianNetwork
from bayesstruct.networks.priors.mixed_networks import MixedNetwork
from bayesstruct.networks.priors.records import MixedColumns, NetworkStates

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = [
    "ROWS",
    "arcs",
    "coding_of_network",
    "max_parents_of",
    "observe_mixed",
    "observe_other_rows",
    "observed_states",
    "prior_size",
    "record_arcs",
    "record_missing",
    "record_mixed",
    "record_states",
]

#: Dimensions of a table.
ROWS = ("observation", "node")
_CELLS = 2**12  # of the largest probability table, unless `max_parents` says otherwise
_SIZES = {
    "bge": "equivalent_sample_size",
    "bdeu": "equivalent_sample_size",
    "bde": "pseudo_count",
    "mixed": "coefficient_scale",
}


def prior_size(
    score: str,
    equivalent_sample_size: float | None,
    pseudo_count: float | None,
    coefficient_scale: float | None = None,
) -> float:
    """Return the rows that the prior is worth, the prior weight of each cell, or the deviation of coefficients.

    Raises
    ------
    ValueError
        If an option belongs to another score, or is not positive.
    """
    given = {
        "equivalent_sample_size": equivalent_sample_size,
        "pseudo_count": pseudo_count,
        "coefficient_scale": coefficient_scale,
    }
    for name, value in given.items():
        if value is not None and _SIZES.get(score) != name:
            owners = " or ".join(repr(kind) for kind, option in _SIZES.items() if option == name)
            raise ValueError(f"`{name}` belongs to the score {owners}, not to {score!r}")
    size = given[_SIZES[score]] if score in _SIZES else None
    if size is None:
        return COEFFICIENT_SCALE if score == "mixed" else 1.0
    return positive_size(_SIZES[score], size)


def max_parents_of(table: Table | StateTable, max_parents: int | None) -> int | None:
    """Return the maximum number of parents of a column; unless given, the size of tables bounds it.

    Raises
    ------
    TableError
        If a column has so many states that no table of probabilities is small enough.
    """
    if not isinstance(table, StateTable) or max_parents is not None:
        return max_parents
    fitting = [m for m in range(table.p) if table_cells(table.states, m) <= _CELLS]
    if not fitting:
        raise TableError(
            f"{column_list([table.names[int(np.argmax(table.states))]])}: more than {_CELLS} states; merge some"
        )
    return fitting[-1]


def record_arcs(dag: "TensorVariable", *, identified: bool = False) -> None:
    """Record the columns that arcs join, their prior probabilities, and whether equivalent graphs are told apart."""
    op = dag.owner.op
    source, target = arc_index(op.prior.d)
    implied = implied_arc_probability(op.prior, order=op.order)
    ArcEnds.in_model(source, target).record()
    ArcPrior(implied[source, target], independent=0).record()
    Acyclic(1, identified=1 if identified else None).record()


def record_missing(table: Table | StateTable | MixedTable) -> Mask:
    """Record which values are missing, name them, and return them as a mask."""
    places = [f"{table.names[j]}[{i}]" for i, j in np.argwhere(table.missing)]
    pm.modelcontext(None).add_coord("missing", places)
    MissingMask(table.missing.astype("int64")).record()
    return Mask(table.missing)


def record_states(table: StateTable, max_parents: int | None) -> int:
    """Record the states of each column; return the cells of the largest table of probabilities."""
    cells, model = table_cells(table.states, max_parents), pm.modelcontext(None)
    model.add_coord("cell", np.arange(cells))
    NetworkStates(np.array(table.states)).record()
    record_levels(table)
    return cells


def record_mixed(table: MixedTable) -> None:
    """Record families and states of the columns, and name the parameters."""
    layout = table.layout
    pm.modelcontext(None).add_coord("term", layout.labels(table.names, table.levels))
    MixedColumns(layout.codes, np.array(table.states)).record()
    if any(table.states):
        record_levels(StateCoding(table.names, table.levels))


def observed_states(table: StateTable, was_set: np.ndarray) -> dict:
    """Options of the distribution of the rows of a table of states."""
    setting = np.where(was_set, table.codes, -1)
    return {"states": table.states, "setting": setting, "observed": table.codes, "dims": ROWS}


def coding_of_network(table: Table | StateTable | MixedTable) -> Any:
    """Return how the table of a network was read."""
    return MixedCoding.of(table) if isinstance(table, MixedTable) else coding_of(table)


def observe_other_rows(table: Table | StateTable | MixedTable, interventions=None) -> None:
    """Add the rows of another table to a network without rows.

    Parameters
    ----------
    table : Table, StateTable or MixedTable
    interventions : (n, d) array_like or DataFrame of bool, optional
        Which values were set.
    """
    model, was_set = pm.modelcontext(None), known_interventions(interventions, table)
    if isinstance(table, StateTable):
        refuse_gaps(table)
        options = observed_states(table, was_set)
        DiscreteNetwork("x", model["dag"], model["table"], **options)
        return
    if isinstance(table, MixedTable):
        refuse_gaps(table)
        observe_mixed(
            table, was_set, *(model[k] for k in ("dag", "parameter", "location", "scale"))
        )
        return
    matrix = coefficient_matrix(model["weight"], table.p)
    params = model["intercept"], matrix, model["noise_variance"], model["location"], model["scale"]
    setting = np.where(was_set, table.values, np.nan)
    if not table.missing.any():
        GaussianNetwork("x", *params, setting=setting, observed=table.values, dims=ROWS)
        return
    options = {"setting": setting, "missing": table.missing, "dims": ROWS}
    filled = np.where(table.missing, table.location, table.values)
    IncompleteGaussianNetwork("x", *params, **options, observed=filled)


def observe_mixed(
    table: MixedTable,
    was_set: np.ndarray,
    dag: "TensorVariable",
    parameters: "TensorVariable",
    location: "TensorVariable",
    scale: "TensorVariable",
) -> None:
    """Add the complete rows of a table of numbers and states to the model in context.

    Parameters
    ----------
    table : MixedTable
    was_set : (n, d) bool array
    dag, parameters, location, scale : TensorVariable
        As of :class:`bayesstruct.distributions.MixedNetwork`.
    """
    params = dag, parameters, location, scale, np.where(was_set, table.values, np.nan)
    MixedNetwork("x", *params, layout=table.layout, observed=table.values, dims=ROWS)


def arcs(dag: "TensorVariable", *, columns: Iterable[object] | None = None) -> "TensorVariable":
    """Add the arcs of a directed acyclic graph to a model of your own, so that results can be read.

    Afterwards ``bs.arc_table``, ``bs.check``, ``bs.summary``, all other readers of directed acyclic graphs and all pictures
    accept the results of the model, as those of :func:`bayesstruct.models.bayesian_network`.

    Parameters
    ----------
    dag : TensorVariable
        A :class:`bayesstruct.DAG` of the model in context.
    columns : iterable, optional
        Names of the columns; by default the coordinate ``node`` of the model, else the names that `dag` was given.

    Returns
    -------
    TensorVariable
        ``arc``, 0/1 for each ordered pair of columns, child by child, with the dimension ``ordered_pair``.

    Raises
    ------
    TypeError
        If `dag` is no such variable.
    ValueError
        If names do not fit.

    Notes
    -----
    Added are also the coordinate ``node``, and in ``constant_data`` the ends of the arcs and their prior probabilities. A
    variable ``weight`` over the arcs (:class:`bayesstruct.distributions.ArcWeights`) is read as their coefficients.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            dag = bs.DAG("dag", ["rain", "sprinkler", "wet"])
            bs.arcs(dag)
            ...
    """
    if getattr(dag, "owner", None) is None or not is_op(dag, (DAGRV, OrderDAGRV)):
        raise TypeError("`dag` is a bs.DAG of the model; undirected graphs go to bs.edges")
    model, op = pm.modelcontext(None), dag.owner.op
    if columns is None and "node" not in model.coords:
        columns = op.names
    give_dims(model, dag, ("node", "node_"))
    names = label_columns(model, dag, op.prior.d, columns)
    ends = zip(*arc_index(op.prior.d), strict=True)
    add_coord(model, "ordered_pair", [f"{names[i]}{ARROW}{names[j]}" for i, j in ends])
    weight = model.named_vars.get(model.name_for("weight"))
    if weight is not None:
        give_dims(model, weight, ("ordered_pair",))
    arc = pm.Deterministic("arc", arc_vector(dag), dims="ordered_pair")
    record_arcs(dag)
    return arc
