"""Parents and children of each variable by tests of conditional independence."""

import itertools
import math

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.errors import TableError, column_list
from bayesstruct.data.states import StateTable
from bayesstruct.networks.data.tables import network_table

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike

__all__ = ["log_chi_square", "mmpc_candidates"]

_COLLINEAR = 1e-10  # share of a variance that the others leave
_ROWS_PER_CELL = 5


def mmpc_candidates(
    data: "pd.DataFrame | ArrayLike",
    *,
    test: str = "fisher_z",
    alpha: float = 0.05,
    max_conditioning: int = 5,
) -> np.ndarray:
    r"""Choose the parents and children of each variable by independence tests (max-min, MMPC).

    For a target, the variable is added whose *least* association with it, given any subset of those that
    were added before, is greatest; a variable that is independent of the target given some subset
    never is. Then those are dropped that are independent of it given some subset of the others, and at last
    those in whose own list the target is missing. Association is measured by the p-value.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, d) table without missing values.
    test : {"fisher_z", "g2"}
        For jointly Gaussian columns or columns of states.
    alpha : float, default 0.05
        Level of a test: above it variables pass for independent.
    max_conditioning : int, default 5
        Maximum number of variables to condition upon.

    Returns
    -------
    (d, k) numpy.ndarray
        int64; those of variable i are in row i in the order in which they were added, then -1. k is
        the length of the longest list. `dag_search` and `known_order` take it as `candidates`.

    Raises
    ------
    TableError
        If the table cannot be used: continuous columns with ``"g2"``; a column that is a linear
        function of others with ``"fisher_z"``; fewer than 5 rows, or fewer than 5 for each joint
        state of two columns.
    ValueError
        If an option is unknown or out of range.

    Notes
    -----
    *Fisher z.* With the partial correlation r given s variables,
    :math:`\sqrt{n - s - 3} \, |\operatorname{artanh} r|` is compared with the standard normal distribution. A test
    needs n > s + 3.

    *G2.* Twice the log likelihood ratio of the table of counts, with the chi-square distribution of :math:`\sum_z (r_z -
    1) (c_z - 1)` degrees of freedom, :math:`r_z` and :math:`c_z` being the rows and columns that are not
    empty in layer z. A test needs 5 rows of data for each cell of the table, as many as there are joint
    states.

    A test that its rows do not allow is left out: it shows no independence. So is one given more than
    `max_conditioning` variables. There are as many tests as subsets, exponentially many in the length of the lists.
    Interventions are not accounted for: the mechanism that sets a variable may make others dependent.

    References
    ----------
    Tsamardinos, I., Brown, L. E. and Aliferis, C. F. (2006). The max-min hill-climbing Bayesian network
    structure learning algorithm. *Machine Learning* 65, 31-78; algorithms 1 and 2.

    Spirtes, P., Glymour, C. and Scheines, R. (2000). *Causation, Prediction, and Search*. MIT Press;
    section 5.5 (both tests).

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(500, 4)).cumsum(axis=1)
    >>> mmpc_candidates(x).tolist()
    [[1, -1], [2, 0], [3, 1], [2, -1]]
    """
    if test not in ("fisher_z", "g2"):
        raise ValueError(f"test {test!r} is unknown; choose 'fisher_z' or 'g2'")
    if not 0 < alpha < 1:
        raise ValueError(f"`alpha` must be between 0 and 1, it is {alpha}")
    if not isinstance(max_conditioning, int | np.integer) or max_conditioning < 0:
        raise ValueError(
            f"`max_conditioning` must be a whole number, at least 0, it is {max_conditioning!r}"
        )
    table = network_table(data, "bge" if test == "fisher_z" else "bdeu").table
    if isinstance(table, StateTable):
        table.refuse_unseen("tests count the states that occur; leave out those that do not")
    kind = _FisherZ(table) if test == "fisher_z" else _GSquare(table)
    tests = _Tests(kind, math.log(alpha), max_conditioning)
    lists = [_parents_and_children(tests, target, table.p) for target in range(table.p)]
    lists = [[j for j in own if i in lists[j]] for i, own in enumerate(lists)]
    out = np.full((table.p, max(map(len, lists))), -1, np.int64)
    for row, own in zip(out, lists, strict=True):
        row[: len(own)] = own
    return out


def _parents_and_children(tests, target, d):
    """Find the list of one target before the symmetry correction."""
    chosen = []
    weakest = {j: tests.log_p(target, j, ()) for j in range(d) if j != target}
    while weakest := {j: p for j, p in weakest.items() if p <= tests.level}:
        new = min(weakest, key=weakest.get)
        del weakest[new]
        for j, p in weakest.items():
            weakest[j] = max(p, tests.weakest(target, j, chosen, new))
        chosen.append(new)
    for j in list(chosen):
        others = [k for k in chosen if k != j]
        if tests.weakest(target, j, others) > tests.level:
            chosen.remove(j)
    return chosen


class _Tests:
    """Log p-values, each computed once."""

    def __init__(self, kind, level, most):
        self.level, self._kind, self._most, self._known = level, kind, most, {}

    def log_p(self, a, b, given):
        """Log p-value of the independence of two variables, -inf where there are too few rows."""
        key = min(a, b), max(a, b), tuple(sorted(given))
        if key not in self._known:
            self._known[key] = self._kind.log_p(*key)
        return self._known[key]

    def weakest(self, a, b, others, new=None):
        """Greatest log p-value given subsets of some variables, and the new one; until one shows independence."""
        fixed, worst = () if new is None else (new,), -np.inf
        for size in range(min(len(others), self._most - len(fixed)) + 1):
            for chosen in itertools.combinations(others, size):
                worst = max(worst, self.log_p(a, b, (*chosen, *fixed)))
                if worst > self.level:
                    return worst
        return worst


class _FisherZ:
    """Test of partial correlations."""

    def __init__(self, table):
        if table.n < 5:
            raise TableError(f"{table.n} rows are too few for partial correlations: 5 are needed")
        self._n, self._names = table.n, table.names
        self._correlation = np.corrcoef(table.values, rowvar=False)

    def log_p(self, a, b, given):
        from scipy.special import log_ndtr

        freedom = self._n - len(given) - 3
        if freedom < 1:
            return -np.inf
        members = [*given, a, b]
        try:
            factor = np.linalg.cholesky(self._correlation[np.ix_(members, members)])
        except np.linalg.LinAlgError:
            factor = np.zeros((2, 2))
        if factor.diagonal().min() ** 2 < _COLLINEAR:
            columns = [self._names[j] for j in sorted(members)]
            raise TableError(
                f"{column_list(columns)}: one is a linear function of the others, and they have no partial "
                "correlations; leave it out"
            )
        r = factor[-1, -2] / math.hypot(factor[-1, -2], factor[-1, -1])
        return math.log(2) + float(log_ndtr(-math.sqrt(freedom) * abs(math.atanh(r))))


class _GSquare:
    """Likelihood ratio test of tables of counts."""

    def __init__(self, table):
        self._x = np.ascontiguousarray(table.codes.T)
        self._states = table.states
        wide = np.argsort(-np.array(table.states), kind="stable")[:2].tolist()
        cells = math.prod(table.states[j] for j in wide)
        if table.n < _ROWS_PER_CELL * cells:
            raise TableError(
                f"{column_list([table.names[j] for j in wide])} have {cells} joint states, and G2 needs "
                f"{_ROWS_PER_CELL} rows for each, not {table.n} in all; merge states"
            )

    def log_p(self, a, b, given):
        shape = [self._states[j] for j in (*given, a, b)]
        cells = math.prod(shape)
        if self._x.shape[1] < _ROWS_PER_CELL * cells:
            return -np.inf
        at = np.ravel_multi_index(tuple(self._x[j] for j in (*given, a, b)), shape)
        counts = np.bincount(at, minlength=cells).reshape(-1, *shape[-2:])
        rows, columns, layers = counts.sum(axis=2), counts.sum(axis=1), counts.sum(axis=(1, 2))
        statistic = 2 * (_n_log_n(counts) + _n_log_n(layers) - _n_log_n(rows) - _n_log_n(columns))
        inside = ((rows > 0).sum(axis=1) - 1) * ((columns > 0).sum(axis=1) - 1)
        return log_chi_square(max(statistic, 0.0), int(inside[layers > 0].sum()))


def _n_log_n(counts):
    from scipy.special import xlogy

    return float(xlogy(counts, counts).sum())


def log_chi_square(x: float, freedom: int) -> float:
    """Log probability that a chi-square variable exceeds x; also where the probability underflows."""
    from scipy.special import gammaincc, gammaln

    if not freedom:
        return 0.0
    a, half = freedom / 2, x / 2
    p = float(gammaincc(a, half))
    if p > 1e-290:
        return math.log(p)
    # The upper incomplete gamma function far above its shape: a short continued fraction.
    fraction = 0.0
    for k in range(40, 0, -1):
        fraction = k * (k - a) / (half + 2 * k + 1 - a - fraction)
    return a * math.log(half) - half - float(gammaln(a)) - math.log(half + 1 - a - fraction)
