"""What import-linter cannot see, because it looks for packages by their folders.

``bayesstruct.models`` lives in the folder ``models``: there import-linter checks what it imports,
here is checked who imports it. The other rooms are held by the contracts in ``pyproject.toml``.
"""

import ast

from pathlib import Path

ROOT = Path(__file__).parents[1]
ABOVE_MODELS = {"__main__", "cli", "cli_learn", "__init__"}  # __init__ only when asked for a name


def imported_names(source):
    """Yield the full name of every module or object that a source file imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def importers(name):
    """Return the files of the package that import a module or something in it."""
    files = sorted((ROOT / "bayesstruct").rglob("*.py"))
    return {
        path.relative_to(ROOT / "bayesstruct").with_suffix("").as_posix()
        for path in files
        if any(f"{found}.".startswith(f"{name}.") for found in imported_names(path.read_text()))
    }


def test_only_what_a_person_runs_imports_models():
    assert importers("bayesstruct.models") <= ABOVE_MODELS


def test_models_are_imported_by_their_installed_name():
    assert importers("models") == set()


def test_the_check_finds_imports():
    source = "from bayesstruct import models\nimport bayesstruct.precision.model_parts as p"
    assert [*imported_names(source)] == ["bayesstruct.models", "bayesstruct.precision.model_parts"]
    assert "cli_learn" in importers("bayesstruct.models")
