"""Run the chains: one after the other in this process, or several at once in worker processes."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
import time
import traceback

from collections import deque
from collections.abc import Iterator
from multiprocessing import connection
from typing import Any

from bayesstruct.runs.chains import ChainError, Plan, run_chain

__all__ = ["Interrupt", "run_here", "run_in_workers"]

POLL = 0.05  # seconds between two looks at the pipe; a draw may take microseconds
WATCH = 0.5  # seconds between two looks at the parent process
PATIENCE = 5.0  # seconds that a worker gets to leave by itself


class Interrupt:
    """Turn the first Ctrl-C into a request to stop after the present draw; a second one raises.

    Notes
    -----
    In the middle of a step the state of a sampler is neither the old nor the new one and must not
    be saved. Signals reach only the main thread: elsewhere nothing is installed.
    """

    def __init__(self):
        self.requested = False
        self._previous: Any = None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread() and callable(
            signal.getsignal(signal.SIGINT)
        ):
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *exc):
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _handle(self, signum, frame):
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


def run_here(plan: Plan, chains: list[int], report, interrupt: Interrupt) -> dict:
    """Run the chains in this process.

    Returns
    -------
    dict
        Chain -> (iterations, seconds), for the chains that were begun.
    """
    reached = {}
    for chain in chains:
        if interrupt.requested:
            break

        def observe(chain, iteration, stats, point):
            try:
                report.draw(chain, iteration, stats, point)
            except KeyboardInterrupt:
                interrupt.requested = True
                raise

        reached[chain] = run_chain(
            plan, chain, observe=observe, stopping=lambda: interrupt.requested
        )
    return reached


def run_in_workers(
    plan: Plan, chains: list[int], report, interrupt: Interrupt, *, cores: int, context
) -> dict:
    """Run the chains in `cores` worker processes; see `run_here`.

    Raises
    ------
    ChainError
        If a step method failed or a worker died; other exceptions as they are. The other chains have then been stopped after their
        present draw and saved.
    """
    with _workers(plan, min(cores, len(chains)), context, report.wants_points) as pool:
        crew = _Crew(pool, chains, report, interrupt)
        crew.run()
    if crew.failure is not None:
        raise crew.failure
    return crew.reached


class _Crew:
    """The parent's view of its workers: who runs which chain, and what they have said."""

    def __init__(self, pool, chains, report, interrupt):
        self.pool = pool  # connection -> process
        self.waiting = deque(chains)
        self.busy: dict[Any, int] = {}  # connection -> chain
        self.report, self.interrupt = report, interrupt
        self.reached: dict[int, tuple[int, float]] = {}
        self.failure: BaseException | None = None
        self.stopped = False

    def run(self):
        for conn in self.pool:
            self.assign(conn)
        while self.busy:
            for conn in connection.wait(list(self.busy), timeout=0.2):
                self.receive(conn)
            if (self.interrupt.requested or self.failure) and not self.stopped:
                self.stop()

    def assign(self, conn):
        self.busy.pop(conn, None)
        if self.waiting and not self.stopped:
            chain = self.waiting.popleft()
            self.busy[conn] = chain
            _send(conn, ("run", chain))

    def stop(self):
        self.stopped = True
        for conn in self.busy:
            _send(conn, ("stop", None))

    def receive(self, conn):
        try:
            kind, *content = conn.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            self.lost(conn)
            return
        if kind == "draw":
            self.observe(*content)
        elif kind == "done":
            self.reached[self.busy[conn]] = content[0]
            self.assign(conn)
        elif kind == "error":
            self.fail(ChainError(self.busy.pop(conn), *content))
        else:
            self.busy.pop(conn)
            self.fail(*content)

    def observe(self, *draw):
        if self.stopped:
            return
        try:
            self.report.draw(*draw)
        except KeyboardInterrupt:
            self.interrupt.requested = True
        except Exception as error:  # of the user's callback: let the workers save, then raise it
            self.fail(error)

    def lost(self, conn):
        process = self.pool[conn]
        process.join(PATIENCE)
        error = RuntimeError(
            f"its worker process died (exit code {process.exitcode}); -9 is usually the system "
            "running out of memory"
        )
        self.fail(ChainError(self.busy.pop(conn), -1, error))

    def fail(self, error):
        self.failure = self.failure or error


def _send(conn, message):
    with contextlib.suppress(OSError):  # a dead worker is noticed when its pipe is read
        conn.send(message)


@contextlib.contextmanager
def _workers(plan, count, context, wants_points) -> Iterator[dict]:
    forked = context.get_start_method() == "fork"
    pool = {}
    try:
        payload: Any = plan
        if not forked:
            import cloudpickle

            payload = cloudpickle.dumps(plan)
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_work, args=(payload, theirs, os.getpid(), wants_points), daemon=True
            )
            process.start()
            theirs.close()  # so that the end of the worker is the end of the pipe
            pool[ours] = process
        yield pool
    finally:
        _dismiss(pool)


def _dismiss(pool):
    for conn in pool:
        _send(conn, ("quit", None))
    deadline = time.monotonic() + PATIENCE
    for conn, process in pool.items():
        process.join(max(0.0, deadline - time.monotonic()))
        if process.is_alive():
            process.terminate()
            process.join(PATIENCE)
        conn.close()


# ---- in the worker ---------------------------------------------------------------------------


def _work(payload, conn, parent: int, wants_points: bool) -> None:
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole group: the parent decides
    _die_with(parent, forked=isinstance(payload, Plan))
    try:
        with contextlib.ExitStack() as stack:
            plan = payload if isinstance(payload, Plan) else _unpack(payload, stack)
            _serve(plan, _Line(conn, plan, wants_points))
    except (EOFError, BrokenPipeError):
        pass  # the parent has gone
    finally:
        conn.close()


def _unpack(payload: bytes, stack) -> Plan:
    import cloudpickle

    from threadpoolctl import threadpool_limits

    plan = cloudpickle.loads(payload)
    stack.enter_context(threadpool_limits(limits=1))  # as pm.sample does; not safe after a fork
    return plan


def _serve(plan, line):
    while True:
        kind, chain = line.conn.recv()
        if kind == "quit":
            return
        if kind == "stop":  # crossed with our "done"
            continue
        try:
            result = run_chain(plan, chain, observe=line.observe, stopping=line.stopping)
        except ChainError as failure:
            line.conn.send(("error", failure.iteration, _portable(failure.error)))
        except (EOFError, BrokenPipeError):
            raise  # the parent has gone, or has no more use for us
        except Exception as error:
            line.conn.send(("raise", _portable(error)))
        else:
            line.flush()
            line.conn.send(("done", result))


class _Line:
    """The worker's end of the pipe: reports now and then, and looks for a request to stop."""

    def __init__(self, conn, plan, wants_points):
        self.conn, self.wants_points = conn, wants_points
        self.numeric = [set(names) for names in plan.run.stats]
        self.next_report = self.next_look = 0.0
        self.pending = None

    def observe(self, chain, iteration, stats, point):
        self.pending = (chain, iteration, stats, point if self.wants_points else None)
        now = time.monotonic()
        if self.wants_points or now >= self.next_report:
            self.next_report = now + 2 * POLL
            self.flush()

    def flush(self):
        if self.pending is None:
            return
        chain, iteration, stats, point = self.pending
        # Warnings carry states of the sampler, which need not travel.
        plain = [
            {k: v for k, v in s.items() if k in names}
            for s, names in zip(stats, self.numeric, strict=True)
        ]
        self.conn.send(("draw", chain, iteration, plain, point))
        self.pending = None

    def stopping(self):
        now = time.monotonic()
        if now < self.next_look:
            return False
        self.next_look = now + POLL
        if not self.conn.poll():
            return False
        if self.conn.recv()[0] == "quit":
            raise EOFError
        return True


def _portable(error: BaseException) -> BaseException:
    """Make an exception that survives the pipe, with its traceback as a note."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"In the worker process:\n{text}")
    return error


def _die_with(parent: int, *, forked: bool) -> None:
    """End this process when the parent is gone: nobody would read its draws or stop it."""
    if forked and sys.platform == "linux":
        with contextlib.suppress(Exception):
            import ctypes

            # The kernel does it at once, even in the middle of a long compiled loop that holds
            # the interpreter's lock and so keeps the thread below from looking.
            ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))  # PR_SET_PDEATHSIG
    if forked and os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    import multiprocessing

    process = multiprocessing.parent_process()
    while os.getppid() == parent and (process is None or process.is_alive()):
        time.sleep(WATCH)
    os._exit(1)
