"""Part of the report on a Bayesian network about the effects of setting each column on each other one."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.app.report.parts import Part, Result, fixed, interval, interval_title
from bayesstruct.graphs.summaries import interval_probability
from bayesstruct.networks.priors.records import MixedColumns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EFFECTS"]


def _wants_effects(result: Result) -> bool:
    return bool(result.job.options.get("effects")) and result.is_directed


def _effects(result: Result) -> "pd.DataFrame":
    """Effect of each column on each, if it is raised by one standard deviation."""
    import pandas as pd

    from bayesstruct.networks.reading.effects import do

    parts = []
    frame = result.job.frame
    numbers = _numbers(result)
    for name in result.nodes:
        values = frame[name].dropna()
        settings = (
            [float(values.mean() + values.std(ddof=1))]
            if name in numbers
            else [*dict.fromkeys(sorted(values))]
        )
        for value in settings:
            effect = do(result.idata, {str(name): value}).reset_index()
            parts.append(_effect_rows(effect, name, value))
    table = pd.concat(parts, ignore_index=True)
    table.attrs["ci_prob"] = interval_probability()
    order = np.argsort(-table["effect"].abs().to_numpy(), kind="stable")
    return table.iloc[order].reset_index(drop=True)


def _numbers(result: Result) -> list:
    """Columns that hold numbers."""
    constants = result.idata["constant_data"].to_dataset()
    if MixedColumns.is_in(constants):
        layout = MixedColumns.read(constants).layout()
        return [name for i, name in enumerate(result.nodes) if layout.is_number(i)]
    return [*result.nodes] if "weight" in result.drawn else []


def _effect_rows(effect, name, value):
    known = ["effect", "effect_low", "effect_high"]
    labels = [
        c
        for c in effect.columns
        if c not in {*known, "mean", "low", "high"} and not c.startswith("predicted")
    ]
    out = effect[[*labels, *known]].rename(columns={labels[0]: "on"})
    if len(labels) > 1:
        out = out.rename(columns={labels[1]: "state"})
    out.insert(0, "set", str(name))
    out.insert(1, "to", value)
    return out[out["on"].astype(str) != str(name)]


def _effect_cells(table: "pd.DataFrame") -> dict[str, list[str]]:
    set_to = [
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in zip(table["set"], table["to"], strict=True)
    ]
    states = {"state": [*map(str, table["state"])]} if "state" in table else {}
    return {
        "set": set_to,
        "on": [*map(str, table["on"])],
        **states,
        "effect": fixed(table["effect"]),
        interval_title(table): interval(table, "effect_low", "effect_high"),
    }


EFFECTS = Part(
    "Effects of each on each",
    "effects.csv",
    _wants_effects,
    _effects,
    _effect_cells,
    lambda table: [
        f"{int(((table['effect_low'] > 0) | (table['effect_high'] < 0)).sum())} of {len(table)} effects have a credible interval without zero."
    ],
    lambda table: [
        "*Effect*: change of the expected value of a column (of the probability of a state), in the units of the table, if another one is *set* from "
        "outside, averaged over graphs and parameters: to its mean plus one standard deviation, or to each of its states. Effects are causal only if "
        "no unobserved variable acts on two of the columns.",
    ],
    words=frozenset({0, 1}),
)
