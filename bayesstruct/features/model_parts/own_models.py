"""Names and labels that readers of latent features need, added to a model that somebody wrote."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pymc as pm

from bayesstruct.core.recognition import is_op
from bayesstruct.data.names import label_text
from bayesstruct.features.ops.columns import features_in_use
from bayesstruct.features.priors.finite_features import FiniteFeaturesRV
from bayesstruct.features.priors.indian_buffet import IndianBuffetRV
from bayesstruct.graphs.own_models import add_coord, give_dims

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor.variable import TensorVariable

__all__ = ["latent"]

_FEATURE, _LOADING = ("observation", "latent"), ("latent", "node")


def latent(
    feature: "TensorVariable",
    loading: "TensorVariable | None" = None,
    *,
    rows: Iterable[object] | None = None,
    columns: Iterable[object] | None = None,
) -> "TensorVariable":
    """Add names and labels of latent features to a model of your own, so that results can be read.

    Afterwards ``bs.feature_table``, ``bs.loading_table``, ``bs.check``, ``bs.summary`` and the other readers and pictures of latent
    features accept the results of the model.

    Parameters
    ----------
    feature : TensorVariable
        (rows, features), a variable of the model in context with the prior :class:`bayesstruct.IndianBuffet` or
        :class:`bayesstruct.distributions.FiniteFeatures`.
    loading : TensorVariable, optional
        (features, columns), effects of the features.
    rows, columns : iterable, optional
        Names of the rows and of the columns.

    Returns
    -------
    TensorVariable
        ``n_features``, the number of features that some row has.

    Raises
    ------
    TypeError
        If `feature` has another prior.
    ValueError
        If `feature` is not called so, names do not fit, or the variables have dimensions that readers do not know as those of features.

    Notes
    -----
    `feature` and `loading` get the dimensions ``observation``, ``latent`` and ``node`` if they have none. `loading` is kept as
    ``loading`` too if it is called otherwise.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            slope = pm.Normal("slope", 0, 1, shape=(2, 6))
            feature = bs.IndianBuffet("feature", 1.0, observations=100, max_features=10)
            loading = bs.distributions.FeatureLoadings("loading", feature, 1.0, variables=6)
            bs.latent(feature, loading, columns=table.columns)
            pm.Normal("x", covariates @ slope + feature @ loading, 0.5, observed=table)
    """
    if getattr(feature, "owner", None) is None or not is_op(
        feature, (IndianBuffetRV, FiniteFeaturesRV)
    ):
        raise TypeError(
            "`feature` is a variable with the prior bs.IndianBuffet or bs.distributions.FiniteFeatures"
        )
    model = pm.modelcontext(None)
    if feature.name != model.name_for("feature"):
        raise ValueError(f"readers know the features as 'feature': call {feature.name!r} so")
    _label(model, feature, _FEATURE, (rows, None))
    if loading is not None:
        if loading.name != model.name_for("loading"):
            loading = pm.Deterministic("loading", loading)
        _label(model, loading, _LOADING, (None, columns))
    return pm.Deterministic("n_features", features_in_use(feature))


def _label(model: "Model", variable: "TensorVariable", dims: tuple, labels: tuple) -> None:
    """Give a variable the dimensions and labels that readers know."""
    give_dims(model, variable, dims)
    known = model.named_vars_to_dims.get(variable.name) or dims
    if known[dims.index("latent")] != "latent":
        raise ValueError(
            f"readers know the features by the dimension 'latent', and {variable.name!r} has {known}: call it so"
        )
    lengths = variable.shape.eval(mode="FAST_COMPILE")
    for dim, length, given in zip(known, lengths, labels, strict=True):
        names = range(int(length)) if given is None else map(label_text, given)
        add_coord(model, dim, [*names])
        if model.coords[dim] is not None and len(model.coords[dim]) != length:
            raise ValueError(
                f"there are {len(model.coords[dim])} names of {dim!r}, and {variable.name!r} has {length}"
            )
