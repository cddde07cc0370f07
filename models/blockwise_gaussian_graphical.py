"""Gaussian graphical model with blocks of columns: which blocks depend on each other, and which columns within one?

x = location + scale * z                    the table in its units, and standardised
z_i | mean, K ~ Normal(mean, K^-1)          one row of the table
K             ~ GraphicalGroupLasso         positive definite; elements between two blocks are small together
edge          = |weight| > negligible
weight        = partial correlations of K

With unknown blocks of columns:

block         ~ BlockLabels                 a partition of the columns
K | block     ~ BlockSpikeSlab              an edge has one probability within blocks, and another one between them
edge | K      ~ Bernoulli                   1 where K_jk came from the slab
"""

from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from bayesstruct.core.recorded import register
from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.arguments import number
from bayesstruct.data.blocks import blocks_of_columns
from bayesstruct.data.names import nearest
from bayesstruct.precision.model_parts.edges import (
    check_negligible,
    negligible_edges,
    record_edges,
)
from bayesstruct.precision.model_parts.matrices import start_of
from bayesstruct.precision.model_parts.rows import column_means
from bayesstruct.precision.model_parts.structured import observe_table, read_table, warn_of_slab
from bayesstruct.precision.ops.graphical_lasso_mode import graphical_lasso_mode
from bayesstruct.precision.ops.graphical_spike_slab import graphical_spike_slab_mode, log_odds
from bayesstruct.precision.priors.blocks import (
    BlockEdgeProbabilities,
    BlockLabels,
    BlockSpikeSlab,
    implied_block_probability,
)
from bayesstruct.precision.priors.edges import Edges, partial_correlations
from bayesstruct.precision.priors.group_lasso import (
    GraphicalGroupLasso,
    block_members,
    implied_group_probability,
)
from bayesstruct.precision.priors.nuclear import (
    GraphicalNuclearLasso,
    implied_nuclear_probability,
)

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["blockwise_gaussian_graphical"]

_MATRIX = ("node", "node_")


def blockwise_gaussian_graphical(
    data: "TableLike" = None,
    blocks: Any = None,
    *,
    cov: "TableLike" = None,
    n: int | None = None,
    rate: Any = 1.0,
    block_rate: float = 1.0,
    norm: str = "l2",
    negligible: float = 0.1,
    max_blocks: int = 5,
    within: tuple[float, float] = (2.0, 2.0),
    between: tuple[float, float] = (1.0, 9.0),
    concentration: float = 1.0,
    spike_scale: float = 0.02,
    slab_scale: float = 1.0,
    diagonal_rate: float | None = None,
    covariates: "TableLike" = None,
    standardize: bool = True,
    missing_codes: Any = None,
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn which columns depend on each other where the columns are of several kinds, known or not.

    Each row is multivariate normal. Elements of the precision matrix between two known blocks of columns, such as genes of two
    pathways or questions of two scales, are shrunk together, and those within a block one by one. Without `blocks` these are
    learned: columns of one block are more often joined by an edge (a stochastic block model of the graph). Missing
    values are imputed inside the model.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table of numbers, one row for each observation; NaN marks a missing value.
    blocks : dict or sequence, optional
        A dict from columns to blocks or from blocks to lists of columns, or the block of each column in order. Unknown unless
        given.
    cov : DataFrame or (p, p) array_like, optional
        Instead of a table, its sample covariances (divisor n - 1, as of ``DataFrame.cov``) or correlations, as in
        :func:`gaussian_graphical`.
    n : int, optional
        Number of rows that `cov` was computed from.
    rate : float or unregistered distribution, default 1
        Known blocks: Laplace rate of the off-diagonal elements within blocks, the penalty :math:`\lambda` of a summed log likelihood;
        ``pm.Gamma.dist(1, 0.1)`` makes it a random variable.
    block_rate : float, default 1
        Known blocks: rate of the norm of the elements between two blocks in multiples of `rate`, for blocks of one column each; for larger
        ones it grows with the norm: by the square root of the number of elements ("l2"), by that number ("linf"), or by the square
        root of the longer side ("nuclear").
    norm : {"l2", "linf", "nuclear"}
        Known blocks: Euclidean norm of the elements between two blocks, their largest absolute value, or the sum of their singular
        values, which prefers few factors that connect the two. The latter suits blocks of up to about ten columns: a sweep
        takes 9 ms for 4 blocks of 5 columns, and .25 s for 4 of 10.
    negligible : float, default 0.1
        Known blocks: absolute partial correlation up to which a pair counts as not connected.
    max_blocks : int, default 5
        Unknown blocks: their maximum number.
    within, between : tuple of float, default (2, 2) and (1, 9)
        Unknown blocks: shapes of the nominal beta distributions of the probability of an edge within a block, and between two.
    concentration : float, default 1
        Unknown blocks: of the symmetric Dirichlet distribution of the shares of the blocks, all together; small for few blocks.
    spike_scale, slab_scale : float
        Unknown blocks: standard deviations of an off-diagonal precision element without and with an edge.
    diagonal_rate : float, optional
        Exponential rate of the diagonal elements; ``rate / 2`` for known and 0.5 for unknown blocks unless given.
    covariates : DataFrame or array_like, optional
        (n, q) table without missing values, of columns that are not in `data`; the mean of a row is
        then a linear function of it.
    standardize : bool, default True
        Put the prior on the scale of standardised columns, as in :func:`gaussian_graphical`.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999; a dict has those of each column.
    row_counts : (n,) array_like of int or str, optional
        How often each row was observed, or the name of the column that says so.

    Returns
    -------
    pymc.Model
        With ``precision`` and ``mean`` of the *standardised* columns, ``coefficients`` (covariate, node), ``weight`` (partial
        correlations), ``edge``, ``x`` (the table) and, where values are missing, ``x_missing``; with `cov` there is ``covariance``
        instead of ``x``. With known blocks ``block_strength`` (block, block_) is the root mean square of the partial correlations between two blocks, or within one. Unknown ones are
        ``block`` (node), numbered in the order of their first columns, and ``block_edge_probability`` has the two
        probabilities of an edge; ``bs.co_clustering(idata, var_name="block")`` has the probability of each pair of columns to
        be in one block.

    Raises
    ------
    TableError
        If the table or the blocks cannot be used; the message names the column and the remedy.
    TypeError, ValueError
        For an option out of range, or one that goes with known or unknown blocks only.

    Notes
    -----
    ``pm.sample`` draws every element of the matrix from its exact conditional distribution; with "l2" given a latent variance of
    each pair of blocks, drawn anew in each step; and unknown blocks with the indicators of edges summed out. ``bs.find_MAP`` has the
    certified mode under known blocks, in which all elements between two blocks are zero together or ("nuclear") have a low rank,
    and a local mode under unknown ones. Draws are never exactly zero, and have full ranks.

    References
    ----------
    Schmidt, M. (2010). *Graphical model structure learning with l1-regularization*. PhD thesis, University of British
    Columbia, section 5.6.

    Wang, H. (2012). Bayesian graphical lasso models and efficient posterior computation. *Bayesian
    Analysis* 7(4), 867-886.

    Examples
    --------
    .. code-block:: python

        blocks = {"mood": ["sad", "tired"], "sleep": ["early", "late", "short"]}
        with bs.models.blockwise_gaussian_graphical(answers, blocks):
            idata = pm.sample()
        bs.edge_table(idata)

    .. code-block:: python

        with bs.models.blockwise_gaussian_graphical(answers):
            idata = pm.sample()
        bs.co_clustering(idata, var_name="block")
    """
    options = {
        "rate": rate,
        "block_rate": block_rate,
        "norm": norm,
        "negligible": negligible,
        "max_blocks": max_blocks,
        "within": within,
        "between": between,
        "concentration": concentration,
        "spike_scale": spike_scale,
        "slab_scale": slab_scale,
    }
    _refuse_other_options(blocks is None, options)
    check_negligible(negligible)
    table, data, covariates = read_table(
        data,
        covariates,
        cov,
        n,
        standardize=standardize,
        missing_codes=missing_codes,
        row_counts=row_counts,
    )
    with pm.Model(coords=table.coords) as model:
        record_codes(missing_codes)
        mean = column_means(table, data, covariates)
        if blocks is None:
            own = {name: options[name] for name in _UNKNOWN}
            precision = _unknown(table, **own, diagonal_rate=diagonal_rate)
            warn_of_slab(table, slab_scale)
        else:
            own = {name: options[name] for name in _KNOWN}
            precision = _known(table, blocks, **own, diagonal_rate=diagonal_rate)
        observe_table(table, mean, precision)
    return model


_NORMS = ("l2", "linf", "nuclear")
_KNOWN = ("rate", "block_rate", "norm", "negligible")
_UNKNOWN = ("max_blocks", "within", "between", "concentration", "spike_scale", "slab_scale")


def _refuse_other_options(unknown, options):
    """Raise if an option that does not apply has another value than its default."""
    defaults = signature(blockwise_gaussian_graphical).parameters
    for name in _KNOWN if unknown else _UNKNOWN:
        value, default = options[name], defaults[name].default
        if value is not default and (hasattr(value, "owner") or value != default):
            raise ValueError(
                f"`{name}` goes with {'known' if unknown else 'unknown'} blocks"
                + (", give them as `blocks`" if unknown else ", without `blocks`")
            )


def _known(table, blocks, rate, block_rate, norm, negligible, diagonal_rate):
    """Precision matrix with a norm of the elements between two known blocks."""
    number("block_rate", block_rate, above=0)
    labels = blocks_of_columns(table.names, blocks)
    if norm not in _NORMS:
        raise ValueError(nearest("norm", norm, _NORMS))
    learned = hasattr(rate, "owner")
    first = 1.0 if learned else rate
    mode = partial(graphical_lasso_mode, rate=first, diagonal_rate=diagonal_rate, tol=1e-4)
    names, model = sorted(set(labels)), pm.modelcontext(None)
    model.add_coords({"block": names, "block_": names})
    options = {"dims": _MATRIX, "start": start_of(table, mode)}
    options |= {"rate": register("rate", rate) if learned else rate, "diagonal_rate": diagonal_rate}
    ratio = 0.5 if diagonal_rate is None else diagonal_rate / first
    prior = _nuclear_prior if norm == "nuclear" else _norm_prior
    precision, implied = prior(labels, block_rate, norm, negligible, ratio, options)
    negligible_edges(table, precision, negligible, implied)
    strength = _strengths(table, labels, names, model["weight"])
    pm.Deterministic("block_strength", strength, dims=("block", "block_"))
    return precision


def _norm_prior(labels, block_rate, norm, negligible, ratio, options):
    """Precision matrix with Euclidean norms or largest absolute values, and prior probabilities of edges."""
    p, members = len(labels), block_members(labels)
    sizes = np.array([len(places) for places in members])
    rates = {
        "entry_rates": (np.array(labels)[:, None] == np.array(labels)).astype(float),
        "group_rates": block_rate * (sizes if norm == "linf" else np.sqrt(sizes)),
        "norm": norm,
    }
    implied = implied_group_probability(p, members, negligible, **rates, diagonal_ratio=ratio)
    return GraphicalGroupLasso("precision", p, members, **rates, **options), implied


def _nuclear_prior(labels, block_rate, norm, negligible, ratio, options):
    """Precision matrix with nuclear norms, and prior probabilities of edges."""
    sizes = np.unique(labels, return_counts=True)[1]
    rates = block_rate * np.sqrt(np.maximum.outer(sizes, sizes))
    implied = implied_nuclear_probability(
        labels, negligible, block_rates=rates, diagonal_ratio=ratio
    )
    return GraphicalNuclearLasso("precision", labels, block_rates=rates, **options), implied


def _unknown(table, max_blocks, within, between, concentration, diagonal_rate, **scales):
    """Blocks, precision matrix and indicators of edges under the spike-and-slab prior."""
    scales["diagonal_rate"] = 0.5 if diagonal_rate is None else diagonal_rate
    for name, pair in (("within", within), ("between", between)):
        if np.shape(pair) != (2,):
            raise ValueError(
                f"`{name}` must be the two shapes of a beta distribution such as (2, 2), not {pair!r}"
            )
        for shape in pair:
            number(name, shape, above=0)
    prior = {"max_blocks": max_blocks, "concentration": concentration, **scales}
    probabilities = BlockEdgeProbabilities(
        "block_edge_probability", table.p, within, between, **prior
    )
    block = BlockLabels("block", probabilities, dims="node")
    nominal = np.full((table.p, table.p), within[0] / sum(within))
    rough = {"tol": 1e-2, "max_iter": 5}  # a start need not be an exact mode
    mode = partial(graphical_spike_slab_mode, log_odds=log_odds(nominal), **scales, **rough)
    start = start_of(table, mode)
    precision = BlockSpikeSlab("precision", block, dims=_MATRIX, start=start)
    Edges("edge", precision, dims="pair")
    pm.Deterministic("weight", partial_correlations(precision), dims="pair")
    source, target = table.edge_index
    same = pm.math.eq(block[source], block[target])
    chance = pm.math.switch(same, probabilities[0], probabilities[1])
    pm.Deterministic("edge_probability", chance, dims="pair")
    record_edges(
        table, implied_block_probability(table.p, within, between, **prior), nominal, scales
    )
    return precision


def _strengths(table, labels, names, weight):
    """Root mean square of the partial correlations between two blocks; zero within a block of one column."""
    block = np.array([names.index(label) for label in labels])
    source, target = (block[list(ends)] for ends in table.edge_index)
    pairs = np.zeros((len(names), len(names), len(source)))
    at = np.arange(len(source))
    pairs[source, target, at] = pairs[target, source, at] = 1.0
    pairs /= np.maximum(pairs.sum(axis=2, keepdims=True), 1.0)
    return pm.math.sqrt((pairs * weight**2).sum(axis=2))
