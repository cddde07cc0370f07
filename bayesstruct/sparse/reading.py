"""Table and picture of coefficients that may be exactly zero."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_check, register_figure, register_summary, variables
from bayesstruct.data.arguments import whole_number
from bayesstruct.data.names import nearest
from bayesstruct.graphs.groups import CONSTANTS, SAMPLE_DIMS, group_dataset
from bayesstruct.graphs.mixing import indicator_ess, indicator_rhat, typical_ess
from bayesstruct.graphs.plots.forest import draw_forest
from bayesstruct.graphs.plots.style import short_labels
from bayesstruct.graphs.posteriors.estimators import bayes_factors_of
from bayesstruct.graphs.posteriors.refusals import wrong_type
from bayesstruct.graphs.summaries import bound_note, interval_probability, most_probable_first

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import xarray as xr

    from matplotlib.axes import Axes

__all__ = ["INCLUDED", "PRIOR", "plot_support", "support_table"]

#: Ends of the names of the indicators of coefficients, and of their prior probabilities.
INCLUDED, PRIOR = "_included", "_prior"
_OTHERS = ("edge", "arc", "feature")  # structures with tables of their own


def support_table(
    idata: "xr.DataTree",
    *,
    var_name: str | None = None,
    ci_prob: float | None = None,
    group: str = "posterior",
) -> "pd.DataFrame":
    """Summarise coefficients that may be exactly zero: their probability of being in the model, and their size.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a model with ``bs.support(coefficients)``.
    var_name : str, optional
        Name of the coefficients; all that were given to ``bs.support`` by default.
    ci_prob : float, optional
        Probability of the highest-density interval, between 0 and 1; ``arviz.rcParams["stats.ci_prob"]`` by default.
    group : {"posterior", "prior"}

    Returns
    -------
    pandas.DataFrame
        One row for each coefficient, most probable first, with columns

        variable, coefficient
            Name of the variable, and label of its entry.
        probability
            Share of the draws in which the coefficient is not zero.
        bayes_factor
            Posterior odds over prior odds; NaN where the prior probability is 0 or 1.
        mean, hdi_low, hdi_high
            Of the coefficient over all draws, those with zero included.
        ess, r_hat
            Of the 0/1 indicator.

        `attrs["bayes_factor_bounds"]` lists the rows whose Bayes factor is a Monte Carlo bound, `attrs["notes"]` holds remarks
        in words.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not such a result, or there is no such variable.

    Examples
    --------
    >>> support_table(idata).query("probability > 0.5")  # doctest: +SKIP
    """
    import pandas as pd
    import xarray as xr

    if not isinstance(idata, xr.DataTree):
        raise wrong_type(idata)
    ci_prob = interval_probability(ci_prob)
    known = _supports(idata, group)
    if not known:
        raise ValueError(
            "This result has no coefficients that readers know of: add bs.support(w) to the model, for each variable w with "
            "a spike-and-slab prior"
        )
    if var_name is not None and var_name not in known:
        raise ValueError(nearest("variable", var_name, known))
    names = known if var_name is None else [var_name]
    parts = [_one_table(idata, name, ci_prob, group) for name in names]
    bound = np.concatenate([bound for _, bound in parts])
    table, bounds = most_probable_first(pd.concat([table for table, _ in parts]), bound)
    table.attrs = {"ci_prob": ci_prob, "bayes_factor_bounds": bounds, "notes": bound_note(bounds)}
    return table


def plot_support(
    idata: "xr.DataTree",
    n: int = 20,
    *,
    var_name: str | None = None,
    ci_prob: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the n coefficients that are most probably not zero: interval, and the probability in figures.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a model with ``bs.support(coefficients)``.
    n : int
        Number of coefficients, in the order of `support_table`.
    var_name : str, optional
    ci_prob : float, optional
        As in `support_table`.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        Dot: posterior mean. Bar: interval. Blue positive, orange negative. On the right the probability
        that the coefficient is not zero.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not such a result, there is no such variable, or `n` is not a whole number above 0.

    Examples
    --------
    >>> plot_support(idata, n=10)  # doctest: +SKIP
    """
    n = whole_number("n", n, 1)
    table = support_table(idata, var_name=var_name, ci_prob=ci_prob)
    ci_prob, several = table.attrs["ci_prob"], table["variable"].nunique() > 1
    table = table.head(n)
    names = [
        f"{row.variable}: {row.coefficient}" if several else str(row.coefficient)
        for row in table.itertuples()
    ]
    quantity = f"coefficient (mean and {ci_prob:.0%} HDI)"
    return draw_forest(ax, short_labels(names, 40), table, "P(not 0)", quantity)


def _supports(idata, group: str = "posterior") -> list[str]:
    """Names of the coefficients whose support was recorded."""
    constants, drawn = variables(idata, CONSTANTS), variables(idata, group)
    ends = [
        name.removesuffix(PRIOR) for name in sorted(constants) if name.endswith(INCLUDED + PRIOR)
    ]
    return [name.removesuffix(INCLUDED) for name in ends if name in drawn]


def _one_table(idata, name: str, ci_prob: float, group: str):
    """Table of one variable, and which of its Bayes factors are bounds."""
    import arviz as az
    import pandas as pd

    draws = group_dataset(idata, group)
    values, labels = _flat(draws[name])
    on, _ = _flat(draws[name + INCLUDED])
    on = on.astype(bool)
    prior = idata[CONSTANTS][name + INCLUDED + PRIOR].values.ravel()
    present, ess = on.mean(axis=(0, 1)), indicator_ess(on)
    floor = 1 / (typical_ess(ess, on.shape[0] * on.shape[1]) + 1)
    factor, bound = bayes_factors_of(present, 1 - present, prior, floor)
    pooled = values.reshape(-1, values.shape[-1]).astype(float)
    interval = az.hdi(pooled.T, prob=ci_prob)
    columns = {
        "variable": name,
        "coefficient": labels,
        "probability": present,
        "bayes_factor": factor,
        "mean": pooled.mean(axis=0),
        "hdi_low": interval[:, 0],
        "hdi_high": interval[:, 1],
        "ess": ess,
        "r_hat": indicator_rhat(on),
    }
    return pd.DataFrame(columns), bound


def _flat(values: "xr.DataArray") -> tuple[np.ndarray, list[str]]:
    """Draws as (chain, draw, entry), and the labels of the entries."""
    values = values.transpose(*SAMPLE_DIMS, ...)
    dims = values.dims[2:]
    own = [values[dim].values for dim in dims]
    labels = [
        ", ".join(str(label[k]) for label, k in zip(own, index, strict=True))
        for index in np.ndindex(values.shape[2:])
    ]
    return values.values.reshape(*values.shape[:2], -1), labels


def _recognise(idata: "xr.DataTree") -> bool:
    return bool(_supports(idata)) and not variables(idata) & {*_OTHERS}


def _quantities(draws: "xr.Dataset") -> "Iterator[tuple[str, xr.DataArray]]":
    for name in _indicators(draws):
        values = draws[name]
        total = values.sum([dim for dim in values.dims if dim not in SAMPLE_DIMS])
        yield f"number of coefficients in {name.removesuffix(INCLUDED)}", total


def _indicators(draws: "xr.Dataset") -> list[str]:
    """Names of the indicators, which are followed by their number and by the coefficients."""
    return [str(name) for name in draws.data_vars if str(name).endswith(INCLUDED)]


register_summary(
    "coefficients that may be zero", _recognise, support_table, ("plot_support", "check")
)
register_check("coefficients that may be zero", _recognise, _quantities, _indicators)
register_figure(plot_support, "coefficients that may be zero")
