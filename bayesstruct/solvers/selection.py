"""Which rate? Information criteria, cross-validation and stability selection on a path."""

from typing import NamedTuple

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.penalties import L1, Penalty
from bayesstruct.solvers.designs import as_design
from bayesstruct.solvers.losses import Gaussian, Loss, Multinomial, loss_for
from bayesstruct.solvers.sparse import SparseSolution, sparse_mode, sparse_path

__all__ = [
    "CrossValidation",
    "bayesian_information_criterion",
    "cross_validate",
    "stability_selection",
]


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
    coefficients: the penalty filters, it does not shrink what is compared. A Gaussian likelihood
    has its variance estimated.

    Parameters
    ----------
    X, y, family, intercept
        As in `bayesstruct.solvers.sparse_mode`, for which the path was made.
    path : list of SparseSolution
        From `bayesstruct.solvers.sparse_path`; the supports are what counts.
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
    if not 0 <= gamma <= 1:
        raise ValueError(f"`gamma` must be between 0 and 1, it is {gamma}")
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
    random_seed=None,
) -> CrossValidation:
    """Choose a rate by the loss on rows that were left out.

    The folds run through `joblib.Parallel`: ``with joblib.parallel_config(...)`` says where.

    Parameters
    ----------
    X, y, family, penalty, rates, intercept, tol
        As in `bayesstruct.solvers.sparse_path`.
    folds : int
        Parts of the rows, each left out once.
    random_seed : int or numpy.random.Generator, optional
        For the assignment of rows to folds.

    Returns
    -------
    CrossValidation
        The rates, mean losses, their standard errors, and the best rate.
    """
    from joblib import Parallel, delayed

    design, loss = as_design(X, intercept=intercept), loss_for(family, y)
    penalty = L1(1.0) if penalty is None else penalty
    if not 2 <= folds <= design.n:
        raise ValueError(f"`folds` must be from 2 to the {design.n} rows, it is {folds}")
    rates = _rates(design, loss, penalty, rates)
    rng = np.random.default_rng(random_seed)
    parts = np.array_split(rng.permutation(design.n), folds)
    losses = Parallel()(
        delayed(_left_out)(design.X, loss, part, penalty, rates, intercept, tol) for part in parts
    )
    mean = np.mean(losses, axis=0)
    error = np.std(losses, axis=0, ddof=1) / np.sqrt(folds)
    return CrossValidation(rates, mean, error, float(rates[np.argmin(mean)]))


def _left_out(X, loss, part, penalty, rates, intercept, tol):
    """Mean loss of the rows in ``part`` under the modes of the others."""
    rest = np.setdiff1d(np.arange(X.shape[0]), part)
    share = len(rest) / X.shape[0]
    rows, held = _rows(X, rest), _rows(X, part)
    path = sparse_path(
        rows, None, family=loss.take(rest), penalty=penalty, rates=share * rates,
        intercept=intercept, tol=tol,
    )  # fmt: skip
    judge = loss.take(part)
    return [judge.value(held @ s.coefficients + s.intercept) / len(part) for s in path]


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
    random_seed=None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each coefficient is selected on random halves of the rows.

    Halves come in complementary pairs. They run through `joblib.Parallel`:
    ``with joblib.parallel_config(...)`` says where.

    Parameters
    ----------
    X, y, family, penalty, rates, intercept, tol
        As in `bayesstruct.solvers.sparse_path`; the rates are those of all rows.
    resamples : int
        Halves, an even number.
    random_seed : int or numpy.random.Generator, optional
        For the halves.

    Returns
    -------
    rates : (k,) numpy.ndarray
        Rates of the path.
    frequencies : (k, p) numpy.ndarray
        Share of the halves on which a coefficient is not zero; its maximum over the rates is what
        is compared with a threshold such as 0.8.

    References
    ----------
    Meinshausen, N., Buhlmann, P. (2010). Stability selection. *JRSS B* 72(4), 417-473.

    Shah, R., Samworth, R. (2013). Variable selection with error control: another look at
    stability selection. *JRSS B* 75(1), 55-80.
    """
    from joblib import Parallel, delayed

    design, loss = as_design(X, intercept=intercept), loss_for(family, y)
    penalty = L1(1.0) if penalty is None else penalty
    if resamples < 2 or resamples % 2:
        raise ValueError(f"`resamples` must be an even number from 2 up, it is {resamples}")
    rates = _rates(design, loss, penalty, rates)
    rng = np.random.default_rng(random_seed)
    halves = []
    for _ in range(resamples // 2):
        order = rng.permutation(design.n)
        halves += [order[: design.n // 2], order[design.n // 2 : 2 * (design.n // 2)]]
    chosen = Parallel()(
        delayed(_selected)(design.X, loss, half, penalty, rates, intercept, tol) for half in halves
    )
    return rates, np.mean(chosen, axis=0)


def _selected(X, loss, half, penalty, rates, intercept, tol):
    rows, share = _rows(X, half), len(half) / X.shape[0]
    path = sparse_path(
        rows, None, family=loss.take(half), penalty=penalty, rates=share * rates,
        intercept=intercept, tol=tol,
    )  # fmt: skip
    return np.array([s.coefficients != 0 for s in path])


def _rates(design, loss, penalty, rates):
    """Rates as given, or those of the default path."""
    if rates is None:
        whole = sparse_path(
            design, None, family=loss, penalty=penalty, intercept=design.intercept, tol=1e-2
        )
        rates = [s.rate for s in whole]
    return np.asarray(rates, dtype=float)


def _rows(X, index):
    return X[index] if isinstance(X, np.ndarray) else X.tocsr()[index]
