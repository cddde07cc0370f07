"""Most probable graph of a Markov random field with a spike-and-slab prior, and the weights given it."""

import itertools

from dataclasses import dataclass

import numpy as np

from pymc.distributions.continuous import FlatRV
from pytensor.tensor.random.basic import BetaRV, CategoricalRV, DirichletRV

from bayesstruct.core.modes import Mode, ModeSolver, register_mode
from bayesstruct.core.recognition import NotRecognized, is_op, parameters
from bayesstruct.core.tensors import random_ancestors
from bayesstruct.fields.modes.completions import Completions
from bayesstruct.fields.modes.shrunk import ShrunkFieldMode
from bayesstruct.fields.priors.random_fields import PairwiseRV
from bayesstruct.fields.steps.cells import check_states
from bayesstruct.fields.steps.spike_slab import FieldPart, recognize_field, weight_blocks
from bayesstruct.sparse.modes import SpikeAndSlabRefusal
from bayesstruct.sparse.priors.group_spike_and_slab import GroupSpikeAndSlabRV
from bayesstruct.sparse.priors.spike_and_slab import SpikeAndSlabRV

__all__ = ["SearchedField", "SearchedFieldMode", "searched_field", "searched_mode"]

_SPIKES = (SpikeAndSlabRV, GroupSpikeAndSlabRV)
_DRAWS = (
    50  # of shares and hidden labels, for each pair of these, to learn how probabilities follow
)


@dataclass
class SearchedField:
    """A field whose graph can be searched for.

    Attributes
    ----------
    part : FieldPart
    prior : FieldPrior
        Of biases and weights.
    edges : IndependentEdges or BlockEdges
        Prior of the graph.
    share, labels, proportions : TensorVariable or None
        Probabilities of edges, hidden labels of the columns, and their probabilities.
    """

    part: FieldPart
    prior: object
    edges: object
    share: object = None
    labels: object = None
    proportions: object = None


@register_mode(before=(ShrunkFieldMode, SpikeAndSlabRefusal))
class SearchedFieldMode(ModeSolver):
    r"""Most probable graph of a Markov random field with a spike-and-slab prior.

    The graph G of the greatest posterior probability that a search finds, of
    :math:`\log p(G) + \log p(x \mid G)` where biases and weights are integrated out by Laplace's
    method (:mod:`bayesstruct.fields.solvers.evidence`) and so are unknown edge probabilities, with the
    mode of biases, weights and edge probabilities given that graph; the hidden labels of
    :class:`bayesstruct.StochasticBlock` are moved in turn with the graph. If values are missing, graph
    and weights of the completions are climbed in turn. With the exact likelihood each step goes
    through all joint states: seconds for 15 binary columns, many minutes for 20.

    Graphs are searched by adding, deleting and exchanging edges, from the empty graph, from that of
    all marginal associations, and from the best one with a few edges changed
    (:mod:`bayesstruct.fields.solvers.search`). That no single change of the graph at the end is better
    is likely, as those that promise most were tried, and not proved. Where many edges are uncertain
    the posterior is spread over very many graphs: the best one may never be visited by a chain, and
    has fewer edges than most. :func:`bayesstruct.median_graph` of a chain is then the better summary.
    """

    def recognise(self, model):
        """Return the field, or None; raise for a field in a model that the search does not serve."""
        return searched_field(model)

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Search."""
        point, change = searched_mode(model, part, tol, max_rounds)
        return Mode(point, change <= tol, max_rounds, change)


def searched_field(model) -> SearchedField | None:
    """Return the field of a model whose weights may be absent, or None if there is no such field.

    Raises
    ------
    ValueError
        If there is one in a model that the search does not serve; says why.
    """
    weights = [rv for rv in model.free_RVs if is_op(rv, _SPIKES)]
    fields = [rv for rv in model.basic_RVs if is_op(rv, PairwiseRV)]
    if len(weights) != 1 or not any(weights[0] in parameters(rv) for rv in fields):
        return None
    [weight] = weights
    try:
        return _recognized(model, weight)
    except NotRecognized as reason:
        raise ValueError(
            f"{weight.name!r} has a spike-and-slab prior, and the search for the most probable graph does "
            f"not serve this model, because {reason}. Sample instead (pm.sample()) and read the draws: "
            "bs.map_graph and bs.median_graph give a graph, bs.edge_table the probabilities; or take a "
            'prior that only shrinks and whose mode is sparse: prior="laplace", or "group_laplace" for '
            "tables of potentials"
        ) from None


def _recognized(model, weight) -> SearchedField:
    if model.potentials:
        raise NotRecognized("it has potentials (pm.Potential)")
    part = recognize_field(model, weight)
    if part.own_bias is None:
        raise NotRecognized(f"the biases of {part.rows.name!r} are not a normal or flat variable")
    potentials = part.rows.owner.op.potentials
    inclusion, scale = parameters(weight)
    hidden = _hidden(model, inclusion)
    op = weight.owner.op
    grouped = is_op(weight, GroupSpikeAndSlabRV)
    labels = op.groups.labels if grouped else np.arange(potentials.weight_size)
    edge, start, order = weight_blocks(potentials, labels)
    blocks = [np.sort(order[a:b]) for a, b in itertools.pairwise(start)]
    ends = np.column_stack([end[edge] for end in potentials.ends])
    prior = _prior(part, potentials, scale, blocks, op.slab)
    edges = _edge_prior(model, inclusion, hidden, ends)
    known = {part.rows, *part.variables, *hidden.values()}
    if others := [rv.name for rv in model.basic_RVs if rv not in known]:
        raise NotRecognized(f"it has other variables: {', '.join(map(repr, others))}")
    return SearchedField(part, prior, edges, **hidden)


def _hidden(model, inclusion) -> dict:
    """Random variables that the probabilities of edges depend on, by what they are."""
    found = [rv for rv in model.free_RVs if rv in random_ancestors(inclusion)]
    out = {}
    for rv in found:
        for name, kind in (
            ("share", BetaRV),
            ("labels", CategoricalRV),
            ("proportions", DirichletRV),
        ):
            if is_op(rv, kind) and name not in out:
                out[name] = rv
    sets = ({"share"}, {"share", "labels", "proportions"}, set())
    if len(out) < len(found) or set(out) not in sets:
        names = ", ".join(repr(rv.name) for rv in found)
        raise NotRecognized(
            f"the edge probabilities depend on {names}, and are known to it only if they are constant, a "
            "beta variable, or those of bs.StochasticBlock()"
        )
    return out


def _constant(tensor, name, size):
    """Value of a tensor without random ancestors."""
    if random_ancestors(tensor):
        raise NotRecognized(f"{name} are random")
    value = np.asarray(tensor.eval(mode="FAST_COMPILE"), float)
    return np.broadcast_to(value, (size,)).copy()


def _prior(part, potentials, scale, blocks, slab):
    from bayesstruct.fields.solvers.evidence import FieldPrior

    size = potentials.bias_size
    scale = _constant(scale, "the scales of the slab", potentials.weight_size)
    if is_op(part.own_bias, FlatRV):
        mean, precision = np.zeros(size), np.zeros(size)
    else:
        mean, deviation = (
            _constant(v, "the hyperparameters of the biases", size)
            for v in parameters(part.own_bias)
        )
        precision = deviation**-2.0
    return FieldPrior(slab, scale, mean, precision, blocks)


def _edge_prior(model, inclusion, hidden, ends):
    """Prior of the graph."""
    from bayesstruct.fields.solvers.edge_priors import BlockEdges, IndependentEdges, SharedEdges

    if not hidden:
        return IndependentEdges(_constant(inclusion, "the edge probabilities", len(ends)))
    share = hidden["share"]
    alpha, beta = (
        _constant(v, "the hyperparameters of the edge probabilities", _size(share))
        for v in parameters(share)
    )
    if "labels" not in hidden:
        if _size(share) > 1:
            raise NotRecognized(f"{share.name!r} is more than one probability")
        _, known = _learn(_function([share], inclusion), share, None, ends, 1)
        return SharedEdges(known, float(alpha[0]), float(beta[0]))
    labels, proportions = hidden["labels"], hidden["proportions"]
    count = _size(proportions)
    trial = np.arange(1.0, count + 1.0) / (0.5 * count * (count + 1.0))
    given = np.atleast_1d(np.squeeze(_function([proportions], parameters(labels)[0])(trial)))
    if given.shape != trial.shape or not np.allclose(given, trial):
        raise NotRecognized(f"{proportions.name!r} are not the probabilities of {labels.name!r}")
    [concentration] = parameters(proportions)
    concentration = _constant(concentration, "the hyperparameters of the labels", count)
    pair_of, known = _learn(_function([share, labels], inclusion), share, labels, ends, count)
    return BlockEdges(known, ends, pair_of, alpha, beta, concentration)


def _function(inputs, output):
    import pytensor

    return pytensor.function(inputs, output, mode="FAST_COMPILE", on_unused_input="ignore")


def _size(rv) -> int:
    return int(np.prod(rv.shape.eval(mode="FAST_COMPILE")))


def _learn(function, share, labels, ends, count):
    """Learn which probability each pair of labels has, and which edges are certain.

    From values without any structure, new ones for each draw of the labels: what agrees with them all
    is no function of the values but the choice of one.

    Returns
    -------
    pair_of : (labels, labels) array of int
    known : (edges,) array
        0 and 1 where an edge is certain, NaN elsewhere.
    """
    rng = np.random.default_rng(0)
    shape = tuple(share.shape.eval(mode="FAST_COMPILE"))
    pair_of = np.full((count, count), -1)
    nodes = int(ends.max()) + 1 if labels is None else _size(labels)
    for _ in range(_DRAWS * count**2):
        values = rng.uniform(0.05, 0.95, _size(share))
        drawn = rng.integers(0, count, nodes)
        arguments = [values.reshape(shape)] if labels is None else [values.reshape(shape), drawn]
        q = np.broadcast_to(function(*arguments), (len(ends),))
        certain = np.isin(q, (0.0, 1.0))
        which = np.abs(q[:, None] - values).argmin(axis=1)
        first, second = drawn[ends[~certain]].T
        before = pair_of[first, second]
        pair_of[first, second] = pair_of[second, first] = which[~certain]
        strange = (before >= 0) & (before != which[~certain])
        if strange.any() or not np.isclose(q, values[which])[~certain].all():
            raise NotRecognized(f"the edge probabilities are not those in {share.name!r}")
    return np.maximum(pair_of, 0), np.where(certain, q, np.nan)


def searched_mode(model, field: SearchedField, tol: float, max_rounds: int) -> tuple[dict, float]:
    """Best graph with the mode of what goes with it as a point of the model, and the last change.

    With missing cells, graph and completions of the rows are climbed in turn: the weights of the
    completions at the mode given the graph, then the graph for completions of these weights, as in
    :mod:`bayesstruct.networks.modes.incomplete`.
    """
    from bayesstruct.fields.solvers.search import search_field

    part, op = field.part, field.part.rows.owner.op
    codes = np.asarray(model.rvs_to_values[part.rows].eval(mode="FAST_COMPILE"))
    point = model.initial_point()
    if part.cells is None:
        check_states(codes, op.potentials)
        evidence = _evidence(field, codes, None)
        found = search_field(evidence, field.edges)
        theta, converged = evidence.mode(found.on, found.theta, tol)
        on, change = found.on, 0.0 if converged else np.inf
    else:
        check_states(np.where(op.mask.missing, 0, codes), op.potentials)
        completions = Completions(codes, op.mask.missing, op.potentials)
        on, theta, change = _climb_incomplete(field, completions, tol, max_rounds)
        first = op.potentials.bias_size
        cells = completions.most_probable(theta[:first], theta[first:])
        _put(model, point, part.cells, cells)
    _put(model, point, part.own_bias, theta[: op.potentials.bias_size])
    _put(model, point, part.weight, theta[op.potentials.bias_size :])
    _put_hidden(model, point, field, on)
    return point, change


def _evidence(field, codes, counts):
    from bayesstruct.fields.solvers.evidence import FieldEvidence
    from bayesstruct.fields.solvers.likelihoods import likelihood_for

    op = field.part.rows.owner.op
    return FieldEvidence(likelihood_for(op.likelihood, op.potentials, codes, counts), field.prior)


def _climb_incomplete(field, completions, tol, max_rounds):
    """Graph, parameters, and the relative change of the last round of completions."""
    from bayesstruct.fields.solvers.search import FieldMode, search_field

    potentials = field.part.rows.owner.op.potentials
    first, found = potentials.bias_size, None
    theta, change = np.zeros(first + potentials.weight_size), np.inf
    for _ in range(max_rounds):
        counts = completions.weights(theta[:first], theta[first:])
        evidence = _evidence(field, completions.codes, counts)
        new = search_field(evidence, field.edges, start=found)
        if found is not None and (new.on == found.on).all():
            return new.on, theta, change
        theta, change = _alternate(field, completions, new, tol, max_rounds)
        found = FieldMode(new.on, theta, new.score, new.fits)
    return new.on, theta, np.inf


def _alternate(field, completions, found, tol, max_rounds):
    """Mode given a graph by expectation and maximisation, and the relative change of the last round."""
    theta, first = found.theta, field.part.rows.owner.op.potentials.bias_size
    for _ in range(max_rounds):
        counts = completions.weights(theta[:first], theta[first:])
        evidence = _evidence(field, completions.codes, counts)
        before = theta
        theta, converged = evidence.mode(found.on, theta, 0.1 * tol)
        change = float(np.abs(theta - before).max() / (1.0 + np.abs(theta).max()))
        if change <= tol:
            break
    return theta, change if converged else np.inf


def _put_hidden(model, point, field, on):
    """Labels, and the mode of the probabilities given them and the graph."""
    from bayesstruct.fields.solvers.edge_priors import beta_mode

    if field.share is None:
        return
    edges = field.edges
    present, absent = edges.counts(on)
    share = beta_mode(present + edges.alpha, absent + edges.beta)
    _put(model, point, field.share, share.reshape(field.share.shape.eval(mode="FAST_COMPILE")))
    if field.labels is None:
        return
    _put(model, point, field.labels, edges.labels)
    sizes = np.bincount(edges.labels, minlength=len(edges.concentration))
    proportions = np.maximum(sizes + edges.concentration - 1.0, 1e-12)
    _put(model, point, field.proportions, proportions / proportions.sum())


def _put(model, point, rv, value):
    """Set a variable at a natural value."""
    transform, name = model.rvs_to_transforms[rv], model.rvs_to_values[rv].name
    if transform is not None:
        value = transform.forward(np.asarray(value), *rv.owner.inputs).eval(mode="FAST_COMPILE")
    point[name] = np.asarray(value, point[name].dtype)
