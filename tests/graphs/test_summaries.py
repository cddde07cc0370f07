"""Probabilities of credible intervals."""

import arviz as az
import pytest

from bayesstruct.graphs.summaries import interval_probability


def test_the_default_probability_of_intervals_is_that_of_arviz():
    with az.rc_context({"stats.ci_prob": 0.73}):
        assert interval_probability() == 0.73
    assert interval_probability(0.9) == 0.9


@pytest.mark.parametrize("wrong", [0, 1, 94, "0.9", True])
def test_a_wrong_probability_is_refused_by_its_name(wrong):
    with pytest.raises(ValueError, match="`ci_prob` must be between 0 and 1"):
        interval_probability(wrong)
