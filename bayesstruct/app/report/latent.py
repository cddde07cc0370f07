"""Parts of the report about what is hidden behind a table: features, links, behaviours, clusters."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.app.report.parts import Drawing, Part, Result, fixed, interval, interval_title
from bayesstruct.core.readers import reader_of
from bayesstruct.graphs.summaries import interval_probability

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LATENT_PARTS", "SPLITS"]

#: Rows up to which a matrix of all pairs of rows is written.
MAX_PAIRED = 1000
_MATCHED = (
    "They have no order and no names, and are named after those of a reference draw, to which the others are matched; "
    "{} on average {} of a draw are like none of these."
)


# ---- main figures of families that register one ----------------------------------------------


def _figure(result: Result):
    return getattr(reader_of(result.idata), "figure", None)


def _main_size(result: Result, table) -> tuple[float, float]:
    """Size of the main figure in inches: a matrix of links is as wide as it has columns, series are one below the other."""
    draws = result.idata["posterior"]
    rows = draws.sizes.get("observation", 0)
    if {"feature", "interaction"} <= result.drawn:
        columns = draws.sizes["node"] if "column_feature" in result.drawn else rows
        return float(np.clip(3.4 + 0.3 * columns, 4.5, 11)), float(np.clip(2.6 + 0.3 * rows, 4, 11))
    if "emission_mean" in result.drawn:
        return 8.0, 1.2 + 0.62 * min(rows, 12)
    return 7.0, 5.0


def _main(caption: str) -> Drawing:
    """Return the drawing of the figure that is registered for a kind of result."""
    return Drawing(
        "figure.png",
        caption,
        lambda result, table, ax: _figure(result)(result.idata, ax=ax),
        _main_size,
        lambda result, table: len(table) > 0 and _figure(result) is not None,
    )


# ---- features --------------------------------------------------------------------------------


def _has_features(result: Result) -> bool:
    return "feature" in result.drawn


def _has_behaviours(result: Result) -> bool:
    return {"feature", "transition", "emission_mean"} <= result.drawn


def _has_links(result: Result) -> bool:
    return {"feature", "interaction", "bias"} <= result.drawn


def _features(result: Result) -> "pd.DataFrame":
    from bayesstruct.features.reading.tables import feature_count_probabilities, feature_table

    table = feature_table(result.idata)
    table.attrs["counts"] = feature_count_probabilities(result.idata)
    return table


def _draw_count(result: Result, ax) -> None:
    from bayesstruct.features.reading.plots import plot_feature_count

    plot_feature_count(result.idata, ax=ax)


_COUNT = Drawing(
    "feature_count.png",
    "Posterior probabilities of the number of features.",
    lambda result, table, ax: _draw_count(result, ax),
    lambda result, table: (5.0, 3.2),
    lambda result, table: True,
)


def _feature_cells(table: "pd.DataFrame") -> dict[str, list[str]]:
    return {
        "feature": [*map(str, table["feature"])],
        "probability": fixed(table["probability"]),
        "share of the rows": fixed(table["share"]),
        interval_title(table): interval(table),
    }


def _count_headline(table: "pd.DataFrame") -> list[str]:
    return [_numbers_of("features", table.attrs["counts"])]


def _numbers_of(what: str, counts) -> str:
    """Say how probable the most probable numbers are; a Series of probabilities by number."""
    likely = counts[counts >= 0.005].sort_values(ascending=False, kind="stable").head(4)
    named = ", ".join(f"{number} ({p:.2f})" for number, p in likely.items())
    return f"The most probable numbers of {what}, with their probabilities: {named or 'none above 0.005'}."


def _matched(table: "pd.DataFrame", what: str) -> str:
    return _MATCHED.replace("{}", "in these draws", 1).replace(
        "{}", f"{table.attrs['unmatched']:.2f} {what}", 1
    )


FEATURES = Part(
    "Features",
    "features.csv",
    lambda result: _has_features(result) and not _has_behaviours(result),
    _features,
    _feature_cells,
    _count_headline,
    lambda table: [
        "*Probability*: share of the draws that have the feature. *Share of the rows*: of those that have it, posterior mean.",
        _matched(table, "features"),
    ],
    (_COUNT,),
)


def _membership(result: Result) -> "pd.DataFrame":
    from bayesstruct.features.reading.tables import feature_membership

    return feature_membership(result.idata)


def _membership_cells(table: "pd.DataFrame") -> dict[str, list[str]]:
    cells = {"row": [*map(str, table.index)]}
    for name in [*table.columns][:8]:
        cells[f"feature {name}"] = fixed(table[name], 2)
    return cells


def _draw_features(result: Result, table, ax) -> None:
    from bayesstruct.features.reading.plots import plot_features

    plot_features(result.idata, ax=ax)


def _size_of_features(result: Result, table) -> tuple[float, float]:
    k = table["feature"].nunique() if "feature" in table else table.shape[1]
    d = table["variable"].nunique() if "variable" in table else len(table)
    return float(np.clip(4.5 + 0.25 * d, 6, 12)), float(np.clip(1.6 + 0.35 * k, 2.8, 9))


_FEATURES_DRAWN = Drawing(
    "features.png",
    "Features one below the other, at most twelve.",
    _draw_features,
    _size_of_features,
)


def _has_loadings(result: Result) -> bool:
    return {"feature", "loading"} <= result.drawn


def _loadings(result: Result) -> "pd.DataFrame":
    from bayesstruct.features.reading.tables import loading_table

    table = loading_table(result.idata)
    table.attrs["ci_prob"] = interval_probability()
    size = -np.abs(table["mean"].fillna(0).to_numpy())
    return table.iloc[np.argsort(size, kind="stable")].reset_index(drop=True)


def _loading_cells(table: "pd.DataFrame") -> dict[str, list[str]]:
    return {
        "feature": [*map(str, table["feature"])],
        "variable": [*map(str, table["variable"])],
        "loading": fixed(table["mean"]),
        interval_title(table): interval(table),
    }


LOADINGS = Part(
    "Loadings of the features",
    "loadings.csv",
    _has_loadings,
    _loadings,
    _loading_cells,
    lambda table: [],
    lambda table: [
        "*Loading*: how much a feature adds to a column where it is on, mean and highest-density interval over the draws that have the "
        "feature; the largest come first.",
    ],
    (_FEATURES_DRAWN,),
    words=frozenset({0, 1}),
)
MEMBERSHIP = Part(
    "Who has which feature",
    "membership.csv",
    lambda result: _has_features(result) and not _has_behaviours(result),
    _membership,
    _membership_cells,
    lambda table: [],
    lambda table: [
        "Probabilities over all draws; in draws without a feature no row has it. At most eight features are shown.",
    ],
    (
        replace(
            _FEATURES_DRAWN,
            wanted=lambda result, table: table.shape[1] > 0 and not _has_loadings(result),
        ),
    ),
    index=True,
)


# ---- links -----------------------------------------------------------------------------------


def _links(result: Result) -> "pd.DataFrame":
    """Pairs of objects, those that were not observed first."""
    from bayesstruct.features.reading.links import link_probabilities

    table = link_probabilities(result.idata)
    known = table["observed"].notna().to_numpy()
    return table.iloc[np.argsort(known, kind="stable")].reset_index(drop=True)


def _link_cells(table: "pd.DataFrame") -> dict[str, list[str]]:
    value = _value(table)
    return {
        "pair": [f"{a} -- {b}" for a, b in zip(table["source"], table["target"], strict=True)],
        "probability of a link" if value == "probability" else "expected": fixed(table[value]),
        "standard deviation": fixed(table["sd"]),
        "observed": [f"{v:.4g}" if np.isfinite(v) else "not observed" for v in table["observed"]],
    }


def _value(table) -> str:
    return "probability" if "probability" in table else "expectation"


def _link_headlines(table: "pd.DataFrame") -> list[str]:
    unknown = int(table["observed"].isna().sum())
    known = table[table["observed"].notna()]
    out = [f"{len(table)} pairs, of which {unknown} were not observed."]
    if _value(table) == "probability" and len(known) and 0 < known["observed"].mean() < 1:
        on = known["observed"] == 1
        out.append(
            f"Observed links have a mean probability of {known['probability'][on].mean():.2f}, other observed pairs of "
            f"{known['probability'][~on].mean():.2f}."
        )
    elif _value(table) == "expectation" and len(known) > 2:
        r = np.corrcoef(known["observed"], known["expectation"])[0, 1]
        out.append(f"Correlation of observed with expected values: {r:.2f}.")
    return out


LINKS = Part(
    "Links",
    "links.csv",
    _has_links,
    _links,
    _link_cells,
    _link_headlines,
    lambda table: [
        "Posterior means and standard deviations, the largest first; pairs that were not observed come before all others.",
    ],
    (_main("Probabilities (expected values) of all pairs."),),
    words=frozenset({0, 3}),
)


# ---- behaviours of series --------------------------------------------------------------------


def _behaviours(result: Result) -> "pd.DataFrame":
    from bayesstruct.features.reading.tables import feature_count_probabilities

    table = result.states
    table.attrs["counts"] = feature_count_probabilities(result.idata)
    return table


def _series_shares(table: "pd.DataFrame") -> dict[str, list[str]]:
    """Share of the time that each series spends in each behaviour; the table is that of single rows."""
    shares = table.groupby(level="series", sort=False).mean()
    cells = {"series": [*map(str, shares.index)]}
    for name in [c for c in shares.columns if c != "other"][:8]:
        cells[f"behaviour {name}"] = fixed(shares[name], 2)
    return cells | {"other": fixed(shares["other"], 2)}


def _behaviour_headlines(table: "pd.DataFrame") -> list[str]:
    series = table.index.get_level_values("series").nunique()
    named = table.drop(columns="other")
    sure = float((named.max(axis=1) > 0.9).mean()) if named.shape[1] else 0.0
    return [
        _numbers_of("behaviours", table.attrs["counts"]),
        f"{named.shape[1]} behaviours in the reference draw of {series} series with {len(table):,} rows; {sure:.0%} of the rows "
        "have a behaviour with a probability of more than 0.9.",
    ]


BEHAVIOURS = Part(
    "Behaviours of the series",
    "behaviours.csv",
    _has_behaviours,
    _behaviours,
    _series_shares,
    _behaviour_headlines,
    lambda table: [
        "Share of its time that each series spends in each behaviour, posterior mean; *other*: behaviours that are like none of the reference "
        "draw. `behaviours.csv` has the probabilities in each row of each series. At most eight behaviours are shown.",
    ],
    (
        _main("Probability of each behaviour over time."),
        replace(_COUNT, caption="Posterior probabilities of the number of behaviours."),
    ),
    shown=10**9,
    index=True,
)


def _emissions(result: Result) -> "pd.DataFrame":
    """Means and standard deviations of the behaviours of the reference draw, in the units of the table."""
    import pandas as pd

    from bayesstruct.series.reading import RecordedSeries

    states = result.states
    chain, draw = states.attrs["reference"]
    one = result.idata["posterior"].isel(chain=chain, draw=draw)
    units = RecordedSeries.read(result.idata)
    lines = []
    for number, latent in enumerate(states.attrs["latent"], start=1):
        mean = one["emission_mean"].values[latent] * units.scale + units.location
        scale = one["emission_scale"].values[latent] * units.scale
        names = one["node"].values if "node" in one.coords else range(len(mean))
        lines += [(number, str(n), m, s) for n, m, s in zip(names, mean, scale, strict=True)]
    return pd.DataFrame(lines, columns=["behaviour", "variable", "mean", "sd"])


EMISSIONS = Part(
    "What the behaviours look like",
    "behaviour_values.csv",
    _has_behaviours,
    _emissions,
    lambda table: {
        "behaviour": [*map(str, table["behaviour"])],
        "variable": [*table["variable"]],
        "mean": [f"{v:.4g}" for v in table["mean"]],
        "standard deviation": [f"{v:.4g}" for v in table["sd"]],
    },
    lambda table: [],
    lambda table: ["In the reference draw, in the units of the table."],
    words=frozenset({0, 1}),
)


# ---- clusters --------------------------------------------------------------------------------


def _has_clusters(result: Result) -> bool:
    return "cluster" in result.drawn


def _clusters(result: Result) -> "pd.DataFrame":
    import pandas as pd

    from bayesstruct.mixtures.reading.clusters import cluster_table

    table = cluster_table(result.idata)
    labels = result.idata["posterior"]["cluster"].values
    numbers = np.sort(labels.reshape(-1, labels.shape[-1]), axis=1)
    distinct = 1 + (np.diff(numbers, axis=1) > 0).sum(axis=1)
    table.attrs["counts"] = pd.Series(np.bincount(distinct) / len(distinct))
    return table


def _cluster_headlines(table: "pd.DataFrame") -> list[str]:
    return [_numbers_of("clusters", table.attrs["counts"])]


CLUSTERS = Part(
    "Clusters",
    "clusters.csv",
    _has_clusters,
    _clusters,
    lambda table: {
        "cluster": [*map(str, table["cluster"])],
        "probability": fixed(table["probability"]),
        "rows": fixed(table["size"], 1),
        interval_title(table): interval(table),
    },
    _cluster_headlines,
    lambda table: [
        "*Probability*: share of the draws that have the cluster. *Rows*: their mean number.",
        _matched(table, "clusters"),
    ],
    (_main("Rows that are in one cluster, by their posterior probability."),),
)


def _coefficients(result: Result) -> "pd.DataFrame":
    from bayesstruct.mixtures.reading.clusters import cluster_coefficients

    table = cluster_coefficients(result.idata)
    table.attrs["ci_prob"] = interval_probability()
    return table


COEFFICIENTS = Part(
    "Coefficients in the clusters",
    "coefficients.csv",
    lambda result: {"cluster", "coefficient"} <= result.drawn,
    _coefficients,
    lambda table: {
        "cluster": [*map(str, table["cluster"])],
        "term": [*table["term"]],
        "coefficient": fixed(table["mean"]),
        interval_title(table): interval(table),
    },
    lambda table: [],
    lambda table: [
        "In the units of the table, mean and highest-density interval over the draws that have the cluster.",
    ],
    words=frozenset({0, 1}),
)


def _together(result: Result) -> "pd.DataFrame":
    from bayesstruct.mixtures.reading.clusters import co_clustering

    return co_clustering(result.idata)


def _together_cells(matrix: "pd.DataFrame") -> dict[str, list[str]]:
    own = np.arange(len(matrix))
    values = matrix.to_numpy().copy()
    values[own, own] = -1.0
    most = values.argmax(axis=1)
    return {
        "row": [*map(str, matrix.index)],
        "most often with": [str(matrix.columns[j]) for j in most],
        "probability of that": fixed(values[own, most]),
    }


TOGETHER = Part(
    "Rows that are together",
    "co_clustering.csv",
    lambda result: (
        _has_clusters(result) and result.idata["posterior"]["cluster"].shape[-1] <= MAX_PAIRED
    ),
    _together,
    _together_cells,
    lambda table: [],
    lambda table: ["`co_clustering.csv` has the probabilities of all pairs of rows."],
    shown=5,
    index=True,
    words=frozenset({0, 1}),
)


# ---- trees with hidden nodes -------------------------------------------------------------------


_STRENGTHS = {
    "correlation": "The correlation is the mean along the edge in the draws that have it.",
    "information": "The information is the mutual information of the two ends of the edge in nats, the mean over the draws that have it.",
}


def _has_splits(result: Result) -> bool:
    strengths = {f"parent_{strength}" for strength in _STRENGTHS}
    return "parent" in result.drawn and bool(strengths & result.drawn)


def _strength(table: "pd.DataFrame") -> str:
    """Name of the column that has the strength of an edge."""
    return next(name for name in _STRENGTHS if name in table)


def _splits(result: Result) -> "pd.DataFrame":
    from bayesstruct.trees.reading.hidden import hidden_node_table, split_table

    table = split_table(result.idata)
    table.attrs["hidden"] = hidden_node_table(result.idata)
    return table


def _hidden_nodes(table: "pd.DataFrame") -> list[str]:
    share = table.attrs["hidden"]["probability"]
    most = int(share.idxmax())
    nodes = "1 hidden node" if most == 1 else f"{most} hidden nodes"
    return [
        f"Most probable: {nodes} (probability {share[most]:.2f}); with at least one hidden node: {1.0 - share[0]:.2f}."
    ]


SPLITS = Part(
    "How edges divide the columns",
    "splits.csv",
    _has_splits,
    _splits,
    lambda table: {
        "columns on one side": [*table["split"]],
        "probability": fixed(table["probability"]),
        _strength(table): fixed(table[_strength(table)]),
    },
    _hidden_nodes,
    lambda table: [
        "An edge divides the columns in two; shown is the side without the first column. A split of one column says that this column is a leaf of the tree.",
        f"{_STRENGTHS[_strength(table)]} The figure is the tree of all splits with a probability above a half.",
    ],
    (
        _main(
            "The tree of all splits with a probability above a half; hidden nodes have a colour of their own."
        ),
    ),
)

LATENT_PARTS = (
    LINKS,
    BEHAVIOURS,
    EMISSIONS,
    CLUSTERS,
    COEFFICIENTS,
    TOGETHER,
    FEATURES,
    LOADINGS,
    MEMBERSHIP,
)
