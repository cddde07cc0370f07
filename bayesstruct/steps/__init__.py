"""Step methods, put before PyMC's own so that ``pm.sample`` assigns them unasked."""

from pymc.step_methods import STEP_METHODS

from bayesstruct.steps.precision import EdgesGibbs, PrecisionGibbs

__all__ = ["EdgesGibbs", "PrecisionGibbs"]

for _step in (EdgesGibbs, PrecisionGibbs):
    if _step not in STEP_METHODS:
        STEP_METHODS.insert(0, _step)
