"""Draws of a precision matrix from its element-wise prior.

The prior is that of independent elements, conditioned on the matrix being positive definite. In a
few dimensions rejection gives exact independent draws; beyond, the Gibbs sweeps of
:mod:`bayesstruct.precision.kernels.gibbs` are run without data from a diagonal start. Without data
the elements are nearly independent, so that twenty sweeps forget the start.
"""

import math

import numpy as np

from bayesstruct.core.jit import kernel
from bayesstruct.precision.kernels.gibbs import laplace_sweep, spike_slab_sweep
from bayesstruct.precision.kernels.odds import edge_log_odds, fill_free, log_odds_matrix

REJECTION_SIZE = 8  # variables up to which rejection is tried
REJECTION_TRIES = 4000
SWEEPS = 20


@kernel
def is_positive_definite(matrix, factor):
    """Tell whether a matrix has a Cholesky factor, which is written to ``factor``."""
    p = matrix.shape[0]
    for i in range(p):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i == j:
                if total <= 0.0:
                    return False
                factor[i, i] = math.sqrt(total)
            else:
                factor[i, j] = total / factor[j, j]
    return True


@kernel
def fill_diagonal(rng, precision, rate):
    """Fill the diagonal with exponential draws."""
    for i in range(precision.shape[0]):
        precision[i, i] = rng.standard_exponential() / rate


@kernel
def fill_spike_slab(rng, precision, edges, probability, spike, slab):
    """Draw independent elements off the diagonal and their indicators, in place."""
    p = precision.shape[0]
    for i in range(p):
        for j in range(i):
            edge = rng.random() < probability[i, j]
            value = rng.standard_normal() * (slab if edge else spike)
            precision[i, j] = value
            precision[j, i] = value
            edges[i, j] = edge
            edges[j, i] = edge


@kernel
def _fill_laplace(rng, precision, rates):
    p = precision.shape[0]
    for i in range(p):
        for j in range(i):
            value = rng.standard_exponential() / rates[i, j]
            if rng.random() < 0.5:
                value = -value
            precision[i, j] = value
            precision[j, i] = value


@kernel
def diagonal_start(precision, covariance):
    """Make both matrices the identity."""
    p = precision.shape[0]
    for i in range(p):
        for j in range(p):
            precision[i, j] = 1.0 if i == j else 0.0
            covariance[i, j] = precision[i, j]


@kernel
def draw_spike_slab(rng, probability, spike, slab, rate):
    """Draw a precision matrix from the spike-and-slab prior (p, p)."""
    p = probability.shape[0]
    precision, edges, covariance = np.empty((p, p)), np.zeros((p, p), np.int8), np.zeros((p, p))
    if p <= REJECTION_SIZE:
        for _ in range(REJECTION_TRIES):
            fill_spike_slab(rng, precision, edges, probability, spike, slab)
            fill_diagonal(rng, precision, rate)
            if is_positive_definite(precision, covariance):
                return precision
    diagonal_start(precision, covariance)
    log_odds = log_odds_matrix(probability)
    sweep_prior(rng, precision, covariance, edges, edges * 0.0, log_odds, spike, slab, rate, SWEEPS)
    return precision


@kernel
def sweep_prior(rng, precision, covariance, edges, inclusion, log_odds, spike, slab, rate, sweeps):
    """Run spike-and-slab sweeps without data; ``inclusion`` collects the edge probabilities."""
    p = precision.shape[0]
    nothing, work = np.zeros((p, p)), np.empty((2, p))
    for _ in range(sweeps):
        state = (precision, covariance, edges, inclusion)
        spike_slab_sweep(rng, *state, nothing, 0.0, log_odds, spike, slab, rate, work)


@kernel
def implied_inclusion(rng, probability, spike, slab, rate, sweeps):
    """Prior mean of each indicator under the joint distribution of matrix and indicators (p, p)."""
    p = probability.shape[0]
    precision, edges, covariance = np.empty((p, p)), np.zeros((p, p), np.int8), np.zeros((p, p))
    inclusion, log_odds = np.zeros((p, p)), log_odds_matrix(probability)
    diagonal_start(precision, covariance)
    sweep_prior(rng, precision, covariance, edges, inclusion, log_odds, spike, slab, rate, SWEEPS)
    inclusion[:] = 0.0
    sweep_prior(rng, precision, covariance, edges, inclusion, log_odds, spike, slab, rate, sweeps)
    return (inclusion + inclusion.T) / (2.0 * sweeps)


@kernel
def count_joint_edges(rng, probabilities, spike, slab, rate, tries):
    """Count the edges of independent elements that form a positive definite matrix.

    Parameters
    ----------
    rng : numpy.random.Generator
    probabilities : (draws, p, p) float64
        Nominal probabilities of the edges, for draws of their parameters.
    spike, slab, rate : float
    tries : int
        Matrices for each of these draws.

    Returns
    -------
    (p, p) float64
        Number of matrices with each edge; on the diagonal that of all positive definite ones.
    """
    p = probabilities.shape[1]
    precision, edges, factor = np.empty((p, p)), np.zeros((p, p), np.int8), np.zeros((p, p))
    counts = np.zeros((p, p))
    for k in range(probabilities.shape[0]):
        for _ in range(tries):
            fill_spike_slab(rng, precision, edges, probabilities[k], spike, slab)
            fill_diagonal(rng, precision, rate)
            if is_positive_definite(precision, factor):
                for i in range(p):
                    counts[i, i] += 1.0
                    for j in range(i):
                        counts[i, j] += edges[i, j]
                        counts[j, i] += edges[i, j]
    return counts


@kernel
def implied_shared_inclusion(rng, fixed, alpha, beta, spike, slab, rate, sweeps):
    """Prior mean of each indicator when the edge probability is beta distributed (p, p)."""
    p = fixed.shape[0]
    precision, edges, covariance = np.empty((p, p)), np.zeros((p, p), np.int8), np.zeros((p, p))
    inclusion = np.zeros((p, p))
    diagonal_start(precision, covariance)
    for t in range(SWEEPS + sweeps):
        share = draw_share(rng, edges, fixed, alpha, beta)
        log_odds = log_odds_matrix(fill_free(fixed, share))
        if t == SWEEPS:
            inclusion[:] = 0.0
        sweep_prior(rng, precision, covariance, edges, inclusion, log_odds, spike, slab, rate, 1)
    return (inclusion + inclusion.T) / (2.0 * sweeps)


@kernel
def draw_laplace(rng, rates, rate):
    """Draw a precision matrix from the graphical-lasso prior (p, p)."""
    p = rates.shape[0]
    precision, covariance = np.empty((p, p)), np.zeros((p, p))
    if p <= REJECTION_SIZE:
        for _ in range(REJECTION_TRIES):
            _fill_laplace(rng, precision, rates)
            fill_diagonal(rng, precision, rate)
            if is_positive_definite(precision, covariance):
                return precision
    nothing, work = np.zeros((p, p)), np.empty((2, p))
    diagonal_start(precision, covariance)
    for _ in range(SWEEPS):
        laplace_sweep(rng, precision, covariance, nothing, 0.0, rates, rate, work)
    return precision


@kernel
def draw_share(rng, edges, probability, alpha, beta):
    """Draw the common edge probability from its beta conditional given the free indicators."""
    present = absent = 0
    for i in range(edges.shape[0]):
        for j in range(i):
            if 0.0 < probability[i, j] < 1.0:
                if edges[i, j]:
                    present += 1
                else:
                    absent += 1
    x = rng.standard_gamma(alpha + present)
    return x / (x + rng.standard_gamma(beta + absent))


@kernel
def draw_edge_probability(rng, probability, alpha, beta, spike, slab, rate):
    """Draw the common edge probability from its implied prior.

    That is the beta density times the probability that independent elements give a positive
    definite matrix: rejection in a few dimensions, Gibbs sweeps over the joint distribution beyond.
    """
    p = probability.shape[0]
    precision, edges, covariance = np.empty((p, p)), np.zeros((p, p), np.int8), np.zeros((p, p))
    if p <= REJECTION_SIZE:
        for _ in range(REJECTION_TRIES):
            share = draw_share(rng, edges, np.zeros((p, p)), alpha, beta)
            fill_spike_slab(rng, precision, edges, fill_free(probability, share), spike, slab)
            fill_diagonal(rng, precision, rate)
            if is_positive_definite(precision, covariance):
                return share
    diagonal_start(precision, covariance)
    inclusion = np.zeros((p, p))
    share = draw_share(rng, edges, inclusion, alpha, beta)
    for _ in range(SWEEPS):
        log_odds = log_odds_matrix(fill_free(probability, share))
        sweep_prior(rng, precision, covariance, edges, inclusion, log_odds, spike, slab, rate, 1)
        share = draw_share(rng, edges, probability, alpha, beta)
    return share


@kernel
def draw_edges(rng, precision, probability, spike, slab):
    """Draw the indicators of the upper triangle, row by row, given the precision matrix."""
    p = precision.shape[0]
    log_odds = log_odds_matrix(probability)
    out = np.empty(p * (p - 1) // 2, np.int64)
    at = 0
    for i in range(p):
        for j in range(i + 1, p):
            odds = edge_log_odds(precision[i, j], log_odds[i, j], spike, slab)
            out[at] = rng.random() * (1.0 + math.exp(-odds)) < 1.0
            at += 1
    return out


@kernel
def laplace_exceedance(rng, p, bound, diagonal_rate, sweeps):
    """Prior share of partial correlations beyond ``bound`` under the graphical lasso of rate 1."""
    precision, covariance = np.empty((p, p)), np.zeros((p, p))
    nothing, work, rates = np.zeros((p, p)), np.empty((2, p)), np.ones((p, p))
    diagonal_start(precision, covariance)
    count = 0
    for t in range(SWEEPS + sweeps):
        laplace_sweep(rng, precision, covariance, nothing, 0.0, rates, diagonal_rate, work)
        if t >= SWEEPS:
            for i in range(p):
                for j in range(i):
                    scale = precision[i, i] * precision[j, j]
                    count += precision[i, j] ** 2 > bound * bound * scale
    return count / (sweeps * 0.5 * p * (p - 1))
