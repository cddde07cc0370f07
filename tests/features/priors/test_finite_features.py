"""Binary matrices with a given number of columns, and stick-breaking probabilities of features."""

import itertools

import numpy as np
import pymc as pm
import pytest

from pymc.sampling.mcmc import assign_step_methods
from scipy import stats
from scipy.special import gammaln
from tools.buffets import classes

from bayesstruct.distributions import FiniteFeatures, StickBreakingProbabilities
from bayesstruct.features.kernels.indian_buffet import log_buffet
from bayesstruct.features.priors.finite_features import StickRatios
from bayesstruct.steps import FiniteFeatureMetropolis

PROCESSES = [(1.3, 1.0), (0.8, 2.5)]


def matrices(n, columns):
    for entries in itertools.product((0, 1), repeat=n * columns):
        yield np.reshape(np.array(entries, np.int8), (n, columns))


def log_density(alpha, c, n, columns):
    rv = FiniteFeatures.dist(alpha, observations=n, columns=columns, concentration=c)
    value = rv.type()
    return pm.compile(inputs=[value], outputs=pm.logp(rv, value))


@pytest.mark.parametrize("process", PROCESSES)
def test_probabilities_of_all_matrices_sum_to_one_with_the_known_mean(process):
    logp, every = log_density(*process, 2, 3), list(matrices(2, 3))
    p = np.exp([logp(m) for m in every])
    assert np.isclose(p.sum(), 1.0)
    # Equation 11: alpha / (1 + alpha / K) for each row.
    assert np.isclose(p @ [m.sum() for m in every], 2 * process[0] / (1 + process[0] / 3))
    assert logp(np.full((2, 3), 2, np.int8)) == -np.inf


@pytest.mark.parametrize("process", PROCESSES)
def test_many_columns_are_an_indian_buffet(process):
    columns = 20_000
    logp = log_density(*process, 3, columns)
    for number, matrix in itertools.islice(classes(3, 2), 0, None, 5):
        wide = np.zeros((3, columns), np.int8)
        wide[:, : matrix.shape[1]] = matrix
        empty = columns - matrix.shape[1]
        ways = gammaln(columns + 1) - gammaln(empty + 1) - gammaln(np.array(number) + 1).sum()
        # The difference is of the order of 1 / K.
        assert np.isclose(logp(wide) + ways, log_buffet(matrix, *process), atol=2e-3)


@pytest.mark.statistical
@pytest.mark.parametrize("process", PROCESSES)
def test_draws_have_the_distribution(process):
    alpha, c = process
    rv = FiniteFeatures.dist(alpha, observations=2, columns=2, concentration=c)
    draws = pm.draw(rv, 4000, random_seed=1)
    logp, every = log_density(*process, 2, 2), list(matrices(2, 2))
    seen = np.zeros(len(every))
    for draw in draws:
        seen[int("".join(map(str, draw.ravel())), 2)] += 1
    expected = 4000 * np.exp([logp(m) for m in every])
    assert stats.chisquare(seen, expected).pvalue > 1e-4
    assert pm.draw(FiniteFeatures.dist([1.0, 2.0], observations=3, columns=4)).shape == (2, 3, 4)


@pytest.mark.chain
def test_draws_of_the_step_have_the_posterior():
    with pm.Model() as model:
        z = FiniteFeatures("z", 1.0, observations=2, columns=2)
        pm.Normal("x", z.sum(axis=1), 0.7, observed=[1.2, 0.1])
        trace = pm.sample(
            2000,
            tune=50,
            chains=1,
            random_seed=2,
            progressbar=False,
            compute_convergence_checks=False,
        )
        _, assigned = assign_step_methods(model)
    assert set(assigned) == {FiniteFeatureMetropolis}
    logp, every = model.compile_logp(), list(matrices(2, 2))
    p = np.exp([logp({"z": m}) for m in every])
    draws = trace["posterior"]["z"].values[0]
    share = np.array([(draws == m).all(axis=(1, 2)).mean() for m in every])
    # About a third of the draws are independent: the distance of so many is about .04.
    assert 0.5 * abs(share - p / p.sum()).sum() < 0.08


# --- stick-breaking --------------------------------------------------------------------------


def test_the_density_of_probabilities_integrates_to_one():
    # Over the first probability a and the ratio r of the second to it.
    nodes, weights = np.polynomial.legendre.leggauss(60)
    nodes, weights = (nodes + 1) / 2, weights / 2
    a, r = (v.ravel() for v in np.meshgrid(nodes, nodes, indexing="ij"))
    rv = StickBreakingProbabilities.dist(np.full(3600, 1.4), columns=2)
    density = np.exp(pm.logp(rv, np.column_stack([a, a * r])).eval())
    assert np.isclose(density * a @ np.outer(weights, weights).ravel(), 1.0, atol=1e-4)
    rv = StickBreakingProbabilities.dist(1.4, columns=2)
    value = rv.type()
    logp = pm.compile(inputs=[value], outputs=pm.logp(rv, value))
    for outside in ([0.2, 0.3], [1.2, 0.3], [0.5, -0.1]):
        assert logp(np.array(outside)) == -np.inf


@pytest.mark.statistical
def test_probabilities_have_their_means_and_ratios():
    alpha = 1.7
    draws = pm.draw(StickBreakingProbabilities.dist(alpha, columns=6), 4000, random_seed=3)
    mean = (alpha / (1 + alpha)) ** np.arange(1, 7)
    assert (abs(draws.mean(axis=0) - mean) < 4.5 * draws.std(axis=0) / np.sqrt(4000)).all()
    ratios = draws[:, 1:] / draws[:, :-1]
    assert stats.kstest(ratios.ravel(), stats.beta(alpha, 1).cdf).pvalue > 1e-4
    assert pm.draw(StickBreakingProbabilities.dist([1.0, 2.0], columns=3)).shape == (2, 3)


def test_expected_features_of_a_row_add_up_to_alpha():
    alpha = 2.5
    rv = StickBreakingProbabilities.dist(alpha, columns=60)
    assert np.isclose(rv.owner.op.columns, 60)
    start = pm.distributions.distribution.support_point(rv).eval()
    left = alpha * (alpha / (1 + alpha)) ** 60
    assert np.isclose(start.sum() + left, alpha)


def test_the_transform_is_one_to_one_and_has_its_jacobian():
    import pytensor

    from pytensor.gradient import jacobian
    from pytensor.tensor import vector

    v, transform = vector("v"), StickRatios()
    back = transform.backward(v)
    outputs = [transform.forward(back), jacobian(back, v), transform.log_jac_det(v)]
    same, matrix, log_det = pytensor.function([v], outputs)(np.array([0.3, -1.0, 2.0]))
    assert np.allclose(same, [0.3, -1.0, 2.0])
    assert np.isclose(np.linalg.slogdet(matrix)[1], log_det)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (FiniteFeatures, {"alpha": 0.0, "observations": 2, "columns": 3}, "alpha"),
        (FiniteFeatures, {"alpha": 1.0, "observations": 0, "columns": 3}, "observations"),
        (FiniteFeatures, {"alpha": 1.0, "observations": 2, "columns": 2.5}, "columns"),
        (
            FiniteFeatures,
            {"alpha": 1.0, "observations": 2, "columns": 3, "concentration": 0.0},
            "concentration",
        ),
        (StickBreakingProbabilities, {"alpha": -1.0, "columns": 3}, "alpha"),
        (StickBreakingProbabilities, {"alpha": 1.0, "columns": True}, "columns"),
    ],
)
def test_parameters_out_of_range_are_refused(make, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make.dist(**options)
