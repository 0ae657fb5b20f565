"""Make a report's contents as one document: tables of rows, and lines of plots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from offsets_log.checking.findings import DAMAGE, DOUBT, FAILS, NOTE
from offsets_log.coordinator_document import Memory
from offsets_log.data_directory.directory import Identity
from offsets_log.data_directory.stranded import Stranded
from offsets_log.investigate.groups import GROUPS_COLUMNS
from offsets_log.investigate.writers import COUNT_COLUMNS
from offsets_log.release_names import rules_in_words
from offsets_log.report.bars import commit_bars
from offsets_log.report.heading import trust_in_words, when_in_words, whose_in_words
from offsets_log.report.lags import LAG_TABLE_COLUMNS
from offsets_log.report.lines import generation_lines, offset_lines
from offsets_log.report.offsets import Key, packed_offsets
from offsets_log.report.samples import Sampled
from offsets_log.restore import doubts
from offsets_log.restore.rescue import RescueOptions, what_was_read
from offsets_log.rows.tables import Row, partition_name

PAGE_GROUP_COLUMNS = (
    *(column.name for column in GROUPS_COLUMNS),
    "lag",
    *(column.name for column in COUNT_COLUMNS if column.name not in ("first_timestamp_ms", "last_timestamp_ms")),
    "generation",
    "rebalances",
    "group_base64",
)
TRANSACTION_COLUMNS = (
    "groups", "first_commit_timestamp_ms", "age_ms", "offsets", "producer_id", "producer_epoch", "offsets_partition",
    "first_record_offset",
)  # fmt: skip
PARTITION_COLUMNS = (
    "offsets_partition", "files", "size_bytes", "batches", "first_offset", "end_offset", "missing_offsets",
    "cleaned_until", "groups", "offsets", "loads",
)  # fmt: skip
PROBLEM_COLUMNS = ("severity", "problem", "file", "position", "record_offset")
DELETED, PENDING_ONLY = "deleted", "only in open transactions"
"""What stands as the state of a group that wrote and does not exist after a load."""
MOST_DAMAGES = 1000
GROUPS_OF_TRANSACTION = 20


@dataclass(frozen=True, kw_only=True)
class ReportInput:
    """What was found in the logs.

    Attributes:
        groups: rows of `GROUPS_COLUMNS`.
        writers: rows of `writers.top_rows` per group.
        begin_ms, end_ms: times of the first and the last record; None without a time.
        identities: of the data directories that the logs lie in.
        damages: rows of the first pieces that could not be read.
        corrupt, unsupported: total numbers of such pieces.
        lags: rows of `LAG_TABLE_COLUMNS`; none where no logs of other topics were given.
        lags_of_keys: the lag of each group, topic and partition.
        stranded: offsets that lead to no record in these.
        notes: remarks about the inputs, a sentence each.
    """

    memory: Memory
    groups: Sequence[Row]
    writers: Sequence[Row]
    sampled: Sampled
    asked: RescueOptions
    damages: Sequence[Row]
    corrupt: int
    unsupported: int
    begin_ms: int | None = None
    end_ms: int | None = None
    identities: Sequence[Identity] = ()
    lags: Sequence[Row] = ()
    lags_of_keys: Mapping[Key, int | None] = field(default_factory=dict)
    stranded: Sequence[Stranded] = ()
    notes: Sequence[str] = ()


def make_document(found: ReportInput, made_ms: int, **about: Any) -> Row:
    """Return all that the page shows.

    Args:
        made_ms: when the page is made.
        about: further facts about the report itself, by name.
    """
    served = {
        (value.group, value.topic, value.partition, part.log.offsets_partition): value
        for part in found.memory.parts
        for value in part.state.iter_served()
    }
    generations = generation_lines(found.sampled.generations)
    groups = list(_group_rows(found, generations))
    offsets = offset_lines(found.sampled.commits, served)
    transactions = list(_transaction_rows(found.memory, found.end_ms))
    trust, severity = _trust(found)
    partitions = [_partition_row(part) for part in found.memory.parts]
    return {
        "about": about
        | {
            "made_ms": made_ms,
            "when": when_in_words(found.begin_ms, found.end_ms, made_ms),
            "whose": whose_in_words(found.identities),
            "trust": trust,
            "severity": severity,
            "rules_of": rules_in_words(found.memory.profile.name),
            "groups": sum(row["type"] is not None for row in groups),
            "deleted_groups": sum(row["state"] == DELETED for row in groups),
            "offsets": len(served),
            "records": sum(row["records"] for row in found.writers),
            "size_bytes": sum(row["size_bytes"] for row in partitions),
            "offsets_partitions": len(partitions),
        }
        | _bounds(found.asked),
        "tables": {
            "problems": _table(PROBLEM_COLUMNS, _problem_rows(found)),
            "groups": _table(PAGE_GROUP_COLUMNS, groups),
            "transactions": _table(TRANSACTION_COLUMNS, transactions),
            "partitions": _table(PARTITION_COLUMNS, partitions),
            "lags": _table(LAG_TABLE_COLUMNS, found.lags),
        },
        "offsets": packed_offsets(found.memory, found.lags_of_keys, dict.fromkeys(row["group"] for row in groups)),
        "commits": commit_bars(found.sampled.commits),
        "lines": [
            [group, *_of_group(offsets.get(group), generations.get(group))]
            for group in sorted(offsets.keys() | generations.keys())
        ],
    }


def _bounds(asked: RescueOptions) -> Row:
    """Return the bounds and filters that the user asked for."""
    offsets = [
        str(offset) if partition is None else f"{partition}:{offset}" for partition, offset in asked.until_offsets
    ]
    bounds = {
        "only_groups": list(asked.groups),
        "only_topics": list(asked.topics),
        "only_offsets_partitions": sorted(asked.offsets_partitions),
        "until_record_offset": offsets,
        "until_timestamp_ms": asked.until_time_ms,
    }
    return {name: value for name, value in bounds.items() if value not in (None, [])}


def _table(columns: Sequence[str], rows: Iterable[Row]) -> Row:
    """Return rows as arrays, without the columns that are null in all of them."""
    rows = list(rows)
    shown = [name for name in columns if any(row.get(name) is not None for row in rows)]
    return {"columns": shown, "rows": [[row.get(name) for name in shown] for row in rows]}


# ---------------------------------------------------------------------------------------------- tables


def _group_rows(found: ReportInput, generations: Mapping[str, Row]) -> Iterator[Row]:
    """Yield groups that exist, then groups that only wrote: they are gone, or have only pending offsets."""
    writers = {row["group"]: row for row in found.writers}
    lags = {row["group"]: row["lag"] for row in found.lags}
    pending = {value.group for part in found.memory.parts for value in part.state.pending}
    seen = set()
    for row in found.groups:
        group = row["group"]
        seen.add(group)
        facts = {"lag": lags.get(group), "commit_age_ms": _age(row["last_commit_timestamp_ms"], found.end_ms)}
        yield writers.get(group, {}) | row | facts | _of_generations(generations.get(group))
    for group, row in writers.items():
        if group is not None and group not in seen:
            facts = {"state": PENDING_ONLY if group in pending else DELETED}
            yield dict.fromkeys(PAGE_GROUP_COLUMNS) | row | facts | _of_generations(generations.get(group))


def _age(time_ms: int | None, end_ms: int | None) -> int | None:
    return None if time_ms is None or end_ms is None else end_ms - time_ms


def _of_generations(line: Row | None) -> Row:
    if line is None:
        return {"generation": None, "rebalances": None}
    return {"generation": line["generations"][-1], "rebalances": line["rebalances"]}


def _transaction_rows(memory: Memory, end_ms: int | None) -> Iterator[Row]:
    """Yield open transactions, the oldest first, with their age when the log ends."""
    rows: dict[tuple[Any, ...], Row] = {}
    groups: dict[tuple[Any, ...], set[str]] = {}
    for part in memory.parts:
        for value in part.state.pending:
            key = part.log.offsets_partition, value.producer_id, value.producer_epoch
            row = rows.setdefault(
                key,
                {
                    "offsets_partition": key[0],
                    "producer_id": key[1],
                    "producer_epoch": key[2],
                    "first_commit_timestamp_ms": value.commit_timestamp_ms,
                    "offsets": 0,
                    "first_record_offset": value.record_offset,
                },
            )
            row["offsets"] += 1
            row["first_commit_timestamp_ms"] = min(row["first_commit_timestamp_ms"], value.commit_timestamp_ms)
            row["first_record_offset"] = min(row["first_record_offset"], value.record_offset)
            groups.setdefault(key, set()).add(value.group)
    for key, row in sorted(rows.items(), key=lambda item: item[1]["first_commit_timestamp_ms"]):
        names = sorted(groups[key])
        more = len(names) - GROUPS_OF_TRANSACTION
        age_ms = _age(row["first_commit_timestamp_ms"], end_ms)
        yield row | {
            "age_ms": age_ms,
            "groups": names[:GROUPS_OF_TRANSACTION] + ([f"and {more} more"] if more > 0 else []),
        }


def _partition_row(part: Any) -> Row:
    seen, log, state = part.found, part.log, part.state
    return {
        "offsets_partition": log.offsets_partition,
        "files": seen.files,
        "size_bytes": seen.size_bytes,
        "batches": seen.batches,
        "first_offset": seen.first_offset,
        "end_offset": seen.end_offset,
        "missing_offsets": seen.missing_offsets,
        "cleaned_until": log.cleaned_until,
        "groups": len(state.groups),
        "offsets": sum(1 for _ in state.iter_served()),
        "loads": "yes" if part.failure is None else "no",
    }


def _problem_rows(found: ReportInput) -> Iterator[Row]:
    """Yield what is wrong, the worst first, and what was not read."""
    yield from _of_loads(found.memory)
    yield from _of_damage(found)
    for words in (*_missing(found), *doubts.of_stranded(found.stranded)):
        yield {"severity": DOUBT, "problem": words}
    for words in (*found.notes, *_notes(found)):
        yield {"severity": NOTE, "problem": words}


def _missing(found: ReportInput) -> Iterator[str]:
    """Yield what of the topic is not here: partitions, and parts of their logs."""
    read = what_was_read(found.memory, found.asked)
    yield from doubts.of_partitions(read | {"groups": [{"group": row["group"]} for row in found.groups]})
    yield from doubts.of_logs(found.memory)


def _trust(found: ReportInput) -> tuple[str, str | None]:
    parts = found.memory.parts
    is_lost = any(missing.is_lost for part in parts for missing in part.found.missing)
    return trust_in_words(
        is_loaded=all(part.failure is None for part in parts),
        is_lacking=bool(is_lost or found.corrupt or found.unsupported or found.asked.absent),
        is_doubtful=any(_missing(found)),
    )


def _of_loads(memory: Memory) -> Iterator[Row]:
    for part in memory.parts:
        if part.failure is not None:
            name = partition_name(part.log.offsets_partition)
            yield {
                "severity": FAILS,
                "problem": part.failure.in_words(memory.profile.name, name),
                "record_offset": part.failure.record_offset,
            }


def _of_damage(found: ReportInput) -> Iterator[Row]:
    for words in doubts.of_damage(found.corrupt, found.unsupported):
        yield {"severity": DAMAGE, "problem": words}
    for row in found.damages[:MOST_DAMAGES]:
        yield {"severity": DAMAGE} | row
    if len(found.damages) > MOST_DAMAGES:
        yield {"severity": DAMAGE, "problem": "more pieces could not be read; `offsets-log check` names them all"}


def _notes(found: ReportInput) -> Iterator[str]:
    for part in found.memory.parts:
        name = partition_name(part.log.offsets_partition)
        if part.log.cleaned_until:
            yield (
                f"offsets partition {name}: below record offset {part.log.cleaned_until} superseded records were "
                "compacted away: lines have only what is left"
            )
        if missing_columns := sorted(part.log.missing_columns - {"position"}):
            yield f"offsets partition {name}: its source does not tell {', '.join(missing_columns)}"
    if found.sampled.untimed:
        yield f"{found.sampled.untimed} commits have no time, so the charts leave them out"


# ----------------------------------------------------------------------------------------------- plots


def _of_group(offsets: Row | None, generations: Row | None) -> Iterator[Any]:
    """Yield what the page knows of a group: its number of lines, the plotted lines, its generations."""
    yield offsets["count"] if offsets else 0
    yield [
        [line["topic"], line["partition"], line["commits"], _differences(line["times_ms"]), line["offsets"]]
        for line in (offsets["lines"] if offsets else ())
    ]
    yield [_differences(generations["times_ms"]), generations["generations"]] if generations else None


def _differences(times_ms: list[int]) -> list[int]:
    """Return the first time, and for each later one the difference from the one before."""
    return [later - earlier for earlier, later in zip([0, *times_ms], times_ms, strict=False)]
