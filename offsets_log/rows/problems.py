"""Rows of what is wrong with a log: what was seen in it, and what would end its load."""

from __future__ import annotations

from offsets_log.errors import Damage, MissingLogError
from offsets_log.events import TailFound
from offsets_log.log_format.completeness import Missing
from offsets_log.replay.problem import Problem
from offsets_log.rows.survey import describe_tail
from offsets_log.rows.tables import OFFSETS_PARTITION_COLUMN, Column, Row, partition_name, problem_row

PROBLEM_COLUMNS = (
    Column("kind", "string", "corrupt, unsupported, missing, tail, load (no broker would serve it) or start"),
    OFFSETS_PARTITION_COLUMN,
    Column("file", "string", "file that it is in, or next to"),
    Column("position", "bigint", "bytes from the start of the file"),
    Column("record_offset", "bigint", "offset of the record, or the first one that is missing"),
    Column("problem", "string", "what is wrong"),
)


def kind_of(damage: Damage) -> str:
    """Return what a piece is that could not be read."""
    if isinstance(damage.error, MissingLogError):
        return "missing"
    return "unsupported" if damage.is_unsupported else "corrupt"


def problem_of(seen: Damage | TailFound | Missing) -> Row:
    """Return what was seen as a row of `PROBLEM_COLUMNS`, without its offsets partition."""
    match seen:
        case Damage():
            return problem_row(seen) | {"kind": kind_of(seen)}
        case TailFound(segment, tail):
            return {"kind": "tail", "problem": describe_tail(seen), "file": segment.file, "position": tail.position}
        case Missing(first_offset=first_offset, file=file):
            return {"kind": "missing", "problem": seen.in_words(), "file": file, "record_offset": first_offset}


def load_problem(failure: Problem, profile_name: str, number: int | None) -> Row:
    """Return what would end the load of an offsets partition by the rules of a profile."""
    words = failure.in_words(profile_name, partition_name(number))
    return {"kind": "load", "problem": words, "record_offset": failure.record_offset, "offsets_partition": number}
