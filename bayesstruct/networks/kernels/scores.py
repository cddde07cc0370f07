r"""Local scores of Bayesian networks.

A score is additive over the families of a directed acyclic graph G,

.. math::

    \log p(\text{data} \mid G) = \sum_i s_i(\mathrm{pa}_i),

its terms being log marginal likelihoods or minus half of a BIC. All objects of this file have the methods of
`Score`: `local` for one parent set, `subsets` for all subsets of some candidates at once.

Interventions are perfect: whoever sets a variable cuts it off from its parents, so that a row says nothing about
the law of a variable that was set in it, and is left out of the local scores of that variable (Cooper and
Yoo 1999).

References
----------
Cooper, G. F. and Yoo, C. (1999). Causal discovery from a mixture of experimental and observational data.
*UAI* 15, 116-125.
"""

import math

from abc import ABC, abstractmethod

import numpy as np

__all__ = [
    "SCORE_KINDS",
    "BDe",
    "BDeu",
    "BGe",
    "GaussianBIC",
    "LogisticBIC",
    "MultinomialBIC",
    "Score",
    "network_score",
]

_MOST_CANDIDATES = 24  # 2**24 scores take 128 MiB
_COLLINEAR = 1e-10  # share of a variable's squares that its parents have to leave
_FEW = 256  # different values at most of a discrete variable
_ROWS = 2**31 // _FEW  # numbers of configurations are int32
_MERGE = 4  # candidates from which on merging rows beforehand pays


class Score(ABC):
    """Local scores of d variables.

    Parameters
    ----------
    shape : tuple of int
        Rows and variables of the table.
    interventions : (n, d) bool array_like, optional
        True where a variable was set from outside; none by default.

    Attributes
    ----------
    d : int
        Number of variables.
    n_rows : (d,) int array
        Rows in which each variable was not set.
    """

    def __init__(self, shape, interventions=None):
        self.d = shape[1]
        self._kept, self._group = _groups(shape, interventions)
        self.n_rows = np.array([int(rows.sum()) for rows in self._kept])[self._group]
        self.n_rows.flags.writeable = False

    def local(self, child, parents) -> float:
        """Score of one family.

        Parameters
        ----------
        child : int
        parents : iterable of int

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If a variable does not exist or is there twice.
        """
        out = np.empty(1)
        none = np.empty(0, np.int64)
        self._fill(child, none, self._variables(child, parents), self.d, out)
        return float(out[0])

    def subsets(self, child, candidates, *, fixed=(), max_parents=None) -> np.ndarray:
        """Scores of the parent sets that consist of `fixed` and of some of the candidates.

        Parameters
        ----------
        child : int
        candidates : iterable of int
            k variables, at most 24.
        fixed : iterable of int
            Parents in every set; not among the candidates.
        max_parents : int, optional
            Larger sets score -inf.

        Returns
        -------
        numpy.ndarray
            float64, (2**k,): entry m has the candidates b with bit b of m set.

        Raises
        ------
        ValueError
            If a variable does not exist or is there twice, or there are too many candidates.
        """
        candidates = list(candidates)
        both, k = self._variables(child, [*candidates, *fixed]), len(candidates)
        if k > _MOST_CANDIDATES:
            raise ValueError(
                f"{k} candidates have 2**{k} subsets; give at most {_MOST_CANDIDATES} candidates"
            )
        most = self.d if max_parents is None else max_parents
        out = np.empty(1 << k)
        self._fill(child, both[:k], both[k:], most, out)
        return out

    @abstractmethod
    def _fill(self, child, candidates, fixed, most, out):
        """Write the scores of all subsets; int64 arrays, checked."""

    def _variables(self, child, parents):
        """Parents as an array, after a check that the family exists."""
        parents = [int(j) for j in parents]
        family = {int(child), *parents}
        if len(family) <= len(parents):
            raise ValueError(f"child {child} and parents {parents} must all be different")
        if min(family) < 0 or max(family) >= self.d:
            raise ValueError(
                f"child {child} and parents {parents} must lie between 0 and {self.d - 1}"
            )
        return np.array(parents, np.int64)


class _Gaussian(Score):
    """Scores that depend on the data by one matrix for each set of kept rows."""

    _weight, _floor, _tol = 0.0, 0.0, 0.0

    def __init__(self, table, interventions):
        self._table = _numbers(table)
        super().__init__(self._table.shape, interventions)
        self._statistics = {}

    def _fill(self, child, candidates, fixed, most, out):
        from bayesstruct.networks.kernels.bge import gaussian_subsets

        if not self.n_rows[child]:
            fill_zeros(len(fixed), most, out)
            return
        matrix, *factors = self._of_group(self._group[child])
        gaussian_subsets(
            matrix, child, candidates, fixed, most, *factors, self._weight, self._floor, self._tol,
            out,
        )  # fmt: skip

    def _of_group(self, group):
        if group not in self._statistics:
            self._statistics[group] = self._prepare(self._table[self._kept[group]])
        return self._statistics[group]

    def families(self, prior):
        """Give these scores and a log prior to searches that do not tabulate them.

        Parameters
        ----------
        prior : bayesstruct.networks.kernels.dag_priors.ParentPrior

        Returns
        -------
        bayesstruct.networks.kernels.gaussian_order_search.GaussianFamilies
        """
        from bayesstruct.networks.kernels.gaussian_order_search import GaussianFamilies

        no_rows = np.eye(self.d), np.zeros(self.d), np.zeros(self.d)
        some = [rows.any() for rows in self._kept]
        parts = [self._of_group(g) if some[g] else no_rows for g in range(len(some))]
        sizes = [[offset + prior.log_size_weights, slope] for _, offset, slope in parts]
        absent, present = prior.log_arc_weights
        return GaussianFamilies(
            np.array([matrix for matrix, _, _ in parts]),
            self._group.astype(np.int64),
            np.array(sizes),
            present - absent,
            # Without rows all scores are 0: no limit and no determinant counts.
            np.outer(some, [self._weight, self._floor, self._tol]),
        )

    @abstractmethod
    def _prepare(self, rows):
        """Matrix, and the constants and factors of each size of a parent set."""


class BGe(_Gaussian):
    r"""Marginal likelihood of Gaussian networks, the same for equivalent graphs.

    The mean and precision matrix of all d variables have the prior

    .. math::

        \mu \mid W \sim N(\nu, (\alpha_\mu W)^{-1}), \qquad
        W \sim \mathrm{Wishart}(\alpha_w, T^{-1}), \qquad
        T = t I, \quad t = \frac{\alpha_\mu (\alpha_w - d - 1)}{\alpha_\mu + 1},

    the density of W being proportional to :math:`|W|^{(\alpha_w - d - 1) / 2} e^{-\mathrm{tr}(T W) / 2}`.
    So, for a child with p parents,

    .. math::

        x_i = \nu_i + a_i + (x_\pi - \nu_\pi)' b_i + N(0, v_i), \quad
        v_i \sim \mathrm{InvGamma}\Bigl(\frac{\alpha_w - d + p + 1}{2}, \frac t2\Bigr), \quad
        b_i \mid v_i \sim N\Bigl(0, \frac{v_i}{t} I\Bigr), \quad
        a_i \mid v_i \sim N\Bigl(0, \frac{v_i}{\alpha_\mu}\Bigr).

    The prior expects variances of about one; standardise the table, or the units decide. Collinear parents
    do no harm.

    Parameters
    ----------
    table : (n, d) array_like of float
    interventions : (n, d) bool array_like, optional
        True where a variable was set from outside.
    alpha_mu : float, default 1
        Number of rows that the prior of the mean is worth.
    alpha_w : float, optional
        Degrees of freedom, more than d + 1; d + alpha_mu + 1 by default.
    nu : (d,) array_like, optional
        Prior mean; zeros by default.

    Attributes
    ----------
    d : int
        Number of variables.
    n_rows : (d,) int array
        Rows in which each variable was not set.
    alpha_mu, alpha_w, scale : float
        Hyperparameters; `scale` is t.

    Raises
    ------
    ValueError
        If a value is not finite or a hyperparameter is out of range.

    References
    ----------
    Geiger, D. and Heckerman, D. (2002). Parameter priors for directed acyclic graphical models and the
    characterization of several probability distributions. *Annals of Statistics* 30, 1412-1440.

    Kuipers, J., Moffa, G. and Heckerman, D. (2014). Addendum on the scoring of Gaussian directed acyclic
    graphical models. *Annals of Statistics* 42, 1689-1691.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> score = BGe(x)
    >>> forward = score.local(0, ()) + score.local(1, (0,))
    >>> backward = score.local(1, ()) + score.local(0, (1,))
    >>> bool(np.isclose(forward, backward))
    True
    """

    _weight = 0.5

    def __init__(self, table, *, interventions=None, alpha_mu=1.0, alpha_w=None, nu=None):
        super().__init__(table, interventions)
        self.alpha_mu = _positive("alpha_mu", alpha_mu)
        self.alpha_w = float(self.d + self.alpha_mu + 1 if alpha_w is None else alpha_w)
        if not self.d + 1 < self.alpha_w < math.inf:
            raise ValueError(
                f"`alpha_w` must be above d + 1 = {self.d + 1}, it is {self.alpha_w}; leave it out "
                "for d + alpha_mu + 1"
            )
        self.scale = self.alpha_mu * (self.alpha_w - self.d - 1) / (self.alpha_mu + 1)
        self._nu = np.zeros(self.d) if nu is None else np.asarray(nu, np.float64)
        if self._nu.shape != (self.d,) or not np.isfinite(self._nu).all():
            raise ValueError(f"`nu` must hold {self.d} finite means, one for each variable")
        # R - T is positive semi-definite, so that no residual is below t.
        self._floor = self.scale

    def _prepare(self, rows):
        from bayesstruct.networks.kernels.bge import bge_constants

        n = len(rows)
        matrix, mean = _scatter(rows)
        shift = mean - self._nu
        matrix += n * self.alpha_mu / (n + self.alpha_mu) * np.outer(shift, shift)
        matrix[np.diag_indices(self.d)] += self.scale
        return matrix, *bge_constants(n, self.d, self.alpha_mu, self.alpha_w, self.scale)


class GaussianBIC(_Gaussian):
    r"""Minus half of the BIC of linear regressions with Gaussian noise.

    .. math::

        s_i(\pi) = -\frac n2 \bigl(\log(2 \pi \hat v) + 1\bigr) - \frac{p + 2}{2} \log n

    for p parents, :math:`\hat v` being the mean squared residual: p coefficients, an intercept and a
    variance are estimated. Parents that determine one of them (collinear, or constant), or that determine
    the child, score :math:`-\infty`: they leave a share below 1e-10 of its squared deviations. A variable
    that was set in every row scores 0.

    Parameters
    ----------
    table : (n, d) array_like of float
    interventions : (n, d) bool array_like, optional
        True where a variable was set from outside.

    Attributes
    ----------
    d : int
        Number of variables.
    n_rows : (d,) int array
        Rows in which each variable was not set.

    Raises
    ------
    ValueError
        If a value is not finite, or a variable is constant in the rows in which it was not set.

    References
    ----------
    Schwarz, G. (1978). Estimating the dimension of a model. *Annals of Statistics* 6, 461-464.
    """

    _tol = _COLLINEAR

    def __init__(self, table, *, interventions=None):
        super().__init__(table, interventions)
        for j in np.flatnonzero(self.n_rows):
            column = self._table[self._kept[self._group[j]], j]
            if _constant(column):
                raise ValueError(
                    f"column {j} is constant in the {len(column)} rows in which it was not set: its "
                    "likelihood has no bound; leave the column out or use the score 'bge'"
                )

    def _prepare(self, rows):
        n, sizes = len(rows), np.arange(self.d)
        matrix, _ = _scatter(rows)
        # What rounding leaves of a constant would pass for a variable.
        constant = [j for j in range(self.d) if _constant(rows[:, j])]
        matrix[constant], matrix[:, constant] = 0.0, 0.0
        offset = -0.5 * n * (math.log(2 * math.pi / n) + 1) - 0.5 * (sizes + 2) * math.log(n)
        return matrix, offset, np.full(self.d, 0.5 * n)


class _Counts(Score):
    """Scores that depend on the data by counts of states."""

    _law = 0  # `DIRICHLET`, `DIRICHLET_CONSTANT` and `BIC` of `bayesstruct.networks.kernels.bdeu` are 0, 1, 2

    def __init__(self, table, states, interventions):
        x, self._states = _state_table(table, states)
        # Numba compiles again for arrays that must not be written to: kernels get the other one.
        self.states = self._states.copy()
        self.states.flags.writeable = False
        super().__init__(x.shape[::-1], interventions)
        weights = np.array(self._kept, np.int32).reshape(len(self._kept), x.shape[1])
        at, self._weights = _merge(x, np.arange(self.d), self._states, weights)
        self._x = np.ascontiguousarray(x[:, at])

    @abstractmethod
    def _value(self, child):
        """Give the number that goes with the law."""

    def _fill(self, child, candidates, fixed, most, out):
        from bayesstruct.networks.kernels.bdeu import count_subsets

        if not self.n_rows[child]:
            fill_zeros(len(fixed), most, out)
            return
        x, weights, states = self._x, self._weights[self._group[child]], self._states
        value = self._value(child)
        if len(candidates) >= _MERGE:
            family = np.array([child, *candidates, *fixed])
            at, weights = _merge(x, family, states, weights[None])
            x = np.ascontiguousarray(x[family][:, at])
            weights, states = weights[0], states[family]
            child, candidates, fixed = _renamed(len(candidates), len(fixed))
        codes = np.empty((len(candidates) + 1, x.shape[1]), np.int32)
        count_subsets(
            x, weights, states, child, candidates, fixed, most, self._law, value, codes, out
        )


class BDeu(_Counts):
    r"""Marginal likelihood of discrete networks, the same for equivalent graphs.

    Each row of the table of conditional probabilities of a child with r states and q configurations of its parents
    has a Dirichlet prior with all :math:`\alpha_{jk} = \alpha / (r q)`.

    Parameters
    ----------
    table : (n, d) array_like of int
        States 0, 1, ...
    states : (d,) sequence of int, optional
        How many each variable has; by default one more than the greatest in the table.
    interventions : (n, d) bool array_like, optional
        True where a variable was set from outside.
    ess : float, default 1
        Equivalent sample size :math:`\alpha`.

    Attributes
    ----------
    d : int
        Number of variables.
    n_rows : (d,) int array
        Rows in which each variable was not set.
    states : (d,) int array
    ess : float

    Raises
    ------
    ValueError
        If a value is not one of the states of its variable, or `ess` is not positive.

    References
    ----------
    Heckerman, D., Geiger, D. and Chickering, D. M. (1995). Learning Bayesian networks: the combination of
    knowledge and statistical data. *Machine Learning* 20, 197-243.
    """

    def __init__(self, table, *, states=None, interventions=None, ess=1.0):
        self.ess = _positive("ess", ess)
        super().__init__(table, states, interventions)

    def _value(self, child):
        return self.ess


class BDe(_Counts):
    r"""Marginal likelihood of discrete networks with the same pseudo-count in each cell.

    As `BDeu` with all :math:`\alpha_{jk}` equal; 1, uniform laws, is the K2 score. Equivalent graphs
    do not score the same.

    Parameters
    ----------
    table, states, interventions
        As of `BDeu`.
    pseudo_count : float, default 1
        :math:`\alpha_{jk}`.

    Raises
    ------
    ValueError
        If a value is not one of the states of its variable, or `pseudo_count` is not positive.

    References
    ----------
    Cooper, G. F. and Herskovits, E. (1992). A Bayesian method for the induction of probabilistic networks
    from data. *Machine Learning* 9, 309-347.
    """

    _law = 1

    def __init__(self, table, *, states=None, interventions=None, pseudo_count=1.0):
        self.pseudo_count = _positive("pseudo_count", pseudo_count)
        super().__init__(table, states, interventions)

    def _value(self, child):
        return self.pseudo_count


class MultinomialBIC(_Counts):
    r"""Minus half of the BIC of tables of conditional probabilities.

    .. math::

        s_i(\pi) = \sum_{jk} N_{jk} \log \frac{N_{jk}}{N_j} - \frac{q (r - 1)}{2} \log n

    for r states and q configurations of the parents, those that do not occur included. A variable that was set
    in every row scores 0.

    Parameters
    ----------
    table, states, interventions
        As of `BDeu`.

    Raises
    ------
    ValueError
        If a value is not one of the states of its variable.

    References
    ----------
    Schwarz, G. (1978). Estimating the dimension of a model. *Annals of Statistics* 6, 461-464.
    """

    _law = 2

    def __init__(self, table, *, states=None, interventions=None):
        super().__init__(table, states, interventions)
        self._price = 0.5 * np.log(np.maximum(self.n_rows, 1))

    def _value(self, child):
        return float(self._price[child])


class LogisticBIC(Score):
    r"""Minus half of the BIC of logistic regressions of variables with two values.

    .. math::

        s_i(\pi) = \sup_{b, w} \log p(x_i \mid b + x_\pi' w) - \frac{p + 1}{2} \log n

    for p parents, whose values enter as numbers: 0/1 and -1/1 give the same scores. Where parents separate the
    values of the child, the supremum is finite and is what counts, although no finite coefficients attain it.
    Parents that are constant, or linear functions of the others, score :math:`-\infty`. A variable that was
    set in every row scores 0.

    Parameters
    ----------
    table : (n, d) array_like of float
    interventions : (n, d) bool array_like, optional
        True where a variable was set from outside.

    Attributes
    ----------
    d : int
        Number of variables.
    n_rows : (d,) int array
        Rows in which each variable was not set.

    Raises
    ------
    ValueError
        If a value is not finite; when a child is scored that has more than two values.

    References
    ----------
    Schmidt, M. (2010). *Graphical Model Structure Learning with L1-Regularization*. PhD thesis, University
    of British Columbia; chapter 4.
    """

    def __init__(self, table, *, interventions=None):
        table = _numbers(table)
        super().__init__(table.shape, interventions)
        x, self._states, self._distinct = _ranks(table)
        weights = np.array(self._kept, np.int32).reshape(len(self._kept), len(table))
        everything = np.arange(self.d)
        at, self._weights = _merge(x, everything, self._states, weights)
        self._x, self._values = (np.ascontiguousarray(a[:, at]) for a in (x, table.T))

    def _fill(self, child, candidates, fixed, most, out):
        from bayesstruct.networks.kernels.bic import logistic_subsets

        if self._distinct[child] > 2:
            raise ValueError(
                f"column {child} has {self._distinct[child]} different values; a logistic regression "
                "explains a variable with two"
            )
        if not self.n_rows[child]:
            fill_zeros(len(fixed), most, out)
            return
        x, values, states = self._x, self._values, self._states
        weights = self._weights[self._group[child]]
        if len(candidates) >= _MERGE:
            family = np.array([child, *candidates, *fixed])
            at, weights = _merge(x, family, states, weights[None])
            x, values = (np.ascontiguousarray(a[family][:, at]) for a in (x, values))
            weights, states = weights[0], states[family]
            child, candidates, fixed = _renamed(len(candidates), len(fixed))
        price = 0.5 * math.log(weights.sum())
        codes = np.empty(x.shape[1], np.int32)
        logistic_subsets(
            values, x, states, weights, child, candidates, fixed, most, price, codes, out
        )


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


def network_score(table, kind="bge", *, states=None, interventions=None, **hyper) -> Score:
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
        Hyperparameters of the class: `alpha_mu`, `alpha_w`, `nu`; `ess`; `pseudo_count`.

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


def _groups(shape, interventions):
    """Rows that are kept, one mask for each group of children; and the group of each child."""
    n, d = shape
    if interventions is None:
        return [np.ones(n, bool)], np.zeros(d, np.int64)
    interventions = np.asarray(interventions)
    if interventions.shape != (n, d):
        raise ValueError(
            f"`interventions` has shape {interventions.shape}; give one value for each cell of the "
            f"table, {n} x {d}"
        )
    if interventions.dtype != bool:
        raise ValueError("`interventions` must be true or false in each cell")
    kept, group, seen = [], np.empty(d, np.int64), {}
    for j, rows in enumerate(~interventions.T):
        key = rows.tobytes()
        if key not in seen:
            seen[key] = len(kept)
            kept.append(rows.copy())
        group[j] = seen[key]
    return kept, group


def _positive(name, value):
    """Return a hyperparameter as a float, checked."""
    if not 0 < value < math.inf:
        raise ValueError(f"`{name}` must be a positive number, it is {value}")
    return float(value)


def _matrix(table):
    """Rows and variables as an array of two dimensions."""
    table = np.asarray(table)
    if table.ndim != 2 or not table.shape[1]:
        raise ValueError(f"the table must have rows and columns, its shape is {table.shape}")
    if len(table) >= _ROWS:
        raise ValueError(
            f"the table has {len(table):,} rows; scores are made for less than {_ROWS:,}"
        )
    return table


def _numbers(table):
    """Return the table as finite floats, checked."""
    table = _matrix(table).astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(table).all(0))
    if len(wrong):
        raise ValueError(
            f"column {wrong[0]} has missing or infinite values: leave out those rows or impute them"
        )
    return table


def _state_table(table, states):
    """Return the states as a (d, n) array of a small type, and their numbers, checked."""
    table = _matrix(table)
    for j, column in enumerate(table.T):
        numbers = column.dtype.kind in "buif" and np.isfinite(column).all()
        if not numbers or (column != np.floor(column)).any() or (column < 0).any():
            raise ValueError(
                f"column {j} has values that are not states 0, 1, ...: number its states, and leave "
                "out or impute missing values"
            )
    x = table.T.astype(np.int64)
    most = x.max(axis=1, initial=0) + 1
    states = most.copy() if states is None else np.array(states, np.int64)
    if states.shape != most.shape:
        raise ValueError(f"`states` has shape {states.shape}; give one number for each variable")
    if (states < most).any():
        j = int(np.argmax(states < most))
        raise ValueError(f"column {j} has the state {most[j] - 1}, but `states` says {states[j]}")
    if states.max() > _FEW:
        raise ValueError(
            f"column {states.argmax()} has {states.max()} states, more than {_FEW}; merge some of them"
        )
    return np.ascontiguousarray(x, np.uint8), states


def _ranks(table):
    """Ranks of the values of variables of few, their numbers (0: many), and numbers of values."""
    n, d = table.shape
    x, distinct = np.zeros((d, n), np.uint8), np.empty(d, np.int64)
    for j in range(d):
        values, ranks = np.unique(table[:, j], return_inverse=True)
        distinct[j] = len(values)
        if len(values) <= _FEW:
            x[j] = ranks
    return x, np.where(distinct <= _FEW, distinct, 0), distinct


def _merge(x, columns, states, weights):
    """Rows that stand for all rows, and their weights; unchanged unless half of the rows go.

    Variables of many values (0 states) forbid it.
    """
    from bayesstruct.networks.kernels.bdeu import merge_rows

    m = x.shape[1]
    everything = slice(None)
    if (states[columns] == 0).any() or not m:
        return everything, weights
    codes = np.empty(m, np.int32)
    classes = merge_rows(x, columns, states, codes, m // 2)
    if classes > m // 2:
        return everything, weights
    first = np.empty(classes, np.int64)
    first[codes[::-1]] = np.arange(m - 1, -1, -1)
    merged = [np.bincount(codes, row, classes) for row in weights]
    return first, np.array(merged, np.int32)


def _renamed(k, f):
    """Child, candidates and fixed parents when their columns stand in this order."""
    return 0, np.arange(1, k + 1), np.arange(k + 1, k + f + 1)


def _scatter(rows):
    """Products of the deviations from the means, and the means."""
    mean = rows.mean(0)
    centred = rows - mean
    return centred.T @ centred, mean


def _constant(column):
    """Whether a column has one value."""
    return bool((column == column[0]).all())


def fill_zeros(f, most, out):
    """Without rows every score is zero."""
    sizes = f + np.bitwise_count(np.arange(len(out)))
    out[:] = np.where(sizes <= most, 0.0, -np.inf)
