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
        ("pass the rows that it was computed from, or, where there are none, gaussian_graphical(cov=m, n=5) or bayesian_network(cov=m, n=5)", None, "pass the rows that it was computed from, or, where there are none, --cov --n ROWS"),
        ("pass the rows that it was computed from, or, where there are none, gaussian_graphical(cov=m, n=5)", "linear_sem", "pass the rows that it was computed from, or, where there are none, --model bayesian_network --cov --n ROWS"),
        ("as normal; for ordered states say kinds={'a': 'ordinal'}, for states without an order 'multinomial', and 'normal' if numbers are meant", "bayesian_network", "as normal; if they are states, say which with --states 'a=0<1<2', or without an order with --states 'a=0,1,2'"),
        ("encode it first, for example with pandas.get_dummies(..., drop_first=True), or leave it out", None, "encode it first as columns of 0 and 1, or leave it out"),
        ("that many rows share, for instance pandas.cut(column, 3)", None, "that many rows share"),
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
