import re

import numpy as np
import pytest
import xarray as xr

from scipy import stats
from tools.posteriors import bernoulli_posterior, posterior, spike_slab_posterior

from bayesstruct.modes.check import _classical_rhat, _diagnose, _limit, _suspicious, _verdict, check

PROBABILITIES = [0.5, 0.9, 0.1, 0.4, 0.6, 0.02]


def test_independent_draws_have_converged():
    rng = np.random.default_rng(3)
    tree = bernoulli_posterior(PROBABILITIES, draws=500, mean=rng.normal(size=(4, 500)))
    result = check(tree)
    assert result.ok, result
    frame = result.to_frame()
    assert list(frame) == ["quantity", "r_hat", "ess_bulk", "ess_tail", "verdict"]
    assert frame.verdict.eq("converged").all()
    assert {"number of edges", "distance to the median graph", "mean"} <= {*frame.quantity}
    assert repr(result).startswith("All quantities have converged.")
    assert "<table" in result._repr_html_()


def test_a_bad_scalar_is_found_and_named():
    drift = np.linspace(0, 3, 500) + np.random.default_rng(1).normal(size=(4, 500))
    result = check(bernoulli_posterior(PROBABILITIES, draws=500, mean=drift))
    assert not result.ok
    row = result.to_frame().set_index("quantity").loc["mean"]
    assert row.verdict.startswith("not converged: run longer (r_hat")
    assert repr(result).startswith("1 of 5")


def test_small_effective_sample_is_said_with_its_number():
    rng = np.random.default_rng(2)
    walk = np.repeat(rng.normal(size=(4, 25)), 20, axis=1)
    frame = check(bernoulli_posterior(PROBABILITIES, draws=500, mean=walk)).to_frame()
    assert "< 400)" in frame.set_index("quantity").loc["mean"].verdict


def test_the_worst_edge_is_the_one_whose_probability_is_least_well_known():
    drawn = np.random.default_rng(4).random((4, 500, 3)) < 0.5
    drawn[:, :, 1] = np.repeat(drawn[:, :50, 1], 10, axis=1)  # as probable, but rarely drawn anew
    assert "edge (worst): v0 -- v2" in {*check(posterior(drawn.astype(int))).to_frame().quantity}


@pytest.mark.parametrize(("draws", "chains"), [(60, 4), (60, 1), (300, 2)])
def test_too_few_draws_say_how_many_are_needed(draws, chains):
    rng = np.random.default_rng(5)
    values = np.repeat(rng.normal(size=(1, draws // 4)), 4, axis=1)
    values = np.concatenate([np.roll(values, 12 * c) for c in range(chains)])  # chains that agree
    tree = bernoulli_posterior(PROBABILITIES, draws=draws, chains=chains, mean=values)
    verdict = check(tree).to_frame().set_index("quantity").loc["mean"].verdict
    wanted = re.match(r"too few draws: draw ([\d,]+) a chain \(.*ess \d+ < \d00\)", verdict)
    # A fourth of the draws is independent: 100 a chain take 400, as far as so few can tell.
    assert 200 < int(wanted[1].replace(",", "")) < 1200, verdict


def test_chains_stuck_at_different_graphs():
    drawn = np.zeros((4, 100, 3), int)
    drawn[0, :, 1] = 1
    frame = check(posterior(drawn)).to_frame()
    assert frame.verdict.eq("not converged: chains are stuck at different values").all()
    assert "edge (worst): v0 -- v2" in set(frame.quantity)


def test_a_graph_that_never_moved_is_no_evidence():
    result = check(posterior(np.ones((4, 100, 3), int)))
    assert not result.ok and not any(row.ok for row in result.rows)
    frame = result.to_frame()
    assert frame.verdict.str.startswith("did not move: ").all()
    assert frame.r_hat.isna().all()


@pytest.mark.parametrize(("k", "ok"), [(0.5, True), (0.2, False)])
def test_a_constant_graph_has_converged_if_the_probability_of_a_change_was_small(k, ok):
    """Closed form: an edge is absent with the share of the spike in the density of the precision."""
    spike, slab = (stats.norm.pdf(k, scale=scale) for scale in (0.05, 1.0))
    change = 0.6 * spike / (0.6 * spike + 0.4 * slab)
    precision = np.full((4, 250, 3, 3), k)
    tree = posterior(
        np.ones((4, 250, 3), int),
        precision=precision,
        edge_probability=0.4,
        spike_scale=0.05,
        slab_scale=1.0,
    )
    assert (change * 1000 < 5) == ok  # so few changes in 1,000 draws may be none
    for row in check(tree).rows[:4]:
        assert row.ok is ok
        assert f"had the probability {change:.1g} a draw, or less" in row.verdict
        assert row.verdict.startswith(
            "the same in every draw of every chain" if ok else "did not move, although"
        )


def test_edges_that_the_model_gives_need_no_evidence():
    tree = posterior(np.array([[[1, 0, 1]] * 100] * 4), edge_prior=np.array([1.0, 0.0, 1.0]))
    assert check(tree).ok
    assert check(tree).rows[0].verdict == "all edges are given by the model"


def test_the_number_of_edges_may_be_constant_where_edges_change():
    drawn = np.random.default_rng(6).random((4, 500)) < 0.5
    rows = check(posterior(np.stack([drawn, ~drawn, drawn | True], axis=-1).astype(int))).rows
    assert rows[0].quantity == "number of edges" and rows[0].ok
    assert rows[0].verdict == "constant in all chains, while edges changed"
    assert rows[2].verdict == "converged"


def test_another_variable_that_never_moved_is_no_evidence():
    row = check(bernoulli_posterior(PROBABILITIES, draws=500, noise=np.ones((4, 500)))).rows[-1]
    assert row.quantity == "noise" and row.verdict.startswith("did not move")


def test_one_chain_and_few_draws():
    one = check(bernoulli_posterior(PROBABILITIES, chains=1, draws=1000))
    assert not one.ok
    assert one.to_frame().verdict.str.startswith("cannot tell: one chain").all()
    few = check(bernoulli_posterior(PROBABILITIES, draws=3))
    assert few.to_frame().verdict.eq("cannot tell: 3 draws a chain").all()


@pytest.mark.parametrize(("count", "ok"), [(0, True), (7, False)])
def test_divergences(count, ok):
    tree = bernoulli_posterior(PROBABILITIES, draws=500)
    diverging = np.zeros((4, 500), bool)
    diverging[0, :count] = True
    tree["sample_stats"] = xr.DataTree(xr.Dataset({"diverging": (("chain", "draw"), diverging)}))
    result = check(tree)
    assert result.ok is ok
    assert result.rows[-1].quantity == "divergences"


def test_precision_is_checked_on_its_diagonal_only():
    tree = spike_slab_posterior(draws=50)
    tree["posterior"]["precision"].values[..., 2, 2] = np.random.default_rng(0).normal(size=(2, 50))
    names = [row.quantity for row in check(tree).rows]
    assert "precision diagonal (worst of 4): v2" in names


def test_noise_of_the_worst_of_many_entries_is_no_disagreement():
    """R-hat of independent draws: the limit holds for a hundred entries in two short chains.

    Without the normalising of ranks, which changes nothing for normal draws but takes its time.
    """
    rng = np.random.default_rng(8)
    ratios = [_classical_rhat(rng.normal(size=(2, 200, 100))).max() for _ in range(100)]
    runs = np.sqrt(0.99 + 0.99 * 4 / 3 * np.array(ratios))  # four halves, with the usual divisors
    limit = _limit((2, 200), 100)
    assert np.mean(runs > 1.01) > 0.9
    assert np.mean(runs > limit) < 0.06  # 1 of 100 is expected; 6 are one in 2,000 times
    # Neither does the limit forgive what noise does not explain, nor rise in runs of usual length.
    _, ok = _verdict(limit + 1e-4, 400.0, 400.0, (2, 200), 100)
    assert not ok
    assert _limit((4, 1000), 10_000) == _limit((1, 200), 100) == 1.01


def test_verdicts_show_the_digits_that_decide():
    assert "r_hat 1.01004 > 1.01," in _verdict(1.01004, 300.0, 300.0, (4, 1000), 1)[0]
    assert "r_hat 1.012 > 1.01)" in _verdict(1.0123, 500.0, 500.0, (4, 1000), 1)[0]


def test_screening_finds_the_worst_entry():
    rng = np.random.default_rng(4)
    draws = rng.normal(size=(4, 200, 500))
    draws[1, :, 321] += 1.5  # disagrees
    draws[:, :, 123] = np.repeat(draws[:, ::20, 123], 20, axis=1)  # sticks
    kept = _suspicious(draws)
    assert {123, 321} <= {*kept.tolist()}
    assert len(kept) <= 100
    r_hat, bulk, _ = _diagnose(draws[..., kept])
    assert kept[np.argmax(r_hat)] in {123, 321}
    assert kept[np.argmin(bulk)] in {123, 321}


def test_a_sparse_regression_is_followed_by_its_coefficients_that_are_not_zero():
    rng = np.random.default_rng(8)
    on = rng.random((4, 500, 3)) < [1.0, 0.5, 0.0]
    w = on * rng.normal(2, 0.1, size=on.shape)
    draws = {
        "w": (("chain", "draw", "w_dim_0"), w),
        "sigma": (("chain", "draw"), rng.gamma(9, size=(4, 500))),
    }
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset(draws)})
    result = check(tree)
    assert result.ok, result
    frame = result.to_frame().set_index("quantity")
    assert next(iter(frame.index)) == "entries of w that are not zero"
    assert "sigma" in frame.index
    stuck = w.copy()
    stuck[0, :, 1] = 0.0
    tree = xr.DataTree.from_dict(
        {"posterior": xr.Dataset({"w": (("chain", "draw", "w_dim_0"), stuck)})}
    )
    assert not check(tree).ok


def test_features_of_another_name_are_refused_with_the_remedy():
    z = np.random.default_rng(8).integers(0, 2, (2, 50, 6, 4))
    tree = xr.DataTree.from_dict(
        {"posterior": xr.Dataset({"z": (("chain", "draw", "row", "k"), z)})}
    )
    with pytest.raises(
        ValueError, match=r"`z` is a matrix of whole numbers.*call them `feature`.*rename"
    ):
        check(tree)


def blocks_of_nodes(seed=0, chains=4, n_draws=400):
    """Draws of two blocks or one of four nodes, under labels that differ between chains, with an edge probability for each two."""
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random((chains, n_draws, 1)) < 0.7, np.arange(4) >= 2, False).astype(int)
    own = np.where(np.arange(2) == 0, 0.2, 0.8) + 0.05 * rng.normal(size=(chains, n_draws, 2))
    share = np.where(np.arange(2) == 0, 0.3, 0.7) + 0.05 * rng.normal(size=(chains, n_draws, 2))
    labels[1:] = 1 - labels[1:]  # only the first chain has the other labels
    own[1:], share[1:] = own[1:, :, ::-1], share[1:, :, ::-1]
    across = 0.1 + 0.02 * rng.normal(size=(chains, n_draws))
    pairs = np.stack([own[..., 0], across, own[..., 1]], axis=2)
    sample = "chain", "draw"
    return {
        "block": ((*sample, "node"), labels),
        "block_share": ((*sample, "block_label"), share),
        "block_probability": ((*sample, "block_pair"), pairs),
    }


def test_blocks_of_nodes_are_followed_by_what_does_not_depend_on_labels():
    tree = bernoulli_posterior(PROBABILITIES, draws=400)
    with_blocks = tree["posterior"].to_dataset().assign(blocks_of_nodes())
    result = check(xr.DataTree.from_dict({**tree.to_dict(), "/posterior": with_blocks}))
    assert result.ok, result
    names = {row.quantity.partition(" (")[0] for row in result.rows}
    assert {"number of blocks", "pairs of columns in one block", "block_share of a column"} <= names
    assert "block_probability within the block of a column" in names
    assert not {"block", "block_share", "block_probability"} & names


def test_chains_with_other_blocks_have_not_converged():
    tree = bernoulli_posterior(PROBABILITIES, draws=400)
    blocks = blocks_of_nodes()
    dims, labels = blocks["block"]
    labels = np.where(np.arange(4)[:, None, None] == 0, [0, 1, 1, 1], labels)
    with_blocks = tree["posterior"].to_dataset().assign(blocks | {"block": (dims, labels)})
    result = check(xr.DataTree.from_dict({**tree.to_dict(), "/posterior": with_blocks}))
    bad = {row.quantity.partition(" (")[0] for row in result.rows if not row.ok}
    assert "columns in the block of a column" in bad
