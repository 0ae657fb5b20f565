"""Rows of ``compact``: which columns they have, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from offsets_log.session.decide import Open, say_of_decided, say_of_hanging
from offsets_log.session.lag import say_of_lag
from offsets_log.words import counted

if TYPE_CHECKING:
    from cli.options import Output
    from offsets_log.data_directory.copied_logs import CopiedLogs
    from offsets_log.replay.partial import OffsetAndMetadata
    from offsets_log.rows.tables import Row
    from offsets_log.session.rules import Rules
    from offsets_log.session.session import Session

NOT_IN_TABLES = frozenset({"topic_id", "log_start_offset", "lag_from"})
"""Columns that a table for people leaves out."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Columns that the rows have beside those of offsets.

    Attributes:
        unstable: whether they mark offsets under an open transaction.
        lag: tells the ends of partitions; None for rows without them.
        now_ms: the time to which ages count; None for that of the newest record.
        opened: gets the offsets of open transactions, as of `say_of_hanging`.
    """

    rules: Rules
    unstable: bool
    lag: CopiedLogs | None
    now_ms: int | None
    opened: Open = field(default_factory=list)


def write_committed(
    session: Session,
    output: Output,
    format_name: str,
    rows: list[Row],
    names: list[str],
    shown: Shown,
    alone: int = 0,
) -> None:
    """Write rows in a format other than Parquet, and report the result.

    Args:
        alone: what `count_alone` counts.
    """
    from cli.output import destination, write_rows

    if not shown.unstable:
        say_of_unstable(session, sum(row.pop("unstable") or 0 for row in rows))
        names = [name for name in names if name != "unstable"]
    say_of_alone(session, alone)
    say_of_hanging(session, shown.opened)
    if shown.lag is not None:
        from offsets_log.data_directory.lag import LAG_COLUMNS, with_lag

        rows = list(with_lag(shown.lag, rows, shown.now_ms))
        raw = [name for name in names if name.endswith("_base64")]
        names = [name for name in names if name not in raw] + [column.name for column in LAG_COLUMNS] + raw
    if format_name == "table":
        names = [name for name in names if name not in NOT_IN_TABLES]
    with destination(output, session.inputs.files) as stream:
        write_rows(stream, rows, names, format_name)
    say_of_lag(session, shown.lag)
    say_of_decided(session)
    session.account.tell_loads(shown.rules.name, {row["offsets_partition"] for row in rows})
    groups = len({row["group"] for row in rows})
    unknown = sum(row["committed_offset"] is None for row in rows)
    of_them = f" ({unknown} of them unknown)" if unknown else ""
    session.account.finish(
        f"{counted(len(rows), 'offset')}{of_them} of {counted(groups, 'group')}, {session.inputs.partitions_read}"
        f"{shown.rules.in_words()}",
        found=len(rows) + alone,
    )


def count_alone(pending: Iterable[OffsetAndMetadata], rows: Iterable[Row]) -> int:
    """Return how many keys have a pending offset and no row."""
    shown = {(row["group"], row["topic"], row["partition"]) for row in rows}
    return len({value.key for value in pending} - shown)


def say_of_alone(session: Session, count: int) -> None:
    """Report what `count_alone` counts."""
    if count:
        session.account.say(
            f"{counted(count, 'offset')} of open transactions {'is' if count == 1 else 'are'} not among these: nothing "
            "is committed there yet, or the group is gone: offsets-log rebuild --table pending"
        )


def say_of_unstable(session: Session, count: int) -> None:
    """Report offsets for which an open transaction holds others."""
    if count:
        session.account.say(
            f"of these offsets {counted(count, 'is', 'are')} under an open transaction (pending); --unstable marks them"
        )
