"""Rules about imports and files that import-linter cannot see.

``bayesstruct.models`` lives in the folder ``models``: there import-linter checks what it imports,
here is checked who imports it. The other layers are held by the contracts in ``pyproject.toml``.
"""

import ast
import importlib
import inspect
import tomllib

from functools import cache
from pathlib import Path

import pytest

import bayesstruct as bs

ROOT = Path(__file__).parents[1]
FOLDERS = {"bayesstruct": ROOT / "bayesstruct", "bayesstruct.models": ROOT / "models"}
#: Modules directly below ``bayesstruct`` re-export names for users; no module of the package uses them.
FACES = {
    f"bayesstruct.{path.stem}"
    for path in (ROOT / "bayesstruct").glob("*.py")
    if not path.stem.startswith("__")
}
#: Whoever uses a distribution or a model needs the step methods, which this face registers.
REGISTERS_STEPS = {
    ("bayesstruct.distributions", "bayesstruct.steps"),
    ("bayesstruct.models", "bayesstruct.steps"),
}
MAX_FILES, MAX_LINES, MAX_CHAIN = 25, 600, 12


@cache
def modules():
    """Every module of the package and its models, by full name."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join((package, *parts))] = path
    return found


def imported_names(source):
    """Yield the full name of every module or object that a source file imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def imports():
    """Pairs of a module and the full name of what it imports from this package."""
    return {
        (name, imported)
        for name, path in modules().items()
        for imported in imported_names(path.read_text(encoding="utf-8"))
        if f"{imported}.".startswith(("bayesstruct.", "models."))
    }


def is_within(name, package):
    """Whether a full name is a package or something in it."""
    return f"{name}.".startswith(f"{package}.")


def importers(package):
    """Modules outside of a package that import it or something in it."""
    return {
        name for name, imported in imports() if is_within(imported, package) and name != package
    }


def module_of(imported):
    """The module that an imported name is, or is defined in."""
    return imported if imported in modules() else imported.rpartition(".")[0]


# ---- who imports whom ------------------------------------------------------------------------


def test_only_the_application_imports_models():
    outside = {
        name
        for name in importers("bayesstruct.models")
        if not is_within(name, "bayesstruct.models")
    }
    assert outside
    assert all(is_within(name, "bayesstruct.app") for name in outside)


def test_models_are_imported_by_their_installed_name():
    assert importers("models") == set()


def test_no_module_imports_a_face():
    found = {
        (name, face)
        for name, imported in imports()
        if name not in FACES
        for face in FACES
        if is_within(imported, face)
    }
    between = {
        (name, face)
        for name, imported in imports()
        if name in FACES
        for face in FACES - {name}
        if is_within(imported, face)
    }
    assert found | between == REGISTERS_STEPS


def test_the_top_level_is_imported_for_the_version_alone():
    found = {
        name
        for name, imported in imports()
        if imported == "bayesstruct"
        or (module_of(imported) == "bayesstruct" and imported not in FOLDERS)
    }
    assert found == {"bayesstruct.app.cli", "bayesstruct.neighbourhoods.sampling"}  # the version


def test_names_are_imported_from_the_module_that_defines_them():
    packages = {name for name, path in modules().items() if path.stem == "__init__"}
    found = {
        (name, imported)
        for name, imported in imports()
        if imported not in modules()
        and module_of(imported) in packages - {"bayesstruct", "bayesstruct.models"}
        and name not in FACES
        and not is_within(imported, name)
    }
    assert found == set()


def test_no_private_name_is_imported():
    found = {
        (name, imported)
        for name, imported in imports()
        if any(
            part.startswith("_") and not part.startswith("__") for part in imported.split(".")[1:]
        )
    }
    assert found == set()


def private_attributes(source):
    """Yield private names that a source file reads from modules of this package."""
    tree, known = ast.parse(source), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            for alias in node.names:
                full = f"{module}.{alias.name}" if module else alias.name
                if full in modules():
                    known.add(alias.asname or alias.name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in known:
            if node.attr.startswith("_") and not node.attr.startswith("__"):
                yield ast.unparse(node)


def test_no_private_name_of_another_module_is_read():
    found = {
        (name, attribute)
        for name, path in modules().items()
        for attribute in private_attributes(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def package_of(name):
    """Package directly below ``bayesstruct`` that a module belongs to, or None."""
    parts = name.split(".")
    if len(parts) == 1 or f"bayesstruct.{parts[1]}" in FACES:
        return None
    return parts[1]


@cache
def longest_chain(package, above=()):
    """Longest chain of packages of which each imports the next, from this one down."""
    if package in above:
        raise AssertionError(f"{' -> '.join((*above, package))} import one another in a circle")
    below = {
        package_of(module_of(imported))
        for name, imported in imports()
        if package_of(name) == package
    }
    chains = [longest_chain(other, (*above, package)) for other in below - {None, package}]
    return (package, *max(chains, key=len, default=()))


def test_the_longest_chain_of_packages_is_short_and_has_no_circle():
    packages = {package_of(name) for name in modules()} - {None}
    chain = max((longest_chain(package) for package in packages), key=len)
    assert len(chain) <= MAX_CHAIN, " -> ".join(chain)
    assert chain[-2:] == ("core", "data")


# ---- files -----------------------------------------------------------------------------------


def test_no_folder_has_many_files():
    counts = {}
    for path in modules().values():
        counts[path.parent] = counts.get(path.parent, 0) + 1
    del counts[FOLDERS["bayesstruct.models"]]  # one file a problem
    assert {folder: n for folder, n in counts.items() if n > MAX_FILES} == {}


def test_no_file_is_long():
    lengths = {
        name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules().items()
    }
    assert {name: n for name, n in lengths.items() if n > MAX_LINES} == {}


def test_the_version_stands_in_one_place():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert bs.__version__ == version
    holders = [p for p in modules().values() if f'"{version}"' in p.read_text(encoding="utf-8")]
    assert holders == []


# ---- the checks see what they look for ---------------------------------------------------------


def test_the_check_finds_imports():
    source = "from bayesstruct import models\nimport bayesstruct.precision.model_parts as p"
    assert [*imported_names(source)] == ["bayesstruct.models", "bayesstruct.precision.model_parts"]
    assert "bayesstruct.modes.find_map" in importers("bayesstruct.core.modes")


def test_the_check_finds_private_names():
    source = "from bayesstruct.core import modes\nmodes._SOLVERS, modes.register_mode, other._x"
    assert [*private_attributes(source)] == ["modes._SOLVERS"]


def test_the_check_finds_chains():
    assert longest_chain("data") == ("data",)
    assert longest_chain("runs")[0] == "runs"


def untyped(function):
    """Parameters of a function without a type, and "return" if the result has none."""
    signature = inspect.signature(function)
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = {
        name
        for name, parameter in signature.parameters.items()
        if parameter.annotation is parameter.empty and parameter.kind not in variadic
    }
    return found | ({"return"} if signature.return_annotation is signature.empty else set())


@pytest.mark.parametrize("face", [*sorted(FACES), "bayesstruct.models", "bayesstruct"])
def test_public_functions_have_types(face):
    module = importlib.import_module(face)
    public = [getattr(module, name) for name in module.__all__]
    found = {f.__name__: untyped(f) for f in public if inspect.isfunction(f)}
    assert {name: missing for name, missing in found.items() if missing} == {}


def test_a_missing_type_is_seen():
    assert untyped(lambda x: x) == {"x", "return"}


def test_every_family_is_in_the_contracts():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    by_id = {contract["id"]: contract for contract in contracts}
    layers = " ".join(by_id["families"]["layers"])
    packages = {path.parent for path in (ROOT / "bayesstruct").glob("*/__init__.py")}
    assert {path.name for path in packages if f"bayesstruct.{path.name}" not in layers} == set()
    shared = {"app", "core", "data", "graphs", "modes", "runs"}
    families = {path.name for path in packages} - shared
    assert set(by_id["chapters"]["containers"]) == {f"bayesstruct.{name}" for name in families}
    assert {path.name for path in packages if not (path / "README.md").exists()} == set()
