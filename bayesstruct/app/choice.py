"""Which models fit the columns of a table, the plainest first."""

import shlex

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.app.folder import InputError
from bayesstruct.app.intake import (
    TIMES,
    check_apart,
    columns_of,
    is_text,
    leave_out,
    names_rows,
    refuse_names_of_rows,
)
from bayesstruct.app.pairs import is_list, square
from bayesstruct.app.values import FORMATS, read_options, reads, table_words
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.data.states import MAX_LEVELS
from bayesstruct.models.catalogue import MODELS
from bayesstruct.models.options import OPTIONS

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MANY_COLUMNS", "Choice", "choose", "kind_of", "prefer_for_many"]

#: Whole numbers with at most so many different values are taken for answers on a scale.
_SCALE = 10
#: Kinds of lists, by the names of their first two columns.
_LISTS = {
    "source target": "links",
    "from to": "links",
    "winner loser": "wins",
}
#: Names of columns of numbers that say which series a row is of, if equal ones follow each other.
_SERIES = frozenset(
    "series subject participant person patient individual animal id unit track session who".split()
)
_SHORTEST = 3  # rows of a series
_DISCRETE = ("score", "bdeu")
#: Columns from which the default prior of Gaussian graphs, which draws all elements of a matrix, needs minutes and often more draws than
#: a run has; the graph alone is then drawn in seconds, if sparse graphs are expected.
MANY_COLUMNS = 150
_NEIGHBOURS = 2  # expected neighbours of a column in a sparse graph
_OF_GRAPHS = frozenset({"edge_probability", "required", "forbidden", "row_counts"})
#: Models for each kind of table, and the options that they need for it; the plainest first.
_FITTING: dict[str, tuple[tuple[str, tuple[tuple[str, str], ...]], ...]] = {
    "numbers": (
        ("gaussian_graphical", ()),
        ("bayesian_network", ()),
        ("grouped_gaussian_graphical", ()),
        ("gaussian_neighbourhoods", ()),
        ("linear_sem", ()),
        ("lingam", ()),
        ("node_selection_gaussian_graphical", ()),
        ("blockwise_gaussian_graphical", ()),
        ("locally_constant_gaussian_graphical", ()),
        ("tree", ()),
        ("forest", ()),
        ("latent_tree", ()),
        ("latent_features", ()),
        ("sparse_factor_analysis", ()),
        ("infinite_ica", ()),
        ("dp_glm", ()),
        ("markov_transitions", ()),
    ),
    "series": (
        ("markov_transitions", ()),
        ("gaussian_graphical", ()),
        ("bayesian_network", ()),
    ),
    "counts": (("gaussian_graphical", (("marginals", "rank"),)), ("bayesian_network", ())),
    "two states": (
        ("ising", ()),
        ("bayesian_network", (_DISCRETE,)),
        ("hidden_causes", ()),
        ("ising_neighbourhoods", ()),
        ("pairwise_mrf", ()),
        ("gaussian_graphical", (("marginals", "rank"),)),
        ("tree", (_DISCRETE,)),
        ("forest", (_DISCRETE,)),
        ("latent_tree", (_DISCRETE,)),
        ("network_classifier", ()),
    ),
    "ordered states": (
        ("pairwise_mrf", (("potentials", "ordinal"),)),
        ("gaussian_graphical", (("marginals", "rank"),)),
        ("bayesian_network", (_DISCRETE,)),
        ("tree", (_DISCRETE,)),
        ("forest", (_DISCRETE,)),
        ("latent_tree", (_DISCRETE,)),
        ("network_classifier", ()),
    ),
    "states without an order": (
        ("pairwise_mrf", ()),
        ("bayesian_network", (_DISCRETE,)),
        ("gaussian_graphical", (("marginals", "mixed"),)),
        ("tree", (_DISCRETE,)),
        ("forest", (_DISCRETE,)),
        ("latent_tree", (_DISCRETE,)),
        ("network_classifier", ()),
    ),
    "numbers and states": (
        ("gaussian_graphical", (("marginals", "mixed"),)),
        ("bayesian_network", (("score", "mixed"),)),
        ("tree", (("score", "mixed"),)),
    ),
    "links": (("link_prediction", ()), ("protein_complexes", ())),
    "similarities": (("additive_clustering", ()),),
    "wins": (("elimination_by_aspects", ()),),
}


@dataclass(frozen=True)
class Choice:
    """The plainest model for a table, and the others.

    Attributes
    ----------
    kind : str
        What the table holds.
    counts : dict
        Number of columns of each kind.
    model : str
    given : list of (str, str)
        Options that were given, and those that the model needs for such a table.
    time : str or None
        Column of the times of the rows, which is no variable.
    labels : dict of str to list of str
        Columns that are variables of this model and may be no variables, since their values may name the groups of the rows, or
        the series; with the options that say so, "group" and "series".
    clocks : list of str
        Columns that may be the times of the rows, though not in this order.
    others : list of (str, list of (str, str))
        Other models that fit, with their options; those that need another one have it with a word in capitals.
    many : bool
        Whether a prior for many columns was chosen.
    """

    kind: str
    counts: dict[str, int]
    model: str
    given: list[tuple[str, str]]
    time: str | None
    labels: dict[str, list[str]]
    clocks: list[str]
    others: list[tuple[str, list[tuple[str, str]]]]
    many: bool = False

    def lines(self, options: Mapping) -> list[str]:
        """Say what was chosen, and name the commands of the others.

        Parameters
        ----------
        options : mapping
            Of the command, with what was given on the table.
        """
        held = ", ".join(f"{number} of {kind}" for kind, number in self.counts.items())
        what = f"columns: {held}" if held else f"a table of {self.kind}"
        dropped = [*options["drop"], *filter(None, [self.time])]
        words = " ".join(["--model", self.model, *_words(self.given)])
        if self.many:
            words += " (many columns: the graph alone, expected to be sparse)"
        if self.time:
            what += f"; rows in the order of {self.time!r}, a series"
            words += f" --drop {shlex.quote(self.time)}"
        lines = [f"No --model given; {what}. Running {words}."]
        lines += [
            f"If {name!r} is the time of each row of a series, sort the rows by it (within each series), and give "
            f"--model markov_transitions --drop {shlex.quote(name)}."
            for name in self.clocks
        ]
        if self.kind == "states without an order":
            lines += ["If states of text have an order, write it: --states 'COLUMN=low<mid<high'."]
        lines += ["Others that fit:"] * bool(self.others)
        read = shlex.join(table_words({**options, "drop": dropped}))
        for model, given in self.others:
            command = shlex.join(["bayesstruct", "learn", options["source"], "--model", model])
            lines += [" ".join(filter(None, [f"  {command}", *_words(given), read]))]
            lines += [f"      {MODELS[model].purpose}"]
        return lines

    def remarks(self, columns: Sequence[str]) -> list[str]:
        """Say which columns count as variables and may be labels of rows, and what was chosen since there are many.

        Parameters
        ----------
        columns : sequence of str
            Those that were named to be used, of which nothing has to be said.
        """
        many = [_chose_for_many(sum(self.counts.values()))] if self.many else []
        return many + [
            f"column {name!r} counts as one more variable: if it names the {' or the '.join(options)} of each row, add "
            f"{' or '.join(f'--{option} {shlex.quote(name)}' for option in options)}; if it is not to be used, --drop {shlex.quote(name)}"
            for name, options in self.labels.items()
            if name not in columns
        ]


def _words(given) -> list[str]:
    return [f"--{name.replace('_', '-')} {shlex.quote(word)}" for name, word in given]


def choose(
    frame: "pd.DataFrame",
    given: Sequence[tuple[str, str]],
    models: Collection[str] = frozenset(MODELS),
) -> Choice:
    """Return the plainest model for a table that has the options that were given.

    Parameters
    ----------
    frame : DataFrame
        Of `bayesstruct.app.intake.read_file`.
    given : sequence of (str, str)
        Options of models, as they were written.
    models : collection of str
        Models to choose from.

    Raises
    ------
    TableError
        If columns only name the rows, or have more different texts than states can be.
    InputError
        If no model that fits the table has these options.
    """
    kind = _kind_of_pairs(frame)
    counts: dict[str, int] = {}
    time, labels, clocks = None, {}, []
    if kind is None:
        named = columns_of(given)
        check_apart(frame, named)
        apart = {column for columns in named.values() for column in columns}
        kinds = {name: kind_of(str(name), frame[name]) for name in frame if name not in apart}
        time, series = _times(frame, kinds)
        for name in filter(None, (time, series)):
            kinds.pop(name, None)
        if series and "series" not in named:
            given = [*given, ("series", series)]
        _refuse(kinds, _in_runs(frame, kinds))
        if not time and not {"group", "series"} & {*named}:
            labels = _labels(frame, kinds)
        clocks = _clocks(frame, kinds) if time is None and "group" not in named else []
        for each in kinds.values():
            counts[each] = counts.get(each, 0) + 1
        kind = "series" if time else _kind_of_table({*kinds.values()})
    names = {name for name, _ in given}
    known = [
        (model, [*given, *(pair for pair in more if pair[0] not in names)])
        for model, more in _FITTING[kind]
        if model in models and names <= {option.name for option in OPTIONS[model]}
    ]
    fitting = [one for one in known if reads(*one)]
    ready = [one for one in fitting if not _needed(*one, one_series=kind == "series")]
    if not ready:
        if known:
            read_options(*known[0])  # raises with what is wrong
        flags = " and ".join(sorted(f"--{name.replace('_', '-')}" for name in names))
        flags = flags or f"an option of {' or '.join(models)}"
        fit = ", ".join(model for model, _ in _FITTING[kind])
        raise InputError(
            f"no model for a table of {kind} runs with {flags}: name one with --model ({fit}), or leave an option out"
        )
    model, own = ready[0]
    sparse = _sparse_options(model, own, counts, sum(counts.values()))
    own = [*own, *sparse]
    others = [
        (name, [*rest, *_needed(name, rest, one_series=kind == "series")])
        for name, rest in fitting
        if name != model
    ]
    fewer = [
        _first_choice(frame, [*given, (option, name)], models)
        for name, options in labels.items()
        for option in options
    ]
    others = [one for one in fewer if one] + [
        (name, own)
        for name, own in others
        if not (labels and {("group", "COLUMN"), ("series", "COLUMN")} & {*own})
    ]
    if sparse:
        others = [(model, [*given, ("prior", "spike_slab")]), *others]
    return Choice(kind, counts, model, own, time, labels, clocks, others, many=bool(sparse))


def _sparse_options(model, own, counts, p) -> list[tuple[str, str]]:
    """Options by which a Gaussian graph of many columns is drawn alone, unless options were given that ask for more."""
    names = {name for name, _ in own}
    if model != "gaussian_graphical" or p < MANY_COLUMNS or not names <= _OF_GRAPHS:
        return []
    return [("prior", "pseudo_likelihood"), *_sparse_graphs(p)[: "edge_probability" not in names]]


def _sparse_graphs(p: int) -> list[tuple[str, str]]:
    return [("edge_probability", f"{_NEIGHBOURS / p:.2g}")]


def _chose_for_many(p: int) -> str:
    """Say what was chosen since columns are many, and what would have been chosen otherwise.

    Parameters
    ----------
    p : int
        Number of columns.
    """
    return (
        f"for {p} columns the prior pseudo_likelihood was chosen, which draws the graph alone, without partial correlations: --prior spike_slab draws "
        f"all {p * (p + 1) // 2:,} elements of the matrix, which takes many times longer, and more draws"
    )


def prefer_for_many(p: int) -> str:
    """Say which prior serves many columns better than the default one.

    Parameters
    ----------
    p : int
        Number of columns.
    """
    words = " ".join(_words([("prior", "pseudo_likelihood"), *_sparse_graphs(p)]))
    return (
        f"the prior spike_slab draws all {p * (p + 1) // 2:,} elements of the matrix of {p} columns, which may take minutes and more draws "
        f"than usual: {words} draws the graph alone, in a small part of the time, without partial correlations"
    )


def _first_choice(frame, given, models) -> tuple[str, list[tuple[str, str]]] | None:
    """Return the plainest model with these options and what it needs; None if there is none."""
    try:
        choice = choose(frame, given, models)
    except (TableError, InputError):
        return None
    return choice.model, choice.given


def _labels(frame, kinds) -> dict[str, list[str]]:
    """Columns that may name the group, or the series, of each row: text among numbers, and columns of equal values one after another."""
    series = _in_runs(frame, kinds)
    texts = [name for name in kinds if is_text(frame[name]) and not _is_ordered(frame[name])]
    groups = texts if len(texts) < len(kinds) / 2 else []
    found = {
        str(name): ["group"] * (name in groups) + ["series"] * (name in series) for name in kinds
    }
    return {name: options for name, options in found.items() if options}


def _is_ordered(column) -> bool:
    return str(column.dtype) == "category" and column.cat.ordered


def _in_runs(frame, kinds) -> list[str]:
    """Columns that may name series: equal values follow each other, and all other columns, two or more, are numbers."""
    found = []
    for name in kinds:
        rest = {kind for other, kind in kinds.items() if other != name}
        usable = is_text(frame[name]) or str(name).lower() in _SERIES
        if not usable or len(kinds) < 3 or not rest <= {"numbers", "counts", "ordered states"}:
            continue
        if "numbers" not in rest or frame[name].isna().any():
            continue
        values = frame[name].astype(str).to_numpy()
        starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
        lengths = np.diff(np.append(starts, len(values)))
        if 2 <= len(starts) == len({*values}) and lengths.min() >= _SHORTEST:
            found.append(str(name))
    return found


def _needed(model, given, *, one_series=False) -> list[tuple[str, str]]:
    """Options that a model cannot do without and that were not given; series are usually several."""
    have = {name for name, _ in given}
    return [
        (option.name, FORMATS[option.kind])
        for option in OPTIONS[model]
        if (option.required or (option.name == "series" and not one_series))
        and option.name not in have
    ]


def _times(frame, kinds) -> tuple[str | None, str | None]:
    """Return the column of the times of the rows of one or several series, and the column that names the series.

    A column of times has such a name and ascends; where it begins again, another column has to have another value.
    """
    for name in kinds:
        rest = [kind for other, kind in kinds.items() if other != name]
        if str(name).lower() not in TIMES or is_text(frame[name]) or frame[name].isna().any():
            continue
        again = np.diff(frame[name]) <= 0
        if not again.any() and {*rest} <= {"numbers", "counts", "ordered states"}:
            return str(name), None
        part = np.concatenate([[0], np.cumsum(again)])
        for other in frame:
            own = frame[other].groupby(part).nunique(dropna=False)
            if (
                other != name
                and (own == 1).all()
                and frame[other].nunique() == len(own) < len(part) / 2
            ):
                return str(name), str(other)
    return None, None


def _clocks(frame, kinds) -> list[str]:
    """Return columns of numbers that have the name of a time."""
    return [
        str(name)
        for name, kind in kinds.items()
        if str(name).lower() in TIMES and kind in ("numbers", "counts") and not is_text(frame[name])
    ]


def kind_of(name: str, column: "pd.Series") -> str:
    """Return what a column holds.

    Parameters
    ----------
    name : str
    column : Series

    Returns
    -------
    {"numbers", "counts", "two states", "ordered states", "states without an order", "names of rows", "text"}
        Counts are whole numbers from 0 up, of more than ten different values.
    """
    if names_rows(name, column):
        return "names of rows"
    if str(column.dtype) == "category":
        return _of_states(len(column.cat.categories), column.cat.ordered)
    seen = column.dropna()
    different = seen.nunique()
    if is_text(column):
        return _of_states(different, ordered=False) if different <= MAX_LEVELS else "text"
    if not (seen == np.floor(seen)).all():
        return "numbers"
    if different > _SCALE:
        return "counts" if seen.min() == 0 else "numbers"
    return _of_states(different, ordered=True)


def _of_states(number: int, ordered: bool) -> str:
    if number <= 2:
        return "two states"
    return "ordered states" if ordered else "states without an order"


def _refuse(kinds: dict[str, str], series: Sequence[str]) -> None:
    """Refuse columns that are no variables."""
    refuse_names_of_rows([name for name, kind in kinds.items() if kind == "names of rows"])
    if texts := [name for name, kind in kinds.items() if kind == "text"]:
        raise TableError(
            f"{column_list(texts)} {'holds' if len(texts) == 1 else 'hold'} text with more than {MAX_LEVELS} different values, "
            f"too many for states: {leave_out(texts)}"
            + "".join(f", or learn series by --series {name}" for name in texts if name in series)
        )


def _kind_of_table(kinds: set[str]) -> str:
    """Return the kind of a table by those of its columns."""
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds <= {"numbers", "counts"}:
        return "numbers"
    if kinds <= {"two states", "ordered states"}:
        return "ordered states"
    if not kinds & {"numbers", "counts"}:
        return "states without an order"
    if not kinds & {"two states", "states without an order"}:
        return "numbers"
    return "numbers and states"


def _kind_of_pairs(frame) -> str | None:
    """Return the kind of a table of pairs of objects, None for other tables."""
    names = tuple(str(name).lower() for name in frame.columns)
    if is_list(frame):
        return _LISTS.get(" ".join(names[:2]))
    try:
        matrix = square(frame, "links").to_numpy()
    except TableError:
        return None
    named = is_text(frame.iloc[:, 0]) or [*map(str, frame.index)] == [*map(str, frame.columns)]
    if not named:
        return None
    other = matrix[~np.eye(len(matrix), dtype=bool)]
    known = other[~np.isnan(other)]
    if np.isin(known, (0, 1)).all():
        return "links"
    if np.allclose(matrix, matrix.T, equal_nan=True):
        _refuse_covariances(matrix)
        return "similarities"
    whole = (known >= 0).all() and (known == np.floor(known)).all()
    return "wins" if whole else None


def _refuse_covariances(matrix) -> None:
    """Say how matrices of covariances are learned, since the number of rows must be given."""
    like_correlations = np.allclose(np.diag(matrix), 1) and np.nanmax(abs(matrix)) <= 1 + 1e-9
    if like_correlations or _is_positive(matrix):
        raise TableError(
            "The table is one of covariances or correlations, or of similarities: learn the first with --cov --n ROWS --model gaussian_graphical, "
            "the second with --model additive_clustering"
        )


def _is_positive(matrix) -> bool:
    """Whether a symmetric matrix can be one of covariances: positive on the diagonal, and positive semidefinite."""
    if not np.isfinite(matrix).all() or (np.diag(matrix) <= 0).any():
        return False
    values = np.linalg.eigvalsh(matrix)
    return bool(values[0] >= -1e-9 * values[-1])
