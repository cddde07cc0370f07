"""Make the table of the cells of Sachs et al. (2005) in three states in this folder.

    python convert_sachs_discrete.py cyto_discretized.mat

What is read, changed and written is described in README.md beside this file. Needs SciPy.
"""

import csv
import gzip
import io
import sys

from pathlib import Path

from scipy.io import loadmat

FOLDER = Path(__file__).parent

# The names of Figure 3 of the paper for those of the file.
NAMES = {
    "raf": "Raf", "mek12": "Mek", "plcy": "Plcg", "pip2": "PIP2", "pip3": "PIP3", "erk": "Erk",
    "akt": "Akt", "pka": "PKA", "pkc": "PKC", "p38": "P38", "jnk": "Jnk",
}  # fmt: skip


def main(path: str) -> None:
    """Write sachs_discrete.csv.gz."""
    file = loadmat(path)
    names = [NAMES[str(label[0])] for label in file["labels"][0]]
    targets = ["none", *names]  # column 1, 2, ... was acted on, or 0: none
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names, "intervention"])
    for row, target in zip(file["X"].tolist(), file["intervention"].ravel().tolist(), strict=True):
        writer.writerow([*row, targets[target]])
    # No time stamp: the same file gives the same bytes.
    (FOLDER / "sachs_discrete.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


if __name__ == "__main__":
    main(sys.argv[1])
