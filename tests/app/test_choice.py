"""Without --model the columns decide."""

import numpy as np
import pandas as pd
import pytest

from bayesstruct.app.choice import choose, kind_of
from bayesstruct.app.folder import InputError
from bayesstruct.app.values import read_options
from bayesstruct.data.errors import TableError

N = 60
RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame(RNG.normal(size=(N, 3)), columns=[*"abc"])
WORDS = pd.DataFrame(RNG.choice(["no", "yes"], (N, 3)), columns=[*"uvw"])
COLOURS = pd.DataFrame(RNG.choice(["red", "green", "blue"], (N, 2)), columns=[*"rs"])
ANSWERS = pd.DataFrame(RNG.integers(1, 6, (N, 3)), columns=[*"xyz"])
COUNTS = pd.DataFrame(RNG.poisson(9, (N, 3)) * (RNG.random((N, 3)) < 0.9), columns=[*"def"])
LABELLED = pd.DataFrame(np.eye(4)[::-1], columns=[*"abcd"])
LABELLED.insert(0, "name", [*"abcd"])


PLAIN = {
    "source": "t.csv",
    "missing": [],
    "states": [],
    "columns": [],
    "drop": [],
    "log": None,
    "cov": False,
    "encoding": "utf-8",
}


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (NUMBERS["a"], "numbers"),
        (WORDS["u"], "two states"),
        (WORDS["u"].map({"no": 0, "yes": 1}), "two states"),
        (WORDS["u"] == "yes", "two states"),
        (COLOURS["r"], "states without an order"),
        (pd.Series(pd.Categorical(COLOURS["r"], ordered=True)), "ordered states"),
        (ANSWERS["x"], "ordered states"),
        (ANSWERS["x"].where(ANSWERS["x"] > 1), "ordered states"),
        (COUNTS["d"], "counts"),
        (COUNTS["d"] + 100, "numbers"),
        (pd.Series([f"p{i}" for i in range(N)]), "names of rows"),
        (pd.Series([f"p{i % 50}" for i in range(N)]), "text"),
    ],
)
def test_columns_are_what_they_hold(column, kind):
    assert kind_of("q", column) == kind


def test_a_number_is_an_identifier_by_its_name():
    assert kind_of("person_id", pd.Series(range(N))) == "names of rows"
    assert kind_of("width", pd.Series(range(N))) == "counts"
    assert kind_of("hybrid", pd.Series(range(N))) == "counts"


@pytest.mark.parametrize(
    ("frame", "given", "model", "more"),
    [
        (NUMBERS, [], "gaussian_graphical", []),
        (NUMBERS.assign(d=COUNTS["d"]), [], "gaussian_graphical", []),
        (COUNTS, [], "gaussian_graphical", [("marginals", "rank")]),
        (WORDS, [], "ising", []),
        (ANSWERS, [], "pairwise_mrf", [("potentials", "ordinal")]),
        (ANSWERS.join(WORDS), [], "pairwise_mrf", [("potentials", "ordinal")]),
        (COLOURS, [], "pairwise_mrf", []),
        (COLOURS.join(ANSWERS), [], "pairwise_mrf", []),
        (NUMBERS.join(COLOURS), [], "gaussian_graphical", [("marginals", "mixed")]),
        (NUMBERS.join(WORDS), [], "gaussian_graphical", [("marginals", "mixed")]),
        (NUMBERS.join(WORDS["u"]), [("group", "u")], "grouped_gaussian_graphical", []),
        (WORDS.join(COLOURS["r"]), [("group", "r")], "ising", []),
        (NUMBERS.join(WORDS["u"]), [("series", "u")], "markov_transitions", []),
        (NUMBERS, [("response", "a")], "dp_glm", []),
        (NUMBERS, [("tiers", "a;b,c")], "bayesian_network", []),
        (WORDS, [("tiers", "u;v,w")], "bayesian_network", [("score", "bdeu")]),
        (WORDS, [("target", "u")], "network_classifier", []),
        (ANSWERS, [("potentials", "blume_capel")], "pairwise_mrf", []),
        (NUMBERS, [("prior", "g_wishart")], "gaussian_graphical", []),
        (NUMBERS, [("prior", "order")], "bayesian_network", []),
        (pd.DataFrame({"winner": [*"ab"], "loser": [*"ba"]}), [], "elimination_by_aspects", []),
        (pd.DataFrame({"Source": [*"abc"], "Target": [*"bca"]}), [], "link_prediction", []),
        (LABELLED, [], "link_prediction", []),
    ],
)  # fmt: skip
def test_the_plainest_model_that_has_the_options_runs(frame, given, model, more):
    choice = choose(frame, given)
    assert (choice.model, choice.given) == (model, [*given, *more])
    read_options(choice.model, choice.given)
    assert (choice.model, choice.given) not in choice.others


def test_rows_in_the_order_of_time_are_a_series():
    one = choose(NUMBERS.assign(time=range(N)), [])
    assert (one.model, one.given, one.time) == ("markov_transitions", [], "time")
    assert "--model markov_transitions --drop time" in one.lines(PLAIN)[0]
    three = NUMBERS.assign(day=[*range(20)] * 3, who=np.repeat([*"pqr"], 20))
    found = choose(three, [])
    assert (found.model, found.given, found.time) == (
        "markov_transitions",
        [("series", "who")],
        "day",
    )
    given = choose(three, [("series", "who")])
    assert (given.model, given.given, given.time) == (
        "markov_transitions",
        [("series", "who")],
        "day",
    )
    mixed = choose(NUMBERS.assign(day=RNG.permutation(N)), [])
    assert (mixed.model, mixed.time) == ("gaussian_graphical", None)
    graph = choose(NUMBERS.assign(year=range(N)), [("prior", "laplace")])
    assert (graph.model, graph.time) == ("gaussian_graphical", "year")


def test_the_others_are_named_with_their_commands():
    lines = choose(WORDS.assign(n=range(N)), [("row_counts", "n")]).lines(
        PLAIN | {"source": "my votes.csv", "drop": ["who"]}
    )
    text = "\n".join(lines)
    assert lines[0].startswith("No --model given; columns: 3 of two states. Running --model ising")
    assert (
        "bayesstruct learn 'my votes.csv' --model bayesian_network --row-counts n --score bdeu --drop who"
        in text
    )
    numbers = "\n".join(choose(NUMBERS, []).lines(PLAIN))
    assert "--model grouped_gaussian_graphical --group COLUMN" in numbers
    assert "--model dp_glm --response COLUMN" in numbers


def test_of_many_columns_the_graph_alone_is_drawn():
    few, many = (pd.DataFrame(RNG.normal(size=(4, p))).add_prefix("g") for p in (149, 150))
    sparse = [("prior", "pseudo_likelihood"), ("edge_probability", "0.013")]
    assert choose(few, []).given == [] and not choose(few, []).remarks([])
    choice = choose(many, [])
    assert (choice.model, choice.given) == ("gaussian_graphical", sparse)
    first = choice.lines(PLAIN)[0]
    assert (
        "--prior pseudo_likelihood --edge-probability 0.013 (many columns: the graph alone" in first
    )
    assert choice.others[0] == ("gaussian_graphical", [("prior", "spike_slab")])
    assert read_options(choice.model, choice.given)["edge_probability"] == 0.013
    (remark,) = choice.remarks([])
    assert "--prior spike_slab draws all 11,325 elements" in remark
    # What was asked for stays.
    assert choose(many, [("edge_probability", "0.1")]).given == [
        ("edge_probability", "0.1"),
        sparse[0],
    ]
    for name, word in (("prior", "laplace"), ("marginals", "rank"), ("standardize", "no")):
        assert choose(many, [(name, word)]).given == [(name, word)]


def test_a_column_of_text_among_numbers_may_be_a_group():
    choice = choose(NUMBERS.join(WORDS["u"]), [])
    (remark,) = choice.remarks([])
    assert remark.startswith("column 'u' counts as one more variable: if it names the group of")
    assert "add --group u; if it is not to be used, --drop u" in remark
    assert choice.remarks([*"abcu"]) == []  # it was asked for
    assert choice.others[0] == ("grouped_gaussian_graphical", [("group", "u")])
    assert "--group COLUMN" not in "\n".join(choice.lines(PLAIN))
    text = "\n".join([*choose(WORDS, []).lines(PLAIN), *choose(WORDS, []).remarks([])])
    assert "--group" not in text


def test_a_column_of_two_words_beside_answers_may_be_a_group():
    choice = choose(ANSWERS.join(WORDS["u"]), [])
    ordinal = [("potentials", "ordinal")]
    assert (choice.model, choice.given) == ("pairwise_mrf", ordinal)
    assert choice.others[0] == ("pairwise_mrf", [("group", "u"), *ordinal])
    assert "--model pairwise_mrf --group u --potentials ordinal" in "\n".join(choice.lines(PLAIN))
    sizes = pd.Categorical(WORDS["u"], ["no", "yes"], ordered=True)
    assert choose(ANSWERS.assign(u=sizes), []).labels == {}  # its order was given


def test_equal_labels_one_after_another_may_name_series():
    runs = NUMBERS.assign(fox=np.repeat([*"pqr"], 20))
    choice = choose(runs, [])
    assert choice.labels == {"fox": ["group", "series"]}
    assert ("markov_transitions", [("series", "fox")]) in choice.others
    assert "add --group fox or --series fox" in choice.remarks([])[0]
    numbered = choose(NUMBERS.assign(subject=np.repeat([1, 2, 3], 20)), [])
    assert numbered.labels == {"subject": ["series"]}
    assert numbered.others[0] == ("markov_transitions", [("series", "subject")])
    for other in (
        NUMBERS.assign(fox=[*"pqr"] * 20),  # no runs
        NUMBERS.assign(grade=np.repeat([1, 2, 3], 20)),  # a number with another name
        NUMBERS[["a"]].assign(fox=np.repeat([*"pqr"], 20)),  # one column is left
        ANSWERS.assign(fox=np.repeat([*"pqr"], 20)),  # no series of states
    ):
        assert not any("series" in options for options in choose(other, []).labels.values())
    many = NUMBERS.assign(fox=np.repeat([f"f{i:02d}" for i in range(20)], 3))
    with pytest.raises(TableError, match="--drop fox, or learn series by --series fox"):
        choose(pd.concat([many, many.assign(fox=many["fox"] + "x")]), [])


@pytest.mark.parametrize(
    ("frame", "given", "error", "says"),
    [
        (NUMBERS.assign(who=[f"p{i}" for i in range(N)]), [], TableError, "--drop who"),
        (NUMBERS.assign(id=range(N)), [], TableError, "--drop id"),
        (NUMBERS.assign(t=[f"p{i % 50}" for i in range(N)]), [], TableError, "--drop t"),
        (WORDS, [("response", "u")], InputError, "no model for a table of two states .* --response"),
        (NUMBERS, [("prior", "laplase")], InputError, "did you mean 'laplace'"),
        (NUMBERS.corr().rename_axis("v").reset_index(), [], TableError, "--cov --n ROWS"),
    ],
)  # fmt: skip
def test_tables_that_fit_no_model_are_refused(frame, given, error, says):
    with pytest.raises(error, match=says):
        choose(frame, given)


def test_what_may_be_a_series_is_said():
    table = NUMBERS.assign(who=np.repeat(["p", "q"], N // 2), time=RNG.permutation(N))
    lines = choose(table, []).lines(PLAIN)
    assert any("--model markov_transitions --series who" in line for line in lines)
    assert any(
        "'time' is the time of each row" in line and "sort the rows" in line for line in lines
    )
    assert not any("sort the rows" in line for line in choose(NUMBERS, []).lines(PLAIN))


def test_the_order_of_text_can_be_written():
    assert any("low<mid<high" in line for line in choose(COLOURS, []).lines(PLAIN))
    assert not any("low<mid<high" in line for line in choose(ANSWERS, []).lines(PLAIN))
