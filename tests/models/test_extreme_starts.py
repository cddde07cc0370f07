"""Every sampler of structures forgets where it began: chains from none and from too much structure, on small weak tables."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from tools.mixing import assert_starts_forgotten

import bayesstruct as bs


def numbers(rng, n=8):
    x = rng.standard_normal((n, 3))
    x[:, 1] += 0.6 * x[:, 0]
    return pd.DataFrame(x, columns=list("abc"))


def codes(rng, k=2):
    x = rng.integers(0, k, (6 + 3 * k, 3))
    x[:k] = np.arange(k)[:, None]
    x[3:6, 1] = x[3:6, 0]
    return pd.DataFrame(x, columns=list("abc"))


def links(rng, n=5):
    upper = np.triu(rng.integers(0, 2, (n, n)), 1)
    upper[0, 1:3] = 1, 0
    return upper + upper.T


def similarities(rng, n=4):
    upper = np.triu(rng.uniform(0, 9, (n, n)), 1)
    return upper + upper.T


def series(rng):
    """Three series of five rows, about two levels."""
    x = rng.integers(0, 2, 15) + 0.7 * rng.normal(size=15)
    return pd.DataFrame({"who": np.repeat(list("abc"), 5), "x": x})


def response(rng, family):
    x = rng.normal(size=10)
    y = x + rng.normal(size=10)
    y = {"gaussian": y, "logistic": (y > 0).astype(int), "poisson": rng.poisson(np.exp(x / 2))}
    return pd.DataFrame({"x": x, "y": y[family]})


# --- starts: no structure, and more than the posterior has ------------------------------------


def filled(name, value):
    """All entries of a variable zero, or all with this value."""

    def starts(point):
        full = np.full_like(point[name], value)
        if name == "coefficients":
            np.fill_diagonal(full, 0.0)
        return {name: np.zeros_like(full)}, {name: full}

    return starts


def all_arcs(point):
    dag = np.tril(np.ones_like(point["dag"]), -1)
    return {"dag": np.zeros_like(dag)}, {"dag": dag}


def own_clusters(point):
    n = len(point["cluster"])
    return {"cluster": np.zeros(n, int)}, {"cluster": np.arange(n)}


def own_features(point):
    """No feature, or one that all have and one for each of four."""
    full = {}
    for name in {"feature", "column_feature"} & set(point):
        full[name] = z = np.zeros_like(point[name])
        z[:, 0] = 1
        own = np.arange(min(4, len(z)))
        z[own, 1 + own] = 1
    used = [full[name].any(axis=0) for name in sorted(full, reverse=True)]  # of the rows first
    if "score" in point:
        full["score"] = np.where(full["feature"] == 1, 0.3, 0.0)
    if "cause" in point:
        full["cause"] = np.zeros_like(point["cause"])
        full["cause"][:, 0] = 1
    if "loading" in point:
        full["loading"] = 0.5 * used[0][:, None] * np.ones_like(point["loading"])
    if point.get("interaction", np.zeros(0)).ndim == 2:
        full["interaction"] = 0.5 * np.outer(used[0], used[-1])
    elif "interaction" in point:
        full["interaction"] = 0.5 * used[0]
    return {name: np.zeros_like(value) for name, value in full.items()}, full


def own_behaviours(point):
    """One behaviour that all series have, alone or beside one of each series."""
    few = np.zeros_like(point["feature"])
    few[:, 0] = 1
    many = few.copy()
    many[np.arange(len(many)), 1 + np.arange(len(many))] = 1
    return tuple(_behaviours(point, z) for z in (few, many))


def _behaviours(point, z):
    own = z[:, :, None] * z[:, None, :]
    used = 1.0 * z.any(axis=0)[:, None]
    return {
        "feature": z,
        "transition": own / np.maximum(own.sum(axis=2, keepdims=True), 1),
        "emission_mean": 0.5 * used * np.ones_like(point["emission_mean"]),
        "emission_scale": used * np.ones_like(point["emission_scale"]),
    }


# --- what is compared --------------------------------------------------------------------------


def lines(name):
    return lambda draws: {str(k): v for k, v in enumerate(np.moveaxis(draws[name].values, 2, 0))}


def nonzero(draws):
    return {"coefficients that are not zero": (draws["coefficients"].values != 0).sum(axis=(2, 3))}


def features(draws):
    z = draws["feature"].values
    return {"features": z.any(axis=2).sum(axis=2), "entries": z.sum(axis=(2, 3))}


def clusters(draws):
    labels = np.sort(draws["cluster"].values, axis=2)
    return {"clusters": 1 + (np.diff(labels, axis=2) > 0).sum(axis=2)}


M, EDGES, ARCS = bs.models, lines("edge"), lines("arc")
# Model of a table that is drawn, its two starts, and quantities.
CASES = {
    "gaussian": (lambda r: M.gaussian_graphical(numbers(r)), filled("edge", 1), EDGES),
    "gaussian_beta": (
        lambda r: M.gaussian_graphical(numbers(r), edge_probability=pm.Beta.dist(1, 1)),
        filled("edge", 1),
        EDGES,
    ),
    "gaussian_g_wishart": (
        lambda r: M.gaussian_graphical(numbers(r), prior="g_wishart"),
        filled("edge", 1),
        EDGES,
    ),
    "neighbourhoods": (
        lambda r: M.gaussian_neighbourhoods(numbers(r)),
        filled("coefficients", 0.3),
        nonzero,
    ),
    "ising_neighbourhoods": (
        lambda r: M.ising_neighbourhoods(codes(r)),
        filled("coefficients", 0.3),
        nonzero,
    ),
    "ising": (lambda r: M.ising(codes(r)), filled("weight", 0.5), EDGES),
    "ising_exact": (
        lambda r: M.ising(codes(r), likelihood="exact"),
        filled("weight", 0.5),
        EDGES,
    ),
    "ordinal": (
        lambda r: M.pairwise_mrf(codes(r, 3), potentials="ordinal"),
        filled("weight", 0.5),
        EDGES,
    ),
    "full": (lambda r: M.pairwise_mrf(codes(r, 3)), filled("potential", 0.3), EDGES),
    "bge": (lambda r: M.bayesian_network(numbers(r)), all_arcs, ARCS),
    "bdeu": (lambda r: M.bayesian_network(codes(r), score="bdeu"), all_arcs, ARCS),
    "order": (lambda r: M.bayesian_network(numbers(r), prior="order"), all_arcs, ARCS),
    "bic": (lambda r: M.bayesian_network(numbers(r), score="gaussian"), all_arcs, ARCS),
    "features": (lambda r: M.latent_features(numbers(r, 5)), own_features, features),
    "features_slice": (
        lambda r: M.latent_features(numbers(r, 5), sampler="slice"),
        own_features,
        features,
    ),
    "links": (lambda r: M.link_prediction(links(r)), own_features, features),
    "factorization": (
        lambda r: M.binary_matrix_factorization(numbers(r, 5)),
        own_features,
        features,
    ),
    "clustering": (lambda r: M.additive_clustering(similarities(r)), own_features, features),
    "complexes": (lambda r: M.protein_complexes(links(r)), own_features, features),
    "causes": (lambda r: M.hidden_causes(codes(r)), own_features, features),
    "factors": (lambda r: M.sparse_factor_analysis(numbers(r)), own_features, features),
    "components": (lambda r: M.infinite_ica(numbers(r)), own_features, features),
    "aspects": (
        lambda r: M.elimination_by_aspects(r.poisson(1.5, (4, 4)) + np.eye(4, k=1, dtype=int)),
        own_features,
        features,
    ),
    "series": (
        lambda r: M.markov_transitions(series(r), series="who"),
        own_behaviours,
        features,
    ),
} | {
    f"mixture_{family}": (
        lambda r, family=family: M.dp_glm(response(r, family), response="y", family=family),
        own_clusters,
        clusters,
    )
    for family in ("gaussian", "logistic", "poisson")
}


def run(case, seed, draws):
    """Quantities of two chains, one from each start."""
    make, starts, quantities = CASES[case]
    with make(np.random.default_rng(seed)) as model:
        idata = pm.sample(
            draws,
            tune=200,
            chains=2,
            cores=1,
            initvals=list(starts(model.initial_point())),
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
    return quantities(idata["posterior"])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_chains_forget_where_they_began(case):
    for seed in (1, 2):
        assert_starts_forgotten(run(case, seed, 2_000))


@pytest.mark.chain
def test_a_chain_that_keeps_its_start_is_noticed(monkeypatch):
    from bayesstruct.features.kernels import aspect_moves

    monkeypatch.setattr(aspect_moves, "move_aspects", lambda rng, z, w, used, *_: used)
    with pytest.raises(AssertionError, match="from one start and"):
        assert_starts_forgotten(run("aspects", 2, 400))
