"""Graphs of a table with missing values: one for each completed table."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy.special import betaln, logsumexp
from tools.enumeration import assert_matches_enumeration

import bayesstruct as bs

from bayesstruct.models import gaussian_graphical
from bayesstruct.precision.kernels.nodewise import pseudo_likelihood
from bayesstruct.precision.model_parts.imputed_graphs import TABLES
from bayesstruct.steps import GraphJumps

QUIET = {"progressbar": False, "compute_convergence_checks": False}
EDGES = np.array(list(itertools.product((0, 1), repeat=6)), np.int8)


def table(n=14, gaps=((0, "a"), (3, "b"), (3, "c"))):
    x = np.random.default_rng(0).normal(size=(n, 4))
    x[:, 1] += x[:, 0]
    x[:, 3] += 0.5 * x[:, 1]
    x = pd.DataFrame(10.0 + 2.0 * x, columns=list("abcd"))
    for row, column in gaps:
        x.loc[row, column] = np.nan
    return x


def model(**options):
    return gaussian_graphical(table(), prior="pseudo_likelihood", **options)


def log_weights(m, at, n=14):
    """Log pseudo-likelihood of every graph given one of the completed tables."""
    correlation = m.rvs_to_values[m["correlation"]].data[at]
    return 0.5 * np.array([float(pseudo_likelihood(correlation, s, float(n))) for s in EDGES])


def draws_of(m, draws=2_000, burn=50, seed=1):
    step = GraphJumps(m.free_RVs, model=m)
    step.setup_chain(np.random.default_rng(seed), burn, draws)
    point, out = m.initial_point(random_seed=1), []
    for k in range(draws + burn):
        point, [stats] = step.step(point)
        if k >= burn:
            out.append((point, stats))
    return out


@pytest.mark.statistical
def test_the_graph_of_each_completed_table_against_all_graphs():
    m = model(edge_probability=0.3, required=[("a", "c")])
    found = draws_of(m)
    graphs = np.array([point["edge_imputed"] for point, _ in found])
    mixture = np.zeros(len(EDGES))
    for at in range(TABLES):
        log = log_weights(m, at) + EDGES.sum(1) * np.log(0.3 / 0.7)
        log[EDGES[:, 1] == 0] = -np.inf
        exact = np.exp(log - logsumexp(log))
        mixture += exact / TABLES
        if at in (0, TABLES - 1):
            assert_matches_enumeration(graphs[:, at], exact, states=EDGES)
    numbers = np.array([point["imputation"] for point, _ in found])
    chosen = graphs[np.arange(len(found)), numbers]
    assert_matches_enumeration(chosen, mixture, states=EDGES)
    reported = np.mean([stats["edge_inclusion"] for _, stats in found], axis=0)
    assert np.allclose(reported, EDGES.T @ mixture, atol=0.01)


@pytest.mark.statistical
def test_a_learned_edge_probability_is_one_for_each_table():
    m = model(edge_probability=pm.Beta.dist(1.5, 3.0), required=[("a", "c")])
    found = draws_of(m)
    graphs = np.array([point["edge_imputed"] for point, _ in found])
    odds = np.array([point["edge_probability_imputed_logodds__"] for point, _ in found])
    free = EDGES.sum(1) - EDGES[:, 1]
    for at in (0, 4):
        log = log_weights(m, at) + betaln(1.5 + free, 3.0 + 5 - free)
        log[EDGES[:, 1] == 0] = -np.inf
        exact = np.exp(log - logsumexp(log))
        assert_matches_enumeration(graphs[:, at], exact, states=EDGES)
        share = 1.0 / (1.0 + np.exp(-odds[:, at]))
        assert abs(share.mean() - exact @ ((1.5 + free) / 9.5)) < 0.02


@pytest.mark.chain
def test_the_density_is_that_of_all_tables():
    m = model(edge_probability=0.3)
    point = m.initial_point(random_seed=1)
    point["edge_imputed"][:] = 0
    point["edge_imputed"][3] = EDGES[21]
    expected = -np.log(TABLES)
    for at in range(TABLES):
        edges = EDGES[21] if at == 3 else EDGES[0]
        prior = np.where(edges, np.log(0.3), np.log(0.7)).sum()
        expected += log_weights(m, at)[21 if at == 3 else 0] + prior
    assert np.isclose(m.compile_logp()(point), expected)


@pytest.mark.chain
def test_the_model_is_sampled_and_read():
    with model(edge_probability=pm.Beta.dist(1, 4)):
        idata = pm.sample(60, tune=20, chains=2, cores=1, random_seed=1, **QUIET)
    draws = idata["posterior"]
    assert {"edge", "edge_probability", "imputation", "x_missing"} <= set(draws.data_vars)
    assert list(draws["missing"].values) == ["a[0]", "b[3]", "c[3]"]
    assert draws["edge"].dtype == "int8"
    number = draws["imputation"].values
    per_table = np.take_along_axis(draws["edge_imputed"].values, number[..., None, None], 2)
    assert (per_table[:, :, 0] == draws["edge"].values).all()
    assert len(np.unique(draws["x_missing"].values[..., 0])) == len(np.unique(number))
    assert abs(draws["x_missing"].values.mean() - 10.0) < 4.0  # units of the table
    known = idata["sample_stats"]["edge_inclusion"].values.mean((0, 1))
    assert np.allclose(bs.inclusion_probabilities(idata), known, atol=1e-6)
    assert any("pseudo-likelihood" in note for note in bs.check(idata).notes)

    drawn = bs.precision_draws(idata, draws=10, random_seed=1)
    assert drawn["posterior"]["precision"].shape == (2, 10, 4, 4)
    assert "x_missing" in drawn["posterior"]
    assert {"mean", "hdi_low"} <= set(bs.edge_table(drawn).columns)
    few = idata.copy()
    few["posterior"] = few["posterior"].to_dataset().drop_vars("imputation")
    with pytest.raises(ValueError, match="which of the completed tables"):
        bs.precision_draws(few)


def test_a_chain_goes_on_from_its_point_and_generator():
    m = model(edge_probability=pm.Beta.dist(1, 4))
    whole = draws_of(m, draws=6, burn=0, seed=5)
    rng, point = np.random.default_rng(5), m.initial_point(random_seed=1)
    for at in range(6):
        if at in (0, 3):  # another process continues
            step = GraphJumps(m.free_RVs, model=m)
            step.setup_chain(rng, 0, 3)
        point, [stats] = step.step(point)
        assert (point["edge_imputed"] == whole[at][0]["edge_imputed"]).all()
        assert (stats["edge_inclusion"] == whole[at][1]["edge_inclusion"]).all()


def test_equal_tables_give_equal_models():
    values = [m.rvs_to_values[m["correlation"]].data for m in (model(), model())]
    assert np.array_equal(*values)


def test_there_is_no_mode():
    with pytest.raises(
        ValueError, match=r"find_MAP finds no mode of 'imputation'.*a table without missing values"
    ):
        bs.find_MAP(model())


def test_missing_codes_are_missing_values():
    x = table().fillna(-999.0)
    m = gaussian_graphical(x, prior="pseudo_likelihood", missing_codes=-999)
    assert list(m.coords["missing"]) == ["a[0]", "b[3]", "c[3]"]


@pytest.mark.statistical
def test_missing_values_cost_less_than_their_rows():
    # 20 % of the values of eight columns leave a sixth of the rows complete. Probabilities of true edges after
    # imputation are closer to those of the full table than those of the complete rows are.
    rng, distances = np.random.default_rng(1), []
    for _ in range(3):
        x = rng.normal(size=(100, 8))
        for j in (1, 2, 4, 6):
            x[:, j] += 0.6 * x[:, j - 1]
        full = pd.DataFrame(x)
        gaps = full.mask(rng.random(x.shape) < 0.2)
        found = []
        for rows in (full, gaps, gaps.dropna()):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", bs.TableWarning)  # many values are missing
                m = gaussian_graphical(rows, prior="pseudo_likelihood", edge_probability=0.2)
            stats = [s["edge_inclusion"] for _, s in draws_of(m, 150, 30)]
            found.append(np.mean(stats, axis=0))
        distances.append([np.abs(one - found[0]).mean() for one in found[1:]])
    imputed, complete = np.mean(distances, axis=0)
    assert imputed < 0.6 * complete
