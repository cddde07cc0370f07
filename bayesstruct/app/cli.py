"""The command ``bayesstruct``: from a table on disk to a graph, its uncertainty and a report.

Only what ``--help`` needs is imported here; everything else is imported by the command that uses it.
"""

import shlex
import sys

from pathlib import Path
from typing import Annotated

import typer

from typer.core import TyperCommand, TyperGroup

from bayesstruct.app.folder import InputError
from bayesstruct.app.values import (
    KNOWN,
    check_without_model,
    option_rows,
    read_options,
    split_names,
    unknown,
)
from bayesstruct.models.catalogue import MODELS, TABLES

__all__ = ["app", "main"]

# Typer comes with a click of its own in some versions, and uses the package in others.
ClickException = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
UsageError = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "UsageError")

BAD_INPUT, FAILED, INTERRUPTED = 2, 1, 130
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


class LearnCommand(TyperCommand):
    """The command `learn`, which has the options of the model beside its own."""

    def parse_args(self, ctx, args):
        """Take out the options of models, by name; what is left are those of the command."""
        ctx.ensure_object(dict)
        rest, ctx.obj["given"] = self._split(ctx, list(args))
        return super().parse_args(ctx, rest)

    def _split(self, ctx, words) -> tuple[list[str], list[tuple[str, str]]]:
        """Return the words that are not about options of models, and the options with their words."""
        own = {flag: p for p in self.get_params(ctx) for flag in (*p.opts, *p.secondary_opts)}
        rest: list[str] = []
        given: list[tuple[str, str]] = []
        model = None
        while words:
            word = words.pop(0)
            flag, sign, value = word.partition("=")
            if word == "--" or not word.startswith("--"):
                rest += [word, *words] if word == "--" else [word]
                words = [] if word == "--" else words
                continue
            if flag in own and flag != "--":
                takes = not sign and not getattr(own[flag], "is_flag", False) and flag != "--help"
                if takes and words and words[0].startswith("--"):
                    raise UsageError(f"{flag} needs a value")
                more = [words.pop(0)] if takes and words else []
                rest += [word, *more]
                model = ([value] if sign else more or [None])[-1] if flag == "--model" else model
                continue
            name = flag.removeprefix("--").replace("-", "_")
            if name not in KNOWN or "_" in flag:
                common = (p.removeprefix("--") for p in own if p.startswith("--"))
                raise UsageError(unknown(name, model if model in MODELS else None, common))
            if not sign and (not words or words[0].startswith("--")):
                raise UsageError(f"{flag} needs a value")
            given.append((name, value if sign else words.pop(0)))
        ctx.obj["model"] = model
        return rest, given

    def format_help(self, ctx, formatter):
        """Show the options of the command, and those of the model if one is named."""
        super().format_help(ctx, formatter)
        model = (ctx.obj or {}).get("model")
        if model in MODELS:
            _show_options(model)
        else:
            typer.echo("Each model has options of its own: bayesstruct learn --model NAME --help\n")


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
def models(
    name: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help="Show the options of one.", show_default=False),
    ] = None,
) -> None:
    """List the models, what they are for, and the tables that they take; or the options of one."""
    from rich.console import Console
    from rich.table import Column, Table

    if name is not None:
        _check_model(name)
        typer.echo(f"{name}: {MODELS[name].purpose}.\nTABLE: {TABLES[MODELS[name].table]}.")
        return _show_options(name)
    table = Table(
        Column("model, and its table", no_wrap=True),
        "for",
        title="Models of bayesstruct",
        show_lines=True,
    )
    for model in MODELS.values():
        priors = f"\npriors: {', '.join(model.priors)}" if model.priors else ""
        table.add_row(f"{model.name}\n{model.table}", f"{model.purpose}{priors}")
    Console().print(table)
    typer.echo(
        "Options of one: bayesstruct models NAME. Run it: bayesstruct learn TABLE --model NAME"
    )
    return None


def _show_options(model: str) -> None:
    """Print the options of a model."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    table = Table(
        Column("option", no_wrap=True),
        Column("value", overflow="fold"),
        "meaning",
        title=f"Options of {model}",
        box=None,
    )
    for row in option_rows(model):
        table.add_row(*map(Text, row))
    Console().print(table)


def _check_model(name: str) -> None:
    """End with the nearest name if there is no such model."""
    from bayesstruct.data.names import nearest

    if name not in MODELS:
        _complain(nearest("model", name, MODELS))
        raise typer.Exit(BAD_INPUT)


@app.command("compile")
def compile_models(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL", help="By default all models.", show_default=False),
    ] = None,
    progress: Annotated[bool, typer.Option(help="Show which model is being compiled.")] = True,
) -> None:
    """Compile ahead of time what a first run of each MODEL needs, as for the image of a workshop."""
    names = list(dict.fromkeys(names or MODELS))
    for name in names:
        _check_model(name)
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


@app.command(cls=LearnCommand)
def learn(
    context: typer.Context,
    table: Annotated[
        Path | None,
        typer.Argument(
            help="CSV, TSV or Parquet file with a header, for most models one row for each observation; without "
            "it the 853 cells x 11 proteins of Sachs et al. (2005), which come with the package.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Kind of structure, see `bayesstruct models`; by default the plainest that fits the columns.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path(
        "bayesstruct-results"
    ),
    columns: Annotated[
        str, typer.Option(metavar="A,B,...", help="Use these columns only.", show_default=False)
    ] = "",
    drop: Annotated[
        str, typer.Option(metavar="A,B,...", help="Leave these columns out.", show_default=False)
    ] = "",
    states: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATES",
            help="All states of the columns, in order, such as 'low<mid<high', or 'size=small<large' of one column; with "
            "commas between states without an order. May be given several times.",
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
    log: Annotated[
        bool | None,
        typer.Option(
            "--log/--no-log",
            help="Take logarithms of all columns. By default only of the bundled data.",
            show_default=False,
        ),
    ] = None,
    cov: Annotated[
        bool,
        typer.Option(
            "--cov", help="TABLE is a matrix of covariances or correlations; --n has the rows."
        ),
    ] = False,
    effects: Annotated[
        bool,
        typer.Option(
            "--effects",
            help="Report the effect of setting each column on each other one (bayesian_network, linear_sem, lingam).",
        ),
    ] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of a text table.")] = "utf-8",
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
    """Learn the structure of TABLE and write graph, tables, draws and a report to a folder."""
    running = {"cores": cores, "show": progress}
    if resume is not None:
        if problem := _surplus_options(context):
            _complain(problem)
            raise typer.Exit(BAD_INPUT)
        raise typer.Exit(_learn(None, resume, None, False, running))
    if model is not None:
        _check_model(model)
    if table is None and encoding != "utf-8":
        _complain("--encoding is that of a table: give its file too")
        raise typer.Exit(BAD_INPUT)
    options = {
        "model": model,
        "given": context.obj["given"],
        "draws": draws,
        "tune": tune,
        "chains": chains,
        "seed": seed,
        "log": log,
        "missing": missing or [],
        "states": states or [],
        "encoding": encoding,
        "cov": cov,
        "effects": effects,
    }
    try:
        if model is not None:
            read_options(model, context.obj["given"])
        else:
            check_without_model(context.obj["given"])
        for name, word in (("columns", columns), ("drop", drop)):
            options[name] = split_names(f"--{name}", word) if word else []
    except InputError as error:
        _complain(error)
        raise typer.Exit(BAD_INPUT) from None
    raise typer.Exit(_learn(table, out, options, overwrite, running))


def _learn(table, folder, options, overwrite, running) -> int:
    """Run `learn`, or continue a run if there are no options; returns the exit status."""
    from bayesstruct.data.errors import TableError

    folder = Path(folder).expanduser()
    again = f"continue it with: bayesstruct learn --resume {shlex.quote(str(folder))}"
    try:
        _check_files(table, folder, options is None, overwrite)
        from bayesstruct.app import learn as cli_learn

        model = None
        if options is not None:
            model = cli_learn.begin(folder, table, options, overwrite=overwrite)
        return INTERRUPTED if cli_learn.run(folder, model=model, **running) else 0
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


def _check_files(table, folder, resumed, overwrite) -> None:
    """Refuse files that cannot be used; before heavy packages are loaded."""
    from bayesstruct.app import folder as cli_folder
    from bayesstruct.data.reading import check_file

    if resumed:
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


def _surplus_options(context: typer.Context) -> str | None:
    """Return an error message on options that would change a continued run, or None."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = [
        f"--{name.replace('_', '-')}" if name != "table" else "the table"
        for name, source in sources.items()
        if name not in WITH_RESUME and source is not None and source.name == "COMMANDLINE"
    ]
    given += [f"--{name.replace('_', '-')}" for name, _ in context.obj["given"]]
    if not given:
        return None
    return f"--resume takes table and settings from its folder: leave out {', '.join(given)}"
