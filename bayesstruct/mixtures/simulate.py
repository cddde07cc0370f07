"""Tables of clusters, each with a regression of its own."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import choice, generator, number, whole_number
from bayesstruct.mixtures.data import FAMILIES

if TYPE_CHECKING:
    import pandas

__all__ = ["MixtureSimulation", "dp_glm"]


@dataclass(frozen=True, eq=False, repr=False)
class MixtureSimulation:
    """A simulated table with the clusters and regressions behind it.

    Attributes
    ----------
    data : pandas.DataFrame, shape (n, p + 1)
        Predictors ``x0``, ``x1``, ..., and the response ``y``.
    cluster : pandas.Series, shape (n,)
        Cluster of each row, 0, 1, ...
    coefficient : pandas.DataFrame, shape (K, p + 1)
        Coefficients of each cluster; the intercept, which comes first, is at its centre.
    centre : pandas.DataFrame, shape (K, p)
        Means of the predictors in each cluster.
    mean : pandas.Series, shape (n,)
        Mean of the response of each row.
    """

    data: "pandas.DataFrame"
    cluster: "pandas.Series"
    coefficient: "pandas.DataFrame"
    centre: "pandas.DataFrame"
    mean: "pandas.Series"

    def __repr__(self) -> str:
        n, p = self.data.shape
        return f"MixtureSimulation({n:,} rows, {p - 1:,} predictors, {len(self.centre)} clusters)"


def dp_glm(
    n: int,
    p: int = 2,
    *,
    n_clusters: int = 3,
    family: str = "gaussian",
    separation: float = 3.0,
    slope: float = 1.0,
    noise: float = 0.3,
    random_seed: int | np.random.Generator | None = None,
) -> MixtureSimulation:
    """Simulate rows in clusters, each with a generalised linear model of its own.

    Predictors have standard deviation 1 in a cluster.

    Parameters
    ----------
    n : int
        Number of rows.
    p : int, default 2
        Number of predictors.
    n_clusters : int, default 3
        Number of clusters; each has at least one row if there are enough rows.
    family : {"gaussian", "logistic", "poisson"}
    separation : float, default 3
        Standard deviation of the centres of clusters.
    slope : float, default 1
        Standard deviation of coefficients, intercepts included.
    noise : float, default 0.3
        Standard deviation of a normal response given its predictors.
    random_seed : int or numpy.random.Generator, optional
        The same seed gives the same simulation.

    Returns
    -------
    MixtureSimulation

    Raises
    ------
    TypeError, ValueError
        If an option is out of range.

    Examples
    --------
    >>> dp_glm(100, p=3, random_seed=1)
    MixtureSimulation(100 rows, 3 predictors, 3 clusters)
    """
    import pandas as pd

    choice("family", family, FAMILIES)
    n, p = whole_number("n", n, 1), whole_number("p", p, 1)
    k = whole_number("n_clusters", n_clusters, 1)
    separation, slope = number("separation", separation, least=0), number("slope", slope, least=0)
    noise = number("noise", noise, least=0)
    rng = generator(random_seed)
    labels = rng.permutation(np.append(np.arange(min(k, n)), rng.integers(k, size=max(n - k, 0))))
    centre = separation * rng.standard_normal((k, p))
    coefficient = slope * rng.standard_normal((k, p + 1))
    step = rng.standard_normal((n, p))
    eta = coefficient[labels, 0] + (step * coefficient[labels, 1:]).sum(axis=1)
    mean, y = _respond(rng, family, eta, noise)
    names = [f"x{j}" for j in range(p)]
    data = pd.DataFrame(centre[labels] + step, columns=names).assign(y=y)
    return MixtureSimulation(
        data,
        pd.Series(labels, name="cluster"),
        pd.DataFrame(coefficient, columns=["intercept", *names]),
        pd.DataFrame(centre, columns=names),
        pd.Series(mean, name="mean"),
    )


def _respond(rng, family, eta, noise):
    """Means of responses, and responses."""
    if family == "gaussian":
        return eta, eta + noise * rng.standard_normal(len(eta))
    if family == "logistic":
        chance = 1.0 / (1.0 + np.exp(-eta))
        return chance, (rng.random(len(eta)) < chance).astype(int)
    rate = np.exp(eta)
    return rate, rng.poisson(rate)
