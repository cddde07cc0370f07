"""How well columns are predicted, against closed forms, enumeration and simulated truth."""

import itertools

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from scipy import stats

import bayesstruct as bs


def prior_draws(model, n=3):
    """Draws from the prior as if they were a posterior: parameters of all kinds."""
    with model:
        idata = pm.sample_prior_predictive(n, random_seed=1)
    groups = {name: idata[name].to_dataset() for name in ("observed_data", "constant_data")}
    return xr.DataTree.from_dict({"posterior": idata["prior"].to_dataset(), **groups})


def numbers(n=40):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((n, 3)) @ np.array([[1, 0.8, 0], [0, 1, -0.7], [0, 0, 1]])
    return pd.DataFrame(x * [1, 10, 100] + 5, columns=list("abc"))


def states(kinds=3, n=60, gaps=False):
    rng = np.random.default_rng(4)
    x = rng.integers(0, kinds, size=(n, 3))
    x[:, 1] = np.where(rng.random(n) < 0.6, x[:, 0], x[:, 1])
    x[:kinds] = np.arange(kinds)[:, None]
    frame = pd.DataFrame(x, columns=list("abc")).astype(object)
    if gaps:
        frame.loc[10, "b"] = frame.loc[11, "a"] = None
    return frame


def only(table, measure, given="all others"):
    return table[(table["measure"] == measure) & (table["given"] == given)].set_index("node")


def given_others(covariance, j):
    """Share of the variance of a normal column that its regression on all others explains."""
    rest = np.delete(np.arange(len(covariance)), j)
    cross = covariance[j, rest]
    return cross @ np.linalg.solve(covariance[np.ix_(rest, rest)], cross) / covariance[j, j]


def test_of_a_known_precision_matrix():
    idata = prior_draws(bs.models.gaussian_graphical(numbers()), n=4)
    known = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]])
    idata["posterior"]["precision"].values[:] = known
    table = only(bs.predictability(idata), "R2")
    # Autoregression with inverse diag(K^-1) = (3/4, 1, 3/4): 1 - 1 / (2 * 3/4) and 1 - 1 / 2
    np.testing.assert_allclose(table["value"], [1 / 3, 1 / 2, 1 / 3], rtol=1e-12)
    np.testing.assert_allclose(table["hdi_high"] - table["hdi_low"], 0, atol=1e-12)
    assert (table["gain"] == table["value"]).all()


@pytest.mark.parametrize("model", [bs.models.gaussian_graphical, bs.models.bayesian_network])
def test_of_normal_columns_is_that_of_their_regressions(model):
    idata = prior_draws(model(numbers()))
    covariance = bs.covariance(idata).values[0]
    expected = [np.mean([given_others(own, j) for own in covariance]) for j in range(3)]
    table = bs.predictability(idata)
    np.testing.assert_allclose(only(table, "R2")["value"], expected, rtol=1e-9)


def test_of_parents_in_a_network_of_numbers():
    idata = prior_draws(bs.models.bayesian_network(numbers()))
    covariance, dags = bs.covariance(idata).values[0], idata["posterior"]["dag"].values[0]
    found = only(bs.predictability(idata), "R2", "parents")["value"]
    for j in range(3):
        shares = []
        for own, dag in zip(covariance, dags, strict=True):
            at = np.flatnonzero(dag[:, j])
            cross = own[j, at]
            shares.append(cross @ np.linalg.solve(own[np.ix_(at, at)], cross) / own[j, j])
        assert found.iloc[j] == pytest.approx(np.mean(shares), rel=1e-9, abs=1e-12)


def test_states_are_several_columns_of_one():
    table = numbers()
    table["d"] = pd.Categorical(["x", "y", "z", "x"] * 10)
    idata = prior_draws(bs.models.gaussian_graphical(table, marginals="mixed"))
    names = [str(name) for name in idata["constant_data"]["node"].values]
    own, rest = [i for i, n in enumerate(names) if n not in "abc"], [0, 1, 2]
    assert len(own) == 2
    expected = []
    for k in idata["posterior"]["precision"].values[0]:
        s = np.linalg.inv(k)
        fitted = s[np.ix_(own, rest)] @ np.linalg.solve(s[np.ix_(rest, rest)], s[np.ix_(rest, own)])
        expected.append(np.trace(fitted) / np.trace(s[np.ix_(own, own)]))
    found = bs.predictability(idata)
    assert found["node"].tolist() == list("abcd")
    assert found["value"].iloc[3] == pytest.approx(np.mean(expected), rel=1e-9)
    assert "latent" in " ".join(found.attrs["notes"])


def enumerated(log_weights, x, levels):
    """Probabilities of the states of each column given the others, from those of all joint states."""
    every = np.array(list(itertools.product(*map(range, levels))))
    logs = log_weights(every)
    weight = np.exp(logs - logs.max())
    out = np.zeros((*x.shape, max(levels)))
    for i, row in enumerate(x):
        for j in range(x.shape[1]):
            rest = np.delete(np.arange(x.shape[1]), j)
            same = (every[:, rest] == row[rest]).all(axis=1)
            own = np.bincount(every[same, j], weight[same], minlength=max(levels))
            out[i, j] = own / own.sum()
    return out


def measures(p, x, known):
    """Accuracy, explained deviance and R2 of one column from the probabilities of its states."""
    p, x = p[known], x[known]
    shares = np.bincount(x) / len(x)
    entropy = -sum(s * np.log(s) for s in shares if s > 0)
    mean = p @ np.arange(p.shape[1])
    accuracy = (p.argmax(axis=1) == x).mean()
    deviance = 1 + np.log(p[np.arange(len(x)), x]).mean() / entropy
    return accuracy, deviance, 1 - ((x - mean) ** 2).mean() / x.var(), shares.max()


def completed(idata, d):
    table = idata["observed_data"]["x"].values.astype(float)
    missing = np.isnan(table)
    if missing.any():
        table[missing] = idata["posterior"]["x_missing"].values[0, d]
    return table.astype(int), missing


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("kind", ["binary", "ordinal", "ising"])
def test_states_of_a_field_by_enumeration(kind, gaps):
    if kind == "binary":
        model = bs.models.ising(states(2, gaps=gaps))
    else:
        model = bs.models.pairwise_mrf(states(gaps=gaps), potentials=kind)
    idata = prior_draws(model)
    levels = idata["constant_data"]["states"].values
    draws = idata["posterior"]
    pairs = [(0, 1), (0, 2), (1, 2)]
    weights = draws["potential" if "potential" in draws else "weight"].values[0]
    biases = draws["bias"].values[0]
    found = bs.predictability(idata)
    expected = np.zeros((3, 3, 4))
    for d in range(3):
        b = biases[d].reshape(3, -1)

        def log_weight(rows, b=b, w=weights[d].ravel()):
            # A bias for each state from 1; products of positions, or a weight of equal states
            own = [np.r_[0, b[j]][rows[:, j]] for j in range(3)]
            same = kind == "ising"
            both = [rows[:, i] == rows[:, j] if same else rows[:, i] * rows[:, j] for i, j in pairs]
            return sum(own) + w @ np.array(both)

        x, missing = completed(idata, d)
        p = enumerated(log_weight, x, levels)
        for j in range(3):
            expected[d, j] = measures(p[:, j], x[:, j], ~missing[:, j])
    known = ["accuracy", "deviance"] if kind == "ising" else ["accuracy", "deviance", "R2"]
    assert found["measure"].tolist() == 3 * known
    for k, measure in enumerate(known):
        np.testing.assert_allclose(
            only(found, measure)["value"], expected[..., k].mean(axis=0), rtol=1e-8, atol=1e-10
        )
    accuracy = only(found, "accuracy")
    np.testing.assert_allclose(accuracy["marginal"], expected[0, :, 3])
    np.testing.assert_allclose(
        accuracy["gain"],
        (accuracy["value"] - accuracy["marginal"]) / (1 - accuracy["marginal"]),
    )


def test_states_of_a_network_by_enumeration():
    frame = states(2)
    was_set = pd.DataFrame(False, frame.index, frame.columns)
    was_set.loc[5:9, "c"] = True
    model = bs.models.bayesian_network(frame, score="bdeu", interventions=was_set)
    idata = prior_draws(model)
    found = bs.predictability(idata)
    free = ~was_set.to_numpy()
    expected = np.zeros((2, 3, 3, 4))
    for d in range(3):
        x, _ = completed(idata, d)
        dag = idata["posterior"]["dag"].values[0, d] != 0
        tables = idata["posterior"]["table"].values[0, d]

        def own(rows, j, dag=dag, tables=tables):
            cell = np.zeros(len(rows), int)
            for parent in np.flatnonzero(dag[:, j])[::-1]:
                cell = 2 * cell + rows[:, parent]
            return tables[j].reshape(-1, 2)[cell]

        for j in range(3):
            acting = [k for k in range(3) if k == j or dag[j, k]]
            p = np.ones((len(x), 2))
            for s in range(2):
                other = x.copy()
                other[:, j] = s
                for k in acting:
                    factor = own(other, k)[np.arange(len(x)), other[:, k]]
                    p[:, s] *= np.where(free[:, k] | (k == j), factor, 1.0)
            p /= p.sum(axis=1, keepdims=True)
            expected[0, d, j] = measures(p, x[:, j], free[:, j])
            expected[1, d, j] = measures(own(x, j), x[:, j], free[:, j])
    for g, given in enumerate(["all others", "parents"]):
        for k, measure in enumerate(["accuracy", "deviance", "R2"]):
            np.testing.assert_allclose(
                only(found, measure, given)["value"], expected[g, ..., k].mean(axis=0), rtol=1e-8
            )


def test_of_neighbourhood_regressions():
    idata = prior_draws(bs.models.gaussian_neighbourhoods(numbers()))
    z, draws = idata["observed_data"]["x"].values, idata["posterior"]
    shares = []
    for d in range(3):
        fitted = z @ draws["coefficients"].values[0, d].T
        spread = fitted.var(axis=0)
        shares.append(spread / (spread + draws["noise_variance"].values[0, d]))
    found = bs.predictability(idata)
    np.testing.assert_allclose(found["value"], np.mean(shares, axis=0), rtol=1e-10)

    idata = prior_draws(bs.models.ising_neighbourhoods(states(2)))
    x, draws = idata["observed_data"]["x"].values, idata["posterior"]
    expected = []
    for d in range(3):
        z = x - x.mean(axis=0)
        odds = draws["intercept"].values[0, d] + z @ draws["coefficients"].values[0, d].T
        one = 1 / (1 + np.exp(-odds))
        p = np.stack([1 - one, one], axis=-1)
        expected.append([measures(p[:, j], x[:, j].astype(int), slice(None)) for j in range(3)])
    found = bs.predictability(idata)
    for k, measure in enumerate(["accuracy", "deviance", "R2"]):
        np.testing.assert_allclose(
            only(found, measure)["value"], np.mean(expected, axis=0)[:, k], rtol=1e-8
        )


def test_groups_are_read_one_after_another():
    frame = numbers().assign(g=["u", "v"] * 20)
    idata = prior_draws(bs.models.grouped_gaussian_graphical(frame, group="g"))
    found = bs.predictability(idata)
    assert found["group"].tolist() == ["u"] * 3 + ["v"] * 3
    own = bs.predictability(bs.one_group(idata, "v"))
    pd.testing.assert_frame_equal(
        found[found["group"] == "v"].drop(columns="group").reset_index(drop=True), own
    )


def test_a_saved_result_needs_no_model(tmp_path):
    idata = prior_draws(bs.models.ising(states(2, gaps=True)))
    idata.to_netcdf(tmp_path / "saved.nc")
    again = xr.open_datatree(tmp_path / "saved.nc", decode_timedelta=False)
    pd.testing.assert_frame_equal(bs.predictability(idata), bs.predictability(again))
    again.close()


def test_refusals_name_the_remedy():
    with bs.models.gaussian_graphical(numbers(), prior="pseudo_likelihood"):
        prior = pm.sample_prior_predictive(3, var_names=["edge"], random_seed=1)
    own = {"posterior": prior["prior"].to_dataset()}
    idata = xr.DataTree.from_dict(own | {"constant_data": prior["constant_data"].to_dataset()})
    with pytest.raises(ValueError, match=r"bs\.precision_draws"):
        bs.predictability(idata)
    with pytest.raises(TypeError, match="DataTree"):
        bs.predictability(idata["posterior"].to_dataset())
    field = prior_draws(bs.models.ising(states(2, gaps=True)))
    whole = field.copy()
    whole["posterior"] = xr.DataTree(field["posterior"].to_dataset().drop_vars("x_missing"))
    with pytest.raises(ValueError, match="x_missing"):
        bs.predictability(whole)
    with pytest.raises(ValueError, match="draws"):
        bs.predictability(field, draws=0)


def with_precision(idata, draws):
    """The same result with other draws of its precision matrix, (draws, p, p)."""
    posterior = idata["posterior"].to_dataset()
    posterior = posterior.isel(draw=np.zeros(len(draws), int)).assign_coords(draw=range(len(draws)))
    posterior["precision"] = (("chain", "draw", "node", "node_"), draws[None])
    return xr.DataTree.from_dict(
        {"posterior": posterior, "constant_data": idata["constant_data"].to_dataset()}
    )


def exact_posteriors(n, tables):
    """True precision matrices from a Wishart prior, and results with exact draws of their posteriors."""
    like = prior_draws(bs.models.gaussian_graphical(numbers()), n=1)
    rng = np.random.default_rng(7)
    freedom, p = 5, 3
    for _ in range(tables):
        truth = stats.wishart(freedom, np.eye(p)).rvs(random_state=rng)
        rows = rng.multivariate_normal(np.zeros(p), np.linalg.inv(truth), size=n)
        after = stats.wishart(freedom + n, np.linalg.inv(np.eye(p) + rows.T @ rows))
        yield truth, with_precision(like, after.rvs(400, random_state=rng))


def sampled_posteriors(n, tables):
    """True precision matrices from the prior of a model, and its samples of their posteriors."""
    zeros = numbers(n)
    options = {"prior": "g_wishart", "standardize": False}
    with bs.models.gaussian_graphical(zeros, **options):
        drawn = pm.sample_prior_predictive(tables, random_seed=1)
    for k in range(tables):
        table = pd.DataFrame(drawn["prior_predictive"]["x"].values[0, k], columns=list("abc"))
        with bs.models.gaussian_graphical(table, **options):
            idata = pm.sample(
                500,
                tune=300,
                chains=1,
                random_seed=k,
                progressbar=False,
                compute_convergence_checks=False,
            )
        yield drawn["prior"]["precision"].values[0, k], idata


@pytest.mark.calibration
def test_intervals_cover_the_truth_as_often_as_they_say(full):
    tables = 100 if full else 60
    results = sampled_posteriors(40, tables) if full else exact_posteriors(40, tables)
    inside = []
    for truth, idata in results:
        r2 = 1 - 1 / (np.diag(truth) * np.diag(np.linalg.inv(truth)))
        found = bs.predictability(idata, ci_prob=0.8)
        # A column without edges has an R2 of exactly 0
        low, high = found["hdi_low"].to_numpy() - 1e-12, found["hdi_high"].to_numpy() + 1e-12
        inside.append((low <= r2) & (r2 <= high))
    # Three shares of one table are dependent: the standard error is at most that of 60 tables, 0.053.
    # Shortest intervals of 400 draws are a little too short.
    assert np.mean(inside) == pytest.approx(0.79, abs=0.12)
