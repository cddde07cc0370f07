"""Parts of models with sparse priors that several families use."""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.core.recognition import is_op, parameters
from bayesstruct.core.recorded import record
from bayesstruct.graphs.own_models import prior_mean
from bayesstruct.sparse.priors.group_spike_and_slab import GroupSpikeAndSlabRV
from bayesstruct.sparse.priors.included import included
from bayesstruct.sparse.priors.spike_and_slab import SpikeAndSlabRV
from bayesstruct.sparse.reading import INCLUDED, PRIOR

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["horseshoe_prior", "support"]


def support(coefficients: "TensorVariable") -> "TensorVariable":
    """Add the support of coefficients with exact zeros to a model of your own, so that results can be read.

    Afterwards ``bs.support_table``, ``bs.summary`` and ``bs.check`` accept the results of the model.

    Parameters
    ----------
    coefficients : TensorVariable
        Variable of the model in context with the prior :class:`bayesstruct.SpikeAndSlab` or
        :class:`bayesstruct.GroupSpikeAndSlab`; several of a model, one after the other.

    Returns
    -------
    TensorVariable
        The variable ``{name}_included``, 0/1, of the shape and dimensions of the coefficients.

    Raises
    ------
    TypeError
        If the coefficients are no such variable: those with other priors are never exactly zero.

    Notes
    -----
    The group ``constant_data`` gets their prior probabilities, ``{name}_included_prior``. For a random probability that is its
    mean: exact for a beta distribution, else over 10,000 draws of the prior (standard error at most 0.005).

    Examples
    --------
    .. code-block:: python

        with pm.Model(coords={"predictor": X.columns}):
            w = bs.SpikeAndSlab("w", pm.Beta.dist(1, 10), 0.5, dims="predictor")
            bs.support(w)
            pm.Normal("y", X.to_numpy() @ w, pm.HalfNormal("noise"), observed=y)
            idata = pm.sample()
        bs.support_table(idata)
    """
    if not is_op(coefficients, (SpikeAndSlabRV, GroupSpikeAndSlabRV)):
        raise TypeError(
            "`coefficients` is a variable with the prior bs.SpikeAndSlab or bs.GroupSpikeAndSlab; those with other priors "
            "are never exactly zero"
        )
    model = pm.modelcontext(None)
    inclusion = parameters(coefficients)[0]
    if is_op(coefficients, GroupSpikeAndSlabRV):
        inclusion = inclusion[..., pt.as_tensor_variable(coefficients.owner.op.groups.labels)]
    shape = tuple(coefficients.shape.eval(mode="FAST_COMPILE"))
    dims = model.named_vars_to_dims.get(coefficients.name)
    name = str(coefficients.name).removeprefix(f"{model.name}::") + INCLUDED
    record(name + PRIOR, np.broadcast_to(prior_mean(inclusion), shape).copy(), dims)
    return included(name, coefficients, dims=dims)


def horseshoe_prior(
    size: int,
    n: int,
    expected: float,
    scale: float,
    deviation: float,
    negligible: float,
    draws: int = 400_000,
) -> tuple[float, float]:
    """Prior probabilities that one coefficient, and that two, exceed a threshold in size.

    Estimated from draws of the regularised horseshoe with a fixed seed.

    Parameters
    ----------
    size : int
        Number of coefficients.
    n : int
        Number of observations.
    expected : float
        Expected number of coefficients that are not shrunk away.
    scale : float
        Scale of the slab.
    deviation : float
        Standard deviation of the noise.
    negligible : float
        Threshold of the absolute value.
    draws : int

    Returns
    -------
    one, both : float
        For a single coefficient, and for two that share the global scale.
    """
    rng = np.random.default_rng(0)
    tau = expected / (size - expected) * deviation / np.sqrt(n)
    tau = tau * np.abs(rng.standard_cauchy((draws, 1)))
    c2 = 2.0 * scale**2 / rng.standard_gamma(2.0, (draws, 1))
    local = np.abs(rng.standard_cauchy((draws, 2)))
    w = rng.standard_normal((draws, 2)) * tau * local / np.sqrt(1.0 + (tau * local) ** 2 / c2)
    beyond = np.abs(w) > negligible
    return float(beyond.mean()), float(beyond.all(axis=1).mean())
