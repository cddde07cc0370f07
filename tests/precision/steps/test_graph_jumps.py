"""The step of graphs alone, its mode, and precision matrices given its graphs."""

import itertools

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from scipy.special import betaln, logsumexp
from tools.enumeration import assert_matches_enumeration

import bayesstruct as bs

from bayesstruct.core.recognition import NotRecognized
from bayesstruct.distributions import NeighbourRegressions, RandomGraph
from bayesstruct.graphs import mixing
from bayesstruct.models import gaussian_graphical
from bayesstruct.precision.kernels.nodewise import pseudo_likelihood
from bayesstruct.precision.modes import GraphMode
from bayesstruct.precision.recognition.graphs import graph_part
from bayesstruct.steps import GraphJumps

QUIET = {"progressbar": False, "compute_convergence_checks": False}
EDGES = np.array(list(itertools.product((0, 1), repeat=6)), np.int8)


def table(n=12, p=4, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, p))
    x[:, 1] += x[:, 0]
    x[:, 3] += 0.5 * x[:, 1]
    return pd.DataFrame(x, columns=list("abcdefgh"[:p]))


def model(**options):
    return gaussian_graphical(table(), prior="pseudo_likelihood", **options)


def scores(x):
    correlation = np.corrcoef(x.T)
    return 0.5 * np.array([float(pseudo_likelihood(correlation, s, float(len(x)))) for s in EDGES])


def draws_of(model, draws=8_000, burn=100, seed=1, **options):
    """Points of one chain of the step, without PyMC's traces."""
    step = GraphJumps(model.free_RVs, model=model, **options)
    step.setup_chain(np.random.default_rng(seed), burn, draws)
    point, out = model.initial_point(random_seed=1), []
    for k in range(draws + burn):
        point, [stats] = step.step(point)
        if k >= burn:
            out.append((point, stats))
    return out


@pytest.mark.chain
def test_the_density_is_prior_and_pseudo_likelihood():
    m = model(edge_probability=0.3)
    logp = m.compile_logp()
    expected = (
        scores(table().to_numpy()) + EDGES.sum(1) * np.log(0.3) + (1 - EDGES).sum(1) * np.log(0.7)
    )
    for at in (0, 21, 63):
        assert np.isclose(logp({"edge": EDGES[at]}), expected[at])


@pytest.mark.statistical
def test_draws_against_all_graphs():
    m = model(edge_probability=0.3, required=[("a", "c")], forbidden=[("b", "d")])
    pairs = [f"{a} -- {b}" for a, b in itertools.combinations("abcd", 2)]
    on, off = pairs.index("a -- c"), pairs.index("b -- d")
    log = scores(table().to_numpy()) + EDGES.sum(1) * np.log(0.3 / 0.7)
    log[(EDGES[:, on] == 0) | (EDGES[:, off] == 1)] = -np.inf
    exact = np.exp(log - logsumexp(log))
    found = draws_of(m)
    assert_matches_enumeration(np.array([p["edge"] for p, _ in found]), exact, states=EDGES)
    reported = np.mean([s["edge_inclusion"] for _, s in found], axis=0)
    assert np.allclose(reported, EDGES.T @ exact, atol=0.01)
    assert reported[on] == 1
    assert reported[off] == 0


@pytest.mark.statistical
def test_a_learned_edge_probability_against_all_graphs():
    m = model(edge_probability=pm.Beta.dist(1.5, 3.0), required=[("a", "c")])
    log = scores(table().to_numpy())
    free = EDGES.sum(1) - EDGES[:, 1]
    log += betaln(1.5 + free, 3.0 + 5 - free)
    log[EDGES[:, 1] == 0] = -np.inf
    exact = np.exp(log - logsumexp(log))
    found = draws_of(m)
    assert_matches_enumeration(np.array([p["edge"] for p, _ in found]), exact, states=EDGES)
    share = np.array([1 / (1 + np.exp(-p["edge_probability_logodds__"])) for p, _ in found])
    mean = exact @ ((1.5 + free) / 9.5)
    assert abs(share.mean() - mean) < 0.01


def test_chains_start_apart():
    m = model(edge_probability=0.3, required=[("a", "c")], forbidden=[("b", "d")])
    starts = np.array([m.initial_point(random_seed=seed)["edge"] for seed in range(20)])
    assert starts[:, 1].all()
    assert not starts[:, 4].any()
    assert 5 < (starts.sum(1) == 1).sum() < 20  # from the certain edges alone, or from others too
    same = [m.initial_point(random_seed=3)["edge"] for _ in range(2)]
    assert np.array_equal(*same)


@pytest.mark.chain
def test_the_model_is_sampled_and_read():
    with model(edge_probability=pm.Beta.dist(1, 4)):
        idata = pm.sample(60, chains=2, cores=1, random_seed=1, **QUIET)
    assert set(idata["posterior"].data_vars) == {"edge", "edge_probability"}
    assert idata["posterior"]["edge"].dtype == "int8"
    frame = bs.edge_table(idata)
    assert list(frame.columns) == [
        "source",
        "target",
        "probability",
        "bayes_factor",
        "ess",
        "r_hat",
    ]
    assert frame.attrs["estimator"] == "control variate"
    known = idata["sample_stats"]["edge_inclusion"].values.mean((0, 1))
    assert np.allclose(bs.inclusion_probabilities(idata), known, atol=1e-6)
    text = repr(bs.summary(idata))
    assert "pseudo-likelihood" in text
    assert "bs.precision_draws" in text
    assert "plot_edges" not in text
    assert any("pseudo-likelihood" in note for note in bs.check(idata).notes)
    graph = bs.median_graph(idata, threshold=0.01)
    assert all("weight" not in about for *_, about in graph.edges(data=True))
    for read in (
        bs.structure.partial_correlations,
        bs.plot_matrix,
        bs.covariance,
        bs.precision_matrix,
        bs.coefficients,
    ):
        with pytest.raises(ValueError, match="precision_draws"):
            read(idata)
    with pytest.raises(ValueError, match="no coefficients"):
        bs.plot_edges(idata)

    drawn = bs.precision_draws(idata, draws=20, random_seed=1)
    precision = drawn["posterior"]["precision"]
    assert precision.shape == (2, 20, 4, 4)
    i, j = np.triu_indices(4, 1)
    assert ((precision.values[..., i, j] != 0) == (drawn["posterior"]["edge"].values > 0)).all()
    assert {"mean", "hdi_low", "hdi_high"} <= set(bs.edge_table(drawn).columns)
    assert bs.covariance(drawn).shape == (2, 20, 4, 4)
    groups = {name: child.to_dataset() for name, child in drawn.children.items()}
    groups["constant_data"] = groups["constant_data"].drop_vars("composite_likelihood")
    with pytest.raises(ValueError, match="other results have their own"):
        bs.precision_draws(xr.DataTree.from_dict(groups))


@pytest.mark.chain
def test_a_run_is_the_same_with_one_process_and_two():
    runs = []
    for cores in (1, 2):
        with model(edge_probability=pm.Beta.dist(1, 4)):
            runs.append(pm.sample(20, tune=5, chains=2, cores=cores, random_seed=3, **QUIET))
    assert runs[0]["posterior"]["edge"].equals(runs[1]["posterior"]["edge"])


def test_a_chain_goes_on_from_its_point_and_generator():
    m = model(edge_probability=0.3)
    whole = draws_of(m, draws=20, burn=0, seed=5)
    rng = np.random.default_rng(5)
    step = GraphJumps(m.free_RVs, model=m)
    step.setup_chain(rng, 0, 20)
    point = m.initial_point(random_seed=1)
    for at in range(20):
        if at == 10:  # another process continues
            step = GraphJumps(m.free_RVs, model=m)
            step.setup_chain(rng, 0, 10)
        point, [stats] = step.step(point)
        assert (point["edge"] == whole[at][0]["edge"]).all()
        assert (stats["edge_inclusion"] == whole[at][1]["edge_inclusion"]).all()


@pytest.mark.parametrize("beta", [False, True])
def test_the_mode_is_the_best_of_all_graphs(beta):
    options = {"edge_probability": pm.Beta.dist(2.0, 3.0) if beta else 0.3}
    m = model(**options)
    mode = bs.find_MAP(m)
    log = scores(table().to_numpy())
    if beta:
        on = EDGES.sum(1)
        share = (on + 1) / (6 + 3)
        log += (on + 1) * np.log(share) + (6 - on + 2) * np.log1p(-share)
        assert np.isclose(mode["edge_probability"], share[np.argmax(log)])
    else:
        log += EDGES.sum(1) * np.log(0.3 / 0.7)
    assert (mode["edge"] == EDGES[np.argmax(log)]).all()


def test_random_probabilities_of_ones_own():
    x = table()
    with pm.Model() as m:
        a = pm.Normal("a", 0, 1)
        edge = RandomGraph("edge", pm.math.sigmoid(a * np.linspace(-1, 1, 6)))
        NeighbourRegressions("correlation", edge, len(x), observed=x.corr())
        assert graph_part(m, edge).share is None
    point = m.initial_point(random_seed=1)
    step = GraphJumps([edge], model=m)
    step.setup_chain(np.random.default_rng(1), 0, 1)
    assert set(np.unique(step.step(point)[0]["edge"])) <= {0, 1}
    with m, pytest.raises(NotRecognized, match="a is free too"):
        GraphMode().recognise(m)


def test_models_of_which_the_graph_cannot_be_drawn_are_refused():
    x = table()
    with pm.Model() as m:
        edge = RandomGraph("edge", np.full(6, 0.2))
        NeighbourRegressions("correlation", edge, len(x), observed=x.corr())
        pm.Normal("y", edge.sum(), 1.0, observed=0.3)
    with pytest.raises(ValueError, match="y depends on it"):
        GraphJumps([edge], model=m)


@pytest.mark.chain
def test_no_draws_of_tables():
    with model(), pytest.raises(NotImplementedError, match="no predictive draws"):
        pm.sample_prior_predictive(2)
    with model():
        prior = pm.sample_prior_predictive(200, var_names=["edge"], random_seed=1)
    assert abs(prior["prior"]["edge"].values.mean() - 0.5) < 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"covariates": pd.DataFrame({"z": np.arange(12.0)})}, "`covariates` do not go with"),
        ({"standardize": False}, "uses the correlations"),
        ({"spike_scale": 0.1}, '`spike_scale` goes with prior="spike_slab"'),
    ],
)
def test_what_it_does_not_know_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        model(**options)


@pytest.mark.chain
def test_the_log_likelihood_is_not_one_of_rows():
    with model(edge_probability=0.3):
        idata = pm.sample(5, tune=5, chains=1, random_seed=1, **QUIET)
        with pytest.warns(UserWarning, match="no part for each row"):
            pm.compute_log_likelihood(idata, progressbar=False)
        with pytest.raises(NotImplementedError, match="no predictive draws"):
            pm.sample_posterior_predictive(idata, progressbar=False)


@pytest.mark.chain
def test_many_edges_leave_effective_sizes_to_those_that_are_visited(monkeypatch):
    with model(edge_probability=0.1):
        idata = pm.sample(60, chains=2, cores=1, random_seed=1, **QUIET)
    full = bs.edge_table(idata)
    monkeypatch.setattr(mixing, "MANY", 3)
    monkeypatch.setattr(mixing, "VISITED", 0.2)
    frequency = idata["posterior"]["edge"].values.mean((0, 1))
    some = bs.edge_table(idata)
    assert some["ess"].isna().sum() == (np.minimum(frequency, 1 - frequency) < 0.2).sum() > 0
    kept = some["ess"].notna()
    np.testing.assert_allclose(some["ess"][kept], full["ess"][kept])


def test_a_prior_of_very_many_edges_is_remarked_upon():
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 45)))
    with pytest.warns(bs.TableWarning, match=r"22 neighbours.*2 / p"):
        gaussian_graphical(x, prior="pseudo_likelihood")


@pytest.mark.chain
def test_a_correlation_matrix_is_enough():
    x = table()
    whole, alone = model(), gaussian_graphical(cov=x.cov(), n=len(x), prior="pseudo_likelihood")
    point = {"edge": EDGES[37]}
    assert np.isclose(whole.compile_logp()(point), alone.compile_logp()(point))
