"""Latent features: cost of a sweep, starts without a search, held-out values against principal components.

    uv run python benchmarks/latent_features.py                  # all parts, about ten minutes
    uv run python benchmarks/latent_features.py cost --large     # one part, and 100,000 rows

Linear Gaussian model with 36 columns, loadings standard normal, ten features that each row has with
probability .3, noise .5 (2 where effective samples are counted, so that the number of features moves). A sweep
visits all rows once. The stand-in is the scan with the likelihood computed anew for each entry, as the public
Python programs have it. The images are those of Griffiths and Ghahramani (2011), section 5.4, with bitmaps of our
own: 100 of 6 x 6, four features.
"""

import argparse
import os
import resource
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from bayesstruct.features.kernels.feature_splits import exchange_columns
from bayesstruct.features.kernels.indian_buffet import log_buffet, new_dish_rates
from bayesstruct.features.kernels.latent_features import log_likelihood, scan_rows
from bayesstruct.solvers import latent_features

MAX_FEATURES, NOISE, D, K = 40, 0.5, 36, 10
IMAGES = """
    010000 111000 010000 000000 000000 000000
    000111 000101 000111 000000 000000 000000
    000000 000000 000000 100000 110000 111000
    000000 000000 000000 000111 000010 000010
"""


def table(n, noise=NOISE, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.random((n, K)) < 0.3
    return z @ rng.normal(size=(K, D)) + noise * rng.normal(size=(n, D)), z.astype(np.int8)


def sweep(rng, feature, x, exchanges=0, noise=NOISE):
    for _ in range(exchanges):
        exchange_columns(rng, feature, x, noise, 1.0, 1.0, 1.0, 0.0)
    rate, rows = new_dish_rates(len(x))[-1], rng.permutation(len(x))
    used = int(feature.any(axis=0).sum())
    return scan_rows(rng, feature, used, x, rows, noise, 1.0, rate, 1.0, 0.0, -1)


def with_room(z):
    feature = np.zeros((len(z), MAX_FEATURES), np.int8)
    feature[:, : z.shape[1]] = z
    return feature


# --- cost ------------------------------------------------------------------------------------


def milliseconds(n, exchanges, sweeps=5):
    """Of one sweep, starting at the features of the table."""
    rng, (x, z) = np.random.default_rng(1), table(n)
    feature = with_room(z)
    sweep(rng, feature, x, exchanges)
    begin = time.process_time()
    for _ in range(sweeps):
        sweep(rng, feature, x, exchanges)
    return 1e3 * (time.process_time() - begin) / sweeps


def plain_row(rng, z, x, i, noise):
    """Redraw a row in NumPy; features of this row alone are kept until the end."""
    n = len(z)

    def log_p(matrix):
        return log_likelihood(matrix, x, noise, 1.0)

    shared = np.flatnonzero(z.sum(axis=0) - z[i] > 0)
    for k in rng.permutation(shared):
        m = z[:, k].sum() - z[i, k]
        logs = []
        for value in (0, 1):
            z[i, k] = value
            logs.append(log_p(z) + np.log(m if value else n - m))
        z[i, k] = rng.random() < 1 / (1 + np.exp(np.clip(logs[0] - logs[1], -700, 700)))
    z, own = z[:, shared], np.zeros((n, 6), np.int8)
    own[i] = 1
    several = [np.column_stack([z, own[:, :number]]) for number in range(6)]
    number = np.arange(6)
    logs = np.array([log_p(matrix) for matrix in several]) - number * np.log(n)
    weight = np.exp(logs - np.log([1, 1, 2, 6, 24, 120]) - logs.max())
    return several[rng.choice(6, p=weight / weight.sum())]


def plain(n, rows):
    """Milliseconds of one sweep in NumPy, from so many rows."""
    rng, (x, z) = np.random.default_rng(1), table(n)
    begin = time.process_time()
    for i in range(rows):
        z = plain_row(rng, z, x, i, NOISE)
    return 1e3 * (time.process_time() - begin) * n / rows


def effective(chain, seconds):
    """Effective samples of a chain for each second."""
    import arviz as az

    return float(az.ess(np.asarray(chain, float)[None])) / seconds


def effective_samples(n=30, noise=2.0):
    """Of the number of features for each second: ours, with an exchange before each sweep, NumPy."""
    x, z = table(n, noise)
    out = []
    for exchanges, sweeps in ((0, 20_000), (1, 20_000)):
        rng, feature = np.random.default_rng(2), with_room(z)
        sweep(rng, feature, x, exchanges, noise)
        begin = time.process_time()
        chain = [sweep(rng, feature, x, exchanges, noise) for _ in range(sweeps)]
        out.append(effective(chain, time.process_time() - begin))
    rng, chain = np.random.default_rng(2), []
    begin = time.process_time()
    for _ in range(400):
        for i in range(n):
            z = plain_row(rng, z, x, i, noise)
        chain.append(z.shape[1])
    return *out, effective(chain, time.process_time() - begin)


def cost(large):
    sizes = [100, 1000, 10_000] + [100_000] * large
    times = [milliseconds(n, 0) for n in sizes]
    for n, ms in zip(sizes, times, strict=True):
        print(f"n = {n:,}: {ms:.2f} ms a sweep, {milliseconds(n, 1):.2f} ms with an exchange")
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"cost grows as n to the {slope:.2f}; at most {memory:.2f} GiB")
    numpy_cost = plain(100, 20)
    print(f"NumPy, n = 100: {numpy_cost:.0f} ms a sweep, {numpy_cost / times[0]:.0f} times ours")
    ours, exchanged, stand_in = effective_samples()
    print(
        f"effective samples of K in a second, n = 30: {ours:.0f}, {exchanged:.0f} with an exchange, "
        f"NumPy {stand_in:.2f}"
    )


# --- images ----------------------------------------------------------------------------------


def images(seed):
    """Features, table, and the log density of both."""
    rng = np.random.default_rng(seed)
    maps = np.array([[float(c) for c in line if c in "01"] for line in IMAGES.split("\n")[1:5]])
    z = (rng.random((100, 4)) < 0.5).astype(np.int8)
    x = z @ maps + 0.5 * rng.normal(size=(100, 36))
    return z, x, log_density(z, x)


def log_density(feature, x):
    return log_likelihood(feature, x, 0.5, 1.0) + log_buffet(feature, 1.0)


def chain_of_images(rng, feature, x, sweeps, exchanges=0):
    """Best log density, and the numbers of features."""
    best, numbers = -np.inf, []
    for _ in range(sweeps):
        numbers.append(sweep(rng, feature, x, exchanges))
        best = max(best, log_density(feature, x))
    return best, numbers


def demonstration():
    reached = 0
    for seed in range(10):
        _, x, truth = images(seed)
        best, numbers = -np.inf, []
        for chain in range(4):
            rng = np.random.default_rng([seed, chain])
            found = with_room(latent_features(x, random_seed=rng).feature)
            value, more = chain_of_images(rng, found, x, 200)
            best, numbers = max(best, value), numbers + more
        number = int(np.bincount(numbers).argmax())
        reached += best >= truth - 1e-6 and number == 4
        print(f"images, seed {seed}: log p {best:.1f}, truth {truth:.1f}, mode of K {number}")
    print(f"{reached} of 10 reach the truth with four features")


def without_search(seeds=20):
    """Single chains from one random feature: how many reach the density of the truth with K = 4."""
    for exchanges, sweeps in ((0, 300), (0, 2000), (1, 300), (1, 1000), (3, 300), (10, 300)):
        reached, begin = 0, time.process_time()
        for seed in range(seeds):
            _, x, truth = images(seed)
            rng = np.random.default_rng([seed, 7])
            feature = with_room((rng.random((100, 1)) < 0.5).astype(np.int8))
            best, numbers = chain_of_images(rng, feature, x, sweeps, exchanges)
            four = np.bincount(numbers[sweeps // 2 :]).argmax() == 4
            # A chain that has found the features stays a few nats below or above their own density.
            reached += bool(four and best > truth - 5.0)
        print(
            f"no search, {exchanges} exchanges, {sweeps} sweeps: {reached} of {seeds} chains find the "
            f"four features, {(time.process_time() - begin) / seeds:.2f} s each"
        )


# --- held-out values --------------------------------------------------------------------------


def principal_components(x, rank, sweeps=500):
    """Fill missing values by components of the table that is filled by them, until nothing changes."""
    missing = np.isnan(x)
    filled = np.where(missing, np.nanmean(x, axis=0), x)
    for _ in range(sweeps):
        mean = filled.mean(axis=0)
        u, s, v = np.linalg.svd(filled - mean, full_matrices=False)
        new = (mean + (u[:, :rank] * s[:rank]) @ v[:rank])[missing]
        change = abs(new - filled[missing]).max()
        filled[missing] = new
        if change < 1e-6:
            break
    return filled[missing]


def posterior_means(x, seed, noise, max_features):
    import pymc as pm

    from bayesstruct.models import latent_features as model_of

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with model_of(x, noise=noise, max_features=max_features):
            idata = pm.sample(
                400,
                tune=300,
                chains=1,
                random_seed=seed,
                progressbar=False,
                quiet=True,
                compute_convergence_checks=False,
            )
    number = float(idata["posterior"]["n_features"].mean())
    return idata["posterior"]["x_unobserved"].values[0].mean(axis=0), number


def held_out(seeds=2):
    """A tenth of the values of standardised tables; the rank is the best one for the held-out values."""
    import bayesstruct as bs

    tables = {name: bs.load_dataset(name).to_numpy(float) for name in ("sachs", "anes96", "reinis")}
    tables["sachs"] = np.log(tables["sachs"])
    runs = [(name, 0.8, 60) for name in tables] + [("sachs", None, 120)]
    for name, noise, max_features in runs:
        rows = []
        for seed in range(seeds):
            missing = np.random.default_rng(seed).random(tables[name].shape) < 0.1
            x = np.where(missing, np.nan, tables[name])
            x, truth = (
                (v - np.nanmean(x, axis=0)) / np.nanstd(x, axis=0) for v in (x, tables[name])
            )
            truth = truth[missing]
            error = [rmse(principal_components(x, r), truth) for r in range(x.shape[1] - 1)]
            means, number = posterior_means(x, seed, noise, max_features)
            rows.append((rmse(means, truth), min(error), np.argmin(error), number))
        ours, theirs, rank, number = np.mean(rows, axis=0)
        print(
            f"{name}, noise {noise or 'learned'}: held-out RMSE {ours:.3f} with {number:.0f} features, "
            f"principal components {theirs:.3f} (best rank {rank:.1f})"
        )


def rmse(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


PARTS = {"images": demonstration, "no-search": without_search, "held-out": held_out}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", help=f"cost, {', '.join(PARTS)}; all if not given")
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    chosen = arguments.parts or ["cost", *PARTS]
    if "cost" in chosen:
        cost(arguments.large)
    for name, part in PARTS.items():
        if name in chosen:
            part()


if __name__ == "__main__":
    main()
