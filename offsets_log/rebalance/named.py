"""Members and topics as short texts name them: ``m1:t+u,m2:t`` and ``t=12``."""

from __future__ import annotations

from collections.abc import Iterable

from offsets_log.errors import AskedError


def parsed_members(values: Iterable[str], example: str = "invoices+orders") -> dict[str, tuple[str, ...]]:
    """Return member id → the text that follows it, in order.

    Args:
        example: of such a text.

    Raises:
        AskedError: a text has another form, or a member is named twice.
    """
    found: dict[str, tuple[str, ...]] = {}
    for part in _parts(values):
        member_id, colon, names = part.rpartition(":")
        if not colon or not member_id:
            raise AskedError(f"{part!r} is not MEMBER:NAME+NAME, such as m1:{example}")
        if member_id in found:
            raise AskedError(f"the member {member_id!r} is named twice")
        found[member_id] = tuple(name for name in names.split("+") if name)
    return found


def parsed_topics(values: Iterable[str]) -> dict[str, int]:
    """Return topic → number of partitions.

    Raises:
        AskedError: a text has another form.
    """
    found: dict[str, int] = {}
    for part in _parts(values):
        topic, equals, number = part.rpartition("=")
        if not equals or not topic or not number.isdecimal() or len(number) > 9:
            raise AskedError(f"{part!r} is not TOPIC=PARTITIONS, such as invoices=12")
        found[topic] = int(number)
    return found


def shown_partitions(partitions: Iterable[tuple[str, int]]) -> str | None:
    """Return partitions for a table: ``invoices 0-5 7, orders 3``; None if there are none."""
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return ", ".join(f"{topic} {_runs(numbers)}" for topic, numbers in topics.items()) or None


def _runs(ascending: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for number in ascending:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return " ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _parts(values: Iterable[str]) -> list[str]:
    return [part.strip() for value in values for part in value.split(",") if part.strip()]
