"""Linear predictors and weighted sums over rows, for scores of columns of several kinds."""

from bayesstruct.core.jit import vector_inner

__all__ = ["predict", "total_of", "weighted", "weighted_pair"]


@vector_inner
def predict(x, columns, first, theta, at, eta):
    """Write one linear predictor of all rows."""
    n = len(eta)
    start = theta[at] if first == 1 else 0.0
    for m in range(n):
        eta[m] = start
    for a in range(len(columns)):
        weight, row = theta[at + first + a], x[columns[a]]
        for m in range(n):
            eta[m] += weight * row[m]


@vector_inner
def weighted(row, weight):
    """Return the sum of a feature with weights."""
    out = 0.0
    for m in range(len(weight)):
        out += row[m] * weight[m]
    return out


@vector_inner
def weighted_pair(row, other, weight):
    """Return the sum of the products of two features with weights."""
    out = 0.0
    for m in range(len(weight)):
        out += row[m] * other[m] * weight[m]
    return out


@vector_inner
def total_of(weight):
    """Return the sum of a vector."""
    out = 0.0
    for m in range(len(weight)):
        out += weight[m]
    return out
