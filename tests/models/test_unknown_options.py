"""An option that a model does not have is refused by a message that names the nearest one, or the models that have it."""

import numpy as np
import pandas as pd
import pytest

import bayesstruct as bs

from bayesstruct.models.catalogue import MODELS

TABLE = pd.DataFrame(np.random.default_rng(1).normal(size=(20, 3)), columns=list("abc"))


@pytest.mark.parametrize(
    ("model", "option", "message"),
    [
        (
            "gaussian_graphical",
            "group",
            "^gaussian_graphical has no option 'group'; grouped_gaussian_graphical, ising, pairwise_mrf have it$",
        ),
        ("gaussian_graphical", "edge_probabilities", "did you mean 'edge_probability'"),
        (
            "latent_features",
            "interventions",
            "'interventions'; bayesian_network, linear_sem have it$",
        ),
        ("ising", "zzz", "no option 'zzz'; it has .*likelihood"),
        ("dp_glm", "cov", "gaussian_graphical, .*bayesian_network have it$"),
    ],
)
def test_the_message_names_a_remedy(model, option, message):
    with pytest.raises(TypeError, match=message):
        getattr(bs.models, model)(TABLE, **{option: "a"})


@pytest.mark.parametrize("model", MODELS)
def test_every_model_refuses_unknown_options(model):
    with pytest.raises(TypeError, match=f"{model} has no option 'no_such_option'"):
        getattr(bs.models, model)(TABLE, no_such_option=1)


def test_other_errors_of_calls_are_those_of_python():
    with pytest.raises(TypeError, match="positional"):
        bs.models.gaussian_graphical(TABLE, 1, 2, 3)
