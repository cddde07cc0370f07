"""Sums over parent sets against sums of single sets, where digits are easily lost too."""

import itertools

import numpy as np
import pytest

from scipy.special import logsumexp
from tools.random_scores import RandomScore

from bayesstruct.networks.kernels import parent_sums
from bayesstruct.networks.kernels import parent_tables as tabulated
from bayesstruct.networks.kernels.dag_priors import ParentPrior

D = 6
CANDIDATES = [[1, 3], [0, 3, 4], [5], [1, 2, 4, 5], [], [0, 1, 2, 3, 4]]


class Chosen:
    """A score that depends on the parents by a function."""

    def __init__(self, d, value):
        self.d, self.value = d, value

    def subsets(self, child, candidates, *, fixed=()):
        sets = [
            {*fixed, *(j for b, j in enumerate(candidates) if m >> b & 1)}
            for m in range(2 ** len(candidates))
        ]
        return np.array([self.value(child, s) for s in sets], float)


def spread(child, parents):
    """Differences of thousands, so that exponentials of most sets underflow."""
    return -3000.0 * (1 not in parents) - 900.0 * (4 not in parents) + 0.1 * child * len(parents)


def close(child, parents):
    """Each parent costs 25: sets that must have another one are lost in a difference."""
    return -25.0 * len(parents) + 0.1 * child


def excluded(child, parents):
    return -np.inf if 4 in parents or len(parents) > 2 else 0.3 * sum(parents)


SCORES = {
    "random": RandomScore(D, 0),
    "spread": Chosen(D, spread),
    "close": Chosen(D, close),
    "excluded": Chosen(D, excluded),
}


def family(child, plus_one=True):
    """All parent sets of the tables of a child."""
    own = CANDIDATES[child]
    others = [j for j in range(D) if j != child and j not in own] if plus_one else []
    inside = [set(s) for k in range(len(own) + 1) for s in itertools.combinations(own, k)]
    return inside + [s | {j} for s in inside for j in others]


def possible(child, position, nearest, limit, plus_one=True):
    return [
        s
        for s in family(child, plus_one)
        if all(position[j] < limit for j in s)
        and (nearest == parent_sums.FREE or any(position[j] >= nearest for j in s))
    ]


def value(score, child, parents):
    return score.subsets(child, [], fixed=tuple(sorted(parents)))[0]


@pytest.fixture(scope="module", params=SCORES)
def made(request):
    score = SCORES[request.param]
    return score, tabulated.parent_tables(score, None, CANDIDATES)


def test_sums_over_allowed_sets(made):
    score, tables = made
    rng = np.random.default_rng(1)
    for _ in range(60):
        position = rng.integers(0, 4, D)
        for child in range(D):
            for nearest, limit in [
                (parent_sums.FREE, 0),
                (parent_sums.FREE, 2),
                (1, 2),
                (2, 4),
                (1, 4),
            ]:
                sets = possible(child, position, nearest, limit)
                wanted = logsumexp([-np.inf, *(value(score, child, s) for s in sets)])
                got = parent_sums.log_sum(tables, child, position, nearest, limit)
                # A difference may lose 6 of about 15 digits before terms are added up one by one.
                np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-8)


def test_draws_have_the_probabilities_of_the_sets(made):
    score, tables = made
    rng = np.random.default_rng(2)
    position, child, draws = np.array([0, 1, 0, 1, 0, 0]), 5, 3000
    for nearest, limit in [(parent_sums.FREE, 2), (1, 2)]:
        sets = possible(child, position, nearest, limit)
        log = np.array([value(score, child, s) for s in sets])
        count = dict.fromkeys(map(frozenset, sets), 0)
        adjacency = np.ones((D, D), np.int8)
        for _ in range(draws):
            parent_sums.draw_parents(rng, tables, child, position, nearest, limit, adjacency)
            count[frozenset(np.flatnonzero(adjacency[:, child]).tolist())] += 1
        expected = draws * np.exp(log - logsumexp(log))
        got = np.array([count[frozenset(s)] for s in sets], float)
        assert (got[expected == 0] == 0).all()
        use = expected > 0
        # Five standard deviations of a count, and five counts where few are expected.
        assert (np.abs(got - expected)[use] < 5 * np.sqrt(expected[use]) + 5).all()
        assert adjacency[:, :child].all()


def test_family_scores_are_those_of_the_graph():
    score = RandomScore(D, 0)
    tables = tabulated.parent_tables(score, None, CANDIDATES)
    adjacency = np.zeros((D, D), np.int8)
    adjacency[[1, 3, 5, 4, 0], [0, 0, 0, 1, 4]] = 1
    wanted = [score.local(i, np.flatnonzero(adjacency[:, i])) for i in range(D)]
    np.testing.assert_array_equal(tabulated.family_scores(tables, adjacency), wanted)
    adjacency[2, 0] = 1  # a second variable that is no candidate
    assert tabulated.family_scores(tables, adjacency)[0] == -np.inf


def test_without_further_parents_and_with_a_prior():
    score = RandomScore(D, 0)
    prior = ParentPrior(D, kind="edge", probability=0.2, max_parents=2)
    tables = tabulated.parent_tables(score, prior, CANDIDATES, plus_one=False)
    position = np.zeros(D, np.int64)
    for child in range(D):
        sets = possible(child, position, parent_sums.FREE, 1, plus_one=False)
        wanted = logsumexp([score.local(child, s) + prior.local(child, sorted(s)) for s in sets])
        got = parent_sums.log_sum(tables, child, position, parent_sums.FREE, 1)
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
        assert not len(tables.extras(child))


def test_constraints_leave_out_variables_and_are_found_again():
    allowed, required = np.ones((D, D), bool), np.zeros((D, D), bool)
    allowed[1, 0] = allowed[2, 0] = False
    required[3, 0] = required[0, 1] = required[2, 4] = required[4, 5] = True
    prior = ParentPrior(D, allowed=allowed, required=required)
    tables = tabulated.parent_tables(RandomScore(D, 0), prior, CANDIDATES)
    np.testing.assert_array_equal(tables.candidates(0), [3])
    np.testing.assert_array_equal(tables.extras(0), [4, 5])
    np.testing.assert_array_equal(tabulated.required_parents(tables), required)
    assert [bool(tabulated.may_be_parent(tables, 0, j)) for j in (1, 2, 3, 4)] == [0, 0, 1, 1]


def varied_prior(kind):
    rng = np.random.default_rng(3)
    allowed, required = rng.random((D, D)) < 0.8, np.zeros((D, D), bool)
    required[0, 1] = required[2, 5] = required[4, 5] = allowed[0, 1] = allowed[[2, 4], 5] = True
    probability = rng.uniform(0.1, 0.9, (D, D)) if kind == "edge" else None
    options = {"allowed": allowed, "required": required, "max_parents": 3}
    return ParentPrior(D, kind=kind, probability=probability, **options)


@pytest.mark.parametrize("kind", ["edge", "fair"])
def test_scores_and_priors_are_those_of_each_set(kind):
    score, prior = RandomScore(D, 1), varied_prior(kind)
    candidates = [[1, 3], [0, 3, 4], [5], [1, 2, 4, 5], [], [0, 4]]
    tables = tabulated.parent_tables(score, prior, candidates)
    for child in range(D):
        own, scores = tables.candidates(child).tolist(), tables.scores(child)
        for fixed, row in zip([(), *((j,) for j in tables.extras(child))], scores, strict=True):
            wanted = score.subsets(child, own, fixed=fixed) + prior.subsets(child, own, fixed)
            np.testing.assert_allclose(row, wanted, rtol=1e-12)
        left = {j for j in range(D) if j != child} - {*own, *tables.extras(child).tolist()}
        for j in left:  # in no possible set
            assert not np.isfinite(prior.subsets(child, own, (j,))).any()


def test_known_children_are_copied():
    class Problem:
        d, score, prior = D, RandomScore(D, 1), varied_prior("edge")

    first = tabulated.parent_tables(Problem, None, [[1, 3], [0], [5], [1], [], [2, 4]])
    changed = [[1, 3], [0], [5, 1], [1, 0], [], [2, 4]]
    tables = tabulated.parent_tables(Problem, None, changed, known=first)
    wanted = tabulated.parent_tables(Problem.score, Problem.prior, changed)
    for got, again in zip(tables, wanted, strict=True):
        np.testing.assert_array_equal(got, again)
    Problem.score = RandomScore(D, 2)  # what is known is not asked for again
    stale = tabulated.parent_tables(Problem, None, changed, known=tables)
    np.testing.assert_array_equal(stale.values, tables.values)


def test_number_of_entries():
    tables = tabulated.parent_tables(
        RandomScore(D, 0), None, [[j for j in range(D) if j != i][:2] for i in range(D)]
    )
    entries = sum(tables.scores(i).size for i in range(D))
    assert entries == tabulated.table_entries(D, 2)


def test_what_cannot_be_tabulated_is_refused():
    score, required = RandomScore(3, 0), np.zeros((3, 3), bool)
    required[[1, 2], 0] = True
    prior = ParentPrior(3, required=required)
    with pytest.raises(ValueError, match="no parent set of variable 0"):
        tabulated.parent_tables(score, prior, [[], [], []])
    with pytest.raises(ValueError, match="candidates of variable 1 must be different"):
        tabulated.parent_tables(score, None, [[1], [1], [0]])
    with pytest.raises(ValueError, match="2 rows, but there are 3"):
        tabulated.parent_tables(score, None, [[1], [0]])
    with pytest.raises(ValueError, match="at most 24"):
        tabulated.parent_tables(Chosen(30, close), None, [range(1, 30)] + [[]] * 29)
    with pytest.raises(ValueError, match="scores of variable 0 contain NaN"):
        tabulated.parent_tables(Chosen(3, lambda c, s: np.nan), None, [[], [], []])
