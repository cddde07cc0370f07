"""Trees of columns in very large or very small units."""

import numpy as np
import pandas as pd
import pytest

import bayesstruct as bs

from bayesstruct.data.table import near_one


def table(n=60):
    rng = np.random.default_rng(8)
    x = rng.normal(size=(n, 5)).cumsum(axis=1)
    return pd.DataFrame(x, columns=list("abcde")).assign(q=x[:, 1] > 0)


def in_units(frame, power):
    return frame.assign(a=np.ldexp(frame.a, power), d=np.ldexp(frame.d, -power))


def test_columns_near_one_are_the_same_numbers():
    values = table().drop(columns="q").to_numpy() * [1e200, 1e-200, 1.0, 0.0, 1e308 / 20]
    scaled, powers = near_one(values)
    np.testing.assert_array_equal(np.ldexp(scaled, powers), values)
    largest = np.abs(scaled).max(axis=0)
    assert ((largest >= 0.5) & (largest < 1.0))[[0, 1, 2, 4]].all() and largest[3] == 0.0


@pytest.mark.parametrize("power", [700, -700])
@pytest.mark.filterwarnings("error")
def test_forests_do_not_depend_on_units(power):
    first = table()
    other = in_units(first, power)
    known, found = bs.solvers.chow_liu(first), bs.solvers.chow_liu(other)
    pd.testing.assert_frame_equal(found.edges, known.edges, rtol=1e-12)
    # The units cancel: one column is multiplied by what another one is divided by.
    np.testing.assert_allclose(found.bic, known.bic, rtol=1e-12)
    np.testing.assert_allclose(found.log_density(other), known.log_density(first), rtol=1e-9)
    alone = first.assign(a=np.ldexp(first.a, power))
    shift = power * np.log(2.0)
    np.testing.assert_allclose(
        bs.solvers.chow_liu(alone).log_density(alone), known.log_density(first) - shift, rtol=1e-9
    )
    np.testing.assert_allclose(bs.solvers.chow_liu(alone).bic, known.bic - len(first) * shift)


@pytest.mark.parametrize("power", [700, -700])
@pytest.mark.filterwarnings("error")
def test_tests_of_pairs_and_latent_trees_do_not_depend_on_units(power):
    first = table()
    other = in_units(first, power)
    known = bs.solvers.pairwise_tests(first)
    pd.testing.assert_frame_equal(bs.solvers.pairwise_tests(other), known, rtol=1e-12)
    first, other = first.drop(columns="q"), other.drop(columns="q")
    distances = bs.solvers.information_distances(first)
    pd.testing.assert_frame_equal(bs.solvers.information_distances(other), distances)
    known, found = bs.solvers.latent_tree(first), bs.solvers.latent_tree(other)
    pd.testing.assert_frame_equal(found.edges, known.edges, rtol=1e-9)
    np.testing.assert_allclose(found.bic, known.bic, rtol=1e-9)
