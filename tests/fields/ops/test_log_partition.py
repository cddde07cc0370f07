"""The log partition function as an Op: values, derivatives of two orders, refusals."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor.gradient import verify_grad
from tools.random_fields import exact_distribution, feature_matrix

from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.ops.log_partition import LogPartition
from bayesstruct.ops import log_partition

FAMILIES = [
    Potentials("ordinal", (2, 2, 2, 2)),
    Potentials("spin", (2, 2, 2)),
    Potentials("full", (2, 3, 2)),
    Potentials("blume_capel", (2, 4, 3), 1),
]
CHAIN = Potentials("full", (2, 3, 2, 2, 3, 2), edges=((0, 1), (1, 2), (2, 3), (3, 4), (4, 5)))


def parameters(potentials, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=potentials.bias_size), rng.normal(size=potentials.weight_size)


@pytest.mark.parametrize("potentials", [*FAMILIES, CHAIN], ids=lambda f: f.kind)
def test_value_and_gradient_are_those_of_brute_force(potentials):
    bias, weight = parameters(potentials)
    b, w = pt.dvectors("b", "w")
    value = log_partition(b, w, potentials)
    function = pytensor.function([b, w], [value, *pt.grad(value, [b, w])], mode="FAST_COMPILE")
    got, d_bias, d_weight = function(bias, weight)
    log_z, p = exact_distribution(potentials, bias, weight)
    means = p @ feature_matrix(potentials)
    cells = int(potentials.unary_start[-1])
    assert got == pytest.approx(log_z, abs=1e-12)
    np.testing.assert_allclose(d_bias, potentials.unary_pullback(means[:cells]), atol=1e-10)
    np.testing.assert_allclose(d_weight, potentials.pair_pullback(means[cells:]), atol=1e-10)


@pytest.mark.parametrize("potentials", [FAMILIES[2], CHAIN], ids=["all pairs", "chain"])
def test_derivatives_of_two_orders_by_finite_differences(potentials):
    rng = np.random.default_rng(1)
    point = [rng.normal(size=int(potentials.unary_start[-1])), parameters(potentials)[1]]
    core = LogPartition(potentials.states, potentials.edges)
    assert core.sums.eliminates == (potentials is CHAIN)

    def value(u, t):
        return core(u, t)[0]

    def a_function_of_the_marginals(u, t):
        _, unary, pair = core(u, t)
        return pt.sum(pt.sqr(unary)) + pt.sum(pt.sin(3.0 * pair))

    for function in (value, a_function_of_the_marginals):
        verify_grad(function, point, rng=rng, mode="FAST_COMPILE")


def test_compiled_by_numba():
    potentials = CHAIN
    bias, weight = parameters(potentials)
    b, w = pt.dvectors("b", "w")
    value = log_partition(b, w, potentials)
    gradient = pt.grad(value, [b, w])
    hessian_row = pt.grad(gradient[0][0], w)
    outputs = [value, *gradient, hessian_row]
    fast = pytensor.function([b, w], outputs, mode="NUMBA")(bias, weight)
    slow = pytensor.function([b, w], outputs, mode="FAST_COMPILE")(bias, weight)
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_what_is_not_finite_gives_nan():
    potentials = FAMILIES[0]
    bias, weight = parameters(potentials)
    weight[0] = np.inf
    assert np.isnan(log_partition(bias, weight, potentials).eval(mode="FAST_COMPILE"))


def test_too_many_states_are_refused_with_the_remedy():
    potentials = Potentials("ordinal", (2,) * 40)
    with pytest.raises(ValueError, match=r"1\.1e\+12 joint states.*pseudo"):
        log_partition(np.zeros(40), np.zeros(780), potentials)
    dense = Potentials("ordinal", (2,) * 40, edges=tuple(zip(*np.triu_indices(40, 1), strict=True)))
    with pytest.raises(ValueError, match=r"variables at once.*fewer cycles"):
        log_partition(np.zeros(40), np.zeros(780), dense)


def test_two_graphs_are_two_operations():
    """Machine code is kept by the properties of an Op: another graph must not be given the same."""
    other = ((0, 1), (1, 2), (2, 3), (3, 4), (3, 5))
    assert LogPartition(CHAIN.states, CHAIN.edges) == LogPartition(CHAIN.states, CHAIN.edges)
    assert LogPartition(CHAIN.states, CHAIN.edges) != LogPartition(CHAIN.states, other)


def test_vectors_of_another_length_are_refused():
    potentials = Potentials("ordinal", (2,) * 4)
    with pytest.raises(ValueError, match=r"`weight` has shape \(5,\)"):
        log_partition([0.0] * 4, [0.0] * 5, potentials)
    weight = pt.dvector()
    value = log_partition([0.0] * 4, weight, potentials)
    with pytest.raises(AssertionError, match="5"):
        value.eval({weight: np.ones(5)})
