"""Proposals that follow the posterior of a family, where its mode is not typical."""

import numpy as np
import pytest

from bayesstruct.sem.kernels.fits import family_design, fit_family
from bayesstruct.sem.kernels.proposals import draw_family
from bayesstruct.sem.kernels.refinement import refined
from bayesstruct.sem.kernels.settings import sem_settings


def _family(n=200):
    rng = np.random.default_rng(2)
    x = np.column_stack([rng.laplace(size=n), rng.laplace(size=n)])
    x[:, 1] += 0.8 * x[:, 0]
    return family_design((x - x.mean(0)) / x.std(0), 1, [0])


def _share(logs):
    weights = np.exp(logs - logs.max())
    return weights.sum() ** 2 / (weights**2).sum() / len(logs)


@pytest.mark.parametrize("prior", ["spike_slab", "horseshoe"])
def test_more_draws_count_where_the_mode_is_not_typical(prior):
    (y, design), settings = _family(), sem_settings(2, noise="mixture", prior=prior)
    fit = fit_family(y, design, settings)
    rng = np.random.default_rng(0)
    before = draw_family(rng, y, design, fit, settings, m=4000)[1]
    after = draw_family(rng, y, design, refined(y, design, fit, settings), settings, m=4000)[1]
    assert _share(before) < 0.05
    assert _share(after) > 0.15


def test_other_noise_and_tables_without_rows_keep_their_fit():
    y, design = _family(40)
    for noise in ("gaussian", "laplace", "student"):
        settings = sem_settings(2, noise=noise)
        fit = fit_family(y, design, settings)
        assert refined(y, design, fit, settings) is fit
    settings = sem_settings(2, noise="mixture")
    fit = fit_family(y[:0], design[:, :0], settings)
    assert refined(y[:0], design[:, :0], fit, settings) is fit


def test_two_rows_do_not_break_a_proposal():
    y, design = _family(2)
    settings = sem_settings(2, noise="mixture")
    fit = refined(y, design, fit_family(y, design, settings), settings)
    logs = draw_family(np.random.default_rng(0), y, design, fit, settings, m=200)[1]
    assert np.isfinite(logs).mean() > 0.5
