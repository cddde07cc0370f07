r"""Gaussian local scores of all parent sets among some candidates, from one matrix.

Both the BGe score and the Gaussian BIC of a child with parents :math:`\pi` are

.. math::

    a_{|\pi|} - b_{|\pi|} \log v_\pi - c \log |R_{\pi\pi}|, \qquad
    v_\pi = R_{ii} - R_{i\pi} R_{\pi\pi}^{-1} R_{\pi i},

with a matrix R that holds the data. The subsets are taken in the order of their masks. Each adds its
lowest candidate to a set that came before, by one step of symmetric elimination of that
candidate from the child and from the candidates below it. As half of the sets have no candidate below,
a quarter one and so on, a set costs a constant number of operations, whatever its size.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = ["bge_constants", "gaussian_subsets"]


@inner
def _eliminate(source, at, pivot, target):
    """Write the Schur complement of row `at` for the rows before it; lower triangles."""
    for i in range(at):
        factor = source[at, i] / pivot
        for j in range(i + 1):
            target[i, j] = source[i, j] - factor * source[at, j]


@inner
def _lowest(mask):
    """Return the index of the lowest bit that is set."""
    bit = 0
    while not mask & 1:
        mask >>= 1
        bit += 1
    return bit


@inner
def _size(mask):
    """Count the bits that are set."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@inner
def _value(residual, scale, log_det, size, offset, slope, weight, floor, tol):
    """Score of one set; -inf where the child is a linear function of its parents."""
    residual = max(residual, floor)
    if residual <= tol * scale:
        return -np.inf
    return offset[size] - slope[size] * math.log(residual) - weight * log_det


@kernel
def gaussian_subsets(
    matrix, child, candidates, fixed, most, offset, slope, weight, floor, tol, out
):
    r"""Score a child with each subset of some candidates as parents.

    Parameters
    ----------
    matrix : (d, d) float64
        R, symmetric.
    child : int
    candidates, fixed : (k,), (f,) int64
        Variables that may be, and that are, parents.
    most : int
        Greatest size of a set; larger ones score :math:`-\infty`.
    offset, slope : (d,) float64
        :math:`a` and :math:`b` for each size of a set.
    weight : float
        :math:`c`.
    floor : float
        A lower bound of all residuals (for BGe the scale of the prior), so that rounding cannot push
        them below.
    tol : float
        Share of a diagonal element of R at which a residual counts as zero: then the set scores
        :math:`-\infty`.
    out : (2**k,) float64
        Filled; entry m belongs to `fixed` and the candidates of the bits of m.
    """
    k, f = len(candidates), len(fixed)
    members = np.empty(k + f + 1, np.int64)
    members[0] = child
    members[1 : k + 1] = candidates
    members[k + 1 :] = fixed
    # Level b holds the matrix when b is the lowest candidate in; level k the matrix without candidates.
    work = np.empty((k + 1, k + f + 1, k + f + 1))
    log_det, dead = np.zeros(k + 1), np.zeros(k + 1, np.bool_)
    out[:] = -np.inf
    root = work[k]
    for i in range(k + f + 1):
        for j in range(i + 1):
            root[i, j] = matrix[members[i], members[j]]
    for at in range(k + f, k, -1):
        pivot = max(root[at, at], floor)
        dead[k] |= pivot <= tol * matrix[members[at], members[at]]
        if dead[k]:
            return
        log_det[k] += math.log(pivot)
        _eliminate(root, at, pivot, root)
    scale = matrix[child, child]
    if f > most:
        return
    out[0] = _value(root[0, 0], scale, log_det[k], f, offset, slope, weight, floor, tol)
    for mask in range(1, 1 << k):
        size = f + _size(mask)
        if size > most:
            continue
        bit, rest = _lowest(mask), mask & (mask - 1)
        above = _lowest(rest) if rest else k
        pivot = max(work[above, bit + 1, bit + 1], floor)
        variable = members[bit + 1]
        dead[bit] = dead[above] or pivot <= tol * matrix[variable, variable]
        if dead[bit]:
            continue
        log_det[bit] = log_det[above] + math.log(pivot)
        _eliminate(work[above], bit + 1, pivot, work[bit])
        out[mask] = _value(
            work[bit, 0, 0], scale, log_det[bit], size, offset, slope, weight, floor, tol
        )


def bge_constants(n, d, alpha_mu, alpha_w, scale):
    r"""Return the terms of the BGe score that depend on the size of a parent set only.

    With p parents and :math:`a = \alpha_w - d` the local score is

    .. math::

        \frac12 \log \frac{\alpha_\mu}{n + \alpha_\mu} - \frac n2 \log \pi
        + \log \frac{\Gamma((n + a + p + 1) / 2)}{\Gamma((a + p + 1) / 2)}
        + \frac{a + 2p + 1}{2} \log t
        - \frac{n + a + p + 1}{2} \log v_\pi - \frac12 \log |R_{\pi\pi}| .

    Parameters
    ----------
    n, d : int
        Numbers of rows and variables.
    alpha_mu, alpha_w, scale : float
        Hyperparameters; `scale` is t.

    Returns
    -------
    offset, slope : (d,) float64
        The first line and the factor of :math:`-\log v_\pi`.

    References
    ----------
    Kuipers, J., Moffa, G. and Heckerman, D. (2014). Addendum on the scoring of Gaussian directed acyclic
    graphical models. *Annals of Statistics* 42, 1689-1691.
    """
    from scipy.special import gammaln

    p, a = np.arange(d), alpha_w - d
    slope = (n + a + p + 1) / 2
    offset = (
        0.5 * math.log(alpha_mu / (n + alpha_mu))
        - 0.5 * n * math.log(math.pi)
        + gammaln(slope)
        - gammaln((a + p + 1) / 2)
        + (a + 2 * p + 1) / 2 * math.log(scale)
    )
    return offset, slope
