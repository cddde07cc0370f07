import numpy as np
import pytest
import xarray as xr

from tools.posteriors import bernoulli_posterior, posterior

from bayesstruct.structure import edge_table, median_graph
from bayesstruct.structure._posterior import read_posterior


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
        ("constant_data", "variable", "no `variable`"),
    ],
)
def test_what_is_missing_is_named(group, name, message):
    with pytest.raises(ValueError, match=message):
        edge_table(drop(bernoulli_posterior([0.5, 0.5, 0.5], draws=10), group, name))


def test_missing_group_and_wrong_type():
    tree = bernoulli_posterior([0.5, 0.5, 0.5], draws=10)
    with pytest.raises(ValueError, match="no group `prior`"):
        edge_table(tree, group="prior")
    with pytest.raises(TypeError, match="DataTree"):
        edge_table([1, 2])


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
    np.testing.assert_array_equal(
        read_posterior(tree).indicators, read_posterior(turned).indicators
    )


def test_names_with_the_separator_in_them():
    names = ["a -- b", "c", "a", "b -- c"]
    drawn = np.zeros((2, 10, 6), int)
    drawn[..., 0] = 1  # "a -- b" with "c"
    graph = median_graph(posterior(drawn, names=names))
    assert list(graph.nodes) == names
    assert list(graph.edges) == [("a -- b", "c")]
    table = edge_table(posterior(drawn, names=names))
    assert table.loc[0, ["source", "target"]].tolist() == ["a -- b", "c"]
