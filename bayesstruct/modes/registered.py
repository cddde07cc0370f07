"""Importing this module registers the solvers of all families with `find_MAP`."""

import bayesstruct.fields.modes.searched
import bayesstruct.fields.modes.shrunk
import bayesstruct.neighbourhoods.modes
import bayesstruct.networks.modes.complete
import bayesstruct.networks.modes.incomplete
import bayesstruct.precision.modes
import bayesstruct.sparse.modes  # noqa: F401
