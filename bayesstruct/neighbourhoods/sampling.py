"""Sample a neighbourhood model one regression at a time: in threads, processes or on a cluster."""

import logging
import os
import time

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import generator, whole_number
from bayesstruct.graphs.records import Visited

if TYPE_CHECKING:
    import xarray as xr

    from pymc import Model

__all__ = ["sample_neighbourhoods"]

_log = logging.getLogger("bayesstruct")

SWAPS = 10  # as in bayesstruct.sparse.steps.spike_slab_regression
FULL = 2**29  # bytes of coefficients and weights up to which all their draws are kept
VISITED = 0.01  # share of the draws in which an arc must be, for its weights to be kept beyond that


def sample_neighbourhoods(
    model: "Model | None" = None,
    *,
    draws: int = 1000,
    tune: int = 500,
    chains: int = 2,
    cores: int | None = None,
    random_seed: int | Sequence[int] | np.random.SeedSequence | np.random.Generator | None = None,
    progressbar: bool = True,
) -> "xr.DataTree":
    """Draw from the posterior of a neighbourhood model, one regression after the other.

    The posterior is that of ``pm.sample()``; but since the p regressions are independent, each is
    drawn by itself, with exact conditional draws for everything in it (coefficients and
    indicators, intercept, noise variance, inclusion probability), and no gradient is needed. That
    is faster by orders of magnitude, and the regressions can be spread over machines.

    Parameters
    ----------
    model : pymc.Model, optional
        From :func:`bayesstruct.models.gaussian_neighbourhoods` or
        :func:`~bayesstruct.models.ising_neighbourhoods` with ``prior="spike_slab"`` or
        ``"laplace"``; by default that of the context.
    draws, tune : int
        Iterations of each chain that are kept, and of its warm-up before them.
    chains : int, default 2
        Each starts at a draw of the indicators and the noise from their prior.
    cores : int, optional
        Threads; by default as many as there are processors. Ignored inside
        ``joblib.parallel_config``.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
    progressbar : bool

    Returns
    -------
    xarray.DataTree
        Groups ``posterior``, ``sample_stats``, ``observed_data`` and ``constant_data`` with the
        names and dimensions of ``pm.sample()``; deterministics that were added to the model are
        left out. ``arc`` is int8. The additional group ``arcs`` has, for each arc, the mean and the
        standard deviation of the coefficient and, for the spike and slab, the *conditional*
        inclusion probability averaged over the draws of each chain, a better estimate than the
        frequency of the arc (Rao-Blackwell); :func:`bayesstruct.arc_table` and
        :func:`bayesstruct.symmetrize` use it.

        If all coefficients and weights would take more than 512 MB, there is no ``coefficients``,
        and ``weight`` is over ``visited_pair``, the arcs that are in at least 1 % of the draws, in
        single precision.

    Raises
    ------
    ValueError
        If the model is not one of independent regressions that can be drawn exactly; says why, and
        recommends ``pm.sample()``.

    Notes
    -----
    The work goes through ``joblib.Parallel``, whose configuration decides where it is done:

    .. code-block:: python

        from dask.distributed import Client

        client = Client("scheduler:8786")
        with joblib.parallel_config(backend="dask"):
            idata = bs.sample_neighbourhoods(model, random_seed=1)

    Without one, threads of this process do it: the kernels release the interpreter's lock. Each
    regression has its own random numbers, a function of the seed and the number of its column, so
    the draws do not depend on where they are made (on processors of the same kind: others may
    round differently).

    This is the posterior of a dependency network, not a joint posterior over graphs: see the
    models.

    Examples
    --------
    .. code-block:: python

        with bs.models.gaussian_neighbourhoods(df):
            idata = bs.sample_neighbourhoods()
        bs.edge_table(bs.symmetrize(idata, "and"))
    """
    from pymc.model import Model, modelcontext

    if not isinstance(model, Model | None):
        raise TypeError(f"`model` must be a pymc.Model, not {type(model).__name__}")
    model = modelcontext(model)
    if cores is not None:
        cores = whole_number("cores", cores, 1)
    for name, value, least in (("draws", draws, 1), ("tune", tune, 0), ("chains", chains, 1)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    spec = _read(model)
    began = time.perf_counter()
    job = _Job(int(draws), int(tune), int(chains), SWAPS, _cut(model), _keep(spec, chains * draws))
    seeds = _seed_sequence(random_seed).spawn(spec.shape[0])
    gather = _Gather(spec, job)
    for i, node in _run(spec, job, seeds, cores, progressbar):
        gather.add(i, node)
    return gather.tree(model, time.perf_counter() - began)


@dataclass(frozen=True)
class _Job:
    """Settings that all regressions share."""

    draws: int
    tune: int
    chains: int
    swaps: int
    cut: float  # absolute coefficient up to which there is no arc
    keep: float  # share of the draws in which an arc must be, for its coefficients to be kept


@dataclass(frozen=True)
class _Node:
    """Draws of one regression, compressed for the way from a worker.

    Attributes
    ----------
    arcs : (chains * draws, .) uint8
        Bits: which predictors are in.
    kept : (k,) int
        Predictors whose coefficients are returned.
    values : (chains, draws, k) float
    mean, sd : (p,) float
    probability : (chains, p) float
        Averages of the conditional inclusion probabilities.
    intercept, noise, share : (chains, draws) float
    """

    arcs: np.ndarray
    kept: np.ndarray
    values: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    probability: np.ndarray
    intercept: np.ndarray
    noise: np.ndarray
    share: np.ndarray


def _read(model):
    """Recognise the model, or raise with the reason."""
    from bayesstruct.core.recognition import NotRecognized
    from bayesstruct.neighbourhoods.recognition import recognize_neighbourhoods

    wanted = ("arc", "weight", "arc_source", "arc_target")
    try:
        if "slope_lambda" in model.named_vars:
            raise NotRecognized("the horseshoe prior has no exact conditional draws")
        if absent := [name for name in wanted if name not in model.named_vars]:
            raise NotRecognized(
                f"it has no {absent[0]!r}; it must come from bs.models.gaussian_neighbourhoods or "
                "bs.models.ising_neighbourhoods"
            )
        spec = recognize_neighbourhoods(model)
        if spec.shape[0] != spec.shape[1]:
            raise NotRecognized("its coefficients are not a square matrix")
        if (np.diag(spec.inclusion) != 0).any():
            raise NotRecognized("a column may predict itself")
        return spec
    except NotRecognized as reason:
        raise ValueError(
            f"sample_neighbourhoods cannot draw from this model: {reason}. Use pm.sample()."
        ) from None


def _cut(model) -> float:
    cut = model.named_vars.get("negligible")
    return 0.0 if cut is None else float(np.asarray(cut.data))


def _keep(spec, draws) -> float:
    """Share of the draws in which an arc must be to have its coefficients kept."""
    return 0.0 if 16 * draws * spec.inclusion.size <= FULL else VISITED


def _seed_sequence(random_seed) -> np.random.SeedSequence:
    if isinstance(random_seed, np.random.SeedSequence):
        return random_seed
    if isinstance(random_seed, np.random.Generator):
        random_seed = random_seed.integers(2**63, size=4).tolist()
    try:
        return np.random.SeedSequence(random_seed)
    except (TypeError, ValueError):
        generator(random_seed)  # raises with the remedy
        raise


def _run(spec, job, seeds, cores, progressbar):
    """Yield the draws of each regression, in the order of the columns."""
    import joblib
    import scipy.linalg  # noqa: F401  its BLAS, which Numba calls, must be there to be limited

    from rich.progress import Progress
    from threadpoolctl import threadpool_limits

    arguments = _arguments(spec)
    task = joblib.delayed(_regression)
    # Threads of BLAS would round differently where their number is another.
    with (
        threadpool_limits(limits=1),
        joblib.Parallel(n_jobs=_jobs(cores), prefer="threads") as parallel,
        Progress(disable=not progressbar, transient=True) as progress,
    ):
        bar = progress.add_task("regressions", total=len(seeds))
        # In portions, so that memory holds few results that wait.
        size = max(32, 8 * joblib.effective_n_jobs(parallel.n_jobs))
        for first in range(0, len(seeds), size):
            nodes = range(first, min(first + size, len(seeds)))
            yield from zip(
                nodes,
                parallel(task(i, seeds[i], job, os.getpid(), *arguments) for i in nodes),
                strict=True,
            )
            progress.update(bar, advance=len(nodes))


def _jobs(cores):
    """Return the number of workers: that of joblib's configuration, if there is one."""
    from joblib.parallel import ThreadingBackend, get_active_backend

    backend, n_jobs = get_active_backend(prefer="threads")
    if n_jobs != 1 or not isinstance(backend, ThreadingBackend):
        return None
    return -1 if cores is None else cores


def _arguments(spec):
    """Arrays that all regressions share; one by one, so that a cluster gets each of them once."""
    with np.errstate(divide="ignore"):
        log_odds = np.log(spec.inclusion) - np.log1p(-spec.inclusion)
    n = len(spec.design)
    columns = np.ascontiguousarray(spec.design.T)
    if spec.logistic:
        columns = np.vstack([columns, np.ones(n)])
        data = (columns, np.square(columns), np.ascontiguousarray(spec.response.T))
    else:
        gram = columns @ spec.design
        same = np.array_equal(spec.design, spec.response)
        cross = gram if same else np.ascontiguousarray(spec.response.T @ spec.design)
        sums = np.array([spec.response.sum(axis=0), np.square(spec.response).sum(axis=0)])
        data = (gram, cross, columns.sum(axis=1), sums, n)
    hyper = (spec.laplace, spec.intercept, spec.noise, spec.share)
    return (spec.scale, log_odds, hyper, *data)


def _regression(i, seed, job, parent, scale, log_odds, hyper, *data) -> _Node:
    """Run the chains of one regression."""
    if os.getpid() != parent:
        _single_thread()
    laplace, intercept, noise, share = hyper
    p = log_odds.shape[1]
    scale, odds = np.array(scale[i]), np.array(log_odds[i])
    beta = np.empty(0) if share is None else np.array([share[0][i], share[1][i]])
    chain = _logistic if noise is None else _gaussian
    scalar_priors = [float(v[i]) for v in (*intercept, *(() if noise is None else noise))]
    values = np.empty((job.chains, job.draws, p))
    scalars = np.zeros((3, job.chains, job.draws))
    probability = np.zeros((job.chains, p))
    for c, child in enumerate(seed.spawn(job.chains)):
        rng = np.random.default_rng(child)
        start = np.where(rng.random(p) < 1.0 / (1.0 + np.exp(-odds)), 1.0, 0.0)
        out = (values[c], *scalars[:, c])
        probability[c] = chain(
            i, rng, start, scalar_priors, (scale, odds), laplace, beta, job, out, data
        )
    return _packed(values, scalars, probability / job.draws, job)


def _gaussian(i, rng, start, scalar_priors, prior, laplace, beta, job, out, data):
    from bayesstruct.neighbourhoods.kernels import gaussian_chain

    gram, cross, total, sums, n = data
    inclusion = np.zeros(len(start))
    mean, sd, shape, rate = scalar_priors
    noise = rate / rng.standard_gamma(shape)
    gaussian_chain(
        rng,
        start,
        noise,
        (gram, gram.diagonal().copy(), total, cross[i]),
        (float(n), float(sums[0, i]), float(sums[1, i])),
        prior,
        laplace,
        beta,
        (shape, rate),
        (mean, sd),
        job.swaps,
        job.tune,
        out,
        inclusion,
    )
    return inclusion


def _logistic(i, rng, start, scalar_priors, prior, laplace, beta, job, out, data):
    from bayesstruct.neighbourhoods.kernels import logistic_chain

    columns, squares, response = data
    mean, sd = scalar_priors
    start, inclusion = np.append(start, 1.0), np.zeros(len(start) + 1)
    start *= 1e-3 * np.append(prior[0], sd)  # nonzero entries are active; the values matter little
    prior = (np.append(prior[0], sd), np.append(prior[1], np.inf))
    logistic_chain(
        rng,
        start,
        columns,
        squares,
        response[i],
        np.full(columns.shape[1], mean),
        prior,
        laplace,
        beta,
        job.swaps,
        job.tune,
        (out[0], out[1], out[3]),
        inclusion,
    )
    out[1][:] += mean
    return inclusion[:-1]


def _packed(values, scalars, probability, job) -> _Node:
    """Summarise the draws where they were made."""
    p = values.shape[2]
    arcs = np.abs(values) > job.cut
    flat = values.reshape(-1, p)
    kept = np.arange(p)
    if job.keep > 0:
        kept = np.flatnonzero(arcs.mean(axis=(0, 1)) >= job.keep)
    return _Node(
        arcs=np.packbits(arcs.reshape(-1, p), axis=1),
        kept=kept,
        values=values[..., kept].astype("float32") if job.keep > 0 else values,
        mean=flat.mean(axis=0),
        sd=flat.std(axis=0),
        probability=probability,
        intercept=scalars[0],
        noise=scalars[1],
        share=scalars[2],
    )


@lru_cache(maxsize=1)
def _single_thread():
    """Leave BLAS one thread in a worker process, for good: see `_run`."""
    import scipy.linalg  # noqa: F401

    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=1)


class _Gather:
    """Collects the results of all regressions for a DataTree."""

    def __init__(self, spec, job):
        self.spec, self.job = spec, job
        p, size = spec.shape[0], (job.chains, job.draws)
        self.arc = np.empty((*size, p * (p - 1)), "int8")
        self.scalars = {name: np.empty((*size, p)) for name in ("intercept", "noise", "share")}
        self.mean, self.sd = np.empty(p * (p - 1)), np.empty(p * (p - 1))
        self.probability = np.empty((job.chains, p * (p - 1)))
        full = job.keep == 0
        self.coefficients = np.zeros((*size, p, p)) if full else None
        self.weight = np.empty((*size, p * (p - 1))) if full else []
        self.visited = []

    def add(self, i, node):
        """Add the draws of one regression."""
        p, job = self.spec.shape[0], self.job
        others = np.arange(p) != i
        here = slice(i * (p - 1), (i + 1) * (p - 1))
        arcs = np.unpackbits(node.arcs, axis=1, count=p)[:, others]
        self.arc[..., here] = arcs.reshape(job.chains, job.draws, p - 1)
        self.mean[here], self.sd[here] = node.mean[others], node.sd[others]
        self.probability[:, here] = node.probability[:, others]
        for name, values in self.scalars.items():
            values[..., i] = getattr(node, name)
        if job.keep == 0:
            self.coefficients[..., i, :] = node.values
            self.weight[..., here] = node.values[..., others]
        else:
            self.visited.append(i * (p - 1) + node.kept - (node.kept > i))
            self.weight.append(node.values)

    def tree(self, model, seconds):
        """Return the groups with their variables and coordinates."""
        import xarray as xr

        from bayesstruct import __version__

        posterior, coords = self._posterior(model)
        arcs = {"mean": ("ordered_pair", self.mean), "sd": ("ordered_pair", self.sd)}
        if self.job.cut == 0:
            arcs["probability"] = (("chain", "ordered_pair"), self.probability)
        stats = {"n_active": (("chain", "draw"), self.arc.sum(axis=2, dtype="int64"))}
        constants = _group(model, "constants")
        if self.job.keep > 0:
            constants = constants.assign(Visited(np.concatenate(self.visited)).variables())
        posterior = xr.Dataset(posterior, coords)
        posterior.attrs |= {
            "inference_library": "bayesstruct",
            "inference_library_version": __version__,
            "sampling_time": seconds,
            "tuning_steps": self.job.tune,
        }
        samples = {name: coords[name] for name in ("chain", "draw")}
        chains = {"chain": coords["chain"]} if "probability" in arcs else {}
        arcs = xr.Dataset(arcs, {"ordered_pair": coords["ordered_pair"], **chains})
        arcs.attrs["draws"] = list(self.arc.shape[:2])  # that these are averages of
        return xr.DataTree.from_dict(
            {
                "posterior": posterior,
                "sample_stats": xr.Dataset(stats, samples),
                "arcs": arcs,
                "observed_data": _group(model, "observed"),
                "constant_data": constants,
            }
        )

    def _posterior(self, model):
        job, names = self.job, self.spec.names
        sample = ("chain", "draw")
        labels = np.asarray(model.coords["ordered_pair"])
        coords = {
            "chain": np.arange(job.chains),
            "draw": np.arange(job.draws),
            "node": list(model.coords["node"]),
            "ordered_pair": labels,
        }
        out = {"arc": ((*sample, "ordered_pair"), self.arc)}
        for name, values in self.scalars.items():
            if name in names:
                out[names[name]] = ((*sample, "node"), values)
        if job.keep == 0:
            coords["node_"] = list(model.coords["node_"])
            out[names["coefficients"]] = ((*sample, "node", "node_"), self.coefficients)
            out["weight"] = ((*sample, "ordered_pair"), self.weight)
        else:
            coords["visited_pair"] = labels[np.concatenate(self.visited)]
            weight = np.concatenate(self.weight, axis=2)
            out["weight"] = ((*sample, "visited_pair"), weight)
        return out, coords


def _group(model, kind):
    """Observed or constant data of a model, as ``pm.sample`` stores them."""
    import xarray as xr

    from pymc.backends.arviz import find_constants, find_observations

    values = find_constants(model) if kind == "constants" else find_observations(model)
    dims = {name: model.named_vars_to_dims.get(name, ()) for name in values}
    used = {dim for names in dims.values() for dim in names}
    coords = {dim: list(model.coords[dim]) for dim in used if model.coords.get(dim) is not None}
    return xr.Dataset({name: (dims[name], value) for name, value in values.items()}, coords)
