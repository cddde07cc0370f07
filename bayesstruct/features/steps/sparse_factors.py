"""Step of sparse factors: which of them each row has, their scores and their loadings."""

import numpy as np

from pymc.step_methods.compound import Competence

from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import is_claimed, is_op, parameters
from bayesstruct.features.priors.feature_scores import FeatureScoresRV
from bayesstruct.features.priors.indian_buffet import FeatureLoadingsRV
from bayesstruct.features.recognition.factors import sparse_factors_of
from bayesstruct.features.steps.base import FeatureStep
from bayesstruct.features.steps.latent_features import LatentFeatureGibbs

__all__ = ["SparseFactorGibbs"]

_MOVES = 5  # splits and merges that are tried in a call


@register_step(before=LatentFeatureGibbs)
class SparseFactorGibbs(FeatureStep):
    """Gibbs sampler of sparse factors: which of them rows have, their scores and their loadings.

    Assigned by ``pm.sample`` to an :class:`bayesstruct.IndianBuffet` with its
    :class:`bayesstruct.distributions.FeatureScores` and :class:`bayesstruct.distributions.FeatureLoadings` under
    :class:`bayesstruct.distributions.FactorRows`. One call visits all rows
    (:func:`bayesstruct.features.kernels.sparse_factors.scan_factors`), tries to split factors and to merge some with
    the loadings summed out, draws the loadings, and moves the scale of each factor between scores and loadings.
    Noise, the scale of the loadings and the parameters of the process are left to other steps.

    Raises
    ------
    ValueError
        If the model has another form, or if during a run there are more factors than the maximum number.

    Notes
    -----
    The sign of a factor is not identified; it is the one with which the cubes of its loadings have a
    positive sum. Statistics of each draw: ``n_features``.
    """

    name = "sparse_factor_gibbs"
    supported = (
        "Supported is one observed FactorRows of the FeatureScores and FeatureLoadings of an IndianBuffet, on "
        "which nothing else depends; bs.models.sparse_factor_analysis and infinite_ica make these"
    )
    recognise = staticmethod(sparse_factors_of)

    @staticmethod
    def tensors(part) -> list:
        """Parameters of the process, scale of the loadings, noise of the columns."""
        _, scale = parameters(part.loading)
        *_, noise, _ = parameters(part.rows)
        return [*parameters(part.feature), scale, noise]

    def observe(self, part, x):
        """Keep the table, which of its values were observed, and the distribution of the scores."""
        self.observed = np.ascontiguousarray(x, float)
        self.seen = np.broadcast_to(part.seen, x.shape) > 0
        self.laplace = part.score.owner.op.distribution == "laplace"

    def step(self, point):
        """Draw factors, scores and loadings once."""
        from bayesstruct.features.kernels.factor_loadings import (
            draw_factor_loadings,
            rescale_factors,
        )

        point = dict(point)
        feature, score, loading = self.names
        *process, scale, noise = self.values(point)
        process, scale = tuple(float(np.squeeze(v)) for v in process), float(np.squeeze(scale))
        precision = self.seen / np.broadcast_to(noise, self.observed.shape) ** 2
        w, a = np.array(point[score], order="C"), np.array(point[loading], order="C")
        used = self._scan(w, a, precision, process, scale)
        used = self._split_and_merge(w, used, precision, process, scale)
        a[:] = 0.0
        a[:used] = draw_factor_loadings(self.rng, w[:, :used], self.observed, precision, scale)
        rescale_factors(self.rng, w[:, :used], a[:used], scale, self.laplace)
        order = self._order(w != 0)
        point[score], point[loading] = w[:, order], a[order]
        point[feature] = (point[score] != 0).astype(np.int8)
        return point, [{"n_features": used}]

    def _scan(self, w, a, precision, process, scale):
        """Draw factors and scores of all rows, in place; return the number of factors."""
        from bayesstruct.features.kernels.sparse_factors import scan_factors

        rates = np.array([self._new_rate(*process), *process[1:]])
        used, rows = int(w.any(axis=0).sum()), self.rng.permutation(len(w))
        numbers = rows, scale, rates, self.laplace
        used = scan_factors(self.rng, w, a, used, self.observed, precision, *numbers)
        self._check_number(used >= 0)
        return used

    def _split_and_merge(self, w, used, precision, process, scale):
        """Try to split factors and to merge some, in place; return the number of factors."""
        from bayesstruct.features.kernels.factor_splits import split_or_merge

        new, numbers = w[:, :used], (scale, process, self.laplace)
        for _ in range(_MOVES):
            new = split_or_merge(self.rng, new, self.observed, precision, *numbers)
            self._check_number(new.shape[1] <= w.shape[1])
        used = new.shape[1]
        w[:, :used], w[:, used:] = new.copy(), 0.0
        return used

    @staticmethod
    def competence(var, has_grad):
        """Ideal for scores, and for the features and loadings that go with some."""
        feature = parameters(var)[0] if is_op(var, FeatureLoadingsRV) else var
        if is_op(var, FeatureScoresRV) or is_claimed(feature, "sparse_factor_gibbs"):
            return Competence.IDEAL
        return Competence.INCOMPATIBLE
