"""What a model records for those who read its posterior."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

__all__ = ["record", "record_ends", "register"]


def register(name, distribution):
    """Make an unregistered distribution a variable of the model."""
    return pm.modelcontext(None).register_rv(distribution, name)


def record(name, value, dims=None):
    """Keep a constant in the group ``constant_data`` of every result.

    Unlike ``pm.Data`` it cannot be set: the posterior would be read with numbers that its draws
    know nothing of.
    """
    model = pm.modelcontext(None)
    constant = pt.constant(np.asarray(value), name=model.name_for(name))
    model.register_data_var(constant, dims=dims)


def record_ends(line, ends, dims):
    """Record which columns each edge or arc joins.

    With the position of each column, by which a result is told whose columns were sorted since.

    Parameters
    ----------
    line : {"edge", "arc"}
    ends : tuple of two int arrays
        Positions of source and target.
    dims : str
        Over the edges or arcs.
    """
    for name, positions in zip(("source", "target"), ends, strict=True):
        record(f"{line}_{name}", positions, dims=dims)
    nodes = pm.modelcontext(None).coords["node"]
    record("node_position", np.arange(len(nodes)), dims="node")
