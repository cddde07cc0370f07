"""General optimisers of an objective or a regression under a sparse penalty or over a convex set.

For any smooth function with a gradient:

- `projected_scaled_subgradient`, for an l1 penalty;
- `soft_threshold`, for any penalty with a proximal map;
- `projected_quasi_newton` and `spectral_projected_gradient`, over a convex set with a known projection;
- `cone_mode`, which puts penalties of groups as norm cones and calls one of the last two.

For regressions, where `bayesstruct.solvers.sparse_mode` is the default choice:

- `dual_augmented_lagrangian`, for groups in tables with far more columns than rows;
- `adagrad_dual_averaging`, `adagrad_mirror_descent`, `sparse_mirror_descent` and
  `stochastic_coordinate_descent`, approximate modes of tables that do not fit into memory, read by
  `minibatches`. Rates are those of the *summed* loss, the prior's: a method whose steps see the
  average loss divides them by the number of rows n, which a stream has to be told.
"""

from bayesstruct.sparse.solvers.adagrad import adagrad_dual_averaging, adagrad_mirror_descent
from bayesstruct.sparse.solvers.dual_augmented import dual_augmented_lagrangian
from bayesstruct.sparse.solvers.line_search import SmoothSolution
from bayesstruct.sparse.solvers.projected import (
    cone_mode,
    projected_quasi_newton,
    spectral_projected_gradient,
)
from bayesstruct.sparse.solvers.scaled_subgradient import projected_scaled_subgradient
from bayesstruct.sparse.solvers.soft_threshold import soft_threshold
from bayesstruct.sparse.solvers.stochastic_coordinates import stochastic_coordinate_descent
from bayesstruct.sparse.solvers.stochastic_mirror import sparse_mirror_descent
from bayesstruct.sparse.solvers.stochastic_streams import minibatches

__all__ = [
    "SmoothSolution",
    "adagrad_dual_averaging",
    "adagrad_mirror_descent",
    "cone_mode",
    "dual_augmented_lagrangian",
    "minibatches",
    "projected_quasi_newton",
    "projected_scaled_subgradient",
    "soft_threshold",
    "sparse_mirror_descent",
    "spectral_projected_gradient",
    "stochastic_coordinate_descent",
]
