"""Random edge probabilities: regressions on covariates of edges, and blocks, against exact posteriors."""

import itertools

import numpy as np
import pymc as pm
import pytest
import xarray as xr

from pymc.sampling.mcmc import assign_step_methods
from scipy import stats
from scipy.special import betaln, expit
from tools.batches import mean_and_error
from tools.enumeration import assert_matches_enumeration
from tools.integration import spike_slab_posterior
from tools.modes import assert_is_mode

import bayesstruct as bs

SCALES = {"spike_scale": 0.25, "slab_scale": 1.0, "diagonal_rate": 0.5}
REFERENCE = {"spike": 0.25, "slab": 1.0, "diagonal_rate": 0.5}
DISTANCE = np.array([[0.0, -1.0, 0.5], [-1.0, 0.0, 1.5], [0.5, 1.5, 0.0]])
UPPER = np.triu_indices(3, 1)


def table(n=6, p=3, seed=0):
    z = np.random.default_rng(seed).normal(size=(n, p))
    z[:, 1] += 0.8 * z[:, 0]
    return z


def regression(rows=None, add=bs.edges):
    """Model whose edges depend on covariates; `add` adds the indicators."""
    with pm.Model() as model:
        a, b = pm.Normal("a", -0.5, 1.0), pm.Normal("b", 0.0, 1.0)
        probability = pm.math.sigmoid(a + b * DISTANCE)
        K = bs.GraphicalSpikeSlab("K", 3, probability, condition="joint", **SCALES)
        add(K)
        if rows is not None:
            pm.MvNormal("x", np.zeros(3), tau=K, observed=rows)
    return model


def plain(K):
    """Add the indicators without their prior probabilities, which take a second."""
    bs.distributions.Edges("edge", K)


def regression_prior(states):
    """Prior probability of each graph without the cone, and the means of both parameters given it."""
    grid = np.linspace(-6, 6, 241)
    a, b = grid[:, None], grid
    density = stats.norm.pdf(a, -0.5, 1) * stats.norm.pdf(b)
    prior, means = [], []
    for state in states:
        mass = density.copy()
        for present, d in zip(state, DISTANCE[UPPER], strict=True):
            share = expit(a + b * d)
            mass = mass * (share if present else 1 - share)
        prior.append(mass.sum())
        means.append([(mass * a).sum() / mass.sum(), (mass * b).sum() / mass.sum()])
    return np.array(prior) / np.sum(prior), np.array(means)


def weigh(prior, exact, errors):
    """Posterior over graphs under this prior, from the one under equal probabilities of all graphs."""
    weight = exact * prior
    return weight / weight.sum(), errors * prior / weight.sum()


def sample(model, draws=3_000, tune=500, seed=1):
    with model:
        return pm.sample(
            draws,
            tune=tune,
            chains=2,
            cores=1,
            random_seed=seed,
            nuts_sampler="pymc",
            progressbar=False,
        )


def edges_of(idata):
    return idata["posterior"]["edge"].values


@pytest.mark.compiled
@pytest.mark.chain
def test_regression_on_covariates_of_the_edges():
    rows = table()
    states, exact, errors, _ = spike_slab_posterior(
        rows, probability=0.5, **REFERENCE, draws=60_000, seed=1
    )
    prior, means = regression_prior(states)
    exact, errors = weigh(prior, exact, errors)
    idata = sample(regression(rows))
    assert_matches_enumeration(edges_of(idata), exact, states=states, errors=errors)
    for k, name in enumerate("ab"):
        draws = idata["posterior"][name].values.reshape(2, -1, 1)
        mean, error, _ = mean_and_error(draws)
        assert abs(mean[0] - exact @ means[:, k]) < 4.5 * error[0]


@pytest.mark.compiled
@pytest.mark.chain
def test_blocks_that_are_not_known():
    """Three columns in two blocks, edges of which have one probability inside and another across."""
    rows = table()
    with pm.Model() as model:
        inside, across = pm.Beta("inside", 4.0, 1.0), pm.Beta("across", 1.0, 4.0)
        block = pm.Categorical("block", [0.4, 0.6], shape=3)
        same = pm.math.eq(block[:, None], block[None, :])
        probability = pm.math.switch(same, inside, across)
        K = bs.GraphicalSpikeSlab("K", 3, probability, condition="joint", **SCALES)
        bs.edges(K)
        pm.MvNormal("x", np.zeros(3), tau=K, observed=rows)
    states, exact, errors, _ = spike_slab_posterior(
        rows, probability=0.5, **REFERENCE, draws=60_000, seed=1
    )
    joint = np.zeros((8, len(states)))  # of blocks and graph
    for k, blocks in enumerate(np.array(list(itertools.product([0, 1], repeat=3)))):
        within = (blocks[UPPER[0]] == blocks[UPPER[1]]).astype(int)
        weight = np.prod(np.where(blocks, 0.6, 0.4))
        for m, state in enumerate(states):
            on, off = state @ within, (1 - state) @ within
            out, gone = state @ (1 - within), (1 - state) @ (1 - within)
            ratio = (
                betaln(4 + on, 1 + off) - betaln(4, 1) + betaln(1 + out, 4 + gone) - betaln(1, 4)
            )
            joint[k, m] = weight * np.exp(ratio)
    weights, errors = weigh(joint.sum(0), exact, errors)
    idata = sample(model)
    assert_matches_enumeration(edges_of(idata), weights, states=states, errors=errors)
    posterior = joint * exact
    of_blocks = posterior.sum(1) / posterior.sum()
    drawn = idata["posterior"]["block"].values @ [4, 2, 1]
    assert_matches_enumeration(drawn, of_blocks, errors=np.full(8, 0.004))


def simulate(rng, draws):
    """Independent parameters and elements, of which those with a positive definite matrix are kept."""
    a, b = rng.normal(-0.5, 1.0, draws), rng.normal(size=draws)
    edge = rng.random((draws, 3)) < expit(a[:, None] + b[:, None] * DISTANCE[UPPER])
    K = np.zeros((draws, 3, 3))
    K[:, *UPPER] = rng.normal(size=(draws, 3)) * np.where(edge, 1.0, 0.25)
    K += K.transpose(0, 2, 1)
    K[:, range(3), range(3)] = rng.exponential(2.0, (draws, 3))
    kept = np.linalg.eigvalsh(K)[:, 0] > 0
    return edge[kept], a[kept], b[kept]


@pytest.mark.compiled
@pytest.mark.chain
def test_without_data_parameters_and_graph_are_those_of_positive_definite_matrices():
    edge, a, b = simulate(np.random.default_rng(3), 400_000)
    assert a.mean() < -0.55  # the cone has an effect on the parameters
    idata = sample(regression(), draws=4_000)
    draws = idata["posterior"]
    both = np.concatenate(
        [draws["edge"].values, draws["a"].values[..., None], draws["b"].values[..., None]], axis=-1
    )
    expected = np.array([*edge.mean(0), a.mean(), b.mean()])
    mean, error, _ = mean_and_error(both)
    assert (np.abs(mean - expected) < 4.5 * np.hypot(error, 0.003)).all()


@pytest.mark.statistical
def test_recorded_prior_probabilities_are_those_of_positive_definite_matrices():
    edge, *_ = simulate(np.random.default_rng(4), 400_000)
    recorded = regression()["edge_prior"].eval()
    np.testing.assert_allclose(recorded, edge.mean(0), atol=0.015)  # three standard errors of both


@pytest.mark.compiled
@pytest.mark.chain
def test_prior_probabilities_that_are_not_known_are_said_to_be(monkeypatch):
    monkeypatch.setattr("bayesstruct.precision.priors.implied._JOINT_MATRICES", 10)
    idata = sample(regression(table()), draws=20, tune=20)
    result = bs.edge_table(idata)
    assert result["bayes_factor"].isna().all()
    assert any("not known" in note for note in result.attrs["notes"])
    assert len(bs.check(idata).rows) > 3


@pytest.mark.compiled
@pytest.mark.chain
def test_mode():
    model = regression(table())
    mode = bs.find_MAP(model)
    terms = ["K", "a", "b", "x"]  # the indicators are summed out
    assert_is_mode(model, mode, ["K", "a", "b"], terms=terms, perturbations=200, gradient_tol=1e-3)


def test_steps_of_matrix_and_parameters():
    model = regression(table(), plain)
    with model:
        _, selected = assign_step_methods(model)
    names = {
        step.__name__: sorted(model.values_to_rvs[v].name for v in values)
        for step, values in selected.items()
        if values
    }
    assert names == {"PrecisionGibbs": ["K", "edge"], "NUTS": ["a", "b"]}


def test_prior_draws_are_refused_with_the_remedy():
    with (
        regression(add=plain),
        pytest.raises(Exception, match=r"run pm\.sample on the model without its tables"),
    ):
        pm.sample_prior_predictive(2)


def test_posterior_predictive_draws_use_the_draws_of_the_matrix():
    values = {"K": np.eye(3), "a": np.zeros(()), "b": np.zeros(()), "edge": np.zeros(3, int)}
    posterior = {
        name: (("chain", "draw", *(f"{name}_{i}" for i in range(v.ndim))), v[None, None])
        for name, v in values.items()
    }
    idata = xr.DataTree.from_dict({"posterior": xr.Dataset(posterior)})
    with regression(table(), plain):
        drawn = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=1)
    assert drawn["posterior_predictive"]["x"].shape == (1, 1, 6, 3)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (pm.math.sigmoid, '`edge_probability` must be a constant.*condition="joint"'),
        (lambda a: pm.Beta("share", 1, 1), "unregistered"),
    ],
)
def test_random_probabilities_are_refused_without_the_condition(build, message):
    with pm.Model(), pytest.raises(ValueError, match=message):
        bs.GraphicalSpikeSlab("K", 3, build(pm.Normal("a")))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda a: pm.math.sigmoid(a + np.arange(9.0).reshape(3, 3)), "is not symmetric"),
        (lambda a: 2.0 + a**2 + DISTANCE, "not between 0 and 1"),
        (lambda a: pm.Beta.dist(1, 1), "no variable of the model"),
        (lambda a: pm.math.sigmoid(a + pm.Normal.dist()), "no variable of the model"),
    ],
)
def test_wrong_expressions_are_refused(build, message):
    with pm.Model(), pytest.raises(ValueError, match=message):
        bs.GraphicalSpikeSlab("K", 3, build(pm.Normal("a")), condition="joint")


def test_unknown_conditions_and_random_scales_are_refused():
    with pm.Model():
        with pytest.raises(ValueError, match='must be "matrix" or "joint"'):
            bs.GraphicalSpikeSlab("K", 3, condition="both")
        with pytest.raises(ValueError, match="`slab_scale` must be a constant"):
            bs.GraphicalSpikeSlab("K", 3, slab_scale=pm.HalfNormal("s"), condition="joint")


def test_constants_are_the_same_either_way():
    with pm.Model() as one:
        bs.GraphicalSpikeSlab("K", 3, 0.3, condition="joint")
    with pm.Model() as other:
        bs.GraphicalSpikeSlab("K", 3, 0.3)
    point = one.initial_point()
    assert one.compile_logp()(point) == other.compile_logp()(point)
    assert pm.draw(one["K"], random_seed=1).shape == (3, 3)


def test_an_edge_that_is_very_improbable_is_not_ruled_out():
    distance = DISTANCE.copy()
    distance[0, 2] = distance[2, 0] = -30.0
    with pm.Model() as model:
        a = pm.Normal("a", -0.5, 1.0)
        K = bs.GraphicalSpikeSlab(
            "K", 3, pm.math.sigmoid(a + distance), condition="joint", **SCALES
        )
        bs.edges(K)
    recorded = model["edge_prior"].data
    assert 0 < recorded[1] <= 1e-6
    assert (recorded[[0, 2]] > 0.01).all()


def test_prior_probabilities_are_not_known_where_more_depends_on_the_parameters():
    def matrix(name):
        return bs.GraphicalSpikeSlab(name, 3, probability, condition="joint", **SCALES)

    for second in (lambda: matrix("L"), lambda: pm.Potential("L", -a)):
        with pm.Model() as model:
            a = pm.Normal("a", -0.5, 1.0)
            probability = pm.math.sigmoid(a + DISTANCE)
            K = matrix("K")
            second()
            bs.edges(K)
        assert np.isnan(model["edge_prior"].data).all()
    with pm.Model():
        a = pm.Normal("a", -0.5, 1.0)
        probability = pm.math.sigmoid(a + DISTANCE)
        bs.edges(matrix("K"))
        with pytest.raises(ValueError, match="'L' and 'K' have the random parameter 'a' in common"):
            matrix("L")


def test_parameters_may_belong_to_an_outer_model():
    with pm.Model():
        a = pm.Normal("a", -0.5, 1.0)
        with pm.Model("inner") as inner:
            K = bs.GraphicalSpikeSlab(
                "K", 3, pm.math.sigmoid(a + DISTANCE), condition="joint", **SCALES
            )
            bs.edges(K)
    assert "inner::edge_prior" in inner.root.named_vars


def test_many_columns_are_answered_at_once():
    p = 80
    with pm.Model() as model:
        a = pm.Normal("a", 0.0, 1.0)
        K = bs.GraphicalSpikeSlab("K", p, pm.math.sigmoid(a + np.zeros((p, p))), condition="joint")
        bs.edges(K)
    assert np.isnan(model["edge_prior"].data).all()


@pytest.mark.chain
def test_probabilities_are_averages_of_conditional_ones():
    rows = np.random.default_rng(5).normal(size=(60, 3))
    rows[:, 1] += 3.0 * rows[:, 0]
    with pm.Model() as model:
        a = pm.Normal("a", -0.5, 1.0)
        precision = bs.GraphicalSpikeSlab(
            "precision", 3, pm.math.sigmoid(a + DISTANCE), condition="joint", **SCALES
        )
        bs.edges(precision, columns=["u", "v", "w"])
        pm.MvNormal("x", np.zeros(3), tau=precision, observed=rows)
        idata = pm.sample(
            1000, tune=300, chains=2, cores=1, random_seed=1, progressbar=False, nuts_sampler="pymc"
        )
    assert model["edge_probability"].type.ndim == 1
    posterior = idata["posterior"]
    K = posterior["precision"].values[..., *UPPER]
    share = expit(posterior["a"].values[..., None] + DISTANCE[UPPER])
    slab = share * stats.norm.pdf(K, 0, SCALES["slab_scale"])
    spike = (1 - share) * stats.norm.pdf(K, 0, SCALES["spike_scale"])
    table = bs.edge_table(idata).set_index(["source", "target"])["probability"]
    expected = (slab / (slab + spike)).mean((0, 1))
    pairs = [("u", "v"), ("u", "w"), ("v", "w")]
    np.testing.assert_allclose(table.loc[pairs], expected, rtol=1e-9)
    frequency = posterior["edge"].mean(("chain", "draw")).values
    np.testing.assert_allclose(frequency, expected, atol=0.06)
    assert expected[0] > 0.999
