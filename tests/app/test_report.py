"""The report of a run: each kind of result, both writers, and the numbers in the methods paragraph."""

import re
import shlex

from html.parser import HTMLParser

import networkx as nx
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from tools.compliance import CASES, build
from tools.dags import dag_posterior, random_dags
from tools.features import shuffled_features
from tools.posteriors import bernoulli_posterior

import bayesstruct as bs

from bayesstruct.app import report
from bayesstruct.app.folder import Job
from bayesstruct.app.report.effects import EFFECTS
from bayesstruct.app.report.fit import _table_of, check_fit
from bayesstruct.app.report.graphs import ARCS, BLOCKS, DIFFERENCES, EDGES, found_graph
from bayesstruct.app.report.latent import BEHAVIOURS
from bayesstruct.app.report.methods import missing_values
from bayesstruct.app.report.models import describe
from bayesstruct.app.report.page import command
from bayesstruct.app.report.papers import PAPERS, cited
from bayesstruct.app.report.parts import Finding, Result, findings, unsure, with_evidence
from bayesstruct.app.report.text import (
    Bullets,
    Code,
    Heading,
    Paragraph,
    Picture,
    Table,
    plain,
    prose,
    to_html,
    to_markdown,
)
from bayesstruct.app.result_files import RESULTS
from bayesstruct.app.values import split_names
from bayesstruct.graphs.mixing import indicator_ess
from bayesstruct.models.catalogue import MODELS
from bayesstruct.modes.check import Check, check, check_and_read

NAMES = [
    "a|b",
    "<b>x</b>",
    "snake_case_*",
    "Größe & Länge",
    "a rather long name of forty characters!!!",
]


def job_of(model, frame, **options):
    """Make the job of a run, as the command line stores it."""
    own = {"source": "my_table.csv", "draws": 30, "tune": 10, "chains": 2, "seed": 7, "notes": []}
    own |= {"log": False, "missing": [], "encoding": "utf-8", "digest": "", "model_options": {}}
    own |= {"given": [], "columns": [], "drop": [], "states": [], "cov": False}
    own["versions"] = {"python": "3.13.1", "bayesstruct": "9.8.7", "pymc": "6.5.4"}
    return Job(own | {"model": model} | options, pd.DataFrame(frame))


def result_of(job, idata, model=None):
    return Result(idata, job, model, check(idata))


def undiagnosed(job, idata):
    return Result(idata, job, None, Check())


@pytest.mark.parametrize("module", ["edges", "arcs"])
def test_diagnostics_of_lines_are_computed_once(module, monkeypatch):
    called = []

    def noted(indicators):
        called.append(indicators.shape)
        return indicator_ess(indicators)

    monkeypatch.setattr(f"bayesstruct.graphs.posteriors.{module}.indicator_ess", noted)
    idata = (
        bernoulli_posterior([0.5, 0.2, 0.9])
        if module == "edges"
        else dag_posterior(random_dags(np.random.default_rng(0), 80, 3).reshape(2, 40, 3, 3))
    )
    job = job_of("gaussian_graphical", np.zeros((3, 3)))
    result = Result(idata, job, None, *check_and_read(idata))
    assert result.graph is result.checked
    found = [finding.part.file for finding in findings(result, (EDGES, ARCS))]
    assert found == [f"{module}.csv"]
    assert len(called) == 1


class Reader(HTMLParser):
    """Text of a page, its references to other files, and whether all tags are closed in order."""

    VOID = {"meta", "img", "br"}

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.text, self.cells, self.references = [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.references += [v for k, v in attrs if k in {"src", "href"}]
        assert tag not in {"script", "link", "iframe"}
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


def shown(markdown):
    """Undo the escapes of Markdown."""
    return re.sub(r"\\([^a-zA-Z0-9\s])", r"\1", markdown)


# ---- the two writers -------------------------------------------------------------------------


def test_both_writers_show_names_as_they_are(tmp_path):
    picture = tmp_path / "graph.png"
    picture.write_bytes(b"\x89PNG")
    blocks = [
        Heading(plain(NAMES[0]), 1),
        Paragraph(prose("**{}** is *{}*, see `{}`.", *NAMES[:3])),
        Bullets([plain(name) for name in NAMES]),
        Table(["edge", "value"], [[name, "> 400"] for name in NAMES]),
        Picture(picture, plain(NAMES[1])),
        Code(["bayesstruct learn 'a<b.csv' --x 1"]),
    ]
    page = Reader(to_html(blocks, NAMES[1]))
    text = "".join(page.text)
    assert all(text.count(name) >= 2 for name in NAMES)
    assert page.cells[::2] == NAMES
    assert page.references == ["data:image/png;base64,iVBORw=="]
    markdown = to_markdown(blocks)
    lines = markdown.splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [3] * 7
    assert [shown(row)[2:].split(" | ")[0] for row in rows[2:]] == NAMES
    assert rows[-1].endswith("| > 400 |")
    assert not re.search(r"(?<![\\`])<b>", re.sub("`[^`]*`", "", markdown.split("```")[0]))


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("1. first", "1\\. first"),
        ("- item", "\\- item"),
        ("# title", "\\# title"),
        ("> quote", "\\> quote"),
        ("two\nlines", "two lines"),
        ("a_b_c", "a_b_c"),
        ("_a_", "\\_a\\_"),
        ("$x$ [y](z)", "\\$x\\$ \\[y\\](z)"),
        ("a\\|b", "a\\\\\\|b"),
    ],
)
def test_markdown_takes_no_name_for_markup(name, written):
    assert to_markdown([Paragraph(plain(name))]) == written + "\n"


def test_code_holds_backticks():
    assert to_markdown([Paragraph(prose("`{}`", "a`b"))]) == "``a`b``\n"


def test_templates_take_values_in_order():
    spans = prose("{} and *{}* and `--x {}`", "{}", "*", "`")
    assert [(s.text, s.style) for s in spans if s.style or s.text in "{}"] == [
        ("{}", ""),
        ("*", "emphasis"),
        ("--x `", "code"),
    ]


# ---- what is said of every model -------------------------------------------------------------


def test_all_files_are_known_without_the_report():
    assert {*RESULTS} == report.names_of_files()
    assert len(RESULTS) == len({*RESULTS})


def test_citations_are_those_of_their_references():
    for short, long in PAPERS.values():
        first, year = re.split(r"[ ,]", short)[0], short[-4:]
        assert f"({year})" in long
        assert first.split("-")[0] in long or first == "van"
    assert cited("wang2015") == "(Wang 2015)"


@pytest.fixture(scope="module")
def plain_result():
    """A result with nothing that descriptions of models look at but the size."""
    return bernoulli_posterior([0.9, 0.1, 0.5], draws=10)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_is_described_with_its_priors(model, plain_result):
    frame = np.zeros((20, 3))
    for prior in MODELS[model].priors or (None,):
        options = {"prior": prior} if prior else {}
        told = describe(undiagnosed(job_of(model, frame, model_options=options), plain_result))
        text = " ".join(told.sentences)
        assert told.question.endswith("?")
        assert re.search(r"\d", text)
        assert not re.search(r"None|nan|\{|\}|  |<|function", text)
        assert all(s.endswith(".") for s in told.sentences if s)
        assert told.papers
        assert all(cited(key)[1:-1] in text for key in told.papers)


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        (
            "gaussian_graphical",
            {"slab_scale": 3.25, "edge_probability": 0.125},
            "3.25 with an edge",
        ),
        ("gaussian_graphical", {"edge_probability": 0.125}, "nominal prior probability 0.125"),
        ("gaussian_graphical", {"prior": "laplace", "rate": 7}, "rate 7 (Wang 2012), and diagonal"),
        ("gaussian_graphical", {"prior": "laplace", "rate": 7}, "exponential prior with rate 3.5"),
        ("gaussian_graphical", {"marginals": "student"}, "multivariate t"),
        ("ising", {"slab_scale": 0.75, "slab": "cauchy"}, "cauchy with scale 0.75"),
        ("ising", {"likelihood": "exact"}, "The likelihood was exact"),
        ("ising", {"coding": "pm"}, "scale 0.25"),
        ("pairwise_mrf", {"potentials": "ordinal"}, "Marsman, van den Bergh and Haslbeck 2025"),
        ("bayesian_network", {"score": "bdeu", "equivalent_sample_size": 4}, "sample size 4"),
        ("bayesian_network", {"max_parents": 2}, "at most 2 parents"),
        (
            "lingam",
            {},
            "in a share of the columns that was learned (prior Beta(1, 1)), exactly normal",
        ),
        ("lingam", {"normal_probability": 0.25}, "prior probability 0.25 for each column, exactly"),
        ("tree", {"score": "bdeu", "equivalent_sample_size": 4}, "sample size 4 (Heckerman"),
        ("tree", {"score": "mixed"}, "No path led from states over numbers to states"),
        ("forest", {"score": "bdeu"}, "The number of components had equal prior probabilities"),
        ("forest", {"score": "bdeu"}, "the share given the number of edges, and"),
        ("forest", {"forbidden": [("a", "b")]}, "Forbidden edges were left out. The share of"),
        ("forest", {"forbidden": [("a", "b")]}, "the share given the forest by NUTS, and"),
        ("tree", {"edge_probability": 0.125}, "each edge had the prior probability 0.125"),
        ("tree", {"forbidden": [("a", "b")]}, "Forbidden edges were left out."),
        (
            "latent_tree",
            {"hidden_weight": 0.25},
            "in proportion to 0.25 to the power of the number",
        ),
        ("latent_tree", {"max_hidden": 2}, "with at most 2 hidden nodes"),
        ("latent_tree", {"score": "bdeu"}, "the same whatever node is the root, worth 4 rows"),
        (
            "network_classifier",
            {"target": "y", "score": "fcll"},
            "exponential of the factorized conditional log-likelihood (Carvalho et al. 2011), which are no posterior",
        ),
        ("network_classifier", {"target": "y", "structure": "naive"}, "(naive Bayes)"),
        ("network_classifier", {"target": "y"}, "equivalent sample size 10."),
        ("latent_features", {"alpha": 2.5}, "with 2.5 expected features of a row"),
        ("markov_transitions", {"stickiness": 42}, "42 more for staying"),
        ("dp_glm", {"family": "poisson"}, "prior standard deviation 0.5"),
    ],
)
def test_options_that_were_given_are_in_the_description(model, options, said, plain_result):
    job = job_of(model, np.zeros((20, 3)), model_options=options)
    assert said in " ".join(describe(undiagnosed(job, plain_result)).sentences)


def test_the_prior_is_an_option_that_was_given_if_it_is_not_the_default():
    from types import SimpleNamespace

    from bayesstruct.app.report.options import Options

    def changed(**given):
        options = {"model": "gaussian_graphical", "model_options": given}
        return Options(SimpleNamespace(job=SimpleNamespace(options=options))).changed

    assert changed(prior="spike_slab") == {}
    assert changed(prior="laplace", rate=2.0) == {"prior": "laplace", "rate": 2.0}
    assert changed(prior="spike_slab", slab_scale=1.0) == {"slab_scale": 1.0}


def test_automatic_units_are_in_the_description():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=["v0", "v1", "v2"])
    frame["v1"] = frame["v0"] + 0.05 * frame["v1"]
    idata = bernoulli_posterior([0.5] * 3)
    for unit, said in ((1.0, "were standardised."), (0.1, "given all other columns")):
        scale = frame.std().to_numpy() * [unit, unit, 1]
        constants = idata["constant_data"].to_dataset().assign(scale=("node", scale))
        idata["constant_data"] = xr.DataTree(constants)
        told = describe(undiagnosed(job_of("gaussian_graphical", frame), idata))
        assert said in " ".join(told.sentences)


def test_distributions_are_written_as_such(plain_result):
    own = {"beta:1,4": "which had the prior Beta(1, 4).", "blocks": "a stochastic block model"}
    for word, said in own.items():
        job = job_of("ising", np.zeros((9, 3)), model_options={"edge_probability": word})
        text = " ".join(describe(undiagnosed(job, plain_result)).sentences)
        assert said in text


def test_values_that_look_like_templates_stay_as_they_are():
    assert [span.text for span in prose("`{} {}` {}", "{}", "a", "{}")] == ["{} a", " ", "{}"]


def test_blocks_of_many_columns_are_listed():
    names = [f"c{i}" for i in range(50)]
    matrix = pd.DataFrame(np.eye(50), names, names)
    matrix.loc["c0", "c49"] = matrix.loc["c49", "c0"] = 0.8
    cells = BLOCKS.cells(matrix.head(BLOCKS.shown))
    assert cells["together with"] == ["c49 (0.80)", *["none"] * 39]


def test_nothing_is_missing_on_the_diagonal_of_pairs():
    square = np.where(np.eye(3, dtype=bool), np.nan, 1.0)
    job = job_of("additive_clustering", square)
    assert missing_values(undiagnosed(job, None)) == "without missing values"
    square[0, 1] = square[1, 0] = np.nan
    job = job_of("additive_clustering", square)
    assert missing_values(undiagnosed(job, None)).startswith("with 2 missing values (33.3%)")
    for options, how in (({}, "inside the model"), ({"prior": "pseudo_likelihood"}, "ten times")):
        job = job_of("gaussian_graphical", square, model_options=options)
        assert how in missing_values(undiagnosed(job, None))
    classes = job_of("network_classifier", square, model_options={"target": "a"})
    assert missing_values(undiagnosed(classes, None)).endswith("whose rows were left out")


def test_the_command_repeats_the_options():
    given = [["potentials", "ordinal"], ["required", "a,b c"], ["required", "c,d"]]
    job = job_of("pairwise_mrf", np.zeros((9, 3)), given=given, columns=["a", "b c", 'd, "e"'])
    assert command(job.options) == (
        "bayesstruct learn my_table.csv --model pairwise_mrf --potentials ordinal --required 'a,b c' --required c,d "
        """--draws 30 --tune 10 --chains 2 --seed 7 --columns 'a,b c,"d, ""e""\"'"""
    )
    assert split_names("--columns", shlex.split(command(job.options))[-1]) == job.options["columns"]
    again = command(job.options | {"states": ["low<high"], "columns": []})
    assert again.endswith("--states 'low<high'")


# ---- marks -----------------------------------------------------------------------------------


def test_rows_are_marked_where_chains_disagree_and_it_matters():
    table = pd.DataFrame(
        {
            "probability": [0.5, 0.5, 0.5, 1.0, 0.999, 0.5],
            "ess": [1000.0, 50.0, 1000.0, np.nan, 150.0, np.nan],
            "r_hat": [1.0, 1.0, 1.2, 1.0, 1.02, np.inf],
        }
    )
    # enough draws; too few; chains disagree; never changed; error below .01; stuck apart
    assert unsure(table, 4).tolist() == [False, True, True, False, False, True]
    assert not unsure(table.drop(columns="ess"), 4).any()


def test_remarks_on_tables_are_shown_but_that_on_bounds_which_is_explained():
    table = bs.edge_table(bernoulli_posterior([1.0, 0.1, 0.5], draws=40))
    own = "With 160 rows no edge can be excluded."
    assert any("are bounds" in note for note in table.attrs["notes"])
    table.attrs["notes"] = [*table.attrs["notes"], own]
    assert Finding(EDGES, with_evidence(table), 4).notes == [own]


# ---- reports on results made by hand ---------------------------------------------------------


def written(folder, job, idata, model=None, **options):
    """Write a report; return its summary, the Markdown as a reader sees it, and the page."""
    summary = report.write(folder, job, idata, model, **options)
    assert {path.name for path in folder.iterdir()} == {*summary.files}
    page = Reader((folder / "report.html").read_text(encoding="utf-8"))
    assert all(r.startswith("data:image/png;base64,") for r in page.references)
    text = (folder / "report.md").read_text(encoding="utf-8")
    for name in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (folder / name).stat().st_size > 1000
    assert len(page.references) == len(re.findall(r"!\[", text))
    return summary, shown(text), page


@pytest.fixture
def sure(tmp_path):
    """A result of five columns with difficult names: three edges found, the others not."""
    p = [0.9999, 0.02, 0.5, 0.01, 0.9999, 0.5, 0.02, 0.99, 0.01, 0.5]
    return bernoulli_posterior(p, names=NAMES, edge_prior=0.5)


@pytest.mark.chain
def test_text_table_and_picture_mean_the_same_by_found(sure, tmp_path):
    job = job_of("gaussian_graphical", np.zeros((30, 5)))
    job.frame.columns = NAMES
    result = result_of(job, sure)
    table = bs.edge_table(sure)
    found = table[table["bayes_factor"] >= 10]
    graph = found_graph(result)
    assert nx.utils.edges_equal(graph.edges, [*zip(found["source"], found["target"], strict=True)])
    summary, text, page = written(tmp_path, job, sure, partial=True)
    assert (
        f"10 possible edges: {len(found)} found (Bayes factor of at least 10), 4 excluded" in text
    )
    assert summary.headlines[0].startswith(f"10 possible edges: {len(found)} found")
    assert f"Of 10 possible edges, {len(found)} were found, 4 were excluded and 3 were left" in text
    csv = pd.read_csv(tmp_path / "edges.csv")
    assert (csv["evidence"] == "included").sum() == len(found)
    assert {*nx.read_graphml(tmp_path / "graph.graphml").nodes} == {*NAMES}
    assert "Interrupted before its end" in text
    assert any(f"{NAMES[0]} -- {NAMES[1]}" in cell for cell in page.cells)
    assert f"| {NAMES[0]} -- {NAMES[1]} | 1.000 |" in text


@pytest.mark.chain
def test_a_run_that_was_stopped_at_once_has_a_report(tmp_path):
    idata = bernoulli_posterior([0.9, 0.1, 0.5], chains=1, draws=2)
    frame = np.random.default_rng(0).normal(size=(9, 3))
    summary, text, _ = written(tmp_path, job_of("ising", frame), idata, partial=True)
    assert not summary.converged
    assert "1 chain of 2" in text
    assert "Interrupted before its end" in text


@pytest.mark.chain
def test_the_methods_paragraph_has_the_numbers_of_the_run(sure, tmp_path):
    frame = pd.DataFrame(np.zeros((30, 5)), columns=NAMES)
    frame.iloc[:3, 0] = np.nan
    job = job_of("gaussian_graphical", frame, model_options={"slab_scale": 1.75})
    _, text, _ = written(tmp_path, job, sure)
    paragraph = text.split("## For the methods section of a paper\n\n")[1].split("\n\n")[0]
    verdict = check(sure)
    for part in (
        "30 observations of 5 variables, with 3 missing values (2.0%)",
        "1.75 with an edge",
        "prior probability of an edge is then 0.500",
        "bayesstruct 9.8.7 and PyMC 6.5.4 (Abril-Pla et al. 2023) (Python 3.13.1)",
        "4 chains of 250 draws each, after 10 warm-up iterations (seed 7)",
        f"R-hat was {max(r.r_hat for r in verdict.rows):.3f}",
        f"sample size was {min(r.ess_bulk for r in verdict.rows):,.0f}",
        "(Wang 2015)",
        "(Vehtari et al. 2021)",
    ):
        assert part in paragraph, part
    references = text.split("## For the methods section")[1]
    assert "\n- Wang, H. (2015). Scaling it up" in references
    assert "\n- Vehtari, A." in references


@pytest.mark.chain
def test_a_network_has_both_directions(tmp_path):
    rng = np.random.default_rng(0)
    graphs = np.zeros((2, 200, 3, 3), int)
    graphs[:, :, 0, 1] = rng.random((2, 200)) < 0.5  # a - b always, either way
    graphs[:, :, 1, 0] = 1 - graphs[:, :, 0, 1]
    graphs[:, :, 1, 2] = 1  # b -> c always
    idata = dag_posterior(graphs, names=["a", "b", "c"])
    job = job_of("bayesian_network", pd.DataFrame(np.zeros((9, 3)), columns=[*"abc"]))
    graph = found_graph(result_of(job, idata))
    assert {*graph.edges} == {("a", "b"), ("b", "a"), ("b", "c")}
    summary, text, _ = written(tmp_path, job, idata)
    table = pd.read_csv(tmp_path / "connections.csv")
    arcs = bs.arc_table(idata).set_index(["source", "target"])["probability"]
    for row in table.itertuples():
        assert row.forward == pytest.approx(arcs[row.source, row.target])
        assert row.backward == pytest.approx(arcs[row.target, row.source])
        assert row.forward >= row.backward
    assert table["probability"].tolist() == pytest.approx([1, 1, 0])
    assert table["evidence"].tolist() == ["included", "included", "excluded"]
    assert table["bayes_factor_shown"].str[0].tolist() == [">", ">", "<"]
    directions = {frozenset(r[1:3]): r.direction for r in table.itertuples()}
    assert directions[frozenset("bc")] == "decided"
    assert directions[frozenset("ab")] == "undecided"
    assert "3 possible connections: 2 found" in text
    assert "direction of 1 of those found is decided" in summary.headlines[0]


def clusters():
    rng = np.random.default_rng(0)
    labels = (rng.random((2, 30, 8)) < 0.2) ^ (np.arange(8) > 3)
    labels = labels ^ labels[..., :1]
    cluster = (("chain", "draw", "observation"), labels.astype(int))
    return xr.DataTree.from_dict({"posterior": xr.Dataset({"cluster": cluster})})


def features():
    z = np.array([[1, 0], [1, 1], [0, 1], [1, 0], [0, 1]])
    return shuffled_features(z, [[1.0, 2.0, 0.0], [0.0, -1.0, 1.0]])


@pytest.mark.chain
@pytest.mark.parametrize(
    ("model", "idata", "rows", "title", "files"),
    [
        ("dp_glm", clusters, 8, "### Clusters", {"clusters.csv", "co_clustering.csv"}),
        (
            "latent_features",
            features,
            5,
            "### Loadings of the features",
            {"features.csv", "loadings.csv", "membership.csv", "features.png"},
        ),
        (
            "bayesian_network",
            lambda: dag_posterior(
                random_dags(np.random.default_rng(0), 60, 4).reshape(2, 30, 4, 4)
            ),
            4,
            "### Connections and their directions",
            {
                "connections.csv",
                "arcs.csv",
                "graph.graphml",
                "graph.png",
                "directions.png",
                "evidence.png",
            },
        ),
    ],
)
def test_kinds_of_results_have_sections_tables_and_pictures(
    model, idata, rows, title, files, tmp_path
):
    summary, text, _ = written(tmp_path, job_of(model, np.zeros((rows, 4))), idata())
    assert title in text
    assert files < {*summary.files}
    table = report.console_table(summary)
    assert table.row_count == min(10, len(summary.findings[0].table))
    assert not summary.converged
    assert "No posterior predictive check was made: it needs the model" in text


@pytest.mark.chain
@pytest.mark.usefixtures("python_mode")
@pytest.mark.parametrize(
    ("case", "first", "compared"),
    [
        ("grouped", "differences.csv", "observed correlations"),
        ("gaussian_unknown_blocks", "blocks.csv", "observed correlations"),
        ("neighbourhoods", "arcs.csv", "observed correlations"),
        ("lingam", "connections.csv", "Skewness and tails of the residuals"),
        ("ordinal", "edges.csv", "frequencies of pairs of states"),
        ("links", "links.csv", "sums over the pairs of an object"),
        ("series", "behaviours.csv", "itself one time step before"),
        ("causes", "features.csv", "frequencies of pairs of states"),
        ("mixture", "clusters.csv", "correlations of the response with a predictor"),
    ],
)
def test_results_of_each_family_are_reported_and_checked(case, first, compared, tmp_path):
    """Draws from the prior stand for those from the posterior: they have the same variables."""
    name, data, options, *_ = CASES[case]
    model = build(bs, case)
    with model:
        idata = pm.sample_prior_predictive(12, random_seed=1)
    idata["posterior"], idata["posterior_predictive"] = idata["prior"], idata["prior_predictive"]
    frame = pd.concat(map(pd.DataFrame, data)) if isinstance(data, list) else data
    summary, text, _ = written(tmp_path, job_of(name, frame, model_options=options), idata, model)
    assert summary.files[1] == first
    assert compared in text
    assert np.isfinite(summary.fit.share)
    assert summary.findings[0].part.headlines(summary.findings[0].table)[0] in text


@pytest.mark.chain
@pytest.mark.usefixtures("python_mode")
def test_tables_are_replicated_by_the_model(tmp_path):
    """The right states are inside of the intervals; those of a table of another dependence are not."""
    frame = pd.DataFrame({"a": [0] * 100 + [1] * 100, "b": [1] * 5 + [0] * 95 + [1] * 95 + [0] * 5})
    model = bs.models.ising(frame)
    bias = -np.log(95 / 5)  # of the shares of the table, which the model then has exactly
    draws = {"bias": np.full((2, 40, 2), bias), "weight": np.full((2, 40, 1), -2 * bias)}
    with model:
        idata = pm.sample_prior_predictive(40, random_seed=1)
    posterior = xr.concat([idata["prior"].to_dataset()] * 2, dim="chain")
    right = posterior.assign({k: (posterior[k].dims, v) for k, v in draws.items()})
    wrong = right.assign(weight=0 * right["weight"], bias=0 * right["bias"])
    job = job_of("ising", frame)
    for dataset, share in ((right, 1.0), (wrong, 0.0)):
        tree = idata.drop_nodes(["prior", "prior_predictive"], errors="ignore")
        tree["posterior"] = xr.DataTree(dataset)
        fit = check_fit(Result(tree, job, model, check(tree)))
        pairs = re.match(r"(\d+) of 4 observed frequencies of pairs", fit.sentences[0])
        assert int(pairs[1]) == 4 * share
        assert bool(fit.worst) == (share == 0)


def test_intervals_of_statistics_are_quantiles():
    simulated = np.arange(1000.0).reshape(-1, 1) * [1, 2]
    table = _table_of(["x", "y"], np.array([5.0, 5.0]), simulated)
    np.testing.assert_allclose(table["low"], [24.975, 49.95])
    np.testing.assert_allclose(table["high"], [974.025, 1948.05])


@pytest.mark.chain
@pytest.mark.usefixtures("python_mode")
def test_effects_are_those_of_do_if_they_are_asked_for(tmp_path):
    frame = CASES["network"][1]
    with build(bs, "network"):
        idata = pm.sample_prior_predictive(30, random_seed=1)
    idata["posterior"] = idata["prior"]
    _, text, _ = written(tmp_path, job_of("bayesian_network", frame, effects=True), idata)
    table = pd.read_csv(tmp_path / "effects.csv")
    assert len(table) == 12
    first, second = frame.columns[:2]
    raised = frame[first].mean() + frame[first].std()
    right = bs.do(idata, {first: raised}).loc[second, "effect"]
    row = table[(table["set"] == first) & (table["on"] == second)]
    assert row["effect"].item() == pytest.approx(right)
    assert row["to"].item() == pytest.approx(raised)
    assert "### Effects of each on each" in text
    measures = {*pd.read_csv(tmp_path / "centrality.csv")["measure"]}
    assert measures == {"out_strength", "in_strength", "expected_influence"}
    given = {*pd.read_csv(tmp_path / "predictability.csv")["given"]}
    assert given == {"all others", "parents"}
    assert "smallest Bayes factor that a connection can have" in text


@pytest.mark.chain
@pytest.mark.usefixtures("python_mode")
def test_effects_of_text_are_of_each_state(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(["lo", "hi"], 40), "b": rng.choice([0.0, 1.0, 2.0], 40)})
    with bs.models.bayesian_network(frame, score="bdeu"):
        idata = pm.sample_prior_predictive(20, random_seed=1)
    idata["posterior"] = idata["prior"]
    job = job_of("bayesian_network", frame, effects=True, model_options={"score": "bdeu"})
    _, text, _ = written(tmp_path, job, idata)
    table = pd.read_csv(tmp_path / "effects.csv")
    assert len(table) == 2 * 3 + 3 * 2
    assert "| a = lo | b | " in text
    assert "| b = 2 | a | " in text
    assert {*pd.read_csv(tmp_path / "centrality.csv")["measure"]} == {"out_degree", "in_degree"}


@pytest.mark.chain
@pytest.mark.usefixtures("python_mode")
def test_nodes_have_the_numbers_of_their_readers(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 4)), columns=[*"abcd"])
    with bs.models.gaussian_graphical(frame):
        idata = pm.sample_prior_predictive(60, random_seed=1)
    idata["posterior"] = idata["prior"]
    summary, text, _ = written(tmp_path, job_of("gaussian_graphical", frame), idata)
    predicted = pd.read_csv(tmp_path / "predictability.csv").set_index("node")
    right = bs.predictability(idata).set_index("node")
    pd.testing.assert_series_equal(
        predicted["value"], right["value"].sort_values(ascending=False), check_exact=False
    )
    best = predicted.index[0]
    line = next(line for line in summary.headlines if line.startswith("The other variables"))
    assert line.endswith(f"to {predicted['value'].iloc[0]:.0%} ({best}).")
    assert f"| {best} | R2 | {predicted['value'].iloc[0]:.3f} |" in text
    central = pd.read_csv(tmp_path / "centrality.csv")
    strength = bs.centrality(idata, ["strength", "expected_influence"])
    pd.testing.assert_frame_equal(central, strength, check_exact=False)
    assert (tmp_path / "centrality.png").exists()
    limits = bs.evidence_limits(idata)
    smallest = limits["smallest"]
    assert smallest.min() > 0.1
    assert f"is {smallest.min():.2g} to {smallest.max():.2g}, by pair: no edge can be" in text
    assert f"of about {limits['included_from'].median():.2f} or more" in text
    assert text.count("no edge can be excluded") == 1


@pytest.mark.parametrize(
    ("value", "clause"),
    [
        (0.2, "each edge had the prior probability 0.2"),
        ("beta:1,4", "all edges had the same prior probability, which had the prior Beta(1, 4)"),
        ("blocks", "the prior probabilities of edges had a stochastic block model as prior"),
        ([[0, 0.3], [0.3, 0]], "each edge had a prior probability of its own, as given"),
    ],
)
def test_the_prior_of_edges_is_a_clause(value, clause, plain_result):
    options = {"prior": "g_wishart", "edge_probability": value}
    job = job_of("gaussian_graphical", np.zeros((20, 3)), model_options=options)
    assert f"; {clause}." in " ".join(describe(undiagnosed(job, plain_result)).sentences)


def test_effects_of_states_of_text_are_written():
    columns = {"set": ["a", "b"], "to": ["no", 2.5], "on": ["b", "a"], "state": ["x", "y"]}
    table = pd.DataFrame(columns | dict.fromkeys(("effect", "effect_low", "effect_high"), 0.5))
    table.attrs["ci_prob"] = 0.9
    assert EFFECTS.cells(table)["set"] == ["a = no", "b = 2.5"]


def test_the_picture_of_what_was_found_counts_the_forbidden_edges():
    prior = [0.5, 0.0, 1.0]
    idata = bernoulli_posterior([0.99, 0.0, 1.0], edge_prior=prior)
    job = job_of("gaussian_graphical", np.zeros((9, 3)))
    ax = Figure().add_subplot()
    FigureCanvasAgg(ax.get_figure())
    EDGES.drawings[0].draw(undiagnosed(job, idata), None, ax)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"required (not tested): 1", "forbidden (not tested): 1"} <= {*texts}


@pytest.mark.chain
def test_long_tables_are_cut(tmp_path):
    p = 22 * 21 // 2
    probability = np.where(np.arange(p) % 37 == 0, 0.99, 0.02)
    idata = bernoulli_posterior(probability, chains=2, draws=20)
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 22)))
    summary, text, page = written(tmp_path, job_of("gaussian_graphical", frame), idata)
    assert "231 possible edges" in summary.headlines[0]
    assert "The first 20 of 231 rows; all are in `edges.csv`" in text
    assert len(page.cells) < 400
    assert len(pd.read_csv(tmp_path / "edges.csv")) == 231


def test_the_terminal_has_the_shares_of_whole_series():
    rows = pd.MultiIndex.from_product([["p", "q"], range(20)], names=["series", "time"])
    table = pd.DataFrame({"1": np.arange(40) / 40, "other": 1 - np.arange(40) / 40}, index=rows)
    finding = Finding(BEHAVIOURS, table, 2)
    shown = report.console_table(report.Summary([], [finding], Check(), None, []))
    assert [[str(cell) for cell in column.cells] for column in shown.columns] == [
        ["p", "q"],
        ["0.24", "0.74"],
        ["0.76", "0.26"],
    ]


def test_groups_of_a_difference_are_not_taken_for_an_order():
    table = pd.DataFrame({"source": ["a"], "target": ["b"], "first": ["f"], "second": ["m"]})
    table = table.assign(probability=0.9, bayes_factor_shown="9", verdict="undecided")
    table = table.assign(difference=0.1, hdi_low=0.0, hdi_high=0.2)
    table.attrs["ci_prob"] = 0.89
    assert DIFFERENCES.cells(table)["groups"] == ["f minus m"]
