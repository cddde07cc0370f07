"""Most probable relations of several groups: all relations one by one, the mode, planted differences."""

import itertools

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import bayesstruct as bs

from bayesstruct.fields.modes.groups import _evidence
from bayesstruct.fields.recognition.groups import grouped_field_of
from bayesstruct.models import ising, pairwise_mrf


def frame(n=160, p=3, seed=0, states=2):
    """The first two columns depend on each other in all groups, the next two in the first only."""
    rng = np.random.default_rng(seed)
    x, group = rng.integers(0, states, (n, p)), np.arange(n) % 2
    x[:, 1] = np.where(rng.random(n) < 0.5, x[:, 0], x[:, 1])
    x[:, 2] = np.where((group == 0) & (rng.random(n) < 0.7), x[:, 1], x[:, 2])
    return pd.DataFrame(x, columns=[f"x{i}" for i in range(p)]).assign(group=group)


def relations(weight):
    return (weight != 0).any(axis=0).astype(int) + (weight != weight[0]).any(axis=0)


def evidence_of(model):
    return _evidence(model, grouped_field_of(model, model["weight"]))


@pytest.mark.parametrize("likelihood", ["exact", "pseudo"])
def test_the_best_of_all_relations_is_found(likelihood):
    model = ising(frame(), group="group", likelihood=likelihood, difference_probability=0.3)
    evidence = evidence_of(model)
    start = np.zeros(2 * (3 + 3))
    every = [np.array(r) for r in itertools.product(range(3), repeat=3)]
    scores = [evidence.score(evidence.fit(r, start)) for r in every]
    mode = bs.find_MAP(model)
    np.testing.assert_array_equal(relations(mode["weight"]), every[int(np.argmax(scores))])
    np.testing.assert_array_equal(mode["relation"], relations(mode["weight"]))
    assert len({*mode["relation"].tolist()}) > 1


def test_the_mode_has_no_slope_and_the_density_of_the_model():
    table = frame(states=3)
    model = pairwise_mrf(table, potentials="ordinal", group="group", bias_scale=2.0)
    mode, evidence = bs.find_MAP(model), evidence_of(model)
    logp = model.compile_logp(mode="FAST_COMPILE")
    here = {name: mode[name] for name in ("bias", "weight")}
    at, relation = logp(here), relations(mode["weight"])
    for g, b in np.ndindex(*mode["bias"].shape):
        slope = []
        for h in (-1e-4, 1e-4):
            bias = mode["bias"].copy()
            bias[g, b] += h
            slope.append(logp(here | {"bias": bias}) - at)
        assert abs(slope[1] - slope[0]) < 1e-7 and max(slope) < 1e-9
    for e in np.flatnonzero(relation):  # along the common weight, and each alone where they differ
        rows = [slice(None)] if relation[e] == 1 else range(2)
        for g in rows:
            changed = []
            for h in (-1e-4, 1e-4):
                weight = mode["weight"].copy()
                weight[g, e] += h
                changed.append(logp(here | {"weight": weight}) - at)
            assert abs(changed[1] - changed[0]) < 1e-6 and max(changed) < 1e-9
    # differences of the two densities at points of the same relations
    fit = evidence.fit(relation, np.zeros(2 * (6 + 3)))
    moved = fit.x.copy()
    moved[evidence.members(relation)] += 0.1
    bias, weight = evidence.parts(moved)
    weight[:, relation < 2] = weight[0, relation < 2]
    found = evidence.value(moved)[0] - evidence.value(fit.x)[0]
    assert logp({"bias": bias, "weight": weight}) - at == pytest.approx(found, rel=1e-8)


def test_the_hessian_is_that_of_the_density():
    evidence = evidence_of(ising(frame(), group="group"))
    rng = np.random.default_rng(1)
    x, at = 0.3 * rng.normal(size=12), evidence.members(np.array([2, 1, 2]))
    x[np.setdiff1d(np.arange(12), at)] = 0.0
    numeric = np.empty((len(at), len(at)))
    for i, a in enumerate(at):
        step = np.zeros(12)
        step[a] = 1e-5
        numeric[i] = (evidence.value(x - step)[1] - evidence.value(x + step)[1])[at] / 2e-5
    np.testing.assert_allclose(evidence.curvature(x, at), numeric, rtol=1e-5, atol=1e-5)


def test_more_columns_and_groups():
    table = frame(n=900, p=6, seed=2)
    group = np.arange(900) % 4
    mode = bs.find_MAP(ising(table.drop(columns="group"), group=group))
    model = ising(table.drop(columns="group"), group=group)
    pairs = list(model.coords["pair"])
    assert mode["relation"][pairs.index("x0 -- x1")] == 1
    assert mode["relation"][pairs.index("x1 -- x2")] == 2
    assert (mode["relation"] > 0).sum() <= 4


def test_models_to_which_the_search_does_not_apply_are_refused():
    table = frame().astype("Int64")
    table.iloc[0, 0] = pd.NA
    with pytest.raises(ValueError, match=r"values are missing; drop the rows.*difference_table"):
        bs.find_MAP(ising(table, group="group"))
    learned = ising(frame(), group="group", edge_probability=pm.Beta.dist(1, 1))
    with pytest.raises(ValueError, match="'edge_probability' is not constant"):
        bs.find_MAP(learned)
