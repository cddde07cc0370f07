"""Bayes factors of columns of several kinds that are independent in the table."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import bayesstruct as bs

from bayesstruct.models import bayesian_network
from bayesstruct.networks.kernels.scores.mixed import MixedScore
from bayesstruct.networks.reading.mixed_limits import log_mixed_factor

COLUMNS = {
    "normal": 0,
    "student": 0,
    "laplace": 0,
    "logistic": 2,
    "probit": 2,
    "cloglog": 2,
    "multinomial": 3,
    "ordinal": 3,
}


def column(family, n):
    """Values with known shares of states, or quantiles of a normal distribution."""
    if not COLUMNS[family]:
        z = np.sort(np.random.default_rng(1).normal(size=n))
        return (z - z.mean()) / z.std(ddof=1)
    return np.arange(n) * COLUMNS[family] // n if COLUMNS[family] == 3 else np.arange(n) > 0.7 * n


def crossed(parent, child):
    """A table with each value of one column beside each of another, so that they are independent."""
    one, other = column(parent, 12), column(child, 30)
    return np.array([[a, b] for a in one for b in other], float)


def log_evidence(fit, draws=2000):
    """Log evidence by importance sampling; exact for normal noise."""
    rng = np.random.default_rng(0)
    weights = [fit.log_weight(fit.draw(rng)) for _ in range(1 if fit.exact else draws)]
    return fit.score + np.log(np.mean(np.exp(weights)))


@pytest.mark.statistical
@pytest.mark.parametrize("child", COLUMNS)
@pytest.mark.parametrize("parent", ["normal", "logistic", "multinomial", "ordinal"])
def test_factors_are_differences_of_scores_of_independent_columns(parent, child):
    x = crossed(parent, child)
    families, states = (parent, child), (COLUMNS[parent], COLUMNS[child])
    score = MixedScore(x, families, states)
    wide = np.exp(score.fit(1, []).mode[-1]) + 2.0  # degrees of freedom of student noise
    found = log_mixed_factor(score.layout, x, 0, 1, score.scale, wide)
    expected = log_evidence(score.fit(1, [0])) - log_evidence(score.fit(1, []))
    # Laplace and t noise: standard errors of .01, and scales whose densities are skewed.
    error = {"normal": 1e-9, "laplace": 0.15, "student": 0.03}.get(child, 0.02)
    assert found == pytest.approx(expected, abs=error)
    assert abs(found) > 1.0


@pytest.mark.chain
def test_normal_columns_have_the_limits_of_bge():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    found = []
    for score in ("bge", "mixed"):
        with bayesian_network(table, score=score):
            idata = pm.sample(5, tune=0, chains=1, random_seed=1, compute_convergence_checks=False)
        found.append(bs.evidence_limits(idata)["smallest"])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


@pytest.mark.chain
def test_limits_of_several_kinds_fall_with_the_rows_and_leave_out_set_values():
    rng, found = np.random.default_rng(0), {}
    for n in (40, 4000):
        table = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["x", "y"], n)})
        table["c"] = rng.standard_t(5, n)
        was_set = pd.DataFrame({"b": np.arange(n) < n // 2})
        with bayesian_network(table, score="mixed", kinds={"c": "student"}, interventions=was_set):
            prior = pm.sample_prior_predictive(50, random_seed=1)
        prior["posterior"] = prior["prior"]
        found[n] = bs.evidence_limits(prior)
    assert found[40].attrs["rows"] == 40 and found[40]["included_from"].isna().all()
    ratio = found[40]["smallest"] / found[4000]["smallest"]
    np.testing.assert_allclose(ratio, 10.0, rtol=0.15)  # the root of the ratio of the rows
