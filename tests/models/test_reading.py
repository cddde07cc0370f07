"""What models do with codes for missing values, counted rows, and states that were declared."""

import itertools

import numpy as np
import pandas as pd
import pytest

from scipy.special import gammaln, logsumexp

import bayesstruct as bs

from bayesstruct.data import TableError
from bayesstruct.models import (
    bayesian_network,
    dp_glm,
    gaussian_graphical,
    gaussian_neighbourhoods,
    hidden_causes,
    infinite_ica,
    ising,
    ising_neighbourhoods,
    latent_features,
    markov_transitions,
    pairwise_mrf,
    sparse_factor_analysis,
)

ROWS = np.random.default_rng(0).normal(size=(30, 3))
STATES = np.random.default_rng(1).integers(0, 2, (30, 3))


def _same(one, other):
    """Whether two models have the same variables, observed values and constants."""
    assert [v.name for v in one.basic_RVs] == [v.name for v in other.basic_RVs]
    assert one.coords == other.coords
    for a, b in zip(one.observed_RVs, other.observed_RVs, strict=True):
        values = one.rvs_to_values[a], other.rvs_to_values[b]
        np.testing.assert_array_equal(*(v.eval(mode="FAST_COMPILE") for v in values))
    names = [name for name in one.named_vars if hasattr(one[name], "get_value")]
    assert names == [name for name in other.named_vars if hasattr(other[name], "get_value")]
    for name in names:
        np.testing.assert_array_equal(one[name].get_value(), other[name].get_value())


def _holes(values, code):
    """The same table with a code and with NaN."""
    coded, gaps = pd.DataFrame(values).copy(), pd.DataFrame(values, dtype=float)
    for i, j in ((1, 0), (4, 2), (9, 0)):
        coded.iloc[i, j], gaps.iloc[i, j] = code, np.nan
    return coded, gaps


NUMBERS = {
    "gaussian_graphical": gaussian_graphical,
    "bayesian_network": bayesian_network,
    "latent_features": latent_features,
    "sparse_factor_analysis": sparse_factor_analysis,
    "infinite_ica": infinite_ica,
    "markov_transitions": lambda data, **options: markov_transitions([data, data + 0.0], **options),
}
OF_STATES = {
    "ising": ising,
    "pairwise_mrf": pairwise_mrf,
    "bayesian_network": lambda data, **options: bayesian_network(data, score="bdeu", **options),
    "hidden_causes": hidden_causes,
}


@pytest.mark.parametrize("build", NUMBERS.values(), ids=NUMBERS)
def test_codes_among_numbers_are_missing_values(build):
    coded, gaps = _holes(ROWS, -999.0)
    _same(build(coded, missing_codes=-999), build(gaps))


@pytest.mark.parametrize("build", OF_STATES.values(), ids=OF_STATES)
def test_codes_among_states_are_missing_values(build):
    coded, gaps = _holes(STATES, 9)
    _same(build(coded, missing_codes=[9]), build(gaps))


def test_models_without_missing_values_say_so_of_codes():
    coded, _ = _holes(ROWS, -999.0)
    with pytest.raises(TableError, match="gaussian_graphical"):
        gaussian_neighbourhoods(coded, missing_codes=-999)
    states, _ = _holes(STATES, 9)
    with pytest.raises(TableError, match="ising"):
        ising_neighbourhoods(states, missing_codes=9)
    with pytest.raises(TableError, match="missing values; leave these rows out"):
        dp_glm(coded.set_axis(list("xyz"), axis=1), "z", missing_codes=-999)


COUNTS = np.arange(30) % 3
COUNTED = {
    "gaussian_graphical": (gaussian_graphical, ROWS),
    "gaussian_neighbourhoods": (gaussian_neighbourhoods, ROWS),
    "bge": (bayesian_network, ROWS),
    "ising": (ising, STATES),
    "ising_neighbourhoods": (ising_neighbourhoods, STATES),
    "pairwise_mrf": (pairwise_mrf, STATES),
    "bdeu": (OF_STATES["bayesian_network"], STATES),
    "hidden_causes": (hidden_causes, STATES),
}


@pytest.mark.filterwarnings("ignore:.*rows are copies")
@pytest.mark.parametrize(("build", "rows"), COUNTED.values(), ids=COUNTED)
def test_counted_rows_are_repeated_rows(build, rows):
    frame = pd.DataFrame(rows, columns=list("abc"))
    repeated = np.repeat(rows, COUNTS, axis=0)
    wanted = build(pd.DataFrame(repeated, columns=list("abc")))
    _same(build(frame, row_counts=COUNTS), wanted)
    _same(build(frame.assign(freq=COUNTS), row_counts="freq"), wanted)


@pytest.mark.filterwarnings("ignore:.*rows are copies")
def test_what_belongs_to_rows_is_repeated_with_them():
    covariate = np.arange(30.0) ** 2
    one = gaussian_graphical(ROWS, covariates=covariate, row_counts=COUNTS)
    rows, repeated = np.repeat(ROWS, COUNTS, axis=0), np.repeat(covariate, COUNTS)
    other = gaussian_graphical(rows, covariates=repeated)
    z = {"coefficients": np.array([[0.3, -0.2, 0.1]])}
    values = [m["x"].owner.inputs[2].eval({m["coefficients"]: z["coefficients"], m["mean"]: np.zeros(3)},
                                          mode="FAST_COMPILE") for m in (one, other)]  # fmt: skip
    np.testing.assert_allclose(*values)
    mask = np.zeros((30, 3), bool)
    mask[:9, 0] = True
    _same(
        bayesian_network(ROWS, interventions=mask, row_counts=COUNTS),
        bayesian_network(rows, interventions=np.repeat(mask, COUNTS, axis=0)),
    )


def _log_dirichlet(counts, weight):
    """Log probability of observations of a table of probabilities whose rows have symmetric Dirichlet priors."""
    counts = np.atleast_2d(counts)
    total = counts.shape[1] * weight
    rows = gammaln(total) - gammaln(total + counts.sum(1))
    return (rows + (gammaln(weight + counts) - gammaln(weight)).sum(1)).sum()


def _bdeu_by_enumeration(x, states, size):
    """Log marginal likelihood of no arc, and of one, for two columns."""
    counts = np.zeros(states)
    np.add.at(counts, tuple(x.T), 1)
    alone = [_log_dirichlet(counts.sum(1 - i), size / states[i]) for i in (0, 1)]
    cells = size / np.prod(states)
    return sum(alone), alone[0] + _log_dirichlet(counts, cells)


@pytest.mark.parametrize("declared", [False, True])
def test_states_that_never_occur_count_in_the_posterior_of_a_network(declared):
    x = np.random.default_rng(5).integers(0, 2, (25, 2))
    x[:, 1] = np.where(np.arange(25) < 12, x[:, 0], x[:, 1])
    frame = pd.DataFrame(x, columns=["a", "b"])
    states = (4, 3) if declared else (2, 2)
    if declared:
        for name, k in zip("ab", states, strict=True):
            frame[name] = pd.Categorical(frame[name], list(range(k)))
        with pytest.warns(bs.TableWarning, match="'a' never has 2 and 3"):
            posterior = bs.exact.dag_posterior(frame, score="bdeu")
    else:
        posterior = bs.exact.dag_posterior(frame, score="bdeu")
    empty, one = _bdeu_by_enumeration(x, states, 1.0)
    # Three graphs: none, a -> b and b -> a, the last two with the same score.
    wanted = np.exp(one - logsumexp([empty, one, one]))
    np.testing.assert_allclose(posterior.arc_probabilities.loc["a", "b"], wanted, rtol=1e-10)


def test_a_state_that_never_occurs_has_its_prior_probability():
    x = pd.DataFrame(STATES, columns=list("abc"))
    model = bayesian_network(x, score="bdeu", states={"a": [0, 1, 2]}, max_parents=0)
    with model:
        mode = bs.find_MAP()
    counts = np.append(np.bincount(STATES[:, 0]), 0)
    np.testing.assert_allclose(mode["table"][0, :3], (counts + 1 / 3) / (counts.sum() + 1))


def _log_of_rows(x, bias, weights, states):
    """Log probabilities of rows of a field with full potentials, by enumeration of all joint states."""

    def energy(row):
        own = sum(bias[i].get(s, 0.0) for i, s in enumerate(row))
        return own + sum(w[row[i], row[j]] for (i, j), w in weights.items())

    joint = [energy(row) for row in itertools.product(*map(range, states))]
    return np.array([energy(row) for row in x]) - logsumexp(joint)


@pytest.mark.chain
def test_a_field_sums_over_states_that_never_occur(rng):
    x = STATES[:, :2]
    model = pairwise_mrf(x, states={"x1": [0, 1, 2]}, likelihood="exact")
    point = model.initial_point()
    point["bias"] = np.array([0.3, -0.4, 0.7])
    point["potential"] = rng.normal(size=6)
    log_likelihood = model.compile_logp(vars=[model["x"]], sum=False)(point)[0]
    bias = {0: {1: 0.3}, 1: {1: -0.4, 2: 0.7}}
    wanted = _log_of_rows(x, bias, {(0, 1): point["potential"].reshape(2, 3)}, (2, 3))
    np.testing.assert_allclose(log_likelihood, wanted, rtol=1e-10)


@pytest.mark.parametrize("build", [ising, pairwise_mrf])
def test_a_flat_prior_refuses_states_that_never_occur(build):
    options = {"states": {"x0": [0, 1, 2]}} if build is pairwise_mrf else {}
    data = STATES if build is pairwise_mrf else np.where(np.arange(3) > 0, STATES, 0)
    with pytest.raises(TableError, match="'x0'"):
        build(data, bias_scale=np.inf, **options)


@pytest.mark.parametrize("build", [ising, ising_neighbourhoods, hidden_causes])
def test_declared_states_say_which_value_is_one(build):
    words = np.array(["yes", "no"])[STATES]
    turned = build(words, states=["yes", "no"])
    observed = [m.rvs_to_values[m["x"]].eval(mode="FAST_COMPILE") for m in (turned, build(words))]
    np.testing.assert_array_equal(observed[0], STATES)
    np.testing.assert_array_equal(observed[1], 1 - STATES)
