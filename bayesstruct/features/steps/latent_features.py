"""Steps of the binary features of a linear Gaussian model, and of their loadings."""

from typing import NamedTuple

import numpy as np

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pytensor.graph.basic import Constant

from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import parameters
from bayesstruct.features.recognition import FeatureTable, features_of, sampler_of
from bayesstruct.features.steps.base import FeatureStep

__all__ = ["LatentFeatureGibbs", "LatentFeatureSlice"]

_MOST_DISCOUNT = 0.5  # of slice draws, see bayesstruct.features.kernels.stick_features
_WAITS = 10  # calls after the search in which standard deviations find their place


class _Law(NamedTuple):
    """Numbers that the law of features and table has."""

    alpha: float
    concentration: float
    discount: float
    scale: float
    noise: float

    def heated(self, heat):
        """Return the law whose likelihood has the power 1 / heat."""
        return self._replace(noise=self.noise * heat**0.5)

    def new_rate(self, n):
        """Mean number of features that only one of n rows has, a priori."""
        from bayesstruct.features.kernels.indian_buffet import new_dish_rates

        return self.alpha * new_dish_rates(n, self.concentration, self.discount)[-1]


@dataclass_state
class LatentFeatureGibbsState(StepMethodState):
    """State of a step: calls so far and of the warm-up, and for how many calls features still stay."""

    calls: int
    warm_up: int
    waits: int


@register_step
class LatentFeatureGibbs(FeatureStep):
    """Gibbs sampler of latent features, their loadings summed out, and of the loadings given them.

    Assigned by ``pm.sample`` to an :class:`bayesstruct.IndianBuffet` and its
    :class:`bayesstruct.distributions.FeatureLoadings` where the table is normal around their product, and to the missing cells
    of the table. One call tries to exchange a few features for others, visits all rows
    (:func:`bayesstruct.features.kernels.latent_features.scan_rows`), then draws the loadings, then the missing cells given
    both. The standard deviations and the parameters of the process are left to other steps.

    A scan costs as much for each row whatever their number: the law of the loadings given the other rows is
    kept and changed as a row leaves and comes back. So this is the accelerated sampler of Doshi-Velez and
    Ghahramani (2009), with windows of one row, as well as the collapsed one of Griffiths and Ghahramani
    (2011), put right: the two differ by how a row's likelihood is computed, not by what is drawn.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables of one set of features, its loadings, and the missing cells.
    exchanges : int, default 1
        Moves that are tried in each call, which take out one to three features and put others in their place
        (:func:`bayesstruct.features.kernels.feature_splits.exchange_columns`): each takes about as long as the scan, and
        finds bases that the scan does not reach.
    tempering : float, default 1
        Above 1, a chain begins without a search, and the likelihood has the power 1 / `tempering` in its first
        call. The power grows, at equal ratios, to 1 in the middle of the warm-up, where it stays.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional

    Raises
    ------
    ValueError
        If the features are not those of a linear Gaussian model, an option is out of range, or, during a
        run, there are more of them than there is room for.

    Notes
    -----
    The first call of a chain that is at the initial point of the model puts it at the end of a search
    (:func:`bayesstruct.solvers.latent_features`); for some calls of the warm-up the features then stay, until the
    standard deviations fit them. Without a warm-up (``tune=0``) the first draw is the end of that search: leave it
    out.

    With many missing cells neighbouring draws depend on each other, since features move given the cells and
    cells given the features.

    Statistics of each draw: ``n_features``.

    References
    ----------
    Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and review. *JMLR*
    12, 1185-1224. -- Doshi-Velez, F. and Ghahramani, Z. (2009). Accelerated sampling for the Indian buffet
    process. *ICML* 26, section 3. -- Meeds, E., Ghahramani, Z., Neal, R. M. and Roweis, S. T. (2007). Modeling
    dyadic data with binary latent factors. *NIPS* 19 (split and merge moves).
    """

    name = "latent_feature_gibbs"
    _state_class = LatentFeatureGibbsState
    supported = (
        "Supported is one observed Normal whose mean is `feature @ loading`, plus what depends on neither, and "
        "whose standard deviation is one number, with an IndianBuffet and its FeatureLoadings on which "
        "nothing else depends; missing cells are those of a masked array; bs.models.latent_features makes these"
    )
    part_of = staticmethod(features_of)

    def __init__(self, vars, *, exchanges=1, tempering=1.0, **options):
        self.exchanges, self.tempering = _checked_options(exchanges, tempering)
        super().__init__(vars, **options)

    @staticmethod
    def tensors(part) -> list:
        """Parameters of the process, scale of the loadings, noise and what a row without features has."""
        _, scale = parameters(part.loading)
        return [*parameters(part.feature), scale, part.noise, part.baseline]

    def observe(self, part, x):
        """Keep the table and the places of its missing cells."""
        self.table = FeatureTable(part, x)
        self.calls, self.warm_up, self.waits = 0, 0, 0

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain."""
        super().setup_chain(rng, tune, draws)
        self.calls, self.warm_up, self.waits = 0, tune, 0

    def step(self, point):
        """Draw features, loadings and missing cells once."""
        from bayesstruct.features.kernels.latent_features import draw_loadings

        point = dict(point)
        *numbers, baseline = self.values(point)
        law = _Law(*(float(np.squeeze(v)) for v in numbers)).heated(self._heat())
        x = self.table.residuals(point, baseline)
        feature = np.array(point[self.names[0]], np.int8, order="C")
        if self.calls == 0 and self.tempering == 1.0 and _is_initial(feature):
            feature, x, law = self._search(self.table.without_gaps(x), law)
            self.waits = min(_WAITS, max(self.warm_up - 1, 0))
        elif self.waits > 0:
            self.waits -= 1
        else:
            feature = self._scan(feature, point[self.names[1]], x, law)
        self.calls += 1
        loading = draw_loadings(self.rng, feature, x, law.noise, law.scale)
        point[self.names[0]], point[self.names[1]] = feature, loading
        self.table.draw_cells(self.rng, point, baseline + feature @ loading, law.noise)
        return point, [{"n_features": int(feature.any(axis=0).sum())}]

    def _heat(self):
        """Inverse of the power that the likelihood has in this call."""
        done = 2.0 * self.calls / self.warm_up if self.warm_up else 1.0
        return self.tempering ** max(1.0 - done, 0.0)

    def _search(self, x, law):
        """Features where a chain begins, the table without gaps, and its standard deviations."""
        from bayesstruct.features.solvers.latent_features import latent_features

        found = latent_features(
            x, alpha=law.alpha, max_features=self.matrix[1], random_seed=self.rng
        )
        feature = np.zeros(self.matrix, np.int8)
        feature[:, : found.feature.shape[1]] = found.feature
        return feature, found.completed, law._replace(noise=found.noise, scale=found.scale)

    def _scan(self, feature, loading, x, law):
        """Draw the features of all rows."""
        from bayesstruct.features.kernels.feature_splits import exchange_columns
        from bayesstruct.features.kernels.indian_buffet import left_ordered
        from bayesstruct.features.kernels.latent_features import scan_rows

        n, process = len(x), (law.concentration, law.discount)
        for _ in range(self.exchanges):
            exchange_columns(self.rng, feature, x, law.noise, law.scale, law.alpha, *process)
        used, rows = int(feature.any(axis=0).sum()), self.rng.permutation(n)
        numbers = law.noise, law.scale, law.new_rate(n), *process
        used = scan_rows(self.rng, feature, used, x, rows, *numbers, -1)
        self._check_room(used >= 0)
        return left_ordered(feature)

    def _check_room(self, enough):
        if not enough:
            raise ValueError(
                f"there are more than {self.matrix[1]} features in {self.names[0]!r}: set `truncation` of "
                "the IndianBuffet, or `max_features` of the model, to more; if features keep coming, the "
                "noise is too small for the table: give `noise` a larger number or another prior"
            )

    @staticmethod
    def competence(var, has_grad):
        """Ideal for features, their loadings and the missing cells.

        Were it to decline, samplers that are wrong for them would take them; so the constructor takes
        all, and raises for those that it cannot draw.
        """
        ours = sampler_of(var) in ("gibbs", "accelerated")
        return Competence.IDEAL if ours else Competence.INCOMPATIBLE


@register_step(before=LatentFeatureGibbs)
class LatentFeatureSlice(LatentFeatureGibbs):
    """Slice sampler of latent features given their loadings, and of the loadings given the features.

    Assigned by ``pm.sample`` in place of :class:`LatentFeatureGibbs` where the
    :class:`bayesstruct.IndianBuffet` has ``sampler="slice"``. One call draws all entries with the probabilities
    of the features made explicit (:func:`bayesstruct.features.kernels.stick_features.slice_features`), then the loadings,
    then the missing cells; there are no exchanges. Everything else is as there, the other parameters, errors and
    statistics included.

    Raises
    ------
    ValueError
        As there, and if the discount of the process is one half or more, or, during a run, a slice leaves too many
        features to be looked at (rare for a discount below .45): ``sampler="gibbs"`` has no such limit.

    Notes
    -----
    A new feature comes with loadings drawn from their prior, which rarely fit if there are many variables:
    the number of features then moves slowly, and the Gibbs sampler is to be preferred.

    References
    ----------
    Teh, Y. W., Gorur, D. and Ghahramani, Z. (2007). Stick-breaking construction for the Indian buffet
    process. *AISTATS* 11, section 5.
    """

    name = "latent_feature_slice"

    @staticmethod
    def part_of(model, feature):
        """Collect loadings and table around features."""
        *_, discount = parameters(feature)
        if isinstance(discount, Constant):
            _check_discount(feature.name, float(discount.data))
        return features_of(model, feature)

    def __init__(
        self,
        vars,
        *,
        tempering=1.0,
        model=None,
        initial_point=None,
        compile_kwargs=None,
        rng=None,
        blocked=True,
    ):
        super().__init__(
            vars,
            exchanges=0,
            tempering=tempering,
            model=model,
            compile_kwargs=compile_kwargs,
            rng=rng,
        )

    def _scan(self, feature, loading, x, law):
        """Draw the features of all rows."""
        from bayesstruct.features.kernels.indian_buffet import left_ordered
        from bayesstruct.features.kernels.stick_features import MOST_UNSEEN, slice_features

        loading = np.ascontiguousarray(loading, float)
        process = law.alpha, law.concentration, law.discount
        _check_discount(self.names[0], law.discount)
        used = slice_features(self.rng, feature, loading, x, law.noise, law.scale, *process)
        if used == -2:
            raise ValueError(
                f"a slice leaves more than {MOST_UNSEEN:,} features of {self.names[0]!r} to be looked at, as the "
                f'discount is {law.discount:g}: give the IndianBuffet, or the model, sampler="gibbs"'
            )
        self._check_room(used >= 0)
        return left_ordered(feature)

    @staticmethod
    def competence(var, has_grad):
        """Ideal for features that ask for it, their loadings and the missing cells."""
        ours = sampler_of(var) == "slice"
        return Competence.IDEAL if ours else Competence.INCOMPATIBLE


def _check_discount(name, discount):
    if discount >= _MOST_DISCOUNT:
        raise ValueError(
            f"the discount of {name!r} is {discount:g}, and slice draws take one below {_MOST_DISCOUNT:g}, as the "
            "number of features above a slice has no mean otherwise: give the IndianBuffet, or the model, "
            'sampler="gibbs"'
        )


def _checked_options(exchanges, tempering):
    if isinstance(exchanges, bool) or not isinstance(exchanges, int) or exchanges < 0:
        raise ValueError(f"`exchanges` must be a whole number of moves, not {exchanges!r}")
    if isinstance(tempering, str | bool) or not 1.0 <= tempering < np.inf:
        raise ValueError(f"`tempering` must be a number of at least 1, not {tempering!r}")
    return exchanges, float(tempering)


def _is_initial(feature) -> bool:
    """Whether there is one feature, that all rows have: the initial point of an IndianBuffet."""
    return bool(feature[:, 0].all() and not feature[:, 1:].any())
