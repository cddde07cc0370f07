"""How well the state of each column of a Markov random field is predicted by its row."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.tables.observed import completed_tables, observed_table
from bayesstruct.core.tables.predictability import (
    OTHERS,
    Predicted,
    StateTally,
    register_predictability,
)
from bayesstruct.fields.reading.conditionals import field_conditionals
from bayesstruct.fields.reading.information import is_random_field, potentials_of
from bayesstruct.graphs.groups import chosen_draws
from bayesstruct.graphs.posteriors.reading import read_edges

if TYPE_CHECKING:
    import xarray as xr

__all__: list[str] = []


def _predicted(idata: "xr.DataTree", draws: int) -> tuple[list[Predicted], list[str]]:
    posterior = read_edges(idata)
    potentials = potentials_of(posterior)
    table, missing = observed_table(idata)
    completed = completed_tables(table, missing, posterior.draws)
    conditionals = field_conditionals(potentials, posterior.draws)
    ordered = potentials.scored | (np.asarray(potentials.states) == 2)
    tally = StateTally(posterior.variables, table, ~missing, np.broadcast_to(ordered, potentials.p))
    for c, d in chosen_draws(posterior.draws, draws):
        tally.add(conditionals(c, d)(completed(c, d)))
    return list(tally.predicted(OTHERS)), []


register_predictability("Markov random fields", is_random_field, _predicted)
