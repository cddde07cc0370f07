"""Densities and draws are tested without machine code, which takes most of the time to make."""

import pytensor
import pytest


@pytest.fixture(autouse=True)
def python_mode(request):
    """Interpret graphs, unless the test is marked ``compiled``."""
    if request.node.get_closest_marker("compiled"):
        yield
        return
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        yield
