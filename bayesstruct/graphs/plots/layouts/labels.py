"""How the nodes of a picture are named: the fullest way in which no name lies over another or over a node."""

import itertools

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bayesstruct.graphs.plots.layouts.geometry import Boxes, meet, scale_to_fit
from bayesstruct.graphs.plots.layouts.keys import Frame, Key, Measure, place_key
from bayesstruct.graphs.plots.layouts.positions import NAMED
from bayesstruct.graphs.plots.style import LINE, shorten, wrap

UPRIGHT = 24  # nodes on a circle up to which names may be upright
READABLE = 5.5  # points: no smaller names
SMALL = 9.0, 7.5, 6.5, READABLE
PADDING = 0.3  # of the size of text, between a name and its frame
SLIGHT = 1.5  # a circle may be stretched this much to fill its axes

OUTSIDE, TURNED, FRAMED, INSIDE, BARE = "outside", "turned", "framed", "inside", "bare"


@dataclass(frozen=True)
class Candidate:
    """One way to name the nodes."""

    way: str
    texts: list[str]
    size: float
    entries: list[tuple[str, str]]
    keyed: bool


@dataclass(frozen=True)
class Arrangement:
    """Where things are on the page, in points.

    Attributes
    ----------
    way : str
        "outside" of a circle, upright or "turned"; "framed" names instead of nodes; "inside" of
        the nodes; "bare" nodes.
    texts : list of str
    size : float
        Of the texts.
    radius : float
        Of the nodes, where they are discs.
    labels, bodies : Boxes
        Of the texts and of the nodes.
    scale, shift : ndarray, shape (2,)
        The page has a point x of the data at `scale` x + `shift`.
    key : Key or None
    good : bool
        Nothing lies over anything else, and the network has a fair share of the page.
    """

    way: str
    texts: list[str]
    size: float
    radius: float
    labels: Boxes
    bodies: Boxes
    scale: np.ndarray
    shift: np.ndarray
    key: Key | None
    good: bool

    @property
    def round(self) -> bool:
        """Whether the nodes are discs."""
        return self.way != FRAMED


@dataclass(frozen=True)
class Page:
    """What nodes are arranged on.

    Attributes
    ----------
    frame : Frame
    measure : function
    scale : float
        Factor of the sizes of text.
    discs : bool
        Whether nodes have to be discs.
    ring : float
        Outer radius of a node with what is around it, against that of the node.
    """

    frame: Frame
    measure: Measure
    scale: float = 1.0
    discs: bool = False
    ring: float = 1.0


def arrange(points: np.ndarray, names: Sequence[str], page: Page, *, round: bool) -> Arrangement:
    """Find the first good way to name nodes.

    Parameters
    ----------
    points : ndarray, shape (p, 2)
    names : sequence of str, length p
    page : Page
    round : bool
        Whether the points are on a circle, so that names can go outside it.
    """
    names = [" ".join(name.split("\n")) for name in names]
    ways = _around(names, page.scale) if round else _within(names, page)
    if len(names) > NAMED:
        ways = iter(())
    found = None
    for candidate in ways:
        found = _attempt(points, candidate, page, round)
        if found is not None and found.good:
            return found
    bare = Candidate(BARE, [""] * len(names), 0.0, [], False)
    # Of few nodes that lie over each other, names that do so, too, are better than none
    if found is not None and len(names) <= UPRIGHT:
        return found
    arrangement = _attempt(points, bare, page, round)
    assert arrangement is not None
    return arrangement


def _sizes(p: int, scale: float) -> list[float]:
    """Sizes of text to try, largest first."""
    first = float(np.clip(11.5 - 0.07 * p, 8, 11))
    return [max(share * first, 6.0) * scale for share in (1, 0.85, 0.7, 0.6)]


def _candidates(texts, names, ways, sizes, *, keyed=True) -> Iterator[Candidate]:
    entries = [
        (text, name)
        for text, name in zip(texts, names, strict=True)
        if "".join(text.split()) != "".join(name.split())
    ]
    for size in sizes:
        for way in ways:
            yield Candidate(way, texts, size, entries, keyed)


def _around(names: list[str], scale: float) -> Iterator[Candidate]:
    """Ways for nodes on a circle."""
    p, sizes = len(names), _sizes(len(names), scale)
    ways = [OUTSIDE, TURNED] if p <= UPRIGHT else [TURNED]
    wrapped = [wrap(name, LINE) for name in names]
    yield from _candidates(names, names, ways[:1], sizes[:2])
    if p <= UPRIGHT:
        yield from _candidates(wrapped, names, ways[:1], sizes)
    yield from _candidates(names, names, [TURNED], sizes)
    yield from _shortened(names, ways, sizes[:2])
    yield from _numbers(names, scale)
    yield from _without_key(names, ways, scale)


def _within(names: list[str], page: Page) -> Iterator[Candidate]:
    """Ways for nodes anywhere."""
    sizes, ways = _sizes(len(names), page.scale), [] if page.discs else [FRAMED]
    yield from _candidates(names, names, ways, sizes[:2])
    wrapped = [wrap(name, LINE) for name in names]
    yield from _candidates(wrapped, names, ways, sizes)
    yield from _shortened(names, ways, sizes)
    yield from _numbers(names, page.scale)
    yield from _without_key(names, ways, page.scale)


def _shortened(names: list[str], ways, sizes) -> Iterator[Candidate]:
    """Short names where few have to be shortened: numbers are better than a page of fragments."""
    for width in (18, 14):
        texts = shorten(names, width)
        changed = sum(text != name for text, name in zip(texts, names, strict=True))
        if 0 < changed <= len(names) / 3:
            yield from _candidates(texts, names, ways, sizes)


def _numbers(names: list[str], scale: float) -> Iterator[Candidate]:
    """Names that are short anyway, or numbers, inside discs."""
    sizes = [size * scale for size in SMALL]
    if max(map(len, names)) <= 5:
        yield from _candidates(names, names, [INSIDE], sizes)
    numbers = [str(k + 1) for k in range(len(names))]
    yield from _candidates(numbers, names, [INSIDE], sizes)


def _without_key(names: list[str], ways, scale: float) -> Iterator[Candidate]:
    """Names that are cut, or numbers, where a key has no room."""
    sizes = [size * scale for size in SMALL[1:]]
    for width in (14, 10):
        yield from _candidates(shorten(names, width), names, ways, sizes, keyed=False)
    numbers = [str(k + 1) for k in range(len(names))]
    yield from _candidates(numbers, names, [INSIDE], sizes, keyed=False)


def _attempt(
    points: np.ndarray, candidate: Candidate, page: Page, round: bool
) -> Arrangement | None:
    """Arrange nodes in one way; None where the key has no room."""
    key, frame = None, page.frame
    if candidate.entries and candidate.keyed:
        key = place_key(candidate.entries, frame, page.measure, page.scale)
        if key is None:
            return None
        frame = key.left
    elif candidate.way == BARE or candidate.entries:
        key = _note(len(points), candidate.way, page)
        frame = key.left
    extent = page.measure(candidate.texts, candidate.size) / 2 if candidate.size else None
    radius = _first_radius(len(points), candidate, extent, frame)
    scale = np.full(2, frame.size.min() / 2)
    stretch = SLIGHT if round else 4.0
    for _ in range(3):  # radii and directions depend on the scale
        if candidate.way != FRAMED:
            radius = min(radius, 0.44 * _nearest(points * scale) / page.ring)
        labels, bodies = _boxes(points * scale, candidate, extent, radius, page.ring)
        before, after = (
            np.maximum(*ends) + 1 for ends in zip(labels.reach(), bodies.reach(), strict=True)
        )
        scale = scale_to_fit(points, before, after, frame.size, stretch)
    low, high = (scale * points - before).min(axis=0), (scale * points + after).max(axis=0)
    shift = frame.middle - (low + high) / 2
    fits = bool((high - low <= frame.size + 0.5).all())
    good = candidate.way == BARE or (
        fits
        and _inside_disc(candidate, extent, radius)
        and _fair_share(points, scale, frame)
        and _clear(points * scale, labels, bodies, candidate.way)
    )
    return Arrangement(
        candidate.way,
        candidate.texts,
        candidate.size,
        radius,
        labels,
        bodies,
        scale,
        shift,
        key,
        good,
    )


def _note(p: int, way: str, page: Page) -> Key:
    """Say that names are missing."""
    frame = page.frame
    texts = {
        INSIDE: [
            "numbers are places in the table: a larger figure has room for names",
            "numbers: places in the table",
        ],
        BARE: [
            f"{p:,} nodes without names: a larger figure has room for more",
            f"{p:,} nodes without names",
        ],
    }.get(way, ["names are cut: a larger figure has room for a key", "names are cut"])
    for text, size in itertools.product(texts, (7.5 * page.scale, 6.5 * page.scale)):
        width, height = page.measure([text], size)[0]
        if width <= frame.width:
            break
    left = Frame(frame.left, frame.bottom + height + 4, frame.width, frame.height - height - 4)
    corner = np.array([[frame.left + 2, frame.bottom + height]])
    return Key([text], corner, size, left)


def _first_radius(p: int, candidate: Candidate, extent, frame: Frame) -> float:
    """Largest radius of a node in points."""
    usual = (
        float(np.clip(260 - 3.6 * p, 18, 230)) ** 0.5 / 2 * np.clip(frame.size.min() / 250, 0.4, 1)
    )
    return max(usual, float(np.hypot(*extent.T).max()) + 2) if candidate.way == INSIDE else usual


def _nearest(points: np.ndarray) -> float:
    """Distance of the two points that are nearest to each other."""
    from scipy.spatial import cKDTree

    if len(points) < 2:
        return np.inf
    return float(cKDTree(points).query(points, k=2)[0][:, 1].min())


def _boxes(points, candidate: Candidate, extent, radius: float, ring: float) -> tuple[Boxes, Boxes]:
    """Boxes of the names and of the nodes."""
    body = Boxes.centred(np.full(points.shape, radius * ring))
    if candidate.way == BARE:
        return body, body
    if candidate.way == INSIDE:
        return Boxes.centred(extent), body
    if candidate.way == FRAMED:
        framed = Boxes.centred(extent + PADDING * candidate.size)
        return framed, framed
    outward = points - (points.min(axis=0) + points.max(axis=0)) / 2
    outward = outward / np.maximum(np.hypot(*outward.T), 1e-9)[:, None]
    gap = radius * ring + 3
    if candidate.way == TURNED:
        offset = (gap + extent[:, :1]) * outward
        return Boxes(offset, extent, np.arctan2(outward[:, 1], outward[:, 0])), body
    x, y = outward.T
    side = np.where(np.abs(x) < 1e-6, 0, np.sign(x))
    # Beside the node, or above it where the circle is flat
    up = np.sign(y) * np.clip((np.abs(y) - 0.5) / 0.4, 0, 1)
    return Boxes(
        gap * outward + np.stack([side, up], 1) * extent, extent, np.zeros(len(points))
    ), body


def _inside_disc(candidate: Candidate, extent, radius: float) -> bool:
    return candidate.way != INSIDE or bool(np.hypot(*extent.T).max() <= radius + 0.5)


def _fair_share(points, scale, frame: Frame) -> bool:
    """Whether the nodes are spread over enough of the page."""
    span = np.ptp(points, axis=0)
    if not span.any():
        return True
    least = 0.4 * np.array([min(frame.width, 1.5 * frame.height), frame.height])
    return bool(((span < 1e-9) | (span * scale >= least)).all())


def _clear(points, labels: Boxes, bodies: Boxes, way: str) -> bool:
    if way in (FRAMED, INSIDE):
        return not meet(points, bodies, bodies, 1.0).any()
    return not (meet(points, labels, labels, 1.0) | meet(points, labels, bodies, 1.0)).any()
