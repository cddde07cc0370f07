"""One model of one table under several priors: on which conclusions they agree."""

import inspect
import logging

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from itertools import product
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.errors import TableError, count
from bayesstruct.graphs.comparisons.sensitivity import Sensitivity, evidence_table, sensitivity_of
from bayesstruct.graphs.evidence import STRONG, check_threshold

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm
    import xarray as xr

    from bayesstruct.data.intake import TableLike

__all__ = ["sensitivity"]

_log = logging.getLogger("bayesstruct")


def sensitivity(
    model: Callable[..., "pm.Model"],
    data: "TableLike" = None,
    *,
    options: Mapping[str, Any] | None = None,
    draws: int = 1000,
    tune: int = 1000,
    chains: int | None = None,
    cores: int | None = None,
    random_seed: int | Sequence[int] | None = None,
    threshold: float = STRONG,
    progressbar: bool = True,
    **grids: Any,
) -> Sensitivity:
    """Sample a model of graphs under several priors, and compare what the data say of each edge.

    Parameters
    ----------
    model : callable
        A model function such as ``bs.models.gaussian_graphical``, or one of your own that returns a ``pm.Model`` with edges or arcs.
    data : DataFrame or array_like
        The table, as the model takes it; None where the model takes `cov`, which then is in `options`.
    options : dict, optional
        Options of the model that are the same in all settings, such as ``{"prior": "g_wishart"}``.
    draws, tune, chains, cores, progressbar
        As in :func:`bayesstruct.sample` (neighbourhood models: :func:`bayesstruct.sample_neighbourhoods`).
    random_seed : int or sequence of int, optional
        The same one for all settings, so that each is what its own run with this seed gives; it is
        recorded in the result.
    threshold : float, default 10
        Included: Bayes factor of at least `threshold`. Excluded: at most 1 / `threshold`.
    **grids : list, or dict of label to value
        At least two values for each option that is varied, as in ``edge_probability=[0.1, 0.3, 0.5]``. All combinations are
        sampled. Values that are not numbers or texts are told apart by the labels of a dict:
        ``edge_probability={"0.2": 0.2, "learned": pm.Beta.dist(1, 4)}``.

    Returns
    -------
    Sensitivity
        Prints as the edges whose conclusion depends on the setting, followed by the others. ``.table`` has one row for each
        setting and edge, ``.edges`` one for each edge with the smallest and the largest Bayes factor and whether the
        conclusion changes, ``.settings`` one for each setting. :func:`bayesstruct.plot_sensitivity` draws it.

    Raises
    ------
    ValueError
        For an option that the model does not have (it lists those that it has), a grid of fewer than two values, an option that is
        given twice, or a model without edges and arcs; also for a value that the model refuses. Messages of models and of
        sampling name the setting. All models are built before the first is sampled, so that most errors come at once.
    TableError
        If the table cannot be used.
    TypeError
        When `model` is not a function that returns a ``pm.Model``, or as the model raises it.
    RuntimeError
        If sampling fails.

    Notes
    -----
    The settings are sampled one after the other in this process, which compiles a step method once for all of them.

    The Bayes factor of an edge compares the marginal likelihoods with and without it, averaged over the rest of the graph: its own prior probability
    cancels out, and that of other edges does not. It depends strongly on the scale of the slab: a wide one
    expects large weights, under which an edge with a small weight counts as absent. What holds over the range of priors that
    readers may reasonably have is a result of the data; of what does not, report the range.

    Examples
    --------
    .. code-block:: python

        result = bs.sensitivity(
            bs.models.gaussian_graphical,
            df,
            edge_probability=[0.1, 0.3, 0.5],
            slab_scale=[0.5, 1.0, 2.0],
            random_seed=1,
        )
        result.edges.query("changes")
        bs.plot_sensitivity(result)
    """
    check_threshold(threshold)
    fixed = _fixed(options)
    lists = _lists(grids)
    name = _check_options(model, fixed, lists)
    points = [
        dict(point) for point in product(*([(k, v) for v in lists[k].items()] for k in lists))
    ]
    texts = [", ".join(f"{option}={label}" for option, (label, _) in p.items()) for p in points]
    values = [fixed | {option: value for option, (_, value) in p.items()} for p in points]
    built = [
        _named(text, _build, name, model, data, given)
        for text, given in zip(texts, values, strict=True)
    ]
    _refuse_without_graph(name, built[0])
    seed = (
        np.random.SeedSequence().generate_state(1)[0].item() if random_seed is None else random_seed
    )
    given = {"draws": draws, "tune": tune, "cores": cores, "random_seed": seed}
    given |= {"progressbar": progressbar} | ({} if chains is None else {"chains": chains})
    tables, converged, directed = [], [], False
    for k, text in enumerate(texts):
        _log.info("sensitivity: setting %d of %d, %s", k + 1, len(texts), text)
        idata = _named(text, _draw, built[k], given)
        tables.append(evidence_table(idata, threshold))
        converged.append(_has_converged(idata))
        directed, built[k] = "edge" not in idata["posterior"], None
    return sensitivity_of(
        _settings(points),
        tables,
        converged,
        line="arc" if directed else "edge",
        threshold=threshold,
        random_seed=seed,
    )


# ---- options -----------------------------------------------------------------------------------


def _fixed(options) -> dict[str, Any]:
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise TypeError(
            '`options` must be a dict of options that stay as they are, such as {"prior": "g_wishart"}, '
            f"not {type(options).__name__}"
        )
    return dict(options)


def _lists(grids) -> dict[str, dict]:
    """Values of each option by their labels."""
    if not grids:
        raise ValueError(
            "nothing is varied: give the values of at least one option, such as edge_probability=[0.1, 0.3, 0.5]"
        )
    return {name: _labelled(name, values) for name, values in grids.items()}


def _labelled(name: str, values) -> dict:
    """Values of one option by their labels: themselves if they are numbers or texts."""
    if isinstance(values, Mapping):
        labelled = dict(values)
    else:
        listed = _listed(name, values)
        labelled = {_label(value, k): value for k, value in enumerate(listed, 1)}
        if len(labelled) < len(listed):
            raise ValueError(f"`{name}` has a value twice: give each once")
    if len(labelled) < 2:
        raise ValueError(f"`{name}` has {count(len(labelled), 'value')}: {_remedy(name)}")
    return labelled


def _listed(name: str, values) -> list:
    """Values of a grid as a list; a single value, a table or a matrix is none."""
    if isinstance(values, str) or not hasattr(values, "__iter__") or np.ndim(values) == 0:
        raise ValueError(f"`{name}` is one value and not several: {_remedy(name)}")
    if hasattr(values, "columns") or getattr(values, "ndim", 1) != 1:
        raise ValueError(f"`{name}` is one matrix and not several values: {_remedy(name)}")
    return list(values)


def _remedy(name: str) -> str:
    return (
        f"what is varied needs a list of at least two, {name}=[..., ...], and what stays as it is belongs in "
        f"options={{{name!r}: ...}}"
    )


def _label(value, place: int):
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool):
        return str(value)
    return value if isinstance(value, Number) else f"value {place}"


def _check_options(model, fixed: dict, lists: dict) -> str:
    """Refuse options that the model does not have; return the name of the model."""
    if not callable(model):
        raise TypeError(
            f"`model` must be a model function, such as bs.models.gaussian_graphical, not {model!r}"
        )
    if twice := sorted({*fixed} & {*lists}):
        raise ValueError(f"`{twice[0]}` is varied and in `options`: leave out one of them")
    name = getattr(model, "__name__", "the model")
    parameters = list(inspect.signature(model).parameters.values())
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return name
    known = [p.name for p in parameters[1:]]
    for option in [*fixed, *lists]:
        if option not in known:
            close = get_close_matches(option, known, 1)
            meant = f" (did you mean `{close[0]}`?)" if close else ""
            raise ValueError(
                f"{name} has no option `{option}`{meant}. Its options: {', '.join(known)}"
            )
    return name


def _settings(points: list[dict]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame([{option: label for option, (label, _) in p.items()} for p in points])


# ---- one setting -------------------------------------------------------------------------------


def _named(text: str, work: Callable, *given):
    """Do the work for one setting; an error says which one it was."""
    try:
        return work(*given)
    except (ValueError, TypeError, RuntimeError) as error:  # the last are those of sampling
        kind = next(
            k for k in (TableError, ValueError, TypeError, RuntimeError) if isinstance(error, k)
        )
        raise kind(f"With {text}: {error}") from error


def _build(name: str, model, data, given: dict) -> "pm.Model":
    import pymc as pm

    built = model(**given) if data is None else model(data, **given)
    if not isinstance(built, pm.Model):
        raise TypeError(f"{name} returned {type(built).__name__} and not a pm.Model")
    return built


def _refuse_without_graph(name: str, built: "pm.Model") -> None:
    if not {"edge", "arc"} & {*built.named_vars}:
        raise ValueError(
            f"{name} has no edges or arcs, and only those have evidence to compare: take a model of graphs, or sample each "
            "setting and compare bs.summary(idata)"
        )


def _draw(model: "pm.Model", given: dict) -> "xr.DataTree":
    from bayesstruct.core.recognition import NotRecognized
    from bayesstruct.neighbourhoods.recognition import recognize_neighbourhoods
    from bayesstruct.neighbourhoods.sampling import sample_neighbourhoods
    from bayesstruct.runs.sample import sample

    try:
        recognize_neighbourhoods(model)
    except NotRecognized:
        return sample(model=model, compute_convergence_checks=False, **given)
    return sample_neighbourhoods(model, **given)


def _has_converged(idata: "xr.DataTree") -> bool:
    from bayesstruct.modes.check import check

    return check(idata).ok
