"""Tables of which some values are wrong: Gaussian graphs whose columns are normal, whose rows are t, and whose values are t.

Tables are normal with a chain as their graph; a share of the values is shifted by normal errors with ten times the standard
deviation of a column. Printed for each kind of marginals: AUC of the edges, mean error of the partial correlations of its edges, CPU seconds.

    python benchmarks/wrong_values.py [--tables 5]
"""

import argparse
import time
import warnings

import numpy as np
import pymc as pm

from sklearn.metrics import roc_auc_score

import bayesstruct as bs

QUIET = {"progressbar": False, "chains": 2, "cores": 1, "compute_convergence_checks": False}


def table(rng, n, p, share):
    """Rows with wrong values, and the partial correlations without them."""
    K = np.eye(p) + np.diag(np.full(p - 1, -0.4), 1) + np.diag(np.full(p - 1, -0.4), -1)
    rows = rng.multivariate_normal(np.zeros(p), np.linalg.inv(K), size=n)
    wrong = rng.random(rows.shape) < share
    rows[wrong] += 10.0 * rows.std() * rng.normal(size=wrong.sum())
    return rows, -K[np.triu_indices(p, 1)]


def fit(rows, marginals):
    """Edge probabilities and partial correlations."""
    with bs.models.gaussian_graphical(rows, marginals=marginals):
        idata = pm.sample(400, tune=200, random_seed=1, var_names=["edge", "weight"], **QUIET)
    posterior = idata["posterior"].mean(("chain", "draw"))
    return posterior["edge"].values, posterior["weight"].values


def main():
    """Print a line for each size and kind of marginals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=5)
    tables = parser.parse_args().tables
    warnings.simplefilter("ignore")
    for n, p in ((250, 20), (250, 40)):
        for share in (0.05, 0.0):
            for marginals in ("gaussian", "student", "alternative_student", "rank"):
                found, start = [], time.process_time()
                for seed in range(tables):
                    rows, truth = table(np.random.default_rng(seed), n, p, share)
                    edge, weight = fit(rows, marginals)
                    auc = roc_auc_score(truth > 0, edge)
                    found.append((auc, np.abs(weight - truth)[truth > 0].mean()))
                seconds = (time.process_time() - start) / tables
                auc, error = np.mean(found, axis=0)
                print(
                    f"n {n} p {p} wrong {share:4.0%} {marginals:20} AUC {auc:.3f} error {error:.4f} {seconds:5.1f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
