"""List the tools that offsets are written for: one row each, with its writer and its rule for rows it cannot take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from offsets_log.restore import client_libraries, kaf, kafka_consumer_groups, kafkactl, rpk, spark
from offsets_log.restore.rows import Files
from offsets_log.rows.tables import Row


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool and the files written for it.

    Attributes:
        name: the tool's name, and the name of the folder of its files.
        refusal: returns why the files must not contain a row of compact, because the tool would refuse or change it;
            None if they may. It depends only on names, on the columns of their raw bytes, and on the signs of partition
            and offset.
        files: yields paths and texts for rows in the order of compact that are not refused.
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
    """Return the rows that the tool's files contain.

    Args:
        refused: the result of `refused_by_some` for the rows, if it is known already.
    """
    asked = refused_by_some(rows) if refused is None else refused
    without = {id(row) for row in asked if tool.refusal(row) is not None}
    return [row for row in rows if id(row) not in without] if without else rows


def left_out(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows that some tool's files lack: compact's columns, ``tool`` and ``reason``."""
    refused = refused_by_some(rows)
    for tool in TOOLS:
        for row in refused:
            reason = tool.refusal(row)
            if reason is not None:
                yield row | {"tool": tool.name, "reason": reason}


def refused_by_some(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that not all tools take. Rows that look the same to all tools are checked once."""
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
