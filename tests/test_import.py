"""What an import loads, in a fresh process with nothing stubbed."""

import json
import subprocess
import sys

from pathlib import Path

import pytest

HEAVY = {"numba", "matplotlib", "arviz", "nutpie", "networkx", "narwhals", "joblib", "sklearn"}
WITHOUT = {"pymc", "pytensor", "arviz", "arviz_base", "arviz_stats", "arviz_plots"}
#: Chapters of the families that are mathematics.
MATHEMATICS = ("kernels", "solvers", "exact", "penalties", "simulate", "data")
PACKAGE = Path(__file__).parents[1] / "bayesstruct"


def loaded_by(statement):
    """Top-level packages that a statement loads in a fresh process."""
    program = f"import sys, json; {statement}; json.dump(sorted(sys.modules), sys.stdout)"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def modules_of(chapter):
    """Modules of a chapter of all families, or of the package `data`."""
    roots = [path for path in PACKAGE.glob(f"*/{chapter}*") if path.stem == chapter]
    roots += [PACKAGE / chapter] if (PACKAGE / chapter).is_dir() else []
    files = [file for root in roots for file in (root.rglob("*.py") if root.is_dir() else [root])]
    names = {
        ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
        for file in files
        if "tables" not in file.parts
    }
    return sorted(name.removesuffix(".__init__") for name in names)


def test_import_loads_neither_pymc_nor_another_heavy_package():
    assert not loaded_by("import bayesstruct") & (HEAVY | WITHOUT | {"pandas", "scipy", "xarray"})


@pytest.mark.chain
def test_import_loads_no_heavy_package_after_pymc():
    forget = "known = {*sys.modules}; import bayesstruct; [sys.modules.pop(name) for name in known]"
    assert not loaded_by(f"import pymc; {forget}") & HEAVY


def test_the_command_line_loads_no_heavy_package_before_it_is_needed():
    assert not loaded_by("import bayesstruct.app.cli") & (HEAVY | WITHOUT)


def loaded_by_command(*words):
    """Top-level packages that a command of the command line loads, and its exit status."""
    program = (
        "import sys, json\nfrom bayesstruct.app.cli import main\n"
        f"sys.argv = {['bayesstruct', *map(str, words)]!r}\n"
        "try:\n    main()\nexcept SystemExit as end:\n"
        "    print(json.dumps([end.code or 0, sorted(sys.modules)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    status, names = json.loads(done.stdout.splitlines()[-1])
    return {name.partition(".")[0] for name in names}, status


TABLES = {
    "empty.csv": "",
    "header.csv": "a,b\n",
    "ragged.csv": "a,b\n1,2\n3,4,5\n",
    "repeated.csv": "a,a\n1,2\n3,5\n",
    "sheet.xlsx": "PK",
    "text.csv": "a,b\nx,1\ny,2\nz,4\n",
    "good.csv": "a,b\n1,1\n2,2\n4,5\n",
}


@pytest.mark.chain
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["models"], 0),
        (["models", "ising"], 0),
        (["learn", "--help"], 0),
        (["learn", "--model", "ising", "--help"], 0),
        (["learn", "--model", "ising", "--response", "y"], 2),
        (["compile", "--help"], 0),
        (["compile", "isnig"], 2),
        (["lern"], 2),
        (["learn", "--priro", "laplace"], 2),
        (["learn", "--model", "isnig"], 2),
        (["learn", "--prior", "laplase"], 2),
        (["learn", "--draws", "many"], 2),
        (["learn", "--rate", "-1", "--prior", "laplace"], 2),
        (["learn", "nofile.csv"], 2),
        (["learn", "sheet.xlsx"], 2),
        (["learn", "empty.csv"], 2),
        (["learn", "header.csv"], 2),
        (["learn", "ragged.csv"], 2),
        (["learn", "repeated.csv"], 2),
        (["learn", "good.csv", "--encoding", "klingon"], 2),
        (["learn", "good.csv", "--out", "header.csv"], 2),
        (["learn", "--resume", "norun"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_command_line_answers_without_heavy_packages(words, status, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    loaded, ended = loaded_by_command(*words)
    assert ended == status
    assert not loaded & (HEAVY | WITHOUT | {"pandas", "scipy", "xarray"})


def test_what_a_table_holds_is_checked_without_pymc(tmp_path):
    (tmp_path / "text.csv").write_text(TABLES["text.csv"])
    loaded, ended = loaded_by_command("learn", tmp_path / "text.csv", "--out", tmp_path / "out")
    assert ended == 2
    assert "pandas" in loaded
    assert not loaded & (HEAVY - {"narwhals"} | WITHOUT)


@pytest.mark.chain
def test_functions_that_read_results_are_found_without_pymc():
    program = (
        "import bayesstruct as bs; bs.summary, bs.check; "
        "[getattr(face, name) for face in (bs.structure, bs.plots) for name in face.__all__]"
    )
    assert not loaded_by(program) & {"pymc", "pytensor", "numba"}


@pytest.mark.chain
def test_mathematics_is_used_without_pymc():
    faces = "[bs.solvers, bs.penalties, bs.simulate, bs.exact, bs.data]"
    program = f"import bayesstruct as bs; [getattr(f, name) for f in {faces} for name in f.__all__]"
    assert not loaded_by(program) & WITHOUT


@pytest.mark.chain
def test_no_module_of_a_chapter_of_mathematics_loads_pymc():
    names = {chapter: modules_of(chapter) for chapter in MATHEMATICS}
    assert min(map(len, names.values())) > 1
    every = "; ".join(f"import {name}" for inside in names.values() for name in inside)
    assert not loaded_by(every) & WITHOUT


def test_the_check_knows_all_kernels():
    names = modules_of("kernels")
    assert "bayesstruct.networks.kernels.parent_tables" in names
    assert "bayesstruct.series.kernels" in names
    assert len(names) > 60


@pytest.mark.chain
def test_the_check_sees_what_is_loaded():
    assert "pymc" in loaded_by("import bayesstruct.sparse.priors.spike_and_slab")


def test_public_names_are_loaded_when_asked_for():
    import bayesstruct as bs

    assert {name for name in bs.__all__ if not hasattr(bs, name)} == set()
