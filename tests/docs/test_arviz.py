"""The calls that docs/arviz.md names work on a result of each family; in the slow lane of each model."""

import importlib.util

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import pytest
import xarray as xr

import bayesstruct as bs

from bayesstruct.models.catalogue import MODELS
from bayesstruct.models.examples import example

ROOT = Path(__file__).parents[2]
#: A model of each family, and the options with which its likelihood is one of rows.
FAMILIES = {
    "gaussian_graphical": {},
    "ising": {"likelihood": "exact"},
    "bayesian_network": {},
    "link_prediction": {},
    "markov_transitions": {"alpha": 6.0},  # few draws of series without behaviours
    "dp_glm": {},
}
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*encountered in scalar divide:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto:UserWarning"),
    pytest.mark.filterwarnings("ignore:(?s).*look (discrete|binary):UserWarning"),
]


@pytest.fixture(scope="module")
def script():
    """The script that writes the table of calls."""
    spec = importlib.util.spec_from_file_location("arviz_table", ROOT / "docs" / "arviz_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def documented(name, script):
    """The cells of the document for a model, by column."""
    text = script.DOCUMENT.read_text(encoding="utf-8")
    lines = text.split(script.BEGIN)[1].split(script.END)[0].splitlines()
    (line,) = [line for line in lines if line.startswith(f"| `{name}` |")]
    return dict(zip(script.CALLS, line.strip("| ").split(" | ")[1:], strict=True))


def prior_as_posterior(name, script, **options):
    """A result with the variables and dimensions of a posterior, without the time that sampling one takes."""
    table, needed = example(name, np.random.default_rng(1))
    model = getattr(bs.models, name)(table, **needed, **options)
    with model:
        idata = pm.sample_prior_predictive(90, random_seed=1)
    # Series of a draw without behaviours are NaN, which no posterior of observed ones has.
    whole = np.ones(90, bool)
    for values in idata["prior_predictive"].data_vars.values():
        whole &= np.isfinite(values.values[0].reshape(90, -1)).all(axis=1)
    draws = idata["prior"].to_dataset().isel(chain=0, draw=np.flatnonzero(whole)[:60])
    parts = [draws.isel(draw=slice(c, None, 2)).assign_coords(draw=range(30)) for c in range(2)]
    posterior = xr.concat(parts, "chain", join="outer").assign_coords(chain=[0, 1])
    groups = {g: idata[g].to_dataset() for g in ("observed_data", "constant_data") if g in idata}
    tree = xr.DataTree.from_dict({"posterior": posterior, **groups})
    script.predict(tree, model)
    return tree


def test_the_document_has_a_line_for_each_model(script):
    reasons = {*script.NONE.values(), script.NO_LOO, script.NO_CONSTANT}
    for name in MODELS:
        cells = documented(name, script)
        assert all(cell in {*script.CALLS[c], *reasons} for c, cell in cells.items())


@pytest.mark.chain
@pytest.mark.parametrize("name", FAMILIES)
def test_documented_calls_work_on_a_result_of_each_family(name, script):
    idata = prior_as_posterior(name, script, **FAMILIES[name])
    cells = documented(name, script)
    script.judged(idata, ("summary", "plot_rank"), 2)
    script.predicted(idata, ("plot_ppc_dist",))
    for column in ("`az.loo`, `az.compare`", "`az.plot_loo_pit`"):
        calls = script.CALLS[column]
        if not cells[column].startswith("no"):
            calls[cells[column]](idata)
        plt.close("all")
    assert bs.quantities(idata, most=2)["posterior"].sizes["draw"] == 30


@pytest.mark.slow
@pytest.mark.chain
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_the_table_of_calls_is_current(name, script):
    idata = script.result(name)
    found = {column: script.cell(idata, column) for column in script.CALLS}
    assert found == documented(name, script)
