"""One chain: PyMC's step method in a loop that writes its draws and can be continued."""

from __future__ import annotations

import time

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bayesstruct.runs.checkpoint import ChainStore, Run
from bayesstruct.runs.state import decode

__all__ = ["ChainError", "Plan", "run_chain"]

# The next checkpoint waits this many times as long as the last one took: at most 5% of the time.
CHECKPOINT_SHARE = 20


@dataclass
class Plan:
    """Data that all chains of a run share; passed to the worker processes.

    Attributes
    ----------
    step : BlockedStep or CompoundStep
        PyMC step method, shared by the chains that run in the same process.
    initial : tuple
        Its state before the first chain, as of `snapshot`.
    points, generators : list
        Starting point and state of the random generator of each chain.
    value_names : list of str
        Order in which `project` takes the values of a point.
    project : callable
        Values of the free variables -> values of the stored variables.
    folder, run
        Folder of the draws, and settings of the run.
    keep : bool
        Write states, to resume from. False for a temporary folder.
    every : float
        Seconds between two checkpoints.
    """

    step: Any
    initial: tuple
    points: list[dict[str, np.ndarray]]
    generators: list[Any]
    value_names: list[str]
    project: Callable
    folder: Path
    run: Run
    keep: bool
    every: float


class ChainError(Exception):
    """A step method raised; the original exception is the cause."""

    def __init__(self, chain: int, iteration: int, error: BaseException):
        super().__init__(chain, iteration, error)
        self.chain, self.iteration, self.error = chain, iteration, error


def snapshot(step) -> tuple:
    """Return the state of a step method: (its sampling state, plain numbers among its attributes).

    Notes
    -----
    PyMC's state classes leave out some counters (`NUTS.divergences`, which is reported as a
    statistic), so the plain numbers among the attributes of each step are kept as well.
    """
    from pymc.step_methods.compound import flatten_steps

    counters = [
        {k: v for k, v in vars(s).items() if isinstance(v, bool | int | float | np.number)}
        for s in flatten_steps(step)
    ]
    return step.sampling_state, counters


def restore(step, saved: tuple) -> None:
    """Put a step method into a state returned by `snapshot`."""
    from pymc.step_methods.compound import flatten_steps

    state, counters = saved
    step.sampling_state = state
    for part, numbers in zip(flatten_steps(step), counters, strict=True):
        for name in numbers.keys() & vars(part).keys():
            setattr(part, name, numbers[name])


def run_chain(
    plan: Plan,
    chain: int,
    *,
    observe: Callable[[int, int, list, dict], None],
    stopping: Callable[[], bool],
) -> tuple[int, float]:
    """Run one chain to its end, or until `stopping()` is true after a draw.

    Parameters
    ----------
    plan : Plan
    chain : int
    observe : callable
        Called with (chain, iteration, statistics, point) after each iteration. A KeyboardInterrupt
        that it raises stops the chain cleanly.
    stopping : callable

    Returns
    -------
    iterations : int
        Done so far, warm-up included.
    seconds : float
        Spent on them.

    Raises
    ------
    ChainError
        If the step method raises. The draws before it are kept, and the last checkpoint stands.
    """
    store = ChainStore(plan.folder, plan.run, chain, mode="write")
    store.begin()
    clock = _Clock(plan)
    first, point = _begin(plan, chain, store, clock)
    tune, done = plan.run.tune, first
    total = tune + plan.run.draws
    while done < total:
        if done == tune:
            plan.step.stop_tuning()
        try:
            point, stats = _one_step(plan, chain, done, point)
        except ChainError:
            store.keep(done, clock.seconds())
            raise
        if done >= tune:
            store.record(done - tune, _project(plan, point), stats)
        done += 1
        if _interrupted(observe, chain, done - 1, stats, point) or stopping():
            break
        if clock.due():
            _commit(plan, store, clock, done, point)
    if done > first:
        _commit(plan, store, clock, done, point)
    return done, clock.seconds()


def _one_step(plan, chain, iteration, point):
    try:
        return plan.step.step(point)
    except Exception as error:
        raise ChainError(chain, iteration, error) from error


def _project(plan, point):
    return plan.project(*(point[name] for name in plan.value_names))


def _interrupted(observe, *args) -> bool:
    try:
        observe(*args)
    except KeyboardInterrupt:
        return True
    return False


def _begin(plan: Plan, chain: int, store: ChainStore, clock: _Clock):
    """Set the step method up for a chain as `pm.sample` does; return (iteration, point)."""
    from pymc.util import random_generator_from_state

    step, run = plan.step, plan.run
    restore(step, plan.initial)
    step.setup_chain(random_generator_from_state(plan.generators[chain]), run.tune, run.draws)
    step.tune = bool(run.tune)
    if hasattr(step, "reset_tuning"):
        step.reset_tuning()
    if hasattr(step, "iter_count"):
        step.iter_count = 0
    point = plan.points[chain]
    latest = store.latest()
    if latest is None:
        return 0, point

    header, tree, arrays = latest
    clock.before = header["seconds"]
    if header["iteration"] > run.tune:
        step.stop_tuning()
    saved = decode(tree, arrays, like=(point, snapshot(step)))
    restore(step, saved[1])
    return header["iteration"], saved[0]


def _commit(plan, store, clock, done, point):
    started = time.monotonic()
    value = (point, snapshot(plan.step)) if plan.keep else None
    header = {"iteration": done, "seconds": clock.seconds()}
    store.commit(header, value, durable=plan.keep)
    clock.wait(time.monotonic() - started)


class _Clock:
    """Tells when the next checkpoint is due, and how long the chain has been running."""

    def __init__(self, plan: Plan):
        self.every = plan.every if plan.keep else float("inf")
        self.before = 0.0
        self.started = time.monotonic()
        self.next = self.started + self.every

    def due(self) -> bool:
        return time.monotonic() >= self.next

    def wait(self, cost: float) -> None:
        pause = max(self.every, CHECKPOINT_SHARE * cost) if self.every else 0.0
        self.next = time.monotonic() + pause

    def seconds(self) -> float:
        return self.before + time.monotonic() - self.started
