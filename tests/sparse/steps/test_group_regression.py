"""Groups of coefficients with exact zeros in regressions, against sums over all groups and coefficients."""

import itertools

import numpy as np
import pymc as pm
import pytest

from scipy.special import expit
from scipy.stats import bernoulli, laplace, multivariate_normal, norm, t
from tools.geweke import assert_geweke

import bayesstruct as bs

from bayesstruct.sparse.kernels import group_regression
from bayesstruct.steps import GroupSpikeSlabRegression

RNG = np.random.default_rng(4)
X = RNG.normal(size=(25, 5))
GROUPS = np.array([0, 1, 0, 2, 2])


def drawn(build, draws=3000):
    with pm.Model():
        w = build()
        idata = pm.sample(draws, tune=100, chains=2, cores=1, random_seed=3, progressbar=False)
    assert "n_active" in idata["sample_stats"]
    return idata["posterior"][w.name].values.reshape(2 * draws, -1)


@pytest.mark.chain
def test_normal_responses_with_unequal_noise():
    noise = np.linspace(0.6, 1.6, 25)
    y = 0.5 + X @ [0.3, 0.0, -0.3, 0.2, 0.2] + noise * RNG.normal(size=25)
    pi, scale = np.array([0.3, 0.5, 0.4]), np.array([1.0, 0.5, 2.0, 0.7, 0.7])

    def build():
        w = bs.GroupSpikeAndSlab("w", pi, scale, groups=GROUPS)
        pm.Normal("y", 0.5 + X @ w, noise, observed=y)
        return w

    draws = drawn(build)
    weights, means = [], []
    states = list(itertools.product([0, 1], repeat=3))
    for state in states:
        on = np.array(state)[GROUPS]
        prior = np.diag(on * scale**2)
        cover = X @ prior @ X.T + np.diag(noise**2)
        weights.append(
            np.prod(np.where(state, pi, 1 - pi))
            * multivariate_normal.pdf(y, np.full(25, 0.5), cover)
        )
        means.append(prior @ X.T @ np.linalg.solve(cover, y - 0.5))
    weights = np.array(weights) / np.sum(weights)
    found = draws != 0
    assert (found[:, 0] == found[:, 2]).all()
    assert (found[:, 3] == found[:, 4]).all()
    # four standard errors of 6000 draws of which half count as independent
    np.testing.assert_allclose(found.mean(0), (weights @ np.array(states))[GROUPS], atol=0.037)
    np.testing.assert_allclose(draws.mean(0), weights @ np.array(means), atol=0.03)


def exact(logpdf, slab):
    """Probability and mean of one group of two coefficients, by a sum over a fine grid."""
    grid = np.linspace(-8, 8, 801)
    density = slab.pdf(grid) * (grid[1] - grid[0])
    inside = np.exp(logpdf(grid[:, None], grid)) * density[:, None] * density
    on, off = 0.4 * inside.sum(), 0.6 * np.exp(logpdf(np.zeros((1, 1)), np.zeros(1))).item()
    mean = np.array([inside.sum(1) @ grid, inside.sum(0) @ grid]) / inside.sum()
    return on / (on + off), on / (on + off) * mean


Z = X[:, :2]
HEAVY = Z @ [0.5, -0.2] + 0.7 * np.random.default_rng(8).standard_t(2, 25)
FAMILIES = {
    "student": (
        lambda mu: pm.StudentT("y", nu=2.0, mu=mu, sigma=0.7, observed=HEAVY),
        lambda a, b: sum(
            t.logpdf(y, 2, z[0] * a + z[1] * b, 0.7) for z, y in zip(Z, HEAVY, strict=True)
        ),
    ),
    "logistic": (
        # with another term of the mean
        lambda mu: pm.Bernoulli("y", logit_p=mu + 1.5 * Z[:, 0], observed=(HEAVY > 0).astype(int)),
        lambda a, b: sum(
            bernoulli.logpmf(int(y > 0), expit(z[0] * (a + 1.5) + z[1] * b))
            for z, y in zip(Z, HEAVY, strict=True)
        ),
    ),
}


@pytest.mark.chain
@pytest.mark.parametrize("slab", ["normal", "laplace"])
@pytest.mark.parametrize("family", FAMILIES)
def test_other_responses(family, slab):
    respond, logpdf = FAMILIES[family]

    def build():
        w = bs.GroupSpikeAndSlab("w", 0.4, 1.0, groups=[0, 0], slab=slab)
        respond(Z @ w)
        return w

    draws = drawn(build)
    probability, mean = exact(logpdf, norm(0, 1) if slab == "normal" else laplace(0, 1))
    # four standard errors of 6000 draws of which a fifth count as independent
    np.testing.assert_allclose((draws[:, 0] != 0).mean(), probability, atol=0.055)
    np.testing.assert_allclose(draws.mean(0), mean, atol=0.06)


# --- joint distribution of parameters and data ------------------------------------------------


class Joint:
    """Both simulators of a small regression whose inclusion probability and slab scale are random."""

    n, labels = 6, np.array([0, 1, 0])

    def __init__(self, family, slab):
        self.family, self.slab = family, slab
        self.X = np.random.default_rng(42).normal(size=(self.n, 3))
        self.X[:, 1] += self.X[:, 0]
        with pm.Model() as model:
            self.y = pm.Data("data", np.zeros(self.n))
            share, scale = pm.Beta("share", 2.0, 2.0), pm.Gamma("scale", 6.0, 6.0)
            q = share * np.array([0.6, 1.0])
            w = bs.GroupSpikeAndSlab("w", q, scale, groups=self.labels, slab=slab)
            mean = pm.Normal("a", 0.0, 0.5) + self.X @ w
            if family == "gaussian":
                pm.Normal("y", mean, 0.8, observed=self.y)
            elif family == "student":
                pm.StudentT("y", nu=3.0, mu=mean, sigma=0.8, observed=self.y)
            else:
                pm.Bernoulli("y", logit_p=mean, observed=self.y)
            others = pm.Slice([model[name] for name in ("share", "scale", "a")], rng=2)
            self.steps = [GroupSpikeSlabRegression([w], rng=1), others]

    def forward(self, rng):
        share, scale = rng.beta(2, 2), rng.gamma(6, 1 / 6)
        active = rng.random(2) < share * np.array([0.6, 1.0])
        draw = rng.normal if self.slab == "normal" else rng.laplace
        point = {
            "share_logodds__": np.array(np.log(share / (1 - share))),
            "scale_log__": np.array(np.log(scale)),
            "w": np.where(active[self.labels], draw(0.0, scale, size=3), 0.0),
            "a": np.array(0.5 * rng.normal()),
        }
        return self.with_data(rng, point)

    def with_data(self, rng, point):
        mean = point["a"] + self.X @ point["w"]
        if self.family == "logistic":
            return point, (rng.random(self.n) < expit(mean)) * 1.0
        noise = rng.normal(size=self.n) if self.family == "gaussian" else rng.standard_t(3, self.n)
        return point, mean + 0.8 * noise

    def transition(self, rng, state):
        point, data = state
        self.y.set_value(data)
        self.steps[0].design = None
        for step in self.steps:
            point, _ = step.step(point)
        return self.with_data(rng, dict(point))

    def statistics(self, state):
        point, data = state
        w, a, y = point["w"], float(point["a"]), np.tanh(0.5 * data)
        on, share, scale = (
            1.0 * (w[:2] != 0),
            expit(point["share_logodds__"]),
            np.exp(point["scale_log__"]),
        )
        out = {f"w{j}": np.tanh(v) for j, v in enumerate(w)}
        out |= {f"|w{j}|": abs(v) for j, v in enumerate(w)}
        out |= {f"w{j}^2": np.tanh(0.2 * v * v) for j, v in enumerate(w)}
        out |= {"w0w2": np.tanh(w[0] * w[2]), "g0": on[0], "g1": on[1], "g0g1": on.prod()}
        out |= {"share": share, "share g": share * on.sum(), "scale": scale}
        out |= {
            "scale |w|": scale * np.abs(w).sum(),
            "a": a,
            "a^2": a * a,
            "aw": a * np.tanh(w.sum()),
        }
        out |= {"y": y.mean(), "y^2": (y**2).mean(), "ya": y.mean() * a}
        return out | {f"yXw{j}": (y @ self.X[:, j]) * np.tanh(w[j]) for j in range(3)}

    def check(self, draws):
        return assert_geweke(
            self.forward, self.transition, self.statistics, draws=draws, chains=20, seed=1
        )


@pytest.mark.compiled
@pytest.mark.calibration
@pytest.mark.parametrize("slab", ["normal", "laplace"])
@pytest.mark.parametrize("family", ["gaussian", "student", "logistic"])
def test_parameters_and_data_have_their_joint_distribution(family, slab, full):
    assert len(Joint(family, slab).check(60_000 if full else 2_000)) > 20


def _without_occam(at, gram, score, slab):
    """Log evidence without the determinants."""
    inside = gram[np.ix_(at, at)] + np.diag(1.0 / slab[at])
    return 0.5 * score[at] @ np.linalg.solve(inside, score[at])


def _of_one_coefficient(active, gram, score, slab):
    """Log evidence as if the coefficients of a group had independent data."""
    at = np.flatnonzero(active)
    ridge = gram[at, at] + 1.0 / slab[at]
    return 0.5 * (score[at] ** 2 / ridge - np.log(ridge * slab[at])).sum()


WRONG = {
    "occam": lambda active, *args: _without_occam(np.flatnonzero(active), *args),
    "independent": _of_one_coefficient,
}


@pytest.mark.compiled
@pytest.mark.calibration
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_sweep_is_noticed(wrong, full, monkeypatch):
    monkeypatch.setattr(group_regression, "_log_evidence", WRONG[wrong])
    with pytest.raises(AssertionError, match="worst z"):
        Joint("gaussian", "normal").check(40_000 if full else 4_000)


# --- which models are taken -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda w: pm.Exponential("y", pm.math.exp(X @ w), observed=np.arange(25)),
            "but exponential, for which no exact step",
        ),
        (lambda w: pm.Normal("y", (X @ w) ** 2, 1.0, observed=np.arange(25)), "other than by"),
    ],
)
def test_what_has_no_exact_step_is_refused(build, message):
    with pm.Model():
        build(bs.GroupSpikeAndSlab("w", 0.5, 1.0, groups=GROUPS))
        with pytest.raises(ValueError, match=message):
            pm.sample(progressbar=False)


def test_a_cauchy_slab_is_refused():
    with pm.Model():
        w = bs.GroupSpikeAndSlab("w", 0.5, 1.0, groups=GROUPS, slab="cauchy")
        pm.Normal("y", X @ w, 1.0, observed=np.zeros(25))
        with pytest.raises(ValueError, match="Cauchy slab"):
            pm.sample(progressbar=False)


@pytest.mark.chain
def test_groups_without_a_regression_have_their_prior():
    draws = drawn(lambda: bs.GroupSpikeAndSlab("w", [0.3, 0.6], 2.0, groups=[0, 0, 1]))
    np.testing.assert_allclose((draws != 0).mean(0), [0.3, 0.3, 0.6], atol=0.03)
    assert abs(draws[draws[:, 0] != 0, 0].std() - 2.0) < 0.15


@pytest.mark.chain
def test_two_structures_in_the_mean_of_one_response():
    y = X @ [0.4, 0.0, 0.3, 0.2, 0.0] + np.random.default_rng(9).normal(size=25)
    with pm.Model():
        w = bs.SpikeAndSlab("w", 0.5, 1.0, shape=2)
        v = bs.GroupSpikeAndSlab("v", [0.3, 0.6], 0.5, groups=[0, 0, 1])
        bs.support(w)
        bs.support(v)
        pm.Normal("y", X[:, :2] @ w + X[:, 2:] @ v, 1.0, observed=y)
        idata = pm.sample(4000, tune=100, chains=2, cores=1, random_seed=3, progressbar=False)
    weights, states = [], list(itertools.product([0, 1], repeat=4))
    variances, pi = np.array([1, 1, 0.25, 0.25, 0.25]), np.array([0.5, 0.5, 0.3, 0.6])
    for state in states:
        on = np.array(state)[[0, 1, 2, 2, 3]]
        cover = (X * on * variances) @ X.T + np.eye(25)
        prior = np.prod(np.where(state, pi, 1 - pi))
        weights.append(prior * multivariate_normal.pdf(y, np.zeros(25), cover))
    expected = (np.array(weights) @ np.array(states)) / np.sum(weights)
    table = bs.support_table(idata)
    assert set(table["variable"]) == {"w", "v"}
    found = table.set_index(["variable", "coefficient"])["probability"]
    places = [("w", "0"), ("w", "1"), ("v", "0"), ("v", "2")]
    # four standard errors of 8000 draws of which a quarter count as independent
    np.testing.assert_allclose([found[place] for place in places], expected, atol=0.045)
