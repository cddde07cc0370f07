"""Steps keep all that changes between calls in their state, so that a run continues bit for bit."""

import ast
import dataclasses
import inspect
import textwrap

import numpy as np
import pytest

from bayesstruct import steps
from bayesstruct.models.dp_glm import dp_glm
from bayesstruct.models.markov_transitions import markov_transitions
from bayesstruct.models.sparse_factor_analysis import sparse_factor_analysis
from bayesstruct.runs.chains import restore, snapshot
from bayesstruct.simulate import dp_glm as simulate_mixture
from bayesstruct.simulate import markov_transitions as simulate_series

#: Made anew for each chain by `setup_chain`, or results of a call that the next does not read.
_REGRESSION = {"design", "designs", "inclusion"}
ANEW = {"SpikeSlabRegression": _REGRESSION, "GroupSpikeSlabRegression": _REGRESSION}


def assigned_between_calls(step) -> set:
    """Attributes that methods of a step set, other than methods that run once."""
    found = set()
    for kind in step.__mro__:
        if not kind.__module__.startswith("bayesstruct."):
            continue
        for node in ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body:
            if isinstance(node, ast.FunctionDef) and node.name not in (
                "__init__",
                "prepare",
                "observe",
            ):
                found |= {
                    v.attr
                    for v in ast.walk(node)
                    if isinstance(v, ast.Attribute)
                    and isinstance(v.ctx, ast.Store)
                    and getattr(v.value, "id", None) == "self"
                }
    return found


@pytest.mark.parametrize("name", steps.__all__)
def test_the_state_has_all_that_changes(name):
    step = getattr(steps, name)
    fields = {field.name for field in dataclasses.fields(step._state_class)}
    assert "rng" in fields
    assert assigned_between_calls(step) - ANEW.get(name, set()) <= fields


def test_changes_between_calls_are_seen():
    assert {"calls", "cool"} <= assigned_between_calls(steps.HiddenCauseGibbs)


def mixture():
    return dp_glm(simulate_mixture(20, 2, random_seed=1).data, "y", alpha=1.0)


def series():
    data = simulate_series(20, 2, random_seed=1).data
    return markov_transitions(data, series="series", alpha=1.0)


def factors():
    return sparse_factor_analysis(np.random.default_rng(0).normal(size=(10, 4)), alpha=1.0)


@pytest.mark.chain
@pytest.mark.parametrize(
    ("make", "kind", "head"),
    [
        (mixture, steps.DirichletMixtureGibbs, "cluster"),
        (series, steps.SwitchingSeriesMCMC, "feature"),
        (factors, steps.SparseFactorGibbs, "feature"),
    ],
)
def test_a_saved_step_continues_bit_for_bit(make, kind, head):
    model = make()
    drawn = [v for v in model.value_vars if kind.competence(model.values_to_rvs[v], False) > 0]
    assert head in {v.name for v in drawn}
    runs = []
    for seed in (1, 2):
        with model:
            step = kind(drawn, rng=seed)
        step.setup_chain(np.random.default_rng(seed), 0, 6)
        if not runs:
            point = model.initial_point()
            for _ in range(3):
                point, _ = step.step(point)
            saved, middle = snapshot(step), point
        else:
            restore(step, saved)
        runs.append([(point := step.step(point if n else middle)[0]) for n in range(3)])
    for one, other in zip(*runs, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)
