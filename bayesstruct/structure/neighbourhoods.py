"""Dependency networks: the table of their arcs, and the undirected graph read from them."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.structure._mixing import indicator_ess, indicator_rhat, typical_ess
from bayesstruct.structure._posterior import CONSTANTS, SAMPLE_DIMS
from bayesstruct.structure.probabilities import bayes_factors_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["arc_table", "symmetrize"]

RULES = ("and", "or", "average")
DIM = "ordered_pair"
#: Averages of conditional probabilities are rounded beyond this distance from 0 and 1.
RESOLUTION = 1e-12
#: Number of arcs beyond which the slow diagnostics are left out for those that are hardly visited.
MANY = 20_000
VISITED = 0.01
_BLOCK = 4096


@dataclass(frozen=True)
class ArcPosterior:
    """Draws of a directed dependency network, with what is needed to read them.

    Attributes
    ----------
    draws, constants : xarray.Dataset
        The groups `posterior` and `constant_data`.
    summaries : xarray.Dataset or None
        The group `arcs` of `sample_neighbourhoods`.
    source, target : ndarray of int, shape (n_arcs,)
        Predictor and response of each arc, as positions in `variables`.
    variables : list of str
    """

    draws: "xr.Dataset"
    constants: "xr.Dataset"
    summaries: "xr.Dataset | None"
    source: np.ndarray
    target: np.ndarray
    variables: list[str]

    @cached_property
    def arcs(self) -> np.ndarray:
        """Indicators, int8, shape (chain, draw, arc)."""
        values = self.draws["arc"].transpose(*SAMPLE_DIMS, DIM).values
        return values.astype("int8", copy=False)

    @cached_property
    def frequency(self) -> np.ndarray:
        """Share of the draws that have each arc."""
        return self.arcs.mean(axis=(0, 1))

    @property
    def n_draws(self) -> int:
        """Number of draws over all chains."""
        return self.arcs.shape[0] * self.arcs.shape[1]

    @property
    def negligible(self) -> float:
        """Absolute coefficient up to which there is no arc; 0 for a spike-and-slab prior."""
        return float(self.constants["negligible"]) if "negligible" in self.constants else 0.0

    @property
    def independent(self) -> bool:
        """Whether the regressions are independent given the table."""
        return bool(self.constants.get("arc_independent", 0))

    @property
    def prior(self) -> np.ndarray:
        """Prior probability of each arc."""
        return self.constants["arc_prior"].values.astype(float)

    @property
    def estimator(self) -> str:
        """Name of the way in which probabilities are estimated."""
        known = self.summaries is not None and "probability" in self.summaries
        return "rao-blackwell" if known else "frequency"

    @cached_property
    def probability(self) -> np.ndarray:
        """Posterior probability of each arc."""
        if self.estimator == "frequency":
            return self.frequency
        return np.clip(self.summaries["probability"].mean("chain").values, 0.0, 1.0)

    @cached_property
    def position(self) -> np.ndarray:
        """Position of the arc from column j to column i at [i, j]; shape (p, p)."""
        p = len(self.variables)
        out = np.zeros((p, p), int)
        out[self.target, self.source] = np.arange(len(self.source))
        return out

    def weights(self, arcs) -> np.ndarray:
        """Coefficients of some arcs, (chain, draw, len(arcs)); 0 for those that were not kept."""
        weight = self.draws["weight"]
        if DIM in weight.dims:
            return weight.transpose(*SAMPLE_DIMS, DIM).values[..., arcs]
        kept = self.constants["visited_index"].values.astype(int)
        at = np.full(len(self.source), -1)
        at[kept] = np.arange(len(kept))
        values = weight.transpose(*SAMPLE_DIMS, "visited_pair").values
        out = np.zeros((*values.shape[:2], len(arcs)), values.dtype)
        known = at[arcs] >= 0
        out[..., known] = values[..., at[arcs][known]]
        return out

    @cached_property
    def has_weights(self) -> np.ndarray:
        """For which arcs the draws of the coefficient were kept."""
        if DIM in self.draws["weight"].dims:
            return np.ones(len(self.source), bool)
        out = np.zeros(len(self.source), bool)
        out[self.constants["visited_index"].values.astype(int)] = True
        return out


def read_arcs(idata) -> ArcPosterior:
    """Check a result once and give access to its arcs.

    Raises
    ------
    TypeError
        When `idata` is not a DataTree.
    ValueError
        When it is not that of a neighbourhood model.
    """
    import xarray as xr

    if not isinstance(idata, xr.DataTree):
        raise TypeError(
            "Expected the xarray.DataTree of a neighbourhood model, "
            f"got {type(idata).__module__}.{type(idata).__name__}."
        )
    empty = xr.Dataset()
    draws, constants = (
        idata[name].to_dataset() if name in idata.children else empty
        for name in ("posterior", CONSTANTS)
    )
    needed = {"arc": draws, "weight": draws}
    needed |= dict.fromkeys(("arc_source", "arc_target", "arc_prior"), constants)
    if absent := [name for name, group in needed.items() if name not in group.data_vars]:
        if "dependency_network" in draws.attrs:
            raise ValueError(
                "This result has edges and no arcs any more: it comes from bs.symmetrize. Read it with "
                "bs.edge_table, or give the result that was symmetrised."
            )
        found = ", ".join(map(str, draws.data_vars)) or "nothing"
        raise ValueError(
            f"This result has no {' and no '.join(f'`{name}`' for name in absent)}; its posterior "
            f"holds {found}. Was it sampled from bs.models.gaussian_neighbourhoods or "
            "bs.models.ising_neighbourhoods?"
        )
    return ArcPosterior(
        draws=draws,
        constants=constants,
        summaries=idata["arcs"].to_dataset() if "arcs" in idata.children else None,
        source=constants["arc_source"].values.astype(int),
        target=constants["arc_target"].values.astype(int),
        variables=[str(name) for name in draws["node"].values],
    )


def arc_table(idata, *, hdi_prob: float = 0.94) -> "pd.DataFrame":
    """Summarise every arc of a neighbourhood model: does one column predict another, how much?

    A neighbourhood model is a dependency network [1]_: one regression for each column, fitted by
    itself. The probability of an arc is that of one regression; it is not the posterior
    probability of an edge in a joint model of the table.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.sample_neighbourhoods` or ``pm.sample()``.
    hdi_prob : float, between 0 and 1
        Probability of the highest-density interval of the coefficient.

    Returns
    -------
    pandas.DataFrame
        One row an arc, most probable first (ties: larger absolute mean), with columns

        source, target
            Predictor and response.
        probability
            Posterior probability that the coefficient is not zero (not negligible).
        bayes_factor
            Posterior odds over prior odds; NaN for arcs that were required or forbidden.
        mean, hdi_low, hdi_high
            Of the coefficient over all draws, those without the arc included.
        ess, r_hat
            Of the 0/1 indicator. In networks of more than 20,000 arcs NaN for those that are in
            less than 1 % of the draws.

        ``attrs`` has the ``estimator`` of the probabilities ("rao-blackwell" or "frequency"), the
        rows whose Bayes factor is a Monte Carlo bound (``bayes_factor_bounds``) and ``notes``.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of a neighbourhood model, or `hdi_prob` not between 0 and 1.

    References
    ----------
    .. [1] Heckerman, Chickering, Meek, Rounthwaite and Kadie (2000). Dependency networks for
       inference, collaborative filtering, and data visualization. JMLR 1, 49-75.

    Examples
    --------
    >>> arc_table(idata).query("probability > 0.5")  # doctest: +SKIP
    """
    import pandas as pd

    if not 0 < hdi_prob < 1:
        raise ValueError(f"`hdi_prob` must be between 0 and 1, got {hdi_prob}.")
    posterior = read_arcs(idata)
    ess, r_hat = _mixing(posterior)
    resolution = _resolution(posterior, ess)
    present = posterior.probability
    factor, bound = bayes_factors_of(present, 1 - present, posterior.prior, resolution)
    mean, low, high = _weight_summary(posterior, hdi_prob)
    names = np.array(posterior.variables, dtype=object)
    table = pd.DataFrame(
        {
            "source": names[posterior.source],
            "target": names[posterior.target],
            "probability": present,
            "bayes_factor": factor,
            "mean": mean,
            "hdi_low": low,
            "hdi_high": high,
            "ess": ess,
            "r_hat": r_hat,
        }
    )
    order = np.lexsort((-np.abs(mean), -present))
    table = table.iloc[order].reset_index(drop=True)
    bounds = np.flatnonzero(bound[order]).tolist()
    table.attrs = {
        "estimator": posterior.estimator,
        "hdi_prob": hdi_prob,
        "bayes_factor_bounds": bounds,
        "notes": _notes(posterior, bounds),
    }
    return table


def _notes(posterior, bounds):
    notes = [
        "This is a dependency network: each row is a statement of one regression, not of a joint "
        "posterior over graphs."
    ]
    if bounds:
        notes.append(
            f"{len(bounds)} Bayes factors are bounds: the draws cannot tell these probabilities "
            "from 0 or 1 (rows in attrs['bayes_factor_bounds'])."
        )
    if fixed := int(np.isin(posterior.prior, (0, 1)).sum()):
        notes.append(
            f"{fixed} Bayes factors are NaN: these arcs were required or forbidden, so there were no "
            "odds that the data could change."
        )
    return notes


def _mixing(posterior):
    """ESS and R-hat of the indicators, in blocks: floats of all would not fit."""
    n_arcs = len(posterior.source)
    looked = np.arange(n_arcs)
    if n_arcs > MANY:
        share = np.minimum(posterior.frequency, 1 - posterior.frequency)
        looked = np.flatnonzero(share >= VISITED)
    ess, r_hat = np.full(n_arcs, np.nan), np.full(n_arcs, np.nan)
    for at in _blocks(looked):
        indicators = posterior.arcs[..., at].astype(bool)
        ess[at], r_hat[at] = indicator_ess(indicators), indicator_rhat(indicators)
    return ess, r_hat


def _blocks(positions):
    return [positions[k : k + _BLOCK] for k in range(0, len(positions), _BLOCK)]


def _resolution(posterior, ess):
    """Smallest probability that can be told from zero."""
    if posterior.estimator == "rao-blackwell":
        return RESOLUTION
    return 1 / (typical_ess(ess, posterior.n_draws) + 1)


def _weight_summary(posterior, hdi_prob):
    import arviz as az

    n_arcs = len(posterior.source)
    mean, low, high = np.zeros(n_arcs), np.zeros(n_arcs), np.zeros(n_arcs)
    moving = np.ones(n_arcs, bool)
    if posterior.negligible == 0:
        # More zeros than the interval leaves out: it is [0, 0].
        moving = posterior.frequency * posterior.n_draws > (1 - hdi_prob) * posterior.n_draws - 1
    low[~posterior.has_weights & moving] = high[~posterior.has_weights & moving] = np.nan
    for at in _blocks(np.flatnonzero(posterior.has_weights)):
        weights = posterior.weights(at).reshape(posterior.n_draws, -1).astype(float)
        mean[at] = weights.mean(axis=0)
        wide = moving[at]
        if wide.any():
            interval = az.hdi(weights[:, wide].T, prob=hdi_prob)
            low[at[wide]], high[at[wide]] = interval[:, 0], interval[:, 1]
    if posterior.summaries is not None:
        mean = posterior.summaries["mean"].values
    return mean, low, high


def symmetrize(idata, rule: str = "and") -> "xr.DataTree":
    r"""Read an undirected graph from the arcs of a neighbourhood model.

    A neighbourhood model is a dependency network, p regressions fitted independently of each
    other, and **not a joint posterior over undirected graphs**: what comes out is a summary of the
    regressions by a rule [1]_ [2]_, and its probabilities are those that the rule holds for the arcs.
    They are no probabilities of edges in a joint model such as
    :func:`bayesstruct.models.gaussian_graphical`.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.sample_neighbourhoods` or ``pm.sample()``.
    rule : {"and", "or", "average"}
        ``"and"`` joins two columns when each predicts the other, ``"or"`` when one of them does.
        ``"average"`` has the mean of the two probabilities, as if one of the two regressions
        were asked at random.

    Returns
    -------
    xarray.DataTree
        With ``edge`` and ``weight`` over ``pair``, so that :func:`~bayesstruct.edge_table`,
        :func:`~bayesstruct.median_graph`, :func:`~bayesstruct.compare`,
        :func:`~bayesstruct.plot_graph` and all others work as for an undirected model. ``weight`` is
        the mean of what the two regressions say: of the couplings for binary columns, of the
        partial correlations :math:`w_{ij} \sqrt{v_j / v_i}` and :math:`w_{ji} \sqrt{v_i / v_j}`,
        with the noise variances v, for Gaussian ones. Under a spike-and-slab prior it is 0 in
        draws without the edge (rules "and" and "or").

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of a neighbourhood model, or the rule is unknown.

    Notes
    -----
    Given the table the regressions are independent, so that with :math:`p_{ij} = P(i \to j)`

    .. math::

        P(\mathrm{AND}) = p_{ij} p_{ji}, \qquad
        P(\mathrm{OR}) = 1 - (1 - p_{ij}) (1 - p_{ji})

    exactly. These products are what ``edge_table`` and its likes report (``attrs["estimator"]`` is
    "product"), with the Rao-Blackwell estimates of :math:`p_{ij}` where the result has them: the
    error is smaller than that of the frequency of ``edge``. The two agree up to Monte Carlo error.
    A draw of ``edge`` combines draws of the same number, which for independent regressions is as
    good as any other combination. Regressions with the horseshoe prior share its global scale;
    there the frequency of the joint draws is used. In the draws of ``"average"`` a coin, the same
    ones for each call, says which of the two regressions is asked.

    The two regressions of a pair look at the same rows, and these rules count them as if they were
    two samples. ``weight``, the mean of two draws that are independent given the table, therefore
    spreads less than either: where both say the same, its intervals are narrower than those of a
    joint model by up to :math:`1 / \sqrt 2`. Bayes factors of ``"and"`` and ``"or"`` compare the
    rule's probabilities with what the same rule makes of the prior; for ``"and"`` they can exceed
    those of both arcs.

    References
    ----------
    .. [1] Meinshausen and Bühlmann (2006). High-dimensional graphs and variable selection with the
       lasso. Annals of Statistics 34, 1436-1462, section 3.
    .. [2] Ravikumar, Wainwright and Lafferty (2010). High-dimensional Ising model selection using
       l1-regularized logistic regression. Annals of Statistics 38, 1287-1319.

    Examples
    --------
    >>> edge_table(symmetrize(idata, "or"))  # doctest: +SKIP
    """
    import xarray as xr

    from bayesstruct.data.names import nearest

    if rule not in RULES:
        raise ValueError(nearest("rule", rule, RULES))
    posterior = read_arcs(idata)
    i, j = np.triu_indices(len(posterior.variables), 1)
    there, back = posterior.position[j, i], posterior.position[i, j]
    edge = _edges(posterior, there, back, rule)
    labels = [f"{a} -- {b}" for k, a in enumerate(posterior.variables)
              for b in posterior.variables[k + 1 :]]  # fmt: skip
    coords = {
        "chain": posterior.draws["chain"].values,
        "draw": posterior.draws["draw"].values,
        "node": posterior.variables,
        "pair": labels,
    }
    sample, constants = SAMPLE_DIMS, _constants(posterior, there, back, i, j, rule)
    kept = np.flatnonzero(posterior.has_weights[there] | posterior.has_weights[back])
    weight = _weights(posterior, there[kept], back[kept], edge[..., kept], rule)
    over = "pair"
    if len(kept) < len(i):
        coords["visited_pair"] = np.array(labels)[kept]
        constants["visited_index"] = ("visited_pair", kept)
        over = "visited_pair"
    draws = {"edge": ((*sample, "pair"), edge), "weight": ((*sample, over), weight)}
    here = {name: coords[name] for name in ("node", "pair", "visited_pair") if name in coords}
    groups = {
        "posterior": xr.Dataset(draws, coords, posterior.draws.attrs | _ATTRS | {"rule": rule}),
        "constant_data": xr.Dataset(constants, here),
    }
    for name in ("sample_stats", "observed_data"):
        if name in idata.children:
            groups[name] = idata[name].to_dataset()
    return xr.DataTree.from_dict(groups)


_ATTRS = {"dependency_network": "p independent regressions, not a joint posterior over graphs"}


def _edges(posterior, there, back, rule):
    """Draws of the undirected indicators, chain by chain."""
    arcs = posterior.arcs
    out = np.empty((*arcs.shape[:2], len(there)), "int8")
    rng = np.random.default_rng(0)
    for chain, draws in enumerate(arcs):
        for t, draw in enumerate(draws):
            one, other = draw[there], draw[back]
            if rule == "and":
                out[chain, t] = one & other
            elif rule == "or":
                out[chain, t] = one | other
            else:
                out[chain, t] = np.where(rng.random(len(one)) < 0.5, one, other)
    return out


def _weights(posterior, there, back, edge, rule):
    """Mean of what the two regressions say about the pair."""
    weight = np.empty(edge.shape, posterior.draws["weight"].dtype)
    i, j = posterior.source[there], posterior.target[there]
    root = None
    if "noise_variance" in posterior.draws:
        root = np.sqrt(posterior.draws["noise_variance"].transpose(*SAMPLE_DIMS, "node").values)
    for at in _blocks(np.arange(len(there))):
        one, other = posterior.weights(there[at]), posterior.weights(back[at])
        if root is not None:
            # `one` is the coefficient of column i in the regression of column j
            ratio = root[..., i[at]] / root[..., j[at]]
            one, other = one * ratio, other / ratio
        weight[..., at] = 0.5 * (one + other)
    if posterior.negligible == 0 and rule != "average":
        weight[edge == 0] = 0.0
    return weight


def _combine(one, other, rule):
    """Probabilities of presence and of absence, each accurate near zero."""
    if rule == "and":
        return one * other, (1 - one) + (1 - other) - (1 - one) * (1 - other)
    if rule == "or":
        return one + other - one * other, (1 - one) * (1 - other)
    return 0.5 * (one + other), 0.5 * ((1 - one) + (1 - other))


def _constants(posterior, there, back, i, j, rule):
    """Constants that the posterior is read with."""
    prior = posterior.prior
    one, other = prior[there], prior[back]
    if "arc_prior_both" in posterior.constants:
        both = float(posterior.constants["arc_prior_both"])
        edge_prior = {"and": both, "or": one + other - both, "average": 0.5 * (one + other)}[rule]
        edge_prior = np.broadcast_to(edge_prior, len(i)).copy()
    else:
        edge_prior, _ = _combine(one, other, rule)
    out = {
        "edge_source": ("pair", i),
        "edge_target": ("pair", j),
        "edge_prior": ("pair", edge_prior),
    }
    if posterior.independent:
        probability = posterior.probability
        present, absent = _combine(probability[there], probability[back], rule)
        out |= {"edge_present": ("pair", present), "edge_absent": ("pair", absent)}
        if posterior.estimator == "rao-blackwell":
            out["edge_resolution"] = RESOLUTION
    for name in ("location", "scale"):
        if name in posterior.constants:
            out[name] = ("node", posterior.constants[name].values)
    return out
