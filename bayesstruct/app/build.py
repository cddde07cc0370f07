"""The model of a run, from its table and its plain options."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.app.intake import apart, codes_of
from bayesstruct.models.catalogue import MODELS
from bayesstruct.models.options import OPTIONS

if TYPE_CHECKING:
    import pymc as pm

    from bayesstruct.app.folder import Job

__all__ = ["build"]


def build(job: "Job") -> "pm.Model":
    """Return the model of a run.

    Parameters
    ----------
    job : Job
        Its table, and ``model``, ``model_options``, ``cov`` and ``missing`` of its options.

    Raises
    ------
    TableError
        If the model cannot use the table.
    TypeError, ValueError
        If options contradict each other.
    """
    from bayesstruct import models
    from bayesstruct.core.tables.missing_codes import record_codes

    name, frame = job.options["model"], job.frame
    kinds = {option.name: option.kind for option in OPTIONS[name]}
    own = {
        key: _argument(kinds[key], key, value)
        for key, value in job.options["model_options"].items()
    }
    if "covariates" in own:
        own["covariates"] = frame[own["covariates"]]
        frame = frame.drop(columns=list(own["covariates"]))
    if "interventions" in own:
        own["interventions"] = _mask(frame, own["interventions"])
    function = getattr(models, name)
    if job.options.get("cov"):
        return function(cov=frame, **own)
    if MODELS[name].table == "series" and "series" not in own:
        return function([frame], **own)
    model = function(frame, **own)
    if job.options["missing"]:
        variables = [name for name in frame if name not in apart(job.options["model_options"])]
        codes = codes_of(job.options["missing"], variables)
        if isinstance(codes, dict):
            codes = {name: own for name, own in codes.items() if name in variables}
        with model:
            record_codes(codes)  # of the file; in the frame these values are missing
    return model


def _argument(kind: str, name: str, value: Any) -> Any:
    """Return what the model takes for a plain value."""
    if kind == "number" and isinstance(value, str):
        return _distribution(value)
    if name == "norm" and value in ("1", "2", "inf"):
        return np.inf if value == "inf" else int(value)
    if kind == "pairs":
        return [tuple(pair) for pair in value]
    if kind == "two numbers":
        return tuple(value)
    if kind == "neighbours" and not isinstance(value, str):
        grid = all(isinstance(side, int) for side in value)
        return tuple(value) if grid else [tuple(pair) for pair in value]
    return value


def _distribution(text: str) -> Any:
    """Return the distribution that is written as ``beta:1,4`` or ``blocks``."""
    import pymc as pm

    from bayesstruct.data.edge_priors import StochasticBlock

    if text == "blocks":
        return StochasticBlock()
    name, _, numbers = text.partition(":")
    one, other = map(float, numbers.split(","))
    return {"beta": pm.Beta, "gamma": pm.Gamma}[name].dist(one, other)


def _mask(frame, rows):
    """Table of which values were set."""
    import pandas as pd

    mask = pd.DataFrame(data=False, index=frame.index, columns=frame.columns)
    for name, own in rows.items():
        mask.loc[mask.index[own], name] = True
    return mask
