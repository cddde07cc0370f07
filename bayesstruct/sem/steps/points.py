"""Between points of a model and states of chains over linear structural equations."""

from typing import TYPE_CHECKING

import numpy as np

from pytensor.tensor.random.basic import BernoulliRV, BetaRV, DirichletRV

from bayesstruct.networks.priors.gaussian_network import InterceptsRV, arc_index
from bayesstruct.sem.kernels.chain import SemState
from bayesstruct.sem.kernels.errors import mixture_weights
from bayesstruct.sem.kernels.families import Shared, unused_weights
from bayesstruct.sem.kernels.settings import FREE, HORSESHOE, MIXTURE, STUDENT
from bayesstruct.sem.priors.noise import with_normal
from bayesstruct.sem.priors.parameters import (
    ArcSlabsRV,
    CommonNoiseScaleRV,
    LocalScalesRV,
    NoiseDegreesRV,
    NoiseScalesRV,
)
from bayesstruct.sem.steps.arc_chain import ArcState

if TYPE_CHECKING:
    from bayesstruct.sem.recognition import LinearEquations

__all__ = ["Points"]


class Points:
    """Translation between points of a model and states of chains.

    Parameters
    ----------
    equations : LinearEquations
    """

    def __init__(self, equations: "LinearEquations"):
        self.settings, self.names = equations.settings, equations.names
        self.dag, self.d = equations.dag.name, len(equations.relative)
        self.units = np.sqrt(equations.relative)
        self.source, self.target = arc_index(self.d)
        self.free = self.settings.variances == FREE
        self.scale = self.names[NoiseScalesRV if self.free else CommonNoiseScaleRV]
        self.normal, self.share = self.names.get(BernoulliRV), self.names.get(BetaRV)

    def state(self, point: dict) -> SemState:
        """State at a point."""
        names, d = self.names, self.d
        weight, local = np.zeros((d, d)), np.ones((d, d))
        weight[self.source, self.target] = point[names[ArcSlabsRV]]
        if self.settings.prior == HORSESHOE:
            local[self.source, self.target] = point[names[LocalScalesRV]]
        intercept = np.array(point[names[InterceptsRV]], float)
        scales = np.array(point[self.scale] * self.units, float)
        dag = np.array(point[self.dag], np.int8)
        normal = np.zeros(d, bool) if self.normal is None else np.array(point[self.normal]) == 1
        share = self.share_at(point)
        return SemState(dag, intercept, weight, scales, self._shape(point), local, normal, share)

    def share_at(self, point: dict) -> float:
        """Probability of normal noise at a point."""
        return self.settings.normal_probability if self.share is None else float(point[self.share])

    def _shape(self, point):
        if self.settings.noise == STUDENT:
            return np.array(point[self.names[NoiseDegreesRV]], float)[:, None]
        if self.settings.noise == MIXTURE:
            own = np.atleast_2d(point[self.names[DirichletRV]])
            return np.array(np.broadcast_to(own, (self.d, own.shape[1])), float)
        return np.empty((self.d, 0))

    def write(self, state: SemState, point: dict) -> None:
        """Put a state into a point."""
        names = self.names
        point[self.dag] = state.dag.copy()
        point[names[InterceptsRV]] = state.intercept
        point[names[ArcSlabsRV]] = state.weight[self.source, self.target]
        scales = state.noise_scale / self.units
        point[self.scale] = scales if self.free else np.array(scales[0])
        if self.settings.prior == HORSESHOE:
            point[names[LocalScalesRV]] = state.local_scale[self.source, self.target]
        if self.settings.noise == STUDENT:
            point[names[NoiseDegreesRV]] = state.shape[:, 0]
        if self.settings.noise == MIXTURE:
            point[names[DirichletRV]] = state.shape if self.free else state.shape[0]
        if self.normal is not None:
            point[self.normal] = state.normal.astype(np.int64)
        if self.share is not None:
            point[self.share] = np.array(state.share)

    def arc_state(self, rng: np.random.Generator, state: SemState) -> ArcState:
        """Return the state of a chain over arcs.

        Weights of a mixture are cubes of coordinates divided by their sum, which is drawn from its distribution.
        """
        out = ArcState(state.dag.copy(), shared=Shared(share=state.share))
        coordinates = self._coordinates(rng, state.shape)
        coordinates[state.normal] = np.nan
        if not self.free:
            shared = coordinates[0].copy() if self.settings.noise == MIXTURE else np.empty(0)
            out.shared = Shared(float(np.log(state.noise_scale[0] / self.units[0])), shared)
        for i in range(self.d):
            own = list(out.parents(i))
            parts = [state.intercept[[i]], state.weight[own, i], np.log(state.noise_scale[[i]])]
            parts.append(coordinates[i])
            if self.settings.prior == HORSESHOE:
                parts.append(np.log(state.local_scale[own, i]))
            out.theta.append(np.concatenate(parts))
        return out

    def _coordinates(self, rng, shape):
        if self.settings.noise == STUDENT:
            return np.log(shape - 2.0)
        if self.settings.noise != MIXTURE:
            return shape
        size = (self.d if self.free else 1, 1)
        return np.cbrt(shape * rng.gamma(self.settings.concentration, size=size))

    def sem_state(self, rng: np.random.Generator, arcs: ArcState) -> SemState:
        """Return the state of a chain over arcs as arrays.

        Weights of a mixture that normal noise has replaced are drawn from their prior.
        """
        d = self.d
        intercept, scales, shapes, normal = np.empty(d), np.empty(d), [], []
        weight, local = np.zeros((d, d)), np.ones((d, d))
        for i, theta in enumerate(arcs.theta):
            own = list(arcs.parents(i))
            p = len(own) + 1
            intercept[i], weight[own, i], scales[i] = theta[0], theta[1:p], np.exp(theta[p])
            end = len(theta) - (len(own) if self.settings.prior == HORSESHOE else 0)
            shapes.append(self._shape_of(rng, theta[p + 1 : end]))
            normal.append(bool(np.isnan(theta[p + 1 : end]).any()))
            if self.settings.prior == HORSESHOE:
                local[own, i] = np.exp(theta[end:])
        params = intercept, weight, scales, np.array(shapes), local, np.array(normal)
        return SemState(arcs.dag.copy(), *params, arcs.shared.share)

    def _shape_of(self, rng, coordinates):
        if self.settings.noise == STUDENT:
            return 2.0 + np.exp(coordinates)
        if self.settings.noise != MIXTURE:
            return coordinates
        if np.isnan(coordinates[0]):
            return unused_weights(rng, self.settings)
        return mixture_weights(coordinates)

    def parameters(self, state: SemState) -> tuple[np.ndarray, ...]:
        """Return intercepts, coefficients (rows children), scales and shape parameters (d, k) of a state."""
        shape = state.shape if state.shape.shape[1] else np.zeros((self.d, 1))
        if self.normal is not None:
            shape = with_normal(shape, state.normal)
        return state.intercept, state.weight.T, state.noise_scale, shape
