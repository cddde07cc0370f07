"""What models of trees and forests say of a table and which priors they have, in the sentences of a methods section."""

from collections.abc import Callable

from bayesstruct.app.report.options import Options

__all__ = ["TREE_MODELS"]


def _columns_of_tree(o: Options) -> str:
    """Return how columns depend on each other along the edges of a tree or forest."""
    size = o.number("equivalent_sample_size", 1)
    if o.get("score") == "mixed":
        return (
            "Columns of numbers, standardised, are normal: linear in a neighbour with numbers, with a mean of their own in each state of a neighbour with states "
            "and the same variance in all of them. Columns of states have a distribution of their own for each state of their neighbour. Priors were conjugate, worth "
            f"{size} row{'s' * (size != '1')}: those of the scores BGe {o.cite('dawid')} and BDeu {o.cite('heckerman1995')}. No path led from states over numbers to "
            "states, as no such distribution has one, so that the columns of states were joined among themselves"
        )
    if o.get("score") == "bdeu":
        return (
            "Each column has a distribution of its own for each state of its neighbour. These had Dirichlet priors with equivalent sample size "
            f"{size} {o.cite('heckerman1995')}, under which no column is the first"
        )
    return (
        f"Columns, standardised, are jointly normal. Precision matrix and means had a conjugate prior {o.cite('dawid')}, worth "
        f"{size} row{'s' * (size != '1')}, which is the same for the two columns of any edge"
    )


def _forest(o: Options):
    share = "the share given the number of edges"
    prior = (
        "The number of components had equal prior probabilities from one to the number of columns; given it, forests had prior probabilities in proportion to the "
        "product of the sizes of their components."
    )
    if o.given.get("forbidden"):  # the number of edges is not binomial given their share then
        share = "the share given the forest by NUTS"
        prior = (
            "Forbidden edges were left out. The share of edges was uniform between 0 and 1 a priori; given it and the number of components, forests had prior "
            "probabilities in proportion to the product of the sizes of their components."
        )
    return "which columns belong together, and along which trees do they depend on each other?", [
        "The columns are joined by a forest, a graph without cycles: columns of different components are independent, and two columns of a component without an edge "
        f"are independent given those on the way between them {o.cite('meila')}.",
        f"{_columns_of_tree(o)}.",
        prior,
        f"Forests were drawn from their exact distribution given the share of edges, with all parameters integrated out, {share}, and parameters given each forest.",
    ]


def _tree(o: Options):
    return "along which tree do the columns depend on each other?", [
        "The columns are joined by a tree, a graph without cycles: two columns without an edge are independent given those on the way between them "
        f"{o.cite('meila')}.",
        f"{_columns_of_tree(o)}.",
        "Trees had prior probabilities in proportion to the product of the odds of their edges: before it was known that the graph is a tree, "
        f"{o.edges(default=0.5)}.",
        "Forbidden edges were left out." if o.given.get("forbidden") else "",
        "A tree joins all columns whatever the data say: an edge between columns that hardly depend on each other is one that no other edge replaces.",
        "Trees were drawn from their exact posterior, with all parameters integrated out, and parameters given each tree.",
    ]


TREE_MODELS: dict[str, Callable[[Options], tuple[str, list[str]]]] = {
    "tree": _tree,
    "forest": _forest,
}
