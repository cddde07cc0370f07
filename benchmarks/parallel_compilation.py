"""Seconds from empty caches until two processes have what they need, which is not the same.

    uv run python benchmarks/parallel_compilation.py [--repeats 3]

One process fits a column of a LiNGAM, the other estimates a sparse precision matrix: most of both is compilation, of
different functions. They begin at the same time. "a lock each" is the package; "one lock" lets a process compile only
while no other does, as it was before. Waiting is the time in which a process only waits for the other, so that a second core is idle.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np


def lingam():
    from bayesstruct.sem.kernels.fits import family_design, fit_family
    from bayesstruct.sem.kernels.settings import sem_settings

    x = np.random.default_rng(0).laplace(size=(200, 2))
    fit_family(*family_design(x @ [[1, 2], [0, 1]], 1, [0]), sem_settings(2))


def precision():
    import bayesstruct as bs

    x = np.random.default_rng(1).standard_normal((50, 6))
    bs.solvers.clime(np.cov(x.T), 0.1)
    bs.solvers.graphical_lasso(np.cov(x.T), 0.1)


TASKS = {"lingam": lingam, "precision": precision}


def child(task, one_lock):
    """Run a task in this process; print its CPU seconds and those that it has waited."""
    from bayesstruct.core.machine_code import compiling, linking

    waited, wait, open_file = 0.0, compiling._wait, compiling._open

    def timed(file, module):
        nonlocal waited
        began = time.monotonic()
        wait(file, module)
        waited += time.monotonic() - began

    def only_one(name):
        return open_file("all") if len(linking._STATE.functions) == 1 else None

    compiling._wait = timed
    if one_lock:
        compiling._open = only_one
    TASKS[task]()
    print(json.dumps([time.process_time(), waited]))


def run(one_lock):
    """Run both tasks at the same time with fresh caches; return seconds of clock, CPU and waiting."""
    with tempfile.TemporaryDirectory() as caches:
        environment = os.environ | {"NUMBA_CACHE_DIR": caches, "OPENBLAS_NUM_THREADS": "1"}
        began = time.monotonic()
        both = [
            subprocess.Popen(
                [sys.executable, __file__, "--child", task, *["--one-lock"] * one_lock],
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            for task in TASKS
        ]
        results = [json.loads(process.communicate()[0]) for process in both]
        clock = time.monotonic() - began
    cpu, waited = np.sum(results, axis=0)
    return clock, cpu, waited


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child")
    parser.add_argument("--one-lock", action="store_true")
    options = parser.parse_args()
    if options.child:
        child(options.child, options.one_lock)
        return
    print(f"{'median of runs':16s}{'clock s':>10s}{'CPU s':>10s}{'waiting s':>12s}")
    for name, one_lock in (("one lock", True), ("a lock each", False)):
        rows = np.median([run(one_lock) for _ in range(options.repeats)], axis=0)
        print(f"{name:16s}{rows[0]:10.1f}{rows[1]:10.1f}{rows[2]:12.1f}", flush=True)


if __name__ == "__main__":
    main()
