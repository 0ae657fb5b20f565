"""The tools that offsets are written for: one row each, with its writer and its rule for rows it cannot be given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from offsets_log.restore import client_libraries, kaf, kafka_consumer_groups, kafkactl, rpk, spark
from offsets_log.restore.rows import Files
from offsets_log.tables import Row


@dataclass(frozen=True, slots=True)
class Tool:
    """One kind of files.

    Attributes:
        name: also of the folder that they are in.
        refusal: why a row of compact must not be in them, since the tool would refuse or change it; None if it may.
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


def accepted_by(tool: Tool, rows: Sequence[Row]) -> list[Row]:
    """The rows that the tool's files hold."""
    return [row for row in rows if tool.refusal(row) is None]


def left_out(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows that some tool's files do not hold: compact's columns, ``tool`` and ``reason``."""
    for tool in TOOLS:
        for row in rows:
            reason = tool.refusal(row)
            if reason is not None:
                yield row | {"tool": tool.name, "reason": reason}
