"""Parts of the neighbourhood models: the prior of the coefficients and the arcs of a draw."""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.core.entries import entries
from bayesstruct.core.tensors import is_beta
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.data.labels import aligned, warn_about_triangle
from bayesstruct.data.options import check_options
from bayesstruct.graphs.records import ArcEnds, ArcPrior
from bayesstruct.sparse.model_parts import horseshoe_prior
from bayesstruct.sparse.priors.horseshoe import RegularizedHorseshoe
from bayesstruct.sparse.priors.spike_and_slab import SpikeAndSlab

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

    from bayesstruct.data.table import Table

__all__ = ["check_neighbour_options", "neighbour_coefficients", "refuse_missing"]

_MATRIX = ("node", "node_")
_SLABS = ("laplace", "normal")  # those that regressions are drawn with exactly
_NEIGHBOURS = 3.0
#: Which options belong to which prior.
_OPTIONS = {
    "spike_slab": {"inclusion", "expected_neighbours", "slab", "slab_scale"},
    "laplace": {"rate", "negligible"},
    "horseshoe": {"expected_neighbours", "slab_scale", "negligible"},
}


def refuse_missing(table: "Table", joint_model: str) -> None:
    """Raise for missing values: the response of one regression is a predictor of the others."""
    columns = [
        name for name, gap in zip(table.names, table.missing.any(axis=0), strict=True) if gap
    ]
    if columns:
        raise TableError(
            f"{column_list(columns)}: values are missing, and regressions of columns on one another "
            "cannot impute them; drop these rows (data.dropna()) or columns, or use "
            f"{joint_model}, which imputes"
        )


def check_neighbour_options(prior: str, **given) -> dict:
    """Check options of a prior, and raise for those that regressions do not have.

    Parameters
    ----------
    prior : str
    **given
        Options by name; None where not given.

    Returns
    -------
    dict
        Those that were given.
    """
    given = check_options(prior, _OPTIONS, **given)
    if given.get("slab", "normal") not in _SLABS:
        raise ValueError(f"`slab` must be one of {list(_SLABS)}, it is {given['slab']!r}")
    if {"inclusion", "expected_neighbours"} <= set(given):
        raise ValueError("give `inclusion` or `expected_neighbours`, not both")
    return given


def neighbour_coefficients(
    table: "Table", prior: str, options: dict, *, deviation: float
) -> "TensorVariable":
    """Add the coefficients of all regressions, and the arcs that they make, to the model.

    Parameters
    ----------
    table : Table
    prior : {"spike_slab", "laplace", "horseshoe"}
    options : dict
        See `check_neighbour_options`; with ``slab_scale``, ``rate`` and ``negligible`` where they belong.
    deviation : float
        Standard deviation of the noise that scales the horseshoe.

    Returns
    -------
    TensorVariable
        (p, p); a row holds the coefficients of one regression, zero on the diagonal.
    """
    model = pm.modelcontext(None)
    model.add_coord("ordered_pair", table.arc_names)
    source, target = table.arc_index
    ArcEnds.in_model(source, target).record()
    coefficients, marginal, both, cut = _PRIORS[prior](table, options, deviation)
    weight = pm.Deterministic("weight", entries(coefficients, target, source), dims="ordered_pair")
    pm.Deterministic("arc", pt.gt(pt.abs(weight), cut).astype("int8"), dims="ordered_pair")
    ArcPrior(
        np.broadcast_to(marginal, len(source)).copy(),
        independent=int(both is None),
        both=both,
        negligible=cut if cut > 0 else None,
    ).record()
    return coefficients


def _expected(table, options):
    """Prior expected number of neighbours; below half of the columns unless asked for."""
    expected = options.get("expected_neighbours", min(_NEIGHBOURS, 0.5 * (table.p - 1)))
    if expected >= table.p - 1:
        raise ValueError(
            f"`expected_neighbours` must be below {table.p - 1}, the number of other columns, it is "
            f"{expected:g}"
        )
    return float(expected)


def _spike_slab(table, options, _):
    given = options.get("inclusion")
    if is_beta(given):
        alpha, beta = given.owner.op.dist_params(given.owner)
        share = pm.Beta("inclusion", alpha, beta, dims="node")
        matrix = share[:, None] * pt.as_tensor_variable(1.0 - np.eye(table.p))
        alpha, beta = (float(np.asarray(v.eval(mode="FAST_COMPILE")).item()) for v in (alpha, beta))
        marginal = alpha / (alpha + beta)
    else:
        if given is None:
            given = _expected(table, options) / (table.p - 1)
        matrix = _inclusion_matrix(table.names, given)
        source, target = table.arc_index
        marginal = matrix[target, source]
    coefficients = SpikeAndSlab(
        "coefficients",
        matrix,
        options["slab_scale"],
        slab=options.get("slab", "normal"),
        dims=_MATRIX,
    )
    return coefficients, marginal, None, 0.0


_SILENCE = "warnings.filterwarnings('ignore', message='`inclusion` is zero') silences this"


def _inclusion_matrix(names, given):
    """Prior probability of each arc: rows are responses, columns are predictors."""
    p = len(names)
    given = aligned("inclusion", given, names)
    try:
        values = np.asarray(given, float)
    except (TypeError, ValueError):
        raise TableError(
            f"`inclusion` is not a number ({given!r:.60}); give a number between 0 and 1, a {p} x {p} "
            "matrix, or pm.Beta.dist(1, 1) to have it learned for each regression"
        ) from None
    if values.shape not in ((), (p, p)):
        raise TableError(
            f"`inclusion` has shape {values.shape}; give a number or a {p} x {p} matrix"
        )
    matrix = np.broadcast_to(values, (p, p)) * 1.0
    np.fill_diagonal(matrix, 0.0)
    if not ((matrix >= 0) & (matrix <= 1)).all():
        raise TableError("`inclusion` has values that are not between 0 and 1")
    warn_about_triangle("inclusion", matrix, _SILENCE)
    return matrix


def _laplace(table, options, _):
    rate, negligible = float(options["rate"]), float(options["negligible"])
    always = 1.0 - np.eye(table.p)
    coefficients = SpikeAndSlab("coefficients", always, 1.0 / rate, slab="laplace", dims=_MATRIX)
    return coefficients, np.exp(-rate * negligible), None, negligible


def _horseshoe(table, options, deviation):
    expected = table.p * _expected(table, options)
    scale, negligible = float(options["slab_scale"]), float(options["negligible"])
    slopes = RegularizedHorseshoe(
        "slope", expected, n=table.n, sigma=deviation, slab_scale=scale, dims="ordered_pair"
    )
    source, target = table.arc_index
    at = (pt.as_tensor_variable(target), pt.as_tensor_variable(source))
    matrix = pt.zeros((table.p, table.p), dtype="float64")[at].set(slopes)
    coefficients = pm.Deterministic("coefficients", matrix, dims=_MATRIX)
    size = table.p * (table.p - 1)
    marginal, both = horseshoe_prior(size, table.n, expected, scale, deviation, negligible)
    return coefficients, marginal, both, negligible


_PRIORS = {"spike_slab": _spike_slab, "laplace": _laplace, "horseshoe": _horseshoe}
