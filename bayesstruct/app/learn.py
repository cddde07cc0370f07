"""`bayesstruct learn`: read a table, draw from the posterior, write the results."""

import contextlib
import re
import secrets
import shlex
import sys
import warnings

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bayesstruct.app import folder as cli_folder
from bayesstruct.app.build import build
from bayesstruct.app.choice import MANY_COLUMNS, choose, prefer_for_many
from bayesstruct.app.digits import same_digits
from bayesstruct.app.folder import InputError, Job
from bayesstruct.app.intake import (
    BUNDLED,
    NUMBERS,
    SQUARES,
    STATES,
    apart,
    read_file,
    table_of_model,
    take_interventions,
)
from bayesstruct.app.values import read_options
from bayesstruct.app.wording import on_the_command_line
from bayesstruct.data.errors import TableError, TableWarning, count, warn
from bayesstruct.data.table import Table
from bayesstruct.models.catalogue import MODELS
from bayesstruct.models.options import OPTIONS

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["begin", "run"]

# matplotlib warns of each character, each time that it draws it.
_MISSING_GLYPH = re.compile(r"Glyph \d+ .*missing from", re.DOTALL)
_GLYPHS = (
    "some characters of the column names are not in the font of graph.png, which shows boxes for "
    "them; they are right in all other files"
)
#: With more columns the p x p matrix of each draw is not stored: it repeats the weights.
MAX_STORED_MATRIX = 100
#: As many numbers as the table, in each draw, of which no table or picture is made.
NOT_STORED = ("latent",)


def begin(folder: Path, table: Path | None, options: dict, *, overwrite: bool) -> "pm.Model | None":
    """Check the table and create the folder of a run.

    Parameters
    ----------
    folder : Path
    table : Path, optional
        By default the bundled data.
    options : dict
        Of the command, by name; ``given`` has the options of the model as they were written.
    overwrite : bool
        Delete an earlier run first.

    Returns
    -------
    Model or None
        Of the run; None if the folder holds the run already.

    Raises
    ------
    TableError, InputError
        With the problem and the remedy in one sentence.
    """
    notes: list[str] = []
    options = {**options, "source": BUNDLED if table is None else str(table)}
    try:
        with _notes_to(notes, options):
            job = _job(table, options)
            if not overwrite:
                cli_folder.refuse_other(folder, job)
            model = _model(job)
    except TableError as error:
        raise TableError(on_the_command_line(str(error), options["model"])) from error
    except (TypeError, ValueError) as error:
        raise InputError(on_the_command_line(str(error), options["model"])) from error
    job.options["notes"] = notes
    for note in notes:
        _say(f"Note: {note}")
    if not cli_folder.prepare(folder, job, overwrite=overwrite):
        _say(f"Note: {folder} holds this run, finished: its draws are used again")
        cli_folder.change(folder, effects=options.get("effects", False))
        return None
    if options["seed"] is None:
        job.options["seed"] = secrets.randbits(31)
    cli_folder.write(folder, job)
    return model


def _job(table: Path | None, options: dict) -> Job:
    """Return settings, which are completed, and table of a run, checked as far as that is possible without its model."""
    frame = None
    if options["model"] is None:
        frame = _choose(table, options)
    own = read_options(options["model"], options["given"])
    if priors := MODELS[options["model"]].priors:
        own = {"prior": priors[0], **own}
    options["model_options"] = own
    _refuse_other_options(options)
    frame = take_interventions(read_file(table, options) if frame is None else frame, own)
    frame, options["log"] = table_of_model(frame, options)
    frame = cli_folder.as_stored(frame)
    if "prior" not in dict(options["given"]) and _has_many_columns(options, own, frame):
        warn(prefer_for_many(frame.shape[1]))
    options |= {"digest": cli_folder.digest(frame), "notes": [], "versions": _versions()}
    return Job(options, frame)


def _has_many_columns(options: dict, own: dict, frame) -> bool:
    """Whether a model that was named draws a large matrix of normal columns with its default prior."""
    plain = not {"marginals", "covariates"} & {*own}
    return options["model"] == "gaussian_graphical" and plain and frame.shape[1] >= MANY_COLUMNS


def _choose(table, options):
    """Choose the plainest model for a table, which is returned, and say so."""
    if options["cov"]:
        options["model"] = "gaussian_graphical"
        return None
    frame = read_file(table, options)
    only = {"bayesian_network"} if options.get("effects", False) else {*MODELS}
    choice = choose(frame, options["given"], only)
    options["model"], options["given"] = choice.model, choice.given
    if table is not None:
        for line in choice.lines(options):
            typer.echo(line)
        for remark in choice.remarks(options["columns"]):
            warn(remark)
    if choice.time:
        options["drop"] = [*options["drop"], choice.time]
        frame = frame.drop(columns=choice.time)
    return frame


def _refuse_other_options(options: dict) -> None:
    """Refuse options of tables that the model does not have."""
    model = options["model"]
    kind, names = MODELS[model].table, {option.name for option in OPTIONS[model]}
    if options.get("effects", False) and model not in ("bayesian_network", "linear_sem", "lingam"):
        raise InputError(
            f"{model} has no --effects, since its lines have no direction: use --model bayesian_network, linear_sem or lingam, or leave it out"
        )
    if options.get("effects", False) and options["cov"]:
        raise InputError(
            "--effects needs the rows of the table, since a matrix of covariances has no means: leave out --effects or --cov"
        )
    if options["log"] and (kind not in NUMBERS or options["cov"]):
        raise InputError(f"{'--cov' if options['cov'] else model} has no --log: leave it out")
    if options["states"] and kind not in STATES and model != "gaussian_graphical":
        raise InputError(f"{model} has no --states, since its columns are not states: leave it out")
    if options["cov"] and "n" not in names:
        owners = [name for name, own in OPTIONS.items() if any(o.name == "n" for o in own)]
        raise InputError(
            f"{model} has no --cov, it needs rows; models that can do with a matrix are {', '.join(owners)}"
        )
    if options["cov"] != ("n" in options["model_options"]):
        one, other = ("--cov", "--n ROWS") if options["cov"] else ("--n", "--cov")
        raise InputError(
            f"{one} needs {other}: a matrix of covariances comes with a number of rows"
        )


def _model(job: Job) -> "pm.Model":
    """Return the model of a run; its errors and warnings are about options of the command line."""
    own = job.options["model_options"]
    if job.options["model"] == "gaussian_graphical" and not (
        job.options["cov"] or {"marginals", "covariates", "row_counts"} & {*own}
    ):
        with warnings.catch_warnings():  # the model has the same warnings
            warnings.simplefilter("ignore", TableWarning)
            Table.continuous(job.frame)  # the same errors as of the model, before PyMC is loaded
    return build(job)


def run(
    folder: Path,
    *,
    model: "pm.Model | None" = None,
    cores: int | None = None,
    show: bool = True,
) -> bool:
    """Draw the remaining draws of a run, and write the results.

    Parameters
    ----------
    folder : Path
        Created by `begin`.
    model : Model, optional
        Of `begin`; by default made from the folder.
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
    with threadpool_limits(limits=1), same_digits(), _notes_to([], job.options, show=True):
        if model is None:
            model = _model(job)
        idata = _sample(job, model, folder, cores, show)
        partial = _shortened(job, idata)
        _write(folder, job, idata, model, partial)
    if partial:
        _say(f"Interrupted; to continue: bayesstruct learn --resume {shlex.quote(str(folder))}")
    return partial


def _sample(job: Job, model, folder: Path, cores, show):
    options = job.options
    settings = {
        "draws": options["draws"],
        "tune": options["tune"],
        "chains": options["chains"],
        "cores": cores,
        "random_seed": options["seed"],
        "progressbar": show,
        "model": model,
    }
    if one_by_one(options):
        return _regressions(folder / cli_folder.RUN, settings)
    from bayesstruct.runs.sample import sample

    names = [v.name for v in model.unobserved_RVs if v.name not in NOT_STORED]
    if job.frame.shape[1] > MAX_STORED_MATRIX and "weight" in names:
        names.remove("precision")
    try:
        return sample(
            checkpoint=folder / cli_folder.RUN,
            var_names=names,
            compute_convergence_checks=False,  # the report has the verdicts
            **settings,
        )
    except ValueError as error:  # a damaged or foreign checkpoint, a folder in use
        raise InputError(str(error)) from error


def one_by_one(options: dict) -> bool:
    """Whether the model of a run is drawn one regression after the other."""
    neighbourhoods = MODELS[options["model"]].family == "neighbourhoods"
    return neighbourhoods and options["model_options"]["prior"] != "horseshoe"


def _regressions(folder: Path, settings: dict):
    """Draw one regression after the other; these runs have no states, and are repeated with their seed if they were stopped."""
    import xarray as xr

    from bayesstruct.neighbourhoods.sampling import sample_neighbourhoods

    path = folder / cli_folder.DRAWS
    if not path.exists():
        idata = sample_neighbourhoods(**settings)
        folder.mkdir(exist_ok=True)
        part = path.with_suffix(".partial")
        idata.to_netcdf(part, engine="h5netcdf")
        part.replace(path)
        return idata
    with xr.open_datatree(path, engine="h5netcdf") as stored:
        return stored.load()


def _shortened(job: Job, idata) -> bool:
    sizes = idata["posterior"].sizes
    return sizes["chain"] * sizes["draw"] < job.options["chains"] * job.options["draws"]


def _write(folder: Path, job: Job, idata, model, partial: bool) -> None:
    from rich.console import Console

    from bayesstruct.app import report

    summary = report.write(folder, job, idata, model, partial=partial)
    Console(highlight=False).print(report.console_table(summary))
    for line in summary.headlines:
        typer.echo(line)
    typer.echo(f"Written to {folder}/: {', '.join(summary.files)}")
    if not summary.converged:
        where = "see report.md, and " if "report.md" in summary.files else ""
        _say(f"Note: not everything has converged; {where}run with more --draws")


def _say_plan(folder: Path, job: Job) -> None:
    options, (n, p) = job.options, job.frame.shape
    logs = ", logarithms" if options["log"] else ""
    prior = options["model_options"].get("prior")
    if options["cov"]:
        size = f"covariances of {p} variables in {options['model_options']['n']:,} rows"
    elif MODELS[options["model"]].table in SQUARES:
        size = f"{MODELS[options['model']].table} of {count(p, 'object')}"
    else:
        size = (
            f"{count(n, 'observation')} x {p - len({*apart(options['model_options'])})} variables"
        )
    typer.echo(
        f"{options['source']}: {size}{logs}; {options['model']}, "
        f"{f'{prior} prior, ' * bool(prior)}{count(options['chains'], 'chain')} of {options['draws']:,} draws, "
        f"seed {options['seed']}. Draws go to {folder}/."
    )


def _say(text: str) -> None:
    typer.echo(text, err=True)


@contextlib.contextmanager
def _notes_to(notes: list[str], options: dict, *, show: bool = False):
    """Collect the warnings about the table; with `show`, print the other warnings of the package."""

    def take(message, *unused, **also_unused):
        text = (
            _GLYPHS
            if _MISSING_GLYPH.match(str(message))
            else on_the_command_line(str(message), options["model"])
        )
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


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    packages = ("bayesstruct", "pymc", "pytensor", "numba", "numpy")
    python = ".".join(map(str, sys.version_info[:3]))
    return {"python": python, **{name: version(name) for name in packages}}
