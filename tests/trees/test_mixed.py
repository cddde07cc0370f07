"""Trees of numbers and states: evidences by quadrature, all trees, densities by SciPy and the joint distribution of everything."""

import itertools

import arviz as az
import networkx as nx
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats
from tools.derivatives import assert_derivatives
from tools.geweke import assert_geweke
from trees.test_exact import dag_score
from trees.test_exact import numbers as only_numbers
from trees.test_exact import states as only_states

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.distributions import MixedSpanningTree, MixedTreeParameters
from bayesstruct.graphs.spanning_trees.indicators import lines_of
from bayesstruct.networks.kernels.mixed_layout import MixedLayout
from bayesstruct.networks.kernels.mixed_rows import draw_rows
from bayesstruct.networks.kernels.scores.discrete import BDeu
from bayesstruct.networks.kernels.scores.gaussian import BGe
from bayesstruct.steps import TreeDraws
from bayesstruct.trees.kernels import mixed
from bayesstruct.trees.kernels.strengths import edge_strengths

NAMES, STATES = list("uzvwx"), (0, 3, 0, 2, 0)


def table(n=25, seed=0):
    """Two columns of states and three of numbers."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, n)
    z[:3] = 0, 1, 2
    w = np.where(rng.random(n) < 0.7, z % 2, rng.integers(0, 2, n))
    x = np.array([0.0, 1.0, 2.0])[z] + rng.normal(size=n)
    v = 0.6 * x + rng.normal(size=n)
    columns = {"u": rng.normal(size=n), "z": np.array(list("pqr"))[z], "v": 5 * v, "w": w, "x": x}
    return pd.DataFrame(columns)


def standardised(frame):
    """Standardised numbers, and codes of states."""
    out = frame.assign(z=frame["z"].map({"p": 0, "q": 1, "r": 2}))
    for name in "uvx":
        out[name] = (frame[name] - frame[name].mean()) / frame[name].std()
    return out.to_numpy(float)


def log_evidence_by_quadrature(x, groups, size):
    """Log marginal likelihood of numbers with a mean in each group and one variance, by integrals over both.

    The trapezoidal rule has hardly an error for such bells.
    """
    shape, rate = (size + 2.0) / 2.0, size**2 / (size + 1.0) / 2.0

    def log_of_group(own, v):
        centre = own.sum() / (size + len(own))
        width = 12.0 * np.sqrt(v / (size + len(own)))
        mean = np.linspace(centre - width, centre + width, 61)
        logs = stats.norm.logpdf(own[:, None], mean, np.sqrt(v)).sum(axis=0)
        logs += stats.norm.logpdf(mean, 0.0, np.sqrt(v / size))
        top = logs.max()
        return top + np.log(np.trapezoid(np.exp(logs - top), x=mean))

    parts = [x[groups == k] for k in np.unique(groups)]
    log_v = np.linspace(-8.0, 8.0, 161)
    v = np.exp(log_v)
    logs = np.array([sum(log_of_group(own, one) for own in parts) for one in v])
    logs += stats.invgamma.logpdf(v, shape, scale=rate) + log_v
    return logs.max() + np.log(np.trapezoid(np.exp(logs - logs.max()), x=log_v))


@pytest.mark.parametrize("size", [1.0, 3.5])
def test_pairs_of_states_and_numbers_have_the_evidence_of_quadrature(size):
    z = standardised(table())
    alone, gains = mixed.MixedTotals(z, STATES, size).weights
    for i in (0, 2, 4):
        own = log_evidence_by_quadrature(z[:, i], np.zeros(len(z)), size)
        np.testing.assert_allclose(alone[i], own, atol=1e-8)
        for j in (1, 3):
            both = log_evidence_by_quadrature(z[:, i], z[:, j], size)
            np.testing.assert_allclose(gains[i, j], both - own, atol=1e-8)


def admissible_trees():
    for lines in itertools.combinations(itertools.combinations(range(5), 2), 4):
        graph = nx.Graph(lines)
        if len(graph) == 5 and nx.is_connected(graph) and (1, 3) in lines:
            yield lines


def enumerated(size, odds):
    """Trees, log posterior probabilities and the log evidence, from families of other scores and quadrature."""
    z = standardised(table())
    numbers, states = [0, 2, 4], [1, 3]
    bge = BGe(z[:, numbers], alpha_mu=size)
    bdeu = BDeu(z[:, states].astype(int), states=[3, 2], equivalent_sample_size=size)
    between = {
        (i, j): log_evidence_by_quadrature(z[:, i], z[:, j], size) for i in numbers for j in states
    }
    trees, logs, prior = list(admissible_trees()), [], []
    for lines in trees:
        joined = {}  # number: state
        among = nx.Graph()
        among.add_nodes_from(numbers)
        for i, j in lines:
            if (i in numbers) != (j in numbers):
                joined[i if i in numbers else j] = j if i in numbers else i
            elif i in numbers:
                among.add_edge(i, j)
        total = dag_score(bdeu, [(0, 1)])
        for part in nx.connected_components(among):
            # Directed away from the column next to states.
            [top] = [i for i in part if i in joined]
            total += between[top, joined[top]]
            for a, b in nx.bfs_edges(among, top):
                total += bge.local(numbers.index(b), [numbers.index(a)])
        logs.append(total)
        prior.append(np.log([odds[e] for e in lines]).sum())
    logs, prior = np.array(logs), np.array(prior)
    prior -= np.logaddexp.reduce(prior)
    return trees, logs + prior, np.logaddexp.reduce(logs + prior)


@pytest.mark.parametrize("size", [1.0, 3.5])
def test_the_posterior_is_that_of_all_admissible_trees(size):
    q = np.random.default_rng(3).uniform(0.2, 0.8, (5, 5))
    q = (q + q.T) / 2
    trees, logs, evidence = enumerated(size, q / (1 - q))
    options = {"score": "mixed", "edge_probability": q, "equivalent_sample_size": size}
    posterior = bs.exact.tree_posterior(table(), **options)
    np.testing.assert_allclose(posterior.log_evidence, evidence, atol=1e-6)
    p, expected = np.exp(logs - evidence), np.zeros((5, 5))
    for lines, one in zip(trees, p, strict=True):
        np.testing.assert_allclose(np.exp(posterior.log_probability(lines)), one, atol=1e-7)
        for i, j in lines:
            expected[i, j] += one
            expected[j, i] += one
    np.testing.assert_allclose(posterior.edge_probabilities, expected, atol=1e-6)
    best = trees[int(np.argmax(logs))]
    assert {frozenset(e) for e in posterior.best.edges} == {
        frozenset((NAMES[i], NAMES[j])) for i, j in best
    }
    with bs.models.tree(table(), **options) as model:
        step = stepper(model)
    np.testing.assert_allclose(step.trees.probabilities, posterior.edge_probabilities, atol=1e-9)


def test_one_kind_of_columns_is_read_with_its_own_score():
    both = bs.exact.tree_posterior(only_numbers(), score="mixed")
    assert both.log_evidence == bs.exact.tree_posterior(only_numbers()).log_evidence
    texts = only_states().astype(str)
    both = bs.exact.tree_posterior(texts, score="mixed")
    assert both.log_evidence == bs.exact.tree_posterior(texts, score="bdeu").log_evidence
    assert "precision" in bs.models.tree(only_numbers(), score="mixed").named_vars
    assert "table" in bs.models.tree(texts, score="mixed").named_vars


def stepper(model, seed=0):
    step = TreeDraws(model.free_RVs, model=model)
    step.setup_chain(np.random.default_rng(seed), 0, 0)
    return step


def test_the_density_of_trees_has_its_constant_and_derivatives():
    numbers, pairs = [False, True, True, False], list(itertools.combinations(range(4), 2))
    logs = np.array([0.3, -0.5, 1.0, 0.2, -1.0, 0.7])
    tree, total = MixedSpanningTree.dist(logs, numbers=numbers), 0.0
    density = pm.logp(tree, np.zeros(6, "int8"))
    for bits in itertools.product([0, 1], repeat=6):
        value = np.array(bits, "int8")
        found = float(pm.logp(tree, value).eval())
        lines = [e for e, b in zip(pairs, bits, strict=True) if b]
        graph = nx.Graph(lines)
        right = len(lines) == 3 and len(graph) == 4 and nx.is_connected(graph) and (0, 3) in lines
        assert np.isfinite(found) == right
        total += np.exp(found)
    assert density.eval() == -np.inf
    np.testing.assert_allclose(total, 1.0, rtol=1e-12)
    value = np.array([1, 0, 1, 1, 0, 0], "int8")
    assert_derivatives(lambda w: pm.logp(MixedSpanningTree.dist(w, numbers=numbers), value), [logs])
    with pytest.raises(ValueError, match="of some, not of all"):
        MixedSpanningTree.dist(logs, numbers=[True] * 4)


def layout_of(states):
    return MixedLayout(["multinomial" if k else "normal" for k in states], states)


def encoded(layout, parent, natural):
    """Vector of parameters from values in each state, or intercept and slope, of each column; by linear equations."""
    vector = np.zeros(layout.size)
    for i, (values, scale) in enumerate(natural):
        above = parent[i]
        k = layout.states[above] if above >= 0 else 0
        design = np.ones((1, 1)) if above < 0 else np.eye(2)
        columns = [0]
        if above >= 0:
            columns += (1 + np.flatnonzero(layout.owner == above)).tolist()
        if k:
            design = np.column_stack([np.ones(k), layout.features(np.arange(k), above).T])
        solved = np.linalg.solve(design, np.asarray(values).reshape(len(design), -1))
        vector[layout.coefficients[i][:, columns]] = solved.T
        if scale is not None:
            vector[layout.extras[i][0]] = scale
    return vector


def natural_prior(rng, states, parent, size):
    """Parameters from their prior by NumPy's own distributions."""
    t, out = size**2 / (size + 1.0), []
    for i, above in enumerate(parent):
        j = states[above] if above >= 0 else 0
        if states[i]:
            cells = max(j, 1) * states[i]
            share = rng.dirichlet(np.full(states[i], size / cells), max(j, 1))
            # Tiny shapes give exact zeros, whose logarithm has no place in a vector.
            logs = np.log(np.maximum(share, 1e-300))
            out.append((logs[:, 1:] - logs[:, :1], None))
            continue
        line = above >= 0 and not j
        v = 1.0 / rng.gamma((size + 2.0 + line) / 2.0, 2.0 / t)
        values = rng.normal(0.0, np.sqrt(v / size), 1 if line else max(j, 1))
        if line:
            values = np.append(values, rng.normal(0.0, np.sqrt(v / t)))
        out.append((values, np.sqrt(v)))
    return out


def test_the_density_of_parameters_is_that_of_their_distributions():
    parent, size, rng = [1, -1, 4, 1, 3], 2.5, np.random.default_rng(1)
    layout, t = layout_of(STATES), size**2 / (size + 1.0)
    natural = natural_prior(rng, STATES, parent, size)
    vector, expected = encoded(layout, parent, natural), 0.0
    for i, (values, scale) in enumerate(natural):
        if STATES[i]:
            logits = np.column_stack([np.zeros(len(values)), values])
            share = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            alpha = np.full(STATES[i], size / share.size)
            for row in share:
                # The determinant of the derivative of the softmax is the product of the probabilities.
                expected += stats.dirichlet.logpdf(row / row.sum(), alpha) + np.log(row).sum()
            continue
        line, v = i == 2, scale**2
        deviations = np.sqrt(v / np.array([size, t])) if line else np.sqrt(v / size)
        expected += stats.norm.logpdf(values, 0.0, deviations).sum() + np.log(2.0 * scale)
        expected += stats.invgamma.logpdf(v, (size + 2.0 + line) / 2.0, scale=t / 2.0)
    pairs = list(itertools.combinations(range(5), 2))
    lines = {tuple(sorted((i, a))) for i, a in enumerate(parent) if a >= 0}
    value = np.array([pair in lines for pair in pairs], "int8")
    tree = MixedSpanningTree.dist(np.zeros(10), numbers=[not k for k in STATES])
    logp = pm.logp(MixedTreeParameters.dist(tree, size, layout=layout), vector)
    np.testing.assert_allclose(logp.eval({tree: value}), expected, rtol=1e-10)
    other = value.copy()
    other[[pairs.index((0, 1)), pairs.index((0, 3))]] = 0, 1
    assert logp.eval({tree: other}) == -np.inf  # coefficients of an edge that is not there


P_STATES, SIZE, ROWS = (0, 3, 2, 0), 2.0, 5
GAPS = np.array([(0, 0), (0, 1), (1, 3), (2, 2), (3, 0), (3, 3), (4, 1)])
TREES = [
    [(1, 2), *own]
    for own in (
        *(((min(a, 0), a), (b, 3)) for a in (1, 2) for b in (1, 2)),
        *(((0, a), (0, 3)) for a in (1, 2)),
        *(((b, 3), (0, 3)) for b in (1, 2)),
    )
]


def parents(lines):
    graph = nx.Graph([tuple(line) for line in lines])
    found = {child: above for above, child in nx.bfs_edges(graph, 1)}
    return np.array([found.get(i, -1) for i in range(4)])


def joint():
    """Forward draws of everything, and a transition that draws the table anew, for a table with missing values."""
    rng, layout = np.random.default_rng(5), layout_of(P_STATES)
    mask = np.zeros((ROWS, 4), bool)
    mask[tuple(GAPS.T)] = True
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=ROWS),
            "z": ["p", None, "q", "r", None],
            "w": ["a", "b", None, "a", "b"],
            "y": rng.normal(size=ROWS),
        }
    )
    frame.loc[[0], "z"] = None
    frame.loc[1, "z"] = "p"
    frame = frame.mask(pd.DataFrame(mask, columns=frame.columns) & frame.notna())
    with pytest.warns(UserWarning):
        model = bs.models.tree(frame, score="mixed", equivalent_sample_size=SIZE)
    step = stepper(model)
    step.begun = True
    location, scale = (model[name].get_value() for name in ("location", "scale"))
    pairs = list(itertools.combinations(range(4), 2))

    def rows(rng, state):
        dag, parent = np.zeros((4, 4), np.int8), parents(lines_of(state["edge"]))
        for i, above in enumerate(parent):
            if above >= 0:
                dag[above, i] = 1
        u, nothing = rng.random((ROWS, 4)), np.full(4, np.nan)
        return state | {"x": draw_rows(layout, u, state["parameter"], dag, nothing)}

    def forward(rng):
        lines = TREES[rng.integers(len(TREES))]
        edge = np.array([pair in lines for pair in pairs], "int8")
        parent = parents(lines)
        vector = encoded(layout, parent, natural_prior(rng, P_STATES, parent, SIZE))
        return rows(rng, {"edge": edge, "parameter": vector})

    def transition(rng, state):
        state = rows(rng, state)
        step.rng, step.table.z = rng, state["x"].copy()
        x = location + scale * state["x"]
        point, _ = step.step({k: state[k] for k in ("edge", "parameter")} | {"x_missing": x[mask]})
        x[mask] = point.pop("x_missing")
        return point | {"x": (x - location) / scale}

    return forward, transition, step, layout


def statistics_of(layout):
    def bounded(state):
        """Statistics with moments."""
        out = {f"edge {k}": v for k, v in enumerate(state["edge"])}
        vector, x = state["parameter"], state["x"]
        for i in (0, 3):
            s = vector[layout.extras[i][0]]
            out |= {f"log sd {i}": np.log(s), f"log sd {i} squared": np.log(s) ** 2}
            for c in layout.coefficients[i][0]:
                if c >= 0:
                    own = np.arctan(vector[c] / s)
                    out |= {f"c {i} {c}": own, f"c {i} {c} squared": own**2}
                    out |= {f"c {i} {c} x": own * np.arctan(x[:, i]).mean()}
        for i in (1, 2):
            for c in layout.coefficients[i].ravel():
                if c >= 0:
                    out |= {
                        f"t {i} {c}": np.tanh(vector[c]),
                        f"t {i} {c} 2": np.tanh(vector[c]) ** 2,
                    }
        for r, i in GAPS:
            own = np.arctan(x[r, i]) if i in (0, 3) else x[r, i]
            out |= {f"v {r}{i}": own, f"v {r}{i} squared": own**2}
            for j in range(4):
                if j != i:
                    out[f"v {r}{i} {j}"] = own * np.arctan(x[r, j])
                    for e in range(6):
                        out[f"v {r}{i} {j} edge {e}"] = own * np.arctan(x[r, j]) * state["edge"][e]
        return out

    return bounded


@pytest.mark.statistical
def test_tree_parameters_and_missing_values_have_their_joint_distribution():
    forward, transition, _, layout = joint()
    assert_geweke(forward, transition, statistics_of(layout), draws=6000, seed=1)


def _wrong_constant(monkeypatch):
    right = mixed.MixedTotals.weights.func

    def wrong(self):
        alone, gains = right(self)
        cross = np.not_equal.outer(self.numbers, self.numbers)
        cross[1], cross[:, 1] = False, False  # of the other column of states
        return alone, gains + 1.5 * cross

    monkeypatch.setattr(mixed.MixedTotals, "weights", property(wrong))


def _wrong_degrees(monkeypatch):
    right = mixed._draw_scale
    monkeypatch.setattr(mixed, "_draw_scale", lambda a, b, rng: right(a + 0.5, b, rng))


def _means_too_sure(monkeypatch):
    right = mixed._draw_means
    monkeypatch.setattr(
        mixed,
        "_draw_means",
        lambda totals, i, a, rng: (right(totals, i, a, None)[0], right(totals, i, a, rng)[1]),
    )


def _half_imputed(monkeypatch):
    from bayesstruct.networks.kernels import mixed_gaps

    right = mixed_gaps.draw_gaps

    def wrong(rng, layout, vector, dag, z, missing, free):
        right(rng, layout, vector, dag, z, missing, free)
        z[:, [0, 3]] = np.where(missing[:, [0, 3]], 0.5 * z[:, [0, 3]], z[:, [0, 3]])

    monkeypatch.setattr(mixed_gaps, "draw_gaps", wrong)


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [_wrong_constant, _wrong_degrees, _means_too_sure, _half_imputed])
def test_wrong_variants_are_noticed(monkeypatch, wrong):
    forward, transition, _, layout = joint()
    wrong(monkeypatch)
    with pytest.raises(AssertionError, match="worst z"):
        assert_geweke(forward, transition, statistics_of(layout), draws=3000, seed=1)


@pytest.mark.chain
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto")  # of few draws
@pytest.mark.parametrize("gaps", [False, True])
def test_a_run_is_sampled_unasked_and_read(gaps):
    frame = table(40)
    if gaps:
        frame = frame.astype({"w": object})
        frame.loc[0, "u"] = frame.loc[5, "z"] = frame.loc[7, "w"] = None
    model = bs.models.tree(frame, score="mixed")
    idata = pm.sample(
        80, tune=10, chains=2, cores=1, model=model, progressbar=False, random_seed=1,
        compute_convergence_checks=False,
    )  # fmt: skip
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(idata, extend_inferencedata=True, progressbar=False)
    assert np.isfinite(az.loo(idata).elpd)
    edges = bs.edge_table(idata)
    np.testing.assert_allclose(edges["probability"].sum(), 4.0, atol=1e-6)
    assert edges["mean"].abs().max() <= 1.0
    empty = frame.head(2).astype(object)
    empty.loc[:, ["z", "x"]] = None
    if not gaps:
        found = bs.predict(idata, empty)
        assert len(found) == 8
        shares = found[found["column"] == "z"].groupby("row")["probability"].sum()
        np.testing.assert_allclose(shares, 1.0, atol=1e-9)
    assert {*bs.predictability(idata)["given"]} == {"all others"}
    assert "x" in bs.pointwise(idata, draws=10, random_seed=1)["log_likelihood"]
    bs.plot_graph(idata)
    bs.check(idata)
    with bs.new_rows(model, table(4, seed=1)) as other:
        assert other["x"].eval().shape == (4, 5)


def test_strengths_of_edges_are_correlations_of_many_rows():
    rng, layout, parent = np.random.default_rng(4), layout_of(STATES), [1, -1, 4, 1, 3]
    vector = encoded(layout, parent, natural_prior(rng, STATES, parent, 20.0))
    dag = np.zeros((5, 5), np.int8)
    dag[[1, 4, 1, 3], [0, 2, 3, 4]] = 1
    rows = draw_rows(layout, rng.random((400_000, 5)), vector, dag, np.full(5, np.nan))
    found = edge_strengths(layout, np.array(parent), vector)
    # Standard errors of correlations are 1 / sqrt(400,000), those of ratios near 0 no larger than their root.
    assert found[2] == pytest.approx(np.corrcoef(rows[:, 2], rows[:, 4])[0, 1], abs=0.006)
    for i, j in ((0, 1), (4, 3)):
        means = np.array([rows[rows[:, j] == k, i].mean() for k in range(STATES[j])])
        share = np.bincount(rows[:, j].astype(int)) / len(rows)
        between = share @ (means - share @ means) ** 2
        assert found[i] == pytest.approx(np.sqrt(between / rows[:, i].var()), abs=0.006)
    joint = np.histogram2d(rows[:, 1], rows[:, 3], bins=(3, 2))[0] / len(rows)
    information = stats.entropy(joint.ravel(), np.outer(joint.sum(1), joint.sum(0)).ravel())
    assert found[3] == pytest.approx(np.sqrt(-np.expm1(-2 * information)), abs=0.006)
    assert found[1] == 0.0


@pytest.mark.parametrize(
    ("frame", "options", "words"),
    [
        (table().assign(w="a"), {}, "'w'"),
        (table().assign(x=1.0), {}, "'x'"),
        (table()[["z"]], {}, "column"),
        (
            table().astype({"u": object}).replace({"u": {table()["u"][0]: None}}),
            {},
            "'u'.*models.tree",
        ),
        (table(), {"forbidden": [("z", "w")]}, "column.*states are not joined over numbers"),
        (table(), {"forbidden": [("u", c) for c in "zvwx"]}, "'u' and the other columns"),
        (table(), {"kinds": {"u": "student"}}, "'u'.*'normal' or 'multinomial'"),
        (table(), {"kinds": {"q": "normal"}}, "q"),
        (table(), {"states": {"z": ["p"]}}, "states"),
    ],
)
def test_bad_input_is_refused_with_the_column_and_the_remedy(frame, options, words):
    with pytest.raises((TableError, ValueError), match=f"(?s){words}"):
        bs.exact.tree_posterior(frame, score="mixed", **options)


def test_options_of_another_score_are_refused():
    with pytest.raises(ValueError, match="`kinds` belongs to the score 'mixed'"):
        bs.models.tree(only_numbers(), kinds={"a": "normal"})
    with pytest.raises(ValueError, match="'student'"):
        bs.models.tree(table(), score="mixed", kinds={"u": "student"})


def test_one_number_and_one_column_of_states_have_one_tree():
    posterior = bs.exact.tree_posterior(table()[["u", "z"]], score="mixed")
    assert posterior.edge_probabilities.to_numpy().tolist() == [[0, 1], [1, 0]]
    model = bs.models.tree(table()[["z", "u"]], score="mixed")
    point, _ = stepper(model).step(model.initial_point())
    assert point["edge"].tolist() == [1]


def test_columns_that_determine_each_other_are_joined():
    frame = table(60)
    frame["copy"] = frame["z"].map({"p": 0.0, "q": 5.0, "r": -2.0}) + 1e-9 * frame["u"]
    p = bs.exact.tree_posterior(frame, score="mixed").edge_probabilities
    assert p.loc["copy", "z"] > 1 - 1e-9
