"""The Bayes factors that a table can reach, against integration, exact posteriors and sampled tables."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from scipy import stats
from scipy.special import logsumexp

import bayesstruct as bs

from bayesstruct.core.evidence_limits import log_wishart_factor
from bayesstruct.precision.exact.pairs import log_laplace_odds, log_spike_slab_factor


def prior_draws(model, n=40):
    """Draws from the prior as if they were a posterior."""
    with model:
        idata = pm.sample_prior_predictive(n, random_seed=1)
    groups = {name: idata[name].to_dataset() for name in ("observed_data", "constant_data")}
    return xr.DataTree.from_dict({"posterior": idata["prior"].to_dataset(), **groups})


def without_dependence(n, p, seed=1):
    """Table whose first two columns have a sample partial correlation of exactly zero."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p)) @ (np.eye(p) + 0.5 * np.eye(p, k=1))
    x -= x.mean(axis=0)
    rest = x[:, 2:]
    one, other = (y - rest @ np.linalg.lstsq(rest, y, rcond=None)[0] for y in x[:, :2].T)
    x[:, 0] -= other * (one @ other) / (other @ other)
    assert abs(np.linalg.inv(np.cov(x.T))[0, 1]) < 1e-9
    return pd.DataFrame(x, columns=list("abcdef")[:p])


def integrated(r, rows, spike, slab, rate):
    """Ratio of the marginal likelihoods of slab and spike by sums over the three elements of the matrix."""
    k = np.exp(np.linspace(-4, 3, 120))
    first, other = np.meshgrid(k, k, indexing="ij")
    w = np.concatenate([-np.geomspace(1e-4, 6, 150)[::-1], [0.0], np.geomspace(1e-4, 6, 150)])
    logs = np.empty(len(w))
    for i, own in enumerate(w):
        det = first * other - own**2
        with np.errstate(invalid="ignore", divide="ignore"):
            log = 0.5 * rows * np.log(det) - 0.5 * rows * (first + other + 2 * r * own)
        log = log - rate * (first + other) + np.log(first * other)  # the grid is one of logarithms
        logs[i] = logsumexp(np.where(det > 0, log, -np.inf))
    likelihood = np.exp(logs - logs.max())
    parts = [np.trapezoid(likelihood * stats.norm.pdf(w, 0, v), w) for v in (slab, spike)]
    return np.log(parts[0] / parts[1])


@pytest.mark.parametrize("r", [0.0, 0.35])
def test_spike_and_slab_of_two_columns_by_integration(r):
    size = np.array(0.5 * 30 + 0.5)
    found = log_spike_slab_factor(r, 30, size, spike_scale=0.05, slab_scale=0.8, rate=0.5)
    # The sums have some 20 points on each side of the mode of a diagonal element
    assert found == pytest.approx(integrated(r, 30, 0.05, 0.8, 0.5), abs=0.01)


@pytest.mark.parametrize("r", [0.0, 0.25])
def test_laplace_prior_of_two_columns_by_integration(r):
    rows, rate, own, bound = 30, 1.5, 0.75, 0.1
    rng = np.random.default_rng(1)
    # Weighted draws: a Wishart posterior without prior, by the prior and its determinant
    scatter = rows * np.array([[1.0, r], [r, 1.0]])
    k = stats.wishart(rows + 3, np.linalg.inv(scatter)).rvs(400_000, random_state=rng)
    weight = np.exp(-rate * np.abs(k[:, 0, 1]) - own * (k[:, 0, 0] + k[:, 1, 1]))
    beyond = np.abs(k[:, 0, 1]) > bound * np.sqrt(k[:, 0, 0] * k[:, 1, 1])
    expected = np.log(weight[beyond].sum() / weight[~beyond].sum())
    options = {"rate": rate, "diagonal_rate": own, "negligible": bound}
    found = log_laplace_odds(r, rows, np.array(0.5 * rows + own), **options)
    # Standard error from 400,000 draws with weights: 0.006
    assert found == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (log_spike_slab_factor, {"spike_scale": 0.05, "slab_scale": 0.8, "rate": 0.5}),
        (log_laplace_odds, {"rate": 1.5, "diagonal_rate": 0.75, "negligible": 0.1}),
    ],
)
def test_tables_of_correlations_and_sizes_have_the_values_of_their_entries(function, options):
    r, size = np.array([[0.0], [-0.2], [0.6]]), np.array([12.0, 40.0, 12.0])
    table = function(r, 30, size, **options)
    assert table.shape == (3, 3)
    for i, j in np.ndindex(table.shape):
        assert table[i, j] == pytest.approx(function(r[i, 0], 30, size[j], **options), abs=1e-6)
    # A stronger correlation is more evidence for an edge
    assert (table[2] > table[0]).all()


@pytest.mark.parametrize("r", [0.0, 0.3])
def test_g_wishart_of_two_columns_is_exact(r):
    cov = pd.DataFrame([[1.0, r], [r, 1.0]], index=list("ab"), columns=list("ab"))
    exact = bs.exact.gaussian_graphs(cov=cov, n=50, degrees_of_freedom=3.0)
    probability = exact.edge_probabilities.to_numpy()[0, 1]
    found = log_wishart_factor(r, 49, *np.full((2, 1), 50.0), np.array([3.0]))[0]
    assert found == pytest.approx(np.log(probability / (1 - probability)), abs=1e-9)


def test_g_wishart_of_a_pair_with_a_common_neighbour_is_exact():
    n = 40
    after = 50.0 * np.linalg.inv([[2.0, 0.0, 0.7], [0.0, 1.5, -0.6], [0.7, -0.6, 1.8]])
    names = list("abc")
    cov = pd.DataFrame((after - np.eye(3)) / (n - 1), index=names, columns=names)
    joined = [("a", "c"), ("b", "c")]
    exact = bs.exact.gaussian_graphs(cov=cov, n=n, required=joined, standardize=False)
    probability = exact.edge_probabilities.loc["a", "b"]
    ends = 1.0 / np.diag(np.linalg.inv(after))[:2]
    found = log_wishart_factor(0.0, n - 1, ends[:1], ends[1:], np.array([3.0 + 1]))[0]
    assert found == pytest.approx(np.log(probability / (1 - probability)), abs=1e-9)


@pytest.mark.chain
@pytest.mark.parametrize(
    "prior", ["spike_slab", "g_wishart", pytest.param("laplace", marks=pytest.mark.slow)]
)
def test_a_sampled_table_without_a_dependence_has_the_smallest_bayes_factor(prior):
    with bs.models.gaussian_graphical(without_dependence(60, 3), prior=prior, standardize=True):
        idata = pm.sample(
            3000,
            tune=300,
            chains=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    limit = bs.evidence_limits(idata)["smallest"].iloc[0]
    edges = bs.edge_table(idata).set_index(["source", "target"]).loc[("a", "b")]
    # Standard error of the logarithm of the odds, from some 3,000 independent draws: 0.05
    assert np.log(edges["bayes_factor"] / limit) == pytest.approx(0.0, abs=0.2)


def known_precision(prior="spike_slab", n=50, k=1.0, **options):
    """Result with a diagonal precision matrix in all draws."""
    table = without_dependence(n, 4)
    idata = prior_draws(bs.models.gaussian_graphical(table, prior=prior, **options))
    idata["posterior"]["precision"].values[:] = k * np.eye(4)
    return idata


@pytest.mark.parametrize("strength", [0.0, 0.5, 0.8])
def test_known_zeros_beside_a_pair_count(strength):
    # a - d and b - c are strong, and nothing else: b tells about a what c does not
    n, precision = 178, np.eye(4)
    for i, j in ((0, 3), (1, 2)):
        precision[i, j] = precision[j, i] = -strength
    precision *= 1.0 / (1.0 - strength**2)
    table = pd.DataFrame(np.linalg.inv(precision), index=list("abcd"), columns=list("abcd"))
    joined = [("a", "d"), ("b", "c")]
    forbidden = [("a", "c"), ("b", "d"), ("c", "d")]
    known = {"prior": "g_wishart", "required": joined, "forbidden": forbidden}
    idata = prior_draws(bs.models.gaussian_graphical(cov=table, n=n, **known))
    idata["posterior"]["precision"].values[:] = precision
    exact = bs.exact.gaussian_graphs(cov=table, n=n, required=joined, forbidden=forbidden)
    odds = exact.edge_probabilities.loc["a", "b"]
    limits = bs.evidence_limits(idata).set_index(["source", "target"])
    found = limits.loc[("a", "b"), "smallest"]
    assert np.log(found * (1 - odds) / odds) == pytest.approx(0.0, abs=0.1)


def test_the_table_says_if_no_edge_can_be_excluded():
    few, many = known_precision(n=30), known_precision(n=3000)
    notes = bs.edge_table(few).attrs["notes"]
    smallest = bs.evidence_limits(few)["smallest"].min()
    assert any(
        "With 30 rows" in n and f"{smallest:.2g}: no edge can be excluded" in n for n in notes
    )
    assert not any("no edge can" in n for n in bs.edge_table(many).attrs["notes"])
    limits = bs.evidence_limits(many)
    assert limits["can_be_excluded"].all()
    assert not bs.evidence_limits(few)["can_be_excluded"].any()
    # The least partial correlation is the one at which the Bayes factor is 10 times that at zero over the smallest
    r = bs.evidence_limits(few)["included_from"].iloc[0]
    scales = {"spike_scale": 0.02, "slab_scale": 1.0, "rate": 0.5}
    size = 0.5 * 29 + 1.0  # of a posterior mean of 1
    gain = np.diff(log_spike_slab_factor(np.array([0.0, r]), 29, size, **scales))[0]
    assert gain == pytest.approx(np.log(10 / smallest), rel=1e-3)
    assert bs.evidence_limits(few, threshold=2)["can_be_excluded"].all()


def test_a_larger_precision_makes_the_likelihood_of_an_element_wider():
    near, far = (bs.evidence_limits(known_precision(k=k))["smallest"] for k in (1.0, 4.0))
    assert (near < far).all()


@pytest.mark.parametrize("prior", ["spike_slab", "g_wishart"])
def test_fixed_edges_have_no_limit(prior):
    idata = known_precision(prior, required=[("a", "b")], forbidden=[("c", "d")])
    fixed = bs.evidence_limits(idata)
    assert np.isnan(fixed[["smallest", "included_from"]].iloc[[0, 5]]).all(axis=None)
    assert fixed["smallest"].iloc[1:5].notna().all()
    assert not fixed["can_be_excluded"].iloc[[0, 5]].any()


@pytest.mark.usefixtures("python_mode")
@pytest.mark.parametrize("options", [{}, {"scale": 0.4, "equivalent_sample_size": 3.0}])
def test_two_columns_of_structural_equations_with_normal_noise_are_exact(options):
    table = without_dependence(50, 2)

    def log_odds(own):
        present = bs.exact.linear_sem(own, noise="gaussian", **options).arc_probabilities
        present = present.to_numpy().sum()
        return np.log(present / (1 - present)) - np.log(2)

    limits = bs.evidence_limits(prior_draws(bs.models.linear_sem(table, **options), 3))
    assert np.log(limits["smallest"]).item() == pytest.approx(log_odds(table), abs=1e-6)
    r = limits["included_from"].item()
    z = ((table - table.mean()) / table.std()).to_numpy()
    strong = pd.DataFrame({"a": z[:, 0], "b": r * z[:, 0] + np.sqrt(1 - r**2) * z[:, 1]})
    assert log_odds(strong) == pytest.approx(np.log(10), abs=1e-5)
    if not options:
        network = bs.evidence_limits(prior_draws(bs.models.bayesian_network(table), 3))
        pd.testing.assert_frame_equal(network, limits)


@pytest.mark.usefixtures("python_mode")
@pytest.mark.parametrize("model", ["bayesian_network", "linear_sem"])
def test_rows_with_a_gap_or_a_child_that_was_set_tell_nothing_of_a_pair(model):
    table = without_dependence(40, 3)
    whole = bs.evidence_limits(prior_draws(getattr(bs.models, model)(table), 3))
    gaps = table.copy()
    gaps.loc[:19, "c"] = np.nan
    found = bs.evidence_limits(prior_draws(getattr(bs.models, model)(gaps), 3))
    half = bs.evidence_limits(prior_draws(getattr(bs.models, model)(table[20:]), 3))
    assert found.attrs["rows"] == 40
    np.testing.assert_allclose(found["smallest"][0], whole["smallest"][0])
    np.testing.assert_allclose(found["smallest"][1:], half["smallest"][1:])
    # c was set in half of the rows: 20 rows tell of a -> c, and 40 of c -> a, which is as probable a priori
    was_set = pd.DataFrame({"c": np.arange(40) < 20})
    found = bs.evidence_limits(
        prior_draws(getattr(bs.models, model)(table, interventions=was_set), 3)
    )
    mean = 0.5 * (whole["smallest"] + half["smallest"])
    np.testing.assert_allclose(found["smallest"][1:], mean[1:], rtol=1e-10)


@pytest.mark.usefixtures("python_mode")
def test_states_count_rows_in_which_both_were_observed():
    table = pd.DataFrame(np.tile([[0, 0], [0, 1], [1, 0], [1, 1]], (10, 1)), columns=list("ab"))
    table = table.assign(c=np.repeat([0, 1], 20)).astype(object)
    gaps = table.copy()
    gaps.loc[:19, "b"] = None
    rows = {
        name: bs.evidence_limits(prior_draws(bs.models.bayesian_network(own, score="bdeu"), 3))
        for name, own in {
            "gaps": gaps,
            "whole": table,
            "half": table.drop(columns="c")[20:],
        }.items()
    }
    smallest = {name: own["smallest"].to_numpy() for name, own in rows.items()}
    np.testing.assert_allclose(smallest["gaps"][0], smallest["half"][0])
    np.testing.assert_allclose(smallest["gaps"][1], smallest["whole"][1])


@pytest.mark.usefixtures("python_mode")
def test_linear_structural_equations_are_refused_with_the_model_that_has_limits():
    x = np.random.default_rng(1).laplace(size=(30, 2))
    with bs.models.linear_sem(x, noise="laplace"):
        idata = pm.sample_prior_predictive(2, random_seed=1)
    idata["posterior"] = idata["prior"]
    with pytest.raises(ValueError, match=r"of other noise.*linear_sem\(table\)"):
        bs.evidence_limits(idata)


def test_what_is_not_known_is_refused():
    states = pd.DataFrame(np.random.default_rng(1).integers(0, 2, (30, 3)), columns=list("abc"))
    neighbours = prior_draws(bs.models.ising_neighbourhoods(states), 3)
    with pytest.raises(ValueError, match="are known for"):
        bs.evidence_limits(neighbours)
    with pytest.raises(TypeError, match="DataTree"):
        bs.evidence_limits(3)
    with pytest.raises(ValueError, match="threshold"):
        bs.evidence_limits(known_precision(), threshold=1)


def balanced(columns=3, repeats=15):
    """Binary columns that are exactly independent in the table."""
    cells = np.indices((2,) * columns).reshape(columns, -1).T
    return pd.DataFrame(np.tile(cells, (repeats, 1)), columns=list("abcd")[:columns])


def test_binary_columns_by_integration():
    table = balanced(2, 30)
    idata = prior_draws(bs.models.ising(table, likelihood="exact", bias_scale=1e3))
    for name in ("bias", "weight"):
        idata["posterior"][name].values[:] = 0.0
    # By sums over the weight and both biases of the exact likelihood, slab over spike
    w, b = np.linspace(-6, 6, 241), np.linspace(-3, 3, 61)
    weight, one, other = np.meshgrid(w, b, b, indexing="ij")
    n = len(table)
    total = np.log(1 + np.exp(one) + np.exp(other) + np.exp(one + other + weight))
    likelihood = n * (0.5 * one + 0.5 * other + 0.25 * weight - total)
    marginal = logsumexp(likelihood, axis=(1, 2))
    marginal = np.exp(marginal - marginal.max())
    expected = np.trapezoid(marginal * stats.norm.pdf(w), w) / marginal[120]
    limits = bs.evidence_limits(idata)
    # Laplace's approximation of the integral over a weight with a standard deviation of 0.37
    assert limits["smallest"].iloc[0] == pytest.approx(expected, rel=0.05)
    assert limits.attrs["rows"] == n


@pytest.mark.chain
@pytest.mark.parametrize("likelihood", ["exact", "pseudo"])
def test_sampled_states_without_a_dependence_have_the_smallest_bayes_factor(likelihood):
    with bs.models.ising(balanced(), likelihood=likelihood):
        idata = pm.sample(
            1500,
            tune=300,
            chains=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    limits, edges = bs.evidence_limits(idata), bs.edge_table(idata)
    # Three pairs, the standard error of whose logarithms is about 0.02
    np.testing.assert_allclose(
        np.log(edges["bayes_factor"] / limits["smallest"].mean()), 0, atol=0.1
    )


def log_odds_of_an_arc(table, **options):
    """Logarithm of the Bayes factor of an arc either way between two columns, from all graphs."""
    exact = bs.exact.dag_posterior(table, **options).arc_probabilities.to_numpy()
    present = exact[0, 1] + exact[1, 0]
    return np.log(present / (1 - present)) - np.log(2)  # three graphs of equal probability


@pytest.mark.parametrize("score", ["bge", "gaussian"])
def test_two_columns_of_numbers_in_a_network_are_exact(score):
    table = without_dependence(50, 2)
    limits = bs.evidence_limits(prior_draws(bs.models.bayesian_network(table, score=score), 3))
    assert np.log(limits["smallest"]).item() == pytest.approx(
        log_odds_of_an_arc(table, score=score), abs=1e-8
    )
    # A table with the least correlation that is included
    r = limits["included_from"].item()
    z = ((table - table.mean()) / table.std()).to_numpy()
    strong = pd.DataFrame({"a": z[:, 0], "b": r * z[:, 0] + np.sqrt(1 - r**2) * z[:, 1]})
    assert log_odds_of_an_arc(strong, score=score) == pytest.approx(np.log(10), abs=1e-5)


@pytest.mark.parametrize("score", ["bdeu", "bde", "multinomial", "logistic"])
def test_two_columns_of_states_in_a_network_are_exact(score):
    cells = np.array([[0, 0], [0, 1], [0, 1], [1, 0], [1, 1], [1, 1]])
    table = pd.DataFrame(np.tile(cells, (8, 1)), columns=list("ab"))
    limits = bs.evidence_limits(prior_draws(bs.models.bayesian_network(table, score=score), 3))
    assert np.log(limits["smallest"]).item() == pytest.approx(
        log_odds_of_an_arc(table, score=score), abs=1e-8
    )
    assert np.isnan(limits["included_from"]).all()


def test_graphs_alone_of_two_columns_are_those_of_a_g_wishart_matrix():
    table = without_dependence(60, 2)
    with bs.models.gaussian_graphical(table, prior="pseudo_likelihood") as model:
        prior = pm.sample_prior_predictive(20, var_names=["edge"], random_seed=1)
    observed = xr.Dataset({"correlation": (("node", "node_"), table.corr().to_numpy())})
    assert "correlation" in model.named_vars
    idata = xr.DataTree.from_dict(
        {
            "posterior": prior["prior"].to_dataset(),
            "constant_data": prior["constant_data"].to_dataset(),
            "observed_data": observed,
        }
    )
    limits = bs.evidence_limits(idata)
    exact = bs.exact.gaussian_graphs(table).edge_probabilities.to_numpy()[0, 1]
    # Two columns: the pseudo-likelihood of a pair is exact
    assert limits["smallest"].item() == pytest.approx(exact / (1 - exact), rel=1e-9)


@pytest.mark.chain
def test_sampled_graphs_alone_have_the_smallest_bayes_factor():
    table = without_dependence(80, 4)
    with bs.models.gaussian_graphical(table, prior="pseudo_likelihood"):
        idata = pm.sample(
            200,
            tune=50,
            chains=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    limit = bs.evidence_limits(idata)["smallest"].iloc[0]
    edges = bs.edge_table(idata).set_index(["source", "target"]).loc[("a", "b")]
    # The graph of the other pairs varies, and with it the number of neighbours
    assert np.log(edges["bayes_factor"] / limit) == pytest.approx(0.0, abs=0.35)
