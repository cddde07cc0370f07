"""Empty values of rows of networks with columns of several kinds."""

import itertools

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.tables.predictions import (
    fill,
    mixed_table,
    refuse_many_completions,
    register_prediction,
    state_shares,
)
from bayesstruct.data.coding import row_labels
from bayesstruct.graphs.posteriors.reading import read_dags
from bayesstruct.networks.data.mixed_coding import MixedCoding
from bayesstruct.networks.kernels.mixed_layout import MixedLayout
from bayesstruct.networks.reading.effects import (
    checked_setting,
    flat_draws,
    mixed_setting,
    spread_positions,
)
from bayesstruct.networks.reading.extrapolation import warn_of_extrapolation
from bayesstruct.networks.reading.mixed import is_mixed, mixed_coding

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["MixedRows", "mixed_rows", "rows_of_draws"]

_DRAWS = 1000  # that are used
_FEWER = 250  # of rows with several empty values, numbers among them
_PARTICLES = 16  # of the values of a row, for each draw
_CANDIDATES = 16  # of each particle
_SWEEPS, _DROPPED = 6, 2  # of the values of a particle afterwards, and those that do not count
_SEED = 20170  # a prediction is the same each time


@dataclass(frozen=True, eq=False)
class MixedRows:
    """Distributions of a row of numbers and states, one for each draw.

    Attributes
    ----------
    coding : MixedCoding
    layout : MixedLayout
    dags : (draws, d, d) ndarray
    vectors : (draws, size) ndarray of float
        Parameters.
    known : dict
        Columns that were set, and their standardised numbers and codes of states.
    """

    coding: MixedCoding
    layout: MixedLayout
    dags: np.ndarray
    vectors: np.ndarray
    known: dict[str, float]

    def predict(self, data: Any, prob: float) -> "pd.DataFrame":
        """Moments of empty numbers and probabilities of empty states; see `bayesstruct.predict`."""
        table = self.coding.read(data, optional=[*self.known])
        labels, names = row_labels(data, table.n), table.names
        z = fill(table.standardized, names, self.known)
        missing = np.isnan(z)
        number = np.array([not own for own in table.levels])
        one = missing.sum(axis=1) == 1
        several = ~one & missing.any(axis=1)
        of_states = several & ~missing[:, number].any(axis=1)
        found: dict = {}
        refuse_many_completions(missing & of_states[:, None], table.levels, labels)
        for rows, collect in (
            (one, self._single),
            (of_states, self._enumerated),
            (several & ~of_states, self._drawn),
        ):
            if rows.any():
                places = np.flatnonzero(rows)
                own = collect(z[places], missing[places])
                found |= {(int(places[r]), j): values for (r, j), values in own.items()}
        lines = []
        for row, j in sorted(found):
            place, values = (labels[row], names[j]), found[row, j]
            if number[j]:
                lines.append((*place, "", np.nan, *self._number(j, values, prob)))
                continue
            shares = zip(table.levels[j], *state_shares(values, labels[row], prob), strict=True)
            lines += [(*place, s, p, np.nan, np.nan, low, high) for s, p, low, high in shares]
        return mixed_table(lines)

    def _number(self, j, values, prob):
        """Mean, standard deviation and interval in the units of the table."""
        mean, sd, drawn = values
        location, scale = self.coding.location[j], self.coding.scale[j]
        ends = np.quantile(drawn, [0.5 - prob / 2, 0.5 + prob / 2])
        spread = np.sqrt((sd**2).mean() + mean.var())
        return location + scale * mean.mean(), scale * spread, *(location + scale * ends)

    @property
    def _free(self):
        return ~np.isin(self.coding.names, list(self.known))

    def _single(self, z, missing):
        """Rows with one empty value, whose distribution is known in each draw."""
        from bayesstruct.networks.kernels.mixed_cells import NumberGrid, ValueDensity

        rng, found = np.random.default_rng(_SEED), {}
        columns, x = missing.argmax(axis=1), np.nan_to_num(z)
        parts = np.arange(_PARTICLES)[:, None]
        for j in np.unique(columns).tolist():
            rows, logs, numbers = np.flatnonzero(columns == j), [], []
            for vector in self.vectors:
                density = ValueDensity(self.layout, vector, x[rows], j, self._free)
                if self.layout.states[j]:
                    logs.append(density.state_logs())
                    continue
                grid = NumberGrid(density)
                u = (parts + rng.random((_PARTICLES, len(rows)))) / _PARTICLES
                numbers.append((grid.mean, grid.sd, np.array([grid.draw(own) for own in u])))
            for k, row in enumerate(rows.tolist()):
                if logs:
                    found[row, j] = np.exp(np.array(logs)[:, :, k])
                else:
                    found[row, j] = tuple(
                        np.array([own[part][..., k] for own in numbers]) for part in range(3)
                    )
        return found

    def _enumerated(self, z, missing):
        """Rows with several empty states, whose completions are summed over."""
        from bayesstruct.networks.kernels.mixed_rows import column_terms

        blocks = [self._completions(*own) for own in zip(z, missing, strict=True)]
        begin = np.cumsum([0, *map(len, blocks)])
        rows, free = np.concatenate(blocks), self._free
        shares: dict = {(r, j): [] for r, j in np.argwhere(missing).tolist()}
        for vector in self.vectors:
            logs = column_terms(self.layout, rows, vector)[:, free].sum(axis=1)
            for r, own in enumerate(missing):
                columns = np.flatnonzero(own).tolist()
                part = logs[begin[r] : begin[r + 1]]
                with np.errstate(invalid="ignore"):  # -inf less -inf: impossible
                    p = np.exp(part - part.max())
                p = (p / p.sum()).reshape([self.layout.states[j] for j in columns])
                for a, j in enumerate(columns):
                    others = tuple(b for b in range(len(columns)) if b != a)
                    shares[r, j].append(p.sum(axis=others))
        return {place: np.array(own) for place, own in shares.items()}

    def _completions(self, row, missing):
        columns = np.flatnonzero(missing)
        sizes = [range(self.layout.states[j]) for j in columns]
        out = np.repeat(row[None], np.prod([len(own) for own in sizes]), axis=0)
        out[:, columns] = list(itertools.product(*sizes))
        return out

    def _drawn(self, z, missing):
        """Rows with several empty values, numbers among them: averages over conditional distributions given draws."""
        rng = np.random.default_rng(_SEED)
        places = [(r, j) for r, j in np.argwhere(missing).tolist()]
        kept: dict = {place: [] for place in places}
        for draw in spread_positions(len(self.dags), _FEWER):
            vector = self.vectors[draw]
            x = self._start(rng, self.dags[draw], vector, z)
            away = np.tile(missing, (_PARTICLES, 1))
            for sweep in range(_SWEEPS):
                for j in np.flatnonzero(missing.any(axis=0)).tolist():
                    own = self._conditional(rng, vector, x, away[:, j], j)
                    if sweep < _DROPPED:
                        continue
                    for k, r in enumerate(np.flatnonzero(missing[:, j]).tolist()):
                        kept[r, j].append(own[..., k :: int(missing[:, j].sum())])
        return {(r, j): self._gathered(np.array(kept[r, j]), j) for r, j in places}

    def _gathered(self, values, j):
        """Probabilities of states in each draw; or means, standard deviations and draws of numbers."""
        sweeps = _SWEEPS - _DROPPED
        if not self.layout.states[j]:
            return tuple(values[:, part].ravel() for part in range(3))
        return values.mean(axis=2).reshape(-1, sweeps, values.shape[1]).mean(axis=1)

    def _conditional(self, rng, vector, x, away, j):
        """Draw the values of a column given all others; return what the distributions are."""
        from bayesstruct.networks.kernels.mixed_cells import NumberGrid, ValueDensity

        density = ValueDensity(self.layout, vector, x[away], j, self._free)
        if self.layout.states[j]:
            logs = density.state_logs()
            x[away, j] = (logs + rng.gumbel(size=logs.shape)).argmax(axis=0)
            return np.exp(logs)
        grid = NumberGrid(density)
        x[away, j] = grid.draw(rng.random(density.n))
        return np.array([grid.mean, grid.sd, x[away, j]])

    def _start(self, rng, dag, vector, z):
        """Particles of each row, (particles x rows, d): of some that are drawn given parents one by its density."""
        from bayesstruct.networks.kernels.mixed_rows import column_terms, draw_rows

        shape = _CANDIDATES, _PARTICLES, *z.shape
        setting = np.tile(z, (_CANDIDATES * _PARTICLES, 1))
        rows = draw_rows(self.layout, rng.random(setting.shape), vector, dag, setting)
        counts = self._free & ~np.isnan(setting)
        logs = np.where(counts, column_terms(self.layout, rows, vector), 0.0).sum(axis=1)
        logs = logs.reshape(shape[:3])
        chosen = (logs + rng.gumbel(size=logs.shape)).argmax(axis=0)
        rows = np.take_along_axis(rows.reshape(shape), chosen[None, ..., None], axis=0)
        return rows[0].reshape(-1, z.shape[1])


def mixed_rows(idata: "xr.DataTree", setting: dict | None = None) -> MixedRows:
    """Return the distribution of a row in each draw of a network with columns of several kinds.

    Parameters
    ----------
    idata : xarray.DataTree
    setting : dict, optional
        As in :func:`bayesstruct.do`.
    """
    posterior = read_dags(idata)
    coding = mixed_coding(posterior)
    setting = {} if setting is None else checked_setting(setting, posterior.variables)
    values = mixed_setting(setting, coding)
    warn_of_extrapolation(idata, setting, coding)
    known = {
        name: (value - coding.location[j]) / coding.scale[j]
        for j, (name, value) in enumerate(zip(coding.names, values, strict=True))
        if name in setting
    }
    return rows_of_draws(posterior, coding, known)


def rows_of_draws(posterior: Any, coding: MixedCoding, known: dict[str, float]) -> MixedRows:
    """Return the distribution of a row in each draw of the graphs ``dag`` and the vectors ``parameter``.

    Parameters
    ----------
    posterior : GraphPosterior
    coding : MixedCoding
    known : dict
        As of `MixedRows`.
    """
    dags, vectors = (flat_draws(posterior, name) for name in ("dag", "parameter"))
    keep = spread_positions(len(dags), _DRAWS)
    return MixedRows(coding, coding.layout, dags[keep], vectors[keep], known)


register_prediction(
    "Bayesian networks of columns of several kinds", is_mixed, mixed_rows, "setting"
)
