"""Edges of Markov random fields against all configurations, and in whole models."""

import itertools

import numpy as np
import pymc as pm
import pytest

from scipy import integrate, optimize, stats
from scipy.special import expit, logsumexp
from tools.random_fields import all_states, energies, feature_matrix

import bayesstruct as bs

from bayesstruct.fields.kernels import spike_slab as kernel
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.steps import spike_slab as pairwise
from bayesstruct.runs.result import load_checkpoint
from bayesstruct.steps import PairwiseSpikeSlab

INCLUSION, SCALE, BIAS_SCALE = 0.4, 0.8, 2.0
LOG_SLAB = {
    "normal": stats.norm.logpdf,
    "laplace": stats.laplace.logpdf,
    "cauchy": stats.cauchy.logpdf,
}


def rows(states, n=30, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, states[0], n)
    others = [
        np.where(rng.random(n) < 0.3, first * (k - 1) // (states[0] - 1), rng.integers(0, k, n))
        for k in states[1:]
    ]
    return np.column_stack([first, *others])


class Target:
    """Log posterior density of biases and weights, from the joint states one by one."""

    def __init__(self, potentials, codes, likelihood, slab="normal"):
        self.potentials, self.likelihood, self.slab = potentials, likelihood, slab
        self.features = feature_matrix(potentials)
        index = np.ravel_multi_index(codes.T, potentials.states)
        self.counts = np.bincount(index, minlength=len(self.features))
        x = all_states(potentials.states)
        self.others = [
            np.unique(np.delete(x, i, axis=1), axis=0, return_inverse=True)[1].ravel()
            for i in range(potentials.p)
        ]

    def __call__(self, bias, weight, active, slab=None):
        """Of many points: (m, biases), (m, weights); `active` weights come from the slab."""
        potentials = self.potentials
        tables = np.array(
            [
                np.r_[potentials.unary(b), potentials.pair(w)]
                for b, w in zip(bias, weight, strict=True)
            ]
        )
        energy = tables @ self.features.T
        logp = stats.norm.logpdf(bias, 0, BIAS_SCALE).sum(axis=1)
        logp += LOG_SLAB[slab or self.slab](weight[:, active], 0, SCALE).sum(axis=1)
        if self.likelihood == "exact":
            return logp + (energy - logsumexp(energy, axis=1, keepdims=True)) @ self.counts
        for group in self.others:
            shares = np.exp(energy) @ np.eye(group.max() + 1)[group]
            logp += (energy - np.log(shares)[:, group]) @ self.counts
        return logp


def evidence(target, active, rng, draws=2000):
    """Log of the integral over biases and active weights, by importance sampling."""
    first = target.potentials.bias_size
    on = np.flatnonzero(active)

    def spread(theta):
        weight = np.zeros((len(theta), target.potentials.weight_size))
        weight[:, on] = theta[:, first:]
        return theta[:, :first], weight

    def negative(theta):  # smooth, whatever the slab: it makes the proposal only
        return -target(*spread(theta[None]), on, "normal")[0]

    mode = optimize.minimize(negative, np.full(first + len(on), 0.01), method="BFGS")
    proposal = stats.multivariate_t(mode.x, 1.5 * mode.hess_inv, df=6, seed=rng)
    theta = proposal.rvs(draws).reshape(draws, -1)
    logs = target(*spread(theta), on) - proposal.logpdf(theta)
    return logsumexp(logs) - np.log(draws)


def posterior(target, groups):
    """Probability of every configuration of the groups."""
    rng, logs = np.random.default_rng(7), []
    count = groups.max() + 1
    for z in itertools.product((0, 1), repeat=count):
        active = np.array(z, bool)[groups]
        prior = sum(np.log(INCLUSION if on else 1 - INCLUSION) for on in z)
        logs.append(prior + evidence(target, active, rng))
    return np.exp(np.array(logs) - logsumexp(logs))


def model_of(potentials, codes, likelihood, slab="normal"):
    with pm.Model() as model:
        bias = pm.Normal("bias", 0, BIAS_SCALE, shape=potentials.bias_size)
        if potentials.weight_size == len(potentials.ends[0]):
            shape = potentials.weight_size
            weight = bs.SpikeAndSlab("weight", INCLUSION, SCALE, slab=slab, shape=shape)
        else:
            groups = potentials.edge_of_weight
            weight = bs.GroupSpikeAndSlab("weight", INCLUSION, SCALE, groups=groups, slab=slab)
        bs.PairwiseMRF(
            "x", bias, weight, potentials=potentials, likelihood=likelihood, observed=codes
        )
    return model


def configurations(model, potentials, draws, seed=3):
    """Index of the configuration in each draw of the step, and its estimates for the edges."""
    with model:
        step = PairwiseSpikeSlab([model["weight"], model["bias"]], rng=seed)
    point = model.initial_point()
    powers = 2 ** np.arange(len(potentials.ends[0]))[::-1]
    out, inclusion = np.empty(draws, int), np.empty((draws, len(powers)))
    for d in range(draws):
        point, [reported] = step.step(point)
        on = np.add.reduceat(point["weight"] != 0, potentials.weight_start[:-1]) > 0
        out[d], inclusion[d] = on @ powers, reported["weight_inclusion"]
    return out, inclusion


def worst(index, p, batches=40):
    """Largest z of the frequencies, by batch means, and of the edges."""
    seen = np.array([np.bincount(b, minlength=len(p)) for b in np.array_split(index, batches)])
    share = seen / seen.sum(axis=1, keepdims=True)
    bits = (np.arange(len(p))[:, None] >> np.arange(int(np.log2(len(p))))) & 1
    values = np.column_stack([share, share @ bits])
    return distance(values, np.concatenate([p, p @ bits]))


def distance(batches, wanted):
    """Largest z of the means of batches, (batches, quantities), beside integrals."""
    known = wanted > 5e-3  # rarer ones are visited too seldom for batch means
    error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    # The integrals have errors of about one in a hundred.
    error = np.sqrt(error**2 + (0.01 * wanted) ** 2)
    return np.abs((batches.mean(axis=0) - wanted) / error)[known].max()


def check_estimates(inclusion, p, batches=40):
    """Means of what the step reports are the edge probabilities; the spread is less than that of 0/1."""
    edges = inclusion.shape[1]
    bits = (np.arange(len(p))[:, None] >> np.arange(edges)[::-1]) & 1
    means = np.array([part.mean(axis=0) for part in np.array_split(inclusion, batches)])
    assert distance(means, p @ bits) < 4.5
    counted = (p @ bits) * (1 - p @ bits)
    assert (inclusion.var(axis=0) < 0.3 * counted)[counted > 0.01].all()


CASES = {
    "binary, exact": (Potentials("ordinal", (2, 2, 2, 2)), "exact", "normal"),
    "binary, pseudo": (Potentials("ordinal", (2, 2, 2, 2)), "pseudo", "laplace"),
    "spin, pseudo": (Potentials("spin", (2, 2, 2)), "pseudo", "cauchy"),
    "ordinal, exact": (Potentials("ordinal", (3, 3, 3)), "exact", "cauchy"),
    "full, pseudo": (Potentials("full", (3, 2, 3)), "pseudo", "normal"),
    "full, exact": (Potentials("full", (3, 2, 3)), "exact", "normal"),
    "blume-capel, pseudo": (Potentials("blume_capel", (3, 3, 3), 1), "pseudo", "normal"),
}
#: The kernels are the same for all; the others take minutes.
ALWAYS = ("binary, exact", "full, pseudo")
DRAWS = 5_000


@pytest.fixture(scope="module")
def truth():
    """Probabilities of the configurations of each case, integrated once."""
    known = {}

    def of(name):
        if name not in known:
            potentials, likelihood, slab = CASES[name]
            codes = rows(potentials.states)
            target = Target(potentials, codes, likelihood, slab)
            known[name] = codes, posterior(target, potentials.edge_of_weight)
        return known[name]

    return of


def check(name, truth, draws):
    potentials, likelihood, slab = CASES[name]
    codes, p = truth(name)
    model = model_of(potentials, codes, likelihood, slab)
    index, inclusion = configurations(model, potentials, draws)
    # The largest of some tens of t statistics with 39 degrees of freedom.
    assert worst(index, p) < 4.5
    check_estimates(inclusion, p)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ALWAYS)
def test_all_configurations(name, truth):
    check(name, truth, DRAWS)


@pytest.mark.calibration
@pytest.mark.parametrize("name", CASES)
def test_all_configurations_of_every_family(name, truth, request):
    if "calibration" not in (request.config.getoption("-m") or ""):
        pytest.skip("minutes each; in full under -m calibration")
    check(name, truth, 4 * DRAWS)


@pytest.mark.statistical
def test_wrong_prior_odds_are_noticed(truth, monkeypatch):
    potentials, likelihood, slab = CASES["binary, exact"]
    codes, p = truth("binary, exact")
    right = pairwise._log_odds
    monkeypatch.setattr(pairwise, "_log_odds", lambda q, count: right(q, count) + 0.7)
    index, _ = configurations(model_of(potentials, codes, likelihood, slab), potentials, DRAWS)
    assert worst(index, p) > 6


@pytest.mark.statistical
@pytest.mark.compiled
@pytest.mark.chain
def test_inclusion_that_depends_on_covariates_of_the_edges(truth):
    """The exact posterior is that under equal probabilities, times the prior of each graph, integrated by quadrature."""
    potentials, likelihood, slab = CASES["binary, exact"]
    codes, p = truth("binary, exact")
    covariate = np.linspace(-1.0, 1.5, 6)
    grid = np.linspace(-6, 6, 121)
    share = expit(grid[:, None, None] + grid[None, :, None] * covariate)
    density = stats.norm.pdf(grid, -0.5, 1)[:, None] * stats.norm.pdf(grid)
    states = (np.arange(64)[:, None] >> np.arange(6)[::-1]) & 1
    wanted = p / np.prod(np.where(states, INCLUSION, 1 - INCLUSION), axis=1)
    wanted = wanted * [
        (density * np.where(state, share, 1 - share).prod(-1)).sum() for state in states
    ]
    with pm.Model():
        bias = pm.Normal("bias", 0, BIAS_SCALE, shape=potentials.bias_size)
        a, b = pm.Normal("a", -0.5, 1), pm.Normal("b", 0, 1)
        inclusion = pm.math.sigmoid(a + b * covariate)
        weight = bs.SpikeAndSlab("weight", inclusion, SCALE, slab=slab)
        bs.PairwiseMRF(
            "x", bias, weight, potentials=potentials, likelihood=likelihood, observed=codes
        )
        idata = pm.sample(
            4_000, tune=500, chains=1, random_seed=2, nuts_sampler="pymc", progressbar=False
        )
    on = idata["posterior"]["weight"].values[0] != 0
    assert worst(on @ 2 ** np.arange(6)[::-1], wanted / wanted.sum()) < 4.5


@pytest.mark.statistical
def test_estimates_do_not_rest_on_the_proposals():
    """Two rows: many of the proposals are refused, and their probability is far off."""
    scale, potentials, codes = 3.0, Potentials("spin", (2, 2)), np.ones((2, 2), int)
    with pm.Model() as model:
        weight = bs.SpikeAndSlab("weight", 0.5, scale, slab="laplace", shape=1)
        bs.PairwiseMRF("x", np.zeros(2), weight, potentials=potentials, observed=codes)
        step = PairwiseSpikeSlab([weight], rng=1)
    tables = potentials.pair(np.ones(1))  # of a weight of one
    full, _ = integrate.quad(
        lambda w: (
            np.exp(2 * (w * tables[3] - logsumexp(w * tables))) * stats.laplace.pdf(w, 0, scale)
        ),
        -np.inf,
        np.inf,
    )
    exact = full / (full + 4.0**-2)
    point, found = model.initial_point(), np.empty(8_000)
    for d in range(len(found)):
        point, [reported] = step.step(point)
        [found[d]] = reported["weight_inclusion"]
    error = found.reshape(40, -1).mean(axis=1).std(ddof=1) / np.sqrt(40)
    assert abs(found.mean() - exact) < 4 * error
    # The proposals do not change from draw to draw: where the indicator stays, the estimate is the
    # probability of their being full, which is also the mean of proposed indicators.
    proposed = np.median(found)
    assert np.mean(np.isclose(found, proposed)) > 0.5
    assert abs(proposed - exact) > 6 * error


@pytest.mark.parametrize(
    ("exact", "share", "chance"),
    [
        (0.3, 0.3, 0.3),
        (0.3, 0.8, 0.8),
        (1e-7, 3e-7, 1e-4),
        (1 - 1e-6, 1 - 1e-7, 1 - 1e-4),
        (1, 1, 1),
    ],
)
def test_estimates_have_the_mean_of_the_indicator(exact, share, chance):
    """All pairs of present and proposed indicators, each with its probability."""
    distribution, proposals = (1 - exact, exact), (1 - chance, chance)
    mean = square = 0.0
    for g, h in itertools.product((0, 1), repeat=2):
        p = distribution[g] * proposals[h]
        accept = min(1.0, distribution[h] * proposals[g] / p) if p else 1.0
        estimate = kernel.inclusion_estimate.py_func(float(g), float(h), share, chance, accept)
        mean += p * estimate
        square += p * (estimate - exact) ** 2
    assert mean == pytest.approx(exact, rel=1e-12)
    assert square <= exact * (1 - exact)


@pytest.mark.statistical
@pytest.mark.parametrize("likelihood", ["exact", "pseudo"])
def test_missing_values_have_their_conditional_distribution(likelihood):
    """One row with two gaps, parameters fixed by narrow priors: all completions one by one."""
    potentials = Potentials("full", (2, 3, 2))
    rng = np.random.default_rng(5)
    codes = rows(potentials.states, n=3)
    missing = np.zeros((3, 3), bool)
    missing[0, 0] = missing[0, 1] = True
    weight = rng.normal(size=potentials.weight_size)
    bias = rng.normal(size=potentials.bias_size)
    with pm.Model() as model:
        w = bs.GroupSpikeAndSlab("weight", np.zeros(3), 1.0, groups=potentials.edge_of_weight)
        values = bs.distributions.MissingStates("values", [2, 3])
        bs.distributions.IncompletePairwiseMRF(
            "x",
            bias,
            w,
            values,
            missing=missing,
            potentials=potentials,
            likelihood=likelihood,
            observed=codes,
        )
        step = PairwiseSpikeSlab([w, values], rng=1)
    # Forbidden edges stay as they are: the step draws the values at these weights.
    point = model.initial_point() | {"weight": weight}
    counts = np.zeros((2, 3))
    for _ in range(5_000):
        point, [reported] = step.step(point)
        counts[tuple(point["values"])] += 1
    np.testing.assert_array_equal(point["weight"], weight)
    np.testing.assert_array_equal(reported["weight_inclusion"], np.ones(3))
    energy = energies(potentials, bias, weight).reshape(potentials.states)[:, :, codes[0, 2]]
    p = np.exp(energy - logsumexp(energy))
    # Draws of two values in turn are correlated: a fifth of them count as independent.
    assert np.abs(counts / 5_000 - p).max() < 4 * np.sqrt(0.25 / 1_000)


@pytest.mark.chain
def test_pm_sample_assigns_it_and_required_edges_stay():
    codes = rows((2, 2, 2, 2), n=80)
    with bs.models.ising(
        codes,
        required=[("x0", "x1")],
        forbidden=[("x2", "x3")],
        edge_probability=pm.Beta.dist(1, 3),
    ) as model:
        idata = pm.sample(
            200,
            tune=100,
            chains=2,
            cores=1,
            random_seed=1,
            progressbar=False,
            quiet=True,
            nuts_sampler="pymc",
            compute_convergence_checks=False,
        )
    assert {"n_edges", "acceptance"} <= set(idata["sample_stats"].data_vars)
    edge = idata["posterior"]["edge"]
    assert (edge.sel(pair="x0 -- x1") == 1).all()
    assert (edge.sel(pair="x2 -- x3") == 0).all()
    assert idata["posterior"]["edge_probability"].std() > 0
    assert len(model.free_RVs) == 3
    table = bs.edge_table(idata)
    assert table["bayes_factor"].isna().sum() == 2
    inclusion = idata["sample_stats"]["weight_inclusion"]
    assert inclusion.shape == (2, 200, 6) and inclusion.dtype == np.float32
    np.testing.assert_allclose(inclusion[..., [0, 5]].mean(("chain", "draw")), [1, 0])
    found = bs.inclusion_probabilities(idata)
    assert found.attrs["estimator"] == table.attrs["estimator"] == "control variate"
    np.testing.assert_allclose(found, inclusion.mean(("chain", "draw")), rtol=1e-5)
    # Four hundred draws: the error of shares is at most .025 but for autocorrelation.
    np.testing.assert_allclose(found, edge.mean(("chain", "draw")), atol=0.12)
    for part in (idata.isel(draw=slice(50, None, 3)), idata.isel(chain=[1])):
        assert bs.edge_table(part).attrs["estimator"] == "control variate"


@pytest.mark.chain
def test_two_fields_report_their_own_estimates():
    with pm.Model() as model:
        for name, p in (("a", 3), ("b", 2)):
            potentials = Potentials("ordinal", (2,) * p)
            weight = bs.SpikeAndSlab(f"{name}_weight", shape=potentials.weight_size)
            field = {"potentials": potentials, "observed": rows((2,) * p)}
            bs.PairwiseMRF(name, np.zeros(p), weight, **field)
        apart = [PairwiseSpikeSlab([model[f"{name}_weight"]]) for name in "ab"]
        for step in (None, apart):
            idata = pm.sample(
                5,
                tune=0,
                chains=1,
                step=step,
                random_seed=1,
                progressbar=False,
                quiet=True,
                nuts_sampler="pymc",
                compute_convergence_checks=False,
            )
            assert idata["sample_stats"]["a_weight_inclusion"].shape == (1, 5, 3)
            assert idata["sample_stats"]["b_weight_inclusion"].shape == (1, 5, 1)


@pytest.mark.chain
def test_estimates_are_stored_on_disk(tmp_path):
    table = np.random.default_rng(3).integers(0, 3, (40, 3))
    with bs.models.pairwise_mrf(table) as model:
        made = bs.sample(
            6,
            tune=2,
            chains=2,
            cores=1,
            checkpoint=tmp_path / "run",
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    read = load_checkpoint(tmp_path / "run", model)
    for idata in (made, read):
        assert idata["sample_stats"]["potential_inclusion"].shape == (2, 6, 3)
        assert bs.edge_table(idata).attrs["estimator"] == "control variate"
    np.testing.assert_array_equal(
        made["sample_stats"]["potential_inclusion"], read["sample_stats"]["potential_inclusion"]
    )


def test_what_is_not_recognised_is_said():
    codes = rows((2, 2, 2))
    potentials = Potentials("ordinal", (2, 2, 2))
    with model_of(potentials, codes, "exact") as model:
        pm.Normal("y", model["weight"].sum(), 1.0, observed=0.0)
        with pytest.raises(ValueError, match="'y' depends on 'weight' too"):
            PairwiseSpikeSlab([model["weight"]])
    with pm.Model():
        w = bs.SpikeAndSlab("w", shape=2, slab="cauchy")
        pm.Normal("y", np.eye(2) @ w, 1.0, observed=[0.0, 1.0])
        with pytest.raises(ValueError, match="'w' has a Cauchy slab"):
            pm.sample(1, tune=0, chains=1, progressbar=False)


def test_groups_that_are_not_recognised_are_not_left_to_others():
    """Samplers that never reach zero would take them, silently wrong."""
    potentials = Potentials("full", (2, 2))
    with pm.Model():
        w = bs.GroupSpikeAndSlab("w", groups=potentials.edge_of_weight)
        field = {"potentials": potentials, "observed": rows((2, 2))}
        bs.PairwiseMRF("x", np.zeros(2), 2.0 * w, **field)
        with pytest.raises(ValueError, match="is not the vector of weights of 'x' itself"):
            pm.sample(1, tune=0, chains=1, progressbar=False)
    with pm.Model():
        w = bs.SpikeAndSlab("w", shape=1)
        field = {"potentials": Potentials("ordinal", (2, 2)), "observed": rows((2, 2))}
        bs.PairwiseMRF("x", np.zeros(2), 2.0 * w, **field)
        with pytest.raises(ValueError, match="is not the vector of weights of 'x' itself"):
            pm.sample(1, tune=0, chains=1, progressbar=False)


def test_the_same_draws_after_a_change_of_chain():
    """A step holds nothing but its generator: a run can be taken up from a point."""
    potentials = Potentials("ordinal", (2, 2, 2))
    model = model_of(potentials, rows((2, 2, 2)), "pseudo")
    with model:
        one = PairwiseSpikeSlab([model["weight"], model["bias"]], rng=1)
        other = PairwiseSpikeSlab([model["weight"], model["bias"]], rng=2)
    point = model.initial_point()
    for _ in range(5):
        point, _ = one.step(point)
    other.sampling_state = one.sampling_state
    for _ in range(5):
        first, _ = one.step(point)
        second, _ = other.step(point)
        np.testing.assert_allclose(first["weight"], second["weight"], rtol=1e-9)
        point = first


@pytest.mark.parametrize("missing", [False, True])
def test_the_step_is_assigned_outside_of_a_context(missing):
    table = np.random.default_rng(3).integers(0, 2, (40, 3)).astype(float)
    if missing:
        table[0, 0] = np.nan
    for model in (bs.models.ising(table), bs.models.pairwise_mrf(table)):
        _, methods = pm.sampling.mcmc.assign_step_methods(model)
        drawn = {model.values_to_rvs[v].name for v in methods[PairwiseSpikeSlab]}
        assert drawn >= ({"bias", "x_missing"} if missing else {"bias"})
        assert len(drawn) == 2 + missing
        pm.sampling.mcmc.instantiate_steppers(model, [], methods)


def test_missing_values_are_left_to_others_where_the_weights_are_set():
    table = np.random.default_rng(3).integers(0, 2, (40, 3)).astype(float)
    table[0, 0] = np.nan
    with pm.do(bs.models.ising(table), {"weight": np.zeros(3)}) as model:
        _, methods = pm.sampling.mcmc.assign_step_methods(model)
    assert PairwiseSpikeSlab not in methods
    _, methods = pm.sampling.mcmc.assign_step_methods(model)
    with pytest.raises(ValueError, match="within `with model:`"):
        pm.sampling.mcmc.instantiate_steppers(model, [], methods)
