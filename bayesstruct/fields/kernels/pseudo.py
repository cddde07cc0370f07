"""Conditional probabilities of the states of a table given the rest of their rows."""

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = ["scored_residuals", "table_residuals"]


@inner
def _top(logits, k):
    top = logits[0]
    for s in range(1, k):
        top = max(top, logits[s])
    return top


@kernel
def scored_residuals(fields, codes, counts, start, unary, scores, out_unary):
    """Replace fields by expected minus observed scores; return the negative log pseudo-likelihood.

    Parameters
    ----------
    fields : (n, p) array
        Contribution of the other variables to the log-potential, for each unit of the score. On return the expected
        score of each variable given its row, minus the observed one, times the count of the row.
    codes : (n, p) int64 array
    counts : (n,) array
        Multiplicity of each row.
    start : (p + 1,) int64 array
        Of the unary tables.
    unary, scores : (cells,) arrays
    out_unary : (cells,) array
        Expected minus observed counts of the states are added.
    """
    value = 0.0
    n, p = codes.shape
    widest = 0
    for i in range(p):
        widest = max(widest, start[i + 1] - start[i])
    logits = np.empty(widest)
    for m in range(n):
        count = counts[m]
        for i in range(p):
            first, k = start[i], start[i + 1] - start[i]
            for s in range(k):
                logits[s] = unary[first + s] + scores[first + s] * fields[m, i]
            top = _top(logits, k)
            observed = logits[codes[m, i]] - top
            total = 0.0
            for s in range(k):
                logits[s] = np.exp(logits[s] - top)
                total += logits[s]
            value += count * (np.log(total) - observed)
            expected = 0.0
            for s in range(k):
                share = count * logits[s] / total
                out_unary[first + s] += share
                expected += share * scores[first + s]
            out_unary[first + codes[m, i]] -= count
            fields[m, i] = expected - count * scores[first + codes[m, i]]
    return value


@kernel
def table_residuals(logits, codes, counts, start):
    """Replace log odds by probabilities minus indicators; return the negative log pseudo-likelihood.

    Parameters
    ----------
    logits : (n, cells) array
        Log odds of each state but the first against the first. On return the conditional
        probability of each of these states minus its indicator, times the count of the row.
    codes : (n, p) int64 array
    counts : (n,) array
    start : (p + 1,) int64 array
        Where the states of each variable start.
    """
    value = 0.0
    n, p = codes.shape
    for m in range(n):
        count = counts[m]
        for i in range(p):
            own = logits[m, start[i] : start[i + 1]]
            k, state = len(own), codes[m, i]
            top = max(0.0, _top(own, k))
            observed = own[state - 1] if state else 0.0
            total = np.exp(-top)
            for s in range(k):
                own[s] = np.exp(own[s] - top)
                total += own[s]
            value += count * (np.log(total) + top - observed)
            for s in range(k):
                own[s] *= count / total
            if state:
                own[state - 1] -= count
    return value
