"""bs.compare of two results: against direct computation, permuted columns, halves of a result, directed graphs."""

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest

from tools.dags import dag_posterior, random_dags
from tools.posteriors import bernoulli_posterior, posterior

import bayesstruct as bs

mpl.use("Agg")

A, B = [0.99, 0.4, 0.02, 0.9, 0.3, 0.7], [0.2, 0.4, 0.03, 0.95, 0.995, 0.7]
PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def pair_of_results(names=None, order=None):
    """Two results over four variables, the columns of the second in another order."""
    a = bernoulli_posterior(A, seed=1, draws=500)
    values = np.array(B)
    if order is not None:
        names = [f"v{k}" for k in order]
        at = {frozenset(pair): k for k, pair in enumerate(PAIRS)}
        values = values[[at[frozenset((order[i], order[j]))] for i, j in PAIRS]]
    return a, bernoulli_posterior(values, seed=2, draws=400, names=names)


def draws_of(tree, what):
    """Draws by the names of both ends."""
    constants, names = tree["constant_data"], tree["constant_data"]["node"].values
    ends = zip(constants["edge_source"].values, constants["edge_target"].values, strict=True)
    values = tree["posterior"][what].values
    return {
        frozenset((names[i], names[j])): values[..., k].ravel() for k, (i, j) in enumerate(ends)
    }


@pytest.mark.parametrize("order", [None, [2, 0, 3, 1]])
def test_the_table_by_direct_computation(order):
    a, b = pair_of_results(order=order)
    found = bs.compare(a, b, random_seed=3, ci_prob=0.8)
    edges, weights = ([draws_of(tree, what) for tree in (a, b)] for what in ("edge", "weight"))
    table = found.table
    apart = (table.probability_a - table.probability_b).abs()
    assert (apart.diff().dropna() <= 0).all() and len(table) == 6
    for row in table.itertuples():
        pair = frozenset((row.source, row.target))
        p, q = edges[0][pair].mean(), edges[1][pair].mean()
        assert (row.probability_a, row.probability_b) == (pytest.approx(p), pytest.approx(q))
        assert row.bayes_factor_a == pytest.approx(p / (1 - p))
        assert row.bayes_factor_b == pytest.approx(q / (1 - q))
        first, second = weights[0][pair], weights[1][pair]
        assert row.difference == pytest.approx(first.mean() - second.mean())
        every = first[:, None] - second  # all pairs of independent draws
        assert row.greater == pytest.approx((every > 0).mean(), abs=0.05)
        assert row.greater + row.smaller == 1
        assert row.hdi_low < row.difference < row.hdi_high
        inside = (every >= row.hdi_low) & (every <= row.hdi_high)
        assert inside.mean() == pytest.approx(0.8, abs=0.05)
    again = bs.compare(a, b, random_seed=3, ci_prob=0.8).table
    assert again.equals(table)
    kinds = table.set_index(["source", "target"])[["evidence_a", "evidence_b"]]
    assert kinds.loc[("v0", "v1")].tolist() == ["included", "undecided"]
    assert kinds.loc[("v1", "v3")].tolist() == ["undecided", "included"]
    assert found.n_different == (kinds.evidence_a != kinds.evidence_b).sum() >= 2
    assert found.n_opposite == 0


def test_distances_by_direct_computation():
    a, b = pair_of_results(order=[3, 1, 0, 2])
    found = bs.compare(a, b)
    first, second = (nx.Graph(bs.median_graph(tree)) for tree in (a, b))
    edges = [{frozenset(edge) for edge in graph.edges} for graph in (first, second)]
    assert found.shd == len(edges[0] ^ edges[1]) == 2
    one, two = (draws_of(tree, "edge") for tree in (a, b))
    p, q = (np.array([draws[pair].mean() for pair in one]) for draws in (one, two))
    assert found.expected_shd == pytest.approx((p * (1 - q) + q * (1 - p)).sum())
    assert found.expected_shd == pytest.approx(bs.expected_shd(a, b))
    assert found.expected_shd_a == pytest.approx((2 * p * (1 - p)).sum())
    assert found.expected_shd_b == pytest.approx((2 * q * (1 - q)).sum())
    assert found.to_series()["largest_probability_difference"] == pytest.approx(abs(p - q).max())


def test_halves_of_one_result_agree():
    tree = bernoulli_posterior(A, seed=4, draws=4000)
    halves = tree.isel(chain=[0, 1]), tree.isel(chain=[2, 3])
    found = bs.compare(*halves, random_seed=1)
    assert found.shd == found.n_opposite == 0
    assert (found.table.greater - 0.5).abs().max() < 0.04  # 8,000 pairs: seven standard errors
    assert ((found.table.hdi_low < 0) & (found.table.hdi_high > 0)).all()
    assert found.expected_shd == pytest.approx(found.expected_shd_a, rel=0.05)
    assert bs.compare(*halves).n_different == 0


def test_a_shift_is_found_with_its_sign():
    rng = np.random.default_rng(0)
    edge = np.ones((2, 500, 3), "int8")
    a = posterior(edge, weight=0.3 + 0.02 * rng.normal(size=edge.shape))
    b = posterior(edge, weight=np.array([0.1, 0.3, 0.5]) + 0.02 * rng.normal(size=edge.shape))
    table = bs.compare(a, b).table.set_index(["source", "target"])
    assert table.difference.to_numpy() == pytest.approx([0.2, 0, -0.2], abs=0.01)
    assert table.greater.to_numpy() == pytest.approx([1, 0.5, 0], abs=0.1)
    reverse = bs.compare(b, a).table.set_index(["source", "target"])
    assert reverse.difference.to_numpy() == pytest.approx(-table.difference.to_numpy())


def test_exact_zeros_are_ties():
    edge = np.zeros((2, 100, 3), "int8")
    table = bs.compare(*(posterior(edge, weight=np.zeros(edge.shape)) for _ in "ab")).table
    assert (table[["greater", "smaller", "difference"]] == 0).all(axis=None)


def test_other_priors_and_fixed_edges_are_said():
    a = bernoulli_posterior([0.9, 0.5, 1.0], seed=1, edge_prior=[0.5, 0.5, 1.0])
    b = bernoulli_posterior([0.9, 0.5, 0.5], seed=2, edge_prior=0.2)
    found = bs.compare(a, b)
    text = " ".join(found.notes)
    assert "prior probabilities differ (on average 0.5 in a, 0.2 in b)" in text
    assert "1 of 3 were required, forbidden" in text
    assert "grouped_gaussian_graphical" in text
    assert "of 2 edges differ" in repr(found) and "of 2 edges differ" in found._repr_html_()
    same = bs.compare(a, a)
    assert "prior probabilities" not in " ".join(same.notes)


def test_directed_graphs_keep_directions():
    rng = np.random.default_rng(5)
    names = ["x", "y", "z"]
    one, two = (dag_posterior(random_dags(rng, 60, 3)[None], names=names) for _ in "ab")
    found = bs.compare(one, two)
    assert found.line == "arc" and len(found.table) == 6
    for end, tree in (("a", one), ("b", two)):
        arcs = bs.arc_probabilities(tree)
        for row in found.table.itertuples():
            assert getattr(row, f"probability_{end}") == pytest.approx(
                float(arcs.loc[row.source, row.target])
            )
    assert found.expected_shd == pytest.approx(bs.expected_shd(one, two))
    medians = bs.median_graph(one), bs.median_graph(two)
    assert found.shd == bs.structural_hamming_distance(*medians)


def test_bad_input():
    a = bernoulli_posterior([0.9, 0.5, 0.2])
    other = bernoulli_posterior([0.9, 0.5, 0.2], names=["v0", "v1", "w"])
    with pytest.raises(ValueError, match=r"different variables: v2, w\. .*in common"):
        bs.compare(a, other)
    dags = dag_posterior(random_dags(np.random.default_rng(0), 5, 3)[None])
    with pytest.raises(ValueError, match="undirected edges and the other directed arcs"):
        bs.compare(a, dags)
    with pytest.raises(ValueError, match="`bins` goes with a known graph"):
        bs.compare(a, a, bins=5)
    with pytest.raises(ValueError, match="go with two results"):
        bs.compare(a, [("v0", "v1")], random_seed=1)
    with pytest.raises(TypeError, match="of two results"):
        bs.plot_comparison(bs.compare(a, [("v0", "v1")]))


def test_picture():
    a, b = pair_of_results()
    found = bs.compare(a, b)
    ax = bs.plot_comparison(found, ("women", "men"))
    grey, blue = ax.collections
    assert len(blue.get_offsets()) == found.n_different
    assert len(grey.get_offsets()) == 6 - found.n_different
    assert ax.get_xlabel() == "P(edge), women" and ax.get_ylabel() == "P(edge), men"
    assert {text.get_text() for text in ax.texts} >= {"v0 – v1", "v1 – v3"}
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[:k])
    mpl.pyplot.close("all")
