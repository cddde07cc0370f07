"""How often `bs.noise_check` contradicts the noise of linear structural equations: rightly, and wrongly.

    uv run python benchmarks/noise_check.py [--tables 20] [--rows 200] [--columns 5] [--pair TRUE MODEL]

For pairs of the noise that made the errors and the noise of the model: tables of random graphs are simulated and sampled (two chains of
100 draws); printed are the shares of tables in which any column is contradicted, at two levels, and in which all columns together are, the share of columns, and the
seconds of a check.
"""

import argparse
import logging
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pymc as pm

import bayesstruct as bs

PAIRS = (
    ("laplace", "laplace"),
    ("gaussian", "gaussian"),
    ("student", "student"),
    ("skewed", "mixture"),
    ("uniform", "mixture"),
    ("uniform", "laplace"),
    ("gaussian", "laplace"),
    ("exponential", "laplace"),
    ("uniform", "student"),
    ("laplace", "gaussian"),
    ("uniform", "gaussian"),
)


def checked(
    true: str, noise: str, rows: int, columns: int, seed: int
) -> tuple[np.ndarray, float, float]:
    """p-values of the columns of one simulated table and of all together, and the seconds of the check."""
    simulated = bs.simulate.linear_sem(
        rows, columns, noise=true, expected_neighbours=2.0, random_seed=seed
    )
    with bs.models.linear_sem(simulated.data, noise=noise):
        idata = pm.sample(
            draws=100, tune=50, chains=2, cores=1, progressbar=False, random_seed=1,
            compute_convergence_checks=False,
        )  # fmt: skip
    start = time.perf_counter()
    found = bs.noise_check(idata)
    seconds = time.perf_counter() - start
    return found["p_value"].to_numpy(), found.attrs["combined_p_value"], seconds


def main() -> None:
    """Print one line for each pair."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--columns", type=int, default=5)
    parser.add_argument("--pair", nargs=2, metavar=("TRUE", "MODEL"))
    options = parser.parse_args()
    print(f"{options.tables} tables of {options.rows} rows and {options.columns} columns")
    print(
        "errors       model      tables at .01  at .05  all columns together  columns at .01  seconds"
    )
    for true, noise in [options.pair] if options.pair else PAIRS:
        found = [
            checked(true, noise, options.rows, options.columns, seed)
            for seed in range(options.tables)
        ]
        p = np.array([values for values, *_ in found])
        least, together = p.min(axis=1), np.array([own for _, own, _ in found])
        seconds = np.mean([s for *_, s in found])
        print(
            f"{true:12} {noise:10} {(least <= 0.01).mean():13.2f} {(least <= 0.05).mean():7.2f} "
            f"{(together <= 0.01).mean():21.2f} {(p <= 0.01).mean():15.2f} {seconds:8.2f}",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    main()
