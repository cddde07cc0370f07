"""Parameters of models of numbers in the units of the table, of which models see standardised columns."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.families import import_chapters
from bayesstruct.core.readers import coefficients_of
from bayesstruct.core.tables.codings import ColumnUnits, CovariateUnits
from bayesstruct.graphs.groups import SAMPLE_DIMS
from bayesstruct.graphs.posteriors.arcs import ArcPosterior
from bayesstruct.graphs.posteriors.edges import GROUP
from bayesstruct.graphs.posteriors.reading import read
from bayesstruct.graphs.records import OrderedColumns, ValueWeighted, is_nodewise
from bayesstruct.graphs.replicates import is_covariance, refuse_covariance

if TYPE_CHECKING:
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["coefficients", "covariance", "precision_matrix", "units_note"]

_MATRIX = ("node", "node_")
_UNITS = {"units": "those of the table"}


def covariance(
    idata: "xr.DataTree | GraphPosterior", *, group: str = "posterior"
) -> "xr.DataArray":
    r"""Covariance matrix of the columns in the units of the table, for each draw.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.gaussian_graphical`, or of :func:`bayesstruct.models.bayesian_network` of
        numbers (scores ``"bge"`` and ``"gaussian"``).
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    xarray.DataArray
        Over chain, draw, node and node\_. Of a graphical model with covariates it is the covariance given these; of a
        Bayesian network that of rows in which nothing was set from outside.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of such a model.

    See Also
    --------
    precision_matrix : its inverse.
    coefficients : linear effects and intercepts in the units of the table.

    Notes
    -----
    ``precision`` in the result of a graphical model is that of standardised columns: with s the ``scale`` in
    ``constant_data``, the covariance is :math:`\mathrm{diag}(s) K^{-1} \mathrm{diag}(s)`, times :math:`\nu / (\nu - 2)`
    if rows have a t distribution (NaN if :math:`\nu \le 2`, where there is none). With an alternative t distribution only its diagonal
    has this factor, and covariances have :math:`\tfrac{\nu}{2} (\Gamma(\tfrac{\nu - 1}{2}) / \Gamma(\tfrac{\nu}{2}))^2`. With
    coefficients B and noise
    variances D of a Bayesian network it is :math:`\mathrm{diag}(s) (I - B)^{-1} D (I - B)^{-T} \mathrm{diag}(s)`.

    Examples
    --------
    >>> covariance(idata).mean(("chain", "draw")).to_pandas()  # doctest: +SKIP
    """
    posterior = read(idata, group)
    _, scale = _units(posterior)
    if _is_network(posterior):
        matrix, variance = _network(posterior)
        inverse = np.linalg.inv(np.eye(matrix.shape[-1]) - matrix)
        standard = (inverse * variance[..., None, :]) @ inverse.mT
    else:
        standard = _covariance(posterior)
    return _over_columns(posterior, standard * np.outer(scale, scale), "covariance")


def precision_matrix(
    idata: "xr.DataTree | GraphPosterior", *, group: str = "posterior"
) -> "xr.DataArray":
    """Precision matrix of the columns in the units of the table, for each draw: the inverse of `covariance`.

    Parameters
    ----------
    idata : xarray.DataTree
        As of `covariance`.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    xarray.DataArray
        Over chain, draw, node and node_, in reciprocal units.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of such a model.

    Examples
    --------
    >>> precision_matrix(idata).mean(("chain", "draw")).to_pandas()  # doctest: +SKIP
    """
    posterior = read(idata, group)
    _, scale = _units(posterior)
    if _is_network(posterior):
        matrix, variance = _network(posterior)
        away = np.eye(matrix.shape[-1]) - matrix
        standard = (away.mT / variance[..., None, :]) @ away
    elif ValueWeighted.is_in(posterior.constants):
        standard = np.linalg.inv(_covariance(posterior))
    else:
        standard = _precision(posterior) / _student_factor(posterior)
    return _over_columns(posterior, standard / np.outer(scale, scale), "precision")


def coefficients(
    idata: "xr.DataTree | GraphPosterior", *, group: str = "posterior"
) -> "xr.Dataset":
    r"""Linear effects, intercepts and noise in the units of the table, for each draw.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.bayesian_network` of numbers or of columns of several kinds, of
        :func:`bayesstruct.models.gaussian_neighbourhoods`, or of :func:`bayesstruct.models.gaussian_graphical`.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    xarray.Dataset
        ``coefficient`` over the arcs "A -> B" (ordered_pair): change of B for one unit of A; of a graphical model over
        covariate and node, if it has covariates. ``intercept`` (node): expected value of a column where all on which
        it depends is 0; absent if the model has the covariance matrix of a table, which does not know the means.
        ``noise_sd`` (node), of networks and neighbourhoods: standard deviation given these. Of a network under
        ``score="mixed"`` ``coefficient`` over ``term``: changes of a linear predictor by one unit of a number, by one step of an ordered
        state, or by a state in place of the first one, with intercepts, thresholds and noise scales to match.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of such a model.

    Notes
    -----
    A column is :math:`\ell + s z`, with location :math:`\ell` and scale s in ``constant_data``; the coefficient of A
    in B is that of the standardised columns times :math:`s_B / s_A`.

    Examples
    --------
    >>> coefficients(idata)["coefficient"].sel(ordered_pair="A -> B")  # doctest: +SKIP
    """
    import xarray as xr

    if isinstance(idata, xr.DataTree):
        import_chapters("reading")  # which register the coefficients of their families
        if (known := coefficients_of(idata, group)) is not None:
            return known
    posterior = read(idata, group)
    OrderedColumns.refuse(posterior.constants, "this result has no linear coefficients")
    if isinstance(posterior, ArcPosterior):
        found = _regressions(posterior)
    elif "mean" in posterior.draws and "precision" in posterior.draws:
        found = _means(posterior)
    else:
        raise ValueError(_refusal(posterior, "linear coefficients"))
    if is_covariance(idata):
        del found["intercept"]
        if not found:
            refuse_covariance(idata)
    return xr.Dataset(found, attrs=_UNITS)


def units_note(posterior: "GraphPosterior") -> list[str]:
    """Say of which unit the coefficients in a table are, if the model standardised the columns."""
    scale = ColumnUnits.read(posterior.constants).scale
    if not _is_regression(posterior) or scale is None or (scale == 1).all():
        return []
    return [
        "mean and interval are of coefficients of standardised columns; bs.coefficients(idata) has them in the units of "
        "the table."
    ]


def _is_regression(posterior) -> bool:
    names = {"weight", "intercept", "noise_variance"}
    return isinstance(posterior, ArcPosterior) and names <= {*map(str, posterior.draws.data_vars)}


def _is_network(posterior) -> bool:
    return _is_regression(posterior) and posterior.acyclic


def _draws(posterior, name: str, *dims: str) -> np.ndarray:
    return posterior.draws[name].transpose(*SAMPLE_DIMS, *dims).values


def _refusal(posterior, what: str) -> str:
    if is_nodewise(posterior.constants):
        return (
            f"this result has no {what}: it has graphs alone. Read the result of bs.precision_draws(idata), which draws precision "
            "matrices given some of the graphs"
        )
    reason = "some of its columns are states"
    if _is_regression(posterior):
        reason = "it is a set of regressions and not a joint distribution of the columns; see bs.coefficients"
    return (
        f"this result has no {what}: {reason}. It is known for results of bs.models.gaussian_graphical, linear_sem, lingam, and of "
        "bs.models.bayesian_network of numbers"
    )


def _units(posterior) -> tuple[np.ndarray, np.ndarray]:
    """Location and scale of the columns of a result that has a covariance matrix; raises if it has none."""
    if not _is_network(posterior):
        what = "this result has no covariance matrix of the table"
        OrderedColumns.refuse(posterior.constants, what)
        if "precision" not in posterior.draws:
            raise ValueError(_refusal(posterior, "covariance matrix"))
        if GROUP in posterior.draws["precision"].dims:
            raise ValueError(
                "this result has a matrix for each group of rows: read one group, bs.one_group(idata, label)"
            )
    return ColumnUnits.read(posterior.constants).known()


def _precision(posterior) -> np.ndarray:
    return _draws(posterior, "precision", *_MATRIX)


def _covariance(posterior) -> np.ndarray:
    """Covariance matrix of standardised columns of a graphical model."""
    inverse, factor = np.linalg.inv(_precision(posterior)), _student_factor(posterior)
    degrees = _degrees(posterior)
    if degrees is None or not ValueWeighted.is_in(posterior.constants):
        return inverse * factor
    pairs = np.where(np.isnan(factor), np.nan, _pair_factor(degrees))
    return inverse * np.where(np.eye(inverse.shape[-1]) > 0, factor, pairs)


def _degrees(posterior) -> np.ndarray | None:
    """Degrees of freedom of t rows in each draw, or None without such rows."""
    if "degrees" in posterior.draws:
        return _draws(posterior, "degrees")[..., None, None]
    return posterior.constants["degrees"].values if "degrees" in posterior.constants else None


def _student_factor(posterior) -> np.ndarray | float:
    """Ratio of covariance and scale matrix of t rows, NaN where there is no covariance; 1 for normal rows."""
    degrees = _degrees(posterior)
    if degrees is None:
        return 1.0
    return np.where(degrees > 2.0, degrees / np.where(degrees > 2.0, degrees - 2.0, 1.0), np.nan)


def _pair_factor(degrees: np.ndarray) -> np.ndarray:
    """Squared expectation of one over the root of a weight."""
    from scipy.special import gammaln

    half = 0.5 * np.maximum(degrees, 2.0)
    return half * np.exp(2.0 * (gammaln(half - 0.5) - gammaln(half)))


def _network(posterior) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of standardised columns, rows children, and noise variances."""
    weight = posterior.weights(np.arange(posterior.n_lines))
    return posterior.matrix(weight).mT, _draws(posterior, "noise_variance", "node")


def _regressions(posterior) -> dict:
    if not _is_regression(posterior):
        raise ValueError(_refusal(posterior, "linear coefficients"))
    (location, scale), dim = ColumnUnits.read(posterior.constants).known(), posterior.dim
    ratio = scale[posterior.target] / scale[posterior.source]
    weight = posterior.weights(np.arange(posterior.n_lines)) * ratio
    intercept = location + scale * _draws(posterior, "intercept", "node")
    intercept -= location @ posterior.matrix(weight)
    noise = scale * np.sqrt(_draws(posterior, "noise_variance", "node"))
    return {
        "coefficient": _labelled(posterior, weight, (dim,)),
        "intercept": _labelled(posterior, intercept, ("node",)),
        "noise_sd": _labelled(posterior, noise, ("node",)),
    }


def _means(posterior) -> dict:
    location, scale = ColumnUnits.read(posterior.constants).known()
    intercept = location + scale * _draws(posterior, "mean", "node")
    if "coefficients" not in posterior.draws:
        return {"intercept": _labelled(posterior, intercept, ("node",))}
    of = CovariateUnits.read(posterior.constants)
    slopes = _draws(posterior, "coefficients", "covariate", "node") * scale
    slopes = slopes / of.scale[:, None]
    intercept = intercept - np.einsum("cdqp,q->cdp", slopes, of.location)
    return {
        "coefficient": _labelled(posterior, slopes, ("covariate", "node")),
        "intercept": _labelled(posterior, intercept, ("node",)),
    }


def _over_columns(posterior, values: np.ndarray, name: str) -> "xr.DataArray":
    names = posterior.variables
    out = _labelled(posterior, values, _MATRIX).rename(name)
    return out.assign_coords(node=names, node_=names)


def _labelled(posterior, values: np.ndarray, dims: tuple[str, ...]) -> "xr.DataArray":
    import xarray as xr

    dims = (*SAMPLE_DIMS, *dims)
    coords = {d: posterior.draws[d] for d in dims if d in posterior.draws.coords}
    return xr.DataArray(values, coords, dims, attrs=_UNITS)
