"""The same model for other rows: which part of a model is its rows, and how to observe others."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.tables.missing_codes import MissingCodes
from bayesstruct.data.labels import check_same_rows
from bayesstruct.data.row_groups import rows_of_groups

if TYPE_CHECKING:
    import pymc as pm

    from bayesstruct.data.intake import TableLike

__all__ = ["new_rows", "remember_rows"]

_ATTRIBUTE = "_bayesstruct_rows"
_ROW_DIMS = {"observation", "missing"}


@dataclass(frozen=True, eq=False)
class _Rows:
    coding: Any
    observe: Callable[..., None]
    options: frozenset[str]


def remember_rows(coding: Any, observe: Callable[..., None], *options: str) -> None:
    """Remember how the table of the model in context was read, and how another one is observed.

    It is kept on the model and is no part of its graph.

    Parameters
    ----------
    coding : NumberCoding, StateCoding or another object with ``names`` and a method ``read`` as theirs
    observe : callable
        Of a table that was read by `coding`; adds its rows to the model in context, which has all variables
        of this model but those over rows. A function of a module, or a partial one.
    *options : str
        Options of `new_rows` that it takes.
    """
    import pymc as pm

    setattr(pm.modelcontext(None), _ATTRIBUTE, _Rows(coding, observe, frozenset(options)))


def new_rows(
    model: "pm.Model",
    table: "TableLike",
    *,
    covariates: "TableLike" = None,
    interventions: Any = None,
    group: Any = None,
) -> "pm.Model":
    """Return the same model for other rows, which are read as its own table was.

    A model of ``bs.models`` made from the new rows would standardise them by their own means and standard
    deviations and number their own states: a posterior of the first model means something else there. This
    function keeps the location, scale, states and columns of the first table, and everything that was learned.

    Parameters
    ----------
    model : pymc.Model
        Of :mod:`bayesstruct.models`, from the table that the posterior was sampled for.
    table : DataFrame or array_like
        (m, p) other rows, in the units or with the states of the first table; one row is enough. Columns that have names are
        found by name, in any order; others by position. Values that the model's `missing_codes` name are missing.
        Numbers may be missing in a Gaussian model:
        the log likelihood of a row is then that of its observed values.
    covariates : DataFrame or array_like, optional
        (m, q), of the new rows, if the model has covariates; in the units of the first ones.
    interventions : (m, p) bool array_like or DataFrame, optional
        Which values of the new rows were set from outside, for a Bayesian network.
    group : str or (m,) array_like, optional
        Groups of the new rows, or the name of the column of `table` that holds them, for a Gaussian model of groups of rows; `table` may
        also be a dict of one table for each group.

    Returns
    -------
    pymc.Model
        With the same variables, and the new rows as its table ``x``: for
        ``pm.compute_log_likelihood`` and ``pm.sample_posterior_predictive(..., predictions=True)``. It is not meant
        to be sampled. Densities have the units that those of the first model have: the table's, and standardised ones in
        ``gaussian_neighbourhoods``.

    Raises
    ------
    TableError
        If a column is absent or unknown, or a state does not occur in the first table; names it.
    TypeError, ValueError
        If the model is not of ``bs.models``, if each of its rows has variables of its own (features, clusters, links), or if an
        option does not apply.

    Notes
    -----
    ``pm.set_data`` cannot do the same: which values are missing and how many states there are is part of the graph of a model, and
    a table is checked before it is in there. `location` and `scale` are data of Gaussian models, and should stay what they are.

    PyMC does not compare a result with the model in context: ``pm.compute_log_likelihood(idata)`` inside a model of another table
    gives numbers without a word, and they are wrong. Only this function makes the two fit.

    See Also
    --------
    bayesstruct.predict : distributions of empty values given the filled ones of their rows.

    Examples
    --------
    .. code-block:: python

        model = bs.models.gaussian_graphical(train)
        with model:
            idata = pm.sample()
        with bs.new_rows(model, test):
            held_out = pm.compute_log_likelihood(idata, extend_inferencedata=False)
            pm.sample_posterior_predictive(idata, predictions=True, extend_inferencedata=True)
    """
    rows = _rows_of(model)
    codes = MissingCodes.of_model(model)
    if "group" in rows.options:
        table = codes.without_of_groups(table, rows.coding.names)
        table, group = rows_of_groups(table, group, list(model.coords["group"]))
    given = {"covariates": covariates, "interventions": interventions, "group": group}
    given = {name: value for name, value in given.items() if value is not None}
    if extra := sorted(set(given) - rows.options):
        raise ValueError(f"the model has no {extra[0]}: leave `{extra[0]}` out")
    if "covariates" in rows.options and covariates is None:
        raise ValueError("the model has covariates: give those of the new rows, `covariates`")
    for name, value in given.items():
        check_same_rows(table, value, f"`{name}`")
    if covariates is not None:
        given["covariates"] = codes.without(covariates, model.coords["covariate"])
    new = rows.coding.read(codes.without(table, rows.coding.names))
    other = _without_rows(model)
    other.add_coord("observation", np.arange(new.n))
    setattr(other, _ATTRIBUTE, rows)
    with other:
        rows.observe(new, **given)
    return other


def _rows_of(model):
    import pymc as pm

    if not isinstance(model, pm.Model):
        raise TypeError(
            f"`model` is the pymc.Model that bs.models made, not {type(model).__name__}; to predict from a result "
            "alone, use bs.predict(idata, table)"
        )
    rows = getattr(model, _ATTRIBUTE, None)
    if rows is None and model.name_for("covariance") in model.named_vars:
        raise ValueError(
            "this model has the covariance matrix of a table and not its rows, so that the means of the columns are not "
            "known: new rows need the model of the rows themselves"
        )
    if rows is None:
        raise ValueError(
            "new rows need a model whose rows depend on parameters alone, as bs.models.gaussian_graphical, ising, pairwise_mrf, tree, "
            "bayesian_network and the neighbourhood models make it. In other models each row has variables of its own "
            "(features, clusters, series, links, latent values of columns that count by their order, weights of values), "
            "rows belong to groups (of states: ising and pairwise_mrf), or "
            'there is the graph alone (prior="pseudo_likelihood"); a model that was changed by pm.do or pm.observe, or made by '
            "hand, does not know how its table was read"
        )
    return rows


def _without_rows(model):
    """Clone of a model without the variables and constants that have a dimension of rows."""
    from pymc.model.fgraph import fgraph_from_model, model_from_fgraph

    graph, _ = fgraph_from_model(model)
    for k in reversed(range(len(graph.outputs))):
        if _ROW_DIMS & {*graph.outputs[k].owner.op.dims}:
            graph.remove_output(k)
    for kept in (graph._coords, graph._dim_lengths):
        for dim in _ROW_DIMS & {*kept}:
            del kept[dim]
    return model_from_fgraph(graph, mutate_fgraph=True)
