"""Gaussian graphical model: which variables depend on each other given all others?

x = location + scale * z          the table in its units, and standardised
z_i | mean, K ~ Normal(mean, K^-1)                      one row of the table
K             ~ GraphicalSpikeSlab, GraphicalLasso or GraphicalHorseshoe
                                                        positive definite, most off-diagonals small
edge | K      ~ Bernoulli                               1 where K_jk came from the slab
or edge       ~ Bernoulli, K | edge ~ G-Wishart         exactly zero without an edge

Other marginals: rows or values have a t distribution, or z is latent and x gives the order of its columns alone.
weight        = partial correlations of K

or, for many columns, the graph alone: edge ~ RandomGraph, correlations of x | edge ~ NeighbourRegressions
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.covariance import (
    CovarianceTable,
    given_rows_or_covariance,
    refuse_options_of_rows,
)
from bayesstruct.data.names import nearest
from bayesstruct.data.options import refuse_other_options
from bayesstruct.data.ranks import AS_ORDERED, RankTable
from bayesstruct.data.recoding import repeated_rows, tables_without_codes
from bayesstruct.data.table import Table
from bayesstruct.precision.model_parts.edges import check_negligible
from bayesstruct.precision.model_parts.graphs import graph_alone, refuse_for_graphs
from bayesstruct.precision.model_parts.matrices import MATRICES, OPTIONS, warn_of_slab
from bayesstruct.precision.model_parts.rows import (
    column_means,
    observe_alternative_student,
    observe_covariance,
    observe_order,
    observe_rows,
    observe_student,
    warn_latent,
    warn_size,
)
from bayesstruct.precision.model_parts.units import check_standardize, table_in_units

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["gaussian_graphical"]

_MARGINALS = ("gaussian", "student", "alternative_student", "rank", "mixed")
_STUDENT = ("student", "alternative_student")


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
    global_scale: Any = None,
    diagonal_rate: float | None = None,
    degrees_of_freedom: float = 3.0,
    negligible: float = 0.1,
    covariates: "TableLike" = None,
    standardize: bool | str | None = None,
    missing_codes: Any = None,
    row_counts: Any = None,
    marginals: str = "gaussian",
    degrees: Any = None,
) -> pm.Model:
    r"""Learn which columns of a table depend on each other once all the others are known.

    Each row is multivariate normal, unless `marginals` say otherwise; two columns are joined by an edge when their partial
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
    prior : {"spike_slab", "laplace", "horseshoe", "g_wishart", "pseudo_likelihood"}
        ``"spike_slab"`` (Wang 2015) gives each edge a probability; ``"g_wishart"`` gives each edge a
        probability and the matrix exact zeros: given the graph it is G-Wishart, and the graph is drawn without approximate
        constants (van den Boom, Beskos and De Iorio 2022). ``"laplace"`` (Wang 2012) and ``"horseshoe"``
        (Li, Craig and Bhadra 2019) only shrink, and an edge is then a partial correlation beyond ``negligible``. The
        horseshoe shrinks small elements more and large ones less, and learns how much; it has no mode.
        ``"pseudo_likelihood"`` is for hundreds or thousands of columns: the graph alone is drawn, all parameters being integrated
        out (see Notes).
    edge_probability : float, (p, p) array_like, ``pm.Beta.dist`` or :class:`bayesstruct.StochasticBlock`, default 0.5
        Prior probability of an edge under ``"spike_slab"`` (nominal), ``"g_wishart"`` and ``"pseudo_likelihood"``. A matrix gives one to
        each pair, 0 forbids and 1 requires an edge; a beta distribution is learned from the table.
        Under the spike and slab positive definite matrices favour few edges, so that the implied distribution of the
        edge probability lies below the beta that is given; Bayes factors take account of it. Under the other two
        it is the one that is given. ``bs.StochasticBlock()`` learns blocks of columns whose edges are equally
        probable, ``block`` (``"g_wishart"`` only).
    required, forbidden : iterable of pairs of column names
        Edges known to be present or absent, under the same priors: pure slab or pure spike, or an element that is free or zero.
    spike_scale, slab_scale : float
        Standard deviations of an off-diagonal precision element without and with an edge, on the
        standardised scale. The defaults find the graph over p = 10 to 100 and n = p to 10 p
        (``benchmarks/spike_slab_sensitivity.py``).
    rate : float or unregistered distribution, default 1
        Laplace rate of the off-diagonal elements (``prior="laplace"``), the penalty
        :math:`\lambda` of a summed log-likelihood; ``pm.Gamma.dist(1, 0.1)`` makes it a random variable.
    global_scale : float or ``pm.HalfCauchy.dist``, optional
        Scale of the off-diagonal elements under ``prior="horseshoe"``, ``pm.HalfCauchy.dist(1)`` unless given: a variable
        of the model. Positive definite matrices favour small scales, see :class:`bayesstruct.GraphicalHorseshoe`.
    diagonal_rate : float, optional
        Exponential rate of the diagonal elements; 0.5 for the spike and slab and the horseshoe, ``rate / 2`` for the
        Laplace prior unless given.
    degrees_of_freedom : float, default 3
        b of the G-Wishart(b, I) distribution of the matrix given the graph (``prior="g_wishart"``), more than 2. Partial
        correlations are smaller with a larger b.
    negligible : float, default 0.1
        Absolute partial correlation up to which the Laplace prior and the horseshoe count a pair as not connected.
    covariates : DataFrame or array_like, optional
        (n, q) table without missing values, of columns that are not in `data`; the mean of a row is
        then a linear function of it.
    standardize : bool or "conditional", optional
        True: put the priors on the scale of standardised columns: less their means, over their standard deviations, with
        divisor n - 1, of the observed values; with t marginals less their medians, over 1.4826 times their median absolute
        deviations, which a few outliers do not change. The means of these then have independent Normal(0, 1) priors, ``mean``.
        Draws of the table stay in its units. ``"conditional"``: over their standard deviations given all other columns, so that
        elements of the precision matrix are near partial correlations however strongly columns depend on each other (see Notes). True unless
        given; but ``"conditional"`` under the spike and slab with its default scales where an element of the precision
        matrix would be far beyond the slab, with a remark.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.
    row_counts : (n,) array_like of int or str, optional
        How often each row was observed, or the name of the column that says so: a table of frequencies. The
        result is that of the table with repeated rows.
    marginals : {"gaussian", "student", "alternative_student", "rank", "mixed"}
        Distribution of the columns. ``"student"``: rows have a multivariate t distribution, so that a few rows far
        from the others count less. ``"alternative_student"`` (Finegold and Drton 2011): each value has a weight of its own, so that
        a few wrong values do not cost their rows. ``"rank"``: only the order of the values of each column is used (Hoff 2007), for numbers of
        any distribution, counts, ordered categories and booleans in one table. ``"mixed"``: columns of numbers are
        normal, and those of ordered categories, booleans and two different values count by their order; text and categories
        without an order become a column for each state but the first one, see Notes.
    degrees : float or unregistered distribution, optional
        Degrees of freedom of ``marginals="student"`` and ``"alternative_student"``; a Gamma(2, 0.1) variable ``degrees`` unless given.

    Returns
    -------
    pymc.Model
        With ``precision`` and ``mean`` of the *standardised* columns (`standardize`), ``coefficients`` (covariate, node) of
        standardised covariates, ``weight`` (partial correlations), ``edge``, ``x`` (the table) and, where values are
        missing, ``x_missing``, both in the units of the table. :func:`bayesstruct.covariance`,
        :func:`bayesstruct.precision_matrix` and :func:`bayesstruct.coefficients` are in these units too.
        With ``marginals="student"`` also ``degrees``; ``precision`` is then the inverse of the scale matrix. With
        ``"alternative_student"`` also ``value_weight`` (observation, node), near 0 for a value far from what the rest of its row says.
        With ``"rank"`` and ``"mixed"``, ``latent`` are the normal values behind the columns, and missing ones, and
        ``precision`` is theirs. With `cov` there is ``covariance`` instead of ``x``: predictive draws are covariance matrices, and the log
        likelihood is that of all rows together. With ``prior="pseudo_likelihood"`` there is only ``edge`` (and
        ``edge_probability`` if it is learned), given the observed ``correlation``, and with missing values also ``x_missing``, ``imputation``
        and ``edge_imputed``.

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    TypeError, ValueError
        For an unknown prior, an option out of range, or one that belongs to the other prior or to rows.

    Notes
    -----
    On standardised columns that depend on each other strongly, elements of the precision matrix are large: 10 for neighbours
    in a series with autocorrelation .95. A slab of standard deviation 1 then shrinks them, and pairs around them make up for it: pairs
    without an edge get one. ``standardize="conditional"`` takes the unit of each column from the table, once, before the posterior is
    computed, as standardisation does: the root of its element of the precision matrix that is expected under a Wishart(3, I) prior. Priors of
    the means and coefficients stay what they are on standardised columns. It needs twice as many complete
    rows as columns (``benchmarks/strong_dependence.py``).

    With ``marginals="rank"`` and ``"mixed"`` the order of a column says nothing about the unit and the location of its latent
    values. The prior of the partial correlations, and so of the edges, is the same as under ``"gaussian"``; ``precision`` is known up to
    a factor for each such column and its row, whose distribution is that of the prior, and ``mean`` of such a column (``"mixed"``) has its
    prior distribution. Draws of ``x`` are new rows: the quantile of the observed values of a column that a latent value has in its
    distribution. Positions 0, 1, ... stand for ordered categories. Rows have no log likelihood. `covariates` cannot be given.
    A column ``colour`` of the states red, blue and green without an order (``"mixed"``) becomes the columns ``colour: blue`` and
    ``colour: green``. The state of a row is the one with the largest latent value, if that is positive, and the first state, red, if
    none is (a multinomial probit); choose it by the order of the categories. An edge of ``colour: blue`` says that blue, compared with red, depends
    on the other column given all others. Given these, the latent values of the states of one column are independent: there
    are no edges inside. ``required`` and ``forbidden`` edges of ``colour`` are those of all its columns. ``mean`` of such
    a column has no units. ``x`` holds 1 for the state of a row and 0 for the others, in draws too. Such columns need
    ``prior="spike_slab"`` or ``"g_wishart"``, which can forbid edges; :func:`bayesstruct.variable_edges` has one line for each pair of columns of
    the data. Their units are known from the prior alone and move slowly: look at R-hat of ``weight``, not of ``precision``.

    There are as many latent values as the table has values; a result without them is smaller, and PyMC's checks are faster:
    ``pm.sample(var_names=["edge", "weight", "precision", "mean"])``, without ``mean`` under ``"rank"``. Predictive draws
    need the others: PyMC draws a parameter that the result does not have from its prior.

    With ``marginals="alternative_student"`` a standardised value is :math:`\mu_j + e_{ij} / \sqrt{w_{ij}}`, where the rows e are normal with
    the precision matrix K and all weights are independent, :math:`w_{ij} \sim \mathrm{Gamma}(\nu / 2, \nu / 2)`; with ``"student"``
    a row has one weight. Edges join the normal values e. Rows have no log likelihood in closed form, so that there is none; the weights are drawn,
    as many as the table has values.

    Under ``prior="pseudo_likelihood"`` the posterior of the graph G is

    .. math:: p(G \mid x) \propto p(G) \Bigl( \prod_i p(x_i \mid x_{\mathrm{ne}(i)}) \Bigr)^{1/2},

    each factor the exact marginal density of a column given its neighbours in G, as if all columns had a Wishart(3, I) precision matrix
    (:class:`bayesstruct.distributions.NeighbourRegressions`). This is an approximation of the likelihood of a G-Wishart(3, I) matrix, which has
    no closed form. By the root a dependence, which is seen at both of its ends, counts once: edge probabilities of four columns and 100
    rows then differ from the exact ones by .01 on average, and without it by .04, being too near 0 and 1. The sampler (:class:`bayesstruct.steps.GraphJumps`) is exact for this posterior.
    A draw is many updates of the whole graph, so that few are needed at p = 1,000:
    ``pm.sample(100, compute_convergence_checks=False)``, and then ``bs.check``. Edges have no weights; :func:`bayesstruct.precision_draws` draws
    precision matrices given some of the graphs. ``edge_probability`` should be near the share of edges that is expected, such as 2 / p.

    Missing values are then drawn before the graph, ten times, by normal regressions of each column on others that are chosen from the table
    (multiple imputation, :func:`bayesstruct.precision.solvers.imputation.impute`). The posterior is the average of those given each completed table:
    each has a graph of its own in ``edge_imputed``; ``imputation`` is drawn with equal probabilities, and ``edge`` and ``x_missing`` are those
    of this table. The pseudo-likelihood does not serve as a density of the missing values: they would be drawn to where dependences are strong.
    Means over ten tables have an error that no diagnostic of the chains shows: a probability that has the standard
    deviation s between tables is known up to about s / 3. ``pm.sample(var_names=["edge", "imputation", "x_missing"])`` leaves out the
    largest part of the result.

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    TypeError, ValueError
        For an unknown prior, an option out of range, or one that does not go with the prior, the marginals or `cov`.

    References
    ----------
    Finegold, M. and Drton, M. (2011). Robust graphical modeling of gene networks using classical and alternative t-distributions.
    *Annals of Applied Statistics* 5(2A), 1057-1080.

    Imai, K. and van Dyk, D. A. (2005). A Bayesian analysis of the multinomial probit model using marginal data augmentation.
    *Journal of Econometrics* 124(2), 311-334.

    Hoff, P. D. (2007). Extending the rank likelihood for semiparametric copula estimation. *Annals of Applied
    Statistics* 1(1), 265-283.

    van den Boom, W., Beskos, A. and De Iorio, M. (2022). The G-Wishart weighted proposal algorithm: efficient posterior
    computation for Gaussian graphical models. *Journal of Computational and Graphical Statistics* 31, 1215-1224.

    Wang, H. (2012). Bayesian graphical lasso models and efficient posterior computation. *Bayesian
    Analysis* 7(4), 867-886.

    Wang, H. (2015). Scaling it up: stochastic search structure learning in graphical models.
    *Bayesian Analysis* 10(2), 351-377.

    Li, Y., Craig, B. A., Bhadra, A. (2019). The graphical horseshoe estimator for inverse covariance matrices.
    *Journal of Computational and Graphical Statistics* 28(3), 747-757.

    Examples
    --------
    .. code-block:: python

        with bs.models.gaussian_graphical(np.log(bs.load_dataset("sachs"))):
            idata = pm.sample()
        bs.edge_table(idata)

    Columns of several kinds:

    .. code-block:: python

        answers["school"] = pd.Categorical(
            answers["school"], ["none", "primary", "high"], ordered=True
        )
        with bs.models.gaussian_graphical(answers, marginals="mixed"):
            idata = pm.sample(var_names=["edge", "weight", "precision", "mean"])

    From a correlation matrix of 88 students, without their marks:

    .. code-block:: python

        with bs.models.gaussian_graphical(cov=correlations, n=88):
            idata = pm.sample()
    """
    if prior not in OPTIONS:
        raise ValueError(nearest("prior", prior, OPTIONS))
    options = {
        "edge_probability": edge_probability,
        "required": required,
        "forbidden": forbidden,
        "spike_scale": spike_scale,
        "slab_scale": slab_scale,
        "rate": rate,
        "global_scale": global_scale,
        "diagonal_rate": diagonal_rate,
        "degrees_of_freedom": degrees_of_freedom,
        "negligible": negligible,
    }
    refuse_other_options(gaussian_graphical, prior, OPTIONS, options)
    check_negligible(negligible)
    if marginals not in _MARGINALS:
        raise ValueError(nearest("marginals", marginals, _MARGINALS))
    scaled = check_standardize(standardize)
    _check_marginals(marginals, degrees, covariates, standardize)
    rows = given_rows_or_covariance(data, cov, n)
    if rows:
        data, covariates = repeated_rows(row_counts, data, covariates)
        data, covariates = tables_without_codes(missing_codes, data, covariates)
        table: Any = _table(data, marginals, scaled, row_counts is not None, degrees)
    else:
        if marginals != "gaussian":
            raise ValueError(
                f'marginals="{marginals}" needs the rows of the table, and only `cov` was given'
            )
        of_rows = {
            "covariates": covariates,
            "missing_codes": missing_codes,
            "row_counts": row_counts,
        }
        refuse_options_of_rows(**of_rows, standardize=None if scaled else False)
        table = CovarianceTable.read(cov, n)
    if prior == "pseudo_likelihood":
        if marginals != "gaussian":
            raise ValueError(
                f'marginals="{marginals}" does not go with prior="pseudo_likelihood", which knows the table by its correlations; '
                'take prior="spike_slab" or "g_wishart"'
            )
        refuse_for_graphs(table, covariates=covariates, standardize=standardize in (None, True))
        return graph_alone(table, missing_codes, edge_probability, required, forbidden)
    warn_size(table)
    own = prior == "spike_slab" and covariates is None and _has_default_scales(options)
    table, unit = table_in_units(table, standardize, automatic=own)
    _add_state_pairs(table, prior, options)
    with pm.Model(coords=table.coords) as model:
        record_codes(missing_codes)
        mean: Any = np.zeros(table.p)
        if marginals != "rank":
            mean = column_means(table, data, covariates, unit)
        precision = MATRICES[prior](table, **{name: options[name] for name in OPTIONS[prior]})
        if prior == "spike_slab":
            warn_of_slab(table, slab_scale, conditional=np.ndim(unit) > 0)
        _observe(table, mean, precision, marginals, degrees)
    return model


def _has_default_scales(options):
    """Whether the scales of the spike and slab are those that are used unless others are given."""
    given = [options[name] for name in ("spike_scale", "slab_scale", "diagonal_rate")]
    return given == [0.02, 1.0, None]


def _add_state_pairs(table, prior, options):
    """Forbid edges inside a column of states without an order, and give others by the name of such a column to all its columns."""
    if not isinstance(table, RankTable) or not table.variables:
        return
    if "forbidden" not in OPTIONS[prior]:
        raise ValueError(
            f"column {table.variables[0]!r} has states without an order, whose latent values have no edges among them: take "
            f'prior="spike_slab" or "g_wishart" and not "{prior}"'
        )
    for name in ("required", "forbidden"):
        options[name] = table.pairs_of(options[name])
    options["forbidden"] += table.inside


def _check_marginals(marginals, degrees, covariates, standardize):
    """Raise for options that do not apply to the marginals."""
    if degrees is not None and marginals not in _STUDENT:
        raise ValueError('`degrees` goes with marginals="student" and "alternative_student"')
    if marginals not in ("rank", "mixed"):
        return
    if covariates is not None:
        raise ValueError(
            f'`covariates` do not apply to marginals="{marginals}": the latent values have no units in which coefficients could be read; '
            "put the covariates into the table as columns"
        )
    if standardize not in (None, True):
        raise ValueError(
            f'`standardize` does not apply to marginals="{marginals}": leave it out, the latent values have no other units'
        )


def _table(data, marginals, standardize, counted, degrees):
    """Read the table as the marginals need it."""
    if marginals in ("rank", "mixed"):
        table = RankTable.read(data, numbers=marginals == "mixed", counted=counted)
        if table.by_order.any():
            warn_latent(table)
            return table
    discrete = 'marginals="mixed", or a model for discrete variables'
    if marginals == "mixed":
        discrete = f"{AS_ORDERED}, or a model for discrete variables"
    own = {"robust": marginals in _STUDENT, "discrete": discrete}
    table = Table.continuous(data, standardize=standardize, counted=counted, **own)
    if marginals == "alternative_student":
        warn_latent(table, degrees=degrees is None or hasattr(degrees, "owner"))
    return table


def _observe(table, mean, precision, marginals, degrees):
    """Add the data to the model."""
    if isinstance(table, CovarianceTable):
        observe_covariance(table, mean, precision)
    elif isinstance(table, RankTable):
        observe_order(table, mean, precision)
    elif marginals == "student":
        observe_student(table, mean, precision, degrees)
    elif marginals == "alternative_student":
        observe_alternative_student(table, mean, precision, degrees)
    else:
        observe_rows(table, mean, precision)
