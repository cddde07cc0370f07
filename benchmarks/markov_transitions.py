"""Series that share behaviours: cost of a sweep, and whether behaviours and states are found again.

    uv run python benchmarks/markov_transitions.py            # about two minutes
    uv run python benchmarks/markov_transitions.py --seeds 1            # half a minute

Six series of 500 rows and three variables switch among five behaviours (`bs.simulate.markov_transitions`, seeds 1 to
5). Every chain starts from one behaviour that all series have. The state of a row is the behaviour with the largest
probability given all rows, added up over the draws of the second half of a chain (columns matched to those of its last
draw); the Hamming distance to the truth is the share of rows with another one, under the best matching of names. The
other side of the comparison knows the number of behaviours: a Gaussian mixture of scikit-learn with five
components and diagonal covariances, best of ten starts, which knows no time, on all rows of all series.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from scipy.optimize import linear_sum_assignment

import bayesstruct as bs

from bayesstruct.series.kernels.forward import smooth_series

SWEEPS = 300


def hamming(found, truth):
    """Share of rows with another state, under the best matching of names."""
    _, a = np.unique(found, return_inverse=True)
    _, b = np.unique(truth, return_inverse=True)
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)
    return 1 - table[linear_sum_assignment(-table)].sum() / len(a)


def run(made, seed):
    """Return seconds a sweep, numbers of behaviours of the draws, the last features and states."""
    with bs.models.markov_transitions(made.data, series="series", alpha=2.0) as model:
        step = bs.steps.SwitchingSeriesMCMC(model.free_RVs, rng=np.random.default_rng(seed))
        step.setup_chain(np.random.default_rng(seed), 0, 1)
        point, numbers, draws = model.initial_point(), [], []
        step.step(point)  # compiles
        begin = time.process_time()
        for _ in range(SWEEPS):
            point, [stats] = step.step(point)
            numbers.append(stats["n_features"])
            draws.append(point)
        seconds = (time.process_time() - begin) / SWEEPS
    return seconds, numbers, point["feature"], states(step, draws[SWEEPS // 2 :])


def states(step, draws):
    """Most probable behaviour of each row over draws, their columns matched to the last by their means."""
    last, total = draws[-1]["emission_mean"], 0.0
    for point in draws:
        out = np.zeros((len(step.observed), last.shape[0]))
        parts = (point[name] for name in ("transition", "emission_mean", "emission_scale"))
        smooth_series(point["feature"], *parts, step.observed, step.starts, out)
        gap = ((last[:, None] - point["emission_mean"]) ** 2).sum(axis=2)
        total = total + out[:, linear_sum_assignment(gap)[1]]
    return total.argmax(axis=1)


def mixture_states(made):
    from sklearn.mixture import GaussianMixture

    rows = made.data.drop(columns="series").to_numpy()
    mixture = GaussianMixture(
        made.feature.shape[1], covariance_type="diag", n_init=10, random_state=0
    )
    return mixture.fit_predict(rows)


def same_features(found, truth):
    """Entries of the matrix of behaviours that differ, under the best matching."""
    found = found[:, found.any(axis=0)].astype(int)
    size = max(found.shape[1], truth.shape[1])
    a, b = (np.pad(m, ((0, 0), (0, size - m.shape[1]))) for m in (found, truth))
    gap = (a[:, :, None] != b[:, None, :]).sum(axis=0)
    return int(gap[linear_sum_assignment(gap)].sum())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5, help="number of simulated sets of series")
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    print(
        "seed  ms/sweep  behaviours (last, truth)  wrong entries  Hamming: model, mixture, true means row by row"
    )
    for seed in range(1, seeds + 1):
        made = bs.simulate.markov_transitions(500, 6, p=3, n_behaviours=5, random_seed=seed)
        seconds, numbers, feature, found = run(made, seed)
        truth = made.state.to_numpy()
        wrong = same_features(feature, made.feature.to_numpy())
        # Rows taken one by one, with the true means and noise.
        rows = made.data.drop(columns="series").to_numpy()
        nearest = ((rows[:, None] - made.mean.to_numpy()) ** 2).sum(axis=2).argmin(axis=1)
        print(
            f"{seed:4d}  {1000 * seconds:8.2f}  {numbers[-1]:10d} {made.feature.shape[1]:6d}  {wrong:20d}  "
            f"{hamming(found, truth):15.4f} {hamming(mixture_states(made), truth):.4f} "
            f"{(made.mean.index[nearest] != truth).mean():.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
