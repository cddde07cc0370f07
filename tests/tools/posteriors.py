"""Made-up results of graph models that keep the contract of `idata`, without sampling."""

import numpy as np
import xarray as xr


def posterior(
    indicators,
    *,
    names=None,
    weight=None,
    precision=None,
    edge_prior=0.5,
    edge_probability=None,
    drawn_probability=None,
    spike_scale=None,
    slab_scale=None,
    **scalars,
):
    """Build a DataTree from indicators of shape (chain, draw, edge) and whatever else is given."""
    indicators = np.asarray(indicators)
    n_edges = indicators.shape[-1]
    p = round((1 + np.sqrt(1 + 8 * n_edges)) / 2)
    names = names or [f"v{i}" for i in range(p)]
    source, target = np.triu_indices(p, 1)
    labels = [f"{names[i]} -- {names[j]}" for i, j in zip(source, target, strict=True)]
    weight = np.where(indicators, 0.3, 0.0) if weight is None else weight
    over_edges = ("chain", "draw", "pair")
    draws = {"edge": (over_edges, indicators), "weight": (over_edges, weight)}
    if precision is not None:
        draws["precision"] = (("chain", "draw", "node", "node_"), precision)
    if drawn_probability is not None:
        draws["edge_probability"] = (("chain", "draw"), drawn_probability)
    draws |= {name: (("chain", "draw"), value) for name, value in scalars.items()}
    constants = {
        "edge_source": ("pair", source),
        "edge_target": ("pair", target),
        "edge_prior": ("pair", np.broadcast_to(np.asarray(edge_prior, float), n_edges)),
        "location": ("node", np.zeros(p)),
        "scale": ("node", np.ones(p)),
    }
    if edge_probability is not None:
        constants["edge_nominal"] = (
            "pair",
            np.broadcast_to(np.asarray(edge_probability, float), n_edges),
        )
    if spike_scale is not None:
        constants |= {"spike_scale": spike_scale, "slab_scale": slab_scale}
    coords = {"pair": labels, "node": names}
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(draws, coords | {"node_": names}),
            "constant_data": xr.Dataset(constants, coords),
        }
    )


def bernoulli_posterior(probability, *, chains=4, draws=250, seed=0, names=None, **kwargs):
    """Independent edges with the given probabilities and noisy weights."""
    rng = np.random.default_rng(seed)
    probability = np.asarray(probability, float)
    shape = (chains, draws, len(probability))
    indicators = (rng.random(shape) < probability).astype("int8")
    sign = np.where(np.arange(len(probability)) % 3 == 1, -1, 1)
    centre = sign * rng.uniform(0.15, 0.5, len(probability))
    weight = indicators * (centre + 0.05 * rng.normal(size=shape))
    weight += (1 - indicators) * 0.02 * rng.normal(size=shape)
    return posterior(indicators, names=names, weight=weight, **kwargs)


def sparse_posterior(p, *, names=None, neighbours=2.5, seed=0, **kwargs):
    """Make a sparse random graph, mostly well determined, with some edges undecided."""
    rng = np.random.default_rng(seed)
    n_edges = p * (p - 1) // 2
    present = rng.random(n_edges) < neighbours / (p - 1)
    probability = np.where(present, rng.beta(6, 0.7, n_edges), rng.beta(0.25, 8, n_edges))
    tree = bernoulli_posterior(probability, names=names, seed=seed, **kwargs)
    i, j = np.triu_indices(p, 1)
    names = tree["constant_data"]["node"].values
    truth = [(names[a], names[b]) for a, b in zip(i[present], j[present], strict=True)]
    return tree, truth


def spike_slab_posterior(p=4, *, chains=2, draws=100, seed=0, spike=0.05, slab=1.0, **kwargs):
    """Draw precisions at random; indicators from their conditional given them."""
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(p, 1)
    k = rng.normal(scale=rng.choice([0.05, 0.3], size=len(i)), size=(chains, draws, len(i)))
    precision = np.zeros((chains, draws, p, p)) + np.eye(p)
    precision[..., i, j] = precision[..., j, i] = k
    indicators = (np.abs(k) > 0.15).astype(int)
    kwargs = {"edge_probability": 0.4, "edge_prior": 0.2} | kwargs
    return posterior(
        indicators, weight=-k, precision=precision, spike_scale=spike, slab_scale=slab, **kwargs
    )
