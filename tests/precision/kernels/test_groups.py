"""The sweep over all groups leaves the posterior invariant: long runs against importance sampling."""

import numba
import numpy as np
import pytest

from tools.batches import mean_and_error
from tools.enumeration import assert_matches_enumeration
from tools.group_integration import GroupPrior, IndicatorPrior, contrasts, groups_posterior
from tools.integration import moments

from bayesstruct.precision.kernels.row_groups import prior as prior_kernel
from bayesstruct.precision.kernels.row_groups import sweep as kernel


def tables(sizes, p=3, seed=0):
    """Rows with one strong dependence, which has the other sign in the last group."""
    rng, out = np.random.default_rng(seed), []
    for n in sizes:
        z = rng.normal(size=(n, p))
        z[:, 1] += 0.8 * z[:, 0] * (-1 if len(out) == len(sizes) - 1 else 1)
        out.append(z)
    return out


@numba.njit
def code_of_relations(rng, K, log_prior, scales, design):
    """Number of the relations of all pairs, to base 3."""
    code = 0
    if design == kernel.INDICATORS:
        edges = prior_kernel.draw_group_edges(rng, K, log_prior, scales[0], scales[1])
        for pair in edges.T:
            relation = 0 if pair.sum() == 0 else (1 if pair.sum() == len(pair) else 2)
            code = 3 * code + relation
    else:
        for relation in prior_kernel.draw_relations(rng, K, log_prior, scales):
            code = 3 * code + relation
    return code


@numba.njit
def groups_chain(rng, scatter, n, log_prior, scales, rates, design, sweeps, burn):
    groups, p = scatter.shape[0], scatter.shape[1]
    K, W, chances = np.zeros((groups, p, p)), np.zeros((groups, p, p)), np.zeros((4, p, p))
    for g in range(groups):
        for i in range(p):
            K[g, i, i] = W[g, i, i] = 1.0
    columns, work = np.empty((2, groups, p)), np.empty((11, max(groups, 4)))
    codes, matrices = np.empty(sweeps, np.int64), np.empty((sweeps, groups, p, p))
    for t in range(-burn, sweeps):
        if t == 0:
            chances[:] = 0.0
        prior = (log_prior, scales, rates)
        kernel.groups_sweep(rng, K, W, chances, scatter, n, *prior, columns, work, design)
        if t >= 0:
            codes[t] = code_of_relations(rng, K, log_prior, scales, design)
            matrices[t] = K
    return codes, matrices, W, chances / (2.0 * sweeps)


def run(rows, prior, sweeps, *, n=None, scales=None, seed=2):
    p = rows[0].shape[1]
    scatter = np.stack([z.T @ z for z in rows])
    n = np.array([float(len(z)) for z in rows]) if n is None else n
    log_prior = prior_kernel.log_relations(
        np.full((p, p), prior.edge), np.full((p, p), prior.difference)
    )
    rates, rng = np.full(len(rows), prior.rate), np.random.default_rng(seed)
    scales = prior.scales if scales is None else scales
    design = kernel.INDICATORS if isinstance(prior, IndicatorPrior) else kernel.CONTRASTS
    return groups_chain(rng, scatter, n, log_prior, scales, rates, design, sweeps, 500)


def moments_of_groups(K):
    """First and second moments in each group, and products of the first elements of two groups."""
    each = [moments(K[:, g]) for g in range(K.shape[1])]
    i, j = np.triu_indices(K.shape[-1], 1)
    return np.hstack([*each, K[:, 0][:, i, j] * K[:, 1][:, i, j]])


def assert_moments_agree(matrices, weighted, bound=4.5):
    exact, exact_error = weighted.mean(moments_of_groups(weighted.precision))
    mean, error, _ = mean_and_error(moments_of_groups(matrices), 100)
    z = (mean - exact) / np.hypot(error, exact_error)
    assert np.abs(z).max() < bound, z


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("design", "sizes"),
    [(GroupPrior, (6, 9)), (GroupPrior, (4, 5, 6)), (IndicatorPrior, (4, 5, 6))],
)
def test_the_sweep_visits_relations_as_often_as_it_should(design, sizes):
    rows, prior = tables(sizes), design(len(sizes))
    states, exact, errors, weighted = groups_posterior(rows, prior, draws=100_000, seed=1)
    codes, matrices, _, chances = run(rows, prior, 30_000)
    assert_matches_enumeration(codes, exact, errors=errors)
    assert_moments_agree(matrices, weighted)
    # Rao-Blackwell estimates of the same probabilities, of both visits to each pair.
    upper = np.triu_indices(3, 1)
    for relation in range(3):
        expected = exact @ (states == relation)
        found = (chances[relation] + chances[relation].T)[upper]
        np.testing.assert_allclose(found, expected, atol=0.015)  # about five standard errors


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", ["rows of the other group", "baseline contrasts", "odds"])
def test_broken_sweeps_are_noticed(wrong):
    rows, prior = tables((6, 9)), GroupPrior(2)
    _, exact, errors, weighted = groups_posterior(rows, prior, draws=100_000, seed=1)
    options, own = {}, prior
    if wrong == "rows of the other group":
        options["n"] = np.array([9.0, 6.0])
    elif wrong == "baseline contrasts":
        # u_2 = u_1 + d has u_1 - u_2 of variance d^2, orthonormal contrasts have 2 d^2
        spike, slab, small, large = prior.scales
        options["scales"] = spike, slab, small / np.sqrt(2), large / np.sqrt(2)
    else:
        own = GroupPrior(2, difference=0.4 * prior.large / prior.small / 2)
    codes, matrices, *_ = run(rows, own, 20_000, **options)
    with pytest.raises(AssertionError):
        assert_matches_enumeration(codes, exact, errors=errors)
        assert_moments_agree(matrices, weighted)


@pytest.mark.statistical
def test_a_wrong_prior_of_patterns_is_noticed():
    rows, prior = tables((4, 5, 6)), IndicatorPrior(3)
    _, exact, errors, _ = groups_posterior(rows, prior, draws=100_000, seed=1)
    # a difference counts for each of its six patterns, instead of for all of them together
    equal, different = 1 - prior.difference, 6 * prior.difference
    wrong = IndicatorPrior(3, difference=different / (equal + different))
    codes, *_ = run(rows, wrong, 20_000)
    with pytest.raises(AssertionError):
        assert_matches_enumeration(codes, exact, errors=errors)


@numba.njit
def log_marginal(b, h, shared, contrast):
    return kernel.group_log_marginal(b, h, shared, contrast)


@numba.njit
def patterns(rng, odds, log_prior, size):
    """Probabilities of relations, and drawn patterns of edges."""
    groups = len(odds)
    chances, work, edges = np.empty(3), np.empty((3, groups)), np.empty((size, groups))
    kernel.pattern_probabilities(odds, log_prior, chances, work)
    for k in range(size):
        kernel.draw_pattern(rng, kernel.draw_relation(rng, chances), odds, work, edges[k])
    return chances, edges


@pytest.mark.parametrize("odds", [[0.3, -1.0], [2.0, -0.5, 0.7], [-45.0, 1.0, 50.0, -2.0]])
def test_patterns_against_enumeration(odds):
    prior = IndicatorPrior(len(odds), edge=0.6, difference=0.3)
    every, relation = prior.patterns
    share = prior.relations / np.bincount(relation)
    weight = share[relation] * np.exp(every @ np.array(odds) - np.maximum(odds, 0).sum())
    weight /= weight.sum()
    rng = np.random.default_rng(1)
    chances, edges = patterns(rng, np.array(odds), np.log(prior.relations), 20_000)
    np.testing.assert_allclose(chances, [weight[relation == r].sum() for r in range(3)], rtol=1e-9)
    codes = (edges @ 2.0 ** np.arange(len(odds))[::-1]).astype(int)
    found = np.bincount(codes, minlength=len(every)) / len(codes)
    assert np.abs(found - weight).max() < 5 * 0.5 / np.sqrt(20_000)


def test_patterns_that_are_nearly_certain_do_not_cancel():
    # All log odds are far below zero, and a difference is required.
    odds, log_prior = np.array([-60.0, -61.0]), np.array([-np.inf, -np.inf, 0.0])
    chances, edges = patterns(np.random.default_rng(1), odds, log_prior, 4_000)
    np.testing.assert_array_equal(chances, [0, 0, 1])
    assert (edges.sum(axis=1) == 1).all()
    assert edges[:, 0].mean() == pytest.approx(1 / (1 + np.exp(-1)), abs=0.04)


@numba.njit
def elements(rng, b, h, shared, contrast, size):
    out = np.empty((size, len(b)))
    for k in range(size):
        kernel.draw_elements(rng, b, h, shared, contrast, out[k])
    return out


def normal_system(b, h, shared, contrast):
    """Prior covariance, and precision matrix and mean of the elements given their likelihoods."""
    groups = len(b)
    Q, one = contrasts(groups), np.ones((groups, 1))
    covariance = shared**2 * one @ one.T + contrast**2 * Q @ Q.T
    precision = np.linalg.inv(covariance) + np.diag(h)
    return covariance, precision, np.linalg.solve(precision, b)


@pytest.mark.parametrize("groups", [2, 3, 5])
@pytest.mark.parametrize(("shared", "contrast"), [(0.02, 0.02), (1.0, 0.02), (1.0, 0.7)])
def test_elements_integrated_out_against_linear_algebra(groups, shared, contrast):
    rng = np.random.default_rng(groups)
    b, h = 20.0 * rng.normal(size=groups), rng.uniform(0.1, 80.0, size=groups)
    covariance, precision, mean = normal_system(b, h, shared, contrast)
    expected = 0.5 * (b @ mean - np.linalg.slogdet(precision @ covariance)[1])
    assert log_marginal(b, h, shared, contrast) == pytest.approx(expected, rel=1e-9)
    zero = np.zeros(groups)
    assert log_marginal(zero, zero + 1e-300, shared, contrast) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("groups", [2, 4])
def test_drawn_elements_have_their_mean_and_covariance(groups):
    rng = np.random.default_rng(groups)
    b, h = rng.normal(size=groups), rng.uniform(0.1, 3.0, size=groups)
    _, precision, mean = normal_system(b, h, 1.0, 0.7)
    draws = elements(np.random.default_rng(1), b, h, 1.0, 0.7, 200_000)
    inverse = np.linalg.inv(precision)
    # five standard errors of a mean, and of a covariance of normal draws
    assert np.abs(draws.mean(axis=0) - mean).max() < 5 * np.sqrt(inverse.max() / 200_000)
    assert np.abs(np.cov(draws.T) - inverse).max() < 5 * inverse.max() * np.sqrt(2 / 200_000)


def test_matrices_stay_positive_definite_with_fewer_rows_than_columns():
    rng, p, sizes = np.random.default_rng(0), 30, (5, 8, 4)
    rows = [rng.normal(size=(n, p)) for n in sizes]
    _, matrices, W, _ = run(rows, GroupPrior(3, spike=0.02, small=0.02), 200)
    assert np.linalg.eigvalsh(matrices)[..., 0].min() > 0
    np.testing.assert_array_equal(matrices, matrices.swapaxes(-1, -2))
    # The inverses were updated 21,000 times and never computed anew.
    np.testing.assert_allclose(W @ matrices[-1], np.broadcast_to(np.eye(p), W.shape), atol=1e-5)


@pytest.mark.parametrize("design", [kernel.CONTRASTS, kernel.INDICATORS])
def test_a_sweep_allocates_nothing(design):
    from numba.core.runtime import _nrt_python, rtsys

    def allocations(p, groups=3):
        generator, zeros = np.random.default_rng(0), np.zeros((groups, p, p))
        K = np.stack([np.eye(p)] * groups)
        log_prior = np.full((p, p, 3), np.log(1 / 3))
        arguments = (generator, K, K.copy(), np.zeros((4, p, p)), zeros, np.full(groups, 5.0))
        arguments += (log_prior, (0.1, 1.0, 0.1, 0.5), np.full(groups, 0.5))
        arguments += (np.empty((2, groups, p)), np.empty((11, 4)), design)
        kernel.groups_sweep(*arguments)
        before = rtsys.get_allocation_stats().mi_alloc
        kernel.groups_sweep(*arguments)
        return rtsys.get_allocation_stats().mi_alloc - before

    _nrt_python.memsys_enable_stats()
    try:
        small, large = allocations(3), allocations(30)
    finally:
        _nrt_python.memsys_disable_stats()
    assert 0 < small == large
