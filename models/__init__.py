"""Models: one file for each structure-learning problem, each an ordinary ``pm.Model``.

The list of models is that of `catalogue`. A model is loaded when it is first used, and with it the step
methods of all families, so that ``pm.sample`` assigns them.
"""

import sys

from importlib import import_module
from types import ModuleType

from bayesstruct.models.catalogue import MODELS, catalogue

__all__ = ["catalogue", *MODELS]  # noqa: PLE0604  all of them are strings


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

            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self):
        return sorted(__all__)


sys.modules[__name__].__class__ = _Models
