"""Machine code on disk is never older than its source, however deep the change is."""

import os
import pickle
import shutil
import subprocess
import sys
import time

from pathlib import Path

import pytest

from numba.core import caching

import bayesstruct

from bayesstruct.core import jit
from bayesstruct.core.machine_code import cache_folders

PACKAGE = Path(bayesstruct.__file__).parent


def copied(folder):
    """A copy of the package in a folder, with three functions that call one another."""
    shutil.copytree(PACKAGE, folder / "bayesstruct", ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "bayesstruct"


def write_functions(package, deepest=1):
    """Write a function that calls one that calls another, each in a file of its own."""
    for name, text in (("caller", CALLER), ("callee", MIDDLE), ("depth", DEEPEST.format(deepest))):
        (package / "core" / f"{name}.py").write_text(text)


def run_with(package, program, **variables):
    """Run a program with a copy of the package in a fresh process."""
    site = next(path for path in sys.path if path.endswith("site-packages"))
    environment = {
        **{name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"},
        # -S leaves out the installed package, which would be found by its import hook.
        "PYTHONPATH": os.pathsep.join([str(package.parent), site]),
        **{name: str(value) for name, value in variables.items()},
    }
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        check=True, capture_output=True, text=True, cwd=package.parent, env=environment,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.fixture
def copy(tmp_path):
    """A copy of the package, and a function that runs a program with it in a fresh process."""
    package = copied(tmp_path)
    return package, lambda program: run_with(package, program, NUMBA_CACHE_DIR=tmp_path / "numba")


CALLER = """
from bayesstruct.core.jit import kernel
from bayesstruct.core.callee import inner_value

@kernel
def value():
    return inner_value() + 1
"""
MIDDLE = """
from bayesstruct.core.jit import kernel
from bayesstruct.core.depth import deepest

@kernel
def inner_value():
    return 10 * deepest()
"""
DEEPEST = """
from bayesstruct.core.jit import kernel

@kernel
def deepest():
    return {}
"""
REPORT = """
from bayesstruct.core.caller import value
print(value(), sum(value.stats.cache_hits.values()), sum(value.stats.cache_misses.values()))
"""


@pytest.mark.chain
def test_an_edit_of_a_called_function_reaches_its_callers(copy):
    package, run = copy
    write_functions(package)
    assert run(REPORT) == "11 0 1"
    assert run(REPORT) == "11 1 0"  # from disk
    (package / "core" / "depth.py").write_text(DEEPEST.format(2))
    assert run(REPORT) == "21 0 1"  # compiled again: two files away from the edit


@pytest.mark.chain
def test_numba_alone_would_run_the_old_code(copy):
    package, run = copy
    plain = "import numba\n{}\n@numba.njit(cache=True)\ndef {}():\n    return {}\n"
    folder = package.parent
    (folder / "caller.py").write_text(
        plain.format("from callee import inner_value", "value", "inner_value() + 1")
    )
    (folder / "callee.py").write_text(plain.format("", "inner_value", 10))
    report = REPORT.replace("bayesstruct.core.caller", "caller")
    assert run(report) == "11 0 1"
    (folder / "callee.py").write_text(plain.format("", "inner_value", 20))
    assert run(report) == "11 1 0"


@pytest.mark.chain
def test_a_package_that_is_reached_through_a_link_is_followed_too(copy, tmp_path):
    package, run = copy
    write_functions(package)
    (tmp_path / "link").symlink_to(package.parent, target_is_directory=True)
    program = f"import sys; sys.path.insert(0, {str(tmp_path / 'link')!r})\n{REPORT}"
    assert run(program) == "11 0 1"
    (package / "core" / "depth.py").write_text(DEEPEST.format(2))
    assert run(program) == "21 0 1"


@pytest.mark.chain
def test_code_is_stored_under_the_sources_that_it_was_compiled_from(copy):
    package, run = copy
    write_functions(package)
    # As when the package is updated while a notebook is open: the old function is in memory.
    # Of another length: Python takes byte code for current by the second and the size of its source.
    text = DEEPEST.format(2) + "# edited\n"
    edit = f"open({str(package / 'core' / 'depth.py')!r}, 'w').write({text!r})"
    assert run(f"import bayesstruct.core.callee\n{edit}\n{REPORT}") == "11 0 1"
    assert run(REPORT) == "21 0 1"


@pytest.mark.chain
def test_an_edit_of_a_kernel_of_the_package_is_seen(copy):
    package, run = copy
    program = (
        "from bayesstruct.core.jit import kernel\n"
        "from bayesstruct.sparse.kernels.polya_gamma import draw_polya_gamma\n"
        "from bayesstruct.core.special import log_normal_cdf\n"
        "print(log_normal_cdf(0.0))"
    )
    before = float(run(program))
    special = package / "core" / "special.py"
    text = special.read_text()
    changed = text.replace("return math.log(0.5 * ", "return 1.0 + math.log(0.5 * ")
    assert changed != text
    special.write_text(changed)
    assert float(run(program)) == before + 1.0


def _digests(paths):
    jit.source_digest.cache_clear()
    jit._imports.cache_clear()
    return {path: jit.source_digest(str(path)) for path in paths}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A small package of its own in place of bayesstruct."""
    monkeypatch.setattr(jit, "_ROOT", tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "__init__.py").write_text("")
    yield tmp_path
    jit.source_digest.cache_clear()
    jit._imports.cache_clear()


@pytest.mark.parametrize(
    "statement",
    [
        "from bayesstruct.a.b import f",
        "from bayesstruct.a import b",
        "from bayesstruct.a import c, b as other",
        "from bayesstruct.a import (\n    c,\n    b,\n)",
        "from bayesstruct.a import (\n    c,  # (a comment)\n    b,\n)",
        "import bayesstruct.a.b",
        "def g():\n    from bayesstruct.a.b import f",
        "def g():\n    from bayesstruct.a.b import (\n        f,\n        h,\n    )",
    ],
)
def test_every_way_to_import_a_module_counts(tree, statement):
    main, b = tree / "main.py", tree / "a" / "b.py"
    main.write_text(statement + "\n")
    b.write_text("f = 1\n")
    before = _digests([main])[main]
    b.write_text("f = 2\n")
    assert _digests([main])[main] != before


def test_other_files_do_not_count(tree):
    main, other = tree / "main.py", tree / "a" / "other.py"
    main.write_text("from bayesstruct.a.b import f\n")
    other.write_text("x = 1\n")
    before = _digests([main])[main]
    other.write_text("x = 2\n")
    assert _digests([main])[main] == before


def test_circles_end(tree):
    one, two = tree / "one.py", tree / "two.py"
    one.write_text("from bayesstruct.two import f\n")
    two.write_text("from bayesstruct.one import g\n")
    digests = _digests([one, two])
    assert digests[one] == digests[two]


def test_all_kernels_are_compiled_by_this_module():
    for path in PACKAGE.rglob("*.py"):
        if "kernels" in path.as_posix() or path.name == "special.py":
            text = path.read_text()
            assert "njit" not in text, path


def test_machine_code_for_a_class_that_was_renamed_is_made_anew(tmp_path):
    """Signatures are kept with the classes of their named tuples, which are found by name."""
    index = caching.IndexDataCacheFile(str(tmp_path), "sweep", b"mark")
    renamed = b"cbayesstruct.core.jit\nRenamedSinceThen\n."
    for data, known in [(pickle.dumps((b"mark", {"a": "b"})), {"a": "b"}), (renamed, {})]:
        (tmp_path / "sweep.nbi").write_bytes(pickle.dumps(index._version) + data)
        assert index._load_index() == known


# ---- one cache for all copies of the package ---------------------------------------------------


@pytest.fixture
def two(tmp_path):
    """Two copies of the package, and a function that runs programs with a cache folder of a user."""
    one, other = (copied(tmp_path / name) for name in ("one", "other"))
    # Linux looks at the second, macOS and Windows at the others.
    home = dict.fromkeys(
        ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE"), tmp_path / "home"
    )
    return one, other, lambda package, program: run_with(package, program, **home)


FOLDER = "\nfrom bayesstruct.core.jit import cache_folder; print(cache_folder())"


@pytest.mark.chain
def test_copies_with_the_same_sources_share_their_code(two, tmp_path):
    one, other, run = two
    write_functions(one)
    write_functions(other)
    said, folder = run(one, REPORT + FOLDER).splitlines()
    assert said == "11 0 1"
    assert Path(folder).is_relative_to(tmp_path / "home")
    assert run(other, REPORT) == "11 1 0"
    assert [*one.rglob("*.nbi"), *other.rglob("*.nbi")] == []  # nothing beside the sources
    assert [*Path(folder).glob("core.caller-*/caller.value-*.nbc")] != []


@pytest.mark.chain
def test_copies_with_other_sources_do_not_disturb_one_another(two):
    one, other, run = two
    write_functions(one)
    write_functions(other, deepest=2)
    for said in ("0 1", "1 0"):  # both are still there after the other has been stored
        assert run(one, REPORT) == f"11 {said}"
        assert run(other, REPORT) == f"21 {said}"


@pytest.mark.chain
def test_without_a_cache_folder_the_code_is_beside_its_source(two, tmp_path):
    one, _, run = two
    write_functions(one)
    (tmp_path / "home").write_text("no folder can be made in a file")
    said, folder = run(one, REPORT + FOLDER).splitlines()
    assert said == "11 0 1"
    assert Path(folder) == one.resolve()
    assert run(one, REPORT) == "11 1 0"
    assert [*one.glob("core/__pycache__/caller.value-*.nbc")] != []


#: As where the image of a cluster cannot be written to; root may write everywhere.
READ_ONLY = """
import os, tempfile

def refuse(*args, **kwargs):
    raise PermissionError(13, "read-only")

os.access = lambda path, mode, **kwargs: mode != os.W_OK
os.makedirs = os.replace = tempfile.TemporaryFile = refuse
"""


@pytest.mark.chain
def test_code_in_a_folder_that_cannot_be_written_to_is_used(two):
    one, _, run = two
    write_functions(one)
    assert run(one, REPORT) == "11 0 1"
    assert run(one, READ_ONLY + REPORT) == "11 1 0"
    write_functions(one, deepest=2)  # for which there is no folder
    assert run(one, READ_ONLY + REPORT).split()[0] == "21"


@pytest.mark.chain
def test_code_that_is_not_used_is_removed_when_new_code_is_stored(two):
    one, _, run = two
    write_functions(one)
    folder = Path(run(one, REPORT + FOLDER).splitlines()[1])
    used, unused = folder / "used-0", folder.with_name("another-version") / "unused-0"
    long_ago = time.time() - 86_400 * (cache_folders.UNUSED_DAYS + 1)
    for path in (used, unused):
        path.mkdir(parents=True)
        (path / "code.nbc").touch()
    os.utime(unused, (long_ago, long_ago))
    assert run(one, REPORT) == "11 1 0"
    assert unused.exists()  # nothing new was stored
    write_functions(one, deepest=2)
    assert run(one, REPORT) == "21 0 1"
    assert not unused.exists()
    assert (used / "code.nbc").exists()


def test_the_use_of_code_is_noted(tmp_path):
    old = time.time() - 86_400 * (cache_folders.UNUSED_DAYS - 1)
    os.utime(tmp_path, (old, old))
    cache_folders.note_use(tmp_path)
    assert time.time() - tmp_path.stat().st_mtime < 86_400
    cache_folders.note_use(tmp_path / "removed meanwhile")
