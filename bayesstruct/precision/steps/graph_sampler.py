"""Arrays of a random graph and its table, on which the kernels work: draws, and a search for the best graph."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.missing import observed_values
from bayesstruct.core.recognition import parameters
from bayesstruct.precision.recognition.graphs import GraphPart

if TYPE_CHECKING:
    import pymc as pm

    from numpy.random import Generator

__all__ = ["GraphSampler"]

_COLUMNS = 250  # for each of which a draw takes another round


class GraphSampler:
    """Draws of a graph, and of the common probability of its edges, given a table.

    The gains of a node are computed from its neighbours alone, so that what is remembered here is a function of
    the graph: a run that is continued from a point goes on bit for bit.

    Parameters
    ----------
    model : pymc.Model
    part : GraphPart
    compile_kwargs : dict, optional
    rounds : int, optional
    swaps : float
        As in `bayesstruct.steps.GraphJumps`.

    Attributes
    ----------
    known : (pairs,) ndarray of int8
        Edges of the graph that the arrays are of.
    average : (pairs,) ndarray of float32
        Means over the time of the last draw of the conditional probabilities of the edges.
    """

    def __init__(
        self,
        model: "pm.Model",
        part: GraphPart,
        compile_kwargs: dict | None = None,
        rounds: int | None = None,
        swaps: float = 5.0,
    ) -> None:
        from bayesstruct.precision.kernels.graph_jumps import make_pairs
        from bayesstruct.precision.kernels.nodewise import make_work

        correlation = observed_values(model, part.correlation)
        self.p = p = int(correlation.eval(mode="FAST_COMPILE").shape[-1])
        self.rounds = max(1, p // _COLUMNS) if rounds is None else int(rounds)
        self.swaps, self.upper = float(swaps), np.triu_indices(p, 1)
        self.names = {"edge": model.rvs_to_values[part.edge].name}
        shapes: tuple = ()
        if part.share is not None:
            self.names["share"] = model.rvs_to_values[part.share].name
            shapes = parameters(part.share)
        pairs = len(self.upper[0])
        self.free = np.ones(pairs, bool) if part.free is None else part.free
        self.shapes = Expressions(model, list(shapes), compile_kwargs)
        self.prior = Expressions(model, [part.probability], compile_kwargs, user=part.edge.name)
        self.data = Expressions(model, [correlation, part.n, part.weight], compile_kwargs)
        self.average = np.empty(pairs, np.float32)
        self.graph, self.gains = np.zeros((p, p), np.int8), np.zeros((p, p))
        self.log_odds = np.zeros((p, p))
        self.work, self.pairs = make_work(p), make_pairs(p)
        self.forget()

    def forget(self) -> None:
        """Read the table and compute the gains anew."""
        self.tables: list[tuple] = []
        self.at: int | None = None
        self.known: Any = None
        self.probability: Any = None

    def load(self, point: dict, at: int | None = None) -> None:
        """Bring table and gains up to date with a point; with the graph of one of several tables, if its number is given."""
        from bayesstruct.precision.kernels.nodewise import set_graph, update_gains

        edges = point[self.names["edge"]]
        edges = edges if at is None else edges[at]
        if not self.tables:
            self._read(point)
        if self.known is None or at != self.at or not np.array_equal(self.known, edges):
            self.target, self.partners = self.tables[at or 0]
            self.at = at
            set_graph(np.asarray(edges), self.graph)
            update_gains(np.arange(self.p), self.graph, self.target, self.gains, self.work)
            self.known = np.array(edges)

    def _read(self, point: dict) -> None:
        """Make what the kernels need of each table."""
        from bayesstruct.precision.kernels.graph_jumps import partner_sums
        from bayesstruct.precision.kernels.nodewise import make_target

        correlation, n, weight = (np.array(value, float) for value in self.data(point))
        for one in correlation.reshape(-1, self.p, self.p):
            target = make_target(one, n.flat[0], weight.flat[0])
            self.tables.append((target, partner_sums(one)))

    def load_prior(self, point: dict, at: int | None = None) -> None:
        """Bring the prior log odds up to date with a point."""
        if not at:  # the first of several graphs: probabilities of all of them
            [self.evaluated] = self.prior(point)
        several = np.ndim(self.evaluated) > 1
        probability = self.evaluated[(at or 0) % len(self.evaluated)] if several else self.evaluated
        if self.probability is None or not np.array_equal(self.probability, probability):
            self.probability = np.array(probability, float)
            with np.errstate(divide="ignore"):
                odds = np.log(self.probability) - np.log1p(-self.probability)
            self.log_odds[self.upper] = odds
            self.log_odds.T[self.upper] = odds

    def draw_share(self, rng: "Generator", point: dict, at: int | None = None) -> np.ndarray:
        """Draw the log odds of the common edge probability given the graph."""
        # Of two gamma variables, so that neither end rounds to an infinite log odds.
        one, other = (rng.standard_gamma(shape) for shape in self._share_shapes(point, at))
        return np.asarray(np.log(one) - np.log(other))

    def _share_shapes(self, point: dict, at: int | None = None) -> tuple[float, float]:
        """Shapes of the beta distribution of the common edge probability given the graph."""
        alpha, beta = (float(np.ravel(value)[0]) for value in self.shapes(point))
        edges = point[self.names["edge"]]
        present = float((edges if at is None else edges[at])[self.free].sum())
        return alpha + present, beta + self.free.sum() - present

    def draw(self, rng: "Generator", point: dict, at: int | None = None) -> tuple[int, int]:
        """Draw the graph; return how often pairs changed, and how many ends of edges were moved."""
        from bayesstruct.precision.kernels.graph_jumps import jump, swap

        self.load_prior(point, at)
        state = (self.graph, self.gains, self.log_odds, self.target)
        changes, moves, average = 0, 0, np.zeros(len(self.average))
        for _ in range(self.rounds):
            moves += swap(rng, *state, self.partners, self.swaps, self.pairs, self.work)
            changes += jump(rng, *state, 1.0, self.pairs, self.average, self.work)
            average += self.average
        self.average = (average / self.rounds).astype(np.float32)
        self.known = self.graph[self.upper]
        return changes, moves

    def climb(self, point: dict, max_rounds: int) -> tuple[dict, float, int]:
        """Return the best graph that flips of single edges lead to, its log posterior density, and the rounds that it took."""
        from bayesstruct.precision.kernels.nodewise import climb, graph_score

        point, rounds, flips = dict(point), 0, 1
        while flips and rounds < max_rounds:
            self.load(point)
            if "share" in self.names:
                point[self.names["share"]] = self._best_share(point)
            self.load_prior(point)
            flips = climb(self.graph, self.gains, self.log_odds, self.target, self.work)
            self.known = self.graph[self.upper]
            point[self.names["edge"]] = self.known.copy()
            rounds += 1
            if "share" not in self.names:
                break
        height = graph_score(self.graph, self.target, self.work)
        return point, height + self._log_prior(point), rounds

    def _best_share(self, point: dict) -> np.ndarray:
        """Log odds of the most probable common edge probability given the graph."""
        one, other = (max(shape - 1.0, 1e-12) for shape in self._share_shapes(point))
        return np.asarray(np.log(one) - np.log(other))

    def _log_prior(self, point: dict) -> float:
        """Log density of the graph and of the common edge probability."""
        certain = np.isinf(self.log_odds[self.upper])
        on = self.known.astype(bool)
        chosen = np.where(on, self.probability, 1.0 - self.probability)[~certain]
        total = float(np.log(chosen).sum())
        if "share" not in self.names:
            return total
        share = point[self.names["share"]]
        alpha, beta = (float(value) for value in self.shapes(point))
        return (
            total - (alpha - 1.0) * np.logaddexp(0, -share) - (beta - 1.0) * np.logaddexp(0, share)
        )

    def disturb(self, rng: "Generator", point: dict) -> dict:
        """Let the graph change for some time."""
        self.load(point)
        self.draw(rng, point)
        return {**point, self.names["edge"]: self.known}
