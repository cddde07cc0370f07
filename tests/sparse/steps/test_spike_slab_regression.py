"""The step of coefficients with exact zeros: exactness, which models it takes, what it says."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc.sampling.mcmc import assign_step_methods
from tools.calibration import assigned_step
from tools.enumeration import assert_matches_enumeration
from tools.geweke import assert_geweke
from tools.variable_selection import (
    exchanges_always_accepted,
    gaussian_subsets,
    logistic_subsets,
)

import bayesstruct as bs

from bayesstruct.sparse.kernels import polya_gamma, spike_slab_regression
from bayesstruct.sparse.steps.regression_data import RegressionData
from bayesstruct.steps import SpikeSlabRegression

QUIET = {"chains": 2, "cores": 1, "progressbar": False, "quiet": True, "random_seed": 1}
P = 8
INCLUSION, SCALE = np.linspace(0.2, 0.6, P), np.linspace(0.7, 1.4, P)


def table(n=20, p=P, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, 1] = X[:, 0] + 0.3 * X[:, 1]
    return X, X[:, 0] - 0.5 * X[:, -1] + rng.normal(size=n)


def chain(model, draws, seed=0, burn=100, **kwargs):
    """Values of ``w`` by the step alone, the rest of the point as it starts."""
    with model:
        step = SpikeSlabRegression([model["w"]], **kwargs)
    step.setup_chain(np.random.default_rng(seed), 0, draws)
    point, out = model.initial_point(), []
    for t in range(-burn, draws):
        point, _ = step.step(point)
        if t >= 0:
            out.append(point["w"])
    return np.array(out)


# --- exactness -------------------------------------------------------------------------------


@pytest.mark.compiled  # thousands of evaluations of a graph
@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["one", "each"])
def test_subsets_of_a_gaussian_regression(noise):
    X, y = table()
    sigma = 1.1 if noise == "one" else np.random.default_rng(2).uniform(0.6, 1.6, size=len(y))
    offset = np.random.default_rng(3).normal(size=len(y))
    with pm.Model() as model:
        w = bs.SpikeAndSlab("w", INCLUSION, SCALE, shape=P)
        pm.Normal("y", 0.7 - (offset - X @ w), sigma, observed=y)
    states, exact, *_ = gaussian_subsets(
        X, y - 0.7 + offset, inclusion=INCLUSION, slab=SCALE**2, noise=sigma
    )
    draws = chain(model, 10_000)
    assert_matches_enumeration((draws != 0).astype(int), exact, states=states)


@pytest.mark.compiled
@pytest.mark.statistical
def test_subsets_of_a_logistic_regression():
    X, y = table()
    y = (y > 0) * 1.0
    with pm.Model() as model:
        w = bs.SpikeAndSlab("w", INCLUSION, SCALE, shape=P)
        pm.Bernoulli("y", logit_p=X @ w - 0.4, observed=y)
    states, exact, errors = logistic_subsets(X, y, inclusion=INCLUSION, slab=SCALE**2, offset=-0.4)
    draws = chain(model, 10_000)
    assert_matches_enumeration((draws != 0).astype(int), exact, states=states, errors=errors)


def test_predictors_beyond_the_limit_of_the_gram_matrix(monkeypatch):
    X, y = table()
    with pm.Model() as model:
        w = bs.SpikeAndSlab("w", INCLUSION, SCALE, shape=P)
        pm.Normal("y", X @ w, 1.1, observed=y)
    a = chain(model, 30)
    monkeypatch.setattr("bayesstruct.sparse.steps.regression_data.GRAM_LIMIT", 4)
    np.testing.assert_allclose(chain(model, 30), a, rtol=1e-8)


# --- joint-distribution tests ----------------------------------------------------------------


class Joint:
    """Both simulators of one regression with random inclusion probability, scale and noise.

    The probabilities differ between coefficients: were they equal, a step that then exchanged
    coefficients at will would leave the joint distribution as it is.
    """

    n, p = 6, 3

    def __init__(self, family, slab, seed=0):
        self.family, self.slab = family, slab
        rng = np.random.default_rng(42)
        self.X = rng.normal(size=(self.n, self.p))
        self.X[:, 1] += self.X[:, 0]
        with pm.Model() as self.model:
            self.y = pm.Data("data", np.zeros(self.n))
            share = pm.Beta("share", 2.0, 2.0)
            scale = pm.Gamma("scale", 6.0, 6.0)
            q = share * np.array([0.3, 0.7, 1.0])
            w = bs.SpikeAndSlab("w", q, scale, slab=slab, shape=self.p)
            mean = pm.Normal("a", 0.0, 0.5) + self.X @ w
            names = ["share", "scale", "a"]
            if family == "gaussian":
                pm.Normal("y", mean, pm.Gamma("noise", 8.0, 8.0), observed=self.y)
                names.append("noise")
            else:
                pm.Bernoulli("y", logit_p=mean, observed=self.y)
            self.steps = [SpikeSlabRegression([w], rng=seed)]
            # Any valid kernel will do for the rest: the joint density of the model is looked at.
            self.steps.append(pm.Slice([self.model[v] for v in names], rng=seed + 1))

    def forward(self, rng):
        share, scale = rng.beta(2, 2), rng.gamma(6, 1 / 6)
        active = rng.random(self.p) < share * np.array([0.3, 0.7, 1.0])
        draw = rng.normal if self.slab == "normal" else rng.laplace
        point = {
            "share_logodds__": np.array(np.log(share / (1 - share))),
            "scale_log__": np.array(np.log(scale)),
            "w": np.where(active, draw(0.0, scale, size=self.p), 0.0),
            "a": np.array(0.5 * rng.normal()),
        }
        if self.family == "gaussian":
            point["noise_log__"] = np.array(np.log(rng.gamma(8, 1 / 8)))
        return self.with_data(rng, point)

    def with_data(self, rng, point):
        mean = point["a"] + self.X @ point["w"]
        if self.family == "gaussian":
            return point, mean + np.exp(point["noise_log__"]) * rng.normal(size=self.n)
        return point, (rng.random(self.n) < 1 / (1 + np.exp(-mean))) * 1.0

    def transition(self, rng, state):
        point, data = state
        self.y.set_value(data)
        self.steps[0].design = None
        for step in self.steps:
            point, _ = step.step(point)
        return self.with_data(rng, dict(point))

    def statistics(self, state):
        point, data = state
        w, a, data = point["w"], float(point["a"]), np.tanh(0.5 * data)
        active = (w != 0).astype(float)
        share, scale = 1 / (1 + np.exp(-point["share_logodds__"])), np.exp(point["scale_log__"])
        out = {f"w{j}": v for j, v in enumerate(w)}
        out |= {f"|w{j}|": abs(v) for j, v in enumerate(w)}
        out |= {f"w{j}^2": np.tanh(0.2 * v * v) for j, v in enumerate(w)}
        out |= {f"g{j}": v for j, v in enumerate(active)}
        out |= {"g0g1": active[0] * active[1], "g1g2": active[1] * active[2]}
        out |= {"share": share, "share^2": share**2, "share g": share * active.sum()}
        out |= {"scale": scale, "scale^2": scale**2, "scale |w|": scale * np.abs(w).sum()}
        out |= {"a": a, "a^2": a * a, "aw": a * w.sum()}
        out |= {"y": data.mean(), "y^2": (data**2).mean(), "ya": data.mean() * a}
        out |= {f"yXw{j}": (data @ self.X[:, j]) * np.tanh(w[j]) for j in range(self.p)}
        if "noise_log__" in point:
            noise = np.exp(point["noise_log__"])
            out |= {"noise": noise, "noise^2": noise**2, "noise g": noise * active.sum()}
        return out

    def check(self, draws, seed=1):
        return assert_geweke(
            self.forward, self.transition, self.statistics, draws=draws, chains=20, seed=seed
        )


@pytest.mark.compiled
@pytest.mark.calibration
@pytest.mark.parametrize("slab", ["normal", "laplace"])
@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_parameters_and_data_have_their_joint_distribution(family, slab, full):
    z = Joint(family, slab).check(100_000 if full else 1_500)
    assert len(z) > 20


def _without_occam(right, family):
    """Odds without the square root of the ridge over ridge plus information, on average."""

    def broken(rng, w, inclusion, *args):
        args = list(args)
        args[-2] = args[-2] + 0.5 * np.log1p(Joint.n * args[-3])
        right(rng, w, inclusion, *args)

    return broken


@pytest.mark.compiled
@pytest.mark.calibration
@pytest.mark.parametrize("wrong", ["acceptance", "occam"])
@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_a_wrong_sweep_is_noticed(family, wrong, full, monkeypatch):
    module = spike_slab_regression if family == "gaussian" else polya_gamma
    name = f"{family}_sweep"
    right = getattr(module, name)
    broken = (
        exchanges_always_accepted(right) if wrong == "acceptance" else _without_occam(right, family)
    )
    monkeypatch.setattr(module, name, broken)
    with pytest.raises(AssertionError, match="worst z"):
        Joint(family, "normal").check(40_000 if full else 500)


# --- which models are taken ------------------------------------------------------------------

ROWS, RESPONSE = table(12, 3)


def assigned(model):
    with model:
        _, selected = assign_step_methods(model)
    return {
        step.__name__: sorted(model.values_to_rvs[v].name for v in values)
        for step, values in selected.items()
        if values
    }


MEANS = {
    "product": lambda X, w: X @ w,
    "dot": pt.dot,
    "left": lambda X, w: w @ X.T,
    "sum": lambda X, w: (X * w).sum(-1),
    "intercept": lambda X, w: pm.Normal("a") + X @ w,
    "minus": lambda X, w: pm.Normal("a") - X @ w,
    "negative": lambda X, w: -(X @ w) + 1.0,
    "three terms": lambda X, w: 1.0 + X @ w + pm.Normal("b", shape=12) - 2.0,
    "deterministic": lambda X, w: pm.Deterministic("mu", 0.3 + pm.Deterministic("Xw", X @ w)),
    "scaled data": lambda X, w: ((X - X.mean(0)) / X.std(0)) @ w,
}


# A mean is read before it is asked whose it is: logistic responses see some of them.
@pytest.mark.parametrize(
    ("family", "mean"),
    [("gaussian", mean) for mean in MEANS]
    + [("logistic", mean) for mean in ("dot", "minus", "deterministic")],
)
def test_means_that_are_recognised_are_read_correctly(family, mean):
    with pm.Model() as model:
        X = pm.Data("X", ROWS)
        w = bs.SpikeAndSlab("w", 0.5, 1.0, shape=3)
        mu = MEANS[mean](X, w)
        if family == "gaussian":
            pm.Normal("y", mu, pm.HalfNormal("noise"), observed=RESPONSE)
        else:
            pm.Bernoulli("y", logit_p=mu, observed=RESPONSE > 0)
        step = SpikeSlabRegression([w], rng=1)
    assert assigned(model)["SpikeSlabRegression"] == ["w"]
    point = model.initial_point(1) | {"w": np.array([0.5, -1.0, 2.0])}
    step._load(point, 1, 3)
    _, _, rest, *_ = step.values(point)
    value = model.compile_fn(
        model.replace_rvs_by_values([mu]), inputs=model.value_vars, on_unused_input="ignore"
    )(point)[0]
    np.testing.assert_allclose(step.design.columns.T @ point["w"] + rest, value, rtol=1e-6)


def test_one_row_of_predictors_for_all_responses():
    with pm.Model() as model:
        w = bs.SpikeAndSlab("w", 0.5, 1.0, shape=3)
        pm.Normal("y", np.ones((1, 3)) @ w, 1.0, observed=RESPONSE)
    draws = chain(model, 5)
    assert draws.shape == (5, 3)


def test_two_vectors_in_one_mean_are_drawn_in_turn():
    with pm.Model() as model:
        w = bs.SpikeAndSlab("w", 0.5, 1.0, shape=3)
        v = bs.SpikeAndSlab("v", 0.5, 1.0, slab="laplace", shape=2)
        pm.Normal("y", ROWS @ w + ROWS[:, :2] @ v, 1.0, observed=RESPONSE)
    assert assigned(model) == {"SpikeSlabRegression": ["v", "w"]}
    step = assigned_step(model)
    step.setup_chain(np.random.default_rng(0), 0, 10)
    point, stats = step.step(model.initial_point())
    assert {len(stats), len(point)} == {2}


@pytest.mark.compiled
def test_coefficients_without_a_regression_have_their_prior():
    with pm.Model() as model:
        bs.SpikeAndSlab("w", 0.3, 2.0, slab="laplace", shape=5)
    draws = chain(model, 4_000)
    assert abs((draws != 0).mean() - 0.3) < 4.5 * np.sqrt(0.21 / draws.size)
    size = np.abs(draws[draws != 0])  # exponential with mean 2
    assert abs(size.mean() - 2.0) < 4.5 * 2.0 / np.sqrt(len(size))


REFUSED = {
    "exponential": (
        lambda w: pm.Exponential("y", pt.exp(ROWS @ w), observed=np.arange(12)),
        "'y' is neither normal",
    ),
    "freedom": (
        lambda w: pm.StudentT("y", nu=4 + w[0] ** 2, mu=ROWS @ w, sigma=1.0, observed=RESPONSE),
        "nu of 'y' depends on 'w'",
    ),
    "minibatch": (
        lambda w: pm.Normal("y", ROWS @ w, 1.0, observed=RESPONSE, total_size=100),
        "'y' is neither normal",
    ),
    "censored": (
        lambda w: pm.Censored(
            "y", pm.Normal.dist(ROWS @ w, 1.0), lower=0, upper=None, observed=abs(RESPONSE)
        ),
        "'y' is neither normal",
    ),
    "probit": (
        lambda w: pm.Bernoulli("y", p=pm.math.invprobit(ROWS @ w), observed=RESPONSE > 0),
        "'y' is Bernoulli without a logit link",
    ),
    "twice": (
        lambda w: pm.Normal("y", ROWS @ w + 0.1 * (ROWS @ w), 1.0, observed=RESPONSE),
        "'w' enters the mean more than once",
    ),
    "element": (
        lambda w: pm.Normal("y", ROWS @ w + w[0], 1.0, observed=RESPONSE),
        "'w' enters the mean more than once",
    ),
    "nonlinear": (
        lambda w: pm.Normal("y", pt.tanh(ROWS @ w), 1.0, observed=RESPONSE),
        "enters the mean other than by `X @ w`",
    ),
    "scaled": (
        lambda w: pm.Normal("y", 2.0 * (ROWS @ w), 1.0, observed=RESPONSE),
        "enters the mean other than by `X @ w`",
    ),
    "transformed": (
        lambda w: pm.Normal("y", ROWS @ pt.abs(w), 1.0, observed=RESPONSE),
        "enters the mean other than by `X @ w`",
    ),
    "sigma": (
        lambda w: pm.Normal("y", ROWS @ w, 1.0 + pt.abs(w[0]), observed=RESPONSE),
        "sigma of 'y' depends on 'w'",
    ),
    "shape only": (
        lambda w: pm.Normal("y", 0.0, 1.0, shape=4 * w.shape[0], observed=RESPONSE),
        "'w' does not enter the mean of 'y'",
    ),
    "potential": (
        lambda w: (
            pm.Normal("y", ROWS @ w, 1.0, observed=RESPONSE),
            pm.Potential("wall", -pt.sum(w**2)),
        ),
        "several terms depend on 'w': 'y', 'wall'",
    ),
    "indicators": (
        lambda w: (
            pm.Normal("y", ROWS @ w, 1.0, observed=RESPONSE),
            pm.Poisson("count", 0.1 + bs.distributions.included("g", w).sum(), observed=2),
        ),
        "several terms depend on 'w': 'y', 'count'",
    ),
    "two responses": (
        lambda w: (
            pm.Normal("y", ROWS @ w, 1.0, observed=RESPONSE),
            pm.Normal("z", ROWS @ w, 2.0, observed=RESPONSE),
        ),
        "several terms depend on 'w': 'y', 'z'",
    ),
    "latent": (
        lambda w: pm.Normal("y", ROWS @ w, 1.0, shape=12),
        "'y' is not observed",
    ),
    "random predictors": (
        lambda w: pm.Normal("y", pm.Normal("X", shape=(12, 3)) @ w, 1.0, observed=RESPONSE),
        "the predictors that 'w' multiplies are random",
    ),
    "matrix": (
        lambda w: pm.Normal("y", (ROWS @ w)[:, None], 1.0, observed=np.ones((12, 2))),
        "'y' is not a vector",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("how", ["automatic", "by hand"])
def test_other_models_are_refused_in_words(kind, how):
    add, reason = REFUSED[kind]
    with pm.Model() as model:
        w = bs.SpikeAndSlab("w", 0.5, 1.0, shape=3)
        add(w)
    with pytest.raises(ValueError, match="cannot be drawn exactly") as error:
        if how == "automatic":
            assigned_step(model)
        else:
            with model:
                SpikeSlabRegression([w])
    assert reason in str(error.value)
    assert "Supported are `pm.Normal" in str(error.value)


def test_pm_sample_passes_the_refusal_on():
    with pm.Model():
        w = bs.SpikeAndSlab("w", 0.5, 1.0, shape=3)
        pm.Exponential("y", pt.exp(ROWS @ w), observed=np.arange(12))
        with pytest.raises(ValueError, match=r"neither normal, .* but exponential"):
            pm.sample(5, tune=5, **QUIET)


def test_missing_responses_are_refused():
    y = RESPONSE.copy()
    y[3] = np.nan
    with pytest.warns(pm.exceptions.ImputationWarning), pm.Model() as model:
        w = bs.SpikeAndSlab("w", 0.5, 1.0, shape=3)
        pm.Normal("y", ROWS @ w, 1.0, observed=y)
    with pytest.raises(ValueError, match="cannot be drawn exactly"):
        assigned_step(model)


@pytest.mark.parametrize("what", ["predictors", "response"])
def test_data_that_cannot_be_used(what):
    rows, y = ROWS.copy(), (RESPONSE > 0) * 1.0
    if what == "predictors":
        rows[0, 0] = np.inf
    else:
        y[0] = 2.0
    with pm.Model() as model:
        data = pm.Data("data", y)
        w = bs.SpikeAndSlab("w", 0.5, 1.0, shape=3)
        pm.Bernoulli("y", logit_p=rows @ w, observed=data)
        step = SpikeSlabRegression([w])
    with pytest.raises(ValueError, match="must be 0 or 1" if what == "response" else "not finite"):
        step.step(model.initial_point())


# --- matrices: one regression for each row ---------------------------------------------------

RESPONSES = np.column_stack([table(12, 3, seed)[1] for seed in (1, 2)])

MATRIX_MEANS = {
    "product": lambda X, W: X @ W.T,
    "dot": lambda X, W: pt.dot(X, W.T),
    "intercepts": lambda X, W: pm.Normal("a", shape=2) + X @ W.T,
    "one intercept": lambda X, W: X @ W.T - pm.Normal("a"),
    "rows": lambda X, W: 1.0 - (X @ W.T + pm.Normal("a", shape=(12, 1))),
    "all": lambda X, W: pm.Deterministic("mu", X @ W.T + pm.Normal("a", shape=(12, 2))),
}
NOISES = {
    "one": lambda: pm.HalfNormal("noise"),
    "each column": lambda: pm.HalfNormal("noise", shape=2),
    "each row": lambda: pm.HalfNormal("noise", shape=(12, 1)),
    "each value": lambda: pm.HalfNormal("noise", shape=(12, 2)),
    "none": None,
}


# Each mean with two kinds of noise, and logistic responses with several means.
PAIRS = [(m, n) for k in (0, 2) for m, n in zip(MATRIX_MEANS, [*NOISES, *NOISES][k:], strict=False)]


@pytest.mark.chain
@pytest.mark.parametrize(("mean", "noise"), PAIRS)
def test_each_row_of_a_matrix_is_drawn_as_a_vector(mean, noise):
    """The sweeps of the rows are those of one vector after the other, with the same generator."""
    q, scale = np.array([[0.2, 0.5, 0.7], [0.6, 0.0, 1.0]]), np.array([0.5, 1.0, 2.0])
    logistic = NOISES[noise] is None
    observed = (RESPONSES > 0) * 1 if logistic else RESPONSES
    with pm.Model() as model:
        X = pm.Data("X", ROWS)
        W = bs.SpikeAndSlab("W", q, scale, slab="laplace", shape=(2, 3))
        mu = MATRIX_MEANS[mean](X, W)
        sigma = None if logistic else NOISES[noise]()
        if logistic:
            pm.Bernoulli("y", logit_p=mu, observed=observed)
        else:
            pm.Normal("y", mu, sigma, observed=observed)
        step = SpikeSlabRegression([W])
    assert assigned(model)["SpikeSlabRegression"] == ["W"]
    rng = np.random.default_rng(0)
    point = {k: rng.normal(size=np.shape(v)) for k, v in model.initial_point(1).items()}
    point["W"] = np.array([[0.5, 0.0, 2.0], [0.0, 0.0, 1.0]])
    outputs = [mu] if logistic else [mu, sigma]
    values = model.compile_fn(
        model.replace_rvs_by_values(outputs), inputs=model.value_vars, on_unused_input="ignore"
    )(point)
    rest = values[0] - ROWS @ point["W"].T * (-1 if mean == "rows" else 1)
    sd = np.ones((12, 2)) if logistic else np.broadcast_to(values[1], (12, 2))
    step.setup_chain(np.random.default_rng(3), 0, 1)
    drawn = step.step(point)[0]["W"]

    other = np.random.default_rng(3)
    slab = np.empty((2, 3))
    scales = np.broadcast_to(scale, (2, 3)) * 1.0
    spike_slab_regression.draw_slab_variances(
        other, point["W"].ravel(), scales.ravel(), slab.ravel()
    )
    design = -ROWS if mean == "rows" else ROWS
    for i in range(2):
        w = point["W"][i].copy()
        alone = RegressionData(design, observed[:, i], logistic)
        equal = noise in ("one", "each column")
        with np.errstate(divide="ignore"):
            odds = np.log(q[i]) - np.log1p(-q[i])
        alone.sweep(
            other, w, np.zeros(3), rest[:, i], sd[:1, i] if equal else sd[:, i], slab[i], odds, 10
        )
        np.testing.assert_allclose(drawn[i], w, rtol=1e-8)
    assert drawn[1, 1] == 0 != drawn[1, 2]


@pytest.mark.compiled
def test_a_matrix_without_a_regression_has_its_prior():
    with pm.Model() as model:
        W = bs.SpikeAndSlab("W", np.array([[0.3], [0.6]]), 2.0, shape=(2, 4))
        step = SpikeSlabRegression([W], rng=1)
    point, draws = model.initial_point(), []
    for _ in range(2_000):
        point, _ = step.step(point)
        draws.append(point["W"] != 0)
    np.testing.assert_allclose(np.mean(draws, axis=(0, 2)), [0.3, 0.6], atol=0.03)


REFUSED_MATRICES = {
    "untransposed": (
        lambda W: pm.Normal("y", ROWS @ W, 1.0, observed=np.ones((12, 3))),
        "enters the mean other than by `X @ W.T`",
    ),
    "left": (
        lambda W: pm.Normal("y", W @ ROWS.T, 1.0, observed=np.ones((3, 12))),
        "enters the mean other than by `X @ W.T`",
    ),
    "twice": (
        lambda W: pm.Normal("y", ROWS @ W.T + ROWS @ W.T, 1.0, observed=np.ones((12, 3))),
        "'W' enters the mean more than once",
    ),
    "sum": (
        lambda W: pm.Normal("y", (ROWS @ W.T).sum(axis=1), 1.0, observed=RESPONSE),
        "'y' is not a matrix, as 'W' is",
    ),
    "latent": (lambda W: pm.Normal("y", ROWS @ W.T, 1.0, shape=(12, 3)), "'y' is not observed"),
    "multivariate": (
        lambda W: pm.MvNormal("y", ROWS @ W.T, np.eye(3), observed=np.ones((12, 3))),
        "'y' is neither normal",
    ),
}


@pytest.mark.parametrize("kind", REFUSED_MATRICES)
def test_other_uses_of_a_matrix_are_refused_in_words(kind):
    add, reason = REFUSED_MATRICES[kind]
    with pm.Model() as model:
        add(bs.SpikeAndSlab("W", 0.5, 1.0, shape=(3, 3)))
    with pytest.raises(ValueError, match="cannot be drawn exactly") as error:
        assigned_step(model)
    assert reason in str(error.value)


def test_a_row_that_many_responses_share_is_refused():
    with pm.Model() as model:
        W = bs.SpikeAndSlab("W", 0.5, 1.0, shape=(pm.Data("k", 1), 3))
        pm.Normal("y", ROWS @ W.T, 1.0, observed=RESPONSES)
        step = SpikeSlabRegression([W])
    with pytest.raises(ValueError, match="'W' has 1 rows and its response 2 columns"):
        step.step(model.initial_point())


def test_arrays_of_more_dimensions_are_refused():
    with pm.Model() as model:
        bs.SpikeAndSlab("W", 0.5, 1.0, shape=(2, 2, 2))
    with pytest.raises(ValueError, match="neither a vector nor a matrix"):
        assigned_step(model)


# --- in pm.sample and bs.sample --------------------------------------------------------------


def random_everything(family, slab="normal", n=60, p=6):
    X, y = table(n, p)
    with pm.Model(coords={"predictor": [f"x{j}" for j in range(p)]}) as model:
        rows = pm.Data("X", X)
        scale = pm.HalfNormal("scale", 1.0)
        w = bs.SpikeAndSlab("w", pm.Beta.dist(1, 3), scale, slab=slab, dims="predictor")
        bs.distributions.included("in_model", w, dims="predictor")
        mean = pm.Normal("a", 0, 2) + rows @ w
        if family == "gaussian":
            pm.Normal("y", mean, pm.HalfNormal("noise", 2.0), observed=y)
        else:
            pm.Bernoulli("y", logit_p=mean, observed=(y > 0) * 1)
    return model


@pytest.mark.compiled
@pytest.mark.chain
@pytest.mark.parametrize(("family", "slab"), [("gaussian", "laplace"), ("logistic", "normal")])
def test_pm_sample_assigns_the_step_beside_nuts(family, slab):
    model = random_everything(family, slab)
    others = ["a", "noise", "scale", "w_inclusion"]
    expected = others if family == "gaussian" else [v for v in others if v != "noise"]
    assert assigned(model) == {"SpikeSlabRegression": ["w"], "NUTS": expected}
    with model:
        idata = pm.sample(200, tune=200, nuts_sampler="pymc", **QUIET)
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(
            idata, extend_inferencedata=True, progressbar=False, random_seed=1
        )
    probability = idata["posterior"]["in_model"].mean(("chain", "draw"))
    assert probability.sel(predictor=["x0", "x1"]).max() > 0.5
    assert probability.sel(predictor=["x2", "x3", "x4"]).max() < 0.5
    stats = idata["sample_stats"]
    active = idata["posterior"]["in_model"].sum("predictor")
    np.testing.assert_array_equal(stats["n_active"], active)
    assert 0 < float(stats["expected_active"].mean()) < 6
    assert idata["log_likelihood"]["y"].shape == (2, 200, 60)


def test_a_saved_state_continues_bit_for_bit():
    model = random_everything("gaussian", "laplace")
    with model:
        step = SpikeSlabRegression([model["w"]], rng=1)
        other = SpikeSlabRegression([model["w"]], rng=99)

    def ahead(step, point, times):
        out = []
        for _ in range(times):
            # The rest of the point moves too, as it does beside NUTS.
            point = step.step(point)[0] | {"a": np.array(point["a"] + 0.01)}
            out.append(point["w"])
        return out, point

    _, point = ahead(step, model.initial_point(1), 20)
    saved = step.sampling_state
    first, _ = ahead(step, point, 20)
    step.sampling_state = saved
    again, _ = ahead(step, point, 20)
    other.sampling_state = saved
    elsewhere, _ = ahead(other, point, 20)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, elsewhere)


@pytest.mark.compiled
@pytest.mark.chain
@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_a_run_that_was_cut_short_continues_bit_for_bit(family, tmp_path):
    class Crash(Exception):
        pass

    def crash(trace, draw):
        if draw.draw_idx == 14:
            raise Crash

    options = {"draws": 12, "tune": 8, "chains": 1, "progressbar": False, "random_seed": 3}
    with random_everything(family):
        whole = bs.sample(**options)
        options |= {"checkpoint": tmp_path / family, "checkpoint_every": 0.0}
        with pytest.raises(Crash):
            bs.sample(**options, callback=crash)
        continued = bs.sample(**options)
    for name in ("w", "a", "scale", "w_inclusion"):
        np.testing.assert_array_equal(whole["posterior"][name], continued["posterior"][name])


def test_new_data_are_read_by_the_next_chain():
    with pm.Model() as model:
        y = pm.Data("data", RESPONSE)
        w = bs.SpikeAndSlab("w", 1.0, 100.0, shape=3)
        pm.Normal("y", ROWS @ w, 1.0, observed=y)
        step = SpikeSlabRegression([w])
    means = []
    for factor in (1.0, -10.0):
        model.set_data("data", factor * RESPONSE)
        step.setup_chain(np.random.default_rng(1), 0, 100)
        point, total = model.initial_point(), 0.0
        for _ in range(100):
            point, _ = step.step(point)
            total = total + point["w"] / 100
        means.append(total)
    # Least squares, standard error of the mean of 100 draws about 0.05.
    np.testing.assert_allclose(means[1], -10.0 * means[0], atol=5.0)
    expected = np.linalg.lstsq(ROWS, RESPONSE, rcond=None)[0]
    np.testing.assert_allclose(means[0], expected, atol=0.5)


def test_the_step_does_not_touch_the_point_it_is_given():
    model = random_everything("gaussian")
    with model:
        step = SpikeSlabRegression([model["w"]], rng=1)
    point = model.initial_point(1)
    before = {k: v.copy() for k, v in point.items()}
    step.step(point)
    for name, value in before.items():
        np.testing.assert_array_equal(point[name], value)


@pytest.mark.compiled
@pytest.mark.chain
def test_two_processes_give_the_draws_of_one():
    with random_everything("logistic"):
        one = pm.sample(10, tune=5, nuts_sampler="pymc", **QUIET)
        two = pm.sample(10, tune=5, nuts_sampler="pymc", **(QUIET | {"cores": 2}))
    np.testing.assert_array_equal(one["posterior"]["w"], two["posterior"]["w"])
