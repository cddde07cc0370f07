"""Latent features: cost of a sweep, against plain NumPy, and the features of small images found again.

    uv run python benchmarks/latent_features.py            # about two minutes
    uv run python benchmarks/latent_features.py --large    # and 100,000 rows

Linear Gaussian model with 36 columns, noise .5, loadings standard normal, ten features that each row has
with probability .3; a sweep visits all rows once. The stand-in is the scan with the likelihood computed
anew for each entry, as the public Python programs have it. The images are those of Griffiths and
Ghahramani (2011), section 5.4, with bitmaps of our own: 100 of 6 x 6, four features.
"""

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from bayesstruct.kernels.indian_buffet import log_buffet, new_dish_rates
from bayesstruct.kernels.latent_features import log_likelihood, scan_rows
from bayesstruct.solvers import latent_features

ROOM, NOISE, D, K = 40, 0.5, 36, 10
IMAGES = """
    010000 111000 010000 000000 000000 000000
    000111 000101 000111 000000 000000 000000
    000000 000000 000000 100000 110000 111000
    000000 000000 000000 000111 000010 000010
"""


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.random((n, K)) < 0.3
    return z @ rng.normal(size=(K, D)) + NOISE * rng.normal(size=(n, D)), z


def sweep(rng, feature, used, x):
    rate = new_dish_rates(len(x))[-1]
    rows = rng.permutation(len(x))
    return scan_rows(rng, feature, used, x, rows, NOISE, 1.0, rate, 1.0, 0.0, -1)


def milliseconds(n, sweeps=5):
    """Of one sweep, starting at the features of the table."""
    rng, (x, z) = np.random.default_rng(1), table(n)
    feature, used = np.zeros((n, ROOM), np.int8), K
    feature[:, :K] = z
    used = sweep(rng, feature, used, x)
    begin = time.process_time()
    for _ in range(sweeps):
        used = sweep(rng, feature, used, x)
    return 1e3 * (time.process_time() - begin) / sweeps


def plain(n, rows):
    """Milliseconds of one sweep of the scan in NumPy, from so many rows."""
    rng, (x, z) = np.random.default_rng(1), table(n)
    z = z.astype(float)
    begin = time.process_time()
    for i in range(rows):
        for k in range(K):
            m = z[:, k].sum() - z[i, k]
            logs = []
            for value in (0.0, 1.0):
                z[i, k] = value
                logs.append(log_likelihood(z, x, NOISE, 1.0) + np.log(m if value else n - m))
            z[i, k] = rng.random() < 1 / (1 + np.exp(logs[0] - logs[1]))
        for number in range(4):
            own = np.zeros((n, number))
            own[i] = 1.0
            log_likelihood(np.column_stack([z, own]), x, NOISE, 1.0)
    return 1e3 * (time.process_time() - begin) * n / rows


def images(seed):
    rng = np.random.default_rng(seed)
    maps = np.array([[float(c) for c in line if c in "01"] for line in IMAGES.split("\n")[1:5]])
    z = (rng.random((100, 4)) < 0.5).astype(np.int8)
    x = z @ maps + 0.5 * rng.normal(size=(100, 36))
    truth = log_likelihood(z, x, 0.5, 1.0) + log_buffet(z, 1.0)
    best, numbers = -np.inf, []
    for chain in range(4):
        rng = np.random.default_rng([seed, chain])
        found = latent_features(x, random_seed=rng).feature
        feature, used = np.zeros((100, ROOM), np.int8), found.shape[1]
        feature[:, :used] = found
        for _ in range(200):
            used = sweep(rng, feature, used, x)
            numbers.append(used)
            best = max(best, log_likelihood(feature, x, 0.5, 1.0) + log_buffet(feature, 1.0))
    return best, truth, int(np.bincount(numbers).argmax())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    sizes = [100, 1000, 10_000] + [100_000] * arguments.large
    cost = [milliseconds(n) for n in sizes]
    for n, ms in zip(sizes, cost, strict=True):
        print(f"n = {n:,}: {ms:.2f} ms a sweep")
    slope = np.polyfit(np.log(sizes), np.log(cost), 1)[0]
    print(f"cost grows as n to the {slope:.2f}")
    numpy_cost = plain(100, 20)
    print(f"NumPy, n = 100: {numpy_cost:.0f} ms a sweep, {numpy_cost / cost[0]:.0f} times ours")
    reached = 0
    for seed in range(10):
        best, truth, number = images(seed)
        reached += best >= truth - 1e-6 and number == 4
        print(f"images, seed {seed}: log p {best:.1f}, truth {truth:.1f}, mode of K {number}")
    print(f"{reached} of 10 reach the truth with four features")


if __name__ == "__main__":
    main()
