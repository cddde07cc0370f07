"""All joint states of small Markov random fields, by brute force."""

import itertools

import numpy as np

from scipy.special import logsumexp

from bayesstruct.core.missing import observed_values

__all__ = ["all_states", "energies", "exact_distribution", "feature_matrix", "summed_density"]


def all_states(states):
    """Every joint state as a row, in C order."""
    return np.array(list(itertools.product(*(range(k) for k in states))))


def feature_matrix(potentials):
    """Indicators of the unary and pair cells in every joint state."""
    x = all_states(potentials.states)
    cells = int(potentials.unary_start[-1])
    out = np.zeros((len(x), cells + int(potentials.pair_start[-1])))
    rows = np.arange(len(x))
    for i in range(potentials.p):
        out[rows, potentials.unary_start[i] + x[:, i]] = 1.0
    for e, (i, j) in enumerate(zip(*potentials.ends, strict=True)):
        at = potentials.pair_start[e] + x[:, i] * potentials.states[j] + x[:, j]
        out[rows, cells + at] = 1.0
    return out


def energies(potentials, bias, weight):
    """Unnormalised log probability of every joint state."""
    tables = np.concatenate([potentials.unary(bias), potentials.pair(weight)])
    return feature_matrix(potentials) @ tables


def exact_distribution(potentials, bias, weight):
    """Log partition function, and the probability of every joint state."""
    energy = energies(potentials, bias, weight)
    log_z = logsumexp(energy)
    return log_z, np.exp(energy - log_z)


def summed_density(model, potentials, missing, likelihood, mode):
    """All values of `x_missing`, their shares at a mode, and the density that the mode should maximise.

    With the likelihood that is the density of the model, summed over the values. With the pseudo-likelihood
    it is the mean of its logarithm, the shares held at what the field of the mode says of the values.
    """
    rows, columns = np.nonzero(missing)
    values = all_states([potentials.states[i] for i in columns])
    logp = model.compile_logp(mode="FAST_COMPILE")
    table = np.array(observed_values(model, model["x"]).eval(mode="FAST_COMPILE"), int)
    energy = energies(potentials, mode["bias"], mode["weight"]).reshape(potentials.states)
    logs = np.empty(len(values))
    for v, value in enumerate(values):
        table[rows, columns] = value
        logs[v] = energy[tuple(table[np.unique(rows)].T)].sum()
    shares = np.exp(logs - logsumexp(logs))

    def density(point):
        each = [logp(point | {"x_missing": value}) for value in values]
        return logsumexp(each) if likelihood == "exact" else shares @ np.array(each)

    return values, shares, density
