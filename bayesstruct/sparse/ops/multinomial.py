"""The mode of a sparse multinomial regression as a PyTensor operation."""

from typing import TYPE_CHECKING

import pytensor.tensor as pt

from pytensor.graph.basic import Apply

from bayesstruct.core.ops import InterpretedOp
from bayesstruct.data.arguments import truth, whole_number
from bayesstruct.sparse.ops.multinomial_modes import mode_cotangents, modes
from bayesstruct.sparse.ops.sparse import ModeOp, arrange, for_columns, real

if TYPE_CHECKING:
    from pytensor.tensor import TensorLike
    from pytensor.tensor.variable import TensorVariable

__all__ = ["SparseMultinomial", "sparse_multinomial"]

_TITLE = "sparse_multinomial"


def sparse_multinomial(
    X: "TensorLike",
    y: "TensorLike",
    rate: "TensorLike",
    *,
    grouped: bool = False,
    intercept: bool = False,
    max_iter: int = 200,
) -> "TensorVariable | list[TensorVariable]":
    r"""Mode of a multinomial regression's coefficients under a sparse prior.

    .. math::

        \min_{W, b} \; \sum_i \Big( t_i \log \sum_c e^{z_{ic}} - \sum_c y_{ic} z_{ic} \Big)
        + \sum_j \lambda_j \|w_j\|, \qquad Z = X W + 1 b', \quad t_i = \sum_c y_{ic}

    Every category has coefficients of its own, none is the reference, so the mode
    does not depend on the names of the categories.

    Parameters
    ----------
    X : tensor_like, shape (..., n, p)
        Predictors.
    y : tensor_like, shape (..., n, k)
        Counts of the k categories in each row, not negative: for labels ``codes`` from 0 to k - 1
        that is ``np.eye(k)[codes]``. Probabilities of labels are allowed, and either times
        weights of rows. Leading dimensions are batches.
    rate : tensor_like
        :math:`\lambda`: a number, or shape (..., p), one for each predictor. Zero leaves the
        coefficients of a predictor without penalty, infinity keeps it out.
    grouped : bool
        Take :math:`\|w_j\|_2` for the norm of the k coefficients of a predictor, which are zero
        together (the group-Laplace prior), not :math:`\|w_j\|_1` (Laplace priors).
    intercept : bool
        Add an unpenalised constant for each category, and return them too.
    max_iter : int
        Maximum number of passes over all columns.

    Returns
    -------
    TensorVariable, shape (..., p, k)
        The mode, with exact zeros; all NaN where input is invalid, where unpenalised columns
        separate the categories, where a category with an intercept does not occur, or where no mode
        was found to a relative residual of 1e-8 (it is 1e-12 normally). With an intercept, a list of
        this and the intercepts, (..., k).

    Raises
    ------
    TypeError
        If ``X`` or ``y`` has fewer than two dimensions, or one of the inputs is complex.

    Notes
    -----
    *Which mode.* The likelihood does not change when a number is added to all intercepts, or to the
    coefficients of one predictor. Where the prior does not change either, the result is the mode of
    least Euclidean norm. So intercepts, and coefficients without a rate, sum to zero over the
    categories. Under a group-Laplace prior those of a predictor sum to zero at the only mode. Under
    Laplace priors the median of a predictor's coefficients is zero: with an odd number of categories
    it is the only mode, with an even number it may leave an interval of shifts that keep half of the
    coefficients positive and half negative; of these the sum is zero if zero can be reached, and one
    coefficient is zero at the end of the interval otherwise. Two categories have coefficients
    :math:`\mp d / 2`, where d is the mode of `sparse_logistic` of the same rate (of
    :math:`1/\sqrt 2` times it if grouped).

    *Derivatives* in ``X``, ``y`` and ``rate`` are exact, also of the part that the data leave open,
    where no coefficient is on the verge of leaving or entering and no interval of shifts ends at a
    sum of zero; these exceptions have measure zero. ``y`` may move in any direction: more of one
    category is more data. They are NaN where the active columns are linearly dependent. In a rate
    at zero, they hold for differences between categories, which are all that is continuous there.

    Proximal Newton steps on working sets, with the full Hessian between categories.

    References
    ----------
    Krishnapuram, B., Carin, L., Figueiredo, M. A. T., Hartemink, A. J. (2005). Sparse multinomial
    logistic regression: fast algorithms and generalization bounds. *IEEE PAMI* 27, 957-968. --
    Friedman, J., Hastie, T., Tibshirani, R. (2010). Regularization paths for generalized linear
    models via coordinate descent. *Journal of Statistical Software* 33(1), section 4.1 (medians of
    rows). -- Vincent, M. and Hansen, N. R. (2014). Sparse group lasso and high dimensional
    multinomial classification. *CSDA* 71, 771-786 (groups).

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct import ops
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> y = np.eye(3)[np.argmax(2 * X + rng.gumbel(size=(100, 3)), axis=1)]
    >>> ops.sparse_multinomial(X, y, 5.0).eval().round(2)
    array([[ 1.07,  0.  ,  0.  ],
           [ 0.  ,  1.25, -0.09],
           [-0.2 ,  0.  ,  1.2 ]])
    """
    op = SparseMultinomial(grouped=grouped, intercept=intercept, max_iter=max_iter)
    X, y, rate = (real(x, name, _TITLE) for x, name in ((X, "X"), (y, "y"), (rate, "rate")))
    rate = for_columns(rate, X, _TITLE)
    return arrange(op, _TITLE, X, y, rate, core=2)


class SparseMultinomial(ModeOp):
    """Modes of `sparse_multinomial`, for stacked tables of counts and rows of rates."""

    __props__ = ("grouped", "intercept", "max_iter")
    gufunc_signature = "(n,p),(m,n,k),(m,p)->(m,p,k),(m,k)"

    def __init__(self, grouped=False, intercept=False, max_iter=200):
        self.grouped, self.intercept = truth("grouped", grouped), truth("intercept", intercept)
        self.max_iter = whole_number("max_iter", max_iter, 1)

    def make_node(self, X, y, rate):
        """Apply to a design, tables of counts and rows of rates."""
        self.register()
        inputs = [real(x, name, _TITLE) for x, name in ((X, "X"), (y, "y"), (rate, "rate"))]
        X, y, rate = inputs
        if (X.type.ndim, y.type.ndim, rate.type.ndim) != (2, 3, 2):
            raise TypeError("SparseMultinomial works on matrices X and rate, and tables y.")
        m = y.type.shape[0] if rate.type.shape[0] is None else rate.type.shape[0]
        p = X.type.shape[1] if rate.type.shape[1] is None else rate.type.shape[1]
        k = y.type.shape[2]
        outputs = [pt.tensor(dtype="float64", shape=s) for s in ((m, p, k), (m, k))]
        return Apply(self, inputs, outputs)

    def compute(self, X, y, rate):
        """Solve."""
        return modes(X, y, rate, self.intercept, self.grouped, self.max_iter)

    def infer_shape(self, node, input_shapes):
        """Predictors and categories."""
        (_, p), (m, _, k), _ = input_shapes
        return [(m, p, k), (m, k)]

    def derivative_op(self):
        """Return the Op of the cotangents."""
        return SparseMultinomialPullback(self.grouped, self.intercept)


class SparseMultinomialPullback(InterpretedOp):
    """Derivative of `SparseMultinomial`; see `mode_cotangents`."""

    __props__ = ("grouped", "intercept")
    gufunc_signature = "(n,p),(m,n,k),(m,p),(m,p,k),(m,k),(m,p,k),(m,k)->(n,p),(m,n,k),(m,p)"

    def __init__(self, grouped=False, intercept=False):
        self.grouped, self.intercept = bool(grouped), bool(intercept)

    def make_node(self, *inputs):
        """Apply to inputs, outputs and cotangents of the mode."""
        self.register()
        inputs = [pt.as_tensor_variable(x) for x in inputs]
        outputs = [pt.tensor(dtype="float64", shape=x.type.shape) for x in inputs[:3]]
        return Apply(self, inputs, outputs)

    def compute(self, *inputs):
        """Compute the cotangents."""
        return mode_cotangents(*inputs, self.intercept, self.grouped)

    def infer_shape(self, node, input_shapes):
        """Shapes of the mode's inputs."""
        return input_shapes[:3]
