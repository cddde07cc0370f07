"""Models: one file for each structure-learning problem, each an ordinary ``pm.Model``.

The list of models is that of `catalogue`. A model is loaded when it is first used, and with it the step
methods of all families, so that ``pm.sample`` assigns them.
"""

import re
import sys

from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from inspect import signature
from types import ModuleType

from bayesstruct.models.catalogue import MODELS, catalogue

__all__ = ["catalogue", *MODELS]  # noqa: PLE0604  all of them are strings


_CLASH = re.compile(
    r"Variable name \S+ already exists|Duplicate and incompatible coordinate: (\S+)\."
)


def _refuse_unknown(function, options):
    """Raise for an option that the function of a model does not have; name the nearest one, and models that have it."""
    known = [*signature(function).parameters]
    for name in options:
        if name in known:
            continue
        model = function.__name__
        owners = [other for other in _of_all_families(model) if name in _options(other)]
        if owners:
            have = "has" if len(owners) == 1 else "have"
            raise TypeError(f"{model} has no option {name!r}; {', '.join(owners)} {have} it")
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known[1:])}"
        raise TypeError(f"{model} has no option {name!r}{hint}")


def _of_all_families(model):
    """Names of the other models, those of the same family first."""
    family = MODELS[model].family
    others = (record for name, record in MODELS.items() if name != model)
    return [record.name for record in sorted(others, key=lambda own: own.family != family)]


def _options(model):
    return signature(getattr(sys.modules[__name__], model)).parameters


def _explained(function):
    """Say which options there are, and what to do where models in one context have the same names."""

    @wraps(function)
    def build(*args, **kwargs):
        _refuse_unknown(function, kwargs)
        try:
            return function(*args, **kwargs)
        except ValueError as error:
            if not (clash := _CLASH.match(str(error))):
                raise
            remedy = (
                "names of variables clash; give each a context with a name, "
                f'with pm.Model("first"): bs.models.{function.__name__}(...), and read its part of the result with '
                'bs.submodel(idata, "first")'
            )
            if clash[1]:
                remedy = (
                    f"their tables have different labels along {clash[1]!r}, and dimensions are shared; build each in a "
                    "pm.Model of its own, outside of any other, and sample it by itself"
                )
            raise ValueError(f"Two models are in one context ({error}): {remedy}") from error

    return build


class _Models(ModuleType):
    """A package whose attributes are the functions of its modules, not the modules."""

    def __getattr__(self, name):
        if name not in MODELS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import bayesstruct.steps  # noqa: F401  registers the step methods

        import_module(f"{__name__}.{name}")
        return self.__dict__[name]

    def __setattr__(self, name, value):
        # An import, wherever it is, binds a module to its package under the name that its model has too.
        if name in MODELS and isinstance(value, ModuleType):
            import bayesstruct.steps  # noqa: F401  registers the step methods

            value = _explained(getattr(value, name))
        super().__setattr__(name, value)

    def __dir__(self):
        return sorted(__all__)


sys.modules[__name__].__class__ = _Models
