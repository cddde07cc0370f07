"""What labels of clusters say about the clusters, as one operation.

As an expression of PyTensor's own operations the same takes seconds to compile.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import pytensor.tensor as pt

from pytensor.graph.basic import Apply
from pytensor.tensor.blockwise import Blockwise

from bayesstruct.core.ops import KernelOp

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["ClusterCounts", "Clusters", "clusters_of"]


class Clusters(NamedTuple):
    """Properties of the clusters of a partition.

    Attributes
    ----------
    counts : TensorVariable, shape (k,), float64
        Objects in each cluster.
    ordered : TensorVariable, scalar, bool
        Whether all labels are below k, and each at most the number of different ones before it.
    used : TensorVariable, scalar, int64
        Clusters that have objects.
    """

    counts: "TensorVariable"
    ordered: "TensorVariable"
    used: "TensorVariable"


def clusters_of(labels: Any, number: Any) -> Clusters:
    """Return the properties of clusters.

    Parameters
    ----------
    labels : tensor_like of int, shape (..., n)
    number : int or scalar tensor
        Labels from 0 to ``number - 1`` are counted.

    Returns
    -------
    Clusters
        Of shape (..., k) and (...).
    """
    labels = pt.as_tensor_variable(labels)
    empty = pt.zeros(number)
    op = ClusterCounts() if labels.type.ndim == 1 else Blockwise(ClusterCounts())
    return Clusters(*op.make_node(labels, empty).outputs)


class ClusterCounts(KernelOp):
    """Sizes, order and number of the clusters of a partition; the second input gives their number."""

    __props__ = ()
    gufunc_signature = "(n),(k)->(k),(),()"

    def make_node(self, labels, empty):
        """Apply the operation to labels, and to as many zeros as there are clusters."""
        self.register()
        labels, empty = pt.as_tensor_variable(labels), pt.as_tensor_variable(empty)
        if labels.type.ndim != 1 or empty.type.ndim != 1:
            raise TypeError("labels and zeros must be vectors")
        if not labels.type.dtype.startswith(("int", "uint")):
            raise TypeError(f"labels must be whole numbers, they are {labels.type.dtype}")
        counts = pt.tensor(dtype="float64", shape=empty.type.shape)
        return Apply(
            self, [labels, empty], [counts, pt.scalar(dtype="bool"), pt.scalar(dtype="int64")]
        )

    def definition(self, labels, empty):
        """Give an output as an expression of PyTensor's own operations; for fingerprints of models."""
        return [None, None, labels.max() + 1]

    def kernel(self):
        """Return the kernel."""
        from bayesstruct.mixtures.kernels.clusters import cluster_counts

        return cluster_counts

    def infer_shape(self, node, input_shapes):
        """Shapes of the outputs."""
        return [input_shapes[1], (), ()]
