"""Networks of columns of several kinds: effects of interventions, and parameters in the units of the table."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_coefficients, variables
from bayesstruct.core.tables.codings import ColumnUnits, StateLevels
from bayesstruct.graphs.posteriors.reading import read_dags
from bayesstruct.networks.data.mixed_coding import MixedCoding
from bayesstruct.networks.priors.records import MixedColumns

if TYPE_CHECKING:
    import xarray as xr

    from numpy.random import Generator

    from bayesstruct.graphs.posteriors.dags import DagPosterior
    from bayesstruct.networks.kernels.mixed_layout import MixedLayout

__all__ = ["is_mixed", "mixed_coding", "mixed_effects", "table_units"]

_POINTS = 1024  # rows for each draw, a power of two


def is_mixed(idata) -> bool:
    """Whether a result is of a network of columns of several kinds, with its parameters."""
    recorded = variables(idata, "constant_data")
    return "column_family" in recorded and {"dag", "parameter"} <= variables(idata)


def mixed_coding(posterior: "DagPosterior") -> MixedCoding:
    """Return how the table of a result was read."""
    constants, names = posterior.constants, posterior.variables
    layout = MixedColumns.read(constants).layout()
    levels: tuple = ((),) * len(names)
    if any(layout.states):
        levels = StateLevels.coding(constants, names).levels
    units = ColumnUnits.read(constants).known()
    return MixedCoding(tuple(names), layout.families, levels, *units)


def mixed_effects(
    posterior: "DagPosterior", setting: np.ndarray, keep: np.ndarray, rng: "Generator"
) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """Return expected values and probabilities of states without and with an intervention.

    Parameters
    ----------
    posterior : DagPosterior
    setting : (d,) ndarray of float
        Values that columns are set to, in the units of the table or as states 0, 1, ...; NaN for the others.
    keep : ndarray of int
        Draws that are used.
    rng : numpy.random.Generator

    Returns
    -------
    expected : (2, draws, entries) ndarray of float
        Means of numbers in the units of the table, and probabilities of states: without and with the intervention.
    single : (draws, d) ndarray of float
        One row for each draw with the intervention.
    entries : list of pairs of int
        Column and state of each entry; -1 for numbers.
    """
    from scipy.stats import qmc

    layout = MixedColumns.read(posterior.constants).layout()
    location, scale = ColumnUnits.read(posterior.constants).known()
    dags, vectors = (_flat(posterior, name)[keep] for name in ("dag", "parameter"))
    known = (setting - location) / scale
    u = qmc.Sobol(layout.d, rng=rng).random(_POINTS)
    nothing = np.full(layout.d, np.nan)
    entries = [(i, s) for i, k in enumerate(layout.states) for s in (range(k) if k else (-1,))]
    expected = np.empty((2, len(keep), len(entries)))
    single = np.empty((len(keep), layout.d))
    for r, (dag, vector) in enumerate(zip(dags, vectors, strict=True)):
        for side, fixed in enumerate((nothing, known)):
            rows = _drawn(layout, u, vector, dag, fixed)
            expected[side, r] = _means(layout, rows, vector, fixed)
        single[r] = rows[rng.integers(len(u))]
    number = np.array([i for i, _ in entries])
    of_numbers = np.array([s < 0 for _, s in entries])
    expected = np.where(of_numbers, location[number] + scale[number] * expected, expected)
    return expected, location + scale * single, entries


def _flat(posterior, name):
    values = posterior.draws[name].transpose("chain", "draw", ...).values
    return values.reshape(-1, *values.shape[2:])


def _drawn(layout, u, vector, dag, fixed):
    from bayesstruct.networks.kernels.mixed_rows import draw_rows

    return draw_rows(layout, u, vector, dag, fixed)


def _means(layout, rows, vector, fixed):
    """Means of conditional means and probabilities over rows: less noisy than those of the values."""
    from bayesstruct.networks.kernels.mixed_rows import predictors, state_probabilities

    features, out = layout.all_features(rows), []
    for i, k in enumerate(layout.states):
        if not np.isnan(fixed[i]):
            out += [np.arange(k) == fixed[i]] if k else [[fixed[i]]]
            continue
        eta = predictors(layout, i, features, vector)
        own = np.exp(state_probabilities(layout, i, eta, vector)) if k else eta
        out.append(own.mean(axis=1))
    return np.concatenate(out)


def table_units(
    layout: "MixedLayout", vectors: np.ndarray, location: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """Parameters in the units of the table.

    Parameters
    ----------
    layout : MixedLayout
    vectors : (..., size) ndarray of float
        Parameters of the model.
    location, scale : (d,) ndarray of float

    Returns
    -------
    numpy.ndarray
        Likewise: coefficients are changes of a linear predictor by one unit of a number, by one step of an ordered state, or by a state in
        place of the first one; intercepts are linear predictors where numbers are 0 and states the first ones, and
        thresholds are relative to those. Predictors of numbers have the units of the column.
    """
    out = vectors.copy()
    zero = np.where(np.array(layout.states) > 0, 0.0, -location / scale)
    one = zero + np.where(np.array(layout.states) > 0, 1.0, 1.0 / scale)
    base = layout.all_features(zero[None])[:, 0]
    step = layout.all_features(one[None])[:, 0] - base
    # A state in place of the first one changes its own feature by 1.
    step = np.where(_is_indicator(layout), 1.0, step)
    for i, places in enumerate(layout.coefficients):
        unit = scale[i] if layout.is_number(i) else 1.0
        for own in places:
            used = own[1:] >= 0
            weight = vectors[..., own[1:][used]]
            shift = weight @ base[used]
            out[..., own[1:][used]] = unit * weight * step[used]
            if own[0] >= 0:
                at = vectors[..., own[0]] + shift
                out[..., own[0]] = location[i] + unit * at if layout.is_number(i) else at
            else:
                out[..., layout.extras[i]] -= shift[..., None]
        if layout.is_number(i):
            out[..., layout.extras[i][0]] *= unit
    return out


def _is_indicator(layout):
    own = [not layout.is_number(j) and layout.families[j] != "ordinal" for j in layout.owner]
    return np.array(own, bool)


def _coefficients(idata: "xr.DataTree", group: str) -> "xr.Dataset":
    import xarray as xr

    posterior = read_dags(idata, group)
    layout = MixedColumns.read(posterior.constants).layout()
    location, scale = ColumnUnits.read(posterior.constants).known()
    drawn = posterior.draws["parameter"].transpose("chain", "draw", "term")
    values = table_units(layout, drawn.values, location, scale)
    return xr.Dataset(
        {"coefficient": drawn.copy(data=values)}, attrs={"units": "those of the table"}
    )


register_coefficients("Bayesian networks of columns of several kinds", is_mixed, _coefficients)
