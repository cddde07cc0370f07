"""Class probabilities of rows, averaged over the posterior of a classifier, and how good they are."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.classifiers.data import read_features
from bayesstruct.classifiers.solvers.classifier import refuse_many
from bayesstruct.core.evidence_limits import refuse_limits
from bayesstruct.core.readers import register_figure, register_summary
from bayesstruct.core.tables.codings import StateLevels
from bayesstruct.core.tables.missing_codes import MissingCodes
from bayesstruct.data.errors import TableError
from bayesstruct.graphs.groups import SAMPLE_DIMS
from bayesstruct.graphs.plots.network import plot_graph
from bayesstruct.graphs.posteriors.reading import read_dags
from bayesstruct.graphs.tables.arcs import DAG_READERS, arc_table
from bayesstruct.networks.priors.records import ClassifierTarget
from bayesstruct.networks.reading.effects import is_network

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.data.intake import TableLike

__all__ = ["class_probabilities", "classification_table"]

_DRAWS = 2000  # of a posterior, spread evenly


def class_probabilities(idata: "xr.DataTree", table: "TableLike") -> "pd.DataFrame":
    r"""Probability of each class in other rows, averaged over structures and parameters.

    .. math:: P(c \mid x_o, D) = \frac{\sum_s P(c, x_o \mid \theta_s)}{\sum_{c'} \sum_s P(c', x_o \mid \theta_s)}

    for the features :math:`x_o` of a row that are known and posterior draws :math:`\theta_s` of structure and tables.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.network_classifier`; its model is not needed.
    table : DataFrame or array_like
        Rows with the features of the model, as they stand in its table; columns that have names are found by name. Features may be missing:
        they are summed out. The column of the target may be absent, and is not used.

    Returns
    -------
    pandas.DataFrame
        One line for each row, with its label, and one column for each class, called as in the result, as text.

    Raises
    ------
    TableError
        If a column is absent or unknown, or a state does not occur in the table of the model; names the column and the state.
    ValueError
        If the result is not of a classifier.

    Notes
    -----
    Up to 2,000 draws are used, spread evenly. Draws count in proportion to the probability that they give to the features of the
    row, which is the exact average over the posterior; :func:`bayesstruct.predict`, where draws count equally, has intervals.

    See Also
    --------
    bayesstruct.classification_table : accuracy and other measures where classes are known.
    bayesstruct.predict : the same for any column, with intervals.

    Examples
    --------
    .. code-block:: python

        bs.class_probabilities(idata, new).idxmax(axis=1)
    """
    import pandas as pd

    coding, at, codes, labels = _read(idata, table, classes=False)
    logs = _log_joint(idata, coding, at, codes, labels)
    return pd.DataFrame(np.exp(logs), labels, [*coding.levels[at]])


def classification_table(idata: "xr.DataTree", table: "TableLike") -> "pd.DataFrame":
    r"""How well a classifier predicts rows whose class is known.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.network_classifier`.
    table : DataFrame or array_like
        Rows with features and class; those of the table of the model itself flatter the classifier.

    Returns
    -------
    pandas.DataFrame
        Indexed by ``measure``: ``accuracy``, the share of rows whose most probable class is right; ``confidence``, the mean
        probability of the most probable class, which equals the accuracy in the long run if probabilities are calibrated;
        ``log_score``, the mean of the log probability of the class; ``brier``, the mean squared distance of the probabilities from 0
        and 1, summed over classes. Columns: ``value``, its standard error ``se`` over rows, and ``baseline``, what the probabilities of the classes
        without any feature reach.

    Raises
    ------
    TableError
        As of :func:`class_probabilities`, and if a class is missing.
    ValueError
        If the result is not of a classifier.

    Examples
    --------
    .. code-block:: python

        bs.classification_table(idata, test)
    """
    import pandas as pd

    coding, at, codes, labels = _read(idata, table, classes=True)
    name, y = coding.names[at], codes[:, at]
    if (y < 0).any():
        row = labels[int(np.argmax(y < 0))]
        raise TableError(
            f"the class {name!r} of row {row!r} is missing: leave such rows out, or use bs.class_probabilities(idata, table)"
        )
    nothing = np.where(np.arange(codes.shape[1]) == at, codes, -1)[:1]
    found = _measures(np.exp(_log_joint(idata, coding, at, codes, labels)), y)
    prior = np.exp(_log_joint(idata, coding, at, nothing, labels[:1]))
    base = _measures(np.broadcast_to(prior, (len(y), prior.shape[1])), y)
    return pd.DataFrame(
        {
            "value": {name: own.mean() for name, own in found.items()},
            "se": {
                name: own.std(ddof=1) / np.sqrt(len(y)) if len(y) > 1 else np.nan
                for name, own in found.items()
            },
            "baseline": {name: own.mean() for name, own in base.items()},
        }
    ).rename_axis("measure")


def _measures(p, y):
    """Return measures of each row, (n,), from probabilities (n, classes) and the classes."""
    right = p[np.arange(len(y)), y]
    return {
        "accuracy": (p.argmax(axis=1) == y).astype(float),
        "confidence": p.max(axis=1),
        "log_score": np.log(right),
        "brier": (p**2).sum(axis=1) - 2.0 * right + 1.0,
    }


def _read(idata, table, *, classes):
    """Coding of the table, position of the target, codes of the rows, -1 where missing, and their labels."""
    if idata is None or not ClassifierTarget.is_in(idata):
        raise ValueError(
            "the result is not of a classifier, so that no column is its class: sample bs.models.network_classifier, or use "
            "bs.predict(idata, table), which predicts any missing value"
        )
    at = int(ClassifierTarget.read(idata).position)
    posterior = read_dags(idata)
    coding = StateLevels.coding(posterior.constants, posterior.variables)
    table = MissingCodes.read(idata).without(table, coding.names)
    codes, labels = read_features(coding, coding.names[at], table, classes=classes)
    return coding, at, codes, labels


def _log_joint(idata, coding, at, codes, labels):
    """Log probabilities of the classes, (n, classes)."""
    from bayesstruct.classifiers.kernels.predictions import class_logs

    posterior = read_dags(idata)
    dags, tables = (_flat(posterior.draws[name]) for name in ("dag", "table"))
    states = np.array([len(own) for own in coding.levels])
    total = np.full((len(codes), states[at]), -np.inf)
    for s in np.unique(np.linspace(0, len(dags) - 1, _DRAWS).astype(int)):
        refuse_many(dags[s], codes, states, at, labels)
        total = np.logaddexp(total, class_logs(codes, dags[s], tables[s], states, at))
    return total - np.logaddexp.reduce(total, axis=1)[:, None]


def _flat(values):
    values = values.transpose(*SAMPLE_DIMS, ...).values
    return values.reshape(-1, *values.shape[2:])


def _is_classifier(idata) -> bool:
    return is_network(idata) and ClassifierTarget.is_in(idata)


register_summary(
    "classifiers",
    _is_classifier,
    arc_table,
    ("class_probabilities", "classification_table", "predict", "predictability", *DAG_READERS),
    before="Bayesian networks",
)
register_figure(plot_graph, "classifiers")
refuse_limits(
    "classifiers",
    _is_classifier,
    "the lines of a tree exclude each other, so that what one can reach depends on all others, and arcs of a fixed structure are not "
    "tested; bs.arc_table has the Bayes factors of this table",
)
