"""Let Python run the graphs that draw from distributions of this package.

A prior or posterior predictive draw runs a graph some hundred times, and each of its operations is
a call of NumPy or of a kernel. To compile it takes seconds for every new graph; to run it operation by
operation takes a millisecond. So the whole graph becomes one operation, which compiled code calls. Graphs
without draws, such as the densities that a sampler evaluates, are compiled as before.
"""

from itertools import count
from weakref import WeakValueDictionary

import numpy as np
import pytensor.tensor as pt

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.link.basic import PerformLinker

from bayesstruct.core.ops import InterpretedOp

__all__ = ["PythonGraph"]

_NUMBERS = count()
#: Graphs by number. Machine code on disk asks for a number, which each process gives to its own graph.
_GRAPHS: "WeakValueDictionary[int, _Runner]" = WeakValueDictionary()


class _Runner:
    """A graph that Python runs operation by operation."""

    def __init__(self, graph: FunctionGraph):
        self.graph = graph
        self.linker = PerformLinker().accept(graph)
        self.run, self.inputs, self.outputs = self.linker.make_thunk()

    def __call__(self, *values):
        for storage, value in zip(self.inputs, values, strict=True):
            storage.storage[0] = value
        self.run()
        found = [storage.storage[0] for storage in self.outputs]
        return [np.array(v) if isinstance(v, np.ndarray | np.generic) else v for v in found]


class PythonGraph(InterpretedOp):
    """A whole graph as one operation.

    The first input is the number of the graph; the others are those of the graph.

    Parameters
    ----------
    graph : FunctionGraph
        Its operations must leave their inputs as they are.
    """

    __props__ = ("inputs", "outputs")

    def __init__(self, graph: FunctionGraph):
        self.inputs = tuple(v.type for v in graph.inputs)
        self.outputs = tuple(v.type for v in graph.outputs)
        self.runner, self.number = _Runner(graph), next(_NUMBERS)
        _GRAPHS[self.number] = self.runner

    def make_node(self, number, *inputs):
        """Apply the operation."""
        self.register()
        return Apply(self, [pt.as_tensor_variable(number), *inputs], [t() for t in self.outputs])

    def compute(self, number, *inputs):
        """Run the graph of this number."""
        found = _GRAPHS[int(number)](*inputs)
        return found[0] if len(found) == 1 else tuple(found)

    def perform(self, node, inputs, output_storage):
        """Run the graph in Python."""
        for storage, value in zip(
            output_storage, _GRAPHS[int(inputs[0])](*inputs[1:]), strict=True
        ):
            storage[0] = value


class _Draws(Feature):
    """Mark of a graph that draws."""


class _MarkDraws(GraphRewriter):
    """Note that a graph draws from a distribution of this package, before others expand it."""

    def apply(self, fgraph):
        if any(getattr(node.op, "run_by_python", False) for node in fgraph.apply_nodes):
            fgraph.attach_feature(_Draws())


class _RunByPython(GraphRewriter):
    """Replace a graph that draws by one operation."""

    def apply(self, fgraph):
        if not any(isinstance(feature, _Draws) for feature in fgraph._features):
            return
        inner, _ = fgraph.clone_get_equiv(check_integrity=False, attach_feature=False)
        node = PythonGraph(inner)
        found = node(np.int64(node.number), *fgraph.inputs)
        found = found if isinstance(found, list | tuple) else [found]
        pairs = [
            (old, old.type.filter_variable(new, allow_convert=True))
            for old, new in zip(fgraph.outputs, found, strict=True)
        ]
        fgraph.replace_all(pairs, reason="run_by_python")


# The second comes before elementwise operations are fused and before any works in place.
optdb.register("mark_draws", _MarkDraws(), "numba", position=-0.5)
optdb.register("run_draws_by_python", _RunByPython(), "numba", position=47.9)
