"""Arc tables and the undirected graphs read from arcs, on made-up results."""

import networkx as nx
import numpy as np
import pytest
import xarray as xr

from matplotlib.colors import to_rgb

import bayesstruct as bs

from bayesstruct.graphs import mixing
from bayesstruct.graphs.plots.style import POSITIVE
from bayesstruct.graphs.posteriors import arcs
from bayesstruct.graphs.traces import graph_distance

NAMES = ["a", "b", "c"]
TARGET, SOURCE = np.nonzero(~np.eye(3, dtype=bool))
LABELS = [f"{NAMES[s]} -> {NAMES[t]}" for s, t in zip(SOURCE, TARGET, strict=True)]
#: b -> a, c -> a, a -> b, c -> b, a -> c, b -> c
PROBABILITY = np.array([0.9, 0.2, 0.8, 0.0, 0.5, 1.0])


def result(
    probability=PROBABILITY, *, draws=400, averaged=None, prior=0.3, noise=None, **constants
):
    """Build the result of a neighbourhood model with independent arcs."""
    rng = np.random.default_rng(0)
    shape = (2, draws, 6)
    arc = (rng.random(shape) < probability).astype("int8")
    weight = arc * (0.5 + 0.1 * rng.normal(size=shape))
    sample = ("chain", "draw")
    coords = {"chain": [0, 1], "draw": np.arange(draws), "node": NAMES, "ordered_pair": LABELS}
    data = {"arc": ((*sample, "ordered_pair"), arc), "weight": ((*sample, "ordered_pair"), weight)}
    if noise is not None:
        data["noise_variance"] = ((*sample, "node"), np.broadcast_to(noise, (2, draws, 3)))
    fixed = {
        "arc_source": ("ordered_pair", SOURCE),
        "arc_target": ("ordered_pair", TARGET),
        "arc_prior": ("ordered_pair", np.broadcast_to(prior, 6).astype(float)),
        "arc_independent": 1,
        **constants,
    }
    groups = {"posterior": xr.Dataset(data, coords), "constant_data": xr.Dataset(fixed)}
    if averaged is not None:
        means = {"probability": (("chain", "ordered_pair"), np.broadcast_to(averaged, (2, 6)))}
        means["mean"] = ("ordered_pair", weight.mean((0, 1)))
        groups["arcs"] = xr.Dataset(means)
    return xr.DataTree.from_dict(groups)


# --- arcs ------------------------------------------------------------------------------------


def test_arc_table():
    idata = result()
    table = bs.arc_table(idata)
    assert list(table.columns) == [
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
    assert table["probability"].is_monotonic_decreasing
    assert tuple(table.loc[0, ["source", "target"]]) == ("b", "c")
    row = table.set_index(["source", "target"]).loc[("a", "c")]
    arc = idata["posterior"]["arc"].sel(ordered_pair="a -> c")
    p = float(arc.mean())
    assert row["probability"] == pytest.approx(p)
    assert row["bayes_factor"] == pytest.approx(p / (1 - p) * 0.7 / 0.3)
    assert row["mean"] == pytest.approx(
        float(idata["posterior"]["weight"].sel(ordered_pair="a -> c").mean())
    )
    assert row["hdi_low"] <= 0 < row["hdi_high"]
    assert 400 < row["ess"] < 2_000
    assert row["r_hat"] == pytest.approx(1, abs=0.02)
    never = table.set_index(["source", "target"]).loc[("c", "b")]
    assert (never["hdi_low"], never["hdi_high"], never["mean"]) == (0, 0, 0)
    assert never["bayes_factor"] > 0
    assert len(table.attrs["bayes_factor_bounds"]) == 2
    assert "not of a joint posterior" in table.attrs["notes"][0]
    assert table.attrs["notes"][1:] == [
        "2 Bayes factors are bounds (rows in attrs['bayes_factor_bounds']): the draws cannot tell these probabilities "
        "from 0 or 1, or the value is beyond 1e6, where it depends on the shape of the prior."
    ]


def test_evidence_for_arcs_is_a_matrix_from_rows_to_columns():
    idata = result([1.0, 0.001, 0.9, 0.0, 0.3, 1.0])
    table = bs.arc_table(idata).set_index(["source", "target"])["bayes_factor"]
    ax = bs.plot_evidence(idata)
    image = ax.images[0]
    colours = image.cmap(image.norm(image.get_array()))[..., :3]
    assert np.ma.getmaskarray(image.get_array()).tolist() == np.eye(3, dtype=bool).tolist()
    blue, white = np.array(to_rgb(POSITIVE)), np.ones(3)
    for i, j in zip(*np.nonzero(~np.eye(3, dtype=bool)), strict=True):
        factor = table[NAMES[i], NAMES[j]]
        assert np.allclose(colours[i, j], blue) == (factor >= 10)
        assert np.allclose(colours[i, j], white) == (factor <= 0.1)
    assert not np.allclose(colours, colours.swapaxes(0, 1))
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("from", "to")
    counts = [int(text.get_text().rsplit(": ")[1]) for text in ax.get_legend().get_texts()]
    assert sum(counts) == 6
    bs.plot_evidence(idata, order="alike")
    for options in ({"kind": "panels"}, {"pos": {}}):
        with pytest.raises(ValueError, match=r"bs\.symmetrize\(idata\) makes edges"):
            bs.plot_evidence(idata, **options)


def test_check_takes_arcs():
    idata = result()
    frame = bs.check(idata).to_frame()
    assert frame["verdict"].eq("converged").all(), frame
    assert frame["quantity"].tolist()[:2] == ["number of arcs", "distance to the median graph"]
    assert frame["quantity"][2] == "arc (worst): a -> c"  # the one whose probability is one half
    assert frame["quantity"][3].startswith("weight (worst of 6)")
    distance = graph_distance(idata, nx.DiGraph([("b", "a"), ("a", "b"), ("b", "c"), ("a", "c")]))
    known = np.array([1, 0, 1, 0, 1, 1])
    np.testing.assert_array_equal(distance, (idata["posterior"]["arc"].values != known).sum(-1))
    apart = np.zeros((2, 400, 6), "int8")
    apart[1, :, 2] = 1
    idata["posterior"]["arc"].values[:] = apart
    assert "stuck at different values" in bs.check(idata).to_frame()["verdict"][2]


def test_notes_of_required_and_forbidden_arcs():
    table = bs.arc_table(result(prior=np.array([1, 0.3, 0.3, 0, 0.3, 0.3]), averaged=PROBABILITY))
    assert table["bayes_factor"].isna().sum() == 2
    assert "2 Bayes factors are NaN: these arcs were required" in table.attrs["notes"][-1]


def test_averaged_probabilities_are_preferred():
    table = bs.arc_table(result(averaged=np.full(6, 0.25)))
    assert (table["probability"] == 0.25).all()
    assert table.attrs["estimator"] == "rao-blackwell"


def test_averages_do_not_outlive_the_draws_that_they_are_of():
    idata = result(averaged=np.full(6, 0.25))
    drawn = idata["posterior"]["arc"]
    idata["arcs"].attrs["draws"] = [drawn.sizes["chain"], drawn.sizes["draw"]]
    assert bs.arc_table(idata).attrs["estimator"] == "rao-blackwell"
    later = idata.isel(draw=slice(5, None))
    table = bs.arc_table(later)
    assert table.attrs["estimator"] == "frequency"
    frequency = later["posterior"]["arc"].mean(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(np.sort(table["probability"]), np.sort(frequency))


def test_many_arcs_leave_slow_diagnostics_to_those_that_are_visited(monkeypatch):
    full = bs.arc_table(result())
    monkeypatch.setattr(mixing, "MANY", 3)
    monkeypatch.setattr(arcs, "BLOCK", 2)
    table = bs.arc_table(result())
    moved = (full["probability"] > 0.01) & (full["probability"] < 0.99)
    np.testing.assert_allclose(table["ess"][moved], full["ess"][moved])
    assert table["ess"][~moved].isna().all()
    for name in ("probability", "mean", "hdi_low", "hdi_high"):
        np.testing.assert_allclose(table[name], full[name])


# --- rules -----------------------------------------------------------------------------------

PAIRS = {"a -- b": (0.9, 0.8), "a -- c": (0.2, 0.5), "b -- c": (0.0, 1.0)}
EXACT = {
    "and": [p * q for p, q in PAIRS.values()],
    "or": [p + q - p * q for p, q in PAIRS.values()],
    "average": [(p + q) / 2 for p, q in PAIRS.values()],
}


@pytest.mark.parametrize("rule", EXACT)
def test_rules(rule):
    idata = result(averaged=PROBABILITY)
    edges = bs.symmetrize(idata, rule)
    assert edges["posterior"]["pair"].values.tolist() == list(PAIRS)
    probability = bs.inclusion_probabilities(edges)
    np.testing.assert_allclose(probability, EXACT[rule], atol=1e-15)
    assert probability.attrs["estimator"] == "product"
    # 800 draws: standard errors below 0.018
    joint = edges["posterior"]["edge"].mean(("chain", "draw"))
    np.testing.assert_allclose(joint, EXACT[rule], atol=0.08)
    prior = {"and": 0.09, "or": 0.51, "average": 0.3}[rule]
    np.testing.assert_allclose(edges["constant_data"]["edge_prior"], prior)


@pytest.mark.parametrize("rule", EXACT)
def test_frequencies_are_multiplied_too(rule):
    idata = result()
    frequency = idata["posterior"]["arc"].mean(("chain", "draw")).values
    i, j = [2, 4, 5], [0, 1, 3]  # a -> b, a -> c, b -> c and back
    p, q = frequency[i], frequency[j]
    exact = {"and": p * q, "or": p + q - p * q, "average": (p + q) / 2}[rule]
    np.testing.assert_allclose(bs.inclusion_probabilities(bs.symmetrize(idata, rule)), exact)


def test_draws_of_and_are_inside_those_of_or():
    idata = result()
    both, either = (bs.symmetrize(idata, r)["posterior"]["edge"] for r in ("and", "or"))
    assert (both <= either).all()
    arc = idata["posterior"]["arc"]
    there, back = (arc.sel(ordered_pair=x).values for x in ("a -> b", "b -> a"))
    np.testing.assert_array_equal(both.sel(pair="a -- b"), there & back)
    np.testing.assert_array_equal(either.sel(pair="a -- b"), there | back)


def test_regressions_that_share_something_use_the_joint_draws():
    idata = result(arc_independent=0, arc_prior_both=0.2)
    edges = bs.symmetrize(idata, "or")
    joint = edges["posterior"]["edge"].mean(("chain", "draw"))
    np.testing.assert_allclose(bs.inclusion_probabilities(edges), joint)
    np.testing.assert_allclose(edges["constant_data"]["edge_prior"], 0.4)


def test_bayes_factors_and_bounds():
    edges = bs.symmetrize(result(averaged=PROBABILITY), "and")
    factor = bs.structure.bayes_factors(edges)
    assert factor.values[0] == pytest.approx(0.72 / 0.28 * 0.91 / 0.09)
    assert factor.values[2] == 1e-6  # 1e-12 * 0.91 / 0.09, which is beyond what is told
    assert factor["bound"].values.tolist() == [False, False, True]


def test_required_and_forbidden_arcs():
    edges = bs.symmetrize(result(prior=np.array([1, 0.3, 1, 0, 0.3, 0.3])), "and")
    table = bs.edge_table(edges).set_index(["source", "target"])
    assert table["bayes_factor"].isna().tolist() == [
        pair in [("a", "b"), ("b", "c")] for pair in table.index
    ]


def test_weights_of_binary_columns_are_mean_couplings():
    idata = result()
    weight = idata["posterior"]["weight"]
    mean = 0.5 * (weight.sel(ordered_pair="a -> b") + weight.sel(ordered_pair="b -> a"))
    for rule in ("and", "or", "average"):
        posterior = bs.symmetrize(idata, rule)["posterior"].sel(pair="a -- b")
        expected = mean if rule == "average" else mean * posterior["edge"]
        np.testing.assert_allclose(posterior["weight"], expected)


def test_weights_of_gaussian_columns_are_partial_correlations():
    J = np.array([[2.0, -0.6, 0.3], [-0.6, 1.5, 0.0], [0.3, 0.0, 1.0]])
    W = -J / np.diag(J)[:, None]
    idata = result(np.ones(6), noise=1 / np.diag(J))
    idata["posterior"]["weight"][:] = W[TARGET, SOURCE]
    weight = bs.symmetrize(idata, "and")["posterior"]["weight"].isel(chain=0, draw=0)
    root = np.sqrt(np.diag(J))
    expected = (-J / np.outer(root, root))[np.triu_indices(3, 1)]
    np.testing.assert_allclose(weight, expected, atol=1e-12)


def test_shrinkage_priors_keep_the_weights_of_absent_edges():
    idata = result(negligible=0.55)
    posterior = bs.symmetrize(idata, "and")["posterior"]
    assert (posterior["weight"].values[posterior["edge"].values == 0] != 0).any()


def test_functions_for_undirected_graphs_take_the_result():
    edges = bs.symmetrize(result(averaged=PROBABILITY), "and")
    graph = bs.median_graph(edges)
    assert set(graph.edges) == {("a", "b")}
    assert set(graph.nodes) == set(NAMES)
    assert bs.compare(edges, nx.Graph([("a", "b")])).shd == 0
    assert bs.graph_probabilities(edges)["probability"].sum() == pytest.approx(1)
    assert len(bs.credible_edges(edges, 0.5)) == 1
    assert bs.map_graph(edges).number_of_edges() == 1
    assert 0 < bs.expected_shd(edges, bs.symmetrize(result(), "or")) < 3
    assert bs.check(edges).ok
    assert len(bs.edge_table(edges)) == 3
    bs.plot_graph(edges)


def test_weights_that_were_not_kept_are_zero():
    idata = result()
    posterior = idata["posterior"].to_dataset()
    kept = [0, 2, 5]
    weight = posterior["weight"].values[..., kept].astype("float32")
    posterior = posterior.drop_vars("weight").assign_coords(visited_pair=np.array(LABELS)[kept])
    posterior["weight"] = (("chain", "draw", "visited_pair"), weight)
    constants = idata["constant_data"].to_dataset().assign(visited_index=("visited_pair", kept))
    compact = xr.DataTree.from_dict({"posterior": posterior, "constant_data": constants})
    edges = bs.symmetrize(compact, "or")
    assert edges["posterior"]["weight"].dims == ("chain", "draw", "visited_pair")
    assert edges["posterior"]["visited_pair"].values.tolist() == ["a -- b", "b -- c"]
    table = bs.edge_table(edges).set_index(["source", "target"])
    whole = bs.edge_table(bs.symmetrize(idata, "or")).set_index(["source", "target"])
    assert table.loc[("a", "c"), "mean"] == 0
    for pair in [("a", "b"), ("b", "c")]:
        assert table.loc[pair, "mean"] == pytest.approx(whole.loc[pair, "mean"], abs=1e-6)
    bs.median_graph(edges)


# --- what is refused -------------------------------------------------------------------------


def test_bad_input():
    idata = result()
    with pytest.raises(ValueError, match="unknown rule 'adn'; did you mean 'and'"):
        bs.symmetrize(idata, "adn")
    with pytest.raises(ValueError, match="ci_prob"):
        bs.arc_table(idata, ci_prob=1.0)
    with pytest.raises(TypeError, match=r"Expected the xarray.DataTree.*Pass the whole tree"):
        bs.arc_table(idata["posterior"].to_dataset())
    for function in (bs.arc_table, bs.symmetrize):
        with pytest.raises(ValueError, match=r"no arcs any more.*bs\.symmetrize.*bs\.edge_table"):
            function(bs.symmetrize(idata))
    undirected = xr.DataTree.from_dict({"posterior": xr.Dataset({"edge": 1, "weight": 1.0})})
    with pytest.raises(ValueError, match=r"no `arc`.*its posterior holds edge, weight"):
        bs.arc_table(undirected)
    with pytest.raises(ValueError, match=r"no `arc`.*holds nothing"):
        bs.symmetrize(xr.DataTree())


@pytest.mark.parametrize("function", [bs.edge_table, bs.median_graph, bs.inclusion_probabilities])
def test_functions_of_edges_say_how_to_get_edges_from_arcs(function):
    with pytest.raises(ValueError, match=r"arc_table.*symmetrize"):
        function(result())
