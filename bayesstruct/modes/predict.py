"""Distributions of empty values given the filled ones of their rows, from any result."""

from typing import TYPE_CHECKING, Any

from bayesstruct.core.families import import_chapters
from bayesstruct.core.tables.codings import CovariateUnits, StateLevels
from bayesstruct.core.tables.missing_codes import MissingCodes
from bayesstruct.core.tables.predictions import rows_of
from bayesstruct.data.labels import check_same_rows
from bayesstruct.data.row_groups import rows_of_groups
from bayesstruct.graphs.groups import CONSTANTS, group_dataset
from bayesstruct.graphs.records import RowGroups
from bayesstruct.graphs.replicates import refuse_covariance
from bayesstruct.graphs.summaries import interval_probability

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.data.intake import TableLike

__all__ = ["predict"]

import_chapters("reading")  # which register what the rows of their families are


def predict(
    idata: "xr.DataTree",
    table: "TableLike",
    *,
    setting: dict | None = None,
    covariates: "TableLike" = None,
    group: Any = None,
    ci_prob: float | None = None,
) -> "pd.DataFrame":
    r"""Predict the empty values of rows from the filled ones of the same row.

    .. math:: p(x_m \mid x_o) = \frac1S \sum_s p(x_m \mid x_o, \theta_s)

    for the missing values m and the observed values o of a row and posterior draws :math:`\theta_1, \ldots, \theta_S`.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.gaussian_graphical`, ``ising``, ``pairwise_mrf``, ``tree``,
        ``bayesian_network``, ``linear_sem``, ``lingam``, ``network_classifier``, ``latent_features``, ``hidden_causes``,
        ``dp_glm`` or a neighbourhood model (one empty value in a row); its model is not needed.
    table : DataFrame or array_like
        (n, p) rows in the units, or with the states, of the table of the model, which may be new; missing where
        a value is to be predicted, or where it is one of the model's `missing_codes`. Columns that have names are found by name, others by position.
    setting : dict, optional
        Columns that are set from outside in all rows, and their values, as in :func:`bayesstruct.do`; for Bayesian networks. They are cut
        off from their parents, and the filled values of the other columns are those observed afterwards. In
        `table` they are empty or absent.
    covariates : DataFrame or array_like, optional
        (n, q), if the model has covariates.
    group : str or (n,) array_like, optional
        Groups of the rows, or the name of the column of `table` that holds them, for a Gaussian model of groups of rows; `table` may
        also be a dict of one table for each group. Of a Markov random field of groups read one group, :func:`bayesstruct.one_group`.
    ci_prob : float, optional
        Probability of the intervals, which are equal-tailed. By default ``arviz.rcParams["stats.ci_prob"]``.

    Returns
    -------
    pandas.DataFrame
        Numbers: one line for each empty value, with ``row`` (its label, or position), ``column``, and in the
        units of the table ``mean``, ``sd``, ``low`` and ``high`` of its predictive distribution, noise included. States: one line
        for each state of each empty value, with ``state``, ``probability``, and ``low`` and ``high``, the interval of the
        probability over the posterior. Of a network with ``score="mixed"`` the table has all these columns: ``state`` is empty for
        numbers, ``probability`` is NaN for them, and ``mean`` and ``sd`` for states.

    Raises
    ------
    TableError
        If a column is absent or unknown, a state does not occur in the table of the model, or a sum would have more than
        65,536 terms: ways of completing a row of states, or of having the features of a draw.
    ValueError
        If the result is of another model, or an option does not apply.

    Warns
    -----
    TableWarning
        If a number is far outside of the table of the model, in `table` or in `setting`.

    Notes
    -----
    Draws count equally: the filled values of a row tell about its empty ones, and not about the parameters. That is exact for
    rows of the table of the model. A few new rows change a posterior little; the exact predictive
    distribution of new rows weighs draws by the density of their filled values.

    Under the pseudo-likelihood and under a BIC the same formula is used with the draws of that posterior. Of a
    discrete network up to 2,000 draws are used, spread evenly, and 500 of features and causes, over which a new row has its own
    sum. Draws under which the filled values are impossible, as under a
    BIC, are left out.

    Of ``linear_sem`` and ``lingam`` with noise that is not normal up to 1,000 draws are used, each with ten normal distributions of the empty
    values given random values of what is latent in the noise: with 1,000 draws means have a Monte Carlo error of about a hundredth of ``sd``.

    Of a network with ``score="mixed"`` up to 1,000 draws are used. A row with one empty value, or with several empty states, is
    computed for each draw: states exactly, numbers on a grid. With several empty values, numbers among them, up to 250 draws are used with 16 values each, that are
    weighted by the density of the filled values and then drawn in turn; ends of intervals of numbers are quantiles of draws.

    Under a mixture of regressions the response is a column like others, and may be absent. There draws do count in
    proportion to the density of the filled values, as in :func:`bayesstruct.mixture_predictions`; 500 are used, and a
    new cluster is integrated over by 1,000 draws of its prior. Counts in a new cluster grow with the exponential of its
    coefficients: far from all rows of the table their mean and standard deviation are large and rest on few of these draws, and
    both are infinite if a predictor is empty too, whose t distribution has too heavy tails. The interval is right.

    See Also
    --------
    bayesstruct.new_rows : log likelihoods and predictive draws of other rows.
    bayesstruct.do : effects of setting columns.
    bayesstruct.exact.tree_posterior : its ``predict`` averages over all trees and parameters exactly, without draws.

    Examples
    --------
    .. code-block:: python

        new = pd.DataFrame({"a": [5.2, 4.1], "b": [np.nan, 47.0], "c": [-180.0, np.nan]})
        bs.predict(idata, new)
        bs.predict(idata, new.drop(columns="a"), setting={"a": 5.0})
    """
    import xarray as xr

    if not isinstance(idata, xr.DataTree):
        raise TypeError(
            "Expected the xarray.DataTree that pm.sample() returns, got "
            f"{type(idata).__module__}.{type(idata).__name__}."
        )
    refuse_covariance(idata)
    codes = MissingCodes.read(idata)
    if covariates is not None:
        check_same_rows(table, covariates)
        covariates = codes.without(covariates, CovariateUnits.names(idata))
    if RowGroups.is_in(idata):
        if StateLevels.is_in(idata):
            raise ValueError(
                "this result has a Markov random field for each group of rows: predict the rows of one group at a time, "
                "bs.predict(bs.one_group(idata, label), table)"
            )
        constants = group_dataset(idata, CONSTANTS)
        labels = [str(label) for label in constants["group"].values]
        table = codes.without_of_groups(table, constants["node"].values.tolist())
        table, group = rows_of_groups(table, group, labels)
    options = {"setting": setting, "covariates": covariates, "group": group}
    rows = rows_of(idata, **{name: own for name, own in options.items() if own is not None})
    table = codes.without(table, rows.coding.names)
    return rows.predict(table, interval_probability(ci_prob))
