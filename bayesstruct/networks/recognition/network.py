"""Recognise the part of a model that is a Bayesian network, for steps and modes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytensor.graph.basic import equal_computations
from pytensor.graph.traversal import walk
from pytensor.tensor.random.basic import CategoricalRV

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.recognition import (
    NotRecognized,
    check_drawn,
    children_of,
    is_op,
    only_one,
    parameters,
    refusals,
    same_value,
    unpadded_parameters,
)
from bayesstruct.core.tensors import random_ancestors
from bayesstruct.networks.priors.dag import DAGRV, OrderDAGRV
from bayesstruct.networks.priors.discrete_network import (
    DiscreteNetworkRV,
    EvenTablesRV,
    ProbabilityTablesRV,
)
from bayesstruct.networks.priors.fitted_networks import (
    FittedDiscreteNetworkRV,
    FittedGaussianNetworkRV,
    FittedLaws,
    fitted,
)
from bayesstruct.networks.priors.gaussian_network import (
    ArcWeightsRV,
    GaussianNetworkRV,
    InterceptsRV,
    NoiseVariancesRV,
)
from bayesstruct.networks.priors.incomplete_networks import (
    IncompleteDiscreteNetworkRV,
    IncompleteGaussianNetworkRV,
    NetworkCellsRV,
)
from bayesstruct.networks.priors.sample_covariance import NetworkCovarianceRV
from bayesstruct.networks.recognition.tables import CovarianceOfTable, DiscreteTable, GaussianTable

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor import TensorVariable

__all__ = [
    "FITTED",
    "GRAPHS",
    "INCOMPLETE",
    "PARAMETERS",
    "Network",
    "dependents",
    "drawn_network",
    "network_of",
]

#: Ops of graphs; of parameters that are integrated out; of tables with missing values or fitted parameters.
GRAPHS = (DAGRV, OrderDAGRV)
PARAMETERS = (NoiseVariancesRV, ArcWeightsRV, InterceptsRV, ProbabilityTablesRV)
INCOMPLETE = (IncompleteGaussianNetworkRV, IncompleteDiscreteNetworkRV)
FITTED = (FittedGaussianNetworkRV, FittedDiscreteNetworkRV)
_GAUSSIAN = (GaussianNetworkRV, NetworkCovarianceRV)
_REGRESSIONS = {NoiseVariancesRV, ArcWeightsRV, InterceptsRV}


@dataclass(frozen=True, eq=False)
class Network:
    """Part of a model that is a Bayesian network.

    Attributes
    ----------
    dag : TensorVariable
        The graph.
    rows : TensorVariable
        The observed table.
    parameters : dict
        Random variables that are the parameters, by the type of their Op; none if they are fitted.
    table : GaussianTable, CovarianceOfTable, DiscreteTable or None
        Values of the table and of the hyperparameters; None if the parameters are fitted.
    missing : TensorVariable or None
        Missing values of the table.
    fit : object or None
        Of :mod:`bayesstruct.networks.kernels.fits`, if the parameters are those of greatest likelihood.
    """

    dag: "TensorVariable"
    rows: "TensorVariable"
    parameters: dict[type, "TensorVariable"]
    table: GaussianTable | CovarianceOfTable | DiscreteTable | None = None
    missing: "TensorVariable | None" = None
    fit: object = None

    @property
    def variables(self) -> list:
        """Random variables that are drawn together."""
        return [
            self.dag,
            *self.parameters.values(),
            *([] if self.missing is None else [self.missing]),
        ]

    @property
    def conjugate(self) -> bool:
        """Whether the marginal likelihood is the BGe or the BDeu score."""
        return self.fit is None and EvenTablesRV not in self.parameters

    @property
    def gaussian(self) -> bool:
        """Whether the rows are numbers with random parameters."""
        return isinstance(self.table, GaussianTable | CovarianceOfTable)

    @property
    def mask(self):
        """Which values are missing."""
        return self.rows.owner.op.mask


def drawn_network(
    model: "Model",
    drawn: list["TensorVariable"],
    graphs: type | tuple[type, ...],
    plural: str,
    supported: str,
    accepts: Callable[[Network], bool],
) -> Network:
    """Recognise the network of which a step is to draw all random variables.

    Parameters
    ----------
    model : pymc.Model
    drawn : list of TensorVariable
        Random variables that the step is to draw.
    graphs : type or tuple of type
        Ops of the graphs that the step draws.
    plural : str
        Name of these graphs.
    supported : str
        Says what the step supports.
    accepts : callable
        Whether the step draws a recognised network.

    Raises
    ------
    ValueError
        If it is not recognised, or the step does not draw all of it.
    """
    dag = only_one(drawn, graphs, plural, supported)
    with refusals(dag, supported):
        network = network_of(model, dag)
        if not accepts(network):
            raise NotRecognized(f"{network.rows.name!r} is a table of another kind")
        check_drawn(network.variables, drawn)
    return network


def network_of(model: "Model", dag: "TensorVariable") -> Network:
    """Recognise the Bayesian network around a graph, and read its table.

    Raises
    ------
    NotRecognized
        Says which part of the model is not that of a network.
    """
    if dag not in model.free_RVs:
        raise NotRecognized(f"{dag.name!r} is observed")
    family = dependents(model, dag)
    tables = [
        rv for rv in family if is_op(rv, (*_GAUSSIAN, DiscreteNetworkRV, *INCOMPLETE, *FITTED))
    ]
    if len(tables) != 1:
        raise NotRecognized(f"{len(tables)} tables depend on {dag.name!r}, not one")
    [rows] = tables
    found = {type(rv.owner.op): rv for rv in family if is_op(rv, (*PARAMETERS, EvenTablesRV))}
    missing = _missing_values(family, rows)
    if strange := [rv.name for rv in family if rv not in (rows, missing, *found.values())]:
        raise NotRecognized(f"{', '.join(map(repr, strange))} depends on {dag.name!r}")
    if rows not in model.observed_RVs:
        raise NotRecognized(f"{rows.name!r} is not observed")
    if is_op(rows, FITTED):
        return Network(dag, rows, found, fit=_fit_of(dag, rows, found))
    _check_parameters(model, rows, found)
    _check_links(model, dag, rows, found, missing)
    network = Network(dag, rows, found, _kind(rows).of(model, rows, found), missing)
    if missing is not None:
        _check_missing(model, network)
    return network


def _kind(rows):
    """Class of the values of a table."""
    if is_op(rows, NetworkCovarianceRV):
        return CovarianceOfTable
    return GaussianTable if is_op(rows, GaussianNetworkRV) else DiscreteTable


def dependents(model: "Model", dag: "TensorVariable") -> list["TensorVariable"]:
    """Random variables and potentials that depend on a graph, directly or not."""
    out, new = [], [dag]
    while new:
        children = [c for v in new for c in children_of(model, v) if c not in out]
        new = list(dict.fromkeys(children))
        out += new
    return out


def _missing_values(family, rows):
    """Variable of the missing values of a table; None for a complete one."""
    if is_op(rows, IncompleteDiscreteNetworkRV):
        return unpadded_parameters(rows)[-1]
    if not is_op(rows, IncompleteGaussianNetworkRV):
        return None
    missing = [rv for rv in family if is_op(rv, NetworkCellsRV)]
    if len(missing) != 1:
        raise NotRecognized(
            f"{len(missing)} variables are missing values of {rows.name!r}, not one"
        )
    return missing[0]


def _check_parameters(model, rows, found):
    """Refuse parameters that are not those of a table of this kind, or not free."""
    wanted = [{ProbabilityTablesRV}]
    if is_op(rows, _GAUSSIAN):
        wanted = [_REGRESSIONS]
    elif is_op(rows, DiscreteNetworkRV):
        wanted.append({EvenTablesRV})
    if set(found) not in wanted:
        names = (sorted(kind.__name__.removesuffix("RV") for kind in kinds) for kinds in wanted)
        text = " or ".join(", ".join(own) for own in names)
        raise NotRecognized(f"the parameters of {rows.name!r} are not {text}")
    for rv in found.values():
        if rv not in model.free_RVs:
            raise NotRecognized(f"{rv.name!r} is observed")
        if model.rvs_to_transforms.get(rv) is not None:
            raise NotRecognized(f"{rv.name!r} has a transform")


def _check_links(model, dag, rows, found, missing):
    """Refuse parameters and tables that depend on one another in another way than in a network."""
    own = {dag, missing, *found.values()}
    for rv in (*found.values(), rows):
        sources = set(random_ancestors(*parameters(rv))) & set(model.basic_RVs)
        if not sources <= own:
            names = ", ".join(sorted(repr(v.name) for v in sources - own))
            raise NotRecognized(f"{rv.name!r} also depends on {names}")
    if is_op(rows, _GAUSSIAN):
        variance, weight, intercept = (
            found[kind] for kind in (NoiseVariancesRV, ArcWeightsRV, InterceptsRV)
        )
        used, _, noise, *_ = parameters(rows)
        links = [
            parameters(variance)[0] is dag,
            parameters(weight)[:2] == (dag, variance),
            parameters(intercept)[0] is variance,
            intercept in set(random_ancestors(used)),
            variance in set(random_ancestors(noise)),
        ]
    else:
        [tables] = found.values()
        graph, used, *_ = unpadded_parameters(rows)
        links = [graph is dag, used is tables, unpadded_parameters(tables)[0] is dag]
    if not all(links):
        raise NotRecognized(f"the parameters of {rows.name!r} are not linked as in a network")


def _check_missing(model, network):
    """Refuse missing values that have another distribution than in the network."""
    missing, rows = network.missing, network.rows
    if missing not in model.free_RVs:
        raise NotRecognized("the missing values are no variable of the model")
    if network.gaussian:
        _check_same_table(model, network)
    else:
        _check_uniform(model, network)
    if others := [v.name for v in children_of(model, missing) if v is not rows]:
        raise NotRecognized(f"{', '.join(map(repr, others))} depends on {missing.name!r}")


def _check_same_table(model, network):
    """Refuse missing numbers of another table, or with other parameters."""
    missing, mask, table = network.missing, network.mask.missing, network.table
    own, theirs = unpadded_parameters(missing), unpadded_parameters(network.rows)
    same = all(same_value(a, b) for a, b in zip(own[:5], theirs[:5], strict=True))
    values = Expressions(model, own[5:7])(model.initial_point())
    setting, known = (np.asarray(v) for v in values)
    same = same and np.array_equal(*np.broadcast_arrays(setting, table.setting), equal_nan=True)
    same = same and np.array_equal(known[~mask], table.x[~mask])
    same = same and np.array_equal(missing.owner.op.mask.missing, mask)
    if not same:
        raise NotRecognized(
            f"parameters or table of {missing.name!r} are not those of {network.rows.name!r}"
        )


def _check_uniform(model, network):
    """Refuse missing states whose prior is not uniform."""
    missing = network.missing
    if not is_op(missing, CategoricalRV):
        raise NotRecognized(f"{missing.name!r} are not bayesstruct.distributions.MissingStates")
    sources = set(random_ancestors(parameters(missing)[0])) & set(model.basic_RVs)
    if sources:
        names = ", ".join(sorted(repr(v.name) for v in sources))
        raise NotRecognized(f"the prior of {missing.name!r} depends on {names}")
    [p] = Expressions(model, [parameters(missing)[0]])(model.initial_point())
    states = np.array(network.table.states)[network.mask.columns]
    wanted = (np.arange(p.shape[-1]) < states[:, None]) / states[:, None]
    if p.shape[-1] < states.max() or not np.allclose(p, wanted):
        raise NotRecognized(f"the prior of {missing.name!r} is not uniform over its states")


def _fit_of(dag, rows, found):
    """Fit whose parameters of greatest likelihood a table has."""
    given = unpadded_parameters(rows)
    nodes = walk(given, lambda v: v.owner.inputs if v.owner else None)
    fits = {v.owner.op.fit for v in nodes if v.owner and isinstance(v.owner.op, FittedLaws)}
    if len(fits) != 1 or found:
        raise NotRecognized(f"the parameters of {rows.name!r} are not those of a score")
    [fit] = fits
    *estimates, price = fitted(fit, dag)
    if is_op(rows, FittedGaussianNetworkRV):
        given, wanted = [*given[:3], given[-1]], [*estimates, price]
    else:
        given, wanted = [*given[:2], given[-1]], [dag, estimates[0], price]
    if len(wanted) != len(given) or not equal_computations(given, wanted):
        raise NotRecognized(
            f"the parameters of {rows.name!r} are not those fitted given {dag.name!r}"
        )
    return fit
