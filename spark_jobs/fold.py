"""Join the partial states of pieces anywhere on a cluster: partials → the memory of a coordinator as rows.

All rows of a group go to the same *bucket*; rows of no group go to every bucket of its log, or only to the first one.
`columnar.shuffle.partials.join` joins each bucket separately: markers of transactions are all that the groups of a log
share. So a task holds one bucket of a log's keys, about as many as a piece has.

The resulting rows have the columns of partials. Their kinds are: ``served`` and ``orphan`` for committed offsets of
groups that exist and that do not; ``open`` for pending ones; ``group`` for a group with its members in ``value``
(pickled, for `jobs` only); ``piece``, ``damage``, ``tail``, ``missing``, ``problem`` and ``topic_name`` as in partials,
of the pieces that count (those after a piece that a bound has stopped do not). ``log`` says in ``facts`` where the log
ends.

A ``producer`` of partials in a piece behind the last one is a marker that the log does not have: what another topic
tells of a transaction.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from offsets_log.columnar.materialize.arrow import TYPES, schema_of
from offsets_log.columnar.shuffle.partials import PARTIAL_COLUMNS, SCHEMA, Joined, join, problem_facts, table_of
from offsets_log.log_format.completeness import (
    Missing,
    is_beyond_cleaner,
    missing_before,
    missing_behind,
    missing_between,
)
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment
from offsets_log.replay.profile import PROFILES, Profile
from offsets_log.rows.tables import Column, Row
from spark_jobs.options import matcher
from spark_jobs.pieces import missing_row
from spark_jobs.source import schema_text

OF_GROUP = ("offset", "open", "cancelled", "group", "group_record")
OF_ALL = ("piece", "producer")
PASSED = ("damage", "tail", "missing", "problem", "topic_name")
MOST_BUCKETS = 256
OFFSETS = ("served", "orphan", "open")

MEMORY_COLUMNS = (
    *PARTIAL_COLUMNS,
    Column("unstable", "boolean", "whether an open transaction holds an offset of the same key"),
)
MEMORY_SCHEMA = schema_of(MEMORY_COLUMNS)


def memory(partials: DataFrame, profile: str, *, group: tuple[str, ...] = (), topic: tuple[str, ...] = ()) -> DataFrame:
    """Return what coordinators hold after loading, as rows; the module's docstring describes them.

    Args:
        partials: level ``partials`` of the data source, read with the same profile.
        group, topic: globs of what is shown. Problems that end a load stay in any case.
    """
    buckets = f.least(f.col("pieces"), f.lit(MOST_BUCKETS))
    of_group = f.array((f.abs(f.xxhash64("group")) % buckets).cast("int"))
    of_all = f.sequence(f.lit(0), buckets - 1)
    bucket = (
        f.when(f.col("kind").isin(*OF_GROUP), of_group)
        .when(f.col("kind").isin(*OF_ALL), of_all)
        .otherwise(f.array(f.lit(0)))
    )
    spread = partials.select(f.explode(bucket).alias("bucket"), *SCHEMA.names)
    return spread.groupBy("log", "bucket").applyInArrow(_joiner(profile, group, topic), schema_text(MEMORY_COLUMNS))


def _joiner(
    profile: str, group: tuple[str, ...], topic: tuple[str, ...]
) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    """Return the function that tasks run."""

    def join_one(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        rows = join_bucket(table.select(SCHEMA.names).cast(SCHEMA), PROFILES[profile], is_first=key[1].as_py() == 0)
        return _shown(_shown(rows, "group", group, (*OFFSETS, "group")), "topic", topic, OFFSETS)

    return join_one


def _shown(rows: pa.Table, name: str, globs: tuple[str, ...], kinds: tuple[str, ...]) -> pa.Table:
    """Drop rows of these kinds that no glob matches."""
    shows = matcher(globs)
    if shows is None:
        return rows
    hidden = [text for text in rows[name].unique().to_pylist() if text is not None and not shows(text)]
    is_hidden = pc.and_(pc.is_in(rows["kind"], pa.array(kinds)), pc.is_in(rows[name], pa.array(hidden, pa.string())))
    return rows.filter(pc.invert(is_hidden))


def join_bucket(table: pa.Table, profile: Profile, *, is_first: bool) -> pa.Table:
    """Join the rows of one bucket.

    Args:
        is_first: whether this bucket returns what belongs to no group.
    """
    pieces = counted_pieces(table.filter(pc.equal(table["kind"], "piece")))
    last = max(pieces, key=lambda piece: piece["piece"])["piece"]
    is_decided = pc.equal(table["piece"], table["pieces"])  # a marker behind the last piece
    table = table.filter(pc.or_(pc.less_equal(table["piece"], last), is_decided))
    kafka = pieces[0]["kafka"]
    joined = join(
        table.filter(pc.is_in(table["kind"], pa.array([*OF_GROUP, "producer"]))),
        profile,
        end_offset=end_offset(pieces),
        release=(kafka[0], kafka[1]) if kafka else None,
    )
    log, partition = pieces[0]["log"], pieces[0]["offsets_partition"]
    rows: list[Row] = [
        *({"kind": "group", "group": name, "value": pickle.dumps(group)} for name, group in joined.groups.items()),
        *({"kind": "problem", "facts": json.dumps(problem_facts(problem))} for problem in joined.problems),
    ]
    if is_first:
        rows += map(missing_row, _missing(pieces))
        rows.append({"kind": "log", "facts": json.dumps({"end_offset": end_offset(pieces)})})
    for row in rows:
        row |= {"log": log, "offsets_partition": partition}
    tables = [_offsets(joined), _with_unstable(table_of(rows))]
    if is_first:
        tables.append(_with_unstable(table.filter(pc.is_in(table["kind"], pa.array([*PASSED, "piece"])))))
    return pa.concat_tables(tables)


def counted_pieces(table: pa.Table) -> list[dict[str, Any]]:
    """Return the pieces of a log in order, up to the first that a bound has stopped, each with its facts."""
    found: list[dict[str, Any]] = []
    for row in table.sort_by("piece").select(["log", "piece", "offsets_partition", "facts"]).to_pylist():
        found.append(row | json.loads(row.pop("facts")))
        if found[-1]["is_stopped"]:
            break
    return found


def end_offset(pieces: list[dict[str, Any]]) -> int:
    """Return where the log continues; an active segment without records counts too."""
    ends: list[int] = [piece["end_offset"] for piece in pieces]
    if not pieces[-1]["is_stopped"] and pieces[-1]["log_end"] is not None:
        ends.append(pieces[-1]["log_end"])
    return max(ends)


def _missing(pieces: list[dict[str, Any]]) -> Iterator[Missing]:
    """Yield what is missing around a log's pieces, and between one piece's last segment and the next one's first."""
    first, last = pieces[0], pieces[-1]
    until = first["until_offset"]
    yield from (Missing(**facts) for facts in first["absent"])
    yield from missing_before(_log_of(first, first["first_file"], first["first_base_offset"]), until)
    for before, piece in pairwise(pieces):
        if piece["begins_a_file"]:
            yield from _between(before, piece["first_file"], piece["first_base_offset"], (before, piece))
    if last["is_stopped"]:
        return
    if last["last_file"] is not None:
        yield from _between(last, last["last_file"], last["base_of_last"], (last,))
    log = _log_of(last, last["last_file"] or last["first_file"], last["base_of_last"])
    yield from missing_behind(log, last["next_offset"], is_broken=last["is_broken"], until_offset=until)


def _log_of(piece: dict[str, Any], file: str, base_offset: int | None) -> PartitionLog:
    """Return a log of which one segment is known by name."""
    return PartitionLog(
        piece["offsets_partition"],
        (Segment(file, base_offset, b""),),
        checkpoints=Checkpoints(**piece["checkpoints"]),
        selection=piece["selection"],
    )


def _between(
    before: dict[str, Any], file: str, base_offset: int | None, beside: tuple[dict[str, Any], ...]
) -> Iterator[Missing]:
    """Yield what is missing before a file, given the pieces on both sides."""
    log = _log_of(before, file, base_offset)
    was_cleaned = any(
        piece["shows_cleaning"]
        and is_beyond_cleaner(piece["first_base_offset"], log.checkpoints, is_empty=not piece["batches"])
        for piece in beside
    )
    next_offset = max(before["next_offset"], before["first_base_offset"])
    yield from missing_between(
        log,
        log.segments[0],
        next_offset,
        is_broken=before["is_broken"],
        until_offset=before["until_offset"],
        was_cleaned=lambda: was_cleaned,
    )


def _with_unstable(table: pa.Table) -> pa.Table:
    return table.append_column(MEMORY_SCHEMA.field("unstable"), pa.nulls(len(table), TYPES["boolean"]))


def _offsets(joined: Joined) -> pa.Table:
    """Return committed and pending offsets."""
    committed = joined.table.take(pa.array(joined.committed))
    at = SCHEMA.get_field_index("applied_offset")
    committed = committed.set_column(at, SCHEMA.field(at), pa.array(joined.applied_offset))
    pending = joined.table.take(pa.array(joined.pending))
    exists = pc.is_in(committed["group"], pa.array(list(joined.groups), pa.string()))
    kinds = pc.if_else(exists, "served", "orphan")
    at = SCHEMA.get_field_index("kind")
    committed = committed.set_column(at, SCHEMA.field(at), kinds)
    committed = committed.append_column(MEMORY_SCHEMA.field("unstable"), pa.array(joined.is_unstable.astype(np.bool_)))
    return pa.concat_tables([committed, _with_unstable(pending)])
