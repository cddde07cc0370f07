"""Simulated time series that switch among shared behaviours."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import generator, number, whole_number

if TYPE_CHECKING:
    import pandas

__all__ = ["SwitchingSimulation", "markov_transitions"]


@dataclass(frozen=True, eq=False, repr=False)
class SwitchingSimulation:
    """Simulated series with the behaviours behind them.

    Attributes
    ----------
    data : pandas.DataFrame, shape (N n, d + 1)
        Rows of all series in the order of time; the column ``series`` names them.
    feature : pandas.DataFrame, shape (N, K)
        Which behaviours each series has.
    mean : pandas.DataFrame, shape (K, d)
    state : pandas.Series, shape (N n,)
        Name of the behaviour of each row.
    """

    data: "pandas.DataFrame"
    feature: "pandas.DataFrame"
    mean: "pandas.DataFrame"
    state: "pandas.Series"

    def __repr__(self) -> str:
        n, k = self.feature.shape
        return f"SwitchingSimulation({n:,} series, {len(self.data):,} rows, {k} behaviours)"


def markov_transitions(
    n: int,
    n_series: int = 4,
    *,
    p: int = 2,
    n_behaviours: int = 3,
    probability: float = 0.6,
    stay: float = 0.95,
    spread: float = 3.0,
    random_seed: int | np.random.Generator | None = None,
) -> SwitchingSimulation:
    """Simulate series that switch among behaviours, some of which are shared.

    Parameters
    ----------
    n : int
        Rows of each series.
    n_series : int, default 4
        Named ``a``, ``b``, ... up to 26 of them, otherwise ``s0``, ``s1``, ...
    p : int, default 2
        Variables, named ``x0``, ``x1``, ...; their noise has standard deviation 1.
    n_behaviours : int, default 3
    probability : float, default 0.6
        Probability that a series has a behaviour. Each series has at least one, and each behaviour is in at least
        one series.
    stay : float, default 0.95
        Probability that the next row has the same behaviour, if the series has others.
    spread : float, default 3
        Standard deviation of the means of behaviours.
    random_seed : int or numpy.random.Generator, optional
        The same seed gives the same simulation.

    Returns
    -------
    SwitchingSimulation

    Raises
    ------
    TypeError, ValueError
        If an option is out of range.

    References
    ----------
    Fox, E. B., Sudderth, E. B., Jordan, M. I. and Willsky, A. S. (2009). Sharing features among dynamical
    systems with beta processes. *NIPS* 22, 549-557.

    Examples
    --------
    >>> markov_transitions(100, random_seed=1)
    SwitchingSimulation(4 series, 400 rows, 3 behaviours)
    """
    import pandas as pd

    n, n_series = whole_number("n", n, 1), whole_number("n_series", n_series, 1)
    p, n_behaviours = whole_number("p", p, 1), whole_number("n_behaviours", n_behaviours, 1)
    probability = number("probability", probability, least=0, most=1)
    stay = number("stay", stay, least=0, most=1)
    spread, rng = number("spread", spread, least=0), generator(random_seed)
    z = _behaviours(rng, n_series, n_behaviours, probability)
    mean = spread * rng.standard_normal((n_behaviours, p))
    state = np.concatenate([_path(rng, np.flatnonzero(row), n, stay) for row in z])
    rows = mean[state] + rng.standard_normal((len(state), p))
    names = [chr(97 + i) if n_series <= 26 else f"s{i}" for i in range(n_series)]
    columns = [f"x{j}" for j in range(p)]
    kinds = [f"behaviour {k + 1}" for k in range(n_behaviours)]
    data = pd.DataFrame(rows, columns=columns)
    data.insert(0, "series", np.repeat(names, n))
    return SwitchingSimulation(
        data,
        pd.DataFrame(z, names, kinds),
        pd.DataFrame(mean, kinds, columns),
        pd.Series(np.array(kinds)[state], name="state"),
    )


def _behaviours(rng, n_series, n_behaviours, probability):
    """Draw which behaviours the series have."""
    z = (rng.random((n_series, n_behaviours)) < probability).astype(int)
    for k in np.flatnonzero(~z.any(axis=0)):
        z[rng.integers(n_series), k] = 1
    for i in np.flatnonzero(~z.any(axis=1)):
        z[i, rng.integers(n_behaviours)] = 1
    return z


def _path(rng, own, n, stay):
    """Draw the behaviours of the rows of a series: the same as before, or another one that the series has."""
    out = np.empty(n, int)
    out[0] = rng.choice(own)
    for t in range(1, n):
        others = own[own != out[t - 1]]
        moves = len(others) and rng.random() >= stay
        out[t] = rng.choice(others) if moves else out[t - 1]
    return out
