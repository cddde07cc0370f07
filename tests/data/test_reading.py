"""Reading files as people have them."""

import gzip

import pandas as pd
import pytest

from bayesstruct.data import TableError, TableWarning, read_table

EXPECTED = {"Raf": [26.4, 35.9], "Mek": [13.2, 16.5]}


def _file(folder, content, name="cells.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


TEXTS = {
    "comma": "Raf,Mek\n26.4,13.2\n35.9,16.5\n",
    "semicolon": "Raf;Mek\n26.4;13.2\n35.9;16.5\n",
    "decimal comma": "Raf;Mek\n26,4;13,2\n35,9;16,5\n",
    "tab": "Raf\tMek\n26.4\t13.2\n35.9\t16.5\n",
    "spaces, blank lines": "Raf , Mek\r\n\r\n26.4, 13.2\r\n35.9, 16.5\r\n\r\n",
    "quotes": '"Raf","Mek"\n"26.4",13.2\n35.9,16.5',
    "byte order mark": "\ufeffRaf,Mek\n26.4,13.2\n35.9,16.5\n",
    "gzip": gzip.compress(b"Raf,Mek\n26.4,13.2\n35.9,16.5\n"),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text(tmp_path, text):
    assert read_table(_file(tmp_path, text)).to_dict("list") == EXPECTED


LABELLED = {
    "no name": (",Raf,Mek\na,26.4,13.2\nb,35.9,16.5\n", ["a", "b"]),
    "pandas": ("Unnamed: 0,Raf,Mek\n0,26.4,13.2\n1,35.9,16.5\n", [0, 1]),
    "id": ("id,Raf,Mek\n1,26.4,13.2\n2,35.9,16.5\n", [1, 2]),
    "R": ("Raf,Mek\nu,26.4,13.2\nv,35.9,16.5\n", ["u", "v"]),
}


@pytest.mark.parametrize(("text", "labels"), LABELLED.values(), ids=LABELLED)
def test_row_labels_are_no_variable(tmp_path, text, labels):
    with pytest.warns(TableWarning, match="row labels.*another name"):
        table = read_table(_file(tmp_path, text))
    assert table.to_dict("list") == EXPECTED
    assert table.index.tolist() == labels


def test_an_id_that_does_not_count_is_kept(tmp_path):
    assert read_table(_file(tmp_path, "id,Raf\n7,1.5\n3,2.5\n")).columns.tolist() == ["id", "Raf"]


def test_missing_values(tmp_path):
    table = read_table(_file(tmp_path, "a,b\n1,NA\n,2\n"))
    assert table.isna().to_numpy().tolist() == [[False, True], [True, False]]


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "cells.parquet"
    pd.DataFrame(EXPECTED).to_parquet(path)
    assert read_table(path).to_dict("list") == EXPECTED


def test_other_encoding(tmp_path):
    path = _file(tmp_path, "größe,b\n1,2\n3,5\n".encode("latin-1"))
    with pytest.raises(TableError, match=r"byte 2 \(line 1.*--encoding latin-1"):
        read_table(path)
    assert read_table(path, encoding="latin-1").columns.tolist() == ["größe", "b"]


ERRORS = {
    "empty": ("", "empty.*Export"),
    "blank": ("\n\n", "empty.*Export"),
    "header only": ("a,b\n", "header line only.*2 rows"),
    "ragged": ("a,b\n1,2\n3,4,5\n6\n", r"line 3 has 3 fields, 2 are expected \(and 1 more"),
    "one column": ("a\n1\n2\n", "no comma, semicolon or tab.*2 columns"),
    "repeated name": ("a,a\n1,2\n3,4\n", "'a' occurs more than once: rename"),
    "no name": ("a,,c\n1,2,3\n", "column number 2: add one"),
    "binary": (b"a\0b,c\n\0\0,1\n", "not a text file.*CSV"),
    "utf-16": ("a,b\n1,2\n".encode("utf-16"), "--encoding utf-16"),
    "title": ("Survey of 2020\na,b,c\n1,2,3\n", "'Survey of 2020'.*title has: delete"),
    "title, padded": ("Survey,,\n,,\na,b,c\n1,2,3\n", "'Survey'.*title has: delete"),
    "title, two columns": ("Survey\na,b\n1,2\n", "'Survey'.*title has: delete"),
    "millions": ("a;b\n1.234.567;2\n950;3\n", r"'a' holds '1\.234\.567'.*thousands"),
    "thousands and decimals": ("a;b\n1.234,5;2\n950;3\n", r"'a' holds '1\.234,5'.*thousands"),
    "thousands by blanks": ("a;b\n1 234;2\n950;3\n", r"'a' holds '1 234'.*thousands"),
    "damaged gzip": (b"\x1f\x8bxx", "damaged gzip"),
}


@pytest.mark.parametrize(("text", "said"), ERRORS.values(), ids=ERRORS)
def test_error_says_what_to_do(tmp_path, text, said):
    with pytest.raises(TableError, match=said):
        read_table(_file(tmp_path, text))


def test_missing_file_suggests_a_near_one(tmp_path):
    _file(tmp_path, TEXTS["comma"])
    with pytest.raises(TableError, match=r"does not exist.*'cells.csv'"):
        read_table(tmp_path / "cell.csv")
    with pytest.raises(TableError, match="Neither does the folder"):
        read_table(tmp_path / "nowhere" / "cells.csv")


def test_folder_kind_and_encoding(tmp_path):
    with pytest.raises(TableError, match=r"is a folder.*file in it"):
        read_table(tmp_path)
    with pytest.raises(TableError, match=r"\.xlsx.*save it as CSV"):
        read_table(_file(tmp_path, "x", "cells.xlsx"))
    with pytest.raises(TableError, match=r"\.json.*save it as CSV"):
        read_table(_file(tmp_path, "[{}]", "cells.json"))
    with pytest.raises(TableError, match=r"no encoding 'klingon'.*latin-1"):
        read_table(_file(tmp_path, TEXTS["comma"]), encoding="klingon")
    with pytest.raises(TableError, match="not a readable Parquet"):
        read_table(_file(tmp_path, "x", "cells.parquet"))


def test_numbers_as_header(tmp_path):
    with pytest.warns(TableWarning, match=r"26\.4.*add a header line"):
        read_table(_file(tmp_path, "26.4,13.2\n35.9,16.5\n1,2\n"))
    assert read_table(_file(tmp_path, "0,1\n35.9,16.5\n1,2\n")).shape == (2, 2)


ENDS = {
    "lines": ("a,b\n1.5,2\n2.5,4\n,\n,\n", "last 2 lines of"),
    "lines of a column": ("a;b\n1,5;2\n2,5;4\n;\n", "last 1 line of"),
    "columns": ("a,b,,\n1.5,2,,\n2.5,4,,\n", None),
    "delimiter in the rows": ("a,b\n1.5,2,\n2.5,4,\n", None),
    "delimiter in the header": ("a,b,\n1.5,2,\n2.5,4,\n", None),
    "line of Excel": ("sep=;\na;b\n1,5;2\n2,5;4\n", None),
}


@pytest.mark.parametrize(("text", "said"), ENDS.values(), ids=ENDS)
def test_what_excel_adds_is_no_data(tmp_path, recwarn, text, said):
    assert read_table(_file(tmp_path, text)).to_dict("list") == {"a": [1.5, 2.5], "b": [2, 4]}
    assert [said in str(w.message) for w in recwarn] == ([True] if said else [])


THOUSANDS = {
    "points": "a;b\n2.596;1\n950;2\n1.400;3\n;5\n",
    "commas": "a;b\n2,596;1\n950;2\n1,400;3\n0;4\n",
    "tabs": "a\tb\n2.596\t1\n950\t2\n1.412\t3\n-999\t4\n",
    "quoted": 'a,b\n"2,596",1\n950,2\n"1,400",3\n',
}


@pytest.mark.parametrize("text", THOUSANDS.values(), ids=THOUSANDS)
def test_thousands_that_may_be_read_as_decimals_are_remarked_upon(tmp_path, text):
    with pytest.warns(TableWarning, match=r"'a' \('2.596' beside '950'\).*separates thousands"):
        read_table(_file(tmp_path, text))


USUAL = {
    "three decimals": "a;b\n2.596;1\n1.250;2\n1.000;3\n",
    "below one": "a;b\n0.596;1\n1;2\n0.250;3\n",
    "other decimals": "a;b\n2.596;1\n1.25;2\n950;3\n",
    "code": "a;b\n2.596;1\n1.250;2\n999;3\n",
    "small whole numbers": "a;b\n2.596;1\n1.257;2\n1;3\n0;4\n",
    "large whole numbers": "a;b\n2.596;1\n1.250;2\n4950;3\n",
}


@pytest.mark.parametrize("text", USUAL.values(), ids=USUAL)
def test_usual_decimals_are_no_thousands(tmp_path, recwarn, text):
    read_table(_file(tmp_path, text))
    assert not recwarn.list


def test_a_path_is_written_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _file(tmp_path, ",a,b\nx,1,2\ny,2,5\n", "index.csv")
    with pytest.warns(TableWarning, match=r"^The first column \(''\) of index\.csv"):
        read_table("index.csv")
