"""Is a point the mode of a model?"""

import numpy as np

from pymc.model.transform.conditioning import change_value_transforms


def natural_logp(model, terms=None):
    """Compile the log density of a model as a function of untransformed values.

    Parameters
    ----------
    model : pymc.Model
    terms : sequence of str, optional
        Variables whose log densities are added; all of the model if not given.

    Returns
    -------
    callable
        ``logp(point) -> float`` for a dict of natural values by name.
    """
    plain = change_value_transforms(model, dict.fromkeys(model.free_RVs))
    variables = None if terms is None else [plain[name] for name in terms]
    function = plain.compile_fn(
        plain.logp(vars=variables, jacobian=False),
        inputs=plain.value_vars,
        on_unused_input="ignore",
    )
    values = {plain.rvs_to_values[v].name: v.name for v in plain.free_RVs}
    return lambda point: float(function({k: point[v] for k, v in values.items()}))


def assert_is_mode(
    model,
    point,
    variables,
    *,
    terms=None,
    perturbations=1000,
    sizes=(1e-4, 1e-3, 1e-2, 0.1, 0.5),
    gradient_tol=1e-4,
    seed=0,
):
    """Fail unless no nearby point has a higher log density and the gradient vanishes.

    Parameters
    ----------
    model : pymc.Model
    point : dict
        Natural values of all free variables, by name.
    variables : sequence of str
        Those that are moved. A symmetric matrix stays symmetric and positive definite (other
        proposals are drawn again), everything else moves freely.
    terms : sequence of str, optional
        Variables whose log densities count, e.g. to leave indicators out.
    perturbations : int
        Half move every entry, half only a few; the sizes are relative to the values' scale.
    sizes : sequence of float
    gradient_tol : float
        Bound on the central difference quotients in each entry, over the root of the curvature
        there (the distance to the mode in posterior standard deviations). At a kink, where the
        quotients to both sides differ, neither side may ascend.
    seed : int

    Returns
    -------
    dict
        ``gain`` (largest increase found, at most 0 up to rounding), ``residual``.
    """
    logp = natural_logp(model, terms)
    rng = np.random.default_rng(seed)
    base = logp(point)
    if not np.isfinite(base):
        raise AssertionError(f"the log density at the point is {base}")
    slack = 1e-10 * (1.0 + abs(base))
    gain, where = -np.inf, None
    for t in range(perturbations):
        size, name = sizes[t % len(sizes)], variables[rng.integers(len(variables))]
        other = {**point, name: _perturbed(rng, np.asarray(point[name], float), size, t % 2)}
        change = logp(other) - base
        if change > gain:
            gain, where = change, (name, size)
    if gain > slack:
        raise AssertionError(
            f"log density rises by {gain:.3g} when {where[0]!r} moves by {where[1]}"
        )
    residual = max(_residual(logp, point, name, base) for name in variables)
    if residual > gradient_tol:
        raise AssertionError(f"ascent direction: {residual:.3g} standard deviations from the mode")
    return {"gain": float(gain), "residual": float(residual)}


def _is_precision(value):
    return value.ndim == 2 and value.shape[0] == value.shape[1] and np.array_equal(value, value.T)


def _perturbed(rng, value, size, few):
    scale = max(1e-8, float(np.abs(value).max(initial=0.0)))
    for _ in range(100):
        noise = rng.normal(size=value.shape) * size * scale
        if few:
            noise = noise * (rng.random(value.shape) < 2.0 / max(value.size, 1))
        if not _is_precision(value):
            return value + noise
        out = value + np.tril(noise) + np.tril(noise, -1).T
        if np.linalg.eigvalsh(out)[0] > 0:
            return out
        size *= 0.7
    return value


def _residual(logp, point, name, base, step=1e-4):
    """Largest slope of any entry in units of its curvature's standard deviation."""
    value = np.asarray(point[name], float)
    matrix, worst = _is_precision(value), 0.0
    for index in np.ndindex(value.shape):
        if matrix and index[0] < index[1]:
            continue

        def moved(h, index=index):
            other = value.copy()
            other[index] += h
            if matrix and index[0] != index[1]:
                other[index[::-1]] += h
            return logp({**point, name: other}) - base

        h = step * max(1e-2, abs(float(value[index])))
        up, down = moved(h), moved(-h)
        curvature = max(-(up + down) / h**2, 1e-12)
        kink = up < 0 and down < 0 and abs(value[index]) < 1e-10 and moved(h / 10) < 0.05 * up
        slope = 0.0 if kink else abs(up - down) / (2 * h)
        worst = max(worst, slope / np.sqrt(curvature))
    return worst
