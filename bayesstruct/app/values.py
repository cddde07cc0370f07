"""The options of a model: from words of the command line to plain values, and back to help.

A value is plain JSON, since it is kept in the folder of the run; `bayesstruct.app.build` makes of it what the model takes.
"""

import csv
import difflib
import math

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bayesstruct.app.folder import InputError
from bayesstruct.models.options import OPTIONS, PYTHON_ONLY, Option

__all__ = [
    "FORMATS",
    "KNOWN",
    "check_without_model",
    "command_words",
    "option_rows",
    "owners",
    "read_options",
    "reads",
    "rows_of_file",
    "split_names",
    "table_words",
    "unknown",
    "written_names",
]

#: All options that some model has, by name.
KNOWN = frozenset(option.name for options in OPTIONS.values() for option in options)
#: How a value of each kind is written.
FORMATS = {
    "number": "NUMBER",
    "whole": "NUMBER",
    "choice": "",
    "truth": "yes|no",
    "two numbers": "A,B",
    "text": "COLUMN",
    "columns": "COLUMN,COLUMN,...",
    "pairs": "A,B or FILE",
    "tiers": "'A,B;C,D'",
    "blocks": "'A,B;C,D'",
    "neighbours": "chain, a grid such as 3x4, or FILE",
    "set": "COLUMN or FILE",
}
_TRUTH = {"yes": True, "no": False, "true": True, "false": False}


def owners(name: str) -> list[str]:
    """Models that have an option."""
    return [
        model
        for model, options in OPTIONS.items()
        if any(option.name == name for option in options)
    ]


def unknown(name: str, model: str | None, common: Iterable[str]) -> str:
    """Return a message for an option that a model does not have; it names what the model has."""
    flag = f"--{name.replace('_', '-')}"
    if (reason := PYTHON_ONLY.get((model or "", name))) is not None:
        return f"{flag} of {model} is for Python only, since {reason}: bs.models.{model}(table, {name}=...)"
    own = KNOWN if model is None else {option.name for option in OPTIONS[model]}
    known = [f"--{other.replace('_', '-')}" for other in (*own, *common)]
    near = difflib.get_close_matches(flag, known, n=1, cutoff=0.75)
    hint = f"; did you mean {near[0]}?" if near else ""
    if model is None:
        which = (
            "" if near else "; `bayesstruct learn --help` and `bayesstruct models NAME` show all"
        )
        return f"no model has {flag}{hint}{which}"
    has = ", ".join(option.flag for option in OPTIONS[model])
    others = owners(name)
    whose = f" ({' and '.join(others[:3])} {'has' if len(others) == 1 else 'have'} it)"
    return f"{model} has no {flag}{whose if others else ''}{hint or ';'} it has {has}"


def read_options(model: str, given: Sequence[tuple[str, str]], common: Iterable[str] = ()) -> dict:
    """Return the options of a model as plain values by name.

    Parameters
    ----------
    model : str
    given : sequence of (str, str)
        Names and words, in the order in which they were given.
    common : iterable of str
        Options that all models have, of which one may have been meant.

    Raises
    ------
    InputError
        For an option that the model does not have, one that is given twice or is left out, or a word that is no value of it.
    """
    records = {option.name: option for option in OPTIONS[model]}
    words: dict[str, list[str]] = {}
    for name, word in given:
        if name not in records:
            raise InputError(unknown(name, model, common))
        words.setdefault(name, []).append(word)
    for name, own in words.items():
        if len(own) > 1 and not records[name].several:
            raise InputError(f"{records[name].flag} is given {len(own)} times: give it once")
    if absent := [
        option for option in OPTIONS[model] if option.required and option.name not in words
    ]:
        option = absent[0]
        raise InputError(f"{model} needs {option.flag} {FORMATS[option.kind]}: {option.help}")
    return {name: _value(records[name], own) for name, own in words.items()}


def reads(model: str, given: Sequence[tuple[str, str]]) -> bool:
    """Whether a model has all options that are given, and knows their values; it may need more."""
    have = {name for name, _ in given}
    more = [(option.name, "x") for option in OPTIONS[model] if option.required]
    try:
        read_options(model, [*given, *(pair for pair in more if pair[0] not in have)])
    except InputError:
        return False
    return True


def check_without_model(given: Sequence[tuple[str, str]]) -> None:
    """Refuse options that no model takes, before the table is read.

    Raises
    ------
    InputError
        With what is wrong.
    """
    names = {name for name, _ in given}
    having = [model for model, own in OPTIONS.items() if names <= {option.name for option in own}]
    if not having:
        flags = " and ".join(sorted(f"--{name.replace('_', '-')}" for name in names))
        raise InputError(
            f"no model has {flags} together: leave one out, or name a --model for what it has"
        )
    if not any(reads(model, given) for model in having):
        read_options(having[0], given)


def _value(option: Option, words: list[str]) -> Any:
    """Return what the words of one option mean."""
    readers = {
        "number": _number,
        "whole": _whole,
        "choice": _choice,
        "truth": _truth,
        "two numbers": _two,
        "columns": lambda option, word: split_names(option.flag, word),
        "tiers": _tiers,
        "blocks": _blocks,
        "neighbours": _neighbours,
    }
    if option.kind == "pairs":
        return [pair for word in words for pair in _pairs(option, word)]
    word = words[0].strip()
    if not word:
        raise InputError(f"{option.flag} is empty: give it {FORMATS[option.kind] or 'a value'}")
    return readers.get(option.kind, lambda _, word: word)(option, word)


def _number(option, word):
    if option.choices:
        if word in option.choices:
            return word
        name, _, rest = word.partition(":")
        if f"{name}:A,B" in option.choices:
            one, other = _numbers(option, rest, f"{name}:A,B, such as {name}:1,4")
            if min(one, other) <= 0:
                raise InputError(
                    f"{option.flag} {word}: both numbers of {name}:A,B must be above 0"
                )
            return f"{name}:{one:g},{other:g}"
    try:
        value = float(word)
    except ValueError:
        also = f" or {' or '.join(option.choices)}" if option.choices else ""
        raise InputError(f"{option.flag} must be a number{also}, got {word!r}") from None
    _check_bounds(option, value)
    return value


def _check_bounds(option: Option, value: float) -> None:
    low = option.above if option.above is not None else option.least
    right = (
        math.isfinite(value)
        and (option.above is None or value > option.above)
        and (option.least is None or value >= option.least)
        and (option.below is None or value < option.below)
        and (option.most is None or value <= option.most)
    )
    if right:
        return
    high = option.below if option.below is not None else option.most
    if high is not None:
        bounds = f"between {low:g} and {high:g}"
    elif option.above is not None:
        bounds = f"above {option.above:g} and finite"
    else:
        bounds = "finite" if low is None else f"at least {low:g}"
    raise InputError(f"{option.flag} must be {bounds}, got {value:g}")


def _whole(option, word):
    try:
        value = int(word)
    except ValueError:
        raise InputError(f"{option.flag} must be a whole number, got {word!r}") from None
    _check_bounds(option, value)
    return value


def _choice(option, word):
    if word in option.choices:
        return word
    near = difflib.get_close_matches(word.lower(), option.choices, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ":"
    raise InputError(
        f"unknown {option.name.replace('_', ' ')} {word!r}{hint} {option.flag} is one of {', '.join(option.choices)}"
    )


def _truth(option, word):
    if word.lower() in _TRUTH:
        return _TRUTH[word.lower()]
    if word in option.choices:
        return word
    raise InputError(
        f"{option.flag} is {' or '.join(('yes', 'no', *option.choices))}, got {word!r}"
    )


def _two(option, word):
    return _numbers(option, word, "two numbers, such as 2,1")


def _numbers(option, word, form):
    try:
        one, other = map(float, word.split(","))
    except ValueError:
        raise InputError(f"{option.flag} must be {form}; got {word!r}") from None
    return [one, other]


def split_names(flag: str, word: str) -> list[str]:
    """Return the names in a list with commas; names that hold commas are quoted as in a CSV file.

    Raises
    ------
    InputError
        If a name is empty.
    """
    names = [name.strip() for name in next(csv.reader([word], skipinitialspace=True), [])]
    if not names or not all(names):
        raise InputError(
            f"{flag} {word!r}: a name is empty; write names with commas between, as a,b,c"
        )
    return names


def _pairs(option, word):
    """Return one pair, or those of a file of two columns."""
    if is_file(word):
        return pairs_of_file(option.flag, Path(word))
    names = split_names(option.flag, word)
    if len(names) != 2:
        raise InputError(
            f"{option.flag} takes a pair of names, and {word!r} has {len(names)}; write the two names with a comma between, as "
            f"{option.flag} a,b, repeat the option for further pairs, or name a CSV file with two columns"
        )
    return [names]


def is_file(word: str) -> bool:
    """Whether a word is the path of a file of text with columns, rather than names."""
    return Path(word).suffix.lower() in (".csv", ".tsv", ".txt") and "," not in word


def pairs_of_file(flag: str, path: Path) -> list[list[str]]:
    """Read the pairs of a file of two columns with a header.

    Raises
    ------
    InputError
        If there is no such file, or a line has not two names.
    """
    rows = rows_of_file(flag, path)
    for number, row in enumerate(rows, start=1):
        if len(row) != 2 or not all(row):
            raise InputError(
                f"{flag}: line {number} of {path} has {len(row)} entries: give a header and one pair in each line, as a,b"
            )
    if len(rows) < 2:
        raise InputError(
            f"{flag}: {path} has no pair: give a header and one pair in each line, as a,b"
        )
    return rows[1:]


def rows_of_file(flag: str, path: Path) -> list[list[str]]:
    """Return the fields of the lines of a small text file, the header among them; blank lines are left out.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    try:
        text = path.expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(
            f"{flag}: {path} cannot be read ({reason}): give the path of a CSV file"
        ) from None
    mark = "\t" if "\t" in text else ";" if ";" in text else ","
    lines = csv.reader(text.splitlines(), delimiter=mark)
    return [[field.strip() for field in row] for row in lines if any(row)]


def _tiers(option, word):
    return [split_names(option.flag, part) for part in _parts(option, word)]


def _parts(option, word):
    parts = [part for part in word.split(";") if part.strip()]
    if len(parts) < 2:
        raise InputError(
            f"{option.flag} {word!r} is a single group: write several with semicolons between, as {FORMATS[option.kind]}"
        )
    return parts


def _blocks(option, word):
    """Return the columns of each block, by names that are given (``x=a,b;y=c``) or numbers."""
    blocks: dict[str, list[str]] = {}
    for number, part in enumerate(_parts(option, word), start=1):
        name, sign, rest = part.partition("=")
        name = name.strip() if sign else str(number)
        if name in blocks:
            raise InputError(f"{option.flag}: there are two blocks {name!r}: give each one name")
        blocks[name] = split_names(option.flag, rest if sign else part)
    return blocks


def _neighbours(option, word):
    if word == "chain":
        return word
    if is_file(word):
        return pairs_of_file(option.flag, Path(word))
    sides = word.lower().split("x")
    if len(sides) < 2 or not all(side.isdigit() and int(side) > 0 for side in sides):
        raise InputError(f"{option.flag} is {FORMATS['neighbours']} with two columns, got {word!r}")
    return [int(side) for side in sides]


def option_rows(model: str) -> list[tuple[str, str, str]]:
    """Return a row for each option of a model: the option, how its value is written, and what it means."""
    rows = []
    for option in OPTIONS[model]:
        form = "|".join(filter(None, (FORMATS[option.kind], *option.choices)))
        default = _shown(option.default)
        notes = [f"[default: {default}]"] * bool(default) + ["[required]"] * option.required
        if option.several:
            notes.append("May be given several times.")
        rows.append((option.flag, form, " ".join((option.help, *notes))))
    return rows


def _shown(default: Any) -> str:
    if default is None or default == ():
        return ""
    if isinstance(default, bool):
        return "yes" if default else "no"
    if isinstance(default, tuple):
        return ",".join(f"{number:g}" for number in default)
    return f"{default:g}" if isinstance(default, float) else str(default)


def command_words(options: Mapping) -> list[str]:
    """Return the words of the command that learns a table with these options, without its folder.

    Parameters
    ----------
    options : mapping
        Of a `bayesstruct.app.folder.Job`.
    """
    bundled = options["source"].endswith("(bundled)")
    words = ["bayesstruct", "learn", *([] if bundled else [options["source"]])]
    words += ["--model", options["model"]]
    for name, value in options["given"]:
        words += [f"--{name.replace('_', '-')}", value]
    for name in ("draws", "tune", "chains", "seed"):
        words += [f"--{name}", str(options[name])]
    return words + table_words(options) + ["--effects"] * bool(options.get("effects"))


def table_words(options: Mapping) -> list[str]:
    """Return the words that say how the table is read."""
    bundled = options["source"].endswith("(bundled)")
    words = []
    for name in ("missing", "states"):
        for value in options[name]:
            words += [f"--{name}", value]
    for name in ("columns", "drop"):
        words += [f"--{name}", written_names(options[name])] if options[name] else []
    if options["log"] is not None and options["log"] != bundled:
        words.append("--log" if options["log"] else "--no-log")
    words += ["--cov"] * options["cov"]
    return words + (["--encoding", options["encoding"]] if options["encoding"] != "utf-8" else [])


def written_names(names: Iterable[str]) -> str:
    """Write names as `split_names` reads them."""
    return ",".join(map(_quoted, names))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if {",", '"'} & {*name} else name
