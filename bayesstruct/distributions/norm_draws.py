"""Compiled draws of the priors of norms; imported when the first one is made."""

import numba

from pytensor.link.numba.dispatch import basic as numba_basic
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify

from bayesstruct.distributions.group_laplace import GroupLaplaceRV, SparseGroupLaplaceRV
from bayesstruct.distributions.tree_laplace import TreeLaplaceRV
from bayesstruct.kernels import norm_priors, nuclear
from bayesstruct.ops.numba_dispatch import source_version

_VERSION = source_version(norm_priors.__file__, nuclear.__file__, __file__)


@numba_core_rv_funcify.register(GroupLaplaceRV)
def _(op, node):
    kernel, arguments = op.kernel(), op.tail()
    if op.structure.penalty.norm == "nuclear":
        return _through_interpreter(*arguments), _VERSION
    order, start, size = arguments

    @numba_basic.numba_njit
    def draw(rng, rates):
        return kernel(rng, rates.copy(), order, start, size)

    return draw, _VERSION


def _through_interpreter(order, start, size, shapes):
    """Draw under nuclear norms by a call back to Python.

    The kernel is large, and called directly it is compiled again for every graph. A Python function
    is found by its name when a cached graph is loaded; a compiled one would be compiled once more.
    """
    vector = numba.types.float64[::1]

    @numba_basic.numba_njit
    def draw(rng, rates):
        own = rates.copy()
        with numba.objmode(w=vector):
            w = _draw_nuclear(rng, own, order, start, size, shapes)
        return w

    return draw


def _draw_nuclear(*args):
    return norm_priors.draw_group_nuclear(*args)


@numba_core_rv_funcify.register(SparseGroupLaplaceRV)
def _(op, node):
    kernel, size = op.kernel(), op.structure.size
    order, start = op.structure.arrays

    @numba_basic.numba_njit
    def draw(rng, rate, group_rates):
        return kernel(rng, rate.item(), group_rates.copy(), order, start, size)

    return draw, _VERSION


@numba_core_rv_funcify.register(TreeLaplaceRV)
def _(op, node):
    kernel, size = op.kernel(), op.structure.size
    weights, order, start, parent = op.structure.arrays

    @numba_basic.numba_njit
    def draw(rng, rate):
        return kernel(rng, rate.item(), weights, order, start, parent, size)

    return draw, _VERSION
