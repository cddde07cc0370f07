"""Whether residuals contradict the noise: against a slow computation, how often wrongly, and how often rightly."""

import networkx as nx
import numpy as np
import pymc as pm
import pytest
import xarray as xr

from scipy import stats
from tools.dags import dag_posterior

import bayesstruct as bs

from bayesstruct.sem.priors.noise import noise_law
from bayesstruct.sem.priors.records import SemNoise
from bayesstruct.sem.reading.noise_check import noise_notes

CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], bool)  # v0 -> v1 -> v2
STRENGTH = 0.7


def rows_of(errors, graph=CHAIN, was_set=None):
    """Rows of the chain with these errors; values that were set are the errors themselves."""
    x = np.zeros_like(errors)
    for j in range(errors.shape[1]):
        x[:, j] = errors[:, j] + STRENGTH * x[:, graph[:, j]].sum(axis=1)
        if was_set is not None:
            x[was_set[:, j], j] = errors[was_set[:, j], j]
    return x


def result(
    table,
    noise="laplace",
    *,
    graph=CHAIN,
    draws=50,
    location=0.0,
    scale=1.0,
    masks=(),
    law=None,
    **more,
):
    """Make up a result whose graph and weights are known exactly; `table` is in the units of the model."""
    d = table.shape[1]
    tree = dag_posterior(np.broadcast_to(graph, (2, draws, d, d)))
    drawn = tree["posterior"].to_dataset()
    drawn["weight"] = STRENGTH * drawn["arc"]
    for name, given in more.items():
        value = np.asarray(given, float)
        dims = ["node"] if name == "degrees" else [f"{name}_{k}" for k in range(value.ndim)]
        drawn[name] = (("chain", "draw", *dims), np.broadcast_to(value, (2, draws, *value.shape)))
    constants = tree["constant_data"].to_dataset()
    constants["location"] = ("node", np.full(d, location))
    constants["scale"] = ("node", np.full(d, scale))
    for name, mask in masks:
        constants[name] = (("observation", "node"), np.asarray(mask, int))
    for name, (dims, value) in SemNoise.of(law or noise_law(noise)).variables().items():
        constants[name] = (dims, value)
    observed = xr.Dataset({"x": (("observation", "node"), location + scale * table)})
    groups = {"posterior": drawn, "constant_data": constants, "observed_data": observed}
    return xr.DataTree.from_dict(groups)


def uniform(rng, n):
    return rng.uniform(-np.sqrt(3), np.sqrt(3), n)


def errors_of(rng, n, *kinds):
    """Errors of variance 1, a column each."""
    laws = {
        "laplace": lambda: rng.laplace(scale=np.sqrt(0.5), size=n),
        "normal": lambda: rng.normal(size=n),
        "uniform": lambda: uniform(rng, n),
        "right": lambda: rng.exponential(size=n) - 1,
        "left": lambda: 1 - rng.exponential(size=n),
        "t3": lambda: rng.standard_t(3, n) / np.sqrt(3),
    }
    return np.column_stack([laws[kind]() for kind in kinds])


# --- what is computed ------------------------------------------------------------------------


def slow_p_values(rng, errors, replicates=3000):
    """Adjusted p-values by probability-weighted moments, one replicate after the other."""
    n, d = errors.shape
    chance = [
        [np.prod([(i - q) / (n - 1 - q) for q in range(r)]) for i in range(n)] for r in range(4)
    ]

    def ratios(x):
        b = np.array(chance) @ np.sort(x) / n
        second = 2 * b[1] - b[0]
        third, fourth = 6 * b[2] - 6 * b[1] + b[0], 20 * b[3] - 30 * b[2] + 12 * b[1] - b[0]
        return [third / second, fourth / second]

    made = np.array([[ratios(rng.laplace(size=n)) for _ in range(d)] for _ in range(replicates)])
    mean, sd = made.mean(axis=0), made.std(axis=0)
    worst = np.abs((made - mean) / sd).max(axis=(1, 2))
    own = np.abs((np.array([ratios(e) for e in errors.T]) - mean) / sd).max(axis=1)
    return (worst[:, None] >= own).mean(axis=0)


@pytest.mark.statistical
def test_p_values_are_those_of_a_slow_computation(rng):
    errors = errors_of(rng, 60, "laplace", "normal", "laplace")
    found = bs.noise_check(result(rows_of(errors))).set_index("column")
    right = slow_p_values(rng, errors)
    assert right.min() < 0.5  # somewhere between the ends
    # Four standard errors: shares of 2,000 and 3,000 replicates, and distances in standard deviations that are known within .03,
    # of which a share depends with a slope below one.
    bound = 4 * np.sqrt(np.maximum(right * (1 - right), 0.01) * (1 / 2000 + 1 / 3000) + 0.02**2)
    assert (np.abs(found.loc[["v0", "v1", "v2"], "p_value"] - right) < bound).all()
    assert (found["rows"] == 60).all()


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_false_alarms_of_a_model_that_is_right(noise):
    """With known weights the smallest adjusted p-value of a table, and that of all columns together, are uniform."""
    rng, smallest, together = np.random.default_rng(5), [], []
    for _ in range(120):
        errors = noise_law(noise).draw(rng, np.zeros((3, 1)), 40)
        found = bs.noise_check(result(rows_of(errors), noise))
        smallest.append(found["p_value"].min())
        together.append(found.attrs["combined_p_value"])
    assert stats.kstest(together, "uniform").pvalue > 1e-3
    assert stats.kstest(smallest, "uniform").pvalue > 1e-3
    alarms = np.mean(np.array(smallest) <= 0.2)
    assert 0.2 - 4 * np.sqrt(0.16 / 120) < alarms < 0.2 + 4 * np.sqrt(0.16 / 120)


@pytest.mark.parametrize(
    ("noise", "kind", "said"),
    [
        ("laplace", "uniform", "lighter tails"),
        ("gaussian", "laplace", "heavier tails"),
        ("gaussian", "right", "skewed to the right"),
        ("gaussian", "left", "skewed to the left"),
    ],
)
def test_one_column_with_other_noise_is_named(rng, noise, kind, said):
    other = "laplace" if noise == "laplace" else "normal"
    idata = result(rows_of(errors_of(rng, 200, other, kind, other)), noise)
    table = bs.noise_check(idata)
    assert table["column"][0] == "v1"
    assert table["contradicted"].tolist() == [True, False, False]
    assert said in table["difference"][0]
    (note,) = noise_notes(idata)
    assert note == table.attrs["notes"][0]
    assert (
        note.startswith("Residuals of 1 of 3 columns do not have the shape of") and "'v1'" in note
    )
    assert "noise='mixture'" in note


def test_many_columns_that_differ_a_little_are_noticed_together():
    """Errors with slightly lighter tails than normal ones in all of eight columns."""
    rng = np.random.default_rng(3)
    errors = 0.8 * rng.normal(size=(150, 8)) + rng.uniform(-1.2, 1.2, (150, 8))
    idata = result(errors, "gaussian", graph=np.zeros((8, 8), bool))
    found = bs.noise_check(idata, alpha=0.05)
    together = found.attrs["combined_p_value"]
    assert together < found["p_value"].min()
    alpha = 0.5 * (together + found["p_value"].min())  # between the two
    found = bs.noise_check(idata, alpha=alpha)
    assert not found["contradicted"].any()
    assert found.attrs["either_alpha"] == 2 * alpha
    (note,) = found.attrs["notes"]
    assert f"a second test, p = {together:.2g}" in note
    wrong = bs.noise_check(
        result(errors_of(rng, 60, *["uniform"] * 8), graph=np.zeros((8, 8), bool))
    )
    assert wrong.attrs["combined_p_value"] < 1e-3


def test_columns_of_the_table_are_not_residuals(rng):
    """A column whose values are no Laplace variable, while its residuals are."""
    errors = errors_of(rng, 400, "laplace", "laplace", "laplace")
    errors[:, 0] = uniform(rng, 400) * 4
    table = bs.noise_check(result(rows_of(errors))).set_index("column")
    assert table["contradicted"].to_dict() == {"v0": True, "v1": False, "v2": False}
    alone = bs.noise_check(result(rows_of(errors), graph=np.zeros_like(CHAIN)))
    assert alone.set_index("column")["contradicted"]["v1"]


def test_units_do_not_matter(rng):
    x = rows_of(errors_of(rng, 80, "laplace", "normal", "laplace"))
    one, other = (
        bs.noise_check(result(x, **units)) for units in ({}, {"location": 5, "scale": 0.1})
    )
    np.testing.assert_allclose(one["p_value"], other["p_value"])
    np.testing.assert_allclose(one["tails"], other["tails"])


# --- parameters of the noise, missing values, interventions -----------------------------------


def test_degrees_of_freedom_are_those_of_the_draws(rng):
    x = rows_of(errors_of(rng, 600, "t3", "t3", "t3"))
    found = bs.noise_check(result(x, "student", degrees=[3.0, 60.0, 3.0])).set_index("column")
    assert found["contradicted"].to_dict() == {"v0": False, "v1": True, "v2": False}
    assert found.attrs["noise"] == "student"


@pytest.mark.parametrize("own", [True, False])
def test_weights_of_a_mixture_are_those_of_the_draws(rng, own):
    weights = np.array([0.5, 0, 0, 0, 0.5, 0])
    law = noise_law("mixture")
    errors = law.draw(rng, np.tile(weights, (3, 1)), 300)
    errors[:, 2] = rng.normal(size=300)
    given = np.tile(weights, (3, 1)) if own else weights
    idata = result(rows_of(errors), "mixture", mixture_weight=given)
    found = bs.noise_check(idata).set_index("column")
    assert found["contradicted"].to_dict() == {"v0": False, "v1": False, "v2": True}
    (note,) = noise_notes(idata)
    assert "mixture noise" in note and "logarithm" in note  # it cannot be recommended again


def test_columns_with_normal_noise_are_compared_with_normal_noise(rng):
    """Weights that say otherwise have no meaning there."""
    weights = np.tile([0.5, 0, 0, 0, 0.5, 0], (3, 1))
    errors = noise_law("mixture").draw(rng, weights, 300)
    errors[:, 1:] = rng.normal(size=(300, 2))
    law = noise_law("mixture", normal=True)
    given = {"law": law, "mixture_weight": weights, "normal_noise": [0, 1, 0]}
    found = bs.noise_check(result(rows_of(errors), "mixture", **given)).set_index("column")
    assert found["contradicted"].to_dict() == {"v0": False, "v1": False, "v2": True}
    del given["normal_noise"]
    without = result(rows_of(errors), "mixture", **given)
    with pytest.raises(ValueError, match="no `normal_noise`, which is needed"):
        bs.noise_check(without)
    assert noise_notes(without) == []


def test_missing_values_are_those_of_each_draw(rng):
    x = rows_of(errors_of(rng, 100, "laplace", "normal", "laplace"))
    missing = rng.random(x.shape) < 0.2
    known = bs.noise_check(result(x))
    masks = [("cell_missing", missing)]
    given = result(np.where(missing, 99.0, x), masks=masks, x_missing=x[missing])
    np.testing.assert_allclose(bs.noise_check(given)["tails"], known["tails"])
    without = result(x, masks=masks)
    with pytest.raises(ValueError, match="no `x_missing`, which is needed: sample it too"):
        bs.noise_check(without)
    assert noise_notes(without) == []


def test_values_that_were_set_do_not_count(rng):
    errors = errors_of(rng, 300, "laplace", "laplace", "laplace")
    was_set = np.zeros(errors.shape, bool)
    was_set[:150, 1] = True
    errors[:150, 1] = rng.choice([-3.0, 3.0], 150)
    x = rows_of(errors, was_set=was_set)
    found = bs.noise_check(result(x, masks=[("cell_set", was_set)])).set_index("column")
    assert found["rows"].to_dict() == {"v0": 300, "v1": 150, "v2": 300}
    assert not found["contradicted"].any()
    # What they act on is explained by them: with the mask forgotten only the set column itself is wrong.
    forgotten = bs.noise_check(result(x)).set_index("column")
    assert forgotten["contradicted"].to_dict() == {"v0": False, "v1": True, "v2": False}
    was_set[:295, 1] = True
    few = bs.noise_check(result(x, masks=[("cell_set", was_set)]))
    assert few["column"].tolist()[-1] == "v1" and np.isnan(few["p_value"].iloc[-1])
    assert not few["contradicted"].iloc[-1]
    assert few.attrs["notes"] == [
        "The noise of column 'v1' was not checked: fewer than 10 values were not set from outside."
    ]


def test_large_tables_are_checked_on_some_rows(rng):
    errors = errors_of(rng, 20_000, "laplace", "laplace", "uniform")
    found = bs.noise_check(result(rows_of(errors), draws=3)).set_index("column")
    assert (found["rows"] == 6666).all()  # 20,000 values
    assert found["contradicted"].to_dict() == {"v0": False, "v1": False, "v2": True}


# --- results of models -------------------------------------------------------------------------


def sampled(data, noise, **options):
    with bs.models.linear_sem(data, noise=noise, **options):
        return pm.sample(
            draws=80, tune=40, chains=2, cores=1, progressbar=False, random_seed=1,
            compute_convergence_checks=False,
        )  # fmt: skip


@pytest.mark.chain
@pytest.mark.filterwarnings("ignore")
def test_check_of_a_result_contradicts_laplace_noise_and_not_a_mixture():
    graph = nx.DiGraph([("a", "b"), ("b", "c"), ("d", "c")])
    simulated = bs.simulate.linear_sem(200, graph=graph, noise="uniform", random_seed=3)
    data, was_set = simulated.data.copy(), np.zeros((200, 4), bool)
    was_set[:20, 1] = True
    data.iloc[:20, 1] = 1.0
    data.iloc[30:35, 3] = np.nan
    said = {}
    tables = {"laplace": (data, was_set), "mixture": (simulated.data, None)}
    for noise, (table, settings) in tables.items():
        idata = sampled(table, noise, interventions=settings)
        said[noise] = [note for note in bs.check(idata).notes if note.startswith("Residuals")]
        assert "noise_check" in bs.summary(idata).others
    assert len(said["laplace"]) == 1 and "Laplace noise: 'a' (lighter tails)" in said["laplace"][0]
    assert said["mixture"] == []


def test_other_results_are_refused_with_the_remedy(rng):
    x = rows_of(errors_of(rng, 30, "normal", "normal", "normal"))
    tree = result(x)
    network = xr.DataTree.from_dict(
        {
            "posterior": tree["posterior"].to_dataset(),
            "constant_data": tree["constant_data"].to_dataset().drop_vars("noise_kind"),
        }
    )
    with pytest.raises(ValueError, match=r"pass a result of bs\.models\.linear_sem"):
        bs.noise_check(network)
    assert noise_notes(network) == []
    with pytest.raises(ValueError, match="no `degrees`, which is needed: sample it too"):
        bs.noise_check(result(x, "student"))
    assert noise_notes(result(x, "student")) == []
    with pytest.raises((TypeError, ValueError), match="`alpha`"):
        bs.noise_check(tree, alpha=2)
