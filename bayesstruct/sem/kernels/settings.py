r"""Noise, variances and priors of linear structural equations, as numbers that compiled code reads.

.. math:: x_i = c_i + \sum_{j \in \pi_i} b_{ji} x_j + s_i e_i

The coefficients have priors in units of the noise: :math:`c_i = s_i \gamma_0` with
:math:`\gamma_0 \sim N(0, 1 / \alpha_\mu)`, and :math:`b_{ji} = s_i \gamma_j` with

- ``"spike_slab"``: :math:`\gamma_j \sim N(0, \text{scale}^2)`;
- ``"laplace"``: :math:`\gamma_j` has the density :math:`e^{-|\gamma| / \text{scale}} / (2\,\text{scale})`;
- ``"horseshoe"``: :math:`\gamma_j \mid \lambda_j \sim N(0, \lambda_j^2 \text{scale}^2)`,
  :math:`\lambda_j \sim \text{HalfCauchy}(1)`.

Each is the prior of a coefficient whose arc is there. The variance of the noise is

- ``"free"``: :math:`s_i^2 \sim \text{InvGamma}(a + |\pi_i| / 2, b)`, one for each column;
- ``"equal"`` and ``"known"``: :math:`s_i^2 = v_i s^2` with given :math:`v_i` (1 if equal), and
  :math:`s^2 \sim \text{InvGamma}(a, b)`.

By default :math:`a = (\alpha_w - d + 1) / 2`, :math:`b = t / 2` and :math:`\text{scale} = 1 / \sqrt t` with t and
:math:`\alpha_w` of :class:`bayesstruct.networks.kernels.scores.gaussian.BGe`: normal noise with free variances
and normal slabs gives that score.

A column whose noise is a mixture may have normal noise *exactly*: a mixture comes near to
a normal distribution but is never one, and would take chance features of a table for its shape. Given that, the column has the
density and the priors of ``noise="gaussian"``, and the weights of its mixture have their prior and no other meaning. Columns have
normal noise with a given probability, independently, or with a probability that is a parameter of all columns: the *share* of
such columns, with a beta distribution.
"""

import math

from typing import NamedTuple

from bayesstruct.data.arguments import optional_number
from bayesstruct.data.names import nearest
from bayesstruct.networks.kernels.scores.base import positive

__all__ = [
    "EQUAL",
    "FREE",
    "GAUSSIAN",
    "HORSESHOE",
    "KNOWN",
    "LAPLACE",
    "MIXTURE",
    "NOISES",
    "PRIORS",
    "SLAB_LAPLACE",
    "SPIKE_SLAB",
    "STUDENT",
    "VARIANCES",
    "SemSettings",
    "known_share",
    "sem_settings",
]

NOISES = ("gaussian", "laplace", "student", "mixture")
VARIANCES = ("free", "equal", "known")
PRIORS = ("spike_slab", "laplace", "horseshoe")
GAUSSIAN, LAPLACE, STUDENT, MIXTURE = range(4)
FREE, EQUAL, KNOWN = range(3)
SPIKE_SLAB, SLAB_LAPLACE, HORSESHOE = range(3)


class SemSettings(NamedTuple):
    """Codes of noise, variances and prior, and the numbers of the priors; see :func:`sem_settings`."""

    noise: int  # index in NOISES
    variances: int  # index in VARIANCES
    prior: int  # index in PRIORS
    alpha_mu: float  # precision of the intercept, in units of the noise
    scale: float  # of the coefficients, in units of the noise
    shape: float  # of the inverse gamma distribution of s^2 without parents
    rate: float  # of that distribution
    concentration: float = 24.0  # of the Dirichlet distribution of mixture weights, in all
    degrees_shape: float = 2.0  # of the gamma distribution of nu - 2
    degrees_rate: float = 0.1
    normal_probability: float = (
        0.0  # that a column has normal noise in place of a mixture; a guess of it if it is random
    )
    share_alpha: float = 0.0  # of the beta distribution of that probability; 0 if it is fixed
    share_beta: float = 0.0

    @property
    def share_is_random(self) -> bool:
        """Whether the probability of normal noise is a parameter."""
        return self.share_alpha > 0.0


def sem_settings(
    d: int,
    *,
    noise: str = "laplace",
    variances: str = "free",
    prior: str = "spike_slab",
    alpha_mu: float = 1.0,
    alpha_w: float | None = None,
    scale: float | None = None,
    normal_probability: float | None = 0.0,
) -> SemSettings:
    """Return settings of linear structural equations from names, checked.

    Parameters
    ----------
    d : int
        Number of columns.
    noise : {"gaussian", "laplace", "student", "mixture"}
    variances : {"free", "equal", "known"}
    prior : {"spike_slab", "laplace", "horseshoe"}
        Of a coefficient whose arc is there.
    alpha_mu : float
        Number of rows that the prior of the mean is worth.
    alpha_w : float, optional
        Degrees of freedom, more than d + 1; d + alpha_mu + 1 by default.
    scale : float, optional
        Of the coefficients in units of the noise; that of the BGe score by default.
    normal_probability : float or None
        Prior probability that the noise of a column is exactly normal, where it may be a mixture and variances are free. None is
        a random one there, Beta(1, 1), and 0 otherwise.

    Returns
    -------
    SemSettings

    Raises
    ------
    TypeError
        If `normal_probability` is not one number.
    ValueError
        If a name is unknown or a number is out of range.

    Examples
    --------
    >>> round(sem_settings(3, noise="student").scale, 3)
    1.414
    """
    for name, own, known in (
        ("noise", noise, NOISES),
        ("variances", variances, VARIANCES),
        ("prior", prior, PRIORS),
    ):
        if own not in known:
            raise ValueError(nearest(name, own, known))
    alpha_mu = positive("alpha_mu", alpha_mu)
    alpha_w = float(d + alpha_mu + 1 if alpha_w is None else alpha_w)
    if not d + 1 < alpha_w < math.inf:
        raise ValueError(
            f"`alpha_w` must be above d + 1 = {d + 1}, it is {alpha_w}; leave it out for d + alpha_mu + 1"
        )
    t = alpha_mu * (alpha_w - d - 1) / (alpha_mu + 1)
    probability = known_share(noise, variances, normal_probability)
    beta = {"share_alpha": 1.0, "share_beta": 1.0} if probability is None else {}
    return SemSettings(
        NOISES.index(noise),
        VARIANCES.index(variances),
        PRIORS.index(prior),
        alpha_mu,
        1.0 / math.sqrt(t) if scale is None else positive("scale", scale),
        0.5 * (alpha_w - d + 1),
        0.5 * t,
        normal_probability=0.5 if probability is None else probability,
        **beta,
    )


def known_share(noise: str, variances: str, given: float | None) -> float | None:
    """Return the prior probability that the noise of a column is exactly normal in place of a mixture; None if it is random.

    Parameters
    ----------
    noise, variances : str
    given : float or None
        None is a random one for a mixture with free variances, and 0 otherwise.

    Raises
    ------
    TypeError
        If it is not one number.
    ValueError
        If it is no probability, or positive where noise cannot be normal in place of a mixture.
    """
    may_be = noise == "mixture" and variances == "free"
    share = optional_number("normal_probability", given, least=0, most=1)
    if share is None:
        return None if may_be else 0.0
    if share and not may_be:
        raise ValueError(
            "`normal_probability` goes with noise='mixture' and variances='free', not with "
            f"noise={noise!r} and variances={variances!r}; leave it out"
        )
    return share
