"""Forest: which columns of a table belong together, and along which trees do they depend on each other?

edge_share ~ Beta(1, 1)
edge       ~ forest: trees of some columns each (0/1 for each pair)
precision  ~ zero off the forest, for numbers; or table ~ probabilities of each column given its neighbour, for states
x          ~ rows given these
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import pymc as pm

from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.arguments import sample_size
from bayesstruct.data.recoding import repeated_rows, without_codes
from bayesstruct.data.states import refuse_coded_states
from bayesstruct.networks.data.tables import network_table
from bayesstruct.trees.data import FOREST_OR_TREE, check_forest_score
from bayesstruct.trees.exact import beta_shapes, tree_log_odds
from bayesstruct.trees.model_parts.tables import observe_numbers, observe_states, random_forest

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike

    from bayesstruct.data.intake import TableLike

__all__ = ["forest"]


def forest(
    data: "TableLike",
    *,
    score: Literal["bge", "bdeu"] = "bge",
    edge_share: tuple[float, float] = (1.0, 1.0),
    edge_probability: "float | pd.DataFrame | ArrayLike" = 0.5,
    forbidden: Iterable[tuple[str, str]] = (),
    equivalent_sample_size: float = 1.0,
    states: Any = None,
    missing_codes: Any = None,
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn which columns belong together, and along which trees they depend on each other.

    .. math:: p(F, s, \theta \mid x) \propto p(s) \, p(F \mid s) \, p(\theta \mid F) \prod_r p(x_r \mid \theta)

    A forest has no cycle. Columns of different components are independent, and two columns of a component without an edge are independent given those on
    the way between them. Unlike in :func:`bayesstruct.models.tree`, columns need not be joined.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table, p at least 2: numbers for ``"bge"``, about normal (take logarithms of skewed columns), states (numbers, text,
        categories) for ``"bdeu"``. Missing values are imputed inside the model, as if they were missing at random.
    score : {"bge", "bdeu"}
        What the columns are. ``"bge"``: jointly normal, standardised by their means and standard deviations (divisor n - 1, of the observed
        values), with a normal-Wishart prior. ``"bdeu"``: states, with Dirichlet priors of their probabilities. As in
        :func:`bayesstruct.exact.forest_posterior`, whose posterior this is.
    edge_share : (float, float), default (1, 1)
        Shapes of the beta prior of ``edge_share``, the share of edges: with (1, 1) each number of components from 1 to p has the same prior
        probability, if all edges have the same prior odds. (1, 9) expects a tenth of the edges of a tree.
    edge_probability : float, (p, p) array_like or DataFrame, default 0.5
        Of its prior odds only their ratios count: one number for all edges makes no difference, a matrix says which edges are more probable than others. 0
        forbids an edge; 1, which would require one, is refused.
    forbidden : iterable of pairs of str
        Edges that no forest has.
    equivalent_sample_size : float, default 1
        Rows that the prior is worth.
    states : list or dict of lists, optional
        All states of columns of states, also those that never occur, as in :func:`bayesstruct.models.bayesian_network`.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.
    row_counts : (n,) array_like of int or str, optional
        How often each row was observed, or the name of the column that says so: a table of frequencies. The
        result is that of the table with repeated rows.

    Returns
    -------
    pymc.Model
        With ``edge`` over "A -- B", 1 where the forest has an edge, ``components``, how many trees it consists of, ``edge_share``, and
        the table ``x``. Parameters ``precision``, ``mean`` and ``weight``, or ``table`` and ``weight``, and ``x_missing`` are those of
        :func:`bayesstruct.models.tree`; tables of probabilities are those of each column given its neighbour on the way to the first column
        of its component.

    Raises
    ------
    TableError
        If the table cannot be used, an option names no column, or all edges are forbidden; the message names the column and the remedy.
    ValueError
        If an option is out of range.

    Warns
    -----
    TableWarning
        If something may be wrong with the table.

    Notes
    -----
    The prior of a forest with the components C given the share s is :math:`\propto \prod_{ij \in F} w_{ij} \prod_C \rho |C|`: a random root of each component is
    summed out (:class:`bayesstruct.SpanningForest`), for which sums over all forests are determinants. :math:`w` are the prior odds of the edges and
    :math:`\rho = \bar\lambda (1 - s) / s`, where :math:`\bar\lambda` is the mean of the eigenvalues of their Laplacian matrix without the one that is 0. With equal odds the
    number of edges is binomial, each of p - 1 with probability s; given the number of components a forest has a probability in
    proportion to the product of their sizes, which prefers components of about the same size a little to all forests being alike.

    Forests are drawn from their exact distribution given the share, with the parameters integrated out, and the share given the number of edges, from its
    beta distribution (with unequal odds by NUTS): a Markov chain that forgets its start in a few steps. The exact posterior, with the share
    summed over, is :func:`bayesstruct.exact.forest_posterior`.

    References
    ----------
    Avena, L. and Gaudillière, A. (2018). Two applications of random spanning forests. *Journal of Theoretical Probability*
    31, 1975-2004.

    Meilă, M. and Jaakkola, T. (2006). Tractable Bayesian learning of tree belief networks. *Statistics and Computing* 16,
    77-92.

    Examples
    --------
    .. code-block:: python

        with bs.models.forest(np.log(bs.load_dataset("sachs"))):
            idata = pm.sample()
        bs.edge_table(idata)
        az.plot_dist(idata, var_names="components")
    """
    check_forest_score(score)
    shapes, size = beta_shapes(edge_share), sample_size(equivalent_sample_size)
    refuse_coded_states(states, missing_codes)
    [data] = repeated_rows(row_counts, data)
    options: dict[str, Any] = {
        "incomplete": True,
        "states": states,
        "counted": row_counts is not None,
        "discrete": FOREST_OR_TREE,
    }
    table = network_table(without_codes(data, missing_codes), score, **options).table
    log_odds = tree_log_odds(table.names, edge_probability, forbidden, forest=True)
    with pm.Model(coords=table.coords) as model:
        edge = random_forest(table, log_odds, shapes)
        observe = observe_numbers if score == "bge" else observe_states
        observe(table, edge, size)
        record_codes(missing_codes)
    return model
