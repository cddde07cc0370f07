"""Gaussian graphical models of columns that are not normal: options, tables, results, agreement with normal columns."""

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats

import bayesstruct as bs

from bayesstruct.data.errors import TableError, TableWarning
from bayesstruct.models import gaussian_graphical

QUIET = {"progressbar": False, "chains": 2, "cores": 1, "compute_convergence_checks": False}


def numbers(n=40, p=4, gaps=False):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, p))
    z[:, 1] += z[:, 0]
    z = 100.0 + z * [10.0, 0.1, 1.0, 50.0][:p]
    if gaps:
        z[3, 1] = z[7, 0] = z[7, 3] = np.nan
    return pd.DataFrame(z, columns=["mood", "sleep", "worry", "energy"][:p])


def several(n=40, gaps=False):
    """Numbers, skewed numbers, ordered categories, booleans and counts."""
    table = numbers(n, gaps=gaps)
    out = pd.DataFrame({"mood": table["mood"], "sleep": np.exp(table["sleep"])})
    out["worry"] = pd.qcut(table["worry"], 3, labels=["low", "some", "high"])
    out["energy"] = (table["energy"] > 100).where(table["energy"].notna()).astype("boolean")
    out["visits"] = np.random.default_rng(1).poisson(3, n)
    return out


def robust(table):
    """Medians and median absolute deviations as standard deviations of normal columns."""
    median = table.median()
    return median.values, 1.4826 * (table - median).abs().median().values


def sample(model, draws=60, **options):
    with model:
        return pm.sample(draws, tune=40, random_seed=1, **QUIET, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"marginals": "ranks"}, "rank"),
        ({"degrees": 4.0}, "student"),
        ({"marginals": "student", "degrees": -1.0}, "`degrees` must be above 0"),
        ({"marginals": "student", "degrees": pm.Normal.dist()}, "`degrees` is one positive number"),
        (
            {"marginals": "alternative_student", "degrees": pm.Gamma.dist([1, 2], 1)},
            "without a shape",
        ),
        ({"marginals": "rank", "covariates": numbers()[["mood"]] * 2}, "put the covariates into"),
        ({"marginals": "mixed", "standardize": False}, "standardize"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        gaussian_graphical(numbers(), **options)


@pytest.mark.parametrize("marginals", ["rank", "mixed"])
def test_codes_gaps_and_row_numbers_are_remarked_upon(marginals):
    table = numbers().assign(state=np.arange(40) % 2 == 0)
    coded, gaps, rows = table.copy(), table.copy(), table.assign(row=np.arange(40))
    coded.iloc[:4, 0] = -999
    gaps.iloc[:30, 0] = np.nan
    for own, message in (
        (coded, r"missing_codes={'mood': -999}"),
        (gaps, "ore than 50% is missing in column 'mood'"),
        (rows, "'row': counts the rows"),
    ):
        with pytest.warns(bs.TableWarning, match=message):
            gaussian_graphical(own, marginals=marginals)


def test_normal_columns_of_mixed_tables_are_looked_at():
    table = numbers().assign(state=np.arange(40) % 2 == 0)
    skewed = np.exp(np.random.default_rng(1).normal(size=40) * 2)
    with pytest.warns(bs.TableWarning, match="'skewed': far from normal"):
        gaussian_graphical(table.assign(skewed=skewed), marginals="mixed")
    gaussian_graphical(table.assign(skewed=skewed), marginals="rank")
    with pytest.warns(bs.TableWarning, match="linear combination of the others"):
        gaussian_graphical(table.assign(sum=table.iloc[:, :2].sum(axis=1)), marginals="mixed")


@pytest.mark.parametrize("marginals", ["student", "alternative_student", "rank", "mixed"])
def test_a_covariance_matrix_has_no_rows(marginals):
    with pytest.raises(ValueError, match="needs the rows"):
        gaussian_graphical(cov=numbers().cov(), n=40, marginals=marginals)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.Categorical(["a"] * 40, ["a", "b"], ordered=True), "'new' is constant"),
        (["a", "b", "c", "d"] * 10, "'new' has 4 states without an order"),
        (pd.Categorical(["a", "b", "c", "d"] * 10), "ordered=True.*pairwise_mrf"),
        (pd.date_range("2020", periods=40), "'new' holds dates"),
        (np.exp(numbers()["mood"] / 10), "'mood' and 'new' are exact duplicates"),
        ([np.nan] * 39 + [1.0], "'new': a single observed value"),
    ],
)
@pytest.mark.filterwarnings("ignore::bayesstruct.data.errors.TableWarning")
def test_columns_that_cannot_be_used_are_named(column, message):
    with pytest.raises(TableError, match=message):
        gaussian_graphical(numbers().assign(new=column), marginals="rank")


def test_which_columns_count_by_their_order():
    from bayesstruct.data.ranks import RankTable

    with pytest.warns(bs.TableWarning, match="'visits': few whole numbers"):
        table = RankTable.read(several(gaps=True), numbers=True)
    assert table.by_order.tolist() == [False, False, True, True, False]
    assert table.codes[:, 2].tolist().count(-1) == 0
    assert table.codes[7].tolist()[0] == -1
    assert table.codes[7, 3] == -1
    assert (table.codes[:, 4] == -2).all()
    words = pd.DataFrame({"a": ["yes", "no", "yes", None], "b": [1.5, 2.5, 0.5, 3.0]})
    assert RankTable.read(words, numbers=True).codes[:, 0].tolist() == [1, 0, 1, -1]


def test_a_mixed_table_of_numbers_is_the_normal_model():
    model = gaussian_graphical(numbers(), marginals="mixed")
    assert [v.name for v in model.free_RVs] == ["mean", "precision", "edge"]


def test_a_mixed_table_of_numbers_is_remarked_upon_once():
    counts = numbers().assign(answer=np.arange(40) % 4)
    with pytest.warns(TableWarning) as found:
        gaussian_graphical(counts, marginals="mixed")
    (remark,) = [str(one.message) for one in found]
    assert "'answer': 0, 1, 2 and 3" in remark
    assert "consider an ordered category" in remark
    assert "marginals" not in remark


@pytest.mark.filterwarnings("ignore::bayesstruct.data.errors.TableWarning")
@pytest.mark.parametrize("marginals", ["student", "alternative_student", "rank", "mixed"])
@pytest.mark.parametrize(("n", "p"), [(2, 2), (5, 4), (30, 2)])
def test_small_tables(marginals, n, p):
    model = gaussian_graphical(numbers(n, p), marginals=marginals, prior="laplace")
    step = bs.steps.PrecisionGibbs(model.free_RVs, model=model, rng=1)
    point = model.initial_point()
    for _ in range(20):
        point, _ = step.step(point)
    assert all(np.isfinite(value).all() for value in point.values())


@pytest.mark.chain
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto")  # few draws
def test_t_rows_of_the_model():
    model = gaussian_graphical(numbers(gaps=True), marginals="student")
    idata = sample(model)
    assert {"degrees", "x_missing"} <= {*idata["posterior"].data_vars}
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(
            idata, extend_inferencedata=True, progressbar=False, random_seed=1
        )
    draw = idata["posterior"].isel(chain=0, draw=5)
    found = idata["log_likelihood"]["x"].isel(chain=0, draw=5).values
    location, scale = robust(numbers(gaps=True))
    shape = np.linalg.inv(draw["precision"].values) * np.outer(scale, scale)
    centre = location + scale * draw["mean"].values
    row = numbers(gaps=True).values
    expected = stats.multivariate_t(centre, shape, float(draw["degrees"])).logpdf(row[0])
    np.testing.assert_allclose(found[0], expected)
    kept = [1, 2]
    expected = stats.multivariate_t(centre[kept], shape[np.ix_(kept, kept)], float(draw["degrees"]))
    np.testing.assert_allclose(found[7], expected.logpdf(row[7, kept]))
    nu = float(draw["degrees"])
    factor = nu / (nu - 2) if nu > 2 else np.nan
    covariance = bs.covariance(idata).isel(chain=0, draw=5).values
    np.testing.assert_allclose(covariance, shape * factor)
    assert az.loo(idata).elpd < 0
    with bs.new_rows(model, numbers(gaps=True).iloc[:8]):
        other = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    np.testing.assert_allclose(other["x"].isel(chain=0, draw=5).values, found[:8])
    for reader in (bs.pointwise, lambda one: bs.predict(one, numbers().head(2))):
        with pytest.raises(ValueError, match="t rows"):
            reader(idata)


@pytest.mark.chain
def test_values_with_weights_of_their_own():
    model = gaussian_graphical(numbers(gaps=True), marginals="alternative_student")
    idata = sample(model)
    assert {"degrees", "x_missing", "value_weight"} <= {*idata["posterior"].data_vars}
    with model:
        small = sample(model, 20, var_names=["edge", "weight", "precision", "mean", "degrees"])
        new = pm.sample_posterior_predictive(small, progressbar=False, random_seed=1)
        with pytest.raises(ValueError, match="no log likelihood"):
            pm.compute_log_likelihood(idata, progressbar=False)
        with pytest.raises(ValueError, match="no mode of a model of alternative t rows"):
            bs.find_MAP()
    assert new["posterior_predictive"]["x"].sizes["observation"] == 40
    assert np.isnan(idata["observed_data"]["x"].values).sum() == 3
    assert (idata["posterior"]["x_missing"].mean(("chain", "draw")) - [100.0, 100.0, 100.0] < 99).all()  # fmt: skip
    draw = idata["posterior"].isel(chain=0, draw=5)
    nu, (_, scale) = float(draw["degrees"]), robust(numbers(gaps=True))
    covariance = bs.covariance(idata).isel(chain=0, draw=5).values
    shape = np.linalg.inv(draw["precision"].values) * np.outer(scale, scale)
    if nu > 2:
        np.testing.assert_allclose(np.diag(covariance), np.diag(shape) * nu / (nu - 2))
        weight = stats.gamma(nu / 2, scale=2 / nu).expect(lambda w: w**-0.5)
        np.testing.assert_allclose(covariance[0, 1], shape[0, 1] * weight**2, rtol=1e-4)
        inverse = bs.precision_matrix(idata).isel(chain=0, draw=5).values
        np.testing.assert_allclose(inverse @ covariance, np.eye(4), atol=1e-8)
    assert len(bs.edge_table(idata)) == 6
    assert bs.coefficients(idata)["intercept"].mean() > 50
    for reader in (bs.pointwise, lambda one: bs.predict(one, numbers().head(2))):
        with pytest.raises(ValueError, match="t rows"):
            reader(idata)
    with pytest.raises(ValueError, match="whose rows depend on parameters alone"):
        bs.new_rows(model, numbers())


def test_weights_are_drawn_with_the_missing_values_of_their_rows():
    model = gaussian_graphical(numbers(gaps=True), marginals="alternative_student")
    with model, pytest.raises(ValueError, match="'x_missing', 'degrees' are drawn together"):
        bs.steps.PrecisionGibbs([v for v in model.free_RVs if v.name != "x_missing"])
    with model:
        pm.Normal("y", model["value_weight"][0, 0], 1.0, observed=0.0)
    with model, pytest.raises(ValueError, match="'y' depends on 'value_weight'"):
        bs.steps.PrecisionGibbs([model["precision"]])


def test_outliers_do_not_change_how_t_tables_are_standardised():
    table = numbers(200)
    table.iloc[:6, 0] += 1e4
    model = gaussian_graphical(table, marginals="student")
    location, scale = robust(table)
    np.testing.assert_allclose(model["location"].get_value(), location)
    np.testing.assert_allclose(model["scale"].get_value(), scale)
    assert scale[0] < 15
    half = numbers(200).assign(mood=np.where(np.arange(200) < 120, 100.3, numbers(200)["mood"]))
    model = gaussian_graphical(half, marginals="alternative_student")
    np.testing.assert_allclose(model["scale"].get_value()[0], half["mood"].std())


@pytest.mark.statistical
def test_wrong_values_cost_their_rows_only_where_a_row_has_one_weight():
    rng, p = np.random.default_rng(0), 12
    K = np.eye(p) + np.diag(np.full(p - 1, -0.4), 1) + np.diag(np.full(p - 1, -0.4), -1)
    table = rng.multivariate_normal(np.zeros(p), np.linalg.inv(K), size=200)
    wrong = rng.random(table.shape) < 0.05
    table[wrong] += 10.0 * table.std() * rng.normal(size=wrong.sum())
    error = {}
    for marginals in ("student", "alternative_student"):
        model = gaussian_graphical(table, marginals=marginals)
        step = bs.steps.PrecisionGibbs(model.free_RVs, model=model, rng=1)
        weight = model.compile_fn(model.replace_rvs_by_values([model["weight"]]), inputs=model.value_vars, on_unused_input="ignore")  # fmt: skip
        point, kept = model.initial_point(1), []
        for t in range(120):
            point, _ = step.step(point)
            if t >= 20:
                kept.append(weight(point)[0])
        truth = -K[np.triu_indices(p, 1)]
        error[marginals] = np.abs(np.mean(kept, axis=0) - truth)[truth > 0].mean()
    # 0.05 and 0.2 in a table of this kind; a weight is small where a value is wrong.
    assert error["alternative_student"] < 0.6 * error["student"]
    log_weight = point["value_weight_log__"]
    assert log_weight[wrong].mean() < log_weight[~wrong].mean() - 1.0


@pytest.mark.chain
@pytest.mark.parametrize("marginals", ["student", "alternative_student"])
def test_covariates_and_a_known_number_of_degrees(marginals):
    z = pd.DataFrame({"age": np.random.default_rng(2).normal(size=40)})
    table = numbers().add(30.0 * z["age"], axis=0)
    model = gaussian_graphical(table, marginals=marginals, degrees=5.0, covariates=z)
    idata = sample(model, 30)
    assert float(idata["constant_data"]["degrees"]) == 5.0
    assert bs.coefficients(idata)["coefficient"].mean(("chain", "draw")).values[0, 0] > 10


@pytest.mark.chain
@pytest.mark.filterwarnings("ignore::bayesstruct.data.errors.TableWarning")
@pytest.mark.parametrize("marginals", ["rank", "mixed"])
def test_a_table_of_several_kinds(marginals):
    table = several(gaps=True)
    model = gaussian_graphical(
        table, marginals=marginals, required=[("mood", "sleep")], forbidden=[("mood", "visits")]
    )
    idata = sample(model)
    with model:
        small = pm.sample(
            20, tune=20, random_seed=1, var_names=["edge", "weight", "precision"], **QUIET
        )
        new = pm.sample_posterior_predictive(small, progressbar=False, random_seed=1)
        with pytest.raises(ValueError, match="no log likelihood"):
            pm.compute_log_likelihood(idata, progressbar=False)
        with pytest.raises(ValueError, match="columns that count by their order"):
            bs.find_MAP()
    edge = idata["posterior"]["edge"].mean(("chain", "draw"))
    assert edge.sel(pair="mood -- sleep") == 1
    assert edge.sel(pair="mood -- visits") == 0
    x = new["posterior_predictive"]["x"]
    assert set(np.unique(x.sel(node="worry"))) == {0, 1, 2}
    assert set(np.unique(x.sel(node="energy"))) == {0, 1}
    observed = set(table["sleep"].dropna())
    assert (set(np.unique(x.sel(node="sleep"))) <= observed) == (marginals == "rank")
    assert np.isnan(idata["observed_data"]["x"].values).sum() == 3
    small["posterior_predictive"] = new["posterior_predictive"]
    assert len(bs.predictive_correlations(small)) == 10
    assert len(bs.edge_table(small)) == 10
    for reader in (bs.covariance, bs.pointwise, lambda one: bs.predict(one, table.head(2))):
        with pytest.raises(ValueError, match="by the order of their values"):
            reader(idata)
    with pytest.raises(ValueError, match="whose rows depend on parameters alone"):
        bs.new_rows(model, table)


def with_states(n=60):
    rng = np.random.default_rng(3)
    z = rng.normal(size=(n, 3))
    state = np.where(z[:, 0] > 0.4, "red", np.where(z[:, 1] > 0, "blue", "green")).astype(object)
    state[5] = None
    out = pd.DataFrame({"age": 50 + 10 * z[:, 0], "height": z[:, 2]})
    out["colour"] = pd.Categorical(state, ["red", "green", "blue"])
    out.loc[7, "age"] = np.nan
    return out


@pytest.mark.chain
@pytest.mark.parametrize("prior", ["spike_slab", "g_wishart"])
def test_states_without_an_order(prior):
    table = with_states()
    pairs = {"required": [("height", "colour")], "forbidden": [("age", "height")]}
    model = gaussian_graphical(table, marginals="mixed", prior=prior, **pairs)
    assert model.coords["node"] == ("age", "height", "colour: green", "colour: blue")
    idata = sample(model, 200)
    edge = idata["posterior"]["edge"].mean(("chain", "draw"))
    known = {"age -- height": 0, "colour: green -- colour: blue": 0, "height -- colour: blue": 1}
    for pair, probability in (known | {"height -- colour: green": 1}).items():
        assert edge.sel(pair=pair) == probability
    # Red, the reference, has the large ages.
    assert idata["posterior"]["weight"].sel(pair="age -- colour: green").mean() < -0.1
    found = bs.variable_edges(idata).set_index(["source", "target"])
    assert found["probability"][("height", "colour")] == 1
    assert found["probability"][("age", "height")] == 0
    assert found["probability"][("age", "colour")] >= edge.sel(pair="age -- colour: blue")
    assert found["pairs"].tolist() in ([2, 2, 1], [2, 1, 2])
    assert bs.summary(idata).kind == "Gaussian graphical models of columns without an order"
    with model:
        new = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=1)
    x = new["posterior_predictive"]["x"]
    states = x.sel(node=["colour: green", "colour: blue"])
    assert set(np.unique(states)) == {0.0, 1.0}
    assert states.sum("node").max() == 1
    shares = table["colour"].value_counts(normalize=True)[["green", "blue"]]
    np.testing.assert_allclose(states.mean(("chain", "draw", "observation")), shares, atol=0.1)
    assert np.isnan(idata["observed_data"]["x"].values).sum() == 3
    with pytest.raises(ValueError, match="by the order of their values"):
        bs.covariance(idata)


def test_states_that_are_refused_and_remarked_upon():
    table = with_states()
    with pytest.raises(ValueError, match=r"'colour' has states without an order.*not .laplace."):
        gaussian_graphical(table, marginals="mixed", prior="laplace")
    with pytest.raises(TableError, match=r'3 states without an order.*marginals="mixed"'):
        gaussian_graphical(table, marginals="rank")
    text = table.assign(colour=table["colour"].astype(object))
    with pytest.warns(TableWarning, match=r"'colour': text of 3 states.*ordered=True"):
        model = gaussian_graphical(text, marginals="mixed")
    assert model.coords["node"][2:] == ("colour: green", "colour: red")
    clash = table.assign(**{"colour: blue": table["height"] ** 2})
    with pytest.raises(TableError, match="everal columns are called 'colour: blue'"):
        gaussian_graphical(clash, marginals="mixed")
    with pytest.raises(TableError, match="not a pair of columns"):
        gaussian_graphical(table, marginals="mixed", required=[("age", "color")])
    with pytest.raises(ValueError, match="no columns of states without an order"):
        bs.variable_edges(pm.sample_prior_predictive(2, model=gaussian_graphical(numbers()), random_seed=1))  # fmt: skip


def test_repeated_rows_and_counts_are_the_same_table():
    table = several()[["worry", "energy"]].iloc[:12]
    counts = np.arange(12) % 3 + 1
    one = gaussian_graphical(table, marginals="rank", row_counts=counts)
    other = gaussian_graphical(table.loc[table.index.repeat(counts)], marginals="rank")
    first, second = one.initial_point(1), other.initial_point(1)
    np.testing.assert_array_equal(first["latent"], second["latent"])


@pytest.mark.statistical
def test_agreement_with_normal_columns():
    rng, K = np.random.default_rng(4), np.eye(4)
    K[0, 1] = K[1, 0] = -0.4
    K[1, 2] = K[2, 1] = 0.3
    table = rng.multivariate_normal(np.zeros(4), np.linalg.inv(K), size=400)
    found = {}
    for marginals, options in (("gaussian", {}), ("student", {"degrees": 500.0}), ("rank", {})):
        model = gaussian_graphical(table, marginals=marginals, prior="laplace", **options)
        step = bs.steps.PrecisionGibbs(model.free_RVs, model=model, rng=1)
        step.setup_chain(np.random.default_rng(1), 0, 900)
        weight = model.compile_fn(model.replace_rvs_by_values([model["weight"]]), inputs=model.value_vars, on_unused_input="ignore")  # fmt: skip
        point, kept = model.initial_point(1), []
        for t in range(900):
            point, _ = step.step(point)
            if t >= 100:
                kept.append(weight(point)[0])
        found[marginals] = np.mean(kept, axis=0), np.std(kept, axis=0)
    mean, spread = found["gaussian"]
    for other in ("student", "rank"):
        # Ranks lose little information; the two means differ by far less than their spread.
        np.testing.assert_allclose(found[other][0], mean, atol=0.5 * spread.max())
        np.testing.assert_allclose(found[other][1], spread, rtol=0.25)


@pytest.mark.chain
@pytest.mark.parametrize("degrees", [None, 4.0])
def test_the_mode_of_t_rows_has_no_gradient(degrees):
    table, options = numbers(60, 3), {"prior": "laplace", "diagonal_rate": 0.5}
    table.iloc[3, 1] = table.iloc[7, 0] = np.nan
    table.iloc[[10, 20]] *= 1.2
    model = gaussian_graphical(table, marginals="student", degrees=degrees, **options)
    with model:
        found = bs.find_MAP(tol=1e-9)
    # The density of the observed values at the mode, on the natural scale, against nearby points.
    location, scale = robust(table)
    z = (table.values - location) / scale
    nu = degrees or float(found["degrees"])

    def log_density(K, mean, nu):
        shape, out = np.linalg.inv(K), -0.5 * (mean**2).sum()
        for row in z:
            kept = ~np.isnan(row)
            own = stats.multivariate_t(mean[kept], shape[np.ix_(kept, kept)], nu)
            out += own.logpdf(row[kept])
        out -= np.abs(K[np.triu_indices(3, 1)]).sum() + 0.5 * np.trace(K)
        return out + (0.0 if degrees else stats.gamma(2.0, scale=10.0).logpdf(nu))

    K, mean = found["precision"], found["mean"]
    top, rng = log_density(K, mean, nu), np.random.default_rng(0)
    for size in (1e-3, 1e-2):
        for _ in range(20):
            step = rng.normal(size=(3, 3)) * size
            other = 0.0 if degrees else rng.normal() * size
            assert log_density(K + step + step.T, mean + rng.normal(size=3) * size, nu * np.exp(other)) < top  # fmt: skip
            assert log_density(K, mean, nu * np.exp(other)) <= top
