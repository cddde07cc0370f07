"""Parts that models share: rows of a table, regressions, and the record of the prior of edges."""

import os

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.graph.traversal import ancestors

from bayesstruct.core.missing import MissingMask, show_missing
from bayesstruct.core.recognition import parameters
from bayesstruct.core.recorded import Recorded, record, register
from bayesstruct.core.tables.codings import CovariateUnits
from bayesstruct.core.tables.rows import remember_rows
from bayesstruct.core.tensors import constant_value, random_ancestors
from bayesstruct.data.coding import NumberCoding, coding_of
from bayesstruct.data.covariance import CovarianceTable
from bayesstruct.data.covariates import read_covariates, standardized_covariates
from bayesstruct.data.errors import TableError, column_list, warn
from bayesstruct.data.labels import check_same_rows
from bayesstruct.data.recoding import repeated_rows, tables_without_codes
from bayesstruct.data.table import Table
from bayesstruct.graphs.own_models import (
    EdgeParts,
    edge_parts,
    give_dims,
    prior_mean,
    refuse_negligible,
)
from bayesstruct.graphs.records import (
    NODEWISE,
    CompositeLikelihood,
    EdgeEnds,
    EdgePrior,
    EdgeScales,
    OrderedColumns,
)
from bayesstruct.precision.priors.edges import Edges, partial_correlations, upper
from bayesstruct.precision.priors.fused import GraphicalFusedLassoRV, implied_fused_probability
from bayesstruct.precision.priors.g_wishart import GWishartRV, beta_share, edge_matrix
from bayesstruct.precision.priors.graphs import NeighbourRegressions
from bayesstruct.precision.priors.group_lasso import (
    GraphicalGroupLassoRV,
    implied_group_probability,
)
from bayesstruct.precision.priors.horseshoe import GraphicalHorseshoeRV
from bayesstruct.precision.priors.implied import (
    implied_edge_probability,
    implied_horseshoe_probability,
    implied_joint_probability,
    implied_nonnegligible_probability,
)
from bayesstruct.precision.priors.latent_rows import LatentValues, OrderedRows
from bayesstruct.precision.priors.precision import (
    GraphicalLassoRV,
    GraphicalSpikeSlabRV,
    JointSpikeSlabRV,
)
from bayesstruct.precision.priors.rows import (
    ColumnMeans,
    GraphicalNormal,
    IncompleteGraphicalNormal,
    MissingValues,
)
from bayesstruct.precision.priors.sample_covariance import GraphicalCovariance
from bayesstruct.precision.priors.student_rows import (
    DegreesOfFreedom,
    GraphicalStudent,
    IncompleteGraphicalStudent,
    MissingStudentValues,
)

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

    from bayesstruct.data.ranks import RankTable

__all__ = [
    "check_negligible",
    "column_means",
    "independent_edge_prior",
    "missing_labels",
    "negligible_edges",
    "observe_correlations",
    "observe_covariance",
    "observe_order",
    "observe_rows",
    "observe_student",
    "read_rows",
    "record_edges",
    "refuse_for_graphs",
    "regression",
    "warn_latent",
    "warn_of_many_edges",
    "warn_size",
]

_ROWS = ("observation", "node")
_MATRIX = ("node", "node_")
_SEED, _PRIOR_DRAWS = 20150201, 10_000  # fixed: equal models give equal Bayes factors
_PRIOR_NUMBERS = 4_000_000  # that these draws hold
_NORMAL = (GraphicalNormal, IncompleteGraphicalNormal, MissingValues)
_STUDENT = (GraphicalStudent, IncompleteGraphicalStudent, MissingStudentValues)
_SCALES = ("spike_scale", "slab_scale", "diagonal_rate")


def observe_rows(table: "Table", mean, precision) -> None:
    """Add the table as ``x``, and its missing values as ``x_missing``.

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
    _observe(table, (mean, precision, location, scale), _NORMAL)


def observe_student(table: "Table", mean, precision, degrees=None) -> None:
    """Add the table as ``x`` and its missing values as ``x_missing``, rows having a multivariate t distribution.

    Parameters
    ----------
    table : Table
    mean, precision : TensorVariable
        As in `observe_rows`; `precision` is the inverse of the scale matrix.
    degrees : float or unregistered distribution, optional
        Degrees of freedom, recorded as ``degrees``; a Gamma(2, 0.1) variable unless given.
    """
    location = pm.Data("location", table.location, dims="node")
    scale = pm.Data("scale", table.scale, dims="node")
    if degrees is None:
        degrees = DegreesOfFreedom("degrees", 2.0, 0.1)
    elif hasattr(degrees, "owner"):
        degrees = register("degrees", degrees)
    else:
        if not (np.isfinite(degrees) and degrees > 0):
            raise ValueError(f"`degrees` must be positive and finite, it is {degrees}")
        record("degrees", float(degrees))
        degrees = float(degrees)
    _observe(table, (mean, precision, location, scale, degrees), _STUDENT)


def observe_order(table: "RankTable", mean, precision) -> None:
    """Add the table as ``x``, and the values behind columns that count by their order, and missing ones, as ``latent``.

    Parameters
    ----------
    table : RankTable
    mean : TensorVariable
        (p,), of the latent rows.
    precision : TensorVariable
        (p, p), of the latent rows.
    """
    rows = (mean, precision, table.location, table.scale)
    latent = np.argwhere(table.by_order | table.missing)
    labels = [f"{table.names[j]}[{i}]" for i, j in latent]
    pm.modelcontext(None).add_coord("latent_value", labels)
    OrderedColumns(table.by_order.astype("int64")).record()
    start = table.location + table.scale * np.nan_to_num(table.standardized)
    known = {"table": table.values, "codes": table.codes, "start": start}
    LatentValues("latent", *rows, **known, dims="latent_value")
    own = {"table": table.values, "by_order": table.by_order, "dims": _ROWS}
    if table.missing.any():
        MissingMask(table.missing.astype("int64")).record()
    filled = np.where(table.missing, 0.0, table.values)
    show_missing(OrderedRows("x", *rows, **own, observed=filled), table.missing)


def warn_latent(table: "RankTable", draws: int = 4000) -> None:
    """Warn if a usual number of draws of the latent values takes more than a gibibyte."""
    size = 8 * draws * int((table.by_order | table.missing).sum())
    if size > 2**30:
        warn(
            f"{draws:,} draws of the latent values take {size / 2**30:.0f} GiB of memory: leave them out of the result with "
            'pm.sample(var_names=["edge", "weight", "precision"])'
        )


def _observe(table, rows, kinds):
    """Add the table, given the parameters of its rows and the distributions of complete, incomplete and missing ones."""
    *_, of_missing = kinds
    model = pm.modelcontext(None)
    if table.missing.any():
        model.add_coord("missing", missing_labels(table))
        MissingMask(table.missing.astype("int64")).record()
        known = {"table": _filled(table), "missing": table.missing}
        of_missing("x_missing", *rows, **known, dims="missing")
    _add_rows(table, rows, kinds)
    options = ["covariates"] if "covariate" in model.coords else []
    remember_rows(coding_of(table), _observe_others, *options)


def _add_rows(table, rows, kinds):
    """Add the table as ``x``, given the parameters of its rows."""
    complete, incomplete, _ = kinds
    if not table.missing.any():
        complete("x", *rows, observed=table.values, dims=_ROWS)
        return
    own = {"missing": table.missing, "observed": _filled(table), "dims": _ROWS}
    show_missing(incomplete("x", *rows, **own), table.missing)


def observe_covariance(table: "CovarianceTable", mean, precision) -> None:
    """Add the sample covariance matrix as ``covariance``, in the units of the table.

    Parameters
    ----------
    table : CovarianceTable
    mean : TensorVariable
        (p,), standardised.
    precision : TensorVariable
        (p, p), of the standardised rows.
    """
    pm.Data("location", table.location, dims="node")
    scale = pm.Data("scale", table.scale, dims="node")
    n = pm.Data("rows", float(table.n))
    GraphicalCovariance(
        "covariance", mean, precision, scale, n, observed=table.covariance, dims=("node", "node_")
    )


def missing_labels(table: "Table") -> list[str]:
    """Labels ``column[row]`` of the missing values of a table, in row-major order."""
    return [f"{table.names[j]}[{i}]" for i, j in np.argwhere(table.missing)]


def observe_correlations(table: "Table | CovarianceTable", edge) -> None:
    """Add the correlations of the columns as ``correlation``, given the graph.

    Parameters
    ----------
    table : Table or CovarianceTable
        Without missing values, standardised.
    edge : TensorVariable
        (pairs,) indicators.
    """
    pm.Data("location", table.location, dims="node")
    pm.Data("scale", table.scale, dims="node")
    n = pm.Data("rows", float(table.n))
    if isinstance(table, CovarianceTable):
        correlation = table.scatter / (table.n - 1)
    else:
        correlation = table.standardized.T @ table.standardized / (table.n - 1)
    np.fill_diagonal(correlation, 1.0)
    NeighbourRegressions("correlation", edge, n, observed=correlation, dims=_MATRIX)
    CompositeLikelihood(NODEWISE).record()


def refuse_for_graphs(table: "Table | CovarianceTable", *, covariates, standardize: bool) -> None:
    """Raise for what regressions of standardised, complete columns on their neighbours do not know, and warn of large results.

    Raises
    ------
    TableError
        If values are missing.
    ValueError
        For covariates, or columns in their own units.
    """
    others = 'or take prior="spike_slab"'
    if covariates is not None:
        raise ValueError(
            f'`covariates` do not go with prior="pseudo_likelihood": give the residuals of regressions on them, {others}'
        )
    if not standardize:
        raise ValueError(
            'prior="pseudo_likelihood" is one of correlations, that is of standardised columns: leave out `standardize`, '
            f"{others}"
        )
    missing = getattr(table, "missing", np.zeros(0, bool))
    if missing.any():
        columns = [table.names[j] for j in np.flatnonzero(missing.any(axis=0))]
        raise TableError(
            f'{column_list(columns)}: {int(missing.sum())} values are missing, and prior="pseudo_likelihood" needs a complete '
            f"table; leave out these rows or columns, {others}, which imputes them"
        )
    _warn_of_graphs(table.p)


def _warn_of_graphs(p: int, draws: int = 4000) -> None:
    """Warn if a usual number of draws, of five bytes for each pair, exceeds half of the memory."""
    size, memory = 5 * draws * p * (p - 1) // 2, _memory()
    if memory is not None and size > memory / 2:
        warn(
            f"{draws:,} draws of the graph of {p} columns take {size / 2**30:.0f} GiB of memory; each of them is many updates, "
            "so that few are enough: pm.sample(100, compute_convergence_checks=False), and then bs.check(idata)"
        )


def warn_of_many_edges(p: int, prior: np.ndarray, most: float = 20.0) -> None:
    """Warn of prior probabilities of edges under which a column has more neighbours than `most`."""
    expected = 2.0 * float(np.sum(prior)) / p
    if expected > most:
        warn(
            f"the prior expects {expected:.0f} neighbours of each of the {p} columns: give `edge_probability` a number near "
            f"the expected share of edges, such as 2 / p = {2 / p:.2g}, or pm.Beta.dist(1, {p // 2})"
        )


def _filled(table):
    return np.where(table.missing, table.location, table.values)


def _observe_others(table, covariates=None):
    """Add the rows of another table to a model without rows."""
    model = pm.modelcontext(None)
    mean, precision, location, scale = (
        model[name] for name in ("mean", "precision", "location", "scale")
    )
    if covariates is not None:
        units = (model[name].data for name in ("covariate_center", "covariate_unit"))
        coding = NumberCoding(tuple(model.coords["covariate"]), *units)
        mean = mean + read_covariates(coding, covariates, table.n) @ model["coefficients"]
    rows = (mean, precision, location, scale)
    if "degrees" in model.named_vars:
        _add_rows(table, (*rows, model["degrees"]), _STUDENT)
    else:
        _add_rows(table, rows, _NORMAL)


def read_rows(
    data, covariates, *, standardize: bool, missing_codes, row_counts
) -> tuple["Table", Any, Any]:
    """Read a table of numbers; return it with the data and covariates without codes and counts.

    Parameters
    ----------
    data, covariates : TableLike
    standardize : bool
    missing_codes, row_counts
        As of the models.
    """
    data, covariates = repeated_rows(row_counts, data, covariates)
    data, covariates = tables_without_codes(missing_codes, data, covariates)
    table = Table.continuous(data, standardize=standardize, counted=row_counts is not None)
    warn_size(table)
    return table, data, covariates


def column_means(table: "Table", data, covariates) -> "TensorVariable":
    """Add the means of the columns, and their regression on covariates if there are any."""
    mean = ColumnMeans("mean", 0.0, 1.0, dims="node")
    if covariates is None:
        return mean
    check_same_rows(data, covariates)
    return regression(table, covariates, mean)


def negligible_edges(table: "Table", precision, negligible: float, implied) -> None:
    """Add weights, and edges where they are beyond ``negligible``; record their prior probabilities."""
    weight = pm.Deterministic("weight", partial_correlations(precision), dims="pair")
    pm.Deterministic("edge", _exceeding(weight, negligible), dims="pair")
    record_edges(table, implied)


def check_negligible(negligible: float) -> None:
    """Raise unless a bound of partial correlations is between 0 and 1."""
    if not 0 < negligible < 1:
        raise ValueError(f"`negligible` must be between 0 and 1, it is {negligible}")


def warn_size(table: "Table", draws: int = 4000) -> None:
    """Warn if a usual number of draws exceeds half of the memory.

    A draw holds the matrix, its unconstrained vector, and two numbers for each pair.
    """
    bytes_, memory = 8 * draws * 5 * table.p**2 // 2, _memory()
    if memory is not None and bytes_ > memory / 2:
        warn(
            f"{draws:,} draws of {table.p} columns take {bytes_ / 2**30:.0f} GiB of memory; ask for "
            'fewer draws, keep them on disk with bs.sample(checkpoint="run"), or keep only the '
            'graph with pm.sample(var_names=["edge", "weight"])'
        )


def _memory() -> int | None:
    """Size of the memory in bytes, where the system tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def regression(table: "Table", covariates, intercept) -> "TensorVariable":
    """Mean of each row as a linear function of covariates, (n, p).

    The coefficients are standard normal a priori, for standardised covariates and columns.
    """
    coding, design = standardized_covariates(covariates, table.n, table.names)
    pm.modelcontext(None).add_coord("covariate", list(coding.names))
    CovariateUnits(coding.location, coding.scale).record()
    coefficients = pm.Normal("coefficients", 0.0, 1.0, dims=("covariate", "node"))
    return intercept + design @ coefficients


def record_edges(table: "Table", implied, nominal=None, scales: dict | None = None) -> None:
    """Record the ends of the edges and their prior.

    Parameters
    ----------
    table : Table
    implied : (pairs,) array_like
        Prior probability of each edge that the model implies.
    nominal : (p, p) array_like, optional
        Probability of each edge before the matrix is restricted to be positive definite.
    scales : dict, optional
        ``spike_scale``, ``slab_scale`` and ``diagonal_rate``.
    """
    source, target = table.edge_index
    EdgeEnds.in_model(source, target).record()
    EdgePrior(np.asarray(implied)).record()
    if scales is not None:
        scales = {name: float(value) for name, value in scales.items()}
        EdgeScales(**scales, nominal=nominal[source, target]).record()


@edge_parts.register(GraphicalSpikeSlabRV)
def _spike_slab_parts(op, precision, negligible) -> EdgeParts:
    refuse_negligible(negligible)
    probability, *own, scale = parameters(precision)
    scales = {name: float(_constant(v)) for name, v in zip(_SCALES, own, strict=True)}
    constants: list[Recorded]
    if isinstance(op, JointSpikeSlabRV):
        columns = int(_constant(precision.shape[0]))
        constants = [EdgePrior(_joint_prior(precision, probability, scales))]
        size = constant_value(scale)
        if size is not None and _is_known(precision) and not _has_probability():
            # What readers compute the probability of an edge given the matrix from.
            upper = np.triu_indices(columns, 1)
            parts = _matrix_parts(
                precision, columns, _indicators(precision, probability[upper]), constants
            )
            return replace(parts, constants=(*constants, _scaled(scales, float(size))))
        return _matrix_parts(precision, columns, _indicators(precision), constants)
    nominal, beta = _nominal(probability)
    implied = implied_edge_probability(len(nominal), nominal, beta=beta, **scales)
    constants = [EdgePrior(implied)]
    size = constant_value(scale)
    if _conditional_probabilities(precision, probability) and size is not None:
        upper = np.triu_indices(len(nominal), 1)
        constants.append(_scaled(scales, float(size), nominal[upper]))

    return _matrix_parts(precision, len(nominal), _indicators(precision), constants)


def _joint_prior(precision, probability, scales) -> np.ndarray:
    """Prior probability of each edge when its parameters are random; NaN where it is not known."""
    size = int(_constant(precision.shape[0]))
    unknown = np.full(size * (size - 1) // 2, np.nan)
    if _others_depend(random_ancestors(probability), precision):
        return unknown
    draws = min(_PRIOR_DRAWS, max(100, _PRIOR_NUMBERS // size**2))
    try:
        nominal = pm.draw(probability, draws, random_seed=_SEED, mode="FAST_COMPILE")
    except NotImplementedError:  # a parameter without draws of its own, such as pm.Flat
        return unknown
    return implied_joint_probability(nominal, **scales)


def _others_depend(given, precision) -> bool:
    """Whether other variables or potentials of the model depend on these, but for those that depend on the matrix."""
    root, own = pm.modelcontext(None).root, {*given, precision}
    others = [v for v in (*root.basic_RVs, *root.potentials) if v not in own]
    return any(set(given) & set(ancestors([other], blockers=[precision])) for other in others)


def _scaled(scales, size, nominal=None) -> EdgeScales:
    spike, slab = (scales[name] * size for name in ("spike_scale", "slab_scale"))
    return EdgeScales(spike, slab, scales["diagonal_rate"] / size, nominal)


def _indicators(precision, probability=None):
    def add(name, dims):
        if probability is not None:
            pm.Deterministic("edge_probability", probability, dims=dims)
        return Edges(name, precision, dims=dims)

    return add


def _nominal(probability) -> tuple[np.ndarray, tuple[float, float] | None]:
    """Probability of each edge, and the shapes of its beta distribution if it is drawn."""
    known = constant_value(probability)
    if known is not None:
        return known, None
    [share] = random_ancestors(probability)
    alpha, beta, pattern, *_ = (_constant(v) for v in parameters(share))
    return pattern, (float(alpha), float(beta))


def _constant(tensor) -> np.ndarray:
    """Value of a parameter that the prior does not allow to be random."""
    return np.asarray(tensor.eval(mode="FAST_COMPILE"))


def _conditional_probabilities(precision, probability) -> bool:
    """Whether readers find what the probability of an edge given the matrix depends on."""
    names = [share.name for share in random_ancestors(probability)]
    drawn = ["edge_probability"] if _has_probability() else []
    return _is_known(precision) and names == drawn


def _has_probability() -> bool:
    return "edge_probability" in pm.modelcontext(None).named_vars


def _is_known(precision) -> bool:
    """Whether readers know a matrix by its name and dimensions, which it is given if it has none."""
    model = pm.modelcontext(None)
    give_dims(model, precision, _MATRIX)
    return (
        precision.name == "precision" and tuple(model.named_vars_to_dims[precision.name]) == _MATRIX
    )


def _matrix_parts(precision, p, add, constants) -> EdgeParts:
    model = pm.modelcontext(None)
    give_dims(model, precision, _MATRIX)
    source, target = np.triu_indices(p, 1)
    return EdgeParts(
        size=p,
        source=source,
        target=target,
        weight=partial_correlations(precision),
        add=add,
        constants=tuple(constants),
    )


@edge_parts.register(GraphicalLassoRV)
def _laplace_parts(op, precision, negligible) -> EdgeParts:
    rates, diagonal_rate = (_constant(v) for v in parameters(precision)[:2])
    off = rates[np.triu_indices(len(rates), 1)]

    def implied(cut):
        if np.ptp(off) > 0:
            return None
        return implied_nonnegligible_probability(
            len(rates), cut, off[0], diagonal_rate=float(diagonal_rate)
        )

    return _exceeding_parts(precision, len(rates), negligible, implied)


@edge_parts.register(GraphicalHorseshoeRV)
def _horseshoe_parts(op, precision, negligible) -> EdgeParts:
    scales, diagonal_rate = parameters(precision)
    columns, rate = int(_constant(precision.shape[0])), float(_constant(diagonal_rate))
    known, sources = constant_value(scales), random_ancestors(scales)

    def implied(cut):
        if known is None:
            width = float(_constant(parameters(sources[0])[0]))
            return implied_horseshoe_probability(columns, cut, width=width, diagonal_rate=rate)
        off = known[np.triu_indices(columns, 1)]
        if np.ptp(off) > 0:
            return None
        return implied_horseshoe_probability(
            columns, cut, global_scale=float(off[0]), diagonal_rate=rate
        )

    return _exceeding_parts(precision, columns, negligible, implied)


def _exceeding_parts(precision, p, negligible, implied) -> EdgeParts:
    """Edges that are partial correlations beyond a bound; `implied` returns their prior probability, None if pairs differ."""
    cut = 0.1 if negligible is None else float(negligible)
    check_negligible(cut)
    indicator = _exceeding(partial_correlations(precision), cut)
    probability = implied(cut)
    if probability is None:
        probability = prior_mean(indicator)

    def add(name, dims):
        return pm.Deterministic(name, indicator, dims=dims)

    return _matrix_parts(precision, p, add, [EdgePrior(probability)])


def independent_edge_prior(edge) -> np.ndarray:
    """Prior probability of each edge of a random graph with independent edges, (pairs,)."""
    size = parameters(edge)[0].type.shape[-1]
    found = beta_share(edge)
    if found is None:
        prior = prior_mean(upper(parameters(edge)[0]))
    else:
        share, pattern = found[0], found[1][np.triu_indices(size, 1)]
        prior = np.where((pattern > 0) & (pattern < 1), prior_mean(share), pattern)
    return np.array(np.broadcast_to(prior, size * (size - 1) // 2), float)


@edge_parts.register(GWishartRV)
def _g_wishart_parts(op, precision, negligible) -> EdgeParts:
    refuse_negligible(negligible)
    _, scale, edge = parameters(precision)
    size = scale.type.shape[-1]
    if random_ancestors(edge):
        prior = independent_edge_prior(edge)
    else:
        prior = edge_matrix(_constant(edge), size)[np.triu_indices(size, 1)].astype(float)

    def add(name, dims):
        return pm.Deterministic(name, edge, dims=dims)

    return _matrix_parts(precision, size, add, [EdgePrior(np.array(prior))])


def _exceeding(weight, negligible) -> "TensorVariable":
    """Return indicators of the partial correlations that are not negligible."""
    return pt.gt(pt.abs(weight), negligible).astype("int64")


@edge_parts.register(GraphicalGroupLassoRV)
def _group_parts(op, precision, negligible) -> EdgeParts:
    rates, places, group_rates, order, diagonal_rate = (
        _constant(v) for v in parameters(precision)[:5]
    )

    def implied(cut):
        return implied_group_probability(
            len(rates),
            [row[row >= 0] for row in places],
            cut,
            entry_rates=rates,
            group_rates=group_rates,
            norm="linf" if np.isinf(order) else "l2",
            diagonal_ratio=float(diagonal_rate),
        )

    return _exceeding_parts(precision, len(rates), negligible, implied)


@edge_parts.register(GraphicalFusedLassoRV)
def _fused_parts(op, precision, negligible) -> EdgeParts:
    rates, differences, diagonal_rate = (_constant(v) for v in parameters(precision)[:3])
    rate = rates[0, -1]

    def implied(cut):
        return implied_fused_probability(differences / rate, cut, rate, float(diagonal_rate))

    return _exceeding_parts(precision, len(rates), negligible, implied)
