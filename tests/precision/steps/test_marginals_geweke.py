"""Joint-distribution tests of t rows and of columns that count by their order, and of updates that are wrong on purpose."""

import numpy as np
import pymc as pm
import pytest

from tools.geweke import assert_geweke
from tools.priors import laplace_prior, spike_slab_prior

import bayesstruct as bs

from bayesstruct.data.ranks import FREE, KNOWN
from bayesstruct.distributions import (
    ColumnMeans,
    DegreesOfFreedom,
    GraphicalStudent,
    IncompleteGraphicalStudent,
    LatentValues,
    MissingStudentValues,
    MissingWeightedValues,
    ValueWeights,
)
from bayesstruct.precision.kernels.cholesky import pack_cholesky, unpack_cholesky
from bayesstruct.precision.kernels.rows import choices, ranks, value_weights
from bayesstruct.precision.kernels.rows import degrees as degrees_kernel
from bayesstruct.precision.kernels.rows.latent_tables import LatentRows
from bayesstruct.precision.kernels.rows.tables import StudentRows, WeightedRows
from bayesstruct.steps import PrecisionGibbs

P, N = 3, 6
SCALES = {"spike_scale": 0.25, "slab_scale": 1.0, "diagonal_rate": 0.5}
PAIRS = np.triu_indices(P, 1)
LOCATION, SCALE = np.array([1.0, -3.0, 0.0]), np.array([2.0, 0.5, 1.0])
MISSING = np.zeros((N, P), bool)
MISSING[0, 1] = MISSING[2, 0] = MISSING[2, 2] = True
# Of the ranks in a column: one level for each, two levels, three.
LEVELS = np.array([np.arange(N), [0, 0, 0, 0, 1, 1], [0, 1, 1, 2, 2, 2]])


class Joint:
    """Both simulators of one model; subclasses have the rows."""

    def __init__(self, prior, seed=0):
        self.prior = prior
        with pm.Model() as model:
            if prior == "spike_slab":
                matrix = bs.GraphicalSpikeSlab("K", P, 0.4, **SCALES)
                bs.distributions.Edges("edge", matrix)
            else:
                matrix = bs.GraphicalLasso("K", P, 1.3)
            self.build(matrix)
            self.step = PrecisionGibbs(model.free_RVs, rng=seed)
        self.part = self.step.parts[0]
        self.pool = []

    def matrix(self, rng):
        """Draw from the prior by rejection: the matrix, and its edges if it has some."""
        if not self.pool and self.prior == "laplace":
            self.pool = [(k, None) for k in laplace_prior(rng, 4_000, P, rate=1.3)]
        elif not self.pool:
            scales = {"spike": 0.25, "slab": 1.0, "diagonal_rate": 0.5}
            k, edge, _ = spike_slab_prior(rng, 4_000, P, probability=0.4, **scales)
            self.pool = [*zip(k, edge.astype(int), strict=True)]
        return self.pool.pop()

    def forward(self, rng):
        K, edge = self.matrix(rng)
        point = {"K_cholesky-cov__": pack_cholesky(K)} | self.others(rng)
        if edge is not None:
            point["edge"] = edge
        return self.with_rows(rng, point)

    def transition(self, rng, state):
        self.load(state)
        point, _ = self.step.step(state[0])
        return self.with_rows(rng, dict(point))

    def statistics(self, state):
        point, K = state[0], unpack_cholesky(state[0]["K_cholesky-cov__"], P)[0]
        u = K[PAIRS]
        rho = -u / np.sqrt(np.diag(K)[PAIRS[0]] * np.diag(K)[PAIRS[1]])
        out = {f"k{i}": v for i, v in enumerate(np.tanh(u))} | {
            f"r{i}": v for i, v in enumerate(rho)
        }
        out |= {f"r{i}^2": v * v for i, v in enumerate(rho)} | {"log det": np.linalg.slogdet(K)[1]}
        out |= {f"log d{i}": v for i, v in enumerate(np.log(np.diag(K)))}
        if "edge" in point:
            edges = point["edge"]
            out |= {f"edge{i}": v for i, v in enumerate(edges)}
            out |= {"edge rho": (edges * rho**2).sum()}
        if "mean" in point:
            out |= {f"mean{i}": v for i, v in enumerate(point["mean"])}
            out |= {"mean^2": (point["mean"] ** 2).mean()}
        return out | self.of_rows(state, rho)

    def check(self, draws, seed=1):
        return assert_geweke(
            self.forward, self.transition, self.statistics, draws=draws, chains=20, seed=seed
        )


class StudentJoint(Joint):
    """Rows with a t distribution, some values missing, and random degrees of freedom."""

    def __init__(self, prior, gaps=True):
        self.gaps = gaps
        super().__init__(prior)

    def build(self, matrix):
        mean = ColumnMeans("mean", 0.5, 0.8, shape=P)
        rows = (mean, matrix, LOCATION, SCALE, DegreesOfFreedom("degrees", 4.0, 0.8))
        self.rows = pm.Data("rows", np.zeros((N, P)))
        if self.gaps:
            MissingStudentValues("x_missing", *rows, table=np.zeros((N, P)), missing=MISSING)
            IncompleteGraphicalStudent("x", *rows, missing=MISSING, observed=self.rows)
        else:
            GraphicalStudent("x", *rows, observed=self.rows)

    def others(self, rng):
        mean = 0.5 + 0.8 * rng.normal(size=P)
        return {"mean": mean, "degrees_log__": np.log(rng.gamma(4.0, 1 / 0.8))}

    def with_rows(self, rng, point):
        covariance = unpack_cholesky(point["K_cholesky-cov__"], P)[1]
        nu = np.exp(point["degrees_log__"])
        e = rng.normal(size=(N, P)) @ np.linalg.cholesky(covariance).T
        e /= np.sqrt(rng.gamma(nu / 2, 2 / nu, size=N))[:, None]
        rows = LOCATION + SCALE * (point["mean"] + e)
        if self.gaps:
            point["x_missing"] = rows[MISSING]
        return point, rows

    def load(self, state):
        self.rows.set_value(np.where(MISSING, 99.0, state[1]) if self.gaps else state[1])
        self.part.forget()

    def of_rows(self, state, rho):
        point, rows = state
        z = np.tanh(0.3 * (rows - LOCATION) / SCALE)
        nu = point["degrees_log__"]
        out = {"log nu": nu, "log nu^2": nu**2, "z": z.mean(), "z^2": (z**2).mean()}
        out |= {"nu z^2": nu * (z**2).mean(), "zz": (z[:, 0] * z[:, 1]).mean() * rho[0]}
        return out | {"missing": z[MISSING].mean(), "missing mean": (z[0, 1] * point["mean"][1])}


class AlternativeJoint(StudentJoint):
    """Rows with an alternative t distribution, some values missing, and random degrees of freedom."""

    def build(self, matrix):
        mean = ColumnMeans("mean", 0.5, 0.8, shape=P)
        rows = (mean, matrix, LOCATION, SCALE)
        self.missing = MISSING if self.gaps else np.zeros((N, P), bool)
        known = {"table": np.zeros((N, P)), "missing": self.missing}
        degrees = DegreesOfFreedom("degrees", 4.0, 0.8)
        weights = ValueWeights("w", *rows, degrees, **known)
        if self.gaps:
            MissingWeightedValues("x_missing", *rows, weights, **known)

    def others(self, rng):
        point = super().others(rng)
        nu = np.exp(point["degrees_log__"])
        return point | {"w_log__": np.log(rng.gamma(nu / 2, 2 / nu, size=(N, P)))}

    def with_rows(self, rng, point):
        covariance = unpack_cholesky(point["K_cholesky-cov__"], P)[1]
        e = rng.normal(size=(N, P)) @ np.linalg.cholesky(covariance).T
        rows = LOCATION + SCALE * (point["mean"] + e / np.exp(0.5 * point["w_log__"]))
        if self.gaps:
            point["x_missing"] = rows[MISSING]
        return point, rows

    def load(self, state):
        self.part.values.tables = [WeightedRows(state[1], LOCATION, SCALE, self.missing)]

    def of_rows(self, state, rho):
        w = state[0]["w_log__"]
        small = np.exp(np.minimum(w, 1.0))
        out = {"w": small.mean(), "w^2": (small**2).mean(), "log w": np.maximum(w, -3.0).mean()}
        out |= {"w nu": small.mean() * state[0]["degrees_log__"], "w rho": small[0, 1] * rho[0]}
        return super().of_rows(state, rho) | out


class OrderJoint(Joint):
    """Columns that count by their order, all of them, or beside a column of numbers, with missing values."""

    def __init__(self, prior, mixed=False):
        self.mixed = mixed
        super().__init__(prior)

    def build(self, matrix):
        mean = ColumnMeans("mean", 0.5, 0.8, shape=P) if self.mixed else np.zeros(P)
        codes = np.zeros((N, P), int)
        if self.mixed:
            codes[:, 0] = KNOWN
            codes[2, 0] = FREE
        known = {"table": np.zeros((N, P)), "codes": codes, "start": np.zeros((N, P))}
        LatentValues("z", mean, matrix, 0.0, 1.0, **known)

    def others(self, rng):
        return {"mean": 0.5 + 0.8 * rng.normal(size=P)} if self.mixed else {}

    def with_rows(self, rng, point):
        covariance = unpack_cholesky(point["K_cholesky-cov__"], P)[1]
        z = point.get("mean", 0.0) + rng.normal(size=(N, P)) @ np.linalg.cholesky(covariance).T
        codes = LEVELS[np.arange(P), np.argsort(np.argsort(z, axis=0), axis=0)]
        codes[4, 1] = FREE
        if self.mixed:
            codes[:, 0] = KNOWN
            codes[2, 0] = FREE
        point["z"] = z[codes > KNOWN]
        return point, z, codes

    def load(self, state):
        _, z, codes = state
        self.part.values.tables = [LatentRows(z, np.zeros(P), np.ones(P), codes)]

    def of_rows(self, state, rho):
        _, z, codes = state
        out = {"codes": np.corrcoef(codes[:, 2], z[:, 0])[0, 1] * rho[1]}
        small = np.tanh(0.3 * z)
        return out | {"z": small.mean(), "z^2": (small**2).mean(), "r2 codes": rho[2] * codes[0, 2]}


class ChoiceJoint(Joint):
    """A column of numbers beside one of three states without an order, with missing values."""

    def build(self, matrix):
        mean = ColumnMeans("mean", 0.3, 0.8, shape=P)
        known = {"table": np.zeros((N, P)), "codes": self.codes(np.zeros((N, P)))}
        self.block = np.array([-1, 0, 0])
        LatentValues("z", mean, matrix, 0.0, 1.0, start=np.zeros((N, P)), block=self.block, **known)

    def codes(self, z):
        top = np.maximum(z[:, 1:].max(axis=1, keepdims=True), 0.0)
        codes = np.column_stack([np.full(N, KNOWN), z[:, 1:] == top]).astype(int)
        codes[2, 0] = codes[4, 1] = codes[4, 2] = FREE
        return codes

    def others(self, rng):
        return {"mean": 0.3 + 0.8 * rng.normal(size=P)}

    def with_rows(self, rng, point):
        covariance = unpack_cholesky(point["K_cholesky-cov__"], P)[1]
        z = point["mean"] + rng.normal(size=(N, P)) @ np.linalg.cholesky(covariance).T
        codes = self.codes(z)
        point["z"] = z[codes > KNOWN]
        return point, z, codes

    def load(self, state):
        _, z, codes = state
        self.part.values.tables = [LatentRows(z, np.zeros(P), np.ones(P), codes, self.block)]

    def of_rows(self, state, rho):
        point, z, codes = state
        small, seen = np.tanh(0.3 * z), np.delete(codes[:, 1:], 4, axis=0)
        out = {"z": small.mean(), "z^2": (small**2).mean(), "states": seen.mean()}
        out |= {
            "state mean": seen[:, 0].mean() * point["mean"][1],
            "r2 states": rho[2] * seen[0, 1],
        }
        return out | {"r0 states": rho[0] * (seen[:, 0] * np.delete(small[:, 0], 4)).mean()}


@pytest.mark.calibration
@pytest.mark.parametrize("prior", ["spike_slab", "laplace"])
def test_states_without_an_order_have_their_joint_distribution(prior, full):
    assert len(ChoiceJoint(prior).check(60_000 if full else 2_000)) > 20


@pytest.mark.calibration
@pytest.mark.parametrize("wrong", ["means", "units"])
def test_wrong_states_are_noticed(wrong, full, monkeypatch):
    right = choices.move_choices

    def means(*args):  # another prior of the means
        centre, sd = args[-2]
        right(*args[:-2], (centre, 3.0 * sd), args[-1])

    def units(*args):  # another prior of the diagonal
        shapes, variances, rates = args[-3]
        right(*args[:-3], (shapes, variances, 4.0 * rates), *args[-2:])

    monkeypatch.setattr(choices, "move_choices", means if wrong == "means" else units)
    with pytest.raises(AssertionError, match="worst z"):
        ChoiceJoint("laplace").check(30_000 if full else 1_500)


@pytest.mark.calibration
@pytest.mark.parametrize(("prior", "gaps"), [("spike_slab", True), ("laplace", False)])
def test_t_rows_have_their_joint_distribution(prior, gaps, full):
    assert len(StudentJoint(prior, gaps).check(60_000 if full else 2_000)) > 20


@pytest.mark.calibration
@pytest.mark.parametrize(("prior", "gaps"), [("spike_slab", True), ("laplace", False)])
def test_alternative_t_rows_have_their_joint_distribution(prior, gaps, full):
    assert len(AlternativeJoint(prior, gaps).check(60_000 if full else 2_000)) > 25


@pytest.mark.calibration
@pytest.mark.parametrize(("prior", "mixed"), [("spike_slab", True), ("laplace", False)])
def test_columns_by_order_have_their_joint_distribution(prior, mixed, full):
    assert len(OrderJoint(prior, mixed).check(60_000 if full else 2_000)) > 15


@pytest.mark.calibration
@pytest.mark.parametrize("wrong", ["degrees", "weights"])
def test_wrong_t_rows_are_noticed(wrong, full, monkeypatch):
    if wrong == "degrees":  # as if the rows had one column less
        right = degrees_kernel.draw_degrees
        monkeypatch.setattr(
            degrees_kernel,
            "draw_degrees",
            lambda rng, old, q, p, *prior: right(rng, old, q, p - 1, *prior),
        )
    else:
        # Weights that are too small. With half of the quadratic form, weights that are too large, the second simulator has
        # no distribution to compare: values of its tables exceed 1e5, until a matrix has no Cholesky factor.
        right_weights = StudentRows.draw_weights
        monkeypatch.setattr(
            StudentRows,
            "draw_weights",
            lambda self, rng, q, nu: right_weights(self, rng, 2.0 * q, nu),
        )
    with pytest.raises(AssertionError, match="worst z"):
        StudentJoint("laplace").check(30_000 if full else 1_500)


@pytest.mark.calibration
@pytest.mark.parametrize("wrong", ["neighbours", "degrees"])
def test_wrong_weights_of_values_are_noticed(wrong, full, monkeypatch):
    if wrong == "degrees":  # another prior
        right = value_weights.draw_value_degrees

        def broken(rng, nu, *args):
            return right(rng, nu, *args[:-2], args[-2] + 1.5, args[-1])

        monkeypatch.setattr(value_weights, "draw_value_degrees", broken)
    else:  # each weight as if the values of its row were independent
        alone = value_weights.draw_value_weights
        monkeypatch.setattr(
            value_weights,
            "draw_value_weights",
            lambda rng, K, *args: alone(rng, np.diag(np.diag(K)), *args),
        )
    with pytest.raises(AssertionError, match="worst z"):
        AlternativeJoint("laplace", gaps=False).check(30_000 if full else 1_500)


@pytest.mark.calibration
@pytest.mark.parametrize("wrong", ["spread", "units"])
def test_wrong_latent_values_are_noticed(wrong, full, monkeypatch):
    if wrong == "spread":  # standard deviations of the latent values too large
        right = ranks.draw_ordered

        def broken(rng, precision, *args):
            return right(rng, precision / 1.5, *args)

        monkeypatch.setattr(ranks, "draw_ordered", broken)
    else:  # another prior of the diagonal
        right_units = ranks.rescale_columns

        def broken_units(*args):
            return right_units(*args[:-1], 1.5 * args[-1])

        monkeypatch.setattr(ranks, "rescale_columns", broken_units)
    with pytest.raises(AssertionError, match="worst z"):
        OrderJoint("laplace").check(30_000 if full else 1_500)


@pytest.mark.statistical
@pytest.mark.parametrize("prior", ["spike_slab", "laplace", "horseshoe", "g_wishart"])
def test_units_of_columns_by_order_move_under_every_prior(prior):
    # Rows determine a unit to a factor near sqrt(2 / n) given the latent values, and not at all given the order.
    z = np.random.default_rng(0).normal(size=(200, P))
    model = bs.models.gaussian_graphical(z, marginals="rank", prior=prior)
    with model:
        step = PrecisionGibbs(model.free_RVs)
    step.setup_chain(np.random.default_rng(0), 0, 1)
    point, units = model.initial_point(1), []
    name = next(name for name in point if name.startswith("precision"))
    for _ in range(300):
        point, _ = step.step(point)
        K = point[name]
        units.append(np.log(np.diag(unpack_cholesky(K, P)[0] if K.ndim == 1 else K)))
    assert np.std(units, axis=0).min() > 0.45
