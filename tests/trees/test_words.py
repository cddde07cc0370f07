"""Words for results of trees: what their weights are, and whether they are trees or forests."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import bayesstruct as bs

from bayesstruct.graphs.posteriors.reading import read_edges
from bayesstruct.graphs.posteriors.weight_names import weight_name


def tables():
    rng = np.random.default_rng(0)
    a = rng.normal(size=40)
    numbers = pd.DataFrame({"a": a, "b": a + rng.normal(size=40), "c": rng.normal(size=40)})
    states = (numbers > 0).astype(int)
    return {"bge": numbers, "bdeu": states, "mixed": numbers.assign(c=np.where(a > 0, "x", "y"))}


def drawn(model):
    with model:
        return pm.sample(
            20, tune=5, chains=1, progressbar=False, random_seed=1, compute_convergence_checks=False
        )


@pytest.mark.chain
@pytest.mark.parametrize(
    ("score", "name"),
    [
        ("bge", "partial correlation"),
        ("bdeu", "mutual information in nats"),
        ("mixed", "strength of dependence"),
    ],
)
def test_weights_of_trees_have_their_name(score, name):
    idata = drawn(bs.models.tree(tables()[score], score=score))
    assert weight_name(read_edges(idata)) == name
    texts = [text.get_text() for text in bs.plot_evidence(idata).figure.findobj(match=_is_text)]
    assert any("positive" in text for text in texts) == (score != "bdeu")


def _is_text(artist):
    return hasattr(artist, "get_text")


@pytest.mark.chain
@pytest.mark.parametrize(("score", "kind"), [("bge", "numbers"), ("bdeu", "states")])
def test_the_summary_of_a_forest_speaks_of_forests(score, kind):
    idata = drawn(bs.models.forest(tables()[score], score=score))
    assert f"forests of columns of {kind}" in str(bs.summary(idata))


@pytest.mark.chain
def test_weights_of_trees_with_hidden_nodes_are_correlations():
    idata = drawn(bs.models.latent_tree(tables()["bge"]))
    assert weight_name(read_edges(idata)) == "correlation along the edge"
