"""Time the graphical lasso against scikit-learn and skglm at equal duality gap.

    uv run --group bench python benchmarks/graphical_lasso.py            # about two minutes
    uv run --group bench python benchmarks/graphical_lasso.py --large    # p = 2000 and 5000, this package only

Problems: scikit-learn's `make_sparse_spd_matrix` with 4 off-diagonal entries in each column of its
triangular factor, n = 2 p rows (about 7 neighbours a node in
the solution), columns standardised; the largest has p = 5000, n = p / 2 and a
larger penalty, for about 2 p edges. Penalty off the diagonal. Seconds are CPU seconds with one BLAS
thread. Every solver must reach gap / p <= 1e-7, where the gap is `graphical_lasso_gap` of its
symmetrised precision; each peer gets the loosest tolerance, over powers of ten, with which it does.
"""

import argparse
import os
import resource
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from sklearn.covariance import GraphicalLasso
from sklearn.datasets import make_sparse_spd_matrix

from bayesstruct.solvers import graphical_lasso, graphical_lasso_gap

TARGET = 1e-7
PENALTY = {100: 0.15, 300: 0.12, 500: 0.10, 1000: 0.10, 2000: 0.10}


def problem(p, seed=0, rows_per_variable=2.0):
    """Correlation matrix of draws from a sparse precision matrix."""
    precision = make_sparse_spd_matrix(
        n_dim=p,
        alpha=1 - 4 / p,
        smallest_coef=0.1,
        largest_coef=0.7,
        norm_diag=True,
        random_state=seed,
    )
    rng = np.random.default_rng(seed)
    n = int(rows_per_variable * p)
    rows = np.linalg.solve(np.linalg.cholesky(precision).T, rng.standard_normal((p, n))).T
    return np.corrcoef(rows, rowvar=False)


def cpu_seconds(call, repeats):
    """Median CPU seconds and the last result."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        result = call()
        seconds.append(time.process_time() - start)
    return np.median(seconds), result


def scikit_learn(S, lam, tol):
    model = GraphicalLasso(
        lam, covariance="precomputed", tol=tol, enet_tol=min(1e-4, tol), max_iter=1000
    )
    return model.fit(S).precision_


def skglm(S, lam, tol):
    from skglm.covariance import GraphicalLasso as Dual

    model = Dual(lam, algo="dual", tol=tol, inner_tol=min(1e-4, tol), max_iter=1000)
    return model.fit(S, mode="precomputed").precision_


def loosest(peer, S, lam):
    """Seconds and gap / p of a peer at its loosest tolerance that reaches the target."""
    for exponent in range(2, 12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds, K = cpu_seconds(lambda: peer(S, lam, 10.0**-exponent), 1)
        gap = graphical_lasso_gap((K + K.T) / 2, S, lam) / len(S)
        if gap <= TARGET:
            break
    return seconds, gap


def report(p, peers, repeats, rows):
    """Print one line for each solver."""
    S = problem(p, rows_per_variable=rows if p < 5000 else 0.5)
    lam = PENALTY.get(p, 0.1) if p < 5000 else 0.15
    seconds, solution = cpu_seconds(lambda: graphical_lasso(S, lam, tol=TARGET), repeats)
    edges = np.count_nonzero(np.triu(solution.precision, 1))
    line = f"{p:5d} {lam:5.2f} {edges:7d}"
    print(f"{line}  {'bayesstruct':12s} {seconds:9.4f} {solution.gap / p:9.1e}")
    for peer in peers:
        theirs, gap = loosest(peer, S, lam)
        print(f"{line}  {peer.__name__:12s} {theirs:9.4f} {gap:9.1e} {theirs / seconds:7.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 300, 500, 1000])
    parser.add_argument("--large", action="store_true", help="add p = 2000 and 5000")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--peers-up-to", type=int, default=300, help="largest p for scikit-learn")
    parser.add_argument("--rows", type=float, default=2.0, help="rows divided by variables")
    arguments = parser.parse_args()
    S = problem(100)
    loosest(skglm, S, 0.1)  # compile
    graphical_lasso(S, 0.001, tol=1e-12)
    print("    p   lam   edges  solver         seconds     gap/p   ratio")
    for p in arguments.sizes + ([2000, 5000] if arguments.large else []):
        peers = [skglm] if p <= 500 else []
        if p <= arguments.peers_up_to:
            peers.append(scikit_learn)
        report(p, peers, arguments.repeats if p < 2000 else 1, arguments.rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak:.1f} GiB")


if __name__ == "__main__":
    main()
