"""Derivatives of operations against central differences."""

import numpy as np
import pytensor
import pytensor.tensor as pt

# Central differences are wrong by the square of the step, and by rounding over the step.
STEP, RTOL = 1e-5, 1e-6


def assert_derivatives(function, inputs, *, moved=None, mode="FAST_COMPILE", directions=2, seed=0):
    """Fail unless the gradient of a combination of all outputs agrees with central differences.

    Each input is moved along random directions, in which all of its entries take part: an error in
    one of them shows in each direction, at a fraction of the evaluations that `verify_grad` spends
    on one entry after the other.

    Parameters
    ----------
    function : callable
        Of tensors, to a tensor of any shape.
    inputs : sequence of array_like
    moved : sequence of int, optional
        Inputs that are differentiated, all by default.
    mode : str
        Of the compiled function.
    directions : int
        For each input.
    seed : int
    """
    rng = np.random.default_rng(seed)
    inputs = [np.asarray(x, dtype=float) for x in inputs]
    moved = range(len(inputs)) if moved is None else moved
    variables = [pt.tensor(dtype="float64", shape=x.shape) for x in inputs]
    out = pt.flatten(function(*variables))
    value = pt.dot(out, pt.cos(pt.arange(out.shape[0]) + 1.0))
    gradient = pytensor.grad(value, [variables[i] for i in moved])
    f = pytensor.function(variables, [value, *gradient], mode=mode)
    for i, slope in zip(moved, f(*inputs)[1:], strict=True):
        for _ in range(directions):
            d = rng.normal(size=inputs[i].shape)
            up, down = (
                f(*inputs[:i], inputs[i] + h * d, *inputs[i + 1 :])[0] for h in (STEP, -STEP)
            )
            expected, size = (up - down) / (2 * STEP), np.linalg.norm(slope) * np.linalg.norm(d)
            np.testing.assert_allclose(
                np.vdot(slope, d),
                expected,
                rtol=0,
                atol=RTOL * max(size, 1e-3),
                err_msg=f"input {i}",
            )
            assert size > 0
