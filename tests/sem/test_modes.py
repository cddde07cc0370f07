"""The best graph that a search finds, with mean parameters, against the posterior over all graphs."""

import numpy as np
import pytest

import bayesstruct as bs

from bayesstruct.models import linear_sem
from bayesstruct.sem.exact.posterior import linear_sem as exact


def table(n=60):
    rng = np.random.default_rng(4)
    x = rng.laplace(size=(n, 3))
    x[:, 1] += 0.9 * x[:, 0]
    x[:, 2] -= 0.7 * x[:, 1]
    return x


@pytest.mark.statistical
@pytest.mark.parametrize("options", [{"noise": "laplace"}, {"variances": "equal"}], ids=str)
def test_best_graph_is_that_of_all_graphs_and_parameters_are_means_given_it(options):
    x = table()
    mode = bs.find_MAP(linear_sem(x, **options))
    right = exact(x, **options, draws=4000)
    np.testing.assert_array_equal(mode["dag"], right.graphs[np.argmax(right.probabilities)])
    arcs = [(int(j), int(i)) for j, i in np.argwhere(mode["dag"])]
    only = {
        "required": [(f"x{j}", f"x{i}") for j, i in arcs],
        "forbidden": [
            (f"x{j}", f"x{i}") for j in range(3) for i in range(3) if i != j and (j, i) not in arcs
        ],
    }
    means = exact(x, **options, **only, draws=4000).weight_means.to_numpy()
    target, source = np.nonzero(~np.eye(3, dtype=bool))
    np.testing.assert_allclose(mode["weight"], means[source, target], atol=0.02)


@pytest.mark.statistical
def test_the_mode_has_the_mean_share_of_normal_noise_given_its_graph():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.exponential(size=200), rng.standard_normal(200)])
    x[:, 1] += x[:, 0]
    mode = bs.find_MAP(linear_sem(x, noise="mixture"))
    np.testing.assert_array_equal(mode["dag"], [[0, 1], [0, 0]])
    right = exact(x, noise="mixture", required=[("x0", "x1")], draws=8000)
    # Beta(1 + k, 3 - k), k being the number of columns with normal noise.
    assert mode["normal_share"] == pytest.approx(right.normal_share, abs=0.02)
    np.testing.assert_array_equal(mode["normal_noise"], right.normal_probabilities > 0.5)


def test_missing_values_are_refused_with_the_remedy():
    x = table()
    x[3, 1] = np.nan
    with pytest.raises(ValueError, match="drop their rows, or sample"):
        bs.find_MAP(linear_sem(x, noise="laplace"))
