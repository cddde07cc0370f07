"""Options of a model, as sentences about the model write them."""

import inspect

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.app.report.papers import cited
from bayesstruct.models.options import STOCHASTIC_BLOCK

if TYPE_CHECKING:
    from bayesstruct.app.report.parts import Result

__all__ = ["Described", "Options", "model_options"]


@dataclass(frozen=True)
class Described:
    """A model in words.

    Attributes
    ----------
    question : str
        What the model asks.
    sentences : tuple of str
        Model and priors with their parameters, and citations in parentheses.
    papers : tuple of str
        Keys of the papers that the sentences cite.
    """

    question: str
    sentences: tuple[str, ...]
    papers: tuple[str, ...]


def model_options(options: dict) -> dict[str, Any]:
    """Return the options of the model function that were given, by name."""
    return {name: value for name, value in options["model_options"].items() if value is not None}


class Options:
    """Options of a model as given, or their defaults, written for readers."""

    def __init__(self, result: "Result"):
        self.result = result
        self.given = model_options(result.job.options)
        self.used: list[str] = []

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Defaults of the options of the model function."""
        from bayesstruct import models

        function = getattr(models, self.result.job.options["model"])
        return {n: p.default for n, p in inspect.signature(function).parameters.items()}

    @cached_property
    def changed(self) -> dict[str, Any]:
        """Options that were given, without the prior if it is the default, which a run names in any case."""
        kept = {name: value for name, value in self.given.items() if name != "prior"}
        prior = self.given.get("prior")
        usual = prior is None or prior == self.defaults.get("prior")
        return kept if usual else {"prior": prior, **kept}

    def get(self, name: str, default: Any = None) -> Any:
        """Return an option, its default, or `default` if that is None."""
        value = self.given.get(name, self.defaults.get(name))
        return default if value is None or value is inspect.Parameter.empty else value

    def number(self, name: str, default: Any = None) -> str:
        """Write an option that is a number, or a matrix of them, or a distribution."""
        value = self.get(name, default)
        if isinstance(value, bool | int | float):
            return f"{value:g}"
        return _words(value) if isinstance(value, str) else "as given for each pair"

    def scaled(self, name: str, default: str, given: str = "{}") -> str:
        """Write an option that has a prior unless it is given."""
        value = self.get(name)
        return default if value is None else given.format(self.number(name))

    def had(self, name: str, default: str) -> str:
        """Say which prior a parameter had, or at which number it was fixed."""
        value = self.get(name)
        return f"had the prior {default}" if value is None else f"was {self.number(name)}"

    def edges(self, kind: str = "", default: Any = None) -> str:
        """Say which prior probability edges had, in a clause.

        Parameters
        ----------
        kind : str
            Of probability, with a space behind it.
        default : float, optional
        """
        value = self.get("edge_probability", default)
        if isinstance(value, bool | int | float):
            return f"each edge had the {kind}prior probability {value:g}"
        if value == "blocks":
            return f"the {kind}prior probabilities of edges had a stochastic block model as prior"
        if self.is_said:
            a, b = (float(number) for number in str(value).partition(":")[2].split(","))
            return f"all edges had the same {kind}prior probability, which had the prior Beta({a:g}, {b:g})"
        return f"each edge had a {kind}prior probability of its own, as given"

    @property
    def is_said(self) -> bool:
        """Whether `edges` says which prior the probability of edges had, if it is a parameter."""
        value = self.get("edge_probability")
        return isinstance(value, str) and (value == "blocks" or value.startswith("beta:"))

    def cite(self, *keys: str) -> str:
        """Cite papers, and remember them."""
        self.used += [key for key in keys if key not in self.used]
        return cited(*keys)

    @property
    def implied(self) -> str:
        """Prior probability of an edge that the model implies, or its range."""
        from bayesstruct.graphs.records import EdgePrior

        if not EdgePrior.is_in(self.result.idata):
            return "that the model implies"
        prior = np.asarray(EdgePrior.read(self.result.idata).prior, float)
        free = prior[(prior > 0) & (prior < 1)]
        return _range(free if len(free) else prior)


def _words(text: str) -> str:
    """Write a distribution, such as ``beta:1,4`` on the command line, as in a sentence."""
    if text == STOCHASTIC_BLOCK:
        return "of a stochastic block model"
    name, sign, numbers = text.partition(":")
    return f"{name.capitalize()}({', '.join(numbers.split(','))})" if sign else text


def _range(values: np.ndarray) -> str:
    values = values[np.isfinite(values)]
    if not len(values):
        return "that the data decide on"
    low, high = values.min(), values.max()
    return f"{low:.3f}" if high - low < 5e-4 else f"{low:.3f} to {high:.3f}"
