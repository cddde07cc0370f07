"""The sampler of neighbourhood models: exactness, backends, compact results, refusals; modes."""

from pathlib import Path

import joblib
import numpy as np
import pymc as pm
import pytest

from scipy import special
from tools.batches import mean_and_error
from tools.enumeration import assert_matches_enumeration, binary_states
from tools.modes import natural_logp
from tools.variable_selection import logistic_subsets, prior_log_probabilities

import bayesstruct as bs

from bayesstruct.neighbourhoods import sampling as neighbourhoods

QUIET = {"progressbar": False, "random_seed": 1}
BURN = {"draws": 8_000, "tune": 200, "chains": 2}


def table(n=40, p=5, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    x[:, 1] += 0.9 * x[:, 0]
    x[:, 2] += 0.4 * x[:, 1] - 0.3 * x[:, 3]
    return x


def gaussian(**kwargs):
    return bs.models.gaussian_neighbourhoods(table(), **kwargs)


def ising(**kwargs):
    return bs.models.ising_neighbourhoods(table(60) > 0, **kwargs)


# --- exactness -------------------------------------------------------------------------------


def gaussian_regression(X, y, *, inclusion, slab, shape, rate, grid=400):
    """Exact distribution of the subsets, and mean of the noise variance; intercept standard normal."""
    states = binary_states(X.shape[1])
    logs = np.empty((len(states), grid))
    t = np.linspace(-5.0, 4.0, grid)  # log of the variance
    v = np.exp(t)
    prior = -(shape + 1.0) * t - rate / v + t
    for k, state in enumerate(states):
        at = np.nonzero(state)[0]
        values, vectors = np.linalg.eigh(slab * X[:, at] @ X[:, at].T + 1.0)
        spread = np.maximum(values, 0.0) + v[:, None]
        fit = (vectors.T @ y) ** 2 / spread
        logs[k] = prior - 0.5 * (np.log(spread) + fit).sum(axis=1)
    logs += prior_log_probabilities(states, inclusion)[:, None]
    joint = np.exp(logs - special.logsumexp(logs))
    return states, joint.sum(axis=1), float((joint.sum(axis=0) * v).sum())


@pytest.mark.chain
def test_a_gaussian_regression_against_enumeration():
    x = table()
    inclusion = np.full((5, 5), 0.4)
    inclusion[2] = [0.2, 0.5, 0.0, 0.6, 0.3]
    model = bs.models.gaussian_neighbourhoods(
        x, inclusion=inclusion, slab_scale=0.7, noise_prior=(3.0, 0.8)
    )
    idata = bs.sample_neighbourhoods(model, **BURN, **QUIET)
    z = (x - x.mean(0)) / x.std(0, ddof=1)
    others = [0, 1, 3, 4]
    states, exact, noise = gaussian_regression(
        z[:, others], z[:, 2], inclusion=inclusion[2, others], slab=0.49, shape=3.0, rate=0.8
    )
    here = slice(8, 12)
    arcs = idata["posterior"]["arc"].values[..., here]
    assert_matches_enumeration(arcs.astype(int), exact, states=states)
    marginal = exact @ states
    averaged = idata["arcs"]["probability"].mean("chain").values[here]
    # Averages of conditional probabilities: 16,000 draws, autocorrelation times of a few draws.
    np.testing.assert_allclose(averaged, marginal, atol=0.012)
    draws = idata["posterior"]["noise_variance"].values[..., [2]]
    mean, error, _ = mean_and_error(draws)
    assert abs(mean[0] - noise) < 4.5 * error[0]


@pytest.fixture(scope="module")
def logistic():
    """A model of 0/1 columns, and the exact distribution of the neighbours of the third one."""
    x = (table(60) > 0) * 1.0
    model = bs.models.ising_neighbourhoods(x, inclusion=0.4, slab_scale=0.9, intercept_scale=1.5)
    others = [0, 1, 3, 4]
    centred = x[:, others] - x[:, others].mean(axis=0)
    design = np.column_stack([centred, np.ones(60)])  # the intercept is always in
    distribution = logistic_subsets(
        design,
        x[:, 2],
        inclusion=np.array([0.4] * 4 + [1.0]),
        slab=np.array([0.81] * 4 + [2.25]),
        offset=0.0,
    )
    return model, distribution


def check_logistic(model, distribution, **options):
    """Hold the draws of the third column's neighbours against their exact distribution."""
    states, exact, errors = distribution
    idata = bs.sample_neighbourhoods(model, **options, **QUIET)
    arcs = idata["posterior"]["arc"].values[..., 8:12].astype(int)
    arcs = np.concatenate([arcs, np.ones_like(arcs[..., :1])], axis=-1)
    assert_matches_enumeration(arcs, exact, states=states, errors=errors)


@pytest.mark.chain
def test_a_logistic_regression_against_enumeration(logistic):
    check_logistic(*logistic, **BURN)


def _always_accepted(rng, w):
    """Exchange an active with an inactive neighbour: no acceptance ratio."""
    active, rest = np.nonzero(w[:-1])[0], np.nonzero(w[:-1] == 0)[0]
    if len(active) and len(rest):
        i, j = rng.choice(active), rng.choice(rest)
        w[i], w[j] = w[j], w[i]


@pytest.mark.chain
@pytest.mark.parametrize("wrong", [None, "acceptance", "prior"])
def test_a_wrong_logistic_chain_is_noticed(logistic, wrong, monkeypatch):
    from bayesstruct.neighbourhoods import kernels

    right = kernels.logistic_sweep

    def sweep(rng, w, *args):
        *head, log_odds, swaps = args
        right(rng, w, *head, log_odds + (0.35 if wrong == "prior" else 0.0), swaps)
        if wrong == "acceptance":
            _always_accepted(rng, w)

    # The chain interpreted, so that it calls what it finds here.
    monkeypatch.setattr(kernels, "logistic_sweep", sweep)
    monkeypatch.setattr(kernels, "logistic_chain", kernels.logistic_chain.py_func)
    few = {"draws": 1_000, "tune": 50, "chains": 2, "cores": 1}
    if wrong is None:
        return check_logistic(*logistic, **few)
    with pytest.raises(AssertionError, match="worst z"):
        check_logistic(*logistic, **few)


CASES = {
    "gaussian": lambda: gaussian(slab_scale=0.6),
    "gaussian, beta": lambda: gaussian(inclusion=pm.Beta.dist(1.0, 2.0), slab="laplace"),
    "gaussian, laplace": lambda: gaussian(prior="laplace"),
    "ising, laplace slab": lambda: ising(slab="laplace"),
    "ising, laplace": lambda: ising(prior="laplace"),
}


@pytest.mark.compiled  # NUTS takes many steps for each draw
@pytest.mark.chain
@pytest.mark.parametrize("case", CASES)
def test_pm_sample_has_the_same_posterior(case):
    model = CASES[case]()
    mine = bs.sample_neighbourhoods(model, draws=4_000, tune=200, chains=2, **QUIET)["posterior"]
    with model:
        theirs = pm.sample(
            1_200, tune=500, chains=2, cores=1, nuts_sampler="pymc", quiet=True, **QUIET
        )["posterior"]
    assert set(mine.data_vars) == set(theirs.data_vars)
    scores = []
    for name in mine.data_vars:
        assert mine[name].dims == theirs[name].dims
        for power in (1, 2):
            both = [
                mean_and_error(
                    v[name].values.reshape(*v[name].shape[:2], -1).astype(float) ** power
                )
                for v in (mine, theirs)
            ]
            (a, e, _), (b, f, _) = both
            error = np.sqrt(e**2 + f**2)
            moved = error > 1e-12
            np.testing.assert_allclose(a[~moved], b[~moved], atol=1e-12)
            scores.append((a - b)[moved] / error[moved])
    scores = np.concatenate(scores)
    # Some 200 strongly dependent scores from 50 batches each.
    assert np.abs(scores).max() < 4.8
    assert np.sqrt((scores**2).mean()) < 1.5


# --- where the work is done ------------------------------------------------------------------

KERNELS = "bayesstruct.neighbourhoods.kernels"
FEW = {"draws": 30, "tune": 10, "chains": 2, **QUIET}


def assert_identical(a, b):
    for group in a.children:
        for name, values in a[group].data_vars.items():
            np.testing.assert_array_equal(values, b[group][name], err_msg=f"{group}/{name}")


@pytest.fixture(scope="module")
def references():
    """Models of both families, and their draws by one thread."""
    models = {"gaussian": gaussian(), "ising": ising()}
    return {k: (m, bs.sample_neighbourhoods(m, cores=1, **FEW)) for k, m in models.items()}


@pytest.fixture(params=["gaussian", "ising"])
def reference(request, references):
    return references[request.param]


@pytest.mark.chain
def test_threads_give_the_draws_of_one(reference):
    model, one = reference
    assert_identical(one, bs.sample_neighbourhoods(model, cores=2, **FEW))


@pytest.mark.chain
def test_another_seed_gives_other_draws(reference):
    model, one = reference
    other = bs.sample_neighbourhoods(model, **FEW | {"random_seed": 2})
    assert (one["posterior"]["intercept"] != other["posterior"]["intercept"]).all()
    generator = np.random.default_rng(5)
    bs.sample_neighbourhoods(model, **FEW | {"random_seed": generator})


@pytest.mark.chain
def test_no_two_regressions_and_no_two_chains_have_the_same_random_numbers(reference):
    intercept = reference[1]["posterior"]["intercept"].values
    assert len(np.unique(intercept)) == intercept.size


@pytest.fixture
def paths_of_workers(monkeypatch):
    """Let workers that are fresh interpreters find the package of a checkout."""
    monkeypatch.setenv("PYTHONPATH", str(Path(bs.__file__).parents[1]))


@pytest.mark.chain
def test_processes_give_the_same_draws(references, paths_of_workers):
    with joblib.parallel_config(backend="loky", n_jobs=2):
        for model, one in references.values():
            assert_identical(one, bs.sample_neighbourhoods(model, **FEW))


@pytest.mark.chain
@pytest.mark.filterwarnings("default")  # of the cluster, on sockets and event loops
def test_a_dask_cluster_gives_the_same_draws(references, paths_of_workers):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        with joblib.parallel_config(backend="dask"):
            again = {k: bs.sample_neighbourhoods(m, **FEW) for k, (m, _) in references.items()}
        loaded = client.run(lambda: KERNELS in __import__("sys").modules)
    assert len(loaded) == 2
    assert any(loaded.values())  # the work was done there
    for family, (_, one) in references.items():
        assert_identical(one, again[family])


# --- results ---------------------------------------------------------------------------------


@pytest.mark.chain
def test_groups_and_layout(reference):
    _, idata = reference
    assert {"posterior", "sample_stats", "observed_data", "constant_data"} <= set(idata.children)
    posterior = idata["posterior"]
    assert posterior["arc"].dtype == np.int8
    np.testing.assert_array_equal(posterior["arc"], posterior["weight"] != 0)
    target, source = (idata["constant_data"][f"arc_{k}"].values for k in ("target", "source"))
    np.testing.assert_array_equal(
        posterior["weight"].values, posterior["coefficients"].values[..., target, source]
    )
    np.testing.assert_array_equal(
        idata["sample_stats"]["n_active"], posterior["arc"].sum("ordered_pair")
    )
    weight = posterior["weight"].values.reshape(-1, 20)
    np.testing.assert_allclose(idata["arcs"]["mean"], weight.mean(0), atol=1e-12)
    np.testing.assert_allclose(idata["arcs"]["sd"], weight.std(0), atol=1e-12)
    assert posterior.attrs["inference_library"] == "bayesstruct"


@pytest.mark.chain
@pytest.mark.parametrize("prior", ["spike_slab", "laplace"])
def test_a_compact_result_holds_the_same_draws(prior, monkeypatch):
    model = gaussian(prior=prior)
    full = bs.sample_neighbourhoods(model, **FEW)
    monkeypatch.setattr(neighbourhoods, "FULL", 0)
    monkeypatch.setattr(neighbourhoods, "VISITED", 0.3)
    compact = bs.sample_neighbourhoods(model, **FEW)
    for name in ("arc", "intercept", "noise_variance"):
        np.testing.assert_array_equal(full["posterior"][name], compact["posterior"][name])
    assert "coefficients" not in compact["posterior"]
    kept = compact["constant_data"]["visited_index"].values
    frequent = full["posterior"]["arc"].mean(("chain", "draw")).values >= 0.3
    np.testing.assert_array_equal(kept, np.flatnonzero(frequent))
    weight = full["posterior"]["weight"].values[..., kept]
    np.testing.assert_array_equal(compact["posterior"]["weight"], weight.astype("float32"))
    assert compact["posterior"]["weight"].dtype == np.float32
    a, b = bs.arc_table(full), bs.arc_table(compact)
    np.testing.assert_allclose(a["mean"], b["mean"], atol=1e-6)
    for rule in ("and", "or"):
        one, other = (bs.edge_table(bs.symmetrize(x, rule)) for x in (full, compact))
        pairs = [t.set_index(["source", "target"])["probability"] for t in (one, other)]
        np.testing.assert_allclose(pairs[0], pairs[1].reindex(pairs[0].index))


# --- what is refused -------------------------------------------------------------------------


def extended(add, prior="spike_slab"):
    with gaussian(prior=prior) as model:
        add(model)
    return model


def shared_scale():
    with pm.Model(coords={"node": range(3), "node_": range(3)}) as model:
        bs.SpikeAndSlab("coefficients", 0.5, pm.HalfNormal("s"), dims=("node", "node_"))
    return model


OTHERS = {
    "horseshoe": (lambda: gaussian(prior="horseshoe"), "the horseshoe prior has no exact"),
    "another model": (lambda: bs.models.gaussian_graphical(table()), "it has no 'arc'"),
    "own model": (shared_scale, "it has no 'arc'"),
    "potential": (
        lambda: extended(lambda m: pm.Potential("wall", -(m["intercept"] ** 2).sum())),
        "'intercept' is used elsewhere too",
    ),
    "potential on coefficients": (
        lambda: extended(lambda m: pm.Potential("wall", -(m["coefficients"] ** 2).sum())),
        "several terms depend on 'coefficients'",
    ),
    "another variable": (lambda: extended(lambda m: pm.Normal("extra")), "'extra' does not belong"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_models_are_sent_to_pm_sample(case):
    build, reason = OTHERS[case]
    with pytest.raises(ValueError, match="cannot draw from this model") as error:
        bs.sample_neighbourhoods(build(), **FEW)
    assert reason in str(error.value)
    assert "Use pm.sample()" in str(error.value)


@pytest.mark.parametrize("bad", [{"draws": 0}, {"tune": -1}, {"chains": 0}, {"draws": 2.5}])
def test_bad_numbers(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        bs.sample_neighbourhoods(gaussian(), **FEW | bad)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"cores": "a"}, "`cores` must be a whole number"),
        ({"random_seed": "a"}, "`random_seed` must be a whole number"),
    ],
)
def test_bad_types(bad, message):
    with pytest.raises(TypeError, match=message):
        bs.sample_neighbourhoods(gaussian(), **FEW | bad)
    with pytest.raises(TypeError, match=r"`model` must be a pymc\.Model, not str"):
        bs.sample_neighbourhoods("gaussian")
    with pytest.raises(ValueError, match="`cores` must be a whole number from 1 up"):
        bs.sample_neighbourhoods(gaussian(), **FEW | {"cores": 0})


@pytest.mark.chain
def test_fewer_rows_than_columns():
    model = bs.models.gaussian_neighbourhoods(np.random.default_rng(0).normal(size=(8, 12)))
    idata = bs.sample_neighbourhoods(model, **FEW)
    assert np.isfinite(idata["posterior"]["coefficients"].values).all()
    laplace = bs.models.gaussian_neighbourhoods(
        np.random.default_rng(0).normal(size=(8, 12)), prior="laplace"
    )
    assert np.isfinite(bs.sample_neighbourhoods(laplace, **FEW)["posterior"]["weight"]).all()


@pytest.mark.chain
def test_columns_that_determine_one_another():
    x = np.tile([0, 1], 30)
    y = np.where(np.arange(60) == 7, 1 - x, x)
    w = np.random.default_rng(0).integers(0, 2, 60)
    idata = bs.sample_neighbourhoods(
        bs.models.ising_neighbourhoods(np.column_stack([x, y, w])), **FEW
    )
    assert np.isfinite(idata["posterior"]["coefficients"]).all()


# --- modes -----------------------------------------------------------------------------------


@pytest.mark.chain
@pytest.mark.parametrize("build", [gaussian, ising])
def test_mode_under_the_laplace_prior(build):
    model = build(prior="laplace")
    mode = bs.find_MAP(model)
    logp, rng = natural_logp(model), np.random.default_rng(0)
    names = [v.name for v in model.free_RVs]
    best = logp({name: mode[name] for name in names})
    off = ~np.eye(5, dtype=bool)
    for _ in range(1_000):
        point = {name: np.array(mode[name], float) for name in names}
        moved = rng.choice(names)
        step = rng.normal(size=point[moved].shape) * 10.0 ** rng.uniform(-5, -1)
        step *= rng.random(step.shape) < rng.choice([0.1, 1.0])
        point[moved] += step * off if moved == "coefficients" else step
        if moved == "noise_variance":
            point[moved] = np.maximum(point[moved], 1e-3)
        assert logp(point) <= best + 1e-9
    assert (mode["coefficients"][off] == 0).any()
    x = model["x"].owner
    assert x is not None
    check_stationary(model, mode, build)


def check_stationary(model, mode, build):
    """Conditions of Karush, Kuhn and Tucker for each regression."""
    z = np.asarray(model.rvs_to_values[model["x"]].data, float)
    rate = 5.0 if build is gaussian else 1.0
    for i in range(5):
        w = mode["coefficients"][i]
        X = z if build is gaussian else z - z.mean(axis=0)
        mean = mode["intercept"][i] + X @ w
        if build is gaussian:
            gradient = X.T @ (z[:, i] - mean) / mode["noise_variance"][i]
        else:
            gradient = X.T @ (z[:, i] - special.expit(mean))
        others = np.arange(5) != i
        active = others & (w != 0)
        np.testing.assert_allclose(gradient[active], rate * np.sign(w[active]), atol=1e-5)
        assert (np.abs(gradient[others & ~active]) <= rate + 1e-6).all()


@pytest.mark.chain
def test_a_mode_starts_chains():
    with gaussian(prior="laplace"):
        mode = bs.find_MAP()
        idata = pm.sample(
            3, tune=2, chains=1, cores=1, initvals=mode, nuts_sampler="pymc", quiet=True, **QUIET
        )
    assert np.isfinite(idata.posterior["coefficients"]).all()


def test_spike_and_slab_coefficients_have_no_mode():
    with pytest.raises(ValueError, match=r"'coefficients'.*density has no mode.*median_graph"):
        bs.find_MAP(bs.models.gaussian_neighbourhoods(table()[:, :2]))
