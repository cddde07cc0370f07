"""Let Python run the graphs that draw from distributions of this package, or return densities of rows.

A prior or posterior predictive draw, and a log-likelihood, run a graph once for each draw, and each of its
operations is a call of NumPy or of a kernel. To compile it takes seconds for every new graph; to run it
operation by operation takes a millisecond. So the whole graph becomes one operation, which compiled code
calls. Other graphs, such as the densities that a sampler evaluates, are compiled as before.
"""

from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.link.basic import PerformLinker
from pytensor.tensor.random.op import RandomVariable

from bayesstruct.core.ops import InterpretedOp

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["PythonGraph", "row_densities"]

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


class RowDensities(Op):
    """The same tensor, marked as log densities of the rows of a table."""

    __props__ = ()

    def make_node(self, densities):
        """Apply the mark."""
        return Apply(self, [densities], [densities.type()])

    def perform(self, node, inputs, output_storage):
        """Return the same values."""
        output_storage[0][0] = np.array(inputs[0])

    def infer_shape(self, node, input_shapes):
        """Shapes of the outputs."""
        return input_shapes

    def pullback(self, inputs, outputs, cotangents):
        """Pass derivatives unchanged."""
        return cotangents


def row_densities(densities: "TensorVariable") -> "TensorVariable":
    """Mark a tensor as log densities of rows: a function that returns just these is run by Python."""
    return RowDensities().make_node(densities).outputs[0]


def _draws(op) -> bool:
    """Whether an operation is a distribution of this package, or made from one of its bases."""
    modules = (kind.__module__ for kind in type(op).__mro__)
    return isinstance(op, RandomVariable | SymbolicRandomVariable) and any(
        module.startswith("bayesstruct.") for module in modules
    )


class _RunByPythonMark(Feature):
    """Mark of a graph that Python is to run."""


class _MarkGraphs(GraphRewriter):
    """Find the graphs that Python is to run, before other rewrites expand what they are found by."""

    def apply(self, fgraph):
        nodes = [*fgraph.apply_nodes]
        rows = [node for node in nodes if isinstance(node.op, RowDensities)]
        returned = {node.outputs[0] for node in rows}
        if any(_draws(node.op) for node in nodes) or (
            rows and all(out in returned for out in fgraph.outputs)
        ):
            fgraph.attach_feature(_RunByPythonMark())
        fgraph.replace_all([(node.outputs[0], node.inputs[0]) for node in rows], reason="unmark")


class _RunByPython(GraphRewriter):
    """Replace such a graph by one operation."""

    def apply(self, fgraph):
        if not any(isinstance(feature, _RunByPythonMark) for feature in fgraph._features):
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
optdb.register("mark_graphs", _MarkGraphs(), "numba", position=-0.5)
optdb.register("run_by_python", _RunByPython(), "numba", position=47.9)
