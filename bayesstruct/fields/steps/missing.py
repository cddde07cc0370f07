"""Step method for the missing values of a Markov random field, whatever its biases and weights are.

It accepts variables with the prior :class:`bayesstruct.distributions.MissingStates` whose only child is one observed
:class:`bayesstruct.distributions.IncompletePairwiseMRF`, of which they are the missing values. Biases and weights may be any
expressions that do not depend on them: they are read, and left to other steps.
"""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm

from pymc.step_methods.compound import Competence
from pytensor.tensor.random.basic import CategoricalRV

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.missing import Mask, observed_values
from bayesstruct.core.recognition import NotRecognized, is_claimed, is_op, refusals
from bayesstruct.fields.kernels.potentials import Potentials, check_codes
from bayesstruct.fields.recognition.fields import field_of_missing

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["MissingDraws", "PairwiseCells"]

_SUPPORTED = (
    "Supported are bayesstruct.distributions.MissingStates that are the missing values of one observed IncompletePairwiseMRF, "
    "and of nothing else; within `with model:`, pm.sample() leaves others to the samplers of PyMC"
)


class MissingDraws:
    """Gibbs draws of the missing values of a table given biases and weights.

    Parameters
    ----------
    potentials : Potentials
    mask : Mask
        Which values are missing.
    """

    def __init__(self, potentials: Potentials, mask: Mask):
        self.potentials = potentials
        self.columns = mask.columns
        self.gaps, self.rows = np.unique(mask.rows, return_inverse=True)
        self.position = _positions(potentials)

    def __call__(
        self,
        rng: np.random.Generator,
        table: np.ndarray,
        values: np.ndarray,
        weight: np.ndarray,
        bias: np.ndarray,
    ) -> np.ndarray:
        """Draw all missing values once.

        Parameters
        ----------
        rng : numpy.random.Generator
        table : (n, p) array of int
            States; the entries that are missing are ignored.
        values : (missing values,) array of int
            Their present states.
        weight, bias : float64 arrays, (weights,) and (biases,)

        Returns
        -------
        (missing values,) int64 array

        Raises
        ------
        ValueError
            If an incomplete row or a missing value holds something that is not a state, or the number
            of values is not that of the missing entries of the table.
        """
        from bayesstruct.fields.kernels.missing import draw_missing

        if np.shape(values) != self.rows.shape:
            raise ValueError(
                f"the table of a Markov random field has {len(self.rows)} missing values, their variable has the "
                f"shape {np.shape(values)}: give one entry to each"
            )
        potentials, codes = self.potentials, np.array(table[self.gaps], np.int64)
        codes[self.rows, self.columns] = values
        check_codes(codes, potentials)
        draw_missing(
            rng,
            self.rows,
            self.columns,
            codes,
            np.array(potentials.states),
            potentials.unary(bias),
            potentials.pair(weight),
            potentials.unary_start,
            self.position,
        )
        return codes[self.rows, self.columns]


def _positions(potentials):
    """Where the table of each pair of variables starts, -1 without one; (p, p)."""
    out = np.full((potentials.p, potentials.p), -1)
    out[potentials.ends] = potentials.pair_start[:-1]
    return np.maximum(out, out.T)


class _Table:
    """One incomplete table, and the expressions given which its missing values are drawn."""

    def __init__(self, model, missing, compile_kwargs):
        field = field_of_missing(model, missing)
        self.name = model.rvs_to_values[missing].name
        self.draws = MissingDraws(field.potentials, field.mask)
        tensors = [field.bias, field.weight, observed_values(model, field.rows)]
        self.values = Expressions(model, tensors, compile_kwargs)

    def draw(self, rng, point) -> int:
        """Draw the missing values once, in the point; return how many of them changed."""
        bias, weight, table = self.values(point)
        before = point[self.name]
        point[self.name] = self.draws(rng, table, before, _vector(weight), _vector(bias))
        return int(np.count_nonzero(point[self.name] != before))


def _vector(values):
    """Drop leading dimensions of length one."""
    values = np.asarray(values, float)
    return values.reshape(values.shape[-1:])


@register_step
class PairwiseCells(GibbsStep):
    r"""Gibbs draws of the missing values of Markov random fields.

    Assigned by ``pm.sample`` to the :class:`bayesstruct.distributions.MissingStates` of an
    :class:`bayesstruct.distributions.IncompletePairwiseMRF`, unless :class:`PairwiseSpikeSlab` draws them with the weights.
    Biases and weights may have any prior, and are drawn by other steps. The parameters are those of every step
    method; one step may draw the missing values of several tables.

    Raises
    ------
    ValueError
        If anything but one observed table depends on the missing values, or their prior is not uniform.

    Notes
    -----
    One call draws all missing values given biases, weights and the observed values: those of a row together, up to
    16 joint states, otherwise in several such blocks. It works on the incomplete rows alone.

    The missing values have their conditional distribution in the field,
    :math:`p(x_{\text{mis}} \mid x_{\text{obs}}, b, w)`, with
    ``likelihood="pseudo"`` as well. There it is not that of the density of the model, in which a missing value is also a
    condition of its neighbours, which would count twice: states would be too certain and weights too large. The chain
    alternates between two conditional distributions that no joint density has, as imputation by chained equations does; its
    draws come from the mixture of the composite posteriors of completed tables.

    The statistic ``cells_changed`` is the proportion of the missing values whose state changed.

    References
    ----------
    Geman, S. and Geman, D. (1984). Stochastic relaxation, Gibbs distributions, and the Bayesian restoration of
    images. *IEEE Transactions on Pattern Analysis and Machine Intelligence* 6, 721-741.

    Liu, J., Gelman, A., Hill, J., Su, Y.-S. and Kropko, J. (2014). On the stationary distribution of iterative
    imputations. *Biometrika* 101, 155-173.

    Tanner, M. A. and Wong, W. H. (1987). The calculation of posterior distributions by data augmentation.
    *JASA* 82, 528-540.

    Examples
    --------
    .. code-block:: python

        table = bs.load_dataset("anes96").astype("Float64")
        table.iloc[0, 0] = None
        with bs.models.pairwise_mrf(table, potentials="ordinal", prior="group_laplace"):
            idata = pm.sample()
        idata["posterior"]["x_missing"]
    """

    name = "pairwise_cells"
    stats_dtypes_shapes: dict = {"cells_changed": (float, [])}

    def prepare(self, model, drawn):
        """Find the table of each variable."""
        self.tables = []
        for missing in drawn:
            with refusals(missing, _SUPPORTED):
                self.tables.append(_Table(model, missing, self.compile_kwargs))

    def step(self, point: dict) -> tuple[dict, list[dict]]:
        """Draw all missing values once."""
        point = dict(point)
        changed = sum(table.draw(self.rng, point) for table in self.tables)
        total = sum(len(table.draws.rows) for table in self.tables)
        return point, [{"cells_changed": changed / max(total, 1)}]

    @staticmethod
    def competence(var: "TensorVariable", has_grad: bool) -> Competence:
        """Ideal for the missing values of a recognised Markov random field."""
        model = pm.Model.get_context(error_if_none=False)
        if model is None or var not in model.free_RVs:
            mine = is_claimed(var, "pairwise_cells")
            return Competence.IDEAL if mine else Competence.INCOMPATIBLE
        if not is_op(var, CategoricalRV):
            return Competence.INCOMPATIBLE
        try:
            field_of_missing(model, var)
        except NotRecognized:
            return Competence.INCOMPATIBLE
        return Competence.IDEAL
