r"""Minimum of the small-variance objective of latent features, as an operation.

With features Z and loadings A fixed at the minimum, the value
:math:`V = \|X - Z A\|_F^2 + \lambda K` has the derivatives

.. math:: \partial V / \partial X = 2 (X - Z A), \qquad \partial V / \partial \lambda = K,

wherever the features do not change.
"""

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytensor.tensor as pt

from pytensor.gradient import DisconnectedType, grad_undefined
from pytensor.graph.basic import Apply

from bayesstruct.core.ops import InterpretedOp

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["BPMeansMode", "bp_means"]


def bp_means(
    x: Any, penalty: Any, *, max_features: int = 20, restarts: int = 10, random_seed: int = 0
) -> "list[TensorVariable]":
    r"""Features and loadings of least squares with a price for each feature.

    .. math:: \min_{K, Z, A} \; \|X - Z A\|_F^2 + \lambda K

    Parameters
    ----------
    x : tensor_like, shape (n, d)
        Table, less the mean of a row without features.
    penalty : tensor_like, scalar
        :math:`\lambda`, above 0.
    max_features : int
        Columns that the results have; those that are not used are zero.
    restarts, random_seed : int
        Of the search; see :func:`bayesstruct.solvers.bp_means`.

    Returns
    -------
    list of TensorVariable
        The value, a number; the features (n, `max_features`), int8 and left-ordered, fit to be the
        ``initval=`` of an :class:`bayesstruct.IndianBuffet`; and the loadings (`max_features`, d). NaN, and no
        features, where the table is not finite or the penalty not above 0.

    Notes
    -----
    The search ends in a local minimum. The value is differentiable in table and penalty where the features stay the
    same; features and loadings are an initialiser only, without derivatives.

    References
    ----------
    Broderick, T., Kulis, B. and Jordan, M. I. (2013). MAD-Bayes: MAP-based asymptotic derivations from
    Bayes. *ICML* 30, section 3.

    Examples
    --------
    >>> value, feature, loading = bp_means(
    ...     [[0.0, 2.0], [3.0, 2.0], [3.0, 0.0]], 1.0, max_features=4
    ... )
    >>> float(value.eval())
    2.0
    """
    op = BPMeansMode(int(max_features), int(restarts), int(random_seed))
    return list(cast("list[TensorVariable]", op(x, penalty)))


class BPMeansMode(InterpretedOp):
    """Minimum of the small-variance objective; see `bp_means`."""

    __props__ = ("max_features", "restarts", "seed")

    def __init__(self, max_features, restarts, seed):
        for name, value in (("max_features", max_features), ("restarts", restarts)):
            if value < 1:
                raise ValueError(f"`{name}` must be 1 or more, it is {value}")
        self.max_features, self.restarts, self.seed = max_features, restarts, seed

    def make_node(self, x, penalty):
        """Apply the Op."""
        self.register()
        x = pt.as_tensor_variable(x).astype("float64")
        penalty = pt.as_tensor_variable(penalty).astype("float64")
        if x.type.ndim != 2 or penalty.type.ndim != 0:
            raise TypeError("`x` is a table, `penalty` a number")
        n, d = x.type.shape
        outputs = [
            pt.tensor(dtype="float64", shape=()),
            pt.tensor(dtype="int8", shape=(n, self.max_features)),
            pt.tensor(dtype="float64", shape=(self.max_features, d)),
        ]
        return Apply(self, [x, penalty], outputs)

    def infer_shape(self, node, input_shapes):
        """Shapes of value, features and loadings."""
        (n, d), _ = input_shapes
        return [(), (n, self.max_features), (self.max_features, d)]

    def compute(self, x, penalty):
        """Value, features and loadings from arrays."""
        from bayesstruct.features.solvers.bp_means import bp_means as solve

        n, d = x.shape
        feature = np.zeros((n, self.max_features), np.int8)
        loading = np.zeros((self.max_features, d))
        penalty = float(penalty)
        if not (np.isfinite(x).all() and 0.0 < penalty < np.inf):
            return np.array(np.nan), feature, np.full_like(loading, np.nan)
        found = solve(
            x,
            penalty,
            max_features=self.max_features,
            restarts=self.restarts,
            random_seed=self.seed,
        )
        k = found.feature.shape[1]
        feature[:, :k], loading[:k] = found.feature, found.loading
        return np.array(found.objective), feature, loading

    def pullback(self, inputs, outputs, cotangents):
        """Return the derivatives of the value, the features staying as they are."""
        x, _ = inputs
        _, feature, loading = outputs
        if not all(isinstance(c.type, DisconnectedType) for c in cotangents[1:]):
            return [
                grad_undefined(self, i, v, "features and loadings have no derivatives")
                for i, v in enumerate(inputs)
            ]
        used = pt.gt(feature.sum(axis=0), 0).sum().astype("float64")
        return [cotangents[0] * 2.0 * (x - feature @ loading), cotangents[0] * used]

    def connection_pattern(self, node):
        """Value, features and loadings depend on both inputs."""
        return [[True, True, True], [True, True, True]]
