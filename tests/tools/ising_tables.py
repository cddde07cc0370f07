"""Tables of binary columns from Ising models with a known random graph."""

import numpy as np


def ising_table(rng, couplings, n, sweeps=60):
    """Rows of a binary Markov random field, each from its own Gibbs chain."""
    p = len(couplings)
    fields = -couplings.sum(axis=1) / 2
    x = (rng.random((n, p)) < 0.5).astype(float)
    for _ in range(sweeps):
        for j in range(p):
            x[:, j] = rng.random(n) < 1 / (1 + np.exp(-(x @ couplings[j] + fields[j])))
    return x


def random_couplings(rng, p, degree):
    """Couplings of a random graph, of size .8 to 1.2 and random sign."""
    couplings = np.zeros((p, p))
    ends = np.repeat(np.arange(p), degree)
    rng.shuffle(ends)
    for i, j in ends[: len(ends) // 2 * 2].reshape(-1, 2):
        if i != j:
            couplings[i, j] = couplings[j, i] = rng.choice([-1, 1]) * rng.uniform(0.8, 1.2)
    return couplings
