"""Bayesian structure learning in PyMC.

A table goes in, a function of :mod:`bayesstruct.models` makes an ordinary ``pm.Model`` of it, plain
``pm.sample()`` draws from the posterior of its structure, and a handful of functions read that
posterior as graphs.

Everything is loaded when it is first used. The public names are listed in ``__init__.pyi``.
"""

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name):
    """Load a public name when it is first used; the version is that of the installed package."""
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("bayesstruct")
        except PackageNotFoundError:  # a checkout that is not installed
            return "0+unknown"
    try:
        return _load(name)
    except AttributeError as error:
        if name in __all__:
            raise
        raise AttributeError(f"module 'bayesstruct' has no attribute {name!r}") from error
