"""Latent tree: columns that depend on each other along a tree, some of whose nodes were not observed.

parent             ~ tree of the columns and of hidden nodes, all trees equally probable
parent_correlation ~ uniform, along each edge
deviation, mean    ~ standard deviations and means of the columns
x                  ~ normal rows, correlations being products along paths; hidden nodes integrated out
"""

from typing import TYPE_CHECKING, Any

import pymc as pm

from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.arguments import number, whole_number
from bayesstruct.data.errors import TableError
from bayesstruct.precision.model_parts.rows import read_rows
from bayesstruct.trees.model_parts.hidden import observe_hidden_tree, random_hidden_tree

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["latent_tree"]

_SCALE_SPREAD = 1.0  # of the logarithms of the standard deviations of standardised columns


def latent_tree(
    data: "TableLike",
    *,
    hidden_weight: float = 1.0,
    max_hidden: int | None = None,
    correlation_shape: float = 1.0,
    missing_codes: Any = None,
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn a tree of columns and hidden nodes: do columns depend on each other because they share something that was not observed?

    .. math:: x_j = \mu_j + \sigma_j z_j, \qquad \mathrm{corr}(z_i, z_j) = \prod_{e \text{ between } i \text{ and } j} \rho_e

    A tree joins all columns and any number of hidden nodes without a cycle. Columns may be anywhere in it; a hidden node has three
    neighbours or more, as it could not be told from an edge otherwise, so that p columns have at most p - 2. ``pm.sample`` draws trees from
    their posterior, hidden values being integrated out, with the correlations along their edges.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table of numbers, p at least 3, about normal (take logarithms of skewed columns). Missing values are imputed inside the model, as if they were
        missing at random.
    hidden_weight : float, default 1
        w: the prior probability of a tree with h hidden nodes is in proportion to :math:`w^h`. With 1 all trees have the same
        probability; the prior of the number of hidden nodes then follows from how many trees there are (:func:`bayesstruct.hidden_node_table` shows it):
        for four columns 16 without one, 13 with one, 3 with two, and for thirty columns about 11 on average.
    max_hidden : int, optional
        Maximum number of hidden nodes, p - 2 by default. 0: a tree of the columns alone.
    correlation_shape : float, default 1
        a: the prior density of the correlation along an edge is in proportion to :math:`(1 - \rho^2)^{a - 1}`, uniform with 1; larger values
        prefer weak dependences.
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
        missing, ``x_missing`` has them, named "column[row]".

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

    Each draw costs about :math:`p^3` operations, whatever the number of rows. The step is :class:`bayesstruct.steps.HiddenTreeMoves`.

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
    shape = number("correlation_shape", correlation_shape, above=0)
    table, *_ = read_rows(
        data, None, standardize=True, missing_codes=missing_codes, row_counts=row_counts
    )
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
        tree, correlations = random_hidden_tree(table, most, weight, shape)
        observe_hidden_tree(table, tree, correlations, _SCALE_SPREAD)
        record_codes(missing_codes)
    return model
