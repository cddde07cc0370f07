"""Random graphs, and the correlations of a table given its graph."""

from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, Discrete
from pytensor.tensor.random.basic import BernoulliRV, IntegersRV

from bayesstruct.core.distributions import KernelRV
from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.recognition import claim
from bayesstruct.core.tensors import as_float
from bayesstruct.precision.ops.pseudo_likelihood import PseudoLikelihood
from bayesstruct.precision.priors.precision import safe_log

__all__ = ["EDGE", "STEP", "ImputationNumber", "NeighbourRegressions", "RandomGraph"]

STEP = "graph_jumps"  # name of the step method
EDGE = "edge"  # graph that is looked at, where there is one for each completed table
_NO_DRAWS = (
    "regressions of columns on their neighbours are no distribution of tables, so that there are no predictive draws: "
    'take draws of the graph only (var_names=["edge"]), or predict from bs.precision_draws(idata)'
)
_NO_ROWS = (
    "the log likelihood is a pseudo-likelihood of the whole table, one number for each draw, and has no part for each row, so that "
    "az.loo and az.compare say nothing; predict or compare with draws of the matrix: bs.precision_draws(idata)"
)


class RandomGraphRV(BernoulliRV):
    name = "random_graph"
    dtype = "int8"
    _print_name = ("RandomGraph", "\\operatorname{RandomGraph}")


class RandomGraph(Discrete):
    r"""Undirected graph whose edges are independent given their probabilities.

    ========  ==========================================
    Support   0/1 vectors of length p(p-1)/2, row-major
    ========  ==========================================

    As :class:`pymc.Bernoulli`, but an indicator takes one byte. A chain starts from the graph without edges, except for those
    that are certain, or with probability one half from a random graph with few edges, so that R-hat compares chains that began apart.

    Parameters
    ----------
    p : tensor_like of float
        (p(p-1)/2,) probabilities of the edges, pairs of columns row by row; 0 forbids and 1 requires an edge.
    """

    rv_op = RandomGraphRV()

    @classmethod
    def dist(cls, p, **kwargs):
        """Create the distribution without a model."""
        return super().dist([as_float(p)], **kwargs)

    def support_point(rv, size, p):
        """Return the graph of the certain edges or, in every second chain, a random graph with few others."""
        rng = pt.random.shared_rng(seed=None)
        rng, coin = pt.random.uniform(rng=rng, return_next_rng=True)
        _, u = pt.random.uniform(size=rv.shape, rng=rng, return_next_rng=True)
        few = pt.minimum(p, 1.0 / pt.sqrt(2.0 * rv.shape[-1]))  # about one neighbour of each column
        chosen = pt.or_(pt.ge(p, 1.0), pt.and_(coin < 0.5, u < few))
        return pt.broadcast_to(chosen, rv.shape).astype("int8")

    def logp(value, p):
        """Log probability of each indicator."""
        inside = pt.and_(pt.ge(p, 0.0), pt.le(p, 1.0))
        log_one, log_zero = safe_log(p), safe_log(1.0 - p)
        logp = pt.switch(pt.eq(value, 1), log_one, pt.switch(pt.eq(value, 0), log_zero, -np.inf))
        return pt.switch(inside, logp, -np.inf)


class ImputationRV(IntegersRV):
    """A uniform whole number by another type."""


class ImputationNumber(Discrete):
    """Number of one of several completed tables, all equally probable.

    Parameters
    ----------
    tables : int
    """

    rv_op = ImputationRV()

    @classmethod
    def dist(cls, tables: int, **kwargs):
        """Create the distribution without a model."""
        rv = super().dist([pt.as_tensor_variable(0), pt.as_tensor_variable(int(tables))], **kwargs)
        claim(rv, STEP)
        return rv

    def support_point(rv, size, low, high):
        """Return the first table."""
        return pt.zeros(rv.shape, dtype=rv.dtype)

    def logp(value, low, high):
        """Log probability."""
        return pt.switch(
            pt.and_(pt.ge(value, low), pt.lt(value, high)), -pt.log(as_float(high - low)), -np.inf
        )


class NeighbourRegressionsRV(KernelRV):
    name = "neighbour_regressions"
    signature = "(e),(),()->(p,p)"
    _print_name = ("NeighbourRegressions", "\\operatorname{NeighbourRegressions}")

    def _supp_shape_from_params(self, dist_params, param_shapes=None):
        pairs = dist_params[0].shape[-1] if param_shapes is None else param_shapes[0][-1]
        p = pt.cast(pt.round((1.0 + pt.sqrt(1.0 + 8.0 * pairs)) / 2.0), "int64")
        return [p, p]

    @classmethod
    def rng_fn(cls, rng, *params):
        """Refuse: a pseudo-likelihood is no distribution of tables."""
        raise NotImplementedError(_NO_DRAWS)

    def numba_draw(self):
        """Refuse."""
        raise NotImplementedError(_NO_DRAWS)


class NeighbourRegressions(Continuous):
    r"""Correlations of a table of normal columns given its graph, by regressions of each column on its neighbours.

    .. math::

        \log p(x \mid G) \approx w \sum_i \log p(x_i \mid x_{\mathrm{ne}(i)})

    where each term is the marginal density of a standardised column given those of its neighbours in the graph, if all columns
    were normal with a Wishart(3, I) precision matrix and means with a flat prior. Each of them is exact; their
    sum is a pseudo-likelihood, in the same closed form for graphs of all kinds. A dependence is seen at both of its ends: with the
    power w = 1/2 it counts once, with w = 1 twice.

    Parameters
    ----------
    edge : TensorVariable of int
        (p(p-1)/2,) indicators of the edges, pairs of columns row by row; with a leading dimension for the graphs of several
        tables.
    n : int
        Number of rows of the table.
    weight : float, default 0.5
        Power w of the pseudo-likelihood.

    Notes
    -----
    With ``M = I + (n - 1) R``, R the correlations, q neighbours S of column i and
    :math:`r = M_{ii} - M_{iS} M_{SS}^{-1} M_{Si}`, a term is

    .. math::

        \log \Gamma\bigl(\tfrac{n + 2 + q}{2}\bigr) - \log \Gamma\bigl(\tfrac{3 + q}{2}\bigr)
            - \tfrac{n - 1}{2} \log \pi - \tfrac{n + 2 + q}{2} \log r - \tfrac{1}{2} \log |M_{SS}|.

    With w = 1/2 the odds of a graph whose edges have no ends in common against the empty graph are the exact ones of a G-Wishart(3, I)
    matrix, since a pair of columns has the Bayes factor that each of its ends has. On 200 tables of four columns from the model (edges with
    probability .3; ``benchmarks/pseudo_likelihood_calibration.py``) probabilities of edges differ from the exact ones by .016, .011 and .006 on average (n = 20, 100, 500), the worst edge of a table by .043, .037
    and .025 on average and by .34 at most; with w = 1 by .072, .042 and .023, .135, .093 and .066, and .60. The log scores of the truth are .465, .308 and
    .233, exact .465, .303 and .225, with w = 1 .596, .424 and .354. Areas under the precision-recall curve are those of w = 1 within .004.

    The fractional prior of the regressions in [1]_ was tried in its place (w = 1), and areas under the precision-recall curve do not decide: on
    two tables with p = 200, n = 400 (recipe of ``benchmarks/pseudo_likelihood.py``) .854 and .774 against .847 and .777 here, on one with
    p = 1,000 and 1,000 edges .868 (n = 1,000) and .782 (n = 400) against .870 and .785. This one is the default because it is proper and
    has a value for every graph, also where a column has n - 1 neighbours or more.

    References
    ----------
    .. [1] J. Leppä-aho, J. Pensar, T. Roos and J. Corander (2017). Learning Gaussian graphical models with fractional
       marginal pseudo-likelihood. International Journal of Approximate Reasoning 83, 21-42.

    Examples
    --------
    .. code-block:: python

        pairs = 5 * 4 // 2
        with pm.Model():
            edge = bs.distributions.RandomGraph("edge", np.full(pairs, 0.2))
            bs.distributions.NeighbourRegressions(
                "correlation", edge, len(table), observed=table.corr()
            )
            idata = pm.sample()
    """

    rv_op = NeighbourRegressionsRV()

    @classmethod
    def dist(cls, edge: Any, n: Any, weight: Any = 0.5, **kwargs):
        """Create the distribution without a model."""
        edge = pt.as_tensor_variable(edge)
        claim(edge, STEP)
        return super().dist([edge, as_float(n), as_float(weight)], **kwargs)

    def support_point(rv, size, edge, n, weight):
        """Return uncorrelated columns."""
        return pt.eye(rv.shape[-1])

    def logp(value, edge, n, weight):
        """Log pseudo-likelihood of the whole table, or of each of several."""
        if value.type.ndim == 2:
            density = PseudoLikelihood()(value, edge, n)
        else:
            n, tables = n.reshape((-1,))[0], range(edge.type.shape[0])
            density = pt.stack([PseudoLikelihood()(value[at], edge[at], n) for at in tables])
        return row_densities(weight * density, composite=_NO_ROWS)
