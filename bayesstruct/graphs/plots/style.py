"""Style of all pictures: colours, names that fit, an axes to draw on."""

import re

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap

# Okabe and Ito's palette: told apart by all common kinds of colour vision, and in grey
POSITIVE = "#0072B2"
NEGATIVE = "#D55E00"
UNDECIDED = "#E69F00"
NEUTRAL = "#4D4D4D"
FAINT = "#A9A9A9"
NODE = "#F2F2F2"

LINE = 18  # letters a line of a name that is broken


def axes(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    """Use the axes that were given, or make a figure of this size (inches)."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def settle(ax: "Axes") -> None:
    """Run the layout of the figure, so that sizes in points can be turned into data units."""
    ax.figure.get_figure(root=True).draw_without_rendering()


def diverging_map() -> "LinearSegmentedColormap":
    """Orange for negative, white for zero, blue for positive, as in the graphs."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = ["#8F3B00", NEGATIVE, "#FFFFFF", POSITIVE, "#003F66"]
    stops = [0.0, 0.25, 0.5, 0.75, 1.0]
    return LinearSegmentedColormap.from_list("weights", list(zip(stops, colours, strict=True)))


def sign_colour(weight: np.ndarray) -> np.ndarray:
    """Colour of each edge: blue above zero, orange below."""
    return np.where(np.asarray(weight) < 0, NEGATIVE, POSITIVE)


class Ink(NamedTuple):
    """Colours that suit the background of a figure."""

    paper: str
    text: str
    line: str
    faint: str
    node: str
    positive: str
    negative: str
    undecided: str


def ink(ax: "Axes | None" = None) -> Ink:
    """Colours for an axes: dark on light, or light on dark as the theme has it."""
    import matplotlib as mpl

    from matplotlib.colors import to_hex, to_rgb, to_rgba

    theme = mpl.rcParams["figure.facecolor"]
    *rgb, alpha = to_rgba(theme if ax is None else ax.figure.get_figure(root=True).get_facecolor())
    paper = np.array(rgb if alpha > 0.5 else to_rgb("white"))
    dark = np.dot(paper, (0.299, 0.587, 0.114)) < 0.45
    text = np.array(to_rgb(mpl.rcParams["text.color"]))
    if np.abs(text - paper).max() < 0.3:  # nobody could read it
        text = np.array(to_rgb("white" if dark else "black"))
    shades = (0.0, 1.0, 0.7, 0.34, 0.18 if dark else 0.05)
    greys = [to_hex(tuple(share * text + (1 - share) * paper)) for share in shades]
    signs = (POSITIVE, NEGATIVE, UNDECIDED)
    if dark:  # the same hues, lighter
        signs = ("#56B4E9", "#FF8C42", "#F0C450")
    return Ink._make((*greys, *signs))


#: Pale colours on which black text can be read, told apart by all common kinds of colour vision.
GROUPS = (
    "#A6CEE3", "#FDBF6F", "#B2DF8A", "#CAB2D6", "#FB9A99", "#FFFF99", "#D9D9D9", "#66C2A5",
)  # fmt: skip


def group_colours(labels: Sequence[str]) -> dict[str, str]:
    """Colour of each group of nodes."""
    import matplotlib as mpl

    from matplotlib.colors import to_hex

    if len(labels) <= len(GROUPS):
        return dict(zip(labels, GROUPS, strict=False))
    shades = mpl.colormaps["turbo"](np.linspace(0.08, 0.92, len(labels)))
    pale = 0.45 + 0.55 * shades[:, :3]
    return {label: to_hex(colour) for label, colour in zip(labels, pale, strict=True)}


def font_scale() -> float:
    """Size of text against that of matplotlib's default, as the user has set it."""
    import matplotlib as mpl

    return float(mpl.rcParams["font.size"]) / 10


def wrap(name: str, width: int) -> str:
    """Break a name at spaces and joints into at most three lines of about equal length."""
    parts = re.findall(r".+?(?:[\s_\-/.:;,]+|$)", name)
    for lines in (1, 2, 3):
        limit = -(-len(name) // lines) + 2
        out = [""]
        for part in parts:
            if out[-1] and len((out[-1] + part).rstrip()) > limit:
                out.append("")
            out[-1] += part
        if len(out) <= lines and max(map(len, out)) <= width:
            return "\n".join(line.rstrip() for line in out)
    return name


def shorten(names: Sequence[str], width: int) -> list[str]:
    """Cut long names in the middle, where they differ least, and keep them distinct."""
    longest = max(map(len, names), default=0)
    for limit in range(width, longest + 1):
        short = [_cut(name, limit) for name in names]
        clashes = [count for count in Counter(short).values() if count > 1]
        if not clashes:
            return short
    return list(names)


def short_labels(names: Sequence[str], width: int) -> list[str]:
    """Cut long names as `shorten`, for texts in which matplotlib would take dollar signs for mathematics."""
    return [name.replace("$", r"\$") for name in shorten(names, width)]


def _cut(name: str, width: int) -> str:
    if len(name) <= width:
        return name
    tail = (width - 1) // 2
    return f"{name[: width - 1 - tail]}…{name[len(name) - tail :]}"
