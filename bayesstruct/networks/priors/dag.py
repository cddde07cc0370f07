r"""Priors over directed acyclic graphs.

.. math:: p(G) \propto \prod_i \rho_i(\mathrm{pa}_i) \text{ if G is acyclic, } 0 \text{ otherwise,}

or this times the number of topological orders of G; see
:class:`bayesstruct.networks.kernels.dag_priors.ParentPrior` for the weights of the parent sets.
"""

import inspect

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Discrete, SymbolicRandomVariable
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pymc.pytensorf import normalize_rng_param
from pytensor.graph.basic import Apply
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.draws import seeded_draw
from bayesstruct.core.ops import InterpretedOp
from bayesstruct.data.errors import TableError, listing
from bayesstruct.data.names import nearest
from bayesstruct.networks.data.arcs import order_weights, parent_prior
from bayesstruct.networks.kernels.dag_priors import ParentPrior

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorVariable

__all__ = ["DAG", "DAGRV", "OrderDAGRV", "log_prior"]

#: Options that PyMC has for any distribution.
_PYMC = (
    "dims",
    "observed",
    "total_size",
    "initval",
    "transform",
    "default_transform",
    "shape",
    "size",
    "rng",
    "return_next_rng",
)


class _Law:
    """Draws of graphs."""

    dtype = "int8"
    ndims = ()

    def __init__(self, prior, order):
        self.prior, self.order = prior, order
        self.shape = (prior.d, prior.d)

    def __call__(self, rng, out):
        from bayesstruct.networks.kernels.prior_draws import draw_dag

        for graph in out:
            graph[:] = draw_dag(rng, self.prior, order=self.order)


class LogPrior(InterpretedOp):
    """Log weight of a graph, minus infinity if it has a cycle."""

    __props__ = ("prior", "batch", "order")

    def __init__(self, prior, batch=0, order=False):
        self.prior, self.batch, self.order = prior, batch, order

    def make_node(self, dag):
        """Apply the Op to a (..., d, d) matrix."""
        self.register()
        dag = pt.as_tensor_variable(dag)
        return Apply(self, [dag], [pt.tensor(dtype="float64", shape=dag.type.shape[:-2])])

    def infer_shape(self, node, input_shapes):
        """Shape of the batch."""
        return [input_shapes[0][:-2]]

    def compute(self, dag):
        """Compute from an array."""
        out = np.empty(dag.shape[:-2])
        for index in np.ndindex(*out.shape):
            out[index] = log_prior(self.prior, dag[index], order=self.order)
        return out

    def connection_pattern(self, node):
        """No derivatives."""
        return [[False]]


def log_prior(prior: ParentPrior, dag: "ArrayLike", *, order: bool = False) -> float:
    """Log weight of a graph; normalised where the constant has a formula, see `DAG`.

    Parameters
    ----------
    prior : ParentPrior
    dag : (d, d) array_like
        1 at (parent, child).
    order : bool
        Whether the weight is multiplied by the number of topological orders.

    Raises
    ------
    ValueError
        If the graph has another shape, or orders are counted and a component has more than 22 variables.
    """
    from bayesstruct.networks.kernels.dags import is_acyclic
    from bayesstruct.networks.kernels.linear_extensions import log_orders
    from bayesstruct.networks.kernels.prior_draws import log_prior_constant

    dag = np.asarray(dag)
    _check_shape(dag.shape, prior.d)
    if not (((dag == 0) | (dag == 1)).all() and is_acyclic(dag)):
        return -np.inf
    total = sum(prior.local(i, np.flatnonzero(dag[:, i])) for i in range(prior.d))
    if order:
        total += log_orders(dag)
    return total - log_prior_constant(prior, order=order) if prior.exchangeable else total


def _check_shape(shape, d):
    """Refuse a shape other than (..., d, d); lengths that are not known are None."""
    if len(shape) < 2 or any(length not in (None, d) for length in shape[-2:]):
        raise ValueError(
            f"a graph on {d} variables is a {d} x {d} matrix, rows as parents; the value has shape "
            f"{tuple(shape)}"
        )


class _GraphRV(SymbolicRandomVariable):
    """A directed acyclic graph; `order` says whether the prior counts its topological orders."""

    extended_signature = "[rng],[size]->[rng],(d,d)"
    _print_name = ("DAG", "\\operatorname{DAG}")
    order = False

    def __init__(self, *args, prior, names, **kwargs):
        self.prior, self.names = prior, names
        super().__init__(*args, **kwargs)

    @classmethod
    def rv_op(cls, *, prior, names, size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        next_rng, draw = seeded_draw(_Law(prior, cls.order), rng, size, ())
        return cls(inputs=[rng, size], outputs=[next_rng, draw], prior=prior, names=names)(
            rng, size
        )

    def rebuild_rv(self, *params, **kwargs):
        """Build the graph of a draw of another size."""
        return type(self).rv_op(*params, **kwargs, prior=self.prior, names=self.names)


class DAGRV(_GraphRV):
    """A directed acyclic graph with a modular prior."""


class OrderDAGRV(_GraphRV):
    """A directed acyclic graph whose prior counts topological orders.

    A separate type, so that steps for modular priors do not accept it.
    """

    order = True


def _graph_rv(*, order, **kwargs):
    return (OrderDAGRV if order else DAGRV).rv_op(**kwargs)


class DAG(Discrete):
    r"""A directed acyclic graph as a random variable: its adjacency matrix.

    ========  ==========================================================
    Support   (d, d) matrices of 0 and 1, rows as parents, without cycles
    ========  ==========================================================

    ``pm.sample`` draws it by :class:`bayesstruct.steps.NetworkMCMC`, or
    :class:`bayesstruct.steps.OrderNetworkMCMC` under the prior ``"order"``, when it is the graph of a
    :class:`bayesstruct.distributions.GaussianNetwork` or :class:`bayesstruct.distributions.DiscreteNetwork`.

    Parameters
    ----------
    name : str
    variables : int or sequence of str
        Number of variables, or their names.
    prior : {"uniform", "edge", "fair", "order"}
        ``"uniform"``: all graphs have the same probability. ``"edge"``: each arc is present with probability
        `edge_probability`, given that there is no cycle. ``"fair"``: the weight of a parent set is
        one over the number of sets of its size, so that large sets are not favoured by their number.
        ``"order"``: the number of topological orders of the graph, times the weights of its parent sets.
        All orders of the variables then have the same probability (``"uniform"`` weights), and equivalent graphs
        have not.
    weights : {"uniform", "edge", "fair"}, optional
        Of the parent sets under ``"order"``: ``"uniform"``, or ``"edge"`` if `edge_probability` is given.
    edge_probability : float or (d, d) array_like, optional
        Of ``"edge"``, rows as parents; about three neighbours for each variable by default.
    max_parents : int, optional
        Maximum number of parents of a variable; any number by default.
    required, forbidden : iterable of pairs (parent, child)
    tiers : dict or iterable of iterables, optional
        Groups of variables, the earliest first, or the number of its tier for each. No arc points to
        an earlier tier.
    **kwargs
        ``dims`` and the like.

    Raises
    ------
    TableError
        If a name occurs twice, an arc or a tier names a variable that does not exist, or an arc is
        required and forbidden.
    TypeError
        If `variables` is neither a whole number nor names, or there is no such option.
    ValueError
        If an option is out of range or the required arcs form a cycle.

    Notes
    -----
    Draws are exact for all priors whose weights depend on numbers of parents only, uniform draws over
    all labelled graphs among them (Kuipers and Moffa 2015), and for up to 8 variables; otherwise
    they are ends of a Markov chain. The density is normalised in the first of these cases only.

    The density of ``"order"`` counts topological orders over the sets of variables that may come first, in
    memory for 2**k numbers for a component of k variables: up to 22 (half a second, 32 MiB); more raise
    a ValueError. The samplers do not count orders, so that only a start with such a graph is refused.

    References
    ----------
    Friedman, N. and Koller, D. (2003). Being Bayesian about network structure. *Machine Learning* 50,
    95-125 (priors over orders).

    Kuipers, J. and Moffa, G. (2015). Uniform random generation of large acyclic digraphs. *Statistics
    and Computing* 25, 227-242.

    Examples
    --------
    Draws from the prior:

    .. code-block:: python

        dag = bs.DAG.dist(["rain", "sprinkler", "wet"], forbidden=[("wet", "rain")])
        pm.draw(dag, 10)

    A complete model of standardised columns; the hyperparameters are those of the BGe score, without which
    the graph cannot be drawn. (:func:`bayesstruct.models.bayesian_network` makes it, and the names that
    ``bs.arc_table`` and ``bs.do`` read.)

    .. code-block:: python

        names = ["rain", "sprinkler", "wet"]
        size = 1.0  # rows that the prior is worth
        alpha_w = len(names) + size + 1.0
        scale = size * (alpha_w - len(names) - 1.0) / (size + 1.0)
        with pm.Model(coords={"node": names, "node_": names}):
            dag = bs.DAG("dag", names, forbidden=[("wet", "rain")], dims=("node", "node_"))
            variance = bs.distributions.NoiseVariances(
                "noise_variance", dag, alpha_w, scale, dims="node"
            )
            weight = bs.distributions.ArcWeights("weight", dag, variance, scale)
            intercept = bs.distributions.Intercepts("intercept", variance, size, dims="node")
            matrix = bs.distributions.coefficient_matrix(weight, len(names))
            bs.distributions.GaussianNetwork("x", intercept, matrix, variance, observed=z)
            idata = pm.sample()
        idata.posterior["dag"].mean(("chain", "draw"))  # rows are parents
    """

    rv_type = _GraphRV
    rv_op = staticmethod(_graph_rv)

    def __new__(cls, name: str, variables: int | Sequence[str], **kwargs):
        """Add the graph to the model."""
        _check_options(kwargs)
        return super().__new__(cls, name, variables, **kwargs)

    @classmethod
    def dist(
        cls,
        variables: int | Sequence[str],
        *,
        prior: Literal["uniform", "edge", "fair", "order"] | ParentPrior = "uniform",
        weights: Literal["uniform", "edge", "fair"] | None = None,
        edge_probability: "float | pd.DataFrame | ArrayLike | None" = None,
        max_parents: int | None = None,
        required: Iterable[tuple] = (),
        forbidden: Iterable[tuple] = (),
        tiers: dict | Iterable[Iterable] | None = None,
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        _check_options(kwargs)
        names, order = _names(variables), isinstance(prior, str) and prior == "order"
        if not isinstance(prior, ParentPrior):
            prior = parent_prior(
                names,
                order_weights(prior, weights, edge_probability),
                edge_probability=edge_probability,
                max_parents=max_parents,
                required=required,
                forbidden=forbidden,
                tiers=tiers,
            )
        return super().dist([], prior=prior, names=tuple(names), order=order, **kwargs)

    def support_point(rv, size, *_):
        """Return the graph of the required arcs."""
        point = pt.constant(np.asarray(rv.owner.op.prior.required, "int8"))
        return point if rv_size_is_none(size) else pt.full((*size, *rv.shape[-2:]), point)


def _check_options(given):
    """Refuse names that are options neither of the graph nor of PyMC."""
    own = [name for name in inspect.signature(DAG.dist).parameters if name != "kwargs"]
    if unknown := [name for name in given if name not in (*own, *_PYMC)]:
        raise TypeError(nearest("option of bs.DAG", unknown[0], (*own[1:], *_PYMC)))


def _names(variables):
    """Names of the variables, from their number or as given."""
    if isinstance(variables, Integral) and not isinstance(variables, bool):
        if variables < 1:
            raise ValueError(f"`variables` must be at least 1, it is {variables}")
        return list(range(variables))
    if isinstance(variables, str) or not isinstance(variables, Iterable):
        raise TypeError(f"`variables` is a whole number or a list of names, not {variables!r:.60}")
    names = list(variables)
    if twice := sorted({str(name) for name in names if names.count(name) > 1}):
        raise TableError(f"`variables` has {listing(twice)} more than once; names must differ")
    return names


@_logprob.register(_GraphRV)
def _logp(op, values, rng, size, **kwargs):
    (value,) = values
    _check_shape(value.type.shape, op.prior.d)
    return LogPrior(op.prior, value.type.ndim - 2, op.order)(value)
