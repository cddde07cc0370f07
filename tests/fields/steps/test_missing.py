"""Missing values of Markov random fields against all their completions, with and without unknown weights."""

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


def log_density(potentials, bias, weight, likelihood):
    """Log density of every joint state but for a constant, from their energies one by one."""
    energy = energies(potentials, bias, weight).reshape(potentials.states)
    if likelihood == "exact":
        return energy
    axes = range(potentials.p)
    return sum(energy - logsumexp(energy, axis=i, keepdims=True) for i in axes)


def completion_probabilities(potentials, bias, weight, row, gap, likelihood="exact"):
    """Probability of every completion of a row in the field, flat."""
    seen = tuple(slice(None) if i in gap else s for i, s in enumerate(row))
    return softmax(log_density(potentials, bias, weight, likelihood)[seen]).ravel()


def parameters(potentials, seed=4):
    rng = np.random.default_rng(seed)
    return tuple(0.7 * rng.normal(size=k) for k in (potentials.bias_size, potentials.weight_size))


def field(potentials, bias, weight, likelihood, codes, missing, **kwargs):
    """Add a table with gaps to the model; return its missing values."""
    values = bs.distributions.MissingStates(
        "values", np.array(potentials.states)[np.nonzero(missing)[1]]
    )
    bs.distributions.IncompletePairwiseMRF(
        "x",
        bias,
        weight,
        values,
        missing=missing,
        potentials=potentials,
        likelihood=likelihood,
        observed=codes,
        **kwargs,
    )
    return values


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
        values = field(potentials, bias, weight, likelihood, table, where)
        step = PairwiseCells([values], rng=1)
    return step, {"values": np.zeros(where.sum(), int)}, rows, model


def p_values(step, point, rows, potentials, distribution=completion_probabilities):
    """Of the number of copies in each completion, one for each kind of row: copies are independent."""
    for _ in range(SWEEPS):
        point, _ = step.step(point)
    out, start, bias_weight = [], 0, parameters(potentials)
    for row, gap in zip(rows, GAPS, strict=True):
        values = point["values"][start : (start := start + COPIES * len(gap))].reshape(COPIES, -1)
        p = distribution(potentials, *bias_weight, row, gap)
        index = np.ravel_multi_index(values.T, [potentials.states[i] for i in gap])
        counts = np.bincount(index, minlength=len(p))
        rare = (
            COPIES * p < 5
        )  # together, so that the distribution of the statistic is that of chi-square
        counts, p = (np.r_[v[~rare], v[rare].sum()] for v in (counts, p))
        if COPIES * p[-1] < 5:
            counts, p = (np.r_[v[:-2], v[-2:].sum()] for v in (counts, p))
        out.append(stats.chisquare(counts, COPIES * p).pvalue)
    return np.array(out)


@pytest.mark.statistical
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("name", CASES)
def test_values_have_their_distribution_in_the_field_at_fixed_weights(name, likelihood):
    potentials = CASES[name]
    step, point, rows, _ = copies(potentials, likelihood)
    assert p_values(step, point, rows, potentials).min() > 1e-4


def test_the_cases_have_rows_of_one_block_and_of_several():
    sizes = [np.prod(potentials.states[:3]) for potentials in CASES.values()]
    assert min(sizes) <= BLOCK < max(sizes)


@pytest.mark.statistical
def test_the_distribution_of_the_composite_density_is_noticed():
    """In it a cell is also a condition of its neighbours, which so count twice."""
    potentials = CASES["full"]
    composite = functools.partial(completion_probabilities, likelihood="pseudo")
    step, point, rows, _ = copies(potentials, "pseudo")
    assert p_values(step, point, rows, potentials, composite).min() < 1e-8


@pytest.mark.statistical
def test_values_of_a_row_drawn_given_their_states_of_before_are_noticed(monkeypatch):
    """All values at once, each given the others as they were: right for rows with one gap only."""
    right = module.MissingDraws.__call__

    def at_once(self, rng, table, values, weight, bias):
        out, all_rows, columns = np.array(values), self.rows, self.columns
        filled = np.array(table[self.gaps])
        filled[all_rows, columns] = values
        for i in np.unique(columns):
            here = columns == i
            self.rows, self.columns, self.gaps = all_rows[here], columns[here], slice(None)
            out[here] = right(self, rng, filled, values[here], weight, bias)
        self.rows, self.columns, self.gaps = all_rows, columns, np.arange(len(filled))
        return out

    monkeypatch.setattr(module.MissingDraws, "__call__", at_once)
    potentials = CASES["ordinal"]
    step, point, rows, _ = copies(potentials, "exact")
    one, *several = p_values(step, point, rows, potentials)
    assert one > 1e-4
    assert min(several) < 1e-8


# Weights and values together.

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
        distribution = log_density(SMALL, BIAS - 0.3 * scale, scale * DIRECTION, likelihood)
        distribution = distribution - (logsumexp(distribution) if likelihood == "exact" else 0.0)
        out[g] = distribution[tuple(np.moveaxis(tables, -1, 0))].sum(axis=1) - scale**2 / 2
    return out


def statistics(scale, values):
    both = [scale, scale**2, values[:, 0] * values[:, 1]]
    return np.column_stack([*both, values, scale[:, None] * values])


def log_values():
    """Log probability of each completion at each scale of the grid, in the field."""
    logp = log_joint("exact")
    return logp - logsumexp(logp, axis=1, keepdims=True)


def stationary(scales, values):
    """Distribution of a scale drawn given a completion and the next completion drawn given it, (grid, completions).

    Parameters
    ----------
    scales, values : (grid, completions) arrays
        Probability of a scale given a completion, and of a completion given a scale.
    """
    between = scales.T @ values
    roots, vectors = np.linalg.eig(between.T)
    own = vectors[:, np.argmax(roots.real)].real
    return (scales @ (own / own.sum()))[:, None] * values


def z_scores(likelihood, draws=3_000):
    """Values by the step and the scale by its distribution on the grid in turn, against all of both."""
    logp, rng, seen = log_joint(likelihood), np.random.default_rng(11), []
    distribution = stationary(softmax(logp, axis=0), np.exp(log_values()))
    with shrunk(likelihood) as model:
        step = PairwiseCells([model["values"]], rng=3)
        values = model.initial_point()["values"]
    for _ in range(draws):
        [c] = np.flatnonzero((COMPLETIONS == values).all(axis=1))
        scale = rng.choice(GRID, p=softmax(logp[:, c]))
        point, _ = step.step({"scale_log__": np.log(scale), "values": values})
        values = point["values"]
        seen.append((scale, values))
    found = statistics(*map(np.array, zip(*seen, strict=True)))
    g, c = (v.ravel() for v in np.indices(logp.shape))
    wanted = distribution.ravel() @ statistics(GRID[g], COMPLETIONS[c])
    mean, error, _ = mean_and_error(found[100:])
    return (mean - wanted) / error


def test_the_distribution_of_the_chain_is_the_posterior_where_there_is_one():
    logp = log_joint("exact")
    distribution = stationary(softmax(logp, axis=0), np.exp(log_values()))
    np.testing.assert_allclose(distribution, softmax(logp), rtol=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_values_and_weights_have_their_joint_distribution(likelihood):
    # The largest of nine t statistics with 49 degrees of freedom.
    assert np.abs(z_scores(likelihood)).max() < 4


@pytest.mark.statistical
def test_values_given_the_weights_of_the_start_are_noticed(monkeypatch):
    right = module._Table.draw

    def stale(self, rng, point):
        first = self.values(point)
        self.values = lambda _: first
        return right(self, rng, point)

    monkeypatch.setattr(module._Table, "draw", stale)
    assert np.abs(z_scores("exact")).max() > 6


@pytest.mark.chain
def test_pm_sample_draws_values_and_weights_in_turn():
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
    assert (idata["posterior"]["values"].std(("chain", "draw")) > 0).all()


class Joint:
    """Both simulators of a field with the exact likelihood and one of a few settings of its parameters."""

    def __init__(self, potentials, n=4, settings=2):
        rng = np.random.default_rng(2)
        self.n, self.states = n, all_states(potentials.states)
        self.bias = 0.5 * rng.normal(size=(settings, potentials.bias_size))
        self.weight = rng.normal(size=(settings, potentials.weight_size))
        pairs = zip(self.bias, self.weight, strict=True)
        self.distributions = np.array([exact_distribution(potentials, *own)[1] for own in pairs])
        self.shape = potentials.states
        self.missing = np.zeros((n, potentials.p), bool)
        self.missing[0, 1] = self.missing[1, 0] = self.missing[1, 2] = self.missing[2] = True
        with pm.Model():
            setting = pm.DiscreteUniform("setting", 0, settings - 1)
            self.rows = pm.Data("rows", np.zeros((n, potentials.p), np.int32))
            bias, weight = (pt.as_tensor_variable(v)[setting] for v in (self.bias, self.weight))
            values = field(potentials, bias, weight, "exact", self.rows, self.missing)
            self.step = PairwiseCells([values], rng=1)

    def draw_rows(self, rng, setting):
        distribution = self.distributions[setting]
        return self.states[rng.choice(len(distribution), self.n, p=distribution)]

    def forward(self, rng):
        setting = rng.integers(len(self.distributions))
        return setting, self.draw_rows(rng, setting)

    def transition(self, rng, state):
        setting, rows = state
        self.rows.set_value(rows.astype(np.int32))
        values = np.zeros(self.missing.sum(), int) + rows[self.missing]
        point, _ = self.step.step({"setting": np.array(setting), "values": values})
        rows = rows.copy()
        rows[self.missing] = point["values"]
        index = np.ravel_multi_index(rows.T, self.shape)
        setting = rng.choice(
            len(self.distributions), p=softmax(np.log(self.distributions[:, index]).sum(axis=1))
        )
        return setting, np.array(
            [self.observed_anew(rng, setting, *v) for v in zip(rows, self.missing)]
        )

    def observed_anew(self, rng, setting, row, gap):
        """Draw the observed values of a row given the missing ones, which so carry over what the step did."""
        same = (self.states[:, gap] == row[gap]).all(axis=1)
        distribution = np.where(same, self.distributions[setting], 0.0)
        return self.states[rng.choice(len(distribution), p=distribution / distribution.sum())]

    def statistics(self, state):
        setting, rows = state
        out = {f"setting {k}": setting == k for k in range(len(self.distributions))}
        for i in range(3):
            out |= {f"x {i}{j}": v for j, v in enumerate(rows[i])}
            out |= {f"x {i}{j} squared": v**2 for j, v in enumerate(rows[i])}
            out |= {f"first setting and x {i}": (setting == 0) * rows[i].sum()}
            out |= {f"xx {i}": rows[i, 0] * rows[i, 1], f"xxx {i}": rows[i, 1] * rows[i, 2]}
        return out


def joint_distribution(draws):
    joint = Joint(Potentials("full", (3, 2, 3)))
    return assert_geweke(joint.forward, joint.transition, joint.statistics, draws=draws)


@pytest.mark.statistical
def test_settings_and_rows_have_their_joint_distribution():
    joint_distribution(4_000)


@pytest.mark.calibration
def test_settings_and_rows_have_their_joint_distribution_in_a_long_run(full):
    joint_distribution(40_000 if full else 500)


@pytest.mark.statistical
def test_values_that_follow_their_neighbours_too_much_break_the_joint_distribution(monkeypatch):
    right = module.MissingDraws.__call__

    def doubled(self, rng, table, values, weight, bias):
        return right(self, rng, table, values, 2.0 * weight, bias)

    monkeypatch.setattr(module.MissingDraws, "__call__", doubled)
    with pytest.raises(AssertionError, match="worst z"):
        joint_distribution(4_000)


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


@pytest.mark.chain
@pytest.mark.parametrize("name", MODELS)
def test_values_are_assigned_and_drawn_at_the_start(name):
    model = MODELS[name]()
    _, methods = pm.sampling.mcmc.assign_step_methods(model)  # outside of a context
    assert [v.name for v in methods[PairwiseCells]] == ["x_missing"]
    with model:
        assert PairwiseCells.competence(model["x_missing"], False) == Competence.IDEAL
        step = PairwiseCells([model["x_missing"]], rng=1)
        drawn = [step.step(model.initial_point())[0]["x_missing"] for _ in range(30)]
    np.testing.assert_array_equal(np.unique(drawn), [0, 1])


def test_the_step_of_absent_edges_keeps_its_values_unless_the_weights_are_set():
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


def observed_too(values, bias):
    pm.Normal("y", values.sum(), 1.0, observed=0.0)
    return values, bias


def with_a_potential(values, bias):
    pm.Potential("y", -values.sum())
    return values, bias


def in_the_biases(values, bias):
    return values, bias + values.sum()


def transformed(values, bias):
    return 1 - values, bias


def of_two_tables(values, bias):
    table(values, bias, "other")
    return values, bias


POTENTIALS = Potentials("ordinal", (2, 2, 2))
GAP = np.zeros((4, 3), bool)
GAP[0, 0] = GAP[1, 2] = True


def table(values, bias, name="x"):
    bs.distributions.IncompletePairwiseMRF(
        name,
        bias,
        np.ones(3),
        values,
        missing=GAP,
        potentials=POTENTIALS,
        observed=np.zeros((4, 3), int),
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (observed_too, "'y' depends on 'values'"),
        (with_a_potential, "'y' depends on 'values'"),
        (in_the_biases, "biases or weights of 'x' depend on 'values'"),
        (transformed, "'values' is not the vector of missing values of 'x' itself"),
        (of_two_tables, "does not belong to one IncompletePairwiseMRF"),
    ],
)
def test_values_that_something_else_depends_on_are_left_to_others(change, reason):
    with pm.Model() as model:
        table(*change(bs.distributions.MissingStates("values", [2, 2]), np.zeros(3)))
        check_refused(model, reason)


PRIORS = {
    "unequal": lambda: pm.Categorical("values", [0.4, 0.6], shape=2),
    "too few states": lambda: pm.Categorical("values", [1.0], shape=2),
    "unknown": lambda: pm.Categorical("values", pm.Dirichlet("p", np.ones(2)), shape=2),
    "another distribution": lambda: pm.Bernoulli("values", 0.5, shape=2),
}


@pytest.mark.parametrize("name", PRIORS)
def test_values_with_another_prior_are_left_to_others(name):
    with pm.Model() as model:
        table(PRIORS[name](), np.zeros(3))
        check_refused(model, "is not (uniform|bayesstruct.distributions.MissingStates)")


def check_refused(model, reason):
    assert PairwiseCells.competence(model["values"], False) == Competence.INCOMPATIBLE
    with pytest.raises(ValueError, match=f"'values' cannot be drawn exactly: .*{reason}"):
        PairwiseCells([model["values"]])


def test_what_the_field_does_not_look_at_is_no_obstacle():
    with pm.Model() as model:
        values = pm.Categorical("values", [0.5, 0.5, 0.0], shape=2)
        pm.Deterministic("total", values.sum())
        table(values, np.zeros(3))
        assert PairwiseCells.competence(model["values"], False) == Competence.IDEAL


def test_wrong_states_and_numbers_of_values_are_named():
    with pm.Model() as model:
        table(pm.Categorical("values", [0.5, 0.5], shape=1), np.zeros(3))
        step = PairwiseCells([model["values"]])
    with pytest.raises(ValueError, match=r"2 missing values, their variable has the shape \(1,\)"):
        step.step({"values": np.zeros(1, int)})
    with pytest.raises(ValueError, match="a state that does not exist"):
        step.step({"values": np.array([0, 2])})


def test_a_new_table_is_used_at_once():
    """Neighbours that attract each other so that a missing value is what the others are."""
    missing = np.zeros((3, 2), bool)
    missing[:, 0] = True
    with pm.Model():
        rows = pm.Data("rows", np.zeros((3, 2), np.int32))
        potentials = Potentials("spin", (2, 2))
        values = field(potentials, np.zeros(2), np.array([20.0]), "exact", rows, missing)
        step = PairwiseCells([values], rng=2)
    for value in ([0, 1, 0], [1, 1, 0]):
        rows.set_value(np.column_stack([np.zeros(3), value]).astype(np.int32))
        point, _ = step.step({"values": np.zeros(3, int)})
        np.testing.assert_array_equal(point["values"], value)


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
        runs.append([point["values"], step.step(point)[0]["values"]])
    np.testing.assert_array_equal(*runs)
    assert (runs[0][0] != runs[0][1]).any()


@pytest.mark.parametrize(
    ("prior", "slope", "reason"),
    [
        (PRIORS["unequal"], 0.0, "the prior of 'values' is not uniform"),
        (lambda: bs.distributions.MissingStates("values", [2, 2]), 1.0, "depend on 'values'"),
    ],
)
def test_the_step_of_absent_edges_refuses_such_values_too(prior, slope, reason):
    with pm.Model() as model:
        values = prior()
        bias = slope * values.sum() * np.ones(3) if slope else np.zeros(3)
        weight = bs.SpikeAndSlab("weight", shape=3)
        bs.distributions.IncompletePairwiseMRF(
            "x",
            bias,
            weight,
            values,
            missing=GAP,
            potentials=POTENTIALS,
            observed=np.zeros((4, 3), int),
        )
        with pytest.raises(ValueError, match=reason):
            PairwiseSpikeSlab([model["weight"], model["values"]])
