"""Families of potentials: tables by their definition, pullbacks as adjoints, refusals."""

import numpy as np
import pytest

from bayesstruct.fields.kernels.potentials import KINDS, Potentials

STATES = {
    "ising": (3, 3, 3),
    "spin": (2, 2, 2),
    "generalized_ising": (3, 3, 3),
    "full": (2, 4, 3),
    "ordinal": (2, 4, 3),
    "blume_capel": (2, 4, 3),
}


def make(kind):
    return Potentials(kind, STATES[kind], reference=1)


def defined_pair(kind, w, s, t, columns):
    """Log-potential of a pair as the definitions have it."""
    if kind == "ising":
        return w[0] * (s == t)
    if kind == "spin":
        return w[0] * (2 * s - 1) * (2 * t - 1)
    if kind == "generalized_ising":
        return w[s] * (s == t)
    if kind == "full":
        return w[s * columns + t]
    return w[0] * s * t


def defined_unary(kind, b, s, k):
    if kind == "spin":
        return b[0] * (2 * s - 1)
    if kind == "blume_capel" and k > 2:
        return b[0] * s + b[1] * (s - 1) ** 2
    return b[s - 1] if s else 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_tables_are_those_of_the_definition(kind):
    potentials, rng = make(kind), np.random.default_rng(1)
    weight, bias = rng.normal(size=potentials.weight_size), rng.normal(size=potentials.bias_size)
    pair, unary = potentials.pair(weight), potentials.unary(bias)
    k = potentials.states
    for e, (i, j) in enumerate(zip(*potentials.ends, strict=True)):
        own = weight[potentials.weight_start[e] : potentials.weight_start[e + 1]]
        table = pair[potentials.pair_start[e] : potentials.pair_start[e + 1]].reshape(k[i], k[j])
        wanted = [[defined_pair(kind, own, s, t, k[j]) for t in range(k[j])] for s in range(k[i])]
        np.testing.assert_array_equal(table, wanted)
    for i in range(potentials.p):
        own = bias[potentials.bias_start[i] : potentials.bias_start[i + 1]]
        table = unary[potentials.unary_start[i] : potentials.unary_start[i + 1]]
        wanted = [defined_unary(kind, own, s, k[i]) for s in range(k[i])]
        np.testing.assert_allclose(table, wanted, rtol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_pullbacks_are_adjoint(kind):
    potentials, rng = make(kind), np.random.default_rng(2)
    for forward, back, size in [
        (potentials.unary, potentials.unary_pullback, potentials.bias_size),
        (potentials.pair, potentials.pair_pullback, potentials.weight_size),
    ]:
        x = rng.normal(size=size)
        g = rng.normal(size=forward(x).size)
        assert forward(x) @ g == pytest.approx(x @ back(g), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_groups_and_shapes(kind):
    potentials = make(kind)
    sizes = np.bincount(potentials.edge_of_weight)
    assert (sizes == np.diff(potentials.weight_start)).all()
    assert (potentials.shapes.prod(axis=1) == sizes).all()


def test_scores_make_the_tables():
    for kind in ("spin", "ordinal", "blume_capel"):
        potentials = make(kind)
        start, scores = potentials.unary_start, potentials.scores
        pair = potentials.pair(np.ones(potentials.weight_size))
        products = [
            np.outer(scores[start[i] : start[i + 1]], scores[start[j] : start[j + 1]]).ravel()
            for i, j in zip(*potentials.ends, strict=True)
        ]
        np.testing.assert_array_equal(pair, np.concatenate(products))


def test_equal_families_are_one_key():
    assert make("full") == make("full")
    assert hash(make("full")) == hash(make("full"))


@pytest.mark.parametrize(
    ("kind", "states", "words"),
    [
        ("potts", (2, 2), "unknown"),
        ("full", (2,), "two variables"),
        ("full", (2, 1), "two states"),
        ("spin", (2, 3), "two states"),
        ("ising", (2, 3), "same number"),
        ("generalized_ising", (2, 3), "full or ordinal"),
    ],
)
def test_refusals(kind, states, words):
    with pytest.raises(ValueError, match=words):
        Potentials(kind, states)


@pytest.mark.parametrize(
    ("edges", "words"),
    [(((1, 0),), "i < j"), (((0, 1), (1, 2), (0, 1)), "once"), (((0, 3),), "i < j")],
)
def test_edges_that_are_refused(edges, words):
    with pytest.raises(ValueError, match=words):
        Potentials("ordinal", (2, 2, 2), edges=edges)


def test_a_reference_that_is_no_state_is_refused():
    with pytest.raises(ValueError, match="not a state"):
        Potentials("blume_capel", (3, 3), reference=3)
