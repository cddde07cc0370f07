"""How well each column is predicted by the others, from any result with a graph."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.families import import_chapters
from bayesstruct.core.tables.predictability import Predicted, predicted_columns
from bayesstruct.data.arguments import whole_number
from bayesstruct.graphs.posteriors.edges import GROUP
from bayesstruct.graphs.posteriors.refusals import naming_submodels, wrong_type
from bayesstruct.graphs.records import RelationPrior
from bayesstruct.graphs.summaries import interval_probability
from bayesstruct.graphs.tables.differences import one_group

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["predictability"]

import_chapters("reading")  # which register how columns of their families are predicted


def predictability(
    idata: "xr.DataTree", *, ci_prob: float | None = None, draws: int = 500
) -> "pd.DataFrame":
    r"""Say how well each column is predicted by all others, with intervals.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a Gaussian graphical model (of graphs alone: :func:`bayesstruct.precision_draws`), of
        :func:`bayesstruct.models.ising`, ``pairwise_mrf``, ``bayesian_network``, ``linear_sem``, ``lingam``,
        ``network_classifier`` or a neighbourhood model.
    ci_prob : float, optional
        Probability of the highest-density intervals, ArviZ's ``rcParams["stats.ci_prob"]`` by default.
    draws : int
        Maximum number of draws used, spread evenly over all of them.

    Returns
    -------
    pandas.DataFrame
        One row for each column and measure, in the order of the table, with columns

        node
            Name of the column.
        measure
            ``"R2"``, the share of the variance that is explained. For states, of which it is that of their positions 0, 1, ... and
            only known if these are ordered or two: ``"accuracy"``, the share of the
            rows in which the most probable state is the observed one, and ``"deviance"``, the share of the entropy of the
            column that is explained (McFadden's R2).
        given
            What the column is predicted from: ``"all others"``, and in a Bayesian network also ``"parents"``.
        value, hdi_low, hdi_high
            Posterior mean and interval.
        marginal
            What the distribution of the column alone reaches: the share of the most frequent state; 0 of an R2 and of a deviance.
        gain
            Over the marginal: (value - marginal) / (1 - marginal), 1 if nothing is left to predict. Of an accuracy it is the
            normalised accuracy of Haslbeck and Waldorp; negative if other columns mislead.

        The first row of each column is the one to draw: ``table.drop_duplicates("node").set_index("node")["gain"]``. Of groups of
        rows there is one table for each, one after another, with ``group`` in front. ``attrs["notes"]`` holds remarks in words.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not such a result, or lacks the table or its missing values.

    Notes
    -----
    R2 of numbers is of the distribution that a draw describes, not of the rows of the table: with precision matrix K and covariance
    matrix :math:`\Sigma = K^{-1}` it is :math:`1 - 1 / (K_{ii} \Sigma_{ii})`; given the parents in a Bayesian network
    :math:`1 - d_i / \Sigma_{ii}` with noise variance d. Of a regression of a neighbourhood model it is the variance of the fitted
    values over that plus the noise variance (Gelman et al. 2019), and likewise for numbers of a network with ``score="mixed"``: the variance,
    over the rows of the table, of the expected value given the parents or all others, over that plus the mean conditional variance.

    Measures of states are averages over the rows of the table in which the column was observed, as in the package mgm; missing values of
    other columns are those of the draw. The same rows were used to learn the parameters: in small tables these measures are
    somewhat higher than in new rows. Shrunk or spread-out draws make all measures lower than those of
    one best fit.

    References
    ----------
    Haslbeck, J. M. B. and Waldorp, L. J. (2018). How well do network models predict observations? On the importance of
    predictability in network models. *Behavior Research Methods* 50, 853-861.

    Gelman, A., Goodrich, B., Gabry, J. and Vehtari, A. (2019). R-squared for Bayesian regression models. *The American
    Statistician* 73, 307-309.

    Examples
    --------
    .. code-block:: python

        table = bs.predictability(idata)
        table[table["measure"] == "R2"].sort_values("value")
    """
    import pandas as pd
    import xarray as xr

    if not isinstance(idata, xr.DataTree):
        raise wrong_type(idata)
    prob, most = interval_probability(ci_prob), whole_number("draws", draws, 1)
    parts: list[pd.DataFrame] = []
    notes: list[str] = []
    for group, own in _groups(idata):
        with naming_submodels(idata):
            found, notes = predicted_columns(own, most)
        parts.append(_table(found, prob))
        if group is not None:
            parts[-1].insert(0, "group", group)
    table = pd.concat(parts, ignore_index=True)
    table.attrs = {"ci_prob": prob, "notes": notes}
    return table


def _groups(idata):
    """Label and result of each group of rows; None as the label of a result without groups."""
    own = [node.to_dataset() for node in idata.children.values() if GROUP in node.dims]
    if not own or not RelationPrior.is_in(idata):
        return [(None, idata)]
    return [(str(label), one_group(idata, label)) for label in own[0][GROUP].values]


def _table(found: list[Predicted], prob: float) -> "pd.DataFrame":
    import arviz as az
    import pandas as pd

    order = {name: k for k, name in enumerate(dict.fromkeys(one.node for one in found))}
    found = sorted(found, key=lambda one: order[one.node])
    values = np.array([one.values for one in found])
    low, high = np.full((2, len(found)), np.nan)
    known = ~np.isnan(values).any(axis=1)
    if known.any():
        low[known], high[known] = az.hdi(values[known], prob=prob).T
    marginal = np.array([one.marginal for one in found])
    mean = values.mean(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # a column that is constant
        gain = np.where(marginal < 1, (mean - marginal) / (1 - marginal), np.nan)
    return pd.DataFrame(
        {
            "node": [one.node for one in found],
            "measure": [one.measure for one in found],
            "given": [one.given for one in found],
            "value": mean,
            "hdi_low": low,
            "hdi_high": high,
            "marginal": marginal,
            "gain": gain,
        }
    )
