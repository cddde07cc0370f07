"""The folder of a run: draws as memory-mapped arrays, states of the sampler, and settings.

Layout (arrays and JSON only; nothing that is read back is a pickle)::

    run.json                    settings, fingerprint of the model, layout, versions; written last
    start.npz step.npz          seed and starting points; sampler state before the first draw
    lock                        held by the process that is writing
    chain.0/
        posterior.000.mu.npy    one memory map (draws, *shape) for each stored variable
        stats.0.lp.npy          one (draws, ...) for each number or vector that a step method reports
        state.0.npz state.1.npz position, point and sampler state: written in turn, renamed atomically
        failed.json             position at which a step method failed, if that is after the newest state

The rows of the arrays count only up to the position in the newest readable state, or at which a step failed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import time

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from bayesstruct.runs.fingerprint import describe_model, differences, versions
from bayesstruct.runs.state import read_state, write_bytes, write_state

__all__ = ["ChainStore", "Run"]

FORMAT = 1
_FAILED = "failed.json"


@dataclass
class Run:
    """Everything about a run that is plain JSON (the content of `run.json`).

    Attributes
    ----------
    settings : dict
        Draws, tune, chains, stored names, step methods and their options.
    model : dict
        See `bayesstruct.runs.fingerprint.describe_model`.
    variables : dict
        Stored variables: name -> [dtype, shape of one draw].
    stats : list of dict
        One for each step method: name of the statistic -> dtype.
    coords, dims : dict
        Labels of the stored variables, for reading without the model.
    versions : dict
    """

    settings: dict[str, Any]
    model: dict[str, Any]
    variables: dict[str, list]
    stats: list[dict[str, str]]
    coords: dict[str, list] = field(default_factory=dict)
    dims: dict[str, list] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def draws(self) -> int:
        """Draws of each chain after warm-up."""
        return self.settings["draws"]

    @property
    def tune(self) -> int:
        """Warm-up iterations of each chain."""
        return self.settings["tune"]

    @property
    def chains(self) -> int:
        """Number of chains."""
        return self.settings["chains"]

    def write(self, folder: Path) -> None:
        """Write `run.json`; from then on the folder is a checkpoint."""
        text = json.dumps(asdict(self), indent=1, allow_nan=False)
        write_bytes(folder / "run.json", text.encode())

    @classmethod
    def read(cls, folder: Path) -> Run:
        """Read `run.json`.

        Raises
        ------
        FileNotFoundError
            If the folder holds no run.
        ValueError
            If the file is damaged or of a later format.
        """
        path = folder / "run.json"
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            run = cls(**content)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{path} is damaged or was not written by bayesstruct ({error})"
            ) from error
        if run.format != FORMAT:
            raise ValueError(f"{path} has format {run.format}; this version reads format {FORMAT}")
        return run

    def arrays(self) -> Iterator[tuple[tuple, str, np.dtype, tuple[int, ...]]]:
        """Yield (key, file name, dtype, shape) of every array of one chain."""
        for i, (name, (dtype, shape)) in enumerate(self.variables.items()):
            file = f"posterior.{i:03d}.{quote(name, safe='')[:80]}.npy"
            yield ("posterior", name), file, np.dtype(dtype), (self.draws, *shape)
        for s, names in enumerate(self.stats):
            for name, dtype in names.items():
                file = f"stats.{s}.{quote(name, safe='')[:80]}.npy"
                kind = np.dtype(dtype)
                yield (s, name), file, kind.base, (self.draws, *kind.shape)

    def bytes_on_disk(self) -> int:
        """Size of the draws of all chains."""
        one = sum(dtype.itemsize * int(np.prod(shape)) for _, _, dtype, shape in self.arrays())
        return one * self.chains


class ChainStore:
    """The files of one chain.

    Parameters
    ----------
    folder : Path
        Of the run.
    run : Run
    chain : int
    mode : {"read", "live", "write"}
        `live` shows what another process is writing; `read` copies small arrays.

    Raises
    ------
    ValueError
        If a file is missing, cut short, or does not have the dtype and shape that `run.json` says.
    """

    def __init__(self, folder: Path, run: Run, chain: int, *, mode: str = "read"):
        self.folder, self.run, self.chain = chain_folder(folder, chain), run, chain
        self._slot, self._dirty = 0, False
        self._maps = {
            key: _open_array(self.folder / file, dtype, shape, mode)
            for key, file, dtype, shape in run.arrays()
        }
        # A plain view: assigning a row to a np.memmap costs several times as much.
        self._arrays = {key: np.asarray(array) for key, array in self._maps.items()}

    def record(self, row: int, values, stats) -> None:
        """Store one draw: values in the order of `run.variables`, statistics as PyMC hands them."""
        self._dirty = True
        for name, value in zip(self.run.variables, values, strict=True):
            self._arrays["posterior", name][row] = value
        for s, names in enumerate(self.run.stats):
            for name in names:
                if name in stats[s]:
                    self._arrays[s, name][row] = stats[s][name]

    def commit(self, header: dict, value: Any, *, durable: bool = True) -> None:
        """Make the draws so far count, together with the state that continues after them."""
        if durable and self._dirty:  # nothing is stored during warm-up
            for array in self._maps.values():
                array.flush()  # the rows must be on the disk before the state that vouches for them
        write_state(self.folder / f"state.{self._slot}.npz", header, value, durable=durable)
        self._slot, self._dirty = 1 - self._slot, False

    def keep(self, iteration: int, seconds: float) -> None:
        """Make the draws before a failure count; a run that is continued repeats those after the newest state."""
        for array in self._maps.values():
            array.flush()
        content = json.dumps({"iteration": iteration, "seconds": seconds})
        write_bytes(self.folder / _FAILED, content.encode())

    def begin(self) -> None:
        """Forget an earlier failure: what follows the newest state is drawn again."""
        (self.folder / _FAILED).unlink(missing_ok=True)

    def latest(self) -> tuple[dict, Any, dict] | None:
        """Return the newest readable state (header, tree, arrays), or None if none was written.

        Raises
        ------
        ValueError
            If states were written and none is readable.
        """
        slot, state = _newest_state(self.folder)
        if state is not None:
            self._slot = 1 - slot
        return state

    def trace(self, model, rows: int):
        """Show the first `rows` draws as a PyMC trace."""
        from pymc.backends.ndarray import NDArray

        names = [_Named(name) for name in self.run.variables]
        trace = NDArray(
            model=model,
            vars=names,
            fn=len,  # nothing is recorded through this view
            var_shapes={n: tuple(s) for n, (_, s) in self.run.variables.items()},
            var_dtypes={n: np.dtype(d) for n, (d, _) in self.run.variables.items()},
        )
        trace.chain = self.chain
        stats = [{n: np.dtype(d) for n, d in names.items()} for names in self.run.stats]
        trace._set_sampler_vars(stats)
        trace.samples = {n: self._arrays["posterior", n] for n in self.run.variables}
        trace._stats = [
            {n: self._arrays[s, n] for n in names} for s, names in enumerate(self.run.stats)
        ]
        trace.draws, trace.draw_idx = self.run.draws, rows
        return trace


@dataclass(frozen=True)
class _Named:
    name: str


def chain_folder(folder: Path, chain: int) -> Path:
    """Folder of one chain."""
    return folder / f"chain.{chain}"


def _open_array(path, dtype, shape, mode):
    try:
        array = np.lib.format.open_memmap(path, mode="r")  # refuses a file that was cut short
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is missing or damaged ({error})") from error
    if array.dtype != dtype or array.shape != shape:
        raise ValueError(f"{path} holds {array.dtype}{array.shape}, expected {dtype}{shape}")
    if mode == "write":
        return np.lib.format.open_memmap(path, mode="r+")
    # A process may hold about a thousand open files: small arrays are read at once.
    return np.array(array) if mode == "read" and array.nbytes < 2**20 else array


def _newest_state(folder: Path):
    found, damaged = [], []
    for slot in (0, 1):
        try:
            found.append((slot, read_state(folder / f"state.{slot}.npz")))
        except FileNotFoundError:
            pass
        except ValueError as error:
            damaged.append(str(error))
    if found:
        return max(found, key=lambda item: item[1][0]["iteration"])
    if damaged:
        raise ValueError(
            f"{'; '.join(damaged)}. Delete the state files in {folder} to run this chain again "
            "from its start (the result will be the same)."
        )
    return 0, None


def iteration_of(folder: Path, chain: int) -> tuple[int, float]:
    """Return how many iterations (warm-up included) of a chain count, and the seconds they took."""
    _, state = _newest_state(chain_folder(folder, chain))
    return (0, 0.0) if state is None else (state[0]["iteration"], state[0]["seconds"])


def recorded_of(folder: Path, chain: int) -> tuple[int, float]:
    """Return as `iteration_of` how far a chain has come, with the draws before a failure."""
    reached, file = iteration_of(folder, chain), chain_folder(folder, chain) / _FAILED
    if not file.exists():
        return reached
    failed = json.loads(file.read_text())
    return max(reached, (failed["iteration"], failed["seconds"]))


def create(folder: Path, run: Run, *, start: Any, step: Any) -> None:
    """Lay out the files of a new run.

    Parameters
    ----------
    folder, run
    start : tuple or None
        State of the root generator and starting points; None if the run will not be resumed.
    step : tuple
        State of the step method before the first draw.

    Raises
    ------
    OSError
        If the disk is too small, full or not writable.
    """
    needed, free = run.bytes_on_disk(), shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"the draws need {needed / 1e9:.2f} GB and {free / 1e9:.2f} GB are free: choose another "
            "`checkpoint`, fewer draws or chains, or name fewer variables in `var_names`",
            str(folder),
        )
    try:
        for chain in range(run.chains):
            _create_chain(folder, run, chain)
    except OSError:
        for chain in range(run.chains):  # give the space back
            shutil.rmtree(chain_folder(folder, chain), ignore_errors=True)
        raise
    if start is not None:
        write_state(folder / "start.npz", {}, start)
        write_state(folder / "step.npz", {}, step)
    run.write(folder)


def _create_chain(folder, run, chain):
    chain_folder(folder, chain).mkdir(exist_ok=True)
    for stale in chain_folder(folder, chain).iterdir():
        stale.unlink()
    for _, file, dtype, shape in run.arrays():
        _allocate(chain_folder(folder, chain) / file, dtype, shape)


def _allocate(path, dtype, shape):
    np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    if hasattr(os, "posix_fallocate"):
        # Writing to a hole in a memory map when the disk is full kills the process (SIGBUS):
        # claim the blocks now, where it is an ordinary OSError.
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


def prepare_folder(path: str | os.PathLike) -> Path:
    """Return `path` as a folder that a run may use, creating it if need be.

    Raises
    ------
    ValueError
        If it is a file, or a folder with other things in it.
    OSError
        If it cannot be created or written to.
    """
    folder = Path(path).expanduser()
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"checkpoint={str(path)!r} is a file: give the name of a folder")
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "the checkpoint folder is not writable", str(folder))
    if not (folder / "run.json").exists():
        ours = ("chain.", "start.npz", "step.npz", "lock", "run.json")
        foreign = sorted(p.name for p in folder.iterdir() if not p.name.startswith(ours))
        if foreign:
            raise ValueError(
                f"{folder} is not a checkpoint and is not empty (it holds {foreign[0]!r}): "
                "choose a new folder"
            )
    return folder


@contextlib.contextmanager
def locked(folder: Path, *, patience: float = 10.0) -> Iterator[None]:
    """Hold the folder for this process and the workers that it forks.

    Notes
    -----
    The system releases the lock when the last of them has died, however that happened; so a run
    that is resumed at once waits for orphaned workers of the killed one to be gone.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with open(folder / "lock", "wb") as file:
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise ValueError(f"{folder} is in use by another running process") from error
                time.sleep(0.1)
            except OSError:
                break  # a file system without locks
        yield


def refuse_other_model(folder: Path, run: Run, model) -> None:
    """Raise ValueError if `model` is not the one that the run was made with."""
    found = differences(run.model, describe_model(model), same_versions=run.versions == versions())
    if found:
        raise ValueError(
            f"{folder} belongs to another model: {'; '.join(found)}. Choose another folder, or "
            "delete this one to start anew."
        )
