"""What a table of this size can say about pairs at all, in sentences."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.evidence_limits import Limits, limits_of
from bayesstruct.graphs.evidence import STRONG
from bayesstruct.graphs.posteriors.base import GraphPosterior

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["known_limits", "limit_note", "limit_sentence"]


def known_limits(idata: "xr.DataTree | GraphPosterior") -> Limits | None:
    """Return the limits of a result; None if they are not known, as of a posterior that was read, or nothing is tested."""
    if isinstance(idata, GraphPosterior):
        return None
    try:
        limits = limits_of(idata)
    except (ValueError, KeyError):  # not known of every result, or of a part of one
        return None
    return None if np.isnan(limits.smallest).all() else limits


def limit_note(limits: Limits | None, what: str = "an edge") -> list[str]:
    """Say so where no line can be excluded, whatever the table is, for lack of rows.

    Parameters
    ----------
    limits : Limits, optional
    what : str
        The line, with its article.
    """
    if limits is None or np.nanmin(limits.smallest) <= 1.0 / STRONG:
        return []
    _, noun = what.split(" ", 1)
    return [
        f"With {limits.rows} rows and this prior the smallest Bayes factor that {what} can have is {np.nanmin(limits.smallest):.2g}: no {noun} can be "
        f"excluded at 1/{STRONG:g}. See bs.evidence_limits(idata)."
    ]


def limit_sentence(limits: Limits | None, what: str = "an edge") -> str:
    """Say which Bayes factors a table can reach, and from which dependence on a line is found; empty if that is not known.

    Parameters
    ----------
    limits : Limits, optional
    what : str
        The line, with its article.
    """
    if limits is None:
        return ""
    known = limits.smallest[~np.isnan(limits.smallest)]
    _, noun = what.split(" ", 1)
    excluded = known <= 1.0 / STRONG
    if not excluded.any():
        says = f"no {noun} can be excluded, and *undecided* says something about the number of rows"
    elif excluded.all():
        says = f"each {noun} can be excluded"
    else:
        says = f"{int(excluded.sum()):,} of {len(known):,} can be excluded at all"
    low, high = f"{known.min():.2g}", f"{known.max():.2g}"
    smallest = low if low == high else f"{low} to {high}, by pair"
    sentence = (
        f"With {limits.rows:,} rows and this prior the smallest Bayes factor that {what} can have, where two columns are exactly independent in "
        f"the table given all others, is {smallest}: {says}."
    )
    strength = limits.strength(STRONG)
    strength = strength[np.isfinite(strength)]
    if not len(strength):
        return sentence
    return f"{sentence} A {limits.measure} in the table of about {np.median(strength):.2f} or more, in absolute value, is found."
