"""Whether residuals have the shape of the noise that a model of linear structural equations assumes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_figure, register_summary, variables
from bayesstruct.core.tables.codings import ColumnUnits
from bayesstruct.core.tables.observed import completed_tables, observed_table
from bayesstruct.data.arguments import probability
from bayesstruct.data.errors import column_list
from bayesstruct.graphs.groups import chosen_draws
from bayesstruct.graphs.plots.network import plot_graph
from bayesstruct.graphs.posteriors.reading import read_dags
from bayesstruct.graphs.tables.arcs import DAG_READERS, arc_table
from bayesstruct.networks.priors.records import SetMask
from bayesstruct.networks.reading.effects import is_network, weight_matrices
from bayesstruct.sem.kernels.noise_shape import LEAST_ROWS, shape_ratios
from bayesstruct.sem.priors.records import SemNoise
from bayesstruct.sem.reading.noise import shape_draws, shape_names

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["noise_check", "noise_notes", "noise_sentence"]

ALPHA = 0.01
_DRAWS = 200  # posterior draws whose residuals are used
_REPLICATES = 2000  # tables of noise that are drawn in all,
_BUDGET = 1e7  # fewer where they would have more values than this in all,
_FEWEST = 500  # and at least so many
_LEAST_USED = 500  # rows of a table, even if it has many columns
_SEED = 1990  # a check is the same each time
_INTERVAL = (0.025, 0.975)  # of the shape of noise
_NOISE = {"gaussian": "normal", "laplace": "Laplace", "student": "t", "mixture": "mixture"}
_KIND = "linear structural equations"


@dataclass(frozen=True, eq=False)
class _Shapes:
    """Skewness and tails of residuals and of replicated noise; NaN for columns without enough rows.

    Attributes
    ----------
    rows : (d,) ndarray of int
        Residuals of each column that were used.
    observed : (draws, d, 2) ndarray
        Of the residuals of each draw.
    replicated : (replicates, draws, d, 2) ndarray
        Of as many errors, drawn with the shape parameters of the draw.
    """

    rows: np.ndarray
    observed: np.ndarray
    replicated: np.ndarray

    def p_values(self) -> tuple[np.ndarray, float]:
        """Probabilities that replicated noise is farther off than the residuals.

        Returns
        -------
        each : (d,) ndarray
            That some column of it is farther off than the residuals of a column.
        together : float
            That its columns are in the sum of squared distances.
        """
        mean, deviation = self.replicated.mean(axis=(0, 1)), self.replicated.std(axis=(0, 1))
        observed, replicated = (
            np.nan_to_num(np.abs(shapes - mean) / deviation, nan=0.0)
            for shapes in (self.observed, self.replicated)
        )
        farthest = observed.max(axis=-1), replicated.max(axis=-1)
        beyond = farthest[1].max(axis=-1)[..., None] >= farthest[0]
        each = np.where(np.isnan(mean).any(axis=-1), np.nan, beyond.mean(axis=(0, 1)))
        squares = (observed**2).sum(axis=(-2, -1)), (replicated**2).sum(axis=(-2, -1))
        return each, float((squares[1] >= squares[0]).mean())


def noise_check(idata: "xr.DataTree", *, alpha: float = ALPHA) -> "pd.DataFrame":
    r"""Check whether the residuals of each column have the shape of the noise that the model assumes.

    Where noise tells directions, noise of the wrong shape tells wrong ones, and draws that have converged are as sure of them. Skewness and
    tails of the residuals in up to 200 posterior draws are compared with those of as many errors drawn from the noise of the model.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.linear_sem` or :func:`bayesstruct.models.lingam`.
    alpha : float
        Probability, at most, with which some column of a model that is right is said to be contradicted; and likewise with which
        all columns together are, a second test. One of the two says so of at most twice this share of right models.

    Returns
    -------
    pandas.DataFrame
        One row for each column, the most conspicuous first:

        column, rows
            Its name, and the number of its residuals that were used.
        skewness, skewness_low, skewness_high
            Mean L-skewness of the residuals over draws, 0 if they are symmetric; and the interval that has 95 % of the L-skewnesses of as much
            noise of the model.
        tails, tails_low, tails_high
            The same of the L-kurtosis: 0 of uniform, .12 of normal and .24 of Laplace errors.
        p_value
            Posterior predictive p-value, adjusted for the number of columns: the probability that in replicated noise *some* column is
            farther off, in skewness or in tails, than the residuals of this one. NaN with fewer than ten residuals.
        contradicted
            Whether it is at most `alpha`.
        difference
            In words, of columns that are contradicted.

        ``attrs`` has ``noise``, ``alpha``, ``combined_p_value``, that of the sum of the squared distances of all columns, ``either_alpha``,
        twice `alpha`, for both tests, and ``notes`` with the remedy.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result of these models with its table and weights; if `alpha` is not a probability.

    Notes
    -----
    L-skewness and L-kurtosis are ratios of L-moments [1]_. They do not depend on location and scale, so that only graph, weights and shape
    parameters of a draw matter, and one wild value does not decide. Both are measured in standard deviations of the replicated ones, and
    compared with the largest such distance of all columns of a replicate under the same draw: p-values hold for all columns
    together [2]_, [3]_. The sum of squares notices where all columns differ a little.

    Residuals are fitted to the table, the more closely the more the noise can adapt (the mixture most): p-values of a model that is
    right tend to be too large, not too small. A shape that is not contradicted is not thereby shown: with few rows most shapes
    pass, and residuals of a wrong graph, which mix errors, are nearer to normal ones than the errors. Two shapes may also agree in skewness and tails. A relation that is not linear leaves residuals of a wrong shape, too.

    Values that were set from outside have no noise and do not count. Missing values are those of each draw, which the model has
    made itself: they make differences smaller [4]_. Of a large table a random part of the rows is used, such that it has
    20,000 values, or 500 rows where that is more.

    References
    ----------
    .. [1] Hosking, J. R. M. (1990). L-moments: analysis and estimation of distributions using linear combinations of order
       statistics. *JRSS B* 52, 105-124.
    .. [2] Gelman, A., Meng, X.-L. and Stern, H. (1996). Posterior predictive assessment of model fitness via realized
       discrepancies. *Statistica Sinica* 6, 733-807.
    .. [3] Westfall, P. H. and Young, S. S. (1993). Resampling-based multiple testing. Wiley; single-step adjustment by the
       maximum.
    .. [4] Gelman, A., Van Mechelen, I., Verbeke, G., Heitjan, D. F. and Meulders, M. (2005). Multiple imputation for model
       checking: completed-data plots with missing and latent data. *Biometrics* 61, 74-85.

    Examples
    --------
    .. code-block:: python

        with bs.models.lingam(table, noise="laplace"):
            idata = pm.sample()
        bs.noise_check(idata).query("contradicted")
    """
    import pandas as pd

    alpha = probability("alpha", alpha)
    shapes, names = _shapes(idata)
    noise = SemNoise.read(idata).law.name
    found = shapes.observed.mean(axis=0)
    low, high = np.quantile(shapes.replicated, _INTERVAL, axis=(0, 1))
    p_value, together = shapes.p_values()
    wrong = p_value <= alpha
    frame: dict = {"column": np.array(names, dtype=object), "rows": shapes.rows}
    for k, name in enumerate(("skewness", "tails")):
        frame |= {name: found[:, k], f"{name}_low": low[:, k], f"{name}_high": high[:, k]}
    words = [
        _difference(*ends) if bad else ""
        for *ends, bad in zip(found, low, high, wrong, strict=True)
    ]
    table = pd.DataFrame(frame | {"p_value": p_value, "contradicted": wrong, "difference": words})
    table.attrs = {"noise": noise, "alpha": alpha, "combined_p_value": together}
    table.attrs["either_alpha"] = min(1.0, 2.0 * alpha)
    table.attrs["notes"] = _notes(noise, table, together)
    return table.sort_values("p_value", kind="stable", ignore_index=True)


def _difference(found, low, high) -> str:
    """Say how residuals differ from noise."""
    skewed = "skewed to the right" if found[0] > high[0] else "skewed to the left"
    heavy = "heavier tails" if found[1] > high[1] else "lighter tails"
    outside = (found < low) | (found > high)
    return " and ".join(word for word, out in zip((skewed, heavy), outside, strict=True) if out)


def _notes(noise: str, table: "pd.DataFrame", together: float) -> list[str]:
    """Say which columns have noise of another shape and what to do; and which could not be tested."""
    notes = []
    wrong = table[table["contradicted"]]
    if len(wrong):
        told = [
            f"{name!r} ({words})" if words else f"{name!r}"
            for name, words in zip(wrong["column"], wrong["difference"], strict=True)
        ]
        notes.append(
            f"Residuals of {len(wrong)} of {len(table)} columns do not have the shape of {_NOISE[noise]} noise: {', '.join(told)}. "
            f"{_remedy(noise)} See bs.noise_check(idata)."
        )
    elif together <= table.attrs["alpha"]:
        notes.append(
            f"Residuals of all columns together do not have the shape of {_NOISE[noise]} noise (a second test, p = {together:.2g}), though no "
            f"single column is contradicted. {_remedy(noise)} See bs.noise_check(idata)."
        )
    few = table["column"][table["p_value"].isna()]
    if len(few):
        notes.append(
            f"The noise of {column_list([*few])} was not checked: fewer than {LEAST_ROWS} values were not set from outside."
        )
    return notes


def _remedy(noise: str) -> str:
    if noise == "mixture":
        return (
            "Directions that the noise tells may be wrong. Look at these columns for values at a bound or rounded, for relations that "
            "are not linear, and for wild values; a transformation, such as the logarithm of skewed numbers, may help."
        )
    told = "Directions may be wrong, however probable they are"
    if noise == "gaussian":
        told = "Noise that is not normal can tell directions"
    return f"{told}: noise='mixture' learns the shape of each column."


def noise_notes(idata: "xr.DataTree") -> list[str]:
    """Say which columns contradict the noise of linear structural equations; nothing of other models, or without what is needed."""
    if not _is_complete(idata):
        return []
    return [note for note in noise_check(idata).attrs["notes"] if note.startswith("Residuals")]


def noise_sentence(idata: "xr.DataTree") -> str:
    """Sum up the check of noise for a report; empty without what is needed."""
    if not _is_complete(idata):
        return ""
    table = noise_check(idata)
    wrong, about = int(table["contradicted"].sum()), table.attrs
    if not wrong and about["combined_p_value"] <= about["alpha"]:
        return (
            f"Skewness and tails of the residuals of all columns together contradict the {_NOISE[about['noise']]} noise of the model, those "
            "of single columns do not (bs.noise_check)."
        )
    return (
        f"Skewness and tails of the residuals contradict the {_NOISE[about['noise']]} noise of the model in {wrong} of "
        f"{len(table)} columns (bs.noise_check)."
    )


def _is_sem(idata) -> bool:
    """Whether a result is of linear structural equations."""
    return is_network(idata) and SemNoise.is_in(idata)


def _is_complete(idata) -> bool:
    """Whether a result holds what residuals need."""
    if not _is_sem(idata) or "x" not in variables(idata, "observed_data"):
        return False
    needed = {"weight", *shape_names(SemNoise.read(idata).law)}
    if "cell_missing" in variables(idata, "constant_data"):
        needed.add("x_missing")
    return needed <= variables(idata)


def _shapes(idata) -> tuple[_Shapes, list[str]]:
    """Shapes of residuals and of noise, and the names of the columns."""
    posterior = read_dags(idata)
    if not SemNoise.is_in(posterior.constants):
        raise ValueError(
            "the result does not record a noise distribution: noise_check reads results of linear_sem and lingam, and the noise "
            "of bayesian_network is normal: pass a result of bs.models.linear_sem(table)"
        )
    law = SemNoise.read(posterior.constants).law
    for name in ("weight", *shape_names(law)):
        if name not in posterior.draws:
            raise ValueError(
                f"the result has no `{name}`, which is needed: sample it too (`var_names`)"
            )
    chosen, rng = chosen_draws(posterior.draws, _DRAWS), np.random.default_rng(_SEED)
    kept = np.array(chosen) @ [posterior.draws.sizes["draw"], 1]
    residuals, free = _residuals(idata, posterior, chosen, kept, rng)
    shapes = _compared(rng, law, shape_draws(posterior)[kept], residuals, free)
    return shapes, posterior.variables


def _residuals(idata, posterior, chosen, kept, rng):
    """Residuals of some draws but for intercepts, (draws, n, d), and which values were not set from outside, (n, d)."""
    table, missing = observed_table(idata)
    n, d = table.shape
    location, scale = ColumnUnits.read(posterior.constants).known()
    completed = completed_tables(table, missing, posterior.draws)
    most = max(_LEAST_USED, int(_BUDGET / (_FEWEST * d)))
    used = np.sort(rng.choice(n, most, replace=False)) if n > most else np.arange(n)
    away = np.eye(d) - weight_matrices(posterior)[kept]
    residuals = np.stack(
        [
            ((completed(*at)[used] - location) / scale) @ own.T
            for at, own in zip(chosen, away, strict=True)
        ]
    )
    return residuals, SetMask.free(posterior.constants, table.shape)[used]


def _compared(rng, law, shape, residuals, free) -> _Shapes:
    """Shapes of the residuals of each column and draw, and of noise with the same shape parameters."""
    draws, n, d = residuals.shape
    least, most = -(-_FEWEST // draws), -(-_REPLICATES // draws)
    each = int(np.clip(_BUDGET / (draws * n * d), least, most))
    rows = free.sum(axis=0)
    observed = np.full((draws, d, 2), np.nan)
    replicated = np.full((each, draws, d, 2), np.nan)
    for j in np.flatnonzero(rows >= LEAST_ROWS):
        observed[:, j] = shape_ratios(residuals[:, free[:, j], j])
        for k in range(each):
            replicated[k, :, j] = shape_ratios(law.draw(rng, shape[:, j], rows[j]).T)
    return _Shapes(rows, observed, replicated)


register_summary(
    _KIND,
    _is_sem,
    arc_table,
    ("do", "predict", "predictability", "independence_check", "noise_check", *DAG_READERS),
    before="Bayesian networks",
)
register_figure(plot_graph, _KIND)
