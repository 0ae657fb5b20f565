"""Where share groups are, as files: for ``AdminClient.alterShareGroupOffsets`` and ``kafka-share-groups.sh``.

Only start offsets can be set. What was accepted or rejected above them is delivered again, and stands in a file of its
own. The tool (tools/.../ShareGroupCommand.java, ``resetOffsets``) takes offsets since 4.4 (``K44-53``), from CSV of one
group; up to 4.3 it sets a partition to the beginning of its log, its end, or the first record from a time on, which may
be one of the same time before the start. Tests with the class of Kafka 4.4.0 showed:

- A group that does not exist is created; partitions that the file does not name stay as they are.
- Offsets outside a partition's log are moved to its start or end.
- A topic that does not exist stops the run, and nothing of the group is set; for a partition that does not exist it
  waits until its time is over, and ends likewise.
- It exits with 0 even then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from offsets_log.restore.names import file_name, is_topic_name, refused_in_arguments, shell_word
from offsets_log.restore.reset_script import EXIT, RESET
from offsets_log.restore.rows import Files, by_group, by_topic
from offsets_log.rows.tables import Row, to_json
from offsets_log.words import EPOCH

NAME = "share-groups"

_SCRIPT = """#!/bin/sh
# Sets where share groups start. The groups must have no members. First to look, then to do:
#   ./run.sh --bootstrap-server HOST:PORT [--command-config FILE] --dry-run
#   ./run.sh --bootstrap-server HOST:PORT [--command-config FILE] --execute
# A tool of 4.4 or later takes the offsets of the CSV files, a group in one call; an earlier one takes no offsets but
# times, a partition in one call. Both exit with 0 even where they failed: this script looks for the word "Error:" and
# exits with 1 then. KAFKA_SHARE_GROUPS names the tool if it is not in the PATH.
here=$(dirname "$0")
tool=${KAFKA_SHARE_GROUPS:-kafka-share-groups.sh}
"""
_IF_EXACT = 'if "$tool" --help 2>&1 | grep -q -e --from-file; then :\n'


def refusal(row: Row) -> str | None:
    """Return why no client can be given a row of the plan's share offsets; None if it can."""
    if row["status"] == "orphan":
        return "no group has this state: it is left over"
    if row["topic"] is None:
        return f"nothing names the topic of id {row['topic_id']}"
    if row["start_offset"] is None:
        return "no start offset was set: share.auto.offset.reset decides"
    if "group_base64" in row:
        return "the group's name is not UTF-8"
    return None if is_topic_name(row["topic"]) and row["partition"] >= 0 else "no broker can have such a partition"


def files(rows: Sequence[Row]) -> Files:
    """Yield the files of a plan's share offsets: offsets.json, a CSV of each group, run.sh, and what they leave out."""
    taken = [row for row in rows if refusal(row) is None]
    yield f"{NAME}/offsets.json", _offsets(taken)
    for group, own in by_group(taken):
        yield f"{NAME}/{_csv(group)}", (f"{row['topic']},{row['partition']},{row['start_offset']}\n" for row in own)
    yield f"{NAME}/run.sh", _script(taken)
    yield f"{NAME}/delivered-twice.jsonl", (f"{to_json(row)}\n" for row in delivered_twice(taken))
    left = (row | {"reason": refusal(row)} for row in rows if refusal(row) is not None)
    yield f"{NAME}/left-out.jsonl", (f"{to_json(row)}\n" for row in left)


def delivered_twice(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield runs of records that were done above the start of their partition."""
    for row in rows:
        for batch in row["redelivered"]:
            yield {"group": row["group"], "topic": row["topic"], "partition": row["partition"], **batch}


def count_delivered_twice(rows: Sequence[Row]) -> int:
    """Return how many records these are."""
    return sum(run["last_offset"] - run["first_offset"] + 1 for run in delivered_twice(rows))


def _offsets(rows: Sequence[Row]) -> Iterator[str]:
    groups = {
        group: {topic: {str(row["partition"]): row["start_offset"] for row in same} for topic, same in by_topic(own)}
        for group, own in by_group(rows)
    }
    yield to_json(groups, indent=1) + "\n"


def _csv(group: str) -> str:
    return f"{file_name(group)}.csv"


def _script(rows: Sequence[Row]) -> Iterator[str]:
    yield _SCRIPT + RESET + _IF_EXACT
    for group, _ in by_group(rows):
        if refused_in_arguments(group):
            yield f"# {to_json(group)}: no argument can hold the NUL in its name\n"
        else:
            yield f'reset "$@" --group={shell_word(group)} --from-file "$here"/{shell_word(_csv(group))}\n'
    yield "else :\n"
    for row in rows:
        yield _by_time(row)
    yield f"fi\n{EXIT}"


def _by_time(row: Row) -> str:
    where, to = f"{row['topic']}:{row['partition']}", _place(row)
    if refused_in_arguments(row["group"]):
        return f"# {where} of a group with a NUL in its name, which no argument can hold\n"
    if to is None:
        start = row["start_offset"]
        return f"# {where} of {to_json(row['group'])}: the copy does not tell when record {start} was written\n"
    return f'reset "$@" --group={shell_word(row["group"])} --topic={where} {to}\n'


def _place(row: Row) -> str | None:
    """Return the start as the tool takes it; None where the copy does not tell."""
    start = row["start_offset"]
    if row["log_end_offset"] is not None and start >= row["log_end_offset"]:
        return "--to-latest"
    if row["log_start_offset"] is not None and start <= row["log_start_offset"]:
        return "--to-earliest"
    time_ms = row["start_timestamp_ms"]
    if time_ms is None or time_ms < 0:
        return None
    try:
        moment = EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return None
    return f"--to-datetime {moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03}"
