"""Latent features of other tables: cost of a draw, and recovery of the true features.

    uv run python benchmarks/feature_models.py            # about three minutes
    uv run python benchmarks/feature_models.py --tables 1 --draws 50            # a minute

Two tables each: `hidden_causes` on 500 rows of 20 binary columns with four causes, `sparse_factor_analysis` and `infinite_ica` on 200
rows of eight columns with two factors, `elimination_by_aspects` on all pairs of ten options. CPU seconds are those of
``pm.sample`` with two chains of 500 + 500 draws, compilation included; a draw is one call of the step alone.
"""

import argparse
import logging
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import pymc as pm

import bayesstruct as bs

OPTIONS = argparse.Namespace(tables=2, draws=500)


def timed(model, names):
    """Result of sampling, its CPU seconds, and the milliseconds of a call of the step."""
    begin = time.process_time()
    with model:
        idata = pm.sample(
            OPTIONS.draws,
            tune=OPTIONS.draws,
            chains=2,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
        spent = time.process_time() - begin
        methods = pm.sampling.mcmc.assign_step_methods(model)[1]
        [kind] = [m for m in methods if model.rvs_to_values[model["feature"]] in methods[m]]
        step = kind([model[name] for name in names], rng=np.random.default_rng(2))
    step.setup_chain(np.random.default_rng(2), 0, 1)
    values = {name: idata["posterior"][name][0, -1].to_numpy() for name in names}
    point = model.initial_point() | {
        model.rvs_to_values[model[n]].name: v for n, v in values.items()
    }
    point, _ = step.step(point)
    begin = time.process_time()
    for _ in range(100):
        point, _ = step.step(point)
    return idata, spent, 10 * (time.process_time() - begin)


def report(name, idata, spent, call, found):
    worst = max(row.r_hat for row in bs.check(idata).rows if np.isfinite(row.r_hat))
    print(
        f"{name}: {spent:.0f} CPU s, {call:.2f} ms a call, worst R-hat {worst:.3f}; {found}",
        flush=True,
    )


def causes(seed):
    made = bs.simulate.hidden_causes(500, 20, n_causes=4, random_seed=seed)
    names = ("feature", "cause")
    idata, *cost = timed(bs.models.hidden_causes(made.data), names)
    links = (bs.feature_membership(idata).to_numpy() > 0.5).T
    truth = made.feature.to_numpy().astype(bool).T
    wrong = sum(min((t != link).sum() for link in links) for t in truth)
    report("hidden causes", idata, *cost, f"{wrong} of {truth.size} links wrong")


def factors(model, seed):
    rng = np.random.default_rng(seed)
    z = rng.random((200, 2)) < 0.4
    loading = np.array([[1.0, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, -1, -1]])
    x = (2 * z * rng.laplace(size=z.shape)) @ loading + 0.2 * rng.standard_normal((200, 8))
    names = ("feature", "score", "loading")
    idata, *cost = timed(model(pd.DataFrame(x)), names)
    there = bs.feature_table(idata).query("probability > 0.5")["feature"]
    table = bs.loading_table(idata).pivot(index="feature", columns="variable", values="mean")
    found = table.loc[there].to_numpy()
    cosines = np.abs(found @ loading.T) / np.linalg.norm(found, axis=1)[:, None] / 2
    text = f"cosines with the true loadings {cosines.max(axis=0).round(3).tolist()}, {len(there)} factors"
    report(model.__name__, idata, *cost, text)


def choices(seed, n=10, trials=30):
    rng = np.random.default_rng(seed)
    z, w = rng.random((n, 4)) < 0.5, np.abs(rng.standard_normal(4)) + 0.3
    first, second = np.triu_indices(n, 1)
    gain = [(z[a] & ~z[b]) @ w for a, b in ((first, second), (second, first))]
    total = gain[0] + gain[1]
    p = 0.99 * np.where(total > 0, gain[0] / np.where(total > 0, total, 1), 0.5) + 0.005
    wins = np.zeros((n, n), int)
    wins[first, second] = rng.binomial(trials, p)
    wins[second, first] = trials - wins[first, second]
    idata, *cost = timed(bs.models.elimination_by_aspects(wins), ("feature", "interaction"))
    mean = idata["posterior"]["probability"].mean(("chain", "draw")).to_numpy()
    plain = wins[first, second] / trials
    text = f"error of probabilities {np.abs(mean - p).mean():.3f}, of shares {np.abs(plain - p).mean():.3f}"
    report("elimination by aspects", idata, *cost, text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=OPTIONS.tables)
    parser.add_argument("--draws", type=int, default=OPTIONS.draws)
    parser.parse_args(namespace=OPTIONS)
    logging.getLogger("pymc").setLevel(logging.ERROR)
    for seed in range(OPTIONS.tables):
        causes(seed)
        factors(bs.models.sparse_factor_analysis, seed)
        factors(bs.models.infinite_ica, seed)
        choices(seed)


if __name__ == "__main__":
    main()
