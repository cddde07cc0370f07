"""The Markov chain over graphs and parameters against the posterior over all graphs, and chains that are wrong."""

import numpy as np
import pytest

from bayesstruct.networks.exact.problem import network_problem
from bayesstruct.sem.exact.posterior import sem_posterior
from bayesstruct.sem.kernels import chain as chains
from bayesstruct.sem.kernels.chain import SemChain
from bayesstruct.sem.kernels.families import Family
from bayesstruct.sem.kernels.scores import SemScores
from bayesstruct.sem.kernels.settings import sem_settings


def _problem(noise, variances, prior, normal=0.0, *, n=10, d=3, scores=SemScores, **options):
    rng = np.random.default_rng(1)
    x = rng.laplace(size=(n, d))
    x[:, 1] += 0.6 * x[:, 0]
    x[:, 2] += 0.5 * x[:, 1]
    x = (x - x.mean(0)) / x.std(0)
    relative = np.linspace(0.5, 1.5, d) if variances == "known" else None
    own = {"noise": noise, "variances": variances, "prior": prior}
    settings = sem_settings(d, **own, normal_probability=normal)
    return network_problem(scores(x, settings, relative=relative), **options)


def _worst(problem, posterior, sweeps, seed=2):
    """Return the greatest deviation of arcs, weights and normal noise and its share from the posterior, in standard errors."""
    rng, chain = np.random.default_rng(seed), SemChain(problem)
    state, seen = chain.start(rng), []
    for _ in range(sweeps):
        state, _ = chain.sweep(rng, state)
        share = [state.share] if problem.score.settings.share_is_random else []
        seen.append(np.concatenate([state.dag.ravel(), state.weight.ravel(), state.normal, share]))
    batches = np.array(seen).reshape(20, -1, len(seen[0])).mean(axis=1)
    expected = np.concatenate(
        [
            posterior.arc_probabilities.to_numpy().ravel(),
            posterior.weight_means.to_numpy().ravel(),
            posterior.normal_probabilities,
            [posterior.normal_share] * problem.score.settings.share_is_random,
        ]
    )
    arcs = posterior.arc_errors.to_numpy()
    rest = len(expected) - 2 * arcs.size
    error = np.concatenate([arcs.ravel(), arcs.ravel(), np.full(rest, arcs.max())])
    spread = np.sqrt(batches.var(axis=0, ddof=1) / 20 + error**2)
    return np.abs((batches.mean(axis=0) - expected) / np.maximum(spread, 0.002)).max()


@pytest.mark.statistical
@pytest.mark.parametrize(
    "case",
    [
        ("gaussian", "free", "horseshoe"),
        ("laplace", "free", "spike_slab"),
        ("student", "known", "laplace"),
        ("mixture", "free", "laplace"),
        ("mixture", "equal", "spike_slab"),
        ("mixture", "free", "spike_slab", 0.5),
        ("mixture", "free", "horseshoe", 0.7),
        ("mixture", "free", "spike_slab", None),
    ],
    ids=str,
)
def test_chain_has_the_posterior_over_all_graphs(case):
    problem = _problem(*case)
    posterior = sem_posterior(problem, draws=3200, rng=np.random.default_rng(5))
    # The greatest of 21 t statistics with 19 degrees of freedom.
    assert _worst(problem, posterior, 300) < 4.5


@pytest.mark.statistical
def test_a_chain_without_the_prior_odds_of_normal_noise_is_noticed(monkeypatch):
    problem = _problem("mixture", "free", "spike_slab", 0.7)
    posterior = sem_posterior(problem, draws=3200, rng=np.random.default_rng(5))
    assert _worst(problem, posterior, 300) < 4.5
    chance = Family._log_odds

    def wrong(self, normal):
        p = self.probability
        return chance(self, normal) - np.log(p if normal else 1.0 - p)

    monkeypatch.setattr(Family, "_log_odds", wrong)
    assert _worst(problem, posterior, 300) > 6.0


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", ["fixed", "forgotten", "flat"])
def test_a_share_of_normal_noise_that_is_drawn_otherwise_is_noticed(wrong, monkeypatch):
    problem = _problem("mixture", "free", "spike_slab", None)
    posterior = sem_posterior(problem, draws=3200, rng=np.random.default_rng(5))
    if wrong == "fixed":  # the share stays where the chain began
        monkeypatch.setattr(SemChain, "_move_share", lambda *_: None)
    elif wrong == "forgotten":  # columns that have a mixture do not count
        right = chains.share_given_kinds
        monkeypatch.setattr(chains, "share_given_kinds", lambda rng, n, own: right(rng, n[n], own))
    else:  # the share of the proposal does not know the evidences
        monkeypatch.setattr(
            chains, "draw_share", lambda rng, families, own: 0.8 + 0.2 * rng.random()
        )
    assert _worst(problem, posterior, 300) > 6.0


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["gaussian", "laplace", "student", "mixture"])
@pytest.mark.parametrize("variances", ["free", "equal", "known"])
@pytest.mark.parametrize("prior", ["spike_slab", "laplace", "horseshoe"])
def test_chains_of_four_columns_have_the_posterior_over_all_graphs(noise, variances, prior):
    problem = _problem(noise, variances, prior, n=15, d=4)
    posterior = sem_posterior(problem, draws=8000, rng=np.random.default_rng(5))
    assert _worst(problem, posterior, 2000) < 5.0


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["spike_slab", "laplace", "horseshoe"])
@pytest.mark.parametrize("normal", [0.5, None])
def test_chains_of_four_columns_know_which_have_normal_noise(prior, normal):
    problem = _problem("mixture", "free", prior, normal, n=15, d=4)
    posterior = sem_posterior(problem, draws=8000, rng=np.random.default_rng(5))
    assert _worst(problem, posterior, 2000) < 5.0


class _Coarse(SemScores):
    """Scores that favour small parent sets too much."""

    def _evidences(self, child, parents):
        own, normal, mode = super()._evidences(child, parents)
        return own - 0.8 * len(parents), normal, mode


@pytest.mark.statistical
def test_wrong_scores_are_mended_by_weights_and_not_without_them(monkeypatch):
    problem = _problem("laplace", "free", "spike_slab", scores=_Coarse)
    right = _problem("laplace", "free", "spike_slab")
    posterior = sem_posterior(right, draws=3200, rng=np.random.default_rng(5))
    assert _worst(problem, posterior, 300) < 4.5
    # Accept by the scores alone: weights are not looked at.
    monkeypatch.setattr(chains, "_ratio", lambda new, then, old, now: 0.0, raising=True)
    assert _worst(problem, posterior, 300) > 6.0


def test_states_have_the_parameters_of_the_graph():
    problem = _problem("student", "equal", "horseshoe", forbidden=[("x2", "x0")])
    rng, chain = np.random.default_rng(0), SemChain(problem)
    state = chain.start(rng)
    for _ in range(5):
        state, stats = chain.sweep(rng, state.copy())
    assert ((state.weight != 0) == (state.dag == 1)).all()
    assert (state.local_scale[state.dag == 0] == 1.0).all()
    assert np.ptp(state.noise_scale) < 1e-12
    assert (state.shape > 2.0).all()
    assert state.dag[2, 0] == 0
    assert set(stats) == {"acceptance", "refreshed", "walked"}


def test_the_same_seed_gives_the_same_draws():
    problem = _problem("mixture", "free", "spike_slab")
    draws = []
    for _ in range(2):
        rng, chain = np.random.default_rng(3), SemChain(problem)
        state = chain.start(rng)
        for _ in range(4):
            state, _ = chain.sweep(rng, state)
        draws.append(state.weight)
    np.testing.assert_array_equal(*draws)
