"""``offsets-log serve``: a read-only coordinator that Kafka's own tools ask over a copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from offsets_log.actions.serve_asked import ServeAsked
from offsets_log_cli.help_page import CHOOSE, OUTPUT, RARE, SHOW, Command, option
from offsets_log_cli.options import (
    HARDLY_MS,
    TOPIC_IDS,
    Duration,
    ReadOptions,
    Time,
    gather,
    reading_options,
    release_options,
)

DEFAULT_ADDRESS = "127.0.0.1:9092"
END_OFFSETS = ("data-dir", "committed", "unknown")
"""Names of `serving.topics.END_OFFSETS`, stated here too so that help does not load them; a test compares both."""


class HostPort(click.ParamType):  # type: ignore[type-arg]
    """``HOST:PORT`` or ``[HOST]:PORT`` → (host, port)."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Return the value; fail for anything else."""
        from offsets_log.cluster.address import address
        from offsets_log.errors import ClusterError

        try:
            return address(str(value))
        except ClusterError as error:
            self.fail(error.problem, param, ctx)


@click.command(
    "serve",
    cls=Command,
    epilog="Examples: offsets-log serve /var/lib/kafka/data · "
    "offsets-log serve backup.tar.gz --at 2026-11-20T14:02Z --at 2026-11-20T15:02Z · "
    "kafka-consumer-groups.sh --bootstrap-server 127.0.0.1:9092 --describe --all-groups",
)
@reading_options
@release_options
@TOPIC_IDS
@gather(
    "serving",
    ServeAsked,
    (
        option(
            "--at",
            under=CHOOSE,
            type=Time(),
            multiple=True,
            help="Serve the state at that time; repeatable. Each on the next port, with the forms of --until-time.",
        ),
        option(
            "--listen",
            under=OUTPUT,
            type=HostPort(),
            default=DEFAULT_ADDRESS,
            show_default=True,
            help="Address to listen at. Port 0 takes a free one.",
        ),
        option(
            "--advertise",
            under=RARE,
            type=HostPort(),
            help="Address that clients are told to come back to; by default the one that each has reached.",
        ),
        option(
            "--end-offsets",
            under=SHOW,
            type=click.Choice(END_OFFSETS),
            metavar="ENDS",
            default=END_OFFSETS[0],
            show_default=True,
            help="data-dir, committed or unknown. Where partitions end: by the copy's logs; by these, and for other "
            "partitions by the highest committed offset; or nowhere. kafka-consumer-groups 4.x shows an unknown "
            "end as -, other tools as -1.",
        ),
        option(
            "--step",
            under=SHOW,
            metavar="N",
            type=click.FloatRange(min=0, min_open=True),
            help="Play on from --at, N seconds in each second.",
        ),
        option(
            "--now",
            under=RARE,
            type=Time(),
            help="Leave out offsets and groups that expiry would have removed by then; by default none are.",
        ),
        option(
            "--retention",
            under=RARE,
            type=Duration(HARDLY_MS),
            help="The broker's offsets.retention.minutes for --now, as 7d or 10080m.  [default: the profile's]",
        ),
    ),
)
def command(reading: ReadOptions, profile: str | None, topic_ids: str | None, serving: ServeAsked) -> None:
    """Answer Kafka's own tools from a copy, as its broker would have answered at a moment that you choose.

    It acts as a coordinator that only reads: groups, members, committed offsets, and lag as far as the copy shows it.
    Consumers can read the records of the logs in the copy, also of users' topics, if they assign partitions and do not
    join a group. The address of each listener is printed; Ctrl-C ends the run.

    Lines on standard input change the moment: "at 2026-11-20T14:02Z" (with one listener), "step 60" or "step -60"
    seconds, "end" (the end of the logs); "quit" ends the run.
    """
    from offsets_log.log_format.partition_log import OUTCOMES
    from offsets_log_cli.session import open_session

    _check_usage(reading, serving)
    if serving.at:
        reading = replace(reading, until_time=serving.at[0])
    with open_session(reading, needs={"committed_offset", OUTCOMES}) as session:
        from offsets_log.actions.serve import moments_of
        from offsets_log_cli.serve_lines import run

        run(moments_of(session, serving, profile, topic_ids), serving)


def _check_usage(reading: ReadOptions, serving: ServeAsked) -> None:
    """Raise UsageError for what cannot be served."""
    from offsets_log.cluster.address import MAX_PORT

    if serving.at and reading.until_time is not None:
        raise click.UsageError("--at is a time of its own: leave out --until-time")
    if serving.step is not None and len(serving.at) != 1:
        raise click.UsageError("--step begins at a moment: give one --at")
    if serving.retention is not None and serving.now is None:
        raise click.UsageError("--retention decides what has expired by --now: give that too")
    if serving.advertise is not None and not serving.advertise[1]:
        raise click.UsageError("--advertise tells clients where to come back to: port 0 is nowhere")
    if serving.advertise is not None and len(serving.at) > 1:
        raise click.UsageError("--advertise names one address, and each --at has its own")
    if serving.listen[1] + max(len(serving.at) - 1, 0) > MAX_PORT:
        raise click.UsageError(f"there are no {len(serving.at)} ports from {serving.listen[1]} on")
