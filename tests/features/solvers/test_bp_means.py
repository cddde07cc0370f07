"""Binary features by least squares with a price for each."""

import itertools

import numpy as np
import pytest

from bayesstruct.features.kernels.bp_means import assign_rows
from bayesstruct.features.kernels.indian_buffet import left_ordered, log_buffet
from bayesstruct.features.kernels.latent_features import log_likelihood
from bayesstruct.features.solvers.bp_means import bp_means


def objective(z, x, penalty):
    loading = np.linalg.lstsq(np.asarray(z, float), x)[0]
    return ((x - z @ loading) ** 2).sum() + penalty * z.shape[1]


def best_of_all(x, penalty, most=3):
    """The least objective over all binary matrices with up to so many columns."""
    columns = np.array(list(itertools.product((0, 1), repeat=len(x)))[1:])
    return min(
        objective(columns[list(chosen)].T.reshape(len(x), -1), x, penalty)
        for k in range(most + 1)
        for chosen in itertools.combinations(range(len(columns)), k)
    )


@pytest.mark.parametrize("penalty", [0.3, 2.0, 30.0])
def test_many_restarts_reach_the_least_objective(penalty):
    rng = np.random.default_rng(1)
    z = rng.integers(0, 2, (5, 2))
    x = z @ np.array([[2.0, 0.0], [0.5, 1.5]]) + 0.2 * rng.normal(size=(5, 2))
    found = bp_means(x, penalty, max_features=3, restarts=50, random_seed=2)
    assert np.isclose(found.objective, best_of_all(x, penalty))
    assert np.isclose(found.objective, objective(found.feature, x, penalty))
    assert found.converged and np.array_equal(found.feature, left_ordered(found.feature))


def test_the_objective_is_the_limit_of_the_joint_density():
    rng, noise, penalty = np.random.default_rng(3), 1e-4, 0.7
    x, alpha = rng.normal(size=(6, 2)), np.exp(-penalty / (2 * noise**2) * 1e-5)
    # The exponent is too small for a number: its part in the density is put in by hand.
    sets = [rng.integers(0, 2, (6, k)) for k in (1, 2, 3)]
    sets = [z[:, z.any(axis=0)] for z in sets]

    def energy(z):
        rest = log_likelihood(z, x, noise, 1.0) + log_buffet(z, alpha) - z.shape[1] * np.log(alpha)
        return -2 * noise**2 * rest + penalty * z.shape[1]

    limit = [objective(z, x, penalty) for z in sets]
    assert np.allclose(np.diff([energy(z) for z in sets]), np.diff(limit), atol=1e-5)


def test_no_entry_and_no_feature_can_be_changed_for_the_better():
    rng, penalty = np.random.default_rng(4), 6.0
    z = rng.random((80, 4)) < 0.4
    x = z @ rng.normal(size=(4, 10)) + 0.2 * rng.normal(size=(80, 10))
    found = bp_means(x, penalty, random_seed=5)
    feature, loading = found.feature, found.loading
    residual = x - feature @ loading
    square = (residual**2).sum(axis=1)
    for k in range(feature.shape[1]):
        sign = 1 - 2 * feature[:, k]
        flipped = ((residual - sign[:, None] * loading[k]) ** 2).sum(axis=1)
        assert (flipped >= square - 1e-9).all()
        fewer = np.delete(feature, k, axis=1)
        assert objective(fewer, x, penalty) > found.objective
    assert found.objective <= bp_means(x, penalty, restarts=1, random_seed=5).objective


def test_passes_flip_entries_with_a_gain_only():
    x = np.array([[1.0, 0.0], [0.4, 0.0], [0.0, 5.0]])
    feature, loading = np.zeros((3, 2), np.int8), np.array([[1.0, 0.0], [0.0, 0.0]])
    k, changes = assign_rows(feature, 1, loading, x, 9.0, np.arange(3))
    assert k == 2 and changes == 2
    assert feature.tolist() == [[1, 0], [0, 0], [0, 1]] and loading[1].tolist() == [0.0, 5.0]


class Bounded(np.ndarray):
    """Matrix whose entries may change a few times only."""

    changes = 0

    def __setitem__(self, place, value):
        Bounded.changes += 1
        assert Bounded.changes < 100, "entries are flipped back and forth"
        super().__setitem__(place, value)


def test_ties_up_to_rounding_do_not_flip_for_ever():
    # Half a loading away from zero, and at right angles to it far off: both entries leave as much of the row.
    rng = np.random.default_rng(8)
    for _ in range(200):
        loading = rng.normal(size=2)
        far = np.array([-loading[1], loading[0]]) * 1e6 / np.linalg.norm(loading)
        feature, Bounded.changes = np.zeros((1, 1), np.int8).view(Bounded), 0
        row = (far + 0.5 * loading)[None]
        _, flips = assign_rows.py_func(feature, 1, loading[None], row, 1e300, np.arange(1))
        assert flips <= 1


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_a_search_does_not_depend_on_the_units(unit):
    rng = np.random.default_rng(0)
    z = rng.random((40, 2)) < 0.5
    x = z @ np.array([[2.0, 0, 1], [0, 3, 0]]) + 0.1 * rng.normal(size=(40, 3))
    one = bp_means(x, 1.0, random_seed=0)
    other = bp_means(unit * x, unit**2, random_seed=0)
    assert other.objective == pytest.approx(unit**2 * one.objective)
    assert np.array_equal(one.feature, other.feature) and one.feature.shape[1] == 2


def test_a_search_that_is_cut_says_so():
    x = np.random.default_rng(6).normal(size=(30, 3))
    with pytest.warns(RuntimeWarning, match="max_iter"):
        bp_means(x, 0.5, max_iter=1, restarts=1, random_seed=7)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"x": [[np.nan, 1.0]]}, "finite"),
        ({"x": [1.0, 2.0]}, "two dimensions"),
        ({"penalty": 0.0}, "`penalty`"),
        ({"penalty": True}, "`penalty`"),
        ({"max_features": 0}, "`max_features`"),
        ({"restarts": 0}, "`restarts`"),
    ],
)
def test_bad_input_is_refused(options, words):
    given = {"x": [[1.0, 2.0], [0.0, 1.0]], "penalty": 1.0, **options}
    with pytest.raises((TypeError, ValueError), match=words):
        bp_means(given.pop("x"), given.pop("penalty"), **given)
