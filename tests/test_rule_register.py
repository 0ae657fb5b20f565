"""The register of rules is true: what is cited is in it, and each rule acts somewhere and is held by a test."""

from __future__ import annotations

import re
import tomllib

import pytest

from offsets_log.rules import ID, PARTS, find, near, rules
from tests import rule_register as register
from tools.rule_reference import PAGE, reference

SURE = {"seen on a broker", "read in source", "inferred"}
HOLDS_FOR = {"Scala", "Java", "both", "broker log layer", "log cleaner", "client", "format"}


def test_every_id_that_is_cited_is_in_the_register() -> None:
    """In code, tests, tools and documents."""
    for name, text in (*register.sources(*register.PACKAGES, *register.OTHERS), *register.pages()):
        assert register.cited_ids(text) <= rules().keys(), name


def test_every_rule_is_held_by_the_test_it_names() -> None:
    assert register.failures() == []


def test_a_rule_has_a_test_or_a_reason_for_none() -> None:
    for id_, rule in rules().items():
        assert (rule.test is None) != (rule.not_offline is None), id_


def test_every_rule_acts_where_the_register_says_and_nowhere_else() -> None:
    """The modules that cite it; a rule that no replay of files can hold may have none."""
    citing: dict[str, set[str]] = {id_: set() for id_ in rules()}
    for name, text in register.sources(*register.PACKAGES):
        for id_ in register.cited_ids(text):
            citing[id_].add(name)
    for id_, rule in rules().items():
        assert set(rule.acts_in) == citing[id_], f"{id_}: make docs"
        assert rule.acts_in or rule.not_offline is not None, id_


def test_rules_that_users_see_say_what_they_mean_and_what_to_do() -> None:
    """And no others do."""
    shown = register.shown_ids()
    for id_, rule in rules().items():
        assert (rule.means is not None) == (rule.do is not None) == (id_ in shown), id_


def test_entries_are_whole_and_in_order() -> None:
    text = (register.ROOT / register.REGISTER / "register.toml").read_text(encoding="utf-8")
    assert list(tomllib.loads(text)) == list(rules())
    assert list(dict.fromkeys(rule.part for rule in rules().values())) == list(PARTS)
    for id_, rule in rules().items():
        assert ID.fullmatch(id_), id_
        assert (rule.sure in SURE, rule.holds_for in HOLDS_FOR, bool(rule.kafka)) == (True, True, True), id_
        assert all(re.fullmatch(r"(KAFKA|KIP)-\d+", change) for change in rule.changes), id_
        assert all(text.endswith(".") for text in (rule.says, rule.means or ".", rule.do or ".")), id_
        assert list(rule.acts_in) == sorted(rule.acts_in), id_
    numbers = [int(re.findall(r"\d+", id_)[0]) for id_, rule in rules().items() if rule.part == "L"]
    assert numbers == sorted(numbers)


def test_the_page_of_rules_is_up_to_date() -> None:
    """``make docs`` writes it."""
    assert PAGE.read_text(encoding="utf-8") == reference()


@pytest.mark.parametrize("spelt", ["B-9", "b-9", "B9", "replay:B-9"])
def test_an_id_is_found_however_it_is_spelt(spelt: str) -> None:
    found = find(spelt)
    assert found is not None
    assert found.id == "B-9"


def test_ids_of_records_need_no_prefix_and_unknown_ones_have_neighbours() -> None:
    assert [rule.id for text in ("records:Y4", "y4", "e.1", "cl-46") if (rule := find(text))] == [
        "records:Y4", "records:Y4", "E-23", "CL-46",
    ]  # fmt: skip
    assert find("B-99") is None
    assert near("B-99")[0] == "B-9"


# ------------------------------------------------------------------------------------- the check itself

HELD = '''
import pytest
from tests.builders import record_bytes

CASES = ["L-9: a case"]


@pytest.mark.parametrize("case", CASES)
def test_a(case):
    """``L-1``–``L-3``."""
    check(case)  # L-5


def check(case):
    assert case


def test_b():
    """``B-1``."""
    with pytest.raises(ValueError):
        int("x")
'''


@pytest.mark.parametrize(("id_", "name"), [("L-2", "test_a"), ("L-5", "test_a"), ("L-9", "test_a"), ("B-1", "test_b")])
def test_a_test_holds_what_it_cites_and_asserts(id_: str, name: str) -> None:
    assert register.why_no_proof(id_, name, HELD) is None


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("def test_a(", "def tested_a(", "no test"),
        ("def test_a(case):", "def test_a(case):\n    pytest.skip('later')", "skipped"),
        ("@pytest.mark.parametrize", "@pytest.mark.skip\n@pytest.mark.parametrize", "skipped"),
        ("@pytest.mark.parametrize", "@pytest.mark.skipif(True, reason='')\n@pytest.mark.parametrize", "skipped"),
        ("@pytest.mark.parametrize", "@pytest.mark.xfail\n@pytest.mark.parametrize", "skipped"),
        ("CASES =", "pytestmark = pytest.mark.skip\nCASES =", "skipped"),
        ("    assert case", "    return case", "asserts nothing"),
        ("    assert case", "    assert True", "asserts nothing"),
        ("    check(case)", "    print(case)", "asserts nothing"),
        ("L-9: a case", "a case", "does not cite"),
        ("def test_b():", "def test_a():", "asserts nothing|does not cite"),
    ],
)
def test_what_takes_the_proof_away_is_noticed(before: str, after: str, why: str) -> None:
    assert before in HELD
    found = register.why_no_proof("L-9", "test_a", HELD.replace(before, after, 1))
    assert found is not None
    assert re.search(why, found)


def test_a_file_that_pytest_does_not_collect_holds_nothing() -> None:
    assert register.why_not_held("L-9", "tests/builders.py::record_bytes") is not None
    assert register.why_not_held("L-9", "tests/replay/test_gone.py::test_rule") is not None
