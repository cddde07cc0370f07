"""Latent tree: columns that depend on each other along a tree, some of whose nodes were not observed.

parent             ~ tree of the columns and of hidden nodes, all trees equally probable
parent_correlation ~ uniform, along each edge
deviation, mean    ~ standard deviations and means of the columns
x                  ~ normal rows, correlations being products along paths; hidden nodes integrated out

Or, for columns of states:

parent_table       ~ probabilities of the states of each node given those of its parent, Dirichlet
x                  ~ rows of states; hidden nodes summed out
"""

from typing import TYPE_CHECKING, Any, Literal

import pymc as pm

from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.arguments import choice, number, whole_number
from bayesstruct.data.errors import TableError
from bayesstruct.data.recoding import repeated_rows, without_codes
from bayesstruct.data.states import refuse_coded_states
from bayesstruct.networks.data.tables import network_table
from bayesstruct.precision.model_parts.rows import read_rows
from bayesstruct.trees.model_parts.hidden import observe_hidden_tree, random_hidden_tree
from bayesstruct.trees.model_parts.hidden_states import (
    MOST_HIDDEN_STATES,
    observe_hidden_states,
    random_hidden_state_tree,
)

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["latent_tree"]

#: Options that belong to one score.
_OWN = {
    "bge": ("correlation_shape",),
    "bdeu": ("hidden_states", "equivalent_sample_size", "states"),
}
_SCALE_SPREAD = 1.0  # of the logarithms of the standard deviations of standardised columns


def latent_tree(
    data: "TableLike",
    *,
    score: Literal["bge", "bdeu"] = "bge",
    hidden_weight: float = 1.0,
    max_hidden: int | None = None,
    correlation_shape: float | None = None,
    hidden_states: int | None = None,
    equivalent_sample_size: float | None = None,
    states: Any = None,
    missing_codes: Any = None,
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn a tree of columns and hidden nodes: do columns depend on each other because they share something that was not observed?

    .. math:: x_j = \mu_j + \sigma_j z_j, \qquad \mathrm{corr}(z_i, z_j) = \prod_{e \text{ between } i \text{ and } j} \rho_e

    A tree joins all columns and any number of hidden nodes without a cycle. Columns may be anywhere in it; a hidden node has three
    neighbours or more, as it could not be told from an edge otherwise, so that p columns have at most p - 2. ``pm.sample`` draws trees from
    their posterior, hidden values being integrated out, with the correlations along their edges. With ``score="bdeu"`` columns and hidden nodes have
    states, and the parameters are the probabilities of the states of each node given its neighbour on the way to the first column.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table, p at least 3: numbers for ``"bge"``, about normal (take logarithms of skewed columns), whose missing values are imputed inside
        the model, as if they were missing at random; complete rows of states (numbers, text, categories) for ``"bdeu"``, at most 12 in a column.
    score : {"bge", "bdeu"}
        What the columns are: jointly normal numbers, or states. As in :func:`bayesstruct.models.tree`.
    hidden_weight : float, default 1
        w: the prior probability of a tree with h hidden nodes is in proportion to :math:`w^h`. With 1 all trees have the same
        probability; the prior of the number of hidden nodes then follows from how many trees there are (:func:`bayesstruct.hidden_node_table` shows it):
        for four columns 16 without one, 13 with one, 3 with two, and for thirty columns about 11 on average.
    max_hidden : int, optional
        Maximum number of hidden nodes, p - 2 by default. 0: a tree of the columns alone.
    correlation_shape : float, optional
        Of ``"bge"``, 1 by default. a: the prior density of the correlation along an edge is in proportion to :math:`(1 - \rho^2)^{a - 1}`, uniform with 1;
        larger values prefer weak dependences.
    hidden_states : int, optional
        Of ``"bdeu"``: how many states a hidden node has, 2 to 5. By default as many as each column if all have the same number and it is no more than 5,
        else 2.
    equivalent_sample_size : float, optional
        Of ``"bdeu"``, 4 by default: rows that the prior is worth, 1 or more. With 4, probabilities given a neighbour are uniform where both nodes have two states;
        smaller values prefer probabilities near 0 and 1.
    states : list or dict of lists, optional
        Of ``"bdeu"``: all states of the columns, also those that never occur, as in :func:`bayesstruct.models.bayesian_network`.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999; a dict has those of each column.
    row_counts : (n,) array_like of int or str, optional
        How often each row was observed, or the name of the column that says so: a table of frequencies. The
        result is that of the table with repeated rows.

    Returns
    -------
    pymc.Model
        With ``parent`` over ``tree_node``, the columns and the places for hidden nodes: the number of the neighbour on the way to the first column, -1 for
        the first column and for places that are not used; and ``parent_correlation``, the correlation with it. ``edge`` over "A -- B"
        is 1 where two columns are direct neighbours, and ``weight`` the correlation along that edge. ``deviation``, ``mean``
        and ``precision`` (node, node\_) are those of the *standardised* columns, and ``x`` is the table in its own units. Where values are
        missing, ``x_missing`` has them, named "column[row]". With ``"bdeu"`` in place of these parameters ``parent_table`` (tree_node, parent_code, code): the probability of
        each state of a node given the state of its parent, that of the first column in the first line, 0 where there are no such states; ``parent_information``, the mutual
        information of a node and its parent in nats, and ``weight`` that of direct neighbours. ``x`` has the states as 0, 1, ....

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    ValueError
        If an option is out of range.

    Warns
    -----
    TableWarning
        If something may be wrong with the table.

    Notes
    -----
    Hidden nodes have no names and no signs. What can be compared between draws is how each edge divides the columns
    (:func:`bayesstruct.split_table`) and how many hidden nodes there are (:func:`bayesstruct.hidden_node_table`).
    :func:`bayesstruct.consensus_tree` is the tree of all divisions that have a probability above a half, which always fit together.
    In a draw hidden nodes are numbered by a walk from the first column, and have positive correlations with their parents. ``tree_node`` "hidden 2"
    of two draws may be different nodes: do not average them.

    Columns are standardised by their means and standard deviations (divisor n - 1, of the observed values). The standard deviations of standardised columns
    are learned, their logarithms being N(0, 1); the means are :math:`N(0, \Sigma)` with the covariance matrix of a row, as in
    :func:`bayesstruct.models.tree`.

    A tree has to join all columns. Columns that are independent of all others hang on edges with correlations about 0, and their places are uncertain. If
    no such tree is true (factors that share columns, cycles), compare with other models by ``az.loo``.

    Of states, the distribution of all nodes has the same prior whatever node is the root, :class:`bayesstruct.distributions.TreeTables`. States of hidden nodes have no
    names: ``parent_table`` of two draws may name them differently, also where the tree is the same.

    Each draw costs about :math:`p^3` operations for numbers, whatever the number of rows. For states each of its p moves looks at all places with all different rows, which
    takes longer: some 0.2 s a draw for ten columns of two states with 400 different rows. The steps are :class:`bayesstruct.steps.HiddenTreeMoves` and :class:`bayesstruct.steps.HiddenStateMoves`.

    References
    ----------
    Choi, M. J., Tan, V. Y. F., Anandkumar, A. and Willsky, A. S. (2011). Learning latent tree graphical models. *JMLR* 12, 1771-1812.

    Green, P. J. (1995). Reversible jump Markov chain Monte Carlo computation and Bayesian model determination. *Biometrika* 82, 711-732.

    Examples
    --------
    .. code-block:: python

        table = bs.simulate.latent_tree(500, p=8, shape="double_star", random_seed=1)
        with bs.models.latent_tree(table.data):
            idata = pm.sample()
        bs.split_table(idata)
        bs.plot_graph(bs.consensus_tree(idata))
    """
    weight = number("hidden_weight", hidden_weight, above=0)
    choice("score", score, tuple(_OWN))
    given = {
        "correlation_shape": correlation_shape,
        "hidden_states": hidden_states,
        "equivalent_sample_size": equivalent_sample_size,
        "states": states,
    }
    _refuse_options_of_others(score, given)
    table: Any
    if score == "bge":
        shape = 1.0 if correlation_shape is None else correlation_shape
        shape = number("correlation_shape", shape, above=0)
        table, *_ = read_rows(
            data, None, standardize=True, missing_codes=missing_codes, row_counts=row_counts
        )
    else:
        size, hidden_states = _state_options(equivalent_sample_size, hidden_states)
        table = _read_states(data, states, missing_codes, row_counts)
    if table.p < 3:
        raise TableError(
            f"the table has {table.p} columns, and a tree with hidden nodes needs three or more; for two use bs.models.tree"
        )
    most = table.p - 2 if max_hidden is None else whole_number("max_hidden", max_hidden, 0)
    if most > table.p - 2:
        raise ValueError(
            f"`max_hidden` is at most {table.p - 2} for {table.p} columns, as each hidden node has three neighbours or more; leave it out"
        )
    with pm.Model(coords=table.coords) as model:
        if score == "bge":
            tree, correlations = random_hidden_tree(table, most, weight, shape)
            observe_hidden_tree(table, tree, correlations, _SCALE_SPREAD)
        else:
            tree, tables = random_hidden_state_tree(table, most, weight, size, hidden_states)
            observe_hidden_states(table, tree, tables)
        record_codes(missing_codes)
    return model


def _refuse_options_of_others(score, given):
    """Refuse options that say nothing under a score."""
    for name, value in given.items():
        if value is not None and name not in _OWN[score]:
            other = next(kind for kind, names in _OWN.items() if name in names)
            raise ValueError(
                f"`{name}` belongs to the score {other!r}, not to {score!r}; leave it out"
            )


def _state_options(equivalent_sample_size, hidden_states):
    """Check the options of columns of states."""
    size = 4.0 if equivalent_sample_size is None else equivalent_sample_size
    size = number("equivalent_sample_size", size, above=0)
    if size < 1.0:
        raise ValueError(
            f"`equivalent_sample_size` is {size:g}, and must be 1 or more: below, draws of probabilities are 0 or 1 but for rounding"
        )
    if hidden_states is not None:
        hidden_states = whole_number("hidden_states", hidden_states, 2)
        if hidden_states > MOST_HIDDEN_STATES:
            raise ValueError(
                f"`hidden_states` is at most {MOST_HIDDEN_STATES}, not {hidden_states}"
            )
    return size, hidden_states


def _read_states(data, states, missing_codes, row_counts):
    """Check a table of states."""
    refuse_coded_states(states, missing_codes)
    [data] = repeated_rows(row_counts, data)
    return network_table(
        without_codes(data, missing_codes),
        "bdeu",
        states=states,
        counted=row_counts is not None,
        imputes="bs.models.tree(score='bdeu')",
    ).table
