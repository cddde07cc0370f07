"""Latent features of pairs of objects: distributions, step, search for where chains start."""

import networkx as nx
import numpy as np
import pymc as pm
import pytest

from scipy import stats
from scipy.special import expit, log_expit, log_ndtr
from tools.buffets import coarse_distance, counts
from tools.geweke import assert_geweke
from tools.links import exact_posterior

from bayesstruct.distributions import FeatureInteractions, FeatureLinks, IndianBuffet, feature_pairs
from bayesstruct.features.kernels.indian_buffet import draw_by_dishes
from bayesstruct.features.kernels.link_codes import probabilities
from bayesstruct.features.kernels.link_features import Buffet
from bayesstruct.features.kernels.link_sampler import LinkSampler, LinkState
from bayesstruct.features.simulate.link_prediction import link_prediction as simulate
from bayesstruct.features.solvers.links import link_features
from bayesstruct.features.steps.links import LinkFeatureGibbs

MAX_FEATURES = 20
UPPER = np.triu_indices(3, 1)
OFF = np.nonzero(~np.eye(3, dtype=bool))


def model_of(
    sizes,
    source,
    target,
    y,
    *,
    kind,
    likelihood,
    alphas=(1.0, 1.0),
    process=(1.0, 0.0),
    bias=0.0,
    scale=1.0,
    noise=1.0,
):
    """Model with everything known but features and weights; its responses are ``pm.Data``."""
    n, m = sizes
    buffet = dict(
        zip(("concentration", "discount"), process, strict=True), max_features=MAX_FEATURES
    )
    with pm.Model() as model:
        z = IndianBuffet("feature", alphas[0], observations=n, **buffet)
        u = None
        if m is not None:
            u = IndianBuffet("other", alphas[1], observations=m, **buffet)
        positive = likelihood == "noisy_or" or kind == "diagonal"
        w = FeatureInteractions("interaction", z, scale, other=u, kind=kind, positive=positive)
        eta = bias + feature_pairs(z, w, source, target, other=u)
        data = pm.Data("data", np.asarray(y))
        if likelihood == "normal":
            pm.Normal("y", eta, noise, observed=data)
        else:
            FeatureLinks("y", eta, link=likelihood, observed=data)
    return model


def step_of(model, seed=1, tune=0):
    with model:
        step = LinkFeatureGibbs(model.value_vars, rng=np.random.default_rng(seed))
    step.setup_chain(np.random.default_rng(seed), tune, 1)
    return step


# --- distributions ---------------------------------------------------------------------------


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("kind", ["full", "symmetric", "diagonal"])
def test_weights_are_zero_unless_both_features_are_used(kind, positive):
    feature = np.array([[1, 1, 0], [0, 1, 0]], np.int8)
    rv = FeatureInteractions.dist(feature, 1.5, kind=kind, positive=positive)
    draw = pm.draw(rv, random_seed=1)
    used = draw[:2] if kind == "diagonal" else draw[:2, :2]
    assert (used != 0).all() and np.count_nonzero(draw) == used.size
    assert not positive or (used > 0).all()
    free = used[np.tril_indices(2)] if kind == "symmetric" else used
    density = stats.halfnorm if positive else stats.norm
    logp = pm.logp(rv, draw).eval()
    assert np.isclose(logp, density(scale=1.5).logpdf(free).sum())
    wrong = draw.copy()
    wrong[2] = 1.0
    assert pm.logp(rv, wrong).eval() == -np.inf
    if kind == "symmetric":
        assert np.array_equal(draw, draw.T)
        wrong = draw.copy()
        wrong[0, 1] += 1.0
        assert pm.logp(rv, wrong).eval() == -np.inf
    if positive:
        assert pm.logp(rv, -draw).eval() == -np.inf


def test_weights_between_two_sets():
    z, u = np.array([[1, 0], [0, 0]], np.int8), np.array([[1, 1, 0]], np.int8)
    draw = pm.draw(FeatureInteractions.dist(z, 1.0, other=u), random_seed=2)
    assert draw.shape == (2, 3) and np.array_equal(draw != 0, [[1, 1, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match="'full' where objects are of two sets"):
        FeatureInteractions.dist(z, 1.0, other=u, kind="symmetric")
    with pytest.raises(ValueError, match="`kind` must be one of"):
        FeatureInteractions.dist(z, 1.0, kind="round")


def test_predictors_are_sums_of_weights():
    rng = np.random.default_rng(3)
    z, u, w = rng.integers(0, 2, (4, 2)), rng.integers(0, 2, (3, 2)), rng.normal(size=(2, 2))
    source, target = np.array([0, 3, 1]), np.array([1, 2, 0])
    one, two = z @ w @ z.T, z @ w @ u.T
    assert np.allclose(feature_pairs(z, w, source, target).eval(), one[source, target])
    assert np.allclose(feature_pairs(z, w, source, target, other=u).eval(), two[source, target])
    diagonal = z @ np.diag(w[0]) @ z.T
    assert np.allclose(feature_pairs(z, w[0], source, target).eval(), diagonal[source, target])
    with pytest.raises(ValueError, match="`source` has 2"):
        feature_pairs(z, w, source[:2], target)
    with pytest.raises(ValueError, match="`target` must have one position"):
        feature_pairs(z, w, source, -target)


def test_links_have_accurate_log_probabilities():
    eta = np.array([-40.0, -9.0, 0.0, 0.7, 9.0, 40.0])
    y = np.array([1, 1, 0, 1, 0, 0])
    sign = np.where(y == 1, 1.0, -1.0)
    for link, expected in (("logistic", log_expit(sign * eta)), ("probit", log_ndtr(sign * eta))):
        assert np.allclose(
            pm.logp(FeatureLinks.dist(eta, link=link), y).eval(), expected, rtol=1e-9
        )
    cause = FeatureLinks.dist(np.array([1e-9, 0.5, 2.0]), link="noisy_or")
    logp = pm.logp(cause, np.array([1, 0, 1])).eval()
    assert np.allclose(logp, [np.log(1e-9), -0.5, np.log(1 - np.exp(-2.0))], rtol=1e-8)
    assert pm.logp(FeatureLinks.dist(0.3), 2).eval() == -np.inf
    with pytest.raises(ValueError, match="`link` must be one of"):
        FeatureLinks.dist(0.0, link="loglog")


def test_links_are_drawn_with_their_probabilities():
    for link in ("logistic", "probit", "noisy_or"):
        eta = np.full(4000, 0.6)
        share = pm.draw(FeatureLinks.dist(eta, link=link), random_seed=4).mean()
        assert abs(share - probabilities(link, 0.6)) < 4.5 * 0.5 / np.sqrt(4000)


# --- the step against enumeration ------------------------------------------------------------

CASES = {
    "normal": (
        (3, None), OFF, [1.0, -1.0, 0.0, 0.5, 1.0, -1.0],
        {"kind": "full", "likelihood": "normal", "alphas": (0.6, 0.6), "scale": 1.0, "noise": 0.7},
    ),
    "logistic": (
        (3, None), UPPER, [1, 1, 0],
        {"kind": "symmetric", "likelihood": "logistic", "alphas": (0.5, 0.5), "bias": -1.0, "scale": 2.5},
    ),
    "probit": (
        (2, None), ([0, 1], [1, 0]), [1, 0],
        {"kind": "full", "likelihood": "probit", "alphas": (0.8, 0.8), "bias": -1.0, "scale": 1.5},
    ),
    "noisy_or": (
        (3, None), UPPER, [1, 1, 0],
        {
            "kind": "diagonal", "likelihood": "noisy_or", "alphas": (0.4, 0.4), "process": (2.0, 0.3), "bias": 0.1,
            "scale": 2.0,
        },
    ),
    "two sets": (
        (2, 2), ([0, 0, 1], [0, 1, 0]), [1.5, -1.0, 0.5],
        {"kind": "full", "likelihood": "normal", "alphas": (0.5, 0.7), "scale": 1.2, "noise": 0.6},
    ),
}  # fmt: skip


def exact(case, most, nodes):
    (n, m), (source, target), y, options = CASES[case]
    options = {"bias": 0.0, "nodes": nodes, **options}
    places = np.array(source), np.array(target)
    return exact_posterior(n, m, *places, np.array(y, float), most=most, **options)


def key(point):
    if "other" in point:
        return counts(point["feature"]), counts(point["other"])
    return counts(point["feature"])


def visited(case, draws, transition=None):
    sizes, (source, target), y, options = CASES[case]
    step = step_of(model_of(sizes, np.array(source), np.array(target), y, **options))
    move = step.step if transition is None else transition(step)
    model_point = {
        "feature": np.zeros((sizes[0], MAX_FEATURES), np.int8),
        "interaction": np.zeros(
            MAX_FEATURES if options["kind"] == "diagonal" else (MAX_FEATURES, MAX_FEATURES)
        ),
    }
    if sizes[1] is not None:
        model_point["other"] = np.zeros((sizes[1], MAX_FEATURES), np.int8)
    point, out = model_point, []
    for _ in range(draws):
        point, _ = move(point)
        out.append(key(point))
    return out


def apart(seen, probability, rare):
    """Total variation between visited classes and their probabilities; rare ones count as one."""
    return coarse_distance(seen, probability, sum(p >= rare for p in probability.values()))


@pytest.mark.calibration
@pytest.mark.parametrize("case", list(CASES))
def test_the_step_has_the_exact_posterior(case, full):
    # Classes that are rarer than this count as one: of so many draws from the exact distribution, the distance is
    # below half of the bound.
    draws, most, rare, bound = (250_000, 6, 3e-3, 0.01) if full else (2_000, 4, 2e-2, 0.06)
    expected = exact(case, most - (case == "two sets"), 14 if full else 8)
    assert apart(visited(case, draws), expected, rare) < bound


def alone_first(step):
    """Return a wrong step: the features that an object has alone go before the others are visited."""
    sampler = step.sampler

    def scan(rng, state, observed, likelihood, scale, buffets, tries):
        for i in range(len(state.z)):
            alone = (state.z[i] == 1) & (state.z.sum(axis=0) == 1)
            state.z[i, alone] = 0
            state.weights[alone], state.weights[:, alone] = 0.0, 0.0
            fresh = sampler.observe(state, -1.0, observed.y, likelihood)
            for a, b in ((observed.eta, fresh.eta), (observed.density, fresh.density)):
                a[:] = b
            scan_one(sampler, rng, i, state, observed, likelihood, scale, buffets[0][0])

    step.sampler.scan = scan
    return step.step


def scan_one(sampler, rng, i, state, observed, likelihood, scale, alpha):
    from bayesstruct.features.kernels.link_features import coefficients, scan_objects

    effect = np.ascontiguousarray(coefficients(state.z, state.weights, True))
    buffet = Buffet(alpha / len(state.z), 1.0, 0.0)
    parts = (sampler.pairs, observed, likelihood, buffet, sampler.slab(scale), True)
    scan_objects(rng, state.z, state.z, state.weights, effect, *parts, np.array([i]), 1)


@pytest.mark.statistical
def test_a_scan_that_deletes_first_is_caught():
    seen = visited("logistic", 2000, alone_first)
    assert apart(seen, exact("logistic", 4, 8), 2e-2) > 0.08


def test_the_left_order_takes_the_weights_along():
    joint = Joint("logistic")
    rng = np.random.default_rng(11)
    for _ in range(20):
        point, _ = joint.forward(rng)
        order = rng.permutation(MAX_FEATURES)
        state = LinkState(
            point["feature"][:, order], None, point["interaction"][np.ix_(order, order)]
        )
        state.u = state.z
        written, _ = joint.step._write(dict(point), state)
        assert np.allclose(joint.eta(written), joint.eta(point))
        assert np.array_equal(written["feature"], point["feature"])


# --- Geweke ----------------------------------------------------------------------------------

GEWEKE = {
    "logistic": (
        (5, None),
        {"kind": "symmetric", "likelihood": "logistic", "bias": -0.5, "scale": 1.5},
    ),
    "probit": ((4, None), {"kind": "full", "likelihood": "probit", "bias": -0.3, "scale": 1.0}),
    "normal": ((3, 4), {"kind": "full", "likelihood": "normal", "scale": 1.0, "noise": 0.8}),
    "positive": (
        (5, None),
        {"kind": "diagonal", "likelihood": "normal", "scale": 1.0, "noise": 0.8},
    ),
    "noisy_or": (
        (5, None),
        {"kind": "diagonal", "likelihood": "noisy_or", "bias": 0.2, "scale": 1.0},
    ),
}
ALPHAS = (1.2, 0.8)


def pairs(sizes, kind):
    n, m = sizes
    if m is not None:
        return np.nonzero(np.ones((n, m), bool))
    return np.nonzero(~np.eye(n, dtype=bool)) if kind == "full" else np.triu_indices(n, 1)


class Joint:
    """Draws from the prior and the responses, and transitions by the step."""

    def __init__(self, case, wrong=None):
        self.sizes, self.options = GEWEKE[case]
        self.places = pairs(self.sizes, self.options["kind"])
        y = np.zeros(len(self.places[0]), float if self.options["likelihood"] == "normal" else int)
        self.model = model_of(self.sizes, *self.places, y, alphas=ALPHAS, **self.options)
        self.step = step_of(self.model)
        if wrong is not None:
            wrong(self.step)

    def features(self, rng, n, alpha):
        z = np.zeros((n, MAX_FEATURES), np.int8)
        drawn = draw_by_dishes(rng, n, alpha)
        z[:, : drawn.shape[1]] = drawn
        return z

    def weights(self, rng, z, u):
        w = self.options["scale"] * rng.standard_normal((MAX_FEATURES, MAX_FEATURES))
        if self.options["kind"] == "symmetric":
            w = np.tril(w) + np.tril(w, -1).T
        w *= np.outer(z.any(axis=0), u.any(axis=0))
        return abs(np.diag(w)) if self.options["kind"] == "diagonal" else w

    def eta(self, point):
        z = point["feature"].astype(float)
        u, w = point.get("other", z), point["interaction"]
        w = np.diag(w) if w.ndim == 1 else w
        return self.options.get("bias", 0.0) + (z @ w @ u.T)[self.places]

    def respond(self, rng, point):
        eta = self.eta(point)
        if self.options["likelihood"] == "normal":
            return eta + self.options["noise"] * rng.standard_normal(len(eta))
        return (rng.random(len(eta)) < probabilities(self.options["likelihood"], eta)).astype(int)

    def set(self, y):
        data = self.model["data"]
        data.set_value(np.asarray(y, data.type.dtype))

    def forward(self, rng):
        n, m = self.sizes
        point = {"feature": self.features(rng, n, ALPHAS[0])}
        if m is not None:
            point["other"] = self.features(rng, m, ALPHAS[1])
        point["interaction"] = self.weights(
            rng, point["feature"], point.get("other", point["feature"])
        )
        return point, self.respond(rng, point)

    def transition(self, rng, state):
        point, y = state
        self.set(y)
        self.step.rng = rng
        point, _ = self.step.step(point)
        return point, self.respond(rng, point)

    def statistics(self, state):
        point, y = state
        out = {}
        for name in ("feature", "other"):
            if name in point:
                z = point[name]
                number = z.any(axis=0).sum()
                out |= {f"{name} number": number, f"{name} squared": number**2}
                out |= {f"{name} first": z[0].sum(), f"{name} last": z[-1].sum()}
                out[f"{name} shared"] = (z.sum(axis=0) > 1).sum()
        w, eta = point["interaction"], self.eta(point)
        out |= {"weights": w.sum(), "squares": (w**2).sum(), "first weight": w.flat[0]}
        return out | {"y": y.mean(), "eta": eta.mean(), "eta y": (eta * y).mean()}


@pytest.mark.calibration
@pytest.mark.parametrize("case", list(GEWEKE))
def test_joint_draws_have_the_prior(case, full):
    joint = Joint(case)
    draws = 40_000 if full else 1_500
    assert_geweke(joint.forward, joint.transition, joint.statistics, draws=draws, batches=50)


def too_many_alone(step):
    scan = step.sampler.scan

    def wrong(rng, state, observed, likelihood, scale, buffets, tries):
        wider = [(1.5 * alpha, c, discount) for alpha, c, discount in buffets]
        return scan(rng, state, observed, likelihood, scale, wider, tries)

    step.sampler.scan = wrong


@pytest.mark.statistical
def test_joint_draws_with_too_many_features_are_caught():
    joint = Joint("logistic", too_many_alone)
    with pytest.raises(AssertionError, match="worst z"):
        assert_geweke(joint.forward, joint.transition, joint.statistics, draws=1500, batches=50)


# --- recognition -----------------------------------------------------------------------------


def test_the_density_of_the_model_is_that_which_the_step_uses():
    joint = Joint("logistic")
    rng = np.random.default_rng(5)
    logp = joint.model.compile_logp([joint.model["y"]])
    for _ in range(3):
        point, y = joint.forward(rng)
        joint.set(y)
        sign = np.where(y == 1, 1.0, -1.0)
        assert np.isclose(logp(point), log_expit(sign * joint.eta(point)).sum())


def refusal(build):
    with pm.Model() as model:
        z = IndianBuffet("feature", 1.0, observations=3, max_features=5)
        w = FeatureInteractions("interaction", z, 1.0)
        build(z, w)
    with model, pytest.raises(ValueError) as error:
        LinkFeatureGibbs([model.rvs_to_values[v] for v in (z, w)])
    return str(error.value)


def test_models_that_cannot_be_drawn_exactly_are_refused():
    y, (source, target) = [1, 0, 0], UPPER

    def link(z, w, more=0.0, likelihood="logistic", places=UPPER):
        eta = more + feature_pairs(z, w, *places)
        FeatureLinks("y", eta, link=likelihood, observed=y)

    assert "takes weights 'interaction' that are positive" in refusal(
        lambda z, w: link(z, w, likelihood="noisy_or")
    )
    assert "outside of `feature_pairs`" in refusal(
        lambda z, w: link(z, w, z.sum().astype("float64"))
    )
    assert "of an object with itself" in refusal(
        lambda z, w: link(z, w, places=(source, np.array([1, 2, 1])))
    )
    assert "that have no row of features" in refusal(
        lambda z, w: link(z, w, places=(source, np.array([1, 2, 3])))
    )

    def laplace(z, w):
        pm.Laplace("y", feature_pairs(z, w, source, target), 1.0, observed=np.ones(3))

    assert "neither FeatureLinks nor Normal" in refusal(laplace)

    def potential(z, w):
        link(z, w)
        pm.Potential("more", -z.sum().astype("float64"))

    assert "'more' depends on 'feature'" in refusal(potential)

    def noises(z, w):
        pm.Normal("y", feature_pairs(z, w, source, target), np.ones(3), observed=np.ones(3))

    assert "is not one number" in refusal(noises)

    def twice(z, w):
        link(z, w, feature_pairs(z, w, source, target))

    assert "2 terms `feature_pairs`" in refusal(twice)

    def changed(z, w):
        FeatureLinks("y", feature_pairs(z, 5.0 * w, source, target), observed=y)

    assert "takes 'interaction' changed" in refusal(changed)

    def more_responses(z, w):
        pm.Normal("y", feature_pairs(z, w, [0], [1]), 1.0, observed=np.ones(4))

    assert "4 responses and its `feature_pairs` 1 pairs" in refusal(more_responses)

    def table(z, w):
        pm.Normal("y", feature_pairs(z, w, source, target), 1.0, observed=np.ones((2, 3)))

    assert "'y' has 2 dimensions" in refusal(table)


def test_a_scale_that_depends_on_the_features_is_refused():
    with pm.Model():
        z = IndianBuffet("feature", 1.0, observations=3, max_features=5)
        w = FeatureInteractions("interaction", z, 1.0 + z.sum().astype("float64"))
        FeatureLinks("y", feature_pairs(z, w, *UPPER), observed=[1, 0, 0])
        with pytest.raises(ValueError, match="the scale of 'interaction' depends"):
            LinkFeatureGibbs([z, w])


def test_new_data_must_have_a_response_for_each_pair():
    model = model_of((3, None), *UPPER, [1, 0, 0], kind="full", likelihood="logistic")
    model["data"].set_value(np.ones(2, model["data"].dtype))
    with pytest.raises(ValueError, match="2 responses and its `feature_pairs` 3 pairs"):
        step_of(model).step(model.initial_point())


def test_pm_sample_assigns_the_step():
    from pymc.sampling.mcmc import assign_step_methods

    model = Joint("logistic").model
    with model:
        _, chosen = assign_step_methods(model)
    assert {v.name for v in chosen[LinkFeatureGibbs]} == {"feature", "interaction"}


def test_a_chain_with_too_many_features_stops_with_the_remedy():
    rng = np.random.default_rng(6)
    source, target = np.triu_indices(12, 1)
    with pm.Model() as model:
        z = IndianBuffet("feature", 3.0, observations=12, max_features=2)
        w = FeatureInteractions("interaction", z, 2.0, kind="symmetric")
        pm.Normal("y", feature_pairs(z, w, source, target), 0.1, observed=rng.normal(size=66))
    step, point = step_of(model), model.initial_point()
    with pytest.raises(ValueError, match=r"more than 2 features in 'feature'.*`max_features`"):
        for _ in range(30):
            point, _ = step.step(point)


def test_an_impossible_response_is_refused():
    model = model_of(
        (3, None), *UPPER, [1, 0, 0], kind="diagonal", likelihood="noisy_or", bias=0.0, scale=1.0
    )
    with pytest.raises(ValueError, match="the bias must be above 0"):
        step_of(model).step(model.initial_point())


# --- where chains start ----------------------------------------------------------------------


def test_from_a_start_of_ones_own_nothing_is_searched_and_nothing_waits():
    joint, rng = Joint("logistic"), np.random.default_rng(12)
    point, y = joint.forward(rng)
    joint.set(y)
    step = step_of(joint.model, tune=40)
    drawn, _ = step.step(point)
    assert (drawn["interaction"] != point["interaction"]).any()
    assert step.waits == 0
    begun, searching = joint.model.initial_point(), step_of(joint.model, tune=40)
    first, _ = searching.step(begun)
    second, _ = searching.step(first)
    assert (second["feature"] == first["feature"]).all() and searching.waits == 19


def search(likelihood, y, sampler, matrices, seed):
    rng = np.random.default_rng(seed)
    buffets = [(1.0, 1.0, 0.0)] * 2
    return link_features(sampler, likelihood, y.astype(float), 0.0, matrices, buffets, 2.0, rng)


def matched(truth, found):
    """Whether each column of the truth is, up to one row in ten, one that was found."""
    apart = (truth[:, :, None] != found[:, None, :]).mean(axis=0)
    return bool((apart.min(axis=1) <= 0.1).all())


def test_the_search_finds_planted_features():
    truth = simulate(60, 3, random_seed=0)
    source, target = np.triu_indices(60, 1)
    links = nx.to_numpy_array(truth.graph)[source, target]
    sampler = LinkSampler(source, target, (60, 60), True, 1, False)
    found = search("logistic", links, sampler, ((60, 20), (60, 20)), 7)
    assert matched(truth.feature.values, found.state.z)
    assert found.state.z.any(axis=0).sum() <= 5
    eta = found.shift + found.state.predictors(source, target)
    assert np.abs(expit(eta) - truth.probability.values[source, target]).mean() < 0.05


def test_the_search_finds_planted_features_of_two_sets():
    rng = np.random.default_rng(8)
    z, u = rng.random((40, 2)) < 0.4, rng.random((30, 2)) < 0.4
    weights = np.array([[4.0, -3.0], [-2.0, 5.0]])
    source, target = np.nonzero(rng.random((40, 30)) < 0.8)
    y = 1.0 + (z @ weights @ u.T)[source, target] + 0.5 * rng.standard_normal(len(source))
    sampler = LinkSampler(source, target, (40, 30), False, 0, False)
    found = search("normal", y, sampler, ((40, 10), (30, 10)), 9)
    assert found.noise < 1.0
    eta = found.shift + found.state.predictors(source, target)
    assert np.sqrt(np.mean((eta - y) ** 2)) < 0.8


def test_predictors_of_a_state_leave_out_unused_features():
    rng = np.random.default_rng(10)
    z, w = rng.integers(0, 2, (6, 4)).astype(np.int8), rng.normal(size=(4, 4))
    z[:, 1] = 0
    state = LinkState(z, z, w)
    source, target = np.array([0, 2]), np.array([5, 1])
    assert np.allclose(state.predictors(source, target), (z @ w @ z.T)[source, target])
