"""Gaussian graphical models of groups of rows: which dependences differ between the groups?

x = location_g + scale_g * z                            the table in its units, and standardised
z_i | mean_g, K_g ~ Normal(mean_g, K_g^-1)              one row of group g
K_1, ..., K_G     ~ GroupedSpikeSlab                    elements: a shared part and orthonormal contrasts
relation | K      ~ absent, equal or different          of each pair of columns
edge, difference  = relation > absent, relation = different
weight            = partial correlations of each K_g

or, with differences="indicators", K ~ GroupIndicatorSpikeSlab: an indicator `group_edge` of each pair in each group, an edge being one in
some group, and a difference one that is not in all of them.
"""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import pymc as pm
import pytensor.tensor as pt

from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.covariance import (
    given_rows_or_covariance,
    grouped_covariances,
    refuse_options_of_rows,
)
from bayesstruct.data.edge_priors import edge_probability_matrix, fixed_edges
from bayesstruct.data.names import nearest
from bayesstruct.data.recoding import tables_without_codes, without_codes
from bayesstruct.data.row_groups import grouped_table, is_by_group
from bayesstruct.graphs.records import (
    EdgeEnds,
    EdgePrior,
    GroupEdgePrior,
    RelationPrior,
    RelationScales,
)
from bayesstruct.precision.model_parts.groups import (
    observe_groups,
    start_of_groups,
    warn_of_narrow_slabs,
)
from bayesstruct.precision.model_parts.matrices import beta_shapes
from bayesstruct.precision.model_parts.rows import warn_size
from bayesstruct.precision.ops.graphical_spike_slab import log_odds
from bayesstruct.precision.priors.edges import partial_correlations
from bayesstruct.precision.priors.group_edges import GroupEdges, GroupIndicatorSpikeSlab
from bayesstruct.precision.priors.groups import GroupedSpikeSlab, Relations
from bayesstruct.precision.priors.implied import (
    implied_group_edge_probability,
    implied_relation_probabilities,
)
from bayesstruct.precision.priors.rows import ColumnMeans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bayesstruct.data.intake import TableLike

__all__ = ["grouped_gaussian_graphical"]

_MATRICES = ("group", "node", "node_")
_DESIGNS = {"contrasts": GroupedSpikeSlab, "indicators": GroupIndicatorSpikeSlab}
_CONTRASTS = {"equal_scale": 0.02, "difference_scale": 1.0}


def grouped_gaussian_graphical(
    data: "TableLike | Mapping[Any, TableLike]" = None,
    *,
    group: Any = None,
    cov: Any = None,
    n: Any = None,
    edge_probability: Any = 0.5,
    difference_probability: Any = 0.5,
    required: Iterable[tuple[str, str]] = (),
    forbidden: Iterable[tuple[str, str]] = (),
    spike_scale: float = 0.02,
    slab_scale: float = 1.0,
    equal_scale: float | None = None,
    difference_scale: float | None = None,
    diagonal_rate: float = 0.5,
    differences: str = "contrasts",
    standardize: bool | str = True,
    missing_codes: Any = None,
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn which columns depend on each other in several groups of rows, and which of these dependences differ.

    Each group has a precision matrix of its own. The elements of a pair of columns are a part that all groups share
    and orthonormal contrasts between them, each of which is negligible or not. A pair is therefore *absent* (connected in no
    group), *equal* (connected, and alike in all groups) or *different*. :func:`bayesstruct.difference_table` reads the result.

    Parameters
    ----------
    data : DataFrame, array_like, or dict of them
        (n, p) table of numbers, one row for each observation; NaN marks a missing value. Or one table for each
        group, by its label.
    group : str or (n,) array_like
        Name of the column that holds the group of each row, which is then no variable; or the groups, in the order of the
        rows. Any number G of groups from 2 up.
    cov : dict of DataFrame, or (G, p, p) array_like, optional
        Instead of a table, the sample covariances (divisor n - 1, as of ``DataFrame.cov``) or correlations of each group,
        for instance published ones, by its label. `group` gives the labels of an array. The posterior is that of any rows that have
        them; values count from the means of the columns, which are not known.
    n : int, dict or sequence of int, optional
        Number of rows that `cov` was computed from, in each group.
    edge_probability : float, (p, p) array_like or ``pm.Beta.dist``, default 0.5
        Nominal prior probability that a pair is connected (equal or different). A beta distribution is learned from the table.
    difference_probability : float, (p, p) array_like or ``pm.Beta.dist``, default 0.5
        Nominal prior probability that a pair that is connected differs between groups; with indicators that it is not connected in all
        of them. A beta distribution is learned from the table. Positive definite matrices favour few edges and small
        differences, so that the implied distributions of both lie below the beta that is given; Bayes factors take account of it.
    required, forbidden : iterable of pairs of column names
        Pairs known to be connected, and known not to be in any group.
    spike_scale, slab_scale : float
        Standard deviations of the part of a precision element that groups share, without and with an edge, on the standardised
        scale.
    equal_scale, difference_scale : float, optional
        Standard deviations of each contrast of an element, without and with a difference; .02 and 1 unless given. Elements of two groups differ by
        sqrt(2) times a contrast. The defaults were compared on tables of 50 columns (``benchmarks/group_differences.py``).
    diagonal_rate : float, default 0.5
        Exponential rate of the diagonal elements, which are free in each group.
    differences : {"contrasts", "indicators"}
        What differs between groups. ``"contrasts"``: the strength of a dependence. ``"indicators"``: whether there is one; each group has edges of its
        own, and a pair is more probable in one group if it is connected in others, whatever its strength there.
    standardize : bool or "group", default True
        True puts the priors on the scale of columns less the mean of their group, over their standard deviation within groups,
        pooled over the groups: units are the same in all groups, so that a column whose variance differs has different elements.
        "group" divides by the standard deviation of each group instead, so that what is
        compared are correlations. Draws of the table stay in its units.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999.
    row_counts : (n,) array_like of int, str or dict, optional
        How often each row was observed, or the name of the column that says so; a dict of tables has a dict of them. The result
        is that of the table with repeated rows.

    Returns
    -------
    pymc.Model
        With ``precision`` (group, node, node\_) and ``mean`` (group, node) of the standardised columns, ``weight`` (group, pair), the partial
        correlations in each group, ``relation`` (pair: 0 absent, 1 equal, 2 different), ``edge`` and ``difference`` (pair), ``x`` (the
        table) and, where values are missing, ``x_missing``, both in the units of the table; ``edge_probability`` and
        ``difference_probability`` where they are learned.
        ``edge`` says that a pair is connected in some group; :func:`bayesstruct.one_group` has the edges of a given one. With indicators there is
        ``group_edge`` (group, pair), the edges of each group, in the place of ``relation``. With `cov` there is
        ``covariance`` (group, node, node\_) instead of ``x``: predictive draws are covariance matrices, and the log likelihood is that
        of all rows together.

    Raises
    ------
    TableError
        If the table or the groups cannot be used; the message names the column or group and the remedy.
    TypeError, ValueError
        For an option out of range, or one of rows where there are covariance matrices.

    Warns
    -----
    TableWarning
        Among others if the variance of a column differs between groups and the scale is a common one.

    References
    ----------
    Marsman, M., Waldorp, L. J., Sekulovski, N. and Haslbeck, J. M. B. (2025). Bayes factor tests for group differences in ordinal and
    binary graphical models. *Psychometrika* 90(5), 1809-1842.

    Peterson, C., Stingo, F. C. and Vannucci, M. (2015). Bayesian inference of multiple Gaussian graphical models. *Journal of the American
    Statistical Association* 110, 159-174, for indicators.

    Wang, H. (2015). Scaling it up: stochastic search structure learning in graphical models. *Bayesian Analysis* 10(2), 351-377.

    Examples
    --------
    .. code-block:: python

        with bs.models.grouped_gaussian_graphical(table, group="sex"):
            idata = pm.sample()
        bs.difference_table(idata)
        bs.edge_table(bs.one_group(idata, "female"))

    From the correlation matrices of two samples, without their rows:

    .. code-block:: python

        both = {"patients": first, "controls": second}
        with bs.models.grouped_gaussian_graphical(cov=both, n={"patients": 120, "controls": 300}):
            idata = pm.sample()
    """
    if differences not in _DESIGNS:
        raise ValueError(nearest("differences", differences, _DESIGNS))
    table: Any
    if given_rows_or_covariance(data, cov, n):
        coded = _without_codes(data, missing_codes)
        table = grouped_table(coded, group, standardize=standardize, row_counts=row_counts)
        rows: Any = table.table
    else:
        of_rows = {"missing_codes": missing_codes, "row_counts": row_counts}
        refuse_options_of_rows(**of_rows, standardize=None if standardize else False)
        rows = table = grouped_covariances(cov, n, group, standardize=standardize)
    groups = len(table.labels)
    warn_size(rows)
    given, nominal, betas = _probabilities(
        rows.names, edge_probability, difference_probability, required, forbidden
    )
    edge, difference = nominal.values()
    contrasts = _contrast_scales(differences, equal_scale, difference_scale)
    scales: dict[str, Any] = {"spike_scale": spike_scale, "slab_scale": slab_scale}
    of_one: dict[str, Any] = {**scales, "diagonal_rate": diagonal_rate}
    prior: Any = _DESIGNS[differences]
    with pm.Model(coords=table.coords) as model:
        record_codes(missing_codes)
        mean = ColumnMeans("mean", 0.0, 1.0, dims=("group", "node"))
        precision = prior(
            "precision",
            groups,
            rows.p,
            **given,
            **of_one,
            **contrasts,
            dims=_MATRICES,
            start=partial(start_of_groups, table, log_odds(edge), of_one),
        )
        warn_of_narrow_slabs(table, slab_scale)
        weight = [partial_correlations(precision[g]) for g in range(groups)]
        pm.Deterministic("weight", pt.stack(weight), dims=("group", "pair"))
        EdgeEnds.in_model(*rows.edge_index).record()
        known: dict[str, Any] = {"groups": groups, "p": rows.p, **nominal, **of_one, **betas}
        known |= contrasts if contrasts else dict.fromkeys(_CONTRASTS)
        _record(implied_relation_probabilities(**known))
        GroupEdgePrior(implied_group_edge_probability(**known)).record()
        if differences == "contrasts":
            _add_relations(precision)
            of_pairs = {"edge": edge[rows.edge_index], "difference": difference[rows.edge_index]}
            RelationScales(**of_pairs, **scales | contrasts).record()
        else:
            _add_indicators(precision, groups)
        observe_groups(table, mean, precision)
    return model


def _probabilities(names, edge, difference, required, forbidden) -> tuple[dict, dict, dict]:
    """Arguments of the prior for both probabilities, their nominal matrices, and the shapes of those that are learned."""
    options, betas = ("edge_probability", "difference_probability"), {}
    given: dict[str, Any] = dict(zip(options, (edge, difference), strict=True))
    pairs = {"edge_probability": (required, forbidden), "difference_probability": ()}
    nominal = {}
    for option, value in given.items():
        shapes = beta_shapes(value, option)
        if shapes is None:
            nominal[option] = edge_probability_matrix(names, value, *pairs[option], option=option)
            given[option] = nominal[option]
        else:
            nominal[option] = fixed_edges(names, *pairs[option]).fill(0.5)
            betas[option.replace("probability", "beta")] = shapes
    if "edge_beta" in betas:
        given["fixed"] = nominal["edge_probability"]
    return given, nominal, betas


def _contrast_scales(differences, *given) -> dict[str, Any]:
    """Scales of contrasts, of which indicators have none."""
    chosen = {n: v for n, v in zip(_CONTRASTS, given, strict=True) if v is not None}
    if differences == "contrasts":
        return _CONTRASTS | chosen
    if chosen:
        raise ValueError(f'`{next(iter(chosen))}` applies to differences="contrasts" only')
    return {}


def _add_relations(precision):
    """Add the relation of each pair, its edge and its difference."""
    relation = Relations("relation", precision, dims="pair")
    pm.Deterministic("edge", pt.ge(relation, 1).astype("int64"), dims="pair")
    pm.Deterministic("difference", pt.ge(relation, 2).astype("int64"), dims="pair")


def _add_indicators(precision, groups):
    """Add the edges of each group, those of some group, and those that are not in all."""
    own = GroupEdges("group_edge", precision, dims=("group", "pair"))
    count = own.sum(0)
    pm.Deterministic("edge", pt.ge(count, 1).astype("int64"), dims="pair")
    some = pt.and_(pt.ge(count, 1), pt.lt(count, groups))
    pm.Deterministic("difference", some.astype("int64"), dims="pair")


def _without_codes(data, codes):
    if is_by_group(data):
        return dict(zip(data, tables_without_codes(codes, *data.values()), strict=True))
    return without_codes(data, codes)


def _record(implied):
    """Record the prior probabilities of edges and differences."""
    edge, difference = implied
    EdgePrior(edge).record()
    RelationPrior(difference).record()
