"""Seconds that `import bayesstruct` takes beyond `import pymc`; the target is 0.3.

Run with `uv run python benchmarks/import_time.py [REPEATS]`. Each repeat is a fresh process; the
minimum counts, since everything else on the machine can only add to it.
"""

import subprocess
import sys

TARGET = 0.3
PROGRAM = """
from time import perf_counter
start = perf_counter()
import pymc
middle = perf_counter()
import bayesstruct
print(middle - start, perf_counter() - middle)
"""


def measure():
    """Return the seconds of both imports in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    )
    return tuple(map(float, done.stdout.split()))


def main():
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    pymc, extra = map(min, zip(*(measure() for _ in range(repeats)), strict=True))
    print(f"import pymc         {pymc:6.3f} s")
    print(f"import bayesstruct  {extra:6.3f} s more (target: below {TARGET} s)")


if __name__ == "__main__":
    main()
