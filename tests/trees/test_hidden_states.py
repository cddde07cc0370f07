"""Trees of columns of states with hidden nodes: draws against all trees of four columns and against the joint distribution of everything."""

import itertools

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats
from scipy.special import gammaln
from tools.enumeration import assert_matches_enumeration
from tools.geweke import assert_geweke

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.distributions import HiddenTree, HiddenTreeStates, TreeTables
from bayesstruct.steps import HiddenStateMoves
from bayesstruct.trees.kernels.hidden_states.messages import row_log_likelihoods
from bayesstruct.trees.kernels.hidden_trees import is_rooted_form


def all_trees(p, hidden):
    """All trees of p columns and so many hidden nodes at most, by looking at every vector of parents."""
    nodes = p + hidden
    found = itertools.product(*([-1] if k == 0 else range(-1, nodes) for k in range(nodes)))
    return np.array([one for one in found if is_rooted_form(np.array(one), p)])


def stepper(model, seed=0):
    step = HiddenStateMoves(model.free_RVs, model=model)
    step.setup_chain(np.random.default_rng(seed), 0, 0)
    return step


def drawn(model, n, seed=0):
    step, point, out = stepper(model, seed), model.initial_point(), []
    for _ in range(n):
        point, _ = step.step(point)
        out.append(point)
    return out


def shares(total, parts):
    """All ways to write a number as a sum of so many, and the logarithms of their multinomial coefficients."""
    ways = itertools.product(range(total + 1), repeat=parts)
    found = np.array([way for way in ways if sum(way) == total])
    return found, gammaln(total + 1) - gammaln(found + 1).sum(axis=1)


def log_evidence(parent, patterns, counts, states, hidden_states, size):
    """Log marginal likelihood of a tree: the sum over all states of the hidden nodes in all rows, tables being integrated out."""
    p = patterns.shape[1]
    hidden = [k for k in range(p, len(parent)) if parent[k] >= 0]
    fillings = list(itertools.product(range(hidden_states), repeat=len(hidden)))
    each = [shares(n, len(fillings)) for n in counts]
    grid = np.indices([len(ways) for ways, _ in each]).reshape(len(each), -1)
    total = sum(logs[grid[r]] for r, (_, logs) in enumerate(each))
    width = [*states, *[hidden_states] * (len(parent) - p)]

    def log_dirichlet(nodes):
        sums = np.zeros(([width[i] for i in nodes]) + [grid.shape[1]])
        for r, (pattern, (ways, _)) in enumerate(zip(patterns, each, strict=True)):
            for q, filling in enumerate(fillings):
                own = dict(enumerate(pattern)) | dict(zip(hidden, filling, strict=True))
                sums[tuple(own[i] for i in nodes)] += ways[grid[r], q]
        sums = sums.reshape(-1, grid.shape[1])
        a = size / len(sums)
        n = sums.sum(axis=0)
        return gammaln(size) - gammaln(size + n) + (gammaln(a + sums) - gammaln(a)).sum(axis=0)

    degree = np.zeros(len(parent), int)
    for child, above in enumerate(parent):
        if above >= 0:
            degree[[child, above]] += 1
            total = total + log_dirichlet((child, above))
    for node in np.flatnonzero(degree > 1):
        total = total - (degree[node] - 1) * log_dirichlet((node,))
    return np.logaddexp.reduce(total)


PATTERNS = np.array([[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1], [0, 1, 1, 0]])
COUNTS = np.array([5, 4, 3, 2])


def table(patterns=PATTERNS, counts=COUNTS):
    return pd.DataFrame(
        np.repeat(patterns, counts, axis=0), columns=list("abcd"[: patterns.shape[1]])
    )


def posterior(trees, *args):
    logs = np.array([log_evidence(tree, *args) for tree in trees])
    return np.exp(logs - np.logaddexp.reduce(logs))


@pytest.mark.statistical
def test_trees_of_four_columns_have_their_posterior_probabilities():
    trees = all_trees(4, 2)
    assert len(trees) == 32
    p = posterior(trees, PATTERNS, COUNTS, [2] * 4, 2, 4.0)
    points = drawn(bs.models.latent_tree(table(), score="bdeu"), 20_000)[100:]
    draws = np.array([point["parent"] for point in points])
    assert_matches_enumeration(draws, p, states=trees)
    # A factor of 2 for each hidden node, as for the signs of numbers, would be wrong.
    wrong = p * 2.0 ** (trees[:, 4:] >= 0).sum(axis=1)
    with pytest.raises(AssertionError):
        assert_matches_enumeration(draws, wrong / wrong.sum(), states=trees)


@pytest.mark.statistical
def test_columns_with_different_numbers_of_states():
    patterns, counts = (
        np.array([[0, 0, 1], [1, 1, 0], [1, 2, 0], [0, 2, 1]]),
        np.array([3, 3, 2, 1]),
    )
    trees = all_trees(3, 1)
    assert len(trees) == 4
    with bs.models.latent_tree(
        table(patterns, counts), score="bdeu", hidden_states=3, equivalent_sample_size=6
    ) as model:
        points = drawn(model, 6_000)[100:]
    p = posterior(trees, patterns, counts, [2, 3, 2], 3, 6.0)
    draws = np.array([point["parent"] for point in points])
    assert_matches_enumeration(draws, p, states=trees)


def brute_force(parent, tables, states, row):
    """Probability of a row by the sum over all states of the hidden nodes."""
    p, total = len(row), 0.0
    used = [k for k in range(p, len(parent)) if parent[k] >= 0]
    for filling in itertools.product(*(range(states[k]) for k in used)):
        own = dict(enumerate(row)) | dict(zip(used, filling, strict=True))
        value = tables[0, 0, own[0]]
        for node in own:
            if node:
                value *= tables[node, own[parent[node]], own[node]]
        total += value
    return total


def test_probabilities_of_rows_are_sums_over_hidden_states():
    rng, states = np.random.default_rng(0), np.array([2, 3, 2, 2, 3, 3])
    rows = np.array(list(itertools.product(*map(range, states[:4]))))
    for parent in np.array([[-1, 5, 5, 4, 0, 4], [-1, 4, 4, 4, 0, -1], [-1, 0, 0, 2, -1, -1]]):
        tree = HiddenTree.dist(4)
        dist = TreeTables.dist(tree, 3.0, states=states[:4], hidden_states=3)
        tables = np.zeros((6, 3, 3))
        for node, above in enumerate(parent):
            if node == 0 or above >= 0:
                lines = 1 if node == 0 else states[above]
                tables[node, :lines, : states[node]] = rng.dirichlet(np.ones(states[node]), lines)
        found = row_log_likelihoods(parent, tables, states, rows)
        wanted = [brute_force(parent, tables, states, row) for row in rows]
        np.testing.assert_allclose(np.exp(found), wanted, rtol=1e-12)
        np.testing.assert_allclose(np.exp(found).sum(), 1.0)
        # An unknown state is summed out.
        some = row_log_likelihoods(parent, tables, states, np.array([[0, -1, 1, 0]]))
        match = (rows[:, [0, 2, 3]] == [0, 1, 0]).all(axis=1)
        np.testing.assert_allclose(np.exp(some[0]), np.exp(found)[match].sum())
        # The density of the tables is that of Dirichlet distributions.
        logp = pm.logp(dist, tables).eval({tree: parent})
        assert np.isfinite(logp)
        wanted = 0.0
        for node, above in enumerate(parent):
            if node == 0 or above >= 0:
                lines = 1 if node == 0 else states[above]
                for s in range(lines):
                    own = tables[node, s, : states[node]]
                    alpha = np.full(len(own), 3.0 / (len(own) * lines))
                    wanted += stats.dirichlet.logpdf(own, alpha)
        np.testing.assert_allclose(logp, wanted)
        off = tables.copy()
        off[1, 0, :2] = off[1, 0, :2] + [0.01, 0.0]
        assert pm.logp(dist, off).eval({tree: parent}) == -np.inf


SIZE, WEIGHT, ROWS = 4.0, 0.7, 7


def joint():
    """Forward draws of everything, and a transition that draws the rows anew."""
    states = np.array([2, 2, 3, 2, 2, 2])
    data = pd.DataFrame(
        [[0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 2, 0]] + [[0, 0, 0, 0]] * 4, columns=list("abcd")
    )
    with bs.models.latent_tree(
        data, score="bdeu", hidden_weight=WEIGHT, equivalent_sample_size=SIZE, hidden_states=2
    ) as model:
        step = stepper(model)
    trees = all_trees(4, 2)
    chance = WEIGHT ** (trees[:, 4:] >= 0).sum(axis=1)

    def rows(rng, state):
        parent, tables = state["parent"], state["parent_table"]
        x = np.zeros((ROWS, 6), int)
        waiting = [0]
        for node in waiting:
            for r in range(ROWS):
                line = 0 if node == 0 else x[r, parent[node]]
                p = tables[node, line, : states[node]]
                x[r, node] = rng.choice(states[node], p=p / p.sum())
            waiting += np.flatnonzero(parent == node).tolist()
        return state | {"x": x[:, :4]}

    def forward(rng):
        parent = trees[rng.choice(len(trees), p=chance / chance.sum())]
        tables = np.zeros((6, 3, 3))
        for node, above in enumerate(parent):
            if node == 0 or above >= 0:
                lines, own = (1 if node == 0 else states[above]), states[node]
                weights = np.full(own, SIZE / (lines * own))
                tables[node, :lines, :own] = rng.dirichlet(weights, lines)
        return rows(rng, {"parent": parent, "parent_table": tables})

    def transition(rng, state):
        state = rows(rng, state)
        step.rng, step.begun = rng, True
        step.observe(state["x"])
        point, _ = step.step({k: state[k] for k in ("parent", "parent_table")})
        return state | point

    return forward, transition, step


def bounded(state):
    """Statistics of everything that do not depend on names of hidden states."""
    parent, tables, x = state["parent"], state["parent_table"], state["x"]
    hidden = int((parent[4:] >= 0).sum())
    out = {f"hidden {k}": hidden == k for k in range(2)} | {"root": tables[0, 0, 0] ** 2}
    out["cells"] = (tables**2).sum()
    out["rest"] = (tables[1:] ** 2).sum() / len(tables)
    for i, j in itertools.combinations(range(4), 2):
        same = (x[:, i] == x[:, j]).sum()
        out |= {f"same {i}{j}": same, f"same {i}{j} squared": same**2}
        out[f"edge {i}{j}"] = parent[j] == i or parent[i] == j
        out[f"same {i}{j} and hidden"] = same * hidden
        if parent[j] == i:
            out[f"table {i}{j}"] = tables[j, 0, 0] * same
            out[f"table {i}{j} squared"] = tables[j, 0, 0] ** 2
        else:
            out |= {f"table {i}{j}": 0.0, f"table {i}{j} squared": 0.0}
    for i in range(4):
        first = (x[:, i] == 0).sum()
        out |= {f"first {i}": first, f"first {i} squared": first**2}
        out[f"first {i} and root"] = first * tables[0, 0, 0]
        if parent[i] >= 4:
            out[f"below hidden {i}"] = (tables[i, :2] ** 2).sum()
            out[f"below hidden {i} and first"] = first * (tables[i, :2, 0]).sum()
        else:
            out |= {f"below hidden {i}": 0.0, f"below hidden {i} and first": 0.0}
    return out


@pytest.mark.statistical
def test_everything_has_its_joint_distribution():
    forward, transition, _ = joint()
    assert_geweke(forward, transition, bounded, draws=12_000, seed=1)


def _names_counted(step):
    logs, size = step.prior
    step.prior = logs + np.log(2.0) * np.arange(len(logs)), size


def _other_size(step):
    logs, size = step.prior
    step.prior = logs, 1.5 * size


def _rows_twice(step):
    right = step.observe
    step.observe = lambda rows: right(np.vstack([rows, rows]))


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [_names_counted, _other_size, _rows_twice])
def test_wrong_variants_are_noticed(wrong):
    forward, transition, step = joint()
    wrong(step)
    with pytest.raises(AssertionError, match="worst z"):
        assert_geweke(forward, transition, bounded, draws=6_000, seed=1)


def test_log_density_of_the_model_is_that_of_its_parts():
    with bs.models.latent_tree(table(), score="bdeu") as model:
        [point] = drawn(model, 1)
    x = table().to_numpy()
    rows = row_log_likelihoods(point["parent"], point["parent_table"], np.full(6, 2), x).sum()
    tree = HiddenTree.dist(4)
    tables = TreeTables.dist(tree, 4.0, states=[2] * 4)
    own = pm.logp(tables, point["parent_table"]).eval({tree: point["parent"]})
    np.testing.assert_allclose(model.compile_logp()(point), rows + own - np.log(32.0))


def test_draws_of_rows_have_their_probabilities():
    states = [2, 3, 2]
    with pm.Model() as model:
        tree = HiddenTree("tree", 3)
        tables = TreeTables("table", tree, 5.0, states=states, hidden_states=2)
        HiddenTreeStates("x", tree, tables, shape=(20_000, 3))
    parent, table_, x = pm.draw([model["tree"], model["table"], model["x"]], random_seed=5)
    rows = np.array(list(itertools.product(*map(range, states))))
    p = np.exp(row_log_likelihoods(parent, table_, np.array([*states, 2]), rows))
    counts = [(x == row).all(axis=1).sum() for row in rows]
    assert sum(counts) == len(x)
    assert stats.chisquare(counts, p * len(x)).pvalue > 1e-4
    logs = pm.logp(HiddenTreeStates.dist(tree, tables, shape=(len(rows), 3)), rows)
    np.testing.assert_allclose(np.exp(logs.eval({tree: parent, tables: table_})), p)
    outside = pm.logp(HiddenTreeStates.dist(tree, tables, shape=(1, 3)), np.array([[0, 3, 0]]))
    assert outside.eval({tree: parent, tables: table_}) == -np.inf


def test_names_of_hidden_states_and_roots_do_not_matter():
    rng, states = np.random.default_rng(1), np.array([2, 3, 2, 2])
    parent = np.array([-1, 3, 3, 0])
    tables = np.zeros((4, 3, 3))
    for node, lines in ((0, 1), (1, 2), (2, 2), (3, 2)):
        own = states[node]
        tables[node, :lines, :own] = rng.dirichlet(np.ones(own), lines)
    renamed = tables.copy()
    renamed[3, :, :2] = tables[3, :, 1::-1]
    renamed[[1, 2], :2] = tables[[1, 2], 1::-1]
    rows = np.array(list(itertools.product(*map(range, states[:3]))))
    first = row_log_likelihoods(parent, tables, states, rows)
    np.testing.assert_allclose(row_log_likelihoods(parent, renamed, states, rows), first)
    tree = HiddenTree.dist(3)
    dist = TreeTables.dist(tree, 3.0, states=states[:3])
    logs = [pm.logp(dist, own).eval({tree: parent}) for own in (tables, renamed)]
    np.testing.assert_allclose(*logs)


@pytest.mark.chain
def test_results_are_read():
    made = bs.simulate.latent_tree(200, p=4, kind="discrete", shape="star", random_seed=3)
    run = {"chains": 2, "cores": 1, "progressbar": False, "compute_convergence_checks": False}
    with bs.models.latent_tree(made.data, score="bdeu") as model:
        idata = pm.sample(60, tune=20, random_seed=1, **run)
    table_ = bs.split_table(idata).set_index("split")
    assert table_["information"].ge(0.0).all()
    assert table_.loc["x1, x2, x3", "probability"] > 0.5  # x0 is a leaf
    counts = bs.hidden_node_table(idata)
    np.testing.assert_allclose(counts.sum(), 1.0)
    np.testing.assert_allclose(counts["prior"], np.array([16, 13, 3]) / 32)
    # Prediction of an empty value against the sum over hidden states in each draw.
    new = made.data.iloc[:1].astype(float)
    new.iloc[0, 2] = np.nan
    found = bs.predict(idata, new)
    draws = idata["posterior"].to_dataset()
    p = []
    for c, d in np.ndindex(2, 60):
        own = [draws[name].values[c, d] for name in ("parent", "parent_table")]
        rows = np.repeat(made.data.to_numpy()[:1].astype(int), 2, axis=0)
        rows[:, 2] = [0, 1]
        values = [brute_force(*own, [2] * 6, row) for row in rows]
        p.append(np.array(values) / np.sum(values))
    np.testing.assert_allclose(found["probability"], np.mean(p, axis=0))
    with pytest.raises(ValueError, match="states without names"):
        bs.hidden_values(idata)
    with bs.new_rows(model, made.data.iloc[:5]):
        pm.compute_log_likelihood(idata, progressbar=False)
    assert idata["log_likelihood"]["x"].shape == (2, 60, 5)


def test_bad_tables_and_options_are_refused():
    data = table()
    with pytest.raises(ValueError, match="`correlation_shape` belongs to the score 'bge'"):
        bs.models.latent_tree(data, score="bdeu", correlation_shape=2.0)
    with pytest.raises(ValueError, match="`hidden_states` belongs to the score 'bdeu'"):
        bs.models.latent_tree(data.astype(float), hidden_states=2)
    with pytest.raises(ValueError, match="`hidden_states` is at most 5"):
        bs.models.latent_tree(data, score="bdeu", hidden_states=6)
    with pytest.raises(ValueError, match="must be 1 or more"):
        bs.models.latent_tree(data, score="bdeu", equivalent_sample_size=0.1)
    with pytest.raises(TableError, match=r"'b'.*missing"):
        bs.models.latent_tree(
            data.astype(float).mask(data.index.to_numpy()[:, None] == [[-1, 1, -1, -1]]),
            score="bdeu",
        )
    rng = np.random.default_rng(0)
    wide = pd.DataFrame({c: rng.permutation(np.arange(130) % 13) for c in "abc"})
    with pytest.raises(TableError, match="more than 12 states"):
        bs.models.latent_tree(wide, score="bdeu")


def test_other_models_are_refused():
    with bs.models.latent_tree(table(), score="bdeu") as model:
        pm.Normal("other", model["parent_table"][0, 0, 0], 1.0)
    with pytest.raises(ValueError, match="'other' depends on 'parent_table'"):
        stepper(model)
    with pm.Model():
        tree = HiddenTree("tree", 3)
        with pytest.raises(TypeError, match="`tables` is a"):
            HiddenTreeStates("x", tree, np.ones((4, 2, 2)))
        with pytest.raises(ValueError, match="the tree has 3"):
            TreeTables("table", tree, 4.0, states=[2, 2])
