"""Dirichlet-process mixtures of regressions: held-out error against other regressions, time of a sweep.

Run ``OPENBLAS_NUM_THREADS=1 uv run python benchmarks/dp_glm.py [--scale S] [--draws N]``. Errors are root mean squares over
a quarter of the rows that no method saw, in standard deviations of the response, the mean of three random
splits; baselines choose their options by cross-validation on the other rows. Times are CPU seconds of one core.
"""

import argparse
import logging
import time
import warnings

import numpy as np
import pandas as pd
import pymc as pm

from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV

import bayesstruct as bs

from bayesstruct.models.dp_glm import dp_glm
from bayesstruct.steps import DirichletMixtureGibbs


def tables():
    """Tables by their names: one bundled with scikit-learn, one whose regression bends."""
    diabetes = load_diabetes(as_frame=True, scaled=False)
    yield "diabetes (442 x 10)", diabetes.data, diabetes.target
    yield "diabetes, bmi and blood pressure", diabetes.data[["bmi", "bp"]], diabetes.target
    rng = np.random.default_rng(0)
    t = rng.uniform(-3, 3, 400)
    noise = np.where(t > 0, 0.1, 0.4)
    yield (
        "sine with two noises (400 x 1)",
        pd.DataFrame({"t": t}),
        pd.Series(np.sin(2 * t) + noise * rng.normal(size=400)),
    )


def baselines(x, y, new):
    """Predictions of other regressions, columns and response standardised."""
    grid = {"alpha": np.logspace(-3, 1, 6), "gamma": np.logspace(-3, 0.5, 6)}
    kernel = ConstantKernel() * RBF(np.ones(x.shape[1])) + WhiteKernel()
    models = {
        "linear": LinearRegression(),
        "kernel ridge": GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5),
        "Gaussian process": GaussianProcessRegressor(kernel, random_state=0),
    }
    return {name: model.fit(x, y).predict(new) for name, model in models.items()}


def mixture(x, y, new, options):
    """Predictions of the mixture, as a mean and a standard deviation."""
    model = dp_glm(pd.DataFrame(x), y, coefficient_scale=options.scale)
    with model:
        idata = pm.sample(
            options.draws,
            tune=options.draws // 2,
            chains=2,
            cores=1,
            random_seed=1,
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
        )
    return bs.mixture_predictions(idata, new), idata["posterior"]["n_clusters"].mean().item()


def errors(x, y, options):
    """Root mean square errors of all methods over splits, and how well deviations fit."""
    x, y = x.to_numpy(float), y.to_numpy(float)
    found, inside, clusters = {}, [], []
    for seed in range(options.splits):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        out, kept = np.split(order, [len(y) // 4])
        a, b = x[kept].mean(axis=0), x[kept].std(axis=0)
        c, d = y[kept].mean(), y[kept].std()
        train, new = (x[kept] - a) / b, (x[out] - a) / b
        known, truth = (y[kept] - c) / d, (y[out] - c) / d
        predicted = baselines(train, known, new)
        mine, number = mixture(train, known, new, options)
        predicted["mixture"] = mine["mean"].to_numpy()
        inside.append((abs(truth - mine["mean"]) < 2 * mine["sd"]).mean())
        clusters.append(number)
        for name, value in predicted.items():
            found.setdefault(name, []).append(np.sqrt(np.mean((value - truth) ** 2)))
    return {k: np.mean(v) for k, v in found.items()}, np.mean(inside), np.mean(clusters)


def sweeps(n=1000, p=10, draws=50):
    """CPU milliseconds of a call of the step, and clusters at the end."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 6, n)
    x = 3 * rng.normal(size=(6, p))[kind] + rng.normal(size=(n, p))
    y = (x * rng.normal(size=(6, p))[kind]).sum(axis=1) + rng.normal(size=n)
    for family, response in (("gaussian", y), ("logistic", y > np.median(y))):
        with dp_glm(x, response, family=family, alpha=1.0) as model:
            step = DirichletMixtureGibbs(model.value_vars, rng=np.random.default_rng(1))
        step.setup_chain(np.random.default_rng(1), 0, 1)
        point = model.initial_point()
        for _ in range(50):
            point, [known] = step.step(point)
        start = time.process_time()
        for _ in range(draws):
            point, [known] = step.step(point)
        cost = (time.process_time() - start) / draws
        yield family, 1000 * cost, known["n_clusters"]


def main():
    """Print both sides of every comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=2.0)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    for family, cost, used in sweeps():
        print(f"n = 1,000, 10 columns, {family}: {cost:.1f} ms a sweep, {used} clusters (6 true)")
    for name, x, y in tables():
        found, inside, clusters = errors(x, y, options)
        line = ", ".join(f"{method} {value:.3f}" for method, value in found.items())
        print(f"{name}: {line}; {inside:.0%} within 2 sd; {clusters:.1f} clusters", flush=True)


if __name__ == "__main__":
    main()
