"""Penalties: one definition of each, shared by solvers, Ops and priors."""

from bayesstruct.sparse.penalties.base import Penalty
from bayesstruct.sparse.penalties.group import Group
from bayesstruct.sparse.penalties.l1 import L1
from bayesstruct.sparse.penalties.sparse_group import SparseGroup
from bayesstruct.sparse.penalties.tree import Tree

__all__ = ["L1", "Group", "Penalty", "SparseGroup", "Tree"]
