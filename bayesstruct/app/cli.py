"""The command ``bayesstruct``: from a table on disk to a graph, its uncertainty and a report.

Only what ``--help`` needs is imported here; everything else is imported by the command that uses it.
"""

import math
import sys

from pathlib import Path
from typing import Annotated

import typer

from typer.core import TyperGroup

from bayesstruct.models.catalogue import MODELS

__all__ = ["app", "main"]

# Typer comes with a click of its own in some versions, and uses the package in others.
ClickException = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

BAD_INPUT, FAILED, INTERRUPTED = 2, 1, 130
#: Models that `learn` runs, and the priors that they have.
LEARNED = {name: model for name, model in MODELS.items() if model.learn}
PRIORS = tuple(
    dict.fromkeys(
        prior
        for model in LEARNED.values()
        for prior in model.priors
        if prior != "pseudo_likelihood"  # its graphs have no weights, of which reports are made
    )
)
#: Options that may be given with ``--resume``: they do not change the draws.
WITH_RESUME = {"resume", "cores", "progress"}


class OneLineErrors(TyperGroup):
    """A command that writes errors as one line on stderr, without traceback or usage text."""

    def main(self, *args, standalone_mode=True, **extra):
        """Run the command; exit with 2 on bad input, 130 on Ctrl-C."""
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **extra)
        try:
            status = super().main(*args, standalone_mode=False, **extra)
        except ClickException as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # the help is the message
                error.show()
                sys.exit(error.exit_code)
            _complain(error.format_message())
            sys.exit(error.exit_code)
        except typer.Abort:
            _complain("interrupted.")
            sys.exit(INTERRUPTED)
        sys.exit(status if isinstance(status, int) else 0)


app = typer.Typer(
    cls=OneLineErrors,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Bayesian structure learning: which variables are connected, and how sure are we?",
)


def main():
    """Run the command line; the console script and ``python -m bayesstruct`` call this."""
    app(prog_name="bayesstruct")


def _complain(message: object) -> None:
    """Write a message to stderr, on one line."""
    lines = [line.strip().removeprefix("- ").rstrip(".") for line in str(message).splitlines()]
    text = "; ".join(line for line in lines if line).replace(":; ", ": ")
    typer.echo(f"Error: {text}", err=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        from bayesstruct import __version__

        typer.echo(f"bayesstruct {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Options of the whole command."""


@app.command()
def models() -> None:
    """List the models, and which of them `learn` runs."""
    from rich.console import Console
    from rich.table import Column, Table

    table = Table(
        Column("model, and if `learn` runs it", no_wrap=True),
        "for",
        title="Models of bayesstruct",
        show_lines=True,
    )
    for name, model in MODELS.items():
        learned = "yes" if model.learn else "Python only"
        priors = f"\npriors: {', '.join(model.priors)}" if model.priors else ""
        table.add_row(f"{name}\n{learned}", f"{model.purpose}{priors}")
    Console().print(table)


@app.command("compile")
def compile_models(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL", help="By default all models.", show_default=False),
    ] = None,
    progress: Annotated[bool, typer.Option(help="Show which model is being compiled.")] = True,
) -> None:
    """Compile ahead of time what a first run of each MODEL needs, as for the image of a workshop."""
    from bayesstruct.data.names import nearest

    names = list(dict.fromkeys(names or MODELS))
    for name in names:
        if name not in MODELS:
            _complain(nearest("model", name, MODELS))
            raise typer.Exit(BAD_INPUT)
    raise typer.Exit(_compile(names, progress))


def _compile(names: list[str], progress: bool) -> int:
    """Compile models one after the other, whatever becomes of the others; return the exit status."""
    from rich.console import Console

    status = 0
    console = Console(stderr=True, quiet=not progress)
    try:
        with console.status("Loading PyMC"):
            from bayesstruct.app.compile import compile_model, folders, unusable

            problem = unusable()
    except OSError as error:  # PyTensor makes its folder when it is imported
        problem = (
            f"{error.filename} cannot be used as a folder for machine code ({error.strerror}): name another by "
            "PYTENSOR_FLAGS=base_compiledir=FOLDER"
        )
    if problem:
        _complain(problem)
        return BAD_INPUT
    for number, name in enumerate(names, start=1):
        try:
            with console.status(f"Compiling {name} ({number} of {len(names)})"):
                seconds = compile_model(name)
            typer.echo(f"{name:28s}{seconds:6.1f} s")
        except Exception as error:
            _complain(f"{name}: {type(error).__name__}: {error}")
            status = FAILED
    for owner, folder in folders().items():
        typer.echo(f"Machine code of {owner}: {folder}")
    return status


@app.command()
def learn(
    context: typer.Context,
    table: Annotated[
        Path | None,
        typer.Argument(
            help="CSV, TSV or Parquet file, one row for each observation, with a header; without "
            "it the 853 cells x 11 proteins of Sachs et al. (2005), which come with the package.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="Kind of structure; see `bayesstruct models`.")
    ] = "gaussian_graphical",
    prior: Annotated[str, typer.Option(help=f"Prior: {' or '.join(PRIORS)}.")] = "spike_slab",
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path(
        "bayesstruct-results"
    ),
    draws: Annotated[int, typer.Option(min=20, help="Draws of each chain.")] = 1000,
    tune: Annotated[int, typer.Option(min=0, help="Warm-up iterations of each chain.")] = 1000,
    chains: Annotated[int, typer.Option(min=1, help="Independent chains.")] = 4,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Processes; by default all processors.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Makes the draws repeatable; by default a new one, reported."),
    ] = None,
    edge_probability: Annotated[
        float | None,
        typer.Option(
            help="Nominal prior probability of an edge (spike_slab, g_wishart), 0.5 by default."
        ),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Laplace rate of the elements (laplace), 1 by default.")
    ] = None,
    log: Annotated[
        bool | None,
        typer.Option(
            "--log/--no-log",
            help="Take logarithms of all columns. By default only of the bundled data.",
            show_default=False,
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODE",
            help="A value that stands for a missing one, such as -999, or age=99 in one column; may be given several times.",
            show_default=False,
        ),
    ] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of a text table.")] = "utf-8",
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Continue the run in this folder, with its own table and settings.",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete an earlier run in the folder first.")
    ] = False,
    progress: Annotated[bool, typer.Option(help="Show a progress bar.")] = True,
) -> None:
    """Learn the structure of TABLE and write graph, edge table, draws and a report to a folder."""
    options = {
        "model": model,
        "prior": prior,
        "draws": draws,
        "tune": tune,
        "chains": chains,
        "seed": seed,
        "edge_probability": edge_probability,
        "rate": rate,
        "log": log,
        "missing": missing or [],
        "encoding": encoding,
    }
    if table is None and resume is None and encoding != "utf-8":
        _complain("--encoding is that of a table: give its file too")
        raise typer.Exit(BAD_INPUT)
    problem = _wrong_options(options) if resume is None else _surplus_options(context)
    if problem:
        _complain(problem)
        raise typer.Exit(BAD_INPUT)
    raise typer.Exit(
        _learn(table, out, options, resume, overwrite, {"cores": cores, "show": progress})
    )


def _learn(table, out, options, resume, overwrite, running) -> int:
    """Run `learn`; returns the exit status."""
    from bayesstruct.app.folder import InputError
    from bayesstruct.data.errors import TableError

    folder = Path(resume or out).expanduser()
    again = f"continue it with: bayesstruct learn --resume {folder}"
    try:
        _check_files(table, folder, resume, overwrite)
        from bayesstruct.app import learn as cli_learn

        if resume is None:
            cli_learn.begin(folder, table, options, overwrite=overwrite)
        return INTERRUPTED if cli_learn.run(folder, **running) else 0
    except (TableError, InputError) as error:
        _complain(error)
        return BAD_INPUT
    except KeyboardInterrupt as error:
        _complain(f"interrupted{f' ({error})' if str(error) else ''}; {again}")
        return INTERRUPTED
    except Exception as error:
        if not _is_expected(error):
            raise
        _complain(f"{str(error) or type(error).__name__}; saved draws are kept, {again}")
        return FAILED


def _check_files(table, folder, resume, overwrite) -> None:
    """Refuse files that cannot be used; before heavy packages are loaded."""
    from bayesstruct.app import folder as cli_folder
    from bayesstruct.data.reading import check_file

    if resume is not None:
        return cli_folder.check_run(folder)
    cli_folder.check(folder, overwrite=overwrite)
    if table is not None:
        check_file(table)
    return None


def _is_expected(error: Exception) -> bool:
    """Whether an error is one of the machine or of a chain, for which there is a way on."""
    if isinstance(error, OSError | MemoryError):
        return True
    from pymc.exceptions import SamplingError

    return isinstance(error, SamplingError)


def _wrong_options(options: dict) -> str | None:
    """Return an error message on names and numbers, or None; before heavy packages are loaded."""
    from bayesstruct.data.names import nearest

    model, prior = options["model"], options["prior"]
    if model not in MODELS:
        return nearest("model", model, MODELS)
    if model not in LEARNED:
        return (
            f"`bayesstruct learn` does not run the model {model!r}: use bs.models.{model} in Python, "
            f"or one of {', '.join(LEARNED)}"
        )
    known = [name for name in MODELS[model].priors if name in PRIORS]
    if prior not in known and prior in MODELS[model].priors:
        return (
            f"--prior {prior} draws graphs without weights, which the reports of `bayesstruct learn` need: use bs.models.{model} "
            f"in Python, or one of {', '.join(known)}"
        )
    if prior not in known:
        return nearest("prior", prior, known)
    return _wrong_number(
        "--edge-probability", options["edge_probability"], 1, ("spike_slab", "g_wishart"), prior
    ) or (_wrong_number("--rate", options["rate"], math.inf, ("laplace",), prior))


def _wrong_number(
    name: str, value: float | None, below: float, owners: tuple[str, ...], prior: str
):
    """Return an error message on an option of some priors, which must be positive and below a bound."""
    if value is None:
        return None
    if prior not in owners:
        return f"{name} applies to --prior {' or '.join(owners)}, not to {prior}: leave it out"
    if not 0 < value < below:
        return f"{name} must be between 0 and {below:g}, got {value:g}"
    return None


def _surplus_options(context: typer.Context) -> str | None:
    """Return an error message on options that would change a continued run, or None."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = [
        f"--{name.replace('_', '-')}" if name != "table" else "the table"
        for name, source in sources.items()
        if name not in WITH_RESUME and source is not None and source.name == "COMMANDLINE"
    ]
    if not given:
        return None
    return f"--resume takes table and settings from its folder: leave out {', '.join(given)}"
