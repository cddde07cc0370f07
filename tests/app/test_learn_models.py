"""Every kind of table goes from a file to its results, and each model is the one that Python would have made."""

import networkx as nx
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from typer.testing import CliRunner

import bayesstruct as bs

from bayesstruct.app import folder as cli_folder
from bayesstruct.app import learn as cli_learn
from bayesstruct.app.build import build
from bayesstruct.app.cli import app
from bayesstruct.models.catalogue import MODELS
from bayesstruct.models.examples import example
from bayesstruct.runs.fingerprint import describe_model, differences

FEW = ["--draws=20", "--tune=10", "--chains=1", "--cores=1", "--no-progress", "--seed=1"]


def command(*words):
    return CliRunner().invoke(app, [*map(str, words)])


def file_of(name, folder):
    """Write the example of a model to a file; return the words of the command, and what Python passes to the model."""
    table, options = example(name, np.random.default_rng(1))
    words = [f"--{key}={value}" for key, value in options.items() if isinstance(value, str)]
    frame = table
    if name == "markov_transitions":
        parts = [
            pd.DataFrame(own, columns=[*"uv"]).assign(who=f"s{i}") for i, own in enumerate(table)
        ]
        table, options, words = pd.concat(parts), {"series": "who"}, ["--series=who"]
        frame = table
    elif name == "grouped_gaussian_graphical":
        frame, words = table.assign(sex=options["group"]), ["--group=sex"]
        table, options = frame, {"group": "sex"}
    elif name == "blockwise_gaussian_graphical":
        words = ["--blocks=x=a,b;y=c,d,e"]
        options = {"blocks": {"x": [*"ab"], "y": [*"cde"]}}
    elif isinstance(table, np.ndarray):
        names = [f"o{i}" for i in range(len(table))]
        table = pd.DataFrame(table, index=names, columns=names)
        frame = table.rename_axis("object").reset_index()
    path = folder / f"{name}.csv"
    frame.to_csv(path, index=False)
    return [path, "--model", name, *words], table, options


def job_of(words, folder, monkeypatch):
    """Begin a run and stop before the first draw; return what is in its folder."""

    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_learn, "_sample", stop)
    result = command("learn", *words, "--out", folder, *FEW)
    assert result.exit_code == 130, (result.output, result.exception)
    return cli_folder.read(folder)


def assert_same_model(one, other):
    """Compare two models: formulas, data and coordinates."""
    assert differences(describe_model(one), describe_model(other)) == []
    for name, values in other.coords.items():
        assert list(one.coords[name] or ()) == list(values or ()), name


@pytest.mark.chain
@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_that_of_python(name, tmp_path, monkeypatch):
    words, table, options = file_of(name, tmp_path)
    job = job_of(words, tmp_path / "out", monkeypatch)
    assert job.options["model"] == name
    if MODELS[name].priors:
        assert job.options["model_options"]["prior"] == MODELS[name].priors[0]
    right = getattr(bs.models, name)(
        table.reset_index(drop=True) if "sex" in table else table, **options
    )
    assert_same_model(build(job), right)


@pytest.mark.chain
def test_a_prior_for_many_columns_is_named(tmp_path, monkeypatch):
    pd.DataFrame(np.random.default_rng(3).normal(size=(9, 150))).add_prefix("g").to_csv(
        tmp_path / "t.csv", index=False
    )
    words = [tmp_path / "t.csv", "--model", "gaussian_graphical"]
    named = "--prior pseudo_likelihood --edge-probability 0.013 draws the graph alone"
    for prior, number in ((["--prior=laplace"], 0), ([], 1)):
        notes = job_of([*words, *prior], tmp_path / f"out{number}", monkeypatch).options["notes"]
        assert sum(named in note for note in notes) == number


N = 60
RNG = np.random.default_rng(2)
NUMBERS = pd.DataFrame(RNG.normal(size=(N, 4)), columns=[*"abcd"]).round(6)
SIZES = pd.DataFrame(RNG.choice(["small", "medium", "large"], (N, 3)), columns=[*"uvw"])
WORDS = pd.DataFrame(RNG.choice(["no", "yes"], (N, 3)), columns=[*"uvw"])
ORDER = pd.CategoricalDtype(["small", "medium", "large"], ordered=True)
LINES = pd.DataFrame({"source": [*"abca"], "target": [*"bcde"]})
GRAPH = nx.Graph([*LINES.itertuples(index=False)])
CODED = NUMBERS.where(RNG.random(NUMBERS.shape) < 0.9, -999.0)
TARGET = ["a", "none", "b", ""] * (N // 4)
WAS_SET = pd.DataFrame({name: [t == name for t in TARGET] for name in NUMBERS})
COUNTED = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "count": [20, 5, 4, 30]})


def by_blocks():
    return bs.StochasticBlock()


OPTIONS_GIVEN = {
    "columns": ("gaussian_graphical", NUMBERS, "--columns c,a,b", lambda f: (f[[*"cab"]], {})),
    "drop": ("gaussian_graphical", NUMBERS, "--drop b", lambda f: (f.drop(columns="b"), {})),
    "logarithms": ("gaussian_graphical", np.exp(NUMBERS), "--log", lambda f: (np.log(f), {})),
    "required": ("gaussian_graphical", NUMBERS, "--required a,b --forbidden c,d --forbidden a,c", lambda f: (f, {"required": [("a", "b")], "forbidden": [("c", "d"), ("a", "c")]})),
    "learned probability": ("gaussian_graphical", NUMBERS, "--edge-probability beta:1,4", lambda f: (f, {"edge_probability": pm.Beta.dist(1, 4)})),
    "unknown blocks of edges": ("gaussian_graphical", NUMBERS, "--prior g_wishart --edge-probability blocks", lambda f: (f, {"prior": "g_wishart", "edge_probability": by_blocks()})),
    "learned rate": ("gaussian_graphical", NUMBERS, "--prior laplace --rate gamma:1,.1", lambda f: (f, {"prior": "laplace", "rate": pm.Gamma.dist(1.0, 0.1)})),
    "units": ("gaussian_graphical", NUMBERS, "--standardize no", lambda f: (f, {"standardize": False})),
    "covariates": ("gaussian_graphical", NUMBERS, "--covariates d", lambda f: (f.drop(columns="d"), {"covariates": f[["d"]]})),
    "codes": ("gaussian_graphical", CODED, "--missing -999", lambda f: (f.replace(-999, np.nan), {})),
    "covariances": ("gaussian_graphical", NUMBERS.cov().rename_axis("v").reset_index(), "--cov --n 60", lambda f: (None, {"cov": f.set_index("v"), "n": 60})),
    "mixed": ("gaussian_graphical", NUMBERS.join(SIZES[[*"vw"]]), "--marginals mixed --states v=small<medium<large --states w=large,medium,small", lambda f: (f.assign(v=f["v"].astype(ORDER), w=pd.Categorical(f["w"], ["large", "medium", "small"])), {"marginals": "mixed"})),
    "ordered states": ("pairwise_mrf", SIZES, "--potentials ordinal --states small<medium<large", lambda f: (f.astype(ORDER), {"potentials": "ordinal"})),
    "norm": ("pairwise_mrf", SIZES, "--prior group_laplace --norm inf", lambda f: (f, {"prior": "group_laplace", "norm": np.inf})),
    "groups": ("ising", WORDS.assign(g=["x", "y", "y"] * (N // 3)), "--group g", lambda f: (f, {"group": "g"})),
    "groups and states": ("ising", WORDS.assign(g=["x", "y", "y"] * (N // 3)), "--group g --states yes<no", lambda f: (f, {"group": "g", "states": {name: ["yes", "no"] for name in "uvw"}})),
    "counted rows": ("ising", COUNTED, "--row-counts count", lambda f: (f, {"row_counts": "count"})),
    "reversed states": ("ising", WORDS, "--states yes<no", lambda f: (f, {"states": ["yes", "no"]})),
    "known graph": ("ising", WORDS, "--graph u,v --likelihood exact --prior laplace", lambda f: (f, {"graph": [("u", "v")], "likelihood": "exact", "prior": "laplace"})),
    "tiers": ("bayesian_network", NUMBERS, "--tiers a,b;c,d --max-parents 2", lambda f: (f, {"tiers": [[*"ab"], [*"cd"]], "max_parents": 2})),
    "discrete network": ("bayesian_network", SIZES, "--score bdeu --required u,v", lambda f: (f, {"score": "bdeu", "required": [("u", "v")]})),
    "target": ("network_classifier", SIZES, "--target v --score fcll --pseudo-count 1", lambda f: (f, {"target": "v", "score": "fcll", "pseudo_count": 1.0})),
    "interventions": ("bayesian_network", NUMBERS.assign(target=TARGET), "--interventions target", lambda f: (f.drop(columns="target"), {"interventions": WAS_SET})),
    "noise": ("gaussian_neighbourhoods", NUMBERS, "--noise-prior 3,2 --inclusion beta:1,9", lambda f: (f, {"noise_prior": (3, 2), "inclusion": pm.Beta.dist(1.0, 9.0)})),
    "grid": ("locally_constant_gaussian_graphical", NUMBERS, "--neighbours 2x2", lambda f: (f, {"neighbours": (2, 2)})),
    "listed links": ("link_prediction", LINES, "--unobserved a,c", lambda f: (nx.to_pandas_adjacency(GRAPH, nodelist=[*"abcde"]), {"unobserved": [("a", "c")]})),
    "directed links": ("link_prediction", LINES, "--directed yes", lambda f: (nx.to_pandas_adjacency(nx.DiGraph([*f.itertuples(index=False)]), nodelist=[*"abcde"]), {"directed": True})),
    "named ratings": ("binary_matrix_factorization", NUMBERS.assign(who=[f"p{i}" for i in range(N)])[["who", *"abcd"]], "", lambda f: (f.set_index("who"), {})),
    "truth values": ("gaussian_graphical", NUMBERS.assign(d=NUMBERS["a"] > NUMBERS["b"]), "--marginals rank", lambda f: (f, {"marginals": "rank"})),
    "one series": ("markov_transitions", NUMBERS, "", lambda f: ([f], {})),
}  # fmt: skip


@pytest.mark.chain
@pytest.mark.parametrize("case", OPTIONS_GIVEN)
def test_options_are_arguments(case, tmp_path, monkeypatch):
    name, frame, words, python = OPTIONS_GIVEN[case]
    frame.to_csv(tmp_path / "table.csv", index=False)
    call = [tmp_path / "table.csv", "--model", name, *words.split()]
    job = job_of(call, tmp_path / "out", monkeypatch)
    table, options = python(pd.read_csv(tmp_path / "table.csv"))
    function = getattr(bs.models, name)
    right = function(**options) if table is None else function(table, **options)
    if case == "codes":
        right = function(pd.read_csv(tmp_path / "table.csv"), missing_codes=-999)
    assert_same_model(build(job), right)


@pytest.mark.chain
def test_the_comparison_notices_another_model():
    one, other = (bs.models.ising(WORDS, edge_probability=p) for p in (0.5, 0.4))
    with pytest.raises(AssertionError):
        assert_same_model(one, other)


@pytest.mark.chain
@pytest.mark.parametrize(
    "name",
    ["ising", "link_prediction", pytest.param("markov_transitions", marks=pytest.mark.slow)],
)
def test_a_run_writes_its_results_and_is_continued(name, tmp_path):
    words, *_ = file_of(name, tmp_path)
    result = command("learn", *words, "--out", tmp_path / "out", *FEW)
    assert result.exit_code == 0, (result.output, result.exception)
    with xr.open_datatree(tmp_path / "out" / "posterior.nc", engine="h5netcdf") as idata:
        assert dict(idata["posterior"].sizes)["draw"] == 20
        assert len(bs.summary(idata).table)
    (tmp_path / "out" / "posterior.nc").unlink()
    again = command("learn", "--resume", tmp_path / "out", "--no-progress", "--cores=1")
    assert again.exit_code == 0, (again.output, again.exception)
    assert (tmp_path / "out" / "posterior.nc").exists()
    same = command("learn", *words, "--out", tmp_path / "out", *FEW)
    assert "its draws are used again" in same.stderr


@pytest.mark.chain
def test_regressions_that_were_stopped_are_drawn_again_from_their_seed(tmp_path, monkeypatch):
    words, *_ = file_of("gaussian_neighbourhoods", tmp_path)
    job_of(words, tmp_path / "stopped", monkeypatch)
    monkeypatch.undo()
    assert command("learn", "--resume", tmp_path / "stopped", "--no-progress").exit_code == 0
    assert command("learn", *words, "--out", tmp_path / "whole", *FEW).exit_code == 0
    one, other = (
        xr.open_datatree(tmp_path / each / "posterior.nc", engine="h5netcdf")["posterior"].load()
        for each in ("stopped", "whole")
    )
    assert one.sizes["draw"] == 20
    for variable, values in other.data_vars.items():
        np.testing.assert_array_equal(one[variable], values)


@pytest.mark.chain
def test_without_a_model_the_plainest_runs_and_the_others_are_named(tmp_path):
    WORDS.to_csv(tmp_path / "votes.csv", index=False)
    result = command("learn", tmp_path / "votes.csv", "--out", tmp_path / "out", *FEW)
    assert result.exit_code == 0, (result.output, result.exception)
    assert "columns: 3 of two states. Running --model ising" in result.stdout
    assert f"bayesstruct learn {tmp_path / 'votes.csv'} --model hidden_causes" in result.stdout
    assert cli_folder.read(tmp_path / "out").options["model"] == "ising"
