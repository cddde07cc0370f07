"""What is read from networks of columns of several kinds, against densities that are written out and integrated."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from scipy import stats
from scipy.special import expit

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.models import bayesian_network

pytestmark = pytest.mark.chain

KINDS = {"income": "laplace"}
TERMS = {
    "noise scale -> age": 1.1,
    "intercept -> age": 0.2,
    "intercept -> smokes: yes": 0.4,
    "age -> smokes: yes": 1.3,
    "intercept -> income": 0.2,
    "smokes: yes -> income": 0.9,
    "age -> income": -0.6,
    "noise scale -> income": 0.7,
    "threshold low|mid -> school": -0.8,
    "threshold mid|high -> school": 0.7,
    "income -> school": 1.2,
}
#: Changes of the second draw, in which the graph has one arc less.
OTHER = {"age -> income": 0.0, "smokes: yes -> income": 0.4, "income -> school": -0.5}
NAMES = ["age", "smokes", "income", "school"]
CELLS = np.array([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])


def people(n=40, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 10, n)
    smokes = rng.random(n) < expit((age - 40) / 10)
    income = 2000 + 300 * smokes + rng.normal(0, 200, n)
    school = np.digitize(income / 200 + rng.logistic(size=n), [10, 12])
    return pd.DataFrame(
        {
            "age": age,
            "smokes": np.where(smokes, "yes", "no"),
            "income": income,
            "school": pd.Categorical.from_codes(school, ["low", "mid", "high"], ordered=True),
        }
    )


def model(table=None, **options):
    return bayesian_network(
        people() if table is None else table, score="mixed", kinds=KINDS, **options
    )


@pytest.fixture(scope="module")
def result():
    """Two draws with known parameters."""
    with model() as own:
        prior = pm.sample_prior_predictive(2, random_seed=1)
    values = [TERMS, TERMS | OTHER]
    vectors = [[own_values.get(term, 0.0) for term in own.coords["term"]] for own_values in values]
    fewer = CELLS.copy()
    fewer[0, 2] = 0
    arcs = [[dag[NAMES.index(a), NAMES.index(b)] for a, b in ends(own)] for dag in (CELLS, fewer)]
    draws = {
        "dag": (("chain", "draw", "node", "node_"), np.array([[CELLS, fewer]])),
        "parameter": (("chain", "draw", "term"), np.array([vectors])),
        "arc": (("chain", "draw", "ordered_pair"), np.array([arcs])),
    }
    prior["posterior"] = xr.DataTree(xr.Dataset(draws, coords=prior["prior"].coords))
    return prior


def ends(own):
    return [pair.split(" -> ") for pair in own.coords["ordered_pair"]]


def log_terms(draw, age, smokes, income, school):
    """Log density of each standardised column given its parents, (4, ...), from the words of the documentation."""
    t = TERMS | (OTHER if draw else {})
    yes = expit(t["intercept -> smokes: yes"] + t["age -> smokes: yes"] * age)
    centre = t["intercept -> income"] + t["age -> income"] * age
    centre = centre + t["smokes: yes -> income"] * (smokes - 0.5)
    cuts = [-np.inf, t["threshold low|mid -> school"], t["threshold mid|high -> school"], np.inf]
    below = [expit(cut - t["income -> school"] * income) for cut in cuts]
    shares = np.diff(np.array(np.broadcast_arrays(*below)), axis=0)
    terms = [
        stats.norm.logpdf(age, 0.2, 1.1),
        np.where(smokes == 1, np.log(yes), np.log1p(-yes)),
        stats.laplace.logpdf(income, centre, 0.7 / np.sqrt(2.0)),
        np.log(np.choose(np.asarray(school, int), np.broadcast_arrays(*shares))),
    ]
    return np.array(np.broadcast_arrays(*terms))


COPIES = 500
GRID = np.linspace(-9.0, 9.0, 451)


def standard(table):
    location, scale = people()[["age", "income"]].mean(), people()[["age", "income"]].std()
    age = ((table["age"] - location["age"]) / scale["age"]).to_numpy(float)
    income = ((table["income"] - location["income"]) / scale["income"]).to_numpy(float)
    smokes = (table["smokes"] == "yes").to_numpy(float)
    school = np.array(
        [["low", "mid", "high"].index(s) if isinstance(s, str) else 0 for s in table["school"]]
    )
    return age, smokes, income, school


def joint(draw, row, set_to=()):
    """Density on a grid of (age, smokes, income, school) given the filled values of a row; axes of length 1 for these."""
    axes = [GRID, np.arange(2.0), GRID, np.arange(3)]
    axes = [own if np.isnan(x) else np.array([x]) for own, x in zip(axes, row, strict=True)]
    mesh = np.meshgrid(*axes, indexing="ij", sparse=True)
    logs = log_terms(draw, *mesh)[[NAMES.index(n) for n in NAMES if n not in set_to]].sum(axis=0)
    p = np.exp(logs - logs.max())
    return p / p.sum()


def moments(row, j, set_to=()):
    """Mean and deviation of an empty number, averaged over both draws."""
    p = [joint(s, row, set_to).sum(axis=tuple({0, 1, 2, 3} - {j})) for s in range(2)]
    mean = np.mean(p, axis=0) @ GRID
    return mean, np.sqrt(np.mean(p, axis=0) @ (GRID - mean) ** 2), np.mean(p, axis=0)


def units(name):
    column = people()[name]
    return column.mean(), column.std()


def check_number(line, row, j, *, error, set_to=()):
    location, scale = units(NAMES[j])
    mean, sd, p = moments(row, j, set_to)
    low, high = (GRID[np.searchsorted(np.cumsum(p), q)] for q in (0.1, 0.9))
    np.testing.assert_allclose((line["mean"] - location) / scale, mean, atol=error * sd)
    np.testing.assert_allclose(line["sd"] / scale, sd, rtol=error)
    np.testing.assert_allclose((line["low"] - location) / scale, low, atol=4 * error * sd)
    np.testing.assert_allclose((line["high"] - location) / scale, high, atol=4 * error * sd)


@pytest.fixture
def many(result):
    """The first draw 500 times and then the second, so that averages over draws of a row have small errors."""
    one = result["posterior"].to_dataset()
    draws = one.isel(draw=np.repeat([0, 1], COPIES)).assign_coords(draw=np.arange(2 * COPIES))
    tree = result.copy()
    tree["posterior"] = xr.DataTree(draws)
    return tree


def test_one_empty_value_has_its_conditional_distribution(many):
    table = people().iloc[:3].astype({"school": object})
    table.loc[0, "age"] = np.nan
    table.loc[1, "income"] = np.nan
    table.loc[2, "school"] = None
    found = bs.predict(many, table, ci_prob=0.8)
    rows = np.array(standard(table)).T
    rows[2, 3] = np.nan
    assert found["column"].tolist() == ["age", "income", *["school"] * 3]
    # Moments are exact; ends are those of 8,000 draws.
    for k, j in ((0, 0), (1, 2)):
        check_number(found.iloc[k], rows[k], j, error=0.02)
        mean, sd, _ = moments(rows[k], j)
        location, scale = units(NAMES[j])
        assert found["mean"][k] == pytest.approx(location + scale * mean, abs=2e-4 * scale * sd)
    shares = [joint(s, rows[2]).sum(axis=(0, 1, 2)) for s in range(2)]
    np.testing.assert_allclose(found["probability"][2:], np.mean(shares, axis=0), atol=1e-12)
    assert found["state"].tolist() == ["", "", "low", "mid", "high"]


def test_several_empty_states_are_summed_over(result):
    table = people().iloc[[4]].astype({"school": object, "smokes": object})
    table[["smokes", "school"]] = None
    found = bs.predict(result, table)
    row = np.array(standard(table)).T[0]
    row[[1, 3]] = np.nan
    p = np.mean([joint(s, row) for s in range(2)], axis=0)
    expected = [*p.sum(axis=(0, 2, 3)), *p.sum(axis=(0, 1, 2))]
    np.testing.assert_allclose(found["probability"], expected, atol=1e-12)


def test_several_empty_values_are_integrated_over(many):
    table = people().iloc[[5]].astype({"smokes": object})
    table["smokes"], table["age"], table["income"] = None, np.nan, np.nan
    row = np.array(standard(table)).T[0]
    row[1] = np.nan
    found = bs.predict(many, table, ci_prob=0.8)
    check_number(found[found["column"] == "age"].iloc[0], row, 0, error=0.04)
    check_number(found[found["column"] == "income"].iloc[0], row, 2, error=0.04)
    shares = np.mean([joint(s, row).sum(axis=(0, 2, 3)) for s in range(2)], axis=0)
    # Deviations of .3 over the root of 8,000 draws are .0034.
    np.testing.assert_allclose(found["probability"].dropna(), shares, atol=0.012)


def test_columns_that_are_set_say_nothing_about_their_parents(many):
    table = people().iloc[[6]].drop(columns="income")
    table["age"] = np.nan
    found = bs.predict(many, table, setting={"income": 2300.0}, ci_prob=0.8)
    row = np.array(standard(table.assign(income=2300.0))).T[0]
    check_number(found.iloc[0], row, 0, error=0.02, set_to=["income"])
    seen = moments(row, 0)[0]
    assert abs(seen - moments(row, 0, ["income"])[0]) > 0.1  # which observing it would
    with pytest.raises(TableError, match="is set to one value"):
        bs.predict(many, people(), setting={"income": 2300.0})


def given_others(draw, row, j):
    """Density of column j on its grid or over its states, given the other values of a row."""
    row = row.copy()
    row[j] = np.nan
    return joint(draw, row).ravel()


def test_columns_are_predicted_as_by_integration(result):
    table = people()
    rows = np.array(standard(table)).T
    found = bs.predictability(result).set_index(["node", "measure", "given"])["value"]
    for j, name in ((0, "age"), (2, "income")):
        shares = []
        for draw in range(2):
            p = np.array([given_others(draw, row, j) for row in rows])
            mean = p @ GRID
            left = (p * (GRID - mean[:, None]) ** 2).sum(axis=1).mean()
            shares.append(mean.var() / (mean.var() + left))
        # The grid of this test is coarser than corners of a Laplace density.
        assert found[name, "R2", "all others"] == pytest.approx(np.mean(shares), abs=2e-3)
    assert found["age", "R2", "parents"] == 0.0
    for j, name in ((1, "smokes"), (3, "school")):
        own = rows[:, j].astype(int)
        shares = np.bincount(own) / len(own)
        whole = -(shares[shares > 0] @ np.log(shares[shares > 0]))
        explained, right = [], []
        for draw in range(2):
            p = np.array([given_others(draw, row, j) for row in rows])
            explained.append(1.0 + np.log(p[np.arange(40), own]).mean() / whole)
            right.append((p.argmax(axis=1) == own).mean())
        assert found[name, "deviance", "all others"] == pytest.approx(np.mean(explained))
        assert found[name, "accuracy", "all others"] == pytest.approx(np.mean(right))
        assert (name, "R2", "parents") in found.index
    yes = [log_terms(s, *rows.T)[1] for s in range(2)]
    share = (rows[:, 1] == 1).mean()
    whole = -(share * np.log(share) + (1 - share) * np.log1p(-share))
    expected = 1.0 + np.mean(yes) / whole
    assert found["smokes", "deviance", "parents"] == pytest.approx(expected)


def test_values_have_the_densities_given_the_rest_of_their_rows(many):
    values = bs.pointwise(many, random_seed=1)
    rows, scale = np.array(standard(people())).T, [units("age")[1], 1.0, units("income")[1], 1.0]
    logs = values.log_likelihood["x"].values[0, ::COPIES]
    for s in range(2):
        whole = log_terms(s, *rows.T).sum(axis=0)
        for j in range(4):
            axis = GRID if j in (0, 2) else np.arange(2 if j == 1 else 3)
            other = np.repeat(rows[None], len(axis), axis=0)
            other[:, :, j] = axis[:, None]
            own = log_terms(s, *other.transpose(2, 0, 1)).sum(axis=0)
            step = GRID[1] - GRID[0] if j in (0, 2) else 1.0
            expected = whole - np.log(np.exp(own).sum(axis=0) * step * scale[j])
            # Grids of Laplace densities miss corners.
            np.testing.assert_allclose(logs[s, :, j], expected, atol=0.01 if j == 2 else 2e-3)
    drawn = values.posterior_predictive["x"].values[0]
    p = np.array([np.mean([given_others(s, row, 0) for s in range(2)], axis=0) for row in rows])
    location, unit = units("age")
    mean, found = p @ GRID, (drawn[:, :, 0] - location) / unit
    sd = np.sqrt((p * (GRID - mean[:, None]) ** 2).sum(axis=1))
    away = (found.mean(axis=0) - mean) / sd * np.sqrt(len(found))
    assert np.abs(away).max() < 4.0  # of 40 normal numbers
    assert set(np.unique(drawn[:, :, 3])) == {0.0, 1.0, 2.0}


def test_new_rows_are_read_as_the_table_was(result):
    new = people(6, seed=3)[["school", "income", "age", "smokes"]]
    new["school"] = new["school"].astype(str)
    was_set = pd.DataFrame({"smokes": [True, *[False] * 5]})
    with bs.new_rows(model(), new, interventions=was_set):
        found = pm.compute_log_likelihood(result, extend_inferencedata=False, progressbar=False)
    found = (found if "x" in found else found["log_likelihood"])["x"].values[0]
    for s in range(2):
        terms = log_terms(s, *standard(new))
        terms[1, 0] = 0.0
        expected = terms.sum(axis=0) - np.log(units("age")[1]) - np.log(units("income")[1])
        np.testing.assert_allclose(found[s], expected)


def test_other_rows_that_do_not_fit_are_refused(result):
    own, table = model(), people(5)
    with pytest.raises(TableError, match="'smokes' has the state 'often'"):
        bs.new_rows(own, table.assign(smokes="often"))
    with pytest.raises(TableError, match=r"'income' of the model is absent"):
        bs.new_rows(own, table.drop(columns="income"))
    with pytest.raises(TableError, match=r"'age'.*text"):
        bs.predict(result, table.assign(age="old"))
    table.loc[0, "age"] = np.nan
    with pytest.raises(TableError, match=r"'age'.*missing.*bs\.predict"):
        bs.new_rows(own, table)


def test_states_that_are_fractions_are_read_back():
    table = people().assign(dose=np.where(np.arange(40) % 3 > 0, 0.5, 1.5))
    with model(table) as own:
        prior = pm.sample_prior_predictive(3, random_seed=1)
    prior["posterior"] = prior["prior"]
    new = table.iloc[:4].assign(dose=[0.5, np.nan, 1.5, 0.5])
    found = bs.predict(prior, new)
    assert found["state"].tolist() == ["0.5", "1.5"] and found["row"].tolist() == [1, 1]
    assert bs.new_rows(own, new.dropna())["x"].eval().shape == (3, 5)
    with pytest.raises(TableError, match="'dose'"):
        bs.predict(prior, new.assign(dose=0.7))
