"""CPU seconds from a fresh process to the first draws and the first calls of every model.

    uv run python benchmarks/cold_start.py [MODEL or VARIANT ...] [--repeats 3] [--profile]

Each run is a fresh process on one core with caches of its own. "Cold" starts with empty caches of
machine code, "warm" runs the same program again with the caches that the cold one left. `import
pymc` is measured before and not counted. With ``--profile`` the functions whose compilation took
longest are listed for the cold run, with the time that Numba spent in its passes.

Targets: 15 s cold (8 for the Gaussian model), 2 s warm, 3 s for each later first call.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from collections import defaultdict
from pathlib import Path
from time import process_time

import numpy as np

from bayesstruct.models.catalogue import MODELS

#: Options of `gaussian_graphical` that have samplers of their own.
VARIANTS = {
    "laplace": {"prior": "laplace"},
    "horseshoe": {"prior": "horseshoe"},
    "g_wishart": {"prior": "g_wishart"},
    "pseudo_likelihood": {"prior": "pseudo_likelihood"},
    "student": {"marginals": "student"},
    "rank": {"marginals": "rank"},
}
CALLS = ("find_MAP", "prior", "predictive", "log_likelihood")


def child(name, profile):
    """Run one model in this process and print the CPU seconds of each part as JSON."""
    import pymc as pm

    listener = listen() if profile else None
    start = process_time()
    times = {}

    def lap(what):
        nonlocal start
        times[what] = process_time() - start
        start = process_time()

    import bayesstruct as bs

    from bayesstruct.models.examples import example

    model = "gaussian_graphical" if name in VARIANTS else name
    table, options = example(model, np.random.default_rng(1))
    with getattr(bs.models, model)(table, **options, **VARIANTS.get(name, {})):
        lap("model")
        quiet = {"progressbar": False, "random_seed": 1}
        result = pm.sample(draws=20, tune=20, chains=1, cores=1, nuts_sampler="pymc", **quiet)
        lap("draws")
        if listener:
            listener.report("draws")
        calls = {
            "find_MAP": bs.find_MAP,
            "prior": lambda: pm.sample_prior_predictive(20, random_seed=1),
            "predictive": lambda: pm.sample_posterior_predictive(result, **quiet),
            "log_likelihood": lambda: pm.compute_log_likelihood(result, progressbar=False),
        }
        for what in CALLS:
            try:
                calls[what]()
            except Exception as error:
                print(f"{name}: {what}: {type(error).__name__}: {error}", file=sys.stderr)
                start = process_time()
                continue
            lap(what)
            if listener:
                listener.report(what)
    print(json.dumps(times))


def listen():
    """Return a listener that adds up what Numba compiles in this process."""
    from numba.core import event

    class Listener(Profile, event.Listener):
        pass

    listener = Listener()
    for kind in ("numba:compile", "numba:run_pass"):
        event.register(kind, listener)
    return listener


class Profile:
    """Seconds that Numba takes for each function, without those that it compiles on the way."""

    def __init__(self):
        self.stack, self.functions, self.passes = [], defaultdict(list), defaultdict(float)

    def on_start(self, event):
        """Note the start of a compilation or of one of its passes."""
        self.stack.append([process_time(), 0.0, 0.0])

    def on_end(self, event):
        """Count the time since the start, without the functions compiled on the way."""
        began, functions, passes = self.stack.pop()
        took = process_time() - began
        if event.kind == "numba:run_pass":
            self.passes[event.data["name"]] += took - functions - passes
            if self.stack:
                self.stack[-1][1] += functions
                self.stack[-1][2] += took - functions
            return
        code = event.data["dispatcher"].py_func.__code__
        file = Path(code.co_filename)
        self.functions[f"{file.parent.name}/{file.stem}.{code.co_qualname}"].append(
            took - functions
        )
        if self.stack:
            self.stack[-1][1] += took

    def report(self, what, longest=60):
        """Print the dearest functions and passes since the last report."""
        rows = sorted(self.functions.items(), key=lambda row: -sum(row[1]))
        total, number = (
            sum(sum(v) for v in self.functions.values()),
            sum(map(len, self.functions.values())),
        )
        print(f"-- {what}: {number} compilations", f"{total:.1f}", file=sys.stderr)
        for name, seconds in rows[:longest]:
            print(f"{sum(seconds):7.2f} {len(seconds):3d}  {name}", file=sys.stderr)
        groups = defaultdict(float)
        for name, seconds in rows:
            groups[name.rpartition(".<locals>")[0] or name.split("/")[0]] += sum(seconds)
        for name, seconds in sorted(groups.items(), key=lambda row: -row[1])[:longest]:
            print(f"      group {seconds:7.2f}  {name}", file=sys.stderr)
        for name, seconds in sorted(self.passes.items(), key=lambda row: -row[1])[:8]:
            print(f"        pass {seconds:7.2f}  {name}", file=sys.stderr)
        self.functions.clear()
        self.passes.clear()


def run(name, caches, profile=False):
    """Run a model in a fresh process with these caches; return its CPU seconds."""
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": f"{caches}/numba",
        "PYTENSOR_FLAGS": f"base_compiledir={caches}/pytensor",
        "OPENBLAS_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, __file__, name, "--child", *(["--profile"] if profile else [])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-3000:]}")
    if profile:
        print(done.stderr)
    elif ": find_MAP" not in done.stderr and "Error" in done.stderr:
        print(done.stderr[-500:])
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=[])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--child", action="store_true")
    options = parser.parse_args()
    if options.child:
        child(options.models[0], options.profile)
        return
    columns = ("first draw", *CALLS)
    print(f"{'CPU s, cold | warm':28s}", *(f"{c:>15s}" for c in columns), flush=True)
    for name in options.models or (*MODELS, *VARIANTS):
        rows = {"cold": [], "warm": []}
        for _ in range(options.repeats):
            with tempfile.TemporaryDirectory() as caches:
                for kind, measured in rows.items():
                    times = run(name, caches, options.profile and kind == "cold")
                    times["first draw"] = times["model"] + times["draws"]
                    measured.append(times)
        cells = []
        for column in columns:
            pair = [
                statistics.median(r[column] for r in rows[kind])
                if column in rows[kind][0]
                else np.nan
                for kind in rows
            ]
            cells.append(f"{pair[0]:7.1f} |{pair[1]:5.1f}")
        print(f"{name:28s}", *(f"{c:>15s}" for c in cells), flush=True)


if __name__ == "__main__":
    main()
