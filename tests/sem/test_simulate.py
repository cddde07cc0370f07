"""Tables from linear structural equations: moments of their columns and noise, graphs, refusals."""

import networkx as nx
import numpy as np
import pytest

import bayesstruct as bs

DIAMOND = nx.DiGraph([("a", "c"), ("a", "b"), ("b", "d"), ("c", "d")])
NOISES = ["gaussian", "laplace", "student", "uniform", "exponential", "bimodal", "skewed"]


def simulate(n, **options):
    return bs.simulate.linear_sem(n, **options)


def noise_of(found):
    """Noise of a table over its scale, by the true coefficients."""
    rows, direct = found.data.to_numpy(), found.coefficients.to_numpy()
    return (rows - rows @ direct.T) / found.noise_scale.to_numpy()


@pytest.mark.parametrize("noise", NOISES)
def test_noise_has_mean_zero_and_variance_one_and_is_independent(noise):
    found = simulate(
        40_000, graph=DIAMOND, noise=noise, degrees=9 if noise == "student" else None, random_seed=2
    )
    direct = found.coefficients.to_numpy()
    assert (direct != 0).sum() == 4 and direct[3, 1] != 0  # row d, column b: children are rows
    size = np.abs(direct[direct != 0])
    assert (size >= 0.5).all() and (size <= 1.5).all()
    e = noise_of(found)
    # Standard errors: .005 of means and correlations, at most .015 of variances (kurtosis 9).
    np.testing.assert_allclose(e.mean(axis=0), 0, atol=0.025)
    np.testing.assert_allclose(np.cov(e.T), np.eye(4), atol=0.06)
    assert list(found.noise) == [noise] * 4


def test_noise_has_the_shape_that_is_asked_for():
    kinds = dict(
        zip("acbd", ["laplace", "uniform", "exponential", lambda rng, n: rng.normal(size=n)])
    )
    e = noise_of(simulate(40_000, graph=DIAMOND, noise=kinds, random_seed=3))
    skewness, kurtosis = (e**3).mean(axis=0), (e**4).mean(axis=0)
    np.testing.assert_allclose(skewness, [0, 0, 2, 0], atol=0.3)
    np.testing.assert_allclose(kurtosis, [6, 1.8, 9, 3], rtol=0.15)
    found = simulate(50, graph=DIAMOND, noise=kinds, random_seed=3)
    assert list(found.noise) == ["laplace", "uniform", "exponential", "custom"]


def test_variances_are_equal_given_or_in_a_range():
    same = simulate(10, p=6, variances=4.0, random_seed=1)
    assert set(same.noise_scale) == {2.0}
    given = simulate(10, graph=DIAMOND, variances={"a": 1, "b": 4, "c": 9, "d": 16}, random_seed=1)
    assert dict(given.noise_scale) == {"a": 1, "b": 2, "c": 3, "d": 4}
    free = simulate(10, p=50, variances=(1, 3), random_seed=1).noise_scale ** 2
    assert free.min() >= 1 and free.max() <= 3 and free.std() > 0.3


def test_total_effects_are_sums_over_paths():
    found = simulate(10, graph=DIAMOND, random_seed=4)
    b, total = found.coefficients, found.total_effects
    by_paths = b.loc["b", "a"] * b.loc["d", "b"] + b.loc["c", "a"] * b.loc["d", "c"]
    assert total.loc["d", "a"] == pytest.approx(by_paths, rel=1e-12)
    assert total.loc["a", "d"] == 0 == total.loc["b", "c"] and (np.diag(total) == 1).all()


def test_random_graphs_have_the_expected_number_of_neighbours():
    arcs = [
        simulate(1, p=30, expected_neighbours=3, random_seed=seed).graph.number_of_edges()
        for seed in range(60)
    ]
    assert abs(np.mean(arcs) - 45) < 4  # standard error .8
    few = simulate(1, p=9, expected_neighbours=8, max_parents=2, random_seed=1).graph
    assert max(degree for _, degree in few.in_degree) == 2


def test_values_set_from_outside_do_not_depend_on_parents():
    found = simulate(20_000, graph=DIAMOND, interventions=0.5, random_seed=5)
    mask = found.interventions.to_numpy()
    assert abs(mask.any(axis=1).mean() - 0.5) < 0.02 and mask.sum(axis=1).max() == 1
    set_d = found.data[mask[:, 3]]
    assert abs(set_d.corr().loc["b", "d"]) < 0.08 and abs(set_d["d"].std() - 1) < 0.06
    again = simulate(20_000, graph=DIAMOND, interventions=0.5, random_seed=5)
    assert found.data.equals(again.data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "cauchy"}, "`noise` must be one of 'gaussian', 'laplace'"),
        ({"noise": {"a": "laplace"}}, "leaves out columns 'c', 'b' and 'd'"),
        ({"noise": lambda rng, n: rng.normal(size=3)}, "must return 10 finite numbers"),
        ({"variances": 0}, "`variances` must be above 0"),
        ({"variances": {"z": 1, "a": 1, "b": 1, "c": 1, "d": 1}}, "unknown column 'z'"),
        ({"variances": (3, 1)}, "is a range"),
        ({"weights": 2}, "`weights` is a range"),
        ({"noise": "student", "degrees": 2}, "`degrees` must be above 2"),
        ({"degrees": 9}, "`degrees` belongs to noise='student'; leave it out"),
        ({"graph": DIAMOND, "max_parents": 2}, "`max_parents` belongs to .*; leave it out"),
        ({"graph": DIAMOND, "expected_neighbours": 2}, "`expected_neighbours` .*; leave it out"),
        ({"interventions": 2}, "`interventions` must be between 0 and 1"),
        ({"graph": nx.DiGraph([("a", "b"), ("b", "a")])}, "must be acyclic"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        simulate(10, **{"graph": DIAMOND, **options})
