"""Models: one file for each structure-learning problem, each an ordinary ``pm.Model``."""

from bayesstruct.models.bayesian_network import bayesian_network
from bayesstruct.models.gaussian_graphical import gaussian_graphical
from bayesstruct.models.gaussian_neighbourhoods import gaussian_neighbourhoods
from bayesstruct.models.hidden_causes import hidden_causes
from bayesstruct.models.ising import ising
from bayesstruct.models.ising_neighbourhoods import ising_neighbourhoods
from bayesstruct.models.latent_features import latent_features
from bayesstruct.models.pairwise_mrf import pairwise_mrf

__all__ = [
    "bayesian_network",
    "gaussian_graphical",
    "gaussian_neighbourhoods",
    "hidden_causes",
    "ising",
    "ising_neighbourhoods",
    "latent_features",
    "pairwise_mrf",
]
