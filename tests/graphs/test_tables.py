import arviz as az
import numpy as np
import pytest
import xarray as xr

from scipy.stats import norm
from tools.posteriors import bernoulli_posterior, posterior, spike_slab_posterior

from bayesstruct.graphs.summaries import bayes_factor_texts
from bayesstruct.structure import (
    bayes_factors,
    credible_edges,
    edge_table,
    inclusion_matrix,
    inclusion_probabilities,
    partial_correlations,
    to_networkx,
)

COLUMNS = [
    "source",
    "target",
    "probability",
    "bayes_factor",
    "mean",
    "hdi_low",
    "hdi_high",
    "ess",
    "r_hat",
]


def test_columns_order_and_values():
    tree = bernoulli_posterior([0.2, 0.9, 0.5, 0.0, 1.0, 0.05])
    table = edge_table(tree)
    assert list(table) == COLUMNS
    assert table.probability.is_monotonic_decreasing
    assert table.index.tolist() == list(range(6))
    row = table.set_index(["source", "target"]).loc[("v0", "v2")]
    weight = tree["posterior"]["weight"].values[..., 1]
    assert row["mean"] == pytest.approx(weight.mean())
    np.testing.assert_allclose(row[["hdi_low", "hdi_high"]].tolist(), az.hdi(weight.ravel()))


def test_ties_go_to_the_larger_weight_then_to_table_order():
    weight = np.zeros((2, 10, 6))
    weight[..., 4] = -0.5
    table = edge_table(posterior(np.ones((2, 10, 6), int), weight=weight))
    assert table.target[0] == "v3" and table.source[0] == "v1"
    rest = list(zip(table.source, table.target, strict=True))[1:]
    assert rest == [("v0", "v1"), ("v0", "v2"), ("v0", "v3"), ("v1", "v2"), ("v2", "v3")]


def test_ci_prob_widens_the_interval():
    tree = bernoulli_posterior([0.5, 0.5, 0.5])
    narrow, wide = edge_table(tree, ci_prob=0.5), edge_table(tree, ci_prob=0.99)
    assert (wide.hdi_high - wide.hdi_low > narrow.hdi_high - narrow.hdi_low).all()
    with pytest.raises(ValueError, match="ci_prob"):
        edge_table(tree, ci_prob=1)


def test_rao_blackwell_is_the_formula():
    tree = spike_slab_posterior(spike=0.05, slab=1.0, edge_probability=0.4)
    k = tree["posterior"]["precision"].values[..., *np.triu_indices(4, 1)]
    slab, spike = 0.4 * norm.pdf(k, 0, 1.0), 0.6 * norm.pdf(k, 0, 0.05)
    expected = (slab / (slab + spike)).mean(axis=(0, 1))
    found = inclusion_probabilities(tree)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found.attrs["estimator"] == "rao-blackwell"


def test_rao_blackwell_with_a_drawn_probability_keeps_fixed_edges():
    drawn = np.random.default_rng(0).beta(2, 5, size=(2, 100))
    nominal = [1.0, 0.0, 0.3, 0.3, 0.3, 0.3]
    tree = spike_slab_posterior(edge_probability=nominal, drawn_probability=drawn)
    k = tree["posterior"]["precision"].values[..., *np.triu_indices(4, 1)]
    pi = drawn[..., None]
    slab, spike = pi * norm.pdf(k, 0, 1.0), (1 - pi) * norm.pdf(k, 0, 0.05)
    expected = (slab / (slab + spike)).mean(axis=(0, 1))
    expected[:2] = [1, 0]
    np.testing.assert_allclose(inclusion_probabilities(tree), expected, rtol=1e-12)


def test_counted_when_the_precision_is_not_kept():
    tree = bernoulli_posterior([0.2, 0.9, 0.5], edge_probability=0.5, spike_scale=0.1, slab_scale=1)
    found = inclusion_probabilities(tree)
    assert found.attrs["estimator"] == "frequency"
    np.testing.assert_allclose(found, tree["posterior"]["edge"].mean(("chain", "draw")))


def test_bayes_factor_uses_the_implied_prior():
    tree = spike_slab_posterior(edge_probability=0.4, edge_prior=0.2)
    p = inclusion_probabilities(tree).values
    np.testing.assert_allclose(bayes_factors(tree), p / (1 - p) / (0.2 / 0.8), rtol=1e-9)


def test_bayes_factor_of_the_prior_is_one():
    tree = bernoulli_posterior(np.full(6, 0.3), draws=2000, edge_prior=0.3)
    # standard error of a log odds: 1 / sqrt(8000 * .3 * .7) = .024
    np.testing.assert_allclose(np.log(bayes_factors(tree)), 0, atol=0.12)


def test_certain_edges_get_finite_bounds():
    drawn = np.zeros((4, 100, 3), int)
    drawn[..., 0] = 1
    drawn[:, ::2, 2] = 1
    table = edge_table(posterior(drawn, edge_prior=0.2))
    assert np.isfinite(table.bayes_factor).all()
    assert table.probability.tolist() == [1.0, 0.5, 0.0]
    assert table.attrs["bayes_factor_bounds"] == [0, 2]
    assert "2 Bayes factors are bounds" in table.attrs["notes"][0]
    # only one edge moved, faster than independent draws: its ESS is cut to the 400 draws
    np.testing.assert_allclose(table.bayes_factor, [400 * 4, 4, 4 / 400])


def test_nothing_moved_uses_the_number_of_draws():
    factor = bayes_factors(posterior(np.ones((2, 50, 3), int)))
    np.testing.assert_allclose(factor, 100)
    assert factor["bound"].all()


def test_overwhelming_evidence_is_finite():
    precision = np.zeros((2, 20, 3, 3)) + np.eye(3)
    precision[..., 0, 1] = precision[..., 1, 0] = 5.0  # log Bayes factor above 30,000
    tree = posterior(
        np.ones((2, 20, 3), int),
        precision=precision,
        edge_probability=0.5,
        spike_scale=0.02,
        slab_scale=1.0,
    )
    factor = bayes_factors(tree)
    assert factor.values[0] == 1e6
    assert factor["bound"].values.tolist() == [True, False, False]
    table = edge_table(tree)
    assert table.bayes_factor[0] == 1e6
    graph = to_networkx(tree)
    assert graph.edges["v0", "v1"]["bayes_factor"] == 1e6
    shown = [graph.edges[edge]["bayes_factor_shown"] for edge in table[["source", "target"]].values]
    assert shown == bayes_factor_texts(table)
    assert shown[0] == "> 1e6"


def test_fixed_edges_are_not_tested():
    tree = bernoulli_posterior([1.0, 0.0, 0.5], edge_prior=[1.0, 0.0, 0.5])
    table = edge_table(tree)
    assert table.bayes_factor.isna().tolist() == [True, False, True]
    assert table.attrs["notes"][0].startswith("2 Bayes factors are NaN: these edges were required")
    assert table.attrs["bayes_factor_bounds"] == []


def test_one_chain_is_said():
    table = edge_table(bernoulli_posterior([0.3, 0.4, 0.5], chains=1))
    assert table.r_hat.isna().all()
    assert any("this result has one" in note for note in table.attrs["notes"])


def test_prior_group():
    tree = bernoulli_posterior([0.9, 0.9, 0.9])
    prior = bernoulli_posterior([0.1, 0.1, 0.1], seed=3)["posterior"]
    tree["prior"] = xr.DataTree(prior.to_dataset())
    assert edge_table(tree, group="prior").probability.max() < 0.2


@pytest.mark.parametrize("fdr", [0.01, 0.05, 0.3])
def test_credible_edges_are_the_largest_set(fdr):
    tree = bernoulli_posterior(np.random.default_rng(0).beta(0.5, 0.5, 45))
    error = np.sort(1 - inclusion_probabilities(tree).values)
    chosen = credible_edges(tree, fdr=fdr)
    n = len(chosen)
    assert (1 - chosen.probability).mean() <= fdr
    assert error[: n + 1].mean() > fdr  # one more edge would be too many
    np.testing.assert_allclose(chosen.fdr.iloc[-1], error[:n].mean())


def test_credible_edges_may_be_none_or_all():
    tree = bernoulli_posterior([0.5, 0.5, 0.5])
    assert len(credible_edges(tree, fdr=0.05)) == 0
    assert len(credible_edges(tree, fdr=0.9)) == 3
    for wrong in (0, 1, -0.1):
        with pytest.raises(ValueError, match="fdr"):
            credible_edges(tree, fdr=wrong)


def test_matrices():
    tree = bernoulli_posterior([0.2, 0.9, 0.5])
    matrix = partial_correlations(tree)
    mean = tree["posterior"]["weight"].mean(("chain", "draw")).values
    assert matrix.loc["v0", "v2"] == matrix.loc["v2", "v0"] == pytest.approx(mean[1])
    assert (np.diag(matrix) == 1).all()
    assert (np.diag(inclusion_matrix(tree)) == 0).all()


def reported(probability, *, noise=0.1, seed=0, **kwargs):
    """A result with counts, and numbers of a much smaller variance that a step reported."""
    tree = bernoulli_posterior(probability, seed=seed, **kwargs)
    shape = tree["posterior"]["edge"].shape
    rng = np.random.default_rng(seed + 1)
    values = np.asarray(probability) + noise * rng.uniform(-1, 1, shape)
    return with_statistics(tree, weight_inclusion=values.astype(np.float32))


def with_statistics(tree, **statistics):
    """Add vectors of each draw as PyMC does, which gives them dimensions of their own."""
    draws = {d: np.arange(tree["posterior"].sizes[d]) for d in ("chain", "draw")}
    values = {n: (("chain", "draw", f"{n}_dim_0"), v) for n, v in statistics.items()}
    groups = {key: node.to_dataset() for key, node in tree.children.items()}
    groups["posterior"] = groups["posterior"].assign_coords(draws)
    return xr.DataTree.from_dict(groups | {"sample_stats": xr.Dataset(values, draws)})


def test_probabilities_are_means_of_the_numbers_that_the_step_reported():
    tree = reported([0.2, 0.9, 0.5, 0.02, 0.98, 0.05])
    values = tree["sample_stats"]["weight_inclusion"].values
    found = inclusion_probabilities(tree)
    assert found.attrs["estimator"] == "control variate"
    np.testing.assert_allclose(found, values.mean(axis=(0, 1)), rtol=1e-5)
    table = edge_table(tree).sort_values(["source", "target"])
    np.testing.assert_allclose(table.probability, found)
    np.testing.assert_allclose(table.ess, az.ess(values, method="mean"))
    np.testing.assert_allclose(inclusion_matrix(tree).to_numpy()[0, 1:], found[:3])


def test_reported_probabilities_are_cut_off_like_the_draws():
    tree = reported([0.2, 0.9, 0.5])
    values = tree["sample_stats"]["weight_inclusion"].values
    for sizes in ({"draw": slice(50, None, 3)}, {"chain": [2, 1]}):
        part = tree.isel(sizes)
        kept = values[:, 50::3] if "draw" in sizes else values[[2, 1]]
        np.testing.assert_allclose(inclusion_probabilities(part), kept.mean((0, 1)), rtol=1e-5)
    turned = tree.copy()
    turned["sample_stats"] = turned["sample_stats"].to_dataset().transpose(..., "chain")
    np.testing.assert_allclose(inclusion_probabilities(turned), values.mean((0, 1)), rtol=1e-5)


def only(tree, **sizes):
    """The draws alone cut off, and not what the step reported."""
    groups = {key: node.to_dataset() for key, node in tree.children.items()}
    groups["posterior"] = groups["posterior"].isel(sizes)
    return xr.DataTree.from_dict(groups)


def unnumbered(tree):
    """Nothing says which draws a statistic is of."""
    groups = {key: node.to_dataset() for key, node in tree.children.items()}
    groups["sample_stats"] = groups["sample_stats"].drop_vars(["chain", "draw"])
    return xr.DataTree.from_dict(groups)


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.isel(pair=[0, 1]),
        lambda tree: tree.isel(pair=[1, 0, 2]),
        unnumbered,
        lambda tree: with_statistics(tree, weight_inclusion=np.ones((4, 250, 4))),
        lambda tree: with_statistics(tree, weight_entry=np.ones((4, 250, 3))),
        lambda tree: with_statistics(
            tree, a_inclusion=np.ones((4, 250, 3)), b_inclusion=np.zeros((4, 250, 3))
        ),
    ],
)
def test_draws_are_counted_where_reported_numbers_may_be_of_others(change):
    tree = change(reported([0.2, 0.9, 0.5]))
    found = inclusion_probabilities(tree)
    assert found.attrs["estimator"] == edge_table(tree).attrs["estimator"] == "frequency"
    np.testing.assert_allclose(found, tree["posterior"]["edge"].mean(("chain", "draw")))
    said = any("that the step reported" in note for note in edge_table(tree).attrs["notes"])
    assert said == any(str(n).endswith("_inclusion") for n in tree["sample_stats"].data_vars)


def test_without_statistics_nothing_is_said_of_them():
    table = edge_table(reported([0.2, 0.9, 0.5]).drop_nodes("sample_stats"))
    assert table.attrs["estimator"] == "frequency"
    assert not table.attrs["notes"]


@pytest.mark.parametrize("sizes", [{"draw": slice(10, None, 2)}, {"chain": [3, 1]}])
def test_reports_follow_draws_that_alone_were_cut(sizes):
    tree = reported([0.2, 0.9, 0.5])
    np.testing.assert_array_equal(
        inclusion_probabilities(only(tree, **sizes)), inclusion_probabilities(tree.isel(sizes))
    )


def test_reports_are_not_of_draws_from_the_prior():
    tree = reported([0.2, 0.9, 0.5])
    tree["prior"] = tree["posterior"].copy()
    assert inclusion_probabilities(tree, group="prior").attrs["estimator"] == "frequency"


def test_bayes_factors_of_edges_that_were_never_drawn():
    counted = posterior(np.zeros((2, 100, 3), int))
    rng = np.random.default_rng(0)
    values = np.tile([1e-3, 1e-5, 0.0], (2, 100, 1))
    values[..., 0] *= rng.uniform(0.5, 1.5, (2, 100))  # known well
    values[0, 0, 1] = -0.01  # in doubt: below zero in the mean
    tree = with_statistics(counted, weight_inclusion=values.astype(np.float32))
    p = inclusion_probabilities(tree).values
    np.testing.assert_allclose(p, [1e-3, 0, 0], rtol=0.1)
    factor = bayes_factors(tree)
    assert factor["bound"].values.tolist() == [False, True, True]
    assert factor.values[0] == pytest.approx(p[0] / (1 - p[0]))
    # Limits: the Monte Carlo error (.01 / 200, independent draws), and what single precision holds.
    np.testing.assert_allclose(factor.values[1:], [5e-5, 1e-6], rtol=0.1)
    assert bayes_factors(counted)["bound"].all()
