"""Log likelihoods of new rows are those of SciPy and of sums over all states, in every model of rows."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import special, stats
from tools.rows import (
    answers,
    flat,
    joint_of_field,
    joint_of_network,
    mixed_table,
    normals,
    ordered_answers,
    prior_result,
    pseudo_likelihood,
)

import bayesstruct as bs

from bayesstruct.data import TableError

GAUSSIAN = {
    "spike_slab": bs.models.gaussian_graphical,
    "laplace": lambda t: bs.models.gaussian_graphical(t, prior="laplace"),
    "bge": bs.models.bayesian_network,
    "bic": lambda t: bs.models.bayesian_network(t, score="gaussian"),
}
CODES = {
    "mood": {"bad": 0, "good": 1},
    "score": {1: 0, 2: 1, 3: 2},
    "ill": {False: 0, True: 1},
}
STATES = (2, 3, 2)


def log_likelihood(model, idata, rows, **options):
    """Log likelihood of each new row in each draw, (draws, rows)."""
    with bs.new_rows(model, rows, **options):
        found = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    return found["x"].values.reshape(-1, *found["x"].shape[2:])


def coded(rows):
    return [
        tuple(CODES[k][v] for k, v in zip(CODES, r, strict=True)) for r in rows[[*CODES]].values
    ]


@pytest.mark.parametrize("kind", GAUSSIAN)
def test_rows_of_gaussian_models_are_scored_in_the_units_of_the_first_table(kind, rng):
    table = mixed_table(rng)
    train, test = table[:120], table[120:]
    model = GAUSSIAN[kind](train)
    idata = prior_result(model)
    right = np.array([n.logpdf(test.values) for n in normals(idata, train)])
    shuffled = test[["c", "a", "b"]]
    np.testing.assert_allclose(
        log_likelihood(model, idata, shuffled), right, atol=1e-10, rtol=1e-12
    )


def test_one_row_and_rows_without_names(rng):
    table = mixed_table(rng)
    train, test = table[:120], table[120:]
    model = bs.models.bayesian_network(train)
    idata = prior_result(model)
    right = np.array([n.logpdf(test.values) for n in normals(idata, train)])
    one = log_likelihood(model, idata, test[:1])
    np.testing.assert_allclose(one, right[:, :1], atol=1e-10, rtol=1e-12)
    array = log_likelihood(model, idata, test.values)
    np.testing.assert_allclose(array, right, atol=1e-10, rtol=1e-12)


@pytest.mark.parametrize("kind", ["spike_slab", "bge"])
def test_gaps_of_new_rows_and_of_the_first_table_are_apart(kind, rng):
    table = mixed_table(rng)
    table.iloc[3, 1] = table.iloc[125, 2] = table.iloc[130, 0] = np.nan
    train, test = table[:120], table[120:]
    model = GAUSSIAN[kind](train)
    idata = prior_result(model)
    found = log_likelihood(model, idata, test)
    for draw, normal in enumerate(normals(idata, train)):
        for row in (0, 5, 10):
            seen = np.flatnonzero(~np.isnan(test.values[row]))
            part = stats.multivariate_normal(normal.mean[seen], normal.cov[np.ix_(seen, seen)])
            right = part.logpdf(test.values[row, seen])
            np.testing.assert_allclose(found[draw, row], right, rtol=1e-10)


def test_covariates_of_new_rows_keep_their_units(rng):
    table = mixed_table(rng)
    dose = pd.DataFrame({"dose": rng.normal(30.0, 4.0, 160), "age": rng.normal(50.0, 9.0, 160)})
    train, test = table[:120], table[120:]
    model = bs.models.gaussian_graphical(train, covariates=dose[:120])
    idata = prior_result(model)
    found = log_likelihood(model, idata, test, covariates=dose[["age", "dose"]][120:])
    z = ((dose[120:] - dose[:120].mean()) / dose[:120].std()).values
    scale = train.std().values
    for draw, normal in enumerate(normals(idata, train)):
        mean = normal.mean + scale * (z @ flat(idata, "coefficients")[draw])
        right = [
            stats.multivariate_normal(m, normal.cov, True).logpdf(x)
            for m, x in zip(mean, test.values, strict=True)
        ]
        np.testing.assert_allclose(found[draw], right, rtol=1e-10)
    with pytest.raises(ValueError, match="has covariates"):
        bs.new_rows(model, test)
    with pytest.raises(TableError, match="'age' of the model is absent"):
        bs.new_rows(model, test, covariates=dose[["dose"]][120:])


def test_new_rows_of_networks_may_have_been_set(rng):
    table = mixed_table(rng)
    train, test = table[:120], table[120:]
    model = bs.models.bayesian_network(train)
    idata = prior_result(model)
    was_set = pd.DataFrame({"b": np.ones(40, bool)}, index=test.index)
    found = log_likelihood(model, idata, test, interventions=was_set)
    for row in (0, 7):
        x = test.values[row]
        for draw, normal in enumerate(normals(idata, train, {"b": x[1]})):
            free = stats.multivariate_normal(
                normal.mean[[0, 2]], normal.cov[np.ix_([0, 2], [0, 2])]
            )
            np.testing.assert_allclose(found[draw, row], free.logpdf(x[[0, 2]]), rtol=1e-10)
    with pytest.raises(ValueError, match="no interventions"):
        bs.new_rows(bs.models.gaussian_graphical(train), test, interventions=was_set)


@pytest.mark.parametrize("score", ["bdeu", "bde", "multinomial"])
def test_rows_of_discrete_networks_keep_their_codes(score, rng):
    table = answers(rng)
    model = bs.models.bayesian_network(table, score=score)
    idata = prior_result(model)
    # One state of a column, which alone would be state 0, and another order of the columns.
    test = table[table["score"] == 3][["ill", "score", "mood"]]
    found = log_likelihood(model, idata, test)
    draws = zip(flat(idata, "dag"), flat(idata, "table"), strict=True)
    with np.errstate(divide="ignore"):
        right = [
            [np.log(joint[x]) for x in coded(test)]
            for joint in (joint_of_network(dag, own, STATES) for dag, own in draws)
        ]
    np.testing.assert_allclose(found, right, rtol=1e-10)


@pytest.mark.parametrize("likelihood", ["exact", "pseudo"])
def test_rows_of_random_fields_keep_their_codes(likelihood, rng):
    table = ordered_answers(rng)
    model = bs.models.pairwise_mrf(table, potentials="ordinal", likelihood=likelihood)
    idata = prior_result(model)
    test = table[table["score"] > 1][["ill", "score", "mood"]]
    found = log_likelihood(model, idata, test)
    for draw, (bias, weight) in enumerate(
        zip(flat(idata, "bias"), flat(idata, "weight"), strict=True)
    ):
        joint = joint_of_field(bias, weight, STATES)
        density = joint.get if likelihood == "exact" else lambda x, j=joint: pseudo_likelihood(j, x)
        np.testing.assert_allclose(
            found[draw], [np.log(density(x)) for x in coded(test)], atol=1e-9
        )


def test_rows_of_ising_models_keep_their_codes(rng):
    table = answers(rng).assign(score=rng.integers(4, 6, 60))
    model = bs.models.ising(table, likelihood="exact")
    idata = prior_result(model)
    test = table[table["mood"] == "good"]
    found = log_likelihood(model, idata, test)
    codes = [(1, r.score - 4, int(r.ill)) for r in test.itertuples()]
    for draw, (bias, weight) in enumerate(
        zip(flat(idata, "bias"), flat(idata, "weight"), strict=True)
    ):
        joint = joint_of_field(bias, weight, (2, 2, 2))
        np.testing.assert_allclose(found[draw], [np.log(joint[x]) for x in codes], atol=1e-10)


def test_rows_of_neighbourhood_models_keep_their_units(rng):
    table = mixed_table(rng)
    train, test = table[:120], table[120:]
    model = bs.models.gaussian_neighbourhoods(train)
    idata = prior_result(model)
    z = ((test - train.mean()) / train.std()).values
    draws = zip(
        flat(idata, "intercept"),
        flat(idata, "coefficients"),
        flat(idata, "noise_variance"),
        strict=True,
    )
    right = [stats.norm(a + z @ b.T, np.sqrt(v)).logpdf(z) for a, b, v in draws]
    np.testing.assert_allclose(log_likelihood(model, idata, test), right, rtol=1e-10)

    binary = table > [5.0, 50.0, -200.0]
    train, test = binary[:120], binary[120:]
    assert test["a"].all()  # alone, the column would be refused as constant
    model = bs.models.ising_neighbourhoods(train)
    idata = prior_result(model)
    centred = test.values - train.values.mean(axis=0)
    eta = [
        a + centred @ b.T
        for a, b in zip(flat(idata, "intercept"), flat(idata, "coefficients"), strict=True)
    ]
    right = special.log_expit(np.where(test.values, eta, -np.asarray(eta)))
    np.testing.assert_allclose(log_likelihood(model, idata, test), right, rtol=1e-10)
    with pytest.raises(TableError, match="'b': values that the table of the model does not have"):
        bs.new_rows(model, test.astype(float).assign(b=0.5))


@pytest.mark.parametrize("score", ["bdeu", "multinomial"])
def test_states_that_were_set_carry_no_information(score, rng):
    table = answers(rng)
    model = bs.models.bayesian_network(table, score=score)
    idata = prior_result(model)
    test = table[:6]
    found = log_likelihood(model, idata, test, interventions=pd.DataFrame({"mood": [True] * 6}))
    draws = zip(flat(idata, "dag"), flat(idata, "table"), strict=True)
    for draw, (dag, own) in enumerate(draws):
        for row, x in enumerate(coded(test)):
            right = joint_of_network(dag, own, STATES, {0: x[0]})[x]
            np.testing.assert_allclose(np.exp(found[draw, row]), right, rtol=1e-10)


@pytest.mark.parametrize("kind", ["field", "network"])
def test_gaps_in_the_first_table_of_states_are_not_those_of_new_rows(kind, rng):
    table = answers(rng).astype(object)
    table.iloc[2, 0] = table.iloc[3, 1] = None
    table["score"] = table["score"].astype(float)
    if kind == "field":
        table["mood"] = pd.Categorical(table["mood"], ["bad", "good"], ordered=True)
        model = bs.models.pairwise_mrf(table, potentials="ordinal", likelihood="exact")
    else:
        model = bs.models.bayesian_network(table, score="bdeu")
    idata = prior_result(model)
    test = answers(rng)[2:6]
    found = log_likelihood(model, idata, test)
    names = ("bias", "weight") if kind == "field" else ("dag", "table")
    joint = joint_of_field if kind == "field" else joint_of_network
    draws = zip(*(flat(idata, name) for name in names), strict=True)
    right = [[np.log(joint(*own, STATES)[x]) for x in coded(test)] for own in draws]
    np.testing.assert_allclose(found, right, rtol=1e-9)


def test_a_model_made_from_the_new_rows_scores_them_too_well(rng):
    """The mistake that `new_rows` is for: 40 rows above all others, in units of their own."""
    table = mixed_table(rng)
    train, test = table[:120], table[120:]
    model = bs.models.gaussian_graphical(train)
    idata = prior_result(model)
    right = np.array([n.logpdf(test.values) for n in normals(idata, train)]).mean()
    with bs.models.gaussian_graphical(test):
        wrong = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    assert float(wrong["x"].mean()) > right + 1.0
    np.testing.assert_allclose(log_likelihood(model, idata, test).mean(), right, rtol=1e-10)


def test_predictive_draws_of_new_rows_have_the_first_units(rng):
    table = mixed_table(rng)
    model = bs.models.gaussian_graphical(table[:120])
    idata = prior_result(model, 40)
    with bs.new_rows(model, table[120:]):
        pm.sample_posterior_predictive(
            idata, predictions=True, extend_inferencedata=True, random_seed=1, progressbar=False
        )
    drawn = idata["predictions"]["x"]
    assert drawn.sizes["observation"] == 40
    means = np.array([n.mean for n in normals(idata, table[:120])])
    spread = [np.sqrt(np.diag(n.cov)) for n in normals(idata, table[:120])]
    error = drawn.values.reshape(40, 40, 3).mean(axis=1) - means
    assert (abs(error) < 6 * np.array(spread) / np.sqrt(40)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="score"), "'score' of the model is absent"),
        (
            lambda t: t.rename(columns={"ill": "well"}),
            "'ill' of the model is absent.*\n.*'well' is not in the model",
        ),
        (
            lambda t: t.assign(mood="awful"),
            "'mood' has the state 'awful'.*'bad' and 'good'.*leave these rows out",
        ),
        (lambda t: t.assign(score=t["score"] + 1), "'score' has the state 4, which.*1, 2 and 3"),
        (lambda t: t.assign(score=1.5), "'score' holds numbers that are not whole"),
        (lambda t: t.assign(ill=None), "'ill': values are missing.*bs.predict"),
        (lambda t: t[:0], "0 rows"),
        (lambda t: t.values[:, :2], "2 columns without names, the model has 3"),
    ],
)
def test_rows_that_mean_something_else_are_refused(change, message, rng):
    table = ordered_answers(rng)
    model = bs.models.pairwise_mrf(table, potentials="ordinal", likelihood="pseudo")
    with pytest.raises(TableError, match=f"(?s){message}"):
        bs.new_rows(model, change(table))


def test_states_are_found_by_their_labels(rng):
    table = answers(rng)
    model = bs.models.bayesian_network(table, score="bdeu")
    shown = bs.new_rows(model, [["good", 1.0, 1], ["bad", 3.0, 0]])
    values = shown.rvs_to_values[shown["x"]].data
    assert values.tolist() == [[1, 0, 1], [0, 2, 0]]
    declared = pd.Categorical(["good"], ["good", "bad"])  # in another order
    rows = pd.DataFrame({"mood": declared, "score": [2], "ill": [True]})
    shown = bs.new_rows(model, rows)
    assert shown.rvs_to_values[shown["x"]].data.tolist() == [[1, 1, 1]]


def test_models_whose_rows_have_variables_are_refused(rng):
    model = bs.models.latent_features(mixed_table(rng, 12))
    with pytest.raises(ValueError, match="each row has variables of its own"):
        bs.new_rows(model, mixed_table(rng, 3))
    with pytest.raises(TypeError, match="not DataFrame"):
        bs.new_rows(mixed_table(rng), mixed_table(rng))


def test_new_rows_leave_the_model_as_it_was(rng):
    from bayesstruct.runs.fingerprint import describe_model

    table = mixed_table(rng)
    model = bs.models.gaussian_graphical(table)
    before = describe_model(model)
    new = bs.new_rows(model, table[:7])
    assert describe_model(model) == before
    assert new.dim_lengths["observation"].eval() == 7
    again = bs.new_rows(new, table[:3])
    assert again.dim_lengths["observation"].eval() == 3
