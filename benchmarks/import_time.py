"""Seconds that imports take: `bayesstruct` after `pymc`, the first model, mathematics without PyMC.

uv run python benchmarks/import_time.py [REPEATS]   # the target of the first is 0.3

Each repeat is a fresh process; the minimum counts, since everything else on the machine can only
add to it.
"""

import subprocess
import sys

TARGET = 0.3
PROGRAM = """
from time import perf_counter
times = [perf_counter()]
for statement in {statements}:
    exec(statement)
    times.append(perf_counter())
print(*(after - before for before, after in zip(times, times[1:])))
"""
WITH_PYMC = ("import pymc", "import bayesstruct", "bayesstruct.models.gaussian_graphical")
WITHOUT_PYMC = ("import numpy, scipy.sparse", "import bayesstruct.solvers, bayesstruct.simulate")


def measure(statements):
    """Return the seconds of each statement in a fresh process."""
    program = PROGRAM.format(statements=statements)
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return tuple(map(float, done.stdout.split()))


def fastest(statements, repeats):
    """Return the least seconds of each statement over some fresh processes."""
    return [*map(min, zip(*(measure(statements) for _ in range(repeats)), strict=True))]


def main():
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    pymc, extra, model = fastest(WITH_PYMC, repeats)
    _, solvers = fastest(WITHOUT_PYMC, repeats)
    print(f"import pymc                     {pymc:6.3f} s")
    print(f"import bayesstruct              {extra:6.3f} s more (target: below {TARGET} s)")
    print(f"the first model is touched      {model:6.3f} s more")
    print(f"solvers and simulators alone    {solvers:6.3f} s beyond NumPy and SciPy")


if __name__ == "__main__":
    main()
