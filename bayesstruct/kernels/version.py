"""Version numbers for compiled code that is cached on disk."""

import zlib

from pathlib import Path


def source_version(*modules) -> int:
    """Return a number that changes when the source of any of these modules changes.

    PyTensor keys its Numba cache by the graph and not by the functions a dispatch returns; this
    number, given with each dispatch, makes an edited kernel a new entry.
    """
    checksum = 0
    for module in modules:
        checksum = zlib.crc32(Path(module.__file__).read_bytes(), checksum)
    return checksum & 0x7FFFFFFF
