"""Parts that models share: rows of a table, regressions, and the record of the edge prior."""

import os

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.data.arguments import is_number
from bayesstruct.data.covariates import standardized_covariates
from bayesstruct.data.errors import warn
from bayesstruct.data.names import nearest
from bayesstruct.distributions import GraphicalNormal, IncompleteGraphicalNormal, MissingCells

_ROWS = ("observation", "node")
#: Options of priors that are positive numbers.
POSITIVE = {
    "expected_edges",
    "expected_neighbours",
    "negligible",
    "rate",
    "slab_scale",
}


def observe_rows(table, mean, precision):
    """Add the table as ``x``, and its missing cells as ``x_missing``.

    Parameters
    ----------
    table : Table
    mean : TensorVariable
        (p,) or (n, p), standardised.
    precision : TensorVariable
        (p, p), of the standardised rows.
    """
    location = pm.Data("location", table.location, dims="node")
    scale = pm.Data("scale", table.scale, dims="node")
    rows = (mean, precision, location, scale)
    if not table.missing.any():
        GraphicalNormal("x", *rows, observed=table.values, dims=_ROWS)
        return
    filled = np.where(table.missing, table.location, table.values)
    cells = [f"{table.names[j]}[{i}]" for i, j in np.argwhere(table.missing)]
    pm.modelcontext(None).add_coord("missing", cells)
    record("cell_missing", table.missing.astype("int64"), dims=_ROWS)
    MissingCells("x_missing", *rows, table=filled, missing=table.missing, dims="missing")
    IncompleteGraphicalNormal("x", *rows, missing=table.missing, observed=filled, dims=_ROWS)


def warn_size(table, draws=4000):
    """Warn when a usual number of draws will not fit into half of the memory.

    A draw holds the matrix, its unconstrained vector, and two numbers for each pair.
    """
    bytes_ = 8 * draws * 5 * table.p**2 // 2
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not told on this system
        return
    if bytes_ > memory / 2:
        warn(
            f"{draws:,} draws of {table.p} columns take {bytes_ / 2**30:.0f} GiB of memory; ask for "
            'fewer draws, keep them on disk with bs.sample(checkpoint="run"), or keep only the '
            'graph with pm.sample(var_names=["edge", "weight"])'
        )


def regression(table, covariates, intercept):
    """Mean of each row as a linear function of covariates, (n, p).

    The coefficients are standard normal a priori, for standardised covariates and columns.
    """
    names, design = standardized_covariates(covariates, table.n, table.names)
    pm.modelcontext(None).add_coord("covariate", names)
    coefficients = pm.Normal("coefficients", 0.0, 1.0, dims=("covariate", "node"))
    return intercept + design @ coefficients


def check_options(prior, options, **given):
    """Refuse an unknown prior, options that belong to another one, and numbers out of range.

    Parameters
    ----------
    prior : str
    options : dict
        The options that each prior has, by its name.
    **given
        Options by name; None where not given. Those that are named in `POSITIVE` must be positive.

    Returns
    -------
    dict
        Those that were given.
    """
    if not isinstance(prior, str) or prior not in options:
        raise ValueError(nearest("prior", prior, options))
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        if name not in options[prior]:
            owners = " or ".join(f'prior="{p}"' for p, names in options.items() if name in names)
            raise ValueError(f"`{name}` goes with {owners}")
        if (
            name in POSITIVE and not 1e-100 < _number(name, value) < 1e100
        ):  # squares are numbers too
            raise ValueError(f"`{name}` must be positive and finite, it is {value}")
    return given


def _number(name, value):
    if not is_number(value):
        raise ValueError(f"`{name}` must be a number, it is {value!r:.60}")
    return float(value)


def register(name, distribution):
    """Make an unregistered distribution a variable of the model."""
    return pm.modelcontext(None).register_rv(distribution, name)


def record(name, value, dims=None):
    """Keep a constant in the group ``constant_data`` of every result.

    Unlike ``pm.Data`` it cannot be set: the posterior would be read with numbers that its draws
    know nothing of.
    """
    model = pm.modelcontext(None)
    constant = pt.constant(np.asarray(value), name=model.name_for(name))
    model.register_data_var(constant, dims=dims)


def record_ends(line, ends, dims):
    """Record which columns each edge or arc joins.

    With the position of each column, by which a result is told whose columns were sorted since.

    Parameters
    ----------
    line : {"edge", "arc"}
    ends : tuple of two int arrays
        Positions of source and target.
    dims : str
        Over the edges or arcs.
    """
    for name, positions in zip(("source", "target"), ends, strict=True):
        record(f"{line}_{name}", positions, dims=dims)
    nodes = pm.modelcontext(None).coords["node"]
    record("node_position", np.arange(len(nodes)), dims="node")


def record_edges(table, implied, nominal=None, scales=None):
    """Record what the posterior is read with: ends of the edges and their prior probabilities.

    They become the group ``constant_data`` of every result.
    """
    source, target = table.edge_index
    record_ends("edge", (source, target), "pair")
    record("edge_prior", implied, dims="pair")
    if nominal is not None:
        record("edge_nominal", nominal[source, target], dims="pair")
    for name, value in (scales or {}).items():
        record(name, float(value))
