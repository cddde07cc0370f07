"""Make the table of the 1996 election study in this folder from a `statsmodels` wheel.

    pip download --no-deps statsmodels==0.14.5
    python convert_anes96.py statsmodels-0.14.5-*.whl

What is read, changed and written is described in README.md beside this file.
"""

import csv
import gzip
import io
import sys
import zipfile

from pathlib import Path

FOLDER = Path(__file__).parent
SOURCE = "statsmodels/datasets/anes96/anes96.csv"

# Our names of the columns that are kept, in our order, for those of the file.
NAMES = {
    "TVnews": "tv_news", "educ": "education", "selfLR": "self", "ClinLR": "clinton",
    "DoleLR": "dole", "PID": "party", "vote": "vote",
}  # fmt: skip


def main(wheel: str) -> None:
    """Write anes96.csv.gz."""
    with zipfile.ZipFile(wheel) as archive:
        file = io.StringIO(archive.read(SOURCE).decode())
    rows = csv.DictReader(file, delimiter="\t", quotechar="'")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(NAMES.values())
    writer.writerows([row[name] for name in NAMES] for row in rows)
    # No time stamp: the same wheel gives the same bytes.
    (FOLDER / "anes96.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


if __name__ == "__main__":
    main(sys.argv[1])
