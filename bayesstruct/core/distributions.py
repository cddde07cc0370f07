"""Bases of random variables: a draw is a graph of several operations, or made by a compiled kernel."""

from functools import cache

import pytensor.tensor as pt

from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.pytensorf import normalize_rng_param
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.ops import version_of

__all__ = ["GraphRV", "KernelRV", "zeros_like_draw"]


class GraphRV(SymbolicRandomVariable):
    r"""Random variable with parameters, which are tensors, and options, which are not.

    A subclass defines ``extended_signature``, ``_print_name``, ``options``, the names of its options, and
    `build`. Each option is an attribute of the Op.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pymc.distributions.distribution import Continuous
    >>> from bayesstruct.core.distributions import GraphRV, zeros_like_draw
    >>> class SumsRV(GraphRV):
    ...     extended_signature = "[rng],[size],()->[rng],()"
    ...     _print_name = ("Sums", "\\operatorname{Sums}")
    ...     options = ("terms",)
    ...
    ...     @classmethod
    ...     def build(cls, rng, size, scale, *, terms):
    ...         rng, draw = pt.random.normal(0, scale, size=terms, rng=rng, return_next_rng=True)
    ...         return rng, draw.sum()
    >>> class Sums(Continuous):
    ...     rv_type, rv_op = SumsRV, SumsRV.rv_op
    ...     support_point = zeros_like_draw
    ...
    ...     @classmethod
    ...     def dist(cls, scale, *, terms, **kwargs):
    ...         return super().dist([pt.as_tensor_variable(scale)], terms=terms, **kwargs)
    >>> Sums.dist(1.0, terms=3).owner.op.terms
    3
    """

    options: tuple[str, ...] = ()

    def __init__(self, *args, **kwargs):
        for name in self.options:
            setattr(self, name, kwargs.pop(name))
        super().__init__(*args, **kwargs)

    @classmethod
    def build(cls, rng, size, *params, **options):
        """Build the graph of a draw.

        Parameters
        ----------
        rng, size : Variable
            Generator, and shape of the batch, which may be none.
        *params : TensorVariable
        **options

        Returns
        -------
        Variable and TensorVariable
            The generator afterwards, and the draw.
        """
        raise NotImplementedError

    @classmethod
    def rv_op(cls, *params, size=None, rng=None, **options):
        """Apply the Op to parameters; for ``rv_op`` of a distribution."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        inputs = [rng, size, *params]
        outputs = list(cls.build(*inputs, **options))
        return cls(inputs=inputs, outputs=outputs, **options)(*inputs)

    def rebuild_rv(self, *params, **kwargs):
        """Apply an Op with the same options to other parameters, or to draw another size."""
        own = {name: getattr(self, name) for name in self.options}
        return type(self).rv_op(*params, **kwargs, **own)


def zeros_like_draw(rv, *_):
    """Return zeros; for ``support_point`` of a distribution."""
    return pt.zeros(rv.shape, dtype=rv.dtype)


@cache
def _register_draw(op_type: type) -> None:
    from pytensor.link.numba.dispatch import basic
    from pytensor.link.numba.dispatch.random import numba_core_rv_funcify

    @numba_core_rv_funcify.register(op_type)
    def funcify(op, node):
        return basic.numba_njit(op.numba_draw()), version_of(op_type)


class KernelRV(RandomVariable):
    """A random variable that a compiled kernel draws.

    Subclasses define `numba_draw` beside ``rng_fn``. It is registered when the first variable of
    its type is made, so that importing bayesstruct does not import Numba.
    """

    dtype = "float64"

    def numba_draw(self):
        """Plain function of a generator and the parameters that Numba can compile."""
        raise NotImplementedError

    def make_node(self, *args, **kwargs):
        """Register the compiled draw, so that no graph falls back to Python."""
        _register_draw(type(self))
        return super().make_node(*args, **kwargs)

    def __setstate__(self, state):
        _register_draw(type(self))
        self.__dict__.update(state)
