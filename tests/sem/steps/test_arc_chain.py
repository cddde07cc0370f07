"""Joint-distribution tests of the chain over arcs and parameters, with wrong variants that they notice."""

import numpy as np
import pytest

from tools.geweke import assert_geweke

from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.kernels.dag_priors import ParentPrior
from bayesstruct.networks.kernels.dags import topological_order
from bayesstruct.networks.kernels.prior_draws import draw_dag
from bayesstruct.sem.exact.posterior import sem_posterior
from bayesstruct.sem.kernels.errors import BASE
from bayesstruct.sem.kernels.families import Family, Shared
from bayesstruct.sem.kernels.scores import SemScores
from bayesstruct.sem.kernels.settings import FREE, NOISES, SemSettings, sem_settings
from bayesstruct.sem.priors.noise import noise_law
from bayesstruct.sem.steps import arc_chain
from bayesstruct.sem.steps.arc_chain import ArcState, sweep
from bayesstruct.sem.steps.families import Families

D, N = 3, 6
RELATIVE = np.array([0.5, 1.0, 1.5])
PRIOR = ParentPrior(D, max_parents=2)


def prior_state(rng, settings: SemSettings):
    """Graph and parameters from their prior, written down independently of the kernels."""
    state = ArcState(draw_dag(rng, PRIOR, order=False))
    noise, free = NOISES[settings.noise], settings.variances == FREE
    common = 1.0 / np.sqrt(rng.gamma(settings.shape, 1.0 / settings.rate))
    cubes = rng.gamma(settings.concentration * BASE, size=(D, len(BASE)))
    if not free:
        cubes[:] = cubes[0]
        shape = np.cbrt(cubes[0]) if noise == "mixture" else np.empty(0)
        state.shared = Shared(float(np.log(common)), shape)
    if settings.share_is_random:
        state.shared.share = rng.beta(settings.share_alpha, settings.share_beta)
    share = state.shared.share if settings.share_is_random else settings.normal_probability
    for i in range(D):
        k = len(state.parents(i))
        s = common * np.sqrt(RELATIVE[i])
        if free:
            s = 1.0 / np.sqrt(rng.gamma(settings.shape + 0.5 * k, 1.0 / settings.rate))
        local = np.abs(rng.standard_cauchy(k))
        slab = s * settings.scale * (local if settings.prior == 2 else 1.0)
        weight = rng.laplace(size=k) * slab if settings.prior == 1 else rng.normal(size=k) * slab
        own = {
            "student": [np.log(rng.gamma(settings.degrees_shape, 1.0 / settings.degrees_rate))],
            "mixture": np.cbrt(cubes[i]),
        }.get(noise, [])
        logs = np.log(local) if settings.prior == 2 else []
        if settings.normal_probability and rng.random() < share:
            own = np.full(len(BASE), np.nan)
        c = rng.normal() * s / np.sqrt(settings.alpha_mu)
        state.theta.append(np.concatenate([[c], weight, [np.log(s)], own, logs]))
    return state


def rows(rng, settings: SemSettings, state):
    """A table given graph and parameters."""
    noise, z = NOISES[settings.noise], np.zeros((N, D))
    for i in topological_order(state.dag):
        own, theta = list(state.parents(i)), state.theta[i]
        p = len(own) + 1
        shape = np.zeros((1, 1))
        if noise == "student":
            shape = np.array([[2.0 + np.exp(theta[p + 1])]])
        if noise == "mixture":
            cubes = theta[p + 1 : p + 1 + len(BASE)] ** 3
            shape = cubes[None] / cubes.sum()
        kind = "gaussian" if np.isnan(shape).any() else noise
        e = noise_law(kind).draw(rng, shape, N)[:, 0]
        z[:, i] = theta[0] + z[:, own] @ theta[1:p] + np.exp(theta[p]) * e
    return z


def statistics(state_and_table):
    state, z = state_and_table
    out = {f"arc {j}{i}": state.dag[j, i] for j in range(D) for i in range(D) if i != j}
    out["share"], out["square of the share"] = state.shared.share, state.shared.share**2
    kinds = sum(np.isnan(theta).any() for theta in state.theta)
    out["share and kinds"] = state.shared.share * kinds
    for i in range(D):
        p = len(state.parents(i)) + 1
        theta = state.theta[i]
        out[f"log scale {i}"], out[f"square {i}"] = theta[p], theta[p] ** 2
        out[f"intercept {i}"] = np.tanh(theta[0])
        out[f"large weight {i}"] = np.tanh(np.abs(theta[1:p])).sum()
        out[f"rest {i}"] = np.nansum(np.tanh(theta[p + 1 :]))
        out[f"normal {i}"] = np.isnan(theta).any()
        out[f"normal effect {i}"] = out[f"normal {i}"] * len(state.parents(i))
        out[f"spread {i}"] = np.log(z[:, i].std() + 1e-3)
        explained = [np.tanh(np.abs((z[:, j] * z[:, i]).mean())) for j in state.parents(i)]
        out[f"explained {i}"] = np.sum(explained)
        out[f"product {i}"] = np.tanh((z[:, i] * z[:, i - 1]).mean())
    return out


def geweke(noise, variances, prior, draws, normal=0.0, seed=1):
    own = {"noise": noise, "variances": variances, "prior": prior, "alpha_mu": 2.0}
    settings = sem_settings(D, **own, normal_probability=normal)
    relative = RELATIVE if variances == "known" else np.ones(D)
    families = Families(settings, relative, np.ones((N, D), bool), PRIOR)

    def forward(rng):
        state = prior_state(rng, settings)
        return state, rows(rng, settings, state)

    def transition(rng, state_and_table):
        state, z = state_and_table
        families.use(z, np.cbrt(settings.concentration * BASE) if noise == "mixture" else None)
        sweep(rng, families, state, 8)
        return state, rows(rng, settings, state)

    return assert_geweke(forward, transition, statistics, draws=draws, batches=40, seed=seed)


CASES = [
    ("gaussian", "known", "laplace"),
    ("laplace", "free", "horseshoe"),
    ("student", "free", "spike_slab"),
    ("mixture", "free", "spike_slab"),
    ("mixture", "known", "spike_slab"),
    ("mixture", "free", "spike_slab", 0.6),
    ("mixture", "free", "laplace", 0.3),
    ("mixture", "free", "spike_slab", None),
    ("mixture", "free", "horseshoe", None),
]


@pytest.mark.calibration
@pytest.mark.parametrize("case", CASES, ids=str)
def test_chain_has_the_joint_law_of_parameters_and_rows(case, full):
    noise, variances, prior, *normal = case
    geweke(noise, variances, prior, 4_000 if full else 300, *normal)


@pytest.mark.statistical
def test_acceptance_without_the_prior_odds_of_normal_noise_is_noticed(monkeypatch):
    right = Family._log_odds

    def wrong(self, normal):
        p = self.probability
        return right(self, normal) - np.log(p if normal else 1.0 - p)

    monkeypatch.setattr(Family, "_log_odds", wrong)
    with pytest.raises(AssertionError, match="worst z"):
        geweke("mixture", "free", "spike_slab", 400, 0.8)


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", ["fixed", "forgotten"])
def test_a_share_of_normal_noise_that_is_drawn_otherwise_is_noticed(wrong, monkeypatch):
    right = arc_chain.share_given_kinds
    if wrong == "fixed":
        monkeypatch.setattr(arc_chain, "share_given_kinds", lambda *_: 0.5)
    else:  # columns that have a mixture do not count
        monkeypatch.setattr(
            arc_chain, "share_given_kinds", lambda rng, n, own: right(rng, n[n], own)
        )
    with pytest.raises(AssertionError, match="worst z"):
        geweke("mixture", "free", "spike_slab", 400, None)


def arcs_of(table, settings, sweeps=600):
    """Share of the draws that have each arc, of a chain on a table."""
    families = Families(settings, np.ones(D), np.ones(table.shape, bool), PRIOR)
    families.use(table)
    state, rng = ArcState(np.zeros((D, D), np.int8)), np.random.default_rng(3)
    arc_chain.climb(rng, families, state)
    arc_chain.fill_parameters(rng, families, state)
    found = np.zeros((sweeps, D, D))
    for draw in found:
        sweep(rng, families, state, 20)
        draw[:] = state.dag
    return found.mean(axis=0)


def error_of_arcs():
    """Largest difference from the arc probabilities of all graphs, by importance sampling."""
    rng = np.random.default_rng(2)
    x = rng.laplace(size=(25, D))
    x[:, 1] += 0.4 * x[:, 0]
    z = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    settings = sem_settings(D, noise="laplace")
    problem = NetworkProblem(tuple("abc"), SemScores(z, settings), PRIOR, False)
    exact = sem_posterior(problem, draws=4000, rng=rng).arc_probabilities.to_numpy()
    return np.abs(arcs_of(z, settings) - exact).max()


@pytest.mark.statistical
def test_arcs_have_the_probabilities_of_all_graphs():
    assert error_of_arcs() < 0.08  # some three standard errors of 600 correlated draws


@pytest.mark.statistical
def test_moves_of_the_graph_without_weights_are_noticed(monkeypatch):
    right = arc_chain._move

    def wrong(rng, families, state):
        with monkeypatch.context() as m:
            m.setattr(Families, "weigh", lambda *args: 0.0)
            draw = Families.draw
            m.setattr(Families, "draw", lambda *args: (draw(*args)[0], 0.0))
            return right(rng, families, state)

    monkeypatch.setattr(arc_chain, "_move", wrong)
    assert error_of_arcs() > 0.12


@pytest.mark.statistical
def test_a_common_scale_that_is_drawn_from_another_density_is_noticed(monkeypatch):
    right = arc_chain.slice_draw

    def wrong(rng, log_density, x, width):
        return right(rng, lambda v: 2.0 * log_density(v), x, width)

    monkeypatch.setattr(arc_chain, "slice_draw", wrong)
    with pytest.raises(AssertionError, match="worst z"):
        geweke("gaussian", "known", "spike_slab", 600)
