"""Options that `clean` and `repair` share, and their report about each partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from offsets_log_cli.options import (
    AS_PARTITION,
    OFFSETS_PARTITION,
    QUIET,
    SHOW_PROGRESS,
    ReadOptions,
    gather,
    report_option,
)
from offsets_log_cli.shown_options import WIDE

if TYPE_CHECKING:
    from offsets_log.rows.tables import Row


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderOptions:
    """The value of `folder_options`: what is read, the new directory, and the report about each partition.

    Attributes:
        to: the directory; None with `dry_run`.
        topic_id: the topic's id in the cluster that gets the folders.
        output: the format of the report.
    """

    paths: tuple[str, ...]
    to: str | None
    dry_run: bool
    topic_id: str | None
    offsets_partition: tuple[int, ...]
    as_partition: int | None
    output: str | None
    wide: bool
    progress: bool | None
    quiet: bool

    def check_target(self) -> None:
        """Fail unless there is either a directory to write or --dry-run."""
        if self.to is not None and self.dry_run:
            raise click.UsageError("--dry-run and --to exclude each other: one writes nothing, the other a directory")
        if self.to is None and not self.dry_run:
            raise click.UsageError("give --to DIR, or --dry-run to write nothing")

    def reading(self, **more: Any) -> ReadOptions:
        """Return what is to be read, and how; more of it as a command's own options say."""
        return ReadOptions(
            paths=self.paths,
            as_partition=self.as_partition,
            offsets_partition=self.offsets_partition,
            input_format="segments",
            progress=self.progress,
            quiet=self.quiet,
            **more,
        )


folder_options = gather(
    "asked",
    FolderOptions,
    (OFFSETS_PARTITION, AS_PARTITION, report_option("table", "jsonl", "csv"), WIDE, SHOW_PROGRESS, QUIET),
)
"""Options of commands that write folders of partitions; PATH, --to, --dry-run and --topic-id are the command's own."""


def tell(
    rows: Iterable[Row], columns: Sequence[str], asked: FolderOptions, shown_as: Mapping[str, Callable[[Row], str]]
) -> None:
    """Write a row a partition to standard output.

    Args:
        asked: in which format, and how wide.
        shown_as: columns that hold lists → how one item of the list is put in words, in a table.
    """
    from offsets_log_cli.options import Output
    from offsets_log_cli.output import chosen_format, destination, write_rows

    to_stdout = Output(output=asked.output, to=None, wide=asked.wide)
    if chosen_format(to_stdout) == "table":
        rows = [
            row | {name: "; ".join(map(words, row[name])) for name, words in shown_as.items() if row[name] is not None}
            for row in rows
        ]
    with destination(to_stdout) as stream:
        write_rows(stream, rows, columns, to_stdout)
