import numpy as np
import pymc as pm
import pytest
import xarray as xr

from tools.posteriors import bernoulli_posterior, posterior

import bayesstruct as bs

from bayesstruct.graphs.posteriors.reading import read_edges
from bayesstruct.modes.check import check
from bayesstruct.structure import edge_table, median_graph


def drop(tree, group, name):
    children = {key: node.to_dataset() for key, node in tree.children.items()}
    children[group] = children[group].drop_vars(name)
    return xr.DataTree.from_dict(children)


@pytest.mark.parametrize(
    ("group", "name", "message"),
    [
        ("posterior", "edge", "no `edge`; it holds weight. Was it sampled"),
        ("posterior", "weight", "no `weight`; it holds edge"),
        ("constant_data", "edge_source", "no `edge_source`"),
        ("constant_data", "edge_prior", "no `edge_prior`"),
    ],
)
def test_missing_variables_are_named(group, name, message):
    with pytest.raises(ValueError, match=message):
        edge_table(drop(bernoulli_posterior([0.5, 0.5, 0.5], draws=10), group, name))


def test_names_come_from_the_draws_when_no_constant_has_them():
    tree = bernoulli_posterior([0.5, 0.5, 0.5], draws=10)
    without = drop(tree, "constant_data", "node")
    assert read_edges(without).variables == ["v0", "v1", "v2"]
    with pytest.raises(ValueError, match=r"no `node`.*bs\.edges"):
        edge_table(drop(without, "posterior", "node"))


@pytest.mark.chain
def test_a_hand_written_model_is_told_what_to_add():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    with pm.Model() as model:
        precision = bs.GraphicalSpikeSlab("precision", 3, 0.5)
        bs.distributions.Edges("edge", precision)
        pm.MvNormal("x", np.zeros(3), tau=precision, observed=rows)
    idata = pm.sample(20, tune=5, chains=2, cores=1, random_seed=1, progressbar=False, model=model)
    with pytest.raises(
        ValueError, match=r"no `edge_source` and .*add bs\.edges\(precision, columns="
    ):
        edge_table(idata)


@pytest.mark.parametrize("read", [edge_table, median_graph, check])
def test_one_group_is_not_the_result(read):
    tree = bernoulli_posterior([0.5, 0.5, 0.5], draws=10)
    with pytest.raises(ValueError, match="whole tree, idata instead"):
        read(tree["posterior"])
    with pytest.raises(TypeError, match="whole tree, idata instead"):
        read(tree["posterior"].to_dataset())


def test_missing_group_and_wrong_type():
    tree = bernoulli_posterior([0.5, 0.5, 0.5], draws=10)
    with pytest.raises(ValueError, match="no group `prior`"):
        edge_table(tree, group="prior")
    with pytest.raises(TypeError, match="DataTree"):
        edge_table([1, 2])


def test_a_single_chain_keeps_its_dimension():
    tree = bernoulli_posterior([0.5, 0.5, 0.5], draws=10)
    with pytest.raises(ValueError, match=r"keep its dimension: idata\.isel\(chain=\[0\]\)"):
        edge_table(tree.isel(chain=0))
    assert len(edge_table(tree.isel(chain=[0]))) == 3


def test_results_of_models_with_a_name_are_told_apart():
    tree = bernoulli_posterior([0.5, 0.5, 0.5], draws=10)
    draws = tree["posterior"].to_dataset()
    named = draws.rename({name: f"field::{name}" for name in draws.data_vars})
    tree["posterior"] = xr.DataTree(named)
    with pytest.raises(
        ValueError, match=r"those of a model with a name.*bs.submodel\(idata, 'field'\)"
    ):
        edge_table(tree)


def test_draws_from_disk_need_the_model():
    tree = bernoulli_posterior([0.5, 0.5, 0.5], draws=10).drop_nodes("constant_data")
    with pytest.raises(ValueError, match=r"load_checkpoint\(path, model=model\) adds"):
        edge_table(tree)


def test_an_effective_sample_size_that_is_undefined_is_said():
    tree = bernoulli_posterior([0.5, 0.5, 0.5], draws=3)
    assert any("ess is undefined" in note for note in edge_table(tree).attrs["notes"])


def test_indicators_are_zero_or_one():
    with pytest.raises(ValueError, match="must hold 0"):
        median_graph(posterior(np.full((2, 5, 3), 2)))


def test_order_of_dims_does_not_matter():
    tree = bernoulli_posterior([0.1, 0.5, 0.9], draws=30)
    turned = xr.DataTree.from_dict(
        {
            "posterior": tree["posterior"].to_dataset().transpose("pair", "draw", "chain", ...),
            "constant_data": tree["constant_data"].to_dataset(),
        }
    )
    np.testing.assert_array_equal(read_edges(tree).indicators, read_edges(turned).indicators)


def test_names_with_the_separator_in_them():
    names = ["a -- b", "c", "a", "b -- c"]
    drawn = np.zeros((2, 10, 6), int)
    drawn[..., 0] = 1  # "a -- b" with "c"
    graph = median_graph(posterior(drawn, names=names))
    assert list(graph.nodes) == names
    assert list(graph.edges) == [("a -- b", "c")]
    table = edge_table(posterior(drawn, names=names))
    assert table.loc[0, ["source", "target"]].tolist() == ["a -- b", "c"]


def test_draws_that_are_nan_are_refused_by_all_readers():
    """Runs of different lengths, joined along the chains."""
    tree = bernoulli_posterior([0.5, 0.5, 0.5], draws=10)
    edge = tree["posterior"]["edge"].astype(float)
    edge[0, 7:] = np.nan
    tree["posterior"]["edge"] = edge
    for read in (edge_table, median_graph, bs.inclusion_probabilities):
        with pytest.raises(ValueError, match="runs of different lengths"):
            read(tree)
