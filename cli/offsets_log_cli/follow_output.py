"""What a command with ``--follow`` prints: JSON Lines, or a table on a terminal that is kept current."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from offsets_log.rows.tables import SPAN_SUFFIXES, TIME_SUFFIXES, Row, json_bytes
from offsets_log.words import shown_span, shown_time, visible
from offsets_log_cli.output import ensure_read


@dataclass(frozen=True, slots=True)
class Lines:
    """JSON Lines; whoever reads them sees whole ones only."""

    stream: IO[bytes]

    def show(self, rows: list[Row]) -> None:
        """Write a line for each row."""
        self.stream.write(b"".join(json_bytes(row) + b"\n" for row in rows))

    def write(self, lines: Iterator[memoryview]) -> None:
        """Write lines that are made already."""
        for some in lines:
            self.stream.write(some)

    def alert(self, row: Row) -> None:
        """Write an alert as a line like others."""
        self.show([row])

    def look(self) -> None:
        """Hand over what was written, or notice that nobody reads it any more."""
        self.stream.flush()
        ensure_read()


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table of all rows there are.

    Args:
        rows: what is to be shown now.
    """

    live: Live
    columns: Sequence[str]
    rows: Callable[[], list[Row]]

    def show(self, rows: list[Row]) -> None:
        """Do nothing: `look` shows all rows there are."""

    def write(self, lines: Iterator[memoryview]) -> None:
        """Do nothing, as `show`."""

    def alert(self, row: Row) -> None:
        """Print an alert above the table."""
        about = " ".join(str(row[name]) for name in ("group", "topic", "partition") if row[name] is not None)
        self.live.console.print(Text(visible(f"{row['rule']}: {about}: {row['what']}")))

    def look(self) -> None:
        """Draw the table again."""
        rows = self.rows()
        room = max(1, self.live.console.height - 5)
        more = f"{len(rows) - room} more" if len(rows) > room else None
        table = Table(*self.columns, box=SIMPLE_HEAD, caption=more)
        for row in rows[:room]:
            table.add_row(*(Text(_cell(name, row.get(name))) for name in self.columns))
        self.live.update(table, refresh=True)


def _cell(name: str, value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        if name.endswith(TIME_SUFFIXES):
            return shown_time(value)
        if name.endswith(SPAN_SUFFIXES):
            return shown_span(value)
    return visible(str(value))


@contextmanager
def live_table(columns: Sequence[str], rows: Callable[[], list[Row]]) -> Iterator[LiveTable]:
    """Show a table on the terminal until the end, and leave its last state there."""
    with Live(console=Console(), auto_refresh=False) as live:
        yield LiveTable(live, columns, rows)
