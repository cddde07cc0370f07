"""`bayesstruct compile`: compile what a first run of a model needs, ahead of it."""

import contextlib
import logging
import time
import warnings

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bayesstruct.app.digits import same_digits
from bayesstruct.models.catalogue import MODELS

__all__ = ["compile_model", "folders", "unusable"]

FEW = 5


def compile_model(name: str) -> float:
    """Run a model on small tables, with each of its priors, so that its machine code is on disk.

    PyTensor's functions are compiled as Python compiles them, and as the command line does: the second takes some seconds more.

    Parameters
    ----------
    name : str
        Of a model of the catalogue.

    Returns
    -------
    float
        Seconds.
    """
    start = time.perf_counter()
    with _silence():
        for table, options in _runs(name):
            _run(name, table, options)
            with same_digits():
                _run(name, table, options)
    return time.perf_counter() - start


def folders() -> dict[str, Path]:
    """Return where the machine code is stored, by who stores it there."""
    import pytensor

    from bayesstruct.core.jit import cache_folder

    return {"Numba": cache_folder(), "PyTensor": Path(pytensor.config.base_compiledir)}


def unusable() -> str | None:
    """Say which folder that was asked for cannot be written to, and the remedy; None if all can."""
    import numba
    import pytensor

    from bayesstruct.core.machine_code.cache_folders import versions_folder, writable

    settings: Any = numba.config
    asked = settings.CACHE_DIR or versions_folder()
    if asked is not None and not writable(Path(asked)):
        return f"{asked} cannot be written to: name a folder for machine code by NUMBA_CACHE_DIR"
    compiled = Path(pytensor.config.base_compiledir)
    if not writable(compiled):
        return (
            f"{compiled} cannot be written to: name a folder for PyTensor's machine code by "
            "PYTENSOR_FLAGS=base_compiledir=FOLDER"
        )
    return None


def _runs(name: str) -> list[tuple[Any, dict[str, Any]]]:
    """Tables and options of the runs: the example with each prior, and what runs other code."""
    from bayesstruct.models.examples import example, further

    rng = np.random.default_rng(1)
    table, options = example(name, rng)
    own = [options | {"prior": prior} for prior in MODELS[name].priors] or [options]
    return [*((table, given) for given in own), *further(name, rng)]


def _run(name: str, table: Any, options: dict[str, Any]) -> None:
    """Make all first calls of a model."""
    import pymc as pm

    from bayesstruct import models

    quiet = {"progressbar": False, "random_seed": 1}
    with getattr(models, name)(table, **options) as model:
        result = pm.sample(
            draws=FEW, tune=FEW, chains=1, cores=1, compute_convergence_checks=False, **quiet
        )
        # Regressions on neighbours have no predictive draws.
        if options.get("prior") != "pseudo_likelihood":
            pm.sample_prior_predictive(FEW, random_seed=1)
            pm.sample_posterior_predictive(result, **quiet)
        pm.compute_log_likelihood(result, progressbar=False)
    if MODELS[name].family == "neighbourhoods":
        _one_by_one(model, quiet)
    _mode(model)


def _one_by_one(model, quiet) -> None:
    """Draw the regressions of a neighbourhood model by themselves, if its prior has that."""
    from bayesstruct.core.recognition import NotRecognized
    from bayesstruct.neighbourhoods.sampling import sample_neighbourhoods

    with contextlib.suppress(NotRecognized, ValueError):
        sample_neighbourhoods(model, draws=FEW, tune=FEW, chains=1, cores=1, **quiet)


def _mode(model) -> None:
    """Find the mode, if a solver of this package serves the model."""
    from bayesstruct.core.modes import mode_solvers
    from bayesstruct.core.recognition import NotRecognized
    from bayesstruct.modes.find_map import find_MAP

    for solver in mode_solvers():
        # ValueError: the posterior has no mode.
        with contextlib.suppress(NotRecognized, ValueError):
            if solver.recognise(model) is not None:
                find_MAP(model)
                return


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Leave out what is said of runs, which here are too short for any use."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
