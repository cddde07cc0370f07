"""The folder of one `bayesstruct learn`: its table and settings, the draws, the results.

Everything that a run needs to be continued is in it: ``settings.json`` and
``table.npz`` (no pickle), ``run/`` (draws and states, see `bayesstruct.runs.checkpoint`).
"""

import hashlib
import json
import os
import shlex
import shutil
import zipfile

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bayesstruct.app.result_files import RESULTS
from bayesstruct.models.catalogue import MODELS

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = [
    "InputError",
    "Job",
    "as_stored",
    "change",
    "check",
    "check_run",
    "digest",
    "finished",
    "prepare",
    "read",
    "refuse_other",
    "write",
]

FORMAT = 2
SETTINGS, TABLE, RUN = "settings.json", "table.npz", "run"
#: In `RUN`, the draws of a model whose regressions are drawn one by one.
DRAWS = "draws.nc"
#: Settings that determine the draws; two runs with the same ones, and the same table, are the same.
DECISIVE = ("model", "model_options", "draws", "tune", "chains", "seed")


class InputError(ValueError):
    """Raised if a request of the user cannot be met; the message has the reason and the remedy."""


@dataclass
class Job:
    """Settings and table of a run.

    Attributes
    ----------
    options : dict
        Plain JSON. ``model`` and ``model_options`` (by name, the prior always among them), ``draws``, ``tune``, ``chains``, ``seed``;
        how the table was read: ``source``, ``columns``, ``drop``, ``missing``, ``states``, ``encoding``, ``log`` (whether logarithms
        were taken), ``cov`` (whether it is a covariance matrix); ``effects``, whether they are reported; ``given``, the words of the model's options; ``digest`` of the
        table, ``notes`` on it, and ``versions``.
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


def refuse_other(folder: Path, job: Job) -> Job | None:
    """Refuse a folder that holds another run, or an unfinished one; return a finished one of the same table and settings.

    Raises
    ------
    InputError
        With what differs.
    """
    if not (folder / SETTINGS).exists():
        return None
    stored = read(folder)
    found = _differences(stored, job)
    if found:
        raise InputError(
            f"{folder} holds another run ({'; '.join(found)}): choose another folder with --out, "
            "or delete that run with --overwrite"
        )
    if not finished(folder, stored):
        raise InputError(
            f"{folder} holds an unfinished run: add --resume {shlex.quote(str(folder))} (and nothing else) to "
            "continue it, choose another folder with --out, or delete it with --overwrite"
        )
    return stored


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
    return refuse_other(folder, job) is None


def _differences(stored: Job, job: Job) -> list[str]:
    old, new = stored.options, job.options
    found = [
        f"{name} {old[name]} there, {new[name]} here"
        for name in DECISIVE
        if name != "model_options"
        and old[name] != new[name]
        and not (name == "seed" and new[name] is None)
    ]
    if old["model"] == new["model"]:
        found += _other_options(old["model_options"], new["model_options"])
    if old["digest"] != new["digest"]:
        found.insert(0, f"table {old['source']} there, {new['source']} here")
        if old["source"] == new["source"]:
            found[0] = "another version of the table"
    return found


def _other_options(old: dict, new: dict) -> list[str]:
    return [
        f"{name.replace('_', ' ')} {old.get(name, 'not given')} there, {new.get(name, 'not given')} here"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def write(folder: Path, job: Job) -> None:
    """Store table and settings; the settings last, since they make the folder a run."""
    import numpy as np

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be made ({error.strerror}): choose another folder with --out"
        ) from error
    values, layout = _plain(job.frame)
    with (folder / TABLE).open("wb") as file:
        np.savez_compressed(file, values=values)
        file.flush()
        os.fsync(file.fileno())
    content = {"format": FORMAT, "table": layout, **job.options}
    partial = folder / f"{SETTINGS}.partial"
    partial.write_text(json.dumps(content, indent=1), encoding="utf-8")
    partial.replace(folder / SETTINGS)


def change(folder: Path, **settings: bool) -> None:
    """Change settings of a finished run that its draws do not depend on.

    Parameters
    ----------
    folder : Path
    **settings : bool
        New values by name.
    """
    job = read(folder)
    if any(job.options.get(name, False) != value for name, value in settings.items()):
        job.options.update(settings)
        write(folder, job)


def read(folder: Path) -> Job:
    """Read settings and table of the run in a folder, also of the layout before (format 1).

    Raises
    ------
    InputError
        If the folder holds no run, or a damaged one.
    """
    check_run(folder)
    import numpy as np

    try:
        options = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        if options["format"] == 1:
            options = _of_format_1(options)
        layout = options.pop("table")
        with (
            (folder / TABLE).open("rb") as file,
            np.load(file, allow_pickle=False) as arrays,
        ):
            frame = _restored(arrays["values"], layout)
        matches = options.pop("format") == FORMAT and digest(frame) == options["digest"]
        if not matches or any(name not in options for name in DECISIVE):
            raise ValueError("its parts do not belong together")
        if options["model"] not in MODELS:
            raise ValueError(f"there is no model {options['model']!r}")
        for name in ("draws", "tune", "chains", "seed"):
            if not isinstance(options[name], int):
                raise ValueError(f"{name} are no whole number: {options[name]!r}")
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        EOFError,
        zipfile.BadZipFile,
    ) as error:
        raise InputError(
            f"the run in {folder} cannot be read ({error}): start again in another folder"
        ) from error
    return Job(options, frame)


def _of_format_1(options: dict) -> dict:
    """Return settings of the first layout, which knew one model and three of its options, in the present one."""
    out = dict(options, format=FORMAT, table={"names": options["columns"]})
    own = {name: out.pop(name) for name in ("prior", "edge_probability", "rate")}
    out["model_options"] = {name: value for name, value in own.items() if value is not None}
    given = [[name, str(value)] for name, value in out["model_options"].items()]
    return {
        **out,
        "missing": options.get("missing", []),
        "given": given,
        "columns": [],
        "drop": [],
        "states": [],
        "cov": False,
    }


def _plain(frame: "pd.DataFrame") -> tuple["np.ndarray", dict]:
    """Return a table as numbers, and its names and the labels of the numbers that stand for text, categories or truth values."""
    import pandas as pd

    categories, numbers = {}, {}
    for name, column in frame.items():
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            numbers[name] = column.to_numpy(dtype="float64", na_value=float("nan"))
            continue
        stated = isinstance(column.dtype, pd.CategoricalDtype)
        coded = column.cat if stated else column.astype("object").astype("category").cat
        labels = coded.categories.tolist()
        text = all(isinstance(label, str) for label in labels)
        categories[str(name)] = {
            "labels": labels,
            "kind": "categories" if stated else "text" if text else "values",
            "ordered": bool(coded.ordered),
        }
        numbers[name] = coded.codes.astype("float64").where(coded.codes >= 0)
    layout: dict = {"names": [*map(str, frame.columns)]}
    if categories:
        layout["categories"] = categories
    if not isinstance(frame.index, pd.RangeIndex):
        layout["rows"] = [*map(str, frame.index)]
    return pd.DataFrame(numbers).to_numpy(dtype="float64"), layout


def _restored(values: "np.ndarray", layout: dict) -> "pd.DataFrame":
    """Return the table of `_plain`."""
    import pandas as pd

    frame = pd.DataFrame(values, columns=layout["names"], index=layout.get("rows"))
    for name, own in layout.get("categories", {}).items():
        codes = frame[name].fillna(-1).astype(int)
        column = pd.Categorical.from_codes(codes, own["labels"], ordered=own["ordered"])
        if own["kind"] == "categories":
            frame[name] = column
        else:
            frame[name] = pd.Series(column, index=frame.index).astype("object")
            truths = all(isinstance(label, bool) for label in own["labels"])
            if own["kind"] == "text":
                frame[name] = frame[name].astype("str")
            elif truths and (codes >= 0).all():
                frame[name] = frame[name].astype("bool")
    return frame


def as_stored(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table as it will be read from the folder of its run."""
    return _restored(*_plain(frame))


def digest(frame: "pd.DataFrame") -> str:
    """Fingerprint of names, values and labels."""
    import numpy as np

    values, layout = _plain(frame)
    names = json.dumps(layout["names"] if len(layout) == 1 else layout).encode()
    return hashlib.blake2b(
        names + np.ascontiguousarray(values).tobytes(), digest_size=16
    ).hexdigest()


def finished(folder: Path, job: Job) -> bool:
    """Return whether every chain has all its draws."""
    from bayesstruct.runs.checkpoint import iteration_of

    total = job.options["tune"] + job.options["draws"]
    if (folder / RUN / DRAWS).exists():
        return True
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
