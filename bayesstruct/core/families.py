"""Find and import the modules of one chapter in all families, for what they register."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules, walk_packages

__all__ = ["import_chapters"]


def import_chapters(chapter: str) -> list[str]:
    """Import a chapter of every family that has it, with all its modules.

    Parameters
    ----------
    chapter : str
        Such as ``"modes"`` or ``"reading"``.

    Returns
    -------
    list of str
        Full names of the modules, by family.
    """
    found = []
    for family in iter_modules([str(Path(__file__).parents[1])], "bayesstruct."):
        name = f"{family.name}.{chapter}"
        if not family.ispkg or find_spec(name) is None:
            continue
        module = import_module(name)
        found.append(name)
        for inner in walk_packages(getattr(module, "__path__", []), f"{name}."):
            import_module(inner.name)
            found.append(inner.name)
    return found
