"""The key of a picture: full names of nodes that are drawn with numbers or short names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

#: Measures texts at a font size: widths and heights in points, shape (n, 2).
Measure = Callable[[Sequence[str], float], np.ndarray]

SIZES = (8.5, 7.5, 6.5, 5.5)
GAP = 14.0  # points between columns, and to the network
LEADING = 1.0  # distance of lines against the height of the highest
SMALL_GAP = 5.0  # points between a short name and the full one
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
    """Texts, their upper left corners in points, shape (n, 2), and what they leave of the page."""

    texts: list[str]
    corners: np.ndarray
    size: float
    left: Frame


def place_key(
    entries: Sequence[tuple[str, str]], page: Frame, measure: Measure, scale: float = 1.0
) -> Key | None:
    """Place a key beside or below a network, where it leaves more of the page.

    Parameters
    ----------
    entries : sequence of pairs of str
        What is drawn, and the full name.
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
    blocks = [entries[k : k + rows] for k in range(0, len(entries), rows)]
    columns = [[entry[side] for entry in block] for block in blocks for side in (0, 1)]
    sizes = [measure(column, size) for column in columns]
    line = max(column[:, 1].max() for column in sizes) * LEADING
    widths = np.array([column[:, 0].max() for column in sizes])
    widths += np.resize([SMALL_GAP, GAP], len(columns))
    width, height = widths.sum(), line * rows
    starts = np.cumsum(widths) - widths
    texts = [text for column in columns for text in column]
    at = np.array(
        [
            (x, -line * k)
            for x, column in zip(starts, columns, strict=True)
            for k in range(len(column))
        ]
    )
    out = []
    if height <= page.height and width <= 0.5 * page.width:
        corner = (
            page.left + page.width - width + GAP / 2,
            page.bottom + (page.height + height) / 2,
        )
        left = Frame(page.left, page.bottom, page.width - width, page.height)
        out.append(Key(texts, at + corner, size, left))
    if width <= page.width and height + GAP <= 0.5 * page.height:
        taken = height + GAP
        corner = (page.left + (page.width - width + GAP) / 2, page.bottom + height + GAP / 3)
        left = Frame(page.left, page.bottom + taken, page.width, page.height - taken)
        out.append(Key(texts, at + corner, size, left))
    return out
