"""Options that belong to one prior of a model."""

from bayesstruct.data.arguments import is_number
from bayesstruct.data.names import nearest

__all__ = ["POSITIVE", "check_options"]

#: Options of priors that are positive numbers.
POSITIVE = {
    "expected_edges",
    "expected_neighbours",
    "negligible",
    "rate",
    "slab_scale",
}


def check_options(prior, options, **given):
    """Refuse an unknown prior, options that belong to another one, and numbers out of range.

    Parameters
    ----------
    prior : str
    options : dict
        The options that each prior has, by its name.
    **given
        Options by name; None where not given. Those that are named in `POSITIVE` must be positive.

    Returns
    -------
    dict
        Those that were given.
    """
    if not isinstance(prior, str) or prior not in options:
        raise ValueError(nearest("prior", prior, options))
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        if name not in options[prior]:
            owners = " or ".join(f'prior="{p}"' for p, names in options.items() if name in names)
            raise ValueError(f"`{name}` goes with {owners}")
        if (
            name in POSITIVE and not 1e-100 < _number(name, value) < 1e100
        ):  # squares are numbers too
            raise ValueError(f"`{name}` must be positive and finite, it is {value}")
    return given


def _number(name, value):
    if not is_number(value):
        raise ValueError(f"`{name}` must be a number, it is {value!r:.60}")
    return float(value)
