"""Bad calls of every kind end in one line that names the remedy."""

import numpy as np
import pandas as pd
import pytest

from typer.testing import CliRunner

from bayesstruct.app.cli import app
from bayesstruct.app.intake import table_of_model
from bayesstruct.data.errors import TableWarning

N = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of every kind, one file each."""
    path = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(rng.normal(size=(N, 4)), columns=[*"abcd"])
    words = pd.DataFrame(rng.choice(["no", "yes"], (N, 3)), columns=[*"uvw"])
    square = pd.DataFrame(np.ones((4, 4)) - np.eye(4), columns=[*"abcd"])
    square.insert(0, "name", [*"abcd"])
    tables = {
        "numbers": numbers,
        "words": words,
        "group": numbers.assign(sex=rng.choice(["f", "m"], N)),
        "one_group": numbers.assign(sex="f"),
        "named": numbers.assign(who=[f"p{i}" for i in range(N)]),
        "person": numbers.assign(person_id=range(1, N + 1)),
        "essay": numbers.assign(text=[f"t{i // 2}" for i in range(N)]),
        "answers": pd.DataFrame(rng.integers(1, 6, (N, 3)), columns=[*"xyz"]),
        "colours": pd.DataFrame(rng.choice(["red", "green", "blue"], (N, 3)), columns=[*"rst"]),
        "square": square,
        "wide": square.drop(index=0),
        "other_names": square.assign(name=[*"abcx"]),
        "weighted": pd.DataFrame({"source": [*"abc"], "target": [*"bca"], "weight": [2, 3, 1]}),
        "loop": pd.DataFrame({"source": [*"abc"], "target": [*"bcc"]}),
        "listed": pd.DataFrame({"source": [*"abc"], "target": [*"bcd"]}),
        "set": numbers.assign(iv=["a", "none", "q", "none"] * (N // 4)),
        "never_set": numbers.assign(iv="none"),
        "dates": numbers.assign(day=pd.date_range("2020-01-01", periods=N).astype(str)),
        "pairs": pd.DataFrame({"from": ["a"], "to": ["b"], "more": ["c"]}),
        "short": pd.DataFrame({"a": [0, 1]}),
        "codes": pd.DataFrame({"a": [0, 2] * (N // 2)}),
        "shuffled": numbers.assign(time=rng.permutation(N)),
        "covariances": numbers.cov().rename_axis("v").reset_index(),
        "bare_covariances": numbers.cov(),
        "correlations": numbers.corr().rename_axis("v").reset_index(),
    }
    for name, table in tables.items():
        table.to_csv(path / f"{name}.csv", index=False)
    (path / "no_pair.csv").write_text("from,to\n")
    return path


#: Table, words, parts of the message.
BAD = {
    # ---- options of other models, and unknown ones
    "option of another model": ("words", "--model ising --response u", ["ising has no --response (dp_glm has it)", "it has --prior"]),
    "effects of edges": ("numbers", "--model gaussian_graphical --effects", ["gaussian_graphical has no --effects", "--model bayesian_network"]),
    "effects without rows": ("correlations", "--model bayesian_network --cov --n 40 --effects", ["--effects needs the rows"]),
    "effects, another option": ("numbers", "--effects --rate 2", ["no model for a table of numbers runs with --rate"]),
    "option for Python": ("words", "--model bayesian_network --score mixed --kinds a=logistic", ["--kinds of bayesian_network is for Python only", "kinds=..."]),
    "near option": ("words", "--model ising --likelyhood exact", ["ising has no --likelyhood", "did you mean --likelihood?"]),
    "near common option": ("words", "--model ising --overwritten", ["did you mean --overwrite?"]),
    "unknown option": ("numbers", "--colour red", ["no model has --colour", "bayesstruct learn --help"]),
    "effects of no network": ("words", "--model ising --effects", ["ising has no --effects", "bayesian_network"]),
    "underscores": ("numbers", "--model gaussian_graphical --edge_probability .2", ["did you mean --edge-probability?"]),
    "no value": ("numbers", "--model gaussian_graphical --prior", ["--prior needs a value"]),
    "no value before an option": ("numbers", "--model gaussian_graphical --prior --draws 30", ["--prior needs a value"]),
    "no value of the command before an option": ("numbers", "--missing --draws 30", ["--missing needs a value"]),
    "no model value": ("numbers", "--model", ["--model", "argument"]),
    "unknown model": ("numbers", "--model izing", ["did you mean 'ising'?"]),
    "given twice": ("numbers", "--model gaussian_graphical --rate 1 --rate 2", ["--rate is given 2 times", "once"]),
    "short option": ("numbers", "-x", ["-x"]),
    # ---- values
    "unknown choice": ("words", "--model ising --likelihood exakt", ["did you mean 'exact'?", "--likelihood is one of pseudo, exact"]),
    "unknown prior": ("words", "--model ising --prior group_laplace", ["unknown prior", "spike_slab, laplace, horseshoe"]),
    "no number": ("numbers", "--model latent_features --alpha much", ["--alpha must be a number or gamma:A,B", "'much'"]),
    "not whole": ("numbers", "--model bayesian_network --max-parents 2.5", ["--max-parents must be a whole number"]),
    "too small": ("numbers", "--model bayesian_network --max-parents 0", ["--max-parents must be at least 1"]),
    "negative": ("numbers", "--model latent_features --noise -1", ["--noise must be above 0"]),
    "no probability": ("words", "--model hidden_causes --leak 1.5", ["--leak must be between 0 and 1"]),
    "not finite": ("numbers", "--model gaussian_graphical --slab-scale inf", ["--slab-scale must be above 0 and finite"]),
    "half a distribution": ("words", "--model ising --edge-probability beta:1", ["beta:A,B", "beta:1,4"]),
    "negative distribution": ("words", "--model ising --edge-probability beta:-1,2", ["must be above 0"]),
    "other distribution": ("words", "--model ising --edge-probability gamma:1,2", ["must be a number or beta:A,B or blocks"]),
    "neither yes nor no": ("numbers", "--model gaussian_graphical --standardize maybe", ["yes or no or conditional"]),
    "one of two numbers": ("numbers", "--model gaussian_neighbourhoods --noise-prior 2", ["two numbers, such as 2,1"]),
    "empty value": ("group", "--model grouped_gaussian_graphical --group=", ["--group is empty"]),
    # ---- options that are needed or do not go together
    "no group": ("group", "--model grouped_gaussian_graphical", ["needs --group COLUMN"]),
    "no response": ("numbers", "--model dp_glm", ["needs --response COLUMN"]),
    "rate of another prior": ("words", "--model ising --rate 2", ["--rate goes with --prior laplace"]),
    "blocks of edges": ("numbers", "--model gaussian_graphical --edge-probability blocks", ["g_wishart"]),
    "no fitting model": ("words", "--response u", ["no model for a table of two states", "--response"]),
    "no model with all": ("numbers", "--tiers a;b,c,d --response a", ["no model has --response and --tiers together"]),
    # ---- columns
    "unknown column": ("numbers", "--columns a,b,e", ["--columns: unknown column 'e'", "a, b, c, d"]),
    "unknown dropped column": ("numbers", "--drop dd", ["--drop: unknown column 'dd'", "did you mean 'd'?"]),
    "nothing left": ("numbers", "--drop a,b,c,d", ["leave no column", "at least 2"]),
    "one left": ("numbers", "--columns a", ["has 1 column", "at least 2 are needed"]),
    "empty name": ("numbers", "--columns a,,b", ["a name is empty", "a,b,c"]),
    "unknown group": ("group", "--group gender", ["--group: unknown column 'gender'"]),
    "unknown covariate": ("numbers", "--covariates age", ["--covariates: unknown column 'age'"]),
    "unknown series": ("numbers", "--series who", ["--series: unknown column 'who'"]),
    "unknown response": ("numbers", "--response y", ["--response: unknown column 'y'"]),
    "unknown counts": ("words", "--row-counts n", ["--row-counts: unknown column 'n'"]),
    "unknown edge": ("numbers", "--model gaussian_graphical --required a,q", ["'q'"]),
    "unknown tier": ("numbers", "--tiers a;b,q", ["'q'"]),
    "a single group": ("one_group", "--group sex", ["sex", "group"]),
    "names of rows": ("named", "", ["column 'who' names the rows", "--drop who"]),
    "numbered rows": ("person", "", ["column 'person_id' names the rows", "--drop person_id"]),
    "numbered rows of a model": ("person", "--model latent_features", ["--drop person_id"]),
    "text": ("group", "--model latent_features", ["column 'sex' holds text", "--drop sex"]),
    "text in a network": ("words", "--model bayesian_network", ["column", "add --score bdeu"]),
    "many texts": ("essay", "--drop a --states text=t0<t1", ["column 'text' holds", "write all of its states"]),
    "dates": ("dates", "", ["column 'day' holds dates", "--drop day"]),
    # ---- states
    "states of a missing column": ("words", "--states q=no<yes", ["--states: unknown column 'q'"]),
    "one state": ("words", "--states u=no", ["no list of different states", "low<mid<high"]),
    "repeated state": ("words", "--states u=no<no", ["no list of different states"]),
    "states left out": ("colours", "--states r=red<green", ["column 'r' holds 'blue' too"]),
    "words for numbers": ("answers", "--states low<mid<high", ["'x' holds numbers", "'low'"]),
    "two lists for all": ("words", "--states no<yes --states yes<no", ["2 times", "--states 'size=small<large'"]),
    "states of numbers": ("numbers", "--model latent_features --states a=1<2", ["latent_features has no --states"]),
    "too many states": ("answers", "--model ising", ["more than two values"]),
    # ---- pairs, tiers, blocks
    "single name": ("numbers", "--model gaussian_graphical --required a", ["takes a pair of names", "'a' has 1", "a,b"]),
    "three names": ("numbers", "--model gaussian_graphical --forbidden a,b,c", ["takes a pair of names", "has 3"]),
    "no pairs file": ("numbers", "--model gaussian_graphical --required nowhere.csv", ["nowhere.csv cannot be read"]),
    "pairs file of three": ("numbers", "--model gaussian_graphical --required {folder}/pairs.csv", ["line 1", "3 entries"]),
    "empty pairs file": ("numbers", "--model gaussian_graphical --required {folder}/no_pair.csv", ["has no pair"]),
    "contradiction": ("numbers", "--model gaussian_graphical --required a,b --forbidden b,a", ["a", "b", "required"]),
    "one tier": ("numbers", "--tiers a,b", ["a single group", "semicolons"]),
    "two blocks of one name": ("numbers", "--model blockwise_gaussian_graphical --blocks x=a,b;x=c,d", ["two blocks 'x'"]),
    "no grid": ("numbers", "--model locally_constant_gaussian_graphical --neighbours line", ["chain, a grid such as 3x4"]),
    "wrong grid": ("numbers", "--model locally_constant_gaussian_graphical --neighbours 3x4", ["3 x 4", "4 columns"]),
    # ---- interventions
    "unknown target": ("set", "--interventions iv", ["row 2", "'q', which is no column"]),
    "never set": ("never_set", "--interventions iv", ["names no column that was set"]),
    "unknown intervention": ("numbers", "--interventions iv", ["unknown column 'iv'", "CSV file of 0 and 1"]),
    "short mask": ("numbers", "--interventions {folder}/short.csv", ["2 rows", "one line for each row"]),
    "mask of codes": ("numbers", "--interventions {folder}/codes.csv", ["other values than 0 and 1"]),
    # ---- matrices
    "cov without n": ("correlations", "--cov", ["--cov needs --n"]),
    "n without cov": ("numbers", "--model gaussian_graphical --n 50", ["--n needs --cov"]),
    "cov of a model of rows": ("correlations", "--cov --model ising", ["ising has no --cov", "gaussian_graphical"]),
    "no square": ("numbers", "--cov --n 50", ["40 rows and 4 columns", "square"]),
    "covariances without names": ("bare_covariances", "", ["a covariance matrix", "--cov --n ROWS"]),
    "correlations as a table": ("correlations", "", ["--cov --n ROWS"]),
    "covariances as a table": ("covariances", "", ["--cov --n ROWS", "additive_clustering"]),
    "logarithms of a matrix": ("correlations", "--cov --n 50 --log", ["--cov has no --log"]),
    "logarithms of states": ("words", "--model ising --log", ["ising has no --log"]),
    # ---- pairs of objects
    "links that are no square": ("wide", "--model link_prediction", ["3 rows and 4 columns", "source,target"]),
    "links of other names": ("other_names", "--model link_prediction", ["different names", "'x'"]),
    "weights": ("weighted", "--model link_prediction", ["--drop weight"]),
    "loops": ("loop", "--model protein_complexes", ["'c' is paired with itself"]),
    "no similarities": ("listed", "--model additive_clustering", ["add the similarity"]),
    "unknown unobserved": ("listed", "--model link_prediction --unobserved a,q", ["'q'"]),
    # ---- the command itself
    "series of one table": ("numbers", "--model markov_transitions --series a,b", ["unknown column 'a,b'"]),
    "no file": ("nowhere", "", ["nowhere.csv does not exist"]),
    "few draws": ("numbers", "--draws 3", ["--draws", "20"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_call_is_one_line_with_the_remedy(case, folder, tmp_path):
    table, words, parts = BAD[case]
    words = words.format(folder=folder).split()
    call = ["learn", str(folder / f"{table}.csv"), "--out", str(tmp_path / "out"), *words]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 2, (result.output, result.exception)
    lines = [line for line in result.stderr.splitlines() if not line.startswith("Note: ")]
    assert len(lines) == 1, lines
    assert lines[0].startswith("Error: ")
    for part in parts:
        assert part.lower() in lines[0].lower(), (part, lines[0])
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_no_interrupted_run(folder):
    call = ["learn", str(folder / "numbers.csv"), "--out", str(folder / "short.csv" / "out")]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 2, (result.output, result.exception)
    assert "cannot be made" in result.stderr
    assert "choose another folder with --out" in result.stderr


def test_rows_that_are_not_in_the_order_of_time_are_noted(folder):
    options = {"model": "markov_transitions", "columns": [], "drop": [], "states": [], "given": []}
    options |= {"cov": False, "log": False, "source": "", "model_options": {}, "missing": []}
    frame = pd.read_csv(folder / "shuffled.csv")
    with pytest.warns(TableWarning, match="'time': does not ascend in each series"):
        table_of_model(frame, options)
    table_of_model(frame.sort_values("time"), options)
