"""Values that stand for a missing one in the table of a model, as it and its results remember them."""

import json

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesstruct.core.recorded import Recorded, constant
from bayesstruct.data.recoding import other_rows_without_codes, plain_codes
from bayesstruct.data.row_groups import is_by_group

__all__ = ["MissingCodes", "record_codes"]


@dataclass(frozen=True)
class MissingCodes(Recorded):
    """The option `missing_codes` of a model.

    Attributes
    ----------
    text : ndarray of uint8, optional
        JSON as bytes, since constants of a model are numbers: a list, or a dict of columns and lists. None
        without codes.
    """

    text: np.ndarray | None = constant("missing_codes", optional=True)

    @classmethod
    def of_model(cls, model) -> "MissingCodes":
        """Read the codes of a model."""
        name = model.name_for("missing_codes")
        return cls(model[name].data if name in model.named_vars else None)

    def without(self, data: Any, names: Sequence[str]) -> Any:
        """Return other rows of the table in which these values are missing.

        Parameters
        ----------
        data : DataFrame or array_like, or None
        names : sequence of str
            Columns of the table of the model.
        """
        if self.text is None or data is None:
            return data
        codes = json.loads(np.asarray(self.text, np.uint8).tobytes())
        return other_rows_without_codes(data, codes, names)

    def without_of_groups(self, data: Any, names: Sequence[str]) -> Any:
        """Return one table for each group without these values; other tables as they are."""
        if not is_by_group(data):
            return data
        return {label: self.without(own, names) for label, own in data.items()}


def record_codes(missing_codes: Any) -> None:
    """Record the option `missing_codes` of the model in context, for rows that are read later."""
    if missing_codes is not None:
        text = json.dumps(plain_codes(missing_codes)).encode()
        MissingCodes(np.frombuffer(text, np.uint8)).record()
