"""Tables from linear structural equations with a known graph and any noise."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import generator, number, probability, refuse_given, whole_number
from bayesstruct.data.errors import TableError, column_list, listing
from bayesstruct.data.names import label_text
from bayesstruct.networks.simulate import own_dag, random_dag, set_from_outside
from bayesstruct.sem.kernels.effects import total_effects

if TYPE_CHECKING:
    import networkx
    import pandas

__all__ = ["NOISES", "LinearSEMSimulation", "linear_sem", "mixture_noise"]


def mixture_noise(weights, means, deviations) -> Callable:
    """Return a sampler of a mixture of normals, shifted and scaled to mean 0 and variance 1.

    Parameters
    ----------
    weights, means, deviations : (k,) array_like
        Of the components; weights need not sum to 1.

    Returns
    -------
    callable
        Of a generator and a number of rows: so many draws.

    Examples
    --------
    >>> bimodal = mixture_noise([1, 1], [-2, 2], [0.5, 0.5])
    >>> bimodal(np.random.default_rng(0), 3).shape
    (3,)
    """
    share = np.asarray(weights, np.float64) / np.sum(weights)
    middle, wide = np.asarray(means, np.float64), np.asarray(deviations, np.float64)
    mean = share @ middle
    scale = np.sqrt(share @ (wide**2 + middle**2) - mean**2)

    def draw(rng, n):
        component = rng.choice(len(share), n, p=share)
        return (middle[component] + wide[component] * rng.standard_normal(n) - mean) / scale

    return draw


#: Samplers of noise with mean 0 and variance 1, by name; "student" depends on its degrees of freedom.
NOISES: dict[str, Callable] = {
    "gaussian": lambda rng, n: rng.standard_normal(n),
    "laplace": lambda rng, n: rng.laplace(size=n) / np.sqrt(2),
    "uniform": lambda rng, n: rng.uniform(-np.sqrt(3), np.sqrt(3), n),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "bimodal": mixture_noise([0.5, 0.5], [-1.0, 1.0], [0.4, 0.4]),
    "skewed": mixture_noise([0.75, 0.25], [-0.5, 1.5], [0.5, 1.0]),
}
_NAMES = (*NOISES, "student")


@dataclass(frozen=True, eq=False, repr=False)
class LinearSEMSimulation:
    """A simulated table with the truth behind it.

    Attributes
    ----------
    data : pandas.DataFrame, shape (n, p)
        The table.
    graph : networkx.DiGraph
        The true graph; its nodes are the columns of `data`, in order.
    coefficients : pandas.DataFrame, shape (p, p)
        Row the child, column the parent, exactly zero without an arc.
    noise_scale : pandas.Series, length p
        Standard deviation of the noise of each column.
    noise : pandas.Series, length p
        Name of the distribution of the noise of each column; ``"custom"`` for a function.
    interventions : pandas.DataFrame of bool, shape (n, p)
        Where a value was set from outside.
    """

    data: "pandas.DataFrame"
    graph: "networkx.DiGraph"
    coefficients: "pandas.DataFrame"
    noise_scale: "pandas.Series"
    noise: "pandas.Series"
    interventions: "pandas.DataFrame"

    @property
    def total_effects(self) -> "pandas.DataFrame":
        """Change of the row's column per unit by which the column's column is set, (p, p); 1 on the diagonal."""
        import networkx as nx
        import pandas as pd

        names = list(self.graph.nodes)
        order = [names.index(name) for name in nx.topological_sort(self.graph)]
        return pd.DataFrame(total_effects(self.coefficients.to_numpy(), order), names, names)

    def __repr__(self) -> str:
        n, p = self.data.shape
        arcs = self.graph.number_of_edges()
        return f"LinearSEMSimulation({n:,} x {p:,} table, {arcs:,} arcs)"


def linear_sem(
    n: int,
    p: int = 10,
    *,
    noise: "str | Callable | Mapping" = "laplace",
    variances: "float | tuple[float, float] | Mapping" = (1.0, 3.0),
    graph: "networkx.DiGraph | None" = None,
    expected_neighbours: float | None = None,
    max_parents: int | None = None,
    weights: tuple[float, float] = (0.5, 1.5),
    degrees: float | None = None,
    interventions: float = 0.0,
    random_seed: int | np.random.Generator | None = None,
) -> LinearSEMSimulation:
    r"""Simulate a table from linear structural equations.

    .. math:: x_i = \sum_{j \in \mathrm{pa}_i} b_{ij} x_j + s_i e_i

    with independent noise e of mean 0 and variance 1.

    Parameters
    ----------
    n : int
        Number of rows.
    p : int, default 10
        Number of variables, named ``x0``, ``x1``, ... Not used if `graph` is given.
    noise : str, callable or mapping, default "laplace"
        Distribution of e: ``"gaussian"``, ``"laplace"``, ``"student"``, ``"uniform"``,
        ``"exponential"`` (skewed, bounded below), ``"bimodal"`` or ``"skewed"`` (mixtures of two
        normals). Or a function of a ``numpy.random.Generator`` and n that returns n numbers of
        mean 0 and variance 1. Or one of these for each column, by its name.
    variances : float, pair of float or mapping, default (1, 3)
        :math:`s_i^2`: the same number for all columns; a range, within which each is uniform;
        or one number for each column, by its name.
    graph : networkx.DiGraph, optional
        The graph, in place of a random one; its nodes give the names.
    expected_neighbours : float, optional
        Of the random graph only, 4 by default: an order of the variables is drawn, and each pair is an arc along it
        with probability ``expected_neighbours / (p - 1)``, at most 1.
    max_parents : int, optional
        Of the random graph only: a variable with more parents keeps a random choice of so many.
    weights : pair of float, default (0.5, 1.5)
        Smallest and largest absolute coefficient; each is uniform between them, its sign a fair
        coin.
    degrees : float, optional
        Degrees of freedom of ``"student"`` only, above 2; 5 by default.
    interventions : float, default 0
        Probability that in a row one variable, each equally likely, is set to a standard normal
        value from outside.
    random_seed : int or numpy.random.Generator, optional
        The same seed gives the same simulation.

    Returns
    -------
    LinearSEMSimulation

    Raises
    ------
    TableError
        If a mapping leaves out a column or names an unknown one.
    TypeError, ValueError
        If `graph` is not a directed acyclic graph of 2 or more nodes, `noise` is not known, or an
        option is out of range or does not apply.

    Notes
    -----
    Where the variances of the noise do not differ much, variances of the columns grow along the arcs, and
    sorting the columns by variance nearly tells the order [2]_. Standardise the columns, or compare
    with methods that do not depend on their units.

    References
    ----------
    .. [1] S. Shimizu et al. (2011). DirectLiNGAM: a direct method for learning a linear non-Gaussian
       structural equation model. *JMLR* 12, 1225-1248, section 4.1.
    .. [2] A. Reisach, C. Seiler and S. Weichwald (2021). Beware of the simulated DAG! Causal discovery
       benchmarks may be easy to game. NeurIPS 34, 27772-27784.

    Examples
    --------
    >>> simulation = linear_sem(100, p=6, noise="uniform", expected_neighbours=2, random_seed=1)
    >>> simulation.data.shape
    (100, 6)
    """
    import networkx as nx
    import pandas as pd

    n = whole_number("n", n, 1)
    low, high = _range("weights", weights, least=0)
    rng = generator(random_seed)
    if graph is None:
        most = p if max_parents is None else max_parents
        near = 4.0 if expected_neighbours is None else expected_neighbours
        truth = random_dag(p, near, most, rng)
    else:
        refuse_given(
            "a graph that is drawn, and here is a `graph`",
            expected_neighbours=expected_neighbours,
            max_parents=max_parents,
        )
        truth = own_dag(graph)
    names = list(truth.nodes)
    words, samplers = _noises(noise, names, degrees)
    scale = np.sqrt(_variances(variances, names, rng))
    if interventions not in (0, 1):
        probability("interventions", interventions)
    mask = set_from_outside(n, len(names), interventions, rng)
    arcs = nx.to_numpy_array(truth, weight=None).T != 0
    size = rng.uniform(low, high, arcs.shape) * rng.choice([-1.0, 1.0], arcs.shape)
    direct = np.where(arcs, size, 0.0)
    values = scale * np.column_stack([_drawn(draw, rng, n) for draw in samplers])
    outside = rng.standard_normal(mask.shape)
    for name in nx.topological_sort(truth):
        i = names.index(name)
        values[:, i] += values @ direct[i]  # its own coefficient is 0
        values[mask[:, i], i] = outside[mask[:, i], i]
    return LinearSEMSimulation(
        data=pd.DataFrame(values, columns=names),
        graph=truth,
        coefficients=pd.DataFrame(direct, names, names),
        noise_scale=pd.Series(scale, names),
        noise=pd.Series(words, names),
        interventions=pd.DataFrame(mask, columns=names),
    )


def _noises(noise, names, degrees):
    """Names and samplers of the noise of each column."""
    freedom = 5.0 if degrees is None else number("degrees", degrees, above=2)

    def student(rng, n):
        return rng.standard_t(freedom, n) * np.sqrt((freedom - 2) / freedom)

    known = {**NOISES, "student": student}
    each = _each("noise", noise, names) if isinstance(noise, Mapping) else [noise] * len(names)
    for one in each:
        if not callable(one) and one not in known:
            raise ValueError(
                f"`noise` must be one of {', '.join(map(repr, _NAMES))}, a function of a generator and a "
                f"number of rows, or one of these for each column, not {one!r:.60}"
            )
    words = ["custom" if callable(one) else one for one in each]
    if "student" not in words:
        refuse_given("noise='student'", degrees=degrees)
    return words, [one if callable(one) else known[one] for one in each]


def _drawn(draw, rng, n):
    values = np.asarray(draw(rng, n), np.float64)
    if values.shape != (n,) or not np.isfinite(values).all():
        raise ValueError(
            f"the function in `noise` must return {n} finite numbers, it returned an array of shape {values.shape}"
        )
    return values


def _variances(variances, names, rng):
    if isinstance(variances, Mapping) or hasattr(variances, "items"):
        each = _each("variances", variances, names)
        return np.array([number("variances", one, above=0) for one in each])
    if np.ndim(variances) == 0:
        return np.full(len(names), number("variances", variances, above=0))
    low, high = _range("variances", variances, above=0)
    return rng.uniform(low, high, len(names))


def _each(option, values, names):
    """One value for each column, from a mapping by name."""
    values = {label_text(key): value for key, value in values.items()}
    if unknown := [key for key in values if key not in names]:
        raise TableError(
            f"`{option}` names the unknown {column_list(unknown)}; the columns are {listing(names)}"
        )
    if lost := [name for name in names if name not in values]:
        raise TableError(
            f"`{option}` leaves out {column_list(lost)}: give a value for every column"
        )
    return [values[name] for name in names]


def _range(option, pair, **bounds):
    try:
        low, high = pair
    except (TypeError, ValueError):
        raise ValueError(f"`{option}` is a range (smallest, largest), it is {pair!r:.60}") from None
    low, high = number(option, low, **bounds), number(option, high, **bounds)
    if low > high:
        raise ValueError(f"`{option}` is a range (smallest, largest), it is {pair!r:.60}")
    return low, high
