"""Make the DataTree that `pm.sample` would return from the arrays of a run."""

from __future__ import annotations

import errno
import logging
import os
import warnings

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.runs.checkpoint import ChainStore, Run, recorded_of, refuse_other_model

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

__all__ = ["check_convergence", "load_checkpoint", "to_datatree"]

logger = logging.getLogger(__name__)


def to_datatree(
    folder: Path, run: Run, reached: dict[int, tuple[int, float]], *, model: pm.Model | None = None
) -> xr.DataTree:
    """Convert the stored draws with PyMC's own converter.

    Parameters
    ----------
    folder : Path
    run : Run
    reached : dict
        Chain -> (iterations done, warm-up included; seconds spent).
    model : pymc.Model, optional

    Returns
    -------
    xarray.DataTree

    Raises
    ------
    ValueError
        If no chain has left its warm-up.
    """
    from pymc.backends.arviz import to_inference_data
    from pymc.backends.base import MultiTrace
    from pymc.model import Model

    rows = {chain: max(0, done - run.tune) for chain, (done, _) in reached.items()}
    kept, length = choose_chains(rows)
    if not length:
        most = max(done for done, _ in reached.values())
        raise ValueError(f"no draws yet: the chains are at {most} of {run.tune} warm-up iterations")
    _warn_if_cut(rows, kept, length, folder)

    labels = {}
    if model is None:
        model, labels = Model(), {"coords": run.coords, "dims": run.dims}
    traces = [ChainStore(folder, run, chain).trace(model, rows[chain]) for chain in kept]
    merged = MultiTrace(traces)[:length]
    merged.report._n_tune, merged.report._n_draws = run.tune, length
    merged.report._t_sampling = max(seconds for _, seconds in reached.values())
    tree = to_inference_data(merged, model=model, save_warmup=False, **labels)
    return tree.drop_nodes("observed_data", errors="ignore") if labels else tree


def choose_chains(rows: dict[int, int]) -> tuple[list[int], int]:
    """Choose the chains, cut to a common length, that make the greatest number of draws.

    Example
    -------
    >>> choose_chains({0: 1000, 1: 900, 2: 3})
    ([0, 1], 900)
    """
    by_length = sorted(rows, key=lambda chain: (-rows[chain], chain))
    totals = [(i + 1) * rows[chain] for i, chain in enumerate(by_length)]
    best = max(range(len(totals)), key=lambda i: (totals[i], i))
    return sorted(by_length[: best + 1]), rows[by_length[best]]


def _warn_if_cut(rows, kept, length, folder):
    if all(count == length for count in rows.values()):
        return
    lengths = ", ".join(f"chain {chain}: {count}" for chain, count in sorted(rows.items()))
    warnings.warn(
        f"the chains have different lengths ({lengths}): returned are {length} draws of the chains "
        f"{kept}. The other draws stay in {folder} if that is a checkpoint, and are returned when "
        "the run has been continued to its end.",
        UserWarning,
        stacklevel=2,
    )


def check_convergence(idata: xr.DataTree, model: pm.Model) -> None:
    """Log the warnings on divergences, R-hat and effective sample size that `pm.sample` logs."""
    from pymc.stats.convergence import log_warnings, run_convergence_checks

    # R-hat of a variable that never changed (an edge that is always in) is 0/0.
    with np.errstate(invalid="ignore", divide="ignore"):
        log_warnings(run_convergence_checks(idata, model))


def load_checkpoint(path: str | os.PathLike, model: pm.Model | None = None) -> xr.DataTree:
    """Read the draws that a run has written so far.

    Parameters
    ----------
    path : path
        Folder given as `checkpoint=` to `bayesstruct.runs.sample.sample`. The run may be
        finished, interrupted, killed, failed or still going on.
    model : pymc.Model, optional
        Adds the groups `observed_data` and `constant_data`; taken from the context if there is one.
        Without a model `posterior` and `sample_stats` are returned, with their labels.

    Returns
    -------
    xarray.DataTree
        As of `pm.sample`. If the chains have different lengths, those that make the
        greatest number of draws are returned, cut to the shortest of them, and a warning names the lengths.

    Raises
    ------
    FileNotFoundError
        If the folder holds no run.
    ValueError
        If a file is damaged, all chains are still warming up, or `model` is another model.

    Example
    -------
    >>> from bayesstruct.runs.result import load_checkpoint
    >>> idata = load_checkpoint("runs/depression")  # doctest: +SKIP
    """
    from pymc.model import Model

    folder = Path(path).expanduser()
    if not (folder / "run.json").exists():
        raise FileNotFoundError(errno.ENOENT, "no run.json: not a checkpoint", str(folder))
    run = Run.read(folder)
    model = Model.get_context(error_if_none=False) if model is None else model
    if model is not None:
        refuse_other_model(folder, run, model)
    reached = {chain: recorded_of(folder, chain) for chain in range(run.chains)}
    return to_datatree(folder, run, reached, model=model)
