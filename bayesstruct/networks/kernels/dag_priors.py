r"""Priors over the parent sets of directed acyclic graphs.

A prior gives a weight :math:`\rho_i(\mathrm{pa}_i)` to each parent set of each variable.
Two families of priors over graphs are made of these weights:

.. math::

    p(G) \propto \prod_i \rho_i(\mathrm{pa}_i)
    \qquad\text{and}\qquad
    p(G) \propto \ell(G) \prod_i \rho_i(\mathrm{pa}_i),

*modular* and *order-modular* (Friedman and Koller 2003), :math:`\ell(G)` being the number of
topological orders of G. The weights are not normalised over acyclic graphs: for constraints in
general that takes a sum over all graphs (:mod:`bayesstruct.exact`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["PRIOR_KINDS", "ParentPrior", "log_prior_subsets"]

#: Kinds of weights; see `ParentPrior`.
PRIOR_KINDS = ("uniform", "edge", "fair")


@dataclass(frozen=True, eq=False)
class ParentPrior:
    r"""Log weights of the parent sets of d variables.

    - ``"uniform"``: 0 for every set;
    - ``"edge"``: :math:`\sum_{j \in \mathrm{pa}} \log q_{ji} + \sum_{j \notin \mathrm{pa}, j \ne i}
      \log(1 - q_{ji})`, each arc with its own probability before cycles are ruled out;
    - ``"fair"``: :math:`-\log \binom{d-1}{|\mathrm{pa}|}`, all sizes of a parent set have the same weight
      (Koivisto and Sood 2004, section 5).

    Sets that violate a constraint have the log weight :math:`-\infty`.

    Parameters
    ----------
    d : int
        Number of variables.
    kind : {"uniform", "edge", "fair"}
    probability : float or (d, d) array_like, optional
        q of ``"edge"``; rows are parents, columns children, the diagonal is ignored. 0 forbids and 1
        requires an arc. By default min(1/2, 3 / (2 (d - 1))), about three neighbours for each
        variable.
    max_parents : int, optional
        Maximum number of parents of a variable; any number by default.
    allowed : (d, d) bool array_like, optional
        ``allowed[parent, child]``; all arcs by default.
    required : (d, d) bool array_like, optional
        ``required[parent, child]``: arcs of every graph; none by default.

    Raises
    ------
    ValueError
        If an option is out of range or belongs to another kind, an arc is both required and not
        allowed, required arcs form a cycle, or there are more of them than `max_parents` for one child.

    References
    ----------
    Friedman, N. and Koller, D. (2003). Being Bayesian about network structure. *Machine Learning* 50,
    95-125.

    Koivisto, M. and Sood, K. (2004). Exact Bayesian structure discovery in Bayesian networks. *JMLR* 5,
    549-573.
    """

    d: int
    kind: str = "uniform"
    probability: Any = None
    max_parents: int | None = None
    allowed: Any = None
    required: Any = None

    def __post_init__(self):
        if self.d < 1:
            raise ValueError(f"a prior over graphs needs at least one variable, not {self.d}")
        if self.kind not in PRIOR_KINDS:
            raise ValueError(f"prior {self.kind!r} is unknown; choose among {PRIOR_KINDS}")
        most = self.max_parents
        if most is not None and (not isinstance(most, int | np.integer) or most < 0):
            raise ValueError(f"`max_parents` must be a whole number, at least 0, it is {most!r}")
        self._set("probability", self._probabilities())
        loops = np.eye(self.d, dtype=bool)
        self._set("allowed", self._arcs("allowed", True) & ~loops)
        self._set("required", self._arcs("required", False))
        if self.kind == "edge":
            self._set("allowed", self.allowed & (self.probability > 0))
            self._set("required", self.required | (self.probability == 1))
        self._check_required()

    def _set(self, name, values):
        values.flags.writeable = False
        object.__setattr__(self, name, values)

    def _probabilities(self):
        if self.kind != "edge" and self.probability is not None:
            raise ValueError("`probability` belongs to the prior 'edge'; leave it out")
        q = 0.5 if self.kind != "edge" else self.probability
        if q is None:
            q = min(0.5, 1.5 / max(self.d - 1, 1))
        q = np.asarray(q, np.float64)
        if q.shape not in ((), (self.d, self.d)):
            raise ValueError(
                f"`probability` has shape {q.shape}; give a number or a {self.d} x {self.d} matrix"
            )
        q = np.broadcast_to(q, (self.d, self.d)).copy()
        np.fill_diagonal(q, 0.0)
        if not ((q >= 0) & (q <= 1)).all():
            raise ValueError("`probability` has values that are not between 0 and 1")
        return q

    def _arcs(self, name, default):
        arcs = getattr(self, name)
        if arcs is None:
            return np.full((self.d, self.d), default)
        arcs = np.array(arcs)
        if arcs.shape != (self.d, self.d):
            raise ValueError(f"`{name}` has shape {arcs.shape}; give a {self.d} x {self.d} matrix")
        return arcs.astype(bool)

    def _check_required(self):
        if len(wrong := np.argwhere(self.required & ~self.allowed)):
            j, i = wrong[0]
            reason = "joins a variable with itself" if i == j else "is not allowed"
            raise ValueError(f"the required arc {j} -> {i} {reason}")
        rest = np.arange(self.d)
        while rest.size:
            roots = ~self.required[np.ix_(rest, rest)].any(axis=0)
            if not roots.any():
                raise ValueError(f"the required arcs among {rest.tolist()} form a cycle")
            rest = rest[~roots]
        most = self.required.sum(axis=0)
        if self.max_parents is not None and most.max() > self.max_parents:
            raise ValueError(
                f"{most.max()} arcs into {most.argmax()} are required, more than "
                f"`max_parents` = {self.max_parents}"
            )

    @cached_property
    def exchangeable(self) -> bool:
        """Whether a weight depends on the size of the parent set only, in the same way for all variables."""
        away = ~np.eye(self.d, dtype=bool)
        free = self.allowed[away].all() and not self.required.any()
        return bool(free) and len(np.unique(self.probability[away])) <= 1

    @cached_property
    def impossible(self) -> np.ndarray:
        """Arcs that no graph has, bool, (d, d): not allowed, against a required path, or a parent too many."""
        reaches = self.required.copy()
        for k in range(self.d):
            reaches |= np.outer(reaches[:, k], reaches[k])
        out = ~self.allowed | reaches.T
        if self.max_parents is not None:
            out |= (self.required.sum(axis=0) >= self.max_parents) & ~self.required
        return out

    @cached_property
    def log_size_weights(self) -> np.ndarray:
        """Factor of a weight that depends on the size of the set; float64, (d,), -inf where too large."""
        size = np.arange(self.d)
        out = np.zeros(self.d)
        if self.kind == "fair":
            from scipy.special import gammaln

            out = gammaln(size + 1) + gammaln(self.d - size) - gammaln(self.d)
        if self.max_parents is not None:
            out[size > self.max_parents] = -np.inf
        return out

    @cached_property
    def log_arc_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Terms of an absent and of a present arc; two float64 arrays (d, d), parents as rows."""
        absent, present = np.zeros((2, self.d, self.d))
        if self.kind == "edge":
            with np.errstate(divide="ignore"):
                absent, present = np.log1p(-self.probability), np.log(self.probability)
        absent = np.where(self.required, -np.inf, absent)
        return absent, np.where(self.allowed, present, -np.inf)

    def subsets(
        self, child: int, candidates: Iterable[int], fixed: Iterable[int] = ()
    ) -> np.ndarray:
        """Log weights of the sets that consist of `fixed` and of some of the candidates.

        Parameters
        ----------
        child : int
        candidates : sequence of int
            k variables other than `child`.
        fixed : sequence of int
            Parents in every set; not among the candidates.

        Returns
        -------
        numpy.ndarray
            (2**k,): entry m has the candidates b with bit b of m set.
        """
        candidates, fixed = [int(j) for j in candidates], [int(j) for j in fixed]
        absent, present = (terms[:, child] for terms in self.log_arc_weights)
        out = np.array([self._outside(child, candidates, fixed)])
        for j in candidates:
            out = np.concatenate([out + absent[j], out + present[j]])
        if self.kind == "fair" or self.max_parents is not None:
            size = np.bitwise_count(np.arange(len(out))) + len(fixed)
            out += self.log_size_weights[np.minimum(size, self.d - 1)]
        return out

    def local(self, child: int, parents: Iterable[int]) -> float:
        """Log weight of one parent set."""
        return float(self.subsets(child, (), tuple(parents))[0])

    def _outside(self, child, candidates, fixed):
        """Terms of the variables that are not candidates."""
        absent, present = (terms[:, child] for terms in self.log_arc_weights)
        rest = np.setdiff1d(np.arange(self.d), [child, *candidates, *fixed])
        return absent[rest].sum() + present[fixed].sum()


def log_prior_subsets(
    prior: str | ParentPrior,
    child: int,
    candidates: Iterable[int],
    *,
    fixed: Iterable[int] = (),
    **options,
) -> np.ndarray:
    """Log weights of the subsets of some candidates under a named prior.

    Parameters
    ----------
    prior : str or ParentPrior
        One of `PRIOR_KINDS` with the options of `ParentPrior`, among them `d`; or such an object.
    child, candidates, fixed
        As in :meth:`ParentPrior.subsets`.

    Returns
    -------
    numpy.ndarray
        (2**k,) for k candidates.
    """
    if isinstance(prior, str):
        prior = ParentPrior(kind=prior, **options)
    elif options:
        raise ValueError("options go with the name of a prior; a `ParentPrior` has its own")
    return prior.subsets(child, candidates, fixed)
