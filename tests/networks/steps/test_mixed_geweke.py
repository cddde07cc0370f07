"""Joint-distribution tests of graph, parameters and rows of networks with columns of several kinds."""

import sys

import numpy as np
import pytest

from scipy.special import softmax
from tools.geweke import assert_geweke

from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.kernels.dag_priors import ParentPrior
from bayesstruct.networks.kernels.dags import topological_order
from bayesstruct.networks.kernels.mixed_gaps import draw_gaps
from bayesstruct.networks.kernels.mixed_layout import MixedLayout
from bayesstruct.networks.kernels.prior_draws import draw_dag
from bayesstruct.networks.kernels.scores.mixed import FamilyFit, MixedScore
from bayesstruct.networks.steps.mixed_chain import MixedChain
from bayesstruct.networks.steps.mixed_moves import GuidedMoves, IndependentMoves, PartitionMoves

D, N, SCALE = 3, 4, 1.0
PRIOR = ParentPrior(D)
#: Values that are set from outside, in some cases.
SET = np.zeros((N, D), bool)
SET[:2, 1] = True
#: Missing values in some cases: a whole row, two values of another, none of a third.
MISSING = np.array([[0, 0, 1], [1, 0, 1], [0, 0, 0], [1, 1, 1]], bool)
CASES = {
    "student": (("student", "ordinal", "multinomial"), (0, 3, 3)),
    "laplace": (("laplace", "cloglog", "normal"), (0, 2, 0)),
    "probit": (("probit", "ordinal", "logistic"), (2, 3, 2)),
}


def correlated(rng, k):
    """Normal numbers with variance 1 and correlations 1/2."""
    return np.sqrt(0.5) * (rng.normal(size=k) + rng.normal())


def prior_vector(rng, layout, dag):
    """Parameters from their prior, written down independently of the kernels."""
    out = np.zeros(layout.size)
    for i, family in enumerate(layout.families):
        parents = np.flatnonzero(dag[:, i])
        number, outputs = layout.is_number(i), layout.outputs(i)
        s, extras = 1.0, layout.extras[i]
        if number:
            q = int(np.isin(layout.owner, parents).sum())
            s = 1.0 / np.sqrt(rng.gamma(0.5 * (3.0 + q), 4.0))
            out[extras[0]] = s
        if family == "student":
            out[extras[1]] = 2.0 + rng.gamma(2.0, 10.0)
        if family == "ordinal":
            share = np.cumsum(rng.dirichlet(np.ones(layout.states[i])))[:-1]
            out[extras] = np.log(share / (1.0 - share))
        else:
            wide = 1.0 if number else 2.5
            out[layout.coefficients[i][:, 0]] = s * wide * correlated(rng, outputs)
        for j in parents:
            places = layout.coefficients[i][:, 1 + np.flatnonzero(layout.owner == j)]
            common = correlated(rng, outputs) + np.zeros((places.shape[1], outputs))
            own = np.array([correlated(rng, outputs) for _ in range(places.shape[1])])
            several = layout.families[j] not in ("ordinal", "normal", "student", "laplace")
            z = np.sqrt(0.5) * (own + common) if several else own
            out[places] = s * SCALE * z.T
    return out


def feature(layout, x, j):
    """Features of a column as a parent, (features, n)."""
    k = layout.states[j]
    if layout.is_number(j):
        return x[None, :, j]
    if layout.families[j] == "ordinal":
        steps = np.arange(k) - (k - 1) / 2
        return ((x[:, j] - (k - 1) / 2) / np.sqrt(np.mean(steps**2)))[None]
    return np.array([(x[:, j] == s) - 1.0 / k for s in range(1, k)])


def rows(rng, layout, dag, vector, was_set, setting):
    """A table given graph and parameters."""
    x = np.zeros((N, D))
    for i in topological_order(dag):
        places, family, extras = layout.coefficients[i], layout.families[i], layout.extras[i]
        eta = np.zeros((layout.outputs(i), N))
        if family != "ordinal":
            eta += vector[places[:, :1]]
        for j in np.flatnonzero(dag[:, i]):
            weight = vector[places[:, 1 + np.flatnonzero(layout.owner == j)]]
            eta += weight @ feature(layout, x, j)
        x[:, i] = np.where(was_set[:, i], setting[:, i], values(rng, family, eta, vector[extras]))
    return x


def values(rng, family, eta, extras):
    e, logistic = eta[0], rng.logistic(size=N)
    if family == "multinomial":
        p = softmax(np.vstack([np.zeros(N), eta]), axis=0)
        return (p.cumsum(axis=0)[:-1] < rng.random(N)).sum(axis=0)
    if family == "student":
        g = extras[1]
        return e + extras[0] * rng.standard_t(g, N) * np.sqrt((g - 2.0) / g)
    if family in ("normal", "laplace"):
        noise = rng.normal(size=N) if family == "normal" else rng.laplace(size=N) / np.sqrt(2.0)
        return e + extras[0] * noise
    if family == "ordinal":
        return (e + logistic > extras[:, None]).sum(axis=0)
    # P(1) of a state: a latent value is above zero.
    latent = {"logistic": logistic, "probit": rng.normal(size=N)}
    return e + latent.get(family, -np.log(rng.exponential(size=N))) > 0


def statistics_of(layout):
    def statistics(state):
        dag, vector, x = state
        out = {f"arc {j}{i}": dag[j, i] for j in range(D) for i in range(D) if i != j}
        for i in range(D):
            own, extras = layout.coefficients[i], vector[layout.extras[i]]
            weight = vector[own[:, 1:][own[:, 1:] >= 0]]
            out[f"weights {i}"] = np.tanh(weight).sum()
            out[f"large weights {i}"] = np.tanh(np.abs(weight)).sum()
            if layout.families[i] != "ordinal":
                out[f"intercept {i}"] = np.tanh(vector[own[:, 0]]).sum()
                out[f"large intercept {i}"] = np.tanh(np.abs(vector[own[:, 0]])).sum()
            for k, extra in enumerate(extras):
                # Thresholds, scales and degrees of freedom without their tails.
                out[f"rest {i} {k}"] = np.tanh(0.5 * np.log(extra) if extra > 0 else -extra)
            out[f"mean {i}"] = np.tanh(x[:, i].mean())
            out[f"square {i}"] = np.tanh((x[:, i] ** 2).mean())
            j = i - 1
            z = feature(layout, x, i)[0] * feature(layout, x, j)[0]
            out[f"product {i}"] = np.tanh(z.mean())
            out[f"used product {i}"] = np.tanh(z.mean()) * (dag[i, j] + dag[j, i])
        return out

    return statistics


def graph_moves(moves, problem, guide):
    if moves == "guided":
        return GuidedMoves(problem, guide)
    if moves == "independent":
        return IndependentMoves(problem)
    return PartitionMoves(problem, 1, 2)


def guide_of(layout, setting):
    """Moves under the evidences of some table."""
    rng = np.random.default_rng(8)
    dag = np.triu(np.ones((D, D), np.int8), 1)
    x = rows(rng, layout, dag, prior_vector(rng, layout, dag), np.zeros((N, D), bool), setting)
    score = MixedScore(x, layout.families, layout.states, scale=SCALE)
    return PartitionMoves(NetworkProblem(tuple("abc"), score, PRIOR, False), 1, 2)


def geweke(case, moves, draws, *, was_set=None, missing=None, seed=1):
    """Compare draws from the prior with those of the step; with missing values rows are drawn anew before it, not after."""
    families, states = CASES[case]
    layout = MixedLayout(families, states)
    was_set = np.zeros((N, D), bool) if was_set is None else was_set
    setting = np.zeros((N, D))
    setting[::2] = 1.0
    guide = guide_of(layout, setting) if moves == "guided" else None

    def forward(rng):
        dag = np.array(draw_dag(rng, PRIOR, order=False), np.int8)
        vector = prior_vector(rng, layout, dag)
        return dag, vector, rows(rng, layout, dag, vector, was_set, setting)

    def move(rng, dag, vector, x):
        score = MixedScore(x, families, states, scale=SCALE, interventions=was_set)
        problem = NetworkProblem(tuple("abc"), score, PRIOR, False)
        fits = [score.fit(i, np.flatnonzero(own)) for i, own in enumerate(dag.T)]
        chain = MixedChain(score, dag.copy(), rng, [fit.free(vector) for fit in fits])
        for change in graph_moves(moves, problem, guide).changes():
            chain.move(change)
        chain.refresh()
        return chain.graph, chain.vector()

    def transition(rng, state):
        dag, vector = move(rng, *state)
        return dag, vector, rows(rng, layout, dag, vector, was_set, setting)

    def transition_with_gaps(rng, state):
        dag, vector, _ = state
        x = rows(rng, layout, dag, vector, was_set, setting)
        for _ in range(2):
            dag, vector = move(rng, dag, vector, x)
            draw_gaps(rng, layout, vector, dag, x, missing, ~was_set)
        return dag, vector, x

    transition = transition if missing is None else transition_with_gaps
    return assert_geweke(
        forward, transition, statistics_of(layout), draws=draws, batches=20, seed=seed
    )


@pytest.mark.calibration
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("moves", ["independent", "partition"])
def test_the_step_has_the_joint_law_of_parameters_and_rows(case, moves, full):
    was_set = SET if case == "laplace" else None
    geweke(case, moves, 4_000 if full else 400, was_set=was_set)


@pytest.mark.statistical
def test_moves_without_weights_are_noticed(monkeypatch):
    monkeypatch.setattr(FamilyFit, "log_weight", lambda self, theta: 0.0)
    with pytest.raises(AssertionError, match="worst z"):
        geweke("student", "independent", 1_000)


@pytest.mark.statistical
def test_values_that_were_set_and_count_as_drawn_are_noticed(monkeypatch):
    own = MixedScore.__init__

    def wrong(self, *args, interventions, **kwargs):
        own(self, *args, **kwargs)

    monkeypatch.setattr(MixedScore, "__init__", wrong)
    with pytest.raises(AssertionError, match="worst z"):
        geweke("laplace", "independent", 1_000, was_set=SET)


@pytest.mark.statistical
def test_missing_values_that_are_filled_with_means_and_first_states_are_noticed(monkeypatch):
    def fill(rng, layout, vector, dag, x, missing, free):
        x[missing] = 0.0

    monkeypatch.setattr(sys.modules[__name__], "draw_gaps", fill)
    with pytest.raises(AssertionError, match="worst z"):
        geweke("student", "independent", 400, missing=MISSING)


@pytest.mark.calibration
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("moves", ["independent", "guided"])
def test_the_step_has_the_joint_law_with_missing_values(case, moves, full):
    was_set = SET if case == "laplace" else None
    geweke(case, moves, 4_000 if full else 400, was_set=was_set, missing=MISSING)


@pytest.mark.statistical
def test_guided_moves_that_are_not_corrected_are_noticed(monkeypatch):
    monkeypatch.setattr(GuidedMoves, "_guided", lambda self, change: change)
    with pytest.raises(AssertionError, match="worst z"):
        geweke("student", "guided", 400, missing=MISSING)
