"""Trees of tables: draws against all trees, other distributions and the joint distribution of everything."""

import itertools

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from tools.enumeration import assert_matches_enumeration
from tools.geweke import assert_geweke
from trees.test_exact import all_trees, numbers, states

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.distributions import TreeMeans, TreePrecision
from bayesstruct.graphs.spanning_trees.indicators import lines_of
from bayesstruct.networks.kernels.scores.discrete import BDeu
from bayesstruct.precision.priors.g_wishart import draw_g_wishart
from bayesstruct.steps import TreeDraws
from bayesstruct.trees.recognition.tables import tree_part
from bayesstruct.trees.steps import tables as tree_steps


def stepper(model, seed=0):
    step = TreeDraws(model.free_RVs, model=model)
    step.setup_chain(np.random.default_rng(seed), 0, 0)
    return step


def drawn(model, n, seed=0):
    step, point, out = stepper(model, seed), model.initial_point(), []
    for _ in range(n):
        point, _ = step.step(point)
        out.append(point)
    return out


def trees_of(p):
    pairs = list(itertools.combinations(range(p), 2))
    return np.array([[int(pair in lines) for pair in pairs] for lines, _ in all_trees(p)])


@pytest.mark.parametrize("size", [1.0, 4.0])
@pytest.mark.parametrize("score", ["bge", "bdeu"])
def test_the_law_of_the_tree_is_the_exact_posterior(score, size):
    q = np.random.default_rng(3).uniform(0.1, 0.9, (5, 5))
    options = {
        "score": score,
        "edge_probability": (q + q.T) / 2,
        "forbidden": [("a", "b")],
        "equivalent_sample_size": size,
    }
    table = numbers() if score == "bge" else states()
    posterior = bs.exact.tree_posterior(table, **options)
    with bs.models.tree(table, **options) as model:
        step = stepper(model)
        point, [stats] = step.step(model.initial_point())
    np.testing.assert_allclose(step.trees.probabilities, posterior.edge_probabilities, atol=1e-10)
    wanted = posterior.log_probability(lines_of(point["edge"]))
    np.testing.assert_allclose(stats["log_score"], wanted, atol=1e-9)
    np.testing.assert_allclose(stats["change"], 1.0 - np.exp(wanted), atol=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("score", ["bge", "bdeu"])
def test_drawn_trees_have_their_posterior_probabilities(score):
    table = numbers(n=8) if score == "bge" else states(n=12)
    posterior = bs.exact.tree_posterior(table, score=score)
    trees = trees_of(5)
    p = np.exp([posterior.log_probability(lines_of(row)) for row in trees])
    draws = [point["edge"] for point in drawn(bs.models.tree(table, score=score), 4000)]
    assert_matches_enumeration(np.array(draws), p, states=trees)


@pytest.mark.parametrize(("b", "t"), [(3.0, 0.5), (5.5, 2.0)])
def test_the_density_of_the_matrix_is_that_of_a_g_wishart_matrix(b, t):
    rng = np.random.default_rng(0)
    for row in trees_of(4)[::4]:
        graph = np.zeros((4, 4))
        graph[np.triu_indices(4, 1)] = row
        precision = draw_g_wishart(rng, b, t * np.eye(4), row)
        tree = bs.SpanningTree.dist(np.zeros(6))
        given = pm.logp(TreePrecision.dist(tree, b, t), precision).eval({tree: row.astype("int8")})
        known = pm.logp(bs.GWishart.dist(graph + graph.T, b, t), precision).eval()
        np.testing.assert_allclose(given, known, rtol=1e-10)
    other = trees_of(4)[1].astype("int8")
    assert pm.logp(TreePrecision.dist(tree, b, t), precision).eval({tree: other}) == -np.inf


@pytest.mark.statistical
def test_prior_draws_of_matrix_and_means_are_those_of_their_densities():
    from scipy import stats

    row, rng = trees_of(4)[5], np.random.default_rng(1)
    tree = bs.SpanningTree.dist(np.where(row, 40.0, 0.0))  # this tree, all but certainly
    precision = TreePrecision.dist(tree, 3.0, 0.5, size=1500)
    mine = pm.draw(precision, random_seed=2)
    theirs = np.array([draw_g_wishart(rng, 3.0, 0.5 * np.eye(4), row) for _ in range(1500)])
    for i, j in [*((i, i) for i in range(4)), *np.argwhere(mine[0] != 0).tolist()]:
        assert stats.ks_2samp(mine[:, i, j], theirs[:, i, j]).pvalue > 1e-4
    means = pm.draw(TreeMeans.dist(mine[0], 3.0, size=3000), random_seed=3)
    covariance = np.linalg.inv(3.0 * mine[0])
    # Standard error of a sample covariance.
    error = np.sqrt((covariance**2 + np.outer(*[np.diag(covariance)] * 2)) / 3000)
    assert (np.abs(np.cov(means.T) - covariance) < 4.5 * error).all()


P, B, T, ALPHA = 3, 4.0, 4.0 / 3.0, 2.0  # equivalent_sample_size=2
GAPS = np.array([(0, 1), (1, 0), (1, 2), (3, 1)])


def joint(seed=0):
    """Model of a table with missing values, its forward draws, and a transition that draws the table anew."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(4, P)), columns=list("abc"))
    mask = np.zeros((4, P), bool)
    mask[tuple(GAPS.T)] = True
    with pytest.warns(UserWarning, match="33% of the values are missing"):
        model = bs.models.tree(table.mask(mask), equivalent_sample_size=ALPHA)
    trees, step = trees_of(P), stepper(model)
    location, scale = (model[name].get_value() for name in ("location", "scale"))
    step.begun = True

    def rows(rng, state):
        factor = np.linalg.inv(np.linalg.cholesky(state["precision"])).T
        state["x"] = state["mean"] + rng.standard_normal((4, P)) @ factor.T
        return state

    def forward(rng):
        edge = trees[rng.integers(len(trees))]
        precision = draw_g_wishart(rng, B, T * np.eye(P), edge)
        mean = np.linalg.solve(np.linalg.cholesky(ALPHA * precision).T, rng.standard_normal(P))
        return rows(rng, {"edge": edge, "precision": precision, "mean": mean})

    def transition(rng, state):
        from bayesstruct.precision.kernels.rows.tables import TableRows

        state = rows(rng, dict(state))
        x = location + scale * state["x"]
        step.rng, step.table.rows = rng, TableRows(x, location, scale, mask)
        point = {name: state[name] for name in ("edge", "precision", "mean")}
        point, _ = step.step(point | {"x_missing": x[mask]})
        x[mask] = point.pop("x_missing")
        return point | {"x": (x - location) / scale}

    return forward, transition, step


def bounded(state):
    """Statistics with moments: those of means and values have none, or not enough."""
    k, x = state["precision"], np.arctan(state["x"])
    out = {f"edge {i}": v for i, v in enumerate(state["edge"])}
    out |= {f"log k {i}": np.log(k[i, i]) for i in range(P)}
    out |= {f"log k {i} squared": np.log(k[i, i]) ** 2 for i in range(P)}
    for i, j in itertools.combinations(range(P), 2):
        partial = -k[i, j] / np.sqrt(k[i, i] * k[j, j])
        out |= {f"partial {i}{j}": partial, f"partial {i}{j} squared": partial**2}
        out[f"means {i}{j}"] = np.arctan(state["mean"][i]) * np.arctan(state["mean"][j])
    out |= {f"mean {i} squared": np.arctan(m) ** 2 for i, m in enumerate(state["mean"])}
    for r, i in GAPS:
        out |= {f"x {r}{i} squared": x[r, i] ** 2}
        out |= {f"x {r}{i} x {r}{j}": x[r, i] * x[r, j] for j in range(P) if j != i}
        out[f"x {r}{i} mean"] = x[r, i] * np.arctan(state["mean"][i])
        out |= {
            f"x {r}{i} {r}{j} edge": x[r, i] * x[r, j] * state["edge"][min(i + j - 1, 2)]
            for j in range(P)
            if j != i
        }
    return out


@pytest.mark.statistical
def test_tree_parameters_and_missing_numbers_have_their_joint_distribution():
    forward, transition, _ = joint()
    assert_geweke(forward, transition, bounded, draws=12_000, seed=1)


def _stale_tree(monkeypatch, step):
    known, right = [], step._all_trees  # those of the first completed table for ever
    step._all_trees = lambda point: known[0] if known else known.append(right(point)) or known[0]


def _wrong_degrees(monkeypatch, step):
    right = tree_steps.draw_precision
    monkeypatch.setattr(
        tree_steps, "draw_precision", lambda rng, lines, b, *own: right(rng, lines, b - 1.0, *own)
    )


def _wrong_means(monkeypatch, step):
    right = tree_steps.draw_means
    monkeypatch.setattr(
        tree_steps, "draw_means", lambda rng, k, rows, n, total: right(rng, k, rows - 1.0, n, total)
    )


def _no_noise(monkeypatch, step):
    from bayesstruct.precision.kernels.rows import missing_values

    right = missing_values.draw_missing

    def still(rng, precision, residuals, mask):
        mean = np.mean(
            [right(rng, precision, c := residuals.copy(), mask) or c for _ in range(8)], axis=0
        )
        residuals[:] = mean

    monkeypatch.setattr(missing_values, "draw_missing", still)


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [_stale_tree, _wrong_degrees, _wrong_means, _no_noise])
def test_wrong_variants_are_noticed(monkeypatch, wrong):
    forward, transition, step = joint()
    wrong(monkeypatch, step)
    with pytest.raises(AssertionError, match="worst z"):
        assert_geweke(forward, transition, bounded, draws=12_000, seed=1)


def gappy_states():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 2, 12)
    b = np.where(rng.random(12) < 0.8, a, 1 - a)
    x = np.column_stack([a, b, rng.integers(0, 3, 12)]).astype(float)
    x[:3, 2] = 0, 1, 2
    x[6, 1] = x[6, 2] = x[9, 0] = x[11, 1] = np.nan
    return pd.DataFrame(x, columns=list("abc"))


def law_of_gaps():
    """Trees with completions, and their posterior probabilities."""
    x, trees = gappy_states().to_numpy().copy(), [(lines, arcs) for lines, arcs in all_trees(3)]
    gaps = np.argwhere(np.isnan(x))
    kept, logs = [], []
    for values in itertools.product(*(range(3 if j == 2 else 2) for _, j in gaps)):
        x[tuple(gaps.T)] = values
        local = BDeu(x.astype(int), states=[2, 2, 3], equivalent_sample_size=1.0)
        for row, (_, arcs) in zip(trees_of(3), trees, strict=True):
            kept.append([*row, *values])
            logs.append(sum(local.local(i, [a for a, c in arcs if c == i]) for i in range(3)))
    logs = np.array(logs)
    return np.array(kept), np.exp(logs - np.logaddexp.reduce(logs))


@pytest.mark.statistical
def test_trees_and_missing_states_have_their_posterior_probabilities():
    kept, p = law_of_gaps()
    model = bs.models.tree(gappy_states(), score="bdeu")
    points = drawn(model, 12_000)[50:]
    draws = np.array([[*point["edge"], *point["x_missing"]] for point in points])
    assert_matches_enumeration(draws, p, states=kept)

    step, point, wrong = stepper(model), model.initial_point(), []
    right, first = step.table.draw, np.array([(0, 1), (1, 2)])
    step.table.draw = lambda rng, lines, point: right(rng, first, point)  # tables of one tree
    for _ in range(6000):
        point, _ = step.step(point)
        wrong.append([*point["edge"], *point["x_missing"]])
    with pytest.raises(AssertionError, match="worst z"):
        assert_matches_enumeration(np.array(wrong), p, states=kept)


@pytest.mark.statistical
def test_tables_of_probabilities_are_dirichlet_given_the_tree():
    x = states(n=20)
    points = drawn(bs.models.tree(x, score="bdeu", equivalent_sample_size=2.0), 3000)
    tables = np.array([point["table"] for point in points])
    # Column a is the root of all trees: 3 states.
    counts = np.bincount(x["a"], minlength=3) + 2.0 / 3.0
    share = counts / counts.sum()
    error = np.sqrt(share * (1 - share) / (counts.sum() + 1) / 3000)
    assert (np.abs(tables[:, 0, :3].mean(axis=0) - share) < 4.5 * error).all()
    # Column c, of 2 states, where its neighbour is a.
    beside = np.array([point["edge"][1] for point in points]) == 1
    for s in range(3):
        own = np.bincount(x["c"][x["a"] == s], minlength=2) + 2.0 / 6.0
        share = own / own.sum()
        error = np.sqrt(share * (1 - share) / (own.sum() + 1) / beside.sum())
        found = tables[beside, 2, 2 * s : 2 * s + 2].mean(axis=0)
        assert (np.abs(found - share) < 4.5 * error).all()


def test_weights_of_states_are_mutual_informations():
    model = bs.models.tree(states(), score="bdeu")
    point = drawn(model, 1)[0]
    [expression] = model.replace_rvs_by_values([model["weight"]])
    weight = model.compile_fn(expression, inputs=model.value_vars)(point)
    rows = np.array(list(itertools.product(range(3), range(3), range(2), range(4), range(2))))
    with bs.new_rows(model, pd.DataFrame(rows, columns=list("abcde"))) as full:
        logp = full.compile_logp([full["x"]], sum=False)(point)[0]
    joint = np.exp(logp).reshape(3, 3, 2, 4, 2)
    np.testing.assert_allclose(joint.sum(), 1.0, rtol=1e-12)
    for k, (i, j) in enumerate(itertools.combinations(range(5), 2)):
        pair = joint.sum(axis=tuple({*range(5)} - {i, j}))
        alone = np.outer(pair.sum(axis=1), pair.sum(axis=0))
        wanted = (pair * np.log(pair / alone)).sum() if point["edge"][k] else 0.0
        np.testing.assert_allclose(weight[k], wanted, atol=1e-12)


def test_the_root_of_the_tables_does_not_matter():
    # The density of the rows of a tree is the same whichever column comes first.
    table = states(n=15)
    one = bs.exact.tree_posterior(table, score="bdeu").log_evidence
    two = bs.exact.tree_posterior(table[list("ecdba")], score="bdeu").log_evidence
    np.testing.assert_allclose(one, two, rtol=1e-12)


def test_two_columns_and_dependent_columns():
    two = numbers(p=2)
    with bs.models.tree(two) as model:
        points = drawn(model, 5)
    assert all(point["edge"].tolist() == [1] for point in points)
    copy = numbers(p=3)
    copy["d"] = 2.0 * copy["c"] + 1.0
    with pytest.warns(UserWarning):
        model = bs.models.tree(copy)
    points = drawn(model, 20)
    assert all(point["edge"][-1] == 1 for point in points)
    assert all(np.linalg.eigvalsh(point["precision"])[0] > 0 for point in points)


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="score"):
        bs.models.tree(numbers(), score="bic")
    with pytest.raises(
        TableError, match="no tree is left: all edges between column 'a' and the other"
    ):
        bs.models.tree(numbers(), forbidden=[("a", other) for other in "bcde"])
    with pytest.raises(TableError, match="would require this edge"):
        q = np.full((5, 5), 0.5)
        q[0, 1] = q[1, 0] = 1.0
        bs.models.tree(numbers(), edge_probability=q)
    for size in (0, 1e-300, 1e300):
        with pytest.raises(ValueError, match="equivalent_sample_size"):
            bs.models.tree(numbers(), equivalent_sample_size=size)
    with pytest.raises(TableError, match="column"):
        bs.models.tree(numbers(p=1))


def test_models_of_another_form_are_refused():
    with bs.models.tree(numbers()) as model:
        pm.Normal("y", model["mean"][0], 1, observed=0.0)
    with pytest.raises(ValueError, match="'y' depends on 'mean'"):
        stepper(model)
    with pm.Model() as model:
        pm.Potential("few", bs.SpanningTree("edge", np.zeros(3))[0])
    with pytest.raises(ValueError, match="'few' depends on 'edge'"):
        stepper(model)
    with pm.Model() as model:
        bs.SpanningTree("edge", np.zeros(3), shape=(2, 3))
    with pytest.raises(ValueError, match="'edge' holds several trees; make a variable of each"):
        stepper(model)
    with pm.Model() as model:
        tree = bs.SpanningTree("edge", np.zeros(3))
        precision = TreePrecision("precision", tree)
        pm.MvNormal("x", np.zeros(3), tau=precision, observed=np.zeros((4, 3)))
    with pytest.raises(ValueError, match="cannot be drawn exactly"):
        stepper(model)
    with pytest.raises(TypeError, match=r"bs\.SpanningTree"):
        TreePrecision.dist(np.array([1, 1, 0]))


@pytest.mark.chain
@pytest.mark.parametrize("score", ["bge", "bdeu"])
@pytest.mark.parametrize("gaps", [False, True])
def test_a_run_is_sampled_unasked_and_read(score, gaps):
    table = numbers() if score == "bge" else states()
    if gaps:
        table = table.astype(float if score == "bge" else object)
        table.iloc[0, 1] = table.iloc[4, 3] = None
    model = bs.models.tree(table, score=score)
    part = tree_part(model, model["edge"])
    assert {*part.variables} == {*model.free_RVs}
    idata = pm.sample(
        100, tune=0, chains=2, cores=1, model=model, progressbar=False, random_seed=1,
        compute_convergence_checks=False,
    )  # fmt: skip
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(idata, extend_inferencedata=True, progressbar=False)
    assert idata.log_likelihood["x"].shape[-1] == len(table)
    edges = bs.edge_table(idata)
    np.testing.assert_allclose(edges["probability"].sum(), 4.0, atol=1e-6)
    empty = table.head(2).astype(object)
    empty.loc[:, "c"] = None
    assert len(bs.predict(idata, empty)) == (2 if score == "bge" else 4) + gaps * (
        1 if score == "bge" else 3
    )
    assert len(bs.predictability(idata)) >= 5
    assert "x" in bs.pointwise(idata, draws=10, random_seed=1)["log_likelihood"]
    bs.plot_graph(idata)
    bs.check(idata)


@pytest.mark.chain
@pytest.mark.parametrize(("noise", "sure"), [(0.1, True), (2.0, False)])
def test_a_tree_that_all_independent_draws_have_is_certain(noise, sure):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 1)) + np.zeros(4)
    x[:, 1:] += noise * rng.normal(size=(60, 3)).cumsum(axis=1)
    model = bs.models.tree(pd.DataFrame(x, columns=list("abcd")))
    best = bs.exact.tree_posterior(pd.DataFrame(x, columns=list("abcd")))
    idata = pm.sample(
        50, tune=0, chains=2, cores=1, model=model, progressbar=False, random_seed=1,
        compute_convergence_checks=False,
    )  # fmt: skip
    still = (idata.posterior["edge"].values == idata.posterior["edge"].values[0, 0]).all()
    assert still == sure == (best.edge_probabilities.to_numpy().max(axis=0) > 0.99).all()
    rows = {row.quantity: row for row in bs.check(idata).rows}
    words = "the same in every draw" if sure else "constant in all chains, while edges changed"
    assert rows["number of edges"].ok and rows["number of edges"].verdict.startswith(words)
    # A step that does not say how probable another tree was leaves it open.
    del idata["sample_stats"]
    assert bs.check(idata).rows[0].ok is not sure


@pytest.mark.statistical
def test_predictions_of_states_are_conditional_probabilities():
    x = states()
    with bs.models.tree(x, score="bdeu") as model:
        idata = pm.sample(
            50, tune=0, chains=1, cores=1, progressbar=False, random_seed=1,
            compute_convergence_checks=False,
        )  # fmt: skip
    row = x.head(1).astype(object)
    row.loc[:, "c"] = None
    found = bs.predict(idata, row)["probability"].to_numpy()
    both = pd.concat([x.head(1).assign(c=s) for s in range(2)], ignore_index=True)
    with bs.new_rows(model, both):
        logp = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    p = np.exp(logp["x"].values[0])
    np.testing.assert_allclose(found, (p / p.sum(axis=1, keepdims=True)).mean(axis=0), rtol=1e-10)


def distance(p=4, seed=5):
    values = np.random.default_rng(seed).uniform(size=(p, p))
    names = list("abcd")
    return pd.DataFrame(values + values.T, names, names)


@pytest.mark.chain
@pytest.mark.compiled
@pytest.mark.statistical
def test_coefficients_of_edge_covariates_have_their_posterior():
    table = numbers(n=10, p=4)
    # In another order of columns: a DataFrame is aligned by its names.
    given = distance().loc[list("dbca"), list("dbca")]
    model = bs.models.tree(table, edge_covariates={"distance": given}, coefficient_scale=1.5)
    with model:
        idata = pm.sample(
            1500, tune=300, chains=2, cores=1, nuts_sampler="pymc", progressbar=False, random_seed=1
        )
    own = distance().to_numpy()[np.triu_indices(4, 1)]
    z = (own - own.mean()) / own.std()
    trees, posterior = trees_of(4), bs.exact.tree_posterior(table)
    evidence = np.exp([posterior.log_probability(lines_of(row)) for row in trees])
    grid = np.linspace(-7, 7, 400)
    prior = np.exp(np.outer(grid, trees @ z))
    prior /= prior.sum(axis=1, keepdims=True)
    joint = np.exp(-0.5 * (grid / 1.5) ** 2)[:, None] * prior * evidence
    joint /= joint.sum()
    mean = joint.sum(axis=1) @ grid
    sd = np.sqrt(joint.sum(axis=1) @ (grid - mean) ** 2)
    draws = idata.posterior["edge_coefficient"].values[..., 0]
    ess = 600.0  # at least so many effective draws; four standard errors
    found = float(az.ess(draws))
    assert found > ess
    assert abs(draws.mean() - mean) < 4 * sd / np.sqrt(found)
    assert abs(draws.std() / sd - 1) < 4 / np.sqrt(2 * found)
    edges = idata.posterior["edge"].mean(["chain", "draw"]).values
    np.testing.assert_allclose(edges, joint.sum(axis=0) @ trees, atol=4 * 0.5 / np.sqrt(ess))
    weight = np.exp(-0.5 * (grid / 1.5) ** 2)
    implied = (weight / weight.sum()) @ prior @ trees
    # 1,000 draws of the coefficient.
    np.testing.assert_allclose(idata.constant_data["edge_prior"], implied, atol=0.05)
    assert "distance" in bs.check(idata).to_frame().to_string()


def test_bad_edge_covariates_are_refused():
    table, good = numbers(p=4), distance()
    with pytest.raises(TypeError, match=r'a dict such as \{"distance": matrix\}'):
        bs.models.tree(table, edge_covariates=good.to_numpy())
    with pytest.raises(TableError, match=r"'distance'.* has shape"):
        bs.models.tree(table, edge_covariates={"distance": np.zeros(3)})
    with pytest.raises(TableError, match="is not symmetric for a -- c"):
        wrong = good.copy()
        wrong.loc["a", "c"] = 9.0
        bs.models.tree(table, edge_covariates={"distance": wrong})
    with pytest.raises(TableError, match="is no number for b -- d"):
        wrong = good.copy()
        wrong.loc["d", "b"] = np.nan
        bs.models.tree(table, edge_covariates={"distance": wrong})
    bs.models.tree(table, edge_covariates={"distance": wrong}, forbidden=[("b", "d")])
    with pytest.raises(TableError, match="is the same for all edges"):
        bs.models.tree(table, edge_covariates={"distance": np.ones((4, 4))})
    with pytest.raises(TableError, match="no row and column for column 'd'"):
        bs.models.tree(table, edge_covariates={"distance": good.iloc[:3, :3]})
    with pytest.raises(ValueError, match="coefficient_scale"):
        bs.models.tree(table, edge_covariates={"distance": good}, coefficient_scale=-1.0)
    with pytest.raises(ValueError, match="`coefficient_scale` goes with `edge_covariates`"):
        bs.models.tree(table, coefficient_scale=2.0)


def test_rounding_leaves_edge_covariates_symmetric():
    near = distance().to_numpy().copy()
    near[0, 1] = np.nextafter(near[0, 1], np.inf)
    model = bs.models.tree(numbers(p=4), edge_covariates={"distance": near})
    assert model["edge_coefficient"].eval().shape == (1,)
