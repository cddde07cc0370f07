"""Graphical horseshoe: cost of a sweep, effective draws beside those of joint draws of columns, and accuracy.

    uv run python benchmarks/horseshoe.py            # about 6 minutes

Recipe of `spike_slab_gibbs.py`, standardised columns. The published sampler (Li, Craig and Bhadra 2019) draws a whole column of
the matrix given its local scales, which takes a factorisation, O(p^4) a sweep; here elements are drawn one by one with
their local scales summed out, O(p^3). The reverse telescoping scan of Gao, Sagar and Bhadra (2025) is compared in
`reverse_telescoping.py`. Seconds are CPU seconds of one core with one BLAS thread.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time

import arviz as az
import numba
import numpy as np

from spike_slab_gibbs import auc, table

import bayesstruct as bs

from bayesstruct.precision.kernels.cholesky import unpack_cholesky
from bayesstruct.precision.kernels.horseshoe import sweep as kernel
from bayesstruct.steps import PrecisionGibbs


def scatter_of(p, n, seed=0):
    """Scatter matrix of a standardised table, and the true indicators."""
    data, truth = table(p, n, seed)
    rows = ((data - data.mean()) / data.std()).to_numpy()
    return rows.T @ rows, truth


def sweep_times():
    """Milliseconds of a sweep, and of both updates of the global scale."""
    sizes, totals = [10, 50, 100, 300], []
    for p in sizes:
        scatter, _ = scatter_of(p, 2 * p)
        rng, K, W = np.random.default_rng(0), np.eye(p), np.eye(p)
        work, space, scale = np.empty((2, p)), np.empty((2, p, p)), 0.5 / p
        seconds, repeats = np.zeros(3), max(10, int(2e7 / p**3))
        for repeat in range(-5, repeats):
            if repeat == 0:
                seconds[:] = 0.0
            times = [time.process_time()]
            scales = np.full((p, p), scale)
            kernel.horseshoe_sweep(rng, K, W, scatter, 2.0 * p, scales, 0.5, work)
            times.append(time.process_time())
            scale = kernel.draw_global_scale(rng, K, scale, 1.0)
            times.append(time.process_time())
            scale = kernel.rescale(rng, K, scatter, 2.0 * p, scale, 1.0, space)
            times.append(time.process_time())
            seconds += np.diff(times)
            W = np.linalg.inv(K)
        ms = 1e3 * seconds / repeats
        totals.append(ms.sum())
        print(
            f"p = {p:3d}   elements {ms[0]:7.3f} ms   slice {ms[1]:6.3f} ms   rescaling {ms[2]:6.3f} ms   all {ms.sum():7.3f} ms"
        )
    slope = np.log(totals[-1] / totals[-2]) / np.log(3)
    fitted = np.polyfit(np.log(sizes[1:]), np.log(totals[1:]), 1)[0]
    print(f"exponent from p = 100 to 300 {slope:.2f}, fitted over p = 50, 100, 300 {fitted:.2f}")


@numba.njit
def one_by_one(rng, scatter, n, sweeps, rescaled):
    """Draws of this package's kernels."""
    p = scatter.shape[0]
    K, W, scale = np.eye(p), np.eye(p), 0.5 / p
    work, space, scales = np.empty((2, p)), np.empty((2, p, p)), np.empty((p, p))
    matrices, kept = np.empty((sweeps, p, p)), np.empty(sweeps)
    for t in range(sweeps):
        scales[:] = scale
        kernel.horseshoe_sweep(rng, K, W, scatter, n, scales, 0.5, work)
        scale = kernel.draw_global_scale(rng, K, scale, 1.0)
        if rescaled:
            scale = kernel.rescale(rng, K, scatter, n, scale, 1.0, space)
            W = np.linalg.inv(K)
        matrices[t], kept[t] = K, scale
    return matrices, kept


@numba.njit
def by_columns(rng, scatter, n, sweeps, rescaled):
    """Draws of whole columns given their local scales, each drawn from its conditional first."""
    p = scatter.shape[0]
    K, scale = np.eye(p), 0.5 / p
    for i in range(p):
        for j in range(i):
            K[i, j] = K[j, i] = 1e-3 * rng.standard_normal() / p
    W = np.linalg.inv(K)
    matrices, kept = np.empty((sweeps, p, p)), np.empty(sweeps)
    others, A = np.empty(p - 1, np.int64), np.empty((p - 1, p - 1))
    for t in range(sweeps):
        for j in range(p):
            others[:j], others[j:] = np.arange(j), np.arange(j + 1, p)
            a = scatter[j, j] + 1.0
            for k in range(p - 1):
                for m in range(p - 1):
                    i, q = others[k], others[m]
                    A[k, m] = W[i, q] - W[i, j] * W[q, j] / W[j, j]
            Q = a * A
            for k in range(p - 1):
                z = max(0.5 * (K[j, others[k]] / scale) ** 2, 1e-300)
                Q[k, k] += kernel.inverse_square_of_local_scale(rng, z) / scale**2
            L = np.linalg.cholesky(Q)
            half = np.linalg.solve(L, -scatter[j][others]) + rng.standard_normal(p - 1)
            u = np.linalg.solve(L.T, half)
            v, product = rng.standard_gamma(0.5 * n + 1.0) * 2.0 / a, A @ u
            for k in range(p - 1):
                K[j, others[k]] = K[others[k], j] = u[k]
                W[j, others[k]] = W[others[k], j] = -product[k] / v
                for m in range(p - 1):
                    W[others[k], others[m]] = A[k, m] + product[k] * product[m] / v
            K[j, j], W[j, j] = v + u @ product, 1.0 / v
        scale = kernel.draw_global_scale(rng, K, scale, 1.0)
        matrices[t], kept[t] = K, scale
    return matrices, kept


def effective(x):
    """Effective number of draws, over two halves of a chain."""
    half = len(x) // 2
    return float(az.ess(np.stack([x[:half], x[half : 2 * half]])))


def mixing(p, n, sweeps):
    """Effective draws a sweep and a CPU second: strong and weak elements, log determinant, global scale."""
    scatter, _ = scatter_of(p, n)
    upper = np.triu_indices(p, 1)
    for name, chain, rescaled, share in [
        ("elements one by one, scale by its slice", one_by_one, False, 1),
        ("the same, scale rescaled too (the package)", one_by_one, True, 1),
        ("columns given local scales", by_columns, False, 2 if p < 100 else 4),
    ]:
        count = sweeps // share
        chain(np.random.default_rng(0), scatter, float(n), 2, rescaled)
        start = time.process_time()
        matrices, scale = chain(np.random.default_rng(1), scatter, float(n), count, rescaled)
        seconds = 0.8 * (time.process_time() - start)
        matrices, scale = matrices[count // 5 :], scale[count // 5 :]
        elements = matrices[:, upper[0], upper[1]]
        order = np.argsort(np.abs(elements.mean(axis=0)))
        sets = {"strong": elements[:, order[-20:]].T, "weak": elements[:, order[:20]].T}
        sets |= {
            "log det": [np.linalg.slogdet(matrices)[1]],
            "scale": [np.log(scale)],
        }
        ess = {what: np.median([effective(x) for x in xs]) for what, xs in sets.items()}
        parts = [
            f"{what} {value / len(scale):.3f} ({value / seconds:.0f}/s)"
            for what, value in ess.items()
        ]
        print(f"p = {p:3d}   {name:42s} {', '.join(parts)}")


def run(data, seconds, seed=0):
    """Exceedance probabilities of the step that pm.sample assigns, and its draws a second."""
    model = bs.models.gaussian_graphical(data, prior="horseshoe")
    p = data.shape[1]
    with model:
        step = PrecisionGibbs(model.free_RVs)
    upper, point = np.triu_indices(p, 1), model.initial_point(random_seed=seed)
    step.setup_chain(np.random.default_rng(seed), 0, 0)
    start, total, count = time.process_time(), np.zeros(len(upper[0])), 0
    while (elapsed := time.process_time() - start) < seconds or not count:
        point, _ = step.step(point)
        if elapsed > 0.1 * seconds:
            K, _ = unpack_cholesky(point["precision_cholesky-cov__"], p)
            total += np.abs(K[upper]) > 0.1 * np.sqrt(
                K.diagonal()[upper[0]] * K.diagonal()[upper[1]]
            )
            count += 1
    return total / count, count / (0.9 * seconds)


def accuracy(p, n, tables, seconds, long):
    """Mean AUC of the probabilities that a partial correlation exceeds .1."""
    run(table(p, n, 0)[0], 0.2)
    rows = []
    for seed in range(tables):
        data, truth = table(p, n, seed)
        (short, speed), (reference, _) = run(data, seconds), run(data, long, seed=1)
        rows.append([auc(short, truth), auc(reference, truth), speed])
    m = np.mean(rows, axis=0)
    print(
        f"p = {p:3d}, n = {n}, {tables} tables: AUC {m[0]:.3f} after {seconds} CPU s, {m[1]:.3f} after {long}; {m[2]:.0f} draws/s"
    )


def main():
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--only", choices=["times", "mixing", "accuracy"])
    options = parser.parse_args()
    if options.only in (None, "times"):
        sweep_times()
    if options.only in (None, "mixing"):
        mixing(50, 100, 6_000)
        mixing(100, 200, 3_000)
    if options.only in (None, "accuracy"):
        accuracy(50, 100, options.tables, 2.5, 10.0)
        accuracy(100, 200, min(options.tables, 2), 10.0, 40.0)


if __name__ == "__main__":
    main()
