"""Pieces for structured priors, step methods and modes of your own; see docs/write_your_own_prior.md."""

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.modes import Mode, ModeSolver, register_mode
from bayesstruct.core.readers import register_check, register_figure, register_summary
from bayesstruct.core.recognition import (
    NotRecognized,
    check_drawn,
    children_of,
    claim,
    depends_on,
    is_claimed,
    is_op,
    only_one,
    parameters,
    refusals,
)
from bayesstruct.core.recorded import Recorded, constant

__all__ = [
    "Expressions",
    "GibbsStep",
    "Mode",
    "ModeSolver",
    "NotRecognized",
    "Recorded",
    "check_drawn",
    "children_of",
    "claim",
    "constant",
    "depends_on",
    "is_claimed",
    "is_op",
    "only_one",
    "parameters",
    "refusals",
    "register_check",
    "register_figure",
    "register_mode",
    "register_step",
    "register_summary",
]
