"""The main table of results of several groups of rows."""

import bayesstruct.precision.reading.predictive  # noqa: F401 (registers what is asked after this)

from bayesstruct.core.readers import register_summary, variables
from bayesstruct.graphs.records import RelationPrior
from bayesstruct.graphs.tables.differences import DIFFERENCE, difference_table
from bayesstruct.graphs.tables.edges import EDGE_READERS

__all__: list[str] = []


def _has_differences(idata) -> bool:
    return {"edge", DIFFERENCE} <= variables(idata) and RelationPrior.is_in(idata)


register_summary(
    "differences between groups",
    _has_differences,
    difference_table,
    ("edge_table", "one_group", "plot_difference", *EDGE_READERS),
    before="Gaussian graphical models",
)
