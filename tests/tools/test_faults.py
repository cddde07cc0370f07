"""The list of seeded faults: each is one line that is there."""

from tools.faults import FAULTS, ROOT


def test_each_fault_is_one_line_of_a_file_that_there_is():
    for fault in FAULTS:
        assert (ROOT / fault.file).read_text(encoding="utf-8").count(fault.old) == 1, fault.name
        assert fault.old != fault.new and "\n" not in fault.old + fault.new


def test_each_fault_has_a_name_and_tests_of_its_own():
    assert len(FAULTS) >= 40
    assert len({fault.name.split(":")[0] for fault in FAULTS}) == len(FAULTS)
    for fault in FAULTS:
        assert fault.tests and all((ROOT / "tests" / name).exists() for name in fault.tests.split())
