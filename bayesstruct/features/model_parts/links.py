"""What models of pairs of objects share: prior of the features, coordinates, what is recorded."""

import numpy as np
import pymc as pm

from bayesstruct.core.recorded import record
from bayesstruct.features.kernels.indian_buffet import check_buffet, new_dish_rates
from bayesstruct.features.kernels.link_codes import LIKELIHOODS
from bayesstruct.features.priors.indian_buffet import IndianBuffet

__all__ = ["check_number", "features", "mass", "pair_coords", "record_dyads", "room"]

_SHAPE, _RATE = 2.0, 2.0  # of the gamma prior of the mass
_MORE = 1e-5  # probability that a draw of the prior has more features than there is room for


def check_number(name, value, *, optional=True):
    """Refuse what is not a number above 0, or None."""
    if value is None and optional:
        return None
    if isinstance(value, str | bool | np.bool_) or not (np.isscalar(value) and 0 < value < np.inf):
        instead = ", or None for a prior" if optional else ""
        raise ValueError(f"`{name}` must be a number above 0{instead}, not {value!r}")
    return float(value)


def mass(name, value):
    """Mean number of features of an object: given, or with a Gamma(2, 2) prior."""
    value = check_number(name, value)
    return pm.Gamma(name, _SHAPE, _RATE) if value is None else value


def room(n, given, alpha, concentration=1.0, discount=0.0, *, prior=(_SHAPE, _RATE)) -> int:
    """Columns that are stored: those that are asked for, or what a draw of the prior seldom exceeds.

    Parameters
    ----------
    n : int
        Number of objects.
    given : int or None
        Option ``max_features``.
    alpha : float, array_like or None
        Draws where it has a distribution of its own, None where it has the default prior.
    concentration, discount : float
    prior : (float, float)
        Shape and rate of the gamma prior of the mass, where it has one.
    """
    from scipy.stats import nbinom, poisson

    check_buffet(1.0 if alpha is None else float(np.max(alpha)), concentration, discount)
    if given is not None:
        if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1:
            raise ValueError(f"`max_features` must be a whole number above 0, not {given!r}")
        return int(given)
    rates = float(new_dish_rates(n, concentration, discount).sum())
    if alpha is None:
        shape, rate = prior
        return max(int(nbinom(shape, rate / (rate + rates)).isf(_MORE)), 5)
    means = rates * np.asarray(alpha, float)
    enough = int(poisson(means.max()).isf(_MORE))  # bisection: the largest mean needs the most
    few = 5
    while few < enough:
        middle = (few + enough) // 2
        if poisson(means).sf(middle).mean() > _MORE:
            few = middle + 1
        else:
            enough = middle
    return few


def features(name, alpha, n, columns, dims, concentration=1.0, discount=0.0):
    """Add the features of a set of objects."""
    return IndianBuffet(
        name,
        alpha,
        observations=n,
        concentration=concentration,
        discount=discount,
        truncation=columns,
        dims=dims,
    )


def pair_coords(table, columns, other_columns=None) -> dict:
    """Coordinates of the objects, their features and the observed pairs."""
    coords = {"observation": list(table.names), "latent": np.arange(columns), "pair": table.labels}
    coords["latent_"] = np.arange(columns if other_columns is None else other_columns)
    if table.other is not None:
        coords["node"] = list(table.other)
    return coords


def record_dyads(table, likelihood):
    """Record what predictions are made with, as the group ``constant_data`` of every result."""
    record("pair_source", table.source, dims="pair")
    record("pair_target", table.target, dims="pair")
    record("pair_directed", int(table.directed))
    record("link_likelihood", LIKELIHOODS.index(likelihood))
