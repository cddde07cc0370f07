r"""The G-Wishart distribution of precision matrices with exact zeros, and a prior of its graph."""

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous, Discrete
from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.graph.basic import Constant
from pytensor.scalar import Switch

from bayesstruct.core.recognition import claim, is_elemwise, is_op, parameters, unpad
from bayesstruct.core.tensors import (
    as_float,
    as_square,
    constant_value,
    draw_batch,
    is_beta,
    random_ancestors,
)
from bayesstruct.data.arguments import number
from bayesstruct.precision.exact.constants import (
    adjacency_matrix,
    g_wishart_log_constant,
    scale_matrix,
)
from bayesstruct.precision.kernels.g_wishart.prime_components import is_complete, prime_components
from bayesstruct.precision.priors.edges import upper
from bayesstruct.precision.priors.precision import PrecisionRV, inside_cone, safe_log

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["GWishart", "IndependentEdges", "beta_share", "edge_matrix", "upper_indices"]

STEP = "precision_gibbs"


class IndependentEdgesRV(PrecisionRV):
    name = "independent_edges"
    signature = "(p,p)->(e)"
    dtype = "int64"
    _print_name = ("IndependentEdges", "\\operatorname{IndependentEdges}")

    def _supp_shape_from_params(self, dist_params, param_shapes=None):
        p = dist_params[0].shape[-1] if param_shapes is None else param_shapes[0][-1]
        return [p * (p - 1) // 2]

    @classmethod
    def rng_fn(cls, rng, probability, size):
        """Draw Bernoulli indicators."""

        def core(rng, probability):
            chances = probability[np.triu_indices(len(probability), 1)]
            return rng.random(chances.size) < chances

        p = probability.shape[-1]
        out = draw_batch(core, rng, (2,), (probability,), size, (p * (p - 1) // 2,))
        return out.astype("int64")

    def numba_draw(self):
        """Return the draw for Numba."""

        def draw(rng, probability):
            p = probability.shape[0]
            out = np.empty(p * (p - 1) // 2, np.int64)
            at = 0
            for i in range(p):
                for j in range(i + 1, p):
                    out[at] = rng.random() < probability[i, j]
                    at += 1
            return out

        return draw


class IndependentEdges(Discrete):
    r"""Undirected graph whose edges are independent: :math:`z_{ij} \sim \mathrm{Bernoulli}(\pi_{ij})`.

    ========  ==========================================
    Support   0/1 vectors of length p(p-1)/2, row-major
    ========  ==========================================

    Parameters
    ----------
    p : int
        Number of nodes.
    edge_probability : tensor_like of float or ``pm.Beta.dist``, default 0.5
        :math:`\pi`; a scalar or a symmetric (p, p) matrix, in which 0 forbids and 1 requires an edge. It may depend on variables
        of the model. A beta distribution becomes the variable ``edge_probability`` of the model, and is drawn exactly.
    fixed : array_like, optional
        (p, p) matrix whose zeros forbid and whose ones require edges, with a beta `edge_probability`.
    start : callable, optional
        Returns the (p(p-1)/2,) indicators that chains start from; its random parts are drawn anew for each chain
        (:class:`bayesstruct.ops.BootstrapStart`). The certain edges alone unless given.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            graph = bs.distributions.IndependentEdges("graph", 5, pm.Beta.dist(1, 4))
            precision = bs.GWishart("precision", graph)
            bs.edges(precision)
            pm.MvNormal("x", np.zeros(5), tau=precision, observed=rows)
    """

    rv_type = IndependentEdgesRV
    rv_op = IndependentEdgesRV.build

    def __new__(cls, name, p, edge_probability=0.5, *, fixed=None, **kwargs):
        """Create the variable in the model in context."""
        if is_beta(edge_probability) and edge_probability not in pm.modelcontext(None).basic_RVs:
            edge_probability = _shared(name, p, edge_probability, fixed)
        elif fixed is not None:
            raise ValueError(
                "`fixed` goes with a beta `edge_probability`; a matrix has zeros and ones of its own"
            )
        graph = super().__new__(cls, name, p, edge_probability, **kwargs)
        if (found := beta_share(graph)) is not None:
            claim(found[0], STEP)
        return graph

    @classmethod
    def dist(cls, p, edge_probability=0.5, **kwargs):
        """Create the distribution without a model."""
        if not hasattr(edge_probability, "owner") and np.shape(edge_probability) not in (
            (),
            (p, p),
        ):
            raise ValueError(f"`edge_probability` must be a number or a symmetric {p} x {p} matrix")
        probability = as_square(edge_probability, p)
        if isinstance(probability, Constant):
            values = probability.data
            off = ~np.eye(values.shape[-1], dtype=bool)
            if values.shape != (p, p) or not np.allclose(values, values.T):
                raise ValueError(
                    f"`edge_probability` must be a number or a symmetric {p} x {p} matrix"
                )
            if not ((values[off] >= 0) & (values[off] <= 1)).all():
                raise ValueError("`edge_probability` must be between 0 and 1")
        elif probability.type.shape != (p, p):
            probability = pt.specify_shape(probability, (p, p))
        return super().dist([probability], **kwargs)

    def support_point(rv, size, probability):
        """Return the start if it was given, else the edges that are certain: every matrix has a start with them."""
        start = rv.owner.op.start
        point = pt.eq(upper(probability), 1.0).astype("int64") if start is None else start()
        return point if rv_size_is_none(size) else pt.full((*size, point.shape[-1]), point)

    def logp(value, probability):
        """Sum of the Bernoulli log probabilities; minus infinity off 0 and 1."""
        chances = upper(probability)
        binary = pt.or_(pt.eq(value, 0), pt.eq(value, 1))
        logp = pt.switch(pt.eq(value, 1), safe_log(chances), safe_log(1.0 - chances))
        return check_parameters(
            pt.switch(binary, logp, -np.inf).sum(-1),
            pt.all(chances >= 0.0),
            pt.all(chances <= 1.0),
            msg="0 <= edge_probability <= 1",
        )


def _shared(name, p, beta, fixed):
    """Matrix of edge probabilities that are one beta variable where they are not fixed."""
    pattern = np.broadcast_to(np.asarray(0.5 if fixed is None else fixed, float), (p, p))
    taken = "edge_probability" in pm.modelcontext(None).named_vars
    parameters_ = beta.owner.op.dist_params(beta.owner)
    share = pm.Beta(f"{name}_edge_probability" if taken else "edge_probability", *parameters_)
    free = (pattern > 0) & (pattern < 1)
    return pt.switch(pt.constant(free), share, pt.constant(np.array(pattern)))


def beta_share(graph: "TensorVariable") -> tuple["TensorVariable", np.ndarray] | None:
    """Return the beta variable that all free edges have as their probability, and the (p, p) pattern of the others.

    None if the probabilities are anything else.
    """
    probability = unpad(parameters(graph)[0])
    if not is_elemwise(probability, Switch):
        return None
    condition, share, pattern = probability.owner.inputs
    share = unpad(share)
    known = isinstance(condition, Constant) and isinstance(pattern, Constant) and is_beta(share)
    if not known or random_ancestors(*parameters(share)):
        return None
    return share, pattern.data


class GWishartRV(PrecisionRV):
    name = "g_wishart"
    signature = "(),(p,p),(e)->(p,p)"
    _print_name = ("GWishart", "\\operatorname{GWishart}")

    @classmethod
    def rng_fn(cls, rng, degrees_of_freedom, scale, edge, size):
        """Draw given the graph."""
        params = (degrees_of_freedom, scale, edge)
        return draw_batch(draw_g_wishart, rng, (0, 2, 1), params, size, scale.shape[-2:])

    def numba_draw(self):
        """Return the draw for Numba, a call back to Python."""
        import numba

        matrix = numba.types.float64[:, ::1]

        def draw(rng, degrees_of_freedom, scale, edge):
            b, own, indicators = degrees_of_freedom.item(), scale.copy(), edge.copy()
            with numba.objmode(out=matrix):
                out = draw_g_wishart(rng, b, own, indicators)
            return out

        return draw


def draw_g_wishart(rng, degrees_of_freedom, scale, edge) -> np.ndarray:
    """Draw one matrix given the indicators of the edges, row by row of the upper triangle."""
    from bayesstruct.precision.kernels.g_wishart.draws import g_wishart

    return g_wishart(rng, float(degrees_of_freedom), scale, edge_matrix(edge, len(scale)))


def edge_matrix(edge: np.ndarray, p: int) -> np.ndarray:
    """Adjacency matrix, (p, p) bool, of the indicators of the upper triangle."""
    adjacency = np.zeros((p, p), bool)
    adjacency[upper_indices(p)] = np.asarray(edge) != 0
    return adjacency | adjacency.T


@cache
def upper_indices(p: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the upper triangle; NumPy makes them anew each time, which takes longer than a sweep."""
    indices = np.triu_indices(p, 1)
    for array in indices:
        array.flags.writeable = False
    return indices


class GWishart(Continuous):
    r"""G-Wishart distribution: precision matrices with the zeros of an undirected graph (Roverato 2002).

    .. math::

        p(K \mid G) = I_G(b, D)^{-1} \, |K|^{(b - 2) / 2} \, e^{-\mathrm{tr}(K D) / 2}, \qquad
        K \succ 0, \; K_{ij} = 0 \text{ for every pair that is no edge of } G

    ========  ==========================================
    Support   symmetric positive definite (p, p), zero off the graph
    ========  ==========================================

    Parameters
    ----------
    graph : networkx.Graph, (p, p) array_like or :class:`bayesstruct.distributions.IndependentEdges`
        A known graph, whose matrix is symmetric and has its edges where it is not zero, or a random one. Nodes 0, ..., p - 1 of a
        networkx graph are in the order of their numbers, others in that of ``graph.nodes``, not in that of the columns of a table:
        ``nx.to_numpy_array(graph, names)`` is the matrix in the order of `names`.
    degrees_of_freedom : tensor_like of float, default 3
        :math:`b`, more than 2.
    scale : float or (p, p) tensor_like, default 1
        :math:`D`, positive definite; a number stands for that multiple of the identity.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range, random where the constant has no closed form, or `scale` is not diagonal and
        the graph random.

    Notes
    -----
    *Draws* are exact on decomposable graphs, and by rejection on others; where rejection gives up (dense graphs of some fifty nodes, or a
    scale that contradicts the graph), they are the end of 50 Gibbs sweeps. See
    :func:`bayesstruct.precision.kernels.g_wishart.draws.g_wishart`.

    *logp* of a known graph contains the constant :math:`I_G`: exactly if the graph is decomposable, otherwise by Monte Carlo, with the
    standard error that :func:`bayesstruct.exact.g_wishart_log_constant` says; degrees of freedom and scale are then numbers. With a random
    graph *logp* leaves the constant out: it depends on the graph alone, and no sampler of other variables needs it.

    *Posterior draws* with tables of normal rows are by their own step, unasked: the matrix by Gibbs sweeps, a random graph by exact exchange
    (:mod:`bayesstruct.precision.kernels.g_wishart.graph_sweep`). The matrix has exact zeros, so that no other sampler can draw it:
    models with other likelihoods are refused; give rows of latent normal variables to them.

    References
    ----------
    A. Roverato (2002). Hyper inverse Wishart distribution for non-decomposable graphs and its application to Bayesian
    inference for Gaussian graphical models. Scandinavian Journal of Statistics 29, 391-411.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            precision = bs.GWishart("precision", networkx.cycle_graph(5))
            pm.MvNormal("x", np.zeros(5), tau=precision, observed=rows)

    With a random graph see :class:`bayesstruct.distributions.IndependentEdges`.
    """

    rv_type = GWishartRV
    rv_op = GWishartRV.build

    def __new__(cls, name, graph, *args, **kwargs):
        """Create the variable in the model in context."""
        if getattr(graph, "owner", None) is not None:
            claim(graph, STEP)
        return super().__new__(cls, name, graph, *args, **kwargs)

    @classmethod
    def dist(cls, graph, degrees_of_freedom=3.0, scale=1.0, **kwargs):
        """Create the distribution without a model."""
        if getattr(graph, "owner", None) is None:
            adjacency = adjacency_matrix(graph)
            p = len(adjacency)
            edge = pt.constant(adjacency[np.triu_indices(p, 1)].astype("int64"))
            _check_parameters(p, degrees_of_freedom, scale, adjacency)
        else:
            if not is_op(graph, IndependentEdgesRV):
                raise TypeError(
                    "a random `graph` is drawn from bs.distributions.IndependentEdges, not "
                    f"{getattr(graph.owner.op, 'name', None) or graph.owner.op}"
                )
            edge, p = graph, parameters(graph)[0].type.shape[-1]
            _check_parameters(p, degrees_of_freedom, scale, None)
        return super().dist([as_float(degrees_of_freedom), _square(scale, p), edge], **kwargs)

    def support_point(rv, size, degrees_of_freedom, scale, edge):
        """Return a diagonal matrix, which every graph allows."""
        diagonal = pt.diagonal(scale, axis1=-2, axis2=-1)
        point = pt.eye(scale.shape[-1]) * (degrees_of_freedom[..., None] / diagonal)[..., None, :]
        return point if rv_size_is_none(size) else pt.full((*size, *point.shape[-2:]), point)

    def logp(value, degrees_of_freedom, scale, edge):
        """Log density; without the constant if the graph is random."""
        p = scale.type.shape[-1]
        off = _off_graph(edge, p)
        b = degrees_of_freedom
        log_det = 2.0 * pt.log(pt.diagonal(pt.linalg.cholesky(value), axis1=-2, axis2=-1)).sum(-1)
        total = 0.5 * (b - 2.0) * log_det - 0.5 * (value * scale).sum((-2, -1))
        if isinstance(edge, Constant):
            total = total - _log_constant(edge_matrix(edge.data, p), b, scale)
        zero = pt.all(pt.or_(pt.eq(off, 0), pt.eq(value, 0.0)), axis=(-2, -1))
        return check_parameters(
            pt.switch(zero, inside_cone(total, value), -np.inf),
            b > 2.0,
            msg="degrees_of_freedom > 2",
        )


def _square(scale, p):
    """(p, p) tensor of a number, a matrix or a tensor."""
    if getattr(scale, "owner", None) is None and not isinstance(scale, pt.TensorVariable):
        return pt.constant(scale_matrix(scale, p))
    scale = as_float(scale)
    return scale if scale.type.ndim == 2 else scale * pt.eye(p)


def _check_parameters(p, degrees_of_freedom, scale, adjacency):
    """Raise for parameters out of range, and for random ones that need a constant without closed form."""
    random = [
        name
        for name, value in {"degrees_of_freedom": degrees_of_freedom, "scale": scale}.items()
        if hasattr(value, "owner") and random_ancestors(value)
    ]
    known = adjacency is not None and _decomposable(adjacency)
    if random and not known:
        why = "the graph is random" if adjacency is None else "the graph is not decomposable"
        raise ValueError(
            f"`{random[0]}` must be a number: {why}, so that the normalising constant has no closed form"
        )
    if "degrees_of_freedom" not in random:
        number("degrees_of_freedom", float(constant_value(as_float(degrees_of_freedom))), above=2)
    if "scale" not in random:
        matrix = constant_value(_square(scale, p))
        scale_matrix(matrix, p)
        if adjacency is None and (matrix != np.diag(np.diag(matrix))).any():
            raise ValueError(
                "`scale` must be diagonal if the graph is random: the draws of graphs need that"
            )


def _decomposable(adjacency) -> bool:
    return all(is_complete(adjacency[np.ix_(c, c)]) for c, _ in prime_components(adjacency))


def _off_graph(edge, p):
    """1 where the matrix has to be zero, (..., p, p)."""
    source, target = np.triu_indices(p, 1)
    place = np.zeros((p, p), "int64")
    place[source, target] = place[target, source] = np.arange(len(source))
    if len(source) == 0:
        return pt.zeros((p, p), dtype="int64")
    return pt.switch(
        np.eye(p, dtype=bool), 0, 1 - edge[..., place.ravel()].reshape((*edge.shape[:-1], p, p))
    )


def _log_constant(adjacency, b, scale):
    """Log constant of a known graph as a tensor."""
    if not _decomposable(adjacency):
        freedom, matrix = (constant_value(v) for v in (b, scale))
        return g_wishart_log_constant(adjacency, float(freedom), matrix).value
    total = 0.0
    for component, separator in prime_components(adjacency):
        total = total + _complete(b, scale, component) - _complete(b, scale, separator)
    return total


def _complete(b, scale, nodes):
    """Log constant of the complete graph of some nodes."""
    size = len(nodes)
    if size == 0:
        return 0.0
    half = 0.5 * (b + size - 1.0)
    block = scale[..., nodes[:, None], nodes[None, :]]
    log_det = 2.0 * pt.log(pt.diagonal(pt.linalg.cholesky(block), axis1=-2, axis2=-1)).sum(-1)
    gammas = sum(pt.gammaln(half - 0.5 * k) for k in range(size))
    return (
        half * size * np.log(2.0)
        + 0.25 * size * (size - 1) * np.log(np.pi)
        + gammas
        - half * log_det
    )
