"""Parameters in the units of the table, against formulas and regressions in these units."""

import numpy as np
import pytest
import xarray as xr

from tools.dags import dag_posterior, random_dags
from tools.posteriors import bernoulli_posterior, posterior

import bayesstruct as bs

from bayesstruct.graphs.records import NODEWISE

LOCATION = np.array([5.0, 50.0, -200.0])
SCALE = np.array([1.0, 10.0, 100.0])


def in_units(tree, **variables):
    """Put the units of the columns, and variables, into a result."""
    constants = tree["constant_data"].to_dataset()
    constants = constants.assign(location=("node", LOCATION), scale=("node", SCALE))
    draws = tree["posterior"].to_dataset().assign(variables)
    return xr.DataTree.from_dict({"posterior": draws, "constant_data": constants})


@pytest.fixture
def graphical(rng):
    root = rng.normal(size=(2, 30, 3, 5))
    tree = posterior(np.ones((2, 30, 3), int), precision=root @ root.mT)
    return in_units(tree, mean=(("chain", "draw", "node"), rng.normal(size=(2, 30, 3))))


@pytest.fixture
def network(rng):
    graphs = random_dags(rng, 60, 3, 0.7).reshape(2, 30, 3, 3)
    columns = ("chain", "draw", "node")
    return in_units(
        dag_posterior(graphs),
        intercept=(columns, rng.normal(size=(2, 30, 3))),
        noise_variance=(columns, rng.gamma(2, size=(2, 30, 3))),
    )


def standard_rows(tree, rng, chain, draw, n=200_000):
    """Rows of a network in the units of the table, column by column along the graph."""
    draws = tree["posterior"].isel(chain=chain, draw=draw)
    dag = draws["dag"].values
    source, target = (tree["constant_data"][f"arc_{end}"].values for end in ("source", "target"))
    weight = np.zeros((3, 3))
    weight[source, target] = draws["weight"].values
    z = np.zeros((n, 3))
    for i in np.argsort(np.linalg.matrix_power(np.eye(3) + dag, 3).astype(bool).sum(axis=0)):
        noise = rng.standard_normal(n) * np.sqrt(draws["noise_variance"].values[i])
        z[:, i] = draws["intercept"].values[i] + z @ weight[:, i] + noise
    return LOCATION + SCALE * z, dag


def test_covariance_and_precision_of_a_graphical_model(graphical):
    standard = graphical["posterior"]["precision"].values
    covariance = bs.covariance(graphical)
    assert covariance.dims == ("chain", "draw", "node", "node_")
    assert covariance.attrs["units"] == "those of the table"
    expected = np.linalg.inv(standard[1, 7]) * np.outer(SCALE, SCALE)
    np.testing.assert_allclose(covariance[1, 7], expected, rtol=1e-10)
    precision = bs.precision_matrix(graphical)
    np.testing.assert_allclose(precision[1, 7], np.linalg.inv(expected), rtol=1e-8)
    # Partial correlations do not depend on units.
    root = np.sqrt(np.diagonal(standard, axis1=-2, axis2=-1))
    diagonal = np.sqrt(np.diagonal(precision, axis1=-2, axis2=-1))
    np.testing.assert_allclose(
        precision / (diagonal[..., None] * diagonal[..., None, :]),
        standard / (root[..., None] * root[..., None, :]),
    )


def test_means_of_a_graphical_model(graphical):
    found = bs.coefficients(graphical)
    assert list(found) == ["intercept"]
    mean = graphical["posterior"]["mean"].values
    np.testing.assert_allclose(found["intercept"], LOCATION + SCALE * mean)


def test_coefficients_of_covariates(graphical, rng):
    slopes = rng.normal(size=(2, 30, 2, 3))
    location, scale = np.array([7.0, -1.0]), np.array([3.0, 0.1])
    draws = graphical["posterior"].to_dataset()
    draws = draws.assign(coefficients=(("chain", "draw", "covariate", "node"), slopes))
    constants = graphical["constant_data"].to_dataset()
    constants = constants.assign(
        covariate_center=("covariate", location), covariate_unit=("covariate", scale)
    )
    tree = xr.DataTree.from_dict({"posterior": draws, "constant_data": constants})
    found, covariates = bs.coefficients(tree), np.array([6.5, 2.0])
    expected = found["intercept"] + (found["coefficient"] * covariates[:, None]).sum("covariate")
    standard = draws["mean"].values + np.einsum(
        "cdqp,q->cdp", slopes, (covariates - location) / scale
    )
    np.testing.assert_allclose(expected, LOCATION + SCALE * standard)


def test_covariance_of_a_network_is_that_of_its_rows(network, rng):
    for chain, draw in ((0, 0), (1, 11)):
        rows, _ = standard_rows(network, rng, chain, draw)
        found = bs.covariance(network)[chain, draw].values
        error = np.sqrt((np.outer(np.diag(found), np.diag(found)) + found**2) / len(rows))
        assert (np.abs(found - np.cov(rows.T)) < 5 * error).all()
    product = bs.covariance(network).values @ bs.precision_matrix(network).values
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(3), product.shape), atol=1e-8)


def test_coefficients_of_a_network_are_regressions_in_the_units_of_the_table(network, rng):
    rows, dag = standard_rows(network, rng, 1, 11)
    found = bs.coefficients(network).isel(chain=1, draw=11)
    for child in range(3):
        parents = np.flatnonzero(dag[:, child])
        design = np.column_stack([np.ones(len(rows)), rows[:, parents]])
        fitted, rss, *_ = np.linalg.lstsq(design, rows[:, child])
        noise = np.sqrt(rss[0] / len(rows))
        error = noise * np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
        labels = [f"v{j} -> v{child}" for j in parents]
        own = [found["intercept"][child], *found["coefficient"].sel(ordered_pair=labels)]
        assert (np.abs(np.array(own, float) - fitted) < 5 * error).all()
        assert found["noise_sd"][child] == pytest.approx(noise, rel=0.02)
    absent = found["coefficient"].values[network["posterior"]["arc"].values[1, 11] == 0]
    assert (absent == 0).all()


def test_a_table_of_arcs_says_of_which_unit_it_is(network):
    notes = bs.arc_table(network).attrs["notes"]
    assert any("bs.coefficients(idata) has them in the units of the table" in n for n in notes)


def test_graphs_alone_and_groups_are_refused_with_the_remedy(rng):
    alone = bernoulli_posterior([0.5, 0.5, 0.5])
    constants = alone["constant_data"].to_dataset()
    with_record = constants.assign(composite_likelihood=NODEWISE)
    tree = xr.DataTree.from_dict({"posterior": alone["posterior"].ds, "constant_data": with_record})
    grouped = in_units(
        alone,
        precision=(
            ("chain", "draw", "group", "node", "node_"),
            np.ones((*alone["posterior"]["edge"].shape[:2], 2, 3, 3)),
        ),
    )
    for reader in (bs.covariance, bs.precision_matrix):
        with pytest.raises(ValueError, match=r"graphs alone.*bs.precision_draws"):
            reader(tree)
        with pytest.raises(ValueError, match=r"each group of rows.*bs.one_group"):
            reader(grouped)


def test_results_without_such_parameters_are_refused(network):
    states = dag_posterior(random_dags(np.random.default_rng(0), 20, 3).reshape(1, 20, 3, 3))
    for reader in (bs.covariance, bs.precision_matrix, bs.coefficients):
        with pytest.raises(ValueError, match=r"its columns are states.*gaussian_graphical"):
            reader(states)
        with pytest.raises(ValueError, match=r"its columns are states"):
            reader(bernoulli_posterior([0.5, 0.5, 0.5]))
    constants = network["constant_data"].to_dataset().assign(arc_acyclic=0)
    tree = xr.DataTree.from_dict({"posterior": network["posterior"].ds, "constant_data": constants})
    with pytest.raises(ValueError, match=r"set of regressions.*bs.coefficients"):
        bs.covariance(tree)
    assert set(bs.coefficients(tree)) == {"coefficient", "intercept", "noise_sd"}
    bare = constants.drop_vars(["location", "scale"])
    tree = xr.DataTree.from_dict({"posterior": network["posterior"].ds, "constant_data": bare})
    with pytest.raises(ValueError, match="does not record `location` and `scale`"):
        bs.coefficients(tree)
