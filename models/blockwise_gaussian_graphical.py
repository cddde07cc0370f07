"""Gaussian graphical model with blocks of columns: which blocks depend on each other, and which columns within one?

x = location + scale * z                    the table in its units, and standardised
z_i | mean, K ~ Normal(mean, K^-1)          one row of the table
K             ~ GraphicalGroupLasso         positive definite; elements between two blocks are small together
edge          = |weight| > negligible
weight        = partial correlations of K
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from bayesstruct.core.recorded import register
from bayesstruct.core.starts import BootstrapStart
from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.blocks import blocks_of_columns
from bayesstruct.precision.model_parts.edges import check_negligible, negligible_edges
from bayesstruct.precision.model_parts.rows import column_means, observe_rows, read_rows
from bayesstruct.precision.ops.graphical_lasso_mode import graphical_lasso_mode
from bayesstruct.precision.priors.group_lasso import (
    GraphicalGroupLasso,
    block_members,
    implied_group_probability,
)

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["blockwise_gaussian_graphical"]


def blockwise_gaussian_graphical(
    data: "TableLike",
    blocks: Any,
    *,
    rate: Any = 1.0,
    block_rate: float = 1.0,
    norm: str = "l2",
    diagonal_rate: float | None = None,
    negligible: float = 0.1,
    covariates: "TableLike" = None,
    standardize: bool = True,
    missing_codes: Any = None,
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn which columns depend on each other where the columns are of several known kinds.

    Each row is multivariate normal. Elements of the precision matrix between two blocks of columns, such as genes of two pathways
    or questions of two scales, are shrunk together, and those within a block one by one. Missing values are imputed inside the
    model.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table of numbers, one row for each observation; NaN marks a missing value.
    blocks : dict or sequence
        A dict from columns to blocks or from blocks to lists of columns, or the block of each column in order.
    rate : float or unregistered distribution, default 1
        Laplace rate of the off-diagonal elements within blocks, the penalty :math:`\lambda` of a summed log likelihood;
        ``pm.Gamma.dist(1, 0.1)`` makes it a random variable.
    block_rate : float, default 1
        Rate of the norm of the elements between two blocks in multiples of `rate`, for blocks of one column each; for larger
        ones it grows with the norm: by the square root of the number of elements ("l2"), or by that number ("linf").
    norm : {"l2", "linf"}
        Euclidean norm of the elements between two blocks, or their largest absolute value.
    diagonal_rate : float, optional
        Exponential rate of the diagonal elements; ``rate / 2`` unless given.
    negligible : float, default 0.1
        Absolute partial correlation up to which a pair counts as not connected.
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
        correlations), ``edge``, ``x`` (the table) and, where values are missing, ``x_missing``; ``block_strength`` (block,
        block_) is the root mean square of the partial correlations between two blocks, or within one.

    Raises
    ------
    TableError
        If the table or the blocks cannot be used; the message names the column and the remedy.
    TypeError, ValueError
        For an option out of range.

    Notes
    -----
    ``pm.sample`` draws every element of the matrix from its exact conditional distribution; with "l2" given a latent variance of
    each pair of blocks, drawn anew in each step. ``bs.find_MAP`` has the certified mode, in which all elements between two
    blocks are zero together. Draws are never exactly zero. Nuclear norms between blocks have a mode,
    :func:`bayesstruct.solvers.blockwise_graphical_lasso`, and no sampler.

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
    """
    check_negligible(negligible)
    if not block_rate > 0:
        raise ValueError(f"`block_rate` must be positive, it is {block_rate}")
    table, data, covariates = read_rows(
        data,
        covariates,
        standardize=standardize,
        missing_codes=missing_codes,
        row_counts=row_counts,
    )
    labels = blocks_of_columns(table.names, blocks)
    members = block_members(labels)
    sizes = np.array([len(places) for places in members])
    same = np.array(labels)[:, None] == np.array(labels)
    rates = {
        "entry_rates": same.astype(float),
        "group_rates": block_rate * (sizes if norm == "linf" else np.sqrt(sizes)),
        "norm": norm,
    }
    learned = hasattr(rate, "owner")
    first = 1.0 if learned else rate
    mode = partial(graphical_lasso_mode, rate=first, diagonal_rate=diagonal_rate, tol=1e-4)
    names = sorted(set(labels))
    with pm.Model(coords=table.coords | {"block": names, "block_": names}) as model:
        record_codes(missing_codes)
        mean = column_means(table, data, covariates)
        precision = GraphicalGroupLasso(
            "precision",
            table.p,
            members,
            register("rate", rate) if learned else rate,
            **rates,
            diagonal_rate=diagonal_rate,
            dims=("node", "node_"),
            start=BootstrapStart(table.standardized, mode),
        )
        ratio = 0.5 if diagonal_rate is None else diagonal_rate / first
        implied = implied_group_probability(
            table.p, members, negligible, **rates, diagonal_ratio=ratio
        )
        negligible_edges(table, precision, negligible, implied)
        strength = _strengths(table, labels, names, model["weight"])
        pm.Deterministic("block_strength", strength, dims=("block", "block_"))
        observe_rows(table, mean, precision)
    return model


def _strengths(table, labels, names, weight):
    """Root mean square of the partial correlations between two blocks; zero within a block of one column."""
    block = np.array([names.index(label) for label in labels])
    source, target = (block[list(ends)] for ends in table.edge_index)
    pairs = np.zeros((len(names), len(names), len(source)))
    at = np.arange(len(source))
    pairs[source, target, at] = pairs[target, source, at] = 1.0
    pairs /= np.maximum(pairs.sum(axis=2, keepdims=True), 1.0)
    return pm.math.sqrt((pairs * weight**2).sum(axis=2))
