r"""Indian buffet processes: their distribution over binary matrices, and draws from it.

N customers take dishes: row i of a binary matrix holds those of customer i. With mass
:math:`\alpha`, concentration c and discount :math:`\sigma` customer i takes a dish that m others took
before with probability :math:`(m - \sigma) / (i - 1 + c)`, then

.. math::

    \mathrm{Poisson}(\alpha r_i), \qquad
    r_i = \frac{\Gamma(1 + c) \, \Gamma(i - 1 + c + \sigma)}{\Gamma(i + c) \, \Gamma(c + \sigma)},

new ones. Matrices that differ only by the order of their columns are equivalent: a *left-ordered* matrix represents
them, with its columns sorted as binary numbers, the first row being the leading digit, the largest first. With
:math:`K_h` columns of each history h and :math:`m_k` the sum of column k,

.. math::

    p([Z]) = \frac{\alpha^K}{\prod_h K_h!} \exp\Bigl(-\alpha \sum_i r_i\Bigr) \prod_k g(m_k), \qquad
    g(m) = \frac{\Gamma(m - \sigma) \, \Gamma(N - m + c + \sigma) \, \Gamma(1 + c)}
                {\Gamma(1 - \sigma) \, \Gamma(c + \sigma) \, \Gamma(N + c)},

hence the :math:`K_h` are independent :math:`\mathrm{Poisson}(\alpha \, g(m_h))`. With c = 1 and
:math:`\sigma = 0` this is the distribution of Griffiths and Ghahramani (2011, equation 14).

References
----------
Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and review. *JMLR*
12, 1185-1224. -- Teh, Y. W. and Gorur, D. (2009). Indian buffet processes with power-law behavior. *NIPS*
22, 1838-1846.
"""

import itertools

import numpy as np

from scipy.special import gammaln

from bayesstruct.data.arguments import number

__all__ = [
    "check_buffet",
    "column_weights",
    "draw_by_dishes",
    "draw_by_histories",
    "draw_by_poisson",
    "left_order",
    "left_ordered",
    "log_buffet",
    "new_dish_rates",
]


def check_buffet(alpha: float, concentration: float = 1.0, discount: float = 0.0) -> None:
    """Refuse parameters for which there is no such process.

    Raises
    ------
    TypeError, ValueError
        Names the parameter and its range.
    """
    alpha = number("alpha", alpha, above=0)
    discount = number("discount", discount, least=0)
    if discount >= 1.0:
        raise ValueError(f"`discount` must be below 1, it is {discount:g}")
    number("concentration", concentration, above=0.0 - discount)


def new_dish_rates(n: int, concentration: float = 1.0, discount: float = 0.0) -> np.ndarray:
    """Return r_i, the number of dishes that customer i is the first to take per unit of alpha.

    Parameters
    ----------
    n : int
        Number of customers.
    concentration, discount : float

    Returns
    -------
    (n,) ndarray
        Their sum, times alpha, is the mean of the number of columns, which is Poisson.
    """
    before, c = np.arange(n), concentration
    return np.exp(
        gammaln(1.0 + c)
        - gammaln(c + discount)
        + gammaln(before + c + discount)
        - gammaln(before + 1.0 + c)
    )


def column_weights(
    sums: np.ndarray, n: int, concentration: float = 1.0, discount: float = 0.0
) -> np.ndarray:
    """Return log g(m) of columns with these sums, which are at least 1."""
    m, c = np.asarray(sums, float), concentration
    return (
        gammaln(m - discount)
        - gammaln(1.0 - discount)
        + gammaln(n - m + c + discount)
        - gammaln(c + discount)
        + gammaln(1.0 + c)
        - gammaln(n + c)
    )


def left_ordered(matrix: np.ndarray) -> np.ndarray:
    """Sort the columns of a binary matrix as binary numbers, the largest first.

    Parameters
    ----------
    matrix : (n, k) array_like
        Of 0 and 1.

    Returns
    -------
    (n, k) ndarray
        Empty columns come last.
    """
    matrix = np.asarray(matrix)
    return matrix[:, left_order(matrix)]


def left_order(matrix: np.ndarray) -> np.ndarray:
    """Order of the columns in `left_ordered`; equal columns keep theirs."""
    digits = np.packbits(np.asarray(matrix).T != 0, axis=1)
    keys = [column.tobytes() for column in digits]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__, reverse=True), np.int64)


def log_buffet(
    matrix: np.ndarray, alpha: float, concentration: float = 1.0, discount: float = 0.0
) -> float:
    """Log probability of a binary matrix up to the order of its columns.

    Parameters
    ----------
    matrix : (n, k) array_like
        Empty columns do not count.
    alpha, concentration, discount : float
    """
    matrix = np.asarray(matrix) != 0
    n, matrix = len(matrix), matrix[:, matrix.any(axis=0)]
    _, equal = np.unique(matrix, axis=1, return_counts=True)
    return float(
        matrix.shape[1] * np.log(alpha)
        - alpha * new_dish_rates(n, concentration, discount).sum()
        - gammaln(equal + 1.0).sum()
        + column_weights(matrix.sum(axis=0), n, concentration, discount).sum()
    )


# --- draws -----------------------------------------------------------------------------------


def draw_by_dishes(
    rng: np.random.Generator,
    n: int,
    alpha: float,
    concentration: float = 1.0,
    discount: float = 0.0,
) -> np.ndarray:
    """Draw a left-ordered matrix, customer by customer.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
        Number of rows.
    alpha, concentration, discount : float

    Returns
    -------
    (n, k) int8 ndarray
        Without empty columns.
    """
    fresh = rng.poisson(alpha * new_dish_rates(n, concentration, discount))
    matrix = np.zeros((n, fresh.sum()), np.int8)
    taken, dishes = np.zeros(fresh.sum()), 0
    for i in range(n):
        chance = (taken[:dishes] - discount) / (i + concentration)
        matrix[i, :dishes] = rng.random(dishes) < chance
        matrix[i, dishes : dishes + fresh[i]] = 1
        dishes += fresh[i]
        taken += matrix[i]
    return left_ordered(matrix)


def draw_by_histories(
    rng: np.random.Generator,
    n: int,
    alpha: float,
    concentration: float = 1.0,
    discount: float = 0.0,
) -> np.ndarray:
    """Draw a left-ordered matrix: each customer takes the first of the dishes of each history.

    See `draw_by_dishes`, of which this is the exchangeable form.
    """
    fresh = rng.poisson(alpha * new_dish_rates(n, concentration, discount))
    # Numbers of dishes with the same history, and the history.
    groups: list[tuple[int, tuple[int, ...]]] = []
    for i in range(n):
        split = []
        for dishes, history in groups:
            chance = (sum(history) - discount) / (i + concentration)
            took = rng.binomial(dishes, chance)
            split += [(took, (*history, 1)), (dishes - took, (*history, 0))]
        split.append((fresh[i], (0,) * i + (1,)))
        groups = [(dishes, history) for dishes, history in split if dishes]
    columns = [history for dishes, history in groups for _ in range(dishes)]
    return np.array(columns, np.int8).reshape(-1, n).T


def draw_by_poisson(
    rng: np.random.Generator,
    n: int,
    alpha: float,
    concentration: float = 1.0,
    discount: float = 0.0,
) -> np.ndarray:
    """Draw a left-ordered matrix from the independent numbers of columns of each history.

    See `draw_by_dishes`. There are 2**n - 1 histories: for a few rows only.
    """
    histories = np.array(list(itertools.product((1, 0), repeat=n))[:-1], np.int8)
    weights = column_weights(histories.sum(axis=1), n, concentration, discount)
    numbers = rng.poisson(alpha * np.exp(weights))
    return np.repeat(histories, numbers, axis=0).T
