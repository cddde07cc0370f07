"""The step of mixtures of regressions: what it draws, what it refuses; the densities around it."""

import cloudpickle
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import special, stats
from tools.buffets import distance
from tools.mixtures import log_columns, log_glm, log_posterior
from tools.partitions import posterior_of

from bayesstruct.mixtures.priors.mixture_parameters import ClusterNormals, ClusterVariances
from bayesstruct.mixtures.priors.mixture_rows import (
    ClusterBinary,
    ClusterCount,
    ClusterResponse,
    ClusterRows,
)
from bayesstruct.mixtures.steps import DirichletMixtureGibbs
from bayesstruct.models.dp_glm import dp_glm
from bayesstruct.simulate import dp_glm as simulate

LABELS = np.array([0, 1, 0, 1, 1])
MEAN, VARIANCE = np.array([[1.0, -1], [2, 0.5], [0, 0]]), np.array([[1.0, 2], [0.5, 3], [0, 0]])
COEFFICIENT, CENTRE = np.array([[0.5, 1, -1], [-0.5, 0.3, 0.7], [0, 0, 0]]), np.array([0.2, -0.1])


@pytest.mark.statistical
def test_densities_of_parameters():
    rv = ClusterVariances.dist(LABELS, 2.5, [0.5, 2.0], components=3)
    expected = stats.invgamma(2.5, scale=[0.5, 2.0]).logpdf(VARIANCE[:2]).sum()
    assert pm.logp(rv, VARIANCE).eval() == pytest.approx(expected)
    draw = pm.draw(rv, 4000, random_seed=1)
    assert not draw[:, 2].any()
    for j, rate in enumerate([0.5, 2.0]):
        assert stats.kstest(draw[:, 1, j], stats.invgamma(2.5, scale=rate).cdf).pvalue > 1e-3
    for wrong in (VARIANCE[[0, 0, 1]], -VARIANCE):  # one that nothing is in; below zero
        assert np.isneginf(pm.logp(rv, wrong).eval())
    rv = ClusterNormals.dist(LABELS, VARIANCE, [0.3, -0.2], [0.5, 4.0])
    normal = stats.norm([0.3, -0.2], np.sqrt(VARIANCE[:2] / [0.5, 4.0]))
    assert pm.logp(rv, MEAN).eval() == pytest.approx(normal.logpdf(MEAN[:2]).sum())
    draw = pm.draw(rv, 4000, random_seed=2)
    assert not draw[:, 2].any()
    z = (draw[:, :2] - normal.mean()) / normal.std()
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3


@pytest.mark.statistical
def test_densities_of_rows():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(5, 2))
    normal = stats.norm(MEAN[LABELS], np.sqrt(VARIANCE[LABELS]))
    rv = ClusterRows.dist(LABELS, MEAN, VARIANCE)
    np.testing.assert_allclose(pm.logp(rv, x).eval(), normal.logpdf(x).sum(axis=1))
    z = (pm.draw(rv, 1000, random_seed=3) - normal.mean()) / normal.std()
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3
    own = COEFFICIENT[LABELS]
    eta = own[:, 0] + ((x - CENTRE) * own[:, 1:]).sum(axis=1)
    noise = np.array([[0.5], [2.0], [0]])
    given = (x, LABELS, COEFFICIENT, CENTRE)
    cases = [
        (ClusterResponse.dist(*given, noise), stats.norm(eta, np.sqrt(noise[LABELS, 0]))),
        (ClusterBinary.dist(*given), stats.bernoulli(1 / (1 + np.exp(-eta)))),
        (ClusterCount.dist(*given), stats.poisson(np.exp(eta))),
    ]
    for rv, expected in cases:
        y = expected.rvs(random_state=1)
        log_density = expected.logpdf if hasattr(expected.dist, "pdf") else expected.logpmf
        np.testing.assert_allclose(pm.logp(rv, y).eval(), log_density(y), rtol=1e-10)
        draws = pm.draw(rv, 4000, random_seed=4)
        assert (
            abs(draws.mean(axis=0) - expected.mean()) < 4.5 * expected.std() / np.sqrt(4000)
        ).all()
    assert np.isneginf(pm.logp(cases[1][0], np.full(5, 2)).eval()).all()
    assert np.isneginf(pm.logp(cases[2][0], np.full(5, -1)).eval()).all()


X = np.array([[2.2], [1.7], [0.6], [0.0]])
GLMS = {
    "logistic": (np.array([1.0, 0, 1, 1]), [-1.5, 2.0], stats.bernoulli, special.expit),
    "poisson": (np.array([4.0, 0, 1, 2]), [0.8, -0.9], stats.poisson, np.exp),
}


@pytest.mark.statistical
@pytest.mark.parametrize("family", GLMS)
def test_labels_of_other_responses_have_the_exact_posterior(family):
    y, start, expected, mean = GLMS[family]
    with dp_glm(pd.DataFrame({"v": X[:, 0]}), y, family=family, alpha=1.4) as model:
        model["coefficient_location"].set_value(np.array(start))
        step = DirichletMixtureGibbs(model.value_vars, rng=np.random.default_rng(1))
    names = ["strength", "shape", "rate", "location"]
    *columns, location = (model[f"covariate_{name}"].get_value() for name in names)
    deviation = 1.0 / np.sqrt(model["coefficient_strength"].get_value())
    x = X - location
    design = np.column_stack([np.ones(4), x])

    def log_cluster(rows):
        d = design[rows]
        response = log_glm(
            d, y[rows], deviation, lambda y, eta: expected(mean(eta)).logpmf(y), d @ start
        )
        return log_columns(x[rows], *columns) + response

    exact = posterior_of(lambda labels: log_posterior(labels, 1.4, log_cluster), 4)
    point, seen = model.initial_point(), []
    for _ in range(4_000):
        point, _ = step.step(point)
        seen.append(tuple(point["cluster"].tolist()))
    # The share of 15 partitions in as many independent draws is off by about 0.02.
    assert distance(seen, exact) < 0.05


@pytest.mark.parametrize("family", ["gaussian", "logistic", "poisson"])
def test_points_stay_in_the_support(family):
    made = simulate(40, 2, family=family, random_seed=5)
    with dp_glm(made.data, "y", family=family) as model:
        drawn = [v for v in model.value_vars if v.name != "alpha_log__"]
        step = DirichletMixtureGibbs(drawn, rng=np.random.default_rng(6))
    step = cloudpickle.loads(cloudpickle.dumps(step))  # as processes of pm.sample get it
    step.setup_chain(np.random.default_rng(6), 0, 1)
    logp, point, seen = model.compile_logp(), model.initial_point(), []
    start = logp(point)
    for _ in range(40):
        point, [known] = step.step(point)
        assert known["n_clusters"] == point["cluster"].max() + 1
        assert not point["coefficient"][known["n_clusters"] :].any()
        seen.append(logp(point))
    assert np.isfinite(seen).all()
    assert np.mean(seen[20:]) > start


def test_the_step_refuses_what_it_cannot_draw():
    made = simulate(12, 2, random_seed=7)
    with dp_glm(made.data, "y", alpha=1.0) as model:
        with pytest.raises(ValueError, match="must be drawn by one step"):
            DirichletMixtureGibbs([model["cluster"], model["coefficient"]])
        pm.Potential("more", -(model["coefficient"] ** 2).sum())
        with pytest.raises(ValueError, match="depends on"):
            DirichletMixtureGibbs(model.value_vars)
    with dp_glm(made.data, "y", alpha=1.0) as model:
        pm.Normal("z", model["cluster"].astype("float64"), 1.0, observed=np.zeros(12))
        with pytest.raises(ValueError, match="'cluster'"):
            DirichletMixtureGibbs(model.value_vars)


@pytest.mark.chain
@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_a_chain_with_too_many_clusters_stops_with_the_remedy(family):
    made = simulate(60, 2, n_clusters=5, family=family, separation=9.0, random_seed=8)
    with dp_glm(made.data, "y", family=family, alpha=3.0, max_clusters=2) as model:
        step = DirichletMixtureGibbs(model.value_vars, rng=np.random.default_rng(9))
    step.setup_chain(np.random.default_rng(9), 0, 1)
    point = model.initial_point()
    with pytest.raises(ValueError, match="max_clusters"):
        for _ in range(50):
            point, _ = step.step(point)
