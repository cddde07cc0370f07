"""The public names of bayesstruct.models, written by docs/make_lists.py."""

from bayesstruct.models.additive_clustering import (
    additive_clustering as additive_clustering,
)
from bayesstruct.models.bayesian_network import (
    bayesian_network as bayesian_network,
)
from bayesstruct.models.binary_matrix_factorization import (
    binary_matrix_factorization as binary_matrix_factorization,
)
from bayesstruct.models.blockwise_gaussian_graphical import (
    blockwise_gaussian_graphical as blockwise_gaussian_graphical,
)
from bayesstruct.models.catalogue import (
    catalogue as catalogue,
)
from bayesstruct.models.dp_glm import (
    dp_glm as dp_glm,
)
from bayesstruct.models.elimination_by_aspects import (
    elimination_by_aspects as elimination_by_aspects,
)
from bayesstruct.models.forest import (
    forest as forest,
)
from bayesstruct.models.gaussian_graphical import (
    gaussian_graphical as gaussian_graphical,
)
from bayesstruct.models.gaussian_neighbourhoods import (
    gaussian_neighbourhoods as gaussian_neighbourhoods,
)
from bayesstruct.models.grouped_gaussian_graphical import (
    grouped_gaussian_graphical as grouped_gaussian_graphical,
)
from bayesstruct.models.hidden_causes import (
    hidden_causes as hidden_causes,
)
from bayesstruct.models.infinite_ica import (
    infinite_ica as infinite_ica,
)
from bayesstruct.models.ising import (
    ising as ising,
)
from bayesstruct.models.ising_neighbourhoods import (
    ising_neighbourhoods as ising_neighbourhoods,
)
from bayesstruct.models.latent_features import (
    latent_features as latent_features,
)
from bayesstruct.models.latent_tree import (
    latent_tree as latent_tree,
)
from bayesstruct.models.linear_sem import (
    linear_sem as linear_sem,
)
from bayesstruct.models.lingam import (
    lingam as lingam,
)
from bayesstruct.models.link_prediction import (
    link_prediction as link_prediction,
)
from bayesstruct.models.locally_constant_gaussian_graphical import (
    locally_constant_gaussian_graphical as locally_constant_gaussian_graphical,
)
from bayesstruct.models.markov_transitions import (
    markov_transitions as markov_transitions,
)
from bayesstruct.models.network_classifier import (
    network_classifier as network_classifier,
)
from bayesstruct.models.node_selection_gaussian_graphical import (
    node_selection_gaussian_graphical as node_selection_gaussian_graphical,
)
from bayesstruct.models.pairwise_mrf import (
    pairwise_mrf as pairwise_mrf,
)
from bayesstruct.models.protein_complexes import (
    protein_complexes as protein_complexes,
)
from bayesstruct.models.sparse_factor_analysis import (
    sparse_factor_analysis as sparse_factor_analysis,
)
from bayesstruct.models.tree import (
    tree as tree,
)
