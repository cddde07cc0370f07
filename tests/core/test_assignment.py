"""Which step method each variable of each model gets, in the context of the model and outside of it.

`assigned_steps.json` has the steps that the commit before the layout by families assigned.
"""

import inspect
import json

from pathlib import Path

import pytest

from pymc.step_methods import STEP_METHODS
from tools import compliance

import bayesstruct as bs

from bayesstruct.core.gibbs import asked_before

EXPECTED = json.loads(Path(__file__).with_name("assigned_steps.json").read_text())
SCORES = {"bge": compliance.numbers, "bdeu": compliance.codes, "bde": compliance.codes,
          "gaussian": compliance.numbers, "multinomial": compliance.codes}  # fmt: skip


def build(case):
    if case in compliance.CASES:
        return compliance.build(bs, case)
    _, prior, score, *missing = case.split()
    data = SCORES[score](missing=int(missing[0]) if missing else 0)
    return bs.models.bayesian_network(data, score=score, prior=prior)


def competence(step, variable):
    arguments = (variable, False)[: len(inspect.signature(step.competence).parameters)]
    return int(step.competence(*arguments))


def candidates(variable):
    """Our step methods that accept a variable best, in the order in which PyMC asks them."""
    own = [step for step in STEP_METHODS if step.__module__.startswith("bayesstruct")]
    best = max(competence(step, variable) for step in own)
    return [step for step in own if competence(step, variable) == best > 0]


@pytest.mark.parametrize("case", sorted(EXPECTED))
def test_each_variable_gets_the_step_that_is_on_record(case):
    model = build(case)
    outside = {rv.name: candidates(rv) for rv in model.free_RVs}
    with model:
        inside = {rv.name: candidates(rv) for rv in model.free_RVs}
    for where, found in (("inside", inside), ("outside", outside)):
        first = {name: steps[0].__name__ for name, steps in found.items() if steps}
        assert first == EXPECTED[case][where]
        # The order must be declared: that of registration is the order of imports.
        several = [steps for steps in found.values() if len(steps) > 1]
        assert all(asked_before(first, other) for first, *rest in several for other in rest)
