"""``offsets-log pull``: a byte-exact copy of ``__consumer_offsets`` from a live cluster, over the network."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cli.command_config import BOOTSTRAP_SERVER, COMMAND_CONFIG
from cli.follow_options import METRICS_PORT
from cli.options import OFFSETS_PARTITION, QUIET, SHOW_PROGRESS, Output, report_option
from cli.signals import ended_by_signals, stopping

if TYPE_CHECKING:
    from offsets_log.pulling.copy import Copy
    from offsets_log.pulling.run import Pulling


@click.command(
    "pull",
    epilog="Examples: offsets-log pull --bootstrap-server localhost:9092 --to copy · "
    "offsets-log pull --bootstrap-server broker:9093 --command-config client.properties --to copy -p 3 · "
    "offsets-log pull --bootstrap-server localhost:9092 --to copy --max-bytes-per-second 5000000 "
    "--with-transaction-state",
)
@BOOTSTRAP_SERVER
@click.option(
    "--to", metavar="DIR", required=True, type=click.Path(file_okay=False),
    help="New directory, or that of an earlier run, which is continued.",
)  # fmt: skip
@OFFSETS_PARTITION
@COMMAND_CONFIG
@click.option(
    "--max-bytes-per-second", metavar="N", type=click.IntRange(min=1),
    help="Limit of the total rate, from all brokers together; by default none, with one request at a time to each "
         "broker.",
)  # fmt: skip
@click.option(
    "--rack",
    metavar="R",
    default="",
    help="This machine's rack (client.rack): a replica in the same rack is read if there is one.",
)
@click.option("--with-transaction-state", is_flag=True, help="Copy __transaction_state too: who has open transactions.")
@click.option("--with-share-state", is_flag=True, help="Copy __share_group_state too: where share groups are.")
@click.option(
    "--from-admin", is_flag=True,
    help="If the topic cannot be read: ask for all groups and their offsets, and write a rescue plan into DIR.",
)  # fmt: skip
@click.option("--follow", is_flag=True, help="Continue as the logs grow, until a signal, and keep the copy current.")
@METRICS_PORT
@report_option("table", "jsonl", "json", "csv")
@SHOW_PROGRESS
@QUIET
def command(**options: Any) -> None:
    """Copy __consumer_offsets from a live cluster, batch by batch as the brokers have it on their disks.

    DIR becomes a data directory that every other command reads: folders __consumer_offsets-N with segments and indexes,
    pull.json (the cluster, and for each partition start and end, high watermark, last stable offset, leader epoch,
    times), and log-ends.json (where the partitions of all other topics began and ended, for --lag). Each partition is
    copied up to where its log ended when the run began, with open and aborted transactions and all markers.

    The right to READ the topic is enough. Nothing is written to the cluster, and no group is joined.

    However the run is interrupted, the same command continues it; run again later, it adds what came since. It waits
    for brokers that go away and leaders that change, up to default.api.timeout.ms (60 s) without progress. It reports a
    log that was truncated or created anew, and adds nothing to its copy.

    --follow keeps the copy current until SIGINT or SIGTERM, or until no broker has answered for that long; the copy is
    then complete up to where it got, and the same command continues it. Other commands with --follow may read the
    directory meanwhile.

    --from-admin is for services that hide the topic from all users. It needs the right to DESCRIBE groups and topics.
    DIR is new, and gets what `rescue` writes: plan.json for `restore`, files for other tools, and README.txt, which
    says what such a snapshot lacks: any history, times of commits, offsets in open transactions.

    Exit status: 0 everything was copied; 1 stopped by an error; 2 wrong usage; 3 some partition is not complete, as its
    row says, or has a batch whose checksum is wrong on the broker, too; with --from-admin groups were refused, or no
    group is shown.
    """
    from cli.output import chosen_format, destination, write_rows
    from cli.terminal import fail
    from offsets_log.errors import OffsetsLogError
    from offsets_log.pulling.facts import PULL_COLUMNS
    from offsets_log.session.account import EXIT_DAMAGED

    if options["metrics_port"] is not None and not options["follow"]:
        raise click.UsageError("--metrics-port is of --follow")
    if options["from_admin"]:
        _snapshot(options)
    run = _Run(**{name: options[name] for name in ("quiet", "progress", "to")})
    output = Output(output=options["output"], to=None)
    try:
        with ended_by_signals():
            copy = run.pull(options)
        with destination(output) as stream:
            rows = list(copy.rows())
            write_rows(stream, rows, [column.name for column in PULL_COLUMNS], chosen_format(output))
    except OffsetsLogError as error:
        fail(error)
    run.tell(copy)
    is_right = not copy.absent and all(row["whole"] and not row["damaged"] for row in rows)
    sys.exit(0 if is_right else EXIT_DAMAGED)


class _Run:
    """A run, and its words."""

    def __init__(self, quiet: bool, progress: bool | None, to: str) -> None:
        self._quiet, self._progress, self._to = quiet, progress, to
        self._began = time.monotonic()

    def pull(self, options: dict[str, Any]) -> Copy:
        """Pull all that is asked for."""
        from offsets_log.cluster.properties import read_properties
        from offsets_log.cluster.reader import ClusterReader
        from offsets_log.messages.internal_topics import OFFSETS_TOPIC, SHARE_GROUP_STATE, TRANSACTION_STATE
        from offsets_log.pulling.copy import open_copy
        from offsets_log.pulling.run import Pace, Pulling

        topics = [OFFSETS_TOPIC]
        topics += [TRANSACTION_STATE] if options["with_transaction_state"] else []
        topics += [SHARE_GROUP_STATE] if options["with_share_state"] else []
        properties = read_properties(options["command_config"], self.say)
        with (
            closing(ClusterReader(options["bootstrap_server"], properties)) as reader,
            open_copy(self._to, self.say) as copy,
        ):
            now = copy.begin(reader, topics, options["offsets_partition"])
            for absent in copy.absent:
                self.say(absent)
            if words := copy.write_log_ends(reader, now):
                self.say(words)
            offsets = sum(max(partition.target - partition.end_offset, 0) for partition in copy.partitions)
            with self._advancing(offsets) as advance:
                pace = Pace(options["max_bytes_per_second"])
                pulling = Pulling(reader, copy.partitions, pace, options["rack"], advance, self.say)
                if options["follow"]:
                    with self._measured(options["metrics_port"], copy):
                        _follow(pulling, copy)
                else:
                    pulling.run()
        return copy

    @contextmanager
    def _advancing(self, offsets: int) -> Iterator[Callable[[int], None]]:
        from cli.progress import progress

        with progress(
            offsets, self.say, is_wanted=self._progress, is_quiet=self._quiet, unit="offsets", long=LONG
        ) as advance:
            yield advance

    @contextmanager
    def _measured(self, place: tuple[str, int] | None, copy: Copy) -> Iterator[None]:
        """Serve metrics for as long as the context lasts, if that is asked for."""
        if place is None:
            yield
            return
        from offsets_log.actions.metrics import serving

        with serving(*place, lambda: [one for some in copy.partitions for one in some.samples()], self.say):
            yield

    def tell(self, copy: Copy) -> None:
        """Say what came of it."""
        from offsets_log.words import counted

        rows = list(copy.rows())
        for row in rows:
            if row["problem"] is not None:
                self.say(f"{row['topic']}-{row['partition']} is not whole: {row['problem']}")
            if row["damaged"]:
                damaged = counted(row["damaged"], "batch", "batches")
                self.say(f"{row['topic']}-{row['partition']}: {damaged} with a wrong checksum, as at the broker")
        seconds = time.monotonic() - self._began
        pulled = sum(row["pulled_bytes"] for row in rows)
        whole = sum(row["whole"] for row in rows)
        goes_on = any(not one.is_whole and (one.problem is None or one.may_pass) for one in copy.partitions)
        self.say(
            f"{counted(len(rows), 'partition')}, {whole} whole: {counted(pulled, 'byte')} pulled in {seconds:.1f} s"
            + ("; the same command goes on" if goes_on else "")
        )

    def say(self, words: str) -> None:
        """Print a line on standard error, unless the user asked for quiet."""
        from cli.terminal import say

        if not self._quiet:
            say(words)


def _snapshot(options: dict[str, Any]) -> NoReturn:
    """Run ``pull --from-admin``."""
    from cli.pull_from_admin import snapshot
    from cli.terminal import fail
    from offsets_log.errors import OffsetsLogError

    taken = ("bootstrap_server", "to", "command_config", "quiet", "from_admin", "progress")
    for name, value in options.items():
        if name not in taken and value not in (None, False, "", ()):
            raise click.UsageError(f"--{name.replace('_', '-')} does not go with --from-admin, which pulls no log")
    try:
        with ended_by_signals():
            status = snapshot(options["bootstrap_server"], options["to"], options["command_config"], options["quiet"])
    except OffsetsLogError as error:
        fail(error)
    sys.exit(status)


LONG = 100_000
"""Offsets from which a bar is worth showing."""


def _follow(pulling: Pulling, copy: Copy) -> None:
    """Pull until a signal comes, and beyond where the logs ended when the run began."""
    pulling.follow()
    pulling.note = partial(copy.note, pulling.reader, pulling.say_once)
    with stopping() as pulling.stop:
        pulling.run()
