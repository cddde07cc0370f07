"""The fast lane: what ``pytest`` runs when nothing is said, and how long a test of it may take."""

import os

from pathlib import Path

#: Seconds of processor time that a test without a mark may take where machine code is on disk.
LIMIT = 2.0
LANES = ("statistical", "chain", "slow", "calibration")


def processor_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def marked(item) -> bool:
    """Whether a test is in another lane than the fast one."""
    return any(item.get_closest_marker(lane) for lane in LANES)


def asks_for_files(config) -> bool:
    """Whether all that is asked for are files or tests in them, and no marks are."""
    arguments = config.invocation_params.args
    if any(str(argument).startswith("-m") for argument in arguments):
        return False
    named = [Path(argument.split("::")[0]) for argument in config.args]
    return all(path.suffix == ".py" for path in named)
