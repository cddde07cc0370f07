"""New rows averaged over all trees, against evidence with and without the row, summed over all 125 trees."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest

from scipy import stats

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.data.states import StateTable
from bayesstruct.data.table import Table
from bayesstruct.graphs.spanning_trees.sums import SpanningTrees
from bayesstruct.networks.kernels.scores.discrete import BDeu
from bayesstruct.networks.kernels.scores.gaussian import BGe
from bayesstruct.trees.kernels import densities, predictive
from bayesstruct.trees.kernels.averages import complete_row, empty_number
from bayesstruct.trees.kernels.rows import TreeRows

NAMES = list("abcde")
LEVELS = [3, 3, 2, 4, 2]
PAIRS = list(itertools.combinations(range(5), 2))


def numbers(seed=0, n=12):
    """Columns each of which depends on one before it, in odd units; few rows, so that many trees are probable."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5))
    for j in range(1, 5):
        x[:, j] += 0.7 * x[:, rng.integers(j)]
    return pd.DataFrame(
        x * [0.01, 3.0, 1.0, 200.0, 1.0] + [0.0, 10.0, -4.0, 0.0, 7.0], columns=NAMES
    )


def states(seed=0, n=25):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.5, a, rng.integers(0, 3, n))
    c = np.where(rng.random(n) < 0.6, b > 0, rng.random(n) < 0.5).astype(int)
    d = np.where(rng.random(n) < 0.4, a, rng.integers(0, 4, n))
    e = rng.integers(0, 2, n)
    table = pd.DataFrame(dict(zip(NAMES, (a, b, c, d, e), strict=True)))
    table.iloc[:4] = [[0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [2, 2, 0, 2, 0], [0, 0, 0, 3, 1]]
    return table


def trees_of_five():
    """All trees, as parents of the columns on the way from the first one."""
    for lines in itertools.combinations(PAIRS, 4):
        parent, reached = {0: ()}, [0]
        for node in reached:
            for i, j in lines:
                other = j if i == node else i if j == node else None
                if other is not None and other not in parent:
                    parent[other] = (node,)
                    reached.append(other)
        if len(parent) == 5:
            yield parent


TREES = list(trees_of_five())


PARENTS = np.array([[own[i][0] if own[i] else i for i in range(5)] for own in TREES])


def log_evidence(local):
    """Log marginal likelihood of a table, the mean over all trees, from scores of families."""
    alone, families = local.single_parents()
    families[np.diag_indices(5)] = alone  # a column that is its own parent has none
    return np.logaddexp.reduce(families[np.arange(5), PARENTS].sum(axis=1)) - np.log(len(TREES))


def state_score(table, size):
    return BDeu(table.to_numpy(dtype=int), states=LEVELS, equivalent_sample_size=size)


def density_of_numbers(train, size=1.0):
    """Function of a (5,) row: its log density in the units of the table, from two evidences."""
    location, scale = train.mean().to_numpy(), train.std().to_numpy()
    z = (train.to_numpy() - location) / scale
    before = log_evidence(BGe(z, alpha_mu=size))

    def log_density(row):
        longer = np.vstack([z, (row - location) / scale])
        return log_evidence(BGe(longer, alpha_mu=size)) - before - np.log(scale).sum()

    return log_density


def test_there_are_125_trees():
    assert len(TREES) == 125


@pytest.mark.parametrize("size", [1.0, 6.0])
def test_density_of_numbers_is_the_ratio_of_evidences(size):
    train, test = numbers(), numbers(1, 6)
    test.iloc[0] += 8 * train.std()  # far outside
    posterior = bs.exact.tree_posterior(train, equivalent_sample_size=size)
    found = posterior.log_density(test)
    log_density = density_of_numbers(train, size)
    expected = [log_density(row) for row in test.to_numpy()]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    # The most probable tree alone, and no tree at all, are something else.
    [best, *_] = sorted(
        TREES,
        key=lambda own: -posterior.log_probability([(i, *j) for i, j in own.items() if j]),
    )
    rows = posterior._rows
    z = ((test - train.mean()) / train.std()).to_numpy()
    alone = rows.pairs.single(z).sum(axis=1) - np.log(train.std()).sum()
    lines = [(i, *j) for i, j in best.items() if j]
    ratio = [sum(rows.pairs.ratios(own)[line] for line in lines) for own in z]
    for wrong in (alone, alone + ratio):
        assert np.abs(wrong - expected).max() > 0.1


@pytest.mark.parametrize("size", [1.0, 6.0])
def test_probability_of_states_is_the_ratio_of_evidences(size):
    train, test = states(), states(1, 8)
    posterior = bs.exact.tree_posterior(train, score="bdeu", equivalent_sample_size=size)
    found = posterior.log_density(test)
    before = log_evidence(state_score(train, size))
    expected = [
        log_evidence(state_score(pd.concat([train, test.iloc[[at]]]), size)) - before
        for at in range(len(test))
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    every = pd.DataFrame(itertools.product(*map(range, LEVELS)), columns=NAMES)
    np.testing.assert_allclose(np.exp(posterior.log_density(every)).sum(), 1.0, rtol=1e-10)


def after_rows(table, score, size):
    """Log density of other rows after the rows of a table, of which there may be none, with fixed units."""
    if score == "bge":
        local = BGe(table.standardized, alpha_mu=size) if table.n else None
    else:
        local = BDeu(table.codes, states=table.states, equivalent_sample_size=size)
    weights = np.zeros((table.p, table.p))
    if table.n:
        alone, pairs = local.single_parents()
        weights = pairs - alone[:, None]
        weights = (weights + weights.T) / 2
    return SpanningTrees(weights), TreeRows.after(table, size)


@pytest.mark.parametrize("size", [1.0, 6.0])
def test_predictive_densities_of_numbers_one_after_the_other_make_the_evidence(size):
    data = numbers()
    location, scale = data.mean().to_numpy(), data.std().to_numpy()
    total = 0.0
    for k in range(len(data)):
        known = Table(data.to_numpy()[:k], tuple(NAMES), location, scale)
        trees, rows = after_rows(known, "bge", size)
        total += rows.log_density(trees, data.iloc[[k]]).item() + np.log(scale).sum()
    evidence = bs.exact.tree_posterior(data, equivalent_sample_size=size).log_evidence
    np.testing.assert_allclose(total, evidence, rtol=0, atol=1e-9)


def test_predictive_probabilities_of_states_one_after_the_other_make_the_evidence():
    data = states()
    read = StateTable.read(data)
    total = 0.0
    for k in range(len(data)):
        known = StateTable(read.codes[:k], read.names, read.levels, read.ordered)
        trees, rows = after_rows(known, "bdeu", 2.0)
        total += rows.log_density(trees, data.iloc[[k]]).item()
    evidence = bs.exact.tree_posterior(data, score="bdeu", equivalent_sample_size=2.0).log_evidence
    np.testing.assert_allclose(total, evidence, rtol=0, atol=1e-9)


def by_quadrature(log_density, ends):
    """Log total, mean, sd and shares between ends of a density, by Gauss's rule on panels between them."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    ends = np.sort(ends)
    middle, half = (ends[1:] + ends[:-1]) / 2, np.diff(ends) / 2
    x = middle[:, None] + half[:, None] * nodes
    logs = np.array([[log_density(own) for own in row] for row in x])
    mass = np.exp(logs - logs.max()) * weights * half[:, None]
    mean = (mass * x).sum() / mass.sum()
    sd = np.sqrt((mass * (x - mean) ** 2).sum() / mass.sum())
    return logs.max() + np.log(mass.sum()), mean, sd, mass.sum(axis=1) / mass.sum()


def twins():
    """Columns that are nearly the same, so that trees differ much in what they predict."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(8, 1)) + 0.3 * rng.normal(size=(8, 5))
    return pd.DataFrame(x, columns=NAMES)


@pytest.mark.parametrize(
    ("train", "row", "column", "humps"),
    [
        (numbers(), [2.5, -1.0, -2.5, 2.0, -2.0], 1, 1),
        (numbers(), [0.3, -1.0, 0.5, 0.0, 1.0], 3, 1),
        # Columns contradict each other, and it is open to which one the last is joined.
        (twins(), [3.0, -3.0, 0.0, 0.0, 0.0], 4, 3),
        (twins(), [3.0, 3.0, -3.0, -3.0, 0.0], 4, 2),
    ],
)
def test_an_empty_number_is_integrated_over_all_trees(train, row, column, humps):
    row = train.mean() + train.std() * row
    joint = density_of_numbers(train)

    def log_density(x):
        own = row.to_numpy().copy()
        own[column] = x
        return joint(own)

    empty = row.to_frame("x").T
    empty.iloc[0, column] = np.nan
    posterior = bs.exact.tree_posterior(train)
    [found] = posterior.predict(empty, ci_prob=0.8).itertuples()
    assert (found.row, found.column) == ("x", NAMES[column])
    middle, width = train.iloc[:, column].mean(), train.iloc[:, column].std()
    away = np.array([*range(-5, 6), -7, 7, -10, 10, -15, 15, -25, 25])
    ends = np.append(middle + width * away, [found.low, found.high])
    line = np.array([log_density(x) for x in middle + width * np.linspace(-6, 6, 49)])
    assert ((line[1:-1] > line[:-2]) & (line[1:-1] > line[2:])).sum() == humps
    total, mean, sd, shares = by_quadrature(log_density, ends)
    np.testing.assert_allclose(posterior.log_density(empty).item(), total, rtol=0, atol=1e-8)
    np.testing.assert_allclose([(found.mean - mean) / sd, found.sd / sd], [0, 1], atol=1e-8)
    below = np.searchsorted(np.sort(ends), [found.low, found.high])
    np.testing.assert_allclose(
        [shares[: below[0]].sum(), shares[: below[1]].sum()], [0.1, 0.9], atol=1e-8
    )
    # The same if the value is there, or the column is not, and the column is named.
    for rows in (row.to_frame("x").T, empty.drop(columns=NAMES[column])):
        again = posterior.predict(rows, NAMES[column], ci_prob=0.8)
        np.testing.assert_allclose(again["low"], found.low, rtol=1e-12)


@pytest.mark.parametrize("far", [0.0, 5.0, 300.0])
def test_of_two_columns_one_given_the_other_is_a_t_distribution(far):
    train = numbers()[["a", "b"]]
    n, size = len(train), 1.0
    z = ((train - train.mean()) / train.std()).to_numpy()
    # Columns of mean 0: the scale matrix is T and the scatter.
    r = 0.5 * np.eye(2) + z.T @ z
    freedom = size + n + 2
    u2 = far**2 * (n + size) / (n + size + 1) / r[0, 0]
    left = (r[1, 1] - r[0, 1] ** 2 / r[0, 0]) * (n + size + 1) / (n + size)
    t = stats.t(freedom + 1, r[0, 1] / r[0, 0] * far, np.sqrt(left * (1 + u2) / (freedom + 1)))
    row = pd.DataFrame({"a": [train["a"].mean() + far * train["a"].std()]})
    posterior = bs.exact.tree_posterior(train)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*far")
        found = posterior.predict(row, "b", ci_prob=0.98).iloc[0]
    mine = (found[["mean", "low", "high"]].to_numpy(float) - train["b"].mean()) / train["b"].std()
    np.testing.assert_allclose(mine, [t.mean(), t.ppf(0.01), t.ppf(0.99)], atol=1e-8 * t.std())
    np.testing.assert_allclose(found["sd"] / train["b"].std(), t.std(), rtol=1e-8)


def test_empty_states_are_summed_out_over_all_trees():
    train, row = states(), states(1, 5)[4:].astype(float)
    row.loc[4, ["b", "d"]] = np.nan
    posterior = bs.exact.tree_posterior(train, score="bdeu")
    before, joint = log_evidence(state_score(train, 1.0)), np.empty((3, 4))
    for b, d in itertools.product(range(3), range(4)):
        longer = pd.concat([train, row.assign(b=b, d=d)])
        joint[b, d] = np.exp(log_evidence(state_score(longer, 1.0)) - before)
    np.testing.assert_allclose(posterior.log_density(row), np.log(joint.sum()), atol=1e-9)
    found = posterior.predict(row)
    assert found["column"].tolist() == ["b"] * 3 + ["d"] * 4
    assert found["state"].tolist() == [0, 1, 2, 0, 1, 2, 3]
    expected = np.concatenate([joint.sum(axis=1), joint.sum(axis=0)]) / joint.sum()
    np.testing.assert_allclose(found["probability"], expected, rtol=1e-9)


def test_densities_follow_the_units_and_the_prior_of_edges():
    train, test = numbers(), numbers(1, 3)
    found = bs.exact.tree_posterior(train).log_density(test)
    other = bs.exact.tree_posterior(train * 10.0 + 1).log_density(test * 10.0 + 1)
    np.testing.assert_allclose(other, found - 5 * np.log(10.0), atol=1e-9)
    # Only one tree is left: the density is a product of conditional ones.
    chain = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]
    forbidden = [p for p in itertools.combinations(NAMES, 2) if p not in chain]
    posterior = bs.exact.tree_posterior(train, forbidden=forbidden)
    pairs, z = posterior._rows.pairs, ((test - train.mean()) / train.std()).to_numpy()
    expected = [
        pairs.single(own).sum() + sum(pairs.ratios(own)[i, i + 1] for i in range(4)) for own in z
    ]
    np.testing.assert_allclose(
        posterior.log_density(test), expected - np.log(train.std()).sum(), atol=1e-10
    )


def test_counts_of_very_many_states_are_made_row_by_row(monkeypatch):
    train, test = states(), states(1, 5)
    expected = bs.exact.tree_posterior(train, score="bdeu").log_density(test)
    monkeypatch.setattr(predictive, "_MOST_CELLS", 100)
    posterior = bs.exact.tree_posterior(train, score="bdeu")
    np.testing.assert_allclose(posterior.log_density(test), expected, rtol=1e-13)
    assert posterior._rows.pairs._pair is None


def gap(table, *columns):
    table = table.astype(float)
    table.loc[2, list(columns)] = np.nan
    return table


@pytest.mark.parametrize(
    ("score", "rows", "column", "words"),
    [
        (
            "bge",
            gap(numbers(), "b", "c"),
            None,
            "row 2 has 2 empty numbers .columns 'b' and 'c'.*models.tree",
        ),
        ("bge", gap(numbers(), "b"), "c", "row 2 .*'b' and 'c'"),
        ("bge", numbers().drop(columns="b"), None, "'b'.*absent"),
        ("bge", numbers().assign(f=1.0), None, "'f'.*not in the model"),
        ("bge", numbers(), "bb", "unknown column 'bb'.*'b'"),
        ("bdeu", states().assign(a=7), None, "Column 'a' has the state 7"),
    ],
)
def test_bad_rows_are_refused_with_the_column_and_the_remedy(score, rows, column, words):
    train = numbers() if score == "bge" else states()
    posterior = bs.exact.tree_posterior(train, score=score)
    with pytest.raises(TableError, match=f"(?s){words}"):
        posterior.predict(rows, column)


@pytest.mark.parametrize("seed", [0, 1, 36])
def test_an_empty_number_is_found_where_no_neighbour_alone_has_it(seed):
    """Neighbours far outside of the table contradict each other; in the last case two peaks of similar height are 61 apart."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(1000, 1)) * rng.choice([0, 1], 4) + 0.5 * rng.normal(size=(1000, 4))
    posterior = bs.exact.tree_posterior(table)
    row, k = 50 * rng.normal(size=4), int(rng.integers(4))
    density = empty_number(posterior.trees, posterior._rows.pairs, row, k)
    rows = np.tile(row, (1501, 1))
    z = rows[:, k] = np.linspace(-150, 150, 1501)
    logs = [complete_row(posterior.trees, posterior._rows.pairs, own) for own in rows]
    p = np.exp(np.array(logs) - max(logs))
    mean = p @ z / p.sum()
    np.testing.assert_allclose(density.log_total, max(logs) + np.log(0.2 * p.sum()), atol=1e-7)
    np.testing.assert_allclose(density.mean, mean, rtol=1e-7)
    np.testing.assert_allclose(density.sd, np.sqrt(p @ (z - mean) ** 2 / p.sum()), rtol=1e-7)


def test_a_row_that_cannot_be_integrated_is_named(monkeypatch):
    monkeypatch.setattr(densities, "_HALVINGS", 1)
    posterior = bs.exact.tree_posterior(numbers())
    with pytest.raises(TableError, match=r"row 2.*column 'b'.*leave the row out"):
        posterior.predict(gap(numbers(), "b"))


def test_rows_of_too_many_empty_states_are_refused():
    rng = np.random.default_rng(0)
    train = pd.DataFrame(rng.integers(0, 2, (30, 20)), columns=[f"q{j}" for j in range(20)])
    posterior = bs.exact.tree_posterior(train, score="bdeu")
    row = train[:1].astype(float)
    row.iloc[0, :17] = np.nan
    with pytest.raises(TableError, match=r"row 0.*1\.31e\+05 ways"):
        posterior.log_density(row)


@pytest.mark.parametrize("prob", [0.0, 1.5, "wide"])
def test_the_probability_of_intervals_is_checked(prob):
    posterior = bs.exact.tree_posterior(numbers())
    with pytest.raises((ValueError, TypeError), match="ci_prob"):
        posterior.predict(numbers(1, 2), "a", ci_prob=prob)


@pytest.mark.chain
@pytest.mark.parametrize("score", ["bge", "bdeu"])
def test_draws_of_the_model_have_the_same_density_on_average(score):
    import pymc as pm

    train, test = (numbers(0, 40), numbers(1, 5)) if score == "bge" else (states(), states(1, 5))
    posterior = bs.exact.tree_posterior(train, score=score)
    with bs.models.tree(train, score=score) as model:
        idata = pm.sample(2000, tune=0, chains=2, cores=1, random_seed=1, progressbar=False)
    with bs.new_rows(model, test):
        pm.compute_log_likelihood(idata, progressbar=False)
    logs = idata["log_likelihood"]["x"].stack(s=("chain", "draw")).transpose("s", ...).to_numpy()
    p = np.exp(logs)
    expected = np.exp(posterior.log_density(test).to_numpy())
    error = p.std(axis=0) / np.sqrt(len(p))  # draws are independent
    assert (np.abs(p.mean(axis=0) - expected) < 4.5 * error).all()
    assert (error < 0.06 * expected).all()


def test_rows_beyond_the_squares_of_floats_have_their_density_without_a_warning():
    """Student's t: the logarithm of the density falls as that of the distance, also where its square is no float."""
    posterior = bs.exact.tree_posterior(numbers())
    rows = numbers().head(3)
    away = np.array([1e130, 1e150, 1e170])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)  # values that may stand for missing ones
        logs = posterior.log_density(rows.iloc[[0, 0, 0]].assign(a=away)).to_numpy()
        with pytest.raises(TableError, match=r"(?s)column 'b' cannot be integrated.*correct them"):
            posterior.predict(rows.assign(a=1e200), "b")
    assert np.isfinite(logs).all()
    # One neighbour or more: the same step of the logarithm for each factor 1e20.
    np.testing.assert_allclose(logs[1] - logs[0], logs[2] - logs[1], rtol=1e-9)
