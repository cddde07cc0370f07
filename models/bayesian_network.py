"""Bayesian network: which columns of a table act on which, as far as a table can tell.

dag     ~ directed acyclic graph
x_i     ~ a law given the parents of column i: a linear regression, or a table of probabilities
arc     = 1 where the graph has an arc A -> B
"""

import numpy as np
import pymc as pm

from bayesstruct.data.errors import TableError, column_list
from bayesstruct.data.names import nearest
from bayesstruct.distributions.dag import DAG
from bayesstruct.distributions.discrete_network import (
    DiscreteNetwork,
    ProbabilityTables,
    table_cells,
)
from bayesstruct.distributions.gaussian_network import (
    ArcWeights,
    GaussianNetwork,
    Intercepts,
    NoiseVariances,
    arc_vector,
    coefficient_matrix,
)
from bayesstruct.distributions.implied import implied_arc_probability
from bayesstruct.exact.dags import network_table, parent_prior
from bayesstruct.models.parts import record

__all__ = ["bayesian_network"]

_CELLS = 2**12  # of the largest table, unless `max_parents` says otherwise


def bayesian_network(
    data,
    *,
    score="bge",
    prior="uniform",
    edge_probability=None,
    max_parents=None,
    required=(),
    forbidden=(),
    tiers=None,
    interventions=None,
    equivalent_sample_size=None,
):
    r"""Learn a directed acyclic graph over the columns of a table, and how sure its arcs are.

    .. math:: p(G \mid x) \propto p(G) \prod_i p(x_i \mid x_{\mathrm{pa}_i})

    The graph and the parameters of its local laws have a joint posterior; ``pm.sample`` integrates the
    parameters out while the graph moves and draws them afterwards.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, d) table without missing cells: numbers for ``"bge"``, states (numbers, text, categories) for
        ``"bdeu"``.
    score : {"bge", "bdeu"}
        ``"bge"``: linear regressions with normal noise, on standardised columns. ``"bdeu"``: a table of
        probabilities for each configuration of the parents. Under both, graphs that imply the same
        conditional independences have the same marginal likelihood, so that only interventions or
        the prior tell their arcs apart.
    prior : {"uniform", "edge", "fair"}
        See :class:`bayesstruct.DAG`.
    edge_probability : float, (d, d) array_like or DataFrame, optional
        Of the prior ``"edge"``, rows as parents.
    max_parents : int, optional
        Most parents of a column. Any number for ``"bge"``. For ``"bdeu"`` as many as keep the largest table of
        probabilities below 4,096 cells; each draw holds d of these.
    required, forbidden : iterable of pairs of column names, optional
        Arcs (parent, child) known to be present or absent.
    tiers : dict or iterable of iterables, optional
        Groups of columns, the earliest first (or the number of its tier for each column); no arc
        points to an earlier tier.
    interventions : (n, d) bool array_like or DataFrame, optional
        True where a column was *set* from outside in that row, whatever its parents were. Such a cell
        says nothing about the law of its column, but acts on others (Cooper and Yoo 1999). A DataFrame may
        leave out columns that were never set.
    equivalent_sample_size : float, optional
        Rows that the prior is worth: 1 by default, the prior of the means for ``"bge"`` (with
        d + 1 more degrees of freedom for the covariance matrix) and of all tables for ``"bdeu"``.

    Returns
    -------
    pymc.Model
        With ``dag`` (node, node\_; rows are parents), ``arc`` over "A -> B", and the table ``x`` in its
        own units or as states 0, 1, .... For ``"bge"`` also ``weight`` over "A -> B", regression coefficients
        of standardised columns, ``intercept`` and ``noise_variance``; for ``"bdeu"`` ``table`` (node, cell), see
        :class:`bayesstruct.ProbabilityTables`.

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    ValueError
        For an unknown option, one out of range, or constraints that contradict each other.

    Notes
    -----
    Arcs are effects only if no unobserved variable acts on two of the columns (**no latent
    confounding**) and no cause goes round in a circle. A table cannot show that. Without interventions the
    probabilities of an arc and of its reverse often share what belongs to the *edge*; look at both.

    Up to 11 columns the graphs are independent draws from their exact posterior; beyond, a Markov chain goes
    over graphs whose parents are candidates and one more (:class:`bayesstruct.steps.NetworkMCMC`).

    References
    ----------
    Geiger, D. and Heckerman, D. (2002). Parameter priors for directed acyclic graphical models and the
    characterization of several probability distributions. *Annals of Statistics* 30, 1412-1440.

    Heckerman, D., Geiger, D. and Chickering, D. M. (1995). Learning Bayesian networks: the combination of
    knowledge and statistical data. *Machine Learning* 20, 197-243.

    Kuipers, J. and Moffa, G. (2017). Partition MCMC for inference on acyclic digraphs. *JASA* 112, 282-299.

    Cooper, G. F. and Yoo, C. (1999). Causal discovery from a mixture of experimental and observational
    data. *UAI* 15, 116-125.

    Examples
    --------
    .. code-block:: python

        with bs.models.bayesian_network(bs.load_dataset("sachs")):
            idata = pm.sample()
        bs.arc_table(idata)
    """
    if score not in _SCORES:
        raise ValueError(nearest("score", score, _SCORES))
    size = 1.0 if equivalent_sample_size is None else float(equivalent_sample_size)
    if not 0.0 < size < np.inf:
        raise ValueError(f"`equivalent_sample_size` must be positive, it is {size:g}")
    table, setting = network_table(data, score, interventions)
    bound = _bounded(table, score, max_parents)
    parents = parent_prior(
        table.names,
        prior,
        edge_probability=edge_probability,
        max_parents=bound,
        required=required,
        forbidden=forbidden,
        tiers=tiers,
    )
    with pm.Model(coords=table.coords | {"ordered_pair": table.arc_names}) as model:
        dag = DAG("dag", table.names, prior=parents, dims=("node", "node_"))
        pm.Deterministic("arc", arc_vector(dag), dims="ordered_pair")
        _record_arcs(table, parents)
        _SCORES[score](table, setting, dag, size, bound)
    return model


def _bounded(table, score, max_parents):
    """Most parents of a column; chosen by the size of the tables unless given."""
    if score == "bge" or max_parents is not None:
        return max_parents
    fitting = [m for m in range(table.p) if table_cells(table.states, m) <= _CELLS]
    if not fitting:
        raise TableError(
            f"{column_list([table.names[int(np.argmax(table.states))]])}: more than {_CELLS} states; merge some"
        )
    return fitting[-1]


def _record_arcs(table, prior):
    """Record what arcs are read with."""
    source, target = table.arc_index
    record("arc_source", source, dims="ordered_pair")
    record("arc_target", target, dims="ordered_pair")
    record("arc_prior", implied_arc_probability(prior)[source, target], dims="ordered_pair")
    record("arc_acyclic", 1)
    record("arc_independent", 0)


def _gaussian(table, setting, dag, size, bound):
    d = table.p
    alpha_w = d + size + 1.0
    scale = size * (alpha_w - d - 1.0) / (size + 1.0)
    variance = NoiseVariances("noise_variance", dag, alpha_w, scale, dims="node")
    weight = ArcWeights("weight", dag, variance, scale, dims="ordered_pair")
    intercept = Intercepts("intercept", variance, size, dims="node")
    location = pm.Data("location", table.location, dims="node")
    spread = pm.Data("scale", table.scale, dims="node")
    GaussianNetwork(
        "x", intercept, coefficient_matrix(weight, d), variance, location, spread,
        setting=np.where(setting, table.values, np.nan),
        observed=table.values, dims=("observation", "node"),
    )  # fmt: skip


def _discrete(table, setting, dag, size, bound):
    cells = table_cells(table.states, bound)
    pm.modelcontext(None).add_coord("cell", np.arange(cells))
    tables = ProbabilityTables(
        "table", dag, size, states=table.states, cells=cells, dims=("node", "cell")
    )
    record("states", np.array(table.states), dims="node")
    pm.modelcontext(None).add_coord(
        "state",
        [f"{name}={s}" for name, own in zip(table.names, table.levels, strict=True) for s in own],
    )
    record("state_node", np.repeat(np.arange(table.p), table.states), dims="state")
    DiscreteNetwork(
        "x", dag, tables, states=table.states, setting=np.where(setting, table.codes, -1),
        observed=table.codes, dims=("observation", "node"),
    )  # fmt: skip


_SCORES = {"bge": _gaussian, "bdeu": _discrete}
