"""Gaussian neighbourhoods: which other columns predict each column of a table?

z = the standardised table
z_i | z_-i    ~ Normal(intercept_i + sum_j coefficients_ij z_j, noise_variance_i)
coefficients  ~ spike and slab, Laplace or horseshoe, zero on the diagonal
arc j -> i    = 1 where coefficients_ij is not zero (not negligible)
"""

from typing import TYPE_CHECKING, Any

import pymc as pm
import pytensor.tensor as pt

from numpy.typing import ArrayLike

from bayesstruct.core.tables.codings import ColumnUnits
from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.core.tables.rows import remember_rows
from bayesstruct.data.arguments import number
from bayesstruct.data.coding import coding_of
from bayesstruct.data.recoding import repeated_rows, without_codes
from bayesstruct.data.table import Table
from bayesstruct.neighbourhoods.model_parts import (
    check_neighbour_options,
    neighbour_coefficients,
    refuse_missing,
)

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["gaussian_neighbourhoods"]

_DEFAULTS = {
    "spike_slab": {"slab_scale": 0.5},
    "laplace": {"rate": 5.0, "negligible": 0.1},
    "horseshoe": {"slab_scale": 1.0, "negligible": 0.1},
}


def gaussian_neighbourhoods(
    data: ArrayLike,
    *,
    prior: str = "spike_slab",
    expected_neighbours: float | None = None,
    inclusion: "ArrayLike | TensorVariable | None" = None,
    slab: str | None = None,
    slab_scale: float | None = None,
    rate: float | None = None,
    negligible: float | None = None,
    noise_prior: tuple[float, float] = (2.0, 1.0),
    missing_codes: Any = None,
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn which columns of a table predict each of its columns, one regression each.

    This is a dependency network: p regressions that are fitted independently of each other. There
    need not be a joint distribution of which they are the conditionals, "A predicts B" and "B
    predicts A" may get different answers, and the posterior is that of each regression, **not a
    joint posterior over graphs**. In return it scales to a thousand columns and more with
    :func:`bayesstruct.sample_neighbourhoods`. :func:`bayesstruct.symmetrize` reads an undirected
    graph from it.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table of numbers without missing values. Fewer rows than columns are fine.
    prior : {"spike_slab", "laplace", "horseshoe"}
        ``"spike_slab"`` gives each arc a probability. The others only shrink, and an arc is then a
        coefficient beyond `negligible`: ``"laplace"`` (the Bayesian lasso) shrinks all by the same
        amount, ``"horseshoe"`` large coefficients little; its global scale is common to all
        regressions, which therefore are not quite independent.
    expected_neighbours : float, optional
        Prior expected number of predictors of a column (spike and slab, horseshoe). By default 3, or
        half of the other columns if that is less; a number that grows with p would let the number
        of wrong arcs grow too.
    inclusion : float, (p, p) array_like or DataFrame, or ``pm.Beta.dist``, optional
        Instead of it, the prior probability of an arc; a matrix, with responses as its rows, gives
        one to each, 0 forbids and 1 requires it; from a beta distribution each regression draws its
        own (Scott and Berger 2010).
    slab : {"normal", "laplace"}, optional
        Distribution of a coefficient that is not zero; normal by default.
    slab_scale : float, optional
        Its standard deviation (normal) or scale (Laplace), 0.5 by default: the effect
        of one standard deviation of a predictor, in standard deviations of the response. For the horseshoe
        the scale of the largest coefficients, 1.
    rate : float, optional
        Rate of the Laplace prior, 5 by default. In the notation of the lasso,
        :math:`\min_w \frac1n |x_i - \sum_j w_j x_j|^2 + \lambda |w|_1`, it is the penalty
        :math:`\lambda = 2 v_i \, rate / n` at the noise variance :math:`v_i`.
    negligible : float, optional
        Absolute coefficient up to which there is no arc (Laplace, horseshoe), 0.1 by default.
    noise_prior : pair of float, default (2, 1)
        Shape and scale of the inverse gamma distribution of the noise variances. The default carries
        the information of four observations of variance 1/2; its mean is 1, the variance of a standardised column, and its
        central 90 % reach from 0.2 to 2.8.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.
    row_counts : (n,) array_like of int or str, optional
        How often each row was observed, or the name of the column that says so: a table of frequencies. The
        result is that of the table with repeated rows.

    Returns
    -------
    pymc.Model
        With ``coefficients`` (node, node\_; a row is a regression), ``intercept``,
        ``noise_variance``, ``arc`` and ``weight`` over "A -> B", A being the predictor, and ``x``,
        the *standardised* table; so are the parameters. ``location`` and ``scale`` lead back to its units, in which
        :func:`bayesstruct.coefficients` has the regressions.

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    ValueError
        For an unknown prior, an option out of range, or one that belongs to another prior.

    Notes
    -----
    If the columns are jointly normal with precision matrix J, the coefficients are
    :math:`-J_{ij} / J_{ii}` and the noise variances :math:`1 / J_{ii}`: arcs in both directions, or
    none, for each pair. Columns are standardised by their means and their standard deviations with divisor n - 1, and
    each ``intercept`` has a Normal(0, 1) prior on that scale. ``pm.compute_log_likelihood`` gives the log density of each value given the
    rest of its row; ``az.loo`` leaves out single values.

    References
    ----------
    Meinshausen, N. and Bühlmann, P. (2006). High-dimensional graphs and variable selection with the
    lasso. *Annals of Statistics* 34(3), 1436-1462.

    Heckerman, D., Chickering, D. M., Meek, C., Rounthwaite, R. and Kadie, C. (2000). Dependency
    networks for inference, collaborative filtering, and data visualization. *JMLR* 1, 49-75.

    Scott, J. G. and Berger, J. O. (2010). Bayes and empirical-Bayes multiplicity adjustment in the
    variable-selection problem. *Annals of Statistics* 38(5), 2587-2619.

    Examples
    --------
    .. code-block:: python

        with bs.models.gaussian_neighbourhoods(np.log(bs.load_dataset("sachs"))):
            idata = bs.sample_neighbourhoods()  # or pm.sample()
        bs.arc_table(idata)
        bs.edge_table(bs.symmetrize(idata, "and"))
    """
    given = check_neighbour_options(
        prior,
        expected_neighbours=expected_neighbours,
        inclusion=inclusion,
        slab=slab,
        slab_scale=slab_scale,
        rate=rate,
        negligible=negligible,
    )
    [data] = repeated_rows(row_counts, data)
    table = Table.continuous(without_codes(data, missing_codes), counted=row_counts is not None)
    refuse_missing(table, "gaussian_graphical")
    z = table.standardized
    with pm.Model(coords=table.coords) as model:
        coefficients = neighbour_coefficients(table, prior, _DEFAULTS[prior] | given, deviation=1.0)
        intercept = pm.Normal("intercept", 0.0, 1.0, dims="node")
        noise_variance = pm.InverseGamma("noise_variance", *_positive(noise_prior), dims="node")
        _observe(z, intercept, coefficients, noise_variance)
        ColumnUnits(table.location, table.scale).record()
        record_codes(missing_codes)
        remember_rows(coding_of(table), _observe_others)
    return model


def _observe(z, intercept, coefficients, noise_variance):
    """Add standardised rows."""
    mean = intercept + z @ coefficients.T
    pm.Normal("x", mean, pt.sqrt(noise_variance), observed=z, dims=("observation", "node"))


def _observe_others(table):
    """Add the rows of another table to a model without rows."""
    refuse_missing(table, "gaussian_graphical")
    model = pm.modelcontext(None)
    parameters = (model[name] for name in ("intercept", "coefficients", "noise_variance"))
    _observe(table.standardized, *parameters)


def _positive(noise_prior):
    """Check the shape and scale of the prior of the noise variances."""
    try:
        shape, scale = (number("noise_prior", value, above=0) for value in noise_prior)
    except (TypeError, ValueError):
        raise ValueError(
            f"`noise_prior` must be two positive numbers, it is {noise_prior!r:.60}"
        ) from None
    return shape, scale
