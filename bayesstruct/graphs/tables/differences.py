"""Differences of edges between groups of rows: the table of pairs, and the part of a result that belongs to one group."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.missing import MissingMask
from bayesstruct.core.readers import register_summary, variables
from bayesstruct.data.arguments import number
from bayesstruct.data.names import group_label
from bayesstruct.graphs.groups import CONSTANTS, NODE, SAMPLE_DIMS, group_dataset
from bayesstruct.graphs.mixing import indicator_ess, indicator_rhat, series_ess, typical_ess
from bayesstruct.graphs.posteriors.edges import GROUP
from bayesstruct.graphs.posteriors.estimators import (
    bayes_factors_of,
    reported_error,
    reported_probabilities,
)
from bayesstruct.graphs.posteriors.reading import read_edges
from bayesstruct.graphs.records import RelationPrior, RelationScales, RowGroups
from bayesstruct.graphs.summaries import bound_note, interval_probability
from bayesstruct.graphs.tables.edges import EDGE_READERS, NODE_READERS

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.edges import EdgePosterior

__all__ = ["DIFFERENCE", "difference_table", "one_group", "verdicts"]

DIFFERENCE = "difference"
_OF_ALL = [GROUP, DIFFERENCE, "relation", "row_group"]  # not of a single group
#: Partial correlation for which models record the prior probabilities of edges of one group.
NEGLIGIBLE = 0.1
#: Verdicts of a Bayes factor.
DIFFERS, EQUAL, UNDECIDED = "differs", "is equal", "undecided"


def difference_table(
    idata: "xr.DataTree",
    *,
    groups: tuple[str, str] | None = None,
    threshold: float = 10,
    ci_prob: float | None = None,
    group: str = "posterior",
) -> "pd.DataFrame":
    """Tell which edges differ between groups of rows, how sure that is, and by how much.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.grouped_gaussian_graphical`, or of :func:`bayesstruct.models.ising` or :func:`~bayesstruct.models.pairwise_mrf` with
        `group`.
    groups : pair of str, optional
        The two groups whose weights are subtracted, the second from the first. By default the two of a pair with the largest
        difference of means, which is the only one if there are two groups.
    threshold : float, above 1
        Bayes factor from which a pair differs; it is equal from 1 / `threshold` down, and undecided between.
    ci_prob : float, optional
        Probability of the highest-density intervals, between 0 and 1; ``arviz.rcParams["stats.ci_prob"]`` by default.
    group : {"posterior", "prior"}
        Group of the result that holds the draws.

    Returns
    -------
    pandas.DataFrame
        One row for each pair, most probably different first, with columns

        source, target
            Names of the two variables.
        probability
            Posterior probability that the pair differs between groups.
        bayes_factor
            Posterior odds of a difference over their prior odds. NaN where the prior decides.
        verdict
            "differs", "is equal" or "undecided"; "is equal" includes pairs that are connected in no group.
        edge
            Posterior probability that the pair is connected in some group.
        first, second
            The two groups that are compared.
        difference, hdi_low, hdi_high
            Weight (partial correlation, or weight of the Markov random field) in the first less that in the second group: mean and interval over all draws.
        mean_a, hdi_low_a, hdi_high_a, ...
            Weight in group ``a``, and so on for each group.
        ess, r_hat
            Of the 0/1 indicator of a difference.

        `attrs` has ``estimator``, ``ci_prob``, ``threshold``, ``bayes_factor_bounds`` and ``notes`` as that of
        :func:`bayesstruct.edge_table`.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of such a model, or an argument is out of range.

    Notes
    -----
    What the Gaussian model compares are the elements of precision matrices of standardised columns. A partial correlation is such an element over
    the root of two diagonal elements, which are free in each group: it may be alike where the elements differ, and the
    other way round.

    With more than two groups the probability is that of any difference. The interval of the largest difference
    was chosen after looking, and is too far from zero; name `groups` for one that was not.

    Examples
    --------
    >>> difference_table(idata).query("verdict == 'differs'")  # doctest: +SKIP
    """
    import pandas as pd

    if not threshold > 1:
        raise ValueError(f"`threshold` must be above 1, got {threshold}.")
    ci_prob = interval_probability(ci_prob)
    posterior = read_edges(idata, group)
    prior = _prior(posterior)
    indicators = _indicators(posterior)
    ess = indicator_ess(indicators)
    name, (present, absent), floor = _estimate(posterior, indicators, ess)
    factor, bound = bayes_factors_of(present, absent, prior.prior, floor)
    source, target = posterior.ends()
    columns = {
        "source": source,
        "target": target,
        "probability": present,
        "bayes_factor": factor,
        "verdict": verdicts(factor, prior.prior, threshold),
        "edge": posterior.probability,
    }
    columns |= _weights(posterior, groups, ci_prob)
    columns |= {"ess": ess, "r_hat": indicator_rhat(indicators)}
    table = pd.DataFrame(columns)
    order = np.lexsort((-np.abs(table["difference"]), -table["probability"]))
    bounds = np.flatnonzero(bound[order]).tolist()
    table = table.iloc[order].reset_index(drop=True)
    table.attrs = {
        "estimator": name,
        "ci_prob": ci_prob,
        "threshold": threshold,
        "bayes_factor_bounds": bounds,
        "notes": bound_note(bounds),
    }
    return table


def verdicts(factor: np.ndarray, prior: np.ndarray, threshold: float) -> np.ndarray:
    """Verdict of each Bayes factor of a difference; where the prior decides, its own."""
    out = np.full(len(factor), UNDECIDED, dtype=object)
    out[(factor >= threshold) | (prior == 1)] = DIFFERS
    out[(factor <= 1 / threshold) | (prior == 0)] = EQUAL
    return out


def _prior(posterior: "EdgePosterior") -> RelationPrior:
    if DIFFERENCE not in posterior.draws or not RelationPrior.is_in(posterior.constants):
        raise ValueError(
            "This result has no differences between groups: sample bs.models.grouped_gaussian_graphical, or bs.models.ising or "
            "pairwise_mrf with `group`, and read the whole result and not that of one group."
        )
    return RelationPrior.read(posterior.constants)


def _indicators(posterior) -> np.ndarray:
    values = posterior.draws[DIFFERENCE].transpose(*SAMPLE_DIMS, posterior.dim).values
    return values.astype(bool)


def _estimate(posterior, indicators, ess):
    """Name of the estimator, probabilities of difference and equality, and the smallest that can be told from 0."""
    if "precision" in posterior.draws and RelationScales.is_in(posterior.constants):
        return "rao-blackwell", _averaged(posterior), float(np.finfo(float).tiny)
    if (reported := posterior.differing) is not None:
        floor = reported_error(reported, series_ess(reported))
        return "control variate", reported_probabilities(reported), floor
    share = indicators.mean(axis=(0, 1))
    draws = indicators.shape[0] * indicators.shape[1]
    return "frequency", (share, 1 - share), 1 / (typical_ess(ess, draws) + 1)


def _averaged(posterior) -> tuple[np.ndarray, np.ndarray]:
    """Averages of the probabilities of difference and equality given the precision matrices."""
    from scipy.special import expit

    prior = RelationScales.read(posterior.constants)
    precision = posterior.draws["precision"].transpose(*SAMPLE_DIMS, GROUP, NODE, "node_")
    present, absent = [], []
    for chain in range(posterior.n_chains):  # one at a time, to hold less at once
        u = precision.isel(chain=chain).values[..., posterior.source, posterior.target]
        groups, shared = u.shape[1], u.mean(axis=1)
        spread = ((u - shared[:, None]) ** 2).sum(axis=1)
        nominal_edge = _nominal(posterior, "edge_probability", chain, prior.edge)
        nominal = _nominal(posterior, "difference_probability", chain, prior.difference)
        with np.errstate(divide="ignore"):
            edge = np.log(nominal_edge) + _log_normal(shared, prior.slab_scale)
            none = np.log1p(-nominal_edge) + _log_normal(shared, prior.spike_scale)
            differs = edge + np.log(nominal)
            equals = np.logaddexp(none, edge + np.log1p(-nominal))
        differs = differs + _log_normals(spread, groups - 1, prior.difference_scale)
        equals = equals + _log_normals(spread, groups - 1, prior.equal_scale)
        odds = differs - equals
        present.append(expit(odds).mean(axis=0))
        absent.append(expit(-odds).mean(axis=0))
    return np.mean(present, axis=0), np.mean(absent, axis=0)


def _nominal(posterior, name, chain, fixed):
    """Nominal probabilities of the pairs; those in each draw where they are learned."""
    if name not in posterior.draws:
        return fixed
    drawn = posterior.draws[name].isel(chain=chain).values[:, None]
    return np.where((fixed > 0) & (fixed < 1), drawn, fixed)


def _log_normal(value, sd):
    return -0.5 * (value / sd) ** 2 - np.log(sd)


def _log_normals(squares, count, sd):
    return -0.5 * squares / sd**2 - count * np.log(sd)


def _weights(posterior, groups, ci_prob) -> dict:
    """Columns of the weight in each group, and of the difference of two groups."""
    weight = posterior.draws["weight"].transpose(*SAMPLE_DIMS, GROUP, posterior.dim)
    labels = [str(label) for label in weight[GROUP].values]
    draws = weight.values.reshape(posterior.n_draws, len(labels), -1).astype(float)
    first, second = _compared(draws.mean(axis=0), labels, groups)
    pairs = np.arange(draws.shape[-1])
    gap = draws[:, first, pairs] - draws[:, second, pairs]
    names = np.array(labels, dtype=object)
    low, high = _interval(gap, ci_prob)
    out = {"first": names[first], "second": names[second]}
    out |= {"difference": gap.mean(axis=0), "hdi_low": low, "hdi_high": high}
    for g, label in enumerate(labels):
        low, high = _interval(draws[:, g], ci_prob)
        out[f"mean_{label}"] = draws[:, g].mean(axis=0)
        out |= {f"hdi_low_{label}": low, f"hdi_high_{label}": high}
    return out


def _compared(means, labels, groups) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the two groups that are compared, for each pair of columns."""
    if groups is None:
        high, low = means.argmax(axis=0), means.argmin(axis=0)
        low = np.where(high == low, (high + 1) % len(labels), low)  # all alike, as if forbidden
        return np.minimum(high, low), np.maximum(high, low)
    chosen = [group_label(label) for label in groups]
    if len(chosen) != 2 or len({*chosen}) < 2 or {*chosen} - {*labels}:
        raise ValueError(
            f"`groups` must be two of the groups {', '.join(map(repr, labels))}, not {groups!r}"
        )
    first, second = (np.full(means.shape[1], labels.index(label)) for label in chosen)
    return first, second


def _interval(draws, ci_prob) -> tuple[np.ndarray, np.ndarray]:
    import arviz as az

    interval = az.hdi(draws.T, prob=ci_prob)
    return interval[:, 0], interval[:, 1]


def one_group(idata: "xr.DataTree", group: str, *, negligible: float = 0.1) -> "xr.DataTree":
    """Return the part of a result that belongs to one group of rows, for the readers of a single graph.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.grouped_gaussian_graphical`, or of :func:`bayesstruct.models.ising` or :func:`~bayesstruct.models.pairwise_mrf` with
        `group`.
    group : str
        Label of the group.
    negligible : float, default 0.1
        Absolute partial correlation up to which a pair that differs between groups has no edge in this one, under
        ``differences="contrasts"``. Prior probabilities, and so Bayes factors, are known for the default only.

    Returns
    -------
    xarray.DataTree
        Matrices, means, weights and rows of that group, without ``relation`` and ``difference``. ``edge`` is that of the group: its
        indicator if the model has one in each group (``differences="indicators"``). Under contrasts a pair that is equal has an edge in
        all groups. One that differs has a continuous distribution in each, and is an edge of those where its partial correlation
        is not `negligible`. In a Markov random field an edge of some group counts for each.

    Raises
    ------
    ValueError
        If the result has no such group; names those that it has. If relations or weights were not sampled.

    Examples
    --------
    >>> edge_table(one_group(idata, "treated"))  # doctest: +SKIP
    """
    import xarray as xr

    negligible = number("negligible", negligible, least=0, most=1)
    constants = group_dataset(idata, CONSTANTS)
    own = [d.to_dataset() for d in idata.children.values() if GROUP in d.dims]
    if not own or not RelationPrior.is_in(constants):
        raise ValueError(
            "this result has no groups of rows; it is not one of bs.models.grouped_gaussian_graphical or, with `group`, "
            "bs.models.ising or pairwise_mrf, or it is that of one group already"
        )
    labels = [str(label) for label in own[0][GROUP].values]
    if group_label(group) not in labels:
        raise ValueError(
            f"the groups of this result are {', '.join(map(repr, labels))}, not {group!r}"
        )
    place = labels.index(group_label(group))
    kept = {}
    if RowGroups.is_in(constants):  # and not covariance matrices
        rows = RowGroups.read(constants).index == place
        kept["observation"] = np.flatnonzero(rows)
        mask = MissingMask.read(constants).missing
        if mask is not None:
            kept["missing"] = np.flatnonzero(rows[np.nonzero(mask)[0]])
    parts = {}
    for name, node in idata.children.items():
        dataset = node.to_dataset()
        dataset = dataset.isel({dim: index for dim, index in kept.items() if dim in dataset.dims})
        if GROUP in dataset.dims:
            dataset = dataset.isel({GROUP: place})
        if RelationScales.is_in(constants):
            if "edge" in dataset or "relation" in dataset:
                dataset = _beyond(dataset, negligible)
            if name == CONSTANTS:
                dataset = _with_bound(dataset, negligible)
        dataset = _with_own_edges(dataset)
        parts[name] = dataset.drop_vars(_OF_ALL, errors="ignore")
    return xr.DataTree.from_dict(parts)


def _beyond(dataset: "xr.Dataset", negligible: float) -> "xr.Dataset":
    """Edges of one group: pairs that are equal, and different ones whose weight there is not negligible."""
    if lost := [name for name in ("relation", "weight") if name not in dataset]:
        raise ValueError(
            f"the edges of one group need `{lost[0]}`: sample it too (`var_names`), or read the whole result"
        )
    relation, strong = dataset["relation"], abs(dataset["weight"]) > negligible
    own = ((relation == 1) | ((relation == 2) & strong)).astype("int64")
    return dataset.assign(edge=own.transpose(*relation.dims))


def _with_bound(constants: "xr.Dataset", negligible: float) -> "xr.Dataset":
    """Record the bound of weights; prior probabilities of free edges are NaN unless they are known for it."""
    constants = constants.assign(negligible=float(negligible))
    if negligible == NEGLIGIBLE and "group_edge_prior" in constants:
        return constants
    prior = constants["edge_prior"]
    return constants.assign(group_edge_prior=prior.where((prior == 0) | (prior == 1)))


def _with_own_edges(dataset: "xr.Dataset") -> "xr.Dataset":
    """Edges of the group, and their prior, in the place of those of some group, if the model has them."""
    for own, name in (("group_edge", "edge"), ("group_edge_prior", "edge_prior")):
        if own in dataset:
            lost = [name, "difference_prior"]
            dataset = dataset.drop_vars(lost, errors="ignore").rename({own: name})
    return dataset


def _has_differences(idata) -> bool:
    return {"edge", DIFFERENCE} <= variables(idata) and RelationPrior.is_in(idata)


_OF_GROUPS = tuple(name for name in EDGE_READERS if name not in NODE_READERS)

register_summary(
    "differences between groups",
    _has_differences,
    difference_table,
    ("edge_table", "one_group", "plot_difference", *_OF_GROUPS),
    before="undirected graphs",
)
