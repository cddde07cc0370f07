"""Predictions of empty values: conditional normals, sums over states and the intervention formula, from numbers in a result."""

import itertools

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import optimize, special, stats
from tools.rows import (
    answers,
    conditional,
    flat,
    joint_of_field,
    joint_of_network,
    mixed_table,
    normals,
    ordered_answers,
    prior_result,
    state_shares,
)

import bayesstruct as bs

from bayesstruct.data import TableError

GAUSSIAN = {
    "spike_slab": bs.models.gaussian_graphical,
    "laplace": lambda t: bs.models.gaussian_graphical(t, prior="laplace"),
    "units": lambda t: bs.models.gaussian_graphical(t, standardize=False),
    "bge": bs.models.bayesian_network,
    "bic": lambda t: bs.models.bayesian_network(t, score="gaussian"),
}
STATES = (2, 3, 2)
LEVELS = {"mood": ["bad", "good"], "score": ["1", "2", "3"], "ill": ["False", "True"]}


@pytest.fixture
def gaps():
    """Rows with one and two empty values, in another order of columns, with labels."""
    return pd.DataFrame(
        {"c": [-350.0, np.nan, -10.0], "a": [np.nan, 5.5, 6.0], "b": [np.nan, 61.0, 40.0]},
        index=["p", "q", "full"],
    )


def check_normals(found, laws, rows, names):
    """Compare with the mixture of the conditional normals of all draws."""
    assert len(found) == rows[names].isna().to_numpy().sum()
    for line in found.itertuples():
        row, column = rows.loc[line.row, names].to_numpy(), names.index(line.column)
        mean, deviation = np.transpose([conditional(law, row, column) for law in laws])
        np.testing.assert_allclose(line.mean, mean.mean(), rtol=1e-9)
        spread = np.sqrt(np.mean(deviation**2) + mean.var())
        np.testing.assert_allclose(line.sd, spread, rtol=1e-9)
        for share, end in ((0.05, line.low), (0.95, line.high)):

            def excess(x, share=share, mean=mean, deviation=deviation):
                return stats.norm.cdf(x, mean, deviation).mean() - share

            ends = mean.mean() - 50 * spread, mean.mean() + 50 * spread
            right = optimize.brentq(excess, *ends, xtol=1e-10)
            np.testing.assert_allclose(end, right, rtol=1e-8, atol=1e-8)


def check_states(found, joints, rows):
    """Compare with the probabilities of sums over all states, averaged over draws; rows hold codes, None if empty."""
    columns = list(LEVELS)
    assert len(found) == sum(STATES[j] for row in rows for j in range(3) if row[j] is None)
    for (row, column), part in found.groupby(["row", "column"], sort=False):
        j = columns.index(column)
        each = np.array([state_shares(joint, rows[row], j, STATES) for joint in joints])
        assert part["state"].tolist() == LEVELS[column]
        np.testing.assert_allclose(part["probability"], each.mean(axis=0), rtol=1e-10)
        np.testing.assert_allclose(part["low"], np.quantile(each, 0.05, axis=0), rtol=1e-10)
        np.testing.assert_allclose(part["high"], np.quantile(each, 0.95, axis=0), rtol=1e-10)


@pytest.mark.parametrize("kind", GAUSSIAN)
def test_empty_numbers_have_mixtures_of_conditional_normals(kind, rng, gaps):
    table = mixed_table(rng)
    idata = prior_result(GAUSSIAN[kind](table), 7)
    units = table
    if kind == "units":  # nothing is standardised: location 0 and scale 1
        units = pd.DataFrame([[-1.0] * 3, [1.0] * 3], columns=list(table)) / np.sqrt(2.0)
    found = bs.predict(idata, gaps, ci_prob=0.9)
    check_normals(found, normals(idata, units), gaps, list(table))


def test_setting_a_column_of_a_gaussian_network_cuts_it_off(rng, gaps):
    table = mixed_table(rng)
    idata = prior_result(bs.models.bayesian_network(table), 7)
    laws = normals(idata, table, {"a": 7.5})
    found = bs.predict(idata, gaps.drop(columns="a"), setting={"a": 7.5}, ci_prob=0.9)
    check_normals(found, laws, gaps.assign(a=7.5), list(table))
    # Nothing else filled in: the expected values of `bs.do`.
    alone = bs.predict(idata, pd.DataFrame({"b": [np.nan], "c": [np.nan]}), setting={"a": 7.5})
    done = bs.do(idata, {"a": 7.5})
    np.testing.assert_allclose(alone["mean"], done.loc[["b", "c"], "mean"], rtol=1e-10)
    with pytest.raises(TableError, match="'a' is set to one value, and the table has others"):
        bs.predict(idata, gaps, setting={"a": 7.5})


def test_the_formula_of_an_intervention_in_a_known_graph(rng):
    """a -> b -> c and a -> c: p(c | b, do(a)) of the regression of c, whatever the law of a and b."""
    table = mixed_table(rng)
    arcs = [("a", "b"), ("b", "c"), ("a", "c")]
    idata = prior_result(bs.models.bayesian_network(table, required=arcs), 7)
    rows = pd.DataFrame({"b": [47.0], "c": [np.nan]})
    found = bs.predict(idata, rows, setting={"a": 6.5})
    location, scale = table.mean(), table.std()
    z = {"a": (6.5 - location["a"]) / scale["a"], "b": (47.0 - location["b"]) / scale["b"]}
    weight = idata["posterior"]["weight"].sel(chain=0)
    mean = idata["posterior"]["intercept"].sel(chain=0, node="c").values
    mean = mean + sum(weight.sel(ordered_pair=f"{k} -> c").values * z[k] for k in z)
    np.testing.assert_allclose(found["mean"], location["c"] + scale["c"] * mean.mean(), rtol=1e-10)


@pytest.fixture
def questions():
    rows = pd.DataFrame(
        {"ill": [True, None, None], "score": [None, 2, None], "mood": [None, "good", "bad"]}
    )
    return rows, [(None, None, 1), (1, 1, None), (0, None, None)]


@pytest.mark.parametrize("likelihood", ["exact", "pseudo"])
def test_empty_states_of_random_fields_are_sums_over_states(likelihood, rng, questions):
    rows, codes = questions
    model = bs.models.pairwise_mrf(
        ordered_answers(rng), potentials="ordinal", likelihood=likelihood
    )
    idata = prior_result(model, 7)
    draws = zip(flat(idata, "bias"), flat(idata, "weight"), strict=True)
    joints = [joint_of_field(bias, weight, STATES) for bias, weight in draws]
    check_states(bs.predict(idata, rows, ci_prob=0.9), joints, codes)


@pytest.mark.parametrize("kind", ["full", "blume_capel", "group_laplace"])
def test_empty_states_under_other_potentials(kind, rng):
    """The same by the log likelihoods of all completions, which other tests hold against sums."""
    prior = "group_laplace" if kind == "group_laplace" else "spike_slab"
    potentials = "full" if kind == "group_laplace" else kind
    model = bs.models.pairwise_mrf(
        ordered_answers(rng), potentials=potentials, prior=prior, likelihood="exact"
    )
    idata = prior_result(model)
    full = pd.DataFrame(
        {"mood": ["good"] * 6, "score": [1, 2, 3] * 2, "ill": [True] * 3 + [False] * 3}
    )
    with bs.new_rows(model, full):
        logs = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    p = np.exp(logs["x"].values[0])
    right = ((p[:, :3] + p[:, 3:]) / p.sum(axis=1, keepdims=True)).mean(axis=0)
    found = bs.predict(idata, full[:1].assign(score=np.nan, ill=None))
    np.testing.assert_allclose(found[found["column"] == "score"]["probability"], right, rtol=1e-10)


def test_empty_states_of_ising_models_with_a_known_graph(rng):
    table = answers(rng).assign(score=rng.integers(4, 6, 60))
    graph = [("mood", "score"), ("score", "ill")]
    model = bs.models.ising(table, graph=graph, prior="laplace", likelihood="exact")
    idata = prior_result(model, 7)
    rows = pd.DataFrame({"mood": ["good"], "score": [np.nan], "ill": [False]})
    each = []
    for bias, weight in zip(flat(idata, "bias"), flat(idata, "weight"), strict=True):
        joint = joint_of_field(bias, [weight[0], 0.0, weight[1]], (2, 2, 2))
        each.append(state_shares(joint, (1, None, 0), 1, (2, 2, 2)))
    found = bs.predict(idata, rows)
    np.testing.assert_allclose(found["probability"], np.mean(each, axis=0), rtol=1e-10)
    assert found["state"].tolist() == ["4", "5"]


@pytest.mark.parametrize("score", ["bdeu", "bde", "multinomial"])
@pytest.mark.parametrize("set_to", [None, "good"])
def test_empty_states_of_networks_are_sums_over_states(score, set_to, rng, questions):
    rows, codes = questions
    idata = prior_result(bs.models.bayesian_network(answers(rng), score=score), 7)
    draws = [*zip(flat(idata, "dag"), flat(idata, "table"), strict=True)]
    if set_to is None:
        joints = [joint_of_network(dag, own, STATES) for dag, own in draws]
        check_states(bs.predict(idata, rows, ci_prob=0.9), joints, codes)
        return
    joints = [joint_of_network(dag, own, STATES, {0: 1}) for dag, own in draws]
    rows, codes = rows.drop(columns="mood"), [(1, *own[1:]) for own in codes]
    check_states(bs.predict(idata, rows, setting={"mood": set_to}, ci_prob=0.9), joints, codes)


@pytest.mark.parametrize(
    "options", [{"alpha": 0.8}, {"noise": 0.7, "discount": 0.2, "concentration": 2.0}]
)
def test_empty_numbers_of_latent_features_are_sums_over_features(options, rng):
    table = mixed_table(rng, 6) / [1.0, 10.0, 100.0]
    settings = {"alpha": pm.Gamma.dist(40.0, 60.0), "baseline": [5.0, 4.0, 0.0], "max_features": 25}
    model = bs.models.latent_features(table, **settings | options)
    idata = prior_result(model, 4)
    row = np.array([6.0, np.nan, -1.5])
    seen = [0, 2]
    weights, means, deviations = [], [], []
    for draw, feature in enumerate(flat(idata, "feature")):
        alpha, noise = (
            options[k] if k in options else flat(idata, k)[draw] for k in ("alpha", "noise")
        )
        tau, n = flat(idata, "loading_scale")[draw], len(feature)
        c, sigma = options.get("concentration", 1.0), options.get("discount", 0.0)
        new = special.gammaln([1 + c, n + c + sigma, n + 1 + c, c + sigma]) @ [1, 1, -1, -1]
        used = np.flatnonzero(feature.any(axis=0))
        own = []
        for z in itertools.product((0, 1), repeat=len(used)):
            p = 1.0
            for k, on in zip(used, z, strict=True):
                chance = (feature[:, k].sum() - sigma) / (n + c)
                p *= chance if on else 1.0 - chance
            mean = np.array([5.0, 4.0, 0.0]) + np.array(z) @ flat(idata, "loading")[draw][used]
            for s in range(15):
                sd = np.sqrt(noise**2 + s * tau**2)
                q = p * stats.poisson.pmf(s, alpha * np.exp(new))
                own.append((q * stats.norm.pdf(row[seen], mean[seen], sd).prod(), mean[1], sd))
        weight, mean, deviation = np.transpose(own)
        weights.append(weight / weight.sum() / 4)
        means.append(mean)
        deviations.append(deviation)
    weight, mean, sd = map(np.concatenate, (weights, means, deviations))
    found = bs.predict(idata, row[None], ci_prob=0.9).loc[0]
    np.testing.assert_allclose(found["mean"], weight @ mean, rtol=1e-9)
    spread = np.sqrt(weight @ (sd**2 + (mean - weight @ mean) ** 2))
    np.testing.assert_allclose(found["sd"], spread, rtol=1e-9)
    for share, end in ((0.05, found["low"]), (0.95, found["high"])):
        np.testing.assert_allclose(weight @ stats.norm.cdf(end, mean, sd), share, rtol=1e-9)


@pytest.mark.parametrize("options", [{}, {"strength": 0.8, "leak": 0.05, "base_rate": 0.4}])
def test_empty_states_of_hidden_causes_are_sums_over_causes(options, rng, questions):
    table = answers(rng).assign(score=rng.integers(4, 6, 60))
    idata = prior_result(bs.models.hidden_causes(table, max_features=20, **options), 7)
    rows = pd.DataFrame({"mood": ["good", None], "score": [np.nan, 4], "ill": [None, True]})
    joints = []
    for draw, every in enumerate(flat(idata, "feature")):
        strength, leak, rate = (
            options[k] if k in options else flat(idata, k)[draw]
            for k in ("strength", "leak", "base_rate")
        )
        feature = every[:, every.any(axis=0)]
        joint = dict.fromkeys(itertools.product((0, 1), repeat=3), 0.0)
        for cause in itertools.product((0, 1), repeat=feature.shape[1]):
            chance = np.prod([rate if on else 1.0 - rate for on in cause])
            zero = [(1.0 - leak) * (1.0 - strength) ** (f @ np.array(cause, int)) for f in feature]
            for x in joint:
                joint[x] += chance * np.prod(
                    [z if s == 0 else 1 - z for s, z in zip(x, zero, strict=True)]
                )
        joints.append(joint)
    found = bs.predict(idata, rows)
    for row, column, code in (
        (0, "score", (1, None, None)),
        (0, "ill", (1, None, None)),
        (1, "mood", (None, 0, 1)),
    ):
        j = ["mood", "score", "ill"].index(column)
        right = np.mean([state_shares(joint, code, j, (2, 2, 2)) for joint in joints], axis=0)
        part = found[(found["row"] == row) & (found["column"] == column)]
        np.testing.assert_allclose(part["probability"], right, rtol=1e-9)


def test_single_empty_numbers_of_neighbourhoods_are_normal(rng, gaps):
    table = mixed_table(rng)
    idata = prior_result(bs.models.gaussian_neighbourhoods(table), 7)
    location, scale = table.mean().values, table.std().values
    z = (np.array([6.0, np.nan, -10.0]) - location) / scale
    matrix, noise = flat(idata, "coefficients"), flat(idata, "noise_variance")
    mean = flat(idata, "intercept")[:, 1] + matrix[:, 1, 0] * z[0] + matrix[:, 1, 2] * z[2]
    mean, sd = location[1] + scale[1] * mean, scale[1] * np.sqrt(noise[:, 1])
    found = bs.predict(idata, gaps[2:].assign(b=np.nan), ci_prob=0.9).loc[0]
    assert (found["row"], found["column"]) == ("full", "b")
    np.testing.assert_allclose(found["mean"], mean.mean(), rtol=1e-10)
    np.testing.assert_allclose(found["sd"], np.sqrt(mean.var() + np.mean(sd**2)), rtol=1e-10)
    np.testing.assert_allclose(stats.norm.cdf(found["high"], mean, sd).mean(), 0.95, rtol=1e-10)
    with pytest.raises(TableError, match="row 'p' has 2 empty values"):
        bs.predict(idata, gaps)


@pytest.mark.parametrize("numbers", [True, False])
def test_single_empty_states_of_neighbourhoods_are_logistic(numbers, rng):
    table = answers(rng).assign(score=rng.integers(4, 6, 60))
    codes = pd.DataFrame(
        {"mood": table["mood"] == "good", "score": table["score"] == 5, "ill": table["ill"]}
    )
    if numbers:
        table = codes.astype(int) + 4
    idata = prior_result(bs.models.ising_neighbourhoods(table), 7)
    eta = flat(idata, "intercept")[:, 1]
    for j, x in ((0, 1), (2, 0)):
        eta = eta + flat(idata, "coefficients")[:, 1, j] * (x - codes.iloc[:, j].mean())
    rows = pd.DataFrame({"mood": ["good"], "score": [np.nan], "ill": [False]})
    if numbers:
        rows = pd.DataFrame({"mood": [5], "score": [np.nan], "ill": [4]})
    found = bs.predict(idata, rows)
    assert found["state"].tolist() == ["4", "5"]
    right = special.expit(eta)
    np.testing.assert_allclose(found["probability"], [1 - right.mean(), right.mean()], rtol=1e-10)


@pytest.mark.chain
def test_predictions_from_sampled_neighbourhoods(rng):
    table = answers(rng).assign(score=rng.integers(4, 6, 60))
    rows = pd.DataFrame({"mood": ["good"], "score": [np.nan], "ill": [False]})
    with bs.models.ising_neighbourhoods(table):
        idata = bs.sample_neighbourhoods(draws=20, tune=10, chains=1, random_seed=1)
    assert bs.predict(idata, rows)["probability"].sum() == pytest.approx(1.0)


def test_covariates_move_the_means(rng, gaps):
    table = mixed_table(rng)
    dose = pd.DataFrame({"dose": rng.normal(30.0, 4.0, 160)})
    idata = prior_result(bs.models.gaussian_graphical(table, covariates=dose), 7)
    new = pd.DataFrame({"dose": [33.0, 25.0, 30.0]}, index=gaps.index)
    found = bs.predict(idata, gaps, covariates=new, ci_prob=0.9)
    z = ((new["dose"] - dose["dose"].mean()) / dose["dose"].std()).to_numpy()
    for row in ("p", "q"):
        laws = [
            stats.multivariate_normal(
                n.mean + table.std().values * z[gaps.index.get_loc(row)] * c[0], n.cov, True
            )
            for n, c in zip(normals(idata, table), flat(idata, "coefficients"), strict=True)
        ]
        check_normals(found[found["row"] == row], laws, gaps.loc[[row]], list(table))
    with pytest.raises(ValueError, match="has covariates"):
        bs.predict(idata, gaps)
    with pytest.raises(TableError, match="2 rows, the table has 3"):
        bs.predict(idata, gaps, covariates=new[:2])


def test_predictions_need_no_model_and_no_order(rng, gaps, tmp_path):
    import arviz as az

    table = mixed_table(rng)
    idata = prior_result(bs.models.gaussian_graphical(table), 7)
    idata.to_netcdf(tmp_path / "result.nc")
    stored = az.from_netcdf(tmp_path / "result.nc")
    pd.testing.assert_frame_equal(bs.predict(stored, gaps), bs.predict(idata, gaps))
    array = bs.predict(idata, gaps[["a", "b", "c"]].to_numpy())
    np.testing.assert_allclose(array["mean"], bs.predict(idata, gaps)["mean"])
    assert array["row"].tolist() == [0, 0, 1]
    assert bs.predict(idata, gaps[2:]).empty


def test_what_cannot_be_predicted_is_refused(rng, gaps, questions):
    rows, _ = questions
    table = mixed_table(rng)
    gaussian = prior_result(bs.models.gaussian_graphical(table), 2)
    with pytest.raises(ValueError, match="`setting` does not apply to Gaussian graphical models"):
        bs.predict(gaussian, gaps, setting={"a": 1.0})
    with pytest.raises(TableError, match="'d' is not in the model: leave it out"):
        bs.predict(gaussian, gaps.assign(d=1.0))
    with pytest.raises(TableError, match=r"holds text .for example .* numbers there.*empty"):
        bs.predict(gaussian, gaps.assign(a="many"))
    fields = prior_result(bs.models.pairwise_mrf(ordered_answers(rng), potentials="ordinal"), 2)
    with pytest.raises(
        TableError, match="'mood' has the state 'awful', which the model does not know"
    ):
        bs.predict(fields, rows.assign(mood="awful"))
    features = prior_result(bs.models.sparse_factor_analysis(table[:12]), 2)
    with pytest.raises(ValueError, match="predictions of empty values are known for"):
        bs.predict(features, gaps)


def test_too_many_completions_are_refused(rng):
    table = pd.DataFrame(rng.integers(0, 2, (30, 18)), columns=[f"q{j}" for j in range(18)])
    idata = prior_result(bs.models.ising(table), 2)
    rows = table[:1].astype(float)
    rows.iloc[0, :16] = np.nan
    assert len(bs.predict(idata, rows)) == 32
    rows.iloc[0, 16] = np.nan
    with pytest.raises(
        TableError, match=r"row 0 can be completed in 1.31e\+05 ways, at most 65,536"
    ):
        bs.predict(idata, rows)
