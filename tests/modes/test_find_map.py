import logging

import networkx as nx
import numpy as np
import pymc as pm
import pytest

from tools.modes import assert_is_mode, natural_logp

import bayesstruct as bs

from bayesstruct.solvers import ConvergenceWarning


def rows(n=60, p=4, seed=3):
    return bs.simulate.gaussian_graphical(n, p, edge_probability=0.5, random_seed=seed).data


@pytest.mark.chain
@pytest.mark.parametrize("prior", ["spike_slab", "laplace"])
def test_mode_of_the_model(prior):
    model = bs.models.gaussian_graphical(rows(), prior=prior)
    mode = bs.find_MAP(model)
    assert_is_mode(model, mode, ["precision", "mean"], terms=["precision", "mean", "x"])


@pytest.mark.chain
def test_mode_with_a_learned_edge_probability():
    model = bs.models.gaussian_graphical(rows(), edge_probability=pm.Beta.dist(2, 3))
    mode = bs.find_MAP(model)
    names = ["precision", "mean", "edge_probability"]
    assert_is_mode(model, mode, names, terms=[*names, "x"])


@pytest.mark.statistical  # a thousand perturbations take more than two seconds
@pytest.mark.parametrize("prior", ["spike_slab", "laplace"])
def test_mode_with_missing_cells_is_that_of_the_observed_ones(prior):
    data = rows().mask(np.random.default_rng(0).random((60, 4)) < 0.15)
    model = bs.models.gaussian_graphical(data, prior=prior)
    mode = bs.find_MAP(model)
    terms = ["precision", "mean", "x"]
    assert_is_mode(model, mode, ["precision", "mean"], terms=terms)
    assert mode["x_missing"].shape == (int(data.isna().to_numpy().sum()),)


@pytest.mark.statistical
def test_mode_with_covariates_and_a_random_rate():
    design = np.random.default_rng(1).normal(size=(60, 1))
    data = rows() + design * [1.0, 0.0, -2.0, 0.0]
    model = bs.models.gaussian_graphical(
        data, prior="laplace", rate=pm.Gamma.dist(2.0, 1.0), covariates=design
    )
    mode = bs.find_MAP(model)
    names = ["precision", "mean", "coefficients", "rate"]
    terms = [*names, "x"]
    assert_is_mode(model, mode, names, terms=terms, gradient_tol=1e-3)


def slopes(model, mode):
    """Derivatives of the log density of matrix, means and observed values in the free elements of the matrix."""
    logp, K = natural_logp(model, ["precision", "mean", "x"]), mode["precision"]
    source, target = np.nonzero(np.triu(K))

    def height(change, i, j):
        other = K.copy()
        other[i, j] += change
        other[j, i] = other[i, j]
        return logp(mode | {"precision": other})

    step = 1e-5
    pairs = zip(source, target, strict=True)
    return [(height(step, i, j) - height(-step, i, j)) / (2 * step) for i, j in pairs]


@pytest.mark.chain
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_mode_of_a_g_wishart_matrix_given_the_most_probable_graph(missing):
    data = rows(n=80, seed=4)
    exact = bs.exact.gaussian_graphs(data, edge_probability=0.3).graphs["edges"][0]
    data = data.mask(np.random.default_rng(0).random(data.shape) < missing)
    model = bs.models.gaussian_graphical(data, prior="g_wishart", edge_probability=0.3)
    mode = bs.find_MAP(model)
    pairs = zip(*np.triu_indices(4, 1), strict=True)
    assert mode["edge"].tolist() == [f"x{i} -- x{j}" in exact.split(", ") for i, j in pairs]
    assert ((mode["precision"][np.triu_indices(4, 1)] != 0) == mode["edge"]).all()
    assert np.abs(slopes(model, mode)).max() < 2e-3
    if missing:
        assert mode["x_missing"].shape == (int(data.isna().to_numpy().sum()),)


def test_mode_of_a_g_wishart_matrix_with_a_learned_edge_probability():
    model = bs.models.gaussian_graphical(
        rows(), prior="g_wishart", edge_probability=pm.Beta.dist(2, 3), required=[("x0", "x3")]
    )
    mode = bs.find_MAP(model)
    assert mode["edge"][2] == 1
    chosen = mode["edge"].sum() - 1
    np.testing.assert_allclose(mode["edge_probability"], (chosen + 1) / (5 + 3))


def test_mode_of_a_matrix_with_a_known_graph():
    table = rows().to_numpy()
    with pm.Model():
        precision = bs.GWishart("precision", nx.cycle_graph(4), 4.0)
        pm.MvNormal("x", np.zeros(4), tau=precision, observed=table)
        mode = bs.find_MAP()
    S = (np.eye(4) + table.T @ table) / (4.0 + len(table) - 2.0)
    expected = bs.solvers.covariance_selection(S, nx.cycle_graph(4)).precision
    np.testing.assert_allclose(mode["precision"], expected, atol=1e-5)


@pytest.mark.chain
@pytest.mark.compiled
def test_find_map_takes_the_model_on_the_stack_and_its_mode_starts_chains():
    with bs.models.gaussian_graphical(rows()):
        mode = bs.find_MAP()
        idata = pm.sample(
            5,
            tune=0,
            chains=2,
            cores=1,
            initvals=mode,
            progressbar=False,
            compute_convergence_checks=False,
        )
    assert set(mode) == {"mean", "precision", "edge", "weight"}
    assert idata.posterior["edge"].shape == (2, 5, 6)


def test_edges_of_the_mode_are_the_probable_ones():
    mode = bs.find_MAP(bs.models.gaussian_graphical(rows(n=2000, p=5)))
    strong = np.abs(mode["weight"]) > 0.2
    assert mode["edge"][strong].all()


def test_a_model_without_a_known_prior_goes_to_pymc(caplog):
    with pm.Model() as model:
        pm.Normal("a", 3.0, 1.0)
    with caplog.at_level(logging.WARNING, logger="bayesstruct"):
        mode = bs.find_MAP(model)
    assert mode["a"] == pytest.approx(3.0, abs=1e-4)
    assert "no structure whose mode a solver of bayesstruct knows. Using pm.find_MAP" in caplog.text


def test_what_keeps_the_solver_away_is_said_in_a_sentence(caplog, monkeypatch):
    monkeypatch.setattr(pm, "find_MAP", lambda **kwargs: {})
    with bs.models.gaussian_graphical(rows(), prior="laplace") as model:
        pm.Normal("y", model["precision"].sum(), 1.0, observed=3.0)
    with caplog.at_level(logging.WARNING, logger="bayesstruct"):
        bs.find_MAP(model)
    assert (
        "the solver for the precision matrix 'precision' does not fit this model, because 'y' "
        "is not a multivariate normal with the precision 'precision'. Using pm.find_MAP"
        in caplog.text
    )


def test_a_discrete_structure_that_no_solver_serves_is_refused():
    with bs.models.gaussian_graphical(rows()) as model:
        pm.Normal("y", model["edge"].sum(), 1.0, observed=3.0)
    with pytest.raises(
        ValueError, match=r"no mode of 'edge', which is discrete: .* 'y' depends on"
    ):
        bs.find_MAP(model)


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (lambda: bs.models.latent_features(rows()), "'feature'"),
        (lambda: bs.models.dp_glm(rows(), rows().columns[0]), "'cluster'"),
    ],
)
def test_models_without_a_mode_say_what_to_do(model, names):
    with pytest.raises(ValueError, match=rf"{names}, which is discrete.*pm\.sample\(\)"):
        bs.find_MAP(model())


def test_discrete_variables_that_stay_are_named(caplog):
    with bs.models.gaussian_graphical(rows()) as model:
        pm.Poisson("k", 3.0)
    with caplog.at_level(logging.WARNING, logger="bayesstruct"):
        assert bs.find_MAP(model)["k"] == model.initial_point()["k"]
    assert "'k': discrete and not the edges of a known prior" in caplog.text


def test_too_few_rounds_are_said():
    data = rows().mask(np.random.default_rng(0).random((60, 4)) < 0.3)
    with pytest.warns(bs.TableWarning):
        model = bs.models.gaussian_graphical(data)
    with pytest.warns(ConvergenceWarning, match="raise max_rounds"):
        bs.find_MAP(model, max_rounds=1)
