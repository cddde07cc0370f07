"""The key of a picture: full names of nodes that are drawn with numbers or short names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

#: Measures texts at a font size: widths and heights in points, shape (n, 2).
Measure = Callable[[Sequence[str], float], np.ndarray]

SIZES = (8.5, 7.5, 6.5, 5.5)
GAP = 12.0  # points between columns, and to the network
MAX_COLUMNS = 8


@dataclass(frozen=True)
class Frame:
    """A rectangle of the page in points from the lower left corner of the axes."""

    left: float
    bottom: float
    width: float
    height: float

    @property
    def size(self) -> np.ndarray:
        """Width and height."""
        return np.array([self.width, self.height])

    @property
    def middle(self) -> np.ndarray:
        """Middle."""
        return np.array([self.left + self.width / 2, self.bottom + self.height / 2])


@dataclass(frozen=True)
class Key:
    """Columns of text, their upper left corners in points, and what they leave of the page."""

    columns: list[str]
    corners: np.ndarray
    size: float
    left: Frame


def place_key(
    entries: Sequence[str], page: Frame, measure: Measure, scale: float = 1.0
) -> Key | None:
    """Place a key beside or below a network, where it leaves more of the page.

    Parameters
    ----------
    entries : sequence of str
    page : Frame
    measure : function
    scale : float
        Factor of the sizes of text.

    Returns
    -------
    Key or None
        None where it would take more than half of the page.
    """
    for size in SIZES:
        keys = [
            key
            for n in range(1, min(MAX_COLUMNS, len(entries)) + 1)
            for key in _of_columns(entries, n, size * scale, page, measure)
        ]
        if keys:
            return max(keys, key=lambda key: _room(key.left))
    return None


def _room(frame: Frame) -> float:
    """Largest area for a network of about the shape of a square."""
    return min(frame.width, 1.5 * frame.height) * min(frame.height, 1.5 * frame.width)


def _of_columns(entries, n: int, size: float, page: Frame, measure: Measure) -> list[Key]:
    rows = -(-len(entries) // n)
    columns = ["\n".join(entries[k : k + rows]) for k in range(0, len(entries), rows)]
    sizes = measure(columns, size)
    width, height = sizes[:, 0].sum() + GAP * len(columns), sizes[:, 1].max()
    starts = np.cumsum(sizes[:, 0] + GAP) - sizes[:, 0]
    out = []
    if height <= page.height and width <= 0.5 * page.width:
        x = page.left + page.width - width + starts
        y = page.bottom + (page.height + height) / 2
        left = Frame(page.left, page.bottom, page.width - width, page.height)
        out.append(Key(columns, _corners(x, y), size, left))
    if width <= page.width and height + GAP <= 0.5 * page.height:
        x = page.left + (page.width - width - GAP) / 2 + starts
        taken = height + GAP
        left = Frame(page.left, page.bottom + taken, page.width, page.height - taken)
        out.append(Key(columns, _corners(x, page.bottom + height + GAP / 3), size, left))
    return out


def _corners(x: np.ndarray, y: float) -> np.ndarray:
    return np.stack([x, np.full(len(x), y)], axis=1)
