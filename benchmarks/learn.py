"""Wall time of ``bayesstruct learn`` on the bundled table, with empty and with filled caches.

uv run python benchmarks/learn.py       # about two minutes; the target is 60 s with empty caches
"""

import os
import subprocess
import sys
import tempfile
import time


def main():
    """Run the command twice in a fresh cache folder."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "NUMBA_CACHE_DIR": f"{folder}/numba",
            "PYTENSOR_FLAGS": f"base_compiledir={folder}/pytensor",
            "MPLBACKEND": "Agg",
        }
        for label in ("empty", "filled"):
            start = time.perf_counter()
            command = [sys.executable, "-m", "bayesstruct", "learn", "--out", f"{folder}/{label}"]
            subprocess.run(command, env=environment, check=True, capture_output=True)
            print(f"{label} caches: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
