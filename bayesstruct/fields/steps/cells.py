"""Step of the missing cells of a Markov random field, whatever its biases and weights are.

Recognised are cells with the prior :class:`bayesstruct.distributions.MissingStates` whose only child is one observed
:class:`bayesstruct.distributions.IncompletePairwiseMRF`, of which they are the missing cells. Biases and weights may be any
expressions that do not depend on the cells: they are read, and left to other steps.
"""

import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from pytensor.graph.basic import Constant
from pytensor.tensor.random.basic import CategoricalRV

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    depends_on,
    is_claimed,
    is_op,
    parameters,
    refusals,
    unpad,
)
from bayesstruct.fields.priors.random_fields import IncompletePairwiseRV

__all__ = ["CellDraws", "PairwiseCells", "check_states", "recognize_cells"]

_SUPPORTED = (
    "Supported are bayesstruct.distributions.MissingStates that are the missing cells of one observed IncompletePairwiseMRF, and "
    "of nothing else; within `with model:`, pm.sample() leaves others to the samplers of PyMC"
)


def recognize_cells(model, cells):
    """Find the table that some missing cells belong to.

    Parameters
    ----------
    model : pymc.Model
    cells : TensorVariable

    Returns
    -------
    TensorVariable
        The rows, an :class:`bayesstruct.distributions.IncompletePairwiseMRF`.

    Raises
    ------
    NotRecognized
        Says what stands in the way.
    """
    if cells not in model.free_RVs:
        raise NotRecognized("missing cells that are no variable of their own")
    children = children_of(model, cells)
    tables = [child for child in children if is_op(child, IncompletePairwiseRV)]
    if others := [child.name for child in children if child not in tables]:
        raise NotRecognized(f"{', '.join(map(repr, others))} depends on {cells.name!r}")
    if len(tables) != 1:
        raise NotRecognized(f"{cells.name!r} does not belong to one IncompletePairwiseMRF")
    [rows] = tables
    if rows not in model.observed_RVs or rows.type.ndim != 2:
        raise NotRecognized(f"{rows.name!r} is not an observed table")
    *laws, own = parameters(rows)
    if own is not cells:
        raise NotRecognized(
            f"{cells.name!r} is not the vector of missing cells of {rows.name!r} itself"
        )
    if depends_on(laws, cells):
        raise NotRecognized(f"biases or weights of {rows.name!r} depend on {cells.name!r}")
    _check_uniform(cells, rows.owner.op)
    return rows


def _check_uniform(cells, op):
    """Refuse cells that are anything but uniform before the table is seen."""
    p = unpad(parameters(cells)[0]) if is_op(cells, CategoricalRV) else None
    if not isinstance(p, Constant):
        raise NotRecognized(f"{cells.name!r} is not bayesstruct.distributions.MissingStates")
    states = np.array(op.potentials.states)[op.mask.columns, None]
    width = p.data.shape[-1]
    wanted = (np.arange(width) < states) / states
    known = p.data.ndim <= 2 and p.data.shape[:-1] in ((), (1,), (len(states),))
    if not known or width < states.max(initial=0) or not np.allclose(p.data, wanted):
        raise NotRecognized(f"the prior of {cells.name!r} is not uniform over its states")


def check_states(codes, potentials):
    """Refuse a table that holds a state that does not exist.

    Parameters
    ----------
    codes : (n, p) array of int
    potentials : Potentials

    Raises
    ------
    ValueError
    """
    if (codes < 0).any() or (codes >= np.array(potentials.states)).any():
        raise ValueError("the table of a random field holds a state that does not exist")


class CellDraws:
    """Gibbs draws of the missing cells of a table given biases and weights.

    Parameters
    ----------
    op : IncompletePairwiseRV
        Of the table.
    """

    def __init__(self, op):
        self.potentials = op.potentials
        self.columns = op.mask.columns
        self.gaps, self.rows = np.unique(op.mask.rows, return_inverse=True)
        self.position = _positions(op.potentials)

    def __call__(self, rng, table, cells, weight, bias):
        """Draw all missing cells once.

        Parameters
        ----------
        rng : numpy.random.Generator
        table : (n, p) array of int
            Whose missing cells may hold anything.
        cells : (missing cells,) array of int
            Their present states.
        weight, bias : float64 arrays, (weights,) and (biases,)

        Returns
        -------
        (missing cells,) int64 array

        Raises
        ------
        ValueError
            If the rows with gaps or the cells hold something that is no state, or the number of cells is
            not that of the gaps.
        """
        from bayesstruct.fields.kernels.cells import draw_missing

        if np.shape(cells) != self.rows.shape:
            raise ValueError(
                f"the table of a random field has {len(self.rows)} missing cells, their variable has the "
                f"shape {np.shape(cells)}: give one entry to each"
            )
        potentials, codes = self.potentials, np.array(table[self.gaps], np.int64)
        codes[self.rows, self.columns] = cells
        check_states(codes, potentials)
        draw_missing(
            rng, self.rows, self.columns, codes, np.array(potentials.states),
            potentials.unary(bias), potentials.pair(weight), potentials.unary_start, self.position,
        )  # fmt: skip
        return codes[self.rows, self.columns]


def _positions(potentials):
    """Where the table of each pair of variables starts, -1 without one; (p, p)."""
    out = np.full((potentials.p, potentials.p), -1)
    out[potentials.ends] = potentials.pair_start[:-1]
    return np.maximum(out, out.T)


class _Table:
    """One table with gaps, and the expressions that its cells are drawn given."""

    def __init__(self, model, cells, compile_kwargs):
        rows = recognize_cells(model, cells)
        bias, weight, _ = parameters(rows)
        self.name = model.rvs_to_values[cells].name
        self.draws = CellDraws(rows.owner.op)
        tensors = [bias, weight, model.rvs_to_values[rows]]
        self.values = Expressions(model, tensors, compile_kwargs)

    def draw(self, rng, point) -> int:
        """Draw the cells once, in the point; return how many of them changed."""
        bias, weight, table = self.values(point)
        before = point[self.name]
        point[self.name] = self.draws(rng, table, before, _vector(weight), _vector(bias))
        return np.count_nonzero(point[self.name] != before)


def _vector(values):
    """Drop leading dimensions of length one."""
    values = np.asarray(values, float)
    return values.reshape(values.shape[-1:])


@dataclass_state
class PairwiseCellsState(StepMethodState):
    """State of a step that remembers nothing but its generator."""


@register_step
class PairwiseCells(BlockedStep):
    r"""Gibbs draws of the missing cells of Markov random fields.

    Assigned by ``pm.sample`` to the :class:`bayesstruct.distributions.MissingStates` of an
    :class:`bayesstruct.distributions.IncompletePairwiseMRF`, unless :class:`PairwiseSpikeSlab` draws them with the weights.
    Biases and weights are what the model says, under whatever prior, and are drawn by other steps.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables of missing cells, of one table each.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional

    Raises
    ------
    ValueError
        If something else than one observed table depends on the cells, or their prior is not uniform.

    Notes
    -----
    One call draws all missing cells given biases, weights and the observed cells: those of a row together, up to
    16 of their joint states, otherwise in several such blocks. It works on the rows with gaps alone.

    The law of cells is their conditional law in the field, :math:`p(x_{\text{mis}} \mid x_{\text{obs}}, b, w)`, with
    ``likelihood="pseudo"`` as well. There it is not that of the density of the model, in which a missing cell is also a
    condition of its neighbours, which would count twice: states would be too sure and weights too large. The chain
    alternates between two conditional laws that no joint density has, as imputation by chained equations does; what
    it draws is the mixture of the composite posteriors of completed tables.

    The statistic ``cells_changed`` is the share of the missing cells whose state changed.

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
    default_blocked = True
    stats_dtypes_shapes = {"cells_changed": (float, [])}
    _state_class = PairwiseCellsState

    def __init__(
        self,
        vars,
        *,
        model=None,
        initial_point=None,
        compile_kwargs=None,
        rng=None,
        blocked=True,
    ):
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        self.rng = get_random_generator(rng)
        self.tables = []
        for cells in (model.values_to_rvs[v] for v in self.vars):
            with refusals(cells, _SUPPORTED):
                self.tables.append(_Table(model, cells, compile_kwargs))

    def step(self, point):
        """Draw all missing cells once."""
        point = dict(point)
        changed = sum(table.draw(self.rng, point) for table in self.tables)
        total = sum(len(table.draws.rows) for table in self.tables)
        return point, [{"cells_changed": changed / max(total, 1)}]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for the missing cells of a recognised random field."""
        model = pm.Model.get_context(error_if_none=False)
        if model is None or var not in model.free_RVs:
            mine = is_claimed(var, "pairwise_cells")
            return Competence.IDEAL if mine else Competence.INCOMPATIBLE
        if not is_op(var, CategoricalRV):
            return Competence.INCOMPATIBLE
        try:
            recognize_cells(model, var)
        except NotRecognized:
            return Competence.INCOMPATIBLE
        return Competence.IDEAL
