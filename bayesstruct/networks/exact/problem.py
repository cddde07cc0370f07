"""Problems of sums and searches over directed acyclic graphs: names, local scores and prior weights."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import sample_size
from bayesstruct.data.errors import listing
from bayesstruct.data.names import nearest
from bayesstruct.networks.data.arcs import most_parents, order_weights, parent_prior
from bayesstruct.networks.data.tables import network_table
from bayesstruct.networks.kernels.dag_priors import ParentPrior

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike

    from bayesstruct.networks.kernels.scores.base import Score

__all__ = ["NetworkProblem", "check_score", "network_problem", "positive_size"]

_HYPER = {
    "bge": ("alpha_mu", "alpha_w", "nu"),
    "bdeu": ("equivalent_sample_size",),
    "bde": ("pseudo_count",),
}
_OPTIONS = (
    "score",
    "prior",
    "names",
    "weights",
    "edge_probability",
    "max_parents",
    "required",
    "forbidden",
    "tiers",
    "interventions",
    "states",
    "equivalent_sample_size",
)
#: Names that scores have for `equivalent_sample_size`.
_SIZE = {"bge": "alpha_mu", "bdeu": "equivalent_sample_size"}


@dataclass(frozen=True, eq=False)
class NetworkProblem:
    """Names, scores and prior weights: all that a sum or search over graphs needs.

    Attributes
    ----------
    names : tuple of str
        The d variables.
    score : object
        Local scores, as in :mod:`bayesstruct.networks.kernels.scores`.
    prior : ParentPrior
        Prior weights of the parent sets.
    order : bool
        Whether the prior is the order-modular one.
    """

    names: tuple[str, ...]
    score: Any
    prior: ParentPrior
    order: bool = False

    @property
    def d(self) -> int:
        """Number of variables."""
        return len(self.names)

    def subsets(
        self, child: int, candidates: Iterable[int], *, fixed: Iterable[int] = ()
    ) -> np.ndarray:
        """Log score plus log prior weight of the sets of some candidates and all of `fixed`.

        Parameters
        ----------
        child : int
        candidates : sequence of int
            k variables.
        fixed : sequence of int

        Returns
        -------
        numpy.ndarray
            (2**k,): entry m has the candidates b with bit b of m set.

        Raises
        ------
        ValueError
            If a score is no number or plus infinity.
        """
        out = self.prior.subsets(child, candidates, fixed)
        score = np.asarray(
            self.score.subsets(child, candidates, fixed=fixed, max_parents=self.prior.max_parents)
        )
        if not (score < np.inf).all():
            raise ValueError(
                f"the score of {self.names[child]!r} is not a number, or infinite, for some parents"
            )
        out += score
        return out

    def log_weights(self) -> np.ndarray:
        """Table of all parent sets, (d, 2**(d-1)) (:mod:`bayesstruct.networks.kernels.subset_sums`)."""
        out = np.empty((self.d, 2 ** (self.d - 1)))
        for child in range(self.d):
            out[child] = self.subsets(child, np.delete(np.arange(self.d), child))
        return out

    def log_prior_weights(self) -> np.ndarray:
        """Table like that of `log_weights` for the prior alone."""
        everyone = np.arange(self.d)
        return np.array([self.prior.subsets(i, np.delete(everyone, i)) for i in range(self.d)])


def network_problem(
    data: "pd.DataFrame | ArrayLike | Score",
    *,
    score: str = "bge",
    prior: str = "uniform",
    names: Sequence[str] | None = None,
    weights: str | None = None,
    edge_probability: "float | pd.DataFrame | ArrayLike | None" = None,
    max_parents: int | None = None,
    required: Iterable[tuple] = (),
    forbidden: Iterable[tuple] = (),
    tiers: dict | Iterable[Iterable] | None = None,
    interventions: "pd.DataFrame | ArrayLike | None" = None,
    states: dict | list | None = None,
    **options,
) -> NetworkProblem:
    """Check a table and the options of a search over graphs; see :func:`bayesstruct.exact.dag_posterior`.

    Raises
    ------
    TableError
        If the table cannot be used or an option names a column that does not exist.
    TypeError
        If there is no such option.
    ValueError
        If an option is out of range.
    """
    tabled = {"interventions": interventions, "states": states}
    if hasattr(data, "subsets") and hasattr(data, "local"):
        extra = [*(k for k, own in tabled.items() if own is not None), *sorted(options)]
        if extra:
            hyper = sum(_HYPER.values(), ())
            if unknown := [name for name in options if name not in hyper]:
                raise TypeError(nearest("option", unknown[0], _OPTIONS))
            raise ValueError(f"{listing(extra)}: options of a score that is made from a table")
        known, local = _score_names(data, names), data
    else:
        if names is not None:
            raise ValueError("`names` goes with a score; a table has the names of its columns")
        known, local = _table_score(data, score, tabled, max_parents, options)
    order = prior == "order"
    kind = order_weights(prior, weights, edge_probability)
    parents = parent_prior(
        known,
        kind,
        edge_probability=edge_probability,
        max_parents=max_parents,
        required=required,
        forbidden=forbidden,
        tiers=tiers,
    )
    return NetworkProblem(known, local, parents, order)


def _score_names(score, names):
    names = tuple(f"x{i}" for i in range(score.d)) if names is None else tuple(names)
    if len(names) != score.d or len(set(names)) < score.d:
        raise ValueError(f"`names` are {len(set(names))} different ones for {score.d} variables")
    return names


def _table_score(data, kind, tabled, max_parents, options):
    from bayesstruct.networks.kernels.scores.named import SCORE_KINDS, network_score

    check_score(kind, SCORE_KINDS)
    options = _sized(kind, options)
    _check_options(kind, options)
    checked = network_table(data, kind, **tabled, max_parents=most_parents(max_parents))
    table, kind = checked.table, checked.score
    values = table.standardized if checked.continuous else table.codes
    states = None if checked.continuous or kind == "logistic" else table.states
    score = network_score(values, kind, states=states, interventions=checked.was_set, **options)
    return table.names, score


def check_score(kind: str, known: Iterable[str]) -> None:
    """Raise a ValueError for a score that is neither known nor ``"bic"``."""
    if kind not in (*known, "bic"):
        raise ValueError(nearest("score", kind, (*known, "bic")))


def _sized(kind, options):
    """Options with `equivalent_sample_size` checked, under the name that the score has for it."""
    options = dict(options)
    size = options.pop("equivalent_sample_size", None)
    if size is None:
        return options
    if kind not in _SIZE:
        raise ValueError(
            f"`equivalent_sample_size` belongs to the scores 'bge' and 'bdeu', not to {kind!r}; leave it out"
        )
    if _SIZE[kind] in options:
        raise ValueError(
            f"`equivalent_sample_size` and `{_SIZE[kind]}` are the same; give one of them"
        )
    return options | {_SIZE[kind]: positive_size("equivalent_sample_size", size)}


def positive_size(name: str, value: float) -> float:
    """Return an option that must be a positive finite number as a float; a ValueError otherwise."""
    number = isinstance(value, Real) and not isinstance(value, bool | np.bool)
    if not (number and 0.0 < value < np.inf):
        raise ValueError(f"`{name}` must be a positive number, it is {value!r:.60}")
    return sample_size(value, name) if name == "equivalent_sample_size" else float(value)


def _check_options(kind, options):
    """Refuse options that are neither of the search nor of the score."""
    own = _HYPER.get(kind, ())
    for name in options:
        if name in own:
            continue
        if owners := [other for other, names in _HYPER.items() if name in names]:
            raise TypeError(f"`{name}` belongs to the score {owners[0]!r}, not to {kind!r}")
        raise TypeError(nearest("option", name, (*_OPTIONS, *own)))
