"""Modes of trees and forests against all of them."""

import numpy as np
import pytest

from scipy.special import betaln
from trees.test_exact import CASES, dag_score, numbers, states
from trees.test_forest import SHAPES, all_forests, indicator
from trees.test_mixed import STATES, layout_of
from trees.test_mixed import table as both
from trees.test_models import stepper

import bayesstruct as bs

from bayesstruct.graphs.spanning_trees.indicators import lines_of

TABLES = {"bge": lambda: numbers(n=12), "bdeu": lambda: states(n=16), "mixed": lambda: both(14)}


@pytest.mark.parametrize("score", [*TABLES])
def test_the_mode_is_the_best_tree(score):
    table, q = TABLES[score](), np.random.default_rng(1).uniform(0.2, 0.8, (5, 5))
    options = {"score": score, "edge_probability": (q + q.T) / 2}
    posterior = bs.exact.tree_posterior(table, **options)
    lines = lines_of(bs.find_MAP(bs.models.tree(table, **options))["edge"])
    best = posterior.log_probability(lines)
    # `best` of the posterior is held against all trees in other tests.
    assert {frozenset(posterior.names[i] for i in line) for line in lines.tolist()} == {
        frozenset(e) for e in posterior.best.edges
    }
    assert all(posterior.log_probability(other) <= best for other in posterior.draw(200, 1))


@pytest.mark.statistical
@pytest.mark.parametrize("score", [*TABLES])
def test_parameters_are_means_given_the_tree(score):
    model = bs.models.tree(TABLES[score](), score=score, equivalent_sample_size=6.0)
    mode, step, point = bs.find_MAP(model), stepper(model), model.initial_point()
    lines, found = lines_of(mode["edge"]), []
    for _ in range(4000):
        step.table.draw(np.random.default_rng(len(found)), lines, point)
        found.append({k: point[k].copy() for k in point if k != "edge"})
    for name in found[0]:
        draws, wanted = np.array([own[name] for own in found]), np.asarray(mode[name])
        if score == "mixed":
            layout = layout_of(STATES)
            numbers_only = [layout.coefficients[i] for i in (0, 2, 4)]
            places = np.concatenate([own[own >= 0] for own in numbers_only])
            scales = np.concatenate([layout.extras[i] for i in (0, 2, 4)])
            draws = np.concatenate([draws[:, places], draws[:, scales] ** 2], axis=1)
            wanted = np.concatenate([wanted[places], wanted[scales] ** 2])
        error = draws.std(axis=0) / np.sqrt(len(draws))
        assert (np.abs(draws.mean(axis=0) - wanted) <= 5.0 * error + 1e-12).all()


@pytest.mark.parametrize("score", ["bge", "bdeu"])
def test_the_mode_of_a_forest_is_the_best_rooted_one(score):
    table, make = CASES[score]
    local = make(table, 1.0)
    a, b = SHAPES
    scores = {}
    for lines, _, arcs in all_forests():
        k = len(lines)
        # All rooted forests with k lines have the same prior probability.
        scores[tuple(lines)] = dag_score(local, arcs) - k * np.log(5) + betaln(a + k, b + 4 - k)
    best = max(scores, key=scores.__getitem__)
    mode = bs.find_MAP(bs.models.forest(table, score=score, edge_share=SHAPES))
    assert mode["edge"].tolist() == indicator(best, 5)
    assert mode["components"] == 5 - len(best)
    assert mode["edge_share"] == pytest.approx((a + len(best)) / (a + b + 4))


def test_coefficients_of_covariates_are_moved_in_turn_with_the_tree():
    table, rng = numbers(n=10), np.random.default_rng(2)
    distance = rng.normal(size=(5, 5))
    model = bs.models.tree(table, edge_covariates={"distance": distance + distance.T})
    mode = bs.find_MAP(model)
    tree, slope = model["edge"], model["edge_coefficient"]
    density = model.compile_logp([tree, slope], sum=True)
    point = model.initial_point() | {k: mode[k] for k in ("edge", "edge_coefficient")}
    best = density(point)
    for move in (-0.01, 0.01):
        other = point | {"edge_coefficient": point["edge_coefficient"] + move}
        assert density(other) < best
    # Given the coefficient the tree is the best one.
    weights = tree.owner.op.dist_params(tree.owner)[0].eval({slope: point["edge_coefficient"]})
    prior = np.zeros((5, 5))
    prior[np.triu_indices(5, 1)] = weights
    odds = np.exp(prior + prior.T)
    known = bs.exact.tree_posterior(table, edge_probability=odds / (1 + odds)).best
    assert {frozenset("abcde"[i] for i in line) for line in lines_of(mode["edge"]).tolist()} == {
        frozenset(e) for e in known.edges
    }


def test_what_has_no_mode_says_what_to_do():
    gap = numbers()
    gap.iloc[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"(?s)values of 'x' are missing.*bs\.map_graph"):
        bs.find_MAP(bs.models.tree(gap))
    q = np.full((5, 5), 0.5)
    q[0, 1] = q[1, 0] = 0.2
    with pytest.raises(ValueError, match=r"(?s)equal weights.*'edge_share'.*bs\.map_graph"):
        bs.find_MAP(bs.models.forest(numbers(), edge_probability=q))
