"""Bayesian network: which columns of a table act on which, as far as a table can tell.

dag     ~ directed acyclic graph
x_i     ~ a law given the parents of column i: a linear regression, or a table of probabilities
arc     = 1 where the graph has an arc A -> B
"""

import numpy as np
import pymc as pm

from bayesstruct.core.missing import Mask, MissingStates
from bayesstruct.core.recorded import record
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.graphs.records import ArcEnds, ArcPrior
from bayesstruct.networks.exact.problem import (
    most_parents,
    network_table,
    positive_size,
    score_kind,
)
from bayesstruct.networks.kernels.fits import GaussianFit, LogisticFit, MultinomialFit
from bayesstruct.networks.priors.dag import DAG
from bayesstruct.networks.priors.discrete_network import (
    DiscreteNetwork,
    EvenTables,
    ProbabilityTables,
    table_cells,
)
from bayesstruct.networks.priors.fitted_networks import (
    FittedDiscreteNetwork,
    FittedGaussianNetwork,
    fitted,
)
from bayesstruct.networks.priors.gaussian_network import (
    ArcWeights,
    GaussianNetwork,
    Intercepts,
    NoiseVariances,
    arc_vector,
    coefficient_matrix,
)
from bayesstruct.networks.priors.implied import implied_arc_probability
from bayesstruct.networks.priors.incomplete_networks import (
    IncompleteDiscreteNetwork,
    IncompleteGaussianNetwork,
    NetworkCells,
)

__all__ = ["bayesian_network"]

_ROWS = ("observation", "node")
_CELLS = 2**12  # of the largest table, unless `max_parents` says otherwise


def bayesian_network(
    data,
    *,
    score="bge",
    prior="uniform",
    weights=None,
    edge_probability=None,
    max_parents=None,
    required=(),
    forbidden=(),
    tiers=None,
    interventions=None,
    equivalent_sample_size=None,
    pseudo_count=None,
):
    r"""Learn a directed acyclic graph over the columns of a table, and how sure its arcs are.

    .. math:: p(G \mid x) \propto p(G) \prod_i p(x_i \mid x_{\mathrm{pa}_i})

    The graph and the parameters of its local laws have a joint posterior; ``pm.sample`` integrates the
    parameters out while the graph moves and draws them afterwards.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, d) table: numbers for ``"bge"``, about normal (take logarithms of skewed columns), states
        (numbers, text, categories) for ``"bdeu"``. Missing cells are imputed inside the model, as if
        they were missing at random.
    score : {"bge", "bdeu", "bde", "bic", "gaussian", "multinomial", "logistic"}
        ``"bge"``: linear regressions with normal noise, on standardised columns. ``"bdeu"``: a table of
        probabilities for each configuration of the parents. Under both, graphs that imply the same
        conditional independences have the same marginal likelihood, so that only interventions or
        the prior tell their arcs apart. ``"bde"``: such tables with the same `pseudo_count` in each cell.

        The others weigh a graph by exp(-BIC / 2): ``"gaussian"`` of linear regressions,
        ``"multinomial"`` of tables of probabilities, ``"logistic"`` of logistic regressions of columns with two
        states; ``"bic"`` is the first for numbers and the second for text, booleans and categories. The parameters
        are then those of greatest likelihood given the graph, so that predictions and ``bs.do`` know how unsure
        the graph is, and **not** how unsure the parameters are; use ``"bge"`` or ``"bdeu"`` for that. They need
        complete rows; ``"gaussian"`` also columns that no parents determine exactly.
    prior : {"uniform", "edge", "fair", "order"}
        See :class:`bayesstruct.DAG`.
    weights : {"uniform", "edge", "fair"}, optional
        Of the parent sets under the prior ``"order"``.
    edge_probability : float, (d, d) array_like or DataFrame, optional
        Of the prior (or the weights) ``"edge"``, rows as parents.
    max_parents : int, optional
        Most parents of a column. Any number for columns of numbers. For states as many as keep the largest table of
        probabilities below 4,096 cells; each draw holds d of these.
    required, forbidden : iterable of pairs of column names, optional
        Arcs (parent, child) known to be present or absent; none by default.
    tiers : dict or iterable of iterables, optional
        Groups of columns, the earliest first (or the number of its tier for each column); no arc
        points to an earlier tier.
    interventions : (n, d) bool array_like or DataFrame, optional
        True where a column was *set* from outside in that row, whatever its parents were. Such a cell
        says nothing about the law of its column, but acts on others (Cooper and Yoo 1999). A DataFrame may
        leave out columns that were never set. Where a column of the table names what was set in each row, as
        ``intervention`` of ``bs.load_dataset("sachs_discrete")`` does, the mask is one line, see the examples;
        the column itself must not stay in the table. A cell that was set must not be missing.
    equivalent_sample_size : float, optional
        Rows that the prior is worth: 1 by default, the prior of the means for ``"bge"`` (with
        d + 1 more degrees of freedom for the covariance matrix) and of all tables for ``"bdeu"``.
    pseudo_count : float, optional
        Prior weight of each cell of a table under ``"bde"``: 1 by default, the K2 score.

    Returns
    -------
    pymc.Model
        With ``dag`` (node, node\_; rows are parents), ``arc`` over "A -> B", and the table ``x`` in its
        own units or as states 0, 1, .... For ``"bge"`` also ``weight`` over "A -> B", regression coefficients
        of standardised columns, ``intercept`` and ``noise_variance``; for ``"bdeu"`` ``table`` (node, cell), see
        :class:`bayesstruct.distributions.ProbabilityTables`. The other scores have the same names; ``"logistic"`` also
        ``log_odds_ratio`` over "A -> B". The pointwise log-likelihood of a BIC is that of the fitted laws less an
        equal share of the penalty. Where cells are missing, ``x_missing`` has them, in the units of
        the table or as states 0, 1, ..., named "column[row]". The pointwise log-likelihood of an incomplete table is
        that of the observed cells of each row for ``"bge"``, and that of the row as it was completed in each draw
        for ``"bdeu"``.

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    ValueError
        For an unknown option, one out of range, or constraints that contradict each other.

    Warns
    -----
    TableWarning
        What may be wrong with the table, such as a column that says which columns were set.

    Notes
    -----
    Arcs are effects only if no unobserved variable acts on two of the columns (**no latent
    confounding**) and no cause goes round in a circle. A table cannot show that. Without interventions the
    probabilities of an arc and of its reverse often share what belongs to the *edge*; look at both.

    Up to 11 columns the graphs are independent draws from their exact posterior; up to 14, a Markov chain goes over
    all graphs; beyond, over graphs whose parents are candidates and one more
    (:class:`bayesstruct.steps.NetworkMCMC`; for the prior ``"order"``
    :class:`bayesstruct.steps.OrderNetworkMCMC`). With few rows (some 30) and discrete columns, large parent sets
    have little probability each and some together; a row of ``bs.check`` says how much of it the candidates leave out.

    If cells are missing, graph, parameters and cells are drawn in turn, and the draws depend on each other the more,
    the more is missing (:class:`bayesstruct.steps.IncompleteNetworkMCMC`).

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
    Numbers that are skewed to the right, on a logarithmic scale:

    .. code-block:: python

        with bs.models.bayesian_network(np.log(bs.load_dataset("sachs")), prior="edge"):
            idata = pm.sample()
        bs.arc_table(idata)

    States, with interventions that a column names:

    .. code-block:: python

        cells = bs.load_dataset("sachs_discrete")
        target = cells.pop("intervention")  # "none", or the name of the column that was set
        was_set = pd.DataFrame({name: target == name for name in cells.columns})
        with bs.models.bayesian_network(cells, score="bdeu", max_parents=4, interventions=was_set):
            idata = pm.sample()
        bs.do(idata, {"PKA": 1})
    """
    score = score_kind(data, score, (*_SCORES, "bic"))
    size = _prior_size(score, equivalent_sample_size, pseudo_count)
    table, setting = network_table(
        data,
        score,
        interventions,
        incomplete=score in ("bge", "bdeu"),
        most=most_parents(max_parents),
    )
    bound = _bounded(table, score, max_parents)
    with pm.Model(coords=table.coords | {"ordered_pair": table.arc_names}) as model:
        dag = DAG(
            "dag", table.names, prior=prior, weights=weights, edge_probability=edge_probability,
            max_parents=bound, required=required, forbidden=forbidden, tiers=tiers,
            dims=("node", "node_"),
        )  # fmt: skip
        pm.Deterministic("arc", arc_vector(dag), dims="ordered_pair")
        _record_arcs(table, dag.owner.op)
        _SCORES[score](table, setting, dag, size, bound)
    return model


def _prior_size(score, equivalent_sample_size, pseudo_count):
    """Rows that the prior is worth, or the weight of each cell; checked."""
    given = {"equivalent_sample_size": equivalent_sample_size, "pseudo_count": pseudo_count}
    own = {"bge": "equivalent_sample_size", "bdeu": "equivalent_sample_size", "bde": "pseudo_count"}
    for name, value in given.items():
        if value is not None and own.get(score) != name:
            owners = " or ".join(repr(kind) for kind, option in own.items() if option == name)
            raise ValueError(f"`{name}` belongs to the score {owners}, not to {score!r}")
    size = given.get(own.get(score))
    return 1.0 if size is None else positive_size(own[score], size)


def _bounded(table, score, max_parents):
    """Most parents of a column; chosen by the size of the tables unless given."""
    if score in ("bge", "gaussian") or max_parents is not None:
        return max_parents
    fitting = [m for m in range(table.p) if table_cells(table.states, m) <= _CELLS]
    if not fitting:
        raise TableError(
            f"{column_list([table.names[int(np.argmax(table.states))]])}: more than {_CELLS} states; merge some"
        )
    return fitting[-1]


def _record_arcs(table, law):
    """Record what arcs are read with."""
    implied = implied_arc_probability(law.prior, order=law.order)
    source, target = table.arc_index
    ArcEnds.in_model(source, target).record()
    ArcPrior(implied[source, target], acyclic=1, independent=0).record()


def _gaussian(table, setting, dag, size, bound):
    d = table.p
    alpha_w = d + size + 1.0
    scale = size * (alpha_w - d - 1.0) / (size + 1.0)
    variance = NoiseVariances("noise_variance", dag, alpha_w, scale, dims="node")
    weight = ArcWeights("weight", dag, variance, scale, dims="ordered_pair")
    intercept = Intercepts("intercept", variance, size, dims="node")
    location = pm.Data("location", table.location, dims="node")
    spread = pm.Data("scale", table.scale, dims="node")
    params = intercept, coefficient_matrix(weight, d), variance, location, spread
    setting = np.where(setting, table.values, np.nan)
    if not table.missing.any():
        GaussianNetwork("x", *params, setting=setting, observed=table.values, dims=_ROWS)
        return
    filled = np.where(table.missing, table.location, table.values)
    mask = _record_missing(table)
    own = {"setting": setting, "missing": mask}
    NetworkCells("x_missing", *params, table=filled, **own, dims="missing")
    IncompleteGaussianNetwork("x", *params, **own, observed=filled, dims=_ROWS)


def _record_missing(table):
    """Record which cells are missing, and name them."""
    cells = [f"{table.names[j]}[{i}]" for i, j in np.argwhere(table.missing)]
    pm.modelcontext(None).add_coord("missing", cells)
    record("cell_missing", table.missing.astype("int64"), dims=_ROWS)
    return Mask(table.missing)


def _discrete(table, setting, dag, size, bound):
    cells = _record_states(table, bound)
    tables = ProbabilityTables(
        "table", dag, size, states=table.states, cells=cells, dims=("node", "cell")
    )
    options = _observed(table, setting)
    if not table.missing.any():
        DiscreteNetwork("x", dag, tables, **options)
        return
    mask = _record_missing(table)
    cells = MissingStates("x_missing", np.array(table.states)[mask.columns], dims="missing")
    options["observed"] = np.maximum(table.codes, 0)
    IncompleteDiscreteNetwork("x", dag, tables, cells, **options, missing=mask)


def _record_states(table, bound):
    """Record what states are read with; return the cells of the largest table."""
    cells = table_cells(table.states, bound)
    pm.modelcontext(None).add_coord("cell", np.arange(cells))
    record("states", np.array(table.states), dims="node")
    pm.modelcontext(None).add_coord(
        "state",
        [f"{name}={s}" for name, own in zip(table.names, table.levels, strict=True) for s in own],
    )
    record("state_node", np.repeat(np.arange(table.p), table.states), dims="state")
    return cells


def _even(table, setting, dag, size, bound):
    cells = _record_states(table, bound)
    tables = EvenTables("table", dag, size, states=table.states, cells=cells, dims=("node", "cell"))
    DiscreteNetwork("x", dag, tables, **_observed(table, setting))


def _observed(table, setting):
    """Options of the rows of a table of states."""
    setting = np.where(setting, table.codes, -1)
    return {"states": table.states, "setting": setting, "observed": table.codes, "dims": _ROWS}


def _gaussian_bic(table, setting, dag, size, bound):
    fit = GaussianFit(table.standardized, ~setting)
    intercept, matrix, variance, price = fitted(fit, dag)
    source, target = table.arc_index
    pm.Deterministic("weight", matrix[target, source], dims="ordered_pair")
    pm.Deterministic("intercept", intercept, dims="node")
    pm.Deterministic("noise_variance", variance, dims="node")
    location = pm.Data("location", table.location, dims="node")
    spread = pm.Data("scale", table.scale, dims="node")
    setting = np.where(setting, table.values, np.nan)
    FittedGaussianNetwork(
        "x", intercept, matrix, variance, price, location, spread,
        setting=setting, observed=table.values, dims=_ROWS,
    )  # fmt: skip


def _multinomial_bic(table, setting, dag, size, bound):
    fit = MultinomialFit(table.codes, table.states, ~setting, _record_states(table, bound))
    tables, price = fitted(fit, dag)
    _observe_fitted(table, setting, dag, tables, price)


def _logistic_bic(table, setting, dag, size, bound):
    fit = LogisticFit(table.codes, ~setting, _record_states(table, bound))
    tables, matrix, price = fitted(fit, dag)
    source, target = table.arc_index
    pm.Deterministic("log_odds_ratio", matrix[target, source], dims="ordered_pair")
    _observe_fitted(table, setting, dag, tables, price)


def _observe_fitted(table, setting, dag, tables, price):
    pm.Deterministic("table", tables, dims=("node", "cell"))
    FittedDiscreteNetwork("x", dag, tables, price, **_observed(table, setting))


_SCORES = {
    "bge": _gaussian,
    "bdeu": _discrete,
    "bde": _even,
    "gaussian": _gaussian_bic,
    "multinomial": _multinomial_bic,
    "logistic": _logistic_bic,
}
