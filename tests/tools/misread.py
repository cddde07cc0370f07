"""Tables that tests of misread tables begin with."""

import numpy as np
import pandas as pd

__all__ = [
    "ANSWERS",
    "NORMAL",
    "answers_table",
    "coded_table",
    "correlation_table",
    "normal_table",
    "words_table",
]

NORMAL = np.random.default_rng(1).normal(size=(100, 3))
ANSWERS = np.random.default_rng(2).integers(1, 6, (100, 3))


def normal_table(**columns):
    return pd.DataFrame(NORMAL, columns=["a", "b", "c"]).assign(**columns)


def coded_table(value, rows=8, low=0.0, scale=1.0):
    """A column of measurements of which the first rows hold a code."""
    column = low + scale * np.random.default_rng(3).normal(size=100)
    column[:rows] = value
    return normal_table(b=column)


def answers_table(**columns):
    return pd.DataFrame(ANSWERS, columns=["a", "b", "c"]).assign(**columns)


def words_table(**pairs):
    """Columns of two states each."""
    rng = np.random.default_rng(6)
    return pd.DataFrame(
        {name: [own[k] for k in rng.integers(0, 2, 100)] for name, own in pairs.items()}
    )


def correlation_table():
    return normal_table().corr()
