"""Count the evaluations that each solver for expensive objectives takes, on exact Markov fields.

    uv run python benchmarks/expensive_objectives.py           # under 3 minutes
    uv run python benchmarks/expensive_objectives.py --full    # full potentials at rate 50 too

Data: 5,400 cells x 11 proteins in three states (Sachs et al. 2005 as discretised for Schmidt 2010),
from ../shared/data of the repository; without that file there is nothing to run. The objective is
the exact negative log-likelihood of a pairwise Markov random field, summed over the 3^11 = 177,147
states, with unpenalised node potentials. An evaluation is a value and its gradient. QNST10 and PQN10
take at most 10 steps on each quadratic model, the others 100; matrices have 20 pairs, the source 10.
Reference numbers: measured on the same file for the project, independently of this code.
"""

import argparse
import os
import sys
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from functools import partial
from pathlib import Path

import numpy as np

from bayesstruct.penalties import L1, Group
from bayesstruct.sparse.solvers.line_search import active_set
from bayesstruct.sparse.solvers.projected import cone_mode
from bayesstruct.sparse.solvers.scaled_subgradient import projected_scaled_subgradient
from bayesstruct.sparse.solvers.soft_threshold import soft_threshold

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "cyto_discretized.mat"
GAPS = (1.0, 1e-2, 1e-4)
ISING = {  # rate: objective, edges
    100.0: (45495.866409, 43),
    50.0: (44650.208957, 46),
}
ISING_RATE_MAX, INDEPENDENT = 1486.846111, 50589.951364
FULL_RATE_MAX, FULL = 1163.127078, {100.0: 40154.05, 50.0: 38295.44}


def read_states(path=DATA):
    """The table as states 0, 1, 2: (5400, 11)."""
    from scipy.io import loadmat

    return loadmat(path)["X"].astype(int) - 1


class PairwiseField:
    """Exact negative log-likelihood of a pairwise Markov random field, by tensor contraction.

    Coefficients: for each node the potentials of all states but the last, then for each pair
    (0, 1), (0, 2), ... one potential of being equal ("ising") or a k x k table ("full").
    """

    def __init__(self, states, kind="ising", categories=3):
        self.n, self.p = states.shape
        self.k, self.kind = categories, kind
        one_hot = np.eye(self.k)[states]
        self.pairs = [(i, j) for i in range(self.p) for j in range(i + 1, self.p)]
        counts = np.einsum("nia,njb->ijab", one_hot, one_hot, optimize=True)
        self.node_counts = one_hot.sum(axis=0)
        self.pair_counts = np.array([counts[i, j] for i, j in self.pairs])
        self.nodes = self.p * (self.k - 1)
        self.per_pair = 1 if kind == "ising" else self.k**2
        self.size = self.nodes + len(self.pairs) * self.per_pair
        self.evaluations = 0

    def penalty(self, rate):
        if self.kind == "ising":
            return L1(rate, weights=np.arange(self.size) >= self.nodes)
        labels = np.full(self.size, -1)
        labels[self.nodes :] = np.repeat(np.arange(len(self.pairs)), self.per_pair)
        return Group(rate, labels)

    def independent(self):
        """Mode without edges."""
        share = self.node_counts / self.n
        out = np.zeros(self.size)
        out[: self.nodes] = np.log(share[:, :-1] / share[:, -1:]).ravel()
        return out

    def edges(self, x):
        return int((x[self.nodes :].reshape(-1, self.per_pair) != 0).any(axis=1).sum())

    def tables(self, x):
        node = np.zeros((self.p, self.k))
        node[:, :-1] = x[: self.nodes].reshape(self.p, -1)
        weights = x[self.nodes :].reshape(-1, self.per_pair)
        if self.kind == "ising":
            return node, weights[:, :, None] * np.eye(self.k)
        return node, weights.reshape(-1, self.k, self.k)

    def value_and_gradient(self, x):
        self.evaluations += 1
        node, pair = self.tables(x)
        log_z, node_marginals, pair_marginals = self.infer(node, pair)
        value = self.n * log_z - (self.node_counts * node).sum() - (self.pair_counts * pair).sum()
        node_gradient = (self.n * node_marginals - self.node_counts)[:, :-1]
        excess = self.n * pair_marginals - self.pair_counts
        if self.kind == "ising":
            excess = np.trace(excess, axis1=1, axis2=2)
        return value, np.concatenate([node_gradient.ravel(), excess.ravel()])

    def infer(self, node, pair):
        """Log partition function and marginals, from the table of all k^p probabilities.

        The table of log-potentials grows by one variable at a time, and so do the sums shrink:
        both take time proportional to the table, not to the table times the pairs.
        """
        p, k = self.p, self.k
        position = {edge: e for e, edge in enumerate(self.pairs)}
        logits = np.zeros(1)
        for i in range(p - 1, -1, -1):  # the last variable varies fastest
            # What variable i adds to a configuration of i + 1, ..., p - 1: a sum over these.
            added = np.zeros((k, 1))
            for j in range(i + 1, p):
                table = pair[position[i, j]]
                added = (added[:, :, None] + table[:, None, :]).reshape(k, -1)
            logits = (node[i][:, None] + added + logits).ravel()
        top = logits.max()
        probability = np.exp(logits - top)
        total = probability.sum()
        probability /= total
        node_marginals, pair_marginals = np.empty((p, k)), np.empty((len(self.pairs), k, k))
        rest = probability
        for i in range(p):
            rows = rest.reshape(k, -1)  # variables i, ..., p - 1
            node_marginals[i] = rows.sum(axis=1)
            later = rows
            for j in range(i + 1, p):
                cube = later.reshape(k, k, -1)
                pair_marginals[position[i, j]] = cube.sum(axis=2)
                later = cube.sum(axis=1)
            rest = rows.sum(axis=0)
        return np.log(total) + top, node_marginals, pair_marginals


class Trace:
    """A field's objective that keeps its values."""

    def __init__(self, field, penalty):
        self.field, self.penalty, self.values = field, penalty, []

    def __call__(self, x):
        value, gradient = self.field.value_and_gradient(x)
        self.values.append(value + self.penalty.value(x))
        return value, gradient

    def evaluations_to(self, value):
        """Evaluations until the objective was at most so much, or None."""
        reached = np.flatnonzero(np.array(self.values) <= value)
        return int(reached[0]) + 1 if len(reached) else None


SPG = partial(cone_mode, method="spectral_projected_gradient")
BBST = partial(soft_threshold, step="barzilai_borwein")
L1_METHODS = {
    "PSSgb": projected_scaled_subgradient,
    "PSSgb, 10 pairs": partial(projected_scaled_subgradient, memory=10),
    "PSSsp": partial(projected_scaled_subgradient, variant="sign_projection"),
    "PSSas": partial(projected_scaled_subgradient, variant="active_set"),
    "OWL-QN": partial(projected_scaled_subgradient, variant="orthant_wise"),
    "QNST10": partial(soft_threshold, inner_iterations=10),
    "QNST100": soft_threshold,
    "PQN10": partial(cone_mode, inner_iterations=10),
    "PQN100": cone_mode,
    "BBST": BBST,
    "SPG": SPG,
    "active set, PSSgb": partial(active_set, projected_scaled_subgradient),
}
GROUP_METHODS = {"QNST100": soft_threshold, "PQN100": cone_mode, "BBST": BBST, "SPG": SPG}


def race(field, rate, methods, starts, *, minimum=None, tol, max_evaluations):
    """Run methods from starts and print a row for each; the best one is f* without a minimum."""
    penalty, rows = field.penalty(rate), []
    for title, start in starts.items():
        for name, method in methods.items():
            trace = Trace(field, penalty)
            begun = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = method(trace, start, penalty, tol=tol, max_evaluations=max_evaluations)
            rows.append((title, name, found, trace, time.perf_counter() - begun))
    if minimum is None:
        minimum = min(found.objective for _, _, found, _, _ in rows)
        print(f"    f* = {minimum:.6f}, the best of the table")
    print(f"    {'':20}{'objective':>16}{'edges':>7}{'residual':>10}{'evaluations to f* +':>24}")
    print(f"    {'':20}{'':33}{'1':>6}{'1e-2':>6}{'1e-4':>6}{f'tol {tol:g}':>11}{'seconds':>9}")
    shown = None
    for title, name, found, trace, spent in rows:
        if title != shown:
            print(f"    from {title}")
            shown = title
        marks = "".join(f"{trace.evaluations_to(minimum + gap) or '-':>6}" for gap in GAPS)
        total = str(found.evaluations) if found.converged else f"> {found.evaluations}"
        print(
            f"    {name:20}{found.objective:16.6f}{field.edges(found.coefficients):7d}"
            f"{found.gap:10.1e}{marks}{total:>11}{spent:9.1f}"
        )
    print(flush=True)


def ising(states):
    field = PairwiseField(states)
    null, cold = field.independent(), np.zeros(field.size)
    value, gradient = field.value_and_gradient(null)
    print("Ising potentials, l1")
    print(f"  independent model: {value:.6f}, reference {INDEPENDENT}")
    top = field.penalty(1.0).rate_max(gradient)
    print(f"  largest useful rate: {top:.6f}, reference {ISING_RATE_MAX}")
    warm = None
    for rate, (minimum, edges) in ISING.items():
        print(f"  rate {rate:g}: reference {minimum} with {edges} of 55 edges")
        if warm is None:
            found = projected_scaled_subgradient(
                field.value_and_gradient, cold, field.penalty(rate)
            )
            warm = found.coefficients
            print(
                f"    {'PSSgb':20}{found.objective:16.6f}{field.edges(warm):7d}{found.gap:10.1e}"
                f"   evaluations {found.evaluations}"
            )
            continue
        starts = {"zero": cold, "the mode at rate 100": warm}
        race(field, rate, L1_METHODS, starts, minimum=minimum, tol=1e-5, max_evaluations=1000)


def full(states, rates):
    field = PairwiseField(states, "full")
    cold = np.zeros(field.size)
    _, gradient = field.value_and_gradient(field.independent())
    print("Full potentials, group l2")
    top = field.penalty(1.0).rate_max(gradient)
    print(f"  largest useful rate: {top:.6f}, reference {FULL_RATE_MAX}")
    for rate in rates:
        print(f"  rate {rate:g}: reference about {FULL[rate]}, from above, at a residual of 0.1")
        race(field, rate, GROUP_METHODS, {"zero": cold}, tol=1e-2, max_evaluations=600)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="full potentials at rate 50 too")
    options = parser.parse_args()
    if not DATA.exists():
        print(f"No data: {DATA} is absent, nothing was measured.")
        sys.exit(0)
    states = read_states()
    ising(states)
    full(states, FULL if options.full else [100.0])


if __name__ == "__main__":
    main()
