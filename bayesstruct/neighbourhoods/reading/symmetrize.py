"""Dependency networks: the undirected graph read from their arcs, and predictions of single values."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import variables
from bayesstruct.core.recorded import Recorded, constant
from bayesstruct.core.tables.codings import ColumnUnits, StateLevels
from bayesstruct.core.tables.predictions import (
    incomplete_rows,
    normal_mixture,
    number_table,
    register_prediction,
    state_shares,
    state_table,
)
from bayesstruct.data.coding import NumberCoding, StateCoding, row_labels
from bayesstruct.data.errors import TableError
from bayesstruct.data.states import StateTable
from bayesstruct.graphs.groups import CONSTANTS, SAMPLE_DIMS, group_dataset, parameter_draws
from bayesstruct.graphs.posteriors.arcs import blocks
from bayesstruct.graphs.posteriors.estimators import RESOLUTION
from bayesstruct.graphs.posteriors.reading import read_arcs
from bayesstruct.graphs.records import (
    EdgeEnds,
    EdgePrior,
    EdgeProducts,
    Visited,
    with_fixed,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.data.intake import TableLike

__all__ = ["ColumnMeans", "NeighbourRows", "symmetrize"]

RULES = ("and", "or", "average")


@dataclass(frozen=True)
class ColumnMeans(Recorded):
    """Means of columns of 0 and 1, from which predictors are measured.

    Attributes
    ----------
    mean : (p,) ndarray of float
    """

    mean: np.ndarray = constant("column_mean", "node")


@dataclass(frozen=True, eq=False)
class NeighbourRows:
    """Distributions of a value given all others of its row, one for each draw.

    Attributes
    ----------
    coding : NumberCoding or StateCoding
    intercept : (draws, p) ndarray of float
    coefficients : (draws, p, p) ndarray of float
        Rows are responses.
    center : (p,) ndarray of float
        From which predictors are measured.
    deviation : (draws, p) ndarray of float, optional
        Of the noise; None for logistic regressions.
    """

    coding: NumberCoding | StateCoding
    intercept: np.ndarray
    coefficients: np.ndarray
    center: np.ndarray
    deviation: np.ndarray | None

    def predict(self, data: "TableLike", prob: float) -> "pd.DataFrame":
        """Table of the empty values; see `bayesstruct.predict`.

        Raises
        ------
        TableError
            If a row has more than one empty value: the regressions have no joint distribution.
        """
        table = self.coding.read(data)
        labels = row_labels(data, table.n)
        x = table.codes if isinstance(table, StateTable) else table.standardized
        found: list[tuple] = []
        for row, missing in incomplete_rows(table.missing):
            if len(missing) > 1:
                raise TableError(
                    f"row {labels[row]!r} has {len(missing)} empty values, and regressions of columns on one another "
                    "predict one from all others: fill in the others, or use a model of rows (gaussian_graphical, ising)"
                )
            found += self._lines(table, labels[row], x[row], int(missing[0]), prob)
        return number_table(found) if self.deviation is not None else state_table(found)

    def _lines(self, table, label, x, j, prob):
        z = np.where(np.arange(len(x)) == j, 0.0, x - self.center)
        mean, place = self.intercept[:, j] + self.coefficients[:, j] @ z, (label, table.names[j])
        if self.deviation is not None:
            location, scale = table.location[j], table.scale[j]
            moments = location + scale * mean, scale * self.deviation[:, j]
            return [(*place, *normal_mixture(*moments, prob))]
        chance = 1.0 / (1.0 + np.exp(-mean))
        shares = state_shares(np.column_stack([1.0 - chance, chance]), label, prob)
        return [(*place, *state) for state in zip(table.levels[j], *shares, strict=True)]


def neighbour_rows(idata: "xr.DataTree") -> NeighbourRows:
    """Return the regressions of each draw of a neighbourhood model."""
    constants = group_dataset(idata, CONSTANTS)
    names = constants["node"].values.tolist()
    intercept, coefficients = parameter_draws(idata, "intercept", "coefficients")
    if ColumnMeans.is_in(constants):
        coding, center = StateLevels.coding(constants, names), ColumnMeans.read(constants).mean
        return NeighbourRows(coding, intercept, coefficients, center, None)
    units = ColumnUnits.read(constants).coding(names)
    (variance,) = parameter_draws(idata, "noise_variance")
    center = np.zeros(len(names))
    return NeighbourRows(units, intercept, coefficients, center, np.sqrt(variance))


def symmetrize(idata: "xr.DataTree", rule: str = "and") -> "xr.DataTree":
    r"""Read an undirected graph from the arcs of a neighbourhood model.

    A neighbourhood model is a dependency network, p regressions fitted independently of each
    other, and **not a joint posterior over undirected graphs**: the result summarises the
    regressions by a rule [1]_ [2]_, and its probabilities are those that the rule holds for the arcs.
    They are not probabilities of edges in a joint model such as
    :func:`bayesstruct.models.gaussian_graphical`.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.sample_neighbourhoods` or ``pm.sample()``.
    rule : {"and", "or", "average"}
        ``"and"`` joins two columns when each predicts the other, ``"or"`` when one of them does.
        ``"average"`` takes the mean of the two probabilities, as if one of the two regressions
        were chosen at random.

    Returns
    -------
    xarray.DataTree
        With ``edge`` and ``weight`` over ``pair``, so that :func:`~bayesstruct.edge_table`,
        :func:`~bayesstruct.median_graph`, :func:`~bayesstruct.compare`,
        :func:`~bayesstruct.plot_graph` and all others work as for an undirected model. ``weight`` is
        the mean over the two regressions: of the couplings for binary columns, of the
        partial correlations :math:`w_{ij} \sqrt{v_j / v_i}` and :math:`w_{ji} \sqrt{v_i / v_j}`,
        with the noise variances v, for Gaussian ones. Under a spike-and-slab prior it is 0 in
        draws without the edge (rules "and" and "or"). Replicated tables and log likelihoods are
        kept: they are those of the regressions.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of a neighbourhood model, or the rule is unknown.

    Notes
    -----
    Given the table the regressions are independent, so that with :math:`p_{ij} = P(i \to j)`

    .. math::

        P(\mathrm{AND}) = p_{ij} p_{ji}, \qquad
        P(\mathrm{OR}) = 1 - (1 - p_{ij}) (1 - p_{ji})

    exactly. ``edge_table`` and the other readers report these products (``attrs["estimator"]`` is
    "product"), with the Rao-Blackwell estimates of :math:`p_{ij}` where the result has them: the
    error is smaller than that of the frequency of ``edge``. The two agree up to Monte Carlo error.
    A draw of ``edge`` combines draws of the same number, which for independent regressions is as
    good as any other combination. Regressions with the horseshoe prior share its global scale;
    there the frequency of the joint draws is used. In the draws of ``"average"`` one of the two
    regressions is chosen at random, with the same random numbers in each call.

    The two regressions of a pair use the same rows, and these rules count them as if they were two
    samples. ``weight``, the mean of two draws that are independent given the table, therefore
    spreads less than either: where both agree, its intervals are narrower than those of a
    joint model by up to :math:`1 / \sqrt 2`. Bayes factors of ``"and"`` and ``"or"`` compare the
    rule's probabilities with those that the same rule gives under the prior; for ``"and"`` they can exceed
    those of both arcs.

    References
    ----------
    .. [1] Meinshausen and Bühlmann (2006). High-dimensional graphs and variable selection with the
       lasso. Annals of Statistics 34, 1436-1462, section 3.
    .. [2] Ravikumar, Wainwright and Lafferty (2010). High-dimensional Ising model selection using
       l1-regularized logistic regression. Annals of Statistics 38, 1287-1319.

    Examples
    --------
    >>> edge_table(symmetrize(idata, "or"))  # doctest: +SKIP
    """
    import xarray as xr

    from bayesstruct.data.names import nearest

    if rule not in RULES:
        raise ValueError(nearest("rule", rule, RULES))
    posterior = read_arcs(idata)
    if posterior.acyclic:
        raise ValueError(
            "This is the result of a Bayesian network, whose arcs are one graph and not two "
            "regressions of each pair: read it with bs.arc_table, bs.median_graph or bs.cpdag."
        )
    i, j = np.triu_indices(len(posterior.variables), 1)
    there, back = posterior.position[j, i], posterior.position[i, j]
    edge = _edges(posterior, there, back, rule)
    labels = [
        f"{a} -- {b}"
        for k, a in enumerate(posterior.variables)
        for b in posterior.variables[k + 1 :]
    ]
    coords = {
        "chain": posterior.draws["chain"].values,
        "draw": posterior.draws["draw"].values,
        "node": posterior.variables,
        "pair": labels,
    }
    sample, constants = SAMPLE_DIMS, _constants(posterior, there, back, i, j, rule)
    kept = np.flatnonzero(posterior.has_weights[there] | posterior.has_weights[back])
    weight = _weights(posterior, there[kept], back[kept], edge[..., kept], rule)
    over = "pair"
    if len(kept) < len(i):
        coords["visited_pair"] = np.array(labels)[kept]
        constants |= Visited(kept).variables()
        over = "visited_pair"
    draws = {"edge": ((*sample, "pair"), edge), "weight": ((*sample, over), weight)}
    here = {name: coords[name] for name in ("node", "pair", "visited_pair") if name in coords}
    groups = {
        "posterior": xr.Dataset(draws, coords, posterior.draws.attrs | _ATTRS | {"rule": rule}),
        "constant_data": xr.Dataset(constants, here),
    }
    for name in ("sample_stats", "observed_data", "posterior_predictive", "log_likelihood"):
        if name in idata.children:
            groups[name] = idata[name].to_dataset()
    return xr.DataTree.from_dict(groups)


_ATTRS = {"dependency_network": "p independent regressions, not a joint posterior over graphs"}


def _edges(posterior, there, back, rule):
    """Draws of the undirected indicators, chain by chain."""
    arcs = posterior.indicators
    out = np.empty((*arcs.shape[:2], len(there)), "int8")
    rng = np.random.default_rng(0)
    for chain, draws in enumerate(arcs):
        for t, draw in enumerate(draws):
            one, other = draw[there], draw[back]
            if rule == "and":
                out[chain, t] = one & other
            elif rule == "or":
                out[chain, t] = one | other
            else:
                out[chain, t] = np.where(rng.random(len(one)) < 0.5, one, other)
    return out


def _weights(posterior, there, back, edge, rule):
    """Mean of the two weights of a pair, one from each regression."""
    weight = np.empty(edge.shape, posterior.draws["weight"].dtype)
    i, j = posterior.source[there], posterior.target[there]
    root = None
    if "noise_variance" in posterior.draws:
        root = np.sqrt(posterior.draws["noise_variance"].transpose(*SAMPLE_DIMS, "node").values)
    for at in blocks(np.arange(len(there))):
        one, other = posterior.weights(there[at]), posterior.weights(back[at])
        if root is not None:
            # `one` is the coefficient of column i in the regression of column j
            ratio = root[..., i[at]] / root[..., j[at]]
            one, other = one * ratio, other / ratio
        weight[..., at] = 0.5 * (one + other)
    if posterior.negligible == 0 and rule != "average":
        weight[edge == 0] = 0.0
    return weight


def _combine(one, other, rule):
    """Probabilities of presence and of absence, each accurate near zero."""
    if rule == "and":
        return one * other, (1 - one) + (1 - other) - (1 - one) * (1 - other)
    if rule == "or":
        return one + other - one * other, (1 - one) * (1 - other)
    return 0.5 * (one + other), 0.5 * ((1 - one) + (1 - other))


def _constants(posterior, there, back, i, j, rule):
    """Constants for the readers of the undirected posterior."""
    prior = posterior.prior
    one, other = prior[there], prior[back]
    if posterior.recorded.both is not None:
        both = float(posterior.recorded.both)
        edge_prior = {"and": both, "or": one + other - both, "average": 0.5 * (one + other)}[rule]
        edge_prior = np.broadcast_to(edge_prior, len(i)).copy()
    else:
        edge_prior, absent = _combine(one, other, rule)
        edge_prior = with_fixed(edge_prior, absent == 0, edge_prior == 0)
    recorded = [EdgeEnds(i, j), EdgePrior(edge_prior), ColumnUnits.read(posterior.constants)]
    if posterior.independent:
        probability = posterior.probability
        smallest = RESOLUTION if posterior.estimator.name == "rao-blackwell" else None
        products = _combine(probability[there], probability[back], rule)
        recorded.append(EdgeProducts(*products, smallest))
    return {name: value for one in recorded for name, value in one.variables().items()}


def _is_neighbourhood(idata) -> bool:
    known = variables(idata)
    return {"intercept", "coefficients", "arc"} <= known and "dag" not in known


register_prediction("neighbourhood models", _is_neighbourhood, neighbour_rows)
