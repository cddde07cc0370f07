"""Choice of a rate: information criteria, cross-validation and stability selection on a path."""

import warnings

from typing import NamedTuple

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.core.solution import ConvergenceWarning
from bayesstruct.data.arguments import generator, number, whole_number
from bayesstruct.sparse.penalties.base import Penalty
from bayesstruct.sparse.penalties.l1 import L1
from bayesstruct.sparse.solvers.designs import as_design
from bayesstruct.sparse.solvers.losses import Gaussian, Loss, Multinomial, loss_for
from bayesstruct.sparse.solvers.sparse import SparseSolution, rates_of, sparse_mode, sparse_path

__all__ = [
    "CrossValidation",
    "bayesian_information_criterion",
    "cross_validate",
    "stability_selection",
]

MAX_ITER = 2_000  # of one mode of many; tables of 60 x 100 took up to 485 for a gap of 1e-10


def bayesian_information_criterion(
    X: ArrayLike,
    y: ArrayLike,
    path: list[SparseSolution],
    *,
    family: str = "gaussian",
    intercept: bool = True,
    gamma: float = 0.0,
) -> np.ndarray:
    r"""Return the (extended) BIC of the models that a path selects: lower is better.

    .. math:: 2\, \mathrm{NLL}(\hat w_S) + d \log n + 2 \gamma\, d \log p

    at the *unpenalised* maximum likelihood estimate on the support :math:`S` of each mode, with d
    coefficients: the penalty selects the models and does not shrink the estimates that are compared. A Gaussian likelihood
    has its variance estimated.

    Parameters
    ----------
    X, y, family, intercept
        As in `bayesstruct.solvers.sparse_mode`, for which the path was made.
    path : list of SparseSolution
        From `bayesstruct.solvers.sparse_path`; only the supports are used.
    gamma : float, default 0
        0 is the BIC; 0.5 or 1 the extended one, for many more columns than rows.

    Returns
    -------
    (len(path),) numpy.ndarray
        Infinite with as many coefficients as rows. Where labels are separated in part, so that the
        estimate runs away, the likelihood is the one that it approaches.

    References
    ----------
    Schmidt, M. (2010). PhD thesis, University of British Columbia, section 1.1.

    Chen, J., Chen, Z. (2008). Extended Bayesian information criteria for model selection with
    large model spaces. *Biometrika* 95(3), 759-771, equation 1.
    """
    design, loss = as_design(X, intercept=False), loss_for(family, y)
    if isinstance(loss, Multinomial):
        raise ValueError("the criterion is for one column of coefficients, not a multinomial")
    if not 0 <= number("gamma", gamma) <= 1:
        raise ValueError(f"`gamma` must be between 0 and 1, it is {gamma}")
    if not isinstance(path, list) or not all(isinstance(s, SparseSolution) for s in path):
        raise TypeError("`path` must be the list that sparse_path returned")
    if any(s.coefficients.shape != (design.p,) for s in path):
        raise ValueError(f"`path` is that of another table, `X` has {design.p} columns")
    known: dict[bytes, float] = {}
    values = []
    for solution in path:
        support = np.asarray(solution.coefficients) != 0
        key = support.tobytes()
        if key not in known:
            known[key] = _criterion(design, loss, np.flatnonzero(support), intercept, gamma)
        values.append(known[key])
    return np.array(values)


def _criterion(design, loss, support, intercept, gamma):
    n, d = design.n, len(support)
    if d + intercept >= n:
        return np.inf
    columns = design.columns(support) if d else np.zeros((n, 1))
    value = _best_loss(columns, loss, 0.0 if d else 1.0, intercept)
    twice = n * np.log(2 * value / n) if isinstance(loss, Gaussian) else 2 * value
    return twice + (d + intercept) * np.log(n) + 2 * gamma * d * np.log(design.p)


def _best_loss(columns, loss, rate, intercept):
    """Smallest loss of some columns."""
    try:
        return sparse_mode(
            columns, None, family=loss, rate=rate, intercept=intercept, tol=1e-9
        ).objective
    except ValueError:  # no finite estimate: stop where the loss is within 1e-4 or so of its limit
        fit = sparse_mode(columns, None, family=loss, rate=1e-6, intercept=intercept, tol=1e-9)
        return fit.objective - 1e-6 * np.abs(fit.coefficients).sum()


class CrossValidation(NamedTuple):
    """Loss on rows that were left out.

    Attributes
    ----------
    rates : (k,) numpy.ndarray
        Rates of the penalty for all rows; a fold of a share s of them uses s times as much.
    mean, standard_error : (k,) numpy.ndarray
        Loss of one row that was left out, over folds.
    best : float
        Rate of the lowest mean.
    """

    rates: np.ndarray
    mean: np.ndarray
    standard_error: np.ndarray
    best: float


def cross_validate(
    X: ArrayLike,
    y: ArrayLike,
    *,
    family: str | Loss = "gaussian",
    penalty: Penalty | None = None,
    rates: ArrayLike | None = None,
    intercept: bool = True,
    folds: int = 5,
    tol: float = 1e-6,
    max_iter: int = MAX_ITER,
    random_seed: int | np.random.Generator | None = None,
) -> CrossValidation:
    """Choose a rate by the loss on rows that were left out.

    The folds run through `joblib.Parallel`: ``with joblib.parallel_config(...)`` says where.

    Parameters
    ----------
    X, y, family, penalty, rates, intercept, tol
        As in `bayesstruct.solvers.sparse_path`.
    folds : int
        Parts of the rows, each left out once. Labels are spread evenly over them, and of counts the
        zeros.
    max_iter : int
        Maximum number of iterations for each mode, see `bayesstruct.solvers.sparse_mode`.
    random_seed : int or numpy.random.Generator, optional
        For the assignment of rows to folds.

    Returns
    -------
    CrossValidation
        The rates, mean losses, their standard errors, and the best rate.

    Raises
    ------
    ValueError
        If the table, the responses or the penalty cannot be used, or a label occurs only once.

    Warns
    -----
    ConvergenceWarning
        If some of the modes were not found to `tol`.

    Notes
    -----
    Rates are those for all n rows. The modes without a part of m rows are found at the rate times
    (n - m) / n, since the loss is a sum over the rows: the weight of the prior relative to the
    average loss stays the same. `sparse_mode` on all rows takes ``best`` as it is.
    """
    design, loss = as_design(X, intercept=intercept), loss_for(family, y)
    penalty = L1(1.0) if penalty is None else penalty
    folds = whole_number("folds", folds, 2, design.n)
    options = _Options(penalty, _rates(design, loss, penalty, rates), intercept, tol, max_iter)
    parts = _dealt(loss, design, folds, generator(random_seed))
    losses = _over(_left_out, design.X, loss, parts, options, "cross_validate")
    mean = np.mean(losses, axis=0)
    error = np.std(losses, axis=0, ddof=1) / np.sqrt(folds)
    return CrossValidation(options.rates, mean, error, float(options.rates[np.argmin(mean)]))


class _Options(NamedTuple):
    """Options that all folds share."""

    penalty: Penalty
    rates: np.ndarray
    intercept: bool
    tol: float
    max_iter: int


def _path(X, loss, rows, options):
    """Path of some of the rows, at rates for as many."""
    share = len(rows) / X.shape[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # one warning is given for all parts
        return sparse_path(
            _rows(X, rows),
            None,
            family=loss.take(rows),
            penalty=options.penalty,
            rates=share * options.rates,
            intercept=options.intercept,
            tol=options.tol,
            max_iter=options.max_iter,
        )


def _over(work, X, loss, parts, options, title):
    """Results of all parts of the rows, and one warning for all of their modes."""
    from joblib import Parallel, delayed

    done = Parallel()(delayed(_named)(work, X, loss, parts, k, options) for k in range(len(parts)))
    results, bad = zip(*done, strict=True)
    if sum(bad):
        warnings.warn(
            f"{title}: {sum(bad)} of {len(parts) * len(options.rates)} modes were not found to "
            f"tol={options.tol:g} in {options.max_iter} iterations. Raise `max_iter` or `tol`.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return results


def _named(work, X, loss, parts, k, options):
    """Do the work for one part; an error says which one it was."""
    try:
        return work(X, loss, parts[k], options)
    except ValueError as error:
        raise ValueError(f"in part {k + 1} of {len(parts)} of the rows: {error}") from error


def _left_out(X, loss, part, options):
    """Mean loss of the rows in ``part`` under the modes of the others, and how many are bad."""
    path = _path(X, loss, np.setdiff1d(np.arange(X.shape[0]), part), options)
    judge, held = loss.take(part), _rows(X, part)
    losses = [judge.value(held @ s.coefficients + s.intercept) / len(part) for s in path]
    return losses, sum(not s.converged for s in path)


def stability_selection(
    X: ArrayLike,
    y: ArrayLike,
    *,
    family: str | Loss = "gaussian",
    penalty: Penalty | None = None,
    rates: ArrayLike | None = None,
    intercept: bool = True,
    resamples: int = 100,
    tol: float = 1e-4,
    max_iter: int = MAX_ITER,
    random_seed: int | np.random.Generator | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each coefficient is selected on random halves of the rows.

    Halves come in complementary pairs. They run through `joblib.Parallel`:
    ``with joblib.parallel_config(...)`` says where.

    Parameters
    ----------
    X, y, family, penalty, rates, intercept, tol
        As in `bayesstruct.solvers.sparse_path`; the rates are those of all n rows, a half of m of
        them uses m / n times as much.
    resamples : int
        Halves, an even number. Labels are spread evenly over both of a pair, and of counts the
        zeros.
    max_iter : int
        Maximum number of iterations for each mode, see `bayesstruct.solvers.sparse_mode`.
    random_seed : int or numpy.random.Generator, optional
        For the halves.

    Returns
    -------
    rates : (r,) numpy.ndarray
        Rates of the path.
    frequencies : (r, p) or (r, p, k) numpy.ndarray
        Share of the halves on which a coefficient is not zero, for each of the k categories of a
        multinomial; compare its maximum over the rates with a threshold such as 0.8.

    Raises
    ------
    ValueError
        If the table, the responses or the penalty cannot be used, or a label occurs only once.

    Warns
    -----
    ConvergenceWarning
        If some of the modes were not found to `tol`.

    References
    ----------
    Meinshausen, N., Buhlmann, P. (2010). Stability selection. *JRSS B* 72(4), 417-473.

    Shah, R., Samworth, R. (2013). Variable selection with error control: another look at
    stability selection. *JRSS B* 75(1), 55-80.
    """
    design, loss = as_design(X, intercept=intercept), loss_for(family, y)
    penalty = L1(1.0) if penalty is None else penalty
    resamples = whole_number("resamples", resamples, 2)
    if resamples % 2:
        raise ValueError(f"`resamples` must be an even number from 2 up, it is {resamples}")
    options = _Options(penalty, _rates(design, loss, penalty, rates), intercept, tol, max_iter)
    rng, size = generator(random_seed), design.n // 2
    pairs = [_dealt(loss, design, 2, rng) for _ in range(resamples // 2)]
    halves = [half[:size] for pair in pairs for half in pair]
    chosen = _over(_selected, design.X, loss, halves, options, "stability_selection")
    return options.rates, np.mean(chosen, axis=0)


def _selected(X, loss, half, options):
    path = _path(X, loss, half, options)
    return np.array([s.coefficients != 0 for s in path]), sum(not s.converged for s in path)


def _dealt(loss, design, count, rng):
    """Assign the rows to parts at random, those of each label evenly.

    Of rows that do not come out even, the last of the first parts are of the commonest label.
    """
    kinds = loss.kinds()
    order = rng.permutation(design.n)
    if kinds is None:
        return np.array_split(order, count)
    codes, names = kinds
    counts = np.bincount(codes + 1, minlength=len(names) + 1)
    rarest = int(counts[1:].argmin())
    if design.intercept and counts[1 + rarest] < 2:
        raise ValueError(
            f"{names[rarest]} occurs in {counts[1 + rarest]} row, and each part of the rows needs "
            "one; leave it out, or merge it with another"
        )
    rank = np.argsort(np.argsort(counts, kind="stable"))
    order = order[np.argsort(rank[codes[order] + 1], kind="stable")]
    return [order[k::count] for k in range(count)]


def _rates(design, loss, penalty, rates):
    """Rates as given, or those of the default path."""
    if rates is None:
        whole = sparse_path(
            design, None, family=loss, penalty=penalty, intercept=design.intercept, tol=1e-2
        )
        rates = [s.rate for s in whole]
    return rates_of(rates)


def _rows(X, index):
    return X[index] if isinstance(X, np.ndarray) else X.tocsr()[index]
