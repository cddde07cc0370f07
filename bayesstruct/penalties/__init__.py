"""Penalties: one definition of each, shared by solvers, Ops and priors."""

from bayesstruct.penalties.base import Penalty
from bayesstruct.penalties.group import Group
from bayesstruct.penalties.l1 import L1
from bayesstruct.penalties.sparse_group import SparseGroup
from bayesstruct.penalties.tree import Tree

__all__ = ["L1", "Group", "Penalty", "SparseGroup", "Tree"]
