"""Expectation-maximisation with longer steps where they raise the likelihood."""

from collections.abc import Callable
from typing import Any

__all__ = ["climb"]

_FASTER = 1.25  # growth of the length of steps


def climb(
    evaluate: Callable[[Any], tuple[float, Any]],
    move: Callable[[Any, Any, float], Any],
    start: Any,
    *,
    tol: float,
    max_iter: int,
) -> tuple[Any, float]:
    """Raise a log likelihood until a plain step gains less than `tol`.

    Parameters
    ----------
    evaluate : callable
        Returns the log likelihood of parameters, and those of the next plain step.
    move : callable
        Returns what lies on the way from parameters to those of the plain step: at them for 1, beyond for larger numbers.
    start : object
        Parameters.
    tol : float
    max_iter : int
        Number of steps.

    Returns
    -------
    parameters : object
    log_likelihood : float

    Notes
    -----
    Steps grow as long as they succeed; one that lowers the likelihood is taken back and replaced by a plain one, which cannot.

    References
    ----------
    Salakhutdinov, R. and Roweis, S. (2003). Adaptive overrelaxed bound optimization methods. *ICML* 20, 664-671.
    """
    now, length = start, 1.0
    value, target = evaluate(now)
    for _ in range(max_iter):
        trial = move(now, target, length) if length > 1.0 else target
        new, beyond = evaluate(trial)
        if length > 1.0 and not new > value:
            length, trial = 1.0, target
            new, beyond = evaluate(trial)
        gain, plain = new - value, length == 1.0
        now, value, target = trial, new, beyond
        if gain < tol and plain:
            break
        length = 1.0 if gain < tol else length * _FASTER
    return now, value
