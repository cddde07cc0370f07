"""Ising neighbourhoods: which other binary columns predict each column of a table?

x = the table, 0 or 1
logit P(x_i = 1 | x_-i) = intercept_i + sum_j coefficients_ij (x_j - mean_j)
coefficients            ~ spike and slab, Laplace or horseshoe, zero on the diagonal
arc j -> i              = 1 where coefficients_ij is not zero (not negligible)
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from numpy.typing import ArrayLike

from bayesstruct.core.tables.codings import ColumnUnits, record_levels
from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.core.tables.rows import remember_rows
from bayesstruct.data.arguments import number
from bayesstruct.data.checks import max_columns
from bayesstruct.data.coding import StateCoding, coding_of
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.data.intake import read_columns
from bayesstruct.data.orders import warn_about_opposite_orders, warn_about_words
from bayesstruct.data.recoding import repeated_rows, without_codes
from bayesstruct.data.states import StateTable, refuse_coded_states
from bayesstruct.data.table import Table
from bayesstruct.neighbourhoods.model_parts import (
    check_neighbour_options,
    neighbour_coefficients,
    refuse_missing,
)
from bayesstruct.neighbourhoods.reading.symmetrize import ColumnMeans

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["ising_neighbourhoods"]

_REMEDY = "use pairwise_mrf, which takes any number of states, or cut these columns in two"
_DEFAULTS = {
    "spike_slab": {"slab_scale": 1.0},
    "laplace": {"rate": 1.0, "negligible": 0.2},
    "horseshoe": {"slab_scale": 1.0, "negligible": 0.2},
}


def ising_neighbourhoods(
    data: ArrayLike,
    *,
    prior: str = "spike_slab",
    expected_neighbours: float | None = None,
    inclusion: "ArrayLike | TensorVariable | None" = None,
    slab: str | None = None,
    slab_scale: float | None = None,
    rate: float | None = None,
    negligible: float | None = None,
    intercept_scale: float = 2.5,
    states: Any = None,
    missing_codes: Any = None,
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn which columns of a binary table predict each of its columns, one regression each.

    This is a dependency network: p logistic regressions that are fitted independently of each
    other. There need not be a joint distribution of which they are the conditionals, "A predicts
    B" and "B predicts A" may get different answers, and the posterior is that of each regression,
    **not a joint posterior over graphs**. In return it scales to hundreds of columns with
    :func:`bayesstruct.sample_neighbourhoods`. :func:`bayesstruct.symmetrize` reads an undirected
    graph from it.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table without missing values; each column has two values (numbers, text, categories,
        booleans), of which the second in order counts as 1. Numbers in a table that holds text or
        categories must be whole.
    prior : {"spike_slab", "laplace", "horseshoe"}
        ``"spike_slab"`` gives each arc a probability. The others only shrink, and an arc is then a
        coefficient beyond `negligible`: ``"laplace"`` (the Bayesian lasso) shrinks all by the same
        amount, ``"horseshoe"`` large coefficients little; its global scale is common to all
        regressions, which therefore are not quite independent.
    expected_neighbours : float, optional
        Prior expected number of predictors of a column (spike and slab, horseshoe). By default 3, or
        half of the other columns if that is less.
    inclusion : float, (p, p) array_like or DataFrame, or ``pm.Beta.dist``, optional
        Instead of it, the prior probability of an arc; a matrix, with responses as its rows, gives
        one to each, 0 forbids and 1 requires it; from a beta distribution each regression draws its
        own.
    slab : {"normal", "laplace"}, optional
        Distribution of a coefficient that is not zero; normal by default.
    slab_scale : float, optional
        Its standard deviation (normal) or scale (Laplace), 1 by default, a log odds ratio. For the
        horseshoe the scale of the largest coefficients, 1.
    rate : float, optional
        Rate of the Laplace prior, 1 by default: the penalty :math:`\lambda` of
        :math:`\min_w -\frac1n \log L(w) + \lambda |w|_1` times n.
    negligible : float, optional
        Absolute coefficient up to which there is no arc (Laplace, horseshoe), 0.2 by default, an
        odds ratio of 1.2.
    intercept_scale : float, default 2.5
        Standard deviation of the intercepts, the log odds of a 1 when all other columns are at
        their means (Gelman et al. 2008 centre binary predictors too).
    states : list or dict of lists, optional
        All states of each column, in order, also those that never occur and have their prior: one list for all
        columns, or a dict with one for each of some. Categories of pandas and polars declare theirs.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.
    row_counts : (n,) array_like of int or str, optional
        How often each row was observed, or the name of the column that says so: a table of frequencies. The
        result is that of the table with repeated rows.

    Returns
    -------
    pymc.Model
        With ``coefficients`` (node, node\_; a row is a regression), ``intercept``, ``arc`` and
        ``weight`` over "A -> B", A being the predictor, and ``x``, the 0/1 table.

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    ValueError
        For an unknown prior, an option out of range, or one that belongs to another prior.

    Warns
    -----
    TableWarning
        If columns have two words as states whose alphabetical order decides on the sign of edges, or columns have the same states
        in different orders.

    Notes
    -----
    If the table comes from the Ising model :math:`P(x) \propto \exp(\sum_i \theta_{ii} x_i +
    \sum_{i<j} \theta_{ij} x_i x_j)`, the coefficients are the couplings :math:`\theta_{ij}`, the
    same in both directions, and :math:`\theta_{ii}` is the intercept less
    :math:`\sum_j \theta_{ij} mean_j`. Unlike in that model, the intercept is not shrunk with the
    coefficients.

    References
    ----------
    Ravikumar, P., Wainwright, M. J. and Lafferty, J. D. (2010). High-dimensional Ising model
    selection using l1-regularized logistic regression. *Annals of Statistics* 38(3), 1287-1319.

    Heckerman, D., Chickering, D. M., Meek, C., Rounthwaite, R. and Kadie, C. (2000). Dependency
    networks for inference, collaborative filtering, and data visualization. *JMLR* 1, 49-75.

    Gelman, A., Jakulin, A., Pittau, M. G. and Su, Y.-S. (2008). A weakly informative default prior
    distribution for logistic and other regression models. *Annals of Applied Statistics* 2(4),
    1360-1383.

    Examples
    --------
    .. code-block:: python

        with bs.models.ising_neighbourhoods(symptoms):
            idata = bs.sample_neighbourhoods()  # or pm.sample()
        bs.median_graph(bs.symmetrize(idata, "or"))
    """
    given = check_neighbour_options(
        prior,
        expected_neighbours=expected_neighbours,
        inclusion=inclusion,
        slab=slab,
        slab_scale=slab_scale,
        rate=rate,
        negligible=negligible,
    )
    intercept_scale = number("intercept_scale", intercept_scale, above=0)
    [data] = repeated_rows(row_counts, data)
    refuse_coded_states(states, missing_codes)
    table, coding = _two_valued(without_codes(data, missing_codes), states)
    refuse_missing(table, "ising")
    x = table.standardized
    center = x.mean(axis=0)
    with pm.Model(coords=table.coords) as model:
        coefficients = neighbour_coefficients(table, prior, _DEFAULTS[prior] | given, deviation=2.0)
        intercept = pm.Normal("intercept", 0.0, intercept_scale, dims="node")
        _observe(x, center, intercept, coefficients)
        ColumnUnits(table.location, table.scale).record()
        ColumnMeans(center).record()
        record_levels(_levels(coding))
        record_codes(missing_codes)
        remember_rows(coding, partial(_observe_others, center=center))
    return model


def _observe(x, center, intercept, coefficients):
    """Add rows of 0 and 1."""
    log_odds = intercept + (x - center) @ coefficients.T
    observed = x.astype("int64")
    pm.Bernoulli("x", logit_p=log_odds, observed=observed, dims=("observation", "node"))


def _observe_others(table, *, center):
    """Add the rows of another table to a model without rows."""
    refuse_missing(table, "ising")
    x = table.codes.astype(float) if isinstance(table, StateTable) else table.standardized
    if unknown := [
        n for n, v in zip(table.names, x.T, strict=True) if not np.isin(v, (0, 1)).all()
    ]:
        raise TableError(
            f"{column_list(unknown)}: values that the table of the model does not have; each column has the two "
            "values of that table"
        )
    model = pm.modelcontext(None)
    _observe(x, center, model["intercept"], model["coefficients"])


def _levels(coding):
    """States of the columns: the two numbers of those that were read as numbers."""
    if isinstance(coding, StateCoding):
        return coding
    ends = zip(coding.location.tolist(), (coding.location + coding.scale).tolist(), strict=True)
    return StateCoding(coding.names, tuple(tuple(f"{v:g}" for v in own) for own in ends))


def _two_valued(data, declared):
    """Check a table of two values in each column, and say how it was read; text and categories become 0 and 1."""
    import pandas as pd

    intake = read_columns(data, max_columns())
    words = [j for kind in ("text", "category") for j, _ in intake.refused.get(kind, [])]
    if not words and declared is None:
        table = Table.binary(data)
        return table, coding_of(table)
    states = StateTable.read(data, states=declared).check_binary(_REMEDY)
    states.refuse_unseen(
        "a neighbourhood regression needs both values of each column; leave the column out, or use ising"
    )
    warn_about_opposite_orders(states)
    warn_about_words(states)
    values = intake.values.copy()
    words = words if declared is None else slice(None)
    values[:, words] = np.where(states.missing, np.nan, states.codes)[:, words]
    return Table.binary(pd.DataFrame(values, columns=intake.names)), coding_of(states)
