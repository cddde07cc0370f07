"""`pm.sample` for long runs: draws are written to disk, and an interrupted run continues bit for bit."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
import tempfile

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesstruct.runs.chains import ChainError, Plan
from bayesstruct.runs.checkpoint import (
    Run,
    iteration_of,
    locked,
    prepare_folder,
    recorded_of,
)
from bayesstruct.runs.plan import Request, make_plan
from bayesstruct.runs.report import Report
from bayesstruct.runs.result import check_convergence, load_checkpoint, to_datatree
from bayesstruct.runs.workers import Interrupt, run_here, run_in_workers

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

__all__ = ["sample"]

logger = logging.getLogger(__name__)


def sample(
    draws: int = 1000,
    *,
    tune: int = 1000,
    chains: int | None = None,
    cores: int | None = None,
    random_seed: Any = None,
    step: Any = None,
    initvals: dict | list[dict] | None = None,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float = 1.0,
    var_names: list[str] | None = None,
    compute_convergence_checks: bool = True,
    progressbar: bool | str = True,
    callback: Callable | None = None,
    mp_ctx: Any = None,
    model: pm.Model | None = None,
    **step_options: dict,
) -> xr.DataTree:
    """Draw from the posterior as `pm.sample` does, with draws on disk and a run that can be continued.

    Parameters
    ----------
    draws, tune : int
        Iterations of each chain that are kept, and of its warm-up before them.
    chains : int, optional
        By default 4, or as many as the checkpoint has.
    cores : int, optional
        Worker processes; by default as many as there are processors, at most one for each chain.
        With 1 the chains run in this process. The draws do not depend on it.
    random_seed : int, sequence of int or Generator, optional
        By default a fresh one, or that of the checkpoint.
    step : step method or list of step methods, optional
        For some or all variables; PyMC assigns the others. The sampler is always PyMC's own, so a
        model with continuous variables only is drawn by PyMC's NUTS, started by `jitter+adapt_diag`.
    initvals : dict or list of dict, optional
        Starting values, for all chains or for each; by default those of the model.
    checkpoint : path, optional
        Folder for the run. If it holds an unfinished run of the same model and settings, that run is
        continued; if it holds a finished one, its draws are returned at once. By default the draws
        pass through a temporary folder that is deleted at the end, unless a step method fails.
    checkpoint_every : float
        Seconds between two saved states of a chain. Has no influence on the draws.
    var_names : list of str, optional
        Variables to store. By default all free variables and deterministics.
    compute_convergence_checks : bool
        Log the warnings that `pm.sample` logs.
    progressbar : bool or str
        As in `pm.sample`; False is silent.
    callback : callable, optional
        `callback(trace=, draw=)` after each iteration, as in `pm.sample`; a KeyboardInterrupt that
        it raises ends the run as Ctrl-C does.
    mp_ctx : str or multiprocessing context, optional
        Start method of the workers, by default that of `pm.sample` ("fork" on Linux).
    model : pymc.Model, optional
        By default that of the context.
    **step_options
        Options of assigned step methods by their names, such as `nuts={"target_accept": 0.9}`.

    Returns
    -------
    xarray.DataTree
        Groups `posterior`, `sample_stats`, `observed_data` and `constant_data` as of `pm.sample`.
        Statistics that are not numbers (the `warning` of NUTS) are not stored.

    Raises
    ------
    ValueError
        If the checkpoint belongs to another model or to other settings, is in use, is damaged, or was
        not written by bayesstruct; the message says what differs.
    OSError
        If the disk is full or not writable. Space for all draws is allocated at the start.
    TypeError
        If a step method keeps a state that cannot be written as arrays and JSON.
    pymc.exceptions.SamplingError
        If a step method fails or a worker dies: the message names the chain. The draws before it are kept, in
        the checkpoint or in a temporary folder that the message names; :func:`bayesstruct.load_checkpoint` reads them.
    KeyboardInterrupt
        On Ctrl-C before any chain has left its warm-up, or on a second Ctrl-C. The checkpoint
        remains and can be continued.

    Notes
    -----
    On Ctrl-C every chain finishes its present draw and is saved. Chains may then have different
    lengths; those that make the greatest number of draws are returned, cut to a common length, and a
    warning names the others. All draws stay in the checkpoint.

    After `kill -9`, a crash or a power cut each chain goes back to its newest saved state and
    repeats the draws after it with the same random numbers, so the result is that of an
    uninterrupted run (statistics that measure time excepted). Workers whose parent was killed end
    by themselves within a second. What NUTS draws may differ in its last digits where one process compiled
    PyTensor's machine code and the other loaded it; the setting ``pytensor.config.numba__fastmath = False`` avoids that.

    With the same seed the draws are those of `pm.sample(nuts_sampler="pymc")` called within the context of the
    model, ``with model:``, which is entered here in any case: outside of it PyMC does not tell step methods the model of a
    variable, and some variables are assigned to slower ones.

    Example
    -------
    >>> import pymc as pm
    >>> from bayesstruct.runs.sample import sample
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    >>> idata = sample(2000, checkpoint="runs/mu", model=model)  # doctest: +SKIP
    """
    from pymc.model import modelcontext

    model = modelcontext(model)
    request = Request(draws, tune, chains, random_seed, step, initvals, var_names, step_options)
    request.check(model)
    keep = checkpoint is not None
    # Some step methods need the context of the model to recognise a variable.
    with model, _folder(checkpoint) as folder:
        stored = Run.read(folder) if (folder / "run.json").exists() else None
        if stored is not None:
            request.compare(folder, stored, model)
            if not _pending(folder, stored):
                return load_checkpoint(folder, model)
        plan = make_plan(request, model, folder, stored, keep=keep, every=checkpoint_every)
        with Report(plan, model, callback=callback, progressbar=progressbar) as report:
            reached = _run(plan, report, cores, mp_ctx)
        _refuse_empty(plan, reached)
        tree = to_datatree(folder, plan.run, reached, model=model)
    if compute_convergence_checks:
        check_convergence(tree, model)
    return tree


@contextlib.contextmanager
def _folder(checkpoint) -> Iterator[Path]:
    from pymc.exceptions import SamplingError

    if checkpoint is None:
        name = tempfile.mkdtemp(prefix="bayesstruct-")
        kept = False
        try:
            yield Path(name)
        except SamplingError:
            kept = _has_draws(Path(name))
            raise
        finally:
            if not kept:
                shutil.rmtree(name, ignore_errors=True)
        return
    folder = prepare_folder(checkpoint)
    with locked(folder):
        yield folder


def _has_draws(folder: Path) -> bool:
    """Whether some chain has left its warm-up."""
    if not (folder / "run.json").exists():
        return False
    run = Run.read(folder)
    return any(recorded_of(folder, chain)[0] > run.tune for chain in range(run.chains))


def _pending(folder: Path, run: Run) -> list[int]:
    total = run.tune + run.draws
    return [chain for chain in range(run.chains) if iteration_of(folder, chain)[0] < total]


def _run(plan: Plan, report: Report, cores, mp_ctx) -> dict[int, tuple[int, float]]:
    """Run the unfinished chains; return how far each chain of the run has come.

    BLAS gets one thread, as from `pm.sample`: the matrices are small, chains are the parallel
    work, and a resumed run must not depend on the number of threads.
    """
    from threadpoolctl import threadpool_limits

    chains = _pending(plan.folder, plan.run)
    reached = {k: iteration_of(plan.folder, k) for k in range(plan.run.chains)}
    if any(done for done, _ in reached.values()):
        logger.info("continuing %s at iterations %s", plan.folder, [n for n, _ in reached.values()])
    cores = min(len(chains), cores or _processors())
    try:
        with Interrupt() as interrupt, threadpool_limits(limits=1):
            if cores == 1:
                news = run_here(plan, chains, report, interrupt)
            else:
                context = _context(mp_ctx)
                news = run_in_workers(plan, chains, report, interrupt, cores=cores, context=context)
    except ChainError as failure:
        from pymc.exceptions import SamplingError

        raise SamplingError(_explain(plan, failure)) from failure.error
    return {**reached, **news}


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _context(mp_ctx):
    from pymc.sampling.parallel import _initialize_multiprocessing_context

    if mp_ctx is None and sys.platform == "linux":
        mp_ctx = "fork"  # a spawned worker compiles the model again
    return _initialize_multiprocessing_context(mp_ctx)


def _explain(plan: Plan, failure: ChainError) -> str:
    run, place = plan.run, ""
    if failure.iteration >= 0:
        warmup = failure.iteration < run.tune
        place = (
            f" in warm-up iteration {failure.iteration} of {run.tune}"
            if warmup
            else f" at draw {failure.iteration - run.tune} of {run.draws}"
        )
    where = f"The draws so far are in {str(plan.folder)!r}: load_checkpoint reads them"
    after = "There are no draws yet."
    if plan.keep:
        after = f"{where}, and the same call of sample continues the run once the cause is removed."
    elif _has_draws(plan.folder):
        after = f"{where}; delete the folder when they are no longer needed."
    return f"Chain {failure.chain} failed{place}: {failure.error}. {after}"


def _refuse_empty(plan: Plan, reached) -> None:
    """Raise KeyboardInterrupt if the run was stopped before there was anything to return."""
    most = max(done for done, _ in reached.values())
    if most <= plan.run.tune:
        after = f" The same call continues it from {str(plan.folder)!r}." if plan.keep else ""
        raise KeyboardInterrupt(
            f"stopped at {most} of {plan.run.tune} warm-up iterations: there are no draws yet.{after}"
        )
