"""Exact Gibbs step of regression coefficients with exact zeros.

:mod:`bayesstruct.sparse.recognition` finds the regression. Random noise, other terms of the mean and
parameters of the prior are evaluated anew for each draw. The regressions of a matrix of coefficients
are independent given everything else, and are drawn one after the other from the one ``X' X`` that
they share.
"""

from typing import ClassVar

import numpy as np

from pymc.step_methods.compound import Competence

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import NotRecognized, is_op, parameters
from bayesstruct.core.tensors import as_float
from bayesstruct.sparse.priors.spike_and_slab import SpikeAndSlabRV
from bayesstruct.sparse.recognition import SUPPORTED_REGRESSIONS, recognize_regression
from bayesstruct.sparse.steps.predictor_data import FAMILIES, PredictorData
from bayesstruct.sparse.steps.regression_data import RegressionData

__all__ = ["SWAPS", "SpikeSlabRegression", "log_odds"]

SWAPS = 10  # see benchmarks/spike_slab_regression.py


@register_step
class SpikeSlabRegression(GibbsStep):
    """Gibbs draws of regression coefficients with exact zeros, indicators collapsed.

    Assigned by ``pm.sample`` to every vector with the :class:`bayesstruct.SpikeAndSlab` prior, and
    every matrix of one regression for each row. One call draws all indicators, each from its
    conditional distribution with the coefficients integrated out, then exchanges some active
    predictors for others, then draws the coefficients; see
    :mod:`bayesstruct.sparse.kernels.spike_slab_regression`, and
    :mod:`bayesstruct.sparse.kernels.polya_gamma` for 0/1 responses. Student-t responses are normal ones whose
    standard deviations are drawn before, each given its residual. Poisson, negative binomial and ordered responses, for which
    there is no such integral, have each indicator drawn together with its coefficient by a Metropolis-Hastings step, see
    :mod:`bayesstruct.sparse.kernels.linear_predictor`. Other samplers move the noise,
    the other terms of the mean and the parameters of the prior. The state of a chain is its point
    and its generator.

    Predictors should be centred when the mean has an intercept: the intercept is drawn given the
    coefficients, which is slow when the two are correlated.

    Parameters
    ----------
    swaps : int, default 10
        Maximum number of active predictors of each regression whose identity is drawn anew in each
        call.

    Raises
    ------
    ValueError
        If the coefficients are not those of a regression that can be drawn exactly.

    Notes
    -----
    Statistics of each draw: ``n_active``, the coefficients that are not zero, and
    ``expected_active``, the sum of their conditional inclusion probabilities; for responses without an integral, of the
    probabilities with which each was to be in after its step, which have the same mean. The attribute
    ``inclusion`` has these probabilities one by one.
    """

    name = "spike_slab_regression"
    default_blocked = False
    stats_dtypes_shapes: ClassVar[dict] = {"n_active": (int, []), "expected_active": (float, [])}

    def prepare(self, model, drawn, *, swaps=SWAPS):
        """Recognise the regression of one variable."""
        [rv] = drawn
        try:
            part = recognize_regression(model, rv)
        except NotRecognized as reason:
            raise ValueError(
                f"the spike-and-slab coefficients {rv.name!r} cannot be drawn exactly: {reason}. "
                f"{SUPPORTED_REGRESSIONS}."
            ) from None
        self.swaps = int(swaps)
        self.value_name = self.vars[0].name
        self.vector = rv.type.ndim == 1
        self.laplace = rv.owner.op.slab == "laplace"
        self.family = part.family
        rest = as_float(0.0) if part.rest is None else part.rest
        noise = as_float(1.0) if part.noise is None else part.noise
        freedom = as_float(np.inf) if part.freedom is None else part.freedom
        self.values = Expressions(
            model,
            [*parameters(rv), rest, noise, freedom, *part.others],
            self.compile_kwargs,
            user=rv.name,
        )
        self.data = None
        if part.response is not None:
            fixed = [part.design, model.rvs_to_values[part.response]]
            self.data = Expressions(model, fixed, self.compile_kwargs)
        self.design = self.designs = None
        self.inclusion = None

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain and forget the data of the last one."""
        super().setup_chain(rng, tune, draws)
        self.design = None

    def _load(self, point, q, p):
        """Read the data, which may have been replaced since the step was made."""
        if self.data is None:
            rows, response = np.empty((0, p)), np.empty(0)
        else:
            rows, response = (np.asarray(v) for v in self.data(point))
        if self.data is None:
            columns = [response] * q
        else:
            columns = response[None] if self.vector else response.T
        if len(columns) != q:
            raise ValueError(
                f"{self.value_name!r} has {q} rows and its response {len(columns)} columns; one row is "
                "needed for each"
            )
        if self.family in FAMILIES:
            self.design = PredictorData(rows, columns[0], self.family)
        else:
            self.design = RegressionData(rows, columns[0], self.family == "logistic")
        if self.family == "logistic" and q > 1:
            self.design.square()  # before it is shared
        self.designs = [self.design, *(self.design.with_response(y) for y in columns[1:])]

    def step(self, point):
        """Draw the indicators and the coefficients once."""
        w = np.array(point[self.value_name], float)
        rows = w[None] if self.vector else w
        if self.design is None:
            self._load(point, *rows.shape)
        inclusion, scale, rest, noise, freedom, *others = self.values(point)
        slab = self._slab_variances(w, scale)
        odds = log_odds(inclusion, w.shape)
        self.inclusion = np.zeros(w.shape)
        labels = np.arange(rows.shape[1])
        for i, design in enumerate(self.designs):
            at = ... if self.vector else i
            if self.family in FAMILIES:
                design.sweep(
                    self.rng,
                    rows[i],
                    self.inclusion[at],
                    self._of(rest, i),
                    self._others_of(others, i),
                    slab[at],
                    odds[at],
                    labels,
                    self.swaps,
                )
                continue
            deviation = self._of(noise, i)
            if self.family == "student":
                deviation = design.draw_deviations(
                    self.rng, rows[i], self._of(rest, i), deviation, self._of(freedom, i)
                )
            design.sweep(
                self.rng,
                rows[i],
                self.inclusion[at],
                self._of(rest, i),
                deviation,
                slab[at],
                odds[at],
                self.swaps,
            )
        stats = {
            "n_active": int(np.count_nonzero(w)),
            "expected_active": float(self.inclusion.sum()),
        }
        return {**point, self.value_name: w}, [stats]

    def _slab_variances(self, w, scale):
        """Variances of the normal slab of each coefficient; those of a Laplace slab are drawn."""
        from bayesstruct.sparse.kernels.spike_slab_regression import draw_slab_variances

        scale = np.broadcast_to(np.asarray(scale, float), w.shape) * 1.0
        if not self.laplace:
            return np.square(scale)
        slab = np.empty(w.shape)
        draw_slab_variances(self.rng, w.ravel(), scale.ravel(), slab.ravel())
        return slab

    def _of(self, values, i):
        """Return the other terms, or the noise, of one regression."""
        if self.vector:
            return values
        values = np.atleast_2d(values)  # rows of the table, or one for all of them
        return values[:, i if values.shape[1] > 1 else 0]

    def _others_of(self, others, i):
        """Return the further parameters of one regression; cutpoints have one row for each response."""
        if self.family not in ("ordered_logistic", "ordered_probit"):
            return [self._of(value, i) for value in others]
        cutpoints, *scale = others
        shape = (
            self.designs[i].response.shape
            if self.vector
            else (len(self.designs[i].response), len(self.designs))
        )
        cutpoints = np.broadcast_to(cutpoints, (*shape, np.shape(cutpoints)[-1]))
        return [cutpoints if self.vector else cutpoints[:, i], *(self._of(v, i) for v in scale)]

    @staticmethod
    def competence(var, has_grad):
        """Accept all spike-and-slab coefficients, however they are used.

        If it declined, ``pm.sample`` would fall back on samplers that never reach zero. The
        constructor raises for those that it cannot draw.
        """
        return Competence.IDEAL if is_op(var, SpikeAndSlabRV) else Competence.INCOMPATIBLE


def log_odds(inclusion, shape):
    """Log odds of each coefficient; probabilities zero and one give minus and plus infinity."""
    q = np.broadcast_to(np.asarray(inclusion, float), shape)
    with np.errstate(divide="ignore"):
        return np.log(q) - np.log1p(-q)
