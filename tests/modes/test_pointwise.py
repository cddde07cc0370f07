"""Log likelihood of single values given the rest of their row, against SciPy, enumeration and integration."""

import itertools

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from scipy import stats
from scipy.integrate import quad

import bayesstruct as bs


def numbers(gaps=False):
    rng = np.random.default_rng(5)
    x = [5, 50, -200] + np.array([1, 10, 100]) * rng.standard_normal((12, 3))
    x[:, 1] += 5 * (x[:, 0] - 5)
    if gaps:
        x[0, 1] = x[3, 0] = x[3, 2] = np.nan
    return pd.DataFrame(x, columns=list("abc"))


def states(gaps=False):
    rng = np.random.default_rng(6)
    x = np.column_stack([rng.integers(0, 3, 30), rng.integers(0, 2, 30), rng.integers(0, 3, 30)])
    x[:6] = [[0, 0, 0], [1, 1, 1], [2, 0, 2], [0, 1, 2], [1, 0, 0], [2, 1, 1]]
    x = x.astype(object)
    if gaps:
        x[8, 1] = x[9, 0] = None
    return pd.DataFrame(x, columns=list("abc"))


def prior_draws(model, n=3):
    """Draws from the prior as if they were a posterior: parameters of all kinds."""
    with model:
        idata = pm.sample_prior_predictive(n, random_seed=1)
    groups = {name: idata[name].to_dataset() for name in ("observed_data", "constant_data")}
    return xr.DataTree.from_dict({"posterior": idata["prior"].to_dataset(), **groups})


def completed(idata, d):
    """Table of one draw with its missing values, and which were missing."""
    table = idata["observed_data"]["x"].values.astype(float)
    missing = np.isnan(table)
    if missing.any():
        table[missing] = idata["posterior"]["x_missing"].values[0, d]
    return table, missing


def given_rest_of_normal(row, mean, covariance):
    out = []
    for j in range(len(row)):
        rest = np.delete(np.arange(len(row)), j)
        joint = stats.multivariate_normal(mean, covariance).logpdf(row)
        out.append(
            joint
            - stats.multivariate_normal(mean[rest], covariance[np.ix_(rest, rest)]).logpdf(
                row[rest]
            )
        )
    return out


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("model", [bs.models.gaussian_graphical, bs.models.bayesian_network])
def test_values_of_normal_rows(model, gaps):
    idata = prior_draws(model(numbers(gaps)))
    found = bs.pointwise(idata, random_seed=0)["log_likelihood"]["x"].values[0]
    covariance = bs.covariance(idata).values[0]
    own = bs.coefficients(idata).isel(chain=0)
    for d in range(3):
        table, missing = completed(idata, d)
        mean = own["intercept"].values[d]
        if "coefficient" in own:
            matrix = np.zeros((3, 3))
            for label, value in zip(
                own["ordered_pair"].values, own["coefficient"].values[d], strict=True
            ):
                matrix["abc".index(label[-1]), "abc".index(label[0])] = value
            mean = np.linalg.solve(np.eye(3) - matrix, mean)
        exact = np.array([given_rest_of_normal(row, mean, covariance[d]) for row in table])
        exact = exact[~missing] if missing.any() else exact
        np.testing.assert_allclose(found[d], exact, rtol=1e-8, atol=1e-8)


def test_values_of_normal_rows_some_of_which_were_set():
    was_set = np.zeros((12, 3), bool)
    was_set[:5, 1] = was_set[5, 0] = True
    table = numbers()
    idata = prior_draws(bs.models.bayesian_network(table, interventions=was_set), 2)
    values = bs.pointwise(idata, random_seed=0)
    assert values["observed_data"]["x"].sizes["value"] == 30
    own = bs.coefficients(idata).isel(chain=0)
    x, labels = table.to_numpy(), values["observed_data"]["value"].values.tolist()
    for d in range(2):
        matrix = np.zeros((3, 3))
        for label, value in zip(
            own["ordered_pair"].values, own["coefficient"].values[d], strict=True
        ):
            matrix["abc".index(label[-1]), "abc".index(label[0])] = value
        intercept, noise = own["intercept"].values[d], own["noise_sd"].values[d]

        def density(row, free, matrix=matrix, intercept=intercept, noise=noise):
            return np.exp(stats.norm.logpdf(row, intercept + matrix @ row, noise)[free].sum())

        for i, j in ((0, 0), (5, 1)):

            def of(value, i=i, j=j):
                row = x[i].copy()
                row[j] = value
                return density(row, ~was_set[i])

            spread = 60 * table.std().iloc[j]
            centre = x[i, j]
            total = sum(
                quad(of, a, b, limit=400)[0]
                for a, b in itertools.pairwise(np.linspace(centre - spread, centre + spread, 241))
            )
            found = values["log_likelihood"]["x"].values[0, d, labels.index(f"{'abc'[j]}[{i}]")]
            assert found == pytest.approx(np.log(of(x[i, j]) / total), abs=1e-4)


def given_rest_of_states(row, levels, log_density):
    out = []
    for j, k in enumerate(levels):
        others = [log_density([*row[:j], s, *row[j + 1 :]]) for s in range(k)]
        out.append(others[row[j]] - np.logaddexp.reduce(others))
    return out


@pytest.mark.parametrize("gaps", [False, True])
def test_values_of_a_markov_random_field(gaps):
    table = states(gaps)
    idata = prior_draws(bs.models.pairwise_mrf(table, potentials="ordinal", edge_probability=0.9))
    found = bs.pointwise(idata, random_seed=0)["log_likelihood"]["x"].values[0]
    for d in range(3):
        bias = np.split(idata["posterior"]["bias"].values[0, d], [2, 3])
        unary = [np.append(0, own) for own in bias]
        weight = idata["posterior"][
            "potential" if "potential" in idata["posterior"] else "weight"
        ].values[0, d]
        pairs = [(0, 1), (0, 2), (1, 2)]

        def log_density(row, unary=unary, weight=weight):
            inner = sum(w * row[i] * row[j] for w, (i, j) in zip(weight, pairs, strict=True))
            return sum(u[s] for u, s in zip(unary, row, strict=True)) + inner

        x, missing = completed(idata, d)
        exact = np.array(
            [given_rest_of_states(row.tolist(), (3, 2, 3), log_density) for row in x.astype(int)]
        )
        np.testing.assert_allclose(found[d], exact[~missing] if gaps else exact, atol=1e-10)


@pytest.mark.parametrize("kind", ["complete", "gaps", "set"])
def test_values_of_a_discrete_network(kind):
    was_set = np.zeros((30, 3), bool)
    was_set[10:14, 1] = kind == "set"
    table = states(kind == "gaps")
    idata = prior_draws(bs.models.bayesian_network(table, score="bdeu", interventions=was_set))
    found = bs.pointwise(idata, random_seed=0)["log_likelihood"]["x"].values[0]
    levels = (3, 2, 3)
    for d in range(3):
        dag = idata["posterior"]["dag"].values[0, d]
        tables = idata["posterior"]["table"].values[0, d]

        def of_column(row, i, dag=dag, tables=tables):
            configuration, factor = 0, 1
            for j in np.flatnonzero(dag[:, i]):  # the first parent changes fastest
                configuration, factor = configuration + factor * row[j], factor * levels[j]
            return np.log(tables[i, configuration * levels[i] + row[i]])

        x, missing = completed(idata, d)
        exact = np.array(
            [
                given_rest_of_states(
                    row.tolist(),
                    levels,
                    lambda r, free=free: sum(of_column(r, i) for i in np.flatnonzero(free)),
                )
                for row, free in zip(x.astype(int), ~was_set, strict=True)
            ]
        )
        shown = ~missing & ~was_set
        np.testing.assert_allclose(found[d], exact if shown.all() else exact[shown], atol=1e-10)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["normal", "states"])
def test_predictive_draws_have_the_conditional_distribution(name):
    if name == "normal":
        idata = prior_draws(bs.models.gaussian_graphical(numbers()), 1)
    else:
        idata = prior_draws(bs.models.pairwise_mrf(states()), 1)
    many = idata.isel(draw=np.zeros(3000, int), missing_dims="ignore")
    many = many.assign_coords(draw=np.arange(3000)) if hasattr(many, "assign_coords") else many
    values = bs.pointwise(many, random_seed=1)
    drawn = values["posterior_predictive"]["x"].values[0]
    observed = values["observed_data"]["x"].values
    log_likelihood = values["log_likelihood"]["x"].values[0, 0]
    if name == "states":
        share, p = (drawn == observed).mean(axis=0), np.exp(log_likelihood)
        assert (np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / 3000) + 1e-9).all()
        return
    mean, sd = drawn.mean(axis=0), drawn.std(axis=0)
    # The density at the observed value tells how far the mean is from it.
    np.testing.assert_allclose(
        stats.norm.logpdf(observed, mean, sd), log_likelihood, atol=0.3, rtol=0.1
    )


def test_arviz_compares_single_values():
    idata = prior_draws(bs.models.gaussian_graphical(numbers()), 60)
    values = bs.pointwise(idata, draws=50, random_seed=1)
    assert values["posterior"].sizes["draw"] == 50
    pit = az.loo_pit(values)["x"].values
    assert pit.shape == (12, 3)
    assert ((pit >= 0) & (pit <= 1)).all()


def test_results_without_such_values_are_refused():
    covariate = pd.DataFrame({"dose": np.arange(12.0)})
    idata = prior_draws(bs.models.gaussian_graphical(numbers(), covariates=covariate), 2)
    with pytest.raises(ValueError, match="gaussian_graphical without covariates"):
        bs.pointwise(idata)
    idata = prior_draws(bs.models.gaussian_neighbourhoods(numbers()), 2)
    with pytest.raises(ValueError, match="likelihood of single values already"):
        bs.pointwise(idata)
    idata = prior_draws(bs.models.gaussian_graphical(numbers()), 2)
    with pytest.raises(ValueError, match="no observed table `x`"):
        bs.pointwise(idata.drop_nodes("observed_data"))
