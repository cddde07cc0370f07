"""Lines that bend around the nodes in their way."""

from collections.abc import Sequence

import numpy as np

#: Curvatures that are tried, in this order, until a line keeps clear of all other nodes.
BENDS = (0.0, 0.12, -0.12, 0.25, -0.25, 0.4, -0.4, 0.6, -0.6)
STEPS = np.linspace(0.04, 0.96, 24)
CLEARANCE = 2.5  # points
MANY = 1500  # lines from which on all are straight: there is no way around


def bends(
    points: np.ndarray,
    half: np.ndarray,
    ends: np.ndarray,
    choices: Sequence[float] = BENDS,
    *,
    inward: bool = False,
) -> np.ndarray:
    """Curvature of each line at which it meets no other node, or the fewest.

    Parameters
    ----------
    points : ndarray, shape (p, 2)
        Nodes, in points of the page.
    half : ndarray, shape (p, 2)
        Half widths and heights of the nodes.
    ends : ndarray of int, shape (n, 2)
    choices : sequence of float
        Curvatures, in the order of preference.
    inward : bool
        Whether lines may bend towards the middle of the nodes only: around a circle are names.

    Returns
    -------
    ndarray, shape (n,)
        0 is straight; 1 puts the control point half of the length of the line beside its middle.
    """
    out = np.full(len(ends), choices[0], float)
    if len(ends) > MANY:
        return out
    middle = (points.min(axis=0) + points.max(axis=0)) / 2 if len(points) else 0
    for k, (i, j) in enumerate(ends):
        fewest = np.inf
        for bend in _towards(middle, points[i], points[j], choices) if inward else choices:
            met = _met(points, half, i, j, bend)
            if met < fewest:
                out[k], fewest = bend, met
            if not met:
                break
    return out


def _towards(middle, start, end, choices: Sequence[float]) -> list[float]:
    """Curvatures to the side of a line on which the middle is."""
    side = np.sign(np.dot(middle - start, [end[1] - start[1], start[0] - end[0]])) or 1.0
    return [float(side * bend) for bend in choices if bend >= 0]


def control(start: np.ndarray, end: np.ndarray, bend) -> np.ndarray:
    """Control point of matplotlib's "arc3" curve."""
    apart = np.asarray(end - start)
    return (start + end) / 2 + np.asarray(bend)[..., None] * np.stack(
        [apart[..., 1], -apart[..., 0]], axis=-1
    )


def curve(start: np.ndarray, end: np.ndarray, bend: float, steps: np.ndarray) -> np.ndarray:
    """Points along a quadratic curve."""
    t = steps[:, None]
    return (1 - t) ** 2 * start + 2 * t * (1 - t) * control(start, end, bend) + t**2 * end


def _met(points, half, i: int, j: int, bend: float) -> float:
    """Count the other nodes on a curve; to leave the page is half as bad as to meet one."""
    path = curve(points[i], points[j], bend, STEPS)
    inside = np.abs(path[:, None] - points) < half + CLEARANCE
    met = inside.all(axis=2).any(axis=0)
    met[[i, j]] = False
    low, high = (points - half).min(axis=0), (points + half).max(axis=0)
    return float(met.sum()) + 0.5 * float(((path < low) | (path > high)).any())
