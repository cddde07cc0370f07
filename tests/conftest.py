"""Fixtures that several families share, and how their graphs are compiled."""

import os
import sys

import numpy as np
import pytest

from tools import lanes

# No C compiler, here and in processes that tests start: nothing of ours is compiled by it, and the
# graphs that PyMC interprets would otherwise wait for it, operation by operation.
os.environ["PYTENSOR_FLAGS"] = ",".join([*filter(None, [os.getenv("PYTENSOR_FLAGS")]), "cxx="])

COMPILED = {"ops", "runs"}  # chapters whose tests run machine code, as users do


def pytest_addoption(parser):
    parser.addoption(
        "--lanes-check",
        action="store_true",
        help=f"fail tests without a mark that take more than {lanes.LIMIT:g} s of processor time; run all once "
        "before, so that machine code is on disk",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Run tests of one file in this process, since workers take longer to start."""
    if lanes.asks_for_files(config) and len({name.split("::")[0] for name in config.args}) == 1:
        config.option.numprocesses = 0


def pytest_configure(config):
    """Run all tests of files that are named on the command line, not only the fast ones."""
    if hasattr(config, "workerinput"):
        config.option.markexpr = config.workerinput["markexpr"]
    elif lanes.asks_for_files(config):
        config.option.markexpr = ""
    if config.getoption("lanes_check"):
        import bayesstruct.steps  # noqa: F401  its time is that of no test


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Tell a worker which lanes are run; it reads the command line anew."""
    node.workerinput["markexpr"] = node.config.option.markexpr


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Put calibration into the statistical lane, where it runs reduced."""
    for item in items:
        if item.get_closest_marker("calibration"):
            item.add_marker("statistical")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Fail a slow test of the fast lane if that was asked for (`--lanes-check`)."""
    before = lanes.processor_seconds()
    result = yield
    seconds = lanes.processor_seconds() - before
    if item.config.getoption("lanes_check") and seconds > lanes.LIMIT and not lanes.marked(item):
        pytest.fail(f"{seconds:.1f} s of processor time without a mark of a lane", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Interpret graphs, also those of fixtures: machine code takes most of the time to make.

    Elsewhere than in those chapters, tests are marked ``compiled`` that are about machine code, or that
    evaluate graphs so often (NUTS, steps over thousands of tables) that it pays.
    """
    if item.path.parent.name in COMPILED or item.get_closest_marker("compiled"):
        return (yield)
    import pytensor

    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        return (yield)


@pytest.fixture
def full(request):
    """Whether calibration was asked for by name (``-m calibration``): run the full number."""
    return request.config.getoption("-m") == "calibration"


@pytest.fixture
def rng():
    """A generator with a fixed seed."""
    return np.random.default_rng(20260101)


@pytest.fixture(scope="session")
def assert_derivatives():
    """Comparison of the gradient of an operation with central differences."""
    from tools.derivatives import assert_derivatives

    return assert_derivatives


@pytest.fixture
def python_mode():
    """Compile without machine code, where what is tested is not how it is made."""
    import pytensor

    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        yield


@pytest.fixture(autouse=True)
def closed_figures():
    """Close the figures that a test has opened."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
