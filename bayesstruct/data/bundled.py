"""Data sets and reference networks that come with the package."""

import difflib

from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx
    import pandas

__all__ = ["datasets", "load_dataset", "load_network", "networks"]

_TABLES = files("bayesstruct.data") / "tables"

# What each condition of the Sachs experiment acted on; see tables/README.md.
_INTERVENTIONS = {
    "cd3cd28": "none",
    "cd3cd28+icam2": "none",
    "cd3cd28+aktinhib": "Akt",
    "cd3cd28+g0076": "PKC",
    "cd3cd28+psitect": "PIP2",
    "cd3cd28+u0126": "Mek",
    "cd3cd28+ly": "PI3K",
    "pma": "PKC",
    "b2camp": "PKA",
}


def load_dataset(name: str) -> "pandas.DataFrame":
    """Load a data set that comes with the package.

    Parameters
    ----------
    name : str
        ``"sachs"``
            853 single cells x 11 signalling molecules: the observational cells (stimulated with
            anti-CD3 and anti-CD28 only) of Sachs et al. (2005). Raw fluorescence in arbitrary
            units, strongly skewed to the right: a Gaussian model usually takes ``np.log`` of it.
        ``"sachs_interventions"``
            All 7,466 cells of the nine conditions of that paper, in its order: the same 11 columns,
            ``condition`` (the name of the file in the supplement) and ``intervention`` (the
            molecule that was inhibited or, under ``pma`` and ``b2camp``, activated; ``"none"`` in
            the 1,755 cells under general stimulation). LY294002 inhibits PI3K, which was not
            measured: its 848 cells have ``"PI3K"``, which other work treats as one on Akt or PIP3.
        ``"sachs_discrete"``
            5,400 cells of the same nine conditions, 600 of each, in the three states of that paper's
            analysis: the 11 columns hold 1 (low), 2 (average) and 3 (high), ``intervention`` the
            molecule that was acted on or ``"none"`` (1,800 cells; those under LY294002 count among
            them). An inhibited molecule is 1 in all cells of its condition, an activated one is as
            it was measured, nearly always 3.
        ``"reinis"``
            1,841 men x 6 binary risk factors of coronary heart disease (Edwards and Havranek 1985):
            ``smoke``, ``mental`` and ``phys`` (strenuous work), ``systol`` (blood pressure of 140
            and more), ``protein`` (lipoprotein ratio of 3 and more), ``family`` (history); 1 is yes.
        ``"anes96"``
            944 voters x 7 answers with 2 to 8 ordered states, from the American National Election
            Study of 1996: ``tv_news`` (times a week, 0 to 7), ``education`` (1, eight grades or
            fewer, to 7, highest degrees), ``self``, ``clinton`` and ``dole`` (where the voters put
            themselves and the two candidates, from 1, extremely liberal, to 7, extremely
            conservative), ``party`` (0, strong Democrat, to 6, strong Republican) and ``vote``
            (expected: 0 for Clinton, 1 for Dole).

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    ValueError
        If there is no data set of that name; the message has the nearest one and the list.

    References
    ----------
    .. [1] K. Sachs, O. Perez, D. Pe'er, D. A. Lauffenburger and G. P. Nolan (2005). Causal
       protein-signaling networks derived from multiparameter single-cell data. Science 308,
       523-529.

    .. [2] D. Edwards and T. Havranek (1985). A fast procedure for model search in multidimensional
       contingency tables. Biometrika 72, 339-351.

    .. [3] S. J. Rosenstone, D. R. Kinder, W. E. Miller and the National Election Studies (1997).
       American National Election Study, 1996: pre- and post-election survey. Provenance and
       licences of all: ``bayesstruct/data/tables/README.md``.

    Examples
    --------
    >>> load_dataset("sachs").shape
    (853, 11)
    """
    return _choose(name, _DATASETS, "data set")()


def load_network(name: str) -> "networkx.DiGraph":
    """Load a reference network for a data set that comes with the package.

    Parameters
    ----------
    name : str
        ``"sachs"``
            The 17 arcs that Sachs et al. (2005, Figure 3A) found; acyclic, the usual target. The 20
            arcs of other work are these and the three drawn there as missed: PIP2 -> PKC,
            Plcg -> PKC and PIP3 -> Akt.
        ``"sachs_literature"``
            18 arcs accepted before that paper, as the ``cdt`` package has them. They hold the
            cycle PIP2 -> PIP3 -> Plcg -> PIP2: no acyclic learner can return all of them.

    Returns
    -------
    networkx.DiGraph
        Its nodes are the columns of ``load_dataset("sachs")``, in order.

    Raises
    ------
    ValueError
        If there is no network of that name; the message has the nearest one and the list.

    Examples
    --------
    >>> load_network("sachs").number_of_edges()
    17
    """
    return _choose(name, _NETWORKS, "network")()


def datasets() -> list[str]:
    """Return the names that `load_dataset` takes."""
    return list(_DATASETS)


def networks() -> list[str]:
    """Return the names that `load_network` takes."""
    return list(_NETWORKS)


def _choose(name: str, among: dict[str, Callable], what: str) -> Callable:
    if name in among:
        return among[name]
    near = difflib.get_close_matches(str(name).lower(), among, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    available = ", ".join(map(repr, among))
    raise ValueError(f"There is no {what} {name!r}.{hint} Available: {available}.")


def _sachs_interventions() -> "pandas.DataFrame":
    import pandas as pd

    with (_TABLES / "sachs.csv.gz").open("rb") as file:
        cells = pd.read_csv(file, compression="gzip")
    return cells.assign(intervention=cells["condition"].map(_INTERVENTIONS))


def _sachs() -> "pandas.DataFrame":
    cells = _sachs_interventions()
    observational = cells[cells["condition"] == "cd3cd28"]
    return observational.drop(columns=["condition", "intervention"])


def _sachs_discrete() -> "pandas.DataFrame":
    import pandas as pd

    with (_TABLES / "sachs_discrete.csv.gz").open("rb") as file:
        return pd.read_csv(file, compression="gzip")


def _sachs_network(column: str) -> "networkx.DiGraph":
    import networkx as nx
    import pandas as pd

    with (_TABLES / "sachs_arcs.csv").open("rb") as file:
        arcs = pd.read_csv(file).query(f"{column} == 1")
    graph = nx.DiGraph()
    graph.add_nodes_from(_sachs().columns)
    graph.add_edges_from(zip(arcs["source"], arcs["target"], strict=True))
    return graph


def _reinis() -> "pandas.DataFrame":
    import pandas as pd

    with (_TABLES / "reinis.csv").open("rb") as file:
        cells = pd.read_csv(file)
    rows = cells.loc[cells.index.repeat(cells["count"])]
    return rows.drop(columns="count").reset_index(drop=True)


def _anes96() -> "pandas.DataFrame":
    import pandas as pd

    with (_TABLES / "anes96.csv.gz").open("rb") as file:
        return pd.read_csv(file, compression="gzip")


_DATASETS = {
    "sachs": _sachs,
    "sachs_interventions": _sachs_interventions,
    "sachs_discrete": _sachs_discrete,
    "reinis": _reinis,
    "anes96": _anes96,
}
_NETWORKS = {
    "sachs": lambda: _sachs_network("found"),
    "sachs_literature": lambda: _sachs_network("literature"),
}
