"""Missing values of rows given graph and parameters, against sums and integrals of densities that are written out."""

import numpy as np
import pytest

from scipy import stats
from scipy.special import expit

from bayesstruct.networks.kernels import mixed_gaps
from bayesstruct.networks.kernels.mixed_cells import ValueDensity
from bayesstruct.networks.kernels.mixed_layout import MixedLayout

ROWS, SWEEPS = 4000, 12
LAYOUT = MixedLayout(("logistic", "student", "ordinal", "laplace"), (2, 0, 3, 0))
DAG = np.zeros((4, 4), int)
DAG[0, 1] = DAG[0, 2] = DAG[1, 2] = DAG[1, 3] = 1
GRID = np.linspace(-12.0, 12.0, 4801)
BINS = np.array([-0.5, 0.0, 0.3, 0.6, 1.0])


def vector():
    """Parameters of two -> number -> other, and two, number -> three."""
    out = np.zeros(LAYOUT.size)
    places = LAYOUT.coefficients
    out[places[0][0, 0]] = 0.3
    out[places[1][0, :2]] = -0.2, 1.5
    out[places[2][0, 1:3]] = -2.0, 1.2
    out[places[3][0, [0, 2]]] = 0.1, 0.8
    out[LAYOUT.extras[1]] = 0.7, 4.0
    out[LAYOUT.extras[2]] = -1.0, 0.5
    out[LAYOUT.extras[3]] = 0.5
    return out


def exact(three_is_set):
    """Weights of both states of the first column and of the number on the grid, given state 2 and 0.9 in the others."""
    weights = []
    for two in (0, 1):
        p_two = expit(0.3) if two else 1.0 - expit(0.3)
        centre = -0.2 + 1.5 * (two - 0.5)
        number = stats.t.pdf((GRID - centre) / (0.7 * np.sqrt(0.5)), 4.0)
        three = 1.0 - expit(0.5 - (-2.0 * (two - 0.5) + 1.2 * GRID))
        other = stats.laplace.pdf(0.9, 0.1 + 0.8 * GRID, 0.5 / np.sqrt(2.0))
        weights.append(p_two * number * (1.0 if three_is_set else three) * other)
    weights = np.array(weights)
    return weights / weights.sum()


def worst_z(three_is_set=False):
    """Largest standardised difference of the share of a state and an interval, from rows that are independent."""
    z = np.tile([0.0, -3.0, 2.0, 0.9], (ROWS, 1))
    missing = np.tile([True, True, False, False], (ROWS, 1))
    free = np.tile([True, True, not three_is_set, True], (ROWS, 1))
    rng = np.random.default_rng(3)
    for _ in range(SWEEPS):
        mixed_gaps.draw_gaps(rng, LAYOUT, vector(), DAG, z, missing, free)
    assert (z[:, 2:] == [2.0, 0.9]).all()
    p = exact(three_is_set)
    worst = 0.0
    for two in (0, 1):
        for k in range(len(BINS) + 1):
            share = p[two][np.digitize(GRID, BINS) == k].sum()
            found = ((z[:, 0] == two) & (np.digitize(z[:, 1], BINS) == k)).mean()
            worst = max(worst, abs(found - share) / np.sqrt(share * (1.0 - share) / ROWS))
    return worst


@pytest.mark.statistical
@pytest.mark.parametrize("three_is_set", [False, True])
def test_missing_values_have_their_distribution_given_the_rest_of_the_row(three_is_set):
    # Twelve shares: 4 standard errors are exceeded with probability below one in a thousand.
    assert worst_z(three_is_set) < 4.0


@pytest.mark.statistical
@pytest.mark.parametrize("part", ["together", "single"])
def test_missing_values_without_what_their_children_say_are_noticed(part, monkeypatch):
    own = ValueDensity.__init__

    def without_children(self, *args):
        own(self, *args)
        self.children = []

    if part == "single":
        monkeypatch.setattr(ValueDensity, "__init__", without_children)
    else:
        monkeypatch.setattr(mixed_gaps, "column_terms", lambda layout, x, vector: np.zeros(x.shape))
    assert worst_z() > 6.0


@pytest.mark.statistical
def test_values_of_rows_that_miss_everything_are_draws_from_the_model():
    z, missing = np.zeros((ROWS, 4)), np.ones((ROWS, 4), bool)
    rng = np.random.default_rng(5)
    mixed_gaps.draw_gaps(rng, LAYOUT, vector(), DAG, z, missing, missing)
    assert stats.binomtest(int(z[:, 0].sum()), ROWS, expit(0.3)).pvalue > 1e-3
    centre = -0.2 + 1.5 * (z[:, 0] - 0.5)
    e = (z[:, 1] - centre) / (0.7 * np.sqrt(0.5))
    assert stats.kstest(e, stats.t(4.0).cdf).pvalue > 1e-3
    e = (z[:, 3] - 0.1 - 0.8 * z[:, 1]) / (0.5 / np.sqrt(2.0))
    assert stats.kstest(e, stats.laplace.cdf).pvalue > 1e-3


@pytest.mark.statistical
def test_normal_numbers_have_their_conditional_moments():
    layout = MixedLayout(("normal", "normal"), (0, 0))
    dag, own = np.array([[0, 1], [0, 0]]), np.zeros(layout.size)
    own[layout.coefficients[1][0, 1]] = 2.0
    own[layout.extras[0]], own[layout.extras[1]] = 1.0, 0.5
    z, missing = np.tile([0.0, 1.0], (ROWS, 1)), np.tile([True, False], (ROWS, 1))
    mixed_gaps.draw_gaps(np.random.default_rng(1), layout, own, dag, z, missing, missing | True)
    precision = 1.0 + 4.0 / 0.25
    law = stats.norm(2.0 / 0.25 / precision, precision**-0.5)
    assert stats.kstest(z[:, 0], law.cdf).pvalue > 1e-3
