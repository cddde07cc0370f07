"""Exact Gibbs step of groups of regression coefficients that are zero together."""

import numpy as np

from pymc.step_methods.compound import Competence

from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import is_claimed, is_op
from bayesstruct.sparse.priors.group_spike_and_slab import GroupSpikeAndSlabRV
from bayesstruct.sparse.steps.predictor_data import FAMILIES
from bayesstruct.sparse.steps.spike_slab_regression import SpikeSlabRegression, log_odds

__all__ = ["GroupSpikeSlabRegression"]


@register_step
class GroupSpikeSlabRegression(SpikeSlabRegression):
    """Gibbs draws of groups of regression coefficients that are zero together, indicators collapsed.

    Assigned by ``pm.sample`` to every vector with the :class:`bayesstruct.GroupSpikeAndSlab` prior that is not the weights of a
    Markov random field. One call draws the indicator of each group with all coefficients integrated out, then the
    coefficients (:mod:`bayesstruct.sparse.kernels.group_regression`); under Poisson, negative binomial and ordered responses,
    which have no such integral, indicator and values of each group together
    (:mod:`bayesstruct.sparse.kernels.linear_predictor`). Responses are those of
    :class:`bayesstruct.steps.SpikeSlabRegression`.

    Raises
    ------
    ValueError
        If the coefficients are not those of a regression that can be drawn exactly.

    Notes
    -----
    A call factors two matrices of the active coefficients for each group, which takes milliseconds for some hundred of them.
    Statistics of each draw: ``n_active``, the coefficients that are not zero, and ``expected_active``, the sum of
    the conditional inclusion probabilities over the coefficients.
    """

    name = "group_spike_slab_regression"

    def prepare(self, model, drawn):
        """Recognise the regression of one variable."""
        super().prepare(model, drawn)
        self.labels = drawn[0].owner.op.groups.labels

    def step(self, point):
        """Draw the indicators and the coefficients once."""
        from bayesstruct.sparse.kernels.group_regression import group_sweep

        w = np.array(point[self.value_name], float)
        if self.design is None:
            self._load(point, 1, len(w))
        inclusion, scale, rest, noise, freedom, *others = self.values(point)
        slab = self._slab_variances(w, scale)
        odds = log_odds(inclusion, (int(self.labels.max()) + 1,))
        if self.family in FAMILIES:
            drawn = np.zeros(len(odds))
            given = self._others_of(others, 0)
            self.design.sweep(self.rng, w, drawn, rest, given, slab, odds, self.labels, self.swaps)
        else:
            student = freedom if self.family == "student" else None
            precision, target = self.design.normal_rows(self.rng, w, rest, noise, student)
            weighted = self.design.columns * precision
            gram, score = weighted @ self.design.columns.T, weighted @ target
            drawn = group_sweep(self.rng, w, self.labels, gram, score, slab, odds)
        self.inclusion = drawn[self.labels]
        stats = {
            "n_active": int(np.count_nonzero(w)),
            "expected_active": float(self.inclusion.sum()),
        }
        return {**point, self.value_name: w}, [stats]

    @staticmethod
    def competence(var, has_grad):
        """Accept all groups of coefficients but the weights of Markov random fields.

        If it declined, ``pm.sample`` would fall back on samplers that never reach zero. The
        constructor raises for those that it cannot draw.
        """
        mine = is_op(var, GroupSpikeAndSlabRV) and not is_claimed(var, "pairwise_spike_slab")
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE
