"""Refusals and remarks of trees name remedies that there are."""

import numpy as np
import pandas as pd
import pytest

import bayesstruct as bs

from bayesstruct.data.errors import TableError, TableWarning


def numbers():
    rng = np.random.default_rng(0)
    a = rng.normal(size=40)
    return pd.DataFrame({"a": a, "b": a + rng.normal(size=40), "c": rng.normal(size=40)})


def both():
    return numbers().assign(c=np.where(np.arange(40) % 3 == 0, "yes", "no"))


@pytest.mark.parametrize("learn", [bs.exact.tree_posterior, bs.models.tree])
def test_text_among_numbers_is_for_the_mixed_score(learn):
    with pytest.raises(TableError, match=r"'c' holds text.*score=.mixed., which has numbers and"):
        learn(both())
    learn(both(), score="mixed")


@pytest.mark.parametrize("learn", [bs.exact.forest_posterior, bs.models.forest])
def test_forests_of_one_kind_name_the_tree_of_both(learn):
    with pytest.raises(TableError, match=r"'c' holds text.*the model tree with score=.mixed."):
        learn(both())


def test_bayesian_networks_name_the_mixed_score():
    with pytest.raises(TableError, match=r"'c' holds text.*score=.mixed., which has numbers and"):
        bs.models.bayesian_network(both())


@pytest.mark.parametrize(
    ("learn", "model"),
    [
        (bs.exact.tree_posterior, "models.tree,"),
        (bs.exact.forest_posterior, "models.forest,"),
        (bs.solvers.chow_liu, "models.tree,"),
        (bs.solvers.latent_tree, r"models.latent_tree \(columns of numbers\),"),
    ],
)
def test_the_model_that_imputes_is_named(learn, model):
    gap = numbers()
    gap.loc[3, "b"] = np.nan
    with pytest.raises(TableError, match=f"'b': values are missing.*use bayesstruct.{model} which"):
        learn(gap)


def test_codes_of_missing_values_have_a_remedy_where_there_is_no_option():
    table = numbers()
    table.loc[3, "b"] = -999.0
    with pytest.warns(TableWarning, match="leave them empty or name them: missing_codes"):
        bs.exact.tree_posterior(table)


def test_two_rows_are_too_few_for_distances():
    with pytest.raises(TableError, match=r"2 rows, in which any two columns .*: add rows"):
        bs.solvers.latent_tree(numbers().head(2), columns="numbers")


def test_a_directed_tree_has_one_parent_for_each_column():
    table = (numbers() > 0).astype(int)
    with pytest.raises(
        TableError, match=r"'c' would have 2 parents.*drop one of the required arcs"
    ):
        bs.solvers.directed_tree(table, required=[("a", "c"), ("b", "c")])
    with pytest.raises(TypeError, match=r"`max_parents`.*one parent"):
        bs.solvers.directed_tree(table, max_parents=2)
