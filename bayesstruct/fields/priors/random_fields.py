r"""Rows of states from a pairwise Markov random field.

.. math::

    P(x) = \frac1Z \exp\Bigl( \sum_i u_i(x_i) + \sum_{i<j} t_{ij}(x_i, x_j) \Bigr)

with tables that are linear in biases and weights, see
:class:`bayesstruct.fields.kernels.potentials.Potentials`. Z is a sum over all joint states. Where these are
too many, the pseudo-likelihood takes the place of the likelihood,

.. math:: \prod_i P(x_i \mid x_{-i}),

which is not a distribution of x: a posterior made with it is a *composite* one.
"""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Discrete, SymbolicRandomVariable
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pymc.pytensorf import normalize_rng_param
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.missing import Mask
from bayesstruct.core.ops import InterpretedOp
from bayesstruct.core.recognition import claim
from bayesstruct.core.tensors import as_float
from bayesstruct.data.arguments import numbers
from bayesstruct.fields.kernels.exact_sums import ExactSums
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.kernels.sampler import Sampler
from bayesstruct.fields.ops.log_partition import log_partition, tables
from bayesstruct.sparse.priors.group_spike_and_slab import GroupSpikeAndSlabRV
from bayesstruct.sparse.priors.spike_and_slab import SpikeAndSlabRV

__all__ = [
    "IncompletePairwiseMRF",
    "IncompletePairwiseRV",
    "Ising",
    "PairwiseMRF",
    "PairwiseRV",
]

SWEEPS = 200
LIKELIHOODS = ("exact", "pseudo")


class DrawStates(InterpretedOp):
    """Rows of states from a seed: exactly, perfectly or by Gibbs sampling, see `PairwiseMRF`.

    One call draws a whole table, since what it takes to draw a row serves all of them.

    Parameters
    ----------
    potentials : Potentials
    sweeps : int
    batch : int
        Number of dimensions before that of a row.
    """

    __props__ = ("potentials", "sweeps", "batch")

    def __init__(self, potentials, sweeps, batch):
        self.potentials, self.sweeps, self.batch = potentials, sweeps, batch

    def make_node(self, seed, bias, weight, size):
        """Apply the Op; `size` is a vector with one entry for each dimension of the batch."""
        self.register()
        inputs = [pt.as_tensor_variable(v) for v in (seed, bias, weight, size)]
        shape = (*(None for _ in range(self.batch)), self.potentials.p)
        return Apply(self, inputs, [pt.tensor(dtype="int64", shape=shape)])

    def infer_shape(self, node, input_shapes):
        """Shape of the rows."""
        size = node.inputs[3]
        return [(*(size[d] for d in range(self.batch)), self.potentials.p)]

    def compute(self, seed, bias, weight, size):
        rng, size = np.random.default_rng(int(seed)), tuple(map(int, size))
        draw = Sampler.of(self.potentials, self.sweeps)
        out = np.empty((*size, self.potentials.p), np.int64)
        if bias.size == bias.shape[-1] and weight.size == weight.shape[-1]:
            draw(rng, bias.reshape(-1), weight.reshape(-1), out.reshape(-1, self.potentials.p))
            return out
        bias = np.broadcast_to(bias, (*size, bias.shape[-1]))
        weight = np.broadcast_to(weight, (*size, weight.shape[-1]))
        for index in np.ndindex(*size):
            draw(rng, bias[index], weight[index], out[index][None])
        return out

    def connection_pattern(self, node):
        """No derivatives."""
        return [[False]] * 4


class PairwiseRV(SymbolicRandomVariable):
    """Rows of states; what the field is like travels on the Op."""

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
        inputs = [rng, size, *params]
        return cls(
            inputs=inputs, outputs=[next_rng, draw(seed, bias, weight, shape)], options=options
        )(*inputs)

    def rebuild_rv(self, *params, **kwargs):
        """Build the graph of a draw of another size."""
        return type(self).rv_op(*params, **kwargs, **self.options)


class IncompletePairwiseRV(PairwiseRV):
    """Rows of states of which some are variables of their own."""

    extended_signature = "[rng],[size],(b),(w),(m)->[rng],(p)"
    _print_name = ("IncompletePairwiseMRF", "\\operatorname{IncompletePairwiseMRF}")

    @property
    def mask(self) -> "Mask":
        """Which cells are missing."""
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
        probabilities of each state given the rest of its row (Besag 1975): not a density, but of
        any size.
    sweeps : int, default 200
        Of Gibbs sampling, where rows are drawn by it.
    **kwargs
        ``dims``, ``shape`` (whose last entry is p), ``observed``, ...

    Raises
    ------
    ValueError
        If there are too many joint states for the exact likelihood and too many edges to sum variables
        out along them, the likelihood is unknown, or something is observed that is no state.

    Notes
    -----
    Rows are drawn from the table of all joint states up to 2^16 of them; beyond, exactly along the
    edges, each variable given those that are summed out after it, if the potentials have few edges;
    exactly by coupling from the past if all variables have two states and attract each other (Propp
    and Wilson 1996); otherwise by `sweeps` Gibbs sweeps from uniform states, each row a chain of its
    own. A row whose coupling takes more than 4,096 sweeps is drawn by Gibbs sampling too. Under ``"pseudo"`` rows are
    drawn from the field all the same.

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
        """Add the rows to the model, if they are states."""
        if observed is not None:
            potentials = kwargs.get("potentials")
            check_states(name, observed, None if potentials is None else potentials.states)
        return super().__new__(cls, name, *args, observed=observed, **kwargs)

    @classmethod
    def dist(cls, bias, weight, *, potentials, likelihood="exact", sweeps=SWEEPS, **kwargs):
        """Create the distribution without a model."""
        options = _options(potentials, likelihood, sweeps)
        params = _params(bias, weight, potentials)
        _tell_step(*params[1:])
        return super().dist(params, **options, **kwargs)

    def support_point(rv, size, bias, weight):
        """Return rows of first states."""
        return _first_states(rv, size)


class IncompletePairwiseMRF(Discrete):
    """Rows of states from a pairwise Markov random field, some of which were not observed.

    The density is that of :class:`PairwiseMRF` for the table whose missing cells are `cells`; with
    cells that have :class:`MissingStates` as their prior and the exact likelihood, the two are the density of observed
    and missing cells together. Draws are complete rows.

    Parameters
    ----------
    bias, weight, potentials, likelihood, sweeps
        As in :class:`PairwiseMRF`.
    cells : TensorVariable of int, shape (missing cells,)
        Row by row.
    missing : (n, p) array_like of bool
        True where a cell was not observed.

    Notes
    -----
    ``pm.sample`` draws cells that are :class:`MissingStates` and that nothing else depends on by Gibbs sampling
    (:class:`bayesstruct.steps.PairwiseCells`, or the step of the weights if these may be zero), from their law in the
    field under either likelihood. Under the pseudo-likelihood the density has another law of them, in which neighbours
    count twice; a step that goes by the density, as those of PyMC do, draws from it.
    """

    rv_type = IncompletePairwiseRV
    rv_op = IncompletePairwiseRV.rv_op

    def __new__(cls, name, *args, missing, potentials, observed=None, **kwargs):
        """Add the rows to the model, if what was observed of them are states."""
        if observed is not None:
            check_states(name, observed, potentials.states, missing)
        options = {"missing": missing, "potentials": potentials}
        return super().__new__(cls, name, *args, observed=observed, **options, **kwargs)

    @classmethod
    def dist(
        cls,
        bias,
        weight,
        cells,
        *,
        missing,
        potentials,
        likelihood="exact",
        sweeps=SWEEPS,
        **kwargs,
    ):
        """Create the distribution without a model."""
        options = _options(potentials, likelihood, sweeps) | {"mask": Mask(missing)}
        params = [*_params(bias, weight, potentials), pt.as_tensor_variable(cells)]
        _tell_step(*params[1:])
        return super().dist(params, **options, **kwargs)

    def support_point(rv, size, bias, weight, cells):
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
        The pairs i < j that have weights, the others being independent given the rest. With few of
        them the exact likelihood serves any number of columns.
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
    def dist(cls, bias, weight, *, coding="01", edges=None, **kwargs):
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


def check_states(name, observed, states, missing=None):
    """Refuse observed values that are no states, which PyMC would make whole numbers of.

    Parameters
    ----------
    name : str
    observed : array_like, DataFrame or shared variable
        (n, p) or (p,).
    states : tuple of int or None
        Number of states of each column; two if not given.
    missing : array_like of bool, optional
        Cells that may hold anything.

    Raises
    ------
    ValueError
        Names the column and the remedy.
    """
    columns = getattr(observed, "columns", None)
    if isinstance(observed, SharedVariable | Constant):
        observed = observed.get_value() if isinstance(observed, SharedVariable) else observed.data
    if isinstance(observed, Variable):
        return
    table = np.atleast_2d(np.asarray(observed))
    width = table.shape[-1]
    names = list(columns) if columns is not None else [f"column {j}" for j in range(width)]
    states = (2,) * width if states is None else states
    masked = np.broadcast_to(np.atleast_2d(np.ma.getmaskarray(observed)), table.shape)
    if width != len(states):
        raise ValueError(f"{name!r} has {len(states)} columns, the observed table has {width}")
    known = ~masked if missing is None else ~np.asarray(missing, bool).reshape(table.shape)
    for j, k in enumerate(states):
        try:
            own = numbers(names[j], table[..., j][known[..., j]])
        except ValueError as error:
            raise ValueError(
                f"{error}: states are 0 to {k - 1}; bs.models.pairwise_mrf takes labels of any kind"
            ) from None
        wrong = own[~((own >= 0) & (own < k) & (own == np.floor(own)))]
        if len(wrong):
            raise ValueError(f"{names[j]}: {wrong[0]:g} is no state. {_remedy(own, k)}")


def _remedy(values, k):
    """Say what to give instead of these values."""
    if np.isnan(values).any():
        return (
            "Drop the rows with missing cells, or use bs.models.pairwise_mrf, which imputes them (in a model of "
            "your own: bs.distributions.IncompletePairwiseMRF with cells that are bs.distributions.MissingStates)"
        )
    if set(values) <= {-1.0, 1.0}:
        return 'States are 0 and 1, also with coding="pm": give (x + 1) // 2'
    return (
        f"States are the whole numbers 0 to {k - 1}; bs.data.StateTable.read(table).codes has them"
    )


def _options(potentials, likelihood, sweeps):
    if likelihood not in LIKELIHOODS:
        raise ValueError(f"`likelihood` must be one of {LIKELIHOODS}, it is {likelihood!r}")
    if sweeps < 1:
        raise ValueError(f"`sweeps` must be 1 or more, it is {sweeps}")
    if likelihood == "exact":
        ExactSums.of(potentials)  # refuses what takes too long
    return {"potentials": potentials, "likelihood": likelihood, "sweeps": int(sweeps)}


def _tell_step(weight, *cells):
    """Mark weights that may be zero, and missing cells, as drawn together, and other missing cells as such.

    pm.sample asks steps about a variable without telling them the model.
    """
    spikes = SpikeAndSlabRV | GroupSpikeAndSlabRV
    together = weight.owner is not None and isinstance(weight.owner.op, spikes)
    for variable in (weight, *cells) if together else cells:
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
    return _log_density(op, value, _vector(bias), _vector(weight))


@_logprob.register(IncompletePairwiseRV)
def _incomplete_logp(op, values, rng, size, bias, weight, cells, **kwargs):
    (value,) = values
    rows, columns = (pt.as_tensor_variable(v) for v in (op.mask.rows, op.mask.columns))
    value = value[rows, columns].set(_vector(cells).astype(value.dtype))
    return _log_density(op, value, _vector(bias), _vector(weight))


def _vector(parameter):
    """Drop leading dimensions of length one."""
    while parameter.type.ndim > 1 and parameter.type.broadcastable[0]:
        parameter = parameter[0]
    if parameter.type.ndim > 1:
        raise ValueError("all rows of a random field have the same biases and weights")
    return parameter


def _log_density(op, value, bias, weight):
    potentials = op.potentials
    unary, pair = tables(bias, weight, potentials)
    inside = pt.all((value >= 0) & (value < np.array(potentials.states)), axis=-1)
    hot = _one_hot(value, potentials)
    if op.likelihood == "exact":
        energy = hot @ unary + _interaction(value, hot, weight, pair, potentials)
        logp = energy - log_partition(bias, weight, potentials)
    else:
        fields = _fields(value, hot, weight, pair, potentials)
        logits = unary + fields
        logp = (hot * logits).sum(axis=-1) - _log_totals(logits, potentials).sum(axis=-1)
    return pt.switch(inside, logp, -np.inf)


def _one_hot(value, potentials):
    """Which state each variable is in, (..., unary cells)."""
    owner = np.repeat(np.arange(potentials.p), potentials.states)
    state = np.concatenate([np.arange(k) for k in potentials.states])
    return pt.eq(value[..., pt.as_tensor_variable(owner)], state).astype("float64")


def _interaction(value, hot, weight, pair, potentials):
    """Sum of the pair potentials of each row."""
    if potentials.edges is None:
        return 0.5 * (hot * _fields(value, hot, weight, pair, potentials)).sum(axis=-1)
    # Few edges: what multiplies their weights is a table that is made once where rows are observed.
    i, j = (pt.as_tensor_variable(end) for end in potentials.ends)
    if potentials.scored:
        scores = _scores(value, potentials)
        return (scores[..., i] * scores[..., j]) @ weight
    rows, columns = (pt.as_tensor_variable(cell) for cell in potentials.cells)
    return (hot[..., rows] * hot[..., columns]) @ pair


def _scores(value, potentials):
    return 2.0 * value - 1.0 if potentials.kind == "spin" else value.astype("float64")


def _fields(value, hot, weight, pair, potentials):
    """Sum up what the other variables of the row add to each state of each variable."""
    if potentials.scored:
        scores, p = _scores(value, potentials), potentials.p
        index = np.full((p, p), potentials.weight_size)
        index[potentials.ends] = np.arange(potentials.weight_size)
        couplings = _assembled(weight, np.minimum(index, index.T))
        owner = np.repeat(np.arange(p), potentials.states)
        return potentials.scores * (scores @ couplings)[..., pt.as_tensor_variable(owner)]
    return hot @ _assembled(pair, block_index(potentials))


def block_index(potentials: Potentials) -> np.ndarray:
    """Cell of the pair tables for each pair of unary cells, (cells, cells); their number if none."""
    cells, none = int(potentials.unary_start[-1]), int(potentials.pair_start[-1])
    index = np.full((cells, cells), none)
    start, k = potentials.unary_start, potentials.states
    for e, (i, j) in enumerate(zip(*potentials.ends, strict=True)):
        block = potentials.pair_start[e] + np.arange(k[i] * k[j]).reshape(k[i], k[j])
        index[start[i] : start[i + 1], start[j] : start[j + 1]] = block
        index[start[j] : start[j + 1], start[i] : start[i + 1]] = block.T
    return index


def _assembled(values, index):
    padded = pt.concatenate([values, pt.zeros(1)])
    return padded[pt.as_tensor_variable(index.ravel())].reshape(index.shape)


def _log_totals(logits, potentials):
    """Log of the sum over the states of each variable, (..., p)."""
    widest = max(potentials.states)
    shape = tuple(logits.shape[d] for d in range(logits.type.ndim - 1))
    if set(potentials.states) != {widest}:
        index = np.full((potentials.p, widest), int(potentials.unary_start[-1]))
        for i, k in enumerate(potentials.states):
            index[i, :k] = potentials.unary_start[i] + np.arange(k)
        padded = pt.concatenate([logits, pt.full((*shape, 1), -np.inf)], axis=-1)
        logits = padded[..., pt.as_tensor_variable(index.ravel())]
    return pt.logsumexp(logits.reshape((*shape, potentials.p, widest)), axis=-1)
