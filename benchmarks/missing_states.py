"""Missing values of Markov random fields under priors that only shrink: PairwiseCells against PyMC's assignment.

    uv run python benchmarks/missing_states.py                    # all cases, about 7 minutes
    uv run python benchmarks/missing_states.py --case ordinal     # one of them

Both sides have PyMC's NUTS for biases and weights, and differ in the step of the missing values: the one that
``pm.sample`` assigns, and the one that it would assign without bayesstruct (`BinaryGibbsMetropolis` or
`CategoricalGibbsMetropolis`, which evaluate the density of the whole table for each value). Effective draws of one chain
after warm-up, per CPU second; compilation and warm-up are not counted. A tenth of the values is missing at random. Effective
draws of values are means over those with more than one state in the draws, those of weights over all. The time of one
call of the step of the missing values alone is printed beside that of a whole draw.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import arviz as az
import numpy as np
import pymc as pm

from pymc.sampling.mcmc import assign_step_methods, instantiate_steppers
from pymc.step_methods import STEP_METHODS

from bayesstruct import models, simulate
from bayesstruct.steps import PairwiseCells

SHARE = 0.1


def binary(n, p, **options):
    """Ising table with gaps, Laplace weights."""
    table = simulate.ising(n, p=p, edge_probability=0.3, random_seed=1).data
    return models.ising(with_gaps(table), prior="laplace", **options)


def ordinal(n, p):
    """Ordinal table of three states with gaps, group-Laplace weights."""
    table = simulate.pairwise_mrf(
        n, states=(3,) * p, potentials="ordinal", edge_probability=0.3, random_seed=1
    ).data
    return models.pairwise_mrf(with_gaps(table), potentials="ordinal", prior="group_laplace")


def with_gaps(table):
    missing = np.random.default_rng(2).random(table.shape) < SHARE
    return table.astype(float).mask(missing)


#: Model, and draws after as much warm-up, the same on either side.
CASES = {
    "binary": (lambda: binary(300, 8), 300),
    "exact": (lambda: binary(300, 8, likelihood="exact"), 300),
    "ordinal": (lambda: ordinal(300, 6), 300),
    "more rows": (lambda: binary(1_000, 10), 120),
}


def one_side(make, methods, draws):
    """Effective draws per CPU second of missing values and weights, and milliseconds of a draw."""
    with make() as model:
        _, chosen = assign_step_methods(model, methods=methods)
        steps = instantiate_steppers(model, [], chosen)
        clock = []
        idata = pm.sample(
            draws,
            tune=draws,
            chains=1,
            cores=1,
            step=steps,
            random_seed=3,
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
            callback=lambda trace, draw: clock.append(time.process_time()),
        )
    spent = clock[-1] - clock[draws - 1]
    posterior = idata["posterior"]
    values = posterior["x_missing"].values[0]
    moving = values.std(axis=0) > 0
    ess = {
        "values": np.mean(effective(values[:, moving])),
        "weights": np.mean(effective(posterior["weight"].values[0])),
    }
    [own] = [step for step in steps if "x_missing" in {v.name for v in step.vars}]
    rates = {what: value / spent for what, value in ess.items()}
    print(
        f"  {type(own).__name__}: {draws} draws, {1e3 * spent / draws:.1f} CPU ms each, of which the values "
        f"{1e3 * alone(own, model):.2f}; effective draws of values "
        f"{ess['values']:.0f}, of weights {ess['weights']:.0f}; per CPU s {rates['values']:.2f}, "
        f"{rates['weights']:.2f}",
        flush=True,
    )
    return rates


def alone(step, model, calls=20):
    """CPU seconds of one call of a step."""
    point, begin = model.initial_point(), time.process_time()
    for _ in range(calls):
        point, _ = step.step(point)
    return (time.process_time() - begin) / calls


def effective(values):
    return np.array(
        [float(az.ess(v[None].astype(float), chain_axis=0, draw_axis=1)) for v in values.T]
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=CASES)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    others = [method for method in STEP_METHODS if method is not PairwiseCells]
    for name, (make, draws) in CASES.items():
        if arguments.case in (None, name):
            print(name, flush=True)
            fast = one_side(make, STEP_METHODS, draws)
            slow = one_side(make, others, draws)
            ratio = {what: fast[what] / slow[what] for what in fast}
            print(
                f"  ratio of values {ratio['values']:.1f}, of weights {ratio['weights']:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
