"""Try the functions of ArviZ on a result of each model: `uv run python docs/arviz_table.py`.

The table that follows is the one in docs/arviz.md. Each cell is the call that works, or why there is none. With names of
models as arguments the script prints their lines only.
"""

import logging
import sys
import tempfile
import warnings

from pathlib import Path

import arviz as az
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import xarray as xr

import bayesstruct as bs

from bayesstruct.models.examples import example

DOCUMENT = Path(__file__).with_name("arviz.md")
BEGIN, END = "<!-- calls: written by docs/arviz_table.py -->", "<!-- end of calls -->"
#: Functions that judge or show draws; one call of `bs.quantities` serves all of them.
CHAINS = (
    "summary",
    "plot_trace",
    "plot_trace_dist",
    "plot_rank",
    "plot_rank_dist",
    "plot_ess",
    "plot_mcse",
    "plot_autocorr",
    "plot_forest",
    "plot_ridge",
    "plot_dist",
    "plot_convergence_dist",
    "plot_pair",
)
PREDICTIVE = ("plot_ppc_dist", "plot_ppc_pit", "plot_ppc_interval")
NO_LOO = "no: pseudo-likelihood"
NO_PIT = "no: densities of rows"
NO_CONSTANT = "no: some densities are constant"


def result(name, draws=100):
    """Sample the model of a small table, and draw what is predicted; return the whole result."""
    table, options = example(name, np.random.default_rng(1))
    model = getattr(bs.models, name)(table, **options)
    run = {"draws": draws, "tune": draws // 2, "chains": 2, "random_seed": 1}
    if name.endswith("neighbourhoods"):
        idata = bs.sample_neighbourhoods(model, **run)
    else:
        run |= {"cores": 1, "progressbar": False, "compute_convergence_checks": False}
        idata = pm.sample(**run, model=model)
    predict(idata, model)
    return idata


def predict(idata, model):
    """Extend a result by log likelihoods and predictive draws."""
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(
            idata, extend_inferencedata=True, progressbar=False, random_seed=1
        )


def judged(idata, functions=CHAINS, most=3):
    """Call the functions that judge draws."""
    draws = bs.quantities(idata, most=most)
    for name in functions:
        getattr(az, name)(draws)
        plt.close("all")


def predicted(idata, functions=PREDICTIVE):
    """Call the functions that compare predictive draws with what was observed."""
    values = bs.observed_values(idata)
    for name in functions:
        getattr(az, name)(values)
        plt.close("all")


def written_and_read(idata):
    """Write a result, and read it: the same numbers, and the same main table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "posterior.nc"
        idata.to_netcdf(path, engine="h5netcdf")
        with xr.open_datatree(path, engine="h5netcdf") as found:
            same = found.load()
    xr.testing.assert_equal(idata["posterior"].to_dataset(), same["posterior"].to_dataset())
    assert repr(bs.summary(idata)) == repr(bs.summary(same))


#: Of each column of the table: calls in the order in which they are tried.
CALLS = {
    "draws": {"`bs.quantities(idata)`": judged},
    "predictive draws": {"`bs.observed_values(idata)`": predicted},
    "`az.loo`, `az.compare`": {
        "`idata`": lambda idata: az.compare({"a": idata, "b": idata}),
        '`idata, var_name="y"`': lambda idata: az.loo(idata, var_name="y"),
    },
    "`az.plot_loo_pit`": {
        "`idata`": az.plot_loo_pit,
        '`idata, var_names="y"`': lambda idata: az.plot_loo_pit(idata, var_names="y"),
        "`bs.pointwise(idata)`": lambda idata: az.plot_loo_pit(bs.pointwise(idata)),
        '`bs.pointwise(bs.one_group(idata, "a"))`': lambda idata: az.plot_loo_pit(
            bs.pointwise(bs.one_group(idata, "a"))
        ),
    },
    "`az.plot_energy`": {"`idata`": az.plot_energy},
    "netCDF": {"`idata`": written_and_read},
}
#: What stands where no call works.
NONE = {"`az.plot_loo_pit`": NO_PIT, "`az.plot_energy`": "no: no NUTS"}


def is_composite(idata):
    """Whether the likelihood is a pseudo-likelihood."""
    return "constant_data" in idata.children and "composite_likelihood" in idata["constant_data"]


def cell(idata, column):
    """Return the first call of a column that works, or why there is none."""
    if "loo`," in column and is_composite(idata):
        return NO_LOO
    reasons = []
    for label, call in CALLS[column].items():
        try:
            call(idata)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            reasons.append(f"{label} {type(error).__name__}: {error}")
        else:
            return label
        finally:
            plt.close("all")
    if any("tail values are the same" in reason for reason in reasons):
        return NO_CONSTANT
    if column not in NONE:
        raise AssertionError(f"no call works: {'; '.join(reasons)}")
    return NONE[column]


def line(name, idata):
    """Return the line of a model."""
    return " | ".join([f"| `{name}`", *(cell(idata, column) for column in CALLS)]) + " |"


def head():
    """Return the first two lines of the table."""
    return "\n".join([" | ".join(["| model", *CALLS]) + " |", "|---" * (len(CALLS) + 1) + "|"])


def table(names):
    """Return the table of some models."""
    return "\n".join([head(), *(line(name, result(name)) for name in names)])


def main():
    """Write the table into the document, or print lines of some models."""
    warnings.simplefilter("ignore")  # of short chains
    logging.getLogger("pymc").setLevel(logging.ERROR)
    mpl.use("agg")
    if sys.argv[1:]:
        for name in sys.argv[1:]:
            sys.stdout.write(line(name, result(name)) + "\n")
            sys.stdout.flush()
        return
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    names = [record.name for record in bs.models.catalogue()]
    DOCUMENT.write_text(f"{before}{BEGIN}\n{table(names)}\n{END}{rest.split(END)[1]}", "utf-8")


if __name__ == "__main__":
    main()
