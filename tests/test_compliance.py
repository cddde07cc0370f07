"""The results of every model are those that are on record, see `tools/compliance.py`."""

import pytest

from tools import compliance

STORED = compliance.read()


@pytest.mark.chain
@pytest.mark.parametrize("case", [*compliance.CASES, "simulations"])
def test_results_are_those_on_record(case):
    assert case in STORED, "record it: python tests/tools/compliance.py record"
    assert compliance.differences(STORED[case], compliance.results(case), rtol=1e-6) == {}


def test_every_model_of_the_catalogue_is_on_record():
    from bayesstruct.models import catalogue

    recorded = {name for name, *_ in compliance.CASES.values() if not callable(name)}
    assert recorded == {one.name for one in catalogue()}


def test_a_changed_draw_is_seen():
    found = {name: values.copy() for name, values in STORED["gaussian"].items()}
    found["posterior/weight"][0, 3, 1] += 1e-4
    assert set(compliance.differences(STORED["gaussian"], found, rtol=1e-6)) == {"posterior/weight"}
    for change, seen in ((0.01, set()), (0.2, {"check/r_hat"})):
        ranked = STORED["gaussian"] | {"check/r_hat": STORED["gaussian"]["check/r_hat"] + change}
        assert set(compliance.differences(STORED["gaussian"], ranked, rtol=1e-6)) == seen
    del found["posterior/edge"]
    assert "posterior/edge" in compliance.differences(STORED["gaussian"], found, rtol=1e-6)
