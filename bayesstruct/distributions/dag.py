r"""Priors over directed acyclic graphs.

.. math:: p(G) \propto \prod_i \rho_i(\mathrm{pa}_i) \text{ if G is acyclic, } 0 \text{ otherwise;}

see :class:`bayesstruct.kernels.dag_priors.ParentPrior` for the weights of the parent sets.
"""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Discrete, SymbolicRandomVariable
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pymc.pytensorf import normalize_rng_param
from pytensor.graph.basic import Apply
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.distributions.seeded import SeededDraw, batch_of, seed_from
from bayesstruct.exact.dags import parent_prior
from bayesstruct.kernels.dag_priors import ParentPrior
from bayesstruct.ops.numba_dispatch import SolverOp

__all__ = ["DAG", "DAGRV", "log_prior"]


class _Law:
    """Draws of graphs."""

    dtype = "int8"
    ndims = ()

    def __init__(self, prior):
        self.prior = prior
        self.shape = (prior.d, prior.d)

    def __call__(self, rng, out):
        from bayesstruct.kernels.dag_sampling import draw_dag

        for graph in out:
            graph[:] = draw_dag(rng, self.prior)


class LogPrior(SolverOp):
    """Log weight of a graph, minus infinity if it has a cycle."""

    __props__ = ("prior", "batch")

    def __init__(self, prior, batch=0):
        self.prior, self.batch = prior, batch

    def make_node(self, dag):
        """Apply the Op to a (..., d, d) matrix."""
        self.register()
        dag = pt.as_tensor_variable(dag)
        return Apply(self, [dag], [pt.tensor(dtype="float64", shape=dag.type.shape[:-2])])

    def infer_shape(self, node, input_shapes):
        """Shape of the batch."""
        return [input_shapes[0][:-2]]

    def perform(self, node, inputs, output_storage):
        """Compute."""
        output_storage[0][0] = self.compute(*inputs)

    def compute(self, dag):
        """Compute from an array."""
        out = np.empty(dag.shape[:-2])
        for index in np.ndindex(*out.shape):
            out[index] = log_prior(self.prior, dag[index])
        return out

    def connection_pattern(self, node):
        """No derivatives."""
        return [[False]]

    def numba_function(self):
        """Return the call through the interpreter."""
        import numba

        compute = self.compute
        result = numba.types.Array(numba.types.float64, self.batch, "C")

        def weigh(dag):
            with numba.objmode(out=result):
                out = compute(dag)
            return out

        return weigh

    def source_files(self):
        """Return the files whose change makes compiled code obsolete."""
        return (__file__,)


def log_prior(prior, dag) -> float:
    """Log weight of a graph; normalised where that takes a formula, see `DAG`.

    Parameters
    ----------
    prior : ParentPrior
    dag : (d, d) array_like
        1 at (parent, child).
    """
    from bayesstruct.kernels.dag_sampling import is_acyclic, log_prior_constant

    if not (((dag == 0) | (dag == 1)).all() and is_acyclic(dag)):
        return -np.inf
    total = sum(prior.local(i, np.flatnonzero(dag[:, i])) for i in range(prior.d))
    return total - log_prior_constant(prior) if prior.exchangeable else total


class DAGRV(SymbolicRandomVariable):
    """A directed acyclic graph."""

    extended_signature = "[rng],[size]->[rng],(d,d)"
    _print_name = ("DAG", "\\operatorname{DAG}")

    def __init__(self, *args, prior, names, **kwargs):
        self.prior, self.names = prior, names
        super().__init__(*args, **kwargs)

    @classmethod
    def rv_op(cls, *, prior, names, size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        next_rng, seed = seed_from(rng)
        lengths, batch = batch_of(size, (), ())
        draw = SeededDraw(_Law(prior), batch)(seed, lengths)
        return cls(inputs=[rng, size], outputs=[next_rng, draw], prior=prior, names=names)(
            rng, size
        )

    def rebuild_rv(self, *params, **kwargs):
        """Build the graph of a draw of another size."""
        return type(self).rv_op(*params, **kwargs, prior=self.prior, names=self.names)


class DAG(Discrete):
    r"""A directed acyclic graph as a random variable: its adjacency matrix.

    ========  ==========================================================
    Support   (d, d) matrices of 0 and 1, rows as parents, without cycles
    ========  ==========================================================

    ``pm.sample`` draws it by :class:`bayesstruct.steps.NetworkMCMC` when it is the graph of a
    :class:`bayesstruct.GaussianNetwork` or :class:`bayesstruct.DiscreteNetwork`.

    Parameters
    ----------
    name : str
    variables : int or sequence of str
        Number of variables, or their names.
    prior : {"uniform", "edge", "fair"}
        ``"uniform"``: all graphs alike. ``"edge"``: each arc is present with probability
        `edge_probability`, given that there is no cycle. ``"fair"``: the weight of a parent set is
        one over the number of sets of its size, so that large sets are not favoured by their number.
    edge_probability : float or (d, d) array_like, optional
        Of ``"edge"``, rows as parents; about three neighbours for each variable by default.
    max_parents : int, optional
    required, forbidden : iterable of pairs (parent, child)
    tiers : dict or iterable of iterables, optional
        Groups of variables, the earliest first, or the number of its tier for each. No arc points to
        an earlier tier.
    **kwargs
        ``dims`` and the like.

    Raises
    ------
    TableError
        If an arc or a tier names a variable that does not exist, or an arc is required and forbidden.
    ValueError
        If an option is out of range or the required arcs form a cycle.

    Notes
    -----
    Draws are exact for all priors whose weights depend on numbers of parents only, uniform draws over
    all labelled graphs among them (Kuipers and Moffa 2015), and for up to 8 variables; otherwise
    they are ends of a Markov chain. The density is normalised in the first of these cases only.

    References
    ----------
    Kuipers, J. and Moffa, G. (2015). Uniform random generation of large acyclic digraphs. *Statistics
    and Computing* 25, 227-242.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            dag = bs.DAG("dag", ["rain", "sprinkler", "wet"], forbidden=[("wet", "rain")])
            pm.draw(dag)
    """

    rv_type = DAGRV
    rv_op = DAGRV.rv_op

    def __new__(cls, name, variables, **kwargs):
        """Add the graph to the model."""
        return super().__new__(cls, name, variables, **kwargs)

    @classmethod
    def dist(
        cls,
        variables,
        *,
        prior="uniform",
        edge_probability=None,
        max_parents=None,
        required=(),
        forbidden=(),
        tiers=None,
        **kwargs,
    ):
        """Create the distribution without a model."""
        names = list(range(variables)) if isinstance(variables, int) else list(variables)
        if not isinstance(prior, ParentPrior):
            prior = parent_prior(
                names,
                prior,
                edge_probability=edge_probability,
                max_parents=max_parents,
                required=required,
                forbidden=forbidden,
                tiers=tiers,
            )
        return super().dist([], prior=prior, names=tuple(names), **kwargs)

    def support_point(rv, size, *_):
        """Return the graph of the required arcs."""
        point = pt.constant(np.asarray(rv.owner.op.prior.required, "int8"))
        return point if rv_size_is_none(size) else pt.full((*size, *rv.shape[-2:]), point)


@_logprob.register(DAGRV)
def _logp(op, values, rng, size, **kwargs):
    (value,) = values
    return LogPrior(op.prior, value.type.ndim - 2)(value)
