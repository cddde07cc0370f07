"""The catalogue of models: the one list of which the exports, the command line and the README are made.

A new model is one more record. ``uv run python docs/make_lists.py`` writes the lists that follow from it.
"""

from dataclasses import dataclass

__all__ = ["MODELS", "ModelRecord", "catalogue"]


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
    learn : bool
        Whether the command ``bayesstruct learn`` runs it; all models can be used in Python.
    """

    name: str
    purpose: str
    family: str
    priors: tuple[str, ...] = ()
    learn: bool = False


_RECORDS = (
    ModelRecord(
        "gaussian_graphical",
        "continuous or (`marginals=`) mixed columns: which depend on each other, given all others",
        "precision",
        ("spike_slab", "laplace", "horseshoe", "g_wishart", "pseudo_likelihood"),
        learn=True,
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
    ),
    ModelRecord(
        "ising",
        "binary columns, such as symptoms, votes, presence or absence",
        "fields",
        ("spike_slab", "laplace", "horseshoe"),
    ),
    ModelRecord(
        "pairwise_mrf",
        "binary, categorical and ordinal columns (Markov random field)",
        "fields",
        ("spike_slab", "group_laplace"),
    ),
    ModelRecord(
        "bayesian_network",
        "directed graphs of continuous or discrete columns, and the effects of interventions",
        "networks",
        ("uniform", "edge", "fair", "order"),
    ),
    ModelRecord(
        "latent_features",
        "hidden binary features behind continuous columns, any number of them",
        "features",
    ),
    ModelRecord(
        "link_prediction", "missing links of a graph, from hidden features of its nodes", "features"
    ),
    ModelRecord(
        "binary_matrix_factorization",
        "ratings, from hidden features of the rows and of the columns",
        "features",
    ),
    ModelRecord(
        "additive_clustering", "similarities of objects, from overlapping groups", "features"
    ),
    ModelRecord(
        "protein_complexes", "links between objects that have a group in common", "features"
    ),
    ModelRecord(
        "hidden_causes",
        "unobserved causes that make binary columns occur together, as diseases do symptoms",
        "features",
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
    ),
    ModelRecord(
        "markov_transitions",
        "time series that switch among hidden behaviours, some of which they share",
        "series",
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
        With name, purpose, family, priors and whether ``bayesstruct learn`` runs the model; a table of it is
        ``pandas.DataFrame(bs.models.catalogue())``.

    Examples
    --------
    >>> import bayesstruct as bs
    >>> [model.name for model in bs.models.catalogue() if model.learn]
    ['gaussian_graphical']
    """
    return [*MODELS.values()]
