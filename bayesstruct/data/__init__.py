"""Tables: validation, reading from files, and the data sets that come with the package."""

from bayesstruct.data.datasets import datasets, load_dataset, load_network, networks
from bayesstruct.data.edge_priors import StochasticBlock
from bayesstruct.data.reading import read_table
from bayesstruct.data.states import StateTable
from bayesstruct.data.table import Table, TableError, TableWarning

__all__ = [
    "StateTable",
    "StochasticBlock",
    "Table",
    "TableError",
    "TableWarning",
    "datasets",
    "load_dataset",
    "load_network",
    "networks",
    "read_table",
]
