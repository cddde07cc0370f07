"""Folders that tests read from."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Data sets of the sources, beside the repository; tests that need them are skipped elsewhere.
DATA = ROOT.parent / "shared" / "data"
