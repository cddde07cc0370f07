"""Trees with hidden nodes: counts, densities, and draws against all trees of four columns and against the joint distribution of everything."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats
from scipy.optimize import minimize
from scipy.special import betaln
from tools.enumeration import assert_matches_enumeration
from tools.geweke import assert_geweke

import bayesstruct as bs

from bayesstruct.data.errors import TableError, TableWarning
from bayesstruct.distributions import HiddenTree, TreeCorrelations
from bayesstruct.steps import HiddenTreeMoves
from bayesstruct.trees.kernels.gaussian import posterior_scale
from bayesstruct.trees.kernels.hidden_counts import draw_edges, log_tree_counts, prior_edge_share
from bayesstruct.trees.kernels.hidden_density import log_density_of_tree
from bayesstruct.trees.kernels.hidden_normal import column_precision, node_precision
from bayesstruct.trees.kernels.hidden_places import Prior
from bayesstruct.trees.kernels.hidden_trees import is_rooted_form, neighbours_of, rooted_parents
from bayesstruct.trees.reading import hidden as reading
from bayesstruct.trees.recognition.hidden import hidden_tree_part


def all_trees(p):
    """All trees of p columns and hidden nodes by looking at every vector of parents."""
    nodes = 2 * p - 2
    found = itertools.product(*([-1] if k == 0 else range(-1, nodes) for k in range(nodes)))
    return np.array([one for one in found if is_rooted_form(np.array(one), p)])


def unrooted(p, hidden):
    """Sets of edges of trees by brute force over labelled trees, without the form with a root."""
    nodes, found = p + hidden, set()
    for sequence in itertools.product(range(nodes), repeat=nodes - 2):
        tree = nx.from_prufer_sequence(list(sequence)) if nodes > 2 else nx.path_graph(2)
        if all(tree.degree(k) > 2 for k in range(p, nodes)):
            splits = []
            for a, b in tree.edges:
                cut = tree.copy()
                cut.remove_edge(a, b)
                side = frozenset(k for k in nx.node_connected_component(cut, a) if k < p)
                splits.append(min(side, frozenset(range(p)) - side, key=lambda s: (0 not in s, 0)))
            found.add(
                (frozenset(splits), frozenset(e for e in map(frozenset, tree.edges) if max(e) < p))
            )
    return found


def test_counts_of_trees_are_those_of_all_labelled_ones():
    for p, hidden in ((3, 0), (3, 1), (4, 0), (4, 1), (4, 2), (5, 1)):
        trees = unrooted(p, hidden)
        np.testing.assert_allclose(np.exp(log_tree_counts(p, hidden)[hidden]), len(trees))
        beside = np.mean([frozenset((0, 1)) in lines for _, lines in trees])
        np.testing.assert_allclose(prior_edge_share(p, hidden)[hidden], beside)
    assert len(all_trees(4)) == 32
    assert len(all_trees(3)) == 4


@pytest.mark.statistical
@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_prior_draws_have_their_probabilities(weight):
    trees = all_trees(4)
    p = weight ** (trees[:, 4:] >= 0).sum(axis=1)
    draws = pm.draw(HiddenTree.dist(4, weight), 4000, random_seed=1)
    assert_matches_enumeration(draws, p / p.sum(), states=trees)
    logs = [pm.logp(HiddenTree.dist(4, weight), tree).eval() for tree in trees[::5]]
    np.testing.assert_allclose(np.exp(logs), (p / p.sum())[::5], rtol=1e-12)
    draws = [rooted_parents(e, 5, 8) for e in draw_edges(np.random.default_rng(2), 5, 3, 6000)]
    counts = np.unique(draws, axis=0, return_counts=True)[1]
    assert len(counts) == 15
    assert stats.chisquare(counts).pvalue > 1e-4


def test_trees_of_many_columns_are_drawn_though_their_number_is_larger_than_any_float():
    for hidden in (0, 50, 148):
        [edges] = draw_edges(np.random.default_rng(0), 150, hidden, 1)
        tree = nx.Graph(edges)
        assert nx.is_tree(tree) and len(tree) == 150 + hidden
        assert all(tree.degree(node) > 2 for node in range(150, 150 + hidden))
    assert log_tree_counts(150, 50)[50] > np.log(np.finfo(float).max)


def test_a_start_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"`start` has one number .* 6 in all, not 4"):
        HiddenTree.dist(4, start=[-1, 0, 1, 2])
    with pytest.raises(ValueError, match="6 in all, not 7"):
        TreeCorrelations.dist(HiddenTree.dist(4), start=[0.1] * 7)


def test_values_that_are_no_tree_have_no_density():
    right = np.array([-1, 4, 4, 4, 0, -1])
    for wrong in (
        [-1, 5, 5, 5, -1, 0],  # the second hidden node without the first
        [
            -1,
            4,
            4,
            0,
            0,
            -1,
        ],  # fine: a hidden node with three neighbours
        [-1, 0, 4, 0, 0, -1],  # a hidden node with two neighbours
        [-1, 2, 1, 0, -1, -1],  # a cycle
        [-1, 5, 4, 4, 0, 4],  # a hidden node with two neighbours
        [0, 4, 4, 4, 0, -1],  # the root has a parent
        [-1, 5, 5, 4, 0, 4],  # fine: two hidden nodes
        [-1, 4, 4, 5, 0, 0],  # a hidden node with two neighbours
    ):
        logp = pm.logp(HiddenTree.dist(4), np.array(wrong)).eval()
        assert np.isfinite(logp) == (wrong in ([-1, 4, 4, 0, 0, -1], [-1, 5, 5, 4, 0, 4]))
    swapped = [-1, 4, 4, 5, 5, 0, 0, -1]  # not the order of the walk
    assert not is_rooted_form(np.array([-1, 6, 6, 5, 5, 0, 0, -1]), 5)
    assert is_rooted_form(np.array([-1, 5, 5, 6, 6, 0, 0, -1]), 5), swapped
    tree = HiddenTree.dist(4)
    correlations = TreeCorrelations.dist(tree)
    for value, finite in (
        ([0, 0.5, -0.2, 0.1, 0.3, 0], True),
        ([0, 0.5, -0.2, 0.1, -0.3, 0], False),  # the sign of a hidden node
        ([0, 0.5, -0.2, 1.1, 0.3, 0], False),
        ([0, 0.5, -0.2, 0.1, 0.3, 0.1], False),  # of a node that is not used
    ):
        got = pm.logp(correlations, np.array(value, float)).eval({tree: right})
        assert np.isfinite(got) == finite
        if finite:
            np.testing.assert_allclose(got, np.log(2.0) - 4 * np.log(2.0))


def table(n=25, seed=1):
    """Two pairs of columns, each with something in common."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2))
    x = 0.6 * z[:, [0, 0, 1, 1]] + 0.35 * z[:, [1, 1, 0, 0]] + 0.8 * rng.normal(size=(n, 4))
    return pd.DataFrame(x, columns=list("abcd"))


def stepper(model, seed=0):
    step = HiddenTreeMoves(model.free_RVs, model=model)
    step.setup_chain(np.random.default_rng(seed), 0, 0)
    return step


def drawn(model, n, seed=0):
    step, point, out = stepper(model, seed), model.initial_point(), []
    for _ in range(n):
        point, _ = step.step(point)
        out.append(point)
    return out


def edge_matrix(parent, correlation, p):
    """Correlations of all columns by multiplication along paths; no precision matrix is used."""
    graph = nx.Graph()
    for child, above in enumerate(parent):
        if above >= 0:
            graph.add_edge(child, int(above), rho=correlation[child])
    out = np.eye(p)
    for i, paths in nx.all_pairs_shortest_path(graph):
        for j, path in paths.items():
            if i < p and j < p:
                out[i, j] = np.prod([graph.edges[e]["rho"] for e in itertools.pairwise(path)])
    return out


class _Proposal:
    """A t distribution about a mode, or (for a third of the draws) uniform correlations and scales from a t distribution."""

    def __init__(self, mode, d, rng):
        self.d, self.rng = d, rng
        covariance = 1.5 * mode.hess_inv + 0.02 * np.eye(len(mode.x))
        self.near = stats.multivariate_t(mode.x, covariance, df=4, seed=rng)
        self.scales = stats.multivariate_t(mode.x[d:], covariance[d:, d:], df=4, seed=rng)

    def draw(self, n):
        wide = n // 3
        rho = np.arctanh(self.rng.uniform(-1.0, 1.0, (wide, self.d)))
        return np.vstack([self.near.rvs(n - wide), np.hstack([rho, self.scales.rvs(wide)])])

    def log_density(self, theta):
        rho = np.tanh(theta[:, : self.d])
        with np.errstate(divide="ignore"):
            wide = np.log((1.0 - rho**2) / 2.0).sum(axis=1)
        wide = wide + self.scales.logpdf(theta[:, self.d :])
        return np.logaddexp(self.near.logpdf(theta) + np.log(2 / 3), wide - np.log(3.0))


def log_marginals(trees, scatter, n, draws=30_000, seed=0, spread=1.0):
    """Log marginal likelihoods, and their errors, of trees of standardised rows: importance sampling about the mode of each."""
    rng, found, errors, p = np.random.default_rng(seed), [], [], len(scatter)
    for parent in trees:
        used = np.flatnonzero(parent >= 0)
        hidden = int((parent[p:] >= 0).sum())
        d = len(used)

        def loss(theta, used=used, parent=parent):
            value = log_joints(parent, used, theta[None], scatter, n, p, spread)[0]
            return -value if np.isfinite(value) else 1e10

        best = None
        for _ in range(3):
            start = np.concatenate([rng.uniform(-0.9, 0.9, d), np.zeros(p)])
            got = minimize(loss, start, method="BFGS")
            best = got if best is None or got.fun < best.fun else best
        law = _Proposal(best, d, rng)
        theta = law.draw(draws)
        # All signs: hidden nodes are flipped at random, so that the mode stands for all of them.
        signs = np.ones((draws, len(parent)))
        signs[:, p:] = rng.choice([-1.0, 1.0], (draws, len(parent) - p))
        flips = signs[:, used] * signs[:, parent[used]]
        logs_q = np.full(draws, -np.inf)
        flipped = theta.copy()
        flipped[:, :d] *= flips
        for pattern in itertools.product([-1.0, 1.0], repeat=hidden):
            own = np.ones(len(parent))
            own[p : p + hidden] = pattern
            back = flipped.copy()
            back[:, :d] *= own[used] * own[parent[used]]
            logs_q = np.logaddexp(logs_q, law.log_density(back) - hidden * np.log(2.0))
        values = log_joints(parent, used, flipped, scatter, n, p, spread)
        weights = values - logs_q
        top = weights.max()
        share = np.exp(weights - top)
        found.append(top + np.log(share.mean()))
        errors.append(share.std() / share.mean() / np.sqrt(draws))
    return np.array(found), np.array(errors)


def edge_matrices(parent, correlation, p):
    """Correlations of the columns of many sets of correlations along one tree, from parents downwards."""
    nodes = len(parent)
    out = np.zeros((len(correlation), nodes, nodes))
    out[:] = np.eye(nodes)
    order, seen = [0], [0]
    for node in order:
        order.extend(np.flatnonzero(parent == node).tolist())
    for node in order[1:]:
        for other in seen:
            value = correlation[:, node] * out[:, parent[node], other]
            out[:, node, other] = out[:, other, node] = value
        seen.append(node)
    return out[:, :p, :p]


def log_joints(parent, used, theta, scatter, n, p, spread):
    d = len(used)
    # Draws from heavy tails are 1 after rounding.
    rho, logs = np.clip(np.tanh(theta[:, :d]), -1 + 1e-8, 1 - 1e-8), theta[:, d:]
    correlation = np.zeros((len(theta), len(parent)))
    correlation[:, used] = rho
    sigma, unit = edge_matrices(parent, correlation, p), np.exp(-logs)
    _, log_det = np.linalg.slogdet(sigma)
    scaled = scatter * unit[:, :, None] * unit[:, None, :]
    trace = np.linalg.solve(sigma, scaled).trace(axis1=1, axis2=2)
    own = -0.5 * n * (log_det + 2.0 * logs.sum(axis=1)) - 0.5 * trace
    own += stats.norm.logpdf(logs, 0.0, spread).sum(axis=1)
    with np.errstate(divide="ignore"):
        return own + (np.log1p(-(rho**2)) - np.log(2.0)).sum(axis=1)


def standardized_scatter(data):
    z = (data - data.mean()) / data.std()
    x = z.to_numpy()
    return posterior_scale(0.0, 1.0, len(x), x.sum(axis=0), x.T @ x)


@pytest.mark.statistical
def test_trees_of_four_columns_have_their_posterior_probabilities():
    trees, data = all_trees(4), table()
    logs, errors = log_marginals(trees, standardized_scatter(data), len(data))
    p = np.exp(logs - np.logaddexp.reduce(logs))
    assert (p * errors).max() < 0.005  # standard errors of the probabilities
    assert p.max() < 0.7  # no tree is certain
    points = drawn(bs.models.latent_tree(data), 10_000)[500:]
    draws = np.array([point["parent"] for point in points])
    share = np.array([(draws == tree).all(axis=1).mean() for tree in trees])
    # Four standard errors of both: of 0.2 from 2,000 effective draws, and of the importance sample.
    assert abs(share - p).max() < 0.035, (share.round(4), p.round(4))
    wrong = hidden_only(p, trees)
    assert abs(share - wrong).max() > 0.045  # the bound notices a factor of 2 for each hidden node


def hidden_only(p, trees):
    """Probabilities if the two signs of a hidden node were counted twice."""
    q = p * 2.0 ** (trees[:, 4:] >= 0).sum(axis=1)
    return q / q.sum()


def test_log_density_of_the_model_is_what_the_step_aims_at():
    data, rng = table(), np.random.default_rng(3)
    with bs.models.latent_tree(data, hidden_weight=0.4, correlation_shape=1.7) as model:
        step = stepper(model)
        logp = model.compile_logp()
    scatter, difference = standardized_scatter(data), []
    for tree in all_trees(4)[::3]:
        correlation = np.where(tree >= 0, rng.uniform(0.1, 0.9, 6), 0.0)
        deviation = rng.uniform(0.5, 2.0, 4)
        k = column_precision(tree, correlation, deviation)
        wanted = edge_matrix(tree, correlation, 4) * np.outer(deviation, deviation)
        np.testing.assert_allclose(np.linalg.inv(k), wanted, atol=1e-12)
        mean = rng.normal(size=4)
        z = ((data - data.mean()) / data.std()).to_numpy()
        point = {"parent": tree, "parent_correlation": correlation, "deviation": deviation}
        joint = logp(point | {"mean": mean})
        # p(mean | rows, tree) is divided out: what is left has the means integrated out.
        n = len(z)
        given = stats.multivariate_normal.logpdf(
            mean, z.sum(axis=0) / (n + 1.0), np.linalg.inv((n + 1.0) * k)
        )
        aim = log_density_of_tree(
            *neighbours_of(tree, correlation),
            deviation,
            scatter,
            float(n),
            Prior(*step.prior),
        )
        difference.append(joint - given - aim)
    np.testing.assert_allclose(difference, difference[0], atol=1e-8)


P, SHAPE, WEIGHT = 4, 1.6, 0.7
GAPS = np.array([(0, 1), (1, 0), (1, 2), (4, 3)])


def joint():
    """Forward draws of a model with missing values, and a transition that draws the table anew."""
    from bayesstruct.precision.kernels.rows.tables import TableRows

    rng = np.random.default_rng(0)
    mask = np.zeros((6, P), bool)
    mask[tuple(GAPS.T)] = True
    data = pd.DataFrame(rng.normal(size=(6, P)), columns=list("abcd")).mask(mask)
    model = bs.models.latent_tree(data, correlation_shape=SHAPE, hidden_weight=WEIGHT)
    step, trees = stepper(model), all_trees(P)
    chance = WEIGHT ** (trees[:, P:] >= 0).sum(axis=1)
    location, scale = (model[name].get_value() for name in ("location", "scale"))
    step.begun = True

    def rows(rng, state):
        k = column_precision(state["parent"], state["parent_correlation"], state["deviation"])
        factor = np.linalg.inv(np.linalg.cholesky(k)).T
        state["x"] = state["mean"] + rng.standard_normal((6, P)) @ factor.T
        return state

    def forward(rng):
        parent = trees[rng.choice(len(trees), p=chance / chance.sum())]
        value = 2.0 * rng.beta(SHAPE, SHAPE, len(parent)) - 1.0
        value[P:] = abs(value[P:])
        correlation, deviation = np.where(parent >= 0, value, 0.0), np.exp(rng.normal(size=P))
        matrix = edge_matrices(parent, correlation[None], P)[0] * np.outer(deviation, deviation)
        mean = rng.multivariate_normal(np.zeros(P), matrix)
        state = {"parent": parent, "parent_correlation": correlation, "deviation": deviation}
        return rows(rng, state | {"mean": mean})

    def transition(rng, state):
        state = rows(rng, dict(state))
        x = location + scale * state["x"]
        step.rng, step.rows = rng, TableRows(x, location, scale, mask)
        point = {k: state[k] for k in ("parent", "parent_correlation", "deviation", "mean")}
        point, _ = step.step(point | {"x_missing": x[mask]})
        x[mask] = point.pop("x_missing")
        return point | {"x": (x - location) / scale}

    return forward, transition, step


def bounded(state):
    """Statistics of everything, with moments."""
    parent, rho = state["parent"], state["parent_correlation"]
    x, logs = np.arctan(state["x"]), np.log(state["deviation"])
    matrix = edge_matrices(parent, rho[None], P)[0]
    hidden = int((parent[P:] >= 0).sum())
    out = {f"hidden {k}": hidden == k for k in range(2)}
    out |= {"sum of squares": (rho**2).sum(), "of hidden": rho[P:].sum()}
    for i, j in itertools.combinations(range(P), 2):
        r = matrix[i, j]
        out |= {f"r {i}{j}": r, f"r {i}{j} squared": r**2, f"x {i}{j}": (x[:, i] * x[:, j]).sum()}
        out[f"edge {i}{j}"] = parent[j] == i or parent[i] == j
    for i in range(P):
        mean = np.arctan(state["mean"][i])
        out |= {f"log sd {i}": logs[i], f"log sd {i} squared": logs[i] ** 2, f"mean {i}": mean**2}
        out[f"x {i} squared and sd"] = (x[:, i] ** 2).sum() * logs[i]
    for r, i in GAPS:
        out |= {
            f"gap {r}{i}": x[r, i] ** 2,
            f"gap {r}{i} mean": x[r, i] * np.arctan(state["mean"][i]),
        }
    return out


@pytest.mark.statistical
def test_everything_has_its_joint_distribution():
    forward, transition, _ = joint()
    assert_geweke(forward, transition, bounded, draws=12_000, seed=1)


def _double_signs(monkeypatch, step):
    logs, *others = step.prior
    step.prior = (logs + np.log(2.0) * np.arange(len(logs)), *others)


def _wrong_shape(monkeypatch, step):
    logs, shape, constant, spread = step.prior
    step.prior = (logs, shape, constant + np.log(1.5), spread)  # the constant of each correlation


def _wrong_means(monkeypatch, step):
    step.alpha = 3.0


def _one_row_more(monkeypatch, step):
    from bayesstruct.trees.steps import hidden

    right = hidden.posterior_scale
    monkeypatch.setattr(hidden, "posterior_scale", lambda *own: 0.7 * right(*own))


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [_double_signs, _wrong_shape, _wrong_means, _one_row_more])
def test_wrong_variants_are_noticed(monkeypatch, wrong):
    forward, transition, step = joint()
    wrong(monkeypatch, step)
    with pytest.raises(AssertionError, match="worst z"):
        assert_geweke(forward, transition, bounded, draws=6_000, seed=1)


def test_derivatives_of_the_matrix_are_right():
    import pytensor
    import pytensor.tensor as pt

    from bayesstruct.trees.ops.hidden_trees import hidden_tree_precision

    parent = np.array([-1, 5, 5, 4, 0, 4])
    rho = np.array([0.0, 0.5, -0.4, 0.3, 0.6, 0.7])
    sd = np.array([1.0, 0.5, 2.0, 1.5])

    def matrix(rho, sd):
        return hidden_tree_precision(pt.constant(parent), rho, sd, 4)

    pytensor.gradient.verify_grad(matrix, [rho, sd], rng=np.random.default_rng(0))
    assert node_precision(parent, rho).shape == (6, 6)


def test_other_models_are_refused():
    with bs.models.latent_tree(table()) as model:
        pm.Normal("other", model["deviation"][0], 1.0)
    with pytest.raises(ValueError, match="'other' depends on 'deviation'"):
        stepper(model)
    with pm.Model() as model:
        HiddenTree("tree", 4)
    with pytest.raises(ValueError, match="TreeCorrelations"):
        stepper(model)
    with bs.models.latent_tree(table()) as model:
        part = hidden_tree_part(model, model["parent"])
    assert [rv.name for rv in part.variables] == [
        "parent",
        "parent_correlation",
        "deviation",
        "mean",
    ]
    with pytest.raises(ValueError, match="must be drawn by one step"):
        HiddenTreeMoves(model.free_RVs[:2], model=model)


def test_missing_values_with_another_distribution_than_the_rows_are_refused(monkeypatch):
    from bayesstruct.precision.model_parts import rows as parts

    complete, incomplete, missing = parts._NORMAL

    def shifted(name, mean, precision, location, scale, **options):
        return missing(name, mean, precision, location + 1.0, scale, **options)

    gaps = table().mask(np.arange(100).reshape(25, 4) == 6)
    assert not stepper(bs.models.latent_tree(gaps)).complete
    monkeypatch.setattr(parts, "_NORMAL", (complete, incomplete, shifted))
    with pytest.raises(ValueError, match="'x_missing' has other parameters than 'x'"):
        stepper(bs.models.latent_tree(gaps))


def test_bad_tables_and_options_are_refused():
    with pytest.raises(TableError, match="needs three or more; for two use"):
        bs.models.latent_tree(table()[["a", "b"]])
    with pytest.raises(ValueError, match="`max_hidden` is at most 2 for 4 columns"):
        bs.models.latent_tree(table(), max_hidden=3)
    with pytest.raises(ValueError, match="hidden_weight"):
        bs.models.latent_tree(table(), hidden_weight=0.0)
    copy = table().assign(e=lambda t: 2.0 * t["a"])
    with pytest.warns(UserWarning), pytest.raises(TableError, match="'a' and 'e' are exact"):
        bs.models.latent_tree(copy)


def test_a_binary_table_is_remarked_upon_once_and_in_its_own_units():
    states = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (60, 4)), columns=[*"abcd"])
    with pytest.warns(TableWarning) as found:
        bs.models.latent_tree(states)
    assert len(found) == 1
    assert "binary (0 and 1 only)" in str(found[0].message)


def result(parents, correlations, names=("a", "b", "c", "d", "e")):
    """A result with these trees in one chain."""
    import xarray as xr

    parents, p = np.array(parents), len(names)
    nodes = [*names, *(f"hidden {k + 1}" for k in range(parents.shape[1] - p))]
    coords = {"node": list(names), "tree_node": nodes}
    sample = ("chain", "draw")
    draws = {
        "parent": ((*sample, "tree_node"), parents[None]),
        "parent_correlation": ((*sample, "tree_node"), np.array(correlations)[None]),
        "deviation": ((*sample, "node"), np.ones((1, len(parents), p))),
        "mean": ((*sample, "node"), np.zeros((1, len(parents), p))),
    }
    rows = np.random.default_rng(0).normal(size=(3, p))
    constants = {
        "hidden_prior": ("hidden_count", [0.4, 0.3, 0.2, 0.1]),
        "location": ("node", np.zeros(p)),
        "scale": ("node", np.ones(p)),
    }
    groups = {
        "posterior": xr.Dataset(draws, coords),
        "constant_data": xr.Dataset(constants, {"node": list(names)}),
        "observed_data": xr.Dataset({"x": (("observation", "node"), rows)}, {"node": list(names)}),
    }
    return xr.DataTree.from_dict(groups), rows


def test_readers_of_known_trees():
    one = [-1, 5, 5, 6, 6, 6, 0, -1]  # a - 6, 6 - d, e, 5; 5 - b, c
    two = [-1, 5, 5, 5, 5, 0, -1, -1]  # a star
    rho_one = [0, 0.8, -0.7, 0.6, 0.5, 0.9, 0.4, 0]
    rho_two = [0, 0.8, -0.7, 0.6, 0.5, 0.4, 0, 0]
    idata, rows = result([one, one, two], [rho_one, rho_one, rho_two])
    table = bs.split_table(idata).set_index("split")
    assert table["probability"].to_dict() == {
        **dict.fromkeys(["b", "c", "d", "e", "b, c, d, e"], 1.0),
        "b, c": pytest.approx(2 / 3),
    }
    assert table.loc["b, c", "correlation"] == pytest.approx(0.9)
    assert bs.hidden_node_table(idata)["probability"].tolist() == pytest.approx(
        [0, 1 / 3, 2 / 3, 0]
    )
    graph = bs.consensus_tree(idata)
    hidden = {node for node in graph if graph.nodes[node]["hidden"]}
    assert len(hidden) == 2
    assert nx.is_tree(graph)
    [near] = set(graph["b"]) & set(graph["c"])
    [far] = hidden - {near}
    assert set(graph[far]) == {"a", "d", "e", near}
    assert graph.edges[near, far]["probability"] == pytest.approx(2 / 3)
    values = bs.hidden_values(idata)
    assert values.attrs["probability"] == pytest.approx({near: 2 / 3, far: 2 / 3})
    # The conditional expectation from the covariance matrix of all nodes.
    full = edge_matrices(np.array(one), np.array([rho_one]), 8)[0]
    wanted = rows @ np.linalg.solve(full[:5, :5], full[:5, 5:7])
    np.testing.assert_allclose(values[[near, far]], wanted, atol=1e-10)


def test_a_consensus_without_hidden_nodes_has_rows_without_values():
    chain = [-1, 0, 1, 2, 3, -1, -1, -1]
    idata, rows = result([chain], [np.where(np.array(chain) >= 0, 0.5, 0.0)])
    assert bs.hidden_values(idata).shape == (len(rows), 0)
    assert len(bs.split_table(idata, least=0)) == 4
    for least in (-0.1, 2.0, np.nan):
        with pytest.raises(ValueError, match="`least`"):
            bs.split_table(idata, least=least)


def test_signs_of_hidden_values_agree_between_draws_whose_hidden_node_has_other_neighbours():
    one = [-1, 5, 5, 0, 0, 0, -1, -1]  # a - 5, d, e; 5 - b, c
    two = [-1, 5, 5, 0, 0, 3, -1, -1]  # the hidden node hangs on d, which goes against a
    rho_one = np.array([0, 0.8, 0.7, -0.9, 0.5, 0.9, 0, 0])
    rho_two = np.array([0, -0.8, -0.7, -0.9, 0.5, 0.9, 0, 0])
    for trees, rho, first in (
        ([one, one, two], [rho_one, rho_one, rho_two], 1.0),
        ([two, one, one], [rho_two, rho_one, rho_one], 1.0),  # by most draws, not the first
        ([two, two, one], [rho_two, rho_two, rho_one], -1.0),
    ):
        idata, rows = result(trees, rho)
        values, wanted = bs.hidden_values(idata), 0.0
        for tree, own in zip(trees, rho, strict=True):
            full = edge_matrices(np.array(tree), own[None], 8)[0]
            sign = 1.0 if tree is one else -1.0
            wanted = wanted + sign * rows @ np.linalg.solve(full[:5, :5], full[:5, 5]) / 3.0
        [name] = values.columns
        np.testing.assert_allclose(values[name], first * wanted, atol=1e-10)


def test_the_picture_of_the_consensus_is_that_of_a_tree():
    one = [-1, 5, 5, 6, 6, 6, 0, -1]
    idata, _ = result([one], [np.where(np.array(one) >= 0, 0.5, 0.0)])
    graph = bs.consensus_tree(idata)
    pos = bs.plots.layout(graph, kind="tree")
    assert bs.plots.layout(graph) == pos
    assert bs.plot_consensus_tree(idata).get_axes_locator().pos == pos
    other = bs.plot_consensus_tree(idata, layout="circle").get_axes_locator().pos
    assert other == bs.plots.layout(graph, kind="circle")


def test_trees_that_move_rarely_are_judged_by_their_rare_splits():
    """Splits and edges that all draws have say nothing of convergence; one that few have does."""
    rng = np.random.default_rng(0)
    usual = [-1, 5, 5, 5, 5, 0, -1, -1]  # a star
    rare = [-1, 5, 5, 6, 6, 6, 0, -1]
    trees = np.where(rng.random((4000, 1)) < 0.01, rare, usual)
    rho = np.where(trees >= 0, 0.5, 0.0)
    draws = result(trees, rho)[0]["posterior"].to_dataset()
    draws = draws.assign(edge=(("chain", "draw", "pair"), np.zeros((1, 4000, 10))))
    assert {*reading._labelled(draws)} == {"parent", "parent_correlation", "edge"}
    followed = dict(reading._quantities(draws))["splits"]
    assert followed["split"].values.tolist() == ["b, c"]
    assert followed.values.sum() == (trees == rare).all(axis=1).sum()
    draws["edge"][0, 7, 3] = 1.0
    assert "edge" not in reading._labelled(draws)


def test_the_consensus_tree_is_drawn_as_a_tree():
    idata, _ = result([[-1, 5, 5, 5, 5, 0, -1, -1]] * 3, [[0, 0.8, 0.7, 0.6, 0.5, 0.4, 0, 0]] * 3)
    assert bs.consensus_tree(idata).graph["forest"]
    with pytest.raises(ValueError, match="layout"):
        bs.plot_consensus_tree(idata, layout="no such")
    with pytest.raises(ValueError, match="`least` must be at most 1"):
        bs.split_table(idata, least=2)


def test_columns_whose_place_is_open_hang_on_one_node():
    trees = [[-1, 5, 5, 0, 0, 0, -1, -1], [-1, 0, 5, 5, 0, 0, -1, -1], [-1, 0, 0, 5, 5, 0, -1, -1]]
    rho = np.where(np.array(trees) >= 0, 0.5, 0.0)
    graph = bs.consensus_tree(result(trees, rho)[0])
    assert nx.is_tree(graph)
    assert sorted(node for node in graph if graph.nodes[node]["hidden"]) == []
    assert set(graph["a"]) == set("bcde")
    with pytest.raises(ValueError, match="not a result of bs"):
        bs.split_table(result(trees, rho)[0].drop_nodes(["constant_data"]))


def test_without_hidden_nodes_trees_are_those_of_the_columns():
    with bs.models.latent_tree(table(), max_hidden=0) as model:
        points = drawn(model, 50)
    assert all((point["parent"][1:] >= 0).all() and len(point["parent"]) == 4 for point in points)


def test_the_constant_of_a_correlation_is_that_of_a_beta_distribution():
    with bs.models.latent_tree(table(), correlation_shape=2.5) as model:
        step = stepper(model)
    assert np.isclose(step.prior[2], -betaln(2.5, 2.5) - 4.0 * np.log(2.0))
