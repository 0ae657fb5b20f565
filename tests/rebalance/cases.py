"""What several tests of assignors share: questions as JSON, put to our assignors."""

from __future__ import annotations

import lzma
from typing import Any

from offsets_log.rebalance.assignors.assignor import Assignment
from offsets_log.rebalance.cases import assignment_answer
from offsets_log.rebalance.generation import Generation, GenerationMember, Held
from tests.conftest import VECTORS, json_lines

Json = dict[str, Any]


def vectors(name: str) -> list[Json]:
    """The lines of a packed file of vectors."""
    return list(json_lines(lzma.decompress((VECTORS / f"{name}.jsonl.xz").read_bytes()).decode()))


def answered(case: Json) -> Json:
    """Our ``result`` for a question, as plain JSON has it."""
    question = {key: value for key, value in case.items() if key != "result"}
    return {member: [list(unit) for unit in units] for member, units in assignment_answer(question)["result"].items()}


def is_constrained(case: Json) -> bool:
    """Whether all members subscribe to the same topics (``A-11``)."""
    return len({frozenset(member["topics"]) for member in case["members"]}) == 1


def as_sets(result: Json | Assignment) -> dict[str, list[Any]]:
    return {member: sorted(map(list, units)) for member, units in result.items()}


def generation_of(assignment: Assignment, *, protocol: str, rows: dict[str, Json] | None = None) -> Generation:
    """A generation made by hand, of a classic group of consumers."""
    return Generation(
        group_id="g",
        kind="classic",
        offsets_partition=0,
        record_offset=0,
        number=1,
        timestamp_ms=0,
        protocol_type="consumer",
        protocol=protocol,
        held=Held(
            {member: GenerationMember(member, (rows or {}).get(member, {})) for member in assignment}, assignment
        ),
    )
