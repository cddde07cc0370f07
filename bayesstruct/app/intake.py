"""From a file to the table of a model: columns, states, logarithms, squares of pairs, values that were set."""

import shlex
import warnings

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.app.folder import InputError
from bayesstruct.app.pairs import label_column, square
from bayesstruct.app.values import is_file, rows_of_file, split_names, written_names
from bayesstruct.data.bundled import load_dataset
from bayesstruct.data.errors import (
    TableError,
    TableWarning,
    column_list,
    count,
    listing,
    raise_problems,
    warn,
)
from bayesstruct.data.names import nearest, reads_as_number
from bayesstruct.data.reading import read_table, word_problems
from bayesstruct.data.remarks import missing_code_remarks, odd_codes
from bayesstruct.data.table import Table
from bayesstruct.models.catalogue import MODELS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

__all__ = [
    "APART",
    "BUNDLED",
    "NUMBERS",
    "SQUARES",
    "STATES",
    "TIMES",
    "apart",
    "check_apart",
    "codes_of",
    "columns_of",
    "is_text",
    "leave_out",
    "names_rows",
    "read_file",
    "refuse_names_of_rows",
    "table_of_model",
    "take_interventions",
]

BUNDLED = "sachs (bundled)"
#: Kinds of tables of which logarithms can be taken, and models whose columns have states.
NUMBERS = ("numbers", "numbers or states", "series", "ratings")
STATES = ("two states", "states", "numbers or states")
#: Options that name columns which are no variables.
APART = ("group", "series", "response", "target", "row_counts", "covariates")
#: Names of columns that say when the values of a row were observed, if they ascend.
TIMES = frozenset("time t date day step year month week hour minute second trial visit".split())
#: Tables of pairs of objects.
SQUARES = ("links", "similarities", "wins")
_NOT_SET = {"", "none", "no", "0", "nan", "-"}


def read_file(table: Path | None, options: dict) -> "pd.DataFrame":
    """Return the columns of a file that were asked for, or the bundled cells.

    Parameters
    ----------
    table : Path, optional
    options : dict
        Of the command: ``model``, ``cov``, ``missing``, ``encoding``, ``columns``, ``drop``, ``states``.

    Raises
    ------
    TableError, InputError
        If the file cannot be read, or there is no such column.
    """
    if table is None:
        frame = load_dataset("sachs")
    else:
        columns = _names_in(table, options) if options["missing"] else []
        codes = codes_of(options["missing"], columns)
        with warnings.catch_warnings():
            if options["cov"] or (options["model"] and MODELS[options["model"]].table in SQUARES):
                # The names of the rows are those of the columns.
                warnings.filterwarnings("ignore", "The first column", TableWarning)
            frame = read_table(table, encoding=options["encoding"], missing_codes=codes)
    frame = _chosen(frame, options["columns"], options["drop"])
    raise_problems(word_problems(frame))
    return _with_states(frame, options["states"], columns_of(options["given"]))


def _names_in(table, options) -> list[str]:
    """Names of the columns of a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        return list(read_table(table, encoding=options["encoding"]).columns)


def codes_of(missing: list[str], columns) -> dict[str, list[str]] | list[str] | None:
    """Return the argument `missing_codes` that is meant by values of --missing: CODE, or COLUMN=CODE."""
    own = [(name, code) for name, _, code in (text.rpartition("=") for text in missing) if name]
    every = [text for text in missing if not text.rpartition("=")[0]]
    if not own:
        return every or None
    codes: dict[str, list[str]] = {name: list(every) for name in columns if every}
    for name, code in own:
        codes.setdefault(name, []).append(code)
    return codes


def _chosen(frame, columns, drop):
    """Return the columns that are named by --columns, without those of --drop."""
    for flag, names in (("--columns", columns), ("--drop", drop)):
        for name in names:
            if name not in frame.columns:
                raise InputError(f"{flag}: {nearest('column', name, map(str, frame.columns))}")
    chosen = list(dict.fromkeys(columns)) or list(frame.columns)
    if columns and (label := label_column(frame)):
        chosen = [label, *(name for name in chosen if name != label)]
    kept = [name for name in chosen if name not in drop]
    if not kept:
        raise InputError("--columns and --drop leave no column: name at least 2")
    return frame[kept]


# ---- states ----------------------------------------------------------------------------------


def columns_of(given: "Sequence[tuple[str, str]]") -> dict[str, list[str]]:
    """Return the columns that are no variables, by the options that name them, as these were written."""
    own = {
        name: split_names(f"--{name}", word) if name == "covariates" else [word]
        for name, word in given
        if name in APART
    }
    set_by = [word for name, word in given if name == "interventions" and not is_file(word)]
    return own | ({"interventions": set_by} if set_by else {})


def _with_states(frame, given, apart_by):
    """Make categories of the columns whose states are written down: COLUMN=low<high, or low<high for all."""
    if not given:
        return frame
    every = [text for text in given if "=" not in text]
    if len(every) > 1:
        raise InputError(
            f"--states is given for all columns {len(every)} times: name the column, as in --states 'size=small<large'"
        )
    variables = [name for name in frame if not any(name in own for own in apart_by.values())]
    stated = {}
    for text in given:
        name, sign, rest = text.rpartition("=")
        if sign and name not in frame.columns:
            raise InputError(f"--states: {nearest('column', name, map(str, frame.columns))}")
        for column in [name] if sign else variables:
            if sign or column not in stated:
                stated[column] = _categories(column, frame[column], rest)
    return frame.assign(**stated)


def _categories(name, column, text):
    """Return a column as categories, ordered by `<` or without an order if there are commas between."""
    import pandas as pd

    ordered = "<" in text
    labels = (
        [label.strip() for label in text.split("<")] if ordered else split_names("--states", text)
    )
    if len(labels) < 2 or not all(labels) or len({*labels}) < len(labels):
        raise InputError(
            f"--states {text!r} for column {name!r} is no list of different states: write them in order, as "
            "low<mid<high, or with commas if they have no order"
        )
    if pd.api.types.is_numeric_dtype(column):
        if words := [label for label in labels if not reads_as_number(label)]:
            raise InputError(
                f"--states: column {name!r} holds numbers, and {listing(words)} is none: write the numbers that are in the file"
            )
        known = [float(label) for label in labels]
        known = [int(label) if label.is_integer() else label for label in known]
        values = column
    else:
        known, values = labels, column.astype("object").map(str, na_action="ignore")
    if others := sorted({str(value) for value in values.dropna() if value not in known}):
        raise InputError(
            f"--states: column {name!r} holds {listing(others)} too: write all of its states, in order"
        )
    return pd.Categorical(values, categories=known, ordered=ordered)


# ---- one table for each kind of model --------------------------------------------------------


def table_of_model(frame: "pd.DataFrame", options: dict) -> "tuple[pd.DataFrame, bool]":
    """Return the table as it goes into the model, and whether logarithms were taken.

    Parameters
    ----------
    frame : DataFrame
        Of `read_file`.
    options : dict
        Of the command; ``model_options`` are those of the model.

    Raises
    ------
    TableError, InputError
        If the model cannot use it.
    """
    kind, own = MODELS[options["model"]].table, options["model_options"]
    if options["cov"] or kind in SQUARES:
        kind = "covariances" if options["cov"] else kind
        part = bool(options["columns"] or options["drop"])
        return square(frame, kind, directed=bool(own.get("directed")), part=part), False
    check_apart(frame, own)
    if kind == "ratings":
        frame = _rows_named(frame)
    if needs_numbers(options):
        _refuse_text(frame, own, options["model"])
    _refuse_identifiers(frame, own)
    if kind == "series":
        _warn_of_order(frame, own.get("series"))
    log = options["log"] if options["log"] is not None else options["source"] == BUNDLED
    return (_logarithms(frame, own) if log else frame), bool(log)


def needs_numbers(options: dict) -> bool:
    """Whether the model has normal columns, so that text cannot be a variable."""
    kind, own = MODELS[options["model"]].table, options["model_options"]
    if kind == "numbers or states":
        return own.get("score", "bge") in ("bge", "gaussian")
    if kind in ("numbers", "ratings", "series"):
        return own.get("marginals", "gaussian") not in ("rank", "mixed")
    return False


def apart(own: dict) -> list[str]:
    """Names of the columns that are no variables by the options of a model."""
    variables = ("covariates", "response", "target")
    found = [own[name] for name in APART if name in own and name not in variables]
    return [*found, *own.get("covariates", [])]


def check_apart(frame: "pd.DataFrame", own: dict) -> None:
    """Refuse options that name a column which is not there.

    Raises
    ------
    InputError
    """
    for name in APART:
        wanted = own.get(name, [])
        for column in [wanted] if isinstance(wanted, str) else wanted:
            if column not in frame.columns:
                flag = f"--{name.replace('_', '-')}"
                raise InputError(f"{flag}: {nearest('column', column, map(str, frame.columns))}")


def is_text(column: "pd.Series") -> bool:
    """Whether a column holds text or categories, not numbers or truth values."""
    import pandas as pd

    return not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column))


def _refuse_text(frame, own, model):
    """Refuse columns of text where the model has numbers."""
    names = [name for name in frame if name not in apart(own) and is_text(frame[name])]
    if not names:
        return
    example = frame[names[0]].dropna()
    shown = f" (for example {str(example.iloc[0])!r:.40})" if len(example) else ""
    marginals = "use --model gaussian_graphical --marginals mixed"
    others = f"; for states, ordered or not, {marginals}"
    if model == "bayesian_network":
        others = f"; for states, add --score bdeu (--score mixed beside numbers), or {marginals}"
    elif model in ("tree", "forest", "latent_tree"):
        beside = " (--score mixed beside numbers)" if model == "tree" else ""
        others = f"; for states, add --score bdeu{beside}"
    elif model in ("linear_sem", "lingam"):
        others = "; for states beside numbers, use --model bayesian_network --score mixed"
    raise TableError(
        f"{column_list(names)} {'holds' if len(names) == 1 else 'hold'} text{shown}, and {model} needs numbers: {leave_out(names)}"
        f"{others if model != 'markov_transitions' else ''}"
    )


def _refuse_identifiers(frame, own):
    """Refuse columns that only name the rows."""
    variables = (name for name in frame if name not in apart(own))
    refuse_names_of_rows([name for name in variables if names_rows(name, frame[name])])


def refuse_names_of_rows(names: list[str]) -> None:
    """Refuse columns, if there are any, that only name the rows.

    Raises
    ------
    TableError
    """
    if names:
        raise TableError(
            f"{column_list(names)} {'names' if len(names) == 1 else 'name'} the rows, with another value in each: {leave_out(names)}"
        )


def leave_out(names: list[str]) -> str:
    """Say how columns are left out."""
    which = "it" if len(names) == 1 else "them"
    return f"leave {which} out with --drop {shlex.quote(written_names(names))}"


def names_rows(name: str, column: "pd.Series") -> bool:
    """Whether a column identifies the rows: text that is different in each, or a number called id that is."""
    seen = column.dropna()
    if len(seen) < 3 or seen.duplicated().any():
        return False
    if is_text(column):
        stated = str(column.dtype) == "category"
        return not stated and not all(reads_as_number(str(value)) for value in seen)
    words = str(name).lower().replace("-", "_").replace(".", "_").split("_")
    return bool("id" in words and (seen == np.floor(seen)).all())


def _warn_of_order(frame, series):
    """Warn if a column that may be the time does not ascend in each series, whose rows are read in the order of the file."""
    for name in frame:
        if str(name).lower() in TIMES and name != series and not is_text(frame[name]):
            parts = frame[name].groupby(frame[series]) if series else [("", frame[name])]
            if not all(part.is_monotonic_increasing for _, part in parts):
                warn(
                    f"Column {name!r}: does not ascend in each series, and rows are read in the order of the file; if it is "
                    f"the time, sort the rows by it and leave it out with --drop {name}"
                )


def _rows_named(frame):
    """Take a first column of different texts as the names of the rows."""
    first = frame.columns[0]
    if is_text(frame[first]) and not frame[first].duplicated().any():
        return frame.set_index(first).rename_axis(None)
    return frame


def _logarithms(frame, own):
    """Return the logarithms of all columns of numbers that are variables."""
    import pandas as pd

    names = [name for name in frame if name not in apart(own)]
    if text := [name for name in names if not pd.api.types.is_numeric_dtype(frame[name])]:
        raise InputError(
            f"--log: {column_list(text)} holds no numbers: leave out --log, or the column"
        )
    if len(names) == len(frame.columns):
        _check_numbers(frame)
    for name in names:
        low = frame[name] <= 0
        if low.any():
            row = int(low.to_numpy().argmax())
            raise TableError(
                f"Column {name!r} holds {frame[name].iloc[row]:g} in row {row} (counting from 0), which has no "
                f"logarithm: leave out --log, shift the column, or name it with --missing {frame[name].iloc[row]:g} if it "
                "stands for a missing value"
            )
    values = [odd_codes(frame[name].to_numpy(float)) for name in names]
    for remark in missing_code_remarks(names, values):  # remarks of the model are on the logarithms
        warn(remark)
    return frame.assign(**{name: np.log(frame[name].astype(float)) for name in names})


def _check_numbers(frame):
    """Refuse a table that is wrong before logarithms are taken."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=TableWarning)
        Table.continuous(frame)


# ---- interventions ---------------------------------------------------------------------------


def take_interventions(frame: "pd.DataFrame", own: dict) -> "pd.DataFrame":
    """Replace the option ``interventions`` by the rows in which each column was set; return the table without its column.

    Parameters
    ----------
    frame : DataFrame
    own : dict
        Options of the model. The option is a column that names the column which was set in each row (empty, or "none", where none
        was), or a file of 0 and 1 with a line for each row.

    Raises
    ------
    InputError
        If a name is not that of a column, or the file is not of this form.
    """
    if "interventions" not in own:
        return frame
    word = own["interventions"]
    if is_file(word):
        own["interventions"] = _rows_of_file(frame, Path(word))
        return frame
    if word not in frame.columns:
        raise InputError(
            f"--interventions: {nearest('column', word, map(str, frame.columns))}. Or give a CSV file of 0 and 1"
        )
    target, rest = frame[word].astype("object").fillna(""), frame.drop(columns=word)
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(target):
        text = str(name).strip()
        if text in rest.columns:
            rows.setdefault(text, []).append(row)
        elif text.lower() not in _NOT_SET:
            raise InputError(
                f"--interventions: row {row} (counting from 0) of column {word!r} names {text!r}, which is no column: "
                "write the name of the column that was set, or none"
            )
    if not rows:
        raise InputError(
            f"--interventions: column {word!r} names no column that was set: leave the option out"
        )
    own["interventions"] = rows
    return rest


def _rows_of_file(frame, path) -> dict[str, list[int]]:
    header, *lines = rows_of_file("--interventions", path) or [[]]
    if len(lines) != len(frame):
        raise InputError(
            f"--interventions: {path} has {count(len(lines), 'row')}, the table {len(frame)}: give a header and one line "
            "for each row"
        )
    for name in header:
        if name not in frame.columns:
            raise InputError(f"--interventions: {nearest('column', name, map(str, frame.columns))}")
    for number, line in enumerate(lines):
        if len(line) != len(header) or not {*line} <= {"0", "1"}:
            raise InputError(
                f"--interventions: row {number} (counting from 0) of {path} holds other values than 0 and 1: write 1 where "
                "a column was set"
            )
    rows = {
        name: [i for i, line in enumerate(lines) if line[j] == "1"] for j, name in enumerate(header)
    }
    return {name: own for name, own in rows.items() if own}
