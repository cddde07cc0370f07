"""Linear structural equations: which columns of numbers act on which, and how, with any noise.

dag   ~ directed acyclic graph
x_i   = intercept_i + sum_j weight_ji x_j + noise_scale_i e_i,  e_i ~ normal, Laplace, t or a mixture
arc   = 1 where the graph has an arc A -> B
"""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pymc as pm

from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.core.tables.rows import remember_rows
from bayesstruct.data.arguments import choice, number, optional_number
from bayesstruct.data.coding import coding_of
from bayesstruct.data.recoding import repeated_rows, without_codes
from bayesstruct.networks.model_parts import record_arcs
from bayesstruct.networks.priors.dag import DAG
from bayesstruct.networks.priors.gaussian_network import arc_vector
from bayesstruct.networks.priors.records import SetMask
from bayesstruct.sem.data import sem_table
from bayesstruct.sem.kernels.settings import NOISES, PRIORS, VARIANCES, sem_settings
from bayesstruct.sem.model_parts import sem_parameters, sem_rows

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike

__all__ = ["linear_sem"]


def linear_sem(
    data: "pd.DataFrame | ArrayLike",
    *,
    noise: Literal["gaussian", "laplace", "student", "mixture"] = "gaussian",
    variances: Literal["free", "equal", "known"] = "free",
    known_variances: "dict | ArrayLike | None" = None,
    prior: Literal["spike_slab", "laplace", "horseshoe"] = "spike_slab",
    scale: float | None = None,
    graph_prior: Literal["uniform", "edge", "fair"] = "uniform",
    edge_probability: "float | pd.DataFrame | ArrayLike | None" = None,
    max_parents: int | None = None,
    required: Iterable[tuple[str, str]] = (),
    forbidden: Iterable[tuple[str, str]] = (),
    tiers: dict[str, float] | Iterable[Iterable[str]] | None = None,
    interventions: "pd.DataFrame | ArrayLike | None" = None,
    equivalent_sample_size: float = 1.0,
    missing_codes: Any = None,
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn linear structural equations over the columns of a table, and how sure their directions are.

    .. math:: x_i = c_i + \sum_{j \to i} b_{ji} x_j + s_i e_i

    Noise that is not normal, noise variances that are equal or known up to a factor, and interventions tell the direction of an
    arc. Normal noise with variances of its own does not: the posterior is then that of
    :func:`bayesstruct.models.bayesian_network`.
    """
    choice("noise", noise, NOISES)
    choice("variances", variances, VARIANCES)
    choice("prior", prior, PRIORS)
    choice("graph_prior", graph_prior, ("uniform", "edge", "fair"))
    size = number("equivalent_sample_size", equivalent_sample_size, above=0.0)
    width = optional_number("scale", scale, above=0.0)
    data, interventions = repeated_rows(row_counts, data, interventions)
    known = sem_table(
        without_codes(data, missing_codes),
        variances=variances,
        known_variances=known_variances,
        interventions=interventions,
        normal=noise == "gaussian",
        counted=row_counts is not None,
    )
    table = known.table
    settings = sem_settings(
        table.p, noise=noise, variances=variances, prior=prior, alpha_mu=size, scale=width
    )
    with pm.Model(coords=table.coords | {"ordered_pair": table.arc_names}) as model:
        dag = DAG(
            "dag",
            table.names,
            prior=graph_prior,
            edge_probability=edge_probability,
            max_parents=max_parents,
            required=required,
            forbidden=forbidden,
            tiers=tiers,
            dims=("node", "node_"),
        )
        pm.Deterministic("arc", arc_vector(dag), dims="ordered_pair")
        record_arcs(dag)
        if known.was_set.any():
            SetMask(known.was_set.astype("int64")).record()
        pm.Data("location", table.location, dims="node")
        pm.Data("scale", table.scale, dims="node")
        law = sem_parameters(known, dag, settings)
        sem_rows(law, table, known.was_set)
        record_codes(missing_codes)
        remember_rows(coding_of(table), partial(sem_rows, law), "interventions")
    return model
