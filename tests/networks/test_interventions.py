"""What is said of masks of interventions that are none, or of all values."""

import numpy as np
import pandas as pd
import pytest

import bayesstruct as bs

from bayesstruct.networks.data.tables import known_interventions

TABLE = pd.DataFrame(np.random.default_rng(1).normal(size=(30, 3)), columns=list("abc"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a": [True] * 30}, r"pass pandas.DataFrame\(interventions\)"),
        ("a", r"pandas.DataFrame\({'a': True}, index=data.index\)"),
        (["a"] * 30, r"{name: target == name for name in data.columns}"),
        (pd.Series(["a", "none"] * 15), r"{name: target == name for name in data.columns}"),
        (np.array(["a"] * 30), r"{name: target == name for name in data.columns}"),
    ],
)
@pytest.mark.parametrize("model", ["bayesian_network", "linear_sem"])
def test_names_and_dicts_are_refused_with_the_mask(model, given, words):
    with pytest.raises(TypeError, match=words):
        getattr(bs.models, model)(TABLE, interventions=given)


def test_the_remedies_work():
    table = bs.data.Table.continuous(TABLE)
    target = pd.Series(["a", "none"] * 15)
    by_name = pd.DataFrame({name: target == name for name in TABLE.columns})
    everywhere = pd.DataFrame({"a": True}, index=TABLE.index)
    for given, share in (
        (by_name, 0.5),
        (everywhere, 1.0),
        (pd.DataFrame({"a": [True] * 30}), 1.0),
    ):
        mask = known_interventions(given, table)
        np.testing.assert_array_equal(mask.mean(axis=0), [share, 0, 0])


@pytest.mark.parametrize("model", ["bayesian_network", "linear_sem"])
def test_a_mask_that_is_true_everywhere_is_said_to_be_so(model):
    mask = np.zeros((30, 3), bool)
    with pytest.warns(bs.TableWarning, match="tells nothing of any arc.*~interventions"):
        getattr(bs.models, model)(TABLE, interventions=~mask)
    mask[0, 0] = True
    getattr(bs.models, model)(TABLE, interventions=~mask)  # without a warning
