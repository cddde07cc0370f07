"""The Bayes factors that a table of this size can reach."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.evidence_limits import limits_of
from bayesstruct.graphs.evidence import STRONG, check_threshold
from bayesstruct.graphs.posteriors.refusals import naming_submodels, wrong_type

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["evidence_limits"]


def evidence_limits(idata: "xr.DataTree", *, threshold: float = STRONG) -> "pd.DataFrame":
    r"""Say which Bayes factors a pair of columns can have at all with this number of rows and this prior.

    The smallest is that of a pair whose dependence in the table, given all other columns, is exactly zero. If it is above 1/10, the pair
    cannot be excluded by any data of this size: "undecided" then says something about the number of rows, and nothing about the pair.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.gaussian_graphical` with ``prior="spike_slab"``, ``"g_wishart"`` or ``"laplace"`` (with a known rate) and rows that are not t
        distributed, or ``"pseudo_likelihood"`` without missing values; of :func:`bayesstruct.models.ising` and ``pairwise_mrf`` with normal slabs, one weight for each pair and
        at most 45 columns; or of :func:`bayesstruct.models.bayesian_network`, or ``linear_sem`` with normal noise, free variances and normal
        weights (its defaults), whose pairs are joined by an arc either way.
    threshold : float, above 1
        Bayes factor from which a pair is included; excluded at its reciprocal.

    Returns
    -------
    pandas.DataFrame
        One row for each pair, in the order of the table, with columns

        source, target
            Names of the columns.
        smallest
            Bayes factor at a dependence of exactly zero. NaN of required and forbidden edges.
        can_be_excluded
            Whether that is at most 1 / `threshold`.
        included_from
            Least absolute dependence in the table, as ``attrs["measure"]`` names it, whose Bayes factor is `threshold`. NaN where
            no dependence has it, and for networks of states or of columns of several kinds.

        ``attrs["rows"]`` is the number of rows of the table.

    Raises
    ------
    TypeError, ValueError
        If these are not known for `idata`, or `threshold` is not above 1.

    Notes
    -----
    All other columns count as they are in the posterior; the pair alone is changed. Given all others the two columns are residuals with
    n - 1 degrees of freedom, whose precisions are the posterior means of :math:`K_{ii}` and :math:`K_{jj}`. Under the spike and slab and the G-Wishart
    prior, elements of pairs without an edge are (nearly) known to be zero, which tells something about the pair: there :math:`K_{ii} K_{jj}` stands for n times the
    variance of an element at zero when the diagonal and the elements of the probable edges alone are unknown (up to 45 columns under the spike and slab: the others
    have the spike as their prior). It is smaller where neighbours of one column are not joined to the other.

    *Spike and slab*, standard deviations :math:`v_0 < v_1` of the element w. With the likelihood m(w), a Bessel
    function after the diagonal elements are integrated out, the Bayes factor is

    .. math:: \frac{\int m(w) N(w; 0, v_1^2) dw}{\int m(w) N(w; 0, v_0^2) dw} \cdot \frac{\pi / (1 - \pi)}{q / (1 - q)}

    with the nominal probability :math:`\pi` of the edge and the one q that positive definite matrices imply. m is about as wide
    as :math:`\sqrt{K_{ii} K_{jj} / n}`: the limit is near the ratio of that to :math:`v_1`, and is not
    below :math:`v_0 / v_1`, but for the second factor, whatever the number of rows.

    *G-Wishart* with b degrees of freedom and c common neighbours, that is the expected number in the posterior, as if they were all joined to each other: with
    :math:`f(b) = \Gamma(\tfrac{b + 1}{2}) / \Gamma(\tfrac b2)` and :math:`d_i = (b + c + n - 1) / K_{ii}` it
    is :math:`f(b + c + n - 1) / f(b + c) \; (d_i d_j)^{-1/2}`, which falls as one over the root of n. Exact for two columns.

    *Laplace prior*: the posterior odds, under the same m(w) and the Laplace density of w, that the partial correlation is beyond
    `negligible`, over the prior odds that positive definite matrices imply.

    *Graphs alone* (``prior="pseudo_likelihood"``): the root of the product of two such factors, b = 3, one for the regression of each end; c is the
    expected number of its neighbours, and :math:`d_i` and :math:`d_j` are the elements of :math:`I + (n - 1) R` given those neighbours that are
    probable, R the correlations.

    *Markov random fields*, a weight w with a Normal(0, v^2) slab: the Savage-Dickey ratio with the curvature I of the log likelihood (or
    log pseudo-likelihood) in w, biases and the weights of the probable edges being unknown, at the posterior means and where w is
    estimated as zero: :math:`(1 + v^2 I)^{-1/2}`. Where values are missing, I is multiplied by the share of rows in which both columns
    were observed.

    *Bayesian networks*: the score of a column with one parent over that without, of two columns that are independent
    in the table, and exact for these two. Under BGe, a Wishart distribution, it is as above with b the equivalent sample size plus 2
    and :math:`d_i = 1 + (n - 1) / t`, t the scale of the prior; under a BIC :math:`n^{-k / 2}` for k parameters; under BDeu and BDe that of
    expected counts. Under ``linear_sem`` it is that of a regression with its scale of the weights. Rows count in which both columns were observed and
    the child was not set from outside. With ``score="mixed"`` it is :math:`|I + S J|^{-1/2}` for prior covariance S and information J of the coefficients at zero, times what the prior
    of the noise says about the number of features: exact for two columns of normal numbers, otherwise of normal approximation.
    Other parents are left out: of states they make it smaller.

    If edge probabilities are drawn, Bayes factors contain what the other edges say about them, and so do these.

    See Also
    --------
    bayesstruct.edge_table : Bayes factors of the edges.

    Examples
    --------
    .. code-block:: python

        limits = bs.evidence_limits(idata)
        limits["smallest"].min()
    """
    import pandas as pd
    import xarray as xr

    if not isinstance(idata, xr.DataTree):
        raise wrong_type(idata)
    check_threshold(threshold)
    with naming_submodels(idata):
        limits = limits_of(idata)
    nodes = idata["constant_data"].to_dataset()["node"].values
    names = np.array([str(node) for node in nodes.tolist()], dtype=object)
    table = pd.DataFrame(
        {
            "source": names[limits.source],
            "target": names[limits.target],
            "smallest": limits.smallest,
            "can_be_excluded": limits.smallest <= 1.0 / threshold,
            "included_from": limits.strength(threshold),
        }
    )
    table.attrs = {"rows": limits.rows, "threshold": threshold, "measure": limits.measure}
    return table
