"""Optimality conditions of l1-penalised problems, checked without trusting any solver."""

import numpy as np


def graphical_lasso_residual(precision, S, lam):
    """Largest violation of the graphical lasso's KKT conditions, in units of S.

    With W the inverse of the precision K: ``W - S = lam sign(K)`` where K is not zero, and
    ``|W - S| <= lam`` elsewhere. ``lam`` is a full matrix.
    """
    slack = np.linalg.inv(precision) - S
    active = precision != 0
    on = np.abs(slack - lam * np.sign(precision))[active]
    off = (np.abs(slack) - lam)[~active]
    return max(on.max(initial=0.0), off.max(initial=0.0))


def assert_kkt(precision, S, lam, *, tol):
    """Fail unless ``precision`` is positive definite and its KKT residual is at most ``tol``."""
    assert np.linalg.eigvalsh(precision)[0] > 0, "the precision is not positive definite"
    residual = graphical_lasso_residual(precision, S, lam)
    assert residual <= tol, f"KKT residual {residual:.2g} exceeds {tol:.2g}"
