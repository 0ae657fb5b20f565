"""The tools that offsets are written for: one row each, with its writer and its rule for rows it cannot be given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from offsets_log.restore import client_libraries, kaf, kafka_consumer_groups, kafkactl, rpk, spark
from offsets_log.restore.rows import Files
from offsets_log.rows.tables import Row


@dataclass(frozen=True, slots=True)
class Tool:
    """One kind of files.

    Attributes:
        name: also of the folder that they are in.
        refusal: why a row of compact must not be in them, since the tool would refuse or change it; None if it may. It
            looks at names and the columns of their raw bytes, and at the signs of partition and offset.
        files: paths and texts, of rows in the order of compact that it does not refuse.
    """

    name: str
    refusal: Callable[[Row], str | None]
    files: Callable[[Sequence[Row]], Files]


TOOLS = (
    Tool(kafka_consumer_groups.NAME, kafka_consumer_groups.refusal, kafka_consumer_groups.files),
    Tool(rpk.NAME, rpk.refusal, rpk.files),
    Tool(kaf.NAME, kaf.refusal, kaf.files),
    Tool(kafkactl.NAME, kafkactl.refusal, kafkactl.files),
    Tool(client_libraries.NAME, client_libraries.refusal, client_libraries.files),
    Tool(spark.NAME, spark.refusal, spark.files),
)


def accepted_by(tool: Tool, rows: Sequence[Row], refused: Sequence[Row] | None = None) -> Sequence[Row]:
    """The rows that the tool's files hold.

    Args:
        refused: what `refused_by_some` says of the rows, where that was asked before.
    """
    asked = refused_by_some(rows) if refused is None else refused
    without = {id(row) for row in asked if tool.refusal(row) is not None}
    return [row for row in rows if id(row) not in without] if without else rows


def left_out(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows that some tool's files do not hold: compact's columns, ``tool`` and ``reason``."""
    refused = refused_by_some(rows)
    for tool in TOOLS:
        for row in refused:
            reason = tool.refusal(row)
            if reason is not None:
                yield row | {"tool": tool.name, "reason": reason}


def refused_by_some(rows: Sequence[Row]) -> list[Row]:
    """Rows that not all tools take. They are asked once for all rows that differ in nothing they look at."""
    known: dict[tuple[object, ...], bool] = {}
    found = []
    for row in rows:
        names = row["group"], row["topic"], "group_base64" in row, "topic_base64" in row
        facts = (*names, row["partition"] < 0, row["committed_offset"] < 0)
        is_refused = known.get(facts)
        if is_refused is None:
            is_refused = known[facts] = any(tool.refusal(row) is not None for tool in TOOLS)
        if is_refused:
            found.append(row)
    return found
