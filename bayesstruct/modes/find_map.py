"""Posterior mode of a model, by the solver that its structure has."""

import inspect
import logging
import warnings

import numpy as np
import pymc as pm

from bayesstruct.core.families import import_chapters
from bayesstruct.core.modes import mode_solvers
from bayesstruct.core.recognition import NotRecognized
from bayesstruct.core.solution import ConvergenceWarning
from bayesstruct.data.arguments import number, whole_number

__all__ = ["find_MAP"]

_log = logging.getLogger("bayesstruct")

import_chapters("modes")  # which register the solvers


def find_MAP(
    model: pm.Model | None = None, *, tol: float = 1e-9, max_rounds: int = 500
) -> dict[str, np.ndarray]:
    """Find the posterior mode with the solvers of this package.

    Each family of models has solvers of its own, listed below. A model that none of them serves is
    handed to ``pm.find_MAP``, with a note in the log, if all its variables are continuous.

    Parameters
    ----------
    model : pymc.Model, optional
        The model on the context stack unless given.
    tol : float
        Stop when the largest relative change of the mode is below it, which the solvers are then
        asked for too.
    max_rounds : int
        Bound on the rounds of alternation.

    Returns
    -------
    dict
        Values of the free variables and the deterministics by name, as from ``pm.find_MAP``;
        can be given to ``pm.sample(initvals=...)``.

    Raises
    ------
    ValueError
        For a structure whose posterior has no mode, or one that no solver finds, and for other discrete
        variables in a model that no solver serves, with the reason and the remedy.

    Warns
    -----
    ConvergenceWarning
        If the rounds or a solver stop before the tolerance.

    Notes
    -----
    The *joint* density of a graph and its weights is not what is maximised: densities of different
    numbers of weights do not compare.

    {solvers}

    Examples
    --------
    .. code-block:: python

        with bs.models.gaussian_graphical(df):
            mode = bs.find_MAP()
            idata = pm.sample(initvals=mode)
    """
    model, tol = pm.modelcontext(model), number("tol", tol, above=0)
    max_rounds = whole_number("max_rounds", max_rounds, 1)
    reasons = []
    for solver in mode_solvers():
        try:
            part = solver.recognise(model)
        except NotRecognized as reason:
            reasons.append(str(reason))
            continue
        if part is not None:
            mode = solver.solve(model, part, tol, max_rounds)
            _warn_unless_converged(mode)
            return _natural(model, mode.point)
    why = "; ".join(reasons) or (
        "the model has no structure whose mode a solver of bayesstruct knows"
    )
    _refuse_discrete(model, why)
    _log.warning(
        "find_MAP: %s. Using pm.find_MAP, a general optimiser: slower, and the result is not checked "
        "for optimality.",
        why,
    )
    return _pymc_mode(model)


def _refuse_discrete(model, why: str) -> None:
    """Raise for discrete variables, which a general optimiser would leave where they start."""
    names = [repr(value.name) for value in model.discrete_value_vars]
    if not names:
        return
    raise ValueError(
        f"find_MAP finds no mode of {', '.join(names)}, which {'is' if len(names) == 1 else 'are'} discrete: "
        f"{why}, and a general optimiser moves continuous variables only. Sample instead (pm.sample()) and "
        "read the draws, from bs.summary(idata) on. Or take a structure or a prior whose mode is known: "
        "help(bs.find_MAP) lists them."
    )


def _described() -> str:
    """Docstrings of the registered solvers, for that of `find_MAP`."""
    documented = [text for solver in mode_solvers() if (text := type(solver).__doc__)]
    texts = [inspect.cleandoc(text) for text in documented]
    return "\n\n".join(texts).replace("\n", "\n    ")


if find_MAP.__doc__ is not None:  # None under `python -OO`
    find_MAP.__doc__ = find_MAP.__doc__.replace("{solvers}", _described())


def _warn_unless_converged(mode):
    if not mode.converged:
        warnings.warn(
            f"find_MAP stopped after {mode.rounds} rounds with a relative change of {mode.change:.2g}; "
            "raise max_rounds or tol",
            ConvergenceWarning,
            stacklevel=3,
        )


def _natural(model, point) -> dict:
    """Free variables and deterministics by name, at a point in value space."""
    outputs = [*model.free_RVs, *model.deterministics]
    # One evaluation: compiling machine code for it would take longer than the mode.
    evaluate = model.compile_fn(
        model.replace_rvs_by_values(outputs),
        inputs=model.value_vars,
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    values = evaluate(point)
    return {v.name: np.asarray(value) for v, value in zip(outputs, values, strict=True)}


def _pymc_mode(model) -> dict:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return pm.find_MAP(model=model, progressbar=False)
