"""Documents are finished: no placeholder was left in them, notebooks ran through and are numbered without a gap."""

import json
import re

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: What is put where a figure, a sentence or a name is to follow.
PLACEHOLDER = re.compile(
    r"@[A-Z][A-Z_0-9]*@|\b(?:TODO|FIXME|XXX|TBD|TBA)\b|lorem ipsum|\{\{.*?\}\}|<(?:FIGURE|NUMBER|TEXT)>|\?\?\?"
)
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TEXTS = sorted(
    path
    for folder in (ROOT, ROOT / "docs", ROOT / "benchmarks", *(ROOT / "bayesstruct").iterdir())
    if folder.is_dir()
    for path in folder.glob("*.md")
)


def sources(path):
    """Texts of a document: those of the cells of a notebook, without their outputs."""
    if path.suffix != ".ipynb":
        return [path.read_text(encoding="utf-8")]
    return [
        "".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    ]


@pytest.mark.parametrize("path", [*NOTEBOOKS, *TEXTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_placeholder_is_left(path):
    found = [match for text in sources(path) for match in PLACEHOLDER.findall(text)]
    assert found == []


@pytest.mark.parametrize("text", ["@FIT@", "it is @N_ROWS@ rows", "TODO: more", "a figure of ???"])
def test_placeholders_are_found(text):
    assert PLACEHOLDER.search(text)


def test_notebooks_are_numbered_without_a_gap():
    numbers = [int(path.name[:2]) for path in NOTEBOOKS]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_ran_through(path):
    cells = [
        cell
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]
    kinds = {output["output_type"] for cell in cells for output in cell["outputs"]}
    assert "error" not in kinds
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))


def test_documents_name_files_that_exist():
    for path in TEXTS:
        for link in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / link).exists(), f"{path.name}: {link}"
