"""Read a table from a file, for the command line."""

import csv
import difflib
import gzip
import io
import re
import shlex

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesstruct.data.errors import TableError, column_list, count, listing, warn
from bayesstruct.data.names import reads_as_number
from bayesstruct.data.recoding import plain_codes, without_codes

if TYPE_CHECKING:
    import pandas

__all__ = ["check_file", "read_table", "word_problems"]

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
_PARQUET = (".parquet", ".pq")
_FOREIGN = (
    ".xlsx",
    ".xls",
    ".ods",
    ".sav",
    ".dta",
    ".rds",
    ".rdata",
    ".feather",
    ".h5",
    ".nc",
    ".json",
)
#: First line by which a file tells Excel its delimiter.
_EXCEL = re.compile(r'"?sep=.?"?[ ]*(?=[\r\n])', re.IGNORECASE)
#: A number of which the thousands may be set off, one that must be so, and whole numbers below a thousand.
_ONE_GROUP = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
_GROUPS = re.compile(
    r"[+-]?[1-9]\d{0,2}(([.,' ]\d{3}){2,}|[.]\d{3},\d+|,\d{3}[.]\d+|[' ]\d{3}([.,]\d+)?)"
)
_BELOW_THOUSAND = re.compile(r"[+-]?[1-9]\d{0,2}")
_CODE_LIKE = re.compile(r"-?[789]+|-1")
_DATE = re.compile(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}")
_FEW_WORDS = 5  # in a column of numbers
_INDEX_NAMES = ("", "unnamed: 0", "index", "id", "rownames", "row", "...1")


def read_table(
    path: str | Path, *, encoding: str = "utf-8", missing_codes: Any = None
) -> "pandas.DataFrame":
    r"""Read a table from a CSV, TSV or Parquet file.

    Parameters
    ----------
    path : str or Path
        Parquet if it ends in ``.parquet`` or ``.pq``, otherwise text with one header line and
        fields separated by comma, semicolon or tab (found out from the file); text may be
        compressed by gzip. Between semicolons or tabs numbers may have a decimal comma. Empty
        fields, ``NA``, ``NaN`` and everything else that pandas reads as missing are missing. Empty
        lines and columns at the end, as Excel writes them, are left out, as is its line ``sep=;``.
    encoding : str, default "utf-8"
        Encoding of a text file.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each
        column. Columns of numbers with a code that is text are columns of numbers.

    Returns
    -------
    pandas.DataFrame
        Not yet checked: see `Table.continuous`.

    Raises
    ------
    TableError
        If the file does not exist (with near names of its folder), is a folder, is empty, has a
        header only, is in another encoding, has lines of unequal length, begins with a title, has repeated or empty
        column names, holds numbers such as 1.234.567, or is of a kind that is not supported.

    Warns
    -----
    TableWarning
        If the first column has no name, or counts the rows (from 0 or 1) under a name such as
        ``id`` or ``index``: it then labels the rows and is no variable. If the header line
        consists of numbers, which suggests that it is missing. If numbers such as 1.234 among whole numbers below a
        thousand may have a thousands separator. If a code does not occur. If words
        such as "None" and "NA", which no code names, are read as missing values in columns of text.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "cells.csv"
    >>> _ = path.write_text("Raf;Mek\n26,4;13,2\n35,9;16,5\n")
    >>> read_table(path)["Raf"].tolist()
    [26.4, 35.9]
    """
    path = Path(path)
    check_file(path)
    words: dict[str, list[str]] = {}
    if path.suffix.lower() in _PARQUET:
        frame = _read_parquet(path)
    else:
        frame, words = _read_text(_decode(path, encoding), path, missing_codes is not None)
    _warn_about_words(frame, words, missing_codes)
    if missing_codes is None:
        return frame
    found = {word for own in words.values() for word in own}
    return _numbers_again(frame, without_codes(frame, missing_codes, found))


def check_file(path: Path) -> None:
    """Refuse a path that cannot be a table, without reading it.

    Raises
    ------
    TableError
        If the file does not exist, is a folder, is of a kind that is not supported, or has no bytes.
    """
    if path.is_dir():
        raise TableError(f"{path} is a folder: give the path of a file in it.")
    if not path.exists():
        raise TableError(f"{path} does not exist.{_near(path)}")
    if path.suffix.lower() in _FOREIGN:
        kind = path.suffix.lower()
        raise TableError(f"{path} is a {kind} file, which is not read: save it as CSV or Parquet.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty: it has 0 bytes. Export it again.")


def _near(path: Path) -> str:
    if not path.parent.is_dir():
        return f" Neither does the folder {path.parent}: check the path."
    # By the names without their ends, which all tables of a folder share.
    present: dict[str, list[str]] = {}
    for entry in sorted(path.parent.iterdir()):
        if entry.is_file():
            present.setdefault(_stem(entry), []).append(entry.name)
    stems = difflib.get_close_matches(_stem(path), present, n=3, cutoff=0.6)
    near = [name for stem in stems for name in present[stem]][:3]
    if near:
        return f" Did you mean {' or '.join(map(repr, near))}?"
    return f" Check the name; the folder is {path.parent.resolve()}."


def _stem(path: Path) -> str:
    return path.name.partition(".")[0].lower()


def _read_parquet(path: Path) -> "pandas.DataFrame":
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except ImportError as error:
        message = f"{path}: Parquet needs pyarrow (pip install pyarrow), or save the table as CSV."
        raise TableError(message) from error
    except (OSError, ValueError) as error:
        raise TableError(f"{path} is not a readable Parquet file: {error}") from error


def _decode(path: Path, encoding: str) -> str:
    raw = path.read_bytes()
    if raw.startswith(b"\x1f\x8b"):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError) as error:
            raise TableError(f"{path} is a damaged gzip file: {error}") from error
    try:
        text = raw.decode(encoding)
    except LookupError as error:
        message = f"There is no encoding {encoding!r}: try utf-8, latin-1 or utf-16."
        raise TableError(message) from error
    except UnicodeDecodeError as error:
        raise TableError(_not_decodable(path, raw, encoding, error.start)) from error
    if "\0" in text[:10_000]:
        raise TableError(f"{path} is not a text file: save the table as CSV or Parquet.")
    return text.removeprefix("\ufeff")


def _not_decodable(path: Path, raw: bytes, encoding: str, start: int) -> str:
    wide = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    where = f"byte {start} (line {raw.count(b'\n', 0, start) + 1}, value 0x{raw[start]:02x})"
    remedy = "utf-16" if wide else "latin-1"
    return (
        f"{path} is not {encoding} at {where}: give its encoding, for example --encoding {remedy}"
    )


def _read_text(
    text: str, path: Path, coded: bool
) -> "tuple[pandas.DataFrame, dict[str, list[str]]]":
    """Return the table, and the words of each column that were read as missing values."""
    text = _EXCEL.sub("", text, count=1) if _EXCEL.match(text) else text
    lines = [line for line in text[:1_000_000].splitlines()[:20] if line.strip()]
    if not lines:
        raise TableError(f"{path} is empty: it has blank lines only. Export it again.")
    delimiter = _delimiter(lines, path)
    header, labelled = _check_lines(text, delimiter, path)
    _check_header(header, path)
    frame, words = _parse(text, delimiter, ["", *header] if labelled else header, coded)
    return _set_index(_without_empty_end(frame, path), path), words


def _delimiter(lines: list[str], path: Path) -> str:
    """Return the delimiter that cuts the first lines into the most, equally many, fields."""
    counts = {d: [len(row) for row in csv.reader(lines, delimiter=d)] for d in _DELIMITERS}
    fields = {d: count[0] for d, count in counts.items() if max(count) > 1}
    if not fields:
        raise TableError(
            f"{path} has no comma, semicolon or tab in its first lines ({lines[0]!r:.60}): save it "
            "as CSV, with at least 2 columns."
        )
    # The header may be one short: R writes row labels without a name.
    even = [d for d in fields if len(set(counts[d][1:])) <= 1 and fields[d] > 1]
    return max(even or fields, key=fields.__getitem__)


def _check_lines(text: str, delimiter: str, path: Path) -> tuple[list[str], bool]:
    """Return the header without empty names at its end, and whether each line has one more field than it."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        header = [name.strip() for name in next(row for row in reader if row)]
        rows = [(reader.line_num, len(row), _filled(row)) for row in reader if row]
    except csv.Error as error:
        raise TableError(f"{path} is not a CSV file: line {reader.line_num}: {error}") from error
    if not rows:
        raise TableError(f"{path} has a header line only: at least 2 rows are needed.")
    first, filled = rows[0][1], max(end for *_, end in rows)
    if header[0] and _filled(header) == 1 and filled > 1:
        raise TableError(
            f"{path}: the first line ({header[0]!r:.60}) has a single entry, as a title has: delete the lines above "
            "the names of the columns"
        )
    # Lines that end in a delimiter have one field more, which is always empty.
    labelled = first == len(header) + 1 and filled > len(header)
    expected = first if first == len(header) + 1 else len(header)
    if uneven := [(line, n) for line, n, _ in rows if n != expected]:
        line, found = uneven[0]
        more = f" (and {len(uneven) - 1:,} more lines)" if len(uneven) > 1 else ""
        raise TableError(
            f"{path} is ragged: line {line} has {found} fields, {expected} are expected{more}. "
            f"The delimiter was taken to be a {_DELIMITERS[delimiter]}; quote fields that contain it, and delete a title "
            "above the names of the columns."
        )
    return header[: max(_filled(header), filled - labelled)], labelled


def _filled(row: list[str]) -> int:
    """Count the fields up to the last one that is not empty."""
    return next((j for j in range(len(row), 0, -1) if row[j - 1].strip()), 0)


def _check_header(header: list[str], path: Path) -> None:
    repeated = sorted(name for name, times in Counter(header).items() if name and times > 1)
    if repeated:
        columns = column_list(repeated)
        raise TableError(
            f"{path}: the name of {columns} occurs more than once: rename all but one."
        )
    if nameless := [j + 1 for j, name in enumerate(header) if j and not name]:
        raise TableError(f"{path}: no name for column number {listing(nameless)}: add one.")
    if all(map(reads_as_number, header)) and not _counts(list(map(float, header))):
        warn(
            f"the first line of {path} ({', '.join(header):.60}) was taken for column names; if it "
            "holds measurements, add a header line above it"
        )


def _counts(values: list[float]) -> bool:
    return values == list(range(len(values))) or values == list(range(1, len(values) + 1))


def _parse(text: str, delimiter: str, names: list[str], coded: bool):
    import pandas as pd

    def read(**options) -> pd.DataFrame:
        columns = range(len(names))
        frame = pd.read_csv(
            io.StringIO(text), sep=delimiter, header=0, index_col=False,
            names=columns, usecols=columns, skipinitialspace=True, low_memory=False, **options,
        )  # fmt: skip
        return frame.set_axis(names, axis=1)

    frame = read(decimal=".")
    if delimiter != "," and _numeric(frame) < len(names):
        with_comma = read(decimal=",")
        frame = with_comma if _numeric(with_comma) > _numeric(frame) else frame
    suspects = [_may_have_thousands(column) for _, column in frame.items()]
    lossy = frame if coded else frame.select_dtypes(exclude="number")
    gaps = lossy.isna().any(axis=None)
    if not gaps and not any(suspects):
        return frame, {}
    written = read(dtype=str, keep_default_na=False)
    _check_thousands(written.loc[:, suspects])
    return frame, _missing_words(frame, written) if gaps else {}


def _may_have_thousands(column: "pandas.Series") -> bool:
    """Whether a column is text, or has whole numbers below a thousand and others of three digits after the point."""
    import numpy as np

    if column.dtype.kind not in "iuf":
        return True
    values = abs(column.to_numpy(float))
    values = values[np.isfinite(values) & (values < 1000)]
    whole = values == np.floor(values)
    thousands = 1000 * values[~whole]
    return bool(
        (values[whole] > 0).any()
        and thousands.size
        and np.allclose(thousands, np.round(thousands), atol=1e-6)
    )


def _check_thousands(written: "pandas.DataFrame") -> None:
    """Refuse numbers with several thousands separators, and say which may have one."""
    found = {}
    for name, column in written.items():
        cells = [cell.strip() for cell in column.unique()]
        if groups := [cell for cell in cells if _GROUPS.fullmatch(cell)]:
            raise TableError(
                f"column {name!r} holds {groups[0]!r}, a number with thousands separators: write the file without them"
            )
        if example := _thousands(cells):
            found[str(name)] = example
    if found:
        shown = ", ".join(
            f"{name!r} ({one!r} beside {other!r})" for name, (one, other) in found.items()
        )
        warn(
            f"numbers are read with a decimal mark in {shown}, among larger whole numbers; if the mark separates thousands, "
            "write the file without such separators"
        )


def _thousands(cells: list[str]) -> tuple[str, str] | None:
    """Return a number that may be a thousand times as large and a whole one, if all of a column are of these kinds."""
    import numpy as np

    cells = [cell for cell in cells if reads_as_number(cell) and not _CODE_LIKE.fullmatch(cell)]
    marked = [cell for cell in cells if _ONE_GROUP.fullmatch(cell)]
    whole = [cell for cell in cells if _BELOW_THOUSAND.fullmatch(cell)]
    others = len(cells) - len(marked) - len(whole) - sum(cell.strip("+-0") == "" for cell in cells)
    if (
        not marked
        or not whole
        or others
        or len({mark for cell in marked for mark in ".," if mark in cell}) > 1
    ):
        return None
    sizes = [
        np.median([abs(float(cell.replace(",", "."))) for cell in own]) for own in (marked, whole)
    ]
    # Decimals have no 0 at their end, or whole numbers have zeros too.
    padded = any(cell.endswith("0") for cell in marked)
    return (marked[0], whole[0]) if padded or sizes[0] < sizes[1] else None


def word_problems(frame: "pandas.DataFrame") -> list[str]:
    """List the columns of a file that would be numbers but for words such as "." and "?", and columns of dates.

    Parameters
    ----------
    frame : pandas.DataFrame
        Of `read_table`.
    """
    import pandas as pd

    words, dates = {}, []
    for name, column in frame.items():
        if pd.api.types.is_numeric_dtype(column):
            continue
        if pd.api.types.is_datetime64_any_dtype(column):
            dates.append(str(name))
            continue
        cells = [str(cell).strip() for cell in column.dropna()]
        others = sorted({cell for cell in cells if not reads_as_number(cell)})
        if cells and all(map(_DATE.fullmatch, cells)):
            dates.append(str(name))
        elif 0 < len(others) <= _FEW_WORDS and len({*cells}) > len(others) + 1:
            words[str(name)] = others
    problems = []
    if words:
        shown = ", ".join(f"{name!r} ({listing(own)})" for name, own in words.items())
        options = " ".join(
            f"--missing {shlex.quote(word)}" for word in sorted(set().union(*words.values()))
        )
        problems.append(
            f"words among numbers in {shown}: correct them, or, if they stand for missing values, name them: {options}"
        )
    if dates:
        verb = "holds" if len(dates) == 1 else "hold"
        problems.append(
            f"{column_list(dates)} {verb} dates: leave {'it' if len(dates) == 1 else 'them'} out with --drop "
            f"{shlex.quote(','.join(dates))}, or write numbers, such as days since the first date"
        )
    return problems


def _missing_words(frame, written) -> dict[str, list[str]]:
    """Words of each column that were read as missing values."""
    found = {}
    for name in frame:
        words = written[name][frame[name].isna()].str.strip()
        if lost := sorted({word for word in words if word}):
            found[str(name)] = lost
    return found


def _warn_about_words(frame, words: dict[str, list[str]], missing_codes) -> None:
    """Say which words in columns of text were read as missing values, except those that are named as such."""
    named = [] if missing_codes is None else plain_codes(missing_codes)
    found = {}
    for name in map(str, frame.select_dtypes(exclude="number")):
        own = named.get(name, []) if isinstance(named, dict) else named
        if lost := [word for word in words.get(name, []) if word not in own]:
            found[name] = lost
    if found:
        shown = ", ".join(f"{name!r} ({listing(lost)})" for name, lost in found.items())
        every = sorted({word for lost in found.values() for word in lost})
        warn(
            f"words among text are read as missing values in {shown}; if they mean missing, name them: "
            f"missing_codes={every}; if one of them is a state of its own, write it otherwise in the file, such as "
            "'none of them'"
        )


def _without_empty_end(frame: "pandas.DataFrame", path: Path) -> "pandas.DataFrame":
    """Return a table without the empty rows at its end, which are no observations."""
    filled = frame.notna().any(axis=1).to_numpy()
    rows = int(filled.nonzero()[0][-1]) + 1 if filled.any() else len(frame)
    if rows < len(frame):
        warn(
            f"the last {count(len(frame) - rows, 'line')} of {path} without an entry were left out"
        )
    return frame.iloc[:rows]


def _numeric(frame: "pandas.DataFrame") -> int:
    return frame.select_dtypes("number").shape[1]


def _numbers_again(frame, kept):
    """Make numbers of columns of text that are text only because of a code."""
    import pandas as pd

    columns = {}
    for name in frame.columns:
        column, before = kept[name], frame[name]
        if column.isna().sum() > before.isna().sum() and not pd.api.types.is_numeric_dtype(before):
            words = column.dropna().astype(str)
            if all(map(reads_as_number, words)):
                decimal = words.str.replace(",", ".", regex=False)
                column = pd.to_numeric(decimal).reindex(column.index)
        columns[name] = column
    return pd.DataFrame(columns)


def _set_index(frame: "pandas.DataFrame", path: Path) -> "pandas.DataFrame":
    """Turn a first column that only labels the rows into the index, and say so."""
    name = str(frame.columns[0])
    nameless = name.lower() in ("", "unnamed: 0", "...1")
    counts = name.lower() in _INDEX_NAMES and _counts(frame.iloc[:, 0].tolist())
    if frame.shape[1] < 2 or not (nameless or counts):
        return frame
    reason = "has no name of its own" if nameless else "counts the rows"
    warn(
        f"the first column ({name!r}) of {path} {reason} and was taken as row labels, not as a "
        "variable; to keep it, give it another name in the file"
    )
    return frame.set_index(frame.columns[0]).rename_axis(None)
