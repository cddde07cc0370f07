"""The model of several groups: names, units, readers, equal groups, calibration."""

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from tools.calibration import assert_calibrated
from tools.group_frames import QUIET, frame
from tools.group_integration import GroupPrior, IndicatorPrior, groups_prior

import bayesstruct as bs

from bayesstruct.distributions import (
    implied_group_edge_probability,
    implied_relation_probabilities,
)
from bayesstruct.models import grouped_gaussian_graphical
from bayesstruct.precision.kernels.cholesky import unpack_cholesky
from bayesstruct.steps import GroupedPrecisionGibbs


@pytest.fixture(scope="module", params=[False, True])
def fitted(request):
    model = grouped_gaussian_graphical(frame(gaps=request.param), group="site")
    with model:
        return model, pm.sample(150, tune=50, random_seed=1, **QUIET)


@pytest.mark.chain
def test_names_dims_units_and_constants(fitted):
    _, idata = fitted
    posterior, constant = idata["posterior"], idata["constant_data"]
    gaps = {"x_missing"} & set(posterior.data_vars)
    names = {"precision", "mean", "relation", "edge", "difference", "weight"}
    assert set(posterior.data_vars) - gaps == names
    assert posterior["precision"].dims[2:] == ("group", "node", "node_")
    assert posterior["mean"].dims[2:] == ("group", "node")
    assert posterior["weight"].dims[2:] == ("group", "pair")
    assert posterior["group"].values.tolist() == ["a", "b"]
    K, (i, j) = posterior["precision"].values, np.triu_indices(4, 1)
    expected = -K[..., i, j] / np.sqrt(K[..., i, i] * K[..., j, j])
    np.testing.assert_allclose(posterior["weight"], expected, rtol=1e-12)
    relation = posterior["relation"]
    np.testing.assert_array_equal(posterior["edge"], relation > 0)
    np.testing.assert_array_equal(posterior["difference"], relation == 2)
    edge, difference = implied_relation_probabilities(2, 4)
    np.testing.assert_allclose(constant["edge_prior"], edge)
    np.testing.assert_allclose(constant["difference_prior"], difference)
    if gaps:  # of row 7, in its units and the group "a"
        imputed = posterior["x_missing"].sel(missing="mood[7]")
        assert 60 < imputed.mean() < 140


@pytest.mark.chain
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto")  # of few draws
def test_rows_are_predicted_and_compared(fitted):
    model, idata = fitted
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
        new = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=1)
    assert idata["log_likelihood"]["x"].dims == ("chain", "draw", "observation")
    assert np.isfinite(az.loo(idata).elpd)
    drawn = new["posterior_predictive"]["x"].mean(("chain", "draw")).to_numpy()
    second = (frame()["site"] == "b").to_numpy()
    found = drawn[second, 0].mean() - drawn[~second, 0].mean()
    means = frame().groupby("site")["mood"].mean()
    assert found == pytest.approx(
        means["b"] - means["a"], abs=5
    )  # three standard errors of means of 50 rows


@pytest.mark.chain
def test_differences_are_found(fitted):
    _, idata = fitted
    table = bs.difference_table(idata)
    first = table.iloc[0]
    assert (first["source"], first["target"], first["verdict"]) == ("mood", "sleep", "differs")
    assert first["hdi_low"] > 0.5 and first["mean_a"] > 0 > first["mean_b"]
    other = table.query("source == 'worry' and target == 'energy'").iloc[0]
    assert other["edge"] > 0.95 and other["verdict"] != "differs"
    turned = bs.difference_table(idata, groups=("b", "a")).iloc[0]
    assert turned["difference"] == pytest.approx(-first["difference"])
    assert bs.summary(idata).reader == "difference_table"
    with pytest.raises(ValueError, match="two of the groups 'a', 'b'"):
        bs.difference_table(idata, groups=("a", "c"))
    with pytest.raises(ValueError, match="above 1"):
        bs.difference_table(idata, threshold=0.5)


@pytest.mark.chain
def test_one_group_is_read_as_a_result_of_its_own(fitted):
    _, idata = fitted
    rows = frame()
    for label in "ab":
        own = bs.one_group(idata, label)
        table = bs.edge_table(own).query("source == 'mood' and target == 'sleep'")
        weight = idata["posterior"]["weight"].sel(group=label, pair="mood -- sleep").mean().item()
        assert table.iloc[0]["mean"] == pytest.approx(weight)
        relation, own_weight = idata["posterior"]["relation"], own["posterior"]["weight"]
        expected = (relation == 1) | ((relation == 2) & (abs(own_weight) > 0.1))
        np.testing.assert_array_equal(own["posterior"]["edge"], expected)
        (note,) = [n for n in bs.edge_table(own).attrs["notes"] if "those that differ" in n]
        assert "weight in this one is beyond 0.1" in note
        wider = bs.one_group(idata, label, negligible=0.5)
        assert wider["posterior"]["edge"].sum() < own["posterior"]["edge"].sum()
        assert bs.edge_table(wider)["bayes_factor"].isna().all()
        assert own["observed_data"].sizes["observation"] == (rows["site"] == label).sum()
        means = bs.coefficients(own)["intercept"].mean(("chain", "draw"))
        # the prior pulls by less than a standard error of a mean of 50 rows
        group_mean = rows.loc[rows["site"] == label, "mood"].mean()
        assert abs(means.sel(node="mood") - group_mean) < 10 / np.sqrt(50)
        assert bs.covariance(own).sizes["node"] == 4
    assert any("averages over the groups" in note for note in bs.edge_table(idata).attrs["notes"])
    for read in (bs.coefficients, bs.covariance, bs.precision_matrix):
        with pytest.raises(ValueError, match=r"each group of rows.*one_group"):
            read(idata)
    with pytest.raises(ValueError, match="groups of this result are 'a', 'b', not 'c'"):
        bs.one_group(idata, "c")
    with pytest.raises(ValueError, match="no groups of rows"):
        bs.one_group(bs.one_group(idata, "a"), "a")
    with pytest.raises(ValueError, match="no differences between groups"):
        bs.difference_table(bs.one_group(idata, "a"))


@pytest.mark.statistical
def test_the_prior_of_edges_of_one_group():
    settings = {"edge": 0.5, "difference": 0.6, "spike": 0.1, "slab": 0.8}
    prior = GroupPrior(2, **settings, small=0.1, large=0.6)
    K, relation = groups_prior(np.random.default_rng(0), 4_000, 3, prior)
    i, j = np.triu_indices(3, 1)
    weight = K[..., i, j] / np.sqrt(K[..., i, i] * K[..., j, j])
    edge = (relation == 1)[:, None] | ((relation == 2)[:, None] & (abs(weight) > 0.1))
    scales = {"spike_scale": 0.1, "slab_scale": 0.8, "equal_scale": 0.1, "difference_scale": 0.6}
    found = implied_group_edge_probability(2, 3, 0.5, 0.6, **scales)
    # 24,000 indicators of which few are independent
    np.testing.assert_allclose(found, edge.mean(), atol=0.02)


@pytest.mark.chain
def test_edges_of_a_group_that_has_none():
    rows = frame(n=450)
    second, rng = rows["site"] == "b", np.random.default_rng(0)
    rows.loc[second, "energy"] = 1e3 + 50.0 * rng.normal(size=second.sum())
    with grouped_gaussian_graphical(rows, group="site"):
        idata = pm.sample(100, tune=50, random_seed=1, **QUIET)
    pair = "source == 'worry' and target == 'energy'"
    first, other = (bs.edge_table(bs.one_group(idata, g)).query(pair).iloc[0] for g in "ab")
    assert first["probability"] > 0.95
    assert other["probability"] < 0.5
    assert first["bayes_factor"] > 10 and other["bayes_factor"] < 1
    assert bs.edge_table(idata).query(pair)["probability"].item() > 0.95
    for lost in ("weight", "relation"):
        without = idata.map_over_datasets(lambda d, lost=lost: d.drop_vars(lost, errors="ignore"))
        with pytest.raises(ValueError, match=f"need `{lost}`"):
            bs.one_group(without, "a")


@pytest.mark.chain
def test_the_picture_of_differences(fitted):
    import matplotlib.pyplot as plt

    _, idata = fitted
    ax = bs.plot_difference(idata)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "larger in a" in texts and "larger in b" in texts
    assert bs.plot_difference(idata, ("b", "a"), legend=False).get_legend() is None
    plt.close("all")


@pytest.mark.chain
def test_equal_groups_hardly_differ():
    rng = np.random.default_rng(5)
    factor = np.eye(5) + 0.8 * np.eye(5, k=1)
    rows = pd.DataFrame(rng.normal(size=(400, 5)) @ factor, columns=[*"abcde"])
    with grouped_gaussian_graphical(rows, group=np.arange(400) % 4):
        idata = pm.sample(200, tune=50, random_seed=1, **QUIET)
    table = bs.difference_table(idata)
    prior = idata["constant_data"]["difference_prior"].values
    assert table["probability"].mean() < 0.5 * prior.mean()
    assert not (table["verdict"] == "differs").any()
    with pytest.raises(ValueError, match="more than two groups"):
        bs.plot_difference(idata)
    # groups that are a copy of each other
    with grouped_gaussian_graphical({"x": rows[:100], "y": rows[:100] + 1e-9}):
        idata = pm.sample(200, tune=50, random_seed=1, **QUIET)
    assert bs.difference_table(idata)["probability"].max() < 0.25


@pytest.mark.chain
def test_edges_of_each_group():
    rows = frame(n=450)
    second = rows["site"] == "b"
    rng = np.random.default_rng(0)
    rows.loc[second, "energy"] = 1e3 + 50.0 * rng.normal(
        size=second.sum()
    )  # no edge to worry there
    with grouped_gaussian_graphical(rows, group="site", differences="indicators"):
        idata = pm.sample(200, tune=50, random_seed=1, **QUIET)
        pm.sample_prior_predictive(2, random_seed=1)
    posterior = idata["posterior"]
    assert posterior["group_edge"].dims[2:] == ("group", "pair")
    count = posterior["group_edge"].sum("group")
    np.testing.assert_array_equal(posterior["edge"], count > 0)
    np.testing.assert_array_equal(posterior["difference"], (count > 0) & (count < 2))
    first = bs.difference_table(idata).iloc[0]
    assert (first["source"], first["target"], first["verdict"]) == ("worry", "energy", "differs")
    for label, present in (("a", True), ("b", False)):
        own = bs.one_group(idata, label)
        table = bs.edge_table(own).query("source == 'worry' and target == 'energy'").iloc[0]
        assert table["probability"] == pytest.approx(
            posterior["group_edge"].sel(group=label, pair="worry -- energy").mean().item()
        )
        assert (table["probability"] > 0.9) == present
    assert (
        own["constant_data"]["edge_prior"].values[0]
        < idata["constant_data"]["edge_prior"].values[0]
    )
    assert bs.summary(idata).reader == "difference_table"
    assert bs.check(own).rows
    with pytest.raises(ValueError, match="`equal_scale` applies to"):
        grouped_gaussian_graphical(rows, group="site", differences="indicators", equal_scale=0.1)
    with pytest.raises(ValueError, match="indicators"):
        grouped_gaussian_graphical(rows, group="site", differences="indicator")


def test_required_and_forbidden_pairs():
    model = grouped_gaussian_graphical(
        frame(),
        group="site",
        required=[("mood", "worry")],
        forbidden=[("mood", "energy")],
        difference_probability=np.where(np.eye(4) > 0, 0.5, 0.0),
    )
    with model:
        step = GroupedPrecisionGibbs(model.free_RVs, rng=0)
    point, seen = model.initial_point(0), []
    for _ in range(30):
        point, _ = step.step(point)
        seen.append(point["relation"])
    assert (np.array(seen)[:, 1] == 1).all() and (np.array(seen)[:, 2] == 0).all()
    assert (np.array(seen) < 2).all()
    with pytest.raises(bs.TableError, match="difference_probability has values"):
        grouped_gaussian_graphical(frame(), group="site", difference_probability=2.0)
    with pytest.raises(ValueError, match="`difference_probability` can be a number"):
        grouped_gaussian_graphical(
            frame(), group="site", difference_probability=pm.Normal.dist(0, 1)
        )


@pytest.mark.chain
@pytest.mark.parametrize("differences", ["contrasts", "indicators"])
def test_learned_probabilities(differences):
    betas = {"edge_probability": pm.Beta.dist(2, 2), "difference_probability": pm.Beta.dist(1, 3)}
    options = {"required": [("mood", "worry")], "differences": differences}
    with grouped_gaussian_graphical(frame(), group="site", **betas, **options):
        idata = pm.sample(200, tune=30, random_seed=1, **QUIET)
    posterior, constant = idata["posterior"], idata["constant_data"]
    for name in betas:
        assert 0.05 < posterior[name].mean() < 0.95 and posterior[name].std() > 0.05
    shapes = {"edge_beta": (2, 2), "difference_beta": (1, 3)}
    nominal = np.full((4, 4), 0.5)
    nominal[0, 2] = nominal[2, 0] = 1.0
    scales = {} if differences == "contrasts" else {"equal_scale": None, "difference_scale": None}
    edge, difference = implied_relation_probabilities(2, 4, nominal, **shapes, **scales)
    np.testing.assert_allclose(constant["edge_prior"], edge)
    np.testing.assert_allclose(constant["difference_prior"], difference)
    assert edge[1] == 1 and 0.05 < edge[0] < 0.5
    table = bs.difference_table(idata)
    first = table.iloc[0]
    pair = f"{first['source']} -- {first['target']}"
    share = posterior["difference"].sel(pair=pair).mean().item()
    # the average of conditional probabilities, and the share of 400 draws
    assert first["probability"] == pytest.approx(share, abs=0.1)


# Calibration: five columns, two groups of unequal sizes, missing values.
P, SIZES = 5, (12, 18)
GROUP = np.repeat([0, 1], SIZES)
SETTINGS = {"edge": 0.3, "difference": 0.4, "spike": 0.1, "slab": 0.8, "small": 0.1, "large": 0.6}
CONTRASTS, INDICATORS = GroupPrior(2, **SETTINGS), IndicatorPrior(2, **SETTINGS)
PAIRS = np.triu_indices(P, 1)
MISSING = np.zeros((30, P), bool)
MISSING[0, 1] = MISSING[3, 2] = MISSING[23, 4] = MISSING[23, 0] = True


def build(prior, rows):
    own = {"equal_scale": prior.small, "difference_scale": prior.large}
    if prior is INDICATORS:
        own = {"differences": "indicators"}
    return grouped_gaussian_graphical(
        rows,
        group=GROUP,
        edge_probability=prior.edge,
        difference_probability=prior.difference,
        spike_scale=prior.spike,
        slab_scale=prior.slab,
        standardize=False,
        **own,
    )


def quantities(K, relation, mean, imputed):
    u = K[..., PAIRS[0], PAIRS[1]]
    scale = np.sqrt(K[..., PAIRS[0], PAIRS[0]] * K[..., PAIRS[1], PAIRS[1]])
    weight = -u / scale
    return {
        "weight": weight[..., :3],
        "gap": (weight[..., 0, :] - weight[..., 1, :])[..., :4],
        "log_det": np.linalg.slogdet(K)[1],
        "edges": (relation > 0).sum(axis=-1),
        "differences": (relation > 1).sum(axis=-1),
        "relation": relation[..., :3],
        "mean": mean[..., 0],
        "imputed": imputed,
    }


class Prior:
    """Draws from the prior by plain rejection, so that it is not the package's own."""

    def __init__(self, prior):
        self.prior, self.pool = prior, []

    def __call__(self, rng):
        if not self.pool:
            self.pool.extend(zip(*groups_prior(rng, 100, P, self.prior), strict=True))
        K, relation = self.pool.pop()
        mean = rng.normal(size=(2, P))
        rows = [rng.multivariate_normal(m, np.linalg.inv(k), size=n) for m, k, n in zip(mean, K, SIZES, strict=True)]  # fmt: skip
        rows = np.vstack(rows)
        truth = quantities(K, relation, mean, rows[MISSING])
        rows[MISSING] = np.nan
        return truth, rows


def fitter(prior, tune=50, draws=200):
    """The step alone, on the very model that users get (built anew: its table is a constant)."""

    def fit(rows, rng):
        model = build(prior, rows)
        with model:
            step = GroupedPrecisionGibbs(model.free_RVs)
        step.setup_chain(rng, tune, draws)
        point, kept = model.initial_point(int(rng.integers(2**31))), []
        for t in range(tune + draws):
            point, _ = step.step(point)
            if t >= tune:
                kept.append(point)
        vectors = [q["precision_cholesky-cov__"] for q in kept]
        K = np.array([[unpack_cholesky(v, P)[0] for v in both] for both in vectors])
        if prior is INDICATORS:
            count = np.array([q["group_edge"].sum(axis=0) for q in kept])
            relation = np.select([count == 0, count == 2], [0, 1], 2)
        else:
            relation = np.array([q["relation"] for q in kept])
        return quantities(
            K, relation, *(np.array([q[v] for q in kept]) for v in ("mean", "x_missing"))
        )

    return fit


@pytest.mark.calibration
@pytest.mark.filterwarnings("ignore::bayesstruct.TableWarning")
@pytest.mark.parametrize("prior", [CONTRASTS, INDICATORS])
def test_the_model_is_calibrated(prior, full):
    assert_calibrated(Prior(prior), fitter(prior), simulations=500 if full else 10, seed=1)
