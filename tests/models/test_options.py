"""The options of the command line are the arguments of the models."""

import inspect

import numpy as np
import pytest

import bayesstruct as bs

from bayesstruct.app.values import FORMATS, option_rows, read_options
from bayesstruct.models.catalogue import MODELS, TABLES
from bayesstruct.models.options import ELSEWHERE, OPTIONS, PYTHON_ONLY


def parameters(name):
    return inspect.signature(getattr(bs.models, name)).parameters


def test_there_are_options_of_every_model():
    assert [*OPTIONS] == [*MODELS]
    assert {model.table for model in MODELS.values()} == {*TABLES}


@pytest.mark.parametrize("name", MODELS)
def test_every_argument_is_an_option_or_known_to_be_none(name):
    own = {option.name for option in OPTIONS[name]}
    assert own <= {*parameters(name)}
    assert len(own) == len(OPTIONS[name])
    left = {*parameters(name)} - own
    assert {each for each in left if each not in ELSEWHERE} == {
        each for model, each in PYTHON_ONLY if model == name and each not in ELSEWHERE
    }


@pytest.mark.parametrize("name", MODELS)
def test_defaults_are_those_of_the_models(name):
    for option in OPTIONS[name]:
        default = parameters(name)[option.name].default
        if default is inspect.Parameter.empty:
            assert option.required
        elif not option.required:
            assert option.default == default, option.name


@pytest.mark.parametrize("name", MODELS)
def test_every_option_reads_its_default_and_can_be_shown(name):
    assert len(option_rows(name)) == len(OPTIONS[name])
    for option in OPTIONS[name]:
        assert option.kind in FORMATS
        assert option.help.endswith(".")
        words = [
            *option.choices,
            option.default,
            "2.5",
            ".5",
            "3",
            "2,3",
            "a,b",
            "a;b",
            "yes",
            "3x4",
        ]
        values = [read(name, option, word) for word in words if isinstance(word, str)]
        assert any(value is not None for value in values), option.name


def read(name, option, word):
    given = [(other.name, "x") for other in OPTIONS[name] if other.required and other is not option]
    word = word.replace("A,B", "2,3")
    try:
        return read_options(name, [*given, (option.name, word)])[option.name]
    except ValueError:
        return None


@pytest.mark.parametrize(
    ("model", "name", "word", "value"),
    [
        ("gaussian_graphical", "edge_probability", ".2", 0.2),
        ("gaussian_graphical", "edge_probability", "beta:1,4", "beta:1,4"),
        ("gaussian_graphical", "edge_probability", "blocks", "blocks"),
        ("gaussian_graphical", "standardize", "no", False),
        ("gaussian_graphical", "standardize", "conditional", "conditional"),
        ("gaussian_graphical", "required", "a, b", [["a", "b"]]),
        ("gaussian_graphical", "required", '"a, b",c', [["a, b", "c"]]),
        ("gaussian_graphical", "covariates", "age,sex", ["age", "sex"]),
        ("gaussian_neighbourhoods", "noise_prior", "2,.5", [2.0, 0.5]),
        ("bayesian_network", "tiers", "a,b;c", [["a", "b"], ["c"]]),
        ("bayesian_network", "max_parents", "3", 3),
        ("lingam", "normal_probability", "0", 0.0),
        ("linear_sem", "normal_probability", "1", 1.0),
        ("blockwise_gaussian_graphical", "blocks", "a,b;c", {"1": ["a", "b"], "2": ["c"]}),
        ("blockwise_gaussian_graphical", "blocks", "x=a,b;y=c", {"x": ["a", "b"], "y": ["c"]}),
        ("locally_constant_gaussian_graphical", "neighbours", "3x4", [3, 4]),
        ("locally_constant_gaussian_graphical", "neighbours", "chain", "chain"),
    ],
)
def test_words_mean_what_they_say(model, name, word, value):
    assert read_options(model, [(name, word)])[name] == value


def test_pairs_are_of_several_options_or_a_file(tmp_path):
    given = [("required", "a,b"), ("required", "c,d"), ("forbidden", str(tmp_path / "no.csv"))]
    (tmp_path / "no.csv").write_text("from;to\ne;f\ng;h\n")
    options = read_options("bayesian_network", given)
    assert options == {"required": [["a", "b"], ["c", "d"]], "forbidden": [["e", "f"], ["g", "h"]]}


def test_numbers_are_held_to_their_bounds():
    for word in ("0", "1", "nan", "inf", "-.5", "many", "gamma:1,2", "beta:1", "beta:0,1"):
        with pytest.raises(ValueError, match="--edge-probability"):
            read_options("gaussian_graphical", [("edge_probability", word)])
    for word in ("-.1", "1.1", "nan"):
        with pytest.raises(ValueError, match="--normal-probability must be between 0 and 1"):
            read_options("lingam", [("normal_probability", word)])
    assert np.isfinite(read_options("latent_features", [("baseline", "-2")])["baseline"])
