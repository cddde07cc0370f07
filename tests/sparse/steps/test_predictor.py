"""Exact zeros under Poisson, negative binomial and ordered responses, against sums and integrals over all coefficients."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import stats
from tools.calibration import assigned_step
from tools.enumeration import assert_matches_enumeration, binary_states
from tools.geweke import assert_geweke
from tools.mixing import assert_reached_from
from tools.variable_selection import exchanges_always_accepted, prior_log_probabilities

import bayesstruct as bs

from bayesstruct.sparse.steps import predictor_data
from bayesstruct.steps import GroupSpikeSlabRegression, SpikeSlabRegression

N = 12
WIDTH = 9  # reciprocal of the width of the cells of integrals
PI, SCALE = np.array([0.3, 0.6, 0.5]), np.array([0.8, 0.6, 1.0])
CUTPOINTS, SIGMA, ALPHA = np.array([-0.7, 0.9]), 1.4, 1.3
FAMILIES = ("poisson", "negative_binomial", "ordered_logistic", "ordered_probit")


def table(seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    exposure = rng.uniform(0.5, 2.0, N)
    return X, exposure, rng


X, EXPOSURE, RNG = table()
COUNTS = RNG.poisson(EXPOSURE * np.exp(0.2 + 0.4 * X[:, 0]))
STATES = np.digitize(0.5 * X[:, 0] + RNG.logistic(size=N), CUTPOINTS)


def respond(family, mu, **others):
    """Add the response to the model."""
    if family == "poisson":
        return pm.Poisson("y", EXPOSURE * pm.math.exp(mu), observed=COUNTS)
    if family == "negative_binomial":
        alpha = others.get("alpha", ALPHA)
        return pm.NegativeBinomial("y", mu=EXPOSURE * pm.math.exp(mu), alpha=alpha, observed=COUNTS)
    cutpoints = others.get("cutpoints", CUTPOINTS)
    if family == "ordered_logistic":
        return pm.OrderedLogistic("y", eta=mu, cutpoints=cutpoints, observed=STATES)
    return pm.OrderedProbit("y", eta=mu, cutpoints=cutpoints, sigma=SIGMA, observed=STATES)


def log_likelihood(family, eta):
    """Of predictors (N, ...), summed over rows, by SciPy."""
    shape = (N,) + (1,) * (eta.ndim - 1)
    mean, counts = EXPOSURE.reshape(shape) * np.exp(eta), COUNTS.reshape(shape)
    if family == "poisson":
        return stats.poisson.logpmf(counts, mean).sum(0)
    if family == "negative_binomial":
        return stats.nbinom.logpmf(counts, ALPHA, ALPHA / (ALPHA + mean)).sum(0)
    bounds = np.concatenate([[-np.inf], CUTPOINTS, [np.inf]])
    law = stats.logistic() if family == "ordered_logistic" else stats.norm(0, SIGMA)
    low, high = (bounds[STATES + k].reshape(shape) - eta for k in (0, 1))
    tail = law.sf(low) - law.sf(high)
    with np.errstate(divide="ignore"):
        return np.log(np.where(low > 0, tail, law.cdf(high) - law.cdf(low))).sum(0)


def exact(family, slab="normal", labels=(0, 1, 2), pi=PI, rows=X):
    """Probabilities of the sets of groups, and means of the coefficients and of their squares, by quadrature."""
    labels = np.asarray(labels)
    law = stats.norm if slab == "normal" else stats.laplace
    # Laplace densities have a corner at zero: the middle of a cell
    grid = (np.arange(-32, 32) + 0.5) / WIDTH
    states = binary_states(labels.max() + 1)
    logs, first, second = prior_log_probabilities(states, pi), [], []
    for k, state in enumerate(states):
        on = state[labels] == 1
        axes = [grid if one else np.zeros(1) for one in on]
        mass = [
            law(0, s).pdf(grid) / WIDTH if one else np.ones(1)
            for one, s in zip(on, SCALE, strict=True)
        ]
        points = np.meshgrid(*axes, indexing="ij", sparse=True)
        eta = 0.2 + sum(rows[:, j].reshape(-1, 1, 1, 1) * points[j] for j in range(3))
        weight = np.exp(log_likelihood(family, eta) + 30)
        weight = weight * mass[0][:, None, None] * mass[1][:, None] * mass[2]
        logs[k] += np.log(weight.sum())
        first.append([(weight * v).sum() / weight.sum() for v in points])
        second.append([(weight * v * v).sum() / weight.sum() for v in points])
    probabilities = np.exp(logs - np.logaddexp.reduce(logs))
    return states, probabilities, probabilities @ np.array(first), probabilities @ np.array(second)


def chain(model, draws, seed=0, start=None, kind=SpikeSlabRegression, burn=50):
    """Values of ``w`` by the step alone, and the means of its inclusion probabilities."""
    with model:
        step = kind([model["w"]])
    step.setup_chain(np.random.default_rng(seed), 0, draws)
    point, out, inclusion = model.initial_point(), [], 0.0
    if start is not None:
        point["w"] = np.array(start, float)
    for t in range(-burn, draws):
        point, _ = step.step(point)
        if t >= 0:
            out.append(point["w"])
            inclusion = inclusion + step.inclusion / draws
    return np.array(out), inclusion


# --- exactness -------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("slab", ["normal", "laplace"])
@pytest.mark.parametrize("family", FAMILIES)
def test_sets_of_predictors_and_their_coefficients(family, slab):
    with pm.Model() as model:
        w = bs.SpikeAndSlab("w", PI, SCALE, slab=slab, shape=3)
        respond(family, 0.2 + X @ w)
    states, probabilities, first, second = exact(family, slab)
    draws, inclusion = chain(model, 8_000)
    assert_matches_enumeration((draws != 0).astype(int), probabilities, states=states)
    # four standard errors of 8000 draws of which a third count as independent
    spread = np.sqrt(second - first**2) * 4 / np.sqrt(2_600)
    assert (np.abs(draws.mean(0) - first) < spread).all()
    np.testing.assert_allclose((draws**2).mean(0), second, rtol=0.15)
    np.testing.assert_allclose(inclusion, probabilities @ states, atol=0.02)


@pytest.mark.statistical
@pytest.mark.parametrize("slab", ["normal", "laplace"])
@pytest.mark.parametrize("family", FAMILIES)
def test_groups(family, slab):
    labels = [0, 1, 0]
    with pm.Model() as model:
        w = bs.GroupSpikeAndSlab("w", PI[:2], SCALE, slab=slab, groups=labels)
        respond(family, 0.2 + X @ w)
    states, probabilities, first, second = exact(family, slab, labels, PI[:2])
    draws, inclusion = chain(model, 6_000, kind=GroupSpikeSlabRegression)
    assert ((draws[:, 0] != 0) == (draws[:, 2] != 0)).all()
    assert_matches_enumeration((draws[:, :2] != 0).astype(int), probabilities, states=states)
    spread = np.sqrt(second - first**2) * 4 / np.sqrt(2_000)
    assert (np.abs(draws.mean(0) - first) < spread).all()
    np.testing.assert_allclose(inclusion, (probabilities @ states)[labels], atol=0.025)


@pytest.mark.statistical
def test_required_and_forbidden_predictors():
    pi = np.array([1.0, 0.0, 0.5])
    with pm.Model() as model:
        w = bs.SpikeAndSlab("w", pi, SCALE, shape=3)
        respond("poisson", 0.2 + X @ w)
    states, probabilities, first, _ = exact("poisson", pi=pi)
    draws, inclusion = chain(model, 4_000, start=[0.0, 1.0, 0.0], burn=20)
    assert (draws[:, 0] != 0).all()
    assert (draws[:, 1] == 0).all()
    np.testing.assert_allclose(inclusion, probabilities @ states, atol=0.02)
    np.testing.assert_allclose(draws.mean(0), first, atol=0.03)


@pytest.mark.statistical
@pytest.mark.parametrize("family", FAMILIES)
def test_predictors_that_are_almost_equal_from_extreme_starts(family):
    """Exchanges lead from one to the other, of which only one is needed."""
    rng = np.random.default_rng(5)
    rows = np.column_stack([X[:, 0], X[:, 0] + 0.05 * rng.normal(size=N), X[:, 2]])
    with pm.Model() as model:
        w = bs.SpikeAndSlab("w", 0.15, SCALE, shape=3)
        respond(family, 0.2 + rows @ w)
    states, probabilities, *_ = exact(family, pi=np.full(3, 0.15), rows=rows)
    starts = {"none": np.zeros(3), "all": np.full(3, 3.0), "the wrong one": [0.0, -4.0, 0.0]}

    def run(start, seed):
        draws, _ = chain(model, 6_000, seed, start, burn=0)
        return (draws != 0) @ [4, 2, 1]

    numbers = np.zeros(8)
    numbers[states @ [4, 2, 1]] = probabilities
    assert_reached_from(starts, run, numbers)


@pytest.mark.parametrize("family", ["gaussian", "student", "logistic", "poisson"])
@pytest.mark.parametrize("groups", [None, [0, 0, 1]])
def test_a_missing_value_in_another_term_is_refused(family, groups):
    offset = np.where(np.arange(N) == 3, np.nan, 0.2)
    with pm.Model() as model:
        if groups is None:
            w = bs.SpikeAndSlab("w", 0.5, 1.0, shape=3)
        else:
            w = bs.GroupSpikeAndSlab("w", 0.5, 1.0, groups=groups)
        mu, values = X @ w + offset, COUNTS.astype(float)
        if family == "gaussian":
            pm.Normal("y", mu, 1.0, observed=values)
        elif family == "student":
            pm.StudentT("y", nu=4.0, mu=mu, sigma=1.0, observed=values)
        elif family == "logistic":
            pm.Bernoulli("y", logit_p=mu, observed=COUNTS > 1)
        else:
            pm.Poisson("y", pm.math.exp(mu), observed=COUNTS)
    kind = SpikeSlabRegression if groups is None else GroupSpikeSlabRegression
    with pytest.raises(ValueError, match="'w' cannot be drawn: a term that it depends on is NaN"):
        chain(model, 1, kind=kind)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "level"), [(200, 3.0), (500, 2.0)])
def test_strong_effects_of_almost_equal_predictors_are_exchanged(n, level):
    """Large counts: the chain moves between two predictors of which either will do."""
    rng = np.random.default_rng(2)
    first = rng.normal(size=n)
    rows = np.column_stack([first, first + 0.05 * rng.normal(size=n)])
    counts = rng.poisson(np.exp(level + rows.mean(axis=1)))
    with pm.Model() as model:
        w = bs.SpikeAndSlab("w", 0.1, 1.0, shape=2)
        pm.Poisson("y", pm.math.exp(level + rows @ w), observed=counts)
    total = np.linspace(0.8, 1.2, 401)  # of both coefficients, which alone is well determined
    difference = np.linspace(-4, 4, 401)

    def log_evidence(a, b, volume):
        eta = level + a[..., None] * rows[:, 0] + b[..., None] * rows[:, 1]
        logs = (counts * eta - np.exp(eta)).sum(-1)
        return np.logaddexp.reduce((logs + volume).ravel())

    zero, one = np.zeros(401), stats.norm.logpdf(total) + np.log(total[1] - total[0])
    a, b = np.meshgrid(total, difference, indexing="ij")
    a, b = 0.5 * (a + b), 0.5 * (a - b)
    both = stats.norm.logpdf(a) + stats.norm.logpdf(b)
    both += np.log(0.5 * (total[1] - total[0]) * (difference[1] - difference[0]))
    pair = [
        log_evidence(x, y, v) for x, y, v in zip(a, b, both, strict=True)
    ]  # row by row of the grid
    logs = np.array(
        [
            -np.inf,
            log_evidence(zero, total, one),
            log_evidence(total, zero, one),
            np.logaddexp.reduce(pair),
        ]
    )
    logs += np.log([0.81, 0.09, 0.09, 0.01])
    starts = {"first": [1.0, 0.0], "second": [0.0, 1.0]}

    def run(start, seed):
        draws, _ = chain(model, 4_000, seed, start, burn=0)
        return (draws != 0) @ [2, 1]

    assert_reached_from(starts, run, np.exp(logs - np.logaddexp.reduce(logs)))


@pytest.mark.statistical
@pytest.mark.parametrize("family", ["poisson", "ordered_logistic"])
def test_rows_of_a_matrix_are_regressions_of_columns(family):
    """Two responses, the second the first one in another order of rows: each has its own posterior."""
    order = np.random.default_rng(8).permutation(N)
    with pm.Model() as model:
        w = bs.SpikeAndSlab("w", PI, SCALE, shape=(2, 3))
        mu = 0.2 + X @ w.T
        if family == "poisson":
            both = np.column_stack([COUNTS, COUNTS[order]])
            exposure = np.column_stack([EXPOSURE, EXPOSURE[order]])
            pm.Poisson("y", exposure * pm.math.exp(mu), observed=both)
        else:
            both = np.column_stack([STATES, STATES[order]])
            pm.OrderedLogistic("y", eta=mu, cutpoints=CUTPOINTS, observed=both)
    draws, _ = chain(model, 5_000)
    for row, rows in enumerate([X, X[np.argsort(order)]]):
        states, probabilities, *_ = exact(family, rows=rows)
        found = (draws[:, row] != 0).astype(int)
        assert_matches_enumeration(found, probabilities, states=states)


# --- joint-distribution tests ----------------------------------------------------------------


class Joint:
    """Both simulators of one regression with random inclusion probability, scale and likelihood parameters."""

    n, p = 6, 3

    def __init__(self, family, seed=0):
        self.family = family
        self.X = np.random.default_rng(42).normal(size=(self.n, self.p))
        self.X[:, 1] += self.X[:, 0]
        with pm.Model() as self.model:
            self.y = pm.Data("data", np.zeros(self.n, int))
            share = pm.Beta("share", 2.0, 2.0)
            scale = pm.Gamma("scale", 12.0, 24.0)
            w = bs.SpikeAndSlab("w", share * np.array([0.3, 0.7, 1.0]), scale, shape=self.p)
            mean = pm.Normal("a", 0.0, 0.5) + self.X @ w
            names = ["share", "scale", "a"]
            if family == "poisson":
                pm.Poisson("y", pm.math.exp(mean), observed=self.y)
            elif family == "negative_binomial":
                alpha = pm.Gamma("alpha", 8.0, 4.0)
                pm.NegativeBinomial("y", mu=pm.math.exp(mean), alpha=alpha, observed=self.y)
                names.append("alpha")
            else:
                gap = pm.Gamma("gap", 4.0, 4.0)
                cutpoints = pm.math.stack([-gap, 0.5 * gap])
                kind = pm.OrderedLogistic if family == "ordered_logistic" else pm.OrderedProbit
                kind("y", eta=mean, cutpoints=cutpoints, observed=self.y, compute_p=False)
                names.append("gap")
            self.steps = [SpikeSlabRegression([w], rng=seed)]
            self.steps.append(pm.Slice([self.model[v] for v in names], rng=seed + 1))

    def forward(self, rng):
        share, scale = rng.beta(2, 2), rng.gamma(12, 1 / 24)
        active = rng.random(self.p) < share * np.array([0.3, 0.7, 1.0])
        point = {
            "share_logodds__": np.array(np.log(share / (1 - share))),
            "scale_log__": np.array(np.log(scale)),
            "w": np.where(active, rng.normal(0.0, scale, size=self.p), 0.0),
            "a": np.array(0.5 * rng.normal()),
        }
        if self.family == "negative_binomial":
            point["alpha_log__"] = np.array(np.log(rng.gamma(8, 1 / 4)))
        elif self.family != "poisson":
            point["gap_log__"] = np.array(np.log(rng.gamma(4, 1 / 4)))
        return self.with_data(rng, point)

    def with_data(self, rng, point):
        eta = point["a"] + self.X @ point["w"]
        if self.family == "poisson":
            return point, rng.poisson(np.exp(eta))
        if self.family == "negative_binomial":
            alpha = np.exp(point["alpha_log__"])
            return point, rng.poisson(np.exp(eta) * rng.gamma(alpha, 1 / alpha, size=self.n))
        noise = rng.logistic if self.family == "ordered_logistic" else rng.normal
        gap = np.exp(point["gap_log__"])
        return point, np.digitize(eta + noise(size=self.n), [-gap, 0.5 * gap])

    def transition(self, rng, state):
        point, data = state
        self.y.set_value(data.astype("int32"))  # as PyMC stores whole numbers
        self.steps[0].design = None
        for step in self.steps:
            point, _ = step.step(point)
        return self.with_data(rng, dict(point))

    def statistics(self, state):
        point, data = state
        w, a, data = point["w"], float(point["a"]), np.tanh(0.3 * data)
        active = (w != 0).astype(float)
        share, scale = 1 / (1 + np.exp(-point["share_logodds__"])), np.exp(point["scale_log__"])
        out = {f"w{j}": v for j, v in enumerate(w)}
        out |= {f"w{j}^2": np.tanh(v * v) for j, v in enumerate(w)}
        out |= {f"g{j}": v for j, v in enumerate(active)}
        out |= {"g0g1": active[0] * active[1], "g1g2": active[1] * active[2]}
        out |= {"w0w1": np.tanh(w[0] * w[1]), "share g": share * active.sum()}
        out |= {"scale": scale, "scale |w|": scale * np.abs(w).sum(), "a": a, "aw": a * w.sum()}
        out |= {"y": data.mean(), "y^2": (data**2).mean(), "ya": data.mean() * a}
        out |= {f"yXw{j}": (data @ self.X[:, j]) * np.tanh(w[j]) for j in range(self.p)}
        for name in ("alpha_log__", "gap_log__"):
            if name in point:
                out |= {name: point[name], f"{name} y": point[name] * data.mean()}
        return out

    def check(self, draws, seed=1):
        return assert_geweke(
            self.forward, self.transition, self.statistics, draws=draws, chains=20, seed=seed
        )


@pytest.mark.compiled
@pytest.mark.calibration
@pytest.mark.parametrize("family", FAMILIES)
def test_parameters_and_data_have_their_joint_distribution(family, full):
    z = Joint(family).check(100_000 if full else 2_000)
    assert len(z) > 20


def _narrow(right):
    """Slabs of half the width in the ratio of densities, as if a factor of the proposal were forgotten."""

    def broken(rng, w, inclusion, family, columns, eta, values, slab, *args):
        right(rng, w, inclusion, family, columns, eta, values, 0.25 * slab, *args)

    return broken


@pytest.mark.compiled
@pytest.mark.calibration
@pytest.mark.parametrize("wrong", [exchanges_always_accepted, _narrow])
@pytest.mark.parametrize("family", ["poisson", "ordered_logistic"])
def test_a_wrong_sweep_is_noticed(family, wrong, full, monkeypatch):
    broken = wrong(predictor_data.predictor_sweep)
    monkeypatch.setattr(predictor_data, "predictor_sweep", broken)
    with pytest.raises(AssertionError, match="worst z"):
        Joint(family).check(40_000 if full else 1_000)


# --- which models are taken, and what is refused -----------------------------------------------


def parts(build):
    """The step of a model with these coefficients, its predictor without them, and the right one."""
    with pm.Model() as model:
        w = bs.SpikeAndSlab("w", 0.5, 1.0, shape=3)
        rest = build(w)
        step = SpikeSlabRegression([w], rng=1)
    point = model.initial_point(1) | {"w": np.array([0.5, -1.0, 2.0])}
    step._load(point, 1, 3)
    value = model.compile_fn(
        model.replace_rvs_by_values([pt.as_tensor(rest)]),
        inputs=model.value_vars,
        on_unused_input="ignore",
    )(point)[0]
    return step, point, value


def by_factor(w):
    scale = pm.HalfNormal("scale")
    mean = pm.Deterministic("mean", EXPOSURE * pm.math.exp(0.3 - X @ w) / scale)
    pm.Poisson("y", mean, observed=COUNTS)
    return np.log(EXPOSURE) + 0.3 - pm.math.log(scale)


def by_sum(w):
    a = pm.Normal("a")
    pm.NegativeBinomial("y", mu=pm.math.exp(np.log(EXPOSURE) + a + X @ w), alpha=1, observed=COUNTS)
    return np.log(EXPOSURE) + a


def ordered(w):
    a = pm.Normal("a", shape=N)
    pm.OrderedLogistic("y", eta=a - X @ w, cutpoints=np.tile(CUTPOINTS, (N, 1)), observed=STATES)
    return a


def probit(w):
    a = pm.Normal("a", shape=N)
    sigma = pm.HalfNormal("sigma", shape=N)
    pm.OrderedProbit("y", eta=X @ w + a, cutpoints=CUTPOINTS, sigma=sigma, observed=STATES)
    return a


@pytest.mark.parametrize("build", [by_factor, by_sum, ordered, probit])
def test_predictors_are_read_correctly(build):
    step, point, right = parts(build)
    rest = step.values(point)[2]
    np.testing.assert_allclose(np.broadcast_to(rest, N), np.broadcast_to(right, N), rtol=1e-6)
    sign = -1.0 if build in (by_factor, ordered) else 1.0
    np.testing.assert_allclose(step.design.columns, sign * X.T, rtol=1e-6)


REFUSED = {
    "identity link": (
        lambda w: pm.Poisson("y", 5.0 + X @ w, observed=COUNTS),
        "the mean that 'w' enters is not `pm.math.exp",
    ),
    "softplus link": (
        lambda w: pm.Poisson("y", pm.math.log1pexp(X @ w), observed=COUNTS),
        "the mean that 'w' enters is not `pm.math.exp",
    ),
    "a sum of means": (
        lambda w: pm.Poisson("y", pm.math.exp(X @ w) + 1.0, observed=COUNTS),
        "the mean that 'w' enters is not `pm.math.exp",
    ),
    "one over": (
        lambda w: pm.Poisson("y", 1.0 / pm.math.exp(X @ w), observed=COUNTS),
        "the mean that 'w' enters is not `pm.math.exp",
    ),
    "twice": (
        lambda w: pm.Poisson("y", pm.math.exp(X @ w) * pm.math.exp(X @ w), observed=COUNTS),
        "the mean that 'w' enters is not `pm.math.exp",
    ),
    "scaled": (
        lambda w: pm.Poisson("y", pm.math.exp(2.0 * (X @ w)), observed=COUNTS),
        "enters the mean other than by `X @ w`",
    ),
    "one row": (
        lambda w: pm.Poisson("y", EXPOSURE * pm.math.exp(X[:1] @ w), observed=COUNTS),
        "is not a vector as long as the response",
    ),
    "alpha": (
        lambda w: pm.NegativeBinomial(
            "y", mu=pm.math.exp(X @ w), alpha=1 + w[0] ** 2, observed=COUNTS
        ),
        "alpha of 'y' depends on 'w'",
    ),
    "n and p": (
        lambda w: pm.NegativeBinomial("y", n=2.0, p=pm.math.sigmoid(X @ w), observed=COUNTS),
        "negative binomial with other parameters than `mu` and `alpha`",
    ),
    "zero-inflated": (
        lambda w: pm.ZeroInflatedPoisson("y", 0.5, pm.math.exp(X @ w), observed=COUNTS),
        "but .*no exact step.*RegularizedHorseshoe",
    ),
    "binomial": (
        lambda w: pm.Binomial("y", 9, logit_p=X @ w, observed=COUNTS),
        "but binomial, for which no exact step.*RegularizedHorseshoe",
    ),
    "softmax": (
        lambda w: pm.Categorical(
            "y", p=pm.math.softmax((X @ w)[:, None] * np.arange(3), axis=-1), observed=STATES
        ),
        "'y' is categorical and neither pm.OrderedLogistic nor pm.OrderedProbit",
    ),
    "cutpoints": (
        lambda w: pm.OrderedLogistic(
            "y", eta=X @ w, cutpoints=pm.math.stack([w[0], w[0] + 1]), observed=STATES
        ),
        "cutpoints of 'y' depends on 'w'",
    ),
    "eta": (
        lambda w: pm.OrderedLogistic("y", eta=(X @ w) ** 2, cutpoints=CUTPOINTS, observed=STATES),
        "enters the mean other than by `X @ w`",
    ),
    "missing": (
        lambda w: pm.Poisson(
            "y", pm.math.exp(X @ w), observed=np.ma.masked_array(COUNTS, np.arange(N) == 2)
        ),
        "several terms depend on 'w'",
    ),
}


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("prior", ["single", "group"])
def test_what_has_no_exact_step_is_refused_with_the_reason(kind, prior):
    build, reason = REFUSED[kind]
    with pm.Model() as model:
        if prior == "single":
            w = bs.SpikeAndSlab("w", 0.5, 1.0, shape=3)
        else:
            w = bs.GroupSpikeAndSlab("w", 0.5, 1.0, groups=[0, 1, 1])
        build(w)
    with pytest.raises(ValueError, match=rf"cannot be drawn exactly: .*{reason}.*Supported are"):
        assigned_step(model)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda w: pm.Poisson("y", pm.math.exp(X @ w), observed=-1 - COUNTS), "must be counts"),
        (
            lambda w: pm.OrderedLogistic("y", eta=X @ w, cutpoints=CUTPOINTS, observed=STATES - 1),
            "must be numbers 0, 1, ... of ordered states",
        ),
        (
            lambda w: pm.OrderedLogistic("y", eta=X @ w, cutpoints=CUTPOINTS, observed=STATES + 1),
            "has the state 3, and 2 cutpoints",
        ),
        (
            lambda w: pm.Poisson(
                "y", (EXPOSURE - EXPOSURE[0]).clip(0) * pm.math.exp(X @ w), observed=COUNTS
            ),
            "rows whose exposure is zero say nothing about a rate: leave them out",
        ),
        (
            lambda w: pm.Poisson("y", pm.math.exp(np.where(X > 0, X, np.inf) @ w), observed=COUNTS),
            "predictors of a spike-and-slab regression are not finite",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_data_that_the_likelihood_cannot_have(build, message):
    with pm.Model() as model:
        w = bs.SpikeAndSlab("w", 0.5, 1.0, shape=3)
        build(w)
        step = SpikeSlabRegression([w])
    with pytest.raises(ValueError, match=message):
        step.step(model.initial_point())


# --- in pm.sample ------------------------------------------------------------------------------


@pytest.mark.compiled
@pytest.mark.chain
@pytest.mark.parametrize("family", ["negative_binomial", "ordered_logistic"])
def test_pm_sample_finds_the_predictors_beside_random_parameters(family):
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(150, 5))
    eta = rows @ [0.8, 0.0, 0.0, -0.7, 0.0]
    with pm.Model():
        w = bs.SpikeAndSlab("w", pm.Beta.dist(1, 2), pm.HalfNormal("slab", 1.0), shape=5)
        bs.support(w)
        if family == "negative_binomial":
            y = rng.poisson(np.exp(0.5 + eta) * rng.gamma(2, 0.5, 150))
            mean = pm.math.exp(pm.Normal("a") + rows @ w)
            pm.NegativeBinomial("y", mu=mean, alpha=pm.Exponential("alpha", 1.0), observed=y)
        else:
            y = np.digitize(1.5 * eta + rng.logistic(size=150), [-1.0, 1.0])
            ordered = pm.distributions.transforms.ordered
            cutpoints = pm.Normal("cutpoints", [-1, 1], 2.0, transform=ordered)
            pm.OrderedLogistic("y", eta=rows @ w, cutpoints=cutpoints, observed=y, compute_p=False)
        idata = pm.sample(
            300, tune=300, chains=2, cores=1, random_seed=1, nuts_sampler="pymc", progressbar=False
        )
        pm.sample_posterior_predictive(idata, progressbar=False, random_seed=1)
    table = bs.support_table(idata).set_index("coefficient")["probability"]
    assert table[["0", "3"]].min() > 0.95
    assert table[["1", "2", "4"]].max() < 0.6
    stats = idata["sample_stats"]
    difference = float((stats["n_active"] - stats["expected_active"]).mean())
    assert abs(difference) < 0.15  # both have the posterior mean of the number of predictors


def test_a_saved_state_continues_bit_for_bit():
    with pm.Model() as model:
        w = bs.SpikeAndSlab("w", PI, SCALE, slab="laplace", shape=3)
        respond("poisson", 0.2 + X @ w)
        step, other = (SpikeSlabRegression([w], rng=seed) for seed in (1, 2))
    point = model.initial_point()
    for _ in range(10):
        point, _ = step.step(point)
    other.sampling_state = step.sampling_state
    for _ in range(10):
        one, _ = step.step(point)
        two, _ = other.step(point)
        np.testing.assert_array_equal(one["w"], two["w"])
        point = one
