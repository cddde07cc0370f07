"""Boxes in the plane: whether they meet, how far to push them apart, the scale at which they fit a frame."""

from typing import NamedTuple

import numpy as np


class Boxes(NamedTuple):
    """Rectangles around points, in units of the page, whatever the scale of the points.

    Attributes
    ----------
    offset : ndarray, shape (p, 2)
        From the point to the middle of its rectangle.
    half : ndarray, shape (p, 2)
        Half width and half height.
    angle : ndarray, shape (p,)
        By which the rectangle is turned, in radians.
    """

    offset: np.ndarray
    half: np.ndarray
    angle: np.ndarray

    @classmethod
    def centred(cls, half: np.ndarray) -> "Boxes":
        """Make upright rectangles with the points in their middles."""
        return cls(np.zeros_like(half), half, np.zeros(len(half)))

    def reach(self) -> tuple[np.ndarray, np.ndarray]:
        """Distance from the points to the left and lower, and to the right and upper, ends; (p, 2) each."""
        cosine, sine = np.abs(np.cos(self.angle)), np.abs(np.sin(self.angle))
        width, height = self.half.T
        extent = np.stack([width * cosine + height * sine, width * sine + height * cosine], 1)
        return extent - self.offset, extent + self.offset


def meet(points: np.ndarray, first: Boxes, second: Boxes, gap: float = 0.0) -> np.ndarray:
    """Say which rectangles of one kind meet which of another, of different points; boolean (p, p).

    Two rectangles are apart if and only if they are apart along a side of one of them.
    """
    between = (points + first.offset)[:, None] - (points + second.offset)[None]
    out = _overlap(between, first, second, gap)
    out &= _overlap(-between.transpose(1, 0, 2), second, first, gap).T
    np.fill_diagonal(out, False)
    return out


def _overlap(between: np.ndarray, first: Boxes, second: Boxes, gap: float) -> np.ndarray:
    """Whether the projections on both sides of the first rectangles overlap."""
    out = np.ones(between.shape[:2], bool)
    turn = second.angle[None] - first.angle[:, None]
    cosine, sine = np.abs(np.cos(turn)), np.abs(np.sin(turn))
    width, height = second.half.T
    for side in (0, 1):
        angle = first.angle + side * np.pi / 2
        apart = np.abs(
            between[..., 0] * np.cos(angle)[:, None] + between[..., 1] * np.sin(angle)[:, None]
        )
        other = width * (sine if side else cosine) + height * (cosine if side else sine)
        out &= apart < first.half[:, side, None] + other + gap
    return out


def separate(points: np.ndarray, half: np.ndarray, rounds: int = 200) -> np.ndarray:
    """Push upright rectangles in the square [-1, 1] x [-1, 1] apart, as far as there is room.

    Parameters
    ----------
    points, half : ndarray, shape (p, 2)
        Middles, half widths and heights.
    rounds : int
        Largest number of times that all pairs are looked at.
    """
    points = into_square(points)
    if len(points) < 2:
        return points
    # Equal points have no direction in which to go
    angle = 2.4 * np.arange(len(points))
    points = points + 1e-6 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    needed = half[:, None] + half[None]
    for _ in range(rounds):
        apart = points[:, None] - points[None]
        lack = needed - np.abs(apart)
        lack[np.arange(len(points)), np.arange(len(points))] = 0
        both = (lack > 0).all(axis=-1)
        if not both.any():
            return into_square(points)
        # The shorter way, relative to the size: wide names go up or down
        along = np.argmin(lack / needed, axis=-1)[..., None] == np.arange(2)
        push = np.where(both[..., None] & along, np.sign(apart) * lack, 0.0)
        points = into_square(points + 0.3 * push.sum(axis=1))
    return into_square(points)


def into_square(points: np.ndarray) -> np.ndarray:
    """Move and stretch points to fill [-1, 1] both ways."""
    low, high = points.min(axis=0), points.max(axis=0)
    width = np.where(high - low > 1e-9, high - low, 2.0)
    return (points - (low + high) / 2) * 2 / width


def scale_to_fit(
    points: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    frame: np.ndarray,
    stretch: float = np.inf,
) -> np.ndarray:
    """Find the largest scales along both axes at which all points with what surrounds them are in a frame.

    Parameters
    ----------
    points : ndarray, shape (p, 2)
    before, after : ndarray, shape (p, 2)
        How far things reach from the points, in units of the frame, whatever the scale.
    frame : ndarray, shape (2,)
        Width and height.
    stretch : float
        Largest ratio of the two scales.

    Returns
    -------
    ndarray, shape (2,)
        Units of the frame a unit of the points.
    """
    scale = np.array([_scale(points[:, k], before[:, k], after[:, k], frame[k]) for k in (0, 1)])
    return np.minimum(scale, stretch * scale[::-1])


def _scale(x: np.ndarray, before: np.ndarray, after: np.ndarray, length: float) -> float:
    """Solve s x_i + after_i - (s x_j - before_j) <= length, for all pairs, exactly."""
    apart = x[:, None] - x[None]
    pairs = apart > 1e-9
    if not pairs.any():
        return length / 2  # all in a line: the other axis decides, if any does
    left = length - after[:, None] - before[None]
    # What surrounds the points may be wider than the frame: keep a tenth of the length
    return float(max((left[pairs] / apart[pairs]).min(), 0.1 * length / np.ptp(x)))
