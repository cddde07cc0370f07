"""Missing cells of random fields against all their completions, with and without unknown weights."""

import functools

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc.step_methods.compound import Competence
from scipy import stats
from scipy.special import logsumexp, softmax
from tools.batches import mean_and_error
from tools.geweke import assert_geweke
from tools.random_fields import all_states, energies, exact_distribution

import bayesstruct as bs

from bayesstruct.fields.kernels.missing import BLOCK
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.steps import missing as module
from bayesstruct.runs.chains import restore, snapshot
from bayesstruct.steps import PairwiseCells, PairwiseSpikeSlab

CASES = {
    "binary": Potentials("ordinal", (2, 2, 2)),
    "spin": Potentials("spin", (2, 2, 2)),
    "ising": Potentials("ising", (3, 3, 3)),
    "generalized ising": Potentials("generalized_ising", (3, 3, 3)),
    "full": Potentials("full", (2, 3, 4)),
    "ordinal": Potentials("ordinal", (4, 2, 3)),
    "blume-capel": Potentials("blume_capel", (3, 4, 3), 1),
    "a chain": Potentials("full", (3, 2, 3, 2), 0, ((0, 1), (1, 2), (2, 3))),
}
#: Gaps of each kind of row: one, two, all columns, of which some families have more than a block.
GAPS = ((1,), (0, 2), (0, 1, 2))
LIKELIHOODS = ("exact", "pseudo")
COPIES, SWEEPS = 3_000, 20  # enough to forget the start at these weights


def log_law(potentials, bias, weight, likelihood):
    """Log density of every joint state but for a constant, from their energies one by one."""
    energy = energies(potentials, bias, weight).reshape(potentials.states)
    if likelihood == "exact":
        return energy
    axes = range(potentials.p)
    return sum(energy - logsumexp(energy, axis=i, keepdims=True) for i in axes)


def law_of_gaps(potentials, bias, weight, row, gap, likelihood="exact"):
    """Probability of every completion of a row in the field, flat."""
    seen = tuple(slice(None) if i in gap else s for i, s in enumerate(row))
    return softmax(log_law(potentials, bias, weight, likelihood)[seen]).ravel()


def parameters(potentials, seed=4):
    rng = np.random.default_rng(seed)
    return tuple(0.7 * rng.normal(size=k) for k in (potentials.bias_size, potentials.weight_size))


def field(potentials, bias, weight, likelihood, codes, missing, **kwargs):
    """Add a table with gaps to the model; return its missing cells."""
    cells = bs.distributions.MissingStates(
        "cells", np.array(potentials.states)[np.nonzero(missing)[1]]
    )
    bs.distributions.IncompletePairwiseMRF(
        "x",
        bias,
        weight,
        cells,
        missing=missing,
        potentials=potentials,
        likelihood=likelihood,
        observed=codes,
        **kwargs,
    )
    return cells


def copies(potentials, likelihood):
    """Step of a table of many copies of a few rows with gaps, its point, rows and gaps."""
    rng = np.random.default_rng(8)
    rows = np.array([[rng.integers(k) for k in potentials.states] for _ in GAPS])
    missing = np.zeros(rows.shape, bool)
    for own, gap in zip(missing, GAPS, strict=True):
        own[list(gap)] = True
    bias, weight = parameters(potentials)
    with pm.Model() as model:
        table, where = np.repeat(rows, COPIES, axis=0), np.repeat(missing, COPIES, axis=0)
        cells = field(potentials, bias, weight, likelihood, table, where)
        step = PairwiseCells([cells], rng=1)
    return step, {"cells": np.zeros(where.sum(), int)}, rows, model


def p_values(step, point, rows, potentials, law=law_of_gaps):
    """Of the number of copies in each completion, one for each kind of row: copies are independent."""
    for _ in range(SWEEPS):
        point, _ = step.step(point)
    out, start, bias_weight = [], 0, parameters(potentials)
    for row, gap in zip(rows, GAPS, strict=True):
        cells = point["cells"][start : (start := start + COPIES * len(gap))].reshape(COPIES, -1)
        p = law(potentials, *bias_weight, row, gap)
        index = np.ravel_multi_index(cells.T, [potentials.states[i] for i in gap])
        counts = np.bincount(index, minlength=len(p))
        rare = COPIES * p < 5  # together, so that the law of the statistic is that of chi-square
        counts, p = (np.r_[v[~rare], v[rare].sum()] for v in (counts, p))
        if COPIES * p[-1] < 5:
            counts, p = (np.r_[v[:-2], v[-2:].sum()] for v in (counts, p))
        out.append(stats.chisquare(counts, COPIES * p).pvalue)
    return np.array(out)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("name", CASES)
def test_cells_have_their_law_in_the_field_at_fixed_weights(name, likelihood):
    potentials = CASES[name]
    step, point, rows, _ = copies(potentials, likelihood)
    assert p_values(step, point, rows, potentials).min() > 1e-4


def test_the_cases_have_rows_of_one_block_and_of_several():
    sizes = [np.prod(potentials.states[:3]) for potentials in CASES.values()]
    assert min(sizes) <= BLOCK < max(sizes)


def test_the_law_of_the_composite_density_is_noticed():
    """In it a cell is also a condition of its neighbours, which so count twice."""
    potentials = CASES["full"]
    composite = functools.partial(law_of_gaps, likelihood="pseudo")
    step, point, rows, _ = copies(potentials, "pseudo")
    assert p_values(step, point, rows, potentials, composite).min() < 1e-8


def test_cells_of_a_row_drawn_given_their_states_of_before_are_noticed(monkeypatch):
    """All cells at once, each given the others as they were: right for rows with one gap only."""
    right = module.MissingDraws.__call__

    def at_once(self, rng, table, cells, weight, bias):
        out, all_rows, columns = np.array(cells), self.rows, self.columns
        filled = np.array(table[self.gaps])
        filled[all_rows, columns] = cells
        for i in np.unique(columns):
            here = columns == i
            self.rows, self.columns, self.gaps = all_rows[here], columns[here], slice(None)
            out[here] = right(self, rng, filled, cells[here], weight, bias)
        self.rows, self.columns, self.gaps = all_rows, columns, np.arange(len(filled))
        return out

    monkeypatch.setattr(module.MissingDraws, "__call__", at_once)
    potentials = CASES["ordinal"]
    step, point, rows, _ = copies(potentials, "exact")
    one, *several = p_values(step, point, rows, potentials)
    assert one > 1e-4
    assert min(several) < 1e-8


# Weights and cells together.

SMALL = Potentials("ordinal", (2, 3, 2))
CODES = np.array([[0, 0, 1], [1, 2, 0], [1, 2, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0]])
MISSING = np.zeros(CODES.shape, bool)
MISSING[0, 0] = MISSING[0, 1] = MISSING[3, 2] = True
BIAS, DIRECTION = np.array([-0.5, 0.2, 0.1, -0.4]), np.array([1.0, 0.5, -1.5])


GRID = (np.arange(200) + 0.5) * 0.02
COMPLETIONS = all_states([SMALL.states[i] for i in np.nonzero(MISSING)[1]])


def shrunk(likelihood):
    """Weights that are an expression of a variable with a transform, as under the horseshoe."""
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1.0)
        field(SMALL, BIAS - 0.3 * scale, scale * DIRECTION, likelihood, CODES, MISSING)
    return model


def log_joint(likelihood):
    """Log density of each scale of the grid with each completion."""
    tables = np.repeat(CODES[None], len(COMPLETIONS), axis=0)
    tables[:, MISSING] = COMPLETIONS
    out = np.empty((len(GRID), len(COMPLETIONS)))
    for g, scale in enumerate(GRID):
        law = log_law(SMALL, BIAS - 0.3 * scale, scale * DIRECTION, likelihood)
        law = law - (logsumexp(law) if likelihood == "exact" else 0.0)
        out[g] = law[tuple(np.moveaxis(tables, -1, 0))].sum(axis=1) - scale**2 / 2
    return out


def statistics(scale, cells):
    both = [scale, scale**2, cells[:, 0] * cells[:, 1]]
    return np.column_stack([*both, cells, scale[:, None] * cells])


def log_cells():
    """Log probability of each completion at each scale of the grid, in the field."""
    logp = log_joint("exact")
    return logp - logsumexp(logp, axis=1, keepdims=True)


def stationary(scales, cells):
    """Law of a scale drawn given a completion and the next completion drawn given it, (grid, completions).

    Parameters
    ----------
    scales, cells : (grid, completions) arrays
        Probability of a scale given a completion, and of a completion given a scale.
    """
    between = scales.T @ cells
    values, vectors = np.linalg.eig(between.T)
    own = vectors[:, np.argmax(values.real)].real
    return (scales @ (own / own.sum()))[:, None] * cells


def z_scores(likelihood, draws=3_000):
    """Cells by the step and the scale by its law on the grid in turn, against all of both."""
    logp, rng, seen = log_joint(likelihood), np.random.default_rng(11), []
    law = stationary(softmax(logp, axis=0), np.exp(log_cells()))
    with shrunk(likelihood) as model:
        step = PairwiseCells([model["cells"]], rng=3)
        cells = model.initial_point()["cells"]
    for _ in range(draws):
        [c] = np.flatnonzero((COMPLETIONS == cells).all(axis=1))
        scale = rng.choice(GRID, p=softmax(logp[:, c]))
        point, _ = step.step({"scale_log__": np.log(scale), "cells": cells})
        cells = point["cells"]
        seen.append((scale, cells))
    values = statistics(*map(np.array, zip(*seen, strict=True)))
    g, c = (v.ravel() for v in np.indices(logp.shape))
    wanted = law.ravel() @ statistics(GRID[g], COMPLETIONS[c])
    mean, error, _ = mean_and_error(values[100:])
    return (mean - wanted) / error


def test_the_law_of_the_chain_is_the_posterior_where_there_is_one():
    logp = log_joint("exact")
    law = stationary(softmax(logp, axis=0), np.exp(log_cells()))
    np.testing.assert_allclose(law, softmax(logp), rtol=1e-9)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_cells_and_weights_have_their_joint_law(likelihood):
    # The largest of nine t statistics with 49 degrees of freedom.
    assert np.abs(z_scores(likelihood)).max() < 4


def test_cells_given_the_weights_of_the_start_are_noticed(monkeypatch):
    right = module._Table.draw

    def stale(self, rng, point):
        first = self.values(point)
        self.values = lambda _: first
        return right(self, rng, point)

    monkeypatch.setattr(module._Table, "draw", stale)
    assert np.abs(z_scores("exact")).max() > 6


def test_pm_sample_draws_cells_and_weights_in_turn():
    with shrunk("pseudo") as model:
        idata = pm.sample(
            20,
            tune=10,
            chains=2,
            cores=1,
            random_seed=5,
            progressbar=False,
            quiet=True,
            step=[pm.Slice([model["scale"]])],
            compute_convergence_checks=False,
        )
    changed = idata["sample_stats"]["cells_changed"]
    assert 0 < changed.mean() < 1
    assert (idata["posterior"]["cells"].std(("chain", "draw")) > 0).all()


class Joint:
    """Both simulators of a field with the exact likelihood and one of a few settings of its parameters."""

    def __init__(self, potentials, n=4, settings=2):
        rng = np.random.default_rng(2)
        self.n, self.states = n, all_states(potentials.states)
        self.bias = 0.5 * rng.normal(size=(settings, potentials.bias_size))
        self.weight = rng.normal(size=(settings, potentials.weight_size))
        pairs = zip(self.bias, self.weight, strict=True)
        self.laws = np.array([exact_distribution(potentials, *own)[1] for own in pairs])
        self.shape = potentials.states
        self.missing = np.zeros((n, potentials.p), bool)
        self.missing[0, 1] = self.missing[1, 0] = self.missing[1, 2] = self.missing[2] = True
        with pm.Model():
            setting = pm.DiscreteUniform("setting", 0, settings - 1)
            self.rows = pm.Data("rows", np.zeros((n, potentials.p), np.int32))
            bias, weight = (pt.as_tensor_variable(v)[setting] for v in (self.bias, self.weight))
            cells = field(potentials, bias, weight, "exact", self.rows, self.missing)
            self.step = PairwiseCells([cells], rng=1)

    def draw_rows(self, rng, setting):
        law = self.laws[setting]
        return self.states[rng.choice(len(law), self.n, p=law)]

    def forward(self, rng):
        setting = rng.integers(len(self.laws))
        return setting, self.draw_rows(rng, setting)

    def transition(self, rng, state):
        setting, rows = state
        self.rows.set_value(rows.astype(np.int32))
        cells = np.zeros(self.missing.sum(), int) + rows[self.missing]
        point, _ = self.step.step({"setting": np.array(setting), "cells": cells})
        rows = rows.copy()
        rows[self.missing] = point["cells"]
        index = np.ravel_multi_index(rows.T, self.shape)
        setting = rng.choice(len(self.laws), p=softmax(np.log(self.laws[:, index]).sum(axis=1)))
        return setting, np.array(
            [self.observed_anew(rng, setting, *v) for v in zip(rows, self.missing)]
        )

    def observed_anew(self, rng, setting, row, gap):
        """Draw the observed cells of a row given the missing ones, which so carry over what the step did."""
        same = (self.states[:, gap] == row[gap]).all(axis=1)
        law = np.where(same, self.laws[setting], 0.0)
        return self.states[rng.choice(len(law), p=law / law.sum())]

    def statistics(self, state):
        setting, rows = state
        out = {f"setting {k}": setting == k for k in range(len(self.laws))}
        for i in range(3):
            out |= {f"x {i}{j}": v for j, v in enumerate(rows[i])}
            out |= {f"x {i}{j} squared": v**2 for j, v in enumerate(rows[i])}
            out |= {f"first setting and x {i}": (setting == 0) * rows[i].sum()}
            out |= {f"xx {i}": rows[i, 0] * rows[i, 1], f"xxx {i}": rows[i, 1] * rows[i, 2]}
        return out


def joint_law(draws):
    joint = Joint(Potentials("full", (3, 2, 3)))
    return assert_geweke(joint.forward, joint.transition, joint.statistics, draws=draws)


def test_settings_and_rows_have_their_joint_law():
    joint_law(4_000)


@pytest.mark.calibration
def test_settings_and_rows_have_their_joint_law_in_a_long_run(full):
    joint_law(40_000 if full else 500)


def test_cells_that_follow_their_neighbours_too_much_break_the_joint_law(monkeypatch):
    right = module.MissingDraws.__call__

    def doubled(self, rng, table, cells, weight, bias):
        return right(self, rng, table, cells, 2.0 * weight, bias)

    monkeypatch.setattr(module.MissingDraws, "__call__", doubled)
    with pytest.raises(AssertionError, match="worst z"):
        joint_law(4_000)


# Which models, and what is said of others.


def gaps(kind=float):
    table = np.random.default_rng(3).integers(0, 2, (40, 3)).astype(kind)
    table[0, 0] = table[4, 1] = table[4, 2] = np.nan
    return table


MODELS = {
    "laplace": lambda: bs.models.ising(gaps(), prior="laplace", likelihood="exact"),
    "horseshoe": lambda: bs.models.ising(gaps(), prior="horseshoe", coding="pm"),
    "group laplace": lambda: bs.models.pairwise_mrf(gaps(), prior="group_laplace"),
}


@pytest.mark.parametrize("name", MODELS)
def test_cells_are_assigned_and_drawn_at_the_start(name):
    model = MODELS[name]()
    _, methods = pm.sampling.mcmc.assign_step_methods(model)  # outside of a context
    assert [v.name for v in methods[PairwiseCells]] == ["x_missing"]
    with model:
        assert PairwiseCells.competence(model["x_missing"], False) == Competence.IDEAL
        step = PairwiseCells([model["x_missing"]], rng=1)
        drawn = [step.step(model.initial_point())[0]["x_missing"] for _ in range(30)]
    np.testing.assert_array_equal(np.unique(drawn), [0, 1])


def test_the_step_of_absent_edges_keeps_its_cells_unless_the_weights_are_set():
    model = bs.models.ising(gaps())
    _, methods = pm.sampling.mcmc.assign_step_methods(model)
    assert PairwiseCells not in methods
    with model:
        _, methods = pm.sampling.mcmc.assign_step_methods(model)
        assert PairwiseCells not in methods
    with pm.do(model, {"weight": np.zeros(3)}) as fixed:
        _, methods = pm.sampling.mcmc.assign_step_methods(fixed)
    assert [v.name for v in methods[PairwiseCells]] == ["x_missing"]
    assert PairwiseSpikeSlab not in methods


def observed_too(cells, bias):
    pm.Normal("y", cells.sum(), 1.0, observed=0.0)
    return cells, bias


def with_a_potential(cells, bias):
    pm.Potential("y", -cells.sum())
    return cells, bias


def in_the_biases(cells, bias):
    return cells, bias + cells.sum()


def transformed(cells, bias):
    return 1 - cells, bias


def of_two_tables(cells, bias):
    table(cells, bias, "other")
    return cells, bias


POTENTIALS = Potentials("ordinal", (2, 2, 2))
GAP = np.zeros((4, 3), bool)
GAP[0, 0] = GAP[1, 2] = True


def table(cells, bias, name="x"):
    bs.distributions.IncompletePairwiseMRF(
        name,
        bias,
        np.ones(3),
        cells,
        missing=GAP,
        potentials=POTENTIALS,
        observed=np.zeros((4, 3), int),
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (observed_too, "'y' depends on 'cells'"),
        (with_a_potential, "'y' depends on 'cells'"),
        (in_the_biases, "biases or weights of 'x' depend on 'cells'"),
        (transformed, "'cells' is not the vector of missing values of 'x' itself"),
        (of_two_tables, "does not belong to one IncompletePairwiseMRF"),
    ],
)
def test_cells_that_something_else_depends_on_are_left_to_others(change, reason):
    with pm.Model() as model:
        table(*change(bs.distributions.MissingStates("cells", [2, 2]), np.zeros(3)))
        check_refused(model, reason)


PRIORS = {
    "unequal": lambda: pm.Categorical("cells", [0.4, 0.6], shape=2),
    "too few states": lambda: pm.Categorical("cells", [1.0], shape=2),
    "unknown": lambda: pm.Categorical("cells", pm.Dirichlet("p", np.ones(2)), shape=2),
    "another law": lambda: pm.Bernoulli("cells", 0.5, shape=2),
}


@pytest.mark.parametrize("name", PRIORS)
def test_cells_with_another_prior_are_left_to_others(name):
    with pm.Model() as model:
        table(PRIORS[name](), np.zeros(3))
        check_refused(model, "is not (uniform|bayesstruct.distributions.MissingStates)")


def check_refused(model, reason):
    assert PairwiseCells.competence(model["cells"], False) == Competence.INCOMPATIBLE
    with pytest.raises(ValueError, match=f"'cells' cannot be drawn exactly: .*{reason}"):
        PairwiseCells([model["cells"]])


def test_what_the_field_does_not_look_at_is_no_obstacle():
    with pm.Model() as model:
        cells = pm.Categorical("cells", [0.5, 0.5, 0.0], shape=2)
        pm.Deterministic("total", cells.sum())
        table(cells, np.zeros(3))
        assert PairwiseCells.competence(model["cells"], False) == Competence.IDEAL


def test_wrong_states_and_numbers_of_cells_are_named():
    with pm.Model() as model:
        table(pm.Categorical("cells", [0.5, 0.5], shape=1), np.zeros(3))
        step = PairwiseCells([model["cells"]])
    with pytest.raises(ValueError, match=r"2 missing values, their variable has the shape \(1,\)"):
        step.step({"cells": np.zeros(1, int)})
    with pytest.raises(ValueError, match="a state that does not exist"):
        step.step({"cells": np.array([0, 2])})


def test_a_new_table_is_used_at_once():
    """Neighbours that attract each other so that a missing cell is what the others are."""
    missing = np.zeros((3, 2), bool)
    missing[:, 0] = True
    with pm.Model():
        rows = pm.Data("rows", np.zeros((3, 2), np.int32))
        potentials = Potentials("spin", (2, 2))
        cells = field(potentials, np.zeros(2), np.array([20.0]), "exact", rows, missing)
        step = PairwiseCells([cells], rng=2)
    for value in ([0, 1, 0], [1, 1, 0]):
        rows.set_value(np.column_stack([np.zeros(3), value]).astype(np.int32))
        point, _ = step.step({"cells": np.zeros(3, int)})
        np.testing.assert_array_equal(point["cells"], value)


def test_a_saved_step_continues_bit_for_bit():
    potentials = CASES["ordinal"]
    runs, saved = [], None
    for seed in (1, 2):
        step, start, _, _ = copies(potentials, "pseudo")
        step.setup_chain(np.random.default_rng(seed), 0, 4)
        if saved is None:
            middle, _ = step.step(start)
            saved = snapshot(step)
        else:
            restore(step, saved)
        point, _ = step.step(middle)
        runs.append([point["cells"], step.step(point)[0]["cells"]])
    np.testing.assert_array_equal(*runs)
    assert (runs[0][0] != runs[0][1]).any()


@pytest.mark.parametrize(
    ("prior", "slope", "reason"),
    [
        (PRIORS["unequal"], 0.0, "the prior of 'cells' is not uniform"),
        (lambda: bs.distributions.MissingStates("cells", [2, 2]), 1.0, "depend on 'cells'"),
    ],
)
def test_the_step_of_absent_edges_refuses_such_cells_too(prior, slope, reason):
    with pm.Model() as model:
        cells = prior()
        bias = slope * cells.sum() * np.ones(3) if slope else np.zeros(3)
        weight = bs.SpikeAndSlab("weight", shape=3)
        bs.distributions.IncompletePairwiseMRF(
            "x",
            bias,
            weight,
            cells,
            missing=GAP,
            potentials=POTENTIALS,
            observed=np.zeros((4, 3), int),
        )
        with pytest.raises(ValueError, match=reason):
            PairwiseSpikeSlab([model["weight"], model["cells"]])
