"""Pairwise Markov random field: which categorical columns depend on each other, given all others?

P(x) = exp(sum_i u_i(x_i) + sum_ij t_ij(x_i, x_j)) / Z          one row of the table
u, t     linear in the biases and in the potential of each pair: one weight, or a table of them
potential ~ spike and slab or group Laplace                     whole tables are zero or small
edge     = 1 where the potential is not zero (not negligible)
weight   = the weight of a pair, or the norm of its interaction

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
from bayesstruct.data.orders import (
    warn_about_equality,
    warn_about_opposite_orders,
    warn_about_order,
    warn_about_words,
)
from bayesstruct.data.recoding import repeated_rows, without_codes
from bayesstruct.data.row_groups import is_by_group
from bayesstruct.data.states import StateTable, refuse_coded_states
from bayesstruct.fields.data import grouped_states
from bayesstruct.fields.kernels.potentials import KINDS
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
from bayesstruct.fields.priors.interactions import interaction_strengths, negligible_probability
from bayesstruct.sparse.priors.group_laplace import GroupLaplace
from bayesstruct.sparse.priors.group_spike_and_slab import GroupSpikeAndSlab
from bayesstruct.sparse.priors.included import included
from bayesstruct.sparse.priors.spike_and_slab import SpikeAndSlab

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import networkx

    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorVariable

    from bayesstruct.data.edge_priors import StochasticBlock
    from bayesstruct.data.intake import TableLike

__all__ = ["pairwise_mrf"]

_OPTIONS = {
    "spike_slab": {"edge_probability", "slab", "slab_scale", "required", "forbidden"},
    "group_laplace": {"rate", "norm", "negligible"},
}
_KINDS = tuple(kind for kind in KINDS if kind != "spin")  # spins are `ising(coding="pm")`
_COMPARING = {"ising", "generalized_ising"}  # these compare the states of two columns
_NORMS = (1, 2, math.inf, "nuclear")


def pairwise_mrf(
    data: "TableLike | Mapping[Any, TableLike]",
    *,
    potentials: str = "full",
    prior: str = "spike_slab",
    likelihood: str = "pseudo",
    graph: "networkx.Graph | Iterable[tuple[str, str]] | None" = None,
    norm: float | str | None = None,
    rate: float | None = None,
    edge_probability: "float | ArrayLike | TensorVariable | StochasticBlock | None" = None,
    required: "Iterable[tuple[str, str]] | None" = None,
    forbidden: "Iterable[tuple[str, str]] | None" = None,
    slab: str | None = None,
    slab_scale: float | None = None,
    negligible: float | None = None,
    reference: int = 0,
    bias_scale: float = 5.0,
    states: Any = None,
    missing_codes: Any = None,
    row_counts: Any = None,
    group: Any = None,
    difference_probability: Any = None,
    difference_scale: float | None = None,
) -> pm.Model:
    r"""Learn which categorical or ordinal columns depend on each other, given all others.

    .. math:: P(x) = \frac1Z \exp\Bigl(\sum_i u_i(x_i) + \sum_{i<j} t_{ij}(x_i, x_j)\Bigr)

    Columns may have different numbers of states. Missing values are imputed in the model.
    :func:`bayesstruct.find_MAP` gives the most probable graph, with the mode of the weights given it
    (spike and slab), or the sparse mode (group Laplace).

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table of states: text, integers, booleans, ordered or unordered categories. Missing
        values are allowed. Or one table for each group, by its label.
    potentials : {"full", "ising", "generalized_ising", "ordinal", "blume_capel"}
        The tables :math:`t`: ``"full"`` has a weight for each pair of states; ``"ising"`` one weight for
        equal states, ``"generalized_ising"`` one for each state of both columns (equal
        numbers of states); ``"ordinal"`` is the weight times the product of the two states,
        counted from 0 (Marsman, van den Bergh and Haslbeck 2025), and ``"blume_capel"`` the same
        with :math:`u(s) = \alpha s + \beta (s - r)^2`, r being `reference`.
    prior : {"spike_slab", "group_laplace"}
        Joint prior of the weights of each pair. ``"spike_slab"`` gives each edge a probability;
        ``"group_laplace"`` only shrinks, and an edge is then an interaction beyond `negligible`: the
        more weights a pair has, the noisier its strength, and the larger `negligible` should be.
    likelihood : {"pseudo", "exact"}
        As in :func:`~bayesstruct.models.ising`: ``"pseudo"`` makes a *composite* posterior, which is overconfident
        about edges, the more so the more states there are.
    graph : networkx.Graph or iterable of pairs of column names, optional
        The edges that may be present, as in :func:`~bayesstruct.models.ising`.
    norm : {2, numpy.inf, "nuclear", 1}, optional
        Norm of the weights of a pair (group Laplace), 2 by default.
    rate : float, optional
        Rate of the group-Laplace prior, 1 by default: the penalty :math:`\lambda` of a summed
        log-likelihood, :math:`\lambda \sum_{ij} \|w_{ij}\|`.
    edge_probability, required, forbidden, slab
        As in :func:`~bayesstruct.models.ising`.
    slab_scale : float, optional
        Scale of the weights of a pair (spike and slab), 1 by default. For ordinal and Blume-Capel
        potentials the scale for two binary columns, a log odds ratio; a pair of :math:`k` and :math:`l`
        states has :math:`3 / \sqrt{(k^2 - 1)(l^2 - 1)}` times this scale, see the notes.
    negligible : float, optional
        Strength of an interaction up to which there is no edge (group Laplace), 0.2 by default.
    reference : int, default 0
        The state, counted from 0, from which Blume-Capel biases measure distance.
    bias_scale : float, default 5
        Standard deviation of the biases; infinity makes their prior flat.
    states : list or dict of lists, optional
        All states of each column, in order, also those that never occur and have their prior: one list for all
        columns, or a dict with one for each of some. Categories of pandas and polars declare theirs.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.
    row_counts : (n,) array_like of int or str, optional
        How often each row was observed, or the name of the column that says so: a table of frequencies. The
        result is that of the table with repeated rows.
    group : str or (n,) array_like, optional
        Name of the column that holds the group of each row, or the groups, as in :func:`~bayesstruct.models.ising`: which dependences
        differ between them? With potentials of one weight for each pair (ordinal, Blume-Capel, Ising), ``prior="spike_slab"`` and normal
        slabs.
    difference_probability
        As in :func:`~bayesstruct.models.ising`.
    difference_scale : float, optional
        Standard deviation of each contrast between groups of a weight that differs, 1 by default; scaled as `slab_scale` is.

    Returns
    -------
    pymc.Model
        With ``bias`` (bias_label), ``weight`` and ``edge`` (pair), ``x``, the table as states counted
        from 0, ``x_missing`` if values are missing, and, if a pair has several weights,
        ``potential`` (cell): ``weight`` is then the strength of the interaction,
        :func:`bayesstruct.distributions.interaction_strengths`. With groups ``bias`` (group, bias_label), ``weight`` (group, pair),
        ``relation`` (pair: 0 absent, 1 equal, 2 different) and ``difference`` (pair).

    Raises
    ------
    TableError
        If the table or the graph cannot be used; the message names the column and the remedy.
    ValueError
        For an unknown option, one out of range, one of another prior, potentials that
        do not apply to the numbers of states, or an exact likelihood that would take too long: more
        than 2^22 joint states, and a graph with so many cycles that tables of more than 2^22 cells
        are needed.

    Warns
    -----
    TableWarning
        If potentials use the order of states and nobody gave one, columns have the same states in different orders, or
        whole numbers between states never occur; if potentials compare states and columns have different ones. If a column
        has one state only in a group.

    Notes
    -----
    Row and column means of a full table can be moved into the biases without changing the
    distribution. The group norms make them zero at the mode; in single draws they are not.

    The weight of an ordinal pair multiplies the product of two scores, which increases with the number of
    states, so that one prior scale would mean different strengths. The rule fixes the
    scale of the weight of *standardised* scores: :math:`(k^2 - 1) / 12` is the variance of
    0, ..., k - 1 if all are equally frequent. Two columns with an edge then have the same prior of
    their correlation r whatever their numbers of states: by default, with a normal slab and equally
    frequent states, a median of abs(r) of 0.17, and 0.39 in one case of ten.

    The pointwise log likelihood (``pm.compute_log_likelihood``) of a row with missing values is that of the row as it was
    completed in each draw: ``az.loo`` then takes drawn values for observed ones. Compare models by rows that are complete.

    References
    ----------
    Schmidt, M. (2010). Graphical model structure learning with l1-regularization. PhD thesis,
    University of British Columbia, sections 1.5 and 5.2.

    Marsman, M., van den Bergh, D. and Haslbeck, J. M. B. (2025). Bayesian analysis of the ordinal
    Markov random field. *Psychometrika* 90, 146-182.

    Examples
    --------
    .. code-block:: python

        with bs.models.pairwise_mrf(answers, potentials="ordinal"):
            idata = pm.sample()
        bs.edge_table(idata)

    Which dependences differ between groups of rows:

    .. code-block:: python

        with bs.models.pairwise_mrf(answers, potentials="ordinal", group="country"):
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
        norm=norm,
        rate=rate,
        edge_probability=edge_probability,
        required=required,
        forbidden=forbidden,
        slab=slab,
        slab_scale=slab_scale,
        negligible=negligible,
    )
    if potentials not in _KINDS:
        raise ValueError(nearest("potentials", potentials, _KINDS))
    refuse_coded_states(states, missing_codes)
    if reference != 0 and potentials != "blume_capel":
        raise ValueError(
            '`reference` applies to potentials="blume_capel" only: leave it out, or choose these potentials'
        )
    if grouped:
        reading = {"states": states, "missing_codes": missing_codes, "row_counts": row_counts}
        rows = grouped_states(data, group, **reading, single="pairwise_mrf")
        family = _family(rows.table, potentials, reference, graph, likelihood, absent=True)
        return _of_groups(rows, family, given | differing, likelihood, bias_scale, missing_codes)
    [data] = repeated_rows(row_counts, data)
    table = StateTable.read(without_codes(data, missing_codes), states=states)
    family = _family(table, potentials, reference, graph, likelihood, absent=prior == "spike_slab")
    if bias_scale == math.inf:
        table.refuse_unseen(
            "with a flat prior of the biases they have none; give a finite bias_scale"
        )
    with pm.Model(coords=field_coords(table, family)) as model:
        record_codes(missing_codes)
        bias = add_biases(_bias_labels(table, family), "bias_label", bias_scale)
        weights, implied, cut = _PRIORS[prior](table, family, given)
        record_field(family, implied, cut)
        observe_states(table, bias, weights, potentials=family, likelihood=likelihood)
    return model


def _family(table, potentials, reference, graph, likelihood, *, absent):
    """Potentials of the table, after a check of the likelihood and warnings about the order of states."""
    family = field_potentials(table, potentials, reference, graph)
    check_likelihood(likelihood, family, absent=absent)
    if family.scored:
        warn_about_order(table)
        warn_about_opposite_orders(table)
        warn_about_words(table)
    if potentials in _COMPARING:
        warn_about_equality(table)
    return family


def _of_groups(rows, family, options, likelihood, bias_scale, missing_codes):
    """Model of several groups of rows."""
    if not _one_weight(family):
        raise ValueError(
            'several groups of rows go with potentials of one weight for each pair, "ordinal", "blume_capel" or "ising", '
            f"not {family.kind!r}: choose one of these, bs.models.ising for binary columns, or fit each group alone"
        )
    table = rows.table
    if bias_scale == math.inf:
        rows.refuse_unseen("with a flat prior its bias there has none; give a finite bias_scale")
    coords = field_coords(table, family) | {"group": list(rows.labels)}
    with pm.Model(coords=coords) as model:
        record_codes(missing_codes)
        labels = _bias_labels(table, family)
        bias = add_biases(labels, "bias_label", bias_scale, group="group")
        weight = add_group_weights(rows, family, options, relative=_relative_scale(family))
        observe_group_states(rows, bias, weight, potentials=family, likelihood=likelihood)
    return model


def _bias_labels(table, family):
    if family.kind == "blume_capel":
        parts = [("linear", "quadratic")[: min(k - 1, 2)] for k in table.states]
    else:
        parts = [levels[1:] for levels in table.levels]
    return [f"{name}={part}" for name, own in zip(table.names, parts, strict=True) for part in own]


def _cell_labels(table, family):
    labels = []
    for i, j in zip(*family.ends, strict=True):
        a, b = table.names[i], table.names[j]
        if family.kind == "full":
            labels += [f"{a}={s} -- {b}={t}" for s in table.levels[i] for t in table.levels[j]]
        else:
            labels += [f"{a} -- {b}, both {s}" for s in range(table.states[i])]
    return labels


def _one_weight(family):
    return family.weight_size == len(family.ends[0])


def _group_laplace(table, family, options):
    rate, norm = float(options.get("rate", 1.0)), options.get("norm", 2)
    cut = float(options.get("negligible", 0.2))
    if norm not in _NORMS:
        raise ValueError(f"`norm` must be one of {_NORMS}, it is {norm!r}")
    if _one_weight(family):  # all norms are the absolute value
        weights = weight = pm.Laplace("weight", 0.0, 1.0 / rate, dims="pair")
        implied = np.exp(-rate * cut)
    else:
        weights = _potential(table, family, rate, norm)
        strength = interaction_strengths(weights, family)
        weight = pm.Deterministic("weight", strength, dims="pair")
        implied = negligible_probability(family, rate, norm, cut)
    present = pt.gt(pt.abs(weight), cut).astype("int64")
    pm.Deterministic("edge", present, dims="pair")
    return weights, implied, cut


def _potential(table, family, rate, norm):
    pm.modelcontext(None).add_coord("cell", _cell_labels(table, family))
    if norm == 1:
        return pm.Laplace("potential", 0.0, 1.0 / rate, dims="cell")
    shapes = {"shapes": family.shapes} if norm == "nuclear" else {}
    groups = family.edge_of_weight
    return GroupLaplace("potential", groups, rate, norm=norm, **shapes, dims="cell")


def _spike_slab(table, family, options):
    inclusion, implied = edge_inclusion(
        table,
        family,
        options.get("edge_probability", 0.5),
        options.get("required", ()),
        options.get("forbidden", ()),
    )
    scale, slab = float(options.get("slab_scale", 1.0)), options.get("slab", "normal")
    if _one_weight(family):
        scale = scale * _relative_scale(family)
        weight = SpikeAndSlab("weight", inclusion, scale, slab=slab, dims="pair")
        included("edge", weight, dims="pair")
        record_slab(scale, slab, family)
        return weight, implied, 0.0
    pm.modelcontext(None).add_coord("cell", _cell_labels(table, family))
    groups = family.edge_of_weight
    potential = GroupSpikeAndSlab(
        "potential", inclusion, scale, groups=groups, slab=slab, dims="cell"
    )
    first = pt.as_tensor_variable(family.weight_start[:-1])
    included("edge", potential[first], dims="pair")
    pm.Deterministic("weight", interaction_strengths(potential, family), dims="pair")
    return potential, implied, 0.0


def _relative_scale(family):
    """Scale of the weight of each pair, relative to two binary columns; see `pairwise_mrf`."""
    i, j = family.ends
    if not family.scored:
        return np.ones(len(i))
    spread = np.sqrt(np.asarray(family.states) ** 2 - 1.0)
    return 3.0 / (spread[i] * spread[j])


_PRIORS = {"spike_slab": _spike_slab, "group_laplace": _group_laplace}
