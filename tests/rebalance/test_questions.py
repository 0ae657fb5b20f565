"""Questions in JSON that are wrong: each is refused with the field that is."""

from __future__ import annotations

from typing import Any

import pytest

from offsets_log.errors import InputError
from offsets_log.rebalance.cases import assignment_answer

GOOD: dict[str, Any] = {
    "assignor": "range",
    "topics": {"t": 2},
    "members": [{"member_id": "m", "topics": ["t"], "generation": 3}],
}


def changed(field: str, value: Any) -> dict[str, Any]:
    if field in GOOD or field in ("kafka", "replica_racks"):
        return GOOD | {field: value}
    return GOOD | {"members": [GOOD["members"][0] | {field: value}]}


def test_a_question_is_answered() -> None:
    assert assignment_answer(GOOD)["result"] == {"m": [("t", 0), ("t", 1)]}
    assert assignment_answer(changed("generation", None)), "null is nothing"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("assignor", 5), ("assignor", True), ("assignor", "none such"), ("kafka", 4.3), ("kafka", "newest"),
        ("topics", None), ("topics", ["t"]), ("members", None), ("members", {}), ("member_id", None),
        ("member_id", ["m"]), ("member_id", True), ("generation", "3"), ("generation", True), ("generation", 3.0),
        ("group_instance_id", 7), ("replica_racks", []),
    ],
)  # fmt: skip
def test_a_field_of_another_type_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InputError) as raised:
        assignment_answer(changed(field, value))
    assert raised.value.field == field
