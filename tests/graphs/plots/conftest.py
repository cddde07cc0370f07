import matplotlib

matplotlib.use("Agg")

import pytest

from tools.posteriors import sparse_posterior


@pytest.fixture(scope="module")
def small():
    names = ["praf", "pmek", "plcg", "PIP2", "PIP3", "p44/42", "pakts473", "PKA", "PKC", "P38"]
    return sparse_posterior(10, names=names, draws=100)


@pytest.fixture(scope="module")
def large():
    names = [f"a_rather_long_questionnaire_item_{i}" for i in range(60)]
    return sparse_posterior(60, names=names, draws=60)
