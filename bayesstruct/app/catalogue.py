"""What there is to choose from: the models, in the order in which they come."""

from dataclasses import dataclass

__all__ = ["MODELS", "PRIORS", "Entry"]

PRIORS = ("spike_slab", "laplace")


@dataclass(frozen=True)
class Entry:
    """One model.

    Attributes
    ----------
    purpose : str
        The table that it is for.
    priors : tuple of str
    command : bool
        Whether ``bayesstruct learn`` runs it; otherwise it is there in Python only.
    """

    purpose: str
    priors: tuple[str, ...] = ()
    command: bool = True

    @property
    def state(self) -> str:
        """``ready`` or ``ready (in Python)``."""
        return "ready" if self.command else "ready (in Python)"


MODELS = {
    "gaussian_graphical": Entry(
        "continuous columns: who depends on whom, given all others", PRIORS
    ),
    "gaussian_neighbourhoods": Entry(
        "many continuous columns, one regression each",
        (*PRIORS, "horseshoe"),
        command=False,
    ),
    "ising_neighbourhoods": Entry(
        "many binary columns, one regression each",
        (*PRIORS, "horseshoe"),
        command=False,
    ),
    "ising": Entry(
        "binary columns: symptoms, votes, presence or absence",
        (*PRIORS, "horseshoe"),
        command=False,
    ),
    "pairwise_mrf": Entry(
        "categorical and ordinal columns",
        ("spike_slab", "group_laplace"),
        command=False,
    ),
    "bayesian_network": Entry(
        "directed graphs: which way does it go, what if a column were set",
        ("uniform", "edge", "fair", "order"),
        command=False,
    ),
    "latent_features": Entry("hidden binary features behind continuous columns", command=False),
    "link_prediction": Entry(
        "missing links of a network, from hidden features of its nodes", command=False
    ),
    "binary_matrix_factorization": Entry(
        "ratings of columns by rows, from hidden features of both", command=False
    ),
    "additive_clustering": Entry("similarities of objects, from overlapping groups", command=False),
    "protein_complexes": Entry("links of objects that have a group in common", command=False),
    "hidden_causes": Entry(
        "unobserved causes that make binary columns occur together", command=False
    ),
    "sparse_factor_analysis": Entry(
        "factors that only some rows have, any number of them", command=False
    ),
    "infinite_ica": Entry("independent components that are active in some rows", command=False),
    "elimination_by_aspects": Entry(
        "choices between options, from their hidden aspects", command=False
    ),
    "markov_transitions": Entry(
        "time series that switch among behaviours which they share", command=False
    ),
    "dp_glm": Entry(
        "a response that depends on its predictors in other ways here than there",
        command=False,
    ),
}
