"""The folder of one `bayesstruct learn`: its table and settings, the draws, the results.

Everything that a run needs to be continued is in it: ``settings.json`` and
``table.npz`` (no pickle), ``run/`` (draws and states, see `bayesstruct.runs.checkpoint`).
"""

import hashlib
import json
import os
import shutil

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bayesstruct.app.report_files import RESULTS

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["InputError", "Job", "check", "check_run", "finished", "prepare", "read", "write"]

FORMAT = 1
SETTINGS, TABLE, RUN = "settings.json", "table.npz", "run"
#: Settings that determine the draws; two runs with the same ones, and the same table, are the same.
DECISIVE = ("model", "prior", "draws", "tune", "chains", "seed", "edge_probability", "rate")


class InputError(ValueError):
    """Raised if a request of the user cannot be met; the message has the reason and the remedy."""


@dataclass
class Job:
    """Settings and table of a run.

    Attributes
    ----------
    options : dict
        Plain JSON: the options of the command, the source of the table, the versions.
    frame : DataFrame
        The table as it goes into the model.
    """

    options: dict
    frame: "pd.DataFrame"


def check(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that cannot take a new run, before a table is read.

    Raises
    ------
    InputError
        If it is a file, or holds results of no run, which would be lost.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: give the name of a folder to --out")
    if overwrite or (folder / SETTINGS).exists():
        return
    taken = [name for name in (*RESULTS, TABLE, RUN) if (folder / name).exists()]
    if taken:
        raise InputError(
            f"{folder} holds a {taken[0]} that belongs to no run: choose another folder with "
            "--out, or delete it with --overwrite"
        )


def check_run(folder: Path) -> None:
    """Refuse a folder without a run, before anything of it is read.

    Raises
    ------
    InputError
    """
    if not (folder / SETTINGS).is_file():
        what = "has no settings.json" if folder.is_dir() else "does not exist"
        raise InputError(
            f"{folder} holds no run to continue (it {what}): give the folder that an earlier "
            "`bayesstruct learn --out` wrote to"
        )


def prepare(folder: Path, job: Job, *, overwrite: bool) -> bool:
    """Prepare the folder for a new run, unless it holds the same run, finished.

    Returns
    -------
    bool
        Whether there is something to write: False for a finished run of the same table and
        settings.

    Raises
    ------
    InputError
        If the folder holds files that would be lost.
    """
    check(folder, overwrite=overwrite)
    if overwrite:
        _delete(folder)
    if not (folder / SETTINGS).exists():
        return True
    stored = read(folder)
    found = _differences(stored, job)
    if found:
        raise InputError(
            f"{folder} holds another run ({'; '.join(found)}): choose another folder with --out, "
            "or delete that run with --overwrite"
        )
    if not finished(folder, stored):
        raise InputError(
            f"{folder} holds an unfinished run: add --resume {folder} (and nothing else) to "
            "continue it, choose another folder with --out, or delete it with --overwrite"
        )
    return False


def _differences(stored: Job, job: Job) -> list[str]:
    old, new = stored.options, job.options
    found = [
        f"{name.replace('_', ' ')} {old[name]} there, {new[name]} here"
        for name in DECISIVE
        if old[name] != new[name] and not (name == "seed" and new[name] is None)
    ]
    if old["digest"] != new["digest"]:
        found.insert(0, f"table {old['source']} there, {new['source']} here")
        if old["source"] == new["source"]:
            found[0] = "another version of the table"
    return found


def write(folder: Path, job: Job) -> None:
    """Store table and settings; the settings last, since they make the folder a run."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / TABLE).open("wb") as file:
        np.savez_compressed(file, values=job.frame.to_numpy(dtype="float64"))
        file.flush()
        os.fsync(file.fileno())
    content = {"format": FORMAT, "columns": [*map(str, job.frame.columns)], **job.options}
    partial = folder / f"{SETTINGS}.partial"
    partial.write_text(json.dumps(content, indent=1), encoding="utf-8")
    partial.replace(folder / SETTINGS)


def read(folder: Path) -> Job:
    """Read settings and table of the run in a folder.

    Raises
    ------
    InputError
        If the folder holds no run, or a damaged one.
    """
    check_run(folder)
    import numpy as np
    import pandas as pd

    try:
        options = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        with np.load(folder / TABLE, allow_pickle=False) as arrays:
            frame = pd.DataFrame(arrays["values"], columns=options.pop("columns"))
        matches = options.pop("format") == FORMAT and digest(frame) == options["digest"]
        if not matches or any(name not in options for name in DECISIVE):
            raise ValueError("its parts do not belong together")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
        raise InputError(
            f"the run in {folder} cannot be read ({error}): start again in another folder"
        ) from error
    return Job(options, frame)


def digest(frame: "pd.DataFrame") -> str:
    """Fingerprint of names and values."""
    import numpy as np

    names = json.dumps([*map(str, frame.columns)]).encode()
    values = np.ascontiguousarray(frame.to_numpy(dtype="float64")).tobytes()
    return hashlib.blake2b(names + values, digest_size=16).hexdigest()


def finished(folder: Path, job: Job) -> bool:
    """Return whether every chain has all its draws."""
    from bayesstruct.runs.checkpoint import iteration_of

    total = job.options["tune"] + job.options["draws"]
    if not (folder / RUN / "run.json").exists():
        return False
    chains = range(job.options["chains"])
    return all(iteration_of(folder / RUN, chain)[0] >= total for chain in chains)


def _delete(folder: Path) -> None:
    """Delete the files of an earlier run, and no others."""
    if (folder / RUN / "run.json").exists() or (folder / SETTINGS).exists():
        shutil.rmtree(folder / RUN, ignore_errors=True)
    for name in (SETTINGS, TABLE, *RESULTS):
        (folder / name).unlink(missing_ok=True)
