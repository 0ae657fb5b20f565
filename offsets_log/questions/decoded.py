"""All records in log order, decoded: keys and values as Kafka's own JSON has them, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from offsets_log.kafka_releases import NEWEST
from offsets_log.questions.records import FILL, PART_BYTES
from offsets_log.questions.shown_events import ShownEvents
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import DECODE_COLUMNS, Column, Row, decoded_row
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.columnar.sinks.marks import Form
    from offsets_log.session.session import Session


class Decoded:
    """The question; of `questions.question.Lines` all but tables, which `questions.records.Records` has.

    Args:
        expand: whether subscriptions, assignments, user data and known commit metadata are decoded too.
    """

    columns: Sequence[Column] = DECODE_COLUMNS
    needed = Needed(
        ("offsets_partition", "record_offset", "name"),
        ("key", "value", "timestamp_ms", "error", "control"),
    )  # fmt: skip

    def __init__(self, session: Session, *, expand: bool = False) -> None:
        self._session, self._expand = session, expand
        self._shown = ShownEvents(session)
        self._is_dump_log = False

    @property
    def is_bulk(self) -> bool:
        """Whether kernels read; under --strict nothing is to be shown of what comes after the first damage."""
        return self._session.engine.is_bulk_for(FILL) and not self._session.inputs.scope.strict

    def rows(self) -> Iterator[Row]:
        """Yield the answer row by row. Raises OffsetsLogError."""
        for log in self._session.inputs.logs:
            for event in self._shown.records_of(log):
                yield decoded_row(event, expand=self._expand)

    def lines(self, line: Callable[[Row], bytes]) -> Iterator[bytes | memoryview]:
        """Yield the lines of all rows, as `questions.question.Lines.lines`."""
        if not self.is_bulk:
            return map(line, self.rows())
        from offsets_log.columnar.sinks.forms import form_of_rows

        return self._in_bulk(form_of_rows(line, expand=self._expand))

    def dump_log(self) -> Iterator[bytes | memoryview]:
        """Yield the lines of kafka-dump-log, many at a time. Raises OffsetsLogError."""
        self._is_dump_log = True
        if self.is_bulk:
            from offsets_log.columnar.sinks.forms import dump_log_form

            yield from self._in_bulk(dump_log_form(self._session.inputs.locate, self._shown.saw))
            return
        from offsets_log.rows.dump_log import iter_lines

        self._shown = ShownEvents(self._session, with_batches=True)
        for log in self._session.inputs.logs:
            for line in iter_lines(self._shown.watch(log)):
                yield line.encode() + b"\n"

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        session, records = self._session, self._shown.records
        if self._is_dump_log and self._shown.has_unknown_tags:
            session.account.say(
                f"some records have tagged fields that no release up to {NEWEST.name} has: these lines leave them out, "
                "decode -o jsonl shows them"
            )
        session.account.finish(f"{counted(records, 'record')}, {session.inputs.partitions_read}", found=records)

    def _in_bulk(self, form: Form) -> Iterator[bytes | memoryview]:
        """Yield the text of all records that are shown; that of a part waits for the parts before it."""
        from offsets_log.columnar.events.export import Destination
        from offsets_log.columnar.sinks.lines import Press
        from offsets_log.questions.text_parts import Parts

        with Parts() as parts:
            exported = self._session.engine.export_in_bulk(
                Destination(parts.keep, PART_BYTES),
                is_filtered=True,
                chunk=Press(form).chunk,
                also=("sinks.kernels.write_lines",),
            )
            for number, records in exported:
                self._shown.records += records
                yield from parts.take(number)
