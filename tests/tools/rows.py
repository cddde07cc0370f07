"""Densities of rows by SciPy and by sums over all states, from the numbers in a result; no code of the package."""

import itertools

import numpy as np
import pandas as pd
import pymc as pm

from scipy import stats


def prior_result(model, draws=5, seed=3):
    """Draws from the prior in the place of the posterior: the same variables."""
    with model:
        idata = pm.sample_prior_predictive(draws, random_seed=seed)
    idata["posterior"] = idata["prior"]
    return idata


def mixed_table(rng, n=160):
    """Three dependent normal columns in very different units, sorted by the first."""
    z = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.7, 0.5], [0.0, 0.7, 0.2], [0.0, 0.0, 0.8]])
    table = pd.DataFrame(z * [1.0, 10.0, 100.0] + [5.0, 50.0, -200.0], columns=["a", "b", "c"])
    return table.sort_values("a", ignore_index=True)


def answers(rng, n=60):
    """Three dependent columns of 2, 3 and 2 states: text, numbers, truth values."""
    u = rng.normal(size=(n, 3)) + rng.normal(size=(n, 1))
    table = pd.DataFrame({"mood": np.where(u[:, 0] > 0, "good", "bad")})
    return table.assign(score=np.digitize(u[:, 1], [-0.5, 0.5]) + 1, ill=u[:, 2] > 0.3)


def ordered_answers(rng, n=60):
    """Likewise, with categories whose order is declared."""
    table = answers(rng, n)
    return table.assign(mood=pd.Categorical(table["mood"], ["bad", "good"], ordered=True))


def flat(idata, name):
    """Draws of a variable, chains one after another."""
    values = idata["posterior"][name].transpose("chain", "draw", ...).values
    return values.reshape(-1, *values.shape[2:])


def normals(idata, train, set_to=()):
    """A frozen multivariate normal in the units of the table for each draw of a Gaussian result."""
    location, scale = train.mean().values, train.std().values
    if "precision" in idata["posterior"]:
        pairs = zip(flat(idata, "mean"), np.linalg.inv(flat(idata, "precision")), strict=True)
    else:
        pairs = _network_normals(idata, train, set_to, location, scale)
    return [
        stats.multivariate_normal(location + scale * m, np.outer(scale, scale) * c, True)
        for m, c in pairs
    ]


def _network_normals(idata, train, set_to, location, scale):
    names, labels = list(train), idata["posterior"]["ordered_pair"].values
    for weight, own, noise in zip(
        *(flat(idata, k) for k in ("weight", "intercept", "noise_variance")), strict=True
    ):
        matrix, a, v = np.zeros((len(names),) * 2), own.copy(), noise.copy()
        for label, w in zip(labels, weight, strict=True):
            source, target = label.split(" -> ")
            if target not in set_to:
                matrix[names.index(target), names.index(source)] = w
        for name in set_to:
            j = names.index(name)
            a[j], v[j] = (set_to[name] - location[j]) / scale[j], 0.0
        total = np.linalg.inv(np.eye(len(names)) - matrix)
        yield total @ a, total @ np.diag(v) @ total.T


def conditional(normal, row, column):
    """Mean and standard deviation of an empty value given the filled ones of its row."""
    mean, cov = normal.mean, normal.cov
    seen = np.flatnonzero(~np.isnan(row))
    gain = cov[column, seen] @ np.linalg.pinv(cov[np.ix_(seen, seen)], rcond=1e-14)
    variance = cov[column, column] - gain @ cov[seen, column]
    return mean[column] + gain @ (row[seen] - mean[seen]), np.sqrt(variance)


def joint_of_network(dag, table, states, set_to=()):
    """Probability of every joint state by the product of the tables; columns that were set have none."""
    out = {}
    for x in itertools.product(*map(range, states)):
        p = 1.0
        for i, k in enumerate(states):
            configuration, step = 0, 1
            for j in np.flatnonzero(dag[:, i]):
                configuration, step = configuration + step * x[j], step * states[j]
            p *= float(x[i] == set_to[i]) if i in set_to else table[i, configuration * k + x[i]]
        out[x] = p
    return out


def joint_of_field(bias, weight, states):
    """Probability of every joint state of an ordinal random field with a bias for each state but the first."""
    pairs = list(itertools.combinations(range(len(states)), 2))
    start = np.concatenate([[0], np.cumsum([k - 1 for k in states])])
    out = {}
    for x in itertools.product(*map(range, states)):
        own = sum(bias[start[i] + s - 1] for i, s in enumerate(x) if s)
        out[x] = np.exp(own + sum(w * x[i] * x[j] for (i, j), w in zip(pairs, weight, strict=True)))
    total = sum(out.values())
    return {x: p / total for x, p in out.items()}


def pseudo_likelihood(joint, x):
    """Product of the conditional probabilities of each state given the rest of its row."""
    out = 1.0
    for i in range(len(x)):
        same = [p for y, p in joint.items() if y[:i] + y[i + 1 :] == x[:i] + x[i + 1 :]]
        out *= joint[x] / sum(same)
    return out


def state_shares(joint, row, column, states):
    """Probabilities of the states of an empty value given the filled ones, None being empty."""
    out = np.zeros(states[column])
    for x, p in joint.items():
        if all(r is None or r == s for r, s in zip(row, x, strict=True)):
            out[x[column]] += p
    return out / out.sum()
