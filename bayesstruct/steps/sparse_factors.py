"""Step of sparse factors: which of them each row has, their scores and their loadings."""

from dataclasses import dataclass

import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence
from pymc.util import get_random_generator

from bayesstruct.distributions.feature_scores import FactorRowsRV, FeatureScoresRV
from bayesstruct.distributions.indian_buffet import FeatureLoadingsRV, IndianBuffetRV
from bayesstruct.steps.recognition import (
    NotRecognized,
    _children,
    _depends_on,
    check_drawn,
    is_op,
    only_one,
    parameters,
    refusals,
)
from bayesstruct.steps.tables import Expressions

__all__ = ["SparseFactorGibbs"]

_MOVES = 5  # splits and merges that are tried in a call

_SUPPORTED = (
    "Supported is one observed FactorRows of the FeatureScores and FeatureLoadings of an IndianBuffet, on "
    "which nothing else depends; bs.models.sparse_factor_analysis and infinite_ica make these"
)


@dataclass
class _Part:
    """Features, scores, loadings and the table."""

    feature: object
    score: object
    loading: object
    rows: object


def _factors_of(model, feature) -> _Part:
    """Collect scores, loadings and table around features.

    Raises
    ------
    NotRecognized
        Says what stands in the way.
    """
    children = _children(model, feature)
    scores = [rv for rv in children if is_op(rv, FeatureScoresRV)]
    loadings = [rv for rv in children if is_op(rv, FeatureLoadingsRV)]
    if len(scores) != 1 or len(loadings) != 1 or len(children) != 2:
        names = ", ".join(repr(rv.name) for rv in children) or "nothing"
        raise NotRecognized(f"{names} depends on {feature.name!r}")
    [score], [loading] = scores, loadings
    tables = _children(model, score)
    if (
        len(tables) != 1
        or not is_op(tables[0], FactorRowsRV)
        or _children(model, loading) != tables
    ):
        raise NotRecognized(f"{score.name!r} and {loading.name!r} do not make one FactorRows alone")
    [table] = tables
    first, second, *others = parameters(table)
    if first is not score or second is not loading:
        raise NotRecognized(f"{table.name!r} is not made of {score.name!r} and {loading.name!r}")
    own = (feature, score, loading)
    if any(_depends_on(others, rv) for rv in own):
        raise NotRecognized(f"the noise of {table.name!r} depends on its factors")
    if table not in model.observed_RVs or any(rv not in model.free_RVs for rv in own):
        raise NotRecognized(f"{table.name!r} must be observed, and nothing else")
    return _Part(feature, score, loading, table)


class SparseFactorGibbs(BlockedStep):
    """Gibbs sampler of sparse factors: which of them rows have, their scores and their loadings.

    Assigned by ``pm.sample`` to an :class:`bayesstruct.IndianBuffet` with its
    :class:`bayesstruct.FeatureScores` and :class:`bayesstruct.FeatureLoadings` under
    :class:`bayesstruct.FactorRows`. One call visits all rows
    (:func:`bayesstruct.kernels.sparse_factors.scan_factors`), tries to split factors and to merge some with the
    loadings summed out, draws the loadings, and moves the scale of each factor between scores and loadings. Noise, the scale of the loadings and the parameters of
    the process are left to other steps.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables of one set of features, its scores and its loadings.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional

    Raises
    ------
    ValueError
        If the model is another one, or, during a run, there are more factors than there is room for.

    Notes
    -----
    The sign of a factor is not identified; it is the one with which the cubes of its loadings have a
    positive sum. Statistics of each draw: ``n_features``.
    """

    name = "sparse_factor_gibbs"
    default_blocked = True
    stats_dtypes_shapes = {"n_features": (int, [])}

    def __init__(
        self, vars, *, model=None, initial_point=None, compile_kwargs=None, rng=None, blocked=True
    ):
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        drawn = [model.values_to_rvs[v] for v in self.vars]
        feature = only_one(drawn, IndianBuffetRV, "sets of features", _SUPPORTED)
        with refusals(feature, _SUPPORTED):
            part = _factors_of(model, feature)
            check_drawn((part.feature, part.score, part.loading), drawn)
        self.rng = get_random_generator(rng)
        self.names = part.feature.name, part.score.name, part.loading.name
        self.matrix = part.feature.owner.op.matrix
        self.laplace = part.score.owner.op.law == "laplace"
        _, scale = parameters(part.loading)
        *_, noise, seen = parameters(part.rows)
        tensors = [*parameters(part.feature), scale, noise]
        self.values = Expressions(model, tensors, compile_kwargs)
        fixed = Expressions(model, [model.rvs_to_values[part.rows], seen], compile_kwargs)
        x, seen = fixed(model.initial_point())
        self.observed = np.ascontiguousarray(x, float)
        self.seen = np.broadcast_to(seen, self.observed.shape) > 0

    def step(self, point):
        """Draw factors, scores and loadings once."""
        from bayesstruct.kernels.indian_buffet import left_order
        from bayesstruct.kernels.sparse_factors import draw_factor_loadings, rescale_factors

        point = dict(point)
        feature, score, loading = self.names
        *law, scale, noise = self.values(point)
        law, scale = tuple(float(np.squeeze(v)) for v in law), float(np.squeeze(scale))
        precision = self.seen / np.broadcast_to(noise, self.observed.shape) ** 2
        w, a = np.array(point[score], order="C"), np.array(point[loading], order="C")
        used = self._scan(w, a, precision, law, scale)
        used = self._split_and_merge(w, used, precision, law, scale)
        a[:] = 0.0
        a[:used] = draw_factor_loadings(self.rng, w[:, :used], self.observed, precision, scale)
        rescale_factors(self.rng, w[:, :used], a[:used], scale, self.laplace)
        order = left_order(w != 0)
        point[score], point[loading] = w[:, order], a[order]
        point[feature] = (point[score] != 0).astype(np.int8)
        return point, [{"n_features": used}]

    def _scan(self, w, a, precision, law, scale):
        """Draw factors and scores of all rows, in place; return the number of factors."""
        from bayesstruct.kernels.indian_buffet import new_dish_rates
        from bayesstruct.kernels.sparse_factors import scan_factors

        alpha, c, discount = law
        process = np.array([alpha * new_dish_rates(len(w), c, discount)[-1], c, discount])
        used, rows = int(w.any(axis=0).sum()), self.rng.permutation(len(w))
        numbers = rows, scale, process, self.laplace
        used = scan_factors(self.rng, w, a, used, self.observed, precision, *numbers)
        self._check_room(used >= 0)
        return used

    def _split_and_merge(self, w, used, precision, law, scale):
        """Try to split factors and to merge some, in place; return the number of factors."""
        from bayesstruct.kernels.sparse_factors import split_or_merge

        new = w[:, :used]
        for _ in range(_MOVES):
            new = split_or_merge(self.rng, new, self.observed, precision, scale, law, self.laplace)
            self._check_room(new.shape[1] <= w.shape[1])
        used = new.shape[1]
        w[:, :used], w[:, used:] = new.copy(), 0.0
        return used

    def _check_room(self, enough):
        if not enough:
            raise ValueError(
                f"there are more than {self.matrix[1]} factors in {self.names[0]!r}: set `truncation` of the "
                "IndianBuffet, or `max_features` of the model, to more"
            )

    @staticmethod
    def competence(var, has_grad):
        """Ideal for scores, and for the features and loadings that go with some."""
        if is_op(var, FeatureScoresRV):
            return Competence.IDEAL
        if is_op(var, FeatureLoadingsRV):
            var = parameters(var)[0]
        if not is_op(var, IndianBuffetRV):
            return Competence.INCOMPATIBLE
        mine = any(is_op(rv, FeatureScoresRV) for rv in _children(pm.modelcontext(None), var))
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE
