"""The public names of bayesstruct.data, read at run time and by type checkers."""

from .bundled import datasets as datasets
from .bundled import load_dataset as load_dataset
from .bundled import load_network as load_network
from .bundled import networks as networks
from .edge_priors import StochasticBlock as StochasticBlock
from .errors import TableError as TableError
from .errors import TableWarning as TableWarning
from .reading import read_table as read_table
from .states import StateTable as StateTable
from .table import Table as Table
