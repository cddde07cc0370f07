"""Predictive draws against enumerated distributions and closed forms; the references use no code of the package."""

import itertools

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from scipy import special, stats

import bayesstruct as bs

SAMPLING = {
    "chains": 1,
    "cores": 1,
    "random_seed": 2,
    "progressbar": False,
    "compute_convergence_checks": False,
}
STATES = (2, 3, 2)
CELLS = list(itertools.product(*map(range, STATES)))


def answers(n=40, seed=3):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(0, k, n) for k in STATES])
    x[:, 1] = np.where(rng.random(n) < 0.5, 2 * x[:, 0], x[:, 1])
    return pd.DataFrame(x, columns=list("abc"))


def drawn(model, tune=20, draws=20, **options):
    with model:
        return pm.sample(draws, tune=tune, **SAMPLING | options)


def replicated(model, idata, name="x"):
    with model:
        out = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=4)
    return out["posterior_predictive"][name].values


def of_one_draw(model, posterior, times, size):
    """Predictive draws, (times, n, d), all of the same draw of the parameters, and that draw: one of much `size`."""
    draw = int(
        np.argmax([size(posterior.isel(chain=0, draw=d)) for d in range(posterior.sizes["draw"])])
    )
    one = posterior.to_dataset().isel(chain=[0], draw=[draw])
    many = xr.concat([one] * times, "draw").assign_coords(draw=np.arange(times))
    out = replicated(model, xr.DataTree.from_dict({"posterior": many}))
    return out[0], one.isel(chain=0, draw=0)


def assert_frequencies(rows, cells, probabilities, level=1e-3):
    """Chi-square test of independent rows; rare joint states together."""
    probabilities = np.asarray(probabilities)
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-9)
    number = {cell: k for k, cell in enumerate(cells)}
    counts = np.bincount(
        [number[tuple(r)] for r in np.asarray(rows).tolist()], minlength=len(cells)
    )
    expected = counts.sum() * probabilities
    assert not counts[expected == 0].any()
    rare = expected < 5
    seen, wanted = (np.append(v[~rare], v[rare].sum()) for v in (counts, expected))
    seen, wanted = seen[wanted > 0], wanted[wanted > 0]
    assert stats.chi2.sf(((seen - wanted) ** 2 / wanted).sum(), len(seen) - 1) > level


# --- Bayesian networks of states --------------------------------------------------------------


def configuration(x, parents):
    """Number of the configuration of the parents, the first changing fastest."""
    return sum(x[j] * int(np.prod([STATES[m] for m in parents if m < j])) for j in parents)


def network_joint(dag, table, was_set=None):
    """Probability of each joint state, from the graph and its tables; a set column has its value."""
    out = []
    for x in CELLS:
        p = 1.0
        for i, k in enumerate(STATES):
            parents = np.flatnonzero(dag[:, i]).tolist()
            p *= (
                float(x[i] == was_set[i])
                if i in (was_set or {})
                else table[i, configuration(x, parents) * k + x[i]]
            )
        out.append(p)
    return np.array(out)


@pytest.fixture(scope="module", params=["bdeu", "bde", "multinomial"])
def network(request):
    x = answers()
    was_set = pd.DataFrame(False, x.index, x.columns)
    was_set.loc[:9, "b"] = True
    model = bs.models.bayesian_network(x, score=request.param, interventions=was_set)
    return request.param, model, drawn(model, draws=3_000), x, was_set.to_numpy()


@pytest.mark.chain
def test_rows_of_a_network_have_its_joint_distribution(network):
    _, model, idata, x, _ = network
    posterior = idata["posterior"].isel(draw=slice(0, 100))
    rows, one = of_one_draw(model, posterior, 600, lambda one: one["dag"].sum())
    dag, table = one["dag"].values, one["table"].values
    assert dag.sum() >= 2
    assert_frequencies(rows[:, 10:].reshape(-1, 3), CELLS, network_joint(dag, table))
    for value in (0, 2):  # rows in which "b" was set to this value
        own = [i for i in range(10) if x["b"][i] == value]
        assert_frequencies(
            rows[:, own].reshape(-1, 3), CELLS, network_joint(dag, table, {1: value})
        )


def all_graphs():
    """The 25 acyclic graphs of three nodes."""
    for arcs in itertools.product((0, 1), repeat=6):
        dag = np.zeros((3, 3), int)
        dag[~np.eye(3, dtype=bool)] = arcs
        if not (np.trace(dag @ dag) or np.trace(dag @ dag @ dag)):
            yield dag


def exact_prediction(x, was_set, score):
    """Probability of each joint state of a new row: the average over all graphs, tables summed out."""
    logs, rows = [], []
    for dag in all_graphs():
        log, row = 0.0, np.ones(len(CELLS))
        for i, k in enumerate(STATES):
            parents = np.flatnonzero(dag[:, i]).tolist()
            q = int(np.prod([STATES[j] for j in parents]))
            counts = np.full((q, k), 1 / (q * k) if score == "bdeu" else 1.0)
            prior = counts.copy()
            for r, values in enumerate(x):
                counts[configuration(values, parents), values[i]] += not was_set[r, i]
            for a, b in zip(prior, counts, strict=True):
                log += special.gammaln(a.sum()) - special.gammaln(b.sum())
                log += (special.gammaln(b) - special.gammaln(a)).sum()
            shares = counts / counts.sum(axis=1, keepdims=True)
            row *= [shares[configuration(cell, parents), cell[i]] for cell in CELLS]
        logs.append(log)
        rows.append(row)
    return special.softmax(logs) @ np.array(rows)


@pytest.mark.chain
@pytest.mark.parametrize("network", ["bdeu", "bde"], indirect=True)
def test_predictive_rows_of_a_network_have_the_exact_distribution(network):
    score, model, idata, x, was_set = network
    rows = replicated(model, idata)[0, :, 10:].astype(int)
    number = rows @ [6, 2, 1]
    exact = exact_prediction(x.to_numpy(), was_set, score)
    assert exact.sum() == pytest.approx(1.0)
    shares = np.stack([(number == k).mean(axis=1) for k in range(12)], axis=1)
    error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))  # draws of the graph are independent
    assert (abs(shares.mean(axis=0) - exact) < 4.5 * error).all()


@pytest.mark.chain
def test_rows_of_a_network_of_logistic_regressions():
    x = (answers() > 0).astype(int)
    posterior = drawn(model := bs.models.bayesian_network(x, score="logistic"))["posterior"]
    rows, one = of_one_draw(model, posterior, 400, lambda one: one["dag"].sum())
    dag, weight = one["dag"].values, np.zeros((3, 3))
    for label in one["ordered_pair"].values:
        a, b = (list("abc").index(name) for name in label.split(" -> "))
        weight[a, b] = one["log_odds_ratio"].sel(ordered_pair=label)
    cells, joint = list(itertools.product((0, 1), repeat=3)), []
    assert ((weight != 0) == (dag != 0)).all() and dag.any()
    for cell in cells:
        p = 1.0
        for i in range(3):
            base = one["table"].values[i, 1]  # of a 1, all parents being 0
            chance = special.expit(special.logit(base) + cell @ weight[:, i])
            p *= chance if cell[i] else 1 - chance
        joint.append(p)
    assert_frequencies(rows.reshape(-1, 3), cells, joint)


# --- Markov random fields ---------------------------------------------------------------------


@pytest.mark.chain
@pytest.mark.parametrize("coding", ["01", "pm"])
def test_rows_of_an_ising_model_have_its_joint_distribution(coding):
    model = bs.models.ising((answers() > 0).astype(int), coding=coding)
    rows, one = of_one_draw(
        model, drawn(model)["posterior"], 400, lambda one: abs(one["weight"]).min()
    )
    cells = list(itertools.product((0, 1), repeat=3))
    s = np.array(cells) if coding == "01" else 2 * np.array(cells) - 1
    energy = s @ one["bias"].values
    for label, weight in zip(one["pair"].values, one["weight"].values, strict=True):
        i, j = (list("abc").index(name) for name in label.split(" -- "))
        energy = energy + weight * s[:, i] * s[:, j]
    assert_frequencies(rows.reshape(-1, 3), cells, special.softmax(energy))


@pytest.mark.chain
def test_rows_of_a_field_of_states_have_its_joint_distribution():
    model = bs.models.pairwise_mrf(answers(), prior="spike_slab", edge_probability=0.9)
    rows, one = of_one_draw(
        model, drawn(model)["posterior"], 400, lambda one: abs(one["weight"]).min()
    )
    terms = dict(zip(one["bias_label"].values, one["bias"].values, strict=True))
    terms |= dict(zip(one["cell"].values, one["potential"].values, strict=True))
    energy = []
    for cell in CELLS:
        own = [f"{name}={state}" for name, state in zip("abc", cell, strict=True)]
        pairs = [f"{a} -- {b}" for a, b in itertools.combinations(own, 2)]
        assert set(pairs) <= set(terms)
        energy.append(sum(terms.get(key, 0.0) for key in own + pairs))
    assert_frequencies(rows.reshape(-1, 3), CELLS, special.softmax(energy))


# --- latent features --------------------------------------------------------------------------


def numbers(n=8, gaps=False):
    rng = np.random.default_rng(6)
    x = 3.0 * (rng.random((n, 2)) < 0.5) @ rng.normal(size=(2, 3)) + rng.normal(size=(n, 3))
    if gaps:
        x[0, 1] = x[3, 2] = np.nan
    return pd.DataFrame(x, columns=list("abc"))


def feature_means(one):
    return [0.5, -1.0, 2.0] + one["feature"].values @ one["loading"].values


def score_means(one):
    return one["score"].values @ one["loading"].values


def from_prior(model):
    """Parameters of all kinds, as if they were draws from a posterior."""
    with model:
        return pm.sample_prior_predictive(20, random_seed=5)["prior"]


def used(one):
    return int(one["n_features"])


M = bs.models
FEATURES = {
    "features": (lambda: M.latent_features(numbers(), baseline=[0.5, -1.0, 2.0]), feature_means),
    "features_slice": (
        lambda: M.latent_features(numbers(), baseline=[0.5, -1.0, 2.0], sampler="slice"),
        feature_means,
    ),
    "factors": (lambda: M.sparse_factor_analysis(numbers()), score_means),
    "components": (lambda: M.infinite_ica(numbers()), score_means),
}


@pytest.mark.chain
@pytest.mark.parametrize("case", FEATURES)
def test_rows_of_latent_features_have_the_mean_and_covariance_of_the_parameters(case):
    build, mean = FEATURES[case]
    rows, one = of_one_draw(model := build(), from_prior(model), times := 2_000, used)
    noise = np.broadcast_to(one["noise"].values, 3)
    assert used(one) >= 3
    z = ((rows - mean(one)) / noise).reshape(times, -1)
    assert np.abs(z.mean(axis=0)).max() < 4.5 / np.sqrt(times)
    apart = np.cov(z, rowvar=False) - np.eye(z.shape[1])  # standard errors 1, of variances root 2
    assert np.abs(apart / np.sqrt(1 + np.eye(len(apart)))).max() < 5 / np.sqrt(times)


@pytest.mark.chain
def test_predictive_rows_of_hidden_causes_have_their_probabilities():
    x = (numbers(20) > 0).astype(int)
    model = M.hidden_causes(x)
    rows, one = of_one_draw(model, from_prior(model), times := 2_000, used)
    active = one["cause"].values @ one["feature"].values.T
    chance = 1 - (1 - one["leak"].values) * (1 - one["strength"].values) ** active
    assert active.any()
    error = np.sqrt(chance * (1 - chance) / times)
    assert (np.abs(rows.mean(axis=0) - chance) < 4.5 * error).all()
    z = ((rows - chance) / np.sqrt(chance * (1 - chance))).reshape(times, -1)
    together = (z.T @ z / times)[np.triu_indices(z.shape[1], 1)]
    assert np.abs(together).max() < 6 / np.sqrt(times)  # products of rare events have long tails


@pytest.mark.chain
def test_rows_drawn_from_the_prior_have_the_covariance_of_the_process():
    """Two rows have alpha / 2 features in common, each of which adds the variance of a loading."""
    alpha, tau, sigma = 1.5, 0.8, 0.5
    model = M.latent_features(
        numbers(3), alpha=alpha, loading_scale=tau, noise=sigma, baseline=[0.5, -1.0, 2.0]
    )
    with model:
        x = pm.sample_prior_predictive(4_000, random_seed=3)["prior_predictive"]["x"].values[0]
    away = x - [0.5, -1.0, 2.0]
    wanted = tau**2 * alpha * (np.eye(3) + 1) / 2 + sigma**2 * np.eye(3)
    for products, exact in (
        (np.einsum("tij,tkj->tikj", away, away), wanted[:, :, None]),
        (away, 0.0),
        (away[:, :, 0] * away[:, :, 1], 0.0),  # of different columns
    ):
        error = products.std(axis=0, ddof=1) / np.sqrt(len(products))
        assert (np.abs(products.mean(axis=0) - exact) < 4.5 * error).all()
