"""Gaussian graphical model: which variables depend on each other given all others?

x = location + scale * z          the table in its units, and standardised
z_i | mean, K ~ Normal(mean, K^-1)                      one row of the table
K             ~ GraphicalSpikeSlab or GraphicalLasso    positive definite, most off-diagonals small
edge | K      ~ Bernoulli                               1 where K_jk came from the slab
or edge       ~ Bernoulli, K | edge ~ G-Wishart         exactly zero without an edge
weight        = partial correlations of K
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.core.recorded import register
from bayesstruct.core.starts import BootstrapStart, SampleCovarianceStart
from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.core.tensors import is_beta
from bayesstruct.data.covariance import (
    CovarianceTable,
    given_rows_or_covariance,
    refuse_options_of_rows,
)
from bayesstruct.data.edge_priors import StochasticBlock, edge_probability_matrix, fixed_edges
from bayesstruct.data.labels import check_same_rows
from bayesstruct.data.names import nearest
from bayesstruct.data.options import refuse_other_options
from bayesstruct.data.recoding import repeated_rows, tables_without_codes
from bayesstruct.data.table import Table
from bayesstruct.graphs.priors.blocks import block_edge_probability
from bayesstruct.precision.model_parts import (
    independent_edge_prior,
    observe_covariance,
    observe_rows,
    record_edges,
    regression,
    warn_size,
)
from bayesstruct.precision.ops.graphical_lasso_mode import graphical_lasso_mode
from bayesstruct.precision.ops.graphical_spike_slab import graphical_spike_slab_mode, log_odds
from bayesstruct.precision.priors.edges import Edges, partial_correlations
from bayesstruct.precision.priors.g_wishart import GWishart, IndependentEdges
from bayesstruct.precision.priors.implied import (
    implied_edge_probability,
    implied_nonnegligible_probability,
)
from bayesstruct.precision.priors.precision import GraphicalLasso, GraphicalSpikeSlab
from bayesstruct.precision.priors.rows import ColumnMeans

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["gaussian_graphical"]

_MATRIX = ("node", "node_")
_ROUGH = {"tol": 1e-2, "max_iter": 5}  # a start need not be an exact mode


def gaussian_graphical(
    data: "TableLike" = None,
    *,
    cov: "TableLike" = None,
    n: int | None = None,
    prior: str = "spike_slab",
    edge_probability: Any = 0.5,
    required: Iterable[tuple[str, str]] = (),
    forbidden: Iterable[tuple[str, str]] = (),
    spike_scale: float = 0.02,
    slab_scale: float = 1.0,
    rate: Any = 1.0,
    diagonal_rate: float | None = None,
    degrees_of_freedom: float = 3.0,
    negligible: float = 0.1,
    covariates: "TableLike" = None,
    standardize: bool = True,
    missing_codes: Any = None,
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn which columns of a table depend on each other once all the others are known.

    Each row is multivariate normal; two columns are joined by an edge when their partial
    correlation given all the others is not negligible. Missing values are imputed inside the model.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table of numbers, one row for each observation; NaN marks a missing value.
    cov : DataFrame or (p, p) array_like, optional
        Instead of a table, its sample covariances (divisor n - 1, as of ``DataFrame.cov``) or correlations,
        for instance published ones. The posterior is that of any rows that have them; values count from the
        means of the columns, which are not known.
    n : int, optional
        Number of rows that `cov` was computed from.
    prior : {"spike_slab", "laplace", "g_wishart"}
        ``"spike_slab"`` (Wang 2015) gives each edge a probability; ``"laplace"`` (Wang 2012) only
        shrinks, and an edge is then a partial correlation beyond ``negligible``. ``"g_wishart"`` gives each edge a
        probability and the matrix exact zeros: given the graph it is G-Wishart, and the graph is drawn without approximate
        constants (van den Boom, Beskos and De Iorio 2022).
    edge_probability : float, (p, p) array_like, ``pm.Beta.dist`` or :class:`bayesstruct.StochasticBlock`, default 0.5
        Nominal prior probability of an edge (spike and slab); a matrix gives one to each pair, 0
        forbids and 1 requires an edge; a beta distribution is learned from the table
        (under the spike and slab positive definite matrices favour few edges, so that the implied distribution of the
        edge probability lies below the beta that is given; Bayes factors take account of it. Under the
        G-Wishart prior it is the one that is given). ``bs.StochasticBlock()`` learns blocks of columns whose edges are equally
        probable, ``block`` (``prior="g_wishart"`` only).
    required, forbidden : iterable of pairs of column names
        Edges known to be present or absent: pure slab or pure spike, or an element that is free or zero.
    spike_scale, slab_scale : float
        Standard deviations of an off-diagonal precision element without and with an edge, on the
        standardised scale. The defaults find the graph over p = 10 to 100 and n = p to 10 p
        (``benchmarks/spike_slab_sensitivity.py``).
    rate : float or unregistered distribution, default 1
        Laplace rate of the off-diagonal elements (``prior="laplace"``), the penalty
        :math:`\lambda` of a summed log-likelihood; ``pm.Gamma.dist(1, 0.1)`` makes it a random variable.
    diagonal_rate : float, optional
        Exponential rate of the diagonal elements; 0.5 for the spike and slab, ``rate / 2`` for the
        Laplace prior unless given.
    degrees_of_freedom : float, default 3
        b of the G-Wishart(b, I) distribution of the matrix given the graph (``prior="g_wishart"``), more than 2. Partial
        correlations are smaller with a larger b.
    negligible : float, default 0.1
        Absolute partial correlation up to which ``prior="laplace"`` counts a pair as not connected.
    covariates : DataFrame or array_like, optional
        (n, q) table without missing values, of columns that are not in `data`; the mean of a row is
        then a linear function of it.
    standardize : bool, default True
        Put the priors on the scale of standardised columns: less their means, over their standard deviations, with
        divisor n - 1, of the observed values. The means of these then have independent Normal(0, 1) priors, ``mean``.
        Draws of the table stay in its units.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.
    row_counts : (n,) array_like of int or str, optional
        How often each row was observed, or the name of the column that says so: a table of frequencies. The
        result is that of the table with repeated rows.

    Returns
    -------
    pymc.Model
        With ``precision`` and ``mean`` of the *standardised* columns, ``coefficients`` (covariate, node) of
        standardised covariates, ``weight`` (partial correlations), ``edge``, ``x`` (the table) and, where values are
        missing, ``x_missing``, both in the units of the table. :func:`bayesstruct.covariance`,
        :func:`bayesstruct.precision_matrix` and :func:`bayesstruct.coefficients` are in these units too.
        With `cov` there is ``covariance`` instead of ``x``: predictive draws are covariance matrices, and the log
        likelihood is that of all rows together.

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    TypeError, ValueError
        For an unknown prior, an option out of range, or one that belongs to the other prior or to rows.

    References
    ----------
    van den Boom, W., Beskos, A. and De Iorio, M. (2022). The G-Wishart weighted proposal algorithm: efficient posterior
    computation for Gaussian graphical models. *Journal of Computational and Graphical Statistics* 31, 1215-1224.

    Wang, H. (2012). Bayesian graphical lasso models and efficient posterior computation. *Bayesian
    Analysis* 7(4), 867-886.

    Wang, H. (2015). Scaling it up: stochastic search structure learning in graphical models.
    *Bayesian Analysis* 10(2), 351-377.

    Examples
    --------
    .. code-block:: python

        with bs.models.gaussian_graphical(np.log(bs.load_dataset("sachs"))):
            idata = pm.sample()
        bs.edge_table(idata)

    From a correlation matrix of 88 students, without their marks:

    .. code-block:: python

        with bs.models.gaussian_graphical(cov=correlations, n=88):
            idata = pm.sample()
    """
    if prior not in _PRIORS:
        raise ValueError(nearest("prior", prior, _PRIORS))
    options = {
        "edge_probability": edge_probability,
        "required": required,
        "forbidden": forbidden,
        "spike_scale": spike_scale,
        "slab_scale": slab_scale,
        "rate": rate,
        "diagonal_rate": diagonal_rate,
        "degrees_of_freedom": degrees_of_freedom,
        "negligible": negligible,
    }
    refuse_other_options(gaussian_graphical, prior, _OPTIONS, options)
    if not 0 < negligible < 1:
        raise ValueError(f"`negligible` must be between 0 and 1, it is {negligible}")
    rows = given_rows_or_covariance(data, cov, n)
    if rows:
        data, covariates = repeated_rows(row_counts, data, covariates)
        data, covariates = tables_without_codes(missing_codes, data, covariates)
        table: Any = Table.continuous(data, standardize=standardize, counted=row_counts is not None)
    else:
        of_rows = {
            "covariates": covariates,
            "missing_codes": missing_codes,
            "row_counts": row_counts,
        }
        refuse_options_of_rows(**of_rows, standardize=None if standardize else False)
        table = CovarianceTable.read(cov, n)
    warn_size(table)
    with pm.Model(coords=table.coords) as model:
        record_codes(missing_codes)
        mean: Any = ColumnMeans("mean", 0.0, 1.0, dims="node")
        if covariates is not None:
            check_same_rows(data, covariates)
            mean = regression(table, covariates, mean)
        precision = _PRIORS[prior](table, **{name: options[name] for name in _OPTIONS[prior]})
        observe = observe_rows if rows else observe_covariance
        observe(table, mean, precision)
    return model


def _spike_slab(table, edge_probability, required, forbidden, **scales):
    """Precision matrix and indicators under the spike-and-slab prior."""
    if scales["diagonal_rate"] is None:
        scales["diagonal_rate"] = 0.5
    beta = _beta_shapes(edge_probability)
    if beta is None:
        nominal = edge_probability_matrix(table.names, edge_probability, required, forbidden)
        arguments = {"edge_probability": nominal}
    else:
        nominal = fixed_edges(table.names, required, forbidden).fill(0.5)
        arguments = {"edge_probability": edge_probability, "fixed": nominal}
    mode = partial(graphical_spike_slab_mode, log_odds=log_odds(nominal), **scales, **_ROUGH)
    precision = GraphicalSpikeSlab(
        "precision", table.p, **arguments, **scales, dims=_MATRIX, start=_start(table, mode)
    )
    Edges("edge", precision, dims="pair")
    pm.Deterministic("weight", partial_correlations(precision), dims="pair")
    implied = implied_edge_probability(table.p, nominal, beta=beta, **scales)
    record_edges(table, implied, nominal, scales)
    return precision


def _laplace(table, rate, diagonal_rate, negligible):
    """Precision matrix under the graphical-lasso prior; an edge is a partial correlation."""
    learned = hasattr(rate, "owner")
    first = 1.0 if learned else rate
    mode = partial(graphical_lasso_mode, rate=first, diagonal_rate=diagonal_rate, tol=1e-4)
    start = _start(table, mode)
    rate = register("rate", rate) if learned else rate
    precision = GraphicalLasso(
        "precision", table.p, rate, diagonal_rate=diagonal_rate, dims=_MATRIX, start=start
    )
    weight = pm.Deterministic("weight", partial_correlations(precision), dims="pair")
    present = pt.gt(pt.abs(weight), negligible).astype("int64")
    pm.Deterministic("edge", present, dims="pair")
    implied = implied_nonnegligible_probability(
        table.p, negligible, first, diagonal_rate=diagonal_rate
    )
    record_edges(table, implied)
    return precision


def _g_wishart(table, edge_probability, required, forbidden, degrees_of_freedom):
    """Graph with independent edges, and a precision matrix with its zeros."""
    fixed = fixed_edges(table.names, required, forbidden)
    if isinstance(edge_probability, StochasticBlock):
        ends = np.arange(table.p)
        blocks = block_edge_probability(edge_probability, ends[:, None], ends[None, :])
        probability = pt.switch(fixed.free, blocks, fixed.fill(0.5))
        edge = IndependentEdges("edge", table.p, probability, dims="pair")
        implied = fixed.fill(edge_probability.mean)[table.edge_index]
    elif _beta_shapes(edge_probability) is None:
        nominal = edge_probability_matrix(table.names, edge_probability, required, forbidden)
        edge = IndependentEdges("edge", table.p, nominal, dims="pair")
        implied = nominal[table.edge_index]
    else:
        pattern = fixed.fill(0.5)
        edge = IndependentEdges("edge", table.p, edge_probability, fixed=pattern, dims="pair")
        implied = independent_edge_prior(edge)
    precision = GWishart("precision", edge, degrees_of_freedom, dims=_MATRIX)
    pm.Deterministic("weight", partial_correlations(precision), dims="pair")
    record_edges(table, implied)
    return precision


def _start(table, mode):
    """Start of each chain: the mode of another table than the one that was observed."""
    if isinstance(table, Table):
        return BootstrapStart(table.standardized, mode)
    return SampleCovarianceStart(table.scatter, table.n, mode)


_PRIORS: dict[str, Callable[..., Any]] = {
    "spike_slab": _spike_slab,
    "laplace": _laplace,
    "g_wishart": _g_wishart,
}
_EDGE_OPTIONS = ("edge_probability", "required", "forbidden")
_OPTIONS: dict[str, tuple[str, ...]] = {
    "spike_slab": (*_EDGE_OPTIONS, "spike_scale", "slab_scale", "diagonal_rate"),
    "laplace": ("rate", "diagonal_rate", "negligible"),
    "g_wishart": (*_EDGE_OPTIONS, "degrees_of_freedom"),
}


def _beta_shapes(probability):
    """Shapes of an unregistered beta distribution, or None for numbers."""
    if not hasattr(probability, "owner"):
        return None
    if not is_beta(probability):
        kind = getattr(getattr(probability.owner, "op", None), "name", None) or "tensor"
        raise ValueError(
            "`edge_probability` can be a number, a matrix of numbers or a beta distribution such as "
            f"pm.Beta.dist(1, 1), not a {kind}; in a model of your own it is any expression: "
            'bs.GraphicalSpikeSlab(..., condition="joint")'
        )
    shapes = probability.owner.op.dist_params(probability.owner)
    return tuple(float(np.asarray(s.eval()).item()) for s in shapes)
