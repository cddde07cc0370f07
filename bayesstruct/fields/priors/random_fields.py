r"""Rows of states from a pairwise Markov random field.

.. math::

    P(x) = \frac1Z \exp\Bigl( \sum_i u_i(x_i) + \sum_{i<j} t_{ij}(x_i, x_j) \Bigr)

with tables that are linear in biases and weights, see
:class:`bayesstruct.fields.kernels.potentials.Potentials`. Z is a sum over all joint states. Where these are
too many, the pseudo-likelihood takes the place of the likelihood,

.. math:: \prod_i P(x_i \mid x_{-i}),

which is not a density of x: the posterior that results is a *composite* one.
"""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Discrete, SymbolicRandomVariable
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pymc.pytensorf import normalize_rng_param
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.missing import Mask
from bayesstruct.core.recognition import claim, is_op
from bayesstruct.core.tensors import as_float, random_ancestors
from bayesstruct.fields.kernels.exact_sums import ExactSums
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.ops.draw_states import DrawStates
from bayesstruct.fields.priors.densities import log_density
from bayesstruct.fields.priors.observed import check_observed
from bayesstruct.sparse.priors.group_spike_and_slab import GroupSpikeAndSlabRV
from bayesstruct.sparse.priors.spike_and_slab import SpikeAndSlabRV

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorVariable

__all__ = [
    "IncompletePairwiseMRF",
    "IncompletePairwiseRV",
    "Ising",
    "PairwiseMRF",
    "PairwiseRV",
]

SWEEPS = 200
LIKELIHOODS = ("exact", "pseudo")


class PairwiseRV(SymbolicRandomVariable):
    """Rows of states; potentials and likelihood are properties of the Op."""

    extended_signature = "[rng],[size],(b),(w)->[rng],(p)"
    _print_name = ("PairwiseMRF", "\\operatorname{PairwiseMRF}")

    def __init__(self, *args, options, **kwargs):
        self.options = options
        super().__init__(*args, **kwargs)

    @property
    def potentials(self) -> Potentials:
        """Family of the potentials."""
        return self.options["potentials"]

    @property
    def likelihood(self) -> str:
        """``"exact"`` or ``"pseudo"``."""
        return self.options["likelihood"]

    @classmethod
    def rv_op(cls, *params, size=None, rng=None, **options):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        bias, weight = params[:2]
        batch = size
        if rv_size_is_none(size):
            batch = pt.broadcast_shape(bias[..., 0], weight[..., 0])
        batch = [pt.as_tensor_variable(d, dtype="int64") for d in tuple(batch)]
        next_rng, seed = pt.random.integers(0, 2**62, rng=rng, return_next_rng=True)
        draw = DrawStates(options["potentials"], options["sweeps"], len(batch))
        shape = pt.stack(batch) if batch else pt.constant(np.empty(0, np.int64))
        inputs, drawn = [rng, size, *params], draw(seed, bias, weight, shape)
        if options.get("floats"):
            drawn = drawn.astype("float64")
        return cls(inputs=inputs, outputs=[next_rng, drawn], options=options)(*inputs)

    def rebuild_rv(self, *params, **kwargs):
        """Build the graph of a draw of another size."""
        return type(self).rv_op(*params, **kwargs, **self.options)


class IncompletePairwiseRV(PairwiseRV):
    """Rows of states, some of which are missing and given by another variable."""

    extended_signature = "[rng],[size],(b),(w),(m)->[rng],(p)"
    _print_name = ("IncompletePairwiseMRF", "\\operatorname{IncompletePairwiseMRF}")

    @property
    def mask(self) -> Mask:
        """Which values are missing."""
        return self.options["mask"]


class PairwiseMRF(Discrete):
    r"""Rows of states from a pairwise Markov random field.

    ========  ==========================================================
    Support   rows of states 0, ..., k_i - 1
    ========  ==========================================================

    Parameters
    ----------
    name : str
    bias, weight : tensor_like of float, shapes (biases,) and (weights,)
        Of the potentials.
    potentials : Potentials
        The family, the numbers of states, and the edges if they are known.
    likelihood : {"exact", "pseudo"}
        ``"exact"`` sums over all joint states: one by one, or, where that is shorter, variable by
        variable along the edges of the potentials. ``"pseudo"`` is the product of the conditional
        probabilities of each state given the rest of its row (Besag 1975): not a density, but
        feasible for any number of variables.
    sweeps : int, default 200
        Number of Gibbs sweeps, if rows are drawn by Gibbs sampling.
    **kwargs
        ``dims``, ``shape`` (whose last entry is p), ``observed``, ...

    Raises
    ------
    ValueError
        If there are too many joint states for the exact likelihood and too many edges to sum variables
        out along them, the likelihood is unknown, or an observed value is not a state.

    Notes
    -----
    Rows are drawn from the table of all joint states up to 2^16 of them; beyond, exactly along the
    edges, each variable given those that are summed out after it, if the potentials have few edges;
    exactly by coupling from the past if all variables have two states and attract each other (Propp
    and Wilson 1996); otherwise by `sweeps` Gibbs sweeps from uniform states, one chain for each row.
    A row whose coupling takes more than 4,096 sweeps is drawn by Gibbs sampling too. With ``"pseudo"`` rows are
    also drawn from the Markov random field.

    References
    ----------
    Besag, J. (1975). Statistical analysis of non-lattice data. *The Statistician* 24, 179-195.

    Propp, J. G. and Wilson, D. B. (1996). Exact sampling with coupled Markov chains and
    applications to statistical mechanics. *Random Structures & Algorithms* 9, 223-252.

    Examples
    --------
    .. code-block:: python

        from bayesstruct.fields.kernels.potentials import Potentials

        potentials = Potentials("ordinal", (3, 3, 2))
        with pm.Model():
            bias = pm.Normal("bias", 0, 5, shape=potentials.bias_size)
            weight = pm.Laplace("weight", 0, 1, shape=potentials.weight_size)
            bs.PairwiseMRF("x", bias, weight, potentials=potentials, observed=answers)

    A chain of a hundred columns:

    .. code-block:: python

        chain = tuple((i, i + 1) for i in range(99))
        potentials = Potentials("ordinal", (2,) * 100, edges=chain)
    """

    rv_type = PairwiseRV
    rv_op = PairwiseRV.rv_op

    def __new__(cls, name, *args, observed=None, **kwargs):
        """Add the rows to the model, if all observed values are states."""
        if observed is not None:
            potentials = kwargs.get("potentials")
            check_observed(name, observed, None if potentials is None else potentials.states)
        return super().__new__(cls, name, *args, observed=observed, **kwargs)

    @classmethod
    def dist(
        cls,
        bias: "TensorVariable | ArrayLike",
        weight: "TensorVariable | ArrayLike",
        *,
        potentials: Potentials,
        likelihood: str = "exact",
        sweeps: int = SWEEPS,
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        options = _options(potentials, likelihood, sweeps)
        params = _params(bias, weight, potentials)
        _claim(*params[1:])
        return super().dist(params, **options, **kwargs)

    def support_point(rv, size, bias, weight):
        """Return rows of first states."""
        return _first_states(rv, size)


class IncompletePairwiseMRF(Discrete):
    """Rows of states from a pairwise Markov random field, with missing values.

    The density is that of :class:`PairwiseMRF` for the table completed by `values`. With the prior
    :class:`MissingStates` of these and the exact likelihood, the product of the two is proportional to the joint density of
    observed and missing values. Draws are complete rows.

    Parameters
    ----------
    bias, weight, potentials, likelihood, sweeps
        As in :class:`PairwiseMRF`.
    values : TensorVariable of int, shape (missing values,)
        The missing values, row by row.
    missing : (n, p) array_like of bool
        True where a value is missing.
    floats : bool, default False
        Whether rows are floats, among which NaN can stand for a missing value.

    Notes
    -----
    ``pm.sample`` draws values that are :class:`MissingStates`, and on which nothing else depends, by Gibbs sampling
    (:class:`bayesstruct.steps.PairwiseCells`, or the step of the weights if these may be zero), from their conditional
    distribution in the Markov random field under either likelihood. Under the pseudo-likelihood the density of the model
    implies another conditional distribution, in which neighbours count twice; step methods that evaluate the density, as those
    of PyMC do, draw from that one.
    """

    rv_type = IncompletePairwiseRV
    rv_op = IncompletePairwiseRV.rv_op

    def __new__(cls, name, *args, missing, potentials, observed=None, **kwargs):
        """Add the rows to the model, if all observed values are states."""
        if observed is not None:
            check_observed(name, observed, potentials.states, missing)
        options = {"missing": missing, "potentials": potentials}
        return super().__new__(cls, name, *args, observed=observed, **options, **kwargs)

    @classmethod
    def dist(
        cls,
        bias: "TensorVariable | ArrayLike",
        weight: "TensorVariable | ArrayLike",
        values: "TensorVariable",
        *,
        missing: "ArrayLike",
        potentials: Potentials,
        likelihood: str = "exact",
        sweeps: int = SWEEPS,
        floats: bool = False,
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        own = {"mask": Mask(missing), "floats": floats}
        options = _options(potentials, likelihood, sweeps) | own
        params = [*_params(bias, weight, potentials), pt.as_tensor_variable(values)]
        _claim(*params[1:])
        return super().dist(params, **options, **kwargs)

    def support_point(rv, size, bias, weight, values):
        """Return rows of first states."""
        return _first_states(rv, size)


class Ising(PairwiseMRF):
    r"""Rows of zeros and ones from an Ising model.

    .. math:: P(x) = \frac1Z \exp\Bigl(\sum_i b_i x_i + \sum_{i<j} w_{ij} x_i x_j\Bigr)

    Parameters
    ----------
    name : str
    bias : tensor_like of float, shape (p,)
    weight : tensor_like of float, shape (p (p - 1) / 2,) or (edges,)
        The upper triangle, row by row; or the weights of the `edges`.
    coding : {"01", "pm"}
        Values of x in the formula: 0 and 1, or -1 and 1. The values of the variable are 0 and 1 in both
        cases: observe ``(x + 1) // 2`` if the table holds -1 and 1.
    edges : iterable of pairs of int, optional
        The pairs i < j that have weights; all others are independent given the rest. With few
        edges the exact likelihood is feasible for any number of columns.
    likelihood, sweeps, **kwargs
        As in :class:`PairwiseMRF`.

    Raises
    ------
    ValueError
        As :class:`PairwiseMRF`, and for an unknown coding.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            bias = pm.Normal("bias", 0, 5, shape=4)
            weight = pm.Laplace("weight", 0, 1, shape=6)
            bs.Ising("x", bias, weight, observed=symptoms)

        pm.draw(bs.Ising.dist(np.zeros(4), np.ones(6), shape=(1_000, 4)))
    """

    rv_type = PairwiseRV
    rv_op = PairwiseRV.rv_op

    @classmethod
    def dist(
        cls,
        bias: "TensorVariable | ArrayLike",
        weight: "TensorVariable | ArrayLike",
        *,
        coding: str = "01",
        edges: "Iterable[tuple[int, int]] | None" = None,
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        return super().dist(bias, weight, potentials=_ising(bias, coding, edges), **kwargs)


def _ising(bias, coding, edges):
    kinds = {"01": "ordinal", "pm": "spin"}
    if coding not in kinds:
        raise ValueError(f'`coding` is "01" or "pm", it is {coding!r}')
    bias = pt.as_tensor_variable(bias)
    p = bias.type.shape[-1]
    if p is None:  # the length of a dimension of the model
        p = int(bias.shape[-1].eval(mode="FAST_COMPILE"))
    if edges is not None:
        edges = tuple((int(i), int(j)) for i, j in edges)
    return Potentials(kinds[coding], (2,) * p, edges=edges)


def _options(potentials, likelihood, sweeps):
    if likelihood not in LIKELIHOODS:
        raise ValueError(f"`likelihood` must be one of {LIKELIHOODS}, it is {likelihood!r}")
    if sweeps < 1:
        raise ValueError(f"`sweeps` must be 1 or more, it is {sweeps}")
    if likelihood == "exact":
        ExactSums.of(potentials)  # raises if the sum would take too long
    return {"potentials": potentials, "likelihood": likelihood, "sweeps": int(sweeps)}


def _claim(weight, *missing):
    """Claim weights that may be zero, and missing values, for their steps.

    Outside of a context ``pm.sample`` asks steps about a variable without telling them the model.
    """
    together = is_op(weight, (SpikeAndSlabRV, GroupSpikeAndSlabRV))
    for group in random_ancestors(weight):
        if is_op(
            group, GroupSpikeAndSlabRV
        ):  # also where weights are computed: that step refuses them by name
            claim(group, "pairwise_spike_slab")
    for variable in (weight, *missing) if together else missing:
        claim(variable, "pairwise_spike_slab" if together else "pairwise_cells")


def _params(bias, weight, potentials):
    bias, weight = as_float(bias), as_float(weight)
    sizes = {"bias": (bias, potentials.bias_size), "weight": (weight, potentials.weight_size)}
    for name, (value, size) in sizes.items():
        if value.type.ndim < 1 or value.type.shape[-1] not in (None, size):
            raise ValueError(
                f"`{name}` has shape {value.type.shape}; {potentials.kind} potentials of "
                f"{potentials.p} variables need ({size},)"
            )
    return [bias, weight]


def _first_states(rv, size):
    shape = rv.shape if rv_size_is_none(size) else (*size, rv.shape[-1])
    return pt.zeros(shape, dtype="int64")


@_logprob.register(PairwiseRV)
def _field_logp(op, values, rng, size, bias, weight, **kwargs):
    (value,) = values
    density = log_density(value, _vector(bias), _vector(weight), op.potentials, op.likelihood)
    return row_densities(density, composite=op.likelihood == "pseudo")


@_logprob.register(IncompletePairwiseRV)
def _incomplete_logp(op, values, rng, size, bias, weight, missing, **kwargs):
    (value,) = values
    rows, columns = (pt.as_tensor_variable(v) for v in (op.mask.rows, op.mask.columns))
    value = value[rows, columns].set(_vector(missing).astype(value.dtype)).astype("int64")
    density = log_density(value, _vector(bias), _vector(weight), op.potentials, op.likelihood)
    return row_densities(density, composite=op.likelihood == "pseudo")


def _vector(parameter):
    """Drop leading dimensions of length one."""
    while parameter.type.ndim > 1 and parameter.type.broadcastable[0]:
        parameter = parameter[0]
    if parameter.type.ndim > 1:
        raise ValueError("all rows of a Markov random field have the same biases and weights")
    return parameter
