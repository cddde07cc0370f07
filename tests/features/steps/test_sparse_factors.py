"""Sparse factors: distributions, scan, step and models."""

import numpy as np
import pymc as pm
import pytest

from scipy import integrate, stats
from scipy.special import roots_genlaguerre
from tools.buffets import counts, distance, posterior_of
from tools.geweke import assert_geweke

import bayesstruct as bs

from bayesstruct.data import TableError
from bayesstruct.features.kernels import factor_loadings, factor_splits
from bayesstruct.features.kernels import indian_buffet as buffet
from bayesstruct.features.kernels import sparse_factors as kernel
from bayesstruct.features.priors.feature_scores import FactorRows, FeatureScores
from bayesstruct.features.priors.indian_buffet import FeatureLoadings, IndianBuffet
from bayesstruct.features.steps.sparse_factors import SparseFactorGibbs
from bayesstruct.models.infinite_ica import infinite_ica
from bayesstruct.models.sparse_factor_analysis import sparse_factor_analysis

MAX_FEATURES = 24
ALPHA, SCALE, NOISE = 1.0, 1.4, 0.5
X = np.array([[2.0], [-1.5]])


# --- one score -------------------------------------------------------------------------------


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize(("slope", "curvature"), [(0.0, 0.3), (4.0, 2.0), (-9.0, 0.5), (2.0, 0.0)])
def test_the_score_summed_out_and_its_draws(laplace, slope, curvature):
    if curvature == 0.0:
        slope = 0.0

    def density(v):
        prior = 0.5 * np.exp(-abs(v)) if laplace else stats.norm.pdf(v)
        return prior * np.exp(slope * v - 0.5 * curvature * v * v - shift)

    shift = 0.5 * slope**2 / max(curvature, 1.0)
    peak = slope / (curvature + 1.0)
    mass, _ = integrate.quad(density, -150, 150, points=[0.0, peak], limit=500)
    found = kernel.log_factor(slope, curvature, laplace)
    assert found == pytest.approx(np.log(mass) + shift, abs=1e-6)
    rng = np.random.default_rng(1)
    draws = [kernel.draw_score(rng, slope, curvature, laplace) for _ in range(1000)]

    def cdf(value):
        inner = [p for p in (0.0, peak) if p < value]
        return integrate.quad(density, -150, value, points=inner or None, limit=500)[0] / mass

    grid = np.quantile(draws, np.linspace(0.02, 0.98, 15))
    error = [cdf(v) - np.mean(np.array(draws) <= v) for v in grid]
    assert np.abs(error).max() < 1.95 / np.sqrt(1000)


@pytest.mark.statistical
@pytest.mark.parametrize("curvature", [1e-320, 1e-100, 1e-16, 1e-15, 1e-13, 1e-10, 1e-8])
@pytest.mark.parametrize("slope", [0.0, 1e-6, -0.7])
def test_scores_with_little_curvature(slope, curvature):
    # Beyond 400 the slower side has exp(-120) of its mass.
    sides = [
        integrate.quad(
            lambda v, s=sign: 0.5 * np.exp(s * slope * v - v - 0.5 * curvature * v * v),
            0,
            400,
            epsabs=0,
            epsrel=1e-11,
            limit=400,
        )[0]
        for sign in (1, -1)
    ]
    found = kernel.log_factor(slope, curvature, True)
    assert found == pytest.approx(np.log(sum(sides)), abs=1e-9)
    rng = np.random.default_rng(2)
    draws = np.array([kernel.draw_score(rng, slope, curvature, True) for _ in range(500)])
    assert (draws != 0).all()
    above = draws > 0
    share = sides[0] / sum(sides)
    assert abs(above.mean() - share) < 4 * np.sqrt(share * (1 - share) / 500)
    # As good as exponential on either side.
    scaled = np.abs(draws) * (1 - np.where(above, 1, -1) * slope)
    assert stats.kstest(scaled, "expon").pvalue > 1e-4


# --- exact posterior -------------------------------------------------------------------------


def log_density(z, x=X, nodes=16):
    """Of one column given which rows have factors, normal scores.

    Given the loadings rows are independent, with variances that depend on the sum of squares of those of
    the columns with the same history, a scaled chi-squared variable: one quadrature for each history.
    """
    columns, number = np.unique(z, axis=1, return_counts=True)
    points, weights = [], []
    for size in number:
        t, w = roots_genlaguerre(nodes, size / 2 - 1)
        points.append(2.0 * SCALE**2 * t)
        weights.append(w / w.sum())
    total = 0.0
    if not len(number):
        return stats.norm(0, NOISE).logpdf(x[:, 0]).sum()
    grid = np.meshgrid(*points, indexing="ij")
    mass = np.prod(np.meshgrid(*weights, indexing="ij"), axis=0)
    logs = 0.0
    for i, value in enumerate(x[:, 0]):
        variance = NOISE**2 + sum(g for g, has in zip(grid, columns[i], strict=True) if has)
        logs = logs - 0.5 * value**2 / variance - 0.5 * np.log(2 * np.pi * variance)
    total = (mass * np.exp(logs)).sum()
    return np.log(total)


def sweep(rng, w, a, used, x, laplace, scale=SCALE):
    n = len(x)
    process = np.array([ALPHA * buffet.new_dish_rates(n)[-1], 1.0, 0.0])
    precision = np.where(np.isnan(x), 0.0, 1 / NOISE**2)
    filled, rows = np.nan_to_num(x), rng.permutation(n)
    used = kernel.scan_factors(rng, w, a, used, filled, precision, rows, scale, process, laplace)
    new = w[:, :used]
    new = factor_splits.split_or_merge(
        rng, new, filled, precision, SCALE, (ALPHA, 1.0, 0.0), laplace
    )
    used = new.shape[1]
    w[:, :used], w[:, used:], a[used:] = new, 0.0, 0.0
    a[:used] = factor_loadings.draw_factor_loadings(rng, new, filled, precision, SCALE)
    factor_loadings.rescale_factors(rng, w[:, :used], a[:used], SCALE, laplace)
    return used


def chain(draws, scale=SCALE, seed=2):
    rng, used = np.random.default_rng(seed), 0
    w, a = np.zeros((len(X), MAX_FEATURES)), np.zeros((MAX_FEATURES, 1))
    for _ in range(draws):
        used = sweep(rng, w, a, used, X, False, scale)
        yield counts(w[:, :used] != 0)


@pytest.mark.statistical
def test_the_scan_has_the_exact_posterior_and_a_wrong_one_has_not():
    exact = posterior_of(log_density, 2, ALPHA, most=5)
    assert distance(list(chain(3_000)), exact) < 0.08
    # New factors whose loadings are summed out with a wrong scale.
    assert distance(list(chain(3_000, scale=0.4)), exact) > 0.09


@pytest.mark.calibration
def test_the_scan_has_the_exact_posterior_to_one_percent(full):
    nodes = 40 if full else 16
    exact = posterior_of(lambda z: log_density(z, nodes=nodes), 2, ALPHA, most=8 if full else 5)
    draws, bound = (100_000, 0.01) if full else (1_500, 0.12)
    assert distance(list(chain(draws)), exact) < bound


# --- joint distribution ----------------------------------------------------------------------


def joint(laplace, scale=SCALE, n=4, d=3):
    """Return the parts of a joint-distribution test, a cell of each table missing."""

    def table(rng, w, a):
        x = w @ a + NOISE * rng.standard_normal((n, d))
        x[1, 2] = np.nan
        return x

    def forward(rng):
        drawn = buffet.draw_by_dishes(rng, n, ALPHA)
        used = drawn.shape[1]
        w, a = np.zeros((n, MAX_FEATURES)), np.zeros((MAX_FEATURES, d))
        v = rng.laplace(size=drawn.shape) if laplace else rng.standard_normal(drawn.shape)
        w[:, :used], a[:used] = drawn * v, SCALE * rng.standard_normal((used, d))
        return w, a, used, table(rng, w, a)

    def transition(rng, state):
        w, a, used, x = state
        w, a = w.copy(), a.copy()
        used = sweep(rng, w, a, used, x, laplace, scale)
        return w, a, used, table(rng, w, a)

    def statistics(state):
        w, a, used, x = state
        z = w != 0
        return {
            "factors": used,
            "factors squared": used**2,
            "of the first row": z[0].sum(),
            "of the last row": z[-1].sum(),
            "in common": (z.sum(axis=0) ** 2).sum(),
            "sizes of scores": np.abs(w).sum(),
            "tails of scores": (w**2 > 4).sum(),
            "squares of loadings": (a**2).sum(),
            "fitted": ((w @ a) ** 2).clip(max=50).sum(),
            "table": np.nansum(np.abs(x)),
        }

    return forward, transition, statistics


@pytest.mark.statistical
@pytest.mark.parametrize("laplace", [False, True])
def test_joint_draws_have_the_prior(laplace):
    assert len(assert_geweke(*joint(laplace), draws=2_000, seed=3)) == 10


def changes(move, laplace, draws, seed):
    """z-scores of what moves change in statistics of draws of the joint distribution: scores, given the table."""
    forward, _, _ = joint(laplace)
    rng, precision = np.random.default_rng(seed), np.full((4, 3), 1 / NOISE**2)
    precision[1, 2] = 0.0
    out = []
    for _ in range(draws):
        w, _, used, x = forward(rng)
        before = w[:, :used]
        after = before
        for _ in range(5):
            after = move(rng, after, np.nan_to_num(x), precision, SCALE, (ALPHA, 1.0, 0.0), laplace)
        out.append([_of_scores(after, x)[k] - v for k, v in _of_scores(before, x).items()])
    out = np.array(out, float)
    return out.mean(axis=0) / np.maximum(out.std(axis=0) / np.sqrt(draws), 1e-12)


def _of_scores(w, x):
    z = w != 0
    return {
        "factors": w.shape[1],
        "factors squared": w.shape[1] ** 2,
        "entries": z.sum(),
        "in common": (z.sum(axis=0) ** 2).sum(),
        "sizes": np.abs(w).sum(),
        "tails": (w**2 > 4).sum(),
        "with the table": w.shape[1] * np.nansum(np.abs(x)),
    }


@pytest.mark.statistical
@pytest.mark.parametrize("laplace", [False, True])
def test_split_and_merge_leave_the_joint_distribution_as_it_is(laplace):
    assert (np.abs(changes(factor_splits.split_or_merge, laplace, 1_500, 5)) < 3.9).all()


@pytest.mark.statistical
@pytest.mark.parametrize("laplace", [False, True])
def test_split_and_merge_without_the_choice_of_a_factor_do_not(laplace, monkeypatch):
    # Wrong: which of k factors is split has no probability.
    merged, split = factor_splits._merged, factor_splits._split

    def without(rng, w, sign):
        out, ratio = merged(rng, w, sign)
        return out, ratio - np.log(w.shape[1])

    def without_split(rng, w, sign):
        out, ratio = split(rng, w, sign)
        return out, ratio + np.log(w.shape[1] + 1)

    monkeypatch.setattr(factor_splits, "_merged", without)
    monkeypatch.setattr(factor_splits, "_split", without_split)
    assert (np.abs(changes(factor_splits.split_or_merge, laplace, 600, 5)) > 5).any()


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize(("rows", "d"), [(7, 1), (1, 6)])
def test_scales_of_scores_and_loadings_keep_their_distributions(laplace, rows, d):
    # Without the Jacobian the means change by far more than this: m and d are not the same.
    rng, k = np.random.default_rng(6), 20_000
    w = rng.laplace(size=(rows, k)) if laplace else rng.standard_normal((rows, k))
    a = SCALE * rng.standard_normal((k, d))
    before = _sizes(w, a)
    for _ in range(3):
        factor_loadings.rescale_factors(rng, w, a, SCALE, laplace)
    change = _sizes(w, a) - before
    assert (np.abs(change).max(axis=1) > 0).all()
    error = change.std(axis=1) / np.sqrt(k)
    assert (np.abs(change.mean(axis=1)) < 4 * error).all()
    assert ((a**3).sum(axis=1) >= 0).all()


def _sizes(w, a):
    w, a = np.abs(w), np.abs(a)
    return np.array(
        [w.mean(axis=0), (w**2).mean(axis=0), np.log(w[0]), a.mean(axis=1), (a**2).mean(axis=1)]
    )


@pytest.mark.statistical
@pytest.mark.parametrize("laplace", [False, True])
def test_joint_draws_of_a_wrong_scan_have_not(laplace):
    with pytest.raises(AssertionError, match="worst z"):
        assert_geweke(*joint(laplace, scale=0.5), draws=2_000, seed=3)


def test_loadings_have_their_distribution_given_scores():
    rng = np.random.default_rng(4)
    w, x = rng.normal(size=(6, 2)), rng.normal(size=(6, 3))
    precision = rng.uniform(0.5, 2.0, size=(6, 3))
    precision[2, 1] = 0.0
    draws = np.array(
        [factor_loadings.draw_factor_loadings(rng, w, x, precision, SCALE) for _ in range(6000)]
    )
    for j in range(3):
        inverse = np.linalg.inv(w.T @ (precision[:, j, None] * w) + np.eye(2) / SCALE**2)
        mean = inverse @ w.T @ (precision[:, j] * x[:, j])
        assert np.allclose(draws[:, :, j].mean(axis=0), mean, atol=0.05)
        assert np.allclose(np.cov(draws[:, :, j].T), inverse, atol=0.05)


# --- distributions, step, models -------------------------------------------------------------


@pytest.mark.parametrize("distribution", ["normal", "laplace"])
def test_scores_have_their_distribution_where_the_feature_is(distribution):
    feature = np.array([[1, 0], [1, 1]], np.int8)
    rv = FeatureScores.dist(feature, distribution=distribution)
    draw = pm.draw(rv, random_seed=5)
    assert draw[0, 1] == 0
    assert (draw[feature == 1] != 0).all()
    known = {"normal": stats.norm, "laplace": stats.laplace}[distribution]
    assert pm.logp(rv, draw).eval() == pytest.approx(known.logpdf(draw[feature == 1]).sum())
    draw[0, 1] = 1.0
    assert np.isneginf(pm.logp(rv, draw).eval())
    with pytest.raises(ValueError, match="`distribution`"):
        FeatureScores.dist(feature, distribution="cauchy")


def test_scores_of_a_batch_have_its_shape():
    features = np.random.default_rng(5).integers(0, 2, (3, 2, 4), np.int8)
    for options in ({}, {"size": (3,)}, {"shape": (3, 2, 4)}, {"size": (5, 3)}):
        draw = pm.draw(FeatureScores.dist(features, **options), random_seed=6)
        assert draw.shape == (*options.get("size", (3,)), 2, 4)
        assert ((draw != 0) == features).all()


def test_rows_leave_out_missing_values():
    rng = np.random.default_rng(6)
    w, a, x = rng.normal(size=(4, 2)), rng.normal(size=(2, 3)), rng.normal(size=(4, 3))
    noise, seen = np.array([0.5, 1.0, 2.0]), rng.random((4, 3)) < 0.7
    cells = stats.norm(w @ a, noise).logpdf(x)
    whole = FactorRows.dist(w, a, noise)
    np.testing.assert_allclose(pm.logp(whole, x).eval(), cells.sum(axis=1))
    part = FactorRows.dist(w, a, noise, seen=seen)
    for hidden in (x, np.where(seen, x, np.nan)):
        np.testing.assert_allclose(pm.logp(part, hidden).eval(), (seen * cells).sum(axis=1))
    draws = pm.draw(part, 4000, random_seed=7)
    assert (abs(draws.mean(axis=0) - w @ a) < 4.5 * noise / np.sqrt(4000)).all()


def test_the_step_refuses_what_it_cannot_draw():
    with pm.Model() as model:
        z = IndianBuffet("feature", 1.0, observations=2, max_features=5)
        score = FeatureScores("score", z)
        loading = FeatureLoadings("loading", z, 1.0, variables=1)
        pm.Laplace("x", score @ loading, 1.0, observed=X)
        with pytest.raises(ValueError, match="do not make one FactorRows"):
            SparseFactorGibbs([z, score, loading])
    assert model["score"] is score


def reversed_features(z):
    return z[::-1]


@pytest.mark.parametrize(
    ("scores_of", "loadings_of", "scale", "words"),
    [
        (reversed_features, None, None, "not those of 'feature'"),
        (None, reversed_features, None, "not those of 'feature'"),
        (None, None, lambda z: 1.0 + z.sum(), "hyperparameters depend on 'feature'"),
    ],
)
def test_the_step_refuses_other_features_and_scales_that_depend_on_them(
    scores_of, loadings_of, scale, words
):
    with pm.Model():
        z = IndianBuffet("feature", 1.0, observations=2, max_features=5)
        score = FeatureScores("score", scores_of(z) if scores_of else z)
        size = scale(z) if scale else 1.0
        loading = FeatureLoadings(
            "loading", loadings_of(z) if loadings_of else z, size, variables=1
        )
        FactorRows("x", score, loading, np.ones(1), observed=X)
        with pytest.raises(ValueError, match=words):
            SparseFactorGibbs([z, score, loading])


class WrongNoise(SparseFactorGibbs):
    """Wrong: noise as if it were a variance."""

    def _scan(self, w, a, precision, process, scale):
        return super()._scan(w, a, np.sqrt(precision), process, scale)


def steps(kind, draws):
    """Classes that a step visits; a second column is not seen, and its noise another one."""
    seen = np.array([[1.0, 0.0], [1.0, 0.0]])
    table = np.column_stack([X, [99.0, np.nan]])
    with pm.Model() as model:
        z = IndianBuffet("feature", ALPHA, observations=2, max_features=MAX_FEATURES)
        score = FeatureScores("score", z)
        loading = FeatureLoadings("loading", z, SCALE, variables=2)
        noise = np.array([NOISE, 0.1])
        FactorRows("x", score, loading, noise, seen=seen, observed=np.nan_to_num(table))
        step = kind([z, score, loading])
    step.setup_chain(np.random.default_rng(7), 0, draws)
    point = model.initial_point()
    for _ in range(draws):
        point, _ = step.step(point)
        yield counts(point["feature"][:, point["feature"].any(axis=0)])


@pytest.mark.statistical
def test_the_step_has_the_exact_posterior_and_a_wrong_one_has_not():
    exact = posterior_of(log_density, 2, ALPHA, most=5)
    # Of 1,500 draws the noise of the distance is .06 to .08.
    assert distance(list(steps(SparseFactorGibbs, 1_500)), exact) < 0.11
    assert distance(list(steps(WrongNoise, 1_000)), exact) > 0.125


def test_more_factors_can_be_proposed_than_a_fixed_number():
    # alpha 200 for one row: about as many factors, which is below the maximum number.
    rng, w, a = np.random.default_rng(8), np.zeros((1, 300)), np.zeros((300, 1))
    process, x = np.array([200.0, 1.0, 0.0]), np.zeros((1, 1))
    nothing = np.zeros((1, 1))
    used = kernel.scan_factors(rng, w, a, 0, x, nothing, np.arange(1), 1.0, process, False)
    assert 130 < used < 270


def test_the_step_is_assigned_outside_of_a_context():
    model = infinite_ica(components(20)[0])
    _, methods = pm.sampling.mcmc.assign_step_methods(model)
    assert SparseFactorGibbs in methods
    assert sum(map(len, methods.values())) == len(model.free_RVs)


def test_a_chain_with_too_many_features_stops_with_the_remedy():
    rng = np.random.default_rng(8)
    with sparse_factor_analysis(rng.normal(size=(40, 6)), noise=0.05, max_features=1) as model:
        names = ("feature", "score", "loading")
        step = SparseFactorGibbs([model[name] for name in names], rng=rng)
        step.setup_chain(rng, 0, 1)
        point = model.initial_point()
        with pytest.raises(ValueError, match="max_features"):
            for _ in range(50):
                point, _ = step.step(point)


def components(n=120, seed=9):
    rng = np.random.default_rng(seed)
    z = rng.random((n, 2)) < 0.4
    loading = np.array([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, -1]])
    scores = z * rng.laplace(size=(n, 2)) * 2
    return scores @ loading + 0.2 * rng.standard_normal((n, 6)), z, loading


@pytest.mark.chain
@pytest.mark.parametrize("model", [sparse_factor_analysis, infinite_ica])
def test_components_are_found_again(model):
    x, _, loading = components()
    x[3, 2] = np.nan
    known = {"alpha": 0.4, "noise": 0.13, "loading_scale": 0.6}
    with model(x, max_features=60, **known):
        idata = pm.sample(
            80,
            tune=150,
            chains=2,
            cores=1,
            random_seed=10,
            progressbar=False,
            compute_convergence_checks=False,
        )
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(
            idata, extend_inferencedata=True, random_seed=11, progressbar=False
        )
    there = bs.feature_table(idata).query("probability > 0.5")["feature"]
    table = bs.loading_table(idata).pivot(index="feature", columns="variable", values="mean")
    found = table.loc[there].to_numpy()
    found = found / np.linalg.norm(found, axis=1)[:, None]
    cosines = np.abs(found @ loading.T) / np.sqrt(3)
    assert (cosines.max(axis=0) > 0.95).all()
    assert idata["log_likelihood"]["x"].shape == (2, 80, 120)
    replicated = idata["posterior_predictive"]["x"].to_numpy()
    assert abs(replicated.std(axis=(0, 1, 2)) - 1).max() < 0.15
    assert idata["constant_data"]["seen"].to_numpy().sum() == 719


@pytest.mark.chain
def test_standard_deviations_are_drawn_too():
    with sparse_factor_analysis(components(40)[0], max_features=12):
        idata = pm.sample(
            10,
            tune=10,
            chains=1,
            random_seed=7,
            progressbar=False,
            compute_convergence_checks=False,
        )
    for name in ("noise", "loading_scale"):
        values = idata["posterior"][name].to_numpy()
        assert (values > 0).all()
        assert values.std() > 0


def test_the_models_refuse_bad_input():
    x, _, _ = components(20)
    with pytest.raises(TableError, match="x2"):
        x[:, 2] = 1.0
        sparse_factor_analysis(x)
    x, _, _ = components(20)
    for options, words in [
        ({"alpha": 0}, "`alpha`"),
        ({"noise": "1"}, "`noise`"),
        ({"loading_scale": -1.0}, "`loading_scale`"),
        ({"max_features": 2.5}, "`max_features`"),
        ({"concentration": -1.0}, "`concentration`"),
    ]:
        with pytest.raises((TypeError, ValueError), match=words):
            infinite_ica(x, **options)
