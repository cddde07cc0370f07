"""Independent components, any number of them, each of which only some rows have.

feature  ~ IndianBuffet(alpha)                  which components are active in each row
score    ~ Laplace(0, 1) where they are         how much
loading  ~ Normal(0, loading_scale)             the mixing matrix
x        ~ Normal(score @ loading, noise)
"""

from typing import TYPE_CHECKING, Any

import pymc as pm

from bayesstruct.features.model_parts.factors import factor_model

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["infinite_ica"]


def infinite_ica(
    data: "TableLike",
    *,
    alpha: float | None = None,
    noise: float | None = None,
    loading_scale: float | None = None,
    concentration: float = 1.0,
    discount: float = 0.0,
    max_features: int | None = None,
    missing_codes: Any = None,
) -> pm.Model:
    r"""Learn independent components that are active in some rows, and how many there are.

    .. math::

        x_{ij} \sim N\Bigl(\sum_k z_{ik} v_{ik} a_{kj}, \sigma_j^2\Bigr), \qquad
        v_{ik} \sim \mathrm{Laplace}(0, 1), \qquad a_{kj} \sim N(0, \tau^2), \qquad
        Z \sim \mathrm{IBP}(\alpha)

    Parameters
    ----------
    data : DataFrame or array_like
        (n, d) table of numbers, each column in units of its own: columns are standardised to mean 0 and
        standard deviation 1 (divisor n - 1). Missing values (NaN) are summed out.
    alpha : float, optional
        Mean number of components that are active in a row; by default it has a Gamma(1, 1) prior.
    noise : float, optional
        :math:`\sigma`, residual standard deviation of a standardised column given the components; by
        default half-normal with scale 1, one for each column.
    loading_scale : float, optional
        :math:`\tau`, by default half-normal with scale 1.
    concentration, discount : float
        Of the process, see :class:`bayesstruct.IndianBuffet`.
    max_features : int, optional
        Maximum number of components. The prior is not truncated: a chain that needs more stops with an error.
        By default a draw from the prior has more with probability 1e-8 (at least 20).
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.

    Returns
    -------
    pymc.Model
        With the variables of :func:`bayesstruct.models.sparse_factor_analysis`, from which it differs in the
        distribution of the scores: with normal scores rotations of the components differ by their zeros only.

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    TypeError, ValueError
        If an option is out of range.

    References
    ----------
    Knowles, D. and Ghahramani, Z. (2007). Infinite sparse factor analysis and infinite independent components
    analysis. *ICA* 2007, 381-388.

    Examples
    --------
    .. code-block:: python

        with bs.models.infinite_ica(recordings):
            idata = pm.sample()
        bs.loading_table(idata)
    """
    return factor_model(
        data,
        "laplace",
        alpha=alpha,
        noise=noise,
        loading_scale=loading_scale,
        concentration=concentration,
        discount=discount,
        max_features=max_features,
        missing_codes=missing_codes,
    )
