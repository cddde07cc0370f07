"""The model of series that share behaviours, from table to reading."""

import itertools

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import bayesstruct as bs

from bayesstruct.data import TableError
from bayesstruct.models.markov_transitions import markov_transitions
from bayesstruct.series.steps import SwitchingSeriesMCMC
from bayesstruct.simulate import markov_transitions as simulate


def test_a_chain_with_too_many_behaviours_stops_with_the_remedy():
    made = simulate(60, 3, random_seed=1)
    with markov_transitions(made.data, series="series", max_features=1, alpha=1.0) as model:
        step = SwitchingSeriesMCMC(model.free_RVs, rng=np.random.default_rng(6))
        step.setup_chain(np.random.default_rng(6), 0, 1)
        point = model.initial_point()
        with pytest.raises(ValueError, match="max_features"):
            for _ in range(50):
                point, _ = step.step(point)


@pytest.mark.parametrize(("n", "most"), [(3, None), (80, 20), (15, 36)])
def test_by_default_there_is_room_for_what_the_prior_may_draw(n, most):
    x = np.random.default_rng(0).normal(size=2 * n)
    table = pd.DataFrame({"who": np.repeat(np.arange(n), 2), "x": x})
    columns = len(markov_transitions(table, series="who").coords["latent"])
    if most is None:
        # Given alpha the number is Poisson with mean alpha H; with alpha ~ Gamma(1, 1) it is geometric.
        share = (1 + 1 / 2 + 1 / 3) / (2 + 1 / 2 + 1 / 3)
        assert share ** (columns + 1) <= 1e-8 < share**columns
    else:  # a draw holds the transitions of each series
        assert columns == most
    assert len(markov_transitions(table, series="who", max_features=7).coords["latent"]) == 7


@pytest.mark.chain
@pytest.mark.compiled
def test_behaviours_are_found_again():
    made = simulate(100, 4, random_seed=3)
    data = made.data.copy()
    data.loc[5, "x0"] = np.nan
    data.loc[[20, 21], ["x0", "x1"]] = np.nan
    with markov_transitions(data, series="series", alpha=1.0):
        idata = pm.sample(
            150,
            tune=100,
            chains=2,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(
            idata, extend_inferencedata=True, random_seed=8, progressbar=False
        )
    assert bs.feature_count_probabilities(idata).idxmax() == 3
    membership = bs.feature_membership(idata)
    assert list(membership.index) == list("abcd")
    truth, found = made.feature.to_numpy() > 0, membership.to_numpy()[:, :3] > 0.5
    assert any((found[:, list(o)] == truth).all() for o in itertools.permutations(range(3)))
    assert idata["log_likelihood"]["x"].shape == (2, 150, 400)
    table = bs.state_probabilities(idata, draws=60)
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    assert table["other"].mean() < 0.05
    assert table.loc["b"].shape == (100, 4)
    # The best matching of names; the means are about three standard deviations of the noise apart.
    states = pd.crosstab(table.idxmax(axis=1).to_numpy(), made.state.to_numpy()).to_numpy()
    assert sum(sorted(states.max(axis=1))[-3:]) > 0.9 * 400
    chain_, draw = table.attrs["reference"]
    means = idata["posterior"]["emission_mean"].values[chain_, draw, table.attrs["latent"]]
    here = table.idxmax(axis=1).to_numpy() == 1
    x = idata["observed_data"]["x"].values[here]
    assert abs(np.nanmean(x, axis=0) - means[0]).max() < 0.25
    with pytest.raises(ValueError, match="affinity"):
        bs.state_probabilities(idata, affinity=0.0)
    del idata["constant_data"]["rows"]
    with pytest.raises(ValueError, match="does not record 'rows'"):
        bs.state_probabilities(idata)
    replicated = idata["posterior_predictive"]["x"].to_numpy()
    assert abs(replicated.mean(axis=(0, 1, 2))).max() < 0.3
    assert abs(replicated.std(axis=(0, 1, 2)) - 1.0).max() < 0.2


def test_the_model_refuses_bad_input():
    made = simulate(20, 3, random_seed=3).data
    for data, series, words in [
        (made, None, "`series`"),
        (made, "subject", "unknown column 'subject'"),
        (made.assign(x0="word"), "series", "'x0'"),
        (made.assign(x1=2.0), "series", "'x1' is constant"),
        (made.assign(x1=np.inf), "series", "infinite"),
        (made.assign(series=[None] + ["a"] * 59), "series", "row 0"),
        (
            made.assign(series=[1, "1", 1] * 20),
            "series",
            r"1 \(int\) and '1' \(str\) have the same",
        ),
        ({1: made[["x0"]], "1": made[["x0"]]}, None, "the same text"),
        (made.to_numpy(), "series", "pass a DataFrame"),
        ([], None, "no series"),
        ({"a": made[["x0", "x1"]], "b": made[["x1", "x0"]]}, None, "series 'b' has the columns"),
        ({"a": made[["x0"]], "b": made[["x0"]].iloc[:0]}, None, "series 'b' has no row"),
        (pd.concat([made, made["x0"]], axis=1), "series", "more than once"),
    ]:
        with pytest.raises(TableError, match=words):
            markov_transitions(data, series=series)
    for options, words in [
        ({"alpha": 0}, "`alpha`"),
        ({"alpha": "1"}, "`alpha`"),
        ({"stickiness": -1.0}, "`stickiness`"),
        ({"stickiness": True}, "`stickiness`"),
        ({"transition_concentration": 0}, "`transition_concentration`"),
        ({"mean_scale": np.nan}, "`mean_scale`"),
        ({"max_features": 2.5}, "`max_features`"),
        ({"discount": 1.0}, "`discount`"),
    ]:
        with pytest.raises((ValueError, TypeError), match=words):
            markov_transitions(made, series="series", **options)
