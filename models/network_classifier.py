"""Bayesian-network classifier: which class does a row belong to, given its features, and how do features depend on each other?

dag     ~ trees over the features, and an arc from the target to each of them     (structure="tan"; else fixed)
table   ~ Dirichlet: probabilities of each column given its parents
x       ~ states of a row
arc     = 1 where the structure has an arc A -> B
"""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.classifiers.data import ClassifierTable
from bayesstruct.classifiers.kernels.scores import SAMPLE_SIZE, SCORES, ClassifierScore
from bayesstruct.classifiers.model_parts import (
    add_score,
    record_classifier,
    tree_cells,
    tree_prior,
)
from bayesstruct.classifiers.priors import AugmentedTree
from bayesstruct.classifiers.solvers.classifier import NetworkClassifier
from bayesstruct.classifiers.solvers.structures import STRUCTURES, search
from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.core.tables.rows import remember_rows
from bayesstruct.data.arguments import choice, number, sample_size
from bayesstruct.data.coding import coding_of
from bayesstruct.data.errors import TableError, listing
from bayesstruct.data.recoding import repeated_rows
from bayesstruct.networks.model_parts import ROWS, observe_other_rows
from bayesstruct.networks.priors.discrete_network import (
    DiscreteNetwork,
    EvenTables,
    ProbabilityTables,
)
from bayesstruct.networks.priors.gaussian_network import arc_vector

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["network_classifier"]

_COUNT = 0.5
#: Scores of the trees that have a posterior; "acll" depends on the root.
_TREES = tuple(kind for kind, same in SCORES.items() if same)


def network_classifier(
    data: "TableLike",
    target: Any,
    *,
    structure: "Literal['tan', 'naive', 'ghc2'] | NetworkClassifier" = "tan",
    score: Literal["bdeu", "fcll", "log_likelihood", "mdl", "acll"] | None = None,
    equivalent_sample_size: float | None = None,
    pseudo_count: float | None = None,
    states: Any = None,
    missing_codes: Any = None,
    incomplete_rows: Literal["drop", "error"] = "drop",
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn a classifier: a network in which the target is a parent of all features, and these form a tree.

    .. math:: P(c, x) = P(c) \prod_i P(x_i \mid c, x_{\mathrm{pa}_i})

    Class probabilities are averaged over the posterior of trees and parameters (:func:`bayesstruct.class_probabilities`).

    Parameters
    ----------
    data : DataFrame or array_like
        (n, d) table of states (text, booleans, categories, few whole numbers). Numbers have to be cut into
        classes first, as with ``pandas.qcut``.
    target : str or int
        The column of the class; the number of a column in a table without names.
    structure : {"tan", "naive", "ghc2"} or NetworkClassifier
        ``"tan"``: a tree joins the features (tree-augmented naive Bayes), and all trees have a posterior. ``"naive"``: no arcs
        between features. ``"ghc2"``: the structure of greedy hill climbing by a score, with at most two feature parents, which is then
        **fixed**. A result of :func:`bayesstruct.solvers.network_classifier`: its structure, fixed. With a fixed structure
        the posterior is that of the parameters.
    score : {"bdeu", "fcll", "log_likelihood", "mdl", "acll"}, optional
        Of structures. ``"tan"`` by ``"bdeu"``, the default: trees have their posterior probability under a uniform prior, as the tables are integrated out.
        ``"tan"`` by ``"fcll"``, ``"log_likelihood"`` or ``"mdl"``: trees have weights in proportion to exp(score). **These are no
        posterior probabilities**: the factorized conditional log-likelihood (Carvalho et al. 2011) measures how well a tree tells classes apart, and
        exp(score) is no likelihood of the table. The arc table then says how much better some trees are by that score than others. ``"ghc2"`` takes any of
        them, ``"fcll"`` by default; ``"naive"`` and a given structure need none.
    equivalent_sample_size : float, optional
        Rows that the prior of the tables is worth under ``"bdeu"`` with ``"tan"``, 10 by default: probabilities of classes were better
        than with 1 on four of six tables, the same on one and worse on a noiseless one, and as often right
        (``benchmarks/network_classifier.py``). It matters (Silander et al. 2007): with more, trees fit rare combinations less closely.
    pseudo_count : float, optional
        Otherwise: prior weight of each cell of a table, 1/2 by default.
    states : list or dict of lists, optional
        All states of each column, in order, also those that never occur: one list for all columns, or a dict with one for each
        of some.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one.
    incomplete_rows : {"drop", "error"}
        Rows that lack a value, of a feature or of the target, are left out, with a warning that says how many, or refused. The others
        stand for all rows if values are missing completely at random. If that a value is missing says something about the class,
        make it a state of its own: ``data.fillna("missing")``, also in rows that are to be predicted. Features of these may be
        missing in any case.
    row_counts : (n,) array_like of int or str, optional
        How often each row was observed, or the name of the column that says so.

    Returns
    -------
    pymc.Model
        With ``dag`` (node, node\_; rows are parents), ``arc`` over "A -> B", ``table`` (node, cell; see
        :class:`bayesstruct.distributions.ProbabilityTables`), and ``x``, the table as states 0, 1, ....

    Raises
    ------
    TableError
        If the table cannot be used: the target has one class, a column holds numbers, rows with missing values are refused.
        It names the column and the remedy.
    TypeError, ValueError
        If an option is unknown, out of range, or belongs to another structure.

    Notes
    -----
    Draws are independent. The posterior of trees is a product over their lines, so that its constant and the probability of each
    line are determinants (Kirchhoff's matrix-tree theorem), and trees are drawn exactly, whatever the number of features: chains need no tuning, and a few
    hundred draws are plenty (:class:`bayesstruct.steps.ClassifierDraws`).

    Directions of the arcs between features mean nothing: a tree has the same score from each root. In ``bs.direction_table`` the probability
    of a connection in either direction is ``1 - none``.

    References
    ----------
    Friedman, N., Geiger, D. and Goldszmidt, M. (1997). Bayesian network classifiers. *Machine Learning* 29, 131-163.

    Meilă, M. and Jaakkola, T. (2006). Tractable Bayesian learning of tree belief networks. *Statistics and Computing* 16,
    77-92.

    Cerquides, J. and López de Mántaras, R. (2005). TAN classifiers based on decomposable distributions. *Machine Learning* 59, 323-354.

    Carvalho, A. M., Roos, T., Oliveira, A. L. and Myllymäki, P. (2011). Discriminative learning of Bayesian networks via
    factorized conditional log-likelihood. *JMLR* 12, 2181-2210.

    Silander, T., Kontkanen, P. and Myllymäki, P. (2007). On sensitivity of the MAP Bayesian network structure to the equivalent
    sample size parameter. *UAI 2007*, 360-367.

    Examples
    --------
    .. code-block:: python

        with bs.models.network_classifier(train, "species"):
            idata = pm.sample(500)
        bs.class_probabilities(idata, new)
        bs.classification_table(idata, test)  # accuracy where the class is known
        bs.arc_table(idata)
    """
    kind, score = _kind_and_score(structure, score)
    bdeu = kind == "tan" and score == "bdeu"
    size = _size_of(bdeu, equivalent_sample_size, pseudo_count)
    [data] = repeated_rows(row_counts, data)
    options = {
        "states": states,
        "missing_codes": missing_codes,
        "incomplete_rows": incomplete_rows,
    }
    table = ClassifierTable.read(data, target, **options, features=STRUCTURES.get(kind, 1))
    graph: Any
    with pm.Model(coords=table.states.coords | {"ordered_pair": table.states.arc_names}) as model:
        if kind == "tan":
            graph = AugmentedTree("dag", len(table.names), table.target, dims=("node", "node_"))
            prior, cells = tree_prior(table), tree_cells(table)
            if not bdeu:
                add_score(graph, table, _local(table, score), size)
        else:
            fixed = _fixed(table, structure, score)
            graph, prior, cells = pt.constant(fixed), fixed.astype(float), _cells(table, fixed)
            pm.Deterministic("dag", graph, dims=("node", "node_"))
        pm.Deterministic("arc", arc_vector(graph), dims="ordered_pair")
        record_classifier(table, prior, cells)
        tables = ProbabilityTables if bdeu else EvenTables
        options = {"states": table.states.states, "cells": cells}
        probabilities = tables("table", graph, size, **options, dims=("node", "cell"))
        own = {"states": table.states.states, "observed": table.codes, "dims": ROWS}
        DiscreteNetwork("x", graph, probabilities, **own)
        record_codes(missing_codes)
        remember_rows(coding_of(table.states), observe_other_rows)
    return model


def _kind_and_score(structure, score):
    """Names of the structure, "given" for one from a solver, and of the score."""
    if isinstance(structure, NetworkClassifier):
        kind = "given"
    else:
        kind = choice("structure", structure, STRUCTURES)
    if kind in ("naive", "given"):
        if score is not None:
            raise ValueError(
                f"`score` chooses among structures, and there is only one here: leave it out, or use structure='tan' "
                f"or 'ghc2' (it is {score!r})"
            )
        return kind, None
    if score is None:
        return kind, "bdeu" if kind == "tan" else "fcll"
    choice("score", score, SCORES)
    if kind == "tan" and score not in _TREES:
        raise ValueError(
            f"the score {score!r} of a tree depends on its root, so that trees have no weights: use one of "
            f"{', '.join(map(repr, _TREES))}, or the best tree, structure=bs.solvers.network_classifier(data, target, score={score!r})"
        )
    return kind, score


def _size_of(bdeu, equivalent_sample_size, pseudo_count):
    """Rows that the prior of a table is worth (BDeu), or the prior weight of each cell."""
    if bdeu:
        if pseudo_count is not None:
            raise ValueError(
                "`pseudo_count` belongs to other scores and to fixed structures: with structure='tan' and score='bdeu' the prior is "
                "`equivalent_sample_size`"
            )
        size = SAMPLE_SIZE if equivalent_sample_size is None else equivalent_sample_size
        return sample_size(size)
    if equivalent_sample_size is not None:
        raise ValueError(
            "`equivalent_sample_size` belongs to structure='tan' with score='bdeu': the prior here is `pseudo_count`"
        )
    return number("pseudo_count", _COUNT if pseudo_count is None else pseudo_count, above=0)


def _local(table, score):
    return ClassifierScore(table.codes, table.counts, table.target, score)


def _fixed(table, structure, score):
    """Structure, (d, d) int8, from the table or as it is given."""
    if not isinstance(structure, NetworkClassifier):
        local = _local(table, score or "log_likelihood")
        return search(local, "naive" if score is None else structure)
    if structure.target != table.label or {*structure.names} != {*table.names}:
        raise TableError(
            f"`structure` has the target {structure.target!r} and the columns {listing(structure.names)}, the table has "
            f"the target {table.label!r} and {listing(table.names)}: give the table that it was learned from"
        )
    at = [structure.names.index(name) for name in table.names]
    return structure.dag[np.ix_(at, at)]


def _cells(table, dag):
    """Cells of the largest table of a structure."""
    factors = np.where(dag != 0, table.counts[:, None], 1).prod(axis=0)
    return int((factors * table.counts).max())
