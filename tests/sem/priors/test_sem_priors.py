"""Distributions of linear structural equations against densities written out with SciPy, and laws of their draws."""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import stats

from bayesstruct.data.errors import TableWarning
from bayesstruct.models import linear_sem
from bayesstruct.sem.data import sem_table
from bayesstruct.sem.kernels.errors import BASE
from bayesstruct.sem.priors.noise import noise_law, with_normal

RNG = np.random.default_rng(5)
X = RNG.normal(size=(12, 3)) * [1.0, 2.0, 5.0] + [0.0, 1.0, -3.0]
DAG = np.array([[0, 1, 1], [0, 0, 0], [0, 1, 0]], np.int8)  # 0 -> 1, 0 -> 2, 2 -> 1
PARENTS = {0: [], 1: [0, 2], 2: [0]}
SCALES = np.array([0.9, 0.6, 1.2])
WEIGHT = {(0, 1): 0.7, (2, 1): -0.4, (0, 2): 1.1}
LOCAL = {(0, 1): 0.3, (2, 1): 2.0, (0, 2): 1.5}
ARCS = [(1, 0), (2, 0), (0, 1), (2, 1), (0, 2), (1, 2)]  # as results order them
INTERCEPT = np.array([0.2, -0.1, 0.4])
DEGREES = np.array([3.0, 8.0, 30.0])
PI = np.random.default_rng(1).dirichlet(np.ones(6), size=3)
NORMAL = np.array([0, 1, 0])  # columns with exactly normal noise
KNOWN = np.array([1.0, 2.0, 6.0])


def over_arcs(values, absent):
    return np.array([values.get(arc, absent) for arc in ARCS])


def point_of(noise, variances, prior, normal=None):
    point = {"dag": DAG, "weight": over_arcs(WEIGHT, 0.0)}
    point["offset" if noise == "mixture" else "intercept"] = INTERCEPT
    name = "noise_factor" if variances == "known" else "noise_scale"
    point[name] = SCALES if variances == "free" else np.array(0.8)
    if prior == "horseshoe":
        point["local_scale"] = over_arcs(LOCAL, 1.0)
    if noise == "student":
        point["degrees"] = DEGREES
    if noise == "mixture":
        point["mixture_weight"] = PI if variances == "free" else PI[0]
    if normal:
        point["normal_noise"] = NORMAL
    if normal == "random":
        point["normal_share"] = np.array(0.3)
    return point


def noise_density(noise, e, i, shared):
    if noise == "gaussian":
        return stats.norm.logpdf(e)
    if noise == "laplace":
        return stats.laplace.logpdf(e, scale=1 / np.sqrt(2))
    if noise == "student":
        unit = np.sqrt((DEGREES[i] - 2) / DEGREES[i])
        return stats.t.logpdf(e / unit, DEGREES[i]) - np.log(unit)
    law = noise_law("mixture")
    own = PI[0] if shared else PI[i]
    parts = [p * stats.norm.pdf(e, m, v) for p, m, v in zip(own, law.location, law.width)]
    return np.log(sum(parts))


def slab_density(prior, arc, s, scale):
    b = WEIGHT[arc]
    if prior == "laplace":
        return stats.laplace.logpdf(b, scale=s * scale)
    if prior == "horseshoe":
        own = stats.norm.logpdf(b, scale=s * scale * LOCAL[arc])
        return own + stats.halfcauchy.logpdf(LOCAL[arc])
    return stats.norm.logpdf(b, scale=s * scale)


def expected(noise, variances, prior, normal=None):
    """Log density of parameters and rows given the graph; size 1, so that t = 1/2 and a = 3/2 without parents."""
    share = 0.3 if normal == "random" else normal  # whose prior density is 1
    t, a = 0.5, 1.5
    if variances == "free":
        unit = X.std(axis=0, ddof=1)
        s = SCALES
        total = 0.0
        for i in range(3):
            shape = a + len(PARENTS[i]) / 2
            total += stats.invgamma.logpdf(s[i] ** 2, shape, scale=t / 2) + np.log(2 * s[i])
    else:
        unit = np.full(3, np.sqrt(X.var(axis=0, ddof=1).mean()))
        known = KNOWN / KNOWN.mean() if variances == "known" else np.ones(3)
        s = 0.8 * np.sqrt(known)
        total = stats.invgamma.logpdf(0.64, a, scale=t / 2) + np.log(1.6)
    z = (X - X.mean(axis=0)) / unit
    for i in range(3):
        total += stats.norm.logpdf(INTERCEPT[i], scale=s[i])
        mean = INTERCEPT[i] + sum(WEIGHT[j, i] * z[:, j] for j in PARENTS[i])
        total += sum(slab_density(prior, (j, i), s[i], 1 / np.sqrt(t)) for j in PARENTS[i])
        e = (z[:, i] - mean) / s[i]
        own = "gaussian" if normal and NORMAL[i] else noise
        total += (noise_density(own, e, i, variances != "free") - np.log(s[i] * unit[i])).sum()
        if normal:
            total += np.log(share if NORMAL[i] else 1.0 - share)
        if noise == "student":
            total += stats.gamma.logpdf(DEGREES[i] - 2, 2.0, scale=10.0)
    if noise == "mixture":
        used = PI if variances == "free" else PI[:1]
        total += sum(stats.dirichlet.logpdf(own, 24.0 * BASE) for own in used)
    return total


CASES = [
    ("gaussian", "free", "spike_slab"),
    ("laplace", "equal", "horseshoe"),
    ("student", "known", "laplace"),
    ("student", "free", "horseshoe"),
    ("mixture", "free", "laplace", 0.0),
    ("mixture", "free", "spike_slab", 0.3),
    ("mixture", "free", "spike_slab", "random"),
    ("mixture", "equal", "spike_slab"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_density_is_that_of_independent_formulas(case):
    noise, variances, prior, *normal = case
    options = {"known_variances": KNOWN} if variances == "known" else {}
    if normal:
        options["normal_probability"] = None if normal[0] == "random" else normal[0]
    model = linear_sem(X, noise=noise, variances=variances, prior=prior, **options)
    rvs = [rv for rv in model.basic_RVs if rv.name != "dag"]
    found = model.compile_logp(vars=rvs)(point_of(*case))
    np.testing.assert_allclose(found, expected(*case), rtol=1e-10)


def test_columns_are_drawn_with_normal_noise_or_with_a_mixture():
    law = noise_law("mixture", normal=True)
    e = law.draw(np.random.default_rng(3), with_normal(PI, NORMAL), 20000)
    assert stats.kstest(e[:, 1], "norm").pvalue > 1e-3
    assert stats.kstest(e[:, 0], "norm").pvalue < 1e-6
    mean, variance = law.moments(with_normal(PI, NORMAL))
    assert (mean[1], variance[1]) == (0.0, 1.0)
    np.testing.assert_allclose(mean[0], noise_law("mixture").moments(PI)[0][0])


def test_the_prior_probability_of_normal_noise_is_that_of_prior_draws():
    model = linear_sem(X, noise="mixture", normal_probability=0.2)
    draws = pm.draw(model["normal_noise"], 600, random_seed=1)
    assert abs(draws.mean() - 0.2) < 5 * np.sqrt(0.16 / draws.size)


def test_the_number_of_columns_with_normal_noise_has_a_flat_prior():
    """The beta-binomial distribution of Beta(1, 1): with independent columns 0 and 3 had probabilities of 1/8."""
    model = linear_sem(X, noise="mixture")
    draws = pm.draw(model["normal_noise"], 1000, random_seed=1).sum(axis=1)
    counts = np.bincount(draws, minlength=4)
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "laplace", "normal_probability": 0.5}, "goes with noise='mixture'"),
        (
            {"noise": "mixture", "variances": "equal", "normal_probability": 0.5},
            "variances='free', not with noise='mixture' and variances='equal'; leave it out",
        ),
        ({"noise": "mixture", "normal_probability": 1.5}, "must be at most 1, it is 1.5"),
        ({"noise": "mixture", "normal_probability": "no"}, "must be one number, not 'no'"),
        ({"noise": "mixture", "normal_probability": True}, "must be one number, not True"),
    ],
)
def test_a_probability_of_normal_noise_that_does_not_fit_is_refused(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        linear_sem(X, **options)


def test_weights_of_absent_arcs_are_exactly_zero():
    model = linear_sem(X)
    point = point_of("gaussian", "free", "spike_slab")
    point["weight"] = point["weight"] + (np.arange(6) == 0) * 1e-6
    assert model.compile_logp(vars=[model["weight"]])(point) == -np.inf


def test_values_that_were_set_have_no_density_and_act_on_others():
    was_set = np.zeros(X.shape, bool)
    was_set[:4, 2] = True
    model = linear_sem(X, noise="laplace", interventions=was_set)
    point = point_of("laplace", "free", "spike_slab")
    found = model.compile_logp(vars=[model["x"]])(point)
    unit = X.std(axis=0, ddof=1)
    z = (X - X.mean(axis=0)) / unit
    total = 0.0
    for i in range(3):
        mean = INTERCEPT[i] + sum(WEIGHT[j, i] * z[:, j] for j in PARENTS[i])
        e = (z[:, i] - mean) / SCALES[i]
        terms = noise_density("laplace", e, i, False) - np.log(SCALES[i] * unit[i])
        total += terms[~was_set[:, i]].sum()
    np.testing.assert_allclose(found, total, rtol=1e-10)


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "student", "mixture"])
def test_noise_is_drawn_from_its_density(noise):
    law, rng = noise_law(noise), np.random.default_rng(3)
    shape = {"student": np.array([[5.0]]), "mixture": PI[:1]}.get(noise, np.zeros((1, 1)))
    e = law.draw(rng, shape, 20000)[:, 0]
    grid = np.linspace(-40, 40, 400001)
    density = np.exp(law.log_density(pt.as_tensor(grid[:, None]), pt.as_tensor(shape)).eval())[:, 0]
    cdf = np.cumsum(density) * 2e-4
    assert stats.kstest(e, lambda v: np.interp(v, grid, cdf)).pvalue > 1e-3
    mean, variance = law.moments(shape)
    assert abs(e.mean() - mean[0]) < 5 * np.sqrt(variance[0] / len(e))
    weights = density * 2e-4
    np.testing.assert_allclose(weights @ grid, mean[0], atol=1e-4)
    np.testing.assert_allclose(weights @ grid**2 - mean[0] ** 2, variance[0], atol=2e-2)


def test_rows_are_drawn_parents_first_with_the_noise_of_each_column():
    model = linear_sem(X, noise="laplace")
    with model:
        point = {**point_of("laplace", "free", "spike_slab")}
        given = {model[name]: value for name, value in point.items()}
        rows = pm.draw(pm.do(model, {k.name: v for k, v in given.items()})["x"], 400, random_seed=1)
    z = (rows.reshape(-1, 3) - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    matrix = np.zeros((3, 3))
    for (j, i), b in WEIGHT.items():
        matrix[i, j] = b
    e = (z - INTERCEPT - z @ matrix.T) / SCALES
    for i in range(3):
        assert stats.kstest(e[:, i], stats.laplace(scale=1 / np.sqrt(2)).cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0, 2.0], "one number for each"),
        ([1.0, -2.0, 1.0], "positive"),
        ({"x0": 1.0, "x1": 1.0}, "leaves out"),
        ({"x0": 1.0, "x1": 1.0, "x2": 1.0, "y": 2.0}, "y"),
        (None, "needs `known_variances`"),
    ],
)
def test_known_variances_must_fit_the_columns(given, message):
    with pytest.raises(ValueError, match=message):
        sem_table(X, variances="known", known_variances=given)


def test_known_variances_go_by_name_and_up_to_a_factor():
    one = sem_table(X, variances="known", known_variances={"x2": 6.0, "x0": 1.0, "x1": 2.0})
    np.testing.assert_allclose(one.relative, KNOWN / 3.0)
    assert len(set(one.table.scale)) == 1
    with pytest.raises(ValueError, match="goes with variances='known'"):
        sem_table(X, variances="equal", known_variances=KNOWN)


def test_columns_that_were_standardised_do_not_go_with_equal_variances():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(50, 3)), columns=list("abc"))
    table = (table - table.mean()) / table.std()
    with pytest.warns(TableWarning, match="same standard deviation.*variances='free'"):
        linear_sem(table, variances="equal")
    with pytest.raises(ValueError, match="largest of `known_variances`"):
        linear_sem(table, variances="known", known_variances=[1.0, 1e20, 1e-20])


@pytest.mark.parametrize("given", [np.float32(0.5), np.int64(1)])
def test_a_probability_of_normal_noise_may_be_a_number_of_any_type(given):
    model = linear_sem(X, noise="mixture", normal_probability=given)
    assert model["normal_noise"].owner.inputs[-1].eval() == given
