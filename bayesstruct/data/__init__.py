"""Tables: validation, reading from files, and the data sets that come with the package."""

from bayesstruct.data.datasets import datasets, load_dataset, load_network, networks
from bayesstruct.data.reading import read_table
from bayesstruct.data.table import Table, TableError, TableWarning

__all__ = [
    "Table",
    "TableError",
    "TableWarning",
    "datasets",
    "load_dataset",
    "load_network",
    "networks",
    "read_table",
]
