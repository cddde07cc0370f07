"""The reverse telescoping scan of precision matrices beside the sweep of the package: law, time of a sweep, effective draws.

    uv run python benchmarks/reverse_telescoping.py                     # about 15 minutes
    uv run python benchmarks/reverse_telescoping.py --only law          # one of law, order, times, mixing

Gao, Sagar and Bhadra (2025, arXiv:2509.26385) write a precision matrix as a sum of outer products of the columns of a triangular one, and
draw whole columns of that given local scales, from the last to the first. Written anew from their public code (`RTsampler`) this is the
scan "published" here. It draws a column from one factor of the density; the prior of the elements between earlier columns
depends on that column too and is left out, so that another distribution than the posterior results. "Coordinates" is an exact
scan in the same parametrisation (`tests/tools/telescoping.py`), "package" the sweep that `pm.sample` uses, with the local
scales summed out. Tables by the recipe of `spike_slab_gibbs.py`, standardised. Seconds are CPU seconds of one core, one BLAS thread.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import sys
import time

from pathlib import Path

import arviz as az
import numpy as np

from spike_slab_gibbs import auc, table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from tools.batches import mean_and_error
from tools.integration import horseshoe_posterior
from tools.telescoping import exact_scan, horseshoe_chain, published_scan, triangular

from bayesstruct.precision.kernels.gibbs import laplace_sweep
from bayesstruct.precision.kernels.horseshoe import sweep as kernel
from bayesstruct.precision.recognition.values import LaplaceValues
from bayesstruct.precision.steps.scale_mixtures import ELEMENT_VARIANCES

RATE = 0.5  # of the diagonal
KINDS = "package", "coordinates", "published"
laplace_variances = ELEMENT_VARIANCES[LaplaceValues]


def standardised(p, n, seed=0):
    """Rows of a simulated table, and the true indicators."""
    data, truth = table(p, n, seed)
    return ((data - data.mean()) / data.std()).to_numpy(), truth


class Chain:
    """A chain of one kind of sweep; with the horseshoe the global scale moves as in the package after each."""

    def __init__(self, kind, prior, rows, seed=0):
        self.kind, self.prior, self.rows = kind, prior, rows
        self.n, self.p = float(len(rows)), rows.shape[1]
        self.rng, self.scatter = np.random.default_rng(seed), rows.T @ rows
        self.M = self.scatter + 2 * RATE * np.eye(self.p)
        # Not from zero: an element of zero has a local scale of zero, which only sums over local scales leave again.
        noise = self.rng.standard_normal((self.p, self.p)) / self.p
        self.K, self.scale = np.eye(self.p) + 0.05 * (noise + noise.T), 0.5 / self.p
        self.other = np.linalg.inv(self.K) if kind == "package" else triangular(self.K)
        self.rates = LaplaceValues(np.ones((self.p, self.p)), RATE, 1.0)
        self.work, self.space = np.empty((2, self.p)), np.empty((2, self.p, self.p))

    def sweep(self):
        """Draw the matrix once given the global scale."""
        if self.kind == "package":
            given = self.rng, self.K, self.other, self.scatter, self.n
            if self.prior == "laplace":
                laplace_sweep(*given, self.rates.rates, RATE, self.work)
            else:
                scales = np.full((self.p, self.p), self.scale)
                kernel.horseshoe_sweep(*given, scales, RATE, self.work)
            return
        if self.prior == "laplace":
            variances = laplace_variances(self.rng, self.K, self.rates)
        else:
            scales = np.full((self.p, self.p), self.scale)
            variances = kernel.element_variances(self.rng, self.K, scales)
        if self.kind == "published":
            given = self.rng, self.other, self.M, self.rows, self.n
            self.K = published_scan(*given, variances, RATE)
        else:
            exact_scan(self.rng, self.other, self.K, self.M, self.n, variances)

    def move_scale(self):
        """Move the global scale of the horseshoe, as the package does."""
        self.scale = kernel.draw_global_scale(self.rng, self.K, self.scale, 1.0)
        given = self.rng, self.K, self.scatter, self.n, self.scale
        self.scale = kernel.rescale(*given, 1.0, self.space)
        self.other = np.linalg.inv(self.K) if self.kind == "package" else triangular(self.K)

    def run(self, sweeps, look):
        """Values of ``look(matrix, scale)`` after each sweep but the first fifth, and CPU seconds of the others."""
        kept = []
        for t in range(sweeps):
            if t == sweeps // 5:
                start = time.process_time()
            self.sweep()
            if self.prior == "horseshoe":
                self.move_scale()
            if t >= sweeps // 5:
                kept.append(look(self.K, self.scale))
        return np.array(kept), time.process_time() - start


def partial_correlations(matrices):
    """Of all pairs, but for the sign."""
    i, j = np.triu_indices(matrices.shape[-1], 1)
    return matrices[..., i, j] / np.sqrt(matrices[..., i, i] * matrices[..., j, j])


def law():
    """Means of three elements over their diagonals, beside those of the posterior by importance sampling."""
    rng, n, scale = np.random.default_rng(1), 4, 0.3
    z = rng.normal(size=(n, 1))
    rows = np.hstack([z + 0.3 * rng.normal(size=(n, 2)), z])
    given = {"scales": np.array([scale]), "log_prior": np.zeros(1), "diagonal_rate": RATE}
    weighted, _ = horseshoe_posterior(rows, **given, draws=100_000, seed=1)
    exact, error = weighted.mean(partial_correlations(weighted.precision))
    print(f"p = 3, n = 4: posterior means {exact.round(3)}, errors {error.round(4)}")
    for name in ("coordinates", "published"):
        own = np.random.default_rng(2)
        draws = horseshoe_chain(own, rows, scale, RATE, 200_000, name == "coordinates")
        mean, own_error, _ = mean_and_error(partial_correlations(draws), 100)
        z = (mean - exact) / np.hypot(error, own_error)
        print(f"{name:12} {mean.round(3)}, in standard errors {z.round(1)}")


def order(p, n, sweeps, tables):
    """Probabilities that a partial correlation exceeds .1, with the columns in their order and in the reverse one."""
    upper = np.triu_indices(p, 1)
    for kind in KINDS:
        rows_found = []
        for seed in range(tables):
            rows, truth = standardised(p, n, seed)
            found = []
            for run, columns in enumerate([rows, rows, rows[:, ::-1]]):
                chain = Chain(kind, "horseshoe", np.ascontiguousarray(columns), seed=run)
                beyond = np.zeros((p, p))

                def look(K, scale, beyond=beyond):
                    size = np.sqrt(K.diagonal())
                    beyond += np.abs(K) > 0.1 * np.outer(size, size)
                    return np.log(scale)

                scales, _ = chain.run(sweeps, look)
                chance = beyond / len(scales)
                found.append((chance[::-1, ::-1] if run == 2 else chance)[upper])
            gaps = [np.abs(found[0] - other) for other in found[1:]]
            rows_found.append(
                [
                    *(value for gap in gaps for value in (gap.max(), np.square(gap).mean() ** 0.5)),
                    auc(found[0], truth),
                    auc(found[2], truth),
                ]
            )
        m = np.mean(rows_found, axis=0)
        print(
            f"p = {p}, n = {n}, {kind:12} another seed: largest difference {m[0]:.3f}, root mean square {m[1]:.4f}; reverse order: {m[2]:.3f}, "
            f"{m[3]:.4f}; AUC {m[4]:.3f}, reversed {m[5]:.3f}"
        )


def times(sizes):
    """Milliseconds of a sweep given the global scale, horseshoe."""
    for p in sizes:
        for n in (p // 2, p, 2 * p):
            rows, _ = standardised(p, n)
            out = []
            for kind in KINDS:
                chain = Chain(kind, "horseshoe", rows)
                repeats = max(5, int(1e7 / p**3))
                for t in range(repeats + 3):
                    if t == 3:
                        start = time.process_time()
                    chain.sweep()
                out.append(f"{kind} {1e3 * (time.process_time() - start) / repeats:8.2f} ms")
            print(f"p = {p:4d}, n = {n:4d}   {',   '.join(out)}", flush=True)


def effective(x):
    """Effective number of draws, over two halves of a chain."""
    half = len(x) // 2
    return float(az.ess(np.stack([x[:half], x[half : 2 * half]])))


def mixing(prior, p, n, sweeps):
    """Effective draws a sweep, and a CPU second: strong and weak elements, log determinant, global scale."""
    rows, _ = standardised(p, n)
    upper = np.triu_indices(p, 1)
    means, _ = Chain("package", prior, rows).run(max(100, sweeps // 5), lambda K, _: K[upper])
    ranked = np.argsort(np.abs(means.mean(axis=0)))
    own = np.r_[ranked[-20:], ranked[:20]]
    pairs = upper[0][own], upper[1][own]

    def look(K, scale):
        return np.r_[K[pairs], np.linalg.slogdet(K)[1], np.log(scale)]

    for kind in KINDS if prior == "horseshoe" else KINDS[:2]:
        Chain(kind, prior, rows).run(5, look)
        kept, seconds = Chain(kind, prior, rows, seed=1).run(sweeps, look)
        count = kept.shape[1] - (prior == "laplace")
        ess = np.array([effective(x) for x in kept.T[:count]])
        sets = {"strong": ess[:20], "weak": ess[20:40], "log det": ess[40], "scale": ess[41:]}
        parts = [
            f"{what} {np.median(v) / len(kept):.3f} ({np.median(v) / seconds:.1f}/s)"
            for what, v in sets.items()
            if np.size(v)
        ]
        print(f"{prior}, p = {p}, n = {n}   {kind:12} {', '.join(parts)}", flush=True)


def main():
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=["law", "order", "times", "mixing"])
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 300])
    only, sizes = (options := parser.parse_args()).only, options.sizes
    if only in (None, "law"):
        law()
    if only in (None, "order"):
        order(50, 25, 10_000, 2)
    if only in (None, "times"):
        times(sizes)
    if only in (None, "mixing"):
        for p in sizes:
            for n in (p // 2, p, 2 * p):
                mixing("horseshoe", p, n, max(150, 200_000 // p))
            mixing("laplace", p, p // 2, max(150, 200_000 // p))


if __name__ == "__main__":
    main()
