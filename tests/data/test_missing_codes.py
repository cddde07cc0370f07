"""Codes for missing values, in tables of any form and in files; words of files that are read as missing."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

from tools.misread import NORMAL, coded_table, correlation_table

from bayesstruct.data import StateTable, Table, TableError, TableWarning, read_table
from bayesstruct.data.recoding import tables_without_codes, without_codes
from bayesstruct.mixtures.data import RegressionTable

MISSING = [[1.5, np.nan, 3.0], [2.5, 0.5, 1.0], [np.nan, 1.5, 2.0], [0.5, 2.5, -1.0]]
CODED = np.array([[1.5, -999, 3.0], [2.5, 0.5, 1.0], [99, 1.5, 2.0], [0.5, 2.5, -1.0]])
NAMES = ["a", "b", "c"]
FORMS = {
    "array": (CODED, [-999, 99]),
    "float32": (CODED.astype("float32"), [-999, 99]),
    "list": (CODED.tolist(), [-999, 99]),
    "text codes": ([["?" if v in (-999, 99) else v for v in row] for row in CODED.tolist()], "?"),
    "masked array": (np.ma.array(CODED, mask=False), [-999, 99]),
    "pandas": (pd.DataFrame(CODED, columns=NAMES), [-999, 99]),
    "pandas, by column": (pd.DataFrame(CODED, columns=NAMES), {"a": 99, "b": [-999]}),
    "pandas, numbered": (pd.DataFrame(CODED), {0: 99, 1: -999}),
    "polars": (pl.DataFrame(CODED, schema=NAMES), ["-999", "99"]),
    "polars, lazy": (pl.DataFrame(CODED, schema=NAMES).lazy(), [-999.0, 99]),
    "pyarrow": (pl.DataFrame(CODED, schema=NAMES).to_arrow(), [-999, 99]),
    "xarray": (xr.DataArray(CODED, dims=("r", "v"), coords={"v": NAMES}), {"a": 99, "b": -999}),
}


@pytest.mark.parametrize(("data", "codes"), FORMS.values(), ids=FORMS)
def test_codes_of_any_table_are_missing(data, codes):
    table = Table.continuous(without_codes(data, codes))
    np.testing.assert_array_equal(table.values, MISSING)


def test_a_code_of_all_columns_that_is_measured_in_one_is_remarked_upon(recwarn):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 66, 100), "iq": np.round(rng.normal(100, 15, 100))}
    )
    frame.loc[:11, "age"], frame.loc[20:25, "iq"] = 99, 99
    with pytest.warns(TableWarning, match=r"'age' \(99\).*name them: missing_codes=\{'age': 99\}"):
        Table.continuous(frame)
    with pytest.warns(TableWarning, match=r"'iq': 99 .* between.*missing_codes=\{'age': 99\}"):
        without_codes(frame, 99)
    with pytest.warns(TableWarning, match="'iq': '99'"):
        without_codes(frame.astype(int).astype(str), "99")
    recwarn.clear()
    assert without_codes(frame, {"age": 99}).isna().sum().tolist() == [12, 0]
    without_codes(frame.drop(columns="iq"), [99])
    assert not recwarn.list


def test_the_codes_of_a_response_without_a_name_are_named():
    response = coded_table(99)["b"].to_numpy()
    with pytest.warns(TableWarning, match=r"missing_codes=\{'response': 99\}"):
        RegressionTable.read(NORMAL, response, "gaussian")
    kept = tables_without_codes({"response": 99}, NORMAL, response, vector="response")
    assert [np.isnan(own).sum() for own in kept] == [0, 8]


def test_codes_of_states_are_no_states():
    frame = pd.DataFrame(
        {
            "n": [1, 2, 9, 1, 2],
            "text": ["u", "9", "v", "u", "u"],
            "words": ["x", "y", "refused", "y", "y"],
            "category": pd.Categorical(["p", "q", "refused", "p", "p"]),
            "flag": [True, False, True, True, False],
        }
    )
    table = StateTable.read(without_codes(frame, [9, "refused"]))
    assert table.levels == ((1, 2), ("u", "v"), ("x", "y"), ("p", "q"), (False, True))
    assert table.missing.sum(axis=0).tolist() == [1, 1, 1, 1, 0]
    enum = pl.DataFrame(
        {"a": pl.Series(["x", "no", "y"], dtype=pl.Enum(["x", "no", "y"])), "b": [0, 1, 1]}
    )
    assert StateTable.read(without_codes(enum, "no")).levels[0] == ("x", "y")


def test_codes_of_a_file(tmp_path):
    path = tmp_path / "cells.csv"
    path.write_text("a;b;c\n1,5;2;unknown\n-999;3,5;1,0\n2,5;99;4,5\n")
    frame = read_table(path, missing_codes=["-999", "99", "unknown"])
    expected = [[1.5, 2.0, np.nan], [np.nan, 3.5, 1.0], [2.5, np.nan, 4.5]]
    np.testing.assert_array_equal(frame.to_numpy(float), expected)


def test_a_file_of_correlations_is_refused(tmp_path):
    path = tmp_path / "correlations.csv"
    correlation_table().to_csv(path)
    with pytest.warns(TableWarning, match="first column"):
        frame = read_table(path)
    with pytest.raises(TableError, match="correlation matrix"):
        Table.continuous(frame)


def test_words_of_a_file_that_are_read_as_missing_are_listed(tmp_path):
    path = tmp_path / "regions.csv"
    path.write_text("region,drink,x\nNA,None,1\nEU,some,NA\n,much,2\nNA,None,3\n")
    with pytest.warns(TableWarning, match=r"'region' \('NA'\), 'drink' \('None'\)"):
        frame = read_table(path)
    assert frame.isna().sum().tolist() == [3, 2, 1]


def test_words_of_a_file_that_are_named_as_missing_are_not_listed(tmp_path, recwarn):
    path = tmp_path / "of_r.csv"
    path.write_text('"sex","x","y"\n"f",1.5,NA\nNA,0.5,2\n"m",NA,1\n"f",2.5,3\n')
    for codes in (["NA"], "NA", {"sex": "NA"}, {"sex": ["NA"], "x": ["NA"]}):
        frame = read_table(path, missing_codes=codes)
        assert frame.isna().to_numpy().sum(axis=0).tolist() == [1, 1, 1]
        assert frame.dtypes[["x", "y"]].tolist() == [float, float]
    path.write_text("x,y\n1.5,NA\n0.5,2\n")  # a code of a column of numbers alone
    read_table(path, missing_codes=["NA"])
    assert not recwarn.list


def test_a_word_of_a_file_that_is_not_named_is_listed(tmp_path):
    path = tmp_path / "drinks.csv"
    path.write_text("region,drink\nNA,None\nEU,some\nAS,much\n")
    with pytest.warns(
        TableWarning, match=r"missing values in 'drink' \('None'\); .*missing_codes=\['None'\]"
    ) as found:
        read_table(path, missing_codes={"region": "NA"})
    assert len(found) == 1
