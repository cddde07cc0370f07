"""Correct the spread of composite posteriors by the sandwich covariance matrix."""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm

from bayesstruct.data.errors import listing
from bayesstruct.fields.recognition.fields import Field, fields_of

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["sandwich"]

_TOO_FAR = 20.0  # times as large a standard deviation: beyond it, the table does not determine the parameters
_MOST = 3000  # largest number of parameters, for their covariance matrix
_MARK = "sandwich"  # attribute of draws that have been corrected


def sandwich(idata: "xr.DataTree", model: pm.Model | None = None) -> "xr.DataTree":
    r"""Correct the spread of draws that were made with a pseudo-likelihood.

    The pseudo-likelihood uses each value several times, as if it were observed anew, so that the posterior is
    too narrow. The draws are moved away from their mean :math:`\hat\theta` so that their covariance,
    V, becomes that of the estimator,

    .. math::

        \theta^* = \hat\theta + \Omega (\theta - \hat\theta), \qquad
        \Omega = V J^{1/2} V^{-1/2}, \qquad \Omega V \Omega' = V J V,

    J being the sum over the rows of the squared scores. Zeros stay zeros: the correction applies to the
    biases and to the weights of edges whose posterior probability is at least one half, in the draws in
    which they are present. Probabilities and Bayes factors of edges are **not** corrected. Combinations of parameters that only
    the prior determines, as the row and column means of full tables, lose their spread, since
    the estimator does not vary there: read the strengths of edges, not single entries of full tables.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.ising` or :func:`bayesstruct.models.pairwise_mrf` with
        ``likelihood="pseudo"``.
    model : pymc.Model, optional
        By default the model in context.

    Returns
    -------
    xarray.DataTree
        A copy, with other draws of ``bias``, of the weights, and of their strengths.

    Raises
    ------
    ValueError
        If there is no model, it has no pseudo-likelihood of a complete table, it is of another table than the
        draws, these have been corrected before or sorted, they are too few to estimate their covariance, or the correction
        is so large that the table does not determine the parameters.

    References
    ----------
    Shaby, B. A. (2014). The open-faced sandwich adjustment for MCMC using estimating functions.
    *Journal of Computational and Graphical Statistics* 23, 853-876.

    Examples
    --------
    .. code-block:: python

        with bs.models.ising(symptoms) as model:
            idata = pm.sample()
            bs.edge_table(bs.sandwich(idata))
    """
    if model is None and pm.Model.get_context(error_if_none=False) is None:
        raise ValueError(
            "the correction needs the model that was sampled: bs.sandwich(idata, model), or call it "
            "inside `with model:`"
        )
    model = pm.modelcontext(model)
    field, names = _field(model)
    posterior = idata["posterior"]
    if _MARK in posterior.attrs:
        raise ValueError("these draws have been corrected already: read them as they are")
    draws = [_flat(posterior, name) for name in names]
    potentials = field.potentials
    if [d.shape[1] for d in draws] != [potentials.bias_size, potentials.weight_size]:
        raise ValueError("the draws are those of another model: pass the model that was sampled")
    _check_table(idata, model, field.rows)
    _check_labels(posterior, model, names)
    theta = np.concatenate(draws, axis=1)
    on = theta != 0
    at = np.flatnonzero(on.mean(axis=0) >= 0.5)
    if len(at) > _MOST:
        raise ValueError(f"{len(at):,} parameters are too many for their covariance matrix")
    if len(theta) < 5 * len(at):
        raise ValueError(
            f"{len(theta):,} draws are too few for the covariance of {len(at):,} parameters: draw at "
            f"least {5 * len(at):,}"
        )
    corrected = theta.copy()
    corrected[:, at] = _spread(
        theta[:, at], on[:, at], _squared_scores(model, field, theta, on, at)
    )
    first = draws[0].shape[1]
    parts = dict(zip(names, (corrected[:, :first], corrected[:, first:]), strict=True))
    return _copy(idata, parts, potentials)


def _field(model) -> tuple[Field, list[str]]:
    """Field of a model with a pseudo-likelihood, and the names of its biases and weights."""
    fields = [field for field in fields_of(model) if field.rows in model.observed_RVs]
    if len(fields) != 1 or fields[0].likelihood != "pseudo":
        raise ValueError(
            'the correction is for one Markov random field with likelihood="pseudo", which this model does not have; '
            "fields of several groups of rows are not corrected"
        )
    [field] = fields
    if field.missing is not None:
        raise ValueError("the correction needs a complete table: drop the rows with missing values")
    names = [str(field.bias.name), str(field.weight.name)]
    known = {v.name for v in model.unobserved_RVs}
    if not set(names) <= known:
        raise ValueError("biases and weights must be variables of the model, not expressions")
    return field, names


def _check_table(idata, model, rows):
    """Raise if the result has another table than the model."""
    if "observed_data" not in idata.children or rows.name not in idata["observed_data"]:
        return
    table = model.rvs_to_values[rows].eval(mode="FAST_COMPILE")
    if not np.array_equal(idata["observed_data"][rows.name].values, table):
        raise ValueError("the draws are those of another table: pass the model that was sampled")


def _check_labels(posterior, model, names):
    """Raise if the entries of the draws are not in the order of the model."""
    for name in names:
        for dim in posterior[name].dims[2:]:
            labels = model.coords.get(dim)
            if (
                labels is None or dim not in posterior.coords
            ):  # draws without labels cannot be sorted by them
                continue
            if [*map(str, posterior[dim].values)] != [*map(str, labels)]:
                raise ValueError(
                    f"`{dim}` of the draws of {name!r} is not that of the model ({listing([*posterior[dim].values], 4)}; "
                    f"{listing([*labels], 4)}): these draws were sorted, or are of another model; correct the result as "
                    "pm.sample() returned it"
                )


def _flat(posterior, name):
    values = posterior[name].transpose("chain", "draw", ...).values
    return values.reshape(values.shape[0] * values.shape[1], -1)


def _squared_scores(model, field, theta, on, at):
    """Sum over the rows of the table of the squared scores, at the means of the parameters that are present."""
    from bayesstruct.fields.solvers.likelihoods import PseudoLikelihood

    potentials = field.potentials
    centre = np.zeros(theta.shape[1])
    centre[at] = theta[:, at].sum(axis=0) / on[:, at].sum(axis=0)
    fit = PseudoLikelihood(potentials, model.rvs_to_values[field.rows].eval(mode="FAST_COMPILE"))
    first = potentials.bias_size
    scores = fit.row_scores(centre[:first], centre[first:])[:, at]
    scores = scores - np.average(scores, axis=0, weights=fit.counts)
    return (scores * fit.counts[:, None]).T @ scores


def _spread(theta, on, meat):
    """Transform draws so that their covariance is V J V instead of V."""
    count = on.sum(axis=0)
    mean = theta.sum(axis=0) / count
    away = np.where(on, theta - mean, 0.0)
    # Counts of single parameters: with those of pairs the matrix need not be positive definite.
    scaled = away / np.sqrt(count)
    covariance = scaled.T @ scaled
    matrix = covariance @ _power(meat, 0.5) @ _power(covariance, -0.5)
    moved = away @ matrix.T
    before, after = (
        np.sqrt(np.square(v).sum(axis=0) / count) for v in (away, np.where(on, moved, 0.0))
    )
    if (after > _TOO_FAR * before).any():
        raise ValueError(
            f"the correction would make a standard deviation {(after / before).max():.0f} times as large: the table does "
            "not determine these parameters, or the model is far from it; report the uncorrected intervals, or use "
            'likelihood="exact"'
        )
    return np.where(on, mean + moved, 0.0)


def _power(matrix, exponent):
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    values = np.maximum(values, 1e-12 * values.max())
    return (vectors * values**exponent) @ vectors.T


def _copy(idata, parts, potentials):
    out = idata.copy(deep=True)
    group = out["posterior"].to_dataset()
    for name, values in parts.items():
        group[name] = group[name].copy(data=values.reshape(group[name].shape))
    if "potential" in parts:
        shape = group["weight"].shape
        norms = potentials.interaction_norms(parts["potential"])
        group["weight"] = group["weight"].copy(data=norms.reshape(shape))
    group.attrs[_MARK] = 1
    out["posterior"] = group
    return out
