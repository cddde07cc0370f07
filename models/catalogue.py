"""The catalogue of models: the one list of which the exports, the command line and the README are made.

A new model is one more record. ``uv run python docs/make_lists.py`` writes the lists that follow from it.
"""

from dataclasses import dataclass

__all__ = ["MODELS", "TABLES", "ModelRecord", "catalogue"]


#: Kinds of tables, and what a file of that kind holds.
TABLES = {
    "numbers": "one row for each observation, columns of numbers",
    "two states": "one row for each observation, columns of two states each",
    "states": "one row for each observation, columns of states with or without an order",
    "numbers or states": "one row for each observation, columns of numbers, or of states",
    "links": "a square table of 0 and 1 with the names of the objects, or one line for each link",
    "similarities": "a square table with the names of the objects, or one line for each pair and its similarity",
    "wins": "a square table of how often the row was chosen over the column, or one line for each choice: winner, loser",
    "ratings": "one row for each person, one column for each rated object, empty where there is no rating",
    "series": "one row for each time, in order, columns of numbers and one that names the series",
}


@dataclass(frozen=True)
class ModelRecord:
    """A model of :mod:`bayesstruct.models`.

    Attributes
    ----------
    name : str
        Of the function, and of its file.
    purpose : str
        The data that it is for, or the question that it answers.
    family : str
        Package of bayesstruct with its distributions, step methods and readers.
    priors : tuple of str
        Values of its argument ``prior``, the default first; empty if it has no such argument.
    table : str
        Kind of table that it takes: one of ``TABLES``.
    """

    name: str
    purpose: str
    family: str
    priors: tuple[str, ...] = ()
    table: str = "numbers"


_RECORDS = (
    ModelRecord(
        "gaussian_graphical",
        "continuous or (`marginals=`) mixed columns: which depend on each other, given all others",
        "precision",
        ("spike_slab", "laplace", "horseshoe", "g_wishart", "pseudo_likelihood"),
    ),
    ModelRecord(
        "locally_constant_gaussian_graphical",
        "continuous columns that are places or times: neighbours have similar dependences",
        "precision",
    ),
    ModelRecord(
        "blockwise_gaussian_graphical",
        "continuous columns of several kinds, known or not: which kinds depend on each other, and which columns",
        "precision",
    ),
    ModelRecord(
        "node_selection_gaussian_graphical",
        "continuous columns of which many depend on no other: which take part at all",
        "precision",
        ("spike_slab", "laplace"),
    ),
    ModelRecord(
        "grouped_gaussian_graphical",
        "continuous columns of several groups of rows: which dependences differ between the groups",
        "precision",
    ),
    ModelRecord(
        "gaussian_neighbourhoods",
        "many continuous columns, one regression for each (a dependency network, no joint posterior)",
        "neighbourhoods",
        ("spike_slab", "laplace", "horseshoe"),
    ),
    ModelRecord(
        "ising_neighbourhoods",
        "many binary columns, one regression for each (a dependency network, no joint posterior)",
        "neighbourhoods",
        ("spike_slab", "laplace", "horseshoe"),
        table="two states",
    ),
    ModelRecord(
        "ising",
        "binary columns, such as symptoms, votes, presence or absence",
        "fields",
        ("spike_slab", "laplace", "horseshoe"),
        table="two states",
    ),
    ModelRecord(
        "pairwise_mrf",
        "binary, categorical and ordinal columns (Markov random field)",
        "fields",
        ("spike_slab", "group_laplace"),
        table="states",
    ),
    ModelRecord(
        "tree",
        "columns of numbers, of states or (`score=`) of both that depend on each other along a tree, whose exact posterior is drawn",
        "trees",
        table="numbers or states",
    ),
    ModelRecord(
        "forest",
        "columns of numbers or of states in several groups, each of them a tree, with a random number of groups",
        "trees",
        table="numbers or states",
    ),
    ModelRecord(
        "latent_tree",
        "columns of numbers or of states that depend on each other along a tree, some of whose nodes were not observed",
        "trees",
        table="numbers or states",
    ),
    ModelRecord(
        "bayesian_network",
        "directed graphs of continuous, discrete or (`score=`) mixed columns, and the effects of interventions",
        "networks",
        ("uniform", "edge", "fair", "order"),
        table="numbers or states",
    ),
    ModelRecord(
        "linear_sem",
        "directed graphs of continuous columns whose noise (not normal, or of equal or known variance) tells directions",
        "sem",
        ("spike_slab", "laplace", "horseshoe"),
    ),
    ModelRecord(
        "lingam",
        "directed graphs of continuous columns whose directions are told by noise that is not normal",
        "sem",
        ("spike_slab", "laplace", "horseshoe"),
    ),
    ModelRecord(
        "network_classifier",
        "a class from discrete features, which a tree joins: averaged class probabilities",
        "classifiers",
        table="states",
    ),
    ModelRecord(
        "latent_features",
        "hidden binary features behind continuous columns, any number of them",
        "features",
    ),
    ModelRecord(
        "link_prediction",
        "missing links of a graph, from hidden features of its nodes",
        "features",
        table="links",
    ),
    ModelRecord(
        "binary_matrix_factorization",
        "ratings, from hidden features of the rows and of the columns",
        "features",
        table="ratings",
    ),
    ModelRecord(
        "additive_clustering",
        "similarities of objects, from overlapping groups",
        "features",
        table="similarities",
    ),
    ModelRecord(
        "protein_complexes",
        "links between objects that have a group in common",
        "features",
        table="links",
    ),
    ModelRecord(
        "hidden_causes",
        "unobserved causes that make binary columns occur together, as diseases do symptoms",
        "features",
        table="two states",
    ),
    ModelRecord(
        "sparse_factor_analysis",
        "factors that only some rows have, any number of them",
        "features",
    ),
    ModelRecord(
        "infinite_ica",
        "independent components that only some rows have, any number of them",
        "features",
    ),
    ModelRecord(
        "elimination_by_aspects",
        "choices between pairs of options, from hidden aspects of the options",
        "features",
        table="wins",
    ),
    ModelRecord(
        "markov_transitions",
        "time series that switch among hidden behaviours, some of which they share",
        "series",
        table="series",
    ),
    ModelRecord(
        "dp_glm",
        "regressions whose coefficients differ between latent clusters of rows",
        "mixtures",
    ),
)

MODELS = {record.name: record for record in _RECORDS}


def catalogue() -> list[ModelRecord]:
    """Return the list of models.

    Returns
    -------
    list of ModelRecord
        With name, purpose, family, priors and the kind of table of each model; a table of it is
        ``pandas.DataFrame(bs.models.catalogue())``.

    Examples
    --------
    >>> import bayesstruct as bs
    >>> [model.name for model in bs.models.catalogue() if model.table == "series"]
    ['markov_transitions']
    """
    return [*MODELS.values()]
