"""Classifiers as models: whole runs, readers of their results, and options."""

import networkx as nx
import numpy as np
import pandas as pd
import pymc as pm
import pytest

import bayesstruct as bs

from bayesstruct.classifiers.exact import averaged_tan

LABELS = np.array(["left", "right"])


def frame(seed=0, n=200):
    """Four features that depend on each other and on the class, which is the third column."""
    rng = np.random.default_rng(seed)
    a, y = rng.integers(0, 3, n), rng.integers(0, 2, n)
    b = np.where(rng.random(n) < 0.5, (a + y) % 3, rng.integers(0, 3, n))
    c = np.where(rng.random(n) < 0.5, y, rng.integers(0, 2, n))
    d = np.where(rng.random(n) < 0.3, (b + c) % 3, rng.integers(0, 3, n))
    return pd.DataFrame({"a": a, "b": b, "class": LABELS[y], "c": c, "d": d})


def sample(draws=400, table=None, **options):
    with bs.models.network_classifier(frame() if table is None else table, "class", **options):
        return pm.sample(
            draws,
            tune=0,
            chains=2,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )


@pytest.fixture(scope="module")
def tan():
    return sample()


@pytest.mark.chain
def test_a_tree_is_sampled_predicted_and_read(tan):
    exact = averaged_tan(frame(), "class")
    arcs = bs.arc_table(tan).set_index(["source", "target"])
    features = [*"abcd"]
    for i, first in enumerate(features):
        assert arcs.loc[("class", first), "probability"] == 1
        for second in features[i + 1 :]:
            either = arcs["probability"][first, second] + arcs["probability"][second, first]
            # Four standard errors of a share of 800 independent draws.
            expected = exact.edge_probabilities.loc[first, second]
            error = 4 * np.sqrt(expected * (1 - expected) / 800) + 1e-9
            np.testing.assert_allclose(either, expected, atol=error)
    new = frame(1, 100)
    found, expected = bs.class_probabilities(tan, new), exact.probabilities(new)
    assert list(found.columns) == ["left", "right"]
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    # Means over 800 draws of probabilities whose standard deviations are below .1.
    np.testing.assert_allclose(found, expected, atol=4 * 0.1 / np.sqrt(800))
    assert bs.summary(tan).kind == "classifiers"
    assert "All quantities have converged" in str(bs.check(tan))


@pytest.mark.chain
def test_class_probabilities_agree_with_predictions_of_empty_values():
    tan = sample(equivalent_sample_size=1.0)  # under which draws of the trees differ less
    rows = frame(1, 8).astype(object)
    rows["class"] = None
    rows.iloc[2, 0] = None
    rows.iloc[3, [0, 1, 4]] = None
    found = bs.class_probabilities(tan, rows)
    other = bs.predict(tan, rows)
    other = other[other["column"] == "class"].pivot(
        index="row", columns="state", values="probability"
    )
    # The first weighs draws by the probability of the features; draws differ little in it.
    np.testing.assert_allclose(found, other, atol=0.01)
    np.testing.assert_array_equal(found, bs.class_probabilities(tan, rows.drop(columns="class")))


@pytest.mark.chain
def test_measures_of_rows_whose_class_is_known(tan):
    new = frame(2, 400)
    table = bs.classification_table(tan, new)
    p = bs.class_probabilities(tan, new)
    right = p.to_numpy()[np.arange(400), (new["class"] == "right") * 1]
    hit = p.idxmax(axis=1) == new["class"]
    np.testing.assert_allclose(table.loc["accuracy", "value"], hit.mean())
    np.testing.assert_allclose(table.loc["accuracy", "se"], hit.std() / 20)
    np.testing.assert_allclose(table.loc["confidence", "value"], p.max(axis=1).mean())
    np.testing.assert_allclose(table.loc["log_score", "value"], np.log(right).mean())
    np.testing.assert_allclose(table.loc["brier", "value"], 2 * ((1 - right) ** 2).mean())
    assert table.loc["accuracy", "value"] > table.loc["accuracy", "baseline"] + 0.1
    gap = table.loc["accuracy", "value"] - table.loc["confidence", "value"]
    assert abs(gap) < 4 * table.loc["accuracy", "se"]
    with pytest.raises(bs.TableError, match="the class 'class' of row 1 is missing"):
        bs.classification_table(tan, new.assign(**{"class": new["class"].where(new.index != 1)}))


@pytest.mark.chain
def test_a_classifier_has_no_effects(tan):
    """Its arcs from the class are given: the effect of a feature on the class would be zero in every draw."""
    with pytest.raises(ValueError, match="arcs of a classifier are no effects"):
        bs.do(tan, {"a": 1})
    with pytest.raises(ValueError, match="arcs of a classifier are no effects"):
        bs.predict(tan, frame(1, 5).drop(columns="a"), setting={"a": 1})


@pytest.mark.chain
def test_bad_rows_are_refused_by_column_and_state(tan):
    with pytest.raises(bs.TableError, match=r"[Cc]olumn 'b' has the state 9, which the model"):
        bs.class_probabilities(tan, frame().assign(b=9))
    with pytest.raises(bs.TableError, match=r"[Cc]olumn 'class' has the state 'up'"):
        bs.classification_table(tan, frame().assign(**{"class": "up"}))
    with pytest.raises(bs.TableError, match="Column 'd' of the model is absent"):
        bs.class_probabilities(tan, frame().drop(columns="d"))
    other = tan.copy()
    other["constant_data"] = other["constant_data"].to_dataset().drop_vars("classifier_target")
    with pytest.raises(ValueError, match="the result is not of a classifier"):
        bs.class_probabilities(other, frame())


@pytest.mark.chain
def test_a_saved_result_is_read_without_its_model(tan, tmp_path):
    import xarray as xr

    tan.to_netcdf(tmp_path / "posterior.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "posterior.nc", engine="h5netcdf") as back:
        np.testing.assert_array_equal(
            bs.class_probabilities(back, frame(1, 5)), bs.class_probabilities(tan, frame(1, 5))
        )


@pytest.mark.chain
@pytest.mark.parametrize("structure", ["naive", "ghc2", "given"])
def test_fixed_structures_have_a_posterior_of_their_tables(structure):
    solved = bs.solvers.network_classifier(frame(), "class", structure="ghc2")
    given = solved if structure == "given" else structure
    idata = sample(300, structure=given)
    naive = structure == "naive"
    drawn = idata.posterior["dag"].values.reshape(-1, 5, 5)
    assert (drawn == drawn[0]).all()
    expected = nx.star_graph(["class", *"abcd"]) if naive else solved.graph
    assert {*bs.median_graph(idata).edges} == {*expected.edges}
    fitted = bs.solvers.network_classifier(frame(), "class", structure="naive") if naive else solved
    # Smoothed frequencies are the means of the tables; probabilities of the classes differ a little.
    np.testing.assert_allclose(
        bs.class_probabilities(idata, frame(1, 50)), fitted.probabilities(frame(1, 50)), atol=0.08
    )
    np.testing.assert_allclose(
        idata.posterior["table"].mean(("chain", "draw")).values[:, :4],
        fitted.tables[:, :4],
        atol=0.05,
    )


@pytest.mark.chain
def test_rows_are_predicted_and_have_log_likelihoods():
    table = frame(n=60)
    model = bs.models.network_classifier(table, "class")
    with model:
        idata = pm.sample(
            30, tune=0, chains=1, random_seed=1, progressbar=False, compute_convergence_checks=False
        )
        pm.sample_posterior_predictive(idata, extend_inferencedata=True, progressbar=False)
        pm.compute_log_likelihood(idata, progressbar=False)
    rows = idata.posterior_predictive["x"].values
    assert rows.shape == (1, 30, 60, 5)
    assert {*np.unique(rows[..., 2])} == {0, 1}
    draw = idata.posterior.isel(chain=0, draw=3)
    classifier = bs.solvers.network_classifier(table, "class", structure="naive")
    from bayesstruct.classifiers.kernels.predictions import class_logs

    codes = np.array(table.assign(**{"class": (table["class"] == "right") * 1}))
    states = np.array([len(own) for own in classifier.levels])
    logs = class_logs(codes, draw["dag"].values, draw["table"].values, states, 2)
    own = logs[np.arange(60), codes[:, 2]]
    np.testing.assert_allclose(idata.log_likelihood["x"].values[0, 3], own, rtol=1e-10)
    with bs.new_rows(model, frame(5, 7)):
        other = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    assert other["x"].shape == (1, 30, 7)


@pytest.mark.chain
def test_trees_by_fcll_are_sampled_with_weights_of_their_score(tan):
    idata = sample(300, score="fcll")
    solved = bs.solvers.network_classifier(frame(), "class", score="fcll")
    median = {frozenset(pair) for pair in bs.median_graph(idata).edges}
    assert median == {frozenset(pair) for pair in solved.graph.edges}
    said = "no posterior probabilities and no evidence"
    assert any(said in note for note in bs.arc_table(idata).attrs["notes"])
    assert not any(said in note for note in bs.arc_table(tan).attrs["notes"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"structure": "tree"}, "structure"),
        ({"score": "cll"}, "score"),
        ({"structure": "naive", "score": "fcll"}, "there is only one here"),
        ({"score": "acll"}, "depends on its root.*structure=bs.solvers.network_classifier"),
        ({"pseudo_count": 1.0}, "`pseudo_count` belongs to other scores"),
        ({"score": "mdl", "equivalent_sample_size": 1.0}, "`equivalent_sample_size` belongs to"),
        ({"equivalent_sample_size": 0.0}, "equivalent_sample_size"),
        ({"structure": "naive", "pseudo_count": -1.0}, "pseudo_count"),
    ],
)
def test_options_that_do_not_apply_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        bs.models.network_classifier(frame(), "class", **options)


def test_tables_that_are_not_of_a_classifier_are_refused():
    with pytest.raises(bs.TableError, match="unknown target 'clas'; did you mean 'class'"):
        bs.models.network_classifier(frame(), "clas")
    for wrong, words in (
        (None, "not None"),
        (["class"], "not list"),
        (frame()["class"], "not Series"),
    ):
        with pytest.raises(TypeError, match=f"{words}: put the classes into the table as a column"):
            bs.models.network_classifier(frame(), wrong)
    with pytest.raises(bs.TableError, match="The table is empty, it has 0 rows"):
        bs.models.network_classifier(frame()[:0], "class")
    with pytest.raises(bs.TableError, match=r"1 feature beside the target.*structure='naive'"):
        bs.models.network_classifier(frame()[["a", "class"]], "class")
    other = bs.solvers.network_classifier(frame().rename(columns={"a": "e"}), "class")
    with pytest.raises(bs.TableError, match="give the table that it was learned from"):
        bs.models.network_classifier(frame(), "class", structure=other)


def test_a_given_structure_follows_the_order_of_the_columns():
    solved = bs.solvers.network_classifier(frame(), "class")
    names = ["d", "class", "c", "b", "a"]
    model = bs.models.network_classifier(frame()[names], "class", structure=solved)
    dag = model["dag"].eval(mode="FAST_COMPILE")
    arcs = {(names[i], names[j]) for i, j in np.argwhere(dag)}
    assert arcs == {*solved.graph.edges}


def test_counted_rows_and_codes_of_missing_values():
    table = frame()
    counts = table.value_counts().rename("n").reset_index()
    model = bs.models.network_classifier(counts, "class", row_counts="n")
    assert model["x"].eval(mode="FAST_COMPILE").shape == (200, 5)
    coded = table.replace({"a": {2: -9}})
    options = {"missing_codes": -9, "incomplete_rows": "error"}
    with pytest.raises(bs.TableError, match=r"[Cc]olumn 'a': values are missing in \d+ rows"):
        bs.models.network_classifier(coded, "class", **options)
    with pytest.warns(bs.TableWarning, match="Rows with missing values are left out"):
        model = bs.models.network_classifier(coded, "class", missing_codes=-9)
    kept = table[table["a"] != 2]
    wanted = bs.models.network_classifier(kept, "class")
    values = [own.rvs_to_values[own["x"]].data for own in (model, wanted)]
    np.testing.assert_array_equal(*values)


@pytest.mark.chain
def test_limits_of_evidence_are_refused_with_a_reason(tan):
    with pytest.raises(ValueError, match="not known for classifiers: the lines of a tree exclude"):
        bs.evidence_limits(tan)
