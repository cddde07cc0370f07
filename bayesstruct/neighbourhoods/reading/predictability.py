"""How well each column is predicted by its regression on all others."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import variables
from bayesstruct.core.tables.observed import observed_table
from bayesstruct.core.tables.predictability import (
    OTHERS,
    Predicted,
    StateTally,
    register_predictability,
)
from bayesstruct.graphs.groups import SAMPLE_DIMS, chosen_draws
from bayesstruct.graphs.posteriors.reading import read_arcs
from bayesstruct.neighbourhoods.reading.symmetrize import ColumnMeans

if TYPE_CHECKING:
    import xarray as xr

    from bayesstruct.graphs.posteriors.arcs import ArcPosterior

__all__: list[str] = []


def _predicted(idata: "xr.DataTree", draws: int) -> tuple[list[Predicted], list[str]]:
    posterior, (x, _) = read_arcs(idata), observed_table(idata)
    chosen, names = chosen_draws(posterior.draws, draws), posterior.variables
    if ColumnMeans.is_in(posterior.constants):
        z = x - ColumnMeans.read(posterior.constants).mean
        tally = StateTally(names, x, np.ones(x.shape, bool), [True] * len(names))
        for odds in _fitted(posterior, chosen, z):
            tally.add([np.stack([-np.logaddexp(0, o), -np.logaddexp(0, -o)]) for o in odds.T])
        return list(tally.predicted(OTHERS)), []
    explained = np.array([own.var(axis=0) for own in _fitted(posterior, chosen, x)])
    noise = _draws(posterior, "noise_variance")[tuple(np.array(chosen).T)]
    columns = zip(names, (explained / (explained + noise)).T, strict=True)
    return [Predicted(name, "R2", OTHERS, own) for name, own in columns], []


def _fitted(
    posterior: "ArcPosterior", chosen: list[tuple[int, int]], z: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield expected values (or log odds) of all columns in all rows, draw by draw: all at once may not fit."""
    intercept, every = _draws(posterior, "intercept"), np.arange(posterior.n_lines)
    for c, d in chosen:
        one = replace(posterior, draws=posterior.draws.isel(chain=[c], draw=[d]))
        yield intercept[c, d] + z @ posterior.matrix(one.weights(every)[0, 0])


def _draws(posterior, name):
    return posterior.draws[name].transpose(*SAMPLE_DIMS, "node").values


def _has_regressions(idata) -> bool:
    return {"intercept", "weight", "arc"} <= variables(idata) and "dag" not in variables(idata)


register_predictability("neighbourhood regressions", _has_regressions, _predicted)
