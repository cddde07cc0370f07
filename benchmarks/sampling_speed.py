"""Sampling time of this code over that of another clone, model by model.

    uv run python benchmarks/sampling_speed.py OTHER_CLONE [--repeats 3] [--only MODEL ...]

The other clone, at an earlier commit, needs an environment of its own (``uv sync`` there). Each run is a fresh
process; the first call of `pm.sample` compiles and does not count, the least of the others does. Runs of the two
clones alternate. A change that makes the first draw faster may slow sampling by 5 % at most.
"""

import argparse
import json
import logging
import os
import subprocess

from pathlib import Path

import numpy as np
import pandas as pd


def normal(rng, n, d):
    """Table of normal variables, each related to the next."""
    x = rng.standard_normal((n, d)) @ (np.eye(d) + 0.5 * np.eye(d, k=1))
    return pd.DataFrame(x, columns=[f"v{i}" for i in range(d)])


def states(rng, n, d, k=2):
    """Table of states, each often that of the column before."""
    x = rng.integers(0, k, (n, d))
    for j in range(1, d):
        x[:, j] = np.where(rng.random(n) < 0.6, x[:, j - 1], x[:, j])
    return pd.DataFrame(x, columns=[f"v{i}" for i in range(d)])


def links(rng, n):
    """Links of objects in two groups."""
    group = np.arange(n) % 2
    upper = np.triu(rng.random((n, n)) < np.where(group[:, None] == group, 0.8, 0.2), 1)
    return (upper + upper.T).astype(float)


def series(rng, n):
    """Series whose mean changes every ten rows."""
    high = (np.arange(n) % 20 < 10)[:, None]
    return [rng.standard_normal((n, 2)) + 3.0 * high for _ in range(4)]


#: Data, options, and draws of each model. The number of features is fixed, since its default differs between versions.
CASES = {
    "gaussian_graphical": (normal, (200, 50), {}, 300),
    "gaussian_neighbourhoods": (normal, (200, 20), {}, 100),
    "ising_neighbourhoods": (states, (200, 10), {}, 60),
    "ising": (states, (400, 15), {}, 400),
    "pairwise_mrf": (states, (300, 8, 3), {"potentials": "ordinal"}, 400),
    "bayesian_network": (normal, (300, 15), {}, 300),
    "latent_features": (normal, (150, 8), {"noise": 0.8, "max_features": 60}, 300),
    "link_prediction": (links, (40,), {"max_features": 36}, 200),
    "dp_glm": (normal, (300, 3), {"response": "v0"}, 300),
    "sparse_factor_analysis": (normal, (100, 8), {"max_features": 60}, 150),
    "markov_transitions": (series, (150,), {"max_features": 20}, 150),
    "hidden_causes": (states, (150, 8), {}, 200),
}


def child(name, repeats):
    """Sample in this process; print the least sampling time after the first."""
    import pymc as pm

    import bayesstruct as bs

    logging.getLogger("pymc").setLevel(logging.ERROR)
    make, size, options, draws = CASES[name]
    quiet = {"progressbar": False, "random_seed": 1, "compute_convergence_checks": False}
    times = []
    with getattr(bs.models, name)(make(np.random.default_rng(1), *size), **options):
        for _ in range(1 + repeats):
            found = pm.sample(
                draws=draws, tune=draws, chains=1, cores=1, nuts_sampler="pymc", **quiet
            )
            times.append(float(found.posterior.attrs["sampling_time"]))
    print(json.dumps([bs.__file__, min(times[1:])]))


def seconds(clone, name, repeats):
    """Sampling time of a model with the code of a clone."""
    python = clone / ".venv" / "bin" / "python"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(clone)}
    options = ["--only", name, "--repeats", str(repeats), "--child"]
    done = subprocess.run(
        [str(python), __file__, *options],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    source, took = json.loads(done.stdout.splitlines()[-1])
    if not Path(source).is_relative_to(clone):
        raise RuntimeError(f"the environment of {clone} runs the code in {source}")
    return took


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("other", type=Path, nargs="?")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--child", action="store_true")
    options = parser.parse_args()
    if options.child:
        child(options.only[0], options.repeats)
        return
    if options.other is None:
        parser.error("give the folder of another clone")
    clones = {"here": Path(__file__).resolve().parents[1], "other": options.other.resolve()}
    print(f"{'s':26s}", *(f"{name:>8s}" for name in clones), "  ratio")
    for name in options.only:
        here, other = (seconds(clone, name, options.repeats) for clone in clones.values())
        print(f"{name:26s} {here:8.3f} {other:8.3f} {here / other:7.2f}", flush=True)


if __name__ == "__main__":
    main()
