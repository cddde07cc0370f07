"""Remarks on tables of states for models in which the order of the states, or the last of them, has a meaning."""

from typing import TYPE_CHECKING

from bayesstruct.data.errors import column_list, listing, warn

if TYPE_CHECKING:
    from bayesstruct.data.states import StateTable

__all__ = [
    "warn_about_equality",
    "warn_about_opposite_orders",
    "warn_about_order",
    "warn_about_presence",
    "warn_about_words",
]

#: Pairs of words whose alphabetical order is the intended one.
_NATURAL = {
    ("-", "+"), ("absent", "present"), ("bad", "good"), ("f", "t"), ("false", "true"), ("healthy", "ill"),
    ("healthy", "sick"), ("n", "y"), ("negative", "positive"), ("no", "yes"), ("off", "on"), ("unlikely", "likely"),
}  # fmt: skip


def warn_about_order(table: "StateTable") -> None:
    """Warn of columns whose order of states may not be the intended one.

    For models that use the order, as ordinal potentials do.

    Warns
    -----
    TableWarning
        For columns of three or more states whose order is alphabetical, for two states of text beside columns of numbers,
        and for whole numbers between which some never occur: states are counted without gaps.
    """
    if texts := _texts_beside_numbers(table):
        name, (low, high) = texts[0], table.levels[table.names.index(texts[0])]
        warn(
            f"{column_list(texts)}: text among columns of ordered states, taken as one more of them ({name!r}: {low!r} "
            f"below {high!r}); leave it out if it is a label of the rows or a group, or use ordered categories "
            "(pandas.Categorical(..., ordered=True)) if this order is meant"
        )
    wide = [j for j, k in enumerate(table.states) if k > 2]
    if sorted_ := [j for j in wide if not table.ordered[j]]:
        warn(
            f"{column_list([table.names[j] for j in sorted_])}: the order of the states matters "
            f"here, and nothing but their names says what it is ({table.names[sorted_[0]]!r}: "
            f"{listing(table.levels[sorted_[0]])}); use numbers, or ordered categories "
            "(pandas.Categorical(..., ordered=True)); states without an order need potentials that do not use one, such "
            'as "full"'
        )
    undeclared = [j for j in wide if table.names[j] not in table.declared]
    if gaps := [j for j in undeclared if _has_gaps(table.levels[j])]:
        warn(
            f"{column_list([table.names[j] for j in gaps])}: whole numbers of which some in "
            f"between never occur ({table.names[gaps[0]]!r}: {listing(table.levels[gaps[0]])}); "
            "states are counted without gaps, so that neighbours in this list are one step apart; states= says "
            "which states there are, and that these are all"
        )


def _texts_beside_numbers(table):
    """Columns of two states without an order, in a table of which others are ordered numbers."""
    numbers = [isinstance(own[0], int) and len(own) > 2 for own in table.levels]
    if not any(numbers):
        return []
    columns = zip(table.names, table.states, table.ordered, strict=True)
    return [name for name, k, ordered in columns if k == 2 and not ordered]


def warn_about_opposite_orders(table: "StateTable") -> None:
    """Warn of columns that have the same states in different orders.

    For models in which the order determines the sign of an edge.

    Warns
    -----
    TableWarning
    """
    for j, own in enumerate(table.levels):
        for i in range(j):
            if own != table.levels[i] and set(own) == set(table.levels[i]):
                warn(
                    f"columns {table.names[i]!r} and {table.names[j]!r} have the same states in different orders "
                    f"({listing(table.levels[i])}; {listing(own)}), which reverses the sign of "
                    "their dependence; if that is not intended, give both the same ordered categories (pandas.Categorical)"
                )
                return


def warn_about_equality(table: "StateTable") -> None:
    """Warn of columns whose states have other labels than those of the first column.

    For models that compare the states of two columns, as Ising potentials do: they compare positions in
    `levels`.

    Warns
    -----
    TableWarning
    """
    first = table.levels[0]
    if other := [j for j, levels in enumerate(table.levels) if levels != first]:
        warn(
            f"{column_list([table.names[j] for j in other])}: other states than {table.names[0]!r} has "
            f"({table.names[other[0]]!r}: {listing(table.levels[other[0]])}; {table.names[0]!r}: {listing(first)}). "
            "These potentials ask whether two columns have the same state, which is taken to be the one at the "
            'same place in these lists; use potentials="full" or "ordinal" if that is not intended'
        )


def warn_about_words(table: "StateTable") -> None:
    """Warn of columns of two words each whose alphabetical order decides on the sign of an edge.

    Nothing is said if all columns have the same words, which then count alike.

    Warns
    -----
    TableWarning
    """
    pairs = {name: own for name, own in _words(table) if len({*table.levels}) > 1}
    if pairs := {name: own for name, own in pairs.items() if not _is_natural(own)}:
        first, (low, high) = next(iter(pairs.items()))
        warn(
            f"{column_list([*pairs])}: the second of two words in alphabetical order counts as 1 ({first!r}: {high!r}, and "
            f"{low!r} as 0), on which the sign of edges depends; give the order by states= or ordered categories"
        )


def warn_about_presence(table: "StateTable") -> None:
    """Warn of columns of two states of which it is not plain that the last one is the presence of something.

    Warns
    -----
    TableWarning
    """
    pairs = {name: own for name, own in _words(table) if not _is_natural(own)}
    columns = zip(table.names, table.levels, strict=True)
    numbers = {name: own for name, own in columns if own in {(1, 2), ("1", "2")}}
    pairs |= {name: own for name, own in numbers.items() if name not in table.declared}
    if pairs:
        first, (low, high) = next(iter(pairs.items()))
        warn(
            f"{column_list([*pairs])}: the last state is what causes bring about ({first!r}: {high!r}, not {low!r}); if that "
            f"is not intended, give the absence first, as in states={{{first!r}: [{high!r}, {low!r}]}}"
        )


def _words(table):
    """Yield names and states of the columns of two words in alphabetical order, which nobody declared."""
    columns = zip(table.names, table.levels, table.ordered, strict=True)
    for name, own, ordered in columns:
        words = len(own) == 2 and all(isinstance(label, str) for label in own)
        if words and not ordered and list(own) == sorted(own):
            yield name, own


def _is_natural(pair) -> bool:
    return tuple(label.strip().lower() for label in pair) in _NATURAL


def _has_gaps(levels) -> bool:
    whole = all(isinstance(level, int) for level in levels)
    return whole and levels[-1] - levels[0] >= len(levels)
