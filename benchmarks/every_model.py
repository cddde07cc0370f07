"""That every model can be run, killed, continued, read, drawn and checked from the command line alone.

    uv run python benchmarks/every_model.py [MODEL ...] [--out FOLDER]

For each model of the catalogue: its example table is written to a file; `bayesstruct learn` runs it in two chains; the same
run in another folder is killed as soon as it has written draws, continued by `--resume`, and must hold the same draws, bit for
bit; `bs.summary` reads `posterior.nc`, and its picture is saved beside the report. Prints one row for each model, as Markdown,
and ends with status 1 if a cell is empty. The reports stay in the folder, to be looked at.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings

from pathlib import Path

import numpy as np
import pandas as pd

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import xarray as xr

import bayesstruct as bs

from bayesstruct.models.catalogue import MODELS
from bayesstruct.models.examples import example

LEARN = [sys.executable, "-m", "bayesstruct", "learn"]
SHORT = ["--draws", "150", "--tune", "100", "--chains", "2", "--seed", "1", "--no-progress"]
COLUMNS = (
    "model",
    "seconds",
    "report",
    "resume after kill",
    "reading",
    "main figure",
    "predictive check",
)


def written(name: str, folder: Path) -> list[str]:
    """Write the example of a model to a file; return the words that name it and its options."""
    table, options = example(name, np.random.default_rng(0))
    path, words = folder / f"{name}.csv", []
    if name == "markov_transitions":
        parts = [
            pd.DataFrame(a).add_prefix("x").assign(animal=f"a{k}") for k, a in enumerate(table)
        ]
        pd.concat(parts).to_csv(path, index=False)
        return [str(path), "--series", "animal"]
    if isinstance(table, np.ndarray):  # a square table of pairs
        names = [f"o{k}" for k in range(len(table))]
        pd.DataFrame(table, index=names, columns=names).to_csv(path)
        return [str(path)]
    if "group" in options:
        table = table.assign(group=options.pop("group"))
        words = ["--group", "group"]
    if "blocks" in options:
        labels = pd.Series(list(table.columns)).groupby(options.pop("blocks"))
        words = ["--blocks", ";".join(",".join(own) for _, own in labels)]
    for option, value in options.items():
        words += [f"--{option.replace('_', '-')}", str(value)]
    table.to_csv(path, index=False)
    return [str(path), *words]


def learned(name: str, words: list[str], folder: Path) -> float:
    """Run a model to its end; return the seconds."""
    start = time.perf_counter()
    command = [*LEARN, *words, "--model", name, *SHORT, "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return time.perf_counter() - start


def continued(name: str, words: list[str], whole: Path, folder: Path) -> str:
    """Kill the same run once it has draws, continue it, and compare the draws."""
    command = [*LEARN, *words, "--model", name, *SHORT, "--out", str(folder)]
    run = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while run.poll() is None and not any(folder.glob("run/**/*.np*")):
        time.sleep(0.02)
    killed = run.poll() is None
    if killed:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    subprocess.run([*LEARN, "--resume", str(folder)], capture_output=True, check=True)
    one, other = (
        xr.open_datatree(place / "posterior.nc", engine="h5netcdf")["posterior"].to_dataset()
        for place in (whole, folder)
    )
    xr.testing.assert_equal(one, other)
    return "same draws" if killed else "same draws (it ended before)"


def read(folder: Path) -> tuple[str, str]:
    """Read the saved result, and draw its main figure."""
    idata = xr.open_datatree(folder / "posterior.nc", engine="h5netcdf")
    summary = bs.summary(idata)
    ax = summary.plot()
    first = np.ravel(ax)[0]
    first.figure.savefig(folder / "main.png", dpi=80, bbox_inches="tight")
    return f"bs.{summary.reader}: {len(summary.table)} rows", "main.png"


def reported(folder: Path) -> tuple[str, str]:
    """Look for the parts of the report, and for its predictive check."""
    text = (folder / "report.md").read_text(encoding="utf-8")
    parts = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert len(parts) >= 4, parts
    assert "</html>" in (folder / "report.html").read_text(encoding="utf-8")
    check = text.split("**Posterior predictive check.**")
    fit = check[1].strip().split(". ")[0].splitlines()[0] if len(check) > 1 else ""
    return f"{len(text.split()):,} words, html", fit


def row(name: str, out: Path) -> list[str]:
    """One row of the table; a cell that fails has the error."""
    folder, killed = out / name, out / f"{name}-killed"
    words = written(name, out)
    cells = [name]
    try:
        cells.append(f"{learned(name, words, folder):.0f}")
        report, fit = reported(folder)
        cells += [report, continued(name, words, folder, killed), *read(folder), fit]
    except Exception as error:  # the other models are tried all the same
        cells.append(f"FAILS: {type(error).__name__}: {error}".replace("\n", " "))
    shutil.rmtree(killed, ignore_errors=True)
    return cells


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=[*MODELS])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp())
    out.mkdir(parents=True, exist_ok=True)
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    holes = 0
    for name in options.models:
        cells = row(name, out)
        holes += len(cells) < len(COLUMNS) or "" in cells
        print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\nReports: {out}")
    return int(holes > 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    raise SystemExit(main())
