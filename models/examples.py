"""A small table for each model, with which its code can be compiled and timed.

A new model is one more entry. The tables have a structure, so that draws move, and little else.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.models.catalogue import MODELS

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EXAMPLES", "FURTHER", "example", "further"]

_COLUMNS = [*"abcde"]


def _numbers(rng: np.random.Generator, n: int = 60) -> "pd.DataFrame":
    import pandas as pd

    table = rng.standard_normal((n, 5)) @ (np.eye(5) + 0.8 * np.eye(5, k=1))
    return pd.DataFrame(table, columns=_COLUMNS)


def _laplace(rng: np.random.Generator, n: int = 600) -> "pd.DataFrame":
    import pandas as pd

    table = rng.laplace(size=(n, 5)) @ (np.eye(5) + 0.8 * np.eye(5, k=1))
    return pd.DataFrame(table, columns=_COLUMNS)


def _states(rng: np.random.Generator, states: int = 2, n: int = 60) -> "pd.DataFrame":
    import pandas as pd

    x = rng.integers(0, states, size=(n, 5))
    for j in range(1, 5):
        x[:, j] = np.where(rng.random(n) < 0.6, x[:, j - 1], x[:, j])
    return pd.DataFrame(x, columns=_COLUMNS)


def _both(rng: np.random.Generator) -> "pd.DataFrame":
    """Numbers, two states, ordered and unordered categories."""
    import pandas as pd

    table = _numbers(rng)
    return table.assign(
        b=np.where(table["b"] > 0, "yes", "no"),
        c=pd.cut(table["c"], [-np.inf, -1, 1, np.inf], labels=["low", "middle", "high"]),
        d=np.array(["x", "y", "z"])[np.searchsorted([-1, 1], table["d"])],
    )


def _links(rng: np.random.Generator, n: int = 12) -> np.ndarray:
    group = np.arange(n) % 2
    upper = np.triu(rng.random((n, n)) < np.where(group[:, None] == group, 0.8, 0.2), 1)
    return (upper + upper.T).astype(float)


def _wins(rng: np.random.Generator, n: int = 6) -> np.ndarray:
    wins = rng.integers(1, 6, size=(n, n)).astype(float)
    np.fill_diagonal(wins, 0.0)
    return wins


def _series(rng: np.random.Generator, n: int = 25) -> list[np.ndarray]:
    return [rng.standard_normal((n, 2)) + 3.0 * (np.arange(n) % 10 < 5)[:, None] for _ in range(3)]


def _response(rng: np.random.Generator, n: int = 60) -> "pd.DataFrame":
    import pandas as pd

    x = rng.standard_normal(n)
    slope = np.where(rng.random(n) < 0.5, 1.5, -1.5)
    return pd.DataFrame({"x": x, "y": slope * x + 0.3 * rng.standard_normal(n)})


#: Function that draws the table of each model, and the options that the model needs with it.
EXAMPLES: dict[str, tuple[Callable[[np.random.Generator], Any], dict[str, Any]]] = {
    "gaussian_graphical": (_numbers, {}),
    "locally_constant_gaussian_graphical": (_numbers, {}),
    "blockwise_gaussian_graphical": (_numbers, {"blocks": [*"xxyyy"]}),
    "node_selection_gaussian_graphical": (_numbers, {}),
    "grouped_gaussian_graphical": (_numbers, {"group": ["a", "b"] * 30}),
    "gaussian_neighbourhoods": (_numbers, {}),
    "ising_neighbourhoods": (_states, {}),
    "ising": (_states, {}),
    "pairwise_mrf": (lambda rng: _states(rng, states=3), {"potentials": "ordinal"}),
    "tree": (_numbers, {}),
    "forest": (_numbers, {}),
    "latent_tree": (_numbers, {}),
    "bayesian_network": (_numbers, {}),
    "linear_sem": (_numbers, {"noise": "laplace"}),
    "lingam": (_laplace, {"noise": "laplace"}),
    "network_classifier": (lambda rng: _states(rng, states=3), {"target": "c"}),
    "latent_features": (_numbers, {}),
    "link_prediction": (_links, {}),
    "binary_matrix_factorization": (lambda rng: _numbers(rng, 12), {}),
    "additive_clustering": (_links, {}),
    "protein_complexes": (_links, {}),
    "hidden_causes": (_states, {}),
    "sparse_factor_analysis": (_numbers, {}),
    "infinite_ica": (_numbers, {}),
    "elimination_by_aspects": (_wins, {}),
    "markov_transitions": (_series, {}),
    "dp_glm": (_response, {"response": "y"}),
}


#: Further tables and options of a model, with which other machine code runs than with its example.
FURTHER: dict[str, list[tuple[Callable[[np.random.Generator], Any], dict[str, Any]]]] = {
    "bayesian_network": [(_states, {"score": "bdeu"}), (_both, {"score": "mixed"})],
    "lingam": [(_laplace, {})],
    "tree": [(_states, {"score": "bdeu"}), (_both, {"score": "mixed"})],
    "forest": [(_states, {"score": "bdeu"})],
    "latent_tree": [(_states, {"score": "bdeu"})],
}


def further(name: str, rng: np.random.Generator) -> list[tuple[Any, dict[str, Any]]]:
    """Draw the further tables of a model, each with its options; arguments are those of `example`."""
    return [(draw(rng), dict(options)) for draw, options in FURTHER.get(MODELS[name].name, ())]


def example(name: str, rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
    """Draw a small table for a model.

    Parameters
    ----------
    name : str
        Of the model.
    rng : numpy.random.Generator

    Returns
    -------
    table : DataFrame, ndarray or list of ndarray
    options : dict
        That the model needs with this table.

    Raises
    ------
    KeyError
        If there is no such model.
    """
    draw, options = EXAMPLES[MODELS[name].name]
    return draw(rng), dict(options)
