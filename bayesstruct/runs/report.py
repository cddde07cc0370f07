"""Progress bar and callback of a run, driven by the process that started it."""

from __future__ import annotations

import logging
import time

from typing import Any

from bayesstruct.runs.chains import Plan
from bayesstruct.runs.checkpoint import ChainStore

__all__ = ["Report"]

logger = logging.getLogger(__name__)

REFRESH = 0.1  # seconds between two updates of a bar


class Report:
    """Progress bar (PyMC's own) and callback of one run.

    Parameters
    ----------
    plan : Plan
    model : pymc.Model
    callback : callable, optional
        `callback(trace=, draw=)` as in `pm.sample`; the trace holds the draws after warm-up.
    progressbar : bool or str
        As in `pm.sample`.
    """

    def __init__(self, plan: Plan, model, *, callback=None, progressbar=True):
        self.plan, self.model, self.callback = plan, model, callback
        self.bar = _Bar(plan, progressbar) if progressbar else None
        self._traces: dict[int, Any] = {}

    @property
    def wants_points(self) -> bool:
        """Whether every single draw has to be reported."""
        return self.callback is not None

    def __enter__(self):
        if self.bar is not None:
            self.bar.manager.__enter__()
        return self

    def __exit__(self, *exc):
        if self.bar is not None:
            self.bar.manager.__exit__(*exc)

    def draw(self, chain: int, iteration: int, stats: list[dict], point: dict | None) -> None:
        """Report that a chain has finished an iteration."""
        if self.bar is not None:
            self.bar.show(chain, iteration, stats)
        if self.callback is not None:
            self._call(chain, iteration, stats, point)

    def _call(self, chain, iteration, stats, point):
        from pymc.sampling.parallel import Draw

        run = self.plan.run
        if chain not in self._traces:
            store = ChainStore(self.plan.folder, run, chain, mode="live")
            self._traces[chain] = store.trace(self.model, 0)
        trace = self._traces[chain]
        trace.draw_idx = max(0, iteration + 1 - run.tune)
        last = iteration + 1 == run.tune + run.draws
        draw = Draw(chain, last, iteration, iteration < run.tune, stats, point)
        self.callback(trace=trace, draw=draw)


class _Bar:
    """Drive PyMC's progress bars by several iterations at a time."""

    def __init__(self, plan, progressbar):
        from pymc.progress_bar import MCMCProgressBarManager

        run = plan.run
        self.tune, self.total, self.chains = run.tune, run.tune + run.draws, run.chains
        self.manager = MCMCProgressBarManager(
            step_method=plan.step,
            chains=run.chains,
            draws=run.draws,
            tune=run.tune,
            progressbar=progressbar,
        )
        self.done = [0] * run.chains
        self.next = [0.0] * run.chains
        self.broken = False

    def show(self, chain, iteration, stats):
        now, done = time.monotonic(), iteration + 1
        if self.broken or (now < self.next[chain] and done < self.total):
            return
        self.next[chain] = now + REFRESH
        advance, self.done[chain] = done - self.done[chain], done
        try:
            self._update(chain, advance, stats)
        except Exception:
            self.broken = True  # the bar uses internals of PyMC; a run must not end because of it
            logger.debug("the progress bar has failed", exc_info=True)

    def _update(self, chain, advance, stats):
        combined = self.manager.combined_progress
        done = sum(self.done) if combined else self.done[chain]
        warmup = self.tune * (self.chains if combined else 1)
        failing, fields = self.manager._extract_stats(stats)
        fields["draw"] = done if done <= warmup else done - warmup
        self.manager._backend.update(
            task_id=0 if combined else chain,
            advance=advance,
            failing=failing,
            stats=fields,
            is_last=done == self.manager.total_draws,
            total=self.manager.total_draws,
        )
