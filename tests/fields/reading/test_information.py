"""Conditional mutual information of edges: against brute force, in closed form, from a result."""

import numpy as np
import pytensor.tensor as pt
import pytest
import xarray as xr

from tools.random_fields import exact_distribution

import bayesstruct as bs

from bayesstruct.distributions import interaction_strengths
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.reading import information
from bayesstruct.structure import conditional_information

FAMILIES = [
    Potentials("ordinal", (2, 4, 3)),
    Potentials("full", (3, 2, 2, 3)),
    Potentials("spin", (2, 2, 2)),
    Potentials("generalized_ising", (3, 3, 3)),
    Potentials("blume_capel", (3, 2, 4), 1),
]


def parameters(potentials, draws=3, scale=0.7):
    rng = np.random.default_rng(1)
    bias = rng.normal(0, scale, (draws, potentials.bias_size))
    weight = rng.normal(0, scale, (draws, potentials.weight_size))
    weight[:, potentials.edge_of_weight == 1] = 0.0
    return bias, weight


def conditional_tables(potentials, bias, weight, i, j):
    """Distribution of the other variables, and of the pair given them: (rests,) and (rests, k_i, k_j)."""
    _, distribution = exact_distribution(potentials, bias, weight)
    joint = np.moveaxis(distribution.reshape(potentials.states), (i, j), (-2, -1))
    joint = joint.reshape(-1, potentials.states[i], potentials.states[j])
    rest = joint.sum(axis=(1, 2))
    return rest, joint / rest[:, None, None]


def mutual_information(tables):
    independent = tables.sum(axis=1, keepdims=True) * tables.sum(axis=2, keepdims=True)
    return (tables * np.log(tables / independent)).sum(axis=(1, 2))


@pytest.mark.parametrize("potentials", FAMILIES, ids=lambda p: p.kind)
def test_against_brute_force(potentials):
    bias, weight = parameters(potentials)
    exact = conditional_information(potentials, bias, weight)
    rows = np.random.default_rng(2).integers(0, potentials.states, (3, 20, potentials.p))
    average = conditional_information(potentials, bias, weight, rows)
    for e, (i, j) in enumerate(zip(*potentials.ends, strict=True)):
        others = [v for v in range(potentials.p) if v not in (i, j)]
        sizes = [potentials.states[v] for v in others]
        for d in range(3):
            rest, tables = conditional_tables(potentials, bias[d], weight[d], i, j)
            each = mutual_information(tables)
            # Differences of entropies of a few nats, to their rounding.
            assert exact[d, e] == pytest.approx(rest @ each, abs=1e-12)
            at = np.ravel_multi_index(rows[d][:, others].T, sizes)
            assert average[d, e] == pytest.approx(each[at].mean(), abs=1e-12)
    assert (exact[:, [0, 2]] > 1e-6).all()
    assert not exact[:, 1].any()
    assert not average[:, 1].any()


def test_one_table_of_rows_serves_all_draws():
    potentials = FAMILIES[0]
    rows = np.random.default_rng(2).integers(0, potentials.states, (7, 3))
    one = conditional_information(potentials, *parameters(potentials), rows)
    other = conditional_information(potentials, *parameters(potentials), np.stack([rows] * 3))
    np.testing.assert_array_equal(one, other)


def test_two_variables_that_are_always_equal():
    """The information of a copy is the entropy of a variable; no overflow."""
    potentials = Potentials("ising", (4, 4))
    bias, weight = np.zeros((1, 6)), np.array([[800.0]])
    for rows in (None, [[0, 3]]):
        found = conditional_information(potentials, bias, weight, rows)
        # Four equal probabilities to the last digits.
        np.testing.assert_allclose(found, np.log(4.0), rtol=1e-12)


@pytest.mark.parametrize("potentials", FAMILIES[:2], ids=lambda p: p.kind)
def test_norms_are_those_of_the_models(potentials):
    _, weight = parameters(potentials)
    for row, norms in zip(weight, potentials.interaction_norms(weight), strict=True):
        strengths = interaction_strengths(pt.as_tensor_variable(row), potentials).eval(
            mode="FAST_COMPILE"
        )
        # Sums in another order.
        np.testing.assert_allclose(norms, strengths, atol=1e-12)


def result(potentials, bias, weight, *, observed=None, missing=None, cells=None):
    """What sampling a model gives, with the names that models use."""
    names = list("abcd"[: potentials.p])
    i, j = potentials.ends
    several = potentials.weight_size > len(i)
    norms = potentials.interaction_norms(weight)
    draws = {
        "bias": (("chain", "draw", "bias_label"), bias[None]),
        "edge": (("chain", "draw", "pair"), (norms[None] > 0).astype(int)),
        "weight": (("chain", "draw", "pair"), (norms if several else weight)[None]),
    }
    if several:
        draws["potential"] = (("chain", "draw", "cell"), weight[None])
    constants = {
        "edge_source": ("pair", i),
        "edge_target": ("pair", j),
        "states": ("node", np.array(potentials.states)),
        "potentials": ((), potentials.code),
        "reference_state": ((), potentials.reference),
    }
    if missing is not None:
        draws["x_missing"] = (("chain", "draw", "missing"), cells[None])
        constants["cell_missing"] = (("observation", "node"), missing.astype(int))
    groups = {
        "posterior": xr.Dataset(draws, {"node": names}),
        "constant_data": xr.Dataset(constants, {"node": names}),
    }
    if observed is not None:
        groups["observed_data"] = xr.Dataset({"x": (("observation", "node"), observed)})
    return xr.DataTree.from_dict(groups)


@pytest.mark.parametrize("potentials", [FAMILIES[1], FAMILIES[4]], ids=lambda p: p.kind)
def test_the_table_of_a_result(potentials):
    bias, weight = parameters(potentials, draws=10)
    table = bs.edge_information(result(potentials, bias, weight), ci_prob=0.5)
    found = conditional_information(potentials, bias, weight)
    assert table.attrs == {"estimator": "enumeration", "ci_prob": 0.5, "draws": 10}
    assert table.information.is_monotonic_decreasing
    best = found.mean(axis=0).argmax()
    i, j = (end[best] for end in potentials.ends)
    first = table.iloc[0]
    assert (first.source, first.target) == ("abcd"[i], "abcd"[j])
    # Means of the same numbers.
    assert first.information == pytest.approx(found[:, best].mean(), rel=1e-12)
    assert first.norm == pytest.approx(potentials.interaction_norms(weight)[:, best].mean())
    assert first.information_low < first.information_high
    assert (
        (found[:, best] >= first.information_low) & (found[:, best] <= first.information_high)
    ).sum() >= 5
    last = table.iloc[-1][["information", "information_low", "information_high"]]
    assert not last.any()
    thinned = bs.edge_information(result(potentials, bias, weight), draws=4)
    assert thinned.attrs["draws"] == 4


def test_missing_cells_are_those_of_each_draw(monkeypatch):
    monkeypatch.setattr(information, "ENUMERATED", 1)
    potentials = FAMILIES[0]
    bias, weight = parameters(potentials, draws=5)
    rng = np.random.default_rng(3)
    rows = rng.integers(0, potentials.states, (5, 6, 3))
    missing = np.zeros((6, 3), bool)
    missing[[0, 2, 2], [1, 0, 2]] = True
    rows[:, ~missing] = rows[0, ~missing]
    observed = np.where(missing, 0, rows[0])
    cells = rows[:, missing]
    idata = result(potentials, bias, weight, observed=observed, missing=missing, cells=cells)
    table = bs.edge_information(idata)
    assert table.attrs["estimator"] == "rows"
    expected = conditional_information(potentials, bias, weight, rows).mean(axis=0)
    np.testing.assert_allclose(table.information, np.sort(expected)[::-1], rtol=1e-12)
    complete = result(potentials, bias, weight, observed=observed)
    assert not np.allclose(bs.edge_information(complete).information, table.information)


def test_what_is_refused():
    potentials = FAMILIES[0]
    bias, weight = parameters(potentials)
    idata = result(potentials, bias, weight)
    with pytest.raises(ValueError, match="ci_prob"):
        bs.edge_information(idata, ci_prob=1.0)
    with pytest.raises(ValueError, match="draws"):
        bs.edge_information(idata, draws=0)
    other = idata.copy()
    other["constant_data"] = other["constant_data"].to_dataset().drop_vars("potentials")
    with pytest.raises(ValueError, match="conditional_information"):
        bs.edge_information(other)
    with pytest.raises(ValueError, match="shapes"):
        conditional_information(potentials, bias, weight[:, :2])
    for rows, words in (
        ([[0, 0]], "must end in"),
        ([[0, -1, 0]], "filled"),
        ([[2, 0, 0]], "not states"),
    ):
        with pytest.raises(ValueError, match=words):
            conditional_information(potentials, bias, weight, rows)
    with pytest.raises(ValueError, match="2 tables for 3 draws"):
        conditional_information(potentials, bias, weight, np.zeros((2, 4, 3), int))
    many = Potentials("ordinal", (2,) * 17)
    with pytest.raises(ValueError, match="pass `rows`"):
        conditional_information(many, np.zeros((1, 17)), np.zeros((1, 136)))
