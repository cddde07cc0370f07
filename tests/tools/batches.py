"""Standard errors of averages over autocorrelated draws, by non-overlapping batch means."""

import numpy as np


def batch_means(values, batches=50):
    """Means of consecutive batches of draws.

    Parameters
    ----------
    values : (draw, k) or (chain, draw, k) array
    batches : int
        Number of batches over all chains; no batch straddles two chains.

    Returns
    -------
    (batch, k) array
    """
    values = np.asarray(values, float)
    if values.ndim == 2:
        values = values[None]
    chains, draws, k = values.shape
    per_chain = max(1, min(round(batches / chains), draws // 2))
    length = draws // per_chain
    used = values[:, draws - per_chain * length :]
    return used.reshape(chains * per_chain, length, k).mean(axis=1)


def mean_and_error(values, batches=50):
    """Mean over draws, its standard error, and the number of batches that the error rests on."""
    means = batch_means(values, batches)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    return means.mean(axis=0), error, len(means)
