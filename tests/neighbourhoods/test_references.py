"""Neighbourhood models against quadrature and SciPy's optimiser; the references use no code of the package."""

import itertools

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import optimize, special, stats
from tools.batches import mean_and_error
from tools.enumeration import assert_matches_enumeration

import bayesstruct as bs

NAMES, SUBSETS = list("abc"), list(itertools.product((0, 1), repeat=2))
QUIET = {"progressbar": False, "random_seed": 1}


def table(n=40, seed=2):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n, 3))
    x[:, 1] = np.where(rng.random(n) < 0.5, x[:, 0], x[:, 1])
    return pd.DataFrame(x, columns=NAMES)


def others(i):
    return [j for j in range(3) if j != i]


# --- posterior of binary columns, by quadrature over the coefficients -------------------------


def panels(ends, nodes=16):
    """Points and weights of Gauss and Legendre between these ends: the densities have kinks there only."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    halves = [(0.5 * (a + b), 0.5 * (b - a)) for a, b in itertools.pairwise(ends)]
    return np.concatenate([m + h * x for m, h in halves]), np.concatenate(
        [h * w for _, h in halves]
    )


SLABS = {
    "normal": (stats.norm, 1.2, [-9, -3, 0, 3, 9]),
    "laplace": (stats.laplace, 0.8, [-24, -8, -2, 0, 2, 8, 24]),
}


def logistic_posterior(x, i, slab, intercept_scale, cut=0.0):
    """Evidence, and first and second moments of the coefficients, of each subset of the predictors of column i.

    With a cut, also the probabilities that a coefficient is beyond it, of the full subset.
    """
    family, scale, ends = SLABS[slab]
    ends = sorted({*ends, cut, -cut})
    points, weights = panels(ends)
    weights = weights * family.pdf(points, 0, scale)
    start, step = panels([-12, -4, 0, 4, 12])
    step = step * stats.norm.pdf(start, 0, intercept_scale)
    y, z = x[:, i], (x - x.mean(axis=0))[:, others(i)]
    rows, counts = np.unique(np.column_stack([z, y]), axis=0, return_counts=True)
    evidence, first, second, beyond = [], [], [], None
    for subset in SUBSETS:
        grids = [(points, weights) if on else (np.zeros(1), np.ones(1)) for on in subset]
        b, w1, w2 = np.meshgrid(start, grids[0][0], grids[1][0], indexing="ij", sparse=True)
        log = 0.0
        for (z1, z2, value), count in zip(rows, counts, strict=True):
            log = log - count * np.logaddexp(0.0, (1 - 2 * value) * (b + z1 * w1 + z2 * w2))
        joint = np.einsum("bij,b,i,j->ij", np.exp(log), step, grids[0][1], grids[1][1])
        evidence.append(joint.sum())
        margins = [
            (g, m / joint.sum())
            for (g, _), m in zip(grids, (joint.sum(1), joint.sum(0)), strict=True)
        ]
        first.append([m @ g for g, m in margins])
        second.append([m @ g**2 for g, m in margins])
        beyond = [m[abs(g) > cut].sum() for g, m in margins]
    return np.array(evidence), np.array(first), np.array(second), np.array(beyond)


def weigh_subsets(evidence, prior):
    """Posterior probabilities of the subsets from their evidences."""
    weights = evidence * [prior[sum(subset)] for subset in SUBSETS]
    return weights / weights.sum()


def check(idata, reference, prior):
    """Subsets, edges and moments of coefficients of all three regressions."""
    arcs, w = idata["posterior"]["arc"], idata["posterior"]["coefficients"].values
    chance = {}
    for i, name in enumerate(NAMES):
        evidence, first, second, _ = reference[i]
        exact = weigh_subsets(evidence, prior)
        into = [f"{NAMES[j]} -> {name}" for j in others(i)]
        chance |= dict(zip(into, exact @ np.array(SUBSETS), strict=True))
        drawn = arcs.sel(ordered_pair=into).values.astype(int)
        assert_matches_enumeration(drawn, exact, states=SUBSETS)
        for power, moment in ((1, first), (2, second)):
            mean, error, _ = mean_and_error(w[:, :, i, others(i)] ** power)
            assert (abs(mean - exact @ moment) < 4.5 * error).all()
    for rule in ("and", "or"):
        found = bs.edge_table(bs.symmetrize(idata, rule)).set_index(["source", "target"])[
            "probability"
        ]
        for (a, b), value in found.items():
            one, other = chance[f"{a} -> {b}"], chance[f"{b} -> {a}"]
            wanted = one * other if rule == "and" else one + other - one * other
            assert abs(value - wanted) < 0.02  # some 4 standard errors of 8,000 draws


CASES = {
    "normal": ("normal", {"inclusion": 0.4}, [0.36, 0.24, 0.16]),
    "laplace": ("laplace", {"inclusion": 0.4}, [0.36, 0.24, 0.16]),
    # of each subset of two, the probability averaged over Beta(1, 2)
    "beta": ("normal", {"inclusion": pm.Beta.dist(1.0, 2.0)}, [special.beta(1 + k, 4 - k) / special.beta(1, 2) for k in range(3)]),
}  # fmt: skip


@pytest.fixture(scope="module")
def references():
    x = table().to_numpy()
    return {slab: [logistic_posterior(x, i, slab, 1.5, 0.2) for i in range(3)] for slab in SLABS}


def binary(case):
    slab, options, _ = CASES[case]
    return bs.models.ising_neighbourhoods(
        table(), slab=slab, slab_scale=SLABS[slab][1], intercept_scale=1.5, **options
    )


@pytest.mark.chain
@pytest.mark.parametrize("case", CASES)
def test_posterior_of_binary_neighbourhoods(case, references):
    idata = bs.sample_neighbourhoods(binary(case), draws=4_000, tune=200, chains=2, **QUIET)
    check(idata, references[CASES[case][0]], CASES[case][2])


@pytest.mark.chain
@pytest.mark.compiled
def test_posterior_of_binary_neighbourhoods_by_pm_sample(references):
    with binary("normal"):
        idata = pm.sample(
            4_000, tune=500, chains=2, cores=1, nuts_sampler="pymc", quiet=True, **QUIET
        )
    check(idata, references["normal"], CASES["normal"][2])


@pytest.mark.chain
def test_a_wrong_prior_probability_is_noticed(references):
    idata = bs.sample_neighbourhoods(binary("normal"), draws=4_000, tune=200, chains=2, **QUIET)
    with pytest.raises(AssertionError, match="worst z"):
        check(idata, references["normal"], [0.25, 0.25, 0.25])


@pytest.mark.chain
def test_posterior_of_binary_neighbourhoods_under_the_laplace_prior(references):
    model = bs.models.ising_neighbourhoods(
        table(), prior="laplace", rate=1 / SLABS["laplace"][1], intercept_scale=1.5
    )
    posterior = bs.sample_neighbourhoods(model, draws=4_000, tune=200, chains=2, **QUIET)[
        "posterior"
    ]
    w = posterior["coefficients"].values
    for i in range(3):
        _, first, second, beyond = references["laplace"][i]
        own = w[:, :, i, others(i)]
        quantities = ((own, first[-1]), (own**2, second[-1]), (1.0 * (abs(own) > 0.2), beyond))
        for draws, wanted in quantities:
            mean, error, _ = mean_and_error(draws)
            assert (abs(mean - wanted) < 4.5 * error).all()
    arcs = [f"{NAMES[j]} -> {name}" for i, name in enumerate(NAMES) for j in others(i)]
    wanted = np.concatenate([reference[3] for reference in references["laplace"]])
    np.testing.assert_allclose(
        posterior["arc"].sel(ordered_pair=arcs).mean(("chain", "draw")), wanted, atol=0.03
    )


# --- modes under the Laplace prior, by SciPy on positive and negative parts -------------------


def wide(binary, n=50, seed=5):
    x = np.random.default_rng(seed).normal(size=(n, 5))
    x[:, 1] += 0.9 * x[:, 0]
    x[:, 2] += 0.4 * x[:, 1] - 0.6 * x[:, 3]
    return (x > 0.2) * 1.0 if binary else x


def split_mode(loss, start, penalised, rate, bounds):
    """Least `loss` plus rate times the sum of absolute values, each the difference of two positive parts."""
    p = penalised

    def value(parts):
        theta = np.concatenate([parts[:p] - parts[p : 2 * p], parts[2 * p :]])
        f, g = loss(theta)
        gradient = np.concatenate([g[:p] + rate, rate - g[:p], g[p:]])
        return f + rate * parts[: 2 * p].sum(), gradient

    found = optimize.minimize(
        value,
        np.concatenate([np.full(2 * p, 0.1), start]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * p) + bounds,
        options={"ftol": 0.0, "gtol": 1e-10, "maxiter": 20_000, "maxfun": 50_000, "maxcor": 40},
    )
    return np.concatenate([found.x[:p] - found.x[p : 2 * p], found.x[2 * p :]])


def gaussian_loss(X, y, shape, scale):
    """Of coefficients, intercept ~ N(0, 1), and log noise variance, the density being that of the variance itself."""

    def loss(theta):
        w, b, s = theta[:-2], theta[-2], theta[-1]
        v, r, n = np.exp(s), y - b - X @ w, len(y)
        f = 0.5 * r @ r / v + 0.5 * n * s + 0.5 * b**2 + (shape + 1) * s + scale / v
        g = [
            *(-(X.T @ r) / v),
            -r.sum() / v + b,
            -0.5 * r @ r / v + 0.5 * n + shape + 1 - scale / v,
        ]
        return f, np.array(g)

    return loss


def logistic_loss(X, y, scale):
    def loss(theta):
        w, b = theta[:-1], theta[-1]
        eta = X @ w + b
        miss = special.expit(eta) - y
        f = (np.logaddexp(0, eta) - y * eta).sum() + 0.5 * (b / scale) ** 2
        return f, np.append(X.T @ miss, miss.sum() + b / scale**2)

    return loss


@pytest.mark.chain
@pytest.mark.parametrize("family", ["gaussian", "ising"])
@pytest.mark.parametrize("rate", [1.0, 3.0])
def test_modes_are_those_of_another_optimiser(family, rate):
    x = wide(family == "ising")
    build = (
        bs.models.gaussian_neighbourhoods
        if family == "gaussian"
        else bs.models.ising_neighbourhoods
    )
    mode = bs.find_MAP(build(x, prior="laplace", rate=rate), tol=1e-9)
    z = (x - x.mean(0)) / x.std(0, ddof=1)
    for i in range(5):
        rest = np.delete(np.arange(5), i)
        if family == "gaussian":
            loss, start = gaussian_loss(z[:, rest], z[:, i], 2.0, 1.0), np.zeros(2)
        else:
            loss, start = logistic_loss((x - x.mean(0))[:, rest], x[:, i], 2.5), np.zeros(1)
        wanted = split_mode(loss, start, 4, rate, [(None, None)] * len(start))
        np.testing.assert_allclose(mode["coefficients"][i, rest], wanted[:4], atol=1e-6)
        np.testing.assert_allclose(mode["intercept"][i], wanted[4], atol=1e-6)
        if family == "gaussian":
            np.testing.assert_allclose(mode["noise_variance"][i], np.exp(wanted[5]), atol=1e-6)
    assert (mode["coefficients"] != 0).sum() not in (0, 20)


@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_the_solver_of_neighbourhoods_against_another_optimiser(family):
    x = wide(family == "logistic")
    found = bs.solvers.neighbourhood_modes(x, family=family, rate=4.0, tol=1e-13)
    for i in range(5):
        rest = np.delete(np.arange(5), i)
        X, y = x[:, rest], x[:, i]

        def squares(theta, X=X, y=y):
            r = y - theta[-1] - X @ theta[:-1]
            return 0.5 * r @ r, np.append(-(X.T @ r), -r.sum())

        loss = squares if family == "gaussian" else logistic_loss(X, y, np.inf)
        wanted = split_mode(loss, np.zeros(1), 4, 4.0, [(None, None)])
        np.testing.assert_allclose(found.coefficients[i, rest], wanted[:4], atol=1e-6)
        np.testing.assert_allclose(found.intercepts[i], wanted[4], atol=1e-6)
