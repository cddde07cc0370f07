"""Check the convergence of a run: one verdict in words for each quantity."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import followed_of
from bayesstruct.graphs.mixing import MIN_DRAWS
from bayesstruct.graphs.partitions import block_quantities, labelled_blocks
from bayesstruct.graphs.posteriors.reading import read
from bayesstruct.graphs.records import NODEWISE, CompositeLikelihood, RelationPrior
from bayesstruct.graphs.tables.edges import NODEWISE_NOTE
from bayesstruct.graphs.traces import graph_distance, n_edges
from bayesstruct.modes.quantities import (
    batch_variance,
    entry_name,
    has_no_graph,
    other_forms,
    parameters,
    plain_quantities,
    transposed,
)
from bayesstruct.sem.reading.directions import direction_notes
from bayesstruct.sem.reading.noise import NORMAL
from bayesstruct.sem.reading.noise_check import noise_notes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["Check", "Row", "check", "check_and_read"]

MAX_R_HAT = 1.01
#: Share of runs whose independent draws may exceed the limit of R-hat that is set for noise.
NOISE = 0.01
ESS_PER_CHAIN = 100
#: Changes that chains without any may have been expected to make: none of five happens once in 150 times.
UNSEEN = 5.0
_LEAST = 1e-15  # probability of a change that rounding tells from none
#: Largest mean probability of parents outside of the candidates that is negligible.
LEFT_OUT = 0.01
TAIL = (0.05, 0.95)
_BLOCK = 64  # entries that are screened together
SCREENED = 100  # entries of a large variable that get the full, slow diagnostics
_STUCK = "did not move: the same in all draws, which shows neither certainty nor convergence"


@dataclass(frozen=True)
class Row:
    """Diagnostics of one quantity, and a verdict.

    Attributes
    ----------
    quantity : str
    r_hat, ess_bulk, ess_tail : float
        NaN where undefined.
    verdict : str
        In words.
    ok : bool
        Whether the quantity has converged.
    """

    quantity: str
    r_hat: float
    ess_bulk: float
    ess_tail: float
    verdict: str
    ok: bool


@dataclass(frozen=True)
class Check:
    """Verdicts on a run; see `check`.

    Attributes
    ----------
    rows : list of Row
        One a quantity.
    notes : list of str
        Remarks on what convergence does not show.
    """

    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every quantity has converged."""
        return all(row.ok for row in self.rows)

    def to_frame(self) -> "pd.DataFrame":
        """Columns quantity, r_hat, ess_bulk, ess_tail, verdict."""
        import pandas as pd

        columns = ["quantity", "r_hat", "ess_bulk", "ess_tail", "verdict"]
        return pd.DataFrame(
            [[getattr(row, c) for c in columns] for row in self.rows], None, columns
        )

    def __repr__(self):
        shown = self._shown()
        rows = [list(shown.columns), *shown.to_numpy().tolist()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        notes = [part for note in self.notes for part in ("", note)]
        return "\n".join([self._headline(), "", *lines, *notes])

    def _repr_html_(self):
        notes = "".join(f"<p>{note}</p>" for note in self.notes)
        return f"<p><b>{self._headline()}</b></p>{self._shown().to_html(index=False)}{notes}"

    def _headline(self) -> str:
        bad = sum(not row.ok for row in self.rows)
        if not bad:
            return "All quantities have converged."
        return f"{bad} of {len(self.rows)} quantities have not converged or have too few draws to tell."

    def _shown(self) -> "pd.DataFrame":
        table = self.to_frame()
        table["r_hat"] = [f"{v:.3f}" if np.isfinite(v) else _dash(v) for v in table["r_hat"]]
        for column in ("ess_bulk", "ess_tail"):
            table[column] = [f"{v:.0f}" if np.isfinite(v) else _dash(v) for v in table[column]]
        return table


def check(idata: "xr.DataTree") -> Check:
    r"""Check for each quantity whether the chains have converged.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of any model of :mod:`bayesstruct.models`, or of a model with distributions of this package that has
        the same variables; also of a sparse regression or another model without a graph.

    Returns
    -------
    Check
        Prints as a table; `.ok` is a single answer, `.to_frame()` the table as data. The rows: the
        number of edges (arcs); the distance to the median graph; the edge (arc) whose probability
        has the largest Monte Carlo error; the weight with the worst diagnostics; the worst entry of each
        other variable; the probability of parents outside of the candidates, and divergences, if the
        sampler reports them. Latent features and clusters have no names: their rows are quantities that do
        not depend on their order, such as the number of features, of a row, and in common to two rows, and
        fitted values; the number of clusters, and the size and the parameters of the cluster of a row; likewise the number
        of blocks of columns, and the size and the probabilities of the block of a column. Of a sparse
        regression the number of coefficients that are not zero is one of the rows.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of such a model.

    Notes
    -----
    A quantity has converged when its R-hat is at most 1.01 and its bulk and tail ESS are at least
    100 a chain [1]_. R-hat is itself an estimate. In a short run, and for the worst of many entries,
    independent draws exceed 1.01 now and then; the limit is therefore raised, where that is more, to
    what they would exceed once in a hundred runs,

    .. math:: \sqrt{1 + (F - 1) / n},

    n being half the draws of a chain and F the 1 - 0.01 / (2 k) quantile of the F distribution with
    m - 1 and m (n - 1) degrees of freedom for m half chains and k entries, each looked at twice, for
    location and for spread [2]_. With four chains of a thousand draws 1.01 is the larger for up to a million
    entries. Where the chains agree and only the ESS falls short, the verdict is "too few
    draws", with the number that should do at this rate. The edge in the table is the one with the largest Monte Carlo standard
    error :math:`\sqrt{p(1-p)/ESS}`; ESS counts disagreement of chains too. An edge that was in for
    a handful of draws has a poor R-hat and a probability known well all the same. Tail ESS
    does not exist for 0/1.

    A quantity that has the same value in all draws of all chains has not converged by that: a sampler that cannot move
    looks the same. Its verdict is "did not move", unless the sampler recorded with what probability it would have
    changed each edge (the conditional or proposal probabilities that :func:`bayesstruct.edge_table` averages) or arc (the statistic
    ``change`` of :class:`bayesstruct.steps.NetworkMCMC` and others), no more
    than five changes were to be expected in all draws, and none was seen: then it is "the same in every draw of every chain", with the largest
    of these probabilities, and that is convergence: the posterior has its mass on one graph. It is the probability of a single change, and no evidence about graphs that
    are several changes away: start chains at different graphs where these may matter. In the same way kinds of noise that never
    changed are judged by the statistic ``normal_change`` of :class:`bayesstruct.steps.LinearSemMCMC`. Chains that are each constant, at
    different values, have not converged, and one constant chain cannot tell. Functions of a graph of which
    some edges changed, such as the number of edges, may be constant.

    Variables with more than some hundred entries are first screened by classical R-hat and by batch
    means, and the full diagnostics are computed for the most suspicious entries.

    References
    ----------
    .. [1] Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021). Rank-normalization, folding, and
       localization: an improved R-hat for assessing convergence of MCMC. Bayesian Analysis 16,
       667-718.
    .. [2] Gelman and Rubin (1992). Inference from iterative simulation using multiple sequences.
       Statistical Science 7, 457-472; the F distribution is that of section 3 for independent draws.

    Examples
    --------
    >>> result = check(idata)  # doctest: +SKIP
    >>> assert result.ok, result  # doctest: +SKIP
    """
    return check_and_read(idata)[0]


def check_and_read(idata: "xr.DataTree") -> tuple[Check, "GraphPosterior | None"]:
    """Check a result, and return also the graphs that were read, which remember their diagnostics.

    Parameters and errors are those of `check`.

    Returns
    -------
    Check
    EdgePosterior, ArcPosterior or DagPosterior, or None
        None for a result that is not followed by its graphs.
    """
    if (followed := followed_of(idata)) is not None:
        draws = idata["posterior"].to_dataset()
        given = parameters(draws, followed.labelled(draws))
        parts = (*followed.quantities(draws), *given)
        rows = [_variable_row(name, values) for name, values in parts]
        return Check([*rows, *_divergences(idata)]), None
    if has_no_graph(idata):
        plain = plain_quantities(idata["posterior"].to_dataset())
        rows = [_variable_row(name, values) for name, values in plain]
        return Check([*rows, *_divergences(idata)]), None
    posterior = read(idata)
    return _check_graphs(idata, posterior), posterior


def _check_graphs(idata, posterior) -> Check:
    """Check the graphs of a result, and its other variables."""
    what = posterior.line
    known = *other_forms(posterior), *labelled_blocks(posterior.draws)
    mixing = posterior.indicator_ess(), posterior.indicator_rhat()
    still = _constant_graph(posterior, _statistics(idata))
    noise = _constant_noise(posterior, _statistics(idata)) or still
    of_graph = still or (f"constant in all chains, while {what}s changed", True)
    rows = [
        _variable_row(f"number of {what}s", n_edges(posterior), of_graph),
        _variable_row("distance to the median graph", graph_distance(posterior), of_graph),
        _indicator_row(posterior, mixing, still),
        *_block_rows(posterior.draws),
        *(
            _variable_row(name, v, noise if name == NORMAL else still)
            for name, v in parameters(posterior.draws, known)
        ),
        *_left_out(idata, len(posterior.variables)),
        *_divergences(idata),
    ]
    return Check(rows, [*_notes(posterior), *direction_notes(posterior), *noise_notes(idata)])


def _block_rows(draws: "xr.Dataset") -> "Iterator[Row]":
    """Yield the rows of hidden blocks of nodes; some quantities may be constant where the partition changes."""
    followed = [(name, transposed(v)) for name, v in block_quantities(draws)]
    moved = any((v.values != v.values[:1, :1]).any() for name, v in followed)
    still = ("constant in all chains, while blocks changed", True) if moved else None
    for name, values in followed:
        yield _variable_row(name, values, still)


def _notes(posterior) -> list[str]:
    """Remark on a composite likelihood: draws that have converged are still too sure."""
    composite = CompositeLikelihood.read(posterior.constants).composite
    if not composite:
        return []
    if composite == NODEWISE:
        return [f"{NODEWISE_NOTE} az.loo of rows does not hold."]
    grouped = RelationPrior.is_in(posterior.constants)  # which the correction does not take
    return [
        "The likelihood is a composite one (a pseudo-likelihood): draws that have converged are still too sure, intervals "
        'too narrow and edge probabilities too extreme; likelihood="exact" has neither fault, '
        f"{'' if grouped else 'bs.sandwich widens the intervals, '}and az.loo of rows does not hold."
    ]


def _constant_graph(posterior, statistics) -> tuple[str, bool] | None:
    """Verdict on a graph that is the same in all draws, and whether it has converged; None if some line changed."""
    frequency, what = posterior.frequency, posterior.line
    if ((frequency > 0) & (frequency < 1)).any():
        return None
    free = _free_lines(posterior)
    if not free.any():
        return f"all {what}s are given by the model", True
    if posterior.estimator.name != "frequency":
        present, absent = posterior.probabilities
        change = float(np.where(frequency > 0, absent, present)[free].max())
    elif "change" in statistics and np.isfinite(statistics["change"]).all():
        change = float(statistics["change"].mean())
    else:
        return _STUCK, False
    return _unmoved(posterior, change, f"one {what}")


def _constant_noise(posterior, statistics) -> tuple[str, bool] | None:
    """Verdict on kinds of noise that are the same in all draws; None where the step does not say how probable others were."""
    if "normal_change" not in statistics:
        return None
    change = float(statistics["normal_change"].mean())
    return _unmoved(posterior, change, "the noise of one column") if np.isfinite(change) else None


def _unmoved(posterior, change: float, what: str) -> tuple[str, bool]:
    """Verdict on what never changed, by the probability of a change in each draw."""
    told = f"a change of {what} had the probability {change or _LEAST:.1g} a draw, or less"
    if change * posterior.n_draws > UNSEEN:
        return f"did not move, although {told}", False
    if posterior.n_chains == 1:
        return f"cannot tell: one chain, the same in every draw; {told}", False
    return f"the same in every draw of every chain: {told}", True


def _free_lines(posterior) -> np.ndarray:
    """Which lines do not have the prior probability 0 or 1; all of them where the prior is not recorded."""
    try:
        return ~posterior.fixed
    except ValueError:
        return np.ones(posterior.n_lines, bool)


def _indicator_row(posterior, mixing, still) -> Row:
    """Diagnose the indicator whose probability is least well known."""
    sizes, what, p = posterior.draws.sizes, posterior.line, posterior.frequency
    shape, (ess, r_hat) = (sizes["chain"], sizes["draw"]), mixing
    if shape[1] < MIN_DRAWS:
        return _row(what, np.nan, np.nan, np.nan, shape)
    if still is not None:
        return _constant_row(f"{what}s", *still)
    error = np.where(np.isnan(ess), 0, np.sqrt(p * (1 - p) / np.nan_to_num(ess, nan=1.0)))
    worst = int(np.argmax(error))
    name = f"{what} (worst): {posterior.labels[worst]}"
    return _row(name, r_hat[worst], ess[worst], np.nan, shape, len(p))


def _constant_row(name: str, verdict: str, ok: bool) -> Row:
    return Row(name, 1.0 if ok else np.nan, np.nan, np.nan, verdict, ok)


def _variable_row(name: str, values: "xr.DataArray", still: tuple[str, bool] | None = None) -> Row:
    """Diagnose a variable by its worst entry; `still` is the verdict if no entry ever changes."""
    values = transposed(values)
    draws = values.values.reshape(*values.shape[:2], -1).astype(float)
    n_entries, shape = draws.shape[-1], draws.shape[:2]
    moved = np.flatnonzero(draws.min(axis=(0, 1)) < draws.max(axis=(0, 1)))
    if shape[1] < MIN_DRAWS:
        return _row(name, np.nan, np.nan, np.nan, shape)
    if not len(moved):
        return _constant_row(name, *(still or (_STUCK, False)))
    entries = moved[_suspicious(draws[..., moved])]
    r_hat, bulk, tail = _diagnose(draws[..., entries])
    worst = int(np.argmax(_badness(r_hat, bulk, tail)))
    if n_entries > 1:
        name = f"{name} (worst of {n_entries}): {entry_name(values, entries[worst])}"
    return _row(name, r_hat[worst], bulk[worst], tail[worst], shape, len(moved))


def _diagnose(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    import arviz as az

    bulk = np.atleast_1d(az.ess(draws, method="bulk"))
    tail = np.atleast_1d(az.ess(draws, method="tail", prob=TAIL))
    if draws.shape[0] == 1:
        return np.full(len(bulk), np.nan), bulk, tail
    with np.errstate(divide="ignore", invalid="ignore"):  # stuck chains: pooled over zero
        r_hat = np.atleast_1d(az.rhat(draws))
    return np.where(r_hat > 1e6, np.inf, r_hat), bulk, tail  # rounding keeps "over zero" finite


def _badness(r_hat, bulk, tail) -> np.ndarray:
    """Larger is worse; R-hat first because a small ESS follows from it."""
    excess = np.maximum(np.nan_to_num(r_hat, nan=1.0, posinf=1e6) - MAX_R_HAT, 0)
    return excess + 1e-6 / np.minimum(bulk, tail)


def _suspicious(draws: np.ndarray) -> np.ndarray:
    """Find the entries most likely to be the worst, by cheap vectorised screens."""
    n_entries = draws.shape[-1]
    if n_entries <= SCREENED:
        return np.arange(n_entries)
    half = SCREENED // 2
    by_rhat = np.argsort(-_in_blocks(_classical_rhat, draws))[:half]
    by_ess = np.argsort(_batch_means_ess(draws))[:half]
    return np.union1d(by_rhat, by_ess)


def _in_blocks(screen, draws: np.ndarray) -> np.ndarray:
    """Screen some entries at a time, copied so that the draws of each lie side by side, where medians are found fast."""
    starts = range(0, draws.shape[-1], _BLOCK)
    blocks = (np.ascontiguousarray(draws[..., k : k + _BLOCK].transpose(2, 0, 1)) for k in starts)
    return np.concatenate([screen(block.transpose(1, 2, 0)) for block in blocks])


def _classical_rhat(draws: np.ndarray) -> np.ndarray:
    """Ratio of between to within variance of half chains, for location and for spread."""
    half = draws.shape[1] // 2
    parts = np.concatenate([draws[:, :half], draws[:, -half:]])
    folded = np.abs(parts - np.median(parts, axis=(0, 1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [x.mean(axis=1).var(axis=0) / x.var(axis=1).mean(axis=0) for x in (parts, folded)]
    return np.fmax(*ratios)


def _batch_means_ess(draws: np.ndarray) -> np.ndarray:
    return draws.var(axis=(0, 1)) / batch_variance(draws).clip(1e-300)


def _row(name: str, r_hat: float, bulk: float, tail: float, shape, entries: int = 1) -> Row:
    verdict, ok = _verdict(r_hat, bulk, tail, shape, entries)
    return Row(name, float(r_hat), float(bulk), float(tail), verdict, ok)


def _limit(shape: tuple[int, int], entries: int) -> float:
    """Return the largest R-hat that passes with this number of draws, see `check`."""
    from scipy.special import fdtri

    m, n = 2 * shape[0], shape[1] // 2
    if shape[0] < 2 or n < 2:
        return MAX_R_HAT
    ratio = fdtri(m - 1, m * (n - 1), 1 - NOISE / (2 * entries))
    return max(MAX_R_HAT, float(np.sqrt(1 + (ratio - 1) / n)))


def _excess(r_hat: float, limit: float) -> str:
    """Format both numbers with as many digits as are needed to distinguish them."""
    digits = next(d for d in range(3, 17) if d == 16 or f"{r_hat:.{d}f}" != f"{limit:.{d}f}")
    return f"r_hat {r_hat:.{digits}f} > {limit:.{digits}f}".rstrip("0")


def _verdict(r_hat, bulk, tail, shape: tuple[int, int], entries: int) -> tuple[str, bool]:
    n_chains, n_draws = shape
    limit = _limit(shape, entries)
    needed = ESS_PER_CHAIN * n_chains
    ess = np.fmin(bulk, tail)
    if n_draws < MIN_DRAWS:
        return f"cannot tell: {n_draws} draws a chain", False
    if np.isinf(r_hat):
        return "not converged: chains are stuck at different values", False
    problems = []
    if r_hat > limit:
        problems.append(_excess(r_hat, limit))
    if ess < needed:
        problems.append(f"ess {ess:.0f} < {needed}")
    # So few draws could not pass, however well they mix; and a low ESS alone is no disagreement.
    if ess < needed and (n_chains * n_draws < needed or not r_hat > limit):
        wanted = _round_up(n_draws * needed / max(ess, 1))
        return f"too few draws: draw {wanted:,} a chain ({', '.join(problems)})", False
    if problems:
        return f"not converged: run longer ({', '.join(problems)})", False
    if n_chains == 1:
        return "cannot tell: one chain (r_hat compares chains)", False
    return "converged", True


def _round_up(number: float) -> int:
    """Round up to two digits."""
    step = 10 ** max(int(np.log10(number)) - 1, 0)
    return int(np.ceil(number / step)) * step


def _left_out(idata, d: int) -> list[Row]:
    """Row for the probability of parents outside of the candidates, if the sampler estimates it."""
    stats = _statistics(idata)
    if "left_out" not in stats or not (stats["left_out"] > 0).any():
        return []
    odds = float(stats["left_out"].mean()) / d
    share, ok = odds / (1 + odds), odds <= LEFT_OUT
    verdict = f"{share:.1%} of the probability of a variable's parents" if share >= 5e-4 else "none"
    if not ok:
        verdict += " is left out: give the step more candidates, or the model max_parents"
    return [Row("parents outside of the candidates", np.nan, np.nan, np.nan, verdict, ok)]


def _divergences(idata) -> list[Row]:
    stats = _statistics(idata)
    if "diverging" not in stats:
        return []
    count = int(stats["diverging"].sum())
    verdict = f"{count} divergent transitions: raise target_accept" if count else "none"
    return [Row("divergences", np.nan, np.nan, np.nan, verdict, not count)]


def _statistics(idata):
    return idata["sample_stats"] if "sample_stats" in getattr(idata, "children", ()) else {}


def _dash(value: float) -> str:
    return "-" if np.isnan(value) else "inf"
