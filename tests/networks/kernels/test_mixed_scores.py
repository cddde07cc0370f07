"""Conditional families of mixed networks: densities, derivatives, and evidences against quadrature."""

import numpy as np
import pytest

from scipy import integrate, stats
from scipy.special import expit, gammaln, logsumexp

from bayesstruct.networks.kernels.mixed_layout import FAMILIES, MixedLayout
from bayesstruct.networks.kernels.mixed_rows import column_terms, draw_prior, draw_rows, log_prior
from bayesstruct.networks.kernels.scores.mixed import MixedScore
from bayesstruct.networks.kernels.scores.mixed_families import evaluate
from bayesstruct.networks.kernels.scores.named import network_score

STATES = (0, 0, 0, 2, 2, 2, 3, 4)
PARENTS = (0, 3, 6, 7)


def table(n=50, seed=0):
    rng = np.random.default_rng(seed)
    states = [rng.integers(0, k, n) for k in STATES[3:]]
    numbers = rng.normal(size=(n, 3))
    numbers[:, 1] += 0.5 * numbers[:, 0] + states[0]
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0, ddof=1)
    return np.column_stack([numbers, *states]).astype(float)


X = table()
SCORE = MixedScore(X, FAMILIES, STATES)


def fit(child, parents=PARENTS):
    return SCORE.fit(child, [j for j in parents if j != child])


@pytest.mark.parametrize("child", range(1, 8), ids=FAMILIES[1:])
def test_derivatives_are_those_of_the_density(child):
    own, rng = fit(child), np.random.default_rng(child)
    code, states, y, x = SCORE.rows_of(child)
    k, work = len(own.mode), np.empty((40, len(y)))
    # The density of Laplace noise has derivatives where it is rounded off.
    delta = 0.2 if FAMILIES[child] == "laplace" else 0.0
    args = code, states, y, x, own.columns, own._precision, own._log_det, delta

    def at(theta):
        grad, hess = np.empty(k), np.empty((k, k))
        return evaluate(*args, theta, True, work, grad, hess), grad, hess

    theta = own.mode + 0.1 * rng.normal(size=k)
    _, grad, hess = at(theta)
    for a, step in enumerate(1e-5 * np.eye(k)):
        (up, grad_up, _), (down, grad_down, _) = at(theta + step), at(theta - step)
        np.testing.assert_allclose(grad[a], (up - down) / 2e-5, atol=1e-6)
        np.testing.assert_allclose(hess[a], (grad_down - grad_up) / 2e-5, atol=1e-5)


def drawn(seed=3):
    layout, rng = SCORE.layout, np.random.default_rng(seed)
    dag = np.triu(np.ones((8, 8), int), 1)
    vector = np.zeros(layout.size)
    draw_prior(layout, rng, dag, SCORE.scale, vector)
    return layout, dag, vector


def test_compiled_densities_are_those_of_rows_and_prior():
    layout, dag, vector = drawn()
    whole = 0.0
    for child in range(1, 8):
        own, extras = fit(child, range(child)), vector[layout.extras[child]]
        theta, back = own.free(vector), np.zeros_like(vector)
        own.natural(theta, back)
        mine = np.concatenate([layout.coefficients[child].ravel(), layout.extras[child]])
        np.testing.assert_allclose(back[mine[mine >= 0]], vector[mine[mine >= 0]], rtol=1e-12)
        jacobian = 0.0  # of the free parameters
        if layout.is_number(child):
            jacobian = (len(theta) - len(extras) + 1) * np.log(extras[0])
            jacobian += np.log(extras[1:] - 2.0).sum()
        elif layout.families[child] == "ordinal":
            jacobian = np.log(np.diff(extras)).sum()
        whole += own.log_target(theta) - jacobian
    normal = [*layout.coefficients[0].ravel(), *layout.extras[0]]
    a, s = vector[normal[0]], vector[normal[-1]]
    whole += stats.norm(a, s).logpdf(X[:, 0]).sum() + stats.norm(0, s).logpdf(a)
    whole += stats.invgamma(1.5, scale=0.25).logpdf(s * s) + np.log(2 * s)
    found = column_terms(layout, X, vector).sum() + log_prior(layout, dag, vector, SCORE.scale)
    np.testing.assert_allclose(whole, found, rtol=1e-12)


def test_density_of_parameters_that_the_graph_does_not_have_is_zero():
    layout, dag, vector = drawn()
    dag[0, 3] = 0
    assert log_prior(layout, dag, vector, 1.0) == -np.inf


def test_densities_of_rows_are_those_of_scipy():
    layout, _, vector = drawn()
    for places in layout.coefficients:  # moderate, so that no probability is 0
        vector[places[places >= 0]] *= 0.3
    found = column_terms(layout, X, vector)
    features = layout.all_features(X)

    def predictor(i):
        places = layout.coefficients[i]
        return np.where(places >= 0, vector[places], 0) @ np.vstack([np.ones(len(X)), features])

    s, nu = vector[layout.extras[1]]
    student = stats.t(nu, predictor(1)[0], s * np.sqrt((nu - 2) / nu))
    laplace = stats.laplace(predictor(2)[0], vector[layout.extras[2]] / np.sqrt(2))
    np.testing.assert_allclose(found[:, 1], student.logpdf(X[:, 1]))
    np.testing.assert_allclose(found[:, 2], laplace.logpdf(X[:, 2]))
    ones = expit(predictor(3)[0]), stats.norm.cdf(predictor(4)[0])
    ones = *ones, -np.expm1(-np.exp(predictor(5)[0]))
    for i, one in enumerate(ones, 3):
        np.testing.assert_allclose(found[:, i], np.log(np.where(X[:, i] == 1, one, 1 - one)))
    logits = np.vstack([np.zeros(len(X)), predictor(6)])
    three = logits[X[:, 6].astype(int), np.arange(len(X))] - logsumexp(logits, axis=0)
    np.testing.assert_allclose(found[:, 6], three)
    below = expit(vector[layout.extras[7]][:, None] - predictor(7)[0])
    shares = np.diff(np.vstack([0 * below[:1], below, 0 * below[:1] + 1]), axis=0)
    four = np.log(shares[X[:, 7].astype(int), np.arange(len(X))])
    np.testing.assert_allclose(found[:, 7], four)


def test_drawn_rows_have_the_densities_of_rows():
    layout, dag, vector = drawn(5)
    u = np.random.default_rng(0).random((40_000, 8))
    x = draw_rows(layout, u, vector, dag, np.full(8, np.nan))
    for i in range(1, 3):  # noise has mean 0 and variance 1
        eta = np.where(layout.coefficients[i] >= 0, vector[layout.coefficients[i]], 0)[0]
        e = x[:, i] - eta[0] - eta[1:] @ layout.all_features(x)
        e /= vector[layout.extras[i][0]]
        assert abs(e.mean()) < 0.03
    logs = column_terms(layout, x, vector)
    for i in range(3, 8):  # the mean of 1 / p(own state) is the number of states
        kept = logs[:, i] > np.log(1e-3)
        shares = np.exp(-logs[kept, i]).mean() * kept.mean()
        assert shares < layout.states[i] * 1.1


def noise_evidence(y, log_density):
    """Evidence of a location and a scale, with the prior that the documentation says, summed over a grid."""
    a, log_s = np.meshgrid(np.linspace(-2, 2, 400), np.linspace(-2, 2, 400))
    s = np.exp(log_s)
    logs = stats.norm.logpdf(a, 0, s) + np.log(2 * s * s) - len(y) * log_s
    logs += stats.invgamma.logpdf(s * s, 1.5, scale=0.25)
    logs += sum(log_density((value - a) / s) for value in y)
    return logsumexp(logs) + 2 * np.log(4 / 399)


def states_evidence(y, probability):
    """Evidence of an intercept of two states."""

    def density(a):
        p = probability(a)
        return stats.norm.pdf(a, 0, 2.5) * np.prod(np.where(y == 1, p, 1 - p))

    return np.log(integrate.quad(density, -12, 12, epsabs=0, epsrel=1e-8, limit=300)[0])


def test_evidences_are_near_those_by_quadrature():
    y = X[:30]
    score = MixedScore(y, FAMILIES, STATES)
    exact = {
        2: noise_evidence(y[:, 2], lambda e: stats.laplace.logpdf(e, scale=np.sqrt(0.5))),
        3: states_evidence(y[:, 3], expit),
        4: states_evidence(y[:, 4], stats.norm.cdf),
        5: states_evidence(y[:, 5], lambda a: -np.expm1(-np.exp(a))),
        # Uniform probabilities: the Dirichlet distribution integrates in closed form.
        7: gammaln(4) + gammaln(np.bincount(y[:, 7].astype(int)) + 1).sum() - gammaln(34),
    }
    for child, value in exact.items():
        # The density of Laplace noise has a corner, near which it is no parabola.
        bound = 0.2 if FAMILIES[child] == "laplace" else 0.06
        assert abs(score.local(child, ()) - value) < bound, FAMILIES[child]


@pytest.mark.parametrize("child", range(1, 8), ids=FAMILIES[1:])
def test_evidences_with_parents_are_near_those_by_importance_sampling(child):
    own, rng = fit(child), np.random.default_rng(child)
    logs = np.array([own.log_weight(own.draw(rng)) for _ in range(1500)])
    weight = np.exp(logs)
    assert weight.sum() ** 2 / (weight**2).sum() > 0.4 * len(weight)
    assert abs(np.log(weight.mean())) < 0.25


def test_normal_numbers_have_the_score_of_bge():
    numbers = MixedScore(X[:, :3], ["normal"] * 3, [0] * 3)
    bge = network_score(X[:, :3], "bge")
    for child, parents in ((0, ()), (1, (0,)), (2, (0, 1))):
        assert abs(numbers.local(child, parents) - bge.local(child, parents)) < 1e-9


def test_subsets_are_scored_as_single_sets():
    for child in range(8):
        others = [j for j in (0, 3, 6, 7) if j != child][:3]
        found = SCORE.subsets(child, others[:2], fixed=others[2:])
        sets = [(), others[:1], others[1:2], others[:2]]
        single = [SCORE.local(child, [*own, *others[2:]]) for own in sets]
        np.testing.assert_allclose(found, single, atol=1e-4)  # climbs end near the mode


def test_names_and_the_direction_of_states_do_not_matter():
    other = X.copy()
    other[:, 3] = 1 - X[:, 3]
    other[:, 6] = np.array([2, 0, 1])[X[:, 6].astype(int)]
    other[:, 7] = 3 - X[:, 7]
    again = MixedScore(other, FAMILIES, STATES)
    for child, parents in ((1, (3, 6)), (3, (6, 7)), (6, (3, 7)), (7, (0, 6)), (5, (6, 3))):
        assert abs(again.local(child, parents) - SCORE.local(child, parents)) < 1e-3


def test_parents_that_separate_states_have_a_finite_score():
    x = np.column_stack([np.linspace(-1.6, 1.6, 40), np.arange(40) >= 20]).astype(float)
    score = MixedScore(x, ["normal", "logistic"], [0, 2])
    assert 0 > score.local(1, [0]) > score.local(1, ()) + 5


def test_rows_in_which_a_column_was_set_do_not_count():
    was_set = np.zeros(X.shape, bool)
    was_set[:20, 6] = True
    score = MixedScore(X, FAMILIES, STATES, interventions=was_set)
    rest = MixedScore(X[20:], FAMILIES, STATES)
    assert score.local(6, [0, 3]) == pytest.approx(rest.local(6, [0, 3]), abs=1e-6)
    assert score.local(3, [6]) == pytest.approx(SCORE.local(3, [6]), abs=1e-9)
    was_set[:, 6] = True
    never = MixedScore(X, FAMILIES, STATES, interventions=was_set)
    assert never.local(6, [0, 3]) == never.fit(6, [0, 3]).score == 0.0


def test_parameters_have_labels():
    layout = MixedLayout(["normal", "multinomial", "ordinal"], [0, 3, 3])
    labels = layout.labels(["age", "colour", "grade"], [(), ("r", "g", "b"), (1, 2, 3)])
    assert labels[:5] == [
        "intercept -> age",
        "colour: g -> age",
        "colour: b -> age",
        "grade -> age",
        "noise scale -> age",
    ]
    assert labels[-2:] == ["threshold 1|2 -> grade", "threshold 2|3 -> grade"]
    assert len(set(labels)) == layout.size


def test_fits_do_not_depend_on_those_before():
    """Chains draw the same whether others ran before them in this process."""
    first, second = (MixedScore(X, FAMILIES, STATES) for _ in range(2))
    for parents in ([4], [0, 4, 7], [0, 2, 4]):
        second.fit(6, parents)
    for child in range(8):
        parents = [j for j in PARENTS if j != child]
        one, other = first.fit(child, parents), second.fit(child, parents)
        np.testing.assert_array_equal(one.mode, other.mode)
        assert one.score == other.score


def test_climbs_with_student_noise_survive_steps_that_are_too_long():
    own = SCORE.rows_of(1)
    grad, hess, work = np.empty(4), np.empty((4, 4)), np.empty((10, len(X)))
    for log_g in (-800.0, 800.0):
        theta = np.array([0.0, 1.0, 0.0, log_g])
        args = *own, np.array([0]), np.eye(2), 0.0, 0.0, theta, True, work, grad, hess
        assert evaluate(*args) == -np.inf
