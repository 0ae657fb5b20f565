"""``--engine spark``: the rows of `compact` made by Spark, told like those of this machine.

Needs the extra ``spark`` and Java. What could not be read or is missing, and tails, come with the rows and are told the
same way.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from offsets_log.columnar.finish.arrow import SORTED_BY
from offsets_log.errors import CorruptLogError, Damage, UnsupportedError
from offsets_log.log_format.completeness import Missing
from offsets_log.tables import COMPACT_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

    from cli.options import Reading
    from cli.session import Session

RAW_NAMES = ("group_base64", "topic_base64", "metadata_base64")


def compact_table(session: Session, reading: Reading, master: str | None, profile: str, *, orphans: bool) -> pa.Table:
    """The answer of `compact` as one sorted table, with the column ``unstable``.

    Raises:
        UsageError: Spark is not installed.
        OffsetsLogError: something cannot be read; under ``--strict`` the first damage.
    """
    try:
        from spark_jobs.options import Reading as SparkReading
        from spark_jobs.run import joined_table, open_spark
    except ImportError as error:
        raise click.UsageError(f"--engine spark needs the extra: pip install 'offsets-log[spark]' ({error})") from None

    asked = SparkReading(
        paths=reading.paths,
        level="partials",
        group=reading.group,
        topic=reading.topic,
        offsets_partition=reading.offsets_partition,
        as_partition=reading.as_partition,
        until_offset=reading.until_offset,
        until_time=reading.until_time,
        profile=profile,
        kafka=reading.kafka,
        members=False,
    )
    with open_spark(master or "local[*]") as spark:
        rows = joined_table(spark, asked)
    _tell(session, rows)
    kinds = ["served"] + ["orphan"] * orphans
    table = rows.filter([kind in kinds for kind in rows["kind"].to_pylist()]).sort_by(SORTED_BY)
    raw = [name for name in RAW_NAMES if table[name].null_count < len(table)]
    return table.select([column.name for column in COMPACT_COLUMNS] + raw + ["unstable"])


def _tell(session: Session, rows: pa.Table) -> None:
    """What was seen on the way, in log order."""
    columns = ["kind", "log", "piece", "offsets_partition", "facts", "value"]
    seen = [row for row in rows.select(columns).to_pylist() if row["kind"] in _SEEN]
    session.partitions = len({row["log"] for row in seen if row["kind"] == "piece"})
    for row in sorted(seen, key=lambda row: (row["log"] or 0, row["piece"] or 0)):
        _SEEN[row["kind"]](session, row, json.loads(row["facts"]))


def _tell_piece(session: Session, row: dict[str, Any], facts: dict[str, Any]) -> None:
    for note in facts["notes"]:
        session.say(note)


def _tell_damage(session: Session, row: dict[str, Any], facts: dict[str, Any]) -> None:
    kind = UnsupportedError if facts["kind"] == "unsupported" else CorruptLogError
    place = {name: facts[name] for name in ("file", "position", "record_offset", "field")}
    damage = Damage(kind(facts["problem"], **place), row["value"])
    if not damage.is_of_content:
        session.damaged_logs.add(row["log"])
    session.on_damage(damage)


def _tell_tail(session: Session, row: dict[str, Any], facts: dict[str, Any]) -> None:
    from spark_jobs.pieces import tail_of

    session.damaged_logs.add(row["log"])
    session.tell(tail_of(facts))


def _tell_missing(session: Session, row: dict[str, Any], facts: dict[str, Any]) -> None:
    session.tell(Missing(**facts))


_SEEN = {"piece": _tell_piece, "damage": _tell_damage, "tail": _tell_tail, "missing": _tell_missing}
