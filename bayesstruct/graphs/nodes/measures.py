"""Measures of how central nodes are in weighted graphs."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from bayesstruct.graphs.nodes.weighted import WeightedGraphs

__all__ = ["Measures", "node_groups"]


class Measures:
    """Measures of all nodes in each of some graphs.

    Parameters
    ----------
    graphs : WeightedGraphs
    labels : (p,) ndarray of int, optional
        Group of each node; without it there are no bridges.
    """

    def __init__(self, graphs: WeightedGraphs, labels: np.ndarray | None = None):
        self.graphs, self.labels = graphs, labels

    @property
    def available(self) -> dict[str, Callable[[], np.ndarray]]:
        """Measures that these graphs have, each a function that returns an array (n, p)."""
        weighted = self.graphs.weights is not None
        found: dict[str, Callable[[], np.ndarray]] = {}
        if weighted:
            found |= self._strengths() | {"expected_influence": self._influence}
            found["expected_influence_two_step"] = self._influence_two_step
        found["betweenness"] = self._betweenness
        found |= self._sides("closeness", self._closeness)
        found |= self._sides("degree", lambda sum_over: sum_over(self._present), sums=True)
        if weighted and self.labels is not None:
            found["bridge_strength"] = self._bridge_strength
            found["bridge_expected_influence"] = self._bridge_influence
        return found

    def usual(self) -> tuple[str, ...]:
        """Measures that are shown unless others are asked for."""
        names = tuple(self.available)
        if self.graphs.weights is None:
            return names
        return tuple(
            name for name in names if "degree" not in name and not name.endswith("two_step")
        )

    def take(self, name: str) -> np.ndarray:
        """One measure, (n, p).

        Raises
        ------
        ValueError
            If these graphs do not have it; the message says why and names those that they have.
        """
        available = self.available
        if name not in available:
            raise ValueError(f"{self._reason(name)}; there are {', '.join(map(repr, available))}")
        return available[name]()

    def _reason(self, name: str) -> str:
        if not isinstance(name, str):
            return f"a measure is named by a text, not {name!r}"
        if self.graphs.weights is None and name.removeprefix("bridge_") in _WEIGHTED:
            return f"{name!r} needs weights, which the lines of this result do not have"
        if name.startswith("bridge_") and self.labels is None and name in _BRIDGES:
            return f"{name!r} needs groups of nodes: communities={{name: group, ...}}"
        if self.graphs.directed and name in ("strength", "closeness", "degree"):
            return f"in a directed graph it is 'in_{name}' or 'out_{name}'"
        return f"there is no measure {name!r} of this result"

    def _strengths(self) -> dict[str, Callable[[], np.ndarray]]:
        return self._sides("strength", lambda over: over(np.abs(self._weights)), sums=True)

    def _sides(self, name: str, of: Callable[[Any], np.ndarray], sums: bool = False) -> dict:
        """Measures by direction: of all lines, or of arcs that enter and of arcs that leave."""
        graphs = self.graphs
        if not graphs.directed:
            return {name: lambda: of(graphs.touching if sums else 0)}
        entering, leaving = (graphs.entering, graphs.leaving) if sums else (1, 0)
        return {f"in_{name}": lambda: of(entering), f"out_{name}": lambda: of(leaving)}

    @property
    def _weights(self) -> np.ndarray:
        assert self.graphs.weights is not None
        return self.graphs.weights

    @property
    def _present(self) -> np.ndarray:
        return self.graphs.present.astype(float)

    def _signed(self, weights: np.ndarray) -> np.ndarray:
        """Sum weights with their signs: of all edges, or of arcs that leave."""
        return (
            self.graphs.leaving(weights) if self.graphs.directed else self.graphs.touching(weights)
        )

    def _influence(self) -> np.ndarray:
        return self._signed(self._weights)

    def _influence_two_step(self) -> np.ndarray:
        graphs, weights, one = self.graphs, self._weights, self._influence()
        source, target = graphs.posterior.source, graphs.posterior.target
        two = one + graphs.leaving(weights * one[:, target])
        return two if graphs.directed else two + graphs.entering(weights * one[:, source])

    @cached_property
    def _between_groups(self) -> np.ndarray:
        """Weights of lines between nodes of different groups; those of all others are zero."""
        assert self.labels is not None
        posterior = self.graphs.posterior
        bridge = self.labels[posterior.source] != self.labels[posterior.target]
        return np.where(bridge, self._weights, 0.0)

    def _bridge_strength(self) -> np.ndarray:
        return self.graphs.touching(np.abs(self._between_groups))

    def _bridge_influence(self) -> np.ndarray:
        return self._signed(self._between_groups)

    @cached_property
    def _paths(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        from bayesstruct.graphs.nodes.paths import shortest_paths  # loads Numba

        graphs = self.graphs
        size = graphs.present.astype(float) if graphs.weights is None else np.abs(graphs.weights)
        with np.errstate(divide="ignore", over="ignore"):
            length = 1.0 / size
        ends = graphs.posterior.source, graphs.posterior.target
        return shortest_paths(length, *ends, graphs.p, graphs.directed)

    def _betweenness(self) -> np.ndarray:
        pairs = (self.graphs.p - 1) * (self.graphs.p - 2)
        return self._paths[0] / max(pairs, 1)

    def _closeness(self, side: int) -> np.ndarray:
        _, reached, total = self._paths
        near, far = reached[:, side], total[:, side]
        inverse = np.divide(near, far, out=np.zeros_like(far), where=far > 0)
        return inverse * near / max(self.graphs.p - 1, 1)


_BRIDGES = ("bridge_strength", "bridge_expected_influence")
_WEIGHTED = (
    "strength",
    "in_strength",
    "out_strength",
    "expected_influence",
    "expected_influence_two_step",
)


def node_groups(communities: Any, names: list[str]) -> np.ndarray | None:
    """Read groups of nodes as numbers in the order of the nodes.

    Parameters
    ----------
    communities : mapping of name to group, pandas.Series, or an object with such a `partition`; optional
    names : list of str

    Raises
    ------
    TypeError, ValueError
        If it is none of these, lacks a node, names an unknown one, or has one group only.
    """
    if communities is None:
        return None
    communities = getattr(communities, "partition", communities)
    if hasattr(communities, "to_dict") and getattr(communities, "ndim", 0) == 1:
        communities = communities.to_dict()
    if not isinstance(communities, Mapping):
        raise TypeError(
            "`communities` must map the name of each node to its group, {name: group, ...} or a Series, "
            f"not {type(communities).__name__}"
        )
    given = {str(name): label for name, label in communities.items()}
    if lost := [name for name in names if name not in given or given[name] != given[name]]:
        raise ValueError(f"`communities` has no group for {lost[0]!r}: name one for each node")
    if unknown := sorted({*given} - {*names}):
        raise ValueError(
            f"`communities` has {unknown[0]!r}, which is no column; columns are {', '.join(names)}"
        )
    groups = list(dict.fromkeys(given[name] for name in names))
    if len(groups) == 1:
        raise ValueError(
            f"`communities` has all nodes in one group, {groups[0]!r}: bridges are lines between two"
        )
    return np.array([groups.index(given[name]) for name in names])
