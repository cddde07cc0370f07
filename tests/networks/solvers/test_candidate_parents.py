"""Short lists of parents: what they hold by definition, and the numbers of their source."""

import numpy as np
import pytest
import scipy.io

from tools.places import DATA

from bayesstruct.networks.kernels.scores.named import network_score
from bayesstruct.networks.solvers.candidate_parents import blanket_candidates, candidate_parents

SHARED = pytest.mark.skipif(not DATA.exists(), reason="the data of the sources are not here")


class RandomScore:
    """Random numbers for every child and parent set."""

    def __init__(self, d):
        self.d, self.asked = d, set()

    def local(self, child, parents):
        self.asked.add((child, frozenset(parents)))
        seed = [child, *sorted(parents)]
        return float(3 * np.random.default_rng(seed).normal())


def row(candidates, child):
    return candidates[child][candidates[child] >= 0].tolist()


def chain(n=400, d=6):
    """A linear chain 0 -> 1 -> ... of continuous variables."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    for j in range(1, d):
        x[:, j] = 0.8 * x[:, j - 1] + 0.6 * x[:, j]
    return x


def test_forward_selection_then_single_parents():
    score = RandomScore(8)
    candidates = candidate_parents(score, 4)
    assert candidates.shape == (8, 4)
    assert candidates.dtype == np.int64
    added, filled = 0, 0
    for child in range(8):
        chosen, rest = [], [j for j in range(8) if j != child]
        while len(chosen) < 4:
            best = max(
                (j for j in rest if j not in chosen), key=lambda j: forward(child, chosen, j)
            )
            if forward(child, chosen, best) <= score.local(child, chosen):
                break
            chosen.append(best)
        added += len(chosen)
        filled += 4 - len(chosen)
        single = sorted(
            (j for j in rest if j not in chosen), key=lambda j: -score.local(child, [j])
        )
        assert row(candidates, child) == chosen + single[: 4 - len(chosen)]
    assert added > 0
    assert filled > 0


def forward(child, chosen, parent):
    return RandomScore(8).local(child, [*chosen, parent])


def test_allowed_and_required_parents():
    score = RandomScore(6)
    allowed, required = np.ones((6, 6), bool), np.zeros((6, 6), bool)
    allowed[:4, 0] = False
    allowed[:, 1] = False
    required[[2, 5], 3] = True
    candidates = candidate_parents(score, 3, allowed=allowed, required=required)
    assert sorted(row(candidates, 0)) == [4, 5]
    assert row(candidates, 1) == []
    assert row(candidates, 3)[:2] == [2, 5]
    assert all({2, 5} <= parents for child, parents in score.asked if child == 3)
    assert all(child not in row(candidates, child) for child in range(6))
    everything = candidate_parents(score, 9)
    assert all(sorted([child, *row(everything, child)]) == list(range(6)) for child in range(6))
    assert candidate_parents(score, 0).shape == (6, 0)


def test_sets_that_are_ruled_out_come_last():
    class Ruled(RandomScore):
        def local(self, child, parents):
            return -np.inf if 2 in parents else super().local(child, parents)

    candidates = candidate_parents(Ruled(5), 4)
    assert all(candidates[child, -1] == 2 for child in (0, 1, 3, 4))


def binary_chain(n=1_000, d=6):
    """Each variable is the one before, flipped with probability 0.2."""
    flips = np.random.default_rng(1).random((n, d)) < np.r_[0.5, [0.2] * (d - 1)]
    return np.cumsum(flips, axis=1) % 2


@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_blankets_of_a_chain_are_its_neighbours(family):
    x = chain() if family == "gaussian" else binary_chain()
    blankets = blanket_candidates(x, family)
    for child in range(6):
        assert row(blankets, child) == [j for j in (child - 1, child + 1) if 0 <= j < 6]
    limited = blanket_candidates(x, family, size=1)
    assert limited.shape == (6, 1)
    assert all(row(limited, j)[0] in row(blankets, j) for j in range(6))
    ordered = blanket_candidates(x, family, allowed=np.triu(np.ones((6, 6))))
    assert [row(ordered, j) for j in range(6)] == [[], [0], [1], [2], [3], [4]]
    lists = candidate_parents(network_score(x, family), 2)
    assert all(set(row(blankets, j)) <= set(row(lists, j)) for j in range(6))


def test_rows_in_which_a_variable_was_set_do_not_count():
    x = chain()
    mask = np.zeros(x.shape, bool)
    mask[:200, 3] = True
    mask[:, 5] = True
    set_ = x.copy()
    set_[:200, 3] = np.random.default_rng(1).normal(size=200) + 50 * x[:200, 0]
    blankets = blanket_candidates(set_, "gaussian", interventions=mask)
    alone = blanket_candidates(x[200:], "gaussian")
    assert row(blankets, 3) == row(alone, 3)
    assert row(blankets, 5) == []


def test_fewer_rows_than_variables_and_collinear_ones():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(12, 20))
    x[:, 7] = 2 * x[:, 8]
    x = np.column_stack([x, x[:, 0] + 0.1 * rng.normal(size=12)])
    blankets = blanket_candidates(x, "gaussian", size=4)
    assert 20 in row(blankets, 0)
    assert not {7, 8} <= set(row(blankets, 0))


@SHARED
def test_rain_of_the_source():
    """Schmidt (2010, section 4.6.2): 28 days in their order; his BIC is minus our score."""
    rain = scipy.io.loadmat(DATA / "rain.mat")["X"].astype(float)
    score = network_score(rain, "logistic")
    later = np.triu(np.ones((28, 28)), 1)
    blankets = blanket_candidates(2 * rain - 1, allowed=later)
    assert (blankets >= 0).sum() == 73
    assert all(j - 1 in blankets[j] for j in range(1, 28))
    total = sum(score.local(j, row(blankets, j)) for j in range(28))
    assert total == pytest.approx(-17830.0, abs=0.05)  # printed to one decimal
    empty = sum(score.local(j, ()) for j in range(28))
    assert empty == pytest.approx(-20167.42, abs=0.005)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"size": -1}, "must not be negative"),
        ({"size": 1, "allowed": np.ones((3, 2))}, "`allowed` has shape \\(3, 2\\)"),
        ({"size": 1, "allowed": np.zeros((4, 4)), "required": np.eye(4, k=2)}, "0 -> 2 is not"),
        ({"size": 1, "required": np.eye(4)}, "0 -> 0 is not"),
        ({"size": 1, "required": np.triu(np.ones((4, 4)), 1)}, "3 parents of 3 are required"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        candidate_parents(RandomScore(4), **options)


def test_blankets_that_are_refused():
    with pytest.raises(ValueError, match="'poisson' is unknown"):
        blanket_candidates(chain(), "poisson")
    with pytest.raises(ValueError, match="column 0 has 400 different values"):
        blanket_candidates(chain(), "logistic")
    with pytest.raises(ValueError, match="`size` must not"):
        blanket_candidates(chain(), "gaussian", size=-1)
