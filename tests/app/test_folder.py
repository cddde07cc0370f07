"""The folder of a run keeps any table and its settings, and folders of the first layout are still read."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest

from bayesstruct.app import folder as cli_folder
from bayesstruct.app.folder import InputError, Job

RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame(RNG.normal(size=(12, 3)), columns=[*"abc"])
EVERY = pd.DataFrame(
    {
        "number": [0.1, np.nan, 3.0, -1e300],
        "text": ["x", None, "y", "x, y"],
        "sizes": pd.Categorical(
            ["small", "large", None, "small"], ["small", "mid", "large"], ordered=True
        ),
        "city": pd.Categorical([3, 1, 3, None], [3, 1, 2]),
        "flag": [True, False, True, True],
    }
)
SQUARE = pd.DataFrame(np.eye(2), index=["u", "v"], columns=["u", "v"])
OPTIONS = {
    "model": "gaussian_graphical",
    "model_options": {"prior": "laplace", "rate": 2.0},
    "draws": 20,
    "tune": 0,
    "chains": 1,
    "seed": 3,
    "source": "t.csv",
}


def job(frame, **options):
    frame = cli_folder.as_stored(frame)
    return Job({**OPTIONS, "digest": cli_folder.digest(frame), **options}, frame)


def test_truth_values_stay_so():
    assert cli_folder.as_stored(EVERY)["flag"].dtype == bool


@pytest.mark.parametrize("frame", [NUMBERS, EVERY, SQUARE], ids=["numbers", "every", "square"])
def test_a_table_comes_back_as_it_was(frame, tmp_path):
    cli_folder.write(tmp_path, job(frame))
    found = cli_folder.read(tmp_path)
    pd.testing.assert_frame_equal(found.frame, cli_folder.as_stored(frame))
    for name, column in frame.items():
        assert found.frame[name].isna().tolist() == column.isna().tolist()
        assert found.frame[name].dropna().tolist() == column.dropna().tolist()
        if isinstance(column.dtype, pd.CategoricalDtype):
            assert found.frame[name].dtype == column.dtype
    assert found.options == job(frame).options
    assert [*found.frame.index] == [*frame.index]


def test_labels_are_in_the_fingerprint():
    one = cli_folder.digest(pd.DataFrame({"a": ["x", "y"]}))
    other = cli_folder.digest(pd.DataFrame({"a": ["x", "z"]}))
    numbers = cli_folder.digest(pd.DataFrame({"a": [0.0, 1.0]}))
    assert len({one, other, numbers}) == 3


def first_layout(folder, frame):
    """Write a folder as the first version of the command did."""
    names = json.dumps([*frame.columns]).encode()
    digest = hashlib.blake2b(names + frame.to_numpy().tobytes(), digest_size=16).hexdigest()
    settings = {
        "format": 1,
        "columns": [*frame.columns],
        "model": "gaussian_graphical",
        "prior": "laplace",
        "draws": 20,
        "tune": 0,
        "chains": 1,
        "seed": 3,
        "edge_probability": None,
        "rate": 2.0,
        "log": False,
        "encoding": "utf-8",
        "source": "t.csv",
        "digest": digest,
        "notes": [],
        "versions": {},
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    np.savez_compressed(folder / "table.npz", values=frame.to_numpy())


def test_a_folder_of_the_first_layout_is_read(tmp_path):
    first_layout(tmp_path, NUMBERS)
    found = cli_folder.read(tmp_path)
    pd.testing.assert_frame_equal(found.frame, NUMBERS)
    assert found.options["model_options"] == {"prior": "laplace", "rate": 2.0}
    assert found.options["given"] == [["prior", "laplace"], ["rate", "2.0"]]
    assert not found.options["missing"] and not found.options["cov"]
    (tmp_path / "run").mkdir()
    with pytest.raises(InputError, match="unfinished run"):  # and not another one
        cli_folder.refuse_other(tmp_path, job(NUMBERS))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"model": "ising"}, "model gaussian_graphical there, ising here"),
        ({"model_options": {"prior": "spike_slab"}}, "prior laplace there, spike_slab here; rate 2.0 there, not given here"),
        ({"draws": 30}, "draws 20 there, 30 here"),
        ({"digest": "other"}, "another version of the table"),
        ({"digest": "other", "source": "u.csv"}, "table t.csv there, u.csv here"),
    ],
)  # fmt: skip
def test_another_run_is_told_by_what_differs(changed, says, tmp_path):
    cli_folder.write(tmp_path, job(NUMBERS))
    with pytest.raises(InputError, match=says):
        cli_folder.refuse_other(tmp_path, job(NUMBERS, **changed))


def test_damaged_folders_are_refused(tmp_path):
    cli_folder.write(tmp_path, job(NUMBERS))
    settings = (tmp_path / cli_folder.SETTINGS).read_text()
    for old, new in (('"gaussian_graphical"', '"isong"'), ('"draws": 20', '"draws": "many"')):
        (tmp_path / cli_folder.SETTINGS).write_text(settings.replace(old, new))
        with pytest.raises(InputError, match=r"cannot be read .*: start again in another folder"):
            cli_folder.read(tmp_path)
    (tmp_path / cli_folder.SETTINGS).write_text(settings)
    whole = (tmp_path / cli_folder.TABLE).read_bytes()
    (tmp_path / cli_folder.TABLE).write_bytes(whole[:90])
    with pytest.raises(InputError, match="start again in another folder"):
        cli_folder.read(tmp_path)
