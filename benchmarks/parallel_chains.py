"""Wall time of the first `pm.sample` with four chains on two cores over that with one chain.

    uv run python benchmarks/parallel_chains.py [MODEL ...]

Each run is a fresh process with empty caches. Were every worker to compile for itself, four chains would take about
twice as long as one. Processor seconds are those of the process and of its workers together.

Target: 1.2.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

CHAINS = (1, 4)


def child(name, chains):
    """Sample in this process; print wall and CPU seconds as JSON."""
    import pymc as pm

    import bayesstruct as bs

    from bayesstruct.models.examples import example

    table, options = example(name, np.random.default_rng(1))
    start = time.perf_counter()
    with getattr(bs.models, name)(table, **options):
        pm.sample(
            draws=100,
            tune=100,
            chains=chains,
            cores=2,
            nuts_sampler="pymc",
            progressbar=False,
            random_seed=1,
            compute_convergence_checks=False,
        )
    wall = time.perf_counter() - start
    used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps([wall, sum(u.ru_utime + u.ru_stime for u in used)]))


def run(name, chains):
    """Run a fresh process with empty caches."""
    with tempfile.TemporaryDirectory() as caches:
        environment = {
            **os.environ,
            "NUMBA_CACHE_DIR": f"{caches}/numba",
            "PYTENSOR_FLAGS": f"base_compiledir={caches}/pytensor",
            "OPENBLAS_NUM_THREADS": "1",
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, __file__, name, "--chains", str(chains)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=["gaussian_graphical", "ising"])
    parser.add_argument("--chains", type=int)
    options = parser.parse_args()
    if options.chains:
        child(options.models[0], options.chains)
        return
    print(f"{'wall s (CPU s)':26s}", *(f"{c:>4d} chains" for c in CHAINS), "      ratio")
    for name in options.models:
        times = [run(name, chains) for chains in CHAINS]
        cells = [f"{wall:5.1f} ({cpu:4.1f})" for wall, cpu in times]
        print(f"{name:26s}", *cells, f"{times[1][0] / times[0][0]:8.2f}", flush=True)


if __name__ == "__main__":
    main()
