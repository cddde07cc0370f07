"""Nested sampler states as arrays and JSON: written without pickle, read without importing anything.

A step method of PyMC hands out its state as dataclasses that nest dictionaries, named tuples, big
integers (random generators) and arrays. `encode` turns such a value into a JSON tree and a table of
arrays; `decode` puts both back *into the shape of a live example* (`like`), taken from the freshly
built step method. A file therefore never names a class: it can only fill the fields that are there.
"""

from __future__ import annotations

import copy
import dataclasses
import io
import json
import math
import os

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["decode", "encode", "read_state", "write_state"]

BIT_GENERATORS = {"MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"}


def encode(value: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """Split a nested value into a JSON tree and the arrays that it refers to.

    Parameters
    ----------
    value : object
        Any nesting of None, numbers, strings, bytes, lists, tuples, sets, dictionaries, deques,
        dataclasses, NumPy arrays, scalars, dtypes and random generators.

    Returns
    -------
    tree : object
        Strict JSON (no NaN, no infinities).
    arrays : dict of str to ndarray

    Raises
    ------
    TypeError
        If a value of another kind is met; the message names its place.

    Example
    -------
    >>> encode({"scale": np.ones(2), "count": 3})[0]
    {'dict': [['scale', {'array': '0'}], ['count', 3]]}
    """
    arrays: dict[str, np.ndarray] = {}
    return _Encoder(arrays).node(value, "state"), arrays


class _Encoder:
    def __init__(self, arrays: dict[str, np.ndarray]):
        self.arrays = arrays

    def node(self, value, where):
        if isinstance(value, np.generic):  # before float and int: np.float64 is a float
            return {"scalar": self.keep(np.asarray(value), where)}
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray):
            return self.array(value, where)
        return self.leaf(value, where) or self.container(value, where)

    def leaf(self, value, where):
        if isinstance(value, bytes):
            return {"bytes": value.hex()}
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if isinstance(value, np.random.Generator):
            return {"generator": self.node(_generator_state(value), where)}
        return None

    def container(self, value, where):
        if isinstance(value, list | tuple):
            items = self.items(value, where)
            return items if isinstance(value, list) else {"tuple": items}
        if isinstance(value, deque):
            return {"deque": self.items(value, where), "maxlen": value.maxlen}
        if isinstance(value, set | frozenset):
            return {"set": self.items(value, where), "frozen": isinstance(value, frozenset)}
        if isinstance(value, Mapping):
            pairs = [
                [self.node(k, where), self.node(v, f"{where}[{k!r}]")] for k, v in value.items()
            ]
            return {"dict": pairs}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {"fields": self.fields(value, where)}
        raise TypeError(
            f"{where} is a {type(value).__name__}, which cannot be written as arrays and JSON: "
            "a step method must keep its state in numbers, arrays, lists, dictionaries or dataclasses"
        )

    def items(self, values, where):
        return [self.node(value, f"{where}[{i}]") for i, value in enumerate(values)]

    def array(self, value, where):
        if value.dtype.hasobject:
            items = self.items(value.ravel().tolist(), where)
            return {"objects": items, "shape": list(value.shape)}
        return {"array": self.keep(value, where)}

    def keep(self, value, where):
        if value.dtype.hasobject:
            raise TypeError(f"{where} holds Python objects, which cannot be written as an array")
        key = str(len(self.arrays))
        self.arrays[key] = np.array(value)
        return key

    def fields(self, value, where):
        tree = {}
        for field in dataclasses.fields(value):
            try:
                tree[field.name] = self.node(getattr(value, field.name), f"{where}.{field.name}")
            except TypeError:
                # A frozen field (a compilation mode, say) is the same in the step that is rebuilt.
                if not field.metadata.get("frozen", False):
                    raise
        return tree


def decode(tree: Any, arrays: Mapping[str, np.ndarray], like: Any = None) -> Any:
    """Rebuild the value that `encode` has split.

    Parameters
    ----------
    tree, arrays
        The two results of `encode`.
    like : object, optional
        A value of the same structure. Needed wherever a dataclass or a named tuple was encoded,
        because the file does not name classes.

    Raises
    ------
    ValueError
        If the file and `like` have different fields: another kind of step, another version.
    """
    if isinstance(tree, list):
        return [decode(t, arrays, _item(like, i)) for i, t in enumerate(tree)]
    if not isinstance(tree, dict):
        return tree
    kind = next(iter(tree), None)
    if kind not in _DECODERS:
        raise ValueError(f"unknown entry {kind!r} in a saved sampler state")
    return _DECODERS[kind](tree, arrays, like)


def _item(like, i):
    return like[i] if isinstance(like, list | tuple | deque) and i < len(like) else None


def _decode_tuple(tree, arrays, like):
    values = [decode(t, arrays, _item(like, i)) for i, t in enumerate(tree["tuple"])]
    if not hasattr(like, "_fields"):
        return tuple(values)
    if len(values) != len(like):
        raise ValueError(f"a saved {type(like).__name__} has {len(values)} entries")
    made = type(like)(*values)
    _check_bit_generator(made)
    return made


def _check_bit_generator(state):
    # PyMC looks the name up in numpy.random and calls it: only generators may pass.
    bits = getattr(state, "bit_generator_state", None)
    if bits is not None and bits["bit_generator"] not in BIT_GENERATORS:
        raise ValueError(f"{bits['bit_generator']!r} is not a NumPy bit generator")


def _decode_dict(tree, arrays, like):
    known = like if isinstance(like, Mapping) else {}
    pairs = [(decode(k, arrays), v) for k, v in tree["dict"]]
    return {k: decode(v, arrays, known.get(k)) for k, v in pairs}


def _decode_fields(tree, arrays, like):
    saved = tree["fields"]
    if not dataclasses.is_dataclass(like) or isinstance(like, type):
        raise ValueError(f"saved fields {sorted(saved)} have no counterpart in the step method")
    names = {field.name: field for field in dataclasses.fields(like)}
    missing = {n for n, f in names.items() if n not in saved and not f.metadata.get("frozen")}
    if missing or set(saved) - set(names):
        raise ValueError(
            f"the saved state has fields {sorted(saved)} where {type(like).__name__} has "
            f"{sorted(names)}: it comes from another step method or another version"
        )
    made = copy.copy(like)
    for name, t in saved.items():
        object.__setattr__(made, name, decode(t, arrays, getattr(like, name)))
    return made


def _decode_objects(tree, arrays, like):
    flat = np.empty(len(tree["objects"]), dtype=object)
    for i, t in enumerate(tree["objects"]):
        flat[i] = decode(t, arrays)
    return flat.reshape(tree["shape"])


def _decode_set(tree, arrays, like):
    values = (decode(t, arrays) for t in tree["set"])
    return frozenset(values) if tree["frozen"] else set(values)


def _decode_generator(tree, arrays, like):
    from pymc.util import random_generator_from_state

    state = decode(tree["generator"], arrays, _generator_state(np.random.default_rng(0)))
    return random_generator_from_state(state)


_DECODERS = {
    "array": lambda tree, arrays, like: np.array(arrays[tree["array"]]),
    "scalar": lambda tree, arrays, like: arrays[tree["scalar"]][()],
    "objects": _decode_objects,
    "float": lambda tree, arrays, like: float(tree["float"]),
    "bytes": lambda tree, arrays, like: bytes.fromhex(tree["bytes"]),
    "dtype": lambda tree, arrays, like: np.dtype(tree["dtype"]),
    "tuple": _decode_tuple,
    "dict": _decode_dict,
    "set": _decode_set,
    "deque": lambda tree, arrays, like: deque(
        decode(tree["deque"], arrays, like), maxlen=tree["maxlen"]
    ),
    "fields": _decode_fields,
    "generator": _decode_generator,
}


def _generator_state(generator: np.random.Generator):
    from pymc.util import get_state_from_generator

    return get_state_from_generator(generator)


def write_state(path: Path, header: dict, value: Any, *, durable: bool = True) -> None:
    """Write a header (plain JSON) and a nested value to one `.npz`, all or nothing.

    Notes
    -----
    The bytes go to a neighbouring file that is flushed to the disk and then renamed, so `path` holds
    either the old content or the new one, also after a power cut. A zip archive carries a checksum
    of each of its members: `read_state` recognises a damaged file.
    """
    tree, arrays = encode(value)
    text = json.dumps({**header, "value": tree}, allow_nan=False)
    buffer = io.BytesIO()
    np.savez(buffer, json=np.frombuffer(text.encode(), dtype=np.uint8), **_prefixed(arrays))
    write_bytes(path, buffer.getbuffer(), durable=durable)


def _prefixed(arrays):
    return {f"array_{key}": value for key, value in arrays.items()}


def write_bytes(path: Path, data, *, durable: bool = True) -> None:
    """Replace the content of `path` atomically."""
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    os.replace(temporary, path)
    if durable and os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the renaming itself must survive a power cut
        finally:
            os.close(folder)


def read_state(path: Path) -> tuple[dict, Any, dict[str, np.ndarray]]:
    """Read what `write_state` wrote.

    Returns
    -------
    header : dict
    tree, arrays
        To be passed to `decode`.

    Raises
    ------
    ValueError
        If the file is damaged.
    FileNotFoundError
        If there is none.
    """
    import zipfile
    import zlib

    try:
        # From memory: np.load leaves a damaged file open.
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            content = {name: file[name] for name in file.files}
        header = json.loads(content.pop("json").tobytes().decode())
        tree = header.pop("value")
    except FileNotFoundError:
        raise
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is damaged ({error})") from error
    return header, tree, {name.removeprefix("array_"): value for name, value in content.items()}
