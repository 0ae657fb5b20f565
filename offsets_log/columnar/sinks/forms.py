"""Define formats of lines: rows of `rows.tables` by any writer, and the lines of kafka-dump-log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from offsets_log.columnar.sinks.marks import Form, quote_of
from offsets_log.errors import Damage
from offsets_log.events import Event, LogEvent
from offsets_log.log_format.partition_log import Segment
from offsets_log.messages.embedded import expand_assignment, expand_subscription
from offsets_log.rows import dump_log
from offsets_log.rows.tables import Row, decoded_row, json_bytes, to_base64

EXPANDED: dict[str, Callable[[str, str, bytes], Row | None]] = {
    "subscription": expand_subscription,
    "assignment": expand_assignment,
}
BEYOND = frozenset({"metadata", "classic_member_metadata"})
"""What `decoded_row` expands beside the fields of classic members."""


def form_of_rows(line: Callable[[Row], bytes], *, expand: bool = False) -> Form:
    """Return a format that writes rows of `decoded_row`; ``expand`` is that of it."""
    form = Form(lambda event: line(decoded_row(event, expand=expand)))
    if not expand or (quote := quote_of(form)) is None:
        return form
    return replace(form, expanded={name: partial(_shown, name, quote) for name in EXPANDED}, beyond=BEYOND)


def _shown(name: str, quote: bytes, protocol_type: str, protocol: str, data: bytes) -> bytes:
    expanded = EXPANDED[name](protocol_type, protocol, data)
    return json_bytes(to_base64(data) if expanded is None else expanded).replace(b'"', quote)


def dump_log_form(locate: Callable[[Damage], None], saw: Callable[[Event], None] = lambda event: None) -> Form:
    """Return the format with the lines of `offsets_log.rows.dump_log`.

    Args:
        locate: sets the position of damage that is printed.
        saw: takes each record that kernels do not print.
    """

    def line(event: Event) -> bytes:
        saw(event)
        return dump_log_line(event)

    def aside(event: LogEvent) -> bytes | None:
        if isinstance(event, Damage):
            locate(event)
        found = dump_log.event_line(event)
        return None if found is None else _ended(found)

    return Form(
        line=line,
        aside=aside,
        heading=_heading,
        batch_line=lambda batch, base_offset: _ended(dump_log.batch_line(batch, base_offset)),
        expanded={name: partial(_expanded, name) for name in dump_log.EXPANDED},
        expanded_in=len(dump_log.EXPANDED_TYPE).to_bytes(2) + dump_log.EXPANDED_TYPE.encode(),
    )


def dump_log_line(event: Event) -> bytes:
    """Return the line of a record."""
    return _ended(dump_log.record_line(event))


def _ended(line: str) -> bytes:
    return line.encode() + b"\n"


def _heading(segment: Segment) -> bytes:
    return b"".join(map(_ended, dump_log.heading(segment)))


def _expanded(name: str, protocol_type: str, protocol: str, data: bytes) -> bytes:
    expanded = dump_log.expand(name, data)
    return dump_log.json_text(to_base64(data) if expanded is None else expanded).encode()
