"""Messages of the package, whose remedies are Python, in the words of the command line."""

import ast
import re
import shlex

from collections.abc import Callable

import numpy as np

from bayesstruct.models.options import OPTIONS

__all__ = ["on_the_command_line"]

_CODES = re.compile(r"missing_codes=(\{[^{}]*\}|\[[^\[\]]*\]|[-+.\w']+)")
_STATES = re.compile(r"states=\{'([^']+)': \[([^\[\]]*)\]\}")
_NAME = r"data\[(?P<q>['\"])(?P<name>.*?)(?P=q)\]"
#: What is written in Python, and what says the same on the command line.
_PHRASES: tuple[tuple[str, str | Callable[[re.Match], str]], ...] = (
    (
        rf",? in\s+pandas with pandas\.Categorical\({_NAME}, \[\.\.\.\], ordered=True\), and if not, make them "
        r"categories: data\[.*?\]\.astype\('category'\)",
        r" with --states '\g<name>=low<mid<high', and if not, write them with commas: --states '\g<name>=a,b,c'",
    ),
    (
        rf",? in\s+pandas with pandas\.Categorical\({_NAME}, \[\.\.\.\], ordered=True\)",
        r" with --states '\g<name>=low<mid<high'",
    ),
    (
        r"(use )?ordered categories \(pandas\.Categorical\(\.\.\., ordered=True\)\)",
        "write their order as --states 'COLUMN=low<mid<high'",
    ),
    (
        r"give both the same ordered categories \(pandas\.Categorical\)",
        "write the same order for both, --states 'COLUMN=low<mid<high'",
    ),
    (r"by states= or ordered categories", "by --states 'COLUMN=no<yes'"),
    (r"(?<![\w-])states=(?!\w)", "--states"),
    (r"make it an ordered category", "write its states in order, --states 'COLUMN=1<2<3'"),
    (r", as in np\.log\(data\)", " with --log"),
    (
        r"(?<=pass the rows that it was computed from, or, where there are none, )[\w]+\(cov=.*",
        "--cov --n ROWS",
    ),
    (
        r"for ordered states say kinds=\{'([^']*)': 'ordinal'\}, for states without an order 'multinomial', and 'normal' if numbers are meant",
        r"if they are states, say which with --states '\1=0<1<2', or without an order with --states '\1=0,1,2'",
    ),
    (r", for instance pandas\.cut\(column, 3\)", ""),
    (r", for example with pandas\.get_dummies\([^()]*\)", " as columns of 0 and 1"),
    (r"(?<=use )pairwise_mrf\b", "--model pairwise_mrf"),
    (r"leave it out, or make it the index", "leave it out with --drop"),
    (r"`missing_codes=?`", "--missing"),
    (r"`states=?`", "--states"),
    (r"pass data\.T", "write its columns as rows"),
    (r"pass data \+ data\.T", "write both directions"),
    (r"pass data\.max\(\) - data", "subtract all from the largest"),
    (r"directed=True", "--directed yes"),
    (r"bs\.models\.(\w+)(\([^)]*\))?", r"--model \1"),
    (r", as data\[[^\]]*\]\.str\.strip\(\)\.str\.lower\(\) does", " in the file"),
    (r",? for example with data\.dropna\(how='all'\)", ""),
    (r": pandas\.get_dummies\([^()]*\)", ""),
    # What only says how it is done in Python.
    (r" \((in pandas )?(data|pandas|cov)[.\[]([^()]|\(([^()]|\([^()]*\))*\))*\)", ""),
)


def on_the_command_line(text: str, model: str | None = None) -> str:
    r"""Write the remedies of a message as on the command line.

    Parameters
    ----------
    text : str
        Of an error or a warning.
    model : str, optional
        Whose arguments are options.

    Examples
    --------
    >>> on_the_command_line("`rate` goes with prior='laplace'", "ising")
    '--rate goes with --prior laplace'
    """
    text = _CODES.sub(_codes, text)
    text = _STATES.sub(_states, text)
    for pattern, words in _PHRASES:
        text = re.sub(pattern, words, text)
    if model and "n" not in {option.name for option in OPTIONS[model]}:
        text = text.replace("none, --cov --n", "none, --model bayesian_network --cov --n")
    for option in OPTIONS[model] if model else ():
        text = re.sub(rf"`{option.name}=?`", option.flag, text)
        text = re.sub(rf"`?(?<![\w-]){option.name}=(['\"])(.*?)\1`?", rf"{option.flag} \2", text)
    return text


def _codes(found: re.Match) -> str:
    try:
        codes = ast.literal_eval(found[1].replace(", ...", ""))
    except (SyntaxError, ValueError):  # a remark of another form
        return found[0]
    own = codes.items() if isinstance(codes, dict) else [("", codes)]
    options = [
        f"{name}={code}" if name else str(code)
        for name, each in own
        for code in (each if isinstance(each, list) else np.atleast_1d(each).tolist())
    ]
    return " ".join(f"--missing {shlex.quote(option)}" for option in options)


def _states(found: re.Match) -> str:
    try:
        labels = ast.literal_eval(f"[{found[2]}]")
    except (SyntaxError, ValueError):
        return found[0]
    return f"--states {shlex.quote(f'{found[1]}=' + '<'.join(map(str, labels)))}"
