"""The posterior of LiNGAM models: which arcs are found, in which direction, and in what time.

    uv run python benchmarks/lingam_posterior.py                  # 20 columns, 1,000 rows
    uv run python benchmarks/lingam_posterior.py --noise laplace --draws 300

Sparse random graphs (two neighbours a column), weights +-(.5 to 1.5), noise variances 1 to 3. Laplace noise is sampled with
`noise="laplace"`, all other noise with the default, a mixture. AUROC over all ordered pairs: an arc in the wrong direction is wrong.
CPU seconds include the model and both chains, and not compilation, which a small table does first.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pymc as pm

from sklearn.metrics import roc_auc_score

import bayesstruct as bs


def sample(table, noise, tune, draws, seed):
    """Sample two chains in this process."""
    with bs.models.lingam(table, noise=noise, graph_prior="edge"):
        return pm.sample(
            draws, tune=tune, chains=2, cores=1, progressbar=False, random_seed=seed,
            compute_convergence_checks=False,
        )  # fmt: skip


def main():
    """Print one line a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--noise", nargs="*", default=["laplace", "uniform"])
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--tables", type=int, default=1)
    parser.add_argument("--tune", type=int, default=50)
    parser.add_argument("--draws", type=int, default=200)
    own = parser.parse_args()
    warnings.simplefilter("ignore")
    for true_noise in own.noise:
        noise = "laplace" if true_noise == "laplace" else "mixture"
        small = bs.simulate.linear_sem(100, 3, noise=true_noise, random_seed=0).data
        sample(small, noise, 2, 2, 0)  # compiles
        for seed in range(own.tables):
            known = bs.simulate.linear_sem(
                own.rows, own.columns, noise=true_noise, expected_neighbours=2, random_seed=seed
            )
            begin = time.process_time()
            idata = sample(known.data, noise, own.tune, own.draws, seed)
            spent = time.process_time() - begin
            share = idata["posterior"]["dag"].mean("draw").values
            truth = (known.coefficients.to_numpy() != 0).T
            off = ~np.eye(own.columns, dtype=bool)
            mean = share.mean(axis=0)
            number = bs.check(idata).to_frame().iloc[0]
            print(
                f"{true_noise} noise, table {seed}: AUROC {roc_auc_score(truth[off], mean[off]):.4f}, "
                f"{((mean > 0.5) != truth).sum()} arcs wrong of {truth.sum()} true ones, chains differ by "
                f"{abs(share[0] - share[1]).max():.2f} at most, R-hat of the number of arcs {number['r_hat']:.3f}, {spent:.1f} CPU s",
                flush=True,
            )


if __name__ == "__main__":
    main()
