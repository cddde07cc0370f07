"""A report as a list of blocks, and its two writers: Markdown and one self-contained HTML file.

Names of columns are data: both writers escape them, and neither looks for markup in them.
"""

import base64
import re

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

__all__ = [
    "Block",
    "Bullets",
    "Code",
    "Details",
    "Heading",
    "Paragraph",
    "Picture",
    "Span",
    "Table",
    "Text",
    "plain",
    "prose",
    "to_html",
    "to_markdown",
]


@dataclass(frozen=True)
class Span:
    """A piece of a sentence.

    Attributes
    ----------
    text : str
    style : {"", "code", "emphasis", "strong"}
    """

    text: str
    style: str = ""


Text = tuple[Span, ...]


@dataclass(frozen=True)
class Heading:
    """A title; level 1 is that of the page."""

    text: Text
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: Text


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: Sequence[Text]


@dataclass(frozen=True)
class Table:
    """A table of text; the first column has names, the others numbers unless `words` says otherwise.

    Attributes
    ----------
    header : sequence of str
    rows : sequence of sequences of str
    words : set of int
        Columns of words, which are aligned to the left.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: frozenset[int] = field(default=frozenset({0}))


@dataclass(frozen=True)
class Picture:
    """A picture beside the report.

    Attributes
    ----------
    path : Path
        Of the file; only its name is in the Markdown.
    caption : Text
    """

    path: Path
    caption: Text


@dataclass(frozen=True)
class Code:
    """Commands, line by line."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Details:
    """Blocks that HTML shows when they are asked for, and Markdown always."""

    title: str
    blocks: Sequence["Block"]


Block = Heading | Paragraph | Bullets | Table | Picture | Code | Details

_MARKUP = re.compile(r"(`[^`]*`|\*\*[^*]+\*\*|\*[^*]+\*|\{\})")


def plain(text: object) -> Text:
    """Return text that has no markup, such as the name of a column."""
    return (Span(str(text)),)


def prose(template: str, *values: object) -> Text:
    """Return a sentence from a template with a little markup, and values that have none.

    Parameters
    ----------
    template : str
        With ```code```, ``*emphasis*``, ``**strong**``, and ``{}`` for each value.
    *values : object
        Written as they are, whatever characters they hold; inside of code too.

    Examples
    --------
    >>> [span.text for span in prose("*Weight* of {}", "a*b")]
    ['Weight', ' of ', 'a*b']
    """
    left = list(values)
    spans = []
    for part in _MARKUP.split(template):
        if part == "{}":
            spans.append(Span(str(left.pop(0))))
        elif part[:1] == "`":
            spans.append(Span(_filled(part[1:-1], left), "code"))
        elif part[:2] == "**":
            spans.append(Span(_filled(part[2:-2], left), "strong"))
        elif part[:1] == "*":
            spans.append(Span(_filled(part[1:-1], left), "emphasis"))
        elif part:
            spans.append(Span(part))
    return tuple(spans)


def _filled(text: str, values: list) -> str:
    first, *rest = text.split("{}")
    return first + "".join(f"{values.pop(0)}{part}" for part in rest)


# ---- Markdown --------------------------------------------------------------------------------

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&$!])")
#: An underscore inside of a word is none of Markdown's marks.
_INSIDE = re.compile(r"(?<=[^\W_])\\_(?=[^\W_])")
#: What begins a list or a title at the beginning of a line.
_OPENING = re.compile(r"^(\s*)([-+=])|^(\s*\d+)([.)])(?=\s|$)")
_MARKS = {"": "", "emphasis": "*", "strong": "**"}


def to_markdown(blocks: Iterable[Block]) -> str:
    """Write blocks as Markdown (GitHub's, for its tables)."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def _markdown(block: Block) -> str:  # noqa: PLR0911  one for each kind of block
    match block:
        case Heading(text, level):
            return "#" * level + " " + _marked(text)
        case Paragraph(text):
            return _opened(_marked(text))
        case Bullets(items):
            return "\n".join("- " + _opened(_marked(item)) for item in items)
        case Table(header, rows, words):
            lines = [_line(header), _rules(len(header), words), *map(_line, rows)]
            return "\n".join(lines)
        case Picture(path, caption):
            return f"![{_escaped(path.stem)}]({path.name})\n\n{_opened(_marked(caption))}"
        case Code(lines):
            return "\n".join(["```bash", *lines, "```"])
        case Details(title, inner):
            return "\n\n".join([f"### {_escaped(title)}", *map(_markdown, inner)])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def _rules(number: int, words: frozenset[int]) -> str:
    return "| " + " | ".join("---" if i in words else "---:" for i in range(number)) + " |"


def _marked(text: Text) -> str:
    return "".join(map(_marked_span, text))


def _marked_span(span: Span) -> str:
    if span.style == "code":
        fence = "`" * (max((len(run) for run in re.findall("`+", span.text)), default=0) + 1)
        space = " " if span.text[:1] == "`" or span.text[-1:] == "`" else ""
        return f"{fence}{space}{_one_line(span.text)}{space}{fence}"
    mark = _MARKS[span.style]
    return f"{mark}{_escaped(span.text)}{mark}"


def _escaped(text: str) -> str:
    """Escape what Markdown would take for markup; bounds such as "> 400" stay readable."""
    text = _SPECIAL.sub(r"\\\1", _one_line(text))
    text = _INSIDE.sub("_", text)
    return re.sub(r"\\([<>])(?= )", r"\1", text)  # no tag begins with a space


def _opened(line: str) -> str:
    """Escape what would begin a list or a title at the beginning of a line."""
    if line.startswith("> "):
        return "\\" + line
    return _OPENING.sub(lambda m: f"{m[1]}\\{m[2]}" if m[2] else f"{m[3]}\\{m[4]}", line)


def _one_line(text: str) -> str:
    """Return text without line breaks, which a name may hold."""
    return re.sub(r"\s*[\r\n\v\f\x85\u2028\u2029]+\s*", " ", text)


# ---- HTML ------------------------------------------------------------------------------------

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff; max-width: 62rem;
  margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.3rem; margin-top: 2.2rem; border-bottom: 1px solid #ccc; }
h3 { font-size: 1.05rem; margin-top: 1.6rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; margin: 1rem 0; }
.wide { overflow-x: auto; }
th, td { padding: .2rem .7rem; text-align: right; vertical-align: top; }
th { border-bottom: 2px solid #555; } td { border-bottom: 1px solid #ddd; }
.word { text-align: left; overflow-wrap: anywhere; }
figure { margin: 1.2rem 0; } img { max-width: 100%; height: auto; }
figcaption, .small { font-size: .9rem; color: #444; }
code, pre { font-family: ui-monospace, monospace; font-size: .88em; background: #f3f3f3; }
pre { padding: .7rem; overflow-x: auto; } code { padding: .05rem .25rem; overflow-wrap: anywhere; }
summary { cursor: pointer; font-weight: 600; }
@media print { body { margin: 0; max-width: none; } }
"""
_TAGS = {"code": "code", "emphasis": "em", "strong": "strong"}


def to_html(blocks: Sequence[Block], title: str) -> str:
    """Write blocks as one HTML file that refers to no other: pictures are inside of it."""
    body = "\n".join(_html(block) for block in blocks)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(_one_line(title))}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _html(block: Block) -> str:  # noqa: PLR0911  one for each kind of block
    match block:
        case Heading(text, level):
            return f"<h{level}>{_tagged(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{_tagged(text)}</p>"
        case Bullets(items):
            return "<ul>" + "".join(f"<li>{_tagged(item)}</li>" for item in items) + "</ul>"
        case Table(header, rows, words):
            return _html_table(header, rows, words)
        case Picture(path, caption):
            image = base64.b64encode(path.read_bytes()).decode()
            return (
                f'<figure><img alt="{escape(path.stem)}" src="data:image/png;base64,{image}">'
                f"<figcaption>{_tagged(caption)}</figcaption></figure>"
            )
        case Code(lines):
            return "<pre>" + "\n".join(map(escape, lines)) + "</pre>"
        case Details(title, inner):
            shown = "\n".join(map(_html, inner))
            return f"<details><summary>{escape(title)}</summary>\n{shown}\n</details>"


def _html_table(header, rows, words) -> str:
    def line(cells, tag):
        return "<tr>" + "".join(cell(tag, i, text) for i, text in enumerate(cells)) + "</tr>"

    def cell(tag, i, text):
        kind = ' class="word"' if i in words else ""
        return f"<{tag}{kind}>{escape(_one_line(str(text)))}</{tag}>"

    body = "\n".join(line(row, "td") for row in rows)
    return (
        f'<div class="wide"><table>\n<thead>{line(header, "th")}</thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _tagged(text: Text) -> str:
    return "".join(_tagged_span(span) for span in text)


def _tagged_span(span: Span) -> str:
    inner = escape(_one_line(span.text))
    tag = _TAGS.get(span.style)
    return f"<{tag}>{inner}</{tag}>" if tag else inner
