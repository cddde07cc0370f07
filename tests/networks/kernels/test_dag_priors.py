"""Weights of parent sets: by their definitions, with constraints, refusals."""

from itertools import combinations
from math import comb, log

import numpy as np
import pytest

from bayesstruct.networks.kernels.dag_priors import ParentPrior, log_prior_subsets

D = 5


def sets(candidates):
    """Subsets in the order of their masks."""
    return [
        tuple(j for b, j in enumerate(candidates) if mask >> b & 1)
        for mask in range(1 << len(candidates))
    ]


def test_weights_are_those_of_the_definitions():
    q = np.random.default_rng(0).uniform(0.1, 0.9, (D, D))
    others = [0, 1, 3, 4]
    edge = ParentPrior(D, "edge", q).subsets(2, [3, 0], fixed=(4,))
    defined = [
        sum(log(q[j, 2]) if j in (*pa, 4) else log(1 - q[j, 2]) for j in others)
        for pa in sets([3, 0])
    ]
    np.testing.assert_allclose(edge, defined, rtol=1e-13)
    fair = ParentPrior(D, "fair").subsets(2, others)
    np.testing.assert_allclose(
        fair, [-log(comb(D - 1, len(pa))) for pa in sets(others)], atol=1e-13
    )
    assert not ParentPrior(D).subsets(2, others).any()


def test_arc_probabilities_sum_to_one_over_the_sets_of_a_child():
    q = np.random.default_rng(1).uniform(size=(D, D))
    q[0, 2], q[1, 2] = 0.0, 1.0
    weights = ParentPrior(D, "edge", q).subsets(2, [0, 1, 3, 4])
    np.testing.assert_allclose(np.exp(weights).sum(), 1.0, rtol=1e-13)
    assert all(
        (w == -np.inf) == (0 in pa or 1 not in pa)
        for w, pa in zip(weights, sets([0, 1, 3, 4]), strict=True)
    )


def test_constraints_exclude_exactly_the_sets_that_violate_them():
    allowed, required = np.ones((D, D), bool), np.zeros((D, D), bool)
    allowed[4, 0], required[1, 0] = False, True
    prior = ParentPrior(D, "fair", max_parents=2, allowed=allowed, required=required)
    weights = prior.subsets(0, [1, 2, 3, 4])
    for pa, weight in zip(sets([1, 2, 3, 4]), weights, strict=True):
        assert (weight > -np.inf) == (1 in pa and 4 not in pa and len(pa) <= 2)
        assert prior.local(0, pa) == weight
    # A required parent that is neither a candidate nor fixed is missing from every set.
    assert (prior.subsets(0, [2, 3]) == -np.inf).all()
    assert prior.subsets(0, [2, 3], fixed=(1,))[0] > -np.inf


def test_the_function_is_the_method():
    prior = ParentPrior(D, "edge", 0.2)
    given = log_prior_subsets("edge", 1, [0, 2], d=D, probability=0.2, fixed=(3,))
    assert (given == prior.subsets(1, [0, 2], (3,))).all()
    assert (log_prior_subsets(prior, 1, [0, 2]) == prior.subsets(1, [0, 2])).all()
    with pytest.raises(ValueError, match="has its own"):
        log_prior_subsets(prior, 1, [0, 2], d=D)


def test_exchangeable_weights_are_recognised():
    away = ~np.eye(3, dtype=bool)
    assert ParentPrior(3).exchangeable
    assert ParentPrior(3, "edge", np.where(away, 0.2, 0.7)).exchangeable
    assert not ParentPrior(3, "edge", np.arange(9).reshape(3, 3) / 10).exchangeable
    assert not ParentPrior(3, allowed=np.triu(away)).exchangeable


def arcs(*pairs):
    out = np.zeros((3, 3), bool)
    for j, i in pairs:
        out[j, i] = True
    return out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "flat"}, "unknown"),
        ({"kind": "edge", "probability": 1.2}, "between 0 and 1"),
        ({"kind": "edge", "probability": np.ones(3)}, "shape"),
        ({"probability": 0.2}, "belongs to the prior 'edge'"),
        ({"max_parents": -1}, "whole number"),
        ({"allowed": np.ones((2, 2))}, "`allowed` has shape"),
        ({"required": arcs((0, 1)), "allowed": ~arcs((0, 1))}, "0 -> 1 is not allowed"),
        ({"required": arcs((1, 1))}, "joins a variable with itself"),
        ({"required": arcs((0, 1), (1, 2), (2, 0))}, "form a cycle"),
        ({"required": arcs((0, 2), (1, 2)), "max_parents": 1}, "more than `max_parents`"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        ParentPrior(3, **options)


def test_pairs_of_parents_count_once():
    weights = ParentPrior(D, max_parents=2).subsets(0, [1, 2, 3, 4])
    assert (weights == 0).sum() == 1 + 4 + len(list(combinations(range(4), 2)))
