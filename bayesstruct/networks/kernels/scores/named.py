"""Local scores by their names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bayesstruct.networks.kernels.scores.base import Score
from bayesstruct.networks.kernels.scores.discrete import BDe, BDeu, MultinomialBIC
from bayesstruct.networks.kernels.scores.gaussian import BGe, GaussianBIC
from bayesstruct.networks.kernels.scores.logistic import LogisticBIC

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["SCORE_KINDS", "network_score"]

#: Names of the scores, and their classes.
_CLASSES = {
    "bge": BGe,
    "bdeu": BDeu,
    "bde": BDe,
    "gaussian": GaussianBIC,
    "multinomial": MultinomialBIC,
    "logistic": LogisticBIC,
}
SCORE_KINDS = tuple(_CLASSES)
_DISCRETE = ("bdeu", "bde", "multinomial")


def network_score(
    table: "ArrayLike",
    kind: str = "bge",
    *,
    states: Sequence[int] | None = None,
    interventions: "ArrayLike | None" = None,
    **hyper,
) -> Score:
    """Choose the local score of a Bayesian network by its name.

    Parameters
    ----------
    table : (n, d) array_like
        Numbers for ``"bge"``, ``"gaussian"`` and ``"logistic"``; states 0, 1, ... for the others.
    kind : {"bge", "bdeu", "bde", "gaussian", "multinomial", "logistic"}
        Marginal likelihoods `BGe`, `BDeu`, `BDe`; minus half of the BIC of linear regressions (`GaussianBIC`),
        of conditional probabilities (`MultinomialBIC`) or of logistic regressions (`LogisticBIC`).
    states : (d,) sequence of int, optional
        Numbers of states, for scores of discrete variables.
    interventions : (n, d) bool array_like, optional
        True where a variable was set from outside: the row is left out of that variable's scores.
    **hyper
        Hyperparameters of the class: `alpha_mu`, `alpha_w`, `nu`; `equivalent_sample_size`; `pseudo_count`.

    Returns
    -------
    Score

    Raises
    ------
    ValueError
        If there is no such kind, `states` are given to a score of numbers, or the table does not fit.
    TypeError
        If a hyperparameter is not one of the class.
    """
    if kind not in _CLASSES:
        raise ValueError(f"score {kind!r} is unknown; choose among {SCORE_KINDS}")
    if kind in _DISCRETE:
        hyper["states"] = states
    elif states is not None:
        raise ValueError(f"`states` belong to the scores {_DISCRETE}; the score {kind!r} has none")
    return _CLASSES[kind](table, interventions=interventions, **hyper)
