"""The distinct directed acyclic graphs of a posterior, or their equivalence classes, with weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from bayesstruct.graphs.ancestry import blocks, essential
from bayesstruct.graphs.digraphs import digraph, from_off_diagonal, off_diagonal
from bayesstruct.graphs.export import write_dot
from bayesstruct.graphs.mixing import series_ess, share_mcse
from bayesstruct.graphs.posteriors.arcs import DagPosterior
from bayesstruct.graphs.posteriors.base import distinct_rows
from bayesstruct.graphs.posteriors.reading import read_dags

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["DrawnGraphs", "ExactGraphs", "GraphWeights", "drawn_graphs", "graph_weights"]

_DIAGNOSED = 200  # graphs whose effective sample size is computed
_ROWS = 10  # of the table that are printed


@runtime_checkable
class ExactGraphs(Protocol):
    """An exact posterior over directed acyclic graphs, such as `bayesstruct.exact.DAGPosterior`."""

    @property
    def names(self) -> Sequence[str]:
        """Columns, of which rows and columns of graphs are."""
        ...

    def log_probabilities(self, graphs: np.ndarray) -> np.ndarray:
        """Log posterior probabilities of graphs (k, d, d), rows parents."""
        ...

    def all_graphs(self) -> tuple[np.ndarray, np.ndarray]:
        """All graphs of a few columns, and their posterior probabilities."""
        ...


@dataclass(frozen=True, eq=False)
class GraphWeights:
    """Directed acyclic graphs, or their Markov equivalence classes, with weights that add up to one; made by `graph_weights`.

    Attributes
    ----------
    names : tuple of str, length p
        Columns.
    matrices : ndarray of bool, shape (k, p, p)
        The graphs, rows parents, in the order of `table`; edges of a class whose direction is not fixed are there in both
        directions.
    table : pandas.DataFrame
        One row for each graph, the largest weight first; see `graph_weights`.
    classes : bool
        Whether they are equivalence classes.
    n_draws : int
        Number of draws; 0 for an exact posterior.
    unseen : float
        Estimated posterior probability of all graphs that are in no draw: the share of the draws whose graph was drawn
        once (Good 1953). Consecutive draws of a chain depend on each other, which makes it too small.

    Examples
    --------
    >>> weights = bs.graph_weights(idata)  # doctest: +SKIP
    >>> for graph in weights.graphs(5):  # doctest: +SKIP
    ...     print(graph.graph["weight"], sorted(graph.edges))
    """

    names: tuple[str, ...]
    matrices: np.ndarray
    table: "pd.DataFrame"
    classes: bool
    n_draws: int
    unseen: float
    _arc_probability: np.ndarray

    def __len__(self) -> int:
        return len(self.matrices)

    def to_frame(self) -> "pd.DataFrame":
        """Return the table."""
        return self.table

    def graph(self, k: int = 0) -> "nx.DiGraph":
        """Return graph number k of the table.

        Parameters
        ----------
        k : int
            0 is the graph of the largest weight.

        Returns
        -------
        networkx.DiGraph
            Arcs carry `probability`, that of the arc in the whole posterior; ``graph.graph`` has the `weight`. An
            edge of a class whose direction is not fixed is there in both directions.

        Raises
        ------
        IndexError
            If there is no such graph.
        """
        if not -len(self) <= k < len(self):
            raise IndexError(f"there are {len(self)} graphs, counted from 0; there is no graph {k}")
        graph = digraph(list(self.names), self.matrices[k])
        for i, j in np.argwhere(self.matrices[k]):
            arc = graph.edges[self.names[i], self.names[j]]
            arc["probability"] = float(self._arc_probability[i, j])
        graph.graph["weight"] = float(self.table["weight"].iloc[k])
        return graph

    def graphs(self, n: int | None = None) -> list["nx.DiGraph"]:
        """Return the n graphs of the largest weights, all by default; see `graph`."""
        return [self.graph(k) for k in range(len(self) if n is None else min(n, len(self)))]

    def needed(self, share: float = 0.95) -> int:
        """Return the number of graphs, those of the largest weights, that hold a share of the total weight.

        Raises
        ------
        ValueError
            If the share is not between 0 and 1.
        """
        if not 0 < share <= 1:
            raise ValueError(f"`share` must be above 0 and at most 1, got {share}.")
        # rounding of the sum must not ask for one graph more
        return int((self.table["cumulative"] < share - 1e-12).sum()) + 1

    def write_dot(self, folder: Any, n: int = 10) -> list[Path]:
        """Write the n graphs of the largest weights in the DOT language of Graphviz, one file each.

        Parameters
        ----------
        folder : str or Path
            Made if it does not exist; files are ``graph_001.dot`` and so on.
        n : int

        Returns
        -------
        list of pathlib.Path
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        return [
            write_dot(graph, folder / f"graph_{k:03}.dot")
            for k, graph in enumerate(self.graphs(n), 1)
        ]

    def __repr__(self):
        import pandas as pd

        with pd.option_context(
            "display.max_columns", None, "display.width", 120, "display.precision", 3
        ):
            return f"{self._headline()}\n\n{self._shown().to_string(index=False)}"

    def _repr_html_(self):
        table = self._shown().to_html(index=False, float_format="{:.3g}".format)
        return f"<p><b>{escape(self._headline())}</b></p>{table}"

    def _shown(self) -> "pd.DataFrame":
        return self.table.head(_ROWS).drop(columns="key")

    def _headline(self) -> str:
        what = "equivalence classes" if self.classes else "graphs"
        half, most = self.needed(0.5), self.needed(0.95)
        text = (
            f"{len(self):,} distinct {what}; {half:,} hold half of the weight, {most:,} hold 95 %"
        )
        if not self.n_draws:
            return f"{text}. Weights are exact."
        return f"{text}. About {self.unseen:.2g} of the posterior is on {what} that were not drawn."


def graph_weights(
    idata: "xr.DataTree | GraphPosterior | ExactGraphs",
    *,
    classes: bool = False,
    exact: ExactGraphs | None = None,
    group: str = "posterior",
) -> GraphWeights:
    """List the distinct directed acyclic graphs of a posterior, or their equivalence classes, with weights.

    Parameters
    ----------
    idata : xarray.DataTree or bayesstruct.exact.DAGPosterior
        Result of a model of directed acyclic graphs, such as :func:`bayesstruct.models.bayesian_network`. Or the exact
        posterior of up to five columns, of which all graphs are listed.
    classes : bool
        List Markov equivalence classes, by their essential graphs; the weight of a class is that of all its graphs.
    exact : bayesstruct.exact.DAGPosterior, optional
        The exact posterior for the same table and prior, of which the table then has the weights too. They show how
        far the draws are from it, and which share of the posterior the drawn graphs hold.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    GraphWeights
        Its ``table`` has one row for each graph, the largest weight first:

        weight
            Share of the draws; of an exact posterior the probability.
        mcse
            Monte Carlo standard error of the weight. The 200 most frequent graphs have effective sample sizes of their
            own, others the median of these. Absent for an exact posterior.
        count
            Number of draws. Absent for an exact posterior.
        cumulative
            Weight of this graph and all above it.
        exact
            The exact weight, if `exact` is given.
        arcs
            Number of arcs; of a class, of those whose direction is fixed.
        edges, graphs
            Only of classes: number of edges whose direction is not fixed, and of graphs of the class that were drawn.
        key
            The graph as text, equal for equal graphs over the same columns; see :func:`bayesstruct.structure.graph_from_key`.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result with directed acyclic graphs; if `exact` is of other columns, or of more than five
        columns and classes are asked for.

    See Also
    --------
    consensus_graph : one graph that is nearest to all others on average.

    References
    ----------
    Good, I. J. (1953). The population frequencies of species and the estimation of population parameters. *Biometrika*
    40, 237-264.

    Examples
    --------
    >>> weights = graph_weights(idata, classes=True)  # doctest: +SKIP
    >>> weights.needed(0.9), weights.graph(0)  # doctest: +SKIP
    """
    if isinstance(idata, ExactGraphs):
        if exact is not None:
            raise ValueError(
                "`exact` is given for a result of draws; here the weights are exact already"
            )
        return _of_exact(idata, classes)
    posterior = read_dags(idata, group)
    drawn = drawn_graphs(posterior, classes)
    share = drawn.count / posterior.n_draws
    columns: dict[str, Any] = {
        "weight": share,
        "mcse": share_mcse(share, _ess(drawn, posterior), posterior.n_draws),
        "count": drawn.count,
        "cumulative": np.cumsum(share),
    }
    if exact is not None:
        columns["exact"] = _exact_weights(exact, posterior.variables, drawn.matrices, classes)
    return GraphWeights(
        tuple(posterior.variables),
        drawn.matrices,
        _table(columns, drawn, classes),
        classes,
        posterior.n_draws,
        float((drawn.count == 1).sum() / posterior.n_draws),
        posterior.matrix(posterior.probability),
    )


@dataclass(frozen=True, eq=False)
class DrawnGraphs:
    """Distinct graphs or equivalence classes, the most frequent first.

    Attributes
    ----------
    matrices : ndarray of bool, shape (k, p, p)
        Rows parents; in classes edges without a fixed direction are there both ways.
    count : ndarray, shape (k,)
        Draws, or weight, of each.
    index : ndarray of int, shape (n,)
        Which of them each draw is.
    members : ndarray of int, shape (k,)
        Distinct graphs of each class.
    """

    matrices: np.ndarray
    count: np.ndarray
    index: np.ndarray
    members: np.ndarray


def drawn_graphs(posterior: DagPosterior, classes: bool = False) -> DrawnGraphs:
    """Distinct graphs of the draws, chain by chain, or their equivalence classes."""
    graphs, visits = posterior.dags
    if not classes:
        return DrawnGraphs(graphs, visits, posterior.distinct.index, np.ones(len(graphs), int))
    found = _classes(graphs, visits)
    return replace(found, index=found.index[posterior.distinct.index])


def _classes(graphs: np.ndarray, weight: np.ndarray) -> DrawnGraphs:
    """Equivalence classes of some graphs, those of the largest total weight first; `index` is over the graphs."""
    rows = [off_diagonal(essential(graphs[at])) for at in blocks(len(graphs))]
    found = distinct_rows(np.concatenate(rows))
    total = np.bincount(found.index, weight).astype(weight.dtype)
    order = np.argsort(-total, kind="stable")
    matrices = from_off_diagonal(found.rows[order], graphs.shape[-1])
    return DrawnGraphs(matrices, total[order], np.argsort(order)[found.index], found.count[order])


def _of_exact(posterior: ExactGraphs, classes: bool) -> GraphWeights:
    """All graphs of an exact posterior, without those of probability zero."""
    graphs, probability = posterior.all_graphs()
    graphs, p = graphs[probability > 0].astype(bool), graphs.shape[-1]
    probability = probability[probability > 0]
    if classes:
        listed = _classes(graphs, probability)
    else:
        order = np.argsort(-probability, kind="stable")
        ones = np.ones(len(order), int)
        listed = DrawnGraphs(graphs[order], probability[order], np.argsort(order), ones)
    columns = {"weight": listed.count, "cumulative": np.cumsum(listed.count)}
    arcs = (probability @ graphs.reshape(-1, p * p)).reshape(p, p)
    table = _table(columns, listed, classes)
    names = tuple(map(str, posterior.names))
    return GraphWeights(names, listed.matrices, table, classes, 0, 0.0, arcs)


def _table(columns: dict[str, Any], listed: DrawnGraphs, classes: bool) -> "pd.DataFrame":
    import pandas as pd

    lines = listed.matrices.sum(axis=(1, 2))
    both = (listed.matrices & listed.matrices.swapaxes(1, 2)).sum(axis=(1, 2))
    columns["arcs"] = lines - both
    if classes:
        columns |= {"edges": both // 2, "graphs": listed.members}
    packed = np.packbits(off_diagonal(listed.matrices), axis=1)
    return pd.DataFrame(columns | {"key": [row.tobytes().hex() for row in packed]})


def _ess(drawn: DrawnGraphs, posterior: DagPosterior) -> np.ndarray:
    """Effective sample sizes of the indicators of the most frequent graphs, NaN for others."""
    ess = np.full(len(drawn.count), np.nan)
    first = np.arange(min(_DIAGNOSED, len(ess)))
    index = drawn.index.reshape(posterior.n_chains, -1, 1)
    ess[first] = series_ess(index == first)
    return ess


def _exact_weights(exact: ExactGraphs, names: list[str], matrices, classes: bool) -> np.ndarray:
    """Exact posterior probabilities of graphs or classes over the columns `names`."""
    known = [str(name) for name in exact.names]
    if sorted(known) != sorted(names):
        raise ValueError(
            f"`exact` is a posterior of the columns {', '.join(known)}, the draws are of {', '.join(names)}: it must be "
            "of the same table"
        )
    at = [names.index(name) for name in known]
    ordered = matrices[:, at][:, :, at]
    if not classes:
        return np.exp(exact.log_probabilities(ordered.astype(np.int8)))
    graphs, probability = exact.all_graphs()
    listed = _classes(graphs.astype(bool), probability)
    weight = dict(zip(map(np.ndarray.tobytes, listed.matrices), listed.count, strict=True))
    return np.array([weight[np.ascontiguousarray(one).tobytes()] for one in ordered])
