"""Checksums of a model, by which a checkpoint recognises the model that it belongs to."""

from __future__ import annotations

import re
import warnings
import zlib

from typing import Any

import numpy as np

__all__ = ["describe_model", "differences", "versions"]


def describe_model(model) -> dict[str, dict[str, Any]]:
    """Summarise a PyMC model in a few checksums, quickly and without compiling anything.

    Returns
    -------
    dict of dict
        `variables` (value variables: dtype and static shape), `observed` and `data` (checksums of
        the arrays, as far as draws depend on them), `formulas` (one checksum for each random variable, potential and deterministic,
        over all operations and constants that it is computed from).

    Notes
    -----
    The formulas are hashed on the generative graph as the user wrote it, which is built in the same
    order in every process; the log-density graph passes through rewrites and need not be.
    """
    from pymc.backends.arviz import find_constants, find_observations

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a symbolic observation has no data to compare
        observed, constants = find_observations(model), find_constants(model)
    used = _used_data(model)
    return {
        "variables": {v.name: [str(v.dtype), list(v.type.shape)] for v in model.value_vars},
        "observed": {
            name: _array_digest(_filled(model, name, value)) for name, value in observed.items()
        },
        "data": {name: _array_digest(value) for name, value in constants.items() if name in used},
        "formulas": _formulas(model),
    }


def _used_data(model) -> set[str]:
    """Names of the data that variables or potentials depend on; others are there for readers of the result."""
    from pytensor.graph.traversal import ancestors

    used = set(ancestors([*model.basic_RVs, *model.potentials, *model.deterministics]))
    used |= set(ancestors(model.rvs_to_values.values()))
    return {v.name for v in model.data_vars if v in used}


def _filled(model, name, value):
    """Observed table with what stands for its missing values; which are missing is part of the formulas."""
    return getattr(model.rvs_to_values[model[name]].tag, "filled", value)


def _array_digest(value) -> str:
    values = np.ma.getdata(value)
    if values.dtype.hasobject:
        return _digest(repr(values.tolist()))
    mask = np.ma.getmaskarray(value) if np.ma.isMaskedArray(value) else np.zeros(0, bool)
    head = f"{values.dtype.str}{values.shape}".encode()
    return _digest(head, np.ascontiguousarray(values).tobytes(), mask.tobytes())


def _digest(*parts: str | bytes) -> str:
    crc = 0
    for part in parts:
        crc = zlib.crc32(part.encode() if isinstance(part, str) else part, crc)
    return f"{crc:08x}"


def _formulas(model) -> dict[str, str]:
    roots = [*model.basic_RVs, *model.potentials, *model.deterministics]
    known: dict[Any, str] = {}
    _add_formulas(known, roots)
    return {v.name: known.get(v) or _leaf(v) for v in roots}


def _add_formulas(known: dict, outputs: list) -> None:
    """Add the checksums of variables and of all that they are computed from."""
    from pytensor.graph.traversal import explicit_graph_inputs, io_toposort

    for node in io_toposort(list(explicit_graph_inputs(outputs)), outputs):
        if node.outputs[0] in known:
            continue
        inputs = [known.get(v) or known.setdefault(v, _leaf(v)) for v in node.inputs]
        operation = _operation(node.op)
        for i, output in enumerate(node.outputs):
            known[output] = _digest(operation, *inputs, str(i))
        # One operation may stand for an expression, under whose checksum runs have been stored.
        meant = node.op.definition(*node.inputs) if hasattr(node.op, "definition") else []
        for output, expression in zip(node.outputs, meant, strict=False):
            if expression is not None:
                _add_formulas(known, [expression])
                known[output] = known[expression]


def _operation(op) -> str:
    options = [f"{key}={getattr(op, key, None)!r}" for key in getattr(op, "__props__", None) or ()]
    # Addresses of functions inside a name change from process to process.
    return re.sub(r"0x[0-9a-fA-F]+", "", f"{type(op).__name__} {op} {options}")


def _leaf(variable) -> str:
    from pytensor.compile.sharedvalue import SharedVariable
    from pytensor.graph.basic import Constant

    value = None
    if isinstance(variable, Constant):
        value = variable.data
    elif isinstance(variable, SharedVariable):
        value = variable.get_value(borrow=True)
    if isinstance(value, np.ndarray | np.generic | int | float):
        return _array_digest(np.asarray(value))
    return _digest(str(variable.type))  # slices, types, random generators


def versions() -> dict[str, str]:
    """Return the versions of the packages on which the draws depend."""
    import pymc
    import pytensor

    return {"pymc": pymc.__version__, "pytensor": pytensor.__version__, "numpy": np.__version__}


def differences(stored: dict, asked: dict, *, same_versions: bool = True) -> list[str]:
    """List in words how two descriptions (`describe_model`) differ; empty if they agree."""
    phrases = {
        "variables": "the free variable {} has another type or shape",
        "observed": "the observed values of {} differ",
        "data": "the data {} differ",
        "formulas": "the definition of {} differs",
    }
    if not same_versions:
        phrases.pop("formulas")  # operations may have been renamed between versions
    found = []
    for group, phrase in phrases.items():
        old, new = stored.get(group, {}), asked[group]
        # A stored description may hold more data than were used.
        single = set(new) - set(old) if group == "data" else set(old) ^ set(new)
        found += [f"{name!r} is in only one of the models" for name in sorted(single)]
        changed = [name for name in new if name in old and old[name] != new[name]]
        found += [phrase.format(repr(name)) for name in changed]
    return list(dict.fromkeys(found))
