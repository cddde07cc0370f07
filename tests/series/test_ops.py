"""Sums over transition probabilities."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from scipy import stats

from bayesstruct.series.ops import transitions_of
from bayesstruct.series.priors import BehaviourTransitions

FEATURE = np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0], [1, 1, 1]], np.int8)


@pytest.fixture
def value():
    return pm.draw(BehaviourTransitions.dist(FEATURE, 1.5, 1.0), random_seed=1)


def log_density(value, concentration, stickiness):
    """The density by SciPy, row by row."""
    total = 0.0
    for z, p in zip(FEATURE, value, strict=True):
        own = np.flatnonzero(z)
        for k in own if len(own) > 1 else ():
            parameters = concentration + stickiness * (own == k)
            total += stats.dirichlet(parameters).logpdf(p[k, own])
    return total


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
def test_sums(value, mode):
    x, z = pt.dtensor3("x"), pt.tensor("z", shape=(None, None), dtype="int8")
    members, stay, leave, valid = pytensor.function([x, z], [*transitions_of(x, z)], mode=mode)(
        value, FEATURE
    )
    assert members.tolist() == [2, 2, 0, 3] and valid
    logs, same = np.log(np.where(value > 0, value, 1.0)), np.eye(3, dtype=bool)
    assert stay == pytest.approx(logs[:, same].sum())
    assert leave == pytest.approx(logs[:, ~same].sum())


@pytest.mark.parametrize(("concentration", "stickiness"), [(1.5, 1.0), (0.3, 0.0), (1.0, 4.0)])
def test_density_and_its_derivatives(value, concentration, stickiness):
    a, b = pt.dscalar("a"), pt.dscalar("b")
    logp = pm.logp(BehaviourTransitions.dist(FEATURE, a, b), value)
    found = pytensor.function([a, b], [logp, *pytensor.grad(logp, [a, b])])(
        concentration, stickiness
    )
    step = 1e-6
    right = [log_density(value, concentration, stickiness)]
    for change in ((step, 0.0), (0.0, step)):
        ahead = log_density(value, concentration + change[0], stickiness + change[1])
        right.append((ahead - right[0]) / step)
    assert np.allclose(found, right, rtol=1e-4)


def test_derivatives_with_respect_to_the_probabilities(value):
    x = pt.dtensor3("x")
    _, stay, leave, _ = transitions_of(x, FEATURE)
    slope = pytensor.function([x], pytensor.grad(2.0 * stay + 3.0 * leave, x))(value)
    own = FEATURE[:, :, None] * FEATURE[:, None, :] > 0
    right = np.where(np.eye(3) > 0, 2.0, 3.0) / np.where(own, value, np.inf)
    assert np.allclose(slope, right)


@pytest.mark.parametrize(("place", "new"), [((0, 0, 0), 0.9), ((2, 1, 1), 1.0), ((1, 2, 1), 0.1)])
def test_rows_that_are_no_distribution(value, place, new):
    value[place] = new
    assert not transitions_of(value, FEATURE).valid.eval()
    assert pm.logp(BehaviourTransitions.dist(FEATURE, 1.0, 1.0), value).eval() == -np.inf


def test_densities_of_a_batch(value):
    a = np.array([1.5, 0.3])
    rv = BehaviourTransitions.dist(FEATURE, a, [1.0, 0.0])
    found = pm.logp(rv, np.stack([value, value])).eval()
    assert np.allclose(found, [log_density(value, 1.5, 1.0), log_density(value, 0.3, 0.0)])
