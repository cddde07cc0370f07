"""Tree: which columns of a table depend on each other directly, if they do so along a tree.

edge      ~ tree that joins all columns (0/1 for each pair)
precision ~ zero off the tree, for numbers; or table ~ probabilities of each column given its neighbour, for states; or parameter ~ both
x         ~ rows given these
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pymc as pm

from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.arguments import choice, optional_number, sample_size
from bayesstruct.data.recoding import repeated_rows, without_codes
from bayesstruct.data.states import refuse_coded_states
from bayesstruct.networks.data.tables import DISCRETE_OR_MIXED, network_table
from bayesstruct.trees.data import MIXED, mixed_tree_table, score_of_columns
from bayesstruct.trees.data import edge_covariates as read_edge_covariates
from bayesstruct.trees.exact import tree_log_odds
from bayesstruct.trees.model_parts.tables import (
    observe_numbers,
    observe_numbers_and_states,
    observe_states,
    random_tree,
)

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike

    from bayesstruct.data.intake import TableLike

__all__ = ["tree"]

_OBSERVE: dict[str, Any] = {
    "bge": observe_numbers,
    "bdeu": observe_states,
    MIXED: observe_numbers_and_states,
}


def tree(
    data: "TableLike",
    *,
    score: Literal["bge", "bdeu", "mixed"] = "bge",
    edge_probability: "float | pd.DataFrame | ArrayLike" = 0.5,
    forbidden: Iterable[tuple[str, str]] = (),
    edge_covariates: "dict[str, pd.DataFrame | ArrayLike] | None" = None,
    coefficient_scale: float | None = None,
    equivalent_sample_size: float = 1.0,
    states: Any = None,
    kinds: dict[str, str] | None = None,
    missing_codes: Any = None,
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn the tree along which columns depend on each other, and how sure its edges are.

    .. math:: p(T, \theta \mid x) \propto p(T) \, p(\theta \mid T) \prod_r p(x_r \mid \theta)

    A tree joins all columns without a cycle: two columns without an edge are independent given those on the way between them. ``pm.sample``
    draws trees from their exact posterior, with the parameters integrated out, and then the parameters: independent draws, unless
    values are missing.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table, p at least 2: numbers for ``"bge"``, about normal (take logarithms of skewed columns), states (numbers, text,
        categories) for ``"bdeu"``, both for ``"mixed"``. Missing values are imputed inside the model, as if they were missing at random.
    score : {"bge", "bdeu", "mixed"}
        What the columns are. ``"bge"``: jointly normal, standardised by their means and standard deviations (divisor n - 1, of the observed
        values), with a normal-Wishart prior. ``"bdeu"``: states, with Dirichlet priors of their probabilities. ``"mixed"``: text, booleans,
        categories and columns of two values hold states, other columns numbers, see the notes. As in
        :func:`bayesstruct.exact.tree_posterior`, whose posterior this is.
    edge_probability : float, (p, p) array_like or DataFrame, default 0.5
        Prior probability :math:`q_{ij}` of an edge if edges were independent; the prior is this distribution given that the graph is a tree,
        :math:`p(T) \propto \prod_{ij \in T} q_{ij} / (1 - q_{ij})`. With one number for all edges, all trees have the same probability.
        0 forbids an edge; 1, which would require one, is refused.
    forbidden : iterable of pairs of str
        Edges that no tree has.
    edge_covariates : dict, optional
        What is known of pairs of columns and may say where edges are, such as their distance: names, and for each a symmetric (p, p) array or
        DataFrame. They are standardised over the edges that are allowed, and the log odds of the prior are
        :math:`\log \frac{q_{ij}}{1 - q_{ij}} + \sum_k \beta_k z_{ijk}` with coefficients :math:`\beta_k` that are learned.
    coefficient_scale : float, optional
        Standard deviation of the normal prior of these coefficients, 1 by default.
    equivalent_sample_size : float, default 1
        Rows that the prior is worth.
    states : list or dict of lists, optional
        All states of columns of states, also those that never occur, as in :func:`bayesstruct.models.bayesian_network`.
    kinds : dict, optional
        Of ``"mixed"`` only: ``"normal"`` or ``"multinomial"`` for columns by name that are read in another way than by default.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.
    row_counts : (n,) array_like of int or str, optional
        How often each row was observed, or the name of the column that says so: a table of frequencies. The
        result is that of the table with repeated rows.

    Returns
    -------
    pymc.Model
        With ``edge`` over "A -- B", 1 where the tree has an edge, and the table ``x`` in its own units or as states 0, 1, .... For
        ``"bge"`` also ``precision`` (node, node\_), zero off the tree, ``mean`` (node), both of *standardised* columns, and ``weight`` over
        "A -- B", partial correlations. For ``"bdeu"`` ``table`` (node, cell): probabilities of the states of each column given its neighbour
        on the way to the first column, as in :class:`bayesstruct.distributions.ProbabilityTables`, and ``weight``, the mutual information of the ends of
        an edge in nats. For ``"mixed"`` ``parameter`` over ``term``, coefficients, intercepts and noise scales of standardised numbers and logits of states,
        of each column given its neighbour on the way to the first column of states, zero where this is another one
        (:class:`bayesstruct.distributions.MixedTreeParameters`), and ``weight``, the strength of the dependence along an edge, at most 1 in size: of two
        numbers their correlation, of states and numbers the correlation ratio, of two states :math:`\sqrt{1 - e^{-2 I}}` with their mutual
        information I. With `edge_covariates` ``edge_coefficient`` over ``edge_covariate``: the change of the log odds of an edge for one
        standard deviation of the covariate. Where values are missing,
        ``x_missing`` has them, named "column[row]".

    Raises
    ------
    TableError
        If the table cannot be used, an option names no column, or forbidden edges leave no tree; the message names the column and the remedy.
    ValueError
        If an option is out of range.

    Warns
    -----
    TableWarning
        If something may be wrong with the table.

    Notes
    -----
    A tree has p - 1 edges whatever the data say. If columns are independent, edges are uncertain, not absent; if dependences form cycles, edges
    of a cycle compete. :func:`bayesstruct.models.gaussian_graphical`, ``ising`` and ``pairwise_mrf`` have graphs of any number of edges. To compare
    them with a tree, use ``az.loo``.

    Under ``"mixed"`` numbers next to a column of states have a mean of their own in each state and the same variance in all of them. No path leads
    from states over numbers to states, as no such distribution has these paths: the states form a tree among themselves, and the
    prior is over these trees. If states depend on each other only over numbers, such a tree misses that;
    ``bayesian_network(score="mixed")`` does not. A table with one kind of columns is read with the score of this kind.

    Edges have no direction: a tree directed away from any column is the same distribution. The first column is the root of the tables of
    probabilities, which says nothing about causes.

    With `edge_covariates` NUTS draws the coefficients given the tree, whose prior has a normalising constant that is differentiated through, and
    trees are drawn from their exact distribution given the table and the coefficients: a Markov chain. Prior probabilities of edges are averages over
    1,000 draws of the coefficients.

    Each draw of numbers holds a (p, p) matrix, and both kinds hold p(p-1)/2 indicators: beyond some hundred columns ask for few draws, or for edges
    alone from :func:`bayesstruct.exact.tree_posterior`, which takes seconds for a thousand columns. If values are missing, tree, parameters and
    missing values are drawn in turn (:class:`bayesstruct.steps.TreeDraws`), and successive draws depend on each other.

    The pointwise log-likelihood of an incomplete table is that of the observed values of each row for ``"bge"``, and that of the row as it was
    completed in each draw for ``"bdeu"`` and ``"mixed"``.

    References
    ----------
    Meilă, M. and Jaakkola, T. (2006). Tractable Bayesian learning of tree belief networks. *Statistics and Computing* 16,
    77-92.

    Schwaller, L., Robin, S. and Stumpf, M. (2019). Closed-form Bayesian inference of graphical model structures by averaging over
    trees. *Journal de la Société Française de Statistique* 160, 1-23.

    Dawid, A. P. and Lauritzen, S. L. (1993). Hyper Markov laws in the statistical analysis of decomposable graphical models.
    *Annals of Statistics* 21, 1272-1317.

    Examples
    --------
    .. code-block:: python

        with bs.models.tree(np.log(bs.load_dataset("sachs"))):
            idata = pm.sample()
        bs.edge_table(idata)
        bs.plot_graph(idata)
    """
    choice("score", score, ("bge", "bdeu", MIXED))
    size = sample_size(equivalent_sample_size)
    refuse_coded_states(states, missing_codes)
    [data] = repeated_rows(row_counts, data)
    data, counted = without_codes(data, missing_codes), row_counts is not None
    kind = score_of_columns(data, score, kinds, states)
    if kind == MIXED:
        table: Any = mixed_tree_table(data, kinds=kinds, incomplete=True, counted=counted)
        numbers = np.array(table.states) == 0
    else:
        options = {"incomplete": True, "states": states, "counted": counted}
        options["discrete"] = DISCRETE_OR_MIXED
        table, numbers = network_table(data, kind, **options).table, None
    log_odds = tree_log_odds(table.names, edge_probability, forbidden, numbers)
    scale = optional_number("coefficient_scale", coefficient_scale, above=0)
    if scale is not None and not edge_covariates:
        raise ValueError("`coefficient_scale` goes with `edge_covariates`; leave it out")
    given = {} if edge_covariates is None else edge_covariates
    covariates = read_edge_covariates(given, table.names, np.isfinite(log_odds))
    with pm.Model(coords=table.coords) as model:
        edge = random_tree(table, log_odds, covariates, 1.0 if scale is None else scale, numbers)
        _OBSERVE[kind](table, edge, size)
        record_codes(missing_codes)
    return model
