"""Prior of the latent features of a set of rows or objects."""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm

from bayesstruct.core.tails import (
    negative_binomial_quantile,
    poisson_quantile,
    seldom_exceeded,
)
from bayesstruct.data.arguments import whole_number
from bayesstruct.features.kernels.indian_buffet import check_buffet, new_dish_rates
from bayesstruct.features.priors.indian_buffet import IndianBuffet

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["choose_max_features", "features", "mass"]

_SHAPE, _RATE = 2.0, 2.0  # of the gamma prior of the mass
# A table may need more features than a draw of the prior is likely to have, and a chain that needs more than the
# maximum stops; columns that are not used cost little.
_MORE = 1e-8  # probability that a draw of the prior has more features than the default maximum
_LEAST = 20  # smallest default maximum


def mass(name: str, value: float | None) -> "float | TensorVariable":
    """Mean number of features of an object: a number, or a variable with a Gamma(2, 2) prior for None."""
    return pm.Gamma(name, _SHAPE, _RATE) if value is None else value


def choose_max_features(
    n: int,
    given: int | None,
    alpha: float | np.ndarray | None,
    concentration: float = 1.0,
    discount: float = 0.0,
    *,
    prior: tuple[float, float] = (_SHAPE, _RATE),
    least: int = _LEAST,
) -> int:
    """Maximum number of features: as given, or a number that a draw of the prior seldom exceeds.

    Parameters
    ----------
    n : int
        Number of objects.
    given : int or None
        Option ``max_features`` of a model.
    alpha : float, array_like or None
        The mass, draws of it if it has a prior of its own, or None if it has the default prior.
    concentration, discount : float
        Of the process.
    prior : (float, float)
        Shape and rate of the default prior of the mass, a gamma distribution.
    least : int
        Smallest number that is returned if none is given.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range.
    """
    check_buffet(1.0 if alpha is None else float(np.max(alpha)), concentration, discount)
    if given is not None:
        return whole_number("max_features", given, 1)
    rates = float(new_dish_rates(n, concentration, discount).sum())
    if alpha is None:
        shape, rate = prior
        return max(negative_binomial_quantile(shape, rate / (rate + rates), _MORE), least)
    means = rates * np.asarray(alpha, float)
    return max(_of_draws(means) if means.ndim else poisson_quantile(float(means), _MORE), least)


def _of_draws(means) -> int:
    """Choose a number that a mixture of Poisson variables with drawn means seldom exceeds.

    The draws do not tell the tail: it is taken to decrease geometrically, as for an exponential
    distribution of the means, from where it can be told.
    """
    from scipy.special import pdtrc

    told = 10.0 / len(means)
    number = seldom_exceeded(lambda k: pdtrc(k, means).mean(), told)
    return int(np.ceil(number * np.log(_MORE) / np.log(told)))


def features(
    name: str,
    alpha: "float | TensorVariable",
    n: int,
    max_features: int,
    dims: tuple[str, str],
    concentration: float = 1.0,
    discount: float = 0.0,
    **options,
) -> "TensorVariable":
    """Add the features of n objects to the model in context.

    Parameters
    ----------
    name : str
    alpha : float or TensorVariable
        Mean number of features of an object.
    n, max_features : int
    dims : tuple of str
    concentration, discount : float
    **options
        Passed to :class:`bayesstruct.IndianBuffet`.
    """
    return IndianBuffet(
        name,
        alpha,
        observations=n,
        concentration=concentration,
        discount=discount,
        max_features=max_features,
        dims=dims,
        **options,
    )
