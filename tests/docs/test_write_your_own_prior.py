"""The page on priors of one's own: its code runs, its sampler is right, and its check sees a wrong one."""

import re

from pathlib import Path

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc.step_methods import STEP_METHODS

PAGE = Path(__file__).parents[2] / "docs" / "write_your_own_prior.md"
#: 3,000 independent draws from the 64 sequences are at most this far from the exact posterior, in total
#: variation, in 99.9 % of repetitions (simulated); draws of a chain are nearly independent here.
TOLERANCE = 0.08


def code():
    """The code blocks of the page, in their order, as one program."""
    return "\n\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))


@pytest.fixture(scope="module")
def page():
    """The names that the page defines, after its code has run; its step is forgotten at the end."""
    before = [*STEP_METHODS]
    names = {"__name__": "write_your_own_prior"}
    exec(compile(code(), PAGE.name, "exec"), names)
    yield names
    STEP_METHODS[:] = before


@pytest.mark.chain
@pytest.mark.compiled
def test_the_code_of_the_page_runs_and_its_sampler_is_exact(page):
    assert "changes" in page["idata"]["sample_stats"]  # so the step was assigned
    assert page["distance"] < TOLERANCE
    changed = np.diff(page["drawn"], axis=1, prepend=0) != 0
    expected = np.diff(page["every"], axis=1, prepend=0) != 0
    np.testing.assert_allclose(
        changed.mean(axis=0), page["probability"] @ expected, atol=0.05
    )  # five standard errors


def test_the_tolerance_is_that_of_independent_draws(page, rng):
    exact = page["probability"]
    counts = rng.multinomial(3000, exact, size=2000) / 3000
    assert np.quantile(np.abs(counts - exact).sum(axis=1) / 2, 0.999) < TOLERANCE


@pytest.mark.chain
@pytest.mark.compiled
def test_the_check_sees_a_wrong_sampler(page, monkeypatch):
    right = page["draw_chain"]

    def wrong(rng, switch, loglik):
        return right(rng, np.full(len(switch), 0.5), loglik)  # each element by itself

    monkeypatch.setitem(page, "draw_chain", wrong)
    with page["known"]:
        idata = pm.sample(1500, tune=500, chains=2, cores=1, random_seed=1, progressbar=False)
    drawn = idata["posterior"]["z"].values.reshape(3000, -1)
    distance = np.abs(page["frequencies"](drawn) - page["probability"]).sum() / 2
    assert distance > 2 * TOLERANCE


def test_the_prior_has_the_density_that_its_draws_have(page):
    switch = np.array([0.2, 0.5, 0.9])
    prior = page["BinaryChain"].dist(switch)
    draws = pm.draw(prior, 4000, random_seed=1)
    found = page["frequencies"](draws)
    density = np.exp([pm.logp(prior, z).eval() for z in page["every"][:8, -3:]])
    np.testing.assert_allclose(density.sum(), 1.0)
    np.testing.assert_allclose(found, density, atol=0.03)  # four standard errors
    assert pm.logp(prior, np.array([0, 1, 2])).eval() == -np.inf


def test_another_model_is_refused_with_the_reason(page):
    def refused(reason):
        return pytest.raises(ValueError, match=f"cannot be drawn exactly: {reason}")

    y, chain, step = page["y"], page["BinaryChain"], page["BinaryChainGibbs"]
    levels = pt.constant([-1.0, 1.0])
    with pm.Model():
        z = chain("z", np.full(len(y), 0.3))
        with refused("nothing depends on it"):
            step([z])
        pm.Normal("y", levels[0] + z, 1.0, observed=y)
        with refused("the mean of 'y' is not an array indexed by it"):
            step([z])
        pm.Poisson("count", 1.0 + z, observed=np.ones(len(y), int))
        with refused("y, count depends on it"):
            step([z])
    for mean, noise, observed, reason in (
        (lambda z: levels[z], lambda z: 1.0 + z, y, "the levels or the noise of 'y' depend on it"),
        (lambda z: levels[z], lambda z: 1.0, None, "'y' is not observed"),
        (lambda z: pt.eye(2)[:, z], lambda z: 1.0, np.ones((2, 6)), "'y' is not a single series"),
    ):
        with pm.Model():
            z = chain("z", np.full(len(y), 0.3))
            pm.Normal("y", mean(z), noise(z), observed=observed)
            with refused(reason):
                step([z])
