"""The summary of a result: the main table of its family, and readers that do read it."""

import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from matplotlib.collections import LineCollection
from tools.compliance import build
from tools.dags import dag_posterior, random_dags
from tools.features import shuffled_features
from tools.posteriors import bernoulli_posterior

import bayesstruct as bs

from bayesstruct.core.readers import reader_of, readers, register_summary
from bayesstruct.modes.summary import Summary

#: Data set of each model, and the kind and the table of its results.
RESULTS = {
    "gaussian": ("Gaussian graphical models", "edge_table"),
    "gaussian_g_wishart": ("Gaussian graphical models", "edge_table"),
    "grouped": ("differences between groups", "difference_table"),
    "gaussian_student": ("graphical models of t rows", "edge_table"),
    "gaussian_alternative": ("graphical models of t rows", "edge_table"),
    "gaussian_mixed": ("Gaussian graphical models of columns by their order", "edge_table"),
    "gaussian_states": ("Gaussian graphical models of columns without an order", "edge_table"),
    "gaussian_chain": ("Gaussian graphical models", "edge_table"),
    "gaussian_nodes": ("Gaussian graphical models of selected nodes", "edge_table"),
    "gaussian_blocks": ("Gaussian graphical models", "edge_table"),
    "neighbourhoods": ("dependency networks", "arc_table"),
    "ising_neighbourhoods": ("dependency networks", "arc_table"),
    "ising": ("Markov random fields", "edge_table"),
    "full": ("Markov random fields", "edge_table"),
    "tree": ("trees of columns of numbers", "edge_table"),
    "latent_tree": ("trees with hidden nodes", "split_table"),
    "latent_tree_states": ("trees of columns of states with hidden nodes", "split_table"),
    "tree_states": ("trees of columns of states", "edge_table"),
    "tree_mixed": ("trees of columns of numbers and states", "edge_table"),
    "forest": ("forests of columns of numbers", "edge_table"),
    "forest_states": ("forests of columns of states", "edge_table"),
    "network": ("Bayesian networks", "arc_table"),
    "network_bdeu": ("Bayesian networks", "arc_table"),
    "linear_sem": ("linear structural equations", "arc_table"),
    "lingam": ("linear structural equations", "arc_table"),
    "network_mixed": ("Bayesian networks of columns of several kinds", "arc_table"),
    "classifier": ("classifiers", "arc_table"),
    "features": ("latent features with loadings", "feature_table"),
    "links": ("latent features of linked objects", "link_probabilities"),
    "factorization": ("latent features of linked objects", "link_probabilities"),
    "additive_clustering": ("latent features of linked objects", "link_probabilities"),
    "complexes": ("latent features of linked objects", "link_probabilities"),
    "causes": ("latent features", "feature_table"),
    "factors": ("latent features with loadings", "feature_table"),
    "ica": ("latent features with loadings", "feature_table"),
    "aspects": ("latent features", "feature_table"),
    "series": ("behaviours of time series", "state_probabilities"),
    "mixture": ("clusters of regressions", "cluster_table"),
}
#: Readers that need more than a result.
WITH_MORE = {
    "compare",
    "do",
    "independence_check",
    "noise_check",
    "one_group",
    "class_probabilities",
    "classification_table",
    "mixture_predictions",
    "predict",
    "predictability",
    "sandwich",
}


def drawn_from_prior(case):
    """Draws from the prior of a model in the place of those from its posterior: the same variables."""
    with build(bs, case):
        idata = pm.sample_prior_predictive(12, random_seed=1)
    idata["posterior"] = idata["prior"]
    return idata


def made_up():
    """Results without sampling, with draws enough for every reader."""
    rng = np.random.default_rng(0)
    graphs = random_dags(rng, 60, 4).reshape(2, 30, 4, 4)
    z = np.array([[1, 0], [1, 1], [0, 1], [1, 0], [0, 1]])
    loading = [[1.0, 2.0, 0.0], [0.0, -1.0, 1.0]]
    cluster = (("chain", "draw", "observation"), rng.integers(0, 2, (2, 20, 6)))
    return {
        "undirected graphs": bernoulli_posterior([0.9, 0.1, 0.5], draws=40),
        "Bayesian networks": dag_posterior(graphs),
        "latent features with loadings": shuffled_features(z, loading),
        "clusters": xr.DataTree.from_dict({"posterior": xr.Dataset({"cluster": cluster})}),
    }


@pytest.mark.chain
@pytest.mark.usefixtures("python_mode")
@pytest.mark.parametrize("case", RESULTS)
def test_every_model_has_its_table(case):
    idata = drawn_from_prior(case)
    kind, reader = RESULTS[case]
    found = bs.summary(idata)
    assert (found.kind, found.reader) == (kind, reader)
    pd.testing.assert_frame_equal(found.table, getattr(bs, reader)(idata))
    assert bs.check(idata).rows
    assert found.plot().has_data()
    plt.close("all")


def test_every_model_of_the_catalogue_is_there():
    from tools.compliance import CASES

    assert {CASES[case][0] for case in RESULTS} == {m.name for m in bs.models.catalogue()}


@pytest.mark.parametrize("kind", made_up())
def test_the_readers_that_are_named_read_the_result(kind):
    found = bs.summary(made_up()[kind])
    assert found.kind == kind
    for name in found.others:
        if name not in WITH_MORE:
            assert getattr(bs, name)(made_up()[kind]) is not None


def test_all_readers_are_public_and_there_are_others():
    for reader in readers():
        names = (reader.table.__name__, *reader.others)
        assert len(names) == len({*names}) > 1
        assert all(callable(getattr(bs, name)) for name in names)
        assert all(next(iter(inspect.signature(getattr(bs, n)).parameters)) for n in names)
        assert f"`bs.{reader.table.__name__}` for " in bs.summary.__doc__
        assert reader.figure is not None


@pytest.mark.usefixtures("python_mode")
def test_a_symmetrised_result_is_one_of_undirected_graphs():
    graphs = bs.symmetrize(drawn_from_prior("neighbourhoods"))
    assert bs.summary(graphs).kind == "undirected graphs"


def test_the_main_figure_is_that_of_the_kind():
    idata = bernoulli_posterior([0.9, 0.1, 0.5], draws=40)
    _, ax = plt.subplots()
    found = bs.summary(idata)
    assert found.plot(ax=ax, min_probability=0.8) is ax
    (lines,) = (drawn for drawn in ax.collections if isinstance(drawn, LineCollection))
    assert len(lines.get_segments()) == 1
    plt.close()
    with pytest.raises(ValueError, match="no figure for stars"):
        Summary("stars", "edge_table", found.table, ()).plot()


def test_options_go_to_the_table():
    idata = bernoulli_posterior([0.9, 0.1, 0.5], draws=40)
    name = next(n for n in inspect.signature(bs.edge_table).parameters if n.endswith("prob"))
    narrow = bs.summary(idata, **{name: 0.5}).table
    pd.testing.assert_frame_equal(narrow, bs.edge_table(idata, **{name: 0.5}))
    assert (narrow["hdi_high"] < bs.summary(idata).table["hdi_high"]).any()


def test_it_prints_table_notes_and_readers():
    found = bs.summary(bernoulli_posterior([1.0, 0.1, 0.5], draws=40))
    text, page = repr(found), found._repr_html_()
    assert text.startswith("Draws of undirected graphs: bs.edge_table(idata)")
    assert "bayes_factor" in text  # no column is hidden
    assert re.search(r"1\.0+ +> \d", text)  # a bound is marked
    assert "Bayes factors are bounds" in text
    assert text.endswith("bs.plot_matrix, bs.check.")
    assert "<table" in page
    assert "bs.median_graph" in page
    assert "&lt;b&gt;" in Summary("<b>", "edge_table", found.table, ())._repr_html_()


def test_what_is_no_result_is_refused():
    with pytest.raises(TypeError, match=re.escape("got pandas")):
        bs.summary(pd.DataFrame())
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": ("draw", [1.0])})})
    with pytest.raises(ValueError, match=r"its posterior holds mu\. .* az\.summary"):
        bs.summary(tree)
    with pytest.raises(ValueError, match="its posterior holds nothing"):
        bs.summary(xr.DataTree())


def test_the_registry_refuses_what_would_be_ambiguous():
    known = readers()
    with pytest.raises(ValueError, match="must be registered before"):
        register_summary("stars", bool, bs.edge_table, before="planets")
    assert readers() == known
    assert reader_of(xr.DataTree()) is None
