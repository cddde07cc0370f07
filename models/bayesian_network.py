"""Bayesian network: which columns of a table act on which, as far as a table can tell.

dag     ~ directed acyclic graph
x_i     ~ distribution given the parents of column i: a linear regression, or a table of probabilities
arc     = 1 where the graph has an arc A -> B
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pymc as pm

from bayesstruct.core.missing import show_missing
from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.core.tables.missing_states import MissingStates
from bayesstruct.core.tables.rows import remember_rows
from bayesstruct.data.covariance import (
    CovarianceTable,
    given_rows_or_covariance,
    refuse_options_of_rows,
)
from bayesstruct.data.recoding import repeated_rows, without_codes
from bayesstruct.data.states import refuse_coded_states
from bayesstruct.networks.data.arcs import most_parents
from bayesstruct.networks.data.tables import DISCRETE_OR_MIXED, network_table
from bayesstruct.networks.exact.problem import check_score
from bayesstruct.networks.kernels.fits import GaussianFit, LogisticFit, MultinomialFit
from bayesstruct.networks.model_parts import (
    ROWS,
    coding_of_network,
    max_parents_of,
    observe_mixed,
    observe_other_rows,
    observed_states,
    prior_size,
    record_arcs,
    record_missing,
    record_mixed,
    record_states,
)
from bayesstruct.networks.priors.dag import DAG
from bayesstruct.networks.priors.discrete_network import (
    DiscreteNetwork,
    EvenTables,
    ProbabilityTables,
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
from bayesstruct.networks.priors.incomplete_mixed import (
    IncompleteMixedNetwork,
    MissingMixedValues,
)
from bayesstruct.networks.priors.incomplete_networks import (
    IncompleteDiscreteNetwork,
    IncompleteGaussianNetwork,
    MissingNetworkValues,
)
from bayesstruct.networks.priors.mixed_networks import MixedParameters
from bayesstruct.networks.priors.records import NetworkScore, SetMask
from bayesstruct.networks.priors.sample_covariance import NetworkCovariance

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike

__all__ = ["bayesian_network"]


def bayesian_network(
    data: "pd.DataFrame | ArrayLike | None" = None,
    *,
    cov: "pd.DataFrame | ArrayLike | None" = None,
    n: int | None = None,
    score: Literal[
        "bge", "bdeu", "bde", "bic", "gaussian", "multinomial", "logistic", "mixed"
    ] = "bge",
    prior: Literal["uniform", "edge", "fair", "order"] = "uniform",
    weights: Literal["uniform", "edge", "fair"] | None = None,
    edge_probability: "float | pd.DataFrame | ArrayLike | None" = None,
    max_parents: int | None = None,
    required: Iterable[tuple[str, str]] = (),
    forbidden: Iterable[tuple[str, str]] = (),
    tiers: dict[str, float] | Iterable[Iterable[str]] | None = None,
    interventions: "pd.DataFrame | ArrayLike | None" = None,
    equivalent_sample_size: float | None = None,
    pseudo_count: float | None = None,
    coefficient_scale: float | None = None,
    kinds: dict[str, str] | None = None,
    states: Any = None,
    missing_codes: Any = None,
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn a directed acyclic graph over the columns of a table, and how sure its arcs are.

    .. math:: p(G \mid x) \propto p(G) \prod_i p(x_i \mid x_{\mathrm{pa}_i})

    The graph and the parameters of each column given its parents have a joint posterior; ``pm.sample`` integrates the
    parameters out while the graph moves and draws them afterwards.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, d) table: numbers for ``"bge"``, about normal (take logarithms of skewed columns), states
        (numbers, text, categories) for ``"bdeu"``, both for ``"mixed"``. Missing values are imputed inside the model, as if
        they were missing at random.
    cov : DataFrame or (d, d) array_like, optional
        Instead of a table, its sample covariances (divisor n - 1, as of ``DataFrame.cov``) or correlations, for
        instance published ones; for ``"bge"``. The posterior is that of any rows that have them. The means
        of the columns are not known, so that ``bs.do``, ``bs.predict`` and intercepts are refused.
    n : int, optional
        Number of rows that `cov` was computed from.
    score : {"bge", "bdeu", "bde", "bic", "gaussian", "multinomial", "logistic", "mixed"}
        ``"bge"``: linear regressions with normal noise, on columns that are standardised by their means and standard
        deviations (divisor n - 1, of the observed values). ``"bdeu"``: a table of
        probabilities for each configuration of the parents. Under both, graphs that imply the same
        conditional independences have the same marginal likelihood, so that only interventions or
        the prior tell their arcs apart. ``"bde"``: such tables with the same `pseudo_count` in each cell.

        The others weigh a graph by exp(-BIC / 2): ``"gaussian"`` of linear regressions,
        ``"multinomial"`` of tables of probabilities, ``"logistic"`` of logistic regressions of columns with two
        states; ``"bic"`` is the first for numbers and the second for text, booleans and categories. The parameters
        are then those of greatest likelihood given the graph, so that predictions and ``bs.do`` include the uncertainty
        of the graph, and **not** that of the parameters; use ``"bge"`` or ``"bdeu"`` for that. They need
        complete rows; ``"gaussian"`` also columns that no parents determine exactly.

        ``"mixed"``: numbers and states in one graph. Each column is a regression on its parents: linear for numbers, logistic for two
        states, cumulative logistic for ordered categories, multinomial logistic for other states; see `kinds` and the notes. Equivalent graphs do **not** have the same marginal likelihood: which of two arcs A -> B and B -> A is more probable
        depends on which regression fits better, and so on the families. If they are wrong, such preferences mean nothing; trust the
        *adjacency* of two columns more than its direction.
    prior : {"uniform", "edge", "fair", "order"}
        See :class:`bayesstruct.DAG`.
    weights : {"uniform", "edge", "fair"}, optional
        Of the parent sets under the prior ``"order"``.
    edge_probability : float, (d, d) array_like or DataFrame, optional
        Of the prior (or the weights) ``"edge"``, rows as parents.
    max_parents : int, optional
        Maximum number of parents of a column. By default any number for columns of numbers; for states as many as
        keep the largest table of probabilities at 4,096 cells or fewer; each draw holds d of these.
    required, forbidden : iterable of pairs of column names, optional
        Arcs (parent, child) known to be present or absent; none by default.
    tiers : dict or iterable of iterables, optional
        Groups of columns, the earliest first (or the number of its tier for each column); no arc
        points to an earlier tier.
    interventions : (n, d) bool array_like or DataFrame, optional
        True where a column was *set* from outside in that row, whatever its parents were. Such a value
        carries no information about the distribution of its column, but acts on others (Cooper and Yoo 1999). A
        DataFrame may leave out columns that were never set. Where a column of the table names the column that was set in each row, as
        ``intervention`` of ``bs.load_dataset("sachs_discrete")`` does, the mask is one line, see the examples;
        the column itself must not stay in the table. A value that was set must not be missing.
    equivalent_sample_size : float, optional
        Rows that the prior is worth: 1 by default, the prior of the means for ``"bge"`` (with
        d + 1 more degrees of freedom for the covariance matrix) and of all tables for ``"bdeu"``.
    pseudo_count : float, optional
        Prior weight of each cell of a table under ``"bde"``: 1 by default, the K2 score.
    coefficient_scale : float, optional
        Standard deviation of the normal prior of coefficients under ``"mixed"``, of standardised numbers and of the difference between any two
        states; of columns of numbers relative to their noise. The square root of 2 by default, which is the prior of ``"bge"``.
    kinds : dict, optional
        Families of some columns under ``"mixed"``, by name: ``"normal"``, ``"student"`` or ``"laplace"`` noise for numbers;
        ``"logistic"``, ``"probit"`` or ``"cloglog"`` for two states; ``"ordinal"`` or ``"multinomial"``. By default ``"normal"`` for numbers,
        ``"logistic"`` for two values of any type, ``"ordinal"`` for ordered categories of pandas, ``"multinomial"`` for other states. Columns of whole
        numbers are numbers unless it says otherwise.
    states : list or dict of lists, optional
        All states of each column, in order, also those that never occur and have their prior: one list for all
        columns, or a dict with one for each of some. Categories of pandas and polars declare theirs.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.
    row_counts : (n,) array_like of int or str, optional
        How often each row was observed, or the name of the column that says so: a table of frequencies. The
        result is that of the table with repeated rows.

    Returns
    -------
    pymc.Model
        With ``dag`` (node, node\_; rows are parents), ``arc`` over "A -> B", and the table ``x`` in its
        own units or as states 0, 1, .... For ``"bge"`` also ``weight`` over "A -> B", ``intercept`` and
        ``noise_variance`` of regressions of *standardised* columns (:func:`bayesstruct.coefficients` and
        :func:`bayesstruct.covariance` have them in the units of the table); for ``"bdeu"`` ``table`` (node, cell), see
        :class:`bayesstruct.distributions.ProbabilityTables`. The other scores have the same names; ``"logistic"`` also
        ``log_odds_ratio`` over "A -> B". For ``"mixed"`` ``parameter`` over ``term``, all coefficients, intercepts, thresholds and noise
        scales of standardised columns, zero where there is no arc (:func:`bayesstruct.coefficients` has them in the units of the table). The pointwise log-likelihood of a BIC is that of the fitted parameters less an
        equal share of the penalty. Where values are missing, ``x_missing`` has them, in the units of
        the table or as states 0, 1, ..., named "column[row]". The pointwise log-likelihood of an incomplete table is
        that of the observed values of each row for ``"bge"``, and that of the row as it was completed in each draw
        for ``"bdeu"`` and ``"mixed"``. With `cov` there is ``covariance`` instead of ``x``: predictive draws are covariance
        matrices, and the log-likelihood is that of all rows together.

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    TypeError, ValueError
        For an unknown option, one out of range or one that needs rows, or constraints that contradict each other.

    Warns
    -----
    TableWarning
        If something may be wrong with the table, such as a column that says which columns were set.

    Notes
    -----
    Arcs are effects only if no unobserved variable acts on two of the columns (**no latent
    confounding**) and no cause goes round in a circle. A table cannot show that. Without interventions the
    probabilities of an arc and of its reverse often share that of the *edge*; look at both.

    Up to 11 columns the graphs are independent draws from their exact posterior; up to 14, a Markov chain goes over
    all graphs; beyond, over graphs whose parents are candidates and one more
    (:class:`bayesstruct.steps.NetworkMCMC`; for the prior ``"order"``
    :class:`bayesstruct.steps.OrderNetworkMCMC`). With few rows (some 30) and discrete columns, large parent sets
    are individually improbable but not negligible in total; a row of ``bs.check`` says how much of it the candidates
    leave out.

    If values are missing, graph, parameters and missing values are drawn in turn, and successive draws depend on each
    other more when more values are missing (:class:`bayesstruct.steps.IncompleteNetworkMCMC`, for ``"mixed"``
    :class:`bayesstruct.steps.MixedNetworkMCMC`).

    Under ``"mixed"`` a parent of numbers enters as its standardised value, ordered categories as equally spaced numbers with mean 0 and
    mean square 1, other states as one centred indicator for each of the K states but the first: 1 - 1/K where the parent has that state, -1/K
    elsewhere, so that intercepts are averages over states. Graphs are proposed by approximate (Laplace) evidences and accepted
    together with their parameters, so that the posterior is exact (:class:`bayesstruct.steps.MixedNetworkMCMC`). Noise variances have the inverse gamma
    prior of ``"bge"``, with the number of features of the parents in place of that of the parents, so that a table of normal numbers alone has the
    posterior of ``"bge"``; probabilities of ordered states without parents are uniform, and other intercepts normal with deviation 2.5.

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

        table = bs.load_dataset("sachs_discrete")
        target = table.pop("intervention")  # "none", or the name of the column that was set
        was_set = pd.DataFrame({name: target == name for name in table.columns})
        with bs.models.bayesian_network(table, score="bdeu", max_parents=4, interventions=was_set):
            idata = pm.sample()
        bs.do(idata, {"PKA": 1})

    Numbers and states, of which some have an order:

    .. code-block:: python

        people["school"] = pd.Categorical(
            people["school"], ["none", "primary", "high"], ordered=True
        )
        with bs.models.bayesian_network(people, score="mixed", kinds={"income": "student"}):
            idata = pm.sample()
        bs.do(idata, {"school": "high"})  # means of numbers, probabilities of states
    """
    check_score(score, _SCORES)
    size = prior_size(score, equivalent_sample_size, pseudo_count, coefficient_scale)
    if score == "mixed" and prior == "order":
        raise ValueError(
            "the prior 'order' does not go with score='mixed'; use 'uniform', 'edge' or 'fair'"
        )
    if given_rows_or_covariance(data, cov, n):
        refuse_coded_states(states, missing_codes)
        data, interventions = repeated_rows(row_counts, data, interventions)
        checked = network_table(
            without_codes(data, missing_codes),
            score,
            interventions,
            incomplete=score in ("bge", "bdeu", "mixed"),
            max_parents=most_parents(max_parents),
            states=states,
            counted=row_counts is not None,
            kinds=kinds,
            discrete=DISCRETE_OR_MIXED,
        )
        table: Any = checked.table
        local, was_set, observe = checked.score, checked.was_set, _SCORES[checked.score]
    else:
        options = {"states": states, "missing_codes": missing_codes, "row_counts": row_counts}
        options["kinds"] = kinds
        refuse_options_of_rows(interventions=interventions, **options)
        if score != "bge":
            raise ValueError(f"`cov` goes with score='bge', not with {score!r}, which needs rows")
        local = score
        table, was_set, observe = CovarianceTable.read(cov, n), None, _gaussian
    max_parents = max_parents_of(table, max_parents)
    with pm.Model(coords=table.coords | {"ordered_pair": table.arc_names}) as model:
        dag = DAG(
            "dag",
            table.names,
            prior=prior,
            weights=weights,
            edge_probability=edge_probability,
            max_parents=max_parents,
            required=required,
            forbidden=forbidden,
            tiers=tiers,
            dims=("node", "node_"),
        )
        pm.Deterministic("arc", arc_vector(dag), dims="ordered_pair")
        record_arcs(dag, identified=local == "mixed")
        if was_set is not None and was_set.any():
            SetMask(was_set.astype("int64")).record()
        observe(table, was_set, dag, size, max_parents)
        NetworkScore.of(local, size).record()
        record_codes(missing_codes)
        if was_set is not None:
            remember_rows(coding_of_network(table), observe_other_rows, "interventions")
    return model


def _gaussian(table, was_set, dag, size, max_parents):
    d = table.p
    alpha_w = d + size + 1.0
    scale = size * (alpha_w - d - 1.0) / (size + 1.0)
    variance = NoiseVariances("noise_variance", dag, alpha_w, scale, dims="node")
    weight = ArcWeights("weight", dag, variance, scale, dims="ordered_pair")
    intercept = Intercepts("intercept", variance, size, dims="node")
    params = intercept, coefficient_matrix(weight, d), variance, *_units(table)
    if isinstance(table, CovarianceTable):
        _observe_covariance(table, *params)
        return
    setting = np.where(was_set, table.values, np.nan)
    if not table.missing.any():
        GaussianNetwork("x", *params, setting=setting, observed=table.values, dims=ROWS)
        return
    filled = np.where(table.missing, table.location, table.values)
    own = {"setting": setting, "missing": record_missing(table)}
    MissingNetworkValues("x_missing", *params, table=filled, **own, dims="missing")
    x = IncompleteGaussianNetwork("x", *params, **own, observed=filled, dims=ROWS)
    show_missing(x, table.missing)


def _observe_covariance(table, intercept, coefficients, variance, location, scale):
    params = intercept, coefficients, variance, scale, pm.Data("rows", float(table.n))
    NetworkCovariance("covariance", *params, observed=table.covariance, dims=("node", "node_"))


def _units(table):
    location = pm.Data("location", table.location, dims="node")
    return location, pm.Data("scale", table.scale, dims="node")


def _discrete(table, was_set, dag, size, max_parents):
    cells = record_states(table, max_parents)
    tables = ProbabilityTables(
        "table", dag, size, states=table.states, cells=cells, dims=("node", "cell")
    )
    options = observed_states(table, was_set)
    if not table.missing.any():
        DiscreteNetwork("x", dag, tables, **options)
        return
    mask = record_missing(table)
    missing = MissingStates("x_missing", np.array(table.states)[mask.columns], dims="missing")
    options |= {"observed": np.maximum(table.codes, 0), "floats": True}
    x = IncompleteDiscreteNetwork("x", dag, tables, missing, **options, missing=mask)
    show_missing(x, table.missing, "int64")


def _even(table, was_set, dag, size, max_parents):
    cells = record_states(table, max_parents)
    tables = EvenTables("table", dag, size, states=table.states, cells=cells, dims=("node", "cell"))
    DiscreteNetwork("x", dag, tables, **observed_states(table, was_set))


def _gaussian_bic(table, was_set, dag, size, max_parents):
    fit = GaussianFit(table.standardized, ~was_set)
    intercept, matrix, variance, price = fitted(fit, dag)
    source, target = table.arc_index
    pm.Deterministic("weight", matrix[target, source], dims="ordered_pair")
    pm.Deterministic("intercept", intercept, dims="node")
    pm.Deterministic("noise_variance", variance, dims="node")
    params = intercept, matrix, variance, price, *_units(table)
    setting = np.where(was_set, table.values, np.nan)
    FittedGaussianNetwork("x", *params, setting=setting, observed=table.values, dims=ROWS)


def _multinomial_bic(table, was_set, dag, size, max_parents):
    fit = MultinomialFit(table.codes, table.states, ~was_set, record_states(table, max_parents))
    tables, price = fitted(fit, dag)
    _observe_fitted(table, was_set, dag, tables, price)


def _logistic_bic(table, was_set, dag, size, max_parents):
    fit = LogisticFit(table.codes, ~was_set, record_states(table, max_parents))
    tables, matrix, price = fitted(fit, dag)
    source, target = table.arc_index
    pm.Deterministic("log_odds_ratio", matrix[target, source], dims="ordered_pair")
    _observe_fitted(table, was_set, dag, tables, price)


def _observe_fitted(table, was_set, dag, tables, price):
    pm.Deterministic("table", tables, dims=("node", "cell"))
    FittedDiscreteNetwork("x", dag, tables, price, **observed_states(table, was_set))


def _mixed(table, was_set, dag, size, max_parents):
    record_mixed(table)
    parameters = MixedParameters("parameter", dag, size, layout=table.layout, dims="term")
    params = dag, parameters, *_units(table)
    if not table.missing.any():
        observe_mixed(table, was_set, *params)
        return
    options = {"layout": table.layout, "missing": record_missing(table), "dims": ROWS}
    options["setting"] = np.where(was_set, table.values, np.nan)
    filled = np.where(table.missing, table.location, table.values)
    missing = MissingMixedValues("x_missing", filled, options["missing"], dims="missing")
    x = IncompleteMixedNetwork("x", missing, *params, **options, observed=filled)
    show_missing(x, table.missing)


_SCORES = {
    "bge": _gaussian,
    "bdeu": _discrete,
    "bde": _even,
    "gaussian": _gaussian_bic,
    "multinomial": _multinomial_bic,
    "logistic": _logistic_bic,
    "mixed": _mixed,
}
