"""The direction table: one row for each pair of columns, with the probabilities of both directions and of no arc."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.mixing import indicator_ess, indicator_rhat, looked_at, share_mcse
from bayesstruct.graphs.posteriors.arcs import DagPosterior, blocks
from bayesstruct.graphs.posteriors.reading import read_dags
from bayesstruct.graphs.tables.arcs import direction_note
from bayesstruct.graphs.tables.limits import known_limits, limit_note

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["STATES", "direction_table"]

#: What a pair of columns can be in a directed acyclic graph; columns of the table.
STATES = ("forward", "backward", "none")


def direction_table(
    idata: "xr.DataTree | GraphPosterior", *, group: str = "posterior"
) -> "pd.DataFrame":
    """Summarise every pair of columns: the probabilities of an arc one way, the other way, and of no arc.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a model of directed acyclic graphs, such as :func:`bayesstruct.models.bayesian_network`.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    pandas.DataFrame
        One row for each pair, with the most probable edge first, and with columns

        source, target
            The two columns of the pair; the arc from source to target is at least as probable as the one back.
        forward, backward, none
            Posterior probabilities of an arc from source to target, of one from target to source, and of no arc. They
            add up to one.
        prior_forward, prior_backward
            Prior probabilities of the two arcs. Where both these and the posterior probabilities are equal, the
            data tell nothing of the direction.
        mcse_forward, mcse_backward, mcse_none
            Monte Carlo standard errors of the three probabilities; those of shares that were never or always seen
            are not zero, but of the size that so many draws cannot rule out, unless the model gives them.
        ess, r_hat
            The smallest effective sample size and the largest R-hat of the three indicators, without constant ones. In
            networks of more than 20,000 pairs NaN for those that are in less than 1 % of the draws.

        ``attrs`` has the ``estimator`` of the probabilities and ``notes``.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result with directed acyclic graphs.

    See Also
    --------
    arc_table : one row for each arc, with its coefficient and Bayes factor.
    plot_directions : the same numbers as a picture.

    Examples
    --------
    >>> direction_table(idata).query("none < 0.5")  # doctest: +SKIP
    """
    import pandas as pd

    posterior = read_dags(idata, group)
    names = np.array(posterior.variables, dtype=object)
    one = np.flatnonzero(posterior.source < posterior.target)
    other = posterior.position[posterior.source[one], posterior.target[one]]
    swapped = posterior.probability[other] > posterior.probability[one]
    ahead, back = np.where(swapped, other, one), np.where(swapped, one, other)
    forward, backward = posterior.probability[ahead], posterior.probability[back]
    rest = 1 - forward - backward
    shares = np.array([forward, backward, np.where(rest > 1e-12, rest, 0.0)])
    ess, rhat = _diagnosed(posterior, ahead, back)
    table = pd.DataFrame(
        {
            "source": names[posterior.source[ahead]],
            "target": names[posterior.target[ahead]],
            **dict(zip(STATES, shares, strict=True)),
            "prior_forward": posterior.prior[ahead],
            "prior_backward": posterior.prior[back],
        }
    )
    given = posterior.fixed[ahead], posterior.fixed[back]
    certain = (*given, given[0] & given[1])
    for state, share, own, known in zip(STATES, shares, ess, certain, strict=True):
        table[f"mcse_{state}"] = np.where(known, 0.0, share_mcse(share, own, posterior.n_draws))
    table["ess"], table["r_hat"] = _least(ess), -_least(-rhat)
    table = table.iloc[np.lexsort((-forward, shares[2]))].reset_index(drop=True)
    limits = limit_note(known_limits(idata), "a connection")
    notes = [direction_note(posterior), *limits]
    table.attrs = {"estimator": posterior.estimator.name, "notes": notes}
    return table


def _diagnosed(posterior: DagPosterior, ahead, back) -> tuple[np.ndarray, np.ndarray]:
    """Effective sample size and R-hat of the three indicators of each pair, each (3, pairs)."""
    ess, rhat = np.full((2, 3, len(ahead)), np.nan)
    for at in blocks(looked_at(posterior.frequency[ahead] + posterior.frequency[back])):
        one, other = (posterior.indicators[..., k[at]].astype(bool) for k in (ahead, back))
        for state, indicator in enumerate((one, other, ~(one | other))):
            ess[state, at], rhat[state, at] = indicator_ess(indicator), indicator_rhat(indicator)
    return ess, rhat


def _least(values: np.ndarray) -> np.ndarray:
    """Smallest of the values of each pair that are known, NaN if none is."""
    filled = np.where(np.isnan(values), np.inf, values).min(axis=0)
    return np.where(np.isnan(values).all(axis=0), np.nan, filled)
