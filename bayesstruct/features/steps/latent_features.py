"""Steps of the binary features of a linear Gaussian model, and of their loadings."""

from typing import NamedTuple

import numpy as np

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pytensor.graph.basic import Constant

from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import parameters
from bayesstruct.data.arguments import number, whole_number
from bayesstruct.features.recognition.linear import linear_features_of, linear_step_of
from bayesstruct.features.steps.base import FeatureStep, is_initial
from bayesstruct.features.steps.table import FeatureTable

__all__ = ["LatentFeatureGibbs", "LatentFeatureSlice"]

_MOST_DISCOUNT = 0.5  # of slice draws, see bayesstruct.features.kernels.stick_features
_WAITS = 10  # calls after the search in which features stay and the standard deviations adapt


class _Parameters(NamedTuple):
    """Parameters of the process, the loadings and the noise at a point."""

    alpha: float
    concentration: float
    discount: float
    scale: float
    noise: float

    def heated(self, heat):
        """Return the parameters with which the likelihood has the power 1 / heat."""
        return self._replace(noise=self.noise * heat**0.5)

    def new_rate(self, n):
        """Prior mean of the number of features that only one of n rows has."""
        from bayesstruct.features.kernels.indian_buffet import new_dish_rates

        return self.alpha * new_dish_rates(n, self.concentration, self.discount)[-1]


@dataclass_state
class LatentFeatureGibbsState(StepMethodState):
    """State of a step: number of calls, length of the warm-up, and for how many more calls features stay."""

    calls: int
    warm_up: int
    waits: int


@register_step
class LatentFeatureGibbs(FeatureStep):
    """Gibbs sampler of latent features, their loadings summed out, and of the loadings given them.

    Assigned by ``pm.sample`` to an :class:`bayesstruct.IndianBuffet` and its
    :class:`bayesstruct.distributions.FeatureLoadings` where the table is normal around their product, and to the
    missing values of the table. One call tries to exchange a few features for others, visits all rows
    (:func:`bayesstruct.features.kernels.latent_features.scan_rows`), then draws the loadings, then the missing
    values given both. The standard deviations and the parameters of the process are left to other steps.

    The cost of a scan for each row does not depend on the number of rows: the conditional distribution of the
    loadings given the other rows is kept and updated as a row leaves and comes back. This is the accelerated
    sampler of Doshi-Velez and Ghahramani (2009), with windows of one row, and also the collapsed one of Griffiths
    and Ghahramani (2011), corrected: the two compute the likelihood of a row differently and draw from the same
    distribution.

    Parameters
    ----------
    exchanges : int, default 1
        Moves that are tried in each call, which take out one to three features and put others in their place
        (:func:`bayesstruct.features.kernels.feature_splits.exchange_columns`): each takes about as long as the scan,
        and finds sets of features that the scan does not reach.
    tempering : float, default 1
        Above 1, a chain begins without a search, and the likelihood has the power 1 / `tempering` in its first
        call. The power grows, at equal ratios, to 1 in the middle of the warm-up, where it stays.

    Raises
    ------
    TypeError, ValueError
        If the features are not those of a linear Gaussian model, if an option is out of range, or if during a
        run there are more features than the maximum number.

    Notes
    -----
    The first call of a chain that is at the initial point of the model moves it to the result of a search
    (:func:`bayesstruct.solvers.latent_features`); for some calls of the warm-up the features then stay, until the
    standard deviations fit them. Without a warm-up (``tune=0``) the first draw is the result of that search: leave
    it out.

    With many missing values successive draws are correlated, since features are drawn given the missing values
    and missing values given the features.

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
        "whose standard deviation is one number, with an IndianBuffet and its FeatureLoadings on which nothing "
        "else depends; missing values are those of a masked array; bs.models.latent_features makes these"
    )
    advice = (
        "; if features keep coming, the noise is too small for the table: give `noise` a larger number or another "
        "prior"
    )
    recognise = staticmethod(linear_features_of)

    def prepare(self, model, drawn, *, exchanges=1, tempering=1.0):
        """Check the options, and recognise the features among `drawn` and what belongs to them."""
        self.exchanges = whole_number("exchanges", exchanges, 0)
        self.tempering = number("tempering", tempering, least=1)
        super().prepare(model, drawn)

    @staticmethod
    def tensors(part) -> list:
        """Parameters of the process, scale of the loadings, noise and baseline."""
        _, scale = parameters(part.loading)
        return [*parameters(part.feature), scale, part.noise, part.baseline]

    def observe(self, part, x):
        """Keep the table and the places of its missing values."""
        self.table = FeatureTable(part, x)
        self.calls, self.warm_up, self.waits = 0, 0, 0

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain, and the length of its warm-up."""
        super().setup_chain(rng, tune, draws)
        self.calls, self.warm_up, self.waits = 0, tune, 0

    def step(self, point):
        """Draw features, loadings and missing values once."""
        from bayesstruct.features.kernels.latent_features import draw_loadings

        point = dict(point)
        *numbers, baseline = self.values(point)
        given = _Parameters(*(float(np.squeeze(v)) for v in numbers)).heated(self._heat())
        x = self.table.residuals(point, baseline)
        feature = np.array(point[self.names[0]], np.int8, order="C")
        if self.calls == 0 and self.tempering == 1.0 and is_initial(feature):
            feature, x, given = self._search(self.table.with_gaps(x), given)
            self.waits = min(_WAITS, max(self.warm_up - 1, 0))
        elif self.waits > 0:
            self.waits -= 1
        else:
            feature = self._scan(feature, point[self.names[1]], x, given)
        self.calls += 1
        loading = draw_loadings(self.rng, feature, x, given.noise, given.scale)
        point[self.names[0]], point[self.names[1]] = feature, loading
        self.table.draw_missing(self.rng, point, baseline + feature @ loading, given.noise)
        return point, [{"n_features": int(feature.any(axis=0).sum())}]

    def _heat(self):
        """Inverse of the power that the likelihood has in this call."""
        done = 2.0 * self.calls / self.warm_up if self.warm_up else 1.0
        return self.tempering ** max(1.0 - done, 0.0)

    def _search(self, x, given):
        """Features where a chain begins, the completed table, and its standard deviations."""
        from bayesstruct.features.solvers.latent_features import latent_features

        found = latent_features(
            x, alpha=given.alpha, max_features=self.matrix[1], random_seed=self.rng
        )
        feature = np.zeros(self.matrix, np.int8)
        feature[:, : found.feature.shape[1]] = found.feature
        return feature, found.completed, given._replace(noise=found.noise, scale=found.scale)

    def _scan(self, feature, loading, x, given):
        """Draw the features of all rows."""
        from bayesstruct.features.kernels.feature_splits import exchange_columns
        from bayesstruct.features.kernels.indian_buffet import left_ordered
        from bayesstruct.features.kernels.latent_features import scan_rows

        n, process = len(x), (given.concentration, given.discount)
        scales = given.noise, given.scale
        for _ in range(self.exchanges):
            exchange_columns(self.rng, feature, x, *scales, given.alpha, *process)
        used, rows = int(feature.any(axis=0).sum()), self.rng.permutation(n)
        numbers = *scales, given.new_rate(n), *process
        used = scan_rows(self.rng, feature, used, x, rows, *numbers, -1)
        self._check_number(used >= 0)
        return left_ordered(feature)

    @staticmethod
    def competence(var, has_grad):
        """Ideal for features, their loadings and the missing values.

        If it declined, PyMC would assign samplers that are wrong for them; so the constructor accepts
        all, and raises for those that it cannot draw.
        """
        mine = linear_step_of(var) == "latent_feature_gibbs"
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE


@register_step(before=LatentFeatureGibbs)
class LatentFeatureSlice(LatentFeatureGibbs):
    """Slice sampler of latent features given their loadings, and of the loadings given the features.

    Assigned by ``pm.sample`` in place of :class:`LatentFeatureGibbs` where the
    :class:`bayesstruct.IndianBuffet` has ``sampler="slice"``. One call draws all entries with the probabilities
    of the features made explicit (:func:`bayesstruct.features.kernels.stick_features.slice_features`), then the
    loadings, then the missing values; there are no exchanges.

    Parameters
    ----------
    tempering : float, default 1
        As for :class:`LatentFeatureGibbs`.

    Raises
    ------
    TypeError, ValueError
        As for :class:`LatentFeatureGibbs`, and if the discount of the process is one half or more, or if during a run
        a slice leaves too many features to be looked at (rare for a discount below .45): ``sampler="gibbs"`` has
        no such limit.

    Notes
    -----
    A new feature comes with loadings drawn from their prior, which rarely fit if there are many variables:
    the number of features then moves slowly, and the Gibbs sampler is to be preferred. Searches, tempering and
    statistics are those of :class:`LatentFeatureGibbs`.

    References
    ----------
    Teh, Y. W., Gorur, D. and Ghahramani, Z. (2007). Stick-breaking construction for the Indian buffet
    process. *AISTATS* 11, section 5.
    """

    name = "latent_feature_slice"

    def prepare(self, model, drawn, *, tempering=1.0):
        """Check the option, and recognise the features among `drawn` and what belongs to them."""
        super().prepare(model, drawn, exchanges=0, tempering=tempering)

    @staticmethod
    def recognise(model, feature):
        """Collect loadings and table around features whose discount allows slices."""
        *_, discount = parameters(feature)
        if isinstance(discount, Constant):
            _check_discount(feature.name, float(discount.data))
        return linear_features_of(model, feature)

    def _scan(self, feature, loading, x, given):
        """Draw the features of all rows."""
        from bayesstruct.features.kernels.indian_buffet import left_ordered
        from bayesstruct.features.kernels.stick_features import MOST_UNSEEN, slice_features

        loading = np.ascontiguousarray(loading, float)
        process = given.alpha, given.concentration, given.discount
        _check_discount(self.names[0], given.discount)
        used = slice_features(self.rng, feature, loading, x, given.noise, given.scale, *process)
        if used == -2:
            raise ValueError(
                f"a slice leaves more than {MOST_UNSEEN:,} features of {self.names[0]!r} to be looked at, as the "
                f'discount is {given.discount:g}: give the IndianBuffet, or the model, sampler="gibbs"'
            )
        self._check_number(used >= 0)
        return left_ordered(feature)

    @staticmethod
    def competence(var, has_grad):
        """Ideal for features that ask for it, their loadings and the missing values."""
        mine = linear_step_of(var) == "latent_feature_slice"
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE


def _check_discount(name, discount):
    """Refuse a discount with which a slice may leave infinitely many features on average."""
    if discount >= _MOST_DISCOUNT:
        raise ValueError(
            f"the discount of {name!r} is {discount:g}, and slice draws take one below {_MOST_DISCOUNT:g}, as the "
            "mean number of features above a slice is infinite otherwise: give the IndianBuffet, or the model, "
            'sampler="gibbs"'
        )
