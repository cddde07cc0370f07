"""The catalogue is the one list of models: all other lists follow from it."""

import importlib.util
import inspect
import subprocess
import sys

from pathlib import Path

import pandas as pd
import pytest

import bayesstruct as bs

from bayesstruct.models.catalogue import MODELS
from bayesstruct.models.examples import EXAMPLES, FURTHER, example, further

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def lists():
    """The script that writes the lists."""
    spec = importlib.util.spec_from_file_location("make_lists", ROOT / "docs" / "make_lists.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def python(program, *arguments):
    """What a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_the_table_of_the_readme_and_the_stub_are_current(lists):
    assert lists.README.read_text() == lists.readme(), "run: uv run python docs/make_lists.py"
    assert lists.STUB.read_text() == lists.stub(), "run: uv run python docs/make_lists.py"


def test_every_file_of_models_is_in_the_catalogue():
    files = {path.stem for path in (ROOT / "models").glob("*.py")}
    assert files - {"__init__", "catalogue", "examples", "options"} == {*MODELS}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_an_example_that_fits_each_of_its_priors(name, rng):
    for prior in MODELS[name].priors or (None,):
        table, options = example(name, rng)
        chosen = {} if prior is None else {"prior": prior}
        model = getattr(bs.models, name)(table, **options, **chosen)
        assert model.observed_RVs or model.potentials


def test_there_are_no_other_examples():
    assert [*EXAMPLES] == [*MODELS]


@pytest.mark.parametrize("name", FURTHER)
def test_further_tables_make_a_model(name, rng):
    for table, options in further(name, rng):
        assert getattr(bs.models, name)(table, **options).observed_RVs


def test_the_exports_are_those_of_the_catalogue():
    assert {*bs.models.__all__} == {*MODELS, "catalogue"}
    assert {*MODELS} <= {*dir(bs.models)}
    for name in MODELS:
        model = getattr(bs.models, name)
        assert inspect.isfunction(model)
        assert model.__name__ == name


def test_a_name_that_is_no_model_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'gaussian'"):
        bs.models.gaussian


@pytest.mark.parametrize("name", MODELS)
def test_priors_are_those_of_the_function(name):
    prior = inspect.signature(getattr(bs.models, name)).parameters.get("prior")
    assert MODELS[name].priors[:1] == (() if prior is None else (prior.default,))


@pytest.mark.parametrize("name", MODELS)
def test_the_family_is_a_package(name):
    assert (ROOT / "bayesstruct" / MODELS[name].family / "__init__.py").is_file()


def test_the_catalogue_is_data():
    table = pd.DataFrame(bs.models.catalogue())
    assert [*table.columns] == ["name", "purpose", "family", "priors", "table"]
    assert table["name"].is_unique
    assert len(table) == len(MODELS)


def test_the_catalogue_is_read_without_pymc():
    program = "import sys, bayesstruct as bs; bs.models.catalogue(); print('pymc' in sys.modules)"
    assert python(program) == "False"


IMPORTS = [
    "import bayesstruct.models.ising; model = bayesstruct.models.ising",
    "from bayesstruct.models.ising import ising as model",
    "from bayesstruct.models import ising as model",
    "import bayesstruct; model = bayesstruct.models.ising",
]
# One process imports what takes long, and forks for each of the statements.
EACH_IN_ITS_OWN_PROCESS = """
import os, sys
import numba
from pymc.step_methods import STEP_METHODS as steps
for statement in sys.argv[1:]:
    if os.fork() == 0:
        exec(statement)
        print(model.__name__, any(step.__name__ == "NetworkMCMC" for step in steps), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.chain
def test_however_a_model_is_imported_it_is_the_function_and_steps_are_registered():
    assert python(EACH_IN_ITS_OWN_PROCESS, *IMPORTS).splitlines() == ["ising True"] * len(IMPORTS)
