"""Compiled draws of the random variables of this room; imported when the first one is made."""

from pytensor.link.numba.dispatch import basic as numba_basic
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify

from bayesstruct.distributions.edges import EdgesRV
from bayesstruct.distributions.precision import (
    EdgeProbabilityRV,
    GraphicalLassoRV,
    GraphicalSpikeSlabRV,
)
from bayesstruct.kernels import precision_gibbs, precision_prior
from bayesstruct.ops.numba_dispatch import source_version

_VERSION = source_version(precision_gibbs.__file__, precision_prior.__file__)
_draw_laplace = precision_prior.draw_laplace
_draw_spike_slab = precision_prior.draw_spike_slab
_draw_edge_probability = precision_prior.draw_edge_probability
_draw_edges = precision_prior.draw_edges


@numba_core_rv_funcify.register(GraphicalLassoRV)
def _(op, node):
    @numba_basic.numba_njit
    def draw(rng, rates, diagonal_rate, scale):
        return scale.item() * _draw_laplace(rng, rates.copy(), diagonal_rate.item())

    return draw, _VERSION


@numba_core_rv_funcify.register(GraphicalSpikeSlabRV)
def _(op, node):
    @numba_basic.numba_njit
    def draw(rng, probability, spike, slab, diagonal_rate, scale):
        return scale.item() * _draw_spike_slab(
            rng, probability.copy(), spike.item(), slab.item(), diagonal_rate.item()
        )

    return draw, _VERSION


@numba_core_rv_funcify.register(EdgeProbabilityRV)
def _(op, node):
    @numba_basic.numba_njit
    def draw(rng, alpha, beta, pattern, spike, slab, diagonal_rate):
        return _draw_edge_probability(
            rng,
            pattern.copy(),
            alpha.item(),
            beta.item(),
            spike.item(),
            slab.item(),
            diagonal_rate.item(),
        )

    return draw, _VERSION


@numba_core_rv_funcify.register(EdgesRV)
def _(op, node):
    @numba_basic.numba_njit
    def draw(rng, precision, probability, spike, slab, scale):
        return _draw_edges(
            rng, precision / scale.item(), probability.copy(), spike.item(), slab.item()
        )

    return draw, _VERSION
