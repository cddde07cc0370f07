"""Make a `Plan` for chains, new or continued, from a model and the arguments of `sample`."""

from __future__ import annotations

import json
import logging

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bayesstruct.runs.chains import Plan, restore, snapshot
from bayesstruct.runs.checkpoint import Run, create, refuse_other_model
from bayesstruct.runs.fingerprint import describe_model, versions
from bayesstruct.runs.state import decode, encode, read_state

__all__ = ["Request", "make_plan"]

logger = logging.getLogger(__name__)

CHAINS = 4  # not a function of the machine: the same call gives the same result everywhere


@dataclass
class Request:
    """Arguments of `sample`."""

    draws: int
    tune: int
    chains: int | None
    random_seed: Any
    step: Any
    initvals: Any
    var_names: Sequence[str] | None
    step_options: dict[str, dict]

    def check(self, model) -> None:
        """Raise if the arguments are invalid for the model."""
        for name, least in (("draws", 1), ("tune", 0), ("chains", 1)):
            value = getattr(self, name)
            if name == "chains" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        if not model.free_RVs:
            raise ValueError("the model has no free variables: there is nothing to sample")
        unknown = set(self.var_names or ()) - {v.name for v in model.unobserved_RVs}
        if unknown:
            raise ValueError(f"var_names: the model has no unobserved variable {sorted(unknown)}")

    def settings(self, model) -> dict[str, Any]:
        """Return the settings that a continued run must share, as plain JSON."""
        tree, arrays = encode(self.step_options)
        options = [tree, {key: value.tolist() for key, value in arrays.items()}]
        return {
            "draws": int(self.draws),
            "tune": int(self.tune),
            "var_names": [v.name for v in self.stored(model)],
            "step_options": json.loads(json.dumps(options)),
        }

    def stored(self, model) -> list:
        """Return the variables to store, in the order of the model."""
        names = self.var_names
        return [v for v in model.unobserved_RVs if names is None or v.name in names]

    def compare(self, folder: Path, run: Run, model) -> None:
        """Raise ValueError if the run in `folder` is not the one that is asked for."""
        refuse_other_model(folder, run, model)
        asked = self.settings(model)
        if self.chains is not None:
            asked["chains"] = int(self.chains)
        found = [
            f"{name} is {run.settings[name]} there and {value} here"
            for name, value in asked.items()
            if run.settings[name] != value
        ]
        if self.random_seed is not None and not self._same_seed(folder):
            found.append("the random_seed differs (leave it out to continue with the stored one)")
        if found:
            _refuse(folder, found)

    def _same_seed(self, folder):
        from pymc.step_methods.state import equal_dataclass_values

        return equal_dataclass_values(read_start(folder)[0], _generator_state(self.random_seed))


def _refuse(folder, found):
    raise ValueError(
        f"{folder} holds a run with other settings: {'; '.join(found)}. Repeat the call with the "
        "settings of that run, choose another folder, or delete this one to start anew."
    )


def _generator_state(seed):
    from pymc.util import get_random_generator, get_state_from_generator

    return get_state_from_generator(get_random_generator(seed))


def read_start(folder: Path) -> tuple[Any, list[dict]]:
    """Read the state of the root random generator and the starting points of a stored run."""
    _, tree, arrays = read_state(folder / "start.npz")
    return decode(tree, arrays, like=(_generator_state(0), []))


def make_plan(
    request: Request, model, folder: Path, stored: Run | None, *, keep: bool, every: float
) -> Plan:
    """Build step methods and starting points; create the files of the run, or read those of a stored run.

    Parameters
    ----------
    request : Request
    model : pymc.Model
    folder : Path
    stored : Run or None
        The run that the folder holds.
    keep : bool
        The folder is a checkpoint, not a temporary one.
    every : float
        Seconds between checkpoints.
    """
    from pymc.backends.ndarray import NDArray

    root, points = (_generator_state(request.random_seed), None)
    if stored is not None:
        root, points = read_start(folder)
    chains = stored.chains if stored is not None else int(request.chains or CHAINS)
    generators, seeds = _spawn(root, chains)
    step, computed = _build_step(request, model, seeds, points)
    points = _starting_points(request, folder, computed, points)
    variables = request.stored(model)
    recorder = NDArray(
        model=model, vars=model.replace_rvs_by_values(variables), test_point=points[0]
    )
    run = _describe(request, model, step, recorder, chains)
    if stored is None:
        create(folder, run, start=(root, points) if keep else None, step=snapshot(step))
    else:
        run = replace(run, stats=_known_statistics(stored.stats, run.stats))
        _resume(folder, stored, run, step)
    return Plan(
        step=step,
        initial=snapshot(step),
        points=points,
        generators=generators,
        value_names=[v.name for v in model.value_vars],
        project=recorder.fn,
        folder=folder,
        run=run,
        keep=keep,
        every=every,
    )


def _spawn(root, chains):
    """Make the random generators and the seeds of the starting points just as `pm.sample` does."""
    from pymc.util import get_state_from_generator, random_generator_from_state

    generators = random_generator_from_state(root).spawn(chains)
    seeds = [generator.integers(2**30) for generator in generators]
    return [get_state_from_generator(generator) for generator in generators], seeds


def _build_step(request, model, seeds, points):
    """Return the step method and the starting points, as `pm.sample` makes them."""
    from pymc.sampling.mcmc import assign_step_methods, instantiate_steppers
    from pymc.step_methods import NUTS, CompoundStep
    from pymc.step_methods.arraystep import PopulationArrayStepShared
    from pymc.step_methods.compound import flatten_steps

    provided, selected = assign_step_methods(model, request.step)
    if not provided and len(selected) == 1 and issubclass(next(iter(selected)), NUTS):
        return _build_nuts(request, model, seeds, points)
    computed = _initial_points(request, model, seeds)
    step = instantiate_steppers(
        model, provided, selected, step_kwargs=request.step_options, initial_point=computed[0]
    )
    step = CompoundStep(step) if isinstance(step, list) else step
    for part in flatten_steps(step):
        if isinstance(part, PopulationArrayStepShared):
            raise ValueError(
                f"{type(part).__name__} lets the chains see each other and cannot be saved chain "
                "by chain: use pm.sample, or DEMetropolisZ"
            )
    return step, computed


def _initial_points(request, model, seeds):
    from pymc.initial_point import make_initial_point_fns_per_chain

    functions = make_initial_point_fns_per_chain(
        model=model, overrides=request.initvals, jitter_rvs=set(), chains=len(seeds)
    )
    return [function(seed) for function, seed in zip(functions, seeds, strict=True)]


def _build_nuts(request, model, seeds, points):
    from pymc.blocking import DictToArrayBijection
    from pymc.sampling.mcmc import init_nuts

    unused = set(request.step_options) - {"nuts"}
    if unused:
        raise ValueError(f"options for {sorted(unused)}, but the only step method here is 'nuts'")
    computed, step = init_nuts(
        chains=len(seeds),
        model=model,
        random_seed=seeds,
        progressbar=False,
        quiet=True,
        tune=request.tune,
        initvals=request.initvals,
        **request.step_options.get("nuts", {}),
    )
    if points is not None:
        # The mass matrix starts from the mean of the starting points, which may come out
        # differently in the last digit in another process; the stored ones are those that count.
        stored = [DictToArrayBijection.map(point).data for point in points]
        step.potential._initial_mean = np.mean(stored, axis=0)
        step.potential.reset()
    return step, computed


def _starting_points(request, folder, computed, stored):
    if stored is None:
        return computed
    if request.initvals is not None and not _close(computed, stored):
        _refuse(folder, ["initvals differ (leave them out to continue with the stored ones)"])
    return stored


def _close(computed, stored):
    return all(
        np.shape(new[name]) == np.shape(old[name]) and np.allclose(new[name], old[name])
        for new, old in zip(computed, stored, strict=True)
        for name in new
    )


def _describe(request, model, step, recorder, chains) -> Run:
    from pymc.step_methods.compound import flatten_steps

    steps = [[type(s).__name__, [v.name for v in s.vars]] for s in flatten_steps(step)]
    coords, dims = _labels(model, recorder.varnames)
    return Run(
        settings={**request.settings(model), "chains": chains, "steps": steps},
        model=describe_model(model),
        variables={
            name: [np.dtype(recorder.var_dtypes[name]).str, list(recorder.var_shapes[name])]
            for name in recorder.varnames
        },
        stats=[_numeric(names) for names in step.stats_dtypes],
        coords=coords,
        dims=dims,
        versions=versions(),
    )


def _numeric(stats) -> dict[str, str]:
    dtypes = {name: np.dtype(dtype) for name, dtype in stats.items()}
    # A vector has the type of its numbers with a shape, written as "(3,)<f4".
    return {
        name: f"{dtype.shape or ''}{dtype.base.str}"
        for name, dtype in dtypes.items()
        if dtype.base.kind in "biufc"
    }


def _labels(model, names):
    from pymc.backends.arviz import coords_and_dims_for_inferencedata

    coords, dims = coords_and_dims_for_inferencedata(model)
    dims = {name: [*dims[name]] for name in names if name in dims}
    used = {dim for names in dims.values() for dim in names}
    return {dim: _plain(values) for dim, values in coords.items() if dim in used}, dims


def _plain(values) -> list:
    items = [v.item() if isinstance(v, np.generic) else v for v in values]
    return [v if isinstance(v, bool | int | float | str) else str(v) for v in items]


def _known_statistics(stored, own):
    """Leave out statistics that step methods report since the run was begun: it has no files for them."""
    if len(stored) != len(own):
        return own
    return [
        {name: kind for name, kind in new.items() if name in old}
        for old, new in zip(stored, own, strict=True)
    ]


def _resume(folder, stored, run, step):
    if stored.settings["steps"] != run.settings["steps"]:
        was, now = stored.settings["steps"], run.settings["steps"]
        _refuse(folder, [f"the step methods were {was} there and are {now} here"])
    if (stored.variables, stored.stats) != (run.variables, run.stats):
        _refuse(folder, ["the stored variables or statistics have other names, types or shapes"])
    if stored.versions != run.versions:
        logger.warning(
            "continuing a run that was begun with %s, now with %s: the draws are valid but need not "
            "be those of an uninterrupted run",
            stored.versions,
            run.versions,
        )
    _, tree, arrays = read_state(folder / "step.npz")
    restore(step, decode(tree, arrays, like=snapshot(step)))
