"""Binary tables from known hidden causes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import generator, number, whole_number

if TYPE_CHECKING:
    import pandas

__all__ = ["HiddenCauseSimulation", "hidden_causes"]


@dataclass(frozen=True, eq=False, repr=False)
class HiddenCauseSimulation:
    """A simulated table with the causes behind it.

    Attributes
    ----------
    data : pandas.DataFrame, shape (n, p)
        0 and 1.
    feature : pandas.DataFrame, shape (p, K)
        Which causes each variable has.
    cause : pandas.DataFrame, shape (n, K)
        Which causes are active in each row.
    """

    data: "pandas.DataFrame"
    feature: "pandas.DataFrame"
    cause: "pandas.DataFrame"

    def __repr__(self) -> str:
        n, p = self.data.shape
        return f"HiddenCauseSimulation({n:,} x {p:,} table, {self.cause.shape[1]} causes)"


def hidden_causes(
    n: int,
    p: int = 10,
    *,
    n_causes: int = 3,
    probability: float = 0.4,
    strength: float = 0.9,
    leak: float = 0.02,
    base_rate: float = 0.2,
    random_seed: int | np.random.Generator | None = None,
) -> HiddenCauseSimulation:
    """Simulate a binary table whose ones have hidden causes, combined by a noisy or.

    Parameters
    ----------
    n : int
        Number of rows.
    p : int, default 10
        Number of variables, named ``x0``, ``x1``, ...
    n_causes : int, default 3
    probability : float, default 0.4
        Probability that a variable has a cause; each cause has at least one variable.
    strength : float, default 0.9
        Probability that an active cause brings about a variable that has it.
    leak : float, default 0.02
        Probability of a one without any cause.
    base_rate : float, default 0.2
        Probability that a cause is active in a row.
    random_seed : int or numpy.random.Generator, optional
        The same seed gives the same simulation.

    Returns
    -------
    HiddenCauseSimulation

    Raises
    ------
    TypeError, ValueError
        If a number is out of range.

    References
    ----------
    Wood, F., Griffiths, T. L. and Ghahramani, Z. (2006). A non-parametric Bayesian method for inferring
    hidden causes. *UAI* 22, 536-543.

    Examples
    --------
    >>> hidden_causes(100, p=8, random_seed=1)
    HiddenCauseSimulation(100 x 8 table, 3 causes)
    """
    import pandas as pd

    n, p = whole_number("n", n, 1), whole_number("p", p, 1)
    n_causes, rng = whole_number("n_causes", n_causes, 0), generator(random_seed)
    probability = number("probability", probability, least=0, most=1)
    strength, leak = (
        number("strength", strength, least=0, most=1),
        number("leak", leak, least=0, most=1),
    )
    base_rate = number("base_rate", base_rate, least=0, most=1)
    z = (rng.random((p, n_causes)) < probability).astype(int)
    empty = np.flatnonzero(~z.any(axis=0))
    z[rng.integers(p, size=len(empty)), empty] = 1
    y = (rng.random((n, n_causes)) < base_rate).astype(int)
    absent = (1 - leak) * (1 - strength) ** (y @ z.T)
    x = (rng.random((n, p)) >= absent).astype(int)
    names, causes = [f"x{i}" for i in range(p)], [f"cause {k + 1}" for k in range(n_causes)]
    return HiddenCauseSimulation(
        pd.DataFrame(x, columns=names),
        pd.DataFrame(z, names, causes),
        pd.DataFrame(y, columns=causes),
    )
