"""Predictions of empty values under mixtures of regressions, against integrals over a grid of closed-form densities."""

import itertools

import numpy as np
import pandas as pd
import pytest

from scipy import special, stats
from tools.rows import flat, prior_result

import bayesstruct as bs

from bayesstruct.data import TableError
from bayesstruct.mixtures.reading import rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2)) * [1.0, 10.0] + [0.0, 50.0]
TABLES = {
    "gaussian": 3 * X[:, 0] + 0.1 * X[:, 1] + RNG.normal(size=12),
    "logistic": (X[:, 0] + RNG.normal(size=12) > 0).astype(float),
    "poisson": RNG.poisson(2.0, 12).astype(float),
}
ROWS = pd.DataFrame(
    {
        "a": [0.3, np.nan, np.nan, 0.8, np.nan, 2.5],
        "b": [45.0, 55.0, 40.0, np.nan, np.nan, 51.0],
        "y": [np.nan, 1.0, np.nan, 0.0, 1.0, np.nan],
    },
    index=list("pqrstu"),
)


def result(family):
    table = pd.DataFrame({"y": TABLES[family], "a": X[:, 0], "b": X[:, 1]})
    model = bs.models.dp_glm(table, "y", family=family, alpha=0.5, max_clusters=12)
    return model, prior_result(model, 12)


def densities(model, idata, family, a, b, y):
    """Average over draws of the joint density of rows: clusters of the draw, and a new one in closed form."""
    given = {
        k: np.asarray(v.eval())
        for k, v in model.named_vars.items()
        if v.owner is None and k not in idata["posterior"]
    }
    names = ("cluster", "covariate_mean", "covariate_variance", "coefficient")
    cluster, mean, variance, coefficient = (flat(idata, name) for name in names)
    noise = flat(idata, "noise_variance")[..., 0] if family == "gaussian" else None
    x, total = np.stack([a, b], axis=-1), 0.0
    center = given["covariate_location"]

    def response(eta, v):
        if family == "gaussian":
            return stats.norm.pdf(y, eta, np.sqrt(v))
        if family == "logistic":
            return stats.bernoulli.pmf(y, special.expit(eta))
        return stats.poisson.pmf(y, np.exp(eta))

    for s, labels in enumerate(cluster.astype(int)):
        for k, count in enumerate(np.bincount(labels)):
            part = count * stats.norm.pdf(x, mean[s, k], np.sqrt(variance[s, k])).prod(axis=-1)
            eta = coefficient[s, k, 0] + (x - center) @ coefficient[s, k, 1:]
            total = total + part * response(eta, noise[s, k] if noise is not None else None)
    shape, strength = float(given["covariate_shape"]), given["covariate_strength"]
    scale = np.sqrt(given["covariate_rate"] / shape * (1 + 1 / strength))
    new = 0.5 * stats.t.pdf(x, 2 * shape, center, scale).prod(axis=-1)
    row = np.concatenate([np.ones((*x.shape[:-1], 1)), x - center], axis=-1)
    eta, spread = (
        row @ given["coefficient_location"],
        (row**2 / given["coefficient_strength"]).sum(-1),
    )
    if family == "gaussian":
        a0, b0 = float(given["noise_shape"]), float(given["noise_rate"])
        own = stats.t.pdf(y, 2 * a0, eta, np.sqrt(b0 / a0 * (1 + spread)))
    else:
        nodes, weights = np.polynomial.hermite_e.hermegauss(40)
        each = [
            w * response(eta + u * np.sqrt(spread), None)
            for u, w in zip(nodes, weights, strict=True)
        ]
        own = sum(each) / weights.sum()
    return total + len(cluster) * new * own


def moments(model, idata, family, row, column):
    """Mean, deviation and ends of the 90 % interval of an empty value by integrals over the empty ones."""
    steps = {
        "a": np.linspace(-12, 12, 241),
        "b": np.linspace(-80, 180, 241),
        "y": np.linspace(-80, 80, 641),
    }
    if family == "logistic":
        steps["y"] = np.array([0.0, 1.0])
    elif family == "poisson":
        steps["y"] = np.arange(400.0)
    axes = [steps[c] if np.isnan(row[c]) else np.array([row[c]]) for c in "aby"]
    a, b, y = np.meshgrid(*axes, indexing="ij")
    density = densities(model, idata, family, a, b, y)
    place = "aby".index(column)
    weight = density.sum(axis=tuple({0, 1, 2} - {place}))
    weight /= weight.sum()
    values = axes[place]
    mean = weight @ values
    ends = [values[np.searchsorted(np.cumsum(weight), q)] for q in (0.05, 0.95)]
    return mean, np.sqrt(weight @ (values - mean) ** 2), *ends


@pytest.mark.statistical
@pytest.mark.parametrize("family", TABLES)
def test_empty_values_have_their_conditional_distribution(family):
    model, idata = result(family)
    found = bs.predict(idata, ROWS, ci_prob=0.9)
    places = itertools.product(ROWS.index, "aby")
    empty = [(row, column) for row, column in places if np.isnan(ROWS.loc[row, column])]
    assert list(zip(found["row"], found["column"], strict=True)) == empty
    for line in found.itertuples():
        mean, deviation, *ends = moments(model, idata, family, ROWS.loc[line.row], line.column)
        # A new cluster is integrated over by 1,000 draws, and the ends are values of the grid.
        step = {"a": 0.1, "b": 1.1, "y": 0.0 if family == "logistic" else 0.25}[line.column]
        for low, high in zip((line.low, line.high), ends, strict=True):
            assert abs(low - high) <= step + 0.05 * deviation
        if (family, line.row, line.column) == ("poisson", "r", "y"):
            assert line.mean == line.sd == np.inf  # exponentials of a t distribution have no mean
        else:
            assert abs(line.mean - mean) < 0.03 * deviation
            assert abs(line.sd - deviation) < 0.03 * deviation


def test_responses_given_all_predictors_are_those_of_mixture_predictions():
    _, idata = result("gaussian")
    some = ROWS.loc[["p", "u"], ["b", "a"]]
    found, known = bs.predict(idata, some), bs.mixture_predictions(idata, some)
    np.testing.assert_array_equal(found["row"], known.index)
    np.testing.assert_allclose(found["mean"], known["mean"], atol=0.03 * known["sd"].max())
    np.testing.assert_allclose(found["sd"], known["sd"], rtol=0.05)
    by_position = bs.predict(idata, some[["a", "b"]].to_numpy())
    np.testing.assert_array_equal(by_position["mean"], found["mean"])


@pytest.mark.parametrize(("family", "y"), [("logistic", 1.0), ("poisson", 0.0), ("poisson", 60.0)])
def test_an_empty_predictor_far_from_what_was_expected(family, y):
    """One part, and a response that moves the predictor by several standard deviations, against a grid."""
    eta, spread, slope = np.array([-2.0]), 4.0, 1.3
    law = rows._Law(
        np.zeros(1), np.array([[7.0]]), np.array([[spread / slope**2]]), np.array([[slope]])
    )
    found = rows._given_response(family, y, eta, law).moments(0.9)[0]
    grid = np.linspace(-14, 10, 24_001)
    logs = stats.norm.logpdf(grid, eta, np.sqrt(spread))
    logs += (
        stats.bernoulli.logpmf(y, special.expit(grid))
        if family == "logistic"
        else stats.poisson.logpmf(y, np.exp(grid))
    )
    weight = np.exp(logs - special.logsumexp(logs))
    values = 7.0 + (grid + 2.0) / slope
    mean = weight @ values
    deviation = np.sqrt(weight @ (values - mean) ** 2)
    ends = [values[np.searchsorted(np.cumsum(weight), q)] for q in (0.05, 0.95)]
    np.testing.assert_allclose(found, [mean, deviation, *ends], atol=0.02 * deviation)


def test_counts_with_an_uncertain_predictor_have_lognormal_means():
    eta, spread, weight = np.array([0.5, -1.0]), np.array([4.0, 1.0]), np.array([0.3, 0.7])
    mean, deviation, *_ = rows._count(eta, spread, weight, 0.9)
    rate = stats.lognorm(np.sqrt(spread), scale=np.exp(eta))
    np.testing.assert_allclose(mean, weight @ rate.mean())
    square = weight @ (rate.mean() + rate.var() + rate.mean() ** 2)
    np.testing.assert_allclose(deviation, np.sqrt(square - mean**2))


def test_counts_beyond_all_whole_numbers_have_an_interval():
    _, _, low, high = rows._count(np.array([5.0, 40.0]), np.zeros(2), np.array([0.9, 0.1]), 0.94)
    assert low < np.exp(5.0) < 1e17 < high


def test_results_of_earlier_versions_do_not_know_the_name_of_the_response():
    _, idata = result("gaussian")
    del idata["constant_data"]["response_name"]
    with pytest.raises(TableError, match="call this column 'response'"):
        bs.predict(idata, ROWS)
    found = bs.predict(idata, ROWS.rename(columns={"y": "response"}))
    assert {*found["column"]} == {"a", "b", "response"}


def test_rows_that_cannot_be_read_are_refused():
    _, idata = result("logistic")
    with pytest.raises(TableError, match="3 columns without names, the model has 2 predictors"):
        bs.predict(idata, ROWS.to_numpy())
    with pytest.raises(
        TableError, match="'y': the response of a logistic regression must be 0 and 1"
    ):
        bs.predict(idata, ROWS.assign(y=2.0))
    with pytest.raises(TableError, match="'b' of the model is absent"):
        bs.predict(idata, ROWS[["a", "y"]])
    with pytest.raises(ValueError, match="`setting` does not apply to mixtures of regressions"):
        bs.predict(idata, ROWS, setting={"a": 1.0})
