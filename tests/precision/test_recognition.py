"""Which models the step takes, which it leaves to NUTS, and what it says."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc.sampling.mcmc import assign_step_methods
from tools.calibration import assigned_step

import bayesstruct as bs

from bayesstruct.distributions import (
    ColumnMeans,
    DegreesOfFreedom,
    GraphicalNormal,
    GraphicalStudent,
)
from bayesstruct.models import gaussian_graphical
from bayesstruct.precision.recognition.graphs import graph_part
from bayesstruct.precision.recognition.parts import recognize
from bayesstruct.steps import EdgesGibbs, PrecisionGibbs

ROWS = np.random.default_rng(0).normal(size=(6, 3))


def assigned(model):
    """Names of the variables by the name of the step that pm.sample gives them."""
    with model:
        _, selected = assign_step_methods(model)
    return {
        step.__name__: sorted(model.values_to_rvs[v].name for v in values)
        for step, values in selected.items()
        if values
    }


def prior(name="K", kind="spike_slab", p=3, **kwargs):
    if kind == "laplace":
        return bs.GraphicalLasso(name, p, **kwargs)
    return bs.GraphicalSpikeSlab(name, p, **kwargs)


@pytest.mark.parametrize("kind", ["spike_slab", "laplace", "g_wishart"])
def test_gaussian_graphical_gets_the_step_unasked(kind):
    model = gaussian_graphical(ROWS, prior=kind)
    assert assigned(model) == {"PrecisionGibbs": sorted(v.name for v in model.free_RVs)}


@pytest.mark.parametrize("kind", ["spike_slab", "g_wishart"])
def test_gaussian_graphical_with_gaps_and_beta_gets_the_step_for_everything(kind):
    rows = ROWS.copy()
    rows[0, 1] = rows[4, 2] = np.nan
    model = gaussian_graphical(rows, prior=kind, edge_probability=pm.Beta.dist(1, 2))
    names = sorted(["precision", "edge", "edge_probability", "mean", "x_missing"])
    assert assigned(model) == {"PrecisionGibbs": names}


def test_random_edge_probabilities_of_a_g_wishart_graph_go_to_other_samplers():
    with pm.Model() as model:
        rate = pm.Beta("rate", 1, 1, shape=2)
        group = pm.Categorical("group", np.full(3, 1 / 3), shape=3)
        chances = pt.switch(pt.eq(group[:, None], group[None, :]), rate[0], rate[1])
        graph = bs.distributions.IndependentEdges("graph", 3, chances)
        pm.MvNormal("x", np.zeros(3), tau=bs.GWishart("K", graph), observed=ROWS)
    assert assigned(model) == {
        "PrecisionGibbs": ["K", "graph"],
        "NUTS": ["rate"],
        "CategoricalGibbsMetropolis": ["group"],
    }


def test_a_learned_rate_and_coefficients_go_to_nuts():
    model = gaussian_graphical(
        ROWS, prior="laplace", rate=pm.Gamma.dist(1, 0.1), covariates=np.arange(6.0)[:, None]
    )
    expected = {"PrecisionGibbs": ["precision"], "NUTS": ["coefficients", "mean", "rate"]}
    assert assigned(model) == expected


@pytest.mark.chain
@pytest.mark.parametrize("kind", ["spike_slab", "laplace"])
@pytest.mark.parametrize(
    "mean", ["number", "zero", "vector", "column_means", "regression", "deterministic"]
)
def test_tables_with_any_mean_are_recognised(kind, mean):
    with pm.Model() as model:
        K = prior(kind=kind)
        if mean == "number":
            mu = 0
        elif mean == "zero":
            mu = np.zeros(3)
        elif mean == "vector":
            mu = pm.Normal("mu", shape=3)
        elif mean == "column_means":
            mu = ColumnMeans("mu", shape=3)
        elif mean == "regression":
            mu = pm.Normal("a", shape=3) + np.arange(6.0)[:, None] @ pm.Normal("B", shape=(1, 3))
        else:
            mu = pm.Deterministic("mu", 2 * pm.Normal("a", shape=3))
        pm.MvNormal("x", mu, tau=K, observed=ROWS)
    steps = assigned(model)
    assert "K" in steps["PrecisionGibbs"]
    assert ("mu" in steps["PrecisionGibbs"]) == (mean == "column_means")


def test_several_tables_and_a_latent_one_are_recognised():
    with pm.Model() as model:
        K = prior()
        pm.MvNormal("x", np.zeros(3), tau=K, observed=ROWS)
        z = pm.MvNormal("z", np.zeros(3), tau=K, shape=(4, 3))
        pm.Normal("y", z, 0.5, observed=ROWS[:4])
    assert assigned(model) == {"PrecisionGibbs": ["K"], "NUTS": ["z"]}


def test_no_children_is_the_prior():
    with pm.Model() as model:
        bs.distributions.Edges("edge", prior())
    assert assigned(model) == {"PrecisionGibbs": ["K", "edge"]}


def _element(K):
    pm.Normal("y", K[0, 0], 1.0, observed=0.3)


def _potential(K):
    pm.Potential("penalty", -(K[0, 1] ** 2))


def _doubled(K):
    pm.MvNormal("y", np.zeros(3), tau=2.0 * K, observed=ROWS)


def _covariance(K):
    pm.MvNormal("y", np.zeros(3), cov=K, observed=ROWS)


def _mean_too(K):
    pm.MvNormal("y", K[0], tau=K, observed=ROWS)


def _student(K):
    pm.MvStudentT("y", nu=4, mu=np.zeros(3), scale=pt.linalg.inv(K), observed=ROWS)


def _through_deterministic(K):
    pm.Poisson("y", pm.Deterministic("trace", pt.trace(K)), observed=3)


def _minibatch(K):
    pm.MvNormal("y", np.zeros(3), tau=K, observed=ROWS, total_size=600)


CHILDREN = [
    _element,
    _potential,
    _doubled,
    _covariance,
    _mean_too,
    _student,
    _through_deterministic,
    _minibatch,
]


@pytest.mark.chain
# What is looked for is the same under either prior.
@pytest.mark.parametrize(
    ("kind", "child"),
    [("spike_slab", child) for child in CHILDREN] + [("laplace", _element), ("laplace", _student)],
)
def test_other_children_leave_the_matrix_to_nuts(kind, child):
    with pm.Model() as model:
        K = prior(kind=kind)
        if kind == "spike_slab":
            bs.distributions.Edges("edge", K)
        pm.MvNormal("x", np.zeros(3), tau=K, observed=ROWS)
        child(K)
    expected = {"NUTS": ["K"]} | ({"EdgesGibbs": ["edge"]} if kind == "spike_slab" else {})
    assert assigned(model) == expected
    with pytest.raises(ValueError, match=r"cannot draw 'K' exactly.*NUTS"):
        PrecisionGibbs([K], model=model)


def test_outside_the_context_the_error_is_clear():
    with pm.Model() as model:
        _element(prior())
    with pytest.raises(
        ValueError, match=r"cannot draw 'K' exactly.*'y' is not a multivariate normal"
    ):
        pm.sample(5, tune=5, chains=1, model=model, progressbar=False)


def test_edges_alone_get_their_own_step():
    with pm.Model() as model:
        K = prior()
        edge = bs.distributions.Edges("edge", K)
        _element(K)
        step = EdgesGibbs([edge])
    point, [stats] = step.step(model.initial_point())
    assert stats["n_edges"] == point["edge"].sum()


# What stands below the variables that are drawn along with the matrix must count too: either the
# variable is left to a sampler that sees its children, or the model is refused.


def overlooked(model, name):
    """Whether a Gibbs step draws the variable."""
    try:
        step = assigned_step(model)
    except ValueError as error:
        assert name in str(error)
        return False
    gibbs = [
        m for m in getattr(step, "methods", [step]) if isinstance(m, (PrecisionGibbs, EdgesGibbs))
    ]
    return any(model.rvs_to_values[model[name]] in m.vars for m in gibbs)


@pytest.mark.chain
@pytest.mark.parametrize("child", ["potential", "observed"])
@pytest.mark.parametrize("exact", [True, False])
def test_a_child_of_the_indicators_is_not_overlooked(child, exact):
    with pm.Model() as model:
        K = prior()
        edge = bs.distributions.Edges("edge", K)
        if child == "potential":
            pm.Potential("sparse", -2.0 * edge.sum())
        else:
            pm.Normal("y", edge.sum(), 1.0, observed=3.0)
        if not exact:
            _element_named(K)
    assert not overlooked(model, "edge")


def _element_named(K):
    pm.Normal("other", K[0, 0], 1.0, observed=0.3)


@pytest.mark.chain
def test_a_child_of_the_missing_values_is_recognised():
    rows = ROWS.copy()
    rows[0, 1] = np.nan
    with gaussian_graphical(rows) as model:
        pm.Normal("y", model["x_missing"].sum(), 1.0, observed=5.0)
    assert not overlooked(model, "x_missing")


def test_a_child_of_the_means_is_not_overlooked():
    with gaussian_graphical(ROWS) as model:
        pm.Normal("y", model["mean"].sum(), 1.0, observed=5.0)
    steps = assigned(model)
    assert steps["NUTS"] == ["mean"]
    assert "precision" in steps["PrecisionGibbs"]


def test_a_child_of_the_edge_probability_is_not_overlooked():
    with gaussian_graphical(ROWS, edge_probability=pm.Beta.dist(1, 1)) as model:
        pm.Potential("few", -10.0 * model["edge_probability"])
    assert "edge_probability" not in assigned(model).get("PrecisionGibbs", [])


def test_a_batch_of_matrices_is_not_taken_for_one():
    with pm.Model() as model:
        bs.GraphicalLasso("K", 3, shape=(2, 3, 3))
    assert not overlooked(model, "K")


@pytest.mark.parametrize("how", ["tensor", "data"])
def test_tensor_edge_probabilities_are_drawn_with(how):
    # A scalar tensor becomes a matrix inside the graph; the step must see the matrix.
    with pm.Model() as model:
        value = pt.constant(0.3) if how == "tensor" else pm.Data("p_edge", 0.3)
        K = prior(edge_probability=value)
        bs.distributions.Edges("edge", K)
        pm.MvNormal("x", np.zeros(3), tau=K, observed=ROWS)
        step = PrecisionGibbs(model.free_RVs)
    step.setup_chain(np.random.default_rng(0), 0, 1)
    point, _ = step.step(model.initial_point())
    assert np.isfinite(point["K_cholesky-cov__"]).all()


def test_a_symbolic_number_of_variables_is_drawn_with():
    with pm.Model() as model:
        p = pm.Data("p", np.array(3))
        for kind in ("spike_slab", "laplace"):
            K = prior(kind, kind, p)
            pm.MvNormal(f"x_{kind}", np.zeros(3), tau=K, observed=ROWS)
        step = PrecisionGibbs(model.free_RVs)
    step.setup_chain(np.random.default_rng(0), 0, 1)
    point, _ = step.step(model.initial_point())
    assert all(np.isfinite(v).all() for v in point.values())


def test_graphical_normal_with_random_scale_is_left_to_nuts():
    with pm.Model() as model:
        K = prior()
        GraphicalNormal("x", np.zeros(3), K, 0.0, pm.HalfNormal("s", shape=3), observed=ROWS)
    assert assigned(model) == {"NUTS": ["K", "s"]}


@pytest.mark.parametrize("name", ["edge", "mean"])
def test_an_observed_variable_is_not_drawn(name):
    model = gaussian_graphical(ROWS)
    values = {"edge": np.array([1, 0, 0]), "mean": np.zeros(3)}
    observed = pm.observe(model, {name: values[name]})
    steps = assigned(observed)
    if name == "edge":
        assert "precision" in steps["NUTS"]
    else:
        assert steps == {"PrecisionGibbs": ["edge", "precision"]}


@pytest.mark.parametrize("child", ["potential", "scale"])
def test_a_horseshoe_that_cannot_be_drawn_exactly_is_not_left_to_nuts(child):
    with pm.Model() as model:
        K = bs.GraphicalHorseshoe("K", 3)
        pm.MvNormal("x", np.zeros(3), tau=K, observed=np.ones((4, 3)))
        if child == "potential":
            pm.Potential("more", K[0, 1])
        else:
            pm.Normal("y", model["global_scale"], observed=1.0)
        with pytest.raises(ValueError, match=r"cannot draw 'K' exactly.*NUTS would get stuck"):
            pm.sample(10, tune=10, progressbar=False)


def test_values_on_another_scale_are_left_to_other_samplers():
    rows = np.random.default_rng(0).normal(size=(10, 3))
    with pm.Model() as model:
        share = pm.Beta("share", 1.0, 1.0, default_transform=None)
        graph = bs.distributions.RandomGraph("graph", share, shape=3)
        bs.distributions.NeighbourRegressions("x", graph, 10, observed=np.corrcoef(rows.T))
    assert graph_part(model, graph).share is None
    with pm.Model() as model:
        precision = bs.GraphicalLasso("precision", 3)
        degrees = DegreesOfFreedom("degrees", 2.0, 0.1, default_transform=None)
        GraphicalStudent("x", 0.0, precision, 0.0, 1.0, degrees, observed=rows)
    assert recognize(model, precision).degrees is None
