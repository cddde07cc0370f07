"""Draws, mode and main table of every model, compared with those of an earlier commit.

    python tests/tools/compliance.py record FILE [CASE ...]     write the results of this code
    python tests/tools/compliance.py compare FILE [CASE ...]    say which results differ from them

A change of the layout must leave the results as they are, bit for bit on one machine. A change of a
sampler alters them on purpose: record `compliance.npz` anew in the same commit, and say why in its
message. Between processors the last bits of floating-point numbers differ, so that the test that
reads the stored file allows for rounding.
"""

import argparse
import logging
import os
import sys
import time
import warnings

from pathlib import Path

import numpy as np
import pandas as pd

STORED = Path(__file__).with_name("compliance.npz")


def _rng():
    return np.random.default_rng(20261129)


def numbers(n=40, d=4, missing=0):
    """Columns of a chain of normal variables in different units."""
    rng = _rng()
    x = rng.standard_normal((n, d))
    for j in range(1, d):
        x[:, j] += 0.8 * x[:, j - 1]
    x = x * (1.0 + np.arange(d)) + 10.0 * np.arange(d)
    rows = rng.choice(n, size=missing, replace=False)
    x[rows, rng.integers(0, d, size=missing)] = np.nan
    return pd.DataFrame(x, columns=list("abcdefgh"[:d]))


def skewed(n=60, d=4):
    """Columns of a chain of exponential variables."""
    x = _rng().exponential(size=(n, d)) @ np.linalg.inv(np.eye(d) - 0.8 * np.eye(d, k=1))
    return pd.DataFrame(x, columns=list("abcdefgh"[:d]))


def mixed():
    """Columns of numbers, two of them cut into classes."""
    x = numbers(missing=4)
    x["c"] = pd.cut(x["c"], [-100.0, 18.0, 22.0, 100.0])
    x["d"] = x["d"] > 30
    return x


def with_states():
    """Columns of numbers and one of three states without an order."""
    x = mixed()
    state = np.where(x["b"] > 11, "up", np.where(x["a"] > 0, "left", "right"))
    return x.assign(b=pd.Categorical(np.where(x["b"].isna(), None, state)))


def codes(n=60, d=4, states=2, missing=0):
    """Columns of states, each like the one before it."""
    rng = _rng()
    x = rng.integers(0, states, size=(n, d)).astype(float)
    for j in range(1, d):
        x[:, j] = np.where(rng.random(n) < 0.6, x[:, j - 1], x[:, j])
    rows = rng.choice(n, size=missing, replace=False)
    x[rows, rng.integers(0, d, size=missing)] = np.nan
    return pd.DataFrame(x, columns=list("abcdefgh"[:d]))


def links(n=8):
    """Symmetric links of objects in two groups."""
    rng = _rng()
    same = np.equal.outer(np.arange(n) % 2, np.arange(n) % 2)
    upper = np.triu((rng.random((n, n)) < np.where(same, 0.8, 0.2)).astype(float), 1)
    return upper + upper.T


def similarities(n=8):
    """Symmetric similarities of objects."""
    return links(n) + 0.1 * np.add.outer(np.arange(n), np.arange(n))


def wins(n=6):
    """Counts of choices between pairs of options."""
    out = _rng().integers(1, 6, size=(n, n)).astype(float)
    np.fill_diagonal(out, 0.0)
    return out


def paths(n=25, series=3):
    """Series that switch between two levels."""
    rng = _rng()
    level = 3.0 * (np.cumsum(rng.random((series, n)) < 0.1, axis=1) % 2)
    return [level[i, :, None] + rng.standard_normal((n, 2)) for i in range(series)]


def response(n=40, family="gaussian"):
    """Two clusters with different slopes."""
    rng = _rng()
    group, x = rng.integers(0, 2, n), rng.standard_normal(n)
    eta = np.where(group == 1, 1.5 * x, -1.5 * x)
    y = {"gaussian": eta + 0.3 * rng.standard_normal(n), "logistic": (eta > 0) * 1.0}
    y["poisson"] = rng.poisson(np.exp(0.5 * eta))
    return pd.DataFrame({"x": x + 3.0 * group, "y": y[family]})


def _edges(bs, idata):
    return bs.edge_table(idata)


def _differences(bs, idata):
    return bs.difference_table(idata)


def _arcs(bs, idata):
    return bs.arc_table(idata)


def _features(bs, idata):
    return bs.feature_table(idata)


def _clusters(bs, idata):
    return bs.cluster_table(idata)


def _symmetrized(bs, idata):
    return bs.edge_table(bs.symmetrize(idata))


def _links(bs, idata):
    return bs.link_probabilities(idata)


def _supports(bs, idata):
    return bs.support_table(idata)


def group_regression(bs):
    """Return a regression whose groups of coefficients may be zero."""
    import pymc as pm

    x = numbers().to_numpy()
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    y = 0.7 * x[:, 2] + _rng().standard_normal(len(x))
    with pm.Model() as model:
        w = bs.GroupSpikeAndSlab("w", 0.4, 1.0, groups=[0, 1, 1, 0])
        bs.support(w)
        pm.Normal("y", x @ w, pm.HalfNormal("noise", 1.0), observed=y)
    return model


# Name of the case: model, data, options, table of the result, and whether the mode is found too.
CASES = {
    "gaussian": ("gaussian_graphical", numbers(), {}, _edges, True),
    "gaussian_beta": ("gaussian_graphical", numbers(missing=4), "beta", _edges, True),
    "gaussian_laplace": ("gaussian_graphical", numbers(), {"prior": "laplace"}, _edges, True),
    "gaussian_g_wishart": ("gaussian_graphical", numbers(missing=4), {"prior": "g_wishart"}, _edges, True),
    "gaussian_horseshoe": ("gaussian_graphical", numbers(), {"prior": "horseshoe"}, _edges, False),
    "gaussian_student": (
        "gaussian_graphical", numbers(missing=4), {"marginals": "student"}, _edges, False,
    ),
    "gaussian_alternative": (
        "gaussian_graphical", numbers(missing=4), {"marginals": "alternative_student"}, _edges, False,
    ),
    "gaussian_mixed": (
        "gaussian_graphical", mixed(), {"marginals": "mixed"}, _edges, False,
    ),
    "gaussian_states": (
        "gaussian_graphical", with_states(), {"marginals": "mixed"}, _edges, False,
    ),
    "gaussian_covariates": ("gaussian_graphical", numbers(), "covariates", _edges, True),
    "gaussian_cov": (
        "gaussian_graphical", None, {"cov": numbers().cov(), "n": 40}, _edges, True,
    ),
    "grouped": (
        "grouped_gaussian_graphical", numbers(missing=4), {"group": [*"ab"] * 20}, _differences, True,
    ),
    "gaussian_pseudo": (
        "gaussian_graphical", numbers(), {"prior": "pseudo_likelihood"}, _edges, True,
    ),
    "gaussian_chain": ("locally_constant_gaussian_graphical", numbers(missing=3), {}, _edges, True),
    "gaussian_nodes": ("node_selection_gaussian_graphical", numbers(), {}, _edges, True),
    "gaussian_nodes_laplace": (
        "node_selection_gaussian_graphical", numbers(), {"prior": "laplace", "norm": "linf"}, _edges, True,
    ),
    "gaussian_blocks": (
        "blockwise_gaussian_graphical", numbers(), {"blocks": [*"xxyy"]}, _edges, True,
    ),
    "gaussian_nuclear": (
        "blockwise_gaussian_graphical", numbers(), {"blocks": [*"xxyy"], "norm": "nuclear"}, _edges, True,
    ),
    "gaussian_unknown_blocks": ("blockwise_gaussian_graphical", numbers(), {}, _edges, True),
    "group_regression": (group_regression, None, {}, _supports, False),
    "neighbourhoods": ("gaussian_neighbourhoods", numbers(), {}, _symmetrized, False),
    "neighbourhoods_laplace": (
        "gaussian_neighbourhoods", numbers(), {"prior": "laplace"}, _arcs, True,
    ),
    "neighbourhoods_horseshoe": (
        "gaussian_neighbourhoods", numbers(), {"prior": "horseshoe"}, None, False,
    ),
    "ising_neighbourhoods": ("ising_neighbourhoods", codes(), {}, _symmetrized, False),
    "ising_neighbourhoods_laplace": (
        "ising_neighbourhoods", codes(), {"prior": "laplace"}, _arcs, True,
    ),
    "ising": ("ising", codes(missing=3), {}, _edges, True),
    "ising_exact": ("ising", codes(), {"likelihood": "exact"}, _edges, True),
    "ising_laplace": ("ising", codes(missing=3), {"prior": "laplace"}, _edges, True),
    "ising_groups": ("ising", codes(missing=3), {"group": [*"ab"] * 30}, _differences, False),
    "ordinal": ("pairwise_mrf", codes(states=3), {"potentials": "ordinal"}, _edges, True),
    "full": ("pairwise_mrf", codes(states=3), {}, _edges, True),
    "full_group_laplace": ("pairwise_mrf", codes(states=3), {"prior": "group_laplace"}, _edges, True),
    "tree": ("tree", numbers(), {}, _edges, False),
    "latent_tree": ("latent_tree", numbers(), {}, _edges, False),
    "latent_tree_states": ("latent_tree", codes(), {"score": "bdeu"}, _edges, False),
    "latent_tree_gaps": ("latent_tree", numbers(missing=4), {}, _edges, False),
    "tree_gaps": ("tree", numbers(missing=4), {}, _edges, False),
    "tree_states": ("tree", codes(states=3), {"score": "bdeu"}, _edges, False),
    "tree_states_gaps": ("tree", codes(missing=4), {"score": "bdeu"}, _edges, False),
    "tree_mixed": ("tree", with_states().dropna(), {"score": "mixed"}, _edges, True),
    "tree_mixed_gaps": ("tree", with_states(), {"score": "mixed"}, _edges, False),
    "forest": ("forest", numbers(), {}, _edges, True),
    "forest_gaps": ("forest", numbers(missing=4), {}, _edges, False),
    "forest_states": ("forest", codes(states=3), {"score": "bdeu"}, _edges, True),
    "network": ("bayesian_network", numbers(), {}, _arcs, True),
    "network_large": ("bayesian_network", numbers(d=8), {"max_parents": 3}, _arcs, True),
    "network_order": ("bayesian_network", numbers(), {"prior": "order"}, _arcs, False),
    "network_bdeu": ("bayesian_network", codes(states=3), {"score": "bdeu"}, _arcs, True),
    "network_gaps": ("bayesian_network", numbers(missing=4), {}, _arcs, True),
    "network_states_gaps": (
        "bayesian_network", codes(missing=4), {"score": "bdeu"}, _arcs, True,
    ),
    "network_bic": ("bayesian_network", numbers(), {"score": "gaussian"}, _arcs, True),
    "linear_sem": ("linear_sem", numbers(), {"noise": "laplace"}, _arcs, True),
    "linear_sem_gaps": (
        "linear_sem", numbers(missing=4), {"noise": "mixture", "variances": "equal"}, _arcs, False,
    ),
    "lingam": ("lingam", skewed(), {}, _arcs, False),
    "network_mixed": ("bayesian_network", with_states().dropna(), {"score": "mixed"}, _arcs, True),
    "network_mixed_missing": (
        "bayesian_network", with_states(), {"score": "mixed"}, _arcs, False,
    ),
    "classifier": (
        "network_classifier", codes(states=3), {"target": "c", "equivalent_sample_size": 1.0}, _arcs, True,
    ),
    "features": ("latent_features", numbers(missing=3), {}, _features, False),
    "features_slice": ("latent_features", numbers(n=20), {"sampler": "slice"}, _features, False),
    "features_accelerated": (
        "latent_features", numbers(n=20), {"sampler": "accelerated"}, _features, False,
    ),
    "links": ("link_prediction", links(), {}, _links, False),
    "factorization": ("binary_matrix_factorization", numbers(n=8), {}, _links, False),
    "additive_clustering": ("additive_clustering", similarities(), {}, _links, False),
    "complexes": ("protein_complexes", links(), {}, _links, False),
    "causes": ("hidden_causes", codes(n=20), {}, _features, False),
    "factors": ("sparse_factor_analysis", numbers(n=20), {}, _features, False),
    "ica": ("infinite_ica", numbers(n=20), {}, _features, False),
    "aspects": ("elimination_by_aspects", wins(), {}, _features, False),
    "series": ("markov_transitions", paths(), {}, None, False),
    "mixture": ("dp_glm", response(), {"response": "y"}, _clusters, False),
    "mixture_logistic": (
        "dp_glm", response(family="logistic"), {"response": "y", "family": "logistic"}, _clusters, False,
    ),
    "mixture_poisson": (
        "dp_glm", response(family="poisson"), {"response": "y", "family": "poisson"}, _clusters, False,
    ),
}  # fmt: skip

#: Options by the name of the simulator; a word after a colon tells several of one apart.
SIMULATIONS = {
    "bayesian_network": {"n": 12, "p": 5, "interventions": 0.2},
    "dp_glm": {"n": 12},
    "gaussian_graphical": {"n": 12, "p": 5, "missing": 0.1},
    "hidden_causes": {"n": 12, "p": 5},
    "ising": {"n": 12, "p": 5},
    "latent_features": {"n": 12, "d": 5, "missing": 0.1},
    "latent_tree": {"n": 12, "p": 6},
    "latent_tree:states": {"n": 12, "p": 6, "kind": "discrete", "states": 3, "shape": "leaves"},
    "latent_tree:chain": {"n": 12, "p": 6, "shape": "chain"},
    "latent_tree:double_star": {"n": 12, "p": 6, "shape": "double_star"},
    "linear_sem": {"n": 12, "p": 5, "interventions": 0.2},
    "link_prediction": {"n": 12},
    "markov_transitions": {"n": 12},
    "pairwise_mrf": {"n": 12, "p": 4, "states": 3},
}


def build(bs, case):
    """Return the model of a case."""
    import pymc as pm

    name, data, options, *_ = CASES[case]
    if callable(name):
        return name(bs)
    if options == "beta":
        options = {"edge_probability": pm.Beta.dist(1, 2)}
    elif options == "covariates":
        options = {"covariates": pd.DataFrame({"z": _rng().standard_normal(len(data))})}
    return getattr(bs.models, name)(data, **options)


def results(case):
    """Everything that is compared of one case, as arrays by name."""
    import arviz as az
    import pymc as pm

    import bayesstruct as bs

    if case == "simulations":
        return _simulations(bs)
    *_, table, mode = CASES[case]
    out = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = build(bs, case)
        with model:
            keep = {"progressbar": False, "random_seed": 7}
            idata = pm.sample(
                draws=20, tune=20, chains=2, cores=1, nuts_sampler="pymc",
                compute_convergence_checks=False, **keep,
            )  # fmt: skip
            _add(out, "posterior", idata["posterior"])
            rows = case != "gaussian_pseudo"  # whose likelihood is no distribution of rows
            if rows and case.endswith("gaps") is False:
                _add(out, "prior", pm.sample_prior_predictive(3, random_seed=7)["prior"])
            if rows:
                new = pm.sample_posterior_predictive(idata.isel(draw=slice(0, 2)), **keep)
                _add(out, "predictive", new["posterior_predictive"])
            if mode:
                for name, value in bs.find_MAP().items():
                    out[f"mode/{name}"] = np.asarray(value)
    # The results on record have intervals of this probability.
    with warnings.catch_warnings(), az.rc_context({"stats.ci_prob": 0.94}):
        warnings.simplefilter("ignore")
        if table is not None:
            _add_table(out, table(bs, idata))
        if table is not _clusters:  # whose parameters have no meaning of their own
            _add_table(out, bs.check(idata).to_frame(), "check")
    return out


def _simulations(bs):
    out = {}
    for name, options in SIMULATIONS.items():
        made = getattr(bs.simulate, name.partition(":")[0])(**options, random_seed=3)
        fields = getattr(made, "__dict__", None) or made._asdict()
        for field, value in fields.items():
            array = value.to_numpy() if isinstance(value, pd.DataFrame) else value
            if isinstance(array, np.ndarray) and array.dtype.kind in "biuf":
                out[f"{name}/{field}"] = array
    return out


def _add(out, group, dataset):
    for name, value in dataset.data_vars.items():
        if value.dtype.kind in "biuf":
            out[f"{group}/{name}"] = value.values


def _add_table(out, table, name="table"):
    if hasattr(table, "to_dataframe"):
        table = table.to_dataframe(name="value") if table.name is None else table.to_dataframe()
    for column in table.columns:
        value = table[column].to_numpy()
        if value.dtype.kind in "biuf":
            out[f"{name}/{column}"] = value


#: R-hat and effective sizes are those of ranks. Draws that are equal but for rounding can have other ranks, and draws
#: themselves are on record: R-hat may differ a little, and effective sizes of the few draws of a record by any number.
_RANKED = {"check/r_hat": 0.05, "check/ess_bulk": np.inf, "check/ess_tail": np.inf}


def differences(stored, found, *, rtol=0.0):
    """Names of the arrays that differ by more than rounding, with the largest difference."""
    out = dict.fromkeys(set(stored) - set(found), "is missing")
    out |= dict.fromkeys(set(found) - set(stored), "is new")
    for name in set(stored) & set(found):
        old, new = stored[name], found[name]
        if old.shape != new.shape:
            out[name] = f"has shape {new.shape}, not {old.shape}"
            continue
        near = max(rtol, _RANKED.get(name, 0.0)) if rtol else 0.0
        if np.isfinite(near) and not np.allclose(new, old, rtol=near, atol=near, equal_nan=True):
            out[name] = (
                f"differs by up to {np.nanmax(np.abs(np.subtract(new, old, dtype=float))):.3g}"
            )
    return out


def read(path=STORED):
    """Arrays of each case from a file."""
    out = {}
    with np.load(path) as file:
        for key in file.files:
            case, _, name = key.partition("/")
            out.setdefault(case, {})[name] = file[key]
    return out


def main(argv=None):
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args(argv)
    logging.getLogger("pymc").setLevel(logging.ERROR)
    chosen = args.cases or [*CASES, "simulations"]
    stored = read(args.file) if args.file.exists() else {}
    failed = 0
    for case in chosen:
        start = time.time()
        found = results(case)
        note = f"{case}: {len(found)} arrays, {time.time() - start:.0f} s"
        if args.action == "record":
            stored[case] = found
        else:
            wrong = differences(stored.get(case, {}), found)
            beyond = differences(stored.get(case, {}), found, rtol=1e-6)
            failed += bool(beyond)
            note += (
                f", DIFFERENT: {beyond}" if beyond else f", but for rounding: {wrong}" * bool(wrong)
            )
            note += ", equal bit for bit" * (not wrong)
        print(note, flush=True)  # noqa: T201
        if args.action == "record":
            flat = {f"{c}/{name}": v for c, arrays in stored.items() for name, v in arrays.items()}
            np.savez_compressed(args.file, **flat)
    return failed > 0


if __name__ == "__main__":
    # As in the tests: graphs of PyTensor are interpreted, kernels are compiled.
    os.environ["PYTENSOR_FLAGS"] = "mode=FAST_COMPILE,cxx="
    sys.exit(main())
