"""The command line, run as a user runs it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

from dataclasses import replace

import arviz as az
import networkx as nx
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
import xarray as xr

from typer.testing import CliRunner

import bayesstruct as bs

from bayesstruct.app import compile as cli_compile
from bayesstruct.app import folder as cli_folder
from bayesstruct.app import learn as cli_learn
from bayesstruct.app import report
from bayesstruct.app.cli import app
from bayesstruct.app.folder import RESULTS
from bayesstruct.app.report.correlations import check_correlations
from bayesstruct.app.report.graphs import EDGES
from bayesstruct.app.report.page import command as again
from bayesstruct.app.report.parts import Finding, with_evidence
from bayesstruct.core.jit import cache_folder
from bayesstruct.graphs.evidence import evidence
from bayesstruct.models.catalogue import MODELS, TABLES
from bayesstruct.models.options import OPTIONS
from bayesstruct.precision.reading.predictive import correlations
from bayesstruct.runs.checkpoint import iteration_of

FEW = ["--draws", "60", "--tune", "40", "--chains", "2", "--cores", "1", "--no-progress"]
# Of the bundled cells, some seconds of work: enough to be caught in the middle.
TUNE, DRAWS = 100, 5000
LONG = [f"--tune={TUNE}", f"--draws={DRAWS}", "--chains=2", "--seed=5", "--no-progress"]


def command(*words):
    """Run a command in this process."""
    return CliRunner().invoke(app, [*map(str, words)])


#: Options of a command that were not given.
PLAIN = {
    "model": "gaussian_graphical",
    "given": [],
    "draws": 20,
    "tune": 0,
    "chains": 1,
    "seed": 1,
    "missing": [],
    "states": [],
    "columns": [],
    "drop": [],
    "encoding": "utf-8",
    "cov": False,
    "log": False,
}


def numbers(n=80, p=4, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, p))
    values[:, 1] += values[:, 0]
    return pd.DataFrame(values, columns=[*"abcdefgh"[:p]])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "cells.csv"
    numbers().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    """A finished run, and what the command said."""
    folder = tmp_path_factory.mktemp("run") / "out"
    return folder, command("learn", table, "--out", folder, "--seed", 3, *FEW)


# ---- what is written -------------------------------------------------------------------------


@pytest.mark.chain
def test_all_results_are_written_and_agree(run):
    folder, result = run
    assert result.exit_code == 0, result.stderr
    written = {path.name for path in folder.iterdir()}
    files = {
        "posterior.nc",
        "edges.csv",
        "graph.graphml",
        "graph.png",
        "evidence.png",
        "predictability.csv",
        "centrality.csv",
        "centrality.png",
        "report.md",
        "report.html",
    }
    assert {*RESULTS} & written == files
    assert all(name in result.stdout for name in files)
    with xr.open_datatree(folder / "posterior.nc", engine="h5netcdf") as idata:
        assert dict(idata["posterior"]["edge"].sizes) == {"chain": 2, "draw": 60, "pair": 6}
        edges = bs.edge_table(idata)
    written = pd.read_csv(folder / "edges.csv")
    assert written["bayes_factor_shown"][0].startswith("> ")
    pd.testing.assert_frame_equal(written.drop(columns=["bayes_factor_shown", "evidence"]), edges)
    assert written["evidence"].tolist() == evidence(edges["bayes_factor"]).tolist()
    found = edges[edges["bayes_factor"] >= 10]
    graph = nx.read_graphml(folder / "graph.graphml")
    assert nx.utils.edges_equal(graph.edges, [*zip(found["source"], found["target"], strict=True)])
    assert (folder / "graph.png").read_bytes().startswith(b"\x89PNG")
    assert edges.loc[0, ["source", "target"]].tolist() == ["a", "b"]


@pytest.mark.chain
def test_a_saved_result_is_read_without_pymc(run):
    program = (
        "import sys\nimport xarray as xr\nimport bayesstruct as bs\n"
        f"idata = xr.open_datatree({str(run[0] / 'posterior.nc')!r}, engine='h5netcdf')\n"
        "bs.summary(idata), bs.edge_table(idata), bs.check(idata), bs.median_graph(idata)\n"
        "print({'pymc', 'pytensor', 'numba'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.chain
def test_the_report_says_what_was_asked_found_and_trusted(run):
    text = (run[0] / "report.md").read_text()
    for part in (
        "80 observations of 4 variables, without missing values",
        "each edge had the nominal prior probability 0.5",
        "6 possible edges",
        "| a -- b | 1.000 | > ",
        "cannot tell",  # 60 draws do not do
        "posterior predictive interval",
        "Seed 3;",
        "--seed 3 ",
        f"--resume {run[0]}",
        "Wang, H. (2015)",
        f"| {100 * az.rcParams['stats.ci_prob']:g} % interval |",
    ):
        assert part in text, part
    assert "Sachs" not in text
    factor = pd.read_csv(run[0] / "edges.csv")["bayes_factor"]
    found, excluded = (factor >= 10).sum(), (factor <= 0.1).sum()
    assert f" {excluded} excluded (at most 1/10), {6 - found - excluded} undecided" in text


@pytest.mark.chain
def test_notes_are_sentences_on_stderr(tmp_path):
    frame = numbers().assign(c=lambda f: (f["c"] > 0).astype(float))
    frame.loc[:49, "d"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = command(
        "learn",
        tmp_path / "t.csv",
        "--out",
        tmp_path / "out",
        "--model",
        "gaussian_graphical",
        "--prior",
        "laplace",
        *FEW,
    )
    assert result.exit_code == 0, result.stderr
    notes = result.stderr.splitlines()
    assert any(note.startswith("Note: More than 50% is missing in column 'd'") for note in notes)
    assert any("column 'c': binary" in note.lower() for note in notes)
    assert "Warning" not in result.stderr
    report = (tmp_path / "out" / "report.md").read_text()
    assert "50 missing values (15.6%), imputed" in report
    assert "missing in column 'd'" in report
    assert "Wang, H. (2012)" in report


@pytest.mark.chain
def test_one_is_not_many_and_boxes_are_said_once(tmp_path):
    frame = numbers().rename(columns={"a": "心", "b": "脳"})
    frame.iloc[3, 2] = -999
    frame.to_csv(tmp_path / "t.csv", index=False)
    few = [*FEW, "--chains", "1", "--tune", "1", "--missing", "-999"]
    result = command("learn", tmp_path / "t.csv", "--out", tmp_path / "out", *few)
    assert result.exit_code == 0, result.stderr
    assert "1 chain of 60 draws" in result.stdout
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "1 missing value (0.3%), imputed" in report
    assert "1 chain of 60, after 1 warm-up iteration each" in report
    boxes = [line for line in result.stderr.splitlines() if "font" in line or "Glyph" in line]
    assert boxes == [f"Note: {cli_learn._GLYPHS}"]
    with xr.open_datatree(tmp_path / "out" / "posterior.nc", engine="h5netcdf") as idata:
        found = bs.predict(idata, frame[3:4])  # the result knows the code
        pd.testing.assert_frame_equal(found, bs.predict(idata, frame[3:4].replace(-999, np.nan)))
    assert found["column"].tolist() == ["c"]


@pytest.mark.parametrize(
    ("factor", "bound", "text"),
    [
        (1e304, False, "> 1e6"),
        (1e-304, True, "< 1e-6"),
        (999_999.0, True, "> 1e6"),
        (400.0, True, "> 400"),
        (0.0025, True, "< 0.0025"),
        (1234.5, False, "1,234"),
        (0.5, False, "0.5"),
        (np.nan, False, "not tested"),
    ],
)
def test_bayes_factors_are_written_with_their_bounds(factor, bound, text):
    edges = pd.DataFrame(
        {"source": "a", "target": "b", "probability": 0.5, "bayes_factor": [factor]}
    ).assign(mean=0.1, hdi_low=0.0, hdi_high=0.2)
    edges.attrs |= {"bayes_factor_bounds": [0] * bound, "ci_prob": 0.9}
    _, rows, _ = Finding(EDGES, with_evidence(edges), 4).rows()
    assert rows[0][2] == text


def test_the_table_on_disk_marks_what_the_report_marks():
    edges = pd.DataFrame({"bayes_factor": [1e6, 400.0, 0.5], "mean": 0.1})
    edges.attrs["bayes_factor_bounds"] = [1]
    written = with_evidence(edges)
    assert list(written) == ["bayes_factor", "bayes_factor_shown", "evidence", "mean"]
    assert written["evidence"].tolist() == ["included", "included", "undecided"]
    assert written["bayes_factor_shown"].tolist() == ["> 1e6", "> 400", "0.5"]


@pytest.mark.chain
def test_the_report_explains_edges_that_were_not_tested(run, tmp_path):
    folder, _ = run
    job = cli_folder.read(folder)
    with xr.open_datatree(folder / "posterior.nc", engine="h5netcdf") as stored:
        idata = stored.load()
    assert "not tested" not in (folder / "report.md").read_text()
    idata["constant_data"]["edge_prior"].values[0] = 1.0
    report.write(tmp_path, job, idata)
    text = (tmp_path / "report.md").read_text()
    assert "1 fixed beforehand" in text
    assert (
        "*not tested* (`bayes_factor` is empty in `edges.csv`): the edge was required or forbidden"
        in text
    )


@pytest.mark.chain
def test_without_a_table_the_bundled_cells_are_used_as_logarithms(tmp_path):
    result = command("learn", "--out", tmp_path / "out", *FEW)
    assert result.exit_code == 0, result.stderr
    assert "sachs (bundled): 853 observations x 11 variables, logarithms" in result.stdout
    with np.load(tmp_path / "out" / "table.npz", allow_pickle=False) as stored:
        np.testing.assert_array_equal(stored["values"], np.log(bs.load_dataset("sachs")))
    assert "Causal protein-signaling" in (tmp_path / "out" / "report.md").read_text()


def test_all_models_are_listed_with_their_tables():
    result = command("models")
    assert result.exit_code == 0
    assert all(model.name in result.stdout for model in bs.models.catalogue())
    assert all(table in result.stdout for table in TABLES)


@pytest.mark.parametrize("words", [["models", "ising"], ["learn", "--model", "ising", "--help"]])
def test_the_options_of_one_model_are_shown(words):
    result = command(*words)
    assert result.exit_code == 0
    assert all(option.flag in result.stdout for option in OPTIONS["ising"])
    assert "--max-parents" not in result.stdout


def test_help_names_the_way_to_the_options_of_models():
    assert "bayesstruct learn --model NAME --help" in command("learn", "--help").stdout


def test_compile_says_how_long_each_model_took_and_where_its_code_is(monkeypatch):
    monkeypatch.setattr(cli_compile, "compile_model", lambda name: 2.5)
    result = command("compile", "ising", "dp_glm", "ising")
    assert result.exit_code == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[:2] == [["ising", "2.5", "s"], ["dp_glm", "2.5", "s"]]
    assert [line[3:] for line in lines[2:]] == [
        ["Numba:", str(cache_folder())],
        ["PyTensor:", str(pytensor.config.base_compiledir)],
    ]
    everything = command("compile").stdout
    assert [*MODELS] == [line.split()[0] for line in everything.splitlines()[:-2]]


def test_compile_names_a_folder_that_cannot_be_written_to(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        monkeypatch.setattr("numba.config.CACHE_DIR", str(folder))
        result = command("compile", "ising")
        assert_one_line(result, f"{folder} cannot be written to", status=2)


def test_compile_goes_on_after_a_model_that_fails(monkeypatch):
    def fail(name):
        if name == "ising":
            raise RuntimeError("no compiler")
        return 1.0

    monkeypatch.setattr(cli_compile, "compile_model", fail)
    result = command("compile", "ising", "dp_glm")
    assert_one_line(result, "ising: RuntimeError: no compiler", status=1)
    assert "dp_glm" in result.stdout


@pytest.mark.chain
def test_compile_makes_all_first_calls_of_a_model_with_each_prior(monkeypatch, caplog):
    called, fast = [], []

    def noted(name, function):
        def call(*args, **kwargs):
            called.append(name)
            fast.append(bool(pytensor.config.numba__fastmath))
            return function(*args, **kwargs)

        return call

    for name in ("sample", "sample_posterior_predictive", "compute_log_likelihood"):
        monkeypatch.setattr(pm, name, noted(name, getattr(pm, name)))
    two = replace(MODELS["gaussian_graphical"], priors=("laplace", "pseudo_likelihood"))
    monkeypatch.setitem(cli_compile.MODELS, "gaussian_graphical", two)
    result = command("compile", "gaussian_graphical", "--no-progress")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    first = ["sample", "sample_posterior_predictive", "compute_log_likelihood"]
    # As in Python and as the command line does; graphs alone, the last prior, have no predictive rows.
    assert called == [*first * 2, *["sample", "compute_log_likelihood"] * 2]
    assert fast == [True] * 3 + [False] * 3 + [True] * 2 + [False] * 2
    assert not caplog.records


def test_compile_knows_its_models():
    assert_one_line(command("compile", "isnig"), "unknown model", "'ising'", "There are: gaussian")


def test_an_encoding_without_a_table_is_refused():
    assert_one_line(command("learn", "--encoding", "latin-1"), "--encoding", "give its file")


def test_version():
    assert command("--version").stdout == f"bayesstruct {bs.__version__}\n"


# ---- nothing is lost -------------------------------------------------------------------------


@pytest.mark.chain
def test_effects_can_be_asked_for_afterwards(table, tmp_path):
    words = ["learn", table, "--model", "bayesian_network", "--out", tmp_path, "--seed=1", *FEW]
    assert command(*words).exit_code == 0
    assert not (tmp_path / "effects.csv").exists()
    again = command(*words, "--effects")
    assert again.exit_code == 0, again.stderr
    assert "its draws are used again" in again.stderr
    effects = (tmp_path / "effects.csv").read_bytes()
    (tmp_path / "effects.csv").unlink()
    resumed = command("learn", "--resume", tmp_path, "--no-progress")
    assert resumed.exit_code == 0, resumed.stderr
    assert (tmp_path / "effects.csv").read_bytes() == effects
    assert "--effects" in (tmp_path / "report.md").read_text()
    refused = command("learn", "--resume", tmp_path, "--effects")
    assert_one_line(refused, "leave out --effects")
    one = command("learn", table, "--effects", "--out", tmp_path / "new", "--seed=1", *FEW)
    assert "Running --model bayesian_network" in one.stdout


@pytest.mark.chain
def test_ranks_are_checked_against_replicated_tables(table, tmp_path):
    words = ("--model", "gaussian_graphical", "--marginals", "rank", "--out", tmp_path)
    result = command("learn", table, *words, "--seed=1", *FEW)
    assert result.exit_code == 0, result.stderr
    assert "6 of 6 observed correlations" in result.stdout
    assert (tmp_path / "fit.png").exists()


@pytest.mark.chain
def test_a_finished_run_is_used_again(run, table):
    folder, _ = run
    (folder / "report.md").unlink()
    before = (folder / "edges.csv").read_bytes()
    result = command("learn", table, "--out", folder, *FEW)
    assert result.exit_code == 0, result.stderr
    assert "its draws are used again" in result.stderr
    assert (folder / "report.md").exists()
    assert (folder / "edges.csv").read_bytes() == before


@pytest.mark.chain
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--prior", "laplace"], "prior spike_slab there, laplace here"),
        (["--seed", "4"], "seed 3 there, 4 here"),
        (["--log"], "has no logarithm"),
    ],
)
def test_another_run_is_not_overwritten(run, table, words, says):
    folder, _ = run
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    result = command("learn", table, "--out", folder, *FEW, *words)
    assert_one_line(result, says)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.chain
def test_a_run_of_another_table_is_not_taken_for_this_one(run, tmp_path):
    folder, _ = run
    numbers(seed=1).to_csv(tmp_path / "other.csv", index=False)
    result = command("learn", tmp_path / "other.csv", "--out", folder, "--seed", 3, *FEW)
    assert_one_line(result, f"{folder} holds another run")


@pytest.mark.chain
def test_overwrite_deletes_the_run_and_nothing_else(table, tmp_path):
    command("learn", table, "--out", tmp_path, *FEW)
    (tmp_path / "mine.txt").write_text("keep")
    result = command("learn", table, "--out", tmp_path, "--overwrite", "--prior", "laplace", *FEW)
    assert result.exit_code == 0, result.stderr
    assert json.loads((tmp_path / "settings.json").read_text())["model_options"] == {
        "prior": "laplace"
    }
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_files_of_others_are_not_overwritten(table, tmp_path):
    (tmp_path / "edges.csv").write_text("mine")
    assert_one_line(command("learn", table, "--out", tmp_path, *FEW), "edges.csv", "--out")
    assert (tmp_path / "edges.csv").read_text() == "mine"


@pytest.mark.chain
def test_resume_takes_no_other_settings(run, table):
    result = command("learn", table, "--resume", run[0], "--draws", 50)
    assert_one_line(result, "leave out", "the table", "--draws")


def test_resume_needs_a_run(tmp_path):
    assert_one_line(command("learn", "--resume", tmp_path), "holds no run to continue")


@pytest.mark.chain
def test_a_damaged_run_is_refused(run, tmp_path):
    for name in ("settings.json", "table.npz"):
        (tmp_path / name).write_bytes((run[0] / name).read_bytes()[:-40])
    assert_one_line(command("learn", "--resume", tmp_path), "cannot be read")


@contextlib.contextmanager
def running(folder):
    """Start a long run as the leader of its own process group; yield it once draws are on disk."""
    words = [sys.executable, "-m", "bayesstruct", "learn", "--out", folder, *LONG]
    # Graphs are compiled there as they are here: what is continued must agree to the last bit.
    flags = f"{os.environ['PYTENSOR_FLAGS']},mode={pytensor.config.mode}"
    process = subprocess.Popen(
        [*map(str, words)],
        env=os.environ | {"PYTENSOR_FLAGS": flags},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 300
        while process.poll() is None and time.monotonic() < deadline:
            done = [iteration_of(folder / "run", chain)[0] for chain in (0, 1)]
            if min(done) > TUNE:
                break
            time.sleep(0.02)
        assert process.poll() is None and max(done) < TUNE + DRAWS, "not caught in the middle"
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def draws_in(folder):
    with xr.open_datatree(folder / "posterior.nc", engine="h5netcdf") as idata:
        return idata["posterior"].to_dataset().load()


@pytest.mark.chain
def test_a_killed_run_continues_bit_for_bit(tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    with running(killed) as process:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not (killed / "report.md").exists()
    assert_one_line(command("learn", "--out", killed, *LONG), f"add --resume {killed}")
    for words in (["--resume", killed, "--no-progress"], ["--out", whole, *LONG]):
        result = command("learn", *words)
        assert result.exit_code == 0, result.stderr
    resumed, uninterrupted = draws_in(killed), draws_in(whole)
    assert {*resumed.data_vars} == {"mean", "precision", "edge", "weight"}
    for name, values in uninterrupted.data_vars.items():
        # Bit for bit, not allclose.
        np.testing.assert_array_equal(resumed[name].values, values.values, err_msg=name)


@pytest.mark.chain
@pytest.mark.compiled
def test_ctrl_c_writes_what_there_is(tmp_path):
    with running(tmp_path / "out") as process:
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    assert f"bayesstruct learn --resume {tmp_path / 'out'}" in errors
    assert "Traceback" not in errors
    assert "Interrupted before its end" in (tmp_path / "out" / "report.md").read_text()
    assert 0 < draws_in(tmp_path / "out").sizes["draw"] < DRAWS


@pytest.mark.chain
@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (KeyboardInterrupt("stopped at 3 of 100 warm-up iterations"), 130, "stopped at 3"),
        (OSError(28, "No space left on device"), 1, "No space left"),
        (MemoryError(), 1, "MemoryError"),
        (pm.exceptions.SamplingError("Chain 1 failed"), 1, "Chain 1 failed"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_ends_are_one_line_with_the_way_on(error, status, says, table, tmp_path, monkeypatch):
    def fail(*args):
        raise error

    monkeypatch.setattr(cli_learn, "_sample", fail)
    result = command("learn", table, "--out", tmp_path / "out", *FEW)
    resume = f"bayesstruct learn --resume {tmp_path / 'out'}"
    assert_one_line(result, says, resume, status=status)


# ---- bad input -------------------------------------------------------------------------------


def assert_one_line(result, *parts, status=2):
    assert result.exit_code == status, (result.output, result.exception)
    lines = result.stderr.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("Error: ")
    for part in parts:
        assert part.lower() in lines[0].lower(), (part, lines[0])


def csv(**columns):
    return numbers().assign(**columns).to_csv(index=False).encode()


BAD_TABLES = {
    "NaN column": (csv(b=np.nan), "column 'b'", "all values are missing", "remove"),
    "constant": (csv(b=7.0), "column 'b'", "constant", "remove"),
    "duplicate": (csv(d=lambda f: f["a"]), "'a' and 'd'", "duplicates", "keep one"),
    "strings": (csv(c="low"), "column 'c'", "text (for example 'low')", "--drop c"),
    "words": (
        csv(c=[*"-.?*", *range(76)]),
        "'c' ('*', '-', '.' and '?')",
        "--missing '*' --missing - --missing . --missing '?'",
    ),
    "SPSS": (csv(c=["#NULL!", *range(79)]), "'c' ('#NULL!')", "--missing '#NULL!'"),
    "dates": (csv(c=["2020-01-01", "2020-02-01"] * 40), "column 'c' holds dates", "days since"),
    "complex": (csv(c="1+2j"), "column 'c'", "1+2j", "leave"),
    "infinite": (csv(a=np.inf), "column 'a'", "infinite", "NaN"),
    "several": (csv(b=7.0, c=np.nan), "column 'b'", "column 'c'", "; "),
    "one row": (b"a,b\n1,2\n", "1 row", "add rows"),
    "one column": (b"a\n1\n2\n3\n", "at least 2 columns"),
    "header only": (b"a,b\n", "header line only", "at least 2 rows"),
    "empty": (b"", "is empty", "Export it again"),
    "blank": (b"\n\n", "is empty", "Export it again"),
    "same names": (b"a,a\n1,2\n3,5\n", "column 'a'", "more than once", "rename"),
    "ragged": (b"a,b\n1,2\n3,4,5,6\n", "line 3", "quote fields"),
    "not UTF-8": ("a,größe\n1,2\n3,5\n".encode("latin-1"), "not utf-8", "--encoding latin-1"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_are_refused_in_one_line(case, tmp_path):
    content, *parts = BAD_TABLES[case]
    (tmp_path / "bad.csv").write_bytes(content)
    words = ["--model", "gaussian_graphical", "--out", tmp_path / "out"]
    result = command("learn", tmp_path / "bad.csv", *words, *FEW)
    assert_one_line(result, *parts)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--model", "gaussian_grafical"], ["did you mean 'gaussian_graphical'?"]),
        (["--prior", "spikeslab"], ["unknown prior 'spikeslab'", "did you mean 'spike_slab'?"]),
        (["--draws", "0"], ["--draws", "20"]),
        (["--draws", "many"], ["--draws", "integer"]),
        (["--tune", "-1"], ["--tune", "0"]),
        (["--chains", "0"], ["--chains", "1"]),
        (["--cores", "0"], ["--cores", "1"]),
        (["--seed", "-1"], ["--seed", "0"]),
        (["--edge-probability", "1.5"], ["--edge-probability", "between 0 and 1"]),
        (["--edge-probability", "nan"], ["--edge-probability", "between 0 and 1"]),
        (
            ["--edge-probability", "0.2", "--prior", "laplace"],
            ["--edge-probability goes with --prior spike_slab"],
        ),
        (["--rate", "-1", "--prior", "laplace"], ["--rate must be above 0"]),
        (["--rate", "2"], ["--rate goes with --prior laplace"]),
        (["--encoding", "klingon"], ["no encoding 'klingon'", "utf-8"]),
        (["--log"], ["has no logarithm", "leave out --log"]),
        (["--priro", "laplace"], ["--priro"]),
        (["second.csv"], ["second.csv"]),
    ],
    ids=" ".join,
)
def test_bad_options_are_refused_in_one_line(words, parts, table, tmp_path):
    if "--model" not in words:
        words = ["--model", "gaussian_graphical", *words]
    result = command("learn", table, "--out", tmp_path / "out", *FEW, *words)
    assert_one_line(result, *parts)


def test_codes_for_missing_values_are_named(tmp_path):
    frame = numbers()
    frame.loc[:5, "a"], frame.loc[7:9, "b"] = -999, 99
    frame.to_csv(tmp_path / "coded.csv", index=False)
    options = {**PLAIN, "log": False, "missing": []}
    cli_learn.begin(tmp_path / "as it is", tmp_path / "coded.csv", options, overwrite=False)
    [note] = cli_folder.read(tmp_path / "as it is").options["notes"]
    assert "'a' (-999), 'b' (99)" in note
    assert note.endswith("--missing a=-999 --missing b=99")
    options["missing"] = ["-999", "99"]
    cli_learn.begin(tmp_path / "named", tmp_path / "coded.csv", options, overwrite=False)
    job = cli_folder.read(tmp_path / "named")
    pd.testing.assert_frame_equal(job.frame, frame.replace([-999, 99], np.nan))
    assert job.options["notes"] == []
    assert "--missing -999 --missing 99" in again(job.options)


@pytest.mark.parametrize("missing", [["a=-999", "b=99"], ["-999", "b=99"]])
def test_codes_of_a_column_are_measurements_of_another(missing, tmp_path):
    frame = numbers() + 99
    frame.loc[:5, "a"], frame.loc[7:9, "b"], frame.loc[4, "a"] = -999, 99, 99
    frame.to_csv(tmp_path / "coded.csv", index=False)
    options = {**PLAIN, "log": False, "missing": missing}
    cli_learn.begin(tmp_path / "named", tmp_path / "coded.csv", options, overwrite=False)
    kept = cli_folder.read(tmp_path / "named").frame
    right = frame.replace({"a": {-999: np.nan}, "b": {99: np.nan}})
    pd.testing.assert_frame_equal(kept, right)
    assert kept["a"].isna().sum() == 5
    words = again(options | {"source": "t"})
    assert all(f"--missing {own}" in words for own in missing)


def test_codes_follow_their_option_on_the_command_line(tmp_path):
    (tmp_path / "bad.csv").write_text("a,b\n1,-999\n2,-999\n3,-999\n")
    result = command("learn", tmp_path / "bad.csv", "--missing", "-999", "--out", tmp_path / "out")
    assert_one_line(result, "column 'b'", "all values are missing")


def test_remarks_are_about_the_logarithms(tmp_path):
    np.exp(3 * numbers()).to_csv(tmp_path / "skewed.csv", index=False)
    for log, notes in ((False, 1), (True, 0)):
        options = {**PLAIN, "log": log, "missing": []}
        cli_learn.begin(tmp_path / str(log), tmp_path / "skewed.csv", options, overwrite=False)
        assert len(cli_folder.read(tmp_path / str(log)).options["notes"]) == notes


def test_codes_are_looked_for_before_the_logarithms(tmp_path):
    frame = np.exp(0.3 * numbers())
    frame.loc[:4, "a"] = 999
    frame.to_csv(tmp_path / "coded.csv", index=False)
    options = {**PLAIN, "log": True, "missing": []}
    cli_learn.begin(tmp_path / "out", tmp_path / "coded.csv", options, overwrite=False)
    notes = cli_folder.read(tmp_path / "out").options["notes"]
    assert "'a' (999)" in notes[0] and notes[0].endswith("--missing a=999")


def test_a_missing_file_is_answered_with_the_nearest(table, tmp_path):
    result = command("learn", table.with_name("cell.csv"), "--out", tmp_path / "out")
    assert_one_line(result, "does not exist", "Did you mean 'cells.csv'?")


def test_an_end_in_common_does_not_make_files_near(table, tmp_path):
    for name in ("x.csv", "Cells_2024.csv", "report.md"):
        (tmp_path / name).touch()
    far = command("learn", tmp_path / "y.csv", "--out", tmp_path / "out")
    assert_one_line(far, "y.csv does not exist", "Check the name")
    near = command("learn", tmp_path / "cells2024.tsv", "--out", tmp_path / "out")
    assert_one_line(near, "Did you mean 'Cells_2024.csv'?")


def test_without_arguments_the_help_is_shown():
    result = command()
    assert result.exit_code == 2
    assert "Usage: bayesstruct" in result.output or "Usage: root" in result.output
    assert "learn" in result.output
    assert "Error" not in result.output


def test_an_unknown_command_is_one_line():
    assert_one_line(command("lern"), "lern")


def test_a_file_cannot_be_the_folder(table):
    assert_one_line(command("learn", table, "--out", table, *FEW), "is a file")


# ---- the predictive check of the report ------------------------------------------------------


def test_correlations_are_those_of_pandas_where_cells_are_missing():
    frame = numbers()
    frame = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.2)
    # Both are exact up to rounding.
    np.testing.assert_allclose(correlations(frame.to_numpy()), frame.corr(), rtol=1e-10)


def test_the_predictive_check_tells_a_right_model_from_a_wrong_one():
    frame = numbers(n=400)
    precision = np.linalg.inv(frame.cov().to_numpy())
    scale = np.sqrt(np.diag(precision))
    upper = np.triu_indices(4, 1)
    right = np.tile((-precision / np.outer(scale, scale))[upper], (200, 1))
    assert check_correlations(frame, right, random_seed=0).inside == 6
    wrong = check_correlations(frame, np.zeros_like(right), random_seed=0)
    assert wrong.outside[0][:2] == ("a", "b")
    assert "of 6 observed correlations" in str(wrong)
