"""New rows averaged over trees of numbers and states, and over forests, against evidence with and without the row."""

import itertools
import warnings

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from scipy import stats
from trees import test_predictive as one_kind
from trees.test_forest import SHAPES, all_forests, grid_of_shares, log_prior
from trees.test_mixed import NAMES, STATES, admissible_trees, standardised, table
from trees.test_predictive import by_quadrature, state_score

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.graphs.spanning_trees.two_kinds import all_trees
from bayesstruct.networks.kernels.scores.discrete import BDeu
from bayesstruct.networks.kernels.scores.gaussian import BGe
from bayesstruct.trees.data import mixed_tree_table
from bayesstruct.trees.kernels.mixed import MixedTotals
from bayesstruct.trees.kernels.rows import TreeRows

NUMBERS, OF_STATES = [0, 2, 4], [1, 3]
ODDS = np.exp(np.random.default_rng(3).uniform(-1, 1, (5, 5)))
ODDS = np.sqrt(ODDS * ODDS.T)
TREES = list(admissible_trees())


def log_given_states(x, groups, size):
    """Log density of numbers with a normal mean in each group and one variance, both integrated out: multivariate t."""
    same = groups[:, None] == groups
    degrees = size + 2.0
    shape = size**2 / (size + 1.0) / degrees * (np.eye(len(x)) + same / size)
    return stats.multivariate_t(np.zeros(len(x)), shape, degrees).logpdf(x)


def mixed_evidence(z, size):
    """Log marginal likelihood of standardised numbers and codes, summed over all trees."""
    bge = BGe(z[:, NUMBERS], alpha_mu=size)
    bdeu = BDeu(z[:, OF_STATES].astype(int), states=[3, 2], equivalent_sample_size=size)
    alone, total = np.zeros(5), 0.0
    for k, i in enumerate(NUMBERS):
        alone[i] = bge.local(k, [])
    gain = {
        (i, j): log_given_states(z[:, i], z[:, j], size) - alone[i]
        for i in NUMBERS
        for j in OF_STATES
    }
    for (k, i), (m, j) in itertools.permutations(enumerate(NUMBERS), 2):
        gain[i, j] = bge.local(k, [m]) - alone[i]
    # Both columns of states are joined in all trees.
    total = alone.sum() + bdeu.local(0, []) + bdeu.local(1, [0])
    gain[1, 3] = 0.0
    logs = [sum(gain.get(e, gain.get(e[::-1])) for e in lines) for lines in TREES]
    prior = np.array([np.log([ODDS[e] for e in lines]).sum() for lines in TREES])
    return total + np.logaddexp.reduce(prior + logs) - np.logaddexp.reduce(prior)


def mixed_posterior(size=1.0, train=None):
    options = {"score": "mixed", "edge_probability": ODDS / (1 + ODDS)}
    train = table(12) if train is None else train
    return bs.exact.tree_posterior(train, equivalent_sample_size=size, **options)


def mixed_density(size=1.0):
    """Function of a row in the units of the table, states as codes: its log density from two evidences."""
    train, z = table(12), standardised(table(12))
    location, scale = np.zeros(5), np.ones(5)
    location[NUMBERS], scale[NUMBERS] = train[[*"uvx"]].mean(), train[[*"uvx"]].std()
    before = mixed_evidence(z, size)

    def log_density(row):
        longer = np.vstack([z, (row - location) / scale])
        return mixed_evidence(longer, size) - before - np.log(scale).sum()

    return log_density, location, scale


def coded(frame):
    return frame.assign(z=frame["z"].map({"p": 0, "q": 1, "r": 2})).to_numpy(float)


@pytest.mark.parametrize("size", [1.0, 6.0])
def test_density_of_numbers_and_states_is_the_ratio_of_evidences(size):
    posterior, test = mixed_posterior(size), table(8, 1)
    test.loc[0, ["u", "v", "x"]] += [8.0, -30.0, 6.0]  # far outside
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*far")
        found = posterior.log_density(test)
    log_density, *_ = mixed_density(size)
    expected = [log_density(row) for row in coded(test)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    # Numbers whose distribution does not depend on the states are something else.
    pairs = posterior._rows.pairs
    z = (coded(test) - posterior._rows._units[0]) / posterior._rows._units[1]
    apart = [pairs.single(own).sum() for own in z] - np.log(posterior._rows._units[1]).sum()
    assert np.abs(apart - expected).max() > 0.1


@pytest.mark.parametrize("size", [1.0, 6.0])
def test_mixed_predictive_densities_one_after_the_other_make_the_evidence(size):
    data = table(12)
    whole, total = mixed_tree_table(data), 0.0
    for k in range(len(data)):
        known = replace(whole, values=whole.values[:k])
        _, gains = MixedTotals(known.standardized, known.states, size).weights
        trees = all_trees(np.log(ODDS) + gains, np.array(known.states) == 0)
        rows = TreeRows.after(known, size)
        total += rows.log_density(trees, data.iloc[[k]]).item() + np.log(whole.scale).sum()
    np.testing.assert_allclose(total, mixed_posterior(size).log_evidence, rtol=0, atol=1e-9)


@pytest.mark.parametrize("gaps", [["x"], ["v", "z"], ["z", "w"], ["u", "z", "w"]])
def test_empty_numbers_and_states_of_one_row(gaps):
    log_density, location, scale = mixed_density()
    posterior, row = mixed_posterior(), table(8, 1).iloc[[3]]
    whole, empty = coded(row)[0], row.copy()
    for name in gaps:
        empty[name] = np.nan
    found = posterior.predict(empty, ci_prob=0.8)
    codes = [NAMES.index(name) for name in gaps if name in "zw"]
    number = [NAMES.index(name) for name in gaps if name in "uvx"]
    logs, moments = {}, {}
    ends = found["low"].dropna().tolist() + found["high"].dropna().tolist()
    for filled in itertools.product(*(range(STATES[j]) for j in codes)):
        own = whole.copy()
        own[codes] = filled
        if not number:
            logs[filled] = log_density(own)
            continue
        [j] = number

        def of_value(x, own=own, j=j):
            return log_density(np.where(np.arange(5) == j, x, own))

        away = np.array([-200, -60, -20, -8, -4, -2, -1, 0, 1, 2, 4, 8, 20, 60, 200])
        cuts = np.append(location[j] + scale[j] * away, ends)
        logs[filled], *moments[filled] = by_quadrature(of_value, cuts)
    total = np.logaddexp.reduce([*logs.values()])
    np.testing.assert_allclose(posterior.log_density(empty).item(), total, rtol=0, atol=1e-8)
    p = {filled: np.exp(own - total) for filled, own in logs.items()}
    for place, j in enumerate(codes):
        lines = found[found["column"] == NAMES[j]]
        assert lines["state"].tolist() == [["p", "q", "r"], [0, 1]][j > 1]
        expected = [sum(p[f] for f in p if f[place] == k) for k in range(STATES[j])]
        np.testing.assert_allclose(lines["probability"], expected, atol=1e-8)
        assert lines[["mean", "sd", "low", "high"]].isna().all(axis=None)
    if number:
        [line] = found[found["column"] == NAMES[number[0]]].itertuples()
        mean = sum(p[f] * moments[f][0] for f in p)
        sd = np.sqrt(sum(p[f] * (moments[f][1] ** 2 + (moments[f][0] - mean) ** 2) for f in p))
        np.testing.assert_allclose([(line.mean - mean) / sd, line.sd / sd], [0, 1], atol=1e-7)
        shares = sum(p[f] * moments[f][2] for f in p)
        cut = np.searchsorted(np.sort(cuts), [line.low, line.high])
        np.testing.assert_allclose(
            [shares[: cut[0]].sum(), shares[: cut[1]].sum()], [0.1, 0.9], atol=1e-7
        )


def test_one_column_of_each_kind():
    train = table(12)[["z", "x"]]
    posterior = bs.exact.tree_posterior(train, score="mixed")
    z = (train["x"] - train["x"].mean()) / train["x"].std()
    groups = train["z"].map({"p": 0, "q": 1, "r": 2}).to_numpy()
    row = pd.DataFrame({"z": ["q"], "x": [2.5]})
    new = (2.5 - train["x"].mean()) / train["x"].std()
    longer = log_given_states(np.append(z, new), np.append(groups, 1), 1.0)
    given = longer - log_given_states(z.to_numpy(), groups, 1.0) - np.log(train["x"].std())
    share = ((groups == 1).sum() + 1 / 3) / 13
    np.testing.assert_allclose(posterior.log_density(row).item(), given + np.log(share))
    given_state = posterior.predict(row, "x").drop(columns="state")
    assert given_state.notna().sum(axis=1).item() == 6  # all but the probability
    both = posterior.predict(row.assign(z=None, x=np.nan))
    assert both["column"].tolist() == ["z", "z", "z", "x"]


def all_parents():
    """Parents of the columns in all forests, a root being its own, and log prior probabilities with the share summed out."""
    forests = list(all_forests())
    parents = np.tile(np.arange(5), (len(forests), 1))
    for own, (*_, arcs) in zip(parents, forests, strict=True):
        for above, child in arcs:
            own[child] = above
    logit, _, weight = grid_of_shares(SHAPES)
    return parents, forests, logit, weight


PARENTS, FORESTS, LOGIT, WEIGHT = all_parents()


def forest_evidence(odds):
    """Function of scores: log marginal likelihood of a table, summed over all forests and shares."""
    prior = np.logaddexp.reduce(log_prior(FORESTS, odds, LOGIT) + WEIGHT, axis=1)

    def evidence(local):
        alone, families = local.single_parents()
        families[np.diag_indices(5)] = alone
        return np.logaddexp.reduce(prior + families[np.arange(5), PARENTS].sum(axis=1))

    return evidence


def forest_density_of_numbers(train, odds):
    location, scale = train.mean().to_numpy(), train.std().to_numpy()
    z = (train.to_numpy() - location) / scale
    evidence = forest_evidence(odds)
    before = evidence(BGe(z, alpha_mu=1.0))

    def log_density(row):
        longer = np.vstack([z, (row - location) / scale])
        return evidence(BGe(longer, alpha_mu=1.0)) - before - np.log(scale).sum()

    return log_density


@pytest.mark.parametrize("odds", [np.ones((5, 5)), ODDS], ids=["equal", "unequal"])
def test_density_averaged_over_forests_of_numbers(odds):
    train, test = one_kind.numbers(), one_kind.numbers(1, 6)
    test.iloc[0] += 8 * train.std()  # far outside
    options = {"edge_share": SHAPES, "edge_probability": odds / (1 + odds)}
    posterior = bs.exact.forest_posterior(train, **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*far")
        found = posterior.log_density(test)
    log_density = forest_density_of_numbers(train, odds)
    np.testing.assert_allclose(found, [*map(log_density, test.to_numpy())], rtol=0, atol=1e-9)
    tree = bs.exact.tree_posterior(train, edge_probability=odds / (1 + odds))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*far")
        assert np.abs(tree.log_density(test) - found).max() > 0.1


@pytest.mark.parametrize("odds", [np.ones((5, 5)), ODDS], ids=["equal", "unequal"])
def test_probability_of_states_averaged_over_forests(odds):
    train, row = one_kind.states(), one_kind.states(1, 5)[4:].astype(float)
    options = {"edge_share": SHAPES, "edge_probability": odds / (1 + odds)}
    posterior = bs.exact.forest_posterior(train, score="bdeu", **options)
    evidence = forest_evidence(odds)
    before, joint = evidence(state_score(train, 1.0)), np.empty((3, 4))
    for b, d in itertools.product(range(3), range(4)):
        longer = pd.concat([train, row.assign(b=b, d=d)])
        joint[b, d] = evidence(state_score(longer, 1.0)) - before
    rows = pd.concat([row.assign(b=b, d=d) for b in range(3) for d in range(4)])
    np.testing.assert_allclose(posterior.log_density(rows), joint.ravel(), rtol=0, atol=1e-9)
    row.loc[4, ["b", "d"]] = np.nan
    p = np.exp(joint)
    np.testing.assert_allclose(posterior.log_density(row), np.log(p.sum()), atol=1e-9)
    expected = np.concatenate([p.sum(axis=1), p.sum(axis=0)]) / p.sum()
    np.testing.assert_allclose(posterior.predict(row)["probability"], expected, rtol=1e-9)


def test_an_empty_number_is_integrated_over_all_forests():
    train = one_kind.twins()
    row = train.mean() + train.std() * [3.0, -3.0, 0.0, 0.0, 0.0]
    posterior = bs.exact.forest_posterior(train, edge_share=SHAPES)
    joint = forest_density_of_numbers(train, np.ones((5, 5)))

    def log_density(x):
        return joint(np.append(row[:4], x))

    [found] = posterior.predict(row.to_frame().T, "e", ci_prob=0.8).itertuples()
    middle, width = train["e"].mean(), train["e"].std()
    away = np.array([*range(-5, 6), -7, 7, -10, 10, -15, 15, -25, 25])
    ends = np.append(middle + width * away, [found.low, found.high])
    total, mean, sd, shares = by_quadrature(log_density, ends)
    empty = row.to_frame().T.assign(e=np.nan)
    np.testing.assert_allclose(posterior.log_density(empty).item(), total, rtol=0, atol=1e-8)
    np.testing.assert_allclose([(found.mean - mean) / sd, found.sd / sd], [0, 1], atol=1e-8)
    below = np.searchsorted(np.sort(ends), [found.low, found.high])
    np.testing.assert_allclose(
        [shares[: below[0]].sum(), shares[: below[1]].sum()], [0.1, 0.9], atol=1e-8
    )


@pytest.mark.parametrize(
    ("posterior", "rows", "words"),
    [
        (mixed_posterior(), table(3).assign(u=np.nan, x=np.nan), "row 0 has 2 empty numbers.*'u' and 'x'.*models.tree"),
        (mixed_posterior(), table(3).assign(z="s"), "'z' has the state 's'"),
        (mixed_posterior(), table(3).drop(columns="v"), "'v'.*absent"),
        (
            bs.exact.forest_posterior(one_kind.numbers()),
            one_kind.numbers().assign(a=np.nan, b=np.nan),
            "row 0 has 2 empty numbers.*models.forest",
        ),
    ],
)  # fmt: skip
def test_bad_rows_are_refused_with_the_column_and_the_remedy(posterior, rows, words):
    with pytest.raises(TableError, match=f"(?s){words}"):
        posterior.predict(rows)
