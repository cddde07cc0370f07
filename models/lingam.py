"""LiNGAM with a posterior: linear structural equations whose directions are told by noise that is not normal.

dag   ~ directed acyclic graph
x_i   = intercept_i + sum_j weight_ji x_j + noise_scale_i e_i,  e_i ~ mixture (or exactly normal), Laplace or t
arc   = 1 where the graph has an arc A -> B
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayesstruct.data.arguments import choice
from bayesstruct.data.errors import column_list, count, warn
from bayesstruct.models.linear_sem import linear_sem

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm

    from numpy.typing import ArrayLike

__all__ = ["lingam"]


def lingam(
    data: "pd.DataFrame | ArrayLike",
    *,
    noise: Literal["mixture", "laplace", "student"] = "mixture",
    normal_probability: float | None = None,
    prior: Literal["spike_slab", "laplace", "horseshoe"] = "spike_slab",
    scale: float | None = None,
    graph_prior: Literal["uniform", "edge", "fair"] = "uniform",
    edge_probability: "float | pd.DataFrame | ArrayLike | None" = None,
    max_parents: int | None = None,
    required: Iterable[tuple[str, str]] = (),
    forbidden: Iterable[tuple[str, str]] = (),
    tiers: dict[str, float] | Iterable[Iterable[str]] | None = None,
    interventions: "pd.DataFrame | ArrayLike | None" = None,
    equivalent_sample_size: float = 1.0,
    missing_codes: Any = None,
    row_counts: Any = None,
) -> "pm.Model":
    r"""Learn which columns act on which from noise that is not normal, and how sure that is.

    .. math:: x_i = c_i + \sum_{j \to i} b_{ji} x_j + s_i e_i

    with independent noise e that is not normal, and variances of its own for each column: the model of
    :func:`bayesstruct.solvers.direct_lingam`, with the posterior of graphs, weights and noise in place of one order.
    It is :func:`bayesstruct.models.linear_sem` with these settings.

    Parameters
    ----------
    data : DataFrame or (n, d) array_like
        Columns of numbers, at least two. Missing values are imputed inside the model, as if they were missing at
        random.
    noise : {"mixture", "laplace", "student"}
        Distribution of e. The mixture of normals can be flat, skewed, heavy-tailed, or have two modes, and is learned for each
        column. Its density is smooth: :func:`bayesstruct.noise_check` may contradict it for exponential noise, whose density jumps,
        though the directions are right. Laplace and t noise are symmetric with heavy tails, need fewer rows and less time, and are
        sure of wrong directions where the noise has another shape.
    normal_probability : float, optional
        Probability that the noise of a column is exactly normal, with ``noise="mixture"``. By default it is learned from all columns (``normal_share``,
        uniform between 0 and 1 a priori). Directions between columns with
        normal noise stay open. With 0 all columns have mixtures, which are too sure of directions where noise is normal.
    prior, scale, graph_prior, edge_probability, max_parents
        As for :func:`bayesstruct.models.linear_sem`.
    required, forbidden, tiers, interventions, equivalent_sample_size, missing_codes, row_counts
        As for :func:`bayesstruct.models.linear_sem`.

    Returns
    -------
    pymc.Model
        As from :func:`bayesstruct.models.linear_sem`. :func:`bayesstruct.arc_table` has the probabilities of both
        directions of each pair, and :func:`bayesstruct.check` says how many directions are known, which columns probably have normal
        noise, and which have residuals of another shape than the noise (:func:`bayesstruct.noise_check`).

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    TypeError, ValueError
        For an unknown option, one out of range, or constraints that contradict each other.

    Warns
    -----
    TableWarning
        If the noise of two columns or more seems normal: the direction of an edge between such columns is not
        identified. The posterior has both; under Laplace or t noise it may be certain of a wrong one, and under a mixture with
        ``normal_probability=0`` it is too sure of one. If there are not more complete rows than
        columns, which cannot show the shape of the noise.

    Notes
    -----
    The assumptions are those of ``linear_sem``: linear effects, no unobserved common causes, no cycles. A relation
    that is not linear leaves residuals that are not normal either, so that directions may be told by
    the wrong reason.

    References
    ----------
    Shimizu, S., Hoyer, P. O., Hyvärinen, A. and Kerminen, A. (2006). A linear non-Gaussian acyclic model for causal
    discovery. *JMLR* 7, 2003-2030.

    Hoyer, P. O. and Hyttinen, A. (2009). Bayesian discovery of linear acyclic causal models. *UAI* 25, 240-248.

    Examples
    --------
    .. code-block:: python

        with bs.models.lingam(table):
            idata = pm.sample()
        bs.arc_table(idata)
        bs.check(idata)
    """
    choice("noise", noise, ("mixture", "laplace", "student"))
    model = linear_sem(
        data,
        noise=noise,
        normal_probability=normal_probability,
        prior=prior,
        scale=scale,
        graph_prior=graph_prior,
        edge_probability=edge_probability,
        max_parents=max_parents,
        required=required,
        forbidden=forbidden,
        tiers=tiers,
        interventions=interventions,
        equivalent_sample_size=equivalent_sample_size,
        missing_codes=missing_codes,
        row_counts=row_counts,
    )
    _warn_about_normal(model, noise)
    return model


def _warn_about_normal(model, noise):
    """Say which columns seem to have normal noise, by the residuals of DirectLiNGAM."""
    from bayesstruct.sem.solvers.direct_lingam import normal_columns

    dag = model["dag"].owner.op
    x = np.asarray(model.rvs_to_values[model["x"]].data)
    if "x_missing" in model:
        x = x[(np.asarray(model["cell_missing"].data) == 0).all(axis=1)]
    if len(x) <= len(dag.names):
        warn(
            f"{count(len(x), 'complete row')} of {count(len(dag.names), 'column')} cannot show the shape of the noise, which tells "
            "directions: take them for chance or prior, add rows until there are more than columns, or leave out columns"
        )
        return
    normal = normal_columns(dag.names, x, dag.prior)
    if len(normal) > 1:
        found = "the posterior has both"
        if noise == "mixture" and "normal_noise" not in model.named_vars:
            found += ", but normal_probability=0 makes it too sure of one of them"
        if noise != "mixture":
            found = f"noise={noise!r} may be sure of a wrong one, noise='mixture' is less so"
        warn(
            f"the noise of {column_list(normal)} cannot be told from normal noise: edges between these columns have no "
            f"identified direction, and {found}; tiers, required arcs or interventions would tell them"
        )
