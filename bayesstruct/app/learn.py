"""`bayesstruct learn`: read a table, draw from the posterior, write the results."""

import ast
import contextlib
import re
import secrets
import shlex
import sys
import warnings

from pathlib import Path

import numpy as np
import typer

from bayesstruct.app import folder as cli_folder
from bayesstruct.app.folder import InputError, Job
from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.bundled import load_dataset
from bayesstruct.data.errors import TableError, TableWarning, count, raise_problems, warn
from bayesstruct.data.reading import read_table, word_problems
from bayesstruct.data.remarks import missing_code_remarks, odd_codes
from bayesstruct.data.table import Table

__all__ = ["begin", "run"]

BUNDLED = "sachs (bundled)"
# matplotlib warns of each character, each time that it draws it.
_MISSING_GLYPH = re.compile(r"Glyph \d+ .*missing from", re.DOTALL)
_CODES = re.compile(r"missing_codes=(\{.*\})")
_GLYPHS = (
    "some characters of the column names are not in the font of graph.png, which shows boxes for "
    "them; they are right in all other files"
)
#: With more columns the p x p matrix of each draw is not stored: it repeats the weights.
MAX_STORED_MATRIX = 100


def begin(folder: Path, table: Path | None, options: dict, *, overwrite: bool) -> None:
    """Check the table and create the folder of a run.

    Parameters
    ----------
    folder : Path
    table : Path, optional
        By default the bundled data.
    options : dict
        Of the command, by name.
    overwrite : bool
        Delete an earlier run first.

    Raises
    ------
    TableError, InputError
        With the problem and the remedy in one sentence.
    """
    notes: list[str] = []
    with _notes_to(notes):
        frame, logged = _read(table, options)
    source = BUNDLED if table is None else str(table)
    job = Job(
        {
            **options,
            "log": logged,
            "source": source,
            "digest": cli_folder.digest(frame),
            "notes": notes,
            "versions": _versions(),
        },
        frame,
    )
    for note in notes:
        _say(f"Note: {note}")
    if not cli_folder.prepare(folder, job, overwrite=overwrite):
        _say(f"Note: {folder} holds this run, finished: its draws are used again")
        return
    if options["seed"] is None:
        job.options["seed"] = secrets.randbits(31)
    cli_folder.write(folder, job)


def run(folder: Path, *, cores: int | None = None, show: bool = True) -> bool:
    """Draw the remaining draws of a run, and write the results.

    Parameters
    ----------
    folder : Path
        Created by `begin`.
    cores : int, optional
        Worker processes.
    show : bool
        Progress bar.

    Returns
    -------
    bool
        Whether the run was interrupted before its end. Results of the draws so far are written.
    """
    from threadpoolctl import threadpool_limits

    job = cli_folder.read(folder)
    _say_plan(folder, job)
    # Matrices of a few hundred rows gain nothing from BLAS threads, which fight with the workers.
    with threadpool_limits(limits=1), _notes_to([], show=True):
        idata = _sample(job, folder, cores, show)
        partial = _shortened(job, idata)
        _write(folder, job, idata, partial)
    if partial:
        _say(f"Interrupted; to continue: bayesstruct learn --resume {folder}")
    return partial


def _read(table, options):
    """Return the checked table as it goes into the model, and whether logarithms were taken."""
    log = options["log"]
    if table is None:
        frame, log = load_dataset("sachs"), log is not False
    else:
        columns = _columns(table, options) if options["missing"] else []
        codes = _codes(options["missing"], columns)
        frame = read_table(table, encoding=options["encoding"], missing_codes=codes)
        raise_problems(word_problems(frame))
    import pandas as pd  # after the errors that are found without it

    if log:  # remarks are about the logarithms, except those on codes for missing values
        frame = _logarithms(frame)
    checked = Table.continuous(frame)
    return pd.DataFrame(checked.values, columns=list(checked.names)), bool(log)


def _columns(table, options) -> list[str]:
    """Names of the columns of a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        return list(read_table(table, encoding=options["encoding"]).columns)


def _codes(missing, columns):
    """Return the option `missing_codes` that is meant by values of --missing: CODE, or COLUMN=CODE."""
    own = [(name, code) for name, _, code in (text.rpartition("=") for text in missing) if name]
    every = [text for text in missing if not text.rpartition("=")[0]]
    if not own:
        return every or None
    codes: dict[str, list[str]] = {name: list(every) for name in columns if every}
    for name, code in own:
        codes.setdefault(name, []).append(code)
    return codes


def _logarithms(frame):
    """Return the logarithms of all columns."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=TableWarning)
        table = Table.continuous(frame)
    for name, column in zip(table.names, table.values.T, strict=True):
        if (column <= 0).any():
            row = int((column <= 0).argmax())
            raise TableError(
                f"Column {name!r} holds {column[row]:g} in row {row} (counting from 0), which has no "
                f"logarithm: leave out --log, shift the column, or name it with --missing {column[row]:g} if it "
                "stands for a missing value"
            )
    for remark in missing_code_remarks([*table.names], [odd_codes(v) for v in table.values.T]):
        warn(remark)
    return pd.DataFrame(np.log(table.values), columns=list(table.names))


def _sample(job: Job, folder: Path, cores, show):
    from bayesstruct import models
    from bayesstruct.runs.sample import sample

    options = job.options
    chosen = {k: options[k] for k in ("edge_probability", "rate") if options[k] is not None}
    build = getattr(models, options["model"])
    model = build(job.frame, prior=options["prior"], **chosen)
    with model:
        # Of the file; in the frame these values are missing.
        record_codes(_codes(options.get("missing", []), job.frame.columns))
    names = [v.name for v in model.unobserved_RVs]
    if job.frame.shape[1] > MAX_STORED_MATRIX:
        names.remove("precision")
    try:
        return sample(
            options["draws"],
            tune=options["tune"],
            chains=options["chains"],
            cores=cores,
            random_seed=options["seed"],
            checkpoint=folder / cli_folder.RUN,
            var_names=names,
            compute_convergence_checks=False,  # the report has the verdicts
            progressbar=show,
            model=model,
        )
    except ValueError as error:  # a damaged or foreign checkpoint, a folder in use
        raise InputError(str(error)) from error


def _shortened(job: Job, idata) -> bool:
    sizes = idata["posterior"].sizes
    return sizes["chain"] * sizes["draw"] < job.options["chains"] * job.options["draws"]


def _write(folder: Path, job: Job, idata, partial: bool) -> None:
    from rich.console import Console

    from bayesstruct.app import report

    summary = report.write(folder, job, idata, partial=partial)
    Console(highlight=False).print(report.console_table(summary))
    for line in summary.headlines:
        typer.echo(line)
    typer.echo(f"Written to {folder}/: {', '.join(summary.files)}")
    if not summary.converged:
        _say("Note: not everything has converged; see report.md, and run with more --draws")


def _say_plan(folder: Path, job: Job) -> None:
    options, (n, p) = job.options, job.frame.shape
    logs = ", logarithms" if options["log"] else ""
    typer.echo(
        f"{options['source']}: {count(n, 'observation')} x {p} variables{logs}; {options['model']}, "
        f"{options['prior']} prior, {count(options['chains'], 'chain')} of {options['draws']:,} draws, "
        f"seed {options['seed']}. Draws go to {folder}/."
    )


def _say(text: str) -> None:
    typer.echo(text, err=True)


@contextlib.contextmanager
def _notes_to(notes: list[str], *, show: bool = False):
    """Collect the warnings about the table; with `show`, print the other warnings of the package."""

    def take(message, *unused, **also_unused):
        text = _GLYPHS if _MISSING_GLYPH.match(str(message)) else _as_option(str(message))
        if text in notes:
            return
        notes.append(text)
        if show:
            _say(f"Note: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if show:  # remarks on the table were shown when it was read
            warnings.filterwarnings("always", category=UserWarning, module=r"bayesstruct\b")
            warnings.filterwarnings("ignore", category=TableWarning)
        else:
            warnings.filterwarnings("always", category=TableWarning)
        warnings.showwarning = take
        yield


def _as_option(text: str) -> str:
    """Write the remedy of a remark as on the command line."""
    found = _CODES.search(text)
    if not found:
        return text
    try:
        codes = ast.literal_eval(found[1].replace(", ...", ""))
    except (SyntaxError, ValueError):  # a remark of another form
        return text
    options = [f"{name}={code}" for name, own in codes.items() for code in np.atleast_1d(own)]
    return text.replace(found[0], " ".join(f"--missing {shlex.quote(o)}" for o in options))


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    packages = ("bayesstruct", "pymc", "pytensor", "numba", "numpy")
    python = ".".join(map(str, sys.version_info[:3]))
    return {"python": python, **{name: version(name) for name in packages}}
