"""Parts of models of linear structural equations: parameters given the graph, and rows given them."""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.core.missing import show_missing
from bayesstruct.data.errors import TableError, column_list, warn
from bayesstruct.networks.data.tables import known_interventions
from bayesstruct.networks.model_parts import ROWS, record_missing
from bayesstruct.networks.priors.gaussian_network import (
    Intercepts,
    arc_index,
    coefficient_matrix,
)
from bayesstruct.sem.data import SemTable
from bayesstruct.sem.kernels.errors import BASE
from bayesstruct.sem.kernels.settings import (
    EQUAL,
    FREE,
    HORSESHOE,
    MIXTURE,
    NOISES,
    SLAB_LAPLACE,
    STUDENT,
    SemSettings,
)
from bayesstruct.sem.priors.incomplete import IncompleteLinearSem, MissingNumbers
from bayesstruct.sem.priors.noise import NoiseLaw, noise_law
from bayesstruct.sem.priors.parameters import (
    ArcSlabs,
    CommonNoiseScale,
    LocalScales,
    NoiseDegrees,
    NoiseScales,
)
from bayesstruct.sem.priors.records import SemNoise, SemPriors
from bayesstruct.sem.priors.rows import LinearSem
from bayesstruct.sem.solvers.normality import light_tailed

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

    from bayesstruct.data.table import Table

__all__ = ["observe_other_rows", "sem_parameters", "sem_rows", "warn_of_light_tails"]

_HEAVY = {"laplace": "Laplace", "student": "t distributed"}


def warn_of_light_tails(known: SemTable, noise: str) -> None:
    """Say which columns no linear combination of heavy-tailed errors can be, before anything is sampled.

    Parameters
    ----------
    known : SemTable
        Rows that are complete and in which nothing was set from outside are looked at.
    noise : str
        Nothing is said of noise that may have light tails.
    """
    if noise not in _HEAVY:
        return
    table = known.table
    plain = ~(table.missing | known.was_set).any(axis=1)
    light = [table.names[j] for j in np.flatnonzero(light_tailed(table.standardized[plain]))]
    if light:
        warn(
            f"{column_list(light)}: tails are lighter than those of normal numbers, and no sum of {_HEAVY[noise]} errors has such; "
            f"directions under noise={noise!r} may be wrong, however probable they are: noise='mixture' learns the shape of each column"
        )


def sem_parameters(known: SemTable, dag: "TensorVariable", settings: SemSettings) -> NoiseLaw:
    """Add the parameters given the graph to the model in context.

    Parameters
    ----------
    known : SemTable
    dag : TensorVariable
        A :class:`bayesstruct.DAG`.
    settings : SemSettings

    Returns
    -------
    NoiseLaw
        Distribution of the noise.
    """
    d, normal = known.table.p, settings.normal_probability > 0.0
    law = noise_law(NOISES[settings.noise], normal=normal)
    if law.name == "mixture":
        model = pm.modelcontext(None)
        model.add_coord("component", np.arange(len(BASE)))
        model.add_coord("noise_component", np.arange(law.size))
    SemNoise.of(law).record()
    SemPriors.of(settings).record()
    scales = _noise_scales(known, dag, settings)
    _weights(dag, scales, settings)
    centred = settings.noise != MIXTURE
    intercept = Intercepts(
        "intercept" if centred else "offset", scales**2, settings.alpha_mu, dims="node"
    )
    mean, variance = law.moments(_shapes(d, settings, law))
    if not centred:
        pm.Deterministic("intercept", intercept + scales * mean, dims="node")
    pm.Deterministic("noise_variance", scales**2 * variance, dims="node")
    return law


def _noise_scales(known, dag, settings):
    """Add the noise scale of each column, (d,)."""
    d, common = known.table.p, (settings.shape, settings.rate)
    if settings.variances == FREE:
        alpha_w, t = 2.0 * settings.shape + d - 1.0, 2.0 * settings.rate
        return NoiseScales("noise_scale", dag, alpha_w, t, dims="node")
    if settings.variances == EQUAL:
        return pt.ones(d) * CommonNoiseScale("noise_scale", *common)
    factor = CommonNoiseScale("noise_factor", *common)
    return pm.Deterministic("noise_scale", factor * np.sqrt(known.relative), dims="node")


def _weights(dag, scales, settings):
    """Add the weights over arcs given the graph and the noise scales."""
    _, target = arc_index(dag.type.shape[-1])
    width = settings.scale * scales[pt.as_tensor_variable(target)]
    if settings.prior == HORSESHOE:
        width = width * LocalScales("local_scale", dag, dims="ordered_pair")
    slab = "laplace" if settings.prior == SLAB_LAPLACE else "normal"
    ArcSlabs("weight", dag, width, slab=slab, dims="ordered_pair")


def _shapes(d, settings, law):
    """Add the shape parameters of the noise, if it has some."""
    if settings.noise == STUDENT:
        NoiseDegrees("degrees", settings.degrees_shape, settings.degrees_rate, dims="node")
    elif settings.noise == MIXTURE:
        own = settings.variances == FREE
        dims = ("node", "component") if own else ("component",)
        weights = settings.concentration * np.tile(BASE, (d, 1) if own else 1)
        # Without the shape PyTensor checks it, which takes seconds to compile.
        options = {"shape": weights.shape, "dims": dims, "default_transform": None}
        pm.Dirichlet("mixture_weight", weights, **options)
        if settings.normal_probability > 0.0:
            pm.Bernoulli("normal_noise", _normal_share(settings), shape=(d,), dims="node")
    return _shape_parameters(d)


def _normal_share(settings):
    """Probability that a column has normal noise: a number, or a parameter that all columns share."""
    if not settings.share_is_random:
        return settings.normal_probability
    prior = settings.share_alpha, settings.share_beta
    return pm.Beta("normal_share", *prior, default_transform=None)


def _shape_parameters(d):
    """Shape parameters of the noise of the model in context, (d, k)."""
    named = pm.modelcontext(None).named_vars
    if "degrees" in named:
        return named["degrees"][:, None]
    if "normal_noise" in named:
        alone = pt.cast(named["normal_noise"], "float64")[:, None]
        return pt.concatenate([named["mixture_weight"] * (1.0 - alone), alone], axis=1)
    if "mixture_weight" in named:
        return pt.ones((d, 1)) * named["mixture_weight"]
    return pt.zeros((d, 1))


def observe_other_rows(law: NoiseLaw, table: "Table", interventions=None) -> None:
    """Add the rows of another table to a model without rows.

    Raises
    ------
    TableError
        If values are missing: their density has no closed form.
    """
    if table.missing.any():
        columns = [table.names[j] for j in np.flatnonzero(table.missing.any(axis=0))]
        raise TableError(
            f"{column_list(columns)}: values are missing, and rows of linear_sem have densities only if they are "
            "complete; drop these rows, or see bs.predict(idata, table)"
        )
    sem_rows(law, table, interventions)


def sem_rows(law: NoiseLaw, table: "Table", interventions=None) -> None:
    """Add the rows of a table given the parameters to the model in context.

    Parameters
    ----------
    law : NoiseLaw
    table : Table
    interventions : (n, d) array_like or DataFrame of bool, optional
        Which values were set.
    """
    model, d = pm.modelcontext(None), table.p
    was_set = known_interventions(interventions, table)
    offset = model["offset" if law.name == "mixture" else "intercept"]
    scales = pt.ones(d) * model["noise_scale"]
    matrix = coefficient_matrix(model["weight"], d)
    params = offset, matrix, scales, _shape_parameters(d), model["location"], model["scale"]
    setting = np.where(was_set, table.values, np.nan)
    options = {"noise": law, "setting": setting, "dims": ROWS}
    if not table.missing.any():
        LinearSem("x", *params, **options, observed=table.values)
        return
    mask = record_missing(table)
    filled = np.where(table.missing, table.location, table.values)
    cells = MissingNumbers("x_missing", filled, mask, dims="missing")
    x = IncompleteLinearSem("x", cells, *params, **options, missing=mask, observed=filled)
    show_missing(x, table.missing)
