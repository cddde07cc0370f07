"""Step of Dirichlet-process mixtures of generalised linear models."""

import numpy as np

from pymc.step_methods.compound import Competence

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import check_drawn, is_op, only_one, parameters, refusals
from bayesstruct.data.arguments import whole_number
from bayesstruct.mixtures.priors.chinese_restaurant import ChineseRestaurantRV
from bayesstruct.mixtures.priors.mixture_parameters import ClusterNormalsRV, ClusterVariancesRV
from bayesstruct.mixtures.recognition import mixture_of

__all__ = ["DirichletMixtureGibbs"]

_SUPPORTED = (
    "Supported is a ChineseRestaurant with observed ClusterRows, whose means and variances are ClusterNormals and "
    "ClusterVariances, and one observed response of these rows with ClusterNormals as coefficients, on "
    "which nothing else depends; bs.models.dp_glm makes these"
)
_EMPTY = 3  # empty clusters of Neal's algorithm 8


@register_step
class DirichletMixtureGibbs(GibbsStep):
    """Gibbs sampler of Dirichlet-process mixtures of generalised linear models.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.ChineseRestaurant` and the parameters of its clusters. One
    call visits the labels of all rows, in random order. For normal responses all parameters are summed out, and
    clusters are split and merged too (:func:`bayesstruct.mixtures.kernels.mixture_regression.scan_labels`); for others the
    coefficients are kept (:func:`bayesstruct.mixtures.kernels.mixture_glm.scan_glm`). Then parameters are drawn given
    labels. The mass of the process, and hyperparameters that are random, are left to other steps.

    Parameters
    ----------
    moves : int, default 3
        Splits and merges that are proposed in a call; for responses that are not normal, draws of the
        coefficients of each cluster.

    Raises
    ------
    TypeError, ValueError
        If the model is not such a mixture, if an option is out of range, or if during a run there are more
        clusters than the maximum number.

    Notes
    -----
    Statistics of each draw: ``n_clusters``.
    """

    name = "dirichlet_mixture_gibbs"
    stats_dtypes_shapes: dict = {"n_clusters": (int, [])}

    def prepare(self, model, drawn, *, moves=3):
        """Recognise the mixture around the labels among `drawn`."""
        self.moves = whole_number("moves", moves, 0)
        cluster = only_one(drawn, ChineseRestaurantRV, "sets of labels", _SUPPORTED)
        with refusals(cluster, _SUPPORTED):
            part = mixture_of(model, cluster)
            check_drawn(part.variables, drawn)
        # Names only: processes get a copy of the step.
        self.cluster, self.coefficient = cluster.name, part.coefficient.name
        self.moments = part.mean.name, part.variance.name
        self.noise = None if part.noise is None else part.noise.name
        self.counts = part.counts
        self.alpha, self.hyperparameters = (
            Expressions(model, tensors, self.compile_kwargs, user=cluster.name)
            for tensors in (parameters(cluster), part.hyperparameters)
        )
        observed = [model.rvs_to_values[rv] for rv in (part.rows, part.response)]
        x, y = Expressions(model, observed, self.compile_kwargs)(model.initial_point())
        self.x, self.y = np.asarray(x, float), np.asarray(y, float)

    def step(self, point):
        """Draw labels, and parameters given these, once."""
        from bayesstruct.mixtures.kernels.chinese_restaurant import relabel

        point = dict(point)
        labels = np.array(point[self.cluster], np.int64)
        alpha = float(np.squeeze(self.alpha(point)[0]))
        draw = self._draw_normal if self.noise is not None else self._draw_other
        most = len(point[self.coefficient])
        names = np.empty(most, np.int64)
        if not draw(point, labels, alpha, names):
            raise ValueError(
                f"there are more than {most} clusters in {self.cluster!r}: set `max_clusters` to more"
            )
        used = relabel(labels, names)
        point[self.cluster] = labels
        return point, [{"n_clusters": used}]

    def _draw_normal(self, point, labels, alpha, names):
        """Draw labels and parameters of normal regressions into the point; False if there are too many clusters."""
        from bayesstruct.mixtures.kernels.chinese_restaurant import relabel
        from bayesstruct.mixtures.kernels.mixture_columns import log_gains
        from bayesstruct.mixtures.kernels.mixture_regression import (
            RegressionPrior,
            draw_parameters,
            scan_labels,
        )

        n = len(labels)
        centre, location, strength, start, weight, shape, rate, a, b = self.hyperparameters(point)
        design = np.column_stack([np.ones(n), self.x - centre])
        table = (
            np.ascontiguousarray(self.x - location),
            np.column_stack([design, self.y - design @ start]),
        )
        a = float(np.squeeze(a))
        root = np.sqrt(np.append(weight, 2.0 * np.squeeze(b)))
        priors = (
            _column_prior(strength, shape, rate, n),
            RegressionPrior(a, root, log_gains(a, n)),
        )
        order = self.rng.permutation(n)
        most = len(names)
        if not scan_labels(self.rng, labels, order, table, priors, alpha, most, self.moves):
            return False
        used = relabel(labels, names)
        moments = np.zeros((2, most, self.x.shape[1]))
        coefficient, noise = np.zeros((most, len(start))), np.zeros(most)
        draw_parameters(self.rng, labels, table, priors, moments, coefficient, noise)
        coefficient[:used] += start
        self._store(point, moments, location, used)
        point[self.coefficient], point[self.noise] = coefficient, noise[:, None]
        return True

    def _draw_other(self, point, labels, alpha, names):
        """Draw labels and parameters of other regressions into the point; False if there are too many clusters."""
        from bayesstruct.mixtures.kernels.chinese_restaurant import relabel
        from bayesstruct.mixtures.kernels.mixture_glm import (
            LOGISTIC,
            POISSON,
            Responses,
            draw_columns,
            scan_glm,
        )

        n = len(labels)
        centre, location, strength, start, weight, shape, rate, spread = self.hyperparameters(point)
        design = np.column_stack([np.ones(n), self.x - centre])
        family = POISSON if self.counts else LOGISTIC
        if (spread != spread[0]).any():
            raise ValueError(f"the prior of {self.coefficient!r} must be that of all clusters")
        deviation = np.sqrt(spread[0] / weight)
        data = Responses(family, design, self.y, design @ start, deviation)
        x = np.ascontiguousarray(self.x - location)
        prior = _column_prior(strength, shape, rate, n)
        coefficient = np.array(point[self.coefficient], float)
        coefficient[: labels.max() + 1] -= start
        order = self.rng.permutation(n)
        if not scan_glm(
            self.rng, labels, order, x, prior, data, alpha, coefficient, _EMPTY, self.moves
        ):
            return False
        used = relabel(labels, names)
        sorted_ = np.zeros_like(coefficient)
        there = names >= 0
        sorted_[names[there]] = coefficient[there] + start
        moments = np.zeros((2, len(names), x.shape[1]))
        draw_columns(self.rng, labels, x, prior, moments)
        self._store(point, moments, location, used)
        point[self.coefficient] = sorted_
        return True

    def _store(self, point, moments, location, used):
        """Put means and variances of the columns into the point."""
        moments[0, :used] += location
        mean, variance = self.moments
        point[mean], point[variance] = moments

    @staticmethod
    def competence(var, has_grad):
        """Ideal for labels and the parameters of their clusters.

        If it declined labels, PyMC would assign samplers that are wrong for them; so the constructor accepts
        all, and raises for those that it cannot draw.
        """
        mine = is_op(var, (ChineseRestaurantRV, ClusterNormalsRV, ClusterVariancesRV))
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE


def _column_prior(strength, shape, rate, n):
    """Prior of the columns, as the kernels take it."""
    from bayesstruct.mixtures.kernels.mixture_columns import ColumnPrior, log_gains

    shape = float(np.squeeze(shape))
    strength, rate = np.asarray(strength, float), np.asarray(rate, float)
    return ColumnPrior(strength, shape, rate, log_gains(shape, n))
