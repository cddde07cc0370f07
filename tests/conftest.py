"""Fixtures that several rooms share."""

import numpy as np
import pytest


@pytest.fixture
def full(request):
    """Whether calibration was asked for by name (``-m calibration``): run the full number."""
    return request.config.getoption("-m") == "calibration"


@pytest.fixture
def rng():
    """A generator with a fixed seed."""
    return np.random.default_rng(20260101)
