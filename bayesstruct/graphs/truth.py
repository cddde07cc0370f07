"""Known graphs in several forms as matrices in the order of the variables."""

from collections import Counter

import numpy as np

from bayesstruct.data.labels import (
    aligned,
    as_frame,
    is_labelled_array,
    refuse_zero_weights,
    without_mask,
)


def adjacency(truth, variables: list[str]) -> np.ndarray:
    """Turn a known undirected graph into a boolean matrix.

    Parameters
    ----------
    truth : networkx.Graph, pandas.DataFrame, array of shape (p, p) or iterable of pairs
        Graph on names; square table with names on both sides; matrix in the order of `variables`;
        or the edges as (name, name). In tables and matrices whatever is not zero off the diagonal
        is an edge, so a precision matrix will do. Variables that a graph or a list does not mention
        have no edges.
    variables : list of str
        Names, in the order wanted.

    Returns
    -------
    ndarray of bool, shape (p, p)
        Symmetric, False on the diagonal.

    Raises
    ------
    TypeError
        When the form is not one of the above.
    ValueError
        For unknown or missing names, a directed graph, a loop, or a matrix that is not square or
        symmetric.
    """
    import networkx as nx
    import pandas as pd

    _refuse_result(truth)
    truth = _plain(truth, variables)
    if isinstance(truth, str):
        raise TypeError(
            f"The known graph is given as the text {truth!r}; pass the graph itself, for example "
            'bayesstruct.load_network("sachs").to_undirected(), or a list of pairs of names.'
        )
    if isinstance(truth, nx.Graph):
        return _from_graph(truth, variables)
    if isinstance(truth, pd.DataFrame):
        return _from_matrix(_reordered(truth, variables), variables)
    if isinstance(truth, np.ndarray):
        return _from_matrix(truth, variables)
    return _from_pairs(_as_pairs(truth), variables)


def arc_matrix(truth, variables: list[str]) -> np.ndarray:
    """Turn a known directed graph into a boolean matrix.

    Parameters
    ----------
    truth : networkx.DiGraph, pandas.DataFrame, array of shape (p, p) or iterable of pairs
        As for `adjacency`, with pairs (parent, child), and ones in tables and matrices, whose rows
        are parents and whose columns are children. An undirected edge of an essential graph is
        there in both directions.
    variables : list of str
        Names, in the order wanted.

    Returns
    -------
    ndarray of bool, shape (p, p)
        Rows parents; False on the diagonal.

    Raises
    ------
    TypeError
        When the form is not one of the above.
    ValueError
        For unknown or missing names, an undirected graph, a loop, a matrix that is not square, or
        one of coefficients, which does not say whether its rows are parents or children.
    """
    import networkx as nx
    import pandas as pd

    _refuse_result(truth)
    truth = _plain(truth, variables)
    if isinstance(truth, str):
        raise TypeError(
            f"The known graph is given as the text {truth!r}; pass the graph itself, for example "
            'bayesstruct.load_network("sachs"), or a list of pairs (parent, child).'
        )
    if isinstance(truth, nx.Graph):
        if not truth.is_directed():
            raise ValueError(
                "The known graph is undirected; Bayesian networks are directed. Pass a "
                "networkx.DiGraph."
            )
        refuse_zero_weights(truth, "the known graph")
        _refuse_unknown(truth.nodes, variables)
        return _directed([(a, b) for a, b in truth.edges() if a != b], variables)
    if isinstance(truth, pd.DataFrame):
        return _oriented(_reordered(truth, variables), variables)
    if isinstance(truth, np.ndarray):
        return _oriented(truth, variables)
    return _directed(_as_pairs(truth), variables)


def _plain(truth, variables):
    """Return a DataArray as a frame, or as an array in the order of the variables; nothing under a mask."""
    if is_labelled_array(truth) and not all(dim in truth.coords for dim in truth.dims):
        return np.asarray(aligned("known graph", truth, variables))
    return without_mask(as_frame(truth))


def positions(wanted: list[str], variables: list[str]) -> list[int]:
    """Positions of the variables of one result among those of another; both have the same."""
    different = sorted(set(wanted) ^ set(variables))
    if different:
        raise ValueError(
            f"The two results have different variables: {', '.join(different)}. An edge is a dependence given all the other columns, and "
            "means something else where these differ: sample both models on the columns that the tables have in common."
        )
    return [variables.index(name) for name in wanted]


def _from_graph(graph, variables: list[str]) -> np.ndarray:
    if graph.is_directed():
        raise ValueError(
            "The known graph is directed; these models learn undirected ones. "
            "Compare with its moral graph: networkx.moral_graph(graph)."
        )
    refuse_zero_weights(graph, "the known graph")
    _refuse_unknown(graph.nodes, variables)
    loopless = [(a, b) for a, b in graph.edges() if a != b]
    return _from_pairs(loopless, variables)


def _reordered(table, variables: list[str]) -> np.ndarray:
    for names in (table.index, table.columns):
        _refuse_unknown(names, variables)
        repeated = [str(name) for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise ValueError(f"Repeated in the known graph: {', '.join(repeated)}.")
        absent = [name for name in variables if name not in set(map(str, names))]
        if absent:
            raise ValueError(f"Not in the known graph: {', '.join(absent)}.")
    table = table.rename(index=str, columns=str)
    return table.loc[variables, variables].to_numpy()


def _from_matrix(matrix: np.ndarray, variables: list[str]) -> np.ndarray:
    present = _nonzero(matrix, variables)
    if (present != present.T).any():
        i, j = np.argwhere(present != present.T)[0]
        raise ValueError(
            f"The known graph is not symmetric: it differs between {variables[i]!r} and "
            f"{variables[j]!r}. These models learn undirected graphs."
        )
    return present


def _oriented(matrix: np.ndarray, variables: list[str]) -> np.ndarray:
    """Read a matrix of arcs, whose rows are parents; refuse coefficients, whose rows need not be."""
    present = _nonzero(matrix, variables)
    weights = np.asarray(matrix)[present]
    if (weights != 1).any():
        raise ValueError(
            f"The known graph holds {weights[weights != 1][0]:.3g}, so that it looks like a matrix of "
            "coefficients, which has children (responses) as rows as often as parents, and "
            "bs.simulate and the neighbourhood models have children. Pass ones and zeros with rows "
            "parents and columns children: (coefficients != 0).T.astype(int) if the rows are "
            "children, or the graph of a simulation itself."
        )
    return present


def _nonzero(matrix: np.ndarray, variables: list[str]) -> np.ndarray:
    import pandas as pd

    p = len(variables)
    if matrix.shape != (p, p):
        raise ValueError(f"Expected a matrix of shape {(p, p)}, got {matrix.shape}.")
    if pd.isna(matrix).any():
        raise ValueError("The known graph has missing values.")
    return (matrix != 0) & ~np.eye(p, dtype=bool)


def _as_pairs(truth) -> list[tuple]:
    try:
        pairs = [(pair,) if isinstance(pair, str) else tuple(pair) for pair in truth]
    except TypeError:
        raise TypeError(
            "A known graph is a networkx.Graph, a DataFrame or array of shape (p, p), or a list of "
            f"pairs of names; got {type(truth).__name__}."
        ) from None
    wrong = [pair for pair in pairs if len(pair) != 2]
    if wrong:
        raise ValueError(f"An edge is a pair of names, got {wrong[0]!r}.")
    return pairs


def _from_pairs(pairs: list[tuple], variables: list[str]) -> np.ndarray:
    matrix = _directed(pairs, variables)
    return matrix | matrix.T


def _directed(pairs: list[tuple], variables: list[str]) -> np.ndarray:
    _refuse_unknown((name for pair in pairs for name in pair), variables)
    position = {name: i for i, name in enumerate(variables)}
    matrix = np.zeros((len(variables), len(variables)), dtype=bool)
    for a, b in pairs:
        if a == b:
            raise ValueError(f"An edge joins two variables, got {a!r} twice.")
        matrix[position[str(a)], position[str(b)]] = True
    return matrix


def _refuse_result(truth) -> None:
    """Raise if a posterior is given where a known graph belongs."""
    if hasattr(truth, "data_vars") or hasattr(truth, "children"):
        raise TypeError(
            "A known graph is needed here, and this is a result. How two posteriors differ: "
            "bs.compare(idata, other); to score one against the graph of the other: "
            "bs.compare(idata, bs.median_graph(other))"
        )
    if hasattr(truth, "estimator"):
        raise TypeError(
            "A known graph is needed here, not a posterior: bs.median_graph(idata) makes one"
        )


def _refuse_unknown(names, variables: list[str]) -> None:
    known = set(variables)
    unknown = sorted({str(name) for name in names} - known)
    if unknown:
        shown = ", ".join(repr(name) for name in unknown[:5]) + (", ..." if unknown[5:] else "")
        few = ", ".join(variables[:5]) + (", ..." if variables[5:] else "")
        raise ValueError(f"Unknown variables in the known graph: {shown}. The model has {few}.")
