"""Check the options of the priors that a model offers."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from bayesstruct.data.arguments import is_number
from bayesstruct.data.names import nearest

__all__ = ["POSITIVE", "check_options", "refuse_other_options"]

#: Options of priors that are positive numbers.
POSITIVE = {
    "expected_edges",
    "expected_neighbours",
    "negligible",
    "rate",
    "slab_scale",
}


def check_options(prior: str, options: dict, **given: Any) -> dict:
    """Return the options that were given, after a check that they apply to the prior.

    Parameters
    ----------
    prior : str
    options : dict
        Names of the options of each prior, by the name of the prior.
    **given
        Options by name; None where not given. Those that are named in `POSITIVE` must be positive.

    Returns
    -------
    dict
        The options that were given.

    Raises
    ------
    ValueError
        For an unknown prior, an option of another prior, or a number that is out of range.
    """
    if not isinstance(prior, str) or prior not in options:
        raise ValueError(nearest("prior", prior, options))
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        _refuse_other(prior, options, name)
        if (
            name in POSITIVE and not 1e-100 < _number(name, value) < 1e100
        ):  # its square is finite too
            raise ValueError(f"`{name}` must be positive and finite, it is {value}")
    return given


def refuse_other_options(
    function: Callable[..., Any], prior: str, options: dict, values: dict
) -> None:
    """Raise if an option that does not apply to the prior has another value than its default.

    Parameters
    ----------
    function : callable
        Its signature has the defaults.
    prior : str
    options : dict
        Names of the options of each prior, by the name of the prior.
    values : dict
        Value of each option of any prior.

    Raises
    ------
    ValueError
        Names the option and the priors that have it.
    """
    defaults = signature(function).parameters
    for name, value in values.items():
        default = defaults[name].default
        plain = np.ndim(value) == 0 and not hasattr(value, "owner")
        if value is not default and not (plain and value == default):
            _refuse_other(prior, options, name)


def _refuse_other(prior, options, name):
    if name not in options[prior]:
        owners = " or ".join(f'prior="{p}"' for p, names in options.items() if name in names)
        raise ValueError(f"`{name}` goes with {owners}")


def _number(name, value):
    if not is_number(value):
        raise ValueError(f"`{name}` must be a number, it is {value!r:.60}")
    return float(value)
