"""Values of the table of a recognised network, and of the hyperparameters of its parameters."""

from dataclasses import dataclass

import numpy as np

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.missing import observed_values
from bayesstruct.core.recognition import NotRecognized, parameters, unpadded_parameters
from bayesstruct.networks.priors.gaussian_network import (
    ArcWeightsRV,
    InterceptsRV,
    NoiseVariancesRV,
)

__all__ = ["CovarianceOfTable", "DiscreteTable", "GaussianTable"]


@dataclass(frozen=True, eq=False)
class GaussianTable:
    """Table of a Gaussian network, and the prior of its regressions.

    Attributes
    ----------
    alpha_mu, alpha_w, scale : float
        Hyperparameters of the BGe score.
    location, spread : array
        Units of the table, for each column.
    setting : array
        Values that variables were set to, NaN where they were not.
    x : (n, d) array
    """

    alpha_mu: float
    alpha_w: float
    scale: float
    location: np.ndarray
    spread: np.ndarray
    setting: np.ndarray
    x: np.ndarray

    @classmethod
    def of(cls, model, rows, found):
        """Read the table.

        Raises
        ------
        NotRecognized
            If the prior of the parameters is not that of the BGe score.
        """
        _, _, _, location, spread, setting = parameters(rows)
        tensors = [location, spread, setting, observed_values(model, rows)]
        prior, values = _prior_and_values(model, found, tensors)
        return cls(*prior, *values)

    @property
    def free(self) -> np.ndarray:
        """Values that were not set from outside, (n, d) bool."""
        return np.isnan(np.broadcast_to(self.setting, self.x.shape))

    @property
    def prior(self):
        """Prior of the regressions."""
        return _gaussian_prior(self)

    def score_and_moments(self):
        """Local scores, and sums over the rows for the parameters; the table is complete."""
        from bayesstruct.networks.kernels.parameters import rows_times_rows

        z = (self.x - self.location) / self.spread
        return self.score(z), rows_times_rows(z, self.free)

    def score(self, z):
        """Local scores of the standardised table, complete now."""
        from bayesstruct.networks.kernels.scores.gaussian import BGe

        return BGe(z, interventions=~self.free, alpha_mu=self.alpha_mu, alpha_w=self.alpha_w)


@dataclass(frozen=True, eq=False)
class CovarianceOfTable:
    """Sample covariance matrix of a Gaussian network instead of its table, and the prior of its regressions.

    Attributes
    ----------
    alpha_mu, alpha_w, scale : float
        Hyperparameters of the BGe score.
    spread : (d,) array
        Standard deviations by which the columns were standardised.
    n : int
        Number of rows.
    x : (d, d) array
        Sample covariances, with divisor n - 1.
    """

    alpha_mu: float
    alpha_w: float
    scale: float
    spread: np.ndarray
    n: int
    x: np.ndarray

    @classmethod
    def of(cls, model, rows, found):
        """Read the matrix; raises as :meth:`GaussianTable.of`."""
        *_, spread, n = parameters(rows)
        prior, values = _prior_and_values(model, found, [spread, n, model.rvs_to_values[rows]])
        return cls(*prior, values[0], int(values[1]), values[2])

    @property
    def prior(self):
        """Prior of the regressions."""
        return _gaussian_prior(self)

    def score_and_moments(self):
        """Local scores, and sums over the rows for the parameters."""
        from bayesstruct.networks.kernels.scores.gaussian import ScatterBGe

        d = len(self.x)
        scatter = (self.n - 1) * self.x / np.outer(self.spread, self.spread)
        moments = np.zeros((1, d + 1, d + 1))
        moments[0, 0, 0], moments[0, 1:, 1:] = self.n, scatter
        score = ScatterBGe(scatter, self.n, alpha_mu=self.alpha_mu, alpha_w=self.alpha_w)
        return score, (moments, np.zeros(d, np.int64))


def _prior_and_values(model, found, tensors):
    """Hyperparameters of the BGe score, and the values of tensors as floats; raises if the prior is another."""
    _, alpha_w, scale = parameters(found[NoiseVariancesRV])
    _, _, weight_scale = parameters(found[ArcWeightsRV])
    _, alpha_mu = parameters(found[InterceptsRV])
    tensors = [alpha_mu, alpha_w, scale, weight_scale, *tensors]
    values = Expressions(model, tensors)(model.initial_point())
    alpha_mu, alpha_w, scale, weight_scale = (float(np.squeeze(v)) for v in values[:4])
    values = [np.asarray(v, float) for v in values[4:]]
    wanted = alpha_mu * (alpha_w - values[-1].shape[1] - 1) / (alpha_mu + 1)
    if not np.allclose([scale, weight_scale], wanted):
        raise NotRecognized(
            "the scale of noise variances and weights is not that of the BGe score, "
            f"alpha_mu (alpha_w - d - 1) / (alpha_mu + 1) = {wanted:g}"
        )
    return (alpha_mu, alpha_w, scale), values


def _gaussian_prior(table):
    from bayesstruct.networks.kernels.parameters import GaussianPrior

    return GaussianPrior(table.alpha_mu, table.alpha_w, table.scale)


@dataclass(frozen=True, eq=False)
class DiscreteTable:
    """Table of a discrete network, and the prior of its probability tables.

    Attributes
    ----------
    states : tuple of int
        Number of states of each variable.
    cells : int
        Cells of the largest probability table.
    weight : float
        Equivalent sample size of each table; prior weight of each cell if the tables are even.
    even : bool
        Whether all cells have the same prior weight.
    x : (n, d) int array
    free : (n, d) bool array
        Values that were not set from outside.
    name : str
        Of the variable of the probability tables.
    """

    states: tuple[int, ...]
    cells: int
    weight: float
    even: bool
    x: np.ndarray
    free: np.ndarray
    name: str

    @classmethod
    def of(cls, model, rows, found):
        """Read the table."""
        [tables] = found.values()
        _, weight = unpadded_parameters(tables)
        setting = unpadded_parameters(rows)[2]
        values = Expressions(model, [weight, setting, observed_values(model, rows)])
        weight, setting, x = values(model.initial_point())
        x, op = np.asarray(x, np.int64), tables.owner.op
        free = np.broadcast_to(np.asarray(setting), x.shape) < 0
        return cls(
            states=tuple(rows.owner.op.states),
            cells=op.cells,
            weight=float(np.squeeze(weight)),
            even=op.draws.constant,
            x=x,
            free=free,
            name=tables.name,
        )

    def score(self, x):
        """Local scores of the table, complete now."""
        from bayesstruct.networks.kernels.scores.discrete import BDe, BDeu

        options = {"states": self.states, "interventions": ~self.free}
        if self.even:
            return BDe(x, **options, pseudo_count=self.weight)
        return BDeu(x, **options, equivalent_sample_size=self.weight)

    def columns(self, x):
        """Columns of the table, complete now, and of `free`; one row for each variable."""
        return np.ascontiguousarray(x.T), np.ascontiguousarray(self.free.T)

    def draw_tables(self, rng, graph, columns, point):
        """Draw the probability tables given the graph and the columns, into the point."""
        from bayesstruct.networks.kernels.parameters import draw_tables

        out = np.empty((len(self.states), self.cells))
        states = np.array(self.states, np.int64)
        even = (True,) if self.even else ()  # most networks need no second compilation
        if not draw_tables(rng, graph, *columns, states, self.weight, out, *even):
            raise RuntimeError(
                f"a probability table of the graph has more than {self.cells} cells, the maximum of this model"
            )
        point[self.name] = out
        return out
