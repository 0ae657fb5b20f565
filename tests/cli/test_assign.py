"""``offsets-log assign`` and ``vote`` as a user has them: options, questions on standard input, rounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.rebalance.assignors import ASSIGNORS
from offsets_log_cli.assign import ASSIGNOR_NAMES
from offsets_log_cli.main import main
from tests.conftest import json_lines
from tests.rebalance.cases import vectors


def run(*arguments: str, text: str = "") -> Result:
    return CliRunner().invoke(main, list(arguments), input=text.encode(), catch_exceptions=False)


def lines(*arguments: str, text: str = "") -> list[dict[str, Any]]:
    result = run(*arguments, text=text)
    assert result.exit_code == 0, result.stderr
    return list(json_lines(result.stdout))


def test_the_names_are_those_of_the_assignors() -> None:
    assert tuple(ASSIGNORS) == ASSIGNOR_NAMES


def test_what_if() -> None:
    found = lines("assign", "--assignor", "range", "--topics", "t=5,u=2", "--members", "m1:t,m2:t+u")
    assert found == [
        {"member_id": "m1", "partitions": 3, "assigned": [["t", 0], ["t", 1], ["t", 2]]},
        {"member_id": "m2", "partitions": 4, "assigned": [["t", 3], ["t", 4], ["u", 0], ["u", 1]]},
    ]


@pytest.mark.parametrize("name", ["assignors-2.8.2", "assignors-4.3.0"])
def test_questions_on_standard_input_come_back_with_kafkas_results(name: str) -> None:
    """The whole lines, byte for byte."""
    cases = vectors(name)[::7]
    questions = [{key: value for key, value in case.items() if key != "result"} for case in cases]
    text = "".join(json.dumps(question, ensure_ascii=False) + "\n" for question in questions)
    result = run("assign", "-", text=text)
    assert result.stdout == "".join(
        json.dumps(case, ensure_ascii=False, separators=(",", ":")) + "\n" for case in cases
    )


def test_options_fill_in_what_a_question_does_not_say() -> None:
    question = json.dumps({"topics": {"t": 3}, "members": [{"member_id": m, "topics": ["t"]} for m in ("a", "b")]})
    (found,) = lines("assign", "-", "--assignor", "roundrobin", "--kafka", "2.8", text=question)
    assert found["result"] == {"a": [["t", 0], ["t", 2]], "b": [["t", 1]]}


BAD_QUESTIONS = {
    "xx": "it is not JSON",
    "[]": "it is not a JSON object",
    "{}": "members",
    '{"members":[],"topics":{"t":true}}': "field t: True",
    '{"members":[],"topics":{"t":99999999999}}': "10000000",
    '{"members":[{"topics":[]}],"topics":{}}': "member_id",
    '{"members":[{"member_id":"m","topics":[1]}],"topics":{}}': "topics",
    '{"members":[{"member_id":"m","topics":[],"owned":[["t"]]}],"topics":{}}': "owned",
    '{"members":[{"member_id":"m","topics":[],"user_data_hex":"x"}],"topics":{}}': "user_data_hex",
    '{"members":[3],"topics":{}}': "JSON object",
    '{"assignor":"best","members":[],"topics":{}}': "best",
    '{"kafka":"new","members":[],"topics":{}}': "new",
    '{"members":[],"topics":{},"replica_racks":{"t":[3]}}': "t[0]",
    "[" * 100_000: "it is not JSON",
}


@pytest.mark.parametrize("question", BAD_QUESTIONS, ids=lambda text: text[:50])
def test_a_wrong_question_is_told_and_the_others_are_answered(question: str) -> None:
    good = '{"members":[],"topics":{}}'
    result = run("assign", "-", text=f"{question}\n{good}\n")
    assert result.exit_code == 3
    assert [row["result"] for row in json_lines(result.stdout)] == [{}]
    assert "line 1: " in result.stderr
    assert BAD_QUESTIONS[question] in result.stderr


def test_names_may_hold_anything() -> None:
    """Half a surrogate pair, line ends of other alphabets, control characters."""
    names = ["\ud83d", "a\u2028b", "\u0000", "ünï😀"]
    text = json.dumps({"topics": {"t": 4}, "members": [{"member_id": name, "topics": ["t"]} for name in names]})
    (found,) = lines("assign", "-", text=text + "\n")
    assert set(found["result"]) == set(names)


@pytest.mark.parametrize(
    "arguments",
    [
        ("assign",),
        ("assign", "-", "--members", "m:t"),
        ("assign", "--members", "m", "--topics", "t=1"),
        ("assign", "--members", "m:t,m:u", "--topics", "t=1"),
        ("assign", "--members", "m:t", "--topics", "t"),
        ("assign", "--members", "m:t", "--topics", "t=1", "--rounds", "-x"),
        ("assign", "--members", "m:t", "--topics", "t=1", "--rounds", "+m:t"),
        ("assign", "--members", "m:t", "--topics", "t=1", "--rounds", "x"),
        ("vote",),
        ("vote", "-", "--members", "m:range"),
    ],
    ids=" ".join,
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


def test_rounds_play_what_happens_when_members_leave_and_join() -> None:
    """Cooperative: the newcomer gets in generation 4 what others gave back in generation 3 (``A-19``)."""
    found = lines(
        "assign", "--assignor", "cooperative-sticky", "--topics", "t=6", "--members", "m1:t,m2:t,m3:t",
        "--rounds", "-m3,+m4:t", "--rounds", "+m5:t",
    )  # fmt: skip
    by_generation: dict[int, dict[str, int]] = {}
    for row in found:
        by_generation.setdefault(row["generation"], {})[row["member_id"]] = row["partitions"]
    assert by_generation == {
        1: {"m1": 2, "m2": 2, "m3": 2},
        2: {"m1": 2, "m2": 2, "m4": 2},
        3: {"m1": 2, "m2": 2, "m4": 1, "m5": 0},
        4: {"m1": 2, "m2": 2, "m4": 1, "m5": 1},
    }


def test_rounds_may_end_with_nobody_left_and_topics_may_grow() -> None:
    found = lines(
        "assign", "--assignor", "range", "--topics", "t=2", "--members", "m1:t,m2:t", "--rounds", "t=4",
        "--rounds", "-m1,-m2",
    )  # fmt: skip
    assert [(row["generation"], row["member_id"], row["partitions"]) for row in found] == [
        (1, "m1", 1),
        (1, "m2", 1),
        (2, "m1", 2),
        (2, "m2", 2),
        (3, None, 0),
    ]


@pytest.mark.parametrize(("profile", "name"), [("modern", "java"), ("classic", "scala")])
def test_votes_on_standard_input(profile: str, name: str) -> None:
    cases = vectors(f"protocol-vote-{name}")
    text = "".join(json.dumps({"members": case["members"]}) + "\n" for case in cases)
    found = lines("vote", "-", "--profile", profile, text=text)
    assert found == [{key: case[key] for key in ("members", "candidates", "selected")} for case in cases]


def test_a_vote_by_options() -> None:
    found = lines("vote", "--members", "m1:range+sticky,m2:sticky+range+mine")
    assert found == [
        {"protocol": "range", "candidate": True, "votes": 1, "selected": False},
        {"protocol": "sticky", "candidate": True, "votes": 1, "selected": True},
        {"protocol": "mine", "candidate": False, "votes": 0, "selected": False},
    ]
