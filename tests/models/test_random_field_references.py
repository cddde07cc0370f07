"""Markov random fields under priors that only shrink, against importance sampling without code of the package."""

import itertools

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import optimize, special, stats
from tools.batches import mean_and_error

import bayesstruct as bs

DRAWS, PAIRS = 200_000, list(itertools.combinations(range(3), 2))


def answers(k, n=30, seed=8):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, k, (n, 3))
    x[:, 1] = np.where(rng.random(n) < 0.35, x[:, 0], x[:, 1])
    return pd.DataFrame(x, columns=list("abc"))


def terms(kind, x):
    """What biases and weights multiply in each joint state."""
    k = x.max() + 1
    if kind == "spin":
        s = 2 * x - 1
        return s, np.column_stack([s[:, i] * s[:, j] for i, j in PAIRS])
    unary = np.column_stack([x[:, i] == s for i in range(3) for s in range(1, k)])
    if kind == "ordinal":
        return unary, np.column_stack([x[:, i] * x[:, j] for i, j in PAIRS])
    cells = itertools.product(PAIRS, range(k), range(k))
    return unary, np.column_stack([(x[:, i] == s) & (x[:, j] == t) for (i, j), s, t in cells])


class Field:
    """Log likelihood of a table at many parameters, from the joint states one by one."""

    def __init__(self, kind, table, likelihood):
        k = int(table.to_numpy().max()) + 1
        self.states = np.array(list(itertools.product(range(k), repeat=3)))
        unary, pair = terms(kind, self.states)
        self.biases, self.weights = unary.shape[1], pair.shape[1]
        self.terms = np.column_stack([unary, pair]).astype(float)
        self.counts = np.bincount(table.to_numpy() @ [k * k, k, 1], minlength=k**3)
        others = [np.delete(self.states, i, axis=1) @ [k, 1] for i in range(3)]
        whole = np.zeros(k**3, int)
        #: Which joint states a probability is compared with: all, or those with the same other columns.
        self.groups = [whole] if likelihood == "exact" else others

    def __call__(self, theta):
        energy = theta @ self.terms.T
        out = 0.0
        for group in self.groups:
            total = np.log(np.exp(energy) @ np.eye(group.max() + 1)[group])
            out = out + (energy - total[:, group]) @ self.counts
        return out


def normal_proposal(field, bias_scale):
    """Mode and inverse curvature of the density with a standard normal prior of the weights."""
    scale = np.r_[np.full(field.biases, bias_scale), np.ones(field.weights)]

    def negative(theta):
        return -field(theta[None])[0] + 0.5 * np.sum((theta / scale) ** 2)

    found = optimize.minimize(negative, np.zeros(len(scale)), method="BFGS")
    return found.x, found.hess_inv


def under_a_density(field, log_prior, bias_scale, rng):
    """Parameters drawn around the mode, and their log weights."""
    mode, spread = normal_proposal(field, bias_scale)
    proposal = stats.multivariate_t(mode, 1.5 * spread, df=6, seed=rng)
    theta = proposal.rvs(DRAWS)
    logs = stats.norm.logpdf(theta[:, : field.biases], 0, bias_scale).sum(axis=1)
    logs += log_prior(theta[:, field.biases :]) - proposal.logpdf(theta)
    return theta, logs + field(theta)


def horseshoe_scales(rng, count, ratio, n, sigma, slab_scale):
    """Standard deviations of weights: half-Cauchy scales, and a slab with 4 degrees of freedom."""
    tau = abs(rng.standard_cauchy((DRAWS, 1))) * ratio * sigma / np.sqrt(n)
    local = abs(rng.standard_cauchy((DRAWS, count)))
    c2 = stats.invgamma(2.0, scale=2.0 * slab_scale**2).rvs((DRAWS, 1), random_state=rng)
    return tau * np.sqrt(c2 * local**2 / (c2 + tau**2 * local**2))


def curvature(field, at, step=1e-3):
    """Second derivatives of the log likelihood, with the sign of a precision, by differences."""
    e = step * np.eye(len(at))
    corners = [a * e[:, None] + b * e[None] for a in (1, -1) for b in (1, -1)]
    pp, pm_, mp, mm = (field((at + c).reshape(-1, len(at))).reshape(len(at), -1) for c in corners)
    return -(pp - pm_ - mp + mm) / (4 * step**2)


def under_scales(field, scales, bias_scale, rng):
    """Parameters around their mode given the scales of the weights, and their log weights."""
    mode, _ = normal_proposal(field, bias_scale)
    sharp = curvature(field, mode)
    linear = (
        mode * np.r_[np.full(field.biases, bias_scale**-2), np.ones(field.weights)] + sharp @ mode
    )
    sd = np.column_stack([np.full((DRAWS, field.biases), bias_scale), np.maximum(scales, 1e-12)])
    root = np.linalg.cholesky(sharp * sd[:, :, None] * sd[:, None] + np.eye(sd.shape[1]))
    upper = np.swapaxes(root, 1, 2)
    solved = np.linalg.solve(root, (sd * linear)[..., None])
    z = rng.standard_normal(sd.shape)
    spread = 1.2 / np.sqrt(rng.chisquare(8, DRAWS) / 8)  # Student's t with 8 degrees of freedom
    away = z * spread[:, None]
    unit = np.linalg.solve(upper, solved + away[..., None])[..., 0]
    log_q = stats.multivariate_t(np.zeros(z.shape[1]), 1.44 * np.eye(z.shape[1]), df=8).logpdf(away)
    log_q += np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    theta = sd * unit
    return theta, field(theta) + stats.norm.logpdf(unit).sum(axis=1) - log_q


def averages(values, logs):
    """Self-normalised means of (draw, quantity) values, and their standard errors."""
    share = special.softmax(logs)
    assert 1 / np.sum(share**2) > 5_000  # as many independent draws
    mean = share @ values
    return mean, np.sqrt(share**2 @ (values - mean) ** 2)


def groups_of(theta, field):
    return theta[:, field.biases :].reshape(len(theta), 3, -1)


def strengths(kind, weights):
    """One number for each pair: its weight, or the norm of the interaction of its table."""
    if kind != "full":
        return weights[..., 0]
    tables = weights.reshape(*weights.shape[:-1], 2, 2)
    tables = tables - tables.mean(-1, keepdims=True)
    tables = tables - tables.mean(-2, keepdims=True)
    return np.sqrt((tables**2).sum(axis=(-1, -2)))


def quantities(bias, weights, strength, cut):
    """First and second moments, and whether a pair is beyond the cut."""
    return np.concatenate([bias, bias**2, weights, weights**2, abs(strength) > cut], axis=-1)


def laplace(rate):
    return lambda w: stats.laplace.logpdf(w, 0, 1 / rate).sum(axis=1)


def group_laplace(rate):
    return lambda w: -rate * np.sqrt((w.reshape(len(w), 3, -1) ** 2).sum(axis=2)).sum(axis=1)


# Kind of field, model, its options, likelihood, and the log density of the prior; None for the horseshoe.
CASES = {
    "laplace": ("ordinal", bs.models.ising, {"rate": 2.0}, "pseudo", laplace(2.0)),
    "laplace, exact": ("spin", bs.models.ising, {"rate": 3.0, "coding": "pm"}, "exact", laplace(3.0)),
    "ordinal": ("ordinal", bs.models.pairwise_mrf, {"rate": 1.5, "potentials": "ordinal"}, "exact", laplace(1.5)),
    "group": ("full", bs.models.pairwise_mrf, {"rate": 2.0}, "pseudo", group_laplace(2.0)),
    "horseshoe": ("ordinal", bs.models.ising, {"slab_scale": 1.5}, "pseudo", None),
    "horseshoe, exact": ("spin", bs.models.ising, {"coding": "pm", "expected_edges": 1.0}, "exact", None),
}  # fmt: skip


def exact(case):
    """Expected quantities of a case, and their standard errors."""
    kind, _, options, likelihood, log_prior = CASES[case]
    table, rng = answers(3 if case == "ordinal" else 2), np.random.default_rng(1)
    field = Field(kind, table, likelihood)
    if log_prior is not None:
        theta, logs = under_a_density(field, log_prior, 2.0, rng)
    else:
        unit, expected = 0.25 if kind == "spin" else 1.0, options.get("expected_edges", 1.5)
        scale = options.get("slab_scale", unit)
        scales = horseshoe_scales(rng, 3, expected / (3 - expected), len(table), 2.0 * unit, scale)
        theta, logs = under_scales(field, scales, 2.0, rng)
    bias, weights = theta[:, : field.biases], theta[:, field.biases :]
    strength = strengths(kind, groups_of(theta, field))
    return averages(quantities(bias, weights, strength, CUT[kind]), logs)


CUT = {"ordinal": 0.2, "spin": 0.05, "full": 0.2}


@pytest.mark.chain
@pytest.mark.compiled
@pytest.mark.parametrize("case", CASES)
def test_posterior_under_priors_that_shrink(case):
    kind, build, options, likelihood, log_prior = CASES[case]
    table = answers(3 if case == "ordinal" else 2)
    shrinking = "laplace" if build is bs.models.ising else "group_laplace"
    prior = "horseshoe" if log_prior is None else shrinking
    with build(table, prior=prior, likelihood=likelihood, bias_scale=2.0, **options):
        idata = pm.sample(
            2_500, tune=800, chains=2, cores=1, nuts_sampler="pymc", target_accept=0.95, random_seed=1,
            progressbar=False, compute_convergence_checks=False,
        )  # fmt: skip
    posterior = idata["posterior"]
    bias, strength = posterior["bias"].values, posterior["weight"].values
    weights = posterior["potential"].values if kind == "full" else strength
    drawn = quantities(bias, weights, strength, CUT[kind])
    np.testing.assert_array_equal(drawn[..., -3:], posterior["edge"].values)
    mean, error, _ = mean_and_error(drawn)
    wanted, noise = exact(case)
    z = (mean - wanted) / np.hypot(error, noise)
    assert np.abs(z).max() < 4.5, z
    assert (
        np.abs(np.hypot(error, noise)[-3:]).max() < 0.03
    )  # of edge probabilities: the test can see
