"""Models: one file for each structure-learning problem, each an ordinary ``pm.Model``."""

import bayesstruct.steps  # noqa: F401  registers the step methods of these models

from bayesstruct.models.additive_clustering import additive_clustering
from bayesstruct.models.bayesian_network import bayesian_network
from bayesstruct.models.binary_matrix_factorization import binary_matrix_factorization
from bayesstruct.models.dp_glm import dp_glm
from bayesstruct.models.elimination_by_aspects import elimination_by_aspects
from bayesstruct.models.gaussian_graphical import gaussian_graphical
from bayesstruct.models.gaussian_neighbourhoods import gaussian_neighbourhoods
from bayesstruct.models.hidden_causes import hidden_causes
from bayesstruct.models.infinite_ica import infinite_ica
from bayesstruct.models.ising import ising
from bayesstruct.models.ising_neighbourhoods import ising_neighbourhoods
from bayesstruct.models.latent_features import latent_features
from bayesstruct.models.link_prediction import link_prediction
from bayesstruct.models.markov_transitions import markov_transitions
from bayesstruct.models.pairwise_mrf import pairwise_mrf
from bayesstruct.models.protein_complexes import protein_complexes
from bayesstruct.models.sparse_factor_analysis import sparse_factor_analysis

__all__ = [
    "additive_clustering",
    "bayesian_network",
    "binary_matrix_factorization",
    "dp_glm",
    "elimination_by_aspects",
    "gaussian_graphical",
    "gaussian_neighbourhoods",
    "hidden_causes",
    "infinite_ica",
    "ising",
    "ising_neighbourhoods",
    "latent_features",
    "link_prediction",
    "markov_transitions",
    "pairwise_mrf",
    "protein_complexes",
    "sparse_factor_analysis",
]
