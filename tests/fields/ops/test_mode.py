"""The mode of a random field as an Op: it is the mode, and its derivatives are exact."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor.gradient import verify_grad

from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.solvers.curvature import hessian
from bayesstruct.fields.solvers.likelihoods import ExactLikelihood, PseudoLikelihood
from bayesstruct.ops import pairwise_mrf_mode
from bayesstruct.solvers import pairwise_mrf


def rows(states, n=60, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, states[0], n)
    others = [
        np.where(rng.random(n) < 0.6, first * (k - 1) // (states[0] - 1), rng.integers(0, k, n))
        for k in states[1:]
    ]
    codes = np.column_stack([first, *others])
    assert tuple(codes.max(axis=0) + 1) == states
    return codes


FAST = "FAST_COMPILE"
CASES = [
    (Potentials("ordinal", (2, 2, 3)), 1, "pseudo"),
    (Potentials("ordinal", (2, 2, 3)), 1, "exact"),
    (Potentials("full", (2, 3, 2)), 2, "pseudo"),
    (Potentials("full", (2, 3, 2)), 2, "exact"),
    (Potentials("full", (2, 2, 2)), 1, "pseudo"),
]


def identified(potentials, norm, **options):
    """Biases and weights; under norm 1 full tables are known up to their means only."""

    def mode(counts, rate):
        bias, weight = pairwise_mrf_mode(counts, rate, potentials=potentials, norm=norm, **options)
        if potentials.kind == "full" and norm == 1:
            t = weight.reshape((-1, 2, 2))
            return t[:, 0, 0] - t[:, 0, 1] - t[:, 1, 0] + t[:, 1, 1]
        return pt.concatenate([bias, weight])

    return mode


@pytest.mark.chain
@pytest.mark.parametrize(("potentials", "norm", "likelihood"), CASES, ids=str)
def test_derivatives_along_a_direction(potentials, norm, likelihood):
    codes = rows(potentials.states)
    rng = np.random.default_rng(1)
    counts, rate = pt.dvector(), pt.dscalar()
    value = identified(potentials, norm, codes=codes, likelihood=likelihood)(counts, rate)
    cotangent = rng.normal(size=value.eval({counts: np.ones(60), rate: 6.0}, mode=FAST).shape)
    score = (cotangent * value).sum()
    gradient = pt.grad(score, [counts, rate])
    function = pytensor.function([counts, rate], [score, *gradient], mode=FAST)
    c, r = rng.gamma(2.0, size=60), 6.0
    d, step = rng.normal(size=60), 1e-5
    ends = [function(c + s * d, r + s)[0] for s in (-step, step)]
    _, of_counts, of_rate = function(c, r)
    assert of_rate != 0
    wanted = (ends[1] - ends[0]) / (2 * step)
    assert of_counts @ d + of_rate == pytest.approx(wanted, rel=1e-5, abs=1e-7)


def test_verify_grad():
    codes, rng = rows((2, 2, 3), n=12), np.random.default_rng(1)
    mode = identified(Potentials("ordinal", (2, 2, 3)), 1, codes=codes, likelihood="pseudo")
    verify_grad(mode, [rng.gamma(2.0, size=12), np.array(1.0)], rng=rng, mode=FAST)


def test_it_is_the_mode_and_compiles():
    potentials = Potentials("full", (2, 3, 2))
    codes = rows(potentials.states)
    counts, rate = pt.dvector(), pt.dscalar()
    outputs = pairwise_mrf_mode(counts, rate, codes=codes, potentials=potentials)
    outputs += pt.grad(outputs[0].sum() + outputs[1].sum(), [counts, rate])
    fast = pytensor.function([counts, rate], outputs, mode="NUMBA")(np.ones(60), 5.0)
    slow = pytensor.function([counts, rate], outputs, mode=FAST)(np.ones(60), 5.0)
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    solution = pairwise_mrf(codes, rate=5.0, tol=1e-9)
    np.testing.assert_allclose(fast[1], solution.weight, atol=1e-6)


def test_input_out_of_range_gives_nan():
    codes, potentials = rows((2, 2)), Potentials("ordinal", (2, 2))
    for counts, rate in [(-np.ones(60), 1.0), (np.ones(60), -1.0), (np.ones(59), 1.0)]:
        bias, _ = pairwise_mrf_mode(counts, rate, codes=codes, potentials=potentials)
        assert np.isnan(bias.eval(mode=FAST)).all()


@pytest.mark.parametrize("norm", [np.inf, "nuclear"])
def test_starts_without_a_derivative(norm):
    potentials = Potentials("full", (2, 3))
    rate = pt.dscalar()
    _, weight = pairwise_mrf_mode(
        np.ones(60), rate, codes=rows((2, 3)), potentials=potentials, norm=norm
    )
    assert weight.eval({rate: 2.0}, mode=FAST).any()
    gradient = pt.grad(weight.sum(), rate, null_gradients="return")
    assert "without derivatives" in gradient.type.why_null


def test_refusals():
    potentials = Potentials("ordinal", (2, 2))
    for codes, options in [
        (rows((2, 3)), {}),
        (rows((2, 2)), {"norm": 3}),
        (rows((2, 2)), {"likelihood": "composite"}),
        (np.zeros(4), {}),
    ]:
        with pytest.raises(ValueError, match=r"codes|norm|likelihood"):
            pairwise_mrf_mode(np.ones(60), 1.0, codes=codes, potentials=potentials, **options)


@pytest.mark.parametrize("kind", [ExactLikelihood, PseudoLikelihood])
@pytest.mark.parametrize(
    "potentials", [Potentials("blume_capel", (3, 2, 3), 1), Potentials("full", (2, 3, 2))], ids=str
)
def test_hessians(kind, potentials):
    likelihood = kind(potentials, rows(potentials.states))
    size = potentials.bias_size + potentials.weight_size
    theta = np.random.default_rng(2).normal(size=size)
    first = potentials.bias_size
    found = hessian(likelihood, theta[:first], theta[first:], np.arange(size))
    step = 1e-5 * np.eye(size)
    wanted = [(likelihood(theta + e)[1] - likelihood(theta - e)[1]) / 2e-5 for e in step]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
