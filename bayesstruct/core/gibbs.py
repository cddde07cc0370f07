"""Step methods that draw a part of a model from its conditional distributions, and their registry."""

from functools import wraps
from typing import Any

import numpy as np
import pymc as pm

from pymc.step_methods import STEP_METHODS
from pymc.step_methods.compound import BlockedStep, StepMethodState
from pymc.util import get_random_generator

import bayesstruct.core.interpreted
import bayesstruct.core.lean_graphs  # noqa: F401 (rewrites of the graphs of this package)

__all__ = ["GibbsStep", "asked_before", "register_step"]

_LATER: dict[type, tuple[type, ...]] = {}


def register_step(step: type | None = None, *, before: type | tuple[type, ...] = ()) -> Any:
    """Let ``pm.sample`` assign a step method unasked.

    PyMC gives a variable to the first step method in its list with the highest competence. New ones
    come first. Where two step methods of this package accept the same variable, the more specific one names the other.

    Parameters
    ----------
    step : type, optional
        Subclass of a PyMC step method. Without it a decorator is returned.
    before : type or tuple of type
        Registered step methods that accept variables of this one too, and must be asked later.

    Returns
    -------
    type
        The step method.

    Raises
    ------
    ValueError
        If a step method of `before` is not registered.

    Examples
    --------
    >>> from bayesstruct.core.gibbs import GibbsStep, register_step
    >>> @register_step
    ... class FlipCoins(GibbsStep):
    ...     name = "flip_coins"
    >>> from pymc.step_methods import STEP_METHODS
    >>> STEP_METHODS[0].name
    'flip_coins'
    >>> STEP_METHODS.remove(FlipCoins)
    """
    if step is None:
        return lambda step: register_step(step, before=before)
    later = before if isinstance(before, tuple) else (before,)
    for other in later:
        if other not in STEP_METHODS:
            raise ValueError(f"{other.__name__} must be registered before {step.__name__} names it")
    if step not in STEP_METHODS:
        STEP_METHODS.insert(0, step)
        _LATER[step] = later
    return step


def asked_before(step: type, other: type) -> bool:
    """Whether a step method has said, directly or through others, that it is asked before another."""
    later = _LATER.get(step, ())
    return other in later or any(asked_before(one, other) for one in later)


def _in_rows(step):
    """Let arrays of a drawn point be stored row by row: PyTensor compiles anew for every other order."""

    @wraps(step)
    def stepped(self, point):
        point, statistics = step(self, point)
        for value in self.vars:
            point[value.name] = np.asarray(point[value.name], order="C")
        return point, statistics

    return stepped


class GibbsStep(BlockedStep):
    """Step method that draws variables of a model which belong together.

    A subclass defines ``name``, `prepare`, ``step(point)`` and ``competence(var, has_grad)``. What a
    chain remembers beside its point and its generator goes into a ``_state_class`` of its own.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables, or random variables.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
        Passed to the compilation of expressions of the model.
    rng : numpy.random.Generator, optional
    blocked : bool
        Whether one step draws all variables; for PyMC.
    **options
        Options of the subclass.

    Raises
    ------
    ValueError
        If the variables cannot be drawn exactly.
    """

    default_blocked = True
    _state_class = StepMethodState

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = _in_rows(cls.step)

    def __init__(
        self,
        vars,
        *,
        model=None,
        initial_point=None,
        compile_kwargs=None,
        rng=None,
        blocked=True,
        **options,
    ):
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        self.rng = get_random_generator(rng)
        self.initial_point, self.compile_kwargs = initial_point, compile_kwargs
        self.prepare(model, [model.values_to_rvs[v] for v in self.vars], **options)

    def prepare(self, model, drawn, **options):
        """Recognise the part of the model around the random variables `drawn`, or raise."""
        raise NotImplementedError
