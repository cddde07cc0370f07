"""States that were declared and never occur count in scores: against BDeu and BDe scores written out by hand."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from scipy.special import gammaln, logsumexp

import bayesstruct as bs

from bayesstruct.data import TableError

TABLE = pd.DataFrame({"a": list("xxxyyxyx"), "b": list("uuvvvuuu")})
STATES = {"b": ["u", "v", "w"]}  # w never occurs
SIZES = {"a": 2, "b": 3}


def hand_score(child, parent, prior):
    """Log marginal likelihood of a column given at most one parent; `prior` is that of a cell."""
    groups = [TABLE[child]] if parent is None else [own for _, own in TABLE.groupby(parent)[child]]
    total = 0.0  # a state of the parent without rows adds nothing
    for own in groups:
        counts = [*own.value_counts(), *[0] * (SIZES[child] - own.nunique())]
        total += gammaln(SIZES[child] * prior) - gammaln(SIZES[child] * prior + len(own))
        total += sum(gammaln(prior + n) - gammaln(prior) for n in counts)
    return total


def bdeu(child, parent, size=1.0):
    return hand_score(child, parent, size / SIZES[child] / SIZES.get(parent, 1))


def k2_score(child, parent):
    return hand_score(child, parent, 1.0)


def shares(score):
    """Posterior probabilities of no arc, a -> b and b -> a under a uniform prior, and the log sum."""
    a, b = score("a", None), score("b", None)
    logs = np.array([a + b, a + score("b", "a"), score("a", "b") + b])
    return np.exp(logs - logsumexp(logs)), logsumexp(logs) - math.log(3)


DECLARED = {
    "states=": (TABLE, {"states": STATES}),
    "pandas": (TABLE.assign(b=pd.Categorical(TABLE["b"], STATES["b"])), {}),
    "polars": (pl.from_pandas(TABLE).cast({"b": pl.Enum(STATES["b"])}), {}),
}


@pytest.mark.filterwarnings("ignore:.*never has 'w'")
@pytest.mark.parametrize(("table", "options"), DECLARED.values(), ids=DECLARED)
@pytest.mark.parametrize(("name", "score"), [("bdeu", bdeu), ("bde", k2_score)])
def test_declared_states_count_in_the_exact_posterior(table, options, name, score):
    posterior = bs.exact.dag_posterior(table, score=name, **options)
    right, evidence = shares(score)
    found = posterior.arc_probabilities
    np.testing.assert_allclose([found.loc["a", "b"], found.loc["b", "a"]], right[1:], rtol=1e-10)
    assert posterior.log_evidence == pytest.approx(evidence, rel=1e-12)
    without = bs.exact.dag_posterior(TABLE, score=name).arc_probabilities
    assert abs(without.loc["a", "b"] - right[1]) > 0.01  # what was computed without `states=`


def test_searches_take_declared_states():
    options = {"score": "bdeu", "states": STATES}
    best = max(bdeu("b", None), bdeu("b", "a")) + bdeu("a", None)
    for solution in (
        bs.solvers.known_order(TABLE, ["a", "b"], **options),
        bs.solvers.k2(TABLE, ["a", "b"], **options),
    ):
        assert solution.objective == pytest.approx(best, rel=1e-12)
    best = max(best, bdeu("a", "b") + bdeu("b", None))
    for search in (bs.solvers.optimal_dag, bs.solvers.dag_search):
        assert search(TABLE, **options).objective == pytest.approx(best, rel=1e-12)


def test_states_that_have_no_probability_are_refused():
    with pytest.raises(TableError, match=r"'b' never has 'w'.*bdeu"):
        bs.exact.dag_posterior(TABLE, score="multinomial", states=STATES)
    with pytest.raises(TableError, match="'a' holds 'y'"):
        bs.exact.dag_posterior(TABLE, score="bdeu", states={"a": ["x", "z"]})
    with pytest.raises(ValueError, match="`states` declares states"):
        bs.exact.dag_posterior(np.random.default_rng(0).normal(size=(9, 2)), states=STATES)
    score = bs.exact.dag_posterior(TABLE, score="bdeu").problem.score
    with pytest.raises(ValueError, match=r"'states'.*made from a table"):
        bs.exact.dag_posterior(score, states=STATES)


def test_modes_of_random_fields_take_declared_states():
    options = {"bias_ridge": 0.1, "rate": 1.0}
    found = bs.solvers.pairwise_mrf(TABLE, states=STATES, **options)
    read = bs.data.StateTable.read(TABLE, states=STATES)
    assert found.potentials.states == (2, 3)
    assert found.objective == bs.solvers.pairwise_mrf(read, **options).objective
    with pytest.raises(ValueError, match="StateTable has its states"):
        bs.solvers.pairwise_mrf(read, states=STATES, **options)
    with pytest.raises(TableError, match="'b' never has 'w'"):
        bs.solvers.pairwise_mrf(TABLE, states=STATES)
