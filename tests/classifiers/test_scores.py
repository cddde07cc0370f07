"""Scores of classifiers against their definitions, and the properties that the article states."""

import itertools
import math

import numpy as np
import pytest

from scipy.special import gammaln

from bayesstruct.classifiers.kernels.scores import (
    ALPHA,
    BETA,
    LAMBDA,
    RHO,
    SAMPLE_SIZE,
    SCORES,
    ClassifierScore,
    family_counts,
)


def table(seed=0, n=150, classes=2):
    """Four features that depend on each other and on the class, which is column 2."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, (n, 5))
    x[:, 2] = rng.integers(0, classes, n)
    x[:, 1] = np.where(rng.random(n) < 0.6, (x[:, 0] + x[:, 2]) % 3, x[:, 1])
    x[:, 3] = np.where(rng.random(n) < 0.5, x[:, 2] % 3, x[:, 3])
    return x, [3, 3, classes, 3, 3]


def score(kind, **options):
    x, states = table(**options)
    return ClassifierScore(x, states, 2, kind)


def slow_counts(x, child, parents):
    """Counts in dictionaries: N(j, c, k)."""
    found = {}
    for row in x.tolist():
        key = tuple(row[p] for p in parents), row[2], row[child]
        found[key] = found.get(key, 0) + 1
    return found


def slow_fcll(x, child, parents):
    """Terms of equation 24 of one feature, by loops over counts, base 2."""
    counts = slow_counts(x, child, parents)

    def total(**fixed):
        return sum(
            v
            for (j, c, k), v in counts.items()
            if all({"j": j, "c": c, "k": k}[name] == value for name, value in fixed.items())
        )

    out = 0.0
    for (j, c, k), n in counts.items():
        likelihood = math.log2(n / total(j=j, c=c))
        given = math.log2(n / total(j=j, k=k)) - math.log2(total(j=j, c=c) / total(j=j))
        out += n * ((ALPHA + BETA) * likelihood - BETA * LAMBDA * given)
    return out


@pytest.mark.parametrize("parents", [[], [0], [4, 0]])
def test_fcll_is_equation_24_in_natural_units(parents):
    x, _ = table()
    # All logarithms are base-2 ones, and the sum is scaled once.
    expected = math.log(2) * slow_fcll(x, 1, parents)
    np.testing.assert_allclose(score("fcll").family(1, parents), expected, rtol=1e-12)


def test_fcll_of_the_target_is_equation_24():
    x, _ = table()
    n, shares = len(x), np.bincount(x[:, 2]) / len(x)
    entropy = n * (shares @ np.log2(shares))
    expected = (ALPHA + BETA) * entropy - BETA * LAMBDA * entropy - BETA * n * RHO
    np.testing.assert_allclose(score("fcll").of_target(), math.log(2) * expected, rtol=1e-12)


def test_the_other_scores_are_their_definitions():
    x, _ = table()
    counts = slow_counts(x, 1, [0])
    rows = {}
    for (j, c, _), v in counts.items():
        rows[j, c] = rows.get((j, c), 0) + v
    likelihood = sum(v * math.log(v / rows[j, c]) for (j, c, _), v in counts.items())
    np.testing.assert_allclose(score("log_likelihood").family(1, [0]), likelihood, rtol=1e-12)
    penalty = 0.5 * math.log(len(x)) * 2 * 3 * 2
    np.testing.assert_allclose(score("mdl").family(1, [0]), likelihood - penalty, rtol=1e-12)
    cell = SAMPLE_SIZE / 18
    expected = sum(gammaln(cell + v) - gammaln(cell) for v in counts.values())
    expected -= sum(gammaln(3 * cell + v) - gammaln(3 * cell) for v in rows.values())
    np.testing.assert_allclose(score("bdeu").family(1, [0]), expected, rtol=1e-12)


def test_acll_is_a_log_ratio_of_smoothed_frequencies():
    x, _ = table()
    counts = slow_counts(x, 1, [0])

    def share(j, classes, k):
        number = sum(counts.get((j, c, k), 0) for c in classes)
        rows = sum(counts.get((j, c, m), 0) for c in classes for m in range(3))
        return (number + 0.5) / (rows + 1.5)

    expected = sum(
        n * (ALPHA * math.log(share(j, [c], k)) + BETA * math.log(share(j, [1 - c], k)))
        for (j, c, k), n in counts.items()
    )
    np.testing.assert_allclose(score("acll").family(1, [0]), expected, rtol=1e-12)


def test_bdeu_is_the_score_of_bayesian_networks():
    from bayesstruct.networks.kernels.scores.discrete import BDeu

    x, states = table()
    other = BDeu(x, states=states, equivalent_sample_size=3.0)
    ours = ClassifierScore(x, states, 2, "bdeu", 3.0)
    np.testing.assert_allclose(ours.family(1, [0, 4]), other.local(1, [0, 2, 4]), rtol=1e-12)
    np.testing.assert_allclose(ours.of_target(), other.local(2, []), rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("kind", [kind for kind, same in SCORES.items() if same])
def test_gains_are_symmetric(kind, classes):
    gains = score(kind, classes=classes).gains()
    size = np.abs(gains).max()
    np.testing.assert_allclose(gains, gains.T, rtol=0, atol=1e-12 * max(size, 1))


def test_gains_of_acll_are_not_symmetric():
    gains = score("acll").gains()
    assert np.abs(gains - gains.T).max() > 0.1


def mutual(joint):
    """Mutual information in bits of the two axes of a table of counts."""
    p = joint / joint.sum()
    independent = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    seen = p > 0
    return float(p[seen] @ np.log2(p[seen] / independent[seen]))


def test_gains_of_fcll_are_informations():
    """Equation 27: (alpha + beta) I(X; Y | C) - beta lambda (I(C; X | Y) - I(C; X)), N times."""
    x, _ = table()
    counts = np.zeros((3, 2, 3))  # of columns 0, class, 1
    np.add.at(counts, (x[:, 0], x[:, 2], x[:, 1]), 1)
    n = counts.sum()
    by_class = sum(counts[:, c].sum() / n * mutual(counts[:, c]) for c in range(2))
    by_parent = sum(own.sum() / n * mutual(own) for own in counts)
    interaction = by_parent - mutual(counts.sum(axis=0))
    expected = n * ((ALPHA + BETA) * by_class - BETA * LAMBDA * interaction)
    np.testing.assert_allclose(score("fcll").gains()[0, 1], math.log(2) * expected, rtol=1e-10)
    assert -BETA * LAMBDA > 0


@pytest.mark.parametrize("kind", SCORES)
def test_scores_depend_on_the_root_where_that_is_said(kind):
    own = score(kind)
    features = [0, 1, 3, 4]
    totals = []
    for root in range(4):  # the path 0 - 1 - 3 - 4 from each root
        dag = np.zeros((5, 5), int)
        dag[2, features] = 1
        for k in range(3):
            i, j = (k, k + 1) if k >= root else (k + 1, k)
            dag[features[i], features[j]] = 1
        totals.append(own.total(dag))
    same = np.ptp(totals) < 1e-10 * np.abs(totals).max()
    assert same == SCORES[kind]


def test_a_feature_that_is_independent_of_all_others_gains_nothing():
    x, states = table(n=60)
    every = np.concatenate([x, x, x])
    every[:, 4] = np.repeat([0, 1, 2], len(x))  # each state once with each row
    own = ClassifierScore(every, states, 2, "fcll")
    np.testing.assert_allclose(own.gains()[3, :3], 0.0, atol=1e-10)
    np.testing.assert_allclose(own.gains()[:3, 3], 0.0, atol=1e-10)


def approximate_cll(theta, prior, counts, class_counts):
    """Equation 22 of one feature and the class, with plus in the denominator, base 2, as a function of parameters."""
    n_jc = counts.sum(axis=2)
    out = (ALPHA + BETA) * ((counts * np.log2(theta)).sum() + class_counts @ np.log2(prior))
    for j, c, k in itertools.product(*map(range, counts.shape)):
        own = n_jc[j, c] * theta[j, c, k]
        other = n_jc[j, 1 - c] * theta[j, 1 - c, k]
        share = own / (own + other) / (n_jc[j, c] / n_jc[j].sum())
        out -= BETA * LAMBDA * counts[j, c, k] * math.log2(share)
    return out - BETA * LAMBDA * (class_counts @ np.log2(prior))


def test_observed_frequencies_maximise_fcll_over_parameters():
    x, states = table(n=400)
    counts = family_counts(x, np.array(states), 2, 1, [0])
    classes = np.bincount(x[:, 2]).astype(float)
    best = counts / counts.sum(axis=2, keepdims=True)
    prior = classes / classes.sum()
    top = approximate_cll(best, prior, counts, classes)
    rng = np.random.default_rng(1)
    for size in (1e-3, 0.03, 0.3):
        for _ in range(40):
            theta = best * np.exp(size * rng.standard_normal(best.shape))
            other = prior * np.exp(size * rng.standard_normal(2))
            theta, other = theta / theta.sum(axis=2, keepdims=True), other / other.sum()
            assert approximate_cll(theta, other, counts, classes) < top


@pytest.mark.statistical
def test_constants_are_those_of_least_squares():
    rng = np.random.default_rng(2)
    u, v = rng.random((2, 1_000_000))
    f = np.log2(u / (u + v))
    design = np.column_stack([np.log2(u), np.log2(v), np.ones(len(u))])
    fitted, *_ = np.linalg.lstsq(design, f, rcond=None)
    gamma = math.pi**2 / (12 * math.log(2)) - 2
    # Four standard errors: .352 / sqrt(n) over the standard deviation 1.44 of the logarithms.
    np.testing.assert_allclose(fitted[:2], [ALPHA, BETA], atol=0.001)
    np.testing.assert_allclose(fitted[2], gamma, atol=0.004)
    left = f - design @ [ALPHA, BETA, gamma]
    spread = math.sqrt((36 + 36 * math.pi**2 - math.pi**4) / (288 * math.log(2) ** 2) - 2)
    np.testing.assert_allclose(left.mean(), 0.0, atol=4 * spread / 1000)
    np.testing.assert_allclose(left.std(), spread, rtol=0.01)
    assert spread == pytest.approx(0.352, abs=5e-4)
    # The second approximation: log of W / (1 - W) by log W.
    design = np.column_stack([np.log2(u), np.ones(len(u))])
    slope, shift = np.linalg.lstsq(design, np.log2(u / (1 - u)), rcond=None)[0]
    np.testing.assert_allclose([slope, shift], [LAMBDA, RHO], atol=0.01)
