"""Results print as one line, whatever they hold."""

import numpy as np
import pandas as pd

import bayesstruct as bs


def test_results_of_the_family_print_as_one_line():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.laplace(size=(60, 2)), columns=["a", "b"])
    clime = bs.solvers.clime(table.cov(), 0.5)
    exact = bs.exact.linear_sem(table)
    found = bs.solvers.direct_lingam(table, measure="likelihood_ratio")
    assert repr(clime).startswith("CLIMESolution(2 variables, 0 edges, penalty 0.5")
    assert repr(exact).startswith("SemPosterior(a, b: 3 graphs, the most probable one 0.")
    assert repr(found).startswith("DirectLiNGAM(2 variables, ")
    assert all(len(repr(result)) < 120 for result in (clime, exact, found))
