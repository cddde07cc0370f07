"""Recognise sparse factors: which factors rows have, their scores and loadings, and the table."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.recognition import NotRecognized, children_of, depends_on, is_op, parameters
from bayesstruct.features.priors.feature_scores import FactorRowsRV, FeatureScoresRV
from bayesstruct.features.priors.indian_buffet import FeatureLoadingsRV
from bayesstruct.features.recognition.children import children_of_kinds

if TYPE_CHECKING:
    import pymc as pm

    from pytensor.tensor import TensorVariable

__all__ = ["SparseFactors", "sparse_factors_of"]


@dataclass(frozen=True, eq=False)
class SparseFactors:
    """Factors of a table, each of which some rows have.

    Attributes
    ----------
    feature, score, loading, rows : TensorVariable
        Which factors each row has, their scores, their loadings on the columns, and the table.
    seen : ndarray
        1 where a value of the table was observed; broadcasts with the table.
    """

    feature: "TensorVariable"
    score: "TensorVariable"
    loading: "TensorVariable"
    rows: "TensorVariable"
    seen: np.ndarray

    @property
    def variables(self) -> list:
        """Random variables that are drawn together."""
        return [self.feature, self.score, self.loading]


def sparse_factors_of(model: "pm.Model", feature: "TensorVariable") -> SparseFactors:
    """Collect scores, loadings and table around features.

    Raises
    ------
    NotRecognized
        Says what keeps them from being drawn exactly.
    """
    score, loading = children_of_kinds(model, feature, (FeatureScoresRV, FeatureLoadingsRV))
    tables = children_of(model, score)
    alone = len(tables) == 1 and is_op(tables[0], FactorRowsRV)
    if not alone or children_of(model, loading) != tables:
        raise NotRecognized(f"{score.name!r} and {loading.name!r} do not make one FactorRows alone")
    [table] = tables
    first, second, *others = parameters(table)
    if first is not score or second is not loading:
        raise NotRecognized(f"{table.name!r} is not made of {score.name!r} and {loading.name!r}")
    if not parameters(score)[0] is parameters(loading)[0] is feature:
        raise NotRecognized(
            f"{score.name!r} and {loading.name!r} are not those of {feature.name!r} itself"
        )
    if any(depends_on(others, rv) for rv in (feature, score, loading)):
        raise NotRecognized(f"the noise of {table.name!r} depends on its factors")
    once = {"mode": "FAST_COMPILE"}
    [seen] = Expressions(model, [others[-1]], once)(model.initial_point())
    return SparseFactors(feature, score, loading, table, seen)
