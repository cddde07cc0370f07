"""Mixtures of regressions, from a table to predictions."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats
from tools.mixtures import clusters, log_columns, log_posterior, log_regression
from tools.partitions import posterior_of, sizes

import bayesstruct as bs

from bayesstruct.data import TableError
from bayesstruct.mixtures.steps import DirichletMixtureGibbs
from bayesstruct.models.dp_glm import dp_glm


def sampled(model, draws, **options):
    with model:
        return pm.sample(
            draws,
            chains=2,
            cores=1,
            random_seed=7,
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
            **options,
        )


def two_lines(n=80, seed=0):
    """Two clusters with lines of opposite slopes."""
    rng = np.random.default_rng(seed)
    first = rng.random(n) < 0.6
    a = np.where(first, -2.0, 2.0) + 0.6 * rng.normal(size=n)
    b = rng.normal(size=n)
    y = np.where(first, 2 * (a + 2), -3 * (a - 2)) + 0.2 * rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "y": 100 * y}), first


def hyperparameters(model):
    """Constants of the priors, read from the model."""
    names = ["strength", "shape", "rate", "location"]
    columns = [model[f"covariate_{name}"].get_value() for name in names]
    regression = [model[f"coefficient_{name}"].get_value() for name in ("strength", "location")]
    return columns, regression, [model[f"noise_{n}"].get_value() for n in ("shape", "rate")]


def exact_moments(model, x, y, new, alpha):
    """Mean, variance and probability of a new cluster of a response, by all partitions."""
    (strength, shape, rate, location), (weight, start), (a, b) = hyperparameters(model)
    x, new = x - location, new - location
    design, row = np.column_stack([np.ones(len(x)), x]), np.append(1.0, new)
    y, level = y - design @ start, row @ start

    def log_cluster(own):
        response = log_regression(design[own], y[own], weight, a, float(b))
        return log_columns(x[own], strength, shape, rate) + response

    sums = np.zeros(4)
    for labels, chance in posterior_of(
        lambda labels: log_posterior(labels, alpha, log_cluster), len(x)
    ).items():
        parts = [*clusters(np.array(labels)), np.zeros(len(x), bool)]
        for rows, size in zip(parts, [*sizes(labels), alpha], strict=True):
            density = log_columns(np.vstack([x[rows], new]), strength, shape, rate)
            if rows.any():
                density -= log_columns(x[rows], strength, shape, rate)
            d = design[rows]
            cover = np.linalg.inv(np.diag(weight) + d.T @ d)
            beta = cover @ d.T @ y[rows]
            rest = y[rows] @ y[rows] - beta @ np.linalg.solve(cover, beta)
            noise = (b + rest / 2) / (a + rows.sum() / 2 - 1)
            mean = level + row @ beta
            share = chance * size * np.exp(density)
            square = mean**2 + noise * (1 + row @ cover @ row)
            sums += share * np.array([1.0, mean, square, not rows.any()])
    _, mean, square, own = sums / sums[0]
    return mean, np.sqrt(square - mean**2), own


@pytest.mark.chain
@pytest.mark.compiled
def test_predictions_are_those_of_all_partitions():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(5, 1)) + np.array([[-1.5], [-1.5], [0], [1.5], [1.5]])
    y = abs(x[:, 0]) + 0.1 * rng.normal(size=5)
    new = np.array([[-1.0], [0.5], [6.0]])
    table = pd.DataFrame({"v": x[:, 0], "y": y})
    model = dp_glm(table, "y", alpha=0.8)
    idata = sampled(model, 2000, tune=50)
    found = bs.mixture_predictions(idata, pd.DataFrame({"v": new[:, 0]}, ["p", "q", "r"]))
    assert [*found.index] == ["p", "q", "r"]
    expected = np.array([exact_moments(model, x, y, row, 0.8) for row in new])
    # Errors by twenty parts of the run, longer than it remembers; those of deviations are below one in a hundred.
    parts = [idata.isel(draw=slice(k, k + 100)) for k in range(0, 2000, 100)]
    errors = np.std([bs.mixture_predictions(part, new) for part in parts], axis=0) / np.sqrt(19)
    assert (errors[:, 1] < 0.01 * expected[:, 1]).all()
    assert (abs(found[["mean", "sd", "new_cluster"]] - expected) < 4.5 * errors).all(axis=None)
    assert expected[2, 2] > 0.5  # far from all rows
    # Without names: the columns of the model in their order.
    np.testing.assert_allclose(bs.mixture_predictions(idata, new)["mean"], found["mean"])


@pytest.mark.chain
@pytest.mark.compiled
def test_two_lines_are_found_and_read():
    table, first = two_lines()
    model = dp_glm(table, "y", coefficient_scale=5.0, max_clusters=20)
    idata = sampled(model, 150, tune=100)
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(
            idata, extend_inferencedata=True, random_seed=8, progressbar=False
        )
    assert idata["log_likelihood"]["y"].shape == (2, 150, 80)
    assert idata["posterior_predictive"]["x"].shape == (2, 150, 80, 2)
    with pm.do(model, {"x": table[["a", "b"]].to_numpy()}):
        replicated = pm.sample_posterior_predictive(
            idata, var_names=["y"], random_seed=8, progressbar=False
        )["posterior_predictive"]["y"].mean(("chain", "draw"))
    assert np.corrcoef(replicated, table["y"])[0, 1] > 0.97
    together = bs.co_clustering(idata).to_numpy()
    same = first[:, None] == first
    assert together[same].mean() > 0.85
    assert together[~same].mean() < 0.05
    np.testing.assert_allclose(np.diag(together), 1.0)
    clusters_ = bs.cluster_table(idata)
    assert (clusters_["probability"].head(2) > 0.9).all()
    slopes = bs.cluster_coefficients(idata).query("term == 'a' and cluster <= 2")
    expected = [200.0, -300.0] if first.mean() > 0.5 else [-300.0, 200.0]
    np.testing.assert_allclose(slopes["mean"], expected, rtol=0.15)
    assert (slopes["hdi_low"] < slopes["mean"]).all()
    assert (slopes["hdi_high"] > slopes["mean"]).all()
    new, _ = two_lines(200, seed=1)
    predicted = bs.mixture_predictions(idata, new)
    error = (predicted["mean"] - new["y"]).std()
    assert error < 0.25 * new["y"].std()
    # About 95 % of the responses are within two deviations.
    inside = abs(predicted["mean"] - new["y"]) < 2 * predicted["sd"]
    assert inside.mean() > 0.88


@pytest.mark.chain
@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_other_responses(family):
    table, first = two_lines(150)
    rng = np.random.default_rng(5)
    eta = np.clip(table["y"] / 100, -2, 2)
    if family == "logistic":
        table["y"] = rng.random(150) < 1 / (1 + np.exp(-eta))
    else:
        table["y"] = rng.poisson(np.exp(eta))
    model = dp_glm(table[["a", "b"]], table["y"], family=family, alpha=1.0, max_clusters=15)
    idata = sampled(model, 200, tune=300)
    together = bs.co_clustering(idata).to_numpy()
    assert together[first[:, None] == first].mean() > together[first[:, None] != first].mean() + 0.3
    predicted = bs.mixture_predictions(idata, table)
    mean = 1 / (1 + np.exp(-eta)) if family == "logistic" else np.exp(eta)
    assert np.corrcoef(predicted["mean"], mean)[0, 1] > 0.7
    assert (predicted["sd"] > 0).all()


def test_moments_of_new_clusters_by_simulation():
    from bayesstruct.mixtures.reading.predictions import MixtureDraws, new_cluster
    from bayesstruct.mixtures.reading.records import MixturePrior

    table, _ = two_lines(20)
    rng = np.random.default_rng(6)
    for family in ("gaussian", "logistic", "poisson"):
        y = {"gaussian": table["y"], "logistic": table["y"] > 0, "poisson": abs(table["y"] // 50)}
        model = dp_glm(
            table[["a", "b"]], y[family], family=family, coefficient_scale=0.3, max_clusters=2
        )
        skipped = ("x", "y", "response_name")
        known = {v.name: v.get_value() for v in model.data_vars if v.name not in skipped}
        names = {one.name: one.metadata["name"] for one in fields(MixturePrior)}
        prior = MixturePrior(**{field: known.get(name) for field, name in names.items()})
        result = MixtureDraws(*[None] * 6, prior, ["a", "b"], family)
        x = np.array([[0.5, -0.3]])
        design = np.column_stack([[1.0], x - prior.location])
        logs, mean, square = new_cluster(result, x, design)
        beta = rng.normal(size=(40_000, 3)) / np.sqrt(known["coefficient_strength"])
        if family == "gaussian":
            noise = known["noise_rate"] / rng.gamma(known["noise_shape"], size=40_000)
            y = design @ (known["coefficient_location"] + beta * np.sqrt(noise)[:, None]).T
            assert abs(y.mean() - mean) < 5 * y.std() / 200
        else:
            eta = (design @ (known["coefficient_location"] + beta).T)[0]
            y = 1 / (1 + np.exp(-eta)) if family == "logistic" else np.exp(eta)
            assert abs(y.mean() - mean) < 5 * y.std() / 200
            expected = y if family == "logistic" else y + y**2
            assert abs(expected.mean() - square) < 5 * expected.std() / 200
        scale = np.sqrt(known["covariate_rate"] / 2 * (1 + 1 / known["covariate_strength"]))
        expected = stats.t(4, known["covariate_location"], scale).logpdf(x).sum()
        assert logs == pytest.approx(expected)


def test_units_do_not_matter():
    table, _ = two_lines(30)
    other = table * [1e6, 1e-6, 1e3] + [5e6, 3e-6, -7]
    chains = []
    for data in (table, other):
        with dp_glm(data, "y", alpha=1.0, max_clusters=20) as model:
            step = DirichletMixtureGibbs(
                [v for v in model.value_vars if v.name != "alpha"], rng=np.random.default_rng(1)
            )
        step.setup_chain(np.random.default_rng(1), 0, 1)
        point = model.initial_point()
        for _ in range(20):
            point, _ = step.step(point)
        chains.append(point)
    assert (chains[0]["cluster"] == chains[1]["cluster"]).all()
    ratio = chains[1]["coefficient"][0, 1] / chains[0]["coefficient"][0, 1]
    assert ratio == pytest.approx(1e-3, rel=1e-6)


def test_the_model_refuses_bad_tables():
    table, _ = two_lines(20)
    for data, response, words in [
        (table.assign(a=np.nan), "y", "'a'"),
        (table.assign(a=table["a"].where(table["a"] > 0)), "y", "'a': missing values"),
        (table.assign(b=1.0), "y", "'b'"),
        (table.assign(b="text"), "y", "'b'"),
        (table.assign(b=np.inf), "y", "'b'"),
        (table, "z", "unknown response 'z'"),
        (table, table["y"], "'y' is both"),
        (table[["a"]], np.zeros(3), "20 numbers"),
        (table[["y"]], "y", "column"),
    ]:
        with pytest.raises(TableError, match=words):
            dp_glm(data, response)
    with pytest.raises(TableError, match="0 and 1"):
        dp_glm(table, "y", family="logistic")
    with pytest.raises(TableError, match="count"):
        dp_glm(table, "y", family="poisson")
    with pytest.raises(ValueError, match="numbers"):
        dp_glm(table[["a", "b"]], ["u"] * 20)


def test_the_model_refuses_bad_options():
    table, _ = two_lines(20)
    for options, words in [
        ({"family": "gamma"}, "`family`"),
        ({"alpha": 0.0}, "`alpha`"),
        ({"alpha": "1"}, "`alpha`"),
        ({"within": -1}, "`within`"),
        ({"mean_strength": np.inf}, "`mean_strength`"),
        ({"coefficient_scale": True}, "`coefficient_scale`"),
        ({"max_clusters": 2.5}, "`max_clusters`"),
    ]:
        with pytest.raises((TypeError, ValueError), match=words):
            dp_glm(table, "y", **options)
