"""Structures of well-known Bayesian networks, from the data files of an installed `pgmpy`, which is not imported."""

import gzip
import importlib.util
import re

from pathlib import Path

import networkx as nx

#: Nodes, arcs and most parents of the six that Schmidt (2010, section 4.6.1) uses and `pgmpy` has.
NETWORKS = {
    "insurance": (27, 52, 3),
    "water": (32, 66, 5),
    "mildew": (35, 46, 3),
    "alarm": (37, 46, 4),
    "barley": (48, 84, 4),
    "hailfinder": (56, 66, 4),
}
_NODE = re.compile(r"variable\s+(\S+)\s*{")
_FAMILY = re.compile(r"probability\s*\(\s*([^|\s)]+)\s*(?:\|([^)]*))?\)")


def folder():
    """Return the folder of the BIF files, None without `pgmpy`."""
    found = importlib.util.find_spec("pgmpy")
    places = found.submodule_search_locations if found else None
    path = Path(places[0]) / "utils" / "example_models" if places else None
    return path if path and (path / "alarm.bif.gz").exists() else None


def network(name):
    """Read the structure of a network."""
    text = gzip.decompress((folder() / f"{name}.bif.gz").read_bytes()).decode()
    graph = nx.DiGraph()
    graph.add_nodes_from(_NODE.findall(text))
    for child, parents in _FAMILY.findall(text):
        graph.add_edges_from((parent.strip(), child) for parent in parents.split(",") if parents)
    return graph
