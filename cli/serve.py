"""``offsets-log serve``: a read-only coordinator that Kafka's own tools ask over a copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from cli.options import ENGINE, MASTER, PROFILE, READING, TOPIC_IDS, Duration, ReadOptions, Time, gather
from cli.serve_options import END_OFFSETS, ServeOptions

DEFAULT_ADDRESS = "127.0.0.1:9092"


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
    epilog="Examples: offsets-log serve /var/lib/kafka/data · "
    "offsets-log serve backup.tar.gz --at 2026-11-20T14:02Z --at 2026-11-20T15:02Z · "
    "kafka-consumer-groups.sh --bootstrap-server 127.0.0.1:9092 --describe --all-groups",
)
@gather("reading", ReadOptions, tuple(option for option in READING if option not in (ENGINE, MASTER)))
@PROFILE
@TOPIC_IDS
@gather(
    "serving",
    ServeOptions,
    (
        click.option(
            "--at",
            type=Time(),
            multiple=True,
            help="Serve the state of that time, as --until-time bounds it; repeatable: each on the next port.",
        ),
        click.option(
            "--listen",
            type=HostPort(),
            default=DEFAULT_ADDRESS,
            show_default=True,
            help="Where clients come in; port 0 takes a free one.",
        ),
        click.option(
            "--advertise",
            type=HostPort(),
            help="Where clients are told to come back to; by default the address that each has reached.",
        ),
        click.option(
            "--end-offsets",
            type=click.Choice(END_OFFSETS),
            default=END_OFFSETS[0],
            show_default=True,
            help="What tells where partitions end: the copy's logs; these, and the highest committed offset of others; "
            "or nothing. An end that is not known is - in kafka-consumer-groups of 4.x, and -1 in other tools.",
        ),
        click.option(
            "--step",
            metavar="N",
            type=click.FloatRange(min=0, min_open=True),
            help="Play the log forward from --at, N seconds of it in each second.",
        ),
        click.option(
            "--now",
            type=Time(),
            help="Leave out offsets and groups that expiry would have removed by then; by default none are.",
        ),
        click.option(
            "--retention",
            type=Duration(),
            help="The broker's offsets.retention.minutes for --now, as 7d or 10080m.  [default: the profile's]",
        ),
    ),
)
def command(reading: ReadOptions, profile: str, topic_ids: str | None, serving: ServeOptions) -> None:
    """Serve a copy to Kafka's own tools, as if its broker were alive at a moment of its past.

    A coordinator that only reads: groups, members, committed offsets, and lag as far as the copy tells it. Consumers
    read the records of the logs in it, of users' topics too, by partition: without joining a group. The address of
    each listener is printed; the run ends by Ctrl-C.

    Lines on standard input travel in time: "at 2026-11-20T14:02Z" to a moment (with one listener), "step 60" or "step
    -60" by so many seconds, "end" to the end of the logs, "quit".
    """
    from cli.inputs import read_topic_ids
    from cli.session import open_session

    _check_usage(reading, serving)
    if serving.at:
        reading = replace(reading, until_time=serving.at[0])
    with open_session(reading, needs={"committed_offset"}) as session:
        from cli.moments import Moments
        from cli.travel import Travel
        from offsets_log.replay.expiry import ERAS

        expiry = None if serving.now is None else (serving.now, ERAS[profile].retention(serving.retention))
        moments = Moments(session, profile, read_topic_ids(topic_ids), serving.end_offsets, expiry)
        Travel(moments, serving).run()


def _check_usage(reading: ReadOptions, serving: ServeOptions) -> None:
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
