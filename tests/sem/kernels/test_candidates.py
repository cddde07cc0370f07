"""Tables of parent sets of many columns."""

import numpy as np

from bayesstruct.networks.exact.problem import network_problem
from bayesstruct.networks.kernels.parent_tables import family_scores
from bayesstruct.sem.kernels import candidates
from bayesstruct.sem.kernels.candidates import sem_tables
from bayesstruct.sem.kernels.scores import SemScores
from bayesstruct.sem.kernels.settings import sem_settings


def _cancelling():
    """Parents 0 and 1 of column 4, both nearly column 5, with opposite effects; 2 and 3 are strong parents."""
    rng = np.random.default_rng(0)
    x = rng.laplace(size=(300, 10))
    x[:, :2] = 0.3 * x[:, :2] + x[:, [5]]
    x[:, 4] += 3.0 * (x[:, 0] - x[:, 1] + x[:, 2] + x[:, 3])
    x = (x - x.mean(0)) / x.std(0)
    return network_problem(SemScores(x, sem_settings(10, noise="laplace")))


def test_parents_whose_effects_cancel_are_candidates(monkeypatch):
    problem, graph = _cancelling(), np.zeros((10, 10), np.int8)
    graph[:4, 4] = 1
    assert np.isfinite(family_scores(sem_tables(problem, 2), graph)).all()
    # Neither by forward selection nor one by one are they found.
    monkeypatch.setattr(candidates, "_gaussian_graphs", lambda problem: [])
    assert not np.isfinite(family_scores(sem_tables(problem, 2), graph)).all()
    # A graph that is given adds them, too.
    assert np.isfinite(family_scores(sem_tables(problem, 2, [graph]), graph)).all()
