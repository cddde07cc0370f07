"""Style of all pictures: colours, names that fit, an axes to draw on."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

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


def shorten(names: Sequence[str], width: int) -> list[str]:
    """Cut long names in the middle, where they differ least, and keep them distinct."""
    longest = max(map(len, names), default=0)
    for limit in range(width, longest + 1):
        short = [_cut(name, limit) for name in names]
        clashes = [count for count in Counter(short).values() if count > 1]
        if not clashes:
            return short
    return list(names)


def _cut(name: str, width: int) -> str:
    if len(name) <= width:
        return name
    tail = (width - 1) // 2
    return f"{name[: width - 1 - tail]}…{name[len(name) - tail :]}"
