"""Between points of a model and the state of a chain over linear structural equations."""

from typing import TYPE_CHECKING

import numpy as np

from pytensor.tensor.random.basic import DirichletRV

from bayesstruct.networks.priors.gaussian_network import InterceptsRV, arc_index
from bayesstruct.sem.kernels.settings import FREE, HORSESHOE, MIXTURE, STUDENT
from bayesstruct.sem.priors.parameters import (
    ArcSlabsRV,
    CommonNoiseScaleRV,
    LocalScalesRV,
    NoiseDegreesRV,
    NoiseScalesRV,
)
from bayesstruct.sem.steps.arc_chain import SemState
from bayesstruct.sem.steps.families import Shared

if TYPE_CHECKING:
    from bayesstruct.sem.recognition import LinearEquations

__all__ = ["Points"]

class Points:
    """Translation between points of a model and states of a chain.

    Parameters
    ----------
    equations : LinearEquations
    """

    def __init__(self, equations: "LinearEquations"):
        self.settings, self.names = equations.settings, equations.names
        self.dag, self.d = equations.dag.name, len(equations.relative)
        self.offsets = 0.5 * np.log(equations.relative)
        self.source, self.target = arc_index(self.d)

    def state(self, rng, point: dict) -> SemState:
        """State of a chain at a point.

        Weights of a mixture are cubes of coordinates divided by their sum, which is drawn from its distribution.
        """
        settings, names, d = self.settings, self.names, self.d
        state = SemState(np.array(point[self.dag], np.int8))
        scales = np.broadcast_to(self._scale(point), (d,)) * np.exp(
            0.0 if settings.variances == FREE else self.offsets
        )
        weight, local = np.zeros((d, d)), np.ones((d, d))
        weight[self.source, self.target] = point[names[ArcSlabsRV]]
        if settings.prior == HORSESHOE:
            local[self.source, self.target] = point[names[LocalScalesRV]]
        shapes = self._shapes(rng, point)
        if settings.variances != FREE:
            shared = shapes[0].copy() if settings.noise == MIXTURE else np.empty(0)
            state.shared = Shared(float(np.log(self._scale(point))), shared)
        for i in range(d):
            own = list(state.parents(i))
            parts = [[point[names[InterceptsRV]][i]], weight[own, i], [np.log(scales[i])], shapes[i]]
            if settings.prior == HORSESHOE:
                parts.append(np.log(local[own, i]))
            state.theta.append(np.concatenate(parts).astype(float))
        return state

    def _scale(self, point):
        kind = NoiseScalesRV if self.settings.variances == FREE else CommonNoiseScaleRV
        return point[self.names[kind]]

    def _shapes(self, rng, point):
        """Coordinates of the shapes of all columns, (d, S)."""
        if self.settings.noise == STUDENT:
            return np.log(point[self.names[NoiseDegreesRV]] - 2.0)[:, None]
        if self.settings.noise != MIXTURE:
            return np.empty((self.d, 0))
        share = np.atleast_2d(point[self.names[DirichletRV]])
        total = rng.gamma(self.settings.concentration, size=(len(share), 1))
        return np.broadcast_to(np.cbrt(share * total), (self.d, share.shape[1]))

    def write(self, state: SemState, point: dict) -> None:
        """Put a state into a point."""
        settings, names, d = self.settings, self.names, self.d
        weight, local = np.zeros((d, d)), np.ones((d, d))
        intercept, tau, shapes = np.empty(d), np.empty(d), []
        for i, theta in enumerate(state.theta):
            own = list(state.parents(i))
            p = len(own) + 1
            intercept[i], weight[own, i], tau[i] = theta[0], theta[1:p], theta[p]
            end = len(theta) - (len(own) if settings.prior == HORSESHOE else 0)
            shapes.append(theta[p + 1 : end])
            if settings.prior == HORSESHOE:
                local[own, i] = np.exp(theta[end:])
        point[self.dag] = state.dag.copy()
        point[names[InterceptsRV]] = intercept
        point[names[ArcSlabsRV]] = weight[self.source, self.target]
        if settings.variances == FREE:
            point[names[NoiseScalesRV]] = np.exp(tau)
        else:
            point[names[CommonNoiseScaleRV]] = np.array(np.exp(state.shared.tau))
        if settings.prior == HORSESHOE:
            point[names[LocalScalesRV]] = local[self.source, self.target]
        if settings.noise == STUDENT:
            point[names[NoiseDegreesRV]] = 2.0 + np.exp(np.array(shapes)[:, 0])
        if settings.noise == MIXTURE:
            own = np.array(shapes) if settings.variances == FREE else state.shared.shape
            share = own**3
            point[names[DirichletRV]] = share / share.sum(axis=-1, keepdims=True)

    def parameters(self, point: dict) -> tuple[np.ndarray, ...]:
        """Intercepts, coefficients (rows children), scales and shape parameters (d, k) at a point."""
        d, settings, names = self.d, self.settings, self.names
        matrix = np.zeros((d, d))
        matrix[self.target, self.source] = point[names[ArcSlabsRV]]
        scales = self._scale(point) * np.exp(0.0 if settings.variances == FREE else self.offsets)
        shape = np.zeros((d, 1))
        if settings.noise == STUDENT:
            shape = point[names[NoiseDegreesRV]][:, None]
        if settings.noise == MIXTURE:
            own = np.atleast_2d(point[names[DirichletRV]])
            shape = np.broadcast_to(own, (d, own.shape[1]))
        return point[names[InterceptsRV]], matrix, scales, shape
