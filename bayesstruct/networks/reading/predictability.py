"""How well each column of a Bayesian network is predicted by its parents, and by all others."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.tables.observed import completed_tables, observed_table
from bayesstruct.core.tables.predictability import (
    OTHERS,
    PARENTS,
    Predicted,
    StateTally,
    register_predictability,
)
from bayesstruct.graphs.groups import chosen_draws
from bayesstruct.graphs.posteriors.reading import read_dags
from bayesstruct.networks.priors.records import NetworkStates, SetMask
from bayesstruct.networks.reading.conditionals import drawn_networks
from bayesstruct.networks.reading.effects import is_gaussian, is_network
from bayesstruct.networks.reading.mixed import is_mixed, mixed_coding
from bayesstruct.networks.reading.mixed_conditionals import drawn_mixed

if TYPE_CHECKING:
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["predicted_of_both"]


def _predicted(idata: "xr.DataTree", draws: int) -> tuple[list[Predicted], list[str]]:
    posterior = read_dags(idata)
    if is_mixed(idata):
        return predicted_of_both(idata, posterior, chosen_draws(posterior.draws, draws))
    of = _of_numbers if is_gaussian(posterior) else _of_states
    return of(idata, posterior, chosen_draws(posterior.draws, draws))


def _of_numbers(idata, posterior, chosen):
    if "noise_variance" not in posterior.draws:
        raise ValueError(
            "this result has no `noise_variance`, of which predictability is made: store it too"
        )
    chain, draw = np.array(chosen).T
    weight = posterior.weights(np.arange(posterior.n_lines))[chain, draw]
    away = np.eye(len(posterior.variables)) - posterior.matrix(weight).mT  # rows are children
    noise = posterior.draws["noise_variance"].transpose("chain", "draw", "node").values[chain, draw]
    inverse = np.linalg.inv(away)
    variance = (inverse**2 * noise[:, None, :]).sum(axis=-1)
    own = (away**2 / noise[..., None]).sum(axis=1)  # diagonal of the precision matrix
    found = []
    for given, left in ((OTHERS, 1.0 / own), (PARENTS, noise)):
        shares = (1.0 - left / variance).T
        names = zip(posterior.variables, shares, strict=True)
        found += [Predicted(name, "R2", given, own) for name, own in names]
    return found, []


def _of_states(idata, posterior, chosen):
    states = NetworkStates.read(posterior.constants).count.astype(int)
    table, missing = observed_table(idata)
    completed = completed_tables(table, missing, posterior.draws)
    free = SetMask.free(posterior.constants, table.shape)
    networks = drawn_networks(posterior.draws, states)
    about = posterior.variables, table, free & ~missing, states == 2
    others, parents = StateTally(*about), StateTally(*about)
    for c, d in chosen:
        network, x = networks(c, d), completed(c, d).astype(int)
        others.add(network.given_others(x, free))
        parents.add(network.given_parents(x))
    return [*others.predicted(OTHERS), *parents.predicted(PARENTS)], _notes(free)


def _notes(free):
    return [] if free.all() else ["Values that were set from outside do not count."]


def predicted_of_both(
    idata: "xr.DataTree", posterior: "GraphPosterior", chosen: list[tuple[int, int]]
) -> tuple[list[Predicted], list[str]]:
    """Numbers and states: both are averages over the rows of the table.

    Parameters
    ----------
    idata : xarray.DataTree
    posterior : GraphPosterior
        With the parameters of rows of numbers and states.
    chosen : list of pairs of int
        Chains and draws that are used.
    """
    coding = mixed_coding(posterior)
    layout = coding.layout
    x, missing = observed_table(idata)
    free = SetMask.free(posterior.constants, x.shape)
    completed = completed_tables(x, missing, posterior.draws)
    states, known = [i for i in range(layout.d) if layout.states[i]], free & ~missing
    ordered = [layout.states[i] == 2 or layout.families[i] == "ordinal" for i in states]
    about = [coding.names[i] for i in states], x[:, states], known[:, states], ordered
    tallies = StateTally(*about), StateTally(*about)
    shares: dict = {i: [] for i in range(layout.d) if not layout.states[i]}
    networks = drawn_mixed(posterior.draws, layout, coding.location, coding.scale)
    for c, d in chosen:
        network, table = networks(c, d), completed(c, d)
        logs = [network.state_logs(table, free, i) for i in states]
        for tally, own in zip(tallies, zip(*logs, strict=True), strict=False):
            tally.add(own)
        for i, own in shares.items():
            rows = known[:, i]
            moments = network.number_moments(table[rows], free[rows], i)
            own.append([_explained_variance(*one) for one in moments])
    found = []
    for given, at in ((OTHERS, 1), (PARENTS, 0)):
        found += [
            Predicted(coding.names[i], "R2", given, np.array(own)[:, at])
            for i, own in shares.items()
        ]
        found += tallies[at].predicted(given) if states else []
    position = {name: i for i, name in enumerate(coding.names)}
    return sorted(found, key=lambda one: position[one.node]), _notes(free)


def _explained_variance(mean, sd):
    """Variance of the means over that plus the mean variance; NaN without rows."""
    if not len(mean):
        return np.nan
    return mean.var() / (mean.var() + (sd**2).mean())


register_predictability("Bayesian networks", is_network, _predicted)
