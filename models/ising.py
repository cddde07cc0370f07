"""Ising model: which binary columns of a table depend on each other, given all others?

P(x) = exp(sum_i bias_i x_i + sum_ij weight_ij x_i x_j) / Z     one row of the table
weight ~ spike and slab, Laplace or horseshoe                   one for each pair of columns
edge   = 1 where the weight is not zero (not negligible)

or, for several groups of rows, a field in each group: weight = shared part + contrasts, of which a pair has none (absent), the first
(equal), or both (different).
"""

import math

from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.names import nearest
from bayesstruct.data.options import check_options
from bayesstruct.data.orders import warn_about_opposite_orders, warn_about_words
from bayesstruct.data.recoding import repeated_rows, without_codes
from bayesstruct.data.row_groups import is_by_group
from bayesstruct.data.states import StateTable, refuse_coded_states
from bayesstruct.fields.data import grouped_states
from bayesstruct.fields.model_parts.fields import (
    add_biases,
    check_likelihood,
    edge_inclusion,
    field_coords,
    field_potentials,
    observe_states,
    record_field,
    record_slab,
)
from bayesstruct.fields.model_parts.groups import (
    add_group_weights,
    check_group_options,
    observe_group_states,
)
from bayesstruct.sparse.model_parts import horseshoe_prior
from bayesstruct.sparse.priors.horseshoe import RegularizedHorseshoe
from bayesstruct.sparse.priors.included import included
from bayesstruct.sparse.priors.spike_and_slab import SpikeAndSlab

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import networkx

    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorVariable

    from bayesstruct.data.edge_priors import StochasticBlock
    from bayesstruct.data.intake import TableLike

__all__ = ["ising"]

_OPTIONS = {
    "spike_slab": {"edge_probability", "slab", "slab_scale", "required", "forbidden"},
    "laplace": {"rate", "negligible"},
    "horseshoe": {"expected_edges", "slab_scale", "negligible"},
}
_REMEDY = (
    "use pairwise_mrf, which takes any number of states, or reduce these columns to two values"
)
_CODINGS = {"01": "ordinal", "pm": "spin"}
_UNIT = {"01": 1.0, "pm": 0.25}  # with x = -1, 1 the same model has a quarter of the weight


def ising(
    data: "TableLike | Mapping[Any, TableLike]",
    *,
    prior: str = "spike_slab",
    likelihood: str = "pseudo",
    coding: str = "01",
    graph: "networkx.Graph | Iterable[tuple[str, str]] | None" = None,
    edge_probability: "float | ArrayLike | TensorVariable | StochasticBlock | None" = None,
    required: "Iterable[tuple[str, str]] | None" = None,
    forbidden: "Iterable[tuple[str, str]] | None" = None,
    slab: str | None = None,
    slab_scale: float | None = None,
    rate: float | None = None,
    expected_edges: float | None = None,
    negligible: float | None = None,
    bias_scale: float = 5.0,
    states: Any = None,
    missing_codes: Any = None,
    row_counts: Any = None,
    group: Any = None,
    difference_probability: Any = None,
    difference_scale: float | None = None,
) -> pm.Model:
    r"""Learn which binary columns of a table depend on each other given all others.

    .. math:: P(x) = \frac1Z \exp\Bigl(\sum_i b_i x_i + \sum_{i<j} w_{ij} x_i x_j\Bigr)

    Missing values are imputed in the model. :func:`bayesstruct.find_MAP` gives the most probable graph,
    with the mode of the weights given it (spike and slab), or the sparse mode (Laplace).

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table; each column has two values (numbers, text, categories, booleans), of which the
        second in order counts as 1. Missing values are allowed. Or one table for each group, by its label.
    prior : {"spike_slab", "laplace", "horseshoe"}
        ``"spike_slab"`` gives each edge a probability. The others only shrink; an edge is then
        a weight beyond `negligible`.
    likelihood : {"pseudo", "exact"}
        ``"pseudo"`` multiplies the conditional probabilities of each value given the rest of its row
        (Besag 1975). It is feasible for any number of columns, but is **not** the likelihood: the posterior
        is a *composite* one and overconfident, because the dependence of two columns counts in both
        their conditionals. Intervals are usually too narrow (:func:`bayesstruct.sandwich` widens
        them), and edge probabilities too extreme, see the notes. ``"exact"`` sums over all joint
        states, up to some 20 columns; with a sparse `graph` it is feasible for any number, unless the prior is
        spike and slab.
    coding : {"01", "pm"}
        The values of x in the formula: 0 and 1, or -1 and 1. The family of distributions is the same,
        the prior is not; the default scales of the weights are those of equal
        log odds ratios (a quarter under ``"pm"``).
    graph : networkx.Graph or iterable of pairs of column names, optional
        The edges that may be present, if that is known: a chain of time points, a tree, a narrow
        grid. All other pairs have no weight, and the dimension ``pair`` is over these edges only. The
        exact likelihood is then a sum variable by variable along the graph.
    edge_probability : float, (p, p) array_like, ``pm.Beta.dist`` or StochasticBlock, optional
        Prior probability of an edge (spike and slab), 0.5 by default. A matrix gives one to each
        pair, 0 forbids and 1 requires an edge; with a beta distribution one probability is learned from the table;
        ``bs.StochasticBlock()`` learns blocks of columns whose edges are equally probable.
    required, forbidden : iterable of pairs of column names, optional
        Edges known to be present or absent.
    slab : {"normal", "laplace", "cauchy"}, optional
        Distribution of a weight that is not zero; normal by default.
    slab_scale : float, optional
        Scale of the slab, 1 by default, a log odds ratio (a quarter under ``"pm"``); for the horseshoe the
        scale of the largest weights.
    rate : float, optional
        Rate of the Laplace prior, 1 by default (4 under ``"pm"``): the penalty :math:`\lambda` of a
        summed log-likelihood.
    expected_edges : float, optional
        Prior expected number of edges of the horseshoe; one for each column by default, or half of
        the pairs if that is less.
    negligible : float, optional
        Absolute weight up to which there is no edge (Laplace, horseshoe), 0.2 by default, an odds
        ratio of 1.2 (a quarter under ``"pm"``).
    bias_scale : float, default 5
        Standard deviation of the biases; the default hardly penalises them. Infinity makes their prior flat,
        and prior predictive draws impossible.
    states : list or dict of lists, optional
        All states of each column, in order, also those that never occur and have their prior: one list for all
        columns, or a dict with one for each of some. Categories of pandas and polars declare theirs.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.
    row_counts : (n,) array_like of int or str, optional
        How often each row was observed, or the name of the column that says so: a table of frequencies. The
        result is that of the table with repeated rows.
    group : str or (n,) array_like, optional
        Name of the column that holds the group of each row, which is then no variable; or the groups, in the order of the rows:
        which dependences differ between them? Any number G of groups from 2 up, each with biases and weights of its own. With
        ``prior="spike_slab"`` and normal slabs; see the notes.
    difference_probability : float, (p, p) array_like or ``pm.Beta.dist``, optional
        Prior probability that a pair with an edge differs between groups, 0.5 by default; with a beta distribution it is learned
        from the table.
    difference_scale : float, optional
        Standard deviation of each contrast between groups of a weight that differs, 1 by default (a quarter under
        ``"pm"``). Weights of two groups differ by sqrt(2) times a contrast.

    Returns
    -------
    pymc.Model
        With ``bias`` (node), ``weight`` and ``edge`` (pair), ``x``, the table as 0 and 1, and
        ``x_missing`` if values are missing. With groups ``bias`` (group, node), ``weight`` (group, pair), ``relation`` (pair: 0 absent, 1 equal,
        2 different) and ``difference`` (pair) too.

    Raises
    ------
    TableError
        If the table or the graph cannot be used; the message names the column and the remedy.
    ValueError
        For an unknown option, one out of range, one of another prior, or an exact
        likelihood that would take too long: more than 2^22 joint states, and a graph with so many
        cycles that tables of more than 2^22 cells are needed.

    Warns
    -----
    TableWarning
        If columns have two words as states whose alphabetical order decides on the sign of edges, or columns have the same states
        in different orders. If a column has one state only in a group.

    Notes
    -----
    How overconfident: in 200 simulated tables of 200 rows and five columns, edges being present with
    probability 0.5, the exact likelihood gave 326 pairs a probability beyond 0.9, of which 97.5 % were edges, and
    0.8 % of all pairs without an edge; the pseudo-likelihood 525, of which 91 % were edges, and 4.7 % of all pairs
    without an edge. Pairs with many states do worse. Where the exact likelihood is affordable, report
    it.

    Missing values are drawn from their conditional distribution in the Markov random field given the observed values of
    their rows, with the pseudo-likelihood too, where the density of the model implies another distribution (it counts
    their neighbours twice), see :class:`bayesstruct.steps.PairwiseCells`. ``pm.sample`` assigns that step, or the step of
    the weights, which draws them in the same way; another step for ``x_missing`` would draw from the density. On ten tables of 300 rows of a ring of five columns, 15 % of
    the values missing, weights of 1.5 had a root mean squared error of .32 (exact likelihood .29), of .38 (.36)
    from the complete rows alone, and of .28 (.24) from the complete table; the log odds of imputed states had a slope of
    .95 (.91) on the true ones.

    *Groups.* The weights of a pair in all groups are a shared part, with the standard deviation `slab_scale`, and orthonormal contrasts
    (the design of Marsman et al. 2025). A pair is *absent* (all weights are zero), *equal* (the same weight in all groups) or
    *different*. :func:`bayesstruct.difference_table` reads the result, :func:`bayesstruct.one_group` makes one of a single group;
    :func:`bayesstruct.find_MAP` searches for the most probable relations if no value is missing and no probability is learned.
    A pseudo-likelihood overstates differences as it overstates edges.

    The pointwise log likelihood (``pm.compute_log_likelihood``) of a row with missing values is that of the row as it was
    completed in each draw: ``az.loo`` then takes drawn values for observed ones. Compare models by rows that are complete.

    References
    ----------
    Besag, J. (1975). Statistical analysis of non-lattice data. *The Statistician* 24, 179-195.

    Schmidt, M. (2010). Graphical model structure learning with l1-regularization. PhD thesis,
    University of British Columbia, section 1.4 (equation 1.8 is misprinted).

    Marsman, M., Huth, K., Waldorp, L. J. and Ntzoufras, I. (2022). Objective Bayesian edge screening
    and structure selection for Ising networks. *Psychometrika* 87, 47-82.

    Marsman, M., Waldorp, L. J., Sekulovski, N. and Haslbeck, J. M. B. (2025). Bayes factor tests for group differences in ordinal and
    binary graphical models. *Psychometrika* 90(5), 1809-1842.

    Examples
    --------
    .. code-block:: python

        with bs.models.ising(bs.load_dataset("reinis")):
            idata = pm.sample()
        bs.edge_table(idata)

    Which of a hundred days depend on the day before, exactly:

    .. code-block:: python

        days = itertools.pairwise(rain.columns)
        with bs.models.ising(rain, graph=days, prior="laplace", likelihood="exact"):
            idata = pm.sample()

    Which dependences differ between women and men:

    .. code-block:: python

        with bs.models.ising(symptoms, group="sex"):
            idata = pm.sample()
        bs.difference_table(idata)
    """
    grouped = group is not None or is_by_group(data)
    differing = check_group_options(
        grouped,
        prior,
        slab,
        difference_probability=difference_probability,
        difference_scale=difference_scale,
    )
    given = check_options(
        prior,
        _OPTIONS,
        edge_probability=edge_probability,
        required=required,
        forbidden=forbidden,
        slab=slab,
        slab_scale=slab_scale,
        rate=rate,
        expected_edges=expected_edges,
        negligible=negligible,
    )
    if coding not in _CODINGS:
        raise ValueError(nearest("coding", coding, tuple(_CODINGS)))
    refuse_coded_states(states, missing_codes)
    if grouped:
        reading = {"states": states, "missing_codes": missing_codes, "row_counts": row_counts}
        rows = grouped_states(data, group, **reading)
        return _of_groups(
            rows, given | differing, coding, likelihood, graph, bias_scale, missing_codes
        )
    [data] = repeated_rows(row_counts, data)
    table = StateTable.read(without_codes(data, missing_codes), states=states).check_binary(_REMEDY)
    warn_about_opposite_orders(table)
    warn_about_words(table)
    potentials = field_potentials(table, _CODINGS[coding], graph=graph)
    check_likelihood(likelihood, potentials, absent=prior == "spike_slab")
    if bias_scale == math.inf:
        table.refuse_unseen(
            "with a flat prior of the biases they have none; give a finite bias_scale"
        )
    with pm.Model(coords=field_coords(table, potentials)) as model:
        record_codes(missing_codes)
        bias = add_biases(None, "node", bias_scale)
        weight, implied, cut = _PRIORS[prior](table, potentials, given, _UNIT[coding])
        record_field(potentials, implied, cut)
        observe_states(table, bias, weight, potentials=potentials, likelihood=likelihood)
    return model


def _of_groups(rows, options, coding, likelihood, graph, bias_scale, missing_codes):
    """Model of several groups of rows."""
    table = rows.table.check_binary(_REMEDY)
    warn_about_opposite_orders(table)
    warn_about_words(table)
    potentials = field_potentials(table, _CODINGS[coding], graph=graph)
    check_likelihood(likelihood, potentials, absent=True)
    if bias_scale == math.inf:
        rows.refuse_unseen("with a flat prior its bias there has none; give a finite bias_scale")
    coords = field_coords(table, potentials) | {"group": list(rows.labels)}
    with pm.Model(coords=coords) as model:
        record_codes(missing_codes)
        bias = add_biases(None, "node", bias_scale, group="group")
        weight = add_group_weights(rows, potentials, options, unit=_UNIT[coding])
        observe_group_states(rows, bias, weight, potentials=potentials, likelihood=likelihood)
    return model


def _spike_slab(table, potentials, options, unit):
    inclusion, implied = edge_inclusion(
        table,
        potentials,
        options.get("edge_probability", 0.5),
        options.get("required", ()),
        options.get("forbidden", ()),
    )
    scale = float(options.get("slab_scale", unit))
    slab = options.get("slab", "normal")
    weight = SpikeAndSlab("weight", inclusion, scale, slab=slab, dims="pair")
    included("edge", weight, dims="pair")
    record_slab(scale, slab, potentials)
    return weight, implied, 0.0


def _laplace(table, potentials, options, unit):
    rate = float(options.get("rate", 1.0 / unit))
    cut = float(options.get("negligible", 0.2 * unit))
    weight = pm.Laplace("weight", 0.0, 1.0 / rate, dims="pair")
    _beyond(weight, cut)
    return weight, np.exp(-rate * cut), cut


def _horseshoe(table, potentials, options, unit):
    size = potentials.weight_size
    expected = float(options.get("expected_edges", min(table.p, 0.5 * size)))
    if expected >= size:
        raise ValueError(
            f"`expected_edges` must be below {size}, the number of pairs, it is {expected:g}"
        )
    scale = float(options.get("slab_scale", unit))
    cut = float(options.get("negligible", 0.2 * unit))
    # The standard deviation of the noise that a logistic regression corresponds to, in units of weights.
    deviation = 2.0 * unit
    weight = RegularizedHorseshoe(
        "weight", expected, n=table.n, sigma=deviation, slab_scale=scale, dims="pair"
    )
    _beyond(weight, cut)
    implied, _ = horseshoe_prior(size, table.n, expected, scale, deviation, cut)
    return weight, implied, cut


def _beyond(weight, cut):
    pm.Deterministic("edge", pt.gt(pt.abs(weight), cut).astype("int64"), dims="pair")


_PRIORS = {"spike_slab": _spike_slab, "laplace": _laplace, "horseshoe": _horseshoe}
