"""The partitions that groups and keys of messages belong to, by their names and a number of partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from offsets_log.investigate.where import where_row
from offsets_log.log_format.java_text import decode_string
from offsets_log.rebalance.partitioners import partition_for_key
from offsets_log.replay.partition_for import DEFAULT_PARTITIONS
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.investigate.where import Question
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session

Say = Callable[[str], None]


def homes_of(asked: Iterable[Question], say: Say) -> Iterator[Row]:
    """Yield a row of `WHERE_COLUMNS` for each group, as they are asked for; say at the end what was assumed."""
    is_assumed = False
    for group, count in asked:
        is_assumed |= count is None
        yield where_row(group, count or DEFAULT_PARTITIONS)
    if is_assumed:
        _say_of_default("__consumer_offsets", "--partitions", say)


def counted_by(session: Session, asked: Iterable[Question]) -> Iterator[Question]:
    """Return the questions with as many partitions as a copy shows, where none are given."""
    shown, shown_by = session.inputs.count_shown()
    if shown:
        session.account.say(f"__consumer_offsets has {counted(shown, 'partition')}, as {shown_by}")
    return ((group, count or shown or None) for group, count in asked)


def homes_of_keys(keys: Iterable[bytes], partitions: int | None, say: Say) -> Iterator[Row]:
    """Yield a row of `KEY_COLUMNS` for each key of a message; say at the end what was assumed.

    Args:
        partitions: how many the topic has; None for the default.
    """
    for raw in keys:
        yield {"key": decode_string(raw), "partition": partition_for_key(raw, partitions or DEFAULT_PARTITIONS)}
    if partitions is None:
        _say_of_default("the topic", "--topic-partitions", say)


def _say_of_default(topic: str, option: str, say: Say) -> None:
    say(f"assuming that {topic} has {DEFAULT_PARTITIONS} partitions; {option} N says otherwise")
