"""What a table and some options say about the weights of directed acyclic graphs."""

import warnings

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from bayesstruct.data.checks import dependent_columns
from bayesstruct.data.errors import TableError, column_list, count, listing, warn
from bayesstruct.data.names import label_text, nearest
from bayesstruct.data.states import StateTable
from bayesstruct.data.table import Table
from bayesstruct.networks.kernels.dag_priors import PRIOR_KINDS, ParentPrior

__all__ = [
    "NetworkProblem",
    "most_parents",
    "network_problem",
    "network_table",
    "order_weights",
    "parent_prior",
    "positive_size",
    "score_kind",
]

#: Scores of columns that are numbers; the others are of columns with states.
CONTINUOUS_SCORES = ("bge", "gaussian")
_HYPER = {"bge": ("alpha_mu", "alpha_w", "nu"), "bdeu": ("ess",), "bde": ("pseudo_count",)}
_OPTIONS = (
    "score", "prior", "names", "weights", "edge_probability", "max_parents", "required", "forbidden", "tiers",
    "interventions", "equivalent_sample_size",
)  # fmt: skip
_SIZE = {"bge": "alpha_mu", "bdeu": "ess"}  # what scores call `equivalent_sample_size`


@dataclass(frozen=True, eq=False)
class NetworkProblem:
    """Names, scores and prior weights: all that a sum or search over graphs needs.

    Attributes
    ----------
    names : tuple of str
        The d variables.
    score : object
        Local scores, as in :mod:`bayesstruct.networks.kernels.scores`.
    prior : ParentPrior
        Prior weights of the parent sets.
    order : bool
        Whether the prior is the order-modular one.
    """

    names: tuple[str, ...]
    score: object
    prior: ParentPrior
    order: bool = False

    @property
    def d(self) -> int:
        """Number of variables."""
        return len(self.names)

    def subsets(self, child, candidates, *, fixed=()) -> np.ndarray:
        """Log score plus log prior weight of the sets of some candidates and all of `fixed`.

        Parameters
        ----------
        child : int
        candidates : sequence of int
            k variables.
        fixed : sequence of int

        Returns
        -------
        numpy.ndarray
            (2**k,): entry m has the candidates b with bit b of m set.

        Raises
        ------
        ValueError
            If a score is no number or plus infinity.
        """
        out = self.prior.subsets(child, candidates, fixed)
        score = np.asarray(
            self.score.subsets(child, candidates, fixed=fixed, max_parents=self.prior.max_parents)
        )
        if not (score < np.inf).all():
            raise ValueError(
                f"the score of {self.names[child]!r} is not a number, or infinite, for some parents"
            )
        out += score
        return out

    def log_weights(self) -> np.ndarray:
        """Table of all parent sets, (d, 2**(d-1)) (:mod:`bayesstruct.networks.kernels.dag_dynamic`)."""
        out = np.empty((self.d, 2 ** (self.d - 1)))
        for child in range(self.d):
            out[child] = self.subsets(child, np.delete(np.arange(self.d), child))
        return out

    def log_prior_weights(self) -> np.ndarray:
        """Table like that of `log_weights` for the prior alone."""
        everyone = np.arange(self.d)
        return np.array([self.prior.subsets(i, np.delete(everyone, i)) for i in everyone])


def network_problem(
    data,
    *,
    score="bge",
    prior="uniform",
    names=None,
    weights=None,
    edge_probability=None,
    max_parents=None,
    required=(),
    forbidden=(),
    tiers=None,
    interventions=None,
    **options,
) -> NetworkProblem:
    """Check a table and the options of a search over graphs; see :func:`bayesstruct.exact.dag_posterior`.

    Raises
    ------
    TableError
        If the table cannot be used or an option names a column that does not exist.
    TypeError
        If there is no such option.
    ValueError
        If an option is out of range.
    """
    if hasattr(data, "subsets") and hasattr(data, "local"):
        if interventions is not None or options:
            extra = ["interventions"] * (interventions is not None) + sorted(options)
            known = (*sum(_HYPER.values(), ()), "equivalent_sample_size")
            if unknown := [name for name in options if name not in known]:
                raise TypeError(nearest("option", unknown[0], _OPTIONS))
            raise ValueError(f"{listing(extra)}: options of a score that is made from a table")
        names, score = _score_names(data, names), data
    else:
        if names is not None:
            raise ValueError("`names` goes with a score; a table has the names of its columns")
        names, score = _table_score(data, score, interventions, max_parents, options)
    order = prior == "order"
    kind = order_weights(prior, weights, edge_probability)
    parents = parent_prior(
        names,
        kind,
        edge_probability=edge_probability,
        max_parents=max_parents,
        required=required,
        forbidden=forbidden,
        tiers=tiers,
    )
    return NetworkProblem(names, score, parents, order)


def _score_names(score, names):
    names = tuple(f"x{i}" for i in range(score.d)) if names is None else tuple(names)
    if len(names) != score.d or len(set(names)) < score.d:
        raise ValueError(f"`names` are {len(set(names))} different ones for {score.d} variables")
    return names


def order_weights(prior, weights, edge_probability):
    """Kind of the weights of the parent sets under a prior, which ``"order"`` multiplies.

    Parameters
    ----------
    prior : {"uniform", "edge", "fair", "order"}
    weights : {"uniform", "edge", "fair"} or None
        Goes with ``"order"`` only.
    edge_probability : object
        Not None makes ``"edge"`` the default of `weights`.

    Raises
    ------
    ValueError
        If there is no such prior, or `weights` goes with another.
    """
    if prior not in (*PRIOR_KINDS, "order"):
        raise ValueError(nearest("prior", prior, (*PRIOR_KINDS, "order")))
    if prior != "order":
        if weights is not None:
            raise ValueError("`weights` belongs to the prior 'order'; leave it out")
        return prior
    if weights is not None and weights not in PRIOR_KINDS:
        raise ValueError(nearest("weights", weights, PRIOR_KINDS))
    return weights or ("uniform" if edge_probability is None else "edge")


def _table_score(data, kind, interventions, max_parents, options):
    from bayesstruct.networks.kernels.scores import SCORE_KINDS, network_score

    kind = score_kind(data, kind, (*SCORE_KINDS, "bic"))
    options = _sized(kind, options)
    _check_options(kind, options)
    table, mask = network_table(data, kind, interventions, most=most_parents(max_parents))
    continuous = kind in CONTINUOUS_SCORES
    values = table.standardized if continuous else table.codes
    states = None if continuous or kind == "logistic" else table.states
    return table.names, network_score(values, kind, states=states, interventions=mask, **options)


def score_kind(data, kind, known):
    """Name of a score; ``"bic"`` becomes that of the columns of a table.

    Parameters
    ----------
    data : DataFrame or array_like
    kind : str
    known : sequence of str

    Returns
    -------
    str
        ``"multinomial"`` for ``"bic"`` if all columns have text, booleans or categories, ``"gaussian"`` if
        some are not states.

    Raises
    ------
    TableError
        For ``"bic"``, if columns are neither numbers nor states.
    ValueError
        For an unknown name, and for ``"bic"`` if whole numbers may be meant either way.
    """
    if kind not in known:
        raise ValueError(nearest("score", kind, known))
    if kind != "bic":
        return kind
    try:
        levels = StateTable.read(data).levels
    except TableError:
        if np.asarray(data).dtype.kind in "iuf":  # else what is wrong with the states is to be said
            return "gaussian"
        raise
    if whole := [own for own in levels if all(type(level) is int for level in own)]:
        raise ValueError(
            f"{len(whole)} columns hold few whole numbers, which may be states or numbers: say "
            "score='multinomial' or score='gaussian' instead of 'bic'"
        )
    return "multinomial"


def _sized(kind, options):
    """Options with `equivalent_sample_size` under the name that the score has for it."""
    options = dict(options)
    size = options.pop("equivalent_sample_size", None)
    if size is None:
        return options
    if kind not in _SIZE:
        raise ValueError(
            f"`equivalent_sample_size` belongs to the scores 'bge' and 'bdeu', not to {kind!r}; leave it out"
        )
    if _SIZE[kind] in options:
        raise ValueError(
            f"`equivalent_sample_size` and `{_SIZE[kind]}` are the same; give one of them"
        )
    return options | {_SIZE[kind]: positive_size("equivalent_sample_size", size)}


def positive_size(name, value) -> float:
    """Return an option that must be a positive finite number as a float; a ValueError otherwise."""
    number = isinstance(value, Real) and not isinstance(value, bool | np.bool)
    if not (number and 0.0 < value < np.inf):
        raise ValueError(f"`{name}` must be a positive number, it is {value!r:.60}")
    return float(value)


def most_parents(max_parents) -> float:
    """Return the most parents of a column, infinity for None; a ValueError for what is no such number."""
    if max_parents is None:
        return np.inf
    whole = isinstance(max_parents, Integral) and not isinstance(max_parents, bool | np.bool)
    if not whole or max_parents < 0:
        raise ValueError(
            f"`max_parents` must be a whole number, at least 0, it is {max_parents!r:.60}"
        )
    return int(max_parents)


def _check_options(kind, options):
    """Refuse options that are neither of the search nor of the score."""
    own = _HYPER.get(kind, ())
    for name in options:
        if name in own:
            continue
        if owners := [other for other, names in _HYPER.items() if name in names]:
            raise TypeError(f"`{name}` belongs to the score {owners[0]!r}, not to {kind!r}")
        raise TypeError(nearest("option", name, (*_OPTIONS, *own)))


def network_table(data, score, interventions=None, *, incomplete=False, most=None):
    """Check a table, and which of its cells were set from outside.

    Parameters
    ----------
    data : DataFrame or array_like
    score : str
        Kind of the local scores: what the columns must be like.
    interventions : (n, d) array_like or DataFrame of bool, optional
    incomplete : bool
        Whether cells may be missing.
    most : float, optional
        Most parents of a column; columns that so many determine exactly are then refused under
        ``"gaussian"``.

    Returns
    -------
    table : Table or StateTable
    mask : (n, d) bool array
        True where a cell was set.

    Raises
    ------
    TableError
        If the table cannot be used.
    ValueError
        If `interventions` does not fit the table.

    Warns
    -----
    TableWarning
        What tables of this kind warn about, and if a column seems to say which columns were set.
    """
    regressions = score == "gaussian" and most is not None
    table = _read(data, score, quiet=regressions)
    if table.missing.any() and not incomplete:
        columns = [table.names[j] for j in np.flatnonzero(table.missing.any(axis=0))]
        raise TableError(
            f"{column_list(columns)}: cells are missing, and the score {score!r} needs complete rows "
            "here; drop these rows (data.dropna()) or columns, or use "
            "bayesstruct.models.bayesian_network with the score 'bge' or 'bdeu', which imputes them"
        )
    if score == "logistic":
        table.check_binary(
            "logistic regressions explain two: merge states, or use the score 'bdeu'"
        )
    mask = _intervention_mask(interventions, table)
    _check_rows(data, interventions)
    if (lost := mask & table.missing).any():
        row, column = np.argwhere(lost)[0]
        columns = [table.names[j] for j in np.flatnonzero(lost.any(axis=0))]
        raise TableError(
            f"{column_list(columns)}: cells that were set are missing (the first in row {row}, counting "
            f"from 0, of {table.names[column]!r}); the value that a column was set to must be known: fill "
            "it in, or drop the row"
        )
    if regressions:
        _check_regressions(table, mask, most)
    return table, mask


def _read(data, score, *, quiet):
    """Read a table; if `quiet`, without the remark on linear relations, which is about priors."""
    if score not in CONTINUOUS_SCORES:
        table = StateTable.read(data)
        _warn_about_targets(table)
        return table
    with warnings.catch_warnings():
        if quiet:
            warnings.filterwarnings("ignore", ".*is a linear combination")
        return Table.continuous(data)


def _warn_about_targets(table):
    """Say which columns have names of other columns as states (one more may be "none")."""
    for name, levels in zip(table.names, table.levels, strict=True):
        targets = [s for s in levels if isinstance(s, str) and s != name and s in table.names]
        if targets and len(targets) >= len(levels) - 1:
            warn(
                f"column {name!r} has names of other columns as states ({listing(targets)}): if it says "
                "which column was set in each row, drop it from the table and give `interventions`"
            )


def _check_regressions(table, mask, most):
    """Refuse columns whose likelihood has no bound, since parents leave no residual."""
    most, known = min(most, table.p - 1), {}
    for name, own, free in zip(table.names, table.values.T, ~mask.T, strict=True):
        if not free.any():
            continue
        _check_column(name, own[free], most, "" if free.all() else " in which it was not set")
        rows = free.tobytes()
        if rows not in known:
            known[rows] = _relation(table.names, table.values[free])
        involved, fewest = known[rows]
        if name in involved and fewest <= most:
            raise TableError(
                f"{column_list(involved)} are in an exact linear relation, under which the likelihood has "
                "no bound: drop one of them, or use score='bge'"
            )


def _check_column(name, column, most, where):
    n = len(column)
    if np.ptp(column) <= 1e-12 * np.abs(column).max():
        raise TableError(
            f"column {name!r} is constant in the {count(n, 'row')}{where}: its likelihood has no bound; "
            "drop the column, or use score='bge'"
        )
    if n <= most + 1:
        raise TableError(
            f"column {name!r} has {count(n, 'row')}{where}, too few for up to {most} parents, which then "
            f"leave no residual; set max_parents={n - 2} or less, or use score='bge'"
        )


def _relation(names, values):
    """Columns in exact linear relations, and the fewest parents that may leave no residual."""
    involved = dependent_columns(list(names), values)
    if not involved:
        return [], 0
    columns = values[:, [names.index(name) for name in involved]]
    z = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    rank = np.linalg.matrix_rank(z, tol=1e-5 * np.sqrt(len(z)))
    return involved, len(involved) - 1 if rank == len(involved) - 1 else 1


def _intervention_mask(interventions, table):
    """(n, d) bool from a mask or a DataFrame of one."""
    if interventions is None:
        return np.zeros((table.n, table.p), bool)
    if hasattr(interventions, "columns"):
        given = interventions
        labels = {label_text(label): label for label in given.columns}
        if unknown := [name for name in labels if name not in table.names]:
            raise TableError(f"interventions have the unknown {column_list(unknown)}")
        interventions = np.zeros((len(given), table.p), bool)
        for name, label in labels.items():
            interventions[:, table.names.index(name)] = _true_or_false(given[label], name)
    mask = _true_or_false(interventions)
    if mask.shape != (table.n, table.p):
        raise ValueError(
            f"`interventions` has shape {mask.shape}; give a true or false for each cell of the table, "
            f"{(table.n, table.p)}"
        )
    return mask


def _true_or_false(values, column=None):
    """Array of bool from one of bool, or of 0 and 1."""
    array = np.asarray(values)
    if array.dtype != bool and not all(value in (0, 1) for value in array.ravel().tolist()):
        where = "" if column is None else f" of {column!r}"
        raise ValueError(
            f"`interventions`{where} must be true or false in each row; what is missing or text is neither"
        )
    return array.astype(bool)


def _check_rows(data, interventions):
    """Refuse a mask whose rows are labelled otherwise than those of the table."""
    labels = getattr(data, "index", None), getattr(interventions, "index", None)
    if all(hasattr(own, "equals") for own in labels) and not labels[0].equals(labels[1]):
        raise ValueError(
            "the rows of `interventions` have other labels, or another order, than those of the table: "
            "align them (interventions.loc[data.index]), or give an array"
        )


def parent_prior(
    names,
    kind="uniform",
    *,
    edge_probability=None,
    max_parents=None,
    required=(),
    forbidden=(),
    tiers=None,
) -> ParentPrior:
    """Prior weights of parent sets from options that name columns.

    Parameters
    ----------
    names : sequence of str
        The d columns.
    kind : {"uniform", "edge", "fair"}
    edge_probability : float, (d, d) array_like or DataFrame, optional
        Of ``"edge"``, rows as parents; a DataFrame is aligned by its labels.
    max_parents : int, optional
    required, forbidden : iterable of pairs of str
        Arcs as (parent, child).
    tiers : dict or iterable of iterables of str, optional
        Groups of columns, the earliest first, or the number of its tier for each column. No arc
        points to an earlier tier.

    Returns
    -------
    ParentPrior

    Raises
    ------
    TableError
        For an unknown column, a column that is in no tier or in two, or an arc that is required
        and forbidden.
    ValueError
        As from :class:`bayesstruct.networks.kernels.dag_priors.ParentPrior`.
    """
    names = [label_text(name) for name in names]
    allowed = _tier_arcs(names, tiers)
    required_arcs = np.zeros_like(allowed)
    for parent, child in _arcs(names, forbidden, "forbidden"):
        allowed[parent, child] = False
    for parent, child in _arcs(names, required, "required"):
        if not allowed[parent, child]:
            raise TableError(
                f"the arc {names[parent]} -> {names[child]} is required, and forbidden by "
                "`forbidden` or `tiers`"
            )
        required_arcs[parent, child] = True
    if cycle := _cyclic(required_arcs):
        raise TableError(
            f"the required arcs among {column_list([names[i] for i in cycle])} form a cycle; drop one"
        )
    if required_arcs.sum(axis=0).max() > most_parents(max_parents):
        child = int(required_arcs.sum(axis=0).argmax())
        raise ValueError(
            f"{required_arcs[:, child].sum()} arcs into {names[child]!r} are required, more than "
            f"`max_parents` = {max_parents}"
        )
    if hasattr(edge_probability, "loc"):
        edge_probability = edge_probability.rename(index=label_text, columns=label_text)
        if lost := set(names) - (set(edge_probability.index) & set(edge_probability.columns)):
            raise TableError(
                f"`edge_probability` has no row and column for {listing(sorted(lost))}"
            )
        edge_probability = edge_probability.loc[names, names].to_numpy(float)
    if edge_probability is not None:
        _check_probability(names, kind, edge_probability, required_arcs)
    return ParentPrior(len(names), kind, edge_probability, max_parents, allowed, required_arcs)


def _check_probability(names, kind, probability, required):
    """Refuse probabilities of arcs that are none, or that require a cycle."""
    if kind != "edge":
        raise ValueError(f"`edge_probability` belongs to the prior 'edge', not to {kind!r}")
    d = len(names)
    try:
        q = np.array(probability, np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"`edge_probability` is a number or a matrix of numbers, not {probability!r:.60}"
        ) from None
    if q.shape not in ((), (d, d)):
        raise ValueError(
            f"`edge_probability` has shape {q.shape}; give a number or a {d} x {d} matrix, rows as parents"
        )
    q = np.where(np.eye(d, dtype=bool), 0.0, q)
    if not ((q >= 0) & (q <= 1)).all():
        raise ValueError(
            f"`edge_probability` must lie between 0 and 1, it is {q[~((q >= 0) & (q <= 1))][0]:g}"
        )
    if cycle := _cyclic(required | (q == 1)):
        raise ValueError(
            f"`edge_probability` is 1 for arcs among {column_list([names[i] for i in cycle])}, which "
            "requires a cycle: 1 requires an arc, give less"
        )


def _cyclic(arcs):
    """Variables that are left when those without parents are taken out, again and again."""
    left = list(range(len(arcs)))
    while roots := [i for i in left if not arcs[left, i].any()]:
        left = [i for i in left if i not in roots]
    return left


def _arcs(names, pairs, label):
    """Positions (parent, child) of arcs given by names; none for None."""
    if pairs is None:
        return []
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise ValueError(
            f"`{label}` is a list of pairs of columns (parent, child), not {pairs!r:.60}"
        )
    return [_arc(names, pair, label) for pair in pairs]


def _arc(names, pair, label):
    try:
        if isinstance(pair, str):
            raise TypeError
        parent, child = map(label_text, pair)
        ends = names.index(parent), names.index(child)
    except (ValueError, TypeError):
        raise TableError(
            f"{label} arc {pair!r} is not a pair of columns (parent, child); the columns are "
            f"{listing(names)}"
        ) from None
    if ends[0] == ends[1]:
        raise TableError(f"{label} arc {pair!r} joins a column with itself")
    return ends


def _tier_arcs(names, tiers):
    """Which arcs do not point to an earlier tier; (d, d) bool."""
    if tiers is None:
        return ~np.eye(len(names), dtype=bool)
    if hasattr(tiers, "items"):
        pairs = [(label_text(name), level) for name, level in tiers.items()]
    else:
        tiers = _tier_list(names, tiers)
        pairs = [(name, level) for level, tier in enumerate(tiers) for name in _tier(tier)]
    columns = [name for name, _ in pairs]
    if unknown := [name for name in columns if name not in names]:
        raise TableError(f"`tiers` has the unknown {column_list(unknown)}")
    if lost := [name for name in names if name not in columns]:
        raise TableError(f"`tiers` leaves out {column_list(lost)}: put every column into a tier")
    if len(set(columns)) < len(columns):
        twice = sorted({name for name in columns if columns.count(name) > 1})
        raise TableError(f"`tiers` has {column_list(twice)} in more than one tier")
    level = np.array([dict(pairs)[name] for name in names])
    if level.dtype.kind not in "iuf" or not np.isfinite(level).all():
        raise TableError(
            "`tiers` as a dict has a finite number for each column, the earliest least"
        )
    return (level[:, None] <= level) & ~np.eye(len(names), dtype=bool)


def _tier_list(names, tiers):
    """Tiers as a list of groups."""
    if isinstance(tiers, str) or not isinstance(tiers, Iterable):
        raise ValueError(
            "`tiers` is a list of groups of columns, the earliest first, or a dict with the number of the "
            f"tier of each column, not {tiers!r:.60}"
        )
    tiers = list(tiers)
    if numbers := [tier for tier in tiers if not isinstance(tier, str | Iterable)]:
        raise ValueError(
            f"`tiers` has {numbers[0]!r:.60} where a group of columns should be; give groups, the earliest "
            "first, such as [['a'], ['b', 'c']], or a dict with the number of the tier of each column: "
            "dict(zip(columns, tiers))"
        )
    return tiers


def _tier(tier):
    return [tier] if isinstance(tier, str) else [label_text(name) for name in tier]
