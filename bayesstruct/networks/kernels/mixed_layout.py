r"""Columns of several kinds in one Bayesian network: how they enter as parents, and where their parameters are.

Each column has a family, which says how it depends on linear predictors :math:`\eta` of its parents:

==============  =========================  ==================================================
family          column                     distribution
==============  =========================  ==================================================
normal          numbers                    :math:`\eta + s\,e`, e standard normal
student         numbers                    the same, e from a t distribution of variance 1
laplace         numbers                    the same, e from a Laplace distribution of variance 1
logistic        two states                 :math:`P(1) = 1 / (1 + e^{-\eta})`
probit          two states                 :math:`P(1) = \Phi(\eta)`
cloglog         two states                 :math:`P(1) = 1 - \exp(-e^\eta)`
multinomial     states without an order    :math:`P(k) \propto e^{\eta_k}`, :math:`\eta_0 = 0`
ordinal         ordered states             :math:`P(x \le k) = 1 / (1 + e^{\eta - \gamma_k})`
==============  =========================  ==================================================

Numbers are standardised. As a parent a column of numbers is one *feature*, its value; a column of K states without an order
is K - 1 features, which are 1 - 1/K for the own state and -1/K for others, the first state having none of its own; and a column of
ordered states is one feature, its state as one of K equally spaced numbers with mean 0 and mean square 1.

References
----------
Schmidt, M. (2010). *Graphical Model Structure Learning with L1-Regularization*. PhD thesis, University of British Columbia;
section 4.8.1 (families of columns).
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

__all__ = ["FAMILIES", "NUMBERS", "TWO_STATES", "MixedLayout"]

#: Families of columns; kernels and results know their positions.
FAMILIES = (
    "normal",
    "student",
    "laplace",
    "logistic",
    "probit",
    "cloglog",
    "multinomial",
    "ordinal",
)
#: Families of columns of numbers, and of columns of two states.
NUMBERS, TWO_STATES = FAMILIES[:3], FAMILIES[3:6]
_NOISE = {"normal": 1, "student": 2, "laplace": 1}


class MixedLayout:
    """Features and places of the parameters of a network of columns of several kinds.

    The parameters are one vector: of each column, for each of its linear predictors an intercept (ordinal columns have
    thresholds instead) and the coefficients of the features of all other columns; then the noise scale and the
    degrees of freedom, or the thresholds. Coefficients of columns that are no parents are zero.

    Parameters
    ----------
    families : sequence of str
        Of `FAMILIES`, one for each of the d columns.
    states : sequence of int
        Numbers of states, 0 for numbers.

    Attributes
    ----------
    size : int
        Length of the vector.
    coefficients : list of (outputs, 1 + features) int arrays
        Of each column: places of the intercepts, and of the coefficients of all features; -1 where there is none.
    extras : list of int arrays
        Of each column: places of noise scale and degrees of freedom, or of the thresholds.
    owner : (features,) int array
        Column that each feature belongs to.
    """

    def __init__(self, families: Sequence[str], states: Sequence[int]):
        self.families, self.states = tuple(families), tuple(map(int, states))
        counts = [
            1 if own in NUMBERS or own == "ordinal" else k - 1
            for own, k in zip(self.families, self.states, strict=True)
        ]
        self.owner = np.repeat(np.arange(self.d), counts)
        self.coefficients, self.extras, place = [], [], 0
        for i in range(self.d):
            present = np.concatenate([[self.families[i] != "ordinal"], self.owner != i])
            places = np.full((self.outputs(i), len(present)), -1)
            number = present.sum() * len(places)
            places[:, present] = place + np.arange(number).reshape(len(places), -1)
            place += number
            self.coefficients.append(places)
            self.extras.append(place + np.arange(self.n_extras(i)))
            place += self.n_extras(i)
        self.size = int(place)

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.families)

    def __eq__(self, other):
        return type(other) is type(self) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    @property
    def _key(self):
        return self.families, self.states

    @cached_property
    def codes(self) -> np.ndarray:
        """Position of the family of each column among `FAMILIES`, (d,)."""
        return np.array([FAMILIES.index(own) for own in self.families])

    def is_number(self, i: int) -> bool:
        """Whether a column holds numbers."""
        return self.families[i] in NUMBERS

    def outputs(self, i: int) -> int:
        """Return the number of linear predictors of a column."""
        return self.states[i] - 1 if self.families[i] == "multinomial" else 1

    def n_extras(self, i: int) -> int:
        """Return the number of parameters of a column besides intercepts and coefficients."""
        own = self.families[i]
        return self.states[i] - 1 if own == "ordinal" else _NOISE.get(own, 0)

    def features(self, x: np.ndarray, i: int) -> np.ndarray:
        """Features of a column as a parent, (features, ...).

        Parameters
        ----------
        x : array
            Standardised numbers, or states 0, 1, ...
        i : int
            The column.
        """
        x, k = np.asarray(x, float), self.states[i]
        if self.is_number(i):
            return x[None]
        if self.families[i] == "ordinal":
            return ((x - (k - 1) / 2) / np.sqrt((k * k - 1) / 12))[None]
        own = np.arange(1, k).reshape(-1, *[1] * x.ndim)
        return (x == own) - 1.0 / k

    def all_features(self, x: np.ndarray) -> np.ndarray:
        """Features of all columns of a table (n, d), (features, n)."""
        return np.concatenate([self.features(x[:, i], i) for i in range(self.d)])

    def present(self, dag: np.ndarray) -> np.ndarray:
        """Which parameters are not zero by the graph; bool, (size,)."""
        out = np.zeros(self.size, bool)
        dag = np.asarray(dag) != 0
        for i in range(self.d):
            used = np.concatenate([[self.families[i] != "ordinal"], dag[self.owner, i]])
            out[self.coefficients[i][:, used]] = True
            out[self.extras[i]] = True
        return out

    def labels(self, names: Sequence[str], levels: Sequence[Sequence]) -> list[str]:
        """Names of the parameters.

        Parameters
        ----------
        names : sequence of str
            Of the columns.
        levels : sequence of sequences
            States of each column, none for numbers.
        """
        out = [""] * self.size
        features = [name for i in range(self.d) for name in self._feature_names(i, names, levels)]
        for i, name in enumerate(names):
            for o, own in enumerate(self.coefficients[i]):
                target = (
                    f"{name}: {levels[i][o + 1]}"
                    if self.families[i] in (*TWO_STATES, "multinomial")
                    else name
                )
                for label, place in zip(["intercept", *features], own, strict=True):
                    if place >= 0:
                        out[place] = f"{label} -> {target}"
            for e, place in enumerate(self.extras[i]):
                kind = f"threshold {levels[i][e]}|{levels[i][e + 1]}" if levels[i] else _EXTRAS[e]
                out[place] = f"{kind} -> {name}"
        return out

    def _feature_names(self, i, names, levels):
        if self.is_number(i) or self.families[i] == "ordinal":
            return [names[i]]
        return [f"{names[i]}: {level}" for level in levels[i][1:]]


_EXTRAS = ("noise scale", "degrees of freedom")
