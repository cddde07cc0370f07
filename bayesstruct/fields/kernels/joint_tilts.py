r"""Change of the log-partition function of a Markov random field with the potentials of few variables.

If the tables of one or two variables change, the log-partition function of the *exact* likelihood changes by

.. math:: \log Z' - \log Z = \log \sum_c m_c \, e^{\Delta_c},

:math:`m_c` being the joint probability of the states ``c`` of these variables. The log-potentials of all
joint states are kept, and updated after each move. For the pseudo-likelihood see
:mod:`bayesstruct.fields.kernels.row_tilts`.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner

__all__ = ["marginal", "tally_joint"]


@inner
def marginal(energy, cell, out):
    """Log probability of each cell of a few variables, from the log-potentials of joint states."""
    top = -np.inf
    for c in range(energy.shape[0]):
        top = max(top, energy[c])
    out[:] = -np.inf
    # Each cell has a maximum of its own, so that rare cells keep their digits.
    for c in range(energy.shape[0]):
        out[cell[c]] = max(out[cell[c]], energy[c])
    sums = np.zeros(out.shape[0])
    for c in range(energy.shape[0]):
        sums[cell[c]] += math.exp(energy[c] - out[cell[c]])
    total = 0.0
    for a in range(out.shape[0]):
        out[a] += math.log(sums[a])
        total += math.exp(out[a] - top)
    top += math.log(total)
    for a in range(out.shape[0]):
        out[a] -= top


@inner
def tally_joint(logs, change, n, first):
    """Change of ``n log Z``, and ``n`` times the tilted probabilities of the cells."""
    size = logs.shape[0]
    top = -np.inf
    for c in range(size):
        first[c] = logs[c] + change[c]
        top = max(top, first[c])
    total = 0.0
    for c in range(size):
        first[c] = math.exp(first[c] - top)
        total += first[c]
    for c in range(size):
        first[c] *= n / total
    return n * (top + math.log(total))
