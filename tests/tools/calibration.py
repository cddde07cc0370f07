"""Simulation-based calibration: is the posterior right on average over data from the model?"""

import numpy as np

from scipy import stats


def ranks(simulate, fit, names=None, *, simulations, seed=0, ess_floor=20):
    """Normalised ranks of the true values among posterior draws.

    Draws are thinned to about as many as are effectively independent, quantity by quantity. Ties
    (discrete quantities) are broken at random and the rank is spread over its interval, so that the
    result is uniform on (0, 1) for a right posterior, whatever the number of draws kept.

    Parameters
    ----------
    simulate : callable
        ``simulate(rng) -> (truth, data)`` from the prior and the model, ``truth`` being a dict of
        scalars or arrays.
    fit : callable
        ``fit(data, rng) -> draws``, a dict of arrays with draws along the first axis.
    names : sequence of str, optional
        Quantities looked at; all of ``truth`` if not given. Arrays count entry by entry.
    simulations : int
    seed : int
    ess_floor : int
        Fewest draws kept of a quantity.

    Returns
    -------
    dict
        Quantity to (simulations,) ranks in (0, 1).
    """
    rng = np.random.default_rng(seed)
    out = {}
    for _ in range(simulations):
        truth, data = simulate(rng)
        draws = fit(data, rng)
        for name in names or list(truth):
            true = np.asarray(truth[name], float)
            column = np.asarray(draws[name], float).reshape(-1, max(true.size, 1))
            for k, value in enumerate(true.ravel()):
                label = name if true.ndim == 0 else f"{name}[{k}]"
                kept = _thin(column[:, k], ess_floor)
                out.setdefault(label, []).append(rank(value, kept, rng))
    return {name: np.array(values) for name, values in out.items()}


def rank(true, draws, rng):
    """Rank of a value among draws as a number in (0, 1), uniform if they are exchangeable."""
    draws = np.asarray(draws)
    below, ties = (draws < true).sum(), (draws == true).sum()
    return (below + rng.integers(ties + 1) + rng.random()) / (len(draws) + 1)


def _thin(draws, floor):
    """Keep about as many evenly spaced draws as the effective sample size."""
    n = len(draws)
    centred = draws - draws.mean()
    variance = centred @ centred / n
    if variance == 0:
        return draws[:: max(1, n // floor)]
    # Autocorrelation time by Geyer's initial positive sequence.
    spectrum = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    rho = np.fft.irfft(spectrum)[:n] / (n * variance)
    pairs = rho[0 : 2 * (n // 2) : 2] + rho[1 : 2 * (n // 2) : 2]
    stop = np.argmax(pairs <= 0) if (pairs <= 0).any() else len(pairs)
    time = max(1.0, 2.0 * pairs[:stop].sum() - 1.0)
    keep = max(floor, int(n / time))
    return draws[np.linspace(0, n - 1, min(keep, n)).astype(int)]


def assert_uniform(ranked, *, alpha=1e-3):
    """Fail unless all ranks are uniform on (0, 1).

    Four tests of each quantity: the mean (a bias), the mean square distance from one half (too
    wide or too narrow a posterior), Kolmogorov's (the envelope of the ECDF), and chi-square over
    bins of at least ten. Bonferroni's correction over all of them.

    Returns
    -------
    dict
        Smallest p-value of each quantity.
    """
    p_values = {name: _uniformity(np.asarray(r)) for name, r in ranked.items()}
    bound = alpha / sum(len(p) for p in p_values.values())
    if min(min(p.values()) for p in p_values.values()) < bound:
        worst = sorted(p_values, key=lambda name: min(p_values[name].values()))[:8]
        rows = "\n".join(
            f"{name:>24} "
            + " ".join(f"{kind} {p:.2g}" for kind, p in p_values[name].items())
            + f"  bins {np.histogram(ranked[name], 10, (0, 1))[0].tolist()}"
            for name in worst
        )
        raise AssertionError(f"ranks are not uniform (bound on p-values {bound:.2g})\n{rows}")
    return {name: min(p.values()) for name, p in p_values.items()}


def _uniformity(r):
    n = len(r)
    mean = (r.mean() - 0.5) * np.sqrt(12 * n)
    # (r - 1/2)^2 has mean 1/12 and variance 1/180.
    spread = (np.square(r - 0.5).mean() - 1 / 12) * np.sqrt(180 * n)
    counts = np.histogram(r, max(2, min(20, n // 10)), (0, 1))[0]
    return {
        "mean": 2 * stats.norm.sf(abs(mean)),
        "spread": 2 * stats.norm.sf(abs(spread)),
        "ecdf": stats.kstest(r, "uniform").pvalue,
        "bins": stats.chisquare(counts).pvalue,
    }


def assert_calibrated(simulate, fit, names=None, *, simulations, alpha=1e-3, seed=0, ess_floor=20):
    """Fail unless the ranks of :func:`ranks` are uniform; see there and :func:`assert_uniform`."""
    ranked = ranks(simulate, fit, names, simulations=simulations, seed=seed, ess_floor=ess_floor)
    return assert_uniform(ranked, alpha=alpha)


def alternate(steps, numbers, initial, rng, *, tune, draws):
    """Yield the points of a run of some steps in turn, without those of the warm-up.

    Parameters
    ----------
    steps : sequence of steps
    numbers : pymc.CompoundStep
        The one of them that is made of slice samplers, whose widths are set back and tuned in the warm-up.
    initial : dict
    rng : numpy.random.Generator
    tune, draws : int
    """
    for step in steps:
        step.setup_chain(rng, tune, draws)
    for one in numbers.methods:
        one.w, one.n_tunes = np.ones_like(one.w), 0.0
    point = dict(initial)
    for t in range(tune + draws):
        for one in numbers.methods:
            one.tune = t < tune
        for step in steps:
            point, _ = step.step(point)
        if t >= tune:
            yield point


def model_runner(model, data_name=None, *, tune=100, draws=400, step=None, start=None):
    """Make ``fit(data, rng)`` of a PyMC model: compiled once, fed new data each time.

    The observed variables must have ``observed=pm.Data(data_name, ...)``. The step is that which
    ``pm.sample`` would assign, made once; before each fit its state is set back and
    ``setup_chain`` called.

    Parameters
    ----------
    model : pymc.Model
    data_name : str, optional
        Name of the ``pm.Data``; without it ``data`` is ignored.
    tune, draws : int
    step : step method, optional
    start : dict, optional
        Point in value space that every fit starts from; the model's initial point, drawn anew with
        the generator, if not given.

    Returns
    -------
    callable
        Returns a dict of draws of all unobserved variables and deterministics, by name.
    """
    from pymc.initial_point import make_initial_point_fn

    step = assigned_step(model) if step is None else step
    methods = getattr(step, "methods", [step])
    fresh = [getattr(m, "sampling_state", None) for m in methods]
    variables = [*model.free_RVs, *model.deterministics]
    outputs = model.replace_rvs_by_values(variables)
    read = model.compile_fn(outputs, inputs=model.value_vars, on_unused_input="ignore")
    initial = make_initial_point_fn(model=model) if start is None else None

    def fit(data, rng):
        if data_name is not None:
            model.set_data(data_name, data)
        for method, state in zip(methods, fresh, strict=True):
            method.sampling_state = state
        step.setup_chain(rng, tune, draws)
        point = dict(start) if start is not None else initial(int(rng.integers(2**31)))
        kept = []
        for t in range(tune + draws):
            if t == tune:
                step.stop_tuning()
            point, _ = step.step(point)
            if t >= tune:
                kept.append([np.array(v) for v in read(point)])
        columns = zip(*kept, strict=True)
        return {v.name: np.array(c) for v, c in zip(variables, columns, strict=True)}

    return fit


def assigned_step(model):
    """Step method that ``pm.sample`` would use for a model."""
    from pymc.sampling.mcmc import assign_step_methods, instantiate_steppers
    from pymc.step_methods.compound import CompoundStep

    with model:
        provided, selected = assign_step_methods(model)
        step = instantiate_steppers(model, provided, selected)
    return CompoundStep(step) if isinstance(step, list) else step
