"""Let Python run the graphs that draw from distributions of this package, or return densities of rows.

A prior or posterior predictive draw, and a log-likelihood, run a graph once for each draw, and each of its
operations is a call of NumPy or of a kernel. To compile it takes seconds for every new graph; to run it
operation by operation takes a millisecond. So the whole graph becomes one operation, which compiled code
calls. Other graphs, such as the densities that a sampler evaluates, are compiled as before.
"""

import warnings

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from uuid import uuid4
from weakref import WeakValueDictionary

import numpy as np
import pymc
import pytensor
import pytensor.tensor as pt

from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.graph.basic import Apply
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.link.basic import PerformLinker
from pytensor.tensor.basic import Alloc
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import SpecifyShape

from bayesstruct.core.ops import SolverOp, python_call, register_rewrite

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["COMPOSITE", "PythonGraph", "row_densities", "run_graph"]

#: What is said of the log likelihood of rows under a composite likelihood.
COMPOSITE = (
    "the log likelihood is a composite one, the sum of the conditional log probabilities of each value given the rest "
    "of its row, and no density of the rows: the dependence of two columns counts twice, so that az.loo and az.compare "
    'of rows are too sure and their p_loo is too large; compare models with likelihood="exact", or leave out single '
    "values: az.loo(bs.pointwise(idata))"
)
_SKIPPED = tuple(str(Path(str(module.__file__)).parent) for module in (pytensor, pymc))
#: Graphs by number. Machine code asks for a number, of which each belongs to one graph.
_GRAPHS: "WeakValueDictionary[int, _Runner]" = WeakValueDictionary()


class _Runner:
    """A graph that Python runs operation by operation, for one thread at a time."""

    def __init__(self, graph: FunctionGraph):
        self.linker = PerformLinker().accept(graph)
        self.run, self.inputs, self.outputs = self.linker.make_thunk()
        self.lock = Lock()

    def __call__(self, *values):
        with self.lock:
            for storage, value in zip(self.inputs, values, strict=True):
                storage.storage[0] = value
            self.run()
            found = [storage.storage[0] for storage in self.outputs]
            return [np.array(v) if isinstance(v, np.ndarray | np.generic) else v for v in found]


def run_graph(number, *inputs):
    """Run the graph of this number; return its output, or a tuple of them."""
    found = _GRAPHS[int(number)](*inputs)
    return found[0] if len(found) == 1 else tuple(found)


class PythonGraph(SolverOp):
    """A whole graph as one operation.

    The first input is the number of the graph; the others are those of the graph.

    Parameters
    ----------
    graph : FunctionGraph
        Its operations must leave their inputs as they are.
    """

    __props__ = ("inputs", "outputs")
    stored = False  # its number never comes again, so that nobody would load it

    def __init__(self, graph: FunctionGraph):
        # Not counted: a function that is pickled must not meet another graph in the process that loads it.
        self.number = uuid4().int >> 65
        self.inputs = tuple(v.type for v in graph.inputs)
        self.outputs = tuple(v.type for v in graph.outputs)
        self.graph, self.runner = graph, _Runner(graph)
        _GRAPHS[self.number] = self.runner

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "runner"}

    def __setstate__(self, state):
        super().__setstate__(state)
        self.runner = _GRAPHS.get(self.number) or _Runner(self.graph)
        _GRAPHS[self.number] = self.runner

    def make_node(self, number, *inputs):
        """Apply the operation."""
        self.register()
        return Apply(self, [pt.as_tensor_variable(number), *inputs], [t() for t in self.outputs])

    def perform(self, node, inputs, output_storage):
        """Run the graph in Python."""
        found = run_graph(*inputs)
        found = (found,) if len(node.outputs) == 1 else found
        for storage, value in zip(output_storage, found, strict=True):
            storage[0] = value

    def numba_function(self, node):
        """Return the call of a function that looks the graph up, so that the graph itself is not stored."""
        return python_call(run_graph, node)


class RowDensities(Op):
    """The same tensor, marked as log densities of the rows of a table.

    Parameters
    ----------
    composite : bool or str
        Whether they are those of a composite likelihood, which is no density of the rows; or the text of the warning.
    refused : str
        Why they are no densities of rows at all, and the remedy.
    returned : bool
        Whether a function returns just these.
    """

    __props__ = ("composite", "refused", "returned")

    def __init__(self, composite: bool | str = False, refused: str = "", returned: bool = False):
        self.composite, self.refused, self.returned = composite, refused, returned

    def make_node(self, densities):
        """Apply the mark."""
        return Apply(self, [densities], [densities.type()])

    def perform(self, node, inputs, output_storage):
        """Return the same values, or raise."""
        if self.refused and self.returned:
            raise ValueError(self.refused)
        output_storage[0][0] = np.array(inputs[0])

    def do_constant_folding(self, fgraph, node):
        """Wait for the run: rewrites do not raise."""
        return not self.refused

    def infer_shape(self, node, input_shapes):
        """Shapes of the outputs."""
        return input_shapes

    def pullback(self, inputs, outputs, cotangents):
        """Pass derivatives unchanged."""
        return cotangents


def row_densities(
    densities: "TensorVariable", *, composite: bool | str = False, refused: str = ""
) -> "TensorVariable":
    """Mark a tensor as log densities of rows: a function that returns just these is run by Python.

    If they are those of a composite likelihood, such a function warns when it is made, with the text `composite` if it is one. If
    the likelihood is no product over rows, `refused` says why, and such a function raises when it is called.
    """
    return RowDensities(composite, refused).make_node(densities).outputs[0]


def _widened(variable):
    """Variable that another one only repeats, or whose shape it only states."""
    while variable.owner is not None and isinstance(variable.owner.op, Alloc | SpecifyShape):
        variable = variable.owner.inputs[0]
    return variable


def _draws(op) -> bool:
    """Whether an operation is a distribution of this package, or made from one of its bases."""
    modules = (kind.__module__ for kind in type(op).__mro__)
    return isinstance(op, RandomVariable | SymbolicRandomVariable) and any(
        module.startswith("bayesstruct.") for module in modules
    )


class _WarnOfComposite(GraphRewriter):
    """Warn of functions that return log densities of rows which are none, or let them raise."""

    def apply(self, fgraph):
        returned = [_widened(out).owner for out in fgraph.outputs]
        marked = [node for node in returned if node and isinstance(node.op, RowDensities)]
        for node in marked:
            if node.op.refused and not node.op.returned:
                raising = RowDensities(refused=node.op.refused, returned=True)
                new = raising.make_node(node.inputs[0]).outputs[0]
                fgraph.replace(node.outputs[0], new, reason="refuse", import_missing=True)
        for composite in dict.fromkeys(node.op.composite for node in marked if node.op.composite):
            text = COMPOSITE if composite is True else composite
            warnings.warn(text, UserWarning, stacklevel=2, skip_file_prefixes=_SKIPPED)


class _RunByPythonMark(Feature):
    """Mark of a graph that Python is to run."""


class _MarkGraphs(GraphRewriter):
    """Find the graphs that Python is to run, before other rewrites expand what they are found by."""

    def apply(self, fgraph):
        nodes = [*fgraph.apply_nodes]
        rows = [node for node in nodes if isinstance(node.op, RowDensities)]
        returned = {node.outputs[0] for node in rows}
        if any(_draws(node.op) for node in nodes) or (
            rows and all(_widened(out) in returned for out in fgraph.outputs)
        ):
            fgraph.attach_feature(_RunByPythonMark())
        plain = [node for node in rows if not node.op.returned]
        fgraph.replace_all([(node.outputs[0], node.inputs[0]) for node in plain], reason="unmark")


class _RunByPython(GraphRewriter):
    """Replace such a graph by one operation."""

    def apply(self, fgraph):
        if not any(isinstance(feature, _RunByPythonMark) for feature in fgraph._features):
            return
        inner, _ = fgraph.clone_get_equiv(check_integrity=False, attach_feature=False)
        op = PythonGraph(inner)
        found = op.make_node(np.int64(op.number), *fgraph.inputs).outputs
        for i, (old, new) in enumerate(zip([*fgraph.outputs], found, strict=True)):
            if old.owner is not None:  # an input or a constant is returned as it is
                returned = old.type.filter_variable(new, allow_convert=True)
                client, place = fgraph.get_output_client(i)
                fgraph.change_node_input(
                    client, place, returned, reason="run_by_python", import_missing=True
                )


_EVERYWHERE = ("fast_compile", "fast_run", "numba", "jax")
register_rewrite("warn_of_composite", _WarnOfComposite(), -0.6, _EVERYWHERE)
# The second comes before elementwise operations are fused and before any works in place.
register_rewrite("mark_graphs", _MarkGraphs(), -0.5)
register_rewrite("run_by_python", _RunByPython(), 47.9)
