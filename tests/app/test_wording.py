"""Remedies are in the words of the command line."""

import pandas as pd
import pytest

import bayesstruct as bs

from bayesstruct.app.wording import on_the_command_line


@pytest.mark.parametrize(
    ("text", "model", "right"),
    [
        ('`rate` goes with prior="laplace"', "ising", "--rate goes with --prior laplace"),
        ("missing_codes={'age': 99, 'b c': [-9, -8]}", None, "--missing age=99 --missing 'b c=-9' --missing 'b c=-8'"),
        ("name them: missing_codes=-999", None, "name them: --missing -999"),
        ("name them: missing_codes=['NA', 'no idea']", None, "name them: --missing NA --missing 'no idea'"),
        ("as in states={'a': ['no', 'yes']}", None, "as in --states 'a=no<yes'"),
        ("drop them (data.drop_duplicates())", None, "drop them"),
        ("make it a number (in pandas data['a'].astype(float))", None, "make it a number"),
        ("use bs.models.ising for binary columns", None, "use --model ising for binary columns"),
        ("take logarithms, as in np.log(data), or correct outliers", None, "take logarithms with --log, or correct outliers"),
        ("make it an ordered category (in pandas data[column].astype(pandas.CategoricalDtype(ordered=True)))", None, "write its states in order, --states 'COLUMN=1<2<3'"),
        ("write them alike, as data[\"group\"].str.strip().str.lower() does", None, "write them alike in the file"),
        ("passengers (data about them) are fine", None, "passengers (data about them) are fine"),
    ],
)  # fmt: skip
def test_python_becomes_options(text, model, right):
    assert on_the_command_line(text, model) == right


def test_a_real_message_has_the_option():
    table = pd.DataFrame({"a": [0.5, 1.5, 2.2, 3.1] * 5, "b": ["x", "y", "z", "y"] * 5})
    with pytest.raises(bs.TableError) as error:
        bs.models.gaussian_graphical(table, marginals="rank")
    text = on_the_command_line(str(error.value), "gaussian_graphical")
    assert "--states 'b=low<mid<high'" in text
    assert "take --marginals mixed" in text
    assert "--model pairwise_mrf" in text
    assert "pandas" not in text
