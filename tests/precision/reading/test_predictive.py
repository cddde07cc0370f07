import numpy as np
import pymc as pm
import pytest
import xarray as xr

from bayesstruct.precision.reading.predictive import predictive_correlations


def tree(observed, replicated, missing=None):
    names = [f"c{j}" for j in range(observed.shape[1])]
    dims = ("observation", "node")
    groups = {
        "observed_data": xr.Dataset({"x": (dims, observed)}, {"node": names}),
        "posterior_predictive": xr.Dataset(
            {"x": (("chain", "draw", *dims), replicated[None])}, {"node": names}
        ),
    }
    if missing is not None:
        groups["constant_data"] = xr.Dataset({"cell_missing": (dims, missing.astype(int))})
    return xr.DataTree.from_dict(groups)


def correlated(rng, n, rho):
    x = rng.normal(size=(n, 2))
    x[:, 1] = rho * x[:, 0] + np.sqrt(1 - rho**2) * x[:, 1]
    return x


def test_a_fitting_model_holds_the_observed_correlation_and_another_does_not(rng):
    observed = correlated(rng, 300, 0.6)
    good = np.array([correlated(rng, 300, 0.6) for _ in range(200)])
    bad = rng.normal(size=(200, 300, 2))
    [fits] = predictive_correlations(tree(observed, good)).itertuples()
    [fails] = predictive_correlations(tree(observed, bad)).itertuples()
    assert fits.inside
    assert fits.p_value > 0.02
    assert not fails.inside
    assert fails.p_value < 0.01
    assert fits.observed == pytest.approx(np.corrcoef(observed.T)[0, 1])


def test_missing_values_do_not_count(rng):
    observed = correlated(rng, 400, 0.7)
    missing = rng.random(observed.shape) < 0.3
    spoilt = np.where(missing, 50.0, observed)
    replicated = np.array([correlated(rng, 400, 0.7) for _ in range(50)])
    [row] = predictive_correlations(tree(spoilt, replicated, missing)).itertuples()
    both = ~missing.any(axis=1)
    assert row.observed == pytest.approx(np.corrcoef(observed[both].T)[0, 1], abs=0.05)


def test_regressions_are_held_against_the_observed_predictors(rng):
    observed = correlated(rng, 300, 0.8)
    # Each value anew given the observed other one: replicated columns are hardly correlated.
    noise = rng.normal(size=(100, 300, 2))
    replicated = 0.8 * observed[:, ::-1] + 0.6 * noise
    result = tree(observed, replicated)
    arcs = {"arc_source": ("ordered_pair", [1, 0]), "arc_target": ("ordered_pair", [0, 1])}
    result["constant_data"] = xr.Dataset(arcs)
    table = predictive_correlations(result)
    assert table[["source", "target"]].values.tolist() == [["c0", "c1"], ["c1", "c0"]]
    result["constant_data"] = xr.Dataset()
    result["posterior"] = xr.Dataset(attrs={"dependency_network": "symmetrised"})
    assert predictive_correlations(result).equals(table)
    # The rows of a Bayesian network are replicated as a whole.
    result["constant_data"] = xr.Dataset({**arcs, "arc_acyclic": 1})
    assert len(predictive_correlations(result)) == 1
    assert table.inside.all()
    independent = tree(observed, noise)
    independent["constant_data"] = result["constant_data"]
    assert not predictive_correlations(independent).inside.any()


def test_without_replicated_tables():
    with pytest.raises(ValueError, match="sample_posterior_predictive"):
        predictive_correlations(xr.DataTree())
    assert pm.sample_posterior_predictive  # the remedy exists under this name


def test_a_table_of_another_name_is_found(rng):
    observed = correlated(rng, 50, 0.6)
    made = tree(observed, np.array([correlated(rng, 50, 0.6) for _ in range(20)]))
    other = xr.DataTree.from_dict(
        {
            name: made[name]
            .to_dataset()
            .rename(x="rows", node="rows_dim_1")
            .drop_vars("rows_dim_1")
            for name in made.children
        }
    )
    found, expected = predictive_correlations(other), predictive_correlations(made)
    assert found[["source", "target"]].to_numpy().tolist() == [[0, 1]]
    np.testing.assert_allclose(found["mean"], expected["mean"])
    two = xr.DataTree.from_dict(
        {name: other[name].to_dataset().assign(more=other[name]["rows"]) for name in other.children}
    )
    with pytest.raises(
        ValueError, match=r"there are 2 \(rows, more\): rename the one to compare to `x`"
    ):
        predictive_correlations(two)
    none = xr.DataTree.from_dict(
        {
            "observed_data": xr.Dataset({"y": ("row", [1.0])}),
            "posterior_predictive": made["posterior_predictive"].ds,
        }
    )
    with pytest.raises(ValueError, match="there is none"):
        predictive_correlations(none)
    with pytest.raises(ValueError, match="no group `observed_data`"):
        predictive_correlations(made.drop_nodes("observed_data"))
