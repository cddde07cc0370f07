"""The best graph that a search finds, with mean parameters, against the posterior over all graphs."""

import numpy as np
import pytest

import bayesstruct as bs

from bayesstruct.models import linear_sem
from bayesstruct.sem.exact import linear_sem as exact


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


def test_missing_values_are_refused_with_the_remedy():
    x = table()
    x[3, 1] = np.nan
    with pytest.raises(ValueError, match="drop their rows, or sample"):
        bs.find_MAP(linear_sem(x, noise="laplace"))
