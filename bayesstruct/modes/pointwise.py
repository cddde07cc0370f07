"""Log likelihood and predictive draws of each value of a table given the rest of its row."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.tables.codings import ColumnUnits
from bayesstruct.core.tables.observed import completed_tables, observed_table
from bayesstruct.data.arguments import generator, whole_number
from bayesstruct.fields.priors.records import FieldPotentials
from bayesstruct.fields.reading.conditionals import field_conditionals
from bayesstruct.graphs.groups import SAMPLE_DIMS
from bayesstruct.graphs.posteriors.arcs import DagPosterior
from bayesstruct.graphs.posteriors.edges import EdgePosterior
from bayesstruct.graphs.posteriors.reading import read
from bayesstruct.graphs.records import OrderedColumns, RowGroups, ValueWeighted
from bayesstruct.networks.priors.records import MixedColumns, NetworkStates, SetMask
from bayesstruct.networks.reading.conditionals import drawn_networks
from bayesstruct.networks.reading.mixed import mixed_coding
from bayesstruct.networks.reading.mixed_conditionals import drawn_mixed
from bayesstruct.sem.reading.conditionals import sem_conditionals
from bayesstruct.sem.reading.noise import has_other_noise
from bayesstruct.trees.reading.states import with_rooted_trees

if TYPE_CHECKING:
    import xarray as xr

    from numpy.random import Generator

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["pointwise"]

_TABLE = "x"
#: Of a complete table, the values that are not set from outside, and a generator: log probabilities, and draws.
_Conditional = Callable[[np.ndarray, np.ndarray, "Generator"], tuple[np.ndarray, np.ndarray]]


def pointwise(
    idata: "xr.DataTree",
    *,
    draws: int | None = None,
    random_seed: "int | Generator | None" = None,
) -> "xr.DataTree":
    r"""Log likelihood of each value given the rest of its row, with predictive draws to match.

    The likelihood of these models is one of whole rows, so that ``az.loo`` leaves out rows, and functions that compare
    single values with it, such as ``az.plot_loo_pit``, fail. In the result of this function an observation is a
    single value, whose distribution is that given the other columns of its row.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.gaussian_graphical` without covariates, of
        :func:`bayesstruct.models.ising` or :func:`bayesstruct.models.pairwise_mrf` (under either likelihood), of :func:`bayesstruct.models.tree` or
        :func:`bayesstruct.models.forest`, or of
        :func:`bayesstruct.models.bayesian_network` with score ``"bge"``, ``"bdeu"``, ``"bde"`` or ``"mixed"``, or of
        :func:`bayesstruct.models.linear_sem` or :func:`bayesstruct.models.lingam`; of groups of rows, that of one
        group, :func:`bayesstruct.one_group`.
    draws : int, optional
        Maximum number of draws of each chain that are used, spread evenly; by default all. The result holds two
        numbers for each draw and value of the table.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    xarray.DataTree
        Groups ``posterior``, ``observed_data``, ``log_likelihood`` and ``posterior_predictive``, the last three with
        ``x`` over (observation, node) in the units of the table, or as states 0, 1, .... If values are missing, or were
        set from outside, ``x`` is over ``value``, the others, named "column[row]".

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of such a model.

    Notes
    -----
    With K the precision matrix, the conditional distribution of a value of a normal row is
    :math:`N(\mu_j - \sum_{k \ne j} K_{jk} (x_k - \mu_k) / K_{jj}, 1 / K_{jj})`; in a Bayesian network
    :math:`p(x_j \mid x_{-j}) \propto p(x_j \mid \mathrm{pa}_j) \prod_c p(x_c \mid \mathrm{pa}_c)` over the children c.
    Missing values of a row are those of the posterior draw. Where noise is not normal, this product is normalised by Gauss-Legendre
    quadrature in each draw, row and column with children: some ten microseconds for each, more with a mixture; `draws` limits it.
    Of numbers of a ``"mixed"`` network that distribution is found on
    a grid of 129 points, unless it is normal.

    Leaving out a value is not leaving out its row: the sum over values is that of a pseudo-likelihood, no log score
    of rows. Compare models of whole rows by ``pm.compute_log_likelihood`` and ``az.compare``.

    Examples
    --------
    .. code-block:: python

        values = bs.pointwise(idata, draws=250, random_seed=1)
        az.loo(values)
        az.plot_loo_pit(values)
    """
    posterior = read(idata)
    _refuse_rows(posterior)
    table, missing = observed_table(idata)
    free = SetMask.free(posterior.constants, table.shape)
    rng, kept = generator(random_seed), _spread(posterior.draws.sizes["draw"], draws)
    chosen = posterior.draws.isel(draw=kept)
    completed = completed_tables(table, missing, chosen)
    shape = (posterior.n_chains, len(kept))
    shown = ~missing & free
    found = np.empty((2, *shape, *table.shape))
    of_draw = _family(posterior)(posterior, chosen)
    for c, d in np.ndindex(shape):
        found[:, c, d] = of_draw(c, d)(completed(c, d), free, rng)
    return _tree(chosen, table, found, shown, posterior.variables)


def _refuse_rows(posterior) -> None:
    """Raise for rows of several groups, and for those of a Gaussian graph that are not normal."""
    constants = posterior.constants
    if RowGroups.is_in(constants):
        raise ValueError(
            "this result has parameters of its own for each group of rows: read one group, bs.pointwise(bs.one_group(idata, label))"
        )
    OrderedColumns.refuse(constants, "this result has no densities of single values")
    if has_other_noise(constants):
        return
    if "degrees" in {*map(str, constants.data_vars), *map(str, posterior.draws.data_vars)}:
        rows = "; those of whole rows are: pm.compute_log_likelihood(idata)"
        raise ValueError(
            f"densities of single values are not known for t rows{'' if ValueWeighted.is_in(constants) else rows}"
        )


def _spread(size: int, draws: int | None) -> np.ndarray:
    most = size if draws is None else whole_number("draws", draws, 1)
    return np.unique(np.linspace(0, size - 1, min(most, size)).astype(int))


def _values(draws, name: str, *dims: str) -> np.ndarray:
    if name not in draws:
        raise ValueError(
            f"the result has no `{name}`, which is needed: sample it too (`var_names`)"
        )
    return draws[name].transpose(*SAMPLE_DIMS, *dims, ...).values


def _family(posterior: "GraphPosterior") -> Callable:
    names, constants = {*map(str, posterior.draws.data_vars)}, posterior.constants
    if FieldPotentials.is_in(constants):
        return _field
    if MixedColumns.is_in(constants):
        return _mixed_network
    if isinstance(posterior, DagPosterior) and {"weight", "noise_variance"} <= names:
        return _other_network if has_other_noise(constants) else _gaussian_network
    if isinstance(posterior, DagPosterior) and NetworkStates.is_in(constants):
        return _discrete_network
    if NetworkStates.is_in(constants) and isinstance(posterior, EdgePosterior):
        return _discrete_tree
    if {"precision", "mean"} <= names and "coefficients" not in names:
        return _graphical
    if "coefficients" in names and "precision" not in names:
        raise ValueError(
            "regressions of columns on one another have a likelihood of single values already: "
            "pm.compute_log_likelihood(idata)"
        )
    raise ValueError(
        "values given the rest of their row are known for results of gaussian_graphical without covariates, ising, "
        f"pairwise_mrf, tree, bayesian_network, linear_sem and lingam; this result holds {', '.join(sorted(names))}"
    )


def _normal(x, pull, precision, rng) -> tuple[np.ndarray, np.ndarray]:
    """Log density and draws of each value, from the derivative of the log density of rows and its curvature."""
    log_density = 0.5 * (np.log(precision) - np.log(2 * np.pi) - pull**2 / precision)
    drawn = x - pull / precision + rng.standard_normal(x.shape) / np.sqrt(precision)
    return log_density, drawn


def _in_units(posterior, standard: _Conditional) -> _Conditional:
    """Conditional distribution of a table in its units from that of the standardised one."""
    location, scale = ColumnUnits.read(posterior.constants).known()

    def conditional(x, free, rng):
        log_density, drawn = standard((x - location) / scale, free, rng)
        return log_density - np.log(scale), location + scale * drawn

    return conditional


def _graphical(posterior, draws):
    precision, mean = _values(draws, "precision", "node", "node_"), _values(draws, "mean", "node")

    def of_draw(c, d):
        k, centre = precision[c, d], mean[c, d]

        def standard(z, free, rng):
            return _normal(z, (z - centre) @ k, np.diag(k), rng)

        return _in_units(posterior, standard)

    return of_draw


def _gaussian_network(posterior, draws):
    matrix = posterior.matrix(_values(draws, "weight", posterior.dim)).mT  # rows are children
    intercept, variance = (_values(draws, n, "node") for n in ("intercept", "noise_variance"))

    def of_draw(c, d):
        away, weight = np.eye(matrix.shape[-1]) - matrix[c, d], 1 / variance[c, d]

        def standard(z, free, rng):
            # Columns that were set have no density, but those that they act on do.
            own = free * weight
            pull = (own * (z @ away.T - intercept[c, d])) @ away
            # A value that was set has no distribution; it is left out later.
            precision = np.where(free, own @ away**2, 1.0)
            return _normal(z, pull, precision, rng)

        return _in_units(posterior, standard)

    return of_draw


def _other_network(posterior, draws):
    equations = sem_conditionals(replace(posterior, draws=draws))

    def of_draw(c, d):
        return _in_units(posterior, equations(c, d).given_others)

    return of_draw


def _categories(logs, x, rng) -> tuple[np.ndarray, np.ndarray]:
    """Log probability of the states of one column, and draws; `logs` is (states, n)."""
    drawn = (np.cumsum(np.exp(logs), axis=0)[:-1] < rng.random(len(x))).sum(axis=0)
    return logs[x, np.arange(len(x))], drawn


def _of_columns(found, codes, rng) -> tuple[np.ndarray, ...]:
    """Log probabilities and draws of all columns from a list of log probabilities of their states."""
    pairs = [_categories(logs, codes[:, j], rng) for j, logs in enumerate(found)]
    return tuple(np.stack(own, axis=1) for own in zip(*pairs, strict=True))


def _field(posterior, draws):
    recorded = FieldPotentials.read(posterior.constants)
    potentials = recorded.with_edges(posterior.source, posterior.target)
    conditionals = field_conditionals(potentials, draws)

    def of_draw(c, d):
        states = conditionals(c, d)

        def conditional(x, free, rng):
            return _of_columns(states(x), x.astype(int), rng)

        return conditional

    return of_draw


def _discrete_tree(posterior, draws):
    return _discrete_network(posterior, with_rooted_trees(posterior, draws))


def _discrete_network(posterior, draws):
    networks = drawn_networks(draws, NetworkStates.read(posterior.constants).count.astype(int))

    def of_draw(c, d):
        network = networks(c, d)

        def conditional(x, free, rng):
            codes = x.astype(int)
            return _of_columns(network.given_others(codes, free), codes, rng)

        return conditional

    return of_draw


def _mixed_network(posterior, draws):
    coding = mixed_coding(posterior)
    networks = drawn_mixed(draws, coding.layout, coding.location, coding.scale)
    return lambda c, d: networks(c, d).given_others


def _tree(draws, table, found, shown, names) -> "xr.DataTree":
    import xarray as xr

    dims: tuple[str, ...] = ("observation", "node")
    coords = {"observation": np.arange(len(table)), "node": names}
    if not shown.all():
        dims = ("value",)
        coords = {"value": [f"{names[j]}[{i}]" for i, j in np.argwhere(shown)]}
        table, found = table[shown], found[..., shown]
    sample = {name: draws[name].values for name in SAMPLE_DIMS}
    groups = {"posterior": draws, "observed_data": xr.Dataset({_TABLE: (dims, table)}, coords)}
    for group, values in zip(("log_likelihood", "posterior_predictive"), found, strict=True):
        groups[group] = xr.Dataset({_TABLE: ((*SAMPLE_DIMS, *dims), values)}, sample | coords)
    return xr.DataTree.from_dict(groups)
