"""Most probable graph of a Markov random field with a spike-and-slab prior, and the mode given it."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.missing import observed_values
from bayesstruct.core.modes import Mode, ModeSolver, register_mode, relative_change
from bayesstruct.fields.kernels.potentials import check_codes
from bayesstruct.fields.modes.completions import Completions
from bayesstruct.fields.modes.shrunk import ShrunkFieldMode
from bayesstruct.fields.recognition.searched import SearchedField, searched_field
from bayesstruct.sparse.modes import SpikeAndSlabRefusal

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["SearchedFieldMode"]


@register_mode(before=(ShrunkFieldMode, SpikeAndSlabRefusal))
class SearchedFieldMode(ModeSolver):
    r"""Most probable graph of a Markov random field with a spike-and-slab prior.

    The graph G of the greatest posterior probability that a search finds, of
    :math:`\log p(G) + \log p(x \mid G)` where biases and weights are integrated out by Laplace's
    method (:mod:`bayesstruct.fields.solvers.evidence`) and so are unknown edge probabilities, with the
    mode of biases, weights and edge probabilities given that graph; the hidden labels of
    :class:`bayesstruct.StochasticBlock` and the graph are updated in turn. If values are missing, graph
    and weights of the completions are updated in turn. With the exact likelihood each step sums over
    all joint states: seconds for 15 binary columns, many minutes for 20.

    Graphs are searched by adding, deleting and exchanging edges, from the empty graph, from that of
    all marginal associations, and from the best one with a few edges changed
    (:mod:`bayesstruct.fields.solvers.search`). Only the most promising changes are tried at each graph, so that it is likely
    but not proved that no single change improves the last one. Where many edges are uncertain
    the posterior is spread over very many graphs: the best one may never be visited by a chain, and
    has fewer edges than most. :func:`bayesstruct.median_graph` of a chain is then the better summary.
    """

    def recognise(self, model: "pm.Model") -> SearchedField | None:
        """Return the field, or None; raise for a field in a model to which the search does not apply."""
        return searched_field(model)

    def solve(self, model: "pm.Model", part: SearchedField, tol: float, max_rounds: int) -> Mode:
        """Search."""
        point, change = _mode(model, part, tol, max_rounds)
        return Mode(point, change <= tol, max_rounds, change)


def _mode(model, part: SearchedField, tol: float, max_rounds: int) -> tuple[dict, float]:
    """Best graph, with the mode of all other variables given it, as a point; and the last change.

    With missing values, graph and completions of the rows are updated in turn: the weights of the
    completions at the mode given the graph, then the graph for completions of these weights.
    """
    from bayesstruct.fields.solvers.search import search_field

    field, first = part.field, part.field.potentials.bias_size
    codes = np.asarray(observed_values(model, field.rows).eval(mode="FAST_COMPILE"))
    point = model.initial_point()
    if field.missing is None:
        check_codes(codes, field.potentials)
        evidence = _evidence(part, codes, None)
        found = search_field(evidence, part.edges)
        theta, converged = evidence.mode(found.on, found.theta, tol)
        on, change = found.on, 0.0 if converged else np.inf
    else:
        check_codes(np.where(field.mask.missing, 0, codes), field.potentials)
        completions = Completions(codes, field.mask.missing, field.potentials)
        on, theta, change = _climb_incomplete(part, completions, tol, max_rounds)
        values = completions.most_probable(theta[:first], theta[first:])
        _put(model, point, field.missing, values)
    _put(model, point, field.own_bias, theta[:first])
    _put(model, point, field.weight, theta[first:])
    _put_hidden(model, point, part, on)
    return point, change


def _evidence(part, codes, counts):
    from bayesstruct.fields.solvers.evidence import FieldEvidence
    from bayesstruct.fields.solvers.likelihoods import likelihood_for

    field = part.field
    likelihood = likelihood_for(field.likelihood, field.potentials, codes, counts)
    return FieldEvidence(likelihood, part.prior)


def _climb_incomplete(part, completions, tol, max_rounds):
    """Graph, parameters, and the relative change of the last round of completions."""
    from bayesstruct.fields.solvers.search import FieldMode, search_field

    potentials = part.field.potentials
    first, found = potentials.bias_size, None
    theta, change = np.zeros(first + potentials.weight_size), np.inf
    for _ in range(max_rounds):
        counts = completions.weights(theta[:first], theta[first:])
        evidence = _evidence(part, completions.codes, counts)
        new = search_field(evidence, part.edges, start=found)
        if found is not None and (new.on == found.on).all():
            return new.on, theta, change
        theta, change = _alternate(part, completions, new, tol, max_rounds)
        found = FieldMode(new.on, theta, new.score, new.fits)
    return new.on, theta, np.inf


def _alternate(part, completions, found, tol, max_rounds):
    """Mode given a graph by expectation and maximisation, and the relative change of the last round."""
    theta, first = found.theta, part.field.potentials.bias_size
    for _ in range(max_rounds):
        counts = completions.weights(theta[:first], theta[first:])
        evidence = _evidence(part, completions.codes, counts)
        before = theta
        theta, converged = evidence.mode(found.on, theta, 0.1 * tol)
        change = relative_change(before, theta)
        if change <= tol:
            break
    return theta, change if converged else np.inf


def _put_hidden(model, point, part, on):
    """Labels, and the mode of the probabilities given them and the graph."""
    from bayesstruct.fields.solvers.edge_priors import beta_mode

    if part.share is None:
        return
    edges = part.edges
    present, absent = edges.counts(on)
    share = beta_mode(present + edges.alpha, absent + edges.beta)
    _put(model, point, part.share, share.reshape(part.share.shape.eval(mode="FAST_COMPILE")))
    if part.labels is None:
        return
    _put(model, point, part.labels, edges.labels)
    sizes = np.bincount(edges.labels, minlength=len(edges.concentration))
    proportions = np.maximum(sizes + edges.concentration - 1.0, 1e-12)
    _put(model, point, part.proportions, proportions / proportions.sum())


def _put(model, point, rv, value):
    """Set a variable at a natural value."""
    transform, name = model.rvs_to_transforms[rv], model.rvs_to_values[rv].name
    if transform is not None:
        value = transform.forward(np.asarray(value), *rv.owner.inputs).eval(mode="FAST_COMPILE")
    point[name] = np.asarray(value, point[name].dtype)
