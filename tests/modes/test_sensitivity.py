"""bs.sensitivity: each setting is a run of its own, exact evidence where it is known, and what is refused."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from tools.posteriors import bernoulli_posterior

import bayesstruct as bs

from bayesstruct.modes import sensitivity as module

mpl.use("Agg")


def two_columns(n=40, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    return pd.DataFrame({"a": x, "b": 0.35 * x + rng.standard_normal(n)})


@pytest.mark.chain
def test_each_setting_is_its_own_run_and_the_bayes_factor_of_two_columns_is_the_exact_one():
    table, probabilities = two_columns(), np.array([0.2, 0.5])
    run = {"draws": 500, "tune": 50, "chains": 2, "cores": 1, "progressbar": False}
    model, fixed = bs.models.gaussian_graphical, {"prior": "g_wishart"}
    result = bs.sensitivity(
        model, table, options=fixed, edge_probability=[0.2, 0.5], random_seed=7, **run
    )
    with model(table, edge_probability=0.2, **fixed):
        alone = bs.sample(random_seed=7, compute_convergence_checks=False, **run)
    one = bs.edge_table(alone).iloc[0]
    for column in ("probability", "bayes_factor", "mean", "ess", "r_hat"):
        assert result.table[column].iloc[0] == one[column]

    # of one pair of columns posterior over prior odds do not depend on the prior probability
    exact = np.array(
        [
            bs.exact.gaussian_graphs(table, edge_probability=p).edge_probabilities
            for p in probabilities
        ]
    )[:, 0, 1]
    factors = exact / (1 - exact) * (1 - probabilities) / probabilities
    assert factors[0] == pytest.approx(factors[1], rel=1e-9)
    error = 1 / np.sqrt(result.table.ess * exact * (1 - exact))  # of the log odds
    assert (abs(np.log(result.table.bayes_factor / factors)) < 4 * error).all()
    assert error.max() < 0.25
    assert result.table.prior_probability.tolist() == [0.2, 0.5]


@pytest.mark.chain
def test_arcs_and_labels_of_values():
    result = bs.sensitivity(
        bs.models.bayesian_network,
        two_columns(),
        options={"prior": "edge"},
        edge_probability={"sparse": 0.1, "dense": np.full((2, 2), 0.4)},
        draws=50,
        tune=10,
        chains=2,
        cores=1,
        progressbar=False,
    )
    assert result.line == "arc"
    assert result.settings["edge_probability"].tolist() == ["sparse", "dense"]
    assert {*zip(result.edges.source, result.edges.target, strict=True)} == {("a", "b"), ("b", "a")}
    assert "2 arcs" in repr(result) and "Markov equivalent" in repr(result)


# ---- without sampling --------------------------------------------------------------------------

#: Probabilities of the edges v0 -- v1, v0 -- v2, v1 -- v2 at three settings.
PROBABILITIES = {0.5: [0.99, 0.5, 0.02], 1.0: [0.99, 0.96, 0.02], 2.0: [0.98, 0.97, 0.03]}


def three_columns(data, *, scale=1.0, prior="a", forbid=False):
    if scale not in PROBABILITIES:
        raise bs.TableError("column 'v1' cannot be used")
    with pm.Model() as model:
        pm.Normal("edge", scale)
    model.setting = scale, forbid
    return model


@pytest.fixture
def compared(monkeypatch):
    """The function with draws of known probabilities in place of those of a model."""

    def draw(model, given):
        scale, forbid = model.setting
        prior = np.array([0.5, 0.5, 0.0 if forbid else 0.5])
        values = np.where(prior > 0, PROBABILITIES[scale], 0)
        return bernoulli_posterior(values, seed=1, draws=1000, edge_prior=prior)

    monkeypatch.setattr(module, "_draw", draw)
    return lambda **options: bs.sensitivity(three_columns, two_columns(), **options)


def test_ranges_by_hand(compared):
    result = compared(scale=[0.5, 1.0, 2.0], random_seed=5)
    table = result.table.set_index(["setting", "source", "target"])
    assert len(table) == 9 and result.random_seed == 5
    for pair, part in result.table.groupby(["source", "target"]):
        row = result.edges.set_index(["source", "target"]).loc[pair]
        assert row.lowest_factor == part.bayes_factor.min()
        assert row.highest_factor == part.bayes_factor.max()
        assert row.lowest_probability == part.probability.min()
        assert row.highest_probability == part.probability.max()
        assert table.loc[(row.lowest_at, *pair), "bayes_factor"] == row.lowest_factor
        assert table.loc[(row.highest_at, *pair), "bayes_factor"] == row.highest_factor
        assert row.changes == (len({*part.evidence}) > 1)
    assert result.edges.evidence.tolist() == ["undecided or included", "included", "excluded"]
    assert result.edges.changes.tolist() == [True, False, False]
    assert result.settings.included.tolist() == [1, 2, 2]
    assert result.settings.excluded.tolist() == [1, 1, 1]
    with_prior_of_a_half = table.probability / (1 - table.probability)
    np.testing.assert_allclose(table.bayes_factor, with_prior_of_a_half, rtol=1e-9)
    assert result.edges.clear.tolist() == [True, False, False]
    assert "1 of 3 edges" in repr(result) and "1 of 3 edges" in result._repr_html_()
    assert compared(scale=[0.5, 1.0], threshold=1000).edges.changes.sum() == 0


def test_changes_within_monte_carlo_error_are_said(compared, monkeypatch):
    # probabilities on both sides of 10 / 11, closer to each other than 4,000 draws can tell
    close = {0.5: [0.99, 0.905, 0.02], 1.0: [0.99, 0.912, 0.02]}
    monkeypatch.setitem(globals(), "PROBABILITIES", close)
    few = compared(scale=[0.5, 1.0])
    assert few.edges.changes.tolist() == [True, False, False]
    draws = few.table.query("source == 'v0' and target == 'v2'")
    error = np.sqrt((1 / (draws.ess * draws.probability * (1 - draws.probability))).sum())
    apart = np.diff(np.log(draws.bayes_factor)).item()
    assert apart < 2 * error
    assert not few.edges.clear.any() and "within Monte Carlo error" in repr(few)


def test_all_combinations_and_what_was_not_tested(compared):
    result = compared(scale=[0.5, 1.0], forbid=[True, False], options={"prior": "b"})
    assert result.settings[["scale", "forbid"]].to_numpy().tolist() == [
        [0.5, "True"],
        [0.5, "False"],
        [1.0, "True"],
        [1.0, "False"],
    ]
    last = result.edges.set_index(["source", "target"]).loc[("v1", "v2")]
    assert last.evidence == "excluded" and not last.changes
    never = compared(scale=[0.5, 1.0], options={"forbid": True}).edges.iloc[-1]
    assert never.evidence == "fixed" and never.lowest_at == -1 and np.isnan(never.lowest_factor)
    assert isinstance(result.random_seed, int)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, ValueError, "nothing is varied"),
        ({"scale": 0.5}, ValueError, r"`scale` is one value.*options=\{'scale'"),
        ({"scale": [0.5]}, ValueError, "`scale` has 1 value"),
        ({"prior": "ab"}, ValueError, "`prior` is one value"),
        ({"scale": np.eye(2)}, ValueError, "`scale` is one matrix"),
        ({"scale": pd.DataFrame({"a": [1, 2]})}, ValueError, "`scale` is one matrix"),
        ({"scale": [0.5, 0.5]}, ValueError, "`scale` has a value twice"),
        (
            {"scales": [0.5, 1]},
            ValueError,
            r"no option `scales` \(did you mean `scale`\?\). Its opt",
        ),
        ({"scale": [0.5, 1], "options": {"x": 1}}, ValueError, "`x`. Its options: scale, prior"),
        ({"scale": [0.5, 1], "options": {"scale": 1}}, ValueError, "varied and in `options`"),
        ({"scale": [0.5, 1], "options": "prior"}, TypeError, "`options` must be a dict"),
        ({"scale": [0.5, 3]}, bs.TableError, "With scale=3: column 'v1' cannot"),
        ({"scale": [0.5, 1], "threshold": 1}, ValueError, "`threshold` must be above 1"),
    ],
)
def test_bad_input(compared, options, error, message):
    with pytest.raises(error, match=message):
        compared(**options)


def test_models_without_graphs_and_other_functions_are_refused():
    def normal(data=None, scale=1):
        with pm.Model() as model:
            pm.Normal("x", 0, scale)
        return model

    with pytest.raises(ValueError, match="normal has no edges or arcs"):
        bs.sensitivity(normal, scale=[1, 2])
    with pytest.raises(TypeError, match="must be a model function"):
        bs.sensitivity("ising", scale=[1, 2])
    with pytest.raises(TypeError, match="With scale=1: <lambda> returned int"):
        bs.sensitivity(lambda data, scale: scale, two_columns(), scale=[1, 2])


def test_an_option_may_be_called_prior(compared):
    table = compared(prior=["a", "b"]).table
    assert table.columns.is_unique
    assert table["prior"].tolist() == ["a"] * 3 + ["b"] * 3
    assert (table["prior_probability"] == 0.5).all()


def test_failures_of_sampling_name_the_setting(compared, monkeypatch):
    def fail(model, given):
        raise RuntimeError("a chain died")

    monkeypatch.setattr(module, "_draw", fail)
    with pytest.raises(RuntimeError, match=r"With scale=0.5: a chain died"):
        compared(scale=[0.5, 1])


def test_picture(compared):
    result = compared(scale=[0.5, 1.0, 2.0])
    ax = bs.plot_sensitivity(result)
    coloured = {line.get_label(): line for line in ax.lines if "–" in str(line.get_label())}
    assert [*coloured] == ["v0 – v2"]
    [line] = coloured.values()
    expected = result.table.query("source == 'v0' and target == 'v2'")
    np.testing.assert_array_equal(line.get_xdata(), [0.5, 1, 2])
    np.testing.assert_array_equal(line.get_ydata(), expected.bayes_factor)
    assert ax.get_yscale() == "log" and ax.get_xlabel() == "scale"
    assert ax.get_legend().get_texts()[-1].get_text() == "2 other edges"
    named = bs.plot_sensitivity(result, [("v2", "v1")])
    assert named.get_legend().get_texts()[0].get_text() == "v1 – v2"
    with pytest.raises(ValueError, match="no edge of 'v0' and 'x'"):
        bs.plot_sensitivity(result, [("v0", "x")])
    several = bs.plot_sensitivity(compared(scale=[0.5, 1.0], prior=["a", "b"]))
    assert [t.get_text() for t in several.get_xticklabels()] == ["0.5\na", "0.5\nb", "1\na", "1\nb"]
    mpl.pyplot.close("all")
